// SPDX-License-Identifier: GPL-2.0
/*
 * AF_EXS: the family, and the system calls on its sockets.
 *
 * Sockets
 * =======
 * SOCK_STREAM (bytes) and SOCK_SEQPACKET (messages), protocol 0, addresses
 * AF_INET and AF_INET6 as they are. TCP is the reference for the result of every
 * call. A socket is one of
 *
 *	plain		UNCONNECTED or BOUND; xs->bound is what rdma_cm reserved
 *	listening	xs->listen holds connections that were not accepted yet
 *	connecting	xs->attempt is a connection that may come to nothing
 *	connected	xs->conn; moves data (conn.c, run.c, data.c, message.c)
 *	handed over	TCP's for good; the struct socket has another sock (fallback.c)
 *
 *	UNCONNECTED ---bind-----> BOUND
 *	UNCONNECTED ---connect--> CONNECTING
 *	UNCONNECTED ---accept---> CONNECTED	the new socket
 *	BOUND ---------listen---> LISTENING
 *	BOUND ---------connect--> CONNECTING
 *	LISTENING -----shutdown-> BOUND
 *	CONNECTING ----success--> CONNECTED
 *	CONNECTING ----failure--> BOUND, UNCONNECTED	as before connect
 *	UNCONNECTED, BOUND, CONNECTING ---fallback--> HANDED
 *	all of these ---close---> CLOSED
 *
 * exs_change_state() makes these moves and no others; tests/house compares them with its
 * table. A connection that ends leaves its socket CONNECTED: unread data and the error are
 * still there.
 *
 * Locks
 * =====
 * xs->op_lock serialises bind, listen, start and end of connect, shutdown and close.
 * lock_sock guards state, attempt and addresses. The order of all locks is in
 * Documentation/design.md.
 *
 * No rdma_* function is called under lock_sock: where the transport has to do
 * something that takes rdma_cm's locks (bind, listen, create, unbind), only
 * op_lock is held, and the state decides whether it is done. The transport
 * calls back (exs_listen_*, exs_conn_*) under rdma_cm's locks: those functions
 * take spin locks only, and leave work that needs lock_sock to exs_attempt_wq.
 *
 * References
 * ==========
 * A struct socket, an operation and a queued work item hold the sock. The sock
 * holds xs->attempt, then xs->conn, until it is destroyed; the endpoint holds
 * the connection, too, until its queue pair is gone. A connection points to its
 * sock (conn->sk) without holding it: exs_conn_orphan(), at the latest when the
 * socket is closed, cuts that. Connections in a listener are held by its lists.
 * The sock holds the module (struct proto's owner), an orphan does not: unloading
 * resets it.
 */
#include <linux/bvec.h>
#include <linux/compat.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <net/inet_common.h>
#include <net/sock_reuseport.h>
#include <uapi/linux/sockios.h>
#include <asm/ioctls.h>

#include <linux/exs.h>

#include "../compat/compat.h"
#include "transport.h"
#include "call.h"
#include "core.h"
#include "fallback.h"
#include "message.h"
#include "run.h"
#include "stats.h"

int exs_family = EXS_FAMILY_DEFAULT;
module_param_named(family, exs_family, int, 0444);
MODULE_PARM_DESC(family, "address family number, one that no other module uses");

/* As with TCP: some programs give the any address without its family. */
static void exs_any_family(const struct sock *sk, struct sockaddr_in *sin, int len)
{
	if (sk->sk_family == AF_INET && len >= (int)sizeof(*sin) &&
	    sin->sin_family == AF_UNSPEC && sin->sin_addr.s_addr == htonl(INADDR_ANY))
		sin->sin_family = AF_INET;
}

static int exs_bind_addr_get(struct exs_sock *xs, struct sockaddr_unsized *uaddr, int len,
			     struct sockaddr_storage *addr, bool *v6)
{
	int err = exs_addr_get(xs, uaddr, len, addr, v6);

	return !err && *v6 && addr->ss_family == AF_INET && xs->sk.sk_ipv6only ? -EINVAL : err;
}

/* If there is a TCP socket beside, its bind() runs BPF programs and checks the port. */
static int exs_bind_locked(struct exs_sock *xs, struct sockaddr_unsized *uaddr, int len)
{
	struct sockaddr_storage addr;
	u32 flags = BPF_RET_BIND_NO_CAP_NET_BIND_SERVICE;
	bool v6;
	int err;

	lockdep_assert_held(&xs->op_lock);
	err = exs_bind_addr_get(xs, uaddr, len, &addr, &v6);
	if (err)
		return err;
	if (exs_sock_state(xs) == EXS_UNCONNECTED)
		exs_tcp_prepare(xs, v6 ? AF_INET6 : AF_INET);
	if (!xs->tcp) {
		err = exs_filter_bind(&xs->sk, uaddr, &len, &flags);
		if (!err)
			err = exs_bind_addr_get(xs, uaddr, len, &addr, &v6);
		if (err)
			return err;
	}
	return exs_bind_addr(xs, &addr, v6, flags & BPF_RET_BIND_NO_CAP_NET_BIND_SERVICE);
}

static int exs_bind_ours(struct exs_sock *xs, struct sockaddr_unsized *uaddr, int len)
{
	int err;

	exs_any_family(&xs->sk, (struct sockaddr_in *)uaddr, len);
	mutex_lock(&xs->op_lock);
	err = exs_bind_locked(xs, uaddr, len);
	mutex_unlock(&xs->op_lock);
	return err;
}

static int exs_bind(struct socket *sock, struct sockaddr_unsized *uaddr, int len)
{
	struct exs_sock *xs = exs_of(sock);
	int err;

	if (!xs)
		return exs_tcp_ops(sock)->bind(sock, uaddr, len);
	err = exs_bind_ours(xs, uaddr, len);
	/* TCP took over during bind. */
	return err == -EXS_ETCP ? 0 : err;
}

static int exs_listen_bound(struct exs_sock *xs, int backlog)
{
	int err, why;

	why = exs_fallback_at_once(xs, NULL);
	if (why)
		return exs_fall_back(xs, why);
	err = exs_sock_check_promises(&xs->sk);
	if (!err)
		err = exs_listen_start(xs, backlog);
	if (!err || err == -EADDRINUSE)
		return err;
	if (exs_sock_state(xs) == EXS_BOUND && exs_may_fall_back(xs))
		return exs_fall_back(xs, exs_fallback_why(err));
	return exs_port_error(err);
}

static int exs_listen_locked(struct exs_sock *xs, struct socket *sock, int backlog)
{
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_HANDED)
		return -EXS_ETCP;
	if (sock->state != SS_UNCONNECTED)
		return -EINVAL;
	if (exs_sock_state(xs) == EXS_UNCONNECTED) {
		err = exs_bind_any(xs);
		if (err)
			return err;
	}
	return exs_listen_bound(xs, backlog);
}

static int exs_listen(struct socket *sock, int backlog)
{
	struct exs_sock *xs = exs_of(sock);
	int err = -EXS_ETCP;

	if (xs) {
		mutex_lock(&xs->op_lock);
		err = exs_listen_locked(xs, sock, backlog);
		mutex_unlock(&xs->op_lock);
	}
	return err == -EXS_ETCP ? exs_tcp_ops(sock)->listen(sock, backlog) : err;
}

/* Back to BOUND: reset connections that were not accepted. op_lock held. */
static void exs_unlisten(struct exs_sock *xs)
{
	struct exs_bound *bound = xs->bound;

	lockdep_assert_held(&xs->op_lock);
	lock_sock(&xs->sk);
	xs->bound = NULL;
	exs_change_state(xs, EXS_BOUND);
	release_sock(&xs->sk);
	exs_tcp_unlisten(xs);
	exs_listen_stop(xs, bound);
}

/* An EXS connection; or -EXS_ETCP: a TCP one waits, or did a moment ago. */
static int exs_accept_exs(struct exs_sock *xs, struct socket *newsock, long *timeo)
{
	struct sock *child;

	child = exs_sock_take_parked(xs, task_pid(current));
	if (!child)
		child = exs_listen_accept(&xs->sk, timeo);
	if (IS_ERR(child))
		return PTR_ERR(child);
	lock_sock_nested(child, SINGLE_DEPTH_NESTING);
	sock_graft(child, newsock);
	newsock->state = SS_CONNECTED;
	exs_sock_flags(newsock);
	release_sock(child);
	return 0;
}

static int exs_accept(struct socket *sock, struct socket *newsock,
		      struct proto_accept_arg *arg)
{
	struct exs_sock *xs = exs_of(sock);
	long timeo;
	int err;

	if (!xs) {
		err = exs_compat_call_accept(sock, exs_tcp_ops(sock), newsock, arg);
		if (!err)
			exs_tcp_set_ops(newsock, exs_tcp_ops(sock));
		return err;
	}
	/* For all rounds together. */
	timeo = sock_rcvtimeo(&xs->sk, arg->flags & O_NONBLOCK);
	do {
		err = exs_accept_exs(xs, newsock, &timeo);
		if (err == -EXS_ETCP)
			err = exs_tcp_accept(xs, newsock, arg);
	} while (err == -EXS_ETCP);
	return err;
}

#ifndef EXS_HAVE_PROTO_ACCEPT_ARG
static int exs_accept_flags(struct socket *sock, struct socket *newsock, int flags, bool kern)
{
	struct proto_accept_arg arg = { .flags = flags, .kern = kern };

	return exs_accept(sock, newsock, &arg);
}
#endif

/* shutdown(), or connect() to AF_UNSPEC, of an unconnected socket. */
static int exs_disconnect(struct exs_sock *xs, struct socket *sock, int err)
{
	lockdep_assert_held(&xs->op_lock);
	switch (exs_sock_state(xs)) {
	case EXS_LISTENING:
		exs_unlisten(xs);
		break;
	case EXS_CONNECTING:
		exs_connect_abort(xs, err);
		break;
	case EXS_CONNECTED:
		return -EOPNOTSUPP;
	case EXS_HANDED:
		return -EXS_ETCP;
	default:
		break;
	}
	lock_sock(&xs->sk);
	sock->state = SS_UNCONNECTED;
	WRITE_ONCE(xs->sk.sk_shutdown, 0);
	release_sock(&xs->sk);
	return 0;
}

static int exs_connect_ours(struct exs_sock *xs, struct socket *sock,
			    struct sockaddr_unsized *uaddr, int len, int flags)
{
	const struct sockaddr *sa = (const void *)uaddr;
	int err;

	if (len < (int)sizeof(sa->sa_family))
		return exs_connect_refuse(xs, -EINVAL);
	if (sa->sa_family == AF_UNSPEC) {
		mutex_lock(&xs->op_lock);
		/* An operation that waits for connect() would get no event. */
		if (READ_ONCE(xs->connect_waiter) && exs_sock_state(xs) != EXS_CONNECTING)
			err = exs_connect_refuse(xs, -EAFNOSUPPORT);
		else
			err = exs_disconnect(xs, sock, ECONNRESET);
		mutex_unlock(&xs->op_lock);
		return err;
	}
	return exs_connect(xs, sock, uaddr, len, flags);
}

static int exs_connect_call(struct socket *sock, struct sockaddr_unsized *uaddr, int len,
			    int flags)
{
	struct exs_sock *xs = exs_of(sock);
	unsigned long start = jiffies;
	bool began;
	int err;

	if (!xs)
		return exs_tcp_ops(sock)->connect(sock, uaddr, len, flags);
	began = sock->state == SS_UNCONNECTED;
	err = exs_connect_ours(xs, sock, uaddr, len, flags);
	if (err == -EXS_ETCP)
		err = exs_tcp_connect(sock, uaddr, len, flags, start, began);
	return err;
}

/* The own name; while connecting, that of the attempt. lock_sock held. */
static int exs_getname_own(struct exs_sock *xs, struct sockaddr *uaddr)
{
	struct exs_conn *conn = xs->attempt;

	sock_owned_by_me(&xs->sk);
	if (conn)
		exs_sock_name(xs, conn);
	return exs_addr_put(xs, &xs->local, uaddr);
}

static bool exs_sock_is_closed(const struct exs_sock *xs)
{
	struct exs_conn *conn = xs->conn;
	bool closed, shut = READ_ONCE(xs->sk.sk_shutdown) & SEND_SHUTDOWN;

	spin_lock(&conn->lock);
	closed = exs_conn_is_closed(conn, shut);
	spin_unlock(&conn->lock);
	return closed;
}

static int exs_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct exs_sock *xs = exs_of(sock);
	int len;

	if (!xs)
		return exs_tcp_ops(sock)->getname(sock, uaddr, peer);
	lock_sock(&xs->sk);
	if (xs->state == EXS_HANDED)
		len = -EXS_ETCP;
	else if (!peer)
		len = exs_getname_own(xs, uaddr);
	else if (xs->state != EXS_CONNECTED)
		len = -ENOTCONN;
	else if (peer == 1 && exs_sock_is_closed(xs))
		len = -ENOTCONN;	/* as a TCP socket in that state */
	else
		len = exs_addr_put(xs, &xs->peer, uaddr);
	release_sock(&xs->sk);
	if (len == -EXS_ETCP)
		return exs_tcp_ops(sock)->getname(sock, uaddr, peer);
	if (len > 0)
		exs_filter_name(&xs->sk, uaddr, &len, peer);
	return len;
}

/* As with TCP, shutting down an unconnected socket lasts until it is connected. */
static int exs_shutdown_unconnected(struct sock *sk, int how)
{
	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
	release_sock(sk);
	return -ENOTCONN;
}

static int exs_shutdown_connected(struct exs_sock *xs, int how)
{
	struct exs_conn *conn = xs->conn;
	bool closed = exs_sock_is_closed(xs);
	int err = exs_shutdown_unconnected(&xs->sk, how);

	if (closed)
		return err;
	if (how & RCV_SHUTDOWN)
		exs_conn_shutdown_read(conn);
	if (how & SEND_SHUTDOWN)
		exs_conn_shutdown(conn);
	return 0;
}

static int exs_shutdown_locked(struct exs_sock *xs, struct socket *sock, int how)
{
	switch (exs_sock_state(xs)) {
	case EXS_CONNECTED:
		return exs_shutdown_connected(xs, how);
	case EXS_LISTENING:
		return how & RCV_SHUTDOWN ? exs_disconnect(xs, sock, 0) : 0;
	case EXS_CONNECTING:
		return exs_disconnect(xs, sock, ECONNRESET);
	case EXS_HANDED:
		return -EXS_ETCP;
	default:
		return exs_shutdown_unconnected(&xs->sk, how);
	}
}

static int exs_shutdown(struct socket *sock, int flags)
{
	struct exs_sock *xs = exs_of(sock);
	/* SHUT_RD, SHUT_WR, SHUT_RDWR as bits */
	int err, how = flags + 1;

	if (how & ~SHUTDOWN_MASK || !how)
		return -EINVAL;
	if (!xs)
		return exs_tcp_ops(sock)->shutdown(sock, flags);
	mutex_lock(&xs->op_lock);
	err = exs_shutdown_locked(xs, sock, how);
	mutex_unlock(&xs->op_lock);
	if (err == -EXS_ETCP)
		return exs_tcp_ops(sock)->shutdown(sock, flags);
	xs->sk.sk_state_change(&xs->sk);
	return err;
}

/*
 * How long the connection may outlive the socket. Waits if the program asked for that. An
 * asynchronous close does not: the connection then gets SO_LINGER's time.
 */
static unsigned long exs_release_linger(struct sock *sk, struct exs_conn *conn)
{
	unsigned long most = msecs_to_jiffies(exs_sysctl_cap(conn->xn, linger));

	if (!sock_flag(sk, SOCK_LINGER))
		return most;
	if (!sk->sk_lingertime || exs_conn_has_unread(conn))
		return 0;
	if (!list_empty_careful(&exs_sk(sk)->closers))
		return min(most, sk->sk_lingertime);
	if (!(current->flags & (PF_EXITING | PF_KTHREAD))) {
		exs_conn_shutdown(conn);
		exs_conn_flush(conn, sk->sk_lingertime);
	}
	return most;
}

static void exs_release_unconnected(struct exs_sock *xs)
{
	struct exs_bound *bound;

	lockdep_assert_held(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_LISTENING)
		exs_unlisten(xs);
	exs_connect_abort(xs, 0);
	bound = xs->bound;
	xs->bound = NULL;
	if (bound)
		exs_transport.unbind(bound);
	/* Also after listening: connections are not accepted any more. */
	clear_bit(EXS_SK_LISTENED, &xs->flags);
	exs_tcp_drop(xs);
}

/*
 * Complete asynchronous closes, now or when the connection is over. Other operations end
 * first: accepts have ended, transfers end with the connection; a connect may be about to
 * end. None is added any more: each would need a file.
 */
static void exs_release_closers(struct exs_sock *xs, struct exs_conn *conn)
{
	if (list_empty_careful(&xs->closers))
		return;
	flush_work(&xs->attempt_work);
	if (conn)
		exs_conn_tell_closers(conn, &xs->closers);
	else
		exs_closers_tell(&xs->closers, 0);
}

/* An asynchronous close does not wait for TCP, either. A time of 0 is for a reset. */
static void exs_release_tcp(struct exs_sock *xs, struct socket *sock)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	if (!list_empty_careful(&xs->closers) && sk->sk_lingertime)
		sock_reset_flag(sk, SOCK_LINGER);
	release_sock(sk);
	xs->tcp_ops->release(sock);
}

static int exs_release(struct socket *sock)
{
	struct exs_conn *conn;
	struct exs_sock *xs;
	struct sock *sk;
	bool handed;

	if (!sock->sk)
		return 0;
	xs = exs_once(sock);
	sk = &xs->sk;
	exs_inet_released(sk);
	mutex_lock(&xs->op_lock);
	/* A worker may have handed it over a moment ago. */
	handed = exs_sock_state(xs) == EXS_HANDED;
	exs_release_unconnected(xs);
	conn = exs_sock_conn(xs);
	if (conn)
		exs_conn_orphan(conn, exs_release_linger(sk, conn));
	/* A sock that has this pointer is destroyed by RCU, in a softirq: ours must not be. */
	if (rcu_access_pointer(sk->sk_reuseport_cb))
		reuseport_detach_sock(sk);
	lock_sock(sk);
	sock_orphan(sk);
	exs_change_state(xs, EXS_CLOSED);
	release_sock(sk);
	mutex_unlock(&xs->op_lock);
	if (handed)
		exs_release_tcp(xs, sock);
	exs_attempt_leave(xs);
	exs_connect_refuse(xs, -ECANCELED);
	exs_sock_drop_parked(xs);
	exs_release_closers(xs, conn);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

__poll_t exs_sock_events(struct exs_sock *xs)
{
	struct sock *sk = &xs->sk;
	u8 shutdown = READ_ONCE(sk->sk_shutdown);
	/* Before the connection's state, which is set with it: no error without a hang-up. */
	int err = READ_ONCE(sk->sk_err);
	struct exs_conn *conn = xs->conn;
	__poll_t mask = exs_conn_poll(conn, sock_rcvlowat(sk, false, INT_MAX));

	/* The peer has ended its direction: TCP's CLOSE_WAIT. */
	if (!READ_ONCE(conn->end_err) && !(shutdown & SEND_SHUTDOWN))
		mask &= ~EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (shutdown & SEND_SHUTDOWN)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (shutdown == SHUTDOWN_MASK)
		mask |= EPOLLHUP;
	if (err || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

static __poll_t exs_poll_connected(struct exs_sock *xs)
{
	__poll_t mask;

	exs_sock_error_before(xs);
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, &xs->sk);
	mask = exs_sock_events(xs);
	/* The connection may have just ended: SO_ERROR must know it, too. */
	if (mask & EPOLLERR)
		exs_sock_publish_error(xs);
	return mask;
}

static __poll_t exs_poll_listening(struct exs_sock *xs)
{
	if (exs_tcp_is_waiting(xs))
		return EPOLLIN | EPOLLRDNORM;
	return exs_listen_poll(xs->listen);
}

static __poll_t exs_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct exs_sock *xs = exs_of(sock);
	struct sock *sk;
	__poll_t mask;

	if (!xs)
		return exs_tcp_ops(sock)->poll(file, sock, wait);
	sk = &xs->sk;
	sock_poll_wait(file, sock, wait);
	switch (exs_sock_state(xs)) {
	case EXS_HANDED:
		return exs_tcp_ops(sock)->poll(file, sock, NULL);
	case EXS_LISTENING:
		return exs_poll_listening(xs);
	case EXS_CONNECTED:
		return exs_poll_connected(xs);
	case EXS_CONNECTING:
		/* An existing error comes with the hang-up. */
		return 0;
	default:
		mask = EPOLLOUT | EPOLLWRNORM | EPOLLHUP;
		if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
			mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	}
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	return mask;
}

/* Bytes to read (of the next message), or of plain sends that are unfinished, or unsent. */
static int exs_conn_queued(struct exs_conn *conn, unsigned int cmd)
{
	int n;

	spin_lock(&conn->lock);
	if (cmd == SIOCOUTQ)
		n = conn->unsent;
	else if (cmd == SIOCOUTQNSD)
		n = exs_conn_notsent(conn);
	else if (conn->socktype == EXS_WIRE_SEQPACKET)
		n = exs_message_queued(conn);
	else
		n = exs_engine_readable(&conn->engine);
	spin_unlock(&conn->lock);
	return n;
}

static bool exs_conn_has_data(struct exs_conn *conn)
{
	bool has;

	spin_lock(&conn->lock);
	has = exs_engine_readable(&conn->engine) || !list_empty(&conn->messages);
	spin_unlock(&conn->lock);
	return has;
}

static int exs_ioctl_queued(struct exs_sock *xs, unsigned int cmd, int __user *arg)
{
	struct exs_conn *conn = exs_sock_conn(xs);

	if (exs_sock_state(xs) == EXS_LISTENING)
		return -EINVAL;
	return put_user(conn ? exs_conn_queued(conn, cmd) : 0, arg);
}

/* Queues and regions do not depend on the sock. */
static int exs_tcp_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	int err = exs_tcp_ops(sock)->ioctl(sock, cmd, value);

	return err == -ENOIOCTLCMD ? exs_async.ioctl(sock, cmd, (void __user *)value) : err;
}

static int exs_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	struct exs_sock *xs = exs_of(sock);
	void __user *arg = (void __user *)value;
	int err;

	if (!xs)
		return exs_tcp_ioctl(sock, cmd, value);
	switch (cmd) {
	case SIOCINQ:
	case SIOCOUTQ:
	case SIOCOUTQNSD:
		return exs_ioctl_queued(xs, cmd, arg);
	case SIOCATMARK:
		/* There is no urgent data. */
		return put_user(0, (int __user *)arg);
	default:
		break;
	}
	err = exs_async.ioctl(sock, cmd, arg);
	/* ioctls of interfaces, routes and so on, which every socket of the family supports. */
	return err == -ENOIOCTLCMD ? exs_inet_ioctl(sock, cmd, value) : err;
}

#ifdef CONFIG_COMPAT
static int exs_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	if (!exs_of(sock) && exs_tcp_ops(sock)->compat_ioctl)
		return exs_tcp_ops(sock)->compat_ioctl(sock, cmd, value);
	/* A route contains longs. All other structures have one layout. */
	if (cmd == SIOCADDRT || cmd == SIOCDELRT)
		return -ENOIOCTLCMD;
	return exs_ioctl(sock, cmd, (unsigned long)compat_ptr(value));
}
#endif

/* Wait for a pending connect(). NULL: the socket is not connected. */
static struct exs_conn *exs_wait_conn(struct sock *sk, long timeo)
{
	int err = exs_sock_wait_connected(sk, &timeo);

	return err ? ERR_PTR(err) : exs_sock_conn(exs_sk(sk));
}

/* MSG_FASTOPEN sends while it connects, which only TCP can do. */
static int exs_send_fastopen(struct exs_sock *xs)
{
	switch (exs_sock_state(xs)) {
	case EXS_HANDED:
		return -EXS_ETCP;
	case EXS_UNCONNECTED:
	case EXS_BOUND:
		if (!exs_option(&xs->options, EXS_SO_FALLBACK))
			return -EOPNOTSUPP;
		/* Another thread may be faster. */
		if (exs_fall_back_now(xs, EXS_FELL_BACK_OPTION) &&
		    exs_sock_state(xs) != EXS_HANDED)
			return -EOPNOTSUPP;
		return -EXS_ETCP;
	case EXS_CONNECTING:
		return -EALREADY;
	default:
		return -EISCONN;
	}
}

static int exs_send_unconnected(struct sock *sk, int flags)
{
	int err;

	if (exs_sock_state(exs_sk(sk)) == EXS_HANDED)
		return -EXS_ETCP;
	err = sock_error(sk) ?: -EPIPE;
	if (err == -EPIPE && !(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}

/* An operation was submitted to one of our sockets, which was not connected. */
static int exs_tcp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	if (exs_msg_call(msg))
		return -ENOTCONN;
	return exs_tcp_ops(sock)->sendmsg(sock, msg, len);
}

static int exs_tcp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	if (exs_msg_call(msg))
		return -ENOTCONN;
	return exs_tcp_ops(sock)->recvmsg(sock, msg, len, flags);
}

exs_hot
static int exs_sendmsg_ours(struct sock *sk, struct msghdr *msg, size_t len)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	int err;

	if (unlikely(msg->msg_flags & MSG_FASTOPEN))
		return exs_send_fastopen(exs_sk(sk));
	if (!conn)
		conn = exs_wait_conn(sk, sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	if (!conn)
		return exs_send_unconnected(sk, msg->msg_flags);
	exs_sock_error_before(exs_sk(sk));
	err = exs_conn_sendmsg(conn, sk, msg, len);
	exs_sock_error_after(exs_sk(sk), conn);
	return err;
}

exs_hot
static int exs_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct exs_sock *xs = exs_of(sock);
	int err = xs ? exs_sendmsg_ours(&xs->sk, msg, len) : -EXS_ETCP;

	return unlikely(err == -EXS_ETCP) ? exs_tcp_sendmsg(sock, msg, len) : err;
}

static int exs_recv_unconnected(struct sock *sk)
{
	int err;

	if (exs_sock_state(exs_sk(sk)) == EXS_HANDED)
		return -EXS_ETCP;
	err = sock_error(sk);
	if (err)
		return err;
	return READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ? 0 : -ENOTCONN;
}

/* Errors of transmission end a connection, so only MSG_ZEROCOPY's notifications come here. */
static int exs_recv_errqueue(struct sock *sk, struct msghdr *msg, size_t len)
{
	if (test_bit(EXS_SK_V6, &exs_sk(sk)->flags))
		return sock_recv_errqueue(sk, msg, len, SOL_IPV6, IPV6_RECVERR);
	return sock_recv_errqueue(sk, msg, len, SOL_IP, IP_RECVERR);
}

exs_hot
static int exs_recvmsg_ours(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	int err;

	if (flags & MSG_ERRQUEUE)
		return exs_recv_errqueue(sk, msg, len);
	/* There is no urgent data. */
	if (flags & MSG_OOB && exs_sk(sk)->socktype == EXS_WIRE_STREAM)
		return exs_sock_state(exs_sk(sk)) == EXS_LISTENING ? -ENOTCONN : -EINVAL;
	if (!conn)
		conn = exs_wait_conn(sk, sock_rcvtimeo(sk, flags & MSG_DONTWAIT));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	if (!conn)
		return exs_recv_unconnected(sk);
	exs_sock_error_before(exs_sk(sk));
	/*
	 * After shutdown(SHUT_RD) a read gets the available data, then EOF, or the error if the
	 * peer had not ended its direction. The end of an operation's read comes after those of
	 * operations under way.
	 */
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN && !exs_conn_has_data(conn) &&
	    !(exs_msg_call(msg) && exs_conn_receiving(conn)))
		return READ_ONCE(conn->engine.fin_rcvd) ? 0 : sock_error(sk);
	err = exs_conn_recvmsg(conn, sk, msg, len, flags);
	exs_sock_error_after(exs_sk(sk), conn);
	return err;
}

/* TCP_INQ, and io_uring: how many bytes are left. As with TCP, the end counts as one. */
static void exs_recv_inq(struct exs_sock *xs, struct msghdr *msg, int flags)
{
	bool asked = READ_ONCE(xs->kept[EXS_KEPT_INQ]);
	struct exs_conn *conn = exs_sock_conn(xs);

	if (likely(!asked && !msg->msg_get_inq) || flags & MSG_ERRQUEUE || exs_msg_call(msg))
		return;
	/* io_uring takes it for bytes that may follow in the same buffer. */
	if (xs->sk.sk_type != SOCK_STREAM)
		return;
	msg->msg_inq = 0;
	if (conn)
		msg->msg_inq = exs_conn_queued(conn, SIOCINQ) + READ_ONCE(conn->engine.fin_rcvd);
	if (asked)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq), &msg->msg_inq);
}

exs_hot
static int exs_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct exs_sock *xs = exs_of(sock);
	int err = xs ? exs_recvmsg_ours(&xs->sk, msg, len, flags) : -EXS_ETCP;

	if (err >= 0)
		exs_recv_inq(xs, msg, flags);
	return unlikely(err == -EXS_ETCP) ? exs_tcp_recvmsg(sock, msg, len, flags) : err;
}

static int exs_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	return exs_of(sock) ? sock_no_mmap(file, sock, vma) :
			      exs_tcp_ops(sock)->mmap(file, sock, vma);
}

static ssize_t exs_splice_read(struct socket *sock, loff_t *pos, struct pipe_inode_info *pipe,
			       size_t len, unsigned int flags)
{
	return exs_of(sock) ? copy_splice_read(sock->file, pos, pipe, len, flags) :
			      exs_tcp_ops(sock)->splice_read(sock, pos, pipe, len, flags);
}

#ifndef EXS_HAVE_COPY_SPLICE_READ
static ssize_t exs_sendpage(struct socket *sock, struct page *page, int offset, size_t size,
			    int flags)
{
	struct msghdr msg = { .msg_flags = flags | EXS_MSG_SPLICE_PAGES };
	struct bio_vec bvec;

	if (!exs_of(sock))
		return exs_tcp_ops(sock)->sendpage(sock, page, offset, size, flags);
	bvec_set_page(&bvec, page, size, offset);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bvec, 1, size);
	/* As with send(2), security modules are asked. */
	return sock_sendmsg(sock, &msg);
}
#else
static void exs_splice_eof(struct socket *sock)
{
	if (!exs_of(sock) && exs_tcp_ops(sock)->splice_eof)
		exs_tcp_ops(sock)->splice_eof(sock);
}
#endif

/* TCP's limit. lock_sock held. This may make a socket readable for threads in poll(). */
static int exs_set_rcvlowat(struct sock *sk, int val)
{
	int most = sk->sk_userlocks & SOCK_RCVBUF_LOCK ? READ_ONCE(sk->sk_rcvbuf) :
		   READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (!exs_sk_is_exs(sk))
		return inet_stream_ops.set_rcvlowat(sk, val);
	WRITE_ONCE(sk->sk_rcvlowat, min(val, most / 2) ?: 1);
	sk->sk_data_ready(sk);
	return 0;
}

static int exs_set_peek_off(struct sock *sk, int val)
{
	if (exs_sk_is_exs(sk))
		return exs_sk(sk)->socktype == EXS_WIRE_STREAM ? sk_set_peek_off(sk, val) :
								 -EOPNOTSUPP;
	return inet_stream_ops.set_peek_off ? inet_stream_ops.set_peek_off(sk, val) : -EOPNOTSUPP;
}

/* BPF's sockmap reads a TCP socket by these. */
static int exs_read_sock(struct sock *sk, read_descriptor_t *desc, sk_read_actor_t actor)
{
	return exs_sk_is_exs(sk) ? -EOPNOTSUPP : inet_stream_ops.read_sock(sk, desc, actor);
}

static int exs_read_skb(struct sock *sk, skb_read_actor_t actor)
{
	return exs_sk_is_exs(sk) ? -EOPNOTSUPP : inet_stream_ops.read_skb(sk, actor);
}

static int exs_peek_len(struct socket *sock)
{
	return exs_of(sock) ? 0 : inet_stream_ops.peek_len(sock);
}

static int exs_gettstamp(struct socket *sock, void __user *stamp, bool timeval, bool time32)
{
	/* As with TCP: no packet with a timestamp was received. */
	return exs_of(sock) ? -ENOENT :
			      exs_tcp_ops(sock)->gettstamp(sock, stamp, timeval, time32);
}

/* Without .family, which is not a constant: only AF_UNIX compares its own there. */
const struct proto_ops exs_ops = {
	.owner		= THIS_MODULE,
	.release	= exs_release,
	.bind		= exs_bind,
	.connect	= exs_connect_call,
	.socketpair	= sock_no_socketpair,
#ifdef EXS_HAVE_PROTO_ACCEPT_ARG
	.accept		= exs_accept,
#else
	.accept		= exs_accept_flags,
#endif
	.getname	= exs_getname,
	.poll		= exs_poll,
	.ioctl		= exs_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl	= exs_compat_ioctl,
#endif
	.listen		= exs_listen,
	.shutdown	= exs_shutdown,
	.setsockopt	= exs_setsockopt,
	.getsockopt	= exs_getsockopt,
	.sendmsg	= exs_sendmsg,
	.recvmsg	= exs_recvmsg,
	.mmap		= exs_mmap,
	.splice_read	= exs_splice_read,
#ifndef EXS_HAVE_COPY_SPLICE_READ
	.sendpage	= exs_sendpage,
#else
	.splice_eof	= exs_splice_eof,
#endif
	.set_rcvlowat	= exs_set_rcvlowat,
	.set_peek_off	= exs_set_peek_off,
	.read_sock	= exs_read_sock,
	.read_skb	= exs_read_skb,
	.peek_len	= exs_peek_len,
	.gettstamp	= exs_gettstamp,
};

/* If AF_EXS is switched off, sockets are refused as if the module were not loaded. */
bool exs_sock_enabled(struct net *net)
{
	if (exs_sysctl_cap(exs_net(net), enabled))
		return true;
	exs_count(exs_net(net), reject_disabled, 1);
	return false;
}

bool exs_ready;

static int exs_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	if (!READ_ONCE(exs_ready) || !exs_sock_enabled(net))
		return -EAFNOSUPPORT;
	if (sock->type != SOCK_STREAM && sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol)
		return -EPROTONOSUPPORT;
	sock->ops = &exs_ops;
	exs_sock_flags(sock);
	return exs_sock_alloc(net, exs_family, sock, sock->type, kern) ? 0 : -ENOMEM;
}

static struct net_proto_family exs_net_family __read_mostly = {
	.create	= exs_create,
	.owner	= THIS_MODULE,
};

int exs_family_init(void)
{
	int err;

	if (exs_family <= AF_UNSPEC || exs_family >= AF_MAX) {
		pr_err("exs: family=%d: choose one from 1 to %d with family=\n", exs_family,
		       AF_MAX - 1);
		return -EAFNOSUPPORT;
	}
	exs_net_family.family = exs_family;
	err = sock_register(&exs_net_family);
	if (err == -EEXIST)
		pr_err("exs: address family %d is taken: choose another with family=\n",
		       exs_family);
	else if (err)
		pr_err("exs: cannot register address family %d: %d: choose another with family=\n",
		       exs_family, err);
	return err;
}

void exs_family_exit(void)
{
	sock_unregister(exs_family);
	/* No socket is left. Orphans of closed ones do not delay unloading. */
	exs_conn_reset_orphans();
}
