// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

static int unit_shift(const char *end)
{
	static const char units[] = "KMGT";
	const char *u;

	if (!*end)
		return 0;
	u = strchr(units, toupper((unsigned char)*end));
	if (!u || (end[1] && strcmp(end + 1, "iB")))
		return -1;
	return 10 * (u - units + 1);
}

bool parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	unsigned long long n;
	char *end;
	int shift;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	shift = unit_shift(end);
	if (errno || shift < 0 || n > UINT64_MAX >> shift)
		return false;
	*value = (uint64_t)n << shift;
	return *value >= min && *value <= max;
}

static bool copy(char *to, size_t room, const char *from, size_t len)
{
	if (len >= room)
		return false;
	memcpy(to, from, len);
	to[len] = 0;
	return true;
}

/* The name of a service, or a number in range: getaddrinfo() would truncate others. */
static bool is_port(const char *text)
{
	uint64_t n;

	return *text && (text[strspn(text, "0123456789")] ||
			 parse_size(text, 0, UINT16_MAX, &n));
}

static bool take_port(const char *text, const char *default_port,
		      struct endpoint *ep)
{
	if (!*text)
		text = default_port;
	else if (*text++ != ':')
		return false;
	return is_port(text) && copy(ep->port, sizeof(ep->port), text, strlen(text));
}

bool parse_endpoint(const char *text, const char *default_port,
		    struct endpoint *ep)
{
	const char *end;

	if (*text == '[') {
		end = strchr(++text, ']');
		return end && end > text &&
		       copy(ep->host, sizeof(ep->host), text, end - text) &&
		       take_port(end + 1, default_port, ep);
	}
	end = text + strcspn(text, ":");
	if (*end && strchr(end + 1, ':'))
		return false;
	return copy(ep->host, sizeof(ep->host), text, end - text) &&
	       take_port(end, default_port, ep);
}

const char *show_size(double bytes, char *buf, int len)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int u = 0;

	while (bytes >= 1000 && u < 4) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, len, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
	return buf;
}
