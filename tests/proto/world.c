// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "world.h"

struct world world;
char world_bad[160];
bool world_idle;
bool world_compare_phase;
bool world_wire;
u64 world_now;

static struct exs_tx tx;	/* large; one at a time */
static struct exs_msg msg;

static void bad(const char *fmt, ...)
{
	va_list ap;

	if (world_bad[0])
		return;
	va_start(ap, fmt);
	vsnprintf(world_bad, sizeof(world_bad), fmt, ap);
	va_end(ap);
}

#define CHECK(cond, ...) do { if (!(cond)) bad(__VA_ARGS__); } while (0)

/* ---- memory ---- */

#define RING_KEY	77

/*
 * Describe @len bytes from @addr in up to three pieces, so that all code runs; or in one, which
 * can be invalidated.
 */
static u32 make_segs(struct exs_seg *segs, u64 addr, u32 key, u32 len)
{
	u32 n = 0, part;

	while (len) {
		part = scenario.invalidate ? len : n == 0 ? 1 : n == 1 && len > 2 ? len / 2 : len;
		segs[n].addr = addr;
		segs[n].key = key;
		segs[n].len = part;
		addr += part;
		len -= part;
		n++;
	}
	return n;
}

/* Messages that have arrived at @o, without the numbers of announcements that were taken back. */
static u32 messages_in(const struct side *o)
{
	return (o->e.rp - START_POSITION) % EXS_WIRE_TAKEN_BACK;
}

/* The tag of the next byte that arrives at @o. */
static u32 next_tag(const struct side *o)
{
	if (scenario.seqpacket)
		return (messages_in(o) + o->landed_messages) << 16 | (o->landed - o->landed_before);
	return o->e.rp - START_POSITION + o->landed;
}

/* A message is in one piece, after the last one or at the beginning. */
static void land_message(struct side *o, u32 off, u32 tag)
{
	CHECK(off == o->e.ring_end + o->landed || off == o->landed, "ring: wrong place");
	CHECK(!o->live[off], "ring: what was not read is written to");
	CHECK(tag == next_tag(o), "ring: byte %u, expected %u", tag, next_tag(o));
	if (world_bad[0])
		return;
	o->ring[off] = tag;
	o->live[off] = true;
}

static void land_in_ring(struct side *o, u32 off, u32 key, u32 tag)
{
	struct exs_engine *e = &o->e;
	u32 used = e->used - e->eager_used;

	CHECK(key == RING_KEY && e->ring && off < e->ring, "ring: bad address");
	if (scenario.seqpacket)
		return land_message(o, off, tag);
	CHECK(used + e->freed + o->landed < e->ring, "ring: overflow");
	CHECK(off == (e->read_pos + used + o->landed) % max(e->ring, 1u),
	      "ring: wrong place");
	CHECK(tag == next_tag(o), "ring: byte %u, expected %u", tag, next_tag(o));
	if (!world_bad[0])
		o->ring[off] = tag;
}

static void land_in_recv(struct side *o, u32 i, u32 off, u32 key, u32 tag)
{
	struct recv_op *op = &o->recv[i];

	CHECK(op->state == OP_QUEUED, "write into a receive that ended");
	CHECK(op->rcv.flags & EXS_RCV_ADVERTISED, "write into a void advert");
	CHECK(op->gen == key, "write with an old key");
	CHECK(!op->dead, "write with a dead key");
	if (world_bad[0])
		return;
	CHECK(exs_rcv_head(&o->e) == &op->rcv, "write into the wrong receive");
	CHECK(off == op->rcv.filled + o->landed, "write beside the fill point");
	CHECK(off < op->rcv.base + op->rcv.window, "write beyond the window");
	CHECK(tag == next_tag(o), "byte %u, expected %u", tag, next_tag(o));
	if (!world_bad[0])
		op->buf[off] = tag;
}

/* An RDMA WRITE: bytes appear in @o's memory, in order. */
static void land(struct side *o, const struct item *it)
{
	u32 i, j, tag = it->tag;

	for (i = 0; i < it->nsegs; i++) {
		for (j = 0; j < it->segs[i].len && !world_bad[0]; j++) {
			u64 addr = it->segs[i].addr + j;
			u32 region = addr >> REGION_SHIFT;
			u32 off = addr & ((1u << REGION_SHIFT) - 1);

			o->landed_in_ring = !region;
			if (!region)
				land_in_ring(o, off, it->segs[i].key, tag);
			else
				land_in_recv(o, region - 1, off, it->segs[i].key, tag);
			tag++;
			o->landed++;
		}
	}
	CHECK(tag - it->tag == it->len, "segments do not hold the data");
	if (!it->ends)
		return;
	o->landed_messages++;
	o->landed_before = o->landed;
}

/* ---- operations ---- */

static u32 recv_index(const struct side *s, const struct exs_rcv *rcv)
{
	return (const struct recv_op *)((const char *)rcv -
		offsetof(struct recv_op, rcv)) - s->recv;
}

u32 world_send_index(const struct side *s, const struct exs_snd *snd)
{
	return (const struct send_op *)((const char *)snd -
		offsetof(struct send_op, snd)) - s->send;
}

static struct side *peer_of(struct side *s)
{
	return &world.side[s == &world.side[0]];
}

static void send_ended(struct side *s, struct send_op *op)
{
	CHECK(op->state == OP_QUEUED, "a send ended twice");
	op->state = OP_DONE;
	(void)s;
}

static void check_stream_recv(struct side *s, struct recv_op *op)
{
	struct exs_rcv *rcv = &op->rcv;
	u32 i;

	for (i = 0; i < rcv->filled && !(rcv->flags & EXS_RCV_READER); i++)
		CHECK(op->buf[i] == s->got + i, "byte %u in the place of %u",
		      op->buf[i], s->got + i);
	if (!(rcv->flags & EXS_RCV_READER))
		s->got += rcv->filled;
	if (rcv->flags & EXS_RCV_EOF || op->cancelled)
		return;
	CHECK(rcv->filled == rcv->len ||
	      (rcv->filled && !(rcv->flags & EXS_RCV_WAITALL)),
	      "a receive ended with %u of %u", (u32)rcv->filled, (u32)rcv->len);
}

/* Message number @op->number was given to the program in @op. */
static void check_message_recv(struct side *s, struct recv_op *op)
{
	struct exs_rcv *rcv = &op->rcv;
	u32 i, len = peer_of(s)->sent_len[op->number];

	CHECK(op->number < peer_of(s)->sent, "a message that was never sent");
	CHECK(!(s->handed >> op->number & 1), "a message came twice");
	CHECK(rcv->filled == min_t(u64, len, rcv->len), "message cut to %u of %u",
	      (u32)rcv->filled, len);
	CHECK(!(rcv->flags & EXS_RCV_FETCH && rcv->flags & EXS_RCV_TRUNCATED),
	      "a message cut to the length of another");
	CHECK(op->was_kept || !(rcv->flags & EXS_RCV_TRUNCATED) == (len <= rcv->len),
	      "truncation not told");
	for (i = 0; i < rcv->filled; i++)
		CHECK(op->buf[i] == (op->number << 16 | i), "byte of another message");
	s->handed |= 1ull << op->number;
}

/*
 * Receives end in the order of their messages. There is no order between a receive and those
 * that another thread submitted before its call returned.
 */
static void check_order(struct side *s, const struct recv_op *op)
{
	const struct recv_op *other;

	for (other = s->recv; other < s->recv + s->nrecvs; other++)
		CHECK(other->state != OP_QUEUED || !(other->rcv.flags & EXS_RCV_ARRIVED) ||
		      other->number >= op->number || op - s->recv < other->called,
		      "a receive overtook another");
}

static void recv_ended(struct side *s, struct recv_op *op)
{
	struct exs_rcv *rcv = &op->rcv;

	CHECK(op->state == OP_QUEUED, "a receive ended twice");
	op->state = OP_DONE;
	if (rcv->flags & EXS_RCV_EOF)
		CHECK(s->e.fin_rcvd && !s->e.used && list_empty(&s->e.arrived), "EOF before the last byte");
	if (rcv->err) {
		CHECK(rcv->err == -ECANCELED && !rcv->filled &&
		      (op->cancelled || rcv->flags & EXS_RCV_FETCH),
		      "a receive ended with %d", rcv->err);
		return;
	}
	if (!scenario.seqpacket)
		check_stream_recv(s, op);
	else if (!(rcv->flags & EXS_RCV_EOF))
		check_message_recv(s, op);
	if (scenario.seqpacket)
		check_order(s, op);
}

static void take_done(struct side *s)
{
	struct exs_snd *snd;
	struct exs_rcv *rcv;

	while (!world_bad[0] && (rcv = exs_engine_next_rcv_done(&s->e)))
		recv_ended(s, &s->recv[recv_index(s, rcv)]);
	while (!world_bad[0] && (snd = exs_engine_next_snd_done(&s->e))) {
		struct send_op *op = &s->send[world_send_index(s, snd)];

		CHECK(snd->err == -ECANCELED && op->cancelled, "a send ended with %d",
		      snd->err);
		CHECK(op->out == snd->taken, "a send's count is wrong");
		send_ended(s, op);
	}
}

/* ---- steps ---- */

enum step_kind {
	STEP_SEND, STEP_RECV, STEP_CANCEL, STEP_UNSEND, STEP_SHUTDOWN, STEP_READ_KEPT,
	STEP_LEAVE, STEP_RESIZE,
	/* from here on: steps that must happen in the end */
	STEP_INTERNAL,
	STEP_TX = STEP_INTERNAL, STEP_DELIVER, STEP_REPOST, STEP_COPY, STEP_COPIED,
	STEP_READ, STEP_RING, STEP_CHOOSE, STEP_READ_ALL, STEP_ALARM,
};

static const char * const step_names[] = {
	[STEP_SEND] = "send", [STEP_RECV] = "recv", [STEP_CANCEL] = "cancel",
	[STEP_UNSEND] = "unsend", [STEP_SHUTDOWN] = "shutdown",
	[STEP_READ_KEPT] = "read-kept", [STEP_LEAVE] = "leave", [STEP_RESIZE] = "resize", [STEP_TX] = "tx",
	[STEP_DELIVER] = "deliver", [STEP_REPOST] = "repost", [STEP_COPY] = "copy",
	[STEP_COPIED] = "copied", [STEP_READ] = "read", [STEP_RING] = "ring", [STEP_CHOOSE] = "choose",
	[STEP_READ_ALL] = "read-all", [STEP_ALARM] = "alarm",
};

#define STEP(kind, side, arg) ((kind) << 16 | (side) << 8 | (arg))

const char *step_name(step_t step)
{
	static char text[40];

	snprintf(text, sizeof(text), "%c.%s(%u)", 'a' + (step >> 8 & 1),
		 step_names[step >> 16], step & 255);
	return text;
}

bool step_is_tx(step_t step)
{
	return step >> 16 == STEP_TX;
}

static void do_send(struct side *s, const struct side_plan *plan)
{
	struct send_op *op = &s->send[s->nsends];

	op->snd.len = plan->send_len[s->nsends++];
	op->state = OP_QUEUED;
	exs_engine_send(&s->e, &op->snd);
}

/* @op has read message @m from the ring. */
static void from_ring(struct side *s, struct recv_op *op, const struct exs_in_ring *m)
{
	u32 i;

	for (i = 0; i < op->rcv.filled; i++)
		op->buf[i] = s->ring[m->off + i];
	memset(s->live + m->off, 0, m->len);
}

/* Everything that it has read from the ring is still there. */
static void do_read_all(struct side *s, u32 i)
{
	struct recv_op *op = &s->recv[i];

	from_ring(s, op, &op->m);
	exs_engine_read(&s->e, op->m.space);
	op->state = OP_QUEUED;
	op->called = s->nrecvs;
	exs_engine_recv_kept(&s->e, &op->rcv);
}

/* The owner's part: a receive takes a kept message before the engine sees it. */
static bool recv_kept(struct side *s, struct recv_op *op)
{
	struct kept kept = s->kept[0];
	u32 i;

	if (!s->nkept)
		return false;
	memmove(s->kept, s->kept + 1, --s->nkept * sizeof(*s->kept));
	op->number = kept.number;
	op->was_kept = true;
	op->rcv.filled = min_t(u64, kept.len, op->rcv.len);
	if (kept.m.space) {
		op->m = kept.m;
		op->state = OP_READS;
		exs_engine_reading(&s->e);
		if (scenario.atomic_copy)
			do_read_all(s, op - s->recv);
		return true;
	}
	for (i = 0; i < op->rcv.filled; i++)
		op->buf[i] = kept.number << 16 | i;
	exs_engine_unqueued(&s->e, kept.len);
	exs_engine_recv_kept(&s->e, &op->rcv);
	return true;
}

static void do_recv(struct side *s, const struct side_plan *plan)
{
	u32 i = s->nrecvs++;
	struct recv_op *op = &s->recv[i];

	op->rcv.len = plan->recv[i].len;
	op->rcv.flags = plan->recv[i].flags;
	op->rcv.max_window = plan->recv[i].window;
	if (op->rcv.flags & EXS_RCV_FETCH)
		op->rcv.len = op->rcv.max_window = s->e.announced_len;
	op->rcv.max_segs = 3;
	op->state = OP_QUEUED;
	op->called = s->nrecvs;
	if (!recv_kept(s, op))
		exs_engine_recv(&s->e, &op->rcv);
}

static void do_cancel(struct side *s, u32 i)
{
	struct recv_op *op = &s->recv[i];

	s->cancels++;
	op->cancelled = true;
	exs_engine_cancel_rcv(&s->e, &op->rcv);
}

static void do_unsend(struct side *s, u32 i)
{
	struct send_op *op = &s->send[i];

	s->send_cancels++;
	op->cancelled = exs_engine_cancel_snd(&s->e, &op->snd);
	/* Unless it goes with one that has begun. */
	CHECK(op->cancelled || (op->snd.len && op->snd.taken == op->snd.len),
	      "a queued send was not cancelled");
}

/* A plain recv() has what it wanted, or gives up. */
static void leave(struct side *s, struct recv_op *op)
{
	exs_engine_remove_reader(&s->e, &op->rcv);
	if (op->state == OP_QUEUED)
		op->state = OP_DONE;
}

static void do_leave(struct side *s, u32 i)
{
	s->cancels++;
	leave(s, &s->recv[i]);
}

/* One byte that waits to be copied. */
static u32 ring_tag(const struct side *s, u32 off)
{
	return off & EXS_OFF_EAGER ? s->eager[off & ~EXS_OFF_EAGER] : s->ring[off];
}

/* A plain recv() at the head takes @len bytes. */
static void do_read(struct side *s, u32 len)
{
	struct exs_rcv *rcv = exs_rcv_head(&s->e);
	struct recv_op *op = &s->recv[recv_index(s, rcv)];
	u32 off = 0, i, n = exs_engine_peek(&s->e, rcv, 0, &off);

	CHECK(n >= len, "peek shows less than there is");
	for (i = 0; i < len; i++)
		CHECK(ring_tag(s, off + i) == s->got + i, "read byte %u, expected %u",
		      ring_tag(s, off + i), s->got + i);
	for (i = 0; i < len; i++)
		op->buf[rcv->filled + i] = ring_tag(s, off + i);
	s->got += len;
	exs_engine_consume(&s->e, rcv, len);
	if (rcv->filled == rcv->len || !(rcv->flags & EXS_RCV_WAITALL))
		leave(s, op);
}

static void do_copied(struct side *s)
{
	u32 i, pos = s->got + s->copy.rcv_off;
	struct recv_op *op = &s->recv[recv_index(s, s->copy.rcv)];

	if (scenario.seqpacket)
		from_ring(s, op, &op->rcv.in_ring);
	for (i = 0; i < s->copy.len && !scenario.seqpacket; i++) {
		CHECK(ring_tag(s, s->copy.ring_off + i) == pos + i,
		      "copied byte %u, expected %u",
		      ring_tag(s, s->copy.ring_off + i), pos + i);
		op->buf[s->copy.rcv_off + i] = ring_tag(s, s->copy.ring_off + i);
	}
	s->copying = false;
	exs_engine_copied(&s->e, &s->copy);
}

static void do_copy(struct side *s)
{
	CHECK(exs_engine_next_copy(&s->e, &s->copy), "no copy");
	s->copying = true;
	if (scenario.atomic_copy)
		do_copied(s);
}

/* The owner's additions to a message: keys and addresses. */
static void fill_segs(struct side *s)
{
	if (tx.kind == EXS_TX_RING) {
		tx.msg.nsegs = make_segs(tx.msg.segs, 0, RING_KEY, s->e.ring);
	} else if (tx.kind == EXS_TX_ADVERT) {
		u32 i = recv_index(s, tx.rcv);
		u64 addr = ((u64)i + 1) << REGION_SHIFT;

		s->recv[i].gen++;
		s->recv[i].dead = false;
		tx.msg.nsegs = make_segs(tx.msg.segs, addr | tx.rcv->base,
					 s->recv[i].gen, tx.rcv->window);
	}
}

static void put_write(struct side *s, struct item *it)
{
	u32 i;

	it->write = true;
	it->last = tx.last;
	it->ends = tx.snd_done && !tx.last;
	it->invalidate = tx.invalidate;
	CHECK(!tx.invalidate || (tx.last && tx.nsegs == 1 && tx.key == tx.segs[0].key),
	      "another key is invalidated");
	it->credits = tx.last ? exs_imm_credits(tx.imm) : 0;
	it->a = tx.imm;
	it->b = s->e.ps;
	it->nsegs = tx.nsegs;
	CHECK(tx.nsegs <= ITEM_SEGS, "too many segments");
	for (i = 0; i < tx.nsegs && i < ITEM_SEGS; i++)
		it->segs[i] = tx.segs[i];
	if (scenario.seqpacket)
		it->tag = s->sent << 16 | tx.offset;
	else
		it->tag = s->sent;
}

static void put_message(struct side *s, struct item *it)
{
	fill_segs(s);
	it->type = tx.msg.type;
	it->flags = tx.msg.flags;
	it->credits = tx.msg.credits;
	it->a = tx.msg.a;
	it->b = tx.msg.b;
	it->c = tx.msg.c;
	it->nsegs = tx.msg.nsegs;
	memcpy(it->segs, tx.msg.segs, it->nsegs * sizeof(it->segs[0]));
	it->tag = scenario.seqpacket ? s->sent << 16 : s->sent;
	/* A choice is executed once. */
	if (it->type == EXS_MSG_REQUEST && s->e.policy.asking)
		s->e.policy.choice &= ~EXS_CHOICE_ASK;
}

/* Data is transmitted once, in the order of the sends. */
static void count_sent(struct side *s)
{
	struct send_op *op = &s->send[world_send_index(s, tx.snd)];
	u32 i;

	for (i = 0; i < world_send_index(s, tx.snd); i++)
		CHECK(s->send[i].state == OP_DONE, "a send overtook another");
	CHECK(op->state == OP_QUEUED && op->out == tx.offset, "bytes sent twice");
	op->out += tx.len;
	if (!scenario.seqpacket)
		s->sent += tx.len;
	else if (tx.snd_done)
		s->sent_len[s->sent++] = tx.snd->len;
	if (tx.snd_done) {
		CHECK(scenario.seqpacket || op->out == op->snd.len, "a send ended early");
		send_ended(s, op);
	}
}

/* @hold: no advert, whatever else there is. */
static bool do_tx(struct side *s, bool hold)
{
	struct item *it = &s->out[s->nout];
	bool found;

	exs_engine_hold_adverts(&s->e, hold);
	found = s->nout < scenario.channel && exs_engine_next_tx(&s->e, scenario.piece, &tx);
	exs_engine_hold_adverts(&s->e, false);
	if (!found)
		return false;
	s->nout++;
	memset(it, 0, sizeof(*it));
	it->len = tx.len;
	if (tx.kind == EXS_TX_WRITE)
		put_write(s, it);
	else
		put_message(s, it);
	if (tx.snd)
		count_sent(s);
	return true;
}

/* The bytes of a stream's EAGER: the last ones that arrived. */
static void land_eagerly(struct side *o, const struct item *it)
{
	u32 i, at = exs_engine_eager_at(&o->e);

	CHECK(o->e.eager_used + it->len <= scenario.eager_space, "eager space: overflow");
	CHECK(it->tag == next_tag(o), "eager byte %u, expected %u", it->tag, next_tag(o));
	for (i = 0; i < it->len && !world_bad[0]; i++)
		o->eager[(at + i) % scenario.eager_space] = it->tag + i;
}

/* An EAGER message: for a receive, or kept. */
static void take_eager(struct side *o, const struct item *it, struct exs_rcv *rcv)
{
	u32 i, n = (it->tag >> 16) + 1;

	if (!scenario.seqpacket)
		return;
	CHECK(messages_in(o) == n, "eager message out of order");
	if (!rcv) {
		o->kept[o->nkept++] = (struct kept){ .number = n - 1, .len = it->len };
		return;
	}
	o->recv[recv_index(o, rcv)].number = n - 1;
	for (i = 0; i < min_t(u64, it->len, rcv->len); i++)
		o->recv[recv_index(o, rcv)].buf[i] = it->tag | i;
}

/* To bytes and back, as the connection layer does it. */
static void through_the_wire(void)
{
	static u8 buf[EXS_WIRE_BUF_LEN];
	u32 type = msg.type, a = msg.a, b = msg.b, c = msg.c, nsegs = msg.nsegs;
	int len = exs_wire_put_msg(buf, sizeof(buf), &msg);

	CHECK(len >= EXS_WIRE_HDR_LEN, "the wire format refuses a message");
	memset(&msg, 0, sizeof(msg));
	if (type == EXS_MSG_EAGER)
		len += b;
	CHECK(!exs_wire_get_msg(buf, len, &msg), "its parser refuses one");
	CHECK(msg.type == type && msg.a == a && msg.b == b && msg.c == c &&
	      msg.nsegs == nsegs, "the wire format changes a message");
}

static int arrive(struct side *o, const struct item *it)
{
	struct exs_rcv *rcv;
	int err;

	msg.type = it->type;
	msg.flags = it->flags;
	msg.credits = it->credits;
	msg.a = it->a;
	msg.b = it->b;
	msg.c = it->c;
	msg.nsegs = it->nsegs;
	memcpy(msg.segs, it->segs, it->nsegs * sizeof(msg.segs[0]));
	msg.data = "";
	msg.len = it->type == EXS_MSG_EAGER ? it->len : 0;
	if (world_wire)
		through_the_wire();
	if (it->type == EXS_MSG_EAGER && !scenario.seqpacket)
		land_eagerly(o, it);
	if (exs_engine_wants_theirs(&o->e, &msg))
		o->e.theirs = &o->theirs;
	err = exs_engine_rx_msg(&o->e, &msg, &rcv);
	if (!err && it->type == EXS_MSG_EAGER)
		take_eager(o, it, rcv);
	return err;
}

/* The key of the receive that this transfer, now over, went into. */
static void invalidated(struct side *o, u32 i)
{
	CHECK(!o->recv[i].dead, "a key is invalidated twice");
	CHECK(!(o->recv[i].rcv.flags & EXS_RCV_ADVERTISED), "an advert that is not used up is invalidated");
	o->recv[i].dead = true;
}

static bool is_indirect(u32 imm)
{
	if (scenario.seqpacket)
		return exs_imm_kind(imm) == EXS_IMM_INDIRECT || exs_imm_is_many(imm);
	return exs_imm_kind(imm) != EXS_IMM_DIRECT;
}

/* The first @n receives are to get messages @number and so on. Return: how many there are. */
static u32 take_written(struct side *o, u32 n, u32 number)
{
	struct exs_rcv *rcv;
	u32 i = 0;

	list_for_each_entry(rcv, &o->e.receives, node) {
		if (i == n)
			break;
		o->recv[recv_index(o, rcv)].number = number + i++;
	}
	return i;
}

/* The other messages, to @end, are kept. */
static void keep_written(struct side *o, u32 number, u32 end)
{
	struct exs_in_ring m;

	for (; exs_engine_next_kept(&o->e, &m); number++)
		o->kept[o->nkept++] = (struct kept){ .number = number, .len = m.len, .m = m };
	CHECK(number == end && messages_in(o) == end, "%u messages kept, not %u", number, end);
}

static int arrive_write(struct side *o, const struct item *it)
{
	u32 len = exs_imm_len(it->a);
	u32 count = exs_imm_count(it->a), number = messages_in(o), taken = 0;
	bool indirect = is_indirect(it->a);
	int err;

	land(o, it);
	if (!it->last || world_bad[0])
		return 0;
	CHECK(count * len == o->landed, "immediate of %u bytes after %u", count * len, o->landed);
	CHECK(!scenario.seqpacket || o->landed_messages == count - 1, "immediate of %u messages", count);
	if (indirect && world_compare_phase && it->b != (o->e.pr | 1))
		return -EPROTO;
	o->landed = 0;
	o->landed_before = 0;
	o->landed_messages = 0;
	if (scenario.seqpacket)
		taken = take_written(o, count, number);
	err = exs_engine_rx_imm(&o->e, it->a);
	if (!err && scenario.seqpacket)
		keep_written(o, number + taken, number + count);
	if (it->invalidate)
		invalidated(o, (it->segs[0].addr >> REGION_SHIFT) - 1);
	return err;
}

static void do_deliver(struct side *s)
{
	struct side *o = peer_of(s);
	struct item it = s->out[0];
	int err;

	memmove(s->out, s->out + 1, --s->nout * sizeof(*s->out));
	err = it.write ? arrive_write(o, &it) : arrive(o, &it);
	CHECK(!err, "an honest peer is told -EPROTO");
	if (it.write && !it.last)
		return;
	if (tight_credits())
		o->unposted++;
	else
		exs_engine_reposted(&o->e);
}

static void do_ring(struct side *s)
{
	exs_engine_ring_ready(&s->e, scenario.ring);
}

/* Credits owed to the peer, in flight, and held by it add up to the total. */
static void check_credits(const struct side *s, const struct side *o)
{
	u32 i, n = s->e.credits.have + o->unposted + o->e.credits.owed;
	u32 total = s->e.credits.peer_total;

	for (i = 0; i < s->nout; i++)
		n += !s->out[i].write || s->out[i].last;
	for (i = 0; i < o->nout; i++) {
		n += o->out[i].credits;
		if (o->out[i].write || o->out[i].type != EXS_MSG_CREDIT || !o->out[i].a)
			continue;
		/* More are being announced; withheld ones are already gone. */
		if (o->out[i].a > total)
			n += o->out[i].a - total;
		total = o->out[i].a;
	}
	n += s->e.write.snd ? 1 : 0;
	CHECK(total == o->e.credits.total, "credits: %u told of %u", total,
	      o->e.credits.total);
	CHECK(n == total, "credits: %u of %u", n, total);
	CHECK(s->e.credits.have <= total, "credits below zero");
	CHECK(!scenario.confirm || !exs_engine_confirmed(&s->e) || o->e.fin_rcvd,
	      "FIN is confirmed, and not there");
}

/* A transfer that has arrived according to its credits is not under way. */
static void check_arrived(const struct side *s, const struct side *o)
{
	u32 i;

	if (!exs_engine_all_arrived(&s->e))
		return;
	CHECK(!s->e.write.snd && !o->landed, "a write under way has arrived");
	for (i = 0; i < s->nout; i++)
		CHECK(!s->out[i].write && s->out[i].type != EXS_MSG_EAGER &&
		      s->out[i].type != EXS_MSG_WRITTEN, "data in flight have arrived");
}

/* Bytes of ring or eager space for data in flight. */
static u32 space_in_flight(const struct side *s, const struct side *o)
{
	const struct exs_write *w = &s->e.write;
	u32 i, n = 0;

	for (i = 0; i < s->nout; i++) {
		const struct item *it = &s->out[i];

		if (it->write && !(it->segs[0].addr >> REGION_SHIFT))
			n += it->nsegs && !scenario.seqpacket ? it->len : 0;
		else if (!it->write && it->type == EXS_MSG_EAGER && scenario.seqpacket)
			n += it->len + EXS_EAGER_OVERHEAD;
	}
	if (scenario.seqpacket)
		return n;
	if (w->snd && is_indirect(w->imm))
		n += w->len - w->done;
	return n + (o->landed_in_ring ? o->landed : 0);
}

/* Ring bytes of @n messages of @len bytes at *@pos. */
static u32 takes(u32 n, u32 len, u32 *pos)
{
	u32 span = n * (len + scenario.ring_overhead), skip = 0;

	if (*pos + span > scenario.ring) {
		skip = scenario.ring - *pos;
		*pos = 0;
	}
	*pos += span;
	return skip + span;
}

/* The same for messages in a ring. */
static void check_ring_space(const struct side *s, const struct side *o)
{
	const struct exs_write *w = &s->e.write;
	u32 n = s->e.ring_space + o->e.ring_used + o->e.ring_held + o->e.ring_freed;
	u32 i, pos = o->e.ring_end;

	if (!s->e.peer_ring)
		return;
	for (i = 0; i < s->nout; i++)
		if (s->out[i].write && s->out[i].last && is_indirect(s->out[i].a))
			n += takes(exs_imm_count(s->out[i].a), exs_imm_len(s->out[i].a), &pos);
	if (w->snd && is_indirect(w->imm))
		n += takes(exs_imm_count(w->imm), exs_imm_len(w->imm), &pos);
	for (i = 0; i < o->nout; i++)
		if (!o->out[i].write && o->out[i].type == EXS_MSG_SPACE)
			n += o->out[i].b;
	CHECK(n == scenario.ring, "ring: %u of %u", n, scenario.ring);
}

/* The same for a stream without a ring: its receiver stores the bytes. */
static void check_eager(const struct side *s, const struct side *o)
{
	u32 i, n = s->e.space, room = 0;

	if (o->e.ring_told)
		return;
	for (i = 0; i < s->nout; i++)
		if (!s->out[i].write && s->out[i].type == EXS_MSG_EAGER)
			n += s->out[i].len;
	for (i = 0; i < o->nout; i++)
		if (!o->out[i].write)
			n += o->out[i].c;
	room = n;
	n += o->e.eager_used + o->e.freed;
	CHECK(!scenario.eagerly || n == scenario.eager_space, "eager space: %u of %u", n,
	      scenario.eager_space);
	CHECK(!scenario.eagerly || room == o->e.eager_room, "eager room: %u, not %u",
	      o->e.eager_room, room);
}

/* No space is lost or counted twice. */
static void check_space(const struct side *s, const struct side *o)
{
	u32 i, n = s->e.space + o->e.used - o->e.eager_used + o->e.freed + space_in_flight(s, o);
	u32 total = scenario.seqpacket ? scenario.eager_space : scenario.ring;

	if (scenario.seqpacket)
		check_ring_space(s, o);
	else if (!s->e.peer_ring)
		return check_eager(s, o);
	for (i = 0; i < o->nout; i++)
		if (!o->out[i].write && !(scenario.seqpacket && o->out[i].type == EXS_MSG_EAGER))
			n += o->out[i].c;
	CHECK(n == total, "space: %u of %u", n, total);
}

/* An attempt that starts a timer changes something, too. */
static bool is_idle_tx(struct side *s, bool hold)
{
	u64 alarm = exs_engine_alarm(&s->e);

	return !do_tx(s, hold) && exs_engine_alarm(&s->e) == alarm;
}

static void step_side(struct side *s, const struct side_plan *plan, step_t step)
{
	switch (step >> 16) {
	case STEP_SEND:
		return do_send(s, plan);
	case STEP_RECV:
		return do_recv(s, plan);
	case STEP_CANCEL:
		return do_cancel(s, step & 255);
	case STEP_UNSEND:
		return do_unsend(s, step & 255);
	case STEP_SHUTDOWN:
		s->shut = true;
		return exs_engine_shutdown(&s->e);
	case STEP_LEAVE:
		return do_leave(s, step & 255);
	case STEP_RESIZE:
		s->e.credits_wanted = false;
		return exs_engine_resize(&s->e, plan->size[s->nsizes++]);
	case STEP_TX:
		world_idle = is_idle_tx(s, step & 255);
		return;
	case STEP_DELIVER:
		return do_deliver(s);
	case STEP_REPOST:
		s->unposted--;
		return exs_engine_reposted(&s->e);
	case STEP_COPY:
		return do_copy(s);
	case STEP_COPIED:
		return do_copied(s);
	case STEP_READ:
		return do_read(s, step & 255);
	case STEP_READ_ALL:
		return do_read_all(s, step & 255);
	case STEP_RING:
		return do_ring(s);
	case STEP_CHOOSE:
		s->e.policy.choice = plan->choice[s->nchoices++];
		return;
	case STEP_ALARM:
		return exs_engine_clock(&s->e, exs_engine_alarm(&s->e), s->nout);
	}
}

static void tick(void)
{
	u32 i;

	for (i = 0; i < 2 && world_now; i++)
		exs_engine_clock(&world.side[i].e, world_now, world.side[i].nout);
}

/* The owner's work after each step. */
static void run_sides(void)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct side *s = &world.side[i];

		take_done(s);
		while (scenario.prompt_tx && !world_bad[0] && do_tx(s, false))
			;
		take_done(s);
	}
}

/* Let time pass. */
void world_wait(u64 ns)
{
	world_now += ns;
	tick();
	run_sides();
}

bool world_do(step_t step)
{
	u32 side = step >> 8 & 1, i;

	world_bad[0] = 0;
	world_idle = false;
	tick();
	step_side(&world.side[side], &scenario.side[side], step);
	run_sides();
	for (i = 0; i < 2 && !world_bad[0]; i++) {
		check_credits(&world.side[i], &world.side[!i]);
		check_arrived(&world.side[i], &world.side[!i]);
		check_space(&world.side[i], &world.side[!i]);
	}
	return !world_bad[0];
}

/* ---- which steps are possible ---- */

struct step_list {
	step_t *steps;
	u32 n;
};

static void add(struct step_list *l, u32 kind, u32 side, u32 arg)
{
	l->steps[l->n++] = STEP(kind, side, arg);
}

/* The next receive of the plan can be submitted: one for the announced message once there is one. */
static bool may_recv(const struct side *s, const struct side_plan *plan)
{
	const struct exs_engine *e = &s->e;

	if (s->nrecvs >= plan->nrecvs)
		return false;
	return !(plan->recv[s->nrecvs].flags & EXS_RCV_FETCH) ||
	       (!s->nkept && e->announced_len <= BUF_MAX && exs_engine_fetches(e, e->announced_len));
}

static void program_steps(struct step_list *l, u32 i)
{
	struct side *s = &world.side[i];
	const struct side_plan *plan = &scenario.side[i];
	u32 j;

	if (s->nsends < plan->nsends)
		add(l, STEP_SEND, i, 0);
	else if (plan->fin && !s->shut)
		add(l, STEP_SHUTDOWN, i, 0);
	if (may_recv(s, plan))
		add(l, STEP_RECV, i, 0);
	if (s->nsizes < plan->nsizes && (!scenario.asks || scenario.unasked || s->e.credits_wanted))
		add(l, STEP_RESIZE, i, 0);
	for (j = 0; j < s->nrecvs && s->cancels < plan->cancels; j++) {
		struct recv_op *op = &s->recv[j];

		if (op->state == OP_QUEUED && !op->cancelled)
			add(l, op->rcv.flags & EXS_RCV_READER ? STEP_LEAVE : STEP_CANCEL,
			    i, j);
	}
	for (j = 0; j < s->nsends && s->send_cancels < plan->send_cancels; j++) {
		struct send_op *op = &s->send[j];

		if (op->state == OP_QUEUED && !op->cancelled &&
		    !list_empty(&op->snd.node))
			add(l, STEP_UNSEND, i, j);
	}
}

static void reader_steps(struct step_list *l, u32 i, struct exs_rcv *rcv)
{
	u32 off, n = exs_engine_peek(&world.side[i].e, rcv, 0, &off);

	n = min_t(u64, n, rcv->len - rcv->filled);
	if (n)
		add(l, STEP_READ, i, min(n, 255u));
	if (n > 1)
		add(l, STEP_READ, i, 1);
}

static void internal_steps(struct step_list *l, u32 i)
{
	struct side *s = &world.side[i];
	struct exs_rcv *head = exs_rcv_head(&s->e);
	u32 j;

	if (s->nout)
		add(l, STEP_DELIVER, i, 0);
	if (!scenario.prompt_tx && s->nout < scenario.channel) {
		add(l, STEP_TX, i, 0);
		if (scenario.holds)
			add(l, STEP_TX, i, 1);
	}
	if (s->unposted)
		add(l, STEP_REPOST, i, 0);
	if (s->e.ring_wanted)
		add(l, STEP_RING, i, 0);
	if (s->nchoices < scenario.side[i].nchoices)
		add(l, STEP_CHOOSE, i, 0);
	if (!world_now && exs_engine_alarm(&s->e))
		add(l, STEP_ALARM, i, 0);
	for (j = 0; j < s->nrecvs; j++)
		if (s->recv[j].state == OP_READS)
			add(l, STEP_READ_ALL, i, j);
	if (s->copying)
		add(l, STEP_COPIED, i, 0);
	else if (!list_empty(&s->e.arrived))
		add(l, STEP_COPY, i, 0);
	else if (head && head->flags & EXS_RCV_READER)
		reader_steps(l, i, head);
	else if (head && s->e.used && !scenario.seqpacket)
		add(l, STEP_COPY, i, 0);
}

/* @internal: the number of steps that happen whatever the programs do. */
u32 world_steps(step_t *steps, u32 *internal)
{
	struct step_list l = { .steps = steps };

	internal_steps(&l, 0);
	internal_steps(&l, 1);
	*internal = l.n;
	program_steps(&l, 0);
	program_steps(&l, 1);
	return l.n;
}

/* ---- nothing happens any more: was all work done? ---- */

static void quiet_sender(struct side *s, struct side *o)
{
	struct exs_snd *snd = exs_snd_head(&s->e);

	CHECK(!s->e.write.snd && !s->e.answer_due, "stuck: half sent");
	CHECK(!s->e.fin_wanted || snd || s->e.fin_sent, "stuck: FIN not sent");
	CHECK(!s->e.fin_sent || exs_engine_confirmed(&s->e), "stuck: FIN not confirmed");
	if (!snd)
		return;
	CHECK(!exs_rcv_head(&o->e), "stuck: a send and a receive both wait");
	CHECK(o->e.used || o->nkept || o->e.announced, "stuck: a send waits for nothing");
}

static void quiet_receiver(struct side *s, struct side *o)
{
	struct exs_rcv *rcv = exs_rcv_head(&s->e);
	struct exs_snd *snd = exs_snd_head(&o->e);

	CHECK(!s->e.cancels && !s->e.revoke_out, "stuck: a cancel waits");
	CHECK(!rcv || !s->e.used, "stuck: bytes not copied");
	CHECK(!rcv || !s->e.fin_rcvd, "stuck: a receive after FIN");
	CHECK(list_empty(&s->e.arrived), "stuck: a message not copied");
	CHECK(!scenario.seqpacket || (u32)__builtin_popcountll(s->handed) + s->nkept ==
	      messages_in(s), "a message is lost");
	if (s->e.announced)
		CHECK(snd && snd->len == s->e.announced_len, "a stale announcement");
}

bool world_quiescent_ok(void)
{
	u32 i;

	world_bad[0] = 0;
	for (i = 0; i < 2; i++) {
		quiet_sender(&world.side[i], &world.side[!i]);
		quiet_receiver(&world.side[i], &world.side[!i]);
	}
	return !world_bad[0];
}

void world_start(void)
{
	struct exs_hello hello = {
		.socktype = scenario.seqpacket ? EXS_WIRE_SEQPACKET : EXS_WIRE_STREAM,
		.credits = scenario.credits,
		.max_adverts = scenario.adverts,
		.max_segs = EXS_HELD_SEGS_MAX,
		.recv_len = EXS_WIRE_BUF_LEN,
		.eager_space = scenario.eager_space,
		.features = (scenario.invalidate ? EXS_WIRE_F_INVALIDATE : 0) |
			    (scenario.ring_max ? EXS_WIRE_F_MESSAGE_RING | EXS_WIRE_F_MANY : 0) |
			    (scenario.asks ? EXS_WIRE_F_ASK : 0) |
			    (scenario.eagerly ? EXS_WIRE_F_STREAM_EAGER : 0),
	};
	struct exs_engine_config config = {
		.ours = hello, .peer = hello, .eager_max = scenario.eager_max,
		.ring_max = scenario.ring_max, .ring_overhead = scenario.ring_overhead,
		.confirm = scenario.confirm,
	};
	u32 i;

	memset(&world, 0, sizeof(world));
	world_bad[0] = 0;
	for (i = 0; i < 2; i++) {
		struct exs_engine *e = &world.side[i].e;

		exs_engine_init(e, &config);
		e->sp = START_POSITION;
		e->rp = START_POSITION;
		e->policy.choice = EXS_CHOICE_GUESS;
		if (scenario.seqpacket)
			continue;
		e->ps = START_PHASE;
		e->pr = START_PHASE;
	}
}
