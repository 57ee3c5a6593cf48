// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of transfers, DMA-mapped.
 *
 * A send is split into scatter/gather elements when it is posted, a receive into memory
 * keys when it is advertised. Both only go forward, so a cursor avoids walking from the
 * start.
 *
 * Memory may be in many pieces. A send then goes in smaller parts, and from a copy if even
 * the smallest would not fit into the send queue. A stream's receive gets no keys and takes
 * its bytes from the ring. A message is received into a copy.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/limits.h"
#include "core/stats.h"
#include "verbs_internal.h"

/* Byte @where of a transfer; conn->lock held. */
struct exs_verbs_pos exs_verbs_seek(struct exs_map *map, u64 where)
{
	struct exs_verbs_pos pos = { map->cursor, map->cursor_off };
	u64 skip = where - map->cursor_pos;

	if (!pos.sg || where < map->cursor_pos) {
		pos = (struct exs_verbs_pos) { map->sgt.sgl, 0 };
		skip = where;
	}
	exs_verbs_pos_advance(&pos, skip);
	exs_verbs_moved(map, where, pos);
	return pos;
}

/* A walk over the pages of an ITER_BVEC. */
struct exs_bvec_walk {
	const struct bio_vec *bv;
	size_t skip;
	size_t left;
	u32 max;
};

static phys_addr_t exs_bvec_phys(const struct bio_vec *bv, size_t skip)
{
	return page_to_phys(bv->bv_page) + bv->bv_offset + skip;
}

/* The next physically contiguous run, at most w->max; 0: none is left. */
exs_hot
static u32 exs_bvec_run(struct exs_bvec_walk *w, phys_addr_t *start)
{
	u32 run = 0;

	while (w->left && run < w->max) {
		size_t len = w->bv->bv_len - w->skip;

		len = min3(len, w->left, (size_t)w->max - run);
		if (!run)
			*start = exs_bvec_phys(w->bv, w->skip);
		else if (len && exs_bvec_phys(w->bv, w->skip) != *start + run)
			break;
		run += len;
		w->left -= len;
		w->skip += len;
		if (w->skip == w->bv->bv_len) {
			w->bv++;
			w->skip = 0;
		}
	}
	return run;
}

static int exs_sg_alloc(struct exs_map *map, u32 n)
{
	if (n != 1)
		return sg_alloc_table(&map->sgt, n, GFP_KERNEL_ACCOUNT);
	sg_init_table(&map->one, 1);
	map->sgt = (struct sg_table) { .sgl = &map->one, .nents = 1, .orig_nents = 1 };
	return 0;
}

static void exs_sg_free(struct exs_map *map)
{
	if (map->sgt.sgl != &map->one)
		sg_free_table(&map->sgt);
}

/* The pages of a non-empty ITER_BVEC. */
static int exs_sg_from_bvecs(struct exs_map *map, const struct iov_iter *iter, u32 max)
{
	struct exs_bvec_walk walk = { iter->bvec, iter->iov_offset, iter->count, max };
	struct exs_bvec_walk ahead = walk;
	struct scatterlist *sg;
	phys_addr_t start;
	u32 n = 0, len;
	int err;

	while (exs_bvec_run(&ahead, &start))
		n++;
	err = exs_sg_alloc(map, n);
	if (err)
		return err;
	for (sg = map->sgt.sgl; (len = exs_bvec_run(&walk, &start)); sg = sg_next(sg))
		sg_set_page(sg, pfn_to_page(PHYS_PFN(start)), len,
			    offset_in_page(start));
	return 0;
}

static int exs_sg_from_vmalloc(struct sg_table *sgt, void *mem, size_t size, u32 max)
{
	u32 i, n = DIV_ROUND_UP(size, PAGE_SIZE);
	struct page **pages;
	int err;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		pages[i] = vmalloc_to_page(mem + (size_t)i * PAGE_SIZE);
	err = sg_alloc_table_from_pages_segment(sgt, pages, n, 0, size, max,
						GFP_KERNEL_ACCOUNT);
	kvfree(pages);
	return err;
}

/* Whether any @bytes consecutive bytes are in at most @n entries. */
static bool exs_sg_dense(struct sg_table *sgt, u32 n, u64 bytes)
{
	struct scatterlist *sg, *tail;
	u64 inner = 0;
	u32 i;

	if (sgt->nents <= n)
		return true;
	/* Touching n + 1 entries takes the n - 1 inner ones and two more bytes. */
	sg = sg_next(sgt->sgl);
	tail = sg;
	for (i = 1; i < sgt->nents - 1; i++, sg = sg_next(sg)) {
		inner += sg_dma_len(sg);
		if (i >= n) {
			inner -= sg_dma_len(tail);
			tail = sg_next(tail);
		}
		if (i >= n - 1 && inner + 2 <= bytes)
			return false;
	}
	return true;
}

/* The largest pieces of a send that always fit into EXS_VERBS_DATA_WRS; an eager one is
 * sent after its header in one SEND. Return: bytes; 0: none fit.
 */
static u32 exs_verbs_piece(const struct exs_verbs_ep *v, struct exs_xfer *x)
{
	u32 n = EXS_VERBS_DATA_WRS * v->max_sge, piece = v->ep.max_piece;
	struct sg_table *sgt = &x->map.sgt;

	if (x->snd.len <= EXS_WIRE_DATA_MAX)
		return sgt->nents < v->max_sge ? piece : 0;
	while (!exs_sg_dense(sgt, n, piece)) {
		if (piece == EXS_VERBS_PIECE_MIN)
			return 0;
		piece = max_t(u32, piece / 2, EXS_VERBS_PIECE_MIN);
	}
	return piece;
}

static void exs_verbs_unmap_sg(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	struct exs_map *map = &x->map;

	if (!map->mapped)
		return;
	ib_dma_unmap_sgtable_attrs(v->id->device, &map->sgt, exs_xfer_dir(x), 0);
	exs_sg_free(map);
	map->cursor = NULL;
	map->mapped = false;
}

exs_hot
static int exs_verbs_map_sg(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	struct exs_map *map = &x->map;
	int err;

	if (map->copy)
		err = exs_sg_from_vmalloc(&map->sgt, map->copy, map->copy_len, v->run_max);
	else
		err = exs_sg_from_bvecs(map, &x->iter, v->run_max);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(v->id->device, &map->sgt, exs_xfer_dir(x), 0);
	if (err) {
		exs_sg_free(map);
		return -ENOMEM;
	}
	map->cursor = NULL;
	map->mapped = true;
	return 0;
}

/* Charged to the calling task's user, because it may be as long as the memory. */
static int exs_map_add_copy(struct exs_map *map, size_t len, gfp_t gfp)
{
	int err = exs_limit_charge(EXS_LIMIT_PAGES, PFN_UP(len), &map->copy_user);

	if (err)
		return err;
	map->copy = __vmalloc(len, gfp | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
	map->copy_len = len;
	if (map->copy)
		return 0;
	exs_limit_uncharge(EXS_LIMIT_PAGES, PFN_UP(len), map->copy_user);
	return -ENOMEM;
}

/* @x uses the program's memory again, with the received bytes. */
static void exs_verbs_drop_copy(struct exs_xfer *x)
{
	struct exs_map *map = &x->map;
	struct iov_iter to = map->target;

	if (x->is_recv) {
		x->iter = map->target;
		WARN_ON_ONCE(copy_to_iter(map->copy, x->rcv.filled, &to) != x->rcv.filled);
	}
	vfree(map->copy);
	exs_limit_uncharge(EXS_LIMIT_PAGES, PFN_UP(map->copy_len), map->copy_user);
	map->copy = NULL;
}

static int exs_verbs_copy_snd(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	struct iov_iter from = x->iter;
	struct exs_map *map = &x->map;
	int err;

	exs_verbs_unmap_sg(v, x);
	/* A vector may contain the same bytes a thousand times. */
	if (x->snd.len > EXS_MESSAGE_MAX)
		return -EMSGSIZE;
	err = exs_map_add_copy(map, x->snd.len, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	if (copy_from_iter(map->copy, x->snd.len, &from) != x->snd.len)
		err = -EFAULT;
	else
		err = exs_verbs_map_sg(v, x);
	if (err)
		exs_verbs_drop_copy(x);
	else
		exs_count(v->ep.conn->xn, scattered_sends, 1);
	return err;
}

static int exs_verbs_map_snd(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	int err;

	if (!x->snd.len)
		return 0;
	err = exs_verbs_map_sg(v, x);
	if (err)
		return err;
	x->snd.max_piece = exs_verbs_piece(v, x);
	return x->snd.max_piece ? 0 : exs_verbs_copy_snd(v, x);
}

/* The number of keys that cover all of @sgt, or @most + 1 if @most do not. */
static u32 exs_sg_keys(struct sg_table *sgt, u32 key_pages, u32 most)
{
	struct exs_verbs_pos pos = { sgt->sgl, 0 };
	u32 keys;

	for (keys = 0; pos.sg && keys <= most; keys++)
		exs_verbs_pos_advance(&pos, exs_verbs_extent(pos, key_pages, U64_MAX));
	return keys;
}

/* The number of runs without an edge inside a page in their middle. */
static u32 exs_sg_runs(struct sg_table *sgt)
{
	u64 end = sg_dma_address(sgt->sgl);
	struct scatterlist *sg;
	u32 i, runs = 1;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 addr = sg_dma_address(sg);

		runs += addr != end && offset_in_page(addr | end);
		end = addr + sg_dma_len(sg);
	}
	return runs;
}

/*
 * How much one advert can cover. If EXS_VERBS_SEGS keys do not cover everything: r runs of
 * p pages need at most p / key_pages + r keys, and b bytes in r runs are in at most b /
 * PAGE_SIZE + 2 r pages. Return: whether it can cover anything.
 */
exs_hot
static bool exs_verbs_plan_rcv(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	struct exs_rcv *rcv = &x->rcv;
	struct sg_table *sgt = &x->map.sgt;
	u32 keys, runs;

	keys = exs_sg_keys(sgt, v->key_pages, EXS_VERBS_SEGS);
	rcv->max_segs = min_t(u32, keys, EXS_VERBS_SEGS);
	rcv->max_window = rcv->len;
	if (keys <= EXS_VERBS_SEGS)
		return true;
	runs = exs_sg_runs(sgt);
	/* A message must fit completely. */
	if (runs > EXS_VERBS_SEGS / 2 ||
	    v->ep.conn->socktype == EXS_WIRE_SEQPACKET)
		return false;
	rcv->max_window = ((u64)(EXS_VERBS_SEGS - runs) * v->key_pages - 2 * runs) *
			  PAGE_SIZE;
	return true;
}

/* Zeroed: the peer may not fill all of it. */
static int exs_verbs_copy_rcv(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	struct exs_map *map = &x->map;
	int err;

	exs_verbs_unmap_sg(v, x);
	err = exs_map_add_copy(map, x->rcv.len, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (err)
		return err;
	map->target = x->iter;
	map->copy_vec = (struct kvec) { map->copy, map->copy_len };
	iov_iter_kvec(&x->iter, ITER_DEST, &map->copy_vec, 1, map->copy_len);
	err = exs_verbs_map_sg(v, x);
	return err ? err : exs_verbs_plan_rcv(v, x) ? 0 : -EMSGSIZE;
}

/* Too many pieces for keys. */
static int exs_verbs_map_scattered(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	exs_count(v->ep.conn->xn, scattered_recvs, 1);
	if (v->ep.conn->socktype == EXS_WIRE_STREAM)
		return -EMSGSIZE;
	return exs_verbs_copy_rcv(v, x);
}

static void exs_verbs_not_direct(struct exs_xfer *x)
{
	x->rcv.max_segs = 0;
	x->rcv.max_window = 0;
	x->rcv.flags &= ~EXS_RCV_DIRECT;
}

/*
 * Without keys a stream's receive takes its bytes from the ring. A message that is not
 * eager cannot.
 */
static int exs_verbs_map_rcv(struct exs_verbs_ep *v, struct exs_xfer *x)
{
	int err;

	if (!x->rcv.len) {
		x->rcv.max_segs = 1;
		return 0;
	}
	err = exs_verbs_map_sg(v, x);
	if (!err && !exs_verbs_plan_rcv(v, x))
		err = exs_verbs_map_scattered(v, x);
	if (!err)
		err = exs_verbs_keys_reserve(v, x->rcv.max_segs);
	if (!err) {
		x->map.nmrs = x->rcv.max_segs;
		return 0;
	}
	exs_verbs_unmap_sg(v, x);
	if (x->map.copy)
		exs_verbs_drop_copy(x);
	exs_verbs_not_direct(x);
	return v->ep.conn->socktype == EXS_WIRE_STREAM ? 0 : err;
}

/* exs_ep_ops.map */
exs_hot
int exs_verbs_map(struct exs_ep *ep, struct exs_xfer *x)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);

	if (WARN_ON_ONCE(!iov_iter_is_bvec(&x->iter)))
		return -EINVAL;
	return x->is_recv ? exs_verbs_map_rcv(v, x) : exs_verbs_map_snd(v, x);
}

/* exs_ep_ops.unmap */
exs_hot
void exs_verbs_unmap(struct exs_ep *ep, struct exs_xfer *x)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_map *map = &x->map;

	if (!list_empty(&map->mrs)) {
		/* The queue pair is gone, so they are as invalid as after LOCAL_INV. */
		spin_lock(&ep->conn->lock);
		exs_verbs_keys_put(v, &map->mrs);
		map->valid = 0;
		spin_unlock(&ep->conn->lock);
	}
	if (map->nmrs)
		exs_verbs_keys_unreserve(v, map->nmrs);
	map->nmrs = 0;
	exs_verbs_unmap_sg(v, x);
	if (map->copy)
		exs_verbs_drop_copy(x);
}

/* exs_ep_ops.map_ring */
int exs_verbs_map_ring(struct exs_ep *ep, void *mem, u32 size)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct ib_device *dev = v->id->device;
	struct sg_table *sgt = &v->ring_sgt;
	u32 n;
	int err;

	err = exs_sg_from_vmalloc(sgt, mem, size, v->run_max);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(dev, sgt, DMA_FROM_DEVICE, 0);
	if (err)
		goto no_dma;
	n = exs_sg_keys(sgt, v->key_pages, EXS_VERBS_SEGS);
	err = n > EXS_VERBS_SEGS ? -EINVAL : exs_verbs_ring_keys(v, n);
	if (err)
		goto no_keys;
	v->ring_size = size;
	v->ring_mapped = true;
	return 0;

no_keys:
	ib_dma_unmap_sgtable_attrs(dev, sgt, DMA_FROM_DEVICE, 0);
no_dma:
	sg_free_table(sgt);
	return err;
}

void exs_verbs_unmap_ring(struct exs_verbs_ep *v)
{
	if (!v->ring_mapped)
		return;
	ib_dma_unmap_sgtable_attrs(v->id->device, &v->ring_sgt, DMA_FROM_DEVICE, 0);
	sg_free_table(&v->ring_sgt);
	v->ring_mapped = false;
}
