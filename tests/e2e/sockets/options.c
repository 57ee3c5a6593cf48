// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options: those of AF_EXS' own level and the buffer sizes of SOL_SOCKET.
 * Each is shown to have its effect, by a counter or by the result of calls.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/sockios.h>
#include <linux/bpf.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/tcp.h>

static char buf[128 * 1024];

static int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	must(exs_getsockopt(fd, level, name, &value, &len));
	must_be(len, sizeof(value));
	return value;
}

static int get_option(int fd, int name)
{
	return get_int(fd, SOL_EXS, name);
}

static int try_option(int fd, int name, int value)
{
	return exs_setsockopt(fd, SOL_EXS, name, &value, sizeof(value));
}

static void set_option(int fd, int name, int value)
{
	must(try_option(fd, name, value));
}

/* A pair whose server side comes from a listener with the option. */
static void pair_with(struct pair *p, int level, int name, int value)
{
	int fd = listener(8);

	set_int(fd, level, name, value);
	pair_from(p, fd);
	close(fd);
}

/* Wait until the work that @p->s had when this was called is done. */
static void round_trip(struct pair *p)
{
	must_be(send(p->s, "r", 1, 0), 1);
	must_be(recv(p->c, buf, 1, 0), 1);
}

static const struct { int name, min, max, initial; unsigned int on; } options[] = {
	{ EXS_SO_EAGER_MAX, 0, 1008, 1008, ON_SEQ },
	{ EXS_SO_RING, 4096, 2 * MIB, 262144, ON_BOTH },
	{ EXS_SO_ADVERTS, 1, 16, 16, ON_BOTH },
	{ EXS_SO_CPU, -1, 0, -1, ON_BOTH },
	{ EXS_SO_INLINE_MAX, 0, 256, 0, ON_BOTH },
	{ EXS_SO_BUSY_POLL, 0, 1000000, 0, ON_BOTH },
};

static void one_value(int fd, int name, int value)
{
	int got = -2;

	socklen_t len = sizeof(got);

	set_option(fd, name, value);
	must_be(get_option(fd, name), value);
	must(getsockopt(fd, SOL_EXS, name, &got, &len));
	must_be(got, value);
	must(setsockopt(fd, SOL_EXS, name, &value, sizeof(value)));
	must_be(exs_fcntl(fd, EXS_F_GET(name), &got), 0);
	must_be(got, value);
}

static void values(void)
{
	unsigned int on = e2e.seq ? ON_SEQ : ON_STREAM;
	int fd = new_socket();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		int name = options[i].name;

		if (!(options[i].on & on)) {
			must_fail(try_option(fd, name, options[i].max), EOPNOTSUPP);
			must_fail(exs_fcntl(fd, EXS_F_GET(name), &i), EOPNOTSUPP);
			continue;
		}
		must_be(get_option(fd, name), options[i].initial);
		one_value(fd, name, options[i].min);
		one_value(fd, name, options[i].max);
		must_fail(try_option(fd, name, options[i].min - 1), EINVAL);
		must_fail(try_option(fd, name, INT_MAX), EINVAL);
		must_be(exs_fcntl(fd, EXS_F_SET(name), options[i].min), 0);
		must_be(get_option(fd, name), options[i].min);
	}
	must_fail(try_option(fd, 0, 1), ENOPROTOOPT);
	must_fail(try_option(fd, 99, 1), ENOPROTOOPT);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_ADVERTS, buf, 3), EINVAL);
	must_fail(exs_setsockopt(fd, SOL_EXS, EXS_SO_ADVERTS, NULL, 4), EFAULT);
	must_be(exs_fcntl(fd, F_GETFD), FD_CLOEXEC);
	must_be(exs_fcntl(fd, F_SETFD, 0), 0);
	must_be(exs_fcntl(fd, F_GETFD), 0);
	close(fd);
}

/* More of the kernel's memory than the administrator gives. */
static void ring_privileged(void)
{
	int fd = new_socket();

	drop_privileges();
	must_fail(try_option(fd, EXS_SO_RING, 262145), EPERM);
	set_option(fd, EXS_SO_RING, 131073);
	must_be(get_option(fd, EXS_SO_RING), 262144);
	close(fd);
}

/* From the listener, as it was when the request came. */
static void inherited(void)
{
	int fd = listener(8);
	struct pair p, later;

	set_option(fd, EXS_SO_ADVERTS, 3);
	set_int(fd, SOL_SOCKET, SO_SNDBUF, 30000);
	pair_from(&p, fd);
	set_option(fd, EXS_SO_ADVERTS, 4);
	pair_from(&later, fd);
	must_be(get_option(p.s, EXS_SO_ADVERTS), 3);
	must_be(get_option(p.c, EXS_SO_ADVERTS), 16);
	must_be(get_option(later.s, EXS_SO_ADVERTS), 4);
	must_be(get_int(p.s, SOL_SOCKET, SO_SNDBUF), 60000);
	set_option(p.s, EXS_SO_ADVERTS, 5);
	must_be(get_option(fd, EXS_SO_ADVERTS), 4);
}

static void send_message(struct pair *p, size_t len)
{
	data_fill(1, 0, buf, len);
	must_be(send(p->c, buf, len, 0), len);
	must_be(recv(p->s, buf, sizeof(buf), 0), len);
	data_check(1, 0, buf, len);
}

/* A message that waits to be fetched may go another way. */
static void eager_while_announced(struct pair *p)
{
	data_fill(2, 0, buf, 700);
	must_be(send(p->c, buf, 700, 0), 700);
	wait_io(p->s, POLLIN);
	must_be(get_option(p->c, EXS_SO_EAGER_MAX), 100);
	set_option(p->c, EXS_SO_EAGER_MAX, 1000);
	must_be(recv(p->s, buf, sizeof(buf), 0), 700);
	data_check(2, 0, buf, 700);
}

/* TCP_INQ is of bytes that follow, and there are none behind a message. */
static void inq_of_messages(void)
{
	char bytes[10], control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control };
	struct pair p;
	int i;

	pair_open(&p);
	set_int(p.s, IPPROTO_TCP, TCP_INQ, 1);
	send_all(p.c, 1, 0, 10);
	send_all(p.c, 1, 0, 10);
	for (i = 0; i < 2; i++) {
		m.msg_controllen = sizeof(control);
		must_be(recvmsg(p.s, &m, 0), 10);
		must_be(m.msg_controllen, 0);
	}
}

static void eager(void)
{
	struct pair p;

	pair_open(&p);
	send_message(&p, 500);
	wait_delta("eager_tx_bytes", 500);
	set_option(p.c, EXS_SO_EAGER_MAX, 100);
	send_message(&p, 500);
	send_message(&p, 101);
	wait_delta("direct_tx_bytes", 601);
	must_be(delta("eager_tx_bytes"), 500);
	send_message(&p, 100);
	wait_delta("eager_tx_bytes", 600);
	must_be(delta("direct_tx_bytes"), 601);
	eager_while_announced(&p);
	send_message(&p, 1000);
	wait_delta("eager_tx_bytes", 1600);
	pair_close(&p);
}

/*
 * An advert may wait until those before it are acknowledged. By the second round trip the
 * last one is: a further one would have been sent.
 */
static void adverts_are(struct pair *p, unsigned int count)
{
	wait_delta("adverts_tx", count);
	round_trip(p);
	round_trip(p);
	must_be(delta("adverts_tx"), count);
}

static void adverts(void)
{
	enum { COUNT = 6, LEN = 20000 };	/* too long for a ring of messages */
	exs_qhandle_t q = queue_new(COUNT);
	struct pair p;
	int i;

	pair_with(&p, SOL_EXS, EXS_SO_ADVERTS, 2);
	for (i = 0; i < COUNT; i++)
		start_recv(p.s, buf + i * LEN, LEN, 0, q, i, NO_REGION);
	adverts_are(&p, 2);
	set_option(p.s, EXS_SO_ADVERTS, 5);
	adverts_are(&p, 5);
	/* Fewer than are out: those stay, and work. */
	set_option(p.s, EXS_SO_ADVERTS, 1);
	for (i = 0; i < COUNT; i++) {
		round_trip(&p);
		send_all(p.c, i, 0, LEN);
		event_is(q, EXS_EVT_RECV, i, 0, LEN);
		data_check(i, 0, buf + i * LEN, LEN);
	}
	must_be(delta("direct_tx_bytes"), COUNT * LEN);
	pair_close(&p);
}

/* A send without a receive goes as far as the ring is large. */
static void fills_ring(struct pair *p, int ring)
{
	static char from[64 * 1024];
	exs_qhandle_t q = queue_new(4);

	must_be(get_option(p->s, EXS_SO_RING), ring);
	data_fill(3, 0, from, sizeof(from));
	start_send(p->c, from, sizeof(from), q, 1, NO_REGION);
	wait_delta("ring_stalls", 2);	/* for the ring, for space in it */
	must_be(delta("indirect_tx_bytes"), ring);
	recv_all(p->s, 3, 0, sizeof(from));
	event_is(q, EXS_EVT_SEND, 1, 0, sizeof(from));
	must_fail(try_option(p->s, EXS_SO_RING, 2 * ring), EBUSY);
	must_be(get_option(p->s, EXS_SO_RING), ring);
	pair_close(p);
}

static void ring_size(void)
{
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 8192);
	fills_ring(&p, 8192);
}

static void ring_size_connected(void)
{
	struct pair p;

	pair_open(&p);
	set_option(p.s, EXS_SO_RING, 12000);
	fills_ring(&p, 16384);
}

static void rcvbuf(void)
{
	struct pair p;

	pair_with(&p, SOL_SOCKET, SO_RCVBUF, 20000);
	/* Too late. */
	set_int(p.s, SOL_SOCKET, SO_RCVBUF, 5000);
	fills_ring(&p, 32768);
}

/* Nothing of a send that waits can begin, as the peer has no ring; it ends its direction, and leaves. */
static void leaves(struct pair *p)
{
	wait_delta("ring_stalls", 1);
	must(shutdown(p->s, SHUT_WR));
	must_be(recv(p->c, buf, 1, 0), 0);
	close(p->s);
}

static void ringless_leaves(void)
{
	static char from[100000];
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	start_send(p.c, from, sizeof(from), q, 1, NO_REGION);
	leaves(&p);
	event_is(q, EXS_EVT_SEND, 1, ECONNRESET, 0);
	must_be(so_error(p.c), ECONNRESET);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(p.c);
}

/* send(2) has already said that it succeeded. */
static void leaves_plain(bool deaf)
{
	static char from[40000];
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	must_be(send(p.c, from, sizeof(from), 0), sizeof(from));
	leaves(&p);
	check(poll_wait(p.c, POLLERR) & POLLERR, "no error");
	/* It has an effect, although it fails. */
	if (deaf)
		must_fail(shutdown(p.c, SHUT_RD), ENOTCONN);
	/* As with TCP: the data before the end are whole, and the error is for the sender. */
	must_be(recv(p.c, buf, 1, 0), 0);
	must_be(so_error(p.c), ECONNRESET);
	must_be(recv(p.c, buf, 1, 0), 0);
	close(p.c);
}

static void ringless_leaves_plain(void)
{
	leaves_plain(false);
}

static void ringless_leaves_deaf(void)
{
	leaves_plain(true);
}

static void ring_off(void)
{
	static char from[100000], to[100000];
	struct exs_ioc_cancel all = { .size = sizeof(all) };
	exs_qhandle_t q = queue_new(8), sends = queue_new(1);
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	data_fill(4, 0, from, sizeof(from));
	start_send(p.c, from, sizeof(from), sends, 1, NO_REGION);
	wait_delta("ring_stalls", 1);
	must_fail(recv(p.s, buf, 10, 0), EOPNOTSUPP);
	must_fail(recv(p.s, buf, 10, MSG_PEEK | MSG_DONTWAIT), EOPNOTSUPP);
	/* However small. */
	start_recv(p.s, to, 10, 0, q, 2, NO_REGION);
	event_is(q, EXS_EVT_RECV, 2, 0, 10);
	start_recv(p.s, to + 10, sizeof(to) - 10, MSG_WAITALL, q, 3, NO_REGION);
	event_is(q, EXS_EVT_RECV, 3, 0, sizeof(to) - 10);
	event_is(sends, EXS_EVT_SEND, 1, 0, sizeof(from));
	data_check(4, 0, to, sizeof(to));
	must_be(delta("direct_tx_bytes"), sizeof(from));
	must_be(delta("indirect_tx_bytes"), 0);
	must_be(delta("live_rings"), 0);
	start_recv(p.s, to, 10, 0, q, 4, NO_REGION);
	must(ioctl(q, EXS_IOC_CANCEL, &all));
	must_be(all.count, 1);
	event_is(q, EXS_EVT_RECV, 4, ECANCELED, 0);
	start_recv(p.s, to, 10, 0, q, 5, NO_REGION);
	must(shutdown(p.c, SHUT_WR));
	event_is(q, EXS_EVT_RECV, 5, 0, 0);
	/* There is nothing to wait for any more. */
	must_be(recv(p.s, buf, 10, 0), 0);
	must_be(recv(p.s, buf, 10, MSG_PEEK), 0);
	start_recv(p.s, to, 10, 0, q, 6, NO_REGION);
	event_is(q, EXS_EVT_RECV, 6, 0, 0);
	pair_close(&p);
}

static void ring_off_and_on(void)
{
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	must_fail(try_option(p.c, EXS_SO_RING, 0), EISCONN);
	must_be(send(p.c, "hello", 5, 0), 5);
	must_fail(recv(p.s, buf, 10, 0), EOPNOTSUPP);
	must_be(poll_now(p.s, POLLIN), 0);
	set_option(p.s, EXS_SO_RING, 8192);
	must_be(recv(p.s, buf, 10, 0), 5);
	must_fail(try_option(p.s, EXS_SO_RING, 0), EBUSY);
	pair_close(&p);
}

/* The error first, then the end, as on a socket with a ring. */
static void ring_off_reset(void)
{
	struct linger now = { .l_onoff = 1 };
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	close(p.c);
	wait_io(p.s, POLLIN);
	must_fail(recv(p.s, buf, 10, 0), ECONNRESET);
	must_be(recv(p.s, buf, 10, 0), 0);
	close(p.s);
}

static void ring_off_read_shut(void)
{
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, 0);
	must(shutdown(p.s, SHUT_RD));
	must_be(recv(p.s, buf, 10, 0), 0);
	pair_close(&p);
}

static void ping_pong(struct pair *p)
{
	must_be(send(p->c, "p", 1, 0), 1);
	must_be(recv(p->s, buf, 1, 0), 1);
	round_trip(p);
}

static bool processed_on(struct pair *p, int cpu)
{
	ping_pong(p);
	return get_int(p->c, SOL_SOCKET, SO_INCOMING_CPU) == cpu &&
	       get_int(p->s, SOL_SOCKET, SO_INCOMING_CPU) == cpu;
}

static void cpu(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN), i, round;
	struct pair p;

	if (n < 2)
		skip("one processor");
	must_fail(try_option(new_socket(), EXS_SO_CPU, sysconf(_SC_NPROCESSORS_CONF)), EINVAL);
	/* The watchdog processes completions, too, wherever it runs: later. */
	write_sysctl("stall_timeout", 3600 * 1000);
	for (i = 0; i < 2; i++) {
		int fd = listener(8), c = socket_on(CLIENT);
		union address a = name_of(fd);

		set_option(fd, EXS_SO_CPU, i);
		set_option(c, EXS_SO_CPU, i);
		must(connect(c, &a.sa, address_len(&a)));
		p = (struct pair){ .c = c, .s = must(accept(fd, NULL, NULL)) };
		for (round = 0; round < 20; round++)
			check(processed_on(&p, i), "not processed on %d", i);
		check(delta("cq_placed") > 0, "nothing was placed");
		/* The other, while it runs. */
		set_option(p.c, EXS_SO_CPU, !i);
		set_option(p.s, EXS_SO_CPU, !i);
		wait_until(processed_on(&p, !i));
		pair_close(&p);
		close(fd);
	}
}

/* How many of the @len bytes of a send, and of its header, went inline. */
static long inline_of(struct pair *p, size_t len)
{
	long before = delta("inline_tx_bytes");
	static char to[1024];

	data_fill(6, before, buf, len);
	must_be(send(p->c, buf, len, 0), len);
	must_be(recv(p->s, to, sizeof(to), 0), len);
	data_check(6, before, to, len);
	return delta("inline_tx_bytes") - before;
}

/* From nothing to all that there is, and back, on a connection that runs. */
static void inlined(void)
{
	/* A stream has no ring before it needs one: short sends go with a header, too. */
	enum { header = 16 };
	struct pair p;

	pair_open(&p);
	must_be(inline_of(&p, 40), 0);
	set_option(p.c, EXS_SO_INLINE_MAX, 40 + header);
	check(inline_of(&p, 40) >= 40 + header, "40 bytes did not go inline");
	/* Only messages of the kernels. */
	check(inline_of(&p, 41) < 40, "41 bytes went inline");
	set_option(p.c, EXS_SO_INLINE_MAX, 256);
	check(inline_of(&p, 256 - header) >= 256, "256 bytes did not go inline");
	check(inline_of(&p, 1000) < 256, "1000 bytes went inline");
	set_option(p.c, EXS_SO_INLINE_MAX, 0);
	must_be(inline_of(&p, 40), 0);
	pair_close(&p);
}

/* How many bytes of a send, written in pieces that fit, went inline. */
static long inline_of_pieces(struct pair *p, exs_qhandle_t q, int count)
{
	enum { PIECE = 100 };
	exs_mhandle_t m = region_new(buf, count * PIECE, EXS_ACCESS_WRITE);
	long before = delta("adverts_tx");
	int i;

	for (i = 0; i < count; i++)
		start_recv(p->s, buf + i * PIECE, PIECE, MSG_WAITALL, q, i, m);
	/* Some may wait until those before them are acknowledged. */
	wait_delta("adverts_tx", before + count);
	round_trip(p);
	before = delta("inline_tx_bytes");
	send_all(p->c, 7, 0, count * PIECE);
	for (i = 0; i < count; i++)
		event_is(q, EXS_EVT_RECV, i, 0, PIECE);
	data_check(7, 0, buf, count * PIECE);
	must(exs_mderegister(m));
	return delta("inline_tx_bytes") - before;
}

static void inlined_pieces(void)
{
	exs_qhandle_t q = queue_new(16);
	struct pair p;

	write_sysctl("direct_min", 1);
	pair_open(&p);
	set_option(p.c, EXS_SO_INLINE_MAX, 256);
	check(inline_of_pieces(&p, q, 10) >= 1000, "1000 bytes did not go inline");
	check(inline_of_pieces(&p, q, 11) < 1100, "1100 bytes went inline");
}

/* All that happens on a connection, so handed over. */
static void inlined_all(void)
{
	enum { COUNT = 4, LEN = 8192 };
	exs_qhandle_t q = queue_new(COUNT);
	struct pair p;
	int fd = listener(8), i;

	set_option(fd, EXS_SO_INLINE_MAX, 256);
	pair_from(&p, fd);
	set_option(p.c, EXS_SO_INLINE_MAX, 256);
	for (i = 0; i < COUNT; i++)
		start_recv(p.s, buf + i * LEN, LEN, MSG_WAITALL, q, i, NO_REGION);
	wait_delta("adverts_tx", COUNT);
	check(delta("inline_tx_bytes") > COUNT * 16, "no offers went inline");
	for (i = 0; i < COUNT; i++) {
		send_all(p.c, i, 0, LEN);
		event_is(q, EXS_EVT_RECV, i, 0, LEN);
		data_check(i, 0, buf + i * LEN, LEN);
	}
	must_be(send(p.c, "", 0, 0), 0);
	if (e2e.seq)
		must_be(recv(p.s, buf, 10, 0), 0);
	pair_close(&p);
	close(fd);
}

static void *echo_all(void *arg)
{
	const struct pair *p = arg;
	ssize_t n;
	char c;

	while ((n = must(recv(p->s, &c, 1, 0))) > 0)
		must_be(send(p->s, &c, 1, 0), 1);
	return NULL;
}

/* A thread that waits in a plain call processes what the device has completed; or, after a while, not. */
static void busy_poll(void)
{
	pthread_t thread;
	struct pair p;
	long given_up;

	pair_with(&p, SOL_EXS, EXS_SO_BUSY_POLL, 1000000);
	must_be(pthread_create(&thread, NULL, echo_all, &p), 0);
	wait_until(({
		must_be(send(p.c, "x", 1, 0), 1);
		must_be(recv(p.c, buf, 1, 0), 1);
		delta("busy_completions") > 0;
	}));
	set_option(p.s, EXS_SO_BUSY_POLL, 0);
	must(shutdown(p.c, SHUT_WR));
	pthread_join(thread, NULL);
	pair_close(&p);
	/* Before an event comes that could end the polling, and be reported late. */
	pair_open(&p);
	given_up = delta("busy_given_up");
	set_option(p.c, EXS_SO_BUSY_POLL, 1000);
	set_timeout(p.c, SO_RCVTIMEO, 20);
	must_fail(recv(p.c, buf, 1, 0), EAGAIN);
	check(delta("busy_given_up") > given_up, "nobody went to sleep");
	pair_close(&p);
}

/* Not where the completions have a processor of their own. */
static void busy_poll_placed(void)
{
	struct pair p;

	pair_open(&p);
	set_option(p.c, EXS_SO_BUSY_POLL, 1000000);
	set_option(p.c, EXS_SO_CPU, 0);
	set_timeout(p.c, SO_RCVTIMEO, 1);
	must_fail(recv(p.c, buf, 1, 0), EAGAIN);
	must_be(delta("busy_given_up"), 0);
	set_option(p.c, EXS_SO_CPU, -1);
	must_fail(recv(p.c, buf, 1, 0), EAGAIN);
	must_be(delta("busy_given_up"), 1);
}

/*
 * Polling is part of the time that a call may take, and a signal ends it. This tests the end that connects: the worker
 * of the accepted one may still have to wake threads that wait for the greeting.
 */
static void busy_poll_bounded(void)
{
	struct pair p;
	double began;
	int n = 0;

	pair_open(&p);
	set_option(p.c, EXS_SO_BUSY_POLL, 1000000);
	must_fail(recv(p.c, buf, 1, MSG_DONTWAIT), EAGAIN);
	must_be(delta("busy_given_up"), 0);
	set_timeout(p.c, SO_RCVTIMEO, 1);
	/* One of some: the machine may be busy. */
	do {
		check(n++ < 10, "each polls for a second");
		began = now();
		must_fail(recv(p.c, buf, 1, 0), EAGAIN);
		must_be(delta("busy_given_up"), n);
	} while (now() - began > 0.5);
	set_timeout(p.c, SO_RCVTIMEO, 0);
	catch_signal(SIGALRM, 0);
	interrupt_self(1);
	must_fail(recv(p.c, buf, 1, 0), EINTR);
	interrupt_stop();
	pair_close(&p);
}

/* Options that programs set on TCP sockets, with their initial values. */
static const struct { int name, initial, value, worst; } tcp_options[] = {
	{ TCP_NODELAY, 0, 1, -1 },
	{ TCP_CORK, 0, 1, -1 },
	{ TCP_QUICKACK, -1, 1, -1 },
	{ TCP_KEEPIDLE, 7200, 100, 32768 },
	{ TCP_KEEPINTVL, 75, 10, 32768 },
	{ TCP_KEEPCNT, 9, 3, 128 },
	{ TCP_SYNCNT, 6, 3, 128 },
	{ TCP_LINGER2, 60, 5, -1 },
	{ TCP_USER_TIMEOUT, 0, 5000, -1 },
	{ TCP_NOTSENT_LOWAT, 0, 5000, -1 },
	{ TCP_WINDOW_CLAMP, 0, 5000, -1 },
};

static void of_tcp(void)
{
	int fd = listener(8), zero = 0;
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tcp_options); i++) {
		int name = tcp_options[i].name, worst = tcp_options[i].worst;

		if (tcp_options[i].initial >= 0)
			must_be(get_int(fd, IPPROTO_TCP, name), tcp_options[i].initial);
		set_int(fd, IPPROTO_TCP, name, tcp_options[i].value);
		must_be(get_int(fd, IPPROTO_TCP, name), tcp_options[i].value);
		if (worst < 0)
			continue;
		must_fail(setsockopt(fd, IPPROTO_TCP, name, &worst, sizeof(worst)), EINVAL);
		must_fail(setsockopt(fd, IPPROTO_TCP, name, &zero, sizeof(zero)), EINVAL);
	}
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	pair_from(&p, fd);
	for (i = 0; i < ARRAY_SIZE(tcp_options); i++)
		if (tcp_options[i].name != TCP_QUICKACK && tcp_options[i].name != TCP_WINDOW_CLAMP)
			must_be(get_int(p.s, IPPROTO_TCP, tcp_options[i].name), tcp_options[i].value);
	must_be(get_int(p.s, SOL_SOCKET, SO_KEEPALIVE), 1);
	must_be(get_int(p.c, SOL_SOCKET, SO_KEEPALIVE), 0);
	pair_close(&p);
	close(fd);
}

static void of_nobody(void)
{
	int fd = new_socket(), one = 1;

	must_fail(setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &one, sizeof(one)), ENOPROTOOPT);
	must_fail(setsockopt(fd, IPPROTO_TCP, 250, &one, sizeof(one)), ENOPROTOOPT);
	must_fail(setsockopt(fd, IPPROTO_IP, IP_TOS, &one, sizeof(one)), ENOPROTOOPT);
	must_fail(setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &one, sizeof(one)), ENOPROTOOPT);
	close(fd);
}

/* Newer than some C libraries. */
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51
#endif

/* Those that exs(7) lists: TCP has them, and EXS refuses them. */
static void of_tcp_only(void)
{
	static const struct { int level, name; } refused[] = {
		{ IPPROTO_TCP, TCP_SAVE_SYN }, { IPPROTO_TCP, TCP_SAVED_SYN }, { IPPROTO_TCP, TCP_ULP },
		{ IPPROTO_TCP, TCP_TX_DELAY }, { IPPROTO_TCP, TCP_CC_INFO },
		{ IPPROTO_TCP, TCP_REPAIR }, { IPPROTO_IP, IP_TRANSPARENT },
		{ IPPROTO_IP, IP_MTU }, { IPPROTO_IP, IP_OPTIONS }, { IPPROTO_IP, IP_UNICAST_IF },
		{ IPPROTO_IP, IP_LOCAL_PORT_RANGE },
	};
	int fd = new_socket(), tcp = must(socket(e2e.domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		int value = 0;
		socklen_t len = sizeof(value);

		must_fail(setsockopt(fd, refused[i].level, refused[i].name, &value, sizeof(value)), ENOPROTOOPT);
		must_fail(getsockopt(fd, refused[i].level, refused[i].name, &value, &len), ENOPROTOOPT);
		if (getsockopt(tcp, refused[i].level, refused[i].name, &value, &len))
			check(errno != ENOPROTOOPT || refused[i].name == IP_LOCAL_PORT_RANGE,
			      "TCP has no option %d, either", refused[i].name);
	}
}

static int unsent(int fd)
{
	int n;

	must(ioctl(fd, SIOCOUTQ, &n));
	return n;
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	must(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info;
}

static void tcp_info(void)
{
	int fd = listener(8), c = client_of(fd), i;
	struct pair p;

	wait_io(fd, POLLIN);
	must_be(info_of(fd).tcpi_state, BPF_TCP_LISTEN);
	must_be(info_of(fd).tcpi_unacked, 1);
	must_be(info_of(fd).tcpi_sacked, 8);
	must_be(info_of(new_socket()).tcpi_state, BPF_TCP_CLOSE);
	close(must(accept(fd, NULL, NULL)));
	close(c);
	pair_from(&p, fd);
	must_be(info_of(p.c).tcpi_state, BPF_TCP_ESTABLISHED);
	check(info_of(p.c).tcpi_snd_mss > 500, "segments of %d", (int)info_of(p.c).tcpi_snd_mss);
	for (i = 0; i < 3; i++)
		must_be(send(p.c, buf, 1000, 0), 1000);
	for (i = 0; i < 3; i++)
		must_be(recv(p.s, buf, 1000, MSG_WAITALL), 1000);
	must_be(info_of(p.s).tcpi_bytes_received, 3000);
	must_be(info_of(p.c).tcpi_bytes_sent, 3000);
	wait_until(info_of(p.c).tcpi_bytes_acked >= 3000);
	must_be(info_of(p.c).tcpi_notsent_bytes, 0);
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.s, POLLRDHUP);
	must_be(info_of(p.s).tcpi_state, BPF_TCP_CLOSE_WAIT);
	wait_until(info_of(p.c).tcpi_state == BPF_TCP_FIN_WAIT2);
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLHUP);
	wait_until(info_of(p.c).tcpi_state == BPF_TCP_CLOSE && info_of(p.s).tcpi_state == BPF_TCP_CLOSE);
	pair_close(&p);
	close(fd);
}

/* There is room, but more is not wanted. */
static void notsent_lowat(void)
{
	struct epoll_event change = { .events = EPOLLOUT | EPOLLET };
	int changes = must(epoll_create1(EPOLL_CLOEXEC));
	const int ring = 4096;
	struct pair p;

	pair_with(&p, SOL_EXS, EXS_SO_RING, ring);
	must_be(send(p.c, buf, ring, 0), ring);
	wait_until(!unsent(p.c));
	set_int(p.c, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 2000);
	must_be(send(p.c, buf, 1999, 0), 1999);
	must_be(poll_now(p.c, POLLOUT), POLLOUT);
	must_be(send(p.c, buf, 1, 0), 1);
	must_be(poll_now(p.c, POLLOUT), 0);
	must_fail(send(p.c, buf, 1, MSG_DONTWAIT), EAGAIN);
	must(epoll_ctl(changes, EPOLL_CTL_ADD, p.c, &change));
	must_be(epoll_wait(changes, &change, 1, 0), 0);
	set_int(p.c, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 2001);
	must_be(epoll_wait(changes, &change, 1, limit_ms()), 1);
	must_be(poll_now(p.c, POLLOUT), POLLOUT);
	set_int(p.c, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 1);
	must_be(poll_now(p.c, POLLOUT), 0);
	must_be(recv(p.s, buf, ring + 2000, MSG_WAITALL), ring + 2000);
	wait_io(p.c, POLLOUT);
	pair_close(&p);
}

/* No host answers. */
static void user_timeout(void)
{
	union address to = address_from(AF_INET, "10.77.0.9", 7777);
	int fd = new_socket();

	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 300);
	must_fail(connect(fd, &to.sa, address_len(&to)), ETIMEDOUT);
	if (!e2e.tcp)
		must_be(delta("connect_timeout"), 1);
	close(fd);
}

/* Each peek begins where the last has ended. */
static void peek_off(void)
{
	struct pair p;

	pair_open(&p);
	if (e2e.seq) {
		int one = 1;

		must_fail(setsockopt(p.s, SOL_SOCKET, SO_PEEK_OFF, &one, sizeof(one)), EOPNOTSUPP);
		return;
	}
	must_be(get_int(p.s, SOL_SOCKET, SO_PEEK_OFF), -1);
	must_be(send(p.c, "abcdef", 6, 0), 6);
	set_int(p.s, SOL_SOCKET, SO_PEEK_OFF, 1);
	must_be(recv(p.s, buf, 2, MSG_PEEK | MSG_WAITALL), 2);
	check(!memcmp(buf, "bc", 2), "the first: %.2s", buf);
	must_be(recv(p.s, buf, 2, MSG_PEEK), 2);
	check(!memcmp(buf, "de", 2), "the second: %.2s", buf);
	must_be(get_int(p.s, SOL_SOCKET, SO_PEEK_OFF), 5);
	must_be(recv(p.s, buf, 4, 0), 4);
	check(!memcmp(buf, "abcd", 4), "taken: %.4s", buf);
	must_be(get_int(p.s, SOL_SOCKET, SO_PEEK_OFF), 1);
	must_be(recv(p.s, buf, 2, MSG_PEEK), 1);
	check(buf[0] == 'f', "the last: %c", buf[0]);
	must_fail(recv(p.s, buf, 2, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	pair_close(&p);
}

/* The next notification of MSG_ZEROCOPY, which is of sends @from to @to. */
static void notified(int fd, unsigned int from, unsigned int to, bool copied)
{
	char control[128];
	struct msghdr m = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct sock_extended_err ee;
	struct cmsghdr *c;

	wait_io(fd, POLLERR);
	must_be(recvmsg(fd, &m, MSG_ERRQUEUE), 0);
	must_be(m.msg_flags & MSG_ERRQUEUE, MSG_ERRQUEUE);
	c = CMSG_FIRSTHDR(&m);
	check(c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR, "no notification");
	memcpy(&ee, CMSG_DATA(c), sizeof(ee));
	must_be(ee.ee_origin, SO_EE_ORIGIN_ZEROCOPY);
	must_be(ee.ee_errno, 0);
	must_be(ee.ee_info, from);
	must_be(ee.ee_data, to);
	must_be(!!(ee.ee_code & SO_EE_CODE_ZEROCOPY_COPIED), copied);
}

/* The kernel uses the memory until there is a notification. */
static void msg_zerocopy(void)
{
	int one = 1;
	char *mem = pages(sizeof(buf));
	struct pair p;

	pair_open(&p);
	if (setsockopt(p.c, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one))) {
		must_be(errno, EOPNOTSUPP);
		skip("this kernel has SO_ZEROCOPY for TCP alone");
	}
	data_fill(1, 0, mem, sizeof(buf));
	must_be(send(p.c, mem, sizeof(buf), MSG_ZEROCOPY), sizeof(buf));
	recv_all(p.s, 1, 0, sizeof(buf));
	notified(p.c, 0, 0, false);
	must_be(delta("zerocopy_bytes"), sizeof(buf));
	/* A small one is copied, and so is one without the option. */
	must_be(send(p.c, mem, 100, MSG_ZEROCOPY), 100);
	must_be(send(p.s, mem, sizeof(buf), MSG_ZEROCOPY), sizeof(buf));
	recv_all(p.s, 1, 0, 100);
	recv_all(p.c, 1, 0, sizeof(buf));
	notified(p.c, 1, 1, true);
	must_be(delta("zerocopy_bytes"), sizeof(buf));
	must_be(poll_now(p.s, POLLERR), 0);
	must_be(poll_now(p.c, POLLERR), 0);
	/* One that fails has none. */
	must(shutdown(p.c, SHUT_WR));
	must_fail(send(p.c, mem, sizeof(buf), MSG_ZEROCOPY | MSG_NOSIGNAL), EPIPE);
	must_fail(recv(p.c, buf, 1, MSG_ERRQUEUE), EAGAIN);
	pair_close(&p);
}

/* An idle peer is asked, answers, and notices nothing. */
static void keepalive(void)
{
	struct pair p;
	char c;

	/* The watchdog looks soon for the first time; after that the peer has time to answer. */
	write_sysctl("stall_timeout", 2000);
	pair_open(&p);
	sysctls_restore();
	set_int(p.s, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set_int(p.s, SOL_SOCKET, SO_KEEPALIVE, 1);
	/*
	 * The first may be the watchdog's, as the greeting does not tell that it has arrived. Calls of the program
	 * meanwhile are no sign of life from the peer.
	 */
	while (delta("stall_probes") < 3)
		must_fail(recv(p.s, &c, 1, MSG_DONTWAIT), EAGAIN);
	ping_pong(&p);
	must_be(delta("stall_timeout"), 0);
	pair_close(&p);
}

static void *send_one(void *arg)
{
	must_be(send(*(int *)arg, "x", 1, 0), 1);
	return NULL;
}

static pid_t blocked_tid;

static void *send_blocked(void *arg)
{
	__atomic_store_n(&blocked_tid, gettid(), __ATOMIC_RELEASE);
	return send_one(arg);
}

/* One page's worth may go beyond the limit. */
static void sndbuf(void)
{
	const int limit = 2 * 16384, ring = 4096;
	pthread_t thread;
	struct pair p;
	int n = 0, sent;

	pair_with(&p, SOL_EXS, EXS_SO_RING, ring);
	set_int(p.c, SOL_SOCKET, SO_SNDBUF, limit / 2);
	/* The ring first: then nothing more can go, and full is full for good. */
	must_be(send(p.c, buf, ring, 0), ring);
	wait_until(!unsent(p.c));
	while ((sent = send(p.c, buf, 16384, MSG_DONTWAIT)) > 0)
		n += sent;
	must_fail(sent, EAGAIN);
	check(n > 4096 && n <= limit + 4096, "%d bytes fit into %d", n, limit);
	must_be(unsent(p.c), n);
	must_be(poll_now(p.c, POLLOUT), 0);
	/* A sender that waits for room has some. */
	must_be(pthread_create(&thread, NULL, send_blocked, &p.c), 0);
	wait_until(__atomic_load_n(&blocked_tid, __ATOMIC_ACQUIRE));
	wait_blocked(blocked_tid);
	set_int(p.c, SOL_SOCKET, SO_SNDBUF, 2 * limit);
	pthread_join(thread, NULL);
	must_be(poll_now(p.c, POLLOUT), POLLOUT);
	pair_close(&p);
}

/* Options that the kernel accepts without asking us, and that have no effect. */
static void unkept(void)
{
	static const int names[] = { SO_MARK, SO_PRIORITY };
	int fd = listener(8);
	union address to = name_of(fd);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		int c = new_socket(), l = bound_socket();

		set_int(c, SOL_SOCKET, names[i], 5);
		must_fail(connect(c, &to.sa, address_len(&to)), EOPNOTSUPP);
		set_int(c, SOL_SOCKET, names[i], 0);
		must(connect(c, &to.sa, address_len(&to)));
		close(c);
		set_int(l, SOL_SOCKET, names[i], 5);
		must_fail(listen(l, 1), EOPNOTSUPP);
		set_int(l, SOL_SOCKET, names[i], 0);
		must(listen(l, 1));
		close(l);
	}
	close(fd);
}

static void bind_to_device(int fd, const char *name)
{
	must(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
}

static void device_of_connect(void)
{
	int fd = listener(8), c = new_socket();
	union address to = name_of(fd);

	shell("ip link add elsewhere type dummy && ip link set elsewhere up");
	bind_to_device(c, "elsewhere");
	must_fail(connect(c, &to.sa, address_len(&to)), ENETUNREACH);
	bind_to_device(c, "rxe0dev");
	must(connect(c, &to.sa, address_len(&to)));
	close(c);
	close(fd);
	shell("ip link delete elsewhere");
}

static void device_of_listen(void)
{
	int fd = listener(8), c;
	union address to = name_of(fd);

	bind_to_device(fd, "lo");
	c = new_socket();
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(delta("reject_device"), 1);
	bind_to_device(fd, "rxe0dev");
	must(connect(c, &to.sa, address_len(&to)));
	close(c);
	close(fd);
}

static void attach_program(int fd)
{
	struct sock_filter code = { .code = BPF_RET | BPF_K };
	struct sock_fprog prog = { .len = 1, .filter = &code };

	set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	must(setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)));
}

/* Its user goes with the socket. */
static void close_as_stranger(void *arg)
{
	const union address *nobody = arg;
	int fd;

	drop_privileges();
	fd = new_socket();
	attach_program(fd);
	must_fail(connect(fd, &nobody->sa, address_len(nobody)), ECONNREFUSED);
	must(close(fd));
}

/* An attached program ends with the socket, whatever it was used for. */
static void reuseport_program(void)
{
	int fd = new_socket(), l = listener(1);
	union address at = name_of(l);
	struct pair p;

	attach_program(fd);
	must(close(fd));
	attach_program(l);
	pair_from(&p, l);
	must(close(l));
	send_all(p.c, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
	pair_close(&p);
	must_be(reap(spawn(close_as_stranger, &at)), 0);
}

static const struct e2e_case cases[] = {
	{ "values", values, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "ring_privileged", ring_privileged, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "inherited", inherited, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "inq_of_messages", inq_of_messages, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "eager", eager, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "adverts", adverts, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "ring_size", ring_size, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "ring_size_connected", ring_size_connected, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "rcvbuf", rcvbuf, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "ring_off", ring_off, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "ringless_leaves", ringless_leaves, .on = ON_STREAM },
	{ "ringless_leaves_plain", ringless_leaves_plain, .on = ON_STREAM },
	{ "ringless_leaves_deaf", ringless_leaves_deaf, .on = ON_STREAM },
	{ "ring_off_reset", ring_off_reset, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "ring_off_read_shut", ring_off_read_shut, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "ring_off_and_on", ring_off_and_on, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "inlined", inlined, .on = ON_BOTH, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "inlined_pieces", inlined_pieces, .on = ON_STREAM, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "inlined_all", inlined_all, .on = ON_BOTH },
	{ "cpu", cpu, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "busy_poll", busy_poll, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "busy_poll_placed", busy_poll_placed, .on = ON_STREAM },
	{ "busy_poll_bounded", busy_poll_bounded, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "of_tcp", of_tcp, .on = ON_BOTH | ON_TCP, .needs = NEEDS_ONE },
	{ "of_nobody", of_nobody, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "of_tcp_only", of_tcp_only, .on = ON_INET },
	{ "unkept", unkept, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_of_connect", device_of_connect, .on = ON_ALL6, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "device_of_listen", device_of_listen, .on = ON_ALL6, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "keepalive", keepalive, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "sndbuf", sndbuf, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "msg_zerocopy", msg_zerocopy, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "tcp_info", tcp_info, .on = ON_BOTH | ON_TCP, .needs = NEEDS_ONE },
	{ "notsent_lowat", notsent_lowat, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "user_timeout", user_timeout, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "reuseport_program", reuseport_program, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "peek_off", peek_off, .on = ON_BOTH, .needs = NEEDS_ONE },
	{},
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
