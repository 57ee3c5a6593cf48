// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <time.h>

#include "perf.h"
#include "say.h"

#define BATCH	64

double perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static bool add(const exs_event_t *ev, struct perf_moved *m)
{
	size_t len = ev->exs_evt_union.exs_evt_xfer.exs_evt_length;

	if (ev->exs_evt_errno) {
		say("%s: %s", ev->exs_evt_type == EXS_EVT_SEND ? "send" : "receive",
		    strerror(ev->exs_evt_errno));
		return false;
	}
	if (ev->exs_evt_type == EXS_EVT_SEND) {
		m->sends++;
		m->sent += len;
		return true;
	}
	m->receives++;
	m->received += len;
	m->last_recv = ev->exs_evt_ahandle;
	m->eof = m->eof || !len;
	return true;
}

bool perf_wait(struct perf *p, int n, struct perf_moved *m)
{
	struct timeval tv = { .tv_sec = PERF_TIMEOUT };
	exs_event_t ev[BATCH];
	int i, got;

	memset(m, 0, sizeof(*m));
	got = exs_qdequeue(p->b.queue, ev, n, &tv);
	if (got < 0 && errno != EINTR)
		say_errno("exs_qdequeue");
	if (!got || (n < 0 && got > 0 && got < -n)) {
		say("nothing moved for %d s", PERF_TIMEOUT);
		return false;
	}
	for (i = 0; i < got; i++)
		if (!add(&ev[i], m))
			return false;
	return got > 0;
}
