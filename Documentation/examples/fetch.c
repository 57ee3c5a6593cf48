// SPDX-License-Identifier: MIT
/* Prints what a server sends: one buffer is filled while the other is written. */
#include <stdio.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

#define SIZE	(1 << 20)

static char buf[2][SIZE] __attribute__((aligned(4096)));
static exs_qhandle_t queue;
static exs_mhandle_t region;

static void start_recv(int fd, int i)
{
	if (exs_recv(fd, buf[i], SIZE, 0, queue, i, region))
		give_up("exs_recv");
}

/* Receives are filled, and their events posted, in the order in which they were started. */
static void receive(int fd)
{
	exs_event_t e;
	size_t len;

	start_recv(fd, 0);
	start_recv(fd, 1);
	while (exs_qdequeue(queue, &e, 1, NULL) == 1) {
		if (e.exs_evt_errno)
			errx(1, "the connection: %s%s", strerror(e.exs_evt_errno), advice(e.exs_evt_errno));
		len = e.exs_evt_union.exs_evt_xfer.exs_evt_length;
		if (!len)
			return;
		if (fwrite(buf[e.exs_evt_ahandle], 1, len, stdout) != len)
			give_up_file("output");
		start_recv(fd, e.exs_evt_ahandle);
	}
	give_up("exs_qdequeue");
}

int main(int argc, char **argv)
{
	struct addrinfo *to;
	int fd;

	if (argc != 3 && argc != 4)
		errx(2, "usage: fetch HOST PORT [REQUEST]");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	to = resolve(argv[1], argv[2]);
	queue = exs_qcreate(2);
	region = exs_mregister(buf, sizeof(buf), EXS_ACCESS_WRITE);
	fd = socket(AF_EXS, SOCK_STREAM, 0);
	if (queue < 0 || fd < 0)
		give_up("exs_qcreate, socket");
	if (region < 0)
		give_up("exs_mregister");
	/* No ring: all data goes directly into our buffers. */
	if (exs_fcntl(fd, EXS_F_SET(EXS_SO_RING), 0))
		give_up("EXS_SO_RING");
	if (connect(fd, to->ai_addr, to->ai_addrlen))
		give_up(argv[1]);

	if (argc == 4) {
		dprintf(fd, "%s\n", argv[3]);
		shutdown(fd, SHUT_WR);
	}
	receive(fd);
	if (fflush(stdout))
		give_up_file("output");
	return 0;
}
