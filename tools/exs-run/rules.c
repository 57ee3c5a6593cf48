// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/*
 * Loopback has no RDMA device. A connect to the unspecified address goes to loopback.
 */
static const char builtin[] =
	"tcp address 127.0.0.0/8\n"
	"tcp address ::1\n"
	"tcp connect address 0.0.0.0\n"
	"tcp connect address ::\n"
	"exs\n";

/* A rule that is being read. */
struct reader {
	struct rule *rule;
	const char *path;	/* of the program that asks, or NULL */
	bool other;		/* the rule is another program's */
	char *save;
};

static const char *next_word(struct reader *r)
{
	return strtok_r(NULL, " \t\r", &r->save);
}

static bool number(const char *text, unsigned int max, unsigned int *value)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	*value = n;
	return !*end && n <= max;
}

static bool take_bits(struct rule *rule, const char *text, unsigned int width)
{
	unsigned int bits = width;

	if (text && !number(text, width, &bits))
		return false;
	rule->any_addr = false;
	rule->bits = 128 - width + bits;
	return true;
}

static bool take_address(struct reader *r, const char *word)
{
	struct rule *rule = r->rule;
	char text[INET6_ADDRSTRLEN + 4];
	char *bits;

	if (!word || strlen(word) >= sizeof(text))
		return false;
	strcpy(text, word);
	bits = strchr(text, '/');
	if (bits)
		*bits++ = 0;
	if (inet_pton(AF_INET6, text, &rule->addr) == 1)
		return take_bits(rule, bits, 128);
	rule->addr = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	return inet_pton(AF_INET, text, &rule->addr.s6_addr[12]) == 1 &&
	       take_bits(rule, bits, 32);
}

static bool take_port(struct reader *r, const char *word)
{
	unsigned int first, last;
	char text[16], *dash;

	if (!word || strlen(word) >= sizeof(text))
		return false;
	strcpy(text, word);
	dash = strchr(text, '-');
	if (dash)
		*dash++ = 0;
	if (!number(text, UINT16_MAX, &first) ||
	    !number(dash ? dash : text, UINT16_MAX, &last) || first > last)
		return false;
	r->rule->first = first;
	r->rule->last = last;
	return true;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A pattern with a slash matches the whole path. */
static bool take_program(struct reader *r, const char *word)
{
	if (!word)
		return false;
	if (r->path && fnmatch(word, strchr(word, '/') ? r->path : base(r->path), 0))
		r->other = true;
	return true;
}

static bool take_condition(struct reader *r, const char *word)
{
	if (!strcmp(word, "connect") || !strcmp(word, "listen")) {
		r->rule->direction = *word == 'c' ? CONNECT : LISTEN;
		return true;
	}
	if (!strcmp(word, "address"))
		return take_address(r, next_word(r));
	if (!strcmp(word, "port"))
		return take_port(r, next_word(r));
	return !strcmp(word, "program") && take_program(r, next_word(r));
}

/* Return: NULL on success, or the wrong word. */
static const char *take_rule(struct reader *r, char *line)
{
	const char *word = strtok_r(line, " \t\r", &r->save);

	if (strcmp(word, "exs") && strcmp(word, "tcp"))
		return word;
	r->rule->exs = *word == 'e';
	r->rule->any_addr = true;
	r->rule->last = UINT16_MAX;
	while ((word = next_word(r)))
		if (!take_condition(r, word))
			return word;
	return NULL;
}

static bool complain(struct rules *rules, const char *what, const char *line)
{
	snprintf(rules->why, sizeof(rules->why), "%s: %s", line, what);
	return false;
}

static bool take_line(struct rules *rules, const char *line, const char *path)
{
	struct reader r = { .rule = &rules->rule[rules->count], .path = path };
	char words[sizeof(r.rule->text)], why[160];
	const char *wrong;

	line += strspn(line, " \t\r");
	if (!*line)
		return true;
	if (strlen(line) >= sizeof(words))
		return complain(rules, "too long, at most 127 bytes", "a rule");
	if (rules->count == RULES_MAX)
		return complain(rules, "too many rules, at most 251", line);
	memset(r.rule, 0, sizeof(*r.rule));
	strcpy(r.rule->text, line);
	strcpy(words, line);
	wrong = take_rule(&r, words);
	if (wrong) {
		snprintf(why, sizeof(why), "'%s' is wrong, or the word after it: see man exs-rules", wrong);
		return complain(rules, why, line);
	}
	rules->count += !r.other;
	return true;
}

static bool take_lines(struct rules *rules, const char *text, const char *path)
{
	char line[256];
	size_t len;

	for (; *text; text += len + !!text[len]) {
		len = strcspn(text, "\n");
		if (len >= sizeof(line))
			return complain(rules, "too long, at most 255 bytes", "a line");
		memcpy(line, text, len);
		line[len] = 0;
		line[strcspn(line, "#")] = 0;
		if (!take_line(rules, line, path))
			return false;
	}
	return true;
}

bool rules_parse(struct rules *rules, const char *text, const char *path)
{
	rules->count = 0;
	return take_lines(rules, text, path) && take_lines(rules, builtin, path);
}

static bool same_network(const struct in6_addr *a, const struct in6_addr *b,
			 unsigned int bits)
{
	unsigned int whole = bits / 8, mask = 0xff00 >> bits % 8 & 0xff;

	return !memcmp(a, b, whole) &&
	       (!mask || !((a->s6_addr[whole] ^ b->s6_addr[whole]) & mask));
}

/* Return: false: neither IPv4 nor IPv6. */
static bool take_sockaddr(const struct sockaddr *sa, struct in6_addr *addr, uint16_t *port)
{
	if (sa->sa_family == AF_INET6) {
		*addr = ((const struct sockaddr_in6 *)sa)->sin6_addr;
		*port = ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
		return true;
	}
	*addr = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&addr->s6_addr[12], &((const struct sockaddr_in *)sa)->sin_addr, 4);
	*port = ntohs(((const struct sockaddr_in *)sa)->sin_port);
	return sa->sa_family == AF_INET;
}

const struct rule *rules_find(const struct rules *rules, enum direction direction,
			      const struct sockaddr *sa)
{
	const struct rule *rule = rules->rule;
	struct in6_addr addr;
	uint16_t port;

	if (!take_sockaddr(sa, &addr, &port))
		return rules_first(rules);
	for (;; rule++)
		if ((!rule->direction || rule->direction == direction) &&
		    port >= rule->first && port <= rule->last &&
		    (rule->any_addr || same_network(&rule->addr, &addr, rule->bits)))
			return rule;
}

const struct rule *rules_first(const struct rules *rules)
{
	const struct rule *rule = rules->rule;

	while (rule->direction || !rule->any_addr || rule->first || rule->last < UINT16_MAX)
		rule++;
	return rule;
}
