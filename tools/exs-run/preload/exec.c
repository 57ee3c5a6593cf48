// SPDX-License-Identifier: MIT
/* With -v, programs into which nothing will be preloaded are reported. */
#include <errno.h>
#include <unistd.h>

#include "../run.h"
#include "preload.h"

WRAPPER int execve(const char *path, char *const argv[], char *const envp[])
{
	int saved = errno;

	if (settings_tells())
		settings_tell_program(path, why_no_preload(path));
	errno = saved;
	return next_execve(path, argv, envp);
}
