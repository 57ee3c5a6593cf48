/* SPDX-License-Identifier: GPL-2.0 */
/* Sends that are not copied, of plain calls: exs_async.zerocopy_alloc and .zerocopy_free. */
#ifndef EXS_ASYNC_ZEROCOPY_H
#define EXS_ASYNC_ZEROCOPY_H

#include <linux/types.h>

struct exs_conn;
struct exs_xfer;
struct msghdr;

struct exs_xfer *exs_zerocopy_alloc(struct exs_conn *conn, const struct msghdr *msg,
				    size_t len);
void exs_zerocopy_free(struct exs_xfer *x);

#endif
