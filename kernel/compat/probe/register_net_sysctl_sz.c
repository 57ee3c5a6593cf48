// SPDX-License-Identifier: GPL-2.0
/* A sysctl table is registered with its size and needs no end marker. */
#include <linux/sysctl.h>
#include <net/net_namespace.h>

struct ctl_table_header *probe(struct net *net, struct ctl_table *table);
struct ctl_table_header *probe(struct net *net, struct ctl_table *table)
{
	return register_net_sysctl_sz(net, "net/probe", table, (size_t)1);
}
