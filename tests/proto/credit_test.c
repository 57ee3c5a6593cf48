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

static void test_credit_is_due(void)
{
	static const struct { u32 total, due; } cases[] = {
		{ 4, 2 }, { 5, 3 }, { 8, 4 }, { 16, 8 }, { 32, 8 }, { 60, 15 },
	};
	u32 i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		u32 total = cases[i].total, due = cases[i].due, n;

		start(total);
		for (n = 1; n < due; n++) {
			send_on(&a, &snd[n], 1);
			EXPECT(passes(&a, &b, EXS_MSG_EAGER));
			EXPECT(!next(&b));
		}
		send_on(&a, &snd[0], 1);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
		EXPECT(a.credits.have == total - due);
		EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.credits == due);
		EXPECT(a.credits.have == total && b.stats.credits_sent == 1);
		EXPECT(!next(&a) && !next(&b));
	}
}

/* After a CREDIT, such as the greeting, answers alone return what is owed. */
static void test_answers_need_no_credit(void)
{
	u32 i;

	start(5);
	exs_engine_greet(&a);
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT));
	for (i = 0; i < 20; i++) {
		send_on(&a, &snd[0], 1);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER) && !next(&b));
		send_on(&b, &snd[1], 1);
		EXPECT(passes(&b, &a, EXS_MSG_EAGER) && !next(&a));
	}
	EXPECT(a.stats.credits_sent == 1 && !b.stats.credits_sent);
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

/* An answer with data of its own needs no CREDIT. */
static void test_immediate_carries_them(void)
{
	u32 i;

	pair_init(EXS_WIRE_STREAM, 4);
	for (i = 0; i < 8; i++) {
		recv_on(&b, &rcv[0], 10, EXS_RCV_DIRECT);
		EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
		send_on(&a, &snd[0], 10);
		EXPECT(writes(&a, &b, EXS_IMM_DIRECT, 10) && exs_imm_credits(tx.imm) == 1);
		EXPECT(b.credits.have == 4 && exs_engine_next_rcv_done(&b) == &rcv[0]);
	}
	EXPECT(!a.stats.credits_sent && !b.stats.credits_sent);
}

/* An immediate has room for credits up to a mebibyte. */
static void test_long_transfers_carry_none(void)
{
	pair_init(EXS_WIRE_STREAM, 8);
	recv_on(&b, &rcv[0], 1 << 21, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 1 << 20);
	while (next(&a) && !tx.last)
		;
	EXPECT(tx.imm == exs_imm(EXS_IMM_DIRECT, 1 << 20) && a.credits.owed == 1);
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
	/* Reposted, but not announced: no credit to send with. */
	exs_engine_reposted(&a);
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, 0) == -EPROTO);
}

static void test_violations_of_immediates(void)
{
	u32 one = exs_imm(EXS_IMM_DIRECT, 1), mark = (u32)EXS_IMM_CREDITED << 30;

	/* Two adverts, two credits spent. */
	pair_init(EXS_WIRE_STREAM, 4);
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(passes(&a, &b, EXS_MSG_ADVERT));
	recv_on(&a, &rcv[1], 10, EXS_RCV_DIRECT);
	EXPECT(passes(&a, &b, EXS_MSG_ADVERT));
	EXPECT(exs_engine_rx_imm(&a, exs_imm_with_credits(one, 3)) == -EPROTO);
	EXPECT(exs_engine_rx_imm(&a, mark | 1) == -EPROTO);
	EXPECT(!exs_engine_rx_imm(&a, exs_imm_with_credits(one, 1)));
	EXPECT(exs_engine_rx_imm(&a, mark | 3 << 28 | 1 << 20 | 1) == -EPROTO);
	EXPECT(a.credits.have == 4);
}

/* More receives are announced at once, usable at once, and bounded. */
static void test_grows(void)
{
	static struct exs_msg msg = { .type = EXS_MSG_CREDIT };
	u32 i;

	start(4);
	for (i = 0; i < 3; i++)
		send_on(&a, &snd[i], 1);
	EXPECT(next(&a) && next(&a) && !next(&a));
	exs_engine_resize(&b, 100000);
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.a == EXS_WIRE_CREDITS_MAX);
	EXPECT(a.credits.have == EXS_WIRE_CREDITS_MAX - 2 && !next(&b));
	EXPECT(exs_engine_credits(&b) == EXS_WIRE_CREDITS_MAX);
	EXPECT(b.credits.granted == EXS_WIRE_CREDITS_MAX);
	EXPECT(next(&a) && tx.kind == EXS_TX_EAGER);

	start(4);
	for (i = EXS_WIRE_CREDITS_MIN - 1; i; i--) {
		msg.a = i;
		EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
	}
	start(4);
	msg.a = EXS_WIRE_CREDITS_MAX + 1;
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
}

/* Fewer receives: only credits that the peer has spent can be withheld. */
static void test_shrinks(void)
{
	static struct exs_msg msg = { .type = EXS_MSG_CREDIT, .a = 6 };
	u32 i;

	start(8);
	exs_engine_resize(&b, 6);
	EXPECT(!next(&b));
	for (i = 0; i < 2; i++) {
		send_on(&a, &snd[i], 1);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	}
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.a == 6 && !tx.msg.credits);
	EXPECT(exs_engine_credits(&b) == 6 && a.credits.have == 6 && !b.credits.owed);
	/* Credits that the peer holds cannot be taken back. */
	EXPECT(!exs_engine_rx_msg(&a, &msg, &eager_rcv));
	msg.a = 5;
	EXPECT(exs_engine_rx_msg(&a, &msg, &eager_rcv) == -EPROTO);
}

/* Not with the last credit: the withheld number would not be announced again. */
static void test_resizing_leaves_one(void)
{
	start(4);
	a.credits.have = 1;
	exs_engine_resize(&a, 9);
	EXPECT(!next(&a));
	a.credits.have = 2;
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_CREDIT && tx.msg.a == 9);
}

static void test_repost_is_bounded(void)
{
	start(4);
	exs_engine_reposted(&a);
	EXPECT(!a.credits.owed);
}

static void start_confirming(u8 socktype, u16 credits)
{
	pair_init(socktype, credits);
	a.config.confirm = true;
	b.config.confirm = true;
}

/* FIN's credit does not wait for other credits, and earlier ones do not count as FIN's. */
static void fin_is_confirmed(u8 socktype)
{
	start_confirming(socktype, 8);
	recv_on(&a, &rcv[0], 1, EXS_RCV_DIRECT);
	EXPECT(passes(&a, &b, EXS_MSG_ADVERT));
	exs_engine_shutdown(&a);
	EXPECT(!exs_engine_confirmed(&a));
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_FIN);
	EXPECT(!exs_credit_returned(&a, 1) && !exs_engine_confirmed(&a));
	EXPECT(!exs_credit_returned(&a, 1) && exs_engine_confirmed(&a));

	start_confirming(socktype, 8);
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN) && !exs_engine_confirmed(&a) && !exs_engine_all_arrived(&a));
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.credits == 1);
	EXPECT(exs_engine_confirmed(&a) && !exs_engine_confirmed(&b) && exs_engine_all_arrived(&a));
	EXPECT(!next(&a) && !next(&b));
}

static void test_fin_is_confirmed(void)
{
	fin_is_confirmed(EXS_WIRE_STREAM);
	fin_is_confirmed(EXS_WIRE_SEQPACKET);
}

/* Two FINs that cross cause one CREDIT each, and nothing more. */
static void test_both_are_confirmed(void)
{
	static struct exs_msg fin = { .type = EXS_MSG_FIN };

	start_confirming(EXS_WIRE_STREAM, 8);
	exs_engine_shutdown(&a);
	exs_engine_shutdown(&b);
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_FIN);
	EXPECT(passes(&b, &a, EXS_MSG_FIN));
	EXPECT(!exs_engine_rx_msg(&b, &fin, &eager_rcv));
	EXPECT(!next(&b));		/* not posted again yet */
	exs_engine_reposted(&b);
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.credits == 1);
	EXPECT(exs_engine_confirmed(&a) && !exs_engine_confirmed(&b));
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT) && tx.msg.credits == 2);
	EXPECT(exs_engine_confirmed(&b));
	EXPECT(!next(&a) && !next(&b));
}

/* @a sends a transfer next. It arrives with its own credit, whatever follows it. */
static void arrives(void)
{
	EXPECT(!exs_engine_all_arrived(&a));
	exs_engine_greet(&a);
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_CREDIT && !exs_engine_all_arrived(&a));
	while (a.credits.awaited > 1)
		EXPECT(!exs_credit_returned(&a, 1) && !exs_engine_all_arrived(&a));
	EXPECT(!exs_credit_returned(&a, 1) && exs_engine_all_arrived(&a));
	EXPECT(a.credits.have == a.credits.peer_total - 1);
}

static void transfers_arrive(u8 socktype)
{
	pair_init(socktype, 8);
	a.config.peer.eager_space = 100;
	a.space = 100;
	EXPECT(exs_engine_all_arrived(&a));
	send_on(&a, &snd[0], 1);
	EXPECT(next(&a) && tx.kind == EXS_TX_EAGER);
	arrives();
	exs_engine_shutdown(&a);
	EXPECT(next(&a) && tx.msg.type == EXS_MSG_FIN && exs_engine_all_arrived(&a));

	pair_init(socktype, 8);
	recv_on(&b, &rcv[0], 10000, EXS_RCV_DIRECT);
	EXPECT(passes(&b, &a, EXS_MSG_ADVERT));
	send_on(&a, &snd[0], 10000);
	do
		EXPECT(next(&a) && tx.kind == EXS_TX_WRITE);
	while (!tx.last);
	arrives();
}

static void test_transfers_arrive(void)
{
	transfers_arrive(EXS_WIRE_STREAM);
	transfers_arrive(EXS_WIRE_SEQPACKET);
}

/* A message that is sent anyway carries it, and may use the last credit. */
static void test_confirmed_by_any_send(void)
{
	static struct exs_msg fin = { .type = EXS_MSG_FIN };
	u32 i;

	start_confirming(EXS_WIRE_SEQPACKET, 8);
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(passes(&a, &b, EXS_MSG_ADVERT));
	exs_engine_cancel_rcv(&a, &rcv[0]);
	EXPECT(passes(&a, &b, EXS_MSG_REVOKE));
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN));
	EXPECT(passes(&b, &a, EXS_MSG_ANSWER) && tx.msg.credits == 3);
	EXPECT(exs_engine_confirmed(&a) && !next(&b));

	start_confirming(EXS_WIRE_SEQPACKET, 4);
	for (i = 0; i < 2; i++)
		send_on(&b, &snd[i], 1);
	while (next(&b))
		;
	recv_on(&b, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(next(&b) && tx.msg.type == EXS_MSG_ADVERT && b.credits.have == 1);
	EXPECT(!exs_engine_rx_msg(&b, &fin, &eager_rcv));
	exs_engine_reposted(&b);
	EXPECT(next(&b) && tx.msg.type == EXS_MSG_CREDIT && !b.credits.have);
}

/* Where the transport reports arrival, no CREDIT does. */
static void test_confirmed_by_the_transport(void)
{
	start(8);
	EXPECT(exs_engine_confirmed(&a));
	exs_engine_shutdown(&a);
	EXPECT(passes(&a, &b, EXS_MSG_FIN) && exs_engine_confirmed(&a));
	EXPECT(!next(&b));
}

static void start_asking(u16 credits)
{
	start(credits);
	a.config.ours.features = a.config.peer.features = EXS_WIRE_F_ASK;
	b.config.ours.features = b.config.peer.features = EXS_WIRE_F_ASK;
}

/* One message to @a, if it @answers, and three back, for which @b returns credits. */
static void turn(bool answers)
{
	u32 i;

	if (answers) {
		send_on(&b, &snd[3], 1);
		EXPECT(passes(&b, &a, EXS_MSG_EAGER));
	}
	for (i = 0; i < 3; i++) {
		send_on(&a, &snd[i], 1);
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	}
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && !next(&b));
}

/* Answers could take the credits along, if they were not due before: for ever, unless there are more receives. */
static void test_few_are_too_few(void)
{
	u32 i;

	start(5);
	for (i = 0; i < EXS_CREDITS_FEW; i++) {
		EXPECT(!exs_engine_wants_credits(&b));
		turn(true);
	}
	EXPECT(exs_engine_wants_credits(&b) && !b.credits_wanted && !exs_engine_wants_credits(&a));
	exs_engine_resize(&b, 10);
	EXPECT(!exs_engine_wants_credits(&b));
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.a == 10 && !exs_engine_wants_credits(&b));
}

/* A side that only receives sends no other message that could take them along. */
static void test_few_are_enough(void)
{
	u32 i;

	start(5);
	for (i = 0; i < EXS_CREDITS_FEW; i++)
		turn(false);
	EXPECT(!exs_engine_wants_credits(&b));
}

/* Once for each number, by the side that has to wait. */
static void test_asks_for_more(void)
{
	u32 i;

	start_asking(4);
	for (i = 0; i < 9; i++)
		send_on(&a, &snd[i], 1);
	for (i = 0; i < 2; i++)
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT) && tx.msg.b == 4);
	EXPECT(b.credits_wanted && !next(&a));
	b.credits_wanted = false;
	exs_engine_resize(&b, 8);
	EXPECT(passes(&b, &a, EXS_MSG_CREDIT) && tx.msg.a == 8 && !tx.msg.b);
	for (i = 0; i < 6; i++)
		EXPECT(passes(&a, &b, EXS_MSG_EAGER));
	EXPECT(!b.credits_wanted);
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT) && tx.msg.b == 8 && b.credits_wanted);
}

/* Two credits are enough when nothing more waits: no request. */
static void test_asks_only_when_it_waits(void)
{
	start_asking(4);
	send_on(&a, &snd[0], 1);
	send_on(&a, &snd[1], 1);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && passes(&a, &b, EXS_MSG_EAGER));
	EXPECT(a.credits.have == 2 && !next(&a));
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT);
	EXPECT(passes(&a, &b, EXS_MSG_CREDIT) && tx.msg.b == 4);
}

/* After FIN nothing is advertised, so no credits are requested for it. */
static void test_asks_for_nothing_after_fin(void)
{
	static struct exs_msg fin = { .type = EXS_MSG_FIN };

	pair_init(EXS_WIRE_STREAM, 4);
	a.config.ours.features = a.config.peer.features = EXS_WIRE_F_ASK | EXS_WIRE_F_STREAM_EAGER;
	a.config.ours.eager_space = a.eager_room = 2048;
	a.credits.have = 2;
	/* Unread, so the receive does not end with FIN. */
	EXPECT(!exs_engine_rx_msg(&a, &(struct exs_msg){ .type = EXS_MSG_EAGER, .b = 5, .len = 5 }, &eager_rcv));
	recv_on(&a, &rcv[0], 10, EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	EXPECT(exs_credit_ask_due(&a));
	EXPECT(!exs_engine_rx_msg(&a, &fin, &eager_rcv) && exs_rcv_head(&a) == &rcv[0]);
	EXPECT(!exs_credit_ask_due(&a) && !next(&a));
}

/* A peer that does not offer it would not know what it means. */
static void test_asks_nobody_else(void)
{
	u32 i;

	start_asking(4);
	a.config.peer.features = 0;
	for (i = 0; i < 3; i++)
		send_on(&a, &snd[i], 1);
	EXPECT(passes(&a, &b, EXS_MSG_EAGER) && passes(&a, &b, EXS_MSG_EAGER));
	EXPECT(!next(&a));
}

/* A number that was true when it was sent; and a request without the feature. */
static void test_asked_of_another_number(void)
{
	static struct exs_msg ask = { .type = EXS_MSG_CREDIT, .b = 4 };

	start_asking(8);
	EXPECT(!exs_engine_rx_msg(&b, &ask, &eager_rcv) && !b.credits_wanted);
	ask.b = 8;
	EXPECT(!exs_engine_rx_msg(&b, &ask, &eager_rcv) && b.credits_wanted);
	ask.b = EXS_WIRE_CREDITS_MAX + 1;
	EXPECT(exs_engine_rx_msg(&b, &ask, &eager_rcv) == -EPROTO);
	start(8);
	ask.b = 8;
	EXPECT(exs_engine_rx_msg(&b, &ask, &eager_rcv) == -EPROTO);
}

int main(void)
{
	static const struct test tests[] = {
		{ "reserves for data and control", test_reserves },
		{ "CREDIT is due", test_credit_is_due },
		{ "answers need no CREDIT", test_answers_need_no_credit },
		{ "any SEND carries credits", test_any_send_carries_them },
		{ "an immediate carries credits", test_immediate_carries_them },
		{ "a long transfer carries none", test_long_transfers_carry_none },
		{ "a greeting", test_greeting },
		{ "violations", test_violations },
		{ "violations of immediates", test_violations_of_immediates },
		{ "more credits", test_grows },
		{ "fewer credits", test_shrinks },
		{ "a new number leaves one", test_resizing_leaves_one },
		{ "no more owed than there are", test_repost_is_bounded },
		{ "few are too few", test_few_are_too_few },
		{ "few are enough", test_few_are_enough },
		{ "more are asked for once", test_asks_for_more },
		{ "asks only when it waits", test_asks_only_when_it_waits },
		{ "asks for nothing after FIN", test_asks_for_nothing_after_fin },
		{ "asks no peer that does not offer it", test_asks_nobody_else },
		{ "asking of another number", test_asked_of_another_number },
		{ "FIN is confirmed at once", test_fin_is_confirmed },
		{ "transfers arrive with their credits", test_transfers_arrive },
		{ "both FINs are, and once", test_both_are_confirmed },
		{ "by any SEND, or the last credit", test_confirmed_by_any_send },
		{ "not where the transport tells", test_confirmed_by_the_transport },
	};

	return RUN_TESTS("credit", tests);
}
