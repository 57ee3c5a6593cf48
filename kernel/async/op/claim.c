// SPDX-License-Identifier: GPL-2.0
/*
 * EXS_IOC_CLAIM: the thread that dequeued a token's event takes the token, puts it back, or
 * drops it. token.c explains tokens.
 *
 * If the claiming process has no descriptor of the listener (another process, or it was
 * moved), one is installed for the time of the accept.
 */
#include <linux/file.h>
#include <linux/net.h>
#include <linux/uaccess.h>

#include "../../compat/compat.h"
#include "../../core/stats.h"
#include "../memory/arg.h"
#include "../queue/mm.h"
#include "../queue/token.h"
#include "claim.h"
#include "op.h"

/* Threads of one queue between claim and accept. */
#define EXS_CLAIMS_MAX	1024

/* The number is erased before the last reference goes: an operation that is found under the array's
 * lock is alive. It may still be in flight.
 */
static struct exs_op *exs_token_find(struct exs_queue *q, u32 token)
{
	struct exs_op *op;

	xa_lock(&q->tokens);
	op = xa_load(&q->tokens, token);
	if (op)
		refcount_inc(&op->ref);
	xa_unlock(&q->tokens);
	return op;
}

/*
 * After this it is unclaimed, or nothing is left to claim. A concurrent sweep may
 * give the token's references away. Only a connection that is still parked can be
 * unparked, and a sweep does not touch that.
 */
static int exs_token_unclaim(struct exs_queue *q, struct exs_op *op)
{
	enum exs_token_state state;
	struct sock *child;
	bool found;

	spin_lock(&q->lock);
	exs_queue_unread(q);
	state = op->conn.token_state;
	child = op->conn.child;
	if (state == EXS_TOKEN_CLAIMED)
		sock_hold(child);
	spin_unlock(&q->lock);
	if (state != EXS_TOKEN_CLAIMED)
		return state == EXS_TOKEN_NONE ? -ENOENT : 0;
	found = exs_sock_unpark(op->sk, child);
	if (found) {
		spin_lock(&q->lock);
		exs_token_move(q, op, EXS_TOKEN_READ, &q->read_tokens);
		spin_unlock(&q->lock);
		sock_put(child);
	}
	sock_put(child);
	return found ? 0 : -ENOENT;
}

/*
 * It is claimed once it is parked, so nothing has to be undone, and no sweep sees
 * it earlier. By then the connection may be accepted or closed already.
 */
static int exs_token_park(struct exs_queue *q, struct exs_op *op)
{
	struct sock *child = op->conn.child;
	int err;

	if (READ_ONCE(q->claimed) >= EXS_CLAIMS_MAX)
		return -EAGAIN;
	sock_hold(child);
	err = exs_sock_park(op->sk, child);
	if (err) {
		sock_put(child);
		return err;
	}
	spin_lock(&q->lock);
	exs_token_move(q, op, EXS_TOKEN_CLAIMED, &q->claimed_tokens);
	spin_unlock(&q->lock);
	return 0;
}

/*
 * sock_orphan() clears sk_socket under this lock before the socket and its file
 * go away.
 */
static struct file *exs_listener_file(struct sock *sk)
{
	struct file *file = NULL;

	read_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_socket && sk->sk_socket->file)
		file = get_file_active(&sk->sk_socket->file);
	read_unlock_bh(&sk->sk_callback_lock);
	return file;
}

static bool exs_fd_is_sock(int fd, const struct sock *sk)
{
	int err;
	struct socket *sock = sockfd_lookup(fd, &err);
	bool is;

	if (!sock)
		return false;
	is = sock->sk == sk;
	sockfd_put(sock);
	return is;
}

/* Another thread may take the last one yet; then accept4(2) fails. */
static int exs_fd_available(void)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	put_unused_fd(fd);
	return 0;
}

/*
 * A descriptor of the listener, at the program's own number or a new one, and what the
 * program must do with it. The program gets the number before the descriptor exists, so
 * that a claim that fails with EFAULT leaves none.
 */
static int exs_claim_listener(struct exs_op *op, struct exs_ioc_claim *c,
			      struct exs_ioc_claim __user *arg)
{
	struct file *file = exs_listener_file(op->sk);
	int ret;

	if (!file)
		return -ECONNABORTED;
	c->flags = exs_token_is_offer(op) ? EXS_CLAIM_PLAIN : 0;
	/* Not held here: a close that comes now must be seen when the connection is parked. */
	if (exs_fd_is_sock(c->fd, op->sk)) {
		fput(file);
		return exs_ioc_put(arg, c, sizeof(*c));
	}
	c->fd = -1;
	c->flags |= EXS_CLAIM_CLOSE;
	ret = exs_ioc_put(arg, c, sizeof(*c)) ?:
	      exs_receive_fd(file, &arg->fd, O_CLOEXEC);
	fput(file);
	return min(ret, 0);
}

/*
 * If exs_claim_listener() installed a descriptor, the program closes it, also when the claim
 * fails. We do not: its number may be another file's by now.
 */
static int exs_token_claim(struct exs_queue *q, struct exs_op *op,
			   struct exs_ioc_claim *c, void __user *arg)
{
	int err = exs_claim_listener(op, c, arg) ?: exs_fd_available();

	if (err || exs_token_is_offer(op))
		return err;
	return exs_token_park(q, op);
}

/*
 * The token becomes an operation again. A thread that cancelled the operation just before it
 * became a token may still have it on a list of its own. So EXS_OP_CANCEL stays set: no other
 * thread puts it on another list, and it ends when it is issued and would have to wait.
 * Return: 0; -ENOENT: it is no token any more; -EBUSY: its entry was not read.
 */
static int exs_token_readmit(struct exs_queue *q, struct exs_op *op,
			     struct exs_mm_link *link)
{
	int err = 0;

	spin_lock(&q->lock);
	exs_queue_unread(q);
	if (op->conn.token_state == EXS_TOKEN_NONE)
		err = -ENOENT;
	else if (op->conn.token_state == EXS_TOKEN_UNREAD)
		err = -EBUSY;
	if (!err) {
		exs_token_leave(op);
		atomic_andnot(EXS_OP_ISSUED, &op->state);
		exs_queue_readmit(q, op, link);
	}
	spin_unlock(&q->lock);
	return err;
}

/* There is no connection any more: the operation waits for the next. */
static int exs_offer_again(struct exs_queue *q, struct exs_op *op)
{
	struct exs_mm_link *link = exs_mm_link(q);
	struct file *file;
	int err;

	if (IS_ERR(link))
		return PTR_ERR(link);
	file = exs_listener_file(op->sk);
	if (!file)
		return -ENOENT;
	err = exs_token_readmit(q, op, link);
	if (!err) {
		exs_count(q->xn, accepts_again, 1);
		op->def->offer_again(op, sock_from_file(file));
	}
	fput(file);
	return err;
}

/*
 * Its event is in the ring once more, in the slot that the token had. If it was claimed, it had
 * none meanwhile, and operations may have taken all slots.
 */
static int exs_token_put_back(struct exs_queue *q, struct exs_op *op)
{
	struct exs_cqe cqe = exs_op_cqe(op, 0, 0, op->conn.token);
	int err = 0;

	spin_lock(&q->lock);
	exs_queue_catch_up(q);
	if (op->conn.token_state == EXS_TOKEN_UNREAD)
		err = -EBUSY;
	else if (op->conn.token_state != EXS_TOKEN_READ)
		err = -ENOENT;
	else if (exs_slots_overfull(&q->slots))
		err = -EAGAIN;
	if (!err) {
		exs_token_leave(op);
		exs_queue_post_token(q, op, &cqe);
	}
	spin_unlock(&q->lock);
	if (!err)
		exs_queue_notify(q);
	return err;
}

static int exs_claim(struct exs_queue *q, struct exs_op *op,
		     struct exs_ioc_claim *c, void __user *arg)
{
	int err;

	lockdep_assert_held(&q->claim_mutex);
	err = exs_token_unclaim(q, op);
	if (err || c->flags == EXS_CLAIM_UNDO)
		return err;
	if (c->flags == EXS_CLAIM_DROP) {
		exs_token_abort(q, op);
		return 0;
	}
	if (c->flags == EXS_CLAIM_BACK)
		return exs_token_put_back(q, op);
	if (c->flags == EXS_CLAIM_AGAIN)
		return exs_token_is_offer(op) ? exs_offer_again(q, op) : -EINVAL;
	err = exs_token_claim(q, op, c, arg);
	if (err == -ECONNABORTED)
		exs_token_abort(q, op);
	return err;
}

/* At most one flag. */
static bool exs_claim_flags_ok(u32 flags)
{
	const u32 all = EXS_CLAIM_UNDO | EXS_CLAIM_DROP | EXS_CLAIM_AGAIN | EXS_CLAIM_BACK;

	return !(flags & ~all) && !(flags & (flags - 1));
}

int exs_queue_claim(struct exs_queue *q, void __user *arg)
{
	struct exs_ioc_claim c;
	struct exs_op *op;
	int err = exs_ioc_get(&c, sizeof(c), EXS_CLAIM_SIZE_VER0, arg);

	if (err)
		return err;
	if (!exs_claim_flags_ok(c.flags))
		return -EINVAL;
	exs_tokens_sweep(q);
	op = exs_token_find(q, c.token);
	if (!op)
		return -ENOENT;
	err = mutex_lock_interruptible(&q->claim_mutex);
	if (!err) {
		err = exs_claim(q, op, &c, arg);
		mutex_unlock(&q->claim_mutex);
	}
	exs_op_put(op);
	return err;
}
