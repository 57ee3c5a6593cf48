/* SPDX-License-Identifier: MIT */
#ifndef EXS_PERF_COUNTS_H
#define EXS_PERF_COUNTS_H

#include <stdint.h>

enum {
	COUNT_DIRECT, COUNT_INDIRECT, COUNT_EAGER,	/* bytes sent in each way        */
	COUNT_ADVERTS,					/* receives that it advertised   */
	COUNT_ADVERTS_UNUSED,				/* the peer's, not used          */
	COUNT_CREDIT_STALLS, COUNT_RING_STALLS,
	COUNT_INVALIDATIONS,
	COUNT_PACKETS,					/* sent by its RDMA devices      */
	COUNT_SWITCHES,					/* how often its threads slept   */
	COUNT_CPU,					/* us of its processors          */
	COUNTS
};

struct counts {
	uint64_t n[COUNTS];
};

/* The difference of two. */
void counts_begin(struct counts *c);
void counts_end(struct counts *c);

/* To little-endian, and back. */
void counts_swap(struct counts *c);

/*
 * Print counters for the line of a result, per operation where useful. @server may be
 * NULL: then only this end's.
 */
void counts_print(const struct counts *client, const struct counts *server, uint64_t operations);

#endif
