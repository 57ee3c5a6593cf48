/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of core into the transport below its sockets, and those of the transport into core
 * for a listener.
 *
 * The calls of a connection's endpoint are struct exs_ep_ops in conn.h.
 */
#ifndef EXS_CORE_TRANSPORT_H
#define EXS_CORE_TRANSPORT_H

#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>

#include "../proto/wire.h"

/* The largest ring that every device can describe to a peer. */
#define EXS_RING_MAX	SZ_2M

/* The most that a work request can take along, if the device agrees. */
#define EXS_INLINE_MAX	256

struct exs_conn;
struct exs_listen;
struct exs_bound;

#define EXS_BIND_REUSE	1
#define EXS_BIND_V6ONLY	2

/* The program's error for those of @bind and @listen below. */
static inline int exs_port_error(int err)
{
	return err == -EBUSY ? -EADDRINUSE : err;
}

/**
 * struct exs_transport - endpoints and local addresses
 * @create: give a connecting connection its endpoint (conn->ep). Sleeps.
 * @create_bound: the same from a bound identifier, which it uses up even if it fails
 * @bind: resolve and reserve a local address. @uid: the port's owner. @addr: in: wanted;
 *	out: with the port that was given (port 0: any). @flags: EXS_BIND_REUSE,
 *	EXS_BIND_V6ONLY (SO_REUSEADDR, IPV6_V6ONLY). @out: a bound identifier; ends with
 *	@unbind, or is used up by @create_bound. Sleeps. Return: 0 or negative errno:
 *	EADDRINUSE: another has the port; EBUSY: another socket of @uid has it; EADDRNOTAVAIL; ...
 * @unbind: waits for callbacks; afterwards there are none
 * @listen: take connection requests. @backlog: for transports that use it. @listen is
 *	passed to exs_listen_request() and so on, and must stay until @unbind has returned.
 *	Return: as @bind; EBUSY, too, if the device shares ports with TCP.
 *
 * One for the module: the layer below provides it.
 */
struct exs_transport {
	int (*create)(struct net *net, struct exs_conn *conn);
	int (*create_bound)(struct exs_bound *bound, struct exs_conn *conn);
	int (*bind)(struct net *net, kuid_t uid, struct sockaddr_storage *addr,
		    unsigned int flags, struct exs_bound **out);
	void (*unbind)(struct exs_bound *bound);
	int (*listen)(struct exs_bound *bound, int backlog, struct exs_listen *listen);
};

extern const struct exs_transport exs_transport;

/*
 * The transport's calls into core (core/listen.c) for a listener.
 */

/* Whether it takes requests that arrive at interface @ifindex: SO_BINDTODEVICE. */
bool exs_listen_on(const struct exs_listen *listen, int ifindex);

/* A request arrived, in a CM handler (which may sleep, but not call rdma_cm or take
 * lock_sock): reserve a place in the backlog. Return: a new connection in CONNECTING with
 * one reference for the endpoint; or NULL: reject, for @reason.
 */
struct exs_conn *exs_listen_request(struct exs_listen *listen,
				    const struct exs_hello *hello,
				    enum exs_wire_reason *reason);

/* That connection was established (after exs_conn_established()): the listener queues it
 * for accept(), and takes its own reference.
 */
void exs_listen_established(struct exs_listen *listen, struct exs_conn *conn);

/* Or its hand-shake failed: release the place. Exactly one of the two is called. */
void exs_listen_failed(struct exs_listen *listen, struct exs_conn *conn);

#endif
