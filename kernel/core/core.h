/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations about sockets that the files of core/ share.
 *
 * Core has the family, its sockets and connections, and the limits of users. It knows
 * neither verbs nor operations: it calls transport/ and async/ by tables that it
 * declares. Objects: struct exs_sock (sock.h), struct exs_conn (conn.h). Their locks,
 * states and references are at the top of af_exs.c and of conn.h. In the order in
 * which to read them:
 *
 *   af_exs.c		the system calls
 *   sock.h, sock.c	the socket object; what async/ needs of it
 *   bind.c, listen.c, connect.c
 *			how a socket gets its connection
 *   conn.h, conn.c	a connection's life
 *   run.h, run.c	what moves its data
 *   memory.c		the work that allocates for it
 *   call.h		an operation on its way through the socket layer
 *   data.c		sendmsg() and recvmsg()
 *   message.h, message.c
 *			plain receives of messages
 *   xfer.c, kbuf.c	bytes of a transfer; transfers of kernel memory
 *   transport.h	what transport/ does for a socket, and calls
 *   sockopt.c, options.h, options.c, tcpopt.c
 *			socket options
 *   inet.c, filter.c	IPPROTO_EXS; BPF programs of cgroups
 *   fallback.h, fallback.c, peers.c
 *			fallback to TCP
 *   spin.c		EXS_SO_BUSY_POLL
 *   limits.h, turns.h, limits.c
 *			caps and turns of users
 *   net.h, net.c, sysctl.c, stats.h, stats.c, live.h, counted.h
 *			a network namespace: settings and counters
 */
#ifndef EXS_CORE_CORE_H
#define EXS_CORE_CORE_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <net/sock.h>

#include "../compat/compat.h"
#include "sock.h"

struct pid;
struct tcp_info;

extern struct workqueue_struct *exs_sock_wq, *exs_attempt_wq;

/* af_exs.c */
/* Set when the module can no longer fail to load: then sockets may be created. */
extern bool exs_ready;
int exs_family_init(void);
void exs_family_exit(void);

/* inet.c: AF_INET's and AF_INET6's face */
int exs_inet_init(void);
void exs_inet_exit(void);
int exs_inet_sock_init(struct sock *sk);
void exs_inet_unhash(struct sock *sk);
/* Options of other levels: those of IP and IPv6 that are known, and errors as TCP has them. */
int exs_inet_setsockopt(struct sock *sk, int level, int name, sockptr_t val,
			unsigned int len);
int exs_inet_getsockopt(struct sock *sk, int level, int name, char __user *val,
			int __user *len);
/* The ioctls of every socket of the family. Return: -ENOIOCTLCMD: another ioctl. */
int exs_inet_ioctl(struct socket *sock, unsigned int cmd, unsigned long value);
/* TCP's sock @to gets the options that were set. Sleeps; @to is not locked. */
void exs_inet_give(const struct exs_sock *xs, struct sock *to);
/* IP_TOS or IPV6_TCLASS, as a peer of @family sees it. Any context. */
u8 exs_inet_tos(const struct sock *sk, int family);
/* @child, accepted from @sk, is of its family. */
void exs_inet_clone(struct sock *child, const struct sock *sk);
/* The socket will be destroyed. */
void exs_inet_released(struct sock *sk);

/* Flags of our sockets, for the socket layer. */
static inline void exs_sock_flags(struct socket *sock)
{
	set_bit(SOCK_SUPPORT_ZC, &sock->flags);
	exs_take_sol_socket(sock);
}

/* Whether sockets may be created; a refusal is counted. */
bool exs_sock_enabled(struct net *net);

/* sysctl.c */
int exs_sysctl_init(void);
void exs_sysctl_exit(void);

/* The poll() events of a connected socket. No lock held, except perhaps lock_sock. */
__poll_t exs_sock_events(struct exs_sock *xs);

/* sock.c */
int exs_sock_init(void);
void exs_sock_exit(void);

/* A new socket without struct socket, UNCONNECTED, one reference; NULL: no memory. */
struct sock *exs_sock_alloc(struct net *net, int family, struct socket *sock, int type,
			    int kern);
/* Initialise the rest of the socket, after sock_init_data(). */
void exs_sock_setup(struct sock *sk, int type);

/* Move @xs to @state. lock_sock held. A transition that the map in af_exs.c does not have
 * is reported, and made.
 */
void exs_change_state(struct exs_sock *xs, enum exs_sock_state state);

/* @conn, a reference, becomes the socket's: CONNECTED. lock_sock held. */
void exs_sock_connected(struct exs_sock *xs, struct exs_conn *conn);

static inline enum exs_sock_state exs_sock_state(const struct exs_sock *xs)
{
	/* Pairs with exs_change_state(): the members that belong to a state are set. */
	return smp_load_acquire(&xs->state);
}

/* The socket gets the name of its attempt @conn, unless it is bound. lock_sock held. */
void exs_sock_name(struct exs_sock *xs, struct exs_conn *conn);

/* The connection of a connected socket, or NULL. Any context. It stays as long as the socket. */
static inline struct exs_conn *exs_sock_conn(const struct exs_sock *xs)
{
	/* Pairs with exs_sock_connected(). */
	return smp_load_acquire(&xs->conn);
}

/* The listener of a socket that has ever listened, or NULL. Any context. */
static inline struct exs_listen *exs_sock_listen(const struct exs_sock *xs)
{
	/* Pairs with exs_listen_open(). */
	return smp_load_acquire(&xs->listen);
}

/* Keep sk->sk_err, which SO_ERROR takes, and the connection's error the same. Called after
 * the connection may have got an error, before a call checks it, and after a call may have
 * reported it.
 */
void exs_sock_publish_error(struct exs_sock *xs);
void exs_sock_take_error(struct exs_sock *xs, struct exs_conn *conn);
void exs_sock_error_told(struct exs_sock *xs, struct exs_conn *conn);

static inline void exs_sock_error_before(struct exs_sock *xs)
{
	struct exs_conn *conn = exs_sock_conn(xs);

	if (conn && READ_ONCE(conn->err))
		exs_sock_take_error(xs, conn);
}

static inline void exs_sock_error_after(struct exs_sock *xs, struct exs_conn *conn)
{
	if (test_bit(EXS_SK_ERR_TOLD, &xs->flags))
		exs_sock_error_told(xs, conn);
}

/* Wait until the socket is no longer CONNECTING. No lock held.
 * Return: 0, -EAGAIN when *timeo ran out, -ERESTARTSYS, -EINTR.
 */
int exs_sock_wait_connected(struct sock *sk, long *timeo);

/* The connection parked for @pid, or NULL. */
struct sock *exs_sock_take_parked(struct exs_sock *xs, const struct pid *pid);
/* Drop all parked connections. */
void exs_sock_drop_parked(struct exs_sock *xs);

/* connect.c. The transport has news of an attempt: it may be decided. Any context. */
void exs_attempt_kick(struct exs_sock *xs);
/* The socket's turn and work. */
void exs_attempt_init(struct exs_sock *xs);
/* The socket is closed, and waits for no turn any more. */
void exs_attempt_leave(struct exs_sock *xs);
/* lock_sock not held. */
int exs_connect(struct exs_sock *xs, struct socket *sock, struct sockaddr_unsized *uaddr, int len,
		int flags);
/* connect(2) fails at once with @err. An operation that waits for its end learns this only
 * if @err is -ECANCELED. Return: @err.
 */
int exs_connect_refuse(struct exs_sock *xs, int err);
/* Abort a pending connect(): sk_err becomes @err (0: none), an armed waiter gets -ECANCELED. */
void exs_connect_abort(struct exs_sock *xs, int err);

/* filter.c */
/* Put @to, which no other thread knows yet, into the cgroup of @sk. Any context. */
void exs_cgroup_give(const struct sock *sk, struct sock *to);
/*
 * Run the BPF programs of the socket's cgroup on @uaddr, which they may change. @flags:
 * BPF_RET_BIND_*. @beside: the TCP socket that they get, or NULL. Sleep; lock_sock not held.
 * Return: 0 or -EPERM, or the program's error.
 */
int exs_filter_bind(const struct sock *sk, void *uaddr, int *len, u32 *flags);
int exs_filter_connect(const struct sock *sk, struct socket *beside, void *uaddr, int *len);
/* Likewise for the result of getsockname() or, for @peer, getpeername(). */
void exs_filter_name(const struct sock *sk, void *uaddr, int *len, bool peer);

/* bind.c */
/* A program's address, checked; mapped IPv6 becomes AF_INET and *@v6 true. */
int exs_addr_get(const struct exs_sock *xs, const void *uaddr, int len,
		 struct sockaddr_storage *addr, bool *v6);
/* The reverse. Return: its length. */
int exs_addr_put(const struct exs_sock *xs, const struct sockaddr_storage *addr,
		 void *uaddr);
/*
 * op_lock held, not lock_sock. @any_port: the permission to bind to the port was already
 * checked.
 */
int exs_bind_addr(struct exs_sock *xs, struct sockaddr_storage *addr, bool v6, bool any_port);
int exs_bind_any(struct exs_sock *xs);
/* Reserve xs->bound again, after a failed connect consumed it. */
int exs_bind_again(struct exs_sock *xs);

/* listen.c */
void exs_listen_free(struct exs_listen *listen);
/* op_lock held, not lock_sock. @bound: xs->bound, taken away. */
int exs_listen_start(struct exs_sock *xs, int backlog);
void exs_listen_stop(struct exs_sock *xs, struct exs_bound *bound);
__poll_t exs_listen_poll(struct exs_listen *listen);
/* The number of connections that wait to be accepted. */
int exs_listen_ready(struct exs_listen *listen);
/*
 * A connected child, a reference; or ERR_PTR. Waits at most *timeo, which becomes what is left of
 * it. No lock held.
 */
struct sock *exs_listen_accept(struct sock *sk, long *timeo);
int exs_listen_add_waiter(struct exs_listen *listen, struct exs_waiter *w);
bool exs_listen_remove_waiter(struct exs_listen *listen, struct exs_waiter *w);

/* options.c */
void exs_options_init(struct exs_options *o);
/* The options with which a connection of @xs starts. Any context. */
void exs_options_copy(struct exs_options *o, const struct exs_sock *xs);
/* Level SOL_EXS. Return: 0, -ENOPROTOOPT, -EOPNOTSUPP (not with this socket type),
 * -EINVAL, -EPERM, -EBUSY, -EISCONN. Sleep; no lock held.
 */
int exs_set_option(struct exs_sock *xs, int name, int value);
int exs_get_option(struct exs_sock *xs, int name, int *value);
/* EXS_SO_RECV_TIMEOUT if @recv, else EXS_SO_SEND_TIMEOUT. 0, -EINVAL, -EFAULT. */
int exs_set_timeout(struct exs_sock *xs, bool recv, sockptr_t val, unsigned int len);
void exs_get_timeout(const struct exs_sock *xs, bool recv, struct exs_opt_timeout *t);

/* tcpopt.c */
void exs_tcp_init(struct exs_sock *xs);
/* @child, accepted from @xs, inherits its options. */
void exs_tcp_inherit(struct exs_sock *child, const struct exs_sock *xs);
/* Likewise of TCP's options. */
void exs_tcp_give(const struct exs_sock *xs, struct sock *to);
int exs_tcp_set(struct exs_sock *xs, int name, sockptr_t val, unsigned int len);
int exs_tcp_get(const struct exs_sock *xs, int name, int *value);
void exs_tcp_info(struct exs_sock *xs, struct tcp_info *info);
/* TCP_USER_TIMEOUT in jiffies; 0: none. Any context. */
long exs_user_timeout(const struct exs_sock *xs);

/* sockopt.c */
/* -EOPNOTSUPP: an option of the socket layer is set that has no effect here. */
int exs_sock_check_promises(const struct sock *sk);
int exs_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len);
int exs_getsockopt(struct socket *sock, int level, int name, char __user *val,
		   int __user *len);

#endif
