// SPDX-License-Identifier: GPL-2.0
/*
 * The wire format: host structures to bytes and back.
 *
 * Parsing trusts nothing. It checks the form of a message (type, length, the fields that
 * the type uses). The engine checks whether the message is valid now.
 */
#include "wire.h"

/* Hello: offsets of its fields; bytes between and after them are zero, and ignored. */
enum {
	HELLO_MAGIC	= 0,
	HELLO_VERSION	= 4,
	HELLO_SOCKTYPE	= 6,
	HELLO_CREDITS	= 8,
	HELLO_ADVERTS	= 10,
	HELLO_SEGS	= 12,
	HELLO_RECV	= 14,
	HELLO_EAGER	= 16,
	HELLO_FEATURES	= 20,
};

/* Reject: likewise. */
enum {
	REJECT_MAGIC	= 0,
	REJECT_OLDEST	= 4,
	REJECT_NEWEST	= 6,
	REJECT_REASON	= 8,
};

/* Message: offsets of the fields of the header and of a segment. */
enum {
	MSG_TYPE	= 0,
	MSG_FLAGS	= 1,
	MSG_CREDITS	= 2,
	MSG_A		= 4,
	MSG_B		= 8,
	MSG_C		= 12,

	SEG_ADDR	= 0,
	SEG_KEY		= 8,
	SEG_LEN		= 12,
};

#define SEG_LEN_MAX	0x7fffffffu

/* Fields and payload of each type; unused fields are zero. */
enum {
	USES_A		= 0x01,
	USES_B		= 0x02,
	USES_C		= 0x04,
	USES_SEGS	= 0x08,
	USES_DATA	= 0x10,
	USES_FLAGS	= 0x20,
};

static const u8 exs_msg_uses[EXS_MSG_MAX + 1] = {
	[EXS_MSG_CREDIT]	= USES_A | USES_B,
	[EXS_MSG_ADVERT]	= USES_A | USES_B | USES_C | USES_SEGS | USES_FLAGS,
	[EXS_MSG_REVOKE]	= USES_A,
	[EXS_MSG_ANSWER]	= USES_A | USES_B,
	[EXS_MSG_SPACE]		= USES_B | USES_C,
	[EXS_MSG_REQUEST]	= USES_A | USES_B,
	[EXS_MSG_RING]		= USES_B | USES_SEGS,
	[EXS_MSG_EAGER]		= USES_A | USES_B | USES_C | USES_DATA,
	[EXS_MSG_WRITTEN]	= USES_A,
	[EXS_MSG_FIN]		= 0,
};

static inline void put16(u8 *p, u16 v)
{
	__le16 le = cpu_to_le16(v);

	memcpy(p, &le, sizeof(le));
}

static inline void put32(u8 *p, u32 v)
{
	__le32 le = cpu_to_le32(v);

	memcpy(p, &le, sizeof(le));
}

static inline void put64(u8 *p, u64 v)
{
	__le64 le = cpu_to_le64(v);

	memcpy(p, &le, sizeof(le));
}

static inline u16 get16(const u8 *p)
{
	__le16 le;

	memcpy(&le, p, sizeof(le));
	return le16_to_cpu(le);
}

static inline u32 get32(const u8 *p)
{
	__le32 le;

	memcpy(&le, p, sizeof(le));
	return le32_to_cpu(le);
}

static inline u64 get64(const u8 *p)
{
	__le64 le;

	memcpy(&le, p, sizeof(le));
	return le64_to_cpu(le);
}

static bool hello_valid(const struct exs_hello *hello)
{
	if (hello->socktype != EXS_WIRE_STREAM &&
	    hello->socktype != EXS_WIRE_SEQPACKET)
		return false;
	if (hello->credits < EXS_WIRE_CREDITS_MIN ||
	    hello->credits > EXS_WIRE_CREDITS_MAX)
		return false;
	if (!hello->max_adverts || hello->max_segs < EXS_WIRE_SEGS_MAX ||
	    hello->recv_len < EXS_WIRE_BUF_LEN)
		return false;
	if (hello->eager_space > EXS_WIRE_EAGER_MAX)
		return false;
	/* The longest eager message must fit. */
	return hello->socktype == EXS_WIRE_STREAM ||
	       hello->eager_space >= (u32)hello->recv_len - EXS_WIRE_HDR_LEN +
				     EXS_EAGER_OVERHEAD;
}

/**
 * exs_wire_put_hello() - write our hello
 * @buf: where to
 * @size: room there
 * @hello: what to say
 *
 * Return: EXS_WIRE_HELLO_LEN, -EMSGSIZE or -EINVAL
 */
int exs_wire_put_hello(void *buf, u32 size, const struct exs_hello *hello)
{
	u8 *p = buf;

	if (size < EXS_WIRE_HELLO_LEN)
		return -EMSGSIZE;
	if (!hello_valid(hello))
		return -EINVAL;

	memset(p, 0, EXS_WIRE_HELLO_LEN);
	put32(p + HELLO_MAGIC, EXS_WIRE_MAGIC);
	put16(p + HELLO_VERSION, EXS_WIRE_VERSION);
	p[HELLO_SOCKTYPE] = hello->socktype;
	put16(p + HELLO_CREDITS, hello->credits);
	put16(p + HELLO_ADVERTS, hello->max_adverts);
	put16(p + HELLO_SEGS, hello->max_segs);
	put16(p + HELLO_RECV, hello->recv_len);
	put32(p + HELLO_EAGER, hello->eager_space);
	put32(p + HELLO_FEATURES, hello->features);
	return EXS_WIRE_HELLO_LEN;
}

/**
 * exs_wire_get_hello() - read and check what the peer says of itself
 * @buf: the CM's private data
 * @size: its length; the CM pads it, so what follows the hello is ignored
 * @hello: filled in
 *
 * Return: 0, -EMSGSIZE, -EINVAL, or -EPROTONOSUPPORT: an unknown version; then nothing else
 * is known
 */
int exs_wire_get_hello(const void *buf, u32 size, struct exs_hello *hello)
{
	const u8 *p = buf;

	if (size < EXS_WIRE_HELLO_LEN)
		return -EMSGSIZE;
	if (get32(p + HELLO_MAGIC) != EXS_WIRE_MAGIC)
		return -EINVAL;
	if (get16(p + HELLO_VERSION) != EXS_WIRE_VERSION)
		return -EPROTONOSUPPORT;

	hello->socktype = p[HELLO_SOCKTYPE];
	hello->credits = get16(p + HELLO_CREDITS);
	hello->max_adverts = get16(p + HELLO_ADVERTS);
	hello->max_segs = get16(p + HELLO_SEGS);
	hello->recv_len = get16(p + HELLO_RECV);
	hello->eager_space = get32(p + HELLO_EAGER);
	hello->features = get32(p + HELLO_FEATURES);
	return hello_valid(hello) ? 0 : -EINVAL;
}

/**
 * exs_wire_put_reject() - write why a request is rejected, and our version
 * @buf: where to
 * @size: room there
 * @reason: why, not EXS_REJECT_NONE
 *
 * Return: EXS_WIRE_REJECT_LEN, -EMSGSIZE or -EINVAL
 */
int exs_wire_put_reject(void *buf, u32 size, enum exs_wire_reason reason)
{
	u8 *p = buf;

	if (size < EXS_WIRE_REJECT_LEN)
		return -EMSGSIZE;
	if (reason <= EXS_REJECT_NONE || reason > EXS_REJECT_MAX)
		return -EINVAL;

	memset(p, 0, EXS_WIRE_REJECT_LEN);
	put32(p + REJECT_MAGIC, EXS_WIRE_REJECT_MAGIC);
	put16(p + REJECT_OLDEST, EXS_WIRE_VERSION);
	put16(p + REJECT_NEWEST, EXS_WIRE_VERSION);
	p[REJECT_REASON] = reason;
	return EXS_WIRE_REJECT_LEN;
}

/**
 * exs_wire_get_reject() - why the peer rejected us
 * @buf: the CM's private data
 * @size: its length, with what the CM pads it by
 *
 * Return: a known reason, or EXS_REJECT_NONE
 */
enum exs_wire_reason exs_wire_get_reject(const void *buf, u32 size)
{
	const u8 *p = buf;

	if (size < EXS_WIRE_REJECT_LEN ||
	    get32(p + REJECT_MAGIC) != EXS_WIRE_REJECT_MAGIC ||
	    p[REJECT_REASON] > EXS_REJECT_MAX)
		return EXS_REJECT_NONE;
	return p[REJECT_REASON];
}

static bool seg_valid(const struct exs_seg *seg)
{
	return seg->len && seg->len <= SEG_LEN_MAX &&
	       seg->addr + seg->len > seg->addr;
}

/* Whether a message of this type may have these fields. */
exs_hot
static bool msg_valid(const struct exs_msg *msg)
{
	u8 uses, flags = 0;

	if (!msg->type || msg->type > EXS_MSG_MAX ||
	    msg->credits > EXS_WIRE_CREDITS_MAX)
		return false;

	uses = exs_msg_uses[msg->type];
	if (uses & USES_FLAGS)
		flags = EXS_MSG_F_ALL;
	if ((msg->flags & ~flags) ||
	    (msg->a && !(uses & USES_A)) ||
	    (msg->b && !(uses & USES_B)) ||
	    (msg->c && !(uses & USES_C)))
		return false;
	/* Only the first advert of a phase carries a position. */
	if (msg->type == EXS_MSG_ADVERT && msg->b &&
	    !(msg->flags & EXS_MSG_F_FIRST))
		return false;
	return msg->nsegs <= ((uses & USES_SEGS) ? EXS_WIRE_SEGS_MAX : 0);
}

/**
 * exs_wire_put_msg() - write a message, or the header of an EAGER
 * @buf: where to
 * @size: room there
 * @msg: the message
 *
 * Return: bytes written, -EMSGSIZE or -EINVAL
 */
exs_hot
int exs_wire_put_msg(void *buf, u32 size, const struct exs_msg *msg)
{
	u8 *p = buf;
	u32 i;

	if (!msg_valid(msg))
		return -EINVAL;
	if (size < exs_wire_msg_len(msg))
		return -EMSGSIZE;

	p[MSG_TYPE] = msg->type;
	p[MSG_FLAGS] = msg->flags;
	put16(p + MSG_CREDITS, msg->credits);
	put32(p + MSG_A, msg->a);
	put32(p + MSG_B, msg->b);
	put32(p + MSG_C, msg->c);
	p += EXS_WIRE_HDR_LEN;
	for (i = 0; i < msg->nsegs; i++, p += EXS_WIRE_SEG_LEN) {
		if (!seg_valid(&msg->segs[i]))
			return -EINVAL;
		put64(p + SEG_ADDR, msg->segs[i].addr);
		put32(p + SEG_KEY, msg->segs[i].key);
		put32(p + SEG_LEN, msg->segs[i].len);
	}
	return exs_wire_msg_len(msg);
}

static int get_segs(const u8 *p, u32 size, struct exs_msg *msg)
{
	u32 i;

	if (size % EXS_WIRE_SEG_LEN ||
	    size / EXS_WIRE_SEG_LEN > EXS_WIRE_SEGS_MAX)
		return -EINVAL;

	msg->nsegs = size / EXS_WIRE_SEG_LEN;
	for (i = 0; i < msg->nsegs; i++, p += EXS_WIRE_SEG_LEN) {
		msg->segs[i].addr = get64(p + SEG_ADDR);
		msg->segs[i].key = get32(p + SEG_KEY);
		msg->segs[i].len = get32(p + SEG_LEN);
		if (!seg_valid(&msg->segs[i]))
			return -EINVAL;
	}
	return 0;
}

/* Read the part behind the header: segments, data, or nothing. */
static int get_payload(const u8 *p, u32 size, struct exs_msg *msg)
{
	u8 uses = exs_msg_uses[msg->type];

	if (uses & USES_SEGS)
		return get_segs(p, size, msg);
	if (uses & USES_DATA) {
		if (msg->b != size)
			return -EINVAL;
		msg->data = p;
		msg->len = size;
		return 0;
	}
	return size ? -EINVAL : 0;
}

/**
 * exs_wire_get_msg() - read and check a message
 * @buf: the bytes of a SEND
 * @size: its length, exactly
 * @msg: filled in; @msg->data points into @buf
 *
 * Return: 0, -EMSGSIZE or -EINVAL
 */
exs_hot
int exs_wire_get_msg(const void *buf, u32 size, struct exs_msg *msg)
{
	const u8 *p = buf;

	if (size < EXS_WIRE_HDR_LEN || size > EXS_WIRE_BUF_LEN)
		return -EMSGSIZE;

	msg->type = p[MSG_TYPE];
	msg->flags = p[MSG_FLAGS];
	msg->credits = get16(p + MSG_CREDITS);
	msg->a = get32(p + MSG_A);
	msg->b = get32(p + MSG_B);
	msg->c = get32(p + MSG_C);
	msg->nsegs = 0;
	msg->data = NULL;
	msg->len = 0;
	if (!msg_valid(msg))
		return -EINVAL;
	return get_payload(p + EXS_WIRE_HDR_LEN, size - EXS_WIRE_HDR_LEN, msg);
}
