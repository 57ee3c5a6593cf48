// SPDX-License-Identifier: GPL-2.0
/*
 * The engine's public interface: what does not depend on the socket type, and the order of
 * transmission.
 */
#include "private.h"

void exs_engine_init(struct exs_engine *e, const struct exs_engine_config *config)
{
	bool stream = config->ours.socktype == EXS_WIRE_STREAM;

	memset(e, 0, sizeof(*e));
	e->ops = stream ? &exs_stream_ops : &exs_message_ops;
	e->config = *config;
	exs_engine_tune(e, config->eager_max, EXS_ADVERTS_MAX);
	if (stream && !exs_engine_has(e, EXS_WIRE_F_STREAM_EAGER)) {
		e->config.ours.eager_space = 0;
		e->config.peer.eager_space = 0;
	}
	e->space = e->config.peer.eager_space;
	e->eager_room = e->config.ours.eager_space;
	e->held.limit = min_t(u16, config->ours.max_adverts, EXS_ADVERTS_MAX);
	e->held.seg_limit = min_t(u16, config->ours.max_segs, EXS_HELD_SEGS_MAX);
	INIT_LIST_HEAD(&e->sends);
	INIT_LIST_HEAD(&e->write.rest);
	INIT_LIST_HEAD(&e->receives);
	INIT_LIST_HEAD(&e->arrived);
	INIT_LIST_HEAD(&e->done_rcv);
	INIT_LIST_HEAD(&e->done_snd);
	exs_credit_init(e);
}

void exs_engine_tune(struct exs_engine *e, u32 eager_max, u32 adverts_max)
{
	e->config.eager_max = min_t(u32, eager_max, EXS_WIRE_DATA_MAX);
	e->adverts_max = min3(adverts_max, (u32)e->config.peer.max_adverts,
			      (u32)EXS_ADVERTS_MAX);
}

static bool is_stream(const struct exs_engine *e)
{
	return e->ops == &exs_stream_ops;
}

/* Count the beginning of a stall; for "return exs_stalled()". */
bool exs_stalled(bool *stalled, u64 *count)
{
	if (!*stalled)
		(*count)++;
	*stalled = true;
	return false;
}

/* ---- sends ---- */

void exs_snd_end(struct exs_engine *e, struct exs_snd *snd, int err)
{
	snd->err = err;
	snd->gate = false;
	list_move_tail(&snd->node, &e->done_snd);
}

/* The error of a send that ends before it begins, or 0. */
static int snd_refused(const struct exs_engine *e, const struct exs_snd *snd)
{
	if (e->err)
		return e->err;
	if (e->fin_wanted)
		return -EPIPE;
	return !is_stream(e) && snd->len > EXS_MESSAGE_MAX ? -EMSGSIZE : 0;
}

exs_hot
void exs_engine_send(struct exs_engine *e, struct exs_snd *snd)
{
	int err = snd_refused(e, snd);

	snd->taken = 0;
	snd->err = 0;
	list_add_tail(&snd->node, &e->sends);
	if (err || (is_stream(e) && !snd->len && !snd->gate))
		exs_snd_end(e, snd, err);
}

struct exs_snd *exs_engine_last_snd(const struct exs_engine *e)
{
	struct exs_snd *snd;

	if (list_empty(&e->sends))
		return NULL;
	snd = list_last_entry(&e->sends, struct exs_snd, node);
	return snd->taken || snd->gate ? NULL : snd;
}

void exs_engine_send_before(struct exs_engine *e, struct exs_snd *snd,
			    struct exs_snd *gate)
{
	snd->taken = 0;
	snd->err = 0;
	list_add_tail(&snd->node, &gate->node);
}

void exs_engine_open(struct exs_engine *e, struct exs_snd *gate)
{
	exs_snd_end(e, gate, 0);
}

bool exs_engine_cancel_snd(struct exs_engine *e, struct exs_snd *snd)
{
	if (list_empty(&snd->node))
		return false;
	if (snd->err)
		return true;	/* on the done list already */
	if (snd->len && snd->taken == snd->len)
		return false;	/* in e->write.rest */
	if (e->write.snd == snd) {
		e->write.cancelled = true;
		list_del_init(&snd->node);
	} else {
		exs_snd_end(e, snd, -ECANCELED);
	}
	return true;
}

void exs_engine_shutdown(struct exs_engine *e)
{
	e->fin_wanted = true;
}

/* ---- receives ---- */

exs_hot
void exs_engine_recv(struct exs_engine *e, struct exs_rcv *rcv)
{
	rcv->filled = 0;
	rcv->base = 0;
	rcv->window = 0;
	rcv->in_ring.space = 0;
	rcv->err = 0;
	rcv->flags &= EXS_RCV_WAITALL | EXS_RCV_DIRECT | EXS_RCV_READER | EXS_RCV_FETCH;
	list_add_tail(&rcv->node, &e->receives);
	e->ops->settle(e);
}

void exs_engine_remove_reader(struct exs_engine *e, struct exs_rcv *rcv)
{
	list_del_init(&rcv->node);
}

/* ---- the ring ---- */

void exs_engine_ring_ready(struct exs_engine *e, u32 size)
{
	e->ring = min(size, EXS_WIRE_RING_MAX);
	e->ring_wanted = false;
	e->ring_due = e->ring_asked;
}

bool exs_tx_ring(struct exs_engine *e, struct exs_tx *tx)
{
	if (e->fin_rcvd)
		return false;
	e->ring_due = false;
	e->ring_told = true;
	exs_tx_message(e, tx, EXS_MSG_RING);
	tx->kind = EXS_TX_RING;
	tx->msg.b = e->ring;
	return true;
}

exs_hot
bool exs_engine_next_copy(struct exs_engine *e, struct exs_copy *copy)
{
	return e->ops->next_copy(e, copy);
}

exs_hot
void exs_engine_copied(struct exs_engine *e, const struct exs_copy *copy)
{
	e->ops->copied(e, copy);
	e->ops->settle(e);
}

/* ---- ends ---- */

bool exs_engine_settle(struct exs_engine *e)
{
	struct exs_snd *snd, *next;
	u32 n = EXS_SETTLE_MAX;

	if (e->err) {
		list_for_each_entry_safe(snd, next, &e->sends, node) {
			if (!n--)
				break;
			exs_snd_end(e, snd, e->err);
		}
	}
	e->ops->settle(e);
	return !list_empty(&e->done_snd) || !list_empty(&e->done_rcv);
}

/* End sends that were committed whole, but whose last pieces were never handed out. */
static void fail_write(struct exs_engine *e)
{
	struct exs_snd *snd, *next;

	if (e->write.snd && list_empty(&e->write.snd->node))
		exs_snd_end(e, e->write.snd, e->err);
	list_for_each_entry_safe(snd, next, &e->write.rest, node)
		exs_snd_end(e, snd, e->err);
	e->write.snd = NULL;
}

void exs_engine_fail(struct exs_engine *e, int err)
{
	if (!e->err)
		e->err = err;
	fail_write(e);
	exs_rcv_void_all(e);
	exs_engine_settle(e);
}

/* ---- transmission ---- */

/* Make @tx a SEND with every owed credit; costs one credit. Always true. */
exs_hot
bool exs_tx_message(struct exs_engine *e, struct exs_tx *tx, u8 type)
{
	tx->kind = EXS_TX_MESSAGE;
	tx->rcv = NULL;
	tx->snd = NULL;
	tx->offset = 0;
	tx->len = 0;
	tx->imm = 0;
	tx->last = false;
	tx->invalidate = false;
	tx->snd_done = false;
	tx->key = 0;
	tx->nsegs = 0;

	tx->msg.type = type;
	tx->msg.flags = 0;
	tx->msg.credits = exs_credit_take_owed(e, EXS_WIRE_CREDITS_MAX);
	tx->msg.a = 0;
	tx->msg.b = 0;
	tx->msg.c = 0;
	tx->msg.nsegs = 0;
	tx->msg.data = NULL;
	tx->msg.len = 0;
	exs_credit_spend(e);
	e->credits.other = type != EXS_MSG_CREDIT;
	return true;
}

static bool tx_answer(struct exs_engine *e, struct exs_tx *tx)
{
	if (!e->answer_due || !exs_credit_for_control(e))
		return false;
	e->answer_due = false;
	exs_tx_message(e, tx, EXS_MSG_ANSWER);
	tx->msg.a = e->answer_phase;
	tx->msg.b = e->sp;
	if (!exs_rule(ONE_STEP) && e->answer_phase == e->ps)
		e->ps++;
	return true;
}

static bool tx_credit(struct exs_engine *e, struct exs_tx *tx)
{
	u32 total, few;

	if (!exs_credit_due(e) && !exs_credit_resize_due(e) && !exs_credit_ask_due(e))
		return false;
	e->stats.credits_sent++;
	if (exs_credit_due(e) && e->credits.other && e->credits.alone < EXS_CREDITS_FEW)
		e->credits.alone++;
	total = exs_credit_resize(e);
	few = exs_credit_ask(e);
	exs_tx_message(e, tx, EXS_MSG_CREDIT);
	tx->msg.a = total;
	tx->msg.b = few;
	return true;
}

/* FIN is requested. It is sent last, except for what our receiver still has to say. */
bool exs_tx_fin(struct exs_engine *e, struct exs_tx *tx)
{
	if (e->fin_sent)
		return false;
	if (exs_snd_head(e) && exs_rule(FIN_LAST))
		return false;
	e->fin_sent = true;
	exs_held_forget(e);
	exs_tx_message(e, tx, EXS_MSG_FIN);
	if (e->config.confirm)
		exs_credit_await(e);
	return true;
}

exs_hot
bool exs_engine_next_tx(struct exs_engine *e, u32 max, struct exs_tx *tx)
{
	if (e->err)
		return false;
	if (e->write.snd)
		return exs_write_next(e, max, tx);
	if (!exs_rule(ONE_STEP) && e->ops->data(e, max, tx))
		return true;
	if (tx_answer(e, tx) || tx_credit(e, tx))
		return true;
	/* Nothing may pass an ANSWER that waits for its credit. */
	if (e->answer_due)
		return false;
	if (exs_credit_for_control(e) && e->ops->control(e, tx))
		return true;
	return e->ops->data(e, max, tx);
}

/* ---- arrival ---- */

int exs_rx_credit(struct exs_engine *e, const struct exs_msg *msg,
		  struct exs_rcv **rcv)
{
	int err = msg->a ? exs_credit_resized(e, msg->a) : 0;

	return err || !msg->b ? err : exs_credit_asked(e, msg->b);
}

exs_hot
static int rx_imm(struct exs_engine *e, u32 imm)
{
	u32 credits = exs_imm_credits(imm);

	if (!credits && exs_imm_credited(imm) && !exs_imm_is_many(imm))
		return -EPROTO;
	if (exs_credit_returned(e, credits))
		return -EPROTO;
	return e->ops->rx_imm(e, imm);
}

static int rx_msg(struct exs_engine *e, const struct exs_msg *msg, struct exs_rcv **rcv)
{
	int err = exs_credit_returned(e, msg->credits);

	if (err)
		return err;
	if (msg->type == EXS_MSG_WRITTEN)
		return rx_imm(e, msg->a);
	if (msg->type > EXS_MSG_MAX || !e->ops->rx[msg->type])
		return -EPROTO;
	return e->ops->rx[msg->type](e, msg, rcv);
}

exs_hot
int exs_engine_rx_msg(struct exs_engine *e, const struct exs_msg *msg,
		      struct exs_rcv **rcv)
{
	int err;

	*rcv = NULL;
	e->nkept = 0;
	if (e->err)
		return e->err;
	err = exs_credit_arrived(e);
	if (!err)
		err = rx_msg(e, msg, rcv);
	if (!err)
		e->ops->settle(e);
	return err;
}

exs_hot
int exs_engine_rx_imm(struct exs_engine *e, u32 imm)
{
	int err;

	e->nkept = 0;
	if (e->err)
		return e->err;
	err = exs_credit_arrived(e);
	if (!err)
		err = rx_imm(e, imm);
	if (!err)
		e->ops->settle(e);
	return err;
}

/* ---- for poll() ---- */

bool exs_engine_eof(const struct exs_engine *e)
{
	return e->fin_rcvd && !e->used && !e->ring_used;
}

u32 exs_engine_readable(const struct exs_engine *e)
{
	u32 n = e->used + e->ring_used;

	if (n || is_stream(e))
		return n;
	return e->announced ? e->announced_len : 0;
}

bool exs_engine_enough(const struct exs_engine *e, u32 lowat)
{
	u32 n = exs_engine_readable(e);

	/* Before there is a ring the peer asks for one when it needs more space. */
	return n && (!is_stream(e) || n >= (e->ring ? min(lowat, e->ring / 2) : lowat));
}
