// SPDX-License-Identifier: GPL-2.0
/*
 * sendfile(2) and splice(2) into a socket: the pages themselves are sent. They stay until the peer has them, whatever
 * happens to the file; and a peer that does not read blocks the sender before it holds many pages.
 */
#include "lib/e2e.h"
#include "lib/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_LEN	(MIB + 5000)

/* All of it, from @from on, to a process that reads at the same time. */
static void send_whole(int fd, int file, off_t from)
{
	while (from < FILE_LEN)
		check(must(sendfile(fd, file, &from, FILE_LEN)) > 0, "the file ends at %ld", (long)from);
}

struct reader { int fd; off_t from; };

static void reads(void *arg)
{
	struct reader *r = arg;

	recv_all(r->fd, 1, r->from, FILE_LEN - r->from);
}

/* Aligned, and not. Nothing is copied. */
static void file_goes(void)
{
	static const off_t offsets[] = { 0, 10, 4096, 70001 };
	int file = file_new(1, FILE_LEN);
	uint64_t spliced = 0;
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct reader r = { p.s, offsets[i] };
		pid_t pid = spawn(reads, &r);

		send_whole(p.c, file, offsets[i]);
		join(pid);
		spliced += FILE_LEN - offsets[i];
	}
	must_be(delta("spliced_bytes"), spliced);
	must_be(delta("spliced_copied"), 0);
	pair_close(&p);
}

/* A pipe, too: with bytes that were written there, and with pages that were put there without a copy. */
static void pipe_goes(void)
{
	struct pipe_pair pipe = pipe_open();
	int file = file_new(1, FILE_LEN);
	char *mem = pages(8192);
	struct iovec v = { mem, 8192 };
	off_t from = 0;
	struct pair p;

	pair_open(&p);
	must_be(splice(file, &from, pipe.wr, NULL, 20000, 0), 20000);
	must_be(splice(pipe.rd, NULL, p.c, NULL, 20000, 0), 20000);
	recv_all(p.s, 1, 0, 20000);
	data_fill(2, 0, mem, 8192);
	must_be(vmsplice(pipe.wr, &v, 1, 0), 8192);
	must_be(splice(pipe.rd, NULL, p.c, NULL, 8192, SPLICE_F_MORE), 8192);
	recv_all(p.s, 2, 0, 8192);
	must_be(write(pipe.wr, mem, 5000), 5000);
	must_be(splice(pipe.rd, NULL, p.c, NULL, 5000, SPLICE_F_NONBLOCK), 5000);
	recv_all(p.s, 2, 0, 5000);
	must_be(delta("spliced_bytes"), 20000 + 8192 + 5000);
	pair_close(&p);
}

/* Pieces of a few bytes do not hold whole pages. */
static void scraps(void)
{
	struct pipe_pair pipe = pipe_open();
	char *mem = pages(16 * 4096);
	struct iovec v[16];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 16; i++) {
		v[i] = (struct iovec){ mem + i * 4096, 10 };
		data_fill(3, i * 10, v[i].iov_base, 10);
	}
	must_be(vmsplice(pipe.wr, v, 16, 0), 160);
	must_be(splice(pipe.rd, NULL, p.c, NULL, 160, 0), 160);
	recv_all(p.s, 3, 0, 160);
	pair_close(&p);
}

static void scraps_copied(void)
{
	scraps();
	must_be(delta("spliced_bytes"), 0);
	must_be(delta("spliced_copied"), 1);
}

/* The file is emptied, and filled with something else, before the peer reads. */
static void file_emptied(void)
{
	int file = file_new(1, 65536);
	off_t from = 0;
	char other[4096] = { 0 };
	struct pair p;
	int i;

	pair_open(&p);
	must_be(sendfile(p.c, file, &from, 65536), 65536);
	must(ftruncate(file, 0));
	for (i = 0; i < 16; i++)
		must_be(pwrite(file, other, 4096, i * 4096), 4096);
	close(file);
	recv_all(p.s, 1, 0, 65536);
	must_be(delta("spliced_bytes"), 65536);
	pair_close(&p);
}

/* Sends until there is no room. Return: whether there was any. */
static bool fill(int fd, int file)
{
	off_t from = 0;
	bool any = false;

	while (sendfile(fd, file, &from, FILE_LEN) > 0) {
		any = true;
		if (from == FILE_LEN)
			from = 0;
	}
	must_be(errno, EAGAIN);
	return any;
}

/* The peer does not read: sending stops, and poll() reports that. */
static void held_up(void)
{
	int file = file_new(1, FILE_LEN);
	struct pair p;

	pair_open(&p);
	set_int(p.c, SOL_SOCKET, SO_SNDBUF, 100000);
	set_nonblock(p.c, true);
	fill(p.c, file);
	/* Bytes under way into the peer's ring make room once more. */
	while (poll_now(p.c, POLLOUT))
		check(fill(p.c, file), "POLLOUT, and no room");
	/* A ring, what TCP doubles, and the call that went beyond it. */
	check(delta("spliced_bytes") < read_sysctl("ring_size") + 2 * 100000 + 65536,
	      "%ld bytes went", delta("spliced_bytes"));
	recv_all(p.s, 1, 0, 4096);
	pair_close(&p);
}

/* The peer goes while the pages are on their way. */
static void peer_leaves(void)
{
	struct linger linger = { .l_onoff = 1 };
	int file = file_new(1, FILE_LEN);
	off_t from = 0;
	struct pair p;

	catch_signal(SIGPIPE, 0);
	pair_open(&p);
	set_nonblock(p.c, true);
	while (from < FILE_LEN && sendfile(p.c, file, &from, FILE_LEN) > 0)
		;
	set_nonblock(p.c, false);
	must(setsockopt(p.s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	close(p.s);
	wait_io(p.c, POLLHUP);
	from = 0;
	must_fail(sendfile(p.c, file, &from, FILE_LEN), ECONNRESET);
	must_fail(sendfile(p.c, file, &from, FILE_LEN), EPIPE);
	must_be(signals_caught, 1);
	close(p.c);
	wait_until(!counter("live_xfers"));
}

/* Each call's pages are a message. */
static void messages(void)
{
	static char got[70000];
	int file = file_new(1, FILE_LEN);
	off_t from = 5;
	struct pair p;

	pair_open(&p);
	must_be(sendfile(p.c, file, &from, 30000), 30000);
	must_be(recv(p.s, got, sizeof(got), 0), 30000);
	data_check(1, 5, got, 30000);
	must_be(delta("spliced_bytes"), 30000);
	pair_close(&p);
}

/* The other way. */
static void into_pipe(void)
{
	struct pipe_pair pipe = pipe_open();
	static char got[50000];
	struct pair p;
	ssize_t n, done;

	pair_open(&p);
	send_all(p.c, 4, 0, sizeof(got));
	for (done = 0; done < (ssize_t)sizeof(got); done += n) {
		n = must(splice(p.s, NULL, pipe.wr, NULL, 10000, 0));
		check(n, "the end, after %zd bytes", done);
		must_be(read(pipe.rd, got + done, n), n);
	}
	data_check(4, 0, got, sizeof(got));
	must(shutdown(p.c, SHUT_WR));
	must_be(splice(p.s, NULL, pipe.wr, NULL, 10000, 0), 0);
	pair_close(&p);
}

static const struct e2e_case cases[] = {
	{ "file_goes", file_goes, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "pipe_goes", pipe_goes, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "scraps", scraps_copied, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "file_emptied", file_emptied, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "held_up", held_up, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "peer_leaves", peer_leaves, .on = ON_STREAM | ON_INET, .needs = NEEDS_ONE },
	{ "messages", messages, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "into_pipe", into_pipe, .on = ON_STREAM | ON_INET | ON_TCP, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
