/* SPDX-License-Identifier: MIT */
/* Bytes, rate, time left: a bar on a terminal, or a line per second. */
#ifndef EXS_CP_PROGRESS_H
#define EXS_CP_PROGRESS_H

#include "cp.h"

/* @done of @total (or SIZE_UNKNOWN) bytes were there before. */
void progress_start(const struct options *o, const char *name, uint64_t total,
		    uint64_t done);
void progress_add(uint64_t bytes);
/* @ok: the last line stays. */
void progress_end(bool ok);

#endif
