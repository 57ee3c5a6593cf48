// SPDX-License-Identifier: GPL-2.0
/*
 * The device's resources of an endpoint: a protection domain of its own, one completion
 * queue, the queue pair, buffers of receives, and headers of sent messages. Keys and the
 * ring are made on demand: an idle connection has neither.
 */
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

/*
 * 4.096 us << 15: 134 ms. The loss of the last packet under way costs this time. Where a round trip
 * takes longer, packets are sent twice for nothing.
 */
#define EXS_VERBS_TIRELESS_TIMEOUT	15

static void exs_verbs_qp_event(struct ib_event *event, void *context);

/* The most that may be mapped in one piece: bounce buffers are small. */
static u32 exs_verbs_run_max(struct ib_device *dev)
{
	size_t max = min_t(size_t, EXS_VERBS_RUN_MAX, ib_dma_max_seg_size(dev));

	if (!ib_uses_virt_dma(dev))
		max = min(max, dma_max_mapping_size(dev->dma_device));
	return max & PAGE_MASK;
}

static int exs_verbs_limits(struct exs_verbs_ep *v)
{
	const struct ib_device_attr *attrs = &v->id->device->attrs;

	/* An advert's keys must cover the largest message, wherever it begins. */
	if (!(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    attrs->max_fast_reg_page_list_len < EXS_VERBS_KEY_PAGES_MIN ||
	    !(attrs->page_size_cap & PAGE_SIZE) ||
	    attrs->max_qp_wr <= EXS_VERBS_SQ_WRS ||
	    attrs->max_qp_wr <= EXS_VERBS_RECVS ||
	    attrs->max_send_sge < 2)
		return -EOPNOTSUPP;
	v->quirks = exs_verbs_quirks(v->id);
	if (exs_verbs_has(v, EXS_QUIRK_TIRELESS))
		rdma_set_ack_timeout(v->id, EXS_VERBS_TIRELESS_TIMEOUT);
	v->ep.confirm = exs_verbs_has(v, EXS_QUIRK_UNCONFIRMED);
	v->max_sge = min_t(u32, attrs->max_send_sge, EXS_VERBS_SEND_SGES);
	v->key_pages = min_t(u32, attrs->max_fast_reg_page_list_len,
			     EXS_VERBS_KEY_PAGES);
	v->ep.max_piece = (EXS_VERBS_DATA_WRS * v->max_sge - 1) * PAGE_SIZE;
	v->ep.max_credits = min_t(u32, attrs->max_qp_wr - 1, EXS_VERBS_RECVS_MAX) - 1;
	v->run_max = exs_verbs_run_max(v->id->device);
	return 0;
}

static int exs_verbs_make_mem(struct exs_verbs_ep *v)
{
	int err = exs_verbs_recvs_make(v);

	if (err)
		return err;
	err = exs_verbs_slots_make(v);
	if (err)
		exs_verbs_recvs_free(v);
	return err;
}

static void exs_verbs_free_mem(struct exs_verbs_ep *v)
{
	exs_verbs_recvs_free(v);
	exs_verbs_slots_free(v);
}

/* Asynchronous errors of the queues: any context. */
static void exs_verbs_async_event(struct ib_event *event, void *context)
{
	exs_verbs_note_lost(context, ECONNRESET);
}

static int exs_verbs_make_cq(struct exs_verbs_ep *v)
{
	static atomic_t next_vector;
	struct ib_device *dev = v->id->device;
	struct ib_cq_init_attr attr = {
		/* All of both queues, and the markers of ib_drain_qp(). */
		.cqe		= EXS_VERBS_SQ_WRS + EXS_VERBS_RECVS_MAX + 2,
		.comp_vector	= (u32)atomic_inc_return(&next_vector) %
				  dev->num_comp_vectors,
	};
	struct ib_cq *cq;

	/*
	 * Not ib_alloc_cq(): one drain at a time processes completions, in a worker or in a
	 * thread that polls (exs_verbs_poll()), under our own mutex.
	 */
	cq = ib_create_cq(dev, exs_verbs_cq_event, exs_verbs_async_event, v, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	mutex_lock(&v->cq_mutex);
	v->cq = cq;
	mutex_unlock(&v->cq_mutex);
	return 0;
}

/* From here on nothing drains it. */
static struct ib_cq *exs_verbs_take_cq(struct exs_verbs_ep *v)
{
	struct ib_cq *cq;

	mutex_lock(&v->cq_mutex);
	cq = v->cq;
	v->cq = NULL;
	mutex_unlock(&v->cq_mutex);
	return cq;
}

static void exs_verbs_free_cq(struct exs_verbs_ep *v, struct ib_cq *cq)
{
	ib_destroy_cq(cq);
	/* An event may have come until then. */
	cancel_delayed_work_sync(&v->cq_work);
}

static int exs_verbs_try_queue_pair(struct exs_verbs_ep *v, u32 inline_max)
{
	int err;
	struct ib_qp_init_attr attr = {
		.event_handler		= exs_verbs_qp_event,
		.qp_context		= v,
		.send_cq		= v->cq,
		.recv_cq		= v->cq,
		.qp_type		= IB_QPT_RC,
		.sq_sig_type		= IB_SIGNAL_REQ_WR,
		.cap.max_send_wr	= EXS_VERBS_SQ_WRS + 1,
		.cap.max_recv_wr	= v->ep.max_credits + 2,
		.cap.max_send_sge	= v->max_sge,
		.cap.max_recv_sge	= 1,
		.cap.max_inline_data	= inline_max,
	};

	err = rdma_create_qp(v->id, v->pd, &attr);
	v->inline_max = min_t(u32, attr.cap.max_inline_data, EXS_INLINE_MAX);
	return err;
}

/*
 * Inline data uses the space of a request's scatter/gather elements, of which we have
 * enough: soft-RoCE's queue does not grow. No provider reports its limit, but some refuse
 * too much (soft-iWARP: more than 80).
 */
static int exs_verbs_make_queue_pair(struct exs_verbs_ep *v)
{
	static const u16 inline_max[] = { EXS_INLINE_MAX, 64, 0 };
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(inline_max); i++) {
		err = exs_verbs_try_queue_pair(v, inline_max[i]);
		if (err != -EINVAL)
			break;
	}
	return err;
}

static int exs_verbs_fill_recvs(struct exs_verbs_ep *v)
{
	int err = ib_post_recv(v->id->qp, &v->recv[0].wr, NULL);

	return err ? err : ib_req_notify_cq(v->cq, IB_CQ_NEXT_COMP);
}

/* Undo exs_verbs_make_qp(); results of the receives do not matter. Sleeps. */
void exs_verbs_undo_qp(struct exs_verbs_ep *v)
{
	struct ib_cq *cq = exs_verbs_take_cq(v);

	rdma_destroy_qp(v->id);
	exs_verbs_free_cq(v, cq);
	exs_verbs_free_mem(v);
	ib_dealloc_pd(v->pd);
	v->pd = NULL;
}

/* Create everything, once the device is known, and post receives. Sleeps. */
int exs_verbs_make_qp(struct exs_verbs_ep *v)
{
	struct ib_pd *pd;
	int err;

	err = exs_verbs_limits(v);
	if (err)
		return err;
	pd = ib_alloc_pd(v->id->device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	v->pd = pd;
	err = exs_verbs_make_mem(v);
	if (err)
		goto no_mem;
	err = exs_verbs_make_cq(v);
	if (err)
		goto no_cq;
	err = exs_verbs_make_queue_pair(v);
	if (err)
		goto no_qp;
	err = exs_verbs_fill_recvs(v);
	if (err)
		goto no_recvs;
	return 0;

no_recvs:
	exs_verbs_undo_qp(v);
	return err;
no_qp:
	exs_verbs_free_cq(v, exs_verbs_take_cq(v));
no_cq:
	exs_verbs_free_mem(v);
no_mem:
	ib_dealloc_pd(v->pd);
	v->pd = NULL;
	return err;
}

/*
 * Between two of the CM's handlers: a handler with an answer brings the queue pair up, and
 * rxe may check the state before it becomes an error, and set it afterwards.
 */
static int exs_verbs_fail_qp(struct exs_verbs_ep *v)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int err;

	rdma_lock_handler(v->id);
	err = ib_modify_qp(v->id->qp, &attr, IB_QP_STATE);
	rdma_unlock_handler(v->id);
	return err;
}

/*
 * A device that does not take that command may go on accessing memory until it has no queue
 * pair. Threads that post hold conn->lock and look first: none does after this. The provider
 * may have left completions in the queue: they must not come after the end of transfers.
 */
static void exs_verbs_drop_qp(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	exs_count(conn->xn, stops_refused, 1);
	spin_lock(&conn->lock);
	exs_verbs_fail(v, 0);
	spin_unlock(&conn->lock);
	rdma_destroy_qp(v->id);
	exs_verbs_poll(v);
}

static bool exs_verbs_started(const struct exs_verbs_ep *v)
{
	return v->pd && exs_verbs_is(v, EXS_VERBS_STARTED);
}

/* Only where the error state would lose bytes. Return: whether the peer must answer. */
bool exs_verbs_disconnect_first(struct exs_verbs_ep *v)
{
	if (!exs_verbs_has(v, EXS_QUIRK_ERROR_RESETS) || !exs_verbs_started(v))
		return false;
	return !rdma_disconnect(v->id);
}

/*
 * When it returns, nothing can access memory any more. Sleeps, but not for the peer. The
 * CM's message to the peer comes last: it says that we send nothing more.
 */
void exs_verbs_stop_qp(struct exs_verbs_ep *v)
{
	if (!exs_verbs_started(v))
		return;
	if (exs_verbs_fail_qp(v))
		exs_verbs_drop_qp(v);
	else
		ib_drain_qp(v->id->qp);
	if (!exs_verbs_has(v, EXS_QUIRK_ERROR_RESETS))
		rdma_disconnect(v->id);
}

/*
 * Whether packets may arrive while the queue pair is destroyed, so that the peer needs time
 * to stop. The accepting side only sends after it has heard from the connecting side. So a
 * failed attempt does not wait: the peer does not know of it.
 */
bool exs_verbs_may_arrive(const struct exs_verbs_ep *v)
{
	if (!v->pd || !exs_verbs_has(v, EXS_QUIRK_LATE_PACKETS))
		return false;
	return exs_verbs_is(v, EXS_VERBS_OPEN) ||
	       (exs_verbs_is(v, EXS_VERBS_STARTED) && !exs_verbs_is(v, EXS_VERBS_ACTIVE));
}

/* After all transfers are unmapped. */
void exs_verbs_free_qp(struct exs_verbs_ep *v)
{
	if (!v->pd)
		return;
	if (v->id->qp)
		rdma_destroy_qp(v->id);
	exs_verbs_keys_free(v);
	exs_verbs_unmap_ring(v);
	exs_verbs_free_cq(v, exs_verbs_take_cq(v));
	exs_verbs_free_mem(v);
	ib_dealloc_pd(v->pd);
	v->pd = NULL;
}

/* Asynchronous events of the queue pair: any context. Core decides what the peer's end means. */
static void exs_verbs_qp_event(struct ib_event *event, void *context)
{
	struct exs_verbs_ep *v = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
		exs_verbs_note_lost(v, exs_verbs_has(v, EXS_QUIRK_FAILED_IS_END) ? 0 : ECONNRESET);
		break;
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		exs_verbs_note_lost(v, ECONNRESET);
		break;
	default:
		break;
	}
}
