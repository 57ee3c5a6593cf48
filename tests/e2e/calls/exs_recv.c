// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_recv"

static char bytes[LARGE];

static void receive_one(const struct pair *p, size_t len, exs_mhandle_t m)
{
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;

	memset(bytes, 0, len);
	start_recv(p->s, bytes, len, MSG_WAITALL, q, len, m);
	no_event(q);
	send_all(p->c, 1, 0, len);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, len, 0, len);
	must_be(ev.exs_evt_socket, p->s);
	data_check(1, 0, bytes, len);
	no_event(q);
}

static void registered(void)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_WRITE);
	struct pair p;

	pair_open(&p);
	receive_one(&p, 1, m);
	receive_one(&p, 1008, m);
	receive_one(&p, LARGE, m);
}

static void unregistered(void)
{
	struct pair p;

	pair_open(&p);
	receive_one(&p, 1, NO_REGION);
	receive_one(&p, 1008, NO_REGION);
	receive_one(&p, LARGE, NO_REGION);
}

/* Bytes that arrived before the receive. */
static void data_first(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	char in[8];

	pair_open(&p);
	must_be(send(p.c, "abc", 3, 0), 3);
	wait_io(p.s, POLLIN);
	start_recv(p.s, in, sizeof(in), 0, q, 1, NO_REGION);
	event_is(q, EXS_EVT_RECV, 1, 0, 3);
	check(!memcmp(in, "abc", 3), "other bytes came");
}

static void in_order(void)
{
	enum { N = 8, LEN = 100 };
	exs_qhandle_t q = queue_new(N);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < N; i++)
		start_recv(p.s, bytes + i * LEN, LEN, MSG_WAITALL, q, i, NO_REGION);
	for (i = 0; i < N; i++)
		send_all(p.c, 3, (uint64_t)i * LEN, LEN);
	for (i = 0; i < N; i++)
		event_is(q, EXS_EVT_RECV, i, 0, LEN);
	data_check(3, 0, bytes, N * LEN);
	no_event(q);
}

/* Without MSG_WAITALL it ends with the bytes that have come, with it when it is full or at the end. */
static void waitall(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	char in[9];

	pair_open(&p);
	start_recv(p.s, in, 9, 0, q, 1, NO_REGION);
	must_be(send(p.c, "abc", 3, 0), 3);
	event_is(q, EXS_EVT_RECV, 1, 0, 3);
	memset(in, 0, sizeof(in));
	start_recv(p.s, in, 6, MSG_WAITALL, q, 2, NO_REGION);
	must_be(send(p.c, "abc", 3, 0), 3);
	wait_until(!memcmp(in, "abc", 3));
	must_be(send(p.c, "def", 3, 0), 3);
	event_is(q, EXS_EVT_RECV, 2, 0, 6);
	check(!memcmp(in, "abcdef", 6), "other bytes came");
	start_recv(p.s, in, 9, MSG_WAITALL, q, 3, NO_REGION);
	start_recv(p.s, in, 9, MSG_WAITALL, q, 4, NO_REGION);
	must_be(send(p.c, "ghi", 3, 0), 3);
	must(shutdown(p.c, SHUT_WR));
	event_is(q, EXS_EVT_RECV, 3, 0, 3);
	event_is(q, EXS_EVT_RECV, 4, 0, 0);
}

static void truncated(void)
{
	exs_qhandle_t q = queue_new(2);
	exs_event_t ev;
	struct pair p;
	char in[9];

	pair_open(&p);
	start_recv(p.s, in, 4, MSG_WAITALL, q, 1, NO_REGION);
	start_recv(p.s, in + 4, 5, MSG_WAITALL, q, 2, NO_REGION);
	must_be(send(p.c, "abcdefghi", 9, 0), 9);
	must_be(send(p.c, "end", 3, 0), 3);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 4);
	must_be(ev.exs_evt_flags & MSG_TRUNC, MSG_TRUNC);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 2, 0, 3);
	must_be(ev.exs_evt_flags & MSG_TRUNC, 0);
	check(!memcmp(in, "abcdend", 7), "other bytes came");
}

static void empty_message(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	must_be(send(p.c, NULL, 0, 0), 0);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 0);
	if (on_exs())
		must_be(ev.exs_evt_flags & MSG_EOR, MSG_EOR);
	/* It was one, and not the end. */
	start_recv(p.s, &in, 1, 0, q, 2, NO_REGION);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
}

static void at_end(void)
{
	exs_qhandle_t q = queue_new(2);
	exs_event_t ev;
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	must(shutdown(p.c, SHUT_WR));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 0);
	must_be(ev.exs_evt_flags & MSG_EOR, 0);
	start_recv(p.s, &in, 1, 0, q, 2, NO_REGION);
	event_is(q, EXS_EVT_RECV, 2, 0, 0);
}

static void synchronous(void)
{
	struct pair p;
	char in[3];

	pair_open(&p);
	must_be(send(p.c, "abc", 3, 0), 3);
	must_be(exs_recv(p.s, in, 3, 0, EXS_QHANDLE_INVALID, 1, EXS_MHANDLE_INVALID), 3);
	must_fail(exs_recv(p.s, in, 3, MSG_DONTWAIT, EXS_QHANDLE_INVALID, 1, NO_REGION), EAGAIN);
	must_fail(exs_recv(-1, in, 3, 0, EXS_QHANDLE_INVALID, 1, NO_REGION), EBADF);
}

static void peer_resets(void)
{
	struct linger l = { .l_onoff = 1 };
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	char in;

	pair_open(&p);
	/* AF_UNIX's error after a peer that closes with unread bytes. */
	must_be(send(p.s, "x", 1, 0), 1);
	wait_io(p.c, POLLIN);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	/* A try to receive a message that the kernel is just making would take it for the end. */
	if (e2e.family == AF_UNIX)
		wait_delta("foreign_retries", 2);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(close(p.c));
	event_is(q, EXS_EVT_RECV, 1, ECONNRESET, 0);
}

static void wrong_descriptors(void)
{
	exs_qhandle_t q = queue_new(4);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_recv(-1, bytes, 1, 0, q, 1, NO_REGION), EBADF);
	must_fail(exs_recv(w.none, bytes, 1, 0, q, 1, NO_REGION), EBADF);
	must_fail(exs_recv(w.file, bytes, 1, 0, q, 1, NO_REGION), ENOTSOCK);
	must_fail(exs_recv(w.netlink, bytes, 1, 0, q, 1, NO_REGION), EOPNOTSUPP);
	must_fail(exs_recv(p.c, bytes, 1, 0, -5, 1, NO_REGION), EBADF);
	must_fail(exs_recv(p.c, bytes, 1, 0, w.none, 1, NO_REGION), EBADF);
	must_fail(exs_recv(p.c, bytes, 1, 0, w.file, 1, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, bytes, 1, 0, p.s, 1, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, bytes, 1, 0, q, 1, w.none), EBADF);
	must_fail(exs_recv(p.c, bytes, 1, 0, q, 1, q), EINVAL);
	must_fail(exs_recv(p.c, bytes, 1, 0, q, 1, EXS_MHANDLE_INVALID), EINVAL);
	nothing_started(q);
}

static void wrong_memory(void)
{
	exs_mhandle_t m = region_new(bytes + 10, 100, 0), r = region_new(bytes, 100, EXS_ACCESS_READ);
	exs_qhandle_t q = queue_new(4);
	char *gone = pages(PAGE), *constant = pages(PAGE);
	exs_mhandle_t stale = region_new(gone, PAGE, 0);
	struct pair p;

	pair_open(&p);
	must_fail(exs_recv(p.c, (void *)8, 1, 0, q, 1, NO_REGION), EFAULT);
	must_fail(exs_recv(p.c, NULL, LARGE, 0, q, 1, NO_REGION), EFAULT);
	must_fail(exs_recv(p.c, bytes, TOO_LONG, 0, q, 1, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, bytes + 9, 2, 0, q, 1, m), EINVAL);
	must_fail(exs_recv(p.c, bytes + 10, 101, 0, q, 1, m), EINVAL);
	must_fail(exs_recv(p.c, bytes, 1, 0, q, 1, r), EACCES);
	must(mprotect(constant, PAGE, PROT_READ));
	must_fail(exs_recv(p.c, constant, 1, 0, q, 1, NO_REGION), EFAULT);
	must(munmap(gone, PAGE));
	must_fail(exs_recv(p.c, gone, 1, 0, q, 1, stale), EFAULT);
	nothing_started(q);
}

static int recv_large(int fd, char *buf, exs_qhandle_t q)
{
	return exs_recv(fd, buf, LARGE, 0, q, 1, NO_REGION);
}

/* provokes: exs_recv call ENOMEM, ENOBUFS */
static void limits(void)
{
	limits_hold(recv_large);
}

static void flags(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	char in;

	pair_open(&p);
	must_fail(exs_recv(p.c, &in, 1, MSG_PEEK, q, 1, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, &in, 1, MSG_TRUNC, q, 1, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, &in, 1, 1 << 30, q, 1, NO_REGION), EINVAL);
	nothing_started(q);
	/* It never waits, and never fails because it would have to. */
	start_recv(p.s, &in, 1, MSG_DONTWAIT, q, 1, NO_REGION);
	no_event(q);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

static void full_queue(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	char in[2];

	pair_open(&p);
	start_recv(p.s, in, 1, 0, q, 1, NO_REGION);
	must_fail(exs_recv(p.s, in + 1, 1, 0, q, 2, NO_REGION), EAGAIN);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	start_recv(p.s, in + 1, 1, 0, q, 2, NO_REGION);
	must_be(send(p.c, "y", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	check(in[1] == 'y', "what was refused took a byte");
}

static void not_connected(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = new_socket();
	char in;

	if (e2e.on == ON_UNIX)
		must_fail(exs_recv(fd, &in, 1, 0, q, 1, NO_REGION), EINVAL);
	else
		must_fail(exs_recv(fd, &in, 1, 0, q, 1, NO_REGION), ENOTCONN);
	nothing_started(q);
}

const struct e2e_case exs_recv_cases[] = {
	CASE(registered, ON_KINDS),
	CASE(unregistered, ON_KINDS),
	CASE(data_first, ON_KINDS),
	CASE(in_order, ON_KINDS),
	CASE(waitall, ON_STREAMS),
	CASE(truncated, ON_MESSAGES),
	CASE(empty_message, ON_MESSAGES),
	CASE(at_end, ON_LISTENING),
	CASE(synchronous, ON_KINDS),
	CASE(peer_resets, ON_LISTENING),
	CASE(wrong_descriptors, ON_KINDS),
	CASE(wrong_memory, ON_KINDS),
	CASE(limits, ON_KINDS),
	CASE(flags, ON_KINDS),
	CASE(full_queue, ON_KINDS),
	CASE(not_connected, ON_LISTENING),
	{}
};
