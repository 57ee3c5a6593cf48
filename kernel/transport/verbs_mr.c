// SPDX-License-Identifier: GPL-2.0
/*
 * Memory keys.
 *
 * An advertised receive gets keys for exactly the window of the advert, by fast
 * registration before the advert in the send queue. Before the program has its buffer back,
 * their invalidation has completed, or the peer had our own device invalidate them, with
 * the message that ends its transfer. A key's low byte changes with each registration (not
 * on soft-RoCE, see exs_verbs_add_reg()). Its address is a cookie that does not reveal
 * where the memory is.
 *
 * Keys come from a pool that grows when receives are mapped, where sleeping is allowed. It
 * holds as many keys as the mapped receives may need, plus one advert's for keys that are
 * being invalidated; or EXS_VERBS_KEYS_MAX, the most that are ever advertised at once.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "core/stats.h"
#include "verbs_internal.h"

#define EXS_VERBS_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

static void exs_verbs_inv_done(struct ib_cq *cq, struct ib_wc *wc);

static struct exs_verbs_mr *exs_verbs_key_alloc(struct exs_verbs_ep *v)
{
	struct exs_verbs_mr *key = kzalloc(sizeof(*key), GFP_KERNEL_ACCOUNT);
	struct ib_mr *mr;

	if (!key)
		return NULL;
	mr = ib_alloc_mr(v->pd, IB_MR_TYPE_MEM_REG, v->key_pages);
	if (IS_ERR(mr)) {
		exs_count(v->ep.conn->xn, mr_alloc_failed, 1);
		kfree(key);
		return NULL;
	}
	exs_live(v->ep.conn->xn, mrs, 1);
	key->mr = mr;
	INIT_LIST_HEAD(&key->out);
	key->cqe.done = exs_verbs_inv_done;
	return key;
}

static void exs_verbs_key_free(struct exs_verbs_ep *v, struct exs_verbs_mr *key)
{
	/* Only a bug of the provider can make it fail now. */
	WARN_ON_ONCE(ib_dereg_mr(key->mr));
	exs_live(v->ep.conn->xn, mrs, -1);
	kfree(key);
}

static int exs_verbs_keys_grow(struct exs_verbs_ep *v, u32 want)
{
	struct exs_conn *conn = v->ep.conn;

	lockdep_assert_held(&v->keys_mutex);
	while (v->keys_total < want) {
		struct exs_verbs_mr *key = exs_verbs_key_alloc(v);

		if (!key)
			return -ENOBUFS;
		spin_lock(&conn->lock);
		list_add(&key->link, &v->keys_free);
		v->nkeys_free++;
		spin_unlock(&conn->lock);
		/* Pairs with exs_verbs_keys_reserve(). */
		smp_store_release(&v->keys_total, v->keys_total + 1);
	}
	return 0;
}

/*
 * Ensure that there are @n more keys when they are needed. Sleeps. When a device has no
 * more, two callers at a time may both be refused, although one could be served.
 */
exs_hot
int exs_verbs_keys_reserve(struct exs_verbs_ep *v, u32 n)
{
	u32 wanted = atomic_add_return(n, &v->keys_wanted);
	u32 want = min_t(u32, wanted, EXS_VERBS_KEYS_MAX) + EXS_VERBS_SEGS;
	int err;

	/* It never shrinks. Pairs with exs_verbs_keys_grow(). */
	if (smp_load_acquire(&v->keys_total) >= want)
		return 0;
	mutex_lock(&v->keys_mutex);
	err = exs_verbs_keys_grow(v, want);
	mutex_unlock(&v->keys_mutex);
	if (err)
		exs_verbs_keys_unreserve(v, n);
	return err;
}

/* Keys of the ring, which stay until the queue pair is gone. Sleeps. */
int exs_verbs_ring_keys(struct exs_verbs_ep *v, u32 n)
{
	LIST_HEAD(keys);

	while (n--) {
		struct exs_verbs_mr *key = exs_verbs_key_alloc(v);

		if (!key)
			goto undo;
		list_add(&key->link, &keys);
	}
	list_splice(&keys, &v->ring_keys);
	return 0;

undo:
	while (!list_empty(&keys)) {
		struct exs_verbs_mr *key = list_first_entry(&keys, typeof(*key), link);

		list_del(&key->link);
		exs_verbs_key_free(v, key);
	}
	return -ENOMEM;
}

/*
 * Back into the pool, where they are last: a provider may still be in a write that it allowed
 * before the key was invalidated. conn->lock held.
 */
exs_hot
void exs_verbs_keys_put(struct exs_verbs_ep *v, struct list_head *keys)
{
	struct exs_verbs_mr *key;

	lockdep_assert_held(&v->ep.conn->lock);
	list_for_each_entry(key, keys, link) {
		key->x = NULL;
		list_del_init(&key->out);
		v->nkeys_free++;
	}
	list_splice_tail_init(keys, &v->keys_free);
}

/* Teardown: every transfer is unmapped, no chain is posted any more. */
void exs_verbs_keys_free(struct exs_verbs_ep *v)
{
	struct exs_verbs_mr *key, *next;
	struct exs_verbs_slot *slot;

	list_for_each_entry(slot, &v->slots_posted, link)
		list_splice_init(&slot->inv_keys, &v->keys_free);
	list_splice_init(&v->ring_keys, &v->keys_free);
	list_for_each_entry_safe(key, next, &v->keys_free, link)
		exs_verbs_key_free(v, key);
	INIT_LIST_HEAD(&v->keys_free);
}

static struct exs_verbs_mr *exs_verbs_key_take(struct exs_verbs_ep *v)
{
	struct exs_verbs_mr *key;

	key = list_first_entry_or_null(&v->keys_free, struct exs_verbs_mr, link);
	if (key) {
		list_del(&key->link);
		v->nkeys_free--;
	}
	return key;
}

/*
 * An address for @mr that reveals only the offset of the memory in a page, with room for
 * the length above it.
 */
static u64 exs_verbs_cookie(const struct ib_mr *mr)
{
	return (u64)get_random_u32() << 28 | offset_in_page(mr->iova);
}

/*
 * Copy to @sgs the entries of the next @len bytes from @pos on, at most @max, the first and the
 * last one shortened to these bytes. Return: how many.
 */
static u32 exs_verbs_entries(struct scatterlist *sgs, const struct exs_verbs_pos *pos, u32 len,
			     u32 max)
{
	struct scatterlist *from = pos->sg;
	u32 n = 0, part, off = pos->off;

	do {
		part = min(sg_dma_len(from) - off, len);
		sgs[n] = *from;
		sg_dma_address(&sgs[n]) += off;
		sg_dma_len(&sgs[n]) = part;
		len -= part;
		off = 0;
		from = sg_next(from);
	} while (++n < max && len);
	sg_mark_end(&sgs[n - 1]);
	return n;
}

/*
 * Map up to @len bytes from @pos on into @mr, and advance @pos. Return: bytes mapped, or a
 * negative errno. ib_map_mr_sg() takes whole entries (siw ignores its offset argument), and
 * copies the addresses into @mr.
 */
static int exs_verbs_key_map(struct exs_verbs_chain *chain, struct ib_mr *mr,
			     struct exs_verbs_pos *pos, u32 len)
{
	u32 n, pages = chain->v->key_pages;
	int ret;

	len = exs_verbs_extent(*pos, pages, len);
	n = exs_verbs_entries(chain->pages, pos, len, pages);
	ret = ib_map_mr_sg(mr, chain->pages, n, NULL, PAGE_SIZE);
	if (WARN_ON_ONCE(ret >= 0 && mr->length != len))
		return -EINVAL;
	if (ret < 0)
		return ret;

	mr->iova = exs_verbs_cookie(mr);
	exs_verbs_pos_advance(pos, mr->length);
	return mr->length;
}

static struct ib_send_wr *exs_verbs_add_inv(struct exs_verbs_chain *chain, u32 rkey)
{
	struct ib_send_wr *wr = &exs_chain_add_early(chain)->send;

	wr->opcode = IB_WR_LOCAL_INV;
	wr->ex.invalidate_rkey = rkey;
	return wr;
}

/*
 * EXS_QUIRK_REPEATS: only a free key can be registered, so free each one first. This can
 * only be repeated if the key stays the same. The cookie still distinguishes registrations.
 */
static void exs_verbs_add_reg(struct exs_verbs_chain *chain, struct ib_mr *mr)
{
	struct ib_reg_wr *reg;

	if (exs_verbs_has(chain->v, EXS_QUIRK_REPEATS)) {
		exs_chain_take_place(chain);
		exs_verbs_add_inv(chain, mr->rkey);
	} else {
		ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	}
	exs_chain_take_place(chain);
	reg = &exs_chain_add_early(chain)->reg;
	reg->wr.opcode = IB_WR_REG_MR;
	reg->mr = mr;
	reg->key = mr->rkey;
	reg->access = EXS_VERBS_ACCESS;
}

/* Register up to @len bytes from @pos on; @seg: describes them for the peer. */
static int exs_verbs_key_use(struct exs_verbs_chain *chain, struct exs_verbs_mr *key,
			     struct exs_verbs_pos *pos, u32 len, struct exs_seg *seg)
{
	int n = exs_verbs_key_map(chain, key->mr, pos, len);

	if (n <= 0)
		return n ? n : -EINVAL;
	exs_verbs_add_reg(chain, key->mr);
	*seg = (struct exs_seg) { key->mr->iova, key->mr->rkey, n };
	return n;
}

/* Keys for the window that @tx advertises, and its segments. conn->lock held. */
int exs_verbs_register(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	struct exs_verbs_ep *v = chain->v;
	struct exs_xfer *x = exs_rcv_xfer(tx->rcv);
	struct exs_msg *msg = &tx->msg;
	struct exs_verbs_pos pos;
	u32 left = tx->rcv->window;

	lockdep_assert_held(&v->ep.conn->lock);
	msg->nsegs = 0;
	if (!left)
		return 0;
	pos = exs_verbs_seek(&x->map, tx->rcv->base);
	while (left) {
		struct exs_verbs_mr *key;
		int n;

		key = msg->nsegs < EXS_VERBS_SEGS ? exs_verbs_key_take(v) : NULL;
		if (WARN_ON_ONCE(!key || !pos.sg))
			return -ENOBUFS;
		key->x = x;
		key->chain = v->chains_begun;
		key->dead = false;
		list_add_tail(&key->link, &x->map.mrs);
		list_add_tail(&key->out, &v->keys_out);
		x->map.valid++;
		v->sq_used++;	/* its LOCAL_INV */
		n = exs_verbs_key_use(chain, key, &pos, left, &msg->segs[msg->nsegs++]);
		if (n < 0)
			return n;
		left -= n;
	}
	return 0;
}

/* The same for the whole ring. */
int exs_verbs_register_ring(struct exs_verbs_chain *chain, struct exs_tx *tx)
{
	struct exs_verbs_ep *v = chain->v;
	struct exs_verbs_pos pos = { v->ring_sgt.sgl, 0 };
	struct exs_msg *msg = &tx->msg;
	struct exs_verbs_mr *key;
	u32 left = v->ring_size;

	lockdep_assert_held(&v->ep.conn->lock);
	msg->nsegs = 0;
	list_for_each_entry(key, &v->ring_keys, link) {
		int n;

		if (!left)
			break;
		n = exs_verbs_key_use(chain, key, &pos, left, &msg->segs[msg->nsegs++]);
		if (n < 0)
			return n;
		left -= n;
	}
	return WARN_ON_ONCE(left || !msg->nsegs) ? -EINVAL : 0;
}

/* Invalidate a key. The registration has reserved a place in the send queue for this. */
static struct ib_send_wr *exs_verbs_kill(struct exs_verbs_chain *chain, struct exs_verbs_mr *key)
{
	chain->v->keys_dying++;
	list_del_init(&key->out);
	return exs_verbs_add_inv(chain, key->mr->rkey);
}

/*
 * A peer may guess a key before it was told, and invalidate it too early: before the
 * registration was executed or, with EXS_QUIRK_REPEATS, while it may still be repeated. The
 * registration then makes the key valid again. So the key is dead only if the chain of its
 * registration is complete by now. Otherwise a LOCAL_INV is needed as well.
 */
bool exs_verbs_key_died(struct exs_verbs_ep *v, u32 rkey)
{
	struct exs_verbs_mr *key;

	lockdep_assert_held(&v->ep.conn->lock);
	/* Transfers end in order, so it is usually among the first. */
	list_for_each_entry(key, &v->keys_out, out) {
		if (key->mr->rkey != rkey)
			continue;
		key->dead = (s32)(v->chains_ended - key->chain) >= 0;
		list_del_init(&key->out);
		return true;
	}
	return false;
}

/* Return @map's dead keys to the pool, with their places in the queue. */
static void exs_verbs_reap(struct exs_verbs_ep *v, struct exs_map *map)
{
	struct exs_verbs_mr *key, *next;
	LIST_HEAD(dead);

	list_for_each_entry_safe(key, next, &map->mrs, link) {
		if (!key->dead)
			continue;
		list_move(&key->link, &dead);
		map->valid--;
		v->sq_used--;
		exs_count(v->ep.conn->xn, remote_invalidations, 1);
	}
	exs_verbs_keys_put(v, &dead);
}

/*
 * Keys of an earlier advert of @x that became void: invalidated before the new advert, and
 * returned to the pool when that is complete.
 */
void exs_verbs_invalidate_before(struct exs_verbs_chain *chain, struct exs_xfer *x)
{
	struct exs_verbs_mr *key;

	lockdep_assert_held(&chain->v->ep.conn->lock);
	exs_verbs_reap(chain->v, &x->map);
	list_for_each_entry(key, &x->map.mrs, link) {
		exs_verbs_kill(chain, key);
		chain->slot->wrs++;
	}
	list_splice_tail_init(&x->map.mrs, &chain->slot->inv_keys);
	x->map.valid = 0;
}

/* A chain of LOCAL_INV; the last one's completion is for all. */
static int exs_verbs_post_invs(struct exs_verbs_ep *v, const struct exs_map *map)
{
	struct exs_verbs_chain *chain = exs_chain_begin(v);
	struct ib_send_wr *wr = NULL;
	struct exs_verbs_mr *key;

	list_for_each_entry(key, &map->mrs, link)
		wr = exs_verbs_kill(chain, key);
	wr->wr_cqe = &list_last_entry(&map->mrs, struct exs_verbs_mr, link)->cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	return exs_chain_end(chain, 0);
}

/*
 * exs_ep_ops.invalidate
 *
 * If it cannot be posted, the keys end with the queue pair, and the transfer with
 * exs_conn_drained(): that counts as "will follow".
 */
exs_hot
bool exs_verbs_invalidate(struct exs_ep *ep, struct exs_xfer *x)
{
	struct exs_verbs_ep *v = exs_verbs_ep(ep);
	struct exs_map *map = &x->map;
	int err;

	lockdep_assert_held(&ep->conn->lock);
	if (!map->valid)
		return false;
	if (map->invalidating || exs_verbs_is(v, EXS_VERBS_CLOSING) || WARN_ON_ONCE(v->chain))
		return true;
	exs_verbs_reap(v, map);
	if (!map->valid)
		return false;
	map->invalidating = map->valid;
	err = exs_verbs_post_invs(v, map);
	if (err)
		exs_verbs_note_lost(v, -exs_verbs_post_errno(v, err));
	return true;
}

/* The last key of a transfer is invalid, and therefore the earlier ones are, too. */
static void exs_verbs_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct exs_verbs_mr *key = container_of(wc->wr_cqe, struct exs_verbs_mr, cqe);
	struct exs_verbs_ep *v = cq->cq_context;
	struct exs_xfer *x = key->x;
	struct exs_map *map = &x->map;

	if (exs_verbs_wc_failed(v, wc))
		return;
	v->keys_dying -= map->invalidating;
	v->sq_used -= map->invalidating;
	map->invalidating = 0;
	map->valid = 0;
	exs_verbs_keys_put(v, &map->mrs);
	exs_conn_invalidated(v->ep.conn, x);
}
