// SPDX-License-Identifier: MIT
/*
 * A signal for each event: a queue's descriptor supports the kernel's O_ASYNC, F_SETOWN and
 * F_SETSIG, like other descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "lib.h"

/* Any descriptor may have O_ASYNC, so check that it is a queue. */
static int queue_flags(int q)
{
	int64_t id;

	return exs_get_attr(q, EXS_ATTR_ID, &id) ? -1 : fcntl(q, F_GETFL);
}

static int enable(int q, int flags, int number)
{
	if (fcntl(q, F_SETSIG, number) || fcntl(q, F_SETOWN, getpid()))
		return -1;
	return fcntl(q, F_SETFL, flags | O_ASYNC);
}

static bool is_wrong(const exs_signal_t *s)
{
	if (s->exs_sig_mode == EXS_SIG_DISABLE)
		return false;
	return s->exs_sig_mode != EXS_SIG_ENABLE || s->exs_sig_number < 1 ||
	       s->exs_sig_number > SIGRTMAX;
}

/*
 * Switch it off in between: the previous owner must not get the new signal, and si_fd must
 * be the present descriptor.
 */
int exs_set_signal(int q, const exs_signal_t *s)
{
	int flags = queue_flags(q);

	if (flags < 0)
		return -1;
	if (exs_check_addr(s, sizeof(*s)))
		return -1;
	if (is_wrong(s)) {
		errno = EINVAL;
		return -1;
	}
	flags &= ~O_ASYNC;
	if (fcntl(q, F_SETFL, flags))
		return -1;
	if (s->exs_sig_mode == EXS_SIG_DISABLE)
		return 0;
	return enable(q, flags, s->exs_sig_number);
}

int exs_get_signal(int q, exs_signal_t *s)
{
	int flags = queue_flags(q), number;

	if (flags < 0)
		return -1;
	if (exs_check_addr(s, sizeof(*s)))
		return -1;
	number = fcntl(q, F_GETSIG);
	if (number < 0)
		return -1;
	s->exs_sig_mode = flags & O_ASYNC ? EXS_SIG_ENABLE : EXS_SIG_DISABLE;
	s->exs_sig_number = number ? number : SIGIO;
	return 0;
}
