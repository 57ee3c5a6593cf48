// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_qdequeue"

static const struct timeval at_once, soon = { .tv_usec = 20000 };
static char bytes[8];

/* @n events with handles from 0 that are there. */
static void post(const struct pair *p, exs_qhandle_t q, int n)
{
	long posted = queue_attr(q, EXS_ATTR_POSTED);
	int i;

	for (i = 0; i < n; i++) {
		start_recv(p->s, &bytes[i], 1, 0, q, i, NO_REGION);
		must_be(send(p->c, "x", 1, 0), 1);
	}
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == posted + n);
}

static void counts(void)
{
	exs_qhandle_t q = queue_new(8);
	exs_event_t ev[8];
	struct pair p;
	int i;

	pair_open(&p);
	must_be(exs_qdequeue(q, ev, 8, &at_once), 0);
	must_be(exs_qdequeue(q, ev, -8, &at_once), 0);
	post(&p, q, 8);
	must_be(exs_qdequeue(q, ev, 0, NULL), 0);
	must_be(exs_qdequeue(q, ev, 1, NULL), 1);
	must_be(exs_qdequeue(q, ev + 1, 2, NULL), 2);
	must_be(exs_qdequeue(q, ev + 3, -3, NULL), 3);
	must_be(exs_qdequeue(q, ev + 6, 5, NULL), 2);
	for (i = 0; i < 8; i++)
		event_check(&ev[i], EXS_EVT_RECV, i, 0, 1);
	no_event(q);
}

/* The events that are there when the time is up. */
static void time_is_up(void)
{
	exs_qhandle_t q = queue_new(3);
	exs_event_t ev[3];
	struct pair p;

	pair_open(&p);
	start_recv(p.c, bytes, 1, 0, q, 9, NO_REGION);
	must_be(exs_qdequeue(q, ev, 1, &soon), 0);
	must_be(exs_qdequeue(q, ev, -1, &soon), 0);
	post(&p, q, 2);
	must_be(exs_qdequeue(q, ev, -3, &soon), 2);
	event_check(&ev[0], EXS_EVT_RECV, 0, 0, 1);
	event_check(&ev[1], EXS_EVT_RECV, 1, 0, 1);
}

static void sender(void *arg)
{
	const struct pair *p = arg;
	int i;

	for (i = 0; i < 3; i++)
		must_be(send(p->c, "x", 1, 0), 1);
}

/* All of them, in whatever order they come. */
static void waits_for_all(void)
{
	exs_qhandle_t q = queue_new(3);
	exs_event_t ev[3];
	struct pair p;
	pid_t pid;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		start_recv(p.s, &bytes[i], 1, 0, q, i, NO_REGION);
	pid = spawn(sender, &p);
	must_be(exs_qdequeue(q, ev, -3, NULL), 3);
	for (i = 0; i < 3; i++)
		event_check(&ev[i], EXS_EVT_RECV, i, 0, 1);
	join(pid);
}

/* No event is lost. */
static void interrupted(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	exs_event_t ev[2];

	pair_open(&p);
	post(&p, q, 1);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	catch_signal(SIGALRM, 0);
	interrupt_self(5);
	must_fail(exs_qdequeue(q, ev, -2, NULL), EINTR);
	interrupt_stop();
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	no_event(q);
}

static void taker(void *arg)
{
	event_is(*(exs_qhandle_t *)arg, EXS_EVT_RECV, 0, 0, 1);
}

/* Another process takes it. */
static void shared(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	post(&p, q, 1);
	join(spawn(taker, &q));
	no_event(q);
}

/* The page that the program shares with the kernel claims that more events were taken than ever came. */
static void scribbled(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;
	struct ring r;

	ring_map(q, &r);
	r.head->head = 1ull << 32;
	must_fail(exs_qdequeue(q, &ev, 1, &at_once), EIO);
}

/* The ring of 4096 entries is larger than the limit on locked memory. */
static void cannot_map(void)
{
	exs_qhandle_t q;
	exs_event_t ev;

	q = queue_new(1);
	must(mlockall(MCL_FUTURE));
	limit_memlock(PAGE);
	must_fail(exs_qdequeue(q, &ev, 1, &at_once), ENOMEM);
}

static void wrong(void)
{
	static const struct timeval times[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000 } };
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;
	exs_event_t ev;
	size_t i;

	pair_open(&p);
	post(&p, q, 1);
	must_fail(exs_qdequeue(-1, &ev, 1, &at_once), EBADF);
	must_fail(exs_qdequeue(w.none, &ev, 1, &at_once), EBADF);
	must_fail(exs_qdequeue(w.file, &ev, 1, &at_once), EINVAL);
	must_fail(exs_qdequeue(p.c, &ev, 1, &at_once), EINVAL);
	must_fail(exs_qdequeue(q, NULL, 1, &at_once), EFAULT);
	must_fail(exs_qdequeue(q, (void *)8, 1, &at_once), EFAULT);
	must_fail(exs_qdequeue(q, (void *)-4096, -1, &at_once), EFAULT);
	must_fail(exs_qdequeue(q, &ev, 1, (void *)8), EFAULT);
	must_fail(exs_qdequeue(q, &ev, 1, (void *)-4096), EFAULT);
	must_fail(exs_qdequeue(q, &ev, -5000, &at_once), EINVAL);
	for (i = 0; i < ARRAY_SIZE(times); i++)
		must_fail(exs_qdequeue(q, &ev, 1, &times[i]), EINVAL);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
}

const struct e2e_case exs_qdequeue_cases[] = {
	CASE(counts, ON_KINDS),
	CASE(time_is_up, ON_KINDS),
	CASE(waits_for_all, ON_KINDS),
	CASE(interrupted, ON_KINDS),
	CASE(shared, ON_KINDS),
	CASE(scribbled, ON_EXS),
	CASE(cannot_map, ON_EXS),
	CASE(wrong, ON_KINDS),
	{}
};
