/* SPDX-License-Identifier: MIT */
/* For all examples: resolves names, and says what to do if there is no connection. */
#ifndef NET_H
#define NET_H

#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
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

/* Ends the program, because bind(), listen() or connect() failed with errno. */
static inline void give_up(const char *what)
{
	const char *advice = "";

	switch (errno) {
	case EADDRNOTAVAIL:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENODEV:
		advice = " (AF_EXS: does an RDMA device have the address? rdma link)";
		break;
	case ECONNREFUSED:
		advice = " (is the server running there? Both ends must be AF_EXS, or both TCP)";
		break;
	case ETIMEDOUT:
		advice = " (AF_EXS: is there an RDMA device? rdma link there; may UDP port 4791 pass?)";
		break;
	}
	errx(1, "%s: %s%s", what, strerror(errno), advice);
}

#endif
