// SPDX-License-Identifier: GPL-2.0
/*
 * The socket object: creation, states, wake-ups, destruction; and its functions
 * for asynchronous operations.
 */
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "../compat/compat.h"
#include "core.h"
#include "run.h"
#include "stats.h"

/*
 * Passing accepted connections to waiting operations; deciding attempts. Both take turns: the
 * first allocates for a memory cgroup, the second may wait without limit for lock_sock.
 */
struct workqueue_struct *exs_sock_wq, *exs_attempt_wq;

/* SO_KEEPALIVE will change. lock_sock held: a worker does the rest. */
static void exs_sock_keepalive(struct sock *sk, int on)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));

	if (conn)
		exs_conn_kick(conn);
}

struct proto exs_proto = {
	.name		= "EXS",
	.owner		= THIS_MODULE,
	.obj_size	= sizeof(struct exs_sock6),
	EXS_IPV6_PINFO(struct exs_sock6, np)
	.init		= exs_inet_sock_init,
	.unhash		= exs_inet_unhash,
	.keepalive	= exs_sock_keepalive,
};

static struct lock_class_key exs_sk_lock_key, exs_slock_key;

static void exs_sock_free_queues(void)
{
	if (exs_attempt_wq)
		destroy_workqueue(exs_attempt_wq);
	destroy_workqueue(exs_sock_wq);
}

int exs_sock_init(void)
{
	int err = -ENOMEM;

	exs_sock_wq = alloc_workqueue("exs_sock", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!exs_sock_wq)
		return err;
	exs_attempt_wq = alloc_workqueue("exs_attempt", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (exs_attempt_wq)
		err = proto_register(&exs_proto, 1);
	if (err)
		exs_sock_free_queues();
	return err;
}

void exs_sock_exit(void)
{
	/* The thread that dropped the last socket may not have returned yet. */
	exs_sock_free_queues();
	proto_unregister(&exs_proto);
}

static void exs_sock_destruct(struct sock *sk)
{
	struct exs_sock *xs = exs_sk(sk);

	WARN_ON_ONCE(xs->bound || xs->tcp || xs->attempt || !list_empty(&xs->parked));
	if (xs->conn)
		exs_conn_put(xs->conn);
	exs_user_put(xs->user);
	if (xs->listen)
		exs_listen_free(xs->listen);
	skb_queue_purge(&sk->sk_error_queue);
	exs_live(exs_net(sock_net(sk)), sockets, -1);
	if (xs->inet_destruct)
		xs->inet_destruct(sk);
}

/* SO_SNDBUF was set. lock_sock held. */
static void exs_sock_write_space(struct sock *sk)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));

	if (conn)
		wake_up_all(&conn->wait);
	exs_sock_wake(sk, EPOLLOUT);
}

void exs_sock_setup(struct sock *sk, int type)
{
	struct exs_sock *xs = exs_sk(sk);

	sock_lock_init_class_and_name(sk, "slock-AF_EXS", &exs_slock_key,
				      "sk_lock-AF_EXS", &exs_sk_lock_key);
	sk->sk_type = type;
	sk->sk_destruct = exs_sock_destruct;
	sk->sk_write_space = exs_sock_write_space;
	xs->state = EXS_UNCONNECTED;
	xs->socktype = type == SOCK_STREAM ? EXS_WIRE_STREAM : EXS_WIRE_SEQPACKET;
	mutex_init(&xs->op_lock);
	spin_lock_init(&xs->park_lock);
	INIT_LIST_HEAD(&xs->parked);
	INIT_LIST_HEAD(&xs->closers);
	exs_options_init(&xs->options);
	exs_tcp_init(xs);
	exs_attempt_init(xs);
	exs_live(exs_net(sock_net(sk)), sockets, 1);
}

struct sock *exs_sock_alloc(struct net *net, int family, struct socket *sock, int type,
			    int kern)
{
	struct sock *sk = sk_alloc(net, family, GFP_KERNEL, &exs_proto, kern);

	if (!sk)
		return NULL;
	sock_init_data(sock, sk);
	/* As inet_create() does. */
	sk->sk_txrehash = READ_ONCE(net->core.sysctl_txrehash);
	exs_sock_setup(sk, type);
	return sk;
}

/* The transitions in the drawing of af_exs.c. */
static const u8 exs_transitions[] = {
	[EXS_UNCONNECTED] = BIT(EXS_BOUND) | BIT(EXS_CONNECTING) | BIT(EXS_CONNECTED) |
			    BIT(EXS_HANDED) | BIT(EXS_CLOSED),
	[EXS_BOUND]	  = BIT(EXS_LISTENING) | BIT(EXS_CONNECTING) | BIT(EXS_HANDED) |
			    BIT(EXS_CLOSED),
	[EXS_LISTENING]	  = BIT(EXS_BOUND) | BIT(EXS_CLOSED),
	[EXS_CONNECTING]  = BIT(EXS_UNCONNECTED) | BIT(EXS_BOUND) | BIT(EXS_CONNECTED) |
			    BIT(EXS_HANDED) | BIT(EXS_CLOSED),
	[EXS_CONNECTED]	  = BIT(EXS_CLOSED),
	[EXS_HANDED]	  = BIT(EXS_CLOSED),
	[EXS_CLOSED]	  = 0,
};

/* Our states as TCP's, for the socket layer and its tools. */
static const u8 exs_tcp_states[] = {
	[EXS_UNCONNECTED] = TCP_CLOSE,
	[EXS_BOUND]	  = TCP_CLOSE,
	[EXS_LISTENING]	  = TCP_LISTEN,
	[EXS_CONNECTING]  = TCP_SYN_SENT,
	[EXS_CONNECTED]	  = TCP_ESTABLISHED,
	[EXS_HANDED]	  = TCP_CLOSE,
	[EXS_CLOSED]	  = TCP_CLOSE,
};

/* If a program has set it: a BPF program may have set that of @to. */
static void exs_txrehash_give(const struct sock *sk, struct sock *to)
{
	u8 rehash = READ_ONCE(sk->sk_txrehash);

	if (rehash <= SOCK_TXREHASH_ENABLED &&
	    rehash != READ_ONCE(sock_net(sk)->core.sysctl_txrehash))
		WRITE_ONCE(to->sk_txrehash, rehash);
}

void exs_sock_hints_give(const struct sock *sk, struct sock *to)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(to->sk_ll_usec, READ_ONCE(sk->sk_ll_usec));
	WRITE_ONCE(to->sk_prefer_busy_poll, READ_ONCE(sk->sk_prefer_busy_poll));
	WRITE_ONCE(to->sk_busy_poll_budget, READ_ONCE(sk->sk_busy_poll_budget));
#endif
	exs_txrehash_give(sk, to);
	to->sk_clockid = sk->sk_clockid;
	to->sk_txtime_deadline_mode = sk->sk_txtime_deadline_mode;
	to->sk_txtime_report_errors = sk->sk_txtime_report_errors;
}

void exs_change_state(struct exs_sock *xs, enum exs_sock_state state)
{
	sock_owned_by_me(&xs->sk);
	WARN_ONCE(!(exs_transitions[xs->state] & BIT(state)),
		  "exs: socket from state %d to %d\n", xs->state, state);
	WRITE_ONCE(xs->sk.sk_state, exs_tcp_states[state]);
	/* Pairs with exs_sock_state(). */
	smp_store_release(&xs->state, state);
}

void exs_sock_name(struct exs_sock *xs, struct exs_conn *conn)
{
	sock_owned_by_me(&xs->sk);
	if (test_bit(EXS_SK_BOUND, &xs->flags))
		return;
	spin_lock(&conn->lock);
	xs->local = conn->local;
	spin_unlock(&conn->lock);
}

void exs_sock_connected(struct exs_sock *xs, struct exs_conn *conn)
{
	sock_owned_by_me(&xs->sk);
	spin_lock(&conn->lock);
	xs->local = conn->local;
	xs->peer = conn->peer;
	spin_unlock(&conn->lock);
	/* Pairs with exs_sock_conn(). */
	smp_store_release(&xs->conn, conn);
	exs_change_state(xs, EXS_CONNECTED);
}

/* sk_err and conn->err change together under conn->lock. */
static void exs_publish_error(struct exs_sock *xs, struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->err && !test_and_set_bit(EXS_SK_ERR_TOLD, &xs->flags))
		WRITE_ONCE(xs->sk.sk_err, conn->err);
}

void exs_sock_publish_error(struct exs_sock *xs)
{
	struct exs_conn *conn = exs_sock_conn(xs);

	if (!conn || !READ_ONCE(conn->err))
		return;
	spin_lock(&conn->lock);
	exs_publish_error(xs, conn);
	spin_unlock(&conn->lock);
}

void exs_sock_take_error(struct exs_sock *xs, struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	exs_publish_error(xs, conn);
	if (!READ_ONCE(xs->sk.sk_err))
		WRITE_ONCE(conn->err, 0);
	spin_unlock(&conn->lock);
}

void exs_sock_error_told(struct exs_sock *xs, struct exs_conn *conn)
{
	spin_lock(&conn->lock);
	if (!conn->err)
		WRITE_ONCE(xs->sk.sk_err, 0);
	spin_unlock(&conn->lock);
}

int exs_sock_wait_connected(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	/* Pairs with skwq_has_sleeper(). */
	smp_mb();
	while (exs_sock_state(exs_sk(sk)) == EXS_CONNECTING) {
		if (!*timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(*timeo);
		if (err)
			break;
		*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* Signal-driven I/O (O_ASYNC) for these events. */
static void exs_sock_wake_async(struct sock *sk, __poll_t events)
{
	if (events & EPOLLERR)
		sk_wake_async(sk, SOCK_WAKE_IO, POLL_ERR);
	if (events & EPOLLHUP)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
	if (events & EPOLLIN)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
	if (events & EPOLLOUT)
		sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
}

/* Wake sleepers, if any, with the events that are true now. */
static void exs_sock_tell(struct sock *sk, __poll_t events, bool sleepers)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	sleepers = sleepers && skwq_has_sleeper(wq);
	/* io_uring believes them: it does not call poll() again. */
	if ((sleepers || sock_flag(sk, SOCK_FASYNC)) && exs_sock_conn(exs_sk(sk)))
		events &= exs_sock_events(exs_sk(sk));
	if (sleepers && events)
		wake_up_interruptible_poll(&wq->wait, events);
	exs_sock_wake_async(sk, events);
	rcu_read_unlock();
}

exs_hot
void exs_sock_wake(struct sock *sk, __poll_t events)
{
	struct exs_sock *xs = exs_sk(sk);
	bool undecided = READ_ONCE(xs->attempt);

	if (events & EPOLLERR)
		exs_sock_publish_error(xs);
	if (undecided) {
		/* The work decides, under lock_sock, and wakes the sleepers. io_uring
		 * believes @events: woken now, it would find the attempt undecided.
		 */
		exs_attempt_kick(xs);
	}
	/* Sleepers may have asked for the equivalent bits. */
	if (events & EPOLLIN)
		events |= EPOLLRDNORM;
	if (events & EPOLLOUT)
		events |= EPOLLWRNORM;
	if (events & EPOLLHUP)
		events |= EPOLLRDHUP;
	exs_sock_tell(sk, events, !undecided);
}

exs_hot
struct exs_conn *exs_sock_conn_of(const struct sock *sk)
{
	return exs_sk_is_exs(sk) ? exs_sock_conn(exs_sk(sk)) : NULL;
}

void exs_sock_cancel(struct sock *sk, const struct exs_call *call)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));

	if (conn)
		exs_conn_cancel(conn, call);
}

int exs_sock_arm_connect(struct sock *sk, struct exs_waiter *w)
{
	struct exs_sock *xs = exs_sk(sk);
	int err = 0;

	INIT_LIST_HEAD(&w->node);
	lock_sock(sk);
	if (xs->state == EXS_CONNECTED || xs->state == EXS_LISTENING)
		err = -EISCONN;
	else if (xs->state == EXS_CONNECTING || READ_ONCE(xs->connect_waiter))
		err = -EALREADY;
	else if (xs->state == EXS_UNCONNECTED || xs->state == EXS_BOUND)
		WRITE_ONCE(xs->connect_waiter, w);
	else
		err = -EINVAL;
	release_sock(sk);
	return err;
}

int exs_sock_arm_accept(struct sock *sk, struct exs_waiter *w)
{
	struct exs_listen *listen = exs_sock_listen(exs_sk(sk));

	INIT_LIST_HEAD(&w->node);
	return listen ? exs_listen_add_waiter(listen, w) : -EINVAL;
}

bool exs_sock_disarm(struct sock *sk, struct exs_waiter *w)
{
	struct exs_sock *xs = exs_sk(sk);
	struct exs_listen *listen = exs_sock_listen(xs);

	/*
	 * Without lock_sock. Its owner may hold it for ever, while it reads memory that is never
	 * delivered, and the end of a queue must not wait for that.
	 */
	return cmpxchg(&xs->connect_waiter, w, NULL) == w ||
	       (listen && exs_listen_remove_waiter(listen, w));
}

/*
 * Asynchronous closes wait at the socket while it has descriptors, then at its connection,
 * if any, which outlives the struct socket. Shutdowns wait at the connection. All share one
 * lock, which is held briefly, twice for each.
 */
static DEFINE_SPINLOCK(exs_closers_lock);

void exs_sock_arm_close(struct sock *sk, struct exs_waiter *w)
{
	spin_lock(&exs_closers_lock);
	list_add_tail(&w->node, &exs_sk(sk)->closers);
	spin_unlock(&exs_closers_lock);
}

/* If only the peer has closed, the end of the stream has nowhere to go, and that is in order. */
static bool exs_conn_may_end(struct exs_conn *conn, struct sock *sk)
{
	bool shut = READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN, may;

	spin_lock(&conn->lock);
	may = conn->state == EXS_CONN_UP || !exs_conn_is_closed(conn, shut);
	spin_unlock(&conn->lock);
	return may;
}

int exs_sock_arm_shutdown(struct sock *sk, struct exs_waiter *w)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	LIST_HEAD(list);

	if (!conn || !exs_conn_may_end(conn, sk))
		return -ENOTCONN;
	list_add(&w->node, &list);
	exs_conn_tell_flushed(conn, &list);
	return 0;
}

bool exs_sock_withdraw_shutdown(struct sock *sk, struct exs_waiter *w)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	bool found;

	spin_lock(&conn->lock);
	found = conn->state == EXS_CONN_UP && !conn->engine.fin_wanted &&
		exs_sock_disarm_end(w);
	spin_unlock(&conn->lock);
	return found;
}

bool exs_sock_disarm_end(struct exs_waiter *w)
{
	bool found;

	spin_lock(&exs_closers_lock);
	found = !list_empty(&w->node);
	list_del_init(&w->node);
	spin_unlock(&exs_closers_lock);
	return found;
}

void exs_closers_move(struct list_head *from, struct list_head *to)
{
	spin_lock(&exs_closers_lock);
	list_splice_tail_init(from, to);
	spin_unlock(&exs_closers_lock);
}

static struct exs_waiter *exs_closers_take(struct list_head *closers)
{
	struct exs_waiter *w;

	spin_lock(&exs_closers_lock);
	w = list_first_entry_or_null(closers, struct exs_waiter, node);
	if (w)
		list_del_init(&w->node);
	spin_unlock(&exs_closers_lock);
	return w;
}

void exs_closers_tell(struct list_head *closers, int err)
{
	struct exs_waiter *w;

	while ((w = exs_closers_take(closers)))
		w->fn(w, err, NULL);
}

void exs_sock_drop(struct sock *child)
{
	struct exs_sock *xs = exs_sk(child);

	lock_sock(child);
	sock_orphan(child);
	exs_change_state(xs, EXS_CLOSED);
	release_sock(child);
	exs_conn_orphan(xs->conn, 0);
	sock_put(child);
}

/* A child reserved for the next accept(2) of thread @pid. */
struct exs_parked {
	struct list_head node;
	struct pid *pid;
	struct sock *child;
};

static void exs_parked_free(struct exs_parked *p)
{
	put_pid(p->pid);
	kfree(p);
}

static void exs_parked_drop(struct exs_parked *p)
{
	exs_sock_drop(p->child);
	exs_parked_free(p);
}

/* Entries of threads that have exited. */
static void exs_sock_unpark_stale(struct exs_sock *xs, struct list_head *stale)
{
	struct exs_parked *p, *next;

	lockdep_assert_held(&xs->park_lock);
	rcu_read_lock();
	list_for_each_entry_safe(p, next, &xs->parked, node)
		if (!pid_task(p->pid, PIDTYPE_PID))
			list_move_tail(&p->node, stale);
	rcu_read_unlock();
}

static void exs_parked_drop_all(struct list_head *list)
{
	struct exs_parked *p, *next;

	list_for_each_entry_safe(p, next, list, node)
		exs_parked_drop(p);
}

/* The entry of @pid, or the one of @child, or NULL. */
static struct exs_parked *exs_parked_find(struct exs_sock *xs, const struct pid *pid,
					  const struct sock *child)
{
	struct exs_parked *p;

	lockdep_assert_held(&xs->park_lock);
	list_for_each_entry(p, &xs->parked, node)
		if (p->pid == pid || p->child == child)
			return p;
	return NULL;
}

/* exs_release() sets CLOSED first, and then empties the list. */
static int exs_parked_add(struct exs_sock *xs, struct exs_parked *p)
{
	lockdep_assert_held(&xs->park_lock);
	if (exs_sock_state(xs) == EXS_CLOSED)
		return -ECONNABORTED;
	if (exs_parked_find(xs, p->pid, NULL))
		return -EAGAIN;
	list_add_tail(&p->node, &xs->parked);
	return 0;
}

int exs_sock_park(struct sock *listener, struct sock *child)
{
	struct exs_sock *xs = exs_sk(listener);
	struct exs_parked *p;
	LIST_HEAD(stale);
	int err;

	p = kmalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	p->pid = get_pid(task_pid(current));
	p->child = child;
	spin_lock(&xs->park_lock);
	exs_sock_unpark_stale(xs, &stale);
	err = exs_parked_add(xs, p);
	spin_unlock(&xs->park_lock);
	if (err)
		exs_parked_free(p);
	exs_parked_drop_all(&stale);
	return err;
}

/* Take the entry of @pid, or the one of @child, off the list. */
static struct sock *exs_parked_take(struct exs_sock *xs, const struct pid *pid,
				    const struct sock *child)
{
	struct exs_parked *p;
	struct sock *found;
	LIST_HEAD(stale);

	if (list_empty_careful(&xs->parked))
		return NULL;
	spin_lock(&xs->park_lock);
	p = exs_parked_find(xs, pid, child);
	if (p)
		list_del(&p->node);
	exs_sock_unpark_stale(xs, &stale);
	spin_unlock(&xs->park_lock);
	exs_parked_drop_all(&stale);
	if (!p)
		return NULL;
	found = p->child;
	exs_parked_free(p);
	return found;
}

struct sock *exs_sock_take_parked(struct exs_sock *xs, const struct pid *pid)
{
	return exs_parked_take(xs, pid, NULL);
}

bool exs_sock_unpark(struct sock *listener, struct sock *child)
{
	return exs_parked_take(exs_sk(listener), NULL, child);
}

void exs_sock_drop_parked(struct exs_sock *xs)
{
	LIST_HEAD(all);

	spin_lock(&xs->park_lock);
	list_splice_init(&xs->parked, &all);
	spin_unlock(&xs->park_lock);
	exs_parked_drop_all(&all);
}
