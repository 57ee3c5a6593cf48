// SPDX-License-Identifier: GPL-2.0
/*
 * Timeouts: an operation that takes longer than its socket's EXS_SO_SEND_TIMEOUT or
 * EXS_SO_RECV_TIMEOUT, or than its submission says, reports that by an event, and goes
 * on. With EXS_SQE_TIMEOUT_END it is cancelled instead, with ETIME, and the following
 * does not apply.
 *
 * An operation with a timeout reserves a second slot when it is submitted, so this
 * event cannot be lost either. At most one such event of an operation is in the ring
 * at a time. When it is consumed, its slot belongs to the operation again. The kernel
 * notices that before it gives a slot to any other operation:
 *
 *	reserved ---time is up---> unread entry ---consumed---> reserved
 *	    |                           |                          |
 *	    +---------------- the operation ends ------------------+
 *
 * The queued work has a reference on the operation. All of it is under queue->lock, as
 * is the operation's end, after which no timeout is reported. While an event is unread,
 * the work is not queued. Instead, one work for the whole queue looks whether the
 * program, which may never call the kernel, has consumed any; it looks less and less
 * often while none was.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../../core/stats.h"
#include "inflight.h"
#include "timeout.h"

/**
 * struct exs_op_timer - the timeouts of one operation
 * @op: the operation, which frees it
 * @work: runs when time is up
 * @period: jiffies
 * @once: there is only one event
 * @end: the operation must end; it has no second slot
 * @expired: its end was requested; read without a lock once it ends
 * @over: the operation has ended; this and the rest: queue->lock
 * @unread: its event is in the ring, not consumed; in queue->timeouts
 * @node: there
 * @pos: position of the entry
 */
struct exs_op_timer {
	struct exs_op *op;
	struct delayed_work work;
	unsigned long period;
	bool once;
	bool end;
	bool expired;
	bool over;
	bool unread;
	struct list_head node;
	u64 pos;
};

/* The shortest timeout, in jiffies: thousands of operations may have one. */
#define EXS_TIMEOUT_MIN		max(HZ / 100, 1)
/* The longest time between two looks. */
#define EXS_TIMEOUT_LOOK	HZ
/* Consumed events that are handled at a time, under queue->lock. */
#define EXS_TIMEOUT_STEP	64

static struct workqueue_struct *exs_timeout_wq;

/* Have the queue's work look within @delay. */
static void exs_timeout_look(struct exs_queue *q, unsigned long delay)
{
	lockdep_assert_held(&q->lock);
	if (!list_empty(&q->timeouts) && delay >= q->look_delay)
		return;
	q->look_delay = delay;
	if (!mod_delayed_work(exs_timeout_wq, &q->look, delay))
		exs_queue_get(q);
}

/* Post the event of a timeout, unless the last one is unread. Return: whether it was posted. */
static bool exs_timeout_tell(struct exs_op_timer *t)
{
	struct exs_op *op = t->op;
	struct exs_queue *q = op->queue;
	struct exs_cqe cqe = {
		.handle = op->handle,
		.user_arg = op->arg,
		.user_tag = op->tag,
		.type = op->def->timeout,
		.fd = op->fd,
	};

	lockdep_assert_held(&q->lock);
	exs_queue_unread(q);
	if (t->over || t->unread || q->dead)
		return false;
	t->unread = true;
	t->pos = q->slots.tail;
	exs_timeout_look(q, min_t(unsigned long, t->period, EXS_TIMEOUT_LOOK));
	list_add_tail(&t->node, &q->timeouts);
	exs_queue_timed_out(q, &cqe);
	return true;
}

/* Its event was consumed: time begins anew. */
static void exs_timeout_again(struct exs_op_timer *t)
{
	lockdep_assert_held(&t->op->queue->lock);
	if (!t->once && queue_delayed_work(exs_timeout_wq, &t->work, t->period))
		refcount_inc(&t->op->ref);
}

/* Cancel the operation, because of its timeout. If it was cancelled before, that counts. */
static void exs_timeout_cancel(struct exs_op_timer *t)
{
	struct exs_op *op = t->op;
	struct exs_queue *q = op->queue;
	LIST_HEAD(list);

	spin_lock(&q->lock);
	if (!t->over && !(atomic_read(&op->state) & EXS_OP_CANCEL)) {
		WRITE_ONCE(t->expired, true);
		if (exs_op_claim_cancel(op))
			list_add_tail(&op->cancel_node, &list);
	}
	spin_unlock(&q->lock);
	exs_ops_cancel(&list);
	exs_op_put(op);
}

long exs_timeout_result(const struct exs_op *op, long res)
{
	return res == -ECANCELED && READ_ONCE(op->timer->expired) ? -ETIME : res;
}

bool exs_timeout_has_slot(const struct exs_op *op)
{
	return !op->timer->end;
}

static void exs_timeout_work(struct work_struct *work)
{
	struct exs_op_timer *t = container_of(to_delayed_work(work), struct exs_op_timer,
					      work);
	struct exs_op *op = t->op;
	struct exs_queue *q = op->queue;
	bool told;

	if (t->end) {
		exs_timeout_cancel(t);
		return;
	}
	spin_lock(&q->lock);
	told = exs_timeout_tell(t);
	spin_unlock(&q->lock);
	if (told)
		exs_queue_notify(q);
	exs_op_put(op);
}

/* Return: whether to look again, with the queue's reference. */
static bool exs_timeout_look_again(struct exs_queue *q)
	__must_hold(&q->lock)
{
	u64 head = q->slots.head;

	exs_queue_catch_up(q);
	if (q->dead || list_empty(&q->timeouts))
		return false;
	if (q->slots.head == head)
		q->look_delay = min_t(unsigned long, 2 * q->look_delay, EXS_TIMEOUT_LOOK);
	return queue_delayed_work(exs_timeout_wq, &q->look, q->look_delay);
}

static void exs_timeout_look_work(struct work_struct *work)
{
	struct exs_queue *q = container_of(to_delayed_work(work), struct exs_queue, look);
	bool again;

	exs_count(q->xn, timeout_looks, 1);
	spin_lock(&q->lock);
	again = exs_timeout_look_again(q);
	spin_unlock(&q->lock);
	if (!again)
		exs_queue_put(q);
}

void exs_timeouts_open(struct exs_queue *q)
{
	INIT_LIST_HEAD(&q->timeouts);
	INIT_DELAYED_WORK(&q->look, exs_timeout_look_work);
}

void exs_timeouts_close(struct exs_queue *q)
{
	if (cancel_delayed_work(&q->look))
		exs_queue_put(q);
}

static u64 exs_timeout_of(const struct exs_op *op, const struct exs_sqe *sqe,
			  struct socket *sock, bool *once)
{
	const struct sock *sk;

	if (!op->def->timeout)
		return 0;
	*once = sqe->flags & EXS_SQE_TIMEOUT_ONCE;
	sk = sqe->timeout ? NULL : exs_sock_once(sock);
	if (!sk)
		return sqe->timeout;
	return exs_sock_timeout(sk, op->def->timeout == EXS_CQE_RECVTIMEOUT, once);
}

exs_hot
int exs_timeout_prepare(struct exs_op *op, const struct exs_sqe *sqe,
			struct socket *sock)
{
	struct exs_op_timer *t;
	bool once;
	u64 ns;

	ns = exs_timeout_of(op, sqe, sock, &once);
	if (!ns)
		return 0;
	t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	if (!t)
		return -ENOMEM;
	t->op = op;
	t->period = clamp_t(u64, nsecs_to_jiffies64(ns) + 1, EXS_TIMEOUT_MIN,
			    MAX_JIFFY_OFFSET);
	t->once = once;
	t->end = sqe->flags & EXS_SQE_TIMEOUT_END;
	INIT_DELAYED_WORK(&t->work, exs_timeout_work);
	op->timer = t;
	return 0;
}

void exs_timeout_begin(struct exs_op *op)
{
	struct exs_op_timer *t = op->timer;
	struct exs_queue *q = op->queue;

	spin_lock(&q->lock);
	if (!t->over) {
		refcount_inc(&op->ref);
		queue_delayed_work(exs_timeout_wq, &t->work, t->period);
	}
	spin_unlock(&q->lock);
}

void exs_timeout_end(struct exs_op *op)
{
	struct exs_op_timer *t = op->timer;
	struct exs_queue *q = op->queue;

	lockdep_assert_held(&q->lock);
	t->over = true;
	if (t->unread)
		list_del(&t->node);
	else if (!t->end)
		exs_slots_unreserve(&q->slots);
	/* Not the last reference: our caller has one. */
	if (cancel_delayed_work(&t->work))
		exs_op_put(op);
}

void exs_timeouts_consumed(struct exs_queue *q)
{
	unsigned int left = EXS_TIMEOUT_STEP;
	struct exs_op_timer *t, *next;

	lockdep_assert_held(&q->lock);
	q->behind = false;
	list_for_each_entry_safe(t, next, &q->timeouts, node) {
		if (t->pos >= q->slots.head)
			break;
		if (!left--) {
			exs_slots_unconsume(&q->slots, t->pos);
			q->behind = true;
			break;
		}
		t->unread = false;
		list_del(&t->node);
		q->slots.reserved++;
		exs_timeout_again(t);
	}
}

int exs_timeouts_init(void)
{
	exs_timeout_wq = alloc_workqueue("exs_timeout", WQ_UNBOUND, 0);
	return exs_timeout_wq ? 0 : -ENOMEM;
}

/* Waits until the last works have returned. */
void exs_timeouts_exit(void)
{
	destroy_workqueue(exs_timeout_wq);
}
