// SPDX-License-Identifier: MIT
/* Other names of ordinary calls. */
#include <errno.h>

#include "lib.h"

static bool is_exs_domain(int domain)
{
	return domain == AF_INET || domain == AF_INET6 ||
	       domain == exs_family();
}

int exs_socket(int domain, int type, int protocol)
{
	int family = exs_family();

	if (family < 0)
		return -1;
	if (!is_exs_domain(domain)) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return socket(family, type, protocol);
}

int exs_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

int exs_listen(int fd, int backlog)
{
	return listen(fd, backlog);
}

int exs_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len);
}

int exs_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len);
}
