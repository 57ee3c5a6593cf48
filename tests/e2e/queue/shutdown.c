// SPDX-License-Identifier: GPL-2.0
/* exs_shutdown() with a queue: the time and the content of its event. */
#include "lib/async.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

static char byte;

#define HANDLE	UINT64_MAX	/* which no other operation here has */

static void start_shutdown(int fd, exs_qhandle_t q)
{
	must_be(exs_shutdown(fd, EXS_SHUT_WR, q, HANDLE), 0);
}

static void shutdown_is(exs_qhandle_t q, int err)
{
	event_is(q, EXS_EVT_SHUTDOWN, HANDLE, err, 0);
	no_event(q);
}

/* -- all is delivered */

static void sends_first(void)
{
	enum { SENDS = 16, LEN = 20000 };
	exs_qhandle_t q = queue_new(SENDS + 1);
	char *out = pages(SENDS * LEN);
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	data_fill(6, 0, out, SENDS * LEN);
	for (i = 0; i < SENDS; i++)
		start_send(p.c, out + i * LEN, LEN, q, i, NO_REGION);
	start_shutdown(p.c, q);
	recv_all(p.s, 6, 0, SENDS * LEN);
	must_be(recv(p.s, &byte, 1, 0), 0);
	for (i = 0; i < SENDS; i++)
		event_is(q, EXS_EVT_SEND, i, 0, LEN);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_SHUTDOWN, HANDLE, 0, 0);
	must_be(ev.exs_evt_socket, p.c);
	no_event(q);
	/* The other direction still works. */
	send_all(p.s, 7, 0, 1000);
	recv_all(p.c, 7, 0, 1000);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
}

/* Plain sends have no event of their own: this one says that they arrived. */
static void plain_sends(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	no_event_after_others(q);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
	shutdown_is(q, 0);
}

static void nothing_sent(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	start_shutdown(p.c, q);
	shutdown_is(q, 0);
	must_be(recv(p.s, &byte, 1, 0), 0);
	/* Again, and of both directions. */
	start_shutdown(p.c, q);
	shutdown_is(q, 0);
	must_be(exs_shutdown(p.s, SHUT_RDWR, q, HANDLE), 0);
	shutdown_is(q, 0);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

/* Each has its event, also if another call shut the socket down. */
static void several(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	size_t n;
	int i;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	for (i = 0; i < 3; i++)
		must_be(exs_shutdown(p.c, i % 2 ? SHUT_RDWR : SHUT_WR, q, i), 0);
	must(shutdown(p.c, SHUT_WR));
	no_event_after_others(q);
	recv_all(p.s, 1, 0, n);
	for (i = 0; i < 3; i++)
		event_is(q, EXS_EVT_SHUTDOWN, i, 0, 0);
	no_event(q);
}

/* -- another end comes first */

static void hard(int fd)
{
	struct linger l = { .l_onoff = 1 };

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

static void peer_resets(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	hard(p.s);
	close(p.s);
	shutdown_is(q, ECONNRESET);
}

/* The connection goes on for a while: before the close's event, and as truthful. */
static void closed(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	must(exs_close(p.c, 0, q, 2));
	no_event_after_others(q);
	recv_all(p.s, 1, 0, n);
	event_is(q, EXS_EVT_SHUTDOWN, HANDLE, 0, 0);
	event_is(q, EXS_EVT_CLOSE, 2, 0, 0);

	pair_open(&p);
	send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	hard(p.c);
	must(exs_close(p.c, 0, q, 2));
	event_is(q, EXS_EVT_SHUTDOWN, HANDLE, ECONNABORTED, 0);
	event_is(q, EXS_EVT_CLOSE, 2, ECONNABORTED, 0);
}

/* Only the waiting ends. */
static void cancelled(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	must_be(exs_cancel(q, p.c, HANDLE, EXS_CAF_FILDES | EXS_CAF_AHANDLE), 0);
	shutdown_is(q, ECANCELED);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

static void queue_deleted(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	must(exs_qdelete(q));
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded"), 1);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
}

/* -- shutdown(2) is refused, as by a security module */

/* No event, no slot, and the socket is what it was. */
static void refused(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	forbid_call(SYS_shutdown, EACCES);
	must_fail(exs_shutdown(p.c, SHUT_WR, q, HANDLE), EACCES);
	must_fail(exs_shutdown(p.c, SHUT_WR, q, HANDLE), EACCES);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, &byte, 1, 0), 1);
}

/* An operation of an earlier call keeps its event. */
static void refused_later(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	start_shutdown(p.c, q);
	forbid_call(SYS_shutdown, EACCES);
	/* The socket is shut down, so that the event will say so. */
	must_be(exs_shutdown(p.c, SHUT_WR, q, HANDLE), 0);
	recv_all(p.s, 1, 0, n);
	event_is(q, EXS_EVT_SHUTDOWN, HANDLE, 0, 0);
	shutdown_is(q, 0);
}

/* -- calls that fail: no event, and nothing is shut down */

static void wrong(void)
{
	exs_mhandle_t m = region_new(&byte, 1, 0);
	exs_qhandle_t q = queue_new(1);
	struct pipe_pair pipes = pipe_open();
	struct pair p, gone;
	int closed_fd;

	pair_open(&p);
	pair_open(&gone);
	hard(gone.s);
	close(gone.s);
	must_fail(recv(gone.c, &byte, 1, 0), ECONNRESET);
	closed_fd = must(dup(q));
	close(closed_fd);
	must_fail(exs_shutdown(p.c, SHUT_RD, q, 1), EINVAL);
	must_fail(exs_shutdown(p.c, 3, q, 1), EINVAL);
	must_fail(exs_shutdown(p.c, -1, q, 1), EINVAL);
	must_fail(exs_shutdown(p.c, SHUT_WR, m, 1), EINVAL);
	must_fail(exs_shutdown(p.c, SHUT_WR, p.c, 1), EINVAL);
	must_fail(exs_shutdown(p.c, SHUT_WR, closed_fd, 1), EBADF);
	must_fail(exs_shutdown(closed_fd, SHUT_WR, q, 1), EBADF);
	must_fail(exs_shutdown(-1, SHUT_WR, q, 1), EBADF);
	must_fail(exs_shutdown(pipes.wr, SHUT_WR, q, 1), ENOTSOCK);
	must_fail(exs_shutdown(m, SHUT_WR, q, 1), ENOTSOCK);
	must_fail(exs_shutdown(new_socket(), SHUT_WR, q, 1), ENOTCONN);
	must_fail(exs_shutdown(listener(1), SHUT_WR, q, 1), ENOTCONN);
	must_fail(exs_shutdown(gone.c, SHUT_WR, q, 1), ENOTCONN);
	no_event(q);
	start_recv(p.c, &byte, 1, 0, q, 1, NO_REGION);
	must_fail(exs_shutdown(p.c, SHUT_WR, q, 1), EAGAIN);
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, &byte, 1, 0), 1);
}

/* Once all is delivered, the event waits neither for a timer nor for the next event. */
static void soon(void)
{
	event_is_soon_after_delivery(start_shutdown, EXS_EVT_SHUTDOWN, HANDLE);
}

static const struct e2e_case cases[] = {
	{ "sends_first", sends_first, .on = ON_BOTH },
	{ "plain_sends", plain_sends, .on = ON_BOTH },
	{ "nothing_sent", nothing_sent, .on = ON_BOTH },
	{ "several", several, .on = ON_STREAM },
	{ "soon", soon, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "peer_resets", peer_resets, .on = ON_BOTH },
	{ "closed", closed, .on = ON_BOTH },
	{ "cancelled", cancelled, .on = ON_BOTH },
	{ "queue_deleted", queue_deleted, .on = ON_STREAM },
	{ "refused", refused, .on = ON_STREAM },
	{ "refused_later", refused_later, .on = ON_STREAM },
	{ "wrong", wrong, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
