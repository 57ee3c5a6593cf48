// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring (liburing): calls that work on a TCP socket work here; a waiting request
 * never keeps a process from exiting.
 */
#include "lib/async.h"

#include <liburing.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE	(512 * 1024)

/* Newer than some headers. */
#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE	(1U << 3)
#define IORING_NOTIF_USAGE_ZC_COPIED	(1U << 31)
#endif

struct scene {
	struct pair p;
	struct io_uring ring;
	char *buf;
};

static void ring_open(struct scene *s)
{
	int err = io_uring_queue_init(32, &s->ring, 0);

	if (err == -EPERM || err == -ENOSYS)
		skip("no io_uring here: %s", errno_name(-err));
	check(!err, "io_uring_queue_init(): %s", errno_name(-err));
}

static void scene_open(struct scene *s)
{
	*s = (struct scene){ .buf = pages(LARGE) };
	pair_open(&s->p);
	ring_open(s);
}

static struct io_uring_sqe *request(struct scene *s, uint64_t name)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);

	check(sqe, "the submission queue is full");
	io_uring_sqe_set_data64(sqe, name);
	return sqe;
}

/* liburing clears the entry in prep: the name goes in afterwards. */
#define start(s, name, prep, ...)						\
	do {									\
		struct io_uring_sqe *new_sqe = request(s, 0);			\
										\
		io_uring_prep_##prep(new_sqe, ##__VA_ARGS__);			\
		io_uring_sqe_set_data64(new_sqe, name);				\
		must_be(io_uring_submit(&(s)->ring), 1);			\
	} while (0)

struct completion {
	uint64_t name;
	int res;
	unsigned int flags;
};

static struct completion next(struct scene *s)
{
	struct __kernel_timespec limit = { .tv_sec = limit_ms() / 1000 };
	struct io_uring_cqe *cqe;
	struct completion c;
	int err;

	do {
		err = io_uring_wait_cqe_timeout(&s->ring, &cqe, &limit);
	} while (err == -EINTR);
	check(!err, "waited in vain for a completion: %s", errno_name(-err));
	c = (struct completion){ cqe->user_data, cqe->res, cqe->flags };
	io_uring_cqe_seen(&s->ring, cqe);
	return c;
}

/* The next completion, which must be @name's; returns its result. */
static long result_of(struct scene *s, uint64_t name)
{
	struct completion c = next(s);

	check(c.name == name, "a completion of %lld (%d), not of %lld",
	      (long long)c.name, c.res, (long long)name);
	return c.res;
}

static void no_result(struct scene *s)
{
	struct io_uring_cqe *cqe;

	must_be(io_uring_peek_cqe(&s->ring, &cqe), -EAGAIN);
}

/* -- data */

static void recv_waits(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, recv, s.p.s, s.buf, 1000, 0);
	no_result(&s);
	data_fill(1, 0, s.buf + 4096, 1000);
	start(&s, 2, send, s.p.c, s.buf + 4096, 1000, 0);
	must_be(result_of(&s, 2), 1000);
	must_be(result_of(&s, 1), 1000);
	data_check(1, 0, s.buf, 1000);
}

static void read_waits(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, read, s.p.s, s.buf, 1000, 0);
	no_result(&s);
	data_fill(1, 0, s.buf + 4096, 1000);
	start(&s, 2, write, s.p.c, s.buf + 4096, 1000, 0);
	must_be(result_of(&s, 2), 1000);
	must_be(result_of(&s, 1), 1000);
	data_check(1, 0, s.buf, 1000);
}

/* By a worker: it waits by readiness, too. */
static void read_by_worker(void)
{
	struct io_uring_sqe *sqe;
	struct scene s;

	scene_open(&s);
	sqe = request(&s, 0);
	io_uring_prep_read(sqe, s.p.s, s.buf, 1000, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
	io_uring_sqe_set_data64(sqe, 1);
	must_be(io_uring_submit(&s.ring), 1);
	send_all(s.p.c, 1, 0, 1000);
	must_be(result_of(&s, 1), 1000);
	data_check(1, 0, s.buf, 1000);
}

static void vectors(void)
{
	struct iovec in[2], out[3];
	struct scene s;
	char data[3000];

	scene_open(&s);
	data_fill(1, 0, data, sizeof(data));
	out[0] = (struct iovec){ data, 1 };
	out[1] = (struct iovec){ data + 1, 999 };
	out[2] = (struct iovec){ data + 1000, 2000 };
	in[0] = (struct iovec){ s.buf, 1500 };
	in[1] = (struct iovec){ s.buf + 1500, 1500 };
	start(&s, 1, readv, s.p.s, in, 2, 0);
	start(&s, 2, writev, s.p.c, out, 3, 0);
	must_be(result_of(&s, 2), 3000);
	must_be(result_of(&s, 1), 3000);
	data_check(1, 0, s.buf, 3000);
}

static void messages(void)
{
	char control[64];
	struct scene s;
	struct iovec in, out;
	struct msghdr get = { .msg_iov = &in, .msg_iovlen = 1 };
	struct msghdr put = { .msg_iov = &out, .msg_iovlen = 1 };

	scene_open(&s);
	data_fill(1, 0, s.buf + 4096, 500);
	in = (struct iovec){ s.buf, 500 };
	out = (struct iovec){ s.buf + 4096, 500 };
	get.msg_control = control;
	get.msg_controllen = sizeof(control);
	start(&s, 1, recvmsg, s.p.s, &get, 0);
	start(&s, 2, sendmsg, s.p.c, &put, 0);
	must_be(result_of(&s, 2), 500);
	must_be(result_of(&s, 1), 500);
	must_be(get.msg_controllen, 0);
	data_check(1, 0, s.buf, 500);
}

/* Memory that the ring registered. */
static void fixed_buffers(void)
{
	struct iovec all;
	struct scene s;

	scene_open(&s);
	all = (struct iovec){ s.buf, LARGE };
	must_be(io_uring_register_buffers(&s.ring, &all, 1), 0);
	data_fill(1, 0, s.buf + 100000, 30000);
	start(&s, 1, read_fixed, s.p.s, s.buf + 7, 30000, 0, 0);
	start(&s, 2, write_fixed, s.p.c, s.buf + 100000, 30000, 0, 0);
	must_be(result_of(&s, 2), 30000);
	must_be(result_of(&s, 1), 30000);
	data_check(1, 0, s.buf + 7, 30000);
}

/* More than any buffer holds: the sender waits for the reader, again and again. */
static void large(void)
{
	size_t sent = 0, got = 0, half = LARGE / 2, total = 4 * MIB;
	struct completion c;
	struct scene s;

	scene_open(&s);
	data_fill(1, 0, s.buf, half);
	start(&s, 1, send, s.p.c, s.buf, half, 0);
	start(&s, 2, recv, s.p.s, s.buf + half, half, 0);
	/* A send may have been taken before its completion is there. */
	while (got < total || sent < total) {
		c = next(&s);
		check(c.res > 0, "%s ended with %d", c.name == 1 ? "send" : "recv", c.res);
		if (c.name == 2) {
			data_check(1, got, s.buf + half, c.res);
			got += c.res;
			if (got < total)
				start(&s, 2, recv, s.p.s, s.buf + half, half, 0);
			continue;
		}
		sent += c.res;
		data_fill(1, sent, s.buf, half);
		if (sent < total)
			start(&s, 1, send, s.p.c, s.buf, total - sent < half ? total - sent : half, 0);
	}
	must_be(sent, total);
}

/* One request, many receives, in buffers that io_uring chooses. */
static void multishot(void)
{
	struct io_uring_sqe *sqe;
	struct completion c;
	struct scene s;
	int i;

	scene_open(&s);
	start(&s, 9, provide_buffers, s.buf, 4096, 16, 1, 0);
	must_be(result_of(&s, 9), 0);
	sqe = request(&s, 0);
	io_uring_prep_recv_multishot(sqe, s.p.s, NULL, 0, 0);
	sqe->buf_group = 1;
	io_uring_sqe_set_flags(sqe, IOSQE_BUFFER_SELECT);
	io_uring_sqe_set_data64(sqe, 1);
	must_be(io_uring_submit(&s.ring), 1);
	for (i = 0; i < 5; i++) {
		send_all(s.p.c, 1, i * 100, 100);
		c = next(&s);
		must_be(c.res, 100);
		check(c.flags & IORING_CQE_F_MORE && c.flags & IORING_CQE_F_BUFFER, "flags %#x", c.flags);
		data_check(1, i * 100, s.buf + (c.flags >> IORING_CQE_BUFFER_SHIFT) * 4096, 100);
	}
	must(shutdown(s.p.c, SHUT_WR));
	c = next(&s);
	must_be(c.res, 0);
	check(!(c.flags & IORING_CQE_F_MORE), "more is said to follow the end");
}

/* -- sends that are not copied: a completion when they are taken, another when the memory is free */

/* The first: bytes. */
static long taken_of(struct scene *s, uint64_t name)
{
	struct completion c = next(s);

	check(c.name == name && !(c.flags & IORING_CQE_F_NOTIF), "a completion of %lld, flags %#x",
	      (long long)c.name, c.flags);
	check(c.res < 0 || c.flags & IORING_CQE_F_MORE, "nothing follows %d", c.res);
	return c.res;
}

/* The second: what it reports. */
static int freed_of(struct scene *s, uint64_t name)
{
	struct completion c = next(s);

	check(c.name == name && c.flags & IORING_CQE_F_NOTIF, "a completion of %lld (%d), flags %#x",
	      (long long)c.name, c.res, c.flags);
	return c.res;
}

/* A failure may have a second one, too. */
static void must_not_be_taken(struct scene *s, uint64_t name, int err)
{
	struct completion c = next(s);

	check(c.name == name && c.res == -err, "a completion of %lld (%d)", (long long)c.name, c.res);
	if (c.flags & IORING_CQE_F_MORE)
		freed_of(s, name);
}

/* The next @len bytes, or the message. The ring's work interrupts a recv() of a whole stream. */
static void take(struct scene *s, uint64_t pos, size_t len)
{
	char *in;

	if (!e2e.seq) {
		recv_all(s->p.s, 1, pos, len);
		return;
	}
	in = pages(len);
	must_be(recv(s->p.s, in, len, 0), len);
	data_check(1, pos, in, len);
}

static void send_large(struct scene *s)
{
	data_fill(1, 0, s->buf, LARGE);
	start(s, 1, send_zc, s->p.c, s->buf, LARGE, 0, 0);
	must_be(taken_of(s, 1), LARGE);
}

/* It is not with the peer, which does not have enough room for it. */
static void not_free_yet(struct scene *s)
{
	no_result(s);
	must_be(delta("zerocopy_bytes"), LARGE);
	must_be(counter("live_pinned_pages"), LARGE / 4096);
}

static void zerocopy(void)
{
	struct scene s;

	scene_open(&s);
	send_large(&s);
	not_free_yet(&s);
	take(&s, 0, LARGE);
	must_be(freed_of(&s, 1), 0);
	must_be(counter("live_pinned_pages"), 0);
	must_be(delta("zerocopy_unpinned"), 0);
}

/* Straight into the memory of the reader that waits. */
static void zerocopy_direct(void)
{
	exs_qhandle_t q = queue_new(4);
	char *in = pages(LARGE);
	struct scene s;
	char byte;

	scene_open(&s);
	start_recv(s.p.s, in, LARGE, e2e.seq ? 0 : MSG_WAITALL, q, 7, NO_REGION);
	must_be(send(s.p.s, "!", 1, 0), 1);
	must_be(recv(s.p.c, &byte, 1, 0), 1);
	send_large(&s);
	event_is(q, EXS_EVT_RECV, 7, 0, LARGE);
	must_be(freed_of(&s, 1), 0);
	data_check(1, 0, in, LARGE);
	must_be(delta("direct_tx_bytes"), LARGE);
}

/* Not worth it: copied, and so free at once. */
static void zerocopy_small(void)
{
	struct scene s;

	scene_open(&s);
	data_fill(1, 0, s.buf, 1000);
	start(&s, 1, send_zc, s.p.c, s.buf, 1000, 0, 0);
	must_be(taken_of(&s, 1), 1000);
	must_be(freed_of(&s, 1), 0);
	must_be(delta("zerocopy_bytes"), 0);
	recv_all(s.p.s, 1, 0, 1000);
}

/* Which of the two it was. */
static void zerocopy_reports(void)
{
	struct scene s;
	long n;

	scene_open(&s);
	data_fill(1, 0, s.buf, LARGE);
	start(&s, 1, send_zc, s.p.c, s.buf, 100, 0, IORING_SEND_ZC_REPORT_USAGE);
	n = next(&s).res;
	if (n == -EINVAL)
		skip("this kernel does not report it");
	must_be(n, 100);
	must_be(freed_of(&s, 1), (int)IORING_NOTIF_USAGE_ZC_COPIED);
	recv_all(s.p.s, 1, 0, 100);
	start(&s, 2, send_zc, s.p.c, s.buf, LARGE, 0, IORING_SEND_ZC_REPORT_USAGE);
	must_be(taken_of(&s, 2), LARGE);
	take(&s, 0, LARGE);
	must_be(freed_of(&s, 2), 0);
}

/* The flag alone, which wants another notification, means nothing. */
static void zerocopy_flag(void)
{
	struct scene s;

	scene_open(&s);
	data_fill(1, 0, s.buf, 40000);
	must_be(send(s.p.c, s.buf, 40000, MSG_ZEROCOPY), 40000);
	take(&s, 0, 40000);
	if (!e2e.tcp)
		must_be(delta("zerocopy_bytes"), 0);
}

static void zerocopy_vector(void)
{
	struct iovec out[4];
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 4 };
	struct scene s;

	scene_open(&s);
	data_fill(1, 0, s.buf, 40000);
	out[0] = (struct iovec){ s.buf, 5 };
	out[1] = (struct iovec){ NULL, 0 };
	out[2] = (struct iovec){ s.buf + 5, 30000 };
	out[3] = (struct iovec){ s.buf + 30005, 9995 };
	start(&s, 1, sendmsg_zc, s.p.c, &msg, 0);
	must_be(taken_of(&s, 1), 40000);
	take(&s, 0, 40000);
	freed_of(&s, 1);
	if (!e2e.tcp)
		must_be(delta("zerocopy_bytes"), 40000);
}

/* Pages that the ring has pinned are not pinned again. */
static void zerocopy_fixed(void)
{
	struct iovec all;
	struct scene s;

	scene_open(&s);
	all = (struct iovec){ s.buf, LARGE };
	must_be(io_uring_register_buffers(&s.ring, &all, 1), 0);
	data_fill(1, 5001, s.buf + 5001, LARGE - 5001);
	start(&s, 1, send_zc_fixed, s.p.c, s.buf + 5001, LARGE - 5001, 0, 0, 0);
	must_be(taken_of(&s, 1), LARGE - 5001);
	if (!e2e.tcp)
		must_be(counter("live_regions"), 0);
	take(&s, 5001, LARGE - 5001);
	freed_of(&s, 1);
	if (!e2e.tcp)
		must_be(delta("zerocopy_bytes"), LARGE - 5001);
}

/* More than is sent at once: the request goes on where it stopped. */
static void zerocopy_waitall(void)
{
	size_t len = 8 * MIB + 100000;
	char *out = pages(len);
	struct scene s;

	scene_open(&s);
	data_fill(1, 0, out, len);
	start(&s, 1, send_zc, s.p.c, out, len, MSG_WAITALL, 0);
	recv_all(s.p.s, 1, 0, len);
	must_be(taken_of(&s, 1), len);
	must_be(freed_of(&s, 1), 0);
	must_be(delta("zerocopy_bytes"), len);
}

/* Among other sends of all kinds. */
static void zerocopy_in_order(void)
{
	exs_qhandle_t q = queue_new(4);
	struct completion c;
	struct scene s;
	int i;

	scene_open(&s);
	data_fill(1, 0, s.buf, LARGE);
	must_be(send(s.p.c, s.buf, 1000, 0), 1000);
	start(&s, 1, send_zc, s.p.c, s.buf + 1000, 99000, 0, 0);
	must_be(taken_of(&s, 1), 99000);
	start_send(s.p.c, s.buf + 100000, 100000, q, 7, NO_REGION);
	start(&s, 2, send_zc, s.p.c, s.buf + 200000, 100, 0, 0);
	take(&s, 0, 1000);
	take(&s, 1000, 99000);
	take(&s, 100000, 100000);
	take(&s, 200000, 100);
	/* The ring may have had room for the first one all the time. */
	for (i = 0; i < 3; i++) {
		c = next(&s);
		must_be(c.res, c.flags & IORING_CQE_F_NOTIF ? 0 : 100);
	}
	event_is(q, EXS_EVT_SEND, 7, 0, 100000);
}

/* The send buffer's size bounds it, and poll() knows when there is room. */
static void zerocopy_bounded(void)
{
	struct scene s;

	scene_open(&s);
	must_be(poll_now(s.p.c, POLLOUT), POLLOUT);
	send_large(&s);
	start(&s, 2, send_zc, s.p.c, s.buf, LARGE, MSG_DONTWAIT, 0);
	must_not_be_taken(&s, 2, EAGAIN);
	must_be(poll_now(s.p.c, POLLOUT), 0);
	take(&s, 0, LARGE);
	must_be(freed_of(&s, 1), 0);
	wait_io(s.p.c, POLLOUT);
	start(&s, 3, send_zc, s.p.c, s.buf, LARGE, MSG_DONTWAIT, 0);
	must_be(taken_of(&s, 3), LARGE);
	take(&s, 0, LARGE);
	must_be(freed_of(&s, 3), 0);
}

/* A request that may wait does so. */
static void zerocopy_waits(void)
{
	struct completion c;
	struct scene s;
	int i;

	scene_open(&s);
	send_large(&s);
	start(&s, 2, send_zc, s.p.c, s.buf, LARGE, 0, 0);
	not_free_yet(&s);
	take(&s, 0, LARGE);
	for (i = 0; i < 2; i++) {
		c = next(&s);
		must_be(c.res, c.name == 1 ? 0 : LARGE);
	}
	take(&s, 0, LARGE);
	must_be(freed_of(&s, 2), 0);
}

static void without_memlock(void)
{
	struct rlimit none = { 0 };

	must(setrlimit(RLIMIT_MEMLOCK, &none));
	drop_privileges();
}

/* Memory that must not be pinned is copied, and so free at once. */
static void zerocopy_no_memlock(void)
{
	struct scene s;

	scene_open(&s);
	without_memlock();
	data_fill(1, 0, s.buf, LARGE);
	start(&s, 1, send_zc, s.p.c, s.buf, LARGE, MSG_WAITALL, 0);
	take(&s, 0, LARGE);
	must_be(taken_of(&s, 1), LARGE);
	must_be(freed_of(&s, 1), 0);
	check(delta("zerocopy_unpinned") > 0, "it was pinned");
	must_be(delta("zerocopy_bytes"), 0);
}

/* Then the send buffer's size bounds it as it does send(2). */
static void zerocopy_copied_bounded(void)
{
	size_t len = 8 * MIB;
	char *out = pages(len);
	struct scene s;
	long n;

	scene_open(&s);
	without_memlock();
	data_fill(1, 0, out, len);
	start(&s, 1, send_zc, s.p.c, out, len, MSG_DONTWAIT, 0);
	n = taken_of(&s, 1);
	check(n > 0 && n < 2 * MIB, "%ld bytes were copied", n);
	must_be(freed_of(&s, 1), 0);
	recv_all(s.p.s, 1, 0, n);
}

/* The readable bytes are sent, as by send(2). */
static void zerocopy_bad_tail(void)
{
	const size_t len = 128 << 10;
	struct scene s;
	long n;

	scene_open(&s);
	data_fill(1, 0, s.buf, len);
	must(munmap(s.buf + len - 4096, 4096));
	start(&s, 1, send_zc, s.p.c, s.buf, len, 0, 0);
	n = taken_of(&s, 1);
	check(n > 0 && n < (long)len, "%ld bytes were sent", n);
	must_be(freed_of(&s, 1), 0);
	recv_all(s.p.s, 1, 0, n);
}

/* Pinning costs by the piece. */
static void zerocopy_scraps(void)
{
	enum { N = 100, SCRAP = 300 };
	struct iovec out[N];
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = N };
	struct scene s;
	int i;

	scene_open(&s);
	data_fill(1, 0, s.buf, N * SCRAP);
	for (i = 0; i < N; i++)
		out[i] = (struct iovec){ s.buf + i * SCRAP, SCRAP };
	start(&s, 1, sendmsg_zc, s.p.c, &msg, 0);
	must_be(taken_of(&s, 1), N * SCRAP);
	must_be(freed_of(&s, 1), 0);
	must_be(delta("zerocopy_bytes"), 0);
	take(&s, 0, N * SCRAP);
}

static void zerocopy_bad_memory(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, send_zc, s.p.c, NULL, LARGE, 0, 0);
	must_not_be_taken(&s, 1, EFAULT);
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

static void zerocopy_reset(void)
{
	struct linger now = { .l_onoff = 1 };
	struct scene s;

	scene_open(&s);
	send_large(&s);
	not_free_yet(&s);
	must(setsockopt(s.p.s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	close(s.p.s);
	must_be(freed_of(&s, 1), 0);
	must_be(counter("live_pinned_pages"), 0);
	wait_io(s.p.c, POLLERR);
	must_be(so_error(s.p.c), ECONNRESET);
}

/* Unsent bytes outlive the socket. */
static void zerocopy_closed(void)
{
	struct scene s;

	scene_open(&s);
	send_large(&s);
	close(s.p.c);
	not_free_yet(&s);
	take(&s, 0, LARGE);
	must_be(recv(s.p.s, s.buf, 1, 0), 0);
	must_be(freed_of(&s, 1), 0);
}

static void zerocopy_aborted(void)
{
	struct linger now = { .l_onoff = 1 };
	struct scene s;

	scene_open(&s);
	send_large(&s);
	not_free_yet(&s);
	must(setsockopt(s.p.c, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	close(s.p.c);
	must_be(freed_of(&s, 1), 0);
	must_be(counter("live_pinned_pages"), 0);
}

struct zc_sender {
	struct scene *s;
	int up;
};

static void send_and_wait(void *arg)
{
	struct zc_sender *z = arg;

	ring_open(z->s);
	send_large(z->s);
	tell(z->up, 0);
	for (;;)
		pause();
}

/* The last holder of the socket: its sends arrive, although no process has the memory. */
static void zerocopy_killed(void)
{
	struct pipe_pair up = pipe_open();
	struct scene s;
	struct zc_sender z = { .s = &s, .up = up.wr };
	pid_t pid;

	scene_open(&s);
	pid = spawn(send_and_wait, &z);
	hear(up.rd);
	close(s.p.c);
	must(kill(pid, SIGKILL));
	must_be(reap(pid), SIGKILL);
	not_free_yet(&s);
	take(&s, 0, LARGE);
	must_be(recv(s.p.s, s.buf, 1, 0), 0);
	wait_until(!counter("live_pinned_pages"));
}

/* The same, but the peer never reads: it ends when the connection does. */
static void zerocopy_killed_in_vain(void)
{
	struct pipe_pair up = pipe_open();
	struct scene s;
	struct zc_sender z = { .s = &s, .up = up.wr };
	pid_t pid;

	write_sysctl("linger", 50);
	scene_open(&s);
	pid = spawn(send_and_wait, &z);
	hear(up.rd);
	close(s.p.c);
	must(kill(pid, SIGKILL));
	must_be(reap(pid), SIGKILL);
	wait_delta("linger_expired", 1);
	wait_until(!counter("live_pinned_pages"));
}

/* exec() waits for the memory to be free: it is, as soon as the peer has the bytes. */
static void send_and_exec(void *arg)
{
	struct zc_sender *z = arg;

	ring_open(z->s);
	send_large(z->s);
	tell(z->up, 0);
	must(execlp("true", "true", NULL));
}

static void zerocopy_execs(void)
{
	struct pipe_pair up = pipe_open();
	struct scene s;
	struct zc_sender z = { .s = &s, .up = up.wr };
	pid_t pid;

	scene_open(&s);
	pid = spawn(send_and_exec, &z);
	hear(up.rd);
	take(&s, 0, LARGE);
	join(pid);
	wait_until(!counter("live_pinned_pages"));
}

/* -- connections */

static void connects(void)
{
	struct scene s = { .buf = pages(4096) };
	int lfd = listener(8), fd = new_socket(), child;
	union address at = name_of(lfd), from;
	socklen_t len = sizeof(from);

	ring_open(&s);
	start(&s, 1, accept, lfd, &from.sa, &len, SOCK_CLOEXEC);
	no_result(&s);
	start(&s, 2, connect, fd, &at.sa, address_len(&at));
	if (next(&s).res < 0)
		fail("the first of the two failed");
	child = next(&s).res;
	if (child < 0)
		fail("the second of the two: %s", errno_name(-child));
	must_be(so_error(fd), 0);
}

static void connects_and_talks(void)
{
	struct scene s = { .buf = pages(4096) };
	int lfd = listener(8), fd = new_socket();
	union address at = name_of(lfd);

	ring_open(&s);
	start(&s, 1, connect, fd, &at.sa, address_len(&at));
	must_be(result_of(&s, 1), 0);
	start(&s, 2, accept, lfd, NULL, NULL, 0);
	s.p.s = result_of(&s, 2);
	check(s.p.s >= 0, "accept: %s", errno_name(-s.p.s));
	send_all(fd, 1, 0, 1000);
	recv_all(s.p.s, 1, 0, 1000);
	start(&s, 3, shutdown, fd, SHUT_WR);
	must_be(result_of(&s, 3), 0);
	start(&s, 4, read, s.p.s, s.buf, 1, 0);
	must_be(result_of(&s, 4), 0);
	start(&s, 5, close, fd);
	must_be(result_of(&s, 5), 0);
}

static void connect_refused(void)
{
	struct scene s = { 0 };
	int lfd = listener(8), fd = new_socket();
	union address at = name_of(lfd);

	ring_open(&s);
	close(lfd);
	start(&s, 1, connect, fd, &at.sa, address_len(&at));
	must_be(result_of(&s, 1), -ECONNREFUSED);
}

static void accept_multishot(void)
{
	struct scene s = { 0 };
	struct completion c;
	int lfd = listener(8), i;

	ring_open(&s);
	start(&s, 1, multishot_accept, lfd, NULL, NULL, 0);
	for (i = 0; i < 3; i++) {
		client_of(lfd);
		c = next(&s);
		check(c.res >= 0 && c.flags & IORING_CQE_F_MORE, "res %d, flags %#x", c.res, c.flags);
	}
}

static void polls(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, poll_add, s.p.s, POLLIN);
	no_result(&s);
	must_be(send(s.p.c, "x", 1, 0), 1);
	must_be(result_of(&s, 1), POLLIN);
	start(&s, 2, poll_add, s.p.s, POLLOUT);
	must_be(result_of(&s, 2), POLLOUT);
}

/* -- ends */

static void nonblocking(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, recv, s.p.s, s.buf, 100, MSG_DONTWAIT);
	must_be(result_of(&s, 1), -EAGAIN);
}

static void cancel(struct scene *s)
{
	struct completion c;
	int i;

	no_result(s);
	start(s, 2, cancel64, 1, 0);
	for (i = 0; i < 2; i++) {
		c = next(s);
		must_be(c.res, c.name == 1 ? -ECANCELED : 0);
	}
	send_all(s->p.c, 1, 0, 100);
	recv_all(s->p.s, 1, 0, 100);
}

static void cancel_read(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, read, s.p.s, s.buf, LARGE, 0);
	cancel(&s);
}

static void cancel_recv(void)
{
	struct scene s;

	scene_open(&s);
	start(&s, 1, recv, s.p.s, s.buf, LARGE, 0);
	cancel(&s);
}

static void linked_timeout(void)
{
	struct __kernel_timespec soon = { .tv_nsec = 20000000 };
	struct io_uring_sqe *sqe;
	struct completion c;
	struct scene s;
	int i;

	scene_open(&s);
	sqe = request(&s, 0);
	io_uring_prep_read(sqe, s.p.s, s.buf, LARGE, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK);
	io_uring_sqe_set_data64(sqe, 1);
	sqe = request(&s, 0);
	io_uring_prep_link_timeout(sqe, &soon, 0);
	io_uring_sqe_set_data64(sqe, 2);
	must_be(io_uring_submit(&s.ring), 2);
	for (i = 0; i < 2; i++) {
		c = next(&s);
		if (c.name == 1)
			must_be(c.res, -ECANCELED);
	}
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

static void ring_closed(void)
{
	struct pipe_pair held = pipe_open();
	struct scene s;

	scene_open(&s);
	/* The ring has this end alone, until all of its requests are over: newer kernels leave them to a worker. */
	must_be(io_uring_register_files(&s.ring, &held.wr, 1), 0);
	close(held.wr);
	start(&s, 1, read, s.p.s, s.buf, LARGE, 0);
	start(&s, 2, recv, s.p.s, s.buf, LARGE, 0);
	io_uring_queue_exit(&s.ring);
	wait_io(held.rd, POLLHUP);
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

struct reader {
	struct scene *s;
	int up;
	bool exec;
};

static void wait_for_data(void *arg)
{
	struct reader *r = arg;

	ring_open(r->s);
	start(r->s, 1, read, r->s->p.s, r->s->buf, LARGE, 0);
	start(r->s, 2, recv, r->s->p.s, r->s->buf, LARGE, 0);
	if (r->exec)
		must(execlp("true", "true", NULL));
	tell(r->up, 0);
	for (;;)
		pause();
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
	close(s.p.s);
	must(kill(pid, SIGKILL));
	must_be(reap(pid), SIGKILL);
	wait_io(s.p.c, POLLIN);
	must_be(recv(s.p.c, s.buf, 1, 0), 0);
}

static void process_execs(void)
{
	struct scene s;
	struct reader r = { .s = &s, .exec = true };

	scene_open(&s);
	join(spawn(wait_for_data, &r));
	send_all(s.p.c, 1, 0, 100);
	recv_all(s.p.s, 1, 0, 100);
}

/* Its peer's kernel sends a lot meanwhile, but nothing that can be read. */
static void polls_for_input(void)
{
	struct scene s;
	int i;

	scene_open(&s);
	start(&s, 1, poll_add, s.p.c, POLLIN);
	for (i = 0; i < 40; i++) {
		must_be(send(s.p.c, s.buf, 1000, 0), 1000);
		must_be(recv(s.p.s, s.buf, 1000, MSG_WAITALL), 1000);
	}
	no_result(&s);
	must_be(send(s.p.s, "x", 1, 0), 1);
	must_be(result_of(&s, 1), POLLIN);
	must_be(recv(s.p.c, s.buf, 1, MSG_DONTWAIT), 1);
}

/* Another limit, but not one that makes room. */
static void polls_for_room(void)
{
	struct scene s;
	size_t n;

	scene_open(&s);
	n = send_until_full(s.p.c, 1);
	start(&s, 1, poll_add, s.p.c, POLLOUT);
	set_int(s.p.c, SOL_SOCKET, SO_SNDBUF, 16384);
	no_result(&s);
	recv_all(s.p.s, 1, 0, n);
	must_be(result_of(&s, 1), POLLOUT);
	must_be(send(s.p.c, "x", 1, MSG_DONTWAIT), 1);
}

static const struct e2e_case cases[] = {
	{ "recv_waits", recv_waits, .on = ON_BOTH | ON_TCP },
	{ "read_waits", read_waits, .on = ON_BOTH | ON_TCP },
	{ "read_by_worker", read_by_worker, .on = ON_BOTH | ON_TCP },
	{ "vectors", vectors, .on = ON_BOTH | ON_TCP },
	{ "messages", messages, .on = ON_BOTH | ON_TCP },
	{ "fixed_buffers", fixed_buffers, .on = ON_BOTH | ON_TCP },
	{ "large", large, .on = ON_BOTH | ON_TCP },
	{ "zerocopy", zerocopy, .on = ON_BOTH },
	{ "zerocopy_direct", zerocopy_direct, .on = ON_BOTH },
	{ "zerocopy_small", zerocopy_small, .on = ON_BOTH },
	{ "zerocopy_reports", zerocopy_reports, .on = ON_BOTH },
	{ "zerocopy_flag", zerocopy_flag, .on = ON_BOTH | ON_TCP },
	{ "zerocopy_vector", zerocopy_vector, .on = ON_BOTH | ON_TCP },
	{ "zerocopy_fixed", zerocopy_fixed, .on = ON_BOTH | ON_TCP },
	{ "zerocopy_waitall", zerocopy_waitall, .on = ON_STREAM },
	{ "zerocopy_in_order", zerocopy_in_order, .on = ON_BOTH },
	{ "zerocopy_bounded", zerocopy_bounded, .on = ON_BOTH },
	{ "zerocopy_waits", zerocopy_waits, .on = ON_BOTH },
	{ "zerocopy_no_memlock", zerocopy_no_memlock, .on = ON_BOTH },
	{ "zerocopy_copied_bounded", zerocopy_copied_bounded, .on = ON_STREAM },
	{ "zerocopy_bad_tail", zerocopy_bad_tail, .on = ON_STREAM },
	{ "zerocopy_scraps", zerocopy_scraps, .on = ON_BOTH },
	{ "zerocopy_bad_memory", zerocopy_bad_memory, .on = ON_BOTH | ON_TCP },
	{ "zerocopy_reset", zerocopy_reset, .on = ON_BOTH },
	{ "zerocopy_closed", zerocopy_closed, .on = ON_BOTH },
	{ "zerocopy_aborted", zerocopy_aborted, .on = ON_BOTH },
	{ "zerocopy_killed", zerocopy_killed, .on = ON_BOTH },
	{ "zerocopy_killed_in_vain", zerocopy_killed_in_vain, .on = ON_BOTH },
	{ "zerocopy_execs", zerocopy_execs, .on = ON_BOTH },
	{ "multishot", multishot, .on = ON_BOTH | ON_TCP },
	{ "connects", connects, .on = ON_BOTH | ON_TCP },
	{ "connects_and_talks", connects_and_talks, .on = ON_BOTH | ON_TCP },
	{ "connect_refused", connect_refused, .on = ON_BOTH | ON_TCP },
	{ "accept_multishot", accept_multishot, .on = ON_BOTH | ON_TCP },
	{ "polls", polls, .on = ON_BOTH | ON_TCP },
	{ "polls_for_input", polls_for_input, .on = ON_BOTH | ON_TCP },
	{ "polls_for_room", polls_for_room, .on = ON_STREAM },
	{ "nonblocking", nonblocking, .on = ON_BOTH | ON_TCP },
	{ "cancel_read", cancel_read, .on = ON_BOTH | ON_TCP },
	{ "cancel_recv", cancel_recv, .on = ON_BOTH | ON_TCP },
	{ "linked_timeout", linked_timeout, .on = ON_BOTH | ON_TCP },
	{ "ring_closed", ring_closed, .on = ON_BOTH | ON_TCP },
	{ "process_killed", process_killed, .on = ON_BOTH | ON_TCP },
	{ "process_execs", process_execs, .on = ON_BOTH | ON_TCP },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
