// SPDX-License-Identifier: GPL-2.0
/* exs_cancel(): which operations it ends, and what their events say. */
#include "lib/async.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
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

/* Receives that were not cancelled go on waiting, in order. */
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

/* Sends that the peer has no room for are taken back; bytes that were sent arrive. */
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
	/* No send after one that was taken back was sent. */
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

struct reader { int fd; long got; };

static void *read_to_the_end(void *arg)
{
	struct reader *r = arg;
	char in[4096];
	ssize_t n;

	while ((n = must(recv(r->fd, in, sizeof(in), 0)))) {
		data_check(6, r->got, in, n);
		r->got += n;
	}
	return NULL;
}

enum { FLOW = 200, FLOW_LEN = 8000 };

/* Lengths of the first ones are whole, one may be a part, and those behind it are 0. Returns the sum. */
static long no_hole(const long *length)
{
	long sent = 0;
	int i;

	for (i = 0; i < FLOW; i++) {
		if (length[i])
			must_be(sent, (long)i * FLOW_LEN);
		sent += length[i];
	}
	return sent;
}

static long cancel_in_flow(exs_qhandle_t q, int fd, const char *out, exs_mhandle_t m)
{
	long length[FLOW];
	exs_event_t ev;
	int i;

	for (i = 0; i < FLOW; i++)
		start_send(fd, out + i * FLOW_LEN, FLOW_LEN, q, i, m);
	/* There may be none any more. */
	check(!exs_cancel(q, fd, 0, EXS_CAF_FILDES) || errno == ENOENT, "exs_cancel: %s", errno_name(errno));
	for (i = 0; i < FLOW; i++) {
		ev = event_next(q);
		check(!ev.exs_evt_errno || ev.exs_evt_errno == ECANCELED, "a send: %s",
		      errno_name(ev.exs_evt_errno));
		length[ev.exs_evt_ahandle] = ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
	}
	return no_hole(length);
}

/* The peer reads meanwhile, so there is room again and again: none of the sends that are left begins. */
static void sends_in_flow(void)
{
	char *out = pages(FLOW * FLOW_LEN);
	exs_mhandle_t m = region_new(out, FLOW * FLOW_LEN, EXS_ACCESS_READ);
	exs_qhandle_t q = queue_new(FLOW);
	struct reader r;
	pthread_t thread;
	struct pair p;
	long sent;
	int i;

	data_fill(6, 0, out, FLOW * FLOW_LEN);
	for (i = 0; i < 20; i++) {
		pair_open(&p);
		r = (struct reader){ .fd = p.s };
		must_be(pthread_create(&thread, NULL, read_to_the_end, &r), 0);
		sent = cancel_in_flow(q, p.c, out, m);
		must(shutdown(p.c, SHUT_WR));
		pthread_join(thread, NULL);
		must_be(r.got, sent);
		pair_close(&p);
	}
}

/* More sockets than a queue has lists: each one's operation is cancelled alone. */
static void among_many_sockets(void)
{
	enum { SOCKETS = 200 };
	exs_qhandle_t q = queue_new(SOCKETS);
	int fds[SOCKETS][2], i;

	for (i = 0; i < SOCKETS; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]));
		start_recv(fds[i][0], bytes + i, 1, 0, q, i, NO_REGION);
	}
	for (i = 0; i < SOCKETS; i += 2) {
		must(exs_cancel(q, fds[i][0], 0, EXS_CAF_FILDES));
		event_is(q, EXS_EVT_RECV, i, ECANCELED, 0);
	}
	for (i = 1; i < SOCKETS; i += 2) {
		must_be(send(fds[i][1], "x", 1, 0), 1);
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	}
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

/* A process that waits for the exit finds the operations ended: bytes that arrive then are its own. */
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

struct two_queues { int fd; exs_qhandle_t q[2]; const char *out; };

static void send_by_two(void *arg)
{
	const struct two_queues *t = arg;
	int i;

	for (i = 0; i < 2; i++) {
		start_send(t->fd, t->out, MIB, t->q[i], 1, NO_REGION);
		start_send(t->fd, "2", 1, t->q[1 - i], 2, NO_REGION);
	}
}

/*
 * A short message behind a long one, which waits for its receiver. They are in two queues, and the long one is in the
 * older, then in the newer. At the end of the process no short message goes out because the long one is cancelled
 * first. In a wrong order one often does, but not each time.
 */
static void order_of_the_dead(void)
{
	struct two_queues t = { .q = { queue_new(8), queue_new(8) }, .out = pages(MIB) };
	struct pair p;
	int i, j, times;

	pair_open(&p);
	t.fd = p.c;
	for (times = 0; times < 10; times++) {
		join(spawn(send_by_two, &t));
		for (i = 0; i < 2; i++)
			for (j = 0; j < 2; j++)
				must_be(event_next(t.q[i]).exs_evt_errno, ECANCELED);
	}
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, bytes, sizeof(bytes), 0), 1);
	must_be(bytes[0], 'x');
}

/* The event waits neither for a timer nor for the next one, although other operations of the queue are under way. */
static void soon(void)
{
	static const int types[] = { EXS_EVT_RECV, EXS_EVT_ACCEPT, EXS_EVT_CONNECT, EXS_EVT_POLL, EXS_EVT_RECV };
	union address to = address_from(e2e.domain, "10.77.0.9", 99);
	exs_pollfd_t fds = { .events = EXS_POLLIN };
	exs_qhandle_t q = queue_new(8);
	struct pair p;
	int i;

	pair_open(&p);
	fds.fd = p.s;
	start_recv(p.s, bytes, 1, 0, q, 0, NO_REGION);
	must(exs_accept(listener(4), NULL, 0, q, 1));
	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 2));
	must(exs_poll(&fds, 1, 0, q, 3));
	start_recv(p.s, bytes, 1, 0, q, 4, NO_REGION);
	for (i = 0; i < (int)ARRAY_SIZE(types); i++) {
		must_be(exs_cancel(q, -1, i, EXS_CAF_AHANDLE), 0);
		event_is_soon(q, types[i], i, ECANCELED, 0);
	}
}

static const struct e2e_case cases[] = {
	{ "by_socket", by_socket, .on = ON_BOTH },
	{ "partly_filled", partly_filled, .on = ON_STREAM },
	{ "one_of_three", one_of_three, .on = ON_BOTH },
	{ "sends", sends, .on = ON_BOTH },
	{ "sends_in_flow", sends_in_flow, .on = ON_STREAM | ON_TCP },
	{ "among_many_sockets", among_many_sockets, .on = ON_EXS },
	{ "accepts", accepts, .on = ON_BOTH },
	{ "connects", connects, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "many", many, .on = ON_STREAM },
	{ "many_of_the_dead", many_of_the_dead, .on = ON_STREAM },
	{ "order_of_the_dead", order_of_the_dead, .on = ON_SEQ },
	{ "closes", closes, .on = ON_STREAM },
	{ "soon", soon, .on = ON_BOTH, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
