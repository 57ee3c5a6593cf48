// SPDX-License-Identifier: GPL-2.0
/*
 * Whose ports are: the CM does not know users.
 *
 * TCP lets sockets share a port by SO_REUSEPORT only if they belong to one user. Likewise a
 * socket listens by TCP alone only if the EXS port belongs to its own user: somebody else
 * would get its clients.
 */
#include <linux/hashtable.h>
#include <linux/in.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

#include "verbs_internal.h"

static DEFINE_HASHTABLE(exs_verbs_ports, 8);
static DEFINE_SPINLOCK(exs_verbs_ports_lock);

void exs_verbs_port_add(struct exs_verbs_port *p, __be16 port)
{
	spin_lock(&exs_verbs_ports_lock);
	p->port = port;
	hash_add(exs_verbs_ports, &p->node, (__force u16)port);
	spin_unlock(&exs_verbs_ports_lock);
}

void exs_verbs_port_del(struct exs_verbs_port *p)
{
	spin_lock(&exs_verbs_ports_lock);
	hash_del(&p->node);
	spin_unlock(&exs_verbs_ports_lock);
}

bool exs_verbs_port_is_own(const struct exs_verbs_port *p, __be16 port)
{
	const struct exs_verbs_port *o;
	bool own = false, other = false;

	spin_lock(&exs_verbs_ports_lock);
	hash_for_each_possible(exs_verbs_ports, o, node, (__force u16)port) {
		if (o == p || o->port != port || !net_eq(o->net, p->net))
			continue;
		if (uid_eq(o->uid, p->uid))
			own = true;
		else
			other = true;
	}
	spin_unlock(&exs_verbs_ports_lock);
	return own && !other;
}
