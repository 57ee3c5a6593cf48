// SPDX-License-Identifier: GPL-2.0
/*
 * A fed send on an ordinary socket.
 *
 * When the send is first in its lane, a worker reads the first piece, and then
 * always one ahead of the piece that is being sent:
 *
 *	worker   exs_feed_read() --> f->ready, exs_lane_news()
 *	lane                         f->ready --> f->piece: sendmsg(), sendmsg(), ...
 *
 * If no piece is there yet, the lane is left idle, as if the socket had said EAGAIN.
 * So a slow file delays only the operations after it at the same socket, and
 * occupies only its own worker. The operation may end while the worker reads; the
 * worker finds that out when it comes back.
 *
 * A stream takes the pages of files by reference, if the kernel's sockets can
 * (MSG_SPLICE_PAGES), and uses them after the event, like sendfile(2). Memory belongs
 * to the program again by then, so it is copied. A message is one call, and copied as
 * a whole.
 */
#include <linux/bitmap.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <net/sock.h>

#include "../../compat/compat.h"
#include "../../core/stats.h"
#include "../file/feed.h"
#include "../queue/inflight.h"
#include "foreign.h"

static void exs_foreign_feed_run(struct exs_feed *f)
{
	struct exs_feed_piece *p;
	int err;

	if (READ_ONCE(f->over))
		return;
	err = exs_feed_read(f, &p);
	spin_lock(&f->lock);
	f->ready = p;
	f->reading = false;
	f->fed = err || exs_feed_at_end(f);
	f->read_err = err;
	if (!f->over)
		exs_lane_news(f->op);
	spin_unlock(&f->lock);
}

void exs_foreign_feed_init(struct exs_op *op)
{
	struct exs_feed *f = op->data.feed;

	f->run = exs_foreign_feed_run;
	f->op = op;
	op->foreign.whole = f->shut;
}

void exs_foreign_feed_over(struct exs_op *op)
{
	struct exs_feed *f = op->data.feed;
	bool waits;

	spin_lock(&f->lock);
	WRITE_ONCE(f->over, true);
	waits = f->reading;
	spin_unlock(&f->lock);
	/* The work may wait for its turn. */
	if (waits)
		exs_feed_kick(f);
}

/* Take the piece that was read, and have the next one read. Return: whether there is none. */
static bool exs_foreign_feed_next(struct exs_op *op)
{
	struct exs_feed *f = op->data.feed;
	struct exs_feed_piece *p;
	bool read, fed;

	spin_lock(&f->lock);
	p = f->ready;
	f->ready = NULL;
	fed = f->fed;
	read = !fed && !f->reading;
	f->reading |= read;
	spin_unlock(&f->lock);
	if (read)
		exs_feed_kick(f);
	f->piece = p;
	if (!p)
		return fed;
	f->filed += p->file_len;
	iov_iter_bvec(&op->data.iter, ITER_SOURCE, p->bvec, p->nbvecs, p->len);
	return false;
}

/* Everything was sent, or all that could be read. */
static long exs_foreign_feed_end(struct exs_op *op, struct socket *sock)
{
	const struct exs_feed *f = op->data.feed;

	if (f->read_err)
		return f->read_err;
	/* It fails only if the connection has ended. */
	if (f->shut)
		kernel_sock_shutdown(sock, SHUT_WR);
	return op->foreign.done;
}

/* The error of a socket that can send no more. */
static long exs_foreign_feed_wait(struct socket *sock)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	long res;

	if (!(READ_ONCE(sock->sk->sk_shutdown) & SEND_SHUTDOWN))
		return -EAGAIN;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, NULL, 0, 0);
	res = sock_sendmsg(sock, &msg);
	return res < 0 ? res : -EPIPE;
}

/* One call sends the next bytes of one kind: of files, or of memory. */
static void exs_foreign_feed_one_kind(const struct exs_feed_piece *p, struct msghdr *msg)
{
	unsigned int i = msg->msg_iter.bvec - p->bvec, end;
	bool file = test_bit(i, p->is_file);
	size_t len = 0;

	end = file ? find_next_zero_bit(p->is_file, p->nbvecs, i) :
		     find_next_bit(p->is_file, p->nbvecs, i);
	if (file)
		msg->msg_flags |= MSG_SPLICE_PAGES;
	if (end < p->nbvecs)
		msg->msg_flags |= MSG_MORE;
	for (; i < end; i++)
		len += p->bvec[i].bv_len;
	iov_iter_truncate(&msg->msg_iter, len - msg->msg_iter.iov_offset);
}

static void exs_foreign_feed_count(struct exs_op *op, size_t n, bool spliced)
{
	u64 before = op->parts[1];

	exs_feed_parts(op->data.feed, op->parts);
	if (spliced)
		exs_count(op->queue->xn, file_bytes, n);
	else
		exs_count(op->queue->xn, file_copied_bytes, op->parts[1] - before);
}

/* @n bytes were sent of the piece. */
static long exs_foreign_feed_sent(struct exs_op *op, struct socket *sock, size_t n)
{
	struct exs_feed *f = op->data.feed;

	iov_iter_advance(&op->data.iter, n);
	if (iov_iter_count(&op->data.iter))
		return n ? -EIOCBQUEUED : -EAGAIN;
	exs_feed_piece_free(f->piece);
	return exs_foreign_feed_next(op) ? exs_foreign_feed_end(op, sock) : -EIOCBQUEUED;
}

static long exs_foreign_feed_send(struct exs_op *op, struct socket *sock)
{
	struct exs_feed *f = op->data.feed;
	struct msghdr msg = {
		.msg_iter = op->data.iter,
		.msg_flags = op->msg_flags | MSG_DONTWAIT | MSG_NOSIGNAL,
	};
	bool spliced;
	long res;

	if (MSG_SPLICE_PAGES && !f->message)
		exs_foreign_feed_one_kind(f->piece, &msg);
	spliced = msg.msg_flags & MSG_SPLICE_PAGES;
	res = exs_foreign_call_send(op, sock, &msg);
	if (res < 0)
		return res;
	op->foreign.done += res;
	f->sent += res;
	exs_foreign_feed_count(op, res, spliced);
	return exs_foreign_feed_sent(op, sock, res);
}

long exs_foreign_feed_try(struct exs_op *op, struct socket *sock)
{
	struct exs_feed *f = op->data.feed;
	bool end = !f->piece && exs_foreign_feed_next(op);

	op->foreign.waits = !end && !f->piece;
	if (end)
		return exs_foreign_feed_end(op, sock);
	return f->piece ? exs_foreign_feed_send(op, sock) : exs_foreign_feed_wait(sock);
}
