// SPDX-License-Identifier: MIT
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "incoming.h"
#include "net.h"
#include "progress.h"
#include "say.h"

static bool lost(const struct receiver *r)
{
	if (!interrupted)
		say("%s: connection lost: %s%s", r->peer, errno ? strerror(errno) : "closed by the sender",
		    net_call_advice(errno));
	return false;
}

static bool put_reply(struct receiver *r, const struct wire_reply *reply)
{
	return net_send_all(r->fd, reply, sizeof(*reply), r->o->timeout) ||
	       lost(r);
}

bool send_reply(struct receiver *r, const char *failure)
{
	struct wire_reply reply = {
		.failed = htole32(failure != NULL),
		.flags = htole32(r->verify ? WIRE_VERIFY : 0),
	};

	snprintf(reply.text, sizeof(reply.text), "%s", failure ? failure : "");
	return put_reply(r, &reply);
}

static bool refuse_sender(struct receiver *r, const char *why)
{
	say("%s: refused: %s", r->peer, why);
	send_reply(r, why);
	return false;
}

/* The sender chooses the size of the buffers: equal sizes are fastest. */
static bool greet(struct receiver *r)
{
	struct wire_hello h;
	uint64_t size;

	if (!net_recv_all(r->fd, &h, sizeof(h), r->o->timeout))
		return lost(r);
	if (memcmp(h.magic, WIRE_MAGIC, sizeof(h.magic)))
		return refuse_sender(r, "the peer is not exs-cp, or has another version: install the same one there");
	size = le32toh(h.size);
	if (size < MIN_SIZE || size > MAX_SIZE ||
	    size * r->o->buffers > MAX_MEMORY)
		return refuse_sender(r, "the receiver has no memory for buffers of this size: use a smaller --size");
	r->verify = r->o->verify && (le32toh(h.flags) & WIRE_VERIFY);
	if (!buffers_init(&r->buffers, r->o->buffers, size))
		return refuse_sender(r, "the receiver cannot register its buffers: see its messages");
	return send_reply(r, NULL);
}

/* Offer the part: its size (@offered) and its digest. */
static bool offer_part(struct receiver *r, struct output *out, uint64_t size,
		       uint64_t *offered)
{
	struct wire_reply reply = { .flags = htole32(r->verify ? WIRE_VERIFY : 0) };
	bool use = r->o->resume && r->verify && !out->direct &&
		   size != SIZE_UNKNOWN && out->pos <= size;

	*offered = 0;
	digest_reset(r->digest);
	if (use && digest_add_file(r->digest, out->fd, out->pos)) {
		*offered = out->pos;
		reply.offset = htole64(out->pos);
		digest_get(r->digest, reply.digest);
	}
	/* The digest is incomplete then, and the part stays. */
	return !interrupted && put_reply(r, &reply);
}

/* The sender starts at the end of the offered part, or at the beginning. */
static bool take_start(struct receiver *r, uint64_t offered, uint64_t *begin)
{
	struct wire_start start;

	if (!net_recv_all(r->fd, &start, sizeof(start),
			  ANSWER_FACTOR * r->o->timeout))
		return lost(r);
	*begin = le64toh(start.offset);
	if (!*begin || *begin == offered)
		return true;
	errno = EPROTO;
	return lost(r);
}

static bool finish(struct receiver *r, struct incoming *in, unsigned int mode)
{
	bool keep = in->size != SIZE_UNKNOWN;

	if (in->refused) {
		output_abandon(in->out, keep);
		return true;
	}
	if (output_commit(in->out, mode))
		return send_reply(r, NULL);
	output_abandon(in->out, keep);
	in->refused = true;
	say("%s: %s", r->peer, in->out->text);
	return send_reply(r, in->out->text);
}

static bool receive_data(struct receiver *r, const struct wire_file *f,
			 struct output *out, uint64_t begin, bool *refused)
{
	struct incoming in = {
		.r = r,
		.out = out,
		.size = le64toh(f->size),
		.got = begin,
	};
	bool ok;

	progress_start(r->o, out->name, in.size, in.got);
	ok = incoming_run(&in);
	progress_end(ok && !in.refused);
	if (!ok)
		output_abandon(out, in.size != SIZE_UNKNOWN);
	else
		ok = finish(r, &in, le32toh(f->mode));
	*refused = in.refused;
	return ok;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* A second file with the same name would replace the one just copied. */
static bool claim_name(struct receiver *r, struct output *out)
{
	char *name = strdup(out->name);
	char **node = name ? tsearch(name, &r->names, compare_names) : NULL;

	if (node && *node == name)
		return true;
	free(name);
	snprintf(out->text, sizeof(out->text), "%.150s: %s", out->name, node ?
		 "another file of this sender went there: copy it alone, with --name" :
		 "no memory: free some");
	return false;
}

static bool open_output(struct receiver *r, struct output *out,
			const char *name)
{
	if (!output_open(out, r->o->dest, name))
		return false;
	if (claim_name(r, out))
		return true;
	output_abandon(out, true);
	return false;
}

/* Return: false: the connection cannot be used any more. */
static bool receive_file(struct receiver *r, struct wire_file *f, bool *refused)
{
	uint64_t offered, begin;
	struct output out;

	if (!open_output(r, &out, f->name)) {
		*refused = true;
		say("%s: %s", r->peer, out.text);
		return send_reply(r, out.text);
	}
	if (offer_part(r, &out, le64toh(f->size), &offered) &&
	    take_start(r, offered, &begin))
		return receive_data(r, f, &out, begin, refused);
	output_abandon(&out, true);
	return false;
}

static bool get_file(struct receiver *r, struct wire_file *f)
{
	if (!net_recv_all(r->fd, f, sizeof(*f),
			  ANSWER_FACTOR * r->o->timeout))
		return lost(r);
	if (memchr(f->name, 0, sizeof(f->name)) &&
	    (le32toh(f->type) == WIRE_FILE || le32toh(f->type) == WIRE_END))
		return true;
	errno = EPROTO;
	return lost(r);
}

static bool receive_all(struct receiver *r)
{
	bool ok = true, refused;
	struct wire_file f;

	while (!interrupted && !r->ended && get_file(r, &f)) {
		if (le32toh(f.type) == WIRE_END)
			return ok;
		refused = false;
		if (!receive_file(r, &f, &refused))
			return false;
		ok = ok && !refused;
	}
	return r->ended && ok && !interrupted;
}

static bool serve(const struct options *o, int fd)
{
	struct receiver r = {
		.o = o,
		.fd = fd,
		.buffers = BUFFERS_NONE,
		.digest = digest_new(),
	};
	bool ok;

	net_name(fd, exs_getpeername, r.peer, sizeof(r.peer));
	if (!r.digest)
		say("cannot compute checksums: %s: free some memory", strerror(errno));
	ok = r.digest && greet(&r) && receive_all(&r);
	close(fd);
	buffers_free(&r.buffers);
	digest_free(r.digest);
	tdestroy(r.names, free);
	return ok;
}

/* Tell the user where senders can reach it. */
static void say_listening(const struct options *o, int listener)
{
	char name[100];

	if (!o->quiet)
		say("listening on %s",
		    net_name(listener, exs_getsockname, name, sizeof(name)));
}

/* Detect errors that affect every sender before the first one connects. */
static bool can_receive(const struct options *o)
{
	struct buffers b = BUFFERS_NONE;
	struct output out;
	bool ok;

	if (!output_check(&out, o->dest)) {
		say("%s", out.text);
		return false;
	}
	ok = buffers_init(&b, o->buffers, o->size);
	buffers_free(&b);
	return ok;
}

int run_receiver(const struct options *o)
{
	int listener, fd;
	bool ok;

	if (!can_receive(o))
		return 1;
	listener = net_listen(&o->ep, SOCK_STREAM);
	if (listener < 0)
		return 1;
	say_listening(o, listener);
	do {
		fd = net_accept(listener);
		ok = fd >= 0 && serve(o, fd);
	} while (o->keep && fd >= 0 && !interrupted);
	close(listener);
	return ok ? 0 : 1;
}
