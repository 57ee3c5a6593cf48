/* SPDX-License-Identifier: MIT */
/*
 * The mapping of a queue's descriptor.
 *
 * A lookup takes no lock and makes no system call: a table indexed by the descriptor has
 * the mapping. The epoch in the mapping's read-only page shows whether a descriptor of the
 * queue was closed since the last check. Only then is the kernel asked which queue the
 * descriptor is now. This covers close(2) without the library, reused numbers, dup2(2) and
 * queues received over a socket.
 */
#ifndef LIBEXS_MAP_H
#define LIBEXS_MAP_H

#include "ring.h"

struct exs_map {
	struct exs_ring_view view;
	uint64_t id;
	uint64_t epoch;		/* atomic: when @id was last confirmed */
	size_t ring_len;
	struct exs_map *next;	/* mappings that wait for their readers */
};

struct exs_slot;

struct exs_pin {
	struct exs_slot *slot;
	struct exs_map *map;
};

/* The mapping stays until exs_map_unpin(). Return: 0, or -1 and EBADF, EINVAL, ... */
EXS_HIDDEN int exs_map_pin(int fd, struct exs_pin *pin);
EXS_HIDDEN void exs_map_unpin(const struct exs_pin *pin);

/* Forget the mapping of @fd and close it. */
EXS_HIDDEN int exs_map_close(int fd);

/* Forget the mappings of descriptors that were closed with close(2). */
EXS_HIDDEN void exs_map_sweep(void);

#endif
