// SPDX-License-Identifier: GPL-2.0
/*
 * A fed send on an AF_EXS connection.
 *
 * It takes its place among the connection's sends when it is submitted, by a send
 * that is a gate: those behind it wait. A worker makes one piece after the other
 * and has it sent at that place, and in the end, or when the file cannot be read,
 * opens the gate.
 *
 *	submitter      exs_feed_begin(): gate -----------------------.
 *	worker         exs_feed_run():  piece, piece, ...,  open      |
 *	connection     ---- earlier ---- piece ---- piece ----   gate | later ...
 *
 * The operation ends with the last of its gate and pieces, however they end: sent,
 * cancelled or failed. It does not wait for the worker, which may wait for a file
 * as long as it takes; when it comes back it finds that all is over.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>

#include "../../core/stats.h"
#include "../queue/inflight.h"
#include "feed.h"

static long exs_feed_result(const struct exs_feed *f)
{
	if (f->err && f->err != -ECANCELED)
		return f->err;
	if (f->read_err)
		return f->read_err;
	return f->err && !f->sent ? f->err : (long)min_t(u64, f->sent, LONG_MAX);
}

/* The gate or a piece has ended with @res. If several fail, the first error counts. */
static void exs_feed_ended(struct exs_feed *f, long res)
{
	bool over, waits;

	spin_lock(&f->lock);
	if (res >= 0)
		f->sent += res;
	else if (!f->err || f->err == -ECANCELED)
		f->err = res;
	over = !--f->pending;
	WRITE_ONCE(f->over, over);
	waits = !f->fed;
	spin_unlock(&f->lock);
	if (!over)
		return;
	/* The work may wait for its turn. */
	if (waits)
		exs_feed_kick(f);
	f->call->msg_flags = f->message ? MSG_EOR : 0;
	f->call->done(f->call, exs_feed_result(f));
}

static void exs_feed_gate_done(struct exs_xfer *x, long res)
{
	exs_feed_ended(container_of(x, struct exs_feed, gate), res);
}

static void exs_feed_piece_done(struct exs_xfer *x, long res)
{
	struct exs_feed_piece *p = container_of(x, struct exs_feed_piece, x);
	struct exs_feed *f = p->feed;
	bool more;

	exs_feed_piece_free(p);
	spin_lock(&f->lock);
	f->held--;
	more = !f->fed;
	spin_unlock(&f->lock);
	if (more)
		exs_feed_kick(f);
	exs_feed_ended(f, res);
}

static bool exs_feed_wanted(struct exs_feed *f)
{
	bool wanted;

	spin_lock(&f->lock);
	wanted = !f->fed && !f->over && f->held < EXS_FEED_AHEAD;
	spin_unlock(&f->lock);
	return wanted;
}

/* From now on the memory of the operation stays until the piece has ended. */
static bool exs_feed_hold(struct exs_feed *f, const struct exs_feed_piece *p)
{
	bool held;

	spin_lock(&f->lock);
	held = !f->over;
	if (held) {
		f->pending++;
		f->held++;
		f->filed += p->file_len;
	}
	spin_unlock(&f->lock);
	return held;
}

static int exs_feed_submit(struct exs_feed *f, struct exs_feed_piece *p)
{
	struct mem_cgroup *old_memcg = set_active_memcg(f->memcg);
	const struct cred *old = override_creds(f->cred);
	int err;

	p->x.snd.len = p->len;
	p->x.call = f->call;
	p->x.gate = &f->gate;
	p->x.done = exs_feed_piece_done;
	iov_iter_bvec(&p->x.iter, ITER_SOURCE, p->bvec, p->nbvecs, p->len);
	err = exs_conn_submit(f->conn, &p->x);
	revert_creds(old);
	set_active_memcg(old_memcg);
	return err;
}

/* Return: 0, or why it is not sent. */
static int exs_feed_send_piece(struct exs_feed *f, struct exs_feed_piece *p)
{
	u32 file_len = p->file_len;
	int err;

	if (!exs_feed_hold(f, p)) {
		exs_feed_piece_free(p);
		return -ECANCELED;
	}
	err = exs_feed_submit(f, p);
	if (!err) {
		exs_count(f->xn, file_bytes, file_len);
		return 0;
	}
	exs_feed_piece_free(p);
	spin_lock(&f->lock);
	f->held--;
	spin_unlock(&f->lock);
	exs_feed_ended(f, err);
	return err;
}

static void exs_feed_finish(struct exs_feed *f, int err)
{
	spin_lock(&f->lock);
	f->fed = true;
	f->read_err = err;
	spin_unlock(&f->lock);
	exs_conn_open(f->conn, &f->gate);
}

static void exs_feed_step(struct exs_feed *f)
{
	struct exs_feed_piece *p;
	int err = exs_feed_read(f, &p);
	int send_err = p ? exs_feed_send_piece(f, p) : 0;

	if (err || send_err || exs_feed_at_end(f))
		exs_feed_finish(f, err);
}

/* One piece: other feeds of the user have their turn before the next. */
static void exs_feed_run(struct exs_feed *f)
{
	if (exs_feed_wanted(f))
		exs_feed_step(f);
	if (exs_feed_wanted(f))
		exs_feed_kick(f);
}

int exs_feed_begin(struct exs_feed *f, struct exs_conn *conn, struct exs_call *call)
{
	int err;

	f->run = exs_feed_run;
	exs_conn_get(conn);
	f->conn = conn;
	f->call = call;
	f->pending = 1;
	f->gate.snd.gate = true;
	f->gate.call = call;
	f->gate.done = exs_feed_gate_done;
	/* It may end before exs_conn_submit() returns. */
	kref_get(&f->ref);
	err = exs_conn_submit(conn, &f->gate);
	if (!err)
		exs_feed_kick(f);
	exs_feed_put(f);
	return err;
}
