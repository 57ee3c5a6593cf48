// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an address space cancels its operations.
 *
 * One mmu notifier per address space (mmu_notifier_get() finds it again) has a
 * list of links, one for each queue that the address space submitted to. On
 * release, that is when the last thread has exited or called exec, the
 * operations of that address space in these queues are cancelled, and only
 * those: a queue may be shared with parents and children. Their completions
 * are posted as usual, for whoever still has the queue.
 *
 * A link holds the notifier, which holds mm_count. It is owned by the queue and
 * stays as long as the queue, or until another address space joins and it
 * is seen to be over.
 */
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "mm.h"
#include "op.h"

struct exs_mm {
	struct mmu_notifier notifier;
	spinlock_t lock;		/* guards links */
	struct list_head links;		/* struct exs_mm_link */
};

static bool exs_mm_match(const struct exs_op *op, const void *mm)
{
	return op->link->mm == mm;
}

/*
 * No thread of this address space is left, so no submission is under way. The
 * links stay: a queue removes its own under @lock before it is freed, so the
 * queues on the list are there, too.
 */
static void exs_mm_notify_release(struct mmu_notifier *notifier,
				  struct mm_struct *mm)
{
	struct exs_mm *m = container_of(notifier, struct exs_mm, notifier);
	struct exs_mm_link *link;
	LIST_HEAD(ops);

	spin_lock(&m->lock);
	list_for_each_entry(link, &m->links, mm_node)
		exs_queue_collect(link->queue, exs_mm_match, m, &ops);
	spin_unlock(&m->lock);
	exs_ops_cancel(&ops);
}

static struct mmu_notifier *exs_mm_alloc(struct mm_struct *mm)
{
	struct exs_mm *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->links);
	return &m->notifier;
}

static void exs_mm_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct exs_mm, notifier));
}

static const struct mmu_notifier_ops exs_mm_ops = {
	.release = exs_mm_notify_release,
	.alloc_notifier = exs_mm_alloc,
	.free_notifier = exs_mm_free,
};

static struct exs_mm_link *exs_mm_link_find(struct exs_queue *q)
{
	struct exs_mm_link *link;

	lockdep_assert_held(&q->lock);
	list_for_each_entry(link, &q->links, queue_node)
		if (link->mm->notifier.mm == current->mm)
			return link;
	return NULL;
}

static void exs_mm_link_free(struct exs_mm_link *link)
{
	struct exs_mm *m = link->mm;

	spin_lock(&m->lock);
	list_del(&link->mm_node);
	spin_unlock(&m->lock);
	mmu_notifier_put(&m->notifier);
	kfree(link);
}

static void exs_mm_link_free_all(struct list_head *links)
{
	struct exs_mm_link *link, *next;

	list_for_each_entry_safe(link, next, links, queue_node)
		exs_mm_link_free(link);
}

static bool exs_mm_link_over(const struct exs_mm_link *link)
{
	return !link->inflight && !atomic_read(&link->mm->notifier.mm->mm_users);
}

/* Two threads may do this at once; two links do no harm. */
static void exs_mm_link_insert(struct exs_queue *q, struct exs_mm_link *new)
{
	struct exs_mm_link *link, *next;
	LIST_HEAD(over);

	spin_lock(&new->mm->lock);
	list_add(&new->mm_node, &new->mm->links);
	spin_unlock(&new->mm->lock);

	spin_lock(&q->lock);
	list_for_each_entry_safe(link, next, &q->links, queue_node)
		if (exs_mm_link_over(link))
			list_move(&link->queue_node, &over);
	list_add(&new->queue_node, &q->links);
	spin_unlock(&q->lock);
	exs_mm_link_free_all(&over);
}

/* A signal came while a notifier was registered: nothing has been done yet. */
int exs_mm_errno(int err)
{
	return err == -EINTR ? -ERESTARTNOINTR : err;
}

static struct exs_mm_link *exs_mm_link_new(struct exs_queue *q)
{
	struct exs_mm_link *link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	struct mmu_notifier *notifier;

	if (!link)
		return ERR_PTR(-ENOMEM);
	notifier = mmu_notifier_get(&exs_mm_ops, current->mm);
	if (IS_ERR(notifier)) {
		kfree(link);
		return ERR_PTR(exs_mm_errno(PTR_ERR(notifier)));
	}
	link->mm = container_of(notifier, struct exs_mm, notifier);
	link->queue = q;
	exs_mm_link_insert(q, link);
	return link;
}

exs_hot
struct exs_mm_link *exs_mm_link(struct exs_queue *q)
{
	struct exs_mm_link *link;

	spin_lock(&q->lock);
	link = exs_mm_link_find(q);
	spin_unlock(&q->lock);
	return link ?: exs_mm_link_new(q);
}

void exs_mm_unlink_all(struct exs_queue *q)
{
	exs_mm_link_free_all(&q->links);
}

void exs_mm_exit(void)
{
	mmu_notifier_synchronize();
}
