// SPDX-License-Identifier: MIT
/* The wrapped functions: of the C library, or of another preloaded library. */
#include <dlfcn.h>
#include <stdlib.h>

#include "preload.h"

static void *find(void **kept, const char *name)
{
	void *fn = __atomic_load_n(kept, __ATOMIC_RELAXED);

	if (!fn) {
		fn = dlsym(RTLD_NEXT, name);
		if (!fn)
			abort();	/* every C library has it */
		__atomic_store_n(kept, fn, __ATOMIC_RELAXED);
	}
	return fn;
}

int next_socket(int domain, int type, int protocol)
{
	static void *kept;
	int (*fn)(int d, int t, int p) = find(&kept, "socket");

	return fn(domain, type, protocol);
}

int next_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	static void *kept;
	int (*fn)(int s, const struct sockaddr *a, socklen_t l) = find(&kept, "connect");

	return fn(fd, addr, len);
}

int next_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	static void *kept;
	int (*fn)(int s, struct sockaddr *a, socklen_t *l) = find(&kept, "accept");

	return fn(fd, addr, len);
}

int next_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	static void *kept;
	int (*fn)(int s, struct sockaddr *a, socklen_t *l, int f) = find(&kept, "accept4");

	return fn(fd, addr, len, flags);
}

/* Found when the library is loaded: the child of a fork() may not, nor may a signal handler. */
static void *kept_execve, *kept_execv, *kept_execvp, *kept_execvpe, *kept_spawn, *kept_spawnp;

static void __attribute__((constructor)) find_exec(void)
{
	find(&kept_execve, "execve");
	find(&kept_execv, "execv");
	find(&kept_execvp, "execvp");
	find(&kept_execvpe, "execvpe");
	find(&kept_spawn, "posix_spawn");
	find(&kept_spawnp, "posix_spawnp");
}

int next_execve(const char *path, char *const argv[], char *const envp[])
{
	int (*fn)(const char *p, char *const a[], char *const e[]) = find(&kept_execve, "execve");

	return fn(path, argv, envp);
}

int next_execv(const char *path, char *const argv[])
{
	int (*fn)(const char *p, char *const a[]) = find(&kept_execv, "execv");

	return fn(path, argv);
}

int next_execvp(const char *name, char *const argv[])
{
	int (*fn)(const char *p, char *const a[]) = find(&kept_execvp, "execvp");

	return fn(name, argv);
}

int next_execvpe(const char *name, char *const argv[], char *const envp[])
{
	int (*fn)(const char *p, char *const a[], char *const e[]) = find(&kept_execvpe, "execvpe");

	return fn(name, argv, envp);
}

int next_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	__typeof__(posix_spawn) *fn = find(&kept_spawn, "posix_spawn");

	return fn(pid, path, actions, attr, argv, envp);
}

int next_posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	__typeof__(posix_spawnp) *fn = find(&kept_spawnp, "posix_spawnp");

	return fn(pid, name, actions, attr, argv, envp);
}

int next_listen(int fd, int backlog)
{
	static void *kept;
	int (*fn)(int s, int n) = find(&kept, "listen");

	return fn(fd, backlog);
}

int next_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	static void *kept;
	int (*fn)(int s, int l, int n, void *v, socklen_t *size) = find(&kept, "getsockopt");

	return fn(fd, level, name, value, len);
}

int next_epoll_ctl(int epfd, int op, int fd, void *event)
{
	static void *kept;
	int (*fn)(int set, int what, int s, void *ev) = find(&kept, "epoll_ctl");

	return fn(epfd, op, fd, event);
}
