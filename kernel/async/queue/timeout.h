/* SPDX-License-Identifier: GPL-2.0 */
/* Operations that take too long. See timeout.c. */
#ifndef EXS_ASYNC_TIMEOUT_H
#define EXS_ASYNC_TIMEOUT_H

struct exs_op;
struct exs_queue;
struct exs_sqe;
struct socket;

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

#endif
