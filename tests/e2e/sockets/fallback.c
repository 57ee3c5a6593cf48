// SPDX-License-Identifier: GPL-2.0
/*
 * Fallback to TCP: a socket reaches a peer without EXS by TCP, a listener takes both,
 * and no call waits for ever, and no data are lost or arrive twice.
 */
#include "lib/async.h"
#include "hostile/raw/raw.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/exs.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

static int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	must(getsockopt(fd, level, name, &value, &len));
	return value;
}

static int why(int fd)
{
	return get_int(fd, SOL_EXS, EXS_SO_FELL_BACK);
}

/* One that falls back, as new sockets of IPPROTO_EXS do. */
static int falling(void)
{
	int fd = must(socket(e2e.family, e2e.type | SOCK_CLOEXEC, e2e.protocol));

	must_be(get_int(fd, SOL_EXS, EXS_SO_FALLBACK), !!e2e.protocol);
	if (!e2e.protocol)
		set_int(fd, SOL_EXS, EXS_SO_FALLBACK, 1);
	return fd;
}

static int plain_socket(void)
{
	return must(socket(e2e.domain, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
}

static int tcp_listener_at(union address a)
{
	int fd = plain_socket();

	must(bind(fd, &a.sa, address_len(&a)));
	must(listen(fd, 4));
	return fd;
}

static int tcp_listener(void)
{
	return tcp_listener_at(address_of(SERVER, 0));
}

static int falling_listener(void)
{
	union address a = address_of(SERVER, 0);
	int fd = falling();

	must(bind(fd, &a.sa, address_len(&a)));
	must(listen(fd, 4));
	must_be(why(fd), EXS_FELL_BACK_NOT);
	return fd;
}

static int connect_to(int fd, int listen_fd)
{
	union address to = name_of(listen_fd);

	return connect(fd, &to.sa, address_len(&to));
}

static void talk(int a, int b)
{
	send_all(a, 1, 0, 100000);
	recv_all(b, 1, 0, 100000);
	send_all(b, 2, 0, 100000);
	recv_all(a, 2, 0, 100000);
}

/* @c is connected by TCP, for @reason, to the socket that @l accepts. */
static void by_tcp(int c, int l, int reason)
{
	union address ours, theirs;
	int s = must(accept(l, NULL, NULL));

	must_be(why(c), reason);
	must_be(get_int(c, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	must_be(get_int(c, SOL_SOCKET, SO_DOMAIN), e2e.domain);
	must_be(get_int(s, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	ours = name_of(c);
	theirs = peer_of(s);
	check(same_address(&ours, &theirs), "the names differ");
	ours = peer_of(c);
	theirs = name_of(s);
	check(same_address(&ours, &theirs), "the peers' names differ");
	talk(c, s);
	must_be(poll_now(l, POLLIN), 0);
	close(s);
}

static void refused(void)
{
	int l = tcp_listener(), c = falling();

	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_REFUSED);
	must_be(delta("fallback_refused"), 1);
	must_be(delta("connect_refused"), 0);
	must_fail(connect_to(c, l), EISCONN);
}

/* Of a socket that is bound both have the port. */
static void bound(void)
{
	int l = tcp_listener(), c = falling(), other = plain_socket();
	union address at = address_of(SERVER, 0), is;

	must(bind(c, &at.sa, address_len(&at)));
	at = name_of(c);
	must_fail(bind(other, &at.sa, address_len(&at)), EADDRINUSE);
	must_fail(bind(new_socket(), &at.sa, address_len(&at)), EADDRINUSE);
	must(connect_to(c, l));
	is = name_of(c);
	check(same_address(&at, &is), "it has another name than it was bound to");
	by_tcp(c, l, EXS_FELL_BACK_REFUSED);
}

static void port_taken(void)
{
	int l = tcp_listener();
	union address at = name_of(l);

	must_fail(bind(falling(), &at.sa, address_len(&at)), EADDRINUSE);
	l = listener(1);
	at = name_of(l);
	must_fail(bind(falling(), &at.sa, address_len(&at)), EADDRINUSE);
}

/* It knows no TCP. */
static int sharing_stranger(void)
{
	int fd;

	setfsuid(65534);
	fd = must(socket(exs_family_number(), SOCK_STREAM | SOCK_CLOEXEC, 0));
	setfsuid(0);
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return fd;
}

static int sharing(int how)
{
	int fd = falling();

	set_int(fd, SOL_SOCKET, how, 1);
	return fd;
}

/* The owner of a port of EXS gets its clients. TCP alone would be no substitute. */
static void port_of_another(void)
{
	union address at = address_of(SERVER, 0);
	int ours = sharing(SO_REUSEADDR), theirs = sharing_stranger();

	must(bind(theirs, &at.sa, address_len(&at)));
	at = name_of(theirs);
	must(bind(ours, &at.sa, address_len(&at)));
	must_fail(listen(ours, 1), EADDRINUSE);
	must_be(why(ours), EXS_FELL_BACK_NOT);
	must(listen(theirs, 1));
	must_fail(listen(ours, 1), EADDRINUSE);
	close(ours);
	ours = sharing(SO_REUSEPORT);
	must_fail(bind(ours, &at.sa, address_len(&at)), EADDRINUSE);
	close(theirs);
	must(bind(ours, &at.sa, address_len(&at)));
	must(listen(ours, 1));
	must_be(why(ours), EXS_FELL_BACK_NOT);
	must_be(delta("fallback_port"), 0);
}

/* A connection that was accepted has no port. */
static void port_of_gone(void)
{
	union address at = address_of(SERVER, 0);
	int theirs = sharing_stranger(), c = new_socket(), s, first, next;

	must(bind(theirs, &at.sa, address_len(&at)));
	must(listen(theirs, 1));
	at = name_of(theirs);
	must(connect_to(c, theirs));
	s = must(accept(theirs, NULL, NULL));
	close(theirs);
	first = sharing(SO_REUSEPORT);
	next = sharing(SO_REUSEPORT);
	must(bind(first, &at.sa, address_len(&at)));
	must_be(why(first), EXS_FELL_BACK_NOT);
	must(bind(next, &at.sa, address_len(&at)));
	must_be(why(next), EXS_FELL_BACK_PORT);
	talk(c, s);
}

/* That port of another address is not this one. */
static void port_elsewhere(void)
{
	union address at = address_of(SERVER, 0), other;
	int theirs = sharing_stranger(), first = sharing(SO_REUSEPORT), next = sharing(SO_REUSEPORT);

	shell("ip addr add 10.77.0.5/24 dev rxe0dev");
	must(bind(first, &at.sa, address_len(&at)));
	at = name_of(first);
	other = address_from(AF_INET, "10.77.0.5", port_of(&at));
	/* The device learns of the address a little later. */
	wait_until(!bind(theirs, &other.sa, address_len(&other)));
	must(bind(next, &at.sa, address_len(&at)));
	must_be(why(next), EXS_FELL_BACK_PORT);
	close(theirs);
	shell("ip addr del 10.77.0.5/24 dev rxe0dev");
}

/* The user's own socket may have it, even if that is connected by now. */
static void port_of_own(void)
{
	union address at = address_of(CLIENT, 0);
	int l = falling_listener(), first = sharing(SO_REUSEPORT), next = sharing(SO_REUSEPORT);

	must(bind(first, &at.sa, address_len(&at)));
	at = name_of(first);
	must(bind(next, &at.sa, address_len(&at)));
	must_be(why(next), EXS_FELL_BACK_PORT);
	close(next);
	must(connect_to(first, l));
	must_be(why(first), EXS_FELL_BACK_NOT);
	next = sharing(SO_REUSEPORT);
	must(bind(next, &at.sa, address_len(&at)));
	must_be(why(next), EXS_FELL_BACK_PORT);
	first = sharing(SO_REUSEADDR);
	next = sharing(SO_REUSEADDR);
	at = address_of(SERVER, 0);
	must(bind(first, &at.sa, address_len(&at)));
	at = name_of(first);
	must(bind(next, &at.sa, address_len(&at)));
	must(listen(first, 1));
	must_be(why(first), EXS_FELL_BACK_PORT);
	must_be(delta("fallback_port"), 3);
}

static void refused_by_both(void)
{
	int b = plain_socket(), c = falling();
	union address to = address_of(SERVER, 0);

	must(bind(b, &to.sa, address_len(&to)));
	must_fail(connect_to(c, b), ECONNREFUSED);
	must_fail(connect_to(c, b), ECONNREFUSED);
	must_be(delta("fallback_refused"), 1);
	must(listen(b, 1));
	must(connect_to(c, b));
	by_tcp(c, b, EXS_FELL_BACK_REFUSED);
}

/* No call waits, and TCP's result is reported. */
static void nonblock_refused(void)
{
	int b = plain_socket(), c = falling();
	union address to = address_of(SERVER, 0);

	must(bind(b, &to.sa, address_len(&to)));
	set_nonblock(c, true);
	must_fail(connect_to(c, b), EINPROGRESS);
	wait_io(c, POLLHUP);
	must_be(poll_now(c, POLLOUT | POLLIN) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
	must_be(so_error(c), ECONNREFUSED);
	must_be(why(c), EXS_FELL_BACK_REFUSED);
}

struct watch { int set, fd; };

static struct watch watch(int fd, unsigned int events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	struct watch w = { .set = must(epoll_create1(EPOLL_CLOEXEC)), .fd = fd };

	must(epoll_ctl(w.set, EPOLL_CTL_ADD, fd, &ev));
	return w;
}

static void must_see(struct watch w, unsigned int events)
{
	struct epoll_event ev;

	for (;;) {
		must_be(epoll_wait(w.set, &ev, 1, limit_ms()), 1);
		must_be(ev.data.fd, w.fd);
		if (ev.events & events)
			return;
	}
}

static void echo(void *arg)
{
	int fd = *(int *)arg;

	recv_all(fd, 3, 0, 1000);
	send_all(fd, 4, 0, 1000);
}

/* Epoll sets, duplicates and children had the descriptor before. */
static void before(void)
{
	int l = tcp_listener(), c = falling(), twin, s;
	struct watch level, edge, of_twin;
	pid_t child;

	set_nonblock(c, true);
	twin = must(dup(c));
	level = watch(c, EPOLLOUT);
	edge = watch(c, EPOLLOUT | EPOLLIN | EPOLLET);
	of_twin = watch(twin, EPOLLIN);
	must_see(level, EPOLLHUP);
	must_see(edge, EPOLLHUP);
	must_fail(connect_to(c, l), EINPROGRESS);
	must_see(level, EPOLLOUT);
	must_see(edge, EPOLLOUT);
	must_be(so_error(c), 0);
	must(connect_to(c, l));
	must_fail(connect_to(c, l), EISCONN);
	s = must(accept(l, NULL, NULL));
	send_all(s, 3, 0, 1000);
	must_see(edge, EPOLLIN);
	must_see(of_twin, EPOLLIN);
	set_nonblock(c, false);
	child = spawn(echo, &twin);
	recv_all(s, 4, 0, 1000);
	join(child);
	close(c);
	send_all(twin, 5, 0, 10);
	recv_all(s, 5, 0, 10);
	close(s);
	must_see(of_twin, EPOLLIN);
	must_be(why(twin), EXS_FELL_BACK_REFUSED);
}

/* One port, two kinds of clients. */
static void listener_takes_both(void)
{
	int l = falling_listener(), c = plain_socket(), s;
	struct watch w = watch(l, EPOLLIN | EPOLLET);

	must(connect_to(c, l));
	must_see(w, EPOLLIN);
	s = must(accept(l, NULL, NULL));
	must_be(get_int(s, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	talk(c, s);
	set_nonblock(l, true);
	must_fail(accept(l, NULL, NULL), EAGAIN);
	must_be(delta("accepts_tcp"), 1);
	c = falling();
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_NOT);
	must_see(w, EPOLLIN);
	s = must(accept(l, NULL, NULL));
	must_be(get_int(s, SOL_SOCKET, SO_PROTOCOL), e2e.protocol);
	talk(c, s);
	must_be(delta("accepts"), 1);
	must_fail(accept(l, NULL, NULL), EAGAIN);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	must(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info;
}

/* Neither kind waits until there is none of the other. */
static void both_kinds_in_turn(void)
{
	int l = falling_listener(), kinds[4], i;

	for (i = 0; i < 2; i++) {
		must(connect_to(plain_socket(), l));
		must(connect_to(falling(), l));
	}
	wait_until(info_of(l).tcpi_unacked == 2);
	for (i = 0; i < 4; i++)
		kinds[i] = get_int(must(accept(l, NULL, NULL)), SOL_SOCKET, SO_PROTOCOL);
	for (i = 1; i < 4; i++)
		check(kinds[i] != kinds[i - 1], "connection %d is of protocol %d again", i, kinds[i]);
}

/* Without a device it has TCP's clients, all of them; when the device is back, it has both kinds again. */
static void delete_below_both(void *arg)
{
	int l = falling_listener(), c = plain_socket();

	(void)arg;
	delete_device();
	wait_delta("resets_device", 1);
	must(connect_to(c, l));
	talk(c, must(accept(l, NULL, NULL)));
	c = falling();
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_NO_DEVICE);
	must_be(why(l), EXS_FELL_BACK_NOT);
	add_device();
	wait_delta("listens_again", 1);
	c = falling();
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_NOT);
	talk(c, must(accept(l, NULL, NULL)));
	c = plain_socket();
	must(connect_to(c, l));
	talk(c, must(accept(l, NULL, NULL)));
}

static void device_deleted(void)
{
	with_device_restored(delete_below_both);
}

static void *accept_one(void *arg)
{
	int s = must(accept(*(int *)arg, NULL, NULL));

	send_all(s, 1, 0, 1000);
	return (void *)(long)s;
}

/* Threads that wait in accept() are woken, one for each. */
static void listener_wakes(void)
{
	int l = falling_listener(), c = plain_socket();
	pthread_t t[2];
	void *s[2];
	int i;

	for (i = 0; i < 2; i++)
		must_be(-pthread_create(&t[i], NULL, accept_one, &l), 0);
	must(connect_to(c, l));
	recv_all(c, 1, 0, 1000);
	c = falling();
	must(connect_to(c, l));
	recv_all(c, 1, 0, 1000);
	for (i = 0; i < 2; i++)
		must_be(-pthread_join(t[i], &s[i]), 0);
	check(s[0] != s[1], "both have the same");
	must_be(delta("accepts_tcp"), 1);
	must_be(delta("accepts"), 1);
}

/* When listening ends, no client can reach the TCP port. After the next listen(2), they can again. */
static void listens_again(void)
{
	int l = falling_listener(), c = plain_socket();

	must(connect_to(c, l));
	must(shutdown(l, SHUT_RD));
	must_fail(accept(l, NULL, NULL), EINVAL);
	must_be(recv(c, &c, 1, 0) <= 0, true);
	must_fail(connect_to(plain_socket(), l), ECONNREFUSED);
	must(listen(l, 1));
	must(listen(l, 2));
	c = plain_socket();
	must(connect_to(c, l));
	talk(c, must(accept(l, NULL, NULL)));
	c = falling();
	must(connect_to(c, l));
	talk(c, must(accept(l, NULL, NULL)));
	must_be(why(c), EXS_FELL_BACK_NOT);
}

static union address loopback(int port)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "127.0.0.1" : "::1", port);
}

static void no_device(void)
{
	union address at = loopback(0);
	int l = falling(), c = falling();

	must(bind(l, &at.sa, address_len(&at)));
	must_be(why(l), EXS_FELL_BACK_NO_DEVICE);
	must(listen(l, 1));
	must_be(get_int(l, SOL_SOCKET, SO_ACCEPTCONN), 1);
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_NO_DEVICE);
	must_be(delta("fallback_no_device") >= 1, true);
}

/* A call that does not wait does not check the result of TCP's connect, either: as TCP's own. */
static void result_later(void)
{
	union address nobody = loopback(free_port());
	union address wrong = address_from(e2e.domain, e2e.domain == AF_INET ? "255.255.255.255" : "ff02::1", 99);
	int l = tcp_listener_at(loopback(0)), c = falling(), r = falling(), w = falling(), t = plain_socket(), err;

	write_sysctl("enabled", 0);
	set_nonblock(c, true);
	must_fail(connect_to(c, l), EINPROGRESS);
	wait_io(c, POLLOUT);
	must(connect_to(c, l));
	must_fail(connect_to(c, l), EISCONN);
	set_nonblock(r, true);
	must_fail(connect(r, &nobody.sa, address_len(&nobody)), EINPROGRESS);
	wait_io(r, POLLOUT);
	must_fail(connect(r, &nobody.sa, address_len(&nobody)), ECONNREFUSED);
	set_nonblock(w, true);
	must_be(connect(t, &wrong.sa, address_len(&wrong)), -1);
	err = errno;
	must_fail(connect(w, &wrong.sa, address_len(&wrong)), err);
}

/* By EXS as by TCP: it cannot be reached by an address of a device. */
static void loopback_is_private(void)
{
	union address at = loopback(0), to;
	int l = falling(), c = falling();

	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 1));
	at = name_of(l);
	to = address_of(SERVER, port_of(&at));
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(poll_now(l, POLLIN), 0);
	must(connect_to(c, l));
	close(must(accept(l, NULL, NULL)));
}

/* The device that the socket is bound to is TCP's, too. */
static void device_kept(void)
{
	union address at = loopback(0);
	int l = falling(), c = falling();
	char name[16] = "";
	socklen_t len = sizeof(name);

	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 1));
	must(setsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
	must(connect_to(c, l));
	check(why(c) != EXS_FELL_BACK_NOT, "it did not fall back");
	by_tcp(c, l, why(c));
	must(getsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	check(!strcmp(name, "lo"), "TCP's socket is bound to '%s'", name);
}

/* No host here has the address (RFC 5737, RFC 3849); TCP allows binding to it nevertheless. */
static void foreign_address(void)
{
	union address at = address_from(e2e.domain, e2e.domain == AF_INET ? "192.0.2.7" : "2001:db8::7", 0), is;
	int l = falling();

	must_fail(bind(l, &at.sa, address_len(&at)), EADDRNOTAVAIL);
	set_int(l, SOL_IP, IP_FREEBIND, 1);
	must(bind(l, &at.sa, address_len(&at)));
	must_be(why(l), EXS_FELL_BACK_NO_DEVICE);
	is = name_of(l);
	check(port_of(&is), "it has no port");
	must(listen(l, 1));
}

static union address black_hole(void)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
}

/* No answer, not even by TCP: EXS has had its time, and the next attempt does not wait. */
static void no_answer(void)
{
	union address to = black_hole();
	int c = falling(), other = falling();

	write_sysctl("fallback_timeout", 100);
	write_sysctl("fallback_memory", 0);
	set_nonblock(c, true);
	set_nonblock(other, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	must_fail(connect(c, &to.sa, address_len(&to)), EALREADY);
	wait_delta("fallback_no_answer", 1);
	must_be(why(c), EXS_FELL_BACK_NO_ANSWER);
	must_be(poll_now(c, POLLIN | POLLOUT), 0);
	must_fail(connect(c, &to.sa, address_len(&to)), EALREADY);
	write_sysctl("fallback_memory", 3600 * 1000);
	must_fail(connect(other, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(other), EXS_FELL_BACK_REMEMBERED);
	must_be(delta("fallback_remembered"), 1);
	must_be(so_error(c), 0);
}

/* A program with a shorter time limit does not decide for other programs. */
static void impatient(void)
{
	/* An address of no other case, as it must not be remembered. */
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.8" : "fd77::8", 99);
	int c = falling(), other = falling();

	write_sysctl("fallback_timeout", 3600 * 1000);
	write_sysctl("fallback_memory", 3600 * 1000);
	set_int(c, IPPROTO_TCP, TCP_USER_TIMEOUT, 100);
	set_nonblock(c, true);
	set_nonblock(other, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	wait_delta("fallback_no_answer", 1);
	must_fail(connect(other, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(other), EXS_FELL_BACK_NOT);
	must_be(delta("fallback_remembered"), 0);
}

/* But one that had waited long enough does, even if it gave up before TCP began. */
static void closed_early(void)
{
	/* Of no other case, either. */
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.7" : "fd77::7", 99);
	int c = falling(), clock = falling(), early = falling(), other = falling();

	write_sysctl("fallback_timeout", 4000);
	write_sysctl("fallback_memory", 3600 * 1000);
	/* By a device of its own choice: it does not decide for other programs. */
	must(setsockopt(clock, SOL_SOCKET, SO_BINDTODEVICE, "rxe0dev", 7));
	set_int(clock, IPPROTO_TCP, TCP_USER_TIMEOUT, 1200);
	set_nonblock(clock, true);
	set_nonblock(c, true);
	set_nonblock(early, true);
	set_nonblock(other, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	must_fail(connect(clock, &to.sa, address_len(&to)), EINPROGRESS);
	wait_delta("fallback_no_answer", 1);
	must_fail(connect(early, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(early), EXS_FELL_BACK_NOT);
	close(c);
	must_fail(connect(other, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(other), EXS_FELL_BACK_REMEMBERED);
	/* Each user has memories of its own. */
	setfsuid(7000);
	c = falling();
	setfsuid(0);
	set_nonblock(c, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(c), EXS_FELL_BACK_NOT);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* So many milliseconds, measured by a socket that does not decide for others. */
static void time_passes(int ms)
{
	/* An address of no other case: a host that has not answered one is remembered. */
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.4" : "fd77::4", 99);
	int clock = falling(), before = delta("fallback_no_answer");

	must(setsockopt(clock, SOL_SOCKET, SO_BINDTODEVICE, "rxe0dev", 7));
	set_int(clock, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
	set_nonblock(clock, true);
	must_fail(connect(clock, &to.sa, address_len(&to)), EINPROGRESS);
	wait_delta("fallback_no_answer", before + 1);
	close(clock);
}

/* A program that always gives up soon: together its attempts are long enough; those at the same time count once. */
static void closed_early_often(void)
{
	/* Of no other case, either. */
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.6" : "fd77::6", 99);
	double began = seconds();
	bool early = true;
	int i, k, c[3];

	write_sysctl("fallback_timeout", 4000);
	write_sysctl("fallback_memory", 3600 * 1000);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			c[k] = falling();
			set_nonblock(c[k], true);
			must_fail(connect(c[k], &to.sa, address_len(&to)), EINPROGRESS);
			check(!early || why(c[k]) == EXS_FELL_BACK_NOT, "remembered too early, in round %d", i);
		}
		time_passes(400);
		for (k = 0; k < 3; k++)
			close(c[k]);
		/* A quarter of fallback_timeout is enough. On a slow machine that may have passed. */
		early = seconds() - began < 0.99;
	}
	c[0] = falling();
	set_nonblock(c[0], true);
	must_fail(connect(c[0], &to.sa, address_len(&to)), EINPROGRESS);
	must_be(why(c[0]), EXS_FELL_BACK_REMEMBERED);
}

static void *connects_in_vain(void *arg)
{
	union address to = black_hole();

	must_fail(connect(*(int *)arg, &to.sa, address_len(&to)), ECONNRESET);
	return NULL;
}

/* A connect(2) that another thread has ended does not begin again. */
static void ended_while_waiting(void)
{
	struct timeval limit = { .tv_sec = limit_ms() / 1000 };
	int c = falling();
	pthread_t t;

	write_sysctl("fallback_timeout", 100);
	write_sysctl("fallback_memory", 0);
	must(setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	must_be(pthread_create(&t, NULL, connects_in_vain, &c), 0);
	wait_delta("fallback_no_answer", 1);
	must(shutdown(c, SHUT_RDWR));
	pthread_join(t, NULL);
	must_be(info_of(c).tcpi_state, TCP_CLOSE);
}

/* Ends with SO_SNDTIMEO, too. */
static void connect_for(int fd, int seconds)
{
	struct timeval limit = { .tv_sec = seconds };
	union address to = black_hole();

	must(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	must_be(connect(fd, &to.sa, address_len(&to)), -1);
}

static bool longer_is_over;

static void *connects_for_longer(void *arg)
{
	connect_for(*(int *)arg, 3);
	__atomic_store_n(&longer_is_over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* SO_SNDTIMEO is for all of connect(2): 1.5 s by EXS and half a second by TCP are less than 3 s of TCP alone. */
static void send_timeout_of_both(void)
{
	int c = falling(), longer = plain_socket();
	pthread_t t;

	write_sysctl("fallback_timeout", 1500);
	write_sysctl("fallback_memory", 0);
	must_be(pthread_create(&t, NULL, connects_for_longer, &longer), 0);
	connect_for(c, 2);
	must_be(errno, EINPROGRESS);
	check(!__atomic_load_n(&longer_is_over, __ATOMIC_ACQUIRE), "it took longer");
	must_be(why(c), EXS_FELL_BACK_NO_ANSWER);
	must(shutdown(longer, SHUT_RDWR));
	pthread_join(t, NULL);
}

static bool is_tried(const union address *to)
{
	int c = falling();
	bool tried;

	set_nonblock(c, true);
	must_fail(connect(c, &to->sa, address_len(to)), EINPROGRESS);
	tried = why(c) == EXS_FELL_BACK_NOT;
	close(c);
	return tried;
}

/* A peer that is not remembered, or not any more, is tried again. */
static void forgotten(void)
{
	union address to = black_hole();
	int i;

	write_sysctl("fallback_timeout", 100);
	write_sysctl("fallback_memory", 0);
	for (i = 1; i <= 2; i++) {
		int c = falling();

		set_nonblock(c, true);
		must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
		wait_delta("fallback_no_answer", i);
	}
	must_be(delta("fallback_remembered"), 0);
	write_sysctl("fallback_memory", 3000);
	check(!is_tried(&to), "it is not remembered");
	wait_until(is_tried(&to));
}

/* In the middle of it, both before and after TCP has taken over. */
static void given_up(void)
{
	union address to = black_hole();
	int i, c;

	write_sysctl("fallback_timeout", 100);
	write_sysctl("fallback_memory", 0);
	for (i = 0; i < 4; i++) {
		c = falling();
		set_nonblock(c, true);
		must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
		if (i & 1)
			wait_delta("fallback_no_answer", i / 2 + 1);
		if (i & 2)
			must(shutdown(c, SHUT_RDWR));
		close(c);
	}
}

/* -- A host that has TCP and no RDMA device: another namespace, with a device here */

#define HOST	"10.81.0.2"

static void host_open(void)
{
	if (!access("/sys/class/infiniband/rxe81", F_OK))
		return;
	shell("ip netns add exs81");
	shell("ip link add exs81a type veth peer name exs81b netns exs81 address 02:00:00:81:00:02");
	shell("ip addr add 10.81.0.1/24 dev exs81a && ip link set exs81a up");
	shell("ip neigh replace " HOST " lladdr 02:00:00:81:00:02 dev exs81a nud permanent");
	shell("ip -n exs81 addr add " HOST "/24 dev exs81b");
	shell("ip -n exs81 link set exs81b up && ip -n exs81 link set lo up");
	shell("rdma link add rxe81 type rxe netdev exs81a");
}

static void host_close(void)
{
	shell("rdma link del rxe81; ip link del exs81a; ip netns del exs81");
}

static int host_listener(void)
{
	int own = must(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
	int other = must(open("/run/netns/exs81", O_RDONLY | O_CLOEXEC)), fd;

	must(setns(other, CLONE_NEWNET));
	fd = tcp_listener_at(address_from(AF_INET, HOST, 0));
	must(setns(own, CLONE_NEWNET));
	close(own);
	close(other);
	return fd;
}

static void host_without(void)
{
	int l, c;

	host_open();
	l = host_listener();
	write_sysctl("fallback_timeout", 500);
	write_sysctl("fallback_memory", 0);
	c = falling();
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_NO_ANSWER);
	write_sysctl("fallback_memory", 3600 * 1000);
	c = falling();
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_REMEMBERED);
	close(l);
	host_close();
}

struct caller { int fd, listener; };

static void *connects(void *arg)
{
	struct caller *c = arg;

	if (connect_to(c->fd, c->listener) && errno != EISCONN)
		fail("connect: %s", errno_name(errno));
	return NULL;
}

static void *polls(void *arg)
{
	struct caller *c = arg;

	wait_io(c->fd, POLLOUT);
	return NULL;
}

static void *receives(void *arg)
{
	struct caller *c = arg;

	recv_all(c->fd, 7, 0, 1000);
	return NULL;
}

static void *sends(void *arg)
{
	struct caller *c = arg;

	send_all(c->fd, 8, 0, 1000);
	return NULL;
}

/* Threads are in the middle of calls when TCP takes over. */
static void in_the_middle(void)
{
	static void *(*const calls[])(void *) = { connects, connects, polls, receives, sends };
	pthread_t t[ARRAY_SIZE(calls)];
	struct caller c;
	size_t i;
	int s;

	host_open();
	write_sysctl("fallback_timeout", 500);
	write_sysctl("fallback_memory", 0);
	c.listener = host_listener();
	c.fd = falling();
	set_nonblock(c.fd, true);
	must_fail(connect_to(c.fd, c.listener), EINPROGRESS);
	set_nonblock(c.fd, false);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		must_be(-pthread_create(&t[i], NULL, calls[i], &c), 0);
	s = must(accept(c.listener, NULL, NULL));
	send_all(s, 7, 0, 1000);
	recv_all(s, 8, 0, 1000);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		must_be(-pthread_join(t[i], NULL), 0);
	must_be(why(c.fd), EXS_FELL_BACK_NO_ANSWER);
	must_be(poll_now(c.listener, POLLIN), 0);
	close(s);
	close(c.fd);
	close(c.listener);
	host_close();
}

/* -- */

static void disabled(void)
{
	int early = falling_listener(), l, c;
	union address at = address_of(SERVER, 0);

	write_sysctl("enabled", 0);
	l = falling();
	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 1));
	must_be(why(l), EXS_FELL_BACK_DISABLED);
	c = falling();
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_DISABLED);
	c = falling();
	must(connect_to(c, early));
	by_tcp(c, early, EXS_FELL_BACK_DISABLED);
	l = falling();
	must(listen(l, 1));
	must_be(why(l), EXS_FELL_BACK_DISABLED);
	must_be(delta("fallback_disabled"), 4);
}

/* Newer than the C library. */
#ifndef SO_RCVMARK
#define SO_RCVMARK	75
#endif

static const struct setting { int level, name, value; } every_setting[] = {
	{ SOL_SOCKET, SO_KEEPALIVE, 1 }, { SOL_SOCKET, SO_SNDBUF, 100000 },
	{ SOL_SOCKET, SO_RCVBUF, 50000 }, { SOL_SOCKET, SO_RCVLOWAT, 10 },
	{ SOL_TCP, TCP_NODELAY, 1 }, { SOL_TCP, TCP_KEEPIDLE, 77 },
	{ SOL_TCP, TCP_KEEPCNT, 3 }, { SOL_SOCKET, SO_BROADCAST, 1 },
	{ SOL_SOCKET, SO_DONTROUTE, 1 }, { SOL_SOCKET, SO_TIMESTAMP, 1 },
	{ SOL_SOCKET, SO_BUSY_POLL, 50 }, { SOL_SOCKET, SO_MAX_PACING_RATE, 1000000000 },
	{ SOL_SOCKET, SO_RXQ_OVFL, 1 }, { SOL_SOCKET, SO_SELECT_ERR_QUEUE, 1 },
	{ SOL_SOCKET, SO_LOCK_FILTER, 1 }, { SOL_SOCKET, SO_RCVMARK, 1 },
	{ SOL_SOCKET, SO_WIFI_STATUS, 1 }, { SOL_SOCKET, SO_NOFCS, 1 }, { SOL_SOCKET, SO_DEBUG, 1 },
	{ SOL_SOCKET, SO_PREFER_BUSY_POLL, 1 },
};

/* Linux 6.16 and later have it for TCP's sockets only. */
static const struct setting tcp_settings[] = {
	{ SOL_SOCKET, SO_TXREHASH, 0 },
};

static const struct setting ip_settings[] = {
	{ SOL_IP, IP_TTL, 33 }, { SOL_IP, IP_FREEBIND, 1 }, { SOL_IP, IP_PKTINFO, 1 },
	{ SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT },
};

static const struct setting ipv6_settings[] = {
	{ SOL_IPV6, IPV6_UNICAST_HOPS, 33 }, { SOL_IPV6, IPV6_RECVTCLASS, 1 },
	{ SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT }, { SOL_IP, IP_FREEBIND, 1 },
};

static void kept(const struct setting *set, size_t n, int l)
{
	int c = falling(), was[n];
	size_t i;

	for (i = 0; i < n; i++) {
		set_int(c, set[i].level, set[i].name, set[i].value);
		was[i] = get_int(c, set[i].level, set[i].name);
	}
	set_timeout(c, SO_RCVTIMEO, 10);
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_REFUSED);
	for (i = 0; i < n; i++)
		must_be(get_int(c, set[i].level, set[i].name), was[i]);
	must_fail(recv(c, &i, 1, 0), EAGAIN);
	close(c);
}

static void needs_family_options(void)
{
	int fd = falling(), zero = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &zero, sizeof(zero))) {
		must_be(errno, EOPNOTSUPP);
		skip("this kernel sets options of SOL_SOCKET without the socket's family");
	}
	close(fd);
}

/* An option that was never set is as on a socket that was always TCP's. */
static void defaults(void)
{
	int l = tcp_listener(), c = falling(), tcp = plain_socket();

	must(connect_to(c, l));
	must(connect_to(tcp, l));
	must_be(why(c), EXS_FELL_BACK_REFUSED);
	must_be(get_int(c, SOL_SOCKET, SO_TXREHASH), get_int(tcp, SOL_SOCKET, SO_TXREHASH));
	must_be(get_int(c, SOL_SOCKET, SO_PREFER_BUSY_POLL), get_int(tcp, SOL_SOCKET, SO_PREFER_BUSY_POLL));
}

enum { CPU_LISTENERS = 8, CPU_CLIENTS = 16 };

/*
 * Listeners share a port, and the first wants this processor's connections: after it listens. Return: how many of TCP
 * come to it.
 */
static int chosen_by_cpu(int (*make)(void))
{
	union address at = address_of(SERVER, 0);
	int l[CPU_LISTENERS], i, n;

	run_on(0);
	for (i = 0; i < CPU_LISTENERS; i++) {
		l[i] = make();
		set_int(l[i], SOL_SOCKET, SO_REUSEPORT, 1);
		must(bind(l[i], &at.sa, address_len(&at)));
		at = name_of(l[i]);
		must(listen(l[i], CPU_CLIENTS));
	}
	set_int(l[0], SOL_SOCKET, SO_INCOMING_CPU, 0);
	for (i = 0; i < CPU_CLIENTS; i++)
		must(connect(plain_socket(), &at.sa, address_len(&at)));
	set_nonblock(l[0], true);
	for (n = 0; accept(l[0], NULL, NULL) >= 0; n++)
		;
	must_be(errno, EAGAIN);
	for (i = 0; i < CPU_LISTENERS; i++)
		close(l[i]);
	return n;
}

static void cpu_after_listen(void)
{
	needs_family_options();
	if (chosen_by_cpu(plain_socket) < CPU_CLIENTS)
		skip("this kernel does not choose listeners by their processor");
	must_be(chosen_by_cpu(falling), CPU_CLIENTS);
	must_be(delta("accepts_tcp"), CPU_CLIENTS);
}

/* Options that were set before hold afterwards. */
static void settings(void)
{
	int l = tcp_listener(), c = falling();

	kept(every_setting, ARRAY_SIZE(every_setting), l);
	if (!setsockopt(c, SOL_SOCKET, SO_TXREHASH, &(int){ 0 }, sizeof(int)))
		kept(tcp_settings, ARRAY_SIZE(tcp_settings), l);
	else
		must_be(errno, EOPNOTSUPP);
	if (e2e.family == AF_INET)
		kept(ip_settings, ARRAY_SIZE(ip_settings), l);
	if (e2e.family == AF_INET6)
		kept(ipv6_settings, ARRAY_SIZE(ipv6_settings), l);
	must(connect_to(c, l));
	must_fail(setsockopt(c, SOL_TCP, TCP_ULP, "tls", 4), ENOPROTOOPT);
	must_fail(setsockopt(c, SOL_EXS, EXS_SO_FALLBACK, &l, sizeof(l)), EINVAL);
}

/* Epoll sets and bindings of the socket remain. */
static void at_once(void)
{
	union address at = address_of(SERVER, 0), is;
	int l = falling(), c = falling();
	struct watch w = watch(l, EPOLLIN | EPOLLET), out = watch(c, EPOLLOUT | EPOLLET);

	must(bind(l, &at.sa, address_len(&at)));
	at = name_of(l);
	set_int(l, SOL_EXS, EXS_SO_FALLBACK, EXS_FALLBACK_NOW);
	is = name_of(l);
	check(same_address(&at, &is), "it has another name than it was bound to");
	must(listen(l, 1));
	set_int(c, SOL_EXS, EXS_SO_FALLBACK, EXS_FALLBACK_NOW);
	must_be(get_int(c, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	must(connect_to(c, l));
	must_see(w, EPOLLIN);
	must_see(out, EPOLLOUT);
	by_tcp(c, l, EXS_FELL_BACK_RULE);
	must_be(delta("fallback_rule"), 2);
	l = falling_listener();
	c = EXS_FALLBACK_NOW;
	must_fail(setsockopt(l, SOL_EXS, EXS_SO_FALLBACK, &c, sizeof(c)), EINVAL);
	c = falling();
	must(connect_to(c, l));
	l = EXS_FALLBACK_NOW;
	must_fail(setsockopt(c, SOL_EXS, EXS_SO_FALLBACK, &l, sizeof(l)), EINVAL);
}

/* -- A peer with another version of EXS, and with TCP on the same port */

static struct raw peer;
static int peer_tcp;

static void peer_open(void)
{
	union address at;

	/* The peer is this process, which may be scheduled late. */
	write_sysctl("fallback_timeout", 3600 * 1000);
	write_sysctl("fallback_memory", 0);
	peer_tcp = tcp_listener();
	at = name_of(peer_tcp);
	raw_listen_at(&peer, &at);
}

/* A request of @c has come. */
static void peer_called(int c, struct raw *request)
{
	set_nonblock(c, true);
	must_fail(connect_to(c, peer_tcp), EINPROGRESS);
	raw_take_request(&peer, request);
	must_be(why(c), EXS_FELL_BACK_NOT);
}

static void peer_left(int c, int reason)
{
	wait_until(why(c) != EXS_FELL_BACK_NOT);
	set_nonblock(c, false);
	by_tcp(c, peer_tcp, reason);
	close(c);
}

static void rejected(int said, int reason)
{
	struct reject no = good_reject(said);
	struct raw request;
	int c = falling();

	peer_called(c, &request);
	raw_reject(&request, &no, sizeof(no));
	peer_left(c, reason);
	raw_close(&request);
}

/* The peer rejects with a reason: TCP takes over at once, for this reason. */
static void said_by_peer(void)
{
	static const int version[] = { R_VERSION, R_MALFORMED, R_SOCKTYPE };
	static const int refused[] = { R_BACKLOG, R_LIMIT, R_DISABLED, 255 };
	size_t i;

	peer_open();
	for (i = 0; i < ARRAY_SIZE(version); i++)
		rejected(version[i], EXS_FELL_BACK_VERSION);
	must_be(delta("fallback_version"), ARRAY_SIZE(version));
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		rejected(refused[i], EXS_FELL_BACK_REFUSED);
	must_be(delta("fallback_refused"), ARRAY_SIZE(refused));
	must_be(delta("connect_refused"), 0);
	raw_close(&peer);
}

/* It is remembered as long as it does not answer. */
static void heard(void)
{
	struct pair p;
	int i, c;

	peer_open();
	write_sysctl("fallback_timeout", 100);
	write_sysctl("fallback_memory", 3600 * 1000);
	for (i = 0; i < 2; i++) {
		c = falling();
		must(connect_to(c, peer_tcp));
		by_tcp(c, peer_tcp, EXS_FELL_BACK_NO_ANSWER);
		close(c);
		c = falling();
		must(connect_to(c, peer_tcp));
		by_tcp(c, peer_tcp, EXS_FELL_BACK_REMEMBERED);
		close(c);
		/* It connects, and from the same address. */
		pair_open(&p);
		pair_close(&p);
	}
	raw_close(&peer);
}

/* One that answers now and then is not silent, however long others have waited in all. */
static void answered(void)
{
	union address other = address_from(AF_INET, "10.77.0.5", 0);
	int l = falling_listener(), theirs = sharing_stranger(), i, c;

	peer_open();
	write_sysctl("fallback_timeout", 4000);
	write_sysctl("fallback_memory", 3600 * 1000);
	shell("ip addr add 10.77.0.5/24 dev rxe0dev");
	/* The device learns of the address a little later. */
	wait_until(!bind(theirs, &other.sa, address_len(&other)));
	close(theirs);
	for (i = 0; i < 4; i++) {
		double began = seconds();

		/* From another address: so only the result of connect(2) tells it. */
		c = falling();
		must(bind(c, &other.sa, address_len(&other)));
		must(connect_to(c, l));
		must_be(why(c), EXS_FELL_BACK_NOT);
		close(must(accept(l, NULL, NULL)));
		close(c);
		c = falling();
		set_nonblock(c, true);
		must_fail(connect_to(c, peer_tcp), EINPROGRESS);
		time_passes(400);
		check(why(c) == EXS_FELL_BACK_NOT || seconds() - began > 3.9, "it gave up early, in round %d", i);
		close(c);
	}
	shell("ip addr del 10.77.0.5/24 dev rxe0dev");
	raw_close(&peer);
}

/* It accepts, with an answer that is no hello. */
static void strange_answer(void)
{
	struct hello h = good_hello();
	struct raw request;
	int c = falling();

	h.magic = htole32(0x32535845);
	peer_open();
	peer_called(c, &request);
	raw_accept(&request, &h, sizeof(h));
	peer_left(c, EXS_FELL_BACK_VERSION);
	must_be(delta("fallback_version"), 1);
	raw_close(&request);
	raw_close(&peer);
}

/* In the middle of it: TCP's connection ends, too. */
static void closed_meanwhile(void)
{
	struct reject no = good_reject(R_DISABLED);
	struct locked_socket l;
	struct raw request;
	int s, c = falling();
	char byte;

	peer_open();
	peer_called(c, &request);
	lock_socket(&l, c);
	raw_reject(&request, &no, sizeof(no));
	/* The worker that hands over waits for the lock, and closing for the worker. */
	wait_until(workers_in("exs_attempt_work"));
	close(c);
	unlock_socket(&l);
	s = must(accept(peer_tcp, NULL, NULL));
	must_be(recv(s, &byte, 1, 0), 0);
	raw_close(&request);
}

static void fill(int fd)
{
	static char data[1 << 16];

	set_nonblock(fd, true);
	while (send(fd, data, sizeof(data), 0) > 0)
		;
	must_be(errno, EAGAIN);
}

/* An asynchronous close that began before: the last close(2) does not wait, whatever SO_LINGER says. */
static void closed_before(void)
{
	struct linger hour = { 1, 3600 };
	struct reject no = good_reject(R_DISABLED);
	exs_qhandle_t q = queue_new(1);
	struct raw request;
	int s, c = falling(), last = must(dup(c));
	exs_event_t ev;
	char data[4096];
	ssize_t n;

	peer_open();
	peer_called(c, &request);
	must(exs_close(c, 0, q, 1));
	raw_reject(&request, &no, sizeof(no));
	s = must(accept(peer_tcp, NULL, NULL));
	wait_io(last, POLLOUT);
	must(setsockopt(last, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)));
	fill(last);
	no_event(q);
	must(close(last));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_CLOSE, 1, 0, 0);
	/* It has not discarded the data, either. */
	do
		n = must(recv(s, data, sizeof(data), 0));
	while (n);
	raw_close(&request);
}

struct setter { int fd; volatile pid_t tid; };

static void *keep_alive(void *arg)
{
	struct setter *s = arg;

	s->tid = gettid();
	set_int(s->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	return NULL;
}

/* An option that waits for the lock behind the worker that hands over. */
static void set_meanwhile(void)
{
	struct reject no = good_reject(R_DISABLED);
	struct setter s = { .fd = falling() };
	struct locked_socket l;
	struct raw request;
	pthread_t thread;

	needs_family_options();
	peer_open();
	peer_called(s.fd, &request);
	lock_socket(&l, s.fd);
	raw_reject(&request, &no, sizeof(no));
	wait_until(workers_in("exs_attempt_work"));
	must_be(pthread_create(&thread, NULL, keep_alive, &s), 0);
	wait_until(s.tid);
	wait_until(state_is(s.tid, 'D'));
	unlock_socket(&l);
	must_be(pthread_join(thread, NULL), 0);
	wait_until(why(s.fd) != EXS_FELL_BACK_NOT);
	must_be(get_int(s.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	raw_close(&request);
}

/* -- */

/* A user's cap of connections is reached: the next is TCP's. */
static void limit(void)
{
	int l = falling_listener(), c = falling(), next = falling();

	write_sysctl("max_user_conns", 2);
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_NOT);
	talk(c, must(accept(l, NULL, NULL)));
	must(connect_to(next, l));
	by_tcp(next, l, EXS_FELL_BACK_LIMIT);
	must_be(delta("fallback_limit"), 1);
}

/* TCP has none either, and says so. */
static void no_route(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "192.0.2.1" : "2001:db8::1", 9);
	int c = falling();

	must_fail(connect(c, &to.sa, address_len(&to)), ENETUNREACH);
	must_be(why(c), EXS_FELL_BACK_NO_ROUTE);
	must_be(delta("fallback_no_route"), 1);
	must_fail(connect(c, &to.sa, address_len(&to)), ENETUNREACH);
}

/* TCP keeps the promise. */
static void marked(void)
{
	int l = tcp_listener(), c = falling();

	set_int(c, SOL_SOCKET, SO_MARK, 7);
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_OPTION);
	must_be(get_int(c, SOL_SOCKET, SO_MARK), 7);
}

/* Its TCP belongs to the user who made it, not to the one who connects it: routes may depend on that. */
static void routed_by_owner(void)
{
	int l = tcp_listener(), c = falling(), err;

	if (system("ip rule show > /dev/null 2>&1"))
		skip("this kernel has one table of routes");
	/* Local addresses are looked up first otherwise. */
	shell("ip rule add pref 1 lookup local");
	shell("ip rule add pref 0 uidrange 4242-4242 unreachable");
	shell("ip rule del pref 0 lookup local");
	setfsuid(4242);
	err = connect_to(c, l) ? errno : 0;
	setfsuid(0);
	shell("ip rule add pref 0 lookup local");
	shell("ip rule del pref 0 uidrange 4242-4242 unreachable");
	shell("ip rule del pref 1 lookup local");
	must_be(err, 0);
	by_tcp(c, l, EXS_FELL_BACK_REFUSED);
}

/* IP_TOS sets a priority as well, which the program replaces. */
static void marked_after_tos(void)
{
	int l = tcp_listener(), c = falling();

	set_int(c, IPPROTO_IP, IP_TOS, IPTOS_LOWDELAY);
	set_int(c, SOL_SOCKET, SO_PRIORITY, 3);
	must(connect_to(c, l));
	by_tcp(c, l, EXS_FELL_BACK_OPTION);
	must_be(get_int(c, SOL_SOCKET, SO_PRIORITY), 3);
	must_be(get_int(c, IPPROTO_IP, IP_TOS), IPTOS_LOWDELAY);
	/* To the value of a new socket. */
	c = falling();
	set_int(c, IPPROTO_IP, IP_TOS, IPTOS_LOWDELAY);
	set_int(c, SOL_SOCKET, SO_PRIORITY, 0);
	must(connect_to(c, l));
	must_be(get_int(c, SOL_SOCKET, SO_PRIORITY), 0);
	must_be(get_int(c, IPPROTO_IP, IP_TOS), IPTOS_LOWDELAY);
}

/* As with TCP: the any address without a family is of IPv4; and no other address is. */
static void no_family(void)
{
	union address at = { .sa.sa_family = AF_UNSPEC }, is;
	int l = falling();

	must(bind(l, &at.sa, sizeof(at.in)));
	is = name_of(l);
	must_be(is.sa.sa_family, AF_INET);
	at = address_of(SERVER, 0);
	at.sa.sa_family = AF_UNSPEC;
	must_fail(bind(falling(), &at.sa, sizeof(at.in)), EAFNOSUPPORT);
}

/* Only TCP sends while it connects. */
static void fastopen_send(void)
{
	int l = tcp_listener(), c = falling(), s;
	union address to = name_of(l);
	char byte;

	must_be(sendto(c, "x", 1, MSG_FASTOPEN, &to.sa, address_len(&to)), 1);
	must_be(why(c), EXS_FELL_BACK_OPTION);
	s = must(accept(l, NULL, NULL));
	must_be(recv(s, &byte, 1, 0), 1);
	l = falling_listener();
	c = falling();
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_NOT);
	must_fail(sendto(c, "x", 1, MSG_FASTOPEN, &to.sa, address_len(&to)), EISCONN);
	c = new_socket();
	set_int(c, SOL_EXS, EXS_SO_FALLBACK, 0);
	must_fail(sendto(c, "x", 1, MSG_FASTOPEN, &to.sa, address_len(&to)), EOPNOTSUPP);
}

/* A mark that comes with the packets of TCP's client, and is not the program's, stays. */
static void mark_of_packets(void)
{
	int l = falling_listener(), c = plain_socket(), s;

	shell("sysctl -qw net.ipv4.tcp_fwmark_accept=1");
	set_int(c, SOL_SOCKET, SO_MARK, 7);
	must(connect_to(c, l));
	s = must(accept(l, NULL, NULL));
	must_be(get_int(s, SOL_SOCKET, SO_MARK), 7);
	shell("sysctl -qw net.ipv4.tcp_fwmark_accept=0");
}

/* Options set since bind() hold for the TCP socket, too, whatever was set before. */
static void set_after_bind(void)
{
	const struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC, .flags = SOF_TXTIME_REPORT_ERRORS };
	union address at = address_of(SERVER, 0);
	struct sock_txtime has = {};
	socklen_t len = sizeof(has);
	int l = falling();

	set_int(l, SOL_TCP, TCP_CORK, 1);
	set_int(l, SOL_TCP, TCP_USER_TIMEOUT, 5000);
	set_int(l, SOL_SOCKET, SO_TIMESTAMP, 1);
	must(bind(l, &at.sa, address_len(&at)));
	must_be(why(l), EXS_FELL_BACK_NOT);
	set_int(l, SOL_SOCKET, SO_MARK, 7);
	set_int(l, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(l, SOL_TCP, TCP_NODELAY, 1);
	set_int(l, SOL_TCP, TCP_CORK, 0);
	set_int(l, SOL_TCP, TCP_USER_TIMEOUT, 0);
	set_int(l, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	set_int(l, SOL_SOCKET, SO_INCOMING_CPU, 0);
	must(setsockopt(l, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	must(listen(l, 1));
	must_be(why(l), EXS_FELL_BACK_OPTION);
	must_be(get_int(l, SOL_SOCKET, SO_MARK), 7);
	must_be(get_int(l, SOL_SOCKET, SO_KEEPALIVE), 1);
	must_be(get_int(l, SOL_TCP, TCP_NODELAY), 1);
	must_be(get_int(l, SOL_TCP, TCP_CORK), 0);
	must_be(get_int(l, SOL_TCP, TCP_USER_TIMEOUT), 0);
	must_be(get_int(l, SOL_SOCKET, SO_TIMESTAMPNS), 1);
	must_be(get_int(l, SOL_SOCKET, SO_INCOMING_CPU), 0);
	must(getsockopt(l, SOL_SOCKET, SO_TXTIME, &has, &len));
	check(!memcmp(&has, &txtime, sizeof(has)), "SO_TXTIME: clock %d, flags %#x", has.clockid, has.flags);
}

static int filter_nothing(int fd, int option)
{
	struct sock_filter code = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog prog = { .len = 1, .filter = &code };

	return setsockopt(fd, SOL_SOCKET, option, &prog, sizeof(prog));
}

/* A filter that lets no packet pass makes a socket TCP; so do timestamps of packets. */
static void filtered(void)
{
	int l = tcp_listener(), c = falling();

	needs_family_options();
	must(filter_nothing(c, SO_ATTACH_FILTER));
	must_be(why(c), EXS_FELL_BACK_OPTION);
	set_nonblock(c, true);
	must_fail(connect_to(c, l), EINPROGRESS);
	must_be(poll_now(c, POLLOUT), 0);
	close(c);
	c = sharing(SO_REUSEPORT);
	must(filter_nothing(c, SO_ATTACH_REUSEPORT_CBPF));
	must_be(why(c), EXS_FELL_BACK_OPTION);
	c = falling();
	set_int(c, SOL_SOCKET, SO_TIMESTAMPING, 0);
	must_fail(setsockopt(c, SOL_SOCKET, SO_TIMESTAMPING, "", 1), EINVAL);
	must_be(why(c), EXS_FELL_BACK_NOT);
	set_int(c, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_TX_SOFTWARE);
	must_be(why(c), EXS_FELL_BACK_OPTION);
	must_be(get_int(c, SOL_SOCKET, SO_TIMESTAMPING), SOF_TIMESTAMPING_TX_SOFTWARE);
	c = falling();
	set_int(c, SOL_EXS, EXS_SO_FALLBACK, 0);
	must(filter_nothing(c, SO_ATTACH_FILTER));
	must_be(why(c), EXS_FELL_BACK_NOT);
}

/* How long operations may take. */
static void timeouts_stay(void)
{
	exs_timeout_t set = { { 0, 5000 }, EXS_TIMEOUT_ONCE }, is = {};
	int l = tcp_listener(), c = falling();
	exs_qhandle_t q = queue_new(2);
	socklen_t len = sizeof(is);
	char byte;
	int s;

	must(exs_setsockopt(c, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &set, sizeof(set)));
	must(connect_to(c, l));
	must_be(why(c), EXS_FELL_BACK_REFUSED);
	s = must(accept(l, NULL, NULL));
	must(exs_getsockopt(c, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &is, &len));
	must_be(is.exs_time.tv_usec, 5000);
	start_recv(c, &byte, 1, 0, q, 1, NO_REGION);
	event_is(q, EXS_EVT_RECVTIMEOUT, 1, 0, 0);
	must_be(send(s, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

/* Both have a port from bind() on, and the same, though TCP would wait with it. */
static void port_later(void)
{
	union address at = address_of(SERVER, 0), is;
	int l = falling(), c = plain_socket();

	set_int(l, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	must(bind(l, &at.sa, address_len(&at)));
	at = name_of(l);
	set_int(l, SOL_SOCKET, SO_MARK, 7);
	must(listen(l, 1));
	must_be(why(l), EXS_FELL_BACK_OPTION);
	is = name_of(l);
	check(same_address(&at, &is), "it has another name than it was bound to");
	must_be(get_int(l, SOL_IP, IP_BIND_ADDRESS_NO_PORT), 1);
	must(connect(c, &at.sa, address_len(&at)));
}

static void to_device(int fd, const char *name)
{
	must(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
}

/* With neither protocol does it use another interface, in either direction. */
static void device_after_bind(void)
{
	union address any = address_from(e2e.domain, e2e.domain == AF_INET ? "0.0.0.0" : "::", 0), to;
	int l = falling(), c = plain_socket(), other = tcp_listener();

	shell("ip link add elsewhere type dummy && ip link set elsewhere up");
	must(bind(l, &any.sa, address_len(&any)));
	to_device(l, "elsewhere");
	must(listen(l, 1));
	any = name_of(l);
	to = address_of(SERVER, port_of(&any));
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(poll_now(l, POLLIN), 0);
	c = falling();
	any = address_from(e2e.domain, e2e.domain == AF_INET ? "0.0.0.0" : "::", 0);
	must(bind(c, &any.sa, address_len(&any)));
	to_device(c, "elsewhere");
	set_nonblock(c, true);
	check(connect_to(c, other), "it is connected");
	must_be(poll_now(other, POLLIN), 0);
	close(c);
	shell("ip link delete elsewhere");
}

/* Nor once it listens. */
static void device_after_listen(void)
{
	union address any = address_from(e2e.domain, e2e.domain == AF_INET ? "0.0.0.0" : "::", 0), to;
	int l = falling();

	needs_family_options();
	shell("ip link add elsewhere type dummy && ip link set elsewhere up");
	must(bind(l, &any.sa, address_len(&any)));
	must(listen(l, 1));
	any = name_of(l);
	to = address_of(SERVER, port_of(&any));
	must(connect(plain_socket(), &to.sa, address_len(&to)));
	must(accept(l, NULL, NULL));
	to_device(l, "elsewhere");
	must_fail(connect(plain_socket(), &to.sa, address_len(&to)), ECONNREFUSED);
	shell("ip link delete elsewhere");
}

/* The first send would connect, but connect() has to report the result of EXS. */
static void fastopen(void)
{
	int l = tcp_listener(), c = falling(), nonblock;

	for (nonblock = 0; nonblock < 2; nonblock++, c = falling()) {
		set_int(c, SOL_TCP, TCP_FASTOPEN_CONNECT, 1);
		set_int(c, SOL_TCP, TCP_FASTOPEN_NO_COOKIE, 1);
		set_nonblock(c, nonblock);
		if (nonblock)
			must_fail(connect_to(c, l), EINPROGRESS);
		else
			must(connect_to(c, l));
		wait_io(c, POLLOUT);
		set_nonblock(c, false);
		by_tcp(c, l, EXS_FELL_BACK_REFUSED);
	}
}

/* An operation that waits for connect() ends: there is no EXS socket any more that could connect. */
static void waiter_ends(void)
{
	struct exs_sqe sqe = { .opcode = EXS_OP_CONNECT, .fd = falling(), .handle = 1, .region = EXS_REGION_NONE };
	struct exs_ioc_submit s = {
		.size = sizeof(s), .count = 1, .ops = (uintptr_t)&sqe, .sqe_size = sizeof(sqe),
	};
	exs_qhandle_t q = queue_new(4);

	must_be(ioctl(q, EXS_IOC_SUBMIT, &s), 1);
	set_int(sqe.fd, SOL_EXS, EXS_SO_FALLBACK, EXS_FALLBACK_NOW);
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
}

/* exs_connect() reports the result of EXS, and TCP's clients wait for accept(2). */
static void asynchronous(void)
{
	int l = tcp_listener(), c = falling(), plain = plain_socket(), s;
	union address to = name_of(l);
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ECONNREFUSED, 0);
	must_be(why(c), EXS_FELL_BACK_NOT);
	must_be(poll_now(l, POLLIN), 0);
	l = falling_listener();
	must(exs_accept(l, NULL, 0, q, 2));
	must(connect_to(plain, l));
	wait_io(l, POLLIN);
	no_event(q);
	c = falling();
	must(connect_to(c, l));
	ev = event_next(q);
	s = event_newfd(&ev);
	must_be(get_int(s, SOL_SOCKET, SO_PROTOCOL), e2e.protocol);
	talk(c, s);
	s = must(accept(l, NULL, NULL));
	must_be(get_int(s, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	talk(plain, s);
}

/* Ports are TCP's there: a socket that may fall back does so, and a server without EXS gets only TCP. */
static void iwarp(void)
{
	union address at = address_of(SERVER, 0);
	int reuse, l, c;

	for (reuse = 0; reuse < 2; reuse++) {
		enter_side(SERVER);
		l = falling();
		set_int(l, SOL_SOCKET, SO_REUSEADDR, reuse);
		must(bind(l, &at.sa, address_len(&at)));
		must(listen(l, 1));
		must_be(why(l), EXS_FELL_BACK_PORT);
		enter_side(CLIENT);
		c = falling();
		must(connect_to(c, l));
		by_tcp(c, l, EXS_FELL_BACK_IWARP);
		enter_side(SERVER);
		close(l);
		l = tcp_listener();
		enter_side(CLIENT);
		c = falling();
		must(connect_to(c, l));
		by_tcp(c, l, EXS_FELL_BACK_IWARP);
	}
}

/* The option has to be set, or not to be cleared. */
static void asked_for(void)
{
	int l = tcp_listener(), c = new_socket(), one = 1;

	must_be(get_int(c, SOL_EXS, EXS_SO_FALLBACK), 0);
	must_fail(connect_to(c, l), ECONNREFUSED);
	must_be(delta("connect_refused"), 1);
	must_be(why(c), EXS_FELL_BACK_NOT);
	c = must(socket(exs_family_number(), SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	must_fail(setsockopt(c, SOL_EXS, EXS_SO_FALLBACK, &one, sizeof(one)), EOPNOTSUPP);
	c = bound_socket();
	must_fail(setsockopt(c, SOL_EXS, EXS_SO_FALLBACK, &one, sizeof(one)), EINVAL);
}

/* sendfile(2) and splice(2) are TCP's, too. */
static void pages_go(void)
{
	int l = tcp_listener(), c = falling(), s, file = must(memfd_create("pages", MFD_CLOEXEC));
	struct pipe_pair pipe = pipe_open();
	static char data[50000], got[50000];
	off_t from = 0;
	ssize_t n, done;

	data_fill(9, 0, data, sizeof(data));
	must_be(write(file, data, sizeof(data)), sizeof(data));
	must(connect_to(c, l));
	s = must(accept(l, NULL, NULL));
	must_be(sendfile(c, file, &from, sizeof(data)), sizeof(data));
	recv_all(s, 9, 0, sizeof(data));
	send_all(s, 9, 0, sizeof(data));
	for (done = 0; done < (ssize_t)sizeof(data); done += n) {
		n = must(splice(c, NULL, pipe.wr, NULL, 10000, 0));
		must_be(read(pipe.rd, got + done, n), n);
	}
	data_check(9, 0, got, sizeof(got));
}

static const struct e2e_case cases[] = {
	{ "refused", refused, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "bound", bound, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "port_taken", port_taken, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "port_of_another", port_of_another, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "port_of_gone", port_of_gone, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "port_elsewhere", port_elsewhere, .on = ON_INET, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "port_of_own", port_of_own, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "refused_by_both", refused_by_both, .on = ON_FACES },
	{ "nonblock_refused", nonblock_refused, .on = ON_FACES },
	{ "before", before, .on = ON_FACES | ON_STREAM },
	{ "listener_takes_both", listener_takes_both, .on = ON_FACES },
	{ "both_kinds_in_turn", both_kinds_in_turn, .on = ON_FACES },
	{ "listener_wakes", listener_wakes, .on = ON_FACES },
	{ "device_deleted", device_deleted, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "listens_again", listens_again, .on = ON_FACES },
	{ "no_device", no_device, .on = ON_FACES },
	{ "result_later", result_later, .on = ON_FACES },
	{ "loopback_is_private", loopback_is_private, .on = ON_FACES },
	{ "device_kept", device_kept, .on = ON_FACES },
	{ "foreign_address", foreign_address, .on = ON_FACES },
	{ "no_answer", no_answer, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "impatient", impatient, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "closed_early", closed_early, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "closed_early_often", closed_early_often, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "ended_while_waiting", ended_while_waiting, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "send_timeout_of_both", send_timeout_of_both, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "forgotten", forgotten, .on = ON_INET, .needs = NEEDS_ONE },
	{ "given_up", given_up, .on = ON_INET, .needs = NEEDS_ONE },
	{ "host_without", host_without, .on = ON_INET, .needs = NEEDS_ONE },
	{ "in_the_middle", in_the_middle, .on = ON_INET, .needs = NEEDS_ONE },
	{ "disabled", disabled, .on = ON_FACES },
	{ "defaults", defaults, .on = ON_STREAM | ON_FACES, .needs = NEEDS_ONE },
	{ "cpu_after_listen", cpu_after_listen, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "settings", settings, .on = ON_FACES },
	{ "at_once", at_once, .on = ON_FACES },
	{ "said_by_peer", said_by_peer, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "heard", heard, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "answered", answered, .on = ON_INET, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "strange_answer", strange_answer, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "limit", limit, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "no_route", no_route, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "marked", marked, .on = ON_INET },
	{ "routed_by_owner", routed_by_owner, .on = ON_INET, .needs = NEEDS_ONE },
	{ "marked_after_tos", marked_after_tos, .on = ON_INET },
	{ "set_after_bind", set_after_bind, .on = ON_FACES },
	{ "device_after_listen", device_after_listen, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "filtered", filtered, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "device_after_bind", device_after_bind, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "fastopen", fastopen, .on = ON_FACES },
	{ "no_family", no_family, .on = ON_INET },
	{ "fastopen_send", fastopen_send, .on = ON_FACES },
	{ "mark_of_packets", mark_of_packets, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "waiter_ends", waiter_ends, .on = ON_FACES },
	{ "asynchronous", asynchronous, .on = ON_FACES },
	{ "timeouts_stay", timeouts_stay, .on = ON_FACES },
	{ "port_later", port_later, .on = ON_FACES, .needs = NEEDS_RXE },
	{ "set_meanwhile", set_meanwhile, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "closed_before", closed_before, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "closed_meanwhile", closed_meanwhile, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "iwarp", iwarp, .on = ON_FACES, .needs = NEEDS_SIW },
	{ "asked_for", asked_for, .on = ON_FACES | ON_STREAM },
	{ "pages_go", pages_go, .on = ON_INET },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
