// SPDX-License-Identifier: GPL-2.0
/*
 * The wire format, in the kernel's own build: an encoded message can be decoded,
 * and nothing malformed passes. (tests/proto goes much further, in user space.)
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "proto/wire.h"

static const struct exs_hello good_hello = {
	.socktype = EXS_WIRE_SEQPACKET,
	.credits = 16,
	.max_adverts = 16,
	.max_segs = 64,
	.recv_len = EXS_WIRE_BUF_LEN,
	.eager_space = 32768,
};

static void hello_round_trip(struct kunit *test)
{
	u8 buf[EXS_WIRE_HELLO_LEN];
	struct exs_hello hello;

	KUNIT_ASSERT_EQ(test, exs_wire_put_hello(buf, sizeof(buf), &good_hello),
			EXS_WIRE_HELLO_LEN);
	KUNIT_ASSERT_EQ(test, exs_wire_get_hello(buf, sizeof(buf), &hello), 0);
	KUNIT_EXPECT_EQ(test, hello.socktype, good_hello.socktype);
	KUNIT_EXPECT_EQ(test, hello.credits, good_hello.credits);
	KUNIT_EXPECT_EQ(test, hello.max_adverts, good_hello.max_adverts);
	KUNIT_EXPECT_EQ(test, hello.max_segs, good_hello.max_segs);
	KUNIT_EXPECT_EQ(test, hello.recv_len, good_hello.recv_len);
	KUNIT_EXPECT_EQ(test, hello.eager_space, good_hello.eager_space);
	KUNIT_EXPECT_EQ(test, hello.features, good_hello.features);
}

/* Little-endian, at fixed places, on every machine. */
static void hello_bytes(struct kunit *test)
{
	static const u8 want[] = { 'E', 'X', 'S', '1', 1, 0, 2, 0, 16, 0, 16, 0, 64, 0, 0, 4 };
	u8 buf[EXS_WIRE_HELLO_LEN];

	exs_wire_put_hello(buf, sizeof(buf), &good_hello);
	KUNIT_EXPECT_EQ(test, memcmp(buf, want, sizeof(want)), 0);
}

static void hello_refused(struct kunit *test)
{
	u8 buf[EXS_WIRE_HELLO_LEN];
	struct exs_hello hello = good_hello;
	unsigned int i;

	hello.credits = EXS_WIRE_CREDITS_MIN - 1;
	KUNIT_EXPECT_LT(test, exs_wire_put_hello(buf, sizeof(buf), &hello), 0);
	exs_wire_put_hello(buf, sizeof(buf), &good_hello);
	for (i = 0; i < sizeof(buf); i++)
		KUNIT_EXPECT_LT(test, exs_wire_get_hello(buf, i, &hello), 0);
	buf[0] ^= 1;
	KUNIT_EXPECT_LT(test, exs_wire_get_hello(buf, sizeof(buf), &hello), 0);
}

static void reject_round_trip(struct kunit *test)
{
	u8 buf[EXS_WIRE_REJECT_LEN];
	int reason;

	for (reason = 1; reason <= EXS_REJECT_MAX; reason++) {
		KUNIT_ASSERT_EQ(test, exs_wire_put_reject(buf, sizeof(buf), reason),
				EXS_WIRE_REJECT_LEN);
		KUNIT_EXPECT_EQ(test, (int)exs_wire_get_reject(buf, sizeof(buf)), reason);
	}
	KUNIT_EXPECT_EQ(test, (int)exs_wire_get_reject(NULL, 0), (int)EXS_REJECT_NONE);
	KUNIT_EXPECT_LT(test, exs_wire_put_reject(buf, sizeof(buf), EXS_REJECT_NONE), 0);
}

static void message_round_trip(struct kunit *test)
{
	struct exs_msg *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct exs_msg *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	u8 buf[256];
	int len;

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_NOT_NULL(test, in);
	out->type = EXS_MSG_ADVERT;
	out->flags = EXS_MSG_F_FIRST;
	out->credits = 3;
	out->a = 2;
	out->b = 0xfffffff0;
	out->c = 77;
	out->nsegs = 2;
	out->segs[0] = (struct exs_seg) { .addr = 0x123, .key = 9, .len = 4096 };
	out->segs[1] = (struct exs_seg) { .addr = 0, .key = 10, .len = 1 };
	len = exs_wire_put_msg(buf, sizeof(buf), out);
	KUNIT_ASSERT_EQ(test, len, EXS_WIRE_HDR_LEN + 2 * EXS_WIRE_SEG_LEN);
	KUNIT_ASSERT_EQ(test, exs_wire_get_msg(buf, len, in), 0);
	KUNIT_EXPECT_EQ(test, in->type, out->type);
	KUNIT_EXPECT_EQ(test, in->flags, out->flags);
	KUNIT_EXPECT_EQ(test, in->credits, out->credits);
	KUNIT_EXPECT_EQ(test, in->b, out->b);
	KUNIT_EXPECT_EQ(test, in->nsegs, 2u);
	KUNIT_EXPECT_EQ(test, in->segs[0].addr, out->segs[0].addr);
	KUNIT_EXPECT_EQ(test, in->segs[1].key, out->segs[1].key);
	KUNIT_EXPECT_LT(test, exs_wire_get_msg(buf, len - 1, in), 0);
	KUNIT_EXPECT_LT(test, exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN - 1, in), 0);
}

/* An accepted message can be encoded again, byte for byte. (With KASAN: no
 * other memory is touched.)
 */
static void message_noise(struct kunit *test)
{
	struct exs_msg *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	unsigned int i, accepted = 0;
	struct rnd_state rnd;
	u8 buf[64], again[64];

	KUNIT_ASSERT_NOT_NULL(test, msg);
	prandom_seed_state(&rnd, 7);
	for (i = 0; i < 200000; i++) {
		u32 len = prandom_u32_state(&rnd) % (sizeof(buf) + 1);

		prandom_bytes_state(&rnd, buf, sizeof(buf));
		buf[0] %= EXS_MSG_MAX + 2;
		buf[1] &= prandom_u32_state(&rnd) & 1 ? 3 : 0;
		buf[3] &= 3;
		if (prandom_u32_state(&rnd) & 1)
			memset(buf + 4, 0, 12);
		if (exs_wire_get_msg(buf, len, msg) || msg->type == EXS_MSG_EAGER)
			continue;
		accepted++;
		if (exs_wire_put_msg(again, sizeof(again), msg) != len ||
		    memcmp(buf, again, len))
			break;
	}
	KUNIT_EXPECT_EQ(test, i, 200000u);
	KUNIT_EXPECT_GT(test, accepted, 0u);
}

static void immediates(struct kunit *test)
{
	u32 imm = exs_imm(EXS_IMM_TRUNCATED, EXS_IMM_LEN_MAX);

	KUNIT_EXPECT_EQ(test, exs_imm_kind(imm), (u32)EXS_IMM_TRUNCATED);
	KUNIT_EXPECT_EQ(test, exs_imm_len(imm), EXS_IMM_LEN_MAX);
	KUNIT_EXPECT_EQ(test, exs_imm_kind(exs_imm(EXS_IMM_DIRECT, 5)), 0u);

	imm = exs_imm_with_credits(exs_imm(EXS_IMM_INDIRECT, EXS_IMM_CREDITED_MAX), 200);
	KUNIT_EXPECT_EQ(test, exs_imm_kind(imm), (u32)EXS_IMM_INDIRECT);
	KUNIT_EXPECT_EQ(test, exs_imm_len(imm), EXS_IMM_CREDITED_MAX);
	KUNIT_EXPECT_EQ(test, exs_imm_credits(imm), 200u);
	KUNIT_EXPECT_EQ(test, exs_imm_credits(exs_imm(EXS_IMM_TRUNCATED, EXS_IMM_LEN_MAX)), 0u);
	KUNIT_EXPECT_EQ(test, exs_imm_with_credits(5, 0), 5u);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(hello_round_trip),
	KUNIT_CASE(hello_bytes),
	KUNIT_CASE(hello_refused),
	KUNIT_CASE(reject_round_trip),
	KUNIT_CASE(message_round_trip),
	KUNIT_CASE_SLOW(message_noise),
	KUNIT_CASE(immediates),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "exs_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);
