/* SPDX-License-Identifier: MIT */
/*
 * XXH64: finds what went wrong on the way, at the speed of memory. (XXH3, which
 * is made of vector instructions, is thirty times slower in an emulated machine.)
 * It is no protection against somebody who wants to deceive.
 */
#ifndef EXS_CP_DIGEST_H
#define EXS_CP_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct digest;

struct digest *digest_new(void);
void digest_free(struct digest *d);
void digest_reset(struct digest *d);
void digest_add(struct digest *d, const void *data, size_t len);
/* Of what was added so far; more may follow. */
void digest_get(const struct digest *d, uint8_t out[WIRE_DIGEST]);

/* Add the first @len bytes of a file. false and errno, 0: it is shorter. */
bool digest_add_file(struct digest *d, int fd, uint64_t len);

#endif
