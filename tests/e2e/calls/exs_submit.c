// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_submit"

static char bytes[8];

static exs_op_t op_of(int type, int fd, void *buf, size_t len, exs_ahandle_t handle)
{
	return (exs_op_t){
		.exs_op_type = type, .exs_op_fd = fd, .exs_op_buf = buf, .exs_op_len = len,
		.exs_op_handle = handle, .exs_op_region = type == EXS_EVT_CLOSE ? 0 : NO_REGION,
	};
}

/* Transfers both ways, and the close. */
static void several(void)
{
	exs_qhandle_t q = queue_new(4), sends = queue_new(2);
	exs_op_t ops[2];
	struct pair p;

	pair_open(&p);
	ops[0] = op_of(EXS_EVT_RECV, p.s, bytes, 1, 1);
	ops[1] = op_of(EXS_EVT_RECV, p.s, bytes + 1, 1, 2);
	must_be(exs_submit(q, ops, 2), 2);
	no_event(q);
	ops[0] = op_of(EXS_EVT_SEND, p.c, "a", 1, 3);
	ops[1] = op_of(EXS_EVT_SEND, p.c, "b", 1, 4);
	must_be(exs_submit(sends, ops, 2), 2);
	event_is(sends, EXS_EVT_SEND, 3, 0, 1);
	event_is(sends, EXS_EVT_SEND, 4, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	check(!memcmp(bytes, "ab", 2), "other bytes came");
	ops[0] = op_of(EXS_EVT_RECV, p.s, bytes, 1, 5);
	ops[1] = op_of(EXS_EVT_CLOSE, p.s, NULL, 0, 6);
	must_be(exs_submit(q, ops, 2), 2);
	event_is(q, EXS_EVT_RECV, 5, ECANCELED, 0);
	event_is(q, EXS_EVT_CLOSE, 6, 0, 0);
	must_be(exs_submit(q, NULL, 0), 0);
}

/* Up to the first that cannot be started; the next call gets its error. */
static void in_part(void)
{
	exs_qhandle_t q = queue_new(3);
	exs_op_t ops[3];
	struct pair p;

	pair_open(&p);
	ops[0] = op_of(EXS_EVT_RECV, p.s, bytes, 1, 1);
	ops[1] = op_of(EXS_EVT_RECV, p.s, (void *)8, 1, 2);
	ops[2] = op_of(EXS_EVT_RECV, p.s, bytes + 1, 1, 3);
	must_be(exs_submit(q, ops, 3), 1);
	must_be(errno, EFAULT);
	must_fail(exs_submit(q, ops + 1, 2), EFAULT);
	must_be(exs_submit(q, ops + 2, 1), 1);
	must_be(send(p.c, "a", 1, 0), 1);
	must_be(send(p.c, "b", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	event_is(q, EXS_EVT_RECV, 3, 0, 1);
	no_event(q);
}

static void no_place(void)
{
	exs_qhandle_t q = queue_new(2);
	exs_op_t ops[3];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		ops[i] = op_of(EXS_EVT_RECV, p.s, &bytes[i], 1, i);
	must_be(exs_submit(q, ops, 3), 2);
	must_be(errno, EAGAIN);
	must_fail(exs_submit(q, ops + 2, 1), EAGAIN);
	must_be(send(p.c, "a", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	must_be(exs_submit(q, ops + 2, 1), 1);
	must_fail(exs_submit(q, ops + 2, 1), EAGAIN);
}

static void wrong(void)
{
	static const int others[] = { EXS_EVT_CONNECT, EXS_EVT_SHUTDOWN, EXS_EVT_SENDMSG, EXS_EVT_RECVMSG,
				      EXS_EVT_SENDFILE, EXS_EVT_POLL };
	exs_qhandle_t q = queue_new(2);
	struct wrong w = wrong_open();
	struct pair p;
	exs_op_t op;
	size_t i;

	pair_open(&p);
	op = op_of(EXS_EVT_RECV, p.s, bytes, 1, 1);
	must_fail(exs_submit(q, &op, -1), EINVAL);
	must_fail(exs_submit(q, NULL, 1), EFAULT);
	must_fail(exs_submit(q, (void *)8, 1), EFAULT);
	must_fail(exs_submit(q, (void *)-4096, 100), EFAULT);
	must_fail(exs_submit(w.none, &op, 1), EBADF);
	must_fail(exs_submit(w.file, &op, 1), EINVAL);
	op.exs_op_reserved[1] = 1;
	must_fail(exs_submit(q, &op, 1), EINVAL);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		op = op_of(others[i], p.s, NULL, 0, 1);
		must_fail(exs_submit(q, &op, 1), EINVAL);
	}
	op = op_of(EXS_EVT_CLOSE, p.s, NULL, 1, 1);
	must_fail(exs_submit(q, &op, 1), EINVAL);
	op = op_of(EXS_EVT_RECV, w.file, bytes, 1, 1);
	must_fail(exs_submit(q, &op, 1), ENOTSOCK);
	op = op_of(EXS_EVT_SEND, w.netlink, bytes, 1, 1);
	must_fail(exs_submit(q, &op, 1), EOPNOTSUPP);
	nothing_started(q);
	must(fcntl(p.s, F_GETFD));
}

const struct e2e_case exs_submit_cases[] = {
	CASE(several, ON_KINDS),
	CASE(in_part, ON_KINDS),
	CASE(no_place, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
