// SPDX-License-Identifier: GPL-2.0
/*
 * Which user has which port: the CM does not know users.
 *
 * TCP lets sockets share a port by SO_REUSEPORT only if they belong to one user. Likewise a
 * socket listens by TCP alone only if the EXS port belongs to its own user: another user would get
 * its clients.
 */
#include <linux/hashtable.h>
#include <linux/in.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <net/ipv6.h>

#include "verbs_internal.h"

static DEFINE_HASHTABLE(exs_verbs_ports, 8);
static DEFINE_SPINLOCK(exs_verbs_ports_lock);

static u16 exs_verbs_port_key(const struct sockaddr_storage *addr)
{
	/* The port has the same place in both families. */
	return (__force u16)((const struct sockaddr_in *)addr)->sin_port;
}

static bool exs_verbs_is_any(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return !((const struct sockaddr_in *)addr)->sin_addr.s_addr;
}

static bool exs_verbs_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
				       &((const struct sockaddr_in6 *)b)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

/* As the CM compares them. */
static bool exs_verbs_addrs_collide(const struct sockaddr_storage *a,
				    const struct sockaddr_storage *b)
{
	return exs_verbs_port_key(a) == exs_verbs_port_key(b) &&
	       (exs_verbs_is_any(a) || exs_verbs_is_any(b) || exs_verbs_same_host(a, b));
}

void exs_verbs_port_add(struct exs_verbs_port *p, const struct sockaddr_storage *addr)
{
	spin_lock(&exs_verbs_ports_lock);
	p->addr = *addr;
	hash_add(exs_verbs_ports, &p->node, exs_verbs_port_key(addr));
	spin_unlock(&exs_verbs_ports_lock);
}

void exs_verbs_port_del(struct exs_verbs_port *p)
{
	spin_lock(&exs_verbs_ports_lock);
	hash_del(&p->node);
	spin_unlock(&exs_verbs_ports_lock);
}

bool exs_verbs_port_is_own(const struct exs_verbs_port *p, const struct sockaddr_storage *addr)
{
	const struct exs_verbs_port *o;
	bool own = false, other = false;

	spin_lock(&exs_verbs_ports_lock);
	hash_for_each_possible(exs_verbs_ports, o, node, exs_verbs_port_key(addr)) {
		if (o == p || !net_eq(o->net, p->net) || !exs_verbs_addrs_collide(&o->addr, addr))
			continue;
		if (uid_eq(o->uid, p->uid))
			own = true;
		else
			other = true;
	}
	spin_unlock(&exs_verbs_ports_lock);
	return own && !other;
}
