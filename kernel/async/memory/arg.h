/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arguments of ioctls: they begin with their size, as the caller knows it.
 */
#ifndef EXS_ASYNC_ARG_H
#define EXS_ASYNC_ARG_H

#include <linux/types.h>

/**
 * exs_ioc_get() - copy an ioctl's argument in
 * @dst: the copy; fields that the program does not know become zero
 * @size: sizeof(*dst); its first member is u32 size, and becomes the program's
 * @first: the size of its first version, EXS_*_SIZE_VER0
 * @arg: the program's
 *
 * Return: 0; -EFAULT; -EINVAL: shorter than @first; -E2BIG: longer than @size,
 * and not zero there.
 */
int exs_ioc_get(void *dst, size_t size, size_t first, const void __user *arg);

/* Copy back the fields that the program knows. Return: 0, -EFAULT. */
int exs_ioc_put(void __user *arg, const void *src, size_t size);

#endif
