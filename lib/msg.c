// SPDX-License-Identifier: MIT
/*
 * exs_sendmsg(), exs_recvmsg(): convert the program's vector for the kernel, or, without a
 * queue, for sendmsg(2) and recvmsg(2). The structure is needed again when the event is
 * taken (ring.c), the vector is not.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "lib.h"

/* Up to this number, pieces need no memory from the heap. */
#define FEW	8

static int fail(int err)
{
	errno = err;
	return -1;
}

static int check_vector(const exs_msghdr_t *msg)
{
	size_t piece = msg->msg_iovtype == EXS_FDVEC ? sizeof(exs_fdvec_t) :
						       sizeof(exs_iovec_t);

	return exs_check_addr(msg->msg_iov, msg->msg_iovlen * piece);
}

static int check(const exs_msghdr_t *msg, bool send, struct exs_sqe *sqe)
{
	if (exs_arg_make(msg, 0, sqe))
		return -1;
	if (exs_check_addr(msg, sizeof(*msg)))
		return -1;
	if (msg->msg_iovtype != EXS_IOVEC &&
	    !(send && msg->msg_iovtype == EXS_FDVEC))
		return fail(EINVAL);
	if (msg->msg_iovlen > EXS_IOV_MAX)
		return fail(EMSGSIZE);
	return msg->msg_iovlen ? check_vector(msg) : 0;
}

static int fill_sqe_iov(struct exs_sqe_iovec *to, const exs_msghdr_t *msg)
{
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++) {
		const exs_iovec_t *from = &msg->msg_iov[i];

		to[i] = (struct exs_sqe_iovec){
			.addr = (uintptr_t)from->iov_base,
			.len = from->iov_len,
			.region = from->iov_mhandle,
		};
		if (to[i].region == EXS_MHANDLE_INVALID)
			return fail(EINVAL);
	}
	return 0;
}

static int submit(exs_qhandle_t q, struct exs_sqe *sqe, const exs_msghdr_t *msg,
		  struct exs_sqe_iovec *iov)
{
	struct exs_sqe_msg m = {
		.iov = (uintptr_t)iov,
		.count = msg->msg_iovlen,
	};

	sqe->addr = (uintptr_t)&m;
	sqe->len = sizeof(m);
	if (fill_sqe_iov(iov, msg))
		return -1;
	return exs_submit_op(q, sqe);
}

/* Connected stream sockets ignore msg_name, but datagram sockets would use it. */
static bool has_destination(const struct exs_sqe *sqe, const exs_msghdr_t *msg)
{
	return sqe->opcode == EXS_OP_SENDMSG && msg->msg_name &&
	       exs_int_option(sqe->fd, SO_TYPE) == SOCK_DGRAM;
}

static int start(exs_qhandle_t q, struct exs_sqe *sqe, const exs_msghdr_t *msg)
{
	struct exs_sqe_iovec few[FEW], *many;
	int ret, err;

	if (msg->msg_controllen || has_destination(sqe, msg))
		return fail(EOPNOTSUPP);
	if (msg->msg_iovtype == EXS_FDVEC)
		return exs_sendmsg_files(q, sqe, msg);
	if (msg->msg_iovlen <= FEW)
		return submit(q, sqe, msg, few);
	many = malloc(msg->msg_iovlen * sizeof(*many));
	if (!many)
		return -1;
	ret = submit(q, sqe, msg, many);
	err = errno;
	free(many);
	errno = err;
	return ret;
}

typedef ssize_t plain_fn(int fd, struct msghdr *m, int flags);

static ssize_t plain_send(int fd, struct msghdr *m, int flags)
{
	return sendmsg(fd, m, flags);
}

static ssize_t plain_with(struct iovec *iov, int fd, const exs_msghdr_t *msg,
			  int flags, plain_fn *call, struct msghdr *m)
{
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++) {
		iov[i].iov_base = msg->msg_iov[i].iov_base;
		iov[i].iov_len = msg->msg_iov[i].iov_len;
	}
	*m = (struct msghdr){
		.msg_name = msg->msg_name,
		.msg_namelen = msg->msg_namelen,
		.msg_iov = iov,
		.msg_iovlen = msg->msg_iovlen,
		.msg_control = msg->msg_control,
		.msg_controllen = msg->msg_controllen,
	};
	return call(fd, m, flags);
}

/* They are cancellation points. */
static ssize_t plain(int fd, const exs_msghdr_t *msg, int flags, plain_fn *call,
		     struct msghdr *m)
{
	struct iovec few[FEW], *many;
	ssize_t ret;
	int err;

	if (msg->msg_iovlen <= FEW)
		return plain_with(few, fd, msg, flags, call, m);
	many = malloc(msg->msg_iovlen * sizeof(*many));
	if (!many)
		return -1;
	pthread_cleanup_push(free, many);
	ret = plain_with(many, fd, msg, flags, call, m);
	err = errno;
	pthread_cleanup_pop(1);
	errno = err;
	return ret;
}

int exs_sendmsg(int fd, const exs_msghdr_t *msg, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SENDMSG,
		.fd = fd,
		.handle = handle,
		.msg_flags = flags,
		.region = EXS_REGION_NONE,
	};
	struct msghdr m;

	if (check(msg, true, &sqe))
		return -1;
	if (queue == EXS_QHANDLE_INVALID && msg->msg_iovtype == EXS_IOVEC)
		return plain(fd, msg, flags, plain_send, &m);
	return start(queue, &sqe, msg);
}

int exs_recvmsg(int fd, exs_msghdr_t *msg, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_RECVMSG,
		.fd = fd,
		.handle = handle,
		.msg_flags = flags,
		.region = EXS_REGION_NONE,
	};
	struct msghdr m;
	int ret;

	if (check(msg, false, &sqe))
		return -1;
	if (queue != EXS_QHANDLE_INVALID)
		return start(queue, &sqe, msg);
	ret = plain(fd, msg, flags, recvmsg, &m);
	if (ret >= 0) {
		msg->msg_namelen = m.msg_namelen;
		msg->msg_controllen = m.msg_controllen;
		msg->msg_flags = m.msg_flags;
	}
	return ret;
}
