/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection: the place where the socket, the protocol engine and the
 * transport's endpoint meet.
 *
 *   core (calls of the program)        async (operations)
 *        \                              /
 *         exs_conn_submit(), exs_conn_recvmsg(), ...
 *                      |
 *                  exs_conn  --- engine (proto/: decides)
 *                      |
 *                  exs_ep    (transport/: executes)
 *
 * Every event (a submission, a message, a completion) is reported to the engine
 * under conn->lock; then exs_conn_run() pulls the resulting work from the engine.
 * One thread at a time runs a connection; the others set a flag and leave. So events stay
 * in order, and no lock is held while many bytes are copied.
 *
 * Everything runs in process context: conn->lock is never taken in interrupts. The order of
 * locks is in Documentation/design.md.
 *
 * Life: created by connect() or by a connection request; the socket and the
 * endpoint hold a reference each. At its end, the endpoint's teardown work
 * drains the queue pair, disconnects (iWARP: the reverse) and calls
 * exs_conn_drained(). Only then do transfers end whose memory the peer could
 * still have written to.
 */
#ifndef EXS_CORE_CONN_H
#define EXS_CORE_CONN_H

#include <linux/kref.h>
#include <linux/memcontrol.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "../proto/engine.h"
#include "options.h"
#include "turns.h"

struct exs_call;
struct exs_conn;
struct exs_ep;
struct exs_ep_ops;
struct exs_net;
struct exs_sock;
struct exs_user;

enum exs_conn_state {
	EXS_CONN_CONNECTING,	/* new; ours or the peer's hand-shake             */
	EXS_CONN_UP,		/* engine runs                                   */
	EXS_CONN_CLOSING,	/* teardown was begun: nothing more is posted      */
	EXS_CONN_DEAD,		/* drained: nothing refers to memory any more      */
};

/**
 * struct exs_map - a transport's state for one transfer's memory
 * @sgt: the pages, DMA-mapped
 * @one: the entry of @sgt, if one is enough
 * @cursor: where the next piece starts (pieces only go forward)
 * @cursor_off: bytes into that entry
 * @cursor_pos: bytes before it
 * @mrs: memory keys of a receive, struct exs_verbs_mr
 * @nmrs: how many
 * @valid: keys that the peer may be using
 * @invalidating: keys whose invalidation is under way
 * @mapped: whether @sgt is
 * @copy: vmalloc memory in place of memory in too many pieces, or NULL
 * @copy_len: bytes
 * @copy_user: charged with its pages
 * @copy_vec: @copy for @iter of a receive
 * @target: receive: the destination of the bytes in @copy
 */
struct exs_map {
	struct sg_table sgt;
	struct scatterlist one;
	struct scatterlist *cursor;
	u32 cursor_off;
	u64 cursor_pos;
	struct list_head mrs;
	u32 nmrs;
	u32 valid;
	u32 invalidating;
	bool mapped;
	void *copy;
	size_t copy_len;
	struct exs_user *copy_user;
	struct kvec copy_vec;
	struct iov_iter target;
};

/**
 * struct exs_mark - a place in an ITER_BVEC
 * @base: its array; NULL: none
 * @bvec: the element
 * @skip: bytes of it that are before the place
 * @off: all bytes before the place
 */
struct exs_mark {
	const struct bio_vec *base;
	const struct bio_vec *bvec;
	size_t skip;
	u64 off;
};

/**
 * struct exs_xfer - one transfer: a send or a receive
 * @snd: the engine's view of a send
 * @rcv: the engine's view of a receive
 * @is_recv: which
 * @link: in conn->sends or conn->recvs while the engine or the transport knows it
 * @conn: whose
 * @iter: the memory: an ITER_BVEC whose array and pages stay until @done. While
 *	a receive is mapped its transport may put an ITER_KVEC in place of it.
 * @mark: where the last copy began (xfer.c)
 * @map: the transport's
 * @done: called once, process context, no lock held, with the bytes or a
 *	negative errno; it owns the transfer from then on and frees it
 * @private: for @done
 * @call: the asynchronous call; NULL if the memory is ours
 * @sibling: in call->xfers, until it has ended
 * @gate: send: one with snd.gate, at whose place this one is sent, or NULL
 * @behind: send: later ones that have ended, but must not be reported before this one
 * @waits: send: it is or was among those of another one
 * @msg_flags: MSG_TRUNC, MSG_EOR for the caller
 * @tx_pending: send: posted pieces whose completion is outstanding
 * @tx_bytes: send: their bytes, until none is pending
 * @all_posted: send: nothing more of it will be posted
 * @ended: the engine is done with it
 * @held: receive: in conn->held, the engine does not know it yet
 * @invalidating: receive: exs_conn_invalidated() will follow
 * @result: bytes or negative errno, valid once @ended or @all_posted
 */
struct exs_xfer {
	union {
		struct exs_snd snd;
		struct exs_rcv rcv;
	};
	bool is_recv;
	struct list_head link;
	struct exs_conn *conn;
	struct iov_iter iter;
	struct exs_mark mark;
	struct exs_map map;
	void (*done)(struct exs_xfer *x, long res);
	void *private;
	struct exs_call *call;
	struct list_head sibling;
	struct exs_xfer *gate;
	struct list_head behind;
	bool waits;
	u32 msg_flags;
	u32 tx_pending;
	u64 tx_bytes;
	bool all_posted;
	bool ended;
	bool held;
	bool invalidating;
	long result;
};

/**
 * struct exs_conn - see the top of this file
 * @ref: exs_conn_get(), exs_conn_put()
 * @xn: its network namespace, for counters; a reference; constant
 * @lock: guards all members below, except where noted
 * @ep: the endpoint; set once, before the connection is used
 * @sk: the socket; NULL once it is an orphan or before it was accepted
 * @err: positive errno not yet reported to the program (SO_ERROR), or 0; read
 *	without the lock, too, as are @state and @end_err
 * @state: moves forward only
 * @socktype: enum exs_wire_socktype
 * @tos: IP_TOS or IPV6_TCLASS when connecting began
 * @bound_dev_if: SO_BINDTODEVICE when connecting began, or 0
 * @falls_back: TCP takes over if this does not come up; set before it is used
 * @local: own address
 * @peer: the peer's address
 * @end_err: positive errno that ended it, 0 while it lives or after an orderly end
 * @options: its SOL_EXS options; read without the lock, too
 * @memcg: charged with its memory, whichever thread allocates it; a reference, or NULL (the
 *	kernel has no memory cgroups); constant
 * @mss: bytes of data in a packet; 0: not known; read without the lock, too
 * @user: the user whose cap it counts against until it is gone; NULL while it is half-open;
 *	a charge, set before it is used
 * @owner: the user who connected, or listens, whose turns the hand-shake takes; a reference,
 *	or NULL while it has no endpoint; constant
 * @hello: ours, as it was sent; no lock, see exs_conn_hello()
 */
struct exs_conn {
	struct kref ref;
	struct exs_net *xn;
	spinlock_t lock;	/* all below; see the top of this file */
	struct exs_ep *ep;
	struct sock *sk;
	int err, end_err;
	struct exs_options options;
	struct mem_cgroup *memcg;
	struct exs_user *user;
	struct exs_user *owner;
	enum exs_conn_state state;
	u8 socktype;
	u8 tos;
	int bound_dev_if;
	u32 mss;
	bool falls_back;
	struct exs_hello hello;
	struct sockaddr_storage local, peer;
	/* private: to conn.c, run.c, data.c, message.c */
	bool running, run_again;	/* exs_conn_run()                  */
	int budget;			/* left for this runner             */
	bool engine_up;			/* the engine was started            */
	bool drained;			/* the queue pair is gone           */
	bool awaited;			/* exs_ep_ops.go_on() is to be called  */
	bool all_ended;			/* all transfers ended after that   */
	bool fin_delivered;		/* according to the transport        */
	bool orphan;
	bool read_shut;			/* shutdown(SHUT_RD)                  */
	bool late_recv;			/* receives are to end because of it  */
	bool ring_made;			/* its size is fixed: see exs_run_ring() */
	u64 ring_after;			/* when to retry, as ktime_get_ns() */
	u64 credits_after;		/* the same for more credits            */
	bool pulling;			/* seqpacket: a plain recv's message is being
					 * received into a kernel buffer
					 */
	bool fetching;			/* the same for poll()                 */
	struct list_head held;		/* receives submitted meanwhile        */
	bool pull_wanted;		/* poll() wants a message fetched     */
	bool pull_failed;		/* no memory; the next recv reports it */
	__poll_t wake;			/* EPOLL* to report at the end of a run */
	void *ring_mem;			/* our ring; freed with us, or when refused */
	void *eager_mem;		/* stream: eager bytes before there is a ring;
					 * freed with us
					 */
	u32 ring_pages;			/* charged to @user, while @ring_mem is there */
	u32 recv_pages;			/* the same for added receives */
	bool theirs_wanted;		/* a message waits for engine.theirs */
	u32 users;			/* calls into the endpoint that sleep */
	struct exs_engine engine;
	struct list_head sends;		/* struct exs_xfer, in order */
	struct list_head recvs;		/* the same                  */
	struct list_head ending;	/* receives that ended, in order; their keys may
					 * still be valid
					 */
	struct list_head finished;	/* to be passed to ->done, in order   */
	struct list_head messages;	/* seqpacket: kept, unread             */
	struct list_head spares;	/* memory for the next kept messages */
	u32 nspares;
	u32 spare_len;			/* bytes of data that each of them can hold */
	u32 spares_wanted;		/* how many there have to be */
	struct list_head closers;	/* struct exs_waiter; exs_closers_lock */
	struct list_head flushers;	/* the same                            */
	struct list_head orphans;	/* exs_orphans; exs_orphans_lock       */
	u32 sndbuf_used;		/* cost of plain sends that were not sent */
	u32 unsent;			/* bytes of these sends               */
	bool revoking;			/* revoke_work is queued, or has expired */
	u64 revokes;			/* REVOKEs sent by then, the position  */
	u32 revoke_rp;			/* of the peer's data then, when that  */
	unsigned long revoke_at;	/* first was, the bytes received then, */
	u64 revoke_bytes;		/* and when the answer is due: jiffies */
	unsigned long revoke_by;
	struct exs_engine_stats reported;	/* already reported              */
	wait_queue_head_t wait;		/* readers, writers, linger             */
	wait_queue_head_t attendants;	/* its own lock: see exs_conn_attend()  */
	struct work_struct run_work;
	struct work_struct memory_work;	/* see exs_run_may_allocate()         */
	struct exs_turn memory_turn;
	bool memory_wanted;		/* this work is to run                  */
	bool allocating;		/* it runs                              */
	struct delayed_work linger_work;
	struct delayed_work revoke_work;
	struct hrtimer alarm;		/* exs_engine_alarm()                 */
	u64 tx_bytes;			/* bytes of sends, posted and incomplete */
};

/**
 * struct exs_ep - an endpoint: the transport's half of a connection
 * @ops: the transport
 * @conn: the other half; holds a reference
 * @max_piece: most bytes in one EXS_TX_WRITE
 * @max_copy: sends of at most this many bytes are copied when they are posted, and
 *	not mapped
 * @max_credits: most receives for which the peer can have credits; set once the device is
 *	known
 * @adverts_wait: an advert that is posted now would hold up everything behind it until those
 *	before it are acknowledged; conn->lock
 * @confirm: a complete send need not have arrived, so the peer confirms FIN; set before
 *	exs_conn_established()
 */
struct exs_ep {
	const struct exs_ep_ops *ops;
	struct exs_conn *conn;
	u32 max_piece;
	u32 max_copy;
	u32 max_credits;
	bool adverts_wait;
	bool confirm;
};

/**
 * struct exs_ep_ops - what a transport does
 *
 * @connect: start connecting to conn->peer from conn->local (family AF_UNSPEC
 *	if not bound). Without @nonblock it drives the steps in the caller's
 *	task and returns 0 or an errno; -EINTR/-ERESTARTSYS and -EINPROGRESS mean
 *	that it goes on by itself. Ends in exs_conn_established() or
 *	exs_conn_lost(). @timeout in jiffies bounds the whole. Sleeps.
 * @room: whether the send queue has room for any one exs_tx. conn->lock held.
 * @post: collect @tx, to be transmitted by @flush, which follows before conn->lock is
 *	released (for ADVERT and RING: register, fill in the segments). conn->lock held, does
 *	not sleep. An error resets the connection. Each send piece ends in exs_conn_sent(), one
 *	that is copied perhaps at once.
 * @flush: transmit it, in order; or drop it if @err, the error of @post, is not 0. As above.
 *	Return: @err or another.
 * @map: DMA-map @x->iter; receives: take memory keys for a window, set
 *	rcv.max_window and rcv.max_segs (or clear EXS_RCV_DIRECT if no key is
 *	left). Sleeps, no lock held.
 * @invalidate: take back the keys of a receive. conn->lock held. Return: true
 *	if exs_conn_invalidated() will follow, false if no key was valid.
 * @unmap: undo @map, any state. No lock held; may sleep.
 * @map_ring: DMA-map our ring (@mem: vmalloc memory of conn's, @size bytes) and
 *	take a key for it, registered and described by the next EXS_TX_RING. Once
 *	per connection. Unmapped by the teardown; the memory stays, as unread
 *	bytes outlive the queue pair; conn frees it. Sleeps. No lock.
 * @add_recvs: post @n more receives, for messages. 0; or -ENOMEM: nothing has changed; any
 *	other error comes with the end of the connection. Sleeps. No lock.
 * @read_ring: the processor is about to read @len bytes at @off of the ring.
 *	conn->lock held, does not sleep.
 * @writes: the processor is about to write @len bytes at @off of a receive. conn->lock held,
 *	does not sleep.
 * @wrote: it has done so. As above.
 * @poll: process a batch of completions, unless another thread is doing so. Process
 *	context, sleeps, no lock held. Return: their number.
 * @drain: process completions, a bounded number. An event reports the rest, or the next
 *	completion. As above.
 * @go_on: the threads have left that exs_conn_unused() or exs_conn_drained() had to wait
 *	for: call it again. conn->lock held, does not sleep.
 * @close: start the teardown; any process context, conn->lock not held, does not wait.
 *	(RDMA has only one way to disconnect: core has told the peer what it means.) The
 *	teardown work calls exs_conn_drained() afterwards. May be called twice.
 */
struct exs_ep_ops {
	int (*connect)(struct exs_ep *ep, bool nonblock, long timeout);
	bool (*room)(struct exs_ep *ep);
	int (*post)(struct exs_ep *ep, struct exs_tx *tx);
	int (*flush)(struct exs_ep *ep, int err);
	int (*map)(struct exs_ep *ep, struct exs_xfer *x);
	bool (*invalidate)(struct exs_ep *ep, struct exs_xfer *x);
	void (*unmap)(struct exs_ep *ep, struct exs_xfer *x);
	int (*map_ring)(struct exs_ep *ep, void *mem, u32 size);
	int (*add_recvs)(struct exs_ep *ep, u32 n);
	void (*read_ring)(struct exs_ep *ep, u32 off, u32 len);
	void (*writes)(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len);
	void (*wrote)(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len);
	int (*poll)(struct exs_ep *ep);
	int (*drain)(struct exs_ep *ep);
	void (*go_on)(struct exs_ep *ep);
	void (*close)(struct exs_ep *ep);
};

/* For core and async. Called without conn->lock, except where noted. */

int exs_conn_init(void);
void exs_conn_exit(void);

/*
 * For connection requests: others wait for the CM's handlers, which must not wait for memory.
 * As with TCP's, it may exceed the limit of the listener's cgroup.
 */
#define EXS_GFP_REQUEST	(GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT)

/*
 * A connection with the type and options of @xs (which connects or listens), without
 * endpoint, one reference. All its memory is charged to @memcg. NULL: no memory.
 */
struct exs_conn *exs_conn_alloc(const struct exs_sock *xs, struct mem_cgroup *memcg, gfp_t gfp);
void exs_conn_release(struct kref *ref);

static inline void exs_conn_get(struct exs_conn *conn)
{
	kref_get(&conn->ref);
}

static inline void exs_conn_put(struct exs_conn *conn)
{
	kref_put(&conn->ref, exs_conn_release);
}

/*
 * Messages that we can take before we must return a credit: at first, and where the peer
 * cannot ask for more. With one less, each answer would come with a CREDIT: rule 5 of credit.c.
 */
#define EXS_HELLO_CREDITS	(EXS_WIRE_CREDITS_MIN + 1)
#define EXS_FIXED_CREDITS	16u

/*
 * Our hello, which is sent next. The engine then keeps to it, whatever becomes of the options
 * and sysctls that it was made from. Before exs_conn_established(); one caller at a time.
 */
const struct exs_hello *exs_conn_hello(struct exs_conn *conn);

/* The socket drops the connection, which stays as an orphan for at most @linger jiffies (0:
 * none), then is reset. Receives end with ECANCELED.
 */
void exs_conn_orphan(struct exs_conn *conn, unsigned long linger);

/* The module is being unloaded: reset all orphans. */
void exs_conn_reset_orphans(void);

/* Complete @closers (see exs_closers_tell()) when the connection is over and all its
 * transfers have ended. They now belong to the connection, which is an orphan.
 */
void exs_conn_tell_closers(struct exs_conn *conn, struct list_head *closers);

/* Likewise complete @flushers when all sends and the FIN are delivered, or cannot be. */
void exs_conn_tell_flushed(struct exs_conn *conn, struct list_head *flushers);

/* Attach a socket to the connection; it gets the wake-ups. */
void exs_conn_graft(struct exs_conn *conn, struct sock *sk);

/* Set an option (SOL_EXS) to a valid value; exs_conn_run() follows. Any context except
 * interrupts. Return: 0, -EBUSY (the ring exists), -EISCONN (too late to do without a
 * ring).
 */
int exs_conn_set_option(struct exs_conn *conn, int name, int value);

/* Send FIN after everything that was submitted. */
void exs_conn_shutdown(struct exs_conn *conn);

/* shutdown(SHUT_RD): waiting calls and pending receives end with the bytes that they have,
 * as at the end of the stream.
 */
void exs_conn_shutdown_read(struct exs_conn *conn);

/* Whether there are data that the program has not read, so that closing resets. */
bool exs_conn_has_unread(struct exs_conn *conn);

/* Wait until all sends and the FIN are delivered, at most @timeout jiffies. Return: 0,
 * -EAGAIN after the timeout, -ERESTARTSYS.
 */
int exs_conn_flush(struct exs_conn *conn, long timeout);

/* EPOLL* bits of a connection (without those of the socket's own state). A stream with
 * fewer than @lowat bytes, and more to come, is not readable. A message is readable once it
 * has arrived: this has an announced one fetched.
 */
__poll_t exs_conn_poll(struct exs_conn *conn, int lowat);

/* Queue a transfer. x->done follows unless an error is returned: -ENOTCONN, -EPIPE, the
 * connection's error, -ENOMEM, or -EAGAIN: a kept message must be read first. Sleeps. With
 * x->gate (which stays until all sends at its place have ended) also -ECANCELED: the gate
 * has ended.
 */
int exs_conn_submit(struct exs_conn *conn, struct exs_xfer *x);

/* No more sends at the place of @gate: it ends, if it has not ended. Sleeps. */
void exs_conn_open(struct exs_conn *conn, struct exs_xfer *gate);

/* Cancel the transfers of @call that have not ended. All are of this connection. Sleeps. */
void exs_conn_cancel(struct exs_conn *conn, const struct exs_call *call);

/* Do the pending work. Sleeps. The second form is called and returns with conn->lock held. */
void exs_conn_run(struct exs_conn *conn);
void exs_conn_run_locked(struct exs_conn *conn) __must_hold(&conn->lock);
/* Have a worker do it. The caller has a reference. Any context. */
void exs_conn_kick(struct exs_conn *conn);

/* No operation of it is left, and nothing comes any more. */
static inline bool exs_conn_is_dead(const struct exs_conn *conn)
{
	return READ_ONCE(conn->state) == EXS_CONN_DEAD;
}

/*
 * Process completions instead of the transport's worker. @entry is woken when there are
 * any: its function is called with the list locked, in any context, and the caller then
 * soon calls exs_conn_drain_cq().
 */
static inline void exs_conn_attend(struct exs_conn *conn, struct wait_queue_entry *entry)
{
	add_wait_queue_exclusive(&conn->attendants, entry);
}

static inline void exs_conn_unattend(struct exs_conn *conn, struct wait_queue_entry *entry)
{
	remove_wait_queue(&conn->attendants, entry);
}

/* Sleep. Return: the number of completions. */
int exs_conn_drain_cq(struct exs_conn *conn);

/* The same for one batch, without requesting an event. Return: whether the connection is
 * up, so that more can come.
 */
bool exs_conn_poll_cq(struct exs_conn *conn);

/* The calls of the socket layer on a connected socket (core/data.c). */
int exs_conn_sendmsg(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len);
int exs_conn_recvmsg(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len, int flags);

/*
 * For the transport. Process context. Those marked [locked] are called with conn->lock
 * held, and exs_conn_run() follows after it is released.
 */

/* The hand-shake is done. The socket type of @peer is checked here. Return: 0 or -EPROTO
 * (close the endpoint). Not locked.
 */
int exs_conn_established(struct exs_conn *conn, const struct exs_hello *peer);

/* There are completions. Any context. Return: whether a thread attends to them. */
bool exs_conn_event(struct exs_conn *conn);

/* The connection failed, the peer ended it, or the device was removed: @err is a positive
 * errno (ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETDOWN, ...), or 0: the peer
 * disconnected. Decides whether the end was orderly, wakes all waiting threads, and calls
 * ops->close(). Not locked. May be called more than once: the first call counts.
 */
void exs_conn_lost(struct exs_conn *conn, int err);

/* A SEND of @len bytes arrived at @buf; it @invalidates a key. [locked] Return: 0; -EPROTO:
 * stop, and call exs_conn_lost() with EPROTO; -ENOMEM: nothing was done, call
 * exs_conn_provide() and try again.
 */
int exs_conn_received(struct exs_conn *conn, const void *buf, u32 len, bool invalidates);

/* Wait for the memory that a message needs. Not locked; sleeps. */
void exs_conn_provide(struct exs_conn *conn);

/* An immediate arrived. [locked] Return: 0 or -EPROTO, as above. */
int exs_conn_received_imm(struct exs_conn *conn, u32 imm);

/* The message's receive buffer is posted again. [locked] */
static inline void exs_conn_reposted(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	exs_engine_reposted(&conn->engine);
}

/* A posted piece of a send (WRITE or EAGER) is complete. [locked] */
void exs_conn_sent(struct exs_conn *conn, struct exs_xfer *x);

/* Whether any send is incomplete. [locked], but nothing has to follow */
bool exs_conn_sending(const struct exs_conn *conn);

/* Whether a receive may not have had its event yet. No lock held. */
bool exs_conn_receiving(struct exs_conn *conn);

/*
 * Whether the peer has sent FIN, and has received everything that was handed to the transport.
 * [locked], likewise
 */
bool exs_conn_arrived(const struct exs_conn *conn);

/* SO_KEEPALIVE: jiffies that the peer may be idle before a probe is sent; 0: no probes.
 * [locked], but nothing has to follow
 */
unsigned long exs_conn_keepalive(const struct exs_conn *conn);

/* TCP_USER_TIMEOUT: jiffies that the peer may leave sent data unacknowledged; 0: not set.
 * [locked], likewise
 */
unsigned long exs_conn_user_timeout(const struct exs_conn *conn);

/* The SEND of EXS_MSG_FIN is complete. [locked] */
void exs_conn_fin_delivered(struct exs_conn *conn);

/* The keys of a receive are invalid. [locked] */
void exs_conn_invalidated(struct exs_conn *conn, struct exs_xfer *x);

/**
 * exs_conn_unused() - the end begins
 * @conn: the connection, which is lost now, at the latest; not locked
 *
 * Threads that are inside the endpoint (completions, mapping) may be stopped there for long,
 * in a throttled cgroup, and all users share the workers that call this. So it does not wait.
 *
 * Return: whether no thread is in the endpoint, and none will be; otherwise exs_ep_ops.go_on()
 * will tell when to call again.
 */
bool exs_conn_unused(struct exs_conn *conn);

/**
 * exs_conn_drained() - nothing can access memory any more: end all transfers
 * @conn: exs_conn_unused(), and its queue pair is drained; not locked
 *
 * Does not wait for the thread that runs the connection.
 *
 * Return: true: everything has ended, and the endpoint may drop its reference; false: call
 * again after exs_ep_ops.go_on().
 */
bool exs_conn_drained(struct exs_conn *conn);

static inline struct exs_xfer *exs_snd_xfer(struct exs_snd *snd)
{
	return container_of(snd, struct exs_xfer, snd);
}

static inline struct exs_xfer *exs_rcv_xfer(struct exs_rcv *rcv)
{
	return container_of(rcv, struct exs_xfer, rcv);
}

/* Copy @len bytes to, or from, the pages of @x at byte @off (0, or -EFAULT: they are not
 * there, a bug). Any context. (core/xfer.c)
 */
void exs_xfer_put(struct exs_xfer *x, u64 off, const void *data, u32 len);
int exs_xfer_get(struct exs_xfer *x, u64 off, void *data, u32 len);

#endif
