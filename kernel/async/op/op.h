/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous operations: what a program submits, and the kinds that there are. In the order
 * in which to read them:
 *
 *   op.c		the table, submission, requests to cancel
 *   data_op.c		send and receive
 *   msg_op.c		those whose memory is in several pieces
 *   conn_op.c		connect, accept, shutdown, close
 *   claim.h, claim.c	how an accepted connection gets its descriptor
 *   poll_op.c		poll
 *
 *   EXS_IOC_SUBMIT
 *     exs_batch_submit()   op.c: check, look the socket up       -> errno
 *     exs_op_start()       inflight.c: reserve a slot            -> errno, EAGAIN
 *       def->prep()        memory, token                         -> errno
 *       def->issue()       enter the socket layer                -> errno
 *            |                  |
 *            | >= 0: done       | -EIOCBQUEUED: in flight
 *            |                  |     ... exs_call.done(), exs_waiter.fn()
 *       exs_op_complete()  inflight.c
 *         def->cleanup()   memory goes back before the event is there
 *         exs_queue_post() queue.c: the slot becomes an entry
 *
 * Locks: an operation has none of its own. The queue's lock (queue.h) guards what changes
 * in it. claim_mutex lets one thread at a time claim tokens of a queue. A poll has a mutex,
 * which is held while its files are asked.
 */
#ifndef EXS_ASYNC_OP_H
#define EXS_ASYNC_OP_H

#include "../queue/inflight.h"

/*
 * op.c
 */

/* EXS_IOC_SUBMIT, EXS_IOC_CANCEL */
int exs_ops_submit(struct exs_queue *q, void __user *arg);
int exs_ops_cancel_ioctl(struct exs_queue *q, void __user *arg);

/**
 * struct exs_ordinary - call into the folder above: operations on sockets of other families
 * @def: the row of @opcode for @sock, which is not AF_EXS. NULL: not supported
 */
struct exs_ordinary {
	const struct exs_op_def *(*def)(const struct socket *sock, u32 opcode);
};

extern const struct exs_ordinary exs_ordinary;

/* Flags of a struct exs_sqe that are defined. */
#define EXS_SQE_FLAGS	(EXS_SQE_TIMEOUT_ONCE | EXS_SQE_TIMEOUT_END | EXS_SQE_EXS_ONLY)

/* Bit 1 << n: operation n of enum exs_op_code. */
u64 exs_ops_supported(void);

/*
 * data_op.c, msg_op.c, conn_op.c, poll_op.c: the rows of the table in op.c
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
