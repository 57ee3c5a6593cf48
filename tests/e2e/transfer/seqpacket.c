// SPDX-License-Identifier: GPL-2.0
/* Messages: boundaries, truncation, from no bytes to the largest. */
#include "lib/async.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#define MESSAGE_MAX	(8 * MIB)	/* Documentation: the largest message */

static char buf[65536];

/* Sizes around each limit at which a message goes another way. */
static const size_t sizes[] = {
	1, 2, 7, 8, 63, 64, 65, 500, 991, 992, 993, 1007, 1008, 1009, 1023, 1024, 1025, 4095, 4096,
	4097, 16384, 65535, 65536, 65537, 131072, 1 * MIB - 1, 1 * MIB, 1 * MIB + 1, 4 * MIB,
};

struct sending { int fd; const size_t *sizes; size_t count; };

static void *send_sizes(void *arg)
{
	const struct sending *s = arg;
	char *data;
	size_t i;

	for (i = 0; i < s->count; i++) {
		data = malloc(s->sizes[i]);
		data_fill(i, 0, data, s->sizes[i]);
		must_be(send(s->fd, data, s->sizes[i], 0), s->sizes[i]);
		free(data);
	}
	return NULL;
}

static void receive_sizes(int fd, const size_t *want, size_t count)
{
	char *data = malloc(MESSAGE_MAX);
	size_t i;

	for (i = 0; i < count; i++) {
		must_be(recv(fd, data, MESSAGE_MAX, 0), want[i]);
		data_check(i, 0, data, want[i]);
	}
	free(data);
}

static void exchange(struct pair *p, const size_t *what, size_t count)
{
	struct sending s = { .sizes = what, .count = count };
	pthread_t thread;

	pair_open(p);
	s.fd = p->c;
	must_be(pthread_create(&thread, NULL, send_sizes, &s), 0);
	receive_sizes(p->s, what, count);
	pthread_join(thread, NULL);
	must_fail(recv(p->s, buf, 1, MSG_DONTWAIT), EAGAIN);
}

static void boundaries(void)
{
	struct pair p;

	exchange(&p, sizes, ARRAY_SIZE(sizes));
}

static void boundaries_client(void)
{
	struct sending s = { meet(), sizes, ARRAY_SIZE(sizes) };

	send_sizes(&s);
	control_wait("done");
}

static void boundaries_server(void)
{
	receive_sizes(meet(), sizes, ARRAY_SIZE(sizes));
	control_send("done");
}

static void largest(void)
{
	static const size_t large[] = { 1 * MIB, 4 * MIB, MESSAGE_MAX - 1, MESSAGE_MAX };
	struct pair p;

	exchange(&p, large, ARRAY_SIZE(large));
}

static void too_large(void)
{
	char *data = pages(MESSAGE_MAX + 4096);
	struct pair p;

	pair_open(&p);
	must_fail(send(p.c, data, MESSAGE_MAX + 1, 0), EMSGSIZE);
	/* Nothing of it was sent. */
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, data, MESSAGE_MAX, 0), 1);
}

static ssize_t receive_flags(int fd, size_t room, int flags, int *got)
{
	struct iovec iov = { buf, room };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = must(recvmsg(fd, &msg, flags));

	*got = msg.msg_flags;
	return n;
}

/* Bytes that do not fit are lost; MSG_TRUNC reports it, and as a flag asks for the whole length. */
static void truncated_message(size_t len)
{
	struct pair p;
	char *data = malloc(len);
	int got;

	pair_open(&p);
	data_fill(1, 0, data, len);
	must_be(send(p.c, data, len, MSG_DONTWAIT), len);
	must_be(send(p.c, data, len, MSG_DONTWAIT), len);
	must_be(send(p.c, "next", 4, 0), 4);
	must_be(receive_flags(p.s, 100, 0, &got), 100);
	check(got & MSG_TRUNC, "no MSG_TRUNC in msg_flags (%#x)", got);
	data_check(1, 0, buf, 100);
	must_be(receive_flags(p.s, 100, MSG_TRUNC, &got), len);
	check(got & MSG_TRUNC, "no MSG_TRUNC in msg_flags (%#x)", got);
	must_be(receive_flags(p.s, 4, 0, &got), 4);
	check(!(got & MSG_TRUNC), "MSG_TRUNC although it fits");
	check(!memcmp(buf, "next", 4), "the message after a truncated one is wrong");
	free(data);
}

static void truncation_small(void)
{
	truncated_message(500);
}

static void truncation_middle(void)
{
	truncated_message(3000);
}

static void truncation_large(void)
{
	truncated_message(30000);
}

/* Asking for nothing takes the message all the same. */
static void read_nothing(void)
{
	struct pair p;
	int got;

	pair_open(&p);
	must_be(send(p.c, "abc", 3, 0), 3);
	must_be(send(p.c, "d", 1, 0), 1);
	must_be(receive_flags(p.s, 0, 0, &got), 0);
	check(got & MSG_TRUNC, "no MSG_TRUNC in msg_flags (%#x)", got);
	must_be(recv(p.s, buf, sizeof(buf), 0), 1);
}

/* A message of no bytes is a message, not the end. */
static void zero_length(void)
{
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 100; i++)
		must_be(send(p.c, NULL, 0, 0), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	for (i = 0; i < 100; i++) {
		wait_io(p.s, POLLIN);
		check(!(poll_now(p.s, POLLRDHUP) & POLLRDHUP), "a message of no bytes looks like the end");
		must_be(recv(p.s, buf, 1, 0), 0);
	}
	must_be(recv(p.s, buf, 1, 0), 1);
}

static void zero_length_queued(void)
{
	struct pair p;

	pair_open(&p);
	must_be(send(p.c, NULL, 0, 0), 0);
	must(shutdown(p.c, SHUT_WR));
	must_be(recv(p.s, buf, 1, 0), 0);
	must_be(recv(p.s, buf, 1, 0), 0);
	check(poll_now(p.s, POLLRDHUP) & POLLRDHUP, "the end did not come");
}

static void peek(void)
{
	struct pair p;
	int got;

	pair_open(&p);
	send_all(p.c, 1, 0, 700);
	send_all(p.c, 2, 0, 50);
	must_be(receive_flags(p.s, 10, MSG_PEEK, &got), 10);
	check(got & MSG_TRUNC, "no MSG_TRUNC in msg_flags (%#x)", got);
	must_be(receive_flags(p.s, 10, MSG_PEEK | MSG_TRUNC, &got), 700);
	must_be(recv(p.s, buf, sizeof(buf), MSG_PEEK), 700);
	recv_all(p.s, 1, 0, 700);
	recv_all(p.s, 2, 0, 50);
}

static void peek_large(void)
{
	struct pair p;
	int got;

	pair_open(&p);
	send_all(p.c, 1, 0, 40000);
	wait_io(p.s, POLLIN);
	must_be(receive_flags(p.s, 10, MSG_PEEK | MSG_TRUNC, &got), 40000);
	data_check(1, 0, buf, 10);
	must_be(recv(p.s, buf, sizeof(buf), 0), 40000);
	data_check(1, 0, buf, 40000);
}

/* Several pieces, one message. */
static void gathered(void)
{
	struct iovec out[3] = { { "abc", 3 }, { NULL, 0 }, { "defgh", 5 } };
	struct iovec in[3] = { { buf, 2 }, { buf + 2, 4 }, { buf + 6, 100 } };
	struct pair p;

	pair_open(&p);
	must_be(writev(p.c, out, 3), 8);
	must_be(readv(p.s, in, 3), 8);
	check(!memcmp(buf, "abcdefgh", 8), "other bytes came");
}

#define MANY_MESSAGES	20000	/* as many as no honest bound lets pass */
#define MANY_BYTES	(4 * MIB)	/* more than net.exs.sndbuf and .ring_size, 256 KiB each */

/* The peer does not read: sending is bounded, by bytes and by a message's cost beyond them. */
static void bounded(size_t len)
{
	struct pair p;
	ssize_t n;
	int i, count = 0;

	pair_open(&p);
	for (;;) {
		data_fill(3, count * len, buf, len);
		n = send(p.c, buf, len, MSG_DONTWAIT);
		if (n < 0)
			break;
		must_be(n, len);
		count++;
		check(count < MANY_MESSAGES && count * len < MANY_BYTES,
		      "%d messages of %zu bytes were taken and nobody reads", count, len);
	}
	must_be(errno, EAGAIN);
	check(count, "not one message was taken");
	/* And no message that was taken is lost. */
	for (i = 0; i < count; i++) {
		must_be(recv(p.s, buf, sizeof(buf), 0), len);
		data_check(3, i * len, buf, len);
	}
	wait_io(p.c, POLLOUT);
	must_fail(recv(p.s, buf, 1, MSG_DONTWAIT), EAGAIN);
}

static void bounded_empty(void)
{
	bounded(0);
}

static void bounded_small(void)
{
	bounded(100);
}

static void bounded_tiny(void)
{
	bounded(1);
}

static void bounded_middle(void)
{
	bounded(2000);
}

static void bounded_large(void)
{
	bounded(60000);
}

/* A recv() of a large message that a signal interrupts costs nothing. */
static void interrupted_large(void)
{
	char *data = malloc(4 * MIB);
	struct sending s = { .sizes = (const size_t []){ 4 * MIB, 4 * MIB }, .count = 2 };
	size_t left = 2;
	pthread_t thread;
	struct pair p;
	sigset_t alarms;
	ssize_t n;

	pair_open(&p);
	s.fd = p.c;
	catch_signal(SIGALRM, 0);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	must_be(pthread_create(&thread, NULL, send_sizes, &s), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	interrupt_self(3);
	while (left) {
		n = recv(p.s, data, 4 * MIB, 0);
		if (n < 0 && errno == EINTR)
			continue;
		interrupt_stop();
		must_be(n, 4 * MIB);
		data_check(2 - left, 0, data, 4 * MIB);
		left--;
		interrupt_self(3);
	}
	interrupt_stop();
	pthread_join(thread, NULL);
}

/* poll() reports a message of any size, before a call asks for it. */
static void readable_large(void)
{
	struct sending s = { .sizes = (const size_t []){ 3 * MIB }, .count = 1 };
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	s.fd = p.c;
	must_be(pthread_create(&thread, NULL, send_sizes, &s), 0);
	wait_io(p.s, POLLIN);
	receive_sizes(p.s, s.sizes, 1);
	pthread_join(thread, NULL);
	must_be(poll_now(p.s, POLLIN), 0);
}

/* Large and small ones keep their order though they travel differently. */
static void mixed_order(void)
{
	static size_t mixed[60];
	uint64_t state = e2e.seed;
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mixed); i++)
		mixed[i] = next_random(&state) % 3 ? next_random(&state) % 900 : next_random(&state) % 200000;
	exchange(&p, mixed, ARRAY_SIZE(mixed));
}

static void close_delivers_messages(void)
{
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 5; i++)
		send_all(p.c, i, 0, 300);
	close(p.c);
	for (i = 0; i < 5; i++)
		recv_all(p.s, i, 0, 300);
	must_be(recv(p.s, buf, 1, 0), 0);
}

struct held_reader { int fd; struct held_page page; };

static void *read_into_held(void *arg)
{
	const struct held_reader *r = arg;

	must_be(recv(r->fd, r->page.mem, 4, 0), 4);
	return NULL;
}

static void *peek_into_held(void *arg)
{
	const struct held_reader *r = arg;

	must_be(recv(r->fd, r->page.mem, 5, MSG_PEEK), 5);
	return NULL;
}

/* A message that a thread peeks at is there for all others. */
static void peek_beside(size_t len)
{
	struct held_reader r = { .page = held_page_open() };
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	r.fd = p.s;
	send_all(p.c, 1, 0, len);
	wait_io(p.s, POLLIN);
	must_be(pthread_create(&thread, NULL, peek_into_held, &r), 0);
	held_page_wait(&r.page);
	must_be(poll_now(p.s, POLLIN), POLLIN);
	must_be(recv(p.s, buf, sizeof(buf), MSG_DONTWAIT), len);
	data_check(1, 0, buf, len);
	held_page_let_go(&r.page);
	pthread_join(thread, NULL);
}

struct behind { struct pair p; exs_qhandle_t q; volatile pid_t tid; pthread_t thread; };

static void *peek_five(void *arg)
{
	struct behind *b = arg;
	char bytes[5];

	b->tid = gettid();
	must_be(recv(b->p.s, bytes, sizeof(bytes), MSG_PEEK), sizeof(bytes));
	data_check(2, 0, bytes, sizeof(bytes));
	return NULL;
}

/* A thread looks, and waits behind a receive of @len bytes into @first. */
static void look_behind(struct behind *b, char *first, size_t len)
{
	b->q = queue_new(2);
	pair_open(&b->p);
	start_recv(b->p.s, first, len, 0, b->q, 1, NO_REGION);
	must_be(pthread_create(&b->thread, NULL, peek_five, b), 0);
	wait_until(b->tid);
	wait_blocked(b->tid);
}

/* It sees the message that comes now, and leaves it whole. */
static void is_left_whole(struct behind *b, size_t len)
{
	send_all(b->p.c, 2, 0, len);
	must_be(pthread_join(b->thread, NULL), 0);
	must_be(recv(b->p.s, buf, sizeof(buf), 0), len);
	data_check(2, 0, buf, len);
}

static void peek_behind(size_t len)
{
	static char first[40000];
	struct behind b = {};

	look_behind(&b, first, sizeof(first));
	send_all(b.p.c, 1, 0, len);
	event_is(b.q, EXS_EVT_RECV, 1, 0, len);
	data_check(1, 0, first, len);
	is_left_whole(&b, len);
}

static void peek_behind_small(void)
{
	peek_behind(100);
}

static void peek_behind_large(void)
{
	peek_behind(40000);
}

/* The receive is cancelled: the peek gets the next message. */
static void peek_behind_cancelled(void)
{
	struct behind b = {};
	char first[10];

	look_behind(&b, first, sizeof(first));
	must_be(exs_cancel(b.q, b.p.s, 0, EXS_CAF_FILDES), 0);
	event_is(b.q, EXS_EVT_RECV, 1, ECANCELED, 0);
	is_left_whole(&b, 40000);
}

static void peek_beside_small(void)
{
	peek_beside(100);
}

static void peek_beside_middle(void)
{
	peek_beside(4000);
}

static void peek_beside_large(void)
{
	peek_beside(40000);
}

/* The server's ring is so large. */
static void pair_with_ring(struct pair *p, int size)
{
	int fd = listener(8);

	must(exs_setsockopt(fd, SOL_EXS, EXS_SO_RING, &size, sizeof(size)));
	pair_from(p, fd);
	close(fd);
}

/* The first of medium size is announced, so that the receiver makes a ring. Afterwards there is one. */
static void ring_made(struct pair *p)
{
	send_all(p->c, 0, 0, 1500);
	recv_all(p->s, 0, 0, 1500);
	while (!delta("indirect_tx_bytes")) {
		send_all(p->c, 0, 0, 1500);
		recv_all(p->s, 0, 0, 1500);
	}
}

/*
 * The server does not read, and no message is announced: 14 times 16 KiB of 256 are on the other side, small ones among
 * them.
 */
static void ring_ahead(void)
{
	enum { COUNT = 14, LEN = 16384 };
	struct pair p;
	long before;
	int i;

	pair_open(&p);
	ring_made(&p);
	before = delta("indirect_tx_bytes");
	for (i = 0; i < COUNT; i++) {
		data_fill(i, 0, buf, LEN);
		must_be(send(p.c, buf, LEN - i, 0), LEN - i);
		must_be(send(p.c, buf, i, 0), i);
	}
	wait_delta("indirect_tx_bytes", before + COUNT * LEN - COUNT * (COUNT - 1) / 2);
	close(p.c);
	for (i = 0; i < COUNT; i++) {
		must_be(recv(p.s, buf, sizeof(buf), 0), LEN - i);
		data_check(i, 0, buf, LEN - i);
		must_be(recv(p.s, buf, sizeof(buf), 0), i);
		data_check(i, 0, buf, i);
	}
	must_be(recv(p.s, buf, sizeof(buf), 0), 0);
}

static long small_sent(void)
{
	return delta("eager_tx_bytes") + delta("indirect_tx_bytes");
}

static void small_go_ahead(const struct pair *p, int sent, int ahead)
{
	enum { LEN = 64 };
	int i;

	for (i = 0; i < sent; i++)
		send_all(p->c, i, 0, LEN);
	wait_until(small_sent() >= ahead * LEN);
	must_be(small_sent(), ahead * LEN);
	for (i = 0; i < sent; i++)
		recv_all(p->s, i, 0, LEN);
}

/* Small ones go ahead of a program that does not read as far as large ones do: by the ring, if that is all there is. */
static void small_ahead(void)
{
	struct pair p;

	pair_open(&p);
	small_go_ahead(&p, 2048, 2048);
}

/* Or as far as SO_RCVBUF says, and that once more: each costs 64 bytes more than it has. */
static void small_ahead_rcvbuf(void)
{
	enum { FIT = 16384 / (64 + 64) };
	int l = bound_socket();
	struct pair p;

	set_int(l, SOL_SOCKET, SO_RCVBUF, 16384);
	must(listen(l, 1));
	pair_from(&p, l);
	small_go_ahead(&p, 2 * FIT + 10, 2 * FIT);
	check(delta("ring_stalls"), "it never stopped");
}

/* Small ones without a receive: as many as there is space for, many times over. */
static void small_round(void)
{
	enum { LEN = 64, ROUNDS = 100, AHEAD = 16 };
	struct pair p;
	int i, j;

	pair_open(&p);
	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < AHEAD; j++)
			send_all(p.c, i * AHEAD + j, 0, LEN);
		for (j = 0; j < AHEAD; j++) {
			must_be(recv(p.s, buf, LEN, 0), LEN);
			data_check(i * AHEAD + j, 0, buf, LEN);
		}
	}
	must_be(small_sent(), ROUNDS * AHEAD * LEN);
}

/* Round and round a ring that holds few: receives ahead and late, too short and long enough, and peeks. */
static void ring_round(void)
{
	enum { ROUNDS = 300, ROOM = 2100, AHEAD = 4 };
	exs_qhandle_t q = queue_new(AHEAD);
	uint64_t state = e2e.seed;
	struct pair p;
	int i, j;

	pair_with_ring(&p, 8192);
	for (i = 0; i < ROUNDS; i++) {
		int before = next_random(&state) % 2, count = 1 + next_random(&state) % AHEAD;
		size_t len[AHEAD], room[AHEAD];

		for (j = 0; j < count; j++) {
			len[j] = next_random(&state) % (next_random(&state) % 4 ? 2009 : 1009);
			room[j] = next_random(&state) % 4 ? ROOM : next_random(&state) % ROOM;
		}
		for (j = 0; j < count && before; j++)
			start_recv(p.s, buf + j * ROOM, room[j], 0, q, j, NO_REGION);
		for (j = 0; j < count; j++)
			send_all(p.c, i + j, 0, len[j]);
		if (!before)
			must(recv(p.s, buf, 1, MSG_PEEK));
		for (j = 0; j < count && !before; j++)
			start_recv(p.s, buf + j * ROOM, room[j], 0, q, j, NO_REGION);
		for (j = 0; j < count; j++) {
			size_t got = len[j] < room[j] ? len[j] : room[j];

			event_is(q, EXS_EVT_RECV, j, 0, got);
			data_check(i + j, 0, buf + j * ROOM, got);
		}
	}
	check(delta("indirect_tx_bytes") > 100000, "%ld bytes went through the ring", delta("indirect_tx_bytes"));
}

/* Messages behind one that is read slowly can be read; its place is not reused until it was. */
static void ring_read_beside(void)
{
	enum { LEN = 1900 };
	struct held_reader r = { .page = held_page_open() };
	pthread_t thread;
	struct pair p;
	int i;

	pair_with_ring(&p, 8192);
	ring_made(&p);
	r.fd = p.s;
	send_all(p.c, 77, 0, LEN);
	wait_io(p.s, POLLIN);
	must_be(pthread_create(&thread, NULL, read_into_held, &r), 0);
	held_page_wait(&r.page);
	for (i = 0; i < 8; i++)
		send_all(p.c, i, 0, LEN);
	recv_all(p.s, 0, 0, LEN);
	wait_delta("ring_stalls", 1);
	held_page_let_go(&r.page);
	pthread_join(thread, NULL);
	data_check(77, 0, r.page.mem, 4);
	for (i = 1; i < 8; i++)
		recv_all(p.s, i, 0, LEN);
}

static void read_end(void *arg)
{
	must_be(recv(*(int *)arg, buf, sizeof(buf), 0), 0);
}

/* The end comes while the last message is being copied: a thread that sleeps behind it must be woken. */
static void end_behind_the_last(void)
{
	struct held_reader r = { .page = held_page_open() };
	pthread_t thread;
	struct pair p;
	pid_t behind;

	pair_open(&p);
	r.fd = p.s;
	must_be(send(p.c, "last", 4, 0), 4);
	must_be(pthread_create(&thread, NULL, read_into_held, &r), 0);
	held_page_wait(&r.page);
	behind = spawn(read_end, &p.s);
	wait_blocked(behind);
	must(shutdown(p.c, SHUT_WR));
	poll_wait(p.s, POLLRDHUP);
	wait_blocked(behind);
	held_page_let_go(&r.page);
	join(behind);
	pthread_join(thread, NULL);
}

/* A message that poll() reports is there for a non-blocking recv(), however large it is. */
static void poll_keeps_its_word(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct sending s = { .sizes = sizes, .count = ARRAY_SIZE(sizes) };
	int ep = must(epoll_create1(0));
	char *room = pages(MESSAGE_MAX);
	pthread_t thread;
	struct pair p;
	size_t i;

	pair_open(&p);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, p.s, &ev));
	s.fd = p.c;
	must_be(pthread_create(&thread, NULL, send_sizes, &s), 0);
	for (i = 0; i < s.count; i++) {
		/* An edge for each; those of the first half are also seen by poll(). */
		if (i < s.count / 2)
			must_be(poll_wait(p.s, POLLIN) & POLLIN, POLLIN);
		else if (!(poll_now(p.s, POLLIN) & POLLIN))
			must_be(epoll_wait(ep, &ev, 1, limit_ms()), 1);
		if (poll_now(p.s, POLLIN) & POLLIN)
			must_be(recv(p.s, room, MESSAGE_MAX, MSG_DONTWAIT), s.sizes[i]);
		else
			i--;	/* an edge of the one before */
	}
	pthread_join(thread, NULL);
	must_be(poll_now(p.s, POLLIN), 0);
	must_fail(recv(p.s, room, 1, MSG_DONTWAIT), EAGAIN);
}

/* The events of a send, and of two receives in their order. */
static void received_in_order(exs_qhandle_t q, size_t large)
{
	long lengths[2] = { large, 5 };
	int i, got = 0;

	for (i = 0; i < 3; i++) {
		exs_event_t ev = event_next(q);

		must_be(ev.exs_evt_errno, 0);
		if (ev.exs_evt_type == EXS_EVT_RECV)
			must_be(ev.exs_evt_union.exs_evt_xfer.exs_evt_length, lengths[got++]);
	}
}

/* Receives that are posted while a message is fetched for a poll take that one first. */
static void poll_keeps_order(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	exs_qhandle_t q = queue_new(16);
	size_t large = 300000, i, rounds = amount(40);
	int ep = must(epoll_create1(0));
	char *out = pages(large), *in = pages(large), small[8];
	struct pair p;

	pair_open(&p);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, p.s, &ev));
	for (i = 0; i < rounds; i++) {
		data_fill(i, 0, out, large);
		start_send(p.c, out, large, q, 1, NO_REGION);
		must_be(send(p.c, "small", 5, 0), 5);
		/* From now on the first may be on its way into the kernel, or not. */
		if (i % 2)
			wait_delta("adverts_tx", i + 1);
		start_recv(p.s, in, large, 0, q, 2, NO_REGION);
		start_recv(p.s, small, sizeof(small), 0, q, 3, NO_REGION);
		received_in_order(q, large);
		data_check(i, 0, in, large);
		must_be(memcmp(small, "small", 5), 0);
	}
	start_recv(p.s, in, large, 0, q, 4, NO_REGION);
	must(exs_cancel(q, -1, 0, 0));
	event_is(q, EXS_EVT_RECV, 4, ECANCELED, 0);
}

enum { ANNOUNCED = 70000, BEHIND = 300000 };

/* In most rounds an advert for it is on its way afterwards; in the others the progress of the fetch is unknown. */
static void announce(const struct pair *p, const char *out, exs_qhandle_t q, int round)
{
	long adverts = delta("adverts_tx");

	start_send(p->c, out, ANNOUNCED, q, 1, NO_REGION);
	while (round % 4 && delta("adverts_tx") == adverts)
		;	/* it takes less time to arrive than a pause here would */
}

/* A longer one in its place, unless it has been sent. */
static bool take_back(const struct pair *p, const char *out, exs_qhandle_t q)
{
	exs_event_t ev;

	exs_cancel(q, p->c, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE);
	start_send(p->c, out, BEHIND, q, 2, NO_REGION);
	ev = event_next(q);
	if (ev.exs_evt_errno == ECANCELED && ev.exs_evt_ahandle == 1)
		return true;
	event_check(&ev, EXS_EVT_SEND, 1, 0, ANNOUNCED);
	return false;
}

static void received(const struct pair *p, exs_qhandle_t q, char *in, size_t len)
{
	if (q >= 0)
		event_is(q, EXS_EVT_RECV, 1, 0, len);
	else
		must_be(recv(p->s, in, BEHIND, 0), len);
	data_check(1, 0, in, len);
}

/*
 * A sender takes a message back that is being fetched for a poll: the longer one that comes in its place is not cut,
 * neither for recv() nor for a receive that waited for the fetch.
 */
static void poll_taken_back(void)
{
	exs_qhandle_t sends = queue_new(8), recvs = queue_new(8), q;
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = must(epoll_create1(0)), cancelled = 0;
	char *out = pages(BEHIND), *in = pages(BEHIND);
	size_t i, rounds = amount(200);
	struct pair p;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("one processor");
	pair_open(&p);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, p.s, &ev));
	data_fill(1, 0, out, BEHIND);
	for (i = 0; i < rounds; i++) {
		q = i % 2 ? recvs : -1;
		announce(&p, out, sends, i);
		if (q >= 0)
			start_recv(p.s, in, BEHIND, 0, q, 1, NO_REGION);
		if (take_back(&p, out, sends)) {
			cancelled++;
		} else {
			received(&p, q, in, ANNOUNCED);
			if (q >= 0)
				start_recv(p.s, in, BEHIND, 0, q, 1, NO_REGION);
		}
		received(&p, q, in, BEHIND);
		event_is(sends, EXS_EVT_SEND, 2, 0, BEHIND);
	}
	check(cancelled, "not one of %zu was taken back", rounds);
}

struct counting { int fd; size_t longer; };

/* Until one of a single byte. */
static void *count_longer(void *arg)
{
	struct counting *c = arg;
	char *in = pages(BEHIND);
	ssize_t n;

	while ((n = recv(c->fd, in, BEHIND, 0)) != 1) {
		check(n == ANNOUNCED || n == BEHIND, "recv() is %zd", n);
		data_check(1, 0, in, n);
		c->longer += n == BEHIND;
	}
	return NULL;
}

/* The same for a thread that waits in recv() all the time. */
static void recv_taken_back(void)
{
	exs_qhandle_t q = queue_new(8);
	size_t i, rounds = amount(200);
	char *out = pages(BEHIND);
	struct counting c = {};
	int cancelled = 0;
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	c.fd = p.s;
	must_be(pthread_create(&thread, NULL, count_longer, &c), 0);
	data_fill(1, 0, out, BEHIND);
	for (i = 0; i < rounds; i++) {
		announce(&p, out, q, i);
		cancelled += take_back(&p, out, q);
		event_is(q, EXS_EVT_SEND, 2, 0, BEHIND);
	}
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(pthread_join(thread, NULL), 0);
	must_be(c.longer, rounds);
	check(cancelled, "not one of %zu was taken back", rounds);
}

enum { MIDDLE = 20000, EAGER_ROW = 8 };

static void message_comes(const struct pair *p, exs_qhandle_t q, size_t len)
{
	must_be(send(p->c, buf + MIDDLE, len, 0), len);
	event_is(q, EXS_EVT_RECV, 1, 0, len);
}

/*
 * A receive that can hold more than an eager message is advertised before a message comes, until messages turn out to
 * be shorter.
 */
static void advertised_ahead(void)
{
	exs_qhandle_t q = queue_new(8);
	exs_mhandle_t m = region_new(buf, MIDDLE, 0);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 1; i <= EAGER_ROW; i++) {
		start_recv(p.s, buf, MIDDLE, 0, q, 1, m);
		wait_delta("adverts_tx", i);
		message_comes(&p, q, 64);
	}
	start_recv(p.s, buf, MIDDLE, 0, q, 1, m);
	message_comes(&p, q, 64);
	must_be(delta("adverts_tx"), EAGER_ROW);
	start_recv(p.s, buf, MIDDLE, 0, q, 1, m);
	message_comes(&p, q, MIDDLE);
	must_be(delta("adverts_tx"), EAGER_ROW + 1);
	start_recv(p.s, buf, MIDDLE, 0, q, 1, m);
	wait_delta("adverts_tx", EAGER_ROW + 2);
	message_comes(&p, q, MIDDLE);
}

static const struct e2e_case cases[] = {
	{ "advertised_ahead", advertised_ahead, .on = ON_SEQ },
	{ "poll_keeps_order", poll_keeps_order, .on = ON_SEQ },
	{ "poll_taken_back", poll_taken_back, .on = ON_SEQ, .limit = 120 },
	{ "recv_taken_back", recv_taken_back, .on = ON_SEQ, .limit = 120 },
	{ "poll_keeps_its_word", poll_keeps_its_word, .on = ON_SEQ, .limit = 120 },
	{ "boundaries", boundaries, .on = ON_SEQ | ON_SEQ6 },
	{ "boundaries_apart", NULL, boundaries_client, boundaries_server, .on = ON_SEQ | ON_SEQ6 },
	{ "largest", largest, .on = ON_SEQ, .limit = 120 },
	{ "too_large", too_large, .on = ON_SEQ },
	{ "truncation_small", truncation_small, .on = ON_SEQ },
	{ "truncation_middle", truncation_middle, .on = ON_SEQ },
	{ "truncation_large", truncation_large, .on = ON_SEQ },
	{ "small_ahead", small_ahead, .on = ON_SEQ },
	{ "small_ahead_rcvbuf", small_ahead_rcvbuf, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "small_round", small_round, .on = ON_SEQ },
	{ "ring_ahead", ring_ahead, .on = ON_SEQ },
	{ "ring_round", ring_round, .on = ON_SEQ },
	{ "ring_read_beside", ring_read_beside, .on = ON_SEQ },
	{ "read_nothing", read_nothing, .on = ON_SEQ },
	{ "zero_length", zero_length, .on = ON_SEQ },
	{ "zero_length_queued", zero_length_queued, .on = ON_SEQ },
	{ "peek", peek, .on = ON_SEQ },
	{ "peek_large", peek_large, .on = ON_SEQ },
	{ "gathered", gathered, .on = ON_SEQ },
	{ "bounded_empty", bounded_empty, .on = ON_SEQ },
	{ "bounded_tiny", bounded_tiny, .on = ON_SEQ },
	{ "bounded_small", bounded_small, .on = ON_SEQ },
	{ "bounded_middle", bounded_middle, .on = ON_SEQ },
	{ "bounded_large", bounded_large, .on = ON_SEQ },
	{ "interrupted_large", interrupted_large, .on = ON_SEQ },
	{ "readable_large", readable_large, .on = ON_SEQ },
	{ "mixed_order", mixed_order, .on = ON_SEQ },
	{ "peek_beside_small", peek_beside_small, .on = ON_SEQ },
	{ "peek_beside_middle", peek_beside_middle, .on = ON_SEQ },
	{ "peek_beside_large", peek_beside_large, .on = ON_SEQ },
	{ "peek_behind_small", peek_behind_small, .on = ON_SEQ },
	{ "peek_behind_large", peek_behind_large, .on = ON_SEQ },
	{ "peek_behind_cancelled", peek_behind_cancelled, .on = ON_SEQ },
	{ "end_behind_the_last", end_behind_the_last, .on = ON_SEQ },
	{ "close_delivers", close_delivers_messages, .on = ON_SEQ },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
