// SPDX-License-Identifier: GPL-2.0
/* Must compile everywhere: the headers that the probes use are there. */
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/sock.h>

int probe(struct socket *sock, int backlog);
int probe(struct socket *sock, int backlog)
{
	return sock->ops->listen(sock, backlog);
}
