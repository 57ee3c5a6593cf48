// SPDX-License-Identifier: GPL-2.0
/*
 * Executing what the engine decided: struct exs_tx becomes a chain of work
 * requests whose last one is signalled, unless nobody waits for its end: then a
 * later chain's speaks for it, as they end in order.
 *
 *   MESSAGE  SEND
 *   EAGER    SEND of header and data
 *   ADVERT   LOCAL_INV... of an earlier advert's keys, REG_MR..., SEND
 *   RING     REG_MR..., SEND
 *            (soft-RoCE: LOCAL_INV, REG_MR each)
 *   WRITE    WRITE..., the last with an immediate if it ends a transfer;
 *            on iWARP, which has none, and to have the peer's device invalidate a
 *            key, followed by a SEND of WRITTEN
 *
 * The bytes of a short send are copied into the slot. So it ends as soon as it is
 * posted, if it is not to overtake the end of an earlier one.
 * A SEND or WRITE of few bytes may take them along: verbs_inline.c.
 *
 * Chains do not mix, as all is posted under conn->lock. A chain that could not
 * be posted whole is not repaired: the connection is reset.
 */
#include "core/stats.h"
#include "verbs_internal.h"

/* exs_ep_ops.room: whether the longest chain fits, and can have keys. */
exs_hot
bool exs_verbs_room(struct exs_ep *ep)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);

	lockdep_assert_held(&ep->conn->lock);
	if (!exs_verbs_is(v, EXS_VERBS_OPEN) || v->failed ||
	    exs_verbs_is(v, EXS_VERBS_GONE))
		return false;
	if (!v->watched)
		exs_verbs_watch(v);
	if (list_empty(&v->slots_free) ||
	    v->sq_used + EXS_VERBS_CHAIN_WRS > EXS_VERBS_SQ_WRS)
		return false;
	/* Keys that are dying come back whatever the peer does. */
	return v->nkeys_free >= EXS_VERBS_SEGS || !v->keys_dying;
}

exs_hot
static struct exs_verbs_slot *exs_verbs_slot_take(struct exs_verbs_ep *v)
{
	struct exs_verbs_slot *slot;

	slot = list_first_entry_or_null(&v->slots_free, struct exs_verbs_slot, link);
	if (slot) {
		list_move_tail(&slot->link, &v->slots_posted);
		v->chains_begun++;
		slot->wrs = 0;
		slot->x = NULL;
		slot->fin = false;
		slot->copied = false;
		slot->silent = false;
	}
	return slot;
}

/*
 * One WR of @slot's chain. On iWARP each one is signalled: siw hands TCP the
 * pages themselves of a write that is not, and its completion, implied by the next,
 * comes while they have yet to be sent.
 */
exs_hot
int exs_verbs_post_wr(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
		      struct ib_send_wr *wr, bool last)
{
	bool signaled = v->iwarp || (last && !slot->silent);

	wr->wr_cqe = last ? &slot->cqe : &v->quiet;
	wr->send_flags |= signaled ? IB_SEND_SIGNALED : 0;
	slot->wrs++;
	v->sq_used++;
	return ib_post_send(v->id->qp, wr, NULL);
}

/* The local side of up to @len bytes of @x from byte @where on.
 * Return: bytes; @sges: filled in, @n of at most @max.
 */
static u32 exs_verbs_gather(struct exs_verbs_ep *v, struct exs_xfer *x, u64 where,
			    u32 len, struct ib_sge *sges, int max, int *n)
{
	struct exs_verbs_pos pos = exs_verbs_seek(&x->map, where);
	u32 left = len;

	for (*n = 0; left && pos.sg && *n < max; ++*n) {
		u32 part = min(left, sg_dma_len(pos.sg) - pos.off);

		sges[*n] = (struct ib_sge) {
			.addr	= sg_dma_address(pos.sg) + pos.off,
			.length	= part,
			.lkey	= v->pd->local_dma_lkey,
		};
		exs_verbs_pos_advance(&pos, part);
		left -= part;
	}
	exs_verbs_moved(&x->map, where + len - left, pos);
	return len - left;
}

static u32 exs_verbs_copy_offset(const struct exs_verbs_ep *v,
				 const struct exs_verbs_slot *slot)
{
	return exs_verbs_slot_offset(v, slot) + EXS_WIRE_HDR_LEN;
}

/* The bytes of the piece @tx, into the slot. */
static int exs_verbs_copy(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			  const struct exs_tx *tx)
{
	u32 offset = exs_verbs_copy_offset(v, slot);

	if (WARN_ON_ONCE(tx->len > EXS_VERBS_COPY_MAX))
		return -EINVAL;
	if (exs_xfer_get(exs_snd_xfer(tx->snd), tx->offset, v->mem + offset, tx->len))
		return -EFAULT;
	ib_dma_sync_single_for_device(v->id->device, v->dma + offset, tx->len,
				      DMA_BIDIRECTIONAL);
	return 0;
}

/* Likewise of up to @len bytes of the piece @tx, from its byte @done on. */
static u32 exs_verbs_local(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			   const struct exs_tx *tx, u32 done, u32 len,
			   struct ib_sge *sges, int max, int *n)
{
	if (!slot->copied)
		return exs_verbs_gather(v, exs_snd_xfer(tx->snd), tx->offset + done,
					len, sges, max, n);
	sges[0] = (struct ib_sge) {
		.addr	= v->dma + exs_verbs_copy_offset(v, slot) + done,
		.length	= len,
		.lkey	= v->pd->local_dma_lkey,
	};
	*n = 1;
	return len;
}

/*
 * SEND of @tx's message, with the @copied bytes behind its header and what is in @sges[1] to
 * @sges[@n - 1]; [0] is ours.
 */
exs_hot
static int exs_verbs_post_send(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			       const struct exs_tx *tx, u32 copied,
			       struct ib_sge *sges, int n)
{
	u32 offset = exs_verbs_slot_offset(v, slot);
	struct ib_send_wr wr = {
		.opcode			= tx->invalidate ? IB_WR_SEND_WITH_INV : IB_WR_SEND,
		.ex.invalidate_rkey	= tx->key,
		.sg_list		= sges,
		.num_sge		= n,
	};
	int len;

	len = exs_wire_put_msg(v->mem + offset, EXS_VERBS_SLOT_LEN, &tx->msg);
	if (WARN_ON_ONCE(len < 0))
		return len;
	ib_dma_sync_single_for_device(v->id->device, v->dma + offset, len,
				      DMA_BIDIRECTIONAL);
	sges[0] = (struct ib_sge) {
		.addr	= v->dma + offset,
		.length	= len + copied,
		.lkey	= v->pd->local_dma_lkey,
	};
	slot->fin = tx->msg.type == EXS_MSG_FIN;
	return exs_verbs_post_wr(v, slot, &wr, true);
}

static int exs_verbs_post_message(struct exs_verbs_ep *v,
				  struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	struct ib_sge sge;

	/* siw takes inline bytes with every SEND but the one that invalidates. */
	if (!tx->invalidate && exs_verbs_is_inline(v, exs_wire_msg_len(&tx->msg)))
		return exs_verbs_send_inline(v, slot, tx, 0);
	return exs_verbs_post_send(v, slot, tx, 0, &sge, 1);
}

static int exs_verbs_post_advert(struct exs_verbs_ep *v,
				 struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	int err;

	err = exs_verbs_post_stale(v, slot, exs_rcv_xfer(tx->rcv));
	if (!err)
		err = exs_verbs_register(v, slot, tx);
	if (!err)
		err = exs_verbs_post_message(v, slot, tx);
	return err;
}

static int exs_verbs_post_ring(struct exs_verbs_ep *v,
			       struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	int err = exs_verbs_register_ring(v, slot, tx);

	return err ? err : exs_verbs_post_message(v, slot, tx);
}

exs_hot
static int exs_verbs_post_eager(struct exs_verbs_ep *v,
				struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	struct ib_sge sges[EXS_VERBS_SEND_SGES];
	int n = 0;

	if (exs_verbs_is_inline(v, exs_wire_msg_len(&tx->msg) + tx->len))
		return exs_verbs_send_inline(v, slot, tx, tx->len);
	if (slot->copied)
		return exs_verbs_post_send(v, slot, tx, tx->len, sges, 1);
	if (tx->len && exs_verbs_gather(v, exs_snd_xfer(tx->snd), tx->offset, tx->len,
					sges + 1, v->max_sge - 1, &n) != tx->len)
		return -EINVAL;
	return exs_verbs_post_send(v, slot, tx, 0, sges, n + 1);
}

/* Whether a WRITTEN ends the transfer, not an immediate. */
static bool exs_verbs_says_written(const struct exs_verbs_ep *v, const struct exs_tx *tx)
{
	return tx->last && (v->iwarp || tx->invalidate);
}

/* What the immediate says elsewhere. The segments of @tx are done with. */
static int exs_verbs_post_written(struct exs_verbs_ep *v,
				  struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	tx->msg.type = EXS_MSG_WRITTEN;
	tx->msg.flags = 0;
	tx->msg.credits = 0;
	tx->msg.a = tx->imm;
	tx->msg.b = 0;
	tx->msg.c = 0;
	tx->msg.nsegs = 0;
	return exs_verbs_post_message(v, slot, tx);
}

/*
 * One WR of a WRITE: bytes from @done on to @to, as many as fit.
 * Return: how many, or a negative errno.
 */
exs_hot
static int exs_verbs_post_part(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			       const struct exs_tx *tx, u32 done,
			       const struct exs_seg *to)
{
	struct ib_sge sges[EXS_VERBS_SEND_SGES];
	struct ib_rdma_wr wr = {
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.sg_list	= sges,
		.remote_addr	= to->addr,
		.rkey		= to->key,
	};
	u32 n = min(to->len, tx->len - done);
	/* Of a short send only: there is no cursor that leads to the bytes at once. */
	bool last, inl = tx->snd->len <= EXS_WIRE_DATA_MAX && exs_verbs_is_inline(v, n);
	int err;

	if (!inl)
		n = exs_verbs_local(v, slot, tx, done, n, sges, v->max_sge,
				    &wr.wr.num_sge);
	if (WARN_ON_ONCE(!n))
		return -EINVAL;
	last = done + n == tx->len;
	if (last && tx->last && !exs_verbs_says_written(v, tx)) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.ex.imm_data = cpu_to_be32(tx->imm);
	}
	last = last && !exs_verbs_says_written(v, tx);
	err = inl ? exs_verbs_write_inline(v, slot, &wr, tx, done, n, last) :
		    exs_verbs_post_wr(v, slot, &wr.wr, last);
	return err ? err : n;
}

static int exs_verbs_post_parts(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
				const struct exs_tx *tx)
{
	u32 i, done = 0;

	for (i = 0; i < tx->nsegs && done < tx->len; i++) {
		struct exs_seg to = tx->segs[i];

		while (to.len && done < tx->len) {
			int n = exs_verbs_post_part(v, slot, tx, done, &to);

			if (n < 0)
				return n;
			done += n;
			to.addr += n;
			to.len -= n;
		}
	}
	return WARN_ON_ONCE(done != tx->len) ? -EINVAL : 0;
}

/* The end of a transfer that has no byte: an empty message. */
static int exs_verbs_post_nothing(struct exs_verbs_ep *v,
				  struct exs_verbs_slot *slot, const struct exs_tx *tx)
{
	struct ib_rdma_wr wr = {
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(tx->imm),
	};

	if (WARN_ON_ONCE(!tx->last))
		return -EINVAL;
	return v->iwarp ? 0 : exs_verbs_post_wr(v, slot, &wr.wr, true);
}

exs_hot
static int exs_verbs_post_write(struct exs_verbs_ep *v,
				struct exs_verbs_slot *slot, struct exs_tx *tx)
{
	int err;

	if (tx->len)
		err = exs_verbs_post_parts(v, slot, tx);
	else
		err = exs_verbs_post_nothing(v, slot, tx);
	if (!err && exs_verbs_says_written(v, tx))
		err = exs_verbs_post_written(v, slot, tx);
	return err;
}

static int (*const exs_verbs_post_kind[])(struct exs_verbs_ep *v,
					  struct exs_verbs_slot *slot,
					  struct exs_tx *tx) = {
	[EXS_TX_MESSAGE]	= exs_verbs_post_message,
	[EXS_TX_ADVERT]		= exs_verbs_post_advert,
	[EXS_TX_RING]		= exs_verbs_post_ring,
	[EXS_TX_EAGER]		= exs_verbs_post_eager,
	[EXS_TX_WRITE]		= exs_verbs_post_write,
};

/*
 * What waits for room gets it from a chain that is signalled: so the last that there
 * is room for is never silent. iWARP: see exs_verbs_post_wr().
 */
static bool exs_verbs_may_be_silent(const struct exs_verbs_ep *v)
{
	return !v->iwarp && v->silent < EXS_VERBS_SILENT_MAX &&
	       !list_empty(&v->slots_free) &&
	       v->sq_used + 2 * EXS_VERBS_CHAIN_WRS <= EXS_VERBS_SQ_WRS;
}

/* Return: the send whose piece @tx is, if that ends when it is posted; or NULL. */
static struct exs_xfer *exs_verbs_begin_data(struct exs_verbs_ep *v,
					     struct exs_verbs_slot *slot,
					     const struct exs_tx *tx)
{
	struct exs_xfer *x = exs_snd_xfer(tx->snd);

	slot->copied = !x->map.mapped;
	if (slot->copied && !v->sending)
		return x;
	slot->x = x;
	v->sending++;
	return NULL;
}

static bool exs_verbs_is_data(const struct exs_tx *tx)
{
	return tx->kind == EXS_TX_EAGER || tx->kind == EXS_TX_WRITE;
}

/* A message whose end means nothing to us. */
static bool exs_verbs_is_note(const struct exs_tx *tx)
{
	return tx->kind == EXS_TX_MESSAGE && tx->msg.type != EXS_MSG_FIN;
}

/* exs_ep_ops.post: after room() said yes */
exs_hot
int exs_verbs_post(struct exs_ep *ep, struct exs_tx *tx)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_verbs_slot *slot;
	struct exs_xfer *over = NULL;
	int err = 0;

	lockdep_assert_held(&ep->conn->lock);
	slot = exs_verbs_slot_take(v);
	if (WARN_ON_ONCE(!slot))
		return -ENOBUFS;
	if (exs_verbs_is_data(tx))
		over = exs_verbs_begin_data(v, slot, tx);
	if (over || exs_verbs_is_note(tx))
		slot->silent = exs_verbs_may_be_silent(v);
	exs_verbs_chain_begins(v, slot);
	if (slot->copied)
		err = exs_verbs_copy(v, slot, tx);
	if (!err)
		err = exs_verbs_post_kind[tx->kind](v, slot, tx);
	if (!err && over)
		exs_conn_sent(ep->conn, over);
	if (err != -ENOTCONN)
		return err;
	/* The end is in sight: nothing more is posted until it is here. */
	exs_verbs_fail(v, 0);
	exs_verbs_note_lost(v, 0);
	return 0;
}

/*
 * A write of nothing: the peer's device acknowledges it, and needs neither a key
 * nor a receive for that. conn->lock held, no chain is under way.
 */
int exs_verbs_post_probe(struct exs_verbs_ep *v)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };
	struct exs_verbs_slot *slot;

	lockdep_assert_held(&v->ep.conn->lock);
	slot = exs_verbs_slot_take(v);
	if (WARN_ON_ONCE(!slot))
		return -ENOBUFS;
	exs_verbs_chain_begins(v, slot);
	return exs_verbs_post_wr(v, slot, &wr.wr, true);
}
