// SPDX-License-Identifier: GPL-2.0
/*
 * Equality of states: everything that the future depends on, written in one way
 * only, and hashed. Phases and keys count relative to the receiver's, so that
 * states that only differ in their past are one. The contents of memory are
 * left out: they were checked against the positions when they landed.
 */
#include "world.h"

static u8 canon[4096];
static u32 canon_len;

static void put(u32 v)
{
	memcpy(canon + canon_len, &v, 4);
	canon_len += 4;
}

/* Small values dominate: a byte, or a mark and four. */
static void pack(u32 v)
{
	if (v < 255) {
		canon[canon_len++] = v;
	} else {
		canon[canon_len++] = 255;
		put(v);
	}
}

/* A segment, its key as an age, so that only what matters counts. */
static void pack_seg(const struct side *owner, const struct exs_seg *seg)
{
	u32 region = seg->addr >> REGION_SHIFT;

	pack(region);
	pack(seg->addr & 0xffff);
	pack(region ? (u8)(owner->recv[region - 1].gen - seg->key) : 0);
}

/* MORE is a hint, and nothing in the model depends on it. */
static u32 kind_of(u32 imm)
{
	u32 kind = exs_imm_kind(imm);

	return !scenario.seqpacket && kind == EXS_IMM_MORE ? EXS_IMM_INDIRECT : kind;
}

/* Phases count from the receiver's, so that what matters is the distance. */
static void pack_item(const struct side *s, const struct side *o, const struct item *it)
{
	u32 a = it->a;

	if (!scenario.seqpacket && !it->write) {
		if (it->type == EXS_MSG_ADVERT || it->type == EXS_MSG_REVOKE)
			a -= (s->e.pr & ~1u) - 64;
		else if (it->type == EXS_MSG_ANSWER)
			a -= (o->e.pr & ~1u) - 64;
		else if (it->type == EXS_MSG_EAGER)
			a -= START_POSITION;
	}
	if (it->write && exs_imm_is_many(a))
		a = exs_imm_many(exs_imm_count(a), exs_imm_len(a));
	else if (it->write)
		a = exs_imm(kind_of(a), exs_imm_len(a));
	pack(it->write | it->last << 1 | it->invalidate << 2 | it->ends << 3 | it->nsegs << 4);
	pack(it->type);
	pack(it->flags);
	pack(it->credits);
	pack(a);
	if (!it->write || world_compare_phase)
		pack(it->b - START_POSITION);
	pack(it->c);
	pack(it->len);
	pack(it->tag);
	if (it->nsegs)
		pack_seg(it->write ? o : s, &it->segs[0]);
}

static void pack_held(const struct side *s, const struct side *o)
{
	const struct exs_held_queue *q = &s->e.held;
	u32 i, seg = q->first_seg;

	pack(q->count);
	for (i = 0; i < q->count; i++) {
		const struct exs_held *held =
			&s->e.theirs->adverts[(q->first + i) % EXS_ADVERTS_MAX];

		pack(held->len);
		pack(held->used);
		pack(held->waitall);
		if (held->nsegs)
			pack_seg(o, &s->e.theirs->segs[seg % EXS_HELD_SEGS_MAX]);
		seg += held->nsegs;
	}
}

static void pack_sender(const struct side *s, const struct side *o)
{
	const struct exs_engine *e = &s->e;
	u32 phase = (o->e.pr & ~1u) - 64, n = 0;
	const struct exs_snd *rest;

	pack(e->ps - phase);
	pack(e->sp - START_POSITION);
	pack(e->space);
	pack(e->ring_pos);
	pack(e->ring_space);
	pack((e->peer_ring != 0) | e->fin_wanted << 1 | e->fin_sent << 2 |
	     e->ring_requested << 3 | e->answer_due << 4 | e->write.cancelled << 5 |
	     e->policy.asking << 6 | e->policy.waits << 7);
	pack(e->policy.choice << 1 | (e->policy.wait_until > e->policy.now));
	pack(e->answer_due ? e->answer_phase - phase : 0);
	pack(e->request_len);
	pack(e->eager_lost);
	pack_held(s, o);
	if (!e->write.snd) {
		pack(0);
		return;
	}
	pack(1 + world_send_index(s, e->write.snd));
	list_for_each_entry(rest, &e->write.rest, node)
		n++;
	pack(n);
	pack(e->write.len);
	pack(e->write.done);
	pack(kind_of(e->write.imm));
	if (e->write.nsegs)
		pack_seg(o, &e->theirs->write[0]);
}

static void pack_receiver(const struct side *s)
{
	const struct exs_engine *e = &s->e;

	pack(e->pr & 1);
	pack(e->rp - START_POSITION);
	pack(e->used);
	pack(e->freed);
	pack(e->read_pos);
	pack(e->adverts_out);
	pack(e->cancels);
	pack((e->ring != 0) | e->revoke_out << 1 | e->advert_asked << 2 | e->fin_rcvd << 3 |
	     e->ring_asked << 4 | e->ring_due << 5 | e->announced << 6 |
	     e->ring_wanted << 7);
	pack(e->revoke_out ? e->revoke_phase - (e->pr & ~1u) + 64 : 0);
	pack(e->announced ? e->announced_len : 0);
	pack(e->ring_end);
	pack(e->ring_used);
	pack(e->ring_held);
	pack(e->ring_freed);
	pack(e->readers);
	if (!scenario.eagerly)
		return;
	pack(e->eager_room);
	pack(e->eager_used);
	pack(e->eager_pos);
	pack(e->ring_told | e->ring_begun << 1);
}

static void pack_in_ring(const struct exs_in_ring *m)
{
	pack(m->space);
	if (!m->space)
		return;
	pack(m->off);
	pack(m->len);
}

static void pack_ops(const struct side *s)
{
	u32 i;

	pack(s->nsends | s->nrecvs << 4);
	pack(s->cancels | s->send_cancels << 3 | s->shut << 6);
	for (i = 0; i < s->nsends; i++) {
		pack(s->send[i].state | s->send[i].cancelled << 2);
		pack(s->send[i].snd.taken);
		pack(s->send[i].out);
	}
	for (i = 0; i < s->nrecvs; i++) {
		const struct recv_op *op = &s->recv[i];

		pack(op->state);
		if (op->state == OP_DONE)
			continue;
		pack(op->called);
		pack(op->rcv.flags | op->cancelled << 12 | op->dead << 13);
		pack(op->rcv.filled);
		pack(op->rcv.flags & EXS_RCV_FETCH ? op->rcv.len : 0);
		pack(op->rcv.base);
		pack(op->rcv.window);
		pack(op->rcv.flags & EXS_RCV_ARRIVED || op->state == OP_READS ? 1 + op->number : 0);
		pack_in_ring(op->state == OP_READS ? &op->m : &op->rcv.in_ring);
	}
}

static void pack_side(const struct side *s, const struct side *o)
{
	u32 i;

	pack_sender(s, o);
	pack_receiver(s);
	pack_ops(s);
	pack(s->nout);
	for (i = 0; i < s->nout; i++)
		pack_item(s, o, &s->out[i]);
	pack(s->sent);
	pack(s->landed);
	pack(s->landed_before);
	pack(s->landed_messages);
	pack(s->got);
	pack(s->copying ? 1 + s->copy.len : 0);
	pack(s->nchoices);
	pack(s->nkept);
	for (i = 0; i < s->nkept; i++) {
		pack(s->kept[i].number);
		pack(s->kept[i].len);
		pack_in_ring(&s->kept[i].m);
	}
	if (tight_credits()) {
		pack(s->unposted);
		pack(s->e.credits.have);
		pack(s->e.credits.owed);
		pack(s->e.credits.granted);
		pack(s->e.credits.total);
		pack(s->e.credits.wanted);
		pack(s->e.credits.peer_total);
		pack(s->nsizes);
	}
	if (scenario.asks) {
		pack(s->e.credits.asked);
		pack(s->e.credits_wanted);
	}
	if (scenario.confirm) {
		/* Elsewhere it changes nothing, and of each state one history is checked. */
		pack(s->e.credits.awaited);
		pack(s->e.credits.greet | s->e.credits.fin_told << 1);
	}
}

u64 world_hash(void)
{
	u64 a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full, v;
	u32 i;

	canon_len = 0;
	pack_side(&world.side[0], &world.side[1]);
	pack_side(&world.side[1], &world.side[0]);
	memset(canon + canon_len, 0, 8);
	for (i = 0; i < canon_len; i += 8) {
		memcpy(&v, canon + i, 8);
		a = (a ^ v) * 0xff51afd7ed558ccdull;
		a ^= a >> 32;
		b = (b + v) * 0xc4ceb9fe1a85ec53ull;
		b ^= b >> 29;
	}
	a ^= b + canon_len;
	a *= 0x94d049bb133111ebull;
	return a ^ a >> 31;
}
