/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer that speaks below AF_EXS: rdma_cm and a queue pair from user space.
 * It sends whatever the test wants.
 */
#ifndef E2E_RAW_H
#define E2E_RAW_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "lib/e2e.h"

/* The wire (Documentation/wire-protocol), written down a second time on purpose. */
#define HELLO_LEN	32
#define REJECT_LEN	16
#define HEADER_LEN	16
#define SEGMENT_LEN	16
#define MESSAGE_LEN	1024
#define CREDITS		16

enum { CREDIT = 1, ADVERT, REVOKE, ANSWER, SPACE, REQUEST, RING, EAGER, WRITTEN, FIN };
enum { F_FIRST = 1, F_WAITALL = 2 };
enum { IMM_DIRECT = 0, IMM_INDIRECT = 1, IMM_TRUNCATED = 2, IMM_CREDITED = 3, IMM_MANY = 15 };

enum { R_VERSION = 1, R_MALFORMED, R_SOCKTYPE, R_BACKLOG, R_LIMIT, R_DISABLED };

/* Bits of the hello's features. */
enum { H_INVALIDATE = 1, H_MESSAGE_RING = 2, H_ASK = 4, H_STREAM_EAGER = 8, H_MANY = 16 };

struct reject {
	uint32_t magic;
	uint16_t oldest, newest;
	unsigned char reason, rest[7];
};

struct raw {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;		/* received messages, then a scratch area */
	char *scratch;
	bool connected;
	struct reject why;	/* raw_connect(): rejected, with this private data */
	int lost;		/* a completion failed: the queue pair is dead */
	int sent;		/* completed                              */
	int arrived[64];	/* received, not looked at: buffer numbers */
	int lengths[64];
	int first, count;
};

#define SCRATCH_LEN	(1024 * 1024)

/* A message as the test writes it, and as it arrived. */
struct message {
	unsigned char type, flags;
	uint16_t credits;
	uint32_t a, b, c;
	int nsegs;
	struct { uint64_t addr; uint32_t key, len; } segs[40];
};

struct hello {
	uint32_t magic;
	uint16_t version;
	unsigned char type, pad;
	uint16_t credits, adverts, segs, recv_len;
	uint32_t eager, features;
	uint32_t rest[2];
};

struct hello good_hello(void);

/* The event that ends the attempt: RDMA_CM_EVENT_ESTABLISHED, _REJECTED, ... */
int raw_connect(struct raw *r, const union address *to, const void *hello, int len);
/* A request without a queue pair: the hand-shake stops at RDMA_CM_EVENT_CONNECT_RESPONSE. */
int raw_half_connect(struct raw *r, const union address *to);
void raw_listen(struct raw *l, union address *at);
void raw_listen_at(struct raw *l, union address *at);	/* if it has no port, it gets one */
/* A request that came; no answer yet. */
void raw_take_request(struct raw *l, struct raw *r);
void raw_accept(struct raw *r, const void *hello, int len);
void raw_reject(struct raw *r, const void *why, int len);
struct reject good_reject(int reason);
int raw_event(struct raw *r);
void raw_disconnect(struct raw *r);
void raw_close(struct raw *r);

int encode(const struct message *m, unsigned char *buf);
void raw_send(struct raw *r, const void *data, int len);
void raw_send_imm(struct raw *r, const void *data, int len, uint32_t imm);
void raw_say(struct raw *r, const struct message *m);
/* The same, with invalidate of @key; not waited for. */
void raw_kill(struct raw *r, const struct message *m, uint32_t key);
/* @imm: -1 for none. */
void raw_write(struct raw *r, uint64_t addr, uint32_t key, size_t len, int64_t imm);
void raw_read(struct raw *r, uint64_t addr, uint32_t key, size_t len);
/* Waits until all posted requests are complete; false: the queue pair is dead. */
bool raw_flush(struct raw *r);
/* The next message of that type; others are passed over. */
void raw_hear(struct raw *r, int type, struct message *m);
bool raw_is_lost(struct raw *r);

#endif
