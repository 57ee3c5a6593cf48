/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of programs. Above all memory regions: user pages pinned for long.
 *
 *   region.h, region.c		one region
 *   watch.h, watch.c		whether a range is unmapped
 *   range.h			arithmetic of addresses
 *   vector.h, vector.c		memory in several pieces
 *   zerocopy.h, zerocopy.c	that of a plain call that is not copied
 *   arg.h, arg.c		arguments of ioctls
 *
 * There are no locks but that of watch.c: only the marks of a region change.
 *
 * A registered region is a descriptor; a one-shot region lives as long as the
 * one operation that it was made for. Both are charged once, when pinned, to
 * mm->pinned_vm under RLIMIT_MEMLOCK and to the user's cap of pinned pages.
 *
 * The descriptor and every operation that uses the region hold a reference. The
 * last one unpins, in process context with no lock held. A region holds
 * mm_count, for the charge, and never mm_users: it does not keep an address
 * space alive.
 *
 * The pages are those of the process that registered them. In a child of fork()
 * a region of shared memory works as expected. A region of private memory still
 * means the parent's pages, because fork() gives the child copies of pinned
 * pages.
 *
 * Stale: when the process unmaps (munmap, mremap, mmap over it) any of the range,
 * addresses there may refer to other memory later, while the region still refers
 * to the old pages. So later operations get EFAULT. Nothing else makes a region
 * stale: migration and reclaim leave pinned pages alone, copy-on-write after
 * fork() gives the copy to the child, and after the end of the address space no thread uses its
 * addresses, while a child may still use shared memory. madvise(MADV_DONTNEED) on a region looks
 * like copy-on-write and is not noticed: the region keeps the old pages.
 */
#ifndef EXS_ASYNC_REGION_H
#define EXS_ASYNC_REGION_H

#include <linux/bvec.h>
#include <linux/kref.h>
#include <linux/uio.h>
#include <linux/exs.h>

#include "watch.h"

struct exs_net;
struct exs_user;

/**
 * struct exs_region - see above
 * @ref: descriptor and operations
 * @xn: where it counts; a reference
 * @addr: first byte, as the program named it
 * @len: bytes
 * @flags: EXS_MREG_READ, EXS_MREG_WRITE
 * @npages: pages
 * @pinned: those of them that are pinned (differs while being made)
 * @bvec: one per page, whole pages, in order
 * @mm: charged; mm_count
 * @user: charged
 * @watch: notices that some of the range is unmapped: then the region is stale
 * @written: an operation may have written to the pages
 */
struct exs_region {
	struct kref ref;
	struct exs_net *xn;
	u64 addr;
	u64 len;
	u32 flags;
	unsigned long npages;
	unsigned long pinned;
	struct bio_vec *bvec;
	struct mm_struct *mm;
	struct exs_user *user;
	struct exs_watch watch;
	bool written;
};

/* EXS_IOC_MREG. Return: a descriptor or a negative errno. */
int exs_region_ioctl(void __user *arg);

/* By descriptor, with a reference: ERR_PTR(-EBADF), -EINVAL: no region. */
struct exs_region *exs_region_get(int fd);

/* For one operation. @access: EXS_MREG_*. ERR_PTR like an ioctl's errno. */
struct exs_region *exs_region_oneshot(u64 addr, u64 len, u32 access);

void exs_region_release(struct kref *ref);

static inline void exs_region_put(struct exs_region *r)
{
	kref_put(&r->ref, exs_region_release);
}

/**
 * exs_region_use() - let an operation use part of a region
 * @r: the region; the caller's reference must outlive the use of @iter
 * @addr: first byte
 * @len: bytes
 * @access: EXS_MREG_READ or EXS_MREG_WRITE
 * @iter: out: the pages
 *
 * Return: 0; -EINVAL: not inside; -EACCES: not registered for that; -EFAULT:
 * the region is stale.
 */
int exs_region_use(struct exs_region *r, u64 addr, u64 len, u32 access,
		   struct iov_iter *iter);

#endif
