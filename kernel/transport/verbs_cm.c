// SPDX-License-Identifier: GPL-2.0
/*
 * The hand-shake.
 *
 *   connecting: resolve address > make queue pair, resolve route > connect > open
 *   accepting:  (verbs_listen.c) > make queue pair, accept > first message: open
 *
 * An attempt may begin again, with another identifier and queue pair: if TCP uses the port
 * that the CM chose, or if the peer still has the queue pair of that number as it was before
 * this machine crashed.
 *
 * The CM's handlers only record what happened. The task in connect(2), if it blocks,
 * takes the steps that follow: siw makes its TCP connection in the caller's network
 * namespace, so only this task can connect out of a container. Otherwise, and when that
 * task was interrupted, works take them: cm_work; but those in which a worker may sleep for
 * long have works and queues of their own, and a user has at most net.exs.max_user_workers
 * of each kind at a time (struct exs_verbs_slow). siw sleeps until TCP's connection is made,
 * for minutes if the peer does not answer. And a queue pair's memory is charged to the program's
 * cgroup: the kernel stops a thread that allocates for a cgroup over memory.high.
 */
#include <linux/nsproxy.h>
#include <linux/sched/signal.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "core/sock.h"
#include "core/stats.h"
#include "verbs_internal.h"

/* An address that does not answer: TCP gives up after three ARP requests. */
#define EXS_VERBS_ADDR_MS	8000
#define EXS_VERBS_ROUTE_MS	8000

/* The REQ's retransmissions; rdma_cm's own timer is too long for us. */
#define EXS_VERBS_RETRIES	7	/* rxe: unlimited; see verbs_stall.c   */
#define EXS_VERBS_RNR_RETRIES	6	/* 7 would be unlimited               */

/* EXS_QUIRK_DEAF_ACCEPT: when to greet again; then after four times that, and so on. */
#define EXS_VERBS_GREET_MS	20
#define EXS_VERBS_GREET_MAX_MS	5200

/* A failed hand-shake's error as connect(2) reports it. */
static int exs_verbs_errno(int err)
{
	switch (err) {
	case -ENODATA:		/* no neighbour entry */
		return -EHOSTUNREACH;
	case -ECONNRESET:	/* iWARP: the peer's MPA layer refused */
		return -ECONNREFUSED;
	default:
		return err;
	}
}

/* The listener's reason as an errno, or -ECONNREFUSED. */
static int exs_verbs_refused_errno(struct exs_verbs_ep *v,
				   const struct rdma_conn_param *param)
{
	struct exs_net *xn = v->ep.conn->xn;

	switch (exs_wire_get_reject(param->private_data, param->private_data_len)) {
	case EXS_REJECT_VERSION:
		exs_count(xn, refused_version, 1);
		return -EPROTONOSUPPORT;
	case EXS_REJECT_MALFORMED:
		exs_count(xn, refused_hello, 1);
		return -EPROTO;
	case EXS_REJECT_SOCKTYPE:
		exs_count(xn, refused_socktype, 1);
		return -EPROTOTYPE;
	case EXS_REJECT_BACKLOG:
		exs_count(xn, refused_backlog, 1);
		return -ECONNREFUSED;
	case EXS_REJECT_LIMIT:
		exs_count(xn, refused_limit, 1);
		return -ECONNREFUSED;
	case EXS_REJECT_DISABLED:
		exs_count(xn, refused_disabled, 1);
		return -ECONNREFUSED;
	default:
		return -ECONNREFUSED;
	}
}

/* @ev: a reject. A reject by the CM itself has no private data of a listener. */
static int exs_verbs_reject_errno(struct exs_verbs_ep *v, const struct rdma_cm_event *ev)
{
	if (exs_verbs_has(v, EXS_QUIRK_NO_REASON) || ev->status == IB_CM_REJ_CONSUMER_DEFINED)
		return exs_verbs_refused_errno(v, &ev->param.conn);
	switch (ev->status) {
	case IB_CM_REJ_TIMEOUT:
		return -ETIMEDOUT;
	case IB_CM_REJ_STALE_CONN:
		return -ECONNRESET;
	default:
		return -ECONNREFUSED;
	}
}

/* The steps that are not cm_work's. Whether the connect is slow is known after the route. */
static unsigned long exs_verbs_slow_steps(const struct exs_verbs_ep *v)
{
	return v->allocating.steps |
	       (exs_verbs_has(v, EXS_QUIRK_SLOW_CONNECT) ? v->connecting.steps : 0);
}

static void exs_verbs_queue_steps(struct exs_verbs_ep *v, unsigned long steps)
{
	unsigned long slow = exs_verbs_slow_steps(v);

	if (steps & v->allocating.steps)
		queue_work(v->allocating.wq, &v->allocating.work);
	if (steps & slow & v->connecting.steps)
		queue_work(v->connecting.wq, &v->connecting.work);
	if (steps & ~slow)
		queue_work(exs_verbs_wq, &v->cm_work);
}

/* Record @what for the task or worker that takes the steps. CM handlers, tasks. */
void exs_verbs_note(struct exs_verbs_ep *v, unsigned int what)
{
	set_bit(what, &v->todo);
	/* Pairs with the one in exs_verbs_leave(). */
	smp_mb__after_atomic();
	if (READ_ONCE(v->driving))
		wake_up(&v->wait);
	else
		exs_verbs_queue_steps(v, BIT(what));
}

/* The connection ended: @err as for exs_conn_lost(), after everything that arrived before
 * was processed. Any context.
 */
void exs_verbs_note_lost(struct exs_verbs_ep *v, int err)
{
	cmpxchg(&v->lost_err, EXS_VERBS_NOT_LOST, err);
	set_bit(EXS_VERBS_DO_LOST, &v->todo);
	queue_work(exs_verbs_wq, &v->cm_work);
}

/* Set the scope of a link-local address: the CM does not set that of addresses in a request. */
static void exs_verbs_scope(const struct exs_verbs_ep *v, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET6 && !in6->sin6_scope_id &&
	    ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		in6->sin6_scope_id = v->id->route.addr.dev_addr.bound_dev_if;
}

/* The addresses for getsockname() and getpeername(). */
void exs_verbs_addresses(struct exs_verbs_ep *v)
{
	const struct rdma_addr *addr = &v->id->route.addr;
	struct exs_conn *conn = v->ep.conn;

	spin_lock(&conn->lock);
	conn->local = addr->src_addr;
	conn->peer = addr->dst_addr;
	exs_verbs_scope(v, &conn->local);
	exs_verbs_scope(v, &conn->peer);
	spin_unlock(&conn->lock);
}

static void exs_verbs_param(struct exs_verbs_ep *v, struct rdma_conn_param *param,
			    u8 *hello)
{
	int len = exs_wire_put_hello(hello, EXS_WIRE_HELLO_LEN, exs_conn_hello(v->ep.conn));

	*param = (struct rdma_conn_param) {
		.private_data		= hello,
		.private_data_len	= WARN_ON_ONCE(len < 0) ? 0 : len,
		/* We never read; every provider supports one */
		.responder_resources	= 1,
		.initiator_depth	= 1,
		.flow_control		= 1,
		.retry_count		= EXS_VERBS_RETRIES,
		.rnr_retry_count	= EXS_VERBS_RNR_RETRIES,
	};
}

/*
 * With SO_BINDTODEVICE the CM looks for a route by that interface. The service type is
 * sent in the request, so the peer's packets have it, too.
 */
static int exs_verbs_resolve(struct exs_verbs_ep *v, unsigned int ms)
{
	int bound = v->ep.conn->bound_dev_if;

	if (bound && !v->id->device)
		v->id->route.addr.dev_addr.bound_dev_if = bound;
	if (v->ep.conn->tos)
		rdma_set_service_type(v->id, v->ep.conn->tos);
	return rdma_resolve_addr(v->id, NULL, (struct sockaddr *)&v->ep.conn->peer,
				 min_t(unsigned int, ms, EXS_VERBS_ADDR_MS));
}

/*
 * The CM may miss a neighbour's answer, and notices it only after its timeout. So that
 * timeout is shorter than ours, if ours is short.
 */
static unsigned int exs_verbs_addr_ms(const struct exs_verbs_ep *v, long timeout)
{
	unsigned int ms = jiffies_to_msecs(timeout);

	return v->ep.conn->falls_back ? ms / 4 : ms;
}

/* If there is no RDMA device at that interface, the CM's error depends on the family. */
static int exs_verbs_addr_errno(const struct exs_verbs_ep *v, int err)
{
	if (err == -ETIMEDOUT)
		return -EHOSTUNREACH;
	if (err == -ENODEV && v->ep.conn->bound_dev_if)
		return -ENETUNREACH;
	return exs_verbs_errno(err);
}

/* Whatever the CM chose: only that interface is allowed. */
static bool exs_verbs_right_interface(const struct exs_verbs_ep *v)
{
	int bound = v->ep.conn->bound_dev_if;

	return !bound || v->id->route.addr.dev_addr.bound_dev_if == bound;
}

static int exs_verbs_step_route(struct exs_verbs_ep *v)
{
	int err;

	if (!exs_verbs_right_interface(v))
		return -ENETUNREACH;
	/* A server that has only TCP would get a hand-shake instead of a request. */
	if (v->ep.conn->falls_back && exs_verbs_quirks(v->id) & EXS_QUIRK_TCP_PORT)
		return -ESOCKTNOSUPPORT;
	exs_verbs_addresses(v);
	err = exs_verbs_make_qp(v);
	return err ? err : rdma_resolve_route(v->id, EXS_VERBS_ROUTE_MS);
}

/* Whether it may begin again: not with an address that the program chose. */
static bool exs_verbs_may_retry(const struct exs_verbs_ep *v)
{
	return !exs_verbs_is(v, EXS_VERBS_BOUND) && v->retries < EXS_VERBS_TRIES;
}

/* Whether TCP uses the port that the CM chose. */
static bool exs_verbs_port_taken(const struct exs_verbs_ep *v, int err)
{
	return exs_verbs_has(v, EXS_QUIRK_TCP_PORT) &&
	       (err == -EADDRINUSE || err == -EADDRNOTAVAIL) &&
	       exs_verbs_may_retry(v);
}

/* Whether the peer has a connection with an earlier queue pair of that number. */
static bool exs_verbs_is_stale(const struct exs_verbs_ep *v, const struct rdma_cm_event *ev)
{
	return exs_verbs_is(v, EXS_VERBS_ACTIVE) && !v->has_hello &&
	       !exs_verbs_has(v, EXS_QUIRK_NO_REASON) && ev->status == IB_CM_REJ_STALE_CONN &&
	       exs_verbs_may_retry(v);
}

static int exs_verbs_step_retry(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	int err;

	v->retries++;
	exs_count(conn->xn, connects_again, 1);
	exs_verbs_undo_qp(v);
	clear_bit(EXS_VERBS_STARTED, &v->flags);
	/* The old one's receives were flushed. */
	spin_lock(&conn->lock);
	WRITE_ONCE(v->failed, false);
	spin_unlock(&conn->lock);
	err = exs_verbs_renew_id(v);
	return err ? err : exs_verbs_resolve(v, EXS_VERBS_ADDR_MS);
}

static int exs_verbs_step_connect(struct exs_verbs_ep *v)
{
	struct net *net = v->id->route.addr.dev_addr.net;
	struct rdma_conn_param param;
	u8 hello[EXS_WIRE_HELLO_LEN];
	int err;

	if (exs_verbs_has(v, EXS_QUIRK_CALLERS_NET) && !net_eq(current->nsproxy->net_ns, net))
		return -EOPNOTSUPP;
	exs_verbs_param(v, &param, hello);
	set_bit(EXS_VERBS_STARTED, &v->flags);
	if (exs_verbs_has(v, EXS_QUIRK_ERROR_RESETS))
		set_bit(EXS_VERBS_ASKED, &v->flags);
	err = rdma_connect(v->id, &param);
	if (err)
		clear_bit(EXS_VERBS_ASKED, &v->flags);
	if (exs_verbs_port_taken(v, err))
		return exs_verbs_step_retry(v);
	if (err && signal_pending(current) && exs_verbs_has(v, EXS_QUIRK_SLOW_CONNECT)) {
		/* It was interrupted; the worker tries again. */
		set_bit(EXS_VERBS_DO_CONNECT, &v->todo);
		return -ERESTARTSYS;
	}
	return err;
}

static int exs_verbs_step_accept(struct exs_verbs_ep *v)
{
	struct rdma_conn_param param;
	u8 hello[EXS_WIRE_HELLO_LEN];
	int err;

	err = exs_verbs_make_qp(v);
	if (err)
		return err;
	exs_verbs_param(v, &param, hello);
	rdma_lock_handler(v->id);
	set_bit(EXS_VERBS_STARTED, &v->flags);
	err = rdma_accept(v->id, &param);
	rdma_unlock_handler(v->id);
	return err;
}

/* EXS_QUIRK_DEAF_ACCEPT: greet again until a message from the peer arrives. */
static void exs_verbs_greet_later(struct exs_verbs_ep *v)
{
	v->greet_ms = v->greet_ms ? 4 * v->greet_ms : EXS_VERBS_GREET_MS;
	if (v->greet_ms <= EXS_VERBS_GREET_MAX_MS)
		queue_delayed_work(exs_verbs_wq, &v->timer,
				   msecs_to_jiffies(v->greet_ms));
}

/* Any packet makes the peer's provider look. A probe needs no credit. */
static void exs_verbs_greet_or_probe(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;

	lockdep_assert_held(&conn->lock);
	if (exs_engine_may_greet(&conn->engine))
		exs_engine_greet(&conn->engine);
	else if (!v->chains && exs_verbs_room(&v->ep) && exs_verbs_post_probe(v))
		exs_verbs_note_lost(v, ECONNRESET);
}

static void exs_verbs_greet_again(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	bool heard;

	spin_lock(&conn->lock);
	heard = v->heard || exs_verbs_is(v, EXS_VERBS_CLOSING);
	if (!heard)
		exs_verbs_greet_or_probe(v);
	spin_unlock(&conn->lock);
	if (heard)
		return;
	exs_count(v->ep.conn->xn, greetings_again, 1);
	exs_conn_run(conn);
	exs_verbs_greet_later(v);
}

/* For RoCE or InfiniBand: iWARP does not tell its segment size. */
static u32 exs_verbs_mss(const struct exs_verbs_ep *v)
{
	const struct sa_path_rec *path = v->id->route.path_rec;

	return path ? max(ib_mtu_enum_to_int(path->mtu), 0) : 0;
}

/*
 * Both sides: the connection is up. The active side sends a CREDIT first, although none
 * is due, because the passive side waits for it. Sleeps.
 */
int exs_verbs_open(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	bool failed;
	int err;

	if (!v->has_hello) {
		exs_count(v->ep.conn->xn, reject_hello, 1);
		return -EPROTO;
	}
	exs_verbs_addresses(v);
	conn->mss = exs_verbs_mss(v);
	/* If the timer has run, exs_conn_established() notices that the connection is lost. */
	cancel_delayed_work_sync(&v->timer);
	/* Bounds the keys that the peer may use: EXS_VERBS_KEYS_MAX. */
	v->peer.max_segs = min_t(u16, v->peer.max_segs, EXS_VERBS_KEYS_MAX);
	err = exs_conn_established(conn, &v->peer);
	if (err)
		return err;
	exs_verbs_handshake_over(v, true);
	spin_lock(&conn->lock);
	if (exs_verbs_is(v, EXS_VERBS_ACTIVE))
		exs_engine_greet(&conn->engine);
	v->alive = jiffies;
	set_bit(EXS_VERBS_OPEN, &v->flags);
	failed = v->failed;
	spin_unlock(&conn->lock);
	/* Until now, exs_verbs_report_failed() left this to the CM, which did not report it. */
	if (failed)
		exs_verbs_note_lost(v, 0);
	if (exs_verbs_is(v, EXS_VERBS_ACTIVE) && exs_verbs_has(v, EXS_QUIRK_DEAF_ACCEPT))
		exs_verbs_greet_later(v);
	wake_up(&v->wait);
	return 0;
}

static int exs_verbs_step_open(struct exs_verbs_ep *v)
{
	int err = exs_verbs_open(v);

	if (!err)
		exs_conn_run(v->ep.conn);
	return err;
}

static int (*const exs_verbs_step[])(struct exs_verbs_ep *v) = {
	[EXS_VERBS_DO_RETRY]	= exs_verbs_step_retry,
	[EXS_VERBS_DO_ROUTE]	= exs_verbs_step_route,
	[EXS_VERBS_DO_CONNECT]	= exs_verbs_step_connect,
	[EXS_VERBS_DO_OPEN]	= exs_verbs_step_open,
	[EXS_VERBS_DO_ACCEPT]	= exs_verbs_step_accept,
};

/*
 * Take the @steps that are due; those that are slow only if @slow, which a step may find out
 * on the way. Return: 0, or -ERESTARTSYS. Sleeps.
 */
static int exs_verbs_take_steps(struct exs_verbs_ep *v, unsigned long steps, bool slow)
{
	struct mem_cgroup *old = set_active_memcg(v->ep.conn->memcg);
	unsigned int i;
	int err = 0;

	mutex_lock(&v->step_mutex);
	for (i = 0; i < ARRAY_SIZE(exs_verbs_step) && !err; i++) {
		if (!slow && BIT(i) & exs_verbs_slow_steps(v))
			continue;
		if (!(steps & BIT(i)) || !test_and_clear_bit(i, &v->todo) ||
		    exs_verbs_is(v, EXS_VERBS_CLOSING))
			continue;
		err = exs_verbs_step[i](v);
	}
	mutex_unlock(&v->step_mutex);
	set_active_memcg(old);
	if (!err || err == -ERESTARTSYS)
		return err;
	exs_conn_lost(v->ep.conn, -exs_verbs_errno(err));
	return 0;
}

/*
 * A peer that disconnects after its FIN may have received everything. Its acknowledgments
 * come by the queue pair, its disconnect by another: some may still be in flight, or in
 * the provider, and the error state would lose them. (Not where completions do not depend
 * on the peer.) Nothing more is posted meanwhile.
 */
static bool exs_verbs_awaits_acks(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	bool awaits;

	if (READ_ONCE(v->lost_err) || exs_verbs_has(v, EXS_QUIRK_UNCONFIRMED) ||
	    !exs_verbs_is(v, EXS_VERBS_GONE))
		return false;
	spin_lock(&conn->lock);
	awaits = conn->state == EXS_CONN_UP && conn->engine.fin_rcvd && v->sending &&
		 !v->failed && !exs_conn_arrived(conn);
	spin_unlock(&conn->lock);
	return awaits;
}

/*
 * The end; or, while acknowledgments may come, the time for them: half of the time that
 * the peer waits for our answer, as nothing may be sent to it when its queue pair goes
 * (exs_verbs_may_arrive()).
 */
static void exs_verbs_lost(struct exs_verbs_ep *v)
{
	exs_verbs_poll(v);
	if (!exs_verbs_awaits_acks(v))
		exs_conn_lost(v->ep.conn, READ_ONCE(v->lost_err));
	else if (queue_delayed_work(exs_verbs_wq, &v->timer, EXS_VERBS_DISCONNECT_TIME / 2))
		exs_count(v->ep.conn->xn, acks_awaited, 1);
}

void exs_verbs_cm_work(struct work_struct *work)
{
	struct exs_verbs_ep *v = container_of(work, struct exs_verbs_ep, cm_work);
	unsigned long steps = EXS_VERBS_DO_STEPS & ~exs_verbs_slow_steps(v);

	if (test_and_clear_bit(EXS_VERBS_DO_LOST, &v->todo))
		exs_verbs_lost(v);
	if (!(READ_ONCE(v->todo) & steps) || !exs_verbs_hold(v))
		return;
	exs_verbs_take_steps(v, steps, false);
	exs_verbs_unhold(v);
}

static void exs_verbs_slow_again(struct exs_turn *turn)
{
	struct exs_verbs_slow *slow = container_of(turn, struct exs_verbs_slow, turn);

	queue_work(slow->wq, &slow->work);
}

/* The work holds the endpoint while it waits for its turn. */
static void exs_verbs_slow_withdraw(struct exs_verbs_slow *slow)
{
	if (exs_turn_withdraw(slow->v->ep.conn->owner, &slow->turn))
		exs_verbs_unhold(slow->v);
}

static void exs_verbs_slow_work(struct work_struct *work)
{
	struct exs_verbs_slow *slow = container_of(work, struct exs_verbs_slow, work);
	struct exs_verbs_ep *v = slow->v;
	struct exs_user *owner = v->ep.conn->owner;
	int turn;

	if (!exs_verbs_hold(v))
		return;
	turn = exs_turn_take(owner, &slow->turn);
	if (!turn) {
		/* A closed one does not wait. */
		if (exs_verbs_is(v, EXS_VERBS_CLOSING))
			exs_verbs_slow_withdraw(slow);
		return;
	}
	if (turn > 0) {
		exs_verbs_take_steps(v, slow->steps, true);
		exs_turn_pass(owner, slow->turn.pool);
	}
	if (turn == EXS_TURN_WAITED)
		exs_verbs_unhold(v);
	exs_verbs_unhold(v);
}

static void exs_verbs_slow_init_one(struct exs_verbs_ep *v, struct exs_verbs_slow *slow,
				    unsigned long steps, enum exs_pool pool,
				    struct workqueue_struct *wq)
{
	slow->v = v;
	slow->steps = steps;
	slow->wq = wq;
	INIT_WORK(&slow->work, exs_verbs_slow_work);
	exs_turn_init(&slow->turn, pool, exs_verbs_slow_again);
}

void exs_verbs_slow_init(struct exs_verbs_ep *v)
{
	exs_verbs_slow_init_one(v, &v->allocating,
				BIT(EXS_VERBS_DO_ROUTE) | BIT(EXS_VERBS_DO_ACCEPT),
				EXS_POOL_QP, exs_verbs_qp_wq);
	exs_verbs_slow_init_one(v, &v->connecting, BIT(EXS_VERBS_DO_CONNECT),
				EXS_POOL_CONNECT, exs_verbs_connect_wq);
}

/* The endpoint is closed. */
void exs_verbs_slow_leave(struct exs_verbs_ep *v)
{
	exs_verbs_slow_withdraw(&v->allocating);
	exs_verbs_slow_withdraw(&v->connecting);
}

void exs_verbs_slow_cancel(struct exs_verbs_ep *v)
{
	cancel_work_sync(&v->allocating.work);
	cancel_work_sync(&v->connecting.work);
}

/*
 * The errno of a hand-shake that took too long: one that waits for its turn is not late because of
 * the peer.
 */
static int exs_verbs_late_errno(const struct exs_verbs_ep *v)
{
	return READ_ONCE(v->todo) & v->allocating.steps ? ENOBUFS : ETIMEDOUT;
}

/* The hand-shake took too long; or it is done, and the peer is silent, or gone. */
void exs_verbs_timer(struct work_struct *work)
{
	struct exs_verbs_ep *v = container_of(to_delayed_work(work),
					      struct exs_verbs_ep, timer);

	if (exs_verbs_is(v, EXS_VERBS_OPEN)) {
		if (exs_verbs_has(v, EXS_QUIRK_DEAF_ACCEPT))
			exs_verbs_greet_again(v);
		else
			exs_conn_lost(v->ep.conn, 0);	/* exs_verbs_lost() */
		return;
	}
	if (exs_verbs_is(v, EXS_VERBS_ACTIVE))
		exs_count(v->ep.conn->xn, connect_timeout, 1);
	else
		exs_count(v->ep.conn->xn, handshake_timeout, 1);
	exs_conn_lost(v->ep.conn, exs_verbs_late_errno(v));
}

/* The peer's answer has its hello. */
static void exs_verbs_established(struct exs_verbs_ep *v,
				  const struct rdma_conn_param *param)
{
	if (!exs_verbs_is(v, EXS_VERBS_ACTIVE))
		return;
	v->has_hello = !exs_wire_get_hello(param->private_data, param->private_data_len,
					   &v->peer);
	exs_verbs_note(v, EXS_VERBS_DO_OPEN);
}

/* The teardown may wait for what has come. */
static void exs_verbs_tell_teardown(struct exs_verbs_ep *v)
{
	/* Pairs with those in exs_verbs_await_answer() and exs_verbs_await_peer(). */
	smp_mb__after_atomic();
	if (exs_verbs_is(v, EXS_VERBS_DISCONNECTING))
		mod_delayed_work(exs_verbs_end_wq, &v->teardown_work, 0);
}

static void exs_verbs_peer_gone(struct exs_verbs_ep *v)
{
	set_bit(EXS_VERBS_GONE, &v->flags);
	exs_verbs_tell_teardown(v);
}

/*
 * Our connect has an answer, or the CM gave up. Only a connection that waits for that is notified:
 * a teardown that waits for the peer's end would come too early.
 */
static void exs_verbs_answered(struct exs_verbs_ep *v)
{
	if (test_and_clear_bit(EXS_VERBS_ASKED, &v->flags))
		exs_verbs_tell_teardown(v);
}

/* There is no connection at the peer that could report its end. */
static void exs_verbs_not_connected(struct exs_verbs_ep *v)
{
	if (exs_verbs_is(v, EXS_VERBS_ACTIVE) && !exs_verbs_is(v, EXS_VERBS_OPEN))
		exs_verbs_peer_gone(v);
	exs_verbs_answered(v);
}

/*
 * A peer that leaves before its CM got our last message of the hand-shake rejects a
 * connection that is established here. (rdma_notify() at the peer, when our data
 * overtakes that message, does not help: its answer would be repeated for a minute, and
 * destroying the identifier would wait for that.)
 */
static void exs_verbs_rejected(struct exs_verbs_ep *v, const struct rdma_cm_event *ev)
{
	if (exs_verbs_is_stale(v, ev)) {
		exs_verbs_note(v, EXS_VERBS_DO_RETRY);
		return;
	}
	exs_verbs_peer_gone(v);
	if (exs_verbs_is(v, EXS_VERBS_OPEN) || v->has_hello)
		exs_verbs_note_lost(v, 0);
	else
		exs_conn_lost(v->ep.conn, -exs_verbs_reject_errno(v, ev));
}

/* Events of a connection's identifier. Under its handler_mutex. */
int exs_verbs_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct exs_verbs_ep *v = id->context;
	struct exs_conn *conn = v->ep.conn;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		exs_verbs_note(v, EXS_VERBS_DO_ROUTE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		exs_verbs_note(v, EXS_VERBS_DO_CONNECT);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		exs_verbs_established(v, &ev->param.conn);
		exs_verbs_answered(v);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		exs_conn_lost(conn, -exs_verbs_addr_errno(v, ev->status));
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		exs_conn_lost(conn, EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_REJECTED:
		exs_verbs_rejected(v, ev);
		exs_verbs_answered(v);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		exs_verbs_not_connected(v);
		exs_conn_lost(conn, ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		exs_verbs_not_connected(v);
		exs_conn_lost(conn, ev->status < 0 ? -exs_verbs_errno(ev->status) :
			      ECONNRESET);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		exs_verbs_peer_gone(v);
		exs_verbs_note_lost(v, 0);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* A bond has another address; the peer's packets have the old one. */
		if (exs_verbs_has(v, EXS_QUIRK_MOVES))
			break;
		fallthrough;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* The teardown destroys the identifier; the CM waits for that. */
		exs_count(v->ep.conn->xn, resets_device, 1);
		exs_conn_lost(conn, ENETDOWN);
		/* A removed device reports nothing more. */
		if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			exs_verbs_answered(v);
		break;
	default:
		break;
	}
	return 0;
}

/* How a finished connect ended: 0 or a negative errno. */
static int exs_verbs_outcome(struct exs_verbs_ep *v)
{
	struct exs_conn *conn = v->ep.conn;
	int err;

	if (exs_verbs_is(v, EXS_VERBS_OPEN))
		return 0;
	spin_lock(&conn->lock);
	err = conn->end_err ? -conn->end_err : -ECONNABORTED;
	spin_unlock(&conn->lock);
	return err;
}

/* The task stops taking steps; the worker takes the rest. */
static void exs_verbs_leave(struct exs_verbs_ep *v)
{
	WRITE_ONCE(v->driving, false);
	/* Either we see the bit, or exs_verbs_note() sees that we left. */
	smp_mb();
	exs_verbs_queue_steps(v, READ_ONCE(v->todo) & EXS_VERBS_DO_STEPS);
	exs_verbs_unhold(v);
}

static bool exs_verbs_over(const struct exs_verbs_ep *v)
{
	return exs_verbs_is(v, EXS_VERBS_OPEN) || exs_verbs_is(v, EXS_VERBS_CLOSING);
}

static int exs_verbs_drive(struct exs_verbs_ep *v)
{
	int err;

	do {
		err = wait_event_interruptible(v->wait, exs_verbs_over(v) ||
					       READ_ONCE(v->todo) & EXS_VERBS_DO_STEPS);
		if (!err && !exs_verbs_over(v))
			err = exs_verbs_take_steps(v, EXS_VERBS_DO_STEPS, true);
	} while (!err && !exs_verbs_over(v));
	if (exs_verbs_over(v))
		err = exs_verbs_outcome(v);
	exs_verbs_leave(v);
	return err;
}

/* Return: 0, or -ECONNABORTED: it was closed before. */
static int exs_verbs_start(struct exs_verbs_ep *v, bool nonblock)
{
	struct exs_conn *conn = v->ep.conn;
	int err = 0;

	spin_lock(&conn->lock);
	if (conn->state != EXS_CONN_CONNECTING || exs_verbs_is(v, EXS_VERBS_CLOSING) ||
	    (!nonblock && !exs_verbs_hold(v)))
		err = -ECONNABORTED;
	else
		WRITE_ONCE(v->driving, !nonblock);
	spin_unlock(&conn->lock);
	return err;
}

/*
 * exs_ep_ops.connect
 *
 * The caller keeps the endpoint alive (exs_conn.users), and a task that takes steps
 * delays the teardown.
 */
int exs_verbs_connect(struct exs_ep *ep, bool nonblock, long timeout)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	int err;

	err = exs_verbs_start(v, nonblock);
	if (err)
		return err;
	set_bit(EXS_VERBS_ACTIVE, &v->flags);
	queue_delayed_work(exs_verbs_wq, &v->timer, timeout);
	/* Take no step before the present name is known. */
	mutex_lock(&v->step_mutex);
	err = exs_verbs_resolve(v, exs_verbs_addr_ms(v, timeout));
	if (!err)
		exs_verbs_addresses(v);
	mutex_unlock(&v->step_mutex);
	if (err) {
		err = exs_verbs_addr_errno(v, err);
		exs_conn_lost(ep->conn, -err);
		if (!nonblock)
			exs_verbs_leave(v);
		return err;
	}
	return nonblock ? -EINPROGRESS : exs_verbs_drive(v);
}
