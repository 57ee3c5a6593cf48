// SPDX-License-Identifier: GPL-2.0
/*
 * Vectors: the pages of all pieces become one array, so that sockets see one
 * piece of memory.
 *
 * Each piece has a region of its own: registered, or pinned for the operation.
 * The unregistered pieces of a send are copied together instead if that is cheaper
 * (typically a header before registered memory).
 *
 * Pieces of files are not memory yet: if there are any, the array has only the
 * pieces between them, and a feed combines both (feed.h).
 *
 * The program's vector is copied before anything is believed, and read once.
 *
 * Calls that are not operations (Linux AIO, io_uring) have an iterator already:
 * exs_vector_of_iter().
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "../../compat/compat.h"
#include "../../core/stats.h"
#include "../file/feed.h"
#include "../op/op.h"
#include "range.h"
#include "region.h"
#include "vector.h"

/**
 * struct exs_vector - the memory of one operation
 * @bvec: the pages, in order
 * @nbvecs: how many are there
 * @kept: the vector has a reference on each page
 * @charged: size of @bvec in pages
 * @user: charged with them: a vector may name the same memory many times, so
 *	the limits of registered and of pinned memory do not bound this
 * @nregions: how many are there
 * @regions: of the pieces that are not copied; references
 */
struct exs_vector {
	struct bio_vec *bvec;
	unsigned int nbvecs;
	bool kept;
	long charged;
	struct exs_user *user;
	u32 nregions;
	struct exs_region *regions[];
};

/* The needs of all pieces together. @file_len is no more than EXS_OP_LEN_MAX. */
struct exs_vector_need {
	u64 len;
	u64 unregistered;
	u64 file_len;
	size_t bvecs;
	bool files;
};

static int exs_vector_sum(struct exs_vector_need *need,
			  const struct exs_sqe_iovec *iov, u32 count)
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

static struct exs_vector *exs_vector_alloc(size_t bvecs, u32 count)
{
	struct exs_vector *v;
	int err;

	v = kvzalloc(struct_size(v, regions, count), GFP_KERNEL_ACCOUNT);
	if (!v)
		return ERR_PTR(-ENOMEM);
	v->charged = PFN_UP(bvecs * sizeof(*v->bvec));
	err = exs_limit_charge(EXS_LIMIT_PAGES, v->charged, &v->user);
	if (err)
		goto out;
	err = -ENOMEM;
	v->bvec = kvmalloc_array(bvecs, sizeof(*v->bvec), GFP_KERNEL_ACCOUNT);
	if (v->bvec)
		return v;
	exs_limit_uncharge(EXS_LIMIT_PAGES, v->charged, v->user);
out:
	kvfree(v);
	return ERR_PTR(err);
}

bool exs_vector_keep(struct exs_vector *v)
{
	unsigned int i;

	for (i = 0; i < v->nbvecs; i++)
		if (!sendpage_ok(v->bvec[i].bv_page))
			return false;
	for (i = 0; i < v->nbvecs; i++)
		get_page(v->bvec[i].bv_page);
	v->kept = true;
	return true;
}

void exs_vector_free(struct exs_vector *v)
{
	while (v->kept && v->nbvecs)
		put_page(v->bvec[--v->nbvecs].bv_page);
	while (v->nregions)
		exs_region_put(v->regions[--v->nregions]);
	exs_limit_uncharge(EXS_LIMIT_PAGES, v->charged, v->user);
	kvfree(v->bvec);
	kvfree(v);
}

/* The pages of @iter, an ITER_BVEC. */
static void exs_vector_append(struct exs_vector *v, const struct iov_iter *iter)
{
	const struct bio_vec *bv = iter->bvec;
	size_t n, left = iter->count, skip = iter->iov_offset;

	for (; left; left -= n, skip = 0, bv++) {
		n = min_t(size_t, left, bv->bv_len - skip);
		if (!n)
			continue;
		bvec_set_page(&v->bvec[v->nbvecs++], bv->bv_page, n,
			      bv->bv_offset + skip);
	}
}

static struct exs_region *exs_vector_region(const struct exs_sqe_iovec *piece,
					    u32 access)
{
	struct exs_region *r;

	if (piece->region != EXS_REGION_NONE)
		return exs_region_get(piece->region);
	r = exs_region_oneshot(piece->addr, piece->len, access);
	if (!IS_ERR(r))
		exs_count(r->xn, oneshot_regions, 1);
	return r;
}

static int exs_vector_add(struct exs_vector *v, const struct exs_sqe_iovec *piece,
			  u32 access)
{
	struct exs_region *r;
	struct iov_iter iter;
	int err;

	if (piece->region == EXS_REGION_NONE && !piece->len)
		return 0;
	r = exs_vector_region(piece, access);
	if (IS_ERR(r))
		return PTR_ERR(r);
	v->regions[v->nregions++] = r;
	err = exs_region_use(r, piece->addr, piece->len, access, &iter);
	if (!err)
		exs_vector_append(v, &iter);
	return err;
}

/* Copy the piece to @copy, and describe the copy. */
static int exs_vector_copy(struct exs_vector *v, const struct exs_sqe_iovec *piece,
			   void *copy)
{
	if (copy_from_user(copy, u64_to_user_ptr(piece->addr), piece->len))
		return -EFAULT;
	v->nbvecs += exs_copy_bvecs(v->bvec + v->nbvecs, copy, piece->len);
	return 0;
}

/* A piece of memory. @copy: where it goes if it is not registered, or NULL. */
static int exs_vector_memory(struct exs_op *op, const struct exs_sqe_iovec *piece,
			     u32 access, void **copy)
{
	struct exs_vector *v = op->data.vector;
	unsigned int before = v->nbvecs;
	int err;

	if (*copy && piece->region == EXS_REGION_NONE) {
		err = exs_vector_copy(v, piece, *copy);
		*copy += piece->len;
	} else {
		err = exs_vector_add(v, piece, access);
	}
	if (!err && op->data.feed)
		exs_feed_add_memory(op->data.feed, piece->len, v->nbvecs - before);
	return err;
}

/* @copy: where unregistered pieces go, or NULL. */
static int exs_vector_fill(struct exs_op *op, const struct exs_sqe_iovec *iov,
			   u32 count, u32 access, void *copy)
{
	int err = 0;
	u32 i;

	for (i = 0; i < count && !err; i++) {
		if (iov[i].flags & EXS_IOV_FILE)
			err = exs_feed_add_file(op->data.feed, &iov[i]);
		else
			err = exs_vector_memory(op, &iov[i], access, &copy);
		cond_resched();
	}
	return err;
}

static int exs_vector_feed(struct exs_op *op, u32 count,
			   const struct exs_vector_need *need)
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
static void exs_vector_iter(struct exs_op *op, unsigned int direction,
			    const struct exs_vector_need *need)
{
	struct exs_vector *v = op->data.vector;
	u64 len = min(need->len + need->file_len, EXS_OP_LEN_MAX);

	iov_iter_bvec(&op->data.iter, direction, v->bvec,
		      op->data.feed ? 0 : v->nbvecs, len);
}

static int exs_vector_build(struct exs_op *op, const struct exs_sqe_iovec *iov,
			    u32 count, u32 access)
{
	unsigned int direction = access == EXS_MREG_WRITE ? ITER_DEST : ITER_SOURCE;
	struct exs_vector_need need = { };
	struct exs_vector *v;
	void *copy = NULL;
	int err;

	err = exs_vector_sum(&need, iov, count);
	if (err)
		return err;
	if (need.files && direction == ITER_DEST)
		return -EINVAL;
	v = exs_vector_alloc(need.bvecs, count);
	if (IS_ERR(v))
		return PTR_ERR(v);
	op->data.vector = v;
	err = exs_vector_feed(op, count, &need);
	if (!err && need.unregistered && direction == ITER_SOURCE) {
		copy = exs_copy_alloc(op, need.unregistered);
		err = PTR_ERR_OR_ZERO(copy);
	}
	err = err ?: exs_vector_fill(op, iov, count, access, copy);
	if (err)
		exs_data_cleanup(op);
	else
		exs_vector_iter(op, direction, &need);
	return err;
}

static u64 exs_iter_addr(const struct iov_iter *iter)
{
	return (unsigned long)(iter_is_ubuf(iter) ? iter->ubuf + iter->iov_offset :
						    iter_iov_addr(iter));
}

/* Pin the pieces of @iter, user memory. */
static int exs_vector_pin(struct exs_vector *v, struct iov_iter iter, u32 access)
{
	struct exs_sqe_iovec piece = { .region = EXS_REGION_NONE };
	int err = 0;

	while (iov_iter_count(&iter) && !err) {
		piece.addr = exs_iter_addr(&iter);
		piece.len = iov_iter_single_seg_count(&iter);
		err = exs_vector_add(v, &piece, access);
		iov_iter_advance(&iter, piece.len);
		cond_resched();
	}
	return err;
}

struct exs_vector *exs_vector_of_iter(struct iov_iter from, u32 access,
				      struct iov_iter *to)
{
	size_t len = iov_iter_count(&from);
	struct exs_vector *v;
	int err = 0;

	v = exs_vector_alloc(iov_iter_npages(&from, INT_MAX),
			     iter_is_iovec(&from) ? from.nr_segs : 1);
	if (IS_ERR(v))
		return v;
	if (iov_iter_is_bvec(&from))
		exs_vector_append(v, &from);
	else
		err = exs_vector_pin(v, from, access);
	if (err) {
		exs_vector_free(v);
		return ERR_PTR(err);
	}
	iov_iter_bvec(to, access == EXS_MREG_WRITE ? ITER_DEST : ITER_SOURCE,
		      v->bvec, v->nbvecs, len);
	return v;
}

static int exs_vector_get_msg(struct exs_sqe_msg *msg, const struct exs_sqe *sqe)
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
static int exs_vector_shut(struct exs_op *op)
{
	if (!op->data.feed || exs_sk_is_exs(op->sk)) {
		exs_data_cleanup(op);
		return -EINVAL;
	}
	op->data.feed->shut = true;
	return 0;
}

int exs_vector_prep(struct exs_op *op, const struct exs_sqe *sqe, u32 access)
{
	struct exs_sqe_iovec *iov;
	struct exs_sqe_msg msg;
	int err = exs_vector_get_msg(&msg, sqe);

	if (err)
		return err;
	iov = vmemdup_user(u64_to_user_ptr(msg.iov), array_size(msg.count, sizeof(*iov)));
	if (IS_ERR(iov))
		return PTR_ERR(iov);
	err = exs_vector_build(op, iov, msg.count, access);
	kvfree(iov);
	if (!err && msg.flags & EXS_SQE_MSG_SHUT_WR)
		err = exs_vector_shut(op);
	return err;
}
