/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watched ranges of an address space: whether the process unmaps any of them.
 *
 * One mmu notifier per address space has a tree of ranges. Interval notifiers would do the
 * same, but removing one waits until no range at all is being invalidated in its address
 * space. The threads there can put that off for ever, and the thread that puts the last reference
 * on a region, perhaps a worker that all users share, would wait.
 */
#ifndef EXS_ASYNC_WATCH_H
#define EXS_ASYNC_WATCH_H

#include <linux/interval_tree.h>

struct exs_watched;

/**
 * struct exs_watch - a watched range; all zero: not watched
 * @node: in the tree; its lock
 * @in: the address space
 * @unmapped: some of the range was unmapped
 */
struct exs_watch {
	struct interval_tree_node node;
	struct exs_watched *in;
	bool unmapped;
};

/*
 * Watch @len bytes (at least 1) from @start, whole pages, in the current address space. Sleeps.
 * Return: 0 or a negative errno.
 */
int exs_watch_begin(struct exs_watch *w, unsigned long start, unsigned long len);

/* Stop watching; does nothing if the range is not watched. Does not sleep. */
void exs_watch_end(struct exs_watch *w);

/* The errno for @err of a registration of a notifier: after a signal it is tried again. */
int exs_notifier_errno(int err);

static inline bool exs_watch_unmapped(const struct exs_watch *w)
{
	return READ_ONCE(w->unmapped);
}

#endif
