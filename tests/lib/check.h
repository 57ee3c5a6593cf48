/* SPDX-License-Identifier: MIT */
/*
 * A named case runs in a process of its own, with a time limit. CHECK() ends
 * it. A case that cannot run here calls SKIP(), if the file SKIPS has the reason.
 */
#ifndef TESTS_LIB_CHECK_H
#define TESTS_LIB_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) do {							\
	if (!(x)) {							\
		fprintf(stderr, "%s:%d: %s: errno %m\n", __FILE__,	\
			__LINE__, #x);					\
		exit(1);						\
	}								\
} while (0)

#define SKIP(why) do {							\
	printf("skip %s: %s\n", current->name, why);			\
	exit(77);							\
} while (0)

struct test {
	const char *name;
	void (*fn)(void);
};

extern const struct test *current;

extern const struct test queue_tests[], life_tests[], thread_tests[],
			 call_tests[], msg_tests[], file_tests[], addr_tests[],
			 tool_tests[], rule_tests[];

#endif
