// SPDX-License-Identifier: GPL-2.0
/*
 * Parsed messages are within bounds, and are written again unchanged.
 */
#include "fuzz.h"

static void fuzz_hello(const u8 *data, size_t size)
{
	struct exs_hello hello;
	u8 again[EXS_WIRE_HELLO_LEN];

	if (exs_wire_get_hello(data, size, &hello))
		return;
	MUST(hello.recv_len >= EXS_WIRE_BUF_LEN);
	MUST(exs_wire_put_hello(again, sizeof(again), &hello) == sizeof(again));
	/* Except for reserved bytes. */
	MUST(!memcmp(again, data, 7) && !memcmp(again + 8, data + 8, 16));
}

static void fuzz_reject(const u8 *data, size_t size)
{
	u8 buf[EXS_WIRE_REJECT_LEN];

	MUST(exs_wire_get_reject(data, size) <= EXS_REJECT_MAX);
	if (exs_wire_put_reject(buf, sizeof(buf), data[0]) < 0)
		return;
	memcpy(buf + 9, data, min_t(size_t, size, 7));
	MUST(exs_wire_get_reject(buf, sizeof(buf)) == data[0]);
}

static void check_payload(const u8 *data, size_t size, const struct exs_msg *msg)
{
	if (msg->type == EXS_MSG_EAGER) {
		MUST(msg->data == data + EXS_WIRE_HDR_LEN);
		MUST(msg->len == size - EXS_WIRE_HDR_LEN && msg->len == msg->b);
	} else {
		MUST(!msg->data && !msg->len);
		MUST(size == EXS_WIRE_HDR_LEN + msg->nsegs * EXS_WIRE_SEG_LEN);
	}
}

static void fuzz_msg(const u8 *data, size_t size)
{
	static struct exs_msg msg;
	u8 again[EXS_WIRE_BUF_LEN];
	int len;

	if (exs_wire_get_msg(data, size, &msg))
		return;
	MUST(msg.nsegs <= EXS_WIRE_SEGS_MAX && msg.credits <= EXS_WIRE_CREDITS_MAX);
	check_payload(data, size, &msg);
	len = exs_wire_put_msg(again, sizeof(again), &msg);
	MUST(len >= EXS_WIRE_HDR_LEN && (size_t)len <= size);
	MUST(!memcmp(again, data, len));
	MUST(exs_wire_put_msg(again, len - 1, &msg) == -EMSGSIZE);
}

/* Values that random bytes seldom have. */
static void fuzz_plausible(const u8 *data, size_t size)
{
	static const u8 hello[] = { 0x45, 0x58, 0x53, 0x31, 1, 0 };
	u8 buf[EXS_WIRE_BUF_LEN] = { 0 };
	u32 segs = data[0] % (EXS_WIRE_SEGS_MAX + 2);
	u32 len = EXS_WIRE_HDR_LEN + segs * EXS_WIRE_SEG_LEN;

	memcpy(buf, data, min(size, sizeof(buf)));
	buf[0] = data[0] & 1 ? EXS_MSG_ADVERT : EXS_MSG_RING;
	buf[1] &= EXS_MSG_F_ALL;
	fuzz_msg(buf, min_t(u32, len, sizeof(buf)));

	memcpy(buf, data, min(size, sizeof(buf)));
	buf[0] = EXS_MSG_EAGER;
	memset(buf + 1, 0, 3);
	memset(buf + 12, 0, 4);
	buf[8] = size;
	buf[9] = size >> 8 & 3;
	buf[10] = 0;
	buf[11] = 0;
	fuzz_msg(buf, EXS_WIRE_HDR_LEN + min((size_t)(buf[8] | buf[9] << 8),
					     sizeof(buf) - EXS_WIRE_HDR_LEN));

	memset(buf, 0, sizeof(buf));
	memcpy(buf, data, min_t(size_t, size, EXS_WIRE_HELLO_LEN));
	memcpy(buf, hello, sizeof(hello));
	buf[15] |= EXS_WIRE_BUF_LEN >> 8;
	fuzz_hello(buf, EXS_WIRE_HELLO_LEN + size % 24);
	fuzz_reject(data, size);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	fuzz_hello(data, size);
	fuzz_msg(data, size);
	if (size)
		fuzz_plausible(data, size);
	return 0;
}
