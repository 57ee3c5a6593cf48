/* SPDX-License-Identifier: MIT */
#ifndef EXS_CP_OUTGOING_H
#define EXS_CP_OUTGOING_H

#include "buffers.h"
#include "cp.h"
#include "digest.h"

/* What lasts as long as the connection. */
struct sender {
	const struct options *o;
	int fd;
	bool verify;
	bool ended;		/* nothing may be sent any more */
	struct buffers buffers;
	struct digest *digest;
	char host[300];
};

/* One file's data on its way. */
struct outgoing {
	struct sender *s;
	const char *path;
	int file;
	uint64_t size;		/* SIZE_UNKNOWN */
	uint64_t end;		/* read no further: size, or the user's limit */
	uint64_t pos;		/* read so far */
	bool eof;
	bool answered;		/* the reply has come */
	int inflight;
	int nfree;
	int free[MAX_BUFFERS];
};

/*
 * Send data and trailer from @pos on, and wait for the receiver's word. The
 * digest holds what comes before @pos. Explains what goes wrong.
 */
bool outgoing_run(struct outgoing *out);

#endif
