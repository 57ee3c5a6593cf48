// SPDX-License-Identifier: MIT
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LIMIT_SECONDS	300

const struct test *current;

static int passed, failed, skipped;

static int run_in_child(const struct test *t)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(LIMIT_SECONDS);
		t->fn();
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run(const struct test *t, const char *only)
{
	int ret;

	if (only && !strstr(t->name, only))
		return;
	current = t;
	ret = run_in_child(t);
	passed += ret == 0;
	skipped += ret == 77;
	failed += ret != 0 && ret != 77;
	/* SKIP() has printed it, with the reason. */
	if (ret != 77)
		printf("%s %s\n", ret == 0 ? "ok  " : "FAIL", t->name);
}

int main(int argc, char **argv)
{
	const struct test *const sets[] = {
		queue_tests, life_tests, thread_tests, call_tests, msg_tests,
		file_tests, addr_tests,
		tool_tests, rule_tests,
	};
	const struct test *t;
	size_t i;

	/* Close inherited descriptors: tests know which number comes next. */
	close_range(3, ~0U, 0);
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		for (t = sets[i]; t->name; t++)
			run(t, argc > 1 ? argv[1] : NULL);
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed != 0;
}
