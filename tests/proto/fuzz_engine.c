// SPDX-License-Identifier: GPL-2.0
/*
 * One engine, and a peer that sends anything at any time. The engine may refuse (the connection
 * is then reset, as core does), but must not crash, loop, leave its bounds, accept a write that
 * it did not invite, or lose an operation.
 */
#include "fuzz.h"

#define OPS	24

/* The input, consumed from the front; zeros when it is at its end. */
static const u8 *in;
static size_t in_left;

static u32 byte(void)
{
	if (!in_left)
		return 0;
	in_left--;
	return *in++;
}

static u32 word(void)
{
	return byte() | byte() << 8 | byte() << 16 | byte() << 24;
}

/* A plausible value, or any. */
static u32 near(u32 right)
{
	u32 how = byte();

	if (how < 160)
		return right;
	return how < 220 ? right + how % 7 - 3 : word();
}

static struct {
	struct exs_engine e;
	struct exs_theirs theirs;
	bool stream;
	struct exs_snd snd[OPS];
	struct exs_rcv rcv[OPS];
	bool snd_busy[OPS], rcv_busy[OPS];
	struct exs_copy copy;
	bool copying;
	u32 kept[OPS], nkept;
	struct exs_in_ring in_ring[OPS]; /* stored there                   */
	u32 nin_ring;
	u32 reading;		/* space of one that is being read         */
	u32 peer_owes;		/* credits that the peer may return        */
} f;

static struct exs_tx tx;
static struct exs_msg msg;

static void start(void)
{
	struct exs_engine_config config = {
		.ours = { .max_adverts = EXS_ADVERTS_MAX, .max_segs = EXS_HELD_SEGS_MAX,
			  .recv_len = EXS_WIRE_BUF_LEN },
	};
	u32 how = byte();

	memset(&f, 0, sizeof(f));
	f.stream = how & 1;
	config.ours.socktype = f.stream ? EXS_WIRE_STREAM : EXS_WIRE_SEQPACKET;
	config.ours.credits = EXS_WIRE_CREDITS_MIN + (how >> 4);
	config.ours.eager_space = EXS_WIRE_EAGER_MIN + byte() * 8;
	config.peer = config.ours;
	config.peer.credits = EXS_WIRE_CREDITS_MIN + byte();
	config.peer.max_adverts = how & 2 ? 0xffff : 1 + how % 9;
	config.peer.max_segs = how & 4 ? 0xffff : EXS_WIRE_SEGS_MAX;
	config.eager_max = word();
	config.confirm = how & 16;
	config.ring_max = how & 32 ? 1 + byte() : EXS_RING_MESSAGE_MAX;
	config.ring_overhead = how & 64 ? byte() : 0;
	config.ours.features = byte();
	config.peer.features = config.ours.features;
	exs_engine_init(&f.e, &config);
	if (how & 8)
		exs_engine_ring_ready(&f.e, 1 + byte());
}

/* ---- what must hold at any time ---- */

static void check_receives(void)
{
	struct exs_rcv *rcv;
	bool advertised = true;
	u32 n = 0, segs = 0;

	list_for_each_entry(rcv, &f.e.receives, node) {
		MUST(rcv->filled <= rcv->len);
		if (!(rcv->flags & EXS_RCV_ADVERTISED)) {
			advertised = false;
			continue;
		}
		MUST(advertised);	/* a prefix */
		MUST(rcv->filled <= rcv->base + rcv->window);
		n++;
		segs += rcv->max_segs;
	}
	MUST(n == f.e.adverts_out && segs == f.e.segs_out);
	MUST(n <= EXS_ADVERTS_MAX && segs <= f.e.config.peer.max_segs);
}

static void check_engine(void)
{
	struct exs_engine *e = &f.e;
	u32 eager = e->config.ours.eager_space;
	u32 total = f.stream && e->ring_told ? e->ring : eager;
	u32 used = f.stream && e->ring_told ? e->used - e->eager_used : e->used;

	check_receives();
	MUST(used <= total && e->freed <= total - used);
	MUST(e->eager_used <= e->used && (u64)e->eager_used + e->eager_room <= eager);
	MUST(!e->eager_pos || e->eager_pos < eager);
	MUST((u64)e->ring_used + e->ring_held + e->ring_freed <= e->ring);
	MUST(e->ring_end <= e->ring);
	MUST(e->ring_space <= e->peer_ring && e->ring_pos <= e->peer_ring);
	MUST(!e->ring || e->read_pos < e->ring);
	MUST(e->space <= (f.stream && e->peer_ring ? e->peer_ring : e->config.peer.eager_space));
	MUST(e->held.count <= EXS_ADVERTS_MAX);
	MUST(e->held.seg_count <= EXS_HELD_SEGS_MAX);
	MUST(e->credits.have <= e->credits.peer_total);
	MUST(e->credits.peer_total >= EXS_WIRE_CREDITS_MIN);
	MUST(e->credits.peer_total <= EXS_WIRE_CREDITS_MAX);
	MUST(e->credits.total >= EXS_WIRE_CREDITS_MIN);
	MUST(e->credits.owed + e->credits.granted <= e->credits.total);
	MUST(e->credits.awaited <= e->credits.peer_total - e->credits.have);
}

static void take_done(void)
{
	struct exs_snd *snd;
	struct exs_rcv *rcv;

	while ((rcv = exs_engine_next_rcv_done(&f.e))) {
		MUST(f.rcv_busy[rcv - f.rcv]);
		MUST(rcv->filled <= rcv->len);
		f.rcv_busy[rcv - f.rcv] = false;
	}
	while ((snd = exs_engine_next_snd_done(&f.e))) {
		MUST(f.snd_busy[snd - f.snd]);
		f.snd_busy[snd - f.snd] = false;
	}
}

/* A plain recv() at the head reads what it wants and leaves. */
static bool read_one(void)
{
	u32 i, n, off;

	for (i = 0; i < OPS; i++) {
		if (!f.rcv_busy[i] || !(f.rcv[i].flags & EXS_RCV_READER))
			continue;
		n = exs_engine_peek(&f.e, &f.rcv[i], 0, &off);
		if (!n)
			continue;
		exs_engine_consume(&f.e, &f.rcv[i], n);
		exs_engine_remove_reader(&f.e, &f.rcv[i]);
		f.rcv_busy[i] = false;
		return true;
	}
	return false;
}

/* Bytes in the ring go to waiting receives. */
static void read_ring(void)
{
	do {
		while (exs_engine_next_copy(&f.e, &f.copy))
			exs_engine_copied(&f.e, &f.copy);
		take_done();
	} while (read_one());
}

/* The connection is reset: every operation ends. */
static void fail(void)
{
	u32 i;

	if (f.copying)
		exs_engine_copied(&f.e, &f.copy);
	f.copying = false;
	exs_engine_fail(&f.e, -ECONNRESET);
	read_ring();
	for (i = 0; i < OPS; i++)
		MUST(!f.rcv_busy[i] && !f.snd_busy[i]);
	MUST(!exs_engine_next_tx(&f.e, 4096, &tx));
	check_engine();
}

/* ---- the program ---- */

static void do_send(void)
{
	u32 i = byte() % OPS;

	if (f.snd_busy[i])
		return;
	f.snd_busy[i] = true;
	memset(&f.snd[i], 0, sizeof(f.snd[i]));
	f.snd[i].len = byte() < 240 ? byte() * byte() : word();
	exs_engine_send(&f.e, &f.snd[i]);
}

static void do_recv(void)
{
	u32 i = byte() % OPS;
	struct exs_rcv *rcv = &f.rcv[i];

	if (f.rcv_busy[i] || f.nkept || f.nin_ring)
		return;
	f.rcv_busy[i] = true;
	memset(rcv, 0, sizeof(*rcv));
	rcv->len = byte() < 240 ? byte() : word();
	rcv->flags = byte() & (EXS_RCV_DIRECT | EXS_RCV_WAITALL);
	if (byte() > 220)
		rcv->flags |= f.stream ? EXS_RCV_READER : EXS_RCV_FETCH;
	rcv->max_window = byte() < 128 ? rcv->len : byte();
	rcv->max_segs = byte() % (EXS_WIRE_SEGS_MAX + 2);
	exs_engine_recv(&f.e, rcv);
}

static void do_cancel(void)
{
	u32 i = byte() % OPS;

	if (f.rcv_busy[i] && f.rcv[i].flags & EXS_RCV_READER) {
		exs_engine_remove_reader(&f.e, &f.rcv[i]);
		f.rcv_busy[i] = false;
	} else if (f.rcv_busy[i]) {
		exs_engine_cancel_rcv(&f.e, &f.rcv[i]);
	}
	i = byte() % OPS;
	if (f.snd_busy[i])
		exs_engine_cancel_snd(&f.e, &f.snd[i]);
}

/* Its bytes are in the ring, or are eager. */
static void check_piece(u32 off, u32 n)
{
	u32 size = off & EXS_OFF_EAGER ? f.e.config.ours.eager_space : f.e.ring;

	off &= ~EXS_OFF_EAGER;
	MUST(off < size && n <= size - off);
}

static void do_read(void)
{
	struct exs_rcv *head = exs_rcv_head(&f.e);
	u32 off, n;

	if (f.nkept)
		exs_engine_unqueued(&f.e, f.kept[--f.nkept]);
	if (f.reading) {
		exs_engine_read(&f.e, byte() & 1 ? f.reading : 0);
		f.reading = 0;
	} else if (f.nin_ring) {
		exs_engine_reading(&f.e);
		f.reading = f.in_ring[--f.nin_ring].space;
	}
	if (!head || !(head->flags & EXS_RCV_READER))
		return;
	n = exs_engine_peek(&f.e, head, byte(), &off);
	if (n)
		check_piece(off, n);
	n = exs_engine_peek(&f.e, head, 0, &off);
	exs_engine_consume(&f.e, head, min_t(u64, n, head->len - head->filled));
}

static void do_copy(void)
{
	if (f.copying) {
		exs_engine_copied(&f.e, &f.copy);
		f.copying = false;
		return;
	}
	if (!exs_engine_next_copy(&f.e, &f.copy))
		return;
	MUST(f.copy.len || !f.stream);
	check_piece(f.copy.ring_off, f.copy.len);
	MUST(f.copy.rcv_off + f.copy.len <= f.copy.rcv->len);
	MUST(!exs_engine_next_copy(&f.e, &f.copy));
	f.copying = true;
}

static void check_write(void)
{
	u32 i, sum = 0;

	MUST(tx.nsegs <= EXS_WIRE_SEGS_MAX);
	for (i = 0; i < tx.nsegs; i++) {
		/* Only where we invited it: see segs_from_input(). */
		MUST(tx.segs[i].addr >> 32 == tx.segs[i].key);
		sum += tx.segs[i].len;
	}
	MUST(sum == tx.len);
	MUST(tx.offset + tx.len <= tx.snd->len);
}

/* Transmit everything possible; credits and data bound the amount. */
static void do_transmit(void)
{
	u32 max = 4096 + byte() * 100000, n = 0;

	while (n++ < 1000 && exs_engine_next_tx(&f.e, max, &tx)) {
		MUST(tx.len <= max || tx.kind == EXS_TX_EAGER);
		if (tx.kind == EXS_TX_WRITE)
			check_write();
		if (tx.kind == EXS_TX_ADVERT)
			MUST(tx.rcv->base + tx.rcv->window <= tx.rcv->len);
		if (tx.kind != EXS_TX_WRITE || tx.last)
			f.peer_owes++;
		if (tx.snd_done) {
			MUST(f.snd_busy[tx.snd - f.snd]);
			f.snd_busy[tx.snd - f.snd] = false;
		}
	}
}

/* ---- the peer ---- */

static void segs_from_input(u32 sum)
{
	u32 i, left = sum;

	msg.nsegs = byte() % 4 ? byte() % 4 : byte() % (EXS_WIRE_SEGS_MAX + 1);
	for (i = 0; i < msg.nsegs; i++) {
		msg.segs[i].key = word() & 0x7fffffff;
		msg.segs[i].addr = (u64)msg.segs[i].key << 32 | (word() & 0x7fffffff);
		if (sum && i + 1 == msg.nsegs)
			msg.segs[i].len = max(left, 1u);
		else
			msg.segs[i].len = 1 + byte();
		left -= min(left, msg.segs[i].len);
	}
}

static void payload_from_input(void)
{
	static u8 data[EXS_WIRE_DATA_MAX];
	u32 ring = 1 + byte();

	msg.nsegs = 0;
	msg.data = data;
	msg.len = 0;
	switch (msg.type) {
	case EXS_MSG_RING:
		msg.b = near(ring);
		segs_from_input(ring);
		break;
	case EXS_MSG_ADVERT:
		segs_from_input(0);
		break;
	case EXS_MSG_EAGER:
		msg.len = min_t(u32, byte() * 4, EXS_WIRE_DATA_MAX);
		msg.b = near(msg.len);
		break;
	}
}

static void message_from_input(void)
{
	const struct exs_engine *e = &f.e;
	bool opens = byte() & 1;

	msg.type = byte() % (EXS_MSG_MAX + 2);
	msg.flags = byte() < 200 ? (opens ? EXS_MSG_F_FIRST : 0) : byte();
	msg.credits = byte() < 240 ? min(f.peer_owes, byte()) : word();
	msg.c = byte() < 200 ? 0 : byte();
	msg.b = near(e->rp);
	if (msg.type == EXS_MSG_SPACE)
		msg.b = byte() < 128 ? 0 : byte();
	switch (msg.type) {
	case EXS_MSG_CREDIT:
		msg.a = byte() < 128 ? 0 : near(e->credits.peer_total - min(f.peer_owes, byte()));
		msg.b = byte() < 128 ? 0 : near(e->credits.total);
		break;
	case EXS_MSG_ADVERT:
		msg.a = near(f.stream ? (e->ps | 1) + (opens ? 1 : -1) : e->sp + e->held.count);
		msg.b = opens ? near(e->sp) : 0;
		break;
	case EXS_MSG_REVOKE:
		msg.a = near(f.stream ? e->ps & ~1u : 0);
		break;
	case EXS_MSG_ANSWER:
		msg.a = near(e->revoke_phase);
		break;
	case EXS_MSG_REQUEST:
		msg.a = near(f.stream ? 0 : e->rp);
		msg.b = f.stream ? near(0) : byte() < 128 ? 0 : word() % (2 * EXS_MESSAGE_MAX);
		break;
	default:
		msg.a = near(e->rp);
	}
	payload_from_input();
}

/* Messages without a receive are in the ring, apart from the others there. Return: how many. */
static u32 take_kept(void)
{
	struct exs_in_ring m;
	u32 n, space = 0;

	for (n = 0; exs_engine_next_kept(&f.e, &m); n++) {
		MUST(!f.stream && m.len && m.off < f.e.ring && m.len <= f.e.ring - m.off);
		MUST(m.space >= m.len);
		space += m.space;
		if (f.nin_ring < OPS)
			f.in_ring[f.nin_ring++] = m;
	}
	MUST(n <= EXS_IMM_MANY_MAX && space <= f.e.ring_used);
	return n;
}

static bool rx_message(void)
{
	struct exs_rcv *rcv;

	message_from_input();
	if (exs_engine_wants_theirs(&f.e, &msg))
		f.e.theirs = &f.theirs;
	if (exs_engine_rx_msg(&f.e, &msg, &rcv))
		return false;
	f.peer_owes -= min_t(u32, f.peer_owes, msg.credits);
	f.peer_owes = min_t(u32, f.peer_owes, f.e.credits.peer_total - f.e.credits.have);
	take_kept();
	if (rcv)
		MUST(msg.type == EXS_MSG_EAGER && rcv->filled <= msg.len);
	else if (!f.stream && msg.type == EXS_MSG_EAGER && f.nkept < OPS)
		f.kept[f.nkept++] = msg.len;
	return true;
}

/* A write is accepted only where one was invited, and only up to its length. */
static bool rx_write(void)
{
	u32 mark = byte(), len = byte() < 200 ? byte() % 17 : word();
	u32 imm = mark << 30 | (len & EXS_IMM_LEN_MAX);
	u32 kind, kept, keeps;
	struct exs_rcv *head = exs_rcv_head(&f.e);
	struct exs_rcv before = head ? *head : (struct exs_rcv){ 0 };
	u32 room = f.e.ring - f.e.ring_used - f.e.ring_held - f.e.ring_freed;

	u32 used_before = f.e.used + f.e.freed;

	/* With credits: a kind and some of them. */
	if (exs_imm_credited(imm))
		imm = 3u << 30 | (mark >> 2 & 3) << 28 | (mark >> 4) << 20 | (len & EXS_IMM_CREDITED_MAX);
	kind = exs_imm_kind(imm);
	len = exs_imm_len(imm) * exs_imm_count(imm);
	keeps = exs_engine_keeps(&f.e, imm);
	if (exs_engine_rx_imm(&f.e, imm))
		return false;
	f.peer_owes -= min_t(u32, f.peer_owes, exs_imm_credits(imm));
	kept = take_kept();
	MUST(f.stream || kept == keeps);
	if (f.stream)
		room -= used_before;
	if (kind == EXS_IMM_INDIRECT || kind == (f.stream ? EXS_IMM_MORE : EXS_IMM_MANY)) {
		MUST(len && len <= room);
		return true;
	}
	MUST(!kept && head && before.flags & EXS_RCV_ADVERTISED);
	MUST(len <= before.window - (before.filled - before.base));
	MUST(head->filled == before.filled + len);
	return true;
}

static bool step(void)
{
	switch (byte() % 16) {
	case 0:
		do_send();
		break;
	case 1:
	case 2:
		do_recv();
		break;
	case 3:
		do_cancel();
		break;
	case 4:
		do_read();
		break;
	case 5:
		do_copy();
		break;
	case 6:
	case 7:
		do_transmit();
		break;
	case 8:
	case 9:
		exs_engine_reposted(&f.e);
		break;
	case 10:
		if (byte() > 230)
			exs_engine_shutdown(&f.e);
		else if (byte() > 230)
			exs_engine_resize(&f.e, byte() * 5);
		else if (f.e.ring_wanted && byte() > 250)
			exs_engine_ring_refused(&f.e);
		else if (f.e.ring_wanted)
			exs_engine_ring_ready(&f.e, 1 + byte());
		break;
	case 11:
	case 12:
		return rx_write();
	default:
		return rx_message();
	}
	return true;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	in = data;
	in_left = size;
	start();
	while (in_left) {
		bool ok = step();

		take_done();
		if (!ok)
			break;
		check_engine();
	}
	fail();
	return 0;
}
