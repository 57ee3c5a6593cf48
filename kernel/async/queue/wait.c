// SPDX-License-Identifier: GPL-2.0
/*
 * How a program learns that there are events: EXS_IOC_WAIT, poll, an eventfd, a
 * signal. (It may also look into the ring, without calling the kernel.)
 */
#include <linux/eventfd.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../../compat/compat.h"
#include "../memory/arg.h"
#include "attend.h"
#include "queue.h"
#include "token.h"

/*
 * EXS_IOC_WAIT: threads that want to be woken for @need events and no fewer.
 *
 * A posted event wakes one thread at most: the oldest that now has enough. The
 * kernel does not see which thread consumes an event. So a thread that was
 * woken in vain, or that goes to sleep or leaves while events are there, passes
 * the wake-up on to the next that has enough.
 *
 * When a descriptor of the queue is closed, all wake up and return. This also covers a thread
 * that dies on its way back to the ring. And a thread may have waited by the closed descriptor:
 * it would keep the queue open.
 *
 * While it waits, the thread handles the events of the connections that it attends
 * to (attend.c), unless they are repeatedly for other queues' operations.
 */
#define EXS_SLEEP_IN_VAIN	64	/* times in a row */

struct exs_sleeper {
	struct list_head node;
	struct task_struct *task;
	u32 need;
	struct exs_attend attend;
	u64 tail;		/* the ring's, when it was last looked at */
	u32 in_vain;		/* times that it was the same             */
};

/* A sleeper takes q->lock before its frame goes away. */
exs_hot
void exs_queue_wake(struct exs_queue *q, bool all)
{
	struct exs_sleeper *s, *next;
	u32 unread, least = U32_MAX;

	lockdep_assert_held(&q->lock);
	if (list_empty(&q->sleepers))
		return;
	unread = exs_queue_unread(q);
	if (unread < q->least_need && !all)
		return;
	list_for_each_entry_safe(s, next, &q->sleepers, node) {
		if (unread < s->need && !all) {
			least = min(least, s->need);
			continue;
		}
		list_del_init(&s->node);
		wake_up_process(s->task);
		if (!all)
			return;
	}
	q->least_need = least;
}

static void exs_queue_add_sleeper(struct exs_queue *q, struct exs_sleeper *s)
{
	lockdep_assert_held(&q->lock);
	q->least_need = list_empty(&q->sleepers) ? s->need : min(q->least_need, s->need);
	list_add_tail(&s->node, &q->sleepers);
}

/*
 * The state is set before q->lock is dropped, and a wake-up comes under it: a
 * thread that is on the list is woken, or sees the events itself. A connection's
 * event is recorded first, and then wakes it. Return: whether the time is over.
 */
static bool exs_sleep(struct exs_queue *q, struct exs_sleeper *s, ktime_t *expires)
	__must_hold(&q->lock)
{
	bool expired;

	lockdep_assert_held(&q->lock);
	if (list_empty(&s->node))
		exs_queue_add_sleeper(q, s);
	exs_queue_wake(q, false);
	set_current_state(TASK_INTERRUPTIBLE);
	spin_unlock(&q->lock);
	if (exs_attend_due(&s->attend)) {
		__set_current_state(TASK_RUNNING);
		expired = expires && ktime_compare(ktime_get(), *expires) >= 0;
	} else {
		expired = !schedule_hrtimeout(expires, HRTIMER_MODE_ABS);
	}
	if (s->in_vain < EXS_SLEEP_IN_VAIN)
		exs_attend_drain(&s->attend);
	else
		exs_attend_give_up(&s->attend, q->xn);
	spin_lock(&q->lock);
	s->in_vain = s->tail == q->slots.tail ? s->in_vain + 1 : 0;
	s->tail = q->slots.tail;
	return expired;
}

bool exs_queue_wait_over(struct exs_queue *q, const struct exs_ioc_wait *w)
	__must_hold(&q->lock)
{
	lockdep_assert_held(&q->lock);
	return exs_queue_catch_up(q) >= w->count || exs_queue_ring(q)->epoch != w->epoch;
}

/* Return: 0, -ETIME, -ERESTARTSYS. */
exs_hot
static int exs_queue_sleep(struct exs_queue *q, const struct exs_ioc_wait *w, ktime_t *expires,
			   bool expired)
{
	struct exs_sleeper s = { .task = current, .need = w->count };
	int err = 0;

	INIT_LIST_HEAD(&s.node);
	if (!expired)
		exs_attend_begin(&s.attend, q);
	spin_lock(&q->lock);
	while (!exs_queue_wait_over(q, w)) {
		if (expired)
			err = -ETIME;
		else if (signal_pending(current))
			err = -ERESTARTSYS;
		if (err)
			break;
		expired = exs_sleep(q, &s, expires);
	}
	list_del(&s.node);
	/* Also a wait that only looks, and may find enough: see libexs. */
	if (err || expired)
		exs_queue_wake(q, false);
	spin_unlock(&q->lock);
	exs_attend_end(&s.attend);
	return err;
}

/* @expires: or NULL: for ever. Return: as above. */
static int exs_queue_wait_for(struct exs_queue *q, const struct exs_ioc_wait *w,
			      ktime_t *expires)
{
	u32 mode = READ_ONCE(q->wait_mode);
	ktime_t start;
	int err;

	if (mode == EXS_QWAIT_NOTIFY)
		return exs_queue_sleep(q, w, expires, false);
	start = exs_busy_wait(q, mode, w, expires ? *expires : KTIME_MAX);
	err = exs_queue_sleep(q, w, expires, false);
	exs_busy_learn(q, start);
	return err;
}

static int exs_queue_wait_until(struct exs_queue *q, struct exs_ioc_wait __user *arg,
				const struct exs_ioc_wait *w)
{
	ktime_t expires = ktime_add_safe(ktime_get(), ns_to_ktime(w->timeout_ns));
	int err = exs_queue_wait_for(q, w, &expires);
	s64 timeout;

	if (err != -ERESTARTSYS)
		return err;
	timeout = max_t(s64, ktime_to_ns(ktime_sub(expires, ktime_get())), 0);
	return put_user(timeout, &arg->timeout_ns) ? -EINTR : err;
}

exs_hot
int exs_queue_wait(struct exs_queue *q, void __user *arg)
{
	struct exs_ioc_wait w;
	int err = exs_ioc_get(&w, sizeof(w), EXS_WAIT_SIZE_VER0, arg);

	if (err)
		return err;
	if (!w.count || w.count > q->slots.capacity)
		return -EINVAL;
	exs_tokens_sweep(q);
	if (!w.epoch)
		w.epoch = READ_ONCE(exs_queue_ring(q)->epoch);
	if (w.timeout_ns < 0)
		return exs_queue_wait_for(q, &w, NULL);
	if (!w.timeout_ns)
		return exs_queue_sleep(q, &w, NULL, true);
	return exs_queue_wait_until(q, arg, &w);
}

/*
 * Poll. The reader's side takes no lock of the poster's before it looks, so:
 *
 *   poller                               poster
 *
 *   poll_wait()                          lock(q->lock)
 *     lock(q->poll.lock)                   write entry, move tail
 *     add to q->poll                     unlock(q->lock)
 *     unlock(q->poll.lock)               wq_has_sleeper()
 *   lock(q->lock)                          smp_mb()
 *     unread?                              q->poll empty?
 *   unlock(q->lock)                        no: wake_up_poll()
 *
 * If the poller looks at the ring before the poster's section, its entry was in
 * the list even earlier. So the poster, which looks at the list later, finds the
 * poller and wakes it. If the poller looks after that section, it sees the event.
 * Consuming events wakes no thread: none waits for that.
 */
__poll_t exs_queue_poll(struct file *file, poll_table *pt)
{
	struct exs_queue *q = file->private_data;
	u32 unread;

	poll_wait(file, &q->poll, pt);
	spin_lock(&q->lock);
	unread = exs_queue_catch_up(q);
	spin_unlock(&q->lock);
	return unread ? EPOLLIN | EPOLLRDNORM : 0;
}

int exs_queue_fasync(int fd, struct file *file, int on)
{
	struct exs_queue *q = file->private_data;

	return fasync_helper(fd, file, on, &q->fasync);
}

exs_hot
void exs_queue_notify_locked(struct exs_queue *q)
{
	lockdep_assert_held(&q->lock);
	exs_queue_wake(q, false);
	if (q->eventfd)
		eventfd_signal(q->eventfd);
}

/*
 * A module cannot make an eventfd: the program (libexs) does, and hands it to
 * the queue, which keeps the file for later requests.
 */
static struct file *exs_eventfd_get(s64 fd, struct eventfd_ctx **ctx)
{
	struct file *file;

	if (fd < 0 || fd > INT_MAX)
		return ERR_PTR(-EBADF);
	file = eventfd_fget(fd);
	if (IS_ERR(file))
		return file;
	*ctx = eventfd_ctx_fileget(file);
	if (!IS_ERR(*ctx))
		return file;
	fput(file);
	return ERR_CAST(*ctx);
}

static void exs_eventfd_put(struct file *file, struct eventfd_ctx *ctx)
{
	if (!file)
		return;
	eventfd_ctx_put(ctx);
	fput(file);
}

int exs_queue_set_eventfd(struct exs_queue *q, s64 fd, bool only_first)
{
	struct eventfd_ctx *ctx = NULL;
	struct file *file = NULL;
	int err = 0;

	if (fd != -1 || only_first)
		file = exs_eventfd_get(fd, &ctx);
	if (IS_ERR(file))
		return PTR_ERR(file);
	spin_lock(&q->lock);
	if (only_first && q->eventfd) {
		err = -EEXIST;
	} else {
		swap(q->eventfd, ctx);
		swap(q->eventfd_file, file);
		if (q->eventfd && exs_queue_unread(q))
			eventfd_signal(q->eventfd);
	}
	spin_unlock(&q->lock);
	exs_eventfd_put(file, ctx);
	return err;
}

int exs_queue_get_eventfd(struct exs_queue *q)
{
	struct file *file;
	int fd;

	spin_lock(&q->lock);
	file = q->eventfd_file;
	if (file)
		get_file(file);
	spin_unlock(&q->lock);
	if (!file)
		return -ENODATA;
	fd = exs_receive_fd(file, NULL, O_CLOEXEC);
	fput(file);
	return fd;
}

void exs_queue_put_eventfd(struct exs_queue *q)
{
	exs_eventfd_put(q->eventfd_file, q->eventfd);
}
