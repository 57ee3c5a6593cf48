// SPDX-License-Identifier: MIT
/* Measures the round-trip time of a small message, for each way to wait. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <time.h>

#include "net.h"

static char in[64], out[64];
static exs_qhandle_t queue;
static exs_mhandle_t in_region, out_region;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void start_recv(int fd)
{
	if (exs_recv(fd, in, sizeof(in), 0, queue, 0, in_region))
		give_up("exs_recv");
}

static void start_send(int fd)
{
	if (exs_send(fd, out, sizeof(out), 0, queue, 0, out_region))
		give_up("exs_send");
}

/* Waits for n operations. Returns false if the other side has ended the connection. */
static bool wait_for(int count)
{
	exs_event_t e[2];
	bool more = true;
	int i;

	if (exs_qdequeue(queue, e, -count, NULL) != count)
		give_up("exs_qdequeue");
	for (i = 0; i < count; i++) {
		if (e[i].exs_evt_errno)
			errx(1, "the connection: %s%s", strerror(e[i].exs_evt_errno),
			     advice(e[i].exs_evt_errno));
		/* Each message has MSG_EOR; without it, the stream has ended. */
		if (e[i].exs_evt_type == EXS_EVT_RECV && !(e[i].exs_evt_flags & MSG_EOR))
			more = false;
	}
	return more;
}

static void serve(int fd)
{
	bool more;

	start_recv(fd);
	more = wait_for(1);
	while (more) {
		start_recv(fd);		/* the next receive, before the answer */
		start_send(fd);
		more = wait_for(2);
	}
}

static void measure(int fd, const char *mode, int rounds)
{
	double start = now();
	int i;

	for (i = 0; i < rounds; i++) {
		start_recv(fd);
		start_send(fd);
		if (!wait_for(2))
			errx(1, "the server has gone: what does it say?");
	}
	printf("%d round trips, %s: %.1f microseconds each\n", rounds, mode,
	       (now() - start) * 1e6 / rounds);
}

static void set_mode(const char *name)
{
	static const char *const names[] = {
		[EXS_WAIT_NOTIFY] = "notify",
		[EXS_WAIT_BUSY_POLL] = "busy",
		[EXS_WAIT_ADAPTIVE] = "adaptive",
	};
	int mode;

	for (mode = 0; mode < 3; mode++)
		if (!strcmp(name, names[mode])) {
			if (exs_qmodify(queue, EXS_QATTR_WAIT, &mode))
				give_up("exs_qmodify");
			return;
		}
	errx(2, "notify, busy or adaptive, not %s", name);
}

int main(int argc, char **argv)
{
	bool server = argc == 5 && !strcmp(argv[1], "-l");
	int rounds = argc == 5 && !server ? atoi(argv[4]) : 1;
	struct addrinfo *addr;
	int fd;

	if (argc != 5 || rounds < 1)
		errx(2, "usage: ping-pong -l ADDRESS PORT MODE | ping-pong HOST PORT MODE ROUNDS\n"
			"MODE: notify, busy or adaptive");
	addr = resolve(argv[1 + server], argv[2 + server]);
	fd = socket(AF_EXS, SOCK_SEQPACKET, 0);
	if (fd < 0)
		give_up("socket");
	queue = exs_qcreate(2);
	in_region = exs_mregister(in, sizeof(in), EXS_ACCESS_WRITE);
	out_region = exs_mregister(out, sizeof(out), EXS_ACCESS_READ);
	if (queue < 0)
		give_up("exs_qcreate");
	if (in_region < 0 || out_region < 0)
		give_up("exs_mregister");
	set_mode(argv[3 + server]);

	if (!server) {
		if (connect(fd, addr->ai_addr, addr->ai_addrlen))
			give_up(argv[1]);
		measure(fd, argv[3], rounds);
		return 0;
	}
	if (bind(fd, addr->ai_addr, addr->ai_addrlen) || listen(fd, 1))
		give_up(argv[2]);
	fprintf(stderr, "ping-pong: listening\n");
	fd = accept(fd, NULL, NULL);
	if (fd < 0)
		give_up("accept");
	serve(fd);
	return 0;
}
