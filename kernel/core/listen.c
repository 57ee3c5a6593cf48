// SPDX-License-Identifier: GPL-2.0
/*
 * Listening sockets.
 *
 * A connection is pending while the peer's hand-shake is under way, then ready
 * until it is accepted. Both together stay within the backlog, and those that are
 * pending within net.exs.max_half_open, and with those of the user's other listeners
 * within net.exs.max_user_half_open: a request beyond that is refused before anything is
 * allocated for it.
 *
 * A ready connection counts for the user who called listen(). A pending one does not,
 * because any peer that reaches the port can begin many. No hand-shake begins that could not be
 * completed now. If several are completed at the limit at the same moment, the last ones are reset.
 *
 * Ready connections go to waiting operations first, in their order, then to
 * accept(2). As with TCP, one that died while waiting is accepted like the
 * others: its first read returns the error.
 *
 * The transport calls in without lock_sock; everything here is under
 * listen->lock. The object stays with the socket when listening ends, closed.
 */
#include <linux/err.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "transport.h"
#include "core.h"
#include "fallback.h"
#include "limits.h"
#include "stats.h"

/**
 * struct exs_listen - the listening side of a socket
 * @lock: guards all below
 * @sk: the socket; callbacks end before it does
 * @open: whether requests are taken
 * @backlog: most connections in @pending and @ready together
 * @count: their number, including reserved places
 * @half_open: those of them that are not ready
 * @tcp_is_next: accept(2) took an EXS connection last
 * @user: the user that listens; a reference while @open
 * @memcg: the memory cgroup that is charged; likewise
 * @pending: struct exs_waiting, hand-shake under way
 * @ready: struct exs_waiting, for accept()
 * @waiters: struct exs_waiter, asynchronous accepts
 * @work: brings @ready and @waiters together
 * @turn: the turn of @work, which allocates
 */
struct exs_listen {
	spinlock_t lock;	/* all below */
	struct sock *sk;
	bool open;
	bool tcp_is_next;
	unsigned int backlog;
	unsigned int count;
	unsigned int half_open;
	struct exs_user *user;
	struct mem_cgroup *memcg;
	struct list_head pending;
	struct list_head ready;
	struct list_head waiters;
	struct work_struct work;
	struct exs_turn turn;
};

/* A connection that was not accepted yet; holds a reference. */
struct exs_waiting {
	struct list_head node;
	struct exs_conn *conn;
};

static void exs_listen_work(struct work_struct *work);

static void exs_listen_again(struct exs_turn *turn)
{
	queue_work(exs_sock_wq, &container_of(turn, struct exs_listen, turn)->work);
}

static struct exs_listen *exs_listen_alloc(struct sock *sk)
{
	struct exs_listen *listen = kzalloc(sizeof(*listen), GFP_KERNEL_ACCOUNT);

	if (!listen)
		return NULL;
	spin_lock_init(&listen->lock);
	listen->sk = sk;
	INIT_LIST_HEAD(&listen->pending);
	INIT_LIST_HEAD(&listen->ready);
	INIT_LIST_HEAD(&listen->waiters);
	INIT_WORK(&listen->work, exs_listen_work);
	exs_turn_init(&listen->turn, EXS_POOL_ACCEPT, exs_listen_again);
	return listen;
}

void exs_listen_free(struct exs_listen *listen)
{
	WARN_ON_ONCE(listen->open || listen->count);
	kfree(listen);
}

/* Reset a connection that will not be accepted. No lock held. */
static void exs_waiting_drop(struct exs_waiting *w)
{
	exs_conn_orphan(w->conn, 0);
	exs_conn_put(w->conn);
	kfree(w);
}

/* listen->lock held. Its user is not dropped here: the listener holds it. */
static void exs_half_open_end(struct exs_listen *listen)
{
	lockdep_assert_held(&listen->lock);
	listen->half_open--;
	exs_limit_uncharge(EXS_LIMIT_HALF_OPEN, 1, listen->user);
}

/* Reserve a place in the backlog; otherwise @reason is set. */
static bool exs_listen_reserve(struct exs_listen *listen, enum exs_wire_reason *reason)
{
	const struct exs_net *xn = exs_net(sock_net(listen->sk));
	bool room = false;

	spin_lock(&listen->lock);
	if (!listen->open) {
		*reason = EXS_REJECT_NONE;
	} else if (listen->count >= listen->backlog) {
		*reason = EXS_REJECT_BACKLOG;
		exs_count(xn, reject_backlog, 1);
	} else if (listen->half_open >= exs_sysctl_cap(xn, max_half_open)) {
		*reason = EXS_REJECT_LIMIT;
		exs_count(xn, reject_half_open, 1);
	} else if (exs_limit_reached(xn, EXS_LIMIT_CONNS, listen->user) ||
		   exs_limit_charge_user(xn, EXS_LIMIT_HALF_OPEN, 1, listen->user)) {
		*reason = EXS_REJECT_LIMIT;
		exs_count(xn, reject_limit, 1);
	} else {
		listen->count++;
		listen->half_open++;
		room = true;
	}
	spin_unlock(&listen->lock);
	return room;
}

static void exs_listen_unreserve(struct exs_listen *listen)
{
	spin_lock(&listen->lock);
	listen->count--;
	exs_half_open_end(listen);
	spin_unlock(&listen->lock);
}

static struct exs_waiting *exs_waiting_alloc(struct exs_listen *listen)
{
	struct mem_cgroup *old = set_active_memcg(listen->memcg);
	struct exs_waiting *w = kzalloc(sizeof(*w), EXS_GFP_REQUEST);

	set_active_memcg(old);
	if (!w)
		return NULL;
	w->conn = exs_conn_alloc(exs_sk(listen->sk), listen->memcg, EXS_GFP_REQUEST);
	if (!w->conn) {
		kfree(w);
		return NULL;
	}
	/* The listener ends after its requests. */
	w->conn->owner = exs_user_get(listen->user);
	return w;
}

static bool exs_listen_wants(struct exs_listen *listen, const struct exs_hello *hello,
			     enum exs_wire_reason *reason)
{
	const struct exs_net *xn = exs_net(sock_net(listen->sk));

	if (!exs_sysctl_cap(xn, enabled)) {
		*reason = EXS_REJECT_DISABLED;
		exs_count(xn, reject_disabled, 1);
		return false;
	}
	if (hello->socktype != exs_sk(listen->sk)->socktype) {
		*reason = EXS_REJECT_SOCKTYPE;
		exs_count(xn, reject_socktype, 1);
		return false;
	}
	return true;
}

bool exs_listen_on(const struct exs_listen *listen, int ifindex)
{
	const struct sock *sk = listen->sk;
	int bound = READ_ONCE(sk->sk_bound_dev_if);

	if (!bound || bound == ifindex)
		return true;
	exs_count(exs_net(sock_net(sk)), reject_device, 1);
	return false;
}

struct exs_conn *exs_listen_request(struct exs_listen *listen,
				    const struct exs_hello *hello,
				    enum exs_wire_reason *reason)
{
	struct exs_waiting *w;
	struct exs_conn *conn;

	if (!exs_listen_wants(listen, hello, reason) ||
	    !exs_listen_reserve(listen, reason))
		return NULL;
	w = exs_waiting_alloc(listen);
	if (!w) {
		exs_listen_unreserve(listen);
		exs_count(exs_net(sock_net(listen->sk)), reject_nomem, 1);
		*reason = EXS_REJECT_LIMIT;
		return NULL;
	}
	conn = w->conn;
	exs_conn_get(conn);
	spin_lock(&listen->lock);
	list_add_tail(&w->node, &listen->pending);
	spin_unlock(&listen->lock);
	return conn;
}

static struct exs_waiting *exs_listen_find(struct exs_listen *listen,
					   const struct exs_conn *conn)
{
	struct exs_waiting *w;

	lockdep_assert_held(&listen->lock);
	list_for_each_entry(w, &listen->pending, node)
		if (w->conn == conn)
			return w;
	return NULL;
}

/* @ready has grown, or may have. listen->lock held. */
static void exs_listen_kick(struct exs_listen *listen)
{
	lockdep_assert_held(&listen->lock);
	if (!listen->open || list_empty(&listen->ready))
		return;
	if (!list_empty(&listen->waiters))
		queue_work(exs_sock_wq, &listen->work);
	else
		listen->sk->sk_data_ready(listen->sk);
}

/* Remove @conn, which is over. listen->lock held. */
static struct exs_waiting *exs_listen_forget(struct exs_listen *listen,
					     const struct exs_conn *conn)
{
	struct exs_waiting *w = exs_listen_find(listen, conn);

	if (!w)
		return NULL;
	list_del(&w->node);
	listen->count--;
	exs_half_open_end(listen);
	return w;
}

/* Its user has room for it: charge the user, make it ready. listen->lock held. */
static bool exs_listen_charge(struct exs_listen *listen, struct exs_conn *conn)
{
	lockdep_assert_held(&listen->lock);
	if (exs_limit_charge_user(conn->xn, EXS_LIMIT_CONNS, 1, listen->user)) {
		exs_count(conn->xn, reject_limit, 1);
		return false;
	}
	WRITE_ONCE(conn->user, listen->user);
	return true;
}

void exs_listen_established(struct exs_listen *listen, struct exs_conn *conn)
{
	struct exs_waiting *w, *refused = NULL;

	spin_lock(&listen->lock);
	w = exs_listen_find(listen, conn);
	if (w && !exs_listen_charge(listen, conn)) {
		refused = exs_listen_forget(listen, conn);
	} else if (w) {
		list_move_tail(&w->node, &listen->ready);
		exs_half_open_end(listen);
		exs_listen_kick(listen);
	}
	spin_unlock(&listen->lock);
	exs_peer_heard(conn->xn, &conn->peer);
	if (refused)
		exs_waiting_drop(refused);
}

void exs_listen_failed(struct exs_listen *listen, struct exs_conn *conn)
{
	struct exs_waiting *w;

	spin_lock(&listen->lock);
	w = exs_listen_forget(listen, conn);
	spin_unlock(&listen->lock);
	if (w)
		exs_waiting_drop(w);
}

/* The next ready connection, removed from the backlog; NULL: none. */
static struct exs_waiting *exs_listen_take(struct exs_listen *listen)
{
	struct exs_waiting *w;

	lockdep_assert_held(&listen->lock);
	w = list_first_entry_or_null(&listen->ready, struct exs_waiting, node);
	if (w) {
		list_del(&w->node);
		listen->count--;
	}
	return w;
}

#define EXS_INHERITED_FLAGS	(EXS_OPTION_FLAGS | BIT(SOCK_KEEPOPEN) | BIT(SOCK_RCVTSTAMP) | \
				 BIT(SOCK_RCVTSTAMPNS) | BIT(SOCK_TSTAMP_NEW))

static void exs_child_inherit(struct sock *child, const struct sock *sk)
{
	child->sk_flags |= sk->sk_flags & EXS_INHERITED_FLAGS;
	child->sk_ipv6only = sk->sk_ipv6only;
	child->sk_reuseport = sk->sk_reuseport;
	child->sk_no_check_tx = sk->sk_no_check_tx;
	exs_sock_hints_give(sk, child);
	child->sk_peek_off = READ_ONCE(sk->sk_peek_off);
	child->sk_max_pacing_rate = READ_ONCE(sk->sk_max_pacing_rate);
	child->sk_mark = sk->sk_mark;
	child->sk_bound_dev_if = READ_ONCE(sk->sk_bound_dev_if);
	child->sk_reuse = sk->sk_reuse;
	child->sk_sndbuf = sk->sk_sndbuf;
	child->sk_rcvbuf = sk->sk_rcvbuf;
	child->sk_userlocks = sk->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	child->sk_rcvlowat = sk->sk_rcvlowat;
	child->sk_rcvtimeo = sk->sk_rcvtimeo;
	child->sk_sndtimeo = sk->sk_sndtimeo;
	child->sk_lingertime = sk->sk_lingertime;
	exs_cgroup_give(sk, child);
	security_sk_clone(sk, child);
}

/* A connected socket of @w, which is consumed; or NULL: no memory. */
static struct sock *exs_child_alloc(struct sock *sk, struct exs_waiting *w)
{
	struct exs_sock *listener = exs_sk(sk), *xs;
	struct exs_conn *conn = w->conn;
	struct mem_cgroup *old;
	struct sock *child;

	old = set_active_memcg(conn->memcg);
	child = exs_sock_alloc(sock_net(sk), sk->sk_family, NULL, sk->sk_type, 0);
	set_active_memcg(old);
	if (!child)
		return NULL;
	exs_inet_clone(child, sk);
	exs_child_inherit(child, sk);
	xs = exs_sk(child);
	xs->timeouts[0] = READ_ONCE(listener->timeouts[0]);
	xs->timeouts[1] = READ_ONCE(listener->timeouts[1]);
	if (test_bit(EXS_SK_V6, &listener->flags))
		set_bit(EXS_SK_V6, &xs->flags);
	exs_tcp_inherit(xs, listener);
	lock_sock_nested(child, SINGLE_DEPTH_NESTING);
	exs_sock_connected(xs, conn);
	release_sock(child);
	exs_conn_graft(conn, child);
	exs_sock_publish_error(xs);
	/* The connection has got a socket, whose SO_KEEPALIVE may have to take effect. */
	exs_conn_run(conn);
	kfree(w);
	return child;
}

/* No memory for a child: the connection continues to wait. */
static void exs_listen_put_back(struct exs_listen *listen, struct exs_waiting *w)
{
	bool open;

	spin_lock(&listen->lock);
	open = listen->open;
	if (open) {
		list_add(&w->node, &listen->ready);
		listen->count++;
		exs_listen_kick(listen);
	}
	spin_unlock(&listen->lock);
	if (!open)
		exs_waiting_drop(w);
}

/* The oldest waiter and connection, if both exist. */
static struct exs_waiter *exs_listen_match(struct exs_listen *listen,
					   struct exs_waiting **w)
{
	struct exs_waiter *waiter;

	spin_lock(&listen->lock);
	waiter = list_first_entry_or_null(&listen->waiters, struct exs_waiter, node);
	*w = waiter ? exs_listen_take(listen) : NULL;
	if (*w)
		list_del_init(&waiter->node);
	spin_unlock(&listen->lock);
	return *w ? waiter : NULL;
}

static void exs_listen_serve(struct exs_listen *listen)
{
	struct exs_waiter *waiter;
	struct exs_waiting *w;
	struct sock *child;

	while ((waiter = exs_listen_match(listen, &w))) {
		child = exs_child_alloc(listen->sk, w);
		if (child) {
			exs_count(exs_net(sock_net(listen->sk)), accepts, 1);
			waiter->fn(waiter, 0, child);
			continue;
		}
		exs_listen_put_back(listen, w);
		waiter->fn(waiter, -ENOMEM, NULL);
	}
	/* The rest is for accept(2). */
	spin_lock(&listen->lock);
	exs_listen_kick(listen);
	spin_unlock(&listen->lock);
}

static bool exs_listen_is_open(struct exs_listen *listen)
{
	bool open;

	spin_lock(&listen->lock);
	open = listen->open;
	spin_unlock(&listen->lock);
	return open;
}

static void exs_listen_work(struct work_struct *work)
{
	struct exs_listen *listen = container_of(work, struct exs_listen, work);

	if (!exs_listen_is_open(listen) || exs_turn_take(listen->user, &listen->turn) <= 0)
		return;
	exs_listen_serve(listen);
	exs_turn_pass(listen->user, EXS_POOL_ACCEPT);
}

/*
 * @listen is closed, so a work that begins from now on takes no turn. One that waits for its
 * turn may still be queued by that.
 */
static void exs_listen_stop_work(struct exs_listen *listen)
{
	cancel_work_sync(&listen->work);
	exs_turn_leave(listen->user, &listen->turn);
	cancel_work_sync(&listen->work);
}

int exs_listen_add_waiter(struct exs_listen *listen, struct exs_waiter *w)
{
	int err = -EINVAL;

	spin_lock(&listen->lock);
	if (listen->open) {
		list_add_tail(&w->node, &listen->waiters);
		exs_listen_kick(listen);
		err = 0;
	}
	spin_unlock(&listen->lock);
	return err;
}

bool exs_listen_remove_waiter(struct exs_listen *listen, struct exs_waiter *w)
{
	bool found;

	spin_lock(&listen->lock);
	found = !list_empty(&w->node);
	list_del_init(&w->node);
	exs_listen_kick(listen);
	spin_unlock(&listen->lock);
	return found;
}

/* Connections without a waiting operation. listen->lock held. */
static bool exs_listen_acceptable(const struct exs_listen *listen)
{
	lockdep_assert_held(&listen->lock);
	return !list_empty(&listen->ready) && list_empty(&listen->waiters);
}

__poll_t exs_listen_poll(struct exs_listen *listen)
{
	bool acceptable;

	spin_lock(&listen->lock);
	acceptable = exs_listen_acceptable(listen);
	spin_unlock(&listen->lock);
	return acceptable ? EPOLLIN | EPOLLRDNORM : 0;
}

int exs_listen_ready(struct exs_listen *listen)
{
	int n;

	spin_lock(&listen->lock);
	n = listen->count - listen->half_open;
	spin_unlock(&listen->lock);
	return n;
}

/* For accept(2): a connection, NULL if there is none, -EINVAL if closed, -EXS_ETCP. */
static struct exs_waiting *exs_listen_try(struct exs_listen *listen)
{
	bool tcp = exs_tcp_is_waiting(exs_sk(listen->sk));
	struct exs_waiting *w = NULL;

	spin_lock(&listen->lock);
	/* If connections of both kinds wait, they take turns. */
	if (!listen->open) {
		w = ERR_PTR(-EINVAL);
	} else if (exs_listen_acceptable(listen) && !(tcp && listen->tcp_is_next)) {
		w = exs_listen_take(listen);
		listen->tcp_is_next = true;
	} else if (tcp) {
		w = ERR_PTR(-EXS_ETCP);
		listen->tcp_is_next = false;
	}
	spin_unlock(&listen->lock);
	return w;
}

/*
 * A thread that a kick has woken wakes the next, if more connections are ready: the kick may have
 * been for several, or have come after this thread had taken one.
 */
static void exs_listen_leave(struct exs_listen *listen, wait_queue_entry_t *wait, bool woken)
{
	spin_lock(&listen->lock);
	woken |= list_empty_careful(&wait->entry);
	finish_wait(sk_sleep(listen->sk), wait);
	if (woken)
		exs_listen_kick(listen);
	spin_unlock(&listen->lock);
	/* The same wait queue is TCP's. */
	if (woken && exs_tcp_is_waiting(exs_sk(listen->sk)))
		listen->sk->sk_data_ready(listen->sk);
}

/* As exs_listen_try(), but waits. Each kick wakes one accept(2). */
static struct exs_waiting *exs_listen_wait(struct exs_listen *listen, long *timeo)
{
	wait_queue_head_t *head = sk_sleep(listen->sk);
	struct exs_waiting *w;
	bool woken = false;
	DEFINE_WAIT(wait);

	for (;;) {
		prepare_to_wait_exclusive(head, &wait, TASK_INTERRUPTIBLE);
		w = exs_listen_try(listen);
		if (w)
			break;
		w = ERR_PTR(-EAGAIN);
		if (!*timeo)
			break;
		w = ERR_PTR(sock_intr_errno(*timeo));
		if (signal_pending(current))
			break;
		*timeo = schedule_timeout(*timeo);
		woken = true;
	}
	exs_listen_leave(listen, &wait, woken);
	return w;
}

struct sock *exs_listen_accept(struct sock *sk, long *timeo)
{
	struct exs_listen *listen = exs_sock_listen(exs_sk(sk));
	struct exs_waiting *w;
	struct sock *child;

	if (!listen)
		return ERR_PTR(-EINVAL);
	w = exs_listen_wait(listen, timeo);
	if (IS_ERR(w))
		return ERR_CAST(w);
	child = exs_child_alloc(sk, w);
	if (child) {
		exs_count(exs_net(sock_net(listen->sk)), accepts, 1);
		return child;
	}
	exs_listen_put_back(listen, w);
	return ERR_PTR(-ENOMEM);
}

static void exs_listen_set_backlog(struct exs_listen *listen, int backlog)
{
	spin_lock(&listen->lock);
	/* The socket layer limits it to somaxconn. At least one fits. */
	listen->backlog = max(backlog, 1);
	WRITE_ONCE(listen->sk->sk_max_ack_backlog, backlog);
	spin_unlock(&listen->lock);
}

/* Accept requests from now on. */
static int exs_listen_open(struct exs_sock *xs, int backlog)
{
	struct exs_listen *listen = xs->listen;
	struct exs_user *user = exs_user_get_current();

	if (!listen)
		listen = exs_listen_alloc(&xs->sk);
	if (!listen || !user)
		goto nomem;
	/* Pairs with exs_sock_listen(). */
	smp_store_release(&xs->listen, listen);
	exs_listen_set_backlog(listen, backlog);
	spin_lock(&listen->lock);
	listen->user = user;
	listen->memcg = get_mem_cgroup_from_mm(current->mm);
	listen->open = true;
	spin_unlock(&listen->lock);
	return 0;

nomem:
	if (user)
		exs_user_put(user);
	if (listen && !xs->listen)
		exs_listen_free(listen);
	return -ENOMEM;
}

static void exs_listen_cancel_waiters(struct exs_listen *listen)
{
	struct exs_waiter *w;

	for (;;) {
		spin_lock(&listen->lock);
		w = list_first_entry_or_null(&listen->waiters, struct exs_waiter, node);
		if (w)
			list_del_init(&w->node);
		spin_unlock(&listen->lock);
		if (!w)
			return;
		w->fn(w, -ECANCELED, NULL);
	}
}

static void exs_listen_drop_all(struct exs_listen *listen)
{
	struct exs_waiting *w, *next;
	LIST_HEAD(all);

	spin_lock(&listen->lock);
	list_splice_tail_init(&listen->pending, &all);
	list_splice_tail_init(&listen->ready, &all);
	listen->count = 0;
	while (listen->half_open)
		exs_half_open_end(listen);
	spin_unlock(&listen->lock);
	list_for_each_entry_safe(w, next, &all, node)
		exs_waiting_drop(w);
}

/* The transport has no reference to our data after @bound has ended. */
void exs_listen_stop(struct exs_sock *xs, struct exs_bound *bound)
{
	struct exs_listen *listen = xs->listen;

	spin_lock(&listen->lock);
	listen->open = false;
	spin_unlock(&listen->lock);
	exs_listen_stop_work(listen);
	exs_transport.unbind(bound);
	exs_listen_cancel_waiters(listen);
	exs_listen_drop_all(listen);
	exs_user_put(listen->user);
	mem_cgroup_put(listen->memcg);
	/* Wakes accept(2), which finds it closed. */
	xs->sk.sk_state_change(&xs->sk);
}

/*
 * Return: as exs_transport.listen(). If the port is in use, soft-iWARP may have it: its device
 * listens by TCP for our EXS socket.
 */
static int exs_listen_tcp_too(struct exs_sock *xs, int backlog)
{
	int err = xs->tcp ? exs_tcp_listen(xs, backlog) : 0;

	return err == -EADDRINUSE ? -EBUSY : err;
}

int exs_listen_start(struct exs_sock *xs, int backlog)
{
	struct exs_bound *bound;
	struct sock *sk = &xs->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_LISTENING) {
		exs_listen_set_backlog(xs->listen, backlog);
		return xs->tcp ? exs_tcp_listen(xs, backlog) : 0;
	}
	if (exs_sock_state(xs) != EXS_BOUND)
		return -EINVAL;
	err = exs_bind_again(xs);
	if (!err)
		err = exs_listen_open(xs, backlog);
	if (err)
		return err;
	err = exs_transport.listen(xs->bound, backlog, xs->listen);
	if (!err)
		err = exs_listen_tcp_too(xs, backlog);
	if (err) {
		bound = xs->bound;
		xs->bound = NULL;
		exs_listen_stop(xs, bound);
		return err;
	}
	set_bit(EXS_SK_LISTENED, &xs->flags);
	lock_sock(sk);
	exs_change_state(xs, EXS_LISTENING);
	release_sock(sk);
	return 0;
}
