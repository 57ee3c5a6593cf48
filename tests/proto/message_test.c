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

/* The announced send is taken back: so is the announcement. */
static void test_withdrawn(void)
{
	start();
	send_on(&a, &snd[0], 5000);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST));
	EXPECT(exs_engine_cancel_snd(&a, &snd[0]));
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !exs_engine_readable(&b));
	send_on(&a, &snd[1], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && exs_engine_readable(&b) == 300);
}

/* The limit is raised, and lowered: what was announced goes eagerly, or the other way. */
static void test_tuned(void)
{
	start();
	send_on(&a, &snd[0], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && exs_engine_readable(&b) == 300);
	exs_engine_tune(&a, 300, EXS_ADVERTS_MAX);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !exs_engine_readable(&b));
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && tx.msg.b == 300 && !next(&a));
	exs_engine_tune(&a, 299, EXS_ADVERTS_MAX);
	send_on(&a, &snd[1], 300);
	EXPECT(passes(&a, &b, EXS_MSG_REQUEST) && !next(&a));
	/* Too much to ask for. */
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
	/* Out of space, an advert helps as well. */
	for (i = 0; i < n - 1; i++)
		exs_engine_unqueued(&b, 100);
	EXPECT(passes(&b, &a, EXS_MSG_SPACE) && !next(&b));
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && passes(&a, &b, EXS_MSG_EAGER));
	exs_engine_unqueued(&b, 100);
	EXPECT(!next(&b));	/* too little to be worth a message */
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

/* What ended before it could be cancelled, ended as it did. */
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

/* One whose bytes are not there yet; it may have none. */
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
	/* What was read, but not returned, is not free, either. */
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
		{ "limit tuned", test_tuned },
		{ "eager space", test_eager_space },
		{ "cancel", test_cancel },
		{ "cancel after the end", test_cancel_after_the_end },
		{ "a stale advert", test_stale_advert },
		{ "a gate", test_gate },
		{ "FIN", test_fin },
		{ "violations", test_violations },
		{ "an empty receive", test_empty_receive },
	};

	return RUN_TESTS("message", tests);
}
