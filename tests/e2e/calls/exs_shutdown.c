// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_shutdown"

static char bytes[LARGE];

/* Earlier sends come first, also at the peer, and the other direction still works. */
static void sends_first(void)
{
	exs_qhandle_t q = queue_new(2);
	char in[LARGE];
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	data_fill(1, 0, bytes, LARGE);
	start_send(p.c, bytes, LARGE, q, 1, NO_REGION);
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 2));
	must_be(recv(p.s, in, LARGE, MSG_WAITALL), LARGE);
	data_check(1, 0, in, LARGE);
	if (!on_dgram())
		must_be(recv(p.s, in, 1, 0), 0);
	event_is(q, EXS_EVT_SEND, 1, 0, LARGE);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_SHUTDOWN, 2, 0, 0);
	must_be(ev.exs_evt_socket, p.c);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
	must_be(send(p.s, "x", 1, 0), 1);
	must_be(recv(p.c, in, 1, 0), 1);
}

/* Each call has its event. */
static void again(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;

	pair_open(&p);
	must(exs_shutdown(p.c, SHUT_WR, q, 1));
	must(exs_shutdown(p.c, SHUT_RDWR, q, 2));
	event_is(q, EXS_EVT_SHUTDOWN, 1, 0, 0);
	event_is(q, EXS_EVT_SHUTDOWN, 2, 0, 0);
	no_event(q);
}

static void synchronous(void)
{
	struct pair p;
	char in;

	pair_open(&p);
	must_be(exs_shutdown(p.c, SHUT_WR, EXS_QHANDLE_INVALID, 0), 0);
	if (!on_dgram())
		must_be(recv(p.s, &in, 1, 0), 0);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
	must_be(exs_shutdown(p.c, SHUT_RD, EXS_QHANDLE_INVALID, 0), 0);
	must_fail(exs_shutdown(p.c, 3, EXS_QHANDLE_INVALID, 0), EINVAL);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;
	char in;

	pair_open(&p);
	must_fail(exs_shutdown(-1, SHUT_WR, q, 1), EBADF);
	must_fail(exs_shutdown(w.file, SHUT_WR, q, 1), ENOTSOCK);
	must_fail(exs_shutdown(w.netlink, SHUT_WR, q, 1), EOPNOTSUPP);
	must_fail(exs_shutdown(p.c, SHUT_WR, w.none, 1), EBADF);
	must_fail(exs_shutdown(p.c, SHUT_WR, w.file, 1), EINVAL);
	must_fail(exs_shutdown(p.c, SHUT_RD, q, 1), EINVAL);
	must_fail(exs_shutdown(p.c, 3, q, 1), EINVAL);
	nothing_started(q);
	start_recv(p.c, &in, 1, 0, q, 1, NO_REGION);
	must_fail(exs_shutdown(p.c, SHUT_WR, q, 2), EAGAIN);
	/* Nothing was shut down. */
	must_be(send(p.c, "x", 1, 0), 1);
}

/* AF_UNIX shuts down a socket in any state. */
static void not_connected(void)
{
	exs_qhandle_t q = queue_new(1);

	must_fail(exs_shutdown(new_socket(), SHUT_WR, q, 1), ENOTCONN);
	no_event(q);
}

/* The peer has closed. */
static void after_peer(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	char in;

	pair_open(&p);
	close(p.s);
	if (on_exs())
		wait_until(send(p.c, "", 0, MSG_NOSIGNAL) < 0);
	must_be(recv(p.c, &in, 1, 0), 0);
	must(exs_shutdown(p.c, SHUT_RDWR, q, 1));
	event_is(q, EXS_EVT_SHUTDOWN, 1, 0, 0);
	if (on_exs())
		must_fail(exs_shutdown(p.c, SHUT_WR, q, 2), ENOTCONN);
	no_event(q);
}

/* The socket is closed, and the peer does not read. */
static void time_is_up(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;

	write_sysctl("linger", 100);
	pair_open(&p);
	send_until_full(p.c, 1);
	must(exs_shutdown(p.c, SHUT_WR, q, 1));
	must(exs_close(p.c, 0, q, 2));
	event_is(q, EXS_EVT_SHUTDOWN, 1, ETIMEDOUT, 0);
	event_is(q, EXS_EVT_CLOSE, 2, ETIMEDOUT, 0);
}

const struct e2e_case exs_shutdown_cases[] = {
	CASE(sends_first, ON_KINDS),
	CASE(again, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	CASE(after_peer, ON_STREAM | ON_TCP),
	CASE(time_is_up, ON_BOTH),
	CASE(not_connected, ON_BOTH | ON_TCP | ON_UDP),
	{}
};
