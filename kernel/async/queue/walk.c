// SPDX-License-Identifier: GPL-2.0
/*
 * Walks through the operations of a queue that are in flight: all, or those of one
 * socket, so that work on one socket takes no time for operations on others.
 */
#include <linux/sched.h>

#include "inflight.h"
#include "queue.h"

/* Operations looked at before a walk through them reschedules. */
#define EXS_WALK_BATCH	1024

static struct list_head *exs_walk_node(const struct exs_walk *w, struct exs_op *op)
{
	return w->sk ? &op->sock_node : &op->node;
}

static struct exs_op *exs_walk_op(const struct exs_walk *w, struct list_head *at)
{
	return w->sk ? list_entry(at, struct exs_op, sock_node) :
		       list_entry(at, struct exs_op, node);
}

void exs_walks_leave(struct exs_queue *q, struct exs_op *op)
{
	struct list_head *at;
	struct exs_walk *w;

	lockdep_assert_held(&q->lock);
	list_for_each_entry(w, &q->walks, node) {
		at = exs_walk_node(w, op);
		if (w->next == at)
			w->next = w->back ? at->prev : at->next;
	}
}

void exs_walk_begin(struct exs_queue *q, struct exs_walk *w, const struct sock *sk, bool back)
	__acquires(&q->lock)
{
	spin_lock(&q->lock);
	w->sk = sk;
	w->ops = sk ? exs_queue_ops_of(q, sk) : &q->ops;
	w->back = back;
	w->next = back ? w->ops->prev : w->ops->next;
	w->left = q->slots.reserved;	/* each operation has a slot at least */
	list_add(&w->node, &q->walks);
}

/* The next operation on the list, of whichever socket. */
static struct exs_op *exs_walk_step(struct exs_queue *q, struct exs_walk *w)
	__must_hold(&q->lock)
{
	struct list_head *at;

	if (w->left && w->left % EXS_WALK_BATCH == 0) {
		spin_unlock(&q->lock);
		cond_resched();
		spin_lock(&q->lock);
	}
	at = w->next;
	if (at == w->ops || !w->left)
		return NULL;
	w->left--;
	w->next = w->back ? at->prev : at->next;
	return exs_walk_op(w, at);
}

struct exs_op *exs_walk_next(struct exs_queue *q, struct exs_walk *w)
	__must_hold(&q->lock)
{
	struct exs_op *op;

	lockdep_assert_held(&q->lock);
	do {
		op = exs_walk_step(q, w);
	} while (op && w->sk && op->sk != w->sk);
	return op;
}

void exs_walk_end(struct exs_queue *q, struct exs_walk *w)
	__releases(&q->lock)
{
	list_del(&w->node);
	spin_unlock(&q->lock);
}

u32 exs_queue_collect(struct exs_queue *q, const struct sock *sk, exs_op_match match,
		      const void *arg, struct list_head *list)
{
	struct exs_walk w;
	struct exs_op *op;
	u32 n = 0;

	exs_walk_begin(q, &w, sk, false);
	while ((op = exs_walk_next(q, &w))) {
		if (!match(op, arg))
			continue;
		n++;
		if (exs_op_claim_cancel(op))
			list_add_tail(&op->cancel_node, list);
	}
	exs_walk_end(q, &w);
	return n;
}

struct exs_op *exs_queue_find_last(struct exs_queue *q, const struct sock *sk,
				   exs_op_match match, const void *arg)
{
	struct exs_walk w;
	struct exs_op *op;

	exs_walk_begin(q, &w, sk, true);
	do {
		op = exs_walk_next(q, &w);
	} while (op && !match(op, arg));
	if (op)
		refcount_inc(&op->ref);
	exs_walk_end(q, &w);
	return op;
}
