/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations in flight: the object, and its life from start to exactly one completion.
 *
 * References: an operation in flight has one. exs_op_complete() drops it, or passes it on
 * to the token. The submitter and a canceller have one each while they use the operation.
 * An operation holds its queue and its sock. It holds files only if it is a poll, which
 * waits for them, if it sends them (feed.h), or if its socket is an ordinary one (foreign.h).
 *
 * Cancelling and issuing may meet. Two bits decide which thread calls def->cancel(), so
 * that it is called exactly once, and only after the socket has got the operation:
 *
 *   canceller                            submitter
 *
 *   old = fetch_or(CANCEL)               issue()
 *   if (old & ISSUED) def->cancel()      old = fetch_or(ISSUED)
 *                                        if (old & CANCEL) def->cancel()
 *
 * An operation may have completed by then. The socket does not know it any
 * more, and cancel finds nothing: the memory is there, by reference, so nothing
 * else can have taken its address.
 *
 * The state of each kind is in the union below; its functions are in op/ and ordinary/.
 */
#ifndef EXS_ASYNC_INFLIGHT_H
#define EXS_ASYNC_INFLIGHT_H

#include <linux/bvec.h>
#include <linux/fs.h>
#include <linux/refcount.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "../../core/call.h"
#include "../../core/conn.h"
#include "../../core/sock.h"
#include "queue.h"

struct exs_feed;
struct exs_lane;
struct exs_op;
struct exs_op_timer;
struct exs_region;
struct exs_vector;

/* Unregistered sends up to this size are copied; per queue, up to EXS_COPY_TOTAL bytes. */
#define EXS_COPY_MAX	(16u << 10)
#define EXS_COPY_TOTAL	(4l << 20)
#define EXS_COPY_BVECS	(EXS_COPY_MAX / PAGE_SIZE + 1)

/**
 * struct exs_op_def - one kind of operation: a row of the tables in op.c and foreign.c
 * @msg_flags: those that a submission may have
 * @buffer: it has addr, len and region
 * @timeout: EXS_CQE_SENDTIMEOUT or EXS_CQE_RECVTIMEOUT, if it can take long; or 0
 * @outgoing: the peer gets it after those before it: cancelled in reverse order
 * @no_socket: it has no fd, and op->sk is NULL
 * @prep: get what it needs; sleeps
 * @issue: start it: -EIOCBQUEUED, or >= 0: it is complete with that result,
 *	or a negative errno: it did not start
 * @cancel: ask for its end; sleeps. It may be complete already. NULL if it is
 *	complete when @issue returns.
 * @withdraw: end it without an event, or NULL. Return: whether that was possible
 * @cleanup: undo @prep; the same whether it completed or did not start
 * @offer_return: of an accept whose token is an offer: it took a connection, or will not
 *	take one
 * @offer_again: the same; the operation stops being a token, and is in flight again:
 *	exs_op_again(). Both, or NULL: only for accepts whose tokens are offers
 */
struct exs_op_def {
	u32 msg_flags;
	bool buffer;
	u32 timeout;
	bool outgoing;
	bool no_socket;
	int (*prep)(struct exs_op *op, const struct exs_sqe *sqe);
	long (*issue)(struct exs_op *op, struct socket *sock);
	void (*cancel)(struct exs_op *op);
	bool (*withdraw)(struct exs_op *op);
	void (*cleanup)(struct exs_op *op);
	void (*offer_return)(struct exs_op *op);
	void (*offer_again)(struct exs_op *op, struct socket *sock);
};

#define EXS_OP_ISSUED	1
#define EXS_OP_CANCEL	2

/**
 * struct exs_op_data - a send or a receive
 * @call: what the socket completes
 * @iter: the memory
 * @region: whose pages they are, or NULL
 * @vector: or several regions' (vector.h), or NULL
 * @feed: where the bytes come from, if files are among it (feed.h), or NULL
 * @copy: or a copy of the bytes, or NULL
 * @copy_len: its length
 * @bvec: the pages of @copy, if there is no vector
 * @xfer: for the socket
 */
struct exs_op_data {
	struct exs_call call;
	struct iov_iter iter;
	struct exs_region *region;
	struct exs_vector *vector;
	struct exs_feed *feed;
	void *copy;
	u32 copy_len;
	struct bio_vec bvec[EXS_COPY_BVECS];
	struct exs_xfer xfer;
};

/* States of an accepted connection, or of an offer. token.c */
enum exs_token_state {
	EXS_TOKEN_NONE,		/* not accepted yet, or over               */
	EXS_TOKEN_UNREAD,	/* its entry was not consumed              */
	EXS_TOKEN_READ,		/* it was, but the token is unclaimed      */
	EXS_TOKEN_CLAIMED,	/* waits at the listener for accept(2)     */
};

/**
 * struct exs_op_conn - a connect, an accept, a close or a shutdown
 * @waiter: what the socket calls
 * @child: accept: the connection; from then on the operation is a token
 * @work: drops @child when there is no queue for it any more
 * @token: accept: number in queue->tokens
 * @token_state: which of the queue's lists of tokens it is on; queue->lock
 * @pos: position of the entry
 */
struct exs_op_conn {
	struct exs_waiter waiter;
	struct sock *child;
	struct work_struct work;
	u32 token;
	enum exs_token_state token_state;
	u64 pos;
};

struct exs_poll_fd;

/**
 * struct exs_op_poll - a poll
 * @work: looks for ready descriptors; only it ends the operation
 * @turn: the queue's user's, for one run
 * @lock: the wait begins before @work looks; guards all below
 * @fds: the polled descriptors, until it has ended
 * @nfds: how many
 * @files: whose descriptors they are: a name, of a struct files_struct
 * @waits: struct exs_poll_wait
 * @err: why it cannot wait, or 0
 * @over: it has ended
 * @cancelled: it is to end; without lock
 */
struct exs_op_poll {
	struct work_struct work;
	struct exs_turn turn;
	struct mutex lock;		/* see above */
	struct exs_poll_fd *fds;
	u32 nfds;
	const void *files;
	struct list_head waits;
	int err;
	bool over;
	bool cancelled;
};

/**
 * struct exs_op_foreign - additional state of an operation on an ordinary
 * socket
 * @lane: where it is, while @node is on its list; the lane's lock
 * @node: lane->ops; the lane's lock
 * @cred: the submitter's, for every attempt
 * @memcg: likewise; charged with the sockets' allocations
 * @done: bytes moved; of the thread that tries it
 * @flags: MSG_TRUNC, MSG_EOR: the event's; of the thread that tries it
 * @cancelled: the thread that tries it must end it; set under the lane's lock
 * @discard: and without an event; likewise
 * @waits: it was tried, and waits for a file, not for the socket; of the thread that
 *	tries it
 * @whole: a send succeeds only if all bytes and the end were sent
 * @offered: accept: it is a token, and @lane has counted it; of the thread that makes or
 *	ends the token
 */
struct exs_op_foreign {
	struct exs_lane *lane;
	struct list_head node;
	const struct cred *cred;
	struct mem_cgroup *memcg;
	size_t done;
	u32 flags;
	bool cancelled;
	bool discard;
	bool waits;
	bool whole;
	bool offered;
};

/**
 * struct exs_op - an operation
 * @ref: see above
 * @state: EXS_OP_ISSUED, EXS_OP_CANCEL
 * @def: its row of the table
 * @queue: reference
 * @link: the address space that submitted it; stays as long as @queue
 * @submitted: when, if @link's address space has several queues
 * @sk: reference; NULL: it has no socket
 * @node: queue->ops, later one of the lists of tokens; queue->lock
 * @sock_node: queue->sock_ops, while @inflight; queue->lock
 * @inflight: among queue->ops; queue->lock
 * @more: another follows, which has the connection run: exs_call.more
 * @cancel_node: of the thread that set EXS_OP_CANCEL
 * @timer: its timeouts, or NULL; fixed before it has a slot
 * @opcode: enum exs_op_code
 * @fd: as the submitter named the socket
 * @handle: the program's
 * @arg: the program's
 * @tag: the program's
 * @msg_flags: the program's
 * @parts: for its entry, exs_cqe.parts
 * @data: send, recv, sendmsg, recvmsg, sendfile
 * @conn: connect, accept, close, shutdown
 * @poll: poll
 * @foreign: those on ordinary sockets
 */
struct exs_op {
	refcount_t ref;
	atomic_t state;
	const struct exs_op_def *def;
	struct exs_queue *queue;
	struct exs_mm_link *link;
	u64 submitted;
	struct sock *sk;
	struct list_head node;
	struct list_head sock_node;
	bool inflight;
	bool more;
	struct list_head cancel_node;
	struct exs_op_timer *timer;
	u32 opcode;
	s32 fd;
	u64 handle;
	u64 arg;
	u32 tag;
	u32 msg_flags;
	u64 parts[2];
	union {
		struct exs_op_data data;
		struct exs_op_conn conn;
		struct exs_op_poll poll;
	};
	struct exs_op_foreign foreign;
};

/*
 * inflight.c
 */

/**
 * exs_op_alloc() - an operation that has not started
 * @q: its queue
 * @link: the caller's address space
 * @def: its row
 * @sk: its socket's, or NULL
 * @sqe: the submission
 *
 * Return: with one reference, or NULL.
 */
struct exs_op *exs_op_alloc(struct exs_queue *q, struct exs_mm_link *link,
			    const struct exs_op_def *def, struct sock *sk,
			    const struct exs_sqe *sqe);

void exs_op_free(struct exs_op *op);

static inline void exs_op_put(struct exs_op *op)
{
	if (refcount_dec_and_test(&op->ref))
		exs_op_free(op);
}

/*
 * It will complete, or has; the caller has a reference besides that of in-flight. Sleeps.
 * Return: 0, or why it did not start, and the reference of in-flight is still there.
 */
int exs_op_start(struct exs_op *op, const struct exs_sqe *sqe, struct socket *sock);

/* The entry of an operation that ended: @res, @flags and @token as for exs_op_complete(). */
struct exs_cqe exs_op_cqe(const struct exs_op *op, long res, u32 flags, u32 token);

/**
 * exs_op_complete() - an operation in flight has ended
 * @op: the reference of in-flight goes along
 * @res: bytes, or a negative errno
 * @flags: MSG_TRUNC, MSG_EOR
 * @token: 0, or the number of a token, which has a reference of its own: the queue's, or, if no
 *	program will see it, the caller's
 *
 * Context: process; lock_sock may be held. Return: false: no program will see it.
 */
bool exs_op_complete(struct exs_op *op, long res, u32 flags, u32 token);

/* Post no event for an operation in flight: its call has returned the result. */
void exs_op_discard(struct exs_op *op);

/*
 * A completed operation is in flight again. It ends with an event, whatever happens. Return: 0, or
 * a negative errno: it has ended.
 */
int exs_op_again(struct exs_op *op, struct socket *sock);

/*
 * The canceller's half of the protocol above. exs_op_claim_cancel() (under
 * queue->lock: the operation is in flight) says whether this caller must take
 * a reference and go on to exs_ops_cancel().
 */
bool exs_op_claim_cancel(struct exs_op *op);
void exs_ops_cancel(struct list_head *list);

int exs_ops_init(void);
void exs_ops_exit(void);

#endif
