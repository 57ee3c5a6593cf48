/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations on ordinary sockets (TCP, UDP, AF_UNIX), whose families know nothing
 * of operations: they are tried, without blocking, until the socket lets them.
 *
 *   foreign.c       which sockets, and what one try of each operation is
 *   foreign_lane.c  when they are tried: order, waiting, backing off, cancelling
 *   foreign_feed.c  one try of a send whose bytes are partly in files
 *
 * A lane has the operations for one direction of one socket, in order. It exists while it
 * has operations, or while accepts to which it offered connections (token.c) have not taken
 * them. It holds the socket's file. Therefore close(2) does not end an operation. Four things
 * do: the socket, also when it is shut down; a cancellation; the end of the submitter's
 * address space; the end of the queue. An operation holds no queue's file, so the end of a
 * queue never waits for an operation.
 *
 * Lock: that of a bucket of lanes (foreign_lane.c), a spin lock.
 */
#ifndef EXS_ASYNC_FOREIGN_H
#define EXS_ASYNC_FOREIGN_H

#include <linux/net.h>
#include <linux/types.h>

struct exs_op;
struct file;
struct sock;

enum exs_lane_dir { EXS_LANE_IN, EXS_LANE_OUT };

/*
 * foreign.c
 */

/* The operations that any ordinary socket supports. Bit 1 << n: operation n. */
u64 exs_foreign_ops_supported(void);

/**
 * exs_foreign_try() - try an operation
 * @op: the operation; no other thread tries it at the same time
 * @sock: its socket
 *
 * Context: process, no lock held; does not wait for the socket's peer.
 * Return: the operation's result; -EAGAIN: the socket does not let it, and nothing was done;
 * -EIOCBQUEUED: part of it was done, try again.
 */
long exs_foreign_try(struct exs_op *op, struct socket *sock);

/*
 * sock_sendmsg() of a try. -EOPNOTSUPP also: a worker tries, and the receiver would be
 * told its process.
 */
int exs_foreign_call_send(struct exs_op *op, struct socket *sock, struct msghdr *msg);

/*
 * foreign_feed.c
 */

/* For an operation with a feed: before its first try, and when it has ended. */
void exs_foreign_feed_init(struct exs_op *op);
void exs_foreign_feed_over(struct exs_op *op);

/* As exs_foreign_try(); -EAGAIN with foreign.waits: until exs_lane_news(). */
long exs_foreign_feed_try(struct exs_op *op, struct socket *sock);

/*
 * foreign_lane.c
 */

/**
 * exs_lane_issue() - put an operation into a lane; alone there, try it at once
 * @op: it; its handlers may run before this returns
 * @sock: its socket
 * @dir: which of the socket's lanes
 *
 * Return: -EIOCBQUEUED: it will complete, or has; or why it did not start.
 */
long exs_lane_issue(struct exs_op *op, struct socket *sock, enum exs_lane_dir dir);

/* End the operation, if it has not ended, with -ECANCELED or the bytes that it has moved. */
void exs_lane_cancel(struct exs_op *op);

/**
 * exs_lane_offer() - let an accept have a connection that waits
 * @op: the accept, which the caller tries
 * @waiting: connections that wait at the listener
 *
 * Return: 0: @op is a token from now on, until exs_lane_return(); -EAGAIN: all of these
 * connections are offered to other accepts.
 */
long exs_lane_offer(struct exs_op *op, unsigned int waiting);

/*
 * Try an operation again that waited for something besides its socket, which may be there
 * now. The operation has not ended. Any process context, also with spin locks.
 */
void exs_lane_news(struct exs_op *op);

/* The accept took a connection, or will not take one: the next accept may get it. */
void exs_lane_return(struct exs_op *op);

/* The same. The operation stops being a token, and is in flight again: exs_op_again(). */
void exs_lane_return_again(struct exs_op *op, struct socket *sock);

/* End the operation without an event. Return: false: it had ended already. */
bool exs_lane_withdraw(struct exs_op *op);

/*
 * Wait until all cancelled operations of @op's queue on its socket have ended: a worker
 * may be trying one.
 */
void exs_lane_wait_cancelled(const struct exs_op *op);

/*
 * Wait until the user's lanes of @file without operations have dropped it, or the task is
 * killed. The caller holds @file, whose sock is @op's.
 */
void exs_lane_wait_gone(const struct exs_op *op, const struct file *file);

int exs_lanes_init(void);
/* No lane is left: each holds the module. */
void exs_lanes_exit(void);

#endif
