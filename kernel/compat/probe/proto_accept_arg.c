// SPDX-License-Identifier: GPL-2.0
/* proto_ops.accept takes its flags in a structure. */
#include <linux/net.h>
#include <net/sock.h>

static int probe_accept(struct socket *sock, struct socket *newsock,
			struct proto_accept_arg *arg)
{
	return arg->flags + arg->kern;
}

const struct proto_ops probe = { .accept = probe_accept };
