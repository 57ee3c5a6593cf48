// SPDX-License-Identifier: MIT
/* exs_sendmsg(), exs_recvmsg(): vectors, and the results in the caller's structure. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exs.h>

#include "check.h"
#include "fake.h"

static char buf[100];
static exs_iovec_t iov[EXS_IOV_MAX + 1];

static exs_msghdr_t message(size_t n)
{
	size_t i;

	for (i = 0; i < sizeof(iov) / sizeof(iov[0]); i++)
		iov[i] = (exs_iovec_t){ buf + i % 100, i, (int)(i % 3) + 5 };
	return (exs_msghdr_t){ .msg_iov = iov, .msg_iovlen = n };
}

static void submitted_as(const exs_msghdr_t *msg, unsigned int opcode)
{
	size_t i;

	CHECK(fake.sqe.opcode == opcode && fake.sqe.fd == 33);
	CHECK(fake.sqe.handle == 44 && fake.sqe.region == EXS_REGION_NONE);
	CHECK(fake.sqe.len == sizeof(struct exs_sqe_msg));
	CHECK(!fake.sqe.timeout && !fake.sqe.flags);
	CHECK(fake.msg.count == msg->msg_iovlen && !fake.msg.flags);
	for (i = 0; i < msg->msg_iovlen; i++) {
		CHECK(fake.iov[i].addr == (uintptr_t)iov[i].iov_base);
		CHECK(fake.iov[i].len == iov[i].iov_len);
		CHECK(fake.iov[i].region == iov[i].iov_mhandle);
		CHECK(!fake.iov[i].flags);
	}
}

static void as_submitted(void)
{
	static const size_t counts[] = { 0, 1, 8, 9, EXS_IOV_MAX };
	int q = fake_queue(0);
	exs_msghdr_t msg;
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		msg = message(counts[i]);
		CHECK(!exs_sendmsg(33, &msg, MSG_NOSIGNAL, q, 44));
		submitted_as(&msg, EXS_OP_SENDMSG);
		CHECK(fake.sqe.msg_flags == MSG_NOSIGNAL);
		CHECK(!exs_recvmsg(33, &msg, MSG_WAITALL, q, 44));
		submitted_as(&msg, EXS_OP_RECVMSG);
		CHECK(fake.sqe.msg_flags == MSG_WAITALL);
	}
}

static void both_fail(const exs_msghdr_t *msg, int q, int err)
{
	exs_msghdr_t *to = (exs_msghdr_t *)msg;	/* nothing is written */

	CHECK(exs_sendmsg(33, msg, 0, q, 1) == -1 && errno == err);
	CHECK(exs_recvmsg(33, to, 0, q, 1) == -1 && errno == err);
}

static void refused(void)
{
	int q = fake_queue(0);
	exs_msghdr_t msg = message(EXS_IOV_MAX + 1);

	both_fail(&msg, q, EMSGSIZE);
	both_fail(&msg, EXS_QHANDLE_INVALID, EMSGSIZE);
	both_fail(NULL, q, EFAULT);
	msg = message(1);
	msg.msg_iov = NULL;
	both_fail(&msg, q, EFAULT);
	msg = message(1);
	msg.msg_iovtype = 77;
	both_fail(&msg, q, EINVAL);
	msg = message(1);
	msg.msg_controllen = 1;
	both_fail(&msg, q, EOPNOTSUPP);
	msg = message(9);
	iov[8].iov_mhandle = EXS_MHANDLE_INVALID;
	both_fail(&msg, q, EINVAL);
	msg = message(9);
	both_fail(&msg, STDERR_FILENO, EINVAL);
	both_fail(&msg, 999, EBADF);
	fake.submit_errno = EAGAIN;
	both_fail(&msg, q, EAGAIN);
}

/* Before anything is read from there. */
static void bad_addresses(void)
{
	int q = fake_queue(0);

	both_fail((void *)-8, q, EFAULT);
	both_fail((void *)-8, EXS_QHANDLE_INVALID, EFAULT);
}

static void post_msg(int q, unsigned int type, int err, unsigned int flags)
{
	struct exs_cqe cqe = { .type = type, .fd = 33, .handle = 44,
			       .error = err, .length = err ? 0 : 55,
			       .flags = flags, .user_arg = fake.sqe.user_arg, .user_tag = fake.sqe.user_tag };

	fake_post(q, &cqe);
}

static exs_evt_xfermsg_t taken(int q, int type)
{
	exs_event_t ev;

	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	CHECK(ev.exs_evt_type == type && ev.exs_evt_ahandle == 44);
	CHECK(ev.exs_evt_union.exs_evt_xfer.exs_evt_length ==
	      ev.exs_evt_union.exs_evt_xfermsg.exs_evt_length);
	return ev.exs_evt_union.exs_evt_xfermsg;
}

/* The members that recvmsg(2) writes are there with the event. */
static void results(void)
{
	int q = fake_queue(0);
	exs_msghdr_t msg = message(2);
	exs_evt_xfermsg_t x;

	msg.msg_namelen = 7;
	msg.msg_flags = 9;
	CHECK(!exs_recvmsg(33, &msg, 0, q, 44));
	post_msg(q, EXS_OP_RECVMSG, 0, MSG_TRUNC);
	CHECK(msg.msg_namelen == 7 && msg.msg_flags == 9);
	x = taken(q, EXS_EVT_RECVMSG);
	CHECK(x.exs_evt_msg == &msg && x.exs_evt_length == 55);
	CHECK(!msg.msg_namelen && msg.msg_flags == MSG_TRUNC);
	CHECK(msg.msg_iov == iov && msg.msg_iovlen == 2);
}

/* A send only reads its structure; a receive that failed writes nothing. */
static void left_alone(void)
{
	int q = fake_queue(0);
	exs_msghdr_t msg = message(2), before;

	msg.msg_namelen = 7;
	msg.msg_flags = 9;
	before = msg;
	CHECK(!exs_sendmsg(33, &msg, 0, q, 44));
	post_msg(q, EXS_OP_SENDMSG, 0, MSG_EOR);
	CHECK(taken(q, EXS_EVT_SENDMSG).exs_evt_msg == &msg);
	CHECK(!exs_recvmsg(33, &msg, 0, q, 44));
	post_msg(q, EXS_OP_RECVMSG, ECONNRESET, 0);
	CHECK(taken(q, EXS_EVT_RECVMSG).exs_evt_msg == &msg);
	CHECK(!memcmp(&msg, &before, sizeof(msg)));
}

/* A child does not have the parent's structure, whatever is at its address. */
static void in_another_process(void)
{
	int q = fake_queue(0), status;
	exs_msghdr_t msg = message(2);

	CHECK(!exs_recvmsg(33, &msg, 0, q, 44));
	post_msg(q, EXS_OP_RECVMSG, 0, MSG_TRUNC);
	if (!fork()) {
		exs_evt_xfermsg_t x = taken(q, EXS_EVT_RECVMSG);

		CHECK(!x.exs_evt_msg && x.exs_evt_length == 55);
		CHECK(!msg.msg_flags);
		exit(0);
	}
	CHECK(wait(&status) > 0 && !status);
}

static void exchange_plainly(const int *sv, size_t n)
{
	exs_qhandle_t none = EXS_QHANDLE_INVALID;
	exs_msghdr_t msg = message(n);
	size_t i;

	for (i = 0; i < n; i++)
		iov[i] = (exs_iovec_t){ "x", 1, 0 };
	CHECK(exs_sendmsg(sv[0], &msg, 0, none, 0) == (int)n);
	for (i = 0; i < n; i++)
		iov[i] = (exs_iovec_t){ &buf[i], 1, 0 };
	msg.msg_iovlen = n - 1;
	msg.msg_flags = 0;
	CHECK(exs_recvmsg(sv[1], &msg, 0, none, 0) == (int)n - 1);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK(buf[0] == 'x' && buf[n - 2] == 'x' && !buf[n - 1]);
	msg.msg_flags = 9;
	CHECK(exs_recvmsg(sv[1], &msg, MSG_DONTWAIT, none, 0) == -1);
	CHECK(errno == EAGAIN && msg.msg_flags == 9);
	memset(buf, 0, sizeof(buf));
}

static void without_queue(void)
{
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	exchange_plainly(sv, 3);
	exchange_plainly(sv, 40);
}

const struct test msg_tests[] = {
	{ "msg as submitted", as_submitted },
	{ "msg refused", refused },
	{ "msg bad addresses", bad_addresses },
	{ "msg results", results },
	{ "msg left alone", left_alone },
	{ "msg in another process", in_another_process },
	{ "msg without queue", without_queue },
	{ NULL, NULL },
};
