// SPDX-License-Identifier: MIT
#include <errno.h>
#include <unistd.h>

#include "lib.h"

/* The kernel closes the descriptor and starts the operation, or does neither. */
int exs_close(int fd, int flags, exs_qhandle_t queue, exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_CLOSE,
		.fd = fd,
		.handle = handle,
		.region = EXS_REGION_NONE,
	};

	if (flags) {
		errno = EINVAL;
		return -1;
	}
	if (queue == EXS_QHANDLE_INVALID)
		return close(fd);
	return exs_submit_op(queue, &sqe);
}
