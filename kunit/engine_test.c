// SPDX-License-Identifier: GPL-2.0
/*
 * Two engines joined by a perfect wire, in the kernel's own build of proto/:
 * bytes and messages arrive whole and in order, directly and through the ring,
 * also when credits are few. (The exhaustive search is in tests/proto.)
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "proto/engine.h"

#define RING	256
#define BUF	8192

struct side {
	struct exs_engine e;
	struct exs_theirs theirs;
	struct exs_tx tx;
	struct exs_msg msg;
	struct side *peer;
	u8 ring[RING];
	u8 wire[EXS_WIRE_BUF_LEN];
	bool has_ring;
	u64 indirect;
};

struct pair {
	struct side a, b;
};

struct recv {
	struct exs_rcv rcv;
	u8 buf[BUF];
};

struct send {
	struct exs_snd snd;
	u8 buf[BUF];
};

static struct pair *pair_new(struct kunit *test, u8 socktype, u16 credits)
{
	struct exs_engine_config config = {
		.ours = { .socktype = socktype, .credits = credits, .max_adverts = 4,
			  .max_segs = EXS_WIRE_SEGS_MAX, .recv_len = EXS_WIRE_BUF_LEN,
			  .eager_space = 32768 },
		.eager_max = EXS_WIRE_DATA_MAX,
	};
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	config.peer = config.ours;
	exs_engine_init(&p->a.e, &config);
	exs_engine_init(&p->b.e, &config);
	p->a.peer = &p->b;
	p->b.peer = &p->a;
	return p;
}

/* "Remote memory" is named by its kernel address: this wire stays inside. */
static void fill_segs(struct side *s)
{
	struct exs_tx *tx = &s->tx;
	void *at = s->ring;
	u32 len = RING;

	if (tx->kind == EXS_TX_ADVERT) {
		at = container_of(tx->rcv, struct recv, rcv)->buf + tx->rcv->base;
		len = tx->rcv->window;
	}
	tx->msg.nsegs = 1;
	tx->msg.segs[0] = (struct exs_seg) { .addr = (uintptr_t)at, .key = 1, .len = len };
}

static void deliver_write(struct side *s)
{
	const u8 *from = container_of(s->tx.snd, struct send, snd)->buf + s->tx.offset;
	u32 i;

	for (i = 0; i < s->tx.nsegs; i++) {
		memcpy((void *)(uintptr_t)s->tx.segs[i].addr, from, s->tx.segs[i].len);
		from += s->tx.segs[i].len;
	}
}

/* Through the wire format, as in life. */
static int deliver_message(struct side *s)
{
	struct side *to = s->peer;
	struct exs_rcv *rcv = NULL;
	int len = exs_wire_put_msg(to->wire, sizeof(to->wire), &s->tx.msg);
	int err;

	if (len < 0)
		return len;
	if (s->tx.kind == EXS_TX_EAGER) {
		memcpy(to->wire + len,
		       container_of(s->tx.snd, struct send, snd)->buf + s->tx.offset,
		       s->tx.len);
		len += s->tx.len;
	}
	err = exs_wire_get_msg(to->wire, len, &to->msg);
	if (!err && exs_engine_wants_theirs(&to->e, &to->msg))
		to->e.theirs = &to->theirs;
	if (!err)
		err = exs_engine_rx_msg(&to->e, &to->msg, &rcv);
	if (!err && rcv)
		memcpy(container_of(rcv, struct recv, rcv)->buf, to->msg.data,
		       min_t(u64, to->msg.len, rcv->len));
	exs_engine_reposted(&to->e);
	return err;
}

static int deliver(struct side *s)
{
	int err = 0;

	switch (s->tx.kind) {
	case EXS_TX_ADVERT:
	case EXS_TX_RING:
		fill_segs(s);
		fallthrough;
	case EXS_TX_MESSAGE:
	case EXS_TX_EAGER:
		return deliver_message(s);
	case EXS_TX_WRITE:
		deliver_write(s);
		if (s->tx.last) {
			err = exs_engine_rx_imm(&s->peer->e, s->tx.imm);
			exs_engine_reposted(&s->peer->e);
		}
		break;
	}
	return err;
}

static void copy_out(struct side *s)
{
	struct exs_copy copy;

	while (exs_engine_next_copy(&s->e, &copy)) {
		memcpy(container_of(copy.rcv, struct recv, rcv)->buf + copy.rcv_off,
		       s->ring + copy.ring_off, copy.len);
		s->indirect += copy.len;
		exs_engine_copied(&s->e, &copy);
	}
}

/* One step of one side. 1: something was done, 0: nothing to do, or an error. */
static int step(struct side *s)
{
	int err;

	if (s->e.ring_wanted && !s->has_ring) {
		s->has_ring = true;
		exs_engine_ring_ready(&s->e, RING);
	}
	copy_out(s);
	if (!exs_engine_next_tx(&s->e, 4096, &s->tx))
		return 0;
	err = deliver(s);
	return err ?: 1;
}

static void run(struct kunit *test, struct pair *p)
{
	unsigned int steps = 0;
	int a, b;

	do {
		a = step(&p->a);
		b = step(&p->b);
		KUNIT_ASSERT_GE(test, a, 0);
		KUNIT_ASSERT_GE(test, b, 0);
		KUNIT_ASSERT_LT(test, ++steps, 100000u);
	} while (a || b);
	copy_out(&p->a);
	copy_out(&p->b);
}

static struct recv *receive(struct kunit *test, struct side *s, u32 len, u32 flags)
{
	struct recv *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->rcv.len = len;
	r->rcv.flags = flags;
	r->rcv.max_window = len;
	r->rcv.max_segs = 1;
	exs_engine_recv(&s->e, &r->rcv);
	return r;
}

static struct send *send(struct kunit *test, struct side *s, u32 len, u8 first)
{
	struct send *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < len; i++)
		d->buf[i] = first + i;
	d->snd.len = len;
	exs_engine_send(&s->e, &d->snd);
	return d;
}

static void expect_bytes(struct kunit *test, const struct recv *r, u32 len, u8 first)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, r->rcv.filled, (u64)len);
	for (i = 0; i < len; i++)
		KUNIT_ASSERT_EQ(test, r->buf[i], (u8)(first + i));
}

static void stream_direct(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, 16);
	struct recv *r = receive(test, &p->b, 5000, EXS_RCV_DIRECT | EXS_RCV_WAITALL);

	run(test, p);
	send(test, &p->a, 5000, 7);
	run(test, p);
	KUNIT_EXPECT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
	expect_bytes(test, r, 5000, 7);
	KUNIT_EXPECT_EQ(test, p->b.indirect, 0ULL);
	KUNIT_EXPECT_EQ(test, p->a.e.stats.direct_bytes, 5000ULL);
}

static void stream_indirect(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, 16);
	struct recv *r;

	send(test, &p->a, 2000, 3);
	run(test, p);
	r = receive(test, &p->b, 2000, EXS_RCV_WAITALL);
	run(test, p);
	KUNIT_EXPECT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
	expect_bytes(test, r, 2000, 3);
	KUNIT_EXPECT_EQ(test, p->b.indirect, 2000ULL);
}

/* Sends before receives and the other way round, with the fewest credits. */
static void stream_switches(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, EXS_WIRE_CREDITS_MIN);
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct recv *r;

		if (i & 1)
			send(test, &p->a, 700, i);
		run(test, p);
		r = receive(test, &p->b, 700, EXS_RCV_WAITALL | EXS_RCV_DIRECT);
		run(test, p);
		if (!(i & 1))
			send(test, &p->a, 700, i);
		run(test, p);
		KUNIT_ASSERT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
		expect_bytes(test, r, 700, i);
	}
	KUNIT_EXPECT_GT(test, p->b.indirect, 0ULL);
	KUNIT_EXPECT_GT(test, p->a.e.stats.direct_bytes, 0ULL);
}

static void stream_both_ways(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, EXS_WIRE_CREDITS_MIN);
	struct recv *ra, *rb;

	send(test, &p->a, 4000, 1);
	send(test, &p->b, 3000, 2);
	ra = receive(test, &p->a, 3000, EXS_RCV_WAITALL | EXS_RCV_DIRECT);
	rb = receive(test, &p->b, 4000, EXS_RCV_WAITALL | EXS_RCV_DIRECT);
	run(test, p);
	expect_bytes(test, ra, 3000, 2);
	expect_bytes(test, rb, 4000, 1);
}

static void stream_eof(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, 16);
	struct recv *r = receive(test, &p->b, 100, EXS_RCV_WAITALL | EXS_RCV_DIRECT);

	send(test, &p->a, 60, 0);
	exs_engine_shutdown(&p->a.e);
	run(test, p);
	KUNIT_EXPECT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
	expect_bytes(test, r, 60, 0);
	KUNIT_EXPECT_TRUE(test, exs_engine_eof(&p->b.e));
}

static void stream_cancel(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, 16);
	struct recv *r = receive(test, &p->b, 100, EXS_RCV_DIRECT);

	run(test, p);
	exs_engine_cancel_rcv(&p->b.e, &r->rcv);
	run(test, p);
	KUNIT_EXPECT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
	KUNIT_EXPECT_EQ(test, r->rcv.err, -ECANCELED);
	KUNIT_EXPECT_EQ(test, r->rcv.filled, 0ULL);
	/* Data that are sent now must not land there. */
	send(test, &p->a, 100, 9);
	run(test, p);
	KUNIT_EXPECT_EQ(test, r->buf[99], 0);
}

static void messages(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 500, EXS_WIRE_DATA_MAX, 5000, BUF };
	struct pair *p = pair_new(test, EXS_WIRE_SEQPACKET, EXS_WIRE_CREDITS_MIN);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		struct recv *r = receive(test, &p->b, BUF, EXS_RCV_DIRECT);

		run(test, p);
		send(test, &p->a, lens[i], i);
		run(test, p);
		KUNIT_ASSERT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
		KUNIT_EXPECT_EQ(test, r->rcv.err, 0);
		expect_bytes(test, r, lens[i], i);
	}
}

static void message_truncated(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_SEQPACKET, 16);
	struct recv *r = receive(test, &p->b, 3000, EXS_RCV_DIRECT);

	run(test, p);
	send(test, &p->a, 5000, 1);
	run(test, p);
	KUNIT_ASSERT_PTR_EQ(test, exs_engine_next_rcv_done(&p->b.e), &r->rcv);
	KUNIT_EXPECT_TRUE(test, r->rcv.flags & EXS_RCV_TRUNCATED);
	expect_bytes(test, r, 3000, 1);
	KUNIT_EXPECT_EQ(test, r->buf[3000], 0);
}

/* An advert for nothing, data without an advert, space that was never taken. */
static void violations(struct kunit *test)
{
	struct pair *p = pair_new(test, EXS_WIRE_STREAM, 16);
	struct exs_msg *msg = &p->a.msg;
	struct exs_rcv *rcv;

	KUNIT_EXPECT_EQ(test, exs_engine_rx_imm(&p->a.e, exs_imm(EXS_IMM_DIRECT, 10)),
			-EPROTO);
	p = pair_new(test, EXS_WIRE_STREAM, 16);
	KUNIT_EXPECT_EQ(test, exs_engine_rx_imm(&p->a.e, exs_imm(EXS_IMM_INDIRECT, 1)),
			-EPROTO);
	p = pair_new(test, EXS_WIRE_STREAM, 16);
	msg = &p->a.msg;
	msg->type = EXS_MSG_CREDIT;
	msg->credits = 17;
	KUNIT_EXPECT_EQ(test, exs_engine_rx_msg(&p->a.e, msg, &rcv), -EPROTO);
}

static struct kunit_case engine_cases[] = {
	KUNIT_CASE(stream_direct),
	KUNIT_CASE(stream_indirect),
	KUNIT_CASE(stream_switches),
	KUNIT_CASE(stream_both_ways),
	KUNIT_CASE(stream_eof),
	KUNIT_CASE(stream_cancel),
	KUNIT_CASE(messages),
	KUNIT_CASE(message_truncated),
	KUNIT_CASE(violations),
	{}
};

static struct kunit_suite engine_suite = {
	.name = "exs_engine",
	.test_cases = engine_cases,
};

kunit_test_suite(engine_suite);
