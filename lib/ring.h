/* SPDX-License-Identifier: MIT */
/*
 * The consumer's side of a completion ring. Any number of threads and
 * processes may take from one ring at once; nobody ever waits for another.
 *
 *	kernel				consumer
 *	------				--------
 *	write entries[tail & mask]	read head
 *	store tail + 1 (release) (A)	read tail (acquire) (A)
 *	...				copy the entries wanted
 *	read head (acquire) (B)		head += n if unchanged (release) (B)
 *	reuse those entries
 *
 * (A) makes the entry visible before the tail that covers it. (B) makes the
 * copies happen before the kernel may write over them. Another consumer that
 * was faster has moved the head: what was copied may be torn and is thrown
 * away. The head never goes back, 64 bits never wrap: there is no ABA.
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
 * Take at most @max entries, in order, up to the first that carries one token more
 * than @may, none if those are fewer than @min, and write their results to the
 * program's structures. *@tokens: how many there are among the first @max, those
 * that were not taken for it too.
 * Return: how many were taken; -1: the head is nonsense (somebody wrote on it).
 */
EXS_HIDDEN long exs_ring_take(const struct exs_ring_view *v, exs_event_t *vec,
			      unsigned long min, unsigned long max,
			      unsigned long may, unsigned long *tokens);

/* How many are there; -1 as above. */
EXS_HIDDEN long exs_ring_count(const struct exs_ring_view *v);

#endif
