// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces: see net.h.
 */
#include <linux/nsproxy.h>

#include "net.h"

unsigned int exs_net_id;

struct exs_net *exs_net_current(void)
{
	const struct nsproxy *ns = current->nsproxy;

	return exs_net(ns ? ns->net_ns : &init_net);
}

static int __net_init exs_pernet_init(struct net *net)
{
	struct exs_net *xn = exs_net(net);
	int err;

	xn->net = net;
	exs_peers_init(xn);
	err = exs_stats_net_init(xn);
	if (err)
		return err;
	err = exs_sysctl_net_init(xn);
	if (err)
		exs_stats_net_exit(xn);
	return err;
}

static void __net_exit exs_pernet_exit(struct net *net)
{
	struct exs_net *xn = exs_net(net);

	exs_sysctl_net_exit(xn);
	exs_stats_net_exit(xn);
}

static struct pernet_operations exs_pernet_ops = {
	.init	= exs_pernet_init,
	.exit	= exs_pernet_exit,
	.id	= &exs_net_id,
	.size	= sizeof(struct exs_net),
};

int exs_net_init(void)
{
	return register_pernet_subsys(&exs_pernet_ops);
}

void exs_net_exit(void)
{
	unregister_pernet_subsys(&exs_pernet_ops);
}
