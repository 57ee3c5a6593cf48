// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting without sleep: a thread in EXS_IOC_WAIT polls its connections for a
 * slice of time, and then chooses them anew.
 *
 * The thread is not among the queue's sleepers. So it gets no wake-up, and takes
 * none from the others.
 */
#include <linux/sched/signal.h>

#include "../../core/stats.h"
#include "attend.h"
#include "inflight.h"
#include "queue.h"

#define EXS_BUSY_SLICE	(500 * NSEC_PER_USEC)

/* Adaptive: the longest and the shortest time to poll; it may also not poll at all. */
#define EXS_BUSY_MAX	(200 * NSEC_PER_USEC)
#define EXS_BUSY_MIN	(10 * NSEC_PER_USEC)

/**
 * struct exs_busy - a wait
 * @q: where
 * @wait: the condition that ends it
 * @until: the time at which it ends anyway
 */
struct exs_busy {
	struct exs_queue *q;
	const struct exs_ioc_wait *wait;
	ktime_t until;
};

static bool exs_busy_over(const struct exs_busy *b)
{
	bool over;

	spin_lock(&b->q->lock);
	over = exs_queue_wait_over(b->q, b->wait);
	spin_unlock(&b->q->lock);
	return over || signal_pending(current) ||
	       ktime_after(ktime_get(), b->until);
}

/*
 * Poll for a slice of time. Other tasks get the processor only between two slices, when no
 * transport relies on this thread. Return: whether there is anything to poll.
 */
static bool exs_busy_slice(struct exs_busy *b)
{
	ktime_t end = ktime_add_ns(ktime_get(), EXS_BUSY_SLICE);
	struct exs_attend a;
	bool any;

	exs_attend_begin(&a, b->q);
	do {
		any = exs_attend_poll(&a);
		cpu_relax();
	} while (any && !exs_busy_over(b) && !need_resched() &&
		 ktime_before(ktime_get(), end));
	exs_attend_end(&a);
	/* This thread may never sleep, and a change of traced code waits until it has slept. */
	cond_resched_tasks_rcu_qs();
	return any;
}

static void exs_busy_run(struct exs_queue *q, const struct exs_ioc_wait *w, ktime_t until)
{
	struct exs_busy b = { .q = q, .wait = w, .until = until };

	while (!exs_busy_over(&b) && exs_busy_slice(&b))
		;
}

ktime_t exs_busy_wait(struct exs_queue *q, u32 mode, const struct exs_ioc_wait *w, ktime_t until)
{
	u32 ns = READ_ONCE(q->busy_ns);
	ktime_t start = ktime_get();

	if (mode == EXS_QWAIT_BUSY) {
		exs_busy_run(q, w, until);
	} else if (ns) {
		exs_busy_run(q, w, min(until, ktime_add_ns(start, ns)));
		if (ktime_after(ktime_get(), ktime_add_ns(start, ns)))
			exs_count(q->xn, busy_given_up, 1);
	}
	return start;
}

/*
 * Polling pays if events come soon. So, a wait that was short makes the time of
 * polling longer, any other makes it shorter, down to none.
 */
void exs_busy_learn(struct exs_queue *q, ktime_t start)
{
	u32 ns = READ_ONCE(q->busy_ns);
	s64 took;

	if (READ_ONCE(q->wait_mode) != EXS_QWAIT_ADAPTIVE)
		return;
	took = ktime_to_ns(ktime_sub(ktime_get(), start));
	if (took <= EXS_BUSY_MAX)
		ns = clamp_t(u32, 2 * ns, EXS_BUSY_MIN, EXS_BUSY_MAX);
	else
		ns = ns / 2 < EXS_BUSY_MIN ? 0 : ns / 2;
	WRITE_ONCE(q->busy_ns, ns);
}

int exs_queue_set_wait(struct exs_queue *q, s64 mode)
{
	if (mode != EXS_QWAIT_NOTIFY && mode != EXS_QWAIT_BUSY &&
	    mode != EXS_QWAIT_ADAPTIVE)
		return -EINVAL;
	WRITE_ONCE(q->busy_ns, EXS_BUSY_MAX);
	WRITE_ONCE(q->wait_mode, mode);
	return 0;
}
