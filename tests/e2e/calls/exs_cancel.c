// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_cancel"

static char bytes[8];

struct three { exs_qhandle_t q; struct pair p, other; };

/* Receives with handle 1 and 2 on one socket, and with 1 on another. */
static struct three three_open(void)
{
	struct three t = { .q = queue_new(4) };

	pair_open(&t.p);
	pair_open(&t.other);
	start_recv(t.p.s, bytes, 1, 0, t.q, 1, NO_REGION);
	start_recv(t.p.s, bytes + 1, 1, 0, t.q, 2, NO_REGION);
	start_recv(t.other.s, bytes + 2, 1, 0, t.q, 1, NO_REGION);
	return t;
}

static void cancelled(const struct three *t, int fd, exs_ahandle_t handle)
{
	exs_event_t ev = event_next(t->q);

	event_check(&ev, EXS_EVT_RECV, handle, ECANCELED, 0);
	must_be(ev.exs_evt_socket, fd);
}

/* Those of @fd, in any order. */
static void both_cancelled(const struct three *t, int fd)
{
	exs_event_t ev = event_next(t->q);

	check(ev.exs_evt_ahandle == 1 || ev.exs_evt_ahandle == 2, "an event of another operation");
	event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, ECANCELED, 0);
	must_be(ev.exs_evt_socket, fd);
	cancelled(t, fd, 3 - ev.exs_evt_ahandle);
}

/* The others go on. */
static void goes_on(const struct three *t, int fd, exs_ahandle_t handle)
{
	no_event(t->q);
	must_be(send(fd, "x", 1, 0), 1);
	event_is(t->q, EXS_EVT_RECV, handle, 0, 1);
}

static void by_socket(void)
{
	struct three t = three_open();

	must(exs_cancel(t.q, must(dup(t.p.s)), 0, EXS_CAF_FILDES));
	both_cancelled(&t, t.p.s);
	goes_on(&t, t.other.c, 1);
}

static void by_handle(void)
{
	struct three t = three_open();

	must(exs_cancel(t.q, -1, 2, EXS_CAF_AHANDLE));
	cancelled(&t, t.p.s, 2);
	goes_on(&t, t.p.c, 1);
	goes_on(&t, t.other.c, 1);
}

static void by_both(void)
{
	struct three t = three_open();

	must(exs_cancel(t.q, t.p.s, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE));
	cancelled(&t, t.p.s, 1);
	goes_on(&t, t.p.c, 2);
	goes_on(&t, t.other.c, 1);
}

/* Those of the queue, and of no other. */
static void all(void)
{
	struct three t = three_open();
	exs_qhandle_t q = queue_new(1);
	long handles = 0;
	int i;

	start_recv(t.other.s, bytes + 3, 1, 0, q, 9, NO_REGION);
	must(exs_cancel(t.q, -1, 0, 0));
	for (i = 0; i < 3; i++) {
		exs_event_t ev = event_next(t.q);

		event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, ECANCELED, 0);
		handles += ev.exs_evt_ahandle;
	}
	must_be(handles, 1 + 2 + 1);
	no_event(t.q);
	must_be(delta("ops_cancelled"), 3);
	must_be(send(t.other.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 9, 0, 1);
}

/* The operation has them before it has ended. */
static bool data_came(size_t len)
{
	return !memcmp(bytes, "abc", len);
}

/* Bytes that have arrived are not lost: it succeeds with as many. */
static void partly_filled(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_recv(p.s, bytes, 8, MSG_WAITALL, q, 1, NO_REGION);
	must_be(send(p.c, "abc", 3, 0), 3);
	wait_until(data_came(3));
	must(exs_cancel(q, p.s, 0, EXS_CAF_FILDES));
	event_is(q, EXS_EVT_RECV, 1, 0, 3);
}

static void nothing_found(void)
{
	exs_qhandle_t q = queue_new(2), other = queue_new(1);
	struct pair p;

	pair_open(&p);
	must_fail(exs_cancel(q, -1, 0, 0), ENOENT);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_cancel(q, p.c, 1, EXS_CAF_FILDES), ENOENT);
	must_fail(exs_cancel(q, p.s, 2, EXS_CAF_FILDES | EXS_CAF_AHANDLE), ENOENT);
	must_fail(exs_cancel(q, -1, 2, EXS_CAF_AHANDLE), ENOENT);
	must_fail(exs_cancel(other, p.s, 1, EXS_CAF_FILDES), ENOENT);
	no_event(q);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must_fail(exs_cancel(q, p.s, 1, EXS_CAF_FILDES), ENOENT);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_cancel(w.none, p.s, 1, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(w.file, p.s, 1, EXS_CAF_FILDES), EINVAL);
	must_fail(exs_cancel(p.s, p.s, 1, EXS_CAF_FILDES), EINVAL);
	must_fail(exs_cancel(q, -1, 1, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(q, w.file, 1, EXS_CAF_FILDES), ENOTSOCK);
	must_fail(exs_cancel(q, p.s, 1, 4), EINVAL);
	no_event(q);
}

const struct e2e_case exs_cancel_cases[] = {
	CASE(by_socket, ON_KINDS),
	CASE(by_handle, ON_KINDS),
	CASE(by_both, ON_KINDS),
	CASE(all, ON_KINDS),
	CASE(partly_filled, ON_STREAMS),
	CASE(nothing_found, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
