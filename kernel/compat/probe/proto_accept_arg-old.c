// SPDX-License-Identifier: GPL-2.0
#include <linux/net.h>
#include <net/sock.h>

static int probe_accept(struct socket *sock, struct socket *newsock, int flags,
			bool kern)
{
	return flags + kern;
}

const struct proto_ops probe = { .accept = probe_accept };
