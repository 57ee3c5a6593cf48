// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/net/exs: live objects ("live_NAME N"), then events ("NAME N"), of the network
 * namespace that it is read in. Each processor counts separately, and the reader adds up:
 * an object counted on one processor may be uncounted on another.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/stringify.h>
#include <net/net_namespace.h>

#include "stats.h"

/* Names in the order of the enums: X of the same tables. */
#define X(name) __stringify(name),
static const char *const exs_live_names[EXS_LIVE_MAX] = {
#include "live.h"
};

static const char *const exs_count_names[EXS_COUNT_MAX] = {
#include "counted.h"
};

#undef X

static void exs_stats_print(struct seq_file *m, const char *prefix, const char *const *names,
			    const long *values, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		seq_printf(m, "%s%s %ld\n", prefix, names[i], values[i]);
}

static void exs_stats_add(struct exs_counters *sum, const struct exs_counters *one)
{
	int i;

	for (i = 0; i < EXS_LIVE_MAX; i++)
		sum->live[i] += READ_ONCE(one->live[i]);
	for (i = 0; i < EXS_COUNT_MAX; i++)
		sum->count[i] += READ_ONCE(one->count[i]);
}

static int exs_stats_show(struct seq_file *m, void *v)
{
	struct exs_net *xn = exs_net(seq_file_single_net(m));
	struct exs_counters sum = {};
	int cpu;

	for_each_possible_cpu(cpu)
		exs_stats_add(&sum, per_cpu_ptr(xn->counters, cpu));
	exs_stats_print(m, "live_", exs_live_names, sum.live, EXS_LIVE_MAX);
	exs_stats_print(m, "", exs_count_names, sum.count, EXS_COUNT_MAX);
	return 0;
}

int exs_stats_net_init(struct exs_net *xn)
{
	xn->counters = alloc_percpu(struct exs_counters);
	if (!xn->counters)
		return -ENOMEM;
	if (proc_create_net_single("exs", 0444, xn->net->proc_net, exs_stats_show, NULL))
		return 0;
	free_percpu(xn->counters);
	return -ENOMEM;
}

void exs_stats_net_exit(struct exs_net *xn)
{
	remove_proc_entry("exs", xn->net->proc_net);
	free_percpu(xn->counters);
}
