// SPDX-License-Identifier: MIT
/*
 * The receive for the answer is there before the send goes out, and one call
 * starts both; one wait covers their events: a thread sleeps once each way, as
 * ib_send_lat does in event mode. Half a round is what is reported, as there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf.h"
#include "say.h"

#define MAX_ROUNDS	10000000

/* The buffers: one to send from, and one to receive into. */
enum { OUT, IN };

static exs_op_t op_of(const struct perf *p, int type, int buffer)
{
	bool whole = type == EXS_EVT_RECV && p->o->type == SOCK_STREAM;

	return (exs_op_t){
		.exs_op_type = type,
		.exs_op_fd = p->fd,
		.exs_op_flags = whole ? MSG_WAITALL : 0,
		.exs_op_region = p->b.region,
		.exs_op_buf = buffer_at(&p->b, buffer),
		.exs_op_len = p->size,
		.exs_op_handle = buffer,
	};
}

/* A receive, and if @ops is 2 a send. */
static bool start(struct perf *p, int ops)
{
	exs_op_t op[] = {
		op_of(p, EXS_EVT_RECV, IN),
		op_of(p, EXS_EVT_SEND, OUT),
	};

	if (exs_submit(p->b.queue, op, ops) == ops)
		return true;
	say_errno("exs_submit");
	return false;
}

static bool round_trip(struct perf *p)
{
	struct perf_moved m;

	if (!start(p, 2) || !perf_wait(p, -2, &m))
		return false;
	if (m.received == p->size)
		return true;
	say("the server ended it");
	return false;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_result(struct perf *p, double *t, uint64_t n)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		sum += t[i];
	qsort(t, n, sizeof(*t), compare);
	printf("pingpong type=%s size=%u rounds=%llu min_usec=%.2f median_usec=%.2f avg_usec=%.2f p99_usec=%.2f\n",
	       p->o->type == SOCK_STREAM ? "stream" : "seqpacket", p->size,
	       (unsigned long long)n, t[0], t[n / 2], sum / n,
	       t[n - 1 - n / 100]);
	fflush(stdout);
}

static bool measure(struct perf *p, double *t, uint64_t max, uint64_t *n)
{
	double start = perf_now(), before, after = start;

	for (*n = 0; *n < max; ++*n) {
		before = after;
		if (!p->o->count && before - start >= p->o->seconds)
			return true;
		if (!round_trip(p))
			return false;
		after = perf_now();
		t[*n] = (after - before) * 1e6 / 2;
	}
	return true;
}

bool pingpong_client(struct perf *p)
{
	uint64_t max = p->o->count ?: MAX_ROUNDS, n, i;
	double *t = calloc(max, sizeof(*t));
	bool ok = t;

	if (!t)
		say_errno("memory");
	perf_watch(true);
	for (i = 0; ok && i < p->o->warmup; i++)
		ok = round_trip(p);
	ok = ok && measure(p, t, max, &n) && n;
	perf_watch(false);
	if (ok)
		print_result(p, t, n);
	free(t);
	return ok;
}

/* Until the client shuts down: then the receive ends with nothing. */
bool pingpong_server(struct perf *p)
{
	struct perf_moved m = {};
	bool ok = true;
	int ops = 1;

	perf_watch(true);
	while (ok && !m.eof) {
		ok = start(p, ops) && perf_wait(p, -ops, &m);
		ops = 2;
	}
	perf_watch(false);
	return ok;
}
