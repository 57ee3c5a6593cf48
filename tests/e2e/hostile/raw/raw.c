// SPDX-License-Identifier: GPL-2.0
/* rdma_cm and verbs from user space: see raw.h. */
#include "raw.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECVS		64
#define SENDS		256

struct hello good_hello(void)
{
	return (struct hello){
		.magic = htole32(0x31535845), .version = htole16(1), .type = e2e.seq ? 2 : 1,
		.credits = htole16(CREDITS), .adverts = htole16(16), .segs = htole16(64),
		.recv_len = htole16(MESSAGE_LEN),
		.eager = htole32(e2e.seq ? 32768 : 0),
	};
}

struct reject good_reject(int reason)
{
	return (struct reject){
		.magic = htole32(0x52535845), .oldest = htole16(1), .newest = htole16(1), .reason = reason,
	};
}

/* -- messages */

int encode(const struct message *m, unsigned char *buf)
{
	uint16_t credits = htole16(m->credits);
	uint32_t words[3] = { htole32(m->a), htole32(m->b), htole32(m->c) };
	uint64_t addr;
	int i;

	buf[0] = m->type;
	buf[1] = m->flags;
	memcpy(buf + 2, &credits, 2);
	memcpy(buf + 4, words, 12);
	for (i = 0; i < m->nsegs; i++) {
		unsigned char *p = buf + HEADER_LEN + i * SEGMENT_LEN;

		addr = htole64(m->segs[i].addr);
		words[0] = htole32(m->segs[i].key);
		words[1] = htole32(m->segs[i].len);
		memcpy(p, &addr, 8);
		memcpy(p + 8, words, 8);
	}
	return HEADER_LEN + m->nsegs * SEGMENT_LEN;
}

static void decode(const unsigned char *buf, int len, struct message *m)
{
	uint16_t credits;
	uint32_t words[3];
	int i;

	memset(m, 0, sizeof(*m));
	m->type = buf[0];
	m->flags = buf[1];
	memcpy(&credits, buf + 2, 2);
	memcpy(words, buf + 4, 12);
	m->credits = le16toh(credits);
	m->a = le32toh(words[0]);
	m->b = le32toh(words[1]);
	m->c = le32toh(words[2]);
	if (m->type != ADVERT && m->type != RING)
		return;
	m->nsegs = (len - HEADER_LEN) / SEGMENT_LEN;
	for (i = 0; i < m->nsegs; i++) {
		const unsigned char *p = buf + HEADER_LEN + i * SEGMENT_LEN;

		memcpy(&m->segs[i].addr, p, 8);
		memcpy(words, p + 8, 8);
		m->segs[i].addr = le64toh(m->segs[i].addr);
		m->segs[i].key = le32toh(words[0]);
		m->segs[i].len = le32toh(words[1]);
	}
}

/* -- the queue pair */

static void post_recv(struct raw *r, int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->memory + i * MESSAGE_LEN,
		.length = MESSAGE_LEN, .lkey = r->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = RECVS + i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (!r->lost)
		ibv_post_recv(r->id->qp, &wr, &bad);
}

static void make_qp(struct raw *r)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	int i;

	r->pd = ibv_alloc_pd(r->id->verbs);
	check(r->pd, "ibv_alloc_pd: %s", errno_name(errno));
	r->cq = ibv_create_cq(r->id->verbs, SENDS + RECVS, NULL, NULL, 0);
	check(r->cq, "ibv_create_cq: %s", errno_name(errno));
	attr.send_cq = r->cq;
	attr.recv_cq = r->cq;
	must(rdma_create_qp(r->id, r->pd, &attr));
	r->memory = pages(RECVS * MESSAGE_LEN + SCRATCH_LEN);
	r->scratch = r->memory + RECVS * MESSAGE_LEN;
	r->mr = ibv_reg_mr(r->pd, r->memory, RECVS * MESSAGE_LEN + SCRATCH_LEN, IBV_ACCESS_LOCAL_WRITE);
	check(r->mr, "ibv_reg_mr: %s", errno_name(errno));
	for (i = 0; i < RECVS; i++)
		post_recv(r, i);
}

static void reap_completions(struct raw *r)
{
	struct ibv_wc wc;
	int i;

	while (ibv_poll_cq(r->cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS) {
			r->lost = 1;
			continue;
		}
		if (wc.wr_id < RECVS) {
			r->sent++;
			continue;
		}
		i = (r->first + r->count++) % RECVS;
		r->arrived[i] = wc.wr_id - RECVS;
		r->lengths[i] = wc.opcode == IBV_WC_RECV ? wc.byte_len : 0;
	}
}

/* The peer ended it: posted requests are flushed. */
static void heed_disconnection(struct raw *r)
{
	if (!r->connected || !(poll_now(r->channel->fd, POLLIN) & POLLIN))
		return;
	if (raw_event(r) != RDMA_CM_EVENT_DISCONNECTED)
		return;
	r->lost = 1;
	rdma_disconnect(r->id);
}

bool raw_is_lost(struct raw *r)
{
	reap_completions(r);
	heed_disconnection(r);
	return r->lost;
}

static void post_send(struct raw *r, struct ibv_send_wr *wr, const void *data, size_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = len, .lkey = r->mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = !!len;
	wr->send_flags = IBV_SEND_SIGNALED;
	/* A dead queue pair refuses: raw_flush() notices that. */
	if (ibv_post_send(r->id->qp, wr, &bad))
		r->lost = 1;
	else
		r->sent--;
}

void raw_send(struct raw *r, const void *data, int len)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	memmove(r->scratch, data, len);
	post_send(r, &wr, r->scratch, len);
	raw_flush(r);
}

void raw_send_imm(struct raw *r, const void *data, int len, uint32_t imm)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(imm) };

	memmove(r->scratch, data, len);
	post_send(r, &wr, r->scratch, len);
}

void raw_say(struct raw *r, const struct message *m)
{
	unsigned char buf[HEADER_LEN + 40 * SEGMENT_LEN];
	int len = encode(m, buf);

	raw_send(r, buf, len);
}

void raw_kill(struct raw *r, const struct message *m, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key };
	unsigned char buf[HEADER_LEN];
	int len = encode(m, buf);

	memmove(r->scratch, buf, len);
	post_send(r, &wr, r->scratch, len);
}

void raw_write(struct raw *r, uint64_t addr, uint32_t key, size_t len, int64_t imm)
{
	struct ibv_send_wr wr = {
		.opcode = imm < 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(imm),
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};

	post_send(r, &wr, r->scratch, len);
}

void raw_read(struct raw *r, uint64_t addr, uint32_t key, size_t len)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};

	post_send(r, &wr, r->scratch, len);
}

bool raw_flush(struct raw *r)
{
	wait_until(raw_is_lost(r) || r->sent >= 0);
	return !r->lost;
}

void raw_hear(struct raw *r, int type, struct message *m)
{
	int i;

	do {
		wait_until(raw_is_lost(r) || r->count);
		check(r->count, "the connection is dead; waited for message type %d", type);
		i = r->arrived[r->first];
		decode((unsigned char *)r->memory + i * MESSAGE_LEN, r->lengths[r->first], m);
		if (!r->lengths[r->first])
			m->type = 0;
		r->first = (r->first + 1) % RECVS;
		r->count--;
		post_recv(r, i);
	} while (m->type != type);
}

/* -- the CM */

static void make_id(struct raw *r)
{
	/* Seven times 4.096 us << 15: within the second that a victim waits for the end of our packets. */
	uint8_t ack_timeout = 15;

	memset(r, 0, sizeof(*r));
	r->channel = rdma_create_event_channel();
	check(r->channel, "rdma_create_event_channel: %s", errno_name(errno));
	must(rdma_create_id(r->channel, &r->id, NULL, RDMA_PS_TCP));
	/* A peer that is gone is noticed in less than a second. */
	must(rdma_set_option(r->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			     sizeof(ack_timeout)));
}

static struct rdma_cm_event *next_event(struct raw *r)
{
	struct rdma_cm_event *event;

	wait_io(r->channel->fd, POLLIN);
	must(rdma_get_cm_event(r->channel, &event));
	return event;
}

int raw_event(struct raw *r)
{
	struct rdma_cm_event *event = next_event(r);
	const struct rdma_conn_param *conn = &event->param.conn;
	int type = event->event;

	if (type == RDMA_CM_EVENT_REJECTED && conn->private_data_len >= REJECT_LEN)
		memcpy(&r->why, conn->private_data, REJECT_LEN);
	must(rdma_ack_cm_event(event));
	return type;
}

static void resolve(struct raw *r, const union address *to)
{
	make_id(r);
	must(rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&to->sa, limit_ms()));
	must_be(raw_event(r), RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(r->id, limit_ms()));
	must_be(raw_event(r), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_conn_param parameters(const void *hello, int len)
{
	return (struct rdma_conn_param){
		.private_data = hello, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = 6,	/* 7 is for ever */
	};
}

int raw_connect(struct raw *r, const union address *to, const void *hello, int len)
{
	struct rdma_conn_param param = parameters(hello, len);
	int event;

	resolve(r, to);
	make_qp(r);
	must(rdma_connect(r->id, &param));
	event = raw_event(r);
	r->connected = event == RDMA_CM_EVENT_ESTABLISHED;
	return event;
}

static int half_connects;

int raw_half_connect(struct raw *r, const union address *to)
{
	struct hello hello = good_hello();
	struct rdma_conn_param param = parameters(&hello, sizeof(hello));

	resolve(r, to);
	/* A number that comes twice looks like an old connection's. */
	param.qp_num = 0x4321 + half_connects++;
	must(rdma_connect(r->id, &param));
	return raw_event(r);
}

void raw_listen(struct raw *l, union address *at)
{
	*at = address_of(SERVER, 0);
	raw_listen_at(l, at);
}

void raw_listen_at(struct raw *l, union address *at)
{
	make_id(l);
	must(rdma_bind_addr(l->id, &at->sa));
	must(rdma_listen(l->id, 8));
	if (at->sa.sa_family == AF_INET6)
		at->in6.sin6_port = rdma_get_src_port(l->id);
	else
		at->in.sin_port = rdma_get_src_port(l->id);
}

void raw_take_request(struct raw *l, struct raw *r)
{
	struct rdma_cm_event *event = next_event(l);

	memset(r, 0, sizeof(*r));
	must_be(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	r->id = event->id;
	r->channel = l->channel;
	must(rdma_ack_cm_event(event));
}

void raw_accept(struct raw *r, const void *hello, int len)
{
	struct rdma_conn_param param = parameters(hello, len);

	make_qp(r);
	must(rdma_accept(r->id, &param));
}

void raw_reject(struct raw *r, const void *why, int len)
{
	must(rdma_reject(r->id, why, len));
}

void raw_disconnect(struct raw *r)
{
	rdma_disconnect(r->id);
}

void raw_close(struct raw *r)
{
	if (r->id->qp)
		rdma_destroy_qp(r->id);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	if (r->cq)
		ibv_destroy_cq(r->cq);
	rdma_destroy_id(r->id);
	if (r->pd)
		ibv_dealloc_pd(r->pd);
}
