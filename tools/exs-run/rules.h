/* SPDX-License-Identifier: MIT */
/* Rules that choose between EXS and TCP: exs-rules(5). */
#ifndef EXS_RUN_RULES_H
#define EXS_RUN_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_MAX	256	/* including the built-in ones */
#define RULES_TEXT_MAX	65536	/* all rules, in the environment */

enum direction {
	ANY_DIRECTION,
	CONNECT,
	LISTEN,
};

/* An IPv4 address is stored as mapped IPv6 address. */
struct rule {
	bool exs;
	enum direction direction;
	bool any_addr;
	struct in6_addr addr;
	unsigned int bits;
	uint16_t first, last;		/* ports */
	char text[128];
};

struct rules {
	int count;
	struct rule rule[RULES_MAX];	/* the last one matches all */
	char why[320];
};

/*
 * Parse the lines of @text, without rules for programs other than @path (NULL: all
 * rules). The built-in rules come last. Return: false: @text is wrong, see rules->why.
 */
bool rules_parse(struct rules *rules, const char *text, const char *path);

/* The rule for an address; there is always one. */
const struct rule *rules_find(const struct rules *rules, enum direction direction,
			      const struct sockaddr *addr);
/* The rule for a new socket, whose address is not known. */
const struct rule *rules_first(const struct rules *rules);

#endif
