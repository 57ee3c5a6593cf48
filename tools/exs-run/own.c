// SPDX-License-Identifier: MIT
/*
 * A cgroup of a program's own. The program enters it, and another process, the watcher, stays
 * outside: it holds the BPF link, so that the program may close all its descriptors, and removes
 * the cgroup when the last process in it has gone. The watcher is started first, and does
 * nothing until the program has entered, or cannot: then the other end of a pipe is closed.
 * No other process removes the cgroup, so there is no race.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>

#include "run.h"
#include "say.h"

#define PREFIX		"exs-run-"
#define DEPTH_MAX	8	/* programs that start programs, and so on */

/* The directory of our own cgroup (version 2), from /proc/self/cgroup. */
static bool find_own(char *path, size_t room)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX] = "";
	bool found = false;
	struct statfs fs;
	size_t i;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "0::/", 4);
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	for (i = 0; found && i < sizeof(places) / sizeof(*places); i++)
		if (!statfs(places[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return snprintf(path, room, "%s%s", places[i], line + 3) < (int)room;
	say("/sys/fs/cgroup has no cgroups (version 2): mount -t cgroup2 none /sys/fs/cgroup");
	return false;
}

/* A new one below the present one. Programs of other users may look at it, as at any. */
static bool make(char *path, size_t room)
{
	size_t len;

	if (!find_own(path, room))
		return false;
	len = strlen(path);
	if (snprintf(path + len, room - len, "/" PREFIX "XXXXXX") >= (int)(room - len))
		return false;
	if (mkdtemp(path) && !chmod(path, 0755))
		return true;
	say_errno("cannot make a cgroup: %s", path);
	return false;
}

static bool enter(const char *cgroup)
{
	char path[PATH_MAX + sizeof("/cgroup.procs")];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fprintf(f, "0\n") > 0;
	return !fclose(f) && ok;
}

/*
 * With all groups below it, which have no processes either: those of the program, and of programs
 * that it started.
 */
static void remove_group(int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	while (dir && depth < DEPTH_MAX && (d = readdir(dir)))
		if (d->d_type == DT_DIR && strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			remove_group(fd, d->d_name, depth + 1);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* -- the watcher */

/* Whether there are processes in the cgroup or below; not if the cgroup was removed. */
static bool is_populated(int events)
{
	char text[256];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return strstr(text, "populated 1");
}

static void wait_empty(int events)
{
	struct pollfd p = { .fd = events, .events = POLLPRI };

	while (is_populated(events))
		poll(&p, 1, -1);
}

/* Nothing of the program's may stay open because of us: its terminal, its pipes, its directory. */
static void keep_only(int *fds, int n)
{
	int i, null;

	for (i = 0; i < n; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + n);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (i = 0; i < 3; i++)
		dup2(null, i);
	for (i = 0; i < n; i++)
		fds[i] = dup2(fds[i], 3 + i);
	syscall(SYS_close_range, 3 + n, ~0U, 0);
	if (chdir("/"))
		_exit(1);
}

static void watch(const char *cgroup, int events, int link, int pipe)
{
	int fds[] = { events, pipe, link };
	char end;

	prctl(PR_SET_NAME, "exs-run-watcher");
	keep_only(fds, 3);
	while (read(fds[1], &end, 1) < 0 && errno == EINTR)
		;
	wait_empty(fds[0]);
	remove_group(AT_FDCWD, cgroup, 0);
	_exit(0);
}

/* Fork twice: the first child ends at once, so the watcher is not a child of this process. */
static bool fork_watcher(const char *cgroup, int events, int link, const int *pipe)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		close(pipe[1]);
		setsid();
		pid = fork();
		if (!pid)
			watch(cgroup, events, link, pipe[0]);
		_exit(pid < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
	return !errno;
}

/*
 * If this process were a subreaper, the watcher would become its child, and so the program's. If it
 * ignored SIGCHLD, waitpid() would not find the first child.
 */
static bool start_watcher(const char *cgroup, int events, int link, const int *pipe)
{
	sighandler_t children = signal(SIGCHLD, SIG_DFL);
	int reaper = 0, err;
	bool started;

	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	started = fork_watcher(cgroup, events, link, pipe);
	err = errno;
	prctl(PR_SET_CHILD_SUBREAPER, reaper);
	signal(SIGCHLD, children);
	errno = err;
	return started;
}

/* Return: the end of a pipe that the watcher waits for; -1 and errno: there is no watcher. */
static int open_watcher(const char *cgroup, int link)
{
	char path[PATH_MAX + sizeof("/cgroup.events")];
	int events, ends[2] = { -1, -1 };
	bool started = false;

	snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
	events = open(path, O_RDONLY | O_CLOEXEC);
	if (events >= 0 && !pipe2(ends, O_CLOEXEC)) {
		started = start_watcher(cgroup, events, link, ends);
		close(ends[0]);
	}
	if (events >= 0)
		close(events);
	if (!started && ends[1] >= 0)
		close(ends[1]);
	return started ? ends[1] : -1;
}

/* -- */

bool cgroup_is_on(int protocol)
{
	/* Not by socket(): that may be a preloaded one. */
	int fd = syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), is = 0;
	socklen_t len = sizeof(is);

	if (fd < 0)
		return false;
	getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &is, &len);
	close(fd);
	return is == protocol;
}

/* Entering is the last step: whatever fails leaves the process where it is, and no cgroup. */
static bool enter_own(int protocol)
{
	char path[PATH_MAX];
	bool entered = false;
	int link, watcher = -1;

	if (!make(path, sizeof(path)))
		return false;
	link = cgroup_attach(path, protocol);
	if (link >= 0) {
		watcher = open_watcher(path, link);
		entered = watcher >= 0 && enter(path);
		if (!entered)
			say_errno("cannot enter the cgroup %s", path);
		close(link);
	}
	if (watcher >= 0)
		close(watcher);
	else
		rmdir(path);
	return entered;
}

/*
 * A program that is ended in the middle leaves no cgroup behind. The watcher has these signals
 * blocked for good: a service manager may send them to all processes of a service, and the
 * watcher ends after the program.
 */
bool cgroup_own(int protocol)
{
	sigset_t ends, before;
	bool entered;

	if (getpid() == 1) {
		say("exs-run is process 1, as in a container: run exs-run --cgroup outside of the container");
		return false;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, &before);
	entered = enter_own(protocol);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return entered;
}
