/* SPDX-License-Identifier: MIT */
/* For all examples: resolves names, and says what to do about errors. */
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
		errx(1, "%s, port %s: %s (check them, or give an IP address and a number)", host, port,
		     gai_strerror(error));
	return found;
}

/* What to do about an error. */
static inline const char *advice(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return " (is the port below 1024? Or a security module or a container forbids it)";
	case EADDRINUSE:
		return " (another program has the port: choose another one)";
	case EADDRNOTAVAIL:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENODEV:
		return " (AF_EXS: does an RDMA device have the address? rdma link)";
	case EAFNOSUPPORT:
		return " (AF_EXS: modprobe exs; sysctl net.exs.enabled=1)";
	case ECONNREFUSED:
		return " (is the server running there? Both ends must be AF_EXS, or both TCP)";
	case ECONNRESET:
	case EPIPE:
		return " (the other program has ended: what does it say?)";
	case EIO:
		return " (AF_EXS: the RDMA device failed: see dmesg)";
	case EMFILE:
	case ENFILE:
		return " (raise the limit of descriptors: ulimit -n)";
	case ENETDOWN:
		return " (AF_EXS: the RDMA device was removed: rdma link)";
	case ENOBUFS:
		return " (a limit of the administrator: grep ^limit_ /proc/net/exs)";
	case ENOMEM:
		return " (usually the limit of pinned memory: ulimit -l)";
	case EPROTO:
	case EPROTOTYPE:
		return " (do both programs belong together?)";
	case EPROTONOSUPPORT:
		return " (install the same version of EXS on both machines, and load the module again)";
	case ETIMEDOUT:
		return " (AF_EXS: is there an RDMA device? rdma link there; may UDP port 4791 pass?)";
	}
	return " (see \"When it does not work\" in the programmer's guide)";
}

/* A file: what to do about its usual errors, ENOENT and ENOSPC among them. */
static inline void give_up_file(const char *name)
{
	err(1, "%s (check the name, the permissions, and that its disk is not full)", name);
}

/* Says that a call or an operation failed. */
static inline void complain(const char *what, int error)
{
	warnx("%s: %s%s", what, strerror(error), advice(error));
}

/* Ends the program, because a call failed with errno. */
static inline void give_up(const char *what)
{
	complain(what, errno);
	exit(1);
}

#endif
