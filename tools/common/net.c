// SPDX-License-Identifier: MIT
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/exs.h>

#include "net.h"
#include "say.h"

#define BACKLOG	8

bool net_init(void)
{
	if (!exs_init(EXS_VERSION))
		return true;
	if (errno == EAFNOSUPPORT)
		say("module exs is not loaded: modprobe exs");
	else if (errno == EPROTONOSUPPORT)
		say("module exs and libexs are of different versions");
	else
		say_errno("cannot use AF_EXS");
	return false;
}

static struct addrinfo *resolve(const struct endpoint *ep, int flags)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags | AI_ADDRCONFIG,
	};
	struct addrinfo *list;
	int err;

	if (!*ep->host || strspn(ep->host, "0123456789.") == strlen(ep->host) ||
	    strchr(ep->host, ':'))
		hints.ai_flags &= ~AI_ADDRCONFIG;
	err = getaddrinfo(*ep->host ? ep->host : NULL, ep->port, &hints, &list);
	if (!err)
		return list;
	say("%s port %s: %s", *ep->host ? ep->host : "*", ep->port,
	    err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	return NULL;
}

static int try_listen(const struct addrinfo *ai, int type)
{
	int fd = exs_socket(ai->ai_family, type | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -1;
	if (!exs_bind(fd, ai->ai_addr, ai->ai_addrlen) &&
	    !exs_listen(fd, BACKLOG))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

static bool no_device(int err)
{
	return err == ENODEV || err == ENETUNREACH || err == EADDRNOTAVAIL;
}

int net_listen(const struct endpoint *ep, int type)
{
	struct addrinfo *list = resolve(ep, AI_PASSIVE), *ai;
	int fd = -1;

	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = try_listen(ai, type);
	if (!list)
		return -1;
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	if (no_device(errno))
		say_errno("no RDMA device has the address %s (see: rdma link)",
			  ep->host);
	else
		say_errno("cannot listen on %s port %s",
			  *ep->host ? ep->host : "*", ep->port);
	return -1;
}

static int try_connect(const struct addrinfo *ai, int type)
{
	int fd = exs_socket(ai->ai_family, type | SOCK_CLOEXEC, 0), err;

	if (fd < 0 || !connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

static void explain_connect(const struct endpoint *ep, const char *listener)
{
	switch (errno) {
	case ECONNREFUSED:
		say("%s port %s: connection refused: is '%s' running there?",
		    ep->host, ep->port, listener);
		break;
	case ENODEV:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
		say("no RDMA device can reach %s: %s (see: rdma link, ip route get %s)",
		    ep->host, strerror(errno), ep->host);
		break;
	case EINTR:
		break;
	default:
		say_errno("%s port %s", ep->host, ep->port);
	}
}

int net_connect(const struct endpoint *ep, int type, const char *listener)
{
	struct addrinfo *list = resolve(ep, 0), *ai;
	int fd = -1;

	for (ai = list; ai && fd < 0; ai = ai->ai_next) {
		fd = try_connect(ai, type);
		if (fd < 0 && errno == EINTR)
			break;
	}
	if (!list)
		return -1;
	freeaddrinfo(list);
	if (fd < 0)
		explain_connect(ep, listener);
	return fd;
}

const char *net_name(int fd, net_name_fn get, char *buf, size_t len)
{
	struct sockaddr_storage addr;
	socklen_t alen = sizeof(addr);
	char host[64], port[16];

	if (get(fd, (struct sockaddr *)&addr, &alen) ||
	    getnameinfo((struct sockaddr *)&addr, alen, host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(buf, len, "an unknown address");
	else
		snprintf(buf, len, "%s port %s", host, port);
	return buf;
}

static bool wait_ready(int fd, short events, int timeout_s)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n = poll(&p, 1, timeout_s > 0 ? timeout_s * 1000 : -1);

	if (!n)
		errno = ETIMEDOUT;
	return n > 0;
}

bool net_send_all(int fd, const void *buf, size_t len, int timeout_s)
{
	const char *from = buf;
	ssize_t n;

	while (len) {
		n = send(fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0 && !wait_ready(fd, POLLOUT, timeout_s))
			return false;
		if (n > 0) {
			from += n;
			len -= n;
		}
	}
	return true;
}

bool net_recv_all(int fd, void *buf, size_t len, int timeout_s)
{
	char *to = buf;
	ssize_t n;

	while (len) {
		n = recv(fd, to, len, MSG_DONTWAIT);
		if (!n)
			errno = 0;
		if (!n || (n < 0 && errno != EAGAIN))
			return false;
		if (n < 0 && !wait_ready(fd, POLLIN, timeout_s))
			return false;
		if (n > 0) {
			to += n;
			len -= n;
		}
	}
	return true;
}
