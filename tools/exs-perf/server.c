// SPDX-License-Identifier: MIT
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sys/exs.h>

#include "net.h"
#include "perf.h"
#include "say.h"

static int examine(const struct perf_hello *h)
{
	uint64_t size = le32toh(h->size), depth = le32toh(h->depth);
	uint32_t mode = le32toh(h->mode);

	if (le32toh(h->magic) != PERF_MAGIC ||
	    (mode != PERF_BLAST && mode != PERF_PINGPONG) ||
	    le32toh(h->flags) & ~PERF_FLAGS || h->reserved ||
	    (mode == PERF_BLAST && le32toh(h->flags) & PERF_PLAIN))
		return EPROTO;
	if (!size || size > PERF_MAX_SIZE || !depth || depth > PERF_MAX_DEPTH ||
	    size * depth > PERF_MAX_MEMORY)
		return EMSGSIZE;
	return 0;
}

static bool answer(struct perf *p, int err)
{
	struct perf_answer a = {
		.magic = htole32(PERF_MAGIC),
		.err = htole32(err),
	};

	return net_send_all(p->fd, &a, sizeof(a), PERF_TIMEOUT) && !err;
}

static bool serve(struct perf *p)
{
	struct perf_hello h;
	int err;

	if (!net_recv_all(p->fd, &h, sizeof(h), PERF_TIMEOUT)) {
		say("a client without a request: %s%s", errno ? strerror(errno) : "it closed the connection",
		    net_call_advice(errno));
		return false;
	}
	err = examine(&h);
	if (err)
		return answer(p, err);
	p->size = le32toh(h.size);
	p->flags = le32toh(h.flags);
	p->depth = le32toh(h.mode) == PERF_BLAST ? le32toh(h.depth) : PERF_PINGPONG_DEPTH;
	if (!perf_buffers(p))
		return answer(p, ENOMEM);
	if (!answer(p, 0))
		return false;
	return le32toh(h.mode) == PERF_BLAST ? blast_server(p) :
					       pingpong_server(p);
}

static bool serve_fd(const struct perf_options *o, int fd)
{
	struct perf p = { .o = o, .fd = fd, .b = BUFFERS_NONE };
	bool ok = serve(&p);

	close(fd);
	buffers_free(&p.b);
	return ok;
}

int run_server(const struct perf_options *o)
{
	int listener = net_listen(&o->ep, o->type), fd;
	char name[100];
	bool ok = false;

	if (listener < 0)
		return 1;
	if (!o->quiet)
		say("listening on %s",
		    net_name(listener, exs_getsockname, name, sizeof(name)));
	do {
		fd = net_accept(listener);
		ok = fd >= 0 && serve_fd(o, fd);
	} while (o->keep && fd >= 0);
	close(listener);
	return ok ? 0 : 1;
}
