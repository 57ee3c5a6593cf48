/* SPDX-License-Identifier: MIT */
#ifndef EXS_CP_OUTGOING_H
#define EXS_CP_OUTGOING_H

#include "buffers.h"
#include "cp.h"
#include "digest.h"

/* One connection. */
struct sender {
	const struct options *o;
	int fd;
	bool verify;
	bool ended;		/* nothing more can be sent */
	struct buffers buffers;
	struct digest *digest;
	char host[300];
};

/* The data of one file. */
struct outgoing {
	struct sender *s;
	const char *path;
	int file;
	uint64_t size;		/* SIZE_UNKNOWN */
	uint64_t end;		/* end of the data: size, or the user's limit */
	uint64_t pos;		/* read so far */
	bool eof;
	bool answered;		/* the reply has arrived */
	int inflight;
	int nfree;
	int free[MAX_BUFFERS];
};

/*
 * Send data and trailer from @pos on, and wait for the receiver's reply. The digest
 * contains the data before @pos. Prints errors.
 */
bool outgoing_run(struct outgoing *out);

#endif
