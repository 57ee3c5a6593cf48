/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXS_CORE_MESSAGE_H
#define EXS_CORE_MESSAGE_H

#include "conn.h"

/* A plain recv() of SOCK_SEQPACKET: one message. Sleeps, no lock held. */
int exs_read_message(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len, int flags);

/* If one is kept already, end @x with it, behind the receives before it; the
 * caller runs the connection. No lock held. Return: whether there was one.
 */
bool exs_read_kept(struct exs_conn *conn, struct exs_xfer *x);

/* A plain recv() would get a message. conn->lock held. */
bool exs_message_ready(const struct exs_conn *conn);

/* poll(): one that must not wait would have something to say. conn->lock held. */
bool exs_message_readable(const struct exs_conn *conn);

/* poll() found nothing to read: have a message fetched that was announced, if there is
 * one. conn->lock held.
 */
void exs_message_want(struct exs_conn *conn);

/* Fetch it, if anybody polls. Only for who runs the connection; conn->lock held, dropped
 * meanwhile. Sleeps.
 */
void exs_message_fetch(struct exs_conn *conn) __must_hold(&conn->lock);

/* An asynchronous receive would. conn->lock held. */
bool exs_message_kept(const struct exs_conn *conn);

/* An asynchronous receive, mapped, that came while a message was being fetched for who
 * polls: it is to have that, or goes on when the fetch is over; or it is cancelled.
 * conn->lock held.
 */
void exs_message_hold(struct exs_conn *conn, struct exs_xfer *x);
void exs_message_unhold(struct exs_conn *conn, struct exs_xfer *x);

/* FIONREAD: bytes of the next message, 0 if there is none. conn->lock held. */
u32 exs_message_queued(struct exs_conn *conn);

/* Memory for an eager message of @len bytes that nobody waits for. conn->lock held. Return:
 * whether there is any; if not, exs_conn_provide() waits for it.
 */
bool exs_message_reserve(struct exs_conn *conn, u32 len);

/* Keep the message in what was reserved for it; conn->lock held since. */
void exs_message_keep(struct exs_conn *conn, const void *data, u32 len);

/* Free what was kept and never read. Nobody else has the connection. */
void exs_message_purge(struct exs_conn *conn);

#endif
