// SPDX-License-Identifier: MIT
/*
 * An ioctl of the module creates queues and regions. The device is opened each time: the
 * program may have closed a descriptor that the library keeps, and reused its number. In a
 * container the device may be missing: then the library uses a socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

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
	int ret, state;

	/* open(2) and close(2) are cancellation points, and the new descriptor would be lost. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = ask_module(request, arg);
	pthread_setcancelstate(state, NULL);
	return ret;
}
