/* SPDX-License-Identifier: MIT */
/*
 * exs-cp: files from one host to another.
 *
 *	main.c       options
 *	wire.h       what the two ends say to one another
 *	send.c       the sender's side of a connection
 *	outgoing.c   one file's data: read, digest, send, several at once
 *	receive.c    the receiver's side
 *	incoming.c   one file's data: receive, digest, write, several at once
 *	output.c     the file that is written: part, resume, commit
 *	digest.c progress.c
 */
#ifndef EXS_CP_H
#define EXS_CP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "parse.h"

#define DEFAULT_PORT	"7025"
#define DEFAULT_BUFFERS	4
#define DEFAULT_SIZE	(256 << 10)
#define DEFAULT_TIMEOUT	60
#define MAX_BUFFERS	256
#define MIN_SIZE	4096
#define MAX_SIZE	(16 << 20)
#define MAX_MEMORY	(1ULL << 30)

#define SIZE_UNKNOWN	UINT64_MAX

/* What may need a whole file, or slow input, to be read or flushed first. */
#define ANSWER_FACTOR	10

enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

struct options {
	bool listen;
	bool keep;		/* receiver: after one sender comes the next */
	bool quiet;
	bool verify;
	bool resume;
	enum progress_mode progress;
	int buffers;
	uint64_t size;		/* of a buffer */
	uint64_t bytes;		/* sender: at most so many of each file */
	int timeout;		/* s; 0: none */
	const char *name;	/* sender: at the receiver */
	const char *dest;	/* receiver */
	struct endpoint ep;
	char **files;
	int nfiles;
};

/* Set by SIGINT, SIGTERM and SIGHUP, which also interrupt whatever blocks. */
extern volatile sig_atomic_t interrupted;

/* Each explains what went wrong. Return: exit status. */
int run_sender(const struct options *o);
int run_receiver(const struct options *o);

#endif
