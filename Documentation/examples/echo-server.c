// SPDX-License-Identifier: MIT
/* Sends received data back, to one client after another: over TCP, or with -x over AF_EXS. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

static bool send_all(int fd, const char *buf, size_t len)
{
	ssize_t sent;

	for (; len; buf += sent, len -= sent) {
		sent = send(fd, buf, len, MSG_NOSIGNAL);
		if (sent < 0)
			return false;
	}
	return true;
}

static void echo(int fd)
{
	char buf[65536];
	ssize_t got;

	while ((got = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (!send_all(fd, buf, got)) {
			complain("send", errno);
			return;
		}
	if (got < 0)
		complain("recv", errno);
}

int main(int argc, char **argv)
{
	bool exs = argc > 1 && !strcmp(argv[1], "-x");
	struct addrinfo *at;
	int listener, fd;

	if (argc != 3 + exs)
		errx(2, "usage: echo-server [-x] ADDRESS PORT");
	at = resolve(argv[1 + exs], argv[2 + exs]);

	listener = socket(exs ? AF_EXS : at->ai_family, SOCK_STREAM, 0);
	if (listener < 0)
		give_up("socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 16))
		give_up(argv[1 + exs]);
	fprintf(stderr, "echo-server: listening\n");

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		echo(fd);
		close(fd);
	}
	give_up("accept");
}
