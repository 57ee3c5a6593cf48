// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of a ubuf_info that exs_call has. They are never called, because no skb refers to
 * such a ubuf_info.
 */
#include "compat.h"

void exs_ubuf_complete(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	WARN_ON_ONCE(1);
}

#ifdef EXS_HAVE_UBUF_INFO_OPS
const struct ubuf_info_ops exs_ubuf_ops = { .complete = exs_ubuf_complete };
#endif
