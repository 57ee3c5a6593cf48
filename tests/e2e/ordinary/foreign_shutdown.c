// SPDX-License-Identifier: GPL-2.0
/* exs_shutdown() on ordinary sockets: after the sends before it. */
#include "lib/kinds.h"

#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char byte;

enum { SENDS = 3, BIG = 3 * MIB + 77 };

/* Sends of which the last has to wait, for want of a reader. */
static void start_sends(const struct pair *p, exs_qhandle_t q)
{
	char *out = pages(SENDS * BIG);
	exs_mhandle_t m = region_new(out, SENDS * BIG, EXS_ACCESS_READ);
	int i;

	data_fill(1, 0, out, SENDS * BIG);
	for (i = 0; i < SENDS; i++)
		start_send(p->c, out + i * BIG, BIG, q, i, m);
}

static void sends_are(exs_qhandle_t q)
{
	int i;

	for (i = 0; i < SENDS; i++)
		event_is(q, EXS_EVT_SEND, i, 0, BIG);
}

static void after_sends(const struct kind *k)
{
	exs_qhandle_t q = queue_new(SENDS + 2);
	struct pair p;

	kind_pair(k, &p);
	start_sends(&p, q);
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 8));
	start_send(p.c, &byte, 1, q, 9, NO_REGION);
	no_event(q);
	recv_all(p.s, 1, 0, SENDS * BIG);
	must_be(recv(p.s, &byte, 1, 0), 0);
	sends_are(q);
	event_is(q, EXS_EVT_SHUTDOWN, 8, 0, 0);
	event_is(q, EXS_EVT_SEND, 9, EPIPE, 0);
	no_event(q);
	/* The other direction still works. */
	must_be(send(p.s, "x", 1, 0), 1);
	must_be(recv(p.c, &byte, 1, 0), 1);
}
FOR_KIND(after_sends, tcp)
FOR_KIND(after_sends, tcp6)
FOR_KIND(after_sends, un_stream)

static void both_directions(const struct kind *k)
{
	exs_qhandle_t q = queue_new(3), rq = queue_new(1);
	struct pair p;

	kind_pair(k, &p);
	start_recv(p.c, &byte, 1, 0, rq, 1, NO_REGION);
	start_send(p.c, "x", 1, q, 2, NO_REGION);
	must(exs_shutdown(p.c, SHUT_RDWR, q, 3));
	event_is(q, EXS_EVT_SEND, 2, 0, 1);
	event_is(q, EXS_EVT_SHUTDOWN, 3, 0, 0);
	event_is(rq, EXS_EVT_RECV, 1, 0, 0);
	must_be(recv(p.s, &byte, 1, 0), 1);
	must_be(recv(p.s, &byte, 1, 0), 0);
}
FOR_KIND(both_directions, tcp)
FOR_KIND(both_directions, un_stream)
FOR_KIND(both_directions, un_seq)

/* Nothing is shut down then: by exs_cancel(), and as one whose call failed. */
static void given_up(const struct kind *k)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c), .flags = EXS_CANCEL_FD | EXS_CANCEL_HANDLE | EXS_CANCEL_SHUTDOWN, .handle = 9,
	};
	exs_qhandle_t q = queue_new(SENDS + 3);
	struct pair p;

	kind_pair(k, &p);
	start_sends(&p, q);
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 8));
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 9));
	must(exs_cancel(q, p.c, 8, EXS_CAF_FILDES | EXS_CAF_AHANDLE));
	event_is(q, EXS_EVT_SHUTDOWN, 8, ECANCELED, 0);
	c.fd = p.c;
	must(ioctl(q, EXS_IOC_CANCEL, &c));
	must_be(c.count, 1);
	start_send(p.c, "x", 1, q, 10, NO_REGION);
	recv_all(p.s, 1, 0, SENDS * BIG);
	must_be(recv(p.s, &byte, 1, 0), 1);
	sends_are(q);
	event_is(q, EXS_EVT_SEND, 10, 0, 1);
	no_event(q);
}
FOR_KIND(given_up, tcp)
FOR_KIND(given_up, un_stream)

/* It needs no room: when the send before it is given up, it happens although the peer does not read. */
static void send_given_up(const struct kind *k)
{
	exs_qhandle_t q = queue_new(2);
	char *out = pages(SENDS * BIG);
	struct pair p;

	kind_pair(k, &p);
	start_send(p.c, out, SENDS * BIG, q, 1, region_new(out, SENDS * BIG, EXS_ACCESS_READ));
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 2));
	no_event(q);
	must(exs_cancel(q, p.c, 1, EXS_CAF_FILDES | EXS_CAF_AHANDLE));
	must_be(event_next(q).exs_evt_type, EXS_EVT_SEND);
	event_is(q, EXS_EVT_SHUTDOWN, 2, 0, 0);
}
FOR_KIND(send_given_up, tcp)
FOR_KIND(send_given_up, un_stream)

static void *gives_up(void *q)
{
	must_be(exs_cancel(*(exs_qhandle_t *)q, -1, 1, EXS_CAF_AHANDLE), 0);
	return NULL;
}

/* Takes some time to release, page by page. */
enum { SLOW = 64 * MIB };

static char *slow_pages(void)
{
	char *mem = mmap(NULL, SLOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(mem != MAP_FAILED, "mmap: %s", errno_name(errno));
	/* EINVAL: the kernel has no huge pages anyway. */
	check(!madvise(mem, SLOW, MADV_NOHUGEPAGE) || errno == EINVAL, "madvise: %s", errno_name(errno));
	memset(mem, 1, SLOW);
	return mem;
}

/* It comes while a thread is giving up the last send, and must not have its event sooner. */
static void send_just_given_up(void)
{
	exs_qhandle_t q = queue_new(2);
	char *out = slow_pages();
	pthread_t thread;
	struct pair p;
	long i;

	for (i = 1; i <= 5; i++) {
		kind_pair(&kind_tcp, &p);
		send_until_full(p.c, 1);
		start_send(p.c, out, SLOW, q, 1, NO_REGION);
		must_be(pthread_create(&thread, NULL, gives_up, &q), 0);
		while (delta("ops_cancelled") < i)
			;
		must(exs_shutdown(p.c, EXS_SHUT_WR, q, 2));
		must_be(event_next(q).exs_evt_type, EXS_EVT_SEND);
		event_is(q, EXS_EVT_SHUTDOWN, 2, 0, 0);
		must_be(pthread_join(thread, NULL), 0);
		close(p.c);
		close(p.s);
	}
}

/* -- everything is cancelled */

/*
 * More sends than a connection takes while the peer reads LIMITED of them; and receives,
 * cancelled between the sends and the shutdown if that is the last.
 */
enum { MANY = 24, LIMITED = 18 * BIG, RECEIVES = 2000 };

struct reading { int fd; volatile bool over; };

static void *read_to_end(void *arg)
{
	const struct reading *r = arg;
	char *in = pages(MIB);
	long n, total = 0;

	while ((n = must(recv(r->fd, in, MIB, 0)))) {
		total += n;
		if (total >= LIMITED)
			wait_until(r->over);
	}
	return (void *)total;
}

static void start_all(int fd, exs_qhandle_t q)
{
	char *buf = pages(BIG);
	exs_mhandle_t m = region_new(buf, BIG, EXS_ACCESS_READ | EXS_ACCESS_WRITE);
	int i;

	for (i = 0; i < MANY; i++)
		start_send(fd, buf, BIG, q, i, m);
	for (i = 0; i < RECEIVES; i++)
		start_recv(fd, buf, 1, 0, q, MANY, m);
	must(exs_shutdown(fd, EXS_SHUT_WR, q, MANY));
}

/* Return: how many bytes were sent. */
static long all_end(exs_qhandle_t q)
{
	int i, n = MANY + RECEIVES;	/* the first send is over */
	exs_event_t ev;
	long total = BIG;

	for (i = 0; i < n; i++) {
		ev = event_next(q);
		if (ev.exs_evt_type == EXS_EVT_SEND)
			total += ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
		else
			must_be(ev.exs_evt_errno, ECANCELED);
	}
	no_event(q);
	return total;
}

/* The peer, which reads all the time, gets no end where a hole would be. */
static void all_cancelled(const struct kind *k)
{
	exs_qhandle_t q = queue_new(MANY + RECEIVES + 1);
	struct reading r = {};
	pthread_t reader;
	struct pair p;
	void *got;
	long sent;

	kind_pair(k, &p);
	r.fd = p.s;
	start_all(p.c, q);
	must_be(pthread_create(&reader, NULL, read_to_end, &r), 0);
	event_is(q, EXS_EVT_SEND, 0, 0, BIG);
	must(exs_cancel(q, p.c, 0, 0));
	sent = all_end(q);
	r.over = true;
	must_be(send(p.c, "x", 1, 0), 1);
	must(shutdown(p.c, SHUT_WR));
	must_be(pthread_join(reader, &got), 0);
	must_be((long)got, sent + 1);
}
FOR_KIND(all_cancelled, tcp)
FOR_KIND(all_cancelled, un_stream)

/* The connection has ended when its turn comes. */
static void reset(void)
{
	struct linger now = { .l_onoff = 1 };
	exs_qhandle_t q = queue_new(SENDS + 1);
	exs_event_t ev;
	struct pair p;
	int i;

	kind_pair(&kind_tcp, &p);
	start_sends(&p, q);
	must(exs_shutdown(p.c, EXS_SHUT_WR, q, 8));
	must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	must(close(p.s));
	for (i = 0; i < SENDS; i++) {
		ev = event_next(q);
		must_be(ev.exs_evt_type, EXS_EVT_SEND);
	}
	event_is(q, EXS_EVT_SHUTDOWN, 8, ENOTCONN, 0);
	no_event(q);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SHUTDOWN, .region = EXS_REGION_NONE, .user_arg = SHUT_RD,
	};
	struct pair p;

	kind_pair(&kind_tcp, &p);
	must_fail(exs_shutdown(p.c, SHUT_RD, q, 1), EINVAL);
	must_fail(exs_shutdown(p.c, 7, q, 1), EINVAL);
	must_fail(exs_shutdown(kind_socket(&kind_tcp), SHUT_WR, q, 1), ENOTCONN);
	sqe.fd = p.c;
	must_fail(submit_raw(q, &sqe, 1), EINVAL);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	must(exs_shutdown(p.c, SHUT_RD, EXS_QHANDLE_INVALID, 1));
}

/* As by a security module. */
static void refused(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	kind_pair(&kind_tcp, &p);
	forbid_call(SYS_shutdown, EACCES);
	must_fail(exs_shutdown(p.c, SHUT_WR, q, 1), EACCES);
	no_event(q);
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, &byte, 1, 0), 1);
}

static const struct e2e_case cases[] = {
	ROW(after_sends, tcp),
	ROW(after_sends, tcp6),
	ROW(after_sends, un_stream),
	ROW(both_directions, tcp),
	ROW(both_directions, un_stream),
	ROW(both_directions, un_seq),
	ROW(given_up, tcp),
	ROW(given_up, un_stream),
	ROW(send_given_up, tcp),
	ROW(send_given_up, un_stream),
	ROW1(send_just_given_up),
	ROW(all_cancelled, tcp),
	ROW(all_cancelled, un_stream),
	ROW1(reset),
	ROW1(wrong),
	ROW1(refused),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
