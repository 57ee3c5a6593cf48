// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of medium size: too long to be eager, too short for an advert to pay. And small
 * ones that find no eager space, or that can go together.
 *
 * They go into a ring of the receiver, where they wait until they are read. These rules add
 * to those of message.c, if both sides offer EXS_WIRE_F_MESSAGE_RING.
 *
 * 10. Sender: free bytes of the ring, and the place after its last message. Receiver: the
 *     same place; bytes used by unread messages, bytes held back, and bytes freed but not
 *     returned. There is no ring at first. The receiver may describe one with RING, once:
 *     after a message that could have gone there (it came into an advert, or was
 *     announced), when unread eager messages use more than half of their space, or when
 *     many of them have held up others that could have gone with them (rule 15).
 * 11. INDIRECT(n): a message of n bytes, n >= 1, takes n + overhead bytes of the ring, in
 *     one piece: if they would cross the ring's end, the rest of the ring is skipped, and
 *     counts as part of the message. It goes out only when all of that is free. An advert
 *     held for its number is dropped; without room in the ring the advert is used.
 * 12. The receiver gives it to the head, whose advert, if any, is void, and copies it.
 *     Without a receive the owner keeps its place. Receives end in the order of the
 *     messages: after those that are still being copied.
 * 13. Messages are read in any order, several at a time. Space that was read is held back
 *     until no thread reads, because the sender frees the oldest bytes, whichever were
 *     read.
 * 14. The ring's space goes back (SPACE, b) when more than a quarter of it is freed. No
 *     message takes more than a quarter, so a sender that finds all but a quarter free is
 *     not stuck, whatever it has to skip.
 * 15. MANY(k, n), if both sides offer EXS_WIRE_F_MANY: k messages of n bytes each, with
 *     numbers Sp to Sp + k - 1, for one credit. They take k (n + overhead) bytes of the ring
 *     as one message would, and not more than a quarter of it. Their bytes are one behind
 *     the other. So each of them frees n bytes, and the last one the rest. Before there is
 *     a ring, an EAGER says whether the next message waits, and is as long.
 */
#include "private.h"

/*
 * The most bytes that go together, as in a stream: the receiver begins with them when the
 * last has come.
 */
#define MANY_BYTES	32768u

/* Make a ring when this many more eager messages had others waiting behind them than had none. */
#define EAGER_WAITS_MAX	128

static bool has_message_ring(const struct exs_engine *e)
{
	return e->config.ours.features & e->config.peer.features & EXS_WIRE_F_MESSAGE_RING;
}

static u32 ring_span(const struct exs_engine *e, u32 len)
{
	return len + e->config.ring_overhead;
}

/* Rule 11: bytes up to the end of a ring of @size bytes that a message at @pos skips. */
static u32 ring_skip(u32 size, u32 pos, u32 span)
{
	return pos + span > size ? size - pos : 0;
}

/* ---- sender ---- */

/* Rule 14: whether waiting makes room for it. */
bool exs_message_fits_ring(const struct exs_engine *e, const struct exs_snd *snd)
{
	return e->peer_ring && snd->len && snd->len <= e->config.ring_max &&
	       ring_span(e, snd->len) <= e->peer_ring / 4;
}

exs_hot
bool exs_message_ring_room(const struct exs_engine *e, const struct exs_snd *snd)
{
	u32 span;

	if (!exs_message_fits_ring(e, snd))
		return false;
	span = ring_span(e, snd->len);
	return span + ring_skip(e->peer_ring, e->ring_pos, span) <= e->ring_space ||
	       !exs_rule(RING_WHOLE);
}

/* Rule 15: how many of @len bytes have room together: before the ring's end, or behind it. */
static u32 ring_room_for(const struct exs_engine *e, u32 len)
{
	u32 end = e->peer_ring - e->ring_pos;
	u32 room = max(min(e->ring_space, end), e->ring_space - min(e->ring_space, end));

	room = min(room, e->peer_ring / 4);
	return min3(room / ring_span(e, len), MANY_BYTES / len, EXS_IMM_MANY_MAX);
}

/* Rule 15: whether a message waits behind @snd that may go with it. */
exs_hot
bool exs_message_next_waits(const struct exs_engine *e, const struct exs_snd *snd)
{
	const struct exs_snd *next = list_next_entry(snd, node);

	return !list_is_last(&snd->node, &e->sends) && !next->gate && next->len == snd->len &&
	       snd->len && exs_engine_has(e, EXS_WIRE_F_MANY) && exs_policy_gathers(e);
}

/* Rule 15: how many messages go together, from @snd on. */
exs_hot
u32 exs_message_many(const struct exs_engine *e, const struct exs_snd *snd)
{
	u32 n = 1, most;

	if (!exs_message_next_waits(e, snd) || !exs_message_ring_room(e, snd))
		return 1;
	most = ring_room_for(e, snd->len);
	while (n < most && exs_message_next_waits(e, snd)) {
		snd = list_next_entry(snd, node);
		n++;
	}
	return n;
}

/* Rules 11 and 15: @n messages, each as long as @snd. */
void exs_message_into_ring(struct exs_engine *e, struct exs_snd *snd, u32 n)
{
	u32 span = n * ring_span(e, snd->len);
	u32 skip = ring_skip(e->peer_ring, e->ring_pos, span);
	u32 imm = n > 1 ? exs_imm_many(n, snd->len) : exs_imm(EXS_IMM_INDIRECT, snd->len);

	if (e->ring_pos + span > e->peer_ring)
		e->ring_pos = 0;
	e->ring_space -= exs_rule(RING_SKIP) ? skip + span : span;
	span += e->ring_pos;
	exs_write_indirect(e, snd, n * snd->len, imm);
	e->ring_pos = span;
}

/* Rule 10. */
int exs_message_rx_ring(struct exs_engine *e, const struct exs_msg *msg, struct exs_rcv **rcv)
{
	if (!has_message_ring(e) || exs_ring_described(e, msg))
		return -EPROTO;
	e->ring_space = msg->b;
	return 0;
}

int exs_message_ring_returned(struct exs_engine *e, u32 n)
{
	if (n > e->peer_ring - e->ring_space)
		return -EPROTO;
	e->ring_space += n;
	return 0;
}

/* ---- receiver ---- */

/* Rule 10. */
static void message_ask_ring(struct exs_engine *e)
{
	if (e->ring_asked || !has_message_ring(e))
		return;
	e->ring_asked = true;
	e->ring_wanted = true;
}

/* Rule 10: a message of @len bytes came another way, or is announced: is a ring worth it? */
void exs_message_wants_ring(struct exs_engine *e, u32 len)
{
	if (len > e->config.eager_max && len <= e->config.ring_max)
		message_ask_ring(e);
}

/* Rule 10: unread messages fill our eager space. */
void exs_message_eager_kept(struct exs_engine *e)
{
	if (e->used > e->config.ours.eager_space / 2)
		message_ask_ring(e);
}

/* Rule 10: whether another message waits at the peer, and in a ring could come with this one. */
void exs_message_eager_waits(struct exs_engine *e, bool waits)
{
	if (!waits) {
		e->eager_waits -= !!e->eager_waits;
	} else if (e->eager_waits < EAGER_WAITS_MAX) {
		e->eager_waits++;
	} else if (!e->ring_asked) {
		message_ask_ring(e);
		e->ring_hinted = true;
	}
}

/* A message that needs a ring more may still ask for one. */
void exs_engine_ring_refused(struct exs_engine *e)
{
	e->ring_wanted = false;
	if (!e->ring_hinted)
		return;
	e->ring_hinted = false;
	e->ring_asked = false;
	e->eager_waits = 0;
}

/* Rule 12: no receive before @rcv is being copied to. */
void exs_message_end_arrived(struct exs_engine *e)
{
	struct exs_rcv *rcv, *next;

	list_for_each_entry_safe(rcv, next, &e->arrived, node) {
		if (!rcv->in_ring.space)
			exs_rcv_end(e, rcv, rcv->err);
		else if (exs_rule(RING_ORDER))
			break;
	}
}

void exs_engine_recv_kept(struct exs_engine *e, struct exs_rcv *rcv)
{
	rcv->in_ring.space = 0;
	rcv->flags = EXS_RCV_ARRIVED;
	list_add_tail(&rcv->node, &e->arrived);
	exs_message_end_arrived(e);
}

/* Rule 11: @n messages take their places, which must have been free at the sender. */
static int ring_take(struct exs_engine *e, u32 len, u32 n)
{
	u32 span = n * ring_span(e, len);
	u32 skip = ring_skip(e->ring, e->ring_end, span);
	u32 room = e->ring - e->ring_used - e->ring_held - e->ring_freed;

	if (!e->ring_told || span > e->ring || skip + span > room)
		return -EPROTO;
	e->nkept = n;
	e->kept.off = e->ring_end + span > e->ring ? 0 : e->ring_end;
	e->kept.len = len;
	e->kept.space = exs_rule(RING_SKIP) ? skip : 0;
	e->ring_end = e->kept.off + span;
	e->ring_used += e->kept.space + span;
	return 0;
}

u32 exs_engine_keeps(const struct exs_engine *e, u32 imm)
{
	u32 kind = exs_imm_kind(imm), n = exs_imm_count(imm);
	const struct exs_rcv *rcv;

	if (kind != EXS_IMM_INDIRECT && kind != EXS_IMM_MANY)
		return 0;
	list_for_each_entry(rcv, &e->receives, node)
		if (!--n)
			break;
	return n;
}

bool exs_engine_next_kept(struct exs_engine *e, struct exs_in_ring *m)
{
	if (!e->nkept)
		return false;
	*m = e->kept;
	e->nkept--;
	m->space += e->nkept && exs_rule(MANY_SPACE) ? m->len : e->ring_end - m->off;
	e->kept.off += m->len;
	e->kept.space = 0;
	return true;
}

/* Rules 11 and 12: @n messages of @len bytes. */
exs_hot
int exs_message_rx_indirect(struct exs_engine *e, u32 len, u32 n)
{
	struct exs_rcv *head;
	u32 i;

	if (e->fin_rcvd || !len || ring_take(e, len, n))
		return -EPROTO;
	e->stats.received_bytes += n * len;
	exs_policy_message(e, n);
	while ((head = exs_rcv_head(e)) && exs_engine_next_kept(e, &head->in_ring)) {
		exs_engine_reading(e);
		exs_message_arrived(e, head, min_t(u64, len, head->len), len > head->len);
	}
	for (i = 0; i < e->nkept; i++)
		exs_message_arrived(e, NULL, 0, false);
	return 0;
}

/* Rule 15. */
int exs_message_rx_many(struct exs_engine *e, u32 len, u32 n)
{
	if (!exs_engine_has(e, EXS_WIRE_F_MANY) || n < 2)
		return -EPROTO;
	return exs_message_rx_indirect(e, len, n);
}

exs_hot
bool exs_message_next_copy(struct exs_engine *e, struct exs_copy *copy)
{
	struct exs_rcv *rcv = list_first_entry_or_null(&e->arrived, struct exs_rcv, node);

	if (!rcv || rcv->flags & EXS_RCV_COPYING)
		return false;
	rcv->flags |= EXS_RCV_COPYING;
	copy->rcv = rcv;
	copy->rcv_off = 0;
	copy->ring_off = rcv->in_ring.off;
	copy->len = rcv->filled;
	return true;
}

exs_hot
void exs_message_copied(struct exs_engine *e, const struct exs_copy *copy)
{
	exs_engine_read(e, copy->rcv->in_ring.space);
	copy->rcv->in_ring.space = 0;
	exs_message_end_arrived(e);
}

void exs_engine_reading(struct exs_engine *e)
{
	e->readers++;
}

/* Rule 13. */
void exs_engine_read(struct exs_engine *e, u32 space)
{
	space = min(space, e->ring_used);
	e->ring_used -= space;
	e->ring_held += space;
	e->readers--;
	if (e->readers && exs_rule(RING_READERS))
		return;
	e->ring_freed += e->ring_held;
	e->ring_held = 0;
}
