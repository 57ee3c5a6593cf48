/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory in several pieces, for one transfer.
 */
#ifndef EXS_ASYNC_VECTOR_H
#define EXS_ASYNC_VECTOR_H

#include <linux/types.h>
#include <linux/uio.h>
#include <linux/exs.h>

struct exs_region;
struct exs_user;

/**
 * struct exs_vector - the memory of one operation
 * @bvec: the pages, in order
 * @nbvecs: how many are there
 * @kept: the vector has a reference on each page
 * @charged: size of @bvec in pages
 * @user: charged with them: a vector may name the same memory many times, so
 *	the limits of registered and of pinned memory do not bound this
 * @nregions: how many are there
 * @regions: of the pieces that are not copied; references
 */
struct exs_vector {
	struct bio_vec *bvec;
	unsigned int nbvecs;
	bool kept;
	long charged;
	struct exs_user *user;
	u32 nregions;
	struct exs_region *regions[];
};

/**
 * exs_vector_alloc() - a vector without pieces
 * @bvecs: entries of the array, at most
 * @count: pieces that are added, at most
 *
 * Sleeps. Return: for exs_vector_free(); ERR_PTR: -ENOMEM, -ENOBUFS.
 */
struct exs_vector *exs_vector_alloc(size_t bvecs, u32 count);

/*
 * Append the pages of @piece, which is memory of a region, or is pinned for the vector. @access:
 * as below. Sleeps. Return: 0, or an error of a region.
 */
int exs_vector_add(struct exs_vector *v, const struct exs_sqe_iovec *piece, u32 access);

/**
 * exs_vector_of_iter() - the memory of a call that continues after its return
 * @from: user memory of the calling process, which is pinned; or an ITER_BVEC of
 *	pages that the vector's owner keeps
 * @access: EXS_MREG_READ or EXS_MREG_WRITE
 * @to: out: the same, an ITER_BVEC that is valid as long as the vector
 *
 * Sleeps. Return: for exs_vector_free(); ERR_PTR: -ENOMEM, -ENOBUFS, or an error of
 * a region.
 */
struct exs_vector *exs_vector_of_iter(struct iov_iter from, u32 access,
				      struct iov_iter *to);

/**
 * exs_vector_keep() - take references on the pages
 * @v: of an ITER_BVEC
 *
 * The pages stay until exs_vector_free(), even if their owner drops them. Return: false: some
 * pages do not allow further references.
 */
bool exs_vector_keep(struct exs_vector *v);

/* Process context, no lock held. */
void exs_vector_free(struct exs_vector *v);

#endif
