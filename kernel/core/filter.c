// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs of cgroups for bind(), connect(), getsockname() and getpeername()
 * (BPF_CGROUP_INET4_CONNECT and the like).
 *
 * A filter by cgroup is about addresses, in sockets of any family, and often about TCP. The
 * kernel runs the programs only for AF_INET and AF_INET6 sockets, and they may call any
 * helper on the socket: bpf_bind() needs functions that only TCP's struct proto has. So
 * they get a TCP socket: that of the EXS socket if it has one, otherwise a temporary one in
 * the same cgroup. Their changes to the address count, changes to a temporary socket do not.
 */
#include <linux/bpf-cgroup.h>
#include <linux/cgroup.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <net/ipv6.h>

#include "../compat/compat.h"
#include "core.h"

void exs_cgroup_give(const struct sock *sk, struct sock *to)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *old = sock_cgroup_ptr(&to->sk_cgrp_data);
	struct cgroup *cgroup;

	to->sk_cgrp_data = sk->sk_cgrp_data;
	cgroup = sock_cgroup_ptr(&to->sk_cgrp_data);
	cgroup_get(cgroup);
	cgroup_bpf_get(cgroup);
	cgroup_bpf_put(old);
	cgroup_put(old);
#endif
}

#ifdef CONFIG_CGROUP_BPF

/* The socket takes such addresses, and @len is at least the minimum of bind() and connect(). */
static bool exs_filter_knows(const struct sock *sk, const struct sockaddr *addr, int len)
{
	if (len < (int)sizeof(addr->sa_family))
		return false;
	if (sk->sk_family != exs_family && sk->sk_family != addr->sa_family)
		return false;
	return (addr->sa_family == AF_INET && len >= (int)sizeof(struct sockaddr_in)) ||
	       (addr->sa_family == AF_INET6 && len >= SIN6_LEN_RFC2133);
}

enum exs_filter { EXS_FILTER_BIND, EXS_FILTER_CONNECT, EXS_FILTER_NAME, EXS_FILTER_PEER };

/* By enum exs_filter, for IPv4 and IPv6. */
static const u8 exs_filter_types[][2] = {
	[EXS_FILTER_BIND]    = { CGROUP_INET4_BIND,	   CGROUP_INET6_BIND },
	[EXS_FILTER_CONNECT] = { CGROUP_INET4_CONNECT,	   CGROUP_INET6_CONNECT },
	[EXS_FILTER_NAME]    = { CGROUP_INET4_GETSOCKNAME, CGROUP_INET6_GETSOCKNAME },
	[EXS_FILTER_PEER]    = { CGROUP_INET4_GETPEERNAME, CGROUP_INET6_GETPEERNAME },
};

/* Whether the machine has any such program: each has its own static key. */
static bool exs_filter_is_on(enum exs_filter what, bool v6)
{
	switch (what) {
	case EXS_FILTER_BIND:
		return v6 ? cgroup_bpf_enabled(CGROUP_INET6_BIND) :
			    cgroup_bpf_enabled(CGROUP_INET4_BIND);
	case EXS_FILTER_CONNECT:
		return v6 ? cgroup_bpf_enabled(CGROUP_INET6_CONNECT) :
			    cgroup_bpf_enabled(CGROUP_INET4_CONNECT);
	case EXS_FILTER_NAME:
		return v6 ? cgroup_bpf_enabled(CGROUP_INET6_GETSOCKNAME) :
			    cgroup_bpf_enabled(CGROUP_INET4_GETSOCKNAME);
	default:
		return v6 ? cgroup_bpf_enabled(CGROUP_INET6_GETPEERNAME) :
			    cgroup_bpf_enabled(CGROUP_INET4_GETPEERNAME);
	}
}

static int exs_filter_run(struct sock *tcp, struct sockaddr *addr, int *len,
			  enum exs_filter what, u32 *flags)
{
	bool v6 = addr->sa_family == AF_INET6;
	int err;

	lock_sock(tcp);
	err = exs_cgroup_bpf_sock_addr(tcp, addr, len, exs_filter_types[what][v6], flags);
	release_sock(tcp);
	return err;
}

static int exs_filter(const struct sock *sk, struct socket *beside, struct sockaddr *addr,
		      int *len, enum exs_filter what, u32 *flags)
{
	struct socket *tcp;
	int err;

	*flags = 0;
	if (!exs_filter_knows(sk, addr, *len))
		return 0;
	if (!exs_filter_is_on(what, addr->sa_family == AF_INET6))
		return 0;
	if (beside)
		return exs_filter_run(beside->sk, addr, len, what, flags);
	err = sock_create_kern(sock_net(sk), addr->sa_family, SOCK_STREAM, IPPROTO_TCP, &tcp);
	if (err)
		return err;
	exs_cgroup_give(sk, tcp->sk);
	err = exs_filter_run(tcp->sk, addr, len, what, flags);
	sock_release(tcp);
	return err;
}

int exs_filter_bind(const struct sock *sk, void *uaddr, int *len, u32 *flags)
{
	return exs_filter(sk, NULL, uaddr, len, EXS_FILTER_BIND, flags);
}

int exs_filter_connect(const struct sock *sk, struct socket *beside, void *uaddr, int *len)
{
	u32 flags;

	return exs_filter(sk, beside, uaddr, len, EXS_FILTER_CONNECT, &flags);
}

void exs_filter_name(const struct sock *sk, void *uaddr, int *len, bool peer)
{
	u32 flags;

	/* They cannot refuse it. Without memory they are skipped. */
	exs_filter(sk, NULL, uaddr, len, peer ? EXS_FILTER_PEER : EXS_FILTER_NAME, &flags);
}

#else

int exs_filter_bind(const struct sock *sk, void *uaddr, int *len, u32 *flags)
{
	*flags = 0;
	return 0;
}

int exs_filter_connect(const struct sock *sk, struct socket *beside, void *uaddr, int *len)
{
	return 0;
}

void exs_filter_name(const struct sock *sk, void *uaddr, int *len, bool peer)
{
}

#endif
