// SPDX-License-Identifier: GPL-2.0
/*
 * Receives, for messages of the peer. They stay: each is posted again when its message was
 * passed on, those of a batch of completions with one doorbell.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

/* The buffers of the first receives. Whole pages would be up to twice as much. */
static struct kmem_cache *exs_recvs_cache;

int exs_recvs_init(void)
{
	const u32 len = EXS_VERBS_RECVS * EXS_WIRE_BUF_LEN;

	/* All of it may be copied to programs. */
	exs_recvs_cache = kmem_cache_create_usercopy("exs_recvs", len, dma_get_cache_alignment(),
						     SLAB_ACCOUNT, 0, len, NULL);
	return exs_recvs_cache ? 0 : -ENOMEM;
}

void exs_recvs_exit(void)
{
	kmem_cache_destroy(exs_recvs_cache);
}

/* Each but the last is linked to the next one. */
static void exs_verbs_recvs_init(struct exs_verbs_ep *v, struct exs_verbs_recv *recv, u32 n,
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

/* The first ones. */
int exs_verbs_recvs_make(struct exs_verbs_ep *v)
{
	void *at = kmem_cache_zalloc(exs_recvs_cache, GFP_KERNEL);

	if (!at)
		return -ENOMEM;
	if (exs_verbs_mem_map(v, &v->mem, at, EXS_VERBS_RECVS * EXS_WIRE_BUF_LEN)) {
		kmem_cache_free(exs_recvs_cache, at);
		return -ENOMEM;
	}
	exs_verbs_recvs_init(v, v->recv, EXS_VERBS_RECVS, &v->mem);
	return 0;
}

/* Buffers of @n receives; whole pages. */
static int exs_verbs_more_mem(struct exs_verbs_ep *v, struct exs_verbs_mem *mem, u32 n)
{
	u32 len = n * EXS_WIRE_BUF_LEN;
	void *at = alloc_pages_exact(len, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY |
				     __GFP_NOWARN);

	if (!at)
		return -ENOMEM;
	if (!exs_verbs_mem_map(v, mem, at, len))
		return 0;
	free_pages_exact(at, len);
	return -ENOMEM;
}

static struct exs_verbs_recvs *exs_verbs_make_recvs(struct exs_verbs_ep *v, u32 n)
{
	struct exs_verbs_recvs *more = kzalloc(struct_size(more, recv, n), GFP_KERNEL_ACCOUNT);

	if (!more)
		return NULL;
	if (exs_verbs_more_mem(v, &more->mem, n)) {
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
		exs_verbs_mem_unmap(v, &more->mem);
		free_pages_exact(more->mem.at, more->mem.len);
		kfree(more);
	}
	INIT_LIST_HEAD(&v->more_recvs);
	exs_verbs_mem_unmap(v, &v->mem);
	kmem_cache_free(exs_recvs_cache, v->mem.at);
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
	/* After a failure there may be no queue pair: exs_verbs_drop_qp(). */
	err = v->failed ? -ENOTCONN : ib_post_recv(v->id->qp, v->repost, NULL);
	v->repost = NULL;
	if (err)
		exs_verbs_fail(v, -exs_verbs_post_errno(v, err));
	for (; v->nrepost; v->nrepost--)
		if (!err)
			exs_conn_reposted(v->ep.conn);
}
