// SPDX-License-Identifier: GPL-2.0
/*
 * exs.ko: layers are initialised from the lowest up, what programs see last, and exit in
 * reverse order. Nothing else belongs here: no other file sees all of them.
 */
#include <linux/module.h>

#include "async/async.h"
#include "core/core.h"
#include "core/net.h"
#include "transport/verbs.h"

static const struct exs_layer {
	int (*init)(void);
	void (*exit)(void);
} exs_layers[] = {
	{ exs_net_init,    exs_net_exit },
	{ exs_conn_init,   exs_conn_exit },
	{ exs_sock_init,   exs_sock_exit },
	{ exs_sysctl_init, exs_sysctl_exit },
	{ exs_async_init,  exs_async_exit },
	{ exs_verbs_init,  exs_verbs_exit },
	{ exs_family_init, exs_family_exit },
	{ exs_device_init, exs_device_exit },
	/* The last: with exs-run --system all programs make such sockets. */
	{ exs_inet_init,   exs_inet_exit },
};

static void exs_layers_exit(unsigned int n)
{
	while (n--)
		exs_layers[n].exit();
}

static int __init exs_init(void)
{
	unsigned int n;
	int err;

	for (n = 0; n < ARRAY_SIZE(exs_layers); n++) {
		err = exs_layers[n].init();
		if (err) {
			exs_layers_exit(n);
			return err;
		}
	}
	WRITE_ONCE(exs_ready, true);
	return 0;
}

static void __exit exs_exit(void)
{
	exs_layers_exit(ARRAY_SIZE(exs_layers));
}

module_init(exs_init);
module_exit(exs_exit);

/* No alias for the family: an unprivileged socket() must not load code. */
MODULE_DESCRIPTION("Extended Sockets (AF_EXS) over RDMA");
MODULE_AUTHOR("The AF_EXS project");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
