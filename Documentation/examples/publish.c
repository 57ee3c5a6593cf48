// SPDX-License-Identifier: MIT
/* Sends its input to many subscribers, with one buffer and one system call. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

#define MOST	100

static char buf[65536];
static exs_qhandle_t queue;
static exs_mhandle_t region;
static int subscriber[MOST], count;

static void drop(int i, int why)
{
	if (subscriber[i] < 0)
		return;
	warnx("subscriber %d: %s%s", i, strerror(why), advice(why));
	close(subscriber[i]);
	subscriber[i] = -1;
}

/* One operation for each present subscriber. */
static int prepare(exs_op_t *ops, size_t len)
{
	int i, n = 0;

	for (i = 0; i < count; i++)
		if (subscriber[i] >= 0)
			ops[n++] = (exs_op_t){
				.exs_op_type = EXS_EVT_SEND,
				.exs_op_fd = subscriber[i],
				.exs_op_region = region,
				.exs_op_buf = buf,
				.exs_op_len = len,
				.exs_op_handle = i,
			};
	return n;
}

/* Starts all operations, except those that fail. Returns the number of events to expect. */
static int submit(const exs_op_t *ops, int n)
{
	int started = 0;

	while (n > 0) {
		int now = exs_submit(queue, ops, n);

		if (now < 0)
			now = 0;
		started += now;
		if (now < n)
			drop(ops[now++].exs_op_handle, errno);
		ops += now;
		n -= now;
	}
	return started;
}

static void publish(size_t len)
{
	exs_op_t ops[MOST];
	exs_event_t events[MOST];
	int i, n = submit(ops, prepare(ops, len));

	if (!n)
		errx(1, "no subscriber is left: start them, and this program again");
	/* The buffer belongs to the operations until the last one has ended. */
	if (exs_qdequeue(queue, events, -n, NULL) != n)
		give_up("exs_qdequeue");
	for (i = 0; i < n; i++)
		if (events[i].exs_evt_errno)
			drop(events[i].exs_evt_ahandle, events[i].exs_evt_errno);
}

int main(int argc, char **argv)
{
	int listener, wanted = argc == 4 ? atoi(argv[3]) : 0;
	struct addrinfo *at;
	ssize_t got;

	if (wanted < 1 || wanted > MOST)
		errx(2, "usage: publish ADDRESS PORT SUBSCRIBERS < INPUT");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	at = resolve(argv[1], argv[2]);
	queue = exs_qcreate(MOST);
	region = exs_mregister(buf, sizeof(buf), EXS_ACCESS_READ);
	listener = socket(AF_EXS, SOCK_STREAM, 0);
	if (queue < 0 || listener < 0)
		give_up("exs_qcreate, socket");
	if (region < 0)
		give_up("exs_mregister");
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, wanted))
		give_up(argv[1]);
	fprintf(stderr, "publish: listening\n");

	while (count < wanted) {
		subscriber[count] = accept(listener, NULL, NULL);
		if (subscriber[count++] < 0)
			give_up("accept");
	}
	while ((got = read(STDIN_FILENO, buf, sizeof(buf))) > 0)
		publish(got);
	if (got < 0)
		give_up_file("input");
	return 0;
}
