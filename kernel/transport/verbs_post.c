// SPDX-License-Identifier: GPL-2.0
/*
 * Executes the engine's decisions: struct exs_tx becomes a chain of work requests. The last
 * one is signalled, unless nothing waits for it: then a later chain's completion covers it,
 * because they end in order.
 *
 *   MESSAGE  SEND
 *   EAGER    SEND of header and data
 *   ADVERT   LOCAL_INV... of an earlier advert's keys, REG_MR..., SEND
 *   RING     REG_MR..., SEND
 *            (soft-RoCE: LOCAL_INV, REG_MR each)
 *   WRITE    WRITE..., the last with an immediate if it ends a transfer; the bytes of
 *            several sends that one transfer takes are one WRITE if possible;
 *            on iWARP, which has none, and to have the peer's device invalidate a
 *            key, followed by a SEND of WRITTEN
 *
 * The bytes of a short send are copied into the slot. So it ends when it is posted, unless
 * an earlier send has not ended.
 *
 * A short SEND or WRITE may contain its bytes (EXS_SO_INLINE_MAX), so that the device need
 * not fetch them. A provider copies such bytes when the request is posted, from the address
 * in the scatter/gather element, which it takes for a kernel address, without memory key or
 * DMA mapping. So they are collected in the chain, and no other address is ever used.
 *
 * All chains of a run are posted with one doorbell (verbs_chain.h). They do not mix with
 * others, as conn->lock is held. One that could not be posted whole is not repaired: the
 * connection is reset.
 */
#include "core/stats.h"
#include "verbs_internal.h"

/* exs_ep_ops.room: whether the longest chain fits, with its keys. */
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
	/*
	 * An advert's, unless no receive has any. Those of receives that have ended come back
	 * whatever the peer does.
	 */
	return v->nkeys_free >= min_t(u32, EXS_VERBS_SEGS, READ_ONCE(v->keys_total));
}

/* @wr is ready; with send_flags 0 or IB_SEND_INLINE. @last: of its chain */
exs_hot
static void exs_verbs_wr_ready(struct exs_verbs_chain *chain, struct ib_send_wr *wr, bool last)
{
	struct exs_verbs_slot *slot = chain->slot;

	if (last)
		wr->wr_cqe = &slot->cqe;
	if ((last && !slot->unsignaled) || exs_verbs_has(chain->v, EXS_QUIRK_SIGNAL_ALL))
		wr->send_flags |= IB_SEND_SIGNALED;
}

/* Describe up to @len bytes of @x, from byte @where on, in at most @max elements @sges.
 * @n: how many elements it took. Return: how many bytes they have.
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

/* Copy the bytes of the piece @tx into the slot. */
static int exs_verbs_copy(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			  const struct exs_tx *tx)
{
	if (WARN_ON_ONCE(tx->len > EXS_VERBS_COPY_MAX))
		return -EINVAL;
	if (exs_xfer_get(exs_snd_xfer(tx->snd), tx->offset, slot->buf + EXS_WIRE_HDR_LEN, tx->len))
		return -EFAULT;
	ib_dma_sync_single_for_device(v->id->device, slot->dma + EXS_WIRE_HDR_LEN, tx->len,
				      DMA_TO_DEVICE);
	return 0;
}

/* Whether a work request contains its @len bytes. */
static bool exs_verbs_is_inline(const struct exs_verbs_ep *v, u32 len)
{
	u32 wanted = exs_option(&v->ep.conn->options, EXS_SO_INLINE_MAX);

	return len <= min_t(u32, wanted, v->inline_max);
}

/*
 * The same for a SEND with the first @behind bytes of its piece. siw refuses inline data in a
 * SEND with invalidate.
 */
static bool exs_verbs_sends_inline(const struct exs_verbs_ep *v, const struct exs_tx *tx,
				   u32 behind)
{
	return !tx->invalidate && exs_verbs_is_inline(v, exs_wire_msg_len(&tx->msg) + behind);
}

/* @wr contains @tx's message and the first @behind bytes of its piece. */
static int exs_verbs_send_inside(struct exs_verbs_chain *chain, struct ib_send_wr *wr,
				 const struct exs_tx *tx, u32 behind)
{
	u8 *bytes = exs_chain_bytes(chain);
	int len = exs_wire_put_msg(bytes, EXS_INLINE_MAX, &tx->msg);

	if (WARN_ON_ONCE(len < 0))
		return len;
	if (behind && exs_xfer_get(exs_snd_xfer(tx->snd), tx->offset, bytes + len, behind))
		return -EFAULT;
	exs_chain_use_bytes(chain, wr, len + behind);
	return 0;
}

/* @wr's elements: the message and @behind bytes in the slot, and @n that are there. */
exs_hot
static int exs_verbs_send_from(struct exs_verbs_chain *chain, struct ib_send_wr *wr,
			       const struct exs_tx *tx, u32 behind, int n)
{
	struct exs_verbs_slot *slot = chain->slot;
	struct exs_verbs_ep *v = chain->v;
	int len = exs_wire_put_msg(slot->buf, EXS_VERBS_SLOT_LEN, &tx->msg);

	if (WARN_ON_ONCE(len < 0))
		return len;
	ib_dma_sync_single_for_device(v->id->device, slot->dma, len, DMA_TO_DEVICE);
	*exs_chain_sges(chain) = (struct ib_sge) {
		.addr	= slot->dma,
		.length	= len + behind,
		.lkey	= v->pd->local_dma_lkey,
	};
	exs_chain_use_sges(chain, wr, 1 + n);
	return 0;
}

/*
 * @wr becomes a SEND of @tx's message, of the first @behind bytes of its piece, which are in
 * the slot or inline, and of @n elements, which lie behind the next one of the chain.
 */
exs_hot
static int exs_verbs_make_send(struct exs_verbs_chain *chain, struct ib_send_wr *wr,
			       const struct exs_tx *tx, u32 behind, int n)
{
	int err;

	wr->opcode = tx->invalidate ? IB_WR_SEND_WITH_INV : IB_WR_SEND;
	wr->ex.invalidate_rkey = tx->key;
	if (!n && exs_verbs_sends_inline(chain->v, tx, behind))
		err = exs_verbs_send_inside(chain, wr, tx, behind);
	else
		err = exs_verbs_send_from(chain, wr, tx, behind, n);
	chain->slot->fin = tx->msg.type == EXS_MSG_FIN;
	exs_verbs_wr_ready(chain, wr, true);
	return err;
}

static int exs_verbs_add_message(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	return exs_verbs_make_send(chain, &exs_chain_add(chain)->send, tx, 0, 0);
}

static int exs_verbs_add_advert(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	int err;

	if (!chain->early.first)
		exs_count(chain->v->ep.conn->xn, advert_batches, 1);
	exs_verbs_invalidate_before(chain, exs_rcv_xfer(tx->rcv));
	err = exs_verbs_register(chain, tx);
	return err ? err : exs_verbs_add_message(chain, tx);
}

static int exs_verbs_add_ring(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	int err = exs_verbs_register_ring(chain, tx);

	return err ? err : exs_verbs_add_message(chain, tx);
}

exs_hot
static int exs_verbs_add_eager(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	struct ib_send_wr *wr = &exs_chain_add(chain)->send;
	struct exs_verbs_ep *v = chain->v;
	bool behind = chain->slot->copied || exs_verbs_sends_inline(v, tx, tx->len);
	int n = 0;

	if (!behind && tx->len &&
	    exs_verbs_gather(v, exs_snd_xfer(tx->snd), tx->offset, tx->len,
			     exs_chain_sges(chain) + 1, v->max_sge - 1, &n) != tx->len)
		return -EINVAL;
	return exs_verbs_make_send(chain, wr, tx, behind ? tx->len : 0, n);
}

/* In place of an immediate, for iWARP. The segments of @tx are no longer needed. */
static int exs_verbs_add_written(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	tx->msg.type = EXS_MSG_WRITTEN;
	tx->msg.flags = 0;
	tx->msg.credits = 0;
	tx->msg.a = tx->imm;
	tx->msg.b = 0;
	tx->msg.c = 0;
	tx->msg.nsegs = 0;
	return exs_verbs_add_message(chain, tx);
}

/*
 * Where @wr finds, behind those that it has, up to @len bytes of the piece @tx from byte @done
 * on. Return: the number; 0: they are not there.
 */
static u32 exs_verbs_local(struct exs_verbs_chain *chain, const struct exs_tx *tx, u32 done,
			   u32 len, struct ib_send_wr *wr)
{
	struct exs_xfer *x = exs_snd_xfer(tx->snd);
	struct exs_verbs_ep *v = chain->v;
	int n = 1;

	/* For short sends only: the cursor need not be at the bytes. */
	if (!wr->num_sge && tx->snd->len <= EXS_WIRE_DATA_MAX && exs_verbs_is_inline(v, len)) {
		if (exs_xfer_get(x, tx->offset + done, exs_chain_bytes(chain), len))
			return 0;
		exs_chain_use_bytes(chain, wr, len);
		return len;
	}
	if (chain->slot->copied)
		*exs_chain_sges(chain) = (struct ib_sge) {
			.addr	= chain->slot->dma + EXS_WIRE_HDR_LEN + done,
			.length	= len,
			.lkey	= v->pd->local_dma_lkey,
		};
	else
		len = exs_verbs_gather(v, x, tx->offset + done, len, exs_chain_sges(chain),
				       v->max_sge - wr->num_sge, &n);
	exs_chain_use_sges(chain, wr, n);
	return len;
}

/*
 * The next send's bytes can go with @wr's, which end at @end, as long as it has room for more
 * elements. Its completion is then that of the last of these sends, and ends all of them.
 */
static void exs_verbs_may_join(struct exs_verbs_chain *chain, struct ib_rdma_wr *wr, u64 end)
{
	if (wr->wr.send_flags & IB_SEND_INLINE || wr->wr.num_sge >= chain->v->max_sge)
		return;
	chain->joint = wr;
	chain->joint_end = end;
}

/* A WRITE of bytes that go to @to: a new one, unless it is joined to the last. */
exs_hot
static struct ib_rdma_wr *exs_verbs_write_to(struct exs_verbs_chain *chain,
					     const struct exs_seg *to)
{
	struct ib_rdma_wr *wr = chain->joint;

	chain->joint = NULL;
	if (wr && wr->rkey == to->key && chain->joint_end == to->addr)
		return wr;
	wr = &exs_chain_add(chain)->rdma;
	wr->wr.opcode = IB_WR_RDMA_WRITE;
	wr->remote_addr = to->addr;
	wr->rkey = to->key;
	return wr;
}

/* An immediate, or a WRITTEN, ends a transfer; a transfer without bytes is only that. */
exs_hot
static int exs_verbs_add_write(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	bool written = tx->last && (tx->invalidate || exs_verbs_has(chain->v, EXS_QUIRK_NO_IMM));
	bool imm = tx->last && !written, all = !tx->len && written;
	u32 n, i = 0, done = 0;
	struct exs_seg to = {};

	while (!all) {
		struct ib_rdma_wr *wr;

		while (done < tx->len && !to.len && i < tx->nsegs)
			to = tx->segs[i++];
		wr = exs_verbs_write_to(chain, &to);
		n = min(to.len, tx->len - done);
		if (n)
			n = exs_verbs_local(chain, tx, done, n, &wr->wr);
		if (WARN_ON_ONCE(!n && (tx->len || !imm)))
			return -EINVAL;
		to.addr += n;
		to.len -= n;
		done += n;
		all = done == tx->len;
		if (all && imm) {
			wr->wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
			wr->wr.ex.imm_data = cpu_to_be32(tx->imm);
		}
		exs_verbs_wr_ready(chain, &wr->wr, all && !written);
		if (all && tx->snd_done && !tx->last)
			exs_verbs_may_join(chain, wr, to.addr);
	}
	return written ? exs_verbs_add_written(chain, tx) : 0;
}

static int (*const exs_verbs_add[])(struct exs_verbs_chain *chain, struct exs_tx *tx) = {
	[EXS_TX_MESSAGE]	= exs_verbs_add_message,
	[EXS_TX_ADVERT]		= exs_verbs_add_advert,
	[EXS_TX_RING]		= exs_verbs_add_ring,
	[EXS_TX_EAGER]		= exs_verbs_add_eager,
	[EXS_TX_WRITE]		= exs_verbs_add_write,
};

/*
 * A sender that waits for room gets it from a signalled chain. So the last chain that there
 * is room for is always signalled.
 */
static bool exs_verbs_may_be_unsignaled(const struct exs_verbs_ep *v)
{
	return !exs_verbs_has(v, EXS_QUIRK_SIGNAL_ALL) &&
	       v->unsignaled < EXS_VERBS_UNSIGNALED_MAX && !list_empty(&v->slots_free) &&
	       v->sq_used + 2 * EXS_VERBS_CHAIN_WRS <= EXS_VERBS_SQ_WRS;
}

/*
 * Return: the send of the piece @tx, if it ends when posted; or NULL. Sends end in order, except
 * for plain ones, whose end no program sees: if the connection fails, none may have succeeded
 * behind one that did not.
 */
static struct exs_xfer *exs_verbs_begin_data(struct exs_verbs_ep *v,
					     struct exs_verbs_slot *slot,
					     const struct exs_tx *tx)
{
	struct exs_xfer *x = exs_snd_xfer(tx->snd);

	slot->copied = !x->map.mapped;
	if (slot->copied && (!v->sending || !x->call))
		return x;
	slot->x = x;
	v->sending++;
	return NULL;
}

static bool exs_verbs_is_data(const struct exs_tx *tx)
{
	return tx->kind == EXS_TX_EAGER || tx->kind == EXS_TX_WRITE;
}

/* A message of the protocol whose completion has no effect here. */
static bool exs_verbs_is_control(const struct exs_tx *tx)
{
	return tx->kind == EXS_TX_MESSAGE && tx->msg.type != EXS_MSG_FIN;
}

/* Adverts that follow would make all that is behind them wait: see verbs_chain.h. */
static void exs_verbs_begin_advert(struct exs_verbs_ep *v, struct exs_verbs_slot *slot)
{
	if (!exs_verbs_has(v, EXS_QUIRK_REPEATS))
		return;
	slot->advert = true;
	v->adverts++;
	v->ep.adverts_wait = true;
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
	if (over || exs_verbs_is_control(tx))
		slot->unsignaled = exs_verbs_may_be_unsignaled(v);
	if (tx->kind == EXS_TX_ADVERT)
		exs_verbs_begin_advert(v, slot);
	exs_verbs_chain_begins(v, slot);
	if (slot->copied)
		err = exs_verbs_copy(v, slot, tx);
	if (!v->chain)
		v->chain = exs_chain_begin(v);
	v->chain->slot = slot;
	if (!err)
		err = exs_verbs_add[tx->kind](v->chain, tx) ?: v->chain->err;
	slot->over = over;
	if (over && !v->chain->over)
		v->chain->over = slot;
	return err;
}

/* Those from @slot on were posted. */
static void exs_verbs_sends_over(struct exs_verbs_ep *v, struct exs_verbs_slot *slot)
{
	list_for_each_entry_from(slot, &v->slots_posted, link) {
		if (slot->over)
			exs_conn_sent(v->ep.conn, slot->over);
		slot->over = NULL;
	}
}

/* exs_ep_ops.flush */
exs_hot
int exs_verbs_flush(struct exs_ep *ep, int err)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_verbs_chain *chain = v->chain;
	struct exs_verbs_slot *over;

	lockdep_assert_held(&ep->conn->lock);
	if (!chain)
		return err;
	v->chain = NULL;
	over = chain->over;
	err = exs_chain_end(chain, err);
	if (!err && over)
		exs_verbs_sends_over(v, over);
	if (err != -ENOTCONN)
		return err;
	/* The connection is about to end: post nothing more. */
	exs_verbs_fail(v, 0);
	exs_verbs_note_lost(v, 0);
	return 0;
}

/*
 * A write without bytes: the peer's device acknowledges it, without a key or a receive.
 * conn->lock held, no chain is pending.
 */
int exs_verbs_post_probe(struct exs_verbs_ep *v)
{
	struct exs_verbs_chain *chain;
	struct exs_verbs_slot *slot;
	struct ib_send_wr *wr;

	lockdep_assert_held(&v->ep.conn->lock);
	slot = exs_verbs_slot_take(v);
	if (WARN_ON_ONCE(!slot || v->chain))
		return -ENOBUFS;
	exs_verbs_chain_begins(v, slot);
	chain = exs_chain_begin(v);
	chain->slot = slot;
	wr = &exs_chain_add(chain)->send;
	wr->opcode = IB_WR_RDMA_WRITE;
	exs_verbs_wr_ready(chain, wr, true);
	return exs_chain_end(chain, 0);
}
