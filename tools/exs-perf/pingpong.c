// SPDX-License-Identifier: MIT
/*
 * Receives are posted in advance, as with ib_send_lat: one call starts the send and the
 * next receive. One wait covers the events of the send and of the answer, so a thread
 * sleeps once each way, like ib_send_lat in event mode. Half of a round trip is reported,
 * as there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "say.h"

#define MAX_ROUNDS	10000000

/* The buffers: one for sends, and two for receives. */
enum { OUT, IN, IN_TOO, BUFFERS };

_Static_assert(BUFFERS == PERF_PINGPONG_DEPTH, "both ends have so many");

static bool receive(struct perf *p, int buffer)
{
	exs_op_t op = perf_op(p, EXS_EVT_RECV, buffer);

	return perf_submit(p, &op, 1);
}

static bool send_and_receive(struct perf *p, int buffer)
{
	const exs_op_t op[] = {
		perf_op(p, EXS_EVT_SEND, OUT),
		perf_op(p, EXS_EVT_RECV, buffer),
	};

	return perf_submit(p, op, 2);
}

/* @buffer: in: one without a receive; out: the one with the answer. */
static bool round_trip(struct perf *p, int *buffer)
{
	struct perf_moved m;

	if (p->flags & PERF_PLAIN)
		return plain_round_trip(p);
	if (!send_and_receive(p, *buffer) || !perf_wait(p, -2, &m))
		return false;
	*buffer = m.last_recv;
	if (m.received == p->size)
		return true;
	say("the server ended the test: see what it says");
	return false;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_result(struct perf *p, const struct counts *c, double *t, uint64_t n)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		sum += t[i];
	qsort(t, n, sizeof(*t), compare);
	printf("pingpong type=%s size=%u rounds=%llu min_usec=%.2f median_usec=%.2f avg_usec=%.2f p99_usec=%.2f",
	       p->o->type == SOCK_STREAM ? "stream" : "seqpacket", p->size,
	       (unsigned long long)n, t[0], t[n / 2], sum / n,
	       t[n - 1 - n / 100]);
	counts_print(c, NULL, n);
	putchar('\n');
	fflush(stdout);
}

static bool measure(struct perf *p, int *buffer, double *t, uint64_t max, uint64_t *n)
{
	double start = perf_now(), before, after = start;

	for (*n = 0; *n < max; ++*n) {
		before = after;
		if (!p->o->count && before - start >= p->o->seconds)
			return true;
		if (!round_trip(p, buffer))
			return false;
		after = perf_now();
		t[*n] = (after - before) * 1e6 / 2;
	}
	return true;
}

static bool begin(struct perf *p)
{
	return p->flags & PERF_PLAIN ? plain_begin(p) : receive(p, IN);
}

bool pingpong_client(struct perf *p)
{
	uint64_t max = p->o->count ?: MAX_ROUNDS, n, i;
	double *t = calloc(max, sizeof(*t));
	int buffer = IN_TOO;
	struct counts c;
	bool ok = t;

	if (!t)
		say("cannot store the times: %s: use a smaller --count", strerror(errno));
	perf_watch(true);
	ok = ok && begin(p);
	for (i = 0; ok && i < p->o->warmup; i++)
		ok = round_trip(p, &buffer);
	counts_begin(&c);
	ok = ok && measure(p, &buffer, t, max, &n) && n;
	counts_end(&c);
	perf_watch(false);
	if (ok)
		print_result(p, &c, t, n);
	free(t);
	return ok;
}

/* Runs until the client shuts down: then the receives end with 0 bytes. */
static bool serve(struct perf *p)
{
	struct perf_moved m;
	bool ok, more;

	ok = receive(p, IN) && receive(p, IN_TOO) && perf_wait(p, -1, &m);
	for (more = ok && !m.eof; more; more = ok && !m.eof)
		ok = send_and_receive(p, m.last_recv) && perf_wait(p, -2, &m);
	return ok;
}

bool pingpong_server(struct perf *p)
{
	bool ok;

	perf_watch(true);
	ok = p->flags & PERF_PLAIN ? plain_server(p) : serve(p);
	perf_watch(false);
	return ok;
}
