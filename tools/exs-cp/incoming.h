/* SPDX-License-Identifier: MIT */
#ifndef EXS_CP_INCOMING_H
#define EXS_CP_INCOMING_H

#include "buffers.h"
#include "cp.h"
#include "digest.h"
#include "output.h"
#include "wire.h"

/* What lasts as long as the connection. */
struct receiver {
	const struct options *o;
	int fd;
	bool verify;
	bool ended;		/* the sender has shut its side down */
	void *names;		/* of its files so far: a tree */
	struct buffers buffers;
	struct digest *digest;
	char peer[100];
};

/* One file's data on its way in. */
struct incoming {
	struct receiver *r;
	struct output *out;
	uint64_t size;		/* SIZE_UNKNOWN */
	uint64_t asked;		/* position up to which receives were started */
	uint64_t got;		/* at first: where the sender begins */
	int inflight;
	bool eof;
	bool refused;		/* the last reply was sent: nothing is written */
	size_t ntail;
	unsigned char tail[sizeof(struct wire_trailer)];
};

/*
 * Receive data and trailer, from in->got on, which is 0 or where the part ends.
 * In the latter case the digest holds what comes before.
 * False: the connection is lost, explained; otherwise the file's fate stands
 * in in->refused.
 */
bool incoming_run(struct incoming *in);

/* The last word on a file, or on a request. */
bool send_reply(struct receiver *r, const char *failure);

#endif
