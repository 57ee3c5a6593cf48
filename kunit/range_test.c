// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges of addresses that a program names, at the edges of what fits.
 */
#include <kunit/test.h>

#include "async/memory/range.h"

static void valid(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, exs_range_valid(0, 0));
	KUNIT_EXPECT_TRUE(test, exs_range_valid(PAGE_SIZE, 1));
	KUNIT_EXPECT_TRUE(test, exs_range_valid(0, LONG_MAX));
	KUNIT_EXPECT_FALSE(test, exs_range_valid(1, LONG_MAX));
	KUNIT_EXPECT_FALSE(test, exs_range_valid(U64_MAX, 1));
	KUNIT_EXPECT_FALSE(test, exs_range_valid(1, U64_MAX));
	KUNIT_EXPECT_FALSE(test, exs_range_valid(U64_MAX, U64_MAX));
}

struct inside_case {
	u64 addr, len;
	bool inside;
};

static void inside(struct kunit *test)
{
	const u64 base = 0x10010, size = 0x3000;
	const struct inside_case cases[] = {
		{ base, size, true },
		{ base, 0, true },
		{ base + size, 0, true },
		{ base + size - 1, 1, true },
		{ base + 1, size - 1, true },
		{ base - 1, 1, false },
		{ base, size + 1, false },
		{ base + 1, size, false },
		{ base + size, 1, false },
		{ base + size + 1, 0, false },
		{ 0, U64_MAX, false },
		{ base, U64_MAX, false },
		{ base + 1, U64_MAX, false },
		{ U64_MAX, base + 2, false },
		{ U64_MAX, U64_MAX, false },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, exs_range_inside(base, size, cases[i].addr,
							   cases[i].len),
				    cases[i].inside, "case %u", i);
}

static void pages(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, exs_range_pages(0, 0), 0UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(17, 0), 0UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(0, 1), 1UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(0, PAGE_SIZE), 1UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(0, PAGE_SIZE + 1), 2UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(1, PAGE_SIZE), 2UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(PAGE_SIZE - 1, 1), 1UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(PAGE_SIZE - 1, 2), 2UL);
	KUNIT_EXPECT_EQ(test, exs_range_pages(PAGE_SIZE - 1, PAGE_SIZE + 2), 3UL);
}

/* Every byte of a range is in a page of it, wherever range and region begin. */
static void page_of(struct kunit *test)
{
	u64 base, addr;

	for (base = 0x7000; base < 0x7000 + PAGE_SIZE; base += 511)
		for (addr = base; addr < base + 3 * PAGE_SIZE; addr += 255)
			KUNIT_ASSERT_EQ(test, exs_range_page(base, addr) + 1,
					exs_range_pages(base, addr - base + 1));
}

static void longest_operation(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, EXS_OP_LEN_MAX, (u64)MAX_RW_COUNT);
}

static struct kunit_case range_cases[] = {
	KUNIT_CASE(valid),
	KUNIT_CASE(inside),
	KUNIT_CASE(pages),
	KUNIT_CASE(page_of),
	KUNIT_CASE(longest_operation),
	{}
};

static struct kunit_suite range_suite = {
	.name = "exs_range",
	.test_cases = range_cases,
};

kunit_test_suite(range_suite);
