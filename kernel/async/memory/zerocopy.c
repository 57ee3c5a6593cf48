// SPDX-License-Identifier: GPL-2.0
/*
 * Sends of io_uring that are not copied (IORING_OP_SEND_ZC and SENDMSG_ZC), and those with
 * MSG_ZEROCOPY, whose ubuf_info core/data.c makes.
 *
 * io_uring calls sendmsg() with a struct ubuf_info of its own, and reports how many
 * bytes were taken as soon as that returns. That the memory is free again it
 * reports when the last reference on the ubuf_info is gone. So such a send is one
 * from pinned pages which has a reference, and lets go of it when its bytes are with
 * the peer, or the queue pair is gone: as every send ends, this does, too.
 *
 * The pages of registered buffers are io_uring's, which keeps them as long; only the
 * array that names them may be gone before. All other memory is pinned here.
 *
 * What to call when a reference goes differs between kernels, and io_uring believes
 * that nothing was copied only if it hears so of an skb. An empty one, therefore,
 * holds the reference.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "../../core/sock.h"
#include "../../core/stats.h"
#include "vector.h"

/**
 * struct exs_zerocopy - a send
 * @x: for the connection
 * @vector: its pages
 * @skb: has the reference
 */
struct exs_zerocopy {
	struct exs_xfer x;
	struct exs_vector *vector;
	struct sk_buff *skb;
};

/* False: nothing was done. */
static bool exs_zerocopy_hold(struct exs_zerocopy *z, const struct msghdr *msg, size_t len)
{
	struct iov_iter from = msg->msg_iter;

	iov_iter_truncate(&from, len);
	z->skb = alloc_skb(0, GFP_KERNEL_ACCOUNT);
	if (!z->skb)
		return false;
	z->vector = exs_vector_of_iter(from, EXS_MREG_READ, &z->x.iter);
	if (IS_ERR(z->vector)) {
		kfree_skb(z->skb);
		return false;
	}
	skb_zcopy_set(z->skb, msg->msg_ubuf, NULL);
	return true;
}

/* Pinning costs by the piece, and so does sending: not worth it for scraps. */
static bool exs_zerocopy_may(const struct iov_iter *from, size_t len)
{
	if (iter_is_iovec(from))
		return len / from->nr_segs >= PAGE_SIZE;
	return user_backed_iter(from) || iov_iter_is_bvec(from);
}

struct exs_xfer *exs_zerocopy_alloc(struct exs_conn *conn, const struct msghdr *msg, size_t len)
{
	struct exs_zerocopy *z;

	if (!exs_zerocopy_may(&msg->msg_iter, len))
		return NULL;
	z = kzalloc(sizeof(*z), GFP_KERNEL_ACCOUNT);
	if (!z)
		return NULL;
	if (!exs_zerocopy_hold(z, msg, len)) {
		kfree(z);
		return NULL;
	}
	exs_live(conn->xn, xfers, 1);
	z->x.conn = conn;
	return &z->x;
}

/* The memory goes back before that is said. */
void exs_zerocopy_free(struct exs_xfer *x)
{
	struct exs_zerocopy *z = container_of(x, struct exs_zerocopy, x);

	exs_vector_free(z->vector);
	consume_skb(z->skb);
	exs_live(x->conn->xn, xfers, -1);
	kfree(z);
}
