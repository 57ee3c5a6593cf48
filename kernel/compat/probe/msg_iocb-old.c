// SPDX-License-Identifier: GPL-2.0
/* If msg_iocb is a member, this makes a second msg_flags, and cannot be compiled. */
#define msg_iocb msg_flags
#include <linux/socket.h>

struct msghdr probe;
