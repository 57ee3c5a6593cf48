// SPDX-License-Identifier: GPL-2.0
/* Functions for the cases of several calls. */
#include "calls.h"

void transfer(const struct pair *p, const void *out, exs_mhandle_t om, void *in, exs_mhandle_t im,
	      size_t len)
{
	exs_qhandle_t sends = queue_new(1), receives = queue_new(1);

	start_recv(p->s, in, len, MSG_WAITALL, receives, 2, im);
	start_send(p->c, out, len, sends, 1, om);
	event_is(sends, EXS_EVT_SEND, 1, 0, len);
	event_is(receives, EXS_EVT_RECV, 2, 0, len);
	check(!memcmp(out, in, len), "other bytes came");
	must(exs_qdelete(sends));
	must(exs_qdelete(receives));
}

int int_option(int fd, int level, int name)
{
	int value = -77;
	socklen_t len = sizeof(value);

	must(exs_getsockopt(fd, level, name, &value, &len));
	must_be(len, sizeof(value));
	return value;
}

struct wrong wrong_open(void)
{
	struct wrong w = {
		.file = must(open("/proc/self/status", O_RDONLY | O_CLOEXEC)),
		.netlink = must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)),
		.none = 1000,
	};

	must_fail(fcntl(w.none, F_GETFD), EBADF);
	return w;
}

void nothing_started(exs_qhandle_t q)
{
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
}

union address nowhere(void)
{
	return address_from(AF_INET, "10.77.0.9", 99);
}

static void run_ip(const char *object, const char *verb, const char *what)
{
	char command[100];

	snprintf(command, sizeof(command), "ip %s %s %s", object, verb, what);
	must_be(system(command), 0);
}

void with_ip(const char *object, const char *what, void (*fn)(void *arg))
{
	int end;

	run_ip(object, "add", what);
	end = reap(spawn(fn, NULL));
	run_ip(object, "del", what);
	check(!end, "it ended with wait status %#x", end);
}

struct limited {
	start_large *start;
	int fd;
	char *buf;
	exs_qhandle_t q;
};

static void above_memlock(void *arg)
{
	const struct limited *l = arg;

	limit_memlock(PAGE);
	must_fail(l->start(l->fd, l->buf, l->q), ENOMEM);
}

void limits_hold(start_large *start)
{
	struct limited l = { .start = start, .buf = pages(LARGE), .q = queue_new(1) };
	struct pair p;

	pair_open(&p);
	l.fd = p.c;
	join(spawn(above_memlock, &l));
	write_sysctl("max_user_pages", 5);
	drop_privileges();
	must_fail(start(l.fd, l.buf, l.q), ENOBUFS);
	nothing_started(l.q);
}

void limit_memlock(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	must(setrlimit(RLIMIT_MEMLOCK, &limit));
	drop_privileges();
}
