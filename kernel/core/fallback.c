// SPDX-License-Identifier: GPL-2.0
/*
 * Fallback to TCP.
 *
 * A stream socket with EXS_SO_FALLBACK has a TCP socket beside it from its first bind(),
 * listen() or connect() on: xs->tcp, with a struct socket that no file has. It holds the
 * port of TCP's while the socket is bound, and listens while the socket does: accept()
 * gives away its connections as sockets that have nothing to do with us.
 *
 * When EXS cannot do what the program wants, TCP's sock does, and takes the place of ours:
 * sock->sk is exchanged, once, by one store, and it is TCP's socket for good (HANDED). The
 * file, its wait queue, and so epoll sets and duplicates of the descriptor, remain. Our sock
 * remains, too, until the socket is closed (it is found by the inode): a call may be in the
 * middle of it. There it finds the state HANDED, under op_lock, or when it is woken, returns
 * -EXS_ETCP, and the call is made once more, as TCP's.
 *
 * The exchange is made with op_lock and lock_sock held. A connect() of TCP's has begun by
 * then, and has not ended for anybody: poll() goes from "connecting" to "connecting".
 *
 * Once a socket has listened, xs->tcp stays until it is closed, as accept() looks there
 * without a lock; such a socket does not fall back in connect().
 */
#include <linux/module.h>
#include <linux/security.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>

#include "../compat/compat.h"
#include "../transport/verbs.h"
#include "fallback.h"
#include "stats.h"

#define exs_count_fallback(xn, why)						\
	exs_count_at(xn, count[EXS_COUNT_fallback_no_device + (why) -		\
			       EXS_FELL_BACK_NO_DEVICE], 1)

const struct proto_ops *exs_tcp_ops(struct socket *sock)
{
	const struct proto_ops *ops = READ_ONCE(sock->ops);

	/* One that was just accepted has TCP's own. */
	return ops == &exs_ops ? exs_once(sock)->tcp_ops : ops;
}

static void exs_sol_socket_give(const struct exs_sock *xs, struct sock *to)
{
	const struct sock *sk = &xs->sk;

	lock_sock(to);
	to->sk_reuse = sk->sk_reuse;
	to->sk_reuseport = sk->sk_reuseport;
	to->sk_priority = sk->sk_priority;
	to->sk_mark = sk->sk_mark;
	to->sk_rcvtimeo = sk->sk_rcvtimeo;
	to->sk_sndtimeo = sk->sk_sndtimeo;
	to->sk_lingertime = sk->sk_lingertime;
	sock_valbool_flag(to, SOCK_LINGER, sock_flag(sk, SOCK_LINGER));
	sock_valbool_flag(to, SOCK_URGINLINE, sock_flag(sk, SOCK_URGINLINE));
	if (to->sk_prot->keepalive)
		to->sk_prot->keepalive(to, sock_flag(sk, SOCK_KEEPOPEN));
	sock_valbool_flag(to, SOCK_KEEPOPEN, sock_flag(sk, SOCK_KEEPOPEN));
	WRITE_ONCE(to->sk_rcvlowat, sk->sk_rcvlowat);
	WRITE_ONCE(to->sk_peek_off, sk->sk_peek_off);
	sock_valbool_flag(to, SOCK_ZEROCOPY, sock_flag(sk, SOCK_ZEROCOPY));
	to->sk_userlocks |= sk->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(to->sk_sndbuf, sk->sk_sndbuf);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(to->sk_rcvbuf, sk->sk_rcvbuf);
	release_sock(to);
}

/* What the program has set by now; later it is TCP's own options that it sets. */
static void exs_tcp_settings(const struct exs_sock *xs, struct sock *to)
{
	exs_sol_socket_give(xs, to);
	exs_inet_give(xs, to);
	exs_tcp_give(xs, to);
}

/* Before it is bound, and only there. */
static void exs_tcp_place(const struct exs_sock *xs, struct sock *to)
{
	lock_sock(to);
	to->sk_bound_dev_if = READ_ONCE(xs->sk.sk_bound_dev_if);
	if (to->sk_family == AF_INET6)
		to->sk_ipv6only = xs->sk.sk_ipv6only;
	release_sock(to);
}

static bool exs_tcp_is_wanted(const struct exs_sock *xs)
{
	return exs_option(&xs->options, EXS_SO_FALLBACK) &&
	       !test_bit(EXS_SK_LISTENED, &xs->flags);
}

void exs_tcp_prepare(struct exs_sock *xs, int family)
{
	struct sock *sk = &xs->sk;

	lockdep_assert_held(&xs->op_lock);
	if (xs->tcp && (!exs_tcp_is_wanted(xs) || xs->tcp->sk->sk_family != family))
		exs_tcp_drop(xs);
	if (!exs_tcp_is_wanted(xs))
		return;
	/* Who may not have one has no fallback. */
	if (!xs->tcp && __sock_create(sock_net(sk), family, SOCK_STREAM, IPPROTO_TCP, &xs->tcp,
				      sk->sk_kern_sock))
		xs->tcp = NULL;
	if (!xs->tcp)
		return;
	if (exs_sock_state(xs) == EXS_UNCONNECTED)
		exs_tcp_place(xs, xs->tcp->sk);
	exs_tcp_settings(xs, xs->tcp->sk);
}

void exs_tcp_drop(struct exs_sock *xs)
{
	struct socket *tcp = xs->tcp;

	if (!exs_may_fall_back(xs))
		return;
	xs->tcp = NULL;
	sock_release(tcp);
}

int exs_tcp_bind(struct exs_sock *xs, struct sockaddr_storage *addr)
{
	struct sockaddr_storage name = {};
	int len = exs_addr_put(xs, addr, &name);
	int err;

	lockdep_assert_held(&xs->op_lock);
	err = kernel_bind(xs->tcp, (struct sockaddr_unsized *)&name, len);
	/* In the same place in both families. */
	((struct sockaddr_in *)addr)->sin_port = inet_sk(xs->tcp->sk)->inet_sport;
	return err;
}

/* @sk wakes those who wait at @sock, and is known by it. lock_sock(@sk) held. */
static void exs_tcp_graft(struct sock *sk, struct socket *sock)
{
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_pointer(sk->sk_wq, &sock->wq);
	sk_set_socket(sk, sock);
	security_sock_graft(sk, sock);
	/* Whether anybody wants SIGIO is looked up in the wait queue. */
	sock_set_flag(sk, SOCK_FASYNC);
	write_unlock_bh(&sk->sk_callback_lock);
}

int exs_tcp_listen(struct exs_sock *xs, int backlog)
{
	struct sock *sk = xs->tcp->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	exs_tcp_settings(xs, sk);
	lock_sock(sk);
	/* shutdown() does not give back the port, whoever chose it: EXS has the same. */
	sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
	release_sock(sk);
	err = xs->tcp->ops->listen(xs->tcp, backlog);
	if (err)
		return err;
	lock_sock(sk);
	exs_tcp_graft(sk, xs->sk.sk_socket);
	release_sock(sk);
	return 0;
}

void exs_tcp_unlisten(struct exs_sock *xs)
{
	lockdep_assert_held(&xs->op_lock);
	if (xs->tcp)
		xs->tcp->ops->shutdown(xs->tcp, SHUT_RD);
}

bool exs_tcp_is_waiting(struct exs_sock *xs)
{
	return exs_sock_state(xs) == EXS_LISTENING && xs->tcp &&
	       inet_csk_listen_poll(xs->tcp->sk);
}

/* From now on it is TCP's, and holds TCP's module in place of ours. */
void exs_tcp_adopt(struct socket *newsock, const struct proto_ops *ops)
{
	__module_get(ops->owner);
	WRITE_ONCE(newsock->ops, ops);
	module_put(THIS_MODULE);
}

int exs_tcp_accept(struct exs_sock *xs, struct socket *newsock, struct proto_accept_arg *arg)
{
	struct proto_accept_arg now = { .flags = arg->flags | O_NONBLOCK, .kern = arg->kern };
	struct socket *tcp = xs->tcp;
	int err;

	err = exs_compat_call_accept(tcp, tcp->ops, newsock, &now);
	/* Another thread was quicker; or it listens no more, as we are about to see. */
	if (err == -EAGAIN || err == -EINVAL)
		return -EXS_ETCP;
	if (err)
		return err;
	exs_tcp_adopt(newsock, tcp->ops);
	/* It has what the listener had when the connection came. */
	exs_tcp_settings(xs, newsock->sk);
	exs_count(exs_net(sock_net(&xs->sk)), accepts_tcp, 1);
	return 0;
}

int exs_fallback_at_once(struct exs_sock *xs, const struct sockaddr_storage *peer)
{
	struct exs_net *xn = exs_net(sock_net(&xs->sk));

	if (!exs_may_fall_back(xs))
		return EXS_FELL_BACK_NOT;
	if (!exs_sysctl_cap(xn, enabled))
		return EXS_FELL_BACK_DISABLED;
	if (exs_sock_check_promises(&xs->sk))
		return EXS_FELL_BACK_OPTION;
	if (peer && exs_peer_is_silent(xn, peer))
		return EXS_FELL_BACK_REMEMBERED;
	return EXS_FELL_BACK_NOT;
}

int exs_fallback_why(int err)
{
	switch (err) {
	case -ENODEV:
		return EXS_FELL_BACK_NO_DEVICE;
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return EXS_FELL_BACK_NO_ROUTE;
	case -ETIMEDOUT:
		return EXS_FELL_BACK_NO_ANSWER;
	case -ECONNREFUSED:
		return EXS_FELL_BACK_REFUSED;
	case -EPROTONOSUPPORT:
	case -EPROTOTYPE:
	case -EPROTO:
		return EXS_FELL_BACK_VERSION;
	case -ENOBUFS:
		return EXS_FELL_BACK_LIMIT;
	case -ENOMEM:
		return EXS_FELL_BACK_NOMEM;
	case -ESOCKTNOSUPPORT:
		return EXS_FELL_BACK_IWARP;
	case -EADDRINUSE:
		return EXS_FELL_BACK_PORT;
	default:
		return EXS_FELL_BACK_OTHER;
	}
}

/* lock_sock held. */
static void exs_hand_over(struct exs_sock *xs, int why)
{
	struct socket *sock = xs->sk.sk_socket, *tcp = xs->tcp;
	struct sock *sk = tcp->sk;

	sock_owned_by_me(&xs->sk);
	xs->why = why;
	xs->tcp_ops = tcp->ops;
	SOCK_INODE(sock)->i_private = xs;
	lock_sock(sk);
	exs_tcp_graft(sk, sock);
	sock->state = tcp->state;
	tcp->sk = NULL;
	/* Who sees it sees all that it needs: pairs with exs_of(). */
	smp_store_release(&sock->sk, sk);
	release_sock(sk);
	exs_change_state(xs, EXS_HANDED);
}

int exs_fall_back(struct exs_sock *xs, int why)
{
	struct exs_verbs_listener *bound = xs->bound;
	struct socket *tcp = xs->tcp;
	struct sock *sk = &xs->sk;

	lockdep_assert_held(&xs->op_lock);
	lock_sock(sk);
	exs_hand_over(xs, why);
	release_sock(sk);
	exs_count_fallback(exs_net(sock_net(sk)), why);
	xs->tcp = NULL;
	sock_release(tcp);
	xs->bound = NULL;
	if (bound)
		exs_verbs_unbind(bound);
	/* Whoever waits looks again; what TCP has to say may have been said before. */
	sk->sk_state_change(sk);
	return -EXS_ETCP;
}

/*
 * As if connect() had said EINPROGRESS: what it says of the end is TCP's next answer. It
 * is kept where TCP would have it.
 */
static void exs_tcp_failed(struct socket *tcp, int err)
{
	lock_sock(tcp->sk);
	tcp->state = SS_CONNECTING;
	WRITE_ONCE(tcp->sk->sk_err, -err);
	release_sock(tcp->sk);
}

int exs_fall_back_connect(struct exs_sock *xs, int why)
{
	struct exs_net *xn = exs_net(sock_net(&xs->sk));
	struct sockaddr_storage peer = {};
	int len = exs_addr_put(xs, &xs->peer, &peer);
	struct sock *sk = xs->tcp->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (why == EXS_FELL_BACK_NO_ANSWER)
		exs_peer_silent(xn, &xs->peer);
	/* Some may have been set while EXS tried. */
	exs_tcp_settings(xs, sk);
	err = kernel_connect(xs->tcp, (struct sockaddr_unsized *)&peer, len, O_NONBLOCK);
	if (err && err != -EINPROGRESS)
		exs_tcp_failed(xs->tcp, err);
	err = exs_fall_back(xs, why);
	if (READ_ONCE(sk->sk_state) != TCP_SYN_SENT)
		sk_wake_async(&xs->sk, SOCK_WAKE_IO, POLL_OUT);
	return err;
}

int exs_fall_back_now(struct exs_sock *xs)
{
	int err = -EINVAL;
	bool idle;

	mutex_lock(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_UNCONNECTED && xs->sk.sk_family != exs_family) {
		WRITE_ONCE(xs->options.value[EXS_SO_FALLBACK], 1);
		exs_tcp_prepare(xs, xs->sk.sk_family);
	}
	idle = exs_sock_state(xs) == EXS_UNCONNECTED || exs_sock_state(xs) == EXS_BOUND;
	if (idle && exs_may_fall_back(xs)) {
		exs_fall_back(xs, EXS_FELL_BACK_RULE);
		err = 0;
	}
	mutex_unlock(&xs->op_lock);
	return err;
}
