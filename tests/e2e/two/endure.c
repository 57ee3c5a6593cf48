// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps a connection busy in both directions, with long and short sends in turn, until it
 * fails, then prints the errno, and checks that every operation had its one event. For two.py, which
 * causes the failure from outside.
 *
 *	endure serve|connect|leave stream|seqpacket ADDRESS PORT
 *
 * It prints "listening", "under way", "events N" from time to time, and at the
 * end "ended ERRNO". leave: sends as much as it can, and exits without closing anything.
 */
#include "lib/async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS	8
#define PIECE	(256 * 1024)
#define SHORT	100		/* copied; every other send */
#define MANY	64		/* events between two lines */

struct load {
	int fd;
	char *buf;
	exs_mhandle_t m;
	exs_qhandle_t q;
	bool out[2 * OPS];	/* outstanding */
	bool send_failed;
	int outstanding;
	int err;
};

/* Operation @i, again; not once the connection has failed. */
static void start(struct load *l, int i)
{
	int failed;

	if (l->err)
		return;
	if (i < OPS)
		failed = exs_recv(l->fd, l->buf, PIECE, e2e.seq ? 0 : MSG_WAITALL, l->q, i, l->m);
	else
		failed = exs_send(l->fd, l->buf + PIECE, i % 2 ? SHORT : PIECE, MSG_NOSIGNAL, l->q, i, l->m);
	if (failed) {
		l->err = errno;
		return;
	}
	l->out[i] = true;
	l->outstanding++;
}

static void take(struct load *l)
{
	exs_event_t ev = event_next(l->q);
	int i = ev.exs_evt_ahandle;
	bool end = !ev.exs_evt_errno && i < OPS && !ev.exs_evt_union.exs_evt_xfer.exs_evt_length;

	check(i >= 0 && i < 2 * OPS && l->out[i], "an event of operation %d, which is not under way", i);
	check(i < OPS || ev.exs_evt_errno || !l->send_failed, "a send succeeds behind one that failed");
	if (i >= OPS && ev.exs_evt_errno)
		l->send_failed = true;
	l->out[i] = false;
	l->outstanding--;
	if (ev.exs_evt_errno && !l->err)
		l->err = ev.exs_evt_errno;
	if (end && !l->err)
		l->err = ENODATA;
	start(l, i);
}

static void say(const char *text, long n)
{
	if (n < 0)
		printf("%s\n", text);
	else
		printf("%s %ld\n", text, n);
	fflush(stdout);
}

static void endure(int fd)
{
	struct load l = { .fd = fd };
	long events = 0;
	int i;

	l.buf = pages(2 * PIECE);
	l.m = region_new(l.buf, 2 * PIECE, 0);
	l.q = queue_new(2 * OPS);
	for (i = 0; i < 2 * OPS; i++)
		start(&l, i);
	while (l.outstanding) {
		take(&l);
		if (++events == 2 * OPS)
			say("under way", -1);
		if (events % MANY == 0)
			say("events", events);
	}
	no_event(l.q);
	printf("ended %s\n", errno_name(l.err));
}

static int serve(const union address *at)
{
	int lfd = new_socket(), fd;

	set_int(lfd, SOL_SOCKET, SO_REUSEADDR, 1);
	must(bind(lfd, &at->sa, address_len(at)));
	must(listen(lfd, 1));
	say("listening", -1);
	fd = must(accept(lfd, NULL, NULL));
	close(lfd);
	return fd;
}

static int reach(const union address *to)
{
	int fd = new_socket();

	if (!connect(fd, &to->sa, address_len(to)))
		return fd;
	printf("ended %s\n", errno_name(errno));
	exit(0);
}

int main(int argc, char **argv)
{
	union address a;

	check(argc == 5, "usage: endure serve|connect|leave stream|seqpacket ADDRESS PORT");
	e2e.family = exs_family_number();
	e2e.seq = !strcmp(argv[2], "seqpacket");
	e2e.type = e2e.seq ? SOCK_SEQPACKET : SOCK_STREAM;
	a = address_from(strchr(argv[3], ':') ? AF_INET6 : AF_INET, argv[3], atoi(argv[4]));
	if (!strcmp(argv[1], "serve"))
		endure(serve(&a));
	else if (!strcmp(argv[1], "connect"))
		endure(reach(&a));
	else
		send_until_full(reach(&a), 1);
	return 0;
}
