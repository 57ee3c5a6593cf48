// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_socket"

/* Sockets of AF_EXS, whichever domain is passed. */
static void makes(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	const int domains[] = { AF_EXS, AF_INET, AF_INET6 };
	size_t i, j;
	int fd;

	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		for (j = 0; j < ARRAY_SIZE(types); j++) {
			fd = must(exs_socket(domains[i], types[j] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
			must_be(int_option(fd, SOL_SOCKET, SO_DOMAIN), AF_EXS);
			must_be(int_option(fd, SOL_SOCKET, SO_TYPE), types[j]);
			must_be(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
			must_be(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
		}
	}
}

static void wrong(void)
{
	must_fail(exs_socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	must_fail(exs_socket(AF_INET, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
	must_fail(exs_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), EPROTONOSUPPORT);
}

const struct e2e_case exs_socket_cases[] = {
	CASE(makes, ON_EXS),
	CASE(wrong, ON_EXS),
	{}
};
