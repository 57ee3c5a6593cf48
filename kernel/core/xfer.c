// SPDX-License-Identifier: GPL-2.0
/*
 * The bytes of a transfer: copies into its pages and out of them.
 *
 * Most such copies are short, so they avoid the general cases of iov_iter: other kinds of
 * memory, faults, user memory. Only when the transport has copied a receive of messages in
 * too many pieces is it an ITER_KVEC.
 */
#include <linux/bvec.h>

#include "conn.h"

/*
 * Advance to @off, from the last place if that is not beyond it: a peer chooses how many short
 * copies there are, and a long receive has half a million pages.
 */
static void exs_xfer_advance(struct exs_xfer *x, struct iov_iter *iter, u64 off)
{
	struct exs_mark *m = &x->mark;

	if (m->base == iter->bvec && m->off <= off) {
		iter->nr_segs -= m->bvec - m->base;
		iter->bvec = m->bvec;
		iter->iov_offset = m->skip;
		iter->count -= m->off;
	}
	iov_iter_advance(iter, off - (x->iter.count - iter->count));
	*m = (struct exs_mark) { x->iter.bvec, iter->bvec, iter->iov_offset, off };
}

/* The @len bytes at @off begin in *@bvec, at *@at. Return: whether they exist. */
static inline bool exs_xfer_seek(struct exs_xfer *x, u64 off, u32 len,
				 const struct bio_vec **bvec, struct bvec_iter *at)
{
	struct iov_iter iter = x->iter;

	if (WARN_ON_ONCE(!iov_iter_is_bvec(&iter) || off > iter.count ||
			 len > iter.count - off))
		return false;
	if (off)
		exs_xfer_advance(x, &iter, off);
	*bvec = iter.bvec;
	*at = (struct bvec_iter) { .bi_size = iter.iov_offset + len };
	return bvec_iter_advance(iter.bvec, at, iter.iov_offset);
}

/* The same for memory that the transport uses instead. */
static void exs_xfer_put_elsewhere(const struct exs_xfer *x, u64 off, const void *data,
				   u32 len)
{
	struct iov_iter to = x->iter;

	iov_iter_advance(&to, off);
	WARN_ON_ONCE(copy_to_iter(data, len, &to) != len);
}

exs_hot
void exs_xfer_put(struct exs_xfer *x, u64 off, const void *data, u32 len)
{
	const struct bio_vec *bvec;
	struct bio_vec piece;
	struct bvec_iter at;

	if (unlikely(!iov_iter_is_bvec(&x->iter))) {
		exs_xfer_put_elsewhere(x, off, data, len);
		return;
	}
	if (!exs_xfer_seek(x, off, len, &bvec, &at))
		return;
	for_each_bvec(piece, bvec, at, at) {
		memcpy_to_bvec(&piece, data);
		data += piece.bv_len;
	}
}

exs_hot
int exs_xfer_get(struct exs_xfer *x, u64 off, void *data, u32 len)
{
	const struct bio_vec *bvec;
	struct bio_vec piece;
	struct bvec_iter at;

	if (!exs_xfer_seek(x, off, len, &bvec, &at))
		return -EFAULT;
	for_each_bvec(piece, bvec, at, at) {
		memcpy_from_bvec(data, &piece);
		data += piece.bv_len;
	}
	return 0;
}
