/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What conn.c, run.c, data.c and message.c share and nobody else needs.
 */
#ifndef EXS_CORE_RUN_H
#define EXS_CORE_RUN_H

#include "conn.h"

extern struct workqueue_struct *exs_run_wq;

void exs_conn_run_work(struct work_struct *work);
/* Of conn->alarm: data has waited long enough. */
enum hrtimer_restart exs_conn_alarm(struct hrtimer *timer);

/*
 * Asynchronous closes and shutdowns (sock.c): a list is moved to another place; all on it hear
 * @err, 0 or a negative errno. Any process context.
 */
void exs_closers_move(struct list_head *from, struct list_head *to);
void exs_closers_tell(struct list_head *closers, int err);

/* An exs_ep_ops call that sleeps is over. conn->lock held. */
void exs_conn_unuse(struct exs_conn *conn);

/* 0, or what a send is told: -ENOTCONN, the pending error, -EPIPE. The error stays
 * pending until the program has heard of it. conn->lock held.
 */
int exs_conn_send_error(struct exs_conn *conn);

/* What a receive is told instead of the end: 0, or the pending error, which is told
 * then. conn->lock held.
 */
int exs_conn_take_error(struct exs_conn *conn);

/* EXS_SO_RING is 0: bytes go into receives of the program's that were advertised, or
 * nowhere. Any context.
 */
static inline bool exs_conn_ringless(const struct exs_conn *conn)
{
	return conn->socktype == EXS_WIRE_STREAM &&
	       !exs_option(&conn->options, EXS_SO_RING);
}

/* What plain sends may have unsent, at a cost of so many bytes. conn->lock held. */
u32 exs_conn_sndbuf(const struct exs_conn *conn);

/* A plain send would find room. conn->lock held. */
bool exs_conn_writable(const struct exs_conn *conn);

/* Bytes of plain sends that the device does not have yet. conn->lock held. */
u32 exs_conn_notsent(const struct exs_conn *conn);

/* Both sides have said their last: what TCP calls closed. conn->lock held. */
bool exs_conn_both_shut(const struct exs_conn *conn);

/* All sends and the FIN are with the peer. conn->lock held. */
bool exs_conn_flushed(const struct exs_conn *conn);

/**
 * exs_kbuf_alloc() - a transfer whose memory is the kernel's own
 * @conn: whose
 * @len: bytes, 0 to EXS_MESSAGE_MAX
 * @gfp: of its pages; __GFP_ZERO if a peer is to fill them, who may not do so
 *
 * Charged to the calling task's memory cgroup. Sleeps.
 * Return: the transfer, x->iter not set, or NULL.
 */
struct exs_xfer *exs_kbuf_alloc(struct exs_conn *conn, size_t len, gfp_t gfp);
void exs_kbuf_free(struct exs_xfer *x);
/* An iterator over its first @len bytes. @direction: ITER_SOURCE, ITER_DEST. */
void exs_kbuf_iter(struct exs_xfer *x, unsigned int direction, struct iov_iter *iter,
		   size_t len);
/* Fill the whole of it; copy out its first @len bytes. 0 or -EFAULT. */
int exs_kbuf_fill(struct exs_xfer *x, struct iov_iter *from);
int exs_kbuf_drain(struct exs_xfer *x, size_t len, struct iov_iter *to);

/* The oldest receive is a plain recv(), which has to look whether it became so.
 * conn->lock held.
 */
bool exs_conn_reader_first(struct exs_conn *conn);

/* Before @len bytes at @off of the ring are copied. conn->lock held. */
void exs_conn_read_ring(struct exs_conn *conn, u32 off, u32 len);

/* The processor wrote @len bytes from byte @off on into @x, a receive. conn->lock held. */
void exs_conn_wrote(struct exs_conn *conn, struct exs_xfer *x, u64 off, u64 len);

/* For exs_conn_wait(): poll the device if the socket wants that, until @wait is woken
 * or so long, at most *@timeo, which becomes less by it. No lock held.
 */
void exs_conn_spin(struct exs_conn *conn, const struct wait_queue_entry *wait, long *timeo);

/* Wait on conn->wait until @cond, under conn->lock (held before and after).
 * @timeo: jiffies, updated. 0: @cond is true, -EAGAIN: time is up, or a signal's
 * -ERESTARTSYS / -EINTR.
 */
#define exs_conn_wait(conn, cond, timeo) ({					\
	DEFINE_WAIT_FUNC(__wait, woken_wake_function);				\
	int __err = 0;								\
										\
	lockdep_assert_held(&(conn)->lock);					\
	add_wait_queue(&(conn)->wait, &__wait);					\
	while (!(cond)) {							\
		if (!*(timeo)) {						\
			__err = -EAGAIN;					\
			break;							\
		}								\
		if (signal_pending(current)) {					\
			__err = sock_intr_errno(*(timeo));			\
			break;							\
		}								\
		spin_unlock(&(conn)->lock);					\
		exs_conn_spin(conn, &__wait, timeo);				\
		*(timeo) = wait_woken(&__wait, TASK_INTERRUPTIBLE, *(timeo));	\
		spin_lock(&(conn)->lock);					\
	}									\
	remove_wait_queue(&(conn)->wait, &__wait);				\
	__err;									\
})

#endif
