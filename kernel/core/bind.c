// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses, and bind().
 *
 * An AF_EXS socket has no address family of its own: it takes AF_INET and AF_INET6, in any
 * order. An IPPROTO_EXS socket takes only those of its family. A mapped IPv4 address
 * becomes AF_INET at once, and such a socket shows its AF_INET addresses as mapped, like
 * TCP's.
 */
#include <net/ip.h>
#include <net/ipv6.h>

#include "transport.h"
#include "core.h"
#include "fallback.h"

static int exs_addr_get_v4(const struct sockaddr_in *in, int len,
			   struct sockaddr_storage *addr)
{
	if (len < (int)sizeof(*in))
		return -EINVAL;
	memcpy(addr, in, sizeof(*in));
	return 0;
}

static int exs_addr_get_mapped(const struct sockaddr_in6 *in6, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	in->sin_family = AF_INET;
	in->sin_port = in6->sin6_port;
	in->sin_addr.s_addr = in6->sin6_addr.s6_addr32[3];
	return 0;
}

static int exs_addr_get_v6(const struct sockaddr_in6 *in6, int len,
			   struct sockaddr_storage *addr, bool *v6)
{
	if (len < SIN6_LEN_RFC2133)
		return -EINVAL;
	*v6 = true;
	if (ipv6_addr_v4mapped(&in6->sin6_addr))
		return exs_addr_get_mapped(in6, addr);
	memcpy(addr, in6, min_t(int, len, sizeof(*in6)));
	if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL &&
	    !((struct sockaddr_in6 *)addr)->sin6_scope_id)
		return -EINVAL;
	return 0;
}

int exs_addr_get(const struct exs_sock *xs, const void *uaddr, int len,
		 struct sockaddr_storage *addr, bool *v6)
{
	const struct sockaddr *sa = uaddr;

	memset(addr, 0, sizeof(*addr));
	*v6 = false;
	if (len < (int)sizeof(sa->sa_family))
		return -EINVAL;
	if (xs->sk.sk_family != exs_family && sa->sa_family != xs->sk.sk_family)
		return -EAFNOSUPPORT;
	switch (sa->sa_family) {
	case AF_INET:
		return exs_addr_get_v4(uaddr, len, addr);
	case AF_INET6:
		return exs_addr_get_v6(uaddr, len, addr, v6);
	default:
		return -EAFNOSUPPORT;
	}
}

static int exs_addr_put_v6(struct sockaddr_in6 *in6, __be16 port)
{
	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	return sizeof(*in6);
}

int exs_addr_put(const struct exs_sock *xs, const struct sockaddr_storage *addr,
		 void *uaddr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;
	struct sockaddr_in6 *out6 = uaddr;
	struct sockaddr_in *out = uaddr;

	if (addr->ss_family == AF_INET6) {
		exs_addr_put_v6(out6, in6->sin6_port);
		out6->sin6_addr = in6->sin6_addr;
		if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
			out6->sin6_scope_id = in6->sin6_scope_id;
		return sizeof(*out6);
	}
	if (test_bit(EXS_SK_V6, &xs->flags)) {
		exs_addr_put_v6(out6, in->sin_port);
		/* An unbound socket's name has no family. */
		if (addr->ss_family == AF_INET)
			ipv6_addr_set_v4mapped(in->sin_addr.s_addr, &out6->sin6_addr);
		return sizeof(*out6);
	}
	memset(out, 0, sizeof(*out));
	out->sin_family = AF_INET;
	out->sin_port = in->sin_port;
	out->sin_addr = in->sin_addr;
	return sizeof(*out);
}

/* Refuse addresses that rdma_cm would take, unlike TCP. */
static bool exs_addr_is_local(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	if (addr->ss_family == AF_INET6)
		return !ipv6_addr_is_multicast(&in6->sin6_addr);
	return !ipv4_is_multicast(in->sin_addr.s_addr) &&
	       !ipv4_is_lbcast(in->sin_addr.s_addr);
}

/* A socket with such an address does not use IPv4, and reports that from then on, like TCP's. */
static bool exs_addr_is_specific_v6(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 &&
	       !ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static bool exs_port_is_forbidden(struct net *net, const struct sockaddr_storage *addr)
{
	/* The port has the same place in both families. */
	u16 port = ntohs(((const struct sockaddr_in *)addr)->sin_port);

	return port && inet_port_requires_bind_service(net, port) &&
	       !ns_capable(net->user_ns, CAP_NET_BIND_SERVICE);
}

static bool exs_addr_is_loopback(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ipv6_addr_loopback(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return ipv4_is_loopback(((const struct sockaddr_in *)addr)->sin_addr.s_addr);
}

static int exs_bind_verbs(struct exs_sock *xs, struct sockaddr_storage *addr,
			  unsigned int flags)
{
	lockdep_assert_held(&xs->op_lock);
	/* rdma_cm treats it as the any address: other machines could connect. */
	if (exs_addr_is_loopback(addr))
		return -ENODEV;
	if (xs->sk.sk_reuse)
		flags |= EXS_BIND_REUSE;
	if (xs->sk.sk_ipv6only)
		flags |= EXS_BIND_V6ONLY;
	return exs_transport.bind(sock_net(&xs->sk), READ_ONCE(xs->sk.sk_uid), addr, flags,
				  &xs->bound);
}

/* A port that TCP chose may not be free in EXS, and the reverse. */
#define EXS_BIND_TRIES	32

/*
 * Bind to a port of TCP, and to the same port of EXS. TCP's answer counts. If only EXS cannot bind,
 * TCP takes over, unless another socket has that port of EXS, which a connecting peer would reach.
 * That may be another socket of the same user, as TCP allows that, too.
 */
static int exs_bind_tcp_too(struct exs_sock *xs, struct sockaddr_storage *addr)
{
	int err, why;

	err = exs_tcp_bind(xs, addr);
	if (err)
		return err;
	why = exs_fallback_at_once(xs, NULL);
	if (why)
		return exs_fall_back(xs, why);
	/* A BPF program may have changed it. */
	err = exs_addr_is_local(addr) ? exs_bind_verbs(xs, addr, 0) : -EADDRNOTAVAIL;
	if (!err || err == -EADDRINUSE || (err == -EBUSY && !xs->sk.sk_reuseport))
		return exs_port_error(err);
	return exs_fall_back(xs, exs_fallback_why(err));
}

static int exs_bind_both(struct exs_sock *xs, struct sockaddr_storage *addr, bool v6)
{
	const struct sockaddr_storage asked = *addr;
	/* The port has the same place in both families. */
	int err = 0, tries = ((struct sockaddr_in *)addr)->sin_port ? 1 : EXS_BIND_TRIES;

	assign_bit(EXS_SK_V6, &xs->flags, v6);
	do {
		exs_tcp_prepare(xs, v6 ? AF_INET6 : AF_INET);
		/* No fallback: only EXS binds. In a later round TCP had to agree, too. */
		if (!xs->tcp)
			return err ?: exs_port_error(exs_bind_verbs(xs, addr, 0));
		*addr = asked;
		err = exs_bind_tcp_too(xs, addr);
		/* Its port is released, and the next try gets another one. */
		if (err && err != -EXS_ETCP)
			exs_tcp_drop(xs);
	} while (err == -EADDRINUSE && --tries);
	return err;
}

int exs_bind_addr(struct exs_sock *xs, struct sockaddr_storage *addr, bool v6, bool any_port)
{
	struct sock *sk = &xs->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	/* UNCONNECTED is left only under op_lock. */
	if (exs_sock_state(xs) != EXS_UNCONNECTED)
		return -EINVAL;
	if (!exs_addr_is_local(addr))
		return -EADDRNOTAVAIL;
	if (!any_port && exs_port_is_forbidden(sock_net(sk), addr))
		return -EACCES;
	err = exs_bind_both(xs, addr, v6);
	if (err)
		return err;
	lock_sock(sk);
	xs->local = *addr;
	assign_bit(EXS_SK_V6, &xs->flags, v6);
	set_bit(EXS_SK_BOUND, &xs->flags);
	if (exs_addr_is_specific_v6(addr))
		sk->sk_ipv6only = true;
	exs_change_state(xs, EXS_BOUND);
	release_sock(sk);
	return 0;
}

int exs_bind_any(struct exs_sock *xs)
{
	bool v6 = xs->sk.sk_family == AF_INET6;
	struct sockaddr_storage any = { .ss_family = v6 ? AF_INET6 : AF_INET };

	return exs_bind_addr(xs, &any, v6, false);
}

int exs_bind_again(struct exs_sock *xs)
{
	struct sockaddr_storage addr = xs->local;

	lockdep_assert_held(&xs->op_lock);
	/* The endpoint of an attempt that failed may still have the port, and shares it now. */
	return xs->bound ? 0 : exs_bind_verbs(xs, &addr, EXS_BIND_REUSE);
}
