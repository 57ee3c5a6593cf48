// SPDX-License-Identifier: GPL-2.0
/*
 * The model check: scenarios that must hold under every order of events, and
 * for every rule of the protocol one that must fail without it.
 *
 *	model			all of "make check"
 *	model PART		streams, messages, scenarios or rules only
 *	model [-RULE] SCENARIO...  these; with a trace if one fails
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

/* One scenario for each way to choose the receives: symbols^length of them. */
struct family {
	const char *name;
	const char *symbols[6];
	u32 length;
	const char *rest;
};

static const struct family families[] = {
	{ "stream, three receives", { "D1", "DW2", "DW3/2", "NW2", "R2" }, 3,
	  "ring=2 a.send=1,1,1,1 a.fin b.cancel=1" },
	{ "stream, pieces and slow copies", { "D2", "DW3/1", "N1", "RW2" }, 2,
	  "ring=3 piece=1 slowcopy a.send=2,1,2 a.unsend=1 a.fin b.cancel=2" },
	{ "stream, one advert at a time", { "D1", "DW3", "N2" }, 3,
	  "ring=1 adverts=1 a.send=2,1,1 a.fin b.cancel=2" },
	{ "stream, batched space", { "D1", "DW2", "NW2", "R1" }, 3,
	  "ring=4 channel=3 a.send=3,2,1,1 a.fin b.cancel=1" },
	{ "stream, few credits", { "D1", "DW2", "N1" }, 2,
	  "credits=4 ring=2 a.send=1,1,1 a.fin b.cancel=1" },
	{ "seqpacket, three receives", { "D1", "D3", "N1", "N3" }, 3,
	  "seqpacket space=130 a.send=1,3,1,2 a.fin b.cancel=1" },
	{ "seqpacket, pieces and sends taken back", { "D2", "D0", "N4" }, 3,
	  "seqpacket space=66 piece=1 a.send=2,0,3 a.unsend=1 a.fin b.cancel=2" },
	{ "seqpacket, eager space nearly full", { "D3", "N0", "N3" }, 3,
	  "seqpacket space=130 eager=3 a.send=0,3,0,1 a.unsend=1 a.fin b.cancel=1" },
	{ "seqpacket, few credits", { "D1", "D2", "N2" }, 2,
	  "seqpacket credits=4 space=130 a.send=1,2,1 a.fin b.cancel=1" },
	{ "seqpacket, announced messages fetched", { "F", "D2", "N3" }, 3,
	  "seqpacket space=130 a.send=2,3,2,1 a.unsend=2 a.fin b.cancel=1" },
	{ "stream, any policy of the sender", { "D1", "DW2", "N1" }, 2,
	  "ring=2 a.send=1,1,1 a.choices=WA,LG,W,- b.choices=-,G a.fin b.cancel=1" },
	{ "stream, any policy of the receiver", { "D1", "DW2", "R1" }, 3,
	  "ring=2 a.send=1,1,1,1 a.choices=A,- b.choices=-,G,-" },
	{ "stream, sends gathered", { "D1", "DW2", "D3", "R2" }, 2,
	  "ring=3 a.send=1,1,2,1 a.choices=T,- a.unsend=1 a.fin b.cancel=1" },
	{ "stream, sends gathered, in pieces", { "D3", "DW3/2", "NW3" }, 2,
	  "ring=4 piece=1 slowcopy a.send=1,2,1 a.choices=T a.unsend=1 a.fin" },
	{ "stream, sends gathered, few credits", { "D2", "DW2" }, 2,
	  "invalidate credits=4 prompt ring=2 a.send=1,1,1 a.choices=T a.fin b.cancel=1" },
	{ "stream, timers and few credits", { "D1", "DW2" }, 2,
	  "credits=4 prompt ring=2 a.send=1,1,1 a.choices=WA,WA b.choices=-,G a.fin" },
	{ "seqpacket, any policy of the receiver", { "D1", "D3", "N2" }, 3,
	  "seqpacket space=130 a.send=1,3,2 a.fin b.choices=-,G,- b.cancel=1" },
	{ "stream, adverts held at any time", { "D1", "DW2", "N1" }, 2,
	  "holds ring=2 a.send=1,1,1 a.fin b.cancel=1" },
	{ "stream, adverts held, few credits", { "D1", "DW2" }, 1,
	  "holds credits=4 ring=2 a.send=1,1 b.send=1 a.fin b.fin" },
	{ "seqpacket, adverts held at any time", { "D1", "D3", "N2" }, 3,
	  "holds seqpacket space=130 a.send=1,3,2 a.fin b.cancel=1" },
	{ "stream, FIN confirmed", { "D1", "DW2", "N1" }, 2,
	  "confirm credits=4 ring=2 a.send=1 a.fin b.fin b.cancel=1" },
	{ "stream, more credits and fewer", { "D1", "DW2", "N1" }, 2,
	  "credits=5 prompt ring=2 a.send=1,1 a.fin b.credits=6,4 a.credits=4" },
	{ "stream, more credits if asked for", { "D1", "DW2", "N1" }, 1,
	  "asks credits=4 prompt ring=2 a.send=1,1 a.fin b.credits=5,6" },
	{ "stream, eagerly at first", { "D1", "DW2", "N1", "R2" }, 2,
	  "eagerly space=2 eager=2 ring=2 a.send=1,3,1 a.fin b.cancel=1" },
	{ "stream, eagerly at first, slow copies", { "D2", "DW3/1", "RW2" }, 2,
	  "eagerly space=3 eager=2 ring=2 piece=1 slowcopy a.send=2,1,2 a.unsend=1 a.fin" },
	{ "stream, eagerly at first, any policy", { "D1", "DW2", "N1" }, 2,
	  "eagerly space=2 ring=2 a.send=1,1,1 a.choices=WA,LG,- b.choices=-,G" },
	{ "stream, keys invalidated", { "D1", "DW2", "DW3/2" }, 2,
	  "invalidate ring=2 a.send=1,2,1 a.fin b.cancel=1" },
	{ "seqpacket, keys invalidated", { "D1", "D3", "N2" }, 2,
	  "invalidate seqpacket space=130 a.send=1,3,2 a.fin b.cancel=1" },
	{ "messages in a ring", { "D2", "N1", "N2" }, 3,
	  "seqpacket eager=0 ring=8 most=2 space=130 a.send=2,1,2,2 a.fin b.cancel=1" },
	{ "messages in a ring, slow copies", { "D2", "D3", "N0" }, 3,
	  "seqpacket slowcopy eager=0 ring=8 most=2 piece=1 space=130 a.send=1,2,0,2 a.fin b.cancel=1" },
	{ "messages in a ring, few credits", { "D1", "N2" }, 2,
	  "seqpacket credits=4 eager=0 ring=8 most=1 overhead=1 space=130 a.send=1,1 a.fin b.cancel=1" },
	{ "messages in a ring that is nearly full", { "D2", "N2" }, 3,
	  "seqpacket slowcopy eager=0 ring=8 most=2 channel=3 a.send=2,1,2,2,1,2 a.unsend=1" },
	{ "messages in a ring, joined", { "D2", "N1", "N2" }, 2,
	  "seqpacket eager=0 ring=12 most=2 channel=3 a.send=1,1,2,2 a.choices=T,- a.unsend=1 a.fin b.cancel=1" },
	{ "messages in a ring, joined, slow copies", { "D2", "N2" }, 3,
	  "seqpacket slowcopy eager=1 ring=16 most=2 overhead=1 piece=1 space=130 a.send=2,1,1,1 a.choices=T a.fin" },
	{ "messages in a ring, joined, few credits", { "D1", "N2" }, 2,
	  "seqpacket credits=4 prompt eager=0 ring=16 most=1 overhead=1 a.send=1,1,1 a.choices=T a.fin b.cancel=1" },
	{ "seqpacket, FIN confirmed", { "D1", "D2", "N2" }, 2,
	  "confirm seqpacket credits=4 space=130 a.send=1,2 a.fin b.fin b.cancel=1" },
};

static const char * const scenarios[] = {
	/* Longer. */
	"ring=3 a.send=1,1,1,1,1 b.recv=D1,DW2,NW2,D1 a.fin b.cancel=2",
	"ring=2 a.send=1,1,1,1,1,1 b.recv=DW2,D1,DW3/2,D1 a.fin b.cancel=1",
	"ring=3 a.send=1,2,1,2 b.recv=R2,DW2,R1,D2 a.fin b.cancel=2",
	/* Both directions at once: credits shared with control. */
	"credits=4 prompt a.send=1,1 b.recv=D1,D1 b.send=1,1 a.recv=D1,D1",
	"credits=4 prompt a.send=1,1 b.recv=DW2 b.send=1 a.recv=D1 a.fin b.fin b.cancel=1",
	"credits=5 prompt a.send=1,1 b.recv=D1,D1 b.send=1 a.recv=DW2",
	"confirm credits=4 prompt a.send=1,1 b.recv=D1 b.send=1,1 a.recv=D1 a.fin b.fin",
	"credits=5 prompt a.send=1,1 b.recv=D1 b.send=1 a.recv=D1 a.credits=4 b.credits=4",
	"confirm credits=6 prompt a.send=1 b.recv=D1 a.fin b.fin a.credits=4 b.credits=7,4",
	"asks credits=4 prompt a.send=1,1 b.send=1 a.recv=D1 a.credits=5 b.credits=6",
	"asks unasked credits=4 prompt a.send=1,1 b.send=1 a.recv=D1 a.credits=5 b.credits=6",
	"asks seqpacket credits=4 space=130 a.send=1,1 b.recv=D1 b.send=1 b.credits=6 a.credits=5",
	"eagerly credits=4 prompt space=2 a.send=1,1 b.recv=N1,D1 b.send=1 a.recv=N1",
	"eagerly prompt space=1 a.send=1,1,1 b.recv=D1,N2 b.send=1,1,1 a.recv=N1,DW2",
	"eagerly credits=4 prompt space=1 a.send=1,2 b.recv=R1,DW2 a.fin b.cancel=1",
	"prompt ring=1 a.send=1,1,1 b.recv=D1,D1 b.send=1,1,1 a.recv=D1,DW2",
	"seqpacket credits=4 prompt space=130 a.send=1,2 b.recv=D2,N2 b.send=2,1 a.recv=N2,D1",
	"seqpacket prompt space=130 a.send=1,2,1 b.recv=D2,N2 b.send=2 a.recv=N2 b.cancel=1 a.fin",
	"seqpacket space=130 a.send=1,3,1,2,1 b.recv=D1,D3,N2,D1 a.fin b.cancel=2",
};

struct rule {
	u32 rule;
	const char *name, *scenario;
};

#define RULE(rule, scenario) { EXS_RULE_##rule, #rule, scenario }
#define COMPARE_PHASE EXS_RULES	/* done by the world, not by a rule that is disabled */

static const struct rule rules[] = {
	RULE(RESERVE,
	     "credits=4 prompt a.send=1,1 b.recv=D1 b.send=1,1 a.recv=D1"),
	RULE(RESERVE_CONTROL,
	     "credits=4 prompt a.send=1,1 b.recv=D1 b.send=1,1 a.recv=D1"),
	RULE(CREDIT_BATCH, "credits=4 a.send=1 b.recv=D1"),
	RULE(CONFIRM, "confirm credits=4 a.send=1 a.fin"),
	RULE(CONFIRM_ONCE, "confirm credits=4 a.fin b.fin"),
	RULE(SHRINK_OWED, "credits=5 a.send=1 b.recv=D1 b.credits=4"),
	RULE(ASK_ONCE, "asks credits=4 ring=4 a.send=1,1,1 b.recv=D1"),
	RULE(USED_UP, "invalidate a.send=1,1 b.recv=DW2"),
	RULE(POSITION, "a.send=1,1,1 b.recv=D1,D1"),
	RULE(WHOLE_PHASE, "a.send=1,1,1 b.recv=D1,D1,D1"),
	RULE(SPACE_ALWAYS, "ring=4 a.send=1,1,1 b.recv=D1,D1,D1"),
	RULE(SWITCH, "a.send=1,1 b.recv=D1,D1"),
	RULE(RING_FULL, "a.send=1,1,1"),
	RULE(CONTIGUOUS, "a.send=1,2 b.recv=N1"),
	RULE(ONE_STEP, "a.send=1 b.recv=D1,D1 b.cancel=1"),
	RULE(FIN_ANSWERS, "b.recv=D1 a.fin b.cancel=1"),
	RULE(FIN_LAST, "a.send=1 a.fin"),
	RULE(EMPTY_RING, "a.send=1,1 b.recv=D1,D1"),
	RULE(INDIRECT_VOIDS, "a.send=1,1,1 b.recv=DW3,D1"),
	RULE(ANSWER_PHASE, "a.send=1,1,1 b.recv=D1,D1,D1 b.cancel=1"),
	RULE(SPACE_ALONE, "a.send=1,1,1 b.recv=R2,R1"),
	RULE(WINDOWS, "a.send=1,1 b.recv=DW2/1,D1"),
	RULE(RING_FIRST, "a.send=1 b.recv=N1 a.fin"),
	RULE(EAGER_ENDS, "eagerly space=1 a.send=1,1,1"),
	RULE(EAGER_FIRST, "eagerly space=1 a.send=1,1 b.recv=N2"),
	RULE(RING_ANEW, "eagerly space=1 a.send=1,1,1,1 b.recv=R1,R1,R1"),
	RULE(ALARM, "a.send=1,1 b.recv=D1 a.choices=W"),
	RULE(GIVE_UP, "a.send=1,1 b.recv=D1 a.choices=W"),
	RULE(GIVE_UP, "a.send=1,1 a.choices=A"),
	RULE(PREFIX, "a.send=1,1 b.recv=R1,D1"),
	RULE(REVOKE, "a.send=1 b.recv=D1 b.cancel=1"),
	RULE(ONE_REVOKE, "a.send=1,1,1 b.recv=D1,D1,D1 b.cancel=2"),
	{ COMPARE_PHASE, "an INDIRECT's phase is never compared", "a.send=1,1 b.recv=D1,D1" },
	RULE(QUIET, "seqpacket a.send=2,2 b.recv=D2,D2,D2 b.cancel=1"),
	RULE(STALE_ADVERT, "seqpacket a.send=1,2 b.recv=D2,D2"),
	RULE(EAGER_DROPS, "seqpacket a.send=1,2 b.recv=D2,D2"),
	RULE(EAGER_VOIDS, "seqpacket a.send=1,2 b.recv=D2,D2"),
	RULE(REVOKE, "seqpacket a.send=2,2 b.recv=D2,D2 b.cancel=1"),
	RULE(FIN_ANSWERS, "seqpacket b.recv=D1 a.fin b.cancel=1"),
	RULE(FIN_LAST, "seqpacket a.send=2 a.fin"),
	RULE(PREFIX, "seqpacket a.send=2,2 b.recv=N2,D2"),
	RULE(ANNOUNCED, "seqpacket a.send=2 b.recv=N2"),
	RULE(REQUEST, "seqpacket a.send=2 b.recv=N2"),
	RULE(WITHDRAW, "seqpacket a.send=2,1 a.unsend=1"),
	RULE(TAKEN_BACK, "seqpacket a.send=2,3 a.unsend=1 b.recv=F"),
	RULE(ARRIVED, "seqpacket a.send=2 b.recv=N2"),
	RULE(EAGER_FULL, "seqpacket space=130 a.send=1,1,1"),
	RULE(RING_FIRST, "seqpacket slowcopy eager=0 ring=8 most=2 a.send=2,2 b.recv=N2,N2,N2 a.fin"),
	RULE(RING_WHOLE, "seqpacket eager=0 ring=8 most=2 a.send=2,2,2,2,2,2"),
	RULE(RING_SKIP, "seqpacket eager=0 ring=8 most=2 a.send=2,1,2,2,2 b.recv=N2,N2"),
	RULE(RING_READERS, "seqpacket slowcopy eager=0 ring=8 most=2 a.send=2,2,2,2,2,2,2,2 b.recv=N2,N2,N2,N2,N2"),
	RULE(RING_BATCH, "seqpacket eager=0 ring=8 most=2 a.send=2,2,2,2,2,2 b.recv=N2,N2,N2,N2,N2,N2"),
	RULE(RING_ORDER, "seqpacket slowcopy eager=0 ring=8 most=2 a.send=2,2,0 b.recv=N2,N2,N2"),
	RULE(MANY_SPACE, "seqpacket eager=0 ring=12 most=3 a.send=1,1,1,3,3,3,3 a.choices=T b.recv=N1,N1"),
	RULE(MANY_ADVERTS, "seqpacket eager=0 ring=16 most=2 a.send=2,2,2 a.choices=T b.recv=D2,D2,D2"),
	RULE(EAGER_FLUSH, "seqpacket space=130 eager=3 a.send=0,3 b.recv=N0,N3"),
};

static u32 failed;

static void print_result(bool ok, const char *name, const struct explored *r)
{
	printf("%s model: %s (%llu states, %llu steps, %.1f s)\n", ok ? "ok  " : "FAIL",
	       name, (unsigned long long)r->states,
	       (unsigned long long)r->transitions, r->seconds);
	fflush(stdout);
	failed += !ok;
}

static void run_family(const struct family *f)
{
	struct explored sum = { 0 }, r;
	u32 n = 0, total = 1, i, j, k;
	char text[256], name[128];
	bool ok = true;

	while (n < COUNT(f->symbols) && f->symbols[n])
		n++;
	for (i = 0; i < f->length; i++)
		total *= n;
	for (i = 0; i < total && ok; i++) {
		int len = snprintf(text, sizeof(text), "%s b.recv=", f->rest);

		for (j = 0, k = i; j < f->length; j++, k /= n)
			len += snprintf(text + len, sizeof(text) - len, "%s%s",
					j ? "," : "", f->symbols[k % n]);
		ok = explore(text, &r, true);
		if (!ok)
			printf("%s\n", text);
		sum.states += r.states;
		sum.transitions += r.transitions;
		sum.seconds += r.seconds;
	}
	snprintf(name, sizeof(name), "%s, %u scenarios", f->name, total);
	print_result(ok, name, &sum);
}

static void run_scenario(const char *text)
{
	struct explored r;
	bool ok = explore(text, &r, true);

	print_result(ok, text, &r);
}

static void run_rule(const struct rule *rule)
{
	struct explored r;
	char name[256];
	bool found;

	exs_rules_off = rule->rule < EXS_RULES ? 1ull << rule->rule : 0;
	world_compare_phase = rule->rule == COMPARE_PHASE;
	found = !explore(rule->scenario, &r, false);
	snprintf(name, sizeof(name), "without %s: %s", rule->name,
		 found ? world_bad : "NOTHING GOES WRONG");
	print_result(found, name, &r);
	exs_rules_off = 0;
	world_compare_phase = false;
	/* With the rule the same scenario holds. */
	if (!explore(rule->scenario, &r, true))
		print_result(false, rule->scenario, &r);
}

/* Every rule is disabled in some scenario. */
static void check_rules_complete(void)
{
	u32 i, j;

	for (i = 0; i < EXS_RULES; i++) {
		for (j = 0; j < COUNT(rules) && rules[j].rule != i; j++)
			;
		if (j == COUNT(rules)) {
			printf("FAIL model: rule %u is not tried\n", i);
			failed++;
		}
	}
}

static void take_out(const char *name)
{
	u32 i;

	for (i = 0; i < COUNT(rules); i++)
		if (rules[i].rule < EXS_RULES && !strcmp(rules[i].name, name))
			exs_rules_off |= 1ull << rules[i].rule;
	if (!exs_rules_off) {
		fprintf(stderr, "no rule %s\n", name);
		exit(2);
	}
}

static void run_rules(void)
{
	u32 i;

	for (i = 0; i < COUNT(rules); i++)
		run_rule(&rules[i]);
	check_rules_complete();
}

static void run_families(bool messages)
{
	u32 i;

	for (i = 0; i < COUNT(families); i++)
		if (!strncmp(families[i].rest, "seqpacket", strlen("seqpacket")) == messages)
			run_family(&families[i]);
}

static void run_streams(void)
{
	run_families(false);
}

static void run_messages(void)
{
	run_families(true);
}

static void run_scenarios(void)
{
	u32 i;

	for (i = 0; i < COUNT(scenarios); i++)
		run_scenario(scenarios[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "streams", run_streams },
	{ "messages", run_messages },
	{ "scenarios", run_scenarios },
	{ "rules", run_rules },
};

/* Run the parts of this name, or all. Return: whether there were any. */
static bool run_parts(const char *name)
{
	bool any = false;
	u32 i;

	for (i = 0; i < COUNT(parts); i++) {
		if (name && strcmp(name, parts[i].name))
			continue;
		parts[i].run();
		any = true;
	}
	return any;
}

int main(int argc, char **argv)
{
	int arg;

	if (argc == 1)
		run_parts(NULL);
	for (arg = 1; arg < argc; arg++) {
		if (argv[arg][0] == '-')
			take_out(argv[arg] + 1);
		else if (!run_parts(argv[arg]))
			run_scenario(argv[arg]);
	}
	return failed != 0;
}
