// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of this layer, its init and exit.
 */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../core/sock.h"
#include "aio.h"
#include "async.h"
#include "file/feed.h"
#include "memory/arg.h"
#include "memory/region.h"
#include "memory/zerocopy.h"
#include "op/claim.h"
#include "op/op.h"
#include "ordinary/foreign.h"
#include "queue/mm.h"
#include "queue/queue.h"
#include "queue/timeout.h"

static int exs_attr_set_depth(struct exs_queue *q, s64 depth)
{
	int err;

	if (depth < 1)
		return -EINVAL;
	spin_lock(&q->lock);
	exs_queue_catch_up(q);
	err = exs_slots_set_depth(&q->slots, depth);
	spin_unlock(&q->lock);
	return err;
}

static int exs_attr_set(struct exs_queue *q, void __user *arg)
{
	struct exs_ioc_attr a;
	int err = exs_ioc_get(&a, sizeof(a), EXS_ATTR_SIZE_VER0, arg);

	if (err)
		return err;
	switch (a.attr) {
	case EXS_ATTR_DEPTH:
		return exs_attr_set_depth(q, a.value);
	case EXS_ATTR_EVENTFD:
		return exs_queue_set_eventfd(q, a.value, false);
	case EXS_ATTR_EVENTFD_FIRST:
		return exs_queue_set_eventfd(q, a.value, true);
	case EXS_ATTR_WAIT:
		return exs_queue_set_wait(q, a.value);
	default:
		return -EINVAL;
	}
}

/* The state that is read under the lock. */
static int exs_attr_read(struct exs_queue *q, u32 attr, s64 *value)
{
	int err = 0;

	spin_lock(&q->lock);
	switch (attr) {
	case EXS_ATTR_DEPTH:
		*value = q->slots.depth;
		break;
	case EXS_ATTR_EVENTS:
		*value = exs_queue_catch_up(q);
		break;
	case EXS_ATTR_ID:
		*value = q->id;
		break;
	case EXS_ATTR_SUBMITTED:
		*value = q->submitted;
		break;
	case EXS_ATTR_POSTED:
		*value = q->posted;
		break;
	case EXS_ATTR_WAIT:
		*value = q->wait_mode;
		break;
	default:
		err = -EINVAL;
	}
	spin_unlock(&q->lock);
	return err;
}

static int exs_attr_get(struct exs_queue *q, void __user *arg)
{
	struct exs_ioc_attr a;
	int err = exs_ioc_get(&a, sizeof(a), EXS_ATTR_SIZE_VER0, arg);

	if (err)
		return err;
	if (a.value)
		return -EINVAL;
	if (a.attr == EXS_ATTR_EVENTFD) {
		a.value = exs_queue_get_eventfd(q);
		err = min_t(s64, a.value, 0);
	} else {
		err = exs_attr_read(q, a.attr, &a.value);
	}
	if (err)
		return err;
	/* A descriptor stays: by now the number may be another file's. */
	return exs_ioc_put(arg, &a, sizeof(a));
}

/* The number without the size, which is the caller's. */
#define EXS_IOC_SIZELESS(cmd)	((cmd) & ~IOCSIZE_MASK)

static int exs_ioctl_probe(void __user *arg)
{
	struct exs_ioc_probe p, out = {
		.magic = EXS_PROBE_MAGIC,
		.abi = EXS_ABI_VERSION,
		.family = exs_family,
		.features = EXS_FEATURE_DEVICE | EXS_COMPAT_FEATURES,
		.ops = exs_ops_supported(),
		.plain_ops = exs_foreign_ops_supported(),
		.sqe_flags = EXS_SQE_FLAGS,
		.protocol = exs_protocol,
	};
	int err = exs_ioc_get(&p, sizeof(p), EXS_PROBE_SIZE_VER0, arg);

	if (err)
		return err;
	out.size = p.size;
	if (memchr_inv(&p.magic, 0, sizeof(p) - offsetof(struct exs_ioc_probe, magic)))
		return -EINVAL;
	return exs_ioc_put(arg, &out, sizeof(out));
}

/* Ioctls that need no queue and no socket. */
static int exs_module_ioctl(unsigned int cmd, void __user *arg)
{
	switch (EXS_IOC_SIZELESS(cmd)) {
	case EXS_IOC_SIZELESS(EXS_IOC_PROBE):
		return exs_ioctl_probe(arg);
	case EXS_IOC_SIZELESS(EXS_IOC_QCREATE):
		return exs_queue_create(arg);
	case EXS_IOC_SIZELESS(EXS_IOC_MREG):
		return exs_region_ioctl(arg);
	default:
		return -ENOTTY;
	}
}

exs_hot
static long exs_queue_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct exs_queue *q = file->private_data;
	void __user *p = (void __user *)arg;

	switch (EXS_IOC_SIZELESS(cmd)) {
	case EXS_IOC_SIZELESS(EXS_IOC_SUBMIT):
		return exs_ops_submit(q, p);
	case EXS_IOC_SIZELESS(EXS_IOC_WAIT):
		return exs_queue_wait(q, p);
	case EXS_IOC_SIZELESS(EXS_IOC_CLAIM):
		return exs_queue_claim(q, p);
	case EXS_IOC_SIZELESS(EXS_IOC_CANCEL):
		return exs_ops_cancel_ioctl(q, p);
	case EXS_IOC_SIZELESS(EXS_IOC_GETATTR):
		return exs_attr_get(q, p);
	case EXS_IOC_SIZELESS(EXS_IOC_SETATTR):
		return exs_attr_set(q, p);
	default:
		return exs_module_ioctl(cmd, p);
	}
}

const struct file_operations exs_queue_fops = {
	.owner = THIS_MODULE,
	.release = exs_queue_file_release,
	.flush = exs_queue_flush,
	.mmap = exs_queue_mmap,
	.poll = exs_queue_poll,
	.fasync = exs_queue_fasync,
	.unlocked_ioctl = exs_queue_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = exs_queue_show_fdinfo,
	.llseek = noop_llseek,
};

static int exs_async_ioctl(struct socket *sock, unsigned int cmd, void __user *arg)
{
	int ret = exs_module_ioctl(cmd, arg);

	return ret == -ENOTTY ? -ENOIOCTLCMD : ret;
}

const struct exs_async exs_async = {
	.ioctl		= exs_async_ioctl,
	.aio_read	= exs_aio_read,
	.zerocopy_alloc	= exs_zerocopy_alloc,
	.zerocopy_free	= exs_zerocopy_free,
};

/*
 * EXS_DEVICE: queues and regions for processes that have no queue yet. Any user may open it, as any
 * user may call socket(2); its queues and regions are counted per user.
 */

static long exs_device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return exs_module_ioctl(cmd, (void __user *)arg);
}

static const struct file_operations exs_device_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exs_device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice exs_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "exs",
	.mode = 0666,
	.fops = &exs_device_fops,
};

int exs_device_init(void)
{
	return misc_register(&exs_device);
}

void exs_device_exit(void)
{
	misc_deregister(&exs_device);
}

int exs_async_init(void)
{
	int err = exs_ops_init();

	if (err)
		return err;
	err = exs_conn_ops_init();
	if (err)
		goto no_conn_ops;
	err = exs_timeouts_init();
	if (err)
		goto no_timeouts;
	err = exs_aio_init();
	if (err)
		goto no_aio;
	err = exs_lanes_init();
	if (err)
		goto no_lanes;
	err = exs_feeds_init();
	if (err)
		goto no_feeds;
	err = exs_poll_ops_init();
	if (err)
		goto no_poll;
	return 0;

no_poll:
	exs_feeds_exit();
no_feeds:
	exs_lanes_exit();
no_lanes:
	exs_aio_exit();
no_aio:
	exs_timeouts_exit();
no_timeouts:
	exs_conn_ops_exit();
no_conn_ops:
	exs_ops_exit();
	return err;
}

/* No descriptor is left. At most a thread is on its way out of a callback. */
void exs_async_exit(void)
{
	exs_feeds_exit();
	exs_lanes_exit();
	exs_aio_exit();
	exs_timeouts_exit();
	exs_conn_ops_exit();
	/* The end of an address space may still cancel a poll ... */
	exs_mm_exit();
	exs_poll_ops_exit();
	/* ... and its end may end its queue, which has links. */
	exs_mm_exit();
	exs_ops_exit();
}
