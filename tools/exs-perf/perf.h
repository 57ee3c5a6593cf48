/* SPDX-License-Identifier: MIT */
/*
 * exs-perf: how fast AF_EXS moves registered memory.
 *
 *	main.c       options
 *	client.c     connects, runs a test, prints its result
 *	server.c     does what the client asks for
 *	blast.c      one direction, several transfers outstanding
 *	pingpong.c   one transfer at a time, there and back
 *	plain.c      the same by send() and recv()
 *	events.c     waiting for events
 *	counts.c     what either end counted meanwhile
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
#define PERF_TIMEOUT	30	/* s, or up to twice that, without an event: the peer is gone */

enum perf_mode { PERF_BLAST = 1, PERF_PINGPONG = 2 };

#define PERF_BUSY	1		/* polls the device, and does not sleep      */
#define PERF_PLAIN	2		/* send() and recv(), without the ES-API     */
#define PERF_FLAGS	(PERF_BUSY | PERF_PLAIN)
#define PERF_BUSY_USEC	1000000	/* that a plain call polls at most           */

/* From the client, in front of a test; both ends are told the same. */
struct perf_hello {
	uint32_t magic;		/* little-endian, as everything */
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

/* The buffers, and their queue as p->flags has it. false: explained. */
bool perf_buffers(struct perf *p);

double perf_now(void);

/*
 * Between on and off a signal comes now and then, so that perf_wait() sees
 * whether anything moves: a timer for each wait would be much of what a ping-pong
 * takes. Other calls that wait may fail with EINTR there.
 */
void perf_watch(bool on);

/*
 * Wait for @n events (all of them), add up what sends and receives moved.
 * false: explained.
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

/* As round trips of pingpong.c; the server's, until the client shuts down. */
bool plain_begin(struct perf *p);
bool plain_round_trip(struct perf *p);
bool plain_server(struct perf *p);

int run_client(const struct perf_options *o);
int run_server(const struct perf_options *o);

#endif
