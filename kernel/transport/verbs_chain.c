// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests are collected, and posted together: see verbs_chain.h.
 */
#include "core/stats.h"
#include "verbs_internal.h"

/* Too large for the part of its memory that a processor keeps for modules. */
static struct exs_verbs_chain __percpu *exs_verbs_chains;

int exs_chain_init(void)
{
	int cpu;

	BUILD_BUG_ON(sizeof(struct exs_verbs_chain) > PCPU_MIN_UNIT_SIZE);
	exs_verbs_chains = alloc_percpu(struct exs_verbs_chain);
	if (!exs_verbs_chains)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		local_lock_init(&per_cpu_ptr(exs_verbs_chains, cpu)->lock);
	return 0;
}

void exs_chain_exit(void)
{
	free_percpu(exs_verbs_chains);
}

static void exs_wrs_clear(struct exs_verbs_wrs *wrs)
{
	wrs->first = NULL;
	wrs->end = &wrs->first;
}

static void exs_wrs_add(struct exs_verbs_wrs *wrs, struct ib_send_wr *wr)
{
	*wrs->end = wr;
	wrs->end = &wr->next;
}

/* Append @more, and clear it. */
static void exs_wrs_splice(struct exs_verbs_wrs *wrs, struct exs_verbs_wrs *more)
{
	if (!more->first)
		return;
	*wrs->end = more->first;
	wrs->end = more->end;
	exs_wrs_clear(more);
}

static void exs_chain_clear(struct exs_verbs_chain *chain)
{
	exs_wrs_clear(&chain->before);
	exs_wrs_clear(&chain->early);
	exs_wrs_clear(&chain->late);
	chain->joint = NULL;
	chain->nwrs = 0;
	chain->nsges = 0;
	chain->nbytes = 0;
}

exs_hot
static void exs_chain_post(struct exs_verbs_chain *chain)
{
	exs_wrs_splice(&chain->before, &chain->early);
	exs_wrs_splice(&chain->before, &chain->late);
	if (chain->before.first && !chain->err)
		chain->err = ib_post_send(chain->v->id->qp, chain->before.first, NULL);
	exs_chain_clear(chain);
}

exs_hot
struct exs_verbs_chain *exs_chain_begin(struct exs_verbs_ep *v)
{
	struct exs_verbs_chain *chain;

	lockdep_assert_held(&v->ep.conn->lock);
	local_lock(&exs_verbs_chains->lock);
	chain = this_cpu_ptr(exs_verbs_chains);
	chain->v = v;
	chain->slot = NULL;
	chain->over = NULL;
	chain->err = 0;
	exs_chain_clear(chain);
	return chain;
}

exs_hot
int exs_chain_end(struct exs_verbs_chain *chain, int err)
{
	if (!err) {
		exs_chain_post(chain);
		err = chain->err;
	}
	local_unlock(&exs_verbs_chains->lock);
	return err;
}

static bool exs_chain_is_full(const struct exs_verbs_chain *chain)
{
	return chain->nwrs == EXS_CHAIN_WRS ||
	       chain->nsges + EXS_VERBS_SEND_SGES > EXS_CHAIN_SGES ||
	       chain->nbytes + EXS_INLINE_MAX > EXS_CHAIN_BYTES;
}

exs_hot
static union exs_verbs_wr *exs_chain_new(struct exs_verbs_chain *chain)
{
	union exs_verbs_wr *wr;

	if (exs_chain_is_full(chain))
		exs_chain_post(chain);
	wr = &chain->wrs[chain->nwrs++];
	memset(wr, 0, sizeof(*wr));
	wr->send.wr_cqe = &chain->v->unsignaled_cqe;
	return wr;
}

exs_hot
void exs_chain_take_place(struct exs_verbs_chain *chain)
{
	chain->slot->wrs++;
	chain->v->sq_used++;
}

exs_hot
union exs_verbs_wr *exs_chain_add(struct exs_verbs_chain *chain)
{
	union exs_verbs_wr *wr = exs_chain_new(chain);

	exs_chain_take_place(chain);
	exs_wrs_add(&chain->late, &wr->send);
	return wr;
}

static bool exs_chain_early_is_first(const struct exs_verbs_ep *v)
{
	return exs_verbs_has(v, EXS_QUIRK_REPEATS) && !v->sending;
}

union exs_verbs_wr *exs_chain_add_early(struct exs_verbs_chain *chain)
{
	union exs_verbs_wr *wr = exs_chain_new(chain);

	if (!chain->early.first && !exs_chain_early_is_first(chain->v))
		exs_wrs_splice(&chain->before, &chain->late);
	exs_wrs_add(&chain->early, &wr->send);
	return wr;
}

void exs_chain_use_bytes(struct exs_verbs_chain *chain, struct ib_send_wr *wr, u32 len)
{
	exs_count(chain->v->ep.conn->xn, inline_tx_bytes, len);
	*exs_chain_sges(chain) = (struct ib_sge) {
		.addr	= (uintptr_t)exs_chain_bytes(chain),
		.length	= len,
	};
	exs_chain_use_sges(chain, wr, 1);
	wr->send_flags |= IB_SEND_INLINE;
	chain->nbytes += len;
}
