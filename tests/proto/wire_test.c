// SPDX-License-Identifier: GPL-2.0
#include "test.h"

static const struct exs_hello good = {
	.socktype = EXS_WIRE_SEQPACKET,
	.credits = 0x102,
	.max_adverts = 0x304,
	.max_segs = 0x506,
	.recv_len = 0x708,
	.eager_space = 0x90a0b,
	.features = 0x0c0d0e0f,
};

static u8 buf[EXS_WIRE_BUF_LEN];
static struct exs_msg msg, back;

static void test_hello_bytes(void)
{
	static const u8 bytes[EXS_WIRE_HELLO_LEN] = {
		0x45, 0x58, 0x53, 0x31, 1, 0, 2, 0, 0x02, 0x01, 0x04, 0x03,
		0x06, 0x05, 0x08, 0x07, 0x0b, 0x0a, 0x09, 0,
		0x0f, 0x0e, 0x0d, 0x0c,
	};
	struct exs_hello hello;

	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &good) == EXS_WIRE_HELLO_LEN);
	EXPECT(!memcmp(buf, bytes, sizeof(bytes)));
	EXPECT(!exs_wire_get_hello(buf, 56, &hello));
	EXPECT(hello.credits == good.credits && hello.max_segs == good.max_segs);
	EXPECT(hello.recv_len == good.recv_len);
	EXPECT(hello.eager_space == good.eager_space);
	EXPECT(hello.features == good.features);
}

static void test_hello_limits(void)
{
	struct exs_hello hello = good;

	EXPECT(exs_wire_put_hello(buf, EXS_WIRE_HELLO_LEN - 1, &good) == -EMSGSIZE);
	hello.credits = EXS_WIRE_CREDITS_MIN - 1;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello.credits = EXS_WIRE_CREDITS_MAX + 1;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello = good;
	hello.max_segs = EXS_WIRE_SEGS_MAX - 1;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello = good;
	hello.recv_len = EXS_WIRE_BUF_LEN - 1;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello = good;
	hello.eager_space = hello.recv_len + 47;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello.eager_space++;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) > 0);
	hello.recv_len = EXS_WIRE_BUF_LEN;
	hello.eager_space = EXS_WIRE_EAGER_MIN;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) > 0);
	hello.eager_space--;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
	hello.socktype = EXS_WIRE_STREAM;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) > 0);
	hello.socktype = 3;
	EXPECT(exs_wire_put_hello(buf, sizeof(buf), &hello) == -EINVAL);
}

static int get_damaged(u32 at, u8 bits)
{
	struct exs_hello hello;

	exs_wire_put_hello(buf, sizeof(buf), &good);
	buf[at] ^= bits;
	return exs_wire_get_hello(buf, EXS_WIRE_HELLO_LEN, &hello);
}

static void test_hello_damage(void)
{
	struct exs_hello hello;
	u32 i;

	for (i = 0; i < 4; i++)
		EXPECT(get_damaged(i, 0x40) == -EINVAL);
	EXPECT(get_damaged(4, 3) == -EPROTONOSUPPORT);
	EXPECT(get_damaged(5, 1) == -EPROTONOSUPPORT);
	EXPECT(get_damaged(6, 0x40) == -EINVAL);
	EXPECT(exs_wire_get_hello(buf, EXS_WIRE_HELLO_LEN - 1, &hello) == -EMSGSIZE);
}

/* An older version ignores fields that a later version adds. */
static void test_hello_grows(void)
{
	static const u8 room[] = { 7, 24, 25, 26, 27, 28, 29, 30, 31 };
	u32 i;

	for (i = 0; i < sizeof(room); i++)
		EXPECT(!get_damaged(room[i], 0xff));
	for (i = 20; i < 24; i++)
		EXPECT(!get_damaged(i, 0xff));
}

static void test_reject_bytes(void)
{
	static const u8 bytes[EXS_WIRE_REJECT_LEN] = {
		0x45, 0x58, 0x53, 0x52, 1, 0, 1, 0, 3,
	};

	memset(buf, 0xff, sizeof(buf));
	EXPECT(exs_wire_put_reject(buf, EXS_WIRE_REJECT_LEN, EXS_REJECT_SOCKTYPE) ==
	       EXS_WIRE_REJECT_LEN);
	EXPECT(!memcmp(buf, bytes, sizeof(bytes)));
	EXPECT(exs_wire_get_reject(buf, 148) == EXS_REJECT_SOCKTYPE);
	/* Of a later version's, too. */
	buf[6] = 2;
	memset(buf + 9, 0xff, 7);
	EXPECT(exs_wire_get_reject(buf, EXS_WIRE_REJECT_LEN) == EXS_REJECT_SOCKTYPE);
	EXPECT(exs_wire_put_reject(buf, EXS_WIRE_REJECT_LEN - 1, 1) == -EMSGSIZE);
	EXPECT(exs_wire_put_reject(buf, EXS_WIRE_REJECT_LEN, 0) == -EINVAL);
	EXPECT(exs_wire_put_reject(buf, EXS_WIRE_REJECT_LEN, EXS_REJECT_MAX + 1) == -EINVAL);
}

/* An unknown reject counts as one without a reason. */
static void test_reject_damage(void)
{
	EXPECT(exs_wire_get_reject(NULL, 0) == EXS_REJECT_NONE);
	exs_wire_put_reject(buf, EXS_WIRE_REJECT_LEN, EXS_REJECT_BACKLOG);
	EXPECT(exs_wire_get_reject(buf, EXS_WIRE_REJECT_LEN - 1) == EXS_REJECT_NONE);
	buf[8] = EXS_REJECT_MAX + 1;
	EXPECT(exs_wire_get_reject(buf, EXS_WIRE_REJECT_LEN) == EXS_REJECT_NONE);
	exs_wire_put_hello(buf, sizeof(buf), &good);
	EXPECT(exs_wire_get_reject(buf, EXS_WIRE_HELLO_LEN) == EXS_REJECT_NONE);
}

static void fill_advert(u32 nsegs)
{
	u32 i;

	memset(&msg, 0, sizeof(msg));
	msg.type = EXS_MSG_ADVERT;
	msg.flags = EXS_MSG_F_FIRST | EXS_MSG_F_WAITALL;
	msg.credits = 7;
	msg.a = 0x01020304;
	msg.b = 0x05060708;
	msg.c = 0x090a0b0c;
	msg.nsegs = nsegs;
	for (i = 0; i < nsegs; i++)
		msg.segs[i] = (struct exs_seg){
			.addr = 0x1122334455667788ull, .key = 0x99aabbcc, .len = 1 + i,
		};
}

static void test_advert_bytes(void)
{
	static const u8 bytes[] = {
		2, 3, 7, 0, 4, 3, 2, 1, 8, 7, 6, 5, 0x0c, 0x0b, 0x0a, 0x09,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xcc, 0xbb, 0xaa, 0x99, 1, 0, 0, 0,
	};

	fill_advert(1);
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == sizeof(bytes));
	EXPECT(!memcmp(buf, bytes, sizeof(bytes)));
	EXPECT(!exs_wire_get_msg(buf, sizeof(bytes), &back));
	EXPECT(back.nsegs == 1 && back.segs[0].addr == msg.segs[0].addr);
	EXPECT(back.a == msg.a && back.b == msg.b && back.c == msg.c);
}

static void test_segments(void)
{
	int len;

	fill_advert(EXS_WIRE_SEGS_MAX);
	len = exs_wire_put_msg(buf, sizeof(buf), &msg);
	EXPECT(len == EXS_WIRE_HDR_LEN + EXS_WIRE_SEGS_MAX * EXS_WIRE_SEG_LEN);
	EXPECT(!exs_wire_get_msg(buf, len, &back));
	EXPECT(back.nsegs == EXS_WIRE_SEGS_MAX);
	EXPECT(exs_wire_get_msg(buf, len + EXS_WIRE_SEG_LEN, &back) == -EINVAL);
	EXPECT(exs_wire_get_msg(buf, len - 1, &back) == -EINVAL);
	EXPECT(exs_wire_put_msg(buf, len - 1, &msg) == -EMSGSIZE);
	msg.segs[3].len = 0;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
	msg.segs[3].len = 0x80000000;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
	msg.segs[3].len = 2;
	msg.segs[3].addr = ~0ull;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
}

static void test_eager(void)
{
	memset(&msg, 0, sizeof(msg));
	msg.type = EXS_MSG_EAGER;
	msg.b = 3;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == EXS_WIRE_HDR_LEN);
	EXPECT(!exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN + 3, &back));
	EXPECT(back.data == buf + EXS_WIRE_HDR_LEN && back.len == 3);
	EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN + 2, &back) == -EINVAL);
	EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN + 4, &back) == -EINVAL);
	EXPECT(exs_wire_get_msg(buf, EXS_WIRE_BUF_LEN + 1, &back) == -EMSGSIZE);
	EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN - 1, &back) == -EMSGSIZE);
}

/* Every type refuses fields that it does not have. */
static void test_unused_fields(void)
{
	enum { HAS_A = 1, HAS_B = 2, HAS_C = 4 };
	static const u8 fields[EXS_MSG_MAX + 1] = {
		[EXS_MSG_CREDIT] = HAS_A | HAS_B, [EXS_MSG_REVOKE] = HAS_A, [EXS_MSG_ANSWER] = HAS_A | HAS_B,
		[EXS_MSG_SPACE] = HAS_B | HAS_C, [EXS_MSG_REQUEST] = HAS_A | HAS_B,
		[EXS_MSG_WRITTEN] = HAS_A,
	};
	u32 type, f;

	for (type = 0; type <= 255; type++) {
		bool known = type && type <= EXS_MSG_MAX;

		memset(buf, 0, sizeof(buf));
		buf[0] = type;
		if (type == EXS_MSG_ADVERT || type == EXS_MSG_RING || type == EXS_MSG_EAGER)
			continue;
		EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN, &back) ==
		       (known ? 0 : -EINVAL));
		EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN + 1, &back) == -EINVAL);
		for (f = 0; f < 3 && known; f++) {
			buf[4 + 4 * f] = 1;
			EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN, &back) ==
			       (fields[type] >> f & 1 ? 0 : -EINVAL));
			buf[4 + 4 * f] = 0;
		}
		buf[1] = EXS_MSG_F_FIRST;
		EXPECT(exs_wire_get_msg(buf, EXS_WIRE_HDR_LEN, &back) == -EINVAL);
	}
}

static void test_position_needs_first(void)
{
	fill_advert(1);
	msg.flags = EXS_MSG_F_WAITALL;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
	msg.b = 0;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) > 0);
	msg.flags = 4;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
	msg.flags = 0;
	msg.credits = EXS_WIRE_CREDITS_MAX + 1;
	EXPECT(exs_wire_put_msg(buf, sizeof(buf), &msg) == -EINVAL);
}

static void test_immediate(void)
{
	u32 imm = exs_imm(EXS_IMM_TRUNCATED, EXS_IMM_LEN_MAX);

	EXPECT(exs_imm_kind(imm) == EXS_IMM_TRUNCATED);
	EXPECT(exs_imm_len(imm) == EXS_IMM_LEN_MAX);
	EXPECT(exs_imm(EXS_IMM_DIRECT, 5) == 5);

	imm = exs_imm_with_credits(exs_imm(EXS_IMM_INDIRECT, EXS_IMM_CREDITED_MAX), 200);
	EXPECT(exs_imm_kind(imm) == EXS_IMM_INDIRECT);
	EXPECT(exs_imm_len(imm) == EXS_IMM_CREDITED_MAX);
	EXPECT(exs_imm_credits(imm) == 200);
	EXPECT(exs_imm_credits(exs_imm(EXS_IMM_TRUNCATED, EXS_IMM_LEN_MAX)) == 0);
	EXPECT(!exs_imm_is_many(imm) && exs_imm_count(imm) == 1);

	imm = exs_imm_many(EXS_IMM_MANY_MAX, EXS_IMM_EACH_MAX);
	EXPECT(imm == 0xf00fffff && exs_imm_is_many(imm) && !exs_imm_credits(imm));
	imm = exs_imm_with_credits(exs_imm_many(2, 1), EXS_IMM_CREDITS_MAX);
	EXPECT(imm == 0xfff10001 && exs_imm_count(imm) == 2 && exs_imm_len(imm) == 1);
	EXPECT(exs_imm_credits(imm) == EXS_IMM_CREDITS_MAX);
	EXPECT(!exs_imm_is_many(exs_imm(EXS_IMM_TRUNCATED, EXS_IMM_LEN_MAX)));
	EXPECT(exs_imm_with_credits(5, 0) == 5);
}

int main(void)
{
	static const struct test tests[] = {
		{ "the bytes of a hello", test_hello_bytes },
		{ "a hello's limits", test_hello_limits },
		{ "a damaged hello", test_hello_damage },
		{ "room to grow in a hello", test_hello_grows },
		{ "the bytes of a reject", test_reject_bytes },
		{ "a damaged reject", test_reject_damage },
		{ "the bytes of an advert", test_advert_bytes },
		{ "segments, as many as fit", test_segments },
		{ "eager data is as long as it says", test_eager },
		{ "fields that a type does not have", test_unused_fields },
		{ "only a first advert has a position", test_position_needs_first },
		{ "the immediate", test_immediate },
	};

	return RUN_TESTS("wire", tests);
}
