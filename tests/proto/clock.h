/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two engines and a clock: the cost of a transfer, without a machine.
 *
 * A discrete-event simulation. Each host has one processor and one link; struct clock_costs
 * has the duration of their actions. Programs send and receive as struct clock_load says. The
 * same run gives the same figures everywhere.
 */
#ifndef PROTO_TEST_CLOCK_H
#define PROTO_TEST_CLOCK_H

#include "proto/private.h"

#define US	1000ull
#define MS	(1000 * US)

/* Nanoseconds. */
struct clock_costs {
	u64 latency;	/* one way                                   */
	u64 wire;	/* of a KiB on the link                      */
	u64 packet;	/* of a message or WRITE, at either processor */
	u64 key;	/* of registering and invalidating           */
	u64 copy;	/* of a KiB from the ring                    */
	u64 wake;	/* from an event to the program's next call  */
	bool fence;	/* soft-RoCE: what registers a key waits until all before it is
			 * acknowledged, and so does everything behind it
			 */
};

struct clock_load {
	u32 sends, send_len;
	u32 recvs, recv_len;
	u32 recv_flags;
	u64 late;	/* ns from a receive's end until it is posted again, added to costs.wake */
	u32 burst;	/* number of receives posted again together */
	u64 think;	/* ns between a send's end and the next      */
	bool both_ways;
	bool messages;	/* SOCK_SEQPACKET                            */
};

enum clock_way { CLOCK_POLICY, CLOCK_RING, CLOCK_DIRECT };

struct clock_result {
	u64 ns, bytes;
	double rate;		/* bytes per microsecond, of the second half */
	double direct;		/* share of the bytes that were direct      */
	double unused;		/* share of the adverts                     */
	u64 adverts;
	u64 eager, ring;	/* bytes that went so                       */
};

#define CLOCK_HOSTS	2
#define CLOCK_OPS	256

/*
 * A run can be observed, and changed: clock_begin(), then clock_run() until a time, and
 * clock_result() for the events since clock_mark().
 */
struct clock;

struct clock *clock_begin(const struct clock_costs *costs, const struct clock_load *load,
			  u32 ring, enum clock_way way);
void clock_load(struct clock *c, const struct clock_load *load);
void clock_run(struct clock *c, u64 ns);
void clock_mark(struct clock *c);
struct clock_result clock_result(const struct clock *c);
struct exs_engine *clock_engine(struct clock *c, u32 host);
void clock_end(struct clock *c);

#endif
