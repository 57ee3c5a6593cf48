// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that the device fails because the answer is a forged packet: soft-RoCE
 * is on one end of a veth pair, and the test sends packets at the other end. They
 * use IPv6, as IPv4 takes no packet from an address of its own.
 */
#include "lib/async.h"
#include "raw/raw.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS		"fd79::1"
#define MAC		"\x02\x00\x00\x79\x00\x01"
#define ROCE_PORT	4791
#define LEN		500	/* in one packet: into an advert, or EAGER */

/* Opcodes of answers, and values of their AETH. */
enum { READ_RESPONSE_ONLY = 0x10, ACKNOWLEDGE = 0x11 };
enum { ACK = 0x1f, NAK_INVALID_REQUEST = 0x61, NAK_REMOTE_ACCESS = 0x62, NAK_REMOTE_OPERATION = 0x63 };

/* -- the device */

static void make_device(void)
{
	shell("ip link add rxe1dev address 02:00:00:79:00:01 mtu 9000 type veth peer name rxe1wire mtu 9000");
	shell("ip link set rxe1wire up");
	shell("ip link set rxe1dev up");
	shell("ip addr add " ADDRESS "/64 dev rxe1dev nodad");
	shell("rdma link add rxe1 type rxe netdev rxe1dev");
	e2e.address[CLIENT] = ADDRESS;
	e2e.address[SERVER] = ADDRESS;
}

/* However the case ends, the next one creates it again. */
static void with_device(void (*fn)(void *arg))
{
	int end = reap(spawn(fn, NULL));

	if (!access("/sys/class/infiniband/rxe1", F_OK))
		shell("rdma link delete rxe1");
	if (!access("/sys/class/net/rxe1dev", F_OK))
		shell("ip link delete rxe1dev");
	check(!end, "the case ended with %#x", end);
}

/* -- packets */

struct answer {
	struct ip6_hdr ip;
	struct udphdr udp;
	uint8_t opcode, flags;
	uint16_t pkey;
	uint32_t qpn, psn;
	uint32_t aeth;
	uint32_t icrc;
} __attribute__((packed));

static uint32_t crc32_le(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;
	int bit;

	while (len--)
		for (crc ^= *p++, bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return crc;
}

/* Over the fields that no router may change, with eight bytes of ones before them. */
static uint32_t icrc_of(struct answer masked)
{
	uint64_t ones = ~0ULL;

	masked.ip.ip6_flow = htonl(0x6fffffff);
	masked.ip.ip6_hlim = 0xff;
	masked.udp.check = 0xffff;
	masked.qpn |= htonl(0xff000000);
	return ~crc32_le(crc32_le(~0U, &ones, 8), &masked, offsetof(struct answer, icrc));
}

static void forge(uint32_t qpn, uint32_t psn, uint8_t opcode, uint8_t syndrome)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IPV6),
		.sll_ifindex = must(if_nametoindex("rxe1wire")), .sll_halen = ETH_ALEN, .sll_addr = MAC,
	};
	int fd = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	struct answer a = {
		.ip.ip6_flow = htonl(0x60000000), .ip.ip6_nxt = IPPROTO_UDP, .ip.ip6_hlim = 64,
		.udp.source = htons(0xc000), .udp.dest = htons(ROCE_PORT),
		.opcode = opcode, .pkey = htons(0xffff), .qpn = htonl(qpn), .psn = htonl(psn),
		.aeth = htonl((uint32_t)syndrome << 24),
	};

	a.udp.len = htons(sizeof(a) - sizeof(a.ip));
	a.ip.ip6_plen = a.udp.len;
	must(inet_pton(AF_INET6, ADDRESS, &a.ip.ip6_src));
	a.ip.ip6_dst = a.ip.ip6_src;
	a.icrc = htole32(icrc_of(a));
	must_be(sendto(fd, &a, sizeof(a), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(a));
	close(fd);
}

/* -- the victim and its peer */

struct scene {
	struct pair neighbour;
	int fd;			/* the victim                            */
	struct raw l, r;	/* its peer                              */
	uint32_t qpn, psn;	/* the victim's, and of its next request */
};

static void neighbour_lives(struct scene *s)
{
	send_all(s->neighbour.c, 1, 0, 5000);
	recv_all(s->neighbour.s, 1, 0, 5000);
}

/*
 * The victim connects: then soft-RoCE repeats a request without an answer for ever, which leaves time to forge one.
 */
static void attach(struct scene *s, long stall_timeout)
{
	struct message advert = { .type = ADVERT, .nsegs = 1, .segs = { { 0x10000, 0x777700, LEN } } }, m;
	struct hello hello = good_hello();
	union address at;

	/* So it sends nothing but its greeting. */
	hello.features = htole32(H_ASK);
	write_sysctl("stall_timeout", stall_timeout);
	pair_open(&s->neighbour);
	raw_listen(&s->l, &at);
	s->fd = new_socket();
	set_nonblock(s->fd, true);
	must_fail(connect(s->fd, &at.sa, address_len(&at)), EINPROGRESS);
	raw_take_request(&s->l, &s->r);
	raw_accept(&s->r, &hello, sizeof(hello));
	must_be(raw_event(&s->r), RDMA_CM_EVENT_ESTABLISHED);
	/* Its greeting. */
	raw_hear(&s->r, CREDIT, &m);
	raw_say(&s->r, &advert);
	wait_io(s->fd, POLLOUT);
}

/* From now on the peer takes nothing and answers nothing. The victim has nothing more to send. */
static void fall_silent(struct scene *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;

	check(!ibv_modify_qp(s->r.id->qp, &attr, IBV_QP_STATE), "ibv_modify_qp failed");
	check(!ibv_query_qp(s->r.id->qp, &attr, IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, &init), "ibv_query_qp failed");
	s->qpn = attr.dest_qp_num;
	s->psn = attr.rq_psn;
}

/* The next packet of the victim's queue pair. */
static uint32_t next_psn(struct scene *s)
{
	char line[512] = "", *psn;
	FILE *in;

	snprintf(line, sizeof(line), "rdma res show qp link rxe1/1 lqpn %u", s->qpn);
	in = popen(line, "re");
	check(in && fgets(line, sizeof(line), in), "no queue pair %u", s->qpn);
	pclose(in);
	psn = strstr(line, " sq-psn ");
	check(psn, "no PSN in: %s", line);
	return strtoul(psn + 8, NULL, 10);
}

static int error_of_recv(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) < 0 ? errno : 0;
}

/* A send is answered like that: check its event, and the error of the connection, reported once. */
static void answered(uint8_t opcode, uint8_t syndrome, int err, int (*said)(int fd))
{
	exs_qhandle_t q = queue_new(2);
	long before = delta("resets_transport");
	char *out = pages(LEN);
	struct scene s;

	attach(&s, limit_ms() / 2);
	fall_silent(&s);
	wait_until(next_psn(&s) == s.psn);
	start_send(s.fd, out, LEN, q, 1, NO_REGION);
	/* An answer to a request that was posted but not sent would be ignored. */
	wait_until(next_psn(&s) != s.psn);
	no_event(q);
	forge(s.qpn, s.psn, opcode, syndrome);
	/* provokes: exs_send event EIO, ECONNRESET */
	event_is(q, EXS_EVT_SEND, 1, err, 0);
	no_event(q);
	must_be(delta("resets_transport"), before + 1);
	must_be(said(s.fd), err);
	must_be(said(s.fd), 0);
	neighbour_lives(&s);
	close(s.fd);
	raw_close(&s.r);
	raw_close(&s.l);
	pair_close(&s.neighbour);
}

/* The answer to a READ, for a request that was none: soft-RoCE then gives up by itself. */
static void answer_of_read(void *arg)
{
	(void)arg;
	make_device();
	answered(READ_RESPONSE_ONLY, ACK, EIO, so_error);
	answered(READ_RESPONSE_ONLY, ACK, EIO, error_of_recv);
}

static void fatal_error(void)
{
	with_device(answer_of_read);
}

static void each_nak(void *arg)
{
	(void)arg;
	make_device();
	answered(ACKNOWLEDGE, NAK_INVALID_REQUEST, ECONNRESET, so_error);
	answered(ACKNOWLEDGE, NAK_REMOTE_ACCESS, ECONNRESET, so_error);
	answered(ACKNOWLEDGE, NAK_REMOTE_OPERATION, ECONNRESET, so_error);
}

static void refusals(void)
{
	with_device(each_nak);
}

/* Nothing is forged: without any answer, the victim gives up. */
static void no_answer(void *arg)
{
	exs_qhandle_t q = queue_new(2);
	char *out = pages(LEN);
	struct scene s;

	(void)arg;
	make_device();
	attach(&s, 2000);
	fall_silent(&s);
	start_send(s.fd, out, LEN, q, 1, NO_REGION);
	event_is(q, EXS_EVT_SEND, 1, ETIMEDOUT, 0);
	must_be(delta("stall_timeout"), 1);
	must_be(so_error(s.fd), ETIMEDOUT);
	neighbour_lives(&s);
	close(s.fd);
	raw_close(&s.r);
	raw_close(&s.l);
	pair_close(&s.neighbour);
}

static void silence(void)
{
	with_device(no_answer);
}

static const struct e2e_case cases[] = {
	{ "fatal_error", fatal_error, .on = ON_STREAM6 | ON_SEQ6, .needs = NEEDS_ONE },
	{ "silence", silence, .on = ON_STREAM6 | ON_SEQ6, .needs = NEEDS_ONE },
	{ "refusals", refusals, .on = ON_STREAM6 | ON_SEQ6, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
