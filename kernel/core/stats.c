// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/net/exs: live objects ("live_NAME N"), then events ("NAME N").
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "stats.h"

atomic_long_t exs_live_counts[EXS_LIVE_MAX];
atomic_long_t exs_counts[EXS_COUNT_MAX];

/* Names in the order of the enums, each with its end: X of the same tables. */
#define X(name) #name "\0"
static const char exs_live_names[] = EXS_LIVE_TABLE(X);
static const char exs_count_names[] = EXS_COUNT_TABLE(X);
#undef X

static void exs_stats_print(struct seq_file *m, const char *prefix, const char *names,
			    const atomic_long_t *values, unsigned int n)
{
	for (; n; n--, values++, names += strlen(names) + 1)
		seq_printf(m, "%s%s %ld\n", prefix, names, atomic_long_read(values));
}

static int exs_stats_show(struct seq_file *m, void *v)
{
	exs_stats_print(m, "live_", exs_live_names, exs_live_counts, EXS_LIVE_MAX);
	exs_stats_print(m, "", exs_count_names, exs_counts, EXS_COUNT_MAX);
	return 0;
}

int exs_stats_init(void)
{
	if (!proc_create_single("exs", 0444, init_net.proc_net, exs_stats_show))
		return -ENOMEM;
	return 0;
}

void exs_stats_exit(void)
{
	remove_proc_entry("exs", init_net.proc_net);
}
