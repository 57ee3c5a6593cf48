// SPDX-License-Identifier: GPL-2.0
/*
 * IPPROTO_EXS: the same stream sockets as protocol of AF_INET and AF_INET6.
 *
 * inet_create() makes them, and they have what everybody expects of a socket of these
 * families: a struct inet_sock, addresses of the one family, names, and the cgroup's
 * BPF programs, which have no hook for other families.
 *
 * There is no SOCK_SEQPACKET: inet_create() takes the first protocol of a type for a
 * program that named none, and that would be ours and not SCTP's.
 */
#include <linux/bpf-cgroup.h>
#include <linux/moduleparam.h>
#include <net/inet_common.h>
#include <net/ipv6.h>
#include <net/protocol.h>
#include <net/transp_v6.h>

#include <linux/exs.h>

#include "../compat/compat.h"
#include "core.h"
#include "stats.h"

int exs_protocol = EXS_PROTOCOL_DEFAULT;
module_param_named(protocol, exs_protocol, int, 0444);
MODULE_PARM_DESC(protocol, "protocol number of AF_INET and AF_INET6, 257 to 261; 0: none");

static struct inet_protosw exs_inet_protosw = {
	.type	= SOCK_STREAM,
	.prot	= &exs_proto,
	.ops	= &exs_ops,
};

#if IS_ENABLED(CONFIG_IPV6)
static struct inet_protosw exs_inet6_protosw = {
	.type	= SOCK_STREAM,
	.prot	= &exs_proto,
	.ops	= &exs_ops,
};

static int exs_inet6_register(void)
{
	exs_inet6_protosw.protocol = exs_protocol;
	return inet6_register_protosw(&exs_inet6_protosw);
}

static void exs_inet6_unregister(void)
{
	inet6_unregister_protosw(&exs_inet6_protosw);
}

static void exs_inet6_clone(struct sock *child)
{
	struct ipv6_pinfo *np = &container_of(exs_sk(child), struct exs_sock6, xs)->np;

	np->hop_limit = -1;
	np->mcast_hops = IPV6_DEFAULT_MCASTHOPS;
	inet_sk(child)->pinet6 = np;
}
#else
static int exs_inet6_register(void)
{
	return 0;
}

static void exs_inet6_unregister(void)
{
}

static void exs_inet6_clone(struct sock *child)
{
}
#endif

int exs_inet_init(void)
{
	int err;

	if (!exs_protocol)
		return 0;
	if (exs_protocol < EXS_PROTOCOL_MIN || exs_protocol > EXS_PROTOCOL_MAX) {
		pr_err("exs: protocol=%d: must be 0 or from %d to %d\n", exs_protocol,
		       EXS_PROTOCOL_MIN, EXS_PROTOCOL_MAX);
		return -EPROTONOSUPPORT;
	}
	err = exs_inet6_register();
	if (err) {
		pr_err("exs: cannot register protocol %d: %d\n", exs_protocol, err);
		return err;
	}
	exs_inet_protosw.protocol = exs_protocol;
	inet_register_protosw(&exs_inet_protosw);
	return 0;
}

void exs_inet_exit(void)
{
	if (!exs_protocol)
		return;
	inet_unregister_protosw(&exs_inet_protosw);
	exs_inet6_unregister();
}

/* inet_create() and inet6_create() have made it. */
int exs_inet_sock_init(struct sock *sk)
{
	struct exs_sock *xs = exs_sk(sk);

	if (!exs_sysctl_cap(exs_net(sock_net(sk)), enabled)) {
		exs_count(exs_net(sock_net(sk)), reject_disabled, 1);
		return -EPROTONOSUPPORT;
	}
	xs->inet_destruct = sk->sk_destruct;
	exs_sock_setup(sk, sk->sk_type);
	if (sk->sk_family == AF_INET6)
		set_bit(EXS_SK_V6, &xs->flags);
	if (sk->sk_ipv6only)
		set_bit(EXS_SK_V6ONLY, &xs->flags);
	set_bit(SOCK_SUPPORT_ZC, &sk->sk_socket->flags);
	return 0;
}

/* sk_common_release() calls it, without a look: we have no table of sockets. */
void exs_inet_unhash(struct sock *sk)
{
}

void exs_inet_clone(struct sock *child, const struct sock *sk)
{
	child->sk_protocol = sk->sk_protocol;
	exs_sk(child)->inet_destruct = exs_sk(sk)->inet_destruct;
	if (sk->sk_family == AF_INET6)
		exs_inet6_clone(child);
}

int exs_inet_filter_bind(struct sock *sk, struct sockaddr_unsized *uaddr, int len, u32 *flags)
{
	switch (sk->sk_family) {
	case AF_INET:
		return exs_bpf_bind(sk, uaddr, &len, CGROUP_INET4_BIND, flags);
	case AF_INET6:
		return exs_bpf_bind(sk, uaddr, &len, CGROUP_INET6_BIND, flags);
	default:
		return 0;
	}
}

int exs_inet_filter_connect(struct sock *sk, struct sockaddr_unsized *uaddr, int len)
{
	switch (sk->sk_family) {
	case AF_INET:
		return exs_bpf_connect4(sk, uaddr, &len);
	case AF_INET6:
		return exs_bpf_connect6(sk, uaddr, &len);
	default:
		return 0;
	}
}

void exs_inet_filter_name(struct sock *sk, struct sockaddr_unsized *uaddr, int len, bool peer)
{
	sock_owned_by_me(sk);
	if (sk->sk_family == AF_INET && peer)
		exs_bpf_name(sk, uaddr, &len, CGROUP_INET4_GETPEERNAME);
	else if (sk->sk_family == AF_INET)
		exs_bpf_name(sk, uaddr, &len, CGROUP_INET4_GETSOCKNAME);
	else if (sk->sk_family == AF_INET6 && peer)
		exs_bpf_name(sk, uaddr, &len, CGROUP_INET6_GETPEERNAME);
	else if (sk->sk_family == AF_INET6)
		exs_bpf_name(sk, uaddr, &len, CGROUP_INET6_GETSOCKNAME);
}

void exs_inet_filter_release(struct sock *sk)
{
	if (sk->sk_family != exs_family && !sk->sk_kern_sock)
		BPF_CGROUP_RUN_PROG_INET_SOCK_RELEASE(sk);
}
