// SPDX-License-Identifier: GPL-2.0
#include <linux/skbuff.h>

void probe(struct ubuf_info *ubuf, void (*fn)(struct sk_buff *, struct ubuf_info *, bool));
void probe(struct ubuf_info *ubuf, void (*fn)(struct sk_buff *, struct ubuf_info *, bool))
{
	ubuf->callback = fn;
}
