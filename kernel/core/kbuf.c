// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers whose memory is the kernel's own: plain sends, and the messages
 * that a plain recv() fetches.
 */
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "run.h"
#include "stats.h"

struct exs_kbuf {
	struct exs_xfer x;
	size_t len;
	unsigned int npages;
	struct bio_vec bvec[];
};

static struct exs_kbuf *exs_kbuf(struct exs_xfer *x)
{
	return container_of(x, struct exs_kbuf, x);
}

static bool exs_kbuf_add_page(struct exs_kbuf *b, size_t len, gfp_t gfp)
{
	struct page *page = alloc_page(gfp);

	if (!page)
		return false;
	b->bvec[b->npages++] = (struct bio_vec) { .bv_page = page, .bv_len = len };
	return true;
}

struct exs_xfer *exs_kbuf_alloc(struct exs_conn *conn, size_t len, gfp_t gfp)
{
	unsigned int n = DIV_ROUND_UP(len, PAGE_SIZE);
	struct exs_kbuf *b;

	b = kvzalloc(struct_size(b, bvec, n), GFP_KERNEL_ACCOUNT);
	if (!b)
		return NULL;
	exs_live(conn->xn, xfers, 1);
	b->x.conn = conn;
	b->len = len;
	while (b->npages < n) {
		size_t done = (size_t)b->npages * PAGE_SIZE;

		if (exs_kbuf_add_page(b, min_t(size_t, len - done, PAGE_SIZE), gfp))
			continue;
		exs_kbuf_free(&b->x);
		return NULL;
	}
	return &b->x;
}

void exs_kbuf_free(struct exs_xfer *x)
{
	struct exs_kbuf *b = exs_kbuf(x);

	while (b->npages)
		__free_page(b->bvec[--b->npages].bv_page);
	exs_live(x->conn->xn, xfers, -1);
	kvfree(b);
}

void exs_kbuf_iter(struct exs_xfer *x, unsigned int direction, struct iov_iter *iter,
		   size_t len)
{
	struct exs_kbuf *b = exs_kbuf(x);

	iov_iter_bvec(iter, direction, b->bvec, b->npages, min(len, b->len));
}

void exs_kbuf_make_room(struct exs_xfer *x)
{
	struct exs_kbuf *b = exs_kbuf(x);

	/* A bounce buffer gets all of it. */
	memzero_page(b->bvec[0].bv_page, b->len, EXS_GATHER_MAX - b->len);
	b->bvec[0].bv_len = EXS_GATHER_MAX;
	b->len = EXS_GATHER_MAX;
}

bool exs_kbuf_has_room(const struct exs_xfer *x, u32 len)
{
	return len <= container_of(x, struct exs_kbuf, x)->len - x->snd.len;
}

void exs_kbuf_append(struct exs_xfer *x, struct exs_xfer *from)
{
	struct exs_kbuf *b = exs_kbuf(x), *more = exs_kbuf(from);

	memcpy_page(b->bvec[0].bv_page, x->snd.len, more->bvec[0].bv_page, 0, more->len);
	x->snd.len += more->len;
}

int exs_kbuf_fill(struct exs_xfer *x, struct iov_iter *from)
{
	struct exs_kbuf *b = exs_kbuf(x);
	unsigned int i;

	for (i = 0; i < b->npages; i++)
		if (copy_page_from_iter(b->bvec[i].bv_page, 0, b->bvec[i].bv_len, from) !=
		    b->bvec[i].bv_len)
			return -EFAULT;
	return 0;
}

int exs_kbuf_drain(struct exs_xfer *x, size_t len, struct iov_iter *to)
{
	struct exs_kbuf *b = exs_kbuf(x);
	unsigned int i;

	for (i = 0; i < b->npages && len; i++) {
		size_t n = min_t(size_t, len, b->bvec[i].bv_len);

		if (copy_page_to_iter(b->bvec[i].bv_page, 0, n, to) != n)
			return -EFAULT;
		len -= n;
	}
	return 0;
}
