// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues: the object, its descriptor and mappings, reserving slots and
 * posting completions. ring.h explains the ring.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../../compat/compat.h"
#include "../../core/sock.h"
#include "../../core/stats.h"
#include "../memory/arg.h"
#include "inflight.h"
#include "mm.h"
#include "queue.h"
#include "timeout.h"
#include "token.h"

/* Operations are charged in batches of this size, as most queues soon have as many again. */
#define EXS_OPS_CHARGE	64

static atomic64_t exs_queue_last_id = ATOMIC64_INIT(0);

/*
 * Memory
 */

static void exs_queue_free_pages(struct exs_queue *q)
{
	unsigned long i;

	for (i = 0; i < q->npages && q->pages[i]; i++)
		__free_page(q->pages[i]);
	kvfree(q->pages);
}

static int exs_queue_alloc_pages(struct exs_queue *q)
{
	unsigned long i;

	q->pages = kvcalloc(q->npages, sizeof(*q->pages), GFP_KERNEL_ACCOUNT);
	if (!q->pages)
		return -ENOMEM;
	for (i = 0; i < q->npages; i++) {
		q->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!q->pages[i])
			goto fail;
		cond_resched();
	}
	q->mem = vmap(q->pages, q->npages, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	if (q->mem)
		return 0;
fail:
	exs_queue_free_pages(q);
	return -ENOMEM;
}

static int exs_queue_charge(struct exs_queue *q)
{
	int err = exs_limit_charge(EXS_LIMIT_QUEUES, 1, &q->user);

	if (err)
		return err;
	err = exs_limit_charge(EXS_LIMIT_PAGES, q->npages, &q->page_user);
	if (err)
		exs_limit_uncharge(EXS_LIMIT_QUEUES, 1, q->user);
	return err;
}

static void exs_queue_uncharge(struct exs_queue *q)
{
	for (; q->charged; q->charged -= EXS_OPS_CHARGE)
		exs_limit_uncharge(EXS_LIMIT_OPS, EXS_OPS_CHARGE, q->user);
	exs_limit_uncharge(EXS_LIMIT_PAGES, q->npages, q->page_user);
	exs_limit_uncharge(EXS_LIMIT_QUEUES, 1, q->user);
}

static void exs_queue_init(struct exs_queue *q, u32 depth)
{
	unsigned int i;

	kref_init(&q->ref);
	spin_lock_init(&q->lock);
	exs_slots_init(&q->slots, depth);
	q->npages = 2 + PFN_UP((size_t)q->slots.capacity * sizeof(struct exs_cqe));
	INIT_LIST_HEAD(&q->ops);
	for (i = 0; i < ARRAY_SIZE(q->sock_ops); i++)
		INIT_LIST_HEAD(&q->sock_ops[i]);
	INIT_LIST_HEAD(&q->walks);
	exs_timeouts_open(q);
	INIT_LIST_HEAD(&q->links);
	INIT_LIST_HEAD(&q->sleepers);
	init_waitqueue_head(&q->poll);
	xa_init_flags(&q->tokens, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	mutex_init(&q->claim_mutex);
	INIT_LIST_HEAD(&q->unread_tokens);
	INIT_LIST_HEAD(&q->read_tokens);
	INIT_LIST_HEAD(&q->claimed_tokens);
}

static void exs_queue_init_ring(struct exs_queue *q)
{
	struct exs_ring *ring = exs_queue_ring(q);

	q->id = atomic64_inc_return(&exs_queue_last_id);
	ring->id = q->id;
	ring->epoch = 1;
	ring->mask = q->slots.capacity - 1;
	ring->entry_size = sizeof(struct exs_cqe);
}

static struct exs_queue *exs_queue_new(u32 depth)
{
	struct exs_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	int err;

	if (!q)
		return ERR_PTR(-ENOMEM);
	exs_queue_init(q, depth);
	q->xn = exs_net_get(exs_net_current());
	err = exs_queue_charge(q);
	if (err)
		goto out_free;
	err = exs_queue_alloc_pages(q);
	if (err)
		goto out_uncharge;
	exs_queue_init_ring(q);
	exs_live(q->xn, queues, 1);
	return q;

out_uncharge:
	exs_queue_uncharge(q);
out_free:
	exs_net_put(q->xn);
	kfree(q);
	return ERR_PTR(err);
}

/* Pages that are still mapped have references of their own. */
void exs_queue_release(struct kref *ref)
{
	struct exs_queue *q = container_of(ref, struct exs_queue, ref);
	struct exs_net *xn = q->xn;

	exs_mm_unlink_all(q);
	exs_queue_put_eventfd(q);
	xa_destroy(&q->tokens);
	vunmap(q->mem);
	exs_queue_free_pages(q);
	exs_queue_uncharge(q);
	kfree(q);
	exs_live(xn, queues, -1);
	exs_net_put(xn);
}

/*
 * Slots
 */

void exs_queue_consumed(struct exs_queue *q)
{
	lockdep_assert_held(&q->lock);
	exs_tokens_consumed(q);
	exs_timeouts_consumed(q);
}

u32 exs_queue_catch_up(struct exs_queue *q)
	__must_hold(&q->lock)
{
	u32 unread = exs_queue_unread(q);

	while (q->behind) {
		q->behind = false;
		cond_resched_lock(&q->lock);
		unread = exs_queue_unread(q);
	}
	return unread;
}

/* All or none. */
static bool exs_queue_take_slots(struct exs_queue *q, const struct exs_op *op)
{
	if (!exs_slots_reserve(&q->slots))
		return false;
	if (!op->timer || !exs_timeout_has_slot(op) || exs_slots_reserve(&q->slots))
		return true;
	exs_slots_unreserve(&q->slots);
	return false;
}

static u32 exs_queue_chargeable(const struct exs_queue *q)
{
	lockdep_assert_held(&q->lock);
	return q->inflight + q->offers;
}

/* The user may have one more operation: 0 or -ENOBUFS. */
static int exs_queue_charge_op(struct exs_queue *q)
{
	int err;

	if (exs_queue_chargeable(q) < q->charged)
		return 0;
	err = exs_limit_charge_user(q->xn, EXS_LIMIT_OPS, EXS_OPS_CHARGE, q->user);
	if (!err)
		q->charged += EXS_OPS_CHARGE;
	return err;
}

/* Not at once: an operation may become an offer next, and an offer an operation. */
void exs_queue_uncharge_op(struct exs_queue *q)
{
	if (q->charged < exs_queue_chargeable(q) + 2 * EXS_OPS_CHARGE)
		return;
	q->charged -= EXS_OPS_CHARGE;
	exs_limit_uncharge(EXS_LIMIT_OPS, EXS_OPS_CHARGE, q->user);
}

static int exs_queue_admit(struct exs_queue *q, struct exs_op *op)
{
	int err = exs_queue_charge_op(q);

	if (err)
		return err;
	if (exs_queue_take_slots(q, op))
		return 0;
	exs_count(q->xn, queue_full, 1);
	return -EAGAIN;
}

/* It is among the operations in flight. */
static void exs_queue_enter(struct exs_queue *q, struct exs_op *op)
{
	lockdep_assert_held(&q->lock);
	list_move_tail(&op->node, &q->ops);
	list_add_tail(&op->sock_node, exs_queue_ops_of(q, op->sk));
	op->inflight = true;
	op->submitted = exs_mm_now(op->link);
	op->link->inflight++;
	q->inflight++;
	q->submitted++;
	exs_count(q->xn, ops_submitted, 1);
}

exs_hot
int exs_queue_reserve(struct exs_queue *q, struct exs_op *op)
{
	int err;

	spin_lock(&q->lock);
	exs_queue_catch_up(q);
	err = exs_queue_admit(q, op);
	if (!err)
		exs_queue_enter(q, op);
	spin_unlock(&q->lock);
	return err;
}

static void exs_queue_forget(struct exs_queue *q, struct exs_op *op)
{
	lockdep_assert_held(&q->lock);
	if (!list_empty(&q->walks))
		exs_walks_leave(q, op);
	list_del_init(&op->node);
	list_del(&op->sock_node);
	op->inflight = false;
	op->link->inflight--;
	q->inflight--;
	exs_queue_uncharge_op(q);
	if (op->timer)
		exs_timeout_end(op);
}

void exs_queue_unreserve(struct exs_queue *q, struct exs_op *op)
{
	spin_lock(&q->lock);
	exs_queue_forget(q, op);
	exs_slots_unreserve(&q->slots);
	q->submitted--;
	spin_unlock(&q->lock);
	exs_count(q->xn, ops_submitted, -1);
}

void exs_queue_readmit(struct exs_queue *q, struct exs_op *op, struct exs_mm_link *link)
{
	lockdep_assert_held(&q->lock);
	op->link = link;
	exs_queue_enter(q, op);
}

exs_hot
static void exs_queue_write(struct exs_queue *q, const struct exs_cqe *cqe)
{
	lockdep_assert_held(&q->lock);
	exs_queue_entries(q)[exs_slots_next(&q->slots)] = *cqe;
	exs_slots_posted(&q->slots);
	/* (A) */
	smp_store_release(&exs_queue_ring(q)->tail, q->slots.tail);
}

/*
 * The head is not read here: the slot was free when it was reserved. (Threads
 * that are notified, or request a slot, read it.)
 */
exs_hot
bool exs_queue_post(struct exs_queue *q, struct exs_op *op, struct exs_cqe *cqe)
{
	bool dead, late;

	spin_lock(&q->lock);
	exs_queue_forget(q, op);
	dead = q->dead;
	late = cqe->token && exs_token_is_late(op);
	if (late)
		*cqe = exs_op_cqe(op, -ECANCELED, 0, 0);
	if (!dead) {
		if (cqe->token)
			exs_token_add(q, op);
		exs_count(q->xn, ops_posted, 1);
		exs_queue_write(q, cqe);
		q->posted++;
		exs_queue_notify_locked(q);
	}
	spin_unlock(&q->lock);
	if (dead) {
		exs_count(q->xn, ops_discarded, 1);
		return false;
	}
	exs_queue_notify(q);
	return !late;
}

void exs_queue_post_token(struct exs_queue *q, struct exs_op *op, const struct exs_cqe *cqe)
{
	lockdep_assert_held(&q->lock);
	exs_token_add(q, op);
	exs_queue_write(q, cqe);
	exs_queue_notify_locked(q);
}

void exs_queue_timed_out(struct exs_queue *q, const struct exs_cqe *cqe)
{
	exs_count(q->xn, ops_timed_out, 1);
	exs_queue_write(q, cqe);
	q->timed_out++;
	exs_queue_notify_locked(q);
}

/*
 * The descriptor
 */

static bool exs_match_all(const struct exs_op *op, const void *arg)
{
	return true;
}

/* No ioctl is under way: each holds the file. */
int exs_queue_file_release(struct inode *inode, struct file *file)
{
	struct exs_queue *q = file->private_data;
	LIST_HEAD(ops);

	spin_lock(&q->lock);
	q->dead = true;
	spin_unlock(&q->lock);
	exs_queue_collect(q, NULL, exs_match_all, NULL, &ops);
	exs_ops_cancel(&ops);
	exs_timeouts_close(q);
	exs_tokens_drop(q);
	exs_queue_put(q);
	return 0;
}

/*
 * Every close(2) of a descriptor of this queue, in any process: the number may
 * be another file's from now on, so libraries that cached its meaning must look
 * again. See also wait.c.
 */
int exs_queue_flush(struct file *file, fl_owner_t id)
{
	struct exs_queue *q = file->private_data;
	struct exs_ring *ring = exs_queue_ring(q);

	spin_lock(&q->lock);
	/* A thread that sees the new number sees the close first. */
	smp_store_release(&ring->epoch, ring->epoch + 1);
	exs_queue_wake(q, true);
	spin_unlock(&q->lock);
	exs_mm_end_all(q);
	exs_mm_end_polls(q, id);
	return 0;
}

/*
 * Map the head's page, which programs may write, or the ring, which they may only
 * read, now and later. remap_vmalloc_range() refuses anything beyond their
 * ends. A private mapping would be useless.
 */
int exs_queue_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct exs_queue *q = file->private_data;
	bool head = vma->vm_pgoff == EXS_MMAP_HEAD >> PAGE_SHIFT;
	unsigned long ring = EXS_MMAP_RING >> PAGE_SHIFT;

	BUILD_BUG_ON(EXS_MMAP_RING % PAGE_SIZE);
	if (!(vma->vm_flags & VM_SHARED) || (!head && vma->vm_pgoff < ring))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC || (vma->vm_flags & VM_WRITE && !head))
		return -EPERM;
	if (head && vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	vm_flags_clear(vma, head ? VM_MAYEXEC : VM_MAYWRITE | VM_MAYEXEC);
	/* In q->mem they are next to each other. */
	return remap_vmalloc_range(vma, q->mem, head ? 0 : vma->vm_pgoff - ring + 1);
}

void exs_queue_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct exs_queue *q = file->private_data;
	struct exs_slots slots;
	u64 submitted, posted, timed_out;

	spin_lock(&q->lock);
	exs_queue_catch_up(q);
	slots = q->slots;
	submitted = q->submitted;
	posted = q->posted;
	timed_out = q->timed_out;
	spin_unlock(&q->lock);
	seq_printf(m, "exs-id:\t%llu\n", q->id);
	seq_printf(m, "exs-depth:\t%u\n", slots.depth);
	seq_printf(m, "exs-capacity:\t%u\n", slots.capacity);
	seq_printf(m, "exs-unread:\t%u\n", exs_slots_unread(&slots));
	seq_printf(m, "exs-reserved:\t%u\n", slots.reserved);
	seq_printf(m, "exs-submitted:\t%llu\n", submitted);
	seq_printf(m, "exs-posted:\t%llu\n", posted);
	seq_printf(m, "exs-timed-out:\t%llu\n", timed_out);
}

bool exs_queue_is(const struct file *file)
{
	return file->f_op == &exs_queue_fops;
}

static int exs_queue_open(struct exs_queue *q, struct exs_ioc_qcreate *c,
			  void __user *arg)
{
	int flags = O_RDWR | (c->flags & EXS_QF_CLOEXEC ? O_CLOEXEC : 0);
	struct file *file;
	int fd = get_unused_fd_flags(flags);

	if (fd < 0)
		return fd;
	c->capacity = q->slots.capacity;
	c->ring_size = (u64)(q->npages - 1) << PAGE_SHIFT;
	if (exs_ioc_put(arg, c, sizeof(*c))) {
		put_unused_fd(fd);
		return -EFAULT;
	}
	file = anon_inode_getfile("[exs-queue]", &exs_queue_fops, q, flags);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

int exs_queue_create(void __user *arg)
{
	struct exs_ioc_qcreate c;
	struct exs_queue *q;
	int ret = exs_ioc_get(&c, sizeof(c), EXS_QCREATE_SIZE_VER0, arg);

	if (ret)
		return ret;
	if (c.flags & ~EXS_QF_CLOEXEC || !c.depth || c.depth > EXS_QUEUE_DEPTH_MAX)
		return -EINVAL;
	if (c.capacity || c.ring_size)
		return -EINVAL;
	q = exs_queue_new(c.depth);
	if (IS_ERR(q))
		return PTR_ERR(q);
	ret = exs_queue_open(q, &c, arg);
	if (ret < 0)
		exs_queue_put(q);
	return ret;
}
