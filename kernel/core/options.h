/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options at the level SOL_EXS, by their numbers.
 *
 * A socket has a set of options. A connection starts with a copy of the set of the socket
 * that connects or listens. From then on the connection's values count, and getsockopt()
 * returns them. Values are independent: reading one needs no lock.
 */
#ifndef EXS_CORE_OPTIONS_H
#define EXS_CORE_OPTIONS_H

#include <linux/exs.h>

#define EXS_SO_MAX		EXS_SO_FALLBACK

/* EXS_SO_RING: as net.exs.ring_size says when the ring is made. */
#define EXS_RING_DEFAULT	(-1)

/**
 * struct exs_options - values by EXS_SO_*; READ_ONCE(), WRITE_ONCE()
 * @value: each within the bounds that options.c has for it
 */
struct exs_options {
	int value[EXS_SO_MAX + 1];
};

static inline int exs_option(const struct exs_options *o, int name)
{
	return READ_ONCE(o->value[name]);
}

#endif
