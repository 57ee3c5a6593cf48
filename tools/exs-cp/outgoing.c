// SPDX-License-Identifier: MIT
/*
 * While some buffers are on the wire, others are read and digested. The receive for the
 * receiver's reply is started before the first byte is sent, so that an early error (a full
 * disk) is noticed at once.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "outgoing.h"
#include "progress.h"
#include "say.h"

#define REPLY_HANDLE	UINT64_MAX
#define BATCH		16

static struct wire_reply *reply(struct outgoing *out)
{
	return (struct wire_reply *)out->s->buffers.extra;
}

static bool ask_for_reply(struct outgoing *out)
{
	const struct buffers *b = &out->s->buffers;

	if (!exs_recv(out->s->fd, b->extra, sizeof(struct wire_reply),
		      MSG_WAITALL, b->queue, REPLY_HANDLE, b->region))
		return true;
	say("%s: cannot wait for the answer: %s%s", out->s->host, strerror(errno), net_call_advice(errno));
	return false;
}

static bool lost(struct outgoing *out, int err)
{
	/* Only the receiver knows whether its destination has a part: a device has none. */
	bool may_resume = out->s->verify && out->size != SIZE_UNKNOWN;

	if (!interrupted)
		say("%s: %s: connection lost: %s%s%s", out->s->host, out->path,
		    err ? strerror(err) : "closed by the receiver", net_call_advice(err),
		    may_resume ? "; run it again: it resumes if the receiver kept its part" : "");
	return false;
}

static bool on_event(struct outgoing *out, const exs_event_t *ev)
{
	size_t len = ev->exs_evt_union.exs_evt_xfer.exs_evt_length;

	if (ev->exs_evt_ahandle == REPLY_HANDLE) {
		if (ev->exs_evt_errno || len != sizeof(struct wire_reply))
			return lost(out, ev->exs_evt_errno);
		out->answered = true;
		return true;
	}
	out->inflight--;
	out->free[out->nfree++] = ev->exs_evt_ahandle;
	if (ev->exs_evt_errno && !out->answered)
		return lost(out, ev->exs_evt_errno);
	progress_add(len);
	return true;
}

/* The reply may be among the events, and has the reason of other failures. */
static bool on_events(struct outgoing *out, const exs_event_t *ev, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (ev[i].exs_evt_ahandle == REPLY_HANDLE &&
		    !on_event(out, &ev[i]))
			return false;
	for (i = 0; i < n; i++)
		if (ev[i].exs_evt_ahandle != REPLY_HANDLE &&
		    !on_event(out, &ev[i]))
			return false;
	return true;
}

static bool reap(struct outgoing *out, int timeout_s)
{
	struct timeval tv = { .tv_sec = timeout_s };
	exs_event_t ev[BATCH];
	int n;

	n = exs_qdequeue(out->s->buffers.queue, ev, BATCH,
			 timeout_s ? &tv : NULL);
	if (!n)
		say("%s: %s: no progress for %d s (is the other machine alive? rdma link)", out->s->host, out->path,
		    timeout_s);
	if (n < 0 && errno != EINTR)
		say("cannot wait for the sends: %s%s", strerror(errno), net_call_advice(errno));
	return n > 0 && on_events(out, ev, n);
}

/* Read up to @len bytes. Return: -1: failed, and the reason was printed. */
static ssize_t read_full(struct outgoing *out, unsigned char *to, size_t len)
{
	size_t got = 0;
	ssize_t n = 0;

	while (got < len && !interrupted) {
		n = read(out->file, to + got, len - got);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
		if (n > 0)
			got += n;
	}
	if (n < 0 && !interrupted)
		say_errno("%s", out->path);
	return n < 0 || interrupted ? -1 : (ssize_t)got;
}

static bool file_shrank(struct outgoing *out)
{
	say("%s: the file became shorter during the copy: copy it again", out->path);
	return false;
}

static bool fill_and_send(struct outgoing *out)
{
	const struct buffers *b = &out->s->buffers;
	int i = out->free[out->nfree - 1];
	uint64_t left = out->end - out->pos;
	size_t want = left < b->size ? left : b->size;
	ssize_t n = read_full(out, buffer_at(b, i), want);

	if (n < 0)
		return false;
	out->eof = (size_t)n < want || out->pos + n == out->end;
	if ((size_t)n < want && out->size != SIZE_UNKNOWN)
		return file_shrank(out);
	if (!n)
		return true;
	if (out->s->verify)
		digest_add(out->s->digest, buffer_at(b, i), n);
	if (buffer_send(b, out->s->fd, i, n))
		return lost(out, errno);
	out->pos += n;
	out->nfree--;
	out->inflight++;
	return true;
}

static bool refused(struct outgoing *out)
{
	reply(out)->text[WIRE_TEXT - 1] = 0;
	say("%s: %s", out->s->host, reply(out)->text);
	return false;
}

static bool send_data(struct outgoing *out)
{
	while (!out->eof || out->inflight) {
		while (!out->eof && out->nfree && !out->answered)
			if (!fill_and_send(out))
				return false;
		if (out->answered) {
			out->s->ended = true;
			return refused(out);
		}
		if (out->inflight && !reap(out, out->s->o->timeout))
			return false;
	}
	return true;
}

static bool send_trailer(struct outgoing *out)
{
	struct wire_trailer t = { .total = htole64(out->pos) };

	memcpy(t.magic, WIRE_TRAILER, sizeof(t.magic));
	if (out->s->verify)
		digest_get(out->s->digest, t.digest);
	if (!net_send_all(out->s->fd, &t, sizeof(t), out->s->o->timeout))
		return lost(out, errno);
	if (out->size != SIZE_UNKNOWN)
		return true;
	out->s->ended = true;
	return !shutdown(out->s->fd, SHUT_WR) || lost(out, errno);
}

bool outgoing_run(struct outgoing *out)
{
	int i;

	for (i = 0; i < out->s->buffers.count; i++)
		out->free[i] = i;
	out->nfree = i;
	out->eof = out->pos == out->end;
	if (!ask_for_reply(out) || !send_data(out) || !send_trailer(out))
		return false;
	while (!out->answered)
		if (!reap(out, ANSWER_FACTOR * out->s->o->timeout))
			return false;
	return !le32toh(reply(out)->failed) || refused(out);
}
