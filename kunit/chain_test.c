// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests that are collected are posted once each, in order, registrations and
 * invalidations together, and with few doorbells. After an error nothing more is posted.
 */
#include <kunit/test.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "transport/verbs_chain.h"

#define MANY	(5 * EXS_CHAIN_WRS / 2)

/* The requests that the provider got, by immediate; the number of the doorbell. */
static struct {
	u32 n, doorbells, fails_at;
	u32 what[MANY + 1], doorbell[MANY + 1], sges[MANY + 1];
	bool last_is_inline;
} got;

static int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	got.doorbells++;
	for (; wr && got.n < ARRAY_SIZE(got.what); wr = wr->next, got.n++) {
		got.what[got.n] = be32_to_cpu(wr->ex.imm_data);
		got.sges[got.n] = wr->num_sge;
		got.doorbell[got.n] = got.doorbells;
		got.last_is_inline = wr->send_flags & IB_SEND_INLINE;
	}
	return got.doorbells == got.fails_at ? -EIO : 0;
}

/* The transport's own source, over that. */
#include "transport/verbs_chain.c"

struct bench {
	struct exs_verbs_ep v;
	struct exs_verbs_slot slot;
	struct exs_conn conn;
	struct exs_net xn;
	struct ib_device dev;
	struct rdma_cm_id id;
	struct ib_qp qp;
	struct exs_verbs_chain *chain;
};

static struct bench *bench_new(struct kunit *test)
{
	struct bench *b = kvzalloc(sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_ASSERT_EQ(test, exs_chain_init(), 0);
	b->xn.counters = alloc_percpu(struct exs_counters);
	KUNIT_ASSERT_NOT_NULL(test, b->xn.counters);
	b->dev.ops.post_send = fake_post_send;
	b->qp.device = &b->dev;
	b->id.qp = &b->qp;
	b->conn.xn = &b->xn;
	spin_lock_init(&b->conn.lock);
	b->v.ep.conn = &b->conn;
	b->v.id = &b->id;
	memset(&got, 0, sizeof(got));
	return b;
}

static void bench_free(struct bench *b)
{
	free_percpu(b->xn.counters);
	exs_chain_exit();
	kvfree(b);
}

/* From here on nothing may sleep, as a test that fails does. */
static void begin(struct bench *b)
{
	spin_lock(&b->conn.lock);
	b->chain = exs_chain_begin(&b->v);
	b->chain->slot = &b->slot;
}

/* Return: what exs_chain_end() does. */
static int end(struct bench *b, int err)
{
	err = exs_chain_end(b->chain, err);
	spin_unlock(&b->conn.lock);
	return err;
}

static void add(struct bench *b, bool early, u32 what)
{
	union exs_verbs_wr *wr = early ? exs_chain_add_early(b->chain) : exs_chain_add(b->chain);

	wr->send.ex.imm_data = cpu_to_be32(what);
}

static void posts(struct kunit *test, struct bench *b, const u32 *what, u32 n)
{
	u32 i;

	memset(&got, 0, sizeof(got));
	begin(b);
	add(b, false, 1);
	add(b, true, 2);
	add(b, true, 3);
	add(b, false, 4);
	add(b, true, 5);
	KUNIT_EXPECT_EQ(test, end(b, 0), 0);
	KUNIT_EXPECT_EQ(test, got.doorbells, 1U);
	KUNIT_ASSERT_EQ(test, got.n, n);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, got.what[i], what[i]);
}

/* Registrations are together: in front of all where each waits, unless data is under way. */
static void in_order(struct kunit *test)
{
	static const u32 together[] = { 1, 2, 3, 5, 4 }, first[] = { 2, 3, 5, 1, 4 };
	struct bench *b = bench_new(test);

	posts(test, b, together, ARRAY_SIZE(together));
	b->v.quirks = EXS_QUIRK_REPEATS;
	posts(test, b, first, ARRAY_SIZE(first));
	b->v.sending = 1;
	posts(test, b, together, ARRAY_SIZE(together));
	bench_free(b);
}

static void nothing(struct kunit *test)
{
	struct bench *b = bench_new(test);

	begin(b);
	KUNIT_EXPECT_EQ(test, end(b, 0), 0);
	KUNIT_EXPECT_EQ(test, got.doorbells, 0U);
	bench_free(b);
}

/* Each is there once, and a registration never behind a message that was added after it. */
static void many(struct kunit *test)
{
	struct bench *b = bench_new(test);
	u32 place[MANY], i;

	begin(b);
	for (i = 0; i < MANY; i++) {
		add(b, i % 3 == 0, i);
		if (i % 3 == 0)
			exs_chain_take_place(b->chain);
	}
	KUNIT_EXPECT_EQ(test, end(b, 0), 0);
	KUNIT_EXPECT_EQ(test, (u32)b->slot.wrs, (u32)MANY);
	KUNIT_EXPECT_EQ(test, b->v.sq_used, (u32)MANY);
	bench_free(b);
	KUNIT_EXPECT_EQ(test, got.doorbells, 3U);
	KUNIT_ASSERT_EQ(test, got.n, (u32)MANY);
	memset(place, 0xff, sizeof(place));
	for (i = 0; i < MANY; i++) {
		KUNIT_ASSERT_LT(test, got.what[i], (u32)MANY);
		KUNIT_EXPECT_EQ(test, place[got.what[i]], ~0U);
		place[got.what[i]] = i;
	}
	for (i = 0; i + 1 < MANY; i++)
		if (i % 3 == 0)
			KUNIT_EXPECT_LT(test, place[i], place[i + 1]);
}

/* Elements and bytes are not given twice: a full list is posted first. */
static void long_ones(struct kunit *test)
{
	enum {
		SGES = EXS_CHAIN_SGES / EXS_VERBS_SEND_SGES + 1,
		BYTES = EXS_CHAIN_BYTES / EXS_INLINE_MAX + 1,
	};
	struct bench *b = bench_new(test);
	u32 i, beyond = 0;

	begin(b);
	for (i = 0; i < SGES; i++) {
		union exs_verbs_wr *wr = exs_chain_add(b->chain);

		beyond += b->chain->nsges + EXS_VERBS_SEND_SGES > EXS_CHAIN_SGES;
		exs_chain_use_sges(b->chain, &wr->send, EXS_VERBS_SEND_SGES);
	}
	for (i = 0; i < BYTES; i++) {
		union exs_verbs_wr *wr = exs_chain_add(b->chain);

		beyond += b->chain->nbytes + EXS_INLINE_MAX > EXS_CHAIN_BYTES;
		exs_chain_use_bytes(b->chain, &wr->send, EXS_INLINE_MAX);
	}
	KUNIT_EXPECT_EQ(test, end(b, 0), 0);
	bench_free(b);
	KUNIT_EXPECT_EQ(test, beyond, 0U);
	KUNIT_EXPECT_EQ(test, got.doorbells, 3U);
	KUNIT_ASSERT_EQ(test, got.n, (u32)(SGES + BYTES));
	KUNIT_EXPECT_EQ(test, got.sges[0], (u32)EXS_VERBS_SEND_SGES);
	KUNIT_EXPECT_EQ(test, got.sges[got.n - 1], 1U);
	KUNIT_EXPECT_TRUE(test, got.last_is_inline);
}

static void provider_fails(struct kunit *test)
{
	struct bench *b = bench_new(test);
	u32 i;

	got.fails_at = 1;
	begin(b);
	for (i = 0; i < MANY; i++)
		add(b, false, i);
	KUNIT_EXPECT_EQ(test, end(b, 0), -EIO);
	KUNIT_EXPECT_EQ(test, got.doorbells, 1U);
	bench_free(b);
}

static void caller_fails(struct kunit *test)
{
	struct bench *b = bench_new(test);

	begin(b);
	add(b, false, 1);
	KUNIT_EXPECT_EQ(test, end(b, -EINVAL), -EINVAL);
	KUNIT_EXPECT_EQ(test, got.doorbells, 0U);
	bench_free(b);
}

static struct kunit_case chain_cases[] = {
	KUNIT_CASE(in_order),
	KUNIT_CASE(nothing),
	KUNIT_CASE(many),
	KUNIT_CASE(long_ones),
	KUNIT_CASE(provider_fails),
	KUNIT_CASE(caller_fails),
	{}
};

static struct kunit_suite chain_suite = {
	.name = "exs_chain",
	.test_cases = chain_cases,
};

kunit_test_suite(chain_suite);
