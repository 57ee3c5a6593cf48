// SPDX-License-Identifier: MIT
/*
 * exs_qdequeue(): as long as enough events are there, nothing but loads, one
 * compare-and-swap and no system call (but for accepts and polls). Otherwise the kernel is asked to wake
 * us when they are; nothing is taken before, so that a signal or a cancelled
 * thread loses nothing.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
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
	bool expired;		/* take what is there                         */
	int64_t timeout;	/* ns, if timed                               */
	int64_t deadline;	/* CLOCK_MONOTONIC; 0: nobody looked yet      */
};

/* What takes more than copying: descriptors for accepted connections. */
struct taker {
	const struct request *r;
	const struct exs_map *map;
	unsigned long done;
	int reserve;		/* a descriptor held in advance, or -1 */
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* The first event goes back where the next call finds it. */
static int keep_event(struct taker *t, exs_event_t *ev)
{
	int err = errno;

	if (!exs_pending_put(t->map->id, ev)) {
		errno = err;
		return -1;
	}
	exs_claim_drop(t->r->queue, ev);
	ev->exs_evt_errno = err;	/* no memory even for that */
	exs_event_set_token(ev, 0);
	exs_event_set_arg(ev, 0);
	t->done++;
	return 0;
}

static int give_descriptor(struct taker *t)
{
	exs_event_t *ev = &t->r->vec[t->done];
	int n;

	if (t->reserve >= 0)
		close(t->reserve);
	t->reserve = -1;
	n = exs_claim_accept(t->r->queue, ev);
	if (n < 0)
		return keep_event(t, ev);
	t->done += n;
	return 0;
}

static bool has_token(const exs_event_t *ev)
{
	return ev->exs_evt_type == EXS_EVT_ACCEPT && exs_event_token(ev);
}

static int take_pending(struct taker *t)
{
	while (t->done < t->r->max &&
	       exs_pending_get(t->map->id, &t->r->vec[t->done]))
		if (!has_token(&t->r->vec[t->done]))
			t->done++;
		else if (give_descriptor(t))
			return -1;
	return 0;
}

/*
 * Up to the first accepted connection, and that one only if there is a
 * descriptor for it: if not, it stays in the ring. 1: go on; 0: no more.
 */
static int take_step(struct taker *t)
{
	bool token;
	long n = exs_ring_take(&t->map->view, t->r->vec + t->done, 1,
			       t->r->max - t->done, t->reserve >= 0, &token);

	if (n < 0) {
		errno = EIO;
		return -1;
	}
	if (n == 0 && token) {
		t->reserve = eventfd(0, EFD_CLOEXEC);
		return t->reserve < 0 ? -1 : 1;
	}
	t->done += n;
	if (n > 0 && token && t->reserve >= 0) {
		t->done--;
		return give_descriptor(t) ? -1 : 1;
	}
	return n > 0 || token;
}

/* close(2) and accept4(2) are cancellation points. */
static int take_slowly(struct taker *t)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = take_pending(t);
	while (ret >= 0 && t->done < t->r->max) {
		ret = take_step(t);
		if (ret <= 0)
			break;
	}
	if (t->reserve >= 0)
		close(t->reserve);
	pthread_setcancelstate(state, NULL);
	return ret < 0 ? -1 : 0;
}

/* They are this thread's now. Return: @n. */
static int given_out(const exs_event_t *vec, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (vec[i].exs_evt_type == EXS_EVT_POLL)
			exs_poll_finish(&vec[i]);
	return n;
}

/*
 * All or none were asked for, and an accept went on, or had no descriptor: what was
 * taken goes back, in its order. Without the memory for that some are given out.
 */
static void put_back(struct taker *t)
{
	while (t->done && !exs_pending_put(t->map->id, &t->r->vec[t->done - 1]))
		t->done--;
}

/* Return: events taken, or -1 and errno if there is an error and no event. */
static int take(const struct request *r, const struct exs_map *map)
{
	struct taker t = { .r = r, .map = map, .reserve = -1 };
	int ret, err;

	if (!exs_pending_count(map->id)) {
		unsigned long min = r->expired ? 1 : r->need;
		bool token;
		long n = exs_ring_take(&map->view, r->vec, min, r->max, false,
				       &token);

		if (n >= 0 && !token)
			return given_out(r->vec, n);
		if (n > 0)
			t.done = n;
	}
	ret = take_slowly(&t);
	err = errno;
	if (r->all && !r->expired && t.done < r->need)
		put_back(&t);
	if (t.done)
		return given_out(r->vec, t.done);
	errno = err;
	return ret;
}

/*
 * The wake-up of a thread that is cancelled before it can look belongs to the
 * next one that sleeps: a wait that ends at once passes it on.
 */
static void pass_wake_up_on(void *queue)
{
	struct exs_ioc_wait w = { .size = sizeof(w), .count = 1 };

	ioctl(*(int *)queue, EXS_IOC_WAIT, &w);
}

/*
 * An ioctl is no cancellation point, and one that may block for ever ought to
 * be: but for a wake-up, nothing is held here that a cancelled thread could
 * leave behind.
 */
static int wait_cancellable(int queue, struct exs_ioc_wait *w)
{
	int ret, type;

	/*
	 * There is no other thread that could cancel this one while it waits, and a signal's
	 * handler may not.
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

/* The clock is not read by a call that finds its events. */
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

/* One look. 0: not enough there, *missing says how many; else the result. */
static int look(const struct request *r, const struct exs_map *map,
		unsigned long *missing)
{
	long there = exs_ring_count(&map->view);
	unsigned long have;

	if (there < 0 || (r->all && r->need > (uint64_t)map->view.mask + 1)) {
		errno = there < 0 ? EIO : EINVAL;
		return -1;
	}
	have = there + exs_pending_count(map->id);
	if (have >= r->need || r->expired)
		return take(r, map);
	*missing = r->need - have + there;
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
		/* 0: others took what was there. How many are there now? */
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
	/* Three hundred years are for ever. */
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
