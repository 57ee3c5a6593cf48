// SPDX-License-Identifier: MIT
/*
 * The operation only arms the socket; the connection is asked for by the real
 * connect(2), so that security modules see it. The armed socket does not
 * block: connect(2) says EINPROGRESS, and the event follows. (EINTR: also; the
 * attempt goes on.) If it says anything else, there is no event: the socket has
 * dropped the operation, or never heard of the call (EFAULT, a security module),
 * and the operation is withdrawn.
 *
 * An ordinary socket cannot be armed: it is made non-blocking for the time of the
 * call, and the operation finds out how the attempt ends. One of datagrams is
 * connected at once, and may be as often as one likes: if then the operation fails,
 * it gets back the peer that it had.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib.h"

static void withdraw(int fd, exs_qhandle_t q, exs_ahandle_t handle)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c),
		.flags = EXS_CANCEL_FD | EXS_CANCEL_HANDLE | EXS_CANCEL_CONNECT,
		.fd = fd,
		.handle = handle,
	};
	int err = errno;

	ioctl(q, EXS_IOC_CANCEL, &c);
	errno = err;
}

static int connect_nonblock(int fd, const struct sockaddr *addr, socklen_t len)
{
	int flags = fcntl(fd, F_GETFL), ret, err;

	if (flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return connect(fd, addr, len);
	ret = connect(fd, addr, len);
	err = errno;
	fcntl(fd, F_SETFL, flags);
	errno = err;
	return ret;
}

static int submit_connect(int fd, exs_qhandle_t q, exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_CONNECT,
		.fd = fd,
		.handle = handle,
		.region = EXS_REGION_NONE,
	};

	return exs_submit_op(q, &sqe);
}

static int start_connect(int fd, const struct sockaddr *addr, socklen_t len,
			 exs_qhandle_t q, exs_ahandle_t handle, bool foreign)
{
	if (submit_connect(fd, q, handle)) {
		/* connect(2) has to hear that the last attempt failed. */
		if (foreign && errno == ECONNABORTED)
			connect_nonblock(fd, addr, len);
		return -1;
	}
	if (!(foreign ? connect_nonblock : connect)(fd, addr, len) ||
	    errno == EINPROGRESS || errno == EINTR)
		return 0;
	withdraw(fd, q, handle);
	return -1;
}

static int connect_datagrams(int fd, const struct sockaddr *addr, socklen_t len,
			     exs_qhandle_t q, exs_ahandle_t handle)
{
	struct sockaddr_storage old = { .ss_family = AF_UNSPEC };
	socklen_t old_len = sizeof(old);
	int err;

	getpeername(fd, (struct sockaddr *)&old, &old_len);
	if (connect(fd, addr, len))
		return -1;
	if (!submit_connect(fd, q, handle))
		return 0;
	err = errno;
	connect(fd, (const struct sockaddr *)&old, old_len);
	errno = err;
	return -1;
}

static int connect_any(int fd, const struct sockaddr *addr, socklen_t len,
		       exs_qhandle_t q, exs_ahandle_t handle)
{
	bool foreign = !exs_is_native(fd);

	if (foreign && exs_int_option(fd, SO_TYPE) == SOCK_DGRAM)
		return connect_datagrams(fd, addr, len, q, handle);
	return start_connect(fd, addr, len, q, handle, foreign);
}

int exs_connect(int fd, const struct sockaddr *addr, socklen_t len, int flags,
		exs_qhandle_t queue, exs_ahandle_t handle)
{
	int ret, state;

	if (flags) {
		errno = EINVAL;
		return -1;
	}
	if (queue == EXS_QHANDLE_INVALID)
		return connect(fd, addr, len);
	/* connect(2) is a cancellation point: not between the two halves. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = connect_any(fd, addr, len, queue, handle);
	pthread_setcancelstate(state, NULL);
	return ret;
}
