// SPDX-License-Identifier: GPL-2.0
/*
 * Running a connection: pull the pending work from the engine, and do it.
 *
 * One thread at a time runs a connection. Another thread that finds work sets run_again and leaves.
 * So transfers end in order, although no lock is held while many bytes are copied or the caller's
 * completion runs.
 */
#include <linux/kernel.h>
#include <linux/local_lock.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "conn.h"
#include "limits.h"
#include "message.h"
#include "run.h"
#include "sock.h"
#include "stats.h"

/*
 * The work of a runner before a worker takes over: the runner may be a program that only
 * wanted to submit something, and the work may be for other programs. A round, a transfer
 * that ends, and a copied page count one each. So the thread that took a batch of completions can
 * finish it, even if each brings as many messages as possible.
 */
#define EXS_RUN_BUDGET	320
#define EXS_RING_RETRY_NS	(100 * NSEC_PER_MSEC)
#define EXS_CREDITS_RETRY_NS	NSEC_PER_SEC

/*
 * Too large for the stack. A processor has one, so that a connection need not. It is used
 * under conn->lock, as sender or as receiver: neither comes to the other.
 */
struct exs_scratch {
	local_lock_t lock;
	union {
		struct exs_tx tx;
		struct exs_msg msg;
	};
};

static struct exs_scratch __percpu *exs_scratches;
static struct kmem_cache *exs_theirs_cache;

int exs_run_init(void)
{
	int cpu;

	exs_scratches = alloc_percpu(struct exs_scratch);
	exs_theirs_cache = KMEM_CACHE(exs_theirs, SLAB_ACCOUNT);
	if (!exs_scratches || !exs_theirs_cache) {
		exs_run_exit();
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu)
		local_lock_init(&per_cpu_ptr(exs_scratches, cpu)->lock);
	return 0;
}

void exs_run_exit(void)
{
	kmem_cache_destroy(exs_theirs_cache);
	free_percpu(exs_scratches);
}

/* Until exs_scratch_put(). conn->lock held. */
static struct exs_scratch *exs_scratch_get(void)
{
	local_lock(&exs_scratches->lock);
	return this_cpu_ptr(exs_scratches);
}

static void exs_scratch_put(void)
{
	local_unlock(&exs_scratches->lock);
}

static void exs_run_fail(struct exs_conn *conn, int err)
	__must_hold(&conn->lock)
{
	spin_unlock(&conn->lock);
	exs_conn_lost(conn, err);
	spin_lock(&conn->lock);
}

static __always_inline void exs_run_tell(struct exs_conn *conn, const u64 *now, u64 *old,
					 enum exs_count what)
{
	if (*now != *old) {
		exs_count_at(conn->xn, what, *now - *old);
		*old = *now;
	}
}

/* Count events before a program learns of them. */
exs_hot
static void exs_run_report(struct exs_conn *conn)
{
	const struct exs_engine_stats *now = &conn->engine.stats;
	struct exs_engine_stats *old = &conn->reported;

	lockdep_assert_held(&conn->lock);
	exs_run_tell(conn, &now->direct_bytes, &old->direct_bytes, EXS_COUNT_direct_tx_bytes);
	exs_run_tell(conn, &now->indirect_bytes, &old->indirect_bytes, EXS_COUNT_indirect_tx_bytes);
	exs_run_tell(conn, &now->eager_bytes, &old->eager_bytes, EXS_COUNT_eager_tx_bytes);
	exs_run_tell(conn, &now->joined_sends, &old->joined_sends, EXS_COUNT_joined_sends);
	exs_run_tell(conn, &now->adverts_sent, &old->adverts_sent, EXS_COUNT_adverts_tx);
	exs_run_tell(conn, &now->adverts_dropped, &old->adverts_dropped, EXS_COUNT_adverts_dropped);
	exs_run_tell(conn, &now->phases, &old->phases, EXS_COUNT_phase_switches);
	exs_run_tell(conn, &now->revokes, &old->revokes, EXS_COUNT_revokes);
	exs_run_tell(conn, &now->credits_sent, &old->credits_sent, EXS_COUNT_credits_tx);
	exs_run_tell(conn, &now->credit_stalls, &old->credit_stalls, EXS_COUNT_credit_stalls);
	exs_run_tell(conn, &now->ring_stalls, &old->ring_stalls, EXS_COUNT_ring_stalls);
}

/* Count a piece of a send before it is posted: it may complete at once. */
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

/* Called before the engine makes decisions that depend on time. Only streams have these. */
static void exs_run_clock(struct exs_conn *conn)
{
	if (conn->socktype == EXS_WIRE_STREAM)
		exs_engine_clock(&conn->engine, ktime_get_ns(), conn->tx_bytes);
}

/* A timer that is no longer needed is not stopped: an unnecessary run is cheap. */
static void exs_run_alarm(struct exs_conn *conn)
{
	u64 ring = conn->engine.ring_wanted ? conn->ring_after : 0;
	u64 credits = conn->engine.credits_wanted ? conn->credits_after : 0;
	u64 at = min_not_zero(exs_engine_alarm(&conn->engine), min_not_zero(ring, credits));

	if (at)
		hrtimer_start(&conn->alarm, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

enum hrtimer_restart exs_conn_alarm(struct hrtimer *timer)
{
	exs_conn_kick(container_of(timer, struct exs_conn, alarm));
	return HRTIMER_NORESTART;
}

static int exs_run_post(struct exs_conn *conn)
{
	struct exs_tx *tx = &exs_scratch_get()->tx;
	struct exs_ep *ep = conn->ep;
	int err = 0;

	while (!err && ep->ops->room(ep) &&
	       exs_engine_next_tx(&conn->engine, ep->max_piece, tx)) {
		exs_run_account(conn, tx);
		err = ep->ops->post(ep, tx);
	}
	err = ep->ops->flush(ep, err);
	exs_scratch_put();
	return err;
}

static void exs_run_transmit(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return;
	exs_run_clock(conn);
	exs_engine_hold_adverts(&conn->engine, conn->ep->adverts_wait);
	if (exs_run_post(conn)) {
		exs_count(conn->xn, resets_transport, 1);
		exs_run_fail(conn, EIO);
	}
	exs_run_alarm(conn);
}

void exs_conn_free_ring(struct exs_conn *conn)
{
	if (conn->ring_mem) {
		vfree(conn->ring_mem);
		exs_live(conn->xn, rings, -1);
	}
	if (conn->ring_pages)
		exs_peer_pages_uncharge(conn, conn->ring_pages);
	conn->ring_mem = NULL;
	conn->ring_pages = 0;
}

/* Kernel memory allocated for a peer: charged to the user and the user's cgroup. */
static int exs_ring_alloc(struct exs_conn *conn, u32 size)
{
	void *mem;
	int err;

	if (conn->ring_mem)
		return 0;
	err = exs_peer_pages_charge(conn, PFN_UP(size));
	if (err)
		return err;
	conn->ring_pages = PFN_UP(size);
	mem = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!mem) {
		exs_conn_free_ring(conn);
		return -ENOMEM;
	}
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
	/* A stream tries again. */
	if (err && conn->socktype == EXS_WIRE_SEQPACKET)
		exs_conn_free_ring(conn);
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

/* A stream waits for its ring. Messages do without one. */
static void exs_run_ring_failed(struct exs_conn *conn, int err)
{
	lockdep_assert_held(&conn->lock);
	if (conn->socktype == EXS_WIRE_SEQPACKET) {
		exs_engine_ring_refused(&conn->engine);
	} else if (err == -ENOMEM) {
		exs_count(conn->xn, memory_waits, 1);
		conn->ring_after = ktime_get_ns() + EXS_RING_RETRY_NS;
	} else if (err != -ENODATA) {
		exs_run_fail(conn, ENOBUFS);
	}
}

/* Make our ring if the peer can use it. */
static void exs_run_ring(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err, size;

	lockdep_assert_held(&conn->lock);
	if (!conn->engine.ring_wanted || conn->state != EXS_CONN_UP ||
	    (conn->ring_after && ktime_get_ns() < conn->ring_after))
		return;
	conn->ring_after = 0;
	if (!exs_run_may_allocate(conn))
		return;
	size = exs_ring_size(conn);
	if (!size)
		return exs_run_ring_failed(conn, -ENODATA);
	conn->users++;
	spin_unlock(&conn->lock);
	err = exs_ring_make(conn, size);
	spin_lock(&conn->lock);
	exs_conn_unuse(conn);
	if (err)
		exs_run_ring_failed(conn, err);
	else
		exs_engine_ring_ready(&conn->engine, size);
}

/* Post receives for more credits. Return: the number of credits. */
static u32 exs_credits_make(struct exs_conn *conn, u32 have, u32 want)
{
	u32 pages = PFN_UP((want - have) * EXS_WIRE_BUF_LEN);
	struct mem_cgroup *old;
	int err;

	if (exs_peer_pages_charge(conn, pages))
		return have;
	old = set_active_memcg(conn->memcg);
	err = conn->ep->ops->add_recvs(conn->ep, want - have);
	set_active_memcg(old);
	if (err == -ENOMEM) {
		exs_peer_pages_uncharge(conn, pages);
		return have;
	}
	/* One reference on the user is enough: all are uncharged together. */
	if (conn->recv_pages)
		exs_user_put(conn->user);
	conn->recv_pages += pages;
	exs_count(conn->xn, credits_grown, 1);
	return want;
}

/* The peer can use more credits: double them, if possible. */
static void exs_run_credits(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_engine *e = &conn->engine;
	u32 have = exs_engine_credits(e), want = 2 * have;
	bool asked = e->credits_wanted;

	lockdep_assert_held(&conn->lock);
	/* An accepted connection gets its user a little later. */
	if (!exs_engine_wants_credits(e) || conn->state != EXS_CONN_UP || !READ_ONCE(conn->user) ||
	    (conn->credits_after && ktime_get_ns() < conn->credits_after))
		return;
	e->credits_wanted = false;
	conn->credits_after = 0;
	if (!exs_engine_has(e, EXS_WIRE_F_ASK))
		want = EXS_FIXED_CREDITS;
	want = min(want, conn->ep->max_credits);
	if (want <= have)
		return;
	if (!exs_run_may_allocate(conn)) {
		e->credits_wanted = asked;
		return;
	}
	conn->users++;
	spin_unlock(&conn->lock);
	want = exs_credits_make(conn, have, want);
	spin_lock(&conn->lock);
	exs_conn_unuse(conn);
	if (want > have) {
		exs_engine_resize(e, want);
		/* A request of the peer meanwhile was about the former number. */
		e->credits_wanted = false;
		return;
	}
	/* A peer that asked does not ask again. */
	exs_count(conn->xn, credits_denied, 1);
	e->credits_wanted |= asked;
	conn->credits_after = ktime_get_ns() + EXS_CREDITS_RETRY_NS;
}

void exs_conn_read_ring(struct exs_conn *conn, u32 off, u32 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->ep && !(off & EXS_OFF_EAGER))
		conn->ep->ops->read_ring(conn->ep, off, len);
}

void exs_conn_writes(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->ep)
		conn->ep->ops->writes(conn->ep, x, off, len);
}

void exs_conn_wrote(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->ep)
		conn->ep->ops->wrote(conn->ep, x, off, len);
}

/*
 * A copy as short as an eager message's runs under the lock, unless another thread waits
 * for the lock or the processor.
 */
static void exs_run_copy(struct exs_conn *conn, struct exs_xfer *x,
			 const struct exs_copy *copy)
	__must_hold(&conn->lock)
{
	const void *data = exs_conn_ring_at(conn, copy->ring_off);

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

/* Whether this run may do more; otherwise the next run continues. */
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

		exs_conn_writes(conn, x, copy.rcv_off, copy.len);
		exs_run_copy(conn, x, &copy);
		exs_conn_wrote(conn, x, copy.rcv_off, copy.len);
		exs_engine_copied(&conn->engine, &copy);
		/* Wake readers that wait for the end: this may have been the last copy. */
		if (exs_engine_eof(&conn->engine))
			conn->wake |= EPOLLIN;
	}
}

/*
 * A receive after shutdown(SHUT_RD) gets the bytes that are there, and does not wait for more. It
 * ends after earlier receives, which may have to wait for the peer.
 */
static void exs_run_late_receives(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->late_recv || exs_engine_readable(&conn->engine))
		return;
	conn->late_recv = !list_empty(&conn->recvs);
	exs_conn_cancel_receives(conn, true);
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
	/* The end of the stream is not a message, but an empty message is one. */
	if (rcv->flags & EXS_RCV_EOF || rcv->err)
		x->msg_flags &= ~MSG_EOR;
	/* A recv(), perhaps with MSG_PEEK, can go on: see exs_message_wait(). */
	if (exs_conn_reader_first(conn) || list_empty(&conn->engine.receives))
		conn->wake |= EPOLLIN;
	/*
	 * The peer's key must be invalid before the program has its buffer back. After
	 * teardown has begun, only the drained queue pair proves that.
	 */
	if (conn->state == EXS_CONN_UP)
		x->invalidating = conn->ep->ops->invalidate(conn->ep, x);
	else
		x->invalidating = x->map.valid && !conn->drained;
	/* Keep the order of the receives. */
	list_move_tail(&x->link, x->invalidating || !list_empty(&conn->ending) ?
		       &conn->ending : &conn->finished);
}

/*
 * A send has ended. Unless @now, it is reported after all sends before it, even if it had no bytes.
 * The sends that wait behind it follow.
 */
exs_hot
static void exs_run_end_send(struct exs_conn *conn, struct exs_xfer *x, bool now)
{
	struct list_head *after = &conn->finished;

	if (!list_is_first(&x->link, &conn->sends))
		after = &list_prev_entry(x, link)->behind;
	x->waits = !now && after != &conn->finished;
	list_move_tail(&x->link, now ? &conn->finished : after);
	list_splice_tail_init(&x->behind, after);
}

/* Whether @x may end before earlier sends: no program sees its end, or it was cancelled. */
static bool exs_run_ends_now(const struct exs_xfer *x)
{
	return !x->call || x->snd.err == -ECANCELED;
}

static void exs_run_end_snd(struct exs_conn *conn, struct exs_snd *snd)
{
	struct exs_xfer *x = exs_snd_xfer(snd);

	x->all_posted = true;
	/* A cancelled send still transmits committed bytes. When the connection ends in the
	 * middle of a send, it is unknown how much arrived.
	 */
	x->result = snd->err == -ECANCELED && snd->taken ? snd->taken : snd->err;
	if (!x->tx_pending)
		exs_run_end_send(conn, x, exs_run_ends_now(x));
}

/*
 * Take finished operations from the engine, and pass on transfers that nothing refers to any more.
 * Only this function removes from these lists, so the lock may be dropped meanwhile.
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
		/* A mapped transfer keeps its endpoint: drained() waits for us. */
		spin_unlock(&conn->lock);
		if (x->map.mapped)
			conn->ep->ops->unmap(conn->ep, x);
		x->done(x, x->result);
		cond_resched();
		spin_lock(&conn->lock);
	}
}

/*
 * Receives that wait for a plain recv() before them outlive the endpoint. Only the runner
 * removes transfers from the list, so they stay there without the lock.
 */
static void exs_run_unmap_rest(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x;

	list_for_each_entry(x, &conn->recvs, link) {
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

/* End posted sends whose completion never came. @err: 0: they arrived. */
static void exs_run_end_posted(struct exs_conn *conn, int err)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x, *next;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry_safe(x, next, &conn->sends, link) {
		x->all_posted = true;
		if (err)
			x->result = err;
		exs_run_end_send(conn, x, false);
		cond_resched_lock(&conn->lock);
	}
}

/* The queue pair is drained: end all remaining transfers. */
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

/* End everything once; then repeat until all those transfers have finished. */
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
	/* Receives that waited for a fetch; it ends when its message was copied. */
	exs_run_ended(conn);
	if (conn->fetching || !list_empty(&conn->finished)) {
		conn->run_again = true;
		return;
	}
	exs_run_unmap_rest(conn);
	WRITE_ONCE(conn->state, EXS_CONN_DEAD);
	conn->wake |= EPOLLIN | EPOLLOUT | EPOLLHUP;
	conn->run_again = true;		/* for what is in the ring */
	/* The threads that attend to the connection drop it. */
	wake_up_all(&conn->attendants);
}

/* An orphan that has nothing left to deliver. */
static void exs_run_orphan(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (conn->orphan && conn->state == EXS_CONN_UP && exs_conn_flushed(conn))
		exs_run_fail(conn, 0);
}

/* Every send and the FIN are delivered: complete asynchronous shutdowns. */
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
 * Every transfer has ended: complete asynchronous closes. An entry on the list holds the
 * socket, which holds this connection.
 */
static void exs_run_closed(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	int err = -conn->end_err;

	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_DEAD || !list_empty(&conn->sends) ||
	    !list_empty(&conn->recvs) || !list_empty(&conn->ending) || !list_empty(&conn->finished))
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
 * The peer answers a REVOKE after the data that it had posted before. So arriving data extend
 * the time for the answer, if so many bytes come in a second.
 */
#define EXS_REVOKE_RATE		SZ_1M

/* Whether the time for the answer begins anew. @patience: its length. */
static bool exs_run_revoke_anew(struct exs_conn *conn, unsigned long patience)
{
	const struct exs_engine *e = &conn->engine;
	u64 bytes = e->stats.received_bytes;

	if (!conn->revoking || conn->revokes != e->stats.revokes) {
		conn->revoke_at = jiffies;
		conn->revoke_bytes = bytes;
	} else if (conn->revoke_rp == e->rp ||
		   time_after(jiffies, conn->revoke_at + patience + (unsigned long)
			      div_u64((bytes - conn->revoke_bytes) * HZ, EXS_REVOKE_RATE))) {
		return false;
	}
	conn->revokes = e->stats.revokes;
	conn->revoke_rp = e->rp;
	return true;
}

static void exs_run_await_answer(struct exs_conn *conn)
{
	unsigned long patience = msecs_to_jiffies(exs_sysctl_cap(conn->xn, stall_timeout));

	if (!exs_run_revoke_anew(conn, patience))
		return;
	conn->revoke_by = jiffies + patience;
	if (!mod_delayed_work(exs_run_wq, &conn->revoke_work, patience))
		exs_conn_get(conn);
}

/*
 * A cancelled receive whose memory the peer may write to ends with the peer's answer. The
 * answer must come within net.exs.stall_timeout, counted anew after each REVOKE and after
 * data that the peer began to send earlier.
 */
static void exs_run_revokes(struct exs_conn *conn)
{
	bool waits = conn->engine.cancels && conn->state == EXS_CONN_UP;

	lockdep_assert_held(&conn->lock);
	if (waits)
		exs_run_await_answer(conn);
	else if (conn->revoking && cancel_delayed_work(&conn->revoke_work))
		exs_conn_put(conn);	/* not the last: our caller's */
	conn->revoking = waits;
}

static void exs_run_once(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	if (conn->engine_up) {
		exs_run_ring(conn);
		exs_run_credits(conn);
		if (conn->socktype == EXS_WIRE_SEQPACKET)
			exs_message_fetch(conn);
		exs_run_copies(conn);
		exs_run_late_receives(conn);
		exs_run_ended(conn);
		exs_run_transmit(conn);
		exs_run_revokes(conn);
	}
	exs_run_report(conn);
	/* A program that has the event of a transfer finds the reason in SO_ERROR. */
	if (unlikely(conn->wake & EPOLLERR))
		exs_run_wake(conn);
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
	exs_conn_memory_kick(conn);
	if (conn->state == EXS_CONN_DEAD)
		exs_conn_go_on(conn);
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
		exs_run_end_send(conn, x, exs_run_ends_now(x));
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

/* Store eager bytes of a stream at @at, where the memory may wrap. */
static void exs_stream_keep(struct exs_conn *conn, u32 at, const void *data, u32 len)
{
	u32 n = min(len, conn->engine.config.ours.eager_space - at);

	memcpy(conn->eager_mem + at, data, n);
	memcpy(conn->eager_mem, data + n, len - n);
}

static void exs_conn_eager(struct exs_conn *conn, const struct exs_msg *msg,
			   struct exs_rcv *rcv, u32 at)
{
	u32 len;

	if (conn->socktype == EXS_WIRE_STREAM) {
		exs_stream_keep(conn, at, msg->data, msg->len);
		return;
	}
	if (!rcv) {
		exs_message_keep(conn, msg->data, msg->len);
		return;
	}
	len = min_t(u64, msg->len, rcv->len);
	exs_conn_writes(conn, exs_rcv_xfer(rcv), 0, len);
	exs_xfer_put(exs_rcv_xfer(rcv), 0, msg->data, len);
	exs_conn_wrote(conn, exs_rcv_xfer(rcv), 0, len);
}

/* How many messages without a receive @msg brings: it is one, or ends one or several. */
static u32 exs_conn_keeps(const struct exs_conn *conn, const struct exs_msg *msg)
{
	if (msg->type == EXS_MSG_WRITTEN)
		return exs_engine_keeps(&conn->engine, msg->a);
	return msg->type == EXS_MSG_EAGER && list_empty(&conn->engine.receives);
}

/* Memory for a stream's eager bytes. */
static bool exs_stream_reserve(struct exs_conn *conn)
{
	u32 size = conn->engine.config.ours.eager_space;

	lockdep_assert_held(&conn->lock);
	if (!conn->eager_mem && size)
		conn->eager_mem = kmalloc(size, GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	return conn->eager_mem || !size;
}

/* Memory for the peer's description of its own. */
static bool exs_theirs_reserve(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->engine.theirs = kmem_cache_zalloc(exs_theirs_cache, GFP_ATOMIC | __GFP_NOWARN);
	conn->theirs_wanted = !conn->engine.theirs;
	return conn->engine.theirs;
}

/* Whether there is memory for @msg. */
static bool exs_conn_reserve(struct exs_conn *conn, const struct exs_msg *msg)
{
	if (exs_engine_wants_theirs(&conn->engine, msg))
		return exs_theirs_reserve(conn);
	if (conn->socktype == EXS_WIRE_STREAM)
		return msg->type != EXS_MSG_EAGER || exs_stream_reserve(conn);
	return exs_message_reserve(conn, msg->len, exs_conn_keeps(conn, msg));
}

/* Wait for that memory. Its size is fixed, as the engine is up. */
static void exs_stream_provide(struct exs_conn *conn)
{
	void *mem = kmalloc(conn->engine.config.ours.eager_space,
			    GFP_KERNEL | __GFP_NOFAIL | __GFP_ACCOUNT);

	spin_lock(&conn->lock);
	if (!conn->eager_mem)
		swap(conn->eager_mem, mem);
	spin_unlock(&conn->lock);
	kfree(mem);
}

/* The same for engine.theirs. Meanwhile no other message is received that might need it. */
static void exs_theirs_provide(struct exs_conn *conn)
{
	struct exs_theirs *mem = kmem_cache_zalloc(exs_theirs_cache, GFP_KERNEL | __GFP_NOFAIL);

	spin_lock(&conn->lock);
	conn->engine.theirs = mem;
	conn->theirs_wanted = false;
	spin_unlock(&conn->lock);
}

void exs_conn_free_theirs(struct exs_conn *conn)
{
	if (conn->engine.theirs)
		kmem_cache_free(exs_theirs_cache, conn->engine.theirs);
}

void exs_conn_provide(struct exs_conn *conn)
{
	exs_count(conn->xn, memory_waits, 1);
	if (conn->theirs_wanted)
		exs_theirs_provide(conn);
	else if (conn->socktype == EXS_WIRE_STREAM)
		exs_stream_provide(conn);
	else
		exs_message_provide(conn);
}

exs_hot
static int exs_conn_take(struct exs_conn *conn, const struct exs_msg *msg)
{
	u32 at = exs_engine_eager_at(&conn->engine);
	struct exs_rcv *rcv = NULL;

	if (!exs_conn_reserve(conn, msg))
		return -ENOMEM;
	if (exs_engine_rx_msg(&conn->engine, msg, &rcv) < 0)
		return -EPROTO;
	conn->wake |= EPOLLIN;
	if (msg->type == EXS_MSG_EAGER)
		exs_conn_eager(conn, msg, rcv, at);
	else if (conn->engine.nkept)
		exs_message_keep_in_ring(conn);
	/* Threads in poll() wake up only for bits that they asked for. */
	if (msg->type == EXS_MSG_FIN)
		conn->wake |= EPOLLRDHUP | EPOLLHUP;
	return 0;
}

exs_hot
int exs_conn_received(struct exs_conn *conn, const void *buf, u32 len, bool invalidates)
{
	struct exs_msg *msg;
	int err = -EPROTO;

	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return 0;
	exs_run_clock(conn);
	msg = &exs_scratch_get()->msg;
	if (exs_wire_get_msg(buf, len, msg) >= 0 && (!invalidates || msg->type == EXS_MSG_WRITTEN))
		err = exs_conn_take(conn, msg);
	exs_scratch_put();
	return err;
}

exs_hot
int exs_conn_received_imm(struct exs_conn *conn, u32 imm)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return 0;
	if (conn->socktype == EXS_WIRE_SEQPACKET &&
	    !exs_message_reserve(conn, 0, exs_engine_keeps(&conn->engine, imm)))
		return -ENOMEM;
	conn->wake |= EPOLLIN;
	if (exs_engine_rx_imm(&conn->engine, imm) < 0)
		return -EPROTO;
	if (conn->engine.nkept)
		exs_message_keep_in_ring(conn);
	return 0;
}
