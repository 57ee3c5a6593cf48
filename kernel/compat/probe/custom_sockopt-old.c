// SPDX-License-Identifier: GPL-2.0
#include <linux/net.h>

enum { SOCK_CUSTOM_SOCKOPT = 31 };

int probe(void);
int probe(void)
{
	return SOCK_CUSTOM_SOCKOPT;
}
