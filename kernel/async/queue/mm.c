// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an address space cancels its operations.
 *
 * One mmu notifier per address space (mmu_notifier_get() finds it again) has a
 * list of links, one for each queue that the address space submitted to. After its
 * release, when the last thread has exited or called exec, the operations of that
 * address space in these queues are cancelled, and only those: a queue may be
 * shared with parents and children. Their completions are posted as usual, for the
 * processes that still have the queue.
 *
 * The release itself only queues that work, because the end of every other address space waits
 * for it (SRCU). As with fput(), the task does the work: before it enters the program that it
 * executes, or before a waiting parent learns of its exit. A task that does neither only had a
 * reference on the address space (as a reader of /proc does), and may sleep before it returns.
 * For such a task, and for a kernel thread, a worker does it. A task's works run in reverse
 * order, so the task's files would be put first. Therefore closing a queue's descriptor, which
 * comes before all of these, does the work as well.
 *
 * A polled file may hold the address space itself, as a vhost descriptor does, and the address
 * space has the queue's ring mapped, which holds the queue: its end would never be reported. So
 * polls end also when a task that has left its address space closes a descriptor of the queue, if
 * they were submitted with the task's descriptors. (A program that closes all of them before that
 * has to cancel its polls itself.)
 *
 * A link holds the notifier, which holds mm_count. The queue owns the link,
 * which stays as long as the queue, or until another address space joins and
 * the link is found to be over.
 */
#include <linux/ktime.h>
#include <linux/list_sort.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "../memory/watch.h"
#include "inflight.h"
#include "mm.h"
#include "token.h"

/**
 * struct exs_mm - an address space
 * @notifier: reports its end
 * @ref: the notifier's, and that of the end's work
 * @task_work: the work, of the task
 * @work: or of a worker
 * @over: the notifier has reported it
 * @several: it has submitted to more than one queue
 * @cancel_mutex: held by a thread that cancels: two would not keep the order between queues
 * @lock: guards @links
 * @links: struct exs_mm_link
 */
struct exs_mm {
	struct mmu_notifier notifier;
	refcount_t ref;
	union {
		struct callback_head task_work;
		struct work_struct work;
	};
	bool over;
	bool several;
	struct mutex cancel_mutex;	/* see above */
	spinlock_t lock;		/* see above */
	struct list_head links;
};

/* Works of ends that are under way. */
static atomic_t exs_mm_ends = ATOMIC_INIT(0);

static bool exs_mm_match(const struct exs_op *op, const void *mm)
{
	return op->link->mm == mm;
}

/*
 * One socket may have operations in several queues, which are cancelled in the order in which they
 * were submitted. Each operation has the time of its submission instead of a number, because all
 * threads would have to write to one counter. While there is only one queue, the time is 0: these
 * operations are the oldest, and they are in order.
 */
u64 exs_mm_now(const struct exs_mm_link *link)
{
	return READ_ONCE(link->mm->several) ? ktime_get_ns() : 0;
}

static int exs_mm_compare(void *priv, const struct list_head *a, const struct list_head *b)
{
	u64 first = list_entry(a, struct exs_op, cancel_node)->submitted;
	u64 second = list_entry(b, struct exs_op, cancel_node)->submitted;

	cond_resched();
	return first > second;
}

static void exs_mm_put(struct exs_mm *m)
{
	if (refcount_dec_and_test(&m->ref))
		kfree(m);
}

/* A queue that submissions went to, with a reference; NULL: no more. */
static struct exs_queue *exs_mm_next_queue(struct exs_mm *m)
{
	struct exs_queue *q = NULL;
	struct exs_mm_link *link, *next;

	spin_lock(&m->lock);
	list_for_each_entry_safe(link, next, &m->links, mm_node) {
		/* A queue takes its own link off before it is freed. */
		list_del_init(&link->mm_node);
		if (kref_get_unless_zero(&link->queue->ref)) {
			q = link->queue;
			break;
		}
	}
	spin_unlock(&m->lock);
	return q;
}

/*
 * No thread of this address space is left, so no submission is under way, and no link
 * is added. Operations hold their queue until they are cancelled. So do offers, which also
 * hold the listener's file: they must end here, as the queue's own file may be in a message
 * that waits at that listener. An offer that would be made later is refused
 * (exs_token_is_late()). Two threads may call this: the second finds nothing left.
 */
static void exs_mm_cancel(struct exs_mm *m)
{
	struct exs_queue *q;
	LIST_HEAD(ops);

	mutex_lock(&m->cancel_mutex);
	while ((q = exs_mm_next_queue(m))) {
		exs_queue_collect(q, NULL, exs_mm_match, m, &ops);
		exs_tokens_drop_offers(q, exs_mm_match, m);
		/*
		 * A thread that has exited may have been woken for events, and not have
		 * read them: wake others for these.
		 */
		spin_lock(&q->lock);
		exs_queue_wake(q, true);
		spin_unlock(&q->lock);
		exs_queue_put(q);
	}
	if (m->several)
		list_sort(NULL, &ops, exs_mm_compare);
	exs_ops_cancel(&ops);
	mutex_unlock(&m->cancel_mutex);
}

/* With a reference, or NULL. */
static struct exs_mm *exs_mm_find_over(struct exs_queue *q)
{
	struct exs_mm_link *link;
	struct exs_mm *m = NULL;

	spin_lock(&q->lock);
	list_for_each_entry(link, &q->links, queue_node) {
		if (link->ended || !READ_ONCE(link->mm->over))
			continue;
		link->ended = true;
		m = link->mm;
		refcount_inc(&m->ref);
		break;
	}
	spin_unlock(&q->lock);
	return m;
}

void exs_mm_end_all(struct exs_queue *q)
{
	struct exs_mm *m;

	while ((m = exs_mm_find_over(q))) {
		exs_mm_cancel(m);
		exs_mm_put(m);
	}
}

static void exs_mm_end(struct exs_mm *m)
{
	exs_mm_cancel(m);
	exs_mm_put(m);
	if (atomic_dec_and_test(&exs_mm_ends))
		wake_up_var(&exs_mm_ends);
}

static void exs_mm_end_task(struct callback_head *task_work)
{
	exs_mm_end(container_of(task_work, struct exs_mm, task_work));
}

static void exs_mm_end_work(struct work_struct *work)
{
	exs_mm_end(container_of(work, struct exs_mm, work));
}

/* Whether the task has left, or leaves, its address space, and soon runs its works. */
static bool exs_mm_left(void)
{
	return !(current->flags & PF_KTHREAD) &&
	       (current->flags & PF_EXITING || current->in_execve);
}

static bool exs_mm_match_poll(const struct exs_op *op, const void *files)
{
	return op->opcode == EXS_OP_POLL && op->poll.files == files;
}

void exs_mm_end_polls(struct exs_queue *q, const void *files)
{
	LIST_HEAD(ops);

	if (!exs_mm_left())
		return;
	exs_queue_collect(q, NULL, exs_mm_match_poll, files, &ops);
	exs_ops_cancel(&ops);
}

/* Under the notifiers' SRCU: no more than this. Called once. */
static void exs_mm_notify_release(struct mmu_notifier *notifier,
				  struct mm_struct *mm)
{
	struct exs_mm *m = container_of(notifier, struct exs_mm, notifier);

	WRITE_ONCE(m->over, true);
	refcount_inc(&m->ref);
	atomic_inc(&exs_mm_ends);
	init_task_work(&m->task_work, exs_mm_end_task);
	if (exs_mm_left() &&
	    !task_work_add(current, &m->task_work, TWA_RESUME))
		return;
	INIT_WORK(&m->work, exs_mm_end_work);
	queue_work(system_unbound_wq, &m->work);
}

static struct mmu_notifier *exs_mm_alloc(struct mm_struct *mm)
{
	struct exs_mm *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return ERR_PTR(-ENOMEM);
	refcount_set(&m->ref, 1);
	mutex_init(&m->cancel_mutex);
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->links);
	return &m->notifier;
}

static void exs_mm_free(struct mmu_notifier *notifier)
{
	exs_mm_put(container_of(notifier, struct exs_mm, notifier));
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

bool exs_mm_is_over(const struct exs_mm_link *link)
{
	return READ_ONCE(link->mm->over);
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
	if (!list_empty(&new->mm->links))
		WRITE_ONCE(new->mm->several, true);
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

static struct exs_mm_link *exs_mm_link_new(struct exs_queue *q)
{
	struct exs_mm_link *link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	struct mmu_notifier *notifier;

	if (!link)
		return ERR_PTR(-ENOMEM);
	notifier = mmu_notifier_get(&exs_mm_ops, current->mm);
	if (IS_ERR(notifier)) {
		kfree(link);
		return ERR_PTR(exs_notifier_errno(PTR_ERR(notifier)));
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
	wait_var_event(&exs_mm_ends, !atomic_read(&exs_mm_ends));
	/* The last may still be about to return. */
	synchronize_rcu_tasks();
}
