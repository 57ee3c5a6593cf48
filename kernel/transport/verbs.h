/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verbs transport: rdma_cm identifiers and RC queue pairs.
 *
 * What core calls; what it executes is struct exs_ep_ops in core/conn.h.
 */
#ifndef EXS_TRANSPORT_VERBS_H
#define EXS_TRANSPORT_VERBS_H

#include <linux/sizes.h>
#include <linux/socket.h>
#include <net/net_namespace.h>

#include "../proto/wire.h"

/* The largest ring that every device can describe to a peer. */
#define EXS_VERBS_RING_MAX	SZ_2M

/* The most that a work request can take along, if the device agrees. */
#define EXS_VERBS_INLINE_MAX	256

struct exs_conn;
struct exs_listen;
struct exs_verbs_listener;

/* Makes the work queues. */
int exs_verbs_init(void);
/* Waits until every endpoint is gone; called when no socket is left. */
void exs_verbs_exit(void);

/* Give a connecting connection its endpoint (conn->ep). Sleeps. */
int exs_verbs_create(struct net *net, struct exs_conn *conn);

#define EXS_BIND_REUSE	1
#define EXS_BIND_V6ONLY	2

/**
 * exs_verbs_bind() - resolve and reserve a local address
 * @net: namespace
 * @addr: in: wanted; out: with the port that was given (port 0: any)
 * @flags: EXS_BIND_REUSE, EXS_BIND_V6ONLY (SO_REUSEADDR, IPV6_V6ONLY)
 * @out: a bound identifier; ends with exs_verbs_unbind(), or is used up by
 *	exs_verbs_create_bound() or exs_verbs_listen()
 *
 * Context: sleeps. Return: 0 or negative errno (EADDRINUSE, EADDRNOTAVAIL, ...).
 */
int exs_verbs_bind(struct net *net, struct sockaddr_storage *addr,
		   unsigned int flags, struct exs_verbs_listener **out);
void exs_verbs_unbind(struct exs_verbs_listener *l);

/* As exs_verbs_create(), from the bound identifier, which it uses up even if it
 * fails.
 */
int exs_verbs_create_bound(struct exs_verbs_listener *l, struct exs_conn *conn);

/**
 * exs_verbs_listen() - take connection requests
 * @l: bound
 * @backlog: for transports that use it
 * @listen: passed to exs_listen_request() and so on; it must stay until
 *	exs_verbs_unbind(), which waits for callbacks, has returned
 */
int exs_verbs_listen(struct exs_verbs_listener *l, int backlog,
		     struct exs_listen *listen);

/*
 * What the transport calls of core (core/listen.c) for a listener.
 */

/* Whether requests that come in by interface @ifindex are for it: SO_BINDTODEVICE. */
bool exs_listen_on(const struct exs_listen *listen, int ifindex);

/* A request arrived, in a CM handler (sleeps, but must not call rdma_cm or
 * take lock_sock): reserves a place in the backlog.
 * Return: a new connection in CONNECTING with one reference for the endpoint,
 * or NULL: reject, for @reason.
 */
struct exs_conn *exs_listen_request(struct exs_listen *listen,
				    const struct exs_hello *hello,
				    enum exs_wire_reason *reason);

/* That connection was established (after exs_conn_established()): the
 * listener queues it for accept(). Takes a reference of its own.
 */
void exs_listen_established(struct exs_listen *listen, struct exs_conn *conn);

/* Or its hand-shake failed: give the place back. Exactly one of the two. */
void exs_listen_failed(struct exs_listen *listen, struct exs_conn *conn);

#endif
