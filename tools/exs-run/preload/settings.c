// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/exs.h>

#include "preload.h"

static struct rules rules;
static int protocol = EXS_PROTOCOL_DEFAULT;
static bool tells;
static struct stat error_output;	/* a daemon may replace it later */

static void read_rules(void)
{
	const char *text = secure_getenv("EXS_RULES");
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n < 0 ? 0 : n] = 0;
	if (rules_parse(&rules, text ?: "", path))
		return;
	dprintf(STDERR_FILENO, "exs-run: EXS_RULES: %s: all sockets are TCP\n", rules.why);
	rules_parse(&rules, "tcp", path);
}

static void read_all(void)
{
	const char *number = secure_getenv("EXS_PROTOCOL");
	const char *debug = secure_getenv("EXS_DEBUG");

	if (number)
		protocol = atoi(number);
	tells = debug && *debug && strcmp(debug, "0") &&
		!fstat(STDERR_FILENO, &error_output);
	read_rules();
}

/* When the library is loaded, or earlier, with the first socket. */
static void __attribute__((constructor)) settings_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, read_all);
	errno = saved;
}

const struct rules *settings_rules(void)
{
	settings_init();
	return &rules;
}

int settings_protocol(void)
{
	settings_init();
	return protocol;
}

bool settings_tells(void)
{
	return tells;
}

static bool is_error_output(void)
{
	struct stat now;

	return !fstat(STDERR_FILENO, &now) && now.st_dev == error_output.st_dev &&
	       now.st_ino == error_output.st_ino;
}

void settings_tell_program(const char *path, const char *why)
{
	char line[PATH_MAX + 256];
	int n;

	if (!why || !tells || !is_error_output())
		return;
	/* dprintf(3) takes locks, and another thread may have had them when this process was made. */
	n = snprintf(line, sizeof(line), "exs-run: %s[%d]: %s: nothing is preloaded: %s\n",
		     program_invocation_short_name, getpid(), path, why);
	if (write(STDERR_FILENO, line, n < (int)sizeof(line) ? n : (int)sizeof(line)) < 0)
		return;
}

void settings_tell(int fd, bool exs, const char *what, const char *why)
{
	int saved = errno, state;

	/* A cancelled thread would lose the new descriptor. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (tells && is_error_output())
		dprintf(STDERR_FILENO, "exs-run: %s[%d]: socket %d: %s: %s%s%s\n",
			program_invocation_short_name, getpid(), fd, exs ? "EXS" : "TCP",
			what, why ? ": " : "", why ?: "");
	pthread_setcancelstate(state, NULL);
	errno = saved;
}
