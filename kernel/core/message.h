/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXS_CORE_MESSAGE_H
#define EXS_CORE_MESSAGE_H

#include "conn.h"

/* A plain recv() of SOCK_SEQPACKET: one message. Sleeps, no lock held. */
int exs_read_message(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len, int flags);

/* If one is kept already, end @x with it, after the receives before it; the caller runs the
 * connection. No lock held. Return: whether there was one.
 */
bool exs_read_kept(struct exs_conn *conn, struct exs_xfer *x);

/* A plain recv() would get a message. conn->lock held. */
bool exs_message_ready(const struct exs_conn *conn);

/* poll(): a non-blocking recv() would return something other than EAGAIN. conn->lock held. */
bool exs_message_readable(const struct exs_conn *conn);

/* poll() found nothing to read: fetch an announced message, if there is one. conn->lock held. */
void exs_message_want(struct exs_conn *conn);

/* Fetch it, if a thread polls. Only for the runner; conn->lock held, dropped in between.
 * Sleeps.
 */
void exs_message_fetch(struct exs_conn *conn) __must_hold(&conn->lock);

/* An asynchronous receive would get a message. conn->lock held. */
bool exs_message_kept(const struct exs_conn *conn);

/* A mapped asynchronous receive that was submitted while a message was fetched for poll():
 * it gets that message, or continues when the fetch is over, or is cancelled. conn->lock
 * held.
 */
void exs_message_hold(struct exs_conn *conn, struct exs_xfer *x);
void exs_message_unhold(struct exs_conn *conn, struct exs_xfer *x);

/* FIONREAD: bytes of the next message, 0 if there is none. conn->lock held. */
u32 exs_message_queued(struct exs_conn *conn);

/* Allocate memory for @n messages without a receive, of @len bytes if they are eager, else 0.
 * conn->lock held. Return: false: there is none, and exs_message_provide() waits for it.
 */
bool exs_message_reserve(struct exs_conn *conn, u32 len, u32 n);

/* Wait for this memory; nothing else is reserved meanwhile. No lock held; sleeps. */
void exs_message_provide(struct exs_conn *conn);

/* Store the message in the memory reserved for it; conn->lock held since. */
void exs_message_keep(struct exs_conn *conn, const void *data, u32 len);

/* The same for the places of the messages that have just come into the ring. */
void exs_message_keep_in_ring(struct exs_conn *conn);

/* Free kept messages that were never read. No other user of the connection is left. */
void exs_message_purge(struct exs_conn *conn);

#endif
