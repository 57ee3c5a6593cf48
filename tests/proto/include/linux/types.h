/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's names for what <stdint.h> has. */
#ifndef PROTO_TEST_TYPES_H
#define PROTO_TEST_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef u16 __le16;
typedef u32 __le32;
typedef u64 __le64;

#endif
