// SPDX-License-Identifier: GPL-2.0
/*
 * Receives, for messages of the peer. They stay: each is posted again when its message was
 * passed on, those of a batch of completions with one doorbell.
 */
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

/* Each but the last is linked to the next one. */
void exs_verbs_recvs_init(struct exs_verbs_ep *v, struct exs_verbs_recv *recv, u32 n,
			  const struct exs_verbs_mem *mem)
{
	u32 i;

	for (i = 0; i < n; i++, recv++) {
		recv->cqe.done = exs_verbs_recv_done;
		recv->buf = mem->at + i * EXS_WIRE_BUF_LEN;
		recv->sge = (struct ib_sge) {
			.addr	= mem->dma + i * EXS_WIRE_BUF_LEN,
			.length	= EXS_WIRE_BUF_LEN,
			.lkey	= v->pd->local_dma_lkey,
		};
		recv->wr = (struct ib_recv_wr) {
			.next		= i + 1 < n ? &recv[1].wr : NULL,
			.wr_cqe		= &recv->cqe,
			.sg_list	= &recv->sge,
			.num_sge	= 1,
		};
	}
}

static struct exs_verbs_recvs *exs_verbs_make_recvs(struct exs_verbs_ep *v, u32 n)
{
	struct exs_verbs_recvs *more = kzalloc(struct_size(more, recv, n), GFP_KERNEL_ACCOUNT);

	if (!more)
		return NULL;
	if (exs_verbs_mem_make(v, &more->mem, n * EXS_WIRE_BUF_LEN,
			       GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)) {
		kfree(more);
		return NULL;
	}
	exs_verbs_recvs_init(v, more->recv, n, &more->mem);
	return more;
}

/* exs_ep_ops.add_recvs */
int exs_verbs_add_recvs(struct exs_ep *ep, u32 n)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_verbs_recvs *more = exs_verbs_make_recvs(v, n);
	int err = 0;

	if (!more)
		return -ENOMEM;
	list_add(&more->link, &v->more_recvs);
	spin_lock(&ep->conn->lock);
	if (!v->failed && !exs_verbs_is(v, EXS_VERBS_CLOSING))
		err = ib_post_recv(v->id->qp, &more->recv[0].wr, NULL);
	if (err)
		exs_verbs_note_lost(v, -exs_verbs_post_errno(v, err));
	spin_unlock(&ep->conn->lock);
	/* They are posted, whatever the provider returned. */
	return err ? -EIO : 0;
}

void exs_verbs_recvs_free(struct exs_verbs_ep *v)
{
	struct exs_verbs_recvs *more, *next;

	list_for_each_entry_safe(more, next, &v->more_recvs, link) {
		exs_verbs_mem_free(v, &more->mem);
		kfree(more);
	}
	INIT_LIST_HEAD(&v->more_recvs);
}

/* @recv's message was passed on. conn->lock held. */
exs_hot
void exs_verbs_recv_over(struct exs_verbs_ep *v, struct exs_verbs_recv *recv)
{
	lockdep_assert_held(&v->ep.conn->lock);
	ib_dma_sync_single_for_device(v->id->device, recv->sge.addr, EXS_WIRE_BUF_LEN,
				      DMA_BIDIRECTIONAL);
	recv->wr.next = v->repost;
	v->repost = &recv->wr;
	v->nrepost++;
}

/* Post those again, and owe the peer their credits. conn->lock held. */
exs_hot
void exs_verbs_repost(struct exs_verbs_ep *v)
{
	int err;

	lockdep_assert_held(&v->ep.conn->lock);
	if (!v->nrepost)
		return;
	err = ib_post_recv(v->id->qp, v->repost, NULL);
	v->repost = NULL;
	if (err)
		exs_verbs_fail(v, -exs_verbs_post_errno(v, err));
	for (; v->nrepost; v->nrepost--)
		if (!err)
			exs_conn_reposted(v->ep.conn);
}
