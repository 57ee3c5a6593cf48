/* SPDX-License-Identifier: GPL-2.0 */
/* Unit tests: a table of functions, each with a line of result. */
#ifndef PROTO_TEST_TEST_H
#define PROTO_TEST_TEST_H

#include <stdio.h>

#include "proto/private.h"

static int test_failed;

#define EXPECT(cond) do {						\
	if (!(cond)) {							\
		printf("%s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		test_failed = 1;					\
	}								\
} while (0)

struct test {
	const char *name;
	void (*run)(void);
};

static inline int run_tests(const char *suite, const struct test *tests, u32 n)
{
	int failed = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		test_failed = 0;
		tests[i].run();
		printf("%s %s: %s\n", test_failed ? "FAIL" : "ok  ", suite, tests[i].name);
		failed |= test_failed;
	}
	return failed;
}

#define RUN_TESTS(suite, tests) \
	run_tests(suite, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
