// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of ioctls (see arg.h).
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../proto/env.h"
#include "arg.h"

exs_hot
int exs_ioc_get(void *dst, size_t size, size_t first, const void __user *arg)
{
	u32 usize;
	int err;

	if (get_user(usize, (const u32 __user *)arg))
		return -EFAULT;
	if (usize < first)
		return -EINVAL;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(dst, size, arg, usize);
	/* Another thread may have changed it meanwhile. */
	*(u32 *)dst = usize;
	return err;
}

int exs_ioc_put(void __user *arg, const void *src, size_t size)
{
	u32 usize = *(const u32 *)src;

	return copy_to_user(arg, src, min_t(size_t, size, usize)) ? -EFAULT : 0;
}
