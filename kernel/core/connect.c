// SPDX-License-Identifier: GPL-2.0
/*
 * connect().
 *
 * An attempt is a connection of its own (xs->attempt) until it is decided. If it comes up,
 * it becomes the socket's connection. If it fails, it is discarded and the socket is as
 * before. The task in connect(2) decides while the transport has the attempt
 * (xs->starting), so that connect(2) can return the result itself. Afterwards a worker
 * decides.
 *
 * struct socket's state is used as TCP does: SS_CONNECTING from the beginning of
 * an attempt until a connect(2) has reported its end, so that the call after a
 * non-blocking connect() returns 0 or the error once, and EISCONN after that.
 *
 * The failure of an attempt beside a TCP socket (xs->tcp) is not reported: TCP connects
 * instead (fallback.c). So op_lock is held for the decision.
 */
#include <linux/jiffies.h>
#include <linux/net.h>
#include <net/ipv6.h>

#include "transport.h"
#include "core.h"
#include "fallback.h"
#include "run.h"
#include "stats.h"

/* The rest of a decision: for exs_decision_finish(), without lock_sock. */
struct exs_decision {
	struct exs_conn *drop;
	struct exs_waiter *waiter;
	int err;
	bool falls_back;
};

static void exs_decision_finish(struct exs_decision *s)
{
	if (s->drop) {
		exs_conn_orphan(s->drop, 0);
		exs_conn_put(s->drop);
	}
	if (s->waiter)
		s->waiter->fn(s->waiter, s->err, NULL);
}

static struct exs_waiter *exs_take_waiter(struct exs_sock *xs)
{
	sock_owned_by_me(&xs->sk);
	return xchg(&xs->connect_waiter, NULL);
}

static void exs_attempt_up(struct exs_sock *xs, struct exs_conn *conn)
{
	struct exs_net *xn = exs_net(sock_net(&xs->sk));

	sock_owned_by_me(&xs->sk);
	exs_sock_connected(xs, conn);
	/* The connection may have ended already. */
	exs_sock_publish_error(xs);
	exs_count(xn, connects, 1);
	if (conn->falls_back)
		exs_peer_answered(xn, &xs->peer, READ_ONCE(xs->sk.sk_uid));
}

/* Back to the socket's former state. */
static void exs_attempt_reset(struct exs_sock *xs)
{
	sock_owned_by_me(&xs->sk);
	exs_change_state(xs, test_bit(EXS_SK_BOUND, &xs->flags) ? EXS_BOUND : EXS_UNCONNECTED);
}

static void exs_attempt_failed(struct exs_sock *xs, int err)
{
	struct sock *sk = &xs->sk;

	if (err == ECONNREFUSED)
		exs_count(exs_net(sock_net(&xs->sk)), connect_refused, 1);
	/* First, because poll() reads the state without lock_sock. */
	WRITE_ONCE(sk->sk_err, err ?: ECONNABORTED);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	exs_attempt_reset(xs);
}

/*
 * Decide the attempt if the transport has finished with it. lock_sock held;
 * exs_decision_finish() after it is released.
 */
static bool exs_attempt_decide(struct exs_sock *xs, struct exs_decision *s)
{
	struct exs_conn *conn = xs->attempt;
	bool up, over;
	int err;

	sock_owned_by_me(&xs->sk);
	memset(s, 0, sizeof(*s));
	if (!conn)
		return false;
	spin_lock(&conn->lock);
	up = conn->engine_up;
	over = conn->state >= EXS_CONN_CLOSING;
	err = conn->end_err;
	spin_unlock(&conn->lock);
	if (!up && !over)
		return false;

	WRITE_ONCE(xs->attempt, NULL);
	s->waiter = exs_take_waiter(xs);
	if (up) {
		exs_attempt_up(xs, conn);
		return true;
	}
	s->drop = conn;
	s->falls_back = conn->falls_back;
	if (s->falls_back) {
		s->err = -err;
	} else {
		exs_sock_name(xs, conn);
		exs_attempt_failed(xs, err);
		s->err = -xs->sk.sk_err;
	}
	return true;
}

/* The attempt was decided: wake threads that poll or wait. */
static void exs_attempt_wake(struct sock *sk)
{
	sk->sk_state_change(sk);
	if (READ_ONCE(sk->sk_err))
		sk_error_report(sk);
	else
		sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/* An attempt was decided: TCP takes over, or is not needed, or the socket's users are woken. */
static void exs_attempt_decided(struct exs_sock *xs, struct exs_decision *s)
{
	lockdep_assert_held(&xs->op_lock);
	if (s->falls_back)
		exs_fall_back_connect(xs, exs_fallback_why(s->err));
	else
		exs_attempt_wake(&xs->sk);
	if (exs_sock_state(xs) == EXS_CONNECTED)
		exs_tcp_drop(xs);
	exs_decision_finish(s);
}

static void exs_attempt_end(struct exs_sock *xs)
{
	struct sock *sk = &xs->sk;
	struct exs_decision s;
	bool by_us = false, decided;

	mutex_lock(&xs->op_lock);
	lock_sock(sk);
	if (!xs->starting)
		by_us = exs_attempt_decide(xs, &s);
	decided = !xs->attempt;
	release_sock(sk);
	if (by_us)
		exs_attempt_decided(xs, &s);
	mutex_unlock(&xs->op_lock);
	if (!by_us && decided) {
		/* exs_sock_wake() may have looked before the decision. */
		sk->sk_state_change(sk);
	}
}

void exs_attempt_kick(struct exs_sock *xs)
{
	sock_hold(&xs->sk);
	if (!queue_work(exs_attempt_wq, &xs->attempt_work))
		sock_put(&xs->sk);
}

static void exs_attempt_again(struct exs_turn *turn)
{
	exs_attempt_kick(container_of(turn, struct exs_sock, turn));
}

void exs_attempt_leave(struct exs_sock *xs)
{
	if (xs->user && exs_turn_withdraw(xs->user, &xs->turn))
		sock_put(&xs->sk);
}

/* The work holds the socket while it waits for its turn. A closed socket does not wait. */
static void exs_attempt_work(struct work_struct *work)
{
	struct exs_sock *xs = container_of(work, struct exs_sock, attempt_work);
	struct exs_user *user = xs->user;
	int turn;

	sock_hold(&xs->sk);
	turn = exs_turn_take(user, &xs->turn);
	if (turn)
		sock_put(&xs->sk);
	else if (exs_sock_state(xs) == EXS_CLOSED)
		exs_attempt_leave(xs);
	if (turn > 0) {
		exs_attempt_end(xs);
		exs_turn_pass(user, EXS_POOL_ATTEMPT);
	}
	if (turn == EXS_TURN_WAITED)
		sock_put(&xs->sk);
	sock_put(&xs->sk);
}

void exs_attempt_init(struct exs_sock *xs)
{
	INIT_WORK(&xs->attempt_work, exs_attempt_work);
	exs_turn_init(&xs->turn, EXS_POOL_ATTEMPT, exs_attempt_again);
}

static bool exs_attempt_unanswered(struct exs_conn *conn)
{
	bool unanswered;

	spin_lock(&conn->lock);
	unanswered = conn->falls_back && conn->state == EXS_CONN_CONNECTING && !conn->engine_up;
	spin_unlock(&conn->lock);
	return unanswered;
}

void exs_connect_abort(struct exs_sock *xs, int err)
{
	struct exs_decision s = { .err = -ECANCELED };
	struct sock *sk = &xs->sk;

	lock_sock(sk);
	s.drop = xs->attempt;
	if (s.drop) {
		if (exs_attempt_unanswered(s.drop))
			exs_peer_did_not_answer(xs);
		WRITE_ONCE(xs->attempt, NULL);
		s.waiter = exs_take_waiter(xs);
		xs->starting = false;
		WRITE_ONCE(sk->sk_err, err);
		exs_attempt_reset(xs);
	}
	release_sock(sk);
	if (s.drop)
		exs_attempt_wake(sk);
	exs_decision_finish(&s);
}

/* The result of connect(2) for a decided attempt; reported only once. */
static int exs_connect_report(struct socket *sock)
{
	struct exs_sock *xs = exs_sk(sock->sk);

	sock_owned_by_me(sock->sk);
	if (xs->state == EXS_CONNECTED) {
		sock->state = SS_CONNECTED;
		return 0;
	}
	sock->state = SS_UNCONNECTED;
	WRITE_ONCE(sock->sk->sk_shutdown, 0);
	return sock_error(sock->sk) ?: -ECONNABORTED;
}

/*
 * Wait for attempt number @attempt; its result may be there, unreported. If it was aborted,
 * another may have begun since, whose result is for other calls.
 */
static int exs_connect_wait(struct exs_sock *xs, struct socket *sock, u32 attempt, long timeo)
{
	struct sock *sk = &xs->sk;
	int err;

	err = exs_sock_wait_connected(sk, &timeo);
	if (err)
		return err == -EAGAIN ? -EALREADY : err;
	lock_sock(sk);
	if (xs->attempts != attempt)
		err = -ECONNABORTED;
	else if (exs_sk(sk)->state == EXS_HANDED)
		err = -EXS_ETCP;
	else if (sock->state == SS_CONNECTING)
		err = exs_connect_report(sock);
	else	/* Another call has reported it. */
		err = exs_sk(sk)->state == EXS_CONNECTED ? -EISCONN : -ECONNABORTED;
	release_sock(sk);
	return err;
}

/* Wait for the attempt that another call has begun. */
static int exs_connect_join(struct exs_sock *xs, struct socket *sock, long timeo)
{
	u32 attempt;

	lock_sock(&xs->sk);
	attempt = xs->attempts;
	release_sock(&xs->sk);
	return exs_connect_wait(xs, sock, attempt, timeo);
}

/* Whether an attempt may begin; if so, the socket is CONNECTING. */
static int exs_connect_begin(struct exs_sock *xs, const struct sockaddr_storage *addr,
			     bool v6)
{
	struct sock *sk = &xs->sk;
	int err = 0;

	lockdep_assert_held(&xs->op_lock);
	lock_sock(sk);
	if (xs->state == EXS_HANDED) {
		err = -EXS_ETCP;
	} else if (xs->state == EXS_CONNECTING) {
		err = -EALREADY;
	} else if (xs->state != EXS_UNCONNECTED && xs->state != EXS_BOUND) {
		err = -EISCONN;
	} else {
		if (xs->state == EXS_UNCONNECTED)
			assign_bit(EXS_SK_V6, &xs->flags, v6);
		xs->starting = true;
		xs->attempts++;
		xs->began = jiffies;
		xs->peer = *addr;
		WRITE_ONCE(sk->sk_err, 0);
		WRITE_ONCE(sk->sk_shutdown, 0);
		exs_change_state(xs, EXS_CONNECTING);
	}
	release_sock(sk);
	return err;
}

/* A connection with an endpoint, from the socket's bound address. */
static int exs_connect_endpoint(struct exs_sock *xs, struct exs_conn *conn)
{
	struct exs_bound *bound;
	int err;

	lockdep_assert_held(&xs->op_lock);
	if (!test_bit(EXS_SK_BOUND, &xs->flags))
		return exs_transport.create(sock_net(&xs->sk), conn);
	err = exs_port_error(exs_bind_again(xs));
	if (err)
		return err;
	bound = xs->bound;
	xs->bound = NULL;
	return exs_transport.create_bound(bound, conn);
}

static struct exs_conn *exs_connect_make(struct exs_sock *xs)
{
	struct mem_cgroup *memcg;
	struct exs_conn *conn;
	int err;

	err = exs_sock_check_promises(&xs->sk);
	if (err)
		return ERR_PTR(err);
	memcg = get_mem_cgroup_from_mm(current->mm);
	conn = exs_conn_alloc(xs, memcg, GFP_KERNEL);
	mem_cgroup_put(memcg);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	if (test_bit(EXS_SK_BOUND, &xs->flags))
		conn->local = xs->local;
	conn->peer = xs->peer;
	conn->bound_dev_if = READ_ONCE(xs->sk.sk_bound_dev_if);
	conn->tos = exs_inet_tos(&xs->sk, xs->peer.ss_family);
	conn->falls_back = exs_may_fall_back(xs);
	err = exs_limit_charge(EXS_LIMIT_CONNS, 1, &conn->user);
	if (err)
		goto failed;
	conn->owner = exs_user_get(conn->user);
	err = exs_connect_endpoint(xs, conn);
	if (!err)
		return conn;

failed:
	exs_conn_put(conn);
	return ERR_PTR(err);
}

/* The socket is as it was before exs_connect_begin(). Return: @err. */
static int exs_connect_undo(struct exs_sock *xs, int err)
{
	struct sock *sk = &xs->sk;

	lock_sock(sk);
	xs->starting = false;
	exs_attempt_reset(xs);
	release_sock(sk);
	sk->sk_state_change(sk);
	return err;
}

/* No attempt is made, because of @why or @err: the socket falls back to TCP, or is as before. */
static int exs_connect_without(struct exs_sock *xs, int why, int err)
{
	lockdep_assert_held(&xs->op_lock);
	if (exs_may_fall_back(xs))
		return exs_fall_back_connect(xs, why ?: exs_fallback_why(err));
	return exs_connect_undo(xs, err);
}

/* Make the TCP socket to which this connect(2) may fall back. */
static void exs_connect_tcp(struct exs_sock *xs)
{
	if (!test_bit(EXS_SK_BOUND, &xs->flags) || xs->tcp)
		exs_tcp_prepare(xs, test_bit(EXS_SK_V6, &xs->flags) ? AF_INET6 : AF_INET);
}

static int exs_connect_addr(struct exs_sock *xs, struct sockaddr_unsized *uaddr, int len,
			    struct sockaddr_storage *addr, bool *v6)
{
	const struct sockaddr_in6 *in6 = (const void *)uaddr;
	int err = exs_addr_get(xs, uaddr, len, addr, v6);

	if (!err && *v6 && addr->ss_family == AF_INET && xs->sk.sk_ipv6only)
		err = -ENETUNREACH;
	/* Its scope is missing, but TCP does not look at that. */
	if (err == -EINVAL && len >= SIN6_LEN_RFC2133 && in6->sin6_family == AF_INET6 &&
	    ipv6_addr_is_multicast(&in6->sin6_addr))
		err = -ENETUNREACH;
	return err;
}

/* BPF programs of the cgroup may refuse or change the address: once for EXS and TCP. */
static int exs_connect_filter(struct exs_sock *xs, struct sockaddr_unsized *uaddr, int len)
{
	struct sockaddr_storage addr;
	bool v6;
	int err;

	lockdep_assert_held(&xs->op_lock);
	err = exs_filter_connect(&xs->sk, xs->tcp, uaddr, &len);
	if (!err)
		err = exs_connect_addr(xs, uaddr, len, &addr, &v6);
	if (err)
		return err;
	/* Operations that wait for connect(2) do not need it. */
	if (READ_ONCE(xs->connect_waiter))
		exs_tcp_drop(xs);
	lock_sock(&xs->sk);
	xs->peer = addr;
	release_sock(&xs->sk);
	return 0;
}

/* Return: the attempt, with a reference for the caller; or ERR_PTR. */
static struct exs_conn *exs_connect_prepare(struct exs_sock *xs, struct socket *sock,
					    struct sockaddr_unsized *uaddr, int len)
{
	struct sockaddr_storage addr;
	struct sock *sk = &xs->sk;
	struct exs_conn *conn;
	int err, why;
	bool v6;

	err = exs_connect_addr(xs, uaddr, len, &addr, &v6);
	if (!err)
		err = exs_connect_begin(xs, &addr, v6);
	if (err)
		return ERR_PTR(err);
	exs_connect_tcp(xs);
	err = exs_connect_filter(xs, uaddr, len);
	if (err)
		return ERR_PTR(exs_connect_undo(xs, err));
	why = exs_fallback_at_once(xs, &xs->peer);
	conn = why ? NULL : exs_connect_make(xs);
	if (IS_ERR_OR_NULL(conn))
		return ERR_PTR(exs_connect_without(xs, why, PTR_ERR(conn)));
	exs_conn_get(conn);
	lock_sock(sk);
	if (!xs->user)
		xs->user = exs_user_get(conn->user);
	exs_conn_graft(conn, sk);
	WRITE_ONCE(xs->attempt, conn);
	sock->state = SS_CONNECTING;
	release_sock(sk);
	return conn;
}

static unsigned int exs_connect_ms(const struct exs_conn *conn)
{
	int ms = exs_sysctl(conn->xn, connect_timeout);

	return conn->falls_back ? min(ms, exs_sysctl(conn->xn, fallback_timeout)) : ms;
}

/* Pass the attempt to the transport. conn->users keeps the endpoint. */
static int exs_connect_transport(struct exs_conn *conn, bool nonblock, long user_timeout)
{
	long most = msecs_to_jiffies(exs_connect_ms(conn));
	long timeout = min(most, user_timeout ?: LONG_MAX);
	struct exs_ep *ep;
	int err = -ECONNABORTED;

	spin_lock(&conn->lock);
	ep = conn->ep;
	if (ep && conn->state == EXS_CONN_CONNECTING) {
		conn->users++;
		spin_unlock(&conn->lock);
		err = ep->ops->connect(ep, nonblock, timeout);
		spin_lock(&conn->lock);
		exs_conn_unuse(conn);
	}
	spin_unlock(&conn->lock);
	return err;
}

static bool exs_connect_goes_on(int err)
{
	return err == -EINPROGRESS || err == -EINTR || err == -ERESTARTSYS;
}

/*
 * The transport dropped the attempt @conn with @err. If the attempt is decided by now, connect(2)
 * returns the result, unless it returns early (EINPROGRESS, a signal): then SO_ERROR gets the
 * result. If the attempt was aborted, the socket's state is already right, and another attempt
 * may be pending.
 */
static int exs_connect_end(struct exs_sock *xs, struct socket *sock,
			   const struct exs_conn *conn, int err)
{
	struct sock *sk = &xs->sk;
	bool goes_on = exs_connect_goes_on(err);
	struct exs_decision s;
	bool decided;

	lock_sock(sk);
	if (xs->attempt != conn) {
		/* The error is of this attempt, unless another one has begun or come up. */
		err = 0;
		if (xs->state == EXS_UNCONNECTED || xs->state == EXS_BOUND)
			err = sock_error(sk);
		release_sock(sk);
		return err ?: -ECONNABORTED;
	}
	xs->starting = false;
	decided = exs_attempt_decide(xs, &s);
	if (decided && s.falls_back)
		err = goes_on ? err : -EXS_ETCP;
	else if (!goes_on)
		err = exs_connect_report(sock);
	release_sock(sk);
	if (!decided)
		return err;
	if (!goes_on && err && !s.falls_back)
		s.err = 1;
	exs_attempt_decided(xs, &s);
	return err;
}

/*
 * Only a task that waits without limit performs the hand-shake itself; SO_SNDTIMEO ends the
 * wait, not the attempt.
 */
static int exs_connect_start(struct exs_sock *xs, struct socket *sock,
			     struct sockaddr_unsized *uaddr, int len, long timeo)
{
	struct exs_conn *conn;
	u32 attempt;
	long user_timeout;
	int err;

	mutex_lock(&xs->op_lock);
	conn = exs_connect_prepare(xs, sock, uaddr, len);
	attempt = xs->attempts;
	user_timeout = exs_user_timeout(xs);
	if (!IS_ERR(conn))
		xs->own_way = conn->bound_dev_if;
	mutex_unlock(&xs->op_lock);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	err = exs_connect_transport(conn, timeo != MAX_SCHEDULE_TIMEOUT, user_timeout);
	if (err && !exs_connect_goes_on(err))
		exs_conn_lost(conn, -err);
	mutex_lock(&xs->op_lock);
	err = exs_connect_end(xs, sock, conn, err);
	mutex_unlock(&xs->op_lock);
	exs_conn_put(conn);
	if (err == -EINPROGRESS && timeo) {
		err = exs_connect_wait(xs, sock, attempt, timeo);
		if (err == -EALREADY)
			err = -EINPROGRESS;
	}
	return err;
}

int exs_connect_refuse(struct exs_sock *xs, int err)
{
	struct exs_decision s = { .err = err == -ECANCELED ? err : 1 };

	lock_sock(&xs->sk);
	s.waiter = exs_take_waiter(xs);
	release_sock(&xs->sk);
	exs_decision_finish(&s);
	return err;
}

/* The address is checked only if there may be an attempt. */
static int exs_connect_new(struct exs_sock *xs, struct socket *sock,
			   struct sockaddr_unsized *uaddr, int len, long timeo)
{
	if (exs_sock_state(xs) == EXS_LISTENING)
		return -EISCONN;
	return exs_connect_start(xs, sock, uaddr, len, timeo);
}

int exs_connect(struct exs_sock *xs, struct socket *sock, struct sockaddr_unsized *uaddr, int len,
		int flags)
{
	bool armed = READ_ONCE(xs->connect_waiter);
	long timeo = sock_sndtimeo(&xs->sk, flags & O_NONBLOCK || armed);
	int err;

	switch (sock->state) {
	case SS_UNCONNECTED:
		err = exs_connect_new(xs, sock, uaddr, len, timeo);
		/* Another thread was faster. */
		if (err == -EALREADY && timeo)
			err = exs_connect_join(xs, sock, timeo);
		break;
	case SS_CONNECTING:
		err = exs_connect_join(xs, sock, timeo);
		break;
	default:
		err = -EISCONN;
	}
	/* A waiter that was armed since is the next call's. */
	if (armed && err && err != -EALREADY && !exs_connect_goes_on(err))
		exs_connect_refuse(xs, err);
	return err;
}
