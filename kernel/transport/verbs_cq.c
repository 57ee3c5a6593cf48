// SPDX-License-Identifier: GPL-2.0
/*
 * Completions.
 *
 * The provider's completion handler may run in an interrupt and with the provider's own
 * locks held, so it only wakes a waiting thread, or queues work. Both call the same drain
 * function; cq_mutex keeps completions in order. conn->lock is held for a batch.
 * exs_conn_run() does the resulting work when both locks are free.
 *
 * Every work request carries a cqe, so ib_drain_qp() works: its own
 * completions come through here like any other.
 */
#include "core/stats.h"
#include "verbs_internal.h"

#define EXS_VERBS_BATCH		8
#define EXS_VERBS_TURNS		32	/* batches, then others get the processor */
#define EXS_VERBS_ATTENDED	1	/* jiffies that an attending thread has  */

/* The processor that EXS_SO_CPU names, if it is online; otherwise any. */
static int exs_verbs_cq_cpu(const struct exs_verbs_ep *v)
{
	int cpu = exs_option(&v->ep.conn->options, EXS_SO_CPU);

	return cpu < 0 || !cpu_online(cpu) ? WORK_CPU_UNBOUND : cpu;
}

/*
 * Have the queue drained after @delay jiffies, or sooner if requested. Work that is just
 * ending is queued again where it runs.
 */
exs_hot
static void exs_verbs_cq_queue(struct exs_verbs_ep *v, unsigned long delay)
{
	struct delayed_work *work = &v->cq_work;
	bool queued;
	int cpu;

	/* A processor that is online now stays until its timer is queued. */
	preempt_disable();
	cpu = exs_verbs_cq_cpu(v);
	if (delay)
		queued = queue_delayed_work_on(cpu, exs_verbs_cq_wq, work, delay);
	else
		queued = !mod_delayed_work_on(cpu, exs_verbs_cq_wq, work, 0);
	if (queued && cpu != WORK_CPU_UNBOUND)
		exs_count(v->ep.conn->xn, cq_placed, 1);
	preempt_enable();
}

/*
 * The provider's call: any context. A thread that attends to the connection gets some
 * time, but not long: it may not get the processor.
 */
exs_hot
void exs_verbs_cq_event(struct ib_cq *cq, void *context)
{
	struct exs_verbs_ep *v = context;

	exs_verbs_cq_queue(v, exs_conn_event(v->ep.conn) ? EXS_VERBS_ATTENDED : 0);
}

/* End the connection after the batch; conn->lock held. */
void exs_verbs_fail(struct exs_verbs_ep *v, int err)
{
	lockdep_assert_held(&v->ep.conn->lock);
	if (v->failed)
		return;
	v->fail = err;
	WRITE_ONCE(v->failed, true);
}

/* The errno that TCP would report; 0: the queue pair ended, and the CM knows why. */
static int exs_wc_errno(const struct exs_verbs_ep *v, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_WR_FLUSH_ERR:
		return 0;
	case IB_WC_LOC_QP_OP_ERR:
		return exs_verbs_has(v, EXS_QUIRK_FAILED_IS_END) ? 0 : -EIO;
	case IB_WC_RETRY_EXC_ERR:
		return -ETIMEDOUT;
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
	case IB_WC_REM_ABORT_ERR:
		return -ECONNRESET;
	case IB_WC_LOC_LEN_ERR:
		return -EPROTO;
	default:
		return -EIO;
	}
}

/*
 * The meaning of a failed post. siw refuses if the peer has already left, which the CM
 * will report: then 0 as above.
 */
int exs_verbs_post_errno(const struct exs_verbs_ep *v, int err)
{
	if (err == -ENOTCONN)
		return 0;
	exs_count(v->ep.conn->xn, resets_transport, 1);
	return -EIO;
}

/* @wc is an error, which ends the connection; conn->lock held. */
void exs_verbs_wc_error(struct exs_verbs_ep *v, const struct ib_wc *wc)
{
	if (!v->failed && wc->status != IB_WC_WR_FLUSH_ERR) {
		exs_count(v->ep.conn->xn, resets_transport, 1);
		pr_debug("exs: completion: %s (0x%x)\n",
			 ib_wc_status_msg(wc->status), wc->vendor_err);
	}
	exs_verbs_fail(v, -exs_wc_errno(v, wc->status));
}

/* The device has invalidated a key: which one, and by which opcode. */
static bool exs_verbs_may_kill(struct exs_verbs_ep *v, const struct ib_wc *wc)
{
	return v->peer.features & EXS_WIRE_F_INVALIDATE &&
	       exs_verbs_key_died(v, wc->ex.invalidate_rkey);
}

/* Pass a message to the connection. Return: 0, -EPROTO, -ENOMEM. */
static int exs_verbs_receive(struct exs_verbs_ep *v, const struct ib_wc *wc,
			     const struct exs_verbs_recv *recv)
{
	bool invalidates = wc->wc_flags & IB_WC_WITH_INVALIDATE;

	if (invalidates && !exs_verbs_may_kill(v, wc))
		return -EPROTO;
	/* Only WRITEs have an immediate. */
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		return exs_conn_received_imm(v->ep.conn, be32_to_cpu(wc->ex.imm_data));
	if (wc->wc_flags & IB_WC_WITH_IMM)
		return -EPROTO;
	ib_dma_sync_single_for_cpu(v->id->device, recv->sge.addr, wc->byte_len, DMA_BIDIRECTIONAL);
	return exs_conn_received(v->ep.conn, recv->buf, wc->byte_len, invalidates);
}

/* A receive is complete; conn->lock held. */
exs_hot
void exs_verbs_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct exs_verbs_ep *v = cq->cq_context;
	struct exs_verbs_recv *recv = container_of(wc->wr_cqe, struct exs_verbs_recv, cqe);
	int err;

	if (exs_verbs_wc_failed(v, wc) || v->failed ||
	    exs_verbs_is(v, EXS_VERBS_CLOSING))
		return;
	v->heard = true;
	v->alive = jiffies;
	/* An initiator that receives before we greeted: not our protocol. */
	err = exs_verbs_is(v, EXS_VERBS_OPEN) ? exs_verbs_receive(v, wc, recv) : -EPROTO;
	v->wants_memory = err == -ENOMEM;
	if (v->wants_memory)
		return;
	if (err) {
		exs_verbs_fail(v, EPROTO);
		return;
	}
	exs_verbs_recv_over(v, recv);
}

static void exs_verbs_slot_over(struct exs_verbs_ep *v, struct exs_verbs_slot *slot)
{
	struct list_head *key;

	list_for_each(key, &slot->inv_keys)
		v->keys_dying--;
	exs_verbs_keys_put(v, &slot->inv_keys);
	v->sq_used -= slot->wrs;
	v->chains_ended++;
	exs_verbs_chain_ends(v, slot);
	list_move_tail(&slot->link, &v->slots_free);
	if (slot->x) {
		v->sending--;
		exs_conn_sent(v->ep.conn, slot->x);
	}
	if (slot->advert)
		v->ep.adverts_wait = --v->adverts;
	if (slot->fin)
		exs_conn_fin_delivered(v->ep.conn);
}

/* A chain is complete, and so are the unsignalled ones before it; conn->lock held. */
void exs_verbs_slot_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct exs_verbs_slot *slot = container_of(wc->wr_cqe, struct exs_verbs_slot, cqe);
	struct exs_verbs_ep *v = cq->cq_context;
	struct exs_verbs_slot *first;

	if (exs_verbs_wc_failed(v, wc))
		return;
	do {
		first = list_first_entry(&v->slots_posted, struct exs_verbs_slot, link);
		exs_verbs_slot_over(v, first);
	} while (first != slot);
	/* The peer acknowledged everything before it left: exs_verbs_awaits_acks(). */
	if (unlikely(exs_verbs_is(v, EXS_VERBS_GONE)) && !v->sending)
		exs_verbs_note_lost(v, 0);
}

/* The completion of an unsignalled WR: always an error. */
void exs_verbs_unsignaled_done(struct ib_cq *cq, struct ib_wc *wc)
{
	exs_verbs_wc_failed(cq->cq_context, wc);
}

/*
 * The passive side's first message is what establishes the connection: the
 * CM's own event may come later, and iWARP forbids to send before.
 */
static void exs_verbs_first_message(struct exs_verbs_ep *v, const struct ib_wc *wc,
				    int n)
{
	if (exs_verbs_is(v, EXS_VERBS_OPEN) || exs_verbs_is(v, EXS_VERBS_ACTIVE))
		return;
	for (; n; n--, wc++)
		if (wc->status == IB_WC_SUCCESS && wc->wr_cqe->done == exs_verbs_recv_done)
			break;
	if (!n || !exs_verbs_open(v))
		return;
	spin_lock(&v->ep.conn->lock);
	exs_verbs_fail(v, EPROTO);
	spin_unlock(&v->ep.conn->lock);
}

/*
 * One completion; conn->lock held, but not while a message waits for memory: then process
 * the completions behind it, and the peer gets no new credit.
 */
static void exs_verbs_complete(struct exs_verbs_ep *v, struct ib_wc *wc)
	__must_hold(&v->ep.conn->lock)
{
	wc->wr_cqe->done(v->cq, wc);
	while (unlikely(v->wants_memory)) {
		v->wants_memory = false;
		exs_verbs_repost(v);
		spin_unlock(&v->ep.conn->lock);
		exs_conn_provide(v->ep.conn);
		spin_lock(&v->ep.conn->lock);
		wc->wr_cqe->done(v->cq, wc);
	}
}

/* One batch. Return: the number of completions. */
exs_hot
static int exs_verbs_drain_batch(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	struct ib_wc wcs[EXS_VERBS_BATCH];
	struct mem_cgroup *old;
	int i, n;

	lockdep_assert_held(&v->cq_mutex);
	if (!v->cq)
		return 0;
	n = ib_poll_cq(v->cq, ARRAY_SIZE(wcs), wcs);
	if (n <= 0)
		return 0;
	/* Kept messages belong to the connection, whichever thread drains. */
	old = set_active_memcg(conn->memcg);
	exs_verbs_first_message(v, wcs, n);
	spin_lock(&conn->lock);
	if (conn->sk)
		sk_incoming_cpu_update(conn->sk);
	for (i = 0; i < n; i++)
		exs_verbs_complete(v, &wcs[i]);
	exs_verbs_repost(v);
	spin_unlock(&conn->lock);
	set_active_memcg(old);
	return n;
}

/* Request the next event. Return: whether there are completions without an event. */
static bool exs_verbs_arm(struct exs_verbs_ep *v)
{
	lockdep_assert_held(&v->cq_mutex);
	return v->cq && ib_req_notify_cq(v->cq, IB_CQ_NEXT_COMP |
					 IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

static void exs_verbs_report_failed(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	int err;

	spin_lock(&conn->lock);
	err = v->fail;
	spin_unlock(&conn->lock);
	/* A rejected request: the CM ends the queue pair before it reports the reason. */
	if (!err && exs_verbs_is(v, EXS_VERBS_ACTIVE) && !exs_verbs_is(v, EXS_VERBS_OPEN))
		return;
	exs_conn_lost(conn, err);
}

/* Do the work that a batch made possible. */
static void exs_verbs_drained_batch(struct exs_verbs_ep *v)
{
	/* Other threads report what they found. */
	if (unlikely(READ_ONCE(v->failed)))
		exs_verbs_report_failed(v);
	exs_conn_run(v->ep.conn);
}

/*
 * Process existing completions, EXS_VERBS_TURNS batches at most, and, with @arm, request
 * the next event. Return: the number of completions; @more: whether there may be others
 * that no event reports.
 */
exs_hot
static int exs_verbs_drain(struct exs_verbs_ep *v, bool arm, bool *more)
{
	int n, sum = 0, turns = EXS_VERBS_TURNS;

	do {
		mutex_lock(&v->cq_mutex);
		n = exs_verbs_drain_batch(v);
		*more = n == EXS_VERBS_BATCH || (arm && exs_verbs_arm(v));
		mutex_unlock(&v->cq_mutex);
		if (n)
			exs_verbs_drained_batch(v);
		sum += n;
	} while (*more && --turns);
	return sum;
}

/* exs_ep_ops.drain; also the worker's part. */
exs_hot
int exs_verbs_drain_all(struct exs_ep *ep)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	bool more;
	int n = exs_verbs_drain(v, true, &more);

	if (more)
		exs_verbs_cq_queue(v, 0);
	return n;
}

void exs_verbs_cq_work(struct work_struct *work)
{
	struct exs_verbs_ep *v = container_of(to_delayed_work(work),
					      struct exs_verbs_ep, cq_work);

	exs_verbs_drain_all(&v->ep);
}

/* Process existing completions; a pending event of the queue still comes. */
void exs_verbs_poll(struct exs_verbs_ep *v)
{
	bool more;

	exs_verbs_drain(v, false, &more);
}

/* exs_ep_ops.poll; a pending event of the queue still comes. */
int exs_verbs_poll_some(struct exs_ep *ep)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	int n;

	if (!mutex_trylock(&v->cq_mutex))
		return 0;
	n = exs_verbs_drain_batch(v);
	mutex_unlock(&v->cq_mutex);
	if (!n)
		return 0;
	exs_verbs_drained_batch(v);
	exs_count(v->ep.conn->xn, busy_completions, n);
	return n;
}
