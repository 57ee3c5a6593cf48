// SPDX-License-Identifier: MIT
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "perf.h"
#include "say.h"

static bool ask(struct perf *p)
{
	struct perf_hello h = {
		.magic = htole32(PERF_MAGIC),
		.mode = htole32(p->o->mode),
		.size = htole32(p->size),
		.depth = htole32(p->depth),
		.flags = htole32(p->flags),
	};
	struct perf_answer a;
	int err;

	if (!net_send_all(p->fd, &h, sizeof(h), PERF_TIMEOUT) ||
	    !net_recv_all(p->fd, &a, sizeof(a), PERF_TIMEOUT)) {
		say("%s: %s%s", p->o->ep.host, errno ? strerror(errno) : "closed by the server",
		    net_call_advice(errno));
		return false;
	}
	if (!a.err && le32toh(a.magic) == PERF_MAGIC)
		return true;
	err = a.err ? le32toh(a.err) : EPROTO;
	say("%s: the server refuses: %s: see what it says there", p->o->ep.host, strerror(err));
	return false;
}

static bool run(struct perf *p)
{
	if (p->o->mode == PERF_BLAST)
		return blast_client(p);
	return pingpong_client(p);
}

int run_client(const struct perf_options *o)
{
	struct perf p = {
		.o = o,
		.size = o->size,
		.flags = o->flags,
		.depth = o->mode == PERF_BLAST ? o->depth : PERF_PINGPONG_DEPTH,
	};
	bool ok;

	p.fd = net_connect(&o->ep, o->type, "exs-perf --listen");
	if (p.fd < 0)
		return 1;
	ok = perf_buffers(&p) && ask(&p) && run(&p);
	close(p.fd);
	buffers_free(&p.b);
	return ok ? 0 : 1;
}
