// SPDX-License-Identifier: GPL-2.0
/*
 * Receives are mapped, planned, registered and invalidated as in exs.ko, for a simulated
 * device. Its DMA mapping works as without an IOMMU, or merges as one does. Its keys have
 * each allowed size. A key covers the pages that ib_map_mr_sg() reports, page by page.
 * Plan and registration must agree, and the pool of keys must never be short.
 */
#include <kunit/test.h>
#include <linux/bvec.h>
#include <linux/prandom.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "compat/compat.h"

/* -- the device, in place of the provider, the CM and the DMA layer */

struct fake_key {
	struct ib_mr mr;
	u32 max, n;
	u64 pages[];
};

/**
 * struct fake_iommu - how memory is mapped
 * @merges: entries become one where pages allow it; else addresses are physical
 * @max: most bytes of an entry
 * @boundary: that it does not cross: a power of two
 */
struct fake_iommu {
	bool merges;
	u64 max, boundary;
};

static struct fake_iommu fake_iommu;
static long fake_keys_left;

static bool fake_merge(u64 addr, u64 len, u32 off, u32 more)
{
	return len && !off && !offset_in_page(addr + len) &&
	       len + more <= fake_iommu.max &&
	       (addr & ~(fake_iommu.boundary - 1)) ==
	       ((addr + len + more - 1) & ~(fake_iommu.boundary - 1));
}

/* As iommu_dma_map_sg() does: every entry begins in a page of its own, where the last one ended. */
static int fake_map_merged(struct sg_table *sgt)
{
	struct scatterlist *sg, *out = NULL;
	u64 at = SZ_4G - SZ_1M;
	u32 i;

	for_each_sgtable_sg(sgt, sg, i) {
		u32 len = sg->length, off = sg->offset;

		sg_dma_len(sg) = 0;
		if (out && fake_merge(sg_dma_address(out), sg_dma_len(out), off, len)) {
			sg_dma_len(out) += len;
		} else {
			out = out ? sg_next(out) : sg;
			sg_dma_address(out) = at + off;
			sg_dma_len(out) = len;
			sgt->nents += out != sgt->sgl;
		}
		at = PAGE_ALIGN(at + off + len);
	}
	return 0;
}

static int fake_map(struct ib_device *dev, struct sg_table *sgt,
		    enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *sg;
	u32 i;

	sgt->nents = 1;
	if (fake_iommu.merges)
		return fake_map_merged(sgt);
	for_each_sgtable_sg(sgt, sg, i) {
		sg_dma_address(sg) = sg_phys(sg);
		sg_dma_len(sg) = sg->length;
	}
	sgt->nents = sgt->orig_nents;
	return 0;
}

static void fake_unmap(struct ib_device *dev, struct sg_table *sgt,
		       enum dma_data_direction dir, unsigned long attrs)
{
}

static struct ib_mr *fake_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max)
{
	static u32 rkeys;
	struct fake_key *key;

	if (fake_keys_left-- <= 0)
		return ERR_PTR(-ENOMEM);
	key = kzalloc(struct_size(key, pages, max), GFP_KERNEL);
	if (!key)
		return ERR_PTR(-ENOMEM);
	key->max = max;
	key->mr.device = pd->device;
	key->mr.rkey = ++rkeys << 8;
	return &key->mr;
}

static int fake_dereg_mr(struct ib_mr *mr)
{
	kfree(container_of(mr, struct fake_key, mr));
	return 0;
}

static int fake_set_page(struct ib_mr *mr, u64 addr)
{
	struct fake_key *key = container_of(mr, struct fake_key, mr);

	if (key->n == key->max)
		return -ENOMEM;
	key->pages[key->n++] = addr;
	return 0;
}

static int fake_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int n,
			  unsigned int *off)
{
	container_of(mr, struct fake_key, mr)->n = 0;
	return ib_sg_to_pages(mr, sg, n, off, fake_set_page);
}

static int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	return 0;
}

/* The transport's own source, over that; verbs_chain.c is in chain_test.c. */
#define ib_dma_map_sgtable_attrs fake_map
#define ib_dma_unmap_sgtable_attrs fake_unmap
#define ib_alloc_mr fake_alloc_mr
#define ib_dereg_mr fake_dereg_mr
#include "transport/verbs_map.c"
#include "transport/verbs_mr.c"

/* Its dependencies. */
int exs_limit_charge(enum exs_limit what, long n, struct exs_user **user)
{
	return 0;
}

void exs_limit_uncharge(enum exs_limit what, long n, struct exs_user *user)
{
}

void exs_verbs_note_lost(struct exs_verbs_ep *v, int err)
{
}

int exs_verbs_post_errno(const struct exs_verbs_ep *v, int err)
{
	return err;
}

void exs_verbs_wc_error(struct exs_verbs_ep *v, const struct ib_wc *wc)
{
}

void exs_conn_invalidated(struct exs_conn *conn, struct exs_xfer *x)
{
}

/* -- an endpoint of it, and memory */

struct bench {
	struct exs_verbs_ep v;
	struct exs_conn conn;
	struct exs_net xn;
	struct ib_device dev;
	struct rdma_cm_id id;
	struct ib_pd pd;
	struct ib_qp qp;
	struct ib_cq cq;
};

static struct bench *bench_new(struct kunit *test, u32 key_pages, u16 socktype)
{
	struct bench *b = kvzalloc(sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_ASSERT_EQ(test, exs_chain_init(), 0);
	b->xn.counters = alloc_percpu(struct exs_counters);
	KUNIT_ASSERT_NOT_NULL(test, b->xn.counters);
	b->dev.ops.map_mr_sg = fake_map_mr_sg;
	b->dev.ops.post_send = fake_post_send;
	b->pd.device = &b->dev;
	b->qp.device = &b->dev;
	b->id.device = &b->dev;
	b->id.qp = &b->qp;
	b->cq.cq_context = &b->v;
	b->conn.xn = &b->xn;
	b->conn.socktype = socktype;
	spin_lock_init(&b->conn.lock);
	b->v.ep.conn = &b->conn;
	b->v.id = &b->id;
	b->v.pd = &b->pd;
	b->v.key_pages = key_pages;
	b->v.run_max = EXS_VERBS_RUN_MAX;
	mutex_init(&b->v.keys_mutex);
	INIT_LIST_HEAD(&b->v.keys_free);
	INIT_LIST_HEAD(&b->v.keys_out);
	INIT_LIST_HEAD(&b->v.ring_keys);
	INIT_LIST_HEAD(&b->v.slots_posted);
	INIT_LIST_HEAD(&b->v.slots[0].inv_keys);
	fake_keys_left = LONG_MAX;
	return b;
}

/* Every transfer was unmapped: all keys are in the pool. */
static void bench_free(struct kunit *test, struct bench *b)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&b->v.keys_wanted), 0);
	KUNIT_EXPECT_EQ(test, b->v.nkeys_free, b->v.keys_total);
	exs_verbs_keys_free(&b->v);
	exs_chain_exit();
	free_percpu(b->xn.counters);
	kvfree(b);
}

enum layout { ONE_RUN, HUGE_PAGES, SCATTERED, MIXED, LAYOUTS, VECTOR = LAYOUTS };

/* Pieces of a VECTOR, which do not begin and end with a page; more, and there are no keys. */
#define PIECES	(EXS_VERBS_SEGS / 2)

/* The content of these pages is not used; there is as much memory. */
#define FIRST_PFN	(SZ_128M >> PAGE_SHIFT)

/* Where page @i lies; two in a row are neighbours, or not. */
static unsigned long layout_pfn(enum layout l, u32 i)
{
	switch (l) {
	case HUGE_PAGES:
		return FIRST_PFN + i + i / 512 * 512;
	case SCATTERED:
		return FIRST_PFN + 2 * i;
	case VECTOR:
	case MIXED:
		return FIRST_PFN + i + (i / 7 + i / 300) % 8;
	default:
		return FIRST_PFN + i;
	}
}

/* A receive of @len bytes, from byte @off of the first page on. */
static void recv_init(struct kunit *test, struct bench *b, struct exs_xfer *x,
		      enum layout l, u32 off, u64 len)
{
	u32 i, n = PFN_UP(off + len) + (l == VECTOR), cut = l == VECTOR ? n / PIECES + 1 : n;
	struct bio_vec *bvec = kvcalloc(n, sizeof(*bvec), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bvec);
	KUNIT_ASSERT_TRUE(test, pfn_valid(layout_pfn(l, n)));
	for (i = 0; i < n; i++)
		bvec[i] = (struct bio_vec) {
			.bv_page = pfn_to_page(layout_pfn(l, i)),
			.bv_offset = i && i % cut == 0 ? 100 : 0,
			.bv_len = i && i % cut == 0 ? PAGE_SIZE - 100 : PAGE_SIZE,
		};
	memset(x, 0, sizeof(*x));
	x->is_recv = true;
	x->rcv.len = len;
	x->rcv.flags = EXS_RCV_DIRECT;
	x->conn = &b->conn;
	INIT_LIST_HEAD(&x->map.mrs);
	iov_iter_bvec(&x->iter, ITER_DEST, bvec, n, off + len);
	iov_iter_advance(&x->iter, off);
	x->private = bvec;
}

static void recv_end(struct bench *b, struct exs_xfer *x)
{
	exs_verbs_unmap(&b->v.ep, x);
	kvfree(x->private);
}

/* The key's pages hold the bytes from @pos on, which is moved behind them. */
static void covers(struct kunit *test, const struct fake_key *key,
		   const struct exs_seg *seg, struct exs_verbs_pos *pos)
{
	u64 off = offset_in_page(seg->addr), end = off + seg->len;
	u32 wrong = 0;

	KUNIT_ASSERT_LE(test, PFN_UP(end), (unsigned long)key->n);
	KUNIT_EXPECT_EQ(test, seg->key, key->mr.rkey);
	while (off < end && pos->sg) {
		u64 here = sg_dma_address(pos->sg) + pos->off;
		u64 part = min3(end - off, (u64)sg_dma_len(pos->sg) - pos->off,
				(u64)PAGE_SIZE - offset_in_page(off));

		wrong += key->pages[off >> PAGE_SHIFT] + offset_in_page(off) != here;
		exs_verbs_pos_advance(pos, part);
		off += part;
	}
	KUNIT_EXPECT_EQ(test, off, end);
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

static int advertise(struct bench *b, struct exs_xfer *x, struct exs_tx *tx)
{
	struct exs_verbs_chain *chain;
	int err;

	tx->rcv = &x->rcv;
	spin_lock(&b->conn.lock);
	chain = exs_chain_begin(&b->v);
	chain->slot = &b->v.slots[0];
	err = exs_chain_end(chain, exs_verbs_register(chain, tx));
	spin_unlock(&b->conn.lock);
	return err;
}

/* From byte @base on as much as the plan allows. */
static void window(struct kunit *test, struct bench *b, struct exs_xfer *x, u64 base)
{
	struct exs_verbs_pos pos = { x->map.sgt.sgl, 0 };
	struct exs_verbs_mr *key;
	struct exs_tx tx = { };
	u64 len = 0;
	u32 n = 0;

	x->rcv.base = base;
	x->rcv.window = min_t(u64, x->rcv.max_window, x->rcv.len - base);
	KUNIT_ASSERT_EQ(test, advertise(b, x, &tx), 0);
	KUNIT_EXPECT_LE(test, (u32)tx.msg.nsegs, x->rcv.max_segs);
	/* A window that is all of it needs exactly the planned keys. */
	if (x->rcv.window == x->rcv.len)
		KUNIT_EXPECT_EQ(test, (u32)tx.msg.nsegs, x->rcv.max_segs);
	exs_verbs_pos_advance(&pos, base);
	list_for_each_entry(key, &x->map.mrs, link) {
		covers(test, container_of(key->mr, struct fake_key, mr),
		       &tx.msg.segs[n], &pos);
		len += tx.msg.segs[n++].len;
	}
	KUNIT_EXPECT_EQ(test, n, (u32)tx.msg.nsegs);
	KUNIT_EXPECT_EQ(test, len, (u64)x->rcv.window);
}

/* Its keys are invalidated, which completes at once. */
static void invalidate_begin(struct bench *b, struct exs_xfer *x)
{
	spin_lock(&b->conn.lock);
	exs_verbs_invalidate(&b->v.ep, x);
	spin_unlock(&b->conn.lock);
}

static void invalidate_end(struct bench *b, struct exs_xfer *x)
{
	struct exs_verbs_mr *last = list_last_entry(&x->map.mrs, typeof(*last), link);
	struct ib_wc wc = { .wr_cqe = &last->cqe, .status = IB_WC_SUCCESS };

	spin_lock(&b->conn.lock);
	last->cqe.done(&b->cq, &wc);
	spin_unlock(&b->conn.lock);
}

/* All of a receive, window by window; @step: random, how much of a window is filled. */
static void whole(struct kunit *test, struct bench *b, enum layout l, u32 off, u64 len,
		  struct rnd_state *step)
{
	struct exs_xfer *x = kzalloc(sizeof(*x), GFP_KERNEL);
	u64 base = 0;

	KUNIT_ASSERT_NOT_NULL(test, x);
	recv_init(test, b, x, l, off, len);
	KUNIT_ASSERT_EQ(test, exs_verbs_map(&b->v.ep, x), 0);
	/* Whole pages in between never are too many scraps. */
	KUNIT_EXPECT_GT(test, x->rcv.max_segs, 0U);
	KUNIT_EXPECT_FALSE(test, x->map.copy);
	while (x->rcv.max_window && base < len) {
		window(test, b, x, base);
		base += step ? prandom_u32_state(step) % x->rcv.window + 1 : x->rcv.window;
		invalidate_begin(b, x);
		invalidate_end(b, x);
	}
	recv_end(b, x);
	kfree(x);
}

static const struct fake_iommu iommus[] = {
	{ .merges = false },
	{ .merges = true, .max = SZ_1G, .boundary = SZ_4G },
	{ .merges = true, .max = SZ_64K, .boundary = SZ_4G },
	{ .merges = true, .max = SZ_1G, .boundary = SZ_1M },
};

/* Each size of a key, with the largest message, wherever it begins. */
static void messages(struct kunit *test)
{
	static const u32 offs[] = { 0, 1, PAGE_SIZE - 1 };
	u32 pages, i, j;
	enum layout l;

	for (pages = EXS_VERBS_KEY_PAGES_MIN; pages <= EXS_VERBS_KEY_PAGES; pages++) {
		struct bench *b = bench_new(test, pages, EXS_WIRE_SEQPACKET);

		for (i = 0; i < ARRAY_SIZE(iommus) * LAYOUTS; i++) {
			fake_iommu = iommus[i / LAYOUTS];
			l = i % LAYOUTS;
			for (j = 0; j < ARRAY_SIZE(offs); j++)
				whole(test, b, l, offs[j], EXS_MESSAGE_MAX, NULL);
			cond_resched();
		}
		bench_free(test, b);
	}
}

/* One key is for a mebibyte, wherever it begins. */
static void mebibyte(struct kunit *test)
{
	static const u32 offs[] = { 0, 1, PAGE_SIZE - 1 };
	struct bench *b = bench_new(test, EXS_VERBS_KEY_PAGES, EXS_WIRE_STREAM);
	struct exs_xfer *x = kzalloc(sizeof(*x), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, x);
	fake_iommu = iommus[0];
	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		recv_init(test, b, x, SCATTERED, offs[i], SZ_1M);
		KUNIT_ASSERT_EQ(test, exs_verbs_map(&b->v.ep, x), 0);
		KUNIT_EXPECT_EQ(test, x->rcv.max_segs, 1U);
		window(test, b, x, 0);
		invalidate_begin(b, x);
		invalidate_end(b, x);
		recv_end(b, x);
	}
	kfree(x);
	bench_free(test, b);
}

/* Receives of a stream that take several windows, which begin anywhere. */
static void windows(struct kunit *test)
{
	struct rnd_state rnd;
	u32 round;

	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 300; round++) {
		u32 pages = EXS_VERBS_KEY_PAGES_MIN + prandom_u32_state(&rnd) %
			    (EXS_VERBS_KEY_PAGES - EXS_VERBS_KEY_PAGES_MIN + 1);
		struct bench *b = bench_new(test, pages, EXS_WIRE_STREAM);
		u32 how = prandom_u32_state(&rnd);

		fake_iommu = iommus[how % ARRAY_SIZE(iommus)];
		whole(test, b, (how >> 4) % (LAYOUTS + 1), (how >> 8) % PAGE_SIZE,
		      prandom_u32_state(&rnd) % SZ_32M + 1, &rnd);
		bench_free(test, b);
		cond_resched();
	}
}

/* -- the peer has our device invalidate them */

/* A message of one key in chain 1; the peer does so before the end of this chain, or after it. */
static void dies_when(struct kunit *test, bool early)
{
	struct bench *b = bench_new(test, EXS_VERBS_KEY_PAGES, EXS_WIRE_SEQPACKET);
	struct exs_xfer *x = kzalloc(sizeof(*x), GFP_KERNEL);
	bool known, twice, follows;
	u32 rkey;

	KUNIT_ASSERT_NOT_NULL(test, x);
	fake_iommu = iommus[0];
	recv_init(test, b, x, ONE_RUN, 0, SZ_4K);
	KUNIT_ASSERT_EQ(test, exs_verbs_map(&b->v.ep, x), 0);
	b->v.chains_begun = 1;
	window(test, b, x, 0);
	rkey = list_first_entry(&x->map.mrs, struct exs_verbs_mr, link)->mr->rkey;
	spin_lock(&b->conn.lock);
	b->v.chains_ended = !early;
	known = exs_verbs_key_died(&b->v, rkey);
	twice = exs_verbs_key_died(&b->v, rkey);
	/* A key that was registered since then is valid. */
	b->v.chains_ended = 1;
	follows = exs_verbs_invalidate(&b->v.ep, x);
	spin_unlock(&b->conn.lock);
	KUNIT_EXPECT_TRUE(test, known);
	KUNIT_EXPECT_FALSE(test, twice);
	KUNIT_EXPECT_EQ(test, follows, early);
	if (follows)
		invalidate_end(b, x);
	recv_end(b, x);
	kfree(x);
	bench_free(test, b);
}

static void dies(struct kunit *test)
{
	dies_when(test, false);
	dies_when(test, true);
}

/* -- the pool */

enum { MANY = 100 };

static void grows(struct kunit *test)
{
	struct bench *b = bench_new(test, EXS_VERBS_KEY_PAGES, EXS_WIRE_STREAM);
	struct exs_xfer *x = kvcalloc(MANY, sizeof(*x), GFP_KERNEL);
	u32 i, wanted = 0;

	KUNIT_ASSERT_NOT_NULL(test, x);
	fake_iommu = iommus[0];
	for (i = 0; i < MANY; i++) {
		recv_init(test, b, &x[i], i % LAYOUTS, 5 * i, (i + 1) * SZ_64K);
		KUNIT_ASSERT_EQ(test, exs_verbs_map(&b->v.ep, &x[i]), 0);
		wanted += x[i].rcv.max_segs;
		KUNIT_EXPECT_EQ(test, (u32)atomic_read(&b->v.keys_wanted), wanted);
		KUNIT_EXPECT_EQ(test, b->v.keys_total,
				min_t(u32, wanted, EXS_VERBS_KEYS_MAX) + EXS_VERBS_SEGS);
	}
	for (i = 0; i < MANY; i++)
		recv_end(b, &x[i]);
	KUNIT_EXPECT_EQ(test, b->v.keys_total, (u32)EXS_VERBS_KEYS_MAX + EXS_VERBS_SEGS);
	kvfree(x);
	bench_free(test, b);
}

/*
 * The device has no more keys: a stream works without, a message cannot; nothing is
 * reserved.
 */
static void has_no_more(struct kunit *test)
{
	struct bench *b = bench_new(test, EXS_VERBS_KEY_PAGES, EXS_WIRE_STREAM);
	struct exs_xfer *x = kzalloc(sizeof(*x), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, x);
	fake_iommu = iommus[0];
	fake_keys_left = 3;
	recv_init(test, b, x, ONE_RUN, 0, SZ_1M);
	KUNIT_EXPECT_EQ(test, exs_verbs_map(&b->v.ep, x), 0);
	KUNIT_EXPECT_EQ(test, x->rcv.max_segs, 0U);
	KUNIT_EXPECT_EQ(test, x->rcv.flags & EXS_RCV_DIRECT, 0U);
	recv_end(b, x);
	b->conn.socktype = EXS_WIRE_SEQPACKET;
	recv_init(test, b, x, ONE_RUN, 0, SZ_1M);
	KUNIT_EXPECT_EQ(test, exs_verbs_map(&b->v.ep, x), -ENOBUFS);
	recv_end(b, x);
	KUNIT_EXPECT_EQ(test, b->v.keys_total, 3U);
	kfree(x);
	bench_free(test, b);
}

/**
 * struct play - many receives that come and go
 * @x: them
 * @out: keys of the one that is advertised
 * @dying: its keys are being invalidated
 * @all: keys that peers have been told of
 */
struct play {
	struct exs_xfer x[MANY];
	u32 out[MANY];
	bool dying[MANY];
	u32 all;
};

/*
 * As the engine and exs_verbs_room() allow: 64 segments out, and an advert's keys there.
 */
static bool may_advertise(const struct bench *b, const struct play *p, u32 i)
{
	return !p->out[i] && p->all + p->x[i].rcv.max_segs <= EXS_VERBS_KEYS_MAX &&
	       b->v.nkeys_free >= EXS_VERBS_SEGS;
}

static void play_one(struct kunit *test, struct bench *b, struct play *p, u32 i)
{
	if (may_advertise(b, p, i)) {
		window(test, b, &p->x[i], 0);
		p->out[i] = p->x[i].rcv.max_segs;
		p->all += p->out[i];
	} else if (p->out[i] && !p->dying[i]) {
		invalidate_begin(b, &p->x[i]);
		/* It has ended for the engine. */
		p->all -= p->out[i];
		p->dying[i] = true;
	} else if (p->dying[i]) {
		invalidate_end(b, &p->x[i]);
		p->dying[i] = false;
		p->out[i] = 0;
	}
}

/* Adverts and invalidations in any order: whatever is mapped finds its keys. */
static void never_short(struct kunit *test)
{
	struct bench *b = bench_new(test, EXS_VERBS_KEY_PAGES_MIN, EXS_WIRE_SEQPACKET);
	struct play *p = kvzalloc(sizeof(*p), GFP_KERNEL);
	struct rnd_state rnd;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	prandom_seed_state(&rnd, 1);
	fake_iommu = iommus[1];
	for (i = 0; i < MANY; i++) {
		recv_init(test, b, &p->x[i], i % LAYOUTS, 0,
			  prandom_u32_state(&rnd) % EXS_MESSAGE_MAX + 1);
		KUNIT_ASSERT_EQ(test, exs_verbs_map(&b->v.ep, &p->x[i]), 0);
	}
	for (i = 0; i < 5000; i++)
		play_one(test, b, p, prandom_u32_state(&rnd) % MANY);
	for (i = 0; i < MANY; i++)
		recv_end(b, &p->x[i]);
	kvfree(p);
	bench_free(test, b);
}

/* -- the ring, whose keys are counted likewise */

static void ring_of(struct kunit *test, struct bench *b, void *mem, u32 size)
{
	struct exs_verbs_chain *chain;
	struct exs_verbs_pos pos;
	struct exs_verbs_mr *key;
	struct exs_tx tx = { };
	u32 n = 0;
	int err;

	KUNIT_ASSERT_EQ(test, exs_verbs_map_ring(&b->v.ep, mem, size), 0);
	spin_lock(&b->conn.lock);
	chain = exs_chain_begin(&b->v);
	chain->slot = &b->v.slots[0];
	err = exs_chain_end(chain, exs_verbs_register_ring(chain, &tx));
	spin_unlock(&b->conn.lock);
	KUNIT_EXPECT_EQ(test, err, 0);
	pos = (struct exs_verbs_pos) { b->v.ring_sgt.sgl, 0 };
	list_for_each_entry(key, &b->v.ring_keys, link)
		covers(test, container_of(key->mr, struct fake_key, mr),
		       &tx.msg.segs[n++], &pos);
	KUNIT_EXPECT_EQ(test, n, (u32)tx.msg.nsegs);
	KUNIT_EXPECT_FALSE(test, pos.sg);
	exs_verbs_unmap_ring(&b->v);
}

static void rings(struct kunit *test)
{
	void *mem = vmalloc(EXS_RING_MAX);
	struct bench *b;
	u32 pages, size, i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (pages = EXS_VERBS_KEY_PAGES_MIN; pages <= EXS_VERBS_KEY_PAGES; pages += 17)
		for (size = PAGE_SIZE; size <= EXS_RING_MAX; size *= 2)
			for (i = 0; i < ARRAY_SIZE(iommus); i++) {
				fake_iommu = iommus[i];
				b = bench_new(test, pages, EXS_WIRE_STREAM);
				ring_of(test, b, mem, size);
				exs_verbs_keys_free(&b->v);
				b->v.nkeys_free = 0;
				b->v.keys_total = 0;
				bench_free(test, b);
			}
	vfree(mem);
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE(messages),
	KUNIT_CASE(mebibyte),
	KUNIT_CASE(windows),
	KUNIT_CASE(dies),
	KUNIT_CASE(grows),
	KUNIT_CASE(has_no_more),
	KUNIT_CASE(never_short),
	KUNIT_CASE(rings),
	{}
};

static struct kunit_suite keys_suite = {
	.name = "exs_keys",
	.test_cases = keys_cases,
};

kunit_test_suite(keys_suite);
