// SPDX-License-Identifier: GPL-2.0
/* Readiness: poll, select, epoll by level, edge and once. TCP is the reference. */
#include "lib/e2e.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static char byte, bytes[16];
static int low_fd;

#define must_poll(fd, asked, want)						\
	do {									\
		int must_got = poll_now(fd, asked);				\
										\
		if (must_got != (want))						\
			fail("poll(%s, %#x) gives %#x, not %#x", #fd, asked, must_got, want); \
	} while (0)

static void listening(void)
{
	int fd = listener(4);

	must_poll(fd, POLLIN | POLLOUT, 0);
	client_of(fd);
	wait_io(fd, POLLIN);
	must_poll(fd, POLLIN | POLLOUT, POLLIN);
	must(accept(fd, NULL, NULL));
	must_poll(fd, POLLIN | POLLOUT, 0);
}

static void unconnected(void)
{
	must_poll(new_socket(), POLLIN | POLLOUT, POLLOUT | POLLHUP);
}

static void connected(void)
{
	struct pair p;

	pair_open(&p);
	must_poll(p.c, POLLIN | POLLOUT | POLLRDHUP, POLLOUT);
	must_poll(p.s, POLLIN | POLLOUT | POLLRDHUP, POLLOUT);
	must_be(send(p.c, "ab", 2, 0), 2);
	wait_io(p.s, POLLIN);
	must_poll(p.s, POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT);
	must_be(recv(p.s, &byte, 1, MSG_PEEK), 1);
	must_poll(p.s, POLLIN, POLLIN);
	recv(p.s, &byte, 1, 0);
	if (!e2e.seq)
		must_be(recv(p.s, &byte, 1, 0), 1);
	must_poll(p.s, POLLIN, 0);
}

/* SO_RCVLOWAT: not readable until there is so much, or no more will come. */
static void low_water(void)
{
	struct pair p;

	pair_open(&p);
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 10);
	must_be(send(p.c, "123456789", 9, 0), 9);
	/* Comes back when all of them are there. */
	must_be(recv(p.s, bytes, 9, MSG_PEEK | MSG_WAITALL), 9);
	must_poll(p.s, POLLIN, 0);
	must_be(send(p.c, "0", 1, 0), 1);
	wait_io(p.s, POLLIN);
	must_be(recv(p.s, bytes, 1, 0), 1);
	must_poll(p.s, POLLIN, 0);
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 9);
	must_poll(p.s, POLLIN, POLLIN);
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 100);
	must_poll(p.s, POLLIN, 0);
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.s, POLLIN);
	must_be(recv(p.s, bytes, 9, 0), 9);
}

static void *lower_water(void *arg)
{
	wait_blocked(*(pid_t *)arg);
	set_int(low_fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	return NULL;
}

/* Lowering SO_RCVLOWAT wakes a thread that waits for more bytes. */
static void low_water_wakes(void)
{
	pid_t self = gettid();
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	low_fd = p.s;
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 10);
	send_all(p.c, 1, 0, 5);
	must_be(recv(p.s, bytes, 5, MSG_PEEK | MSG_WAITALL), 5);
	must_be(pthread_create(&thread, NULL, lower_water, &self), 0);
	wait_io(p.s, POLLIN);
	must_be(pthread_join(thread, NULL), 0);
}

/* More than is ever there at once: a full buffer is enough. */
static void low_water_beyond(void)
{
	struct pair p;
	size_t n;

	pair_open(&p);
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
	n = send_until_full(p.c, 1);
	wait_io(p.s, POLLIN);
	recv_all(p.s, 1, 0, n);
}

/* A message is to be had as a whole, however short. */
static void low_water_message(void)
{
	struct pair p;

	pair_open(&p);
	set_int(p.s, SOL_SOCKET, SO_RCVLOWAT, 100);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_io(p.s, POLLIN);
	must_be(recv(p.s, &byte, 1, 0), 1);
}

static void half_closed(void)
{
	struct pair p;

	pair_open(&p);
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.s, POLLRDHUP);
	must_poll(p.s, POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT | POLLRDHUP);
	must_poll(p.c, POLLIN | POLLRDHUP, 0);
	must_be(recv(p.s, &byte, 1, 0), 0);
	must_poll(p.s, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP);
}

static void both_closed(void)
{
	struct pair p;

	pair_open(&p);
	must(shutdown(p.c, SHUT_WR));
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLHUP);
	wait_io(p.s, POLLHUP);
	must_be(poll_now(p.c, POLLIN | POLLRDHUP) & (POLLIN | POLLRDHUP | POLLHUP | POLLERR),
		POLLIN | POLLRDHUP | POLLHUP);
	must_be(recv(p.c, &byte, 1, 0), 0);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

static void reset(void)
{
	struct pair p;
	int got;

	pair_open(&p);
	must(send(p.c, "unread", 6, 0));
	wait_io(p.s, POLLIN);
	close(p.s);
	wait_io(p.c, POLLERR);
	got = poll_now(p.c, POLLIN | POLLOUT);
	check((got & (POLLERR | POLLHUP | POLLIN)) == (POLLERR | POLLHUP | POLLIN),
	      "poll gives %#x after a reset", got);
	must_be(so_error(p.c), ECONNRESET);
	must_poll(p.c, 0, POLLHUP);
}

static void full(void)
{
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	must_poll(p.c, POLLOUT, 0);
	recv_all(p.s, 1, 0, n);
	wait_io(p.c, POLLOUT);
	must_poll(p.c, POLLIN | POLLOUT, POLLOUT);
}

/* A socket that poll() calls writable takes a short write at once: programs whose sockets block depend on it. */
static void room(void)
{
	static char short_write[8192];
	struct pair p;

	pair_open(&p);
	while (poll_now(p.c, POLLOUT))
		must_be(send(p.c, short_write, sizeof(short_write), MSG_DONTWAIT), sizeof(short_write));
}

/* However small it is, there is room once all has been read. */
static void small_buffers(void)
{
	static const int sizes[] = { 1, 2304, 2600, 4000, 8192, 20000 };	/* the kernel doubles them */
	struct pair p;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_open(&p);
		set_int(p.c, SOL_SOCKET, SO_SNDBUF, sizes[i]);
		n = send_until_full(p.c, 1);
		must_poll(p.c, POLLOUT, 0);
		recv_all(p.s, 1, 0, n);
		wait_io(p.c, POLLOUT);
		close(p.c);
		close(p.s);
	}
}

/* A thread that is in poll() already is woken. */
struct waiting {
	int fd, events;
	volatile pid_t tid;
	int got;
};

static void *wait_thread(void *arg)
{
	struct waiting *w = arg;

	w->tid = gettid();
	w->got = poll_wait(w->fd, w->events);
	return NULL;
}

static void start_waiting(pthread_t *thread, struct waiting *w)
{
	must_be(pthread_create(thread, NULL, wait_thread, w), 0);
	wait_until(w->tid);
	wait_blocked(w->tid);
}

static void woken(int fd, int events, void (*act)(int fd), int act_on)
{
	struct waiting w = { .fd = fd, .events = events };
	pthread_t thread;

	start_waiting(&thread, &w);
	act(act_on);
	pthread_join(thread, NULL);
	check(w.got & events, "poll for %#x was woken with %#x", events, w.got);
}

static void act_send(int fd)
{
	must(send(fd, "x", 1, 0));
}

static void act_shutdown(int fd)
{
	must(shutdown(fd, SHUT_WR));
}

static void act_close(int fd)
{
	close(fd);
}

static void act_connect(int fd)
{
	client_of(fd);
}

static void wakes_reader(void)
{
	struct pair p;

	pair_open(&p);
	woken(p.s, POLLIN, act_send, p.c);
}

static void wakes_at_eof(void)
{
	struct pair p;

	pair_open(&p);
	woken(p.s, POLLIN, act_shutdown, p.c);
}

static void wakes_at_close(void)
{
	struct pair p;

	pair_open(&p);
	woken(p.s, POLLRDHUP, act_close, p.c);
}

static void wakes_listener(void)
{
	int fd = listener(4);

	woken(fd, POLLIN, act_connect, fd);
}

static size_t drain_bytes;

static void act_drain(int fd)
{
	recv_all(fd, 1, 0, drain_bytes);
}

static void wakes_writer(void)
{
	struct pair p;

	pair_open(&p);
	drain_bytes = send_until_full(p.c, 1);
	woken(p.c, POLLOUT, act_drain, p.s);
}

/* -- epoll */

static int epoll_of(int fd, unsigned int events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	int ep = must(epoll_create1(EPOLL_CLOEXEC));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	return ep;
}

/* Events of the one descriptor; 0 if there is none. */
static unsigned int epoll_next(int ep, int ms)
{
	struct epoll_event ev = {};

	return must(epoll_wait(ep, &ev, 1, ms)) ? ev.events : 0;
}

static void epoll_level(void)
{
	struct pair p;
	int ep;

	pair_open(&p);
	ep = epoll_of(p.s, EPOLLIN);
	must_be(epoll_next(ep, 0), 0);
	must(send(p.c, "ab", 2, 0));
	must_be(epoll_next(ep, limit_ms()), EPOLLIN);
	must_be(epoll_next(ep, 0), EPOLLIN);
	must(recv(p.s, &byte, 1, 0));
	if (!e2e.seq)
		must_be(epoll_next(ep, 0), EPOLLIN);
	recv(p.s, &byte, 1, MSG_DONTWAIT);
	must_be(epoll_next(ep, 0), 0);
}

static void epoll_edge(void)
{
	struct pair p;
	int ep;

	pair_open(&p);
	ep = epoll_of(p.s, EPOLLIN | EPOLLET);
	must_be(epoll_next(ep, 0), 0);
	must(send(p.c, "ab", 2, 0));
	must_be(epoll_next(ep, limit_ms()), EPOLLIN);
	must_be(epoll_next(ep, 0), 0);
	/* Not read, yet more comes: an edge again. */
	must(send(p.c, "cd", 2, 0));
	must_be(epoll_next(ep, limit_ms()), EPOLLIN);
	must(shutdown(p.c, SHUT_WR));
	check(epoll_next(ep, limit_ms()) & EPOLLIN, "no edge at the end of data");
}

/* At the end that was accepted: a worker may report later, as an edge, that the other one is connected. */
static void epoll_edge_write(void)
{
	struct pair p;
	size_t n;
	int ep;

	pair_open(&p);
	ep = epoll_of(p.s, EPOLLOUT | EPOLLET);
	must_be(epoll_next(ep, limit_ms()), EPOLLOUT);
	must_be(epoll_next(ep, 0), 0);
	n = send_until_full(p.s, 1);
	epoll_next(ep, 0);	/* room that came and went while filling */
	recv_all(p.c, 1, 0, n);
	must_be(epoll_next(ep, limit_ms()) & EPOLLOUT, EPOLLOUT);
}

/*
 * A thread that is woken at the end reads it at once, while others are still being woken: there are so
 * many that the first one is done before the last.
 */
static void *read_end(void *arg)
{
	struct waiting *w = arg;
	int ep = epoll_of(w->fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
	char c;

	w->tid = gettid();
	w->got = epoll_next(ep, limit_ms());
	must_be(recv(w->fd, &c, 1, MSG_DONTWAIT), 0);
	must(close(ep));
	return NULL;
}

static void edge_end(void)
{
	pthread_t thread;
	struct waiting w;
	int ep[400];
	size_t i;
	struct pair p;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		ep[i] = epoll_of(p.s, EPOLLIN | EPOLLET);
	w = (struct waiting){ .fd = p.s };
	must_be(pthread_create(&thread, NULL, read_end, &w), 0);
	wait_until(w.tid);
	wait_blocked(w.tid);
	must(shutdown(p.c, SHUT_WR));
	must_be(pthread_join(thread, NULL), 0);
	must_be(w.got, EPOLLIN | EPOLLRDHUP);
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		must(close(ep[i]));
	pair_close(&p);
}

static void epoll_edge_end(void)
{
	for (int i = 0, n = amount(25); i < n; i++)
		edge_end();
}

static void epoll_once(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	struct pair p;
	int ep;

	pair_open(&p);
	ep = epoll_of(p.s, EPOLLIN | EPOLLONESHOT);
	must(send(p.c, "a", 1, 0));
	must_be(epoll_next(ep, limit_ms()), EPOLLIN);
	must(send(p.c, "b", 1, 0));
	must_be(epoll_next(ep, 0), 0);
	must(epoll_ctl(ep, EPOLL_CTL_MOD, p.s, &ev));
	must_be(epoll_next(ep, limit_ms()), EPOLLIN);
}

static void epoll_connect(void)
{
	int fd = listener(4), c, ep;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	set_nonblock(c, true);
	ep = epoll_of(c, EPOLLOUT | EPOLLET);
	epoll_next(ep, 0);	/* the events of an unconnected socket */
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(epoll_next(ep, limit_ms()), EPOLLOUT);
	must_be(so_error(c), 0);
}

static void with_select(void)
{
	struct timeval none = {};
	fd_set in, out;
	struct pair p;

	pair_open(&p);
	must(send(p.c, "a", 1, 0));
	wait_io(p.s, POLLIN);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(p.s, &in);
	FD_SET(p.c, &in);
	FD_SET(p.c, &out);
	must_be(select(p.c + p.s + 1, &in, &out, NULL, &none), 2);
	check(FD_ISSET(p.s, &in) && !FD_ISSET(p.c, &in) && FD_ISSET(p.c, &out), "the wrong ones are ready");
}

static const struct e2e_case cases[] = {
	{ "listening", listening, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "unconnected", unconnected, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "connected", connected, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "low_water", low_water, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "low_water_wakes", low_water_wakes, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "low_water_beyond", low_water_beyond, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "low_water_message", low_water_message, .on = ON_SEQ },
	{ "half_closed", half_closed, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "both_closed", both_closed, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "reset", reset, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "full", full, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "small_buffers", small_buffers, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "room", room, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "wakes_reader", wakes_reader, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "wakes_at_eof", wakes_at_eof, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "wakes_at_close", wakes_at_close, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "wakes_listener", wakes_listener, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "wakes_writer", wakes_writer, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_level", epoll_level, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_edge", epoll_edge, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_edge_end", epoll_edge_end, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_edge_write", epoll_edge_write, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_once", epoll_once, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "epoll_connect", epoll_connect, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{ "select", with_select, .on = ON_BOTH | ON_TCP | ON_FACE4 },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
