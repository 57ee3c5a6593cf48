// SPDX-License-Identifier: MIT
/*
 * The clock stops when the server has confirmed how much has arrived, so data that are
 * in flight when the client stops are counted with the time that they need.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net.h"
#include "perf.h"
#include "say.h"

#define MIB	1048576.0

/* The count decides if it was given, otherwise the time. */
static bool more(const struct perf_options *o, uint64_t started, double start)
{
	if (o->count)
		return started < o->count;
	return perf_now() - start < o->seconds;
}

/* Start @n transfers again with one call. */
static bool begin(struct perf *p, int type, uint64_t first, int n)
{
	exs_op_t ops[PERF_MAX_DEPTH];
	int i;

	for (i = 0; i < n; i++)
		ops[i] = perf_op(p, type, (first + i) % p->depth);
	return !n || perf_submit(p, ops, n);
}

/* Each send has a buffer; it does not matter which send has ended. */
static bool pump(struct perf *p, double start)
{
	uint64_t started = 0, ended = 0;
	struct perf_moved m;
	int n;

	for (;;) {
		for (n = 0; started + n - ended < p->depth && more(p->o, started + n, start); n++)
			;
		if (!begin(p, EXS_EVT_SEND, started, n))
			return false;
		started += n;
		if (started == ended)
			return true;
		if (!perf_wait(p, p->depth < 16 ? p->depth : 16, &m))
			return false;
		ended += m.sends;
	}
}

static void print_result(struct perf *p, const struct perf_answer *a, const struct counts *own,
			 double t)
{
	uint64_t bytes = le64toh(a->bytes);

	printf("blast type=%s size=%u depth=%u bytes=%llu seconds=%.3f MiB/s=%.2f MB/s=%.2f",
	       p->o->type == SOCK_STREAM ? "stream" : "seqpacket", p->size,
	       p->depth, (unsigned long long)bytes, t, bytes / t / MIB,
	       bytes / t / 1e6);
	counts_print(own, &a->counts, bytes / p->size ?: 1);
	putchar('\n');
	fflush(stdout);
}

bool blast_client(struct perf *p)
{
	struct perf_answer a;
	struct counts own;
	double start, t;
	bool ok;

	counts_begin(&own);
	start = perf_now();
	perf_watch(true);
	ok = pump(p, start);
	perf_watch(false);
	if (!ok)
		return false;
	if (shutdown(p->fd, SHUT_WR) ||
	    !net_recv_all(p->fd, &a, sizeof(a), PERF_TIMEOUT)) {
		say("the server's answer: %s%s", errno ? strerror(errno) : "closed by the server",
		    net_call_advice(errno));
		return false;
	}
	t = perf_now() - start;
	counts_end(&own);
	counts_swap(&a.counts);
	print_result(p, &a, &own, t);
	return true;
}

/* Receives end in the order in which they were started. */
static bool drain(struct perf *p, uint64_t *bytes)
{
	uint64_t next = 0;
	struct perf_moved m;

	if (!begin(p, EXS_EVT_RECV, 0, p->depth))
		return false;
	while (perf_wait(p, p->depth < 16 ? p->depth : 16, &m)) {
		*bytes += m.received;
		if (m.eof)
			return true;
		if (!begin(p, EXS_EVT_RECV, next, m.receives))
			return false;
		next += m.receives;
	}
	return false;
}

bool blast_server(struct perf *p)
{
	struct perf_answer a = { .magic = htole32(PERF_MAGIC) };
	uint64_t bytes = 0;
	bool ok;

	counts_begin(&a.counts);
	perf_watch(true);
	ok = drain(p, &bytes);
	perf_watch(false);
	if (!ok)
		return false;
	a.bytes = htole64(bytes);
	counts_end(&a.counts);
	counts_swap(&a.counts);
	return net_send_all(p->fd, &a, sizeof(a), PERF_TIMEOUT);
}
