// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options at the level SOL_EXS: tuning of one socket.
 *
 * The table says what each may be. Where a value takes effect:
 *
 *	EXS_SO_EAGER_MAX	proto/message.c, exs_conn_tune()
 *	EXS_SO_ADVERTS		proto/receive.c, exs_conn_tune()
 *	EXS_SO_RING		run.c makes the ring; of a stream without one, data.c and
 *				conn.c take no receive that only a ring could serve
 *	EXS_SO_CPU		transport/verbs_cq.c
 *	EXS_SO_INLINE_MAX	transport/verbs_post.c
 *	EXS_SO_BUSY_POLL	spin.c
 *	EXS_SO_FALLBACK		fallback.c
 *
 * The timeouts of operations are not in the table: async/queue/timeout.c asks for them.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/log2.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "transport.h"
#include "core.h"
#include "fallback.h"

/**
 * struct exs_option_def - one option
 * @min: smallest value
 * @max: largest value
 * @initial: of a new socket
 * @only: enum exs_wire_socktype that has it; 0: both
 */
struct exs_option_def {
	int min;
	int max;
	int initial;
	u8 only;
};

static const struct exs_option_def exs_option_defs[EXS_SO_MAX + 1] = {
	[EXS_SO_EAGER_MAX] = {
		.max		= EXS_WIRE_DATA_MAX,
		.initial	= EXS_WIRE_DATA_MAX,
		.only		= EXS_WIRE_SEQPACKET,
	},
	[EXS_SO_RING] = {
		.max		= EXS_RING_MAX,
		.initial	= EXS_RING_DEFAULT,
	},
	[EXS_SO_ADVERTS] = {
		.min		= 1,
		.max		= EXS_ADVERTS_MAX,
		.initial	= EXS_ADVERTS_MAX,
	},
	[EXS_SO_CPU] = {
		.min		= -1,
		.max		= INT_MAX,
		.initial	= -1,
	},
	[EXS_SO_INLINE_MAX] = {
		.max		= EXS_INLINE_MAX,
	},
	[EXS_SO_BUSY_POLL] = {
		.max		= USEC_PER_SEC,
	},
	[EXS_SO_FALLBACK] = {
		.max		= EXS_FALLBACK_NOW,
		.only		= EXS_WIRE_STREAM,
	},
};

void exs_options_init(struct exs_options *o)
{
	int i;

	for (i = 0; i <= EXS_SO_MAX; i++)
		o->value[i] = exs_option_defs[i].initial;
}

/* Like TCP, which doubles SO_RCVBUF: one half is for overhead. */
static int exs_rcvbuf_ring(const struct sock *sk)
{
	int size = READ_ONCE(sk->sk_rcvbuf) / 2;

	size = min(size, exs_sysctl(exs_net(sock_net(sk)), ring_size));
	return roundup_pow_of_two(clamp_t(int, size, PAGE_SIZE, EXS_RING_MAX));
}

void exs_options_copy(struct exs_options *o, const struct exs_sock *xs)
{
	int i;

	for (i = 0; i <= EXS_SO_MAX; i++)
		o->value[i] = exs_option(&xs->options, i);
	if (o->value[EXS_SO_RING] == EXS_RING_DEFAULT &&
	    xs->sk.sk_userlocks & SOCK_RCVBUF_LOCK)
		o->value[EXS_SO_RING] = exs_rcvbuf_ring(&xs->sk);
}

static int exs_option_find(const struct exs_sock *xs, int name)
{
	if (name < 1 || name > EXS_SO_MAX)
		return -ENOPROTOOPT;
	if (exs_option_defs[name].only && exs_option_defs[name].only != xs->socktype)
		return -EOPNOTSUPP;
	return 0;
}

/* Kernel memory: a program may reduce the administrator's value, but not exceed it. */
static int exs_option_ring(const struct exs_net *xn, int *value)
{
	if (!*value)
		return 0;
	if (*value < PAGE_SIZE)
		return -EINVAL;
	*value = roundup_pow_of_two(*value);
	if (*value > exs_sysctl(xn, ring_size) && !capable(CAP_NET_ADMIN))
		return -EPERM;
	return 0;
}

/* A task can choose only processors on which it may run itself. */
static int exs_option_cpu(int cpu)
{
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	if (!cpumask_test_cpu(cpu, current->cpus_ptr) && !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

static int exs_option_check(const struct exs_net *xn, int name, int *value)
{
	const struct exs_option_def *def = &exs_option_defs[name];

	if (*value < def->min || *value > def->max)
		return -EINVAL;
	if (name == EXS_SO_RING)
		return exs_option_ring(xn, value);
	if (name == EXS_SO_CPU && *value >= 0)
		return exs_option_cpu(*value);
	return 0;
}

/* The existing connection, or the attempt, a reference; or NULL. */
static struct exs_conn *exs_option_conn(struct exs_sock *xs)
{
	struct exs_conn *conn;

	sock_owned_by_me(&xs->sk);
	conn = xs->conn ?: xs->attempt;
	if (conn)
		exs_conn_get(conn);
	return conn;
}

/* op_lock: no connection is being created with the old value. */
int exs_set_option(struct exs_sock *xs, int name, int value)
{
	const struct exs_net *xn = exs_net(sock_net(&xs->sk));
	struct exs_conn *conn;
	int err;

	if (name == EXS_SO_RECV_ORDERED)
		return 0;
	err = exs_option_find(xs, name) ?: exs_option_check(xn, name, &value);
	if (err)
		return err;
	if (name == EXS_SO_FALLBACK && value == EXS_FALLBACK_NOW)
		return exs_fall_back_now(xs, EXS_FELL_BACK_RULE);
	name = array_index_nospec(name, EXS_SO_MAX + 1);
	mutex_lock(&xs->op_lock);
	lock_sock(&xs->sk);
	conn = exs_option_conn(xs);
	if (name == EXS_SO_FALLBACK && xs->state != EXS_UNCONNECTED)
		err = -EINVAL;
	else
		err = conn ? exs_conn_set_option(conn, name, value) : 0;
	if (!err)
		WRITE_ONCE(xs->options.value[name], value);
	release_sock(&xs->sk);
	mutex_unlock(&xs->op_lock);
	if (!conn)
		return err;
	/* The change may have made more work possible. */
	exs_conn_run(conn);
	exs_conn_put(conn);
	return err;
}

int exs_get_option(struct exs_sock *xs, int name, int *value)
{
	const struct exs_conn *conn;
	struct exs_options options;
	int err;

	if (name == EXS_SO_RECV_ORDERED) {
		*value = 1;
		return 0;
	}
	if (name == EXS_SO_FELL_BACK) {
		*value = exs_sock_state(xs) == EXS_HANDED ? xs->why : EXS_FELL_BACK_NOT;
		return 0;
	}
	err = exs_option_find(xs, name);
	if (err)
		return err;
	name = array_index_nospec(name, EXS_SO_MAX + 1);
	conn = exs_sock_conn(xs);
	if (conn) {
		*value = exs_option(&conn->options, name);
	} else {
		exs_options_copy(&options, xs);
		*value = options.value[name];
	}
	if (name == EXS_SO_RING && *value == EXS_RING_DEFAULT)
		*value = exs_sysctl(exs_net(sock_net(&xs->sk)), ring_size);
	return 0;
}

int exs_set_timeout(struct exs_sock *xs, bool recv, sockptr_t val, unsigned int len)
{
	struct exs_opt_timeout t;

	if (len != sizeof(t))
		return -EINVAL;
	if (copy_from_sockptr(&t, val, sizeof(t)))
		return -EFAULT;
	if (t.ns > EXS_TIMEOUT_MAX || t.flags & ~EXS_TIMEOUT_ONCE || t.pad)
		return -EINVAL;
	if (t.flags & EXS_TIMEOUT_ONCE && t.ns)
		t.ns |= EXS_TIMEOUT_IS_ONCE;
	WRITE_ONCE(xs->timeouts[recv], t.ns);
	return 0;
}

void exs_get_timeout(const struct exs_sock *xs, bool recv, struct exs_opt_timeout *t)
{
	bool once;

	t->ns = exs_sock_timeout(&xs->sk, recv, &once);
	t->flags = once ? EXS_TIMEOUT_ONCE : 0;
	t->pad = 0;
}
