// SPDX-License-Identifier: MIT
/*
 * A module cannot create an eventfd. The first reader of a queue's eventfd creates one and
 * offers it to the queue. If another thread was faster, the queue has that one, and is
 * asked again.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib.h"

static int offer(int q)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int ret, err;

	if (fd < 0)
		return -1;
	ret = exs_set_attr(q, EXS_ATTR_EVENTFD_FIRST, fd);
	err = errno;
	close(fd);
	errno = err;
	return ret && err != EEXIST ? -1 : 0;
}

static int get_or_make(int q, int *fd)
{
	int64_t v;

	while (exs_get_attr(q, EXS_ATTR_EVENTFD, &v))
		if (errno != ENODATA || offer(q))
			return -1;
	*fd = v;
	return 0;
}

int exs_get_eventfd(int q, int *fd)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = get_or_make(q, fd);
	pthread_setcancelstate(state, NULL);
	return ret;
}
