// SPDX-License-Identifier: MIT
/*
 * The number of AF_EXS. A module cannot have a number of its own, so it uses one that no
 * kernel code registers: 25, or its family= parameter. Every candidate must answer an ioctl
 * that only AF_EXS supports. Other families are never tried, because socket(2) may load
 * modules.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

#define SYSFS_FAMILY	"/sys/module/exs/parameters/family"

static int cached;	/* atomic: 0 is AF_UNSPEC, never ours */

static int probe_fd(int fd, unsigned int *abi)
{
	struct exs_ioc_probe p = { .size = sizeof(p) };

	if (ioctl(fd, EXS_IOC_PROBE, &p) || p.magic != EXS_PROBE_MAGIC) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	*abi = p.abi;
	return 0;
}

/* 0 and the module's ABI, or -1 and errno. */
static int probe(int family, unsigned int *abi)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ret, err;

	if (fd < 0)
		return -1;
	ret = probe_fd(fd, abi);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

static int parse_family(const char *s)
{
	char *end;
	long n;

	if (!s)
		return -1;
	n = strtol(s, &end, 10);
	if (end == s || (*end && *end != '\n') || n < 1 || n > 255)
		return -1;
	return n;
}

static int sysfs_family(void)
{
	char text[16];
	int fd = open(SYSFS_FAMILY, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return parse_family(text);
}

static int candidate(int i)
{
	switch (i) {
	case 0:
		return EXS_FAMILY_DEFAULT;
	case 1:
		return parse_family(secure_getenv("EXS_FAMILY"));
	default:
		return sysfs_family();
	}
}

/* Errors that do not tell whether the family exists. */
static bool says_nothing(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM ||
	       err == ENOBUFS || err == EACCES || err == EPERM;
}

static int try_candidates(unsigned int *abi)
{
	int i, family, err = EAFNOSUPPORT;

	for (i = 0; i < 3; i++) {
		family = candidate(i);
		if (family < 0)
			continue;
		if (!probe(family, abi))
			return family;
		if (says_nothing(errno))
			err = errno;
	}
	errno = err;
	return -1;
}

static int find_family(unsigned int *abi)
{
	int family, state;

	/* close(2) and read(2) are cancellation points, and a descriptor would be lost. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	family = try_candidates(abi);
	pthread_setcancelstate(state, NULL);
	return family;
}

int exs_family(void)
{
	int saved = errno, family = __atomic_load_n(&cached, __ATOMIC_RELAXED);
	unsigned int abi;

	if (family)
		return family;
	family = find_family(&abi);
	if (family < 0)
		return -1;
	__atomic_store_n(&cached, family, __ATOMIC_RELAXED);
	errno = saved;
	return family;
}

int exs_int_option(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	getsockopt(fd, SOL_SOCKET, option, &value, &len);
	return value;
}

/* A socket of AF_INET or AF_INET6 whose protocol may be IPPROTO_EXS. */
static bool is_inet_face(int fd)
{
	int protocol = exs_int_option(fd, SO_PROTOCOL);
	unsigned int abi;

	return protocol >= EXS_PROTOCOL_MIN && protocol <= EXS_PROTOCOL_MAX &&
	       !probe_fd(fd, &abi);
}

bool exs_is_native(int fd)
{
	return exs_int_option(fd, SO_DOMAIN) == exs_family() || is_inet_face(fd);
}

int exs_init(int version)
{
	unsigned int abi;
	int family;

	if (version != EXS_VERSION1) {
		errno = EINVAL;
		return -1;
	}
	family = find_family(&abi);
	if (family < 0)
		return -1;
	if (abi != EXS_ABI_VERSION) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	__atomic_store_n(&cached, family, __ATOMIC_RELAXED);
	return 0;
}
