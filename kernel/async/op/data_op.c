// SPDX-License-Identifier: GPL-2.0
/*
 * Send and receive: sendmsg() and recvmsg() with a struct exs_call over the
 * pages of a region, entered through the socket layer, so that security modules
 * see them.
 *
 * Registered memory: the region's pages, by reference. Unregistered: a small send
 * is copied, as pinning would cost more; anything else pins its memory for the
 * one operation.
 */
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../core/stats.h"
#include "../file/feed.h"
#include "../memory/range.h"
#include "../memory/region.h"
#include "../memory/vector.h"
#include "op.h"

/* A queue may have EXS_COPY_TOTAL bytes of copies in flight. */
static bool exs_copy_charge(struct exs_queue *q, u32 len)
{
	if (atomic_long_add_return(len, &q->copied) <= EXS_COPY_TOTAL)
		return true;
	atomic_long_sub(len, &q->copied);
	return false;
}

unsigned int exs_copy_bvecs(struct bio_vec *bvec, void *buf, u32 len)
{
	unsigned int n, i;

	for (i = 0; len; i++, buf += n, len -= n) {
		n = min_t(u32, len, PAGE_SIZE - offset_in_page(buf));
		bvec_set_page(&bvec[i], virt_to_page(buf), n, offset_in_page(buf));
	}
	return i;
}

void *exs_copy_alloc(struct exs_op *op, u64 len)
{
	struct exs_op_data *d = &op->data;

	if (len > EXS_COPY_MAX || !exs_copy_charge(op->queue, len))
		return NULL;
	d->copy = kmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!d->copy) {
		atomic_long_sub(len, &op->queue->copied);
		return ERR_PTR(-ENOMEM);
	}
	d->copy_len = len;
	exs_count(op->queue->xn, copied_sends, 1);
	return d->copy;
}

static int exs_prep_copy(struct exs_op *op, const struct exs_sqe *sqe)
{
	struct exs_op_data *d = &op->data;
	unsigned int n;

	if (copy_from_user(d->copy, u64_to_user_ptr(sqe->addr), sqe->len)) {
		exs_data_cleanup(op);
		return -EFAULT;
	}
	n = exs_copy_bvecs(d->bvec, d->copy, sqe->len);
	iov_iter_bvec(&d->iter, ITER_SOURCE, d->bvec, n, sqe->len);
	return 0;
}

static int exs_prep_in(struct exs_op *op, struct exs_region *r,
		       const struct exs_sqe *sqe, u32 access)
{
	int err;

	if (IS_ERR(r))
		return PTR_ERR(r);
	err = exs_region_use(r, sqe->addr, sqe->len, access, &op->data.iter);
	if (err)
		exs_region_put(r);
	else
		op->data.region = r;
	return err;
}

static int exs_prep_oneshot(struct exs_op *op, const struct exs_sqe *sqe, u32 access)
{
	struct exs_region *r = exs_region_oneshot(sqe->addr, sqe->len, access);

	if (!IS_ERR(r))
		exs_count(op->queue->xn, oneshot_regions, 1);
	return exs_prep_in(op, r, sqe, access);
}

static int exs_prep_unregistered(struct exs_op *op, const struct exs_sqe *sqe,
				 u32 access)
{
	void *copy = NULL;

	if (!sqe->len) {
		iov_iter_bvec(&op->data.iter, access == EXS_MREG_WRITE ?
			      ITER_DEST : ITER_SOURCE, NULL, 0, 0);
		return 0;
	}
	if (access == EXS_MREG_READ)
		copy = exs_copy_alloc(op, sqe->len);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	return copy ? exs_prep_copy(op, sqe) : exs_prep_oneshot(op, sqe, access);
}

static int exs_data_prep(struct exs_op *op, const struct exs_sqe *sqe, u32 access)
{
	if (sqe->len > EXS_OP_LEN_MAX)
		return -EINVAL;
	if (sqe->region == EXS_REGION_NONE)
		return exs_prep_unregistered(op, sqe, access);
	return exs_prep_in(op, exs_region_get(sqe->region), sqe, access);
}

exs_hot
int exs_send_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return exs_data_prep(op, sqe, EXS_MREG_READ);
}

exs_hot
int exs_recv_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return exs_data_prep(op, sqe, EXS_MREG_WRITE);
}

exs_hot
void exs_data_cleanup(struct exs_op *op)
{
	struct exs_op_data *d = &op->data;

	if (d->region)
		exs_region_put(d->region);
	if (d->feed)
		exs_feed_put(d->feed);
	if (d->vector)
		exs_vector_free(d->vector);
	if (d->copy) {
		atomic_long_sub(d->copy_len, &op->queue->copied);
		kfree(d->copy);
	}
}

exs_hot
static void exs_data_done(struct exs_call *call, long res)
{
	struct exs_op *op = container_of(call, struct exs_op, data.call);

	if (op->data.feed)
		exs_feed_parts(op->data.feed, op->parts);
	exs_op_complete(op, res, call->msg_flags & (MSG_TRUNC | MSG_EOR), 0);
}

static int exs_data_feed(struct exs_call *call, struct exs_conn *conn)
{
	struct exs_op *op = container_of(call, struct exs_op, data.call);

	return exs_feed_begin(op->data.feed, conn, call);
}

/*
 * Submission never blocks: a plain call would wait for a socket that is still
 * connecting; here it is "not connected". EAGAIN means that a queue is full.
 */
static long exs_data_result(const struct exs_op *op, long res)
{
	if (op->data.call.taken)
		return -EIOCBQUEUED;
	return res == -EAGAIN ? -ENOTCONN : res;
}

exs_hot
static void exs_data_msg(struct exs_op *op, struct msghdr *msg)
{
	struct exs_call *call = &op->data.call;

	exs_call_init(call, exs_data_done);
	call->room = &op->data.xfer;
	call->more = op->more;
	if (op->data.feed)
		call->feed = exs_data_feed;
	*msg = (struct msghdr) {
		.msg_iter = op->data.iter,
		.msg_ubuf = &call->ubuf,
		.msg_flags = op->msg_flags | MSG_DONTWAIT,
	};
}

/* A result now, and not an event, would have raised SIGPIPE. */
exs_hot
long exs_send_issue(struct exs_op *op, struct socket *sock)
{
	struct msghdr msg;
	long res;

	exs_data_msg(op, &msg);
	msg.msg_flags |= MSG_NOSIGNAL;
	res = exs_data_result(op, sock_sendmsg(sock, &msg));
	if (res >= 0)
		op->msg_flags = 0;
	return res;
}

exs_hot
long exs_recv_issue(struct exs_op *op, struct socket *sock)
{
	struct msghdr msg;
	long res;

	exs_data_msg(op, &msg);
	res = exs_data_result(op, sock_recvmsg(sock, &msg, msg.msg_flags));
	if (res >= 0)
		op->msg_flags = msg.msg_flags & (MSG_TRUNC | MSG_EOR);
	return res;
}

void exs_data_cancel(struct exs_op *op)
{
	exs_sock_cancel(op->sk, &op->data.call);
}
