// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_send"

static char bytes[LARGE];

static void send_one(const struct pair *p, size_t len, exs_mhandle_t m)
{
	exs_qhandle_t q = queue_new(1);
	char in[LARGE];
	exs_event_t ev;

	start_send(p->c, bytes, len, q, len, m);
	must_be(recv(p->s, in, len, MSG_WAITALL), len);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_SEND, len, 0, len);
	must_be(ev.exs_evt_socket, p->c);
	check(!memcmp(bytes, in, len), "other bytes came");
	no_event(q);
}

static void registered(void)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_READ);
	struct pair p;

	pair_open(&p);
	data_fill(1, 0, bytes, sizeof(bytes));
	send_one(&p, 1, m);
	send_one(&p, 1008, m);
	send_one(&p, LARGE, m);
}

static void unregistered(void)
{
	struct pair p;

	pair_open(&p);
	data_fill(2, 0, bytes, sizeof(bytes));
	send_one(&p, 1, NO_REGION);
	send_one(&p, 1008, NO_REGION);
	send_one(&p, LARGE, NO_REGION);
}

/* Events and bytes come in the order of the calls. */
static void in_order(void)
{
	enum { N = 8, LEN = 100 };
	exs_qhandle_t q = queue_new(N);
	char in[LEN];
	struct pair p;
	int i;

	pair_open(&p);
	data_fill(3, 0, bytes, N * LEN);
	for (i = 0; i < N; i++)
		start_send(p.c, bytes + i * LEN, LEN, q, i, NO_REGION);
	for (i = 0; i < N; i++) {
		must_be(recv(p.s, in, LEN, MSG_WAITALL), LEN);
		data_check(3, (uint64_t)i * LEN, in, LEN);
	}
	for (i = 0; i < N; i++)
		event_is(q, EXS_EVT_SEND, i, 0, LEN);
	no_event(q);
}

/* Several that read the same memory at once. */
static void one_buffer(void)
{
	enum { N = 8 };
	exs_mhandle_t m = region_new(bytes, LARGE, EXS_ACCESS_READ);
	size_t len = e2e.on == ON_UDP ? LARGE / N : LARGE;	/* it drops the excess */
	exs_qhandle_t q = queue_new(N);
	char in[LARGE];
	struct pair p;
	int i;

	pair_open(&p);
	data_fill(4, 0, bytes, len);
	for (i = 0; i < N; i++)
		start_send(p.c, bytes, len, q, i, m);
	for (i = 0; i < N; i++) {
		must_be(recv(p.s, in, len, MSG_WAITALL), len);
		data_check(4, 0, in, len);
	}
	for (i = 0; i < N; i++)
		event_is(q, EXS_EVT_SEND, i, 0, len);
}

static void any_handle(void)
{
	static const exs_ahandle_t handles[] = { 0, UINT64_MAX, 1ull << 63, 0xffffffff };
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		start_send(p.c, bytes, 1, q, handles[i], NO_REGION);
		event_is(q, EXS_EVT_SEND, handles[i], 0, 1);
	}
}

static void nothing(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_send(p.c, NULL, 0, q, 1, NO_REGION);
	event_is(q, EXS_EVT_SEND, 1, 0, 0);
	if (!on_stream()) {
		wait_io(p.s, POLLIN);
		must_be(recv(p.s, bytes, 1, 0), 0);
	}
	/* On a stream there is nothing to read, and no end of it either. */
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, bytes, 2, 0), 1);
}

/* No operation raises SIGPIPE, with or without the flag, and none waits. */
static void flags(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_send(p.c, bytes, 1, q, 1, NO_REGION);
	event_is(q, EXS_EVT_SEND, 1, 0, 1);
	must(exs_send(p.c, bytes, 1, MSG_NOSIGNAL | MSG_DONTWAIT, q, 2, NO_REGION));
	event_is(q, EXS_EVT_SEND, 2, 0, 1);
	must(shutdown(p.c, SHUT_WR));
	must_fail(exs_send(p.c, bytes, 1, 0, q, 3, NO_REGION), EPIPE);
	must_fail(exs_send(p.c, bytes, 0, 0, q, 3, NO_REGION), EPIPE);
	must_fail(exs_send(p.c, bytes, 1, MSG_OOB, q, 3, NO_REGION), EINVAL);
	must_fail(exs_send(p.c, bytes, 1, MSG_MORE, q, 3, NO_REGION), EINVAL);
	no_event(q);
}

static void synchronous(void)
{
	struct pair p;
	char in[3];

	pair_open(&p);
	must_be(exs_send(p.c, "abc", 3, 0, EXS_QHANDLE_INVALID, 1, EXS_MHANDLE_INVALID), 3);
	must_be(recv(p.s, in, 3, 0), 3);
	must(shutdown(p.c, SHUT_WR));
	must_fail(exs_send(p.c, "abc", 3, MSG_NOSIGNAL, EXS_QHANDLE_INVALID, 1, NO_REGION), EPIPE);
	must_fail(exs_send(-1, "abc", 3, 0, EXS_QHANDLE_INVALID, 1, NO_REGION), EBADF);
}

/* Sent into a socket that is full: not ended, and all of it in the end. */
static void must_wait(void)
{
	enum { BIG = 8 * MIB };
	exs_qhandle_t q = queue_new(1);
	char *out = pages(BIG);
	struct pair p;

	pair_open(&p);
	data_fill(5, 0, out, BIG);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	no_event(q);
	recv_all(p.s, 5, 0, BIG);
	event_is(q, EXS_EVT_SEND, 1, 0, BIG);
}

static void peer_resets(void)
{
	struct linger l = { .l_onoff = 1 };
	enum { BIG = 8 * MIB };
	exs_qhandle_t q = queue_new(1);
	char *out = pages(BIG);
	struct pair p;

	pair_open(&p);
	start_send(p.c, out, BIG, q, 1, NO_REGION);
	/* A try that the kernel is just making would get ECONNRESET for the unread bytes. */
	if (e2e.family == AF_UNIX)
		wait_delta("foreign_retries", 2);
	must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(close(p.s));
	/* AF_UNIX has no resets: the reader has gone. */
	if (e2e.family == AF_UNIX)
		event_is(q, EXS_EVT_SEND, 1, EPIPE, 0);
	else
		event_is(q, EXS_EVT_SEND, 1, ECONNRESET, 0);
}

static void wrong_descriptors(void)
{
	exs_qhandle_t q = queue_new(4);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_send(-1, bytes, 1, 0, q, 1, NO_REGION), EBADF);
	must_fail(exs_send(w.none, bytes, 1, 0, q, 1, NO_REGION), EBADF);
	must_fail(exs_send(w.file, bytes, 1, 0, q, 1, NO_REGION), ENOTSOCK);
	must_fail(exs_send(w.netlink, bytes, 1, 0, q, 1, NO_REGION), EOPNOTSUPP);
	must_fail(exs_send(p.c, bytes, 1, 0, -5, 1, NO_REGION), EBADF);
	must_fail(exs_send(p.c, bytes, 1, 0, w.none, 1, NO_REGION), EBADF);
	must_fail(exs_send(p.c, bytes, 1, 0, w.file, 1, NO_REGION), EINVAL);
	must_fail(exs_send(p.c, bytes, 1, 0, p.s, 1, NO_REGION), EINVAL);
	must_fail(exs_send(p.c, bytes, 1, 0, q, 1, w.none), EBADF);
	must_fail(exs_send(p.c, bytes, 1, 0, q, 1, q), EINVAL);
	must_fail(exs_send(p.c, bytes, 1, 0, q, 1, EXS_MHANDLE_INVALID), EINVAL);
	nothing_started(q);
}

static void wrong_memory(void)
{
	exs_mhandle_t m = region_new(bytes + 10, 100, 0), w = region_new(bytes, 100, EXS_ACCESS_WRITE);
	exs_qhandle_t q = queue_new(4);
	char *gone = pages(PAGE);
	exs_mhandle_t stale = region_new(gone, PAGE, 0);
	struct pair p;

	pair_open(&p);
	must_fail(exs_send(p.c, (void *)8, 1, 0, q, 1, NO_REGION), EFAULT);
	must_fail(exs_send(p.c, NULL, LARGE, 0, q, 1, NO_REGION), EFAULT);
	must_fail(exs_send(p.c, bytes, TOO_LONG, 0, q, 1, NO_REGION), EINVAL);
	must_fail(exs_send(p.c, bytes + 9, 2, 0, q, 1, m), EINVAL);
	must_fail(exs_send(p.c, bytes + 10, 101, 0, q, 1, m), EINVAL);
	must_fail(exs_send(p.c, bytes, 1, 0, q, 1, w), EACCES);
	must(munmap(gone, PAGE));
	must_fail(exs_send(p.c, gone, 1, 0, q, 1, stale), EFAULT);
	nothing_started(q);
}

static int send_large(int fd, char *buf, exs_qhandle_t q)
{
	return exs_send(fd, buf, LARGE, 0, q, 1, NO_REGION);
}

/* provokes: exs_send call ENOMEM, ENOBUFS */
static void limits(void)
{
	limits_hold(send_large);
}

static void full_queue(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.c, &in, 1, 0, q, 1, NO_REGION);
	must_fail(exs_send(p.c, bytes, 1, 0, q, 2, NO_REGION), EAGAIN);
	must_be(send(p.s, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	start_send(p.c, bytes, 1, q, 3, NO_REGION);
	event_is(q, EXS_EVT_SEND, 3, 0, 1);
	no_event(q);
}

static void not_connected(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = new_socket();

	if (e2e.family == AF_UNIX)
		must_fail(exs_send(fd, bytes, 1, 0, q, 1, NO_REGION), ENOTCONN);
	else if (on_dgram())
		must_fail(exs_send(fd, bytes, 1, 0, q, 1, NO_REGION), EDESTADDRREQ);
	else
		must_fail(exs_send(fd, bytes, 1, 0, q, 1, NO_REGION), EPIPE);
	nothing_started(q);
}

/* On TCP it waits for the connection: see foreign.c. */
static void connecting(void)
{
	union address to = nowhere();
	exs_qhandle_t q = queue_new(1);
	int fd = new_socket();

	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	must_fail(exs_send(fd, bytes, 1, 0, q, 1, NO_REGION), ENOTCONN);
	nothing_started(q);
}

static void too_large(void)
{
	size_t len = on_exs() ? 8 * MIB + 1 : 300000;
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	must_fail(exs_send(p.c, pages(len), len, 0, q, 1, NO_REGION), EMSGSIZE);
	nothing_started(q);
}

const struct e2e_case exs_send_cases[] = {
	CASE(registered, ON_KINDS),
	CASE(unregistered, ON_KINDS),
	CASE(in_order, ON_KINDS),
	CASE(one_buffer, ON_KINDS),
	CASE(any_handle, ON_KINDS),
	CASE(nothing, ON_KINDS),
	CASE(flags, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(must_wait, ON_STREAMS),
	CASE(peer_resets, ON_STREAMS),
	CASE(wrong_descriptors, ON_KINDS),
	CASE(wrong_memory, ON_KINDS),
	CASE(limits, ON_KINDS),
	CASE(full_queue, ON_KINDS),
	CASE(not_connected, ON_KINDS),
	CASE(connecting, ON_BOTH),
	CASE(too_large, ON_MESSAGES),
	{}
};
