// SPDX-License-Identifier: GPL-2.0
/* Where the name is another member's there are two of that if it is a member, too. */
#define msg_iocb msg_flags
#include <linux/socket.h>

struct msghdr probe;
