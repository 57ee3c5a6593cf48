/* SPDX-License-Identifier: MIT */
/* Which sockets are to be EXS, and which TCP: exs-rules(5). */
#ifndef EXS_RUN_RULES_H
#define EXS_RUN_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_MAX	256	/* with the built-in ones */
#define RULES_TEXT_MAX	65536	/* all of them, in the environment */

enum direction {
	ANY_DIRECTION,
	CONNECT,
	LISTEN,
};

/* An IPv4 address is kept as the IPv6 address that it maps to. */
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
 * Lines of @text; those that are for another program than @path are left out, NULL
 * takes all. The built-in rules come last. False, and rules->why: it has a mistake.
 */
bool rules_parse(struct rules *rules, const char *text, const char *path);

/* The rule for an address; there always is one. */
const struct rule *rules_find(const struct rules *rules, enum direction direction,
			      const struct sockaddr *addr);
/* The one for a socket of which nothing is known yet. */
const struct rule *rules_first(const struct rules *rules);

#endif
