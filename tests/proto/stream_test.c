// SPDX-License-Identifier: GPL-2.0
#include "pair.h"

static struct exs_snd snd[8];
static struct exs_rcv rcv[8];

static void start(void)
{
	pair_init(EXS_WIRE_STREAM, 64);
}

/* Give b a ring, and tell a of it. */
static void start_ring(u32 size)
{
	start();
	send_on(&a, &snd[7], 1);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	EXPECT(b.ring_wanted);
	exs_engine_ring_ready(&b, size);
	EXPECT(!b.ring_wanted && passes(&b, &a, EXS_MSG_RING));
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 1) && tx.snd_done);
	recv_on(&b, &rcv[7], 1, 0);
	EXPECT(copies(&b) == 1 && exs_engine_next_rcv_done(&b) == &rcv[7]);
}

static void test_direct(void)
{
	start();
	recv_on(&b, &rcv[0], 100, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !tx.msg.flags);
	send_on(&a, &snd[0], 60);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 60) && tx.snd_done);
	EXPECT(tx.nsegs == 1 && tx.segs[0].addr == 100000 && tx.segs[0].len == 60);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].filled == 60);
	EXPECT(a.stats.direct_bytes == 60 && a.stats.direct_writes == 1);
}

static void test_waitall_windows(void)
{
	start();
	rcv[0] = (struct exs_rcv){ .len = 10, .max_window = 4, .max_segs = 1,
				   .flags = EXS_RCV_DIRECT | EXS_RCV_WAITALL };
	exs_engine_recv(&b, &rcv[0]);
	recv_on(&b, &rcv[1], 5, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !next(&b));
	send_on(&a, &snd[0], 3);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 3));
	send_on(&a, &snd[1], 1);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 1) && tx.segs[0].addr == 10003);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.msg.segs[0].addr == 10004);
	send_on(&a, &snd[2], 4);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 4));
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.msg.segs[0].len == 2);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[1]);
	send_on(&a, &snd[3], 2);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 2));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].filled == 10);
}

/* Receives for 0 bytes end behind those before them, and take no bytes from those behind them. */
static void test_nothing_in_turn(void)
{
	int i;

	start();
	for (i = 0; i < 5; i++)
		recv_on(&b, &rcv[i], i % 2 ? 0 : 10, EXS_RCV_DIRECT);
	EXPECT(!exs_engine_next_rcv_done(&b));
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[0] && !next(&b));
	send_on(&a, &snd[0], 4);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 4));
	exs_engine_settle(&b);
	for (i = 0; i < 2; i++)
		EXPECT(exs_engine_next_rcv_done(&b) == &rcv[i]);
	EXPECT(!exs_engine_next_rcv_done(&b));
	exs_engine_cancel_rcv(&b, &rcv[2]);
	exs_engine_settle(&b);
	for (i = 2; i < 4; i++)
		EXPECT(exs_engine_next_rcv_done(&b) == &rcv[i]);
	EXPECT(!exs_engine_next_rcv_done(&b));
	recv_on(&b, &rcv[5], 0, 0);
	EXPECT(!exs_engine_next_rcv_done(&b));
	exs_engine_cancel_rcv(&b, &rcv[5]);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[5] && rcv[5].err == -ECANCELED);
}

/* A transfer in pieces over segments; nothing is sent between them. */
static void test_pieces(void)
{
	start();
	recv_on(&b, &rcv[0], 10000, EXS_RCV_DIRECT);
	EXPECT(next(&b) && tx.kind == EXS_TX_ADVERT);
	tx.msg.nsegs = 2;
	tx.msg.segs[0].len = 5000;
	tx.msg.segs[1] = (struct exs_seg){ .addr = 7, .key = 3, .len = 5000 };
	EXPECT(!hand(&a));
	send_on(&a, &snd[0], 9000);
	EXPECT(next(&a) && !tx.last && tx.len == 4096 && tx.nsegs == 1);
	EXPECT(!hand(&b));
	recv_on(&a, &rcv[1], 10, EXS_RCV_DIRECT);
	EXPECT(next(&a) && tx.kind == EXS_TX_WRITE && tx.nsegs == 2 && tx.offset == 4096);
	EXPECT(tx.segs[0].len == 904 && tx.segs[1].len == 4096 - 904);
	EXPECT(next(&a) && tx.last && tx.snd_done && tx.len == 808);
	EXPECT(tx.segs[0].addr == 7 + 4096 - 904);
	EXPECT(!hand(&b) && rcv[0].filled == 9000);
	EXPECT(passes(&a, &b, EXS_MSG_ADVERT));
}

/* A send whose memory needs smaller pieces. */
static void test_own_pieces(void)
{
	start();
	recv_on(&b, &rcv[0], 20000, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 5000);
	snd[0].max_piece = 4096;
	send_on(&a, &snd[1], 9000);
	snd[1].max_piece = 8192;
	send_on(&a, &snd[2], 6000);
	EXPECT(exs_engine_next_tx(&a, 6000, &tx) && tx.len == 4096 && !tx.last);
	EXPECT(exs_engine_next_tx(&a, 6000, &tx) && tx.len == 904 && !tx.last && tx.snd_done);
	EXPECT(exs_engine_next_tx(&a, 6000, &tx) && tx.len == 6000 && tx.snd == &snd[1]);
	EXPECT(exs_engine_next_tx(&a, 6000, &tx) && tx.len == 3000 && !tx.last);
	EXPECT(exs_engine_next_tx(&a, 6000, &tx) && tx.len == 6000 && tx.snd == &snd[2]);
}

/* The next transfer is one of @len bytes, in however many pieces. */
static bool writes_all(u32 len)
{
	u32 n = 0;

	do {
		if (!next(&a) || tx.kind != EXS_TX_WRITE)
			return false;
	} while (!tx.last && n++ < 20);
	return tx.last && exs_imm_len(tx.imm) == len && !hand(&b);
}

/* The next piece is the whole of @s, and the transfer's last or not. */
static bool piece(const struct exs_snd *s, u64 addr, bool last)
{
	return next(&a) && tx.kind == EXS_TX_WRITE && tx.snd == s && !tx.offset && tx.len == s->len &&
	       tx.snd_done && tx.last == last && tx.nsegs == 1 && tx.segs[0].addr == addr;
}

/* Sends that wait together are one transfer: one immediate, one credit. */
static void test_gathered(void)
{
	u16 credits;

	start_ring(200);
	send_on(&a, &snd[0], 10);
	send_on(&a, &snd[1], 20);
	send_on(&a, &snd[2], 5);
	send_on(&a, &snd[3], 200);
	credits = a.credits.have;
	EXPECT(piece(&snd[0], 2, false) && piece(&snd[1], 12, false) && piece(&snd[2], 32, true));
	EXPECT(a.credits.have == credits - 1 && exs_imm_len(tx.imm) == 35 && !hand(&b));
	EXPECT(a.sp == 1 + 35 && exs_engine_readable(&b) == 35 && a.stats.indirect_writes == 2);
	/* One that does not fit whole begins the next. */
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 200 - 36) && !tx.snd_done);
	recv_on(&b, &rcv[0], 100, 0);
	recv_on(&b, &rcv[1], 100, 0);
	EXPECT(copies(&b) == 199);
	/* Its rest goes with those behind it, also into a receive. */
	EXPECT(passes(&b, &a, EXS_MSG_SPACE));
	send_on(&a, &snd[4], 1);
	EXPECT(next(&a) && tx.snd == &snd[3] && tx.offset == 164 && tx.len == 36 && !tx.last);
	EXPECT(piece(&snd[4], 37, true) && exs_imm_len(tx.imm) == 37 && !hand(&b));
}

static void test_gathered_direct(void)
{
	u32 i;

	start();
	recv_on(&b, &rcv[0], 29, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 20, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && passes(&b, &a, EXS_MSG_ADVERT));
	for (i = 0; i < 4; i++)
		send_on(&a, &snd[i], 10);
	EXPECT(piece(&snd[0], 29000, false) && piece(&snd[1], 29010, true));
	EXPECT(!hand(&b) && rcv[0].filled == 20);
	EXPECT(piece(&snd[2], 20000, false) && piece(&snd[3], 20010, true));
	EXPECT(!hand(&b) && rcv[1].filled == 20);
}

/* A send that is part of a transfer goes with it, or fails with the connection. */
static void test_gathered_ends(void)
{
	u32 i;

	start_ring(200);
	for (i = 0; i < 5; i++)
		send_on(&a, &snd[i], 10);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]) && exs_engine_next_snd_done(&a) == &snd[1]);
	EXPECT(piece(&snd[0], 2, false));
	EXPECT(!exs_engine_cancel_snd(&a, &snd[0]) && !exs_engine_cancel_snd(&a, &snd[2]));
	EXPECT(!exs_engine_cancel_snd(&a, &snd[3]) && !exs_engine_cancel_snd(&a, &snd[4]));
	EXPECT(!exs_engine_last_snd(&a));
	send_on(&a, &snd[5], 10);
	EXPECT(exs_engine_cancel_snd(&a, &snd[5]) && exs_engine_next_snd_done(&a) == &snd[5]);
	EXPECT(piece(&snd[2], 12, false));
	exs_engine_fail(&a, -ETIMEDOUT);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[3] && snd[3].err == -ETIMEDOUT);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[4] && snd[4].err == -ETIMEDOUT);
	EXPECT(!exs_engine_next_snd_done(&a) && !next(&a));
}

/* Neither more bytes nor more sends than a receiver should wait for. */
static void test_gathered_bounds(void)
{
	static struct exs_snd many[40];
	u32 i, n;

	start_ring(200000);
	for (i = 0; i < 3; i++)
		send_on(&a, &snd[i], 16384);
	EXPECT(writes_all(32768) && writes_all(16384));
	for (i = 0; i < 40; i++)
		send_on(&a, &many[i], 1);
	for (n = 40; n; n -= min(n, 16u))
		EXPECT(writes_all(min(n, 16u)));
	EXPECT(!next(&a));
}

/* How long a ring waited for memory says nothing of a round trip. */
static void test_late_ring(void)
{
	start();
	exs_engine_clock(&a, 1000000000, 0);
	send_on(&a, &snd[0], 2000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	exs_engine_clock(&a, 11000000000, 0);
	exs_engine_ring_ready(&b, 65536);
	EXPECT(passes(&b, &a, EXS_MSG_RING));
	EXPECT(a.policy.round_trip <= 100000000);
}

/* A send that waits may grow; one that has begun may not. */
static void test_last(void)
{
	start_ring(16);
	EXPECT(!exs_engine_last_snd(&a));
	send_on(&a, &snd[0], 10);
	EXPECT(exs_engine_last_snd(&a) == &snd[0]);
	send_on(&a, &snd[1], 1);
	EXPECT(exs_engine_last_snd(&a) == &snd[1]);
	snd[1].len += 8;
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 10) && exs_engine_last_snd(&a) == &snd[1]);
	/* Of nine bytes, as many as there is room for. */
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 5) && !tx.snd_done && !exs_engine_last_snd(&a));
	recv_on(&b, &rcv[0], 100, 0);
	EXPECT(copies(&b) == 15);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && writes(&a, &b, EXS_IMM_INDIRECT, 4));
	EXPECT(tx.snd_done && !exs_engine_last_snd(&a));
	gate_on(&a, &snd[2]);
	EXPECT(!exs_engine_last_snd(&a));
}

static void test_switch_and_back(void)
{
	start_ring(16);
	send_on(&a, &snd[0], 4);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 4));
	EXPECT(exs_engine_readable(&b) == 4);
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(!next(&b));	/* not while the ring holds bytes */
	EXPECT(copies(&b) == 4 && rcv[0].filled == 4);
	/* Enough space is returned alone, the rest with the advert. */
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == 5 && a.space == 16);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	EXPECT(tx.msg.flags == (EXS_MSG_F_FIRST | EXS_MSG_F_WAITALL) && tx.msg.b == 5);
	EXPECT(tx.msg.segs[0].addr == 8004 && !tx.msg.c);
	send_on(&a, &snd[1], 4);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 4));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0]);
}

static int send_raw(struct exs_engine *e, u8 type, u32 x, u32 y, u32 z)
{
	static struct exs_msg msg;

	msg = (struct exs_msg){ .type = type, .a = x, .b = y, .c = z, .nsegs = 1 };
	msg.segs[0].len = 8;
	return exs_engine_rx_msg(e, &msg, &eager_rcv);
}

/* Advert and INDIRECT cross: the whole phase is void. */
static void test_crossing(void)
{
	static struct exs_tx late;

	start_ring(16);
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 8, EXS_RCV_DIRECT);
	EXPECT(next(&b) && tx.kind == EXS_TX_ADVERT);
	late = tx;
	send_on(&a, &snd[0], 2);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 2));
	tx = late;
	EXPECT(!hand(&a) && a.stats.adverts_dropped == 1 && !a.held.count);
	EXPECT(copies(&b) == 2 && exs_engine_next_rcv_done(&b) == &rcv[0]);
	/* It does not guess again at once; on request it advertises. */
	EXPECT(!next(&b) && !send_raw(&b, EXS_MSG_REQUEST, 0, 0, 0));
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && tx.rcv == &rcv[1]);
	EXPECT(tx.msg.flags & EXS_MSG_F_FIRST && a.held.count == 1);
}

static void test_ring_wraps(void)
{
	u32 off, n;

	start_ring(8);	/* read_pos is 1 */
	send_on(&a, &snd[0], 9);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 7) && tx.segs[0].addr == 2);
	EXPECT(!next(&a) && a.stats.ring_stalls >= 1);
	recv_on(&b, &rcv[0], 100, EXS_RCV_READER | EXS_RCV_WAITALL);
	EXPECT(exs_engine_peek(&b, &rcv[0], 0, &off) == 7 && off == 1);
	exs_engine_consume(&b, &rcv[0], 5);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == 6);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 2) && tx.snd_done && tx.segs[0].addr == 1);
	EXPECT(exs_engine_peek(&b, &rcv[0], 0, &off) == 2 && off == 6);
	n = exs_engine_peek(&b, &rcv[0], 2, &off);
	EXPECT(n == 2 && off == 0);
	exs_engine_remove_reader(&b, &rcv[0]);
	exs_engine_remove_reader(&b, &rcv[0]);
	EXPECT(!exs_engine_peek(&b, &rcv[0], 0, &off));
}

static void test_cancel(void)
{
	start();
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT);
	recv_on(&b, &rcv[1], 8, 0);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	exs_engine_cancel_rcv(&b, &rcv[1]);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].err == -ECANCELED);
	exs_engine_cancel_rcv(&b, &rcv[0]);
	EXPECT(!exs_engine_next_rcv_done(&b));
	EXPECT(passes(&b, &a, EXS_MSG_REVOKE) && !a.held.count);
	send_on(&a, &snd[0], 2);
	EXPECT(passes(&a, &b, EXS_MSG_ANSWER));	/* before any data */
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].err == -ECANCELED);
	EXPECT(b.stats.revokes == 1 && !next(&b));
}

/* Data is faster than a pending cancel. */
static void test_cancel_late(void)
{
	start();
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 2);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 2));
	exs_engine_cancel_rcv(&b, &rcv[0]);
	EXPECT(passes(&b, &a, EXS_MSG_REVOKE));
	EXPECT(passes(&a, &b, EXS_MSG_ANSWER));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0]);
	EXPECT(!rcv[0].err && rcv[0].filled == 2);
}

static void test_cancel_send(void)
{
	start();
	send_on(&a, &snd[0], 10000);
	send_on(&a, &snd[1], 5);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]));
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && snd[1].err == -ECANCELED);
	recv_on(&b, &rcv[0], 6000, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	EXPECT(next(&a) && tx.kind == EXS_TX_WRITE && !tx.last);
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]) && !exs_engine_next_snd_done(&a));
	EXPECT(next(&a) && tx.last && !tx.snd_done);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && snd[0].taken == 6000);
}

/* Later sends, and FIN, wait for the sends at a gate's place. */
static void test_gate(void)
{
	start_ring(64);
	send_on(&a, &snd[0], 3);
	gate_on(&a, &snd[1]);
	send_on(&a, &snd[2], 4);
	exs_engine_shutdown(&a);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 3) && !next(&a));
	send_at(&a, &snd[3], &snd[1], 5);
	send_at(&a, &snd[4], &snd[1], 6);
	EXPECT(next(&a) && tx.snd == &snd[3] && tx.len == 5);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 11) && tx.snd == &snd[4]);
	EXPECT(!next(&a) && !exs_engine_next_snd_done(&a));
	exs_engine_open(&a, &snd[1]);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && !snd[1].err && !snd[1].gate);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 4) && tx.snd == &snd[2]);
	EXPECT(passes(&a, &b, EXS_MSG_FIN));
}

/* A gate alone asks nothing of the peer. It is cancelled and fails like a send. */
static void test_gate_alone(void)
{
	start();
	gate_on(&a, &snd[0]);
	gate_on(&a, &snd[1]);
	EXPECT(!next(&a));
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]));
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && snd[0].err == -ECANCELED);
	EXPECT(!snd[0].gate && !next(&a));
	exs_engine_fail(&a, -ECONNRESET);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && snd[1].err == -ECONNRESET);
	EXPECT(!snd[1].gate);
}

static void test_fin(void)
{
	start_ring(8);
	send_on(&a, &snd[0], 3);
	exs_engine_shutdown(&a);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 3));
	EXPECT(passes(&a, &b, EXS_MSG_FIN) && !exs_engine_eof(&b));
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	recv_on(&b, &rcv[1], 8, EXS_RCV_READER);
	EXPECT(copies(&b) == 3 && exs_engine_eof(&b));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].filled == 3);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].flags & EXS_RCV_EOF);
	recv_on(&b, &rcv[2], 8, 0);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[2] && !rcv[2].err);
	send_on(&a, &snd[1], 1);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && snd[1].err == -EPIPE);
}

static void test_fail(void)
{
	start_ring(8);
	send_on(&a, &snd[0], 3);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 3));
	send_on(&b, &snd[1], 3);
	exs_engine_fail(&b, -ECONNRESET);
	exs_engine_fail(&b, -EIO);
	EXPECT(exs_engine_next_snd_done(&b) == &snd[1] && snd[1].err == -ECONNRESET);
	EXPECT(!next(&b));
	/* Received bytes can still be read, as after a reset of TCP. */
	recv_on(&b, &rcv[0], 8, 0);
	EXPECT(copies(&b) == 3 && exs_engine_next_rcv_done(&b) == &rcv[0]);
	EXPECT(!rcv[0].err && rcv[0].filled == 3);
	recv_on(&b, &rcv[1], 8, 0);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].err == -ECONNRESET);
}

/* Receives that wait when the connection ends first get the bytes in the ring. */
static void test_fail_with_readers(void)
{
	u32 off;

	start_ring(8);
	recv_on(&b, &rcv[0], 8, EXS_RCV_READER);
	recv_on(&b, &rcv[1], 8, 0);
	send_on(&a, &snd[0], 3);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 3));
	exs_engine_fail(&b, -ECONNRESET);
	EXPECT(!exs_engine_next_rcv_done(&b));
	EXPECT(exs_engine_peek(&b, &rcv[0], 0, &off) == 3);
	exs_engine_consume(&b, &rcv[0], 2);
	exs_engine_remove_reader(&b, &rcv[0]);
	EXPECT(copies(&b) == 1);
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[1] && rcv[1].filled == 1);
}

static void test_fail_mid_transfer(void)
{
	start();
	recv_on(&b, &rcv[0], 6000, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 6000);
	EXPECT(next(&a) && !tx.last);
	exs_engine_fail(&a, -ETIMEDOUT);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && snd[0].err == -ETIMEDOUT);
	EXPECT(!exs_engine_next_snd_done(&a) && !next(&a));
}

static void test_violations(void)
{
	start();
	EXPECT(send_raw(&a, EXS_MSG_RING, 0, 8, 0) == -EPROTO);	/* not requested */
	EXPECT(send_raw(&a, EXS_MSG_SPACE, 0, 0, 1) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_ANSWER, 0, 0, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_REVOKE, 2, 0, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_ADVERT, 2, 0, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_ADVERT, 1, 0, 0) == -EPROTO);
	EXPECT(send_raw(&a, EXS_MSG_EAGER, 0, 0, 0) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_DIRECT, 1)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_INDIRECT, 1)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, 0xffffffff) == -EPROTO);
	EXPECT(!send_raw(&a, EXS_MSG_REVOKE, 0, 0, 0));
	EXPECT(send_raw(&a, EXS_MSG_REVOKE, 0, 0, 0) == -EPROTO);
	start_ring(8);
	EXPECT(send_raw(&a, EXS_MSG_RING, 0, 8, 0) == -EPROTO);	/* twice */
	EXPECT(send_raw(&b, EXS_MSG_REQUEST, 0, 1, 0) == -EPROTO);
	/* Eight bytes, contiguous, from offset 1: seven at most. */
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 8)) == -EPROTO);
	EXPECT(!send_raw(&b, EXS_MSG_FIN, 0, 0, 0));
	EXPECT(send_raw(&b, EXS_MSG_FIN, 0, 0, 0) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 1)) == -EPROTO);
}

/* A DIRECT that is one byte too long, or for a receive with a void advert. */
static void test_direct_violations(void)
{
	start();
	recv_on(&a, &rcv[0], 8, EXS_RCV_DIRECT);
	EXPECT(next(&a) && tx.kind == EXS_TX_ADVERT);
	EXPECT(exs_engine_rx_imm(&a, exs_imm(EXS_IMM_DIRECT, 9)) == -EPROTO);
	start_ring(8);
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT);
	EXPECT(next(&b) && tx.kind == EXS_TX_ADVERT);
	EXPECT(!exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 2)));
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_DIRECT, 1)) == -EPROTO);
}

/* Bytes over others that were not returned, and bytes after the ring's end. */
static void test_ring_violations(void)
{
	start_ring(8);
	EXPECT(!exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 7)));
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 1)) == -EPROTO);
	start_ring(8);
	b.freed = 0;
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 8)) == -EPROTO);
	EXPECT(!exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 7)));
}

/* A ring that is longer, or shorter, than all its segments. */
static void test_ring_of_another_length(void)
{
	u32 len;

	for (len = 7; len <= 9; len++) {
		start();
		send_on(&a, &snd[0], 1);
		EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
		EXPECT(send_raw(&a, EXS_MSG_RING, 0, len, 0) == (len == 8 ? 0 : -EPROTO));
	}
}

static void test_empty(void)
{
	start();
	recv_on(&a, &rcv[0], 0, 0);
	EXPECT(exs_engine_next_rcv_done(&a) == &rcv[0] && !rcv[0].err);
	send_on(&a, &snd[0], 0);
	EXPECT(exs_engine_next_snd_done(&a) == &snd[0] && !snd[0].err);
	EXPECT(!exs_engine_cancel_snd(&a, &snd[0]));
	/* It may be cancelled as long as its owner does not know that it has ended. */
	send_on(&a, &snd[1], 0);
	EXPECT(exs_engine_cancel_snd(&a, &snd[1]));
	EXPECT(exs_engine_next_snd_done(&a) == &snd[1] && snd[1].err == -ECANCELED);
}

/* SO_RCVLOWAT: as many as requested. */
static void test_enough(void)
{
	start_ring(16);
	send_on(&a, &snd[0], 4);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 4));
	EXPECT(exs_engine_enough(&b, 4) && !exs_engine_enough(&b, 5));
}

/*
 * The key of a buffer with room left stays; so does the key of a side that never offered the
 * feature.
 */
static void test_invalidate(void)
{
	start();
	a.config.ours.features = EXS_WIRE_F_INVALIDATE;
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 8);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 8) && !tx.invalidate);
	EXPECT(!b.adverts_out && !b.segs_out);
	a.config.peer.features = EXS_WIRE_F_INVALIDATE;
	recv_on(&b, &rcv[1], 8, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[1], 3);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 3) && !tx.invalidate);
	send_on(&a, &snd[2], 5);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 5) && tx.invalidate && tx.key == 2);
}

static void test_too_many_adverts(void)
{
	u32 i;

	start();
	for (i = 0; i < 4; i++)
		EXPECT(!send_raw(&a, EXS_MSG_ADVERT, 0, 0, 0));
	EXPECT(send_raw(&a, EXS_MSG_ADVERT, 0, 0, 0) == -EPROTO);
}

/* We advertise no more than we want, and never more than the peer can hold. */
static void test_adverts_limited(void)
{
	u32 i;

	start();
	exs_engine_tune(&b, 0, 1);
	for (i = 0; i < 6; i++)
		recv_on(&b, &rcv[i], 8, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT) && !next(&b));
	exs_engine_tune(&b, 0, EXS_ADVERTS_MAX);
	for (i = 0; i < 3; i++)
		EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	EXPECT(!next(&b) && b.adverts_out == 4);
}

/* A WRITTEN replaces the immediate on transports that have none. */
static void test_written(void)
{
	start();
	recv_on(&b, &rcv[0], 8, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	EXPECT(!send_raw(&b, EXS_MSG_WRITTEN, exs_imm(EXS_IMM_DIRECT, 5), 0, 0));
	EXPECT(exs_engine_next_rcv_done(&b) == &rcv[0] && rcv[0].filled == 5);
}

/* A large number does not end at once, but in the end all do, in order. */
enum many { OF_FIN, OF_FAIL, OF_CANCEL };

static void many_end(enum many how, int err)
{
	enum { MANY = 3 * EXS_SETTLE_MAX + 1 };
	static struct exs_rcv r[MANY];
	struct exs_rcv *ended;
	int i, n = 0, most = 0, batch;

	start();
	for (i = 0; i < MANY; i++)
		recv_on(&b, &r[i], 1, i < 4 ? EXS_RCV_DIRECT : 0);
	while (passes(&b, &a, EXS_MSG_ADVERT))
		;
	if (how == OF_FIN)
		EXPECT(!send_raw(&b, EXS_MSG_FIN, 0, 0, 0));
	else if (how == OF_FAIL)
		exs_engine_fail(&b, -EIO);
	do {
		if (how == OF_CANCEL)
			exs_engine_cancel_rcvs(&b, EXS_SETTLE_MAX, false);
		for (batch = 0; (ended = exs_engine_next_rcv_done(&b)); batch++, n++)
			EXPECT(ended == &r[n + (how == OF_CANCEL ? 4 : 0)] && ended->err == err);
		most = batch > most ? batch : most;
	} while (exs_engine_settle(&b) || (how == OF_CANCEL && batch));
	EXPECT(n == (how == OF_CANCEL ? MANY - 4 : MANY));
	EXPECT(most <= EXS_SETTLE_MAX && (how != OF_CANCEL || b.cancels == 4));
}

/* Those that the peer may fill come first. */
static void test_cancel_in_order(void)
{
	int i;

	start();
	for (i = 0; i < 5; i++)
		recv_on(&b, &rcv[i], 10, i < 2 ? EXS_RCV_DIRECT : 0);
	while (passes(&b, &a, EXS_MSG_ADVERT))
		;
	EXPECT(!exs_engine_cancel_rcvs(&b, EXS_SETTLE_MAX, true) && b.cancels == 2);
	EXPECT(!exs_engine_cancel_rcvs(&b, EXS_SETTLE_MAX, true) && b.cancels == 2);
	EXPECT(!exs_engine_settle(&b));
	EXPECT(next(&b) && tx.msg.type == EXS_MSG_REVOKE && !hand(&a));
	EXPECT(passes(&a, &b, EXS_MSG_ANSWER) && !b.cancels);
	EXPECT(exs_engine_cancel_rcvs(&b, 2, true));
	EXPECT(!exs_engine_cancel_rcvs(&b, 2, true));
	for (i = 0; i < 5; i++)
		EXPECT(exs_engine_next_rcv_done(&b) == &rcv[i] && rcv[i].err == -ECANCELED);
}

static void test_many_end(void)
{
	many_end(OF_FIN, 0);
	many_end(OF_FAIL, -EIO);
	many_end(OF_CANCEL, -ECANCELED);
}

static void test_many_sends_fail(void)
{
	enum { MANY = 2 * EXS_SETTLE_MAX + 1 };
	static struct exs_snd s[MANY];
	struct exs_snd *ended;
	int i, n = 0, batch;

	start();
	for (i = 0; i < MANY; i++)
		send_on(&a, &s[i], 1);
	exs_engine_fail(&a, -EIO);
	do {
		for (batch = 0; (ended = exs_engine_next_snd_done(&a)); batch++, n++)
			EXPECT(ended == &s[n] && ended->err == -EIO);
		EXPECT(batch <= EXS_SETTLE_MAX);
	} while (exs_engine_settle(&a));
	EXPECT(n == MANY);
}

static void start_eagerly(u32 space)
{
	struct exs_engine_config config;

	start();
	config = a.config;
	config.ours.features = EXS_WIRE_F_STREAM_EAGER;
	config.ours.eager_space = space;
	config.peer = config.ours;
	begin(&config);
}

/*
 * A short send is sent at once, and its space comes back with the next one in the other
 * direction.
 */
static void test_eagerly(void)
{
	start_eagerly(100);
	EXPECT(exs_engine_eager_at(&b) == 0);
	send_on(&a, &snd[0], 60);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.snd_done && tx.len == 60);
	EXPECT(tx.msg.a == 0 && a.ps == 1 && b.pr == 1 && exs_engine_eager_at(&b) == 60);
	recv_on(&b, &rcv[0], 20, 0);
	EXPECT(copies(&b) == 20 && exs_engine_next_rcv_done(&b) == &rcv[0]);
	send_on(&b, &snd[1], 1);
	EXPECT(passes(&b, &a, EXS_MSG_EAGER) && tx.msg.c == 20 && a.space == 60);
	EXPECT(exs_engine_readable(&b) == 40 && !next(&b));
}

/* @from sends @len eager bytes, which @to reads. */
static void says(struct exs_engine *from, struct exs_engine *to, u32 len)
{
	send_on(from, &snd[0], len);
	EXPECT(passes(from, to, EXS_MSG_EAGER));
	recv_on(to, &rcv[0], len, 0);
	EXPECT(copies(to) == len && exs_engine_next_rcv_done(to) == &rcv[0]);
}

/* A request that is answered needs no SPACE, as long as there is space for the longest. */
static void test_eagerly_answered(void)
{
	const u32 space = 2 * EXS_WIRE_DATA_MAX + 32;
	int i;

	start_eagerly(space);
	a.config.eager_max = EXS_WIRE_DATA_MAX;
	for (i = 0; i < 4; i++) {
		says(&a, &b, EXS_WIRE_DATA_MAX);
		EXPECT(!next(&b) && a.space == space - EXS_WIRE_DATA_MAX);
		says(&b, &a, 1);
		EXPECT(!next(&a) && a.space == space);
	}
	says(&a, &b, 1000);
	says(&a, &b, space - EXS_WIRE_DATA_MAX - 1000);
	EXPECT(!next(&b));
	says(&a, &b, 1);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == space - EXS_WIRE_DATA_MAX + 1 && a.space == space);
	/* Of little space half is enough. */
	start_eagerly(100);
	says(&a, &b, 50);
	EXPECT(!next(&b));
	says(&a, &b, 1);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == 51);
}

/* After FIN the peer needs no space. */
static void test_eagerly_until_fin(void)
{
	start_eagerly(100);
	send_on(&a, &snd[0], 90);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN));
	recv_on(&b, &rcv[0], 90, 0);
	EXPECT(copies(&b) == 90 && exs_engine_next_rcv_done(&b) == &rcv[0] && !next(&b));
}

/* Unread bytes leave less space: a quarter of it is returned as soon as that is free. */
static void test_eagerly_unread(void)
{
	const u32 space = 2 * EXS_WIRE_DATA_MAX + 32;

	start_eagerly(space);
	a.config.eager_max = EXS_WIRE_DATA_MAX;
	send_on(&a, &snd[0], EXS_WIRE_DATA_MAX);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	send_on(&a, &snd[1], 500);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	recv_on(&b, &rcv[0], space / 4, 0);
	EXPECT(copies(&b) == space / 4 && exs_engine_next_rcv_done(&b) == &rcv[0] && !next(&b));
	recv_on(&b, &rcv[1], 1, 0);
	EXPECT(copies(&b) == 1 && exs_engine_next_rcv_done(&b) == &rcv[1]);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == space / 4 + 1);
}

/* Eager bytes are read in two pieces where their memory wraps. */
static void test_eagerly_wraps(void)
{
	u32 off;

	start_eagerly(10);
	send_on(&a, &snd[0], 8);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	recv_on(&b, &rcv[0], 8, 0);
	EXPECT(copies(&b) == 8 && exs_engine_next_rcv_done(&b) == &rcv[0]);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && tx.msg.c == 8);
	send_on(&a, &snd[1], 5);
	EXPECT(exs_engine_eager_at(&b) == 8 && passes(&a, &b, EXS_MSG_EAGER));
	recv_on(&b, &rcv[1], 5, EXS_RCV_READER);
	EXPECT(exs_engine_peek(&b, &rcv[1], 0, &off) == 2 && off == (8 | EXS_OFF_EAGER));
	EXPECT(exs_engine_peek(&b, &rcv[1], 2, &off) == 3 && off == EXS_OFF_EAGER);
	exs_engine_consume(&b, &rcv[1], 2);
	EXPECT(exs_engine_peek(&b, &rcv[1], 0, &off) == 3 && off == EXS_OFF_EAGER);
	exs_engine_remove_reader(&b, &rcv[1]);
}

/* Without space the sender requests a ring, and starts again there; nothing is lost. */
static void test_eagerly_until_there_is_a_ring(void)
{
	u32 off;

	start_eagerly(10);
	send_on(&a, &snd[0], 8);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	send_on(&a, &snd[1], 6);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.len == 2 && !tx.snd_done);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && b.ring_wanted && !next(&a));
	exs_engine_ring_ready(&b, 64);
	recv_on(&b, &rcv[0], 3, 0);
	EXPECT(copies(&b) == 3);
	EXPECT(passes(&b, &a, EXS_MSG_RING) && a.space == 64 && !b.freed);
	EXPECT(writes(&a, &b, EXS_IMM_INDIRECT, 4) && tx.snd_done && a.space == 60);
	recv_on(&b, &rcv[1], 11, EXS_RCV_READER);
	EXPECT(exs_engine_peek(&b, &rcv[1], 0, &off) == 7 && off == (3 | EXS_OFF_EAGER));
	EXPECT(exs_engine_peek(&b, &rcv[1], 7, &off) == 4 && off == 0);
	exs_engine_consume(&b, &rcv[1], 7);
	EXPECT(!b.freed && exs_engine_peek(&b, &rcv[1], 0, &off) == 4 && off == 0);
	exs_engine_consume(&b, &rcv[1], 4);
	EXPECT(b.freed == 4 && !exs_engine_readable(&b));
	exs_engine_remove_reader(&b, &rcv[1]);
	/* An advert whose position follows bytes of both kinds. */
	EXPECT(a.eager_lost == 10);
}

/* Long sends request a ring at once, short ones use an advert if there is one. */
static void test_not_eagerly(void)
{
	start_eagerly(1000);
	send_on(&a, &snd[0], 101);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !next(&a));
	start_eagerly(1000);
	recv_on(&b, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 10);
	EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 10));
	start();			/* the peer does not offer it */
	send_on(&a, &snd[0], 10);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !next(&a));
}

static int says_eager(u32 position, u32 len, u32 c)
{
	struct exs_msg m = { .type = EXS_MSG_EAGER, .a = position, .b = len, .len = len,
			     .data = "", .c = c };

	return exs_engine_rx_msg(&b, &m, &eager_rcv);
}

static void test_eager_violations(void)
{
	start();
	EXPECT(says_eager(0, 1, 0) == -EPROTO);
	start_eagerly(10);
	EXPECT(says_eager(1, 1, 0) == -EPROTO);
	start_eagerly(10);
	EXPECT(says_eager(0, 0, 0) == -EPROTO);
	start_eagerly(10);
	EXPECT(says_eager(0, 11, 0) == -EPROTO);
	start_eagerly(10);
	EXPECT(says_eager(0, 1, 1) == -EPROTO);
	start_eagerly(10);
	EXPECT(!says_eager(0, 10, 0) && says_eager(10, 1, 0) == -EPROTO);
	start_eagerly(10);
	EXPECT(exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 1)) == -EPROTO);
}

/* A side that uses the ring sends nothing eagerly any more. */
static void test_eager_after_the_ring(void)
{
	start_eagerly(10);
	send_on(&a, &snd[0], 101);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	exs_engine_ring_ready(&b, 64);
	EXPECT(passes(&b, &a, EXS_MSG_RING));
	EXPECT(!says_eager(0, 1, 0));	/* it may not know of the ring */
	EXPECT(!exs_engine_rx_imm(&b, exs_imm(EXS_IMM_INDIRECT, 1)));
	EXPECT(says_eager(2, 1, 0) == -EPROTO);
}

int main(void)
{
	static const struct test tests[] = {
		{ "direct", test_direct },
		{ "the last send", test_last },
		{ "a ring that comes late", test_late_ring },
		{ "sends that wait go together", test_gathered },
		{ "sends that wait go together into a receive", test_gathered_direct },
		{ "the ends of sends that go together", test_gathered_ends },
		{ "how many sends go together", test_gathered_bounds },
		{ "WAITALL in windows", test_waitall_windows },
		{ "cancelled in order", test_cancel_in_order },
		{ "receives for nothing", test_nothing_in_turn },
		{ "a transfer in pieces", test_pieces },
		{ "pieces of a send's own size", test_own_pieces },
		{ "to the ring and back", test_switch_and_back },
		{ "advert and INDIRECT cross", test_crossing },
		{ "the ring wraps", test_ring_wraps },
		{ "cancel", test_cancel },
		{ "cancel after bytes", test_cancel_late },
		{ "cancel of sends", test_cancel_send },
		{ "a gate", test_gate },
		{ "a gate alone", test_gate_alone },
		{ "FIN", test_fin },
		{ "failure", test_fail },
		{ "failure with readers", test_fail_with_readers },
		{ "failure in a transfer", test_fail_mid_transfer },
		{ "violations", test_violations },
		{ "violations by DIRECT", test_direct_violations },
		{ "violations in the ring", test_ring_violations },
		{ "a ring of another length", test_ring_of_another_length },
		{ "of no bytes", test_empty },
		{ "enough to read", test_enough },
		{ "keys invalidated", test_invalidate },
		{ "too many adverts", test_too_many_adverts },
		{ "adverts limited", test_adverts_limited },
		{ "WRITTEN", test_written },
		{ "eagerly at first", test_eagerly },
		{ "eagerly, and answered", test_eagerly_answered },
		{ "eagerly, with bytes unread", test_eagerly_unread },
		{ "eagerly, and FIN", test_eagerly_until_fin },
		{ "what came eagerly wraps", test_eagerly_wraps },
		{ "eagerly until there is a ring", test_eagerly_until_there_is_a_ring },
		{ "not eagerly", test_not_eagerly },
		{ "violations of EAGER", test_eager_violations },
		{ "EAGER after the ring", test_eager_after_the_ring },
		{ "very many end", test_many_end },
		{ "very many sends fail", test_many_sends_fail },
	};

	return RUN_TESTS("stream", tests);
}
