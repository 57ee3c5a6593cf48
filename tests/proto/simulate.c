// SPDX-License-Identifier: GPL-2.0
/*
 * Random runs of the world at sizes that no search can exhaust: up to 64 sends
 * and receives each way, kilobytes, both directions, few or many credits. For
 * the sanitizers, and for defects that appear only at size.
 *
 *	simulate [COUNT [FIRST-SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static u64 state;

static u32 rnd(u32 n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (state >> 20) % n : 0;
}

/* Sizes of very different magnitudes. */
static u32 size(u32 most)
{
	u32 limit = 1u << rnd(12);

	return rnd(min(most, limit) + 1);
}

static void random_recv(struct side_plan *plan, u32 i)
{
	u32 kind = rnd(4);

	plan->recv[i].len = size(BUF_MAX);
	if (!scenario.seqpacket && !plan->recv[i].len)
		plan->recv[i].len = 1;
	plan->recv[i].flags = kind < 2 ? EXS_RCV_DIRECT : kind == 2 ? 0 :
			      scenario.seqpacket ? EXS_RCV_FETCH : EXS_RCV_READER;
	plan->recv[i].window = plan->recv[i].len;
	if (scenario.seqpacket)
		return;
	if (!rnd(3))
		plan->recv[i].flags |= EXS_RCV_WAITALL;
	if (!rnd(3))
		plan->recv[i].window = 1 + rnd(plan->recv[i].len);
}

static void random_side(struct side_plan *plan)
{
	u32 i;

	plan->nsends = rnd(OPS_MAX + 1);
	plan->nrecvs = rnd(OPS_MAX + 1);
	for (i = 0; i < plan->nsends; i++) {
		plan->send_len[i] = scenario.seqpacket ? size(rnd(2) ? 3000 : 60) : 1 + size(3000);
		/* Only messages of one length are joined. */
		if (i && rnd(2))
			plan->send_len[i] = plan->send_len[i - 1];
	}
	for (i = 0; i < plan->nrecvs; i++)
		random_recv(plan, i);
	plan->cancels = rnd(2) ? rnd(20) : 0;
	plan->send_cancels = rnd(2) ? rnd(10) : 0;
	plan->fin = rnd(2);
	plan->nsizes = rnd(2) ? rnd(OPS_MAX) : 0;
	for (i = 0; i < plan->nsizes; i++)
		plan->size[i] = EXS_WIRE_CREDITS_MIN + rnd(30);
}

static void random_scenario(void)
{
	memset(&scenario, 0, sizeof(scenario));
	scenario.seqpacket = rnd(2);
	scenario.ring = rnd(3) ? 1 + size(RING_BUF - 1) : RING_BUF;
	scenario.credits = EXS_WIRE_CREDITS_MIN + rnd(20);
	scenario.eager_space = EXS_WIRE_EAGER_MIN + size(4000);
	scenario.eager_max = size(EXS_WIRE_DATA_MAX);
	scenario.ring_max = rnd(3) ? size(RING_BUF) : 0;
	scenario.ring_overhead = rnd(70);
	scenario.channel = 1 + rnd(CHANNEL_MAX);
	scenario.piece = 1 + size(4000);
	scenario.adverts = 1 + rnd(EXS_ADVERTS_MAX);
	scenario.prompt_tx = rnd(2);
	scenario.atomic_copy = rnd(2);
	scenario.confirm = rnd(2);
	scenario.invalidate = rnd(2);
	scenario.asks = rnd(2);
	scenario.holds = rnd(2);
	scenario.eagerly = rnd(2);
	if (scenario.eagerly && !scenario.seqpacket)
		scenario.eager_space = 1 + size(RING_BUF - 1);
	random_side(&scenario.side[0]);
	random_side(&scenario.side[1]);
}

/* Only attempts to transmit are left, and none succeeds. */
static bool quiet(const step_t *steps, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!step_is_tx(steps[i]))
			return false;
	for (i = 0; i < n; i++)
		if (!world_do(steps[i]) || !world_idle)
			return false;
	return true;
}

static bool counters_ok(const struct side *s)
{
	const struct exs_engine_stats *st = &s->e.stats;

	if (scenario.seqpacket)
		return st->direct_writes + st->eager_msgs + st->indirect_writes + st->joined_sends ==
		       s->sent;
	return st->direct_bytes + st->indirect_bytes + st->eager_bytes == s->sent;
}

static u64 total[7];

static bool run(u64 seed)
{
	step_t steps[STEPS_MAX];
	u32 n, internal, i, patience = 0;

	state = seed * 0x9e3779b97f4a7c15ull + 1;
	random_scenario();
	world_now = 1;
	world_start();
	for (;;) {
		n = world_steps(steps, &internal);
		world_now += rnd(1u << rnd(20));
		if (quiet(steps, n) || world_bad[0]) {
			/* Nothing may wait for ever. */
			if (world_bad[0] || patience++ > 3)
				break;
			world_wait(1ull << 42);
			continue;
		}
		patience = 0;
		/* Programs are sometimes much slower than the network. */
		if (internal && rnd(4))
			n = internal;
		if (!world_do(steps[rnd(n)]))
			return false;
		total[3]++;
	}
	if (world_bad[0] || !world_quiescent_ok())
		return false;
	for (i = 0; i < 2; i++) {
		total[0] += world.side[i].e.stats.direct_bytes;
		total[1 + 3 * scenario.seqpacket] += world.side[i].e.stats.indirect_bytes;
		total[2] += world.side[i].e.stats.eager_bytes;
		total[5 + scenario.seqpacket] += world.side[i].e.stats.joined_sends;
		if (!counters_ok(&world.side[i])) {
			snprintf(world_bad, sizeof(world_bad), "counters do not add up");
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	u64 count = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000;
	u64 first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, i;

	world_wire = true;
	for (i = first; i < first + count; i++) {
		if (!run(i)) {
			printf("FAIL simulate: seed %llu: %s\n", (unsigned long long)i,
			       world_bad);
			return 1;
		}
	}
	printf("ok   simulate: %llu runs, %llu steps, bytes direct %llu ring %llu eager %llu",
	       (unsigned long long)count, (unsigned long long)total[3], (unsigned long long)total[0],
	       (unsigned long long)total[1], (unsigned long long)total[2]);
	printf(" in rings of messages %llu, joined %llu, messages %llu\n", (unsigned long long)total[4],
	       (unsigned long long)total[5], (unsigned long long)total[6]);
	return 0;
}
