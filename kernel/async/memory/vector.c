// SPDX-License-Identifier: GPL-2.0
/*
 * Vectors: the pages of all pieces become one array, so that sockets see one
 * piece of memory.
 *
 * Each piece has a region of its own: registered, or pinned for the operation.
 *
 * Operations add pieces one by one (msg_op.c).
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
#include "../../core/limits.h"
#include "../../core/stats.h"
#include "region.h"
#include "vector.h"

struct exs_vector *exs_vector_alloc(size_t bvecs, u32 count)
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

int exs_vector_add(struct exs_vector *v, const struct exs_sqe_iovec *piece, u32 access)
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
