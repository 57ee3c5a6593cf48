// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests that take their bytes along (EXS_SO_INLINE_MAX), which spares the
 * device to fetch them.
 *
 * A provider copies such bytes while the request is posted, from the address in the
 * scatter/gather element, which it takes for one of the kernel's: no memory key and
 * no DMA mapping is looked at. So they are put together on the stack, and nobody
 * else's address is ever there.
 */
#include "core/stats.h"
#include "verbs_internal.h"

static struct ib_sge exs_verbs_inline_sge(const struct exs_verbs_ep *v, const void *buf, u32 len)
{
	exs_count(v->ep.conn->xn, inline_tx_bytes, len);
	return (struct ib_sge) { .addr = (uintptr_t)buf, .length = len };
}

int exs_verbs_send_inline(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			  const struct exs_tx *tx, u32 len)
{
	u8 buf[EXS_VERBS_INLINE_MAX];
	struct ib_sge sge;
	struct ib_send_wr wr = {
		.opcode		= IB_WR_SEND,
		.send_flags	= IB_SEND_INLINE,
		.sg_list	= &sge,
		.num_sge	= 1,
	};
	int header = exs_wire_put_msg(buf, sizeof(buf), &tx->msg);

	if (WARN_ON_ONCE(header < 0 || header + len > sizeof(buf)))
		return -EINVAL;
	if (len && exs_xfer_get(exs_snd_xfer(tx->snd), tx->offset, buf + header, len))
		return -EFAULT;
	sge = exs_verbs_inline_sge(v, buf, header + len);
	slot->fin = tx->msg.type == EXS_MSG_FIN;
	return exs_verbs_post_wr(v, slot, &wr, true);
}

int exs_verbs_write_inline(struct exs_verbs_ep *v, struct exs_verbs_slot *slot,
			   struct ib_rdma_wr *wr, const struct exs_tx *tx, u32 done,
			   u32 len, bool last)
{
	u8 buf[EXS_VERBS_INLINE_MAX];

	if (WARN_ON_ONCE(len > sizeof(buf)))
		return -EINVAL;
	if (exs_xfer_get(exs_snd_xfer(tx->snd), tx->offset + done, buf, len))
		return -EFAULT;
	wr->wr.sg_list[0] = exs_verbs_inline_sge(v, buf, len);
	wr->wr.num_sge = 1;
	wr->wr.send_flags = IB_SEND_INLINE;
	return exs_verbs_post_wr(v, slot, &wr->wr, last);
}
