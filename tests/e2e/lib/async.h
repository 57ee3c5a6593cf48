/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the tests of queues, regions and asynchronous operations. */
#ifndef E2E_ASYNC_H
#define E2E_ASYNC_H

#include <sys/exs.h>
#include <linux/exs.h>

#include "e2e.h"

#define NO_REGION	EXS_MHANDLE_UNREGISTERED

exs_qhandle_t queue_new(int depth);
/* A case's .before: where sockets are not told of reads of Linux AIO these wait in io_submit(). */
void needs_aio_reads(void);
long queue_attr(exs_qhandle_t q, int attr);	/* EXS_ATTR_*: the kernel's view */
const char *event_name(int type);
/* /proc/PID/fdinfo of a queue or a region: whether it has that line; and that it must have it. */
bool fdinfo_has(pid_t pid, int fd, const char *line);
void fdinfo_is(int fd, const char *name, long value);

/* The next event; waits. */
exs_event_t event_next(exs_qhandle_t q);
/* The next event, and what it must be. */
void event_is(exs_qhandle_t q, int type, exs_ahandle_t handle, int err, long length);
/* The same, for an event that nothing delays: it comes before the machine was idle for long. */
void event_is_soon(exs_qhandle_t q, int type, exs_ahandle_t handle, int err, long length);
/* The event of @start, on a socket whose sends are not delivered at first: it comes as soon as they are. */
void event_is_soon_after_delivery(void (*start)(int fd, exs_qhandle_t q), int type, exs_ahandle_t handle);
/* Checks an event that was taken. */
void event_check(const exs_event_t *ev, int type, exs_ahandle_t handle, int err, long length);
/* The queue stays empty. Watches for a while, so that an event that comes a little too early cannot slip past. */
void no_event(exs_qhandle_t q);
/* The same, after another connection was made and used: pending work of this one is done by then. */
void no_event_after_others(exs_qhandle_t q);
int event_newfd(const exs_event_t *ev);

/* A region over all of a buffer. */
exs_mhandle_t region_new(void *buf, size_t len, int flags);

/* Operations that must be accepted. */
void start_send(int fd, const void *buf, size_t len, exs_qhandle_t q, exs_ahandle_t h, exs_mhandle_t m);
/* For exs_submit(); without a region. */
exs_op_t an_op(int type, int fd, void *buf, size_t len, exs_ahandle_t handle);
void start_recv(int fd, void *buf, size_t len, int flags, exs_qhandle_t q, exs_ahandle_t h, exs_mhandle_t m);

/* The ring, as a hostile or curious program maps it; the library does not show it. */
struct ring {
	volatile struct exs_ring_head *head;
	const volatile struct exs_ring *ring;
	const volatile struct exs_cqe *entries;
	size_t size;
};

void ring_map(exs_qhandle_t q, struct ring *r);

/* One operation, straight to the kernel: what EXS_IOC_SUBMIT returns. */
int submit_raw(exs_qhandle_t q, const struct exs_sqe *sqe, unsigned int count);

#endif
