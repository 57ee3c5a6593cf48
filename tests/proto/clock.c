// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

#define SEND_SLOTS	64
#define CREDITS		16
#define PIECE		(256u << 10)

enum event_kind { ARRIVES, ACKED, SEND, RECV, ALARM };

struct event {
	u64 at, order;
	enum event_kind kind;
	u32 host, op;
	struct exs_tx *tx;
};

struct host {
	struct exs_engine e;
	struct exs_theirs theirs;
	struct exs_snd send[CLOCK_OPS];
	struct exs_rcv recv[CLOCK_OPS];
	bool queued[CLOCK_OPS];	/* the receive is with the engine    */
	u64 busy_until;		/* the processor                     */
	u64 link_until;
	u64 alarm;
	u32 in_flight;
	u64 outstanding;
	u32 done[CLOCK_OPS], ndone; /* receives to be posted again   */
	u64 got;		/* bytes that the program received   */
};

struct clock {
	struct clock_costs costs;
	struct clock_load load;
	u32 ring;
	enum clock_way way;
	u64 now, order;
	struct host host[CLOCK_HOSTS];
	struct event *heap;
	u32 nevents, room;
	struct { u64 now, got, direct, adverts, used; } mark;
};

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_put(struct clock *c, struct event ev)
{
	u32 i = c->nevents++;

	if (i == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		c->heap = realloc(c->heap, c->room * sizeof(*c->heap));
		if (!c->heap)
			abort();
	}
	for (; i && before(&ev, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = ev;
}

static struct event heap_get(struct clock *c)
{
	struct event first = c->heap[0], last = c->heap[--c->nevents];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < c->nevents) {
		if (child + 1 < c->nevents && before(&c->heap[child + 1], &c->heap[child]))
			child++;
		if (!before(&c->heap[child], &last))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = last;
	return first;
}

static void at(struct clock *c, u64 when, enum event_kind kind, u32 host, u32 op,
	       struct exs_tx *tx)
{
	heap_put(c, (struct event) { when, c->order++, kind, host, op, tx });
}

/* ---- programs ---- */

static void post_recv(struct clock *c, struct host *h, u32 i)
{
	struct exs_rcv *rcv = &h->recv[i];

	if (h->queued[i] || i >= c->load.recvs)
		return;
	*rcv = (struct exs_rcv) {
		.len = c->load.recv_len, .max_window = c->load.recv_len, .max_segs = 1,
		.flags = c->load.recv_flags & (c->way == CLOCK_RING ? ~EXS_RCV_DIRECT : ~0),
	};
	h->queued[i] = true;
	exs_engine_recv(&h->e, rcv);
}

static void post_send(struct clock *c, struct host *h, u32 i)
{
	if (i >= c->load.sends || (h != &c->host[0] && !c->load.both_ways))
		return;
	h->send[i] = (struct exs_snd) { .len = c->load.send_len };
	exs_engine_send(&h->e, &h->send[i]);
}

static void recvs_ended(struct clock *c, struct host *h, u64 now)
{
	struct exs_rcv *rcv;
	u32 i;

	while ((rcv = exs_engine_next_rcv_done(&h->e))) {
		h->got += rcv->filled;
		h->queued[rcv - h->recv] = false;
		h->done[h->ndone++] = rcv - h->recv;
	}
	if (h->ndone < c->load.burst)
		return;
	for (i = 0; i < h->ndone; i++)
		at(c, now + c->costs.wake + c->load.late, RECV, h - c->host, h->done[i], NULL);
	h->ndone = 0;
}

/* ---- hosts ---- */

static void fill_segs(struct exs_engine *e, struct exs_tx *tx)
{
	if (tx->kind != EXS_TX_RING && tx->kind != EXS_TX_ADVERT)
		return;
	tx->msg.nsegs = 1;
	tx->msg.segs[0] = (struct exs_seg) {
		.addr = 1 << 20, .key = 1,
		.len = tx->kind == EXS_TX_RING ? e->ring : tx->rcv->window,
	};
}

/* Return: the processor's work for it. */
static u64 transmit(struct clock *c, struct host *h, struct exs_tx *tx, u64 now)
{
	u64 cost = c->costs.packet + (tx->kind == EXS_TX_ADVERT ? c->costs.key : 0);
	u64 start = max(now + cost, h->link_until);

	fill_segs(&h->e, tx);
	h->link_until = start + c->costs.wire * (tx->len + 64) / 1024;
	h->in_flight++;
	h->outstanding += tx->len;
	at(c, h->link_until + c->costs.latency, ARRIVES, 1 - (h - c->host), 0, tx);
	return cost;
}

static u64 copy_ring(struct clock *c, struct host *h)
{
	struct exs_copy copy;
	u64 cost = 0;

	while (exs_engine_next_copy(&h->e, &copy)) {
		cost += c->costs.copy * copy.len / 1024;
		exs_engine_copied(&h->e, &copy);
	}
	return cost;
}

static u64 transmit_all(struct clock *c, struct host *h, u64 now)
{
	struct exs_tx *tx = calloc(1, sizeof(*tx));
	u64 cost = 0;

	exs_engine_clock(&h->e, now, h->outstanding);
	while (h->in_flight < SEND_SLOTS && exs_engine_next_tx(&h->e, PIECE, tx)) {
		cost += transmit(c, h, tx, now + cost);
		tx = calloc(1, sizeof(*tx));
	}
	free(tx);
	return cost;
}

/* What a host does after each event: run the connection. */
static void run(struct clock *c, struct host *h, u64 now)
{
	u64 alarm;

	if (h->e.ring_wanted && c->way != CLOCK_DIRECT)
		exs_engine_ring_ready(&h->e, c->ring);
	now += copy_ring(c, h);
	recvs_ended(c, h, now);
	now += transmit_all(c, h, now);
	h->busy_until = now;
	alarm = exs_engine_alarm(&h->e);
	if (alarm && alarm != h->alarm)
		at(c, alarm, ALARM, h - c->host, 0, NULL);
	h->alarm = alarm;
}

static void arrives(struct clock *c, struct host *h, struct exs_tx *tx)
{
	struct exs_rcv *eager;
	int err = 0;

	if (tx->kind == EXS_TX_WRITE)
		err = tx->last ? exs_engine_rx_imm(&h->e, tx->imm) : 0;
	else
		err = exs_engine_rx_msg(&h->e, &tx->msg, &eager);
	if (tx->kind != EXS_TX_WRITE || tx->last)
		exs_engine_reposted(&h->e);
	if (err) {
		printf("FAIL clock: violation of the protocol, %d\n", err);
		exit(1);
	}
	at(c, c->now + c->costs.latency, ACKED, 1 - (h - c->host), 0, tx);
}

static void acked(struct clock *c, struct host *h, struct exs_tx *tx)
{
	h->in_flight--;
	h->outstanding -= tx->len;
	if (tx->kind == EXS_TX_WRITE && tx->snd_done)
		at(c, c->now + c->costs.wake + c->load.think, SEND, h - c->host,
		   tx->snd - h->send, NULL);
	free(tx);
}

static u64 handle(struct clock *c, struct host *h, const struct event *ev)
{
	switch (ev->kind) {
	case ARRIVES:
		arrives(c, h, ev->tx);
		return c->costs.packet;
	case ACKED:
		acked(c, h, ev->tx);
		break;
	case SEND:
		post_send(c, h, ev->op);
		break;
	case RECV:
		post_recv(c, h, ev->op);
		break;
	case ALARM:
		h->alarm = 0;
		break;
	}
	return 0;
}

void clock_run(struct clock *c, u64 ns)
{
	u64 end = c->now + ns;

	while (c->nevents && c->heap[0].at <= end) {
		struct event ev = heap_get(c);
		struct host *h = &c->host[ev.host];

		if (h->busy_until > ev.at) {
			ev.at = h->busy_until;	/* in its old order */
			heap_put(c, ev);
			continue;
		}
		c->now = ev.at;
		exs_engine_clock(&h->e, ev.at, h->outstanding);
		run(c, h, ev.at + handle(c, h, &ev));
	}
	c->now = end;
}

/* ---- the whole ---- */

static void init_host(struct clock *c, struct host *h)
{
	struct exs_engine_config config = {
		.ours = {
			.socktype = EXS_WIRE_STREAM, .credits = CREDITS,
			.max_adverts = EXS_ADVERTS_MAX, .max_segs = EXS_HELD_SEGS_MAX,
			.recv_len = EXS_WIRE_BUF_LEN, .eager_space = EXS_WIRE_EAGER_MIN,
		},
	};

	config.peer = config.ours;
	exs_engine_init(&h->e, &config);
	h->e.theirs = &h->theirs;
	(void)c;
}

/* Receives are posted before sends. */
void clock_load(struct clock *c, const struct clock_load *load)
{
	u32 i, k, had_sends = c->load.sends, had_recvs = c->load.recvs;

	c->load = *load;
	for (k = 0; k < CLOCK_HOSTS; k++) {
		for (i = had_recvs; i < load->recvs; i++)
			at(c, c->now, RECV, k, i, NULL);
		for (i = had_sends; i < load->sends; i++)
			at(c, c->now + 10 * US, SEND, k, i, NULL);
	}
}

struct clock *clock_begin(const struct clock_costs *costs, const struct clock_load *load,
			  u32 ring, enum clock_way way)
{
	struct clock *c = calloc(1, sizeof(*c));

	c->costs = *costs;
	c->ring = ring;
	c->way = way;
	c->now = 1;
	init_host(c, &c->host[0]);
	init_host(c, &c->host[1]);
	clock_load(c, load);
	return c;
}

static u64 direct_writes(const struct clock *c)
{
	return c->host[0].e.stats.direct_writes + c->host[1].e.stats.direct_writes;
}

static u64 adverts(const struct clock *c)
{
	return c->host[0].e.stats.adverts_sent + c->host[1].e.stats.adverts_sent;
}

static u64 direct_bytes(const struct clock *c)
{
	return c->host[0].e.stats.direct_bytes + c->host[1].e.stats.direct_bytes;
}

static u64 got(const struct clock *c)
{
	return c->host[0].got + c->host[1].got;
}

/* They may still be used. */
static u64 outstanding_adverts(const struct clock *c)
{
	return c->host[0].e.adverts_out + c->host[1].e.adverts_out;
}

void clock_mark(struct clock *c)
{
	c->mark.now = c->now;
	c->mark.got = got(c);
	c->mark.direct = direct_bytes(c);
	c->mark.adverts = adverts(c);
	c->mark.used = direct_writes(c);
}

struct clock_result clock_result(const struct clock *c)
{
	struct clock_result r = { .ns = c->now - c->mark.now, .bytes = got(c) - c->mark.got };
	u64 direct = direct_bytes(c) - c->mark.direct;
	u64 used = direct_writes(c) - c->mark.used;

	r.rate = r.bytes * 1000.0 / r.ns;
	r.direct = r.bytes ? min(1.0, (double)direct / r.bytes) : 0;
	r.adverts = adverts(c) - c->mark.adverts;
	used += outstanding_adverts(c);
	r.unused = r.adverts > used ? 1 - (double)used / r.adverts : 0;
	return r;
}

struct exs_engine *clock_engine(struct clock *c, u32 host)
{
	return &c->host[host].e;
}

void clock_end(struct clock *c)
{
	while (c->nevents) {
		struct event ev = heap_get(c);

		free(ev.tx);
	}
	free(c->heap);
	free(c);
}
