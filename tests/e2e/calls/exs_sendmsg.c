// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_sendmsg"

static char bytes[LARGE];

/* Pieces of all sorts: registered, not registered, empty, at odd addresses. */
static void in_pieces(void)
{
	exs_mhandle_t m = region_new(bytes, LARGE, EXS_ACCESS_READ);
	exs_iovec_t iov[] = {
		{ bytes, 13, NO_REGION }, { bytes + 13, LARGE - 1000, m }, { NULL, 0, NO_REGION },
		{ bytes + LARGE - 987, 987, m },
	};
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov) };
	exs_qhandle_t q = queue_new(1);
	char in[LARGE];
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	data_fill(1, 0, bytes, LARGE);
	must(exs_sendmsg(p.c, &msg, 0, q, 7));
	memset(iov, 0, sizeof(iov));		/* free at once */
	must_be(recv(p.s, in, LARGE, MSG_WAITALL), LARGE);
	data_check(1, 0, in, LARGE);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_SENDMSG, 7, 0, LARGE);
	check(ev.exs_evt_union.exs_evt_xfermsg.exs_evt_msg == &msg, "another structure");
	must_be(ev.exs_evt_socket, p.c);
}

static void no_pieces(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_msghdr_t msg = {};
	struct pair p;

	pair_open(&p);
	must(exs_sendmsg(p.c, &msg, 0, q, 1));
	event_is(q, EXS_EVT_SENDMSG, 1, 0, 0);
	if (!on_stream()) {
		wait_io(p.s, POLLIN);
		must_be(recv(p.s, bytes, 1, 0), 0);
	}
}

/* Among exs_send()s. */
static void in_order(void)
{
	exs_iovec_t iov[] = { { bytes + 2, 1, NO_REGION }, { bytes + 3, 1, NO_REGION } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2 };
	exs_qhandle_t q = queue_new(3);
	struct pair p;
	char in[6];

	pair_open(&p);
	memcpy(bytes, "abcdef", 6);
	start_send(p.c, bytes, 2, q, 1, NO_REGION);
	must(exs_sendmsg(p.c, &msg, 0, q, 2));
	start_send(p.c, bytes + 4, 2, q, 3, NO_REGION);
	must_be(recv(p.s, in, 2, MSG_WAITALL), 2);
	must_be(recv(p.s, in + 2, 2, MSG_WAITALL), 2);
	must_be(recv(p.s, in + 4, 2, MSG_WAITALL), 2);
	check(!memcmp(in, "abcdef", 6), "other bytes came");
	event_is(q, EXS_EVT_SEND, 1, 0, 2);
	event_is(q, EXS_EVT_SENDMSG, 2, 0, 2);
	event_is(q, EXS_EVT_SEND, 3, 0, 2);
}

static void synchronous(void)
{
	exs_iovec_t iov[] = { { "ab", 2, NO_REGION }, { "c", 1, EXS_MHANDLE_INVALID } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct pair p;
	char in[3];

	pair_open(&p);
	must_be(exs_sendmsg(p.c, &msg, 0, EXS_QHANDLE_INVALID, 1), 3);
	must_be(recv(p.s, in, 3, 0), 3);
	check(!memcmp(in, "abc", 3), "other bytes came");
	must(shutdown(p.c, SHUT_WR));
	must_fail(exs_sendmsg(p.c, &msg, MSG_NOSIGNAL, EXS_QHANDLE_INVALID, 1), EPIPE);
}

static void wrong(void)
{
	exs_mhandle_t m = region_new(bytes + 10, 100, EXS_ACCESS_READ);
	exs_mhandle_t w = region_new(bytes, 100, EXS_ACCESS_WRITE);
	exs_iovec_t iov[2] = { { bytes, 1, NO_REGION } };
	exs_msghdr_t msg = { .msg_iov = iov, .msg_iovlen = 2 };
	exs_qhandle_t q = queue_new(4);
	struct wrong x = wrong_open();
	struct pair p;

	pair_open(&p);
	must_fail(exs_sendmsg(-1, &msg, 0, q, 1), EBADF);
	must_fail(exs_sendmsg(x.file, &msg, 0, q, 1), ENOTSOCK);
	must_fail(exs_sendmsg(x.netlink, &msg, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_sendmsg(p.c, &msg, 0, x.file, 1), EINVAL);
	must_fail(exs_sendmsg(p.c, &msg, MSG_OOB, q, 1), EINVAL);
	must_fail(exs_sendmsg(p.c, NULL, 0, q, 1), EFAULT);
	must_fail(exs_sendmsg(p.c, (void *)8, 0, q, 1), EFAULT);
	must_fail(exs_sendmsg(p.c, (void *)-4096, 0, EXS_QHANDLE_INVALID, 1), EFAULT);
	iov[1] = (exs_iovec_t){ bytes + 9, 2, m };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EINVAL);
	iov[1] = (exs_iovec_t){ bytes, 1, w };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EACCES);
	iov[1] = (exs_iovec_t){ (void *)8, 1, NO_REGION };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EFAULT);
	iov[1] = (exs_iovec_t){ bytes, 1, x.none };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EBADF);
	iov[1] = (exs_iovec_t){ bytes, TOO_LONG - 1, NO_REGION };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EINVAL);
	nothing_started(q);
}

static void wrong_structure(void)
{
	exs_iovec_t iov = { bytes, 1, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_iovtype = 77 };
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EINVAL);
	msg = (exs_msghdr_t){ .msg_iov = &iov, .msg_iovlen = 1025 };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EMSGSIZE);
	msg = (exs_msghdr_t){ .msg_iovlen = 1 };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EFAULT);
	msg.msg_iov = (void *)8;
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EFAULT);
	msg.msg_iovtype = EXS_FDVEC;
	must_fail(exs_sendmsg(p.c, &msg, 0, EXS_QHANDLE_INVALID, 1), EFAULT);
	msg = (exs_msghdr_t){ .msg_iov = &iov, .msg_iovlen = 1, .msg_control = bytes,
			      .msg_controllen = 16 };
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 1), EOPNOTSUPP);
	nothing_started(q);
}

static void states(void)
{
	exs_iovec_t iov = { bytes, 1, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_recv(p.c, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 2), EAGAIN);
	must_be(send(p.s, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must(shutdown(p.c, SHUT_WR));
	must_fail(exs_sendmsg(p.c, &msg, 0, q, 2), EPIPE);
	no_event(q);
}

/* Two pieces of one file. */
static exs_msghdr_t of_files(void)
{
	static exs_fdvec_t pieces[2];
	int fd = must(open("/run/exs", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));

	must_be(write(fd, "abcdef", 6), 6);
	pieces[0] = (exs_fdvec_t){ fd, 4, EXS_TO_EOF };
	pieces[1] = (exs_fdvec_t){ fd, 0, 3 };
	return (exs_msghdr_t){ .msg_iovtype = EXS_FDVEC, .msg_fdvec = pieces, .msg_iovlen = 2 };
}

static void efabc_comes(int fd)
{
	char in[6];

	must_be(recv(fd, in, on_stream() ? 5 : 6, MSG_WAITALL), 5);
	check(!memcmp(in, "efabc", 5), "other bytes came");
}

static void files(void)
{
	exs_msghdr_t msg = of_files();
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	must(exs_sendmsg(p.c, &msg, 0, q, 1));
	efabc_comes(p.s);
	event_is(q, EXS_EVT_SENDMSG, 1, 0, 5);
}

static void files_synchronous(void)
{
	exs_msghdr_t msg = of_files();
	struct pair p;

	pair_open(&p);
	must_be(exs_sendmsg(p.c, &msg, 0, EXS_QHANDLE_INVALID, 1), 5);
	efabc_comes(p.s);
}

static int sendmsg_large(int fd, char *buf, exs_qhandle_t q)
{
	exs_iovec_t iov = { buf, LARGE, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return exs_sendmsg(fd, &msg, 0, q, 1);
}

/* provokes: exs_sendmsg call ENOMEM, ENOBUFS */
static void limits(void)
{
	limits_hold(sendmsg_large);
}

const struct e2e_case exs_sendmsg_cases[] = {
	CASE(in_pieces, ON_KINDS),
	CASE(no_pieces, ON_KINDS),
	CASE(in_order, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(files, ON_KINDS),
	CASE(files_synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	CASE(wrong_structure, ON_KINDS),
	CASE(states, ON_KINDS),
	CASE(limits, ON_KINDS),
	{}
};
