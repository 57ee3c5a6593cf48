// SPDX-License-Identifier: GPL-2.0
/*
 * The sender's record of the peer's memory: adverts held, and transfers.
 *
 * A transfer is one step of the protocol and one immediate at its end. It may be too long
 * for one work request, or the bytes of several sends, so it is decided here as a whole and
 * handed out in pieces. Nothing else is transmitted between them.
 */
#include "private.h"

/* A run of segments in a circular array, as bytes. */
struct exs_seg_run {
	const struct exs_seg *segs;
	u32 size;	/* of the array */
	u32 first, count;
};

/*
 * Write the pieces of @run that hold bytes @offset to @offset + @len to @out. There are
 * enough pieces: every caller's length was checked against them.
 */
exs_hot
static u32 seg_slice(struct exs_seg *out, const struct exs_seg_run *run,
		     u32 offset, u32 len)
{
	u32 i, n = 0;

	for (i = 0; i < run->count && len && n < EXS_WIRE_SEGS_MAX; i++) {
		const struct exs_seg *seg =
			&run->segs[(run->first + i) % run->size];
		u32 part;

		if (offset >= seg->len) {
			offset -= seg->len;
			continue;
		}
		part = min(seg->len - offset, len);
		out[n].addr = seg->addr + offset;
		out[n].key = seg->key;
		out[n].len = part;
		n++;
		len -= part;
		offset = 0;
	}
	return n;
}

/* Hold one more advert, or refuse a peer that sends more than our hello allows. */
int exs_held_push(struct exs_engine *e, const struct exs_msg *msg)
{
	struct exs_held_queue *q = &e->held;
	struct exs_held *held;
	u64 len = 0;
	u32 i;

	if (q->count >= q->limit || q->seg_count + msg->nsegs > q->seg_limit)
		return -EPROTO;
	for (i = 0; i < msg->nsegs; i++)
		len += msg->segs[i].len;
	if (len > EXS_IMM_LEN_MAX)
		return -EPROTO;

	for (i = 0; i < msg->nsegs; i++)
		e->theirs->segs[(q->first_seg + q->seg_count++) % EXS_HELD_SEGS_MAX] =
			msg->segs[i];
	held = &e->theirs->adverts[(q->first + q->count++) % EXS_ADVERTS_MAX];
	held->len = len;
	held->used = 0;
	held->nsegs = msg->nsegs;
	held->waitall = msg->flags & EXS_MSG_F_WAITALL;
	return 0;
}

/* The head is consumed. */
void exs_held_pop(struct exs_engine *e)
{
	struct exs_held_queue *q = &e->held;
	u16 nsegs = e->theirs->adverts[q->first].nsegs;

	q->first_seg = (q->first_seg + nsegs) % EXS_HELD_SEGS_MAX;
	q->seg_count -= nsegs;
	q->first = (q->first + 1) % EXS_ADVERTS_MAX;
	q->count--;
}

void exs_held_forget(struct exs_engine *e)
{
	e->stats.adverts_dropped += e->held.count;
	e->held.count = 0;
	e->held.seg_count = 0;
}

static void write_begin(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm)
{
	e->write.snd = snd;
	e->write.offset = snd->taken;
	e->write.len = len;
	e->write.done = 0;
	e->write.imm = imm;
	e->write.cancelled = false;
	e->write.invalidate = false;
	exs_credit_spend(e);
	exs_credit_await(e);
}

/* Whether @held is used up, has only one key, and both sides can invalidate it. */
static bool may_invalidate(const struct exs_engine *e, const struct exs_held *held, u32 len)
{
	u32 features = e->config.ours.features & e->config.peer.features;

	if (!(features & EXS_WIRE_F_INVALIDATE) || held->nsegs != 1)
		return false;
	return !held->waitall || held->used + len == held->len || !exs_rule(USED_UP);
}

/* Begin a transfer into the head advert, from where the last one ended. */
void exs_write_direct(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm)
{
	const struct exs_held *head = exs_held_head(e);
	const struct exs_seg_run run = {
		.segs = e->theirs->segs,
		.size = EXS_HELD_SEGS_MAX,
		.first = e->held.first_seg,
		.count = head->nsegs,
	};

	write_begin(e, snd, len, imm);
	e->write.nsegs = seg_slice(e->theirs->write, &run, head->used, len);
	e->write.invalidate = may_invalidate(e, head, len);
	e->write.key = e->theirs->segs[e->held.first_seg].key;
	e->stats.direct_bytes += len;
	e->stats.direct_writes++;
}

/* Begin a transfer into the peer's ring, from where the last one ended. */
exs_hot
void exs_write_indirect(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm)
{
	const struct exs_seg_run run = {
		.segs = e->theirs->ring,
		.size = EXS_WIRE_SEGS_MAX,
		.count = e->ring_nsegs,
	};

	write_begin(e, snd, len, imm);
	e->write.nsegs = seg_slice(e->theirs->write, &run, e->ring_pos, len);
	e->ring_pos = (e->ring_pos + len) % e->peer_ring;
	e->stats.indirect_bytes += len;
	e->stats.indirect_writes++;
}

/* RING: where transfers through the ring go from now on. */
int exs_ring_described(struct exs_engine *e, const struct exs_msg *msg)
{
	u64 len = 0;
	u32 i;

	if (e->peer_ring || !msg->b || msg->b > EXS_WIRE_RING_MAX)
		return -EPROTO;
	for (i = 0; i < msg->nsegs; i++)
		len += msg->segs[i].len;
	if (len != msg->b)
		return -EPROTO;

	memcpy(e->theirs->ring, msg->segs, msg->nsegs * sizeof(*msg->segs));
	e->ring_nsegs = msg->nsegs;
	e->peer_ring = msg->b;
	return 0;
}

/* The last byte of a send is handed out, but not the transfer's. */
static void write_next_snd(struct exs_write *w)
{
	w->snd = list_first_entry(&w->rest, struct exs_snd, node);
	list_del_init(&w->snd->node);
	w->offset = 0;
}

/* The last piece is handed out. */
static void write_end(struct exs_engine *e, struct exs_tx *tx)
{
	struct exs_snd *snd = e->write.snd;

	if (e->write.len <= EXS_IMM_CREDITED_MAX)
		tx->imm = exs_imm_with_credits(tx->imm,
					       exs_credit_take_owed(e, EXS_IMM_CREDITS_MAX));
	e->write.snd = NULL;
	if (e->write.cancelled)
		exs_snd_end(e, snd, -ECANCELED);
	else
		tx->snd_done = list_empty(&snd->node);
}

/* The next piece of the transfer under way. */
exs_hot
bool exs_write_next(struct exs_engine *e, u32 max, struct exs_tx *tx)
{
	struct exs_write *w = &e->write;
	const struct exs_seg_run run = {
		.segs = e->theirs->write,
		.size = EXS_WIRE_SEGS_MAX,
		.count = w->nsegs,
	};

	if (!max)
		return false;
	tx->kind = EXS_TX_WRITE;
	tx->rcv = NULL;
	tx->snd = w->snd;
	tx->offset = w->offset;
	tx->len = min3(w->len - w->done, max, w->snd->max_piece ?: max);
	tx->len = min_t(u64, tx->len, w->snd->len - w->offset);
	tx->imm = w->imm;
	tx->nsegs = seg_slice(tx->segs, &run, w->done, tx->len);
	w->offset += tx->len;
	w->done += tx->len;
	tx->last = w->done == w->len;
	tx->snd_done = !tx->last && w->offset == w->snd->len;
	tx->invalidate = tx->last && w->invalidate;
	tx->key = w->key;
	if (tx->last)
		write_end(e, tx);
	else if (tx->snd_done)
		write_next_snd(w);
	return true;
}
