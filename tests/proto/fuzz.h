/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fuzzer is an LLVMFuzzerTestOneInput(). With clang, -fsanitize=fuzzer drives
 * it; with gcc, fuzz_main.c does, with random inputs that are the same each time.
 */
#ifndef PROTO_TEST_FUZZ_H
#define PROTO_TEST_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "proto/private.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(cond) do {							\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		abort();						\
	}								\
} while (0)

#endif
