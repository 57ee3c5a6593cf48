/* SPDX-License-Identifier: MIT */
/*
 * XXH64 detects errors of the transfer at the speed of memory. (XXH3 uses vector
 * instructions, and is thirty times slower in an emulated machine.) It does not protect
 * against attacks.
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
/* The digest of the data so far; more data may follow. */
void digest_get(const struct digest *d, uint8_t out[WIRE_DIGEST]);

/* Add the first @len bytes of a file. Return: false and errno (0: it is shorter). */
bool digest_add_file(struct digest *d, int fd, uint64_t len);

#endif
