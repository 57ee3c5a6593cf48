// SPDX-License-Identifier: GPL-2.0
/* Addresses, sockets and connections of the present variant and topology. */
#include "e2e.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/exs.h>

/* Only AF_EXS answers the probe: another family with this number does not. */
static bool answers(int family)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes;

	if (fd < 0)
		return false;
	yes = !ioctl(fd, EXS_IOC_PROBE, &probe) && probe.magic == EXS_PROBE_MAGIC;
	close(fd);
	return yes;
}

static int loaded_family(void)
{
	FILE *file = fopen("/sys/module/exs/parameters/family", "re");
	int family = EXS_FAMILY_DEFAULT;

	if (file) {
		if (fscanf(file, "%d", &family) != 1)
			family = EXS_FAMILY_DEFAULT;
		fclose(file);
	}
	return answers(family) ? family : EXS_FAMILY_DEFAULT;
}

int exs_family_number(void)
{
	static int family;

	if (!family)
		family = loaded_family();
	return family;
}

static const char *const side_names[] = { "/run/netns/exs_a", "/run/netns/exs_b" };

static void enter_namespace(const char *name)
{
	int fd = must(open(name, O_RDONLY | O_CLOEXEC));

	must(setns(fd, CLONE_NEWNET));
	close(fd);
}

/* The sides are in namespaces of their own. */
static bool have_namespaces(void)
{
	return !strcmp(e2e.topology, "ns") || !strcmp(e2e.topology, "wire");
}

void enter_side(enum side side)
{
	if (have_namespaces())
		enter_namespace(side_names[side]);
}

void in_each_namespace(void (*fn)(void *), void *arg)
{
	size_t i;
	int own;

	if (!have_namespaces()) {
		fn(arg);
		return;
	}
	own = must(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
	enter_namespace("/proc/1/ns/net");
	fn(arg);
	for (i = 0; i < ARRAY_SIZE(side_names); i++) {
		enter_namespace(side_names[i]);
		fn(arg);
	}
	must(setns(own, CLONE_NEWNET));
	close(own);
}

union address address_from(int domain, const char *text, int port)
{
	union address a = {};

	a.sa.sa_family = domain;
	if (domain == AF_UNIX)
		return a;		/* the kernel chooses a name */
	if (domain == AF_INET) {
		a.in.sin_port = htons(port);
		check(inet_pton(domain, text, &a.in.sin_addr) == 1, "bad address %s", text);
	} else {
		a.in6.sin6_port = htons(port);
		check(inet_pton(domain, text, &a.in6.sin6_addr) == 1, "bad address %s", text);
	}
	return a;
}

union address address_of(enum side side, int port)
{
	return address_from(e2e.domain, e2e.address[side], port);
}

/* The kernel's names of AF_UNIX: a zero and five digits. */
static socklen_t unix_len(const struct sockaddr_un *un)
{
	return offsetof(struct sockaddr_un, sun_path) + (un->sun_path[1] ? 6 : 0);
}

socklen_t address_len(const union address *a)
{
	if (a->sa.sa_family == AF_UNIX)
		return unix_len(&a->un);
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

int port_of(const union address *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port);
}

bool same_address(const union address *a, const union address *b)
{
	if (a->sa.sa_family == AF_UNIX && b->sa.sa_family == AF_UNIX)
		return !memcmp(a->un.sun_path, b->un.sun_path, 6);
	if (a->sa.sa_family != b->sa.sa_family || port_of(a) != port_of(b))
		return false;
	if (a->sa.sa_family == AF_INET6)
		return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

union address name_of(int fd)
{
	union address a = {};
	socklen_t len = sizeof(a);

	must(getsockname(fd, &a.sa, &len));
	return a;
}

union address peer_of(int fd)
{
	union address a = {};
	socklen_t len = sizeof(a);

	must(getpeername(fd, &a.sa, &len));
	return a;
}

/* Without a fallback, unless told otherwise: the tests are about EXS. */
int new_socket(void)
{
	int fd = must(socket(e2e.family, e2e.type | SOCK_CLOEXEC, e2e.protocol));

	if (e2e.protocol)
		set_int(fd, SOL_EXS, EXS_SO_FALLBACK, e2e.fallback);
	return fd;
}

int socket_on(enum side side)
{
	enter_side(side);
	return new_socket();
}

/*
 * A port that no socket has at any address: a port that is free at one address may be in use, or closing, at another.
 */
int free_port(void)
{
	union address any = address_from(AF_INET6, "::", 0);
	int fd = must(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));

	must(bind(fd, &any.sa, address_len(&any)));
	any = name_of(fd);
	close(fd);
	return port_of(&any);
}

int bound_socket(void)
{
	union address a = address_of(SERVER, 0);
	int fd = socket_on(SERVER);

	must(bind(fd, &a.sa, address_len(&a)));
	return fd;
}

int listener(int backlog)
{
	int fd = bound_socket();

	must(listen(fd, backlog));
	return fd;
}

int client_of(int listen_fd)
{
	union address a = name_of(listen_fd);
	int fd = socket_on(CLIENT);

	must(connect(fd, &a.sa, address_len(&a)));
	return fd;
}

void pair_from(struct pair *p, int listen_fd)
{
	p->c = client_of(listen_fd);
	wait_io(listen_fd, POLLIN);
	p->s = must(accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC));
}

/* Datagrams: each connected to the other. */
static void dgram_pair(struct pair *p)
{
	union address c, s;

	*p = (struct pair){ .c = bound_socket(), .s = bound_socket() };
	c = name_of(p->c);
	s = name_of(p->s);
	must(connect(p->c, &s.sa, address_len(&s)));
	must(connect(p->s, &c.sa, address_len(&c)));
}

void pair_open(struct pair *p)
{
	int fd;

	if (e2e.type == SOCK_DGRAM) {
		dgram_pair(p);
		return;
	}
	fd = listener(8);
	pair_from(p, fd);
	close(fd);
}

void pair_close(struct pair *p)
{
	close(p->c);
	close(p->s);
}

void set_nonblock(int fd, bool on)
{
	int flags = must(fcntl(fd, F_GETFL));

	must(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

int so_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	return err;
}

void set_timeout(int fd, int option, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	must(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)));
}

void set_int(int fd, int level, int option, int value)
{
	must(setsockopt(fd, level, option, &value, sizeof(value)));
}

int poll_now(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = events };

	must(poll(&p, 1, 0));
	return p.revents;
}

int poll_wait(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&p, 1, limit_ms());
	} while (n < 0 && errno == EINTR);
	must(n);
	return p.revents;
}

void wait_io(int fd, int events)
{
	int got = poll_wait(fd, events);

	if (!got)
		print_stacks();
	check(got & events, "poll for %#x gives %#x", events, got);
}

void send_fd(int unix_fd, int fd)
{
	char space[CMSG_SPACE(sizeof(fd))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	must_be(sendmsg(unix_fd, &msg, 0), 1);
}

int receive_fd(int unix_fd)
{
	char space[CMSG_SPACE(sizeof(int))] = {}, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	int fd;

	must_be(recvmsg(unix_fd, &msg, MSG_CMSG_CLOEXEC), 1);
	check(CMSG_FIRSTHDR(&msg), "no descriptor came");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}
