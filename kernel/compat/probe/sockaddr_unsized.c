// SPDX-License-Identifier: GPL-2.0
/* proto_ops.bind and connect take a sockaddr of a type of its own. */
#include <linux/net.h>
#include <linux/socket.h>

static int probe_bind(struct socket *sock, struct sockaddr_unsized *addr, int len)
{
	return len;
}

static int probe_connect(struct socket *sock, struct sockaddr_unsized *addr,
			 int len, int flags)
{
	return len;
}

const struct proto_ops probe = { .bind = probe_bind, .connect = probe_connect };
