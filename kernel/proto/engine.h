/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol engine: one per connection, pure logic.
 *
 * It is told what the program wants (send, recv, cancel, shutdown) and what
 * arrived (messages, immediates). It answers with three kinds of work that its
 * owner pulls from it, each until there is none:
 *
 *   exs_engine_next_tx()    something to transmit, when the send queue has room
 *   exs_engine_next_copy()  bytes to copy from the ring into a receive
 *   exs_engine_next_rcv_done(), exs_engine_next_snd_done()  what has ended
 *
 * It never allocates, sleeps, or calls out. All calls for one engine are
 * serialised by the owner (struct exs_conn: its spinlock).
 *
 * In the order in which to read them:
 *
 *   wire.h, wire.c	the messages, as bytes
 *   engine.h, engine.c	the public face
 *   private.h		what the files below share; short functions, to be inlined
 *   credit.c		the rules of credits
 *   receive.c		our own receives, and their adverts
 *   held.c		the peer's adverts, and transfers into them
 *   stream.c		the rules of byte streams
 *   policy.c		what a stream does where its rules leave it the choice
 *   message.c		the rules of messages
 *   message_ring.c	the rules of messages in a ring
 *   env.h		what the folder needs from the kernel, or from its tests
 */
#ifndef EXS_PROTO_ENGINE_H
#define EXS_PROTO_ENGINE_H

#include "wire.h"

#define EXS_ADVERTS_MAX		16	/* adverts held from the peer          */
#define EXS_SETTLE_MAX		256	/* see exs_engine_settle(); more than those */
#define EXS_HELD_SEGS_MAX	64	/* their segments, all together        */

/* Flags of struct exs_rcv. The first four are the submitter's. */
#define EXS_RCV_WAITALL		0x01	/* ends only when full, at EOF, on error */
#define EXS_RCV_DIRECT		0x02	/* may be advertised                     */
#define EXS_RCV_READER		0x04	/* a plain recv(): holds a place in the
					 * order, copies the bytes itself
					 */
#define EXS_RCV_FETCH		0x08	/* for the announced message only        */
#define EXS_RCV_ADVERTISED	0x10	/* the peer may write into it            */
#define EXS_RCV_CANCEL		0x20	/* waits for the answer to a revoke      */
#define EXS_RCV_COPYING		0x40	/* exs_engine_next_copy() named it       */
#define EXS_RCV_TRUNCATED	0x80	/* the message was longer                */
#define EXS_RCV_EOF		0x100	/* ended by FIN                          */
#define EXS_RCV_ENDED		0x200	/* on the done list, or taken from it    */
#define EXS_RCV_ARRIVED		0x400	/* has its message; ends behind those
					 * that are copied from the ring
					 */

/**
 * struct exs_in_ring - a message in the ring
 * @off: offset in the ring; the message does not wrap
 * @len: bytes, at least 1
 * @space: bytes of the ring that are free again once it was read: its own, those skipped before it,
 *	and what it, or the last of several, takes beyond its length
 */
struct exs_in_ring {
	u32 off;
	u32 len;
	u32 space;
};

/**
 * struct exs_rcv - a receive
 * @node: the engine's
 * @len: bytes wanted
 * @filled: bytes there
 * @window: bytes of it that the present advert covers, from @base
 * @base: @filled when the present advert was made
 * @in_ring: seqpacket: the message that it will get; none if @in_ring.space is 0
 * @max_window: most bytes that one advert can cover, set by the owner from the memory keys
 *	of this receive; seqpacket: all of @len, as a message goes into one advert
 * @max_segs: most segments that one advert can need, set by the owner; 1 to
 *	EXS_WIRE_SEGS_MAX, or it is not advertised
 * @flags: EXS_RCV_*
 * @err: 0 or a negative errno, set when it ends
 */
struct exs_rcv {
	struct list_head node;
	struct exs_in_ring in_ring;
	u64 len;
	u64 filled;
	u64 base;
	u32 window;
	u32 max_window;
	u32 max_segs;
	u32 flags;
	int err;
};

/**
 * struct exs_snd - a send
 * @node: the engine's
 * @len: bytes; 0 is a valid message, never a valid piece of stream
 * @max_piece: most bytes of it in one EXS_TX_WRITE (the owner's, at least 4096),
 *	0: as many as exs_engine_next_tx() is asked for
 * @taken: bytes handed to transmission, or committed to it
 * @err: 0 or a negative errno, set when it ends without having been sent whole
 * @gate: it has no bytes and is not sent. It keeps a place in the order for sends that come
 *	later, and holds up the sends behind it. Cleared when it ends.
 */
struct exs_snd {
	struct list_head node;
	u64 len;
	u32 max_piece;
	u64 taken;
	int err;
	bool gate;
};

enum exs_tx_kind {
	EXS_TX_MESSAGE,		/* SEND of tx->msg                                  */
	EXS_TX_ADVERT,		/* the same; the owner registers rcv and fills segs */
	EXS_TX_RING,		/* the same; the owner fills in the ring's segs     */
	EXS_TX_EAGER,		/* SEND of tx->msg followed by len bytes of snd     */
	EXS_TX_WRITE,		/* RDMA WRITE of len bytes of snd                   */
};

/**
 * struct exs_tx - one thing to transmit
 * @kind: what
 * @rcv: ADVERT: whose memory; @rcv->base and @rcv->window say which part
 * @snd: EAGER, WRITE: whose bytes
 * @offset: first byte within @snd
 * @len: bytes
 * @imm: WRITE: the immediate, valid when @last
 * @last: WRITE: end of a transfer, send the immediate
 * @invalidate: WRITE, when @last: to be sent as a WRITTEN, with invalidate of @key
 * @key: the advert's key
 * @snd_done: the last byte of @snd goes with this; when it is complete so is @snd. If it is
 *	not @last, the next send's first byte follows, behind it in remote memory.
 * @nsegs: WRITE: pieces of remote memory, in order, together @len bytes
 * @msg: all but WRITE: the message; the owner fills in the segments
 * @segs: WRITE: remote memory
 */
struct exs_tx {
	enum exs_tx_kind kind;
	struct exs_rcv *rcv;
	struct exs_snd *snd;
	u64 offset;
	u32 len;
	u32 imm;
	bool last;
	bool invalidate;
	bool snd_done;
	u32 key;
	u32 nsegs;
	union {
		struct exs_msg msg;
		struct exs_seg segs[EXS_WIRE_SEGS_MAX];
	};
};

/* Set in an offset into a stream's eager memory, clear in one into the ring. */
#define EXS_OFF_EAGER	0x80000000u

/**
 * struct exs_copy - bytes to copy from the ring into a receive
 * @rcv: the receive; stays until exs_engine_copied()
 * @rcv_off: where in it
 * @ring_off: where in the ring; the piece does not wrap; with EXS_OFF_EAGER: in the eager
 *	memory
 * @len: bytes
 */
struct exs_copy {
	struct exs_rcv *rcv;
	u64 rcv_off;
	u32 ring_off;
	u32 len;
};

/* An advert of the peer's that a sender holds. */
struct exs_held {
	u32 len;
	u32 used;
	u16 nsegs;
	bool waitall;
};

/*
 * The adverts that a sender holds, oldest first, and their segments in the
 * same order: two circular queues, in struct exs_theirs.
 */
struct exs_held_queue {
	u16 first, count, limit;
	u16 first_seg, seg_count, seg_limit;
};

/**
 * struct exs_theirs - the peer's memory, as it was described
 * @adverts: those held
 * @segs: their segments
 * @ring: segments of the ring
 * @write: segments of the transfer under way: a copy, because the peer may take the advert
 *	back
 *
 * Most of an engine's memory, and of no use before the peer describes any: so the owner
 * provides it then.
 */
struct exs_theirs {
	struct exs_held adverts[EXS_ADVERTS_MAX];
	struct exs_seg segs[EXS_HELD_SEGS_MAX];
	struct exs_seg ring[EXS_WIRE_SEGS_MAX];
	struct exs_seg write[EXS_WIRE_SEGS_MAX];
};

/* A transfer under way: decided, counted, paid for; handed out in pieces. */
struct exs_write {
	struct exs_snd *snd;	/* NULL: none under way                     */
	struct list_head rest;	/* sends that it takes whole, after this one */
	u64 offset;		/* of its next byte within snd              */
	u32 len, done;
	u32 imm;
	bool cancelled;		/* snd ends after its last piece            */
	bool invalidate;	/* the advert is used up: invalidate its key */
	u32 key;
	u32 nsegs;		/* in struct exs_theirs                     */
};

struct exs_credits {
	u16 have;	/* messages that the peer can still take       */
	u16 owed;	/* receives reposted, not yet announced        */
	u16 granted;	/* messages that the peer may still send us    */
	u16 total;	/* receives that the peer knows of             */
	u16 wanted;	/* receives to announce                        */
	u16 peer_total;
	u16 awaited;	/* until the last transfer's (FIN's) is back   */
	u16 asked;	/* number last reported as too few             */
	bool greet;	/* send a CREDIT even if none is due           */
	bool fin_told;	/* sent because of FIN                         */
	bool stalled;	/* data waits for a credit (stats)             */
	bool other;	/* the last SEND was no CREDIT                 */
	u8 alone;	/* CREDITs that were due all the same; EXS_CREDITS_FEW at most */
};

/* Counted decisions, for tests and exs-stat. */
struct exs_engine_stats {
	u64 direct_bytes, indirect_bytes, eager_bytes;	/* sent     */
	u64 received_bytes;
	u64 direct_writes, indirect_writes, eager_msgs;
	u64 joined_sends;	/* in a transfer with an earlier one */
	u64 adverts_sent;	/* as receiver                       */
	u64 adverts_dropped;	/* as sender: came too late, or void */
	u64 phases;		/* as sender: direct <-> indirect    */
	u64 revokes;		/* sent                              */
	u64 credits_sent;	/* CREDIT messages                   */
	u64 credit_stalls;	/* times data began to wait for credits */
	u64 ring_stalls;	/* ... for ring or eager space, ring, advert */
};

/**
 * struct exs_engine_config - limits, fixed when the connection is made
 * @ours: our hello; its socket type decides
 * @peer: the peer's hello, checked by exs_wire_get_hello()
 * @eager_max: largest message sent eagerly, at most EXS_WIRE_DATA_MAX; see also
 *	exs_engine_tune()
 * @ring_max: seqpacket: the largest message that goes into a ring, at most EXS_IMM_EACH_MAX;
 *	0: none does
 * @ring_overhead: bytes of ring that a message costs beyond its length; bounds their number
 * @confirm: both sides confirm that FIN has arrived, because their transport does not; see
 *	exs_engine_confirmed()
 */
struct exs_engine_config {
	struct exs_hello ours;
	struct exs_hello peer;
	u32 eager_max;
	u32 ring_max;
	u32 ring_overhead;
	bool confirm;
};

/* The recent cost of one way to send: direct, or through the ring. */
struct exs_way {
	u64 ns;		/* while sends were outstanding */
	u64 bytes;
};

/* Direct or through the ring: policy.c. Times in ns. */
struct exs_policy {
	u64 now;
	u64 outstanding;	/* bytes                                     */
	bool busy;		/* or there was something to send            */
	/* sender */
	bool waits;		/* in a direct phase, or has waited          */
	bool asking;		/* in an indirect one                        */
	bool asked_for;		/* the direct phase was requested            */
	u8 rest_exp, explore_exp, patience_exp;
	struct exs_way direct;	/* this direct phase, or the last            */
	struct exs_way ring;
	u64 wait_until;
	u64 phase_at;		/* its beginning                             */
	u64 explore_at;
	u64 waited;		/* time waited in the phase                  */
	u64 in_phase;		/* bytes, in this phase                      */
	u64 asked_at, took;	/* the last request for an advert            */
	u64 round_trip;		/* the shortest of those                     */
	u64 ask_at;		/* earliest next one                         */
	/* receiver */
	bool more;		/* more follows at once                      */
	u32 used;		/* adverts, in this phase                    */
	u16 guess_after;	/* guess after that many ring transfers      */
	u8 guess_exp;
	u8 eager_row;		/* eager messages in a row                   */
	u8 choice;		/* set by the model: EXS_CHOICE_*            */
};

struct exs_engine;

/* One table per socket type; private to proto/. */
struct exs_engine_ops;

/**
 * struct exs_engine - see the top of this file
 * @stats: decisions, counted
 * @ring_wanted: the peer can use a ring: make one and call exs_engine_ring_ready(); or,
 *	seqpacket, exs_engine_ring_refused()
 * @credits_wanted: the peer can use more credits. The owner may post more receives and call
 *	exs_engine_resize(). It clears this.
 * @receives: those that have not ended, oldest first; the advertised ones are a prefix
 * @fin_wanted: exs_engine_shutdown() was called
 * @fin_rcvd: the peer will send nothing more
 * @announced: seqpacket: the next message is a large one that waits for a receive
 * @announced_len: its length
 * @nkept: seqpacket: messages that have just come into the ring without a receive: see
 *	exs_engine_next_kept()
 * @theirs: set by the owner, once: see exs_engine_wants_theirs()
 *
 * The owner may read these. The rest is private to proto/.
 */
struct exs_engine {
	struct exs_engine_stats stats;
	bool ring_wanted;
	bool credits_wanted;
	struct list_head receives;
	bool fin_wanted;
	bool fin_rcvd;
	bool announced;
	u32 announced_len;
	u32 nkept;
	struct exs_theirs *theirs;

	/* private: */
	const struct exs_engine_ops *ops;
	struct exs_engine_config config;
	struct exs_credits credits;
	int err;			/* the connection is dead            */

	struct list_head sends;		/* not wholly taken                  */
	struct list_head done_rcv;
	struct list_head done_snd;

	/* sender */
	u32 ps;			/* phase                                     */
	u32 sp;			/* next position, or message number          */
	u32 space;		/* F: free bytes in the peer's ring, or
				 * eager space
				 */
	u32 peer_ring;		/* R of the peer, 0: not described           */
	u32 ring_pos;		/* next offset in the peer's ring            */
	u32 ring_space;		/* seqpacket: free bytes there               */
	u32 eager_lost;		/* stream: eager bytes that were not returned
				 * when the ring was described
				 */
	u32 ring_nsegs;
	struct exs_held_queue held;
	struct exs_write write;
	struct exs_policy policy;
	bool fin_sent;
	bool ring_requested;
	bool space_stalled;	/* data waits for space or advert (stats)    */
	bool answer_due;
	u32 answer_phase;
	u32 request_len;	/* seqpacket: as announced for message sp,
				 * 0: not
				 */

	/* receiver */
	u32 pr;			/* phase                                     */
	u32 rp;			/* next position, or message number          */
	u32 ring;		/* R of ours, 0: none                        */
	u32 used;		/* B: bytes in the ring, or eager space used */
	u32 freed;		/* U: freed, not returned                    */
	u32 read_pos;		/* next offset in our ring                   */
	u32 eager_room;		/* stream: eager bytes that may come         */
	u32 eager_used;		/* eager bytes of those in @used             */
	u32 eager_pos;		/* where they begin                          */
	bool ring_told;		/* ours was described                        */
	bool ring_begun;	/* stream: the peer has begun to use it      */
	u32 ring_end;		/* seqpacket: place of the next message      */
	u32 ring_used;		/* bytes not read                            */
	u32 ring_held;		/* bytes read, held for other readers        */
	u32 ring_freed;		/* bytes freed, not returned                 */
	u32 readers;		/* messages in it that are being read        */
	/* The next of @nkept; its space is what was skipped before it. */
	struct exs_in_ring kept;
	u8 eager_waits;		/* seqpacket: eager ones that held up others */
	bool ring_hinted;	/* ring_asked because of them               */
	struct list_head arrived; /* seqpacket: receives with their messages */
	u32 adverts_max;	/* most of ours at one time                  */
	bool adverts_held;	/* exs_engine_hold_adverts()                 */
	u32 adverts_out, segs_out;
	u32 cancels;		/* cancelled receives that are advertised    */
	u32 revoke_phase;
	bool revoke_out;
	bool ring_asked;	/* the peer asked for one                    */
	bool advert_asked;	/* the peer asked for one, and waits         */
	bool ring_due;		/* ours has to be described                  */
};

/**
 * exs_engine_init() - start in phase 0
 * @e: zeroed or used before
 * @config: copied
 */
void exs_engine_init(struct exs_engine *e, const struct exs_engine_config *config);

/**
 * exs_engine_tune() - change what may change at any time
 * @e: the engine
 * @eager_max: largest message sent eagerly, at most EXS_WIRE_DATA_MAX; applies to those
 *	that are not yet on their way, announced or not
 * @adverts_max: most adverts of ours at one time, at least 1, and no more than the peer can
 *	hold; existing ones stay
 */
void exs_engine_tune(struct exs_engine *e, u32 eager_max, u32 adverts_max);

/**
 * exs_engine_send() - queue a send behind those before it
 * @e: the engine
 * @snd: @len and @max_piece, or @gate, set, the rest zero; the engine's until
 *	exs_engine_next_snd_done(), or until a tx with @snd_done is complete (exactly one of
 *	the two). After exs_engine_shutdown() it is done at once with -EPIPE.
 */
void exs_engine_send(struct exs_engine *e, struct exs_snd *snd);

/**
 * exs_engine_last_snd() - the send that more bytes may be added to
 * @e: the engine, of a stream
 *
 * Return: the last send, if nothing of it was handed out: its @len may grow, to U32_MAX at
 * most. Or NULL.
 */
struct exs_snd *exs_engine_last_snd(const struct exs_engine *e);

/* The most bytes that a send of a stream may have without making it need a ring. */
static inline u64 exs_engine_snd_max(const struct exs_engine *e)
{
	return e->peer_ring || !e->config.peer.eager_space ? ~0ull : e->config.eager_max;
}

/**
 * exs_engine_send_before() - queue a send at the place that a gate keeps
 * @e: the engine
 * @snd: as above, and behind others that came before the same gate; sent also after
 *	exs_engine_shutdown()
 * @gate: that has not ended
 */
void exs_engine_send_before(struct exs_engine *e, struct exs_snd *snd,
			    struct exs_snd *gate);

/* exs_engine_open() - nothing more comes before @gate, which has not ended: it goes on the
 * done list, without an error
 */
void exs_engine_open(struct exs_engine *e, struct exs_snd *gate);

/**
 * exs_engine_recv() - queue a receive behind those before it
 * @e: the engine
 * @rcv: @len, @flags, @max_window, @max_segs set, the rest zero; the engine's
 *	until exs_engine_next_rcv_done(). After FIN and the last byte of the ring
 *	it is done at once with EOF. A stream's for 0 bytes is done behind those before
 *	it. Seqpacket: only while the owner keeps no
 *	unread eager message, which would be older than any that it can get.
 */
void exs_engine_recv(struct exs_engine *e, struct exs_rcv *rcv);

/**
 * exs_engine_recv_kept() - seqpacket: a receive that a kept message was copied into
 * @e: the engine
 * @rcv: as for exs_engine_recv(), and @filled, @err. It ends with them, after those before
 *	it, which may still be copied from the ring
 */
void exs_engine_recv_kept(struct exs_engine *e, struct exs_rcv *rcv);

/**
 * exs_engine_cancel_snd() - take a send back if none of it was taken
 * @e: the engine
 * @snd: a send that was queued, and not yet taken from the done list
 *
 * Return: true: it is on the done list with -ECANCELED, or will be once the
 * transfer under way is handed out (partly taken stream send: @snd->taken bytes
 * went out, and pieces handed out before may still be in transmission); false:
 * wholly taken, perhaps by a transfer that began with an earlier send. It ends as sent,
 * or with the connection's error if the connection fails.
 */
bool exs_engine_cancel_snd(struct exs_engine *e, struct exs_snd *snd);

/**
 * exs_engine_cancel_rcv() - end a receive as soon as the protocol allows
 * @e: the engine
 * @rcv: a receive that was queued
 *
 * It appears on the done list, now or after the peer's answer, with
 * -ECANCELED or, if bytes reached it first, with those. One that has ended
 * already stays as it is.
 */
void exs_engine_cancel_rcv(struct exs_engine *e, struct exs_rcv *rcv);

/**
 * exs_engine_cancel_rcvs() - the same for all of them but plain readers
 * @e: the engine
 * @n: so many at the most
 * @in_order: those behind one that waits for the peer's answer stay: to be called again when
 *	that has ended
 *
 * Return: whether there are more that can be cancelled now.
 */
bool exs_engine_cancel_rcvs(struct exs_engine *e, u32 n, bool in_order);

/** exs_engine_shutdown() - FIN after the last queued send */
void exs_engine_shutdown(struct exs_engine *e);

/**
 * exs_engine_confirmed() - whether the peer has confirmed FIN, and so everything before it
 * @e: the engine
 *
 * Return: true without config.confirm: then the transport knows.
 */
bool exs_engine_confirmed(const struct exs_engine *e);

/**
 * exs_engine_fail() - the connection is dead: end everything
 * @e: the engine; afterwards it transmits nothing
 * @err: negative errno of what ends by this
 *
 * Sends that are queued end with @err; those that were taken whole are not the
 * engine's any more. Bytes in the ring stay readable, as after a reset of TCP:
 * receives, queued before or later, get them first and then end, with EOF if
 * FIN had come, else with @err. Adverts are void. The owner calls this only once
 * nothing can write into advertised memory (queue pair drained) and no copy is
 * under way.
 */
void exs_engine_fail(struct exs_engine *e, int err);

/**
 * exs_engine_settle() - end what FIN or the failure ends
 * @e: the engine
 *
 * EXS_SETTLE_MAX of each direction at a time. So the owner calls this after it has taken
 * everything that had ended.
 *
 * Return: whether more has ended.
 */
bool exs_engine_settle(struct exs_engine *e);

/**
 * exs_engine_hold_adverts() - whether exs_engine_next_tx() is to name no adverts
 * @e: the engine
 * @hold: for example because many at a time cost no more than one
 *
 * Not for ever: the peer may wait for them.
 */
static inline void exs_engine_hold_adverts(struct exs_engine *e, bool hold)
{
	e->adverts_held = hold;
}

/**
 * exs_engine_next_tx() - what to transmit next
 * @e: the engine
 * @max: most bytes of data in one piece, at least 4096
 * @tx: filled in
 *
 * Taking it commits to it: it must be transmitted, in this order, or the
 * connection reset. Priority: rest of a transfer begun, ANSWER, CREDIT, other
 * control, data.
 *
 * Return: whether there was something. Fields of @tx->msg and @tx that @tx->kind does not
 * use keep their values, except for counts, which are 0.
 */
bool exs_engine_next_tx(struct exs_engine *e, u32 max, struct exs_tx *tx);

/** exs_engine_next_copy() - ring bytes to copy; one at a time */
bool exs_engine_next_copy(struct exs_engine *e, struct exs_copy *copy);

/** exs_engine_copied() - the copy that exs_engine_next_copy() named is made */
void exs_engine_copied(struct exs_engine *e, const struct exs_copy *copy);

/** exs_engine_next_rcv_done() - a receive that ended, or NULL */
static inline struct exs_rcv *exs_engine_next_rcv_done(struct exs_engine *e)
{
	struct exs_rcv *rcv;

	rcv = list_first_entry_or_null(&e->done_rcv, struct exs_rcv, node);
	if (rcv)
		list_del_init(&rcv->node);
	return rcv;
}

/** exs_engine_next_snd_done() - a send that ended untransmitted, or NULL */
static inline struct exs_snd *exs_engine_next_snd_done(struct exs_engine *e)
{
	struct exs_snd *snd;

	snd = list_first_entry_or_null(&e->done_snd, struct exs_snd, node);
	if (snd)
		list_del_init(&snd->node);
	return snd;
}

/* Whether @e->theirs must be set before exs_engine_rx_msg() is called with @msg. */
static inline bool exs_engine_wants_theirs(const struct exs_engine *e, const struct exs_msg *msg)
{
	return !e->theirs && (msg->type == EXS_MSG_ADVERT || msg->type == EXS_MSG_RING);
}

/**
 * exs_engine_rx_msg() - a SEND arrived
 * @e: the engine
 * @msg: from exs_wire_get_msg(). For EAGER data see @rcv; see also
 *	exs_engine_wants_theirs().
 * @rcv: out: EAGER only: the receive that takes @msg->data (copy
 *	min(@msg->len, @rcv->len) bytes before the next call of the engine; it
 *	ends with them), or NULL: keep the message (bounded by eager_space)
 *	and call exs_engine_unqueued() when it was read. Stream: always NULL; keep the
 *	bytes from where exs_engine_eager_at() was before the call.
 *
 * If messages came into the ring (here with WRITTEN, else by exs_engine_rx_imm()) and no
 * receive took them, exs_engine_next_kept() tells their places in the ring afterwards: keep
 * those (their number is bounded by the ring), and see exs_engine_reading().
 *
 * Return: 0, or -EPROTO: the peer broke the rules, reset the connection.
 */
int exs_engine_rx_msg(struct exs_engine *e, const struct exs_msg *msg,
		      struct exs_rcv **rcv);

/*
 * Stream: where the owner keeps the bytes of the next eager message, in memory of our
 * eager_space bytes. At its end they go on at its beginning.
 */
static inline u32 exs_engine_eager_at(const struct exs_engine *e)
{
	return (e->eager_pos + e->eager_used) % max(e->config.ours.eager_space, 1u);
}

/** exs_engine_rx_imm() - an RDMA WRITE WITH IMMEDIATE arrived; as above */
int exs_engine_rx_imm(struct exs_engine *e, u32 imm);

/**
 * exs_engine_keeps() - seqpacket: messages that a WRITE brings and no receive takes
 * @e: the engine
 * @imm: with which it ends; as yet unchecked
 *
 * Return: how many, at most EXS_IMM_MANY_MAX, if exs_engine_rx_imm() accepts it.
 */
u32 exs_engine_keeps(const struct exs_engine *e, u32 imm);

/**
 * exs_engine_next_kept() - the next of them
 * @e: the engine
 * @m: out: its place
 *
 * Return: false: there is none.
 */
bool exs_engine_next_kept(struct exs_engine *e, struct exs_in_ring *m);

/** exs_engine_reposted() - the receive that a message used is posted again */
void exs_engine_reposted(struct exs_engine *e);

/**
 * exs_engine_resize() - have the peer know of more receives, or fewer
 * @e: the engine
 * @n: how many there are to be; EXS_WIRE_CREDITS_MIN to EXS_WIRE_CREDITS_MAX count
 *
 * More: they must be posted. Fewer: credits are kept back as receives are posted
 * again; what may be left out of the queue is said by exs_engine_credits().
 */
void exs_engine_resize(struct exs_engine *e, u32 n);

/* Whether both sides offer @feature, EXS_WIRE_F_*. */
static inline bool exs_engine_has(const struct exs_engine *e, u32 feature)
{
	return e->config.ours.features & e->config.peer.features & feature;
}

/* Whether a CREDIT could go now. */
static inline bool exs_engine_may_greet(const struct exs_engine *e)
{
	return e->credits.have;
}

/* Receives that the peer has been told of: so many must be posted. */
static inline u32 exs_engine_credits(const struct exs_engine *e)
{
	return e->credits.total;
}

/* With so many receives, turns of messages need no CREDIT. Wanted after as many CREDITs. */
#define EXS_CREDITS_FEW	8

/*
 * Whether the owner should post more receives, and call exs_engine_resize(): the peer asks, or
 * there are so few that CREDITs go all the time, although other messages could take the credits
 * along. Not before the peer has been told of the last change.
 */
static inline bool exs_engine_wants_credits(const struct exs_engine *e)
{
	const struct exs_credits *c = &e->credits;

	return c->wanted == c->total &&
	       (e->credits_wanted || (c->total < EXS_CREDITS_FEW && c->alone == EXS_CREDITS_FEW));
}

/*
 * Whether the peer has returned the credits of all transfers (and, where the transport does
 * not report arrival, of FIN): they have arrived, whatever the transport knows of that. It may
 * not have returned those of what went after them, such as a CREDIT.
 */
static inline bool exs_engine_all_arrived(const struct exs_engine *e)
{
	return !e->credits.awaited;
}

/**
 * exs_engine_greet() - make the next tx a CREDIT, though none is due
 * @e: the engine
 *
 * For the initiator on iWARP, which must send the first message.
 */
void exs_engine_greet(struct exs_engine *e);

/**
 * exs_engine_clock() - say what time it is
 * @e: the engine
 * @now: nanoseconds, never less than before
 * @outstanding: bytes that were transmitted, and did not arrive yet
 *
 * Called before exs_engine_next_tx(), and before the engine is told what has arrived. An
 * owner without a clock never calls it.
 */
void exs_engine_clock(struct exs_engine *e, u64 now, u64 outstanding);

/**
 * exs_engine_alarm() - when to transmit data that is held back for a while
 * @e: the engine
 *
 * Return: the time at which the owner must call exs_engine_clock() and
 * exs_engine_next_tx(), unless it does so earlier; 0: nothing is held back.
 */
u64 exs_engine_alarm(const struct exs_engine *e);

/** exs_engine_ring_ready() - our ring of @size bytes exists; describe it */
void exs_engine_ring_ready(struct exs_engine *e, u32 size);

/** exs_engine_ring_refused() - seqpacket: there will be none; messages go without */
void exs_engine_ring_refused(struct exs_engine *e);

/**
 * exs_engine_peek() - stream: bytes that a plain recv() at the head may copy
 * @e: the engine
 * @rcv: the plain recv()'s place in the order
 * @skip: bytes beyond the first to skip (second piece of a ring that wraps)
 * @ring_off: out: where they start
 *
 * Return: bytes in one piece, 0 if none or if @rcv is not the oldest receive.
 * They stay where they are until exs_engine_consume().
 */
u32 exs_engine_peek(const struct exs_engine *e, const struct exs_rcv *rcv,
		    u32 skip, u32 *ring_off);

/** exs_engine_consume() - stream: a plain recv() at the head copied @len bytes */
void exs_engine_consume(struct exs_engine *e, struct exs_rcv *rcv, u32 len);

/** exs_engine_unqueued() - seqpacket: a kept message of @len bytes was read */
void exs_engine_unqueued(struct exs_engine *e, u32 len);

/**
 * exs_engine_reading() - seqpacket: a thread begins to read a message in the ring
 * @e: the engine
 *
 * Until exs_engine_read() nothing that is there now is written to. Any number may read at
 * the same time, also the same message.
 */
void exs_engine_reading(struct exs_engine *e);

/**
 * exs_engine_read() - seqpacket: ... and has read it
 * @e: the engine
 * @space: what the message took of the ring; 0: it stays there
 */
void exs_engine_read(struct exs_engine *e, u32 space);

/**
 * exs_engine_remove_reader() - a plain recv() leaves the order
 * @e: the engine
 * @rcv: the plain recv()'s place in it
 *
 * At any time: also when it is on the done list (EOF, error), or was taken
 * from there.
 */
void exs_engine_remove_reader(struct exs_engine *e, struct exs_rcv *rcv);

/*
 * For poll(): all bytes read and no more will come; bytes there to read, for
 * seqpacket nonzero if there is a message (kept or announced).
 */
bool exs_engine_eof(const struct exs_engine *e);
u32 exs_engine_readable(const struct exs_engine *e);

/* Seqpacket: whether a receive of @len bytes with EXS_RCV_FETCH would get the announced message. */
static inline bool exs_engine_fetches(const struct exs_engine *e, u64 len)
{
	return e->announced && e->announced_len == len && list_empty(&e->receives);
}

/**
 * exs_engine_enough() - whether to wake a reader who wants @lowat bytes at once
 * @e: the engine
 * @lowat: streams only
 *
 * Half a ring is enough: as freed space goes back in batches, the peer may not be
 * able to fill it much further.
 */
bool exs_engine_enough(const struct exs_engine *e, u32 lowat);

#endif
