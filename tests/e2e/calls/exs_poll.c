// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_poll"

static char byte;

static void readable(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_pollfd_t fds[2] = {};
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	fds[0] = (exs_pollfd_t){ .fd = -1, .events = EXS_POLLIN };
	fds[1] = (exs_pollfd_t){ .fd = p.s, .events = EXS_POLLIN };
	must(exs_poll(fds, 2, 0, q, 4));
	no_event(q);
	must_be(send(p.c, "x", 1, 0), 1);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_POLL, 4, 0, 0);
	check(ev.exs_evt_union.exs_evt_poll.exs_evt_fds == fds, "other descriptors");
	must_be(ev.exs_evt_union.exs_evt_poll.exs_evt_nfds, 2);
	must_be(ev.exs_evt_union.exs_evt_poll.exs_evt_ready, 1);
	must_be(fds[0].revents, 0);
	must_be(fds[1].revents, POLLIN);
	no_event(q);
}

static void writable(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_pollfd_t pfd = { .events = EXS_POLLIN | EXS_POLLOUT };
	struct pair p;

	pair_open(&p);
	pfd.fd = p.c;
	must(exs_poll(&pfd, 1, 0, q, 1));
	event_is(q, EXS_EVT_POLL, 1, 0, 0);
	must_be(pfd.revents, POLLOUT);
}

static void connection_ends(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_pollfd_t pfd = { .events = EXS_POLLIN };
	struct pair p;

	pair_open(&p);
	pfd.fd = p.s;
	must(exs_poll(&pfd, 1, 0, q, 1));
	must(close(p.c));
	event_is(q, EXS_EVT_POLL, 1, 0, 0);
	check(pfd.revents & POLLIN, "not readable");
	must_be(recv(p.s, &byte, 1, 0), 0);
}

static void connection_comes(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_pollfd_t pfd = { .fd = listener(1), .events = EXS_POLLIN };

	must(exs_poll(&pfd, 1, 0, q, 1));
	no_event(q);
	client_of(pfd.fd);
	event_is(q, EXS_EVT_POLL, 1, 0, 0);
	must_be(pfd.revents, POLLIN);
}

static void cancelled(void)
{
	exs_pollfd_t pfd = { .events = EXS_POLLIN, .revents = 77 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	pfd.fd = p.s;
	must(exs_poll(&pfd, 1, 0, q, 1));
	must(exs_cancel(q, -1, 1, EXS_CAF_AHANDLE));
	event_is(q, EXS_EVT_POLL, 1, ECANCELED, 0);
	must_be(pfd.revents, 77);
}

static void synchronous(void)
{
	exs_pollfd_t pfd = { .events = EXS_POLLIN };
	struct pair p;

	pair_open(&p);
	pfd.fd = p.s;
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(exs_poll(&pfd, 1, 0, EXS_QHANDLE_INVALID, 1), 1);
	must_be(pfd.revents, POLLIN);
}

static void wrong(void)
{
	exs_pollfd_t pfd = { .fd = 0, .events = EXS_POLLIN };
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;

	pair_open(&p);
	pfd.fd = p.s;
	must_fail(exs_poll(&pfd, 0, 0, q, 1), EINVAL);
	must_fail(exs_poll(&pfd, -1, 0, q, 1), EINVAL);
	must_fail(exs_poll(&pfd, 1025, 0, q, 1), EINVAL);
	must_fail(exs_poll(&pfd, 1, 1, q, 1), EINVAL);
	must_fail(exs_poll((void *)8, 1, 0, q, 1), EFAULT);
	must_fail(exs_poll(NULL, 1, 0, q, 1), EFAULT);
	must_fail(exs_poll(&pfd, 1, 0, w.none, 1), EBADF);
	must_fail(exs_poll(&pfd, 1, 0, w.file, 1), EINVAL);
	pfd.events = POLLPRI;
	must_fail(exs_poll(&pfd, 1, 0, q, 1), EINVAL);
	pfd = (exs_pollfd_t){ .fd = w.none, .events = EXS_POLLIN };
	must_fail(exs_poll(&pfd, 1, 0, q, 1), EBADF);
	pfd.fd = q;
	must_fail(exs_poll(&pfd, 1, 0, q, 1), ELOOP);
	nothing_started(q);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	pfd.fd = p.s;
	must_fail(exs_poll(&pfd, 1, 0, q, 2), EAGAIN);
	no_event(q);
}

const struct e2e_case exs_poll_cases[] = {
	CASE(readable, ON_KINDS),
	CASE(writable, ON_KINDS),
	CASE(connection_ends, ON_LISTENING),
	CASE(connection_comes, ON_LISTENING),
	CASE(cancelled, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
