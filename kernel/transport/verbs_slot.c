// SPDX-License-Identifier: GPL-2.0
/*
 * Slots: the chains that are posted, and memory for their headers and short data. A slot is
 * free again when its chain is complete: a round trip later. So a connection that needs more
 * gets more, as far as the peer's credits and the send queue can take them.
 */
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

/* Slots that are added together: a page. */
#define EXS_VERBS_MORE_SLOTS	(PAGE_SIZE / EXS_VERBS_SLOT_LEN)

void exs_verbs_slots_init(struct exs_verbs_ep *v, struct exs_verbs_slot *slot, u32 n,
			  const struct exs_verbs_mem *mem, u32 offset)
{
	v->nslots += n;
	for (; n; n--, slot++, offset += EXS_VERBS_SLOT_LEN) {
		slot->cqe.done = exs_verbs_slot_done;
		slot->buf = mem->at + offset;
		slot->dma = mem->dma + offset;
		INIT_LIST_HEAD(&slot->inv_keys);
		list_add_tail(&slot->link, &v->slots_free);
	}
}

static int exs_verbs_slots_alloc(struct exs_verbs_ep *v, u32 n)
{
	gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT;
	struct exs_verbs_slots *more = kzalloc(struct_size(more, slot, n), gfp);

	if (!more)
		return -ENOMEM;
	if (exs_verbs_mem_make(v, &more->mem, n * EXS_VERBS_SLOT_LEN, gfp)) {
		kfree(more);
		return -ENOMEM;
	}
	list_add(&more->link, &v->more_slots);
	exs_verbs_slots_init(v, more->slot, n, &more->mem, 0);
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

/* None is in use any more. */
void exs_verbs_slots_free(struct exs_verbs_ep *v)
{
	struct exs_verbs_slots *more, *next;

	list_for_each_entry_safe(more, next, &v->more_slots, link) {
		exs_verbs_mem_free(v, &more->mem);
		kfree(more);
	}
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
		slot->fin = false;
		slot->advert = false;
		slot->copied = false;
		slot->unsignaled = false;
		if (list_empty(&v->slots_free))
			exs_verbs_slots_grow(v);
	}
	return slot;
}
