// SPDX-License-Identifier: MIT
/*
 * The operation only arms the socket. The real connect(2) starts the attempt, so that
 * security modules see it. An armed socket does not block: connect(2) returns EINPROGRESS
 * (or EINTR), and the event follows. With any other error there is no event: the socket has
 * dropped the operation; or the call did not reach the socket (EFAULT, a security module),
 * and the operation is withdrawn.
 *
 * An ordinary socket cannot be armed: it is made non-blocking during the call, and the
 * operation waits for the result. A datagram socket is connected at once, and may be
 * connected again: if the operation fails, it gets back its previous peer.
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
 * The flag belongs to the open file, which other threads and processes share. There is no
 * other way to connect without waiting that security modules see, so it is set during
 * connect(2), which then does not sleep. Other calls on the same file do not wait during
 * this time. Flags that other threads or processes change meanwhile stay; if they set this one,
 * that is lost.
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

/* Whether the operation continues after this result of connect(2). */
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
	/* connect(2) must report that the last attempt failed. */
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
	/* connect(2) is a cancellation point, but the two halves belong together. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = connect_any(fd, addr, len, queue, handle);
	pthread_setcancelstate(state, NULL);
	return ret;
}
