// SPDX-License-Identifier: GPL-2.0
/*
 * The life of an operation: start, completion, cancellation (see inflight.h).
 */
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../../core/stats.h"
#include "inflight.h"
#include "timeout.h"

static struct kmem_cache *exs_op_cache;

struct exs_op *exs_op_alloc(struct exs_queue *q, struct exs_mm_link *link,
			    const struct exs_op_def *def, struct sock *sk,
			    const struct exs_sqe *sqe)
{
	struct exs_op *op = kmem_cache_zalloc(exs_op_cache, GFP_KERNEL);

	if (!op)
		return NULL;
	refcount_set(&op->ref, 1);
	INIT_LIST_HEAD(&op->node);
	op->def = def;
	op->queue = q;
	exs_queue_get(q);
	op->link = link;
	op->sk = sk;
	if (sk)
		sock_hold(sk);
	op->opcode = sqe->opcode;
	op->fd = sqe->fd;
	op->handle = sqe->handle;
	op->arg = sqe->user_arg;
	op->tag = sqe->user_tag;
	op->msg_flags = sqe->msg_flags;
	exs_live(op->queue->xn, ops, 1);
	return op;
}

exs_hot
void exs_op_free(struct exs_op *op)
{
	struct exs_queue *q = op->queue;
	struct sock *sk = op->sk;

	kfree(op->timer);
	kmem_cache_free(exs_op_cache, op);
	exs_live(q->xn, ops, -1);
	exs_queue_put(q);
	if (sk)
		sock_put(sk);
}

/*
 * Completion
 */

struct exs_cqe exs_op_cqe(const struct exs_op *op, long res, u32 flags, u32 token)
{
	return (struct exs_cqe) {
		.handle = op->handle,
		.length = max(res, 0L),
		.user_arg = op->arg,
		.user_tag = op->tag,
		.token = token,
		.type = op->opcode,
		.fd = op->fd,
		.error = res < 0 ? -res : 0,
		.flags = flags,
		.parts = { op->parts[0], op->parts[1] },
	};
}

exs_hot
bool exs_op_complete(struct exs_op *op, long res, u32 flags, u32 token)
{
	struct exs_cqe cqe;
	bool posted;

	if (op->timer)
		res = exs_timeout_result(op, res);
	cqe = exs_op_cqe(op, res, flags, token);
	if (token)
		refcount_inc(&op->ref);
	op->def->cleanup(op);
	posted = exs_queue_post(op->queue, op, &cqe);
	exs_op_put(op);
	return posted;
}

void exs_op_discard(struct exs_op *op)
{
	op->def->cleanup(op);
	exs_queue_unreserve(op->queue, op);
	exs_op_put(op);
}

/*
 * Cancellation
 */

bool exs_op_claim_cancel(struct exs_op *op)
{
	int old = atomic_fetch_or(EXS_OP_CANCEL, &op->state);

	lockdep_assert_held(&op->queue->lock);
	if (old != EXS_OP_ISSUED)
		return false;
	refcount_inc(&op->ref);
	return true;
}

static void exs_op_cancel(struct exs_op *op)
{
	exs_count(op->queue->xn, ops_cancelled, 1);
	op->def->cancel(op);
}

static void exs_op_cancel_listed(struct exs_op *op)
{
	list_del(&op->cancel_node);
	exs_op_cancel(op);
	exs_op_put(op);
	cond_resched();
}

/*
 * Of outgoing operations the last is first. Otherwise the next one might begin when
 * the one before it is taken back, and the peer would get a stream with a hole, or its
 * end after one.
 */
void exs_ops_cancel(struct list_head *list)
{
	struct exs_op *op, *next;

	list_for_each_entry_safe_reverse(op, next, list, cancel_node)
		if (op->def->outgoing)
			exs_op_cancel_listed(op);
	list_for_each_entry_safe(op, next, list, cancel_node)
		exs_op_cancel_listed(op);
}

/*
 * Start
 */

/* The submitter's half of the protocol in inflight.h. */
static void exs_op_issued(struct exs_op *op)
{
	if (atomic_fetch_or(EXS_OP_ISSUED, &op->state) & EXS_OP_CANCEL)
		exs_op_cancel(op);
}

/* Return: 0: it will complete, or has; or why it did not start. */
exs_hot
static int exs_op_issue(struct exs_op *op, struct socket *sock)
{
	long res = op->def->issue(op, sock);

	if (res == -EIOCBQUEUED) {
		if (op->timer)
			exs_timeout_begin(op);
		exs_op_issued(op);
	} else if (res >= 0) {
		exs_op_complete(op, res, op->msg_flags, 0);
	} else {
		return res;
	}
	return 0;
}

int exs_op_start(struct exs_op *op, const struct exs_sqe *sqe, struct socket *sock)
{
	int err = exs_timeout_prepare(op, sqe, sock) ?: exs_queue_reserve(op->queue, op);

	if (err)
		return err;
	err = op->def->prep(op, sqe);
	if (err)
		goto undo;
	err = exs_op_issue(op, sock);
	if (!err)
		return 0;
	op->def->cleanup(op);
undo:
	exs_queue_unreserve(op->queue, op);
	return err;
}

int exs_op_again(struct exs_op *op, struct socket *sock)
{
	int err;

	refcount_inc(&op->ref);
	err = exs_op_issue(op, sock);
	if (err)
		exs_op_complete(op, err, 0, 0);
	exs_op_put(op);
	return err;
}

int exs_ops_init(void)
{
	exs_op_cache = KMEM_CACHE(exs_op, SLAB_ACCOUNT);
	return exs_op_cache ? 0 : -ENOMEM;
}

void exs_ops_exit(void)
{
	kmem_cache_destroy(exs_op_cache);
}
