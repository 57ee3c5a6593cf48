// SPDX-License-Identifier: GPL-2.0
/*
 * The receiving side's queue: our receives, which of them are advertised, and
 * how an advertised one is taken back.
 *
 * The advertised receives are a prefix of the queue. The peer fills them in
 * order, so what it writes always belongs to the head.
 *
 * Cancelling. A receive that is not advertised ends at once. An advertised one waits until
 * the peer no longer holds the advert: we send REVOKE, the peer replies with ANSWER and
 * forgets all adverts, and so every advert is void. One REVOKE is out at a time. It serves
 * every cancel of its phase; a cancel of a later phase waits for the answer. The cancel
 * ends early if the receive completes, or if its advert becomes void in another way.
 */
#include "private.h"

/* Whether more has to be advertised when the present window is full. */
bool exs_rcv_more_windows(const struct exs_rcv *rcv)
{
	return (rcv->flags & EXS_RCV_WAITALL) &&
	       rcv->base + rcv->window < rcv->len;
}

static bool room_for_advert(const struct exs_engine *e, const struct exs_rcv *rcv)
{
	return !e->adverts_held && e->adverts_out < e->adverts_max &&
	       e->segs_out + rcv->max_segs <= e->config.peer.max_segs;
}

/*
 * The oldest receive that is not advertised, if it should be and its advert could go now.
 * Looks at EXS_ADVERTS_MAX + 1 at most.
 */
exs_hot
struct exs_rcv *exs_rcv_next_advert(const struct exs_engine *e)
{
	struct exs_rcv *rcv;

	list_for_each_entry(rcv, &e->receives, node) {
		if (rcv->flags & EXS_RCV_ADVERTISED) {
			if (exs_rcv_more_windows(rcv) && exs_rule(WINDOWS))
				return NULL;
			continue;
		}
		if (e->ops->advertisable(e, rcv))
			return room_for_advert(e, rcv) ? rcv : NULL;
		if (exs_rule(PREFIX))
			return NULL;
	}
	return NULL;
}

/* Make @tx the advert of the rest of @rcv. */
void exs_rcv_advertise(struct exs_engine *e, struct exs_rcv *rcv, struct exs_tx *tx)
{
	u64 left = rcv->len - rcv->filled;

	exs_tx_message(e, tx, EXS_MSG_ADVERT);
	tx->kind = EXS_TX_ADVERT;
	tx->rcv = rcv;
	rcv->base = rcv->filled;
	rcv->window = min3(left, (u64)rcv->max_window, (u64)EXS_IMM_LEN_MAX);
	rcv->flags |= EXS_RCV_ADVERTISED;
	e->adverts_out++;
	e->segs_out += rcv->max_segs;
	e->stats.adverts_sent++;
}

/* The peer no longer has an advert of it. */
void exs_rcv_unadvertise(struct exs_engine *e, struct exs_rcv *rcv)
{
	if (!(rcv->flags & EXS_RCV_ADVERTISED))
		return;
	if (rcv->flags & EXS_RCV_CANCEL)
		e->cancels--;
	e->adverts_out--;
	e->segs_out -= rcv->max_segs;
	rcv->flags &= ~EXS_RCV_ADVERTISED;
}

exs_hot
void exs_rcv_end(struct exs_engine *e, struct exs_rcv *rcv, int err)
{
	exs_rcv_unadvertise(e, rcv);
	rcv->flags &= ~(EXS_RCV_CANCEL | EXS_RCV_COPYING | EXS_RCV_ARRIVED);
	rcv->flags |= EXS_RCV_ENDED;
	rcv->err = err;
	list_move_tail(&rcv->node, &e->done_rcv);
}

/* Its bytes are not lost: a cancelled receive with bytes is a short one. */
void exs_rcv_end_cancelled(struct exs_engine *e, struct exs_rcv *rcv)
{
	exs_rcv_end(e, rcv, rcv->filled ? 0 : -ECANCELED);
}

/* The end of a receive: EOF after FIN, the error after a failure. See exs_engine_settle(). */
void exs_rcv_end_all(struct exs_engine *e)
{
	struct exs_rcv *rcv, *next;
	u32 n = EXS_SETTLE_MAX;

	list_for_each_entry_safe(rcv, next, &e->receives, node) {
		if (!n--)
			break;
		if (!exs_rule(FIN_ANSWERS) && rcv->flags & EXS_RCV_CANCEL)
			continue;
		if (e->fin_rcvd)
			rcv->flags |= EXS_RCV_EOF;
		exs_rcv_end(e, rcv, rcv->filled || e->fin_rcvd ? 0 : e->err);
	}
}

/* The peer has forgotten every advert. Looks at EXS_ADVERTS_MAX + 1 at most. */
exs_hot
void exs_rcv_void_all(struct exs_engine *e)
{
	struct exs_rcv *rcv, *next;

	list_for_each_entry_safe(rcv, next, &e->receives, node) {
		u32 cancelled = rcv->flags & EXS_RCV_CANCEL;

		if (!(rcv->flags & EXS_RCV_ADVERTISED)) {
			if (exs_rule(PREFIX))
				break;
			continue;
		}
		exs_rcv_unadvertise(e, rcv);
		if (cancelled)
			exs_rcv_end_cancelled(e, rcv);
	}
}

bool exs_tx_revoke(struct exs_engine *e, struct exs_tx *tx)
{
	if (e->revoke_out && exs_rule(ONE_REVOKE))
		return false;
	/* Without the rule a REVOKE is sent for the same phase again and again. */
	if (e->revoke_out && e->revoke_phase == e->pr)
		return false;

	exs_tx_message(e, tx, EXS_MSG_REVOKE);
	tx->msg.a = e->pr;
	e->revoke_out = true;
	e->revoke_phase = e->pr;
	e->stats.revokes++;
	return true;
}

void exs_engine_cancel_rcv(struct exs_engine *e, struct exs_rcv *rcv)
{
	if (rcv->flags & (EXS_RCV_CANCEL | EXS_RCV_ENDED | EXS_RCV_ARRIVED))
		return;
	if (rcv->flags & EXS_RCV_ADVERTISED && exs_rule(REVOKE)) {
		rcv->flags |= EXS_RCV_CANCEL;
		e->cancels++;
	} else if (rcv->flags & EXS_RCV_COPYING) {
		rcv->flags |= EXS_RCV_CANCEL;	/* ends after the copy */
	} else {
		exs_rcv_end_cancelled(e, rcv);
	}
}

/* Receives that wait for the peer, or are being copied, stay at the head of the queue. */
bool exs_engine_cancel_rcvs(struct exs_engine *e, u32 n, bool in_order)
{
	bool waits = in_order && !list_empty(&e->arrived);
	struct exs_rcv *rcv, *next;

	list_for_each_entry_safe(rcv, next, &e->receives, node) {
		u32 end_later = rcv->flags & (EXS_RCV_ADVERTISED | EXS_RCV_COPYING);

		if (rcv->flags & EXS_RCV_READER)
			continue;
		if (in_order && waits && !end_later)
			return false;
		waits |= end_later;
		if (rcv->flags & EXS_RCV_CANCEL)
			continue;
		if (!n--)
			return true;
		exs_engine_cancel_rcv(e, rcv);
	}
	return false;
}
