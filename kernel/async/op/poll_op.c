// SPDX-License-Identifier: GPL-2.0
/*
 * Poll: ends when one of some descriptors, of any kind, is ready.
 *
 *   submission: a wait entry for each       wake-up, cancel (any context)
 *               \                            /
 *                exs_poll_kick(): queue the work
 *                             |
 *               work: any ready? then remove the entries, complete
 *
 * Only the work ends the operation, so there is no race; the thread that queues
 * the work gives it a reference. A wake-up for something else changes nothing: the
 * entries stay.
 *
 * The descriptors' files are held while the poll waits at their wait queues. A
 * queue cannot be polled, because two of them could then hold each other. An epoll
 * descriptor cannot be polled either, as it may contain a queue.
 */
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "op.h"

/**
 * struct exs_poll_fd - a polled descriptor
 * @file: reference; NULL: a negative descriptor, to be ignored
 * @events: for what
 */
struct exs_poll_fd {
	struct file *file;
	__poll_t events;
};

/**
 * struct exs_poll_wait - an entry in a wait queue of a file
 * @node: op->poll.waits
 * @entry: the entry
 * @head: the queue; NULL once that has gone away (POLLFREE)
 * @events: what it waits for
 * @op: whose; in flight as long as the entry is in the queue
 */
struct exs_poll_wait {
	struct list_head node;
	struct wait_queue_entry entry;
	struct wait_queue_head *head;
	__poll_t events;
	struct exs_op *op;
};

struct exs_poll_table {
	poll_table pt;
	struct exs_op *op;
};

static struct workqueue_struct *exs_poll_wq;

static void exs_poll_kick(struct exs_op *op)
{
	refcount_inc(&op->ref);
	if (!queue_work(exs_poll_wq, &op->poll.work))
		exs_op_put(op);		/* not the last reference: our caller has one */
}

/* With the queue's lock held, in any context. */
static int exs_poll_wake(struct wait_queue_entry *entry, unsigned int mode, int sync,
			 void *key)
{
	struct exs_poll_wait *w = container_of(entry, struct exs_poll_wait, entry);
	__poll_t events = key_to_poll(key);

	if (events && !(events & (w->events | POLLFREE)))
		return 0;
	if (events & POLLFREE)
		WRITE_ONCE(w->op->poll.cancelled, true);
	exs_poll_kick(w->op);
	if (events & POLLFREE) {
		list_del_init(&w->entry.entry);
		/* Pairs with exs_poll_leave(), which then may free @w. */
		smp_store_release(&w->head, NULL);
	}
	return 1;
}

/*
 * A queue that goes away wakes us with POLLFREE and is freed by RCU: it is either
 * gone already, or stays while we take its lock.
 */
static void exs_poll_leave(struct exs_poll_wait *w)
{
	struct wait_queue_head *head;

	rcu_read_lock();
	/* Pairs with exs_poll_wake(). */
	head = smp_load_acquire(&w->head);
	if (head) {
		spin_lock_irq(&head->lock);
		list_del_init(&w->entry.entry);
		spin_unlock_irq(&head->lock);
	}
	rcu_read_unlock();
}

static void exs_poll_leave_all(struct exs_op *op)
{
	struct exs_poll_wait *w, *next;

	list_for_each_entry_safe(w, next, &op->poll.waits, node) {
		exs_poll_leave(w);
		kfree(w);
	}
}

/* A file may call it for more than one queue. */
static void exs_poll_queue_proc(struct file *file, struct wait_queue_head *head,
				poll_table *pt)
{
	struct exs_op *op = container_of(pt, struct exs_poll_table, pt)->op;
	struct exs_poll_wait *w = kmalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);

	if (!w) {
		op->poll.err = -ENOMEM;
		return;
	}
	w->head = head;
	w->events = pt->_key;
	w->op = op;
	list_add(&w->node, &op->poll.waits);
	init_waitqueue_func_entry(&w->entry, exs_poll_wake);
	add_wait_queue(head, &w->entry);
}

/*
 * Return: how many are ready. @pt: add entries to the wait queues of all, or NULL. Ready ones
 * need an entry, too, as they may no longer be ready when the work looks.
 */
static int exs_poll_look(struct exs_op *op, poll_table *pt)
{
	const struct exs_poll_fd *fd = op->poll.fds;
	int ready = 0;
	u32 i;

	for (i = 0; i < op->poll.nfds; i++, fd++) {
		if (!fd->file)
			continue;
		if (pt)
			pt->_key = fd->events;
		ready += !!(vfs_poll(fd->file, pt) & fd->events);
	}
	return ready;
}

/* Return: how it ends, or -EIOCBQUEUED. */
static long exs_poll_result(struct exs_op *op)
{
	lockdep_assert_held(&op->poll.lock);
	if (READ_ONCE(op->poll.cancelled))
		return -ECANCELED;
	if (op->poll.err)
		return op->poll.err;
	return exs_poll_look(op, NULL) ?: -EIOCBQUEUED;
}

static void exs_poll_run(struct exs_op *op)
{
	long res = -EIOCBQUEUED;

	mutex_lock(&op->poll.lock);
	if (!op->poll.over)
		res = exs_poll_result(op);
	if (res != -EIOCBQUEUED) {
		op->poll.over = true;
		exs_poll_leave_all(op);
	}
	mutex_unlock(&op->poll.lock);
	if (res != -EIOCBQUEUED)
		exs_op_complete(op, res, op->poll.nfds, 0);
}

/*
 * It asks files, which may take long, so it takes turns; one that waits keeps the
 * work's reference. Ending a cancelled operation asks no file.
 */
static void exs_poll_work(struct work_struct *work)
{
	struct exs_op *op = container_of(work, struct exs_op, poll.work);
	struct exs_user *user = op->queue->user;
	bool cancelled = READ_ONCE(op->poll.cancelled);
	int turn = 0;

	if (cancelled && exs_turn_leave(user, &op->poll.turn))
		exs_op_put(op);		/* not the last: the work's is another */
	if (!cancelled)
		turn = exs_turn_take(user, &op->poll.turn);
	if (cancelled || turn > 0)
		exs_poll_run(op);
	if (turn > 0)
		exs_turn_pass(user, EXS_POOL_POLL);
	if (cancelled || turn)
		exs_op_put(op);
}

static void exs_poll_again(struct exs_turn *turn)
{
	struct exs_op *op = container_of(turn, struct exs_op, poll.turn);

	if (!queue_work(exs_poll_wq, &op->poll.work))
		exs_op_put(op);		/* not the last: the work's is another */
}

static bool exs_file_is_epoll(const struct file *file)
{
	const struct dentry *dentry = file->f_path.dentry;

	return dentry->d_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(dentry->d_name.name, "[eventpoll]");
}

static int exs_poll_get_fd(struct exs_poll_fd *fd, const struct pollfd *from)
{
	if (from->events & ~(POLLIN | POLLOUT))
		return -EINVAL;
	if (from->fd < 0)
		return 0;
	fd->events = demangle_poll(from->events) | EPOLLERR | EPOLLHUP;
	fd->file = fget(from->fd);
	if (!fd->file)
		return -EBADF;
	return exs_queue_is(fd->file) || exs_file_is_epoll(fd->file) ? -ELOOP : 0;
}

static int exs_poll_get_fds(struct exs_op *op, const struct pollfd __user *from)
{
	struct pollfd fd;
	int err = 0;
	u32 i;

	for (i = 0; i < op->poll.nfds && !err; i++) {
		if (copy_from_user(&fd, &from[i], sizeof(fd)))
			return -EFAULT;
		err = exs_poll_get_fd(&op->poll.fds[i], &fd);
	}
	return err;
}

/* Each descriptor counts as an operation. */
static int exs_poll_charge(struct exs_op *op)
{
	struct exs_queue *q = op->queue;

	return exs_limit_charge_user(q->xn, EXS_LIMIT_OPS, op->poll.nfds, q->user);
}

void exs_poll_cleanup(struct exs_op *op)
{
	struct exs_op_poll *p = &op->poll;
	u32 i;

	exs_limit_uncharge(EXS_LIMIT_OPS, p->nfds, op->queue->user);
	for (i = 0; i < p->nfds; i++)
		if (p->fds[i].file)
			fput(p->fds[i].file);
	kvfree(p->fds);
}

int exs_poll_prep(struct exs_op *op, const struct exs_sqe *sqe)
{
	struct exs_op_poll *p = &op->poll;
	int err;

	if (sqe->fd != -1 || sqe->region != EXS_REGION_NONE || !sqe->len ||
	    sqe->len > EXS_POLL_MAX)
		return -EINVAL;
	p->nfds = sqe->len;
	p->files = current->files;
	err = exs_poll_charge(op);
	if (err)
		return err;
	p->fds = kvcalloc(p->nfds, sizeof(*p->fds), GFP_KERNEL_ACCOUNT);
	if (!p->fds) {
		exs_limit_uncharge(EXS_LIMIT_OPS, p->nfds, op->queue->user);
		return -ENOMEM;
	}
	INIT_WORK(&p->work, exs_poll_work);
	exs_turn_init(&p->turn, EXS_POOL_POLL, exs_poll_again);
	mutex_init(&p->lock);
	INIT_LIST_HEAD(&p->waits);
	err = exs_poll_get_fds(op, u64_to_user_ptr(sqe->addr));
	if (err)
		exs_poll_cleanup(op);
	return err;
}

/* Once the first entry is in a queue it ends by its event, whatever happens. */
long exs_poll_issue(struct exs_op *op, struct socket *sock)
{
	struct exs_poll_table table = { .op = op };
	bool ends;

	init_poll_funcptr(&table.pt, exs_poll_queue_proc);
	mutex_lock(&op->poll.lock);
	ends = exs_poll_look(op, &table.pt) || op->poll.err;
	mutex_unlock(&op->poll.lock);
	if (ends)
		exs_poll_kick(op);
	return -EIOCBQUEUED;
}

void exs_poll_cancel(struct exs_op *op)
{
	WRITE_ONCE(op->poll.cancelled, true);
	exs_poll_kick(op);
}

int exs_poll_ops_init(void)
{
	exs_poll_wq = alloc_workqueue("exs_poll", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return exs_poll_wq ? 0 : -ENOMEM;
}

void exs_poll_ops_exit(void)
{
	destroy_workqueue(exs_poll_wq);
}
