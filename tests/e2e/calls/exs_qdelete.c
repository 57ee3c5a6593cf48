// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_qdelete"

/* Its operations end and nobody hears of it; the socket has the next byte. */
static void with_operations(void)
{
	exs_qhandle_t q = queue_new(3);
	struct pair p;
	char in[3];

	pair_open(&p);
	must_be(send(p.c, "a", 1, 0), 1);
	start_recv(p.s, in, 1, 0, q, 1, NO_REGION);
	wait_io(q, POLLIN);
	start_recv(p.s, in + 1, 1, 0, q, 2, NO_REGION);
	start_recv(p.s, in + 2, 1, 0, q, 3, NO_REGION);
	must(exs_qdelete(q));
	wait_until(counter("live_ops") == 0);
	must_be(send(p.c, "b", 1, 0), 1);
	must_be(recv(p.s, in, 1, 0), 1);
	must_be(in[0], 'b');
}

/* A duplicate keeps the queue. */
static void duplicate(void)
{
	exs_qhandle_t q = queue_new(1), copy = must(dup(q));
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	must(exs_qdelete(q));
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(copy, EXS_EVT_RECV, 1, 0, 1);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_qdelete(-1), EBADF);
	must_fail(exs_qdelete(w.file), EINVAL);
	must_fail(exs_qdelete(p.c), EINVAL);
	must(exs_qdelete(q));
	must_fail(exs_qdelete(q), EBADF);
	must(fcntl(w.file, F_GETFD));
	must(fcntl(p.c, F_GETFD));
}

const struct e2e_case exs_qdelete_cases[] = {
	CASE(with_operations, ON_KINDS),
	CASE(duplicate, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
