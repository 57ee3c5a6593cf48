// SPDX-License-Identifier: GPL-2.0
/* exs_close() with a queue: the time and the content of its one event. */
#include "lib/async.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char byte;

/* No number that another operation here has. */
#define CLOSE_HANDLE	UINT64_MAX

static void start_close(int fd, exs_qhandle_t q)
{
	must(exs_close(fd, 0, q, CLOSE_HANDLE));
	must_fail(fcntl(fd, F_GETFD), EBADF);
}

static void closed_is(exs_qhandle_t q, int err)
{
	event_is(q, EXS_EVT_CLOSE, CLOSE_HANDLE, err, 0);
	no_event(q);
}

/* -- operations and data that were pending */

static void sends_first(void)
{
	enum { SENDS = 16, LEN = 20000 };
	exs_qhandle_t q = queue_new(SENDS + 1);
	char *out = pages(SENDS * LEN);
	exs_mhandle_t m = region_new(out, SENDS * LEN, EXS_ACCESS_READ);
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	data_fill(6, 0, out, SENDS * LEN);
	for (i = 0; i < SENDS; i++)
		start_send(p.c, out + i * LEN, LEN, q, i, m);
	start_close(p.c, q);
	recv_all(p.s, 6, 0, SENDS * LEN);
	must_be(recv(p.s, &byte, 1, 0), 0);
	for (i = 0; i < SENDS; i++)
		event_is(q, EXS_EVT_SEND, i, 0, LEN);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_CLOSE, CLOSE_HANDLE, 0, 0);
	must_be(ev.exs_evt_socket, p.c);
	no_event(q);
}

static void receives_first(void)
{
	enum { RECVS = 5, LEN = 100000 };
	exs_qhandle_t q = queue_new(RECVS + 1);
	char *in = pages(RECVS * LEN);
	exs_mhandle_t m = region_new(in, RECVS * LEN, EXS_ACCESS_WRITE);
	int i, ended = 0;
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	for (i = 0; i < RECVS; i++)
		start_recv(p.s, in + i * LEN, LEN, 0, q, i, i % 2 ? NO_REGION : m);
	/* Now the peer has the adverts, too. */
	must_be(send(p.s, "!", 1, 0), 1);
	must_be(recv(p.c, &byte, 1, 0), 1);
	start_close(p.s, q);
	/* Those that fail are in any order. */
	for (i = 0; i < RECVS; i++) {
		ev = event_next(q);
		event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, ECANCELED, 0);
		ended |= 1 << ev.exs_evt_ahandle;
	}
	must_be(ended, (1 << RECVS) - 1);
	closed_is(q, 0);
	must_be(recv(p.c, &byte, 1, 0), 0);
}

/* Plain sends have no event of their own: the close's says that they arrived. */
static void plain_sends(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_close(p.c, q);
	must_be(counter("live_orphans"), 1);
	no_event_after_others(q);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
	closed_is(q, 0);
}

static void accepts_first(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), i;

	for (i = 0; i < 3; i++)
		must(exs_accept(fd, NULL, 0, q, i));
	start_close(fd, q);
	for (i = 0; i < 3; i++)
		event_is(q, EXS_EVT_ACCEPT, i, ECANCELED, 0);
	closed_is(q, 0);
}

static void connect_first(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
	exs_qhandle_t q = queue_new(4);
	int fd = new_socket();

	must(exs_connect(fd, &to.sa, address_len(&to), 0, q, 1));
	start_close(fd, q);
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	closed_is(q, 0);
}

static void not_connected(void)
{
	exs_qhandle_t q = queue_new(1);

	start_close(new_socket(), q);
	closed_is(q, 0);
	start_close(bound_socket(), q);
	closed_is(q, 0);
	start_close(listener(4), q);
	closed_is(q, 0);
}

/* -- when it was not all delivered */

static void time_is_up(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	write_sysctl("linger", 100);
	pair_open(&p);
	send_until_full(p.c, 1);
	start_close(p.c, q);
	closed_is(q, ETIMEDOUT);
	must_be(delta("linger_expired"), 1);
}

/* SO_LINGER does not make the call wait; its time bounds the delivery. */
static void lingers_behind(void)
{
	struct linger l = { .l_onoff = 1, .l_linger = 1 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	write_sysctl("linger", 3600 * 1000);
	pair_open(&p);
	send_until_full(p.c, 1);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	start_close(p.c, q);
	closed_is(q, ETIMEDOUT);
}

static void lingers_at_most(void)
{
	struct linger l = { .l_onoff = 1, .l_linger = 100000 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	write_sysctl("linger", 100);
	pair_open(&p);
	send_until_full(p.c, 1);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	start_close(p.c, q);
	closed_is(q, ETIMEDOUT);
}

static void hard(int fd)
{
	struct linger l = { .l_onoff = 1 };

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

/* A close that discards data is a reset, and its event says so. */
static void resets(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	hard(p.c);
	start_close(p.c, q);
	closed_is(q, ECONNABORTED);
	must_fail(recv(p.s, &byte, 1, 0), ECONNRESET);

	pair_open(&p);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_io(p.s, POLLIN);
	start_close(p.s, q);
	closed_is(q, ECONNABORTED);

	write_sysctl("max_orphans", 0);
	pair_open(&p);
	start_close(p.c, q);
	closed_is(q, ECONNABORTED);
	must_be(delta("orphan_limit"), 1);
}

static void peer_resets(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	send_until_full(p.c, 1);
	start_close(p.c, q);
	hard(p.s);
	close(p.s);
	closed_is(q, ECONNRESET);
}

static void over_before(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	hard(p.s);
	close(p.s);
	must_fail(recv(p.c, &byte, 1, 0), ECONNRESET);
	start_close(p.c, q);
	closed_is(q, ECONNRESET);

	pair_open(&p);
	close(p.s);
	must_be(recv(p.c, &byte, 1, 0), 0);
	start_close(p.c, q);
	closed_is(q, 0);
}

/* -- descriptors of one socket */

/* Wait until the data have arrived: otherwise the close that follows cuts them off. */
static void wait_sent(int fd)
{
	int unsent;

	wait_until(!ioctl(fd, SIOCOUTQ, &unsent) && !unsent);
}

static void duplicates(void)
{
	exs_qhandle_t q = queue_new(4), other = queue_new(4);
	int again, third;
	struct pair p;

	pair_open(&p);
	again = must(dup(p.c));
	third = must(dup(p.c));
	start_close(p.c, q);
	send_all(again, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
	start_close(again, other);
	send_all(p.s, 2, 0, 1000);
	recv_all(third, 2, 0, 1000);
	wait_sent(p.s);
	no_event(q);
	no_event(other);
	close(third);
	closed_is(q, 0);
	closed_is(other, 0);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

struct sharing {
	struct pair p;
	struct pipe_pair go;
};

static void child_shares(void *arg)
{
	struct sharing *s = arg;

	close(s->p.s);
	hear(s->go.rd);
	send_all(s->p.c, 1, 0, 1000);
}

/* The child's is the last: its exit closes the socket. */
static void shared(void)
{
	exs_qhandle_t q = queue_new(1);
	struct sharing s;
	pid_t pid;

	pair_open(&s.p);
	s.go = pipe_open();
	pid = spawn(child_shares, &s);
	start_close(s.p.c, q);
	no_event_after_others(q);
	tell(s.go.wr, 1);
	recv_all(s.p.s, 1, 0, 1000);
	join(pid);
	must_be(recv(s.p.s, &byte, 1, 0), 0);
	closed_is(q, 0);
}

/* -- no process waits for it any more; sent data arrive nevertheless */

static void queue_deleted(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_close(p.c, q);
	must(exs_qdelete(q));
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded"), 1);
	must_be(counter("live_orphans"), 1);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

struct leaving {
	struct pair p;
	exs_qhandle_t q;
	struct pipe_pair sent;
};

static void child_leaves(void *arg)
{
	struct leaving *l = arg;

	close(l->p.s);
	tell(l->sent.wr, send_until_full(l->p.c, 1));
	start_close(l->p.c, l->q);
}

static void process_exits(void)
{
	struct leaving l;
	pid_t pid;
	size_t n;

	pair_open(&l.p);
	l.q = queue_new(4);
	l.sent = pipe_open();
	pid = spawn(child_leaves, &l);
	close(l.p.c);
	n = hear(l.sent.rd);
	join(pid);
	closed_is(l.q, ECANCELED);
	recv_all(l.p.s, 1, 0, n);
	must_be(recv(l.p.s, &byte, 1, 0), 0);
}

static void cancelled(void)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c), .flags = EXS_CANCEL_HANDLE, .fd = -1, .handle = CLOSE_HANDLE,
	};
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_close(p.c, q);
	must(ioctl(q, EXS_IOC_CANCEL, &c));
	must_be(c.count, 1);
	closed_is(q, ECANCELED);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
	no_event(q);
}

/* -- calls that fail: no event, and the descriptor is unchanged */

static void refused(int fd, int flags, exs_qhandle_t q, int err)
{
	must_fail(exs_close(fd, flags, q, 1), err);
	must(fcntl(fd, F_GETFD));
}

static void wrong(void)
{
	int netlink = must(socket(AF_NETLINK, SOCK_RAW, 0)), fd = new_socket();
	exs_qhandle_t q = queue_new(4);
	exs_mhandle_t m = region_new(&byte, 1, 0);
	struct pipe_pair p = pipe_open();
	struct exs_sqe bad[] = {
		{ .region = m },
		{ .region = EXS_REGION_NONE, .len = 1 },
		{ .region = EXS_REGION_NONE, .addr = 1 },
		{ .region = EXS_REGION_NONE, .msg_flags = 1 },
		{ .region = EXS_REGION_NONE, .flags = 1u << 31 },
	};
	size_t i;

	refused(fd, 1, q, EINVAL);
	refused(fd, 0, m, EINVAL);
	refused(fd, 0, p.rd, EINVAL);
	refused(fd, 0, 999, EBADF);
	refused(netlink, 0, q, EOPNOTSUPP);
	refused(p.rd, 0, q, ENOTSOCK);
	refused(q, 0, q, ENOTSOCK);
	must_fail(exs_close(-1, 0, q, 1), EBADF);
	must_fail(exs_close(999, 0, q, 1), EBADF);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	/* Values that the library refuses itself. */
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].opcode = EXS_OP_CLOSE;
		bad[i].fd = fd;
		must_fail(submit_raw(q, &bad[i], 1), EINVAL);
	}
	must(fcntl(fd, F_GETFD));
	must(exs_close(fd, 0, EXS_QHANDLE_INVALID, 1));
	must_fail(exs_close(fd, 0, EXS_QHANDLE_INVALID, 1), EBADF);
}

static void full(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	refused(p.c, 0, q, EAGAIN);
	must_be(delta("queue_full"), 1);
	/* It is as good as before. */
	send_all(p.c, 1, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	start_close(p.c, q);
	closed_is(q, 0);
}

/* -- many */

static void many(void)
{
	enum { MANY = 16 };
	exs_qhandle_t q = queue_new(2 * MANY);
	struct exs_sqe sqe[2 * MANY];
	bool seen[2 * MANY] = {};
	int fd = listener(MANY), i;
	struct pair p[MANY];
	exs_event_t ev;

	for (i = 0; i < MANY; i++) {
		pair_from(&p[i], fd);
		send_all(p[i].c, 1, 0, 1);
		recv_all(p[i].s, 1, 0, 1);
		wait_sent(p[i].c);
	}
	for (i = 0; i < 2 * MANY; i++)
		sqe[i] = (struct exs_sqe){
			.opcode = EXS_OP_CLOSE, .fd = i % 2 ? p[i / 2].c : p[i / 2].s,
			.handle = i, .region = EXS_REGION_NONE,
		};
	must_be(submit_raw(q, sqe, 2 * MANY), 2 * MANY);
	for (i = 0; i < 2 * MANY; i++) {
		ev = event_next(q);
		event_check(&ev, EXS_EVT_CLOSE, ev.exs_evt_ahandle, 0, 0);
		check(!seen[ev.exs_evt_ahandle], "two events of one close");
		seen[ev.exs_evt_ahandle] = true;
	}
	no_event(q);
}

/* The second of a batch finds no descriptor. */
static void twice(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = new_socket();
	struct exs_sqe sqe[2] = {
		{ .opcode = EXS_OP_CLOSE, .fd = fd, .handle = CLOSE_HANDLE, .region = EXS_REGION_NONE },
		{ .opcode = EXS_OP_CLOSE, .fd = fd, .region = EXS_REGION_NONE },
	};

	must_be(submit_raw(q, sqe, 2), 1);
	closed_is(q, 0);
}

struct race {
	exs_qhandle_t q;
	int fd, round;
	pthread_barrier_t start;
};

static void *racer(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(&r->start);
	if (!exs_close(r->fd, 0, r->q, r->round))
		return NULL;
	check(errno == EBADF, "exs_close: %s", errno_name(errno));
	return arg;
}

/* Two threads close one descriptor: one does, and one event comes. Another would meet the next round, or the end. */
static void races(void)
{
	struct race r = { .q = queue_new(4) };
	pthread_t thread[2];
	void *failed[2];
	int i, rounds = amount(200);

	must_be(pthread_barrier_init(&r.start, NULL, 2), 0);
	for (; r.round < rounds; r.round++) {
		r.fd = new_socket();
		for (i = 0; i < 2; i++)
			must_be(pthread_create(&thread[i], NULL, racer, &r), 0);
		for (i = 0; i < 2; i++)
			must_be(pthread_join(thread[i], &failed[i]), 0);
		check(!failed[0] != !failed[1], "not one of two closes succeeded");
		event_is(r.q, EXS_EVT_CLOSE, r.round, 0, 0);
	}
	no_event(r.q);
}

/* Once all is delivered, the event waits neither for a timer nor for the next event. */
static void soon(void)
{
	event_is_soon_after_delivery(start_close, EXS_EVT_CLOSE, CLOSE_HANDLE);
}

static const struct e2e_case cases[] = {
	{ "sends_first", sends_first, .on = ON_BOTH },
	{ "receives_first", receives_first, .on = ON_BOTH },
	{ "plain_sends", plain_sends, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "accepts_first", accepts_first, .on = ON_BOTH },
	{ "connect_first", connect_first, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "not_connected", not_connected, .on = ON_BOTH },
	{ "soon", soon, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "time_is_up", time_is_up, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "lingers_behind", lingers_behind, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "lingers_at_most", lingers_at_most, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "resets", resets, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "peer_resets", peer_resets, .on = ON_BOTH },
	{ "over_before", over_before, .on = ON_BOTH },
	{ "duplicates", duplicates, .on = ON_BOTH },
	{ "shared", shared, .on = ON_BOTH },
	{ "queue_deleted", queue_deleted, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "process_exits", process_exits, .on = ON_BOTH },
	{ "cancelled", cancelled, .on = ON_BOTH },
	{ "wrong", wrong, .on = ON_STREAM },
	{ "full", full, .on = ON_BOTH },
	{ "many", many, .on = ON_BOTH },
	{ "twice", twice, .on = ON_STREAM },
	{ "races", races, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
