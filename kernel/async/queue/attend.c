// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that waits for a queue's events processes completions itself: it
 * attends to the connections of the queue's oldest operations. A provider's event
 * then wakes the thread, not a worker, which saves one task switch. A thread that
 * polls looks for completions without any event.
 *
 * Everything else (other connections, sockets of other families, hand-shakes) goes
 * on without it, and their events end the wait like all others. So the choice of
 * connections only affects speed, and starves no operation. The worker runs
 * anyway, a moment later: the thread may not get the processor.
 */
#include <linux/sched.h>

#include "../../core/stats.h"
#include "attend.h"
#include "inflight.h"
#include "queue.h"

#define EXS_ATTEND_LOOK	64	/* operations looked at to find the connections */

/* Any context; the connection's list is locked. */
exs_hot
static int exs_attend_wake(struct wait_queue_entry *entry, unsigned int mode,
			   int flags, void *key)
{
	struct exs_attended *it = container_of(entry, struct exs_attended, entry);

	WRITE_ONCE(it->event, true);
	return default_wake_function(entry, mode, flags, key);
}

static bool exs_attend_has(const struct exs_attend *a, const struct exs_conn *conn)
{
	unsigned int i;

	for (i = 0; i < a->n; i++)
		if (a->conns[i].conn == conn)
			return true;
	return false;
}

/* Not if its completions have a processor of their own. */
static bool exs_attend_may(const struct exs_attend *a, const struct exs_conn *conn)
{
	return exs_option(&conn->options, EXS_SO_CPU) < 0 && !exs_attend_has(a, conn);
}

static void exs_attend_collect(struct exs_attend *a, struct exs_queue *q)
{
	unsigned int looks = EXS_ATTEND_LOOK;
	struct exs_conn *conn;
	struct exs_op *op;

	spin_lock(&q->lock);
	list_for_each_entry(op, &q->ops, node) {
		if (!looks-- || a->n == EXS_ATTEND_CONNS)
			break;
		conn = op->sk ? exs_sock_conn_of(op->sk) : NULL;
		if (!conn || !exs_attend_may(a, conn))
			continue;
		exs_conn_get(conn);
		a->conns[a->n++].conn = conn;
	}
	spin_unlock(&q->lock);
}

exs_hot
void exs_attend_begin(struct exs_attend *a, struct exs_queue *q)
{
	unsigned int i;

	a->n = 0;
	exs_attend_collect(a, q);
	for (i = 0; i < a->n; i++) {
		struct exs_attended *it = &a->conns[i];

		it->event = false;
		init_waitqueue_func_entry(&it->entry, exs_attend_wake);
		it->entry.private = current;
		exs_conn_attend(it->conn, &it->entry);
		/* A dead connection will not notify it any more. */
		if (exs_conn_is_dead(it->conn))
			WRITE_ONCE(it->event, true);
	}
}

/* Events that it was told of and has not handled yet. Return: whether there were any. */
static bool exs_attended_drain(struct exs_attended *it)
{
	/* The event is forgotten before the completions are looked for. */
	if (!READ_ONCE(it->event) || !xchg(&it->event, false))
		return false;
	exs_count(it->conn->xn, waiter_completions, exs_conn_drain_cq(it->conn));
	return true;
}

static void exs_attended_drop(struct exs_attended *it)
{
	exs_conn_unattend(it->conn, &it->entry);
	exs_attended_drain(it);
	exs_conn_put(it->conn);
	it->conn = NULL;
}

exs_hot
void exs_attend_end(struct exs_attend *a)
{
	while (a->n) {
		struct exs_attended *it = &a->conns[--a->n];

		if (it->conn)
			exs_attended_drop(it);
	}
}

void exs_attend_give_up(struct exs_attend *a, struct exs_net *xn)
{
	if (a->n)
		exs_count(xn, waiter_given_up, 1);
	exs_attend_end(a);
}

exs_hot
void exs_attend_drain(struct exs_attend *a)
{
	struct exs_attended *it;

	for (it = a->conns; it < a->conns + a->n; it++)
		if (exs_attended_drain(it) && exs_conn_is_dead(it->conn))
			exs_attended_drop(it);
}

bool exs_attend_poll(struct exs_attend *a)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < a->n; i++)
		any |= a->conns[i].conn && exs_conn_poll_cq(a->conns[i].conn);
	return any;
}
