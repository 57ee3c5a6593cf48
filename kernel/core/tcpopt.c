// SPDX-License-Identifier: GPL-2.0
/*
 * Options of the level SOL_TCP.
 *
 * Programs that were written for TCP set them and ask for them. A table has the values that
 * TCP takes; each is stored, inherited by accepted sockets, and returned. Most are hints
 * about segments and timers, which the device handles. These have an effect:
 *
 *	TCP_KEEPIDLE		exs_conn_keepalive()
 *	TCP_USER_TIMEOUT	exs_conn_user_timeout(), exs_user_timeout()
 *	TCP_NOTSENT_LOWAT	exs_conn_writable()
 *	TCP_INQ			exs_recv_inq()
 *
 * An option that is more than a hint, and cannot be kept, is ENOPROTOOPT: TCP_MD5SIG,
 * for example.
 */
#include <linux/sockptr.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "core.h"
#include "run.h"

#define EXS_IF_CLOSED	BIT(TCP_CLOSE)
#define EXS_IF_PASSIVE	(BIT(TCP_CLOSE) | BIT(TCP_LISTEN))

/**
 * struct exs_tcp_option - one option
 * @name: TCP_*
 * @min: smallest value
 * @max: largest value; @min and @max of 0: a truth value
 * @initial: of a new socket
 * @states: in which it may be set, as bits; 0: in all
 * @own: accepted sockets do not inherit it
 */
struct exs_tcp_option {
	int name;
	int min;
	int max;
	int initial;
	u16 states;
	bool own;
};

static const struct exs_tcp_option exs_tcp_options[EXS_KEPT_MAX] = {
	[EXS_KEPT_NODELAY]	= { TCP_NODELAY },
	[EXS_KEPT_CORK]		= { TCP_CORK },
	[EXS_KEPT_QUICKACK]	= { TCP_QUICKACK, .initial = 1 },
	[EXS_KEPT_KEEPCNT]	= { TCP_KEEPCNT, 1, MAX_TCP_KEEPCNT },
	[EXS_KEPT_KEEPINTVL]	= { TCP_KEEPINTVL, 1, MAX_TCP_KEEPINTVL },
	[EXS_KEPT_KEEPIDLE]	= { TCP_KEEPIDLE, 1, MAX_TCP_KEEPIDLE },
	[EXS_KEPT_SYNCNT]	= { TCP_SYNCNT, 1, MAX_TCP_SYNCNT },
	[EXS_KEPT_LINGER2]	= { TCP_LINGER2, INT_MIN, INT_MAX },
	[EXS_KEPT_DEFER_ACCEPT]	= { TCP_DEFER_ACCEPT, INT_MIN, INT_MAX, .own = true },
	[EXS_KEPT_USER_TIMEOUT]	= { TCP_USER_TIMEOUT, 0, INT_MAX },
	[EXS_KEPT_NOTSENT_LOWAT] = { TCP_NOTSENT_LOWAT, INT_MIN, INT_MAX },
	[EXS_KEPT_FASTOPEN]	= { TCP_FASTOPEN, 0, INT_MAX, .states = EXS_IF_PASSIVE,
				    .own = true },
	[EXS_KEPT_FASTOPEN_CONNECT] = { TCP_FASTOPEN_CONNECT, 0, 1, .states = EXS_IF_CLOSED },
	[EXS_KEPT_FASTOPEN_NO_COOKIE] = { TCP_FASTOPEN_NO_COOKIE, 0, 1,
					  .states = EXS_IF_PASSIVE },
	[EXS_KEPT_MAXSEG]	= { TCP_MAXSEG, 0, MAX_TCP_WINDOW },
	[EXS_KEPT_WINDOW_CLAMP]	= { TCP_WINDOW_CLAMP, INT_MIN, INT_MAX },
	[EXS_KEPT_THIN_LTO]	= { TCP_THIN_LINEAR_TIMEOUTS, 0, 1 },
	[EXS_KEPT_THIN_DUPACK]	= { TCP_THIN_DUPACK, 0, 1 },
	[EXS_KEPT_INQ]		= { TCP_INQ, 0, 1 },
};

/* Its index in exs_sock.kept, or EXS_KEPT_MAX. */
static unsigned int exs_tcp_find(int name)
{
	unsigned int i;

	for (i = 0; i < EXS_KEPT_MAX; i++)
		if (name == exs_tcp_options[i].name)
			break;
	return i;
}

void exs_tcp_init(struct exs_sock *xs)
{
	unsigned int i;

	for (i = 0; i < EXS_KEPT_MAX; i++)
		xs->kept[i] = exs_tcp_options[i].initial;
}

void exs_tcp_inherit(struct exs_sock *child, const struct exs_sock *xs)
{
	unsigned int i;

	for (i = 0; i < EXS_KEPT_MAX; i++)
		if (!exs_tcp_options[i].own)
			child->kept[i] = READ_ONCE(xs->kept[i]);
}

void exs_tcp_give(const struct exs_sock *xs, struct sock *to)
{
	unsigned int i;
	int value;

	for_each_set_bit(i, xs->kept_set, EXS_KEPT_MAX) {
		value = READ_ONCE(xs->kept[i]);
		if (!(exs_tcp_options[i].own && to->sk_state == TCP_ESTABLISHED))
			to->sk_prot->setsockopt(to, SOL_TCP, exs_tcp_options[i].name,
						KERNEL_SOCKPTR(&value), sizeof(value));
	}
}

/* TCP counts retransmissions: these seconds, rounded up to whole ones. */
static int exs_tcp_defer_accept(int seconds)
{
	int step = TCP_TIMEOUT_INIT / HZ, period = step, n;

	if (seconds <= 0)
		return 0;
	for (n = 1; seconds > period && n < U8_MAX; n++) {
		step = min(2 * step, (int)(TCP_RTO_MAX / HZ));
		period += step;
	}
	return period;
}

static int exs_tcp_check(const struct sock *sk, unsigned int i, int value)
{
	const struct exs_tcp_option *o = &exs_tcp_options[i];
	u8 state = READ_ONCE(sk->sk_state);

	if ((o->min || o->max) && (value < o->min || value > o->max))
		return -EINVAL;
	if (i == EXS_KEPT_MAXSEG && value && value < TCP_MIN_MSS)
		return -EINVAL;
	if (i == EXS_KEPT_WINDOW_CLAMP && !value && state != TCP_CLOSE)
		return -EINVAL;
	if (i == EXS_KEPT_FASTOPEN_CONNECT &&
	    !(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fastopen) & TFO_CLIENT_ENABLE))
		return -EOPNOTSUPP;
	return o->states && !(o->states & BIT(state)) ? -EINVAL : 0;
}

/* The value as it is stored, if it may be set. */
static int exs_tcp_fit(const struct sock *sk, unsigned int i, int value)
{
	switch (i) {
	case EXS_KEPT_LINGER2:
		return clamp(value, -1, (int)(TCP_FIN_TIMEOUT_MAX / HZ));
	case EXS_KEPT_DEFER_ACCEPT:
		return exs_tcp_defer_accept(value);
	case EXS_KEPT_FASTOPEN:
		return min(value, READ_ONCE(sock_net(sk)->core.sysctl_somaxconn));
	case EXS_KEPT_WINDOW_CLAMP:
		return value ? max_t(u32, value, SOCK_MIN_RCVBUF / 2) : 0;
	case EXS_KEPT_THIN_DUPACK:
		return 0;
	default:
		return exs_tcp_options[i].min || exs_tcp_options[i].max ? value : !!value;
	}
}

int exs_tcp_set(struct exs_sock *xs, int name, sockptr_t val, unsigned int len)
{
	struct exs_conn *conn = exs_sock_conn(xs);
	unsigned int i = exs_tcp_find(name);
	struct sock *sk = &xs->sk;
	int value, err;

	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, val, sizeof(value)))
		return -EFAULT;
	if (i == EXS_KEPT_MAX)
		return -ENOPROTOOPT;
	err = exs_tcp_check(sk, i, value);
	if (err)
		return err;
	WRITE_ONCE(xs->kept[i], exs_tcp_fit(sk, i, value));
	set_bit(i, xs->kept_set);
	if (conn)
		exs_conn_run(conn);
	if (i == EXS_KEPT_NOTSENT_LOWAT)
		sk->sk_write_space(sk);
	return 0;
}

/* The value of an option that was not set. */
static int exs_tcp_default(const struct sock *sk, unsigned int i)
{
	const struct netns_ipv4 *tcp = &sock_net(sk)->ipv4;

	switch (i) {
	case EXS_KEPT_KEEPCNT:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_probes);
	case EXS_KEPT_KEEPINTVL:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_intvl) / HZ;
	case EXS_KEPT_KEEPIDLE:
		return READ_ONCE(tcp->sysctl_tcp_keepalive_time) / HZ;
	case EXS_KEPT_SYNCNT:
		return READ_ONCE(tcp->sysctl_tcp_syn_retries);
	case EXS_KEPT_LINGER2:
		return READ_ONCE(tcp->sysctl_tcp_fin_timeout) / HZ;
	case EXS_KEPT_MAXSEG:
		return TCP_MSS_DEFAULT;
	default:
		return 0;
	}
}

static bool exs_tcp_is_mptcp(int name)
{
#ifdef TCP_IS_MPTCP	/* Linux 6.10 */
	return name == TCP_IS_MPTCP;
#else
	return false;
#endif
}

int exs_tcp_get(const struct exs_sock *xs, int name, int *value)
{
	const struct exs_conn *conn = exs_sock_conn(xs);
	unsigned int i = exs_tcp_find(name);

	if (exs_tcp_is_mptcp(name)) {
		*value = 0;
		return 0;
	}
	if (i == EXS_KEPT_MAX)
		return -ENOPROTOOPT;
	*value = READ_ONCE(xs->kept[i]);
	if (i == EXS_KEPT_MAXSEG && conn)
		*value = READ_ONCE(conn->mss);
	if (!*value)
		*value = exs_tcp_default(&xs->sk, i);
	return 0;
}

long exs_user_timeout(const struct exs_sock *xs)
{
	unsigned int ms = READ_ONCE(xs->kept[EXS_KEPT_USER_TIMEOUT]);

	return ms ? max_t(long, msecs_to_jiffies(ms), TCP_RTO_MIN) : 0;
}

static u8 exs_tcp_state(const struct exs_conn *conn, bool shut)
{
	const struct exs_engine *e = &conn->engine;

	lockdep_assert_held(&conn->lock);
	if (exs_conn_is_closed(conn, shut))
		return TCP_CLOSE;
	if (conn->state != EXS_CONN_UP || e->fin_rcvd)
		return TCP_CLOSE_WAIT;
	if (e->fin_wanted)
		return exs_conn_flushed(conn) ? TCP_FIN_WAIT2 : TCP_FIN_WAIT1;
	return TCP_ESTABLISHED;
}

static void exs_tcp_info_conn(struct exs_conn *conn, bool shut, struct tcp_info *info)
{
	const struct exs_engine *e = &conn->engine;
	const struct exs_engine_stats *st = &e->stats;

	spin_lock(&conn->lock);
	info->tcpi_state = exs_tcp_state(conn, shut);
	info->tcpi_snd_mss = conn->mss;
	info->tcpi_rcv_mss = conn->mss;
	info->tcpi_advmss = conn->mss;
	info->tcpi_pmtu = conn->mss;
	info->tcpi_rcv_space = e->ring;
	info->tcpi_snd_wnd = e->space;
	info->tcpi_notsent_bytes = exs_conn_notsent(conn);
	info->tcpi_bytes_sent = st->direct_bytes + st->indirect_bytes + st->eager_bytes;
	info->tcpi_bytes_acked = info->tcpi_bytes_sent - conn->tx_bytes;
	info->tcpi_bytes_received = st->received_bytes;
	spin_unlock(&conn->lock);
}

void exs_tcp_info(struct exs_sock *xs, struct tcp_info *info)
{
	struct exs_conn *conn = exs_sock_conn(xs);

	memset(info, 0, sizeof(*info));
	info->tcpi_state = READ_ONCE(xs->sk.sk_state);
	if (conn)
		exs_tcp_info_conn(conn, READ_ONCE(xs->sk.sk_shutdown) & SEND_SHUTDOWN, info);
	/* As with TCP: the number of connections that were not accepted yet, and the limit. */
	if (info->tcpi_state != TCP_LISTEN)
		return;
	info->tcpi_unacked = exs_listen_ready(exs_sock_listen(xs));
	info->tcpi_sacked = READ_ONCE(xs->sk.sk_max_ack_backlog);
}
