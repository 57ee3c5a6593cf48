// SPDX-License-Identifier: GPL-2.0
/*
 * What is called for a ubuf_info of ours: nothing ever is, as no skb refers to one.
 */
#include "compat.h"

void exs_ubuf_complete(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	WARN_ON_ONCE(1);
}

#ifdef EXS_HAVE_UBUF_INFO_OPS
const struct ubuf_info_ops exs_ubuf_ops = { .complete = exs_ubuf_complete };
#endif
