/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PROTO_TEST_MATH64_H
#define PROTO_TEST_MATH64_H

#include "types.h"

#define div64_u64(a, b) ((u64)(a) / (u64)(b))

#endif
