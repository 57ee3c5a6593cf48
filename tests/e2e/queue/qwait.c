// SPDX-License-Identifier: GPL-2.0
/* How exs_qdequeue() waits: asleep, polling, or first the one and then the other. */
#include "lib/async.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char bytes[4096];
#define POLLED	40

static const struct timeval short_time = { .tv_usec = 20000 };

static exs_qhandle_t queue_of(int depth, int mode)
{
	exs_qhandle_t q = queue_new(depth);

	must(exs_qmodify(q, EXS_QATTR_WAIT, &mode));
	return q;
}

static int mode_of(exs_qhandle_t q)
{
	int mode = -1;

	must(exs_qstatus(q, EXS_QATTR_WAIT, &mode));
	return mode;
}

static void receive(const struct pair *p, exs_qhandle_t q, exs_ahandle_t handle)
{
	start_recv(p->s, bytes, 1, 0, q, handle, NO_REGION);
	must_be(send(p->c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, handle, 0, 1);
}

static void modes(void)
{
	exs_qhandle_t q = queue_new(4);
	int mode = EXS_WAIT_ADAPTIVE;

	must_be(mode_of(q), EXS_WAIT_NOTIFY);
	must(exs_qmodify(q, EXS_QATTR_WAIT, &mode));
	must_be(mode_of(q), EXS_WAIT_ADAPTIVE);
	mode = 3;
	must_fail(exs_qmodify(q, EXS_QATTR_WAIT, &mode), EINVAL);
	mode = -1;
	must_fail(exs_qmodify(q, EXS_QATTR_WAIT, &mode), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_WAIT, NULL), EFAULT);
	must_be(mode_of(q), EXS_WAIT_ADAPTIVE);
}

static void notified(void)
{
	exs_qhandle_t q = queue_of(4, EXS_WAIT_NOTIFY);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 20; i++)
		receive(&p, q, i);
	must_be(delta("busy_completions"), 0);
}

static void time_is_up(void)
{
	exs_qhandle_t q = queue_of(8, EXS_WAIT_BUSY_POLL);
	struct timeval none = {};
	exs_event_t ev[4];
	struct pair p;

	pair_open(&p);
	/* No connection to poll, then an event that does not come. */
	must_be(exs_qdequeue(q, ev, 1, &short_time), 0);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, bytes, 1, 0, q, 2, NO_REGION);
	must_be(exs_qdequeue(q, ev, 1, &none), 0);
	must_be(exs_qdequeue(q, ev, 1, &short_time), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == 1);
	must_be(exs_qdequeue(q, ev, -2, &short_time), 1);
	event_check(&ev[0], EXS_EVT_RECV, 1, 0, 1);
}

static void interrupted(void)
{
	exs_qhandle_t q = queue_of(8, EXS_WAIT_BUSY_POLL);
	exs_event_t ev[4];
	struct pair p;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, bytes, 1, 0, q, 2, NO_REGION);
	catch_signal(SIGALRM, 0);
	interrupt_self(20);
	must_fail(exs_qdequeue(q, ev, 1, NULL), EINTR);
	interrupt_stop();
	must_be(send(p.c, "x", 1, 0), 1);
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == 1);
	interrupt_self(20);
	must_fail(exs_qdequeue(q, ev, -2, NULL), EINTR);
	interrupt_stop();
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	no_event(q);
}

struct waiter { exs_qhandle_t q; volatile long tid; exs_event_t ev; pthread_t thread; };

static void *wait_one(void *arg)
{
	struct waiter *w = arg;

	w->tid = gettid();
	w->ev = event_next(w->q);
	return NULL;
}

static void waiter_start(struct waiter *w, exs_qhandle_t q)
{
	*w = (struct waiter){ .q = q };
	must_be(pthread_create(&w->thread, NULL, wait_one, w), 0);
	wait_until(w->tid);
}

static void waiter_gets(struct waiter *w, int type, exs_ahandle_t handle, int err, long length)
{
	pthread_join(w->thread, NULL);
	event_check(&w->ev, type, handle, err, length);
}

static void *wait_for_all(void *arg)
{
	struct waiter *w = arg;
	exs_event_t ev[POLLED];
	int i;

	w->tid = gettid();
	must_be(exs_qdequeue(w->q, ev, -POLLED, NULL), POLLED);
	for (i = 0; i < POLLED; i++)
		event_check(&ev[i], EXS_EVT_RECV, i, 0, 1);
	return NULL;
}

/*
 * The thread that waits is the one that finds the completions. It waits for all of them, so
 * that it polls already when the second and later ones come.
 */
static void polled(void)
{
	struct waiter w = { .q = queue_of(POLLED, EXS_WAIT_BUSY_POLL) };
	struct pair p;
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) == 1)
		skip("one processor");
	pair_open(&p);
	for (i = 0; i < POLLED; i++)
		start_recv(p.s, &bytes[i], 1, 0, w.q, i, NO_REGION);
	must_be(pthread_create(&w.thread, NULL, wait_for_all, &w), 0);
	wait_until(w.tid);
	for (i = 1; i < POLLED; i++) {
		must_be(send(p.c, "x", 1, 0), 1);
		wait_until(queue_attr(w.q, EXS_ATTR_EVENTS) == i);
	}
	must_be(send(p.c, "x", 1, 0), 1);
	pthread_join(w.thread, NULL);
	check(delta("busy_completions"), "none was found by polling");
	must_be(delta("busy_given_up"), 0);
}

/* If no device reports anything, the thread sleeps, and is woken. */
static void nothing_to_poll(void)
{
	exs_qhandle_t q = queue_of(8, EXS_WAIT_BUSY_POLL);
	int l = listener(4), c;
	struct waiter w;

	must(exs_accept(l, NULL, 0, q, 7));
	waiter_start(&w, q);
	wait_blocked(w.tid);
	c = client_of(l);
	waiter_gets(&w, EXS_EVT_ACCEPT, 7, 0, 0);
	close(event_newfd(&w.ev));
	close(c);
	must_be(delta("busy_completions"), 0);
}

/* The thread that is woken is the one that processes the completions. */
static void attended(void)
{
	exs_qhandle_t q = queue_of(4, EXS_WAIT_NOTIFY);
	double end = now() + limit_ms() / 1e3;
	struct waiter w;
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 5 || !delta("waiter_completions"); i++) {
		check(now() < end, "%d events, and a worker was always faster", i);
		start_recv(p.s, bytes, 1, 0, q, i, NO_REGION);
		waiter_start(&w, q);
		wait_blocked(w.tid);
		must_be(send(p.c, "x", 1, 0), 1);
		waiter_gets(&w, EXS_EVT_RECV, i, 0, 1);
	}
}

/* But not if the socket wants another processor. */
static void placed(void)
{
	exs_qhandle_t q = queue_of(4, EXS_WAIT_NOTIFY);
	struct waiter w;
	struct pair p;
	int cpu = 0;

	pair_open(&p);
	must(setsockopt(p.s, SOL_EXS, EXS_SO_CPU, &cpu, sizeof(cpu)));
	must(setsockopt(p.c, SOL_EXS, EXS_SO_CPU, &cpu, sizeof(cpu)));
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	waiter_start(&w, q);
	wait_blocked(w.tid);
	must_be(send(p.c, "x", 1, 0), 1);
	waiter_gets(&w, EXS_EVT_RECV, 1, 0, 1);
	must_be(delta("waiter_completions"), 0);
}

/* The connection ends while it is attended to. */
static void connection_ends_in(int mode)
{
	exs_qhandle_t q = queue_of(8, mode);
	struct linger now_at_once = { .l_onoff = 1 };
	struct waiter w;
	struct pair p;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	waiter_start(&w, q);
	close(p.c);
	waiter_gets(&w, EXS_EVT_RECV, 1, 0, 0);
	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 2, NO_REGION);
	waiter_start(&w, q);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &now_at_once, sizeof(now_at_once)));
	close(p.c);
	waiter_gets(&w, EXS_EVT_RECV, 2, ECONNRESET, 0);
	/* One's own end of it. */
	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 3, NO_REGION);
	waiter_start(&w, q);
	close(p.s);
	waiter_gets(&w, EXS_EVT_RECV, 3, ECANCELED, 0);
}

static void *wait_for_two(void *arg)
{
	struct waiter *w = arg;
	exs_event_t ev[2];

	w->tid = gettid();
	must_be(exs_qdequeue(w->q, ev, -2, NULL), 2);
	event_check(&ev[0], EXS_EVT_RECV, 1, 0, 0);
	event_check(&ev[1], EXS_EVT_RECV, 2, 0, 1);
	return NULL;
}

/* A thread that still waits for other connections does not keep one that has ended. */
static void let_go(void)
{
	struct waiter w = { .q = queue_of(8, EXS_WAIT_NOTIFY) };
	struct pair p, other;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, w.q, 1, NO_REGION);
	must_be(pthread_create(&w.thread, NULL, wait_for_two, &w), 0);
	wait_until(w.tid);
	wait_blocked(w.tid);
	close(p.c);
	wait_until(queue_attr(w.q, EXS_ATTR_EVENTS) == 1);
	close(p.s);
	wait_until(!counter("live_conns"));
	pair_open(&other);
	start_recv(other.s, bytes, 1, 0, w.q, 2, NO_REGION);
	must_be(send(other.c, "x", 1, 0), 1);
	pthread_join(w.thread, NULL);
}

static void *wait_for_ever(void *arg)
{
	struct waiter *w = arg;

	w->tid = gettid();
	must_be(exs_qdequeue(w->q, &w->ev, 1, NULL), 1);
	return NULL;
}

/* Threads that want more events do not delay one that wants fewer. */
static void least_need(void)
{
	struct waiter more = { .q = queue_of(8, EXS_WAIT_NOTIFY) }, one = { .q = more.q };
	struct pair p, other;

	pair_open(&p);
	pair_open(&other);
	start_recv(p.s, bytes, 1, 0, more.q, 1, NO_REGION);
	must_be(pthread_create(&more.thread, NULL, wait_for_two, &more), 0);
	wait_until(more.tid);
	wait_blocked(more.tid);
	must_be(pthread_create(&one.thread, NULL, wait_for_ever, &one), 0);
	wait_until(one.tid);
	wait_blocked(one.tid);
	must_be(send(p.c, "x", 1, 0), 1);
	waiter_gets(&one, EXS_EVT_RECV, 1, 0, 1);
	start_recv(other.s, bytes, 1, 0, more.q, 1, NO_REGION);
	start_recv(p.s, bytes, 1, 0, more.q, 2, NO_REGION);
	close(other.c);
	wait_until(queue_attr(more.q, EXS_ATTR_EVENTS) == 1);
	must_be(send(p.c, "x", 1, 0), 1);
	pthread_join(more.thread, NULL);
}

static void connection_ends(void)
{
	connection_ends_in(EXS_WAIT_NOTIFY);
	connection_ends_in(EXS_WAIT_BUSY_POLL);
}

struct child { struct pair p; int mode; };

static void child_waits(void *arg)
{
	const struct child *child = arg;
	exs_qhandle_t q = queue_of(8, child->mode);

	start_recv(child->p.s, bytes, 1, 0, q, 1, NO_REGION);
	interrupt_self(50);
	event_next(q);
}

/* SIGALRM kills it. */
static void process_killed_in(int mode)
{
	struct child child = { .mode = mode };
	struct pair p;
	int end;

	pair_open(&p);
	child.p = p;
	end = reap(spawn(child_waits, &child));
	check(WIFSIGNALED(end), "ended with %#x", end);
	wait_until(!counter("live_ops") && !counter("live_queues"));
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, bytes, 1, 0), 1);
}

static void process_killed(void)
{
	process_killed_in(EXS_WAIT_NOTIFY);
	process_killed_in(EXS_WAIT_BUSY_POLL);
}

/*
 * Other threads make progress as well: on the same connection, from another queue, before and after the attending
 * thread stops attending.
 */
static void serve_other(const struct pair *p, exs_qhandle_t other)
{
	exs_event_t ev[2];

	start_recv(p->c, bytes + 1, 1, 0, other, 2, NO_REGION);
	start_send(p->s, "x", 1, other, 3, NO_REGION);
	must_be(exs_qdequeue(other, ev, -2, NULL), 2);
}

static void others_served_in(int mode)
{
	exs_qhandle_t q = queue_of(8, mode), other = queue_new(8);
	char *big = pages(MIB / 4);
	struct waiter w;
	struct pair p;
	int i;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	waiter_start(&w, q);
	for (i = 0; i < 100; i++)
		serve_other(&p, other);
	if (mode == EXS_WAIT_NOTIFY)
		wait_until((serve_other(&p, other), delta("waiter_given_up")));
	start_send(p.s, big, MIB / 4, other, 1000, NO_REGION);
	for (i = 0; i < MIB / 4; )
		i += must(recv(p.c, big, MIB / 4, 0));
	event_is(other, EXS_EVT_SEND, 1000, 0, MIB / 4);
	must_be(send(p.c, "x", 1, 0), 1);
	waiter_gets(&w, EXS_EVT_RECV, 1, 0, 1);
}

static void others_served(void)
{
	others_served_in(EXS_WAIT_NOTIFY);
	others_served_in(EXS_WAIT_BUSY_POLL);
}

/* -- signals that restart, and many threads that wait */

static void *send_after_signals(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	must_be(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	wait_until(signals_caught >= 3);
	must_be(send(*(int *)arg, "x", 1, 0), 1);
	return NULL;
}

static void restarted_in(int mode)
{
	exs_qhandle_t q = queue_of(8, mode);
	struct timeval limit = { .tv_usec = 100000 };
	exs_event_t ev[2];
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, bytes, 1, 0, q, 2, NO_REGION);
	catch_signal(SIGALRM, SA_RESTART);
	signals_caught = 0;
	interrupt_self(5);
	/* Each time it goes on with what is left of its time. */
	must_be(exs_qdequeue(q, ev, 1, &limit), 0);
	signals_caught = 0;
	must_be(pthread_create(&thread, NULL, send_after_signals, &p.c), 0);
	must_be(exs_qdequeue(q, ev, 2, NULL), 1);
	event_check(&ev[0], EXS_EVT_RECV, 1, 0, 1);
	interrupt_stop();
	pthread_join(thread, NULL);
}

static void restarted(void)
{
	restarted_in(EXS_WAIT_NOTIFY);
	restarted_in(EXS_WAIT_BUSY_POLL);
}

enum { ATONCE = 4, TAKERS = 3, TURNS = 20 };

static void *take_at_once(void *arg)
{
	exs_qhandle_t q = *(exs_qhandle_t *)arg;
	exs_event_t ev[ATONCE];
	int i;

	for (i = 0; i < TURNS; i++)
		must_be(exs_qdequeue(q, ev, -ATONCE, NULL), ATONCE);
	return NULL;
}

/* Each waits for four, and gets four. */
static void all_or_nothing(void)
{
	exs_qhandle_t q = queue_new(ATONCE * TAKERS * TURNS);
	pthread_t threads[TAKERS];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < TAKERS; i++)
		must_be(pthread_create(&threads[i], NULL, take_at_once, &q), 0);
	for (i = 0; i < ATONCE * TAKERS * TURNS; i++) {
		start_recv(p.s, bytes, 1, 0, q, i, NO_REGION);
		must_be(send(p.c, "x", 1, 0), 1);
	}
	for (i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	no_event(q);
}

enum { PAIRS = 10, EVENTS = 300, FEW = 100 };
struct taking { exs_qhandle_t q; unsigned char *seen; int *total; };

static void *take(void *arg)
{
	const struct taking *t = arg;
	exs_event_t ev[4];
	int i, n;

	while (__atomic_load_n(t->total, __ATOMIC_SEQ_CST) < EVENTS) {
		n = must(exs_qdequeue(t->q, ev, ARRAY_SIZE(ev), &short_time));
		for (i = 0; i < n; i++)
			__atomic_fetch_add(&t->seen[ev[i].exs_evt_ahandle], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(t->total, n, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* More connections than are attended to at once, and several threads at it. */
static void threads_in(int mode)
{
	unsigned char *seen = pages(EVENTS);
	int *total = pages(4096), i;
	struct taking t = { queue_of(EVENTS, mode), seen, total };
	pthread_t threads[3];
	struct pair p[PAIRS];

	for (i = 0; i < PAIRS; i++)
		pair_open(&p[i]);
	for (i = 0; i < EVENTS; i++)
		start_recv(p[i % PAIRS].s, bytes, 1, 0, t.q, i, NO_REGION);
	for (i = 0; i < 3; i++)
		must_be(pthread_create(&threads[i], NULL, take, &t), 0);
	for (i = 0; i < EVENTS; i++)
		must_be(send(p[i % PAIRS].c, "x", 1, 0), 1);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < EVENTS; i++)
		check(seen[i] == 1, "event %d was taken %d times", i, seen[i]);
	no_event(t.q);
}

static void take_interrupted(void *arg)
{
	const struct taking *t = arg;
	exs_event_t ev;
	int n;

	catch_signal(SIGALRM, 0);
	interrupt_self(1);
	while (__atomic_load_n(t->total, __ATOMIC_SEQ_CST) < FEW) {
		n = exs_qdequeue(t->q, &ev, 1, &short_time);
		check(n >= 0 || errno == EINTR, "exs_qdequeue: %s", errno_name(errno));
		if (n <= 0)
			continue;
		__atomic_fetch_add(&t->seen[ev.exs_evt_ahandle], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(t->total, 1, __ATOMIC_SEQ_CST);
	}
	interrupt_stop();
}

/* Processes with one queue, and signals all the time. */
static void processes_interrupted(void)
{
	unsigned char *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct taking t = { queue_new(FEW), seen, (int *)(seen + 2048) };
	pid_t pids[3];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		pids[i] = spawn(take_interrupted, &t);
	for (i = 0; i < FEW; i++) {
		start_recv(p.s, bytes, 1, 0, t.q, i, NO_REGION);
		must_be(send(p.c, "x", 1, 0), 1);
	}
	for (i = 0; i < 3; i++)
		join(pids[i]);
	for (i = 0; i < FEW; i++)
		check(seen[i] == 1, "event %d was taken %d times", i, seen[i]);
}

static void threads_sleeping(void)
{
	threads_in(EXS_WAIT_NOTIFY);
}

static void threads_polling(void)
{
	threads_in(EXS_WAIT_BUSY_POLL);
}

static void threads_adaptive(void)
{
	threads_in(EXS_WAIT_ADAPTIVE);
}

/* Nothing comes: it goes to sleep, and in the end does not even try. */
static void adapts(void)
{
	struct timeval tick = { .tv_usec = 2000 };
	exs_qhandle_t q = queue_of(8, EXS_WAIT_ADAPTIVE);
	struct waiter w;
	exs_event_t ev;
	struct pair p;
	long polls;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	/* Not after a fixed number: a wait whose time was up when it began was a short one. */
	wait_until(({
		polls = delta("busy_given_up");
		must_be(exs_qdequeue(q, &ev, 1, &tick), 0);
		polls && delta("busy_given_up") == polls;
	}));
	waiter_start(&w, q);
	wait_blocked(w.tid);
	must_be(send(p.c, "x", 1, 0), 1);
	waiter_gets(&w, EXS_EVT_RECV, 1, 0, 1);
}

#define TRACING "/sys/kernel/tracing"
#define TRACE_IT "mkdir exs && cd exs && echo schedule > set_ftrace_filter && echo function > current_tracer"

/* For how long a thread of this process has run. */
static long ran_ns(pid_t tid)
{
	char path[64];
	long ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "re");
	check(f && fscanf(f, "%ld", &ns) == 1, "%s: %s", path, errno_name(errno));
	fclose(f);
	return ns;
}

/* A task that stops tracing functions waits until each task has slept, or has said that it might. */
static void lets_others_trace(void)
{
	exs_qhandle_t q = queue_of(8, EXS_WAIT_BUSY_POLL);
	struct waiter w;
	struct pair p;

	if (access(TRACING "/set_ftrace_filter", W_OK))
		skip("this kernel traces no functions");
	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	waiter_start(&w, q);
	wait_until(ran_ns(w.tid) > 20 * 1000 * 1000);
	shell("cd " TRACING "/instances && " TRACE_IT " && echo nop > current_tracer; cd .. && rmdir exs");
	must_be(send(p.c, "x", 1, 0), 1);
	waiter_gets(&w, EXS_EVT_RECV, 1, 0, 1);
}

static const struct e2e_case cases[] = {
	{ "modes", modes, .on = ON_EXS },
	{ "lets_others_trace", lets_others_trace, .on = ON_STREAM },
	{ "notified", notified, .on = ON_STREAM },
	{ "polled", polled, .on = ON_BOTH },
	{ "time_is_up", time_is_up, .on = ON_STREAM },
	{ "interrupted", interrupted, .on = ON_STREAM },
	{ "nothing_to_poll", nothing_to_poll, .on = ON_STREAM },
	{ "attended", attended, .on = ON_BOTH },
	{ "placed", placed, .on = ON_STREAM },
	{ "least_need", least_need, .on = ON_BOTH },
	{ "let_go", let_go, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connection_ends", connection_ends, .on = ON_STREAM },
	{ "process_killed", process_killed, .on = ON_STREAM },
	{ "others_served", others_served, .on = ON_STREAM },
	{ "restarted", restarted, .on = ON_STREAM },
	{ "all_or_nothing", all_or_nothing, .on = ON_STREAM },
	{ "processes_interrupted", processes_interrupted, .on = ON_STREAM },
	{ "threads_sleeping", threads_sleeping, .on = ON_STREAM },
	{ "threads_polling", threads_polling, .on = ON_STREAM },
	{ "threads_adaptive", threads_adaptive, .on = ON_STREAM },
	{ "adapts", adapts, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
