// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "buffers.h"
#include "net.h"
#include "parse.h"
#include "say.h"

/* Room in the queue for requests without a buffer. */
#define QUEUE_SPARE	4

#define LARGE		((size_t)2 << 20)

static size_t round_up(size_t len, size_t unit)
{
	return (len + unit - 1) / unit * unit;
}

static void explain_register(size_t len)
{
	char have[32], need[32];
	struct rlimit r;

	if (errno == ENOMEM && !getrlimit(RLIMIT_MEMLOCK, &r) &&
	    r.rlim_cur != RLIM_INFINITY) {
		say("RLIMIT_MEMLOCK is %s, the buffers need %s: ulimit -l %zu%s, or use fewer or smaller buffers",
		    show_size(r.rlim_cur, have, sizeof(have)),
		    show_size(len, need, sizeof(need)), (len + 1023) / 1024,
		    len > r.rlim_max ? ", after the administrator has raised the hard limit (see limits.conf(5))" : "");
		return;
	}
	say("cannot register %s of memory: %s%s", show_size(len, need, sizeof(need)),
	    strerror(errno), net_call_advice(errno));
}

/*
 * Memory that is aligned to a large page, and has large pages if possible and if @len is
 * a multiple of their size: fewer pieces to transfer. NULL: no memory.
 */
static unsigned char *map_large(size_t len)
{
	unsigned char *all, *from;
	size_t before;

	all = mmap(NULL, len + LARGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)all % LARGE;
	from = all + before;
	if (before)
		munmap(all, before);
	munmap(from + len, LARGE - before);
	/* If a call fails, there are small pages, or they are allocated at the first access. */
	madvise(from, len, MADV_HUGEPAGE);
	madvise(from, len, MADV_POPULATE_WRITE);
	return from;
}

bool buffers_init(struct buffers *b, int count, size_t size)
{
	size_t len = count * size + BUFFERS_EXTRA;
	/* A large page would waste memory for less. */
	size_t unit = len < LARGE / 8 ? (size_t)sysconf(_SC_PAGESIZE) : LARGE;

	*b = (struct buffers)BUFFERS_NONE;
	b->count = count;
	b->size = size;
	b->mapped = round_up(len, unit);
	b->memory = map_large(b->mapped);
	if (!b->memory) {
		say("cannot allocate the buffers: %s%s", strerror(errno), net_call_advice(errno));
		return false;
	}
	b->extra = b->memory + count * size;
	b->queue = exs_qcreate(2 * count + QUEUE_SPARE);
	if (b->queue == EXS_QHANDLE_INVALID) {
		say("cannot create an event queue: %s%s", strerror(errno), net_call_advice(errno));
		return false;
	}
	b->region = exs_mregister(b->memory, len, 0);
	if (b->region == EXS_MHANDLE_INVALID)
		explain_register(len);
	return b->region != EXS_MHANDLE_INVALID;
}

void buffers_free(struct buffers *b)
{
	if (b->queue != EXS_QHANDLE_INVALID)
		exs_qdelete(b->queue);
	if (b->region != EXS_MHANDLE_INVALID)
		exs_mderegister(b->region);
	if (b->memory)
		munmap(b->memory, b->mapped);
	b->queue = EXS_QHANDLE_INVALID;
	b->region = EXS_MHANDLE_INVALID;
	b->memory = NULL;
}

int buffer_send(const struct buffers *b, int fd, int i, size_t len)
{
	return exs_send(fd, buffer_at(b, i), len, MSG_NOSIGNAL, b->queue, i,
			b->region);
}

int buffer_recv(const struct buffers *b, int fd, int i, size_t len, int flags)
{
	return exs_recv(fd, buffer_at(b, i), len, flags, b->queue, i,
			b->region);
}
