// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_getsockname"

static void own(void)
{
	union address a = address_of(SERVER, 0), got = {};
	int fd = new_socket();
	socklen_t len = sizeof(got);

	must(bind(fd, &a.sa, address_len(&a)));
	must_be(exs_getsockname(fd, &got.sa, &len), 0);
	must_be(len, address_len(&got));
	a = name_of(fd);
	check(same_address(&a, &got), "another address");
}

static void of_a_connection(void)
{
	int fd = listener(1);
	union address a = name_of(fd), got = {};
	socklen_t len = sizeof(got);

	client_of(fd);
	must_be(exs_getsockname(must(accept(fd, NULL, NULL)), &got.sa, &len), 0);
	check(same_address(&a, &got), "the connection has another address than its listener");
}

static void wrong(void)
{
	struct wrong w = wrong_open();
	union address got;
	socklen_t len = sizeof(got);

	must_fail(exs_getsockname(-1, &got.sa, &len), EBADF);
	must_fail(exs_getsockname(w.file, &got.sa, &len), ENOTSOCK);
	must_fail(exs_getsockname(new_socket(), (void *)8, &len), EFAULT);
}

const struct e2e_case exs_getsockname_cases[] = {
	CASE(own, ON_KINDS),
	CASE(of_a_connection, ON_LISTENING),
	CASE(wrong, ON_KINDS),
	{}
};
