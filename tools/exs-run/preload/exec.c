// SPDX-License-Identifier: MIT
/*
 * With -v, programs into which nothing will be preloaded are reported. The C library's functions
 * call its own execve(), not this one, so each of them has a wrapper. It calls the next function
 * of its name, which may be another library's.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include "../run.h"
#include "preload.h"

/* No thread is cancelled here: not all of these functions allow that. */
static void __attribute__((noinline)) look_at(const char *name, bool search)
{
	int saved = errno, state;
	char path[PATH_MAX];

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (search)
		name = find_program(name, path, sizeof(path));
	settings_tell_program(name, why_no_preload(name));
	pthread_setcancelstate(state, NULL);
	errno = saved;
}

static void tell(const char *path)
{
	if (settings_tells())
		look_at(path, false);
}

/* Of a name that is looked up in PATH. */
static void tell_found(const char *name)
{
	if (settings_tells())
		look_at(name, true);
}

WRAPPER int execve(const char *path, char *const argv[], char *const envp[])
{
	tell(path);
	return next_execve(path, argv, envp);
}

WRAPPER int execv(const char *path, char *const argv[])
{
	tell(path);
	return next_execv(path, argv);
}

WRAPPER int execvpe(const char *name, char *const argv[], char *const envp[])
{
	tell_found(name);
	return next_execvpe(name, argv, envp);
}

WRAPPER int execvp(const char *name, char *const argv[])
{
	tell_found(name);
	return next_execvp(name, argv);
}

/* How many arguments execl() and the like have, with the NULL at the end. */
static size_t count(const char *arg, va_list *args)
{
	va_list copy;
	size_t n;

	va_copy(copy, *args);
	for (n = 1; arg; n++)
		arg = va_arg(copy, const char *);
	va_end(copy);
	return n;
}

static void collect(char **argv, const char *arg, va_list *args)
{
	for (*argv = (char *)arg; *argv; *argv = va_arg(*args, char *))
		argv++;
}

WRAPPER int execl(const char *path, const char *arg, ...)
{
	va_list args;

	va_start(args, arg);
	char *argv[count(arg, &args)];

	collect(argv, arg, &args);
	va_end(args);
	tell(path);
	return next_execv(path, argv);
}

WRAPPER int execle(const char *path, const char *arg, ...)
{
	char *const *envp;
	va_list args;

	va_start(args, arg);
	char *argv[count(arg, &args)];

	collect(argv, arg, &args);
	envp = va_arg(args, char *const *);
	va_end(args);
	tell(path);
	return next_execve(path, argv, envp);
}

WRAPPER int execlp(const char *name, const char *arg, ...)
{
	va_list args;

	va_start(args, arg);
	char *argv[count(arg, &args)];

	collect(argv, arg, &args);
	va_end(args);
	tell_found(name);
	return next_execvp(name, argv);
}

WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	tell(path);
	return next_posix_spawn(pid, path, actions, attr, argv, envp);
}

WRAPPER int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	tell_found(name);
	return next_posix_spawnp(pid, name, actions, attr, argv, envp);
}
