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

/*
 * The flag belongs to the open file, which other threads and processes share. No call
 * connects without waiting but for it, and sees the security modules: so it is set for
 * the time of connect(2), which then does not sleep. Meanwhile other calls on the same
 * file do not wait, either. Flags that others change in between stay; if they set
 * this one, it is lost.
 */
static int connect_nonblock(int fd, const struct sockaddr *addr, socklen_t len)
{
	int flags = fcntl(fd, F_GETFL), ret, err;

	if (flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return connect(fd, addr, len);
	ret = connect(fd, addr, len);
	err = errno;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	errno = err;
	return ret;
}

static int submit_connect(int fd, exs_qhandle_t q, exs_ahandle_t handle, unsigned int flags)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_CONNECT,
		.fd = fd,
		.handle = handle,
		.region = EXS_REGION_NONE,
		.flags = flags,
	};

	return exs_submit_op(q, &sqe);
}

/* What connect(2) said: whether the operation goes on. */
static int started(int ret, int fd, exs_qhandle_t q, exs_ahandle_t handle)
{
	if (!ret || errno == EINPROGRESS || errno == EINTR)
		return 0;
	withdraw(fd, q, handle);
	return -1;
}

static int connect_stream(int fd, const struct sockaddr *addr, socklen_t len,
			  exs_qhandle_t q, exs_ahandle_t handle)
{
	if (!submit_connect(fd, q, handle, 0))
		return started(connect_nonblock(fd, addr, len), fd, q, handle);
	/* connect(2) has to hear that the last attempt failed. */
	if (errno == ECONNABORTED)
		connect_nonblock(fd, addr, len);
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
	if (!submit_connect(fd, q, handle, 0))
		return 0;
	err = errno;
	connect(fd, (const struct sockaddr *)&old, old_len);
	errno = err;
	return -1;
}

static int connect_any(int fd, const struct sockaddr *addr, socklen_t len,
		       exs_qhandle_t q, exs_ahandle_t handle)
{
	if (!submit_connect(fd, q, handle, EXS_SQE_EXS_ONLY))
		return started(connect(fd, addr, len), fd, q, handle);
	if (errno != EAFNOSUPPORT)
		return -1;
	if (exs_int_option(fd, SO_TYPE) == SOCK_DGRAM)
		return connect_datagrams(fd, addr, len, q, handle);
	return connect_stream(fd, addr, len, q, handle);
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
