/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An operation on its way through the socket layer.
 *
 * async/ enters sock_sendmsg() and sock_recvmsg() like any program, so that security
 * modules see every operation. Everything that the socket has to know beyond a program's
 * call is in a struct exs_call, to which msg_ubuf leads. All kernels have msg_ubuf, every
 * system call sets it to NULL, and other families look at it only together with
 * MSG_ZEROCOPY, which is not set here.
 */
#ifndef EXS_CORE_CALL_H
#define EXS_CORE_CALL_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/socket.h>

#include "../compat/compat.h"

struct exs_conn;
struct exs_xfer;

/**
 * struct exs_call - an operation, as the socket sees it
 * @ubuf: what msg_ubuf points to
 * @done: called at the end, once, with bytes or a negative errno, if @taken:
 *	process context, no lock held, perhaps before the socket layer's call has
 *	returned
 * @feed: the memory comes piece by piece: has it sent, sleeps; returns 0: @done follows,
 *	or an errno. Of the ITER_BVEC only the count is valid. NULL: the memory is the
 *	message's ITER_BVEC, whose array and pages stay until @done
 * @room: memory for one transfer, which stays until @done returns; NULL: it is allocated
 * @more: the caller has the connection run afterwards, for this and others together
 * @xfers: its transfers on the connection; conn->lock
 * @msg_flags: MSG_TRUNC, MSG_EOR: the result's, for @done
 * @taken: the socket has it, and returned 0. Otherwise the result is what it returned. For
 *	the caller, which keeps this until then
 */
struct exs_call {
	struct ubuf_info ubuf;
	void (*done)(struct exs_call *call, long res);
	int (*feed)(struct exs_call *call, struct exs_conn *conn);
	struct exs_xfer *room;
	bool more;
	struct list_head xfers;
	u32 msg_flags;
	bool taken;
};

/**
 * exs_call_init() - before each pass through the socket layer
 * @call: the operation
 * @done: see above
 */
static inline void exs_call_init(struct exs_call *call,
				 void (*done)(struct exs_call *call, long res))
{
	exs_ubuf_mark(&call->ubuf);
	call->done = done;
	call->feed = NULL;
	call->room = NULL;
	call->more = false;
	call->taken = false;
	INIT_LIST_HEAD(&call->xfers);
}

/* The operation of @msg, or NULL: a program's own call. */
static inline struct exs_call *exs_msg_call(const struct msghdr *msg)
{
	if (!msg->msg_ubuf || !exs_ubuf_is_marked(msg->msg_ubuf))
		return NULL;
	return container_of(msg->msg_ubuf, struct exs_call, ubuf);
}

#endif
