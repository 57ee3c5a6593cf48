// SPDX-License-Identifier: GPL-2.0
/* Asynchronous operations on ordinary sockets: TCP, UDP, AF_UNIX. */
#include "lib/kinds.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

static char byte;

static unsigned int cancel(exs_qhandle_t q, int fd, exs_ahandle_t handle)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c), .flags = EXS_CANCEL_FD | EXS_CANCEL_HANDLE,
		.fd = fd, .handle = handle,
	};

	must(ioctl(q, EXS_IOC_CANCEL, &c));
	return c.count;
}

/* The peer has gone: a descriptor that was closed may be held a moment longer. */
static void gone(int fd)
{
	must_be(recv(fd, &byte, 1, 0), 0);
}

/* -- order */

enum { MANY = 64, LEN = 100 };

static void order(const struct kind *k)
{
	exs_qhandle_t q = queue_new(2 * MANY);
	static char in[MANY * LEN], out[MANY * LEN];
	exs_mhandle_t m = region_new(in, sizeof(in), EXS_ACCESS_WRITE);
	unsigned int i, next[2] = {};
	struct pair p;

	kind_pair(k, &p);
	data_fill(1, 0, out, sizeof(out));
	for (i = 0; i < MANY; i++)
		start_recv(p.s, in + i * LEN, LEN, MSG_WAITALL, q, i, i % 2 ? NO_REGION : m);
	no_event(q);
	for (i = 0; i < MANY; i++)
		start_send(p.c, out + i * LEN, LEN, q, i, NO_REGION);
	for (i = 0; i < 2 * MANY; i++) {
		exs_event_t ev = event_next(q);
		bool recv = ev.exs_evt_type == EXS_EVT_RECV;

		event_check(&ev, recv ? EXS_EVT_RECV : EXS_EVT_SEND, next[recv], 0, LEN);
		must_be(ev.exs_evt_socket, recv ? p.s : p.c);
		next[recv]++;
	}
	data_check(1, 0, in, sizeof(in));
	no_event(q);
}
FOR_KIND(order, tcp)
FOR_KIND(order, tcp6)
FOR_KIND(order, udp)
FOR_KIND(order, udp6)
FOR_KIND(order, un_stream)
FOR_KIND(order, un_seq)
FOR_KIND(order, un_dgram)

/* More than the sockets hold; the reader begins when the last had to wait. */
static void slow_reader(const struct kind *k)
{
	enum { SENDS = 5, BIG = 3 * MIB + 77 };
	exs_qhandle_t q = queue_new(SENDS + 1);
	char *out = pages(SENDS * BIG), in;
	exs_mhandle_t m = region_new(out, SENDS * BIG, EXS_ACCESS_READ);
	struct pair p, other;
	int i;

	kind_pair(k, &p);
	kind_pair(k, &other);
	data_fill(2, 0, out, SENDS * BIG);
	for (i = 0; i < SENDS; i++)
		start_send(p.c, out + i * BIG, BIG, q, i, i % 2 ? NO_REGION : m);
	/* It holds up no other operation. */
	start_recv(other.s, &in, 1, 0, q, 99, NO_REGION);
	must_be(send(other.c, "!", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 99, 0, 1);
	wait_delta("foreign_retries", 2);
	no_event(q);
	recv_all(p.s, 2, 0, SENDS * BIG);
	for (i = 0; i < SENDS; i++)
		event_is(q, EXS_EVT_SEND, i, 0, BIG);
	no_event(q);
}
FOR_KIND(slow_reader, tcp)
FOR_KIND(slow_reader, un_stream)

/* More messages than the receiver's queue takes. */
static void slow_reader_of_messages(const struct kind *k)
{
	enum { SENDS = 400, SIZE = 4000 };
	exs_qhandle_t q = queue_new(SENDS);
	char *out = pages(SENDS * SIZE), in[SIZE + 1];
	struct pair p;
	int i;

	kind_pair(k, &p);
	data_fill(3, 0, out, SENDS * SIZE);
	for (i = 0; i < SENDS; i++)
		start_send(p.c, out + i * SIZE, SIZE, q, i, NO_REGION);
	wait_delta("foreign_retries", 2);
	check(queue_attr(q, EXS_ATTR_POSTED) < SENDS, "no send had to wait");
	for (i = 0; i < SENDS; i++) {
		must_be(recv(p.s, in, sizeof(in), 0), SIZE);
		data_check(3, (uint64_t)i * SIZE, in, SIZE);
	}
	for (i = 0; i < SENDS; i++)
		event_is(q, EXS_EVT_SEND, i, 0, SIZE);
}
FOR_KIND(slow_reader_of_messages, un_seq)
FOR_KIND(slow_reader_of_messages, un_dgram)

/* -- receives of streams */

static void waitall(const struct kind *k)
{
	enum { WANT = 10000, PART = 3000 };
	exs_qhandle_t q = queue_new(4);
	char in[WANT];
	struct pair p;

	kind_pair(k, &p);
	start_recv(p.s, in, WANT, MSG_WAITALL, q, 1, NO_REGION);
	send_all(p.c, 4, 0, PART);
	wait_until(!poll_now(p.s, POLLIN));	/* it was taken */
	no_event(q);
	send_all(p.c, 4, PART, WANT - PART);
	event_is(q, EXS_EVT_RECV, 1, 0, WANT);
	data_check(4, 0, in, WANT);

	start_recv(p.s, in, WANT, MSG_WAITALL, q, 2, NO_REGION);
	start_recv(p.s, in, WANT, 0, q, 3, NO_REGION);
	send_all(p.c, 4, 0, PART);
	must(shutdown(p.c, SHUT_WR));
	event_is(q, EXS_EVT_RECV, 2, 0, PART);
	data_check(4, 0, in, PART);
	event_is(q, EXS_EVT_RECV, 3, 0, 0);
}
FOR_KIND(waitall, tcp)
FOR_KIND(waitall, un_stream)

/* A receive reports the bytes that it holds, and the next one the error. */
static void waitall_reset(void)
{
	struct linger l = { .l_onoff = 1 };
	exs_qhandle_t q = queue_new(4);
	char in[100];
	struct pair p;

	kind_pair(&kind_tcp, &p);
	start_recv(p.s, in, sizeof(in), MSG_WAITALL, q, 1, NO_REGION);
	start_recv(p.s, in, sizeof(in), 0, q, 2, NO_REGION);
	must_be(send(p.c, "abc", 3, 0), 3);
	wait_until(!poll_now(p.s, POLLIN));
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	close(p.c);
	event_is(q, EXS_EVT_RECV, 1, 0, 3);
	event_is(q, EXS_EVT_RECV, 2, ECONNRESET, 0);
}

/* -- messages */

static void boundaries(const struct kind *k)
{
	exs_qhandle_t q = queue_new(8), sq = queue_new(1);
	exs_event_t ev;
	struct pair p;
	char in[64];

	kind_pair(k, &p);
	start_recv(p.s, in, 20, MSG_WAITALL, q, 1, NO_REGION);
	start_recv(p.s, in + 20, 5, 0, q, 2, NO_REGION);
	start_recv(p.s, in + 25, 20, 0, q, 3, NO_REGION);
	start_send(p.c, "one", 3, sq, 4, NO_REGION);
	event_is(sq, EXS_EVT_SEND, 4, 0, 3);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 1, 0, 3);
	must_be(ev.exs_evt_flags & MSG_TRUNC, 0);
	must_be(send(p.c, "truncated", 9, 0), 9);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECV, 2, 0, 5);
	must_be(ev.exs_evt_flags & MSG_TRUNC, MSG_TRUNC);
	must_be(send(p.c, "last", 4, 0), 4);
	event_is(q, EXS_EVT_RECV, 3, 0, 4);
	check(!memcmp(in, "one", 3) && !memcmp(in + 20, "trunclast", 9), "wrong bytes");
	/* There already. */
	must_be(send(p.c, "truncated", 9, 0), 9);
	ev = (start_recv(p.s, in, 5, 0, q, 5, NO_REGION), event_next(q));
	event_check(&ev, EXS_EVT_RECV, 5, 0, 5);
	must_be(ev.exs_evt_flags & MSG_TRUNC, MSG_TRUNC);
}
FOR_KIND(boundaries, udp)
FOR_KIND(boundaries, udp6)
FOR_KIND(boundaries, un_seq)
FOR_KIND(boundaries, un_dgram)

static void empty_message(const struct kind *k)
{
	exs_qhandle_t q = queue_new(1), sq = queue_new(1);
	struct pair p;

	kind_pair(k, &p);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	start_send(p.c, NULL, 0, sq, 2, NO_REGION);
	event_is(sq, EXS_EVT_SEND, 2, 0, 0);
	event_is(q, EXS_EVT_RECV, 1, 0, 0);
}
FOR_KIND(empty_message, udp)
FOR_KIND(empty_message, un_dgram)

/* -- calls that fail, and operations that do */

static void wrong(void)
{
	int netlink = must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
	int raw = must(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	must_fail(exs_send(netlink, &byte, 1, 0, q, 0, NO_REGION), EOPNOTSUPP);
	must_fail(exs_recv(netlink, &byte, 1, 0, q, 0, NO_REGION), EOPNOTSUPP);
	must_fail(exs_recv(raw, &byte, 1, 0, q, 0, NO_REGION), EOPNOTSUPP);
	must_fail(exs_send(kind_socket(&kind_tcp), &byte, 1, 0, q, 0, NO_REGION), EPIPE);
	must_fail(exs_recv(kind_socket(&kind_tcp), &byte, 1, 0, q, 0, NO_REGION), ENOTCONN);
	must_fail(exs_send(kind_socket(&kind_udp), &byte, 1, 0, q, 0, NO_REGION), EDESTADDRREQ);
	must_fail(exs_send(kind_socket(&kind_un_stream), &byte, 1, 0, q, 0, NO_REGION), ENOTCONN);
	must_fail(exs_recv(kind_socket(&kind_un_stream), &byte, 1, 0, q, 0, NO_REGION), EINVAL);
	kind_pair(&kind_udp, &p);
	must_fail(exs_send(p.c, pages(70000), 70000, 0, q, 0, NO_REGION), EMSGSIZE);
	must_fail(exs_send(p.c, &byte, 1, MSG_OOB, q, 0, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, &byte, 1, MSG_PEEK, q, 0, NO_REGION), EINVAL);
	must_fail(exs_recv(p.c, (void *)8, 1, 0, q, 0, NO_REGION), EFAULT);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	start_recv(p.c, &byte, 1, 0, q, 1, NO_REGION);
	must_fail(exs_recv(p.s, &byte, 1, 0, q, 2, NO_REGION), EAGAIN);
}

static void udp_refused(void)
{
	exs_qhandle_t q = queue_new(1), sq = queue_new(1);
	struct pair p;

	kind_pair(&kind_udp, &p);
	close(p.s);
	start_recv(p.c, &byte, 1, 0, q, 1, NO_REGION);
	start_send(p.c, &byte, 1, sq, 2, NO_REGION);
	event_is(sq, EXS_EVT_SEND, 2, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, ECONNREFUSED, 0);
}

/* Operations that had to wait for a connection that does not come. */
static void connecting(void)
{
	union address to = address_from(AF_INET, "10.77.0.9", 99);
	exs_qhandle_t q = queue_new(4);
	int fd = kind_socket(&kind_tcp);

	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	start_send(fd, "abc", 3, q, 1, NO_REGION);
	start_recv(fd, &byte, 1, 0, q, 2, NO_REGION);
	must_be(cancel(q, fd, 1), 1);
	event_is(q, EXS_EVT_SEND, 1, ECANCELED, 0);
	must(shutdown(fd, SHUT_RDWR));
	event_is(q, EXS_EVT_RECV, 2, ECONNRESET, 0);
}

/* -- connect */

/* Transfers may be started at once: they wait for the connection. */
static void connected(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4);
	int fd = kind_listening(k), c = kind_socket(k), s;
	bool message = k->type == SOCK_DGRAM;
	/* The send comes behind the connect, so it is made by a worker, whose credentials it must not carry. */
	bool waits = k->domain == AF_UNIX && !message;
	socklen_t len;
	union address to = listening_name(fd, &len);
	char in[3];

	must(exs_connect(c, &to.sa, len, 0, q, 1));
	must_be(fcntl(c, F_GETFL) & O_NONBLOCK, 0);
	start_send(c, "abc", 3, q, 2, NO_REGION);
	event_is(q, EXS_EVT_CONNECT, 1, 0, 0);
	if (!waits)
		event_is(q, EXS_EVT_SEND, 2, 0, 3);
	s = message ? fd : must(accept(fd, NULL, NULL));
	if (waits)
		event_is(q, EXS_EVT_SEND, 2, 0, 3);
	must_be(recv(s, in, 3, 0), 3);
	if (!message)
		must_fail(exs_connect(c, &to.sa, len, 0, q, 3), EISCONN);
	no_event(q);
}
FOR_KIND(connected, tcp)
FOR_KIND(connected, tcp6)
FOR_KIND(connected, udp)
FOR_KIND(connected, un_stream)
FOR_KIND(connected, un_seq)
FOR_KIND(connected, un_dgram)

/* The event, once; then as after any attempt that failed. */
static void connect_refused(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = kind_bound(&kind_tcp), c = kind_socket(&kind_tcp), late;
	union address to = name_of(fd);

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	/* It may be decided already. */
	late = exs_send(c, "abc", 3, 0, q, 2, NO_REGION);
	check(!late || errno == EPIPE, "exs_send: %s", errno_name(errno));
	event_is(q, EXS_EVT_CONNECT, 1, ECONNREFUSED, 0);
	if (!late)
		event_is(q, EXS_EVT_SEND, 2, EPIPE, 0);
	must(listen(fd, 1));
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 3), ECONNABORTED);
	no_event(q);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 4));
	event_is(q, EXS_EVT_CONNECT, 4, 0, 0);
	no_event(q);
}

/* An error that connect(2) itself reports has no event, and leaves the socket as it was. */
static void connect_wrong(void)
{
	union address nowhere = address_from(AF_INET, "240.0.0.1", 1);
	exs_qhandle_t q = queue_new(1);
	int fd = kind_listening(&kind_un_stream), c = kind_socket(&kind_un_stream);
	int l = kind_listening(&kind_tcp), t = kind_socket(&kind_tcp), i;
	socklen_t len;
	union address to = listening_name(fd, &len), tcp_to = name_of(l);

	close(fd);
	for (i = 0; i < 50; i++) {
		must_fail(exs_connect(c, &to.sa, len, 0, q, 1), ECONNREFUSED);
		must_fail(exs_connect(t, &nowhere.sa, address_len(&nowhere), 0, q, 1), ENETUNREACH);
		must_fail(exs_connect(t, &tcp_to.sa, 1, 0, q, 1), EINVAL);
		must_fail(exs_connect(t, (void *)8, address_len(&tcp_to), 0, q, 1), EFAULT);
		no_event(q);
	}
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	must(exs_connect(t, &tcp_to.sa, address_len(&tcp_to), 0, q, 2));
	event_is(q, EXS_EVT_CONNECT, 2, 0, 0);
	no_event(q);
}

static void connect_cancelled(void)
{
	union address to = address_from(AF_INET, "10.77.0.9", 99);
	exs_qhandle_t q = queue_new(4);
	int fd = kind_socket(&kind_tcp);

	must(exs_connect(fd, &to.sa, address_len(&to), 0, q, 1));
	must_fail(exs_connect(fd, &to.sa, address_len(&to), 0, q, 2), EALREADY);
	no_event(q);
	must_be(cancel(q, fd, 1), 1);
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	wait_until(counter("live_lanes") == 0);
}

/* -- exs_close() */

static void close_ends(const struct kind *k)
{
	exs_qhandle_t q = queue_new(16), other = queue_new(4);
	char *out = pages(16 * MIB), in[4];
	exs_event_t ev;
	struct pair p;
	int i, s;

	kind_pair(k, &p);
	s = must(dup(p.s));
	for (i = 0; i < 4; i++)
		start_recv(p.s, in, 1, 0, q, i, NO_REGION);
	start_recv(p.s, in, 1, 0, other, 99, NO_REGION);
	if (kind_is_stream(k))
		start_send(p.s, out, 16 * MIB, q, 5, region_new(out, 16 * MIB, EXS_ACCESS_READ));
	must(exs_close(p.s, 0, q, 6));
	must_fail(fcntl(p.s, F_GETFD), EBADF);
	for (i = 0; i < (kind_is_stream(k) ? 5 : 4); i++) {
		ev = event_next(q);
		if (ev.exs_evt_type == EXS_EVT_RECV)
			event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, ECANCELED, 0);
		else
			must_be(ev.exs_evt_ahandle, 5);
	}
	event_is(q, EXS_EVT_CLOSE, 6, 0, 0);
	no_event(q);
	/* The other queue's, and the other descriptor's, go on. */
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(other, EXS_EVT_RECV, 99, 0, 1);
	must_be(send(p.c, "b", 1, 0), 1);
	must_be(recv(s, in, 1, 0), 1);
}
FOR_KIND(close_ends, tcp)
FOR_KIND(close_ends, udp)
FOR_KIND(close_ends, un_stream)
FOR_KIND(close_ends, un_seq)

static void close_closes(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	int fd = kind_listening(&kind_tcp);

	kind_pair(&kind_tcp, &p);
	must(exs_close(p.s, 0, q, 1));
	event_is(q, EXS_EVT_CLOSE, 1, 0, 0);
	gone(p.c);
	must_fail(exs_close(p.s, 0, q, 2), EBADF);
	must(exs_close(fd, 0, q, 3));
	event_is(q, EXS_EVT_CLOSE, 3, 0, 0);
	must(exs_close(kind_socket(&kind_un_dgram), 0, q, 4));
	event_is(q, EXS_EVT_CLOSE, 4, 0, 0);
}

/* Whatever is under way at that moment, the close's event is the last. */
static void close_is_last(const struct kind *k)
{
	enum { BIG = 2 * MIB };
	exs_qhandle_t q = queue_new(8);
	char *out = pages(BIG), in[100];
	exs_mhandle_t m = region_new(out, BIG, EXS_ACCESS_READ);
	exs_event_t ev;
	struct pair p;
	int round, rounds = amount(100), n;

	for (round = 0; round < rounds; round++) {
		kind_pair(k, &p);
		start_send(p.c, out, BIG, q, 1, m);
		start_recv(p.c, in, 1, 0, q, 2, NO_REGION);
		must_be(send(p.s, "a", 1, 0), 1);
		must(recv(p.s, in, sizeof(in), 0));
		if (round % 2)
			cancel(q, p.c, 2);
		must(exs_close(p.c, 0, q, 3));
		for (n = 1; ev = event_next(q), ev.exs_evt_type != EXS_EVT_CLOSE; n++)
			;
		must_be(n, 3);
		close(p.s);
	}
	no_event(q);
}
FOR_KIND(close_is_last, tcp)
FOR_KIND(close_is_last, un_stream)

/* -- the end of operations */

static void cancelled(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	char in[4];
	int i;

	kind_pair(k, &p);
	for (i = 0; i < 4; i++)
		start_recv(p.s, in + i, 1, 0, q, i, NO_REGION);
	must_be(cancel(q, p.s, 1), 1);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	must_be(cancel(q, p.s, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, ECANCELED, 0);
	must_be(cancel(q, p.c, 2), 0);
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	must_be(send(p.c, "b", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 3, 0, 1);
	check(in[2] == 'a' && in[3] == 'b', "wrong bytes");
	must_be(cancel(q, p.s, 3), 0);
	/* The last of them: none is left that waits at the socket. */
	start_recv(p.s, in, 1, 0, q, 4, NO_REGION);
	must_be(cancel(q, p.s, 4), 1);
	event_is(q, EXS_EVT_RECV, 4, ECANCELED, 0);
	wait_until(counter("live_lanes") == 0);
}
FOR_KIND(cancelled, tcp)
FOR_KIND(cancelled, udp)
FOR_KIND(cancelled, un_seq)

/* The event reports the bytes that were sent by then, and these arrive. */
static void cancelled_in_part(const struct kind *k)
{
	enum { BIG = 16 * MIB };
	exs_qhandle_t q = queue_new(2);
	char *out = pages(BIG);
	exs_event_t ev;
	struct pair p;
	size_t sent;

	kind_pair(k, &p);
	data_fill(5, 0, out, BIG);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	wait_until(poll_now(p.s, POLLIN));
	must_be(cancel(q, p.c, 1), 1);
	ev = event_next(q);
	sent = ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
	check(sent > 0 && sent < BIG, "%zu bytes were sent", sent);
	event_check(&ev, EXS_EVT_SEND, 1, 0, sent);
	close(p.c);
	recv_all(p.s, 5, 0, sent);
	gone(p.s);
}
FOR_KIND(cancelled_in_part, tcp)
FOR_KIND(cancelled_in_part, un_stream)

/* close(2) ends nothing: an operation holds the socket. */
static void closed(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	char in[2];

	kind_pair(k, &p);
	start_recv(p.s, in, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, in + 1, 1, 0, q, 2, NO_REGION);
	must(close(p.s));
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	no_event(q);
	must_be(send(p.c, "b", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	if (k->type != SOCK_DGRAM)
		gone(p.c);
	wait_until(counter("live_lanes") == 0);
}
FOR_KIND(closed, tcp)
FOR_KIND(closed, udp)
FOR_KIND(closed, un_stream)

static void shut_for_reading(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	kind_pair(k, &p);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, &byte, 1, 0, q, 2, NO_REGION);
	must(shutdown(p.s, SHUT_RD));
	event_is(q, EXS_EVT_RECV, 1, 0, 0);
	event_is(q, EXS_EVT_RECV, 2, 0, 0);
}
FOR_KIND(shut_for_reading, tcp)
FOR_KIND(shut_for_reading, udp)
FOR_KIND(shut_for_reading, un_stream)
FOR_KIND(shut_for_reading, un_seq)
FOR_KIND(shut_for_reading, un_dgram)

static void shut_for_writing(const struct kind *k)
{
	enum { BIG = 16 * MIB };
	exs_qhandle_t q = queue_new(4);
	char *out = pages(BIG);
	struct pair p;

	kind_pair(k, &p);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	start_send(p.c, out, 1, q, 2, NO_REGION);
	must(shutdown(p.c, SHUT_WR));
	event_is(q, EXS_EVT_SEND, 1, EPIPE, 0);
	event_is(q, EXS_EVT_SEND, 2, EPIPE, 0);
	must_fail(exs_send(p.c, out, 1, 0, q, 3, NO_REGION), EPIPE);
	no_event(q);
}
FOR_KIND(shut_for_writing, tcp)
FOR_KIND(shut_for_writing, un_stream)

struct shared {
	exs_qhandle_t q;
	struct pair p, full;
	struct held_page held;
	int said;
};

static void victim(void *arg)
{
	enum { BIG = 16 * MIB };
	struct shared *s = arg;
	char *out = pages(BIG);

	start_recv(s->p.s, &byte, 1, 0, s->q, 1, NO_REGION);
	start_send(s->full.c, out, BIG, s->q, 2, NO_REGION);
	tell(s->said, 1);
	pause();
}

/* Its operations end with it; other processes have the socket and the queue, too. */
static void killed(const struct kind *k)
{
	struct pipe_pair pipe = pipe_open();
	struct shared s = { .q = queue_new(4), .said = pipe.wr };
	exs_event_t ev;
	pid_t pid;
	int i;

	kind_pair(k, &s.p);
	kind_pair(k, &s.full);
	start_recv(s.p.s, &byte, 1, 0, s.q, 3, NO_REGION);
	pid = spawn(victim, &s);
	hear(pipe.rd);
	kill(pid, SIGKILL);
	reap(pid);
	for (i = 0; i < 2; i++) {
		ev = event_next(s.q);
		if (ev.exs_evt_type == EXS_EVT_RECV)
			event_check(&ev, EXS_EVT_RECV, 1, ECANCELED, 0);
		else	/* in part */
			must_be(ev.exs_evt_ahandle, 2);
	}
	no_event(s.q);
	must_be(send(s.p.c, "a", 1, 0), 1);
	event_is(s.q, EXS_EVT_RECV, 3, 0, 1);
}
FOR_KIND(killed, tcp)
FOR_KIND(killed, un_stream)

/* The queue hangs on the socket, which hangs on the queue's operation. */
static void cycle_maker(void *arg)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	(void)arg;
	kind_pair(&kind_un_stream, &p);
	send_fd(p.c, q);
	send_fd(p.s, p.s);
	start_send(p.s, pages(16 * MIB), 16 * MIB, q, 1, NO_REGION);
	start_recv(p.c, &byte, 1, MSG_WAITALL, q, 2, NO_REGION);
}

static void cycle(void)
{
	join(spawn(cycle_maker, NULL));
	wait_until(counter("live_lanes") == 0 && counter("live_queues") == 0);
}

/* Descriptors that come with the bytes are dropped, as by recv(2). */
static void descriptors_closed(void)
{
	struct pipe_pair held = pipe_open();
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	kind_pair(&kind_un_stream, &p);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	send_fd(p.c, held.wr);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	close(held.wr);
	wait_until(poll_now(held.rd, POLLIN) == POLLHUP);
}

static void queue_deleted(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	kind_pair(k, &p);
	start_recv(p.s, &byte, 1, 0, q, 1, NO_REGION);
	start_recv(p.s, &byte, 1, 0, q, 2, NO_REGION);
	must(exs_qdelete(q));
	wait_delta("ops_discarded", 2);
	must_be(send(p.c, "a", 1, 0), 1);
	must_be(recv(p.s, &byte, 1, 0), 1);
}
FOR_KIND(queue_deleted, tcp)
FOR_KIND(queue_deleted, un_dgram)

/* -- many, and all kinds at once */

static long threads(void)
{
	long n = -1;
	FILE *file = fopen("/proc/loadavg", "re");

	must_be(fscanf(file, "%*f %*f %*f %*d/%ld", &n), 1);
	fclose(file);
	return n;
}

static void thousands(void)
{
	enum { MOST = 4000 };
	static struct pair p[MOST];
	static bool seen[MOST];
	static char in[MOST];
	const int n = amount(MOST);
	exs_qhandle_t q = queue_new(n);
	long before;
	int i;

	raise_limit(RLIMIT_NOFILE, 4 * MOST);
	for (i = 0; i < n; i++)
		kind_pair(i % 2 ? &kind_un_stream : &kind_udp, &p[i]);
	before = threads();
	for (i = 0; i < n; i++)
		start_recv(p[i].s, &in[i], 1, 0, q, i, NO_REGION);
	wait_delta("foreign_retries", 2 * n);
	/* Once in the caller, once to wait, and then no more. */
	must_be(delta("foreign_retries"), 2 * n);
	must_be(counter("live_lanes"), n);
	check(threads() < before + 200, "%ld threads, %ld before", threads(), before);
	no_event(q);
	for (i = 0; i < n; i++)
		must_be(send(p[i].c, "x", 1, 0), 1);
	for (i = 0; i < n; i++) {
		exs_event_t ev = event_next(q);

		event_check(&ev, EXS_EVT_RECV, ev.exs_evt_ahandle, 0, 1);
		check(!seen[ev.exs_evt_ahandle], "two events of one receive");
		seen[ev.exs_evt_ahandle] = true;
	}
	must_be(delta("foreign_backoffs"), 0);
}

static void one_queue(void)
{
	static const struct kind *const kinds[] = {
		&kind_tcp, &kind_tcp6, &kind_udp, &kind_udp6, &kind_un_stream, &kind_un_seq, &kind_un_dgram,
	};
	enum { N = ARRAY_SIZE(kinds) + 1 };
	exs_qhandle_t q = queue_new(2 * N);
	static char in[N], out[N] = "abcdefgh";
	exs_mhandle_t min = region_new(in, N, EXS_ACCESS_WRITE);
	exs_mhandle_t mout = region_new(out, N, EXS_ACCESS_READ);
	bool seen[2 * N] = {};
	struct pair p[N];
	unsigned int i;

	pair_open(&p[0]);
	for (i = 1; i < N; i++)
		kind_pair(kinds[i - 1], &p[i]);
	for (i = 0; i < N; i++)
		start_recv(p[i].s, &in[i], 1, 0, q, i, min);
	for (i = 0; i < N; i++)
		start_send(p[i].c, &out[i], 1, q, N + i, mout);
	for (i = 0; i < 2 * N; i++) {
		exs_event_t ev = event_next(q);
		exs_ahandle_t h = ev.exs_evt_ahandle;

		event_check(&ev, h < N ? EXS_EVT_RECV : EXS_EVT_SEND, h, 0, 1);
		check(!seen[h], "two events of one operation");
		seen[h] = true;
	}
	check(!memcmp(in, out, N), "wrong bytes");
}

/* -- sockets that are ready, and yet not */

static void write_tcp_mem(const long *mem)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_mem", "we");

	check(file && fprintf(file, "%ld %ld %ld\n", mem[0], mem[1], mem[2]) > 0 && !fclose(file),
	      "cannot write tcp_mem");
}

static void read_tcp_mem(long *mem)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_mem", "re");

	check(file && fscanf(file, "%ld %ld %ld", &mem[0], &mem[1], &mem[2]) == 3, "cannot read tcp_mem");
	fclose(file);
}

/* TCP has no memory: room in the send buffer, EAGAIN, and no wake-up. */
static void backs_off(void)
{
	enum { BIG = 8 * MIB };		/* more than each processor keeps for itself */
	static const long none[3] = { 1, 1, 1 };
	exs_qhandle_t q = queue_new(1);
	char *out = pages(BIG);
	struct pair p;
	long mem[3];
	double end;

	kind_pair(&kind_tcp, &p);
	set_int(p.c, SOL_SOCKET, SO_SNDBUFFORCE, 2 * BIG);
	data_fill(6, 0, out, BIG);
	read_tcp_mem(mem);
	write_tcp_mem(none);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	/* Not wait_delta(): other tests need the memory, also if this fails. */
	end = now() + limit_ms() / 1e3;
	while (delta("foreign_backoffs") < 3 && now() < end)
		breathe();
	write_tcp_mem(mem);
	check(delta("foreign_backoffs") >= 3, "%ld back-offs", delta("foreign_backoffs"));
	recv_all(p.s, 6, 0, BIG);
	event_is(q, EXS_EVT_SEND, 1, 0, BIG);
}

/* -- whose credentials are received */

static void sender(void *arg)
{
	enum { BIG = 4 * MIB };
	struct shared *s = arg;
	char *out = pages(BIG);

	drop_privileges();
	start_send(s->p.c, out, BIG, s->q, 1, NO_REGION);
	tell(s->said, 0);
	event_is(s->q, EXS_EVT_SEND, 1, EOPNOTSUPP, 0);
}

static void sent_by(struct msghdr *msg, pid_t pid)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct ucred cred;

	check(c && c->cmsg_type == SCM_CREDENTIALS, "no credentials");
	memcpy(&cred, CMSG_DATA(c), sizeof(cred));
	must_be(cred.uid, 65534);
	must_be(cred.pid, pid);
}

/* A receiver that asks for credentials gets the submitter's, not a worker's. */
static void credentials(void)
{
	static char buf[65536], control[CMSG_SPACE(sizeof(struct ucred))];
	struct pipe_pair pipe = pipe_open();
	struct shared s = { .q = queue_new(4), .said = pipe.wr };
	struct iovec iov = { buf, sizeof(buf) };
	pid_t pid;
	long n;

	raise_limit(RLIMIT_MEMLOCK, 64 * MIB);
	kind_pair(&kind_un_stream, &s.p);
	set_int(s.p.s, SOL_SOCKET, SO_PASSCRED, 1);
	pid = spawn(sender, &s);
	hear(pipe.rd);
	close(s.p.c);
	do {
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof(control),
		};

		n = must(recvmsg(s.p.s, &msg, 0));
		if (n)
			sent_by(&msg, pid);
	} while (n);
	join(pid);
	must_be(delta("senders_unnamed"), 1);
}

/* A receiver that keeps its socket locked occupies no worker of the sender. */
static void locked_receiver(void)
{
	enum { BIG = 4 * MIB, SOME = 512 * 1024 };
	exs_qhandle_t q = queue_new(4);
	char *out = pages(BIG);
	struct locked_socket l;
	struct pair p;

	data_fill(8, 0, out, BIG);
	kind_pair(&kind_un_stream, &p);
	lock_socket(&l, p.s);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	recv_all(p.s, 8, 0, SOME);
	recv_all(p.s, 8, SOME, BIG - SOME);
	event_is(q, EXS_EVT_SEND, 1, 0, BIG);
	unlock_socket(&l);
}

/* -- an ordinary reader beside an operation: each byte has one taker */

static void beside_a_reader(const struct kind *k)
{
	exs_qhandle_t q = queue_new(1);
	int i, rounds = amount(500), plain = 0, ops = 0;
	struct timeval none = {};
	struct pair p;
	exs_event_t ev;
	char in;

	kind_pair(k, &p);
	start_recv(p.s, &in, 1, 0, q, 0, NO_REGION);
	for (i = 0; i < rounds; i++) {
		must_be(send(p.c, "x", 1, 0), 1);
		plain += recv(p.s, &byte, 1, MSG_DONTWAIT) == 1;
		if (must(exs_qdequeue(q, &ev, 1, &none))) {
			event_check(&ev, EXS_EVT_RECV, ops++, 0, 1);
			start_recv(p.s, &in, 1, 0, q, ops, NO_REGION);
		}
	}
	while (plain + ops < rounds) {
		event_is(q, EXS_EVT_RECV, ops++, 0, 1);
		start_recv(p.s, &in, 1, 0, q, ops, NO_REGION);
	}
	no_event(q);
}
FOR_KIND(beside_a_reader, tcp)
FOR_KIND(beside_a_reader, un_dgram)

/* -- everything at once on one socket */

struct race {
	exs_qhandle_t q;
	struct pair p;
	unsigned int seed;
	long events;
};

static void race_step(struct race *r, uint64_t *seed, char *buf)
{
	uint64_t what = next_random(seed);
	int err;

	switch (what % 4) {
	case 0:
		cancel(r->q, what & 64 ? r->p.c : r->p.s, what >> 8 & 7);
		return;
	case 1:
		err = exs_send(r->p.c, buf, what >> 16 & 0xffff, 0, r->q, what >> 8 & 7, NO_REGION);
		break;
	default:
		err = exs_recv(r->p.s, buf, what >> 16 & 0xffff, what & 128 ? MSG_WAITALL : 0, r->q,
			       what >> 8 & 7, NO_REGION);
	}
	check(!err || errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS, "%s", errno_name(errno));
}

static void *racer(void *arg)
{
	struct race *r = arg;
	uint64_t seed = e2e.seed + __atomic_add_fetch(&r->seed, 1, __ATOMIC_RELAXED);
	struct timeval none = {};
	char *buf = pages(65536);
	int i, steps = amount(3000);
	exs_event_t ev[8];

	for (i = 0; i < steps; i++) {
		race_step(r, &seed, buf);
		if (i % 4 == 0)
			__atomic_add_fetch(&r->events, must(exs_qdequeue(r->q, ev, 8, &none)),
					   __ATOMIC_RELAXED);
	}
	return NULL;
}

static void races(const struct kind *k)
{
	struct race r = { .q = queue_new(32) };
	pthread_t thread[3];
	unsigned int i;

	kind_pair(k, &r.p);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		must_be(pthread_create(&thread[i], NULL, racer, &r), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		must_be(pthread_join(thread[i], NULL), 0);
	must(shutdown(r.p.s, SHUT_RDWR));
	/* TCP may be over by then. */
	shutdown(r.p.c, SHUT_RDWR);
	while (r.events < queue_attr(r.q, EXS_ATTR_SUBMITTED)) {
		event_next(r.q);
		r.events++;
	}
	no_event(r.q);
}
FOR_KIND(races, tcp)
FOR_KIND(races, un_stream)
FOR_KIND(races, un_seq)

static const struct e2e_case cases[] = {
	ROW(order, tcp),
	ROW(order, tcp6),
	ROW(order, udp),
	ROW(order, udp6),
	ROW(order, un_stream),
	ROW(order, un_seq),
	ROW(order, un_dgram),
	ROW(slow_reader, tcp),
	ROW(slow_reader, un_stream),
	ROW(slow_reader_of_messages, un_seq),
	ROW(slow_reader_of_messages, un_dgram),
	ROW(waitall, tcp),
	ROW(waitall, un_stream),
	ROW1(waitall_reset),
	ROW(boundaries, udp),
	ROW(boundaries, udp6),
	ROW(boundaries, un_seq),
	ROW(boundaries, un_dgram),
	ROW(empty_message, udp),
	ROW(empty_message, un_dgram),
	ROW1(wrong),
	ROW1(udp_refused),
	ROW1(connecting),
	ROW(connected, tcp),
	ROW(connected, tcp6),
	ROW(connected, udp),
	ROW(connected, un_stream),
	ROW(connected, un_seq),
	ROW(connected, un_dgram),
	ROW1(connect_refused),
	ROW1(connect_wrong),
	ROW1(connect_cancelled),
	ROW(close_ends, tcp),
	ROW(close_ends, udp),
	ROW(close_ends, un_stream),
	ROW(close_ends, un_seq),
	ROW1(close_closes),
	ROW(close_is_last, tcp),
	ROW(close_is_last, un_stream),
	ROW(cancelled, tcp),
	ROW(cancelled, udp),
	ROW(cancelled, un_seq),
	ROW(cancelled_in_part, tcp),
	ROW(cancelled_in_part, un_stream),
	ROW(closed, tcp),
	ROW(closed, udp),
	ROW(closed, un_stream),
	ROW(shut_for_reading, tcp),
	ROW(shut_for_reading, udp),
	ROW(shut_for_reading, un_stream),
	ROW(shut_for_reading, un_seq),
	ROW(shut_for_reading, un_dgram),
	ROW(shut_for_writing, tcp),
	ROW(shut_for_writing, un_stream),
	ROW(killed, tcp),
	ROW(killed, un_stream),
	ROW1(cycle),
	ROW1(descriptors_closed),
	ROW(queue_deleted, tcp),
	ROW(queue_deleted, un_dgram),
	ROW1(thousands),
	ROW1(one_queue),
	ROW1(backs_off),
	ROW1(credentials),
	ROW1(locked_receiver),
	ROW(beside_a_reader, tcp),
	ROW(beside_a_reader, un_dgram),
	ROW(races, tcp),
	ROW(races, un_stream),
	ROW(races, un_seq),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
