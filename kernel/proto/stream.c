// SPDX-License-Identifier: GPL-2.0
/*
 * Byte streams: direct into advertised receives, indirect through the ring.
 *
 * Each direction of a connection has a sender and a receiver; messages and
 * data of both travel over one reliable, ordered channel each way. Even phases
 * are direct, odd ones indirect. A model checker explores these rules
 * exhaustively, and finds what goes wrong without each of them.
 *
 *  1. Sender: phase Ps, next position Sp, free ring bytes F, queue of adverts. Receiver:
 *     phase Pr, next position Rp, bytes in the ring B, bytes freed but not returned U,
 *     queue of receives; the advertised ones are a prefix. Phases and positions begin at 0
 *     and wrap at 2^32. There is no ring at first (size R = 0): a sender with bytes and no
 *     advert sends REQUEST, unless rule 12 is enough. The receiver describes its ring with
 *     RING, once; then F = R.
 *  2. ADVERT{phase, waitall, segments, returned space} is sent in the order of the
 *     receives, only while B = 0 and before FIN. If Pr is odd, it opens the next phase: Pr
 *     += 1, and the advert is marked first and carries the position Rp. It does so when a
 *     REQUEST came after the last INDIRECT, or if it guesses that nothing is in flight
 *     (policy.c). A WAITALL receive longer than its window is advertised window by window;
 *     receives behind it are advertised only after its last window.
 *  3. Sender on ADVERT: F += returned space, even if the advert is dropped. It is dropped
 *     after FIN, or if its phase is before Ps. In phase Ps it is held. If it is the first
 *     in phase Ps + 1 and its position is Sp, Ps += 1 and it is held; with another position
 *     bytes are in flight, and the whole phase is void: Ps += 2.
 *  4. DIRECT(n): into the head advert, 1 <= n <= its rest, bytes of one send or of several. A
 *     WAITALL advert is consumed when full, any other one by one write.
 *  5. INDIRECT(n): only without an advert, 1 <= n <= F, likewise, contiguous in the ring. (A sender
 *     may forget its adverts: the INDIRECT voids them, rule 6.) It is the switch: Ps |= 1;
 *     adverts of this phase that arrive later are too late. There is no switch until it can
 *     be sent (ring, space, credits).
 *  6. Receiver on INDIRECT: B += n, Rp += n, Pr |= 1; all adverts are void, and
 *     cancels end. Bytes are copied in order, oldest receive first: U += n,
 *     B -= n. A receive that is not WAITALL ends when the ring is empty.
 *  7. Space goes back with every advert and EAGER, and alone in batches: a sender with less
 *     than R - batch in flight or in the ring is not stuck, and without a ring it requests one.
 *  8. Cancel, REVOKE(phase), ANSWER(phase, Sp): see receive.c for the receiver.
 *     Sender on REVOKE(p): if p = Ps then Ps += 1 and adverts are forgotten, at
 *     once; ANSWER goes before any later data. It is always sent, even if p is
 *     stale, even after FIN.
 *  9. Receiver on ANSWER(p): if p = Pr then Pr += 1 and all adverts are void;
 *     else only the revoke is over.
 * 10. FIN goes after the last byte, without ring space; the sender forgets its
 *     adverts. Receiver: Pr |= 1, adverts void, cancels and revoke over, nothing
 *     more is advertised or returned. When B = 0 every receive ends with EOF.
 * 11. In an indirect phase a sender may stop to get an advert, and send REQUEST again: the
 *     next possible advert is a first one, and matches if it has sent nothing more.
 * 12. Before there is a ring (EXS_WIRE_F_STREAM_EAGER): F = E, the receiver's eager space.
 *     EAGER(position, n, returned space) replaces INDIRECT(n), with bytes of a short send,
 *     1 <= n <= F, under rules 3, 5, 6 and 7. A sender without space requests a ring. Its
 *     receiver stores the bytes itself.
 * 13. Both start again with RING: the sender sends nothing eagerly any more, and has F = R;
 *     the receiver returns nothing of E any more. It reads eager bytes before later bytes
 *     in the ring.
 */
#include "private.h"

/*
 * Rule 7: whether space is returned alone. Not while the longest EAGER has room: an answer, if
 * it is an EAGER, returns it for nothing.
 */
static bool space_due(const struct exs_engine *e)
{
	u32 eager = e->config.ours.eager_space;

	if (e->ring_told)
		return e->freed > e->ring / 4;
	return e->freed > eager / 4 && e->eager_room < min(EXS_WIRE_DATA_MAX, (eager + 1) / 2);
}

/* Space to return to the peer: none after its FIN. */
static u32 take_freed(struct exs_engine *e)
{
	u32 n = e->fin_rcvd ? 0 : e->freed;

	if (!e->ring_told)
		e->eager_room += n;
	e->freed -= n;
	return n;
}

/* ---- sender ---- */

/*
 * The parts of the ring are written, copied and returned at the same time. So a transfer
 * takes at most a quarter of it, or this many bytes if that is more.
 */
#define RING_PIECE_MIN	4096u

/*
 * Sends that wait together go as one transfer: one packet, if they are short, one immediate
 * and one credit. Not too many bytes: the receiver begins with them when the last has come.
 */
#define GATHER_BYTES	32768u
#define GATHER_SENDS	16

static bool stream_has_space(const struct exs_engine *e)
{
	return e->space || !exs_rule(RING_FULL);
}

static bool stream_has_ring(const struct exs_engine *e)
{
	return e->peer_ring && stream_has_space(e);
}

/* The most that @space can be. */
static u32 space_max(const struct exs_engine *e)
{
	return e->peer_ring ?: e->config.peer.eager_space;
}

/* Rules 12 and 13. */
static bool stream_is_eager(const struct exs_engine *e, const struct exs_snd *snd)
{
	return e->config.peer.eager_space && snd->len <= e->config.eager_max &&
	       (!e->peer_ring || !exs_rule(EAGER_ENDS)) && stream_has_space(e);
}

/* Rule 5: why data cannot be sent now, apart from credits. */
static bool stream_has_room(struct exs_engine *e, const struct exs_snd *snd)
{
	bool space = stream_has_ring(e) || stream_is_eager(e, snd);

	if (e->held.count || (space && !exs_policy_waits(e))) {
		e->space_stalled = false;
		return true;
	}
	return exs_stalled(&e->space_stalled, &e->stats.ring_stalls);
}

/* @len bytes of @snd, and of those in e->write.rest. */
static void stream_commit(struct exs_engine *e, struct exs_snd *snd, u32 len)
{
	e->sp += len;
	exs_policy_sent(e, len);
	snd->taken += min_t(u64, len, snd->len - snd->taken);
	if (snd->taken == snd->len)
		list_del_init(&snd->node);
}

/*
 * Rules 4 and 5: the bytes of a transfer into @room bytes that begins with @snd. It may take
 * others whole.
 */
exs_hot
static u32 stream_gather(struct exs_engine *e, struct exs_snd *snd, u32 room)
{
	u32 len = min_t(u64, snd->len - snd->taken, room);
	struct exs_snd *next;
	u32 n;

	room = min(room, GATHER_BYTES);
	for (n = 1; n < GATHER_SENDS && !list_is_last(&snd->node, &e->sends); n++) {
		next = list_next_entry(snd, node);
		if (next->gate || len > room || next->len > room - len || !exs_policy_gathers(e))
			break;
		next->taken = next->len;
		list_move_tail(&next->node, &e->write.rest);
		len += next->len;
		e->stats.joined_sends++;
	}
	return len;
}

/* Rule 4. */
static void stream_begin_direct(struct exs_engine *e, struct exs_snd *snd)
{
	struct exs_held *head = exs_held_head(e);
	u32 len = stream_gather(e, snd, head->len - head->used);

	exs_write_direct(e, snd, len, exs_imm(EXS_IMM_DIRECT, len));
	head->used += len;
	if (!head->waitall || head->used == head->len)
		exs_held_pop(e);
	stream_commit(e, snd, len);
}

/* Rule 5: whether the data goes without an advert. */
static void stream_switch(struct exs_engine *e)
{
	if (!(e->ps & 1)) {
		e->stats.phases++;
		exs_policy_closed(e);
	}
	if (exs_rule(SWITCH))
		e->ps |= 1;
}

/* Rule 12. */
static bool stream_tx_eager(struct exs_engine *e, struct exs_snd *snd, struct exs_tx *tx)
{
	u32 len = snd->len - snd->taken;

	if (exs_rule(RING_FULL))
		len = min(len, e->space);
	exs_tx_message(e, tx, EXS_MSG_EAGER);
	exs_credit_await(e);
	tx->kind = EXS_TX_EAGER;
	tx->snd = snd;
	tx->offset = snd->taken;
	tx->len = len;
	tx->msg.a = e->sp;
	tx->msg.b = len;
	tx->msg.c = take_freed(e);
	stream_switch(e);
	e->space -= len;
	e->stats.eager_bytes += len;
	e->stats.eager_msgs++;
	stream_commit(e, snd, len);
	tx->snd_done = list_empty(&snd->node);
	return true;
}

/* Rule 5. */
static void stream_begin_indirect(struct exs_engine *e, struct exs_snd *snd)
{
	u32 room = max(e->peer_ring / 4, RING_PIECE_MIN), len;
	enum exs_imm_kind kind;

	if (exs_rule(CONTIGUOUS))
		room = min(room, e->peer_ring - e->ring_pos);
	if (exs_rule(RING_FULL))
		room = min(room, e->space);
	len = stream_gather(e, snd, room);
	stream_switch(e);
	e->space -= len;
	kind = exs_policy_more(e, snd, len) ? EXS_IMM_MORE : EXS_IMM_INDIRECT;
	exs_write_indirect(e, snd, len, exs_imm(kind, len));
	stream_commit(e, snd, len);
}

exs_hot
static bool stream_data(struct exs_engine *e, u32 max, struct exs_tx *tx)
{
	struct exs_snd *snd = exs_snd_next(e);

	if (!snd || !stream_has_room(e, snd) || !exs_credit_for_data(e))
		return false;
	if (e->held.count && stream_has_ring(e) && exs_policy_leaves(e))
		exs_held_forget(e);
	if (!e->held.count && stream_is_eager(e, snd))
		return stream_tx_eager(e, snd, tx);
	if (e->held.count)
		stream_begin_direct(e, snd);
	else
		stream_begin_indirect(e, snd);
	return exs_write_next(e, max, tx);
}

/* Rules 1 and 11. */
static bool stream_tx_request(struct exs_engine *e, struct exs_tx *tx)
{
	const struct exs_snd *snd = exs_snd_next(e);

	if (!snd)
		return false;
	if (!e->ring_requested && (e->held.count ? !exs_policy_wants_ring(e) :
						   stream_is_eager(e, snd)))
		return false;
	if (e->ring_requested && !(e->ps & 1 && exs_policy_asks(e)))
		return false;
	e->policy.asked_at = e->policy.now;
	e->ring_requested = true;
	return exs_tx_message(e, tx, EXS_MSG_REQUEST);
}

/* Rule 1. */
static int stream_rx_ring(struct exs_engine *e, const struct exs_msg *msg,
			  struct exs_rcv **rcv)
{
	if (!e->ring_requested || exs_ring_described(e, msg))
		return -EPROTO;
	exs_policy_ring(e);
	e->eager_lost = e->config.peer.eager_space - e->space;
	e->space = msg->b;
	return 0;
}

static int stream_drop_advert(struct exs_engine *e, u32 space)
{
	e->stats.adverts_dropped++;
	if (!exs_rule(SPACE_ALWAYS))
		e->space = space;
	return 0;
}

/* Rule 3: a first advert. @space: free bytes before it came. */
static int stream_open_phase(struct exs_engine *e, const struct exs_msg *msg, u32 space)
{
	u32 in_flight = e->sp - msg->b;

	if (in_flight > space_max(e) - space + e->eager_lost)
		return -EPROTO;
	if (in_flight && exs_rule(POSITION)) {
		/* Without the rule: the next advert of the phase is taken. */
		e->ps = exs_rule(WHOLE_PHASE) ? msg->a + 1 : msg->a;
		exs_policy_missed(e);
		return stream_drop_advert(e, space);
	}
	e->ps = msg->a;
	e->stats.phases++;
	exs_policy_opened(e);
	return exs_held_push(e, msg);
}

/* Rule 3. */
static int stream_rx_advert(struct exs_engine *e, const struct exs_msg *msg,
			    struct exs_rcv **rcv)
{
	bool first = msg->flags & EXS_MSG_F_FIRST;
	s32 ahead = (s32)(msg->a - e->ps);
	bool ahead_of_us = ahead > 0;
	u32 space = e->space;

	if (exs_space_returned(e, msg->c, space_max(e)) || !msg->nsegs || msg->a & 1)
		return -EPROTO;
	if (e->fin_sent)
		return stream_drop_advert(e, space);
	if (first != ahead_of_us || ahead > 1)
		return -EPROTO;
	if (ahead < 0)
		return stream_drop_advert(e, space);
	return first ? stream_open_phase(e, msg, space) : exs_held_push(e, msg);
}

static int stream_rx_space(struct exs_engine *e, const struct exs_msg *msg,
			   struct exs_rcv **rcv)
{
	return msg->b ? -EPROTO : exs_space_returned(e, msg->c, space_max(e));
}

/* Rule 8. */
static int stream_rx_revoke(struct exs_engine *e, const struct exs_msg *msg,
			    struct exs_rcv **rcv)
{
	bool ahead = (s32)(msg->a - e->ps) > 0;

	if (e->answer_due || msg->a & 1 || (ahead && !e->fin_sent))
		return -EPROTO;
	if (e->fin_sent && !exs_rule(FIN_ANSWERS))
		return 0;
	e->answer_due = true;
	e->answer_phase = msg->a;
	if (msg->a == e->ps) {
		exs_held_forget(e);
		if (exs_rule(ONE_STEP))
			e->ps++;
	}
	return 0;
}

/* ---- receiver ---- */

exs_hot
static bool stream_advertisable(const struct exs_engine *e,
				const struct exs_rcv *rcv)
{
	return rcv->flags & EXS_RCV_DIRECT && rcv->len && exs_rcv_can_advertise(rcv);
}

static bool stream_tx_space(struct exs_engine *e, struct exs_tx *tx)
{
	if (!space_due(e) || e->fin_rcvd || !exs_rule(SPACE_ALONE))
		return false;
	exs_tx_message(e, tx, EXS_MSG_SPACE);
	tx->msg.c = take_freed(e);
	return true;
}

/* Rule 13. */
static bool stream_tx_ring(struct exs_engine *e, struct exs_tx *tx)
{
	if (!exs_tx_ring(e, tx))
		return false;
	if (exs_rule(RING_ANEW))
		e->freed = 0;
	return true;
}

/* Rule 2: whether to open a phase. */
static bool stream_opens(const struct exs_engine *e)
{
	return e->advert_asked || exs_policy_guesses(e);
}

/* Rule 2. */
static bool stream_tx_advert(struct exs_engine *e, struct exs_tx *tx)
{
	struct exs_rcv *rcv;
	bool first = e->pr & 1;

	if (e->fin_rcvd || (e->used && exs_rule(EMPTY_RING)) || (first && !stream_opens(e)))
		return false;
	rcv = exs_rcv_next_advert(e);
	if (!rcv)
		return false;

	exs_rcv_advertise(e, rcv, tx);
	if (first) {
		e->pr++;
		e->advert_asked = false;
		tx->msg.flags |= EXS_MSG_F_FIRST;
		tx->msg.b = e->rp;
	}
	if (rcv->flags & EXS_RCV_WAITALL)
		tx->msg.flags |= EXS_MSG_F_WAITALL;
	tx->msg.a = e->pr;
	tx->msg.c = take_freed(e);
	return true;
}

/* Rule 4. */
static int stream_rx_direct(struct exs_engine *e, u32 len)
{
	struct exs_rcv *rcv = exs_rcv_head(e);
	u32 left;

	if (!rcv || !(rcv->flags & EXS_RCV_ADVERTISED))
		return -EPROTO;
	left = rcv->window - (u32)(rcv->filled - rcv->base);
	if (len > left)
		return -EPROTO;

	e->rp += len;
	e->stats.received_bytes += len;
	e->policy.used++;
	rcv->filled += len;
	if (!(rcv->flags & EXS_RCV_WAITALL) || rcv->filled == rcv->len) {
		exs_rcv_end(e, rcv, 0);
	} else if (len == left) {
		bool cancelled = rcv->flags & EXS_RCV_CANCEL;

		exs_rcv_unadvertise(e, rcv);
		if (cancelled)
			exs_rcv_end_cancelled(e, rcv);
	}
	return 0;
}

/* The place of the next byte that arrives; only with a ring. */
static u32 ring_end(const struct exs_engine *e)
{
	u32 pos = e->read_pos + e->used - e->eager_used;

	return pos < e->ring ? pos : pos - e->ring;
}

/* Rule 6. */
static void stream_arrived(struct exs_engine *e, u32 len, bool more)
{
	e->used += len;
	e->rp += len;
	e->stats.received_bytes += len;
	e->advert_asked = false;
	exs_policy_indirect(e, more);
	if (!(e->pr & 1))
		e->pr++;
	if (exs_rule(INDIRECT_VOIDS))
		exs_rcv_void_all(e);
}

static int stream_rx_indirect(struct exs_engine *e, u32 len, bool more)
{
	u32 used = e->used - e->eager_used;

	if (!e->ring_told || len > e->ring - used - e->freed || len > e->ring - ring_end(e))
		return -EPROTO;
	e->ring_begun = true;
	stream_arrived(e, len, more);
	return 0;
}

/* Rules 12 and 13. */
static int stream_rx_eager(struct exs_engine *e, const struct exs_msg *msg,
			   struct exs_rcv **rcv)
{
	if (e->fin_rcvd || e->ring_begun || msg->a != e->rp || !msg->len ||
	    msg->b != msg->len || msg->len > e->eager_room ||
	    exs_space_returned(e, msg->c, space_max(e)))
		return -EPROTO;
	e->eager_room -= msg->len;
	e->eager_used += msg->len;
	stream_arrived(e, msg->len, false);
	return 0;
}

exs_hot
static int stream_rx_imm(struct exs_engine *e, u32 imm)
{
	u32 kind = exs_imm_kind(imm), len = exs_imm_len(imm);

	if (e->fin_rcvd || !len)
		return -EPROTO;
	switch (kind) {
	case EXS_IMM_DIRECT:
		return stream_rx_direct(e, len);
	case EXS_IMM_INDIRECT:
	case EXS_IMM_MORE:
		return stream_rx_indirect(e, len, kind == EXS_IMM_MORE);
	default:
		return -EPROTO;
	}
}

/* Rule 9. All data sent before the ANSWER has arrived: positions agree. */
static int stream_rx_answer(struct exs_engine *e, const struct exs_msg *msg,
			    struct exs_rcv **rcv)
{
	if (msg->b != e->rp)
		return -EPROTO;
	if (e->fin_rcvd && exs_rule(FIN_ANSWERS))
		return 0;	/* FIN ended the revoke earlier */
	if (!e->revoke_out || msg->a != e->revoke_phase)
		return -EPROTO;
	e->revoke_out = false;
	if (exs_rule(ANSWER_PHASE) && msg->a != e->pr)
		return 0;
	e->pr |= 1;
	exs_rcv_void_all(e);
	return 0;
}

/* Rules 1 and 11. */
static int stream_rx_request(struct exs_engine *e, const struct exs_msg *msg,
			     struct exs_rcv **rcv)
{
	if (e->fin_rcvd || msg->a || msg->b)
		return -EPROTO;
	e->advert_asked = true;
	if (e->ring_asked)
		return 0;
	e->ring_asked = true;
	e->ring_wanted = !e->ring;
	e->ring_due = e->ring;
	return 0;
}

/* Rule 10. */
static int stream_rx_fin(struct exs_engine *e, const struct exs_msg *msg,
			 struct exs_rcv **rcv)
{
	if (e->fin_rcvd)
		return -EPROTO;
	e->fin_rcvd = true;
	e->ring_wanted = false;
	if (!exs_rule(FIN_ANSWERS))
		return 0;
	e->pr |= 1;
	exs_rcv_void_all(e);
	e->revoke_out = false;
	return 0;
}

/* Receives for 0 bytes end behind those before them. See exs_engine_settle(). */
static void stream_end_empty(struct exs_engine *e)
{
	struct exs_rcv *rcv;
	u32 n = EXS_SETTLE_MAX;

	while ((rcv = exs_rcv_head(e)) && !rcv->len && n--)
		exs_rcv_end(e, rcv, 0);
}

exs_hot
static void stream_settle(struct exs_engine *e)
{
	stream_end_empty(e);
	if ((e->fin_rcvd && (!e->used || !exs_rule(RING_FIRST))) ||
	    (e->err && !e->used))
		exs_rcv_end_all(e);
}

/* ---- the ring's bytes ---- */

/* Rule 13: eager bytes are read first. */
static bool eager_is_next(const struct exs_engine *e)
{
	return e->eager_used && (e->eager_used == e->used || exs_rule(EAGER_FIRST));
}

/* Rule 13: eager space is not returned once there is a ring. */
static void eager_free(struct exs_engine *e, u32 len)
{
	e->eager_used -= len;
	e->eager_pos = (e->eager_pos + len) % e->config.ours.eager_space;
	if (!e->ring_told || !exs_rule(RING_ANEW))
		e->freed += len;
}

/* Bytes in one piece, see below. */
static void ring_free(struct exs_engine *e, u32 len)
{
	bool eager = eager_is_next(e);

	e->used -= len;
	if (eager)
		return eager_free(e, len);
	e->freed += len;
	e->read_pos += len;
	if (e->read_pos >= e->ring)
		e->read_pos -= e->ring;
}

static u32 eager_piece(const struct exs_engine *e, u32 skip, u32 *ring_off)
{
	u32 size = e->config.ours.eager_space;
	u32 pos = (e->eager_pos + skip) % size;

	*ring_off = pos | EXS_OFF_EAGER;
	return min(e->eager_used - skip, size - pos);
}

/* Bytes in one piece, after skipping @skip bytes. */
static u32 ring_piece(const struct exs_engine *e, u32 skip, u32 *ring_off)
{
	u32 used = e->used - e->eager_used, pos;

	if (skip >= e->used)
		return 0;
	if (eager_is_next(e)) {
		if (skip < e->eager_used)
			return eager_piece(e, skip, ring_off);
		skip -= e->eager_used;
	}
	pos = e->read_pos + skip;
	if (pos >= e->ring)
		pos -= e->ring;
	*ring_off = pos;
	return min(used - skip, e->ring - pos);
}

exs_hot
static bool stream_next_copy(struct exs_engine *e, struct exs_copy *copy)
{
	struct exs_rcv *rcv = exs_rcv_head(e);

	if (!rcv || rcv->flags & (EXS_RCV_READER | EXS_RCV_COPYING))
		return false;
	copy->len = ring_piece(e, 0, &copy->ring_off);
	if (!copy->len)
		return false;
	copy->len = min_t(u64, copy->len, rcv->len - rcv->filled);
	copy->rcv = rcv;
	copy->rcv_off = rcv->filled;
	rcv->flags |= EXS_RCV_COPYING;
	return true;
}

exs_hot
static void stream_copied(struct exs_engine *e, const struct exs_copy *copy)
{
	struct exs_rcv *rcv = copy->rcv;

	rcv->flags &= ~EXS_RCV_COPYING;
	rcv->filled += copy->len;
	ring_free(e, copy->len);
	if (rcv->filled == rcv->len || rcv->flags & EXS_RCV_CANCEL ||
	    (!(rcv->flags & EXS_RCV_WAITALL) && !e->used))
		exs_rcv_end(e, rcv, 0);
}

u32 exs_engine_peek(const struct exs_engine *e, const struct exs_rcv *rcv,
		    u32 skip, u32 *ring_off)
{
	if (!rcv || rcv != exs_rcv_head(e))
		return 0;
	return ring_piece(e, skip, ring_off);
}

void exs_engine_consume(struct exs_engine *e, struct exs_rcv *rcv, u32 len)
{
	if (rcv != exs_rcv_head(e))
		return;
	len = min(len, e->used);
	rcv->filled += len;
	ring_free(e, len);
	e->ops->settle(e);
}

exs_hot
static bool stream_control(struct exs_engine *e, struct exs_tx *tx)
{
	return (e->cancels && exs_tx_revoke(e, tx)) || (e->ring_due && stream_tx_ring(e, tx)) ||
	       stream_tx_space(e, tx) || stream_tx_advert(e, tx) ||
	       stream_tx_request(e, tx) || (e->fin_wanted && exs_tx_fin(e, tx));
}

const struct exs_engine_ops exs_stream_ops = {
	.control	= stream_control,
	.data		= stream_data,
	.rx_imm		= stream_rx_imm,
	.settle		= stream_settle,
	.advertisable	= stream_advertisable,
	.next_copy	= stream_next_copy,
	.copied		= stream_copied,
	.rx = {
		[EXS_MSG_CREDIT]	= exs_rx_credit,
		[EXS_MSG_ADVERT]	= stream_rx_advert,
		[EXS_MSG_REVOKE]	= stream_rx_revoke,
		[EXS_MSG_ANSWER]	= stream_rx_answer,
		[EXS_MSG_SPACE]		= stream_rx_space,
		[EXS_MSG_REQUEST]	= stream_rx_request,
		[EXS_MSG_RING]		= stream_rx_ring,
		[EXS_MSG_EAGER]		= stream_rx_eager,
		[EXS_MSG_FIN]		= stream_rx_fin,
	},
};
