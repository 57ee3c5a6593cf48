// SPDX-License-Identifier: GPL-2.0
/*
 * Features that a kind of socket does not support, and the errno that says so. A
 * row's cases are skipped there, each after a try; if the try succeeds they fail
 * until the row is removed.
 */
#include "calls.h"

static const struct {
	const char *what;
	unsigned int on;
	int err;
	const char *why;
} rows[] = {
	{ "exs_accept", ON_DGRAMS, EOPNOTSUPP, "sockets of datagrams do not listen" },
	{ "read knobs", ON_PLAIN, EOPNOTSUPP, "options of AF_EXS" },
	{ "knobs", ON_TCP | ON_UDP, ENOPROTOOPT, "options of AF_EXS" },
	{ "knobs", ON_UNIX | ON_UNIX_SEQ | ON_UNIX_DGRAM, EOPNOTSUPP, "options of AF_EXS" },
};

void supported_or_skip(const char *what, int (*probe)(exs_qhandle_t q))
{
	exs_qhandle_t q;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!(rows[i].on & e2e.on) || strcmp(rows[i].what, what))
			continue;
		q = queue_new(2);
		if (probe(q) >= 0)
			fail("%s succeeds on this kind: unsupported.c is wrong", what);
		if (errno != rows[i].err)
			fail("%s: %s, not %s", what, errno_name(errno), errno_name(rows[i].err));
		no_event(q);
		skip("%s: %s", errno_name(rows[i].err), rows[i].why);
	}
}
