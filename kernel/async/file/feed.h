/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends whose bytes are partly in files: EXS_IOV_FILE.
 *
 *   feed.c       the parts, and pieces of them: the pages of memory, and references
 *                to those of files' page caches
 *   feed_send.c  how an AF_EXS connection gets the pieces; foreign_feed.c, in
 *                ordinary/, how an ordinary socket does
 *
 * Files are read by a worker, because disks and servers may take long. It has the
 * submitter's credentials and cgroups, but not its namespaces. So files whose bytes depend
 * on the reading task are refused (exs_feed_cached()).
 * It reads a little ahead of what is being sent, so a large file does not occupy
 * the page cache.
 *
 * Objects: struct exs_feed, held by its operation and its work; struct exs_feed_piece.
 * Lock: the feed's, a spin lock.
 */
#ifndef EXS_ASYNC_FEED_H
#define EXS_ASYNC_FEED_H

#include <linux/bvec.h>
#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/exs.h>

#include "../../core/conn.h"
#include "../../core/sock.h"

struct cgroup_subsys_state;
struct exs_op;
struct exs_net;
struct exs_user;
struct exs_call;

/* Bytes of one piece of a stream, and how many pieces are in flight or read ahead. */
#define EXS_FEED_PIECE	(256u << 10)
#define EXS_FEED_AHEAD	2

/**
 * struct exs_feed_part - one element of the program's vector
 * @file: a reference, or NULL: memory
 * @pos: where in the file
 * @left: bytes of the file, at most
 * @nbvecs: of memory: so many entries of the feed's bvec are left
 */
struct exs_feed_part {
	struct file *file;
	loff_t pos;
	u64 left;
	unsigned int nbvecs;
};

/**
 * struct exs_feed - a send that is fed
 * @ref: the operation, and the work while it is queued, runs or waits for its turn
 * @work: runs @run
 * @turn: one of @user's turns, for one run
 * @run: reads, and has the bytes sent
 * @cred: the submitter's
 * @memcg: charged with the run's allocations
 * @blkcg: charged with the run's reads from disks; NULL: this kernel has none
 * @user: charged with @charged pages, and an operation for each of @most_parts
 * @xn: where it counts; a reference
 * @charged: the most that are held at a time
 * @message: all of it is one piece
 * @max_len: bytes of a piece; of a message one more than there may be
 * @max_bvecs: entries of a piece
 * @header: bytes of memory before the first file
 * @shut: an ordinary socket is shut down for sending after all of it
 * @conn: where it goes, a reference; set when it begins
 * @call: its operation's; likewise
 * @gate: keeps its place among the connection's sends; likewise
 * @op: of an ordinary socket; set when it is prepared, valid until @over
 * @piece: the piece that is being sent, or NULL; of the thread that tries the
 *	operation
 * @bvec: the next entry of memory: valid until @over; the worker's
 * @at: the part that is next; the worker's
 * @lock: guards all below, and @bvec against the end; for an ordinary socket, the
 *	counts of bytes sent and read belong to the thread that tries the operation
 * @pending: @gate and pieces that have not ended
 * @held: pieces that have not ended
 * @ready: for an ordinary socket: the piece that was read ahead, or NULL
 * @reading: likewise: the work is about to make that
 * @fed: no more pieces come
 * @over: the operation has ended
 * @sent: bytes
 * @filed: bytes of files that were read
 * @err: why a transfer failed, or 0
 * @read_err: why reading did
 * @nparts: how many
 * @most_parts: for how many there is room
 * @parts: in order
 */
struct exs_feed {
	struct kref ref;
	struct work_struct work;
	struct exs_turn turn;
	void (*run)(struct exs_feed *f);
	const struct cred *cred;
	struct mem_cgroup *memcg;
	struct cgroup_subsys_state *blkcg;
	struct exs_user *user;
	struct exs_net *xn;
	long charged;
	bool message;
	u32 max_len;
	u32 max_bvecs;
	u64 header;
	bool shut;
	struct exs_conn *conn;
	struct exs_call *call;
	struct exs_xfer gate;
	struct exs_op *op;
	struct exs_feed_piece *piece;
	const struct bio_vec *bvec;
	u32 at;
	spinlock_t lock;	/* all below; see above */
	u32 pending;
	u32 held;
	struct exs_feed_piece *ready;
	bool reading;
	bool fed;
	bool over;
	u64 sent;
	u64 filed;
	int err;
	int read_err;
	u32 nparts;
	u32 most_parts;
	struct exs_feed_part parts[];
};

/**
 * struct exs_feed_piece - a part of what a feed sends, in memory
 * @x: its transfer
 * @feed: the feed
 * @len: bytes
 * @file_len: of files
 * @nbvecs: entries
 * @is_file: one bit for each: of a file, with a reference to its page
 * @bvec: the entries, as many as the feed's max_bvecs
 */
struct exs_feed_piece {
	struct exs_xfer x;
	struct exs_feed *feed;
	u32 len;
	u32 file_len;
	u32 nbvecs;
	unsigned long *is_file;
	struct bio_vec bvec[];
};

/*
 * feed.c
 */

/**
 * exs_feed_new() - make the feed of an operation
 * @op: the operation; its socket tells whether it is one message
 * @count: most parts that will be added
 * @len: bytes of all of them, as far as is known
 *
 * Context: the submitter's; sleeps. Return: the feed, or ERR_PTR(-ENOMEM, -ENOBUFS).
 */
struct exs_feed *exs_feed_new(const struct exs_op *op, u32 count, u64 len);

/* The next part is memory of @len bytes, in @nbvecs entries of the same array. */
void exs_feed_add_memory(struct exs_feed *f, u64 len, unsigned int nbvecs);

/* The next part is of a file. Return: 0, -EBADF, -EINVAL, -EOVERFLOW. */
int exs_feed_add_file(struct exs_feed *f, const struct exs_sqe_iovec *piece);

void exs_feed_release(struct kref *ref);

static inline void exs_feed_put(struct exs_feed *f)
{
	kref_put(&f->ref, exs_feed_release);
}

/* exs_cqe.parts, for the bytes sent up to now. */
void exs_feed_parts(const struct exs_feed *f, u64 *parts);

/**
 * exs_feed_read() - make the next piece
 * @f: the feed; only the caller reads
 * @piece: out: the piece, for exs_feed_piece_free(), or NULL: there is nothing to
 *	send. Only a message may have no bytes, and then is all of it
 *
 * Context: a worker's; waits for files, no lock held. Return: 0, or why it is the
 * last piece: -ECANCELED: the operation has ended; -EMSGSIZE; -ENOMEM; or the error
 * of the file system or a security module.
 */
int exs_feed_read(struct exs_feed *f, struct exs_feed_piece **piece);
void exs_feed_piece_free(struct exs_feed_piece *p);

/* Have a worker call f->run(), now or when the user's other feeds leave it a turn. */
void exs_feed_kick(struct exs_feed *f);

int exs_feeds_init(void);
/* No operation is left; waits for files that are still being read. */
void exs_feeds_exit(void);

/* All parts were read. For the thread that reads. */
static inline bool exs_feed_at_end(const struct exs_feed *f)
{
	return f->at == f->nparts;
}

/*
 * feed_send.c
 */

/* exs_call.feed, with the feed of @call. */
int exs_feed_begin(struct exs_feed *f, struct exs_conn *conn, struct exs_call *call);

#endif
