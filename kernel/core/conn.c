// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a connection: created, up, lost, drained, gone. The code that moves its data
 * is in run.c (the executor) and in data.c and message.c (calls).
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat/compat.h"
#include "call.h"
#include "conn.h"
#include "core.h"
#include "limits.h"
#include "message.h"
#include "run.h"
#include "sock.h"
#include "stats.h"

/*
 * A message that is kept costs its length and EXS_EAGER_OVERHEAD. It is in no cap, and takes up
 * to twice as much memory: so this does not grow with the ring, only shrink.
 */
#define EXS_HELLO_EAGER_SPACE	(64u * EXS_WIRE_BUF_LEN)
/* The same for a stream that has no ring yet. The memory is allocated when first needed. */
#define EXS_HELLO_EAGER_STREAM	2048

/* Receives that are cancelled before the lock is released for others. */
#define EXS_CANCEL_BATCH	256

struct workqueue_struct *exs_run_wq, *exs_memory_wq;
static struct kmem_cache *exs_conn_cache;

static void exs_conn_free_queues(void)
{
	if (exs_run_wq)
		destroy_workqueue(exs_run_wq);
	if (exs_memory_wq)
		destroy_workqueue(exs_memory_wq);
}

int exs_conn_init(void)
{
	exs_run_wq = alloc_workqueue("exs_run", WQ_UNBOUND, 0);
	exs_memory_wq = alloc_workqueue("exs_memory", WQ_UNBOUND, WQ_MAX_ACTIVE);
	exs_conn_cache = KMEM_CACHE(exs_conn, SLAB_ACCOUNT);
	if (exs_run_wq && exs_memory_wq && exs_conn_cache && !exs_run_init())
		return 0;
	kmem_cache_destroy(exs_conn_cache);
	exs_conn_free_queues();
	return -ENOMEM;
}

void exs_conn_exit(void)
{
	exs_conn_free_queues();
	exs_run_exit();
	kmem_cache_destroy(exs_conn_cache);
	exs_limits_exit();
}

/* For unloading, which resets them; the list holds no reference. */
static LIST_HEAD(exs_orphans);
static DEFINE_SPINLOCK(exs_orphans_lock);
static int exs_orphan_count;	/* exs_orphans_lock */

static void exs_conn_linger_work(struct work_struct *work)
{
	struct exs_conn *conn = container_of(to_delayed_work(work), struct exs_conn,
					     linger_work);

	exs_count(conn->xn, linger_expired, 1);
	exs_conn_lost(conn, ETIMEDOUT);
	exs_conn_put(conn);
}

/* Resets the connection of a peer that did not answer a REVOKE in time. */
static void exs_conn_revoke_work(struct work_struct *work)
{
	struct exs_conn *conn = container_of(to_delayed_work(work), struct exs_conn,
					     revoke_work);
	bool late;

	spin_lock(&conn->lock);
	late = conn->revoking && conn->state == EXS_CONN_UP &&
	       time_after_eq(jiffies, conn->revoke_by);
	spin_unlock(&conn->lock);
	if (late) {
		exs_count(conn->xn, revoke_timeout, 1);
		exs_conn_lost(conn, ETIMEDOUT);
	}
	exs_conn_put(conn);
}

struct exs_conn *exs_conn_alloc(const struct exs_sock *xs, struct mem_cgroup *memcg, gfp_t gfp)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	struct exs_conn *conn = kmem_cache_zalloc(exs_conn_cache, gfp);

	set_active_memcg(old);
	if (!conn)
		return NULL;
	conn->memcg = exs_memcg_get(memcg);
	kref_init(&conn->ref);
	spin_lock_init(&conn->lock);
	conn->xn = exs_net_get(exs_net(sock_net(&xs->sk)));
	conn->socktype = xs->socktype;
	exs_options_copy(&conn->options, xs);
	INIT_LIST_HEAD(&conn->sends);
	INIT_LIST_HEAD(&conn->recvs);
	INIT_LIST_HEAD(&conn->ending);
	INIT_LIST_HEAD(&conn->finished);
	INIT_LIST_HEAD(&conn->messages);
	INIT_LIST_HEAD(&conn->spares);
	INIT_LIST_HEAD(&conn->held);
	INIT_LIST_HEAD(&conn->closers);
	INIT_LIST_HEAD(&conn->flushers);
	INIT_LIST_HEAD(&conn->orphans);
	init_waitqueue_head(&conn->wait);
	init_waitqueue_head(&conn->attendants);
	INIT_WORK(&conn->run_work, exs_conn_run_work);
	exs_conn_memory_init(conn);
	INIT_DELAYED_WORK(&conn->linger_work, exs_conn_linger_work);
	INIT_DELAYED_WORK(&conn->revoke_work, exs_conn_revoke_work);
	hrtimer_setup(&conn->alarm, exs_conn_alarm, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	exs_live(conn->xn, conns, 1);
	return conn;
}

static void exs_orphan_gone(struct exs_conn *conn)
{
	spin_lock(&exs_orphans_lock);
	list_del(&conn->orphans);
	exs_orphan_count--;
	conn->xn->orphans--;
	exs_user_shares(conn->user)->orphans--;
	spin_unlock(&exs_orphans_lock);
	exs_live(conn->xn, orphans, -1);
}

void exs_conn_release(struct kref *ref)
{
	struct exs_conn *conn = container_of(ref, struct exs_conn, ref);
	struct exs_net *xn = conn->xn;

	WARN_ON_ONCE(!list_empty(&conn->sends) || !list_empty(&conn->recvs) ||
		     !list_empty(&conn->ending) ||
		     !list_empty(&conn->finished));
	exs_message_purge(conn);
	kfree(conn->eager_mem);
	exs_conn_free_theirs(conn);
	exs_conn_free_ring(conn);
	if (conn->recv_pages)
		exs_peer_pages_uncharge(conn, conn->recv_pages);
	if (conn->orphan)
		exs_orphan_gone(conn);
	if (conn->user)
		exs_limit_uncharge(EXS_LIMIT_CONNS, 1, conn->user);
	if (conn->owner)
		exs_user_put(conn->owner);
	mem_cgroup_put(conn->memcg);
	kmem_cache_free(exs_conn_cache, conn);
	exs_live(xn, conns, -1);
	exs_net_put(xn);
}

static u32 exs_hello_eager_space(const struct exs_conn *conn)
{
	int ring = exs_option(&conn->options, EXS_SO_RING);

	if (conn->socktype == EXS_WIRE_STREAM)
		return exs_conn_ringless(conn) ? 0 : EXS_HELLO_EAGER_STREAM;
	if (ring == EXS_RING_DEFAULT)
		ring = exs_sysctl(conn->xn, ring_size);
	return ring ? min_t(u32, ring, EXS_HELLO_EAGER_SPACE) : EXS_HELLO_EAGER_SPACE;
}

const struct exs_hello *exs_conn_hello(struct exs_conn *conn)
{
	conn->hello = (struct exs_hello) {
		.socktype	= conn->socktype,
		.credits	= EXS_HELLO_CREDITS,
		.max_adverts	= EXS_ADVERTS_MAX,
		.max_segs	= EXS_HELD_SEGS_MAX,
		.recv_len	= EXS_WIRE_BUF_LEN,
		.features	= EXS_WIRE_FEATURES,
		.eager_space	= exs_hello_eager_space(conn),
	};
	return &conn->hello;
}

static void exs_conn_tune(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->engine_up)
		exs_engine_tune(&conn->engine, exs_option(&conn->options, EXS_SO_EAGER_MAX),
				exs_option(&conn->options, EXS_SO_ADVERTS));
}

/*
 * A stream cannot lose its ring once the connection exists: receives may be pending that
 * only a ring can serve.
 */
int exs_conn_set_option(struct exs_conn *conn, int name, int value)
{
	int err = 0;

	spin_lock(&conn->lock);
	if (name == EXS_SO_RING && conn->ring_made)
		err = -EBUSY;
	else if (name == EXS_SO_RING && !value && conn->options.value[name])
		err = -EISCONN;
	else
		WRITE_ONCE(conn->options.value[name], value);
	exs_conn_tune(conn);
	spin_unlock(&conn->lock);
	return err;
}

int exs_conn_established(struct exs_conn *conn, const struct exs_hello *peer)
{
	struct exs_engine_config config = {
		.ours		= conn->hello,
		.peer		= *peer,
		.eager_max	= EXS_WIRE_DATA_MAX,
		.ring_max	= EXS_RING_MESSAGE_MAX,
		.ring_overhead	= EXS_EAGER_OVERHEAD,
	};
	int err = -EPROTO;

	BUILD_BUG_ON(EXS_RING_MESSAGE_MAX > EXS_IMM_EACH_MAX);
	spin_lock(&conn->lock);
	if (conn->state == EXS_CONN_CONNECTING && peer->socktype == conn->socktype) {
		config.confirm = conn->ep->confirm;
		exs_engine_init(&conn->engine, &config);
		conn->engine.credits_wanted = !exs_engine_has(&conn->engine, EXS_WIRE_F_ASK);
		conn->engine_up = true;
		exs_conn_tune(conn);
		WRITE_ONCE(conn->state, EXS_CONN_UP);
		conn->wake |= EPOLLOUT;
		err = 0;
	}
	spin_unlock(&conn->lock);
	if (!err)
		exs_conn_run(conn);
	return err;
}

bool exs_conn_sending(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return !list_empty(&conn->sends);
}

/* The runner may just be about to post an event. */
bool exs_conn_receiving(struct exs_conn *conn)
{
	bool receiving;

	spin_lock(&conn->lock);
	receiving = conn->running || !list_empty(&conn->recvs) || !list_empty(&conn->held) ||
		    !list_empty(&conn->ending) || !list_empty(&conn->finished);
	spin_unlock(&conn->lock);
	return receiving;
}

/*
 * The peer may leave before its device has acknowledged everything. But its FIN has
 * returned the credits of all transfers that it had taken.
 */
bool exs_conn_arrived(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->engine_up && conn->engine.fin_rcvd && exs_engine_all_arrived(&conn->engine);
}

static bool exs_conn_all_posted(const struct exs_conn *conn)
{
	const struct exs_xfer *x;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry(x, &conn->sends, link)
		if (!x->all_posted)
			return false;
	return true;
}

unsigned long exs_conn_keepalive(const struct exs_conn *conn)
{
	const struct sock *sk = conn->sk;
	int idle;

	lockdep_assert_held(&conn->lock);
	if (!sk || !sock_flag(sk, SOCK_KEEPOPEN))
		return 0;
	idle = READ_ONCE(exs_sk(sk)->kept[EXS_KEPT_KEEPIDLE]);
	return idle ? idle * HZ : READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_time);
}

unsigned long exs_conn_user_timeout(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->sk ? exs_user_timeout(exs_sk(conn->sk)) : 0;
}

bool exs_conn_both_shut(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->engine_up && conn->engine.fin_rcvd && conn->engine.fin_wanted;
}

bool exs_conn_is_closed(const struct exs_conn *conn, bool shut)
{
	lockdep_assert_held(&conn->lock);
	return conn->end_err || exs_conn_both_shut(conn) ||
	       (shut && conn->state != EXS_CONN_UP);
}

/*
 * A send that the transport calls complete may still be in flight, and a disconnect may
 * overtake it.
 */
bool exs_conn_flushed(const struct exs_conn *conn)
{
	return conn->fin_delivered && exs_engine_confirmed(&conn->engine) &&
	       !exs_conn_sending(conn);
}

/* The error for a disconnect by the peer. conn->lock held. */
static int exs_conn_disconnected(const struct exs_conn *conn)
{
	int refused = ECONNREFUSED;	/* positive, as exs_conn_lost() takes it */

	if (conn->state != EXS_CONN_UP)
		return refused;
	if (conn->orphan && exs_conn_flushed(conn))
		return 0;
	if (!exs_conn_sending(conn))
		return conn->engine.fin_rcvd ? 0 : ECONNRESET;
	return exs_conn_arrived(conn) && exs_conn_all_posted(conn) ? 0 : ECONNRESET;
}

static void exs_conn_count_reset(struct exs_conn *conn, int err)
{
	if (err == EPROTO)
		exs_count(conn->xn, resets_protocol, 1);
	if (err == ENOBUFS)
		exs_count(conn->xn, resets_nomem, 1);
}

void exs_conn_lost(struct exs_conn *conn, int err)
{
	bool first;

	spin_lock(&conn->lock);
	first = conn->state < EXS_CONN_CLOSING;
	if (first) {
		if (!err)
			err = exs_conn_disconnected(conn);
		/* The peer may leave before its CM knows that we are connected. */
		if (err == ECONNREFUSED && conn->engine_up)
			err = ECONNRESET;
		WRITE_ONCE(conn->err, err);
		WRITE_ONCE(conn->end_err, err);
		WRITE_ONCE(conn->state, conn->ep ? EXS_CONN_CLOSING : EXS_CONN_DEAD);
		conn->wake |= EPOLLIN | EPOLLOUT | EPOLLHUP | (err ? EPOLLERR : 0);
	}
	spin_unlock(&conn->lock);
	if (!first)
		return;
	exs_conn_count_reset(conn, err);
	if (conn->ep)
		conn->ep->ops->close(conn->ep);
	exs_conn_run(conn);
}

void exs_conn_unuse(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!--conn->users && !conn->drained)
		exs_conn_go_on(conn);
}

void exs_conn_go_on(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->awaited)
		return;
	conn->awaited = false;
	conn->ep->ops->go_on(conn->ep);
}

bool exs_conn_unused(struct exs_conn *conn)
{
	bool unused;

	exs_conn_lost(conn, ENETDOWN);
	spin_lock(&conn->lock);
	unused = !conn->users;
	conn->awaited = !unused;
	spin_unlock(&conn->lock);
	return unused;
}

/* The runner leaves without waiting for user space, but may be stopped there. */
static bool exs_conn_is_over(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->drained = true;
	exs_conn_run_locked(conn);
	return conn->state == EXS_CONN_DEAD && !conn->running;
}

bool exs_conn_drained(struct exs_conn *conn)
{
	bool over;

	spin_lock(&conn->lock);
	over = exs_conn_is_over(conn);
	conn->awaited = !over;
	if (over)
		conn->ep = NULL;
	spin_unlock(&conn->lock);
	if (!over)
		return false;
	exs_conn_memory_leave(conn);
	if (cancel_delayed_work_sync(&conn->linger_work))
		exs_conn_put(conn);
	if (cancel_delayed_work_sync(&conn->revoke_work))
		exs_conn_put(conn);
	hrtimer_cancel(&conn->alarm);	/* nothing sets it any more */
	return true;
}

void exs_conn_tell_closers(struct exs_conn *conn, struct list_head *closers)
{
	exs_closers_move(closers, &conn->closers);
	exs_conn_run(conn);
}

void exs_conn_tell_flushed(struct exs_conn *conn, struct list_head *flushers)
{
	exs_closers_move(flushers, &conn->flushers);
	exs_conn_run(conn);
}

void exs_conn_graft(struct exs_conn *conn, struct sock *sk)
{
	spin_lock(&conn->lock);
	conn->sk = sk;
	spin_unlock(&conn->lock);
}

void exs_conn_shutdown(struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	if (conn->state == EXS_CONN_UP)
		exs_engine_shutdown(&conn->engine);
	conn->wake |= EPOLLOUT;
	spin_unlock(&conn->lock);
	exs_conn_run(conn);
}

int exs_conn_flush(struct exs_conn *conn, long timeout)
{
	int err;

	spin_lock(&conn->lock);
	err = exs_conn_wait(conn, conn->state != EXS_CONN_UP || exs_conn_flushed(conn),
			    &timeout);
	spin_unlock(&conn->lock);
	return err;
}

void exs_conn_cancel_receives(struct exs_conn *conn, bool in_order)
{
	struct exs_xfer *x;

	lockdep_assert_held(&conn->lock);
	if (!conn->engine_up)
		return;
	while ((x = list_first_entry_or_null(&conn->held, struct exs_xfer, link))) {
		exs_message_unhold(conn, x);
		cond_resched_lock(&conn->lock);
	}
	while (exs_engine_cancel_rcvs(&conn->engine, EXS_CANCEL_BATCH, in_order))
		cond_resched_lock(&conn->lock);
}

void exs_conn_shutdown_read(struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	conn->read_shut = true;
	conn->late_recv = true;
	conn->wake |= EPOLLIN;
	exs_conn_cancel_receives(conn, true);
	spin_unlock(&conn->lock);
	exs_conn_run(conn);
}

/* Unread data: closing then resets the connection, as in TCP. */
static bool exs_conn_unread(const struct exs_conn *conn)
{
	const struct exs_engine *e = &conn->engine;

	lockdep_assert_held(&conn->lock);
	if (conn->state != EXS_CONN_UP)
		return false;
	/* A message in the ring may already have its receive. */
	if (conn->socktype == EXS_WIRE_SEQPACKET)
		return e->used || e->announced || !list_empty(&conn->messages);
	return exs_engine_readable(e);
}

bool exs_conn_has_unread(struct exs_conn *conn)
{
	bool unread;

	spin_lock(&conn->lock);
	unread = exs_conn_unread(conn);
	spin_unlock(&conn->lock);
	return unread;
}

/*
 * The initial namespace's cap is for the whole machine. A user, and any other namespace,
 * leaves as many places free as it uses, so none can take all of them.
 */
static bool exs_orphan_fits(const struct exs_conn *conn)
{
	int left = exs_sysctl(exs_net(&init_net), max_orphans) - exs_orphan_count;
	const struct exs_net *xn = conn->xn;

	lockdep_assert_held(&exs_orphans_lock);
	if (xn->orphans >= exs_sysctl(xn, max_orphans) || !conn->user ||
	    exs_user_shares(conn->user)->orphans >= left)
		return false;
	return net_eq(xn->net, &init_net) || xn->orphans < left;
}

static bool exs_orphan_add(struct exs_conn *conn)
{
	spin_lock(&exs_orphans_lock);
	conn->orphan = exs_orphan_fits(conn);
	if (conn->orphan) {
		exs_orphan_count++;
		conn->xn->orphans++;
		exs_user_shares(conn->user)->orphans++;
		list_add_tail(&conn->orphans, &exs_orphans);
	}
	spin_unlock(&exs_orphans_lock);
	if (conn->orphan)
		exs_live(conn->xn, orphans, 1);
	else
		exs_count(conn->xn, orphan_limit, 1);
	return conn->orphan;
}

/* The next orphan to reset, with a reference; or NULL. */
static struct exs_conn *exs_orphan_take(void)
{
	struct exs_conn *conn, *found = NULL;

	spin_lock(&exs_orphans_lock);
	while (!found && !list_empty(&exs_orphans)) {
		conn = list_first_entry(&exs_orphans, struct exs_conn, orphans);
		list_del_init(&conn->orphans);
		/* Without a reference left, it is about to reach exs_orphan_gone(). */
		if (kref_get_unless_zero(&conn->ref))
			found = conn;
	}
	spin_unlock(&exs_orphans_lock);
	return found;
}

void exs_conn_reset_orphans(void)
{
	struct exs_conn *conn;

	while ((conn = exs_orphan_take())) {
		exs_conn_lost(conn, ECONNABORTED);
		exs_conn_put(conn);
	}
}

void exs_conn_orphan(struct exs_conn *conn, unsigned long linger)
{
	bool up, stay;

	spin_lock(&conn->lock);
	conn->sk = NULL;
	up = conn->state == EXS_CONN_UP;
	stay = up && linger && !exs_conn_unread(conn) && exs_orphan_add(conn);
	if (stay) {
		exs_engine_shutdown(&conn->engine);
		exs_conn_get(conn);
		queue_delayed_work(exs_run_wq, &conn->linger_work, linger);
	}
	exs_conn_cancel_receives(conn, false);
	spin_unlock(&conn->lock);
	if (!stay)
		exs_conn_lost(conn, ECONNABORTED);
	exs_conn_run(conn);
}

static bool exs_conn_readable(const struct exs_conn *conn, int lowat)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->engine_up)
		return false;
	if (conn->socktype == EXS_WIRE_SEQPACKET)
		return exs_message_readable(conn);
	return exs_engine_enough(&conn->engine, lowat) || exs_engine_eof(&conn->engine);
}

u32 exs_conn_sndbuf(const struct exs_conn *conn)
{
	const struct sock *sk = conn->sk;

	lockdep_assert_held(&conn->lock);
	if (sk && sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return READ_ONCE(sk->sk_sndbuf);
	return exs_sysctl_cap(conn->xn, sndbuf);
}

u32 exs_conn_notsent(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->unsent - min_t(u64, conn->unsent, conn->tx_bytes);
}

/* TCP_NOTSENT_LOWAT. The end of a send lowers this number, and wakes waiting threads. */
static bool exs_conn_much_notsent(const struct exs_conn *conn)
{
	const struct sock *sk = conn->sk;
	u32 most = sk ? READ_ONCE(exs_sk(sk)->kept[EXS_KEPT_NOTSENT_LOWAT]) : 0;

	return most && exs_conn_notsent(conn) >= most;
}

bool exs_conn_writable(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->state == EXS_CONN_UP && !conn->engine.fin_wanted &&
	       conn->sndbuf_used < exs_conn_sndbuf(conn) && !exs_conn_much_notsent(conn);
}

/* Otherwise two programs that poll, then block in write(2), could each wait for the other. */
bool exs_conn_roomy(const struct exs_conn *conn)
{
	return exs_conn_writable(conn) && conn->sndbuf_used <= exs_conn_sndbuf(conn) / 3 * 2;
}

__poll_t exs_conn_poll(struct exs_conn *conn, int lowat)
{
	__poll_t mask = 0;

	spin_lock(&conn->lock);
	if (exs_conn_readable(conn, lowat))
		mask |= EPOLLIN | EPOLLRDNORM;
	else
		exs_message_want(conn);
	if (conn->engine_up && conn->engine.fin_rcvd)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (exs_conn_both_shut(conn))
		mask |= EPOLLHUP;
	if (exs_conn_roomy(conn))
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (conn->state >= EXS_CONN_CLOSING)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLHUP |
			EPOLLOUT | EPOLLWRNORM;
	if (conn->err)
		mask |= EPOLLERR;
	spin_unlock(&conn->lock);
	return mask;
}

/* A receive that gets bytes only by an advert. */
static bool exs_xfer_only_direct(const struct exs_conn *conn, const struct exs_xfer *x)
{
	return x->is_recv && x->rcv.len && exs_conn_ringless(conn);
}

/*
 * Whether a receive's memory is worth a key: see net.exs.direct_min. A message that is too
 * long to be eager needs one.
 */
static bool exs_xfer_is_direct(const struct exs_conn *conn, const struct exs_xfer *x)
{
	u64 least = exs_sysctl(conn->xn, direct_min);

	if (conn->socktype == EXS_WIRE_SEQPACKET)
		least = min_t(u64, least, EXS_WIRE_DATA_MAX + 1);
	return exs_xfer_only_direct(conn, x) ||
	       (x->is_recv && x->rcv.len && x->rcv.len >= least);
}

static bool exs_xfer_needs_map(const struct exs_conn *conn, const struct exs_xfer *x)
{
	if (!x->is_recv)
		return !x->snd.gate && iov_iter_count(&x->iter) > conn->ep->max_copy;
	return conn->socktype == EXS_WIRE_SEQPACKET || exs_xfer_is_direct(conn, x);
}

int exs_conn_end_error(struct exs_conn *conn)
{
	int err = -conn->err;

	lockdep_assert_held(&conn->lock);
	if (conn->engine.fin_rcvd)
		return 0;
	WRITE_ONCE(conn->err, 0);
	return err;
}

/* The error of a send, before it starts. */
int exs_conn_send_error(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state == EXS_CONN_UP && !conn->engine.fin_wanted)
		return 0;
	if (conn->state < EXS_CONN_UP)
		return -ENOTCONN;
	return conn->err ? -conn->err : -EPIPE;
}

/* Whether @x may start. A send at a gate's place was admitted with the gate. A receive may
 * always start (it ends with the available bytes, EOF, or the error), but not overtake a
 * kept message. A fetch must find the message that it was made for.
 */
static inline int exs_conn_admit(struct exs_conn *conn, const struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	if (x->gate)
		return x->gate->snd.gate ? 0 : -ECANCELED;
	if (!x->is_recv)
		return exs_conn_send_error(conn);
	if (!conn->engine_up)
		return -ENOTCONN;
	/* exs_message_hold() queues it after a message that is being fetched. */
	if (conn->fetching && x->call)
		return 0;
	if (x->rcv.flags & EXS_RCV_FETCH && !exs_engine_fetches(&conn->engine, x->rcv.len))
		return -EAGAIN;
	return exs_message_kept(conn) ? -EAGAIN : 0;
}

/* The place of @x in the order of sends, or of receives: in front of what is returned. */
static struct list_head *exs_conn_place(struct exs_conn *conn, struct exs_xfer *x)
{
	if (x->gate)
		return &x->gate->link;
	return x->is_recv ? &conn->recvs : &conn->sends;
}

exs_hot
static void exs_conn_queue(struct exs_conn *conn, struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	if (x->call)
		list_add_tail(&x->sibling, &x->call->xfers);
	if (x->is_recv && x->call && conn->fetching) {
		exs_message_hold(conn, x);
		return;
	}
	conn->late_recv |= x->is_recv && conn->read_shut;
	list_add_tail(&x->link, exs_conn_place(conn, x));
	if (x->gate)
		exs_engine_send_before(&conn->engine, &x->snd, &x->gate->snd);
	else if (x->is_recv)
		exs_engine_recv(&conn->engine, &x->rcv);
	else
		exs_engine_send(&conn->engine, &x->snd);
}

/*
 * Map @x, then queue it. The endpoint stays while conn->users is not zero: mapping may
 * sleep for memory, but never for user space. A connection that ends meanwhile still takes
 * a receive, without memory keys.
 */
static int exs_conn_map_and_queue(struct exs_conn *conn, struct exs_xfer *x)
	__must_hold(&conn->lock)
{
	struct exs_ep *ep = conn->ep;
	int err;

	lockdep_assert_held(&conn->lock);
	conn->users++;
	spin_unlock(&conn->lock);
	if (exs_xfer_is_direct(conn, x))
		x->rcv.flags |= EXS_RCV_DIRECT;
	err = ep->ops->map(ep, x);
	spin_lock(&conn->lock);
	if (!err && exs_xfer_only_direct(conn, x) && !(x->rcv.flags & EXS_RCV_DIRECT))
		err = -ENOBUFS;
	if (!err)
		err = exs_conn_admit(conn, x);
	if (x->map.mapped && (err || conn->state != EXS_CONN_UP)) {
		spin_unlock(&conn->lock);
		ep->ops->unmap(ep, x);
		spin_lock(&conn->lock);
		if (x->is_recv)
			x->rcv.flags &= ~EXS_RCV_DIRECT;
	}
	if (!err)
		exs_conn_queue(conn, x);
	exs_conn_unuse(conn);
	return err;
}

exs_hot
int exs_conn_submit(struct exs_conn *conn, struct exs_xfer *x)
{
	int err;

	x->conn = conn;
	INIT_LIST_HEAD(&x->sibling);
	INIT_LIST_HEAD(&x->behind);
	INIT_LIST_HEAD(&x->map.mrs);
	spin_lock(&conn->lock);
	err = exs_conn_admit(conn, x);
	if (!err && conn->state == EXS_CONN_UP && exs_xfer_needs_map(conn, x))
		err = exs_conn_map_and_queue(conn, x);
	else if (!err)
		exs_conn_queue(conn, x);
	if (!err && !(x->call && x->call->more))
		exs_conn_run_locked(conn);
	spin_unlock(&conn->lock);
	return err;
}

void exs_conn_open(struct exs_conn *conn, struct exs_xfer *gate)
{
	spin_lock(&conn->lock);
	if (gate->snd.gate)
		exs_engine_open(&conn->engine, &gate->snd);
	exs_conn_run_locked(conn);
	spin_unlock(&conn->lock);
}

static void exs_conn_cancel_xfer(struct exs_conn *conn, struct exs_xfer *x)
{
	exs_count(conn->xn, cancel_looks, 1);
	if (x->held)
		exs_message_unhold(conn, x);
	else if (x->is_recv && !x->ended)
		exs_engine_cancel_rcv(&conn->engine, &x->rcv);
	if (!x->is_recv && !x->all_posted)
		exs_engine_cancel_snd(&conn->engine, &x->snd);
	if (!x->is_recv && x->waits)
		list_move_tail(&x->link, &conn->finished);
}

void exs_conn_cancel(struct exs_conn *conn, const struct exs_call *call)
{
	struct exs_xfer *x;

	spin_lock(&conn->lock);
	list_for_each_entry(x, &call->xfers, sibling)
		exs_conn_cancel_xfer(conn, x);
	if (!list_empty(&call->xfers))
		exs_conn_run_locked(conn);
	spin_unlock(&conn->lock);
}

/* The endpoint of a connection that is up, until exs_conn_unuse(); or NULL. */
static struct exs_ep *exs_conn_use(struct exs_conn *conn)
{
	struct exs_ep *ep = NULL;

	spin_lock(&conn->lock);
	if (conn->state == EXS_CONN_UP) {
		conn->users++;
		ep = conn->ep;
	}
	spin_unlock(&conn->lock);
	return ep;
}

static void exs_conn_used(struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	exs_conn_unuse(conn);
	spin_unlock(&conn->lock);
}

/*
 * Runs under the list's lock, so a thread that leaves the list knows whether it was told.
 * Only while the connection is up: otherwise there is work that attendants cannot do.
 */
exs_hot
bool exs_conn_event(struct exs_conn *conn)
{
	unsigned long flags;
	bool attended;

	spin_lock_irqsave(&conn->attendants.lock, flags);
	/* The lock orders this against joining threads. */
	attended = waitqueue_active(&conn->attendants) &&
		   READ_ONCE(conn->state) == EXS_CONN_UP;
	if (attended)
		__wake_up_locked(&conn->attendants, TASK_NORMAL, 1);
	spin_unlock_irqrestore(&conn->attendants.lock, flags);
	return attended;
}

exs_hot
int exs_conn_drain_cq(struct exs_conn *conn)
{
	struct exs_ep *ep = exs_conn_use(conn);
	int n;

	if (!ep)
		return 0;
	n = ep->ops->drain(ep);
	exs_conn_used(conn);
	return n;
}

bool exs_conn_poll_cq(struct exs_conn *conn)
{
	struct exs_ep *ep = exs_conn_use(conn);

	if (!ep)
		return false;
	ep->ops->poll(ep);
	exs_conn_used(conn);
	return true;
}
