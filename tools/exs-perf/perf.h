/* SPDX-License-Identifier: MIT */
/*
 * exs-perf: measures how fast AF_EXS moves registered memory.
 *
 *	main.c       options
 *	client.c     connects, runs a test, prints its result
 *	server.c     runs the test that the client asks for
 *	blast.c      one direction, several transfers outstanding
 *	pingpong.c   one transfer at a time, in turn
 *	plain.c      the same with send() and recv()
 *	events.c     waiting for events
 *	counts.c     counters of both ends
 */
#ifndef EXS_PERF_H
#define EXS_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"
#include "counts.h"
#include "parse.h"

#define PERF_PORT	"7026"
#define PERF_MAGIC	0x32464550u	/* "PEF2" */
#define PERF_MAX_SIZE	(64 << 20)
#define PERF_MAX_DEPTH	256
#define PERF_PINGPONG_DEPTH 3	/* its buffers */
#define PERF_MAX_MEMORY	(1ULL << 30)
#define PERF_TIMEOUT	30	/* s, up to twice, without an event: the peer is gone */

enum perf_mode { PERF_BLAST = 1, PERF_PINGPONG = 2 };

#define PERF_BUSY	1		/* polls the device, and does not sleep      */
#define PERF_PLAIN	2		/* send() and recv(), without the ES-API     */
#define PERF_FLAGS	(PERF_BUSY | PERF_PLAIN)
#define PERF_BUSY_USEC	1000000	/* the most that a plain call polls          */

/* From the client, before a test: the parameters of both ends. */
struct perf_hello {
	uint32_t magic;		/* little-endian, like all members */
	uint32_t mode;
	uint32_t size;
	uint32_t depth;
	uint32_t flags;		/* PERF_BUSY, PERF_PLAIN */
	uint32_t reserved;
};

/* From the server: before a test (bytes is 0), and after a blast. */
struct perf_answer {
	uint32_t magic;
	uint32_t err;		/* errno */
	uint64_t bytes;
	struct counts counts;
};

struct perf_options {
	bool listen, keep, quiet;
	int type;		/* SOCK_STREAM, SOCK_SEQPACKET */
	enum perf_mode mode;
	uint32_t flags;
	uint64_t size, depth, count, seconds, warmup;
	struct endpoint ep;
};

struct perf {
	const struct perf_options *o;
	int fd;
	uint32_t size, depth, flags;
	struct buffers b;
};

/* Buffers, and a queue according to p->flags. Return: false: failed; prints the reason. */
bool perf_buffers(struct perf *p);

double perf_now(void);

/* Print that @what failed with @err, and what to do. EINTR: a signal of perf_watch(). */
void perf_failed(const char *what, int err);

/*
 * Between on and off, a signal arrives regularly, so that perf_wait() can check for
 * progress. A timer for each wait would take a large part of a ping-pong's time. Other
 * blocking calls may fail with EINTR.
 */
void perf_watch(bool on);

/* The transfer of buffer @i: a receive on a stream waits for all of it. */
exs_op_t perf_op(const struct perf *p, int type, int i);

/* Return: false: failed; prints the reason. */
bool perf_submit(struct perf *p, const exs_op_t *ops, int n);

/*
 * Wait for @n events, and add up the bytes of sends and receives. Return: false: failed;
 * prints the reason.
 */
struct perf_moved {
	uint64_t sent, received;
	unsigned int sends, receives;
	uint32_t last_recv;	/* its handle */
	bool eof;
};
bool perf_wait(struct perf *p, int n, struct perf_moved *m);

bool blast_client(struct perf *p);
bool blast_server(struct perf *p);
bool pingpong_client(struct perf *p);
bool pingpong_server(struct perf *p);

/* Like round trips of pingpong.c; the server runs until the client shuts down. */
bool plain_begin(struct perf *p);
bool plain_round_trip(struct perf *p);
bool plain_server(struct perf *p);

int run_client(const struct perf_options *o);
int run_server(const struct perf_options *o);

#endif
