// SPDX-License-Identifier: GPL-2.0
/*
 * EXS_SO_BUSY_POLL: before it sleeps, a plain call polls the device for a while. It
 * processes completions as a worker would, which wakes waiting threads; this thread, too,
 * because it counts as a sleeper.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "run.h"
#include "stats.h"

/**
 * struct exs_spin - a thread that polls a connection
 * @entry: gets the wake-ups
 * @event: one came
 */
struct exs_spin {
	struct wait_queue_entry entry;
	bool event;
};

/* Any context; the connection's list is locked. The thread is not asleep. */
static int exs_spin_event(struct wait_queue_entry *entry, unsigned int mode, int flags,
			  void *key)
{
	WRITE_ONCE(container_of(entry, struct exs_spin, entry)->event, true);
	return 1;
}

/* An event needs more than a batch. */
static void exs_spin_end(struct exs_conn *conn, struct exs_spin *spin)
{
	exs_conn_unattend(conn, &spin->entry);
	if (spin->event)
		exs_conn_drain_cq(conn);
}

static bool exs_spin_woken(const struct wait_queue_entry *wait)
{
	return READ_ONCE(wait->flags) & WQ_FLAG_WOKEN || signal_pending(current);
}

void exs_conn_spin(struct exs_conn *conn, const struct wait_queue_entry *wait, long *timeo)
{
	int usec = exs_option(&conn->options, EXS_SO_BUSY_POLL);
	unsigned long most = *timeo, began = jiffies;
	struct exs_spin spin = { .event = false };
	ktime_t until;

	/* Not if its completions have a fixed processor. */
	if (!usec || exs_option(&conn->options, EXS_SO_CPU) >= 0)
		return;
	init_waitqueue_func_entry(&spin.entry, exs_spin_event);
	exs_conn_attend(conn, &spin.entry);
	until = ktime_add_us(ktime_get(), usec);
	while (!exs_spin_woken(wait) && exs_conn_poll_cq(conn) &&
	       jiffies - began < most && ktime_before(ktime_get(), until)) {
		cpu_relax();
		cond_resched_tasks_rcu_qs();
	}
	exs_spin_end(conn, &spin);
	if (!exs_spin_woken(wait))
		exs_count(conn->xn, busy_given_up, 1);
	if (most != MAX_SCHEDULE_TIMEOUT)
		*timeo = most - min(most, jiffies - began);
}
