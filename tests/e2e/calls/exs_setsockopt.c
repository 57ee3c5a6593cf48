// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_setsockopt"

static int set_cpu(exs_qhandle_t q)
{
	int any = -1;

	(void)q;
	return exs_setsockopt(new_socket(), SOL_EXS, EXS_SO_CPU, &any, sizeof(any));
}
SUPPORTED(knobs_supported, "knobs", set_cpu)

static void of_the_kernel(void)
{
	int fd = new_socket(), value = 1;

	must(exs_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof(value)));
	must_fail(exs_setsockopt(-1, SOL_SOCKET, SO_PRIORITY, &value, 4), EBADF);
	must_fail(exs_setsockopt(wrong_open().file, SOL_SOCKET, SO_PRIORITY, &value, 4), ENOTSOCK);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, 7777, &value, sizeof(value)), ENOPROTOOPT);
}

/* A receive that takes long reports that, once, and goes on. */
static void receive_timeout(void)
{
	exs_timeout_t t = { { 0, 5000 }, EXS_TIMEOUT_ONCE };
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	char in;

	pair_open(&p);
	must(exs_setsockopt(p.s, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)));
	start_recv(p.s, &in, 1, 0, q, 5, NO_REGION);
	event_is(q, EXS_EVT_RECVTIMEOUT, 5, 0, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 5, 0, 1);
	no_event(q);
	/* Two places, or none. */
	start_recv(p.s, &in, 1, 0, q, 6, NO_REGION);
	must_fail(exs_recv(p.s, &in, 1, 0, q, 7, NO_REGION), EAGAIN);
}

static void wrong_times(void)
{
	struct timeval negative = { -1, 0 }, too_many = { 0, 1000000 }, second = { 1, 0 };
	exs_timeout_t flags = { { 1, 0 }, 2 };
	int fd = new_socket();

	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &negative, sizeof(negative)), EDOM);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &too_many, sizeof(too_many)), EDOM);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &flags, sizeof(flags)), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &second, 1), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, NULL, sizeof(second)), EFAULT);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, (void *)8, sizeof(second)), EFAULT);
	must_fail(exs_setsockopt(-1, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &second, sizeof(second)), EBADF);
}

/* Any value is accepted, and nothing changes. */
static void ordered(void)
{
	int fd = new_socket(), no = 0;

	must(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &no, sizeof(no)));
	must_be(int_option(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED), 1);
}

static void knobs(void)
{
	int fd = new_socket(), many = 17, none = 0, five = 5, absent = 100000;

	must(exs_setsockopt(fd, SOL_EXS, EXS_SO_ADVERTS, &five, sizeof(five)));
	must_be(int_option(fd, SOL_EXS, EXS_SO_ADVERTS), 5);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_ADVERTS, &many, sizeof(many)), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_ADVERTS, &five, 2), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_CPU, &absent, sizeof(absent)), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_EXS, 777, &five, sizeof(five)), ENOPROTOOPT);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_CPU, (void *)8, sizeof(five)), EFAULT);
	if (on_stream())
		must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_EAGER_MAX, &none, sizeof(none)), EOPNOTSUPP);
	must_be(int_option(fd, SOL_EXS, EXS_SO_ADVERTS), 5);
}

const struct e2e_case exs_setsockopt_cases[] = {
	CASE(of_the_kernel, ON_KINDS),
	CASE(receive_timeout, ON_KINDS),
	CASE(wrong_times, ON_KINDS),
	CASE(ordered, ON_KINDS),
	CASE_IF(knobs_supported, knobs, ON_KINDS),
	{}
};
