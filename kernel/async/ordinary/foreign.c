// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on ordinary sockets: which exist, and how one is tried: with the
 * call that a program would make, MSG_DONTWAIT, over the pinned pages, with the
 * credentials of the submitter. So security modules see every try, and no user
 * address is accessed while a socket is locked.
 *
 * Connect supplies the event of the program's own connect(2), which comes after
 * it. A socket of messages is connected at once, so there the call comes before.
 * Accept offers connections that wait at the listener; the dequeuing thread makes
 * the accept4(2).
 */
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/in.h>
#include <linux/memcontrol.h>
#include <linux/net.h>
#include <linux/nospec.h>
#include <linux/sched/mm.h>
#include <net/inet_connection_sock.h>
#include <net/af_unix.h>
#include <net/sock.h>

#include "../../compat/compat.h"
#include "../../core/stats.h"
#include "../op/op.h"
#include "../queue/token.h"
#include "foreign.h"

struct exs_foreign_def {
	struct exs_op_def def;
	enum exs_lane_dir dir;
	long (*call)(struct exs_op *op, struct socket *sock);
};

static const struct exs_foreign_def *exs_foreign_row(const struct exs_op *op)
{
	return container_of(op->def, struct exs_foreign_def, def);
}

/*
 * Those whose calls are known not to block with MSG_DONTWAIT, and to wake.
 * Kernel TLS, for one, waits for a thread that is blocked in another call.
 */
static bool exs_foreign_supports(struct sock *sk)
{
	switch (sk->sk_family) {
	case AF_INET:
	case AF_INET6:
		return (sk_is_tcp(sk) && !inet_csk_has_ulp(sk)) ||
		       (sk->sk_type == SOCK_DGRAM && sk->sk_protocol == IPPROTO_UDP);
	case AF_UNIX:
		return true;
	default:
		return false;
	}
}

/*
 * One call moved @n bytes. Return: as exs_foreign_try(); only if @all of them
 * are wanted there may be more to do.
 */
static long exs_foreign_moved(struct exs_op *op, size_t n, bool all)
{
	op->foreign.done += n;
	iov_iter_advance(&op->data.iter, n);
	if (n && all && iov_iter_count(&op->data.iter))
		return -EIOCBQUEUED;
	return op->foreign.done;
}

/*
 * Whether a worker may send to @to. It must not if the receiver would see its credentials:
 * if one of the two sockets asks for them, and always before the connection was accepted.
 *
 * The answer may be out of date at once. The lock of @to would not help: the option may be
 * set without it, and a thread that has it may sleep without a limit.
 */
static int exs_foreign_unnamed(struct socket *from, const struct sock *to)
{
	const struct socket *sock;
	int err = 0;

	/* A struct socket is freed by RCU. */
	rcu_read_lock();
	sock = READ_ONCE(to->sk_socket);
	if (exs_wants_creds(from->sk, from) || (sock && exs_wants_creds(to, sock)))
		err = -EOPNOTSUPP;
	else if (!sock && !sock_flag(to, SOCK_DEAD))
		err = -EAGAIN;
	rcu_read_unlock();
	return err;
}

/* A reference, or NULL. The kernel's own function for that is not there on all kernels. */
static struct sock *exs_foreign_unix_peer(struct sock *sk)
{
	struct sock *peer;

	unix_state_lock(sk);
	peer = unix_peer(sk);
	if (peer)
		sock_hold(peer);
	unix_state_unlock(sk);
	return peer;
}

/* AF_UNIX takes the calling task for the sender. */
static int exs_foreign_send_as_worker(struct exs_op *op, struct socket *sock,
				      struct msghdr *msg)
{
	struct sock *peer = exs_foreign_unix_peer(sock->sk);
	int err = 0;

	if (peer) {
		err = exs_foreign_unnamed(sock, peer);
		sock_put(peer);
	}
	if (err == -EOPNOTSUPP)
		exs_count(op->queue->xn, senders_unnamed, 1);
	return err ?: sock_sendmsg(sock, msg);
}

int exs_foreign_call_send(struct exs_op *op, struct socket *sock, struct msghdr *msg)
{
	if (sock->sk->sk_family == AF_UNIX && current->flags & PF_KTHREAD)
		return exs_foreign_send_as_worker(op, sock, msg);
	return sock_sendmsg(sock, msg);
}

/* A worker has no process to send SIGPIPE to. */
static long exs_foreign_send(struct exs_op *op, struct socket *sock)
{
	struct msghdr msg = {
		.msg_iter = op->data.iter,
		.msg_flags = op->msg_flags | MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	long res = exs_foreign_call_send(op, sock, &msg);

	if (res < 0)
		return res;
	return exs_foreign_moved(op, res, sock->type == SOCK_STREAM);
}

static long exs_foreign_sendmsg(struct exs_op *op, struct socket *sock)
{
	return op->data.feed ? exs_foreign_feed_try(op, sock) : exs_foreign_send(op, sock);
}

/* Not an error of this call alone, such as EACCES or ENOMEM. */
static bool exs_foreign_is_sock_error(int err)
{
	switch (err) {
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -ECONNABORTED:
	case -ETIMEDOUT:
	case -EPIPE:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return true;
	default:
		return false;
	}
}

/* If bytes were received before, they are the result. The next call gets the socket's error. */
static long exs_foreign_recv_failed(struct exs_op *op, struct sock *sk, int err)
{
	if (!op->foreign.done)
		return err;
	if (exs_foreign_is_sock_error(err))
		cmpxchg(&sk->sk_err, 0, -err);
	return op->foreign.done;
}

/*
 * Datagram sockets that were shut down report the end to a thread that waits,
 * but not to a call that would not wait.
 */
static long exs_foreign_recv(struct exs_op *op, struct socket *sock)
{
	bool all = op->msg_flags & MSG_WAITALL && sock->type == SOCK_STREAM;
	bool shut = READ_ONCE(sock->sk->sk_shutdown) & RCV_SHUTDOWN;
	struct msghdr msg = { .msg_iter = op->data.iter };
	long res = sock_recvmsg(sock, &msg, MSG_DONTWAIT);

	if (res == -EAGAIN)
		return shut ? op->foreign.done : res;
	if (res < 0)
		return exs_foreign_recv_failed(op, sock->sk, res);
	op->foreign.flags = msg.msg_flags & (MSG_TRUNC | MSG_EOR);
	return exs_foreign_moved(op, res, all);
}

static bool exs_foreign_connecting(const struct sock *sk)
{
	return sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV;
}

/*
 * Only another connect(2) clears the failure of an earlier attempt. An unread error of that
 * attempt must not be taken for one of the coming attempt.
 */
static int exs_foreign_may_connect(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (exs_foreign_connecting(sk))
		return -EALREADY;
	if (sk->sk_state != TCP_CLOSE)
		return -EISCONN;
	return sock->state == SS_UNCONNECTED ? sock_error(sk) : -ECONNABORTED;
}

/*
 * TCP_CLOSE is also the state before connect(2) comes, except for sock->state. It
 * is the state again, with an error, once shutdown(2) has ended the attempt.
 * AF_UNIX has no other state in between.
 */
static long exs_foreign_connected(struct socket *sock)
{
	struct sock *sk = sock->sk;

	/* With TCP_FASTOPEN_CONNECT it is the first send that connects. */
	if (exs_foreign_connecting(sk))
		return sock->ops->poll(sock->file, sock, NULL) & EPOLLOUT ? 0 : -EAGAIN;
	if (sk->sk_state != TCP_CLOSE)
		return 0;
	return sock_error(sk) ?: (sock->state == SS_UNCONNECTED ? -EAGAIN : -ECONNABORTED);
}

static long exs_foreign_connect(struct exs_op *op, struct socket *sock)
{
	long res;

	lock_sock(sock->sk);
	res = exs_foreign_connected(sock);
	release_sock(sock->sk);
	return res;
}

static bool exs_foreign_listens(const struct sock *sk)
{
	return READ_ONCE(sk->sk_state) == TCP_LISTEN &&
	       !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

static unsigned int exs_foreign_waiting(const struct sock *sk)
{
	return sk->sk_family == AF_UNIX ? skb_queue_len_lockless(&sk->sk_receive_queue) :
					  READ_ONCE(sk->sk_ack_backlog);
}

static long exs_foreign_accept(struct exs_op *op, struct socket *sock)
{
	if (!exs_foreign_listens(sock->sk))
		return -ECANCELED;
	return exs_lane_offer(op, exs_foreign_waiting(sock->sk));
}

/* All earlier sends have ended. The library has asked the security modules. */
static long exs_foreign_shutdown(struct exs_op *op, struct socket *sock)
{
	return kernel_sock_shutdown(sock, op->arg);
}

long exs_foreign_try(struct exs_op *op, struct socket *sock)
{
	const struct cred *old = override_creds(op->foreign.cred);
	struct mem_cgroup *old_memcg = set_active_memcg(op->foreign.memcg);
	long res = -EOPNOTSUPP;

	if (exs_foreign_supports(sock->sk))
		res = exs_foreign_row(op)->call(op, sock);
	set_active_memcg(old_memcg);
	revert_creds(old);
	return res;
}

/* An accept may begin again: exs_op_again(). */
static void exs_foreign_begin(struct exs_op *op)
{
	INIT_LIST_HEAD(&op->foreign.node);
	op->foreign.cancelled = false;
	op->foreign.cred = get_current_cred();
	op->foreign.memcg = get_mem_cgroup_from_mm(current->mm);
}

static long exs_foreign_issue(struct exs_op *op, struct socket *sock)
{
	exs_foreign_begin(op);
	return exs_lane_issue(op, sock, exs_foreign_row(op)->dir);
}

static int exs_foreign_no_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return 0;
}

static int exs_foreign_shutdown_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return sqe->user_arg == SHUT_WR || sqe->user_arg == SHUT_RDWR ? 0 : -EINVAL;
}

static void exs_foreign_cleanup(struct exs_op *op)
{
	put_cred(op->foreign.cred);
	mem_cgroup_put(op->foreign.memcg);
}

static long exs_foreign_connect_issue(struct exs_op *op, struct socket *sock)
{
	int err;

	exs_foreign_begin(op);
	if (sock->type == SOCK_DGRAM)
		return 0;
	lock_sock(sock->sk);
	err = exs_foreign_may_connect(sock);
	release_sock(sock->sk);
	return err ?: exs_lane_issue(op, sock, EXS_LANE_OUT);
}

static long exs_foreign_accept_issue(struct exs_op *op, struct socket *sock)
{
	exs_foreign_begin(op);
	if (sock->type == SOCK_DGRAM)
		return -EOPNOTSUPP;
	if (!exs_foreign_listens(sock->sk))
		return -EINVAL;
	return exs_lane_issue(op, sock, EXS_LANE_IN);
}

/* The token keeps the number. */
static void exs_foreign_accept_cleanup(struct exs_op *op)
{
	exs_foreign_cleanup(op);
	if (!op->foreign.offered)
		exs_accept_cleanup(op);
}

static bool exs_foreign_match_others(const struct exs_op *op, const void *arg)
{
	return op->opcode != EXS_OP_CLOSE;
}

static bool exs_foreign_match_sock(const struct exs_op *op, const void *sk)
{
	return op->sk == sk;
}

/*
 * The socket's operations in this queue have their events first. Those of other
 * queues go on, and hold the socket.
 */
static long exs_foreign_close_issue(struct exs_op *op, struct socket *sock)
{
	int err = close_fd(op->fd);
	LIST_HEAD(others);

	if (err)
		return err;
	exs_queue_collect(op->queue, op->sk, exs_foreign_match_others, NULL, &others);
	exs_ops_cancel(&others);
	exs_lane_wait_cancelled(op);
	exs_tokens_drop_offers(op->queue, exs_foreign_match_sock, op->sk);
	/* Their references to the socket go, too, so our caller's is the last. */
	exs_lane_wait_gone(op, sock->file);
	return 0;
}

static int exs_foreign_sendmsg_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	int err = exs_sendmsg_prep(op, sqe);

	if (!err && op->data.feed)
		exs_foreign_feed_init(op);
	return err;
}

static void exs_foreign_data_cleanup(struct exs_op *op)
{
	if (op->data.feed)
		exs_foreign_feed_over(op);
	exs_foreign_cleanup(op);
	exs_data_cleanup(op);
}

static const struct exs_foreign_def exs_foreign_defs[] = {
	[EXS_OP_CONNECT] = {
		.def = {
			.prep		= exs_foreign_no_prep,
			.issue		= exs_foreign_connect_issue,
			.cancel		= exs_lane_cancel,
			.withdraw	= exs_lane_withdraw,
			.cleanup	= exs_foreign_cleanup,
		},
		.dir	= EXS_LANE_OUT,
		.call	= exs_foreign_connect,
	},
	[EXS_OP_ACCEPT] = {
		.def = {
			.prep		= exs_accept_prep,
			.issue		= exs_foreign_accept_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_accept_cleanup,
			.offer_return	= exs_lane_return,
			.offer_again	= exs_lane_return_again,
		},
		.dir	= EXS_LANE_IN,
		.call	= exs_foreign_accept,
	},
	[EXS_OP_SEND] = {
		.def = {
			.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
			.timeout	= EXS_CQE_SENDTIMEOUT,
			.outgoing	= true,
			.buffer		= true,
			.prep		= exs_send_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_data_cleanup,
		},
		.dir	= EXS_LANE_OUT,
		.call	= exs_foreign_send,
	},
	[EXS_OP_RECV] = {
		.def = {
			.msg_flags	= MSG_WAITALL | MSG_DONTWAIT,
			.timeout	= EXS_CQE_RECVTIMEOUT,
			.buffer		= true,
			.prep		= exs_recv_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_data_cleanup,
		},
		.dir	= EXS_LANE_IN,
		.call	= exs_foreign_recv,
	},
	[EXS_OP_SENDMSG] = {
		.def = {
			.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
			.timeout	= EXS_CQE_SENDTIMEOUT,
			.outgoing	= true,
			.buffer		= true,
			.prep		= exs_foreign_sendmsg_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_data_cleanup,
		},
		.dir	= EXS_LANE_OUT,
		.call	= exs_foreign_sendmsg,
	},
	[EXS_OP_SENDFILE] = {
		.def = {
			.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
			.timeout	= EXS_CQE_SENDTIMEOUT,
			.outgoing	= true,
			.buffer		= true,
			.prep		= exs_foreign_sendmsg_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_data_cleanup,
		},
		.dir	= EXS_LANE_OUT,
		.call	= exs_foreign_sendmsg,
	},
	[EXS_OP_RECVMSG] = {
		.def = {
			.msg_flags	= MSG_WAITALL | MSG_DONTWAIT,
			.timeout	= EXS_CQE_RECVTIMEOUT,
			.buffer		= true,
			.prep		= exs_recvmsg_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.cleanup	= exs_foreign_data_cleanup,
		},
		.dir	= EXS_LANE_IN,
		.call	= exs_foreign_recv,
	},
	[EXS_OP_SHUTDOWN] = {
		.def = {
			.outgoing	= true,
			.prep		= exs_foreign_shutdown_prep,
			.issue		= exs_foreign_issue,
			.cancel		= exs_lane_cancel,
			.withdraw	= exs_lane_withdraw,
			.cleanup	= exs_foreign_cleanup,
		},
		.dir	= EXS_LANE_OUT,
		.call	= exs_foreign_shutdown,
	},
	[EXS_OP_CLOSE] = {
		.def = {
			.prep		= exs_foreign_no_prep,
			.issue		= exs_foreign_close_issue,
			.cleanup	= exs_no_cleanup,
		},
	},
};

static const struct exs_op_def *exs_foreign_def(const struct socket *sock, u32 opcode)
{
	const struct exs_op_def *def;

	if (opcode >= ARRAY_SIZE(exs_foreign_defs) || !exs_foreign_supports(sock->sk))
		return NULL;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(exs_foreign_defs));
	def = &exs_foreign_defs[opcode].def;
	return def->issue ? def : NULL;
}

const struct exs_ordinary exs_ordinary = { .def = exs_foreign_def };

u64 exs_foreign_ops_supported(void)
{
	u64 ops = BIT_ULL(EXS_OP_POLL);		/* has no socket, but descriptors of any kind */
	u32 i;

	for (i = 0; i < ARRAY_SIZE(exs_foreign_defs); i++)
		ops |= exs_foreign_defs[i].def.issue ? BIT_ULL(i) : 0;
	return ops;
}
