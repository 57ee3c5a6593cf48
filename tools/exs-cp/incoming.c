// SPDX-License-Identifier: MIT
/*
 * All buffers are offered to the sender at once. When a buffer is full, it is written and
 * offered again.
 *
 * When a file cannot be written, the sender is told. Data that arrive until it stops are
 * discarded.
 */
#include <errno.h>
#include <string.h>

#include "incoming.h"
#include "net.h"
#include "progress.h"
#include "say.h"

#define BATCH	16

static bool lost(struct incoming *in, int err)
{
	if (interrupted || in->refused)
		return false;
	say("%s: %s: connection lost after %llu bytes: %s%s", in->r->peer,
	    in->out->name, (unsigned long long)in->got,
	    err ? strerror(err) : "closed by the sender", net_call_advice(err));
	return false;
}

static bool refuse(struct incoming *in, const char *why)
{
	if (in->refused)
		return true;
	in->refused = true;
	say("%s: %s", in->r->peer, why);
	return send_reply(in->r, why);
}

static bool offer(struct incoming *in, int i)
{
	const struct buffers *b = &in->r->buffers;
	int flags = in->size == SIZE_UNKNOWN ? 0 : MSG_WAITALL;
	uint64_t left;
	size_t len;

	if (in->asked >= in->size || in->eof)
		return true;
	left = in->size - in->asked;
	len = left < b->size ? left : b->size;
	if (buffer_recv(b, in->r->fd, i, len, flags))
		return lost(in, errno);
	if (in->size != SIZE_UNKNOWN)
		in->asked += len;
	in->inflight++;
	return true;
}

static bool keep(struct incoming *in, const void *data, size_t len)
{
	if (in->refused || !len)
		return true;
	if (in->r->verify)
		digest_add(in->r->digest, data, len);
	if (output_write(in->out, data, len))
		return true;
	return refuse(in, in->out->text);
}

/* The last bytes so far may be the trailer, so they are held back. */
static bool keep_but_tail(struct incoming *in, const unsigned char *data,
			  size_t len)
{
	size_t room = sizeof(in->tail), spill;

	if (len >= room) {
		if (!keep(in, in->tail, in->ntail) ||
		    !keep(in, data, len - room))
			return false;
		memcpy(in->tail, data + len - room, room);
		in->ntail = room;
		return true;
	}
	spill = in->ntail + len > room ? in->ntail + len - room : 0;
	if (!keep(in, in->tail, spill))
		return false;
	in->ntail -= spill;
	memmove(in->tail, in->tail + spill, in->ntail);
	memcpy(in->tail + in->ntail, data, len);
	in->ntail += len;
	return true;
}

static bool consume(struct incoming *in, const unsigned char *data, size_t len)
{
	in->got += len;
	progress_add(len);
	if (in->size == SIZE_UNKNOWN)
		return keep_but_tail(in, data, len);
	return keep(in, data, len);
}

/* With MSG_WAITALL, a short receive is the end of the stream, which is too early. */
static bool on_event(struct incoming *in, const exs_event_t *ev)
{
	size_t len = ev->exs_evt_union.exs_evt_xfer.exs_evt_length;
	int i = ev->exs_evt_ahandle;

	in->inflight--;
	if (ev->exs_evt_errno)
		return lost(in, ev->exs_evt_errno);
	if (!consume(in, buffer_at(&in->r->buffers, i), len))
		return false;
	if (!len && in->size != SIZE_UNKNOWN)
		return lost(in, 0);
	if (!len)
		in->eof = true;
	return offer(in, i);
}

/* The sender may have to wait for the data of a pipe. */
static bool reap(struct incoming *in)
{
	int factor = in->size == SIZE_UNKNOWN ? ANSWER_FACTOR : 1;
	struct timeval tv = { .tv_sec = factor * in->r->o->timeout };
	exs_event_t ev[BATCH];
	int i, n;

	if (interrupted)
		return false;
	n = exs_qdequeue(in->r->buffers.queue, ev, BATCH, tv.tv_sec ? &tv : NULL);
	if (!n)
		return lost(in, ETIMEDOUT);
	if (n < 0 && errno != EINTR)
		say("cannot wait for data: %s%s", strerror(errno), net_call_advice(errno));
	for (i = 0; i < n; i++)
		if (!on_event(in, &ev[i]))
			return false;
	return n > 0;
}

static bool get_trailer(struct incoming *in, struct wire_trailer *t)
{
	if (in->size == SIZE_UNKNOWN) {
		in->r->ended = true;
		if (in->ntail < sizeof(*t))
			return lost(in, 0);
		memcpy(t, in->tail, sizeof(*t));
		in->got -= sizeof(*t);
	} else if (!net_recv_all(in->r->fd, t, sizeof(*t), in->r->o->timeout)) {
		return lost(in, errno);
	}
	if (!memcmp(t->magic, WIRE_TRAILER, sizeof(t->magic)) &&
	    le64toh(t->total) == in->got)
		return true;
	return lost(in, in->size == SIZE_UNKNOWN ? 0 : EPROTO);
}

static bool verify(struct incoming *in, const struct wire_trailer *t)
{
	uint8_t digest[WIRE_DIGEST];

	if (in->refused || !in->r->verify)
		return true;
	digest_get(in->r->digest, digest);
	if (!memcmp(digest, t->digest, WIRE_DIGEST))
		return true;
	/* The next copy must not use any of it. */
	output_restart(in->out);
	return refuse(in, "the checksum is wrong: the received data differs from the sent data");
}

/* A sender that does not continue the part starts from the beginning. */
static bool begin(struct incoming *in)
{
	in->asked = in->got;
	if (in->got)
		return true;
	digest_reset(in->r->digest);
	return output_restart(in->out) || refuse(in, in->out->text);
}

bool incoming_run(struct incoming *in)
{
	struct wire_trailer t;
	int i;

	if (!begin(in))
		return false;
	for (i = 0; i < in->r->buffers.count; i++)
		if (!offer(in, i))
			return false;
	while (in->inflight)
		if (!reap(in))
			return false;
	return get_trailer(in, &t) && verify(in, &t);
}
