// SPDX-License-Identifier: GPL-2.0
/* If ipv6_pinfo_offset is a member, this makes a second max_header, and cannot be compiled. */
#define ipv6_pinfo_offset max_header
#include <net/sock.h>

struct proto probe;
