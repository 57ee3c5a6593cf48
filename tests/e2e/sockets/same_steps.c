// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences of ordinary calls, and calls that wait: on TCP over loopback and on IPPROTO_EXS (lib/same.h). Single calls
 * in all states are in same.
 */
#include "lib/e2e.h"
#include "lib/same.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char buf[4096];

static void say_poll(const char *what, int fd)
{
	say("%s %#x; ", what, poll_now(fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP));
}

static void say_recv(const char *what, int fd, int flags)
{
	ssize_t n = say_result(what, recv(fd, buf, sizeof(buf), flags | MSG_DONTWAIT));

	if (n > 0)
		say("'%.*s'; ", (int)n, buf);
}

/* As the C library's header has them. */
#define TCP_ESTABLISHED	1
#define TCP_FIN_WAIT1	4

static void say_both(const char *what, const struct pair *p)
{
	say("%s: ", what);
	say_poll("client", p->c);
	say_poll("server", p->s);
	say_recv("client", p->c, 0);
	say_recv("server", p->s, 0);
}

static void give(int fd, const char *text)
{
	must_be(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* And it is there. */
static void bring(int from, int to, const char *text)
{
	int n, before;

	must(ioctl(to, SIOCINQ, &before));
	give(from, text);
	wait_until((must(ioctl(to, SIOCINQ, &n)), n == before + (int)strlen(text)));
}

/* An epoll set that gets the events of @fd from now on. */
static int watch(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	int set = must(epoll_create1(EPOLL_CLOEXEC));

	must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev));
	must(epoll_wait(set, &ev, 1, 0));
	return set;
}

/*
 * It has happened, and other epoll sets have seen it: close(2) waits for the wake-up to end. An event can be read
 * before that.
 */
static void watched(int set)
{
	struct epoll_event ev;

	must_be(epoll_wait(set, &ev, 1, -1), 1);
	close(set);
}

/* The bytes that are left after that (TCP_INQ). */
static void say_left(int fd, size_t len, int flags, size_t room)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { buf, len };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room,
	};
	struct cmsghdr *c;

	if (SAY(recvmsg(fd, &m, MSG_DONTWAIT | flags)) < 0)
		return;
	say("flags %#x, ", m.msg_flags);
	c = CMSG_FIRSTHDR(&m);
	if (c)
		say("level %d, type %d: %d; ", c->cmsg_level, c->cmsg_type, *(int *)CMSG_DATA(c));
}

static void inq(const void *arg)
{
	const size_t all = CMSG_SPACE(sizeof(int));
	struct pair p;

	(void)arg;
	pair_open(&p);
	bring(p.c, p.s, "0123456789");
	say_left(p.s, 1, 0, all);
	set_int(p.s, IPPROTO_TCP, TCP_INQ, 1);
	say_left(p.s, 3, 0, all);
	say_left(p.s, 2, MSG_PEEK, all);
	say_left(p.s, 1, 0, 0);
	say_left(p.s, sizeof(buf), 0, all);
	say_left(p.s, 1, 0, all);
	bring(p.c, p.s, "ab");
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.s, POLLRDHUP);
	say_left(p.s, 1, 0, all);
	say_left(p.s, 1, 0, all);
	say_left(p.s, 1, 0, all);
	must(shutdown(p.s, SHUT_RD));
	say_left(p.s, 1, 0, all);
}

static int bind_to(int fd, union address a, const char *what)
{
	return say_result(what, bind(fd, &a.sa, address_len(&a)));
}

static union address any(int port)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "0.0.0.0" : "::", port);
}

/* -- Ports */

/* With each of the two that has SO_REUSEADDR, and the first listening or not. */
static void ports(const void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 8; i++) {
		int a = new_socket(), b = new_socket();
		union address at = address_of(SERVER, free_port());

		set_int(a, SOL_SOCKET, SO_REUSEADDR, i & 1);
		set_int(b, SOL_SOCKET, SO_REUSEADDR, !!(i & 2));
		must(bind(a, &at.sa, address_len(&at)));
		if (i & 4)
			must(listen(a, 1));
		say("%d: ", i);
		if (!bind_to(b, at, "same"))
			SAY(listen(b, 1));
		if (!(i & 4))
			SAY(listen(a, 1));
		close(a);
		close(b);
	}
}

static void ports_any(const void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 4; i++) {
		int a = new_socket(), b = new_socket();
		int port = free_port();
		union address at = i & 1 ? any(port) : address_of(SERVER, port);

		must(bind(a, &at.sa, address_len(&at)));
		if (i & 2)
			must(listen(a, 1));
		bind_to(b, i & 1 ? address_of(SERVER, port) : any(port), "second");
		close(a);
		bind_to(b, at, "after the end");
		close(b);
	}
}

/* IPv4 and IPv6 on one port. */
static void ports_families(const void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 4; i++) {
		int a = new_socket(), b = new_socket();
		int port = free_port();
		union address at = any(port);

		set_int(a, IPPROTO_IPV6, IPV6_V6ONLY, i & 1);
		set_int(b, IPPROTO_IPV6, IPV6_V6ONLY, !!(i & 2));
		must(bind(a, &at.sa, address_len(&at)));
		bind_to(b, address_from(AF_INET6, "::ffff:10.77.0.1", port), "mapped");
		bind_to(b, address_of(SERVER, port), "specific");
		close(a);
		close(b);
	}
}

/* The port of a server that has gone, and whose connection has not. */
static void port_of_connection(const void *arg)
{
	int l = listener(1), again = new_socket(), reuse = new_socket();
	union address at = name_of(l);
	struct pair p;

	(void)arg;
	pair_from(&p, l);
	close(l);
	set_int(reuse, SOL_SOCKET, SO_REUSEADDR, 1);
	bind_to(again, at, "again");
	pair_close(&p);
}

static void names(const void *arg)
{
	int l = new_socket(), c, s;
	union address at = any(0), to, a, b;

	(void)arg;
	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 1));
	at = name_of(l);
	to = address_of(SERVER, port_of(&at));
	c = new_socket();
	at = any(0);
	must(bind(c, &at.sa, address_len(&at)));
	must(connect(c, &to.sa, address_len(&to)));
	s = must(accept(l, NULL, NULL));
	a = name_of(c);
	b = peer_of(s);
	say("client %d; ", same_address(&a, &b));
	a = peer_of(c);
	b = name_of(s);
	say("server %d %d; ", same_address(&a, &b), same_address(&a, &to));
	must(listen(l, 3));
	say_poll("listener", l);
}

/* Any address of IPv4, and of no other. */
static void names_mapped(const void *arg)
{
	union address at = { .in6.sin6_family = AF_INET6 }, is;
	char text[INET6_ADDRSTRLEN];
	int fd = new_socket();

	(void)arg;
	must_be(inet_pton(AF_INET6, "::ffff:0.0.0.0", &at.in6.sin6_addr), 1);
	SAY(bind(fd, &at.sa, sizeof(at.in6)));
	is = name_of(fd);
	say("%s; ", inet_ntop(AF_INET6, &is.in6.sin6_addr, text, sizeof(text)));
	SAY(listen(fd, 1));
	is = name_of(fd);
	say("%s; ", inet_ntop(AF_INET6, &is.in6.sin6_addr, text, sizeof(text)));
	close(fd);
}

/* -- accept */

static void accept_flags(const void *arg)
{
	static const int flags[] = { 0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC, 1 };
	int l = listener(8), c, s;
	size_t i;

	(void)arg;
	set_nonblock(l, true);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		c = client_of(l);
		wait_io(l, POLLIN);
		s = accept4(l, NULL, NULL, flags[i]);
		if (say_result("accept4", s < 0 ? -1 : 0) < 0)
			continue;
		say("%#lx %#lx; ", must(fcntl(s, F_GETFL)), must(fcntl(s, F_GETFD)));
		close(c);
		close(s);
	}
	s = must(accept(l, NULL, NULL));
	must_fail(accept(l, NULL, NULL), EAGAIN);
	say("%#lx; ", must(fcntl(s, F_GETFL)));
}

static void accept_names(const void *arg)
{
	static const int lens[] = { 0, 1, 7, 8, 16, 28, 100, -1 };
	int l = listener(16), s;
	size_t i;

	(void)arg;
	set_nonblock(l, true);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		char name[100];
		socklen_t len = lens[i];

		client_of(l);
		wait_io(l, POLLIN);
		memset(name, 0x55, sizeof(name));
		s = accept(l, (struct sockaddr *)name, &len);
		say_result("accept", s < 0 ? -1 : 0);
		say("%d of %d, next %#x; ", (int)len, lens[i], name[lens[i] < 0 ? 0 : lens[i] % 100]);
	}
	client_of(l);
	wait_io(l, POLLIN);
	SAY(accept(l, (void *)buf, NULL) < 0 ? -1 : 0);
}

/* One that has ended, with or without data, before it was accepted. */
static void accept_the_dead(const void *arg)
{
	struct linger linger = { .l_onoff = 1 };
	int l = listener(8), c, s;

	(void)arg;
	c = client_of(l);
	give(c, "last words");
	close(c);
	wait_io(l, POLLIN);
	s = must(accept(l, NULL, NULL));
	wait_io(s, POLLRDHUP);
	say_poll("said", s);
	say_recv("recv", s, 0);
	say_recv("recv", s, 0);
	c = client_of(l);
	must(setsockopt(c, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	wait_io(l, POLLIN);
	close(c);
	s = must(accept(l, NULL, NULL));
	wait_io(s, POLLHUP);
	say_poll("reset", s);
	say_recv("recv", s, 0);
	say_recv("recv", s, 0);
}

static void listen_turns(const void *arg)
{
	int l = listener(1), c = new_socket();
	union address at = name_of(l);

	(void)arg;
	SAY(listen(l, 5));
	SAY(shutdown(l, SHUT_WR));
	say_poll("after SHUT_WR", l);
	SAY(shutdown(l, SHUT_RD));
	say_poll("after SHUT_RD", l);
	SAY(accept(l, NULL, NULL));
	SAY(connect(c, &at.sa, address_len(&at)));
	SAY(listen(l, 5));
	say_poll("again", l);
	/* TCP may have another port now, as the program has not chosen it. */
	at = name_of(l);
	SAY(connect(c, &at.sa, address_len(&at)));
	SAY(listen(c, 1));
	SAY(connect(l, &at.sa, address_len(&at)));
	SAY(bind(l, &at.sa, address_len(&at)));
}

/* -- connect */

static void connect_turns(const void *arg)
{
	int l = listener(4), none = bound_socket(), c = new_socket();
	union address to = name_of(none);

	(void)arg;
	set_nonblock(c, true);
	SAY(connect(c, &to.sa, address_len(&to)));
	wait_io(c, POLLHUP);
	say_poll("refused", c);
	SAY(connect(c, &to.sa, address_len(&to)));
	say_poll("told", c);
	to = name_of(l);
	SAY(connect(c, &to.sa, address_len(&to)));
	wait_io(c, POLLOUT);
	say_poll("connected", c);
	SAY(connect(c, &to.sa, address_len(&to)));
	SAY(connect(c, &to.sa, address_len(&to)));
	say("error %s; ", errno_name(so_error(c)));
}

/* The port that the program has chosen stays its own, however the connections ended. */
static void connect_bound(const void *arg)
{
	int l = listener(4), none = bound_socket(), c = new_socket(), i;
	union address to = name_of(none), name = address_of(CLIENT, 7391), now;

	(void)arg;
	must(bind(c, &name.sa, address_len(&name)));
	for (i = 0; i < 10; i++)
		SAY(connect(c, &to.sa, address_len(&to)));
	to = name_of(l);
	SAY(connect(c, &to.sa, address_len(&to)));
	now = name_of(c);
	say("port %s; ", now.in.sin_port == name.in.sin_port ? "kept" : "changed");
	/* A reset, so that TCP has no use for the port any more. */
	close(l);
	wait_io(c, POLLHUP);
	close(c);
}

static union address black_hole(void)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 7777);
}

static void connect_in_time(const void *arg)
{
	union address to = black_hole();
	int c = new_socket();

	(void)arg;
	set_timeout(c, SO_SNDTIMEO, 30);
	SAY(connect(c, &to.sa, address_len(&to)));
	SAY(connect(c, &to.sa, address_len(&to)));
	say_poll("connecting", c);
	SAY(send(c, "a", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
	SAY(shutdown(c, SHUT_WR));
	say_poll("shut", c);
	say("error %s; ", errno_name(so_error(c)));
}

static void connect_interrupted(const void *arg)
{
	union address to = black_hole();
	int c = new_socket();

	(void)arg;
	catch_signal(SIGALRM, 0);
	interrupt_self(30);
	SAY(connect(c, &to.sa, address_len(&to)));
	interrupt_stop();
	set_nonblock(c, true);
	SAY(connect(c, &to.sa, address_len(&to)));
	say_poll("connecting", c);
}

/* -- Waiting */

static void recv_in_time(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	set_timeout(p.c, SO_RCVTIMEO, 20);
	SAY(recv(p.c, buf, 10, 0));
	bring(p.s, p.c, "hello");
	SAY(recv(p.c, buf, 10, MSG_WAITALL));
	SAY(recv(p.c, buf, 10, MSG_WAITALL));
	bring(p.s, p.c, "hello");
	SAY(recv(p.c, buf, 10, MSG_PEEK | MSG_WAITALL));
	SAY(recv(p.c, buf, 10, MSG_TRUNC));
	pair_close(&p);
}

/* Without a signal handler that restarts, with one, and with a time. */
static void recv_interrupted(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	catch_signal(SIGALRM, 0);
	interrupt_self(20);
	SAY(recv(p.c, buf, 10, 0));
	bring(p.s, p.c, "abc");
	SAY(recv(p.c, buf, 10, MSG_WAITALL));
	catch_signal(SIGALRM, SA_RESTART);
	set_timeout(p.c, SO_RCVTIMEO, 10000);
	SAY(recv(p.c, buf, 10, 0));
	interrupt_stop();
	pair_close(&p);
}

/* TCP's buffers may have grown. */
static void say_full(int fd)
{
	while (send(fd, buf, sizeof(buf), 0) > 0)
		;
	say("full: %s; ", errno_name(errno));
}

static void send_in_time(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	send_until_full(p.c, 1);
	set_timeout(p.c, SO_SNDTIMEO, 20);
	say_full(p.c);
	say_poll("full", p.c);
	catch_signal(SIGALRM, 0);
	set_timeout(p.c, SO_SNDTIMEO, 10000);
	interrupt_self(20);
	say_full(p.c);
	interrupt_stop();
	pair_close(&p);
}

static void accept_in_time(const void *arg)
{
	int l = listener(1);

	(void)arg;
	set_timeout(l, SO_RCVTIMEO, 20);
	SAY(accept(l, NULL, NULL));
	catch_signal(SIGALRM, 0);
	set_timeout(l, SO_RCVTIMEO, 10000);
	interrupt_self(20);
	SAY(accept(l, NULL, NULL));
	set_timeout(l, SO_RCVTIMEO, 0);
	SAY(accept(l, NULL, NULL));
	interrupt_stop();
}

static void recv_until_end(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	give(p.s, "hello");
	must(shutdown(p.s, SHUT_WR));
	SAY(recv(p.c, buf, 10, MSG_PEEK | MSG_WAITALL));
	SAY(recv(p.c, buf, 10, MSG_WAITALL));
	SAY(recv(p.c, buf, 10, MSG_WAITALL));
	SAY(recv(p.c, buf, 10, 0));
	pair_close(&p);
}

static void low_water(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	set_int(p.c, SOL_SOCKET, SO_RCVLOWAT, 10);
	bring(p.s, p.c, "hello");
	say_poll("below", p.c);
	say_recv("recv", p.c, 0);
	bring(p.s, p.c, "hello");
	bring(p.s, p.c, "world");
	say_poll("enough", p.c);
	say_recv("peek", p.c, MSG_PEEK);
	SAY(recv(p.c, buf, 3, 0));
	say_poll("again below", p.c);
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLRDHUP);
	say_poll("the end", p.c);
	pair_close(&p);
}

/* -- The end */

struct ends { int c, s; };

static int unsent(int fd)
{
	int n;

	must(ioctl(fd, SIOCOUTQ, &n));
	return n;
}

/* Wait until the other side sees the end of this one. */
static void arrived(int from, int to, int how)
{
	if (how == SHUT_RD)
		return;
	wait_io(to, POLLRDHUP);
	wait_until(!unsent(from));
}

static void shut_one(const struct pair *p, int how, const char *who)
{
	int fd = who[0] == 'c' ? p->c : p->s, other = who[0] == 'c' ? p->s : p->c;

	if (how < 0)
		return;
	say_result(who, shutdown(fd, how));
	arrived(fd, other, how);
}

static bool has_peer(int fd)
{
	union address a;

	return !getpeername(fd, &a.sa, &(socklen_t){ sizeof(a) });
}

/* @arg: how each side is shut down, -1: not; then data are tried, and names asked for. */
static void shut_both(const void *arg)
{
	const struct ends *how = arg;
	union address a;
	socklen_t len = sizeof(a);
	struct pair p;

	pair_open(&p);
	shut_one(&p, how->c, "client");
	shut_one(&p, how->s, "server");
	/* A side that does not read is not told that it is over. */
	if (how->c > SHUT_RD && how->s > SHUT_RD)
		wait_until(!has_peer(p.c) && !has_peer(p.s));
	say_both("shut", &p);
	SAY(getpeername(p.c, &a.sa, &len));
	SAY(getsockname(p.c, &a.sa, &len));
	SAY(shutdown(p.c, SHUT_RD));
	SAY(shutdown(p.c, SHUT_WR));
	say("errors %s %s; ", errno_name(so_error(p.c)), errno_name(so_error(p.s)));
	pair_close(&p);
}

/* Likewise with data that wait. */
static void shut_with_data(const void *arg)
{
	const struct ends *how = arg;
	struct pair p;

	pair_open(&p);
	bring(p.c, p.s, "to server");
	bring(p.s, p.c, "to client");
	shut_one(&p, how->c, "client");
	shut_one(&p, how->s, "server");
	say_both("first", &p);
	say_both("second", &p);
	pair_close(&p);
}

/* A reset, with and without data that wait. */
static void closed_hard(const void *arg)
{
	struct linger linger = { .l_onoff = 1 };
	struct pair p;
	int i;

	(void)arg;
	catch_signal(SIGPIPE, 0);
	for (i = 0; i < 4; i++) {
		signals_caught = 0;
		pair_open(&p);
		if (i & 1)
			bring(p.s, p.c, "unread");
		must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
		close(p.s);
		wait_io(p.c, POLLHUP);
		say_poll("reset", p.c);
		if (i & 2)
			SAY(write(p.c, "a", 1));
		else
			say_recv("recv", p.c, 0);
		say_recv("recv", p.c, 0);
		SAY(write(p.c, "a", 1));
		say("signals %d, error %s; ", (int)signals_caught, errno_name(so_error(p.c)));
		say_poll("told", p.c);
		close(p.c);
	}
}

/* In order. */
static void closed_in_order(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	give(p.s, "last words");
	close(p.s);
	wait_io(p.c, POLLRDHUP);
	say_recv("recv", p.c, 0);
	say_recv("recv", p.c, 0);
	say_poll("the end", p.c);
	close(p.c);
}

/* TCP does not know yet whether the peer only stopped sending. */
static void closed_and_sent_to(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	close(p.s);
	wait_io(p.c, POLLRDHUP);
	wait_until(send(p.c, "a", 1, MSG_NOSIGNAL) < 0);
	/* ECONNRESET says that a byte was under way when the peer left: exs(7) has it. */
	check(errno == EPIPE || errno == ECONNRESET, "%s", errno_name(errno));
	SAY(send(p.c, "a", 1, MSG_NOSIGNAL));
	close(p.c);
}

static int protocol_of(int fd)
{
	int protocol;

	must(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &(socklen_t){ sizeof(protocol) }));
	return protocol;
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	must(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info;
}

/* The connection of EXS is gone by then; TCP's remains until this side ends it. */
static void peer_is_gone(int fd)
{
	wait_io(fd, POLLRDHUP);
	if (protocol_of(fd) != IPPROTO_TCP)
		wait_until(send(fd, "", 0, MSG_NOSIGNAL) < 0);
}

static void closed_then_shut(const void *arg)
{
	static const int ways[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	struct pair p;
	size_t i;

	(void)arg;
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		pair_open(&p);
		give(p.s, "last words");
		close(p.s);
		peer_is_gone(p.c);
		SAY(has_peer(p.c));
		say("state %d; ", info_of(p.c).tcpi_state);
		SAY(shutdown(p.c, ways[i]));
		if (ways[i] != SHUT_RD)
			wait_until(!has_peer(p.c));
		say_poll("shut", p.c);
		say_recv("recv", p.c, 0);
		say_recv("recv", p.c, 0);
		SAY(has_peer(p.c));
		SAY(shutdown(p.c, SHUT_WR));
		say("error %s; ", errno_name(so_error(p.c)));
		close(p.c);
	}
}

/* With something unread, which is a reset at once, however long close(2) may take. */
static void closed_unread(const void *arg)
{
	struct linger linger = { .l_linger = 30 };
	struct pair p;

	(void)arg;
	for (; linger.l_onoff < 2; linger.l_onoff++) {
		pair_open(&p);
		bring(p.c, p.s, "unread");
		must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
		close(p.s);
		wait_io(p.c, POLLRDHUP);
		say_recv("recv", p.c, 0);
		wait_io(p.c, POLLHUP);
		say_poll("gone", p.c);
		close(p.c);
	}
}

/* -- Data */

static void counts(const void *arg)
{
	struct pair p;
	int n;

	(void)arg;
	pair_open(&p);
	bring(p.s, p.c, "hello");
	bring(p.s, p.c, "world");
	SAY(recv(p.c, buf, 2, 0));
	must(ioctl(p.c, SIOCINQ, &n));
	say("INQ %d; ", n);
	SAY(recv(p.c, buf, 2, MSG_PEEK));
	must(ioctl(p.c, FIONREAD, &n));
	say("INQ %d; ", n);
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLRDHUP);
	must(ioctl(p.c, SIOCINQ, &n));
	say("INQ %d; ", n);
	wait_until(!unsent(p.s));
	say_recv("recv", p.c, 0);
	must(ioctl(p.c, SIOCINQ, &n));
	say("INQ %d; ", n);
	pair_close(&p);
}

/* The compiler knows what it is for. */
static volatile int negative = -1;

static void pieces(const void *arg)
{
	static struct iovec v[1025];
	struct pair p;
	size_t i;

	(void)arg;
	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = (struct iovec){ "abc", i % 4 };
	SAY(writev(p.c, v, 1024));
	SAY(writev(p.c, v, 1025));
	SAY(writev(p.c, v, negative));
	for (i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = (struct iovec){ buf + i % 1000, i % 3 };
	wait_io(p.s, POLLIN);
	SAY(readv(p.s, v, 5));
	v[0] = (struct iovec){ buf, 3 };
	v[1] = (struct iovec){ (void *)8, 3 };
	SAY(readv(p.s, v, 2));
	SAY(recv(p.s, buf, 1, 0));
	say("'%c'; ", buf[0]);
	SAY(writev(p.c, v, 2));
	v[1].iov_len = -1;
	SAY(writev(p.c, v, 2));
	v[1] = (struct iovec){ buf, SIZE_MAX / 2 };
	SAY(readv(p.c, v, 0));
	pair_close(&p);
}

static void urgent(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	SAY(send(p.c, "a", 1, MSG_OOB | MSG_NOSIGNAL));
	pair_close(&p);
}

/* Control messages of SOL_SOCKET are looked at, others are not. */
static void control(const void *arg)
{
	static const struct { int level, type, len; } tries[] = {
		{ SOL_SOCKET, SCM_RIGHTS, 4 }, { SOL_SOCKET, 7777, 4 }, { SOL_IP, IP_TTL, 4 },
		{ SOL_SOCKET, SCM_CREDENTIALS, 12 }, { IPPROTO_TCP, 1, 4 },
	};
	union { struct cmsghdr h; char room[64]; } c;
	struct iovec v = { "abc", 3 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c };
	struct pair p;
	size_t i;

	(void)arg;
	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		memset(&c, 0, sizeof(c));
		c.h = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(tries[i].len), .cmsg_level = tries[i].level,
			.cmsg_type = tries[i].type,
		};
		m.msg_controllen = CMSG_SPACE(tries[i].len);
		SAY(sendmsg(p.c, &m, 0));
		c.h.cmsg_len = 3;
		SAY(sendmsg(p.c, &m, 0));
	}
	m.msg_control = (void *)8;
	SAY(sendmsg(p.c, &m, 0));
	pair_close(&p);
}

static void recv_flags(const void *arg)
{
	static const int flags[] = {
		0, MSG_TRUNC, MSG_PEEK, MSG_PEEK | MSG_TRUNC, MSG_CMSG_CLOEXEC, MSG_WAITFORONE,
		MSG_DONTROUTE, MSG_CTRUNC, MSG_EOR, MSG_NOSIGNAL, MSG_ERRQUEUE, MSG_OOB,
	};
	char data[8];
	struct iovec v = { data, 4 };
	struct pair p;
	size_t i;

	(void)arg;
	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_flags = 0x55 };

		bring(p.s, p.c, "hello");
		say_result("recvmsg", recvmsg(p.c, &m, flags[i] | MSG_DONTWAIT));
		say("flags %#x; ", m.msg_flags & ~MSG_CMSG_CLOEXEC);
		say_recv("rest", p.c, 0);
	}
	pair_close(&p);
}

static void many_messages(const void *arg)
{
	struct iovec v[3] = { { buf, 2 }, { buf + 2, 2 }, { buf + 4, 20 } };
	struct mmsghdr m[3];
	struct pair p;
	int i;

	(void)arg;
	pair_open(&p);
	memset(m, 0, sizeof(m));
	for (i = 0; i < 3; i++)
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &v[i], .msg_iovlen = 1 };
	bring(p.s, p.c, "hello");
	SAY(recvmmsg(p.c, m, 3, MSG_WAITFORONE, NULL));
	say("%u %u %u; ", m[0].msg_len, m[1].msg_len, m[2].msg_len);
	SAY(recvmmsg(p.c, m, 3, MSG_DONTWAIT, NULL));
	SAY(sendmmsg(p.c, m, 3, 0));
	say("%u %u %u; ", m[0].msg_len, m[1].msg_len, m[2].msg_len);
	pair_close(&p);
}

/* Files that sendfile(2) and its like take, and files that they refuse. */
static void files(const void *arg)
{
	int file = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), fds[2];
	off_t at = 100, size = must(lseek(file, 0, SEEK_END));
	struct pair p;

	(void)arg;
	pair_open(&p);
	must(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
	SAY(sendfile(p.c, file, &at, 50));
	say("at %ld; ", (long)at);
	SAY(sendfile(p.c, file, NULL, 50));
	at = size - 10;
	SAY(sendfile(p.c, file, &at, 50));
	say("%ld before the end; ", (long)(size - at));
	at = -1;
	SAY(sendfile(p.c, file, &at, 50));
	at = 0;
	SAY(sendfile(p.c, p.s, &at, 50));
	SAY(sendfile(file, p.s, NULL, 50));
	SAY(splice(p.c, NULL, p.s, NULL, 10, 0));
	SAY(splice(p.s, &at, fds[1], NULL, 10, 0));
	SAY(tee(p.s, fds[1], 10, 0));
	SAY(splice(p.s, NULL, fds[1], NULL, 20, 0));
	SAY(splice(fds[0], NULL, p.c, NULL, 30, SPLICE_F_NONBLOCK));
	SAY(splice(fds[0], NULL, p.c, NULL, 30, SPLICE_F_NONBLOCK));
	SAY(copy_file_range(file, NULL, p.c, NULL, 10, 0));
	set_nonblock(p.c, true);
	send_until_full(p.c, 1);
	do
		at = 0;
	while (sendfile(p.c, file, &at, size) > 0);
	say("full: %s; ", errno_name(errno));
	pair_close(&p);
}

/* The state, and how many bytes went; at the end TCP counts its FIN, too. */
static void say_info(const char *what, int fd)
{
	const struct tcp_info info = info_of(fd);

	say("%s: state %d; ", what, info.tcpi_state);
	if (info.tcpi_state != TCP_ESTABLISHED)
		return;
	say("sent %d, received %d, unsent %d; ",
	    (int)info.tcpi_bytes_sent, (int)info.tcpi_bytes_received, (int)info.tcpi_notsent_bytes);
}

static void info(const void *arg)
{
	static const int lens[] = { 0, 1, 8, 104, 192 };
	int l = listener(2);
	char text[400];
	struct pair p;
	size_t i;

	(void)arg;
	say_info("fresh", new_socket());
	say_info("listening", l);
	pair_from(&p, l);
	bring(p.c, p.s, "hello");
	wait_until(!unsent(p.c));
	say_info("client", p.c);
	say_recv("recv", p.s, 0);
	say_info("server", p.s);
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.s, POLLRDHUP);
	/* The end is confirmed soon after it has arrived. */
	wait_until(info_of(p.c).tcpi_state != TCP_FIN_WAIT1);
	say_info("shut", p.c);
	say_info("end", p.s);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		socklen_t len = lens[i];

		SAY(getsockopt(p.c, IPPROTO_TCP, TCP_INFO, text, &len));
		say("%d; ", (int)len);
	}
	SAY(setsockopt(p.c, IPPROTO_TCP, TCP_INFO, text, 104));
	pair_close(&p);
}

/* Control data of the last packet, which resolvers ask for: it has the same items, if other values. */
static void packet_options(const void *arg)
{
	bool v6 = e2e.domain == AF_INET6;
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP, i;
	char items[256];
	socklen_t len;
	struct pair p;

	(void)arg;
	pair_open(&p);
	for (i = 0; i < 3; i++) {
		len = sizeof(items);
		SAY(getsockopt(p.s, level, v6 ? IPV6_2292PKTOPTIONS : IP_PKTOPTIONS, items, &len));
		say("%d; ", (int)len);
		if (i)
			set_int(p.s, level, v6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL, 1);
		else
			set_int(p.s, level, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1);
	}
	pair_close(&p);
}

/* -- Readiness */

static void bring_watched(int from, int to, const char *text)
{
	int set = watch(to);

	bring(from, to, text);
	watched(set);
}

static void say_epoll(const char *what, int set)
{
	struct epoll_event ev = {};
	int n = must(epoll_wait(set, &ev, 1, 0));

	say("%s %d %#x; ", what, n, n ? ev.events : 0);
}

static void say_ctl(const char *what, int set, int op, int fd, unsigned int events)
{
	struct epoll_event ev = { .events = events };

	say_result(what, epoll_ctl(set, op, fd, &ev));
}

/* @arg: EPOLLET, EPOLLONESHOT and the like. */
static void epoll_steps(const void *arg)
{
	unsigned int how = *(const unsigned int *)arg;
	int set = must(epoll_create1(EPOLL_CLOEXEC));
	unsigned int all = how | EPOLLIN | (how & EPOLLEXCLUSIVE ? 0 : EPOLLRDHUP | EPOLLPRI);
	struct pair p;
	int w;

	pair_open(&p);
	say_ctl("add", set, EPOLL_CTL_ADD, p.c, all);
	say_ctl("again", set, EPOLL_CTL_ADD, p.c, all);
	say_epoll("nothing", set);
	bring_watched(p.s, p.c, "hello");
	say_epoll("data", set);
	say_epoll("still", set);
	bring_watched(p.s, p.c, "more");
	say_epoll("more", set);
	say_ctl("mod", set, EPOLL_CTL_MOD, p.c, all | EPOLLOUT);
	say_epoll("both", set);
	say_ctl("mod", set, EPOLL_CTL_MOD, p.c, all);
	say_recv("recv", p.c, 0);
	say_epoll("empty", set);
	bring_watched(p.s, p.c, "x");
	say_epoll("again", set);
	say_recv("recv", p.c, 0);
	w = watch(p.c);
	must(shutdown(p.s, SHUT_WR));
	watched(w);
	wait_io(p.c, POLLRDHUP);
	say_epoll("end", set);
	say_epoll("end", set);
	must(shutdown(p.c, SHUT_WR));
	wait_io(p.c, POLLHUP);
	say_epoll("over", set);
	say_ctl("del", set, EPOLL_CTL_DEL, p.c, 0);
	say_ctl("del", set, EPOLL_CTL_DEL, p.c, 0);
	close(set);
	pair_close(&p);
}

static void epoll_unconnected(const void *arg)
{
	int set = must(epoll_create1(EPOLL_CLOEXEC)), fd = new_socket();
	unsigned int all = EPOLLIN | EPOLLOUT | EPOLLRDHUP | *(const unsigned int *)arg;
	union address to = name_of(listener(1));

	say_ctl("add", set, EPOLL_CTL_ADD, fd, all);
	say_epoll("fresh", set);
	say_epoll("fresh", set);
	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	wait_io(fd, POLLOUT);
	say_epoll("connected", set);
	say_epoll("connected", set);
	close(fd);
	say_epoll("closed", set);
	close(set);
}

/* Every event that poll() has a name for. */
static void poll_names(const void *arg)
{
	static const int events[] = {
		POLLIN, POLLOUT, POLLPRI, POLLRDNORM, POLLRDBAND, POLLWRNORM, POLLWRBAND, POLLMSG,
		POLLRDHUP, 0,
	};
	struct pair p;
	size_t i;

	(void)arg;
	pair_open(&p);
	bring(p.s, p.c, "hello");
	for (i = 0; i < ARRAY_SIZE(events); i++)
		say("%#x: %#x; ", events[i], poll_now(p.c, events[i]));
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLRDHUP);
	for (i = 0; i < ARRAY_SIZE(events); i++)
		say("%#x: %#x; ", events[i], poll_now(p.c, events[i]));
	pair_close(&p);
}

static void signal_driven(const void *arg)
{
	struct pair p;

	(void)arg;
	pair_open(&p);
	catch_signal(SIGIO, 0);
	signals_caught = 0;
	must(fcntl(p.c, F_SETOWN, getpid()));
	must(fcntl(p.c, F_SETFL, O_ASYNC | O_RDWR));
	say("before %d; ", !!signals_caught);
	bring(p.s, p.c, "hello");
	wait_until(signals_caught);
	say_recv("recv", p.c, 0);
	signals_caught = 0;
	must(shutdown(p.s, SHUT_WR));
	wait_io(p.c, POLLRDHUP);
	wait_until(signals_caught);
	say("at the end %d; ", !!signals_caught);
	pair_close(&p);
}

/* -- Descriptors */

static void descriptor(const void *arg)
{
	struct stat st;
	char link[100], path[64];
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = new_socket(), one = 1;
	ssize_t n;

	(void)arg;
	must(fstat(fd, &st));
	say("mode %#o, size %ld; ", st.st_mode, (long)st.st_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = must(readlink(path, link, sizeof(link) - 1));
	link[n] = 0;
	link[strcspn(link, "0123456789")] = 0;
	say("%s; ", link);
	SAY(open(path, O_RDWR) < 0 ? -1 : 0);
	SAY(ioctl(fd, FIONBIO, &one));
	say("%#lx; ", must(fcntl(fd, F_GETFL)));
	SAY(fcntl(fd, F_GETPIPE_SZ));
	SAY(fallocate(fd, 0, 0, 10));
	SAY(fchmod(fd, 0600));
	SAY(ioctl(fd, SIOCGIFINDEX, &ifr));
	SAY(ioctl(fd, SIOCGIFFLAGS, &ifr));
	SAY(ioctl(fd, SIOCGIFMTU, &ifr));
	SAY(ioctl(fd, SIOCGIFADDR, &ifr));
	SAY(ioctl(fd, SIOCGIFNETMASK, &ifr));
	SAY(ioctl(fd, SIOCGSTAMP, buf));
	SAY(ioctl(fd, TCGETS, buf));
	SAY(ioctl(fd, SIOCSPGRP, &one) < 0 && errno != ESRCH ? -1 : 0);
}

static void interfaces(const void *arg)
{
	static char room[4096];
	struct ifconf ifc = { .ifc_len = sizeof(room), .ifc_buf = room };

	(void)arg;
	SAY(ioctl(new_socket(), SIOCGIFCONF, &ifc));
	say("%d bytes; ", ifc.ifc_len);
}

/* -- The cases */

struct step { const char *name; void (*fn)(const void *arg); const void *arg; unsigned int on; };

static const unsigned int level, edge = EPOLLET, once = EPOLLONESHOT, edge_once = EPOLLET | EPOLLONESHOT,
			  exclusive_edge = EPOLLET | EPOLLEXCLUSIVE;

static const struct step steps[] = {
	{ "ports", ports, NULL, ON_FACES },
	{ "ports_any", ports_any, NULL, ON_FACES },
	{ "ports_families", ports_families, NULL, ON_INET6 },
	{ "port_of_connection", port_of_connection, NULL, ON_INET },
	{ "names", names, NULL, ON_FACES },
	{ "names_mapped", names_mapped, NULL, ON_INET6 },
	{ "accept_flags", accept_flags, NULL, ON_INET },
	{ "accept_names", accept_names, NULL, ON_FACES },
	{ "accept_the_dead", accept_the_dead, NULL, ON_INET },
	{ "listen_turns", listen_turns, NULL, ON_INET },
	{ "connect_turns", connect_turns, NULL, ON_FACES },
	{ "connect_bound", connect_bound, NULL, ON_FACES },
	{ "connect_in_time", connect_in_time, NULL, ON_FACES },
	{ "connect_interrupted", connect_interrupted, NULL, ON_INET },
	{ "recv_in_time", recv_in_time, NULL, ON_INET },
	{ "recv_interrupted", recv_interrupted, NULL, ON_INET },
	{ "send_in_time", send_in_time, NULL, ON_INET },
	{ "accept_in_time", accept_in_time, NULL, ON_INET },
	{ "recv_until_end", recv_until_end, NULL, ON_INET },
	{ "low_water", low_water, NULL, ON_INET },
	{ "closed_hard", closed_hard, NULL, ON_INET },
	{ "closed_in_order", closed_in_order, NULL, ON_INET },
	{ "closed_and_sent_to", closed_and_sent_to, NULL, ON_INET },
	{ "closed_then_shut", closed_then_shut, NULL, ON_INET },
	{ "closed_unread", closed_unread, NULL, ON_INET },
	{ "counts", counts, NULL, ON_INET },
	{ "pieces", pieces, NULL, ON_INET },
	{ "urgent", urgent, NULL, ON_INET },
	{ "control", control, NULL, ON_INET },
	{ "recv_flags", recv_flags, NULL, ON_INET },
	{ "many_messages", many_messages, NULL, ON_INET },
	{ "files", files, NULL, ON_INET },
	{ "info", info, NULL, ON_INET },
	{ "packet_options", packet_options, NULL, ON_FACES },
	{ "epoll_level", epoll_steps, &level, ON_INET },
	{ "epoll_edge", epoll_steps, &edge, ON_INET },
	{ "epoll_once", epoll_steps, &once, ON_INET },
	{ "epoll_edge_once", epoll_steps, &edge_once, ON_INET },
	{ "epoll_exclusive", epoll_steps, &exclusive_edge, ON_INET },
	{ "epoll_unconnected_level", epoll_unconnected, &level, ON_INET },
	{ "epoll_unconnected_edge", epoll_unconnected, &edge, ON_INET },
	{ "poll_names", poll_names, NULL, ON_INET },
	{ "inq", inq, NULL, ON_INET },
	{ "signal_driven", signal_driven, NULL, ON_INET },
	{ "descriptor", descriptor, NULL, ON_FACES },
	{ "interfaces", interfaces, NULL, ON_FACES },
};

static void all_sides(void)
{
	const struct step *s = e2e.arg;

	same_on_all_sides(s->name, s->fn, s->arg);
}

/* Each way to shut down both sides, with and without data. */
#define WAYS	16

static struct ends ways[WAYS];
static struct step shuts[2 * WAYS];
static char names_of_shuts[2 * WAYS][32];
static struct e2e_case cases[ARRAY_SIZE(steps) + 2 * WAYS + 2];

static const char *const hows[] = { "open", "read", "write", "both" };

static void add_shut(int i)
{
	int way = i % WAYS;
	bool data = i >= WAYS;

	ways[way] = (struct ends){ way / 4 - 1, way % 4 - 1 };
	snprintf(names_of_shuts[i], sizeof(names_of_shuts[i]), "%s/%s_%s", data ? "shut_with_data" : "shut",
		 hows[way / 4], hows[way % 4]);
	shuts[i] = (struct step){
		names_of_shuts[i], data ? shut_with_data : shut_both, &ways[way], ON_INET,
	};
}

static struct e2e_case case_of(const struct step *s)
{
	return (struct e2e_case){
		.name = s->name, .run = all_sides, .on = s->on, .needs = NEEDS_ONE, .arg = s,
	};
}

int main(int argc, char **argv)
{
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		cases[n++] = case_of(&steps[i]);
	for (i = 0; i < 2 * WAYS; i++) {
		add_shut(i);
		cases[n++] = case_of(&shuts[i]);
	}
	cases[n++] = (struct e2e_case){ .name = "explained", .run = same_is_explained, .needs = NEEDS_ONE };
	return e2e_main(argc, argv, cases);
}
