// SPDX-License-Identifier: GPL-2.0
/*
 * Running a connection: pull from the engine what is to be done, and do it.
 *
 * One thread at a time runs a connection; another that has news sets run_again
 * and leaves. So transfers end in order although nothing is locked while many bytes
 * are copied or the caller's completion runs.
 */
#include <linux/kernel.h>
#include <linux/vmalloc.h>

#include "conn.h"
#include "limits.h"
#include "message.h"
#include "run.h"
#include "sock.h"
#include "stats.h"

/*
 * What a runner does before it hands over to a worker: it may be a program that only
 * wanted to submit something, and what it does may be others'. A round, a transfer that
 * ends, and a page that is copied count one each.
 */
#define EXS_RUN_BUDGET	256
#define EXS_RING_RETRY_NS	(100 * NSEC_PER_MSEC)

static void exs_run_fail(struct exs_conn *conn, int err)
	__must_hold(&conn->lock)
{
	spin_unlock(&conn->lock);
	exs_conn_lost(conn, err);
	spin_lock(&conn->lock);
}

#define EXS_REPORT(stat, counter) do {						\
	if (now->stat != old->stat) {						\
		exs_count(conn->xn, counter, now->stat - old->stat);			\
		old->stat = now->stat;						\
	}									\
} while (0)

/* What happened is counted before a program hears of it. */
exs_hot
static void exs_run_report(struct exs_conn *conn)
{
	const struct exs_engine_stats *now = &conn->engine.stats;
	struct exs_engine_stats *old = &conn->reported;

	lockdep_assert_held(&conn->lock);
	EXS_REPORT(direct_bytes, direct_tx_bytes);
	EXS_REPORT(indirect_bytes, indirect_tx_bytes);
	EXS_REPORT(eager_bytes, eager_tx_bytes);
	EXS_REPORT(adverts_sent, adverts_tx);
	EXS_REPORT(adverts_dropped, adverts_dropped);
	EXS_REPORT(phases, phase_switches);
	EXS_REPORT(revokes, revokes);
	EXS_REPORT(credit_stalls, credit_stalls);
	EXS_REPORT(ring_stalls, ring_stalls);
}

/* Counts a piece of a send before it is posted: its completion may be quick. */
static void exs_run_account(struct exs_conn *conn, const struct exs_tx *tx)
{
	struct exs_xfer *x;

	if (tx->kind != EXS_TX_WRITE && tx->kind != EXS_TX_EAGER)
		return;
	exs_run_report(conn);
	x = exs_snd_xfer(tx->snd);
	x->tx_pending++;
	x->tx_bytes += tx->len;
	conn->tx_bytes += tx->len;
	if (tx->snd_done) {
		x->all_posted = true;
		x->result = x->snd.len;
	}
}

/* Before the engine decides what depends on the time, which streams do. */
static void exs_run_clock(struct exs_conn *conn)
{
	if (conn->socktype == EXS_WIRE_STREAM)
		exs_engine_clock(&conn->engine, ktime_get_ns(), conn->tx_bytes);
}

/*
 * Once it was set it is left alone, even if what it was for came true: running the
 * connection for nothing is cheap.
 */
static void exs_run_alarm(struct exs_conn *conn)
{
	u64 ring = conn->engine.ring_wanted ? conn->ring_after : 0;
	u64 at = min_not_zero(exs_engine_alarm(&conn->engine), ring);

	if (at && conn->state == EXS_CONN_UP)
		hrtimer_start(&conn->alarm, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

enum hrtimer_restart exs_conn_alarm(struct hrtimer *timer)
{
	exs_conn_kick(container_of(timer, struct exs_conn, alarm));
	return HRTIMER_NORESTART;
}

static void exs_run_transmit(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_ep *ep = conn->ep;
	struct exs_tx *tx = &conn->tx;
	int err = 0;

	lockdep_assert_held(&conn->lock);
	exs_run_clock(conn);
	while (conn->state == EXS_CONN_UP && ep->ops->room(ep) &&
	       exs_engine_next_tx(&conn->engine, ep->max_piece, tx)) {
		exs_run_account(conn, tx);
		err = ep->ops->post(ep, tx);
		if (err)
			break;
	}
	if (err) {
		exs_count(conn->xn, resets_transport, 1);
		exs_run_fail(conn, EIO);
	}
	exs_run_alarm(conn);
}

/* Kernel memory that a peer has us allocate: the user's, and in the user's cgroup. */
static int exs_ring_alloc(struct exs_conn *conn, u32 size)
{
	void *mem;
	int err;

	if (conn->ring_mem)
		return 0;
	if (!conn->ring_pages) {
		err = exs_limit_charge_user(conn->xn, EXS_LIMIT_PAGES, PFN_UP(size), conn->user);
		if (err)
			return err;
		conn->ring_pages = PFN_UP(size);
	}
	mem = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!mem)
		return -ENOMEM;
	exs_live(conn->xn, rings, 1);
	conn->ring_mem = mem;
	return 0;
}

static int exs_ring_make(struct exs_conn *conn, int size)
{
	struct mem_cgroup *old = set_active_memcg(conn->memcg);
	int err = exs_ring_alloc(conn, size);

	if (!err)
		err = conn->ep->ops->map_ring(conn->ep, conn->ring_mem, size);
	set_active_memcg(old);
	return err;
}

/* From now on it cannot be changed. */
static int exs_ring_size(struct exs_conn *conn)
{
	int size = exs_option(&conn->options, EXS_SO_RING);

	lockdep_assert_held(&conn->lock);
	if (size == EXS_RING_DEFAULT)
		size = exs_sysctl(conn->xn, ring_size);
	WRITE_ONCE(conn->options.value[EXS_SO_RING], size);
	conn->ring_made = size;
	return size;
}

/*
 * The peer wants to send and has nowhere to write: make our ring. As long as there is no
 * memory for it, the peer waits.
 */
static void exs_run_ring(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err, size;

	lockdep_assert_held(&conn->lock);
	if (!conn->engine.ring_wanted || conn->state != EXS_CONN_UP ||
	    (conn->ring_after && ktime_get_ns() < conn->ring_after))
		return;
	size = exs_ring_size(conn);
	if (!size)
		return;
	conn->ring_after = 0;
	conn->users++;
	spin_unlock(&conn->lock);
	err = exs_ring_make(conn, size);
	spin_lock(&conn->lock);
	exs_conn_unuse(conn);
	if (!err) {
		exs_engine_ring_ready(&conn->engine, size);
	} else if (err == -ENOMEM) {
		exs_count(conn->xn, memory_waits, 1);
		conn->ring_after = ktime_get_ns() + EXS_RING_RETRY_NS;
	} else {
		exs_run_fail(conn, ENOBUFS);
	}
}

void exs_conn_read_ring(struct exs_conn *conn, u32 off, u32 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->ep)
		conn->ep->ops->read_ring(conn->ep, off, len);
}

void exs_conn_wrote(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->ep)
		conn->ep->ops->wrote(conn->ep, x, off, len);
}

/*
 * Bytes that are as few as an eager message's are copied as those are, under the lock,
 * unless somebody waits for it or for the processor.
 */
static void exs_run_copy(struct exs_conn *conn, struct exs_xfer *x,
			 const struct exs_copy *copy)
	__must_hold(&conn->lock)
{
	const void *data = conn->ring_mem + copy->ring_off;

	exs_conn_read_ring(conn, copy->ring_off, copy->len);
	if (copy->len <= EXS_WIRE_DATA_MAX && !need_resched() &&
	    !spin_is_contended(&conn->lock)) {
		exs_xfer_put(x, copy->rcv_off, data, copy->len);
		return;
	}
	spin_unlock(&conn->lock);
	exs_xfer_put(x, copy->rcv_off, data, copy->len);
	spin_lock(&conn->lock);
}

/* Whether there may be more in this run; what there is comes in the next. */
static bool exs_run_afford(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->budget <= 0)
		conn->run_again = true;
	return conn->budget > 0;
}

static void exs_run_copies(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_copy copy;

	lockdep_assert_held(&conn->lock);
	while (exs_run_afford(conn) && exs_engine_next_copy(&conn->engine, &copy)) {
		struct exs_xfer *x = exs_rcv_xfer(copy.rcv);

		conn->budget -= PFN_UP(copy.len);

		exs_run_copy(conn, x, &copy);
		exs_conn_wrote(conn, x, copy.rcv_off, copy.len);
		exs_engine_copied(&conn->engine, &copy);
	}
}

static long exs_rcv_result(const struct exs_conn *conn, const struct exs_rcv *rcv)
{
	if (rcv->filled || (rcv->err == -ECANCELED && conn->read_shut))
		return rcv->filled;
	return rcv->err;
}

bool exs_conn_reader_first(struct exs_conn *conn)
{
	const struct exs_rcv *rcv;

	lockdep_assert_held(&conn->lock);
	rcv = list_first_entry_or_null(&conn->engine.receives, struct exs_rcv, node);
	return rcv && rcv->flags & EXS_RCV_READER;
}

static void exs_run_end_rcv(struct exs_conn *conn, struct exs_rcv *rcv)
{
	struct exs_xfer *x = exs_rcv_xfer(rcv);

	if (rcv->flags & EXS_RCV_READER) {
		conn->wake |= EPOLLIN;
		return;
	}
	x->ended = true;
	x->result = exs_rcv_result(conn, rcv);
	if (rcv->flags & EXS_RCV_TRUNCATED)
		x->msg_flags |= MSG_TRUNC;
	/* The end is no message, unlike one without bytes. */
	if (rcv->flags & EXS_RCV_EOF || rcv->err)
		x->msg_flags &= ~MSG_EOR;
	if (exs_conn_reader_first(conn))
		conn->wake |= EPOLLIN;
	/*
	 * The peer's key must be dead before the program has its buffer back.
	 * Once teardown was begun only the drained queue pair proves that.
	 */
	if (conn->state == EXS_CONN_UP)
		x->invalidating = conn->ep->ops->invalidate(conn->ep, x);
	else
		x->invalidating = x->map.valid && !conn->drained;
	/* In their order. */
	list_move_tail(&x->link, x->invalidating || !list_empty(&conn->ending) ?
		       &conn->ending : &conn->finished);
}

static void exs_run_end_snd(struct exs_conn *conn, struct exs_snd *snd)
{
	struct exs_xfer *x = exs_snd_xfer(snd);

	x->all_posted = true;
	/* Of a send that is taken back all that was committed goes out; of one
	 * that the connection's end cut off nobody knows.
	 */
	x->result = snd->err == -ECANCELED && snd->taken ? snd->taken : snd->err;
	if (!x->tx_pending)
		list_move_tail(&x->link, &conn->finished);
}

/*
 * Take what the engine is done with; pass on what nothing refers to any more. Nobody else
 * takes anything off these lists, so the lock may be dropped meanwhile.
 */
exs_hot
static void exs_run_ended(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x;
	struct exs_rcv *rcv;
	struct exs_snd *snd;

	lockdep_assert_held(&conn->lock);
	if (!conn->engine_up)
		return;
	do {
		cond_resched_lock(&conn->lock);
		while ((snd = exs_engine_next_snd_done(&conn->engine)))
			exs_run_end_snd(conn, snd);
		while ((rcv = exs_engine_next_rcv_done(&conn->engine)))
			exs_run_end_rcv(conn, rcv);
	} while (exs_engine_settle(&conn->engine));
	while ((x = list_first_entry_or_null(&conn->ending, struct exs_xfer, link)) &&
	       (!x->invalidating || conn->drained)) {
		list_move_tail(&x->link, &conn->finished);
		cond_resched_lock(&conn->lock);
	}
}

exs_hot
static void exs_run_finish(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x;

	lockdep_assert_held(&conn->lock);
	while (exs_run_afford(conn) &&
	       (x = list_first_entry_or_null(&conn->finished, struct exs_xfer, link))) {
		conn->budget--;
		list_del(&x->link);
		list_del_init(&x->sibling);	/* its call may be gone after ->done */
		/* While it is mapped its endpoint lives: drained() waits for us. */
		spin_unlock(&conn->lock);
		if (x->map.mapped)
			conn->ep->ops->unmap(conn->ep, x);
		x->done(x, x->result);
		cond_resched();
		spin_lock(&conn->lock);
	}
}

/*
 * Receives that wait for a plain recv() before them outlive the endpoint. Only who runs
 * the connection takes transfers off the list, so they stay there without the lock.
 */
static void exs_run_unmap_rest(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x;

	list_for_each_entry(x, &conn->xfers, link) {
		if (!x->map.mapped) {
			cond_resched_lock(&conn->lock);
			continue;
		}
		spin_unlock(&conn->lock);
		conn->ep->ops->unmap(conn->ep, x);
		cond_resched();
		spin_lock(&conn->lock);
	}
}

/* Sends that were posted, and the device never said what became of them. @err: 0: they arrived. */
static void exs_run_end_posted(struct exs_conn *conn, int err)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x, *next;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry_safe(x, next, &conn->xfers, link) {
		if (x->is_recv)
			continue;
		x->all_posted = true;
		if (err)
			x->result = err;
		list_move_tail(&x->link, &conn->finished);
		cond_resched_lock(&conn->lock);
	}
}

/* The queue pair is drained: end what is left, with the truth. */
static void exs_run_end_all(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err = conn->end_err ? -conn->end_err : -EPIPE;
	bool arrived = exs_conn_arrived(conn);

	lockdep_assert_held(&conn->lock);
	if (conn->engine_up)
		exs_engine_fail(&conn->engine, err);
	exs_run_ended(conn);
	exs_run_end_posted(conn, arrived ? 0 : err);
	exs_run_report(conn);
}

/* Once, and then until all that was ended so has had its end. */
static void exs_run_drained(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->drained || conn->state == EXS_CONN_DEAD)
		return;
	if (!conn->all_ended)
		exs_run_end_all(conn);
	conn->all_ended = true;
	exs_run_finish(conn);
	if (!list_empty(&conn->finished))
		return;
	/* Receives that waited for a fetch, which is over now. */
	exs_run_ended(conn);
	if (!list_empty(&conn->finished)) {
		conn->run_again = true;
		return;
	}
	exs_run_unmap_rest(conn);
	WRITE_ONCE(conn->state, EXS_CONN_DEAD);
	conn->wake |= EPOLLIN | EPOLLOUT | EPOLLHUP;
	conn->run_again = true;		/* for what is in the ring */
}

/* An orphan that has nothing left to deliver. */
static void exs_run_orphan(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (conn->orphan && conn->state == EXS_CONN_UP && exs_conn_flushed(conn))
		exs_run_fail(conn, 0);
}

/* Every send has had its end, and the FIN: so have asynchronous shutdowns. */
static void exs_run_flushed(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err = 0;

	lockdep_assert_held(&conn->lock);
	if (list_empty_careful(&conn->flushers))
		return;
	if (!exs_conn_flushed(conn)) {
		if (conn->state != EXS_CONN_DEAD)
			return;
		err = -conn->end_err;
	}
	spin_unlock(&conn->lock);
	exs_closers_tell(&conn->flushers, err);
	spin_lock(&conn->lock);
}

/*
 * Every transfer has had its end: so has an asynchronous close. What is on the
 * list keeps the socket, and that this connection.
 */
static void exs_run_closed(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err = -conn->end_err;

	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_DEAD || !list_empty(&conn->xfers) ||
	    !list_empty(&conn->ending) || !list_empty(&conn->finished))
		return;
	spin_unlock(&conn->lock);
	exs_closers_tell(&conn->closers, err);
	spin_lock(&conn->lock);
}

static void exs_run_wake(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	__poll_t events = conn->wake;
	struct sock *sk = conn->sk;
	bool waiters;

	lockdep_assert_held(&conn->lock);
	if (!events)
		return;
	conn->wake = 0;
	waiters = wq_has_sleeper(&conn->wait);
	if (sk && !exs_sock_has_audience(sk, events))
		sk = NULL;
	if (!waiters && !sk)
		return;
	if (sk)
		sock_hold(sk);
	spin_unlock(&conn->lock);
	if (waiters)
		wake_up_all(&conn->wait);
	if (sk) {
		exs_sock_wake(sk, events);
		sock_put(sk);
	}
	spin_lock(&conn->lock);
}

/*
 * A cancelled receive whose memory the peer may write to ends with the peer's
 * answer. That has to come within net.exs.stall_timeout, after each REVOKE and
 * after what the peer had begun to send before it heard of it. There is an end to
 * that: data uses up the adverts that are left, or makes them void.
 */
static void exs_run_revokes(struct exs_conn *conn)
{
	const struct exs_engine *e = &conn->engine;
	bool waits = e->cancels && conn->state == EXS_CONN_UP;
	unsigned long patience;

	lockdep_assert_held(&conn->lock);
	if (!waits && conn->revoking && cancel_delayed_work(&conn->revoke_work))
		exs_conn_put(conn);	/* not the last: our caller's */
	if (waits && (!conn->revoking || conn->revokes != e->stats.revokes ||
		      conn->revoke_rp != e->rp)) {
		patience = msecs_to_jiffies(exs_sysctl_cap(conn->xn, stall_timeout));
		conn->revokes = e->stats.revokes;
		conn->revoke_rp = e->rp;
		conn->revoke_by = jiffies + patience;
		if (!mod_delayed_work(exs_run_wq, &conn->revoke_work, patience))
			exs_conn_get(conn);
	}
	conn->revoking = waits;
}

static void exs_run_once(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	if (conn->engine_up) {
		exs_run_ring(conn);
		exs_message_fetch(conn);
		exs_run_copies(conn);
		exs_run_ended(conn);
		exs_run_transmit(conn);
		exs_run_revokes(conn);
	}
	exs_run_report(conn);
	exs_run_finish(conn);
	exs_run_drained(conn);
	exs_run_flushed(conn);
	exs_run_orphan(conn);
	exs_run_closed(conn);
	exs_run_wake(conn);
}

void exs_conn_kick(struct exs_conn *conn)
{
	exs_conn_get(conn);
	if (!queue_work(exs_run_wq, &conn->run_work))
		exs_conn_put(conn);	/* not the last: our caller's */
}

exs_hot
void exs_conn_run_locked(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	conn->run_again = true;
	if (conn->running)
		return;
	conn->running = true;
	conn->budget = EXS_RUN_BUDGET;
	while (conn->run_again && conn->budget-- > 0) {
		conn->run_again = false;
		exs_run_once(conn);
	}
	conn->running = false;
	if (conn->run_again)
		exs_conn_kick(conn);
	/* Those who wait for the runner to leave: exs_conn_drained(). */
	if (conn->drained)
		wake_up_all(&conn->wait);
}

exs_hot
void exs_conn_run(struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	exs_conn_run_locked(conn);
	spin_unlock(&conn->lock);
}

void exs_conn_run_work(struct work_struct *work)
{
	struct exs_conn *conn = container_of(work, struct exs_conn, run_work);

	exs_conn_run(conn);
	exs_conn_put(conn);
}

exs_hot
void exs_conn_sent(struct exs_conn *conn, struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	if (--x->tx_pending)
		return;
	conn->tx_bytes -= x->tx_bytes;
	x->tx_bytes = 0;
	if (x->all_posted)
		list_move_tail(&x->link, &conn->finished);
}

void exs_conn_fin_delivered(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->fin_delivered = true;
	conn->wake |= EPOLLOUT;
}

void exs_conn_invalidated(struct exs_conn *conn, struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	exs_count(conn->xn, invalidations, 1);
	x->invalidating = false;
}

static void exs_conn_eager(struct exs_conn *conn, struct exs_rcv *rcv)
{
	const struct exs_msg *msg = &conn->msg;
	u32 len;

	if (!rcv) {
		exs_message_keep(conn, msg->data, msg->len);
		return;
	}
	len = min_t(u64, msg->len, rcv->len);
	exs_xfer_put(exs_rcv_xfer(rcv), 0, msg->data, len);
	exs_conn_wrote(conn, exs_rcv_xfer(rcv), 0, len);
}

/* Whether it is a message that no receive waits for. */
static bool exs_conn_keeps(const struct exs_conn *conn, const struct exs_msg *msg)
{
	return msg->type == EXS_MSG_EAGER && list_empty(&conn->engine.receives);
}

exs_hot
int exs_conn_received(struct exs_conn *conn, const void *buf, u32 len, bool invalidates)
{
	struct exs_rcv *rcv = NULL;

	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return 0;
	exs_run_clock(conn);
	if (exs_wire_get_msg(buf, len, &conn->msg) < 0 ||
	    (invalidates && conn->msg.type != EXS_MSG_WRITTEN))
		return -EPROTO;
	if (exs_conn_keeps(conn, &conn->msg) && !exs_message_reserve(conn, conn->msg.len))
		return -ENOMEM;
	if (exs_engine_rx_msg(&conn->engine, &conn->msg, &rcv) < 0)
		return -EPROTO;
	conn->wake |= EPOLLIN;
	if (conn->msg.type == EXS_MSG_EAGER)
		exs_conn_eager(conn, rcv);
	/* Sleepers in poll() are woken by the bits that they asked for. */
	if (conn->msg.type == EXS_MSG_FIN)
		conn->wake |= EPOLLRDHUP | EPOLLHUP;
	return 0;
}

exs_hot
int exs_conn_received_imm(struct exs_conn *conn, u32 imm)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return 0;
	conn->wake |= EPOLLIN;
	return exs_engine_rx_imm(&conn->engine, imm);
}
