// SPDX-License-Identifier: GPL-2.0
/*
 * sysctl net.exs.*, of each network namespace. A new one begins with the values of the
 * initial one. The initial one's "enabled" and caps ("max_*") hold in all of them:
 * another can only be stricter.
 *
 *	enabled            0: no new sockets, no incoming connections; what is
 *	                   connected stays
 *	ring_size          bytes of a stream's receive ring, made when first
 *	                   needed; rounded up to a power of two
 *	connect_timeout    ms until a connect(2) ends with ETIMEDOUT
 *	fallback_timeout   likewise, if the socket then falls back to TCP
 *	fallback_memory    ms for which a peer that did not answer then gets TCP at once
 *	handshake_timeout  ms until an incoming connection that does not finish
 *	                   its hand-shake is dropped
 *	stall_timeout      ms without any progress until a connection that has sent
 *	                   something is given up
 *	linger             ms that a closed socket's connection may still take to
 *	                   deliver what was sent; then it is reset
 *	max_orphans        such connections at one time; more are reset at once
 *	max_half_open      hand-shakes under way at one listener, besides its backlog
 *	sndbuf             bytes of plain sends that a socket buffers
 *	direct_min         the smallest asynchronous receive that is offered to
 *	                   the peer for direct transfer
 *	max_user_conns     connections of one user (limits.c): connecting, connected,
 *	                   not yet accepted
 *	max_user_half_open hand-shakes under way at all listeners of one user
 *	max_user_queues    event queues of one user
 *	max_user_pages     pages that one user may have pinned, besides
 *	                   RLIMIT_MEMLOCK
 *	max_user_ops       operations in flight of one user, descriptors in its polls, and
 *	                   ordinary sockets that are held for operations
 *	max_user_workers   works of one user, of a kind, that may sleep without a bound;
 *	                   the initial namespace's only
 *	max_peer_pages     pages for what the peers of all connections ask for; likewise
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "../compat/compat.h"
#include "transport.h"
#include "core.h"
#include "limits.h"
#include "net.h"

int exs_sysctl_max_user_workers = 64;
int exs_sysctl_max_peer_pages;

static int exs_int_max = INT_MAX;
static int exs_ms_max = 3600 * 1000;
static int exs_ms_min = 10;
static int exs_ring_min = PAGE_SIZE;
static int exs_ring_max = EXS_RING_MAX;
static int exs_sndbuf_min = 4096;
static int exs_sndbuf_max = 1 << 30;
static int exs_direct_max = 1 << 30;
static int exs_workers_max = WQ_MAX_ACTIVE;

static int exs_sysctl_ring(EXS_CTL_TABLE *table, int write, void *buffer,
			   size_t *lenp, loff_t *ppos)
{
	int *ring_size = table->data;
	int size = READ_ONCE(*ring_size);
	EXS_CTL_TABLE of_size = {
		.data = &size,
		.maxlen = sizeof(size),
		.extra1 = table->extra1,
		.extra2 = table->extra2,
	};
	int err;

	err = proc_dointvec_minmax(&of_size, write, buffer, lenp, ppos);
	if (!err && write)
		WRITE_ONCE(*ring_size, roundup_pow_of_two(size));
	return err;
}

#define EXS_SYSCTL_AT(name, at, min, max, handler) {	\
	.procname	= (name),			\
	.data		= (at),				\
	.maxlen		= sizeof(int),			\
	.mode		= 0644,				\
	.proc_handler	= (handler),			\
	.extra1		= (min),			\
	.extra2		= (max),			\
}

/* .data is an offset here, and becomes an address in each namespace. */
#define EXS_SYSCTL(name, min, max, handler)					\
	EXS_SYSCTL_AT(#name, (void *)offsetof(struct exs_net, sysctl.name), min, max, handler)

#define EXS_SYSCTL_INT(name, min, max) \
	EXS_SYSCTL(name, min, max, proc_dointvec_minmax)

#define EXS_SYSCTL_MACHINE(name, min, max) \
	EXS_SYSCTL_AT(#name, &exs_sysctl_##name, min, max, proc_dointvec_minmax)

static const struct ctl_table exs_sysctl_table[] = {
	EXS_SYSCTL_INT(enabled, SYSCTL_ZERO, SYSCTL_ONE),
	EXS_SYSCTL(ring_size, &exs_ring_min, &exs_ring_max, exs_sysctl_ring),
	EXS_SYSCTL_INT(connect_timeout, &exs_ms_min, &exs_ms_max),
	EXS_SYSCTL_INT(fallback_timeout, &exs_ms_min, &exs_ms_max),
	EXS_SYSCTL_INT(fallback_memory, SYSCTL_ZERO, &exs_ms_max),
	EXS_SYSCTL_INT(handshake_timeout, &exs_ms_min, &exs_ms_max),
	EXS_SYSCTL_INT(stall_timeout, &exs_ms_min, &exs_ms_max),
	EXS_SYSCTL_INT(linger, SYSCTL_ZERO, &exs_ms_max),
	EXS_SYSCTL_INT(max_orphans, SYSCTL_ZERO, &exs_int_max),
	EXS_SYSCTL_INT(max_half_open, SYSCTL_ONE, &exs_int_max),
	EXS_SYSCTL_INT(sndbuf, &exs_sndbuf_min, &exs_sndbuf_max),
	EXS_SYSCTL_INT(direct_min, SYSCTL_ZERO, &exs_direct_max),
	EXS_SYSCTL_INT(max_user_conns, SYSCTL_ZERO, &exs_int_max),
	EXS_SYSCTL_INT(max_user_half_open, SYSCTL_ZERO, &exs_int_max),
	EXS_SYSCTL_INT(max_user_queues, SYSCTL_ZERO, &exs_int_max),
	EXS_SYSCTL_INT(max_user_pages, SYSCTL_ZERO, &exs_int_max),
	EXS_SYSCTL_INT(max_user_ops, SYSCTL_ZERO, &exs_int_max),
};

/* For the whole machine: only the initial namespace has them. */
static const struct ctl_table exs_sysctl_machine_table[] = {
	EXS_SYSCTL_MACHINE(max_user_workers, SYSCTL_ONE, &exs_workers_max),
	EXS_SYSCTL_MACHINE(max_peer_pages, SYSCTL_ZERO, &exs_int_max),
};

static struct ctl_table_header *exs_sysctl_header;

static void exs_sysctl_defaults(struct exs_sysctls *s)
{
	*s = (struct exs_sysctls) {
		.enabled		= 1,
		.ring_size		= 256 << 10,
		.connect_timeout	= 15 * 1000,
		.fallback_timeout	= 1000,
		.fallback_memory	= 60 * 1000,
		.handshake_timeout	= 10 * 1000,
		.stall_timeout		= 20 * 1000,
		.linger			= 30 * 1000,
		.max_orphans		= 1024,
		.max_half_open		= 1024,
		.sndbuf			= 256 << 10,
		.direct_min		= 4096,
		.max_user_conns		= 4096,
		.max_user_half_open	= 4096,
		.max_user_queues	= 1024,
		/* Half of memory: unlike RLIMIT_MEMLOCK this is per user. */
		.max_user_pages		= min_t(unsigned long, totalram_pages() / 2, INT_MAX),
		/* A fourth of memory, as the structures of one take about a kilobyte. */
		.max_user_ops		= min_t(unsigned long, totalram_pages(), INT_MAX),
	};
}

/* If @xn is not NULL, each .data is an offset there, and becomes an address. */
static void exs_sysctl_copy(struct ctl_table *to, const struct ctl_table *from, int n,
			    struct exs_net *xn)
{
	for (; n; n--, to++, from++) {
		*to = *from;
		if (xn)
			to->data = (void *)xn + (unsigned long)from->data;
	}
}

/* Registers a copy of @table: of sysctls in @xn, or, if that is NULL, of the machine's. */
static struct ctl_table_header *
exs_sysctl_register(struct net *net, const struct ctl_table *table, int n, struct exs_net *xn)
{
	struct ctl_table_header *header;
	/* The empty entry at the end is for older kernels. */
	void *copy = kcalloc(n + 1, sizeof(*table), GFP_KERNEL_ACCOUNT);

	if (!copy)
		return NULL;
	exs_sysctl_copy(copy, table, n, xn);
	header = register_net_sysctl_sz(net, "net/exs", copy, n);
	if (!header)
		kfree(copy);
	return header;
}

static void exs_sysctl_unregister(struct ctl_table_header *header)
{
	const struct ctl_table *copy = header->ctl_table_arg;

	unregister_net_sysctl_table(header);
	kfree(copy);
}

int exs_sysctl_net_init(struct exs_net *xn)
{
	if (net_eq(xn->net, &init_net))
		exs_sysctl_defaults(&xn->sysctl);
	else
		xn->sysctl = exs_net(&init_net)->sysctl;
	xn->header = exs_sysctl_register(xn->net, exs_sysctl_table,
					 ARRAY_SIZE(exs_sysctl_table), xn);
	return xn->header ? 0 : -ENOMEM;
}

void exs_sysctl_net_exit(struct exs_net *xn)
{
	exs_sysctl_unregister(xn->header);
}

int exs_sysctl_init(void)
{
	/*
	 * A peer whose ring is beyond it waits until others' rings are gone, however long that
	 * takes. So it only has to keep peers from taking all memory: a user, who has at most
	 * half of it, gets a fourth. Cgroups limit it further.
	 */
	exs_sysctl_max_peer_pages = min_t(unsigned long, totalram_pages() / 2, INT_MAX);
	exs_sysctl_header = exs_sysctl_register(&init_net, exs_sysctl_machine_table,
						ARRAY_SIZE(exs_sysctl_machine_table), NULL);
	return exs_sysctl_header ? 0 : -ENOMEM;
}

void exs_sysctl_exit(void)
{
	exs_sysctl_unregister(exs_sysctl_header);
}
