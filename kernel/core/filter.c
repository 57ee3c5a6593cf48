// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs of cgroups for bind() and connect() (BPF_CGROUP_INET4_CONNECT and the like).
 *
 * Whoever filters by cgroup means addresses, whatever the family of the socket that
 * uses them. The kernel runs the programs for AF_INET and AF_INET6 sockets only, and they may
 * do to the socket whatever helpers there are. So they get a TCP socket that is made for
 * the question, in the cgroup of ours; what they change in the address counts, what they
 * do to that socket does not.
 */
#include <linux/bpf-cgroup.h>
#include <linux/in.h>
#include <linux/in6.h>

#include "../compat/compat.h"
#include "core.h"

#ifdef CONFIG_CGROUP_BPF

/* @len is enough for an address of its family: the smallest that bind() and connect() take. */
static bool exs_filter_knows(const struct sockaddr *addr, int len)
{
	if (len < (int)sizeof(addr->sa_family))
		return false;
	return (addr->sa_family == AF_INET && len >= (int)sizeof(struct sockaddr_in)) ||
	       (addr->sa_family == AF_INET6 && len >= (int)sizeof(struct sockaddr_in6));
}

/* Whether there is any such program in the machine. */
static bool exs_filter_is_on(void)
{
	return cgroup_bpf_enabled(CGROUP_INET4_BIND) || cgroup_bpf_enabled(CGROUP_INET4_CONNECT) ||
	       cgroup_bpf_enabled(CGROUP_INET6_BIND) || cgroup_bpf_enabled(CGROUP_INET6_CONNECT);
}

static enum cgroup_bpf_attach_type exs_filter_type(const struct sockaddr *addr, bool bind)
{
	if (addr->sa_family == AF_INET6)
		return bind ? CGROUP_INET6_BIND : CGROUP_INET6_CONNECT;
	return bind ? CGROUP_INET4_BIND : CGROUP_INET4_CONNECT;
}

/* As if @tcp were in the cgroup of @sk, which has a reference on that. */
static int exs_filter_run(const struct sock *sk, struct sock *tcp, struct sockaddr *addr, int *len,
			  enum cgroup_bpf_attach_type type, u32 *flags)
{
	struct sock_cgroup_data own;
	int err;

	lock_sock(tcp);
	own = tcp->sk_cgrp_data;
	tcp->sk_cgrp_data = sk->sk_cgrp_data;
	err = exs_cgroup_bpf_sock_addr(tcp, addr, len, type, flags);
	tcp->sk_cgrp_data = own;
	release_sock(tcp);
	return err;
}

int exs_filter_addr(const struct sock *sk, void *uaddr, int *len, bool bind, u32 *flags)
{
	struct sockaddr *addr = uaddr;
	struct socket *tcp;
	int err;

	*flags = 0;
	if (!exs_filter_is_on() || !exs_filter_knows(addr, *len))
		return 0;
	err = sock_create_kern(sock_net(sk), addr->sa_family, SOCK_STREAM, IPPROTO_TCP, &tcp);
	if (err)
		return err;
	err = exs_filter_run(sk, tcp->sk, addr, len, exs_filter_type(addr, bind), flags);
	sock_release(tcp);
	return err;
}

#else

int exs_filter_addr(const struct sock *sk, void *uaddr, int *len, bool bind, u32 *flags)
{
	*flags = 0;
	return 0;
}

#endif
