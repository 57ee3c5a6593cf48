/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What proto/ needs from its surroundings: fixed-width types, byte order,
 * lists, min(). In the kernel these are the kernel's; in user space (tests,
 * fuzzers, the model checker) headers of the tests supply the same names.
 * Nothing else may be included from proto/.
 */
#ifndef EXS_PROTO_ENV_H
#define EXS_PROTO_ENV_H

#include <linux/types.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <asm/byteorder.h>

/*
 * For what every transfer goes through: such functions lie together. A module's
 * text has small pages; without this one transfer touches twice as many.
 */
#define exs_hot __attribute__((__hot__))

#endif
