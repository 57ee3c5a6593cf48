// SPDX-License-Identifier: GPL-2.0
/*
 * Credits: a message is sent only if the peer has a receive posted for it.
 *
 * 1. Every message costs one credit at its receiver: a SEND, and a WRITE that
 *    carries an immediate. The pieces of a transfer before its last cost
 *    nothing; the transfer's credit is spent when it begins.
 * 2. A credit is owed to the peer once the receive is posted again. That never
 *    waits for the application, so credits say nothing about its pace.
 * 3. Every SEND except WRITTEN carries all owed credits. So does every immediate that has
 *    room for them, including WRITTEN's.
 * 4. Data must leave two credits, control one. Only an explicit CREDIT may use the last. So
 *    the peer always learns of the credits that it has.
 * 5. CREDIT is sent when a quarter of our receives are owed, but at least half of them or 8,
 *    whichever is less. A CREDIT itself costs one. If one owed credit were enough, two idle
 *    peers would exchange CREDITs for ever. If two are, as with four receives, two peers that
 *    answer each other send a CREDIT with each answer, once one has sent one. With five receives,
 *    so do two peers that answer each other by an advert and a write: these get more
 *    (exs_engine_wants_credits()). But a peer that is far away cannot use credits that are owed and
 *    not sent.
 * 6. A peer that sends without a credit, or returns more than we spent, breaks
 *    the rules.
 * 7. Credits come back in the order of the messages. So when the credit of a transfer, or of
 *    FIN, is back, everything before it has arrived. What else is out then does not matter.
 *    Where a transport does not report arrival (config.confirm), a CREDIT is sent when every
 *    receive is posted again after FIN came. It is sent once, or two sides that have both
 *    sent FIN would exchange CREDITs for ever.
 * 8. A CREDIT may announce more receives: they are posted, and the peer has that many more
 *    credits. Or fewer: only owed credits can be withheld, as the peer may be spending the
 *    others. Withheld credits count as returned.
 * 9. A side reports too few credits if it has two left, so that no data can go, and has
 *    something to send or, before FIN has come, to advertise. It reports this in a CREDIT,
 *    once for each number of credits (EXS_WIRE_F_ASK). Only the sender can know: the receiver
 *    sees the same however long the credits take. The receiver may post more, or not.
 *
 * The short functions that every message goes through are in private.h, to be inlined.
 */
#include "private.h"

void exs_credit_init(struct exs_engine *e)
{
	e->credits.total = e->config.ours.credits;
	e->credits.wanted = e->credits.total;
	e->credits.granted = e->credits.total;
	e->credits.peer_total = e->config.peer.credits;
	e->credits.have = e->credits.peer_total;
}

bool exs_engine_confirmed(const struct exs_engine *e)
{
	return !e->config.confirm || (e->fin_sent && exs_engine_all_arrived(e));
}

/* Rule 7. */
static bool credit_confirms(const struct exs_engine *e)
{
	if (!e->config.confirm || !e->fin_rcvd || !exs_rule(CONFIRM) ||
	    (e->credits.fin_told && exs_rule(CONFIRM_ONCE)))
		return false;
	return e->credits.owed + e->credits.granted == e->credits.total;
}

exs_hot
void exs_engine_reposted(struct exs_engine *e)
{
	if (e->credits.owed + e->credits.granted >= e->credits.total)
		return;
	e->credits.owed++;
	if (!credit_confirms(e))
		return;
	e->credits.fin_told = true;
	e->credits.greet = true;
}

void exs_engine_resize(struct exs_engine *e, u32 n)
{
	n = max_t(u32, n, EXS_WIRE_CREDITS_MIN);
	e->credits.wanted = min_t(u32, n, EXS_WIRE_CREDITS_MAX);
}

/* Rule 8: a CREDIT is sent. Return: the total to announce in it. */
u32 exs_credit_resize(struct exs_engine *e)
{
	struct exs_credits *c = &e->credits;
	u16 kept;

	if (c->wanted == c->total || !exs_credit_for_control(e))
		return 0;
	if (c->wanted > c->total) {
		c->granted += c->wanted - c->total;
		c->total = c->wanted;
		return c->total;
	}
	kept = min_t(u16, c->owed, c->total - c->wanted);
	c->owed -= kept;
	c->total = exs_rule(SHRINK_OWED) ? c->total - kept : c->wanted;
	return kept || !exs_rule(SHRINK_OWED) ? c->total : 0;
}

/* Rule 8: the peer announces a total. */
int exs_credit_resized(struct exs_engine *e, u32 n)
{
	struct exs_credits *c = &e->credits;
	u16 kept;

	if (n < EXS_WIRE_CREDITS_MIN || n > EXS_WIRE_CREDITS_MAX)
		return -EPROTO;
	if (n >= c->peer_total) {
		c->have += n - c->peer_total;
		c->peer_total = n;
		return 0;
	}
	kept = c->peer_total - n;
	if (kept > c->peer_total - c->have)
		return -EPROTO;
	c->peer_total = n;
	c->awaited -= min(kept, c->awaited);
	return 0;
}

/* Rule 9: whether to send a CREDIT for this alone. */
bool exs_credit_ask_due(const struct exs_engine *e)
{
	const struct exs_credits *c = &e->credits;

	if (c->have != EXS_RESERVE_DATA || !exs_engine_has(e, EXS_WIRE_F_ASK) ||
	    (c->asked == c->peer_total && exs_rule(ASK_ONCE)))
		return false;
	return exs_snd_next(e) || (!e->fin_rcvd && exs_rcv_next_advert(e));
}

/* Rule 9: a CREDIT is sent. Return: the number that is too low. */
u32 exs_credit_ask(struct exs_engine *e)
{
	if (!exs_credit_ask_due(e))
		return 0;
	e->credits.asked = e->credits.peer_total;
	return e->credits.asked;
}

/* Rule 9: the peer reports that @n are too few; the number may be out of date. */
int exs_credit_asked(struct exs_engine *e, u32 n)
{
	if (!exs_engine_has(e, EXS_WIRE_F_ASK) || n > EXS_WIRE_CREDITS_MAX)
		return -EPROTO;
	if (n == e->credits.total && e->credits.wanted == n)
		e->credits_wanted = true;
	return 0;
}

void exs_engine_greet(struct exs_engine *e)
{
	e->credits.greet = true;
}
