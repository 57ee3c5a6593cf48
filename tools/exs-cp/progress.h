/* SPDX-License-Identifier: MIT */
/* Bytes, rate, time left: a bar on a terminal, a line a second elsewhere. */
#ifndef EXS_CP_PROGRESS_H
#define EXS_CP_PROGRESS_H

#include "cp.h"

/* @done bytes of @total (or SIZE_UNKNOWN) were there before. */
void progress_start(const struct options *o, const char *name, uint64_t total,
		    uint64_t done);
void progress_add(uint64_t bytes);
/* The last line stays if it went well. */
void progress_end(bool ok);

#endif
