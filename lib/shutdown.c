// SPDX-License-Identifier: MIT
/*
 * The operation waits until the end of the stream has been delivered. The real shutdown(2),
 * which is called next, sends this end, so that security modules see it. If it fails, the
 * operation is withdrawn, unless the connection has ended meanwhile, or another thread was
 * faster: then the event has the result.
 *
 * On an ordinary socket the end must follow sends that the kernel still has, so the operation
 * itself shuts it down. A shutdown(2) without effect asks the security modules.
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

/* EINVAL means that the security modules allow it. */
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
