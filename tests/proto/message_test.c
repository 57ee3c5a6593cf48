// SPDX-License-Identifier: GPL-2.0
#include "pair.h"

static struct exs_snd snd[40];
static struct exs_rcv rcv[8];

static void start(void)
{
	pair_init(EXS_WIRE_SEQPACKET, 64);
}

static void test_eager(void)
{
	start();
	recv_on(&b, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 20);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.snd_done && tx.msg.b == 20);
	EXPECT(eager_rcv == &rcv[0] && exs_engine_next_rcv_done(&b) == &rcv[0]);
	EXPECT(rcv[0].filled == 10 && rcv[0].flags & EXS_RCV_TRUNCATED);
	EXPECT(!a.held.count && !b.adverts_out && a.stats.eager_bytes == 20);
	send_on(&a, &snd[1], 0);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !eager_rcv && b.used == 64);
	exs_engine_unqueued(&b, 0);
	EXPECT(!b.used && b.freed == 148);
}

static void test_direct_and_truncated(void)
{
	start();
	recv_on(&b, &rcv[0], 1000, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 500, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !tx.msg.a);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.msg.a == 1);
	send_on(&a, &snd[0], 600);
	send_on(&a, &snd[1], 600);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 600) && tx.snd_done);
	EXPECT(writes(&a, &b, EXS_IMM_TRUNCATED, 500) && tx.snd_done);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].filled == 600);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].filled == 500);
	EXPECT(rcv[1].flags & EXS_RCV_TRUNCATED && !(rcv[0].flags & EXS_RCV_TRUNCATED));
}

/* Nothing else waits for adverts that wait. */
static void test_adverts_held(void)
{
	start();
	exs_engine_hold_adverts(&b, true);
	recv_on(&b, &rcv[0], 1000, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 1000, EXS_RCV_DIRECT);
	EXPECT(!next(&b));
	send_on(&b, &snd[0], 10);
	EXPECT(passes(&b, &a, EXS_MSG_EAGER) && !next(&b));
	exs_engine_hold_adverts(&b, false);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && passes(&b, &a, EXS_MSG_ADVERT) && !next(&b));
}

static void test_announced(void)
{
	start();
	send_on(&a, &snd[0], 5000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !next(&a));
	EXPECT(exs_engine_readable(&b) == 5000);
	recv_on(&b, &rcv[0], 5000, 0);
	recv_on(&b, &rcv[1], 5000, 0);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !next(&b));
	EXPECT(next(&a) && !tx.last && next(&a) && tx.last && tx.snd_done && !hand(&b));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && !exs_engine_readable(&b));
	EXPECT(!next(&b));
}

/* The announced send is cancelled, and so is the announcement. */
static void test_withdrawn(void)
{
	start();
	send_on(&a, &snd[0], 5000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]));
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !exs_engine_readable(&b));
	send_on(&a, &snd[1], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && exs_engine_readable(&b) == 300);
	/* Another of the same length takes its place. */
	send_on(&a, &snd[2], 300);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]) && !next(&a));
}

/* A receive made for it ends; the advert comes too late for the next message. */
static void test_withdrawn_fetch(void)
{
	static struct exs_tx late;

	start();
	send_on(&a, &snd[0], 1000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	recv_on(&b, &rcv[0], 1000, EXS_RCV_FETCH);
	EXPECT(next(&b) && tx.kind == EXS_TX_ADVERT && !exs_engine_fetches(&b, 1000));
	late = tx;
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]));
	send_on(&a, &snd[1], 5000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !tx.msg.b);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].err == -ECANCELED);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && tx.msg.b == 5000);
	tx = late;
	EXPECT(!hand(&a) && !a.held.count && !next(&a));
	EXPECT(!exs_engine_fetches(&b, 1000) && exs_engine_fetches(&b, 5000) && !b.adverts_out);
}

/* Receives of programs stay, and are advertised again, for the messages that come now. */
static void test_withdrawn_receives(void)
{
	start();
	send_on(&a, &snd[0], 1000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	recv_on(&b, &rcv[0], 2000, 0);
	recv_on(&b, &rcv[1], 6000, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[2], 7000, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && passes(&b, &a, EXS_MSG_ADVERT));
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && a.held.count == 3);
	exs_engine_cancel_rcv(&b, &rcv[1]);
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]));
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !tx.msg.b && !a.held.count);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].err == -ECANCELED);
	EXPECT(!exs_engine_next_rcv_done(&b) && !next(&b));
	send_on(&a, &snd[1], 1500);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[0]);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[2] && !next(&b));
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 1500) && exs_engine_next_rcv_done(&b) == &rcv[0]);
}

/* The limit is raised, or lowered: the announced message is sent eagerly; one is announced that was not. */
static void test_tuned(void)
{
	start();
	send_on(&a, &snd[0], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && exs_engine_readable(&b) == 300);
	exs_engine_tune(&a, 300, EXS_ADVERTS_MAX);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.msg.b == 300 && !next(&a));
	exs_engine_tune(&a, 299, EXS_ADVERTS_MAX);
	send_on(&a, &snd[1], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !next(&a));
	/* More than allowed. */
	exs_engine_tune(&a, EXS_WIRE_DATA_MAX + 1, EXS_ADVERTS_MAX);
	EXPECT(a.config.eager_max == EXS_WIRE_DATA_MAX);
}

static void test_eager_space(void)
{
	u32 i, n = EXS_WIRE_EAGER_MIN * 2 / (100 + EXS_EAGER_OVERHEAD);

	start();
	for (i = 0; i < n + 2; i++)
		send_on(&a, &snd[i], 100);
	for (i = 0; i < n; i++)
		EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !eager_rcv);
	EXPECT(!next(&a) && a.stats.ring_stalls == 1);
	/* Without space, an advert helps as well. */
	for (i = 0; i < n - 1; i++)
		exs_engine_unqueued(&b, 100);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && !next(&b));
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && passes(&a, &b, EXS_MSG_EAGER));
	exs_engine_unqueued(&b, 100);
	EXPECT(!next(&b));	/* too little for a message of its own */
}

static void test_cancel(void)
{
	start();
	recv_on(&b, &rcv[0], 1000, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 1001, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[2], 1002, 0);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && passes(&b, &a, EXS_MSG_ADVERT));
	exs_engine_cancel_rcv(&b, &rcv[2]);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[2]);
	exs_engine_cancel_rcv(&b, &rcv[0]);
	EXPECT(passes(&b, &a, EXS_MSG_REVOKE) && !next(&b));
	EXPECT(passes(&a, &b, EXS_MSG_ANSWER));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].err == -ECANCELED);
	/* The number shifts to the other. */
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[1] && !tx.msg.a);
	send_on(&a, &snd[0], 900);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 900));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1]);
}

/* An operation that ended before it could be cancelled keeps its result. */
static void test_cancel_after_the_end(void)
{
	start();
	recv_on(&b, &rcv[0], 10, 0);
	recv_on(&b, &rcv[1], 10, 0);
	send_on(&a, &snd[0], 0);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	exs_engine_cancel_rcv(&b, &rcv[0]);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && !rcv[0].err);
	exs_engine_cancel_rcv(&b, &rcv[0]);
	EXPECT(!exs_engine_next_rcv_done(&b));
	exs_engine_shutdown(&a);
	send_on(&a, &snd[1], 5);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]));
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && snd[1].err == -EPIPE);
}

static void test_stale_advert(void)
{
	start();
	recv_on(&b, &rcv[0], 1000, EXS_RCV_DIRECT);
	EXPECT(next(&b));
	send_on(&a, &snd[0], 1);
	{
		static struct exs_tx late;

		late = tx;
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
		tx = late;
		EXPECT(!hand(&a) && !a.held.count && a.stats.adverts_dropped == 1);
	}
}

/* A send whose bytes are not there yet; it may have none. */
static void test_gate(void)
{
	start();
	gate_on(&a, &snd[0]);
	gate_on(&a, &snd[1]);
	send_on(&a, &snd[2], 3);
	EXPECT(!next(&a));
	send_at(&a, &snd[3], &snd[0], 5000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	EXPECT(exs_engine_cancel_snd(&a, &snd[3]));
	EXPECT(exs_engine_next_snd_done(&a) == &snd[3]);
	exs_engine_open(&a, &snd[0]);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && !snd[0].err);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !tx.msg.b && !next(&a));
	send_at(&a, &snd[4], &snd[1], 0);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.snd == &snd[4] && !tx.len && !next(&a));
	exs_engine_open(&a, &snd[1]);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.snd == &snd[2]);
}

static void test_fin(void)
{
	start();
	recv_on(&b, &rcv[0], 1000, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0]);
	EXPECT(!rcv[0].err && !rcv[0].filled && rcv[0].flags & EXS_RCV_EOF);
	EXPECT(exs_engine_eof(&b));
	send_on(&a, &snd[0], 1);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && snd[0].err == -EPIPE);
	send_on(&b, &snd[1], (u64)EXS_MESSAGE_MAX + 1);
	EXPECT(exs_engine_next_snd_done(&b) == &snd[1] && snd[1].err == -EMSGSIZE);
}

static int send_raw(struct exs_engine *e, u8 type, u32 x, u32 y, u32 len)
{
	static struct exs_msg msg;

	msg = (struct exs_msg){ .type = type, .a = x, .b = y, .len = len };
	return exs_engine_rx_msg(e, &msg, &eager_rcv);
}

static void test_violations(void)
{
	u32 i;

	start();
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 1, 5, 5) == -EPROTO);	/* not next */
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 0, 5, 6) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_ADVERT, 1, 0, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_REQUEST, 0, EXS_MESSAGE_MAX + 1, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_REQUEST, 1, 5, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_REQUEST, 0, 0, 0) == -EPROTO);	/* nothing is announced */
	EXPECT(!send_raw(&a, EXS_MSG_REQUEST, 0, 5, 0));
	EXPECT(send_raw(&a, EXS_MSG_REQUEST, 0, 6, 0) == -EPROTO);	/* something is */
	EXPECT(!send_raw(&a, EXS_MSG_REQUEST, 0, 0, 0) && a.rp == EXS_WIRE_TAKEN_BACK);
	start();
	EXPECT(send_raw(&a, EXS_MSG_RING, 0, 8, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_ANSWER, 0, 0, 0) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_DIRECT, 0)) == -EPROTO);
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(next(&a));
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_DIRECT, 11)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_TRUNCATED, 9)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_INDIRECT, 5)) == -EPROTO);
	start();
	for (i = 0; i < 2; i++)
		EXPECT(!send_raw(&a, EXS_MSG_EAGER, i, 1000, 1000));
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 2, 1000, 1000) == -EPROTO);
	/* Bytes that were read, but not returned, are not free either. */
	start();
	for (i = 0; i < 2; i++) {
		recv_on(&a, &rcv[i], 1000, 0);
		EXPECT(!send_raw(&a, EXS_MSG_EAGER, i, 1000, 1000));
	}
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 2, 1000, 1000) == -EPROTO);
	start();
	a.config.ours.eager_space = 2 * EXS_WIRE_BUF_LEN;
	i = EXS_WIRE_DATA_MAX + 1;
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 0, i, i) == -EPROTO);
	EXPECT(!send_raw(&a, EXS_MSG_EAGER, 0, i - 1, i - 1));
}

static void offer_rings(void)
{
	struct exs_engine *both[] = { &a, &b };
	u32 i;

	start();
	for (i = 0; i < 2; i++) {
		both[i]->config.ours.features = EXS_WIRE_F_MESSAGE_RING;
		both[i]->config.peer.features = EXS_WIRE_F_MESSAGE_RING;
		both[i]->config.ring_max = 200;
		both[i]->config.ring_overhead = 10;
	}
}

/* Both offer a ring; @b makes its own when a message of medium size is announced. */
static void announce_ring(u32 size)
{
	offer_rings();
	send_on(&a, &snd[39], 150);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && b.ring_wanted);
	exs_engine_ring_ready(&b, size);
}

/* @b has to keep a message of @len bytes at @off, which takes @space. */
static bool keeps(u32 len, u32 off, u32 space)
{
	struct exs_in_ring m;

	return exs_engine_next_kept(&b, &m) && m.len == len && m.off == off && m.space == space;
}

static void start_ring(u32 size)
{
	announce_ring(size);
	EXPECT(passes(&b, &a, EXS_MSG_RING) && !b.ring_wanted && !next(&b));
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 150) && keeps(150, 0, 160));
	EXPECT(tx.snd_done && exs_engine_readable(&b) && !exs_engine_eof(&b));
}

/* Before the receives, in one piece each, read by several threads. */
static void test_ring_ahead(void)
{
	start_ring(1000);
	send_on(&a, &snd[0], 200);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 200) && keeps(200, 160, 210));
	send_on(&a, &snd[1], 50);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !b.nkept);
	exs_engine_reading(&b);
	exs_engine_reading(&b);
	exs_engine_read(&b, 210);
	EXPECT(!b.ring_freed);
	exs_engine_read(&b, 0);		/* looked at */
	EXPECT(b.ring_freed == 210 && !next(&b));
	exs_engine_reading(&b);
	exs_engine_read(&b, 160);
	EXPECT(!b.ring_used && passes(&b, &a, EXS_MSG_SPACE) && tx.msg.b == 370);
	EXPECT(a.ring_space == 1000);
	/* A larger one has to be announced, as without a ring. */
	send_on(&a, &snd[2], 201);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && tx.msg.b == 201);
}

/* No message crosses the ring's end; skipped bytes belong to it. */
static void test_ring_wraps(void)
{
	u32 i;

	start_ring(1010);
	for (i = 0; i < 5; i++) {
		send_on(&a, &snd[i], 200);
		EXPECT((i == 4) == !writes(&a, &b, EXS_IMM_INDIRECT, 200));
	}
	EXPECT(a.stats.ring_stalls == 1);
	for (i = 0; i < 2; i++) {
		exs_engine_reading(&b);
		exs_engine_read(&b, i ? 210 : 160);
	}
	EXPECT(passes(&b, &a, EXS_MSG_SPACE));
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 200) && keeps(200, 0, 220));
}

/* Receives end in the order of the messages, whichever way each came. */
static void test_ring_order(void)
{
	start_ring(1000);
	exs_engine_reading(&b);
	exs_engine_read(&b, 160);
	recv_on(&b, &rcv[0], 100, 0);
	recv_on(&b, &rcv[1], 100, 0);
	send_on(&a, &snd[0], 150);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 150) && !b.nkept);
	send_on(&a, &snd[1], 5);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && eager_rcv == &rcv[1]);
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN) && !exs_engine_eof(&b));
	EXPECT(!exs_engine_next_rcv_done(&b));
	exs_engine_cancel_rcv(&b, &rcv[1]);
	EXPECT(copies(&b) == 100 && exs_engine_eof(&b));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].flags & EXS_RCV_TRUNCATED);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].filled == 5 && !rcv[1].err);
}

static int say_ring(struct exs_engine *e, u8 type, u32 size)
{
	static struct exs_msg msg;

	msg = (struct exs_msg){ .type = type, .b = size, .nsegs = type == EXS_MSG_RING };
	msg.segs[0] = (struct exs_seg){ .addr = 1, .key = 1, .len = size };
	return exs_engine_rx_msg(e, &msg, &eager_rcv);
}

static int indirect(struct exs_engine *e, u32 len)
{
	return exs_engine_rx_imm(e, exs_imm(EXS_IMM_INDIRECT, len));
}

static void test_ring_violations(void)
{
	start();
	EXPECT(say_ring(&a, EXS_MSG_RING, 1000) == -EPROTO);	/* not offered */
	announce_ring(1000);
	EXPECT(indirect(&b, 100) == -EPROTO);	/* there is one, but it was not described */
	start_ring(1000);
	EXPECT(say_ring(&a, EXS_MSG_RING, 1000) == -EPROTO);	/* a second one */
	EXPECT(say_ring(&a, EXS_MSG_SPACE, 161) == -EPROTO);
	EXPECT(!say_ring(&a, EXS_MSG_SPACE, 160) && a.ring_space == 1000);
	EXPECT(indirect(&b, 0) == -EPROTO);
	EXPECT(indirect(&b, 831) == -EPROTO && !indirect(&b, 830));
	start_ring(1000);
	EXPECT(!indirect(&b, 500));
	exs_engine_reading(&b);
	exs_engine_read(&b, 160);
	/* 330 after the last, and 160 that were read, but not returned. */
	EXPECT(indirect(&b, 321) == -EPROTO && !indirect(&b, 320));
	EXPECT(indirect(&b, 1) == -EPROTO);
	start_ring(1000);
	say_ring(&b, EXS_MSG_FIN, 0);
	EXPECT(indirect(&b, 1) == -EPROTO);
}

/*
 * A kept message, copied at once, does not end its receive before one whose message is still
 * being copied.
 */
static void test_ring_kept_behind(void)
{
	start_ring(1000);
	exs_engine_reading(&b);
	exs_engine_read(&b, 160);
	recv_on(&b, &rcv[0], 150, 0);
	send_on(&a, &snd[0], 150);
	send_on(&a, &snd[1], 5);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 150) && passes(&a, &b, EXS_MSG_EAGER) && !eager_rcv);
	exs_engine_unqueued(&b, 5);
	rcv[1] = (struct exs_rcv){ .len = 10, .filled = 5 };
	exs_engine_recv_kept(&b, &rcv[1]);
	EXPECT(!exs_engine_next_rcv_done(&b) && copies(&b) == 150);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && exs_engine_next_rcv_done(&b) == &rcv[1]);
	EXPECT(rcv[1].filled == 5);
}

/* Unread small messages fill half of their space: a ring, for those that find none in the rest. */
static void test_ring_for_small(void)
{
	u32 i, cost = 100 + EXS_EAGER_OVERHEAD;

	offer_rings();
	for (i = 0; a.space >= cost; i++) {
		EXPECT(b.ring_wanted == (i > EXS_WIRE_EAGER_MIN / cost));
		send_on(&a, &snd[i], 100);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	}
	send_on(&a, &snd[i], 100);
	EXPECT(!next(&a) && b.ring_wanted);
	exs_engine_ring_ready(&b, 1000);
	EXPECT(passes(&b, &a, EXS_MSG_RING) && writes(&a, &b, EXS_IMM_INDIRECT, 100) && keeps(100, 0, 110));
	exs_engine_reading(&b);
	exs_engine_read(&b, 110);
	while (b.used)
		exs_engine_unqueued(&b, 100);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && !next(&b));
	send_on(&a, &snd[0], 100);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !b.nkept && !b.ring_wanted);
}

static void offer_many(void)
{
	a.config.ours.features |= EXS_WIRE_F_MANY;
	a.config.peer.features |= EXS_WIRE_F_MANY;
	b.config.ours.features |= EXS_WIRE_F_MANY;
	b.config.peer.features |= EXS_WIRE_F_MANY;
}

/* An EAGER of one byte that says that another waits. */
static int send_more(u32 number)
{
	static struct exs_msg msg;

	msg = (struct exs_msg){ .type = EXS_MSG_EAGER, .a = number, .b = 1, .c = 1, .len = 1 };
	return exs_engine_rx_msg(&a, &msg, &eager_rcv);
}

/* Both may also send several messages together; @b's ring is empty. */
static void start_many(u32 size)
{
	start_ring(size);
	offer_many();
	exs_engine_reading(&b);
	exs_engine_read(&b, 160);
}

static void sends(u32 n, u32 len)
{
	u32 i;

	for (i = 0; i < n; i++)
		send_on(&a, &snd[i], len);
}

/* The next piece is all of @s, to byte @at of the ring. */
static bool piece(const struct exs_snd *s, u32 at, bool last)
{
	return next(&a) && tx.kind == EXS_TX_WRITE && tx.snd == s && tx.snd_done && tx.len == s->len &&
	       tx.last == last && tx.nsegs == 1 && tx.segs[0].addr == 1 + at;
}

/* @n messages of @len bytes in one transfer, the first at @at. */
static bool writes_many(u32 n, u32 len, u32 at)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!piece(&snd[i], at + i * len, i == n - 1))
			return false;
	return exs_imm_is_many(tx.imm) && exs_imm_count(tx.imm) == n && exs_imm_len(tx.imm) == len &&
	       exs_engine_keeps(&b, tx.imm) <= n && !hand(&b);
}

/* Messages that wait together are one transfer, if they are as long: one immediate, one credit. */
static void test_many(void)
{
	u16 credits;
	u32 rp;

	start_many(1000);
	rp = b.rp;
	sends(3, 50);
	send_on(&a, &snd[3], 51);
	credits = a.credits.have;
	EXPECT(writes_many(3, 50, 160) && a.credits.have == credits - 1 && b.rp == rp + 3);
	EXPECT(keeps(50, 160, 50) && keeps(50, 210, 50) && keeps(50, 260, 80) && !b.nkept);
	EXPECT(a.stats.joined_sends == 2 && b.stats.received_bytes == 300);
	/* The one that made the ring, and these. */
	EXPECT(b.policy.eager_row == 1 + 3);
	/* One alone is eager. */
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.msg.a == rp + 3);
	/* As they are read, their space comes back. */
	EXPECT(b.ring_used == 180);
	exs_engine_reading(&b);
	exs_engine_read(&b, 50);
	exs_engine_reading(&b);
	exs_engine_read(&b, 50);
	EXPECT(b.ring_used == 80 && passes(&b, &a, EXS_MSG_SPACE) && tx.msg.b == 260);
	EXPECT(a.ring_space == 1000 - 80);
}

/* The first go to the receives; one of them is too short, another was advertised. */
static void test_many_received(void)
{
	start_many(1000);
	recv_on(&b, &rcv[0], 40, 0);
	recv_on(&b, &rcv[1], 60, 0);
	sends(4, 50);
	EXPECT(exs_engine_keeps(&b, exs_imm_many(4, 50)) == 2);
	EXPECT(writes_many(4, 50, 160) && b.nkept == 2 && keeps(50, 260, 50) && keeps(50, 310, 90));
	EXPECT(copies(&b) == 90 && b.ring_used == 140);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].flags & EXS_RCV_TRUNCATED);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].filled == 50);
	exs_engine_reading(&b);
	exs_engine_read(&b, 50);
	exs_engine_reading(&b);
	exs_engine_read(&b, 90);
	recv_on(&b, &rcv[0], 60, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 60, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[2], 60, EXS_RCV_DIRECT);
	while (next(&b))
		EXPECT(!hand(&a));
	EXPECT(a.held.count == 3 && b.adverts_out == 3);
	sends(2, 50);
	EXPECT(writes_many(2, 50, 400) && a.held.count == 1 && b.adverts_out == 1);
	EXPECT(copies(&b) == 100 && a.stats.adverts_dropped == 2);
}

/* As they are copied, too: so they can go on together. */
static void test_many_go_on(void)
{
	u32 i, k;

	start_many(16 * 240);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < 4; k++)
			recv_on(&b, &rcv[k], 60, 0);
		sends(4, 50);
		while (next(&a)) {
			EXPECT(!hand(&b) && tx.kind == EXS_TX_WRITE);
			copies(&b);
		}
		while (next(&b))
			EXPECT(!hand(&a));
		for (k = 0; k < 4; k++)
			EXPECT(exs_engine_next_rcv_done(&b) == &rcv[k] && rcv[k].filled == 50);
	}
	EXPECT(a.stats.joined_sends == 20 * 3 && a.stats.eager_msgs == 0);
}

/* Not more than have room, not more than a receiver should wait for, and not across the ring's end. */
static void test_many_bounds(void)
{
	u32 i;

	start_many(1000);
	sends(5, 50);
	EXPECT(writes_many(4, 50, 160));	/* a quarter of the ring */
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	b.nkept = 0;
	start_many(100000);
	a.config.ring_max = b.config.ring_max = 20000;
	sends(20, 3000);
	EXPECT(writes_many(8, 3000, 160));	/* a quarter of the ring */
	start_many(1000000);
	a.config.ring_max = b.config.ring_max = 20000;
	sends(20, 3000);
	EXPECT(writes_many(10, 3000, 160));	/* 32 KiB */
	start_many(100000);
	sends(20, 1);
	EXPECT(writes_many(16, 1, 160));
	start_many(1000);
	for (i = 0; i < 4; i++) {
		sends(3, 60);
		EXPECT(writes_many(3, 60, 160 + i * 210));
		b.nkept = 0;
	}
	sends(3, 60);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));	/* the ring is full */
}

/* A send that is part of a transfer goes with it, or fails with the connection. */
static void test_many_ends(void)
{
	start_many(1000);
	sends(4, 50);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]) && exs_engine_next_snd_done(&a) == &snd[1]);
	EXPECT(piece(&snd[0], 160, false));
	EXPECT(!exs_engine_cancel_snd(&a, &snd[0]) && !exs_engine_cancel_snd(&a, &snd[3]));
	EXPECT(piece(&snd[2], 210, false));
	exs_engine_fail(&a, -ETIMEDOUT);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[3] && snd[3].err == -ETIMEDOUT);
	EXPECT(!exs_engine_next_snd_done(&a) && !next(&a));
}

/* A gate, and a peer that does not know of it. */
static void test_many_apart(void)
{
	struct exs_snd gate;

	start_many(1000);
	send_on(&a, &snd[0], 50);
	gate_on(&a, &gate);
	send_on(&a, &snd[1], 50);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !next(&a));
	exs_engine_open(&a, &gate);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	start_many(1000);
	a.config.peer.features &= ~EXS_WIRE_F_MANY;
	sends(2, 50);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && passes(&a, &b, EXS_MSG_EAGER));
}

static void test_many_violations(void)
{
	start_many(1000);
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(1, 50)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(2, 0)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(16, 43)) == -EPROTO);	/* 848 of 840 */
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(16, EXS_IMM_EACH_MAX)) == -EPROTO);
	EXPECT(!exs_engine_rx_imm(&b, exs_imm_many(16, 42)) && b.ring_used == 832);
	start_many(1000);
	b.config.ours.features &= ~EXS_WIRE_F_MANY;
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(2, 50)) == -EPROTO);
	start_many(1000);
	say_ring(&b, EXS_MSG_FIN, 0);
	EXPECT(exs_engine_rx_imm(&b, exs_imm_many(2, 50)) == -EPROTO);
}

/*
 * Small messages that hold up others are worth a ring, if they are many more than the others.
 * Return: whether @b wants one after @n rounds of @count messages of @len bytes, and one of
 * @last_len.
 */
static bool wants_ring(u32 n, u32 count, u32 len, u32 last_len)
{
	bool many = exs_engine_has(&a, EXS_WIRE_F_MANY);
	u32 i;

	while (n--) {
		sends(count, len);
		send_on(&a, &snd[count], last_len);
		for (i = 0; i <= count; i++) {
			u32 next_len = i + 1 < count ? len : last_len;

			EXPECT(next(&a) && tx.kind == EXS_TX_EAGER && !hand(&b));
			EXPECT(tx.msg.c == (many && len && i < count && len == next_len));
			exs_engine_unqueued(&b, tx.len);
			while (next(&b))
				EXPECT(!hand(&a));
		}
		while (next(&a))
			EXPECT(!hand(&b));
	}
	return b.ring_wanted;
}

static void test_ring_for_waiting(void)
{
	offer_rings();
	EXPECT(!wants_ring(100, 15, 5, 5));
	offer_many();
	EXPECT(!wants_ring(200, 1, 5, 5) && !wants_ring(200, 1, 5, 6) && !wants_ring(200, 15, 0, 0));
	EXPECT(!b.eager_waits);
	/* 14 more each time: 126, and then three. */
	EXPECT(!wants_ring(9, 15, 5, 5) && b.eager_waits == 126 && !wants_ring(1, 2, 5, 6));
	EXPECT(b.eager_waits == 125 && wants_ring(1, 4, 7, 7));
	exs_engine_ring_ready(&b, 1000);
	EXPECT(passes(&b, &a, EXS_MSG_RING));
	sends(2, 5);
	EXPECT(writes_many(2, 5, 0));
	start();
	EXPECT(send_more(0) == -EPROTO);
	offer_rings();
	EXPECT(send_more(0) == -EPROTO);
	offer_rings();
	offer_many();
	EXPECT(!send_more(0));
	EXPECT(a.eager_waits == 1);
}

/* A ring that was refused to them is still possible for messages of medium size. */
static void test_ring_refused_to_waiting(void)
{
	offer_rings();
	offer_many();
	EXPECT(wants_ring(10, 15, 5, 5));
	exs_engine_ring_refused(&b);
	EXPECT(!b.ring_wanted && !wants_ring(5, 15, 5, 5));
	send_on(&a, &snd[0], 150);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && b.ring_wanted);
	exs_engine_ring_refused(&b);
	recv_on(&b, &rcv[0], 200, 0);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && writes(&a, &b, EXS_IMM_DIRECT, 150) && !b.ring_wanted);
}

/* There is no ring: nothing changes. */
static void test_ring_refused(void)
{
	start();
	a.config.ours.features = a.config.peer.features = EXS_WIRE_F_MESSAGE_RING;
	b.config.ours.features = b.config.peer.features = EXS_WIRE_F_MESSAGE_RING;
	b.config.ring_max = 200;
	send_on(&a, &snd[0], 150);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && b.ring_wanted);
	exs_engine_ring_refused(&b);
	EXPECT(!b.ring_wanted && !next(&b));
	recv_on(&b, &rcv[0], 200, 0);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && writes(&a, &b, EXS_IMM_DIRECT, 150) && !b.ring_wanted);
}

static void test_empty_receive(void)
{
	start();
	recv_on(&b, &rcv[0], 0, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !tx.msg.nsegs);
	send_on(&a, &snd[0], 500);
	EXPECT(writes(&a, &b, EXS_IMM_TRUNCATED, 0) && !tx.nsegs && tx.snd_done);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0]);
}

int main(void)
{
	static const struct test tests[] = {
		{ "eager", test_eager },
		{ "direct and truncated", test_direct_and_truncated },
		{ "announced", test_announced },
		{ "an announcement taken back", test_withdrawn },
		{ "... with a receive made for it", test_withdrawn_fetch },
		{ "... with other receives", test_withdrawn_receives },
		{ "limit tuned", test_tuned },
		{ "adverts held", test_adverts_held },
		{ "eager space", test_eager_space },
		{ "cancel", test_cancel },
		{ "cancel after the end", test_cancel_after_the_end },
		{ "a stale advert", test_stale_advert },
		{ "a gate", test_gate },
		{ "FIN", test_fin },
		{ "violations", test_violations },
		{ "an empty receive", test_empty_receive },
		{ "ahead in a ring", test_ring_ahead },
		{ "ring for small messages", test_ring_for_small },
		{ "a ring wraps", test_ring_wraps },
		{ "order with a ring", test_ring_order },
		{ "kept, behind a copy", test_ring_kept_behind },
		{ "a ring refused", test_ring_refused },
		{ "violations of a ring", test_ring_violations },
		{ "messages that wait go together", test_many },
		{ "... to receives", test_many_received },
		{ "... up to bounds", test_many_bounds },
		{ "... again and again", test_many_go_on },
		{ "... and end", test_many_ends },
		{ "... or apart", test_many_apart },
		{ "violations of those", test_many_violations },
		{ "a ring for messages that wait", test_ring_for_waiting },
		{ "... refused to them", test_ring_refused_to_waiting },
	};

	return RUN_TESTS("message", tests);
}
