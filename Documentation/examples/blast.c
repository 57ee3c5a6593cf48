// SPDX-License-Identifier: MIT
/* Measures how fast bytes move from the memory of one program into that of another. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

#define BLOCKS	4		/* in progress at the same time */
#define SIZE	(1 << 20)	/* of each */

static char block[BLOCKS][SIZE] __attribute__((aligned(4096)));
static exs_qhandle_t queue;
static exs_mhandle_t region;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Waits for one operation. Returns its block, and the number of bytes. */
static int wait_for_one(size_t *len)
{
	exs_event_t e;

	if (exs_qdequeue(queue, &e, 1, NULL) != 1)
		give_up("exs_qdequeue");
	if (e.exs_evt_errno)
		errx(1, "the transfer ended: %s%s", strerror(e.exs_evt_errno), advice(e.exs_evt_errno));
	*len = e.exs_evt_union.exs_evt_xfer.exs_evt_length;
	return e.exs_evt_ahandle;
}

static void start_send(int fd, int i)
{
	if (exs_send(fd, block[i], SIZE, 0, queue, i, region))
		give_up("exs_send");
}

static void start_recv(int fd, int i)
{
	if (exs_recv(fd, block[i], SIZE, MSG_WAITALL, queue, i, region))
		give_up("exs_recv");
}

static void send_blocks(int fd, uint64_t count)
{
	uint64_t started = 0, ended, arrived;
	double start = now();
	size_t len;

	while (started < BLOCKS && started < count)
		start_send(fd, started++);
	for (ended = 0; ended < count; ended++) {
		int i = wait_for_one(&len);

		if (started < count) {
			start_send(fd, i);
			started++;
		}
	}
	/* Everything is sent. Only the other program can confirm that it has arrived. */
	shutdown(fd, SHUT_WR);
	if (recv(fd, &arrived, sizeof(arrived), MSG_WAITALL) != sizeof(arrived))
		errx(1, "the receiver did not confirm what has arrived: what does it say?");
	printf("%" PRIu64 " bytes, %.0f MB/s\n", arrived, arrived / (now() - start) / 1e6);
}

static void receive_blocks(int fd)
{
	int i, pending = BLOCKS;
	uint64_t arrived = 0;
	size_t len;

	for (i = 0; i < BLOCKS; i++)
		start_recv(fd, i);
	while (pending) {
		i = wait_for_one(&len);
		arrived += len;
		if (len == SIZE)
			start_recv(fd, i);
		else
			pending--;	/* the end of the stream */
	}
	if (send(fd, &arrived, sizeof(arrived), MSG_NOSIGNAL) != sizeof(arrived))
		give_up("send");
	printf("%" PRIu64 " bytes\n", arrived);
}

static int listen_and_accept(const struct addrinfo *at)
{
	int listener = socket(AF_EXS, SOCK_STREAM, 0);

	/* No ring: all data goes directly into our blocks. */
	if (listener < 0 || exs_fcntl(listener, EXS_F_SET(EXS_SO_RING), 0))
		give_up("socket");
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1))
		give_up("bind, listen");
	fprintf(stderr, "blast: listening\n");
	return accept(listener, NULL, NULL);
}

int main(int argc, char **argv)
{
	bool receiver = argc == 4 && !strcmp(argv[1], "-l");
	struct addrinfo *addr;
	int fd;

	if (argc != 4)
		errx(2, "usage: blast -l ADDRESS PORT | blast HOST PORT MEGABYTES");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	addr = resolve(argv[1 + receiver], argv[2 + receiver]);

	queue = exs_qcreate(BLOCKS);
	if (queue == EXS_QHANDLE_INVALID)
		give_up("exs_qcreate");
	region = exs_mregister(block, sizeof(block),
			       receiver ? EXS_ACCESS_WRITE : EXS_ACCESS_READ);
	if (region == EXS_MHANDLE_INVALID)
		give_up("exs_mregister");

	if (receiver) {
		fd = listen_and_accept(addr);
		if (fd < 0)
			give_up("accept");
		receive_blocks(fd);
	} else {
		fd = socket(AF_EXS, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, addr->ai_addr, addr->ai_addrlen))
			give_up(argv[1]);
		send_blocks(fd, strtoul(argv[3], NULL, 10));
	}
	return 0;
}
