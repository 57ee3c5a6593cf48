// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_recvmsg"

static char bytes[LARGE];

static void in_pieces(void)
{
	exs_mhandle_t m = region_new(bytes, LARGE, EXS_ACCESS_WRITE);
	exs_iovec_t iov[] = {
		{ bytes, 13, NO_REGION }, { bytes + 13, LARGE - 1000, m }, { NULL, 0, NO_REGION },
		{ bytes + LARGE - 987, 987, m },
	};
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov), .msg_namelen = 5 };
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	must(exs_recvmsg(p.s, &msg, MSG_WAITALL, q, 7));
	memset(iov, 0, sizeof(iov));		/* free at once */
	no_event(q);
	send_all(p.c, 1, 0, LARGE);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_RECVMSG, 7, 0, LARGE);
	check(ev.exs_evt_union.exs_evt_xfermsg.exs_evt_msg == &msg, "another structure");
	must_be(ev.exs_evt_socket, p.s);
	must_be(msg.msg_flags & MSG_TRUNC, 0);
	data_check(1, 0, bytes, LARGE);
	if (!on_dgram())
		must_be(msg.msg_namelen, 0);
}

static void truncated(void)
{
	exs_iovec_t iov[] = { { bytes, 2, NO_REGION }, { bytes + 2, 2, NO_REGION } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	must(exs_recvmsg(p.s, &msg, 0, q, 1));
	must_be(send(p.c, "abcdefghi", 9, 0), 9);
	event_is(q, EXS_EVT_RECVMSG, 1, 0, 4);
	must_be(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	check(!memcmp(bytes, "abcd", 4), "other bytes came");
}

static void at_end(void)
{
	exs_iovec_t iov = { bytes, 4, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	must(exs_recvmsg(p.s, &msg, 0, q, 1));
	must(shutdown(p.c, SHUT_WR));
	event_is(q, EXS_EVT_RECVMSG, 1, 0, 0);
}

static void synchronous(void)
{
	exs_iovec_t iov[] = { { bytes, 2, NO_REGION }, { bytes + 2, 1, EXS_MHANDLE_INVALID } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_flags = -1 };
	struct pair p;

	pair_open(&p);
	must_be(send(p.c, "abc", 3, 0), 3);
	must_be(exs_recvmsg(p.s, &msg, 0, EXS_QHANDLE_INVALID, 1), 3);
	check(!memcmp(bytes, "abc", 3), "other bytes came");
	must_be(msg.msg_flags & MSG_TRUNC, 0);
	must_fail(exs_recvmsg(p.s, &msg, MSG_DONTWAIT, EXS_QHANDLE_INVALID, 1), EAGAIN);
}

static void wrong(void)
{
	exs_mhandle_t m = region_new(bytes + 10, 100, EXS_ACCESS_WRITE);
	exs_mhandle_t r = region_new(bytes, 100, EXS_ACCESS_READ);
	exs_iovec_t iov[2] = { { bytes, 1, NO_REGION } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2 };
	exs_qhandle_t q = queue_new(4);
	struct wrong x = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_recvmsg(-1, &msg, 0, q, 1), EBADF);
	must_fail(exs_recvmsg(x.file, &msg, 0, q, 1), ENOTSOCK);
	must_fail(exs_recvmsg(x.netlink, &msg, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_recvmsg(p.c, &msg, 0, x.file, 1), EINVAL);
	must_fail(exs_recvmsg(p.c, &msg, MSG_PEEK, q, 1), EINVAL);
	must_fail(exs_recvmsg(p.c, NULL, 0, q, 1), EFAULT);
	must_fail(exs_recvmsg(p.c, (void *)8, 0, q, 1), EFAULT);
	must_fail(exs_recvmsg(p.c, (void *)-4096, 0, EXS_QHANDLE_INVALID, 1), EFAULT);
	iov[1] = (exs_iovec_t){ bytes + 9, 2, m };
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EINVAL);
	iov[1] = (exs_iovec_t){ bytes, 1, r };
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EACCES);
	iov[1] = (exs_iovec_t){ (void *)8, 1, NO_REGION };
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EFAULT);
	msg.msg_iov = (void *)-4096;
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EFAULT);
	msg.msg_iovlen = 1025;
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EMSGSIZE);
	msg = (exs_msghdr_t){ .msg_iov = iov, .msg_iovlen = 1, .msg_control = bytes, .msg_controllen = 16 };
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 1), EOPNOTSUPP);
	nothing_started(q);
}

static void states(void)
{
	exs_iovec_t iov = { bytes, 1, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	if (e2e.on == ON_UNIX)
		must_fail(exs_recvmsg(new_socket(), &msg, 0, q, 1), EINVAL);
	else
		must_fail(exs_recvmsg(new_socket(), &msg, 0, q, 1), ENOTCONN);
	pair_open(&p);
	start_recv(p.c, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_recvmsg(p.c, &msg, 0, q, 2), EAGAIN);
	no_event(q);
}

static int recvmsg_large(int fd, char *buf, exs_qhandle_t q)
{
	exs_iovec_t iov = { buf, LARGE, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return exs_recvmsg(fd, &msg, 0, q, 1);
}

/* provokes: exs_recvmsg call ENOMEM, ENOBUFS */
static void limits(void)
{
	limits_hold(recvmsg_large);
}

const struct e2e_case exs_recvmsg_cases[] = {
	CASE(in_pieces, ON_KINDS),
	CASE(truncated, ON_MESSAGES),
	CASE(at_end, ON_LISTENING),
	CASE(synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	CASE(limits, ON_KINDS),
	CASE(states, ON_LISTENING),
	{}
};
