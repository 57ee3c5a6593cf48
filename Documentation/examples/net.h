/* SPDX-License-Identifier: MIT */
/* What these programs have in common: names become addresses. */
#ifndef NET_H
#define NET_H

#include <err.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The address of a host and port. AF_EXS uses those of TCP/IP. */
static inline struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int error;

	if (atol(port) > 65535)		/* getaddrinfo() would cut it off */
		errx(1, "%s is no port: the largest is 65535", port);
	error = getaddrinfo(host, port, &hints, &found);
	if (error)
		errx(1, "%s, port %s: %s", host, port, gai_strerror(error));
	return found;
}

#endif
