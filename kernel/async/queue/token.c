// SPDX-License-Identifier: GPL-2.0
/*
 * Tokens: accepted connections on their way to a descriptor.
 *
 * Security modules must see accept(2), and the descriptor belongs to the process
 * that dequeues the event. So the entry carries a token. The library, in the
 * dequeuing thread, claims it: the connection is parked at the listener for this
 * thread, whose next accept4(2) there returns this very connection.
 *
 *             posted          consumed           claim: parked
 *   (op) ---> UNREAD --------> READ ---------------> CLAIMED ----> accepted,
 *                \______________________________________^ |        forgotten by
 *                                ^                        |        the next sweep
 *                                |________________________|
 *                                 claimed again: unparked
 *             posted once more <-- READ, CLAIMED: put back
 *
 * accept4(2) may fail (EMFILE, a security module, a thread that is killed), so the
 * token stays until the connection was accepted, and may be claimed again, from any
 * thread. A thread can have only one claim at a listener. After a failure it undoes
 * its claim, has the event posted again, so that any thread of any process may dequeue
 * it, or drops the connection. An unclaimed token holds a slot: the entry's own while
 * the entry is unread, afterwards a reservation. A claimed token holds none; the
 * number of claimed tokens is bounded.
 *
 * A token holds the listener's sock, not its file. When the program closes the
 * listener before it claims, the connection is lost, as are all connections in
 * TCP's backlog: ECONNABORTED.
 *
 * References to the connection: a token has one. Parking passes it on to the
 * listener, and the token takes another one, to find the connection again. If the
 * queue dies, parked connections stay parked: their threads may be in accept4(2).
 * When such a thread is gone, the listener drops its connection.
 *
 * An ordinary listener cannot keep a connection for a thread. There a token is an
 * offer: each waiting connection is offered to one accept at a time
 * (foreign_lane.c), and accept4(2) takes the first one. The token is READ until that
 * is done. If another accept was quicker, so that no connection is left, the token
 * becomes an operation again, of the process that had it. The lane holds the
 * listener's file during that time. If the process that has the token dies, the
 * connection still waits there.
 */
#include "mm.h"
#include "token.h"

/*
 * An offer holds a file, so it must end with its address space, and counts at the link, and for
 * the user. Other tokens hold no file, and stay; their connections count.
 */
static void exs_token_link(struct exs_op *op, int n)
{
	struct exs_queue *q = op->queue;

	if (!exs_token_is_offer(op))
		return;
	op->link->inflight += n;
	q->offers += n;
	exs_queue_uncharge_op(q);
}

bool exs_token_is_late(const struct exs_op *op)
{
	return exs_token_is_offer(op) && exs_mm_is_over(op->link);
}

void exs_token_move(struct exs_queue *q, struct exs_op *op, enum exs_token_state to,
		    struct list_head *list)
{
	lockdep_assert_held(&q->lock);
	exs_token_link(op, (to != EXS_TOKEN_NONE) -
			   (op->conn.token_state != EXS_TOKEN_NONE));
	if (op->conn.token_state == EXS_TOKEN_READ)
		q->slots.reserved--;
	if (op->conn.token_state == EXS_TOKEN_CLAIMED)
		q->claimed--;
	if (to == EXS_TOKEN_READ)
		q->slots.reserved++;
	if (to == EXS_TOKEN_CLAIMED)
		q->claimed++;
	op->conn.token_state = to;
	list_move_tail(&op->node, list);
}

void exs_token_add(struct exs_queue *q, struct exs_op *op)
{
	op->conn.pos = q->slots.tail;
	exs_token_move(q, op, EXS_TOKEN_UNREAD, &q->unread_tokens);
}

void exs_tokens_consumed(struct exs_queue *q)
{
	struct exs_op *op, *next;

	list_for_each_entry_safe(op, next, &q->unread_tokens, node) {
		if (op->conn.pos >= q->slots.head)
			break;
		exs_token_move(q, op, EXS_TOKEN_READ, &q->read_tokens);
	}
}

static void exs_token_free(struct exs_op *op)
{
	xa_erase(&op->queue->tokens, op->conn.token);
	exs_op_put(op);
}

void exs_token_free_offer(struct exs_op *op)
{
	op->def->offer_return(op);
	exs_token_free(op);
}

void exs_token_leave(struct exs_op *op)
{
	exs_token_link(op, -1);
	op->conn.token_state = EXS_TOKEN_NONE;
}

/* Drop a token that is on no list any more. */
static void exs_token_reject(struct exs_op *op)
{
	if (exs_token_is_offer(op))
		op->def->offer_return(op);
	else
		exs_sock_drop(op->conn.child);
	exs_token_free(op);
}

static void exs_tokens_reject(struct list_head *list)
{
	struct exs_op *op, *next;

	list_for_each_entry_safe(op, next, list, node) {
		list_del_init(&op->node);
		exs_token_reject(op);
	}
}

/* q->lock is not held, and the tokens are on @list only. */
static void exs_tokens_free(struct list_head *list)
{
	struct exs_op *op, *next;

	list_for_each_entry_safe(op, next, list, node) {
		list_del_init(&op->node);
		sock_put(op->conn.child);
		exs_token_free(op);
	}
}

static bool exs_token_over(const struct exs_op *op)
{
	struct sock *child = op->conn.child;

	return READ_ONCE(child->sk_socket) ||
	       READ_ONCE(exs_sk(child)->state) == EXS_CLOSED;
}

void exs_tokens_sweep_claimed(struct exs_queue *q)
{
	struct exs_op *op, *next;
	LIST_HEAD(over);

	spin_lock(&q->lock);
	list_for_each_entry_safe(op, next, &q->claimed_tokens, node)
		if (exs_token_over(op))
			exs_token_move(q, op, EXS_TOKEN_NONE, &over);
	spin_unlock(&q->lock);
	exs_tokens_free(&over);
}

void exs_tokens_drop(struct exs_queue *q)
{
	LIST_HEAD(unclaimed);
	LIST_HEAD(claimed);

	spin_lock(&q->lock);
	list_splice_init(&q->unread_tokens, &unclaimed);
	list_splice_init(&q->read_tokens, &unclaimed);
	list_splice_init(&q->claimed_tokens, &claimed);
	spin_unlock(&q->lock);
	exs_tokens_free(&claimed);
	exs_tokens_reject(&unclaimed);
}

static void exs_tokens_take_offers(struct exs_queue *q, struct list_head *from,
				   exs_op_match match, const void *arg, struct list_head *to)
{
	struct exs_op *op, *next;

	list_for_each_entry_safe(op, next, from, node)
		if (exs_token_is_offer(op) && match(op, arg))
			exs_token_move(q, op, EXS_TOKEN_NONE, to);
}

void exs_tokens_drop_offers(struct exs_queue *q, exs_op_match match, const void *arg)
{
	LIST_HEAD(over);

	spin_lock(&q->lock);
	exs_tokens_take_offers(q, &q->unread_tokens, match, arg, &over);
	exs_tokens_take_offers(q, &q->read_tokens, match, arg, &over);
	spin_unlock(&q->lock);
	exs_tokens_reject(&over);
}

/* Another thread may have ended the token just now. */
void exs_token_abort(struct exs_queue *q, struct exs_op *op)
{
	LIST_HEAD(over);

	spin_lock(&q->lock);
	if (op->conn.token_state != EXS_TOKEN_NONE)
		exs_token_move(q, op, EXS_TOKEN_NONE, &over);
	spin_unlock(&q->lock);
	exs_tokens_reject(&over);
}
