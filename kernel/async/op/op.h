/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous operations: from submission to exactly one completion. In the order in
 * which to read them:
 *
 *   op.c		the table, submission, completion, cancellation
 *   data_op.c		send and receive
 *   conn_op.c		connect, accept, shutdown, close
 *   claim.h, claim.c	how an accepted connection gets its descriptor
 *   poll_op.c		poll
 *   timeout.c		operations that take too long
 *   mm.h, mm.c		the end of the address space ends its operations
 *
 *   EXS_IOC_SUBMIT
 *     exs_batch_submit()   op.c: check, look the socket up       -> errno
 *     exs_op_start()       op.c: reserve a slot                  -> errno, EAGAIN
 *       def->prep()        memory, token                         -> errno
 *       def->issue()       enter the socket layer                -> errno
 *            |                  |
 *            | >= 0: done       | -EIOCBQUEUED: in flight
 *            |                  |     ... exs_call.done(), exs_waiter.fn()
 *       exs_op_complete()  op.c
 *         def->cleanup()   memory goes back before the event is there
 *         exs_queue_post() queue.c: the slot becomes an entry
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
 * Locks: an operation has none of its own. The queue's lock (queue.h) guards what changes
 * in it. claim_mutex lets one thread at a time claim tokens of a queue. exs_mm.lock guards
 * the queues of an address space. A poll has a mutex, which is held while its files are
 * asked.
 */
#ifndef EXS_ASYNC_OP_H
#define EXS_ASYNC_OP_H

#include <linux/bvec.h>
#include <linux/fs.h>
#include <linux/refcount.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "../../core/call.h"
#include "../../core/conn.h"
#include "../../core/sock.h"
#include "../queue/queue.h"

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
 * struct exs_op_def - one kind of operation: a row of the table in op.c
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

/* States of an accepted connection, or of an offer. claim.c */
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
 * op.c
 */

/* EXS_IOC_SUBMIT, EXS_IOC_CANCEL */
int exs_ops_submit(struct exs_queue *q, void __user *arg);
int exs_ops_cancel_ioctl(struct exs_queue *q, void __user *arg);

/* Flags of a struct exs_sqe that are defined. */
#define EXS_SQE_FLAGS	(EXS_SQE_TIMEOUT_ONCE | EXS_SQE_TIMEOUT_END | EXS_SQE_EXS_ONLY)

/* Bit 1 << n: operation n of enum exs_op_code. */
u64 exs_ops_supported(void);

void exs_op_free(struct exs_op *op);

static inline void exs_op_put(struct exs_op *op)
{
	if (refcount_dec_and_test(&op->ref))
		exs_op_free(op);
}

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

/* A completed operation is in flight again. It ends with an event, whatever happens. */
void exs_op_again(struct exs_op *op, struct socket *sock);

/*
 * The canceller's half of the protocol above. exs_op_claim_cancel() (under
 * queue->lock: the operation is in flight) says whether this caller must take
 * a reference and go on to exs_ops_cancel().
 */
bool exs_op_claim_cancel(struct exs_op *op);
void exs_ops_cancel(struct list_head *list);

int exs_ops_init(void);
void exs_ops_exit(void);

/*
 * timeout.c
 */

/* Give @op a timer if @sqe or its socket wants one. 0 or -ENOMEM. Before it has a slot. */
int exs_timeout_prepare(struct exs_op *op, const struct exs_sqe *sqe,
			struct socket *sock);

/* @op, which has a timer, is in flight: start it. The caller has a reference. No lock held. */
void exs_timeout_begin(struct exs_op *op);

/* The result of @op, which has a timer: @res, or -ETIME if the timer has cancelled it. */
long exs_timeout_result(const struct exs_op *op, long res);

/* Whether the timeouts of @op, which has a timer, need a slot. */
bool exs_timeout_has_slot(const struct exs_op *op);

/* @op, which has a timer, is no longer in flight: give its second slot back. queue->lock held. */
void exs_timeout_end(struct exs_op *op);

/* For a new queue; and for a dead one. The caller of exs_timeouts_close() has a reference. */
void exs_timeouts_open(struct exs_queue *q);
void exs_timeouts_close(struct exs_queue *q);

/*
 * The program consumed entries up to q->slots.head. The slots of timeouts among them belong to
 * their operations again. If there are many it is done for the first ones, up to which
 * q->slots.head goes back, and q->behind set. q->lock held.
 */
void exs_timeouts_consumed(struct exs_queue *q);

int exs_timeouts_init(void);
void exs_timeouts_exit(void);

/*
 * data_op.c, conn_op.c, poll_op.c: the rows of the table in op.c
 */
int exs_send_prep(struct exs_op *op, const struct exs_sqe *sqe);
int exs_recv_prep(struct exs_op *op, const struct exs_sqe *sqe);
int exs_sendmsg_prep(struct exs_op *op, const struct exs_sqe *sqe);
int exs_recvmsg_prep(struct exs_op *op, const struct exs_sqe *sqe);
long exs_send_issue(struct exs_op *op, struct socket *sock);
long exs_recv_issue(struct exs_op *op, struct socket *sock);
void exs_data_cancel(struct exs_op *op);
void exs_data_cleanup(struct exs_op *op);

/**
 * exs_copy_alloc() - kernel memory for a send from a copy
 * @op: owns it from then on: exs_data_cleanup()
 * @len: bytes, not 0
 *
 * Return: the memory, NULL if @len is not worth a copy or the queue has too many
 * in flight, or ERR_PTR(-ENOMEM).
 */
void *exs_copy_alloc(struct exs_op *op, u64 len);
/* Describes such memory, one entry per page, as in a region. Return: entries. */
unsigned int exs_copy_bvecs(struct bio_vec *bvec, void *buf, u32 len);

int exs_connect_prep(struct exs_op *op, const struct exs_sqe *sqe);
int exs_accept_prep(struct exs_op *op, const struct exs_sqe *sqe);
long exs_connect_issue(struct exs_op *op, struct socket *sock);
long exs_accept_issue(struct exs_op *op, struct socket *sock);
void exs_conn_op_cancel(struct exs_op *op);
bool exs_connect_withdraw(struct exs_op *op);
void exs_accept_cleanup(struct exs_op *op);

int exs_end_prep(struct exs_op *op, const struct exs_sqe *sqe);	/* close, shutdown */
void exs_end_cancel(struct exs_op *op);
long exs_close_issue(struct exs_op *op, struct socket *sock);
long exs_shutdown_issue(struct exs_op *op, struct socket *sock);
bool exs_shutdown_withdraw(struct exs_op *op);

void exs_no_cleanup(struct exs_op *op);

/* poll_op.c */
int exs_poll_prep(struct exs_op *op, const struct exs_sqe *sqe);
long exs_poll_issue(struct exs_op *op, struct socket *sock);
void exs_poll_cancel(struct exs_op *op);
void exs_poll_cleanup(struct exs_op *op);
int exs_poll_ops_init(void);
/* Waits for cancelled polls; no other can be cancelled any more. */
void exs_poll_ops_exit(void);

/* Waits for connections that are being dropped. */
int exs_conn_ops_init(void);
void exs_conn_ops_exit(void);

#endif
