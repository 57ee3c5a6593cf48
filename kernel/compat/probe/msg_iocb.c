// SPDX-License-Identifier: GPL-2.0
#include <linux/socket.h>

struct kiocb *probe(const struct msghdr *msg);
struct kiocb *probe(const struct msghdr *msg)
{
	return msg->msg_iocb;
}
