/* SPDX-License-Identifier: GPL-2.0 */
/* Ordinary sockets: the kinds that operations take, on one machine. */
#ifndef E2E_KINDS_H
#define E2E_KINDS_H

#include "async.h"

struct kind {
	int domain, type;
};

extern const struct kind kind_tcp, kind_tcp6, kind_udp, kind_udp6;
extern const struct kind kind_un_stream, kind_un_seq, kind_un_dgram;

/* One case for each kind: "CASE_KIND". */
#define FOR_KIND(fn, k)	static void fn##_##k(void) { fn(&kind_##k); }
#define ROW(fn, k)	{ .name = #fn "_" #k, .run = fn##_##k, .needs = NEEDS_ONE }
#define ROW1(fn)	{ .name = #fn, .run = fn, .needs = NEEDS_ONE }

bool kind_is_stream(const struct kind *k);
int kind_socket(const struct kind *k);
int kind_bound(const struct kind *k);		/* not AF_UNIX                   */
int kind_listening(const struct kind *k);	/* bound only, if of datagrams   */
void kind_pair(const struct kind *k, struct pair *p);	/* connected         */

/* Of any family. */
union address listening_name(int fd, socklen_t *len);

#endif
