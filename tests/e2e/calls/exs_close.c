// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_close"

static char bytes[100];

/* The descriptor has gone when the call returns; the peer sees the end. */
static void closes(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	must(exs_close(p.c, 0, q, 9));
	must_fail(fcntl(p.c, F_GETFD), EBADF);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_CLOSE, 9, 0, 0);
	must_be(ev.exs_evt_socket, p.c);
	no_event(q);
	if (!on_dgram())
		must_be(recv(p.s, bytes, 1, 0), 0);
}

static void not_connected(void)
{
	exs_qhandle_t q = queue_new(1);

	must(exs_close(new_socket(), 0, q, 1));
	event_is(q, EXS_EVT_CLOSE, 1, 0, 0);
	if (on_dgram())
		return;
	must(exs_close(listener(1), 0, q, 2));
	event_is(q, EXS_EVT_CLOSE, 2, 0, 0);
}

/* Sent data arrive; operations that wait end, and have their events before. */
static void operations_first(void)
{
	exs_qhandle_t q = queue_new(4);
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	start_recv(p.c, bytes, 1, 0, q, 1, NO_REGION);
	start_recv(p.c, bytes, 1, 0, q, 2, NO_REGION);
	must_be(send(p.c, "abc", 3, 0), 3);
	must(exs_close(p.c, 0, q, 3));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, ECANCELED, 0);
	event_is(q, EXS_EVT_RECV, 3 - ev.exs_evt_ahandle, ECANCELED, 0);
	/* On AF_EXS it waits until that has been delivered. */
	must_be(recv(p.s, bytes, 3, MSG_WAITALL), 3);
	event_is(q, EXS_EVT_CLOSE, 3, 0, 0);
	no_event(q);
}

/* Another descriptor of the socket still works. */
static void duplicate(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	int other;

	pair_open(&p);
	other = must(dup(p.c));
	must(exs_close(p.c, 0, q, 1));
	must_be(send(other, "x", 1, 0), 1);
	must_be(recv(p.s, bytes, 1, 0), 1);
	must(exs_close(other, 0, q, 2));
	event_is(q, EXS_EVT_CLOSE, 1, 0, 0);
	event_is(q, EXS_EVT_CLOSE, 2, 0, 0);
	no_event(q);
}

static void synchronous(void)
{
	struct pair p;

	pair_open(&p);
	must_be(exs_close(p.c, 0, EXS_QHANDLE_INVALID, 1), 0);
	must_fail(fcntl(p.c, F_GETFD), EBADF);
	must_fail(exs_close(p.c, 0, EXS_QHANDLE_INVALID, 1), EBADF);
	must_fail(exs_close(p.s, 1, EXS_QHANDLE_INVALID, 1), EINVAL);
}

/* The descriptor is as it was. */
static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_close(-1, 0, q, 1), EBADF);
	must_fail(exs_close(w.none, 0, q, 1), EBADF);
	must_fail(exs_close(w.file, 0, q, 1), ENOTSOCK);
	must_fail(exs_close(w.netlink, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_close(p.c, 1, q, 1), EINVAL);
	must_fail(exs_close(p.c, 0, w.none, 1), EBADF);
	must_fail(exs_close(p.c, 0, w.file, 1), EINVAL);
	nothing_started(q);
	start_recv(p.c, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_close(p.c, 0, q, 2), EAGAIN);
	must_be(send(p.s, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must(fcntl(w.netlink, F_GETFD));
	must(exs_close(p.c, 0, q, 3));
	event_is(q, EXS_EVT_CLOSE, 3, 0, 0);
}

const struct e2e_case exs_close_cases[] = {
	CASE(closes, ON_KINDS),
	CASE(not_connected, ON_KINDS),
	CASE(operations_first, ON_KINDS),
	CASE(duplicate, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
