// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sys/syscall.h>

#define CALL "exs_accept"

static int accept_one(exs_qhandle_t q)
{
	return exs_accept(on_dgram() ? bound_socket() : listener(1), NULL, 0, q, 1);
}
SUPPORTED(supported, CALL, accept_one)

static void talk(int a, int b)
{
	char in[2];

	must_be(send(a, "to", 2, 0), 2);
	must_be(recv(b, in, 2, MSG_WAITALL), 2);
	must_be(send(b, "fr", 2, 0), 2);
	must_be(recv(a, in, 2, MSG_WAITALL), 2);
}

/* The connection comes before the request, or after it. */
static void before_and_after(void)
{
	exs_qhandle_t q = queue_new(2);
	int fd = listener(2), c;
	exs_event_t ev;

	c = client_of(fd);
	must(exs_accept(fd, NULL, 0, q, 5));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 5, 0, 0);
	must_be(ev.exs_evt_socket, fd);
	talk(c, event_newfd(&ev));
	must(exs_accept(fd, NULL, 0, q, 6));
	no_event(q);
	c = client_of(fd);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 6, 0, 0);
	talk(c, event_newfd(&ev));
	no_event(q);
}

static void address(void)
{
	exs_qhandle_t q = queue_new(1);
	union address a = {}, own;
	exs_acceptaddr_t addr = { &a.sa, sizeof(a) };
	int fd = listener(1), c;
	exs_event_t ev;

	must(exs_accept(fd, &addr, 0, q, 1));
	c = client_of(fd);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
	check(ev.exs_evt_union.exs_evt_accept.exs_evt_addr == &addr, "another structure");
	own = name_of(c);
	check(same_address(&a, &own), "not the peer's address");
	must_be(addr.exs_addrlen, address_len(&own));
}

static void descriptor_flags(void)
{
	static const int flags[] = { 0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK };
	exs_qhandle_t q = queue_new(1);
	int fd = listener(4), new;
	exs_event_t ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		must(exs_accept(fd, NULL, flags[i], q, 1));
		client_of(fd);
		ev = event_next(q);
		event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
		new = event_newfd(&ev);
		must_be(!!(fcntl(new, F_GETFD) & FD_CLOEXEC), !!(flags[i] & SOCK_CLOEXEC));
		must_be(!!(fcntl(new, F_GETFL) & O_NONBLOCK), !!(flags[i] & SOCK_NONBLOCK));
	}
	must_fail(exs_accept(fd, NULL, 1, q, 1), EINVAL);
	no_event(q);
}

static void in_order(void)
{
	exs_qhandle_t q = queue_new(3);
	int fd = listener(3), i;

	for (i = 0; i < 3; i++)
		must(exs_accept(fd, NULL, 0, q, i));
	for (i = 0; i < 3; i++) {
		client_of(fd);
		event_is(q, EXS_EVT_ACCEPT, i, 0, 0);
	}
}

static void cancelled(void)
{
	exs_qhandle_t q = queue_new(2);
	int fd = listener(2);

	must(exs_accept(fd, NULL, 0, q, 1));
	must(exs_accept(fd, NULL, 0, q, 2));
	must(exs_cancel(q, fd, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE));
	event_is(q, EXS_EVT_ACCEPT, 1, ECANCELED, 0);
	client_of(fd);
	event_is(q, EXS_EVT_ACCEPT, 2, 0, 0);
	must(exs_accept(fd, NULL, 0, q, 3));
	must(exs_close(fd, 0, q, 4));
	event_is(q, EXS_EVT_ACCEPT, 3, ECANCELED, 0);
	event_is(q, EXS_EVT_CLOSE, 4, 0, 0);
}

static void synchronous(void)
{
	union address a = {}, own;
	exs_acceptaddr_t addr = { &a.sa, sizeof(a) };
	int fd = listener(2), c = client_of(fd);

	talk(c, must(exs_accept(fd, &addr, SOCK_CLOEXEC, EXS_QHANDLE_INVALID, 1)));
	own = name_of(c);
	check(same_address(&a, &own), "not the peer's address");
	set_nonblock(fd, true);
	must_fail(exs_accept(fd, NULL, 0, EXS_QHANDLE_INVALID, 1), EAGAIN);
}

static void address_unwritable(void)
{
	exs_acceptaddr_t addr = { (void *)8, sizeof(union address) };
	exs_qhandle_t q = queue_new(1);
	int fd = listener(1);

	must(exs_accept(fd, &addr, 0, q, 1));
	client_of(fd);
	event_is(q, EXS_EVT_ACCEPT, 1, EFAULT, 0);
	no_event(q);
}

struct coming { exs_qhandle_t q; int err; };

/* provokes: exs_qdequeue call EMFILE ENFILE ENOMEM ENOBUFS EAGAIN */
static void cannot_accept(void *arg)
{
	const struct coming *c = arg;
	exs_event_t ev;

	forbid_call(SYS_accept4, c->err);
	must_fail(exs_qdequeue(c->q, &ev, 1, NULL), c->err);
	must_fail(exs_qdequeue(c->q, &ev, -1, NULL), c->err);
}

/*
 * Errors of accept4(2) come from the call that should take the event. On an ordinary listener EAGAIN means that another
 * thread took the connection: the wait goes on.
 */
static void accept_fails(void)
{
	static const int errs[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN };
	size_t i, n = ARRAY_SIZE(errs) - !!(e2e.on & ON_PLAIN);
	int fd = listener(ARRAY_SIZE(errs));	/* none of them is taken off an ordinary one */
	struct coming c;

	for (i = 0; i < n; i++) {
		c = (struct coming){ queue_new(1), errs[i] };
		must(exs_accept(fd, NULL, 0, c.q, 1));
		client_of(fd);
		wait_io(c.q, POLLIN);
		join(spawn(cannot_accept, &c));
	}
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	int fd = listener(2);
	struct pair p;

	pair_open(&p);
	must_fail(exs_accept(-1, NULL, 0, q, 1), EBADF);
	must_fail(exs_accept(w.file, NULL, 0, q, 1), ENOTSOCK);
	must_fail(exs_accept(w.netlink, NULL, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_accept(fd, NULL, 0, w.none, 1), EBADF);
	must_fail(exs_accept(fd, NULL, 0, w.file, 1), EINVAL);
	must_fail(exs_accept(fd, (void *)-8, 0, q, 1), EFAULT);
	must_fail(exs_accept(fd, (void *)8, 0, q, 1), EFAULT);
	must_fail(exs_accept(fd, (void *)8, 0, EXS_QHANDLE_INVALID, 1), EFAULT);
	must_fail(exs_accept(new_socket(), NULL, 0, q, 1), EINVAL);
	must_fail(exs_accept(p.c, NULL, 0, q, 1), EINVAL);
	nothing_started(q);
	must(exs_accept(fd, NULL, 0, q, 1));
	must_fail(exs_accept(fd, NULL, 0, q, 2), EAGAIN);
}

const struct e2e_case exs_accept_cases[] = {
	CASE_IF(supported, before_and_after, ON_KINDS),
	CASE(address, ON_LISTENING),
	CASE(descriptor_flags, ON_LISTENING),
	CASE(in_order, ON_LISTENING),
	CASE(cancelled, ON_LISTENING),
	CASE(synchronous, ON_LISTENING),
	CASE(address_unwritable, ON_LISTENING),
	CASE(accept_fails, ON_LISTENING),
	CASE(wrong, ON_LISTENING),
	{}
};
