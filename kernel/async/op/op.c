// SPDX-License-Identifier: GPL-2.0
/*
 * Operations: the table, submission, requests to cancel (see op.h).
 */
#include <linux/file.h>
#include <linux/net.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../../core/stats.h"
#include "../memory/arg.h"
#include "../queue/mm.h"
#include "../queue/token.h"
#include "op.h"

static const struct exs_op_def exs_op_defs[] = {
	[EXS_OP_CONNECT] = {
		.prep		= exs_connect_prep,
		.issue		= exs_connect_issue,
		.cancel		= exs_conn_op_cancel,
		.withdraw	= exs_connect_withdraw,
		.cleanup	= exs_no_cleanup,
	},
	[EXS_OP_ACCEPT] = {
		.prep		= exs_accept_prep,
		.issue		= exs_accept_issue,
		.cancel		= exs_conn_op_cancel,
		.cleanup	= exs_accept_cleanup,
	},
	[EXS_OP_SEND] = {
		.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
		.buffer		= true,
		.timeout	= EXS_CQE_SENDTIMEOUT,
		.outgoing	= true,
		.prep		= exs_send_prep,
		.issue		= exs_send_issue,
		.cancel		= exs_data_cancel,
		.cleanup	= exs_data_cleanup,
	},
	[EXS_OP_RECV] = {
		.msg_flags	= MSG_WAITALL | MSG_DONTWAIT,
		.buffer		= true,
		.timeout	= EXS_CQE_RECVTIMEOUT,
		.prep		= exs_recv_prep,
		.issue		= exs_recv_issue,
		.cancel		= exs_data_cancel,
		.cleanup	= exs_data_cleanup,
	},
	[EXS_OP_CLOSE] = {
		.prep		= exs_end_prep,
		.issue		= exs_close_issue,
		.cancel		= exs_end_cancel,
		.cleanup	= exs_no_cleanup,
	},
	[EXS_OP_SHUTDOWN] = {
		.prep		= exs_end_prep,
		.issue		= exs_shutdown_issue,
		.cancel		= exs_end_cancel,
		.withdraw	= exs_shutdown_withdraw,
		.cleanup	= exs_no_cleanup,
	},
	[EXS_OP_SENDMSG] = {
		.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
		.timeout	= EXS_CQE_SENDTIMEOUT,
		.outgoing	= true,
		.buffer		= true,
		.prep		= exs_sendmsg_prep,
		.issue		= exs_send_issue,
		.cancel		= exs_data_cancel,
		.cleanup	= exs_data_cleanup,
	},
	[EXS_OP_RECVMSG] = {
		.msg_flags	= MSG_WAITALL | MSG_DONTWAIT,
		.timeout	= EXS_CQE_RECVTIMEOUT,
		.buffer		= true,
		.prep		= exs_recvmsg_prep,
		.issue		= exs_recv_issue,
		.cancel		= exs_data_cancel,
		.cleanup	= exs_data_cleanup,
	},
	[EXS_OP_SENDFILE] = {
		.msg_flags	= MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT,
		.timeout	= EXS_CQE_SENDTIMEOUT,
		.outgoing	= true,
		.buffer		= true,
		.prep		= exs_sendmsg_prep,
		.issue		= exs_send_issue,
		.cancel		= exs_data_cancel,
		.cleanup	= exs_data_cleanup,
	},
	[EXS_OP_POLL] = {
		.buffer		= true,
		.no_socket	= true,
		.prep		= exs_poll_prep,
		.issue		= exs_poll_issue,
		.cancel		= exs_poll_cancel,
		.cleanup	= exs_poll_cleanup,
	},
};

static const struct exs_op_def *exs_op_find_def(u32 opcode)
{
	if (opcode >= ARRAY_SIZE(exs_op_defs))
		return NULL;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(exs_op_defs));
	return exs_op_defs[opcode].issue ? &exs_op_defs[opcode] : NULL;
}

u64 exs_ops_supported(void)
{
	u64 ops = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(exs_op_defs); i++)
		ops |= exs_op_defs[i].issue ? BIT_ULL(i) : 0;
	return ops;
}

/*
 * Cancellation
 */

struct exs_cancel_key {
	u32 flags;
	u32 withdraw;		/* opcode of those to be withdrawn, or 0 */
	const struct sock *sk;	/* or NULL: of any socket, or none */
	u64 handle;
};

static bool exs_connect_begun(const struct exs_op *op)
{
	if (op->def == &exs_op_defs[EXS_OP_CONNECT])
		return READ_ONCE(exs_sk(op->sk)->state) == EXS_CONNECTING;
	return READ_ONCE(op->sk->sk_state) != TCP_CLOSE;
}

static bool exs_cancel_match(const struct exs_op *op, const void *arg)
{
	const struct exs_cancel_key *key = arg;

	/* Its connect(2) is yet to come, and reports the result itself. */
	if (!key->withdraw && op->opcode == EXS_OP_CONNECT && !exs_connect_begun(op))
		return false;
	if (key->withdraw && (op->opcode != key->withdraw ||
			      !(atomic_read(&op->state) & EXS_OP_ISSUED)))
		return false;
	return !(key->flags & EXS_CANCEL_HANDLE) || op->handle == key->handle;
}

/* Withdraw the last one that matches. Return: 0 or 1. */
static u32 exs_op_withdraw(struct exs_queue *q, const struct exs_cancel_key *key)
{
	struct exs_op *op = exs_queue_find_last(q, key->sk, exs_cancel_match, key);
	bool done;

	if (!op)
		return 0;
	done = op->def->withdraw(op);
	exs_op_put(op);
	return done;
}

static u32 exs_ops_cancel_matching(struct exs_queue *q, const struct exs_cancel_key *key)
{
	LIST_HEAD(list);
	u32 n;

	if (key->withdraw)
		return exs_op_withdraw(q, key);
	n = exs_queue_collect(q, key->sk, exs_cancel_match, key, &list);
	exs_ops_cancel(&list);
	return n;
}

static int exs_cancel_check(const struct exs_ioc_cancel *c, u32 *withdraw)
{
	*withdraw = 0;
	if (c->count)
		return -EINVAL;
	switch (c->flags & ~(EXS_CANCEL_FD | EXS_CANCEL_HANDLE)) {
	case 0:
		return 0;
	case EXS_CANCEL_CONNECT:
		*withdraw = EXS_OP_CONNECT;
		return 0;
	case EXS_CANCEL_SHUTDOWN:
		*withdraw = EXS_OP_SHUTDOWN;
		return 0;
	default:
		return -EINVAL;
	}
}

int exs_ops_cancel_ioctl(struct exs_queue *q, void __user *arg)
{
	struct exs_cancel_key key = { 0 };
	struct exs_ioc_cancel c;
	struct socket *sock = NULL;
	int err = exs_ioc_get(&c, sizeof(c), EXS_CANCEL_SIZE_VER0, arg);

	if (err)
		return err;
	err = exs_cancel_check(&c, &key.withdraw);
	if (err)
		return err;
	if (c.flags & EXS_CANCEL_FD) {
		sock = sockfd_lookup(c.fd, &err);
		if (!sock)
			return err;
		key.sk = sock->sk;
	}
	key.flags = c.flags;
	key.handle = c.handle;
	c.count = exs_ops_cancel_matching(q, &key);
	if (sock)
		sockfd_put(sock);
	return exs_ioc_put(arg, &c, sizeof(c));
}

/*
 * Submission
 */

/* The bounds of the options. */
static bool exs_sqe_timeout_ok(const struct exs_op_def *def, const struct exs_sqe *sqe)
{
	u32 flags = sqe->flags & (EXS_SQE_TIMEOUT_ONCE | EXS_SQE_TIMEOUT_END);

	if (!sqe->timeout)
		return !flags;
	return def->timeout && sqe->timeout <= EXS_TIMEOUT_MAX &&
	       flags != (EXS_SQE_TIMEOUT_ONCE | EXS_SQE_TIMEOUT_END);
}

static int exs_sqe_check(const struct exs_op_def *def, const struct exs_sqe *sqe)
{
	if (sqe->msg_flags & ~def->msg_flags)
		return -EINVAL;
	if (sqe->flags & ~EXS_SQE_FLAGS || !exs_sqe_timeout_ok(def, sqe))
		return -EINVAL;
	if (!def->buffer &&
	    (sqe->addr || sqe->len || sqe->region != EXS_REGION_NONE))
		return -EINVAL;
	return 0;
}

/*
 * Most operations in a row that leave the run of their connection to a later one: the first
 * need not wait long.
 */
#define EXS_BATCH_HELD	16

/**
 * struct exs_batch - a submission
 * @queue: where
 * @link: the caller's address space
 * @sock: the last operation's socket, a reference, or NULL
 * @fd: by which it was found
 * @held: operations there that left the run of the connection to those behind them
 */
struct exs_batch {
	struct exs_queue *queue;
	struct exs_mm_link *link;
	struct socket *sock;
	int fd;
	unsigned int held;
};

static void exs_batch_run(struct exs_batch *b)
{
	struct exs_conn *conn;

	if (!b->held)
		return;
	b->held = 0;
	/* An ordinary socket has none. */
	conn = exs_sock_conn_of(READ_ONCE(b->sock->sk));
	if (conn)
		exs_conn_run(conn);
}

static void exs_batch_leave(struct exs_batch *b)
{
	exs_batch_run(b);
	if (b->sock)
		sockfd_put(b->sock);
	b->sock = NULL;
}

/* Consecutive operations on one socket look it up once. */
static int exs_batch_enter(struct exs_batch *b, int fd)
{
	int err = 0;

	if (b->sock && b->fd == fd)
		return 0;
	exs_batch_leave(b);
	b->fd = fd;
	b->sock = sockfd_lookup(fd, &err);
	return err;
}

/*
 * @sock may be NULL. One reference is ours, the other goes with the operation
 * once it started.
 */
exs_hot
static int exs_op_submit_to(const struct exs_batch *b, const struct exs_sqe *sqe,
			    struct socket *sock, bool more)
{
	/* Read it once, because the socket may become TCP's at any time. */
	struct sock *sk = sock ? READ_ONCE(sock->sk) : NULL;
	bool ours = !sk || exs_sk_is_exs(sk);
	const struct exs_op_def *def = ours ? exs_op_find_def(sqe->opcode) :
					      exs_ordinary.def(sock, sqe->opcode);
	struct exs_op *op;
	int err;

	if (!ours && sqe->flags & EXS_SQE_EXS_ONLY)
		return -EAFNOSUPPORT;
	if (!def)
		return -EOPNOTSUPP;
	op = exs_op_alloc(b->queue, b->link, def, sk, sqe);
	if (!op)
		return -ENOMEM;
	op->more = more;
	refcount_inc(&op->ref);
	err = exs_op_start(op, sqe, sock);
	if (err)
		exs_op_put(op);
	exs_op_put(op);
	return err;
}

static bool exs_sqe_is_short(const struct exs_sqe *sqe)
{
	return (sqe->opcode == EXS_OP_SEND || sqe->opcode == EXS_OP_RECV) &&
	       sqe->len <= EXS_COPY_MAX;
}

/*
 * Short sends and receives leave the run of their connection to the next one: they are
 * transmitted together. The last of them runs it, unless it ends before it is queued, so that
 * is done here once more. Others may take long, and come after a run.
 */
static int exs_batch_submit_on(struct exs_batch *b, const struct exs_sqe *sqe, bool last)
{
	bool is_short = exs_sqe_is_short(sqe);
	bool more = is_short && !last && b->held < EXS_BATCH_HELD - 1;
	int err;

	if (!is_short)
		exs_batch_run(b);
	err = exs_op_submit_to(b, sqe, b->sock, more);
	if (err)
		return err;
	if (more)
		b->held++;
	else
		exs_batch_run(b);
	/* The number may be another file's from now on, and a close ends without our reference. */
	if (sqe->opcode == EXS_OP_CLOSE)
		exs_batch_leave(b);
	return 0;
}

static int exs_batch_submit(struct exs_batch *b, const struct exs_sqe *sqe, bool last)
{
	const struct exs_op_def *def = exs_op_find_def(sqe->opcode);
	int err;

	err = def ? exs_sqe_check(def, sqe) : -EINVAL;
	if (err)
		return err;
	if (def->no_socket) {
		exs_batch_leave(b);
		return exs_op_submit_to(b, sqe, NULL, false);
	}
	err = exs_batch_enter(b, sqe->fd);
	return err ?: exs_batch_submit_on(b, sqe, last);
}

/* Return: how many were started, or why the first was not. */
static int exs_ops_submit_all(struct exs_queue *q, struct exs_mm_link *link,
			      const struct exs_ioc_submit *s)
{
	const char __user *from = u64_to_user_ptr(s->ops);
	struct exs_batch b = { .queue = q, .link = link };
	struct exs_sqe sqe;
	u32 done = 0;
	int err = 0;

	while (done < s->count && !err) {
		if (fatal_signal_pending(current))
			err = -EINTR;
		err = err ?: copy_struct_from_user(&sqe, sizeof(sqe), from, s->sqe_size);
		err = err ?: exs_batch_submit(&b, &sqe, done + 1 == s->count);
		done += !err;
		from += s->sqe_size;
		cond_resched();
	}
	exs_batch_leave(&b);
	return done ?: err;
}

exs_hot
int exs_ops_submit(struct exs_queue *q, void __user *arg)
{
	struct exs_ioc_submit s;
	struct exs_mm_link *link;
	int err = exs_ioc_get(&s, sizeof(s), EXS_SUBMIT_SIZE_VER0, arg);

	if (err)
		return err;
	if (!s.count || s.count > EXS_SUBMIT_MAX || s.flags ||
	    s.sqe_size < EXS_SQE_SIZE_VER0)
		return -EINVAL;
	if (s.sqe_size > PAGE_SIZE)
		return -E2BIG;
	link = exs_mm_link(q);
	if (IS_ERR(link))
		return PTR_ERR(link);
	exs_tokens_sweep(q);
	return exs_ops_submit_all(q, link, &s);
}
