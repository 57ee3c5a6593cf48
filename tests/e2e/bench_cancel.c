// SPDX-License-Identifier: GPL-2.0
/*
 * What it takes to end operations, by their number: tests/bench-cancel runs it. Each case
 * has so many receives pending, of one byte each, and says how long it took until they
 * were cancelled, until the queue was closed, and until the process that submitted them was gone.
 */
#include "lib/async.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SOCKETS = 200, BATCH = 256 };

static const int sizes[] = { 20000, 80000, 320000 };

static char bytes[4096];

struct load {
	struct pair p[SOCKETS];
	int sockets, ops;
	exs_qhandle_t q;
};

static void submit(const struct load *l)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_WRITE);
	struct exs_sqe sqe[BATCH] = { 0 };
	int i, n, done;

	for (done = 0; done < l->ops; done += n) {
		n = l->ops - done < BATCH ? l->ops - done : BATCH;
		for (i = 0; i < n; i++)
			sqe[i] = (struct exs_sqe){
				.opcode = EXS_OP_RECV, .fd = l->p[(done + i) % l->sockets].s,
				.addr = (uintptr_t)bytes, .len = 1, .region = m,
			};
		must_be(submit_raw(l->q, sqe, n), n);
	}
}

struct doomed { const struct load *load; int wr; };

static void submit_and_wait(void *arg)
{
	const struct doomed *d = arg;

	submit(d->load);
	tell(d->wr, 0);
	pause();
}

static double cancelled(const struct load *l)
{
	double start;

	submit(l);
	start = now();
	must_be(exs_cancel(l->q, -1, 0, 0), 0);
	wait_until(queue_attr(l->q, EXS_ATTR_EVENTS) == l->ops);
	return now() - start;
}

static double closed(struct load *l)
{
	double start;

	submit(l);
	start = now();
	must(close(l->q));
	return now() - start;
}

static double killed(const struct load *l)
{
	struct pipe_pair said = pipe_open();
	struct doomed d = { l, said.wr };
	pid_t pid = spawn(submit_and_wait, &d);
	double start;

	hear(said.rd);
	start = now();
	must(kill(pid, SIGKILL));
	reap(pid);
	return now() - start;
}

static void measure(int ops, int sockets)
{
	static struct load l;
	double c, e, k;
	int i;

	l = (struct load){ .ops = ops, .sockets = sockets };
	for (i = 0; i < sockets; i++)
		pair_open(&l.p[i]);
	l.q = queue_new(ops);
	c = cancelled(&l);
	must(close(l.q));
	l.q = queue_new(ops);
	e = closed(&l);
	l.q = queue_new(ops);
	k = killed(&l);
	printf("# %6d operations, %3d socket(s): cancel %6.2f s, close %6.2f s, exit %6.2f s\n",
	       ops, sockets, c, e, k);
	fflush(stdout);
	must(close(l.q));
	for (i = 0; i < sockets; i++)
		pair_close(&l.p[i]);
}

static void one_socket(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (atoi(getenv("EXS_BENCH_MAX") ?: "1000000") >= sizes[i])
			measure(sizes[i], 1);
}

static void many_sockets(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		measure(sizes[i], SOCKETS);
}

static const struct e2e_case cases[] = {
	{ "one_socket", one_socket, .on = ON_STREAM | ON_TCP, .limit = 600 },
	{ "many_sockets", many_sockets, .on = ON_STREAM | ON_TCP, .limit = 600 },
	{ }
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
