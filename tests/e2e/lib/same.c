// SPDX-License-Identifier: GPL-2.0
#include "same.h"

#include <linux/exs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, OURS, FALLEN, SIDES };

static char record[SIDES][8192];
static int writing;		/* which of them */

void say(const char *format, ...)
{
	char *to = record[writing];
	size_t n = strlen(to);
	va_list args;

	va_start(args, format);
	vsnprintf(to + n, sizeof(record[0]) - n, format, args);
	va_end(args);
}

long say_result(const char *what, long result)
{
	if (result < 0)
		say("%s %s; ", what, errno_name(errno));
	else
		say("%s %ld; ", what, result);
	return result;
}

#define LINES	8

/* Intended differences: each by its name in exs(7), which gives the reason. */
static const struct { const char *name, *cases[LINES]; } differences[] = {
	{ "Urgent data", {
	  "urgent",
	} },
	{ "Filters of packets", {
	  "IP_MINTTL/connected IP_MINTTL/fresh IP_MINTTL/inherited_listening",
	  "IP_MINTTL/listening IP_MINTTL/shapes_fresh",
	} },
	{ "Segments", {
	  "TCP_MAXSEG/connected TCP_MAXSEG/inherited_listening TCP_WINDOW_CLAMP/connected",
	} },
	{ "Bound for good", {
	  "bind/both_half bind/reset bind/reset_told",
	} },
	{ "One connection", {
	  "disconnect/accepted disconnect/both_half disconnect/connected",
	  "disconnect/data_and_end disconnect/deaf disconnect/ended disconnect/half",
	  "disconnect/peer_half disconnect/reset disconnect/reset_told disconnect/with_data",
	} },
	{ "Shared ports", {
	  "ports port_of_connection",
	} },
	{ "Buffers", {
	  "SO_SNDBUF/connected SO_MEMINFO/connected SO_MEMINFO/inherited_listening",
	} },
	{ "Congestion control", {
	  "TCP_CONGESTION/connected TCP_CONGESTION/fresh TCP_CONGESTION/inherited_listening",
	  "TCP_CONGESTION/listening TCP_CONGESTION/shapes_fresh",
	} },
	{ "Data in the send buffer", {
	  "ioctl/refused ioctl/refused_untold",
	} },
};

/* Whether @name is one of the words of @cases. */
static bool has_word(const char *cases, const char *name)
{
	size_t len = strlen(name);
	const char *at = cases;

	while ((at = strstr(at, name))) {
		if ((at == cases || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
		at += len;
	}
	return false;
}

/* On both families, or on one. */
static bool is_meant(const char *name)
{
	char of_family[80];
	size_t i, j;

	snprintf(of_family, sizeof(of_family), "%s@%s", name,
		 e2e.domain == AF_INET ? "inet" : "inet6");
	for (i = 0; i < ARRAY_SIZE(differences); i++)
		for (j = 0; j < LINES && differences[i].cases[j]; j++)
			if (has_word(differences[i].cases[j], name) ||
			    has_word(differences[i].cases[j], of_family))
				return true;
	return false;
}

/* The place where this record begins to differ from TCP's, from the last call before it on. */
static size_t same_until(int side)
{
	size_t i, from = 0;

	for (i = 0; record[PLAIN][i] && record[PLAIN][i] == record[side][i]; i++)
		if (record[PLAIN][i] == ';')
			from = i + 1;
	return from;
}

static void must_be_same(int side, const char *name)
{
	check(!strcmp(record[PLAIN], record[side]), "TCP:%.150s %s:%.150s",
	      record[PLAIN] + same_until(side), name, record[side] + same_until(side));
}

void same_on_all_sides(const char *name, void (*one_side)(const void *arg), const void *arg)
{
	int protocol = e2e.protocol;

	e2e.protocol = 0;
	one_side(arg);
	e2e.protocol = protocol;
	writing = OURS;
	one_side(arg);
	writing = FALLEN;
	e2e.fallback = EXS_FALLBACK_NOW;
	one_side(arg);
	must_be_same(FALLEN, "fallen back");
	if (!is_meant(name))
		must_be_same(OURS, "EXS");
	else
		check(strcmp(record[PLAIN], record[OURS]), "no difference, but exs(7) has one: %s",
		      record[PLAIN]);
}

#define PAGE	"/exs/Documentation/man/exs.7"
#define LIST	".\\\" differences"	/* in the page: begins and ends there */

static bool is_explained(const char *line)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(differences); i++)
		if (!strcmp(line + strlen(".It "), differences[i].name))
			return true;
	return false;
}

void same_is_explained(void)
{
	FILE *page = fopen(PAGE, "re");
	char line[1024];
	bool inside = false;
	size_t seen = 0;

	check(page, PAGE ": %s", errno_name(errno));
	while (fgets(line, sizeof(line), page)) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, LIST))
			inside = !inside;
		if (!inside || strncmp(line, ".It ", 4))
			continue;
		check(is_explained(line), PAGE " has '%s', and no case shows it", line + 4);
		seen++;
	}
	fclose(page);
	must_be(seen, ARRAY_SIZE(differences));
}
