/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each network namespace has its own counters and sysctls. Objects of a socket belong to
 * the socket's namespace; queues, regions and lanes belong to that of the process that
 * created them. An object holds its namespace (exs_net_get()).
 */
#ifndef EXS_CORE_NET_H
#define EXS_CORE_NET_H

#include <linux/atomic.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

struct ctl_table_header;
struct exs_counters;

/* sysctl net.exs.*: each is described at the top of sysctl.c. */
struct exs_sysctls {
	int enabled;
	int ring_size;		/* bytes, a power of two times PAGE_SIZE */
	int connect_timeout;	/* ms */
	int fallback_timeout;	/* ms */
	int fallback_memory;	/* ms */
	int handshake_timeout;	/* ms */
	int stall_timeout;	/* ms */
	int linger;		/* ms: maximum for an orphan */
	int max_orphans;
	int max_half_open;
	int sndbuf;		/* bytes of plain sends not yet sent */
	int direct_min;		/* smallest receive that is advertised */
	int max_user_conns;
	int max_user_half_open;
	int max_user_queues;
	int max_user_pages;
	int max_user_ops;
};

#define EXS_PEERS	64

/*
 * A peer that did not answer user @uid at the time @silent (jiffies); 0: none. @waited: jiffies
 * in vain since it last answered, up to the time @until.
 */
struct exs_peer {
	struct in6_addr addr;
	kuid_t uid;
	u64 silent;
	u64 waited;
	u64 until;
};

/**
 * struct exs_net - see above
 * @net: the namespace
 * @sysctl: its settings; read without a lock
 * @counters: per processor (stats.h)
 * @orphans: number of orphans; the lock of the orphans
 * @peers_lock: guards @peers; innermost
 * @peers: see peers.c
 * @header: the registered sysctls
 */
struct exs_net {
	struct net *net;
	struct exs_sysctls sysctl;
	struct exs_counters __percpu *counters;
	int orphans;
	spinlock_t peers_lock;	/* peers */
	struct exs_peer peers[EXS_PEERS];
	struct ctl_table_header *header;
};

extern unsigned int exs_net_id;

/* The exs_net of @net, which the caller holds. Any context. */
static inline struct exs_net *exs_net(const struct net *net)
{
	return net_generic(net, exs_net_id);
}

/* The calling task's, which the task holds; for a kernel thread, the initial namespace's. */
struct exs_net *exs_net_current(void);

/* Get and put a reference. Any context. */
static inline struct exs_net *exs_net_get(struct exs_net *xn)
{
	get_net(xn->net);
	return xn;
}

static inline void exs_net_put(struct exs_net *xn)
{
	put_net(xn->net);
}

/* peers.c: any context but interrupts. */
void exs_peers_init(struct exs_net *xn);
/* Whether the peer did not answer within the last net.exs.fallback_memory milliseconds. */
bool exs_peer_is_silent(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid);
/* It did not answer within @waited jiffies. Remember it when these add up to @enough. */
void exs_peer_silent(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid,
		     u64 waited, u64 enough);
/* It answered this user. */
void exs_peer_answered(struct exs_net *xn, const struct sockaddr_storage *addr, kuid_t uid);
/* It answered, or connected: forget that. */
void exs_peer_heard(struct exs_net *xn, const struct sockaddr_storage *addr);

#define exs_sysctl(xn, name) READ_ONCE((xn)->sysctl.name)

/* A cap for the whole machine, which a namespace can only lower. */
#define exs_sysctl_cap(xn, name) exs_sysctl_lower(xn, offsetof(struct exs_sysctls, name))

static inline int exs_sysctl_at(const struct exs_net *xn, size_t at)
{
	return READ_ONCE(*(const int *)((const void *)&xn->sysctl + at));
}

static inline int exs_sysctl_lower(const struct exs_net *xn, size_t at)
{
	return min(exs_sysctl_at(xn, at), exs_sysctl_at(exs_net(&init_net), at));
}

int exs_net_init(void);
void exs_net_exit(void);

/* stats.c, sysctl.c: when a namespace is created and destroyed. */
int exs_stats_net_init(struct exs_net *xn);
void exs_stats_net_exit(struct exs_net *xn);
int exs_sysctl_net_init(struct exs_net *xn);
void exs_sysctl_net_exit(struct exs_net *xn);

#endif
