/* SPDX-License-Identifier: MIT */
/*
 * exs-cp: copies files from one host to another.
 *
 *	main.c       options
 *	wire.h       the protocol between the two ends
 *	send.c       the sender's side of a connection
 *	outgoing.c   one file's data: read, digest, send, several buffers at once
 *	receive.c    the receiver's side
 *	incoming.c   one file's data: receive, digest, write, several buffers at once
 *	output.c     the output file: part, resume, commit
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

/* Timeouts are longer where the peer may have to read or flush a file first. */
#define ANSWER_FACTOR	10

enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

struct options {
	bool listen;
	bool keep;		/* receiver: serve one sender after another */
	bool quiet;
	bool verify;
	bool resume;
	enum progress_mode progress;
	int buffers;
	uint64_t size;		/* of a buffer */
	uint64_t bytes;		/* sender: the limit for each file */
	int timeout;		/* s; 0: none */
	const char *name;	/* sender: the file's name at the receiver */
	const char *dest;	/* receiver */
	struct endpoint ep;
	char **files;
	int nfiles;
};

/* Set by SIGINT, SIGTERM and SIGHUP, which also interrupt blocking calls. */
extern volatile sig_atomic_t interrupted;

/* Both print errors. Return: exit status. */
int run_sender(const struct options *o);
int run_receiver(const struct options *o);

#endif
