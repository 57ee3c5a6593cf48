// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_mderegister"

/* The operation goes on, and the pages are free when it has ended. */
static void in_use(void)
{
	char *buf = pages(LARGE);
	exs_mhandle_t m = region_new(buf, LARGE, 0);
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_recv(p.s, buf, LARGE, MSG_WAITALL, q, 1, m);
	must(exs_mderegister(m));
	must_be(counter("live_regions"), 1);
	must_be(counter("live_pinned_pages"), (LARGE + PAGE - 1) / PAGE);
	send_all(p.c, 3, 0, LARGE);
	event_is(q, EXS_EVT_RECV, 1, 0, LARGE);
	data_check(3, 0, buf, LARGE);
	wait_until(!counter("live_regions") && !counter("live_pinned_pages"));
}

/* A duplicate keeps it. */
static void duplicate(void)
{
	char *buf = pages(2 * PAGE);
	exs_mhandle_t m = region_new(buf, 2 * PAGE, 0), copy = must(dup(m));
	struct pair p;

	pair_open(&p);
	must(exs_mderegister(m));
	transfer(&p, buf, copy, buf + PAGE, copy, PAGE);
	must(exs_mderegister(copy));
	wait_until(!counter("live_regions"));
}

static void wrong(void)
{
	exs_mhandle_t m = region_new(pages(PAGE), PAGE, 0);
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_mderegister(-1), EBADF);
	must_fail(exs_mderegister(EXS_MHANDLE_UNREGISTERED), EBADF);
	must_fail(exs_mderegister(w.file), EINVAL);
	must_fail(exs_mderegister(p.c), EINVAL);
	must_fail(exs_mderegister(q), EINVAL);
	must(exs_mderegister(m));
	must_fail(exs_mderegister(m), EBADF);
	must(fcntl(w.file, F_GETFD));
	must(fcntl(q, F_GETFD));
}

const struct e2e_case exs_mderegister_cases[] = {
	CASE(in_use, ON_KINDS),
	CASE(duplicate, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
