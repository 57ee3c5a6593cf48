// SPDX-License-Identifier: MIT
/* The rules of exs-run, as exs-rules(5) describes them. */
#include <arpa/inet.h>
#include <string.h>

#include "../../tools/exs-run/rules.h"
#include "check.h"

#define PROGRAM	"/usr/sbin/nginx"

static struct rules rules;

static void parse(const char *text)
{
	CHECK(rules_parse(&rules, text, PROGRAM));
}

/* Whether a socket to or of @address is EXS. */
static bool finds(enum direction direction, const char *address, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
		return rules_find(&rules, direction, (struct sockaddr *)&in)->exs;
	CHECK(inet_pton(AF_INET6, address, &in6.sin6_addr) == 1);
	return rules_find(&rules, direction, (struct sockaddr *)&in6)->exs;
}

static bool connects(const char *address)
{
	return finds(CONNECT, address, 80);
}

static bool listens(int port)
{
	return finds(LISTEN, "0.0.0.0", port);
}

/* Loopback is TCP, everything else EXS; a listener of all addresses is not on loopback only. */
static void without(void)
{
	parse("");
	CHECK(connects("10.0.0.1") && connects("fd00::1") && connects("126.255.255.255") && connects("128.0.0.0"));
	CHECK(!connects("127.0.0.1") && !connects("127.255.255.255") && !connects("::1"));
	CHECK(!connects("::ffff:127.0.0.1") && connects("::2"));
	CHECK(!connects("0.0.0.0") && !connects("::"));
	CHECK(listens(80) && finds(LISTEN, "::", 80));
	CHECK(!finds(LISTEN, "127.0.0.1", 80) && !finds(LISTEN, "::1", 80));
	CHECK(rules_first(&rules)->exs);
	parse("exs");
	CHECK(connects("127.0.0.1") && connects("::1") && connects("0.0.0.0"));
}

static void by_address(void)
{
	parse("exs address 10.0.0.0/23\nexs address fd00:10::/31\nexs address 10.9.9.9\ntcp\n");
	CHECK(connects("10.0.0.0") && connects("10.0.1.255") && !connects("10.0.2.0") && !connects("9.255.255.255"));
	CHECK(connects("fd00:10::1") && connects("fd00:11:ffff::") && !connects("fd00:12::") && !connects("fd00:f::"));
	CHECK(connects("10.9.9.9") && !connects("10.9.9.8") && connects("::ffff:10.9.9.9"));
	parse("exs address ::/0\ntcp");
	CHECK(connects("10.0.0.1") && connects("fd00::1"));
	parse("exs address 0.0.0.0/0\ntcp");
	CHECK(connects("10.0.0.1") && connects("::ffff:10.0.0.1") && !connects("fd00::1"));
	parse("exs listen address 0.0.0.0\ntcp");
	CHECK(listens(80) && !finds(LISTEN, "10.0.0.1", 80) && !connects("0.0.0.0"));
}

static void by_port(void)
{
	parse("exs port 80\nexs listen port 8000-8015\nexs connect port 65535\ntcp");
	CHECK(listens(80) && !listens(79) && !listens(81) && connects("10.0.0.1"));
	CHECK(listens(8000) && listens(8015) && !listens(7999) && !listens(8016));
	CHECK(!finds(CONNECT, "10.0.0.1", 8000) && finds(CONNECT, "10.0.0.1", 65535) && !listens(65535));
	parse("exs connect address 10.0.0.0/24 port 5432\ntcp");
	CHECK(finds(CONNECT, "10.0.0.1", 5432) && !finds(CONNECT, "10.0.0.1", 5433) &&
	      !finds(CONNECT, "10.0.1.1", 5432));
}

static bool is_for(const char *pattern)
{
	char text[100];

	snprintf(text, sizeof(text), "tcp program %s", pattern);
	parse(text);
	return !listens(80);
}

static void by_program(void)
{
	CHECK(is_for("nginx") && is_for("ngin?") && is_for("n*") && is_for("[mn]ginx"));
	CHECK(!is_for("ngin") && !is_for("[!n]*") && !is_for("NGINX"));
	CHECK(is_for(PROGRAM) && is_for("/usr/sbin/*") && is_for("*/nginx"));
	CHECK(!is_for("/usr/bin/nginx") && !is_for("sbin/nginx"));
	parse("tcp listen port 8080 program nginx");
	CHECK(!listens(8080) && listens(8081));
	parse("tcp listen port 8080 program apache2");
	CHECK(listens(8080));
	/* Not for a certain program: all have to be right. */
	CHECK(rules_parse(&rules, "tcp program apache2", NULL) && !listens(80));
}

static void in_order(void)
{
	parse("  # a comment\n\n\texs\tport 80 # and another\r\ntcp port 1-100\nexs port 90\ntcp");
	CHECK(listens(80) && !listens(90) && !listens(79) && !listens(200));
	/* Before it has an address: the first rule that needs none. */
	CHECK(!rules_first(&rules)->exs);
	parse("tcp connect\ntcp address ::/0\ntcp port 1-65535\ntcp port 0-65534\nexs port 0-65535\ntcp");
	CHECK(rules_first(&rules)->exs && !connects("10.0.0.1"));
}

static void wrong(void)
{
	static const char *const lines[] = {
		"udp", "exs port", "exs port x", "exs port 65536", "exs port 2-1", "exs port 1-", "exs port -1",
		"exs port 1-2-3", "exs address", "exs address 10.0.0.0/33", "exs address ::/129", "exs address 10.0.0",
		"exs address ::/", "exs address host", "exs program", "exs both", "exs connect x", "connect exs",
		"exs program a b",
	};
	char many[RULES_MAX * 5 + 1] = "", text[300];
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "tcp\n%s\nexs", lines[i]);
		CHECK(!rules_parse(&rules, text, PROGRAM) && strstr(rules.why, lines[i]));
	}
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memcpy(text, "exs program ", 12);
	CHECK(!rules_parse(&rules, text, PROGRAM) && strstr(rules.why, "too long, at most 255 bytes"));
	text[255] = 0;
	CHECK(!rules_parse(&rules, text, PROGRAM) && strstr(rules.why, "too long, at most 127 bytes"));
	text[128] = 0;
	CHECK(!rules_parse(&rules, text, PROGRAM) && strstr(rules.why, "too long"));
	text[127] = 0;
	CHECK(rules_parse(&rules, text, PROGRAM));
	/* There are five built-in rules, and room for 251 others. */
	for (i = 0; i < RULES_MAX - 5; i++)
		strcat(many, "exs\n");
	parse(many);
	strcat(many, "exs\n");
	CHECK(!rules_parse(&rules, many, PROGRAM) && strstr(rules.why, "too many rules, at most 251"));
}

const struct test rule_tests[] = {
	{ "rules without any", without },
	{ "rules by address", by_address },
	{ "rules by port", by_port },
	{ "rules by program", by_program },
	{ "rules in order", in_order },
	{ "rules that are wrong", wrong },
	{ }
};
