// SPDX-License-Identifier: GPL-2.0
/*
 * Plain receives of SOCK_SEQPACKET.
 *
 * A message that arrives before a receive is kept. A small one is stored when it arrives
 * (the peer knows how much we keep). One that came into the ring stays there. A large one
 * stays with the peer, which announces it, until a plain recv() or a poll() has it fetched
 * into kernel memory. Then it belongs to the socket, even if that recv() fails.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "message.h"
#include "run.h"
#include "sock.h"
#include "stats.h"

/**
 * struct exs_kept - a message that waits for recv()
 * @node: in conn->messages, which is in the order of the messages
 * @refs: that list, and threads that copy from it; conn->lock
 * @ready: it has arrived; otherwise it holds the place of one that is being fetched
 * @len: bytes
 * @trunc: it was longer than announced
 * @pages: fetched: the charge to the connection's user
 * @m: its place in the ring; @m.space 0: not there
 * @x: fetched: its memory; NULL, and not in the ring: it was eager and is in @data
 * @data: the bytes
 */
struct exs_kept {
	struct list_head node;
	u32 refs;
	bool ready;
	u32 len;
	bool trunc;
	u32 pages;
	struct exs_in_ring m;
	struct exs_xfer *x;
	u8 data[];
};

static void exs_kept_free(struct exs_kept *kept)
{
	if (kept->x) {
		exs_peer_pages_uncharge(kept->x->conn, kept->pages);
		exs_kbuf_free(kept->x);
	}
	kfree(kept);
}

static void exs_kept_put(struct exs_conn *conn, struct exs_kept *kept)
{
	bool last;

	spin_lock(&conn->lock);
	last = !--kept->refs;
	spin_unlock(&conn->lock);
	if (last)
		exs_kept_free(kept);
}

/* Until a message is there, @len is how many bytes it may have. */
static struct exs_kept *exs_kept_alloc(u32 len, gfp_t gfp)
{
	struct exs_kept *kept = kmalloc(struct_size(kept, data, len), gfp | __GFP_ACCOUNT);

	if (kept)
		kept->len = len;
	return kept;
}

static void exs_spare_add(struct exs_conn *conn, struct exs_kept *kept)
{
	lockdep_assert_held(&conn->lock);
	list_add(&kept->node, &conn->spares);
	conn->nspares++;
}

static struct exs_kept *exs_spare_take(struct exs_conn *conn)
{
	struct exs_kept *kept = list_first_entry(&conn->spares, struct exs_kept, node);

	list_del(&kept->node);
	conn->nspares--;
	return kept;
}

static void exs_spares_free(struct exs_conn *conn)
{
	while (!list_empty(&conn->spares))
		kfree(exs_spare_take(conn));
}

/*
 * There may be spare memory for earlier messages, which receives took after all. It may be too
 * short for these.
 */
bool exs_message_reserve(struct exs_conn *conn, u32 len, u32 n)
{
	struct exs_kept *kept;

	lockdep_assert_held(&conn->lock);
	if (n && (conn->spare_len < len || (conn->nspares < n && conn->spare_len != len))) {
		exs_spares_free(conn);
		conn->spare_len = len;
	}
	conn->spares_wanted = n;
	while (conn->nspares < n) {
		kept = exs_kept_alloc(conn->spare_len, GFP_ATOMIC | __GFP_NOWARN);
		if (!kept)
			return false;
		exs_spare_add(conn, kept);
	}
	return true;
}

/*
 * Another one. The memory is small and cannot be done without, so do not fail. Meanwhile
 * nothing else is received.
 */
static void exs_spare_provide(struct exs_conn *conn)
{
	struct exs_kept *kept = exs_kept_alloc(conn->spare_len, GFP_KERNEL | __GFP_NOFAIL);

	spin_lock(&conn->lock);
	exs_spare_add(conn, kept);
	spin_unlock(&conn->lock);
}

void exs_message_provide(struct exs_conn *conn)
{
	u32 missing;

	spin_lock(&conn->lock);
	missing = conn->spares_wanted - min(conn->spares_wanted, conn->nspares);
	spin_unlock(&conn->lock);
	while (missing--)
		exs_spare_provide(conn);
}

static struct exs_kept *exs_message_use_spare(struct exs_conn *conn, u32 len)
{
	struct exs_kept *kept = exs_spare_take(conn);

	lockdep_assert_held(&conn->lock);
	kept->refs = 1;
	kept->ready = true;
	kept->len = len;
	kept->trunc = false;
	kept->m.space = 0;
	kept->x = NULL;
	list_add_tail(&kept->node, &conn->messages);
	return kept;
}

void exs_message_keep(struct exs_conn *conn, const void *data, u32 len)
{
	memcpy(exs_message_use_spare(conn, len)->data, data, len);
}

void exs_message_keep_in_ring(struct exs_conn *conn)
{
	struct exs_in_ring m;

	while (exs_engine_next_kept(&conn->engine, &m))
		exs_message_use_spare(conn, m.len)->m = m;
}

void exs_message_purge(struct exs_conn *conn)
{
	struct exs_kept *kept, *next;

	list_for_each_entry_safe(kept, next, &conn->messages, node)
		exs_kept_free(kept);
	exs_spares_free(conn);
}

static void exs_message_read_ring(struct exs_conn *conn, u32 off, u32 len)
{
	spin_lock(&conn->lock);
	exs_conn_read_ring(conn, off, len);
	spin_unlock(&conn->lock);
}

static int exs_message_copy(struct exs_conn *conn, struct exs_kept *kept,
			    struct iov_iter *to, size_t len)
{
	size_t n = min_t(size_t, len, kept->len);

	if (kept->x)
		return exs_kbuf_drain(kept->x, n, to);
	if (kept->m.space) {
		exs_message_read_ring(conn, kept->m.off, n);
		return copy_to_iter(conn->ring_mem + kept->m.off, n, to) == n ? 0 : -EFAULT;
	}
	return copy_to_iter(kept->data, n, to) == n ? 0 : -EFAULT;
}

/* End the receive @x, which is on no list, with @kept's bytes. */
static void exs_message_end_with(struct exs_conn *conn, struct exs_xfer *x,
				 struct exs_kept *kept, struct iov_iter *to)
{
	u64 len = x->rcv.len;
	int err;

	spin_lock(&conn->lock);
	exs_conn_writes(conn, x, 0, min_t(u64, len, kept->len));
	spin_unlock(&conn->lock);
	err = exs_message_copy(conn, kept, to, len);
	x->ended = true;
	x->rcv.err = err;
	x->rcv.filled = err ? 0 : min_t(u64, len, kept->len);
	if (kept->len > len || kept->trunc)
		x->msg_flags |= MSG_TRUNC;
	spin_lock(&conn->lock);
	if (x->map.mapped && x->rcv.filled)
		exs_conn_wrote(conn, x, 0, x->rcv.filled);
	list_add_tail(&x->link, &conn->recvs);
	exs_engine_recv_kept(&conn->engine, &x->rcv);
	spin_unlock(&conn->lock);
}

/* The oldest message that no plain recv() is fetching. */
static struct exs_kept *exs_message_unclaimed(const struct exs_conn *conn)
{
	struct exs_kept *kept;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry(kept, &conn->messages, node)
		if (kept->ready)
			return kept;
	return NULL;
}

/*
 * A thread is about to copy @kept, until exs_message_consume(), or, if it only looks,
 * exs_message_looked_at().
 */
static void exs_message_claim(struct exs_conn *conn, struct exs_kept *kept, bool look)
{
	lockdep_assert_held(&conn->lock);
	if (kept->m.space)
		exs_engine_reading(&conn->engine);
	if (look)
		kept->refs++;
	else
		list_del(&kept->node);
}

static void exs_message_looked_at(struct exs_conn *conn, struct exs_kept *kept)
{
	if (kept->m.space) {
		spin_lock(&conn->lock);
		exs_engine_read(&conn->engine, 0);
		spin_unlock(&conn->lock);
	}
	exs_kept_put(conn, kept);
	exs_conn_run(conn);
}

static void exs_message_consume(struct exs_conn *conn, struct exs_kept *kept)
{
	if (!kept->x) {
		spin_lock(&conn->lock);
		if (kept->m.space)
			exs_engine_read(&conn->engine, kept->m.space);
		else
			exs_engine_unqueued(&conn->engine, kept->len);
		/* Wake readers that wait for the end: this may have been the last message. */
		if (exs_engine_eof(&conn->engine))
			conn->wake |= EPOLLIN;
		spin_unlock(&conn->lock);
	}
	exs_kept_put(conn, kept);
	exs_conn_run(conn);
}

/* The receive that has waited longest for the fetch. It cannot be cancelled any more. */
static struct exs_xfer *exs_held_take(struct exs_conn *conn)
{
	struct exs_xfer *x;

	lockdep_assert_held(&conn->lock);
	x = list_first_entry_or_null(&conn->held, struct exs_xfer, link);
	if (x) {
		list_del(&x->link);
		x->held = false;
		x->ended = true;
	}
	return x;
}

/*
 * The fetch is over: receives that waited for it get the kept messages, and the others go
 * to the engine. Later receives wait behind them.
 */
static void exs_held_release(struct exs_conn *conn)
	__must_hold(&conn->lock)
{
	struct exs_xfer *x, *next;
	struct exs_kept *kept;
	struct iov_iter to;

	lockdep_assert_held(&conn->lock);
	while ((kept = exs_message_unclaimed(conn)) && (x = exs_held_take(conn))) {
		exs_message_claim(conn, kept, false);
		spin_unlock(&conn->lock);
		to = x->iter;
		exs_message_end_with(conn, x, kept, &to);
		exs_message_consume(conn, kept);
		spin_lock(&conn->lock);
	}
	conn->fetching = false;
	conn->run_again = true;
	conn->late_recv |= conn->read_shut && !list_empty(&conn->held);
	list_for_each_entry_safe(x, next, &conn->held, link) {
		x->held = false;
		list_move_tail(&x->link, &conn->recvs);
		exs_engine_recv(&conn->engine, &x->rcv);
	}
}

void exs_message_hold(struct exs_conn *conn, struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	x->held = true;
	list_add_tail(&x->link, &conn->held);
}

void exs_message_unhold(struct exs_conn *conn, struct exs_xfer *x)
{
	lockdep_assert_held(&conn->lock);
	x->held = false;
	x->ended = true;
	x->msg_flags &= ~MSG_EOR;
	x->result = conn->read_shut ? 0 : -ECANCELED;
	/* Behind those before it, whose keys may still be valid. */
	list_move_tail(&x->link, list_empty(&conn->ending) ? &conn->finished : &conn->ending);
}

static void exs_pull_done(struct exs_xfer *x, long res)
{
	struct exs_kept *kept = x->private;
	struct exs_conn *conn = x->conn;
	bool keep = res >= 0 && !x->rcv.err && !(x->rcv.flags & EXS_RCV_EOF);

	spin_lock(&conn->lock);
	conn->pulling = false;
	conn->wake |= EPOLLIN;
	if (keep) {
		kept->ready = true;
		kept->len = res;
		kept->trunc = x->rcv.flags & EXS_RCV_TRUNCATED;
	} else {
		list_del(&kept->node);
		conn->run_again = true;	/* a poller may want the message that is announced now */
	}
	if (conn->fetching)
		exs_held_release(conn);
	spin_unlock(&conn->lock);
	if (!keep)
		exs_kept_free(kept);
}

/*
 * Whether a plain recv() has to fetch its message: the peer announced one that no
 * asynchronous receive will take; or there are such receives, and it needs a place behind
 * them.
 */
static bool exs_message_pullable(const struct exs_conn *conn, long timeo)
{
	lockdep_assert_held(&conn->lock);
	if (conn->pulling || conn->state != EXS_CONN_UP)
		return false;
	if (list_empty(&conn->engine.receives))
		return conn->engine.announced;
	return timeo;
}

/* The oldest message, if it has arrived. */
static struct exs_kept *exs_message_first(const struct exs_conn *conn)
{
	struct exs_kept *kept;

	lockdep_assert_held(&conn->lock);
	if (list_empty(&conn->messages))
		return NULL;
	kept = list_first_entry(&conn->messages, struct exs_kept, node);
	return kept->ready ? kept : NULL;
}

bool exs_message_ready(const struct exs_conn *conn)
{
	return exs_message_first(conn);
}

bool exs_message_kept(const struct exs_conn *conn)
{
	return exs_message_unclaimed(conn);
}

static struct exs_kept *exs_pull_alloc(struct exs_conn *conn, u32 len, u32 flags)
{
	struct exs_kept *kept = kzalloc(sizeof(*kept), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!kept)
		return ERR_PTR(err);
	kept->pages = PFN_UP(len);
	err = exs_peer_pages_charge(conn, kept->pages);
	if (err)
		goto free;
	err = -ENOMEM;
	kept->x = exs_kbuf_alloc(conn, len, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!kept->x)
		goto uncharge;
	kept->refs = 1;
	kept->x->is_recv = true;
	kept->x->rcv.len = len;
	kept->x->rcv.flags = flags;
	kept->x->done = exs_pull_done;
	kept->x->private = kept;
	exs_kbuf_iter(kept->x, ITER_DEST, &kept->x->iter, len);
	return kept;

uncharge:
	exs_peer_pages_uncharge(conn, kept->pages);
free:
	kfree(kept);
	return ERR_PTR(err);
}

static void exs_pull_undo(struct exs_conn *conn, struct exs_kept *kept)
{
	spin_lock(&conn->lock);
	list_del(&kept->node);
	spin_unlock(&conn->lock);
	exs_kept_free(kept);
}

/* Fetch the announced message; or, behind receives, the first @len bytes of any. conn->lock
 * held, dropped meanwhile. Return: 0 or a negative errno.
 */
static int exs_message_pull(struct exs_conn *conn, size_t len)
	__must_hold(&conn->lock)
{
	bool announced = list_empty(&conn->engine.receives);
	u32 size = announced ? conn->engine.announced_len : min_t(size_t, len, EXS_MESSAGE_MAX);
	struct exs_kept *kept;
	int err;

	lockdep_assert_held(&conn->lock);
	conn->pulling = true;
	conn->pull_failed = false;
	spin_unlock(&conn->lock);
	kept = exs_pull_alloc(conn, size, announced ? EXS_RCV_FETCH : 0);
	err = PTR_ERR_OR_ZERO(kept);
	if (!err) {
		/* Small messages behind it may arrive before it is submitted. */
		spin_lock(&conn->lock);
		list_add_tail(&kept->node, &conn->messages);
		spin_unlock(&conn->lock);
		err = exs_conn_submit(conn, kept->x);
		if (err)
			exs_pull_undo(conn, kept);
	}
	spin_lock(&conn->lock);
	if (!err)
		return 0;
	conn->pulling = false;
	/* Wake threads that wait for it, or for messages behind it. */
	conn->wake |= EPOLLIN;
	spin_unlock(&conn->lock);
	exs_conn_run(conn);
	spin_lock(&conn->lock);
	return err;
}

/* No message will come any more. */
static bool exs_message_end(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->pulling)
		return false;
	return conn->state > EXS_CONN_UP || conn->read_shut ||
	       exs_engine_eof(&conn->engine);
}

/*
 * Whether a non-blocking recv() would return a message, the end, or an error. A message
 * that was only announced has not arrived, and whether it comes is up to the peer.
 */
bool exs_message_readable(const struct exs_conn *conn)
{
	return exs_message_ready(conn) || exs_message_end(conn) ||
	       (conn->pull_failed && exs_message_pullable(conn, 0));
}

/*
 * poll() reports a message only when it has arrived, so announced ones are fetched for it:
 * one at a time, and only if no other waits to be read.
 */
static bool exs_message_fetchable(const struct exs_conn *conn)
{
	return conn->socktype == EXS_WIRE_SEQPACKET && list_empty(&conn->messages) &&
	       !conn->pull_failed && exs_message_pullable(conn, 0);
}

void exs_message_want(struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!exs_message_fetchable(conn))
		return;
	conn->pull_wanted = true;
	exs_conn_kick(conn);
}

void exs_message_fetch(struct exs_conn *conn)
{
	bool wanted = conn->pull_wanted ||
		      (conn->sk && exs_sock_has_audience(conn->sk, EPOLLIN));
	struct mem_cgroup *old;
	int err;

	lockdep_assert_held(&conn->lock);
	if (!wanted || !exs_message_fetchable(conn) || !exs_run_may_allocate(conn))
		return;
	conn->pull_wanted = false;
	conn->fetching = true;
	conn->budget -= PFN_UP(conn->engine.announced_len);
	old = set_active_memcg(conn->memcg);
	err = exs_message_pull(conn, 0);
	/* A reader then tries again, and gets the error. */
	if (err && err != -EAGAIN) {
		exs_count(conn->xn, fetch_failed, 1);
		conn->pull_failed = true;
		conn->wake |= EPOLLIN;
	}
	if (err)
		exs_held_release(conn);
	set_active_memcg(old);
}

/*
 * Whether the next message can be fetched now. A receive may cut a message to the length of
 * its buffer. A recv() with MSG_PEEK must not, so it waits until the message's length is known:
 * until the receives before it have ended.
 */
static bool exs_message_fits(const struct exs_conn *conn, bool peek, long timeo)
{
	return exs_message_pullable(conn, peek ? 0 : timeo);
}

static int exs_message_wait(struct exs_conn *conn, size_t len, bool peek, long *timeo)
	__must_hold(&conn->lock)
{
	int err = 0;

	lockdep_assert_held(&conn->lock);
	while (!err && !exs_message_ready(conn) && !exs_message_end(conn)) {
		if (!exs_message_fits(conn, peek, *timeo)) {
			err = exs_conn_wait(conn, exs_message_ready(conn) ||
					    exs_message_end(conn) ||
					    exs_message_fits(conn, peek, *timeo), timeo);
			continue;
		}
		err = exs_message_pull(conn, len);
		if (err == -EAGAIN)
			err = 0;	/* another is the next one now: look again */
	}
	return err;
}

/* The oldest message, off the list unless @peek. NULL and *err: the end, or an error. */
static struct exs_kept *exs_message_take(struct exs_conn *conn, size_t len, bool peek,
					 long timeo, int *err)
{
	struct exs_kept *kept = NULL;

	spin_lock(&conn->lock);
	*err = conn->engine_up ? exs_message_wait(conn, len, peek, &timeo) : -ENOTCONN;
	if (!*err) {
		kept = exs_message_first(conn);
		if (!kept)
			*err = exs_conn_end_error(conn);
		else
			exs_message_claim(conn, kept, peek);
	}
	spin_unlock(&conn->lock);
	return kept;
}

static int exs_message_give(struct exs_conn *conn, struct exs_kept *kept,
			    struct msghdr *msg, size_t len, int flags)
{
	int err = exs_message_copy(conn, kept, &msg->msg_iter, len);
	int res = flags & MSG_TRUNC ? kept->len : min_t(size_t, len, kept->len);

	msg->msg_flags |= MSG_EOR;
	if (kept->len > len || kept->trunc)
		msg->msg_flags |= MSG_TRUNC;
	if (flags & MSG_PEEK)
		exs_message_looked_at(conn, kept);
	else
		exs_message_consume(conn, kept);
	return err ?: res;
}

int exs_read_message(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len, int flags)
{
	struct exs_kept *kept;
	int err;

	kept = exs_message_take(conn, len, flags & MSG_PEEK,
				sock_rcvtimeo(sk, flags & MSG_DONTWAIT), &err);
	return kept ? exs_message_give(conn, kept, msg, len, flags) : err;
}

u32 exs_message_queued(struct exs_conn *conn)
{
	const struct exs_kept *kept;

	lockdep_assert_held(&conn->lock);
	kept = list_first_entry_or_null(&conn->messages, struct exs_kept, node);
	if (kept)
		return kept->len;
	return conn->engine.announced ? conn->engine.announced_len : 0;
}

bool exs_read_kept(struct exs_conn *conn, struct exs_xfer *x)
{
	struct iov_iter iter = x->iter;
	struct exs_kept *kept;

	spin_lock(&conn->lock);
	kept = exs_message_unclaimed(conn);
	if (kept)
		exs_message_claim(conn, kept, false);
	spin_unlock(&conn->lock);
	if (!kept)
		return false;

	x->conn = conn;
	exs_message_end_with(conn, x, kept, &iter);
	exs_message_consume(conn, kept);
	return true;
}
