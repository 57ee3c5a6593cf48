// SPDX-License-Identifier: GPL-2.0
/*
 * sendmsg() and recvmsg() of connected sockets.
 *
 * An asynchronous call (call.h, of async/, which keeps the pages until completion) sends
 * from or receives into the pages themselves, or async/ feeds the send with pages of files
 * (async/file/feed.c). Reads of Linux AIO become asynchronous receives (async/aio.c).
 * A plain send copies the bytes into kernel pages and returns. Or it takes references: to
 * pages of splice(2) and sendfile(2), or to pages of io_uring or (MSG_ZEROCOPY) of the
 * program, which is notified when they are free again (async/memory/zerocopy.c).
 * A plain receive of a stream takes a place in the order of receives and copies from the
 * ring. Those of messages are in message.c.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "../compat/compat.h"
#include "call.h"
#include "conn.h"
#include "message.h"
#include "run.h"
#include "sock.h"
#include "stats.h"

/* Bytes that a plain send of a stream copies before it starts sending them. */
#define EXS_SEND_CHUNK	(64u << 10)

/* Sends up to this size are copied, as pinning would cost more. */
#define EXS_SEND_COPY	(16u << 10)

/* splice(2) or sendfile(2): the caller holds the pages, and drops them when the call returns. */
static bool exs_is_spliced(const struct msghdr *msg)
{
	return msg->msg_flags & EXS_MSG_SPLICE_PAGES && !msg->msg_ubuf &&
	       iov_iter_is_bvec(&msg->msg_iter);
}

/* A read of Linux AIO that would wait without limit. Others behave as on any other socket. */
static bool exs_is_aio(const struct sock *sk, const struct msghdr *msg, int flags)
{
	return exs_msg_aio(msg) &&
	       sock_rcvtimeo(sk, flags & MSG_DONTWAIT) == MAX_SCHEDULE_TIMEOUT;
}

static void exs_async_free(struct exs_conn *conn, struct exs_xfer *x)
{
	exs_live(conn->xn, xfers, -1);
	if (x != x->call->room)
		kfree(x);
}

exs_hot
static void exs_async_done(struct exs_xfer *x, long res)
{
	struct exs_call *call = x->call;

	call->msg_flags = x->msg_flags;
	exs_async_free(x->conn, x);
	call->done(call, res);
}

static struct exs_xfer *exs_async_alloc(struct exs_conn *conn, struct exs_call *call,
					const struct iov_iter *iter, size_t len,
					bool is_recv, int flags)
{
	struct exs_xfer *x = call->room ?: kmalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	bool message = conn->socktype == EXS_WIRE_SEQPACKET;

	if (!x)
		return NULL;
	memset(x, 0, sizeof(*x));
	exs_live(conn->xn, xfers, 1);
	x->is_recv = is_recv;
	x->call = call;
	x->iter = *iter;
	x->done = exs_async_done;
	x->msg_flags = message ? MSG_EOR : 0;
	if (!is_recv) {
		x->snd.len = len;
		return x;
	}
	/* The maximum length of a message; an advert can always cover it. */
	if (message) {
		len = min_t(size_t, len, EXS_MESSAGE_MAX);
		iov_iter_truncate(&x->iter, len);
	}
	x->rcv.len = len;
	x->rcv.flags = flags & MSG_WAITALL ? EXS_RCV_WAITALL : 0;
	return x;
}

/* Queue @x; a receive ends with a kept message if there is one. 0 or an errno. */
static int exs_async_submit(struct exs_conn *conn, struct exs_xfer *x)
{
	int err = exs_conn_submit(conn, x);

	while (err == -EAGAIN && x->is_recv) {
		if (exs_read_kept(conn, x)) {
			exs_conn_run(conn);
			return 0;
		}
		err = exs_conn_submit(conn, x);
	}
	return err;
}

/* Start an asynchronous transfer. Return: 0: call->done() follows; or an errno. */
exs_hot
static int exs_async_start(struct exs_conn *conn, struct exs_call *call,
			   const struct iov_iter *iter, size_t len, bool is_recv, int flags)
{
	struct exs_xfer *x = exs_async_alloc(conn, call, iter, len, is_recv, flags);
	int err;

	if (!x)
		return -ENOMEM;
	err = exs_async_submit(conn, x);
	if (err)
		exs_async_free(conn, x);
	call->taken = !err;
	return err;
}

exs_hot
static int exs_async_send(struct exs_conn *conn, struct exs_call *call, struct msghdr *msg,
			  size_t len)
{
	int err;

	if (!call->feed)
		return exs_async_start(conn, call, &msg->msg_iter, len, false, msg->msg_flags);
	err = call->feed(call, conn);
	call->taken = !err;
	return err;
}

/* The cost of a plain send: whole pages, and its structure. */
static u32 exs_send_cost(u32 len)
{
	return PAGE_ALIGN(len) + SZ_1K;
}

static void exs_send_unreserve(struct exs_conn *conn, u32 len)
{
	spin_lock(&conn->lock);
	conn->sndbuf_used -= exs_send_cost(len);
	conn->unsent -= len;
	conn->wake |= EPOLLOUT;
	spin_unlock(&conn->lock);
}

static void exs_copied_done(struct exs_xfer *x, long res)
{
	exs_send_unreserve(x->conn, x->snd.len);
	exs_kbuf_free(x);
}

/* Free the memory before the send buffer's room. */
static void exs_zerocopy_done(struct exs_xfer *x, long res)
{
	struct exs_conn *conn = x->conn;	/* the caller holds it */
	u32 len = x->snd.len;

	exs_async.zerocopy_free(x);
	exs_send_unreserve(conn, len);
}

/*
 * Wait for room in the send buffer and take up to @want of it; if @whole, all
 * or nothing. An empty buffer always grants it.
 * Return: bytes, or a negative errno.
 */
static int exs_send_reserve(struct exs_conn *conn, size_t want, bool whole, long *timeo)
{
	u32 room;
	int err, dead = 0;

	spin_lock(&conn->lock);
	err = exs_conn_wait(conn, exs_conn_writable(conn) ||
			    (dead = exs_conn_send_error(conn)), timeo);
	err = err ?: dead;
	if (err)
		goto out;
	room = exs_conn_sndbuf(conn);	/* may be smaller by now */
	room = room > conn->sndbuf_used ? room - conn->sndbuf_used : 0;
	room = clamp_t(u32, room, PAGE_SIZE, EXS_SEND_CHUNK);
	err = whole ? want : min_t(size_t, want, room);
	conn->sndbuf_used += exs_send_cost(err);
	conn->unsent += err;
out:
	spin_unlock(&conn->lock);
	return err;
}

/*
 * Two ways to send the program's next @len bytes, for which there is room. Return: 0, and
 * msg_iter is advanced; or a negative errno, and it is not.
 */
static int exs_send_in_place(struct exs_conn *conn, struct msghdr *msg, u32 len)
{
	struct exs_xfer *x = exs_async.zerocopy_alloc(conn, msg, len);
	int err;

	if (!x)
		return -ENOBUFS;
	x->snd.len = len;
	x->done = exs_zerocopy_done;
	err = exs_conn_submit(conn, x);
	if (err) {
		exs_async.zerocopy_free(x);
		return err;
	}
	if (exs_is_spliced(msg))
		exs_count(conn->xn, spliced_bytes, len);
	else
		exs_count(conn->xn, zerocopy_bytes, len);
	iov_iter_advance(&msg->msg_iter, len);
	return 0;
}

/* The bytes of a send went into the page of another one: return what its own pages cost. */
static void exs_send_share(struct exs_conn *conn, u32 len)
	__must_hold(&conn->lock)
{
	bool full = !exs_conn_writable(conn), roomy = exs_conn_roomy(conn);

	lockdep_assert_held(&conn->lock);
	conn->sndbuf_used -= exs_send_cost(len);
	/* Threads wait for any room in send(2), for more of it in poll(2). */
	if (!full && roomy == exs_conn_roomy(conn))
		return;
	conn->wake |= EPOLLOUT;
	exs_conn_run_locked(conn);
}

/*
 * As TCP does, a short send that has to wait takes the bytes of those behind it: all of them
 * cost one credit. Return: whether @x has given its bytes away.
 */
static bool exs_send_gather(struct exs_conn *conn, struct exs_xfer *x, u32 len)
	__must_hold(&conn->lock)
{
	struct exs_snd *last = exs_engine_last_snd(&conn->engine);
	struct exs_xfer *to;

	lockdep_assert_held(&conn->lock);
	if (!last || exs_conn_send_error(conn))
		return false;
	to = exs_snd_xfer(last);
	if (to->done != exs_copied_done || !exs_kbuf_has_room(to, len) ||
	    last->len + len > exs_engine_snd_max(&conn->engine)) {
		exs_kbuf_make_room(x);
		return false;
	}
	exs_conn_writes(conn, to, last->len, len);
	exs_kbuf_append(to, x);
	exs_conn_wrote(conn, to, last->len - len, len);
	exs_send_share(conn, len);
	return true;
}

/* Whether the bytes of @x, which are charged, go with those of a send before it. */
static bool exs_send_gathered(struct exs_conn *conn, struct exs_xfer *x, u32 len)
{
	bool gathered;

	/* Without the lock: mostly no send waits, and a new one is another thread's. */
	if (conn->socktype == EXS_WIRE_SEQPACKET || len >= EXS_GATHER_MAX ||
	    list_empty(&conn->engine.sends))
		return false;
	spin_lock(&conn->lock);
	gathered = exs_send_gather(conn, x, len);
	spin_unlock(&conn->lock);
	if (!gathered)
		return false;
	exs_count(conn->xn, gathered_sends, 1);
	exs_kbuf_free(x);
	return true;
}

static int exs_send_copy(struct exs_conn *conn, struct msghdr *msg, u32 len)
{
	struct exs_xfer *x = exs_kbuf_alloc(conn, len, GFP_KERNEL_ACCOUNT);
	struct iov_iter from = msg->msg_iter;
	int err;

	if (!x)
		return -ENOMEM;
	err = exs_kbuf_fill(x, &msg->msg_iter);
	if (err)
		goto out_free;
	if (exs_send_gathered(conn, x, len))
		return 0;
	exs_kbuf_iter(x, ITER_SOURCE, &x->iter, SIZE_MAX);
	x->snd.len = len;
	x->done = exs_copied_done;
	err = exs_conn_submit(conn, x);
	if (!err)
		return 0;
out_free:
	exs_kbuf_free(x);
	msg->msg_iter = from;
	return err;
}

/* A stream is copied in pieces: return an unused reservation. Return: bytes. */
static u32 exs_send_trim(struct exs_conn *conn, u32 len)
{
	u32 part = min(len, EXS_SEND_CHUNK);

	if (conn->socktype == EXS_WIRE_SEQPACKET || part == len)
		return len;
	spin_lock(&conn->lock);
	conn->sndbuf_used -= exs_send_cost(len) - exs_send_cost(part);
	conn->unsent -= len - part;
	conn->wake |= EPOLLOUT;
	spin_unlock(&conn->lock);
	return part;
}

/*
 * Send up to @len bytes: in place if @in_place says so, else from a copy. If sending in place
 * is not possible, it is not tried again. Return: bytes, or a negative errno.
 */
static int exs_send_chunk(struct exs_conn *conn, struct msghdr *msg, u32 len, bool *in_place)
{
	int err;

	if (*in_place) {
		if (!exs_send_in_place(conn, msg, len))
			return len;
		if (exs_is_spliced(msg))
			exs_count(conn->xn, spliced_copied, 1);
		else
			exs_count(conn->xn, zerocopy_unpinned, 1);
		*in_place = false;
	}
	len = exs_send_trim(conn, len);
	err = exs_send_copy(conn, msg, len);
	if (!err)
		return len;
	exs_send_unreserve(conn, len);
	exs_conn_run(conn);
	return err;
}

/* A send of 0 bytes does not wait for room. */
static int exs_send_nothing(struct exs_conn *conn)
{
	int err;

	spin_lock(&conn->lock);
	err = exs_conn_send_error(conn);
	spin_unlock(&conn->lock);
	return err;
}

/*
 * A send that is not copied is sent whole, up to a size: it takes no memory, and pieces
 * would only be slower. *@in_place: in: whether to try; out: whether all bytes were sent in
 * place.
 */
static int exs_send_plain(struct exs_conn *conn, struct msghdr *msg, size_t len,
			  long timeo, bool *in_place)
{
	bool message = conn->socktype == EXS_WIRE_SEQPACKET;
	size_t want, sent = 0, least = exs_is_spliced(msg) ? 0 : EXS_SEND_COPY;
	int n;

	if (!message && !len)
		return exs_send_nothing(conn);
	do {
		want = min_t(size_t, len - sent, EXS_MESSAGE_MAX);
		*in_place = *in_place && want > least;
		n = exs_send_reserve(conn, want, message || *in_place, &timeo);
		if (n >= 0)
			n = exs_send_chunk(conn, msg, n, in_place);
		if (n < 0)
			break;
		sent += n;
	} while (sent < len);
	return sent ? sent : n;
}

/* MSG_ZEROCOPY: the notification has the number of the send, and whether anything was copied. */
static int exs_send_notify(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
			   size_t len, long timeo)
{
	bool in_place = len > EXS_SEND_COPY;
	struct ubuf_info *ubuf = exs_msg_zerocopy_alloc(sk);
	int n;

	if (!ubuf)
		return -ENOBUFS;
	msg->msg_ubuf = ubuf;
	n = exs_send_plain(conn, msg, len, timeo, &in_place);
	msg->msg_ubuf = NULL;
	if (!in_place)
		uarg_to_msgzc(ubuf)->zerocopy = 0;
	if (n < 0)
		net_zcopy_put_abort(ubuf, true);
	else
		net_zcopy_put(ubuf);
	return n;
}

/* Control messages are about packets: their values are ignored, but must be valid. */
static bool exs_cmsg_is_good(struct sock *sk, struct msghdr *msg)
{
	struct sockcm_cookie sockc;

	if (likely(!msg->msg_controllen))
		return true;
	sockcm_init(&sockc, sk);
	return !sock_cmsg_send(sk, msg, &sockc);
}

/* A call of send(2) or the like. */
static int exs_send_call(struct exs_conn *conn, struct sock *sk, struct msghdr *msg, size_t len)
{
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	bool zerocopy = msg->msg_flags & MSG_ZEROCOPY;
	/* If the owner of the memory can be notified. */
	bool in_place = (zerocopy && msg->msg_ubuf && len > EXS_SEND_COPY) || exs_is_spliced(msg);

	if (!exs_cmsg_is_good(sk, msg))
		return -EINVAL;
	if (zerocopy && !msg->msg_ubuf && len && sock_flag(sk, SOCK_ZEROCOPY))
		return exs_send_notify(conn, sk, msg, len, timeo);
	return exs_send_plain(conn, msg, len, timeo, &in_place);
}

/* @err is reported to the program, so it is no longer pending. */
static void exs_send_told(struct exs_conn *conn, int err)
{
	spin_lock(&conn->lock);
	if (conn->err == -err)
		WRITE_ONCE(conn->err, 0);
	spin_unlock(&conn->lock);
}

exs_hot
int exs_conn_sendmsg(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len)
{
	bool message = conn->socktype == EXS_WIRE_SEQPACKET;
	struct exs_call *call = exs_msg_call(msg);
	bool feed = call && call->feed;		/* the length is not known yet */
	int err;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (message && len > EXS_MESSAGE_MAX && !feed)
		return -EMSGSIZE;
	if (call)
		err = exs_async_send(conn, call, msg, len);
	else
		err = exs_send_call(conn, sk, msg, len);
	if (err < 0)
		exs_send_told(conn, err);
	if (err == -EPIPE && !(msg->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}

/* The state of a plain recv() of a stream. */
struct exs_read {
	struct exs_rcv place;		/* in the order of receives */
	struct exs_conn *conn;
	struct msghdr *msg;
	int flags;
	size_t len, copied, target;
	size_t skip;			/* SO_PEEK_OFF */
	long timeo;
};

/* All of it or, as with TCP, nothing. */
static size_t exs_read_copy(struct iov_iter *to, const void *from, size_t len)
{
	size_t done = copy_to_iter(from, len, to);

	if (done == len)
		return len;
	iov_iter_revert(to, done);
	return 0;
}

/* Copy one piece from the ring. conn->lock held, dropped for the copy: the bytes stay until
 * they are consumed, and this is the oldest receive.
 */
static int exs_read_piece(struct exs_read *r, u32 off, u32 len)
	__must_hold(&r->conn->lock)
{
	struct exs_conn *conn = r->conn;
	u32 n = min_t(size_t, len, r->len - r->copied);
	size_t done;

	exs_conn_read_ring(conn, off, n);
	spin_unlock(&conn->lock);
	if ((r->flags & MSG_TRUNC) && !(r->flags & MSG_PEEK))
		done = n;
	else
		done = exs_read_copy(&r->msg->msg_iter, exs_conn_ring_at(conn, off), n);
	spin_lock(&conn->lock);
	if (!(r->flags & MSG_PEEK) && done) {
		exs_engine_consume(&conn->engine, &r->place, done);
		conn->run_again = true;
	}
	r->copied += done;
	return done == n ? 0 : -EFAULT;
}

static u32 exs_read_peek(const struct exs_read *r, u32 *off)
{
	return exs_engine_peek(&r->conn->engine, &r->place,
			       r->flags & MSG_PEEK ? r->skip + r->copied : 0, off);
}

/*
 * Whether no more bytes can come for this call. For MSG_PEEK: its place does not end, as the
 * bytes stay in the ring, so the end of the stream is looked for here. conn->lock held.
 */
static bool exs_read_over(const struct exs_read *r)
{
	const struct exs_conn *conn = r->conn;

	if (r->flags & MSG_PEEK && (conn->engine.fin_rcvd || conn->state > EXS_CONN_UP) &&
	    list_is_first(&r->place.node, &conn->engine.receives))
		return true;
	return r->place.flags & EXS_RCV_ENDED || conn->read_shut ||
	       (conn->state > EXS_CONN_UP && !exs_engine_readable(&conn->engine));
}

/* Copy until there is enough. Even a call for 0 bytes waits for a byte. conn->lock held. */
static int exs_read_loop(struct exs_read *r)
	__must_hold(&r->conn->lock)
{
	struct exs_conn *conn = r->conn;
	u32 n, off;
	int err;

	do {
		n = exs_read_peek(r, &off);
		if (n) {
			err = exs_read_piece(r, off, n);
			if (err)
				return err;
			continue;
		}
		if (exs_read_over(r) || r->copied >= r->target)
			break;
		/* Return space to the peer before sleeping for more. */
		spin_unlock(&conn->lock);
		exs_conn_run(conn);
		spin_lock(&conn->lock);
		err = exs_conn_wait(conn, exs_read_over(r) || exs_read_peek(r, &off),
				    &r->timeo);
		if (err)
			return err;
	} while (r->copied < r->len);
	return 0;
}

/* Without a ring it would never get bytes, and only wait for the end. */
static bool exs_read_in_vain(const struct exs_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return exs_conn_ringless(conn) && conn->state <= EXS_CONN_UP &&
	       !exs_engine_eof(&conn->engine);
}

static int exs_read_stream(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
			   size_t len, int flags)
{
	struct exs_read r = {
		.place = { .len = max_t(size_t, len, 1), .flags = EXS_RCV_READER },
		.conn = conn, .msg = msg, .flags = flags, .len = len,
		.target = sock_rcvlowat(sk, flags & MSG_WAITALL, len),
		.timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT),
	};
	int err = -ENOTCONN;

	if (flags & MSG_PEEK)
		r.skip = max(sk_peek_offset(sk, flags), 0);
	spin_lock(&conn->lock);
	if (exs_read_in_vain(conn)) {
		err = -EOPNOTSUPP;
	} else if (conn->engine_up) {
		exs_engine_recv(&conn->engine, &r.place);
		/* It may have ended at once, and must be removed before we return. */
		err = exs_read_loop(&r);
		exs_engine_remove_reader(&conn->engine, &r.place);
		if (exs_conn_reader_first(conn))
			conn->wake |= EPOLLIN;
		if (!err && !r.copied)
			err = exs_conn_end_error(conn);
	}
	spin_unlock(&conn->lock);
	exs_conn_run(conn);
	if (flags & MSG_PEEK)
		sk_peek_offset_fwd(sk, r.copied);
	else
		sk_peek_offset_bwd(sk, r.copied);
	return r.copied ? r.copied : err;
}

exs_hot
int exs_conn_recvmsg(struct exs_conn *conn, struct sock *sk, struct msghdr *msg,
		     size_t len, int flags)
{
	struct exs_call *call = exs_msg_call(msg);

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (call && !(flags & MSG_PEEK))
		return exs_async_start(conn, call, &msg->msg_iter, len, true, flags);
	if (exs_is_aio(sk, msg, flags) && exs_async.aio_read(conn, sk, msg, len))
		return -EIOCBQUEUED;
	if (conn->socktype == EXS_WIRE_SEQPACKET)
		return exs_read_message(conn, sk, msg, len, flags);
	return exs_read_stream(conn, sk, msg, len, flags);
}
