// SPDX-License-Identifier: GPL-2.0
/*
 * A ubuf_info that is known for ours by the function that it names. Nobody calls that:
 * no skb refers to one.
 */
#include "compat.h"

static void exs_ubuf_complete(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	WARN_ON_ONCE(1);
}

#ifdef EXS_HAVE_UBUF_INFO_OPS
static const struct ubuf_info_ops exs_ubuf_ops = { .complete = exs_ubuf_complete };

void exs_ubuf_mark(struct ubuf_info *ubuf)
{
	ubuf->ops = &exs_ubuf_ops;
}

bool exs_ubuf_is_marked(const struct ubuf_info *ubuf)
{
	return ubuf->ops == &exs_ubuf_ops;
}
#else
void exs_ubuf_mark(struct ubuf_info *ubuf)
{
	ubuf->callback = exs_ubuf_complete;
}

bool exs_ubuf_is_marked(const struct ubuf_info *ubuf)
{
	return ubuf->callback == exs_ubuf_complete;
}
#endif
