// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options of levels below SOL_SOCKET, which is the socket layer's own.
 *
 *	SOL_EXS			options.c
 *	SOL_TCP			tcpopt.c
 *	SOL_IP, SOL_IPV6	inet.c, for sockets of these families
 *	  IPV6_V6ONLY		here, for all that take IPv6 addresses
 *	SOL_SOCKET		SO_ZEROCOPY here, as the socket layer knows it for TCP alone
 */
#include <linux/sockptr.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <net/route.h>

#include "core.h"
#include "fallback.h"

static int exs_set_v6only(struct exs_sock *xs, int value)
{
	int err = 0;

	lock_sock(&xs->sk);
	if (xs->state != EXS_UNCONNECTED)
		err = -EINVAL;
	else
		xs->sk.sk_ipv6only = !!value;
	release_sock(&xs->sk);
	return err;
}

static bool exs_is_v6only(const struct exs_sock *xs, int level, int name)
{
	return level == SOL_IPV6 && name == IPV6_V6ONLY && xs->sk.sk_family != AF_INET;
}

static bool exs_is_timeout(int level, int name)
{
	return level == SOL_EXS &&
	       (name == EXS_SO_SEND_TIMEOUT || name == EXS_SO_RECV_TIMEOUT);
}

/*
 * The socket layer takes SO_MARK and SO_PRIORITY without asking us. The device's packets
 * have neither, so a program that relies on them gets an error before a packet is sent. The
 * device also uses the priority of IP_TOS.
 */
int exs_sock_check_promises(const struct sock *sk)
{
	u32 priority = READ_ONCE(sk->sk_priority);

	if (priority && priority == rt_tos2priority(exs_inet_tos(sk, AF_INET)))
		priority = 0;
	return READ_ONCE(sk->sk_mark) || priority ? -EOPNOTSUPP : 0;
}

/*
 * Options of a socket that is TCP's by now. Options that would replace the socket's calls
 * are refused: ours have to stay, because they release the old sock.
 */
static int exs_tcp_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
			      unsigned int len)
{
	if ((level == SOL_TCP && name == TCP_ULP) ||
	    (level == SOL_IPV6 && name == IPV6_ADDRFORM))
		return -ENOPROTOOPT;
	return exs_tcp_ops(sock)->setsockopt(sock, level, name, val, len);
}

static int exs_set_zerocopy(struct sock *sk, int value)
{
	if (value != 0 && value != 1)
		return -EINVAL;
	lock_sock(sk);
	sock_valbool_flag(sk, SOCK_ZEROCOPY, value);
	release_sock(sk);
	return 0;
}

/* Of SOL_EXS, SO_ZEROCOPY and IPV6_V6ONLY. */
static int exs_set_own(struct exs_sock *xs, int level, int name, sockptr_t val,
		       unsigned int len)
{
	int value;

	if (exs_is_timeout(level, name))
		return exs_set_timeout(xs, name == EXS_SO_RECV_TIMEOUT, val, len);
	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, val, sizeof(value)))
		return -EFAULT;
	switch (level) {
	case SOL_EXS:
		return exs_set_option(xs, name, value);
	case SOL_SOCKET:
		return exs_set_zerocopy(&xs->sk, value);
	default:
		return exs_set_v6only(xs, value);
	}
}

/*
 * Programs that filter packets, or choose the socket that gets a connection. EXS cannot run them,
 * but TCP can.
 */
static bool exs_is_filter(int name)
{
	return name == SO_ATTACH_FILTER || name == SO_ATTACH_BPF ||
	       name == SO_ATTACH_REUSEPORT_CBPF || name == SO_ATTACH_REUSEPORT_EBPF;
}

static void exs_packets_need_tcp(struct socket *sock)
{
	struct exs_sock *xs = exs_of(sock);

	if (xs && exs_option(&xs->options, EXS_SO_FALLBACK))
		exs_fall_back_now(xs, EXS_FELL_BACK_OPTION);
}

static int exs_set_sol_socket(struct socket *sock, int name, sockptr_t val, unsigned int len)
{
	struct exs_sock *xs = exs_of(sock);
	int err;

	err = sock_setsockopt(sock, SOL_SOCKET, name, val, len);
	if (!err && xs && (name == SO_BINDTODEVICE || name == SO_BINDTOIFINDEX ||
			   name == SO_INCOMING_CPU))
		exs_tcp_place_listener(xs);
	return err;
}

static int exs_setsockopt_now(struct socket *sock, int level, int name, sockptr_t val,
			      unsigned int len)
{
	struct exs_sock *xs = exs_once(sock);

	if (level == SOL_SOCKET && (name != SO_ZEROCOPY || !exs_of(sock)))
		return exs_set_sol_socket(sock, name, val, len);
	if (level != SOL_EXS && !exs_of(sock))
		return exs_tcp_setsockopt(sock, level, name, val, len);
	if (level == SOL_EXS || level == SOL_SOCKET || exs_is_v6only(xs, level, name))
		return exs_set_own(xs, level, name, val, len);
	if (level == SOL_TCP)
		return exs_tcp_set(xs, name, val, len);
	return exs_inet_setsockopt(&xs->sk, level, name, val, len);
}

int exs_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len)
{
	struct exs_sock *xs;
	int err;

	if (level == SOL_SOCKET && exs_is_filter(name))
		exs_packets_need_tcp(sock);
	xs = exs_of(sock);
	err = exs_setsockopt_now(sock, level, name, val, len);
	if (err || !xs || level == SOL_EXS)
		return err;
	/* EXS has no timestamps of packets either (SO_TIMESTAMPING). */
	if (level == SOL_SOCKET && READ_ONCE(xs->sk.sk_tsflags))
		exs_packets_need_tcp(sock);
	/* A worker copies the options and hands the socket over under its lock: wait for it. */
	lock_sock(&xs->sk);
	release_sock(&xs->sk);
	return exs_of(sock) ? 0 : exs_setsockopt_now(sock, level, name, val, len);
}

/* As much of it as fits into the caller's buffer. */
static int exs_put_option(const void *value, int n, int size, char __user *val,
			  int __user *len)
{
	size = min(size, n);
	if (put_user(size, len) || copy_to_user(val, value, size))
		return -EFAULT;
	return 0;
}

static int exs_get_int(struct exs_sock *xs, int level, int name, int *value)
{
	if (level == SOL_EXS)
		return exs_get_option(xs, name, value);
	if (level == SOL_TCP)
		return exs_tcp_get(xs, name, value);
	*value = xs->sk.sk_ipv6only;
	return 0;
}

int exs_getsockopt(struct socket *sock, int level, int name, char __user *val,
		   int __user *len)
{
	struct exs_sock *xs = exs_once(sock);
	struct exs_opt_timeout timeout;
	struct tcp_info info;
	int size, value, err;

	if (level != SOL_EXS && !exs_of(sock))
		return exs_tcp_ops(sock)->getsockopt(sock, level, name, val, len);
	if (level != SOL_EXS && level != SOL_TCP &&
	    (xs->sk.sk_family != exs_family || !exs_is_v6only(xs, level, name)))
		return exs_inet_getsockopt(&xs->sk, level, name, val, len);
	if (get_user(size, len))
		return -EFAULT;
	if (size < 0)
		return -EINVAL;
	if (exs_is_timeout(level, name)) {
		exs_get_timeout(xs, name == EXS_SO_RECV_TIMEOUT, &timeout);
		return exs_put_option(&timeout, sizeof(timeout), size, val, len);
	}
	if (level == SOL_TCP && name == TCP_INFO) {
		exs_tcp_info(xs, &info);
		return exs_put_option(&info, sizeof(info), size, val, len);
	}
	err = exs_get_int(xs, level, name, &value);
	return err ?: exs_put_option(&value, sizeof(value), size, val, len);
}
