// SPDX-License-Identifier: MIT
/* Sends a megabyte to an echo server and receives it back, directly from and into memory. */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/exs.h>

static char out[1 << 20] = "Hello", in[sizeof(out)];

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7000) };
	exs_event_t events[2];
	int i;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1)
		errx(2, "usage: first IPV4-ADDRESS");
	if (exs_init(EXS_VERSION))
		err(1, "no AF_EXS here (modprobe exs)");
	int fd = exs_socket(AF_EXS, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		errx(1, "%s: %m (is the server running there? RDMA device? rdma link; UDP port 4791 open?)", argv[1]);

	exs_qhandle_t queue = exs_qcreate(2);			/* two operations */
	exs_mhandle_t from = exs_mregister(out, sizeof(out), EXS_ACCESS_READ);
	exs_mhandle_t into = exs_mregister(in, sizeof(in), EXS_ACCESS_WRITE);
	if (queue < 0)
		err(1, "exs_qcreate (a limit? grep ^limit_ /proc/net/exs)");
	if (from < 0 || into < 0)
		err(1, "exs_mregister (2 MiB: see ulimit -l)");

	/* Both return at once. */
	if (exs_recv(fd, in, sizeof(in), MSG_WAITALL, queue, 1, into) ||
	    exs_send(fd, out, sizeof(out), 0, queue, 2, from))
		err(1, "exs_recv, exs_send (is the server still running?)");

	if (exs_qdequeue(queue, events, -2, NULL) != 2)		/* waits for two */
		err(1, "exs_qdequeue (see man exs_qdequeue)");
	for (i = 0; i < 2; i++)
		if (events[i].exs_evt_errno)
			errx(1, "%s: %s (what does the server say?)",
			     events[i].exs_evt_ahandle == 1 ? "exs_recv" : "exs_send",
			     strerror(events[i].exs_evt_errno));
	if (memcmp(in, out, sizeof(out)))
		errx(1, "the answer differs from the data sent: is it an echo server?");
	printf("%zu bytes and back: %s\n", sizeof(out), in);
	return 0;
}
