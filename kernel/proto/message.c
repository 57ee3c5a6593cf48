// SPDX-License-Identifier: GPL-2.0
/*
 * Messages (SOCK_SEQPACKET): one send is one receive.
 *
 * Both sides count messages, and each advert names its message. So there are no phases and
 * nothing has to match: an advert for a message that went another way is recognised by its
 * number. A model checker explores these rules exhaustively, and finds what goes wrong
 * without each.
 *
 *  1. Sender: number Sp of the next message, free eager space F, adverts held.
 *     Receiver: number Rp of the next message to arrive, eager space used B (by
 *     messages that the owner keeps unread), freed but not returned U, queue of
 *     receives; the advertised ones are a prefix. Numbers begin at 0 and wrap at
 *     2^32. Receives are queued only while no message is kept, so receive i of
 *     the queue gets message Rp + i.
 *  2. ADVERT{number, segments, returned space}: for receive i the number Rp + i, in order,
 *     before FIN, and only while no revoke is due or out. Receives with EXS_RCV_DIRECT are
 *     advertised in advance, unless messages have been eager recently (policy.c). The head,
 *     if not advertised, is once its message is announced. The window is all of the
 *     receive; it may be empty.
 *  3. Sender on ADVERT: F += returned space. The advert is dropped after FIN, or if its
 *     number is before Sp. Otherwise its number is Sp + (adverts held): adverts are always
 *     for Sp, Sp + 1, ... without a gap.
 *  4. EAGER{number, data}: at most eager_max bytes, and length + overhead <= F. Sp += 1, F
 *     -= length + overhead; an advert held for that number is dropped. The receiver gives
 *     the message to the head, whose advert, if any, is void. Without a receive the owner
 *     keeps it: B += length + overhead, until it is read.
 *  5. DIRECT(n): any other message, but those of message_ring.c, into the advert for it:
 *     n is its length, or all of an advert that is too short: then TRUNCATED(n), the rest
 *     is dropped.
 *     A message that could be eager but for lack of space takes an advert too, if there
 *     is no room in a ring.
 *  6. REQUEST{number, length}: for message Sp, if it never fits eagerly, nor in the ring, and
 *     there is no advert for it; once. It ends with the arrival of message Sp, whichever way
 *     that goes. If its send is cancelled, and the next message is not as long, REQUEST with
 *     length 0 takes it back: the sender forgets all adverts, every advert is void, and Sp
 *     and Rp leave out so many numbers that adverts still under way are before Sp. A receive
 *     made for the announced message, with its length, ends with the announcement: the next
 *     message may be longer.
 *  7. Eager space goes back with any advert, alone when half is freed, or when
 *     nothing is unread and less than the largest eager message needs is left
 *     at the sender.
 *  8. Cancel: a receive behind the advertised ones ends at once. For an
 *     advertised one, see receive.c: REVOKE; the sender forgets all adverts and
 *     sends ANSWER(Sp) before any later data; on ANSWER every advert is void, the
 *     cancelled receives end, the numbers of the others shift, and they are
 *     advertised again. No advert goes out meanwhile, so none needs to be told
 *     from those before.
 *  9. FIN goes after the last message. Every receive that has none ends with EOF, the
 *     announcement and any revoke are over, nothing is advertised or returned.
 */
#include "private.h"

static u32 eager_cost(u32 len)
{
	return len + EXS_EAGER_OVERHEAD;
}

/* ---- sender ---- */

/* Rule 6: whether space for it will come by waiting. */
static bool fits_eagerly(const struct exs_engine *e, const struct exs_snd *snd)
{
	return snd->len <= e->config.eager_max &&
	       eager_cost(snd->len) <= e->config.peer.eager_space;
}

static bool message_is_eager(const struct exs_engine *e, const struct exs_snd *snd)
{
	return fits_eagerly(e, snd) &&
	       (eager_cost(snd->len) <= e->space || !exs_rule(EAGER_FULL));
}

/* Message Sp is on its way. */
void exs_message_commit(struct exs_engine *e, struct exs_snd *snd)
{
	snd->taken = snd->len;
	list_del_init(&snd->node);
	e->sp++;
	e->request_len = 0;
}

/* Rule 4: its message goes another way. */
static void message_drop_advert(struct exs_engine *e)
{
	if (!e->held.count || !exs_rule(EAGER_DROPS))
		return;
	e->stats.adverts_dropped++;
	exs_held_pop(e);
}

/* Rule 4. */
static bool message_tx_eager(struct exs_engine *e, struct exs_snd *snd, struct exs_tx *tx)
{
	exs_tx_message(e, tx, EXS_MSG_EAGER);
	exs_credit_await(e);
	tx->kind = EXS_TX_EAGER;
	tx->snd = snd;
	tx->len = snd->len;
	tx->snd_done = true;
	tx->msg.a = e->sp;
	tx->msg.b = snd->len;
	tx->msg.c = !e->peer_ring && exs_message_next_waits(e, snd);

	e->space -= eager_cost(snd->len);
	message_drop_advert(e);
	e->stats.eager_bytes += snd->len;
	e->stats.eager_msgs++;
	exs_message_commit(e, snd);
	return true;
}

/* Rule 15: @n messages behind @snd go with it. */
static void message_join(struct exs_engine *e, struct exs_snd *snd, u32 n)
{
	e->stats.joined_sends += n;
	while (n--) {
		struct exs_snd *next = list_next_entry(snd, node);

		if (exs_rule(MANY_ADVERTS))
			message_drop_advert(e);
		exs_message_commit(e, next);
		list_add_tail(&next->node, &e->write.rest);
	}
}

/* They give up the adverts for them, as an eager one does. */
static bool message_tx_indirect(struct exs_engine *e, struct exs_snd *snd, u32 n, u32 max,
				struct exs_tx *tx)
{
	message_drop_advert(e);
	exs_message_into_ring(e, snd, n);
	message_join(e, snd, n - 1);
	exs_message_commit(e, snd);
	return exs_write_next(e, max, tx);
}

/* Rule 5. */
static bool message_tx_direct(struct exs_engine *e, struct exs_snd *snd, u32 max,
			      struct exs_tx *tx)
{
	u32 room = exs_held_head(e)->len;
	u32 len = min_t(u64, snd->len, room);
	u32 kind = snd->len > room ? EXS_IMM_TRUNCATED : EXS_IMM_DIRECT;

	exs_write_direct(e, snd, len, exs_imm(kind, len));
	exs_held_pop(e);
	exs_message_commit(e, snd);
	return exs_write_next(e, max, tx);
}

exs_hot
static bool message_data(struct exs_engine *e, u32 max, struct exs_tx *tx)
{
	struct exs_snd *snd = exs_snd_next(e);
	bool eager, ring;
	u32 many;

	if (!snd)
		return false;
	many = exs_message_many(e, snd);
	eager = many == 1 && message_is_eager(e, snd);
	ring = !eager && exs_message_ring_room(e, snd);
	if (!eager && !ring && !e->held.count)
		return exs_stalled(&e->space_stalled, &e->stats.ring_stalls);
	e->space_stalled = false;
	if (!exs_credit_for_data(e))
		return false;
	if (eager)
		return message_tx_eager(e, snd, tx);
	if (ring)
		return message_tx_indirect(e, snd, many, max, tx);
	return message_tx_direct(e, snd, max, tx);
}

static void message_announce(struct exs_engine *e, u32 len, struct exs_tx *tx)
{
	e->request_len = len;
	exs_tx_message(e, tx, EXS_MSG_REQUEST);
	tx->msg.a = e->sp;
	tx->msg.b = len;
}

/* Rule 6: its send was cancelled. */
static bool message_take_back(struct exs_engine *e, struct exs_tx *tx)
{
	if (!exs_rule(WITHDRAW))
		return false;
	message_announce(e, 0, tx);
	if (exs_rule(TAKEN_BACK)) {
		exs_held_forget(e);
		e->sp += EXS_WIRE_TAKEN_BACK;
	}
	return true;
}

/* Rule 6. */
static bool message_tx_request(struct exs_engine *e, struct exs_tx *tx)
{
	struct exs_snd *snd = exs_snd_next(e);
	u32 len = snd ? snd->len : 0;

	if (len == e->request_len)
		return false;
	if (e->request_len)
		return message_take_back(e, tx);
	if (e->held.count || fits_eagerly(e, snd) || exs_message_fits_ring(e, snd) ||
	    !exs_rule(REQUEST))
		return false;
	message_announce(e, len, tx);
	return true;
}

/* Rule 3. */
static int message_rx_advert(struct exs_engine *e, const struct exs_msg *msg,
			     struct exs_rcv **rcv)
{
	s32 ahead = (s32)(msg->a - e->sp);

	if (msg->flags || exs_space_returned(e, msg->c, e->config.peer.eager_space))
		return -EPROTO;
	if (e->fin_sent || (ahead < 0 && exs_rule(STALE_ADVERT))) {
		e->stats.adverts_dropped++;
		return 0;
	}
	if (ahead != e->held.count && exs_rule(STALE_ADVERT) && exs_rule(EAGER_DROPS))
		return -EPROTO;
	return exs_held_push(e, msg);
}

static int message_rx_space(struct exs_engine *e, const struct exs_msg *msg,
			    struct exs_rcv **rcv)
{
	if (exs_message_ring_returned(e, msg->b))
		return -EPROTO;
	return exs_space_returned(e, msg->c, e->config.peer.eager_space);
}

/* Rule 8. */
static int message_rx_revoke(struct exs_engine *e, const struct exs_msg *msg,
			     struct exs_rcv **rcv)
{
	if (e->answer_due || msg->a)
		return -EPROTO;
	if (e->fin_sent && !exs_rule(FIN_ANSWERS))
		return 0;
	e->answer_due = true;
	exs_held_forget(e);
	return 0;
}

/* ---- receiver ---- */

/* Rule 7. */
static bool message_space_due(const struct exs_engine *e)
{
	u32 total = e->config.ours.eager_space;
	bool flush = exs_rule(EAGER_FLUSH) && !e->used &&
		     total - e->freed < EXS_WIRE_EAGER_MIN;

	return e->freed && (e->freed > total / 2 || flush);
}

static bool message_tx_space(struct exs_engine *e, struct exs_tx *tx)
{
	if (e->fin_rcvd || !(message_space_due(e) || exs_message_ring_due(e)))
		return false;
	exs_tx_message(e, tx, EXS_MSG_SPACE);
	tx->msg.b = e->ring_freed;
	tx->msg.c = e->freed;
	e->ring_freed = 0;
	e->freed = 0;
	return true;
}

/* Rule 2. */
exs_hot
static bool message_advertisable(const struct exs_engine *e,
				 const struct exs_rcv *rcv)
{
	if (!exs_rcv_can_advertise(rcv))
		return false;
	return (rcv->flags & EXS_RCV_DIRECT && exs_policy_expects(e)) ||
	       (e->announced && !e->adverts_out && exs_rule(ANNOUNCED));
}

/* Rule 2. */
static bool message_tx_advert(struct exs_engine *e, struct exs_tx *tx)
{
	struct exs_rcv *rcv;
	u32 number = e->rp + e->adverts_out;

	if (e->fin_rcvd || ((e->cancels || e->revoke_out) && exs_rule(QUIET)))
		return false;
	rcv = exs_rcv_next_advert(e);
	if (!rcv)
		return false;

	exs_rcv_advertise(e, rcv, tx);
	tx->msg.a = number;
	swap(tx->msg.c, e->freed);
	return true;
}

/* Message Rp is there: the head gets it, and ends with it in the order of the messages. */
void exs_message_arrived(struct exs_engine *e, struct exs_rcv *rcv, u32 len, bool truncated)
{
	e->rp++;
	if (exs_rule(ARRIVED))
		e->announced = false;
	if (!rcv)
		return;
	rcv->filled = len;
	if (truncated)
		rcv->flags |= EXS_RCV_TRUNCATED;
	exs_rcv_unadvertise(e, rcv);
	rcv->flags |= EXS_RCV_ARRIVED;
	list_move_tail(&rcv->node, &e->arrived);
	exs_message_end_arrived(e);
}

/* Rule 5. */
static int message_rx_imm(struct exs_engine *e, u32 imm)
{
	u32 kind = exs_imm_kind(imm), len = exs_imm_len(imm);
	struct exs_rcv *rcv = exs_rcv_head(e);
	bool truncated = kind == EXS_IMM_TRUNCATED;

	if (kind == EXS_IMM_INDIRECT)
		return exs_message_rx_indirect(e, len, 1);
	if (kind == EXS_IMM_MANY)
		return exs_message_rx_many(e, len, exs_imm_count(imm));
	if (kind != EXS_IMM_DIRECT && !truncated)
		return -EPROTO;
	if (e->fin_rcvd || !rcv || !(rcv->flags & EXS_RCV_ADVERTISED))
		return -EPROTO;
	if (len > rcv->window || (truncated && len != rcv->window))
		return -EPROTO;
	e->stats.received_bytes += len;
	exs_policy_message(e, 0);
	exs_message_wants_ring(e, len);
	exs_message_arrived(e, rcv, len, truncated);
	return 0;
}

/* Rule 4. */
exs_hot
static int message_rx_eager(struct exs_engine *e, const struct exs_msg *msg,
			    struct exs_rcv **rcv)
{
	u32 cost = eager_cost(msg->len);
	struct exs_rcv *head = exs_rcv_head(e);

	if (e->fin_rcvd || msg->a != e->rp || msg->b != msg->len ||
	    msg->c > exs_engine_has(e, EXS_WIRE_F_MANY) ||
	    msg->len > EXS_WIRE_DATA_MAX ||
	    cost > e->config.ours.eager_space - e->used - e->freed)
		return -EPROTO;

	e->stats.received_bytes += msg->len;
	exs_policy_message(e, 1);
	exs_message_eager_waits(e, msg->c);
	if (head) {
		if (!exs_rule(EAGER_VOIDS) && head->flags & EXS_RCV_ADVERTISED)
			e->adverts_out++;	/* stays counted as out */
		e->freed += cost;
		exs_message_arrived(e, head, min_t(u64, msg->len, head->len),
				    msg->len > head->len);
	} else {
		e->used += cost;
		exs_message_eager_kept(e);
		exs_message_arrived(e, NULL, 0, false);
	}
	*rcv = head;
	return 0;
}

/* Rule 8. All messages sent before the ANSWER have arrived: numbers agree. */
static int message_rx_answer(struct exs_engine *e, const struct exs_msg *msg,
			     struct exs_rcv **rcv)
{
	if (msg->a || msg->b != e->rp)
		return -EPROTO;
	if (e->fin_rcvd)
		return 0;	/* FIN ended the revoke before it */
	if (!e->revoke_out)
		return -EPROTO;
	e->revoke_out = false;
	exs_rcv_void_all(e);
	return 0;
}

/* Rule 6. */
static void message_taken_back(struct exs_engine *e)
{
	struct exs_rcv *head;

	if (!exs_rule(TAKEN_BACK))
		return;
	e->rp += EXS_WIRE_TAKEN_BACK;
	exs_rcv_void_all(e);
	head = exs_rcv_head(e);
	if (head && head->flags & EXS_RCV_FETCH)
		exs_rcv_end_cancelled(e, head);
}

/* Rule 6. */
static int message_rx_request(struct exs_engine *e, const struct exs_msg *msg,
			      struct exs_rcv **rcv)
{
	if (e->fin_rcvd || msg->a != e->rp || !msg->b == !e->announced || msg->b > EXS_MESSAGE_MAX)
		return -EPROTO;
	e->announced = msg->b;
	e->announced_len = msg->b;
	exs_message_wants_ring(e, msg->b);
	if (!msg->b)
		message_taken_back(e);
	return 0;
}

/* Rule 9. */
static int message_rx_fin(struct exs_engine *e, const struct exs_msg *msg,
			  struct exs_rcv **rcv)
{
	if (e->fin_rcvd)
		return -EPROTO;
	e->fin_rcvd = true;
	e->ring_wanted = false;
	e->announced = false;
	if (exs_rule(FIN_ANSWERS))
		e->revoke_out = false;
	return 0;
}

exs_hot
static void message_settle(struct exs_engine *e)
{
	if ((e->fin_rcvd || e->err) && (list_empty(&e->arrived) || !exs_rule(RING_FIRST)))
		exs_rcv_end_all(e);
}

void exs_engine_unqueued(struct exs_engine *e, u32 len)
{
	u32 cost = min(eager_cost(len), e->used);

	e->used -= cost;
	e->freed += cost;
}

exs_hot
static bool message_control(struct exs_engine *e, struct exs_tx *tx)
{
	return (e->cancels && exs_tx_revoke(e, tx)) || (e->ring_due && exs_tx_ring(e, tx)) ||
	       message_tx_space(e, tx) ||
	       message_tx_advert(e, tx) || message_tx_request(e, tx) ||
	       (e->fin_wanted && exs_tx_fin(e, tx));
}

const struct exs_engine_ops exs_message_ops = {
	.control	= message_control,
	.data		= message_data,
	.rx_imm		= message_rx_imm,
	.settle		= message_settle,
	.advertisable	= message_advertisable,
	.next_copy	= exs_message_next_copy,
	.copied		= exs_message_copied,
	.rx = {
		[EXS_MSG_CREDIT]	= exs_rx_credit,
		[EXS_MSG_ADVERT]	= message_rx_advert,
		[EXS_MSG_REVOKE]	= message_rx_revoke,
		[EXS_MSG_ANSWER]	= message_rx_answer,
		[EXS_MSG_SPACE]		= message_rx_space,
		[EXS_MSG_REQUEST]	= message_rx_request,
		[EXS_MSG_RING]		= exs_message_rx_ring,
		[EXS_MSG_EAGER]		= message_rx_eager,
		[EXS_MSG_FIN]		= message_rx_fin,
	},
};
