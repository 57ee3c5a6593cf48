// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes and offsets that user space relies on: they may never change, and are the same for 32 and
 * 64 bits.
 */
#include <kunit/test.h>
#include <linux/exs.h>

static void sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_probe), 48);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_qcreate), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_mreg), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ring), 32);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_cqe), 64);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_sqe), 64);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_sqe_msg), 16);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_sqe_iovec), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_submit), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_wait), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_claim), 16);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_cancel), 24);
	KUNIT_EXPECT_EQ(test, sizeof(struct exs_ioc_attr), 16);
}

static void offsets(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_ring, tail), 0);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_ring, epoch), 8);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_ring, mask), 24);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_cqe, type), 32);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_cqe, flags), 44);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_sqe, addr), 16);
	KUNIT_EXPECT_EQ(test, offsetof(struct exs_sqe, user_arg), 40);
}

static void limits(struct kunit *test)
{
	/* A capacity always holds a depth, and the ring's bytes fit an int. */
	KUNIT_EXPECT_EQ(test, EXS_QUEUE_CAPACITY_MIN & (EXS_QUEUE_CAPACITY_MIN - 1), 0);
	KUNIT_EXPECT_EQ(test, EXS_QUEUE_DEPTH_MAX & (EXS_QUEUE_DEPTH_MAX - 1), 0);
	KUNIT_EXPECT_LT(test, (u64)EXS_QUEUE_DEPTH_MAX * sizeof(struct exs_cqe),
			(u64)INT_MAX);
	KUNIT_EXPECT_LE(test, EXS_SUBMIT_MAX, EXS_QUEUE_CAPACITY_MIN);
}

static struct kunit_case abi_cases[] = {
	KUNIT_CASE(sizes),
	KUNIT_CASE(offsets),
	KUNIT_CASE(limits),
	{}
};

static struct kunit_suite abi_suite = {
	.name = "exs_abi",
	.test_cases = abi_cases,
};

kunit_test_suite(abi_suite);
