// SPDX-License-Identifier: GPL-2.0
/*
 * Slots: the chains that are posted, and memory for their headers and short data. A slot is
 * free again when its chain is complete: a round trip later. So a connection that needs more
 * gets more, up to EXS_VERBS_SLOTS_MAX.
 */
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

/* Slots that are added together: as many as fit into 4 KiB. */
#define EXS_VERBS_MORE_SLOTS	((SZ_4K - sizeof(struct exs_verbs_slots)) /	\
				 sizeof(struct exs_verbs_slot))

/* The device reads @n slots at @slot; @dma: their address, or an error. */
static int exs_verbs_slots_map(struct exs_verbs_ep *v, struct exs_verbs_slot *slot, u32 n,
			       u64 *dma)
{
	struct ib_device *dev = v->id->device;
	u64 at = ib_dma_map_single(dev, slot, n * sizeof(*slot), DMA_TO_DEVICE);

	if (ib_dma_mapping_error(dev, at))
		return -ENOMEM;
	*dma = at;
	v->nslots += n;
	for (; n; n--, slot++, at += sizeof(*slot)) {
		slot->cqe.done = exs_verbs_slot_done;
		slot->dma = at + offsetof(struct exs_verbs_slot, buf);
		INIT_LIST_HEAD(&slot->inv_keys);
		list_add_tail(&slot->link, &v->slots_free);
	}
	return 0;
}

/* The first ones, which are idle connections' only ones. */
int exs_verbs_slots_make(struct exs_verbs_ep *v)
{
	return exs_verbs_slots_map(v, v->slots, EXS_VERBS_SLOTS, &v->slots_dma);
}

static int exs_verbs_slots_alloc(struct exs_verbs_ep *v, u32 n)
{
	struct exs_verbs_slots *more = kzalloc(struct_size(more, slot, n),
					       GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);

	if (!more)
		return -ENOMEM;
	more->n = n;
	if (exs_verbs_slots_map(v, more->slot, n, &more->dma)) {
		kfree(more);
		return -ENOMEM;
	}
	list_add(&more->link, &v->more_slots);
	exs_count(v->ep.conn->xn, slots_grown, 1);
	return 0;
}

/* Without memory the connection goes on with those that it has, for a while. */
static void exs_verbs_slots_grow(struct exs_verbs_ep *v)
{
	u32 n = min_t(u32, EXS_VERBS_MORE_SLOTS, EXS_VERBS_SLOTS_MAX - v->nslots);
	struct mem_cgroup *old;

	if (!n || time_before(jiffies, v->slots_after))
		return;
	old = set_active_memcg(v->ep.conn->memcg);
	if (exs_verbs_slots_alloc(v, n))
		v->slots_after = jiffies + HZ;
	set_active_memcg(old);
}

static void exs_verbs_slots_unmap(struct exs_verbs_ep *v, u64 dma, u32 n)
{
	ib_dma_unmap_single(v->id->device, dma, n * sizeof(struct exs_verbs_slot), DMA_TO_DEVICE);
}

/* None is in use any more. */
void exs_verbs_slots_free(struct exs_verbs_ep *v)
{
	struct exs_verbs_slots *more, *next;

	list_for_each_entry_safe(more, next, &v->more_slots, link) {
		exs_verbs_slots_unmap(v, more->dma, more->n);
		kfree(more);
	}
	exs_verbs_slots_unmap(v, v->slots_dma, EXS_VERBS_SLOTS);
	INIT_LIST_HEAD(&v->more_slots);
	INIT_LIST_HEAD(&v->slots_free);
	INIT_LIST_HEAD(&v->slots_posted);
	v->nslots = 0;
}

exs_hot
struct exs_verbs_slot *exs_verbs_slot_take(struct exs_verbs_ep *v)
{
	struct exs_verbs_slot *slot;

	lockdep_assert_held(&v->ep.conn->lock);
	slot = list_first_entry_or_null(&v->slots_free, struct exs_verbs_slot, link);
	if (slot) {
		list_move_tail(&slot->link, &v->slots_posted);
		v->chains_begun++;
		slot->wrs = 0;
		slot->x = NULL;
		slot->over = NULL;
		slot->fin = false;
		slot->advert = false;
		slot->copied = false;
		slot->unsignaled = false;
		if (list_empty(&v->slots_free))
			exs_verbs_slots_grow(v);
	}
	return slot;
}
