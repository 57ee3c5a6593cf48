/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The account of a completion ring's slots: pure arithmetic (kunit/ring_test.c).
 *
 *            head              tail
 *             |   unread        |    reserved       free, up to depth
 *   ----------+-----------------+------------+-----------------------
 *    the program has these     operations in flight
 *
 * A slot is reserved when an operation is accepted and becomes an entry when it
 * completes; so unread + reserved only grows by a reservation, which is refused
 * above the depth. As the depth is at most the capacity, an entry that was not
 * read is never overwritten.
 *
 * Positions count for ever (64 bits); the ring's index is position & mask.
 *
 * The program and the kernel share head and tail only. Barriers:
 *
 *   kernel (producer)                      program (consumer)
 *
 *   head = load_acquire(head)  (D)         tail = load_acquire(tail)  (B)
 *   STORE entry                            LOAD entries
 *   store_release(tail)        (A)         cmpxchg_release(head)      (C)
 *
 * (A) pairs with (B): a thread that sees the new tail sees the entry.
 * (C) pairs with (D): the kernel reuses a slot only after the thread that freed
 *     it has copied the entry out.
 *
 * The kernel does not trust the program: it ignores a head outside [last head,
 * tail]. A head moved too far discards the program's own events, and does no
 * other harm.
 */
#ifndef EXS_ASYNC_RING_H
#define EXS_ASYNC_RING_H

#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <linux/exs.h>

/**
 * struct exs_slots - the kernel's own account of a ring
 * @head: the last one of the program's that was believed
 * @tail: entries posted, ever
 * @reserved: slots of operations in flight, of their timeouts, of unclaimed tokens
 * @depth: most of unread and reserved together
 * @capacity: entries of the ring, a power of two
 */
struct exs_slots {
	u64 head;
	u64 tail;
	u32 reserved;
	u32 depth;
	u32 capacity;
};

/* Capacity of a ring that was asked for with @depth. */
static inline u32 exs_slots_capacity(u32 depth)
{
	return max_t(u32, roundup_pow_of_two(depth), EXS_QUEUE_CAPACITY_MIN);
}

static inline void exs_slots_init(struct exs_slots *s, u32 depth)
{
	*s = (struct exs_slots) {
		.depth = depth,
		.capacity = exs_slots_capacity(depth),
	};
}

static inline u32 exs_slots_unread(const struct exs_slots *s)
{
	return s->tail - s->head;
}

/* The program says that it has read up to @head. Return: whether that is possible. */
static inline bool exs_slots_consume(struct exs_slots *s, u64 head)
{
	if (head - s->head > s->tail - s->head)
		return false;
	s->head = head;
	return true;
}

/* Go back to @head: the entries that the program has read after it are handled later. */
static inline void exs_slots_unconsume(struct exs_slots *s, u64 head)
{
	s->head = head;
}

static inline bool exs_slots_reserve(struct exs_slots *s)
{
	if (exs_slots_unread(s) + s->reserved >= s->depth)
		return false;
	s->reserved++;
	return true;
}

/* More are reserved than fit: a claimed token, which had no slot, needs one again. */
static inline bool exs_slots_overfull(const struct exs_slots *s)
{
	return exs_slots_unread(s) + s->reserved > s->capacity;
}

static inline void exs_slots_unreserve(struct exs_slots *s)
{
	s->reserved--;
}

/* The index of the entry that a reserved slot becomes. */
static inline u32 exs_slots_next(const struct exs_slots *s)
{
	return s->tail & (s->capacity - 1);
}

/* It was written. */
static inline void exs_slots_posted(struct exs_slots *s)
{
	s->reserved--;
	s->tail++;
}

/* Return: 0, -EINVAL (not possible in this ring), -EBUSY (more are in use). */
static inline int exs_slots_set_depth(struct exs_slots *s, u64 depth)
{
	if (!depth || depth > s->capacity)
		return -EINVAL;
	if (exs_slots_unread(s) + s->reserved > depth)
		return -EBUSY;
	s->depth = depth;
	return 0;
}

#endif
