// SPDX-License-Identifier: GPL-2.0
/* The examples of the manual pages of section 3 work as the pages say; a case for each page. */
#include "lib/async.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

int have_exs(void);
int is_exs(int fd);
int listen_at(const char *address, int *port);
int print_peer(int fd, FILE *out);
int connect_within(int fd, const struct sockaddr *addr, socklen_t len, int seconds, exs_qhandle_t queue);
int next_connection(int listener, exs_acceptaddr_t *addr, exs_qhandle_t queue);
int with_queue(int (*work)(exs_qhandle_t queue));
int take_all(exs_qhandle_t queue, void (*take)(const exs_event_t *event));
void print_event(FILE *out, const exs_event_t *event);
void *buffer_new(size_t len, exs_mhandle_t *region);
void buffer_free(void *buf, exs_mhandle_t region);
ssize_t ask(int fd, const void *out, size_t outlen, void *in, size_t inlen, exs_mhandle_t region, exs_qhandle_t queue);
ssize_t send_two(int fd, void *head, size_t headlen, void *body, size_t bodylen, exs_mhandle_t region,
		 exs_qhandle_t queue);
ssize_t recv_two(int fd, void *head, size_t headlen, void *body, size_t bodylen, exs_mhandle_t region,
		 exs_qhandle_t queue);
ssize_t send_titled(int fd, char *title, int file, exs_qhandle_t queue);
int readable_of(exs_pollfd_t fds[2], exs_qhandle_t queue);
ssize_t recv_within(int fd, void *buf, size_t len, exs_mhandle_t region, struct timeval limit, exs_qhandle_t queue);
int close_delivered(int fd, exs_qhandle_t queue);
int end_of_request(int fd, exs_qhandle_t queue);
int small_ring(int fd);
int no_ring(int fd);
int add_queue(int epoll, exs_qhandle_t queue);
int wait_busily(exs_qhandle_t queue);
int post_receives(int fd, char *buf, size_t part, int count, exs_mhandle_t region, exs_qhandle_t queue);

#define LEN	10000
#define PAGE	4096

/* A connection, a queue, and a buffer with its region. */
struct scene {
	struct pair p;
	exs_qhandle_t q;
	exs_mhandle_t m;
	char *buf;
};

static struct scene scene_open(void)
{
	struct scene s = { .q = queue_new(16) };

	pair_open(&s.p);
	s.buf = buffer_new(16 * PAGE, &s.m);
	check(s.buf, "buffer_new: %s", errno_name(errno));
	return s;
}

static void page_init(void)
{
	must_be(have_exs(), 1);
	must_be(is_exs(new_socket()), 1);
	must_be(is_exs(must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))), 0);
	write_sysctl("enabled", 0);
	must_be(have_exs(), 0);
}

/* The name of @c's peer, as print_peer() prints it, is @addr and @port. */
static void peer_is(int c, const char *addr, int port)
{
	char text[100] = "", expected[100];
	FILE *out = fmemopen(text, sizeof(text), "w");

	check(out, "%s", errno_name(errno));
	snprintf(expected, sizeof(expected), "%s port %d", addr, port);
	must_be(print_peer(c, out), strlen(expected));
	fclose(out);
	check(!strcmp(text, expected), "%s", text);
}

static void page_socket(void)
{
	union address to = name_of(bound_socket());
	char text[INET_ADDRSTRLEN];
	int port = 0, l, c;

	check(inet_ntop(AF_INET, &to.in.sin_addr, text, sizeof(text)), "%s", errno_name(errno));
	l = must(listen_at(text, &port));
	to.in.sin_port = htons(port);
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	must_fail(print_peer(new_socket(), stdout), ENOTCONN);
	must(accept(l, NULL, NULL));
	peer_is(c, text, port);
	must_fail(listen_at(text, &port), EADDRINUSE);
}

static void page_connect(void)
{
	exs_qhandle_t q = queue_new(1);
	union address to = name_of(listener(1)), nobody = name_of(bound_socket());

	must_be(connect_within(new_socket(), &to.sa, address_len(&to), LIMIT, q), 0);
	must_fail(connect_within(new_socket(), &nobody.sa, address_len(&nobody), LIMIT, q), ECONNREFUSED);
	no_event(q);
}

static void page_accept(void)
{
	exs_qhandle_t q = queue_new(1);
	struct sockaddr_storage from;
	int l = listener(1), c = client_of(l);
	exs_acceptaddr_t addr = { .exs_addr = (struct sockaddr *)&from, .exs_addrlen = sizeof(from) };
	union address name = name_of(c), peer = { 0 };
	struct pair p = { .c = c };

	p.s = must(next_connection(l, &addr, q));
	peer.storage = from;
	check(same_address(&name, &peer), "it is from somebody else");
	send_all(p.c, 1, 0, 10);
	recv_all(p.s, 1, 0, 10);
}

static int count_places(exs_qhandle_t q)
{
	return queue_attr(q, EXS_ATTR_DEPTH);
}

static void page_qcreate(void)
{
	must_be(with_queue(count_places), 64);
	must_be(counter("live_queues"), 0);
}

static int taken;

static void take_one(const exs_event_t *ev)
{
	event_check(ev, EXS_EVT_SEND, taken++, 0, 1);
}

static void page_qdequeue(void)
{
	exs_qhandle_t q = queue_new(40);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 40; i++)
		start_send(p.c, "x", 1, q, i, NO_REGION);
	must_be(take_all(q, take_one), 40);
	must_be(taken, 40);
}

static void page_event(void)
{
	exs_event_t ev = { .exs_evt_type = EXS_EVT_SEND, .exs_evt_ahandle = 3 };
	char text[200] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	check(out, "%s", errno_name(errno));
	ev.exs_evt_union.exs_evt_xfer.exs_evt_length = 5;
	print_event(out, &ev);
	ev.exs_evt_errno = ECONNRESET;
	print_event(out, &ev);
	fclose(out);
	check(!strcmp(text, "operation 3: 5 bytes\noperation 3: Connection reset by peer\n"), "%s", text);
}

static void page_mregister(void)
{
	exs_mhandle_t m;
	void *buf = buffer_new(PAGE, &m);

	check(buf, "%s", errno_name(errno));
	must_be(counter("live_regions"), 1);
	buffer_free(buf, m);
	must_be(counter("live_regions"), 0);
}

static void answer(void *arg)
{
	int fd = *(int *)arg;

	recv_all(fd, 1, 0, 100);
	send_all(fd, 2, 0, LEN);
}

static void page_send(void)
{
	struct scene s = scene_open();
	pid_t pid = spawn(answer, &s.p.s);
	ssize_t n;

	data_fill(1, 0, s.buf, 100);
	n = must(ask(s.p.c, s.buf, 100, s.buf + PAGE, LEN, s.m, s.q));
	data_check(2, 0, s.buf + PAGE, n);
	join(pid);
}

static void page_sendmsg(void)
{
	struct scene s = scene_open();

	data_fill(1, 0, s.buf + 100, 10);
	data_fill(1, 10, s.buf + PAGE, LEN);
	must_be(send_two(s.p.c, s.buf + 100, 10, s.buf + PAGE, LEN, s.m, s.q), LEN + 10);
	recv_all(s.p.s, 1, 0, LEN + 10);
	send_all(s.p.s, 2, 0, LEN + 10);
	must_be(recv_two(s.p.c, s.buf + 100, 10, s.buf + PAGE, LEN, s.m, s.q), LEN + 10);
	data_check(2, 0, s.buf + 100, 10);
	data_check(2, 10, s.buf + PAGE, LEN);
}

static void page_sendfile(void)
{
	int file = must(memfd_create("e2e", MFD_CLOEXEC));
	char title[] = "Title\n", got[sizeof(title)] = "";
	struct scene s = scene_open();

	data_fill(1, 0, s.buf, LEN);
	must_be(write(file, s.buf, LEN), LEN);
	must_be(send_titled(s.p.c, title, file, s.q), LEN + 6);
	must_be(recv(s.p.s, got, 6, MSG_WAITALL), 6);
	check(!strcmp(got, title), "%s", got);
	recv_all(s.p.s, 1, 0, LEN);
}

static void page_poll(void)
{
	struct scene s = scene_open();
	struct pipe_pair other = pipe_open();
	exs_pollfd_t fds[2] = { { .fd = s.p.s }, { .fd = other.rd } };

	tell(other.wr, 1);
	must_be(readable_of(fds, s.q), other.rd);
	must_be(hear(other.rd), 1);
	must_be(send(s.p.c, "x", 1, 0), 1);
	must_be(readable_of(fds, s.q), s.p.s);
}

static void page_cancel(void)
{
	struct timeval soon = { .tv_usec = 1000 }, long_time = { .tv_sec = LIMIT };
	struct scene s = scene_open();

	must_fail(recv_within(s.p.s, s.buf, LEN, s.m, soon, s.q), ECANCELED);
	send_all(s.p.c, 1, 0, LEN);
	must_be(recv_within(s.p.s, s.buf, LEN, s.m, long_time, s.q), LEN);
	data_check(1, 0, s.buf, LEN);
	no_event(s.q);
}

static void page_close(void)
{
	struct scene s = scene_open();

	send_all(s.p.c, 1, 0, LEN);
	must_be(close_delivered(s.p.c, s.q), 0);
	recv_all(s.p.s, 1, 0, LEN);
	must_be(recv(s.p.s, s.buf, 1, 0), 0);
	must_fail(close_delivered(s.p.c, s.q), EBADF);
}

static void page_shutdown(void)
{
	struct scene s = scene_open();

	must_be(end_of_request(s.p.c, s.q), 0);
	must_be(recv(s.p.s, s.buf, 1, 0), 0);
	send_all(s.p.s, 1, 0, LEN);
	recv_all(s.p.c, 1, 0, LEN);
}

static void page_setsockopt(void)
{
	must_be(small_ring(new_socket()), 65536);
	must_be(no_ring(new_socket()), 0);
}

static void page_qmodify(void)
{
	int epoll = must(epoll_create1(EPOLL_CLOEXEC)), fd;
	struct scene s = scene_open();
	struct epoll_event ev;
	uint64_t n;

	fd = must(add_queue(epoll, s.q));
	must_be(epoll_wait(epoll, &ev, 1, 0), 0);
	start_send(s.p.c, "x", 1, s.q, 1, NO_REGION);
	must_be(epoll_wait(epoll, &ev, 1, limit_ms()), 1);
	must_be(ev.data.fd, fd);
	must_be(read(fd, &n, sizeof(n)), sizeof(n));
	event_is(s.q, EXS_EVT_SEND, 1, 0, 1);
	must_be(wait_busily(s.q), EXS_WAIT_NOTIFY);
	must_be(queue_attr(s.q, EXS_ATTR_WAIT), EXS_QWAIT_BUSY);
}

static void page_submit(void)
{
	struct scene s = scene_open();
	int i;

	must_be(post_receives(s.p.s, s.buf, 1000, 16, s.m, s.q), 16);
	send_all(s.p.c, 1, 0, 16000);
	for (i = 0; i < 16; i++)
		event_is(s.q, EXS_EVT_RECV, i, 0, 1000);
	data_check(1, 0, s.buf, 16000);
	must_be(delta("ops_submitted"), 16);
}

#define PAGE_CASE(name)	{ #name, page_##name, .on = ON_STREAM, .needs = NEEDS_ONE }

static const struct e2e_case cases[] = {
	PAGE_CASE(init), PAGE_CASE(socket), PAGE_CASE(connect), PAGE_CASE(accept), PAGE_CASE(qcreate),
	PAGE_CASE(qdequeue), PAGE_CASE(event), PAGE_CASE(mregister), PAGE_CASE(send), PAGE_CASE(sendmsg),
	PAGE_CASE(sendfile), PAGE_CASE(poll), PAGE_CASE(cancel), PAGE_CASE(close), PAGE_CASE(shutdown),
	PAGE_CASE(setsockopt), PAGE_CASE(qmodify), PAGE_CASE(submit),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
