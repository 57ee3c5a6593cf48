// SPDX-License-Identifier: GPL-2.0
#include <linux/skbuff.h>

const struct ubuf_info_ops *probe(struct ubuf_info *ubuf);
const struct ubuf_info_ops *probe(struct ubuf_info *ubuf)
{
	return ubuf->ops;
}
