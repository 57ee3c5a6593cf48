// SPDX-License-Identifier: GPL-2.0
#include "pair.h"

static struct exs_snd snd[16];
static struct exs_rcv rcv[16];

static void start(u16 credits)
{
	pair_init(EXS_WIRE_SEQPACKET, credits);
}

/* Data leaves two, control one, CREDIT none. */
static void test_reserves(void)
{
	u32 i;

	start(6);
	for (i = 0; i < 6; i++)
		send_on(&a, &snd[i], 1);
	for (i = 0; i < 4; i++)
		EXPECT(next(&a) && tx.kind == EXS_TX_EAGER);
	EXPECT(!next(&a) && a.stats.credit_stalls == 1);
	EXPECT(!next(&a) && a.stats.credit_stalls == 1);
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(next(&a) && tx.kind == EXS_TX_ADVERT && a.credits.have == 1);
	recv_on(&a, &rcv[1], 10, EXS_RCV_DIRECT);
	EXPECT(!next(&a));
	exs_engine_greet(&a);
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_CREDIT && !a.credits.have);
}

static void test_credit_is_due_at_half(void)
{
	u32 i;

	start(8);
	for (i = 0; i < 3; i++) {
		send_on(&a, &snd[i], 1);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
		EXPECT(!next(&b));
	}
	send_on(&a, &snd[3], 1);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	EXPECT(a.credits.have == 4);
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.credits == 4);
	EXPECT(a.credits.have == 8 && b.stats.credits_sent == 1);
	EXPECT(!next(&a) && !next(&b));
}

static void test_any_send_carries_them(void)
{
	start(8);
	send_on(&a, &snd[0], 1);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	send_on(&b, &snd[1], 1);
	EXPECT(passes(&b, &a, EXS_MSG_EAGER) && tx.msg.credits == 1);
	EXPECT(a.credits.have == 8 && b.credits.owed == 0);
}

static void test_greeting(void)
{
	start(4);
	exs_engine_greet(&a);
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT) && !tx.msg.credits);
	EXPECT(!next(&a) && b.credits.owed == 1);
}

/* Violations: more returned than spent, more sent than granted. */
static void test_violations(void)
{
	static struct exs_msg msg = { .type = EXS_MSG_CREDIT, .credits = 1 };
	u32 i;

	start(4);
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
	start(4);
	msg.credits = 0;
	for (i = 0; i < 4; i++)
		EXPECT(!exs_engine_rx_msg(&a, &msg, &eager_rcv));
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
	/* Reposted, but not told: still none to send with. */
	exs_engine_reposted(&a);
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, 0) == -EPROTO);
}

static void test_repost_is_bounded(void)
{
	start(4);
	exs_engine_reposted(&a);
	EXPECT(!a.credits.owed);
}

int main(void)
{
	static const struct test tests[] = {
		{ "reserves for data and control", test_reserves },
		{ "CREDIT at half", test_credit_is_due_at_half },
		{ "any SEND carries credits", test_any_send_carries_them },
		{ "a greeting", test_greeting },
		{ "violations", test_violations },
		{ "no more owed than there are", test_repost_is_bounded },
	};

	return RUN_TESTS("credit", tests);
}
