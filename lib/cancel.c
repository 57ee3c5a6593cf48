// SPDX-License-Identifier: MIT
#include <errno.h>
#include <sys/ioctl.h>

#include "lib.h"

static unsigned int cancel_flags(int flags)
{
	return (flags & EXS_CAF_FILDES ? EXS_CANCEL_FD : 0) |
	       (flags & EXS_CAF_AHANDLE ? EXS_CANCEL_HANDLE : 0);
}

/* A call without an effect fails: then no event follows. */
int exs_cancel(exs_qhandle_t queue, int fd, exs_ahandle_t handle, int flags)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c),
		.flags = cancel_flags(flags),
		.fd = fd,
		.handle = handle,
	};

	if (flags & ~(EXS_CAF_FILDES | EXS_CAF_AHANDLE)) {
		errno = EINVAL;
		return -1;
	}
	if (!ioctl(queue, EXS_IOC_CANCEL, &c)) {
		if (c.count)
			return 0;
		errno = ENOENT;
	}
	if (errno == ENOTTY)
		errno = EINVAL;
	return -1;
}
