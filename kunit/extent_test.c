// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the calculated extent of a memory key with the pages that
 * ib_sg_to_pages() covers with one: with entries of all kinds, as devices with and
 * without an IOMMU see them.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>

#include "transport/verbs_extent.h"

#define ENTRIES	24

struct fake_key {
	struct ib_mr mr;
	u32 pages, used;
};

static int set_page(struct ib_mr *mr, u64 addr)
{
	struct fake_key *key = container_of(mr, struct fake_key, mr);

	if (key->used == key->pages)
		return -ENOMEM;
	key->used++;
	return 0;
}

/* Bytes that ib_sg_to_pages() covers of the first @len from @pos on; below 0, it says, if
 * it has run over in the first page.
 */
static s64 covered(struct exs_verbs_pos pos, u32 key_pages, u64 len)
{
	struct fake_key key = { .mr.page_size = PAGE_SIZE, .pages = key_pages };
	struct scatterlist sgl[ENTRIES];
	u32 n = 0;

	sg_init_table(sgl, ENTRIES);
	while (pos.sg && len) {
		u64 part = min_t(u64, sg_dma_len(pos.sg) - pos.off, len);

		sg_dma_address(&sgl[n]) = sg_dma_address(pos.sg) + pos.off;
		sg_dma_len(&sgl[n++]) = part;
		exs_verbs_pos_advance(&pos, part);
		len -= part;
	}
	ib_sg_to_pages(&key.mr, sgl, n, NULL, set_page);
	return key.mr.length;
}

static void same(struct kunit *test, struct scatterlist *sgl, u32 off, u32 key_pages, u64 max)
{
	struct exs_verbs_pos pos = { sgl, off };
	u64 extent = exs_verbs_extent(pos, key_pages, max);

	KUNIT_EXPECT_GT(test, extent, 0ULL);
	KUNIT_EXPECT_LE(test, extent, max);
	KUNIT_EXPECT_EQ_MSG(test, covered(pos, key_pages, extent), (s64)extent,
			    "key of %u pages, from byte %u", key_pages, off);
	if (extent == max)
		return;
	/* A byte more, if there is one, does not fit. */
	exs_verbs_pos_advance(&pos, extent);
	if (!pos.sg)
		return;
	pos = (struct exs_verbs_pos) { sgl, off };
	KUNIT_EXPECT_LE_MSG(test, covered(pos, key_pages, extent + 1), (s64)extent,
			    "key of %u pages, from byte %u, covers more", key_pages, off);
}

static void fill(struct scatterlist *sgl, u32 i, u64 addr, u32 len)
{
	sg_dma_address(&sgl[i]) = addr;
	sg_dma_len(&sgl[i]) = len;
}

/* As behind an IOMMU, which may make one of everything. */
static void one_entry(struct kunit *test)
{
	static const u32 offs[] = {
		0, 1, 17, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 100 * PAGE_SIZE
	};
	static const u32 starts[] = { 0, 1, 8, PAGE_SIZE - 1 };
	struct scatterlist sgl[1];
	u32 key_pages, i, j;

	sg_init_table(sgl, 1);
	for (i = 0; i < ARRAY_SIZE(starts); i++)
		for (j = 0; j < ARRAY_SIZE(offs); j++)
			for (key_pages = 1; key_pages <= 520; key_pages++) {
				fill(sgl, 0, SZ_16M + starts[i], SZ_2M + 5);
				same(test, sgl, offs[j], key_pages, U32_MAX);
			}
}

static void bounded(struct kunit *test)
{
	struct scatterlist sgl[1];
	u32 max;

	sg_init_table(sgl, 1);
	fill(sgl, 0, SZ_16M + 3, SZ_1M);
	for (max = 1; max < 3 * PAGE_SIZE; max += 251)
		same(test, sgl, 5, 2, max);
}

/* The next entry: adjacent, at another page, or with a gap; whole pages or scraps. */
static u64 random_entry(struct rnd_state *rnd, struct scatterlist *sgl, u32 i, u64 at)
{
	u32 how = prandom_u32_state(rnd), len = (how >> 8) % (9 * PAGE_SIZE) + 1;

	if (how & 1)
		len = PAGE_ALIGN(len) - (i ? 0 : offset_in_page(at));
	if (how & 2)
		at = PAGE_ALIGN(at) + (u64)(how >> 24) * PAGE_SIZE;
	else if (how & 4)
		at += how >> 20;
	fill(sgl, i, at, len);
	return at + len;
}

static void at_random(struct kunit *test)
{
	struct scatterlist sgl[ENTRIES];
	struct rnd_state rnd;
	u32 round, i, n;
	u64 at;

	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 20000; round++) {
		n = prandom_u32_state(&rnd) % ENTRIES + 1;
		sg_init_table(sgl, n);
		at = SZ_16M + prandom_u32_state(&rnd) % PAGE_SIZE;
		for (i = 0; i < n; i++)
			at = random_entry(&rnd, sgl, i, at);
		same(test, sgl, prandom_u32_state(&rnd) % sg_dma_len(sgl),
		     prandom_u32_state(&rnd) % 40 + ENTRIES, U32_MAX);
	}
}

/* Whatever begins later and is no longer needs no more keys. */
static void parts(struct kunit *test)
{
	struct exs_verbs_pos pos;
	struct scatterlist sgl[2];
	u32 from, keys;

	sg_init_table(sgl, 2);
	fill(sgl, 0, SZ_16M + 100, 10 * PAGE_SIZE - 100);
	fill(sgl, 1, SZ_32M, 7 * PAGE_SIZE);
	for (from = 0; from < 10 * PAGE_SIZE; from += 99) {
		pos = (struct exs_verbs_pos) { sgl, 0 };
		exs_verbs_pos_advance(&pos, from);
		for (keys = 0; pos.sg; keys++)
			exs_verbs_pos_advance(&pos, exs_verbs_extent(pos, 4, U64_MAX));
		KUNIT_EXPECT_LE(test, keys, 5U);
	}
}

static struct kunit_case extent_cases[] = {
	KUNIT_CASE(one_entry),
	KUNIT_CASE(bounded),
	KUNIT_CASE(at_random),
	KUNIT_CASE(parts),
	{}
};

static struct kunit_suite extent_suite = {
	.name = "exs_extent",
	.test_cases = extent_cases,
};

kunit_test_suite(extent_suite);
