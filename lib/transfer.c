// SPDX-License-Identifier: MIT
#include <errno.h>

#include "lib.h"

/* The limit of an int; a plain call does not transfer more either. */
#define PLAIN_MAX	0x7ffff000UL

static size_t plain_len(size_t len)
{
	return len < PLAIN_MAX ? len : PLAIN_MAX;
}

static int transfer(struct exs_sqe *sqe, exs_qhandle_t q, exs_mhandle_t region)
{
	if (region == EXS_MHANDLE_INVALID) {
		errno = EINVAL;
		return -1;
	}
	sqe->region = region;
	return exs_submit_op(q, sqe);
}

int exs_send(int fd, const void *buf, size_t len, int flags,
	     exs_qhandle_t queue, exs_ahandle_t handle, exs_mhandle_t region)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SEND,
		.fd = fd,
		.handle = handle,
		.addr = (uintptr_t)buf,
		.len = len,
		.msg_flags = flags,
	};

	if (queue == EXS_QHANDLE_INVALID)
		return send(fd, buf, plain_len(len), flags);
	return transfer(&sqe, queue, region);
}

int exs_recv(int fd, void *buf, size_t len, int flags,
	     exs_qhandle_t queue, exs_ahandle_t handle, exs_mhandle_t region)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_RECV,
		.fd = fd,
		.handle = handle,
		.addr = (uintptr_t)buf,
		.len = len,
		.msg_flags = flags,
	};

	if (queue == EXS_QHANDLE_INVALID)
		return recv(fd, buf, plain_len(len), flags);
	return transfer(&sqe, queue, region);
}
