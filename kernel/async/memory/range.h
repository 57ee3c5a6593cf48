/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arithmetic of address ranges that a program named: no sum overflows, whatever
 * the numbers (kunit/range_test.c).
 */
#ifndef EXS_ASYNC_RANGE_H
#define EXS_ASYNC_RANGE_H

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/types.h>

/* The most bytes of one operation, as of one read(2). */
#define EXS_OP_LEN_MAX	((u64)(INT_MAX & PAGE_MASK))

/* Whether a process could have memory at [addr, addr + len): it ends at LONG_MAX at most. */
static inline bool exs_range_valid(u64 addr, u64 len)
{
	u64 end;

	return !check_add_overflow(addr, len, &end) && end <= (u64)LONG_MAX;
}

/* Whether [addr, addr + len) lies in [base, base + size), which is valid. */
static inline bool exs_range_inside(u64 base, u64 size, u64 addr, u64 len)
{
	return addr >= base && len <= size && addr - base <= size - len;
}

/* Pages that a valid range touches. */
static inline unsigned long exs_range_pages(u64 addr, u64 len)
{
	return len ? ((addr + len - 1) >> PAGE_SHIFT) - (addr >> PAGE_SHIFT) + 1 : 0;
}

/* Which page of the range that starts at @base has @addr in it. */
static inline unsigned long exs_range_page(u64 base, u64 addr)
{
	return (addr >> PAGE_SHIFT) - (base >> PAGE_SHIFT);
}

#endif
