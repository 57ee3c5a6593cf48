// SPDX-License-Identifier: GPL-2.0
/*
 * Reads of Linux AIO: io_submit(2) with a read of a connected socket that may
 * wait for ever. Instead of waiting there it becomes a receive like that of an
 * operation, into the program's own pages, and completes when that does. A vector
 * has no more than UIO_MAXIOV pieces, so that these need no other bound.
 *
 * A kiocb that waits holds its file and its context, and a task that ends the
 * context (io_destroy(2), exit, exec) waits for it, uninterruptibly. So its end
 * must be certain: AIO requests it by a cancel function, which may not sleep, so
 * a work item follows. It cancels the receive. That may need an answer of the
 * peer, but takes no longer than net.exs.stall_timeout (exs_run_revokes()).
 *
 * io_uring has no such function for a read that was queued, so its reads are
 * never queued here: it waits for readiness instead. Nor are writes: the socket
 * layer does not let sendmsg() queue them. For io_uring's zero-copy sends see
 * zerocopy.c.
 *
 * Issuing and cancelling may meet, as in inflight.h: two bits decide which of them
 * starts the work. kiocb_set_cancel_fn() comes before the receive is there to be
 * completed, which may happen at once. From then on the only outcome is the
 * kiocb's completion. AIO calls the cancel function only before it, under a lock
 * that the completion takes, too.
 */
#include <linux/aio.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "../compat/compat.h"
#include "../core/call.h"
#include "../core/sock.h"
#include "../core/stats.h"
#include "aio.h"
#include "memory/vector.h"

#define EXS_AIO_ISSUED	1
#define EXS_AIO_CANCEL	2

/**
 * struct exs_aio - a read of AIO that waits
 * @ref: the receive has one, and the work while it is queued or runs
 * @state: EXS_AIO_*
 * @call: what the socket completes
 * @user: what AIO wants completed
 * @sk: reference
 * @conn: its connection, a reference: a closed socket drops its own
 * @vector: the program's pages
 * @iter: the same
 * @work: cancels the receive
 */
struct exs_aio {
	refcount_t ref;
	atomic_t state;
	struct exs_call call;
	struct kiocb *user;
	struct sock *sk;
	struct exs_conn *conn;
	struct exs_vector *vector;
	struct iov_iter iter;
	struct work_struct work;
};

static struct workqueue_struct *exs_aio_wq;

static void exs_aio_put(struct exs_aio *a)
{
	if (!refcount_dec_and_test(&a->ref))
		return;
	exs_live(a->conn->xn, aio_reads, -1);
	exs_conn_put(a->conn);
	sock_put(a->sk);
	kfree(a);
}

/* The memory is released before the event is posted. */
static void exs_aio_done(struct exs_call *call, long res)
{
	struct exs_aio *a = container_of(call, struct exs_aio, call);

	exs_vector_free(a->vector);
	a->user->ki_complete(a->user, res);
	exs_aio_put(a);
}

/* Once at most, any context. The work gets a reference. */
static void exs_aio_queue(struct exs_aio *a)
{
	refcount_inc(&a->ref);
	queue_work(exs_aio_wq, &a->work);
}

static void exs_aio_work(struct work_struct *work)
{
	struct exs_aio *a = container_of(work, struct exs_aio, work);

	exs_conn_cancel(a->conn, &a->call);
	exs_aio_put(a);
}

/* Under AIO's lock, interrupts off. @iocb is not completed yet. */
static int exs_aio_cancel(struct kiocb *iocb)
{
	struct exs_aio *a = iocb->private;

	exs_count(a->conn->xn, aio_cancelled, 1);
	if (atomic_fetch_or(EXS_AIO_CANCEL, &a->state) & EXS_AIO_ISSUED)
		exs_aio_queue(a);
	return 0;
}

static struct exs_aio *exs_aio_alloc(struct exs_conn *conn, struct sock *sk,
				     struct kiocb *iocb)
{
	struct exs_aio *a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);

	if (!a)
		return NULL;
	refcount_set(&a->ref, 1);
	INIT_WORK(&a->work, exs_aio_work);
	exs_call_init(&a->call, exs_aio_done);
	a->user = iocb;
	a->sk = sk;
	sock_hold(sk);
	a->conn = conn;
	exs_conn_get(conn);
	exs_live(conn->xn, aio_reads, 1);
	return a;
}

/* A receive that does not start ends at once. */
static void exs_aio_start(struct exs_aio *a, size_t len)
{
	struct msghdr msg = {
		.msg_iter = a->iter,
		.msg_ubuf = &a->call.ubuf,
	};
	int err;

	refcount_inc(&a->ref);
	err = exs_conn_recvmsg(a->conn, a->sk, &msg, len, MSG_DONTWAIT);
	if (!a->call.taken)
		exs_aio_done(&a->call, err);
	else if (atomic_fetch_or(EXS_AIO_ISSUED, &a->state) & EXS_AIO_CANCEL)
		exs_aio_queue(a);
	exs_aio_put(a);
}

int exs_aio_read(struct exs_conn *conn, struct sock *sk, struct msghdr *msg, size_t len)
{
	struct kiocb *iocb = exs_msg_aio(msg);
	struct exs_aio *a;

	if (!user_backed_iter(&msg->msg_iter) || !len)
		return 0;
	a = exs_aio_alloc(conn, sk, iocb);
	if (!a)
		return 0;
	a->vector = exs_vector_of_iter(msg->msg_iter, EXS_MREG_WRITE, &a->iter);
	if (IS_ERR(a->vector)) {
		exs_count(conn->xn, aio_unpinned, 1);
		exs_aio_put(a);
		return 0;
	}
	exs_count(conn->xn, aio_reads, 1);
	iocb->private = a;
	kiocb_set_cancel_fn(iocb, exs_aio_cancel);
	exs_aio_start(a, len);
	return -EIOCBQUEUED;
}

int exs_aio_init(void)
{
	exs_aio_wq = alloc_workqueue("exs_aio", WQ_UNBOUND, 0);
	return exs_aio_wq ? 0 : -ENOMEM;
}

void exs_aio_exit(void)
{
	destroy_workqueue(exs_aio_wq);
}
