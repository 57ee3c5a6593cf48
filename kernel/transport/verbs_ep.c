// SPDX-License-Identifier: GPL-2.0
/*
 * The life of an endpoint.
 *
 * It is created with an identifier of the CM, and holds a reference on its connection. The
 * teardown work ends it: it begins when the endpoint is closed and no step is being taken,
 * drains, disconnects (iWARP: the reverse), ends the transfers, and releases everything. It
 * never waits for a program. While the peer has time to answer, the work ends, and begins
 * again with the answer or after the timeout: so no worker sleeps, however many peers are
 * dead.
 */
#include <linux/slab.h>

#include "compat/compat.h"
#include "core/stats.h"
#include "verbs_internal.h"

/* 4.096 us << 17: half a second. With its retries hardware detects a dead peer after four
 * seconds, or after sixteen, which the standard allows.
 */
#define EXS_VERBS_ACK_TIMEOUT	17

/* Code for 10.24 ms, although correct peers never meet an empty receive queue. */
#define EXS_VERBS_RNR_TIMER	20

struct workqueue_struct *exs_verbs_wq;
struct workqueue_struct *exs_verbs_cq_wq;
struct workqueue_struct *exs_verbs_end_wq;
struct workqueue_struct *exs_verbs_qp_wq;
struct workqueue_struct *exs_verbs_connect_wq;

static struct kmem_cache *exs_verbs_cache;
static atomic_t exs_verbs_count = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(exs_verbs_gone);

static void exs_verbs_teardown(struct work_struct *work);

static const struct exs_ep_ops exs_verbs_ops = {
	.connect	= exs_verbs_connect,
	.room		= exs_verbs_room,
	.post		= exs_verbs_post,
	.flush		= exs_verbs_flush,
	.map		= exs_verbs_map,
	.invalidate	= exs_verbs_invalidate,
	.unmap		= exs_verbs_unmap,
	.map_ring	= exs_verbs_map_ring,
	.add_recvs	= exs_verbs_add_recvs,
	.read_ring	= exs_verbs_read_ring,
	.writes		= exs_verbs_writes,
	.wrote		= exs_verbs_wrote,
	.poll		= exs_verbs_poll_some,
	.drain		= exs_verbs_drain_all,
	.go_on		= exs_verbs_go_on,
	.close		= exs_verbs_close,
};

static void exs_verbs_init_work(struct exs_verbs_ep *v)
{
	mutex_init(&v->step_mutex);
	mutex_init(&v->cq_mutex);
	mutex_init(&v->keys_mutex);
	init_waitqueue_head(&v->wait);
	INIT_WORK(&v->cm_work, exs_verbs_cm_work);
	INIT_DELAYED_WORK(&v->cq_work, exs_verbs_cq_work);
	refcount_set(&v->holds, 1);
	exs_verbs_slow_init(v);
	INIT_DELAYED_WORK(&v->teardown_work, exs_verbs_teardown);
	INIT_DELAYED_WORK(&v->timer, exs_verbs_timer);
	INIT_DELAYED_WORK(&v->stall_work, exs_verbs_stall_work);
}

static void exs_verbs_init_queues(struct exs_verbs_ep *v)
{
	INIT_LIST_HEAD(&v->pending);
	INIT_LIST_HEAD(&v->slots_free);
	INIT_LIST_HEAD(&v->slots_posted);
	INIT_LIST_HEAD(&v->keys_free);
	INIT_LIST_HEAD(&v->keys_out);
	INIT_LIST_HEAD(&v->ring_keys);
	INIT_LIST_HEAD(&v->more_recvs);
	INIT_LIST_HEAD(&v->more_slots);
	v->slots_after = jiffies;
	v->unsignaled_cqe.done = exs_verbs_unsignaled_done;
}

static void exs_verbs_set_id(struct exs_verbs_ep *v, struct rdma_cm_id *id)
{
	v->id = id;
	/* Neither can fail for an RC identifier. */
	rdma_set_ack_timeout(id, EXS_VERBS_ACK_TIMEOUT);
	rdma_set_min_rnr_timer(id, EXS_VERBS_RNR_TIMER);
}

/* With @id and a reference on @conn, once published. */
struct exs_verbs_ep *exs_verbs_alloc(struct exs_conn *conn, struct rdma_cm_id *id, gfp_t gfp)
{
	struct mem_cgroup *old = set_active_memcg(conn->memcg);
	struct exs_verbs_ep *v = kmem_cache_zalloc(exs_verbs_cache, gfp);

	set_active_memcg(old);
	if (!v)
		return NULL;
	v->ep.ops = &exs_verbs_ops;
	v->ep.conn = conn;
	v->ep.max_copy = EXS_VERBS_COPY_MAX;
	v->lost_err = EXS_VERBS_NOT_LOST;
	exs_verbs_set_id(v, id);
	exs_verbs_init_work(v);
	exs_verbs_init_queues(v);
	exs_live(conn->xn, endpoints, 1);
	atomic_inc(&exs_verbs_count);
	return v;
}

/* No identifier, no resources, not published. */
void exs_verbs_free(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	if (v->bound)
		exs_verbs_listener_put(v->bound);
	kmem_cache_free(exs_verbs_cache, v);
	exs_live(conn->xn, endpoints, -1);
	if (atomic_dec_and_test(&exs_verbs_count))
		wake_up(&exs_verbs_gone);
}

/* The connection has its endpoint now, and may use it. */
void exs_verbs_publish(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	exs_conn_get(conn);
	spin_lock(&conn->lock);
	conn->ep = &v->ep;
	spin_unlock(&conn->lock);
}

/* Undo exs_verbs_publish() and exs_verbs_alloc() of an unused endpoint. */
void exs_verbs_unpublish(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	spin_lock(&conn->lock);
	conn->ep = NULL;
	spin_unlock(&conn->lock);
	exs_verbs_free(v);
	exs_conn_put(conn);
}

static struct rdma_cm_id *exs_verbs_create_id(struct net *net)
{
	return rdma_create_id(net, exs_verbs_conn_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
}

/* In a step, before there is a queue pair: an identifier that has no address. */
int exs_verbs_renew_id(struct exs_verbs_ep *v)
{
	struct rdma_cm_id *old = v->id;
	struct rdma_cm_id *id = exs_verbs_create_id(old->route.addr.dev_addr.net);

	if (IS_ERR(id))
		return PTR_ERR(id);
	id->context = v;
	exs_verbs_set_id(v, id);
	rdma_destroy_id(old);
	return 0;
}

int exs_verbs_create(struct net *net, struct exs_conn *conn)
{
	struct exs_verbs_ep *v;
	struct rdma_cm_id *id;

	id = exs_verbs_create_id(net);
	if (IS_ERR(id))
		return PTR_ERR(id);
	v = exs_verbs_alloc(conn, id, GFP_KERNEL);
	if (!v) {
		rdma_destroy_id(id);
		return -ENOMEM;
	}
	/* Not bound to a device: no event comes until we request one. */
	id->context = v;
	exs_verbs_publish(v);
	return 0;
}

/*
 * iWARP's disconnect sleeps until a connect has been answered. A worker does not: that could
 * be all of them. Return: whether the answer is pending: then the work begins again.
 */
static bool exs_verbs_await_answer(struct exs_verbs_ep *v)
{
	const unsigned long now = jiffies;

	if (!exs_verbs_is(v, EXS_VERBS_ASKED))
		return false;
	set_bit(EXS_VERBS_DISCONNECTING, &v->flags);
	/* Pairs with the one in exs_verbs_tell_teardown(). */
	smp_mb__after_atomic();
	if (!exs_verbs_is(v, EXS_VERBS_ASKED))
		return false;
	if (!v->answer_by)
		v->answer_by = (now + EXS_VERBS_ANSWER_TIME) | 1;
	if (time_after_eq(now, v->answer_by))
		return false;
	queue_delayed_work(exs_verbs_end_wq, &v->teardown_work, v->answer_by - now);
	return true;
}

/* Return: whether the peer's answer is pending: then the work begins again. */
static bool exs_verbs_await_peer(struct exs_verbs_ep *v)
{
	set_bit(EXS_VERBS_DISCONNECTING, &v->flags);
	/* Pairs with the one in exs_verbs_tell_teardown(). */
	smp_mb__after_atomic();
	if (exs_verbs_is(v, EXS_VERBS_GONE))
		return false;
	queue_delayed_work(exs_verbs_end_wq, &v->teardown_work, EXS_VERBS_DISCONNECT_TIME);
	return true;
}

/* In error and drained, it cannot access memory any more. */
static void exs_verbs_drain_qp(struct exs_verbs_ep *v)
{
	exs_verbs_stop_qp(v);
	exs_verbs_handshake_over(v, false);
	exs_verbs_ring_over(v);
}

static void exs_verbs_destroy(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	exs_verbs_free_qp(v);
	rdma_destroy_id(v->id);
	/* Nothing queues them again: the connection is over, and no step is taken. */
	cancel_work_sync(&v->cm_work);
	exs_verbs_slow_cancel(v);
	cancel_delayed_work_sync(&v->timer);
	cancel_delayed_work_sync(&v->stall_work);
	/* This is the one that runs. */
	cancel_delayed_work(&v->teardown_work);
	exs_verbs_free(v);
	exs_conn_put(conn);
}

static void exs_verbs_teardown(struct work_struct *work)
{
	struct exs_verbs_ep *v = container_of(to_delayed_work(work),
					      struct exs_verbs_ep, teardown_work);

	switch (v->end) {
	case EXS_VERBS_END_DISCONNECT:
		if (exs_verbs_await_answer(v))
			return;
		v->end = EXS_VERBS_END_DRAIN;
		if (exs_verbs_disconnect_first(v) && exs_verbs_await_peer(v))
			return;
		fallthrough;
	case EXS_VERBS_END_DRAIN:
		if (!exs_conn_unused(v->ep.conn))
			return;
		v->end = EXS_VERBS_END_TRANSFERS;
		exs_verbs_drain_qp(v);
		fallthrough;
	case EXS_VERBS_END_TRANSFERS:
		if (!exs_conn_drained(v->ep.conn))
			return;
		v->end = EXS_VERBS_END_DESTROY;
		if (exs_verbs_may_arrive(v) && exs_verbs_await_peer(v))
			return;
		fallthrough;
	case EXS_VERBS_END_DESTROY:
		exs_verbs_destroy(v);
	}
}

/* exs_ep_ops.go_on */
void exs_verbs_go_on(struct exs_ep *ep)
{
	queue_delayed_work(exs_verbs_end_wq, &exs_verbs_ep(ep)->teardown_work, 0);
}

void exs_verbs_unhold(struct exs_verbs_ep *v)
{
	if (refcount_dec_and_test(&v->holds))
		queue_delayed_work(exs_verbs_end_wq, &v->teardown_work, 0);
}

/* exs_ep_ops.close */
void exs_verbs_close(struct exs_ep *ep)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);

	if (test_and_set_bit(EXS_VERBS_CLOSING, &v->flags))
		return;
	wake_up(&v->wait);
	exs_verbs_slow_leave(v);
	/* Its socket may want the port for another attempt, before the queue pair is gone. */
	if (v->bound)
		rdma_set_reuseaddr(v->id, 1);
	exs_verbs_unhold(v);
}

/* Work that sleeps for long is apart from work that must not wait. */
static const struct exs_verbs_queue {
	struct workqueue_struct **wq;
	const char *name;
	unsigned int flags;
	int max_active;
} exs_verbs_queues[] = {
	/*
	 * Not WQ_MEM_RECLAIM: the CM's own queues, which destroying an identifier
	 * flushes, are not either.
	 */
	{ &exs_verbs_wq, "exs_verbs", WQ_UNBOUND, 0 },
	{ &exs_verbs_qp_wq, "exs_qp", WQ_UNBOUND, WQ_MAX_ACTIVE },
	{ &exs_verbs_connect_wq, "exs_connect", WQ_UNBOUND, WQ_MAX_ACTIVE },
	{ &exs_verbs_end_wq, "exs_end", WQ_UNBOUND, WQ_MAX_ACTIVE },
	/*
	 * Each connection has one item, and its rounds are bounded. So one at a time runs
	 * on a processor, chosen by the event or EXS_SO_CPU, with the priority of
	 * programs.
	 */
	{ &exs_verbs_cq_wq, "exs_cq", WQ_PERCPU, 0 },
};

static void exs_verbs_free_queues(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(exs_verbs_queues); i++)
		if (*exs_verbs_queues[i].wq)
			destroy_workqueue(*exs_verbs_queues[i].wq);
}

int exs_verbs_init(void)
{
	const struct exs_verbs_queue *q;

	for (q = exs_verbs_queues; q < exs_verbs_queues + ARRAY_SIZE(exs_verbs_queues); q++) {
		*q->wq = alloc_workqueue(q->name, q->flags, q->max_active);
		if (!*q->wq)
			goto no_queues;
	}
	if (exs_chain_init())
		goto no_queues;
	if (exs_recvs_init())
		goto no_recvs;
	/* Programs' data is copied into slots. */
	exs_verbs_cache = KMEM_CACHE_USERCOPY(exs_verbs_ep, SLAB_ACCOUNT, slots);
	if (exs_verbs_cache)
		return 0;
	exs_recvs_exit();
no_recvs:
	exs_chain_exit();
no_queues:
	exs_verbs_free_queues();
	return -ENOMEM;
}

void exs_verbs_exit(void)
{
	wait_event(exs_verbs_gone, !atomic_read(&exs_verbs_count));
	/* Waits for the tails of the works that brought the count down. */
	exs_verbs_free_queues();
	kmem_cache_destroy(exs_verbs_cache);
	exs_recvs_exit();
	exs_chain_exit();
}
