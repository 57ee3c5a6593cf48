// SPDX-License-Identifier: GPL-2.0
/* Linux AIO (libaio): reads that wait are queued, into the program's own memory; the rest is as on a TCP socket. */
#include "lib/async.h"

#include <libaio.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE	(512 * 1024)

/* libaio says errors with its value. */
#define must_aio(call, want)							\
	do {									\
		int aio_got = (call);						\
										\
		if (aio_got != (want))						\
			fail("%s is %d (%s), not %d", #call, aio_got,		\
			     aio_got < 0 ? errno_name(-aio_got) : "-", want);	\
	} while (0)

struct scene {
	struct pair p;
	io_context_t ctx;
	char *buf;
	struct iocb cb;
};

static void scene_open(struct scene *s)
{
	*s = (struct scene){ .buf = pages(LARGE) };
	pair_open(&s->p);
	must_aio(io_setup(64, &s->ctx), 0);
}

static void submit(struct scene *s, struct iocb *cb)
{
	must_aio(io_submit(s->ctx, 1, &cb), 1);
}

/* The next event, which is @cb's: its result. */
static long result_of(struct scene *s, const struct iocb *cb)
{
	struct timespec limit = { .tv_sec = limit_ms() / 1000 };
	struct io_event ev;

	must_aio(io_getevents(s->ctx, 1, 1, &ev, &limit), 1);
	check(ev.obj == cb, "an event of another request");
	return ev.res;
}

static void no_result(struct scene *s)
{
	struct timespec none = { 0 };
	struct io_event ev;

	must_aio(io_getevents(s->ctx, 0, 1, &ev, &none), 0);
}

static void start_read(struct scene *s, size_t len)
{
	io_prep_pread(&s->cb, s->p.s, s->buf, len, 0);
	submit(s, &s->cb);
}

/* The message of the reading side has arrived at the other. */
static void settle(struct scene *s)
{
	char byte;

	must_be(send(s->p.s, "!", 1, 0), 1);
	must_be(recv(s->p.c, &byte, 1, 0), 1);
}

/* io_submit() comes back although there is nothing to read. */
static void read_waits(void)
{
	struct scene s;

	scene_open(&s);
	start_read(&s, 100);
	no_result(&s);
	must_be(delta("aio_reads"), 1);
	must_be(counter("live_aio_reads"), 1);
	send_all(s.p.c, 1, 0, 100);
	must_be(result_of(&s, &s.cb), 100);
	data_check(1, 0, s.buf, 100);
	wait_until(!counter("live_aio_reads"));
}

/* From the sender's pages into the reader's. */
static void large(void)
{
	exs_qhandle_t q = queue_new(16);
	char *out = pages(LARGE);
	struct scene s;
	size_t pos = 0;
	long n;

	scene_open(&s);
	data_fill(1, 0, out, LARGE);
	start_read(&s, LARGE);
	settle(&s);
	start_send(s.p.c, out, LARGE, q, 1, NO_REGION);
	for (;;) {
		n = result_of(&s, &s.cb);
		check(n > 0, "a read ended with %ld", n);
		data_check(1, pos, s.buf, n);
		pos += n;
		if (pos == LARGE)
			break;
		start_read(&s, LARGE - pos);
	}
	event_is(q, EXS_EVT_SEND, 1, 0, LARGE);
	check(delta("direct_tx_bytes") >= LARGE / 2, "%ld bytes went directly", delta("direct_tx_bytes"));
	must_be(delta("aio_unpinned"), 0);
}

static void there_already(void)
{
	struct scene s;

	scene_open(&s);
	send_all(s.p.c, 1, 0, 100);
	wait_io(s.p.s, POLLIN);
	start_read(&s, 200);
	must_be(result_of(&s, &s.cb), 100);
	data_check(1, 0, s.buf, 100);
}

/* The read that was queued first is filled first. */
static void in_order(void)
{
	struct iocb cbs[8];
	struct scene s;
	size_t i, pos = 0;
	long n;

	scene_open(&s);
	for (i = 0; i < ARRAY_SIZE(cbs); i++) {
		io_prep_pread(&cbs[i], s.p.s, s.buf + i * 5000, 5000, 0);
		submit(&s, &cbs[i]);
	}
	for (i = 0; i < ARRAY_SIZE(cbs); i++)
		send_all(s.p.c, 1, i * 5000, 5000);
	for (i = 0; i < ARRAY_SIZE(cbs); i++) {
		n = result_of(&s, &cbs[i]);
		check(e2e.seq ? n == 5000 : n > 0, "read %zu ended with %ld", i, n);
		data_check(1, pos, s.buf + i * 5000, n);
		pos += n;
	}
	recv_all(s.p.s, 1, pos, 8 * 5000 - pos);
}

static void vectors(void)
{
	struct iovec in[3], out[2];
	struct iocb cb;
	struct scene s;
	char data[3000];

	scene_open(&s);
	data_fill(1, 0, data, sizeof(data));
	out[0] = (struct iovec){ data, 1000 };
	out[1] = (struct iovec){ data + 1000, 2000 };
	io_prep_pwritev(&cb, s.p.c, out, 2, 0);
	submit(&s, &cb);
	must_be(result_of(&s, &cb), 3000);
	/* All of it is there: TCP's reads wait in io_submit(). */
	must_be(recv(s.p.s, s.buf, 3000, MSG_PEEK | (e2e.seq ? 0 : MSG_WAITALL)), 3000);
	in[0] = (struct iovec){ s.buf, 1 };
	in[1] = (struct iovec){ s.buf + 1, 998 };
	in[2] = (struct iovec){ s.buf + 999, 2001 };
	io_prep_preadv(&cb, s.p.s, in, 3, 0);
	submit(&s, &cb);
	must_be(result_of(&s, &cb), 3000);
	data_check(1, 0, s.buf, 3000);
}

/* The pieces of a vector are filled like one buffer, whichever of them are empty. */
static void vector_waits(void)
{
	struct iovec in[5];
	struct scene s;

	scene_open(&s);
	in[0] = (struct iovec){ s.buf, 0 };
	in[1] = (struct iovec){ s.buf + 4090, 10 };
	in[2] = (struct iovec){ s.buf + 20000, 1 };
	in[3] = (struct iovec){ NULL, 0 };
	in[4] = (struct iovec){ s.buf, 200 };
	io_prep_preadv(&s.cb, s.p.s, in, 5, 0);
	submit(&s, &s.cb);
	no_result(&s);
	must_be(delta("aio_reads"), 1);
	send_all(s.p.c, 1, 0, 100);
	must_be(result_of(&s, &s.cb), 100);
	data_check(1, 0, s.buf + 4090, 10);
	data_check(1, 10, s.buf + 20000, 1);
	data_check(1, 11, s.buf, 89);
	wait_until(!counter("live_aio_reads"));
}

/* As many as there may be, apart from each other, and not all of them filled. */
static void vector_most(void)
{
	struct iovec in[IOV_MAX];
	struct scene s;
	long n;
	int i;

	scene_open(&s);
	for (i = 0; i < IOV_MAX; i++)
		in[i] = (struct iovec){ s.buf + i * 500, 100 };
	io_prep_preadv(&s.cb, s.p.s, in, IOV_MAX, 0);
	submit(&s, &s.cb);
	must_be(delta("aio_reads"), 1);
	send_all(s.p.c, 1, 0, 50000);
	n = result_of(&s, &s.cb);
	check(e2e.seq ? n == 50000 : n > 0, "the read ended with %ld", n);
	for (i = 0; i < n / 100; i++)
		data_check(1, i * 100, in[i].iov_base, 100);
	must_be(s.buf[500 * 500], 0);
	if (!e2e.seq)
		recv_all(s.p.s, 1, n, 50000 - n);
}

/* From the sender's pages into the pieces. */
static void vector_large(void)
{
	exs_qhandle_t q = queue_new(16);
	char *out = pages(LARGE);
	struct iovec in[2];
	struct scene s;
	long n;

	scene_open(&s);
	data_fill(1, 0, out, LARGE);
	in[0] = (struct iovec){ s.buf + LARGE / 2, LARGE / 2 };
	in[1] = (struct iovec){ s.buf, LARGE / 2 };
	io_prep_preadv(&s.cb, s.p.s, in, 2, 0);
	submit(&s, &s.cb);
	settle(&s);
	start_send(s.p.c, out, LARGE, q, 1, NO_REGION);
	n = result_of(&s, &s.cb);
	check(n > LARGE / 2, "the read ended with %ld", n);
	data_check(1, 0, s.buf + LARGE / 2, LARGE / 2);
	data_check(1, LARGE / 2, s.buf, n - LARGE / 2);
	check(delta("direct_tx_bytes") >= n, "%ld bytes went directly", delta("direct_tx_bytes"));
	if (!e2e.seq)
		recv_all(s.p.s, 1, n, LARGE - n);
	event_is(q, EXS_EVT_SEND, 1, 0, LARGE);
}

static void vector_cancelled(void)
{
	struct io_event unused;
	struct iovec in[2];
	struct scene s;

	scene_open(&s);
	in[0] = (struct iovec){ s.buf, 10000 };
	in[1] = (struct iovec){ s.buf + 20000, LARGE - 20000 };
	io_prep_preadv(&s.cb, s.p.s, in, 2, 0);
	submit(&s, &s.cb);
	settle(&s);
	must_aio(io_cancel(s.ctx, &s.cb, &unused), -EINPROGRESS);
	must_be(result_of(&s, &s.cb), -ECANCELED);
	must_be(counter("live_regions"), 0);
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

/* One piece that cannot be written: none is, and nothing stays pinned. */
static void vector_bad_memory(void)
{
	struct iovec in[2];
	struct scene s;

	scene_open(&s);
	in[0] = (struct iovec){ s.buf + 8192, 50 };
	in[1] = (struct iovec){ s.buf, 50 };
	must(mprotect(s.buf, 4096, PROT_READ));
	send_all(s.p.c, 1, 0, 100);
	io_prep_preadv(&s.cb, s.p.s, in, 2, 0);
	submit(&s, &s.cb);
	check(result_of(&s, &s.cb) <= 50, "more was read than can be written");
	must_be(delta("aio_unpinned"), 1);
	must_be(counter("live_regions"), 0);
}

static void writes(void)
{
	struct scene s;
	struct iocb cb;

	scene_open(&s);
	data_fill(1, 0, s.buf, 30000);
	io_prep_pwrite(&cb, s.p.c, s.buf, 30000, 0);
	submit(&s, &cb);
	must_be(result_of(&s, &cb), 30000);
	recv_all(s.p.s, 1, 0, 30000);
}

static void polls(void)
{
	struct scene s;
	struct iocb cb;

	scene_open(&s);
	io_prep_poll(&cb, s.p.s, POLLIN);
	submit(&s, &cb);
	no_result(&s);
	must_be(send(s.p.c, "x", 1, 0), 1);
	/* Whatever other events the wake-up reported. */
	must_be(result_of(&s, &cb) & (POLLIN | POLLOUT | POLLERR | POLLHUP), POLLIN);
}

static void tells_eventfd(void)
{
	int fd = must(eventfd(0, 0));
	struct scene s;
	uint64_t n;

	scene_open(&s);
	io_prep_pread(&s.cb, s.p.s, s.buf, 100, 0);
	io_set_eventfd(&s.cb, fd);
	submit(&s, &s.cb);
	must_be(poll_now(fd, POLLIN), 0);
	send_all(s.p.c, 1, 0, 100);
	must_be(read(fd, &n, sizeof(n)), sizeof(n));
	must_be(result_of(&s, &s.cb), 100);
}

/* -- reads with a limit do not wait longer than TCP's would */

static void nonblocking(void)
{
	struct scene s;

	scene_open(&s);
	set_nonblock(s.p.s, true);
	start_read(&s, 100);
	must_be(result_of(&s, &s.cb), -EAGAIN);
}

static void nowait(void)
{
	struct scene s;
	struct iocb *list = &s.cb;
	int n;

	scene_open(&s);
	io_prep_pread(&s.cb, s.p.s, s.buf, 100, 0);
	s.cb.aio_rw_flags = RWF_NOWAIT;
	n = io_submit(s.ctx, 1, &list);
	if (n == -EOPNOTSUPP)
		skip("no RWF_NOWAIT for sockets here");
	must_be(n, 1);
	must_be(result_of(&s, &s.cb), -EAGAIN);
}

static void timeout(void)
{
	struct scene s;

	scene_open(&s);
	set_timeout(s.p.s, SO_RCVTIMEO, 20);
	start_read(&s, 100);
	must_be(result_of(&s, &s.cb), -EAGAIN);
}

/* Memory that cannot be written: the bytes stay. */
static void bad_memory(void)
{
	struct scene s;

	scene_open(&s);
	must(mprotect(s.buf, 4096, PROT_READ));
	send_all(s.p.c, 1, 0, 100);
	start_read(&s, 100);
	must_be(result_of(&s, &s.cb), -EFAULT);
	if (!e2e.seq)
		recv_all(s.p.s, 1, 0, 100);
}

/* Memory that must not be pinned: the read waits in the call, and copies. */
static void no_memlock(void)
{
	struct rlimit none = { 0 };
	struct scene s;

	scene_open(&s);
	must(setrlimit(RLIMIT_MEMLOCK, &none));
	drop_privileges();
	send_all(s.p.c, 1, 0, 100);
	start_read(&s, 100);
	must_be(result_of(&s, &s.cb), 100);
	data_check(1, 0, s.buf, 100);
	must_be(delta("aio_unpinned"), 1);
	must_be(delta("aio_reads"), 0);
}

/* -- how a read that waits ends */

static void eof(void)
{
	struct scene s;

	scene_open(&s);
	start_read(&s, LARGE);
	must(shutdown(s.p.c, SHUT_WR));
	must_be(result_of(&s, &s.cb), 0);
}

static void reset(void)
{
	struct linger now = { .l_onoff = 1 };
	struct scene s;

	scene_open(&s);
	start_read(&s, LARGE);
	must(setsockopt(s.p.c, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	close(s.p.c);
	must_be(result_of(&s, &s.cb), -ECONNRESET);
}

static void shutdown_read(void)
{
	struct scene s;

	scene_open(&s);
	start_read(&s, LARGE);
	settle(&s);
	must(shutdown(s.p.s, SHUT_RD));
	must_be(result_of(&s, &s.cb), 0);
}

/* The read has the file: close(2) takes the descriptor only. */
static void closed_descriptor(void)
{
	struct scene s;

	scene_open(&s);
	start_read(&s, 100);
	close(s.p.s);
	send_all(s.p.c, 1, 0, 100);
	must_be(result_of(&s, &s.cb), 100);
	data_check(1, 0, s.buf, 100);
	wait_io(s.p.c, POLLIN);
	must_be(recv(s.p.c, s.buf, 1, 0), 0);
}

static void cancel(size_t len)
{
	struct io_event unused;
	struct scene s;

	scene_open(&s);
	start_read(&s, len);
	settle(&s);
	must_aio(io_cancel(s.ctx, &s.cb, &unused), -EINPROGRESS);
	must_be(result_of(&s, &s.cb), -ECANCELED);
	must_be(delta("aio_cancelled"), 1);
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

static void cancel_advertised(void)
{
	cancel(LARGE);
}

static void cancel_small(void)
{
	cancel(10);
}

/* Data and cancellation meet: the bytes go to the read, or stay. */
static void cancel_meets_data(void)
{
	struct io_event unused;
	struct scene s;
	int i, n;
	char byte;

	scene_open(&s);
	for (i = 0; i < 100; i++) {
		start_read(&s, i % 2 ? 10 : LARGE);
		must_be(send(s.p.c, "x", 1, 0), 1);
		n = io_cancel(s.ctx, &s.cb, &unused);
		check(n == -EINPROGRESS || n == -EINVAL || n == -EAGAIN, "io_cancel() is %d", n);
		n = result_of(&s, &s.cb);
		check(n == 1 || n == -ECANCELED, "a cancelled read ended with %d", n);
		if (n < 0)
			must_be(recv(s.p.s, &byte, 1, 0), 1);
	}
}

static void destroy(void)
{
	struct scene s;

	scene_open(&s);
	start_read(&s, LARGE);
	settle(&s);
	must_aio(io_destroy(s.ctx), 0);
	/* The memory is the program's again. */
	must_be(counter("live_regions"), 0);
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

static void destroy_meets_data(void)
{
	struct scene s;
	int i;

	scene_open(&s);
	for (i = 0; i < 30; i++) {
		start_read(&s, i % 2 ? 10 : LARGE);
		must_be(send(s.p.c, "x", 1, 0), 1);
		must_aio(io_destroy(s.ctx), 0);
		s.ctx = NULL;
		must_aio(io_setup(64, &s.ctx), 0);
	}
}

/* -- processes with reads that wait */

struct reader {
	struct scene *s;
	int up;
	bool exec;
};

static void wait_for_data(void *arg)
{
	struct reader *r = arg;
	struct scene *s = r->s;

	s->ctx = NULL;
	must_aio(io_setup(4, &s->ctx), 0);
	start_read(s, LARGE);
	settle(s);
	if (r->exec)
		must(execlp("true", "true", NULL));
	tell(r->up, 0);
	for (;;)
		pause();
}

/* The socket is the parent's as well, and goes on. */
static void survives(struct scene *s)
{
	wait_until(!counter("live_aio_reads"));
	send_all(s->p.c, 1, 0, 5000);
	recv_all(s->p.s, 1, 0, 5000);
}

static void process_killed(void)
{
	struct pipe_pair up = pipe_open();
	struct scene s;
	struct reader r = { .s = &s, .up = up.wr };
	pid_t pid;

	scene_open(&s);
	pid = spawn(wait_for_data, &r);
	hear(up.rd);
	must(kill(pid, SIGKILL));
	must_be(reap(pid), SIGKILL);
	survives(&s);
}

static void process_execs(void)
{
	struct scene s;
	struct reader r = { .s = &s, .exec = true };

	scene_open(&s);
	join(spawn(wait_for_data, &r));
	survives(&s);
}

/* The last process with the connection dies: its peer notices. */
static void connection_ends(void)
{
	struct pipe_pair up = pipe_open();
	struct scene s;
	struct reader r = { .s = &s, .up = up.wr };
	pid_t pid;

	scene_open(&s);
	pid = spawn(wait_for_data, &r);
	hear(up.rd);
	close(s.p.s);
	must(kill(pid, SIGKILL));
	must_be(reap(pid), SIGKILL);
	wait_io(s.p.c, POLLIN);
	must_be(recv(s.p.c, s.buf, 1, 0), 0);
}

static const struct e2e_case cases[] = {
	{ "read_waits", read_waits, .on = ON_BOTH, .before = needs_aio_reads },
	{ "large", large, .on = ON_BOTH, .before = needs_aio_reads },
	{ "there_already", there_already, .on = ON_BOTH | ON_TCP },
	{ "in_order", in_order, .on = ON_BOTH, .before = needs_aio_reads },
	{ "vectors", vectors, .on = ON_BOTH | ON_TCP },
	{ "vector_waits", vector_waits, .on = ON_BOTH, .before = needs_aio_reads },
	{ "vector_most", vector_most, .on = ON_BOTH, .before = needs_aio_reads },
	{ "vector_large", vector_large, .on = ON_BOTH, .before = needs_aio_reads },
	{ "vector_cancelled", vector_cancelled, .on = ON_BOTH, .before = needs_aio_reads },
	{ "vector_bad_memory", vector_bad_memory, .on = ON_BOTH, .before = needs_aio_reads },
	{ "writes", writes, .on = ON_BOTH | ON_TCP },
	{ "polls", polls, .on = ON_BOTH | ON_TCP },
	{ "tells_eventfd", tells_eventfd, .on = ON_BOTH, .before = needs_aio_reads },
	{ "nonblocking", nonblocking, .on = ON_BOTH | ON_TCP },
	{ "nowait", nowait, .on = ON_BOTH | ON_TCP },
	{ "timeout", timeout, .on = ON_BOTH | ON_TCP },
	{ "bad_memory", bad_memory, .on = ON_BOTH | ON_TCP },
	{ "no_memlock", no_memlock, .on = ON_BOTH, .before = needs_aio_reads },
	{ "eof", eof, .on = ON_BOTH, .before = needs_aio_reads },
	{ "reset", reset, .on = ON_BOTH, .before = needs_aio_reads },
	{ "shutdown_read", shutdown_read, .on = ON_BOTH, .before = needs_aio_reads },
	{ "closed_descriptor", closed_descriptor, .on = ON_BOTH, .before = needs_aio_reads },
	{ "cancel_advertised", cancel_advertised, .on = ON_BOTH, .before = needs_aio_reads },
	{ "cancel_small", cancel_small, .on = ON_BOTH, .before = needs_aio_reads },
	{ "cancel_meets_data", cancel_meets_data, .on = ON_BOTH, .before = needs_aio_reads },
	{ "destroy", destroy, .on = ON_BOTH, .before = needs_aio_reads },
	{ "destroy_meets_data", destroy_meets_data, .on = ON_BOTH, .before = needs_aio_reads },
	{ "process_killed", process_killed, .on = ON_BOTH, .before = needs_aio_reads },
	{ "process_execs", process_execs, .on = ON_BOTH, .before = needs_aio_reads },
	{ "connection_ends", connection_ends, .on = ON_BOTH, .before = needs_aio_reads },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
