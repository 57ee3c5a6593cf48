/* SPDX-License-Identifier: GPL-2.0 */
/* min() and friends: arguments without side effects suffice here. */
#ifndef PROTO_TEST_MINMAX_H
#define PROTO_TEST_MINMAX_H

#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min3(a, b, c) min(min(a, b), c)
#define swap(a, b) \
	do { __typeof__(a) swap_tmp = (a); (a) = (b); (b) = swap_tmp; } while (0)

#endif
