// SPDX-License-Identifier: MIT
/*
 * The kernel reports that a descriptor is ready, but does not write revents: another
 * process may dequeue the event, and later. So the thread that dequeues it calls poll(2)
 * without waiting.
 */
#include <errno.h>
#include <pthread.h>

#include "lib.h"

/* poll(2) is a cancellation point. */
void exs_poll_finish(const exs_event_t *ev)
{
	const exs_evt_poll_t *p = &ev->exs_evt_union.exs_evt_poll;
	int err = errno, state, n, i;

	if (ev->exs_evt_errno || !p->exs_evt_fds)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while ((n = poll(p->exs_evt_fds, p->exs_evt_nfds, 0)) < 0 && errno == EINTR)
		;
	/* RLIMIT_NOFILE was lowered, or there is no memory: the result is unknown. */
	for (i = 0; n < 0 && i < p->exs_evt_nfds; i++)
		p->exs_evt_fds[i].revents = 0;
	pthread_setcancelstate(state, NULL);
	errno = err;
}

int exs_poll(exs_pollfd_t *fds, int nfds, int flags, exs_qhandle_t queue,
	     exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_POLL,
		.fd = -1,
		.handle = handle,
		.addr = (uintptr_t)fds,
		.len = nfds,
		.region = EXS_REGION_NONE,
	};

	if (flags || nfds < 1) {
		errno = EINVAL;
		return -1;
	}
	if (queue == EXS_QHANDLE_INVALID)
		return poll(fds, nfds, -1);
	if (exs_arg_make(fds, 0, &sqe))
		return -1;
	return exs_submit_op(queue, &sqe);
}
