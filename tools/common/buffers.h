/* SPDX-License-Identifier: MIT */
/* Registered buffers of equal size, and their queue. */
#ifndef TOOLS_BUFFERS_H
#define TOOLS_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/exs.h>

struct buffers {
	exs_qhandle_t queue;
	exs_mhandle_t region;
	unsigned char *memory;
	unsigned char *extra;	/* BUFFERS_EXTRA bytes, registered too */
	size_t mapped;		/* bytes of memory */
	size_t size;		/* of each */
	int count;
};

#define BUFFERS_EXTRA	4096

#define BUFFERS_NONE { .queue = EXS_QHANDLE_INVALID, .region = EXS_MHANDLE_INVALID }

/* On failure, prints the reason and the limits. */
bool buffers_init(struct buffers *b, int count, size_t size);
void buffers_free(struct buffers *b);

static inline unsigned char *buffer_at(const struct buffers *b, int i)
{
	return b->memory + i * b->size;
}

int buffer_send(const struct buffers *b, int fd, int i, size_t len);
int buffer_recv(const struct buffers *b, int fd, int i, size_t len, int flags);

#endif
