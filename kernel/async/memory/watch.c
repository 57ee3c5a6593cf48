// SPDX-License-Identifier: GPL-2.0
/*
 * Watched ranges of an address space (see watch.h).
 */
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "watch.h"

/**
 * struct exs_watched - an address space with watched ranges
 * @notifier: reports what is unmapped; each watch holds it
 * @lock: guards @ranges
 * @ranges: the tree of struct exs_watch
 */
struct exs_watched {
	struct mmu_notifier notifier;
	spinlock_t lock;	/* see above */
	struct rb_root_cached ranges;
};

/*
 * Runs in the unmapping task and must not sleep. mm_users is 0 when the address space as a
 * whole goes away.
 */
static int exs_watched_invalidate(struct mmu_notifier *notifier,
				  const struct mmu_notifier_range *range)
{
	struct exs_watched *m = container_of(notifier, struct exs_watched, notifier);
	struct interval_tree_node *node;

	if (range->event != MMU_NOTIFY_UNMAP || !atomic_read(&range->mm->mm_users))
		return 0;
	spin_lock(&m->lock);
	for (node = interval_tree_iter_first(&m->ranges, range->start, range->end - 1); node;
	     node = interval_tree_iter_next(node, range->start, range->end - 1))
		WRITE_ONCE(container_of(node, struct exs_watch, node)->unmapped, true);
	spin_unlock(&m->lock);
	return 0;
}

static struct mmu_notifier *exs_watched_alloc(struct mm_struct *mm)
{
	struct exs_watched *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&m->lock);
	m->ranges = RB_ROOT_CACHED;
	return &m->notifier;
}

static void exs_watched_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct exs_watched, notifier));
}

static const struct mmu_notifier_ops exs_watched_ops = {
	.invalidate_range_start = exs_watched_invalidate,
	.alloc_notifier = exs_watched_alloc,
	.free_notifier = exs_watched_free,
};

/* A signal came while a notifier was registered: nothing was done yet. */
int exs_notifier_errno(int err)
{
	return err == -EINTR ? -ERESTARTNOINTR : err;
}

int exs_watch_begin(struct exs_watch *w, unsigned long start, unsigned long len)
{
	struct mmu_notifier *notifier = mmu_notifier_get(&exs_watched_ops, current->mm);

	if (IS_ERR(notifier))
		return exs_notifier_errno(PTR_ERR(notifier));
	w->in = container_of(notifier, struct exs_watched, notifier);
	w->node.start = start;
	w->node.last = start + len - 1;
	spin_lock(&w->in->lock);
	interval_tree_insert(&w->node, &w->in->ranges);
	spin_unlock(&w->in->lock);
	return 0;
}

void exs_watch_end(struct exs_watch *w)
{
	if (!w->in)
		return;
	spin_lock(&w->in->lock);
	interval_tree_remove(&w->node, &w->in->ranges);
	spin_unlock(&w->in->lock);
	mmu_notifier_put(&w->in->notifier);
}
