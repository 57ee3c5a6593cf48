// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_fcntl"

static int set_cpu(exs_qhandle_t q)
{
	(void)q;
	return exs_fcntl(new_socket(), EXS_F_SET(EXS_SO_CPU), -1);
}
SUPPORTED(supported, "knobs", set_cpu)

static int get(int fd, int option)
{
	int value = -77;

	must(exs_fcntl(fd, EXS_F_GET(option), &value));
	return value;
}

static void options(void)
{
	int fd = new_socket();

	must_be(get(fd, EXS_SO_CPU), -1);
	must(exs_fcntl(fd, EXS_F_SET(EXS_SO_CPU), 0));
	must_be(get(fd, EXS_SO_CPU), 0);
	must(exs_fcntl(fd, EXS_F_SET(EXS_SO_ADVERTS), 3));
	must_be(get(fd, EXS_SO_ADVERTS), 3);
	must_fail(exs_fcntl(fd, EXS_F_SET(EXS_SO_ADVERTS), 0), EINVAL);
	must_fail(exs_fcntl(fd, EXS_F_SET(EXS_SO_CPU), 100000), EINVAL);
	must_fail(exs_fcntl(fd, EXS_F_SET(777), 0), ENOPROTOOPT);
	must_be(get(fd, EXS_SO_ADVERTS), 3);
}

/* Other commands are passed on to the system call. */
static void of_the_kernel(void)
{
	int fd = new_socket(), copy;

	must_be(must(exs_fcntl(fd, F_GETFL)) & O_NONBLOCK, 0);
	must(exs_fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
	check(fcntl(fd, F_GETFL) & O_NONBLOCK, "it is not set");
	copy = must(exs_fcntl(fd, F_DUPFD_CLOEXEC, 100));
	check(copy >= 100, "descriptor %d", copy);
	must_fail(exs_fcntl(-1, F_GETFL), EBADF);
	must_fail(exs_fcntl(fd, 0x12345678), EINVAL);
}

const struct e2e_case exs_fcntl_cases[] = {
	CASE_IF(supported, options, ON_KINDS),
	CASE(of_the_kernel, ON_KINDS),
	{}
};
