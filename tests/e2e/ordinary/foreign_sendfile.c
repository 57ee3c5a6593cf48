// SPDX-License-Identifier: GPL-2.0
/* exs_sendfile(), and exs_sendmsg() with EXS_FDVEC, on ordinary sockets. */
#include "lib/file.h"
#include "lib/kinds.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Seeds: of the file, the header, the trailer. */
enum { FILE_SEED = 1000, HEAD_SEED = 1, TAIL_SEED = 2 };
/* BIG is several pieces, and more than sockets with so small buffers take without a reader. */
enum { TEXT = 4096, BUFFER = 65536, BIG = 2 * MIB + 77, MESSAGE = 40000 };

/* A connection whose sending end has a file, and memory for header and trailer. */
struct flow {
	const struct kind *k;
	struct pair p;
	exs_qhandle_t q;
	int file;
	char *text;
	exs_mhandle_t m;
	exs_iovec_t header[2], trailer;
	exs_xferfile_t x;
};

static char in[2 * MESSAGE];

static void flow_open(struct flow *f, const struct kind *k, size_t len)
{
	f->k = k;
	kind_pair(k, &f->p);
	if (kind_is_stream(k)) {
		set_int(f->p.c, SOL_SOCKET, SO_SNDBUF, BUFFER);
		set_int(f->p.s, SOL_SOCKET, SO_RCVBUF, BUFFER);
	}
	f->q = queue_new(64);
	f->file = file_new(FILE_SEED, len);
	f->text = pages(2 * TEXT);
	f->m = region_new(f->text, 2 * TEXT, EXS_ACCESS_READ);
	data_fill(HEAD_SEED, 0, f->text, TEXT);
	data_fill(TAIL_SEED, 0, f->text + TEXT, TEXT);
}

/* Half of the header is registered, the trailer not. */
static void set(struct flow *f, size_t header, size_t off, size_t len, size_t trailer)
{
	f->header[0] = (exs_iovec_t){ f->text, header / 2, NO_REGION };
	f->header[1] = (exs_iovec_t){ f->text + header / 2, header - header / 2, f->m };
	f->trailer = (exs_iovec_t){ f->text + TEXT, trailer, NO_REGION };
	f->x = (exs_xferfile_t){
		.xf_header = f->header, .xf_headerlen = header ? 2 : 0,
		.xf_file = { f->file, off, len },
		.xf_trailer = &f->trailer, .xf_trailerlen = trailer ? 1 : 0,
	};
}

static void start(struct flow *f, int flags, exs_ahandle_t h)
{
	must(exs_sendfile(f->p.c, &f->x, flags, f->q, h));
}

/* The expected result, with @n bytes of the file. */
static void arrives(struct flow *f, size_t header, size_t off, size_t n, size_t trailer)
{
	if (kind_is_stream(f->k)) {
		recv_all(f->p.s, HEAD_SEED, 0, header);
		recv_all(f->p.s, FILE_SEED, off, n);
		recv_all(f->p.s, TAIL_SEED, 0, trailer);
		return;
	}
	must_be(recv(f->p.s, in, sizeof(in), 0), header + n + trailer);
	data_check(HEAD_SEED, 0, in, header);
	data_check(FILE_SEED, off, in + header, n);
	data_check(TAIL_SEED, 0, in + header + n, trailer);
}

static void parts_are(const exs_event_t *ev, size_t header, size_t n, size_t trailer)
{
	const exs_evt_xferfile_t *x = &ev->exs_evt_union.exs_evt_xferfile;

	must_be(x->exs_evt_length, header + n + trailer);
	must_be(x->exs_evt_header, header);
	must_be(x->exs_evt_file, n);
	must_be(x->exs_evt_trailer, trailer);
}

static void ends(struct flow *f, exs_ahandle_t h, size_t header, size_t n, size_t trailer)
{
	exs_event_t ev = event_next(f->q);

	event_check(&ev, EXS_EVT_SENDFILE, h, 0, header + n + trailer);
	check(ev.exs_evt_union.exs_evt_xferfile.exs_evt_xfile == &f->x, "not the structure of the call");
	parts_are(&ev, header, n, trailer);
}

/* @n bytes are there of @len. */
static void transfer(struct flow *f, size_t header, size_t off, size_t len, size_t n, size_t trailer)
{
	set(f, header, off, len, trailer);
	start(f, 0, off);
	arrives(f, header, off, n, trailer);
	ends(f, off, header, n, trailer);
}

static void files_sent(long bytes)
{
	must_be(delta("file_bytes") + delta("file_copied_bytes"), bytes);
}

/* -- sent data */

static void pieces(const struct kind *k)
{
	static const struct { size_t off, len, n; } of[] = {
		{ 0, 1, 1 }, { 1, 4096, 4096 }, { 4095, 4097, 4097 }, { 5000, MESSAGE, MESSAGE },
		{ 0, EXS_TO_EOF, 50000 }, { 49000, 5000, 1000 }, { 50000, EXS_TO_EOF, 0 }, { 7, 0, 0 },
	};
	size_t i, sum = 0;
	struct flow f;

	flow_open(&f, k, 50000);
	for (i = 0; i < ARRAY_SIZE(of); i++) {
		transfer(&f, 0, of[i].off, of[i].len, of[i].n, 0);
		transfer(&f, 100 * i + 3, of[i].off, of[i].len, of[i].n, 11 * i);
		sum += 2 * of[i].n;
	}
	files_sent(sum);
	if (!kind_is_stream(k))
		must_be(delta("file_bytes"), 0);
}
FOR_KIND(pieces, tcp)
FOR_KIND(pieces, tcp6)
FOR_KIND(pieces, udp)
FOR_KIND(pieces, un_stream)
FOR_KIND(pieces, un_seq)
FOR_KIND(pieces, un_dgram)

/* Where sockets take pages by reference. */
static void not_copied(const struct kind *k)
{
	struct utsname u;
	long major, minor;
	struct flow f;
	char *end;

	must(uname(&u));
	major = strtol(u.release, &end, 10);
	minor = strtol(end + 1, NULL, 10);
	if (major < 6 || (major == 6 && minor < 5))
		skip("sockets have no MSG_SPLICE_PAGES before 6.5");
	flow_open(&f, k, MIB);
	transfer(&f, 100, 0, EXS_TO_EOF, MIB, 100);
	must_be(delta("file_bytes"), MIB);
	must_be(delta("file_copied_bytes"), 0);
}
FOR_KIND(not_copied, tcp)
FOR_KIND(not_copied, un_stream)

static void file_vector(const struct kind *k)
{
	exs_fdvec_t files[20];
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = files, .msg_iovlen = 20 };
	static char want[MESSAGE];
	struct flow f;
	size_t i, len = 0;
	int other;

	flow_open(&f, k, 50000);
	other = file_new(FILE_SEED, 50);
	for (i = 0; i < 20; i++) {
		size_t n = i % 4 ? 177 * i : 50;

		files[i] = i % 4 ? (exs_fdvec_t){ f.file, 100 * i, n } : (exs_fdvec_t){ other, 0, 1000 };
		data_fill(FILE_SEED, i % 4 ? 100 * i : 0, want + len, n);
		len += n;
	}
	must(exs_sendmsg(f.p.c, &msg, 0, f.q, 1));
	memset(files, 0xee, sizeof(files));
	must_be(recv(f.p.s, in, len, MSG_WAITALL), len);
	check(!memcmp(in, want, len), "other bytes have come");
	event_is(f.q, EXS_EVT_SENDMSG, 1, 0, len);
	files_sent(len);
}
FOR_KIND(file_vector, tcp)
FOR_KIND(file_vector, un_seq)

/* More than the sockets hold, among other sends, the reader coming late; and it holds up no other. */
static void large(const struct kind *k)
{
	struct flow f, other;
	int i;

	flow_open(&f, k, BIG);
	flow_open(&other, k, 10000);
	set(&f, 10, 0, EXS_TO_EOF, 20);
	start_send(f.p.c, f.text, 100, f.q, 1, f.m);
	start(&f, 0, 2);
	start_send(f.p.c, f.text, 200, f.q, 3, NO_REGION);
	start(&f, 0, 4);
	wait_delta("foreign_retries", 3);
	transfer(&other, 10, 0, 10000, 10000, 10);
	event_is(f.q, EXS_EVT_SEND, 1, 0, 100);
	no_event(f.q);
	for (i = 1; i <= 2; i++) {
		recv_all(f.p.s, HEAD_SEED, 0, 100 * i);
		arrives(&f, 10, 0, BIG, 20);
	}
	ends(&f, 2, 10, BIG, 20);
	event_is(f.q, EXS_EVT_SEND, 3, 0, 200);
	ends(&f, 4, 10, BIG, 20);
	files_sent(2 * BIG + 10000);
}
FOR_KIND(large, tcp)
FOR_KIND(large, un_stream)

/* More messages than the receiver's queue takes. */
static void slow_reader_of_messages(const struct kind *k)
{
	enum { SENDS = 32 };
	struct flow f;
	int i;

	flow_open(&f, k, MESSAGE);
	set(&f, 10, 0, EXS_TO_EOF, 10);
	for (i = 0; i < SENDS; i++)
		start(&f, 0, i);
	wait_delta("foreign_retries", 2);
	for (i = 0; i < SENDS; i++)
		arrives(&f, 10, 0, MESSAGE, 10);
	for (i = 0; i < SENDS; i++)
		ends(&f, i, 10, MESSAGE, 10);
}
FOR_KIND(slow_reader_of_messages, un_seq)
FOR_KIND(slow_reader_of_messages, un_dgram)

static void too_large(const struct kind *k)
{
	struct flow f;

	flow_open(&f, k, MIB);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	start(&f, 0, 1);
	event_is(f.q, EXS_EVT_SENDFILE, 1, EMSGSIZE, 0);
	transfer(&f, 0, 1, 1000, 1000, 0);
}
FOR_KIND(too_large, udp)
FOR_KIND(too_large, un_seq)

/* -- the end of the stream */

static void shut_wr(const struct kind *k)
{
	struct flow f;

	flow_open(&f, k, BIG);
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, EXS_SHUT_WR, 1);
	start_send(f.p.c, f.text, 10, f.q, 2, NO_REGION);
	arrives(&f, 5, 0, BIG, 5);
	must_be(recv(f.p.s, in, 1, 0), 0);
	ends(&f, 1, 5, BIG, 5);
	event_is(f.q, EXS_EVT_SEND, 2, EPIPE, 0);
	must_fail(exs_sendfile(f.p.c, &f.x, 0, f.q, 3), EPIPE);
	must_be(send(f.p.s, "!", 1, 0), 1);
	must_be(recv(f.p.c, in, 1, 0), 1);
}
FOR_KIND(shut_wr, tcp)
FOR_KIND(shut_wr, un_stream)

/*
 * A program that has the event finds that nothing waits, and gets an error at once: even if it continues before the
 * worker that ended the operation.
 */
static void said_at_once(const struct kind *k)
{
	struct sched_param first = { .sched_priority = 1 };
	struct flow f;
	int i;

	must(sched_setscheduler(0, SCHED_FIFO, &first));
	for (i = 0; i < 20; i++) {
		flow_open(&f, k, 100);
		set(&f, 0, 0, 100, 0);
		start(&f, EXS_SHUT_WR, 1);
		ends(&f, 1, 0, 100, 0);
		must_fail(exs_sendfile(f.p.c, &f.x, 0, f.q, 2), EPIPE);
	}
}
FOR_KIND(said_at_once, tcp)
FOR_KIND(said_at_once, un_stream)

/* An operation that is submitted when an earlier one is just ending has its event later. */
static void events_in_order(const struct kind *k)
{
	struct flow f;
	uint64_t i, turns;

	flow_open(&f, k, 100);
	set(&f, 0, 0, 100, 0);
	for (i = 0; i < amount(2000); i++) {
		start(&f, 0, 2 * i);
		for (turns = i % 200 * 500; turns; turns--)
			__asm__ volatile("");
		start_send(f.p.c, f.text, 10, f.q, 2 * i + 1, NO_REGION);
		ends(&f, 2 * i, 0, 100, 0);
		event_is(f.q, EXS_EVT_SEND, 2 * i + 1, 0, 10);
		arrives(&f, 0, 0, 100, 0);
		must_be(recv(f.p.s, in, sizeof(in), 0), 10);
	}
}
FOR_KIND(events_in_order, tcp)
FOR_KIND(events_in_order, un_dgram)

static void may_not_shut_down(void)
{
	struct flow f;

	flow_open(&f, &kind_tcp, 10000);
	set(&f, 0, 0, 10, 0);
	forbid_call(SYS_shutdown, EACCES);
	must_fail(exs_sendfile(f.p.c, &f.x, EXS_SHUT_WR, f.q, 1), EACCES);
	no_event(f.q);
	transfer(&f, 0, 0, 10, 10, 0);
}

/* The socket, and the file, which has no name any more. */
static void closed_at_once(const struct kind *k)
{
	struct flow f;

	flow_open(&f, k, BIG);
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, 0, 1);
	must(close(f.file));
	must(close(f.p.c));
	arrives(&f, 5, 0, BIG, 5);
	must_be(recv(f.p.s, in, 1, 0), 0);
	ends(&f, 1, 5, BIG, 5);
}
FOR_KIND(closed_at_once, tcp)
FOR_KIND(closed_at_once, un_stream)

/* The peer gets exactly the bytes that the event reports. */
static void stream_ends_after(struct flow *f, size_t header, size_t n)
{
	recv_all(f->p.s, HEAD_SEED, 0, header);
	recv_all(f->p.s, FILE_SEED, 0, n);
	must_be(recv(f->p.s, in, 1, 0), 0);
}

/* In the middle of two. Return: the event of the first. */
static exs_event_t cancel_two(struct flow *f, const struct kind *k, int flags)
{
	flow_open(f, k, BIG);
	set(f, 100, 0, EXS_TO_EOF, 0);
	start(f, flags, 1);
	start(f, 0, 2);
	wait_until(delta("file_bytes") + delta("file_copied_bytes") > 0);
	must(exs_cancel(f->q, f->p.c, 0, EXS_CAF_FILDES));
	event_is(f->q, EXS_EVT_SENDFILE, 2, ECANCELED, 0);
	return event_next(f->q);
}

static void part_was_sent(struct flow *f, size_t n)
{
	check(n && n < BIG, "%zu bytes of the file were sent", n);
	must_be(poll_now(f->p.s, POLLRDHUP) & POLLRDHUP, 0);
	must(close(f->p.c));
	stream_ends_after(f, 100, n);
	wait_until(!counter("live_feeds"));
}

static void cancelled(const struct kind *k)
{
	struct flow f;
	exs_event_t ev = cancel_two(&f, k, 0);
	size_t n = ev.exs_evt_union.exs_evt_xferfile.exs_evt_file;

	event_check(&ev, EXS_EVT_SENDFILE, 1, 0, 100 + n);
	parts_are(&ev, 100, n, 0);
	part_was_sent(&f, n);
}
FOR_KIND(cancelled, tcp)
FOR_KIND(cancelled, un_stream)

/* An end that was not sent is no success. */
static void cancelled_before_end(const struct kind *k)
{
	struct flow f;
	exs_event_t ev = cancel_two(&f, k, EXS_SHUT_WR);
	const exs_evt_xferfile_t *x = &ev.exs_evt_union.exs_evt_xferfile;

	event_check(&ev, EXS_EVT_SENDFILE, 1, ECANCELED, 0);
	must_be(x->exs_evt_header, 100);
	part_was_sent(&f, x->exs_evt_file);
}
FOR_KIND(cancelled_before_end, tcp)
FOR_KIND(cancelled_before_end, un_stream)

static void owner_sends(void *arg)
{
	struct flow *f = arg;

	f->q = queue_new(4);
	start(f, 0, 1);
}

/* The file is the operation's, but the operation is the process's. */
static void owner_exits(void)
{
	struct flow f;

	flow_open(&f, &kind_tcp, BIG);
	set(&f, 0, 0, BIG, 0);
	join(spawn(owner_sends, &f));
	wait_until(!counter("live_feeds"));
	wait_until(!counter("live_ops"));
}

static void timeout(const struct kind *k)
{
	exs_timeout_t t = { { 0, 5000 }, EXS_TIMEOUT_ONCE };
	struct flow f;

	flow_open(&f, k, BIG);
	must(exs_setsockopt(f.p.c, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &t, sizeof(t)));
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, 0, 1);
	event_is(f.q, EXS_EVT_SENDTIMEOUT, 1, 0, 0);
	arrives(&f, 5, 0, BIG, 5);
	ends(&f, 1, 5, BIG, 5);
}
FOR_KIND(timeout, tcp)
FOR_KIND(timeout, un_stream)

static void peer_goes(const struct kind *k)
{
	struct linger l = { .l_onoff = 1 };
	exs_event_t ev;
	struct flow f;
	int err;

	flow_open(&f, k, BIG);
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, EXS_SHUT_WR, 1);
	arrives(&f, 5, 0, 1000, 0);
	must(setsockopt(f.p.s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(close(f.p.s));
	ev = event_next(f.q);
	/* AF_UNIX reports the reset to a send that is under way, and the end to a later one. */
	err = k == &kind_tcp || ev.exs_evt_errno == ECONNRESET ? ECONNRESET : EPIPE;
	event_check(&ev, EXS_EVT_SENDFILE, 1, err, 0);
	check(ev.exs_evt_union.exs_evt_xferfile.exs_evt_file >= 1000, "less than was received");
	must_fail(exs_sendfile(f.p.c, &f.x, 0, f.q, 2), EPIPE);
	no_event(f.q);
}
FOR_KIND(peer_goes, tcp)
FOR_KIND(peer_goes, un_stream)

/* -- what happens to the file meanwhile */

/* Pages that are on their way stay; the rest is gone. */
static void truncated(const struct kind *k)
{
	exs_event_t ev;
	struct flow f;
	size_t n, sum = 0;

	flow_open(&f, k, BIG);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	start(&f, EXS_SHUT_WR, 1);
	wait_until(delta("file_bytes") + delta("file_copied_bytes") > 0);
	must(ftruncate(f.file, 0));
	while ((n = must(recv(f.p.s, in, sizeof(in), 0))))
		sum += n;
	ev = event_next(f.q);
	event_check(&ev, EXS_EVT_SENDFILE, 1, 0, sum);
	check(sum && sum < BIG, "%zu bytes were sent", sum);
	parts_are(&ev, 0, sum, 0);
}
FOR_KIND(truncated, tcp)
FOR_KIND(truncated, un_stream)

/* An error of the file system is not taken for one of the socket. */
static void file_fails(const struct kind *k)
{
	struct flow f;

	flow_open(&f, k, 10);
	f.file = file_that_fails(EAGAIN);
	set(&f, 0, 0, 4096, 0);
	start(&f, 0, 1);
	start_send(f.p.c, f.text, 100, f.q, 2, NO_REGION);
	event_is(f.q, EXS_EVT_SENDFILE, 1, EIO, 0);
	event_is(f.q, EXS_EVT_SEND, 2, 0, 100);
	recv_all(f.p.s, HEAD_SEED, 0, 100);
}
FOR_KIND(file_fails, tcp)
FOR_KIND(file_fails, un_seq)

/* Only operations after it wait, and not the socket's other direction. */
static void slow_file(const struct kind *k)
{
	struct flow f, other;
	struct guard g;
	int asked;

	flow_open(&f, k, 10000);
	flow_open(&other, k, 10000);
	g = guard_open(&f.file);
	/* Idle before its byte is sent: one that comes between a try and the look at poll() is a back-off. */
	start_recv(f.p.c, in, 1, 0, f.q, 4, NO_REGION);
	wait_delta("foreign_retries", 2);
	start_send(f.p.c, f.text, 100, f.q, 1, NO_REGION);
	set(&f, 0, 0, 10000, 0);
	start(&f, 0, 2);
	start_send(f.p.c, f.text, 200, f.q, 3, NO_REGION);
	asked = guard_wait(&g);
	must_be(recv(f.p.s, in, sizeof(in), 0), 100);
	event_is(f.q, EXS_EVT_SEND, 1, 0, 100);
	must_be(send(f.p.s, "!", 1, 0), 1);
	event_is(f.q, EXS_EVT_RECV, 4, 0, 1);
	must_be(send(f.p.s, "!", 1, 0), 1);
	wait_io(f.p.c, POLLIN);
	start_recv(f.p.c, in, 1, 0, f.q, 5, NO_REGION);
	event_is(f.q, EXS_EVT_RECV, 5, 0, 1);
	transfer(&other, 10, 0, 10000, 10000, 10);
	no_event(f.q);
	guard_answer(&g, asked, FAN_ALLOW);
	arrives(&f, 0, 0, 10000, 0);
	must_be(recv(f.p.s, in, sizeof(in), 0), 200);
	ends(&f, 2, 0, 10000, 0);
	event_is(f.q, EXS_EVT_SEND, 3, 0, 200);
	must_be(delta("foreign_backoffs"), 0);
}
FOR_KIND(slow_file, tcp)
FOR_KIND(slow_file, un_seq)

/* Of the two the first was cancelled: its event comes before or after. */
static void first_cancelled(struct flow *f)
{
	exs_event_t ev;
	int i;

	for (i = 0; i < 2; i++) {
		ev = event_next(f->q);
		if (ev.exs_evt_type == EXS_EVT_SENDFILE)
			event_check(&ev, EXS_EVT_SENDFILE, 1, ECANCELED, 0);
		else
			event_check(&ev, EXS_EVT_SEND, 2, 0, 200);
	}
}

/* The operation does not wait for the file, nor do those behind it, nor exs_close(). */
static void cancelled_while_read(const struct kind *k)
{
	struct guard g;
	struct flow f;
	int asked;

	flow_open(&f, k, 10000);
	g = guard_open(&f.file);
	set(&f, 100, 0, 10000, 100);
	start(&f, 0, 1);
	asked = guard_wait(&g);
	start_send(f.p.c, f.text, 200, f.q, 2, NO_REGION);
	must(exs_cancel(f.q, -1, 1, EXS_CAF_AHANDLE));
	must_be(recv(f.p.s, in, sizeof(in), 0), 200);
	first_cancelled(&f);
	start(&f, 0, 3);
	must(exs_close(f.p.c, 0, f.q, 4));
	event_is(f.q, EXS_EVT_SENDFILE, 3, ECANCELED, 0);
	event_is(f.q, EXS_EVT_CLOSE, 4, 0, 0);
	check(counter("live_feeds") >= 1, "nothing reads");
	guard_answer(&g, asked, FAN_ALLOW);
	wait_until(!counter("live_feeds"));
	files_sent(0);
}
FOR_KIND(cancelled_while_read, tcp)
FOR_KIND(cancelled_while_read, un_stream)
FOR_KIND(cancelled_while_read, udp)

/* The peer's answer is not waited for either. */
static void peer_goes_while_read(const struct kind *k)
{
	struct linger l = { .l_onoff = 1 };
	struct guard g;
	struct flow f;
	int asked;

	flow_open(&f, k, 10000);
	g = guard_open(&f.file);
	set(&f, 0, 0, 10000, 0);
	start(&f, 0, 1);
	asked = guard_wait(&g);
	must(setsockopt(f.p.s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(close(f.p.s));
	event_is(f.q, EXS_EVT_SENDFILE, 1, k == &kind_tcp ? ECONNRESET : EPIPE, 0);
	guard_answer(&g, asked, FAN_ALLOW);
	wait_until(!counter("live_feeds"));
}
FOR_KIND(peer_goes_while_read, tcp)
FOR_KIND(peer_goes_while_read, un_stream)
FOR_KIND(peer_goes_while_read, un_seq)

/* Bytes read before are sent and reported, without the end of the stream; a message is sent whole or not at all. */
static void unreadable(const struct kind *k)
{
	size_t header = kind_is_stream(k) ? 100 : 0;
	exs_event_t ev;
	struct guard g;
	struct flow f;

	flow_open(&f, k, 10000);
	g = guard_open(&f.file);
	set(&f, 100, 0, 10000, 100);
	start(&f, EXS_SHUT_WR, 1);
	guard_answer(&g, guard_wait(&g), FAN_DENY);
	ev = event_next(f.q);
	event_check(&ev, EXS_EVT_SENDFILE, 1, EPERM, 0);
	parts_are(&ev, header, 0, 0);
	if (header)
		arrives(&f, header, 0, 0, 0);
	must(close(g.fd));
	transfer(&f, 1, 0, 10000, 10000, 1);
}
FOR_KIND(unreadable, tcp)
FOR_KIND(unreadable, un_seq)

/* The file comes first. */
static void not_connected(const struct kind *k)
{
	int err = kind_is_stream(k) ? EPIPE : EDESTADDRREQ;
	struct flow f;

	flow_open(&f, k, 10000);
	set(&f, 0, 0, 10000, 0);
	must(exs_sendfile(kind_socket(k), &f.x, 0, f.q, 1));
	event_is(f.q, EXS_EVT_SENDFILE, 1, err, 0);
}
FOR_KIND(not_connected, tcp)
FOR_KIND(not_connected, udp)

/* -- refused calls, which leave nothing behind */

static void refused(void)
{
	struct exs_sqe_iovec iov = { .len = 10, .flags = EXS_IOV_FILE };
	struct exs_sqe_msg msg = { .iov = (uintptr_t)&iov, .count = 1, .flags = EXS_SQE_MSG_SHUT_WR };
	struct exs_sqe sqe = { .opcode = EXS_OP_SENDFILE, .addr = (uintptr_t)&msg, .len = sizeof(msg),
			       .region = EXS_REGION_NONE };
	struct flow f;

	flow_open(&f, &kind_tcp, 10000);
	set(&f, 10, 0, 10, 10);
	sqe.fd = f.p.c;
	iov.region = f.file;
	msg.flags = EXS_SQE_MSG_SHUT_WR | 2;
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	/* Memory only; another family's; no send. */
	msg.flags = EXS_SQE_MSG_SHUT_WR;
	iov = (struct exs_sqe_iovec){ .addr = (uintptr_t)f.text, .len = 1, .region = EXS_REGION_NONE };
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	sqe.opcode = EXS_OP_RECVMSG;
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	sqe.opcode = EXS_OP_SENDFILE;
	iov = (struct exs_sqe_iovec){ .len = 10, .flags = EXS_IOV_FILE, .region = f.file };
	sqe.fd = must(socket(exs_family_number(), SOCK_STREAM, 0));
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	f.x.xf_file.fd_file = f.p.s;
	must_fail(exs_sendfile(f.p.c, &f.x, 0, f.q, 1), EINVAL);
	f.x.xf_file.fd_file = -1;
	must_fail(exs_sendfile(f.p.c, &f.x, EXS_SHUT_WR, f.q, 1), EBADF);
	no_event(f.q);
	must_be(counter("live_feeds"), 0);
	transfer(&f, 0, 0, 10, 10, 0);
}

/* -- files of one user, and of another */

static void other_sends(void *arg)
{
	struct flow *f = arg;

	drop_privileges();
	f->q = queue_new(2);
	transfer(f, 0, 0, 10000, 10000, 0);
}

/* More reads that do not end than there are workers for any user. */
static void others_files(void)
{
	enum { N = 600 };
	static struct flow f[N];
	struct flow other;
	exs_qhandle_t q;
	struct guard g;
	int i, asked;

	raise_limit(RLIMIT_NOFILE, 4 * N);
	write_sysctl("max_user_pages", 1 << 20);
	write_sysctl("max_user_workers", 64);
	q = queue_new(N);
	flow_open(&other, &kind_un_stream, 10000);
	flow_open(&f[0], &kind_un_stream, 100);
	g = guard_open(&f[0].file);
	set(&f[0], 0, 0, 100, 0);
	for (i = 0; i < N; i++) {
		if (i)
			kind_pair(&kind_un_stream, &f[i].p);
		must(exs_sendfile(f[i].p.c, &f[0].x, 0, q, i));
	}
	asked = guard_wait(&g);
	wait_delta("turns_waited", N - 64);
	join(spawn(other_sends, &other));
	no_event(q);
	guard_answer(&g, asked, FAN_ALLOW);
	for (i = 0; i < N; i++)
		check(event_next(q).exs_evt_errno == 0, "a send failed");
	no_event(q);
}

/* -- before the connection was accepted: a worker's send would carry its credentials */

static void not_accepted(bool credentials)
{
	int l = kind_listening(&kind_un_stream);
	socklen_t len;
	union address a = listening_name(l, &len);
	struct flow f;

	flow_open(&f, &kind_un_stream, 1000);
	f.p.c = kind_socket(&kind_un_stream);
	/* The option is inherited when the connection is accepted; in newer kernels when it is made. */
	set_int(l, SOL_SOCKET, SO_PASSCRED, credentials);
	must(connect(f.p.c, &a.sa, len));
	set(&f, 0, 0, 1000, 0);
	start(&f, 0, 1);
	wait_delta("foreign_backoffs", 2);
	no_event(f.q);
	f.p.s = must(accept(l, NULL, NULL));
	if (credentials) {
		event_is(f.q, EXS_EVT_SENDFILE, 1, EOPNOTSUPP, 0);
		must_be(delta("senders_unnamed"), 1);
	} else {
		arrives(&f, 0, 0, 1000, 0);
		ends(&f, 1, 0, 1000, 0);
	}
}

static void accepted_late(void)
{
	not_accepted(false);
}

static void accepted_asking(void)
{
	not_accepted(true);
}

/* The listener is closed. */
static void never_accepted(void)
{
	int l = kind_listening(&kind_un_stream);
	socklen_t len;
	union address a = listening_name(l, &len);
	exs_event_t ev;
	struct flow f;

	flow_open(&f, &kind_un_stream, 1000);
	f.p.c = kind_socket(&kind_un_stream);
	must(connect(f.p.c, &a.sa, len));
	set(&f, 0, 0, 1000, 0);
	start(&f, 0, 1);
	wait_delta("foreign_backoffs", 1);
	close(l);
	ev = event_next(f.q);
	event_check(&ev, EXS_EVT_SENDFILE, 1, EPIPE, 0);
}

static const struct e2e_case cases[] = {
	ROW(pieces, tcp),
	ROW(pieces, tcp6),
	ROW(pieces, udp),
	ROW(pieces, un_stream),
	ROW(pieces, un_seq),
	ROW(pieces, un_dgram),
	ROW(not_copied, tcp),
	ROW(not_copied, un_stream),
	ROW(file_vector, tcp),
	ROW(file_vector, un_seq),
	ROW(large, tcp),
	ROW(large, un_stream),
	ROW(slow_reader_of_messages, un_seq),
	ROW(slow_reader_of_messages, un_dgram),
	ROW(too_large, udp),
	ROW(too_large, un_seq),
	ROW(shut_wr, tcp),
	ROW(shut_wr, un_stream),
	ROW(said_at_once, tcp),
	ROW(said_at_once, un_stream),
	ROW(events_in_order, tcp),
	ROW(events_in_order, un_dgram),
	ROW1(may_not_shut_down),
	ROW(closed_at_once, tcp),
	ROW(closed_at_once, un_stream),
	ROW(cancelled, tcp),
	ROW(cancelled, un_stream),
	ROW(cancelled_before_end, tcp),
	ROW(cancelled_before_end, un_stream),
	ROW1(owner_exits),
	ROW(timeout, tcp),
	ROW(timeout, un_stream),
	ROW(peer_goes, tcp),
	ROW(peer_goes, un_stream),
	ROW(truncated, tcp),
	ROW(truncated, un_stream),
	ROW1(accepted_late),
	ROW1(accepted_asking),
	ROW1(never_accepted),
	ROW(file_fails, tcp),
	ROW(file_fails, un_seq),
	ROW(slow_file, tcp),
	ROW(slow_file, un_seq),
	ROW(cancelled_while_read, tcp),
	ROW(cancelled_while_read, un_stream),
	ROW(cancelled_while_read, udp),
	ROW(peer_goes_while_read, tcp),
	ROW(peer_goes_while_read, un_stream),
	ROW(peer_goes_while_read, un_seq),
	ROW(unreadable, tcp),
	ROW(unreadable, un_seq),
	ROW(not_connected, tcp),
	ROW(not_connected, udp),
	ROW1(refused),
	ROW1(others_files),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
