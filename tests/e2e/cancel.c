// SPDX-License-Identifier: GPL-2.0
/* exs_cancel(): which operations it ends, and what their events say. */
#include "lib/async.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char bytes[4096];

/* Receives with handles 0 and 1 on each socket, and handle 1 on both. */
struct waiting { exs_qhandle_t q; struct pair a, b; };

static void waiting_open(struct waiting *w)
{
	int i;

	w->q = queue_new(16);
	pair_open(&w->a);
	pair_open(&w->b);
	for (i = 0; i < 2; i++) {
		start_recv(w->a.s, bytes + i, 1, 0, w->q, i, NO_REGION);
		start_recv(w->b.s, bytes + 2 + i, 1, 0, w->q, i + 1, NO_REGION);
	}
}

static void one_ended(const struct waiting *w, int fd, exs_ahandle_t handle)
{
	exs_event_t ev = event_next(w->q);

	event_check(&ev, EXS_EVT_RECV, handle, ECANCELED, 0);
	must_be(ev.exs_evt_socket, fd);
}

/* What was not cancelled waits on, in order. */
static void one_works(const struct waiting *w, const struct pair *p, exs_ahandle_t handle)
{
	must_be(send(p->c, "x", 1, 0), 1);
	event_is(w->q, EXS_EVT_RECV, handle, 0, 1);
}

static void by_socket(void)
{
	struct waiting w;

	waiting_open(&w);
	must_be(exs_cancel(w.q, w.a.s, 77, EXS_CAF_FILDES), 0);
	one_ended(&w, w.a.s, 0);
	one_ended(&w, w.a.s, 1);
	no_event(w.q);
	one_works(&w, &w.b, 1);
	one_works(&w, &w.b, 2);
	must_be(send(w.a.c, "y", 1, 0), 1);
	must_be(recv(w.a.s, bytes, 1, 0), 1);
}

/* Another descriptor of the socket is as good as that of the call. */
static void by_duplicate(void)
{
	struct waiting w;
	int again;

	waiting_open(&w);
	again = must(dup(w.a.s));
	must_be(exs_cancel(w.q, again, 0, EXS_CAF_FILDES), 0);
	one_ended(&w, w.a.s, 0);
	one_ended(&w, w.a.s, 1);
	no_event(w.q);
}

static void by_handle(void)
{
	exs_event_t ev[2];
	struct waiting w;
	int i;

	waiting_open(&w);
	must_be(exs_cancel(w.q, -1, 1, EXS_CAF_AHANDLE), 0);
	must_be(exs_qdequeue(w.q, ev, -2, NULL), 2);
	for (i = 0; i < 2; i++)
		event_check(&ev[i], EXS_EVT_RECV, 1, ECANCELED, 0);
	check(ev[0].exs_evt_socket != ev[1].exs_evt_socket, "both were the same socket's");
	no_event(w.q);
	one_works(&w, &w.a, 0);
	one_works(&w, &w.b, 2);
}

static void by_both(void)
{
	struct waiting w;

	waiting_open(&w);
	must_be(exs_cancel(w.q, w.b.s, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE), 0);
	one_ended(&w, w.b.s, 1);
	no_event(w.q);
	one_works(&w, &w.a, 0);
	one_works(&w, &w.a, 1);
	one_works(&w, &w.b, 2);
}

static void all(void)
{
	exs_event_t ev[4];
	struct waiting w;
	int i;

	waiting_open(&w);
	must_be(exs_cancel(w.q, -1, 0, 0), 0);
	must_be(exs_qdequeue(w.q, ev, -4, NULL), 4);
	for (i = 0; i < 4; i++)
		event_check(&ev[i], EXS_EVT_RECV, ev[i].exs_evt_ahandle, ECANCELED, 0);
	no_event(w.q);
	must_be(delta("ops_cancelled"), 4);
}

/* Nothing fits, or everything has ended, or it is another queue's. */
static void nothing_found(void)
{
	exs_qhandle_t other = queue_new(4);
	struct waiting w;

	waiting_open(&w);
	must_fail(exs_cancel(other, -1, 0, 0), ENOENT);
	must_fail(exs_cancel(w.q, w.a.c, 0, EXS_CAF_FILDES), ENOENT);
	must_fail(exs_cancel(w.q, -1, 99, EXS_CAF_AHANDLE), ENOENT);
	must_fail(exs_cancel(w.q, w.a.s, 2, EXS_CAF_FILDES | EXS_CAF_AHANDLE), ENOENT);
	must_fail(exs_cancel(w.q, must(socket(AF_INET, SOCK_STREAM, 0)), 0, EXS_CAF_FILDES), ENOENT);
	no_event(w.q);
	must_be(exs_cancel(w.q, w.a.s, 0, EXS_CAF_FILDES), 0);
	one_ended(&w, w.a.s, 0);
	one_ended(&w, w.a.s, 1);
	must_fail(exs_cancel(w.q, w.a.s, 0, EXS_CAF_FILDES), ENOENT);
	one_works(&w, &w.b, 1);
	one_works(&w, &w.b, 2);
}

static void wrong(void)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), 0);
	struct waiting w;
	int closed, fds[2];

	waiting_open(&w);
	must(pipe(fds));
	closed = must(dup(w.a.s));
	close(closed);
	must_fail(exs_cancel(m, w.a.s, 0, EXS_CAF_FILDES), EINVAL);
	must_fail(exs_cancel(w.a.s, w.a.s, 0, EXS_CAF_FILDES), EINVAL);
	must_fail(exs_cancel(fds[0], w.a.s, 0, EXS_CAF_FILDES), EINVAL);
	must_fail(exs_cancel(closed, w.a.s, 0, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(EXS_QHANDLE_INVALID, w.a.s, 0, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(w.q, closed, 0, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(w.q, -1, 0, EXS_CAF_FILDES), EBADF);
	must_fail(exs_cancel(w.q, w.q, 0, EXS_CAF_FILDES), ENOTSOCK);
	must_fail(exs_cancel(w.q, m, 0, EXS_CAF_FILDES), ENOTSOCK);
	must_fail(exs_cancel(w.q, w.a.s, 0, EXS_CAF_FILDES | 4), EINVAL);
	must_fail(exs_cancel(w.q, w.a.s, 0, -1), EINVAL);
	no_event(w.q);
	one_works(&w, &w.a, 0);
	one_works(&w, &w.a, 1);
}

/* The bytes that it holds are not lost: it succeeds with as many. */
static void partly_filled(void)
{
	enum { LEN = 100000, HALF = 50000 };
	exs_qhandle_t q = queue_new(4);
	char *in = pages(LEN);
	exs_mhandle_t m = region_new(in, LEN, EXS_ACCESS_WRITE);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 2; i++) {
		start_recv(p.s, in, LEN, MSG_WAITALL, q, i, i ? m : NO_REGION);
		send_all(p.c, 1, i * 2 * HALF, HALF);
		wait_until(data_same(1, i * 2 * HALF, in, HALF));
		must_be(exs_cancel(q, -1, i, EXS_CAF_AHANDLE), 0);
		event_is(q, EXS_EVT_RECV, i, 0, HALF);
		data_check(1, i * 2 * HALF, in, HALF);
		send_all(p.c, 1, (i * 2 + 1) * HALF, HALF);
		recv_all(p.s, 1, (i * 2 + 1) * HALF, HALF);
	}
	no_event(q);
}

/* The peer has an advert of the second; the order of the others does not suffer. */
static void one_of_three(void)
{
	enum { LEN = 20000 };
	exs_qhandle_t q = queue_new(4);
	char *in = pages(3 * LEN);
	exs_mhandle_t m = region_new(in, 3 * LEN, EXS_ACCESS_WRITE);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		start_recv(p.s, in + i * LEN, LEN, MSG_WAITALL, q, i, m);
	must_be(send(p.s, "!", 1, 0), 1);
	must_be(recv(p.c, bytes, 1, 0), 1);
	must_be(exs_cancel(q, p.s, 1, EXS_CAF_AHANDLE | EXS_CAF_FILDES), 0);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	for (i = 0; i < 3; i += 2) {
		send_all(p.c, 4, i * LEN, LEN);
		event_is(q, EXS_EVT_RECV, i, 0, LEN);
		data_check(4, i * LEN, in + i * LEN, LEN);
	}
	no_event(q);
}

/* What the peer has no room for is taken back; what went out arrives. */
static void sends(void)
{
	enum { SENDS = 8, LEN = MIB };
	exs_qhandle_t q = queue_new(SENDS);
	char *out = pages(SENDS * LEN);
	long length[SENDS], sent = 0;
	exs_event_t ev;
	struct pair p;
	int i;

	pair_open(&p);
	memset(length, -1, sizeof(length));
	data_fill(5, 0, out, SENDS * LEN);
	for (i = 0; i < SENDS; i++)
		start_send(p.c, out + i * LEN, LEN, q, i, NO_REGION);
	must_be(exs_cancel(q, p.c, 0, EXS_CAF_FILDES), 0);
	for (i = 0; i < SENDS; i++) {
		ev = event_next(q);
		check(ev.exs_evt_type == EXS_EVT_SEND && ev.exs_evt_ahandle < SENDS &&
		      length[ev.exs_evt_ahandle] < 0, "another event");
		check(!ev.exs_evt_errno || ev.exs_evt_errno == ECANCELED, "a send: %s",
		      errno_name(ev.exs_evt_errno));
		length[ev.exs_evt_ahandle] = ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
	}
	/* Nothing has gone out behind one that was taken back. */
	for (i = 0; i < SENDS; i++) {
		if (length[i])
			must_be(sent, i * LEN);
		sent += length[i];
	}
	check(sent < SENDS * LEN, "all was sent to a peer that does not read");
	must(shutdown(p.c, SHUT_WR));
	recv_all(p.s, 5, 0, sent);
	must_be(recv(p.s, bytes, 1, 0), 0);
	no_event(q);
}

/* The connection that the accept would have had waits for another one. */
static void accepts(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), i;

	for (i = 0; i < 3; i++)
		must(exs_accept(fd, NULL, 0, q, i));
	must_be(exs_cancel(q, fd, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE), 0);
	event_is(q, EXS_EVT_ACCEPT, 1, ECANCELED, 0);
	must_be(exs_cancel(q, fd, 0, EXS_CAF_FILDES), 0);
	event_is(q, EXS_EVT_ACCEPT, 0, ECANCELED, 0);
	event_is(q, EXS_EVT_ACCEPT, 2, ECANCELED, 0);
	no_event(q);
	client_of(fd);
	must(accept(fd, NULL, NULL));
}

/* The attempt goes on without it. */
static void connects(void)
{
	union address to = address_from(e2e.domain, "10.77.0.9", 99);
	exs_qhandle_t q = queue_new(4);
	int fd = new_socket();

	must(exs_connect(fd, &to.sa, address_len(&to), 0, q, 1));
	must_be(exs_cancel(q, fd, 0, EXS_CAF_FILDES), 0);
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	must_fail(exs_connect(fd, &to.sa, address_len(&to), 0, q, 2), EALREADY);
	close(fd);
	no_event(q);
}

/* By handle: the descriptor is gone. */
static void closes(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	must(exs_close(p.c, 0, q, 8));
	must_fail(exs_cancel(q, p.c, 8, EXS_CAF_FILDES | EXS_CAF_AHANDLE), EBADF);
	must_be(exs_cancel(q, -1, 8, EXS_CAF_AHANDLE), 0);
	event_is(q, EXS_EVT_CLOSE, 8, ECANCELED, 0);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, bytes, 1, 0), 0);
}

enum { MANY = 3000 };

static void many_open(struct pair *p, exs_qhandle_t *q)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_WRITE);
	int i;

	*q = queue_new(MANY);
	pair_open(p);
	for (i = 0; i < MANY; i++)
		start_recv(p->s, bytes, 1, 0, *q, i, m);
}

/* Each is found at once, however many there are. */
static void many(void)
{
	struct pair p;
	exs_qhandle_t q;
	int i;

	many_open(&p, &q);
	must_be(exs_cancel(q, -1, 0, 0), 0);
	for (i = 0; i < MANY; i++)
		must_be(event_next(q).exs_evt_errno, ECANCELED);
	must_be(delta("ops_cancelled"), MANY);
	must_be(delta("cancel_looks"), MANY);
}

struct hand_over { int fd; exs_qhandle_t q; exs_mhandle_t m; };

static void receive_many(void *arg)
{
	const struct hand_over *h = arg;
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), EXS_ACCESS_WRITE);
	int i;

	for (i = 0; i < MANY; i++)
		start_recv(h->fd, bytes, 1, 0, h->q, i, m);
}

/* Whoever waits for the exit finds the operations ended: what arrives then is nobody's but theirs. */
static void many_of_the_dead(void)
{
	struct hand_over h;
	struct pair p;
	int i;

	h.q = queue_new(MANY);
	pair_open(&p);
	h.fd = p.s;
	join(spawn(receive_many, &h));
	send_all(p.c, 1, 0, 100);
	recv_all(p.s, 1, 0, 100);
	for (i = 0; i < MANY; i++)
		must_be(event_next(h.q).exs_evt_errno, ECANCELED);
	must_be(delta("cancel_looks"), MANY);
}

static const struct e2e_case cases[] = {
	{ "by_socket", by_socket, .on = ON_BOTH },
	{ "by_duplicate", by_duplicate, .on = ON_STREAM },
	{ "by_handle", by_handle, .on = ON_BOTH },
	{ "by_both", by_both, .on = ON_BOTH },
	{ "all", all, .on = ON_BOTH },
	{ "nothing_found", nothing_found, .on = ON_STREAM },
	{ "wrong", wrong, .on = ON_STREAM },
	{ "partly_filled", partly_filled, .on = ON_STREAM },
	{ "one_of_three", one_of_three, .on = ON_BOTH },
	{ "sends", sends, .on = ON_BOTH },
	{ "accepts", accepts, .on = ON_BOTH },
	{ "connects", connects, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "many", many, .on = ON_STREAM },
	{ "many_of_the_dead", many_of_the_dead, .on = ON_STREAM },
	{ "closes", closes, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
