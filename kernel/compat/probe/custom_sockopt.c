// SPDX-License-Identifier: GPL-2.0
/* A socket may have SOL_SOCKET's options come to its own setsockopt(). */
#include <linux/net.h>

void probe(struct socket *sock);
void probe(struct socket *sock)
{
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
}
