// SPDX-License-Identifier: GPL-2.0
/*
 * Direct or through the ring: a stream's choices where its rules (stream.c) allow several.
 * Nothing here can break a connection: the model tries every choice.
 *
 * The sender chooses, by the recent cost of either way: time while sends were outstanding,
 * per byte.
 *
 *  - When a direct phase has used all its adverts, it waits for the next one. The longest
 *    wait is the time that direct transfers have saved in this phase, compared with the
 *    ring, plus 1/32 of the ring's time. So a receiver that is a little late does not end
 *    the phase, one that is often late soon does, and no case is much worse than the ring.
 *  - The ring's cost is forgotten, and so tried again, after direct transfers have waited
 *    much of the time for long.
 *  - An indirect phase stops now and then, and requests an advert. That costs a round trip.
 *    It is repeated only when this is little compared with the time in between, and less
 *    often with each direct phase that ends early.
 *
 * In an indirect phase the receiver advertises on request. Also, when its ring is empty, it
 * may guess that nothing is in flight, as between two requests of a program. A wrong guess
 * costs an advert: after each it lets twice as many transfers pass.
 */
#include <linux/math64.h>

#include "private.h"

#define WORTH_ASKING	4096	/* bytes of a send                           */
#define REST_FACTOR	32	/* how much longer than a stop everything else takes */
#define REST_EXP_MAX	3	/* doublings of it, at most                  */
/* After this many eager messages in a row the next one will hardly need an advert. */
#define EAGER_ROW_MAX	8
#define GUESS_EXP_MAX	10
#define EXPLORE_FACTOR	40
#define EXPLORE_EXP_MAX	6
#define LONG_WAIT	2000000	/* ns, or 16 round trips                     */
#define LONG_TRIP	100000000 /* ns, at the most, until it is measured   */
#define SMALL		65536	/* bytes of a transfer                       */
#define TRY_AFTER	(64 << 20) /* bytes of small transfers               */
#define MEMORY_RINGS	16	/* then they count half                      */

/* ---- sender ---- */

static void way_forget(struct exs_way *way)
{
	way->ns = 0;
	way->bytes = 0;
}

/* Enough for a decision. */
static bool is_much(const struct exs_engine *e, u64 ns, u64 bytes)
{
	if (bytes >= 4 * (u64)e->peer_ring)
		return true;
	return bytes && ns >= max(e->policy.took * 16, (u64)LONG_WAIT);
}

/* Nanoseconds that the ring takes for @bytes; 0: not known. */
static u64 ring_takes(const struct exs_engine *e, u64 bytes)
{
	const struct exs_way *ring = &e->policy.ring;

	if (!is_much(e, ring->ns, ring->bytes) || ring->bytes < 1024)
		return 0;
	return div64_u64(ring->ns, ring->bytes >> 10) * bytes >> 10;
}

/* Outstanding bytes still need time. */
static void way_age(const struct exs_engine *e, struct exs_way *way)
{
	u64 outstanding = min(e->policy.outstanding, way->bytes);

	if (way->bytes - outstanding < (u64)e->peer_ring * MEMORY_RINGS)
		return;
	way->ns /= 2;
	way->bytes -= (way->bytes - outstanding) / 2;
}

static struct exs_way *way_now(struct exs_engine *e)
{
	return e->ps & 1 ? &e->policy.ring : &e->policy.direct;
}

static u64 longest_wait(const struct exs_policy *p)
{
	return max((u64)LONG_WAIT, 16 * p->round_trip);
}

/* Whether the present traffic is typical: the first ringful goes without waiting for space. */
static bool is_typical(const struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;

	if (!(e->ps & 1))
		return true;
	return e->peer_ring && is_much(e, p->now - p->phase_at, 2 * p->in_phase);
}

void exs_engine_clock(struct exs_engine *e, u64 now, u64 outstanding)
{
	struct exs_policy *p = &e->policy;
	/* A sender that stops for long has another reason. */
	u64 passed = now > p->now ? min(now - p->now, longest_wait(p)) : 0;

	if (p->waits)
		p->waited += passed;
	/* While it requests an advert, earlier data is still in flight. */
	if ((p->asking ? p->outstanding : p->busy) && is_typical(e))
		way_now(e)->ns += passed;
	p->now = now;
	p->outstanding = outstanding;
	p->busy = outstanding || !list_empty(&e->sends);
}

/* An early end makes requests rarer. @took: the time of the last request. */
static void rest_after(struct exs_policy *p, u64 lasted)
{
	if (lasted >= p->took * REST_FACTOR)
		p->rest_exp = 0;
	else if (p->rest_exp < REST_EXP_MAX)
		p->rest_exp++;
	p->ask_at = p->now + ((p->took + lasted) * REST_FACTOR << p->rest_exp);
	if (!p->rest_exp)
		p->ask_at = p->now;
}

static void no_longer_waits(struct exs_policy *p)
{
	p->waits = false;
	p->asking = false;
}

void exs_policy_sent(struct exs_engine *e, u32 len)
{
	struct exs_policy *p = &e->policy;
	struct exs_way *way = way_now(e);

	no_longer_waits(p);
	p->outstanding += p->now ? len : 0;
	way->bytes += is_typical(e) ? len : 0;
	p->in_phase += len;
	way_age(e, way);
}

/* Whether more data after these @len bytes is likely to follow at once. */
bool exs_policy_more(const struct exs_engine *e, const struct exs_snd *snd, u32 len)
{
	return e->policy.outstanding || snd->len - snd->taken > len ||
	       !list_is_singular(&e->sends);
}

static void answered(struct exs_policy *p)
{
	p->took = p->now - p->asked_at;
	p->round_trip = p->round_trip ? min(p->round_trip, p->took) : p->took;
}

/* A direct phase begins, with figures of its own. */
void exs_policy_opened(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	p->asked_for = p->asking;
	if (p->asking)
		answered(p);
	no_longer_waits(p);
	way_forget(&p->direct);
	p->explore_at = p->now + ((p->now - p->phase_at) * EXPLORE_FACTOR << p->explore_exp);
	p->phase_at = p->now;
	p->waited = 0;
	p->in_phase = 0;
}

/* A direct phase ends. */
void exs_policy_closed(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	if (p->ring.bytes) {
		rest_after(p, p->now - p->phase_at);
		p->explore_exp = 0;
	} else {
		p->ask_at = p->now;
		if (e->peer_ring && p->explore_exp < EXPLORE_EXP_MAX)
			p->explore_exp++;
	}
	p->in_phase = 0;
	p->phase_at = p->now;
}

static u64 savings(const struct exs_engine *e)
{
	u64 as_ring = ring_takes(e, e->policy.direct.bytes);

	as_ring += as_ring >> 5;
	return as_ring > e->policy.direct.ns ? as_ring - e->policy.direct.ns : 0;
}

static bool ring_is_forgotten(const struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;
	bool small = e->stats.direct_bytes < e->stats.direct_writes * SMALL;

	return p->now > p->explore_at &&
	       ((small && p->in_phase >> p->explore_exp >= TRY_AFTER) ||
		p->waited > (p->now - p->phase_at) >> 4);
}

/* Many small transfers: the ring may be cheaper, although nothing waits. */
static bool would_try_ring(const struct exs_engine *e)
{
	const struct exs_engine_stats *st = &e->stats;

	return !e->policy.ring.bytes && st->direct_bytes < st->direct_writes * SMALL &&
	       e->policy.in_phase >> e->policy.explore_exp >= TRY_AFTER;
}

bool exs_policy_wants_ring(const struct exs_engine *e)
{
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_ASK, &chosen))
		return chosen;
	return would_try_ring(e);
}

bool exs_policy_leaves(struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_LEAVE, &chosen))
		return chosen;
	if (ring_is_forgotten(e))
		way_forget(&e->policy.ring);
	if (!p->ring.bytes)
		return would_try_ring(e);
	return p->in_phase >= (u64)e->peer_ring * MEMORY_RINGS && !savings(e);
}

/* A requested phase shows its value with the second advert. */
static u64 grace(const struct exs_policy *p)
{
	return p->asked_for && !p->waited ? 2 * p->took : 0;
}

/* How long to wait for the next advert. The model's timers end at any time. */
static u64 phase_wait(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_WAIT, &chosen))
		return chosen;
	if (ring_is_forgotten(e))
		way_forget(&p->ring);
	return min(max(savings(e), grace(p)), longest_wait(p));
}

static bool waits_in_phase(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	if (!p->waits) {
		p->waits = true;
		p->wait_until = p->now + phase_wait(e);
	}
	return p->now < p->wait_until || !exs_rule(GIVE_UP);
}

/* Better known with less data left. */
static bool ring_is_known(const struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;
	u64 as_ring = ring_takes(e, p->direct.bytes);

	if (!as_ring || as_ring > 2 * p->direct.ns)
		return ring_takes(e, e->peer_ring);
	return is_much(e, p->ring.ns / 4, p->ring.bytes / 2);
}

/* Whether to stop and request an advert. */
static bool would_ask(const struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;
	const struct exs_snd *snd = exs_snd_next(e);
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_ASK, &chosen))
		return chosen;
	return p->now >= p->ask_at && snd->len - snd->taken >= WORTH_ASKING &&
	       (p->outstanding || snd->taken || !list_is_singular(&e->sends)) &&
	       ring_is_known(e);
}

/* Doubles with each unanswered request, then starts again. */
static u64 patience(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;
	u64 first = 2 * max(p->round_trip, ring_takes(e, e->peer_ring)) << p->patience_exp;

	if (first < longest_wait(p))
		return first;
	p->patience_exp = 0;
	return longest_wait(p);
}

/* In an indirect phase, with something to send. */
bool exs_policy_asks(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	if (p->asking || !would_ask(e))
		return false;
	p->asking = true;
	p->wait_until = p->now + patience(e);
	return true;
}

static bool waits_for_answer(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	if (!p->asking || p->now < p->wait_until || !exs_rule(GIVE_UP))
		return p->asking;
	p->took = p->now - p->asked_at;
	p->ask_at = p->now + REST_FACTOR * p->took;
	p->patience_exp++;
	p->asking = false;
	return false;
}

bool exs_policy_waits(struct exs_engine *e)
{
	return e->ps & 1 ? waits_for_answer(e) : waits_in_phase(e);
}

/* The peer has answered the first request. Its ring may have had to wait for memory. */
void exs_policy_ring(struct exs_engine *e)
{
	struct exs_policy *p = &e->policy;

	if (p->now - p->asked_at > LONG_TRIP)
		p->asked_at = p->now - LONG_TRIP;
	answered(p);
}

/* A first advert came too late, so the next will not come soon. */
void exs_policy_missed(struct exs_engine *e)
{
	e->policy.waits = true;
	e->policy.wait_until = 0;
}

u64 exs_engine_alarm(const struct exs_engine *e)
{
	const struct exs_policy *p = &e->policy;

	if ((!p->waits && !p->asking) || e->held.count || !exs_snd_next(e) || !exs_rule(ALARM))
		return 0;
	return p->wait_until > p->now ? p->wait_until : 0;
}

/* ---- receiver ---- */

/* Called before it voids the adverts that are out. */
void exs_policy_indirect(struct exs_engine *e, bool more)
{
	struct exs_policy *p = &e->policy;

	p->more = more;
	if (p->guess_after)
		p->guess_after--;
	if (e->pr & 1)
		return;
	if (p->used >= e->adverts_out * 8)
		p->guess_exp = 0;
	else if (p->guess_exp < GUESS_EXP_MAX)
		p->guess_exp++;
	p->guess_after = p->guess_exp ? 1u << p->guess_exp : 0;
	p->used = 0;
}

/* Whether a message's receive is advertised before the message is announced. */
bool exs_policy_expects(const struct exs_engine *e)
{
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_GUESS, &chosen))
		return chosen;
	return e->policy.eager_row < EAGER_ROW_MAX;
}

/* A message has come; or @eager of them, which needed no advert. */
void exs_policy_message(struct exs_engine *e, u32 eager)
{
	struct exs_policy *p = &e->policy;

	p->eager_row = eager ? min_t(u32, p->eager_row + eager, EAGER_ROW_MAX) : 0;
}
