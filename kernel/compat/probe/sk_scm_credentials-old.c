// SPDX-License-Identifier: GPL-2.0
#include <linux/net.h>

bool probe(const struct socket *sock);
bool probe(const struct socket *sock)
{
	return test_bit(SOCK_PASSCRED, &sock->flags);
}
