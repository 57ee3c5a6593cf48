/* SPDX-License-Identifier: MIT */
/* Resolves names, for all examples. */
#ifndef NET_H
#define NET_H

#include <err.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The address of a host and port. AF_EXS uses IP addresses. */
static inline struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int error;

	if (atol(port) > 65535)		/* getaddrinfo() would truncate it */
		errx(1, "%s is not a port: the largest is 65535", port);
	error = getaddrinfo(host, port, &hints, &found);
	if (error)
		errx(1, "%s, port %s: %s", host, port, gai_strerror(error));
	return found;
}

#endif
