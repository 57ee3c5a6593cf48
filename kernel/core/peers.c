// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that did not answer: a connect(2) that may fall back to TCP does not wait for them
 * again, for net.exs.fallback_memory milliseconds. Where programs give up sooner, their waits
 * add up.
 * Each user has entries of its own, as a program can make a peer look silent.
 *
 * Each place of a hash table holds one address and user. A new entry replaces an older one in the
 * same place, which costs a wait. So there is nothing to allocate, bound or clean up.
 */
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/uidgid.h>
#include <net/ipv6.h>
#include <net/netns/hash.h>

#include "net.h"

void exs_peers_init(struct exs_net *xn)
{
	spin_lock_init(&xn->peers_lock);
}

/* IPv4 as mapped; the interface of link-local addresses is ignored. */
static void exs_peer_key(const struct sockaddr_storage *addr, struct in6_addr *key)
{
	if (addr->ss_family == AF_INET6)
		*key = ((const struct sockaddr_in6 *)addr)->sin6_addr;
	else
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)addr)->sin_addr.s_addr, key);
}

static struct exs_peer *exs_peer_place(struct exs_net *xn, const struct in6_addr *key, kuid_t uid)
{
	u32 hash = jhash(key, sizeof(*key), net_hash_mix(xn->net) ^ __kuid_val(uid));

	return &xn->peers[hash % EXS_PEERS];
}

static bool exs_peer_is(const struct exs_peer *peer, const struct in6_addr *key, kuid_t uid)
{
	return ipv6_addr_equal(&peer->addr, key) && uid_eq(peer->uid, uid);
}

bool exs_peer_is_silent(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid)
{
	u64 memory = msecs_to_jiffies(exs_sysctl(xn, fallback_memory));
	struct exs_peer *peer;
	struct in6_addr key;
	bool silent;

	exs_peer_key(addr, &key);
	peer = exs_peer_place(xn, &key, uid);
	spin_lock(&xn->peers_lock);
	silent = peer->silent && exs_peer_is(peer, &key, uid) &&
		 time_before64(get_jiffies_64(), peer->silent + memory);
	spin_unlock(&xn->peers_lock);
	return silent;
}

void exs_peer_silent(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid,
		     u64 waited, u64 enough)
{
	u64 now = get_jiffies_64();
	struct exs_peer *peer;
	struct in6_addr key;

	exs_peer_key(addr, &key);
	peer = exs_peer_place(xn, &key, uid);
	spin_lock(&xn->peers_lock);
	if (!exs_peer_is(peer, &key, uid))
		*peer = (struct exs_peer) { .addr = key, .uid = uid };
	/* Attempts at the same time have waited once. */
	peer->waited += min(waited, now - peer->until);
	peer->until = now;
	if (peer->waited >= enough) {
		peer->silent = now;
		peer->waited = 0;
	}
	spin_unlock(&xn->peers_lock);
}

void exs_peer_answered(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid)
{
	struct exs_peer *peer;
	struct in6_addr key;

	exs_peer_key(addr, &key);
	peer = exs_peer_place(xn, &key, uid);
	spin_lock(&xn->peers_lock);
	if (exs_peer_is(peer, &key, uid))
		peer->waited = 0;
	spin_unlock(&xn->peers_lock);
}

void exs_peer_heard(struct exs_net *xn, const struct sockaddr_storage *addr)
{
	struct in6_addr key;
	unsigned int i;

	exs_peer_key(addr, &key);
	spin_lock(&xn->peers_lock);
	for (i = 0; i < EXS_PEERS; i++) {
		if (!ipv6_addr_equal(&xn->peers[i].addr, &key))
			continue;
		xn->peers[i].silent = 0;
		xn->peers[i].waited = 0;
	}
	spin_unlock(&xn->peers_lock);
}
