// SPDX-License-Identifier: GPL-2.0
/* The module's counters and its sysctls. */
#include "e2e.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROWS_MAX 128

struct row {
	char name[40];
	long value;
};

struct snapshot {
	int count;
	struct row rows[ROWS_MAX];
};

/* Rows of this kind are zero when the module is not in use. */
#define LIVE "live_"

static struct snapshot mark;

/* The module counts in each network namespace: the tests use only these. */
static int counters_fds[NAMESPACES_MAX], counters_count;

static void open_counters(void *arg)
{
	(void)arg;
	counters_fds[counters_count] = open("/proc/thread-self/net/exs", O_RDONLY | O_CLOEXEC);
	if (counters_fds[counters_count] >= 0)
		counters_count++;
}

/* The rows of all namespaces are the same, in the same order. */
static void add_counters(struct snapshot *s, int fd, bool first)
{
	char text[16384], *line, *rest;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int count = 0;

	text[n > 0 ? n : 0] = 0;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct row *row = &s->rows[count];
		long value;

		if (count == ROWS_MAX || sscanf(line, "%39s %ld", row->name, &value) != 2)
			continue;
		row->value = first ? value : row->value + value;
		count++;
	}
	s->count = count;
}

/* Opened once: the program may enter namespaces from where the others are out of reach. */
static void take(struct snapshot *s)
{
	int i;

	if (!counters_count)
		in_each_namespace(open_counters, NULL);
	s->count = 0;
	for (i = 0; i < counters_count; i++)
		add_counters(s, counters_fds[i], !i);
}

static bool find(const struct snapshot *s, const char *name, long *value)
{
	int i;

	for (i = 0; i < s->count; i++) {
		if (strcmp(s->rows[i].name, name))
			continue;
		*value = s->rows[i].value;
		return true;
	}
	return false;
}

static long value_in(const struct snapshot *s, const char *name)
{
	long value;

	/* A name that is not there must not look like a zero. */
	check(find(s, name, &value), "/proc/net/exs has no row %s", name);
	return value;
}

long counter(const char *name)
{
	struct snapshot s;

	take(&s);
	return value_in(&s, name);
}

/* Not of a snapshot: the caller may be in any namespace. */
long counter_here(const char *name)
{
	int fd = open("/proc/thread-self/net/exs", O_RDONLY | O_CLOEXEC);
	struct snapshot s = {};

	check(fd >= 0, "no /proc/net/exs: %s", errno_name(errno));
	add_counters(&s, fd, true);
	close(fd);
	return value_in(&s, name);
}

long delta(const char *name)
{
	return counter(name) - value_in(&mark, name);
}

void wait_delta(const char *name, long at_least)
{
	double end = now() + limit_ms() / 1e3;

	while (delta(name) < at_least) {
		check(now() < end, "%s rose by %ld, not by %ld", name, delta(name), at_least);
		breathe();
	}
}

void counters_mark(void)
{
	take(&mark);
}

/* A live object that is not as it was; NULL: all are. */
static const struct row *leaked(const struct snapshot *s, long *was)
{
	int i;

	for (i = 0; i < s->count; i++) {
		if (strncmp(s->rows[i].name, LIVE, strlen(LIVE)))
			continue;
		*was = 0;
		find(&mark, s->rows[i].name, was);
		/* Less than before: an object that another case left is gone. */
		if (s->rows[i].value > *was)
			return &s->rows[i];
	}
	return NULL;
}

/* Whether all objects are back to where they were, and each operation had its event. */
bool counters_settled(char *why, size_t size)
{
	long was, submitted = 0, posted = -1, discarded = 0, ops = 0;
	const struct row *row;
	struct snapshot s;

	take(&s);
	row = leaked(&s, &was);
	if (row) {
		snprintf(why, size, "leak: %s is %ld, was %ld", row->name, row->value, was);
		return false;
	}
	find(&s, "ops_submitted", &submitted);
	find(&s, "ops_posted", &posted);
	find(&s, "ops_discarded", &discarded);
	find(&s, LIVE "ops", &ops);
	if (submitted == posted + discarded + ops)
		return true;
	snprintf(why, size, "ops_submitted %ld is not ops_posted %ld + ops_discarded %ld + live_ops %ld",
		 submitted, posted, discarded, ops);
	return false;
}

/* Whether a process of the case changed a sysctl: all of them share it. */
static bool *sysctls_changed;

static int open_sysctl(const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/exs/%s", name);
	fd = open(path, flags | O_CLOEXEC);
	check(fd >= 0, "%s: %s", path, errno_name(errno));
	return fd;
}

long read_sysctl(const char *name)
{
	int fd = open_sysctl(name, O_RDONLY);
	char text[32] = "";

	must(read(fd, text, sizeof(text) - 1));
	close(fd);
	return atol(text);
}

struct setting {
	const char *name;
	long value;
};

static void write_setting(void *arg)
{
	const struct setting *s = arg;
	int fd = open_sysctl(s->name, O_WRONLY);

	check(dprintf(fd, "%ld\n", s->value) > 0, "sysctl net.exs.%s = %ld: %s", s->name,
	      s->value, errno_name(errno));
	close(fd);
}

void write_sysctl_here(const char *name, long value)
{
	struct setting s = { name, value };

	if (sysctls_changed)
		*sysctls_changed = true;
	write_setting(&s);
}

void write_sysctl(const char *name, long value)
{
	struct setting s = { name, value };

	if (sysctls_changed)
		*sysctls_changed = true;
	/* Of the whole machine, so only the initial namespace has it. */
	if (!strcmp(name, "max_user_workers") || !strcmp(name, "max_peer_pages"))
		write_setting(&s);
	else
		in_each_namespace(write_setting, &s);
}

/* All of net.exs.* as a program finds it, so that a case's changes do not outlive it. */
static struct snapshot sysctls;

static void keep_sysctl(const char *name)
{
	struct row *row = &sysctls.rows[sysctls.count];

	if (*name == '.' || strlen(name) >= sizeof(row->name) || sysctls.count == ROWS_MAX)
		return;
	strcpy(row->name, name);
	row->value = read_sysctl(name);
	sysctls.count++;
}

void sysctls_save(void)
{
	struct dirent *entry;
	DIR *dir;

	if (sysctls_changed)
		return;
	dir = opendir("/proc/sys/net/exs");
	if (!dir)
		return;
	sysctls_changed = mmap(NULL, sizeof(*sysctls_changed), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(sysctls_changed != MAP_FAILED, "mmap: %s", errno_name(errno));
	while ((entry = readdir(dir)))
		keep_sysctl(entry->d_name);
	closedir(dir);
}

void sysctls_restore(void)
{
	int i;

	if (!sysctls_changed || !*sysctls_changed)
		return;
	/* Whatever this namespace has: the case may have changed that of another. */
	for (i = 0; i < sysctls.count; i++)
		write_sysctl(sysctls.rows[i].name, sysctls.rows[i].value);
	*sysctls_changed = false;
}
