// SPDX-License-Identifier: GPL-2.0
/*
 * IPPROTO_EXS: the same stream sockets as a protocol of AF_INET and AF_INET6.
 *
 * inet_create() makes them, and they have everything that is expected of a socket of these
 * families: a struct inet_sock, addresses of the one family, and the cgroup's BPF programs
 * for the beginning and the end of a socket. All else is as with AF_EXS.
 *
 * There is no SOCK_SEQPACKET: for a program that names no protocol, inet_create() takes the
 * first of the type, and the last that was registered comes first. So
 * socket(AF_INET, SOCK_SEQPACKET, 0), which is SCTP's, would become ours. For SOCK_STREAM, TCP is
 * the first and stays so.
 */
#include <linux/bpf-cgroup.h>
#include <linux/moduleparam.h>
#include <net/inet_common.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/protocol.h>

#include <linux/exs.h>

#include "../compat/compat.h"
#include "core.h"

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

static struct ipv6_pinfo *exs_inet6_pinfo(const struct sock *sk)
{
	return &container_of(exs_sk(sk), struct exs_sock6, xs)->np;
}

static u8 exs_inet6_tclass(const struct sock *sk)
{
	return READ_ONCE(exs_inet6_pinfo(sk)->tclass);
}

static void exs_inet6_clone(struct sock *child, const struct sock *sk)
{
	*exs_inet6_pinfo(child) = *exs_inet6_pinfo(sk);
	inet_sk(child)->pinet6 = exs_inet6_pinfo(child);
	RCU_INIT_POINTER(exs_inet6_pinfo(child)->opt, NULL);
}

static int exs_inet6_setsockopt(struct sock *sk, int level, int name, sockptr_t val,
				unsigned int len)
{
	return ipv6_setsockopt(sk, level, name, val, len);
}

static int exs_inet6_getsockopt(struct sock *sk, int level, int name, char __user *val,
				int __user *len)
{
	return ipv6_getsockopt(sk, level, name, val, len);
}

static int exs_inet6_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	return inet6_ioctl(sock, cmd, value);
}
#else
static int exs_inet6_register(void)
{
	return 0;
}

static void exs_inet6_unregister(void)
{
}

static u8 exs_inet6_tclass(const struct sock *sk)
{
	return 0;
}

static void exs_inet6_clone(struct sock *child, const struct sock *sk)
{
}

static int exs_inet6_setsockopt(struct sock *sk, int level, int name, sockptr_t val,
				unsigned int len)
{
	return -ENOPROTOOPT;
}

static int exs_inet6_getsockopt(struct sock *sk, int level, int name, char __user *val,
				int __user *len)
{
	return -ENOPROTOOPT;
}

static int exs_inet6_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	return -ENOIOCTLCMD;
}
#endif

/*
 * Options that are hints about packets, or request control messages that streams do not
 * have: the kernel's own functions store and return them. Options that promise what EXS
 * cannot keep, such as IP_MINTTL, IP_TRANSPARENT or memberships, are refused.
 */
static const struct { int level, name; } exs_inet_options[EXS_INET_KEPT] = {
	{ SOL_IP, IP_TTL }, { SOL_IP, IP_MTU_DISCOVER }, { SOL_IP, IP_FREEBIND },
	{ SOL_IP, IP_BIND_ADDRESS_NO_PORT }, { SOL_IP, IP_RECVERR }, { SOL_IP, IP_PKTINFO },
	{ SOL_IP, IP_RECVTTL }, { SOL_IP, IP_RECVOPTS }, { SOL_IP, IP_RETOPTS },
	{ SOL_IP, IP_RECVTOS }, { SOL_IP, IP_TOS }, { SOL_IPV6, IPV6_TCLASS },
	{ SOL_IPV6, IPV6_UNICAST_HOPS }, { SOL_IPV6, IPV6_MTU_DISCOVER },
	{ SOL_IPV6, IPV6_RECVERR }, { SOL_IPV6, IPV6_RECVPKTINFO },
	{ SOL_IPV6, IPV6_RECVHOPLIMIT }, { SOL_IPV6, IPV6_RECVTCLASS },
	{ SOL_IPV6, IPV6_FREEBIND }, { SOL_IPV6, IPV6_V6ONLY },
};

/* Its index there, or EXS_INET_KEPT: @sk does not have it. */
static unsigned int exs_inet_find(const struct sock *sk, int level, int name)
{
	unsigned int i;

	if (sk->sk_family == exs_family || (level == SOL_IPV6 && sk->sk_family != AF_INET6))
		return EXS_INET_KEPT;
	for (i = 0; i < EXS_INET_KEPT; i++)
		if (exs_inet_options[i].level == level && exs_inet_options[i].name == name)
			break;
	return i;
}

/* Like the kernel's functions: IP also takes one byte. */
static int exs_inet_read(int level, sockptr_t val, unsigned int len, int *value)
{
	u8 byte = 0;

	if (len >= sizeof(*value))
		return copy_from_sockptr(value, val, sizeof(*value)) ? -EFAULT : 0;
	if (level == SOL_IPV6)
		return -EINVAL;
	if (len && copy_from_sockptr(&byte, val, sizeof(byte)))
		return -EFAULT;
	*value = byte;
	return 0;
}

static int exs_inet_store(struct sock *sk, unsigned int i, int value, bool is_there)
{
	const int level = exs_inet_options[i].level, name = exs_inet_options[i].name;
	const unsigned int len = is_there ? sizeof(value) : 0;

	if (sk->sk_family == AF_INET6)
		return exs_inet6_setsockopt(sk, level, name, KERNEL_SOCKPTR(&value), len);
	return ip_setsockopt(sk, level, name, KERNEL_SOCKPTR(&value), len);
}

int exs_inet_setsockopt(struct sock *sk, int level, int name, sockptr_t val,
			unsigned int len)
{
	unsigned int i = exs_inet_find(sk, level, name);
	struct exs_sock *xs = exs_sk(sk);
	int value, err;

	if (i == EXS_INET_KEPT)
		return -ENOPROTOOPT;
	err = exs_inet_read(level, val, len, &value) ?: exs_inet_store(sk, i, value, len);
	if (err)
		return err;
	WRITE_ONCE(xs->ip[i], value);
	set_bit(i, xs->ip_set);
	return 0;
}

void exs_inet_give(const struct exs_sock *xs, struct sock *to)
{
	unsigned int i;
	int value;

	for_each_set_bit(i, xs->ip_set, EXS_INET_KEPT) {
		value = READ_ONCE(xs->ip[i]);
		to->sk_prot->setsockopt(to, exs_inet_options[i].level, exs_inet_options[i].name,
					KERNEL_SOCKPTR(&value), sizeof(value));
	}
}

u8 exs_inet_tos(const struct sock *sk, int family)
{
	if (sk->sk_family == exs_family)
		return 0;
	return family == AF_INET6 ? exs_inet6_tclass(sk) : READ_ONCE(inet_sk(sk)->tos);
}

/* IP's control data of a stream's last packet: some resolvers insist on an answer. */
static bool exs_inet_is_asked(int level, int name)
{
	return (level == SOL_IP && name == IP_PKTOPTIONS) ||
	       (level == SOL_IPV6 && name == IPV6_2292PKTOPTIONS);
}

int exs_inet_getsockopt(struct sock *sk, int level, int name, char __user *val,
			int __user *len)
{
	/* IP's error for another level. */
	if (sk->sk_family == AF_INET && level != SOL_IP)
		return -EOPNOTSUPP;
	if (!exs_inet_is_asked(level, name) && exs_inet_find(sk, level, name) == EXS_INET_KEPT)
		return -ENOPROTOOPT;
	if (sk->sk_family == AF_INET6)
		return exs_inet6_getsockopt(sk, level, name, val, len);
	return ip_getsockopt(sk, level, name, val, len);
}

int exs_inet_ioctl(struct socket *sock, unsigned int cmd, unsigned long value)
{
	switch (sock->sk->sk_family) {
	case AF_INET:
		return inet_ioctl(sock, cmd, value);
	case AF_INET6:
		return exs_inet6_ioctl(sock, cmd, value);
	default:
		return -ENOIOCTLCMD;
	}
}

int exs_inet_init(void)
{
	int err;

	if (!exs_protocol)
		return 0;
	if (exs_protocol < EXS_PROTOCOL_MIN || exs_protocol > EXS_PROTOCOL_MAX) {
		pr_err("exs: protocol=%d: choose one from %d to %d with protocol=, or 0 for none\n",
		       exs_protocol, EXS_PROTOCOL_MIN, EXS_PROTOCOL_MAX);
		return -EPROTONOSUPPORT;
	}
	err = exs_inet6_register();
	if (err) {
		pr_err("exs: cannot register protocol %d: %d: choose another with protocol=, or 0 for none\n",
		       exs_protocol, err);
		return err;
	}
	/* Nothing can fail any more, and programs may be waiting. */
	WRITE_ONCE(exs_ready, true);
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

/* Called by inet_create() and inet6_create(). */
int exs_inet_sock_init(struct sock *sk)
{
	struct exs_sock *xs = exs_sk(sk);

	xs->inet_destruct = sk->sk_destruct;
	exs_sock_setup(sk, sk->sk_type);
	/* The values that a TCP socket reports at first. They limit nothing here. */
	sk->sk_sndbuf = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[1]);
	sk->sk_rcvbuf = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[1]);
	/*
	 * Programs that name TCP, or no protocol, come here, so this works even if EXS is
	 * switched off.
	 */
	xs->options.value[EXS_SO_FALLBACK] = 1;
	if (sk->sk_family == AF_INET6)
		set_bit(EXS_SK_V6, &xs->flags);
	exs_sock_flags(sk->sk_socket);
	/* Not earlier: the caller destroys the socket as any other. */
	return READ_ONCE(exs_ready) ? 0 : -EPROTONOSUPPORT;
}

/* sk_common_release() always calls it; we have no table of sockets. */
void exs_inet_unhash(struct sock *sk)
{
}

void exs_inet_clone(struct sock *child, const struct sock *sk)
{
	const size_t at = sizeof(struct sock);

	child->sk_protocol = sk->sk_protocol;
	exs_sk(child)->inet_destruct = exs_sk(sk)->inet_destruct;
	if (sk->sk_family == exs_family)
		return;
	/*
	 * Like TCP. No option in exs_inet_options leaves a pointer there, but a security module's
	 * label does (inet_opt, IPv6's opt): it belongs to the listener.
	 */
	memcpy((void *)inet_sk(child) + at, (void *)inet_sk(sk) + at,
	       sizeof(struct inet_sock) - at);
	RCU_INIT_POINTER(inet_sk(child)->inet_opt, NULL);
	if (sk->sk_family == AF_INET6)
		exs_inet6_clone(child, sk);
}

/* Run the cgroup's BPF programs for a released socket, if they ran when it was created. */
void exs_inet_released(struct sock *sk)
{
	if (sk->sk_family != exs_family && !sk->sk_kern_sock)
		BPF_CGROUP_RUN_PROG_INET_SOCK_RELEASE(sk);
}
