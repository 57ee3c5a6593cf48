// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options that programs set on TCP sockets and that have a meaning here.
 * SOL_SOCKET is the socket layer's own, what others do not know is ENOPROTOOPT.
 *
 *	SOL_EXS   options.c
 *	SOL_TCP   TCP_NODELAY, TCP_CORK, TCP_QUICKACK
 *				remembered: nothing is ever delayed
 *		  TCP_KEEPIDLE  exs_conn_keepalive()
 *		  TCP_KEEPINTVL, TCP_KEEPCNT
 *				remembered: repeating is the device's affair
 *	SOL_IPV6  IPV6_V6ONLY   before bind()
 */
#include <linux/sockptr.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <net/tcp.h>

#include "core.h"
#include "fallback.h"

/* From 1 to max, or, if that is 0, a truth value. */
static const struct { int name, max; } exs_kept_options[EXS_KEPT_MAX] = {
	[EXS_KEPT_NODELAY]	= { TCP_NODELAY },
	[EXS_KEPT_CORK]		= { TCP_CORK },
	[EXS_KEPT_QUICKACK]	= { TCP_QUICKACK },
	[EXS_KEPT_KEEPCNT]	= { TCP_KEEPCNT, MAX_TCP_KEEPCNT },
	[EXS_KEPT_KEEPINTVL]	= { TCP_KEEPINTVL, MAX_TCP_KEEPINTVL },
	[EXS_KEPT_KEEPIDLE]	= { TCP_KEEPIDLE, MAX_TCP_KEEPIDLE },
};

/* Its place in exs_sock.kept, or EXS_KEPT_MAX. */
static unsigned int exs_kept_find(int level, int name)
{
	unsigned int i;

	for (i = 0; i < EXS_KEPT_MAX; i++)
		if (level == SOL_TCP && name == exs_kept_options[i].name)
			break;
	return i;
}

static int exs_kept_set(struct exs_sock *xs, unsigned int i, int value)
{
	struct exs_conn *conn = exs_sock_conn(xs);
	int max = exs_kept_options[i].max;

	if (max && (value < 1 || value > max))
		return -EINVAL;
	WRITE_ONCE(xs->kept[i], max ? value : !!value);
	if (conn)
		exs_conn_run(conn);
	return 0;
}

static int exs_kept_get(const struct exs_sock *xs, unsigned int i)
{
	const struct netns_ipv4 *tcp = &sock_net(&xs->sk)->ipv4;
	int value = READ_ONCE(xs->kept[i]);

	if (value)
		return value;
	switch (i) {
	case EXS_KEPT_KEEPCNT:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_probes);
	case EXS_KEPT_KEEPINTVL:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_intvl) / HZ;
	case EXS_KEPT_KEEPIDLE:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_time) / HZ;
	default:
		return 0;
	}
}

void exs_kept_give(const struct exs_sock *xs, struct sock *to)
{
	unsigned int i;
	int value;

	for (i = 0; i < EXS_KEPT_MAX; i++) {
		value = READ_ONCE(xs->kept[i]);
		if (value)
			to->sk_prot->setsockopt(to, SOL_TCP, exs_kept_options[i].name,
						KERNEL_SOCKPTR(&value), sizeof(value));
	}
}

static int exs_set_v6only(struct exs_sock *xs, int value)
{
	int err = 0;

	lock_sock(&xs->sk);
	if (xs->state != EXS_UNCONNECTED)
		err = -EINVAL;
	else
		assign_bit(EXS_SK_V6ONLY, &xs->flags, value);
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
 * The socket layer takes SO_MARK and SO_PRIORITY without asking. The devices' packets have
 * neither, so whoever relies on them is told before there are any.
 */
int exs_sock_check_promises(const struct sock *sk)
{
	return READ_ONCE(sk->sk_mark) || READ_ONCE(sk->sk_priority) ? -EOPNOTSUPP : 0;
}

/*
 * Of a socket that is TCP's by now, but for what would exchange the socket's calls, and ours
 * have to stay: the old sock goes with them.
 */
static int exs_tcp_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
			      unsigned int len)
{
	if ((level == SOL_TCP && name == TCP_ULP) ||
	    (level == SOL_IPV6 && name == IPV6_ADDRFORM))
		return -ENOPROTOOPT;
	return exs_tcp_ops(sock)->setsockopt(sock, level, name, val, len);
}

int exs_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len)
{
	struct exs_sock *xs = exs_once(sock);
	unsigned int kept = exs_kept_find(level, name);
	int value;

	if (level != SOL_EXS && !exs_of(sock))
		return exs_tcp_setsockopt(sock, level, name, val, len);
	if (level != SOL_EXS && kept == EXS_KEPT_MAX && !exs_is_v6only(xs, level, name))
		return -ENOPROTOOPT;
	if (exs_is_timeout(level, name))
		return exs_set_timeout(xs, name == EXS_SO_RECV_TIMEOUT, val, len);
	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, val, sizeof(value)))
		return -EFAULT;
	if (level == SOL_EXS)
		return exs_set_option(xs, name, value);
	return kept < EXS_KEPT_MAX ? exs_kept_set(xs, kept, value) :
				     exs_set_v6only(xs, value);
}

static int exs_get_other(struct exs_sock *xs, int level, int name, int *value)
{
	unsigned int kept = exs_kept_find(level, name);

	if (kept < EXS_KEPT_MAX)
		*value = exs_kept_get(xs, kept);
	else if (exs_is_v6only(xs, level, name))
		*value = test_bit(EXS_SK_V6ONLY, &xs->flags);
	else
		return -ENOPROTOOPT;
	return 0;
}

/* As much of it as the caller has room for. */
static int exs_put_option(const void *value, int n, char __user *val, int __user *len)
{
	int size;

	if (get_user(size, len))
		return -EFAULT;
	if (size < 0)
		return -EINVAL;
	size = min(size, n);
	if (put_user(size, len) || copy_to_user(val, value, size))
		return -EFAULT;
	return 0;
}

int exs_getsockopt(struct socket *sock, int level, int name, char __user *val,
		   int __user *len)
{
	struct exs_sock *xs = exs_once(sock);
	struct exs_opt_timeout timeout;
	int value, err;

	if (level != SOL_EXS && !exs_of(sock))
		return exs_tcp_ops(sock)->getsockopt(sock, level, name, val, len);
	if (exs_is_timeout(level, name)) {
		exs_get_timeout(xs, name == EXS_SO_RECV_TIMEOUT, &timeout);
		return exs_put_option(&timeout, sizeof(timeout), val, len);
	}
	err = level == SOL_EXS ? exs_get_option(xs, name, &value) :
				 exs_get_other(xs, level, name, &value);
	return err ?: exs_put_option(&value, sizeof(value), val, len);
}
