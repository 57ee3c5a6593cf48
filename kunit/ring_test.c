// SPDX-License-Identifier: GPL-2.0
/*
 * Slots of a completion ring: none is lost, none is given out twice, and no
 * head that the program writes makes the kernel overwrite an unread entry.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "async/queue/ring.h"

static void capacity_is_power_of_two(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, exs_slots_capacity(1), EXS_QUEUE_CAPACITY_MIN);
	KUNIT_EXPECT_EQ(test, exs_slots_capacity(EXS_QUEUE_CAPACITY_MIN),
			EXS_QUEUE_CAPACITY_MIN);
	KUNIT_EXPECT_EQ(test, exs_slots_capacity(EXS_QUEUE_CAPACITY_MIN + 1),
			2 * EXS_QUEUE_CAPACITY_MIN);
	KUNIT_EXPECT_EQ(test, exs_slots_capacity(EXS_QUEUE_DEPTH_MAX),
			EXS_QUEUE_DEPTH_MAX);
}

static void reservation_stops_at_depth(struct kunit *test)
{
	struct exs_slots s;

	exs_slots_init(&s, 2);
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
	KUNIT_EXPECT_FALSE(test, exs_slots_reserve(&s));
	exs_slots_unreserve(&s);
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
}

static void unread_counts_as_taken(struct kunit *test)
{
	struct exs_slots s;

	exs_slots_init(&s, 1);
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
	exs_slots_posted(&s);
	KUNIT_EXPECT_EQ(test, exs_slots_unread(&s), 1);
	KUNIT_EXPECT_FALSE(test, exs_slots_reserve(&s));
	KUNIT_EXPECT_TRUE(test, exs_slots_consume(&s, 1));
	KUNIT_EXPECT_EQ(test, exs_slots_unread(&s), 0);
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
}

static void post(struct exs_slots *s, unsigned int n)
{
	while (n--) {
		exs_slots_reserve(s);
		exs_slots_posted(s);
	}
}

static void wild_heads_are_ignored(struct kunit *test)
{
	static const u64 wild[] = { 0, 2, 9, 1000, U64_MAX, 1ULL << 63 };
	struct exs_slots s;
	unsigned int i;

	exs_slots_init(&s, 16);
	post(&s, 8);
	KUNIT_EXPECT_TRUE(test, exs_slots_consume(&s, 3));
	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		KUNIT_EXPECT_FALSE(test, exs_slots_consume(&s, wild[i]));
		KUNIT_EXPECT_EQ(test, s.head, 3);
		KUNIT_EXPECT_EQ(test, exs_slots_unread(&s), 5);
	}
	KUNIT_EXPECT_TRUE(test, exs_slots_consume(&s, 3));
	KUNIT_EXPECT_TRUE(test, exs_slots_consume(&s, 8));
}

static void depth_moves_within_capacity(struct kunit *test)
{
	struct exs_slots s;

	exs_slots_init(&s, 4);
	post(&s, 2);
	exs_slots_reserve(&s);
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, s.capacity + 1ULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, 1ULL << 32), -EINVAL);
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, 2), -EBUSY);
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, 3), 0);
	KUNIT_EXPECT_FALSE(test, exs_slots_reserve(&s));
	KUNIT_EXPECT_EQ(test, exs_slots_set_depth(&s, s.capacity), 0);
	KUNIT_EXPECT_TRUE(test, exs_slots_reserve(&s));
}

/* Positions wrap 32 bits in the index and never in 64. */
static void index_wraps(struct kunit *test)
{
	struct exs_slots s;

	exs_slots_init(&s, 8);
	s.head = (1ULL << 32) - 1;
	s.tail = s.head;
	KUNIT_EXPECT_EQ(test, exs_slots_next(&s), s.capacity - 1);
	post(&s, 1);
	KUNIT_EXPECT_EQ(test, exs_slots_next(&s), 0);
	KUNIT_EXPECT_EQ(test, exs_slots_unread(&s), 1);
	KUNIT_EXPECT_TRUE(test, exs_slots_consume(&s, 1ULL << 32));
}

/* A program that writes any head: no unread entry is ever overwritten. */
static void hostile_program(struct kunit *test)
{
	struct rnd_state rnd;
	struct exs_slots s;
	unsigned int i;

	prandom_seed_state(&rnd, 4);
	exs_slots_init(&s, EXS_QUEUE_CAPACITY_MIN);
	for (i = 0; i < 100000; i++) {
		u32 r = prandom_u32_state(&rnd);

		if (r & 1 && s.reserved)
			exs_slots_posted(&s);
		else
			exs_slots_reserve(&s);
		if (r & 2)
			exs_slots_consume(&s, s.tail + (s32)(r >> 16) - 40000);
		if (r & 4)
			exs_slots_consume(&s, (u64)prandom_u32_state(&rnd) << 20);
		if (exs_slots_unread(&s) + s.reserved > s.depth || s.head > s.tail)
			break;
	}
	KUNIT_EXPECT_EQ(test, i, 100000);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(capacity_is_power_of_two),
	KUNIT_CASE(reservation_stops_at_depth),
	KUNIT_CASE(unread_counts_as_taken),
	KUNIT_CASE(wild_heads_are_ignored),
	KUNIT_CASE(depth_moves_within_capacity),
	KUNIT_CASE(index_wraps),
	KUNIT_CASE(hostile_program),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "exs_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);

MODULE_DESCRIPTION("KUnit tests of AF_EXS");
MODULE_LICENSE("GPL");
