// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: when operations on ordinary sockets are tried (see foreign.h).
 *
 * A lane has one owner at a time, which tries the first of its operations:
 *
 *   exs_lane_issue()    the thread that makes the lane, for one try
 *        | not done, or another came meanwhile
 *        v
 *   exs_lane_work()     from then on; never two at a time
 *        | the socket says EAGAIN          ^
 *        v                                 | the socket's wait queue, a timer,
 *      idle: no owner                      | a cancellation that empties it, an
 *        |_________________________________| accept that is through with its offer,
 *                                            a file that was read
 *
 * An owner that finds it empty, with no offers, drops the file and frees it. Before a lane
 * becomes idle, its owner joins the socket's wait queue, and then tries once more. So no
 * event is lost: one that comes after this try wakes the lane.
 *
 * There may be no such event, though: some sockets say that they are writable and
 * then EAGAIN (TCP without memory, an AF_UNIX datagram whose receiver is full). So
 * a socket that poll() calls ready is tried again with backoff.
 *
 * The bucket's lock guards the table, and the data that lanes share with threads
 * that add and cancel operations. It is taken in process context, and is
 * innermost except for the workqueue's own: completions come without it.
 */
#include <linux/file.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "../../core/stats.h"
#include "../queue/inflight.h"
#include "../queue/token.h"
#include "foreign.h"

#define EXS_LANE_BITS	12
#define EXS_BACKOFF_MAX	(HZ / 10)
/* Before connect(2), which may never come. */
#define EXS_BACKOFF_CONNECT (2 * HZ)
/* Then it is another lane's turn. */
#define EXS_LANE_TRIES	64

struct exs_lane_bucket {
	spinlock_t lock;	/* see above */
	struct hlist_head lanes;
};

/**
 * struct exs_lane - the operations of one direction of a socket
 * @node: in its bucket, until the owner frees it
 * @xn: where it counts; a reference
 * @file: the socket's, a reference
 * @sock: constant: a TCP_ULP may put another into @file
 * @dir: constant
 * @ops: struct exs_op, in order; bucket lock
 * @offered: accepts that have ended, and have not taken their connection yet;
 *	bucket lock
 * @news: one of these was taken or returned, or exs_lane_news() called, since the
 *	owner last left; bucket lock
 * @current_op: the first of @ops, while its owner tries it; bucket lock
 * @leaving: operations that have left @ops, and whose events are on their way; those behind
 *	them wait for that, and so do new ones; bucket lock
 * @idle: it has no owner; bucket lock
 * @going: it drops its file, then leaves the table; bucket lock
 * @armed: @wait is in the socket's wait queue; the owner's
 * @backoff: jiffies of the timer, 0: none; written by the owner
 * @wait: entry in the socket's wait queue
 * @user: that of the first operation's queue: charged with an operation as long as the lane is
 *	in the table, and takes turns; a reference
 * @turn: for one run as the owner
 * @work: becomes the owner
 */
struct exs_lane {
	struct hlist_node node;
	struct exs_net *xn;
	struct file *file;
	struct socket *sock;
	enum exs_lane_dir dir;
	struct list_head ops;
	unsigned int offered;
	bool news;
	struct exs_op *current_op;
	unsigned int leaving;
	bool idle;
	bool going;
	bool armed;
	unsigned int backoff;
	struct wait_queue_entry wait;
	struct exs_user *user;
	struct exs_turn turn;
	struct delayed_work work;
};

static struct exs_lane_bucket exs_lane_buckets[1 << EXS_LANE_BITS];
static struct workqueue_struct *exs_lane_wq;

static struct exs_lane_bucket *exs_lane_bucket(const struct sock *sk)
{
	return &exs_lane_buckets[hash_ptr(sk, EXS_LANE_BITS)];
}

static struct exs_lane_bucket *exs_lane_bucket_of(const struct exs_lane *lane)
{
	return exs_lane_bucket(lane->sock->sk);
}

static __poll_t exs_lane_events(const struct exs_lane *lane)
{
	return lane->dir == EXS_LANE_IN ? EPOLLIN | EPOLLRDNORM :
					  EPOLLOUT | EPOLLWRNORM;
}

/*
 * The socket's wait queue, any context. If the work is pending already it may be
 * because of the timer.
 */
static int exs_lane_wake(struct wait_queue_entry *wait, unsigned int mode, int sync,
			 void *key)
{
	struct exs_lane *lane = container_of(wait, struct exs_lane, wait);
	__poll_t events = key_to_poll(key);

	if (events && !(events & (exs_lane_events(lane) | EPOLLERR | EPOLLHUP)))
		return 0;
	if (!queue_delayed_work(exs_lane_wq, &lane->work, 0) &&
	    READ_ONCE(lane->backoff))
		mod_delayed_work(exs_lane_wq, &lane->work, 0);
	return 0;
}

/* Whether the lane has no operation, and no offer that could be returned to it. */
static bool exs_lane_unused(const struct exs_lane *lane)
{
	return list_empty(&lane->ops) && !lane->offered;
}

/* The same, and no thread will call exs_lane_left() for it any more. */
static bool exs_lane_empty(const struct exs_lane *lane)
{
	return exs_lane_unused(lane) && !lane->leaving;
}

/*
 * For the owner. Return: the operation to try; NULL: the lane is @going, or idle,
 * and then may be gone.
 */
static struct exs_op *exs_lane_next(struct exs_lane *lane, bool *going)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);
	struct exs_op *op;

	spin_lock(&b->lock);
	op = lane->leaving ? NULL :
			     list_first_entry_or_null(&lane->ops, struct exs_op, foreign.node);
	lane->current_op = op;
	lane->going = *going = exs_lane_empty(lane);
	lane->idle = !op && !lane->going;
	spin_unlock(&b->lock);
	return op;
}

/* For the owner: the current operation is over. @event: its event will follow. */
static void exs_lane_drop(struct exs_lane *lane, struct exs_op *op, bool event)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);

	spin_lock(&b->lock);
	list_del_init(&op->foreign.node);
	lane->current_op = NULL;
	lane->leaving += event;
	spin_unlock(&b->lock);
}

/* An accept has become a token, unless its queue is dead or its submitter has ended. */
static void exs_lane_end_accept(struct exs_op *op)
{
	if (!exs_op_complete(op, 0, 0, op->conn.token))
		exs_token_free_offer(op);
}

/* With its event or without. */
static void exs_lane_post(struct exs_op *op, long res)
{
	if (op->foreign.discard)
		exs_op_discard(op);
	else if (op->foreign.offered)
		exs_lane_end_accept(op);
	else
		exs_op_complete(op, res, res < 0 ? 0 : op->foreign.flags, 0);
}

/* Waiters: exs_lane_issue(), exs_lane_wait_cancelled(), exs_lane_wait_gone(). */
static void exs_lane_tell(struct sock *sk)
{
	/*
	 * wake_up_var() looks for waiting threads without a lock. So what they wait for must be
	 * visible before it looks.
	 */
	smp_mb();
	wake_up_var(sk);
}

/*
 * The event of an operation that had left is there. Those behind it are tried: the socket does
 * not wake them as long as the first waits for something else, as a file, or room that a
 * shutdown does not need. If there are none, a thread that has the event finds that nothing
 * waits: its next operation gets a new lane, so it must not find this one.
 */
static void exs_lane_left(struct exs_lane *lane)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);

	spin_lock(&b->lock);
	lane->leaving--;
	lane->going = exs_lane_empty(lane);
	if (lane->idle)
		mod_delayed_work(exs_lane_wq, &lane->work, 0);
	spin_unlock(&b->lock);
}

/* @op has left @lane, which stays until this call. */
static void exs_lane_end(struct exs_lane *lane, struct exs_op *op, long res)
{
	struct sock *sk = op->sk;	/* only a name later */

	exs_lane_post(op, res);
	exs_lane_left(lane);
	exs_lane_tell(sk);
}

static void exs_lane_finish(struct exs_lane *lane, struct exs_op *op, long res)
{
	exs_lane_drop(lane, op, true);
	exs_lane_end(lane, op, res);
}

/*
 * The owner's last act, unless the current operation was cancelled, or there is news:
 * the lane may go at any time from then on. Return: whether the owner must go on.
 */
static bool exs_lane_leave(struct exs_lane *lane)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);
	bool go_on;

	spin_lock(&b->lock);
	go_on = lane->current_op->foreign.cancelled || lane->news;
	lane->news = false;
	if (!go_on) {
		lane->current_op = NULL;
		lane->idle = true;
		if (lane->backoff)
			queue_delayed_work(exs_lane_wq, &lane->work, lane->backoff);
	}
	spin_unlock(&b->lock);
	return go_on;
}

/*
 * If all waiting connections are offered, that is not news, and neither is room for
 * data that were not read yet. The thread that returns an offer, or has read, wakes
 * the lane.
 */
static bool exs_lane_ready(const struct exs_lane *lane)
{
	struct socket *sock = lane->sock;

	if (READ_ONCE(lane->offered) || lane->current_op->foreign.waits)
		return false;
	return READ_ONCE(sock->ops)->poll(lane->file, sock, NULL) &
	       exs_lane_events(lane);
}

static unsigned int exs_lane_backoff(const struct exs_lane *lane)
{
	unsigned int most = lane->current_op->opcode == EXS_OP_CONNECT ? EXS_BACKOFF_CONNECT :
									  EXS_BACKOFF_MAX;

	return clamp(lane->backoff * 2, 1U, most);
}

/* For the owner: the socket said EAGAIN. Return: whether to go on. */
static bool exs_lane_blocked(struct exs_lane *lane)
{
	unsigned int delay = 0;

	if (!lane->armed) {
		add_wait_queue(&lane->sock->wq.wait, &lane->wait);
		lane->armed = true;
		return true;
	}
	if (exs_lane_ready(lane)) {
		delay = exs_lane_backoff(lane);
		exs_count(lane->xn, foreign_backoffs, 1);
	}
	WRITE_ONCE(lane->backoff, delay);
	return exs_lane_leave(lane);
}

/* The result of a cancelled operation. */
static long exs_lane_cancelled(const struct exs_op *op)
{
	return op->foreign.done && !op->foreign.whole ? op->foreign.done : -ECANCELED;
}

/* Return: whether to go on; if not, the lane may be gone. */
static bool exs_lane_step(struct exs_lane *lane, struct exs_op *op)
{
	bool cancelled = READ_ONCE(op->foreign.cancelled), go_on = true;
	long res = cancelled ? exs_lane_cancelled(op) :
			       exs_foreign_try(op, lane->sock);

	if (res == -EAGAIN) {
		go_on = exs_lane_blocked(lane);
	} else {
		WRITE_ONCE(lane->backoff, 0);
		if (res != -EIOCBQUEUED)
			exs_lane_finish(lane, op, res);
	}
	if (!cancelled)
		exs_count(lane->xn, foreign_retries, 1);
	return go_on;
}

static void exs_lane_free(struct exs_lane *lane)
{
	if (lane->user)
		exs_limit_uncharge(EXS_LIMIT_OPS, 1, lane->user);
	exs_live(lane->xn, lanes, -1);
	exs_net_put(lane->xn);
	kfree(lane);
	module_put(THIS_MODULE);
}

/* No thread waits for the lane's end. The caller has another reference to the file. */
static void exs_lane_undo(struct exs_lane *lane)
{
	fput(lane->file);
	exs_lane_free(lane);
}

/*
 * The program has closed its descriptors while an operation was under way, so no close(2) of its
 * own can linger, and neither must the worker. A time of 0 does not wait: it is for a reset.
 */
static void exs_lane_no_linger(struct exs_lane *lane)
{
	struct sock *sk = sock_from_file(lane->file)->sk;

	lock_sock(sk);
	if (sk->sk_lingertime)
		sock_reset_flag(sk, SOCK_LINGER);
	release_sock(sk);
}

/* If the file has no other reference, no thread can get one any more. */
static void exs_lane_put_file(struct exs_lane *lane)
{
	if (exs_fput_unless_last(lane->file))
		return;
	exs_lane_no_linger(lane);
	__fput_sync(lane->file);
}

/*
 * Called by the last owner. From here on the work is not queued again. A wake-up or a
 * cancellation may have queued it after this owner began, so it is cancelled. It is not running,
 * unless this is the work.
 */
static void exs_lane_go(struct exs_lane *lane)
{
	struct sock *sk = lane->sock->sk;	/* only a name later */
	struct exs_lane_bucket *b = exs_lane_bucket(sk);

	if (lane->armed)
		remove_wait_queue(&lane->sock->wq.wait, &lane->wait);
	cancel_delayed_work(&lane->work);
	exs_lane_put_file(lane);
	spin_lock(&b->lock);
	hlist_del(&lane->node);
	spin_unlock(&b->lock);
	exs_lane_tell(sk);
	exs_lane_free(lane);
}

/* The owner has tried often enough: the work goes on when it has its next turn. */
static void exs_lane_pause(struct exs_lane *lane)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);

	spin_lock(&b->lock);
	lane->current_op = NULL;
	lane->idle = true;
	queue_delayed_work(exs_lane_wq, &lane->work, 0);
	spin_unlock(&b->lock);
}

static void exs_lane_run(struct exs_lane *lane)
{
	unsigned int tries = 0;
	struct exs_op *op;
	bool going;

	while ((op = exs_lane_next(lane, &going))) {
		if (!exs_lane_step(lane, op))
			return;
		if (++tries == EXS_LANE_TRIES) {
			exs_lane_pause(lane);
			return;
		}
		cond_resched();
	}
	if (going)
		exs_lane_go(lane);
}

/* A try may wait for the socket's lock, so it takes a turn. A lane without a turn has no owner. */
static void exs_lane_work(struct work_struct *work)
{
	struct exs_lane *lane = container_of(to_delayed_work(work), struct exs_lane, work);
	struct exs_user *user = lane->user;

	if (exs_turn_take(user, &lane->turn) <= 0)
		return;
	exs_lane_run(lane);
	exs_turn_pass(user, EXS_POOL_LANE);
}

static void exs_lane_again(struct exs_turn *turn)
{
	mod_delayed_work(exs_lane_wq, &container_of(turn, struct exs_lane, turn)->work, 0);
}

static struct exs_lane *exs_lane_new(struct exs_op *op, struct socket *sock,
				     enum exs_lane_dir dir)
{
	struct exs_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL_ACCOUNT);

	if (!lane)
		return NULL;
	__module_get(THIS_MODULE);
	lane->xn = exs_net_get(op->queue->xn);
	lane->file = get_file(sock->file);
	lane->sock = sock;
	lane->dir = dir;
	INIT_LIST_HEAD(&lane->ops);
	init_waitqueue_func_entry(&lane->wait, exs_lane_wake);
	exs_turn_init(&lane->turn, EXS_POOL_LANE, exs_lane_again);
	INIT_DELAYED_WORK(&lane->work, exs_lane_work);
	exs_live(lane->xn, lanes, 1);
	return lane;
}

static struct exs_lane *exs_lane_find(struct exs_lane_bucket *b, const struct file *file,
				      enum exs_lane_dir dir)
{
	struct exs_lane *lane;

	lockdep_assert_held(&b->lock);
	hlist_for_each_entry(lane, &b->lanes, node)
		if (lane->file == file && lane->dir == dir && !lane->going)
			return lane;
	return NULL;
}

/* An idle lane without operations waits for no event that concerns new ones. */
static void exs_lane_add(struct exs_lane *lane, struct exs_op *op)
{
	if (lane->idle && list_empty(&lane->ops))
		mod_delayed_work(exs_lane_wq, &lane->work, 0);
	op->foreign.lane = lane;
	list_add_tail(&op->foreign.node, &lane->ops);
}

/* A lane holds a file, even when the program is gone: so it is charged like an operation. */
static struct exs_lane *exs_lane_insert(struct exs_lane_bucket *b, struct exs_lane *lane,
					struct exs_op *op)
{
	struct exs_user *user = op->queue->user;
	int err = exs_limit_charge_user(lane->xn, EXS_LIMIT_OPS, 1, user);

	lockdep_assert_held(&b->lock);
	if (err)
		return ERR_PTR(err);
	lane->user = user;
	lane->current_op = op;
	hlist_add_head(&lane->node, &b->lanes);
	exs_lane_add(lane, op);
	return lane;
}

/*
 * Only after the last event of a lane is posted: otherwise the next operation might
 * have its own sooner. Also, a thread that has that event finds that nothing waits.
 * Return: the lane, the caller's if it is @new; NULL: not yet; or ERR_PTR.
 */
static struct exs_lane *exs_lane_join(struct exs_lane *new, struct exs_op *op)
{
	struct exs_lane_bucket *b = exs_lane_bucket(op->sk);
	bool was_unused = false;
	struct exs_lane *lane;

	spin_lock(&b->lock);
	lane = exs_lane_find(b, new->file, new->dir);
	if (!lane) {
		lane = exs_lane_insert(b, new, op);
	} else if (lane->leaving && list_empty(&lane->ops)) {
		lane = NULL;
	} else {
		was_unused = exs_lane_unused(lane);
		exs_lane_add(lane, op);
	}
	spin_unlock(&b->lock);
	/* The lane is in use again: exs_lane_wait_gone() need not wait for it any more. */
	if (was_unused)
		exs_lane_tell(op->sk);
	return lane;
}

/* The first owner hands the lane on, with the operations left in it. */
static void exs_lane_hand_over(struct exs_lane *lane)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);
	struct sock *sk = lane->sock->sk;	/* only a name later */
	bool empty;

	spin_lock(&b->lock);
	lane->current_op = NULL;
	empty = exs_lane_empty(lane);
	if (empty) {
		hlist_del(&lane->node);
	} else {
		lane->idle = true;
		queue_delayed_work(exs_lane_wq, &lane->work, 0);
	}
	spin_unlock(&b->lock);
	if (!empty)
		return;
	exs_lane_undo(lane);
	exs_lane_tell(sk);
}

long exs_lane_issue(struct exs_op *op, struct socket *sock, enum exs_lane_dir dir)
{
	struct exs_lane *lane = exs_lane_new(op, sock, dir), *joined;
	long res;
	int err;

	if (!lane)
		return -ENOMEM;
	err = wait_var_event_killable(op->sk, (joined = exs_lane_join(lane, op)));
	if (err || joined != lane) {
		exs_lane_undo(lane);
		return err ? -ECANCELED : PTR_ERR_OR_ZERO(joined) ?: -EIOCBQUEUED;
	}
	res = exs_foreign_try(op, sock);
	if (res >= 0)
		exs_lane_finish(lane, op, res);
	else if (res != -EAGAIN && res != -EIOCBQUEUED)
		exs_lane_drop(lane, op, false);
	exs_lane_hand_over(lane);
	return res >= 0 || res == -EAGAIN ? -EIOCBQUEUED : res;
}

/*
 * Return: its lane: the caller must end the operation, by exs_lane_end(). NULL: the thread that
 * is trying it ends it. If no thread is, it has ended, and its lane may be gone.
 */
static struct exs_lane *exs_lane_take_back(struct exs_op *op, bool discard)
{
	struct exs_lane_bucket *b = exs_lane_bucket(op->sk);
	struct exs_lane *lane = NULL;

	spin_lock(&b->lock);
	if (!list_empty(&op->foreign.node)) {
		op->foreign.discard |= discard;
		lane = op->foreign.lane;
		if (lane->current_op == op) {
			WRITE_ONCE(op->foreign.cancelled, true);
			lane = NULL;
		} else {
			list_del_init(&op->foreign.node);
			lane->leaving++;
		}
	}
	spin_unlock(&b->lock);
	return lane;
}

long exs_lane_offer(struct exs_op *op, unsigned int waiting)
{
	struct exs_lane_bucket *b = exs_lane_bucket(op->sk);
	struct exs_lane *lane = op->foreign.lane;

	spin_lock(&b->lock);
	if (lane->offered < waiting) {
		WRITE_ONCE(lane->offered, lane->offered + 1);
		op->foreign.offered = true;
	}
	spin_unlock(&b->lock);
	return op->foreign.offered ? 0 : -EAGAIN;
}

static void exs_lane_returned(struct exs_lane *lane)
{
	struct exs_lane_bucket *b = exs_lane_bucket_of(lane);

	spin_lock(&b->lock);
	WRITE_ONCE(lane->offered, lane->offered - 1);
	lane->news = true;
	if (lane->idle)
		mod_delayed_work(exs_lane_wq, &lane->work, 0);
	spin_unlock(&b->lock);
}

void exs_lane_return(struct exs_op *op)
{
	op->foreign.offered = false;
	exs_lane_returned(op->foreign.lane);
}

/* The lane stays until then: another one would be charged, too. */
void exs_lane_return_again(struct exs_op *op, struct socket *sock)
{
	struct exs_lane *lane = op->foreign.lane;

	op->foreign.offered = false;
	/* A thread in exs_lane_wait_cancelled() may wait for an operation that has ended. */
	if (exs_op_again(op, sock))
		exs_lane_tell(sock->sk);
	exs_lane_returned(lane);
}

void exs_lane_news(struct exs_op *op)
{
	struct exs_lane_bucket *b = exs_lane_bucket(op->sk);
	struct exs_lane *lane;

	spin_lock(&b->lock);
	/* If the operation is not in the lane yet, the thread that adds it will try it. */
	if (!list_empty(&op->foreign.node)) {
		lane = op->foreign.lane;
		lane->news = true;
		if (lane->idle)
			mod_delayed_work(exs_lane_wq, &lane->work, 0);
	}
	spin_unlock(&b->lock);
}

void exs_lane_cancel(struct exs_op *op)
{
	struct exs_lane *lane = exs_lane_take_back(op, false);

	if (lane)
		exs_lane_end(lane, op, exs_lane_cancelled(op));
}

static bool exs_lane_is_cancelled(const struct exs_op *op)
{
	return atomic_read(&op->state) == (EXS_OP_ISSUED | EXS_OP_CANCEL);
}

static bool exs_lane_is_over(const struct exs_op *op)
{
	bool over;

	spin_lock(&op->queue->lock);
	over = !op->inflight;
	spin_unlock(&op->queue->lock);
	return over;
}

/*
 * This wait has no limit: a try may have to wait for the socket's lock, which another
 * call may hold for ever. A killed task does not wait.
 */
static void exs_lane_wait_over(struct exs_op *op)
{
	wait_var_event_killable(op->sk, exs_lane_is_over(op));
}

/* One after the other, so that all of them together take one walk. */
void exs_lane_wait_cancelled(const struct exs_op *op)
{
	struct exs_queue *q = op->queue;
	struct exs_op *other;
	struct exs_walk w;

	exs_walk_begin(q, &w, op->sk, false);
	while ((other = exs_walk_next(q, &w))) {
		if (!exs_lane_is_cancelled(other))
			continue;
		refcount_inc(&other->ref);
		spin_unlock(&q->lock);
		exs_lane_wait_over(other);
		exs_op_put(other);
		spin_lock(&q->lock);
	}
	exs_walk_end(q, &w);
}

/* Lanes of other users do not count, as their turns may never come. */
static bool exs_lane_is_going(const struct exs_op *op, const struct file *file)
{
	struct exs_lane_bucket *b = exs_lane_bucket(op->sk);
	struct exs_lane *lane;
	bool going = false;

	spin_lock(&b->lock);
	hlist_for_each_entry(lane, &b->lanes, node)
		going |= lane->file == file && lane->user == op->queue->user &&
			 (lane->going || exs_lane_unused(lane));
	spin_unlock(&b->lock);
	return going;
}

void exs_lane_wait_gone(const struct exs_op *op, const struct file *file)
{
	wait_var_event_killable(op->sk, !exs_lane_is_going(op, file));
}

bool exs_lane_withdraw(struct exs_op *op)
{
	struct exs_lane *lane;

	atomic_or(EXS_OP_CANCEL, &op->state);
	lane = exs_lane_take_back(op, true);
	if (lane)
		exs_lane_end(lane, op, -ECANCELED);
	else
		exs_lane_wait_over(op);
	return op->foreign.discard;
}

/* Workers that may block on a socket that another call has locked. */
int exs_lanes_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(exs_lane_buckets); i++)
		spin_lock_init(&exs_lane_buckets[i].lock);
	exs_lane_wq = alloc_workqueue("exs_lane", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return exs_lane_wq ? 0 : -ENOMEM;
}

void exs_lanes_exit(void)
{
	destroy_workqueue(exs_lane_wq);
}
