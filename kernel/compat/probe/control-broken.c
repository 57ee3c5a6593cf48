// SPDX-License-Identifier: GPL-2.0
/* Must not compile: a function pointer of the wrong type is an error. */
#include <linux/net.h>

static int probe_listen(struct socket *sock, void *backlog)
{
	return 0;
}

const struct proto_ops probe = { .listen = probe_listen };
