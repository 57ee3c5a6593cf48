// SPDX-License-Identifier: GPL-2.0
/*
 * Credits: a message is sent only if the peer has a receive posted for it.
 *
 * 1. Every message costs one credit at its receiver: a SEND, and a WRITE that
 *    carries an immediate. The pieces of a transfer before its last cost
 *    nothing; the transfer's credit is spent when it begins.
 * 2. A credit is owed to the peer once the receive is posted again. That never
 *    waits for the application, so credits say nothing about its pace.
 * 3. Every SEND but WRITTEN carries all credits that are owed, and so does every
 *    immediate, WRITTEN's too, that has room for them.
 * 4. Data must leave two credits, control one. Only an explicit CREDIT may use
 *    the last: with it the peer always learns of the credits that it owns.
 * 5. CREDIT is sent when half of our receives are owed, but no less than two:
 *    a CREDIT costs one itself, and at one owed two idle peers would exchange
 *    them for ever.
 * 6. A peer that sends without a credit, or returns more than we spent, breaks
 *    the rules.
 * 7. Credits come back in the order of the messages. So who has FIN's back knows
 *    that all arrived. Where a transport does not tell (config.confirm), a CREDIT
 *    is sent when every receive is posted again after FIN came; once, or two that
 *    have both sent FIN would exchange them for ever.
 * 8. A CREDIT may say that there are more receives from now on: then they are
 *    posted, and the peer has as many credits more. Or fewer: but only credits that
 *    are owed can be kept back, as the peer may be spending the others; they count
 *    as returned.
 *
 * What every message goes through stands in private.h, to be inlined.
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

/* FIN is on its way, and paid for: rule 7. */
void exs_credit_await_fin(struct exs_engine *e)
{
	e->credits.fin_left = e->credits.peer_total - e->credits.have;
}

bool exs_engine_confirmed(const struct exs_engine *e)
{
	return !e->config.confirm || (e->fin_sent && !e->credits.fin_left);
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

/* Rule 8: worth a CREDIT of its own. */
bool exs_credit_resize_due(const struct exs_engine *e)
{
	const struct exs_credits *c = &e->credits;

	if (c->wanted == c->total || !exs_credit_for_control(e))
		return false;
	return c->wanted > c->total || c->owed >= c->total - c->wanted ||
	       !exs_rule(SHRINK_OWED);
}

/* Rule 8: a CREDIT goes. Return: what it says of it. */
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

/* Rule 8: the peer says so. */
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
	c->fin_left -= min(kept, c->fin_left);
	return 0;
}

void exs_engine_greet(struct exs_engine *e)
{
	e->credits.greet = true;
}
