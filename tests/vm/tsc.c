// SPDX-License-Identifier: GPL-2.0
/* Prints the rate of this machine's time stamp counter in kHz. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
	uint64_t ns, ticks;
};

/* Both clocks at the same moment: of several readings the one between whose ends the least time passed. */
static struct moment now(void)
{
	uint64_t least = UINT64_MAX;
	struct moment best = {};

	for (int i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		after = __rdtsc();
		if (after - before < least) {
			least = after - before;
			best.ns = t.tv_sec * 1000000000ULL + t.tv_nsec;
			best.ticks = before + least / 2;
		}
	}
	return best;
}

int main(void)
{
	struct moment start = now(), end;

	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	end = now();
	printf("%.0f\n", (end.ticks - start.ticks) * 1e6 / (end.ns - start.ns));
	return 0;
}
