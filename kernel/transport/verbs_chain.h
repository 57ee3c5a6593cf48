/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work requests that are linked, and posted with one doorbell: those of all chains that
 * core has decided on in one go.
 *
 * Registrations and invalidations of keys are together, where the first of them was added.
 * On soft-RoCE each waits until everything in front of it was acknowledged: so several
 * adverts wait for one round trip, not for one each. If no data is under way, they are also put
 * in front of all messages, so that they need not wait for the acknowledgment of these. Other
 * devices have weaker fences, and one place is good for them, too.
 *
 * A processor has one list, so that an endpoint need not have any. It is used under
 * conn->lock, and posting does not lead back here: a provider reports completions from a
 * context of its own, or to exs_verbs_cq_event(), which only queues work.
 */
#ifndef EXS_TRANSPORT_VERBS_CHAIN_H
#define EXS_TRANSPORT_VERBS_CHAIN_H

#include <linux/local_lock.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>

#include "core/transport.h"

struct exs_verbs_ep;
struct exs_verbs_slot;

/*
 * Pages of one memory key, for a mebibyte at any alignment: a peer can invalidate only one
 * key with its last message.
 */
#define EXS_VERBS_KEY_PAGES	(SZ_1M / PAGE_SIZE + 1)

/* The most elements of a request. It has at most EXS_INLINE_MAX bytes inside it. */
#define EXS_VERBS_SEND_SGES	16
/* The most requests, elements and bytes for one doorbell: with more, there are several. */
#define EXS_CHAIN_WRS		128
#define EXS_CHAIN_SGES		(EXS_CHAIN_WRS + EXS_VERBS_SEND_SGES)
#define EXS_CHAIN_BYTES		(4 * EXS_INLINE_MAX)

/* All begin with a struct ib_send_wr. */
union exs_verbs_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_reg_wr reg;
};

/* Requests in order. */
struct exs_verbs_wrs {
	struct ib_send_wr *first;
	struct ib_send_wr **end;
};

/**
 * struct exs_verbs_chain - requests that are not posted yet
 * @lock: held from exs_chain_begin() to exs_chain_end()
 * @v: the endpoint
 * @slot: the slot of the chain that is being added, or NULL
 * @over: the first slot whose send ends when it is posted, or NULL
 * @err: of an earlier doorbell: nothing more is posted
 * @before: requests in front of @early
 * @early: registrations and invalidations
 * @late: requests behind them
 * @joint: the last one of @late, a WRITE that the next send's bytes can go with; or NULL
 * @joint_end: remote address behind it
 * @nwrs: requests of all three
 * @nsges: elements in use
 * @nbytes: bytes in use
 * @wrs: requests
 * @sges: their elements
 * @bytes: bytes inside them
 * @pages: the memory of a key, while it is mapped
 */
struct exs_verbs_chain {
	local_lock_t lock;
	struct exs_verbs_ep *v;
	struct exs_verbs_slot *slot;
	struct exs_verbs_slot *over;
	int err;
	struct exs_verbs_wrs before;
	struct exs_verbs_wrs early;
	struct exs_verbs_wrs late;
	struct ib_rdma_wr *joint;
	u64 joint_end;
	u32 nwrs;
	u32 nsges;
	u32 nbytes;
	union exs_verbs_wr wrs[EXS_CHAIN_WRS];
	struct ib_sge sges[EXS_CHAIN_SGES];
	u8 bytes[EXS_CHAIN_BYTES];
	struct scatterlist pages[EXS_VERBS_KEY_PAGES];
};

int exs_chain_init(void);
void exs_chain_exit(void);

/* An empty one, for @v's queue pair. conn->lock held, until after exs_chain_end(). */
struct exs_verbs_chain *exs_chain_begin(struct exs_verbs_ep *v);

/* Post its requests, unless @err. Return: @err, or the provider's. */
int exs_chain_end(struct exs_verbs_chain *chain, int err);

/*
 * Add a request, cleared but for a wr_cqe without effect. There are EXS_VERBS_SEND_SGES free
 * elements then, and EXS_INLINE_MAX free bytes. The slot's completion gives its place in the
 * send queue back.
 */
union exs_verbs_wr *exs_chain_add(struct exs_verbs_chain *chain);

/*
 * The same, for a registration or invalidation: they stay together. Those that have no place
 * of their own take one: exs_chain_take_place().
 */
union exs_verbs_wr *exs_chain_add_early(struct exs_verbs_chain *chain);
void exs_chain_take_place(struct exs_verbs_chain *chain);

/* The next free element: exs_chain_use_sges() takes it. */
static inline struct ib_sge *exs_chain_sges(struct exs_verbs_chain *chain)
{
	return chain->sges + chain->nsges;
}

/* The next @n elements are those of @wr, which has none yet, or those just before them. */
static inline void exs_chain_use_sges(struct exs_verbs_chain *chain, struct ib_send_wr *wr, u32 n)
{
	if (!wr->num_sge)
		wr->sg_list = exs_chain_sges(chain);
	wr->num_sge += n;
	chain->nsges += n;
}

/* The next free byte: exs_chain_use_bytes() takes it. */
static inline u8 *exs_chain_bytes(struct exs_verbs_chain *chain)
{
	return chain->bytes + chain->nbytes;
}

/* @wr contains the next @len bytes. */
void exs_chain_use_bytes(struct exs_verbs_chain *chain, struct ib_send_wr *wr, u32 len);

#endif
