// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sys/syscall.h>

#define CALL "exs_qstatus"

static char bytes[2];

static int status(exs_qhandle_t q, int attr)
{
	int value = -77;

	must(exs_qstatus(q, attr, &value));
	return value;
}

static void fresh(void)
{
	exs_signal_t sig = { 77, 77 };
	exs_qhandle_t q = queue_new(3);

	must_be(status(q, EXS_QATTR_DEPTH), 3);
	must_be(status(q, EXS_QATTR_EVENTS), 0);
	must_be(status(q, EXS_QATTR_WAIT), EXS_WAIT_NOTIFY);
	must(exs_qstatus(q, EXS_QATTR_SIGNAL, &sig));
	must_be(sig.exs_sig_mode, EXS_SIG_DISABLE);
}

static void events(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 2; i++) {
		start_recv(p.s, &bytes[i], 1, 0, q, i, NO_REGION);
		must_be(status(q, EXS_QATTR_EVENTS), i);
		must_be(send(p.c, "x", 1, 0), 1);
		wait_until(status(q, EXS_QATTR_EVENTS) == i + 1);
	}
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	must_be(status(q, EXS_QATTR_EVENTS), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must_be(status(q, EXS_QATTR_EVENTS), 0);
}

static void eventfd_of_queue(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = status(q, EXS_QATTR_EVENTFD), again = status(q, EXS_QATTR_EVENTFD);
	struct pair p;
	uint64_t n;

	must_be(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_io(fd, POLLIN);
	must_be(read(again, &n, sizeof(n)), sizeof(n));
	must_fail(read(fd, &n, sizeof(n)), EAGAIN);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct rlimit none = { 3, 3 };
	struct pair p;
	int value;

	pair_open(&p);
	must_fail(exs_qstatus(-1, EXS_QATTR_DEPTH, &value), EBADF);
	must_fail(exs_qstatus(w.file, EXS_QATTR_DEPTH, &value), EINVAL);
	must_fail(exs_qstatus(p.c, EXS_QATTR_DEPTH, &value), EINVAL);
	must_fail(exs_qstatus(q, EXS_QATTR_DEPTH, NULL), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_EVENTS, (void *)8), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_WAIT, (void *)-4096), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_SIGNAL, (void *)8), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_SIGNAL, NULL), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_EVENTFD, NULL), EFAULT);
	must_fail(exs_qstatus(q, 77, &value), EINVAL);
	must(setrlimit(RLIMIT_NOFILE, &none));
	must_fail(exs_qstatus(q, EXS_QATTR_EVENTFD, &value), EMFILE);
}

/* provokes: exs_qstatus call ENFILE ENOMEM */
static void forbidden(void *arg)
{
	exs_qhandle_t q = queue_new(1);
	int err = *(int *)arg, fd = -77;

	forbid_call(SYS_eventfd2, err);
	must_fail(exs_qstatus(q, EXS_QATTR_EVENTFD, &fd), err);
	must_be(fd, -77);
}

static void no_eventfd(void)
{
	static int errs[] = { ENFILE, ENOMEM };

	join(spawn(forbidden, &errs[0]));
	join(spawn(forbidden, &errs[1]));
}

const struct e2e_case exs_qstatus_cases[] = {
	CASE(fresh, ON_EXS),
	CASE(events, ON_KINDS),
	CASE(eventfd_of_queue, ON_KINDS),
	CASE(no_eventfd, ON_EXS),
	CASE(wrong, ON_KINDS),
	{}
};
