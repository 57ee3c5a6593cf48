// SPDX-License-Identifier: GPL-2.0
/* Timeouts of operations on ordinary sockets, which the library keeps by descriptor. */
#include "lib/kinds.h"

#include <sys/ioctl.h>
#include <unistd.h>

static char byte;

static void set_long(int fd, int name, int ms, int flags)
{
	exs_timeout_t t = {
		.exs_time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 }, .exs_flags = flags,
	};

	must(exs_setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)));
}

static void is_long(int fd, int name, long ms, int flags)
{
	exs_timeout_t t;
	socklen_t len = sizeof(t);

	must(exs_getsockopt(fd, SOL_SOCKET, name, &t, &len));
	must_be(len, sizeof(t));
	must_be(t.exs_time.tv_sec * 1000 + t.exs_time.tv_usec / 1000, ms);
	must_be(t.exs_flags, flags);
}

/* The end, perhaps after more of @type. */
static void ends(exs_qhandle_t q, int type, int end, exs_ahandle_t handle, long len)
{
	exs_event_t ev;

	do {
		ev = event_next(q);
	} while (ev.exs_evt_type == type);
	event_check(&ev, end, handle, 0, len);
}

static void receives(const struct kind *k)
{
	exs_iovec_t iov = { &byte, 1, NO_REGION };
	exs_msghdr_t msg = { .msg_iovtype = EXS_IOVEC, .msg_iov = &iov, .msg_iovlen = 1 };
	exs_qhandle_t q = queue_new(4), other = queue_new(1);
	struct pair p;
	int i;

	kind_pair(k, &p);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 5, 0);
	/* It takes a second place. */
	must_fail(exs_recv(p.s, &byte, 1, 0, other, 1, NO_REGION), EAGAIN);
	start_recv(p.c, &byte, 1, 0, other, 1, NO_REGION);
	start_recv(p.s, &byte, 1, 0, q, 2, NO_REGION);
	for (i = 0; i < 3; i++)
		event_is(q, EXS_EVT_RECVTIMEOUT, 2, 0, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	ends(q, EXS_EVT_RECVTIMEOUT, EXS_EVT_RECV, 2, 1);
	must(exs_recvmsg(p.s, &msg, 0, q, 3));
	event_is(q, EXS_EVT_RECVTIMEOUT, 3, 0, 0);
	must_be(send(p.c, "y", 1, 0), 1);
	ends(q, EXS_EVT_RECVTIMEOUT, EXS_EVT_RECVMSG, 3, 1);
	set_long(p.s, SO_ASYNC_RECV_TIMEOUT, 0, 0);
	start_recv(p.s, &byte, 1, 0, q, 4, NO_REGION);
	must(exs_cancel(q, p.s, 4, EXS_CAF_FILDES));
	event_is(q, EXS_EVT_RECV, 4, ECANCELED, 0);
	no_event(other);
}
FOR_KIND(receives, tcp)
FOR_KIND(receives, udp)
FOR_KIND(receives, un_seq)

static void sends(const struct kind *k)
{
	enum { BIG = 16 * MIB };
	exs_qhandle_t q = queue_new(2);
	char *out = pages(BIG);
	struct pair p;

	kind_pair(k, &p);
	data_fill(1, 0, out, BIG);
	set_long(p.c, SO_ASYNC_SEND_TIMEOUT, 5, EXS_TIMEOUT_ONCE);
	start_send(p.c, out, BIG, q, 1, region_new(out, BIG, EXS_ACCESS_READ));
	event_is(q, EXS_EVT_SENDTIMEOUT, 1, 0, 0);
	recv_all(p.s, 1, 0, BIG);
	event_is(q, EXS_EVT_SEND, 1, 0, BIG);
}
FOR_KIND(sends, tcp)
FOR_KIND(sends, un_stream)

static void values(void)
{
	int fd = kind_socket(&kind_tcp), again, one = 7;
	exs_timeout_t t = { { 1, 0 }, 2 };
	socklen_t len = sizeof(one);

	is_long(fd, SO_ASYNC_SEND_TIMEOUT, 0, 0);
	set_long(fd, SO_ASYNC_SEND_TIMEOUT, 1250, EXS_TIMEOUT_ONCE);
	set_long(fd, SO_ASYNC_RECV_TIMEOUT, 10, 0);
	is_long(fd, SO_ASYNC_SEND_TIMEOUT, 1250, EXS_TIMEOUT_ONCE);
	is_long(fd, SO_ASYNC_RECV_TIMEOUT, 10, 0);
	set_long(fd, SO_ASYNC_SEND_TIMEOUT, 0, EXS_TIMEOUT_ONCE);
	is_long(fd, SO_ASYNC_SEND_TIMEOUT, 0, 0);
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)), EINVAL);
	/* Another socket with that number has no timeout. */
	close(fd);
	again = kind_socket(&kind_udp);
	must_be(again, fd);
	is_long(again, SO_ASYNC_RECV_TIMEOUT, 0, 0);
	set_long(again, SO_ASYNC_SEND_TIMEOUT, 20, 0);
	is_long(again, SO_ASYNC_RECV_TIMEOUT, 0, 0);
	must(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &(int){ 0 }, sizeof(int)));
	must(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, &len));
	must_be(one, 1);
	must_be(len, sizeof(one));
	must_fail(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, 1), EINVAL);
	must_fail(exs_setsockopt(1000, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)), EBADF);
	must_fail(exs_getsockopt(1000, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &one, &len), EBADF);
	must_fail(exs_setsockopt(queue_new(1), SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)), ENOTSOCK);
}

/* An operation of AF_EXS may have its own as well. */
static void raw(void)
{
	exs_qhandle_t q = queue_new(4);
	struct exs_sqe sqe = {
		.opcode = EXS_OP_RECV, .region = EXS_REGION_NONE, .addr = (uintptr_t)&byte, .len = 1,
	};
	struct pair p;

	pair_open(&p);
	sqe.fd = p.s;
	sqe.flags = EXS_SQE_TIMEOUT_ONCE;
	must_fail(submit_raw(q, &sqe, 1), EINVAL);
	sqe.timeout = EXS_TIMEOUT_MAX + 1;
	must_fail(submit_raw(q, &sqe, 1), EINVAL);
	sqe.timeout = 1;
	must_be(submit_raw(q, &sqe, 1), 1);
	event_is(q, EXS_EVT_RECVTIMEOUT, 0, 0, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	sqe.opcode = EXS_OP_CLOSE;
	sqe.addr = sqe.len = 0;
	must_fail(submit_raw(q, &sqe, 1), EINVAL);
	must(send(p.s, "x", 1, 0));
}

static const struct e2e_case cases[] = {
	ROW(receives, tcp),
	ROW(receives, udp),
	ROW(receives, un_seq),
	ROW(sends, tcp),
	ROW(sends, un_stream),
	ROW1(values),
	ROW1(raw),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
