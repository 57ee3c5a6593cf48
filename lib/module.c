// SPDX-License-Identifier: MIT
/*
 * Queues and regions are made by an ioctl of the module. A queue that the program has
 * takes it as well, and saves opening the device. Its descriptor may have been closed
 * behind our back, and its number be another file's: that says that it does not know
 * the request. In a container the device may be missing: then any socket will do.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

static int known = -1;	/* atomic: a queue, or -1 */

void exs_module_queue(int q)
{
	__atomic_store_n(&known, q, __ATOMIC_RELAXED);
}

void exs_module_forget(int q)
{
	__atomic_compare_exchange_n(&known, &q, -1, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* Of what is no queue, or of one that has this to say, too: the device says it again. */
static bool is_no_answer(int err)
{
	return err == EBADF || err == ENOTTY || err == EINVAL || err == EOPNOTSUPP;
}

static int open_module(void)
{
	int fd = open(EXS_DEVICE, O_RDWR | O_CLOEXEC), family;

	if (fd >= 0)
		return fd;
	family = exs_family();
	return family < 0 ? -1 : socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int ask_module(unsigned long request, void *arg)
{
	int fd = open_module(), ret, err;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, request, arg);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

int exs_module_ioctl(unsigned long request, void *arg)
{
	int q = __atomic_load_n(&known, __ATOMIC_RELAXED), ret, state;

	if (q >= 0) {
		ret = ioctl(q, request, arg);
		if (ret >= 0 || !is_no_answer(errno))
			return ret;
		exs_module_forget(q);
	}
	/* open(2) and close(2) are cancellation points, and what was made would be nobody's. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = ask_module(request, arg);
	pthread_setcancelstate(state, NULL);
	return ret;
}
