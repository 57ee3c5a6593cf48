// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: pinning, charging, and the descriptors (see region.h).
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "../../compat/compat.h"
#include "../../core/sock.h"
#include "../../core/stats.h"
#include "arg.h"
#include "range.h"
#include "region.h"

/* Pages pinned or unpinned in one go: an array of one page. */
#define EXS_PIN_BATCH	(PAGE_SIZE / sizeof(struct page *))
#define EXS_UNPIN_BATCH	32

#define EXS_MREG_ACCESS	(EXS_MREG_READ | EXS_MREG_WRITE)

static int exs_memlock_charge(struct exs_net *xn, struct mm_struct *mm,
			      unsigned long npages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(npages, &mm->pinned_vm);

	if (now <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(npages, &mm->pinned_vm);
	exs_count(xn, region_memlock, 1);
	return -ENOMEM;
}

static int exs_region_charge(struct exs_region *r)
{
	int err = exs_memlock_charge(r->xn, current->mm, r->npages);

	if (err)
		return err;
	err = exs_limit_charge(EXS_LIMIT_PAGES, r->npages, &r->user);
	if (err) {
		atomic64_sub(r->npages, &current->mm->pinned_vm);
		return err;
	}
	mmgrab(current->mm);
	r->mm = current->mm;
	return 0;
}

static void exs_region_uncharge(struct exs_region *r)
{
	if (!r->mm)
		return;
	exs_limit_uncharge(EXS_LIMIT_PAGES, r->npages, r->user);
	atomic64_sub(r->npages, &r->mm->pinned_vm);
	mmdrop(r->mm);
}

static void exs_region_unpin(struct exs_region *r)
{
	struct page *pages[EXS_UNPIN_BATCH];
	unsigned long done = 0;
	bool dirty = READ_ONCE(r->written);
	unsigned int i, n;

	while (done < r->pinned) {
		n = min_t(unsigned long, r->pinned - done, ARRAY_SIZE(pages));
		for (i = 0; i < n; i++)
			pages[i] = r->bvec[done + i].bv_page;
		unpin_user_pages_dirty_lock(pages, n, dirty);
		done += n;
		cond_resched();
	}
	exs_live(r->xn, pinned_pages, -(long)r->pinned);
}

static void exs_region_free(struct exs_region *r)
{
	struct exs_net *xn = r->xn;

	exs_watch_end(&r->watch);
	exs_region_unpin(r);
	exs_region_uncharge(r);
	kvfree(r->bvec);
	kfree(r);
	exs_live(xn, regions, -1);
	exs_net_put(xn);
}

void exs_region_release(struct kref *ref)
{
	exs_region_free(container_of(ref, struct exs_region, ref));
}

/* Pin up to a batch more. Return: pages pinned, or a negative errno. */
static int exs_region_pin_some(struct exs_region *r, struct page **pages)
{
	unsigned long at = (r->addr & PAGE_MASK) + (r->pinned << PAGE_SHIFT);
	int i, n = min_t(unsigned long, r->npages - r->pinned, EXS_PIN_BATCH);

	if (r->flags & EXS_MREG_WRITE)
		n = exs_pin_to_write(at, n, pages);
	else
		n = exs_pin_to_read(at, n, pages);
	for (i = 0; i < n; i++)
		bvec_set_page(&r->bvec[r->pinned + i], pages[i], PAGE_SIZE, 0);
	return n ?: -EFAULT;
}

static int exs_region_pin(struct exs_region *r)
{
	struct page **pages = kmalloc_array(EXS_PIN_BATCH, sizeof(*pages),
					    GFP_KERNEL);
	int n = 0;

	if (!pages)
		return -ENOMEM;
	while (r->pinned < r->npages) {
		n = fatal_signal_pending(current) ? -EINTR :
						    exs_region_pin_some(r, pages);
		if (n < 0)
			break;
		r->pinned += n;
		exs_live(r->xn, pinned_pages, n);
		cond_resched();
	}
	kfree(pages);
	return n < 0 ? n : 0;
}

/* The array is allocated after the charge: its size is limited by that. */
static int exs_region_fill(struct exs_region *r)
{
	int err = exs_region_charge(r);

	if (err)
		return err;
	if (r->npages > INT_MAX / sizeof(*r->bvec))
		return -ENOMEM;
	r->bvec = kvmalloc_array(r->npages, sizeof(*r->bvec), GFP_KERNEL_ACCOUNT);
	if (!r->bvec)
		return -ENOMEM;
	return exs_region_pin(r);
}

static struct exs_region *exs_region_new(u64 addr, u64 len, u32 flags)
{
	struct exs_region *r;

	addr = untagged_addr(addr);
	if (!len || !exs_range_valid(addr, len))
		return ERR_PTR(len ? -EFAULT : -EINVAL);
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return ERR_PTR(-ENOMEM);
	kref_init(&r->ref);
	r->xn = exs_net_get(exs_net_current());
	r->addr = addr;
	r->len = len;
	r->flags = flags;
	r->npages = exs_range_pages(addr, len);
	exs_live(r->xn, regions, 1);
	return r;
}

struct exs_region *exs_region_oneshot(u64 addr, u64 len, u32 access)
{
	struct exs_region *r = exs_region_new(addr, len, access);
	int err;

	if (IS_ERR(r))
		return r;
	err = exs_region_fill(r);
	if (!err)
		return r;
	exs_region_free(r);
	return ERR_PTR(err);
}

static struct exs_region *exs_region_register(u64 addr, u64 len, u32 flags)
{
	struct exs_region *r = exs_region_new(addr, len, flags);
	int err;

	if (IS_ERR(r))
		return r;
	/* Before pinning: an unmapping that comes between is noticed. */
	err = exs_watch_begin(&r->watch, r->addr & PAGE_MASK, r->npages << PAGE_SHIFT);
	if (!err)
		err = exs_region_fill(r);
	if (!err)
		return r;
	exs_region_free(r);
	return ERR_PTR(err);
}

static int exs_region_file_release(struct inode *inode, struct file *file)
{
	exs_region_put(file->private_data);
	return 0;
}

/* Only the owner may see addresses. */
static void exs_region_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct exs_region *r = file->private_data;

	if (current->mm == r->mm)
		seq_printf(m, "exs-addr:\t0x%llx\n", r->addr);
	seq_printf(m, "exs-len:\t%llu\n", r->len);
	seq_printf(m, "exs-pages:\t%lu\n", r->npages);
	seq_printf(m, "exs-access:\t%s%s\n", r->flags & EXS_MREG_READ ? "r" : "",
		   r->flags & EXS_MREG_WRITE ? "w" : "");
	seq_printf(m, "exs-stale:\t%d\n", exs_watch_unmapped(&r->watch));
	seq_printf(m, "exs-in-use:\t%u\n", kref_read(&r->ref) - 1);
}

/* Only distinguishes regions from other descriptors. */
static long exs_region_file_ioctl(struct file *file, unsigned int cmd,
				  unsigned long arg)
{
	return cmd == EXS_IOC_REGION ? 0 : -ENOTTY;
}

static const struct file_operations exs_region_fops = {
	.owner = THIS_MODULE,
	.release = exs_region_file_release,
	.unlocked_ioctl = exs_region_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = exs_region_show_fdinfo,
	.llseek = noop_llseek,
};

exs_hot
struct exs_region *exs_region_get(int fd)
{
	struct file *file = fget(fd);
	struct exs_region *r = ERR_PTR(-EINVAL);

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == &exs_region_fops) {
		r = file->private_data;
		kref_get(&r->ref);
	}
	fput(file);
	return r;
}

exs_hot
int exs_region_use(struct exs_region *r, u64 addr, u64 len, u32 access,
		   struct iov_iter *iter)
{
	bool dest = access == EXS_MREG_WRITE;

	addr = untagged_addr(addr);
	if (!exs_range_inside(r->addr, r->len, addr, len))
		return -EINVAL;
	if ((r->flags & access) != access)
		return -EACCES;
	if (exs_watch_unmapped(&r->watch)) {
		exs_count(r->xn, region_stale, 1);
		return -EFAULT;
	}
	if (dest)
		WRITE_ONCE(r->written, true);
	iov_iter_bvec(iter, dest ? ITER_DEST : ITER_SOURCE,
		      r->bvec + exs_range_page(r->addr, addr),
		      exs_range_pages(addr, len), len);
	/* Every bio_vec is one page. */
	if (len)
		iter->iov_offset = offset_in_page(addr);
	return 0;
}

int exs_region_ioctl(void __user *arg)
{
	struct exs_ioc_mreg m;
	struct exs_region *r;
	int fd, err;

	err = exs_ioc_get(&m, sizeof(m), EXS_MREG_SIZE_VER0, arg);
	if (err)
		return err;
	if (m.flags & ~(EXS_MREG_ACCESS | EXS_MREG_CLOEXEC) ||
	    !(m.flags & EXS_MREG_ACCESS))
		return -EINVAL;
	r = exs_region_register(m.addr, m.len, m.flags & EXS_MREG_ACCESS);
	if (IS_ERR(r))
		return PTR_ERR(r);
	fd = anon_inode_getfd("[exs-region]", &exs_region_fops, r,
			      O_RDWR | (m.flags & EXS_MREG_CLOEXEC ? O_CLOEXEC : 0));
	if (fd < 0)
		exs_region_put(r);
	return fd;
}
