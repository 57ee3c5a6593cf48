/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unit tests: two engines without a channel. Each gets the other's messages at once, and the
 * tests look at all of them.
 */
#ifndef PROTO_TEST_PAIR_H
#define PROTO_TEST_PAIR_H

#include "test.h"

static struct exs_engine a, b;
static struct exs_theirs a_theirs, b_theirs;
static struct exs_tx tx;
static struct exs_rcv *eager_rcv;

static inline void begin(const struct exs_engine_config *config)
{
	exs_engine_init(&a, config);
	exs_engine_init(&b, config);
	a.theirs = &a_theirs;
	b.theirs = &b_theirs;
}

static inline void pair_init(u8 socktype, u16 credits)
{
	struct exs_engine_config config = {
		.ours = {
			.socktype = socktype,
			.credits = credits,
			.max_adverts = 4,
			.max_segs = EXS_HELD_SEGS_MAX,
			.recv_len = EXS_WIRE_BUF_LEN,
			.eager_space = EXS_WIRE_EAGER_MIN * 2,
		},
		.eager_max = 100,
	};

	config.peer = config.ours;
	begin(&config);
}

/* Addresses that a test recognises: 1000 * length of the receive + base. */
static inline void fill_segs(struct exs_engine *e)
{
	struct exs_seg *seg = tx.msg.segs;

	if (tx.kind == EXS_TX_RING) {
		*seg = (struct exs_seg){ .addr = 1, .key = 1, .len = e->ring };
	} else if (tx.kind == EXS_TX_ADVERT) {
		seg->addr = 1000 * tx.rcv->len + tx.rcv->base;
		seg->key = 2;
		seg->len = tx.rcv->window;
	} else {
		return;
	}
	tx.msg.nsegs = seg->len ? 1 : 0;
}

/* Look at the next thing that @e transmits; false if there is nothing. */
static inline bool next(struct exs_engine *e)
{
	if (!exs_engine_next_tx(e, 4096, &tx))
		return false;
	fill_segs(e);
	return true;
}

/* Pass it to @to. */
static inline int hand(struct exs_engine *to)
{
	int err;

	if (tx.kind == EXS_TX_WRITE) {
		err = tx.last ? exs_engine_rx_imm(to, tx.imm) : 0;
	} else {
		tx.msg.len = tx.kind == EXS_TX_EAGER ? tx.len : 0;
		err = exs_engine_rx_msg(to, &tx.msg, &eager_rcv);
	}
	if (tx.kind != EXS_TX_WRITE || tx.last)
		exs_engine_reposted(to);
	return err;
}

/* The next thing that @from transmits is a @type; pass it on. */
static inline bool passes(struct exs_engine *from, struct exs_engine *to, u8 type)
{
	if (!next(from) || tx.kind == EXS_TX_WRITE || tx.msg.type != type)
		return false;
	return !hand(to);
}

/* The next thing is a WRITE of @len bytes of that kind; pass it on. */
static inline u32 kind_of(u32 imm, bool stream)
{
	u32 kind = exs_imm_kind(imm);

	return stream && kind == EXS_IMM_MORE ? EXS_IMM_INDIRECT : kind;
}

static inline bool writes(struct exs_engine *from, struct exs_engine *to,
			  enum exs_imm_kind kind, u32 len)
{
	if (!next(from) || tx.kind != EXS_TX_WRITE || !tx.last)
		return false;
	return kind_of(tx.imm, from->ops == &exs_stream_ops) == (u32)kind && exs_imm_len(tx.imm) == len && !hand(to);
}

/* The receiver's ring is drained into its receives. */
static inline u32 copies(struct exs_engine *e)
{
	struct exs_copy copy;
	u32 n = 0;

	while (exs_engine_next_copy(e, &copy)) {
		n += copy.len;
		exs_engine_copied(e, &copy);
	}
	return n;
}

static inline struct exs_rcv *recv_on(struct exs_engine *e, struct exs_rcv *rcv,
				      u64 len, u32 flags)
{
	*rcv = (struct exs_rcv){
		.len = len, .max_window = len, .max_segs = 1, .flags = flags,
	};
	exs_engine_recv(e, rcv);
	return rcv;
}

static inline struct exs_snd *send_on(struct exs_engine *e, struct exs_snd *snd, u64 len)
{
	*snd = (struct exs_snd){ .len = len };
	exs_engine_send(e, snd);
	return snd;
}

static inline void gate_on(struct exs_engine *e, struct exs_snd *gate)
{
	*gate = (struct exs_snd){ .gate = true };
	exs_engine_send(e, gate);
}

static inline void send_at(struct exs_engine *e, struct exs_snd *snd, struct exs_snd *gate,
			   u64 len)
{
	*snd = (struct exs_snd){ .len = len };
	exs_engine_send_before(e, snd, gate);
}

#endif
