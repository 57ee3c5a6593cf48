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

const char *net_why_missing(void)
{
	return access("/sys/module/exs", F_OK) ? "module exs is not loaded: modprobe exs" :
	       "AF_EXS is switched off: sysctl net.exs.enabled=1";
}

bool net_init(void)
{
	if (!exs_init(EXS_VERSION))
		return true;
	if (errno == EAFNOSUPPORT)
		say("%s", net_why_missing());
	else if (errno == EPROTONOSUPPORT)
		say("module exs and libexs have different versions: install both anew, modprobe -r exs, modprobe exs");
	else
		say("cannot use AF_EXS: %s%s", strerror(errno), net_call_advice(errno));
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
	say("%s port %s: %s%s", *ep->host ? ep->host : "*", ep->port,
	    err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err),
	    err == EAI_SERVICE ? ": give the number of a port" : ": check the name, or give the address");
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
	return err == ENODEV || err == ENETUNREACH || err == EHOSTUNREACH ||
	       err == EADDRNOTAVAIL;
}

static bool is_loopback(const struct addrinfo *ai)
{
	const struct sockaddr_in6 *in6 = (const void *)ai->ai_addr;
	const struct sockaddr_in *in = (const void *)ai->ai_addr;

	if (ai->ai_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* @err: of no_device(), for the first address of @list. */
static void explain_no_device(const struct endpoint *ep,
			      const struct addrinfo *list, bool remote, int err)
{
	char addr[sizeof(ep->host)];

	if (getnameinfo(list->ai_addr, list->ai_addrlen, addr, sizeof(addr),
			NULL, 0, NI_NUMERICHOST))
		snprintf(addr, sizeof(addr), "%s", ep->host);
	if (is_loopback(list))
		say("%s is a loopback address, and no RDMA device has one (see: rdma link, ip address)",
		    addr);
	else if (remote)
		say("no RDMA device can reach %s: %s (see: rdma link, ip route get %s)",
		    addr, strerror(err), addr);
	else
		say("no RDMA device has the address %s: %s (see: rdma link, ip address)",
		    addr, strerror(err));
}

const char *net_advice(int err, bool remote)
{
	switch (err) {
	case EACCES:
		return remote ? net_call_advice(err) : ": choose a port above 1023, or run it as root";
	case EADDRINUSE:
		return ": another program has the port: choose another port";
	case EOPNOTSUPP:
		return ": this RDMA device cannot be used here: take another one (rdma link)";
	case EPROTO:
		return ": the program there uses RDMA, but not AF_EXS";
	case EPROTONOSUPPORT:
		return ": the module exs there has another version: install the same one on both machines";
	case EPROTOTYPE:
		return ": the listener there has the other socket type (SOCK_STREAM or SOCK_SEQPACKET)";
	case ETIMEDOUT:
		return ": no RDMA device there (see rdma link there), or a firewall drops UDP port 4791";
	default:
		return net_call_advice(err);
	}
}

const char *net_call_advice(int err)
{
	switch (err) {
	case 0:
	case ECONNABORTED:
	case ECONNRESET:
	case ENOTCONN:
	case EPIPE:
		return ": see what the other end says";
	case EACCES:
	case EPERM:
		return ": a security module or a container forbids it: change its rules";
	case EAFNOSUPPORT:
		return ": the module exs is not loaded (modprobe exs), or switched off (sysctl net.exs.enabled=1)";
	case EIO:
		return ": the RDMA device failed: see dmesg";
	case EMFILE:
	case ENFILE:
		return ": raise the limit of descriptors: ulimit -n";
	case EMSGSIZE:
		return ": use a smaller --size";
	case ENETDOWN:
		return ": the RDMA device was removed, or a bond failed over: rdma link";
	case ENOBUFS:
		return ": a limit of the administrator is reached: grep ^limit_ /proc/net/exs";
	case ENOMEM:
		return ": use fewer or smaller buffers (see ulimit -l), or free some memory";
	case EPROTO:
		return ": the other end broke the protocol: is it the same program and version?";
	case ETIMEDOUT:
		return ": does it serve another client, or is the machine down? rdma link";
	default:
		return ": this is not expected: report it, with /proc/net/exs and the end of dmesg";
	}
}

int net_listen(const struct endpoint *ep, int type)
{
	struct addrinfo *list = resolve(ep, AI_PASSIVE), *ai;
	int fd = -1;

	for (ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = try_listen(ai, type);
	if (!list)
		return -1;
	if (fd < 0 && no_device(errno))
		explain_no_device(ep, list, false, errno);
	else if (fd < 0)
		say("cannot listen on %s port %s: %s%s",
		    *ep->host ? ep->host : "*", ep->port, strerror(errno),
		    net_advice(errno, false));
	freeaddrinfo(list);
	return fd;
}

int net_accept(int listener)
{
	int fd;

	do {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	} while (fd < 0 && errno == ECONNABORTED);
	if (fd < 0 && errno != EINTR)
		say("cannot accept a connection: %s%s", strerror(errno), net_advice(errno, false));
	return fd;
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

static void explain_connect(const struct endpoint *ep,
			    const struct addrinfo *list, const char *listener)
{
	if (errno == EINTR)
		return;
	if (no_device(errno))
		explain_no_device(ep, list, true, errno);
	else if (errno == ECONNREFUSED)
		say("%s port %s: connection refused: is '%s' running there?",
		    ep->host, ep->port, listener);
	else
		say("%s port %s: %s%s", ep->host, ep->port, strerror(errno),
		    net_advice(errno, true));
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
	if (fd < 0)
		explain_connect(ep, list, listener);
	freeaddrinfo(list);
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
