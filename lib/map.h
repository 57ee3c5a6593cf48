/* SPDX-License-Identifier: MIT */
/*
 * The mapping that belongs to a queue's descriptor.
 *
 * Looking one up takes no lock and makes no system call: a table indexed by
 * the descriptor holds the mapping, and the epoch in the mapping's own
 * read-only page tells whether any descriptor of that queue was closed since
 * the mapping was last known to be right. Only then is the kernel asked which
 * queue the descriptor is now. That covers close(2) behind the library's back,
 * reused numbers, dup2(2) and queues that came over a socket, in one place.
 */
#ifndef LIBEXS_MAP_H
#define LIBEXS_MAP_H

#include "ring.h"

struct exs_map {
	struct exs_ring_view view;
	uint64_t id;
	uint64_t epoch;		/* atomic: when @id was last confirmed */
	size_t ring_len;
	struct exs_map *next;	/* of those that wait for their readers */
};

struct exs_slot;

struct exs_pin {
	struct exs_slot *slot;
	struct exs_map *map;
};

/* Until exs_map_unpin() the mapping stays. 0, or -1 and EBADF, EINVAL, ... */
EXS_HIDDEN int exs_map_pin(int fd, struct exs_pin *pin);
EXS_HIDDEN void exs_map_unpin(const struct exs_pin *pin);

/* Forget the mapping of @fd and close it. */
EXS_HIDDEN int exs_map_close(int fd);

/* Forget the mappings of descriptors that were closed with close(2). */
EXS_HIDDEN void exs_map_sweep(void);

#endif
