// SPDX-License-Identifier: MIT
/*
 * epoll sets hold files, not descriptors, so a socket that replaces another is in no set.
 * Therefore remember the set that a new socket was added to. A socket that is added to several sets
 * is not replaced any more.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "preload.h"

#define DESCRIPTORS	65536	/* larger ones are not remembered */

static struct watch {
	bool on, several;
	int set;
	struct epoll_event event;
} watches[DESCRIPTORS];

static struct watch *watch_of(int fd)
{
	return fd >= 0 && fd < DESCRIPTORS ? &watches[fd] : NULL;
}

bool watch_knows(int fd)
{
	const struct watch *w = watch_of(fd);

	return w && !w->several;
}

void watch_forget(int fd)
{
	struct watch *w = watch_of(fd);

	if (w && (w->on || w->several))
		w->on = w->several = false;
}

void watch_suspend(int fd)
{
	struct watch *w = watch_of(fd);

	if (w && w->on && next_epoll_ctl(w->set, EPOLL_CTL_DEL, fd, NULL))
		w->on = false;
}

void watch_resume(int fd)
{
	struct watch *w = watch_of(fd);

	if (w && w->on)
		next_epoll_ctl(w->set, EPOLL_CTL_ADD, fd, &w->event);
}

WRAPPER int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct watch *w = watch_of(fd);
	int ret = next_epoll_ctl(epfd, op, fd, event);

	if (ret || !w)
		return ret;
	w->several |= w->on && w->set != epfd;
	w->on = op != EPOLL_CTL_DEL;
	w->set = epfd;
	if (w->on)
		w->event = *event;
	return ret;
}
