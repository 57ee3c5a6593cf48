// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "map.h"

int exs_get_attr(int fd, unsigned int attr, int64_t *value)
{
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = attr };

	if (ioctl(fd, EXS_IOC_GETATTR, &a)) {
		if (errno == ENOTTY)
			errno = EINVAL;
		return -1;
	}
	*value = a.value;
	return 0;
}

int exs_set_attr(int fd, unsigned int attr, int64_t value)
{
	struct exs_ioc_attr a = {
		.size = sizeof(a),
		.attr = attr,
		.value = value,
	};

	if (!ioctl(fd, EXS_IOC_SETATTR, &a))
		return 0;
	if (errno == ENOTTY)
		errno = EINVAL;
	return -1;
}

/* After an exec the addresses in events are invalid; fcntl(2) can still pass it on. */
exs_qhandle_t exs_qcreate(int depth)
{
	struct exs_ioc_qcreate c = {
		.size = sizeof(c),
		.depth = depth,
		.flags = EXS_QF_CLOEXEC,
	};
	int q;

	if (depth < 1 || depth > EXS_QUEUE_DEPTH_MAX) {
		errno = EINVAL;
		return EXS_QHANDLE_INVALID;
	}
	/* Mappings still hold queues that were closed with close(2). */
	exs_map_sweep();
	q = exs_module_ioctl(EXS_IOC_QCREATE, &c);
	return q < 0 ? EXS_QHANDLE_INVALID : q;
}

int exs_qdelete(exs_qhandle_t queue)
{
	int64_t id;
	int ret, state;

	if (exs_get_attr(queue, EXS_ATTR_ID, &id))
		return -1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = exs_map_close(queue);
	pthread_setcancelstate(state, NULL);
	return ret;
}

/* The kernel's number of an attribute; 0: no such attribute. */
static unsigned int kernel_attr(int attr)
{
	switch (attr) {
	case EXS_QATTR_DEPTH:
		return EXS_ATTR_DEPTH;
	case EXS_QATTR_EVENTS:
		return EXS_ATTR_EVENTS;
	case EXS_QATTR_EVENTFD:
		return EXS_ATTR_EVENTFD;
	case EXS_QATTR_WAIT:
		return EXS_ATTR_WAIT;
	default:
		return 0;
	}
}

int exs_qmodify(exs_qhandle_t queue, int attr, const void *value)
{
	unsigned int a = kernel_attr(attr);

	if (attr == EXS_QATTR_SIGNAL)
		return exs_set_signal(queue, value);
	if (!a || a == EXS_ATTR_EVENTS) {
		errno = EINVAL;
		return -1;
	}
	if (exs_check_addr(value, sizeof(int)))
		return -1;
	return exs_set_attr(queue, a, *(const int *)value);
}

int exs_qstatus(exs_qhandle_t queue, int attr, void *value)
{
	unsigned int a = kernel_attr(attr);
	int64_t v;

	if (attr == EXS_QATTR_SIGNAL)
		return exs_get_signal(queue, value);
	if (!a) {
		errno = EINVAL;
		return -1;
	}
	if (exs_check_addr(value, sizeof(int)))
		return -1;
	if (a == EXS_ATTR_EVENTFD)
		return exs_get_eventfd(queue, value);
	if (exs_get_attr(queue, a, &v))
		return -1;
	*(int *)value = v > INT_MAX ? INT_MAX : v;
	return 0;
}
