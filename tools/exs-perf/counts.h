/* SPDX-License-Identifier: MIT */
#ifndef EXS_PERF_COUNTS_H
#define EXS_PERF_COUNTS_H

#include <stdint.h>

enum {
	COUNT_DIRECT, COUNT_INDIRECT, COUNT_EAGER,	/* bytes that this end sent so   */
	COUNT_ADVERTS,					/* receives that it advertised   */
	COUNT_ADVERTS_UNUSED,				/* and the peer's that it let go */
	COUNT_CREDIT_STALLS, COUNT_RING_STALLS,
	COUNT_INVALIDATIONS,
	COUNT_PACKETS,					/* sent by its RDMA devices      */
	COUNT_SWITCHES,					/* of its threads that slept     */
	COUNT_CPU,					/* us that its processors worked */
	COUNTS
};

struct counts {
	uint64_t n[COUNTS];
};

/* Between the two. */
void counts_begin(struct counts *c);
void counts_end(struct counts *c);

/* To little-endian, and back. */
void counts_swap(struct counts *c);

/*
 * On the line of a result: how @operations went, and what each took at either end; without
 * @server as far as this end knows.
 */
void counts_print(const struct counts *client, const struct counts *server, uint64_t operations);

#endif
