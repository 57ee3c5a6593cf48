// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that report that they take long, and go on. The tests do not measure
 * when they report it, but check that they do, once or again, and never after the
 * end.
 */
#include "lib/async.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char buf[64 * 1024];

static void set_long(int fd, int name, int ms, int flags)
{
	exs_timeout_t t = {
		.exs_time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
		.exs_flags = flags,
	};

	must(exs_setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)));
}

static void is_long(int fd, int name, long ms, int flags)
{
	exs_timeout_t t;
	socklen_t len = sizeof(t);

	must(exs_getsockopt(fd, SOL_SOCKET, name, &t, &len));
	must_be(len, sizeof(t));
	must_be(t.exs_time.tv_sec * 1000 + t.exs_time.tv_usec / 1000, ms);
	must_be(t.exs_flags, flags);
}

static int cancel_all(exs_qhandle_t q)
{
	struct exs_ioc_cancel all = { .size = sizeof(all) };

	must(ioctl(q, EXS_IOC_CANCEL, &all));
	return all.count;
}

static void recv_one(struct pair *p, exs_qhandle_t q, exs_ahandle_t h)
{
	start_recv(p->s, buf, sizeof(buf), 0, q, h, NO_REGION);
}

static void values(void)
{
	struct timeval tv = { 1, 500000 };
	exs_timeout_t t = { { 1, 0 }, 2 };
	int fd = listener(8), one = 0;
	socklen_t len = sizeof(one);
	struct pair p;

	is_long(fd, SO_ASYNC_SEND_TIMEOUT, 0, 0);
	set_long(fd, SO_ASYNC_SEND_TIMEOUT, 1250, EXS_TIMEOUT_ONCE);
	must(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &tv, sizeof(tv)));
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)), EINVAL);
	is_long(fd, SO_ASYNC_SEND_TIMEOUT, 1250, EXS_TIMEOUT_ONCE);
	is_long(fd, SO_ASYNC_RECV_TIMEOUT, 1500, 0);
	pair_from(&p, fd);
	is_long(p.s, SO_ASYNC_SEND_TIMEOUT, 1250, EXS_TIMEOUT_ONCE);
	is_long(p.s, SO_ASYNC_RECV_TIMEOUT, 1500, 0);
	is_long(p.c, SO_ASYNC_RECV_TIMEOUT, 0, 0);
	set_long(p.s, SO_ASYNC_SEND_TIMEOUT, 0, EXS_TIMEOUT_ONCE);
	is_long(p.s, SO_ASYNC_SEND_TIMEOUT, 0, 0);
	must(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, sizeof(one)));
	must(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, &len));
	must_be(one, 1);
	must_fail(setsockopt(fd, SOL_EXS, EXS_SO_SEND_TIMEOUT, &one, sizeof(one)), EINVAL);
}

static void once(void)
{
	exs_qhandle_t q = queue_new(4), other = queue_new(2);
	struct pair p, o;
	int i;

	pair_open(&p);
	pair_open(&o);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, EXS_TIMEOUT_ONCE);
	set_long(o.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	recv_one(&p, q, 1);
	event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
	/* There is time for more. */
	recv_one(&o, other, 2);
	for (i = 0; i < 5; i++)
		event_is(other, EXS_EVT_RECVTIMEOUT, 2, 0, 0);
	no_event(q);
	send_all(p.c, 1, 0, 100);
	event_is(q, EXS_EVT_RECV, 1, 0, 100);
	data_check(1, 0, buf, 100);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 1);
	must_be(queue_attr(q, EXS_ATTR_POSTED), 1);
	pair_close(&p);
	pair_close(&o);
}

/* The end, perhaps after more of the other. */
static exs_event_t last_event(exs_qhandle_t q, int type)
{
	exs_event_t ev;

	do {
		ev = event_next(q);
	} while (ev.exs_evt_type == type);
	return ev;
}

/* A timeout applies to operations that come after it. */
static void repeated(void)
{
	exs_qhandle_t q = queue_new(8);
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	start_recv(p.s, buf, 10, MSG_WAITALL, q, 1, NO_REGION);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	start_recv(p.s, buf + 10, 10, MSG_WAITALL, q, 2, NO_REGION);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 0, 0);
	start_recv(p.s, buf + 20, 10, MSG_WAITALL, q, 3, NO_REGION);
	for (i = 0; i < 4; i++)
		event_is(q, EXS_EVT_RECVTIMEOUT, 2, 0, 0);
	for (i = 0; i < 3; i++) {
		send_all(p.c, 1, i * 10, 10);
		ev = last_event(q, EXS_EVT_RECVTIMEOUT);
		event_check(&ev, EXS_EVT_RECV, i + 1, 0, 10);
	}
	no_event(q);
	data_check(1, 0, buf, 30);
	pair_close(&p);
}

/* There is only one in the ring, however long it is not read. */
static void unread(void)
{
	exs_qhandle_t q = queue_new(4), other = queue_new(4);
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	recv_one(&p, q, 1);
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == 1);
	recv_one(&p, other, 2);
	for (i = 0; i < 5; i++)
		event_is(other, EXS_EVT_RECVTIMEOUT, 2, 0, 0);
	must_be(queue_attr(q, EXS_ATTR_EVENTS), 1);
	event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
	event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
	/* It ends while one is in the ring. */
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == 1);
	send_all(p.c, 1, 0, 100);
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == 2);
	event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
	event_is(q, EXS_EVT_RECV, 1, 0, 100);
	must_be(cancel_all(other), 1);
	ev = last_event(other, EXS_EVT_RECVTIMEOUT);
	event_check(&ev, EXS_EVT_RECV, 2, ECANCELED, 0);
	pair_close(&p);
}

/* However many are unread, they are looked after together, and less and less often. */
static void many_unread(void)
{
	enum { MANY = 100, TIMES = 3, PERIOD = 1000, MOST = 9 };
	exs_qhandle_t q = queue_new(2 * MANY), other = queue_new(4);
	struct pair p;
	double start;
	long before, looks;
	int i;

	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	for (i = 0; i < MANY; i++)
		recv_one(&p, q, i);
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == MANY);
	start = now();
	before = delta("timeout_looks");
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, PERIOD, 0);
	recv_one(&p, other, MANY);
	for (i = 0; i < TIMES; i++)
		event_is(other, EXS_EVT_RECVTIMEOUT, MANY, 0, 0);
	/* For each queue MOST until they are a second apart, after each event anew. */
	looks = delta("timeout_looks") - before;
	check(looks <= (1 + TIMES) * MOST + 2 * (now() - start), "%ld looks", looks);
	for (i = 0; i < MANY; i++)
		must_be(event_next(q).exs_evt_type, EXS_EVT_RECVTIMEOUT);
	/* They go on. */
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) == MANY);
	must_be(cancel_all(q), MANY);
	must_be(cancel_all(other), 1);
}

static void no_room(struct pair *p, exs_qhandle_t q)
{
	must_fail(exs_recv(p->s, buf, 10, 0, q, 9, NO_REGION), EAGAIN);
}

/* The second place is the operation's, also while it is not in use. */
static void slots(void)
{
	exs_qhandle_t q = queue_new(2), small = queue_new(1);
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	no_room(&p, small);
	for (i = 0; i < 3; i++) {
		recv_one(&p, q, 1);
		no_room(&p, q);
		event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
		no_room(&p, q);
		event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
		no_room(&p, q);
		must_be(cancel_all(q), 1);
		ev = last_event(q, EXS_EVT_RECVTIMEOUT);
		event_check(&ev, EXS_EVT_RECV, 1, ECANCELED, 0);
	}
	/* A send has no timeout: one place. */
	start_send(p.s, "x", 1, small, 2, NO_REGION);
	event_is(small, EXS_EVT_SEND, 2, 0, 1);
	pair_close(&p);
}

enum { CONSUMED = 200, WAYS = 4 };

/* One of the calls that depend on how many events are unread. */
static void none_unread(exs_qhandle_t q, struct pair *p, int way)
{
	struct exs_ioc_wait w = { .size = sizeof(w), .count = 1 };
	struct pollfd pfd = { .fd = q, .events = POLLIN };

	if (way == 0)
		must_be(queue_attr(q, EXS_ATTR_EVENTS), 0);
	if (way == 1)
		must_fail(ioctl(q, EXS_IOC_WAIT, &w), ETIME);
	if (way == 2)
		must_be(poll(&pfd, 1, 0), 0);
	recv_one(p, q, CONSUMED);
	no_room(p, q);
}

/* More are consumed at a time than the kernel looks at under the queue's lock. */
static void many_consumed(void)
{
	struct pair p;
	struct ring r;
	exs_qhandle_t q;
	int way, i;

	pair_open(&p);
	for (way = 0; way < WAYS; way++) {
		q = queue_new(2 * CONSUMED + 1);
		set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, EXS_TIMEOUT_ONCE);
		for (i = 0; i < CONSUMED; i++)
			recv_one(&p, q, i);
		wait_until(queue_attr(q, EXS_ATTR_EVENTS) == CONSUMED);
		set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 0, 0);
		ring_map(q, &r);
		r.head->head = CONSUMED;
		none_unread(q, &p, way);
		must_be(cancel_all(q), CONSUMED + 1);
		for (i = 0; i <= CONSUMED; i++)
			must_be(event_next(q).exs_evt_errno, ECANCELED);
		no_event(q);
		must(exs_qdelete(q));
	}
}

static void sending(void)
{
	static char from[1 * MIB];
	exs_qhandle_t q = queue_new(4);
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	set_long(p.c, SO_ASYNC_SEND_TIMEOUT, 5, EXS_TIMEOUT_ONCE);
	set_long(p.c, SO_ASYNC_RECV_TIMEOUT, 1, 0);
	data_fill(2, 0, from, sizeof(from));
	start_send(p.c, from, sizeof(from), q, 7, NO_REGION);
	event_is(q, EXS_EVT_SENDTIMEOUT, 7, 0, 0);
	recv_all(p.s, 2, 0, sizeof(from));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_SEND, 7, 0, sizeof(from));
	must_be(delta("ops_timed_out"), 1);
	pair_close(&p);
}

/* Exactly one end of each operation from @first on, and nothing of those before. */
enum { OPS = 8 };

static void all_end(exs_qhandle_t q, exs_ahandle_t first)
{
	bool over[OPS] = {};
	int left = OPS;
	exs_event_t ev;
	uint64_t n;

	while (left) {
		ev = event_next(q);
		n = ev.exs_evt_ahandle - first;
		check(n < OPS && !over[n], "%s of %lld, which has ended", event_name(ev.exs_evt_type),
		      (long long)ev.exs_evt_ahandle);
		if (ev.exs_evt_type == EXS_EVT_RECVTIMEOUT)
			continue;
		must_be(ev.exs_evt_type, EXS_EVT_RECV);
		over[n] = true;
		left--;
	}
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), queue_attr(q, EXS_ATTR_POSTED));
}

/* Ends of all kinds while time is up for many. What comes once more meets operations with other names, or the end. */
static void races(void)
{
	exs_qhandle_t q = queue_new(2 * OPS);
	uint64_t seed = e2e.seed;
	struct pair p;
	int i, round;

	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 1, 0);
	for (round = 0; round < 40; round++) {
		for (i = 0; i < OPS; i++)
			start_recv(p.s, buf + 10 * i, 10, 0, q, round * OPS + i, NO_REGION);
		for (i = next_random(&seed) % 4; i; i--)
			breathe();
		for (i = next_random(&seed) % OPS; i; i--)
			must_be(send(p.c, "0123456789", 10, 0), 10);
		cancel_all(q);
		all_end(q, round * OPS);
		/* A byte that came too late for any of them. */
		while (recv(p.s, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	}
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), queue_attr(q, EXS_ATTR_POSTED));
	pair_close(&p);
}

/* With the queue, with the process, with the connection. */
static void gone(void)
{
	exs_qhandle_t q = queue_new(2 * OPS), other = queue_new(2 * OPS);
	struct pair p;
	int i;

	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 1, 0);
	for (i = 0; i < OPS; i++)
		recv_one(&p, q, i);
	wait_delta("ops_timed_out", OPS);
	must(exs_qdelete(q));
	for (i = 0; i < OPS; i++)
		recv_one(&p, other, i);
	must_be(event_next(other).exs_evt_type, EXS_EVT_RECVTIMEOUT);
	close(p.s);
	all_end(other, 0);
	no_event(other);
	must_be(queue_attr(other, EXS_ATTR_SUBMITTED), queue_attr(other, EXS_ATTR_POSTED));
	/* Left behind. */
	pair_open(&p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 1, 0);
	recv_one(&p, other, 1);
}

static const struct e2e_case cases[] = {
	{ "values", values, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "once", once, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "repeated", repeated, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "unread", unread, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "many_unread", many_unread, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "many_consumed", many_consumed, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "slots", slots, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "sending", sending, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "races", races, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "gone", gone, .on = ON_BOTH, .needs = NEEDS_ONE },
	{},
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
