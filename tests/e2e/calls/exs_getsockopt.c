// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_getsockopt"

static int get_cpu(exs_qhandle_t q)
{
	int value;
	socklen_t len = sizeof(value);

	(void)q;
	return exs_getsockopt(new_socket(), SOL_EXS, EXS_SO_CPU, &value, &len);
}
SUPPORTED(knobs_supported, "read knobs", get_cpu)

static void of_the_kernel(void)
{
	int fd = new_socket(), value;
	socklen_t len = sizeof(value);

	must_be(int_option(fd, SOL_SOCKET, SO_TYPE), e2e.type);
	must_be(int_option(fd, SOL_SOCKET, SO_DOMAIN), e2e.family);
	must_fail(exs_getsockopt(fd, SOL_SOCKET, SO_TYPE, (void *)8, &len), EFAULT);
	must_fail(exs_getsockopt(-1, SOL_SOCKET, SO_TYPE, &value, &len), EBADF);
	must_fail(exs_getsockopt(wrong_open().file, SOL_SOCKET, SO_TYPE, &value, &len), ENOTSOCK);
	must_fail(exs_getsockopt(fd, SOL_SOCKET, 7777, &value, &len), ENOPROTOOPT);
}

/* None unless set; each has its own. */
static void timeouts(void)
{
	exs_timeout_t t = { { 1, 5000 }, EXS_TIMEOUT_ONCE }, got;
	socklen_t len = sizeof(got);
	int fd = new_socket();

	must(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &got, &len));
	check(!got.exs_time.tv_sec && !got.exs_time.tv_usec && !got.exs_flags, "one that nobody set");
	must(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)));
	must(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &got, &len));
	must_be(got.exs_time.tv_sec, 1);
	must_be(got.exs_time.tv_usec, 5000);
	must_be(got.exs_flags, EXS_TIMEOUT_ONCE);
	must(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &got, &len));
	must_be(got.exs_time.tv_sec, 0);
	must_fail(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, (void *)8, &len), EFAULT);
	must_fail(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &got, (void *)8), EFAULT);
	len = 1;
	must_fail(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &got, &len), EINVAL);
}

static void ordered(void)
{
	must_be(int_option(new_socket(), SOL_SOCKET, SO_ASYNC_RECV_ORDERED), 1);
}

static void knobs(void)
{
	int fd = new_socket();

	must_be(int_option(fd, SOL_EXS, EXS_SO_CPU), -1);
	must_be(int_option(fd, SOL_EXS, EXS_SO_ADVERTS), 16);
}

const struct e2e_case exs_getsockopt_cases[] = {
	CASE(of_the_kernel, ON_KINDS),
	CASE(timeouts, ON_KINDS),
	CASE(ordered, ON_KINDS),
	CASE_IF(knobs_supported, knobs, ON_KINDS),
	{}
};
