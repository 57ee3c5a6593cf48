// SPDX-License-Identifier: MIT
/*
 * Changes the protocol of a new socket. From EXS to TCP, this is the kernel's fallback.
 * From TCP to EXS, another socket gets the options and the address, and then replaces the
 * old one at its descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include <linux/exs.h>

#include "preload.h"

/* Newer than some C libraries. */
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL	69
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK	72
#endif
#ifndef SO_TXREHASH
#define SO_TXREHASH	74
#endif
#ifndef SO_RCVMARK
#define SO_RCVMARK	75
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51
#endif
#define SNDBUF_LOCKED	1
#define RCVBUF_LOCKED	2

static const struct option {
	int level, name;
} options[] = {
	{ SOL_SOCKET, SO_REUSEADDR },
	{ SOL_SOCKET, SO_REUSEPORT },
	{ SOL_SOCKET, SO_BINDTODEVICE },
	{ SOL_SOCKET, SO_BROADCAST },
	{ SOL_SOCKET, SO_BUSY_POLL },
	{ SOL_SOCKET, SO_DONTROUTE },
	{ SOL_SOCKET, SO_INCOMING_CPU },
	{ SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_LINGER },
	{ SOL_SOCKET, SO_LOCK_FILTER },
	{ SOL_SOCKET, SO_MARK },
	{ SOL_SOCKET, SO_MAX_PACING_RATE },
	{ SOL_SOCKET, SO_OOBINLINE },
	{ SOL_SOCKET, SO_PEEK_OFF },
	{ SOL_SOCKET, SO_PREFER_BUSY_POLL },
	{ SOL_SOCKET, SO_PRIORITY },
	{ SOL_SOCKET, SO_RCVLOWAT },
	{ SOL_SOCKET, SO_RCVMARK },
	{ SOL_SOCKET, SO_RCVTIMEO },
	{ SOL_SOCKET, SO_RXQ_OVFL },
	{ SOL_SOCKET, SO_SELECT_ERR_QUEUE },
	{ SOL_SOCKET, SO_SNDTIMEO },
	{ SOL_SOCKET, SO_TIMESTAMP },
	{ SOL_SOCKET, SO_TIMESTAMPNS },
	{ SOL_SOCKET, SO_TXREHASH },
	{ SOL_SOCKET, SO_TXTIME },
	{ SOL_SOCKET, SO_ZEROCOPY },
	{ IPPROTO_TCP, TCP_CORK },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT },
	{ IPPROTO_TCP, TCP_FASTOPEN },
	{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT },
	{ IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE },
	{ IPPROTO_TCP, TCP_INQ },
	{ IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },
	{ IPPROTO_TCP, TCP_LINGER2 },
	{ IPPROTO_TCP, TCP_MAXSEG },
	{ IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	{ IPPROTO_TCP, TCP_QUICKACK },
	{ IPPROTO_TCP, TCP_SYNCNT },
	{ IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ IPPROTO_TCP, TCP_WINDOW_CLAMP },
	{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
	{ IPPROTO_IP, IP_FREEBIND },
	{ IPPROTO_IP, IP_MTU_DISCOVER },
	{ IPPROTO_IP, IP_PKTINFO },
	{ IPPROTO_IP, IP_RECVERR },
	{ IPPROTO_IP, IP_RECVOPTS },
	{ IPPROTO_IP, IP_RECVTOS },
	{ IPPROTO_IP, IP_RECVTTL },
	{ IPPROTO_IP, IP_RETOPTS },
	{ IPPROTO_IP, IP_TOS },
	{ IPPROTO_IP, IP_TTL },
	{ IPPROTO_IPV6, IPV6_FREEBIND },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER },
	{ IPPROTO_IPV6, IPV6_RECVERR },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO },
	{ IPPROTO_IPV6, IPV6_RECVTCLASS },
	{ IPPROTO_IPV6, IPV6_TCLASS },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS },
	{ IPPROTO_IPV6, IPV6_V6ONLY },
};

/* Options that EXS does not have, and that a program would lose unnoticed. */
static const struct option refused[] = {
	{ SOL_SOCKET, SO_TIMESTAMPING },
	{ IPPROTO_TCP, TCP_CONGESTION },
	{ IPPROTO_TCP, TCP_SAVE_SYN },
	{ IPPROTO_TCP, TCP_TX_DELAY },
	{ IPPROTO_IP, IP_LOCAL_PORT_RANGE },
	{ IPPROTO_IP, IP_MINTTL },
	{ IPPROTO_IP, IP_OPTIONS },
	{ IPPROTO_IP, IP_TRANSPARENT },
	{ IPPROTO_IP, IP_UNICAST_IF },
	{ IPPROTO_IPV6, IPV6_MINHOPCOUNT },
	{ IPPROTO_IPV6, IPV6_TRANSPARENT },
	{ IPPROTO_IPV6, IPV6_UNICAST_IF },
};

/* Copy an option that both have if it differs. Return: false: it cannot be set. */
static bool copy_option(int from, int to, const struct option *o)
{
	char value[64], has[64];
	socklen_t len = sizeof(value), has_len = sizeof(has);

	if (getsockopt(from, o->level, o->name, value, &len) ||
	    getsockopt(to, o->level, o->name, has, &has_len))
		return true;
	return (len == has_len && !memcmp(value, has, len)) ||
	       !setsockopt(to, o->level, o->name, value, len);
}

/* Sizes that the program has set. The kernel doubles them. */
static void copy_buffer(int from, int to, int name, int lock)
{
	int locked = 0, size;
	socklen_t len = sizeof(locked);

	getsockopt(from, SOL_SOCKET, SO_BUF_LOCK, &locked, &len);
	if (!(locked & lock) || getsockopt(from, SOL_SOCKET, name, &size, &len))
		return;
	size /= 2;
	setsockopt(to, SOL_SOCKET, name, &size, sizeof(size));
}

/* The receiver of signals, and which signals. O_ASYNC has to wait: see replace(). */
static void copy_flags(int from, int to)
{
	struct f_owner_ex owner;

	if (!fcntl(from, F_GETOWN_EX, &owner) && owner.pid)
		fcntl(to, F_SETOWN_EX, &owner);
	fcntl(to, F_SETSIG, fcntl(from, F_GETSIG));
	fcntl(to, F_SETFL, fcntl(from, F_GETFL) & ~O_ASYNC);
}

static bool copy_options(int from, int to)
{
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!copy_option(from, to, &options[i]))
			return false;
	copy_buffer(from, to, SO_SNDBUF, SNDBUF_LOCKED);
	copy_buffer(from, to, SO_RCVBUF, RCVBUF_LOCKED);
	copy_flags(from, to);
	return true;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) ? -1 : value;
}

/* Whether an option has the value of @fresh, a new socket of the same kind. */
static bool is_default(int fd, int fresh, const struct option *o)
{
	char value[64], has[64];
	socklen_t len = sizeof(value), has_len = sizeof(has);

	if (getsockopt(fd, o->level, o->name, value, &len))
		return true;
	return !getsockopt(fresh, o->level, o->name, has, &has_len) &&
	       len == has_len && !memcmp(value, has, len);
}

static bool has_refused(int fd, int fresh)
{
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!is_default(fd, fresh, &refused[i]))
			return true;
	return false;
}

/* Whether the socket has something that EXS does not support, and that it would lose. */
static bool is_special(int fd)
{
	socklen_t len = 0;
	bool special;
	int fresh;

	/* It returns the number of instructions; for an eBPF program it fails with EACCES. */
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &len) || len)
		return true;
	fresh = next_socket(option(fd, SOL_SOCKET, SO_DOMAIN), SOCK_STREAM | SOCK_CLOEXEC,
			    option(fd, SOL_SOCKET, SO_PROTOCOL));
	if (fresh < 0)
		return true;
	special = has_refused(fd, fresh);
	close(fresh);
	return special;
}

bool is_inet_stream(int fd)
{
	int domain = option(fd, SOL_SOCKET, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) &&
	       option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM;
}

/* Neither connected nor connecting nor listening. */
static bool is_idle(int fd, bool exs)
{
	struct sockaddr_storage peer;
	struct tcp_info info;
	socklen_t len = sizeof(peer), info_len = sizeof(info);

	if (exs)
		return !option(fd, SOL_SOCKET, SO_ACCEPTCONN) &&
		       getpeername(fd, (struct sockaddr *)&peer, &len);
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) &&
	       info.tcpi_state == TCP_CLOSE;
}

/* Whether the socket was EXS. TCP then reports the results of connect(2) and bind(2). */
static bool has_fallen_back(int fd)
{
	int why = option(fd, SOL_EXS, EXS_SO_FELL_BACK);

	return why > 0 && why != EXS_FELL_BACK_RULE;
}

bool is_the_other(int fd, bool exs)
{
	int protocol = option(fd, SOL_SOCKET, SO_PROTOCOL);

	if (exs && protocol == IPPROTO_MPTCP)
		protocol = IPPROTO_TCP;
	return protocol == (exs ? IPPROTO_TCP : settings_protocol()) &&
	       is_inet_stream(fd) && is_idle(fd, !exs) && !(exs && has_fallen_back(fd));
}

/* By the program, or for its listen(). With IP_BIND_ADDRESS_NO_PORT there is only an address. */
static bool is_bound(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	if (addr->ss_family == AF_INET)
		return in->sin_port || in->sin_addr.s_addr;
	return in6->sin6_port || !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

static void set_reuse(int fd, int value)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value));
}

static bool bind_alike(int from, int to)
{
	int reuse = option(from, SOL_SOCKET, SO_REUSEADDR);
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	bool ok;

	if (getsockname(from, (struct sockaddr *)&addr, &len))
		return false;
	if (!is_bound(&addr))
		return true;
	/* For a moment both sockets have the TCP port. */
	set_reuse(from, 1);
	set_reuse(to, 1);
	ok = !bind(to, (struct sockaddr *)&addr, len);
	set_reuse(from, reuse);
	set_reuse(to, reuse);
	return ok;
}

/* Replace @from by @to, at @from's descriptor. */
static bool replace(int from, int to)
{
	int cloexec = fcntl(from, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	int flags = fcntl(from, F_GETFL);
	bool ok;

	watch_suspend(from);
	ok = dup3(to, from, cloexec) >= 0;
	/* Signals name the descriptor at which it was set. */
	if (ok && flags & O_ASYNC)
		fcntl(from, F_SETFL, flags);
	watch_resume(from);
	return ok;
}

static bool take_over(int from, int to)
{
	bool ok = replace(from, to);
	int err = errno;

	close(to);
	errno = err;
	return ok;
}

/* The kernel replaces the socket behind the descriptor. */
static bool make_tcp(int fd, const struct rule *rule)
{
	int now = EXS_FALLBACK_NOW;

	if (setsockopt(fd, SOL_EXS, EXS_SO_FALLBACK, &now, sizeof(now)))
		return false;
	settings_tell(fd, false, rule->text, NULL);
	return true;
}

bool exchange(int fd, const struct rule *rule)
{
	int to;

	if (!rule->exs)
		return make_tcp(fd, rule);
	if (!watch_knows(fd)) {
		settings_tell(fd, false, rule->text, "its epoll set is not known, or it is in several");
		return true;
	}
	to = make_exs(option(fd, SOL_SOCKET, SO_DOMAIN), SOCK_STREAM | SOCK_CLOEXEC);
	if (to < 0) {
		settings_tell(fd, false, rule->text, strerror(errno));
		return true;
	}
	if (is_special(fd) || !copy_options(fd, to)) {
		close(to);
		settings_tell(fd, false, rule->text, "EXS does not have one of its options");
		return true;
	}
	if (!bind_alike(fd, to)) {
		close(to);
		settings_tell(fd, false, rule->text, "EXS cannot have its address");
		return true;
	}
	if (!take_over(fd, to))
		return false;
	settings_tell(fd, true, rule->text, NULL);
	return true;
}
