/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of one operation in pieces: what sendmsg and recvmsg take.
 */
#ifndef EXS_ASYNC_VECTOR_H
#define EXS_ASYNC_VECTOR_H

#include <linux/types.h>
#include <linux/uio.h>
#include <linux/exs.h>

struct exs_op;
struct exs_vector;

/**
 * exs_vector_prep() - get the memory that a struct exs_sqe_msg names
 * @op: a send or a receive; gets iter, vector, and copy for small unregistered
 *	pieces of a send
 * @sqe: the submission
 * @access: EXS_MREG_READ or EXS_MREG_WRITE
 *
 * Context: the submitter's; sleeps. Return: 0; -EMSGSIZE: more than EXS_IOV_MAX
 * pieces; -EINVAL, -EFAULT, -ENOMEM, -ENOBUFS, or an error of a region. Then @op
 * has nothing.
 */
int exs_vector_prep(struct exs_op *op, const struct exs_sqe *sqe, u32 access);

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
