// SPDX-License-Identifier: MIT
/*
 * An accept event is taken from the ring when a descriptor for it is to be
 * had. If another thread takes the last one in between, the event waits here,
 * with its token, for the next exs_qdequeue() of this process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib.h"

struct pending {
	struct pending *next;
	uint64_t queue_id;
	exs_event_t ev;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *list;
static unsigned long total;	/* atomic: what is normally all that is read */

unsigned long exs_pending_count(uint64_t queue_id)
{
	struct pending *p;
	unsigned long n = 0;

	if (!__atomic_load_n(&total, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	for (p = list; p; p = p->next)
		n += p->queue_id == queue_id;
	pthread_mutex_unlock(&lock);
	return n;
}

int exs_pending_put(uint64_t queue_id, const exs_event_t *ev)
{
	struct pending *p = malloc(sizeof(*p));

	if (!p)
		return -1;
	p->queue_id = queue_id;
	p->ev = *ev;
	pthread_mutex_lock(&lock);
	p->next = list;
	list = p;
	__atomic_fetch_add(&total, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct pending *unlink_one(uint64_t queue_id)
{
	struct pending **at, *p;

	for (at = &list; (p = *at); at = &p->next) {
		if (p->queue_id != queue_id)
			continue;
		*at = p->next;
		__atomic_fetch_sub(&total, 1, __ATOMIC_RELEASE);
		return p;
	}
	return NULL;
}

bool exs_pending_get(uint64_t queue_id, exs_event_t *ev)
{
	struct pending *p;

	if (!__atomic_load_n(&total, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&lock);
	p = unlink_one(queue_id);
	pthread_mutex_unlock(&lock);
	if (!p)
		return false;
	*ev = p->ev;
	free(p);
	return true;
}

void exs_pending_drop(uint64_t queue_id)
{
	exs_event_t ev;

	while (exs_pending_get(queue_id, &ev))
		if (ev.exs_evt_type == EXS_EVT_ACCEPT &&
		    ev.exs_evt_union.exs_evt_accept.exs_evt_newfd >= 0)
			close(ev.exs_evt_union.exs_evt_accept.exs_evt_newfd);
}

/* They belong to the parent. Its lock may have been held by another thread. */
void exs_pending_forked(void)
{
	list = NULL;
	total = 0;
	pthread_mutex_init(&lock, NULL);
}
