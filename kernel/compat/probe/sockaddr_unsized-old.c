// SPDX-License-Identifier: GPL-2.0
#include <linux/net.h>
#include <linux/socket.h>

static int probe_bind(struct socket *sock, struct sockaddr *addr, int len)
{
	return len;
}

static int probe_connect(struct socket *sock, struct sockaddr *addr, int len,
			 int flags)
{
	return len;
}

const struct proto_ops probe = { .bind = probe_bind, .connect = probe_connect };
