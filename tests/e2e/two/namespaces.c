// SPDX-License-Identifier: GPL-2.0
/*
 * Each network namespace has its own counters, sysctls, devices and ports; caps hold in
 * all. Two namespaces are hosts on a wire; the third is the initial one, which has no part
 * in their connections.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

enum place { A, B, HOME, PLACES };

static int places[PLACES];

static int open_here(void)
{
	return must(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

static void go(enum place p)
{
	must(setns(places[p], CLONE_NEWNET));
}

static void open_places(void)
{
	places[HOME] = open_here();
	enter_side(CLIENT);
	places[A] = open_here();
	enter_side(SERVER);
	places[B] = open_here();
	go(HOME);
}

struct tally { const char *name; long was[PLACES]; };

static void look(const char *name, long values[PLACES])
{
	enum place p;
	int back = open_here();

	for (p = A; p < PLACES; p++) {
		go(p);
		values[p] = counter_here(name);
	}
	must(setns(back, CLONE_NEWNET));
	close(back);
}

static struct tally tally(const char *name)
{
	struct tally t = { .name = name };

	look(name, t.was);
	return t;
}

/* The counter's increase in each; in the initial one 0. */
static void rose(const struct tally *t, long a, long b)
{
	long is[PLACES];

	look(t->name, is);
	check(is[A] - t->was[A] == a && is[B] - t->was[B] == b && is[HOME] == t->was[HOME],
	      "%s rose by %ld, %ld and %ld, not by %ld, %ld and 0", t->name, is[A] - t->was[A],
	      is[B] - t->was[B], is[HOME] - t->was[HOME], a, b);
}

static void counters(void)
{
	struct tally connects = tally("connects"), accepts = tally("accepts");
	struct tally conns = tally("live_conns"), sockets = tally("live_sockets");
	struct pair p;

	pair_open(&p);
	rose(&connects, 1, 0);
	rose(&accepts, 0, 1);
	rose(&conns, 1, 1);
	rose(&sockets, 1, 1);
	/* Wherever the caller is by now. */
	go(HOME);
	send_all(p.c, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
	rose(&conns, 1, 1);
}

/* A queue belongs to the namespace that made it, and an operation to its queue, wherever they are used. */
static void operations(void)
{
	struct tally queues = tally("live_queues"), submitted = tally("ops_submitted");
	struct tally advertised = tally("adverts_tx");
	static char from[100000], to[100000];
	exs_qhandle_t q[2];
	struct pair p;

	pair_open(&p);
	go(A);
	q[A] = queue_new(4);
	go(B);
	q[B] = queue_new(4);
	rose(&queues, 1, 1);
	go(HOME);
	data_fill(1, 0, from, sizeof(from));
	start_recv(p.s, to, sizeof(to), MSG_WAITALL, q[B], 1, NO_REGION);
	wait_delta("adverts_tx", 1);
	start_send(p.c, from, sizeof(from), q[A], 2, NO_REGION);
	event_is(q[B], EXS_EVT_RECV, 1, 0, sizeof(to));
	event_is(q[A], EXS_EVT_SEND, 2, 0, sizeof(from));
	data_check(1, 0, to, sizeof(to));
	rose(&submitted, 1, 1);
	rose(&advertised, 0, 1);
}

/* Each has its own from its beginning on; switched off in one, the others go on. */
static void sysctls(void)
{
	struct tally rejected = tally("reject_disabled"), refused = tally("refused_disabled");
	int fd = listener(4), c;
	union address to = name_of(fd);

	go(B);
	write_sysctl_here("sndbuf", 123456);
	write_sysctl_here("enabled", 0);
	must_fail(socket(e2e.family, e2e.type, 0), EAFNOSUPPORT);
	c = socket_on(CLIENT);
	must_be(read_sysctl("enabled"), 1);
	check(read_sysctl("sndbuf") != 123456, "a namespace has what another was given");
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	rose(&refused, 1, 0);
	go(B);
	write_sysctl_here("enabled", 1);
	go(A);
	must(connect(c, &to.sa, address_len(&to)));
	must(accept(fd, NULL, NULL));
	go(HOME);
	check(read_sysctl("sndbuf") != 123456, "the initial namespace has what another was given");
	must_be(rejected.was[HOME], counter_here("reject_disabled"));
}

/* The initial one's "enabled" and caps hold in all. */
static void switched_off(void)
{
	int fd = listener(4), c = socket_on(CLIENT);
	union address to = name_of(fd);

	go(HOME);
	write_sysctl_here("enabled", 0);
	go(A);
	must_be(read_sysctl("enabled"), 1);
	must_fail(socket(e2e.family, e2e.type, 0), EAFNOSUPPORT);
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
}

/* A user's connections count together wherever they are; each namespace can lower the cap for itself. */
static void caps(void)
{
	struct tally limit = tally("limit_conns"), rejected = tally("reject_limit"), refused = tally("refused_limit");
	int fd = listener(4), c;
	union address to = name_of(fd);
	struct pair p;

	/* Both ends are this user's. */
	pair_from(&p, fd);
	go(B);
	write_sysctl_here("max_user_conns", 3);
	c = socket_on(CLIENT);
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	rose(&rejected, 0, 1);
	rose(&refused, 1, 0);
	rose(&limit, 0, 1);
	go(HOME);
	write_sysctl_here("max_user_conns", 2);
	c = socket_on(CLIENT);
	check(read_sysctl("max_user_conns") > 2, "a namespace has what another was given");
	must_fail(connect(c, &to.sa, address_len(&to)), ENOBUFS);
	rose(&limit, 1, 1);
	send_all(p.c, 1, 0, 100);
	recv_all(p.s, 1, 0, 100);
}

/* No namespace can use the addresses of another; each has its own ports. */
static void devices(void)
{
	union address a = address_of(CLIENT, 0), b = address_of(SERVER, 0);
	int fd, other;

	fd = socket_on(CLIENT);
	must_fail(bind(fd, &b.sa, address_len(&b)), EADDRNOTAVAIL);
	go(HOME);
	fd = new_socket();
	must_fail(bind(fd, &a.sa, address_len(&a)), EADDRNOTAVAIL);
	must_fail(connect(fd, &b.sa, address_len(&b)), ENETUNREACH);
	fd = listener(4);
	b = name_of(fd);
	other = socket_on(CLIENT);
	a = address_of(CLIENT, port_of(&b));
	must(bind(other, &a.sa, address_len(&a)));
	must(listen(other, 4));
}

#define ROCE_PORT	4791

/* Whether it is a packet of a queue pair's data, with this service type. */
static bool is_typed(const unsigned char *p, size_t len, int tos)
{
	bool v6 = p[0] >> 4 == 6;
	size_t udp = v6 ? 40 : 20;
	int type = v6 ? (p[0] & 15) << 4 | p[1] >> 4 : p[1];

	if (len < udp + 20 || p[v6 ? 6 : 9] != IPPROTO_UDP)
		return false;
	if ((p[udp + 2] << 8 | p[udp + 3]) != ROCE_PORT)
		return false;
	p += udp + 8;
	return type == tos && (p[5] << 16 | p[6] << 8 | p[7]) != 1;
}

static void must_see_typed(int fd, bool outgoing, int tos)
{
	unsigned char packet[128];
	struct sockaddr_ll from;
	socklen_t len;
	ssize_t n;

	do {
		wait_io(fd, POLLIN);
		len = sizeof(from);
		n = must(recvfrom(fd, packet, sizeof(packet), 0, (void *)&from, &len));
	} while ((from.sll_pkttype == PACKET_OUTGOING) != outgoing ||
		 !is_typed(packet, n, tos));
}

/* IP_TOS and IPV6_TCLASS are those of the packets, both ways. */
static void service_type_of(int domain, int level, int name)
{
	const int tos = 0x28;
	union address to;
	int c, fd, wire;

	e2e.family = e2e.domain = domain;
	e2e.protocol = EXS_PROTOCOL_DEFAULT;
	fd = listener(1);
	to = name_of(fd);
	c = socket_on(CLIENT);
	wire = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
	set_int(c, level, name, tos);
	must(connect(c, &to.sa, address_len(&to)));
	fd = must(accept(fd, NULL, NULL));
	send_all(c, 1, 0, 1000);
	recv_all(fd, 1, 0, 1000);
	must_see_typed(wire, true, tos);
	send_all(fd, 1, 0, 1000);
	recv_all(c, 1, 0, 1000);
	must_see_typed(wire, false, tos);
}

static void service_type(void)
{
	service_type_of(AF_INET, SOL_IP, IP_TOS);
	e2e.address[CLIENT] = "fd79::1";
	e2e.address[SERVER] = "fd79::2";
	service_type_of(AF_INET6, SOL_IPV6, IPV6_TCLASS);
}

static const struct e2e_case cases[] = {
	{ "counters", counters, .on = ON_BOTH, .before = open_places },
	{ "operations", operations, .on = ON_BOTH, .before = open_places },
	{ "sysctls", sysctls, .on = ON_BOTH, .before = open_places },
	{ "switched_off", switched_off, .on = ON_STREAM, .before = open_places },
	{ "caps", caps, .on = ON_STREAM, .before = open_places },
	{ "devices", devices, .on = ON_BOTH, .before = open_places },
	{ "service_type", service_type, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
