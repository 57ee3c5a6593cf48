// SPDX-License-Identifier: MIT
/* The wrappers. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/exs.h>

#include "preload.h"

#define TYPE_MASK	(SOCK_NONBLOCK - 1)

static bool is_ours(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (!protocol || protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

/*
 * Whether the module was missing within the last two seconds: the kernel runs modprobe for
 * each socket of an unknown protocol.
 */
static bool was_missing(bool is_missing)
{
	static long until;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (is_missing)
		__atomic_store_n(&until, now.tv_sec + 2, __ATOMIC_RELAXED);
	return now.tv_sec < __atomic_load_n(&until, __ATOMIC_RELAXED);
}

int make_exs(int domain, int type)
{
	int fd = -1, protocol = settings_protocol();

	errno = EPROTONOSUPPORT;
	if (protocol && !was_missing(false))
		fd = next_socket(domain, type, protocol);
	if (fd < 0 && errno == EPROTONOSUPPORT)
		was_missing(true);
	return fd;
}

static const char *reason(int err)
{
	if (!settings_protocol())
		return "the module exs was loaded with protocol=0: modprobe -r exs && modprobe exs";
	return err == EPROTONOSUPPORT ? "the module exs is not loaded: modprobe exs" : strerror(err);
}

static const char *const fell_back[] = {
	[EXS_FELL_BACK_NO_DEVICE]  = "no RDMA device for this address: rdma link shows them",
	[EXS_FELL_BACK_NO_ROUTE]   = "no route: ip route get shows it",
	[EXS_FELL_BACK_NO_ANSWER]  = "the peer does not answer: see rdma link and the firewall there",
	[EXS_FELL_BACK_REFUSED]	   = "the peer refused: has its server EXS, and room?",
	[EXS_FELL_BACK_VERSION]	   = "the listener there is not EXS, has messages, or another version",
	[EXS_FELL_BACK_LIMIT]	   = "a limit, see exs-sysctl(7)",
	[EXS_FELL_BACK_NOMEM]	   = "no memory: free some",
	[EXS_FELL_BACK_REMEMBERED] = "the peer did not answer a while ago (net.exs.fallback_memory)",
	[EXS_FELL_BACK_DISABLED]   = "net.exs.enabled is 0: sysctl net.exs.enabled=1",
	[EXS_FELL_BACK_OPTION]	   = "SO_MARK, SO_PRIORITY, SO_TIMESTAMPING or a filter, which EXS does not have",
	[EXS_FELL_BACK_IWARP]	   = "iWARP, see exs(7)",
	[EXS_FELL_BACK_PORT]	   = "another EXS socket has the port",
	[EXS_FELL_BACK_OTHER]	   = "EXS failed, perhaps because its RDMA device was removed: see rdma link, dmesg",
};

/* Report a socket that fell back to TCP in the last call. Keeps errno. */
static void tell_fallback(int fd)
{
	int saved = errno, why;
	socklen_t len = sizeof(why);

	if (!settings_tells())
		return;
	/* A change by a rule was reported before. */
	if (!next_getsockopt(fd, SOL_EXS, EXS_SO_FELL_BACK, &why, &len) && why > 0 &&
	    why != EXS_FELL_BACK_RULE)
		settings_tell(fd, false, "fell back",
			      (size_t)why < sizeof(fell_back) / sizeof(*fell_back) ?
			      fell_back[why] : NULL);
	errno = saved;
}

WRAPPER int socket(int domain, int type, int protocol)
{
	int saved = errno, fd = -1;
	const struct rule *rule;

	if (!is_ours(domain, type, protocol))
		return next_socket(domain, type, protocol);
	rule = rules_first(settings_rules());
	if (rule->exs)
		fd = make_exs(domain, type);
	if (fd >= 0) {
		settings_tell(fd, true, rule->text, NULL);
	} else {
		const char *why = rule->exs ? reason(errno) : NULL;

		fd = next_socket(domain, type, protocol);
		if (fd < 0)
			return fd;
		settings_tell(fd, false, rule->text, why);
	}
	watch_forget(fd);
	errno = saved;
	return fd;
}

/* Apply the rules with the address. A thread can be cancelled before or after this, not within. */
static bool decide(int fd, enum direction direction, const struct sockaddr *addr)
{
	const struct rule *rule = rules_find(settings_rules(), direction, addr);
	int saved = errno, state;
	bool ok;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ok = !is_the_other(fd, rule->exs) || exchange(fd, rule);
	pthread_setcancelstate(state, NULL);
	if (ok)
		errno = saved;
	return ok;
}

/*
 * Whether the kernel can read 8 bytes there. This call reads them before it finds that @how
 * does not exist, and every filter of system calls allows it.
 */
static bool is_readable(const void *bytes)
{
	const int how = -1;

	return syscall(SYS_rt_sigprocmask, how, bytes, NULL, 8) && errno != EFAULT;
}

/* The program's address may be invalid: the kernel reports this later. */
static bool read_address(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *copy)
{
	const char *bytes = (const char *)addr;
	int saved = errno;
	bool ok;

	if (!addr || len < sizeof(struct sockaddr_in) || len > sizeof(*copy))
		return false;
	ok = is_readable(bytes) && is_readable(bytes + len - 8);
	errno = saved;
	if (ok)
		memcpy(copy, addr, len);
	return ok;
}

static bool has_address(const struct sockaddr *addr, socklen_t len)
{
	return (addr->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) ||
	       (addr->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6));
}

WRAPPER int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage copy;
	struct sockaddr *sa = (struct sockaddr *)&copy;
	int saved = errno, ret;

	if (!is_inet_stream(fd))
		errno = saved;
	else if (read_address(addr, len, &copy) && has_address(sa, len) && !decide(fd, CONNECT, sa))
		return -1;
	ret = next_connect(fd, addr, len);
	tell_fallback(fd);
	return ret;
}

/* A program with a non-blocking connect() reads SO_ERROR. */
WRAPPER int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = next_getsockopt(fd, level, name, value, len);

	if (level == SOL_SOCKET && name == SO_ERROR)
		tell_fallback(fd);
	return ret;
}

WRAPPER int listen(int fd, int backlog)
{
	struct sockaddr_storage addr;
	struct sockaddr *sa = (struct sockaddr *)&addr;
	socklen_t len = sizeof(addr);
	int saved = errno, ret;

	if (getsockname(fd, sa, &len))
		errno = saved;
	else if (has_address(sa, len) && !decide(fd, LISTEN, sa))
		return -1;
	ret = next_listen(fd, backlog);
	tell_fallback(fd);
	return ret;
}
