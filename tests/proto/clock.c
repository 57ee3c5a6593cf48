// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

#define SEND_SLOTS	64
#define CREDITS		16
#define CREDITS_MAX	64u
#define DIRECT_MIN	4096
#define KEPT_MAX	8192
#define EAGER_STREAM	2048
#define EAGER_MESSAGES	(64u * EXS_WIRE_BUF_LEN)
#define PIECE		(256u << 10)

enum event_kind { ARRIVES, ACKED, SEND, RECV };

struct event {
	u64 at, order;
	enum event_kind kind;
	u32 host, op;
	struct exs_tx *tx;
};

/* A message that no receive took; @m.space: it is in the ring. */
struct kept {
	u32 len;
	struct exs_in_ring m;
};

/* Work requests that are posted, and not begun. */
struct posted {
	struct exs_tx *tx;
	bool fence;
};

struct host {
	struct exs_engine e;
	struct exs_theirs theirs;
	struct exs_snd send[CLOCK_OPS];
	struct exs_rcv recv[CLOCK_OPS];
	bool queued[CLOCK_OPS];	/* the receive is with the engine    */
	u64 busy_until;		/* the processor                     */
	u64 link_until;
	u64 alarm;		/* what the engine asked for, or 0   */
	struct posted queue[SEND_SLOTS]; /* of sends, a circle       */
	u32 first, queued_txs;
	u32 in_flight;		/* begun, or in that queue           */
	u32 adverts;		/* of those                          */
	u64 outstanding;
	struct kept kept[KEPT_MAX]; /* a circle                      */
	u32 first_kept, nkept;
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
	struct { u64 now, got, direct, adverts, used, eager, ring; } mark;
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

static u64 copying(const struct clock *c, u64 len)
{
	return c->costs.copy * len / 1024;
}

/* Return: the processor's work to give it the oldest kept message. */
static u64 recv_kept(struct clock *c, struct host *h, struct exs_rcv *rcv)
{
	struct kept *kept = &h->kept[h->first_kept++ % KEPT_MAX];

	h->nkept--;
	rcv->filled = kept->len;
	if (kept->m.space) {
		exs_engine_reading(&h->e);
		exs_engine_read(&h->e, kept->m.space);
	} else {
		exs_engine_unqueued(&h->e, kept->len);
	}
	exs_engine_recv_kept(&h->e, rcv);
	return copying(c, kept->len);
}

/* As net.exs.direct_min says, which no message is too short for that may need an advert. */
static bool is_worth_a_key(const struct clock *c)
{
	if (c->way != CLOCK_POLICY)
		return c->way == CLOCK_DIRECT;
	return c->load.recv_len >= (c->load.messages ? EXS_WIRE_DATA_MAX + 1 : DIRECT_MIN);
}

static u64 post_recv(struct clock *c, struct host *h, u32 i)
{
	struct exs_rcv *rcv = &h->recv[i];

	if (h->queued[i] || i >= c->load.recvs)
		return 0;
	*rcv = (struct exs_rcv) {
		.len = c->load.recv_len, .max_window = c->load.recv_len, .max_segs = 1,
		.flags = c->load.recv_flags & (is_worth_a_key(c) ? ~0 : ~EXS_RCV_DIRECT),
	};
	h->queued[i] = true;
	if (h->nkept)
		return recv_kept(c, h, rcv);
	exs_engine_recv(&h->e, rcv);
	return 0;
}

static void keep(struct host *h, u32 len, const struct exs_in_ring *m)
{
	if (h->nkept == KEPT_MAX)
		abort();
	h->kept[(h->first_kept + h->nkept++) % KEPT_MAX] = (struct kept) { len, *m };
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

/* Requests that the fences let pass go onto the link. */
static void begin(struct clock *c, struct host *h, u64 now)
{
	while (h->queued_txs) {
		struct posted *p = &h->queue[h->first % SEND_SLOTS];

		if (p->fence && h->in_flight > h->queued_txs)
			break;
		h->link_until = max(now, h->link_until) + c->costs.wire * (p->tx->len + 64) / 1024;
		at(c, h->link_until + c->costs.latency, ARRIVES, 1 - (h - c->host), 0, p->tx);
		h->first++;
		h->queued_txs--;
	}
}

static void send_ended(struct clock *c, struct host *h, const struct exs_tx *tx, u64 now)
{
	if (tx->snd_done)
		at(c, now + c->costs.wake + c->load.think, SEND, h - c->host, tx->snd - h->send, NULL);
}

/* A piece that goes with the next send's costs nothing by itself. */
static u64 packet(const struct clock *c, const struct exs_tx *tx)
{
	bool joined = tx->kind == EXS_TX_WRITE && tx->snd_done && !tx->last;

	return joined ? 0 : c->costs.packet;
}

/* Return: the processor's work for it. @run: adverts of this run. */
static u64 transmit(struct clock *c, struct host *h, struct exs_tx *tx, u64 now, u32 *run)
{
	bool advert = tx->kind == EXS_TX_ADVERT;
	u64 cost = packet(c, tx) + (advert ? c->costs.key : 0);

	fill_segs(&h->e, tx);
	/* The registrations of a run are in one place. */
	h->queue[(h->first + h->queued_txs++) % SEND_SLOTS] = (struct posted) {
		.tx = tx, .fence = advert && c->costs.fence && !*run,
	};
	*run += advert;
	h->adverts += advert;
	h->in_flight++;
	h->outstanding += tx->len;
	begin(c, h, now + cost);
	if (tx->kind != EXS_TX_EAGER)
		return cost;
	/* Its bytes are copied. */
	cost += copying(c, tx->len);
	send_ended(c, h, tx, now + cost);
	return cost;
}

static u64 copy_ring(struct clock *c, struct host *h)
{
	struct exs_copy copy;
	u64 cost = 0;

	while (exs_engine_next_copy(&h->e, &copy)) {
		cost += copying(c, copy.len);
		exs_engine_copied(&h->e, &copy);
	}
	return cost;
}

static u64 transmit_all(struct clock *c, struct host *h, u64 now)
{
	struct exs_tx *tx = calloc(1, sizeof(*tx));
	u64 cost = 0;
	u32 run = 0;

	exs_engine_clock(&h->e, now, h->outstanding);
	exs_engine_hold_adverts(&h->e, c->costs.fence && h->adverts);
	while (h->in_flight < SEND_SLOTS && exs_engine_next_tx(&h->e, PIECE, tx)) {
		cost += transmit(c, h, tx, now + cost, &run);
		tx = calloc(1, sizeof(*tx));
	}
	free(tx);
	return cost;
}

/* A host's work after each event: run the connection. */
static void run(struct clock *c, struct host *h, u64 now)
{
	if (h->e.ring_wanted && c->way != CLOCK_DIRECT)
		exs_engine_ring_ready(&h->e, c->ring);
	else if (h->e.ring_wanted && c->load.messages)
		exs_engine_ring_refused(&h->e);
	if (exs_engine_wants_credits(&h->e))
		exs_engine_resize(&h->e, min(2 * exs_engine_credits(&h->e), CREDITS_MAX));
	h->e.credits_wanted = false;
	now += copy_ring(c, h);
	recvs_ended(c, h, now);
	now += transmit_all(c, h, now);
	h->busy_until = now;
	h->alarm = exs_engine_alarm(&h->e);
}

/* A message has come: to a receive, or to be kept. Return: the processor's work. */
static u64 took(struct clock *c, struct host *h, const struct exs_tx *tx, const struct exs_rcv *rcv)
{
	static const struct exs_in_ring nowhere;
	struct exs_in_ring m;

	if (!c->load.messages)
		return 0;
	while (exs_engine_next_kept(&h->e, &m))
		keep(h, m.len, &m);
	if (tx->kind != EXS_TX_EAGER)
		return 0;
	if (!rcv)
		keep(h, tx->len, &nowhere);
	return rcv ? copying(c, tx->len) : 0;
}

static u64 arrives(struct clock *c, struct host *h, struct exs_tx *tx)
{
	struct exs_rcv *rcv = NULL;
	u64 cost = packet(c, tx);
	int err = 0;

	tx->msg.len = tx->kind == EXS_TX_EAGER ? tx->len : tx->msg.len;
	if (tx->kind == EXS_TX_WRITE)
		err = tx->last ? exs_engine_rx_imm(&h->e, tx->imm) : 0;
	else
		err = exs_engine_rx_msg(&h->e, &tx->msg, &rcv);
	if (tx->kind != EXS_TX_WRITE || tx->last)
		exs_engine_reposted(&h->e);
	if (err) {
		printf("FAIL clock: violation of the protocol, %d\n", err);
		exit(1);
	}
	cost += took(c, h, tx, rcv);
	at(c, c->now + c->costs.latency, ACKED, 1 - (h - c->host), 0, tx);
	return cost;
}

static void acked(struct clock *c, struct host *h, struct exs_tx *tx)
{
	h->in_flight--;
	h->adverts -= tx->kind == EXS_TX_ADVERT;
	h->outstanding -= tx->len;
	if (tx->kind == EXS_TX_WRITE)
		send_ended(c, h, tx, c->now);
	begin(c, h, c->now);
	free(tx);
}

static u64 handle(struct clock *c, struct host *h, const struct event *ev)
{
	switch (ev->kind) {
	case ARRIVES:
		return arrives(c, h, ev->tx);
	case ACKED:
		acked(c, h, ev->tx);
		break;
	case SEND:
		post_send(c, h, ev->op);
		break;
	case RECV:
		return post_recv(c, h, ev->op);
	}
	return 0;
}

/* The first alarm before the next event; NULL if none is due by @end. */
static struct host *next_alarm(struct clock *c, u64 end)
{
	struct host *h, *first = NULL;

	if (c->nevents)
		end = min(end, c->heap[0].at);
	for (h = c->host; h < c->host + CLOCK_HOSTS; h++) {
		if (!h->alarm || max(h->alarm, h->busy_until) > end)
			continue;
		end = max(h->alarm, h->busy_until);
		first = h;
	}
	return first;
}

static void wake(struct clock *c, struct host *h)
{
	c->now = max(h->alarm, h->busy_until);
	exs_engine_clock(&h->e, c->now, h->outstanding);
	run(c, h, c->now);
}

static void next_event(struct clock *c)
{
	struct event ev = heap_get(c);
	struct host *h = &c->host[ev.host];

	if (h->busy_until > ev.at) {
		ev.at = h->busy_until;	/* in its old order */
		heap_put(c, ev);
		return;
	}
	c->now = ev.at;
	exs_engine_clock(&h->e, ev.at, h->outstanding);
	run(c, h, ev.at + handle(c, h, &ev));
}

void clock_run(struct clock *c, u64 ns)
{
	u64 end = c->now + ns;
	struct host *h;

	for (;;) {
		h = next_alarm(c, end);
		if (h)
			wake(c, h);
		else if (c->nevents && c->heap[0].at <= end)
			next_event(c);
		else
			break;
	}
	c->now = end;
}

/* ---- the whole ---- */

static void init_host(struct clock *c, struct host *h)
{
	bool messages = c->load.messages;
	struct exs_engine_config config = {
		.ours = {
			.socktype = messages ? EXS_WIRE_SEQPACKET : EXS_WIRE_STREAM, .credits = CREDITS,
			.max_adverts = EXS_ADVERTS_MAX, .max_segs = EXS_HELD_SEGS_MAX,
			.recv_len = EXS_WIRE_BUF_LEN,
			.eager_space = messages ? EAGER_MESSAGES : EAGER_STREAM,
			.features = c->way == CLOCK_DIRECT ? 0 : EXS_WIRE_F_STREAM_EAGER |
				    (messages ? EXS_WIRE_F_MESSAGE_RING | EXS_WIRE_F_ASK |
						EXS_WIRE_F_MANY : 0),
		},
		.eager_max = c->way == CLOCK_DIRECT ? 0 : EXS_WIRE_DATA_MAX,
		.ring_max = EXS_RING_MESSAGE_MAX, .ring_overhead = EXS_EAGER_OVERHEAD,
	};

	config.peer = config.ours;
	exs_engine_init(&h->e, &config);
	h->e.theirs = &h->theirs;
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
	c->load.messages = load->messages;
	init_host(c, &c->host[0]);
	init_host(c, &c->host[1]);
	clock_load(c, load);
	return c;
}

/* A count of both hosts together. */
#define BOTH(field) (c->host[0].field + c->host[1].field)

void clock_mark(struct clock *c)
{
	c->mark.now = c->now;
	c->mark.got = BOTH(got);
	c->mark.direct = BOTH(e.stats.direct_bytes);
	c->mark.adverts = BOTH(e.stats.adverts_sent);
	c->mark.used = BOTH(e.stats.direct_writes);
	c->mark.eager = BOTH(e.stats.eager_bytes);
	c->mark.ring = BOTH(e.stats.indirect_bytes);
}

struct clock_result clock_result(const struct clock *c)
{
	struct clock_result r = { .ns = c->now - c->mark.now, .bytes = BOTH(got) - c->mark.got };
	u64 direct = BOTH(e.stats.direct_bytes) - c->mark.direct;
	u64 used = BOTH(e.stats.direct_writes) - c->mark.used;

	r.rate = r.bytes * 1000.0 / r.ns;
	r.direct = r.bytes ? min(1.0, (double)direct / r.bytes) : 0;
	r.adverts = BOTH(e.stats.adverts_sent) - c->mark.adverts;
	r.eager = BOTH(e.stats.eager_bytes) - c->mark.eager;
	r.ring = BOTH(e.stats.indirect_bytes) - c->mark.ring;
	used += BOTH(e.adverts_out);	/* They may still be used. */
	r.unused = r.adverts > used ? 1 - (double)used / r.adverts : 0;
	return r;
}

struct exs_engine *clock_engine(struct clock *c, u32 host)
{
	return &c->host[host].e;
}

void clock_end(struct clock *c)
{
	u32 k;

	while (c->nevents) {
		struct event ev = heap_get(c);

		free(ev.tx);
	}
	for (k = 0; k < CLOCK_HOSTS; k++)
		for (; c->host[k].queued_txs; c->host[k].queued_txs--)
			free(c->host[k].queue[c->host[k].first++ % SEND_SLOTS].tx);
	free(c->heap);
	free(c);
}
