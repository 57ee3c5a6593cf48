/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters: live objects, and every decision that refuses, retries, falls back or
 * resets. One row each, in live.h and counted.h; /proc/net/exs prints them by name.
 * The counting network namespace is that of the socket, or of the process that made
 * the object: net.h.
 */
#ifndef EXS_CORE_STATS_H
#define EXS_CORE_STATS_H

#include <linux/percpu.h>

#include "net.h"

#define X(name) EXS_LIVE_##name,
enum exs_live {
#include "live.h"
	EXS_LIVE_MAX
};

#undef X
#define X(name) EXS_COUNT_##name,
enum exs_count {
#include "counted.h"
	EXS_COUNT_MAX
};

#undef X

/* Counters of one processor in one network namespace; only sums are meaningful. */
struct exs_counters {
	long live[EXS_LIVE_MAX];
	long count[EXS_COUNT_MAX];
};

/* Any context. @xn: struct exs_net. exs_live(xn, ops, -1), exs_count(xn, revokes, 1) */
#define exs_live(xn, name, n)	exs_add((xn)->counters->live[EXS_LIVE_##name], n)
#define exs_count(xn, name, n)	exs_count_at(xn, EXS_COUNT_##name, n)
#define exs_count_at(xn, i, n)	exs_add((xn)->counters->count[i], n)

/* On some architectures this_cpu_add() computes its operand where nothing may sleep. */
#define exs_add(counter, n)						\
do {									\
	long exs_add_n = (n);						\
									\
	this_cpu_add(counter, exs_add_n);				\
} while (0)

#endif
