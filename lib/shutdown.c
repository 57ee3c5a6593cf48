// SPDX-License-Identifier: MIT
/*
 * The operation waits until the end of the stream has been delivered; what sends
 * that end is the real shutdown(2), called next, so that security modules see it.
 * If that fails, the operation is withdrawn. It is not if the connection has
 * ended meanwhile, or another thread was quicker: then the event says what became
 * of it.
 *
 * On an ordinary socket the end comes after sends that the kernel still has, so the
 * operation itself sends it. Security modules are asked by a shutdown(2) that, but
 * for them, has no effect.
 */
#include <errno.h>
#include <sys/ioctl.h>

#include "lib.h"

static int withdraw(int fd, exs_qhandle_t q, exs_ahandle_t handle)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c),
		.flags = EXS_CANCEL_FD | EXS_CANCEL_HANDLE | EXS_CANCEL_SHUTDOWN,
		.fd = fd,
		.handle = handle,
	};
	int err = errno;

	if (ioctl(q, EXS_IOC_CANCEL, &c) || !c.count)
		return 0;
	errno = err;
	return -1;
}

/* EINVAL comes after security modules have had their say. */
static int shutdown_allowed(int fd)
{
	return !shutdown(fd, -1) || errno == EINVAL ? 0 : -1;
}

static int shutdown_later(int fd, struct exs_sqe *sqe, exs_qhandle_t queue)
{
	sqe->flags = 0;
	return shutdown_allowed(fd) ? -1 : exs_submit_op(queue, sqe);
}

int exs_shutdown(int fd, int how, exs_qhandle_t queue, exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SHUTDOWN,
		.fd = fd,
		.handle = handle,
		.region = EXS_REGION_NONE,
		.user_arg = how,
		.flags = EXS_SQE_EXS_ONLY,
	};

	if (queue == EXS_QHANDLE_INVALID)
		return shutdown(fd, how);
	if (how != SHUT_WR && how != SHUT_RDWR) {
		errno = EINVAL;
		return -1;
	}
	if (exs_submit_op(queue, &sqe))
		return errno == EAFNOSUPPORT ? shutdown_later(fd, &sqe, queue) : -1;
	return shutdown(fd, how) ? withdraw(fd, queue, handle) : 0;
}
