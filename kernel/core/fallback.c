// SPDX-License-Identifier: GPL-2.0
/*
 * Fallback to TCP.
 *
 * A stream socket with EXS_SO_FALLBACK has a TCP socket beside it from its first bind(),
 * listen() or connect() on: xs->tcp, with a struct socket that no file has. It holds the
 * TCP port while the socket is bound, and listens while the socket does. accept()
 * returns its connections as plain TCP sockets.
 *
 * When EXS cannot do what the program wants, TCP's sock takes the place of ours: sock->sk is
 * exchanged, once, by one store, and the socket is TCP's for good (HANDED). The file and its
 * wait queue remain, and with them epoll sets and duplicates of the descriptor. Our sock also
 * remains until the socket is closed (the inode refers to it), as a call may still use it. Such
 * a call finds the state HANDED, under op_lock or when it is woken, and returns -EXS_ETCP. Then
 * it is made again on TCP.
 *
 * The exchange is made with op_lock and lock_sock held. TCP's connect() has begun by
 * then, and its end was not reported yet: poll() goes from "connecting" to
 * "connecting".
 *
 * Once a socket has listened, xs->tcp stays until it is closed, as accept() looks there
 * without a lock; such a socket does not fall back in connect().
 */
#include <linux/module.h>
#include <linux/security.h>
#include <linux/tcp.h>
#include <net/inet_common.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>

#include "../compat/compat.h"
#include "transport.h"
#include "fallback.h"
#include "stats.h"

#define exs_count_fallback(xn, why)						\
	exs_count_at(xn, EXS_COUNT_fallback_no_device + (why) - EXS_FELL_BACK_NO_DEVICE, 1)

const struct proto_ops *exs_tcp_ops(struct socket *sock)
{
	const struct proto_ops *ops = READ_ONCE(sock->ops);

	/* A socket that accept() made has TCP's own calls. */
	return ops == &exs_ops ? exs_once(sock)->tcp_ops : ops;
}

const struct sock *exs_sock_once(struct socket *sock)
{
	return READ_ONCE(sock->ops) == &exs_ops ? &exs_once(sock)->sk : NULL;
}

static void exs_flags_give(const struct sock *sk, struct sock *to)
{
	lock_sock(to);
	to->sk_flags = (to->sk_flags & ~EXS_OPTION_FLAGS) | (sk->sk_flags & EXS_OPTION_FLAGS);
	if (to->sk_prot->keepalive)
		to->sk_prot->keepalive(to, sock_flag(sk, SOCK_KEEPOPEN));
	sock_valbool_flag(to, SOCK_KEEPOPEN, sock_flag(sk, SOCK_KEEPOPEN));
	release_sock(to);
}

/* Packets have no timestamps until a socket asks for them. */
static void exs_timestamps_give(const struct sock *sk, struct socket *to)
{
	bool new = sock_flag(sk, SOCK_TSTAMP_NEW), ns = sock_flag(sk, SOCK_RCVTSTAMPNS);
	int value = sock_flag(sk, SOCK_RCVTSTAMP), name;

	if (value == sock_flag(to->sk, SOCK_RCVTSTAMP) &&
	    ns == sock_flag(to->sk, SOCK_RCVTSTAMPNS) &&
	    new == sock_flag(to->sk, SOCK_TSTAMP_NEW))
		return;
	if (ns)
		name = new ? SO_TIMESTAMPNS_NEW : SO_TIMESTAMPNS_OLD;
	else
		name = new ? SO_TIMESTAMP_NEW : SO_TIMESTAMP_OLD;
	sock_setsockopt(to, SOL_SOCKET, name, KERNEL_SOCKPTR(&value), sizeof(value));
}

/* It selects among listeners that share a port. TCP itself sets it for a connection. */
static void exs_incoming_cpu_give(const struct sock *sk, struct socket *to)
{
	int cpu = READ_ONCE(sk->sk_incoming_cpu);

	if (BIT(READ_ONCE(to->sk->sk_state)) & (TCPF_CLOSE | TCPF_LISTEN) &&
	    cpu != READ_ONCE(to->sk->sk_incoming_cpu))
		sock_setsockopt(to, SOL_SOCKET, SO_INCOMING_CPU, KERNEL_SOCKPTR(&cpu),
				sizeof(cpu));
}

static void exs_pacing_give(const struct sock *sk, struct sock *to)
{
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	if (rate == READ_ONCE(to->sk_max_pacing_rate))
		return;
	cmpxchg(&to->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(to->sk_max_pacing_rate, rate);
	WRITE_ONCE(to->sk_pacing_rate, min(READ_ONCE(to->sk_pacing_rate), rate));
}

static void exs_sol_socket_give(const struct exs_sock *xs, struct sock *to)
{
	const struct sock *sk = &xs->sk;

	exs_flags_give(sk, to);
	lock_sock(to);
	to->sk_reuse = sk->sk_reuse;
	to->sk_reuseport = sk->sk_reuseport;
	/* Values that the program has not set may come from the packet, or from a BPF program. */
	if (sk->sk_priority != xs->given_priority)
		to->sk_priority = sk->sk_priority;
	if (sk->sk_mark != xs->given_mark)
		to->sk_mark = sk->sk_mark;
	to->sk_rcvtimeo = sk->sk_rcvtimeo;
	to->sk_sndtimeo = sk->sk_sndtimeo;
	to->sk_lingertime = sk->sk_lingertime;
	exs_pacing_give(sk, to);
	exs_sock_hints_give(sk, to);
	WRITE_ONCE(to->sk_rcvlowat, sk->sk_rcvlowat);
	WRITE_ONCE(to->sk_peek_off, sk->sk_peek_off);
	to->sk_userlocks |= sk->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(to->sk_sndbuf, sk->sk_sndbuf);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(to->sk_rcvbuf, sk->sk_rcvbuf);
	release_sock(to);
}

/* The options that the program has set; from now on it sets TCP's own. */
static void exs_tcp_options(const struct exs_sock *xs, struct socket *to)
{
	u32 priority = READ_ONCE(to->sk->sk_priority);

	exs_timestamps_give(&xs->sk, to);
	exs_inet_give(xs, to->sk);
	/* IP_TOS has set it, too; at our socket it did so when the program set IP_TOS. */
	WRITE_ONCE(to->sk->sk_priority, priority);
	exs_sol_socket_give(xs, to->sk);
	exs_tcp_give(xs, to->sk);
}

/* The same for the TCP socket beside @xs. op_lock held. */
static void exs_tcp_options_beside(struct exs_sock *xs)
{
	exs_tcp_options(xs, xs->tcp);
	exs_incoming_cpu_give(&xs->sk, xs->tcp);
	xs->given_priority = xs->sk.sk_priority;
	xs->given_mark = xs->sk.sk_mark;
}

/* SO_BINDTODEVICE and IPV6_V6ONLY: which interfaces and addresses it uses. */
static void exs_tcp_place(struct exs_sock *xs, struct sock *to)
{
	int device = READ_ONCE(xs->sk.sk_bound_dev_if);

	lock_sock(to);
	/* A BPF program may have bound it elsewhere. */
	if (device != xs->given_device) {
		to->sk_bound_dev_if = device;
		sk_dst_reset(to);
		xs->given_device = device;
	}
	/* bind() to an IPv6 address sets it. */
	if (to->sk_family == AF_INET6 && !inet_sk(to)->inet_num)
		to->sk_ipv6only = xs->sk.sk_ipv6only;
	release_sock(to);
}

/* Before it connects or listens: it gets all that the program has set until now. */
static void exs_tcp_settings(struct exs_sock *xs)
{
	lockdep_assert_held(&xs->op_lock);
	exs_tcp_place(xs, xs->tcp->sk);
	exs_tcp_options_beside(xs);
}

static bool exs_tcp_is_wanted(const struct exs_sock *xs)
{
	return exs_option(&xs->options, EXS_SO_FALLBACK) &&
	       !test_bit(EXS_SK_LISTENED, &xs->flags);
}

/* If the process may not create one, there is no fallback. */
static void exs_tcp_create(struct exs_sock *xs, int family)
{
	struct sock *sk = &xs->sk;
	int err;

	xs->given_priority = 0;
	xs->given_mark = 0;
	xs->given_device = 0;
	err = __sock_create(sock_net(sk), family, SOCK_STREAM, IPPROTO_TCP, &xs->tcp,
			    sk->sk_kern_sock);
	if (err) {
		xs->tcp = NULL;
		return;
	}
	/* The owner, whichever user binds or connects it. */
	WRITE_ONCE(xs->tcp->sk->sk_uid, READ_ONCE(sk->sk_uid));
	exs_cgroup_give(sk, xs->tcp->sk);
}

void exs_tcp_prepare(struct exs_sock *xs, int family)
{
	lockdep_assert_held(&xs->op_lock);
	if (xs->tcp && (!exs_tcp_is_wanted(xs) || xs->tcp->sk->sk_family != family))
		exs_tcp_drop(xs);
	if (!exs_tcp_is_wanted(xs))
		return;
	if (!xs->tcp)
		exs_tcp_create(xs, family);
	if (xs->tcp)
		exs_tcp_settings(xs);
}

void exs_tcp_drop(struct exs_sock *xs)
{
	struct socket *tcp = xs->tcp;

	if (!exs_may_fall_back(xs))
		return;
	xs->tcp = NULL;
	sock_release(tcp);
}

/*
 * EXS has its port from bind(2) on, whatever IP_BIND_ADDRESS_NO_PORT says, and TCP must have
 * the same. The option itself is given later, with the others.
 */
static void exs_tcp_port_now(struct sock *sk)
{
	int off = 0;

	sk->sk_prot->setsockopt(sk, SOL_IP, IP_BIND_ADDRESS_NO_PORT, KERNEL_SOCKPTR(&off),
				sizeof(off));
}

int exs_tcp_bind(struct exs_sock *xs, struct sockaddr_storage *addr)
{
	struct sockaddr_storage name = {};
	int len = exs_addr_put(xs, addr, &name);
	const struct sock *sk = xs->tcp->sk;
	const struct in6_addr *in6;
	int err;

	lockdep_assert_held(&xs->op_lock);
	exs_tcp_port_now(xs->tcp->sk);
	err = kernel_bind(xs->tcp, (struct sockaddr_unsized *)&name, len);
	if (err)
		return err;
	/* A BPF program may have changed the address, too. */
	in6 = inet6_rcv_saddr(sk);
	if (addr->ss_family == AF_INET6 && in6)
		((struct sockaddr_in6 *)addr)->sin6_addr = *in6;
	else
		((struct sockaddr_in *)addr)->sin_addr.s_addr = inet_sk(sk)->inet_rcv_saddr;
	/* The port has the same place in both families. */
	((struct sockaddr_in *)addr)->sin_port = inet_sk(sk)->inet_sport;
	return 0;
}

/* @sk wakes threads that wait at @sock, and belongs to it. lock_sock(@sk) held. */
static void exs_tcp_graft(struct sock *sk, struct socket *sock)
{
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_pointer(sk->sk_wq, &sock->wq);
	sk_set_socket(sk, sock);
	/* The user who called socket(2), as with TCP, not the one who called bind(2). */
	WRITE_ONCE(sk->sk_uid, SOCK_INODE(sock)->i_uid);
	security_sock_graft(sk, sock);
	/* The wait queue shows whether SIGIO is wanted. */
	sock_set_flag(sk, SOCK_FASYNC);
	write_unlock_bh(&sk->sk_callback_lock);
}

void exs_tcp_place_listener(struct exs_sock *xs)
{
	mutex_lock(&xs->op_lock);
	if (exs_sock_state(xs) == EXS_LISTENING && xs->tcp) {
		exs_tcp_place(xs, xs->tcp->sk);
		exs_incoming_cpu_give(&xs->sk, xs->tcp);
	}
	mutex_unlock(&xs->op_lock);
}

int exs_tcp_listen(struct exs_sock *xs, int backlog)
{
	struct sock *sk = xs->tcp->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	exs_tcp_settings(xs);
	lock_sock(sk);
	/*
	 * shutdown() keeps the port, whether the program or the kernel chose it. EXS has
	 * the same port.
	 */
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

/* From now on the calls of @newsock are TCP's. It holds TCP's module instead of this one. */
void exs_tcp_set_ops(struct socket *newsock, const struct proto_ops *ops)
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
	/*
	 * Another thread was faster; or the socket does not listen any more, which the
	 * caller will see.
	 */
	if (err == -EAGAIN || err == -EINVAL)
		return -EXS_ETCP;
	if (err)
		return err;
	exs_tcp_set_ops(newsock, tcp->ops);
	/* It has the listener's options of the time when the connection came. */
	exs_tcp_options(xs, newsock);
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
	if (peer && exs_peer_is_silent(xn, peer, READ_ONCE(xs->sk.sk_uid)))
		return EXS_FELL_BACK_REMEMBERED;
	return EXS_FELL_BACK_NOT;
}

int exs_fallback_why(int err)
{
	switch (err) {
	case -ENODEV:
	case -EADDRNOTAVAIL:
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
	case -EBUSY:
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
	/* A thread that sees this sees everything before it: pairs with exs_once(). */
	smp_store_release(&sock->sk, sk);
	release_sock(sk);
	exs_change_state(xs, EXS_HANDED);
}

int exs_fall_back(struct exs_sock *xs, int why)
{
	struct exs_bound *bound = xs->bound;
	struct socket *tcp = xs->tcp;
	struct sock *sk = &xs->sk;

	lockdep_assert_held(&xs->op_lock);
	/* connect() has done that before TCP's began. */
	if (exs_sock_state(xs) != EXS_CONNECTING)
		exs_tcp_place(xs, tcp->sk);
	lock_sock(sk);
	/* Those set until now; see exs_setsockopt(). */
	exs_tcp_options_beside(xs);
	exs_hand_over(xs, why);
	release_sock(sk);
	/* An operation that waits for connect(2) would wait for ever. */
	exs_connect_refuse(xs, -ECANCELED);
	exs_count_fallback(exs_net(sock_net(sk)), why);
	xs->tcp = NULL;
	sock_release(tcp);
	xs->bound = NULL;
	if (bound)
		exs_transport.unbind(bound);
	/* Waiting threads check again; TCP's own wake-up may have come earlier. */
	sk->sk_state_change(sk);
	return -EXS_ETCP;
}

/*
 * As if connect() had returned EINPROGRESS: TCP's next answer is the result, stored where
 * TCP stores it.
 */
static void exs_tcp_failed(struct exs_sock *xs, int err)
{
	struct socket *tcp = xs->tcp;

	set_bit(EXS_SK_TCP_FAILED, &xs->flags);
	lock_sock(tcp->sk);
	tcp->state = SS_CONNECTING;
	WRITE_ONCE(tcp->sk->sk_err, -err);
	release_sock(tcp->sk);
}

/*
 * As kernel_connect() without waiting, but BPF programs of cgroups have seen this connect(2), and
 * may have changed the address.
 */
static int exs_tcp_begin(struct socket *tcp, struct sockaddr_storage *peer, int len)
{
	struct sock *sk = tcp->sk;
	int err;

	lock_sock(sk);
	err = sk->sk_prot->connect(sk, (struct sockaddr_unsized *)peer, len);
	if (!err)
		tcp->state = SS_CONNECTING;
	release_sock(sk);
	return err;
}

static bool exs_tcp_is_connecting(const struct sock *sk)
{
	return (1 << inet_sk_state_load(sk)) & (TCPF_SYN_SENT | TCPF_SYN_RECV);
}

/* Wait for TCP's connect(), which has begun. Return: its result, -EALREADY: there is none yet. */
static int exs_tcp_wait(struct socket *sock, long timeo)
{
	struct sock *sk = sock->sk;
	int err;

	if (wait_event_interruptible_timeout(*sk_sleep(sk), !exs_tcp_is_connecting(sk), timeo) < 0)
		return sock_intr_errno(timeo);
	lock_sock(sk);
	/* Another thread has ended it, or has got the result. Do not connect again. */
	if (sock->state == SS_UNCONNECTED)
		err = sock_error(sk) ?: -ECONNABORTED;
	else
		err = __inet_stream_connect(sock, NULL, 0, O_NONBLOCK, 0);
	release_sock(sk);
	return err;
}

int exs_tcp_connect(struct socket *sock, struct sockaddr_unsized *uaddr, int len, int flags,
		    unsigned long start, bool first)
{
	long timeo = sock_sndtimeo(sock->sk, flags & O_NONBLOCK);
	struct exs_sock *xs = exs_once(sock);
	int err;

	/* bind() or listen() of another thread fell back. */
	if (!test_bit(EXS_SK_TCP_BEGUN, &xs->flags))
		return exs_tcp_ops(sock)->connect(sock, uaddr, len, flags);
	/* The first call returns this as TCP does, even if the attempt has ended meanwhile. */
	if (first && !timeo && !test_bit(EXS_SK_TCP_FAILED, &xs->flags))
		return -EINPROGRESS;
	if (timeo && timeo != MAX_SCHEDULE_TIMEOUT)
		timeo = max_t(long, timeo - (jiffies - start), 0);
	err = exs_tcp_wait(sock, timeo);
	return err == -EALREADY && first ? -EINPROGRESS : err;
}

/* With TCP_FASTOPEN_CONNECT the first send would connect; but connect() has begun long ago. */
static void exs_tcp_connects_now(struct sock *sk)
{
	lock_sock(sk);
	tcp_sk(sk)->fastopen_connect = 0;
	release_sock(sk);
}

/* Netfilter finds the owner of a packet by the socket's file: set it before the first packet. */
static void exs_tcp_own(struct exs_sock *xs, struct sock *sk)
{
	lock_sock(sk);
	sk_set_socket(sk, xs->sk.sk_socket);
	release_sock(sk);
}

void exs_peer_did_not_answer(struct exs_sock *xs)
{
	struct exs_net *xn = exs_net(sock_net(&xs->sk));
	unsigned int enough = exs_sysctl(xn, fallback_timeout) / 4;

	lockdep_assert_held(&xs->op_lock);
	if (!xs->own_way)
		exs_peer_silent(xn, &xs->peer, READ_ONCE(xs->sk.sk_uid), jiffies - xs->began,
				msecs_to_jiffies(enough));
}

int exs_fall_back_connect(struct exs_sock *xs, int why)
{
	struct sockaddr_storage peer = {};
	int len = exs_addr_put(xs, &xs->peer, &peer);
	struct sock *sk = xs->tcp->sk;
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (why == EXS_FELL_BACK_NO_ANSWER)
		exs_peer_did_not_answer(xs);
	/* Some may have been set during the EXS attempt. */
	exs_tcp_settings(xs);
	exs_tcp_connects_now(sk);
	exs_tcp_own(xs, sk);
	set_bit(EXS_SK_TCP_BEGUN, &xs->flags);
	err = exs_tcp_begin(xs->tcp, &peer, len);
	if (err)
		exs_tcp_failed(xs, err);
	err = exs_fall_back(xs, why);
	if (READ_ONCE(sk->sk_state) != TCP_SYN_SENT)
		sk_wake_async(&xs->sk, SOCK_WAKE_IO, POLL_OUT);
	return err;
}

int exs_fall_back_now(struct exs_sock *xs, int why)
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
		exs_fall_back(xs, why);
		err = 0;
	}
	mutex_unlock(&xs->op_lock);
	return err;
}
