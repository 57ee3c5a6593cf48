// SPDX-License-Identifier: GPL-2.0
/* Where the name is another member's there are two of that if it is a member, too. */
#define ipv6_pinfo_offset max_header
#include <net/sock.h>

struct proto probe;
