// SPDX-License-Identifier: GPL-2.0
#include <net/sock.h>

unsigned int probe(const struct proto *prot);

unsigned int probe(const struct proto *prot)
{
	return prot->ipv6_pinfo_offset;
}
