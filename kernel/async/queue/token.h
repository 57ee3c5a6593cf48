/* SPDX-License-Identifier: GPL-2.0 */
/* Tokens of a queue: accepted connections, and offers of ordinary listeners, not yet claimed. */
#ifndef EXS_ASYNC_TOKEN_H
#define EXS_ASYNC_TOKEN_H

#include "inflight.h"

/* Whether a token, or one until now, is an offer: it has no connection of its own. */
static inline bool exs_token_is_offer(const struct exs_op *op)
{
	return !op->conn.child;
}

/* From one of the queue's lists to @list, with the slot that @to has. q->lock held. */
void exs_token_move(struct exs_queue *q, struct exs_op *op, enum exs_token_state to,
		    struct list_head *list);

/* @op stops being a token, perhaps only for a moment. Its slot stays reserved. q->lock held. */
void exs_token_leave(struct exs_op *op);

/*
 * End an unclaimed token: its connection is closed, or stays at the listener if that is an
 * ordinary one.
 */
void exs_token_abort(struct exs_queue *q, struct exs_op *op);

/* @op, whose entry is the next to be written, is a token. q->lock held. */
void exs_token_add(struct exs_queue *q, struct exs_op *op);

/*
 * The program consumed entries up to q->slots.head: unclaimed tokens among
 * them hold a slot from now on. q->lock held.
 */
void exs_tokens_consumed(struct exs_queue *q);

/* Forget claimed tokens whose connection was accepted. */
void exs_tokens_sweep_claimed(struct exs_queue *q);

static inline void exs_tokens_sweep(struct exs_queue *q)
{
	if (READ_ONCE(q->claimed))
		exs_tokens_sweep_claimed(q);
}

/* The queue is dead: drop the tokens that will never be claimed. */
void exs_tokens_drop(struct exs_queue *q);

/*
 * Offers that @match become invalid: their socket is being closed, or the process that submitted
 * the accept has ended.
 */
void exs_tokens_drop_offers(struct exs_queue *q, exs_op_match match, const void *arg);

/* @op is about to become an offer, but the process that submitted it has ended. q->lock held. */
bool exs_token_is_late(const struct exs_op *op);

/* Drop an offer that no program will see, and the caller's reference to it. */
void exs_token_free_offer(struct exs_op *op);

#endif
