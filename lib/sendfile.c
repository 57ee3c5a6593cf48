// SPDX-License-Identifier: MIT
/*
 * exs_sendfile(), and exs_sendmsg() of pieces of files: both convert to a vector of memory
 * and files for the kernel.
 *
 * With EXS_SHUT_WR, shutdown(2) follows the submission at once; the end of the stream is sent
 * after all submitted data. Before the submission, a shutdown(2) without effect asks the
 * security modules. An ordinary socket would not send the data that the kernel still has, so
 * there the operation shuts it down when everything was sent. Without a queue, shutdown(2)
 * follows only if everything was sent: a part must not look like the whole.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib.h"

/* Up to this number, pieces need no memory from the heap. */
#define FEW	8

static int fail(int err)
{
	errno = err;
	return -1;
}

static struct exs_sqe_iovec file_piece(const exs_fdvec_t *file)
{
	return (struct exs_sqe_iovec){
		.addr = file->fd_offset,
		.len = file->fd_len == EXS_TO_EOF ? EXS_IOV_TO_EOF : file->fd_len,
		.region = file->fd_file,
		.flags = EXS_IOV_FILE,
	};
}

static int memory_pieces(struct exs_sqe_iovec *to, const exs_iovec_t *from, size_t n)
{
	for (; n; n--, from++, to++) {
		if (from->iov_mhandle == EXS_MHANDLE_INVALID)
			return fail(EINVAL);
		*to = (struct exs_sqe_iovec){
			.addr = (uintptr_t)from->iov_base,
			.len = from->iov_len,
			.region = from->iov_mhandle,
		};
	}
	return 0;
}

/* @all: whether everything was sent */
static int submit(exs_qhandle_t q, struct exs_sqe *sqe, struct exs_sqe_msg *m,
		  struct exs_sqe_iovec *iov, bool *all)
{
	if (q == EXS_QHANDLE_INVALID)
		return exs_send_gathered(sqe->fd, iov, m->count, sqe->msg_flags, all);
	m->iov = (uintptr_t)iov;
	sqe->addr = (uintptr_t)m;
	sqe->len = sizeof(*m);
	*all = !exs_submit_op(q, sqe);
	return *all ? 0 : -1;
}

static int files(exs_qhandle_t q, struct exs_sqe *sqe, const exs_msghdr_t *msg,
		 struct exs_sqe_iovec *iov)
{
	struct exs_sqe_msg m = { .count = msg->msg_iovlen };
	bool all;
	size_t i;

	for (i = 0; i < msg->msg_iovlen; i++)
		iov[i] = file_piece(&msg->msg_fdvec[i]);
	return submit(q, sqe, &m, iov, &all);
}

int exs_sendmsg_files(exs_qhandle_t q, struct exs_sqe *sqe, const exs_msghdr_t *msg)
{
	struct exs_sqe_iovec few[FEW], *many;
	int ret, err;

	if (msg->msg_iovlen <= FEW)
		return files(q, sqe, msg, few);
	many = malloc(msg->msg_iovlen * sizeof(*many));
	if (!many)
		return -1;
	pthread_cleanup_push(free, many);
	ret = files(q, sqe, msg, many);
	err = errno;
	pthread_cleanup_pop(1);
	errno = err;
	return ret;
}

static int xfer(exs_qhandle_t q, struct exs_sqe *sqe, const exs_xferfile_t *x,
		struct exs_sqe_iovec *iov, __u32 flags, bool *all)
{
	struct exs_sqe_msg m = { .count = x->xf_headerlen + 1 + x->xf_trailerlen, .flags = flags };
	size_t at = x->xf_headerlen;

	if (memory_pieces(iov, x->xf_header, at))
		return -1;
	iov[at++] = file_piece(&x->xf_file);
	if (memory_pieces(iov + at, x->xf_trailer, x->xf_trailerlen))
		return -1;
	return submit(q, sqe, &m, iov, all);
}

/* @flags: of struct exs_sqe_msg */
static int start(exs_qhandle_t q, struct exs_sqe *sqe, const exs_xferfile_t *x,
		 __u32 flags, bool *all)
{
	size_t n = x->xf_headerlen + 1 + x->xf_trailerlen;
	struct exs_sqe_iovec few[FEW], *many;
	int ret, err;

	if (n <= FEW)
		return xfer(q, sqe, x, few, flags, all);
	many = malloc(n * sizeof(*many));
	if (!many)
		return -1;
	pthread_cleanup_push(free, many);
	ret = xfer(q, sqe, x, many, flags, all);
	err = errno;
	pthread_cleanup_pop(1);
	errno = err;
	return ret;
}

static int check_pieces(const exs_iovec_t *iov, size_t n)
{
	return n ? exs_check_addr(iov, n * sizeof(*iov)) : 0;
}

static int check(const exs_xferfile_t *x)
{
	if (exs_check_addr(x, sizeof(*x)))
		return -1;
	if (x->xf_headerlen >= EXS_IOV_MAX ||
	    x->xf_trailerlen >= EXS_IOV_MAX - x->xf_headerlen)
		return fail(EMSGSIZE);
	if (check_pieces(x->xf_header, x->xf_headerlen))
		return -1;
	return check_pieces(x->xf_trailer, x->xf_trailerlen);
}

/* No direction has this number; the kernel checks it last. */
static int may_shutdown(int fd)
{
	return shutdown(fd, -1) && errno == EINVAL ? 0 : -1;
}

int exs_sendfile(int fd, exs_xferfile_t *x, int flags, exs_qhandle_t queue,
		 exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SENDFILE,
		.fd = fd,
		.handle = handle,
		.msg_flags = flags & ~EXS_SHUT_WR,
		.region = EXS_REGION_NONE,
	};
	bool shut = flags & EXS_SHUT_WR, all = false;
	int ret;

	if (exs_arg_make(x, 0, &sqe) || check(x))
		return -1;
	if (shut && may_shutdown(fd))
		return -1;
	if (shut && queue != EXS_QHANDLE_INVALID)
		sqe.flags = EXS_SQE_EXS_ONLY;
	ret = start(queue, &sqe, x, 0, &all);
	if (ret && sqe.flags && errno == EAFNOSUPPORT) {
		sqe.flags = 0;
		return start(queue, &sqe, x, EXS_SQE_MSG_SHUT_WR, &all);
	}
	/* If it fails, the connection has ended. */
	if (all && shut)
		shutdown(fd, SHUT_WR);
	return ret;
}
