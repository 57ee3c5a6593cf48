// SPDX-License-Identifier: GPL-2.0
/* The stacks of all threads, when something does not end: it may never happen again. */
#include "e2e.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t read_text(const char *dir, const char *name, char *text, size_t size)
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return strlen(text);
}

/* Workers without work are no news. */
static void print_stack(const char *dir)
{
	char stack[4096], stat[512], *state;

	if (!read_text(dir, "stack", stack, sizeof(stack)) ||
	    !read_text(dir, "stat", stat, sizeof(stat)))
		return;
	state = strstr(stat, ") ");
	if (!state || state[2] == 'I' || strstr(stack, "] smpboot_thread_fn"))
		return;
	printf("%.*s\n%s", (int)(state + 3 - stat), stat, stack);
}

/* In @function; and below @caller, or not. */
static int count_workers(const char *function, const char *caller, bool below)
{
	char stack[4096], name[300];
	glob_t tasks;
	int found = 0;
	size_t i;

	if (glob("/proc/[0-9]*", GLOB_NOSORT, NULL, &tasks))
		return 0;
	for (i = 0; i < tasks.gl_pathc; i++)
		found += read_text(tasks.gl_pathv[i], "comm", name, sizeof(name)) && !strncmp(name, "kworker/", 8) &&
			read_text(tasks.gl_pathv[i], "stack", stack, sizeof(stack)) && strstr(stack, function) &&
			!strstr(stack, caller) == !below;
	globfree(&tasks);
	return found;
}

int workers_in(const char *function)
{
	return count_workers(function, "", true);
}

int workers_below(const char *caller, const char *function)
{
	return count_workers(function, caller, true);
}

int workers_not_below(const char *caller, const char *function)
{
	return count_workers(function, caller, false);
}

void print_stacks(void)
{
	glob_t threads;
	size_t i;
	int fd;

	if (!glob("/proc/[0-9]*/task/[0-9]*", GLOB_NOSORT, NULL, &threads)) {
		for (i = 0; i < threads.gl_pathc; i++)
			print_stack(threads.gl_pathv[i]);
		globfree(&threads);
	}
	fflush(stdout);
	/* The state of the processors goes to the kernel's log. */
	fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	dprintf(fd, "l");
	close(fd);
}
