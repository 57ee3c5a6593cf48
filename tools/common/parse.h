/* SPDX-License-Identifier: MIT */
#ifndef TOOLS_PARSE_H
#define TOOLS_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* "256K": K, M, G and T are powers of 1024. */
bool parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *value);

struct endpoint {
	char host[256];		/* "": any address */
	char port[32];
};

/*
 * HOST, HOST:PORT, [ADDRESS]:PORT, :PORT; an IPv6 address needs brackets. PORT is
 * a service's name or a number from 0 to 65535.
 */
bool parse_endpoint(const char *text, const char *default_port,
		    struct endpoint *ep);

/* "12.3 MiB" */
const char *show_size(double bytes, char *buf, int len);

#endif
