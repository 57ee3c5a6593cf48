// SPDX-License-Identifier: GPL-2.0
/* Making, binding, listening, connecting, accepting, naming, closing. TCP is the reference. */
#include "lib/e2e.h"

#include <fcntl.h>
#include <linux/exs.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

static int get_int(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	must(getsockopt(fd, SOL_SOCKET, option, &value, &len));
	return value;
}

/* -- socket(2) */

static void create(void)
{
	int fd = new_socket();

	must_be(get_int(fd, SO_TYPE), e2e.type);
	must_be(get_int(fd, SO_DOMAIN), e2e.family);
	must_be(get_int(fd, SO_ACCEPTCONN), 0);
	must_be(so_error(fd), 0);
}

static void create_flags(void)
{
	int fd = must(socket(e2e.family, e2e.type | SOCK_NONBLOCK | SOCK_CLOEXEC, e2e.protocol));

	check(fcntl(fd, F_GETFL) & O_NONBLOCK, "SOCK_NONBLOCK had no effect");
	check(fcntl(fd, F_GETFD) & FD_CLOEXEC, "SOCK_CLOEXEC had no effect");
}

static void create_wrong_type(void)
{
	static const int types[] = { SOCK_DGRAM, SOCK_RAW, SOCK_RDM };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		must_fail(socket(e2e.family, types[i], 0), ESOCKTNOSUPPORT);
}

static void create_wrong_protocol(void)
{
	must_fail(socket(e2e.family, e2e.type, 200), EPROTONOSUPPORT);
}

static void create_pair(void)
{
	int fds[2];

	must_fail(socketpair(e2e.family, e2e.type, e2e.protocol, fds), EOPNOTSUPP);
}

/* -- bind(2) */

static void bind_port0(void)
{
	int a = bound_socket(), b = bound_socket();
	union address at_a = name_of(a), at_b = name_of(b), wanted = address_of(SERVER, port_of(&at_a));

	check(port_of(&at_a) && port_of(&at_b), "port 0 gave no port");
	check(port_of(&at_a) != port_of(&at_b), "two sockets have the same port");
	check(same_address(&at_a, &wanted), "getsockname gives another address than was bound");
}

static void bind_in_use(void)
{
	int a = listener(1), b = socket_on(SERVER);
	union address at = name_of(a);

	must_fail(bind(b, &at.sa, address_len(&at)), EADDRINUSE);
	close(a);
	must(bind(b, &at.sa, address_len(&at)));
}

/* The wildcard is every address. */
static void bind_in_use_any(void)
{
	const char *wildcard = e2e.domain == AF_INET ? "0.0.0.0" : "::";
	int a = socket_on(SERVER), b = new_socket(), c, port = free_port();
	union address at = address_of(SERVER, port), any = address_from(e2e.domain, wildcard, port);

	must(bind(a, &at.sa, address_len(&at)));
	must(listen(a, 1));
	must_fail(bind(b, &any.sa, address_len(&any)), EADDRINUSE);
	close(a);
	must(bind(b, &any.sa, address_len(&any)));
	must(listen(b, 1));
	c = socket_on(SERVER);
	must_fail(bind(c, &at.sa, address_len(&at)), EADDRINUSE);
	must_fail(bind(c, &any.sa, address_len(&any)), EADDRINUSE);
}

static void bind_again_after_connection(void)
{
	int a = listener(1), b;
	union address at = name_of(a);
	struct pair p;

	pair_from(&p, a);
	close(a);
	/* One after the other: TCP's TIME_WAIT is then at a port that is not used again. */
	close(p.c);
	wait_io(p.s, POLLIN);
	close(p.s);
	b = socket_on(SERVER);
	set_int(b, SOL_SOCKET, SO_REUSEADDR, 1);
	/* An orphan may hold the port for as long as it lingers. */
	wait_until(!bind(b, &at.sa, address_len(&at)));
	must(listen(b, 1));
}

static void bind_not_available(void)
{
	union address at = address_from(e2e.domain, e2e.domain == AF_INET ? "192.0.2.1" : "2001:db8::1", 0);
	int fd = socket_on(SERVER);

	must_fail(bind(fd, &at.sa, address_len(&at)), EADDRNOTAVAIL);
}

/* Which rdma_cm takes for any address. */
static void bind_loopback(void)
{
	const char *const v4[] = { "127.0.0.1", "127.1.2.3" }, *const v6[] = { "::1", "::ffff:127.0.0.1" };
	bool is_v4 = e2e.domain == AF_INET;
	int i, fd = socket_on(SERVER);

	for (i = 0; i < 2; i++) {
		union address at = address_from(e2e.domain, is_v4 ? v4[i] : v6[i], 0);

		must_fail(bind(fd, &at.sa, address_len(&at)), ENODEV);
	}
}

static void bind_twice(void)
{
	union address at = address_of(SERVER, 0);
	int fd = bound_socket();

	must_fail(bind(fd, &at.sa, address_len(&at)), EINVAL);
}

static void bind_wrong_address(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/tmp/x" };
	union address at = address_of(SERVER, 0);
	int fd = socket_on(SERVER);

	must_fail(bind(fd, (struct sockaddr *)&un, sizeof(un)), EAFNOSUPPORT);
	must_fail(bind(fd, &at.sa, 3), EINVAL);
	must_fail(bind(fd, &at.sa, address_len(&at) - 4 - (e2e.domain == AF_INET6 ? 4 : 0)), EINVAL);
	must_fail(bind(fd, (struct sockaddr *)8, address_len(&at)), EFAULT);
	must(bind(fd, &at.sa, address_len(&at)));
}

/* To port *@arg, by any user. */
static void may_not_bind(void *arg)
{
	union address at = address_of(SERVER, *(int *)arg);
	int fd;

	enter_side(SERVER);
	drop_privileges();
	fd = new_socket();
	must_fail(bind(fd, &at.sa, address_len(&at)), EACCES);
}

static void bind_privileged(void)
{
	int port = 81;

	may_not_bind(&port);
}

/* The administrator has more such ports than there are usually. */
static void bind_privileged_more(void)
{
	int port = 1999;

	shell("echo 2000 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	join(spawn(may_not_bind, &port));
	shell("echo 1024 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
}

static union address any_address(int port)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "0.0.0.0" : "::", port);
}

static void bind_wildcard(void)
{
	union address any = any_address(0), at, to, name;
	int fd = socket_on(SERVER), c, s;

	must(bind(fd, &any.sa, address_len(&any)));
	must(listen(fd, 4));
	at = name_of(fd);
	any = any_address(port_of(&at));
	check(port_of(&at) && same_address(&at, &any), "getsockname is not the wildcard with a port");
	c = socket_on(CLIENT);
	to = address_of(SERVER, port_of(&at));
	must(connect(c, &to.sa, address_len(&to)));
	s = must(accept(fd, NULL, NULL));
	name = name_of(s);
	check(same_address(&name, &to), "the accepted socket's name is not where the client connected to");
}

/* -- names */

static void names(void)
{
	union address cn, cp, sn, sp, given = {};
	socklen_t len = sizeof(given);
	int fd = listener(4);
	struct pair p;

	p.c = client_of(fd);
	p.s = must(accept(fd, &given.sa, &len));
	cn = name_of(p.c);
	cp = peer_of(p.c);
	sn = name_of(p.s);
	sp = peer_of(p.s);
	check(same_address(&cn, &sp), "the client's name is not the server's peer");
	check(same_address(&sn, &cp), "the server's name is not the client's peer");
	check(same_address(&given, &sp), "accept gave another address than getpeername");
	must_be(len, address_len(&sp));
}

static void names_unconnected(void)
{
	union address a = {};
	socklen_t len = sizeof(a);
	int fd = new_socket();

	must_fail(getpeername(fd, &a.sa, &len), ENOTCONN);
	a = name_of(fd);
	check(!port_of(&a), "a port before bind");
	fd = listener(1);
	len = sizeof(a);
	must_fail(getpeername(fd, &a.sa, &len), ENOTCONN);
}

static void names_truncated(void)
{
	union address whole, part;
	socklen_t len = 4;
	struct pair p;

	pair_open(&p);
	whole = name_of(p.c);
	memset(&part, 0x5a, sizeof(part));
	must(getsockname(p.c, &part.sa, &len));
	must_be(len, address_len(&whole));
	check(!memcmp(&part, &whole, 4), "the part of the name that fits is wrong");
	must_be(((unsigned char *)&part)[4], 0x5a);
}

static void connect_from_bound(void)
{
	int fd = listener(4), c, s;
	union address to = name_of(fd), from, seen;

	c = socket_on(CLIENT);
	from = address_of(CLIENT, 0);
	must(bind(c, &from.sa, address_len(&from)));
	from = name_of(c);
	must(connect(c, &to.sa, address_len(&to)));
	s = must(accept(fd, NULL, NULL));
	seen = peer_of(s);
	check(same_address(&seen, &from), "the server sees port %d, the client bound %d",
	      port_of(&seen), port_of(&from));
}

/* -- listen(2) and accept(2) */

static void listen_unbound(void)
{
	int fd = socket_on(SERVER);
	union address at;

	must(listen(fd, 1));
	at = name_of(fd);
	check(port_of(&at), "listen on an unbound socket gave no port");
	must_be(get_int(fd, SO_ACCEPTCONN), 1);
}

static void listen_again(void)
{
	int fd = listener(1);
	struct pair p;

	must(listen(fd, 8));
	pair_from(&p, fd);
}

static void listen_connected(void)
{
	struct pair p;

	pair_open(&p);
	must_fail(listen(p.c, 1), EINVAL);
	must_fail(listen(p.s, 1), EINVAL);
}

static void connect_listening(void)
{
	int fd = listener(1);
	union address at = name_of(fd);

	must_fail(connect(fd, &at.sa, address_len(&at)), EISCONN);
}

static void accept_wrong_state(void)
{
	struct pair p;

	must_fail(accept(bound_socket(), NULL, NULL), EINVAL);
	pair_open(&p);
	must_fail(accept(p.c, NULL, NULL), EINVAL);
}

static void accept_nonblock(void)
{
	int fd = listener(4), s;

	set_nonblock(fd, true);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
	client_of(fd);
	wait_io(fd, POLLIN);
	s = must(accept(fd, NULL, NULL));
	check(!(fcntl(s, F_GETFL) & O_NONBLOCK), "the accepted socket inherited O_NONBLOCK");
	must_fail(accept(fd, NULL, NULL), EAGAIN);
}

static void accept_flags(void)
{
	int fd = listener(4), s;

	client_of(fd);
	s = must(accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	check(fcntl(s, F_GETFL) & O_NONBLOCK, "SOCK_NONBLOCK had no effect");
	check(fcntl(s, F_GETFD) & FD_CLOEXEC, "SOCK_CLOEXEC had no effect");
	must_be(get_int(s, SO_TYPE), e2e.type);
	must_be(get_int(s, SO_ACCEPTCONN), 0);
}

static void accept_times_out(void)
{
	int fd = listener(4);

	set_timeout(fd, SO_RCVTIMEO, 50);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
}

static void accept_interrupted(void)
{
	int fd = listener(4);

	catch_signal(SIGALRM, 0);
	interrupt_self(50);
	must_fail(accept(fd, NULL, NULL), EINTR);
	interrupt_stop();
	client_of(fd);
	must(accept(fd, NULL, NULL));
}

static void connect_child(void *arg)
{
	struct pair p = { .c = client_of(*(int *)arg) };
	char byte;

	must_be(recv(p.c, &byte, 1, 0), 1);
}

/* The server waits first; then a client comes. */
static void accept_blocking(void)
{
	struct pipe_pair go = pipe_open();
	int fd = listener(4), s;
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		wait_blocked(parent);
		connect_child(&fd);
		_exit(0);
	}
	close(go.wr);
	s = must(accept(fd, NULL, NULL));
	must_be(send(s, "x", 1, 0), 1);
	join(pid);
}

static int unsent(int fd)
{
	int n;

	must(ioctl(fd, SIOCOUTQ, &n));
	return n;
}

/*
 * A connection can be accepted when its first message has come, and that may be later than
 * connect(2) returns. More messages than there are credits only go when the other side has taken some.
 */
static void wait_acceptable(int c)
{
	int i;

	for (i = 0; i < 20; i++)
		must_be(send(c, "x", 1, 0), 1);
	wait_until(!unsent(c));
}

static void accept_in_order(void)
{
	union address mine, seen;
	int fd = listener(16), c[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = client_of(fd);
		wait_acceptable(c[i]);
	}
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		wait_io(fd, POLLIN);
		mine = name_of(c[i]);
		seen = peer_of(must(accept(fd, NULL, NULL)));
		check(same_address(&mine, &seen),
		      "connection %zu was not accepted as number %zu", i, i);
	}
}

static void listener_closed_pending(void)
{
	int fd = listener(4), c = client_of(fd);
	char byte;
	ssize_t n;

	close(fd);
	n = recv(c, &byte, 1, 0);
	check(n < 0 && errno == ECONNRESET, "recv is %zd (%s), not ECONNRESET", n, errno_name(errno));
}

/* -- connect(2) */

static union address nobody_listens(void)
{
	int fd = listener(1);
	union address at = name_of(fd);

	close(fd);
	return at;
}

static void connect_blocking(void)
{
	struct pair p;

	pair_open(&p);
	must_be(so_error(p.c), 0);
	must_be(so_error(p.s), 0);
	must_be(send(p.c, "ping", 4, 0), 4);
	recv_all(p.s, 0, 0, 0);
}

/* siw connects in the initial namespace, unless a task in its own waits for that. */
static bool has_to_block(void)
{
	return !e2e.tcp && !strcmp(e2e.topology, "ns");
}

static void connect_nonblock(void)
{
	int fd = listener(4), c;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	set_nonblock(c, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	wait_io(c, POLLOUT);
	if (has_to_block()) {
		set_nonblock(c, false);
		must_fail(connect(c, &to.sa, address_len(&to)), EOPNOTSUPP);
		must(connect(c, &to.sa, address_len(&to)));
	}
	must_be(so_error(c), 0);
	check(!(poll_now(c, POLLOUT) & (POLLERR | POLLHUP)), "an error or hang-up after connecting");
	if (connect(c, &to.sa, address_len(&to)))
		check(errno == EISCONN, "connect again: %s, not EISCONN", errno_name(errno));
	must_fail(connect(c, &to.sa, address_len(&to)), EISCONN);
	must(accept(fd, NULL, NULL));
}

static void connect_connected(void)
{
	union address at;
	struct pair p;

	pair_open(&p);
	at = peer_of(p.c);
	must_fail(connect(p.c, &at.sa, address_len(&at)), EISCONN);
	must_fail(connect(p.s, &at.sa, address_len(&at)), EISCONN);
}

static void connect_refused(void)
{
	union address to = nobody_listens();
	int c = socket_on(CLIENT);

	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(so_error(c), 0);
}

static void connect_refused_nonblock(void)
{
	union address to = nobody_listens();
	int c = socket_on(CLIENT), both = POLLERR | POLLHUP, got;

	set_nonblock(c, true);
	must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
	got = poll_wait(c, POLLOUT);
	check(got & POLLERR, "poll gives %#x, not POLLERR", got);
	/* TCP's error is there a moment before its hang-up; ours is not. */
	if (e2e.tcp)
		wait_until((poll_now(c, POLLOUT) & both) == both);
	else
		must_be(got & both, both);
	must_be(so_error(c), has_to_block() ? EOPNOTSUPP : ECONNREFUSED);
	must_be(so_error(c), 0);
}

/* As on TCP, the socket is as new after it was refused. */
static void connect_after_refused(void)
{
	union address to = nobody_listens();
	int c = socket_on(CLIENT), fd;

	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	fd = listener(4);
	to = name_of(fd);
	enter_side(CLIENT);
	must(connect(c, &to.sa, address_len(&to)));
	must(accept(fd, NULL, NULL));
}

#define PORT_RANGE	"/proc/sys/net/ipv4/ip_local_port_range"

static void port_range(const char *mode, char *text, size_t size)
{
	FILE *file = fopen(PORT_RANGE, mode);

	check(file, "%s: %s", PORT_RANGE, errno_name(errno));
	if (*mode == 'r')
		check(fgets(text, size, file), "%s: empty", PORT_RANGE);
	else
		fputs(text, file);
	check(!fclose(file), "%s: %s", PORT_RANGE, errno_name(errno));
}

/* TCP has eight of sixteen ports on @side. */
static void take_every_other_port(int side)
{
	union address at;
	int i;

	enter_side(side);
	port_range("w", (char []){ "20000 20015" }, 0);
	for (i = 0; i < 8; i++) {
		at = address_of(side, 20000 + 2 * i);
		must(bind(must(socket(e2e.domain, SOCK_STREAM, 0)), &at.sa, address_len(&at)));
	}
}

/*
 * Sixteen ports to choose from, of which TCP has eight. They are not of those that others were given:
 * connections of the last minute may still have theirs.
 */
static void connect_from_few_ports(void *arg)
{
	int fd = *(int *)arg, i;

	take_every_other_port(CLIENT);
	for (i = 0; i < 3; i++)
		client_of(fd);
}

/* iWARP's ports are TCP's: one that TCP has in use is not to be chosen. */
static void connect_ports_taken(void)
{
	int fd = listener(8), end;
	char range[64];

	enter_side(CLIENT);
	port_range("r", range, sizeof(range));
	end = reap(spawn(connect_from_few_ports, &fd));
	port_range("w", range, 0);
	check(!end, "the case ended with %#x", end);
}

static void listen_at_few_ports(void *arg)
{
	int i;

	(void)arg;
	take_every_other_port(SERVER);
	for (i = 0; i < 6; i++)
		listener(1);
}

static void with_few_ports(void (*fn)(void *arg))
{
	char range[64];
	int end;

	enter_side(SERVER);
	port_range("r", range, sizeof(range));
	end = reap(spawn(fn, NULL));
	port_range("w", range, 0);
	check(!end, "the case ended with %#x", end);
}

/* The same for those that listen wherever there is room. */
static void listen_ports_taken(void)
{
	with_few_ports(listen_at_few_ports);
}

static void bind_at_few_ports(void *arg)
{
	union address at;
	int i, fd;

	(void)arg;
	port_range("w", (char []){ "20000 20015" }, 0);
	for (i = 0; i < 16; i += 2) {
		at = address_of(SERVER, 20000 + i + i / 2 % 2);
		must(bind(new_socket(), &at.sa, address_len(&at)));
	}
	e2e.fallback = 1;
	at = address_of(SERVER, 0);
	for (i = 0; i < 20; i++) {
		fd = new_socket();
		must(bind(fd, &at.sa, address_len(&at)));
		must(close(fd));
	}
}

/* A port that TCP gives may be in use by EXS: it is asked for another. */
static void bind_ports_taken(void)
{
	with_few_ports(bind_at_few_ports);
}

static void connect_no_route(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "192.0.2.1" : "2001:db8::1", 9);
	int c = socket_on(CLIENT);

	must_fail(connect(c, &to.sa, address_len(&to)), ENETUNREACH);
}

static void connect_wrong_address(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/tmp/x" };
	int fd = listener(4), c;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	must_fail(connect(c, (struct sockaddr *)&un, sizeof(un)), EAFNOSUPPORT);
	must_fail(connect(c, &to.sa, 1), EINVAL);
	must_fail(connect(c, (struct sockaddr *)8, address_len(&to)), EFAULT);
	/* None of them spoilt the socket. */
	must(connect(c, &to.sa, address_len(&to)));
}

static void connect_then_close(void)
{
	int fd = listener(64), c, i;
	union address to = name_of(fd);

	for (i = 0; i < 16; i++) {
		c = socket_on(CLIENT);
		set_nonblock(c, true);
		must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
		close(c);
	}
	/* The listener is none the worse. */
	c = client_of(fd);
	must(send(c, "x", 1, 0));
}

/* A stream does not connect to a listener of messages, nor the other way round. */
static void connect_other_type(void)
{
	int fd = listener(4), c;
	union address to = name_of(fd);

	enter_side(CLIENT);
	c = must(socket(e2e.family, e2e.seq ? SOCK_STREAM : SOCK_SEQPACKET, 0));
	must_fail(connect(c, &to.sa, address_len(&to)), EPROTOTYPE);
	check(delta("reject_socktype") == 1, "reject_socktype rose by %ld", delta("reject_socktype"));
	check(delta("refused_socktype") == 1, "refused_socktype rose by %ld", delta("refused_socktype"));
	c = client_of(fd);
	must(accept(fd, NULL, NULL));
}

static void connect_itself_many(void)
{
	int fd = listener(64), i;
	struct pair p[32];

	for (i = 0; i < 32; i++)
		pair_from(&p[i], fd);
	for (i = 0; i < 32; i++) {
		send_all(p[i].c, i, 0, 100);
		send_all(p[i].s, 100 + i, 0, 100);
	}
	for (i = 0; i < 32; i++) {
		recv_all(p[i].s, i, 0, 100);
		recv_all(p[i].c, 100 + i, 0, 100);
		pair_close(&p[i]);
	}
}

/* TCP queues what is beyond the backlog; here it is refused at once, and counted. */
static void backlog_refused(void)
{
	int fd = listener(2), c[8], i, in = 0, out = 0;
	union address to = name_of(fd);

	for (i = 0; i < 8; i++) {
		c[i] = socket_on(CLIENT);
		if (!connect(c[i], &to.sa, address_len(&to))) {
			in++;
			continue;
		}
		check(errno == ECONNREFUSED, "connect beyond the backlog: %s", errno_name(errno));
		out++;
	}
	check(in == 2 && out == 6, "%d connected, %d refused", in, out);
	must_be(delta("reject_backlog"), out);
	must_be(delta("refused_backlog"), out);
	/* Room again as soon as one is accepted. */
	must(accept(fd, NULL, NULL));
	must(connect(socket_on(CLIENT), &to.sa, address_len(&to)));
}

/* -- options and ioctls that make no difference to the state */

static void unknown_option(void)
{
	int fd = new_socket(), value = 0;
	socklen_t len = sizeof(value);

	must_fail(setsockopt(fd, 9999, 1, &value, sizeof(value)), ENOPROTOOPT);
	must_fail(getsockopt(fd, 9999, 1, &value, &len),
		  e2e.tcp || e2e.protocol ? EOPNOTSUPP : ENOPROTOOPT);
	must_fail(setsockopt(fd, SOL_SOCKET, 9999, &value, sizeof(value)), ENOPROTOOPT);
}

/* What a socket of AF_INET or AF_INET6 shows, and those that it accepts. */
static void inet_face(void)
{
	union address other = address_from(e2e.domain == AF_INET ? AF_INET6 : AF_INET,
					   e2e.domain == AF_INET ? "fd77::1" : "10.77.0.1", 0);
	int fd = new_socket(), one = 1, l = listener(1), fds[3] = { l };
	struct pair p;
	size_t i;

	must_fail(bind(fd, &other.sa, address_len(&other)), EAFNOSUPPORT);
	must_fail(connect(fd, &other.sa, address_len(&other)), EAFNOSUPPORT);
	if (e2e.domain == AF_INET)
		must_fail(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one)), ENOPROTOOPT);
	pair_from(&p, l);
	fds[1] = p.c;
	fds[2] = p.s;
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		must_be(get_int(fds[i], SO_DOMAIN), e2e.domain);
		must_be(get_int(fds[i], SO_TYPE), SOCK_STREAM);
		must_be(get_int(fds[i], SO_PROTOCOL), EXS_PROTOCOL_DEFAULT);
	}
}

/* A program that names no protocol gets the same socket as before. */
static void inet_wildcard(void)
{
	must_be(get_int(must(socket(e2e.domain, SOCK_STREAM, 0)), SO_PROTOCOL), IPPROTO_TCP);
	must_fail(socket(e2e.domain, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT);
	must_fail(socket(e2e.domain, SOCK_SEQPACKET, EXS_PROTOCOL_DEFAULT), ESOCKTNOSUPPORT);
	must_fail(socket(e2e.domain, SOCK_DGRAM, EXS_PROTOCOL_DEFAULT), EPROTONOSUPPORT);
}

/* A socket that speaks IPv6 accepts sockets that do. */
static void mapped_address(void)
{
	union address a = address_from(AF_INET6, "::ffff:10.77.0.1", 0);
	int l = socket_on(SERVER), c = socket_on(CLIENT), s;

	must(bind(l, &a.sa, sizeof(a.in6)));
	must(listen(l, 1));
	a = name_of(l);
	must_be(a.sa.sa_family, AF_INET6);
	must(connect(c, &a.sa, sizeof(a.in6)));
	s = must(accept(l, NULL, NULL));
	must_be(name_of(s).sa.sa_family, AF_INET6);
	must_be(peer_of(s).sa.sa_family, AF_INET6);
	must_be(peer_of(c).sa.sa_family, AF_INET6);
}

static int wildcard_listener(int family, int only, in_port_t port)
{
	union address a = address_from(family, family == AF_INET ? "0.0.0.0" : "::", port);
	/* AF_EXS, or TCP, whose sockets are of one family. */
	int fd = e2e.tcp ? must(socket(family, SOCK_STREAM, 0)) : new_socket(), one = 1;

	/* One that was accepted at this port may be waiting for its last acknowledgment. */
	if (e2e.tcp)
		must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	if (family == AF_INET6)
		must(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &only, sizeof(only)));
	must(bind(fd, &a.sa, address_len(&a)));
	must(listen(fd, 4));
	return fd;
}

static int connect_v4(in_port_t port)
{
	union address to = address_from(AF_INET, "10.77.0.1", port);
	int fd = e2e.tcp ? must(socket(AF_INET, SOCK_STREAM, 0)) : new_socket();
	int err = connect(fd, &to.sa, address_len(&to)) ? errno : 0;

	close(fd);
	return err;
}

/* The IPv6 wildcard has IPv4's connections, too, unless it has to leave them to other listeners. */
static void v6only(void)
{
	union address mapped = address_from(AF_INET6, "::ffff:10.77.0.1", 9);
	int fd = wildcard_listener(AF_INET6, 0, 0), one = 1, l4;
	union address a = name_of(fd);
	in_port_t port = ntohs(a.in6.sin6_port);

	must_be(connect_v4(port), 0);
	must_fail(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one)), EINVAL);
	close(must(accept(fd, NULL, NULL)));
	close(fd);
	fd = wildcard_listener(AF_INET6, 1, port);
	must_be(connect_v4(port), ECONNREFUSED);
	l4 = wildcard_listener(AF_INET, 0, port);
	must_be(connect_v4(port), 0);
	close(must(accept(l4, NULL, NULL)));
	set_nonblock(fd, true);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
	close(fd);
	fd = new_socket();
	must(setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof(one)));
	must_fail(connect(fd, &mapped.sa, address_len(&mapped)), ENETUNREACH);
	must_fail(bind(fd, &mapped.sa, address_len(&mapped)), EINVAL);
}

static const struct e2e_case cases[] = {
	{ "v6only", v6only, .on = ON_STREAM6 | ON_TCP6, .needs = NEEDS_ONE },
	{ "mapped_address", mapped_address, .on = ON_STREAM | ON_TCP6 | ON_INET6, .needs = NEEDS_ONE },
	{ "inet_face", inet_face, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "inet_wildcard", inet_wildcard, .on = ON_FACES, .needs = NEEDS_ONE },
	{ "create", create, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "create_flags", create_flags, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "create_wrong_type", create_wrong_type, .on = ON_STREAM },
	{ "create_wrong_protocol", create_wrong_protocol, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "create_pair", create_pair, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "bind_port0", bind_port0, .on = ON_ALL6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "bind_in_use", bind_in_use, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "bind_in_use_any", bind_in_use_any, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "bind_again_after_connection", bind_again_after_connection, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "bind_not_available", bind_not_available, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "bind_loopback", bind_loopback, .on = ON_ALL6 | ON_FACES },
	{ "bind_twice", bind_twice, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "bind_wrong_address", bind_wrong_address, .on = ON_STREAM | ON_STREAM6 | ON_TCP6 | ON_INET6 },
	{ "bind_privileged", bind_privileged, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_FACES },
	{ "bind_privileged_more", bind_privileged_more, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_FACES,
	  .needs = NEEDS_ONE },
	{ "bind_wildcard", bind_wildcard, .on = ON_ALL6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "names", names, .on = ON_ALL6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "names_unconnected", names_unconnected, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "names_truncated", names_truncated, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_FACES },
	{ "connect_from_bound", connect_from_bound, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "listen_unbound", listen_unbound, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "listen_again", listen_again, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "listen_connected", listen_connected, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "connect_listening", connect_listening, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_wrong_state", accept_wrong_state, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_nonblock", accept_nonblock, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_flags", accept_flags, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_times_out", accept_times_out, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_interrupted", accept_interrupted, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_blocking", accept_blocking, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "accept_in_order", accept_in_order, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "listener_closed_pending", listener_closed_pending, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "connect_blocking", connect_blocking, .on = ON_ALL6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "connect_nonblock", connect_nonblock, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "connect_connected", connect_connected, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "connect_refused", connect_refused, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "connect_refused_nonblock", connect_refused_nonblock, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "connect_after_refused", connect_after_refused, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "connect_no_route", connect_no_route, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_TCP6 | ON_FACES },
	{ "connect_ports_taken", connect_ports_taken, .on = ON_BOTH },
	{ "listen_ports_taken", listen_ports_taken, .on = ON_BOTH },
	{ "bind_ports_taken", bind_ports_taken, .on = ON_FACES, .needs = NEEDS_ONE | NEEDS_RXE },
	{ "connect_wrong_address", connect_wrong_address, .on = ON_STREAM | ON_STREAM6 | ON_TCP | ON_FACES },
	{ "connect_then_close", connect_then_close, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "connect_other_type", connect_other_type, .on = ON_BOTH },
	{ "connect_itself_many", connect_itself_many, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "backlog_refused", backlog_refused, .on = ON_BOTH },
	{ "unknown_option", unknown_option, .on = ON_STREAM | ON_TCP | ON_INET },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
