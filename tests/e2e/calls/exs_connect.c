// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <sys/syscall.h>

#define CALL "exs_connect"

/* A peer to connect to, of any kind. */
static int server(void)
{
	return on_dgram() ? bound_socket() : listener(4);
}

/* Not a socket of datagrams either. */
static void not_connected(int fd)
{
	union address peer;
	socklen_t len = sizeof(peer);

	must_fail(getpeername(fd, &peer.sa, &len), ENOTCONN);
}

static void connected(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server(), c = new_socket();
	union address to = name_of(fd), own;
	exs_event_t ev;
	char in;

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 3));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_CONNECT, 3, 0, 0);
	must_be(ev.exs_evt_socket, c);
	must_be(fcntl(c, F_GETFL) & O_NONBLOCK, 0);
	own = peer_of(c);
	check(same_address(&to, &own), "another peer");
	must_be(send(c, "x", 1, 0), 1);
	must_be(recv(on_dgram() ? fd : (int)must(accept(fd, NULL, NULL)), &in, 1, 0), 1);
	if (!on_dgram())
		must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 4), EISCONN);
	no_event(q);
}

static void nonblocking(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server(), c = new_socket();
	union address to = name_of(fd);

	set_nonblock(c, true);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 3));
	event_is(q, EXS_EVT_CONNECT, 3, 0, 0);
	check(fcntl(c, F_GETFL) & O_NONBLOCK, "it is blocking now");
}

/* In the event, or from the call where connect(2) knows at once. */
static void refused(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server(), c = new_socket();
	union address to = name_of(fd);

	close(fd);
	if (e2e.family == AF_UNIX) {
		must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 1), ECONNREFUSED);
		nothing_started(q);
		return;
	}
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ECONNREFUSED, 0);
	no_event(q);
}

static void under_way(void)
{
	union address to = nowhere();
	exs_qhandle_t q = queue_new(4);
	int c = new_socket();

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 2), EALREADY);
	no_event(q);
	must(exs_cancel(q, c, 1, EXS_CAF_FILDES));
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	no_event(q);
}

static void synchronous(void)
{
	int fd = server(), c = new_socket();
	union address to = name_of(fd), own;

	must_be(exs_connect(c, &to.sa, address_len(&to), 0, EXS_QHANDLE_INVALID, 1), 0);
	own = peer_of(c);
	check(same_address(&to, &own), "another peer");
	must_fail(exs_connect(-1, &to.sa, address_len(&to), 0, EXS_QHANDLE_INVALID, 1), EBADF);
}

static void wrong(void)
{
	struct sockaddr other = { .sa_family = AF_NETLINK };
	exs_qhandle_t q = queue_new(1);
	struct wrong w = wrong_open();
	int fd = server(), c = new_socket();
	union address to = name_of(fd);
	socklen_t len = address_len(&to);

	must_fail(exs_connect(-1, &to.sa, len, 0, q, 1), EBADF);
	must_fail(exs_connect(w.file, &to.sa, len, 0, q, 1), ENOTSOCK);
	must_fail(exs_connect(w.netlink, &to.sa, len, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_connect(c, &to.sa, len, 1, q, 1), EINVAL);
	must_fail(exs_connect(c, &to.sa, 1, 0, q, 1), EINVAL);
	must_fail(exs_connect(c, (void *)8, len, 0, q, 1), EFAULT);
	must_fail(exs_connect(c, &to.sa, len, 0, w.none, 1), EBADF);
	not_connected(c);
	must_fail(exs_connect(c, &to.sa, len, 0, w.file, 1), EINVAL);
	not_connected(c);
	if (e2e.family == AF_UNIX)
		must_fail(exs_connect(c, &other, sizeof(other), 0, q, 1), EINVAL);
	else
		must_fail(exs_connect(c, &other, sizeof(other), 0, q, 1), EAFNOSUPPORT);
	nothing_started(q);
	must(exs_connect(c, &to.sa, len, 0, q, 2));
	event_is(q, EXS_EVT_CONNECT, 2, 0, 0);
}

/* Nothing was done, and it works when there is room. */
static void full_queue(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server(), c = new_socket();
	union address to = name_of(fd);
	struct pair p;
	char in;

	pair_open(&p);
	start_recv(p.s, &in, 1, 0, q, 1, NO_REGION);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 2), EAGAIN);
	not_connected(c);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 3));
	event_is(q, EXS_EVT_CONNECT, 3, 0, 0);
	no_event(q);
}

/* A shutdown(2) ends the attempt, with an event. */
static void shut_down(void)
{
	union address to = nowhere();
	exs_qhandle_t q = queue_new(1);
	int c = new_socket();

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	must(shutdown(c, SHUT_RDWR));
	if (on_exs())
		event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	else
		event_is(q, EXS_EVT_CONNECT, 1, ECONNRESET, 0);
	no_event(q);
}

static void no_route(void)
{
	union address to = address_from(AF_INET, "192.0.2.1", 9);
	exs_qhandle_t q = queue_new(1);

	must_fail(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1), ENETUNREACH);
	nothing_started(q);
}

static void to_unreachable(void *arg)
{
	union address to = address_from(AF_INET, "192.0.2.1", 9);
	exs_qhandle_t q = queue_new(1);

	(void)arg;
	must_fail(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1), EHOSTUNREACH);
	nothing_started(q);
}

static void no_host(void)
{
	with_ip("route", "unreachable 192.0.2.0/24", to_unreachable);
}

/* An address of this machine that no RDMA device has. */
static void to_no_device(void *arg)
{
	union address to = address_from(AF_INET, "192.0.2.1", 9);
	exs_qhandle_t q = queue_new(1);

	(void)arg;
	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ENODEV, 0);
}

static void no_device(void)
{
	with_ip("addr", "192.0.2.1/32 dev lo", to_no_device);
}

/* An error from a router, with the beginning of the packet that it could not forward. */
struct unreachable {
	struct icmphdr icmp;
	struct iphdr ip;
	struct tcphdr tcp;
};

static uint16_t checksum(const void *data, size_t len)
{
	const uint16_t *p = data;
	uint32_t sum = 0;

	for (; len; len -= 2)
		sum += *p++;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Whether the next packet is a request from @from. */
static bool get_request(int tap, const union address *from, struct unreachable *u)
{
	struct { struct iphdr ip; struct tcphdr tcp; } p = {};

	must(recv(tap, &p, sizeof(p), 0));
	u->ip = p.ip;
	u->tcp = p.tcp;
	return p.ip.protocol == IPPROTO_TCP && p.tcp.source == from->in.sin_port;
}

static void answer(int raw, struct unreachable *u)
{
	union address own = address_of(CLIENT, 0);

	u->icmp.checksum = 0;
	u->icmp.checksum = checksum(u, sizeof(*u));
	must_be(sendto(raw, u, sizeof(*u), 0, &own.sa, address_len(&own)), sizeof(*u));
}

/*
 * The answer to a request to connect that is under way, by operation 1 of @q. As a router does, to
 * each request: TCP ignores it while the operation has the socket locked, to look at it.
 */
static void router_says(int code, exs_qhandle_t q)
{
	int tap = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
	int raw = must(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)), c = new_socket();
	struct pollfd fds[2] = { { .fd = q, .events = POLLIN }, { .fd = tap, .events = POLLIN } };
	struct unreachable u = { .icmp = { .type = ICMP_DEST_UNREACH, .code = code } };
	union address to = nowhere(), from;

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	from = name_of(c);
	while (must(poll(fds, 2, limit_ms())) && !fds[0].revents)
		if (get_request(tap, &from, &u))
			answer(raw, &u);
	close(tap);
	close(raw);
}

static void no_way(void)
{
	exs_qhandle_t q = queue_new(1);

	router_says(ICMP_NET_UNREACH, q);
	event_is(q, EXS_EVT_CONNECT, 1, ENETUNREACH, 0);
	router_says(ICMP_HOST_UNREACH, q);
	event_is(q, EXS_EVT_CONNECT, 1, EHOSTUNREACH, 0);
	no_event(q);
}

/* Another socket has taken the only port. Connections of the last minute do not have these ports. */
static void from_one_port(void *arg)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server();
	union address to = name_of(fd);

	(void)arg;
	client_of(fd);
	must_fail(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1), EADDRNOTAVAIL);
	nothing_started(q);
}

static void no_port(void)
{
	static const char path[] = "/proc/sys/net/ipv4/ip_local_port_range";
	char range[64] = "";
	int fd = must(open(path, O_RDWR | O_CLOEXEC)), end;

	must(pread(fd, range, sizeof(range) - 1, 0));
	must(pwrite(fd, "20000 20001", 11, 0));
	end = reap(spawn(from_one_port, NULL));
	must(pwrite(fd, range, strlen(range), 0));
	check(!end, "the call ended with wait status %#x", end);
}

static void times_out(void)
{
	union address to = nowhere();
	exs_qhandle_t q = queue_new(1);

	write_sysctl("connect_timeout", 100);
	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ETIMEDOUT, 0);
}

/* As by a security module: no event, and the queue's place is free. */
static void forbidden(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server(), c = new_socket();
	union address to = name_of(fd);

	forbid_call(SYS_connect, EACCES);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 1), EACCES);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 1), EACCES);
	nothing_started(q);
	must_be(fcntl(c, F_GETFL) & O_NONBLOCK, 0);
}

static void limits(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = server();
	union address to = name_of(fd);

	write_sysctl("max_user_conns", 2);	/* both ends */
	client_of(fd);
	must(accept(fd, NULL, NULL));		/* half-open ones do not count */
	must_fail(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1), ENOBUFS);
	nothing_started(q);
}

/* The backlog of AF_UNIX is full, where connect(2) would wait. */
static void no_room(void)
{
	exs_qhandle_t q = queue_new(2);
	int fd = listener(0), c = new_socket();
	union address to = name_of(fd);

	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, 0, 0);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 2), EAGAIN);
	no_event(q);
}

const struct e2e_case exs_connect_cases[] = {
	CASE(connected, ON_KINDS),
	CASE(nonblocking, ON_KINDS),
	CASE(refused, ON_LISTENING),
	CASE(under_way, ON_BOTH | ON_TCP),
	CASE(synchronous, ON_KINDS),
	CASE(wrong, ON_KINDS),
	CASE(full_queue, ON_KINDS),
	CASE(shut_down, ON_BOTH | ON_TCP),
	CASE(no_route, ON_BOTH | ON_TCP | ON_UDP),
	CASE(no_host, ON_BOTH | ON_TCP | ON_UDP),
	CASE(no_way, ON_TCP),
	CASE(no_device, ON_BOTH),
	CASE(no_port, ON_TCP),
	CASE(times_out, ON_BOTH),
	CASE(forbidden, ON_KINDS),
	CASE(limits, ON_BOTH),
	CASE(no_room, ON_UNIX | ON_UNIX_SEQ),
	{}
};
