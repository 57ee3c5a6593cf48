/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire format of AF_EXS (Documentation/wire-protocol.md).
 *
 * A connection exchanges a hello in the CM's private data, then messages: a
 * SEND carries one message (16 byte header, then segments or data), an RDMA
 * WRITE WITH IMMEDIATE carries data and, in its immediate, its kind and length,
 * and perhaps credits.
 * On transports that have no immediate, the same word follows the WRITE in a
 * message of its own (EXS_MSG_WRITTEN). Everything is little-endian.
 */
#ifndef EXS_PROTO_WIRE_H
#define EXS_PROTO_WIRE_H

#include "env.h"

#define EXS_WIRE_MAGIC		0x31535845u	/* "EXS1" */
#define EXS_WIRE_REJECT_MAGIC	0x52535845u	/* "EXSR" */
#define EXS_WIRE_VERSION	1
#define EXS_WIRE_HDR_LEN	16
#define EXS_WIRE_SEG_LEN	16
#define EXS_WIRE_BUF_LEN	1024	/* our receives; the minimum */
#define EXS_WIRE_DATA_MAX	(EXS_WIRE_BUF_LEN - EXS_WIRE_HDR_LEN)
#define EXS_WIRE_SEGS_MAX	32	/* segments in one advert or ring */
#define EXS_WIRE_CREDITS_MIN	4
#define EXS_WIRE_CREDITS_MAX	1024
#define EXS_WIRE_HELLO_LEN	32	/* at most 56, the rest of a REQ */
#define EXS_WIRE_REJECT_LEN	16

/* The largest message of SOCK_SEQPACKET; longer ones are EMSGSIZE. */
#define EXS_MESSAGE_MAX		(8u << 20)

/*
 * Numbers that are skipped when an announcement is taken back (seqpacket): more than a hello's
 * max_adverts can say.
 */
#define EXS_WIRE_TAKEN_BACK	0x10000u

/* The largest ring that a peer may describe. */
#define EXS_WIRE_RING_MAX	(64u << 20)

/*
 * Eager space (seqpacket): what a message costs beyond its length, and the
 * least that a hello may offer, so that any eager message fits at least once.
 */
#define EXS_EAGER_OVERHEAD	64
#define EXS_WIRE_EAGER_MIN	(EXS_WIRE_DATA_MAX + EXS_EAGER_OVERHEAD)
#define EXS_WIRE_EAGER_MAX	0x40000000u

/* The largest message that goes into a ring; larger ones are worth an advert. */
#define EXS_RING_MESSAGE_MAX	(16u << 10)

/* The hello's socket type. */
enum exs_wire_socktype {
	EXS_WIRE_STREAM		= 1,
	EXS_WIRE_SEQPACKET	= 2,
};

/**
 * struct exs_hello - what each side says of itself when connecting
 * @socktype: EXS_WIRE_STREAM or EXS_WIRE_SEQPACKET, must be the same on both
 * @credits: messages that the sender of the hello can take before it must return a credit
 * @max_adverts: adverts that it can hold
 * @max_segs: segments that it can hold, over all these adverts; at least
 *	EXS_WIRE_SEGS_MAX, so that one advert of any shape always fits
 * @recv_len: length of its receives, and so of the longest message that it can take: at least
 *	EXS_WIRE_BUF_LEN
 * @eager_space: bytes of unread eager messages that it stores (seqpacket), or of a
 *	stream before it has a ring; 0: none
 * @features: EXS_WIRE_F_*; those that both sides offer apply. A side does not offer bits
 *	that it does not know.
 */
struct exs_hello {
	u8 socktype;
	u16 credits;
	u16 max_adverts;
	u16 max_segs;
	u16 recv_len;
	u32 eager_space;
	u32 features;
};

/*
 * The end of a transfer that uses up an advert of one segment may be a WRITTEN, sent with
 * invalidate of that segment's key.
 */
#define EXS_WIRE_F_INVALIDATE	0x00000001u

/* Messages may go through a ring, as bytes of a stream do (seqpacket). */
#define EXS_WIRE_F_MESSAGE_RING	0x00000002u

/* A CREDIT may report that there are too few. */
#define EXS_WIRE_F_ASK		0x00000004u

/* A stream without a ring may send EAGERs while there is eager space. */
#define EXS_WIRE_F_STREAM_EAGER	0x00000008u

/* One transfer may be several messages in the ring, of the same length (seqpacket). */
#define EXS_WIRE_F_MANY		0x00000010u

/* The features that we offer. */
#define EXS_WIRE_FEATURES	(EXS_WIRE_F_INVALIDATE | EXS_WIRE_F_MESSAGE_RING | \
				 EXS_WIRE_F_ASK | EXS_WIRE_F_STREAM_EAGER | EXS_WIRE_F_MANY)

/* Why a request is rejected. NONE: the peer gave no reason. */
enum exs_wire_reason {
	EXS_REJECT_NONE		= 0,
	EXS_REJECT_VERSION	= 1,	/* the hello has another version       */
	EXS_REJECT_MALFORMED	= 2,	/* no hello, or an impossible value    */
	EXS_REJECT_SOCKTYPE	= 3,	/* the listener has another one        */
	EXS_REJECT_BACKLOG	= 4,	/* the backlog is full                 */
	EXS_REJECT_LIMIT	= 5,	/* the listener's limit, or memory     */
	EXS_REJECT_DISABLED	= 6,	/* by the administrator                */
	EXS_REJECT_MAX		= EXS_REJECT_DISABLED,
};

/* Message types. @a, @b, @c of the header are named per type. */
enum exs_msg_type {
	EXS_MSG_CREDIT	= 1,	/* the credits of every header; a: how many
				 * there are from now on, 0: as before; b: so
				 * many of the peer's are too few, 0: none
				 */
	EXS_MSG_ADVERT	= 2,	/* a: phase or number, b: position, c: space   */
	EXS_MSG_REVOKE	= 3,	/* a: phase                                    */
	EXS_MSG_ANSWER	= 4,	/* a: phase, b: sender's position or number    */
	EXS_MSG_SPACE	= 5,	/* c: returned bytes of ring or eager space;
				 * seqpacket: b: of the ring
				 */
	EXS_MSG_REQUEST	= 6,	/* a: number, b: length, 0 takes it back
				 * (seqpacket);
				 * stream: "describe a ring", both 0
				 */
	EXS_MSG_RING	= 7,	/* b: size; segments describe the ring         */
	EXS_MSG_EAGER	= 8,	/* a: number, b: length; data follows; stream:
				 * a: position, c: space; seqpacket: c: 1: one
				 * as long waits (MANY)
				 */
	EXS_MSG_WRITTEN	= 9,	/* a: the immediate of the WRITE before it     */
	EXS_MSG_FIN	= 10,	/* no more bytes or messages will follow       */
	EXS_MSG_MAX	= EXS_MSG_FIN,
};

#define EXS_MSG_F_FIRST		0x01	/* ADVERT: first of its phase, has b  */
#define EXS_MSG_F_WAITALL	0x02	/* ADVERT: consumed only when full    */
#define EXS_MSG_F_ALL		(EXS_MSG_F_FIRST | EXS_MSG_F_WAITALL)

/**
 * struct exs_seg - a piece of remotely writable memory
 * @addr: address in the key's own space; a cookie, never a real address
 * @key: remote key
 * @len: bytes, 1 to 2^31 - 1
 */
struct exs_seg {
	u64 addr;
	u32 key;
	u32 len;
};

/**
 * struct exs_msg - a message in host order
 * @type: enum exs_msg_type
 * @flags: EXS_MSG_F_*
 * @credits: credits returned, 0 to EXS_WIRE_CREDITS_MAX
 * @a: see the type
 * @b: see the type
 * @c: see the type
 * @nsegs: segments in @segs (ADVERT, RING)
 * @segs: the segments
 * @data: the bytes after the header of an EAGER message (parsing only: they stay in the
 *	parsed buffer; a sender writes them after the header)
 * @len: their number
 */
struct exs_msg {
	u8 type;
	u8 flags;
	u16 credits;
	u32 a;
	u32 b;
	u32 c;
	u32 nsegs;
	struct exs_seg segs[EXS_WIRE_SEGS_MAX];
	const void *data;
	u32 len;
};

/*
 * The immediate: two bits of kind, thirty of length. Or, marked by an unused kind: two bits
 * of kind, eight of credits and twenty of length. So a receiver that answers with data
 * needs no CREDIT. Behind the mark the unused kind is several messages: then four bits are
 * their number, less one, and sixteen the length of each.
 */
enum exs_imm_kind {
	EXS_IMM_DIRECT		= 0,	/* into the head advert             */
	EXS_IMM_INDIRECT	= 1,	/* into the ring                    */
	EXS_IMM_TRUNCATED	= 2,	/* direct; the message was longer   */
	EXS_IMM_MORE		= 2,	/* stream: into the ring, and more will follow at once */
	EXS_IMM_CREDITED	= 3,	/* the mark                         */
	EXS_IMM_MANY		= 3,	/* behind it: messages in the ring  */
};

#define EXS_IMM_LEN_MAX		((1u << 30) - 1)
#define EXS_IMM_CREDITED_MAX	((1u << 20) - 1)	/* bytes, with credits */
#define EXS_IMM_CREDITS_MAX	((1u << 8) - 1)
#define EXS_IMM_MANY_MAX	16u			/* messages */
#define EXS_IMM_EACH_MAX	((1u << 16) - 1)	/* bytes of each */

static inline u32 exs_imm(enum exs_imm_kind kind, u32 len)
{
	return (u32)kind << 30 | len;
}

static inline bool exs_imm_credited(u32 imm)
{
	return imm >> 30 == EXS_IMM_CREDITED;
}

static inline u32 exs_imm_kind(u32 imm)
{
	return exs_imm_credited(imm) ? imm >> 28 & 3 : imm >> 30;
}

static inline bool exs_imm_is_many(u32 imm)
{
	return exs_imm_kind(imm) == EXS_IMM_MANY;
}

/* Of each message, if there are several. */
static inline u32 exs_imm_len(u32 imm)
{
	if (exs_imm_is_many(imm))
		return imm & EXS_IMM_EACH_MAX;
	return imm & (exs_imm_credited(imm) ? EXS_IMM_CREDITED_MAX : EXS_IMM_LEN_MAX);
}

/* How many messages end with it: 1 also if it is not of messages. */
static inline u32 exs_imm_count(u32 imm)
{
	return exs_imm_is_many(imm) ? (imm >> 16 & 15) + 1 : 1;
}

/* @count messages of @len bytes each: 2 to EXS_IMM_MANY_MAX of 1 to EXS_IMM_EACH_MAX. */
static inline u32 exs_imm_many(u32 count, u32 len)
{
	return (u32)EXS_IMM_CREDITED << 30 | (u32)EXS_IMM_MANY << 28 | (count - 1) << 16 | len;
}

static inline u32 exs_imm_credits(u32 imm)
{
	return exs_imm_credited(imm) ? imm >> 20 & EXS_IMM_CREDITS_MAX : 0;
}

/* @imm without credits, and with a length of at most EXS_IMM_CREDITED_MAX. */
static inline u32 exs_imm_with_credits(u32 imm, u32 credits)
{
	if (!credits)
		return imm;
	return (u32)EXS_IMM_CREDITED << 30 | exs_imm_kind(imm) << 28 | credits << 20 |
	       (imm & EXS_IMM_CREDITED_MAX);
}

/*
 * Each put returns the bytes written, each get 0; or -EINVAL (malformed), -EMSGSIZE (does
 * not fit). Any context. There is one encoding of everything: put writes a message again
 * exactly as get has accepted it.
 */
int exs_wire_put_hello(void *buf, u32 size, const struct exs_hello *hello);
int exs_wire_get_hello(const void *buf, u32 size, struct exs_hello *hello);

int exs_wire_put_reject(void *buf, u32 size, enum exs_wire_reason reason);
enum exs_wire_reason exs_wire_get_reject(const void *buf, u32 size);

/* The length that exs_wire_put_msg() will write. */
static inline u32 exs_wire_msg_len(const struct exs_msg *msg)
{
	return EXS_WIRE_HDR_LEN + msg->nsegs * EXS_WIRE_SEG_LEN;
}

int exs_wire_put_msg(void *buf, u32 size, const struct exs_msg *msg);
int exs_wire_get_msg(const void *buf, u32 size, struct exs_msg *msg);

#endif
