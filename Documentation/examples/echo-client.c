// SPDX-License-Identifier: MIT
/* Sends its input to an echo server and prints the answer: over TCP, or with -x over AF_EXS. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

static void send_all(int fd, const char *buf, size_t len)
{
	ssize_t sent;

	for (; len; buf += sent, len -= sent) {
		sent = send(fd, buf, len, MSG_NOSIGNAL);
		if (sent < 0)
			give_up("send");
	}
}

static void print_echo(int fd, size_t len)
{
	char buf[65536];
	ssize_t got;

	for (; len; len -= got) {
		got = recv(fd, buf, sizeof(buf), 0);
		if (got < 0)
			give_up("recv");
		if (!got)
			errx(1, "the server ended the connection: what does it say?");
		if (fwrite(buf, 1, got, stdout) != (size_t)got)
			give_up_file("output");
	}
}

int main(int argc, char **argv)
{
	bool exs = argc > 1 && !strcmp(argv[1], "-x");
	struct addrinfo *to;
	char buf[65536];
	ssize_t got;
	int fd;

	if (argc != 3 + exs)
		errx(2, "usage: echo-client [-x] HOST PORT < INPUT");
	to = resolve(argv[1 + exs], argv[2 + exs]);

	fd = socket(exs ? AF_EXS : to->ai_family, SOCK_STREAM, 0);
	if (fd < 0)
		give_up("socket");
	if (connect(fd, to->ai_addr, to->ai_addrlen))
		give_up(argv[1 + exs]);

	while ((got = read(STDIN_FILENO, buf, sizeof(buf))) > 0) {
		send_all(fd, buf, got);
		print_echo(fd, got);
	}
	if (got < 0)
		give_up_file("input");
	if (fflush(stdout))
		give_up_file("output");
	return 0;
}
