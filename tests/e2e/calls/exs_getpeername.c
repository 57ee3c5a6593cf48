// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_getpeername"

static void of_a_connection(void)
{
	int fd = listener(1), c = client_of(fd);
	union address a = name_of(fd), got = {};
	socklen_t len = sizeof(got);

	must_be(exs_getpeername(c, &got.sa, &len), 0);
	must_be(len, address_len(&got));
	check(same_address(&a, &got), "another peer");
}

static void wrong(void)
{
	struct wrong w = wrong_open();
	union address got;
	socklen_t len = sizeof(got);
	struct pair p;

	must_fail(exs_getpeername(-1, &got.sa, &len), EBADF);
	must_fail(exs_getpeername(w.file, &got.sa, &len), ENOTSOCK);
	must_fail(exs_getpeername(new_socket(), &got.sa, &len), ENOTCONN);
	must_fail(exs_getpeername(bound_socket(), &got.sa, &len), ENOTCONN);
	pair_open(&p);
	must_fail(exs_getpeername(p.c, (void *)8, &len), EFAULT);
}

const struct e2e_case exs_getpeername_cases[] = {
	CASE(of_a_connection, ON_LISTENING),
	CASE(wrong, ON_KINDS),
	{}
};
