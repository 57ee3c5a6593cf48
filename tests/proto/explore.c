// SPDX-License-Identifier: GPL-2.0
/*
 * Exhaustive search over everything that two programs, two engines and two
 * channels can do in a scenario: depth first, each state once. A cycle is an
 * exchange that never ends, for every scenario is finite. See README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "explore.h"

u64 exs_rules_off;

#define ON_PATH		(1ull << 63)

/* The states seen: hashes, the top bit set while on the path. */
static struct {
	u64 *slot;
	u64 size, count;
} seen;

struct frame {
	struct world world;
	step_t steps[STEPS_MAX];
	u32 nsteps, ninternal, next, taken;
	u64 hash;
};

static struct frame *path;
static u32 depth, max_depth;
static bool at_end;			/* the world is the path's last one */
static u64 transitions;

#define SEEN_FIRST	(1u << 20)

/* Of zeros. It is accessed at random, which small pages make slow. */
static void seen_alloc(u64 size)
{
	seen.size = size;
	seen.slot = mmap(NULL, size * sizeof(u64), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (seen.slot == MAP_FAILED) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	madvise(seen.slot, size * sizeof(u64), MADV_HUGEPAGE);
}

static void seen_reset(void)
{
	if (seen.slot)
		munmap(seen.slot, seen.size * sizeof(u64));
	seen_alloc(SEEN_FIRST);
	seen.count = 0;
}

static u64 *seen_find(u64 hash)
{
	u64 i = hash & (seen.size - 1);

	while (seen.slot[i] && (seen.slot[i] & ~ON_PATH) != hash)
		i = (i + 1) & (seen.size - 1);
	return &seen.slot[i];
}

static void seen_grow(void)
{
	u64 *old = seen.slot, n = seen.size, i;

	seen_alloc(4 * n);
	for (i = 0; i < n; i++)
		if (old[i])
			*seen_find(old[i] & ~ON_PATH) = old[i];
	munmap(old, n * sizeof(u64));
}

static u64 state_hash(void)
{
	u64 hash = world_hash() & ~ON_PATH;

	return hash ? hash : 1;
}

/* Append the present world to the path. */
static void push(u64 hash)
{
	struct frame *f;

	if (seen.count * 2 >= seen.size)
		seen_grow();
	*seen_find(hash) = hash | ON_PATH;
	seen.count++;
	if (depth == max_depth) {
		max_depth = max_depth ? max_depth * 2 : 128;
		path = realloc(path, max_depth * sizeof(*path));
	}
	f = &path[depth++];
	f->world = world;
	f->nsteps = world_steps(f->steps, &f->ninternal);
	f->next = 0;
	f->taken = 0;
	f->hash = hash;
	at_end = true;
}

static void pop(void)
{
	struct frame *f = &path[--depth];

	*seen_find(f->hash) &= ~ON_PATH;
}

/* The result of the step: a new state, a known one, or one on the path. */
static bool enter(struct frame *f)
{
	u64 hash;

	if (world_idle)
		return true;
	f->taken++;
	hash = state_hash();
	if (*seen_find(hash) & ON_PATH) {
		snprintf(world_bad, sizeof(world_bad), "an exchange without end");
		return false;
	}
	if (!*seen_find(hash))
		push(hash);
	return true;
}

/* Take one step from the end of the path. */
static bool advance(void)
{
	struct frame *f = &path[depth - 1];

	if (!at_end)
		world = f->world;
	if (f->next == f->ninternal && !f->taken) {
		f->taken = 1;
		if (!world_quiescent_ok())
			return false;
	}
	at_end = false;
	if (f->next == f->nsteps) {
		pop();
		return true;
	}
	transitions++;
	if (!world_do(f->steps[f->next++]))
		return false;
	return enter(f);
}

static void print_path(void)
{
	u32 i;

	for (i = 0; i < depth; i++)
		if (path[i].next)
			printf("%4u %s\n", i, step_name(path[i].steps[path[i].next - 1]));
	printf("     %s\n", world_bad);
}

/* Whether the scenario holds under every order of events. */
bool explore(const char *text, struct explored *result, bool verbose)
{
	clock_t start = clock();
	bool ok = true;

	if (scenario_parse(&scenario, text)) {
		fprintf(stderr, "bad scenario: %s\n", text);
		exit(2);
	}
	seen_reset();
	depth = 0;
	transitions = 0;
	world_start();
	push(state_hash());
	while (ok && depth)
		ok = advance();
	if (!ok && verbose)
		print_path();
	result->states = seen.count;
	result->transitions = transitions;
	result->seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	return ok;
}
