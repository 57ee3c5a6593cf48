// SPDX-License-Identifier: GPL-2.0
/*
 * Sends of io_uring that are not copied (IORING_OP_SEND_ZC and SENDMSG_ZC), those with
 * MSG_ZEROCOPY, whose ubuf_info core/data.c makes, and those of splice(2) and sendfile(2).
 *
 * io_uring calls sendmsg() with a struct ubuf_info of its own, and reports the
 * number of bytes taken as soon as that returns. When the last reference on the
 * ubuf_info is gone, it reports that the memory is free again. So such a send is one
 * from pinned pages that holds a reference. It drops the reference when its bytes
 * are with the peer, or the queue pair is gone. It ends as every send ends.
 *
 * The pages of registered buffers are io_uring's, which keeps them as long; only the
 * array that names them may be gone before. All other memory is pinned here.
 *
 * The function that drops a reference differs between kernels, and io_uring
 * believes that nothing was copied only if an skb reports it. Therefore an empty
 * skb holds the reference.
 *
 * splice(2) and sendfile(2) bring pages, mostly of the page cache. A reference on each is held for
 * as long, without a notification. What is written to the file meanwhile may or may not be among
 * the bytes that are sent, as with TCP.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "../../core/sock.h"
#include "../../core/stats.h"
#include "vector.h"
#include "zerocopy.h"

/**
 * struct exs_zerocopy - a send
 * @x: for the connection
 * @vector: its pages
 * @skb: has the reference; NULL: spliced, and the vector has references on its pages
 */
struct exs_zerocopy {
	struct exs_xfer x;
	struct exs_vector *vector;
	struct sk_buff *skb;
};

static bool exs_zerocopy_splice(struct exs_zerocopy *z, struct iov_iter from)
{
	z->vector = exs_vector_of_iter(from, EXS_MREG_READ, &z->x.iter);
	if (IS_ERR(z->vector))
		return false;
	if (exs_vector_keep(z->vector))
		return true;
	exs_vector_free(z->vector);
	return false;
}

/* False: nothing was done. */
static bool exs_zerocopy_hold(struct exs_zerocopy *z, const struct msghdr *msg, size_t len)
{
	struct iov_iter from = msg->msg_iter;

	iov_iter_truncate(&from, len);
	if (!msg->msg_ubuf)
		return exs_zerocopy_splice(z, from);
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

/*
 * Each piece costs time to pin and to send, so small pieces of memory are copied. So are
 * small spliced ones: each holds a whole page, but counts for its bytes only.
 */
static bool exs_zerocopy_may(const struct msghdr *msg, size_t len)
{
	const struct iov_iter *from = &msg->msg_iter;

	if (!msg->msg_ubuf)
		return from->nr_segs <= 2 * PFN_UP(len);
	if (iter_is_iovec(from))
		return len / from->nr_segs >= PAGE_SIZE;
	return user_backed_iter(from) || iov_iter_is_bvec(from);
}

struct exs_xfer *exs_zerocopy_alloc(struct exs_conn *conn, const struct msghdr *msg, size_t len)
{
	struct exs_zerocopy *z;

	if (!exs_zerocopy_may(msg, len))
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

/* The memory is released before the notification. */
void exs_zerocopy_free(struct exs_xfer *x)
{
	struct exs_zerocopy *z = container_of(x, struct exs_zerocopy, x);

	exs_vector_free(z->vector);
	consume_skb(z->skb);
	exs_live(x->conn->xn, xfers, -1);
	kfree(z);
}
