// SPDX-License-Identifier: GPL-2.0
/* Asynchronous send and recv: events, order, the ways that bytes travel, and mixtures. */
#include "lib/async.h"
#include "lib/file.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static char small[65536];

static long length_of(const exs_event_t *ev)
{
	return ev->exs_evt_union.exs_evt_xfer.exs_evt_length;
}

/* Wait until earlier sends over @fd have arrived there, adverts too: the wire keeps order. */
static void settle_wire(int from, int to)
{
	char byte;

	must_be(send(from, "!", 1, 0), 1);
	must_be(recv(to, &byte, 1, 0), 1);
}

struct ends {
	struct pair p;
	exs_qhandle_t sq, rq;
	char *out, *in;
	exs_mhandle_t om, im;
	size_t room;
};

static void ends_open(struct ends *e, size_t room, bool registered)
{
	pair_open(&e->p);
	e->sq = queue_new(256);
	e->rq = queue_new(256);
	e->room = room;
	e->out = pages(room);
	e->in = pages(room);
	e->om = registered ? region_new(e->out, room, EXS_ACCESS_READ) : NO_REGION;
	e->im = registered ? region_new(e->in, room, EXS_ACCESS_WRITE) : NO_REGION;
}

/* After shutdown(SHUT_RD) a receive gets the available bytes, as recv(2) does, and waits for no more. */
static void received_late(void)
{
	const size_t sent = 1000;
	struct ends e;
	int i;

	ends_open(&e, 65536, true);
	send_all(e.p.c, 1, 0, sent);
	wait_io(e.p.s, POLLIN);
	must(shutdown(e.p.s, SHUT_RD));
	for (i = 0; i < 3; i++)
		start_recv(e.p.s, e.in + 16384 * i, 16384, MSG_WAITALL, e.rq, i, e.im);
	event_is(e.rq, EXS_EVT_RECV, 0, 0, sent);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 0);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 0);
	data_check(1, 0, e.in, sent);
}

static const size_t sizes[] = {
	1, 63, 64, 65, 1000, 1008, 1009, 4095, 4096, 4097, 65536, 262144, 262145, 1 * MIB, 3 * MIB + 5,
};

static void all_sizes(bool registered, bool receive_first)
{
	struct ends e;
	size_t i, n;

	ends_open(&e, 4 * MIB, registered);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		n = sizes[i];
		data_fill(i, 0, e.out, n);
		if (receive_first)
			start_recv(e.p.s, e.in, n, MSG_WAITALL, e.rq, i, e.im);
		start_send(e.p.c, e.out, n, e.sq, i, e.om);
		if (!receive_first)
			start_recv(e.p.s, e.in, n, MSG_WAITALL, e.rq, i, e.im);
		event_is(e.rq, EXS_EVT_RECV, i, 0, n);
		event_is(e.sq, EXS_EVT_SEND, i, 0, n);
		data_check(i, 0, e.in, n);
	}
	no_event(e.sq);
	no_event(e.rq);
}

static void registered_receive_first(void)
{
	all_sizes(true, true);
}

static void registered_send_first(void)
{
	all_sizes(true, false);
}

static void unregistered_receive_first(void)
{
	all_sizes(false, true);
}

static void unregistered_send_first(void)
{
	all_sizes(false, false);
}

/* -- which way the bytes went */

static void direct(void)
{
	struct ends e;
	long dead;

	ends_open(&e, MIB, true);
	data_fill(1, 0, e.out, MIB);
	start_recv(e.p.s, e.in, MIB, MSG_WAITALL, e.rq, 1, e.im);
	settle_wire(e.p.s, e.p.c);
	start_send(e.p.c, e.out, MIB, e.sq, 2, e.om);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, MIB);
	must_be(delta("direct_tx_bytes"), MIB);
	check(delta("adverts_tx") >= 1, "no advert was counted");
	/* The keys are dead before the program gets the event. */
	dead = delta("invalidations") + delta("remote_invalidations");
	check(dead >= delta("adverts_tx"), "%ld invalidations of %ld adverts", dead, delta("adverts_tx"));
	event_is(e.sq, EXS_EVT_SEND, 2, 0, MIB);
	data_check(1, 0, e.in, MIB);
}

/* No receive is there yet: the data go into the ring, and the receive that comes later copies them. */
static void indirect(void)
{
	struct ends e;

	ends_open(&e, 100000, true);
	data_fill(1, 0, e.out, 100000);
	start_send(e.p.c, e.out, 100000, e.sq, 2, e.om);
	event_is(e.sq, EXS_EVT_SEND, 2, 0, 100000);
	start_recv(e.p.s, e.in, 100000, MSG_WAITALL, e.rq, 1, e.im);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 100000);
	must_be(delta("indirect_tx_bytes"), 100000);
	must_be(delta("direct_tx_bytes"), 0);
	data_check(1, 0, e.in, 100000);
}

/* Plain calls never show user memory to the peer. */
static void plain_is_indirect(void)
{
	struct pair p;

	pair_open(&p);
	send_all(p.c, 1, 0, 60000);
	recv_all(p.s, 1, 0, 60000);
	must_be(delta("adverts_tx"), 0);
	must_be(delta("direct_tx_bytes"), 0);
	must_be(delta("indirect_tx_bytes"), 60000);
}

static int queued(int fd)
{
	int n;

	must(ioctl(fd, SIOCINQ, &n));
	return n;
}

/* A stream has no ring before a send is too long to go with its header; eager bytes are read first. */
static void stream_begins_eagerly(void)
{
	struct pair p;
	char end;
	int i;

	pair_open(&p);
	for (i = 0; i < 50; i++) {
		send_all(p.c, 1, i * 64, 64);
		recv_all(p.s, 1, i * 64, 64);
		send_all(p.s, 2, i * 64, 64);
		recv_all(p.c, 2, i * 64, 64);
	}
	must_be(delta("eager_tx_bytes"), 100 * 64);
	must_be(delta("live_rings") + delta("indirect_tx_bytes"), 0);
	send_all(p.c, 1, 50 * 64, 1000);
	send_all(p.c, 1, 50 * 64 + 1000, 3000);
	wait_delta("live_rings", 1);
	wait_delta("indirect_tx_bytes", 3000);
	wait_until(queued(p.s) == 4000);
	must(shutdown(p.c, SHUT_WR));
	recv_all(p.s, 1, 50 * 64, 4000);
	must_be(recv(p.s, &end, 1, 0), 0);
	must_be(delta("eager_tx_bytes"), 100 * 64 + 1000);
}

/* Small messages travel with their header and cost no key. */
static void eager(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	data_fill(1, 0, e.out, 500);
	start_send(e.p.c, e.out, 500, e.sq, 2, e.om);
	start_recv(e.p.s, e.in, 500, 0, e.rq, 1, e.im);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 500);
	must_be(delta("eager_tx_bytes"), 500);
	must_be(delta("direct_tx_bytes") + delta("indirect_tx_bytes"), 0);
	data_check(1, 0, e.in, 500);
}

/* From direct to indirect and back, depending on the programs' timing. */
static void switching(void)
{
	struct ends e;
	uint64_t pos = 0;
	int i;

	ends_open(&e, 65536, true);
	for (i = 0; i < 20; i++) {
		data_fill(1, pos, e.out, 65536);
		if (i % 2)
			start_recv(e.p.s, e.in, 65536, MSG_WAITALL, e.rq, i, e.im);
		settle_wire(e.p.s, e.p.c);
		start_send(e.p.c, e.out, 65536, e.sq, i, e.om);
		event_is(e.sq, EXS_EVT_SEND, i, 0, 65536);
		if (!(i % 2))
			start_recv(e.p.s, e.in, 65536, MSG_WAITALL, e.rq, i, e.im);
		event_is(e.rq, EXS_EVT_RECV, i, 0, 65536);
		data_check(1, pos, e.in, 65536);
		pos += 65536;
	}
	check(delta("direct_tx_bytes") && delta("indirect_tx_bytes"), "%ld direct, %ld indirect bytes",
	      delta("direct_tx_bytes"), delta("indirect_tx_bytes"));
	must_be(delta("direct_tx_bytes") + delta("indirect_tx_bytes") + delta("eager_tx_bytes"), 20 * 65536 + 20);
	check(delta("phase_switches") >= 2, "phases changed %ld times", delta("phase_switches"));
}

static void small_sends_copied(void)
{
	struct ends e;

	ends_open(&e, 4096, false);
	start_send(e.p.c, e.out, 100, e.sq, 1, NO_REGION);
	event_is(e.sq, EXS_EVT_SEND, 1, 0, 100);
	must_be(delta("copied_sends"), 1);
	must_be(delta("oneshot_regions"), 0);
}

/* More in sum than a queue may have copied at a time. */
static void copies_come_back(void)
{
	enum { SENDS = 600, LEN = 16000 };
	struct ends e;
	int i;

	ends_open(&e, LEN, false);
	for (i = 0; i < SENDS; i++) {
		data_fill(1, (uint64_t)i * LEN, e.out, LEN);
		start_send(e.p.c, e.out, LEN, e.sq, i, NO_REGION);
		recv_all(e.p.s, 1, (uint64_t)i * LEN, LEN);
		event_is(e.sq, EXS_EVT_SEND, i, 0, LEN);
	}
	must_be(delta("copied_sends"), SENDS);
	must_be(delta("oneshot_regions"), 0);
}

static void large_sends_pinned(void)
{
	struct ends e;

	ends_open(&e, MIB, false);
	start_recv(e.p.s, e.in, MIB, MSG_WAITALL, e.rq, 1, NO_REGION);
	start_send(e.p.c, e.out, MIB, e.sq, 2, NO_REGION);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, MIB);
	event_is(e.sq, EXS_EVT_SEND, 2, 0, MIB);
	must_be(delta("oneshot_regions"), 2);
	wait_until(!counter("live_pinned_pages"));
}

/* -- the end of a receive */

static void partial(void)
{
	struct ends e;

	ends_open(&e, MIB, true);
	start_recv(e.p.s, e.in, MIB, 0, e.rq, 1, e.im);
	send_all(e.p.c, 1, 0, 5000);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 5000);
	data_check(1, 0, e.in, 5000);
}

static void waitall(void)
{
	struct ends e;
	int i;

	ends_open(&e, MIB, true);
	start_recv(e.p.s, e.in, 100000, MSG_WAITALL, e.rq, 1, e.im);
	start_recv(e.p.s, e.in + 100000, 100000, MSG_WAITALL, e.rq, 2, e.im);
	for (i = 0; i < 20; i++) {
		no_event(i < 10 ? e.rq : e.sq);
		send_all(e.p.c, 1, i * 10000, 10000);
	}
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 100000);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 100000);
	data_check(1, 0, e.in, 200000);
}

static void at_eof(void)
{
	struct ends e;

	ends_open(&e, MIB, true);
	start_recv(e.p.s, e.in, 100000, MSG_WAITALL, e.rq, 1, e.im);
	start_recv(e.p.s, e.in + 100000, 100000, 0, e.rq, 2, e.im);
	send_all(e.p.c, 1, 0, 30000);
	must(shutdown(e.p.c, SHUT_WR));
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 30000);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 0);
	start_recv(e.p.s, e.in, 1, 0, e.rq, 3, e.im);
	event_is(e.rq, EXS_EVT_RECV, 3, 0, 0);
	data_check(1, 0, e.in, 30000);
	/* The other way is open. */
	start_recv(e.p.c, e.in, 100, 0, e.rq, 4, e.im);
	start_send(e.p.s, e.out, 100, e.sq, 5, e.om);
	event_is(e.rq, EXS_EVT_RECV, 4, 0, 100);
	event_is(e.sq, EXS_EVT_SEND, 5, 0, 100);
}

/* A message without bytes and the end of all messages can be told apart. */
static void end_and_empty(void)
{
	exs_event_t ev;
	struct ends e;

	ends_open(&e, 4096, true);
	start_recv(e.p.s, e.in, 100, 0, e.rq, 1, e.im);
	start_recv(e.p.s, e.in, 100, 0, e.rq, 2, e.im);
	must_be(send(e.p.c, "", 0, 0), 0);
	must(shutdown(e.p.c, SHUT_WR));
	ev = event_next(e.rq);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 0);
	must_be(ev.exs_evt_flags, MSG_EOR);
	ev = event_next(e.rq);
	event_check(&ev, EXS_EVT_RECV, 2, 0, 0);
	must_be(ev.exs_evt_flags, 0);
}

/* A call that cannot be says so at once or by one event, never both. */
static int errno_of(int ret, exs_qhandle_t q, exs_ahandle_t handle)
{
	exs_event_t ev;

	if (ret) {
		no_event(q);
		return errno;
	}
	ev = event_next(q);
	must_be(ev.exs_evt_ahandle, handle);
	no_event(q);
	return ev.exs_evt_errno;
}

static void after_shutdown(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	must(shutdown(e.p.c, SHUT_WR));
	must_be(errno_of(exs_send(e.p.c, e.out, 10, MSG_NOSIGNAL, e.sq, 1, e.om), e.sq, 1), EPIPE);
	must_be(errno_of(exs_send(e.p.c, e.out, 10, MSG_NOSIGNAL, e.sq, 2, NO_REGION), e.sq, 2), EPIPE);
}

static void unconnected(void)
{
	struct ends e;
	int fd = new_socket(), err;

	ends_open(&e, 4096, true);
	must_be(errno_of(exs_recv(fd, e.in, 10, 0, e.rq, 1, e.im), e.rq, 1), ENOTCONN);
	err = errno_of(exs_send(fd, e.out, 10, MSG_NOSIGNAL, e.sq, 2, e.om), e.sq, 2);
	check(err == ENOTCONN || err == EPIPE, "send on an unconnected socket: %s", errno_name(err));
	fd = listener(1);
	must_be(errno_of(exs_recv(fd, e.in, 10, 0, e.rq, 3, e.im), e.rq, 3), ENOTCONN);
}

static void socket_closed(void)
{
	struct ends e;
	int i;

	ends_open(&e, MIB, true);
	for (i = 0; i < 5; i++)
		start_recv(e.p.s, e.in + i * 1000, 1000, 0, e.rq, i, i % 2 ? e.im : NO_REGION);
	settle_wire(e.p.s, e.p.c);
	close(e.p.s);
	for (i = 0; i < 5; i++)
		event_is(e.rq, EXS_EVT_RECV, i, ECANCELED, 0);
	must_be(recv(e.p.c, small, 1, 0), 0);
}

/* close() with sends under way: they arrive, and have events of success. */
static void closed_with_sends(void)
{
	struct ends e;
	int i;

	ends_open(&e, 16 * 20000, true);
	data_fill(6, 0, e.out, e.room);
	for (i = 0; i < 16; i++)
		start_send(e.p.c, e.out + i * 20000, 20000, e.sq, i, e.om);
	close(e.p.c);
	recv_all(e.p.s, 6, 0, 16 * 20000);
	must_be(recv(e.p.s, small, 1, 0), 0);
	for (i = 0; i < 16; i++)
		event_is(e.sq, EXS_EVT_SEND, i, 0, 20000);
}

static void peer_closed(void)
{
	struct ends e;

	ends_open(&e, MIB, true);
	start_recv(e.p.s, e.in, 1000, 0, e.rq, 1, e.im);
	start_recv(e.p.s, e.in, 1000, MSG_WAITALL, e.rq, 2, e.im);
	close(e.p.c);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 0);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 0);
}

/* A receiver that has everything closes: nothing is lost, and so no send has failed. */
enum { TAKEN = 8, TAKEN_SIZE = 20000 };

static void take(int fd, int n)
{
	recv_all(fd, 8, 0, n * TAKEN_SIZE);
	close(fd);
	control_wait("done");
}

static void give(int fd, exs_qhandle_t q, int n)
{
	char *buf = pages(n * TAKEN_SIZE);
	exs_mhandle_t m = region_new(buf, n * TAKEN_SIZE, EXS_ACCESS_READ);
	int i;

	data_fill(8, 0, buf, n * TAKEN_SIZE);
	for (i = 0; i < n; i++)
		start_send(fd, buf + i * TAKEN_SIZE, TAKEN_SIZE, q, i, m);
}

static void given(exs_qhandle_t q, int n)
{
	int i;

	for (i = 0; i < n; i++)
		event_is(q, EXS_EVT_SEND, i, 0, TAKEN_SIZE);
	control_send("done");
}

static void taker_leaves(void)
{
	take(meet(), TAKEN);
}

static void taker_leaves_one(void)
{
	take(meet(), 1);
}

/* Its FIN cannot confirm later data, so acknowledgments need time: late_acknowledgments in two.py. */
static void taker_shuts(void)
{
	int fd = meet();

	must(shutdown(fd, SHUT_WR));
	take(fd, TAKEN);
}

static void taker_shuts_one(void)
{
	int fd = meet();

	must(shutdown(fd, SHUT_WR));
	take(fd, 1);
}

static void give_until_eof(int n, bool shut)
{
	exs_qhandle_t q = queue_new(n);
	int fd = meet();

	give(fd, q, n);
	must_be(recv(fd, small, 1, 0), 0);
	/* The connection may have ended. */
	if (shut)
		shutdown(fd, SHUT_WR);
	given(q, n);
}

static void all_taken(void)
{
	give_until_eof(TAKEN, false);
}

static void one_taken(void)
{
	give_until_eof(1, false);
}

/* Its own FIN is not received any more. */
static void all_taken_and_shut(void)
{
	give_until_eof(TAKEN, true);
}

/* Neither acknowledgment nor credit comes: that has an end. See lost_acknowledgments in two.py. */
static void one_unheard(void)
{
	exs_qhandle_t q = queue_new(1);

	give(meet(), q, 1);
	event_is(q, EXS_EVT_SEND, 0, ECONNRESET, 0);
	must_be(delta("acks_awaited"), 1);
	control_send("done");
}

static void peer_reset(void)
{
	struct linger hard = { .l_onoff = 1 };
	struct ends e;

	ends_open(&e, MIB, true);
	start_recv(e.p.s, e.in, 1000, 0, e.rq, 1, e.im);
	start_recv(e.p.s, e.in, 1000, 0, e.rq, 2, NO_REGION);
	must(setsockopt(e.p.c, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(e.p.c);
	event_is(e.rq, EXS_EVT_RECV, 1, ECONNRESET, 0);
	event_is(e.rq, EXS_EVT_RECV, 2, ECONNRESET, 0);
}

static void peer_reset_sends(void)
{
	struct linger hard = { .l_onoff = 1 };
	exs_event_t ev;
	struct ends e;
	int i, bad = 0, seen = 0;

	ends_open(&e, 4 * MIB, true);
	for (i = 0; i < 8; i++)
		start_send(e.p.c, e.out, 4 * MIB, e.sq, i, e.om);
	must(setsockopt(e.p.s, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(e.p.s);
	for (i = 0; i < 8; i++) {
		ev = event_next(e.sq);
		seen |= 1 << ev.exs_evt_ahandle;
		bad += ev.exs_evt_errno != 0;
		check(!ev.exs_evt_errno || ev.exs_evt_errno == ECONNRESET || ev.exs_evt_errno == EPIPE,
		      "send %d: %s", i, errno_name(ev.exs_evt_errno));
	}
	must_be(seen, 0xff);
	check(bad >= 7, "only %d of 8 sends failed although nobody read them", bad);
}

static void bad_flags(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	must_fail(exs_send(e.p.c, e.out, 10, MSG_OOB, e.sq, 1, e.om), EINVAL);
	must_fail(exs_send(e.p.c, e.out, 10, MSG_PEEK, e.sq, 1, e.om), EINVAL);
	must_fail(exs_recv(e.p.c, e.in, 10, MSG_PEEK, e.rq, 1, e.im), EINVAL);
	must_fail(exs_recv(e.p.c, e.in, 10, MSG_ERRQUEUE, e.rq, 1, e.im), EINVAL);
	no_event(e.sq);
	no_event(e.rq);
}

/* MSG_DONTWAIT has no effect: the call does not wait anyhow. */
static void dontwait(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	must(exs_recv(e.p.s, e.in, 10, MSG_DONTWAIT, e.rq, 1, e.im));
	must(exs_send(e.p.c, e.out, 10, MSG_DONTWAIT, e.sq, 2, e.om));
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 10);
	set_nonblock(e.p.s, true);
	must(exs_recv(e.p.s, e.in, 10, 0, e.rq, 3, e.im));
	must(exs_send(e.p.c, e.out, 10, 0, e.sq, 4, e.om));
	event_is(e.rq, EXS_EVT_RECV, 3, 0, 10);
}

/* EXS_QHANDLE_INVALID: the plain call. */
static void without_queue(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	must_be(exs_send(e.p.c, "abc", 3, 0, EXS_QHANDLE_INVALID, 1, NO_REGION), 3);
	must_be(exs_recv(e.p.s, small, sizeof(small), 0, EXS_QHANDLE_INVALID, 1, NO_REGION), 3);
	must_fail(exs_recv(e.p.s, small, 1, MSG_DONTWAIT, EXS_QHANDLE_INVALID, 1, NO_REGION), EAGAIN);
}

/* -- messages */

static void truncated(size_t len)
{
	exs_event_t ev;
	struct ends e;

	ends_open(&e, MIB, true);
	data_fill(1, 0, e.out, len);
	start_recv(e.p.s, e.in, 100, 0, e.rq, 1, e.im);
	start_send(e.p.c, e.out, len, e.sq, 2, e.om);
	ev = event_next(e.rq);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 100);
	check(ev.exs_evt_flags & MSG_TRUNC, "no MSG_TRUNC in the event (%#x)", ev.exs_evt_flags);
	event_is(e.sq, EXS_EVT_SEND, 2, 0, len);
	data_check(1, 0, e.in, 100);
	must_be(e.in[100], 0);
	start_recv(e.p.s, e.in, 100, 0, e.rq, 3, e.im);
	start_send(e.p.c, e.out, 50, e.sq, 4, e.om);
	ev = event_next(e.rq);
	event_check(&ev, EXS_EVT_RECV, 3, 0, 50);
	check(!(ev.exs_evt_flags & MSG_TRUNC), "MSG_TRUNC although it fits");
}

static void truncated_small(void)
{
	truncated(900);
}

static void truncated_large(void)
{
	truncated(300000);
}

static void zero_length(void)
{
	struct ends e;

	ends_open(&e, 4096, true);
	start_send(e.p.c, e.out, 0, e.sq, 1, e.om);
	event_is(e.sq, EXS_EVT_SEND, 1, 0, 0);
	start_recv(e.p.s, e.in, 100, 0, e.rq, 2, e.im);
	if (e2e.seq)
		event_is(e.rq, EXS_EVT_RECV, 2, 0, 0);
	start_send(e.p.c, e.out, 7, e.sq, 3, e.om);
	if (e2e.seq)
		start_recv(e.p.s, e.in, 100, 0, e.rq, 2, e.im);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 7);
}

/* Operations for 0 bytes have nothing to wait for, except for those before them: events are in order. */
static void nothing_in_turn(void)
{
	exs_xferfile_t x = { .xf_file = { .fd_offset = 10, .fd_len = EXS_TO_EOF } };
	exs_event_t ev;
	struct ends e;
	int i;

	ends_open(&e, 8 * MIB, true);
	x.xf_file.fd_file = file_new(1, 10);
	for (i = 0; i < 3; i++)
		start_recv(e.p.s, e.in, i % 2 ? 0 : 100, MSG_WAITALL, e.rq, i, e.im);
	no_event(e.rq);
	start_send(e.p.c, e.out, 200, e.sq, 0, e.om);
	for (i = 0; i < 3; i++)
		event_is(e.rq, EXS_EVT_RECV, i, 0, i % 2 ? 0 : 100);
	event_is(e.sq, EXS_EVT_SEND, 0, 0, 200);
	/* More than the ring takes. */
	start_send(e.p.c, e.out, e.room, e.sq, 1, e.om);
	start_send(e.p.c, e.out, 0, e.sq, 2, e.om);
	must(exs_sendfile(e.p.c, &x, 0, e.sq, 3));
	start_send(e.p.c, e.out, 10, e.sq, 4, e.om);
	start_send(e.p.c, e.out, 0, e.sq, 5, e.om);
	no_event(e.sq);
	start_recv(e.p.s, e.in, e.room, MSG_WAITALL, e.rq, 6, e.im);
	event_is(e.rq, EXS_EVT_RECV, 6, 0, e.room);
	event_is(e.sq, EXS_EVT_SEND, 1, 0, e.room);
	event_is(e.sq, EXS_EVT_SEND, 2, 0, 0);
	ev = event_next(e.sq);
	must_be(ev.exs_evt_ahandle, 3);
	must_be(ev.exs_evt_errno, 0);
	event_is(e.sq, EXS_EVT_SEND, 4, 0, 10);
	event_is(e.sq, EXS_EVT_SEND, 5, 0, 0);
}

/* They can be cancelled while they wait for those before them. */
static void nothing_cancelled(void)
{
	struct ends e;

	ends_open(&e, 8 * MIB, true);
	start_send(e.p.c, e.out, e.room, e.sq, 1, e.om);
	start_send(e.p.c, e.out, 0, e.sq, 2, e.om);
	start_recv(e.p.c, e.in, 100, 0, e.rq, 3, e.im);
	start_recv(e.p.c, e.in, 0, 0, e.rq, 4, e.im);
	no_event(e.sq);
	must_be(exs_cancel(e.sq, 0, 2, EXS_CAF_AHANDLE), 0);
	must_be(event_next(e.sq).exs_evt_ahandle, 2);
	must_be(exs_cancel(e.rq, 0, 4, EXS_CAF_AHANDLE), 0);
	event_is(e.rq, EXS_EVT_RECV, 4, ECANCELED, 0);
	start_recv(e.p.s, e.in, e.room, MSG_WAITALL, e.rq, 5, e.im);
	event_is(e.rq, EXS_EVT_RECV, 5, 0, e.room);
	event_is(e.sq, EXS_EVT_SEND, 1, 0, e.room);
	must_be(send(e.p.s, "x", 1, 0), 1);
	event_is(e.rq, EXS_EVT_RECV, 3, 0, 1);
}

/* From now on data that arrive at this socket are processed only when this thread waits. */
static void process_when_idle(int fd)
{
	run_first(0, 1);
	set_int(fd, SOL_EXS, EXS_SO_CPU, 0);
}

/*
 * Receives that have to be taken back from the peer, and one behind them that would have nothing to wait for. The peer
 * does not answer until that one is there, too.
 */
static void shut_in_turn(void)
{
	enum { RECVS = 8 };
	struct ends e;
	int i;

	ends_open(&e, MIB, true);
	process_when_idle(e.p.c);
	for (i = 0; i < RECVS; i++)
		start_recv(e.p.s, e.in, MIB, 0, e.rq, i, e.im);
	wait_until(delta("adverts_tx"));
	must(shutdown(e.p.s, SHUT_RD));
	start_recv(e.p.s, e.in, MIB, 0, e.rq, i, e.im);
	for (i = 0; i <= RECVS; i++)
		event_is(e.rq, EXS_EVT_RECV, i, 0, 0);
	/* Nothing is under way any more. */
	start_recv(e.p.s, e.in, MIB, 0, e.rq, i, e.im);
	event_is(e.rq, EXS_EVT_RECV, i, 0, 0);
}

static void too_large(void)
{
	struct ends e;

	ends_open(&e, 9 * MIB, true);
	must_be(errno_of(exs_send(e.p.c, e.out, 8 * MIB + 1, 0, e.sq, 1, e.om), e.sq, 1), EMSGSIZE);
	start_send(e.p.c, e.out, 8 * MIB, e.sq, 2, e.om);
	start_recv(e.p.s, e.in, 9 * MIB, 0, e.rq, 3, e.im);
	event_is(e.rq, EXS_EVT_RECV, 3, 0, 8 * MIB);
	event_is(e.sq, EXS_EVT_SEND, 2, 0, 8 * MIB);
}

/* -- order and mixtures */

static void many_outstanding(void)
{
	struct ends e;
	int i;

	ends_open(&e, 200 * 5000, true);
	data_fill(3, 0, e.out, e.room);
	for (i = 0; i < 200; i++)
		start_recv(e.p.s, e.in + i * 5000, 5000, MSG_WAITALL, e.rq, i, e.im);
	for (i = 0; i < 200; i++)
		start_send(e.p.c, e.out + i * 5000, 5000, e.sq, i, e.om);
	for (i = 0; i < 200; i++) {
		event_is(e.rq, EXS_EVT_RECV, i, 0, 5000);
		event_is(e.sq, EXS_EVT_SEND, i, 0, 5000);
	}
	data_check(3, 0, e.in, e.room);
}

static size_t short_or_long(int i)
{
	return i % 3 ? 1 + i % 190 : 5000;
}

/* Short sends end sooner than long ones, but not before those that they follow. */
static void short_behind_long(void)
{
	enum { SENDS = 200 };
	size_t pos = 0, n;
	struct ends e;
	int i;

	ends_open(&e, SENDS * 5000, true);
	data_fill(6, 0, e.out, e.room);
	for (i = 0; i < SENDS; pos += n, i++) {
		n = short_or_long(i);
		start_send(e.p.c, e.out + pos, n, e.sq, i, e.om);
		must_be(recv(e.p.s, e.in + pos, n, MSG_WAITALL), n);
	}
	data_check(6, 0, e.in, pos);
	for (i = 0; i < SENDS; i++)
		event_is(e.sq, EXS_EVT_SEND, i, 0, short_or_long(i));
	for (i = 0; i < 20; i++)
		start_send(e.p.c, e.out, short_or_long(i), e.sq, i, e.om);
	for (i = 0; i < 20; i++)
		must_be(recv(e.p.s, e.in, short_or_long(i), MSG_WAITALL), short_or_long(i));
	for (i = 0; i < 20; i++)
		event_is(e.sq, EXS_EVT_SEND, i, 0, short_or_long(i));
}

/* After its event the program may use the memory, although the bytes were not read. */
static void memory_reused(void)
{
	struct ends e;
	int i;

	ends_open(&e, 64, true);
	for (i = 0; i < 25; i++) {
		memset(e.out, i, 64);
		start_send(e.p.c, e.out, 64, e.sq, i, e.om);
		event_is(e.sq, EXS_EVT_SEND, i, 0, 64);
	}
	memset(e.out, 255, 64);
	for (i = 0; i < 25; i++) {
		must_be(recv(e.p.s, e.in, 64, MSG_WAITALL), 64);
		check(e.in[0] == i && e.in[63] == i, "%d in place of %d", e.in[0], i);
	}
}

/* One buffer, several sends at once, to several peers. */
static void one_buffer_many_sends(void)
{
	struct ends e, other;
	int i;

	ends_open(&e, 30000, true);
	ends_open(&other, 30000, true);
	data_fill(1, 0, e.out, 30000);
	for (i = 0; i < 5; i++) {
		start_send(e.p.c, e.out, 30000, e.sq, i, e.om);
		start_send(other.p.c, e.out, 30000, other.sq, i, e.om);
	}
	for (i = 0; i < 5; i++) {
		recv_all(e.p.s, 1, 0, 30000);
		recv_all(other.p.s, 1, 0, 30000);
		event_is(e.sq, EXS_EVT_SEND, i, 0, 30000);
		event_is(other.sq, EXS_EVT_SEND, i, 0, 30000);
	}
}

static void mixed_sends(void)
{
	struct ends e;
	uint64_t pos = 0;
	size_t n;
	int i;

	ends_open(&e, 40 * 3000, true);
	data_fill(2, 0, e.out, e.room);
	for (i = 0; i < 40; i++, pos += n) {
		n = 3000;
		if (i % 3)
			start_send(e.p.c, e.out + pos, n, e.sq, i, i % 2 ? e.om : NO_REGION);
		else
			must_be(send(e.p.c, e.out + pos, n, 0), n);
	}
	for (i = 0; i < 40; i++)
		recv_all(e.p.s, 2, i * 3000, 3000);
	for (i = 0; i < 40; i++)
		if (i % 3)
			event_is(e.sq, EXS_EVT_SEND, i, 0, 3000);
}

struct reading { int fd; long got; volatile pid_t tid; };

static void *plain_reader(void *arg)
{
	struct reading *r = arg;

	r->tid = gettid();
	r->got = recv(r->fd, small, 1000, 0);
	return NULL;
}

/* Bytes have the order of submission, whichever thread or call submits. */
static void mixed_receives(void)
{
	struct reading r = {};
	pthread_t thread;
	struct ends e;

	ends_open(&e, 10000, true);
	r.fd = e.p.s;
	start_recv(e.p.s, e.in, 1000, MSG_WAITALL, e.rq, 1, e.im);
	must_be(pthread_create(&thread, NULL, plain_reader, &r), 0);
	wait_until(r.tid);
	wait_blocked(r.tid);
	start_recv(e.p.s, e.in + 2000, 1000, MSG_WAITALL, e.rq, 2, e.im);
	send_all(e.p.c, 5, 0, 1000);
	event_is(e.rq, EXS_EVT_RECV, 1, 0, 1000);
	data_check(5, 0, e.in, 1000);
	send_all(e.p.c, 5, 1000, 1000);
	pthread_join(thread, NULL);
	must_be(r.got, 1000);
	data_check(5, 1000, small, 1000);
	send_all(e.p.c, 5, 2000, 1000);
	event_is(e.rq, EXS_EVT_RECV, 2, 0, 1000);
	data_check(5, 2000, e.in + 2000, 1000);
}

/* -- at random: sizes, memory, flags, plain calls in between; both directions at once */

#define SLOTS	12
#define PIECE	200000

struct side_state {
	int fd;
	uint64_t seed, sent_seed, recv_seed;
	uint64_t to_send, sent, received;
	char *buf;			/* 2 * SLOTS pieces */
	exs_mhandle_t m;
	exs_qhandle_t sq, rq;
	int sends, recvs;		/* started */
	int sends_done, recvs_done;
	size_t send_len[SLOTS], recv_len[SLOTS];
	bool all[SLOTS], end;
};

static size_t random_size(struct side_state *s, size_t max)
{
	uint64_t r = next_random(&s->seed);

	switch (r % 4) {
	case 0: return 1 + r / 4 % 100;
	case 1: return 1 + r / 4 % 5000;
	default: return 1 + r / 4 % max;
	}
}

static void random_send(struct side_state *s)
{
	int slot = s->sends % SLOTS;
	char *at = s->buf + slot * PIECE;
	size_t n = random_size(s, PIECE);

	if (s->sent == s->to_send || s->sends - s->sends_done == SLOTS)
		return;
	if (n > s->to_send - s->sent)
		n = s->to_send - s->sent;
	data_fill(s->sent_seed, s->sent, at, n);
	s->send_len[slot] = n;
	start_send(s->fd, at, n, s->sq, s->sends++, next_random(&s->seed) % 2 ? s->m : NO_REGION);
	s->sent += n;
	if (s->sent == s->to_send)
		must(shutdown(s->fd, SHUT_WR));
}

/* Messages must fit; a stream's receive may be of any size. */
static void random_recv(struct side_state *s)
{
	int slot = s->recvs % SLOTS;
	char *at = s->buf + (SLOTS + slot) * PIECE;

	if (s->end || s->recvs - s->recvs_done == SLOTS)
		return;
	s->recv_len[slot] = e2e.seq ? PIECE : random_size(s, PIECE);
	s->all[slot] = !e2e.seq && next_random(&s->seed) % 3 == 0;
	start_recv(s->fd, at, s->recv_len[slot], s->all[slot] ? MSG_WAITALL : 0, s->rq, s->recvs++,
		   next_random(&s->seed) % 3 ? s->m : NO_REGION);
}

static void take_send(struct side_state *s)
{
	exs_event_t ev;

	ev = event_next(s->sq);
	event_check(&ev, EXS_EVT_SEND, s->sends_done, 0, s->send_len[s->sends_done % SLOTS]);
	s->sends_done++;
}

static void take_recv(struct side_state *s)
{
	exs_event_t ev = event_next(s->rq);
	int slot = s->recvs_done % SLOTS;

	must_be(ev.exs_evt_ahandle, s->recvs_done);
	must_be(ev.exs_evt_errno, 0);
	check(!s->end || !length_of(&ev), "bytes after the end");
	data_check(s->recv_seed, s->received, s->buf + (SLOTS + slot) * PIECE, length_of(&ev));
	s->received += length_of(&ev);
	if (!length_of(&ev) || (s->all[slot] && (size_t)length_of(&ev) < s->recv_len[slot]))
		s->end = true;
	s->recvs_done++;
}

static bool over(const struct side_state *s)
{
	return s->end && s->sent == s->to_send && s->sends == s->sends_done && s->recvs == s->recvs_done;
}

/* Only then may it wait: the other side might wait for an operation that could start here. */
static bool all_started(const struct side_state *s)
{
	return (s->sent == s->to_send || s->sends - s->sends_done == SLOTS) &&
	       (s->end || s->recvs - s->recvs_done == SLOTS) && !over(s);
}

/* Starts some, waits for any of them, until both directions have ended. */
static void random_side(struct side_state *s)
{
	struct pollfd fds[2] = { { .fd = s->sq, .events = POLLIN }, { .fd = s->rq, .events = POLLIN } };
	int burst;

	while (!over(s)) {
		for (burst = next_random(&s->seed) % 6; burst; burst--)
			random_send(s);
		for (burst = next_random(&s->seed) % 6; burst; burst--)
			random_recv(s);
		must(poll(fds, 2, all_started(s) ? limit_ms() : 0));
		if (fds[0].revents & POLLIN)
			take_send(s);
		if (fds[1].revents & POLLIN)
			take_recv(s);
	}
}

static void side_init(struct side_state *s, int fd, int which, uint64_t total)
{
	*s = (struct side_state){ .fd = fd, .to_send = total };
	s->seed = e2e.seed * 1000 + which;
	s->sent_seed = 50 + which;
	s->recv_seed = 50 + !which;
	s->buf = pages(2 * SLOTS * PIECE);
	s->m = region_new(s->buf, 2 * SLOTS * PIECE, 0);
	s->sq = queue_new(SLOTS);
	s->rq = queue_new(SLOTS);
}

static void *random_thread(void *arg)
{
	random_side(arg);
	return NULL;
}

static void random_both(uint64_t total)
{
	struct side_state sides[2];
	pthread_t threads[2];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 2; i++)
		side_init(&sides[i], i ? p.s : p.c, i, total);
	for (i = 0; i < 2; i++)
		must_be(pthread_create(&threads[i], NULL, random_thread, &sides[i]), 0);
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		must_be(sides[i].received, total);
	}
}

static void at_random(void)
{
	random_both(amount(12 * MIB));
}

/* The same through the smallest ring: it is full most of the time. */
static void small_ring(void)
{
	write_sysctl("ring_size", 4096);
	random_both(amount(2 * MIB));
}

static void at_random_apart(void)
{
	struct side_state s;

	side_init(&s, meet(), e2e.side, amount(12 * MIB));
	random_side(&s);
	must_be(s.received, amount(12 * MIB));
	/* Neither leaves before the other has seen the end. */
	control_send("done");
	control_wait("done");
}

/* Several connections share one queue and one region. */
static void shared_queue(void)
{
	enum { CONNS = 8 };
	exs_qhandle_t q = queue_new(4 * CONNS);
	char *buf = pages(2 * CONNS * 8192);
	exs_mhandle_t m = region_new(buf, 2 * CONNS * 8192, 0);
	struct pair p[CONNS];
	int i, round, rounds = amount(40), seen;
	exs_event_t ev;

	for (i = 0; i < CONNS; i++)
		pair_open(&p[i]);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CONNS; i++) {
			data_fill(i, round * 8192, buf + i * 8192, 8192);
			start_recv(p[i].s, buf + (CONNS + i) * 8192, 8192, MSG_WAITALL, q, i, m);
			start_send(p[i].c, buf + i * 8192, 8192, q, 100 + i, m);
		}
		for (seen = 0; seen < 2 * CONNS; seen++) {
			ev = event_next(q);
			must_be(ev.exs_evt_errno, 0);
			i = ev.exs_evt_ahandle % 100;
			must_be(ev.exs_evt_socket, ev.exs_evt_type == EXS_EVT_RECV ? p[i].s : p[i].c);
			must_be(length_of(&ev), 8192);
			if (ev.exs_evt_type == EXS_EVT_RECV)
				data_check(i, round * 8192, buf + (CONNS + i) * 8192, 8192);
		}
	}
	no_event(q);
}

static const struct e2e_case cases[] = {
	{ "registered_receive_first", registered_receive_first, .on = ON_ALL6 | ON_FACES },
	{ "registered_send_first", registered_send_first, .on = ON_BOTH },
	{ "unregistered_receive_first", unregistered_receive_first, .on = ON_BOTH },
	{ "unregistered_send_first", unregistered_send_first, .on = ON_BOTH },
	{ "direct", direct, .on = ON_BOTH | ON_INET },
	{ "indirect", indirect, .on = ON_STREAM },
	{ "plain_is_indirect", plain_is_indirect, .on = ON_STREAM },
	{ "received_late", received_late, .on = ON_BOTH },
	{ "stream_begins_eagerly", stream_begins_eagerly, .on = ON_STREAM },
	{ "eager", eager, .on = ON_SEQ },
	{ "switching", switching, .on = ON_STREAM },
	{ "small_sends_copied", small_sends_copied, .on = ON_BOTH },
	{ "copies_come_back", copies_come_back, .on = ON_STREAM },
	{ "large_sends_pinned", large_sends_pinned, .on = ON_BOTH },
	{ "partial", partial, .on = ON_BOTH },
	{ "waitall", waitall, .on = ON_STREAM },
	{ "at_eof", at_eof, .on = ON_BOTH },
	{ "end_and_empty", end_and_empty, .on = ON_SEQ },
	{ "after_shutdown", after_shutdown, .on = ON_BOTH },
	{ "unconnected", unconnected, .on = ON_BOTH },
	{ "socket_closed", socket_closed, .on = ON_BOTH },
	{ "closed_with_sends", closed_with_sends, .on = ON_BOTH },
	{ "peer_closed", peer_closed, .on = ON_BOTH },
	{ "taker_leaves", NULL, taker_leaves, all_taken, .on = ON_ALL6 | ON_FACES },
	{ "taker_leaves_one", NULL, taker_leaves_one, one_taken, .on = ON_BOTH },
	{ "taker_leaves_shut", NULL, taker_leaves, all_taken_and_shut, .on = ON_BOTH },
	{ "taker_shuts", NULL, taker_shuts, all_taken, .on = ON_BOTH, .named = true },
	{ "taker_shuts_unheard", NULL, taker_shuts_one, one_unheard, .on = ON_BOTH, .named = true },
	{ "peer_reset", peer_reset, .on = ON_BOTH },
	{ "peer_reset_sends", peer_reset_sends, .on = ON_BOTH },
	{ "bad_flags", bad_flags, .on = ON_BOTH },
	{ "dontwait", dontwait, .on = ON_BOTH },
	{ "without_queue", without_queue, .on = ON_BOTH },
	{ "truncated_small", truncated_small, .on = ON_SEQ },
	{ "truncated_large", truncated_large, .on = ON_SEQ },
	{ "zero_length", zero_length, .on = ON_BOTH },
	{ "nothing_in_turn", nothing_in_turn, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "nothing_cancelled", nothing_cancelled, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "shut_in_turn", shut_in_turn, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "too_large", too_large, .on = ON_SEQ, .limit = 120 },
	{ "many_outstanding", many_outstanding, .on = ON_BOTH },
	{ "short_behind_long", short_behind_long, .on = ON_BOTH },
	{ "memory_reused", memory_reused, .on = ON_BOTH },
	{ "one_buffer_many_sends", one_buffer_many_sends, .on = ON_BOTH },
	{ "mixed_sends", mixed_sends, .on = ON_BOTH },
	{ "mixed_receives", mixed_receives, .on = ON_BOTH },
	{ "at_random", at_random, .on = ON_BOTH, .limit = 120 },
	{ "at_random_apart", NULL, at_random_apart, at_random_apart, .on = ON_ALL6, .limit = 120 },
	{ "shared_queue", shared_queue, .on = ON_BOTH },
	{ "small_ring", small_ring, .on = ON_STREAM, .needs = NEEDS_ONE, .limit = 120 },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
