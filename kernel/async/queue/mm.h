/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address spaces whose end (exit, exec) cancels the operations that were
 * submitted from them. See mm.c.
 */
#ifndef EXS_ASYNC_MM_H
#define EXS_ASYNC_MM_H

#include <linux/list.h>

struct exs_mm;
struct exs_queue;

/**
 * struct exs_mm_link - an address space that submitted operations to a queue
 * @mm: the address space
 * @queue: the queue, which has it in its list and owns it
 * @mm_node: mm->links; mm->lock
 * @queue_node: queue->links; queue->lock
 * @inflight: operations, and offers; queue->lock
 * @ended: exs_mm_end_all() has seen that it is over; queue->lock
 */
struct exs_mm_link {
	struct exs_mm *mm;
	struct exs_queue *queue;
	struct list_head mm_node;
	struct list_head queue_node;
	unsigned int inflight;
	bool ended;
};

/*
 * The link of @q and the caller's address space. It stays as long as the queue
 * and, while the caller's address space is in use, cannot be purged. Sleeps.
 * Return: or ERR_PTR.
 */
struct exs_mm_link *exs_mm_link(struct exs_queue *q);

/*
 * A descriptor of @q is closed, perhaps by the exit of the submitting process:
 * operations of address spaces that are over end before the task's other files are put.
 * Sleeps.
 */
void exs_mm_end_all(struct exs_queue *q);

/*
 * A descriptor of @q is closed, out of @files. If that is the end of the task's program, polls of
 * these descriptors end. Sleeps.
 */
void exs_mm_end_polls(struct exs_queue *q, const void *files);

/* The present time, for exs_op.submitted. */
u64 exs_mm_now(const struct exs_mm_link *link);

/* Whether the address space has ended: exs_mm_end_all() or a work ends its operations. */
bool exs_mm_is_over(const struct exs_mm_link *link);

/* Remove the links of @q, which is being freed. */
void exs_mm_unlink_all(struct exs_queue *q);

/* Wait until no notifier calls this module, and no work for processes that end is left. */
void exs_mm_exit(void);

#endif
