// SPDX-License-Identifier: GPL-2.0
#include <linux/sysctl.h>
#include <net/net_namespace.h>

/* Here a function, later a macro that counts the table's entries. */
struct ctl_table_header *(*probe)(struct net *, const char *, struct ctl_table *) =
	register_net_sysctl;
