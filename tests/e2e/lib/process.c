// SPDX-License-Identifier: GPL-2.0
/* Processes of a case, and signals. */
#include "e2e.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

volatile sig_atomic_t signals_caught;

pid_t spawn(void (*fn)(void *arg), void *arg)
{
	pid_t pid = must(fork());

	if (!pid) {
		fn(arg);
		_exit(0);
	}
	return pid;
}

int reap(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0));
	return status;
}

void join(pid_t pid)
{
	int status = reap(pid);

	/* If it failed it has reported the reason, which comes first. */
	check(!status, "process %d ended with wait status %#x", pid, status);
}

struct pipe_pair pipe_open(void)
{
	int fds[2];

	must(pipe2(fds, O_CLOEXEC));
	return (struct pipe_pair){ .rd = fds[0], .wr = fds[1] };
}

void tell(int fd, long value)
{
	must_be(write(fd, &value, sizeof(value)), sizeof(value));
}

long hear(int fd)
{
	long value;

	wait_io(fd, POLLIN);
	must_be(read(fd, &value, sizeof(value)), sizeof(value));
	return value;
}

void drop_privileges(void)
{
	struct passwd *nobody = getpwnam("nobody");

	check(nobody, "no user nobody");
	must(setgroups(0, NULL));
	must(setgid(nobody->pw_gid));
	must(setuid(nobody->pw_uid));
}

void set_unbounded(bool yes)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
	const uint32_t bit = 1U << CAP_SYS_RESOURCE;

	must(syscall(SYS_capget, &header, data));
	if (yes)
		data[0].effective |= bit & data[0].permitted;
	else
		data[0].effective &= ~bit;
	must(syscall(SYS_capset, &header, data));
}

void raise_limit(int resource, long n)
{
	const struct rlimit limit = { n, n };

	set_unbounded(true);
	must(setrlimit(resource, &limit));
	set_unbounded(false);
}

void forbid_call(int number, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* The state letter of /proc/PID/stat stands behind the name, which may hold anything. */
static char state_of(pid_t tid)
{
	char path[64], text[512], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : 0;
}

bool state_is(pid_t tid, char state)
{
	return state_of(tid) == state;
}

void wait_blocked(pid_t tid)
{
	wait_until(state_of(tid) == 'S');
}

void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
}

void run_first(int processor, int priority)
{
	struct sched_param p = { .sched_priority = priority };

	run_on(processor);
	must(sched_setscheduler(0, SCHED_FIFO, &p));
}

void shell(const char *line)
{
	check(!system(line), "%s: failed", line);
}

void delete_device(void)
{
	shell("rdma link delete rxe0");
}

void add_device(void)
{
	shell("rdma link add rxe0 type rxe netdev rxe0dev");
}

void with_device_restored(void (*fn)(void *arg))
{
	int end = reap(spawn(fn, NULL));

	if (access("/sys/class/infiniband/rxe0", F_OK))
		add_device();
	check(!end, "the case ended with %#x", end);
}

static void on_signal(int sig)
{
	(void)sig;
	signals_caught++;
}

void catch_signal(int sig, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	must(sigaction(sig, &action, NULL));
}

void interrupt_self(int ms)
{
	struct itimerval timer = {
		.it_interval = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
		.it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
	};

	must(setitimer(ITIMER_REAL, &timer, NULL));
}

void interrupt_stop(void)
{
	struct itimerval timer = {};

	must(setitimer(ITIMER_REAL, &timer, NULL));
}
