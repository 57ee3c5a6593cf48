// SPDX-License-Identifier: MIT
/*
 * exs_qdequeue(): if enough events are there, it needs loads, one compare-and-swap and no
 * system call (except for accepts and polls). Otherwise the kernel wakes us when they are
 * there. No event is taken before, so a signal or a cancelled thread loses none.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "map.h"

#if __has_include("sys/single_threaded.h")
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

#define NSEC_PER_SEC	1000000000LL

struct request {
	int queue;
	exs_event_t *vec;
	unsigned long max;	/* room in vec                                */
	unsigned long need;	/* events to wait for                         */
	bool all;		/* count was negative                         */
	bool timed;
	bool expired;		/* take the events that are there             */
	int64_t timeout;	/* ns, if timed                               */
	int64_t deadline;	/* CLOCK_MONOTONIC; 0: not read yet           */
	uint64_t epoch;		/* of the ring when it was looked at          */
};

/* Descriptors reserved for accepted connections. */
struct reserve {
	int *fds;
	unsigned long n;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Return: 0; or -1 and errno: fewer than @n, or none. */
static int reserve_grow(struct reserve *s, unsigned long n)
{
	int *fds = realloc(s->fds, n * sizeof(*fds));

	if (!fds)
		return -1;
	for (s->fds = fds; s->n < n; s->n++) {
		fds[s->n] = eventfd(0, EFD_CLOEXEC);
		if (fds[s->n] < 0)
			return -1;
	}
	return 0;
}

static void reserve_release(struct reserve *s)
{
	int err = errno;

	while (s->n)
		close(s->fds[--s->n]);
	free(s->fds);
	errno = err;
}

static long take_at_once(const struct request *r, const struct exs_map *map,
			 unsigned long done, unsigned long descriptors,
			 unsigned long *tokens)
{
	unsigned long min = done || r->expired ? 1 : r->need;
	long n = exs_ring_take(&map->view, r->vec + done, min, r->max - done,
			       descriptors, tokens);

	if (n < 0)
		errno = EIO;
	return n;
}

/*
 * Take events up to the first accepted connection without a descriptor. If all events are
 * wanted, take none unless each has a descriptor. Return: number, or -1 and errno.
 */
static long take_reserved(const struct request *r, const struct exs_map *map,
			  unsigned long done, unsigned long tokens, struct reserve *s)
{
	int short_of = 0;
	long n;

	do {
		if (reserve_grow(s, tokens))
			short_of = errno;
		n = take_at_once(r, map, done, s->n, &tokens);
	} while (!n && tokens > s->n && !short_of);
	if (n || tokens <= s->n)
		return n;	/* 0: other threads were faster */
	errno = short_of;
	return -1;
}

static bool has_token(const exs_event_t *ev)
{
	return ev->exs_evt_type == EXS_EVT_ACCEPT && exs_event_token(ev);
}

/*
 * Create descriptors for the @n events taken, from @done on. If the connection of an accept
 * is gone, the accept continues, or its event goes back into the queue, unless then too few
 * of the wanted events are left. Return: number of events, or -1 and errno if none.
 */
static long open_connections(const struct request *r, unsigned long done, long n,
			     struct reserve *s)
{
	bool must = r->all && !r->expired && n > 1;
	exs_event_t *ev = r->vec + done, *end = ev + n;
	int short_of = 0, ret;

	for (; ev < end; ev++) {
		if (has_token(ev)) {
			close(s->fds[--s->n]);
			ret = exs_claim_accept(r->queue, ev, must);
			if (ret < 0)
				short_of = errno;
			if (ret <= 0)
				continue;
		}
		if (ev != r->vec + done)
			r->vec[done] = *ev;
		done++;
	}
	if (done || !short_of)
		return done;
	errno = short_of;
	return -1;
}

/* close(2) and accept4(2) are cancellation points. */
static long take_slowly(const struct request *r, const struct exs_map *map,
			unsigned long done, unsigned long tokens)
{
	struct reserve s = { NULL, 0 };
	int state;
	long n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	n = take_reserved(r, map, done, tokens, &s);
	if (n > 0)
		n = open_connections(r, done, n, &s);
	else if (done)
		n = done;
	reserve_release(&s);
	pthread_setcancelstate(state, NULL);
	return n;
}

/* The events belong to this thread now. Return: @n. */
static int given_out(const exs_event_t *vec, long n)
{
	long i;

	for (i = 0; i < n; i++)
		if (vec[i].exs_evt_type == EXS_EVT_POLL)
			exs_poll_finish(&vec[i]);
	return n;
}

/* Return: events taken; -1 and errno if there is an error and no event. */
static int take(const struct request *r, const struct exs_map *map)
{
	unsigned long tokens;
	long n = take_at_once(r, map, 0, 0, &tokens);

	if (n >= 0 && tokens)
		n = take_slowly(r, map, n, tokens);
	return given_out(r->vec, n);
}

/*
 * A thread that is cancelled after its wake-up must pass the wake-up on to the next sleeping
 * thread. A wait that ends at once does this.
 */
static void pass_wake_up_on(void *queue)
{
	struct exs_ioc_wait w = { .size = sizeof(w), .count = 1 };

	ioctl(*(int *)queue, EXS_IOC_WAIT, &w);
}

/*
 * An ioctl is not a cancellation point, but one that may block for ever should be. Apart
 * from a wake-up, a cancelled thread leaves nothing behind here.
 */
static int wait_cancellable(int queue, struct exs_ioc_wait *w)
{
	int ret, type;

	/*
	 * No other thread can cancel this one, and a signal handler must not.
	 */
	if (__libc_single_threaded) {
		pthread_testcancel();
		return ioctl(queue, EXS_IOC_WAIT, w);
	}
	pthread_cleanup_push(pass_wake_up_on, &queue);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = ioctl(queue, EXS_IOC_WAIT, w);
	pthread_setcanceltype(type, NULL);
	pthread_cleanup_pop(0);
	return ret;
}

/* A call that finds its events does not read the clock. */
static int64_t time_left(struct request *r)
{
	int64_t now = now_ns();

	if (!r->deadline)
		r->deadline = now + r->timeout;
	return r->deadline - now;
}

static int wait_events(struct request *r, unsigned long missing)
{
	struct exs_ioc_wait w = {
		.size = sizeof(w),
		.count = missing,
		.timeout_ns = -1,
		.epoch = r->epoch,
	};

	if (r->timed) {
		w.timeout_ns = time_left(r);
		r->expired = w.timeout_ns <= 0;
		if (r->expired)
			return 0;
	}
	if (wait_cancellable(r->queue, &w) >= 0)
		return 0;
	if (r->timed && (errno == ETIME || errno == ETIMEDOUT ||
			 errno == EAGAIN)) {
		r->expired = true;
		return 0;
	}
	if (errno == ENOTTY)
		errno = EINVAL;
	return -1;
}

/* Check once. Return: 0: not enough events, *missing is the number; else the result. */
static int look(struct request *r, const struct exs_map *map,
		unsigned long *missing)
{
	long there = exs_ring_count(&map->view);

	if (there < 0 || (r->all && r->need > (uint64_t)map->view.mask + 1)) {
		errno = there < 0 ? EIO : EINVAL;
		return -1;
	}
	if ((unsigned long)there >= r->need || r->expired)
		return take(r, map);
	*missing = r->need;
	r->epoch = __atomic_load_n(&map->epoch, __ATOMIC_RELAXED);
	return 0;
}

static int dequeue(struct request *r)
{
	for (;;) {
		struct exs_pin pin;
		unsigned long missing = 0;
		int ret;

		if (exs_map_pin(r->queue, &pin))
			return -1;
		ret = look(r, pin.map, &missing);
		exs_map_unpin(&pin);
		if (ret || r->expired)
			return ret;
		/* 0: other threads have taken them, or a descriptor was closed: look again. */
		if (missing && wait_events(r, missing))
			return -1;
	}
}

static int set_timeout(struct request *r, const struct timeval *timeout)
{
	if (!timeout)
		return 0;
	if (exs_check_addr(timeout, sizeof(*timeout)))
		return -1;
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0 ||
	    timeout->tv_usec > 999999) {
		errno = EINVAL;
		return -1;
	}
	if (!timeout->tv_sec && !timeout->tv_usec) {
		r->expired = true;
		return 0;
	}
	/* More than a hundred years are for ever. */
	if (timeout->tv_sec > INT64_MAX / NSEC_PER_SEC / 2)
		return 0;
	r->timed = true;
	r->timeout = timeout->tv_sec * NSEC_PER_SEC + timeout->tv_usec * 1000LL;
	return 0;
}

int exs_qdequeue(exs_qhandle_t queue, exs_event_t *vec, int count,
		 const struct timeval *timeout)
{
	struct request r = {
		.queue = queue,
		.vec = vec,
		.max = count < 0 ? -(unsigned long)count : (unsigned long)count,
		.all = count < 0,
	};

	if (!count)
		return 0;
	if (count == INT_MIN) {
		errno = EINVAL;
		return -1;
	}
	r.need = r.all ? r.max : 1;
	if (exs_check_addr(vec, r.max * sizeof(*vec)) || set_timeout(&r, timeout))
		return -1;
	return dequeue(&r);
}
