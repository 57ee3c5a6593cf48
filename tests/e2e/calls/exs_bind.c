// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_bind"

/* Once; the kernel has chosen the port, or the name. */
static void bound(void)
{
	union address a = address_of(SERVER, 0), got;
	int fd = new_socket();

	must_be(exs_bind(fd, &a.sa, address_len(&a)), 0);
	got = name_of(fd);
	must_fail(exs_bind(fd, &got.sa, address_len(&got)), EINVAL);
}

static void wrong(void)
{
	union address a = address_of(SERVER, 0);
	struct wrong w = wrong_open();
	int fd = new_socket();
	union address taken = name_of(bound_socket());

	must_fail(exs_bind(-1, &a.sa, address_len(&a)), EBADF);
	must_fail(exs_bind(w.file, &a.sa, address_len(&a)), ENOTSOCK);
	must_fail(exs_bind(fd, (void *)8, address_len(&a)), EFAULT);
	must_fail(exs_bind(fd, &a.sa, 1), EINVAL);
	must_fail(exs_bind(fd, &taken.sa, address_len(&taken)), EADDRINUSE);
}

static void as_nobody(void *arg)
{
	union address a = address_of(SERVER, 99);

	(void)arg;
	drop_privileges();
	must_fail(exs_bind(new_socket(), &a.sa, address_len(&a)), EACCES);
}

/* Addresses of the Internet. */
static void wrong_addresses(void)
{
	union address elsewhere = address_from(AF_INET, "10.99.99.99", 0), a = address_of(SERVER, 0);
	int fd = new_socket();

	must_fail(exs_bind(fd, &elsewhere.sa, address_len(&elsewhere)), EADDRNOTAVAIL);
	a.sa.sa_family = AF_NETLINK;
	must_fail(exs_bind(fd, &a.sa, sizeof(a.in)), EAFNOSUPPORT);
	join(spawn(as_nobody, NULL));
}

/* An address of this machine that no RDMA device has. */
static void to_no_device(void *arg)
{
	union address at = address_from(AF_INET, "192.0.2.1", 0);

	(void)arg;
	must_fail(exs_bind(new_socket(), &at.sa, address_len(&at)), ENODEV);
}

static void no_device(void)
{
	with_ip("addr", "192.0.2.1/32 dev lo", to_no_device);
}

const struct e2e_case exs_bind_cases[] = {
	CASE(bound, ON_KINDS),
	CASE(wrong, ON_KINDS),
	CASE(wrong_addresses, ON_BOTH | ON_TCP | ON_UDP),
	CASE(no_device, ON_BOTH),
	{}
};
