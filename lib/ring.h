/* SPDX-License-Identifier: MIT */
/*
 * The consumer's side of a completion ring. Any number of threads and processes may take
 * entries at the same time; none waits for another.
 *
 *	kernel				consumer
 *	------				--------
 *	write entries[tail & mask]	read head
 *	store tail + 1 (release) (A)	read tail (acquire) (A)
 *	...				copy the entries wanted
 *	read head (acquire) (B)		head += n if unchanged (release) (B)
 *	reuse those entries
 *
 * (A) makes the entry visible before the tail that includes it. (B) makes the copies happen
 * before the kernel may overwrite the entries. If another consumer was faster, the head has
 * moved: the copies may be torn and are discarded. The head never goes back, and 64 bits
 * never wrap, so there is no ABA problem.
 */
#ifndef LIBEXS_RING_H
#define LIBEXS_RING_H

#include "lib.h"

struct exs_ring_view {
	const struct exs_ring *ring;
	struct exs_ring_head *head;
	const unsigned char *entries;
	uint32_t mask;
	uint32_t entry_size;
};

/*
 * Take at most @max entries, in order, with at most @may tokens; take none if these are
 * fewer than @min. Write their results to the program's structures. *@tokens: the number of
 * tokens among the first @max entries, including entries that were not taken. Return: the
 * number of entries taken; -1: the head is invalid (the program has overwritten it).
 */
EXS_HIDDEN long exs_ring_take(const struct exs_ring_view *v, exs_event_t *vec,
			      unsigned long min, unsigned long max,
			      unsigned long may, unsigned long *tokens);

/* The number of entries; -1 as above. */
EXS_HIDDEN long exs_ring_count(const struct exs_ring_view *v);

#endif
