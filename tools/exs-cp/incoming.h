/* SPDX-License-Identifier: MIT */
#ifndef EXS_CP_INCOMING_H
#define EXS_CP_INCOMING_H

#include "buffers.h"
#include "cp.h"
#include "digest.h"
#include "output.h"
#include "wire.h"

/* One connection. */
struct receiver {
	const struct options *o;
	int fd;
	bool verify;
	bool ended;		/* the sender has shut down its side */
	void *names;		/* names of its files so far: a tree */
	struct buffers buffers;
	struct digest *digest;
	char peer[100];
};

/* The data of one file. */
struct incoming {
	struct receiver *r;
	struct output *out;
	uint64_t size;		/* SIZE_UNKNOWN */
	uint64_t asked;		/* position up to which receives were started */
	uint64_t got;		/* at first: the position at which the sender starts */
	int inflight;
	bool eof;
	bool refused;		/* the last reply was sent: write nothing more */
	size_t ntail;
	unsigned char tail[sizeof(struct wire_trailer)];
};

/*
 * Receive data and trailer from position in->got: 0, or the end of the part. In the
 * latter case the digest contains the part. Return: false: the connection is lost, and
 * the reason was printed. Otherwise in->refused says whether the file failed.
 */
bool incoming_run(struct incoming *in);

/* The final reply to a file, or to a request. */
bool send_reply(struct receiver *r, const char *failure);

#endif
