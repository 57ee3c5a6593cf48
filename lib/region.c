// SPDX-License-Identifier: MIT
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

static unsigned int region_flags(int flags)
{
	if (!(flags & (EXS_ACCESS_READ | EXS_ACCESS_WRITE)))
		flags |= EXS_ACCESS_READ | EXS_ACCESS_WRITE;
	/* After an exec the memory is gone, but would stay pinned. */
	return (flags & EXS_ACCESS_READ ? EXS_MREG_READ : 0) |
	       (flags & EXS_ACCESS_WRITE ? EXS_MREG_WRITE : 0) |
	       EXS_MREG_CLOEXEC;
}

exs_mhandle_t exs_mregister(void *addr, size_t len, int flags)
{
	struct exs_ioc_mreg r = {
		.size = sizeof(r),
		.flags = region_flags(flags),
		.addr = (uintptr_t)addr,
		.len = len,
	};
	int region;

	if (flags & ~(EXS_ACCESS_READ | EXS_ACCESS_WRITE | EXS_MRF_SHARED)) {
		errno = EINVAL;
		return EXS_MHANDLE_INVALID;
	}
	region = exs_module_ioctl(EXS_IOC_MREG, &r);
	return region < 0 ? EXS_MHANDLE_INVALID : region;
}

int exs_mderegister(exs_mhandle_t region)
{
	if (ioctl(region, EXS_IOC_REGION)) {
		if (errno == ENOTTY)
			errno = EINVAL;
		return -1;
	}
	return close(region);
}
