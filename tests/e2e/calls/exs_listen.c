// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_listen"

static void listens(void)
{
	int fd = bound_socket(), c;

	must_be(exs_listen(fd, 1), 0);
	c = client_of(fd);
	must(accept(fd, NULL, NULL));
	must_be(so_error(c), 0);
}

static void wrong(void)
{
	struct wrong w = wrong_open();

	must_fail(exs_listen(-1, 1), EBADF);
	must_fail(exs_listen(w.file, 1), ENOTSOCK);
	if (on_dgram())
		must_fail(exs_listen(bound_socket(), 1), EOPNOTSUPP);
}

static void connected(void)
{
	struct pair p;

	pair_open(&p);
	must_fail(exs_listen(p.c, 1), EINVAL);
}

/* Both sockets have the address. With AF_EXS neither can listen then, with TCP the first can. */
static void both_listen(void)
{
	union address a = address_of(SERVER, 0);
	int fd = new_socket(), other = new_socket();

	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_int(other, SOL_SOCKET, SO_REUSEADDR, 1);
	must(bind(fd, &a.sa, address_len(&a)));
	a = name_of(fd);
	must(bind(other, &a.sa, address_len(&a)));
	if (!on_exs())
		must_be(exs_listen(fd, 1), 0);
	must_fail(exs_listen(other, 1), EADDRINUSE);
	close(fd);
	wait_until(!exs_listen(other, 1));
}

const struct e2e_case exs_listen_cases[] = {
	CASE(listens, ON_LISTENING),
	CASE(wrong, ON_KINDS),
	CASE(connected, ON_BOTH | ON_TCP),
	CASE(both_listen, ON_BOTH | ON_TCP),
	{}
};
