/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conformance: each call of libexs, the same cases on every kind of socket that
 * it takes (see the variants of lib/e2e.h).
 *
 *	conform [CALL[/CASE]][@KIND] ...
 *
 * A file for each call, and a case for each statement of its manual page. Cases distinguish kinds by e2e.family and
 * e2e.type. A case whose call a kind does not support is skipped, after it was seen to fail as documented
 * (unsupported.c).
 */
#ifndef CALLS_H
#define CALLS_H

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/async.h"

extern const struct e2e_case
	exs_init_cases[], exs_family_cases[], exs_socket_cases[], exs_bind_cases[],
	exs_listen_cases[], exs_getsockname_cases[], exs_getpeername_cases[],
	exs_setsockopt_cases[], exs_getsockopt_cases[], exs_fcntl_cases[],
	exs_qcreate_cases[], exs_qdelete_cases[], exs_qdequeue_cases[], exs_qmodify_cases[],
	exs_qstatus_cases[], exs_mregister_cases[], exs_mderegister_cases[], exs_connect_cases[],
	exs_accept_cases[], exs_send_cases[], exs_recv_cases[], exs_sendmsg_cases[],
	exs_recvmsg_cases[], exs_sendfile_cases[], exs_submit_cases[], exs_poll_cases[],
	exs_cancel_cases[], exs_shutdown_cases[], exs_close_cases[];

/* Kinds. IPv6 makes no difference that a call would notice. */
#define ON_PLAIN	(ON_TCP | ON_UDP | ON_UNIX | ON_UNIX_SEQ | ON_UNIX_DGRAM)
#define ON_KINDS	(ON_BOTH | ON_PLAIN)
#define ON_DGRAMS	(ON_UDP | ON_UNIX_DGRAM)
#define ON_LISTENING	(ON_KINDS & ~ON_DGRAMS)
#define ON_STREAMS	(ON_STREAM | ON_TCP | ON_UNIX)
#define ON_MESSAGES	(ON_KINDS & ~ON_STREAMS)

/* Rows of a file's table. CALL is the file's; @fn is the case's name, too. */
#define CASE(fn, kinds)	{ .name = CALL "/" #fn, .run = fn, .on = kinds, .needs = NEEDS_ONE }
/* Only where @can, made by SUPPORTED(), says that the kind supports it. */
#define CASE_IF(can, fn, kinds) \
	{ .name = CALL "/" #fn, .before = can, .run = fn, .on = kinds, .needs = NEEDS_ONE }

/*
 * Skips the case if unsupported.c has a row of @what for this kind, and if @probe,
 * the simplest good use of it, fails with the row's errno; otherwise the case
 * fails: the row is wrong.
 */
void supported_or_skip(const char *what, int (*probe)(exs_qhandle_t q));
#define SUPPORTED(name, what, probe) \
	static void name(void) { supported_or_skip(what, probe); }

#define PAGE		4096
/* More than any kind sends at once or copies, and less than the largest datagram. */
#define LARGE		50000
#define TOO_LONG	2147479553u	/* a byte more than one operation can have */

static inline bool on_exs(void)
{
	return e2e.on & ON_BOTH;
}

static inline bool on_stream(void)
{
	return e2e.type == SOCK_STREAM;
}

static inline bool on_dgram(void)
{
	return e2e.type == SOCK_DGRAM;
}

/* From @out at p->c to @in at p->s by exs_send() and exs_recv(): both must succeed. */
void transfer(const struct pair *p, const void *out, exs_mhandle_t om, void *in, exs_mhandle_t im,
	      size_t len);

/* The value from exs_getsockopt(). */
int int_option(int fd, int level, int name);

/* A descriptor that is no socket, one that no operation takes, and a number without a descriptor. */
struct wrong { int file, netlink, none; };
struct wrong wrong_open(void);

/* Nothing was started by queue @q. */
void nothing_started(exs_qhandle_t q);

/*
 * @start, with LARGE bytes of @buf that are not registered, fails with ENOMEM above
 * RLIMIT_MEMLOCK, and with ENOBUFS above max_user_pages.
 */
typedef int start_large(int fd, char *buf, exs_qhandle_t q);
void limits_hold(start_large *start);

/* A port where no host answers, for AF_EXS and TCP: a connect goes on trying. */
union address nowhere(void);

/*
 * Runs @fn in a process of its own, between "ip OBJECT add WHAT" and its removal.
 */
void with_ip(const char *object, const char *what, void (*fn)(void *arg));

/* As an ordinary user who may lock no more than @bytes. */
void limit_memlock(size_t bytes);

#endif
