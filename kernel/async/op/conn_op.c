// SPDX-License-Identifier: GPL-2.0
/*
 * Connect, accept, shutdown and close: operations that wait at the socket.
 *
 * The first three supply the event, the program makes the system call, which
 * security modules see. connect: arms the socket; connect(2), called next, does not
 * block, and the operation gets its result. accept: takes the next connection from
 * the listener, and becomes a token (token.c). shutdown: waits for the FIN that
 * shutdown(2), called next, sends: it ends when that is delivered.
 *
 * close: takes the descriptor out of the caller's table, and waits for the
 * consequences: the socket's last file goes, its other operations end, its
 * connection delivers or is reset. Cancelling a close or a shutdown ends only
 * the waiting.
 */
#include <linux/fdtable.h>
#include <linux/workqueue.h>

#include "op.h"

/* Drops connections that were accepted for a queue that had died. */
static struct workqueue_struct *exs_drop_wq;

static struct exs_op *exs_waiter_op(struct exs_waiter *w)
{
	return container_of(w, struct exs_op, conn.waiter);
}

/* An error of 1: connect(2) reports the error itself, so there is no event. */
static void exs_connect_done(struct exs_waiter *w, int err, struct sock *child)
{
	struct exs_op *op = exs_waiter_op(w);

	if (err == 1)
		exs_op_discard(op);
	else
		exs_op_complete(op, err, 0, 0);
}

static void exs_drop_work(struct work_struct *work)
{
	struct exs_op *op = container_of(work, struct exs_op, conn.work);

	exs_sock_drop(op->conn.child);
	xa_erase(&op->queue->tokens, op->conn.token);
	exs_op_put(op);
}

/* The listener may be locked here, so the connection is dropped elsewhere. */
static void exs_accept_done(struct exs_waiter *w, int err, struct sock *child)
{
	struct exs_op *op = exs_waiter_op(w);

	if (err) {
		exs_op_complete(op, err, 0, 0);
		return;
	}
	op->conn.child = child;
	if (!exs_op_complete(op, 0, 0, op->conn.token)) {
		INIT_WORK(&op->conn.work, exs_drop_work);
		queue_work(exs_drop_wq, &op->conn.work);
	}
}

int exs_connect_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	INIT_LIST_HEAD(&op->conn.waiter.node);
	op->conn.waiter.fn = exs_connect_done;
	return 0;
}

/* The number is taken now, so that completion cannot fail. */
int exs_accept_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	struct exs_queue *q = op->queue;
	int err;

	INIT_LIST_HEAD(&op->conn.waiter.node);
	op->conn.waiter.fn = exs_accept_done;
	err = xa_alloc_cyclic(&q->tokens, &op->conn.token, op,
			      XA_LIMIT(1, U32_MAX), &q->next_token, GFP_KERNEL);
	return min(err, 0);
}

void exs_no_cleanup(struct exs_op *op)
{
}

/* With a connection it becomes a token and keeps the number. */
void exs_accept_cleanup(struct exs_op *op)
{
	if (!op->conn.child)
		xa_erase(&op->queue->tokens, op->conn.token);
}

long exs_connect_issue(struct exs_op *op, struct socket *sock)
{
	return exs_sock_arm_connect(op->sk, &op->conn.waiter) ?: -EIOCBQUEUED;
}

long exs_accept_issue(struct exs_op *op, struct socket *sock)
{
	return exs_sock_arm_accept(op->sk, &op->conn.waiter) ?: -EIOCBQUEUED;
}

void exs_conn_op_cancel(struct exs_op *op)
{
	if (exs_sock_disarm(op->sk, &op->conn.waiter))
		exs_op_complete(op, -ECANCELED, 0, 0);
}

bool exs_connect_withdraw(struct exs_op *op)
{
	bool found = exs_sock_disarm(op->sk, &op->conn.waiter);

	if (found)
		exs_op_discard(op);
	return found;
}

static void exs_end_done(struct exs_waiter *w, int err, struct sock *child)
{
	exs_op_complete(exs_waiter_op(w), err, 0, 0);
}

int exs_end_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	op->conn.waiter.fn = exs_end_done;
	return 0;
}

long exs_shutdown_issue(struct exs_op *op, struct socket *sock)
{
	return exs_sock_arm_shutdown(op->sk, &op->conn.waiter) ?: -EIOCBQUEUED;
}

bool exs_shutdown_withdraw(struct exs_op *op)
{
	bool found = exs_sock_withdraw_shutdown(op->sk, &op->conn.waiter);

	if (found)
		exs_op_discard(op);
	return found;
}

/*
 * The submission holds the socket's file, so the close can complete only after
 * it has returned. EBADF: another thread has closed the descriptor.
 */
long exs_close_issue(struct exs_op *op, struct socket *sock)
{
	int err;

	exs_sock_arm_close(op->sk, &op->conn.waiter);
	err = close_fd(op->fd);
	if (!err)
		return -EIOCBQUEUED;
	exs_sock_disarm_end(&op->conn.waiter);
	return err;
}

void exs_end_cancel(struct exs_op *op)
{
	if (exs_sock_disarm_end(&op->conn.waiter))
		exs_op_complete(op, -ECANCELED, 0, 0);
}

int exs_conn_ops_init(void)
{
	exs_drop_wq = alloc_workqueue("exs_drop", WQ_UNBOUND, 0);
	return exs_drop_wq ? 0 : -ENOMEM;
}

void exs_conn_ops_exit(void)
{
	destroy_workqueue(exs_drop_wq);
}
