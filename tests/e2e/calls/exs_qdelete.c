// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CALL "exs_qdelete"

/* Its operations end without an event; the socket has the next byte. */
static void with_operations(void)
{
	exs_qhandle_t q = queue_new(3);
	struct pair p;
	char in[3];

	pair_open(&p);
	must_be(send(p.c, "a", 1, 0), 1);
	start_recv(p.s, in, 1, 0, q, 1, NO_REGION);
	wait_io(q, POLLIN);
	start_recv(p.s, in + 1, 1, 0, q, 2, NO_REGION);
	start_recv(p.s, in + 2, 1, 0, q, 3, NO_REGION);
	must(exs_qdelete(q));
	wait_until(counter("live_ops") == 0);
	must_be(send(p.c, "b", 1, 0), 1);
	must_be(recv(p.s, in, 1, 0), 1);
	must_be(in[0], 'b');
}

/* A duplicate keeps the queue. */
static void duplicate(void)
{
	exs_qhandle_t q = queue_new(1), copy = must(dup(q));
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	must(exs_qdelete(q));
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(copy, EXS_EVT_RECV, 1, 0, 1);
}

struct waiter {
	exs_qhandle_t q;
	volatile pid_t tid;
	int result, err;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	exs_event_t ev;

	w->tid = gettid();
	w->result = exs_qdequeue(w->q, &ev, 1, NULL);
	w->err = errno;
	return NULL;
}

/* A thread that waits for events does not keep the queue, and returns. */
static void while_waiting(void)
{
	static const int modes[] = { EXS_QWAIT_NOTIFY, EXS_QWAIT_BUSY };
	struct exs_ioc_attr set = { .size = sizeof(set), .attr = EXS_ATTR_WAIT };
	struct waiter w = {};
	pthread_t thread;
	struct pair p;
	size_t i;
	char in;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		w = (struct waiter){ .q = queue_new(2) };
		set.value = modes[i];
		must(ioctl(w.q, EXS_IOC_SETATTR, &set));
		start_recv(p.s, &in, 1, 0, w.q, 1, NO_REGION);
		must_be(-pthread_create(&thread, NULL, waits, &w), 0);
		wait_until(w.tid && (modes[i] == EXS_QWAIT_BUSY || state_is(w.tid, 'S')));
		must(exs_qdelete(w.q));
		must_be(-pthread_join(thread, NULL), 0);
		must_be(w.result, -1);
		must_be(w.err, EBADF);
		wait_until(counter("live_ops") == 0);
		must_be(send(p.c, "a", 1, 0), 1);
		must_be(recv(p.s, &in, 1, 0), 1);
	}
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_qdelete(-1), EBADF);
	must_fail(exs_qdelete(w.file), EINVAL);
	must_fail(exs_qdelete(p.c), EINVAL);
	must(exs_qdelete(q));
	must_fail(exs_qdelete(q), EBADF);
	must(fcntl(w.file, F_GETFD));
	must(fcntl(p.c, F_GETFD));
}

const struct e2e_case exs_qdelete_cases[] = {
	CASE(with_operations, ON_KINDS),
	CASE(duplicate, ON_KINDS),
	CASE(while_waiting, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
