// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sys/syscall.h>

#define CALL "exs_init"

static void versions(void)
{
	must_be(exs_init(EXS_VERSION), 0);
	must_be(exs_init(EXS_VERSION1), 0);
	must_be(exs_init(EXS_VERSION), 0);
	must_fail(exs_init(0), EINVAL);
	must_fail(exs_init(EXS_VERSION + 1), EINVAL);
	must_fail(exs_init(-1), EINVAL);
}

static void no_descriptor(void)
{
	struct rlimit none = { 3, 3 };

	must(setrlimit(RLIMIT_NOFILE, &none));
	must_fail(exs_init(EXS_VERSION), EMFILE);
}

/* Each error says why the module could not be asked, by the device or by a socket. */
static void no_socket(void *arg)
{
	int err = *(int *)arg;
	char byte;

	/* provokes: exs_init call EACCES EPERM ENFILE ENOBUFS ENOMEM */
	/* provokes: exs_qcreate call EACCES EPERM ENFILE ENOMEM */
	/* provokes: exs_mregister call EACCES EPERM ENFILE */
	forbid_call(SYS_socket, err);
	forbid_call(SYS_openat, err);
	must_fail(exs_init(EXS_VERSION), err);
	must_fail(exs_family(), err);
	must_fail(exs_qcreate(1), err);
	must_fail(exs_mregister(&byte, 1, 0), err);
}

static void forbidden(void)
{
	static int errs[] = { EACCES, EPERM, ENFILE, ENOBUFS, ENOMEM };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errs); i++)
		join(spawn(no_socket, &errs[i]));
}

const struct e2e_case exs_init_cases[] = {
	CASE(versions, ON_EXS),
	CASE(no_descriptor, ON_EXS),
	CASE(forbidden, ON_EXS),
	{}
};
