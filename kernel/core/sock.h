/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AF_EXS sockets, and what async/ needs of them.
 */
#ifndef EXS_CORE_SOCK_H
#define EXS_CORE_SOCK_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "conn.h"
#include "net.h"
#include "options.h"

struct exs_listen;
struct exs_user;
struct exs_bound;

enum exs_sock_state {
	EXS_UNCONNECTED,
	EXS_BOUND,
	EXS_LISTENING,
	EXS_CONNECTING,
	EXS_CONNECTED,		/* until release, also after the connection ended */
	EXS_HANDED,		/* the struct socket is TCP's: fallback.c          */
	EXS_CLOSED,
};

/**
 * struct exs_waiter - an asynchronous connect, accept, close or shutdown that waits
 *	at a socket
 * @node: the socket's
 * @fn: called once, process context, no lock but lock_sock possibly held: @err 0 or a
 *	negative errno; accept: @child is a connected socket without a struct socket, one
 *	reference, for exs_sock_park() or exs_sock_drop(); otherwise NULL. connect: @err of
 *	1 means: discard, connect(2) itself has returned the error.
 */
struct exs_waiter {
	struct list_head node;
	void (*fn)(struct exs_waiter *w, int err, struct sock *child);
};

/* TCP's options: see tcpopt.c. */
enum exs_kept_option {
	EXS_KEPT_NODELAY,
	EXS_KEPT_CORK,
	EXS_KEPT_QUICKACK,
	EXS_KEPT_KEEPCNT,
	EXS_KEPT_KEEPINTVL,
	EXS_KEPT_KEEPIDLE,
	EXS_KEPT_SYNCNT,
	EXS_KEPT_LINGER2,
	EXS_KEPT_DEFER_ACCEPT,
	EXS_KEPT_USER_TIMEOUT,
	EXS_KEPT_NOTSENT_LOWAT,
	EXS_KEPT_FASTOPEN,
	EXS_KEPT_FASTOPEN_CONNECT,
	EXS_KEPT_FASTOPEN_NO_COOKIE,
	EXS_KEPT_MAXSEG,
	EXS_KEPT_WINDOW_CLAMP,
	EXS_KEPT_THIN_LTO,
	EXS_KEPT_THIN_DUPACK,
	EXS_KEPT_INQ,
	EXS_KEPT_MAX
};

/* How many options of IP and IPv6 a socket has. */
#define EXS_INET_KEPT	20

/**
 * struct exs_sock - an AF_EXS socket
 * @sk: first member
 * @inet: AF_INET and AF_INET6: the type that others take @sk for
 * @inet_destruct: likewise: the former sk_destruct, called by
 *	exs_sock_destruct(), or NULL
 * @state: moved by exs_change_state() only; lock_sock; read anywhere with
 *	smp_load_acquire()
 * @conn: set once under lock_sock, published with smp_store_release(); stays
 *	until the socket is destroyed
 * @bound: the identifier that bind() reserved, until it is consumed; op_lock
 * @listen: made by the first listen(), published with smp_store_release();
 *	stays until the socket is destroyed, also when it is closed
 * @connect_waiter: gets the result of the next connect(2); set under lock_sock, taken by
 *	one exchange, as it may be disarmed without
 * @local: own address: EXS_SK_BOUND, or that of the last attempt to connect; lock_sock,
 *	fixed once connected
 * @peer: the peer's address; likewise
 * @socktype: enum exs_wire_socktype
 * @op_lock: one bind, listen, start of connect, shutdown or close at a time. Held around
 *	the transport's calls that take rdma_cm's locks, which must not be taken under
 *	lock_sock. Taken before lock_sock.
 * @attempt: the connection that connect() is trying; NULL once decided; lock_sock, read
 *	without it for wake-ups
 * @attempts: number of attempts so far; written under op_lock and lock_sock
 * @own_way: the attempt goes by a device that the program chose; op_lock
 * @began: when it began, in jiffies; op_lock
 * @attempt_work: decides @attempt after the transport said something
 * @turn: for @attempt_work, which may wait without limit for lock_sock
 * @user: the user who made the first attempt; @attempt_work takes turns as this user; set
 *	once under lock_sock, before @attempt
 * @tcp: with EXS_SO_FALLBACK: the TCP socket beside this one, or NULL; op_lock
 * @tcp_ops: when HANDED: TCP's calls
 * @given_priority: SO_PRIORITY when @tcp got the options last; op_lock
 * @given_mark: SO_MARK likewise
 * @given_device: SO_BINDTODEVICE likewise, an interface's index
 * @why: likewise: enum exs_fell_back
 * @starting: the task in connect(2) decides @attempt as soon as the transport drops it, not
 *	@attempt_work; lock_sock
 * @park_lock: guards @parked
 * @parked: connections that wait for an accept(2) of a certain thread
 * @closers: struct exs_waiter, asynchronous closes; exs_closers_lock
 * @flags: EXS_SK_* bits, atomic
 * @options: SOL_EXS; changed under op_lock
 * @timeouts: of asynchronous sends and receives: see exs_sock_timeout(); atomic
 * @kept: TCP's options, by enum exs_kept_option; atomic
 * @kept_set: those that the program has set; atomic
 * @ip: options of IP and IPv6 that were set, by exs_inet_options, to copy to a TCP socket
 *	that replaces this one; atomic
 * @ip_set: which of them, atomic bits
 */
struct exs_sock {
	union {
		struct sock sk;
		struct inet_sock inet;
	};
	void (*inet_destruct)(struct sock *sk);
	enum exs_sock_state state;
	struct exs_conn *conn;
	struct exs_bound *bound;
	struct exs_listen *listen;
	struct exs_waiter *connect_waiter;
	struct sockaddr_storage local, peer;
	u8 socktype;
	struct mutex op_lock;		/* before lock_sock */
	struct exs_conn *attempt;
	u32 attempts;
	bool own_way;
	unsigned long began;
	struct work_struct attempt_work;
	struct exs_turn turn;
	struct exs_user *user;
	struct socket *tcp;
	const struct proto_ops *tcp_ops;
	u32 given_priority;
	u32 given_mark;
	int given_device;
	u8 why;
	bool starting;
	spinlock_t park_lock;		/* parked */
	struct list_head parked;
	struct list_head closers;
	unsigned long flags;
	struct exs_options options;
	u64 timeouts[2];
	int kept[EXS_KEPT_MAX];
	DECLARE_BITMAP(kept_set, EXS_KEPT_MAX);
	int ip[EXS_INET_KEPT];
	DECLARE_BITMAP(ip_set, EXS_INET_KEPT);
};

/* The type of all allocations. IPv6's part is the last, where the kernel may look for it. */
struct exs_sock6 {
	struct exs_sock xs;
#if IS_ENABLED(CONFIG_IPV6)
	struct ipv6_pinfo np;
#endif
};

/* Bits of exs_sock.flags */
enum {
	EXS_SK_ERR_TOLD,	/* conn's error was copied to sk->sk_err           */
	EXS_SK_V6,		/* AF_INET addresses are shown as mapped to IPv6   */
	EXS_SK_BOUND,		/* local is what bind() got, not what connect() chose */
	EXS_SK_LISTENED,	/* it has been LISTENING                          */
	EXS_SK_TCP_BEGUN,	/* a fallback has begun TCP's connect             */
	EXS_SK_TCP_FAILED,	/* which failed at once                           */
};

static inline struct exs_sock *exs_sk(const struct sock *sk)
{
	return (struct exs_sock *)sk;
}

extern int exs_family, exs_protocol;

extern const struct proto_ops exs_ops;
extern struct proto exs_proto;

/* Whether it is our sock. Any context. */
static inline bool exs_sk_is_exs(const struct sock *sk)
{
	return READ_ONCE(sk->sk_prot) == &exs_proto;
}

/*
 * For async/. Sleep; no locks held.
 */

/* The next connect(2) on this socket does not block, and @w gets its result. Return: 0,
 * -EALREADY, -EISCONN, -EINVAL.
 */
int exs_sock_arm_connect(struct sock *sk, struct exs_waiter *w);

/* @w gets the next connection that no earlier waiter wants. May call
 * @w->fn before it returns. Return: 0 or -EINVAL (not listening).
 */
int exs_sock_arm_accept(struct sock *sk, struct exs_waiter *w);

/* Return: true: @w->fn will not be called; false: it was, or is being called. */
bool exs_sock_disarm(struct sock *sk, struct exs_waiter *w);

/* @w is called when the close of the socket is complete: its last descriptor is closed, its
 * operations have ended with events, its connection is over. @err is 0 or why not all data
 * was delivered. The caller holds the socket's file.
 */
void exs_sock_arm_close(struct sock *sk, struct exs_waiter *w);

/* @w is called when all sent data and the FIN are delivered, after a shutdown() or close()
 * that the caller need not wait for. @err is 0 or why not. Return: 0 or -ENOTCONN.
 */
int exs_sock_arm_shutdown(struct sock *sk, struct exs_waiter *w);

/* As exs_sock_disarm(), for a close or a shutdown. */
bool exs_sock_disarm_end(struct exs_waiter *w);

/* The same for a shutdown. If the socket is shut down, or its connection has ended, @w->fn
 * is called anyway.
 */
bool exs_sock_withdraw_shutdown(struct sock *sk, struct exs_waiter *w);

/* The next accept(2) of the current task on @listener returns @child (with its reference),
 * before any other connection. On failure @child is unchanged: -ECONNABORTED: @listener is
 * closed; -EAGAIN: another one is parked for this task; -ENOMEM.
 */
int exs_sock_park(struct sock *listener, struct sock *child);

/* Take a parked @child back, whichever thread parked it. Return: true: it was there, and
 * the caller gets the reference; false: it was accepted or dropped.
 */
bool exs_sock_unpark(struct sock *listener, struct sock *child);

/* Close a connection that was not accepted. */
void exs_sock_drop(struct sock *child);

/* Cancel the part of @call that the socket has taken, if it has not ended. Sleeps. */
void exs_sock_cancel(struct sock *sk, const struct exs_call *call);

#ifdef SO_RCVPRIORITY	/* Linux 6.14 */
#define EXS_RCVPRIORITY_FLAG	BIT(SOCK_RCVPRIORITY)
#else
#define EXS_RCVPRIORITY_FLAG	0
#endif

/* Bits of sk_flags that only options set, and that nothing else depends on. */
#define EXS_OPTION_FLAGS	(BIT(SOCK_LINGER) | BIT(SOCK_BROADCAST) | BIT(SOCK_LOCALROUTE) | \
				 BIT(SOCK_URGINLINE) | BIT(SOCK_ZEROCOPY) | BIT(SOCK_RXQ_OVFL) | \
				 BIT(SOCK_SELECT_ERR_QUEUE) | BIT(SOCK_FILTER_LOCKED) |	\
				 BIT(SOCK_TXTIME) | BIT(SOCK_RCVMARK) | BIT(SOCK_DBG) |	\
				 BIT(SOCK_WIFI_STATUS) | BIT(SOCK_NOFCS) | EXS_RCVPRIORITY_FLAG)

/* Other options that are about packets. lock_sock(@to) held, or no other thread has it. */
void exs_sock_hints_give(const struct sock *sk, struct sock *to);

/* The AF_EXS sock of @sock, also if the socket fell back to TCP; NULL: it never had one. */
const struct sock *exs_sock_once(struct socket *sock);

/* Packed into one word, so that reading it takes no lock. */
#define EXS_TIMEOUT_IS_ONCE	BIT_ULL(63)

/* The timeout in nanoseconds of an operation that is submitted now, and whether it fires
 * only @once; 0: none. Any context.
 */
static inline u64 exs_sock_timeout(const struct sock *sk, bool recv, bool *once)
{
	u64 timeout = READ_ONCE(exs_sk(sk)->timeouts[recv]);

	*once = timeout & EXS_TIMEOUT_IS_ONCE;
	return timeout & ~EXS_TIMEOUT_IS_ONCE;
}

/* The connection of any socket, or NULL if it is not ours or has none. It stays as long as
 * the socket. Any context.
 */
struct exs_conn *exs_sock_conn_of(const struct sock *sk);

/* Wake threads that wait at a socket: EPOLL* bits. Any process context. */
void exs_sock_wake(struct sock *sk, __poll_t events);

/* Whether that would wake a thread. Under conn->lock, which sleepers take before their last
 * check. Deciding an attempt wakes threads that wait for it.
 */
static inline bool exs_sock_has_audience(const struct sock *sk, __poll_t events)
{
	bool any;

	if (events & EPOLLERR || READ_ONCE(exs_sk(sk)->attempt) ||
	    sock_flag(sk, SOCK_FASYNC))
		return true;
	rcu_read_lock();
	any = skwq_has_sleeper(rcu_dereference(sk->sk_wq));
	rcu_read_unlock();
	return any;
}

/**
 * struct exs_async - calls of sockets into the layer above: asynchronous operations
 * @ioctl: EXS_IOC_* of a socket. Return: -ENOIOCTLCMD when it is not one of async's.
 * @aio_read: recvmsg() with a kiocb of Linux AIO, of @len bytes, without a time limit.
 *	Return: -EIOCBQUEUED: it was queued, and completes; 0: not possible, the call has to
 *	wait itself.
 * @zerocopy_alloc: sendmsg() with MSG_ZEROCOPY and the caller's msg_ubuf: a send by @conn
 *	of the next @len bytes from their own pages, x->done not set. The pages, and the
 *	reference on the ubuf, which notifies the caller when they are free, stay until
 *	@zerocopy_free. Return: NULL: the bytes have to be copied. For spliced pages there
 *	is no ubuf, and this takes references on them.
 * @zerocopy_free: that send is over
 *
 * One for the module: the layer above provides it. All but @zerocopy_free
 * sleep.
 */
struct exs_async {
	int (*ioctl)(struct socket *sock, unsigned int cmd, void __user *arg);
	int (*aio_read)(struct exs_conn *conn, struct sock *sk, struct msghdr *msg, size_t len);
	struct exs_xfer *(*zerocopy_alloc)(struct exs_conn *conn, const struct msghdr *msg,
					   size_t len);
	void (*zerocopy_free)(struct exs_xfer *x);
};

extern const struct exs_async exs_async;

/* Per-user caps (core/limits.c): charged to the calling task's user, and the users above. */
enum exs_limit {
	EXS_LIMIT_CONNS, EXS_LIMIT_QUEUES, EXS_LIMIT_PAGES, EXS_LIMIT_OPS,
	EXS_LIMIT_HALF_OPEN, EXS_LIMIT_MAX
};

/* Return: 0 and *user (a reference), or -ENOBUFS when a cap is reached (a
 * counter names it).
 */
int exs_limit_charge(enum exs_limit what, long n, struct exs_user **user);
/* As exs_limit_charge(), for a user that the caller holds, under @xn's caps; any context. */
int exs_limit_charge_user(const struct exs_net *xn, enum exs_limit what, long n,
			  struct exs_user *user);
void exs_limit_uncharge(enum exs_limit what, long n, struct exs_user *user);

/* Another reference to a user. Any context. */
struct exs_user *exs_user_get(struct exs_user *user);
void exs_user_put(struct exs_user *user);

#endif
