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
 *	listening	xs->listen holds connections that nobody accepted yet
 *	connecting	xs->attempt is a connection that may come to nothing
 *	connected	xs->conn; moves data (conn.c, run.c, data.c, message.c)
 *
 *	    UNCONNECTED ---bind---> BOUND <--shutdown-- LISTENING
 *	     |   ^  |                |  ^  ---listen-->
 *	     |   |  +--connect--+ +--+  |
 *	  accept |              v v     |
 *	     |   +--failed-- CONNECTING +
 *	     v                   |
 *	    CONNECTED <----------+        and from everywhere, close: CLOSED
 *
 * exs_change_state() makes these moves and no others. A connection that ends
 * leaves its socket CONNECTED: what is left to read, and the error, are there.
 *
 * Locks
 * =====
 *	xs->op_lock		bind, listen, start of connect, shutdown, close
 *	  lock_sock(listener)	state, attempt, addresses
 *	    lock_sock(child)	nested
 *	      listen->lock, xs->park_lock, conn->lock	spin locks, none of these in
 *							another
 *
 * Inside listen->lock lie the lock of the users' table and, in wake-ups, those of
 * struct sock; inside conn->lock that of the orphans.
 *
 * No rdma_* function is called under lock_sock: where the transport has to do
 * something that takes rdma_cm's locks (bind, listen, create, unbind), op_lock
 * alone is held, and the state decides whether it is to be done. The transport
 * calls back (exs_listen_*, exs_conn_*) under rdma_cm's locks: those functions
 * take spin locks only, and leave what needs lock_sock to exs_sock_wq.
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
#include <linux/compat.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <uapi/linux/sockios.h>
#include <asm/ioctls.h>

#include <linux/exs.h>

#include "../compat/compat.h"
#include "../transport/verbs.h"
#include "core.h"
#include "message.h"
#include "run.h"
#include "stats.h"

int exs_family = EXS_FAMILY_DEFAULT;
module_param_named(family, exs_family, int, 0444);
MODULE_PARM_DESC(family, "address family number, one that no other module uses");

static int exs_bind(struct socket *sock, struct sockaddr_unsized *uaddr, int len)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	struct sockaddr_storage addr;
	bool v6, any_port;
	u32 flags;
	int err;

	err = exs_filter_addr(sock->sk, uaddr, &len, true, &flags);
	if (!err)
		err = exs_addr_get(xs, uaddr, len, &addr, &v6);
	if (!err && v6 && addr.ss_family == AF_INET && xs->sk.sk_ipv6only)
		err = -EINVAL;
	if (err)
		return err;
	any_port = flags & BPF_RET_BIND_NO_CAP_NET_BIND_SERVICE;
	mutex_lock(&xs->op_lock);
	err = exs_bind_addr(xs, &addr, v6, any_port);
	mutex_unlock(&xs->op_lock);
	return err;
}

static int exs_listen_locked(struct socket *sock, int backlog)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (sock->state != SS_UNCONNECTED)
		return -EINVAL;
	err = exs_sock_check_promises(sock->sk);
	if (err)
		return err;
	if (exs_sock_state(xs) == EXS_UNCONNECTED) {
		err = exs_bind_any(xs);
		if (err)
			return err;
	}
	return exs_listen_start(xs, backlog);
}

static int exs_listen(struct socket *sock, int backlog)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	int err;

	mutex_lock(&xs->op_lock);
	err = exs_listen_locked(sock, backlog);
	mutex_unlock(&xs->op_lock);
	return err;
}

/* Back to BOUND: everything that nobody accepted is reset. op_lock held. */
static void exs_unlisten(struct exs_sock *xs)
{
	struct exs_verbs_listener *bound = xs->bound;

	lockdep_assert_held(&xs->op_lock);
	lock_sock(&xs->sk);
	xs->bound = NULL;
	exs_change_state(xs, EXS_BOUND);
	release_sock(&xs->sk);
	exs_listen_stop(xs, bound);
}

int exs_accept(struct socket *sock, struct socket *newsock,
	       struct proto_accept_arg *arg)
{
	struct sock *sk = sock->sk, *child;

	child = exs_sock_take_parked(exs_sk(sk), task_pid(current));
	if (!child)
		child = exs_listen_accept(sk, arg->flags & O_NONBLOCK);
	if (IS_ERR(child))
		return PTR_ERR(child);
	lock_sock_nested(child, SINGLE_DEPTH_NESTING);
	sock_graft(child, newsock);
	newsock->state = SS_CONNECTED;
	exs_sock_flags(newsock);
	release_sock(child);
	return 0;
}

/* shutdown(), or connect() to AF_UNSPEC, of what is not connected yet. */
static int exs_disconnect(struct socket *sock, int err)
{
	struct exs_sock *xs = exs_sk(sock->sk);

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
	default:
		break;
	}
	lock_sock(sock->sk);
	sock->state = SS_UNCONNECTED;
	WRITE_ONCE(sock->sk->sk_shutdown, 0);
	release_sock(sock->sk);
	return 0;
}

static int exs_connect_call(struct socket *sock, struct sockaddr_unsized *uaddr, int len,
			    int flags)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	const struct sockaddr *sa = (const void *)uaddr;
	int err;

	if (len < (int)sizeof(sa->sa_family))
		return exs_connect_refuse(xs, -EINVAL);
	if (sa->sa_family == AF_UNSPEC) {
		mutex_lock(&xs->op_lock);
		/* No event could follow for an operation that waits for connect(). */
		if (READ_ONCE(xs->connect_waiter) && exs_sock_state(xs) != EXS_CONNECTING)
			err = exs_connect_refuse(xs, -EAFNOSUPPORT);
		else
			err = exs_disconnect(sock, ECONNRESET);
		mutex_unlock(&xs->op_lock);
		return err;
	}
	return exs_connect(sock, uaddr, len, flags);
}

/* Its own name: while it connects, what the attempt has got by now. lock_sock held. */
static int exs_getname_own(struct exs_sock *xs, struct sockaddr *uaddr)
{
	struct exs_conn *conn = xs->attempt;

	sock_owned_by_me(&xs->sk);
	if (conn)
		exs_sock_name(xs, conn);
	return exs_addr_put(xs, &xs->local, uaddr);
}

static bool exs_conn_is_up(const struct exs_conn *conn)
{
	return READ_ONCE(conn->state) == EXS_CONN_UP;
}

static bool exs_conn_is_closed(struct exs_conn *conn)
{
	bool closed;

	spin_lock(&conn->lock);
	closed = conn->end_err || exs_conn_both_shut(conn);
	spin_unlock(&conn->lock);
	return closed;
}

static int exs_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	int len;

	lock_sock(sock->sk);
	if (!peer)
		len = exs_getname_own(xs, uaddr);
	else if (xs->state != EXS_CONNECTED)
		len = -ENOTCONN;
	else if (peer == 1 && exs_conn_is_closed(xs->conn))
		len = -ENOTCONN;	/* as a TCP socket in that state */
	else
		len = exs_addr_put(xs, &xs->peer, uaddr);
	release_sock(sock->sk);
	if (len > 0)
		exs_filter_name(sock->sk, uaddr, &len, peer);
	return len;
}

/* What is not connected is shut, too, until it is. */
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
	int err = exs_shutdown_unconnected(&xs->sk, how);

	if (!exs_conn_is_up(conn) || exs_conn_is_closed(conn))
		return err;
	if (how & RCV_SHUTDOWN)
		exs_conn_shutdown_read(conn);
	if (how & SEND_SHUTDOWN)
		exs_conn_shutdown(conn);
	return 0;
}

static int exs_shutdown_locked(struct socket *sock, int how)
{
	struct exs_sock *xs = exs_sk(sock->sk);

	switch (exs_sock_state(xs)) {
	case EXS_CONNECTED:
		return exs_shutdown_connected(xs, how);
	case EXS_LISTENING:
		return how & RCV_SHUTDOWN ? exs_disconnect(sock, 0) : 0;
	case EXS_CONNECTING:
		return exs_disconnect(sock, ECONNRESET);
	default:
		return exs_shutdown_unconnected(&xs->sk, how);
	}
}

static int exs_shutdown(struct socket *sock, int how)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	int err;

	/* SHUT_RD, SHUT_WR, SHUT_RDWR as bits */
	how++;
	if (how & ~SHUTDOWN_MASK || !how)
		return -EINVAL;
	mutex_lock(&xs->op_lock);
	err = exs_shutdown_locked(sock, how);
	mutex_unlock(&xs->op_lock);
	sock->sk->sk_state_change(sock->sk);
	return err;
}

/*
 * How long the connection may outlive the socket; waits if the program asked. An
 * asynchronous close does not: SO_LINGER's time is then the connection's.
 */
static unsigned long exs_release_linger(struct sock *sk, struct exs_conn *conn)
{
	unsigned long most = msecs_to_jiffies(exs_sysctl_cap(conn->xn, linger));

	if (!sock_flag(sk, SOCK_LINGER))
		return most;
	if (!sk->sk_lingertime)
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
	struct exs_verbs_listener *bound;

	lockdep_assert_held(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_LISTENING)
		exs_unlisten(xs);
	exs_connect_abort(xs, 0);
	bound = xs->bound;
	xs->bound = NULL;
	if (bound)
		exs_verbs_unbind(bound);
}

/*
 * Tell asynchronous closes, now or when the connection is over. Other operations
 * come first: accepts have ended, transfers do with the connection; the end of a
 * connect may be on its way. Nobody is added any more: each held a file.
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

static int exs_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct exs_conn *conn;
	struct exs_sock *xs;

	if (!sk)
		return 0;
	xs = exs_sk(sk);
	exs_inet_released(sk);
	mutex_lock(&xs->op_lock);
	exs_release_unconnected(xs);
	conn = exs_sock_conn(xs);
	if (conn)
		exs_conn_orphan(conn, exs_release_linger(sk, conn));
	lock_sock(sk);
	sock_orphan(sk);
	exs_change_state(xs, EXS_CLOSED);
	release_sock(sk);
	mutex_unlock(&xs->op_lock);
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
	/* Before the connection, whose end comes with it: no error without a hang-up. */
	int err = READ_ONCE(sk->sk_err);
	__poll_t mask = exs_conn_poll(xs->conn, sock_rcvlowat(sk, false, INT_MAX));

	/* The peer is done, in order: what TCP calls CLOSE_WAIT. */
	if (!READ_ONCE(xs->conn->end_err) && !(shutdown & SEND_SHUTDOWN))
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
	/* The connection may have ended only now: SO_ERROR has to know it, too. */
	if (mask & EPOLLERR)
		exs_sock_publish_error(xs);
	return mask;
}

static __poll_t exs_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct exs_sock *xs = exs_sk(sk);
	__poll_t mask;

	sock_poll_wait(file, sock, wait);
	switch (exs_sock_state(xs)) {
	case EXS_LISTENING:
		return exs_listen_poll(xs->listen);
	case EXS_CONNECTED:
		return exs_poll_connected(xs);
	case EXS_CONNECTING:
		/* Its error, if there is one already, comes with the hang-up. */
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

/* Bytes to be read (of the next message), or of plain sends that are not yet over, or begun. */
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

static int exs_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	struct exs_sock *xs = exs_sk(sock->sk);
	void __user *arg = (void __user *)value;

	switch (cmd) {
	case SIOCINQ:
	case SIOCOUTQ:
	case SIOCOUTQNSD:
		return exs_ioctl_queued(xs, cmd, arg);
	case SIOCATMARK:
		/* There are no urgent data. */
		return put_user(0, (int __user *)arg);
	default:
		return exs_async_ioctl(sock, cmd, arg);
	}
}

#ifdef CONFIG_COMPAT
static int exs_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	/* Every structure has the same layout for both. */
	return exs_ioctl(sock, cmd, (unsigned long)compat_ptr(value));
}
#endif

/* Wait for a connect() that is under way. NULL: the socket is not connected. */
static struct exs_conn *exs_wait_conn(struct sock *sk, long timeo)
{
	int err = exs_sock_wait_connected(sk, &timeo);

	return err ? ERR_PTR(err) : exs_sock_conn(exs_sk(sk));
}

static int exs_send_unconnected(struct sock *sk, int flags)
{
	int err = sock_error(sk) ?: -EPIPE;

	if (err == -EPIPE && !(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}

exs_hot
static int exs_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	int err;

	if (!conn)
		conn = exs_wait_conn(sk, sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	if (!conn)
		return exs_send_unconnected(sk, msg->msg_flags);
	exs_sock_error_before(exs_sk(sk));
	err = exs_conn_sendmsg(conn, sk, msg, len);
	exs_sock_error_after(exs_sk(sk));
	return err;
}

static int exs_recv_unconnected(struct sock *sk)
{
	int err = sock_error(sk);

	if (err)
		return err;
	return READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ? 0 : -ENOTCONN;
}

/* Errors of transmission end a connection: here are only MSG_ZEROCOPY's notifications. */
static int exs_recv_errqueue(struct sock *sk, struct msghdr *msg, size_t len)
{
	if (test_bit(EXS_SK_V6, &exs_sk(sk)->flags))
		return sock_recv_errqueue(sk, msg, len, SOL_IPV6, IPV6_RECVERR);
	return sock_recv_errqueue(sk, msg, len, SOL_IP, IP_RECVERR);
}

exs_hot
static int exs_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct exs_conn *conn = exs_sock_conn(exs_sk(sk));
	int err;

	if (flags & MSG_ERRQUEUE)
		return exs_recv_errqueue(sk, msg, len);
	/* Nor are there urgent data. */
	if (flags & MSG_OOB && exs_sk(sk)->socktype == EXS_WIRE_STREAM)
		return exs_sock_state(exs_sk(sk)) == EXS_LISTENING ? -ENOTCONN : -EINVAL;
	if (!conn)
		conn = exs_wait_conn(sk, sock_rcvtimeo(sk, flags & MSG_DONTWAIT));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	if (!conn)
		return exs_recv_unconnected(sk);
	exs_sock_error_before(exs_sk(sk));
	/* After shutdown(SHUT_RD) what is there can be read, then comes the error, or EOF. */
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN && !exs_conn_has_data(conn))
		return sock_error(sk);
	err = exs_conn_recvmsg(conn, sk, msg, len, flags);
	exs_sock_error_after(exs_sk(sk));
	return err;
}

/* TCP's limit. lock_sock held. There may be enough for those who wait in poll(). */
static int exs_set_rcvlowat(struct sock *sk, int val)
{
	int most = sk->sk_userlocks & SOCK_RCVBUF_LOCK ? READ_ONCE(sk->sk_rcvbuf) :
		   READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	WRITE_ONCE(sk->sk_rcvlowat, min(val, most / 2) ?: 1);
	sk->sk_data_ready(sk);
	return 0;
}

static int exs_set_peek_off(struct sock *sk, int val)
{
	return exs_sk(sk)->socktype == EXS_WIRE_STREAM ? sk_set_peek_off(sk, val) : -EOPNOTSUPP;
}

/* Without .family, which is no constant: only AF_UNIX looks for its own there. */
const struct proto_ops exs_ops = {
	.owner		= THIS_MODULE,
	.release	= exs_release,
	.bind		= exs_bind,
	.connect	= exs_connect_call,
	.socketpair	= sock_no_socketpair,
	.accept		= exs_compat_accept,
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
	.mmap		= sock_no_mmap,
	.set_rcvlowat	= exs_set_rcvlowat,
	.set_peek_off	= exs_set_peek_off,
};

/* Switched off is as good as not there. */
bool exs_sock_enabled(struct net *net)
{
	if (exs_sysctl_cap(exs_net(net), enabled))
		return true;
	exs_count(exs_net(net), reject_disabled, 1);
	return false;
}

static int exs_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	if (!exs_sock_enabled(net))
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
		pr_err("exs: family=%d: must be from 1 to %d\n", exs_family, AF_MAX - 1);
		return -EAFNOSUPPORT;
	}
	exs_net_family.family = exs_family;
	err = sock_register(&exs_net_family);
	if (err == -EEXIST)
		pr_err("exs: address family %d is taken: choose another with family=\n",
		       exs_family);
	else if (err)
		pr_err("exs: cannot register address family %d: %d\n", exs_family, err);
	return err;
}

void exs_family_exit(void)
{
	sock_unregister(exs_family);
	/* No socket is left. What closed ones left behind does not hold us up. */
	exs_conn_reset_orphans();
}
