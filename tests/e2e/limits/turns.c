// SPDX-License-Identifier: GPL-2.0
/*
 * A user whose operations occupy workers delays only that user's operations. In most cases
 * two of root's workers are stuck, as many as a user may have; a third operation of root
 * waits for them, and one of another user does not.
 */
#include "lib/async.h"
#include "lib/file.h"
#include "hostile/raw/raw.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STUCK = 2, ALL };

static char bytes[64];

/* Another user's operation begins only now, and ends. */
static void other(void (*fn)(void *arg), void *arg)
{
	wait_delta("turns_waited", 1);
	join(spawn(fn, arg));
}

/* -- reads of files */

/* A send that has ended waits for no turn, and releases its file. */
static void feed_leaves(void)
{
	exs_xferfile_t stuck = { .xf_file = { .fd_len = 10 } }, x = stuck;
	exs_qhandle_t q = queue_new(2);
	struct pair p[2];
	struct guard g;
	int i, asked;

	write_sysctl("max_user_workers", 1);
	x.xf_file.fd_file = file_new(1, 10);
	stuck.xf_file.fd_file = file_new(2, 10);
	g = guard_open(&stuck.xf_file.fd_file);
	for (i = 0; i < 2; i++)
		pair_open(&p[i]);
	must(exs_sendfile(p[0].c, &stuck, 0, q, 0));
	asked = guard_wait(&g);
	must(exs_sendfile(p[1].c, &x, 0, q, 1));
	wait_delta("turns_waited", 1);
	must_be(counter("live_feeds"), 2);
	must(exs_cancel(q, p[1].c, 0, EXS_CAF_FILDES));
	must_be(event_next(q).exs_evt_errno, ECANCELED);
	wait_until(counter("live_feeds") == 1);
	guard_answer(&g, asked, FAN_ALLOW);
	must_be(event_next(q).exs_evt_errno, 0);
}

/* -- tries of ordinary sockets: a socket that is locked */

static void receive(void *arg)
{
	exs_qhandle_t q;
	struct pair p;

	(void)arg;
	drop_privileges();
	q = queue_new(2);
	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

struct reader { int fd; struct held_page page; };

static void *read_held(void *arg)
{
	struct reader *r = arg;

	must_be(recv(r->fd, r->page.mem, 1, 0), 1);
	return NULL;
}

struct stuck {
	exs_qhandle_t q;
	struct pair p[ALL];
	struct reader r[STUCK];
	pthread_t threads[STUCK];
};

/* The file is there only when the socket is locked by a read that does not end. */
static void stick(struct stuck *s)
{
	exs_xferfile_t x = { .xf_file = { .fd_len = 10 } };
	struct guard g;
	int i, asked;

	s->q = queue_new(ALL + STUCK);
	write_sysctl("max_user_workers", STUCK);
	x.xf_file.fd_file = file_new(1, 10);
	g = guard_open(&x.xf_file.fd_file);
	for (i = 0; i < ALL; i++)
		pair_open(&s->p[i]);
	for (i = 0; i < STUCK; i++) {
		must(exs_sendfile(s->p[i].s, &x, 0, s->q, i));
		must_be(send(s->p[i].c, "x", 1, 0), 1);
		s->r[i] = (struct reader){ s->p[i].s, held_page_open() };
		must_be(pthread_create(&s->threads[i], NULL, read_held, &s->r[i]), 0);
		held_page_wait(&s->r[i].page);
	}
	asked = guard_wait(&g);
	guard_answer(&g, asked, FAN_ALLOW);
	/* As long as one of the two is not stuck yet, receives end. */
	for (;;) {
		start_recv(s->p[STUCK].s, bytes, 1, 0, s->q, STUCK, NO_REGION);
		must_be(send(s->p[STUCK].c, "x", 1, 0), 1);
		wait_until(delta("turns_waited") || queue_attr(s->q, EXS_ATTR_EVENTS));
		if (delta("turns_waited"))
			break;
		event_is(s->q, EXS_EVT_RECV, STUCK, 0, 1);
	}
}

static void let_go(struct stuck *s, int i)
{
	held_page_let_go(&s->r[i].page);
	must_be(pthread_join(s->threads[i], NULL), 0);
}

static void all_ended(struct stuck *s)
{
	int i;

	for (i = 0; i < ALL; i++)
		must_be(event_next(s->q).exs_evt_errno, 0);
}

static void unstick(struct stuck *s)
{
	int i;

	no_event(s->q);
	for (i = 0; i < STUCK; i++)
		let_go(s, i);
	all_ended(s);
}

static void locked_sockets(void)
{
	struct stuck s;

	stick(&s);
	other(receive, NULL);
	unstick(&s);
}

/* One with much to do leaves its turn to the next now and then. */
static void much_to_do(void)
{
	enum { MANY = 200, LAST };
	exs_qhandle_t q = queue_new(LAST);
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), 0);
	struct pair much, one;
	struct stuck s;
	long waited;
	int i;

	pair_open(&much);
	pair_open(&one);
	stick(&s);
	waited = delta("turns_waited");
	for (i = 0; i < MANY; i++) {
		start_recv(much.s, bytes, 1, 0, q, i, m);
		must_be(send(much.c, "x", 1, 0), 1);
	}
	wait_delta("turns_waited", waited + 1);
	start_recv(one.s, bytes, 1, 0, q, MANY, m);
	must_be(send(one.c, "x", 1, 0), 1);
	wait_delta("turns_waited", waited + 2);
	/* There is one turn for all; the other is still stuck. */
	let_go(&s, 0);
	for (i = 0; event_next(q).exs_evt_ahandle != MANY; i++)
		;
	check(i < MANY, "it had to wait for all of another socket's");
	for (; i < MANY; i++)
		must_be(event_next(q).exs_evt_errno, 0);
	let_go(&s, 1);
	all_ended(&s);
}

static void closes(void *arg)
{
	exs_qhandle_t q;

	drop_privileges();
	q = queue_new(2);
	must(exs_close(*(int *)arg, 0, q, 7));
	event_is(q, EXS_EVT_CLOSE, 7, 0, 0);
}

/* A socket from another user, whose receive was cancelled and waits for a turn to release it. */
static void shared_close(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair shared;
	struct stuck s;

	pair_open(&shared);
	start_recv(shared.s, bytes, 1, 0, q, 1, NO_REGION);
	stick(&s);
	must_be(exs_cancel(q, -1, 0, 0), 0);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	other(closes, &shared.s);
	unstick(&s);
}

/* -- last references of ordinary sockets that would linger */

/* A socket that is held by a receive without data. Returns the peer. */
static int last_reference(exs_qhandle_t q, int seconds, size_t *sent)
{
	struct linger l = { .l_onoff = 1, .l_linger = seconds };
	struct pair p;

	pair_open(&p);
	must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	*sent = send_until_full(p.s, 1);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must(close(p.s));
	must_be(exs_cancel(q, -1, 0, 0), 0);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	return p.c;
}

/* They do not linger: no thread waits in close(2). Their sends arrive nevertheless. */
static void lingering(void)
{
	exs_qhandle_t q = queue_new(2);
	int i, fds[ALL];
	size_t sent[ALL];

	write_sysctl("max_user_workers", STUCK);
	for (i = 0; i < ALL; i++)
		fds[i] = last_reference(q, 3600, &sent[i]);
	wait_until(!counter("live_lanes"));
	for (i = 0; i < ALL; i++) {
		recv_all(fds[i], 1, 0, sent[i]);
		must_be(recv(fds[i], bytes, 1, 0), 0);
	}
}

/* A time of 0 is for a reset, and does not wait. */
static void lingering_for_no_time(void)
{
	exs_qhandle_t q = queue_new(2);
	size_t sent;
	int fd = last_reference(q, 0, &sent);

	wait_until(so_error(fd) == ECONNRESET);
}

/* The program still has the socket: its option stays. */
static void lingering_later(void)
{
	struct linger l = { .l_onoff = 1, .l_linger = 3600 };
	exs_qhandle_t q = queue_new(2);
	socklen_t len = sizeof(l);
	struct pair p;

	pair_open(&p);
	must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(exs_cancel(q, -1, 0, 0), 0);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	wait_until(!counter("live_lanes"));
	memset(&l, 0, sizeof(l));
	must(getsockopt(p.s, SOL_SOCKET, SO_LINGER, &l, &len));
	must_be(l.l_onoff, 1);
	must_be(l.l_linger, 3600);
}

/* -- polls: a file system that does not answer */

static void start_poll(exs_qhandle_t q, exs_pollfd_t fds[2], exs_ahandle_t h)
{
	fds[0].events = fds[1].events = EXS_POLLIN;
	must(exs_poll(fds, 2, 0, q, h));
}

static void polls(void *arg)
{
	exs_pollfd_t fds[2] = { { .fd = -1 } };
	struct pipe_pair pp = pipe_open();
	exs_qhandle_t q;

	(void)arg;
	drop_privileges();
	q = queue_new(2);
	fds[1].fd = pp.rd;
	start_poll(q, fds, 1);
	tell(pp.wr, 1);
	event_is(q, EXS_EVT_POLL, 1, 0, 0);
}

static void silent_files(void)
{
	struct pipe_pair pp = pipe_open();
	exs_qhandle_t q = queue_new(ALL);
	exs_pollfd_t fds[ALL][2];
	struct silent_file file = file_without_answers();
	int i;

	write_sysctl("max_user_workers", STUCK);
	for (i = 0; i < ALL; i++) {
		fds[i][0].fd = file.fd;
		fds[i][1].fd = pp.rd;
		start_poll(q, fds[i], i);
	}
	tell(pp.wr, 1);
	other(polls, NULL);
	/* A poll that waits for its turn can be cancelled; one that is asking files cannot. */
	must_be(exs_cancel(q, -1, 0, 0), 0);
	must_be(event_next(q).exs_evt_errno, ECANCELED);
	no_event(q);
	must(kill(file.server, SIGKILL));
	reap(file.server);
	for (i = 0; i < STUCK; i++)
		event_next(q);
}

/* A descriptor that was ready at submission is not ready when the poll has its turn: the poll waits for the others. */
static void drained_meanwhile(void)
{
	struct pipe_pair pp = pipe_open(), a = pipe_open(), b = pipe_open();
	struct silent_file file = file_without_answers();
	exs_pollfd_t fds[STUCK][2], last[2];
	exs_qhandle_t q = queue_new(ALL);
	int i;

	write_sysctl("max_user_workers", STUCK);
	for (i = 0; i < STUCK; i++) {
		fds[i][0].fd = file.fd;
		fds[i][1].fd = pp.rd;
		start_poll(q, fds[i], i);
	}
	tell(pp.wr, 1);
	wait_until(workers_in("exs_poll_work") == STUCK);
	tell(a.wr, 1);
	last[0].fd = a.rd;
	last[1].fd = b.rd;
	start_poll(q, last, STUCK);
	wait_delta("turns_waited", 1);
	check(read(a.rd, bytes, sizeof(bytes)) > 0, "nothing to drain");
	must(kill(file.server, SIGKILL));
	reap(file.server);
	for (i = 0; i < STUCK; i++)
		check(event_next(q).exs_evt_ahandle < STUCK, "nothing was ready");
	no_event(q);
	tell(b.wr, 1);
	event_is(q, EXS_EVT_POLL, STUCK, 0, 0);
}

/* -- decisions about attempts to connect: sockets that are locked by a setsockopt() that does not end */

static void connects(void *arg)
{
	union address to = name_of(*(int *)arg);
	int fd = socket_on(CLIENT);

	drop_privileges();
	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	wait_io(fd, POLLOUT);
	must_be(so_error(fd), 0);
}

/* One that waits for its turn is closed meanwhile: it waits no longer, and is gone. */
static void locked_connects(void)
{
	struct reject no = good_reject(R_DISABLED);
	int i, fd = listener(4), fds[ALL];
	struct raw peer, requests[ALL];
	struct locked_socket l[STUCK];
	union address at;
	long sockets;

	write_sysctl("max_user_workers", STUCK);
	raw_listen(&peer, &at);
	for (i = 0; i < ALL; i++) {
		fds[i] = socket_on(CLIENT);
		set_nonblock(fds[i], true);
		must_fail(connect(fds[i], &at.sa, address_len(&at)), EINPROGRESS);
		raw_take_request(&peer, &requests[i]);
	}
	for (i = 0; i < STUCK; i++)
		lock_socket(&l[i], fds[i]);
	for (i = 0; i < STUCK; i++)
		raw_reject(&requests[i], &no, sizeof(no));
	wait_until(workers_below("exs_attempt_work", "lock_sock") == STUCK);
	raw_reject(&requests[STUCK], &no, sizeof(no));
	other(connects, &fd);
	sockets = counter("live_sockets");
	must(close(fds[STUCK]));
	wait_until(counter("live_sockets") == sockets - 1);
	for (i = 0; i < STUCK; i++) {
		unlock_socket(&l[i]);
		wait_io(fds[i], POLLOUT);
		must_be(so_error(fds[i]), ECONNREFUSED);
	}
	for (i = 0; i < ALL; i++)
		raw_close(&requests[i]);
	raw_close(&peer);
}

/* -- hand-shakes, and sockets of accept operations */

/* Each gives its turn back. */
static void accepts(void)
{
	exs_qhandle_t q = queue_new(1);
	int i, c, fd = listener(4);
	union address at = name_of(fd);
	exs_event_t ev;

	write_sysctl("max_user_workers", 1);
	for (i = 0; i < 3; i++) {
		must(exs_accept(fd, NULL, 0, q, i));
		c = socket_on(CLIENT);
		set_nonblock(c, true);
		must_fail(connect(c, &at.sa, address_len(&at)), EINPROGRESS);
		ev = event_next(q);
		event_check(&ev, EXS_EVT_ACCEPT, i, 0, 0);
		close(event_newfd(&ev));
		close(c);
	}
}

static const struct e2e_case cases[] = {
	{ "feed_leaves", feed_leaves, .on = ON_STREAM | ON_TCP, .needs = NEEDS_ONE },
	{ "locked_sockets", locked_sockets, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "much_to_do", much_to_do, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "shared_close", shared_close, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "drained_meanwhile", drained_meanwhile, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "lingering", lingering, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "lingering_for_no_time", lingering_for_no_time, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "lingering_later", lingering_later, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "silent_files", silent_files, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "accepts", accepts, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "locked_connects", locked_connects, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ }
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
