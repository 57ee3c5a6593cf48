// SPDX-License-Identifier: MIT
/* With -v, accepted connections are reported, too. */
#include <errno.h>
#include <netinet/in.h>

#include "preload.h"

/* Keeps errno. */
static int tell_accepted(int fd)
{
	int saved = errno, protocol;
	socklen_t len = sizeof(protocol);

	if (fd >= 0 && settings_tells() &&
	    !next_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	    (protocol == settings_protocol() || protocol == IPPROTO_TCP))
		settings_tell(fd, protocol != IPPROTO_TCP, "accepted", NULL);
	errno = saved;
	return fd;
}

WRAPPER int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return tell_accepted(next_accept(fd, addr, len));
}

WRAPPER int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return tell_accepted(next_accept4(fd, addr, len, flags));
}
