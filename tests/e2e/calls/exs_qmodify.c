// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sys/eventfd.h>

#define CALL "exs_qmodify"

static char bytes[4];

static void depth(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	int two = 2, one = 1, none = 0, many = 4097;

	pair_open(&p);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_fail(exs_recv(p.s, bytes + 1, 1, 0, q, 2, NO_REGION), EAGAIN);
	must(exs_qmodify(q, EXS_QATTR_DEPTH, &two));
	start_recv(p.s, bytes + 1, 1, 0, q, 2, NO_REGION);
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, &one), EBUSY);
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, &none), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, &many), EINVAL);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must(exs_qmodify(q, EXS_QATTR_DEPTH, &one));
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 3, NO_REGION), EAGAIN);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
}

/* In every way to wait. */
static void wait_modes(void)
{
	static const int modes[] = { EXS_WAIT_BUSY_POLL, EXS_WAIT_ADAPTIVE, EXS_WAIT_NOTIFY };
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		must(exs_qmodify(q, EXS_QATTR_WAIT, &modes[i]));
		start_recv(p.s, bytes, 1, 0, q, i, NO_REGION);
		must_be(send(p.c, "x", 1, 0), 1);
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	}
}

static void own_eventfd(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = must(eventfd(0, EFD_CLOEXEC)), none = -1;
	struct pair p;
	uint64_t n;

	pair_open(&p);
	must(exs_qmodify(q, EXS_QATTR_EVENTFD, &fd));
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(poll_now(fd, POLLIN), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_io(fd, POLLIN);
	must_be(read(fd, &n, sizeof(n)), sizeof(n));
	must_be(n, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must(exs_qmodify(q, EXS_QATTR_EVENTFD, &none));
}

static void signals(void)
{
	exs_signal_t sig = { EXS_SIG_ENABLE, SIGUSR1 };
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	catch_signal(SIGUSR1, SA_RESTART);
	must(exs_qmodify(q, EXS_QATTR_SIGNAL, &sig));
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(signals_caught, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_until(signals_caught == 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	sig.exs_sig_mode = EXS_SIG_DISABLE;
	must(exs_qmodify(q, EXS_QATTR_SIGNAL, &sig));
	start_recv(p.s, bytes, 1, 0, q, 2, NO_REGION);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	must_be(signals_caught, 1);
}

static void wrong(void)
{
	exs_signal_t mode = { 3, SIGUSR1 }, number = { EXS_SIG_ENABLE, 65 };
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	struct pair p;
	int one = 1;

	pair_open(&p);
	must_fail(exs_qmodify(-1, EXS_QATTR_DEPTH, &one), EBADF);
	must_fail(exs_qmodify(w.file, EXS_QATTR_DEPTH, &one), EINVAL);
	must_fail(exs_qmodify(p.c, EXS_QATTR_DEPTH, &one), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, NULL), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_WAIT, (void *)8), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTFD, (void *)-4096), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTS, &one), EINVAL);
	must_fail(exs_qmodify(q, 77, &one), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, NULL), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, (void *)8), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, &mode), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_SIGNAL, &number), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTFD, &w.none), EBADF);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTFD, &w.file), EINVAL);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTFD, &p.c), EINVAL);
}

const struct e2e_case exs_qmodify_cases[] = {
	CASE(depth, ON_KINDS),
	CASE(wait_modes, ON_KINDS),
	CASE(own_eventfd, ON_KINDS),
	CASE(signals, ON_KINDS),
	CASE(wrong, ON_KINDS),
	{}
};
