// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sched.h>
#include <sys/mount.h>

#define CALL "exs_qcreate"

static char bytes[4];

/* Operations and unread events together; nothing is lost, and no more is started. */
static void depth(void)
{
	exs_qhandle_t q = queue_new(3);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		start_recv(p.s, &bytes[i], 1, 0, q, i, NO_REGION);
	must_fail(exs_recv(p.s, &bytes[3], 1, 0, q, 3, NO_REGION), EAGAIN);
	must_be(send(p.c, "a", 1, 0), 1);
	wait_io(q, POLLIN);
	must_fail(exs_recv(p.s, &bytes[3], 1, 0, q, 3, NO_REGION), EAGAIN);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	start_recv(p.s, &bytes[3], 1, 0, q, 3, NO_REGION);
	for (i = 1; i < 4; i++) {
		must_be(send(p.c, "a", 1, 0), 1);
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	}
	no_event(q);
}

/* It is a descriptor: readable while there are events, and passed on. */
static void descriptor(void)
{
	exs_qhandle_t q = queue_new(1), copy;
	struct pair p;

	pair_open(&p);
	must_be(poll_now(q, POLLIN), 0);
	must_be(fcntl(q, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	start_recv(p.s, bytes, 1, 0, q, 1, NO_REGION);
	must_be(poll_now(q, POLLIN), 0);
	must_be(send(p.c, "a", 1, 0), 1);
	wait_io(q, POLLIN);
	copy = must(dup(q));
	event_is(copy, EXS_EVT_RECV, 1, 0, 1);
	must_be(poll_now(q, POLLIN), 0);
}

static void wrong(void)
{
	must_fail(exs_qcreate(0), EINVAL);
	must_fail(exs_qcreate(-1), EINVAL);
	must_fail(exs_qcreate(1048577), EINVAL);
	must(exs_qdelete(must(exs_qcreate(1048576))));
}

static void no_descriptor(void)
{
	struct rlimit limit = { 3, 3 };

	must(exs_family());
	must(setrlimit(RLIMIT_NOFILE, &limit));
	must_fail(exs_qcreate(1), EMFILE);
}

static void limits(void)
{
	write_sysctl("max_user_queues", 1);
	drop_privileges();
	queue_new(1);
	must_fail(exs_qcreate(1), ENOBUFS);
}

static void disabled(void)
{
	write_sysctl("enabled", 0);
	must_fail(exs_init(EXS_VERSION), EAFNOSUPPORT);
	/* A container without the device. */
	must(unshare(CLONE_NEWNS));
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	must(mount("none", "/dev", "tmpfs", 0, NULL));
	must_fail(exs_qcreate(1), EAFNOSUPPORT);
	must_fail(exs_mregister(bytes, 1, 0), EAFNOSUPPORT);
	must(umount("/dev"));
	/* Elsewhere a program may go on: neither needs a socket. */
	must(exs_mregister(bytes, 1, 0));
	must(exs_qcreate(1));
}

const struct e2e_case exs_qcreate_cases[] = {
	CASE(depth, ON_KINDS),
	CASE(descriptor, ON_KINDS),
	CASE(wrong, ON_EXS),
	CASE(no_descriptor, ON_EXS),
	CASE(limits, ON_EXS),
	CASE(disabled, ON_EXS),
	{}
};
