// SPDX-License-Identifier: MIT
/* What exs_qdequeue() returns, when, and at which cost. */
#include <errno.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sys/exs.h>

#include "check.h"
#include "fake.h"

static const struct timeval poll_only;

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void count_positive(void)
{
	exs_event_t ev[8];
	int q = fake_queue(0);

	fake_post_n(q, 100, 5);
	CHECK(exs_qdequeue(q, ev, 3, NULL) == 3);
	CHECK(ev[0].exs_evt_ahandle == 100 && ev[2].exs_evt_ahandle == 102);
	CHECK(ev[2].exs_evt_union.exs_evt_xfer.exs_evt_length == ~102UL);
	CHECK(ev[0].exs_evt_type == EXS_EVT_SEND && ev[0].exs_evt_socket == 7);
	CHECK(exs_qdequeue(q, ev, 8, NULL) == 2);
	CHECK(ev[1].exs_evt_ahandle == 104);
	CHECK(exs_qdequeue(q, ev, 8, &poll_only) == 0);
}

static void count_negative(void)
{
	const struct timeval short_time = { 0, 30000 };
	exs_event_t ev[8];
	int q = fake_queue(0);
	double t0;

	fake_post_n(q, 1, 5);
	CHECK(exs_qdequeue(q, ev, -4, NULL) == 4);
	t0 = seconds();
	CHECK(exs_qdequeue(q, ev, -4, &short_time) == 1);
	CHECK(ev[0].exs_evt_ahandle == 5);
	CHECK(seconds() - t0 >= 0.029);
	fake_post_n(q, 6, 2);
	CHECK(exs_qdequeue(q, ev, -4, &poll_only) == 2);
}

static void count_zero(void)
{
	CHECK(exs_qdequeue(-1, NULL, 0, NULL) == 0);
}

static void expect_error(int q, exs_event_t *vec, int count,
			 const struct timeval *timeout, int err)
{
	CHECK(exs_qdequeue(q, vec, count, timeout) == -1);
	CHECK(errno == err);
}

static void bad_arguments(void)
{
	const struct timeval bad = { 0, 1000000 }, negative = { -1, 0 };
	exs_event_t ev;
	int q = fake_queue(0);

	expect_error(q, NULL, 1, NULL, EFAULT);
	expect_error(q, &ev, 1, &bad, EINVAL);
	expect_error(q, &ev, 1, &negative, EINVAL);
	expect_error(q, &ev, INT_MIN, NULL, EINVAL);
	expect_error(q, &ev, -FAKE_CAPACITY - 1, NULL, EINVAL);
	expect_error(-1, &ev, 1, &poll_only, EBADF);
	expect_error(999, &ev, 1, &poll_only, EBADF);
	expect_error(INT_MAX, &ev, 1, &poll_only, EMFILE);
	expect_error(STDERR_FILENO, &ev, 1, &poll_only, EINVAL);
}

static void timeout_expires(void)
{
	const struct timeval t = { 0, 50000 };
	exs_event_t ev;
	int q = fake_queue(0);
	double t0 = seconds();

	CHECK(exs_qdequeue(q, &ev, 1, &t) == 0);
	CHECK(seconds() - t0 >= 0.049);
}

/* mmap(2) says EAGAIN; trying again is of no use. */
static void no_locked_memory(void)
{
	struct rlimit little;
	int q = fake_queue(0);
	exs_event_t ev;

	/* It may be less already, and then cannot be raised. */
	CHECK(!getrlimit(RLIMIT_MEMLOCK, &little));
	if (!little.rlim_max)
		SKIP("no memory may be locked here");
	if (little.rlim_max > 200 << 10)
		little.rlim_max = 200 << 10;
	little.rlim_cur = little.rlim_max;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &little));
	if (setresuid(65534, 65534, 65534) && !getuid())
		SKIP("there is no other user here");
	CHECK(!mlockall(MCL_FUTURE));
	if (mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		SKIP("mlockall() has no effect here");
	CHECK(exs_qdequeue(q, &ev, 1, &poll_only) == -1 && errno == ENOMEM);
}

static void sequence_wraps(void)
{
	exs_event_t ev[16];
	int q = fake_queue(UINT64_MAX - 4);

	fake_post_n(q, 1, 10);
	CHECK(exs_qdequeue(q, ev, 16, NULL) == 10);
	CHECK(ev[9].exs_evt_ahandle == 10);
	CHECK(fake_head(q) == 5);
}

static void scribbled_head(void)
{
	exs_event_t ev;
	int q = fake_queue(0);

	fake_set_head(q, 12345);
	expect_error(q, &ev, 1, &poll_only, EIO);
	fake_set_head(q, 0);
	CHECK(exs_qdequeue(q, &ev, 1, &poll_only) == 0);
}

/* Only read, write and exit are allowed: anything else kills the process. */
static void dequeue_confined(int q)
{
	exs_event_t ev[8];
	const struct timeval t = { 1, 0 };
	int n = 0;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		syscall(SYS_exit, 77);
	n += exs_qdequeue(q, ev, 8, NULL);
	n += exs_qdequeue(q, ev, 8, &t);
	n += exs_qdequeue(q, ev, -4, &t);
	n += exs_qdequeue(q, ev, 8, &poll_only);
	n += exs_qdequeue(q, ev, -8, &poll_only);
	syscall(SYS_exit, n);
}

static void no_system_call(void)
{
	exs_event_t ev;
	int q = fake_queue(0), status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer makes system calls of its own");
#endif
	fake_post_n(q, 1, 21);
	pid = fork();
	if (!pid) {
		CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
		dequeue_confined(q);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no strict seccomp here");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 20);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void signal_loses_nothing(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	exs_event_t ev[4];
	int q = fake_queue(0);

	sigaction(SIGALRM, &sa, NULL);
	fake_post_n(q, 1, 2);
	ualarm(30000, 30000);
	expect_error(q, ev, -4, NULL, EINTR);
	alarm(60);
	fake_post_n(q, 3, 2);
	CHECK(exs_qdequeue(q, ev, -4, NULL) == 4);
	CHECK(ev[0].exs_evt_ahandle == 1 && ev[3].exs_evt_ahandle == 4);
}

static void *wait_for_four(void *arg)
{
	exs_event_t ev[4];

	exs_qdequeue(*(int *)arg, ev, -4, NULL);
	return NULL;
}

static void cancel_loses_nothing(void)
{
	exs_event_t ev[4];
	pthread_t t;
	void *ret;
	int q = fake_queue(0);

	fake_post_n(q, 1, 3);
	CHECK(!pthread_create(&t, NULL, wait_for_four, &q));
	while (!__atomic_load_n(&fake.waits, __ATOMIC_RELAXED))
		usleep(1000);
	CHECK(!pthread_cancel(t));
	CHECK(!pthread_join(t, &ret) && ret == PTHREAD_CANCELED);
	/* It may have been woken: the kernel was asked to wake another. */
	CHECK(fake.looks == 1);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == 3);
	CHECK(!exs_qdelete(q));
}

static void leave(void *unused)
{
	(void)unused;
	_exit(1);
}

/* By the thread itself, if no other thread can do it. */
static bool is_cancelled(void (*call)(void))
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		pthread_cleanup_push(leave, NULL);
		pthread_cancel(pthread_self());
		call();
		pthread_cleanup_pop(0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void wait_for_one(void)
{
	struct timeval soon = { .tv_usec = 1000 };
	exs_event_t ev;

	exs_qdequeue(fake_queue(0), &ev, 1, &soon);
}

static void cancelled_by_itself(void)
{
	CHECK(is_cancelled(wait_for_one));
}

static void init(void)
{
	exs_init(EXS_VERSION1);
}

/* It closes descriptors, and would lose them. */
static void init_not_cancelled(void)
{
	CHECK(!is_cancelled(init));
}

/* Entries of a module that this library does not know. */
static void other_entries(void)
{
	static const uint32_t sizes[] = { 0, 8, sizeof(struct exs_cqe) - 8, sizeof(struct exs_cqe) + 4 };
	exs_event_t ev;
	size_t i;
	int q;

	/* provokes: exs_qdequeue call EPROTO */
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		q = fake_queue(0);
		fake_set_entry_size(q, sizes[i]);
		expect_error(q, &ev, 1, &poll_only, EPROTO);
	}
}

const struct test queue_tests[] = {
	{ "count positive", count_positive },
	{ "count negative", count_negative },
	{ "count zero", count_zero },
	{ "bad arguments", bad_arguments },
	{ "other entries", other_entries },
	{ "timeout expires", timeout_expires },
	{ "no locked memory", no_locked_memory },
	{ "sequence wraps", sequence_wraps },
	{ "scribbled head", scribbled_head },
	{ "no system call", no_system_call },
	{ "signal loses nothing", signal_loses_nothing },
	{ "cancel loses nothing", cancel_loses_nothing },
	{ "cancelled by itself", cancelled_by_itself },
	{ "init not cancelled", init_not_cancelled },
	{ NULL, NULL },
};
