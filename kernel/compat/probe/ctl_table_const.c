// SPDX-License-Identifier: GPL-2.0
/* A sysctl handler must not change its table. */
#include <linux/sysctl.h>

static int probe_handler(const struct ctl_table *table, int write, void *buffer,
			 size_t *lenp, loff_t *ppos)
{
	return 0;
}

struct ctl_table probe = { .proc_handler = probe_handler };
