// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "fuzz.h"

static u64 state;

static u32 rnd(u32 n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

/* Bytes, with runs of small values, as there are in messages. */
static size_t fill(u8 *buf, size_t max)
{
	size_t i, len = rnd(max + 1);
	u32 range = 256;

	for (i = 0; i < len; i++) {
		if (!rnd(8))
			range = rnd(2) ? 256 : 1 + rnd(12);
		buf[i] = rnd(range);
	}
	return len;
}

/* NAME [COUNT [SEED]] */
int main(int argc, char **argv)
{
	static u8 buf[2048];
	u32 count = argc > 1 ? atoi(argv[1]) : 100000, i;
	const char *name = strrchr(argv[0], '/');

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x9e3779b97f4a7c15ull;
	for (i = 0; i < count; i++) {
		size_t len = fill(buf, i % 3 ? sizeof(buf) : 100);
		u8 *exact = malloc(len ? len : 1);

		/* So that the sanitizer sees the first byte beyond. */
		memcpy(exact, buf, len);
		LLVMFuzzerTestOneInput(exact, len);
		free(exact);
	}
	printf("ok   %s: %u inputs\n", name ? name + 1 : argv[0], count);
	return 0;
}
