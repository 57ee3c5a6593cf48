// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation failures, one after the other: the debug kernel lets the n-th
 * allocation of a task fail (/proc/self/fail-nth). Each call either succeeds or reports a lack of memory, and leaves
 * nothing behind.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/exs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NTH_MAX	400	/* no call here makes so many allocations */

static void write_text(const char *path, const char *text)
{
	int fd = must(open(path, O_WRONLY | O_CLOEXEC));

	must(write(fd, text, strlen(text)));
	close(fd);
}

/* Allocations that may sleep can fail, too; and no stack is printed for each. */
static void prepare(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", kinds[i]);
		write_text(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", kinds[i]);
		write_text(path, "0");
	}
	write_text("/sys/kernel/debug/fail_page_alloc/min-order", "0");
}

static int nth_fd = -1;
static bool armed, hit;

static void arm(int n)
{
	char text[16];

	if (nth_fd < 0)
		nth_fd = must(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC));
	snprintf(text, sizeof(text), "%d", n);
	must(pwrite(nth_fd, text, strlen(text), 0));
	armed = true;
	hit = false;
}

/*
 * Notes whether the failure was reached; none is pending afterwards. Copies to and from the program count, too, so
 * these very calls may fail.
 */
static void disarm(void)
{
	char text[16] = "";

	if (!armed)
		return;
	hit = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(nth_fd, "0", 1, 0) < 0)
		must_be(errno, EFAULT);
	armed = false;
}

static bool out_of_memory(int err)
{
	return err == ENOMEM || err == ENOBUFS || err == EAGAIN || err == ENFILE || err == EFAULT;
}

/*
 * Runs @call with the first allocation failing, then the second, ... until it
 * needs no more. @call: 0, or an errno; it may disarm() before it cleans up.
 */
static void every_failure(int (*call)(void *arg), void *arg)
{
	int n = 0, err;

	prepare();
	do {
		check(++n < NTH_MAX, "more than %d allocations", NTH_MAX);
		arm(n);
		err = call(arg);
		disarm();
		check(!err || (hit && out_of_memory(err)), "with allocation %d %s: %s", n,
		      hit ? "failing" : "to fail, which was not reached", errno_name(err));
	} while (hit);
	check(n > 1, "not one allocation could fail");
}

static int try_socket(void *arg)
{
	int fd = socket(e2e.family, e2e.type, 0), err = errno;

	(void)arg;
	if (fd < 0)
		return err;
	close(fd);
	return 0;
}

static void sockets(void)
{
	every_failure(try_socket, NULL);
}

/* provokes: exs_bind call ENOMEM; exs_listen call ENOMEM */
static int try_listen(void *arg)
{
	union address at = address_of(SERVER, 0);
	int fd = socket(e2e.family, e2e.type, 0), err = 0;

	(void)arg;
	if (fd < 0)
		return errno;
	if (bind(fd, &at.sa, address_len(&at)) || listen(fd, 4))
		err = errno;
	close(fd);
	return err;
}

static void listening(void)
{
	every_failure(try_listen, NULL);
}

static int listen_fd;
static union address listen_at;

/* A refused attempt may also report ECONNRESET. */
static int try_connect(void *arg)
{
	int fd = socket(e2e.family, e2e.type, 0), err = 0;

	(void)arg;
	if (fd < 0)
		return errno;
	if (connect(fd, &listen_at.sa, address_len(&listen_at)))
		err = errno;
	disarm();
	close(fd);
	while ((fd = accept(listen_fd, NULL, NULL)) >= 0)
		close(fd);
	return err == ECONNABORTED ? ENOMEM : err;
}

static void connecting(void)
{
	listen_fd = listener(64);
	listen_at = name_of(listen_fd);
	set_nonblock(listen_fd, true);
	every_failure(try_connect, NULL);
}

/*
 * Whether it fell back for want of memory. The layers below report it by other errnos, too, such as ENOBUFS, so there
 * may be other reasons.
 */
static bool fell_back(int fd)
{
	socklen_t len = sizeof(int);
	int why;

	must(getsockopt(fd, SOL_EXS, EXS_SO_FELL_BACK, &why, &len));
	return why == EXS_FELL_BACK_NOMEM;
}

static int fallbacks;

/* Where EXS has no memory, TCP may have some. */
static int try_fallback_listen(void *arg)
{
	int fd = socket(e2e.family, e2e.type, e2e.protocol), err = 0;
	union address at = address_of(SERVER, 0);

	(void)arg;
	if (fd < 0)
		return errno;
	if (bind(fd, &at.sa, address_len(&at)) || listen(fd, 4))
		err = errno;
	disarm();
	fallbacks += fell_back(fd);
	close(fd);
	return err;
}

static void fallback_listen(void)
{
	every_failure(try_fallback_listen, NULL);
	check(fallbacks, "it never fell back for want of memory");
	must_be(delta("fallback_nomem"), fallbacks);
}

static int try_queue(void *arg)
{
	exs_qhandle_t q = exs_qcreate(16);

	(void)arg;
	return q < 0 ? errno : exs_qdelete(q) ? errno : 0;
}

static void queues(void)
{
	every_failure(try_queue, NULL);
}

static int try_region(void *arg)
{
	exs_mhandle_t m = exs_mregister(arg, 64 * 4096, 0);

	return m < 0 ? errno : exs_mderegister(m) ? errno : 0;
}

static void regions(void)
{
	char *buf = pages(64 * 4096);

	memset(buf, 1, 64 * 4096);
	every_failure(try_region, buf);
}

struct transfer {
	struct pair p;
	exs_qhandle_t sq, rq;
	char *buf;
	size_t len;
	exs_mhandle_t m;
};

/* One message or piece of stream; an operation that did not start is started again without a failure. */
static int try_transfer(void *arg)
{
	struct transfer *t = arg;
	int err = 0;

	if (exs_recv(t->p.s, t->buf + t->len, t->len, MSG_WAITALL, t->rq, 1, t->m))
		return errno;
	if (exs_send(t->p.c, t->buf, t->len, 0, t->sq, 2, t->m))
		err = errno;
	disarm();
	if (err)
		start_send(t->p.c, t->buf, t->len, t->sq, 2, t->m);
	event_is(t->sq, EXS_EVT_SEND, 2, 0, t->len);
	event_is(t->rq, EXS_EVT_RECV, 1, 0, t->len);
	data_check(9, 0, t->buf + t->len, t->len);
	return err;
}

static void transfers_with(size_t len, bool registered)
{
	struct transfer t = { .len = len };

	pair_open(&t.p);
	t.sq = queue_new(4);
	t.rq = queue_new(4);
	t.buf = pages(2 * len);
	data_fill(9, 0, t.buf, len);
	t.m = registered ? region_new(t.buf, 2 * len, 0) : NO_REGION;
	every_failure(try_transfer, &t);
}

static void transfers_registered(void)
{
	transfers_with(100000, true);
}

static void transfers_unregistered(void)
{
	transfers_with(100000, false);
}

static void transfers_small(void)
{
	transfers_with(100, false);
}

/* Pieces at odd places, too many for memory keys; every other one is registered. */
#define PIECES	12
#define PIECE	5001

struct vectors {
	struct pair p;
	exs_qhandle_t sq, rq;
	exs_iovec_t out[PIECES], in[PIECES];
};

static int try_vectors(void *arg)
{
	struct vectors *v = arg;
	exs_msghdr_t out = { .msg_iov = v->out, .msg_iovlen = PIECES };
	exs_msghdr_t in = { .msg_iov = v->in, .msg_iovlen = PIECES };
	int i, err = 0;

	if (exs_recvmsg(v->p.s, &in, MSG_WAITALL, v->rq, 1))
		return errno;
	if (exs_sendmsg(v->p.c, &out, 0, v->sq, 2))
		err = errno;
	disarm();
	if (err)
		must(exs_sendmsg(v->p.c, &out, 0, v->sq, 2));
	event_is(v->sq, EXS_EVT_SENDMSG, 2, 0, PIECES * PIECE);
	event_is(v->rq, EXS_EVT_RECVMSG, 1, 0, PIECES * PIECE);
	for (i = 0; i < PIECES; i++)
		data_check(9, i * PIECE, v->in[i].iov_base, PIECE);
	return err;
}

static void vectors(void)
{
	char *buf = pages(2 * PIECES * (PIECE + 1));
	exs_mhandle_t m = region_new(buf, 2 * PIECES * (PIECE + 1), 0);
	struct vectors v = { .sq = queue_new(4), .rq = queue_new(4) };
	int i;

	pair_open(&v.p);
	for (i = 0; i < PIECES; i++, buf += 2 * (PIECE + 1)) {
		v.out[i] = (exs_iovec_t){ buf, PIECE, i % 2 ? m : NO_REGION };
		v.in[i] = (exs_iovec_t){ buf + PIECE + 1, PIECE, i % 2 ? m : NO_REGION };
		data_fill(9, i * PIECE, buf, PIECE);
	}
	every_failure(try_vectors, &v);
}

/* -- operations without memory: each is started once, and again without a failure */

struct started { int fd, listen_fd; exs_qhandle_t q; };

/* The event of the operation, if @ret says that it was started, perhaps after a cancellation; or @ret's errno. */
static int end_of(exs_qhandle_t q, int ret)
{
	int err = ret < 0 ? errno : 0;
	exs_event_t ev;

	disarm();
	if (err)
		return err;
	exs_cancel(q, -1, 0, 0);
	ev = event_next(q);
	no_event(q);
	return ev.exs_evt_errno == ECANCELED ? 0 : ev.exs_evt_errno;
}

static int try_accept(void *arg)
{
	const struct started *s = arg;

	return end_of(s->q, exs_accept(s->listen_fd, NULL, 0, s->q, 1));
}

static int try_poll(void *arg)
{
	const struct started *s = arg;
	exs_pollfd_t pfd = { .fd = s->fd, .events = EXS_POLLIN };

	return end_of(s->q, exs_poll(&pfd, 1, 0, s->q, 1));
}

static int try_close(void *arg)
{
	const struct started *s = arg;
	int fd = must(dup(s->fd)), err = end_of(s->q, exs_close(fd, 0, s->q, 1));

	if (err)
		must(close(fd));
	return err;
}

static int try_shutdown(void *arg)
{
	const struct started *s = arg;

	return end_of(s->q, exs_shutdown(s->fd, EXS_SHUT_WR, s->q, 1));
}

static int try_async_connect(void *arg)
{
	const struct started *s = arg;
	int fd = socket(e2e.family, e2e.type, 0), err;

	if (fd < 0)
		return errno;
	err = end_of(s->q, exs_connect(fd, &listen_at.sa, address_len(&listen_at), 0, s->q, 1));
	close(fd);
	while ((fd = accept(s->listen_fd, NULL, NULL)) >= 0)
		close(fd);
	return err == ECONNABORTED ? ENOMEM : err;
}

/* provokes: exs_accept call ENOMEM; exs_poll call ENOMEM; exs_close call ENOMEM */
/* provokes: exs_shutdown call ENOMEM; exs_connect call ENOMEM */
static void operations(void)
{
	struct started s = { .q = queue_new(4), .listen_fd = listener(64) };
	struct pair p;

	pair_from(&p, s.listen_fd);
	s.fd = p.c;
	listen_at = name_of(s.listen_fd);
	set_nonblock(s.listen_fd, true);
	every_failure(try_accept, &s);
	every_failure(try_poll, &s);
	every_failure(try_close, &s);
	every_failure(try_shutdown, &s);
	every_failure(try_async_connect, &s);
}

struct files {
	struct pair p;
	exs_qhandle_t q;
	exs_iovec_t header;
	exs_xferfile_t x;
};

static int try_files(void *arg)
{
	struct files *f = arg;
	char buf[PIECE + 8192];
	int err = 0;

	if (exs_sendfile(f->p.c, &f->x, 0, f->q, 1))
		err = errno;
	disarm();
	if (err)
		must(exs_sendfile(f->p.c, &f->x, 0, f->q, 1));
	must_be(recv(f->p.s, buf, sizeof(buf), MSG_WAITALL), sizeof(buf));
	data_check(9, 0, buf, PIECE);
	event_is(f->q, EXS_EVT_SENDFILE, 1, 0, sizeof(buf));
	return err;
}

static void files(void)
{
	struct files f = { .q = queue_new(4) };
	char *buf = pages(PIECE);

	pair_open(&f.p);
	data_fill(9, 0, buf, PIECE);
	f.header = (exs_iovec_t){ buf, PIECE, region_new(buf, PIECE, 0) };
	f.x = (exs_xferfile_t){ .xf_header = &f.header, .xf_headerlen = 1,
				.xf_file = { must(memfd_create("e2e", 0)), 0, 8192 } };
	must(ftruncate(f.x.xf_file.fd_file, 8192));
	every_failure(try_files, &f);
}

/* Bytes that send() took arrive, and no others. */
static int try_plain(void *arg)
{
	struct pair *p = arg;
	char buf[3000] = "";
	ssize_t n;

	n = send(p->c, buf, sizeof(buf), MSG_NOSIGNAL);
	if (n < 0)
		return errno;
	disarm();
	check(n == sizeof(buf) || !e2e.seq, "a message was cut to %zd bytes", n);
	must_be(recv(p->s, buf, n, MSG_WAITALL), n);
	return 0;
}

static void plain(void)
{
	struct pair p;

	pair_open(&p);
	every_failure(try_plain, &p);
	must_fail(recv(p.s, &p, 1, MSG_DONTWAIT), EAGAIN);
}

static const struct e2e_case cases[] = {
	{ "socket", sockets, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "listen", listening, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "connect", connecting, .on = ON_BOTH, .needs = NEEDS_FAULTS, .limit = 120 },
	{ "fallback_listen", fallback_listen, .on = ON_INET, .needs = NEEDS_FAULTS },
	{ "queue", queues, .on = ON_EXS, .needs = NEEDS_FAULTS },
	{ "region", regions, .on = ON_EXS, .needs = NEEDS_FAULTS },
	{ "transfers_registered", transfers_registered, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "transfers_unregistered", transfers_unregistered, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "transfers_small", transfers_small, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "vectors", vectors, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "operations", operations, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "files", files, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "plain", plain, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
