// SPDX-License-Identifier: GPL-2.0
/* Scenarios as text. */
#include <stdlib.h>

#include "world.h"

struct scenario scenario;

/*
 * A receive: D may be advertised, N not, R a plain recv(); W if WAITALL; its
 * length; /n for the largest window. "DW4/2", "R1". Or F, for an announced message.
 */
static bool parse_recv(struct side_plan *plan, const char **s)
{
	u32 i = plan->nrecvs++;

	if (i >= OPS_MAX)
		return false;
	switch (*(*s)++) {
	case 'D':
		plan->recv[i].flags = EXS_RCV_DIRECT;
		break;
	case 'N':
		break;
	case 'R':
		plan->recv[i].flags = EXS_RCV_READER;
		break;
	case 'F':
		plan->recv[i].flags = EXS_RCV_FETCH;
		return true;
	default:
		return false;
	}
	if (**s == 'W') {
		plan->recv[i].flags |= EXS_RCV_WAITALL;
		(*s)++;
	}
	plan->recv[i].len = strtoul(*s, (char **)s, 10);
	plan->recv[i].window = plan->recv[i].len;
	if (**s == '/') {
		(*s)++;
		plan->recv[i].window = strtoul(*s, (char **)s, 10);
	}
	return plan->recv[i].len <= BUF_MAX;
}

static bool parse_send(struct side_plan *plan, const char **s)
{
	if (plan->nsends >= OPS_MAX)
		return false;
	plan->send_len[plan->nsends++] = strtoul(*s, (char **)s, 10);
	return true;
}

static bool parse_size(struct side_plan *plan, const char **s)
{
	if (plan->nsizes >= OPS_MAX)
		return false;
	plan->size[plan->nsizes++] = strtoul(*s, (char **)s, 10);
	return true;
}

/* Letters for the policy's choices; "-" for none. */
static bool parse_choice(struct side_plan *plan, const char **s)
{
	static const char letters[] = "WALGT-";
	static const u32 bits[] = { EXS_CHOICE_WAIT, EXS_CHOICE_ASK, EXS_CHOICE_LEAVE,
				    EXS_CHOICE_GUESS, EXS_CHOICE_GATHER, 0 };
	const char *letter;
	u32 choice = 0;

	if (plan->nchoices >= OPS_MAX)
		return false;
	for (; **s && (letter = strchr(letters, **s)); (*s)++)
		choice |= bits[letter - letters];
	plan->choice[plan->nchoices++] = choice;
	return !**s || **s == ',' || **s == ' ';
}

static bool parse_list(struct side_plan *plan, const char **s,
		       bool (*one)(struct side_plan *plan, const char **s))
{
	while (**s && **s != ' ') {
		if (!one(plan, s))
			return false;
		if (**s == ',')
			(*s)++;
	}
	return true;
}

static bool starts(const char **s, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*s, word, len))
		return false;
	*s += len;
	return true;
}

static bool parse_side(struct side_plan *plan, const char **s)
{
	if (starts(s, "send="))
		return parse_list(plan, s, parse_send);
	if (starts(s, "recv="))
		return parse_list(plan, s, parse_recv);
	if (starts(s, "credits="))
		return parse_list(plan, s, parse_size);
	if (starts(s, "choices="))
		return parse_list(plan, s, parse_choice);
	if (starts(s, "cancel="))
		plan->cancels = strtoul(*s, (char **)s, 10);
	else if (starts(s, "unsend="))
		plan->send_cancels = strtoul(*s, (char **)s, 10);
	else if (starts(s, "fin"))
		plan->fin = true;
	else
		return false;
	return true;
}

static bool parse_word(struct scenario *sc, const char **s)
{
	const struct {
		const char *name;
		u32 *value;
	} numbers[] = {
		{ "ring=", &sc->ring }, { "credits=", &sc->credits },
		{ "space=", &sc->eager_space }, { "eager=", &sc->eager_max },
		{ "channel=", &sc->channel }, { "piece=", &sc->piece },
		{ "adverts=", &sc->adverts }, { "most=", &sc->ring_max },
		{ "overhead=", &sc->ring_overhead },
	};
	u32 i;

	for (i = 0; i < COUNT(numbers); i++) {
		if (starts(s, numbers[i].name)) {
			*numbers[i].value = strtoul(*s, (char **)s, 10);
			return true;
		}
	}
	if (starts(s, "a."))
		return parse_side(&sc->side[0], s);
	if (starts(s, "b."))
		return parse_side(&sc->side[1], s);
	if (starts(s, "seqpacket"))
		sc->seqpacket = true;
	else if (starts(s, "prompt"))
		sc->prompt_tx = true;
	else if (starts(s, "slowcopy"))
		sc->atomic_copy = false;
	else if (starts(s, "confirm"))
		sc->confirm = true;
	else if (starts(s, "invalidate"))
		sc->invalidate = true;
	else if (starts(s, "asks"))
		sc->asks = true;
	else if (starts(s, "unasked"))
		sc->unasked = true;
	else if (starts(s, "holds"))
		sc->holds = true;
	else if (starts(s, "eagerly"))
		sc->eagerly = true;
	else
		return false;
	return true;
}

/*
 * Words: seqpacket, prompt, slowcopy, confirm, invalidate, asks, unasked, holds, eagerly, ring=, credits=,
 * space=, eager=, channel=, piece=, adverts=, most= and overhead= (of messages in the ring); of side a or b:
 * a.send=1,2 a.recv=D2,NW3 a.cancel=1 a.unsend=1 a.credits=6,4 a.choices=WA,G a.fin.
 */
int scenario_parse(struct scenario *sc, const char *text)
{
	const char *s = text;

	memset(sc, 0, sizeof(*sc));
	sc->ring = 2;
	sc->credits = 500;
	sc->eager_space = 500;
	sc->eager_max = 1;
	sc->channel = 4;
	sc->piece = 100000;
	sc->adverts = 4;
	sc->atomic_copy = true;
	while (*s) {
		if (*s == ' ')
			s++;
		else if (!parse_word(sc, &s))
			return -1;
	}
	if (sc->eagerly && !sc->seqpacket && sc->eager_space > RING_BUF)
		return -1;
	if (sc->ring > RING_BUF || sc->channel > CHANNEL_MAX)
		return -1;
	/* It is by credits that FIN is confirmed. */
	if (sc->confirm && sc->credits >= CREDITS_MANY)
		return -1;
	if ((sc->side[0].nsizes || sc->side[1].nsizes) && sc->credits >= CREDITS_MANY)
		return -1;
	return 0;
}
