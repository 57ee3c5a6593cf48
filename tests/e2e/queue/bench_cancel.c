// SPDX-License-Identifier: GPL-2.0
/*
 * The time to end operations, by their number: tests/bench/cancel runs it. Receives of one
 * byte, or sends to a peer that does not read, are pending on one connection, or on many. They
 * end in one of five ways; the result is the time until the last one is gone. Each row has four
 * times as many operations as the one above, and the number behind each time is its ratio to
 * that row: with linear cost it is four.
 */
#include "lib/async.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKETS = 200, BATCH = 256 };

static const int sizes[] = { 20000, 80000, 320000 };

static char bytes[4096];

struct load {
	struct pair p[SOCKETS];
	int sockets, ops;
	bool sends;
	exs_qhandle_t q;
	pid_t child;
};

static int socket_of(const struct load *l, int i)
{
	return l->sends ? l->p[i % l->sockets].c : l->p[i % l->sockets].s;
}

static void submit(const struct load *l)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_READ | EXS_ACCESS_WRITE);
	struct exs_sqe sqe[BATCH] = { 0 };
	int i, n, done;

	for (done = 0; done < l->ops; done += n) {
		n = l->ops - done < BATCH ? l->ops - done : BATCH;
		for (i = 0; i < n; i++)
			sqe[i] = (struct exs_sqe){
				.opcode = l->sends ? EXS_OP_SEND : EXS_OP_RECV, .fd = socket_of(l, done + i),
				.addr = (uintptr_t)bytes, .len = l->sends ? sizeof(bytes) : 1, .region = m,
			};
		must_be(submit_raw(l->q, sqe, n), n);
	}
}

/* -- the ways: begin prepares, end is measured */

static void submit_here(struct load *l)
{
	submit(l);
}

static void cancel(struct load *l)
{
	must_be(exs_cancel(l->q, -1, 0, 0), 0);
}

static void close_queue(struct load *l)
{
	must(close(l->q));
	l->q = -1;
}

/* The queue's last mapping keeps it. */
static struct ring kept;

static void submit_mapped(struct load *l)
{
	submit(l);
	ring_map(l->q, &kept);
	close_queue(l);
	must(munmap((void *)kept.ring, kept.size));
}

static void unmap(struct load *l)
{
	(void)l;
	must(munmap((void *)kept.head, sysconf(_SC_PAGESIZE)));
}

/*
 * Closing AF_EXS sockets ends their operations, at once if they do not linger; with ordinary ones only exs_close()
 * does.
 */
static void close_sockets(struct load *l)
{
	struct linger at_once = { .l_onoff = 1 };
	int i, err;

	for (i = 0; i < l->sockets; i++) {
		must(setsockopt(socket_of(l, i), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
		err = e2e.family == exs_family_number() ? close(socket_of(l, i)) :
							  exs_close(socket_of(l, i), 0, l->q, i);
		must(err);
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

static void submit_elsewhere(struct load *l)
{
	struct pipe_pair said = pipe_open();
	struct doomed d = { l, said.wr };

	l->child = spawn(submit_and_wait, &d);
	hear(said.rd);
	close(said.rd);
	close(said.wr);
}

static void exits(struct load *l)
{
	must(kill(l->child, SIGKILL));
	reap(l->child);
}

static const struct way {
	const char *name;
	void (*begin)(struct load *l), (*end)(struct load *l);
} ways[] = {
	{ "cancel", submit_here, cancel },
	{ "close", submit_here, close_queue },
	{ "exit", submit_elsewhere, exits },
	{ "unmap", submit_mapped, unmap },
	{ "sockets", submit_here, close_sockets },
};

/* -- */

/* Little goes on its way before the sends wait. */
static void narrow(const struct pair *p)
{
	int least = 1;

	must(setsockopt(p->c, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)));
	must(setsockopt(p->s, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)));
}

static void load_open(struct load *l)
{
	int i;

	l->q = queue_new(l->ops + l->sockets);
	for (i = 0; i < l->sockets; i++) {
		pair_open(&l->p[i]);
		narrow(&l->p[i]);
	}
}

static void load_close(struct load *l)
{
	int i;

	if (l->q >= 0)
		close(l->q);
	for (i = 0; i < l->sockets; i++) {
		close(l->p[i].c);
		close(l->p[i].s);
	}
	wait_until(!counter("live_conns") && !counter("live_lanes"));
}

static double measure(const struct way *way, int ops, int sockets, bool sends)
{
	static struct load l;
	double start;

	l = (struct load){ .ops = ops, .sockets = sockets, .sends = sends };
	load_open(&l);
	way->begin(&l);
	start = now();
	way->end(&l);
	wait_until(!counter("live_ops"));
	start = now() - start;
	load_close(&l);
	return start;
}

static void row(int ops, int sockets, bool sends, double *last)
{
	double took;
	size_t i;

	printf("# %6d %s on %3d:", ops, sends ? "sends" : "receives", sockets);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		took = measure(&ways[i], ops, sockets, sends);
		printf("  %s %5.2f s", ways[i].name, took);
		if (last[i])
			printf(" (x%4.1f)", took / last[i]);
		last[i] = took;
		fflush(stdout);
	}
	printf("\n");
	fflush(stdout);
}

static void table(int sockets, bool sends)
{
	double last[ARRAY_SIZE(ways)] = { 0 };
	size_t i;

	/* Objects that exist once are made here. */
	measure(&ways[0], sizes[0], sockets, sends);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (atoi(getenv("EXS_BENCH_MAX") ?: "1000000") >= sizes[i])
			row(sizes[i], sockets, sends, last);
}

static void receives_on_one(void)
{
	table(1, false);
}

static void receives_on_many(void)
{
	table(SOCKETS, false);
}

static void sends_on_one(void)
{
	table(1, true);
}

static void sends_on_many(void)
{
	table(SOCKETS, true);
}

#define KINDS (ON_STREAM | ON_SEQ | ON_TCP | ON_UNIX)

static const struct e2e_case cases[] = {
	{ "receives_on_one", receives_on_one, .on = KINDS, .limit = 1200 },
	{ "receives_on_many", receives_on_many, .on = KINDS, .limit = 1200 },
	{ "sends_on_one", sends_on_one, .on = KINDS, .limit = 1200 },
	{ "sends_on_many", sends_on_many, .on = KINDS, .limit = 1200 },
	{ }
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
