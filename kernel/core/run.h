/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by conn.c, run.c, data.c and message.c only.
 */
#ifndef EXS_CORE_RUN_H
#define EXS_CORE_RUN_H

#include "conn.h"

extern struct workqueue_struct *exs_run_wq, *exs_memory_wq;

/* Allocate and free what all connections use: a slab cache, memory of each processor. */
int exs_run_init(void);
void exs_run_exit(void);

void exs_conn_run_work(struct work_struct *work);
/* The function of conn->alarm: data has waited long enough. */
enum hrtimer_restart exs_conn_alarm(struct hrtimer *timer);

/*
 * Asynchronous closes and shutdowns (sock.c): move a list to another place; end all on it
 * with @err, 0 or a negative errno. Any process context.
 */
void exs_closers_move(struct list_head *from, struct list_head *to);
void exs_closers_tell(struct list_head *closers, int err);

/* A sleeping exs_ep_ops call is over. conn->lock held. */
void exs_conn_unuse(struct exs_conn *conn);

/* The error of a send, or 0: -ENOTCONN, the pending error, -EPIPE. The error stays pending
 * until it is reported to the program. conn->lock held.
 */
int exs_conn_send_error(struct exs_conn *conn);

/* The result of a receive at the end: 0 if the peer has ended its direction, whatever came
 * later, as with TCP; or the pending error, which is then reported. conn->lock held.
 */
int exs_conn_end_error(struct exs_conn *conn);

/* A stream whose EXS_SO_RING is 0: bytes go only into advertised receives. Any context. */
static inline bool exs_conn_ringless(const struct exs_conn *conn)
{
	return conn->socktype == EXS_WIRE_STREAM &&
	       !exs_option(&conn->options, EXS_SO_RING);
}

/* Free struct exs_theirs. The connection does not run any more, and gets no message. */
void exs_conn_free_theirs(struct exs_conn *conn);

/* Free our ring, which nothing refers to, and return its charge. Sleeps. */
void exs_conn_free_ring(struct exs_conn *conn);

/* The most that unsent plain sends may cost, in bytes. conn->lock held. */
u32 exs_conn_sndbuf(const struct exs_conn *conn);

/* Whether there is room for a plain send, if only for a part of it. conn->lock held. */
bool exs_conn_writable(const struct exs_conn *conn);

/*
 * Whether poll(2) says that there is: then a third of the buffer is free, as with TCP.
 * conn->lock held.
 */
bool exs_conn_roomy(const struct exs_conn *conn);

/* Bytes of plain sends that were not posted yet. conn->lock held. */
u32 exs_conn_notsent(const struct exs_conn *conn);

/* memory.c */
/**
 * exs_peer_pages_charge() - pages that a peer makes a connection need
 * @conn: the connection
 * @n: the number
 *
 * They count as its user's pages, and to what all peers together may have (max_peer_pages),
 * also if the user has no caps: a peer asks for much with few bytes. There, too, a user leaves
 * as much as it has. Any context.
 *
 * Return: 0; -ENOBUFS: the user's cap; -ENOMEM: that of the machine, try again later.
 */
int exs_peer_pages_charge(struct exs_conn *conn, long n);
void exs_peer_pages_uncharge(struct exs_conn *conn, long n);

void exs_conn_memory_init(struct exs_conn *conn);
/* Whether the runner may allocate much; otherwise a work will. conn->lock held. */
bool exs_run_may_allocate(struct exs_conn *conn);
/* The runner has ended: queue that work, if it is wanted. conn->lock held. */
void exs_conn_memory_kick(struct exs_conn *conn);
/* The connection is over: the work does not wait for its turn any more. Not locked. */
void exs_conn_memory_leave(struct exs_conn *conn);

/* A thread that was busy with the connection has left. conn->lock held. */
void exs_conn_go_on(struct exs_conn *conn);

/*
 * End all receives, because no reader is left. @in_order: if some wait for the peer, those
 * behind them stay. conn->lock held, and dropped meanwhile.
 */
void exs_conn_cancel_receives(struct exs_conn *conn, bool in_order) __must_hold(&conn->lock);

/* Both sides have sent FIN: closed, in TCP's terms. conn->lock held. */
bool exs_conn_both_shut(const struct exs_conn *conn);

/*
 * TCP_CLOSE. When only the peer has closed, TCP is in CLOSE_WAIT. @shut: sending was shut down.
 * conn->lock held.
 */
bool exs_conn_is_closed(const struct exs_conn *conn, bool shut);

/* All sends and the FIN are delivered to the peer. conn->lock held. */
bool exs_conn_flushed(const struct exs_conn *conn);

/**
 * exs_kbuf_alloc() - a transfer whose memory is the kernel's own
 * @conn: whose
 * @len: bytes, 0 to EXS_MESSAGE_MAX
 * @gfp: of its pages; __GFP_ZERO if a peer should fill them, which it may fail
 *	to do
 *
 * Charged to the calling task's memory cgroup. Sleeps.
 * Return: the transfer, x->iter not set, or NULL.
 */
struct exs_xfer *exs_kbuf_alloc(struct exs_conn *conn, size_t len, gfp_t gfp);
void exs_kbuf_free(struct exs_xfer *x);
/* An iterator over its first @len bytes. @direction: ITER_SOURCE, ITER_DEST. */
void exs_kbuf_iter(struct exs_xfer *x, unsigned int direction, struct iov_iter *iter,
		   size_t len);
/* Fill all of it; copy its first @len bytes out. 0 or -EFAULT. */
int exs_kbuf_fill(struct exs_xfer *x, struct iov_iter *from);

/* Most bytes that a short send grows to while it waits. */
#define EXS_GATHER_MAX	PAGE_SIZE

/**
 * exs_kbuf_make_room() - have x->iter reach to EXS_GATHER_MAX bytes
 * @x: a send of fewer, filled; x->iter not set
 */
void exs_kbuf_make_room(struct exs_xfer *x);
bool exs_kbuf_has_room(const struct exs_xfer *x, u32 len);
/* Copy the bytes of @from behind those that @x sends. There is room. conn->lock held. */
void exs_kbuf_append(struct exs_xfer *x, struct exs_xfer *from);
int exs_kbuf_drain(struct exs_xfer *x, size_t len, struct iov_iter *to);

/* The oldest receive is a plain recv(), which may have just become the oldest. conn->lock
 * held.
 */
bool exs_conn_reader_first(struct exs_conn *conn);

/* The address of unread bytes: engine.h, struct exs_copy. */
static inline void *exs_conn_ring_at(const struct exs_conn *conn, u32 off)
{
	if (off & EXS_OFF_EAGER)
		return conn->eager_mem + (off & ~EXS_OFF_EAGER);
	return conn->ring_mem + off;
}

/* Before @len bytes at @off of the ring are copied. conn->lock held. */
void exs_conn_read_ring(struct exs_conn *conn, u32 off, u32 len);

/*
 * The processor is about to write, or wrote, @len bytes from byte @off on into @x, a receive.
 * conn->lock held.
 */
void exs_conn_writes(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len);
void exs_conn_wrote(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len);

/* For exs_conn_wait(): poll the device, if the socket wants that, until @wait is woken or
 * the time is over. Reduces *@timeo, its limit. No lock held.
 */
void exs_conn_spin(struct exs_conn *conn, const struct wait_queue_entry *wait, long *timeo);

/* Wait on conn->wait until @cond, under conn->lock (held before and after). @timeo:
 * jiffies, updated. 0: @cond is true; -EAGAIN: timeout; -ERESTARTSYS or -EINTR: a signal.
 */
#define exs_conn_wait(conn, cond, timeo) ({					\
	DEFINE_WAIT_FUNC(__wait, woken_wake_function);				\
	struct exs_conn *__conn = (conn);					\
	long *__timeo = (timeo);						\
	int __err = 0;								\
										\
	lockdep_assert_held(&__conn->lock);					\
	add_wait_queue(&__conn->wait, &__wait);					\
	while (!(cond)) {							\
		if (!*__timeo) {						\
			__err = -EAGAIN;					\
			break;							\
		}								\
		if (signal_pending(current)) {					\
			__err = sock_intr_errno(*__timeo);			\
			break;							\
		}								\
		spin_unlock(&__conn->lock);					\
		exs_conn_spin(__conn, &__wait, __timeo);			\
		*__timeo = wait_woken(&__wait, TASK_INTERRUPTIBLE, *__timeo);	\
		spin_lock(&__conn->lock);					\
	}									\
	remove_wait_queue(&__conn->wait, &__wait);				\
	__err;									\
})

#endif
