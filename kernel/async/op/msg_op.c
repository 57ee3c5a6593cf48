// SPDX-License-Identifier: GPL-2.0
/*
 * Sends and receives whose memory is in several pieces: what a struct exs_sqe_msg names
 * becomes a vector (vector.h). The rest is as in data_op.c.
 *
 * The unregistered pieces of a send are copied together if that is cheaper than to pin them
 * (typically a header before registered memory).
 *
 * Pieces of files are not memory yet: if there are any, the vector has only the
 * pieces between them, and a feed combines both (feed.h).
 *
 * The program's array is copied before anything is believed, and read once.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "../file/feed.h"
#include "../memory/range.h"
#include "../memory/vector.h"
#include "op.h"

/* The needs of all pieces together. @file_len is no more than EXS_OP_LEN_MAX. */
struct exs_msg_need {
	u64 len;
	u64 unregistered;
	u64 file_len;
	size_t bvecs;
	bool files;
};

static int exs_msg_sum(struct exs_msg_need *need, const struct exs_sqe_iovec *iov, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		u64 len = iov[i].len;

		if (iov[i].flags == EXS_IOV_FILE) {
			need->file_len = min(need->file_len + min(len, EXS_OP_LEN_MAX),
					     EXS_OP_LEN_MAX);
			need->files = true;
			continue;
		}
		if (iov[i].flags || len > EXS_OP_LEN_MAX - need->len)
			return -EINVAL;
		need->len += len;
		need->bvecs += PFN_UP(len) + 1;		/* wherever it begins */
		if (iov[i].region == EXS_REGION_NONE)
			need->unregistered += len;
	}
	return 0;
}

/* Copy the piece to @copy, and describe the copy. */
static int exs_msg_copy(struct exs_vector *v, const struct exs_sqe_iovec *piece, void *copy)
{
	if (copy_from_user(copy, u64_to_user_ptr(piece->addr), piece->len))
		return -EFAULT;
	v->nbvecs += exs_copy_bvecs(v->bvec + v->nbvecs, copy, piece->len);
	return 0;
}

/* A piece of memory. @copy: where it goes if it is not registered, or NULL. */
static int exs_msg_memory(struct exs_op *op, const struct exs_sqe_iovec *piece,
			  u32 access, void **copy)
{
	struct exs_vector *v = op->data.vector;
	unsigned int before = v->nbvecs;
	int err;

	if (*copy && piece->region == EXS_REGION_NONE) {
		err = exs_msg_copy(v, piece, *copy);
		*copy += piece->len;
	} else {
		err = exs_vector_add(v, piece, access);
	}
	if (!err && op->data.feed)
		exs_feed_add_memory(op->data.feed, piece->len, v->nbvecs - before);
	return err;
}

/* @copy: where unregistered pieces go, or NULL. */
static int exs_msg_fill(struct exs_op *op, const struct exs_sqe_iovec *iov,
			u32 count, u32 access, void *copy)
{
	int err = 0;
	u32 i;

	for (i = 0; i < count && !err; i++) {
		if (iov[i].flags & EXS_IOV_FILE)
			err = exs_feed_add_file(op->data.feed, &iov[i]);
		else
			err = exs_msg_memory(op, &iov[i], access, &copy);
		cond_resched();
	}
	return err;
}

static int exs_msg_feed(struct exs_op *op, u32 count, const struct exs_msg_need *need)
{
	struct exs_feed *f;

	if (!need->files)
		return 0;
	f = exs_feed_new(op, count, need->len + need->file_len);
	if (IS_ERR(f))
		return PTR_ERR(f);
	op->data.feed = f;
	f->bvec = op->data.vector->bvec;
	return 0;
}

/* With a feed the bytes come later: until then only the length is used. */
static void exs_msg_iter(struct exs_op *op, unsigned int direction, const struct exs_msg_need *need)
{
	struct exs_vector *v = op->data.vector;
	u64 len = min(need->len + need->file_len, EXS_OP_LEN_MAX);

	iov_iter_bvec(&op->data.iter, direction, v->bvec,
		      op->data.feed ? 0 : v->nbvecs, len);
}

static int exs_msg_build(struct exs_op *op, const struct exs_sqe_iovec *iov, u32 count, u32 access)
{
	unsigned int direction = access == EXS_MREG_WRITE ? ITER_DEST : ITER_SOURCE;
	struct exs_msg_need need = { };
	struct exs_vector *v;
	void *copy = NULL;
	int err;

	err = exs_msg_sum(&need, iov, count);
	if (err)
		return err;
	if (need.files && direction == ITER_DEST)
		return -EINVAL;
	v = exs_vector_alloc(need.bvecs, count);
	if (IS_ERR(v))
		return PTR_ERR(v);
	op->data.vector = v;
	err = exs_msg_feed(op, count, &need);
	if (!err && need.unregistered && direction == ITER_SOURCE) {
		copy = exs_copy_alloc(op, need.unregistered);
		err = PTR_ERR_OR_ZERO(copy);
	}
	err = err ?: exs_msg_fill(op, iov, count, access, copy);
	if (err)
		exs_data_cleanup(op);
	else
		exs_msg_iter(op, direction, &need);
	return err;
}

static int exs_msg_get(struct exs_sqe_msg *msg, const struct exs_sqe *sqe)
{
	int err;

	if (sqe->len < EXS_SQE_MSG_SIZE_VER0 || sqe->region != EXS_REGION_NONE)
		return -EINVAL;
	if (sqe->len > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(msg, sizeof(*msg), u64_to_user_ptr(sqe->addr),
				    sqe->len);
	if (err)
		return err;
	if (msg->flags & ~EXS_SQE_MSG_SHUT_WR)
		return -EINVAL;
	return msg->count > EXS_IOV_MAX ? -EMSGSIZE : 0;
}

/*
 * EXS_SQE_MSG_SHUT_WR. On an AF_EXS socket the library calls shutdown(2) itself; on others it
 * cannot, as the socket gets the bytes of files later.
 */
static int exs_msg_shut(struct exs_op *op)
{
	if (!op->data.feed || exs_sk_is_exs(op->sk)) {
		exs_data_cleanup(op);
		return -EINVAL;
	}
	op->data.feed->shut = true;
	return 0;
}

static int exs_msg_prep(struct exs_op *op, const struct exs_sqe *sqe, u32 access)
{
	struct exs_sqe_iovec *iov;
	struct exs_sqe_msg msg;
	int err = exs_msg_get(&msg, sqe);

	if (err)
		return err;
	iov = vmemdup_user(u64_to_user_ptr(msg.iov), array_size(msg.count, sizeof(*iov)));
	if (IS_ERR(iov))
		return PTR_ERR(iov);
	err = exs_msg_build(op, iov, msg.count, access);
	kvfree(iov);
	if (!err && msg.flags & EXS_SQE_MSG_SHUT_WR)
		err = exs_msg_shut(op);
	return err;
}

int exs_sendmsg_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return exs_msg_prep(op, sqe, EXS_MREG_READ);
}

int exs_recvmsg_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	return exs_msg_prep(op, sqe, EXS_MREG_WRITE);
}
