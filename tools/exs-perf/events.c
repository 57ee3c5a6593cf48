// SPDX-License-Identifier: MIT
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "net.h"
#include "perf.h"
#include "say.h"

#define BATCH	64

void perf_failed(const char *what, int err)
{
	if (err == EINTR)
		say("no progress for %d s (is the other machine alive? rdma link)", PERF_TIMEOUT);
	else
		say("%s: %s%s", what, strerror(err), net_call_advice(err));
}

bool perf_buffers(struct perf *p)
{
	int how = EXS_WAIT_BUSY_POLL;

	if (!buffers_init(&p->b, p->depth, p->size))
		return false;
	if (!(p->flags & PERF_BUSY) || !exs_qmodify(p->b.queue, EXS_QATTR_WAIT, &how))
		return true;
	perf_failed("cannot poll (--busy)", errno);
	return false;
}

double perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

exs_op_t perf_op(const struct perf *p, int type, int i)
{
	bool whole = type == EXS_EVT_RECV && p->o->type == SOCK_STREAM;

	return (exs_op_t){
		.exs_op_type = type,
		.exs_op_fd = p->fd,
		.exs_op_flags = whole ? MSG_WAITALL : type == EXS_EVT_SEND ? MSG_NOSIGNAL : 0,
		.exs_op_region = p->b.region,
		.exs_op_buf = buffer_at(&p->b, i),
		.exs_op_len = p->size,
		.exs_op_handle = i,
	};
}

bool perf_submit(struct perf *p, const exs_op_t *ops, int n)
{
	if (exs_submit(p->b.queue, ops, n) == n)
		return true;
	perf_failed("cannot start operations", errno);
	return false;
}

static bool add(const exs_event_t *ev, struct perf_moved *m)
{
	size_t len = ev->exs_evt_union.exs_evt_xfer.exs_evt_length;

	if (ev->exs_evt_errno) {
		perf_failed(ev->exs_evt_type == EXS_EVT_SEND ? "send" : "receive", ev->exs_evt_errno);
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

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

void perf_watch(bool on)
{
	const struct sigaction tick = { .sa_handler = on_tick };
	const struct itimerval every = {
		.it_interval.tv_sec = on ? PERF_TIMEOUT : 0,
		.it_value.tv_sec = on ? PERF_TIMEOUT : 0,
	};

	sigaction(SIGALRM, &tick, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

bool perf_wait(struct perf *p, int n, struct perf_moved *m)
{
	exs_event_t ev[BATCH];
	int i, got, since = ticks;

	memset(m, 0, sizeof(*m));
	do {
		got = exs_qdequeue(p->b.queue, ev, n, NULL);
	} while (got < 0 && errno == EINTR && ticks - since < 2);
	if (got < 0)
		perf_failed("cannot wait for the operations", errno);
	for (i = 0; i < got; i++)
		if (!add(&ev[i], m))
			return false;
	return got > 0;
}
