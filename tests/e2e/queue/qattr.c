// SPDX-License-Identifier: GPL-2.0
/* Attributes of a queue while it is in use: its depth, signals. */
#include "lib/async.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char bytes[4096];

/* @n events of receives that got a byte each, handles from @first; they are there. */
static void post_events(const struct pair *p, exs_qhandle_t q, int n, exs_ahandle_t first)
{
	long posted = queue_attr(q, EXS_ATTR_POSTED);
	int i;

	for (i = 0; i < n; i++) {
		start_recv(p->s, bytes, 1, 0, q, first + i, NO_REGION);
		must_be(send(p->c, "x", 1, 0), 1);
	}
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == posted + n);
}

static void take_events(exs_qhandle_t q, int n, exs_ahandle_t first)
{
	int i;

	for (i = 0; i < n; i++)
		event_is(q, EXS_EVT_RECV, first + i, 0, 1);
}

static int status(exs_qhandle_t q, int attr)
{
	int value = -1;

	must(exs_qstatus(q, attr, &value));
	return value;
}

static int modify(exs_qhandle_t q, int attr, int value)
{
	return exs_qmodify(q, attr, &value);
}

/* -- signals */

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	must_be(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

/* The next signal @sig that is pending or comes; its si_fd, or -1: none came in time. */
static int signal_next(int sig, int ms)
{
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000L };
	siginfo_t info;
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, sig);
	do {
		got = sigtimedwait(&set, &info, &limit);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -1;
	must_be(got, sig);
	return info.si_fd;
}

static void signal_on(exs_qhandle_t q, int sig)
{
	exs_signal_t s = { EXS_SIG_ENABLE, sig };

	must(exs_qmodify(q, EXS_QATTR_SIGNAL, &s));
}

static void signal_off(exs_qhandle_t q)
{
	exs_signal_t s = { .exs_sig_mode = EXS_SIG_DISABLE };

	must(exs_qmodify(q, EXS_QATTR_SIGNAL, &s));
}

/* A real-time signal is queued: one for each event. */
static void signal_each(void)
{
	int sig = SIGRTMIN + 2, i;
	exs_qhandle_t q = queue_new(16);
	exs_signal_t is;
	struct pair p;

	block(sig);
	pair_open(&p);
	must(exs_qstatus(q, EXS_QATTR_SIGNAL, &is));
	must_be(is.exs_sig_mode, EXS_SIG_DISABLE);
	signal_on(q, sig);
	must(exs_qstatus(q, EXS_QATTR_SIGNAL, &is));
	check(is.exs_sig_mode == EXS_SIG_ENABLE && is.exs_sig_number == sig, "mode %d number %d",
	      is.exs_sig_mode, is.exs_sig_number);
	must_be(signal_next(sig, 0), -1);
	post_events(&p, q, 3, 0);
	for (i = 0; i < 3; i++)
		must_be(signal_next(sig, limit_ms()), q);
	must_be(signal_next(sig, 0), -1);
	take_events(q, 3, 0);
	signal_off(q);
	must(exs_qstatus(q, EXS_QATTR_SIGNAL, &is));
	must_be(is.exs_sig_mode, EXS_SIG_DISABLE);
	post_events(&p, q, 1, 3);
	take_events(q, 1, 3);
	must_be(signal_next(sig, 0), -1);
}

/* Another number, and SIGIO, which has no queue. */
static void signal_changed(void)
{
	int first = SIGRTMIN + 2;
	exs_qhandle_t q = queue_new(16);
	struct pair p;

	block(first);
	block(SIGIO);
	pair_open(&p);
	signal_on(q, first);
	signal_on(q, SIGIO);
	post_events(&p, q, 2, 0);
	must_be(signal_next(SIGIO, limit_ms()), q);
	must_be(signal_next(first, 0), -1);
	take_events(q, 2, 0);
}

static void signal_wrong(void)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), 0);
	exs_signal_t s = { 7, SIGIO };
	exs_qhandle_t q = queue_new(4);

	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, &s), EINVAL);
	s = (exs_signal_t){ EXS_SIG_ENABLE, 0 };
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, &s), EINVAL);
	s.exs_sig_number = SIGRTMAX + 1;
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, &s), EINVAL);
	s.exs_sig_number = SIGIO;
	must_fail(exs_qmodify(m, EXS_QATTR_SIGNAL, &s), EINVAL);
	must_fail(exs_qstatus(m, EXS_QATTR_SIGNAL, &s), EINVAL);
	must_fail(exs_qmodify(-1, EXS_QATTR_SIGNAL, &s), EBADF);
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, NULL), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_SIGNAL, NULL), EFAULT);
}

struct shared { exs_qhandle_t q; int up; };

static void child_has_signal(void *arg)
{
	const struct shared *s = arg;

	block(SIGRTMIN + 2);
	signal_on(s->q, SIGRTMIN + 2);
	tell(s->up, 1);
	must_be(signal_next(SIGRTMIN + 2, limit_ms()), s->q);
	signal_off(s->q);
}

/* The last process that sets it has it; it ends with this process, and the queue goes on. */
static void signal_of_child(void)
{
	struct pipe_pair up = pipe_open();
	struct shared s = { queue_new(16), up.wr };
	struct pair p;
	pid_t pid;

	block(SIGRTMIN + 2);
	pair_open(&p);
	signal_on(s.q, SIGRTMIN + 2);
	pid = spawn(child_has_signal, &s);
	must_be(hear(up.rd), 1);
	post_events(&p, s.q, 1, 0);
	join(pid);
	must_be(signal_next(SIGRTMIN + 2, 0), -1);
	post_events(&p, s.q, 1, 1);
	take_events(s.q, 2, 0);
}

/* -- depth */

static long submit_receives(int fd, exs_qhandle_t q, int n)
{
	static struct exs_sqe sqes[EXS_SUBMIT_MAX];
	int i;

	for (i = 0; i < n; i++)
		sqes[i] = (struct exs_sqe){
			.opcode = EXS_OP_RECV, .fd = fd, .handle = i, .region = EXS_REGION_NONE,
		};
	return submit_raw(q, sqes, n);
}

/* As many as the queue was made for, each of them. */
static void depth_to_capacity(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	int i;

	pair_open(&p);
	must_fail(modify(q, EXS_QATTR_DEPTH, EXS_QUEUE_CAPACITY_MIN + 1), EINVAL);
	must_fail(modify(q, EXS_QATTR_DEPTH, 0), EINVAL);
	must_fail(modify(q, EXS_QATTR_DEPTH, -1), EINVAL);
	must(modify(q, EXS_QATTR_DEPTH, EXS_QUEUE_CAPACITY_MIN));
	for (i = 0; i < EXS_QUEUE_CAPACITY_MIN; i += EXS_SUBMIT_MAX)
		must_be(submit_receives(p.s, q, EXS_SUBMIT_MAX), EXS_SUBMIT_MAX);
	must_fail(submit_receives(p.s, q, 1), EAGAIN);
	must_fail(modify(q, EXS_QATTR_DEPTH, EXS_QUEUE_CAPACITY_MIN - 1), EBUSY);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), EXS_QUEUE_CAPACITY_MIN);
}

/* Operations in flight and events unread count alike. */
static void depth_below_reserved(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pair p;
	int i;

	pair_open(&p);
	post_events(&p, q, 3, 0);
	for (i = 3; i < 5; i++)
		start_recv(p.s, bytes, 1, 0, q, i, NO_REGION);
	must_be(status(q, EXS_QATTR_EVENTS), 3);
	must_fail(modify(q, EXS_QATTR_DEPTH, 4), EBUSY);
	must(modify(q, EXS_QATTR_DEPTH, 5));
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 9, NO_REGION), EAGAIN);
	take_events(q, 2, 0);
	must(modify(q, EXS_QATTR_DEPTH, 3));
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 9, NO_REGION), EAGAIN);
	must_be(send(p.c, "xx", 2, 0), 2);
	take_events(q, 3, 2);
	must(modify(q, EXS_QATTR_DEPTH, 1));
	must_be(status(q, EXS_QATTR_DEPTH), 1);
	must_be(status(q, EXS_QATTR_EVENTS), 0);
}

struct changer { exs_qhandle_t q; unsigned int seed; bool *stop; };

static void *change_depth(void *arg)
{
	struct changer *c = arg;

	while (!__atomic_load_n(c->stop, __ATOMIC_SEQ_CST))
		if (modify(c->q, EXS_QATTR_DEPTH, 1 + rand_r(&c->seed) % 16))
			check(errno == EBUSY, "exs_qmodify: %s", errno_name(errno));
	return NULL;
}

/* However the depth changes meanwhile, no event is lost, and none comes twice. */
static void depth_by_threads(void)
{
	enum { THREADS = 3, EVENTS = 100 };
	exs_qhandle_t q = queue_new(16);
	struct changer c[THREADS];
	pthread_t threads[THREADS];
	int started = 0, taken = 0, i;
	bool stop = false;
	struct pair p;

	pair_open(&p);
	for (i = 0; i < THREADS; i++) {
		c[i] = (struct changer){ q, e2e.seed + i, &stop };
		must_be(pthread_create(&threads[i], NULL, change_depth, &c[i]), 0);
	}
	while (taken < EVENTS) {
		if (started < EVENTS && !exs_recv(p.s, bytes, 1, 0, q, started, NO_REGION)) {
			must_be(send(p.c, "x", 1, 0), 1);
			started++;
		} else if (taken < started) {
			event_is(q, EXS_EVT_RECV, taken++, 0, 1);
		}
	}
	stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	must(modify(q, EXS_QATTR_DEPTH, 4));
	must_be(submit_receives(p.s, q, 5), 4);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), EVENTS + 4);
}

static const struct e2e_case cases[] = {
	{ "signal_each", signal_each, .on = ON_STREAM },
	{ "signal_changed", signal_changed, .on = ON_STREAM },
	{ "signal_wrong", signal_wrong, .on = ON_EXS },
	{ "signal_of_child", signal_of_child, .on = ON_STREAM },
	{ "depth_to_capacity", depth_to_capacity, .on = ON_STREAM },
	{ "depth_below_reserved", depth_below_reserved, .on = ON_STREAM },
	{ "depth_by_threads", depth_by_threads, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
