/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns (limits.c): work that may sleep without a bound. A user has at most
 * net.exs.max_user_workers workers of each pool at a time, so that others find free ones.
 */
#ifndef EXS_CORE_TURNS_H
#define EXS_CORE_TURNS_H

#include <linux/list.h>

struct exs_user;

enum exs_pool {
	EXS_POOL_FEED,		/* reads of files                    */
	EXS_POOL_LANE,		/* tries of ordinary sockets         */
	EXS_POOL_POLL,		/* polls                             */
	EXS_POOL_CONNECT,	/* connects that block, of iWARP     */
	EXS_POOL_ATTEMPT,	/* decisions about attempts          */
	EXS_POOL_MEMORY,	/* runs of connections that allocate */
	EXS_POOL_QP,		/* queue pairs of hand-shakes        */
	EXS_POOL_ACCEPT,	/* sockets of accept operations      */
	EXS_POOL_MAX
};

/**
 * struct exs_turn - what takes turns
 * @node: links those that wait; otherwise its own list head
 * @pool: the pool
 * @given: it has waited, and now has a turn
 * @again: queue the work once more. Spin locks are held. The turn stays at least until the
 *	work has begun
 */
struct exs_turn {
	struct list_head node;
	enum exs_pool pool;
	bool given;
	void (*again)(struct exs_turn *turn);
};

static inline void exs_turn_init(struct exs_turn *turn, enum exs_pool pool,
				 void (*again)(struct exs_turn *turn))
{
	*turn = (struct exs_turn) { .pool = pool, .again = again };
	INIT_LIST_HEAD(&turn->node);
}

#define EXS_TURN_WAITED	2

/**
 * exs_turn_take() - a work begins
 * @user: its user; the caller has a reference
 * @turn: the work's; if it waits, it stays until @again or exs_turn_leave()
 *
 * Context: process.
 *
 * Return: 1: the work has a turn; at its end it calls exs_turn_pass(), and keeps the
 * reference on @user until then. EXS_TURN_WAITED: the same, after waiting. 0: no turn is
 * free; it waits, and @again will be called. -EALREADY: it is waiting already.
 */
int exs_turn_take(struct exs_user *user, struct exs_turn *turn);

/* Stop waiting. Return: whether it waited; otherwise it begins, or has begun. */
bool exs_turn_withdraw(struct exs_user *user, struct exs_turn *turn);

/*
 * The turn is not needed any more: no exs_turn_take() follows. Return: whether it waited.
 * Process context.
 */
bool exs_turn_leave(struct exs_user *user, struct exs_turn *turn);

/* A work has ended: the one of @pool that has waited longest begins again. */
void exs_turn_pass(struct exs_user *user, enum exs_pool pool);

#endif
