// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a peer makes a connection need: its ring, more receives, a message that is
 * fetched.
 *
 * Allocating it may take long: where the cgroup of the connection is over memory.high, the kernel
 * stops the thread that allocates, for seconds, and at memory.max reclaims. A program's own thread
 * allocates when it runs the connection. The workers that run it otherwise (completions, timers)
 * belong to all users, so they leave this to a work that takes turns.
 */
#include <linux/sched.h>

#include "conn.h"
#include "core.h"
#include "limits.h"
#include "run.h"
#include "stats.h"

static DEFINE_SPINLOCK(exs_peer_pages_lock);
static long exs_peer_pages;	/* exs_peer_pages_lock */

/* Return: whether @n more pages are left, both of all users' and of the user of @shares. */
static bool exs_peer_pages_take(struct exs_shares *shares, long n)
{
	bool fits;

	spin_lock(&exs_peer_pages_lock);
	fits = shares->peer_pages + n <=
	       READ_ONCE(exs_sysctl_max_peer_pages) - exs_peer_pages - n;
	if (fits) {
		exs_peer_pages += n;
		shares->peer_pages += n;
	}
	spin_unlock(&exs_peer_pages_lock);
	return fits;
}

int exs_peer_pages_charge(struct exs_conn *conn, long n)
{
	int err = exs_limit_charge_user(conn->xn, EXS_LIMIT_PAGES, n, conn->user);

	if (err || exs_peer_pages_take(exs_user_shares(conn->user), n))
		return err;
	exs_limit_uncharge(EXS_LIMIT_PAGES, n, conn->user);
	exs_count(conn->xn, limit_peer_pages, 1);
	return -ENOMEM;
}

void exs_peer_pages_uncharge(struct exs_conn *conn, long n)
{
	spin_lock(&exs_peer_pages_lock);
	exs_peer_pages -= n;
	exs_user_shares(conn->user)->peer_pages -= n;
	spin_unlock(&exs_peer_pages_lock);
	exs_limit_uncharge(EXS_LIMIT_PAGES, n, conn->user);
}

bool exs_run_may_allocate(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!(current->flags & PF_KTHREAD) || conn->allocating)
		return true;
	conn->memory_wanted = true;
	return false;
}

/* The references are the work's, and its caller has one. */
static void exs_conn_memory_queue(struct exs_conn *conn)
{
	exs_conn_get(conn);
	if (!queue_work(exs_memory_wq, &conn->memory_work))
		exs_conn_put(conn);
}

void exs_conn_memory_kick(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	/* An accepted connection gets its user a little later, and is run then. */
	if (!conn->memory_wanted || !READ_ONCE(conn->user))
		return;
	conn->memory_wanted = false;
	exs_conn_memory_queue(conn);
}

static void exs_conn_memory_again(struct exs_turn *turn)
{
	exs_conn_memory_queue(container_of(turn, struct exs_conn, memory_turn));
}

void exs_conn_memory_leave(struct exs_conn *conn)
{
	if (conn->user && exs_turn_withdraw(conn->user, &conn->memory_turn))
		exs_conn_put(conn);
}

/* Be the runner; or let the present one queue the work again. */
static void exs_conn_memory_run(struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	if (conn->running) {
		conn->memory_wanted = true;
	} else {
		conn->allocating = true;
		exs_conn_run_locked(conn);
		conn->allocating = false;
	}
	spin_unlock(&conn->lock);
}

/* It holds the connection while it waits for its turn; once that is over it does not wait. */
static void exs_conn_memory_work(struct work_struct *work)
{
	struct exs_conn *conn = container_of(work, struct exs_conn, memory_work);
	struct exs_user *user = conn->user;
	int turn;

	exs_conn_get(conn);
	turn = exs_turn_take(user, &conn->memory_turn);
	if (turn)
		exs_conn_put(conn);
	else if (READ_ONCE(conn->state) == EXS_CONN_DEAD)
		exs_conn_memory_leave(conn);
	if (turn > 0) {
		exs_conn_memory_run(conn);
		exs_turn_pass(user, EXS_POOL_MEMORY);
	}
	if (turn == EXS_TURN_WAITED)
		exs_conn_put(conn);
	exs_conn_put(conn);
}

void exs_conn_memory_init(struct exs_conn *conn)
{
	INIT_WORK(&conn->memory_work, exs_conn_memory_work);
	exs_turn_init(&conn->memory_turn, EXS_POOL_MEMORY, exs_conn_memory_again);
}
