/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event queues: a descriptor with a completion ring, and the operations in flight there.
 *
 *   queue.c   object, descriptor, mapping, reservation and posting
 *   ring.h    the ring, and the barriers of both its sides
 *   wait.c    everything by which a program learns that there are events
 *   attend.h, attend.c  waiting threads process completions themselves
 *   busy.c    waiting threads that do not sleep
 *
 *   inflight.h, inflight.c  an operation: object, start, completion, cancellation
 *   walk.c    the operations in flight, of all sockets or of one
 *   timeout.h, timeout.c    those that take too long
 *   mm.h, mm.c              the end of the address space ends its operations
 *   token.h, token.c        accepted connections, and offers, on their way to a descriptor
 *
 * Two lifetimes. The file is what programs see: descriptors and mappings keep
 * it, and its release makes the queue dead, which cancels its operations. The
 * object is kept by the file and by each operation: a dead queue lives on until
 * the last of its operations has ended, and discards their completions.
 *
 * Locks: exs_queue.lock, a spin lock. It is taken in process context only. exs_mm.lock guards
 * the queues of an address space. The order of locks is in Documentation/design.md.
 */
#ifndef EXS_ASYNC_QUEUE_H
#define EXS_ASYNC_QUEUE_H

#include <linux/hash.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../proto/env.h"
#include "ring.h"

struct eventfd_ctx;
struct exs_mm_link;
struct exs_op;
struct exs_net;
struct exs_user;
struct seq_file;
struct sock;

/* A list for sockets with the same hash: a queue serves hundreds of them, or more. */
#define EXS_QUEUE_SOCK_BITS	6

/**
 * struct exs_queue - an event queue
 * @ref: the file and the operations
 * @xn: where it counts; a reference; constant
 * @lock: guards all below except where noted
 * @slots: the account of the ring
 * @dead: the file is gone
 * @behind: the program consumed entries beyond slots.head: exs_queue_catch_up()
 * @submitted: operations accepted, ever
 * @posted: operations whose entry was written, ever
 * @timed_out: entries that say that an operation takes long, ever
 * @copied: bytes of sends that were copied and are in flight; atomic
 * @id: unique among all queues, ever; constant
 * @mem: head page, ring page, entries, as one mapping of the kernel's; constant
 * @pages: its pages; constant
 * @npages: how many; constant
 * @ops: struct exs_op, in flight
 * @sock_ops: the same, by socket: exs_queue_ops_of()
 * @walks: struct exs_walk, the walks through them
 * @timeouts: struct exs_op_timer, of operations in flight: those whose last timeout
 *	entry was not consumed, in the order of the entries
 * @look: looks for consumed entries of @timeouts; a reference while queued
 * @look_delay: jiffies until it runs
 * @inflight: how many are in @ops
 * @offers: tokens that are offers: each holds a file, so it counts like an operation
 * @charged: how many of both were charged
 * @links: struct exs_mm_link, of address spaces that submitted operations
 * @wait_mode: EXS_QWAIT_*; without @lock
 * @busy_ns: adaptive: how long to poll before going to sleep; without @lock
 * @sleepers: threads in EXS_IOC_WAIT, oldest first
 * @least_need: the fewest events that wake one of them
 * @poll: threads that poll
 * @fasync: processes that want a signal; fasync_helper()'s own lock
 * @eventfd: is signalled with each event, or NULL
 * @eventfd_file: the file of @eventfd, for programs that ask for it
 * @tokens: token number to struct exs_op; its own lock
 * @next_token: xa_alloc_cyclic()'s; its own lock
 * @claim_mutex: one claim at a time; outside @lock
 * @unread_tokens: unclaimed, entry not consumed, in order of posting: their
 *	slots are those of the entries
 * @read_tokens: unclaimed, entry consumed: these hold a reservation
 * @claimed_tokens: claimed, but perhaps not accepted yet
 * @claimed: how many
 * @user: charged with the queue
 * @page_user: charged with the pages
 */
struct exs_queue {
	struct kref ref;
	struct exs_net *xn;
	spinlock_t lock;	/* see above */
	struct exs_slots slots;
	bool dead;
	bool behind;
	u64 submitted;
	u64 posted;
	u64 timed_out;
	atomic_long_t copied;

	u64 id;
	void *mem;
	struct page **pages;
	unsigned long npages;

	struct list_head ops;
	struct list_head sock_ops[1 << EXS_QUEUE_SOCK_BITS];
	struct list_head walks;
	struct list_head timeouts;
	struct delayed_work look;
	unsigned long look_delay;
	u32 inflight;
	u32 offers;
	u32 charged;
	struct list_head links;

	u32 wait_mode;
	u32 busy_ns;
	struct list_head sleepers;
	u32 least_need;
	wait_queue_head_t poll;
	struct fasync_struct *fasync;
	struct eventfd_ctx *eventfd;
	struct file *eventfd_file;

	struct xarray tokens;
	u32 next_token;
	struct mutex claim_mutex; /* see above */
	struct list_head unread_tokens;
	struct list_head read_tokens;
	struct list_head claimed_tokens;
	unsigned int claimed;

	struct exs_user *user;
	struct exs_user *page_user;
};

static inline struct exs_ring_head *exs_queue_head(const struct exs_queue *q)
{
	return q->mem;
}

static inline struct exs_ring *exs_queue_ring(const struct exs_queue *q)
{
	return q->mem + PAGE_SIZE;
}

static inline struct exs_cqe *exs_queue_entries(const struct exs_queue *q)
{
	return q->mem + 2 * PAGE_SIZE;
}

/*
 * queue.c
 */

/* EXS_IOC_QCREATE. Return: a descriptor or a negative errno. */
int exs_queue_create(void __user *arg);

/* Of its descriptors. Some calls go to the folders above, so the table is there. */
extern const struct file_operations exs_queue_fops;

int exs_queue_file_release(struct inode *inode, struct file *file);
int exs_queue_flush(struct file *file, fl_owner_t id);
int exs_queue_mmap(struct file *file, struct vm_area_struct *vma);
void exs_queue_show_fdinfo(struct seq_file *m, struct file *file);

/* Whether @file is a queue's. */
bool exs_queue_is(const struct file *file);

void exs_queue_release(struct kref *ref);

static inline void exs_queue_get(struct exs_queue *q)
{
	kref_get(&q->ref);
}

static inline void exs_queue_put(struct exs_queue *q)
{
	kref_put(&q->ref, exs_queue_release);
}

/* The program consumed entries up to q->slots.head. q->lock held. */
void exs_queue_consumed(struct exs_queue *q);

/* Events that it has not consumed, or more: see exs_queue_catch_up(). q->lock held. */
static inline u32 exs_queue_unread(struct exs_queue *q)
{
	lockdep_assert_held(&q->lock);
	/* (D) */
	if (exs_slots_consume(&q->slots, smp_load_acquire(&exs_queue_head(q)->head)) &&
	    (!list_empty(&q->unread_tokens) || !list_empty(&q->timeouts)))
		exs_queue_consumed(q);
	return exs_slots_unread(&q->slots);
}

/* No more than these. q->lock held, and perhaps released meanwhile; may reschedule. */
u32 exs_queue_catch_up(struct exs_queue *q) __must_hold(&q->lock);

/* Reserve a slot, or two if it has a timer, and put @op among the queue's.
 * Return: 0; -EAGAIN; -ENOBUFS: the user who made the queue has too many.
 */
int exs_queue_reserve(struct exs_queue *q, struct exs_op *op);

/* Undo this: @op did not start, or must end without an event. */
void exs_queue_unreserve(struct exs_queue *q, struct exs_op *op);

/* There are fewer operations, or offers. q->lock held. */
void exs_queue_uncharge_op(struct exs_queue *q);

/* An offer that was read is an operation again; its slot and charge stay. q->lock held. */
void exs_queue_readmit(struct exs_queue *q, struct exs_op *op, struct exs_mm_link *link);

/**
 * exs_queue_post() - an operation's completion
 * @q: its queue
 * @op: in flight until now; its slot becomes the entry
 * @cqe: the entry
 *
 * A @cqe with a token puts @op (and a reference) among the tokens, unless
 * exs_token_is_late(): then it becomes ECANCELED.
 *
 * Context: process, no lock held. Return: false: no program will see @cqe, because the queue is
 * dead, or because @cqe was changed.
 */
bool exs_queue_post(struct exs_queue *q, struct exs_op *op, struct exs_cqe *cqe);

/* The entry of a token that was read, once more, in the token's slot; exs_queue_notify() follows.
 * q->lock held, q not dead.
 */
void exs_queue_post_token(struct exs_queue *q, struct exs_op *op, const struct exs_cqe *cqe);

/* Post an entry in the operation's second slot; the operation continues.
 * exs_queue_notify() follows. q->lock held, q not dead.
 */
void exs_queue_timed_out(struct exs_queue *q, const struct exs_cqe *cqe);

/*
 * walk.c
 */

/*
 * The list that has the operations in flight on @sk, or without a socket if it is NULL. It
 * may also have those on other sockets.
 */
static inline struct list_head *exs_queue_ops_of(struct exs_queue *q, const struct sock *sk)
{
	return &q->sock_ops[hash_ptr(sk, EXS_QUEUE_SOCK_BITS)];
}

/**
 * struct exs_walk - a walk through the operations in flight
 * @node: queue->walks
 * @ops: queue->ops, or one of queue->sock_ops
 * @next: the one to come, or @ops; an operation that leaves moves it on
 * @sk: whose they are, or NULL: all
 * @back: from the last to the first
 * @left: no more than there were at the beginning; those that come later do not count
 */
struct exs_walk {
	struct list_head node;
	struct list_head *ops, *next;
	const struct sock *sk;
	bool back;
	u32 left;
};

/*
 * From begin to end q->lock is held, but exs_walk_next() releases it now and then, to
 * reschedule, and so may the caller between two calls. Process context.
 */
void exs_walk_begin(struct exs_queue *q, struct exs_walk *w, const struct sock *sk, bool back)
	__acquires(&q->lock);
/* The next operation, or NULL. */
struct exs_op *exs_walk_next(struct exs_queue *q, struct exs_walk *w) __must_hold(&q->lock);
void exs_walk_end(struct exs_queue *q, struct exs_walk *w) __releases(&q->lock);

/* Walks whose next operation is @op continue with its neighbour. q->lock held. */
void exs_walks_leave(struct exs_queue *q, struct exs_op *op);

/* Whether cancellation should hit @op. */
typedef bool (*exs_op_match)(const struct exs_op *op, const void *arg);

/*
 * Put the operations on @sk, or all if it is NULL, that @match onto @list, for
 * exs_ops_cancel(). Return: how many do, even if others cancel them already.
 */
u32 exs_queue_collect(struct exs_queue *q, const struct sock *sk, exs_op_match match,
		      const void *arg, struct list_head *list);

/* The last operation in flight on @sk that @match, with a reference; or NULL. */
struct exs_op *exs_queue_find_last(struct exs_queue *q, const struct sock *sk,
				   exs_op_match match, const void *arg);

/*
 * wait.c
 */

/* EXS_IOC_WAIT */
int exs_queue_wait(struct exs_queue *q, void __user *arg);

/* Wake a sleeper that there are enough events for, or all sleepers. q->lock held. */
void exs_queue_wake(struct exs_queue *q, bool all);

/* Whether there are enough events, or a descriptor was closed. As exs_queue_catch_up(). */
bool exs_queue_wait_over(struct exs_queue *q, const struct exs_ioc_wait *w)
	__must_hold(&q->lock);

/* There is an event more. q->lock held. */
void exs_queue_notify_locked(struct exs_queue *q);

__poll_t exs_queue_poll(struct file *file, poll_table *pt);
int exs_queue_fasync(int fd, struct file *file, int on);

/* EXS_ATTR_EVENTFD; @only_first: EXS_ATTR_EVENTFD_FIRST */
int exs_queue_set_eventfd(struct exs_queue *q, s64 fd, bool only_first);
int exs_queue_get_eventfd(struct exs_queue *q);
void exs_queue_put_eventfd(struct exs_queue *q);

/* exs_queue_notify_locked() was called, and q->lock released. */
static inline void exs_queue_notify(struct exs_queue *q)
{
	if (wq_has_sleeper(&q->poll))
		wake_up_poll(&q->poll, EPOLLIN | EPOLLRDNORM);
	if (READ_ONCE(q->fasync))
		kill_fasync(&q->fasync, SIGIO, POLL_IN);
}

/*
 * busy.c
 */

/* EXS_ATTR_WAIT. Return: 0 or -EINVAL. */
int exs_queue_set_wait(struct exs_queue *q, s64 mode);

/**
 * exs_busy_wait() - poll
 * @q: the queue
 * @mode: how it wants that: EXS_QWAIT_BUSY or EXS_QWAIT_ADAPTIVE
 * @w: until exs_queue_wait_over() says so
 * @until: or until this time; KTIME_MAX: for ever
 *
 * It also ends with a signal, without connections to poll, or, if adaptive, after a time learned
 * from earlier waits. The caller checks which of these it was.
 *
 * Context: process, no lock held. Return: when it began, for exs_busy_learn().
 */
ktime_t exs_busy_wait(struct exs_queue *q, u32 mode, const struct exs_ioc_wait *w, ktime_t until);

/* Adaptive: the wait that began at @start is over. */
void exs_busy_learn(struct exs_queue *q, ktime_t start);

#endif
