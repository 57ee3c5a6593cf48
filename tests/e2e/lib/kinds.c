// SPDX-License-Identifier: GPL-2.0
/* Ordinary sockets, and pairs of them. */
#include "kinds.h"

#include <unistd.h>

const struct kind kind_tcp = { AF_INET, SOCK_STREAM };
const struct kind kind_tcp6 = { AF_INET6, SOCK_STREAM };
const struct kind kind_udp = { AF_INET, SOCK_DGRAM };
const struct kind kind_udp6 = { AF_INET6, SOCK_DGRAM };
const struct kind kind_un_stream = { AF_UNIX, SOCK_STREAM };
const struct kind kind_un_seq = { AF_UNIX, SOCK_SEQPACKET };
const struct kind kind_un_dgram = { AF_UNIX, SOCK_DGRAM };

bool kind_is_stream(const struct kind *k)
{
	return k->type == SOCK_STREAM;
}

int kind_socket(const struct kind *k)
{
	return must(socket(k->domain, k->type | SOCK_CLOEXEC, 0));
}

int kind_bound(const struct kind *k)
{
	union address a = address_from(k->domain, k->domain == AF_INET ? "10.77.0.1" : "fd77::1", 0);
	int fd = kind_socket(k);

	must(bind(fd, &a.sa, address_len(&a)));
	return fd;
}

int kind_listening(const struct kind *k)
{
	struct sockaddr autobind = { .sa_family = AF_UNIX };
	int fd = k->domain == AF_UNIX ? kind_socket(k) : kind_bound(k);

	if (k->domain == AF_UNIX)
		must(bind(fd, &autobind, sizeof(autobind.sa_family)));
	if (k->type != SOCK_DGRAM)
		must(listen(fd, 128));
	return fd;
}

union address listening_name(int fd, socklen_t *len)
{
	union address a = {};

	*len = sizeof(a);
	must(getsockname(fd, &a.sa, len));
	return a;
}

static void connect_to(int fd, int other)
{
	union address a = name_of(other);

	must(connect(fd, &a.sa, address_len(&a)));
}

static void tcp_pair(const struct kind *k, struct pair *p)
{
	int fd = kind_bound(k);

	must(listen(fd, 1));
	p->c = kind_socket(k);
	connect_to(p->c, fd);
	p->s = must(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	close(fd);
}

void kind_pair(const struct kind *k, struct pair *p)
{
	int fds[2];

	if (k->domain == AF_UNIX) {
		must(socketpair(AF_UNIX, k->type | SOCK_CLOEXEC, 0, fds));
		*p = (struct pair){ .c = fds[0], .s = fds[1] };
	} else if (kind_is_stream(k)) {
		tcp_pair(k, p);
	} else {
		*p = (struct pair){ .c = kind_bound(k), .s = kind_bound(k) };
		connect_to(p->c, p->s);
		connect_to(p->s, p->c);
	}
}
