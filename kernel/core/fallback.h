/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fallback to TCP: see fallback.c.
 */
#ifndef EXS_CORE_FALLBACK_H
#define EXS_CORE_FALLBACK_H

#include <linux/exs.h>

#include "../compat/compat.h"
#include "core.h"

/*
 * Returned by the socket's calls inside core/: the socket is TCP's by now, and the call
 * must be made on TCP. No program sees it.
 */
#define EXS_ETCP	1024

/* Our sock, or NULL: the socket is TCP's. */
static inline struct exs_sock *exs_of(const struct socket *sock)
{
	struct sock *sk = READ_ONCE(sock->sk);

	return likely(exs_sk_is_exs(sk)) ? exs_sk(sk) : NULL;
}

/* Our sock, even if the socket is TCP's by now. */
static inline struct exs_sock *exs_once(struct socket *sock)
{
	struct exs_sock *xs = exs_of(sock);

	if (likely(xs))
		return xs;
	/* Pairs with exs_hand_over(). */
	smp_rmb();
	return SOCK_INODE(sock)->i_private;
}

/* TCP's calls, for a socket that is TCP's. */
const struct proto_ops *exs_tcp_ops(struct socket *sock);

/* Whether TCP would take over. op_lock held. */
static inline bool exs_may_fall_back(const struct exs_sock *xs)
{
	return xs->tcp && !test_bit(EXS_SK_LISTENED, &xs->flags);
}

/* All with op_lock held, and not lock_sock. */

/* Create a TCP socket xs->tcp for @xs, if it may fall back; @family: of its addresses. */
void exs_tcp_prepare(struct exs_sock *xs, int family);
/* It is not needed any more. */
void exs_tcp_drop(struct exs_sock *xs);

/* Bind xs->tcp to @addr, which becomes what it is bound to. */
int exs_tcp_bind(struct exs_sock *xs, struct sockaddr_storage *addr);
/* It listens, and wakes threads that wait at the socket. */
int exs_tcp_listen(struct exs_sock *xs, int backlog);
void exs_tcp_unlisten(struct exs_sock *xs);
/* It was bound to another interface. No lock. */
void exs_tcp_place_listener(struct exs_sock *xs);

/* Why no attempt is needed, or EXS_FELL_BACK_NOT. @peer may be NULL. */
int exs_fallback_at_once(struct exs_sock *xs, const struct sockaddr_storage *peer);
/* The reason for a negative errno. */
int exs_fallback_why(int err);

/*
 * connect(2) goes on by TCP. @start: when it was called, in jiffies, as SO_SNDTIMEO is for all
 * of it; @first: it was the program's first call, and has begun TCP's connect.
 */
int exs_tcp_connect(struct socket *sock, struct sockaddr_unsized *uaddr, int len, int flags,
		    unsigned long start, bool first);

/*
 * The attempt to connect ended without an answer. Later ones do not wait for this peer, unless
 * the program gave up too soon to tell, or chose the device.
 */
void exs_peer_did_not_answer(struct exs_sock *xs);

/*
 * The socket becomes TCP's, as xs->tcp is. Return: -EXS_ETCP.
 */
int exs_fall_back(struct exs_sock *xs, int why);
/* Likewise, and TCP begins to connect to xs->peer. */
int exs_fall_back_connect(struct exs_sock *xs, int why);

/*
 * A new or bound socket falls back now, for reason @why, even if its EXS_SO_FALLBACK is 0. No
 * lock. Return: 0 or -EINVAL: it is too late, or it has no family.
 */
int exs_fall_back_now(struct exs_sock *xs, int why);

/* A TCP connection waits at the listening @xs. No lock. */
bool exs_tcp_is_waiting(struct exs_sock *xs);
/* @newsock has a sock of TCP, and gets TCP's calls, @ops. */
void exs_tcp_set_ops(struct socket *newsock, const struct proto_ops *ops);
/*
 * accept(2) of a TCP connection, without waiting. No lock. Return: 0, -EXS_ETCP: check
 * again; or an errno.
 */
int exs_tcp_accept(struct exs_sock *xs, struct socket *newsock, struct proto_accept_arg *arg);

#endif
