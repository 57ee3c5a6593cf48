// SPDX-License-Identifier: MIT
/* Many takers of one ring, and queues that vanish under them. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sys/exs.h>

#include "check.h"
#include "fake.h"

/* These tests close a descriptor that other threads use, and use its number again. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:__wrap_close\nrace:take_number\n";
}

#define TAKERS	4
#define EVENTS	200000u

static int queue;
static unsigned char seen[EVENTS];	/* atomic */
static unsigned int total;		/* atomic */

static void note(const exs_event_t *ev, uint64_t *last)
{
	uint64_t h = ev->exs_evt_ahandle;

	CHECK(h < EVENTS);
	CHECK(ev->exs_evt_union.exs_evt_xfer.exs_evt_length == ~h);
	CHECK(*last == UINT64_MAX || h > *last);
	*last = h;
	CHECK(!__atomic_exchange_n(&seen[h], 1, __ATOMIC_RELAXED));
	__atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
}

static void *taker(void *arg)
{
	const struct timeval t = { 0, 2000 };
	exs_event_t ev[33];
	uint64_t last = UINT64_MAX;
	int n, i, count = (long)arg % 2 ? 33 : -7;

	while (__atomic_load_n(&total, __ATOMIC_RELAXED) < EVENTS) {
		n = exs_qdequeue(queue, ev, count, &t);
		CHECK(n >= 0);
		for (i = 0; i < n; i++)
			note(&ev[i], &last);
	}
	return NULL;
}

static void each_exactly_once(void)
{
	pthread_t t[TAKERS];
	long i;

	queue = fake_queue(UINT64_MAX - EVENTS / 2);
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, taker, (void *)i));
	fake_post_n(queue, 0, EVENTS);
	for (i = 0; i < TAKERS; i++)
		pthread_join(t[i], NULL);
	CHECK(total == EVENTS);
}

#define ATONCE	3
#define CALLS	10000
#define BURST	10	/* what is left of it is less than three */

static void *taker_of_three(void *arg)
{
	exs_event_t ev[ATONCE];
	uint64_t last = UINT64_MAX;
	int i, j;

	(void)arg;
	for (i = 0; i < CALLS; i++) {
		CHECK(exs_qdequeue(queue, ev, -ATONCE, NULL) == ATONCE);
		for (j = 0; j < ATONCE; j++)
			note(&ev[j], &last);
	}
	return NULL;
}

/* A thread that waits for three does not get fewer because others took some. */
static void all_or_nothing(void)
{
	pthread_t t[TAKERS];
	long i;

	queue = fake_queue(0);
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, taker_of_three, NULL));
	for (i = 0; i < TAKERS * CALLS * ATONCE; i += BURST)
		fake_post_n(queue, i, BURST);
	for (i = 0; i < TAKERS; i++)
		pthread_join(t[i], NULL);
	CHECK(total == TAKERS * CALLS * ATONCE);
}

static int stop;	/* atomic */

static void *poller(void *arg)
{
	const struct timeval poll_only = { 0, 0 };
	exs_event_t ev[4];
	int n;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		n = exs_qdequeue(queue, ev, 4, &poll_only);
		CHECK(n >= 0 || errno == EBADF || errno == EINVAL);
	}
	return NULL;
}

static __attribute__((noinline)) void take_number(int q)
{
	CHECK(dup(q) == queue);
}

/*
 * The number is always the same, the queue behind it never. As a kernel's it is
 * whole when it gets the number: a memory file is first made without a length,
 * and to read in a mapping of it then is the end.
 */
static void replace_queue(int i)
{
	int q = fake_queue(0);

	CHECK(!(i % 2 ? exs_qdelete(queue) : close(queue)));
	take_number(q);
	CHECK(!close(q));
	fake_post_n(queue, 1, 3);
}

static void vanishing_queue(void)
{
	pthread_t t[TAKERS];
	long i;

	queue = fake_queue(0);
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, poller, NULL));
	for (i = 0; i < 500; i++)
		replace_queue(i);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < TAKERS; i++)
		pthread_join(t[i], NULL);
}

static void in_child(void)
{
	const struct timeval poll_only = { 0, 0 };
	exs_event_t ev;

	alarm(20);
	_exit(exs_qdequeue(queue, &ev, 1, &poll_only) < 0 ||
	      exs_qdelete(queue));
}

/* The child's only thread must not wait for one that it does not have. */
static void fork_among_threads(void)
{
	pthread_t t[TAKERS];
	int status;
	long i;
	pid_t pid;

	queue = fake_queue(0);
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, poller, NULL));
	for (i = 0; i < 50; i++) {
		pid = fork();
		if (!pid)
			in_child();
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < TAKERS; i++)
		pthread_join(t[i], NULL);
}

const struct test thread_tests[] = {
	{ "each exactly once", each_exactly_once },
	{ "all or nothing", all_or_nothing },
	{ "vanishing queue", vanishing_queue },
	{ "fork among threads", fork_among_threads },
	{ NULL, NULL },
};
