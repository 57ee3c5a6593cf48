// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#include <sys/syscall.h>

#define CALL "exs_sendfile"

#define FILE_LEN	20000
#define TEXT		100		/* header, and trailer */

static char text[2 * TEXT];
static exs_iovec_t header[] = { { text, 10, NO_REGION }, { text + 10, TEXT - 10, NO_REGION } };
static exs_iovec_t trailer[] = { { text + TEXT, TEXT, NO_REGION } };

static int file_new(void)
{
	int fd = must(open("/run/exs", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	char bytes[FILE_LEN];

	data_fill(1, 0, bytes, FILE_LEN);
	must_be(write(fd, bytes, FILE_LEN), FILE_LEN);
	return fd;
}

static exs_xferfile_t file_from(int fd, off_t off, size_t len)
{
	return (exs_xferfile_t){ .xf_file = { fd, off, len } };
}

/* With text before it and behind it. */
static exs_xferfile_t between(int fd, off_t off, size_t len)
{
	exs_xferfile_t x = file_from(fd, off, len);

	data_fill(2, 0, text, sizeof(text));
	x.xf_header = header;
	x.xf_headerlen = ARRAY_SIZE(header);
	x.xf_trailer = trailer;
	x.xf_trailerlen = ARRAY_SIZE(trailer);
	return x;
}

static size_t text_len(const exs_xferfile_t *x)
{
	return x->xf_headerlen ? TEXT : 0;
}

/* @x, of whose file there were @n bytes. */
static void comes(int fd, const exs_xferfile_t *x, size_t n)
{
	size_t before = text_len(x), len = n + 2 * before;
	char in[FILE_LEN + 2 * TEXT];

	if (len || !on_stream())
		must_be(recv(fd, in, on_stream() ? len : sizeof(in), MSG_WAITALL), len);
	check(!memcmp(in, text, before), "another header");
	data_check(1, x->xf_file.fd_offset, in + before, n);
	check(!memcmp(in + before + n, text + TEXT, before), "another trailer");
}

/* The requested length, and how much of it there is. */
static const struct { size_t off, len, n; } parts[] = {
	{ 0, FILE_LEN, FILE_LEN }, { 0, EXS_TO_EOF, FILE_LEN }, { 7, EXS_TO_EOF, FILE_LEN - 7 },
	{ 4095, 5000, 5000 }, { FILE_LEN - 1000, 5000, 1000 }, { 5, 1, 1 },
	{ FILE_LEN + 1, EXS_TO_EOF, 0 }, { 10, 0, 0 },
};

/* -- with a queue */

static void event_has(exs_qhandle_t q, exs_ahandle_t h, const exs_xferfile_t *x, size_t n)
{
	exs_event_t ev = event_next(q);
	exs_evt_xferfile_t *got = &ev.exs_evt_union.exs_evt_xferfile;

	event_check(&ev, EXS_EVT_SENDFILE, h, 0, n + 2 * text_len(x));
	check(got->exs_evt_xfile == x, "another structure");
	must_be(got->exs_evt_header, text_len(x));
	must_be(got->exs_evt_file, n);
	must_be(got->exs_evt_trailer, text_len(x));
}

static void files(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_xferfile_t x;
	int fd = file_new();
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < 2 * ARRAY_SIZE(parts); i++) {
		x = (i % 2 ? between : file_from)(fd, parts[i / 2].off, parts[i / 2].len);
		must(exs_sendfile(p.c, &x, 0, q, i));
		comes(p.s, &x, parts[i / 2].n);
		event_has(q, i, &x, parts[i / 2].n);
	}
	must_be(lseek(fd, 0, SEEK_CUR), FILE_LEN);
}

/* Header and trailer registered, the arrays and the descriptor free at once. */
static void registered(void)
{
	exs_mhandle_t m = region_new(text, sizeof(text), EXS_ACCESS_READ);
	exs_qhandle_t q = queue_new(1);
	exs_xferfile_t x = between(file_new(), 1, EXS_TO_EOF);
	struct pair p;

	pair_open(&p);
	header[1].iov_mhandle = trailer[0].iov_mhandle = m;
	must(exs_sendfile(p.c, &x, 0, q, 1));
	memset(header, 0, sizeof(header));
	memset(trailer, 0, sizeof(trailer));
	must(close(x.xf_file.fd_file));
	comes(p.s, &x, FILE_LEN - 1);
	event_has(q, 1, &x, FILE_LEN - 1);
}

static void in_order(void)
{
	exs_qhandle_t q = queue_new(3);
	exs_xferfile_t x = between(file_new(), 0, EXS_TO_EOF);
	struct pair p;
	char in;

	pair_open(&p);
	start_send(p.c, "a", 1, q, 1, NO_REGION);
	must(exs_sendfile(p.c, &x, 0, q, 2));
	start_send(p.c, "b", 1, q, 3, NO_REGION);
	must_be(recv(p.s, &in, 1, MSG_WAITALL), 1);
	comes(p.s, &x, FILE_LEN);
	must_be(recv(p.s, &in, 1, MSG_WAITALL), 1);
	must_be(in, 'b');
	event_is(q, EXS_EVT_SEND, 1, 0, 1);
	event_has(q, 2, &x, FILE_LEN);
	event_is(q, EXS_EVT_SEND, 3, 0, 1);
}

static void shut_wr(void)
{
	exs_qhandle_t q = queue_new(2);
	exs_xferfile_t x = between(file_new(), 0, EXS_TO_EOF);
	struct pair p;
	char in;

	pair_open(&p);
	must(exs_sendfile(p.c, &x, EXS_SHUT_WR, q, 1));
	if (on_exs())
		must_fail(exs_sendfile(p.c, &x, 0, q, 2), EPIPE);
	comes(p.s, &x, FILE_LEN);
	must_be(recv(p.s, &in, 1, 0), 0);
	event_has(q, 1, &x, FILE_LEN);
	must_fail(exs_sendfile(p.c, &x, 0, q, 2), EPIPE);
	no_event(q);
}

/* More than is sent without a receiver. */
static void timeout(void)
{
	exs_timeout_t t = { { 0, 5000 }, EXS_TIMEOUT_ONCE };
	exs_qhandle_t q = queue_new(2), small = queue_new(1);
	exs_xferfile_t x = file_from(file_new(), 0, EXS_TO_EOF);
	size_t len = on_exs() ? MIB : 16 * MIB;
	char *in = pages(len);
	struct pair p;

	pair_open(&p);
	must(ftruncate(x.xf_file.fd_file, len));
	must(exs_setsockopt(p.c, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &t, sizeof(t)));
	must_fail(exs_sendfile(p.c, &x, 0, small, 4), EAGAIN);
	must(exs_sendfile(p.c, &x, 0, q, 5));
	event_is(q, EXS_EVT_SENDTIMEOUT, 5, 0, 0);
	must_be(recv(p.s, in, len, MSG_WAITALL), len);
	data_check(1, 0, in, FILE_LEN);
	event_has(q, 5, &x, len);
	no_event(q);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(4);
	struct wrong w = wrong_open();
	exs_xferfile_t x = between(file_new(), 0, 10);
	struct pair p;

	pair_open(&p);
	must_fail(exs_sendfile(w.file, &x, 0, q, 1), ENOTSOCK);
	must_fail(exs_sendfile(w.netlink, &x, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_sendfile(p.c, &x, 0, w.file, 1), EINVAL);
	must_fail(exs_sendfile(p.c, &x, MSG_PEEK, q, 1), EINVAL);
	header[1].iov_mhandle = w.none;
	must_fail(exs_sendfile(p.c, &x, 0, q, 1), EBADF);
	header[1] = (exs_iovec_t){ (void *)8, 1, NO_REGION };
	must_fail(exs_sendfile(p.c, &x, 0, q, 1), EFAULT);
	x = file_from(file_new(), -1, 10);
	must_fail(exs_sendfile(p.c, &x, 0, q, 1), EINVAL);
	x.xf_file.fd_offset = 11;
	x.xf_file.fd_len = INT64_MAX - 10;
	must_fail(exs_sendfile(p.c, &x, 0, q, 1), EOVERFLOW);
	nothing_started(q);
}

/* -- without one */

static void synchronous(void)
{
	exs_xferfile_t x;
	int fd = file_new();
	struct pair p;
	size_t i;

	pair_open(&p);
	header[0].iov_mhandle = 1000;		/* is ignored */
	for (i = 0; i < 2 * ARRAY_SIZE(parts); i++) {
		x = (i % 2 ? between : file_from)(fd, parts[i / 2].off, parts[i / 2].len);
		must_be(exs_sendfile(p.c, &x, 0, EXS_QHANDLE_INVALID, 1),
			parts[i / 2].n + 2 * text_len(&x));
		comes(p.s, &x, parts[i / 2].n);
	}
	must_be(lseek(fd, 0, SEEK_CUR), FILE_LEN);
}

static void shut_wr_synchronous(void)
{
	exs_xferfile_t x = between(file_new(), 0, EXS_TO_EOF);
	struct pair p;
	char in;

	pair_open(&p);
	must_be(exs_sendfile(p.c, &x, EXS_SHUT_WR, EXS_QHANDLE_INVALID, 1), FILE_LEN + 2 * TEXT);
	comes(p.s, &x, FILE_LEN);
	must_be(recv(p.s, &in, 1, 0), 0);
	must_fail(exs_sendfile(p.c, &x, MSG_NOSIGNAL, EXS_QHANDLE_INVALID, 1), EPIPE);
	must_be(send(p.s, "x", 1, 0), 1);
	must_be(recv(p.c, &in, 1, 0), 1);
}

/* As by a security module. */
static void forbidden(void)
{
	exs_xferfile_t x = between(file_new(), 0, 10);
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	forbid_call(SYS_ioctl, EPERM);
	must_fail(exs_sendfile(p.c, &x, 0, q, 1), EPERM);
}

/* With a queue and without, on every kind: the library finds it. */
static void wrong_structure(void)
{
	exs_qhandle_t queues[] = { queue_new(1), EXS_QHANDLE_INVALID };
	exs_xferfile_t x;
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		must_fail(exs_sendfile(p.c, NULL, 0, queues[i], 1), EFAULT);
		must_fail(exs_sendfile(p.c, (void *)8, 0, queues[i], 1), EFAULT);
		must_fail(exs_sendfile(p.c, (void *)-4096, 0, queues[i], 1), EFAULT);
		x = between(file_new(), 0, 10);
		x.xf_header = NULL;
		must_fail(exs_sendfile(p.c, &x, 0, queues[i], 1), EFAULT);
		x = between(file_new(), 0, 10);
		x.xf_trailer = NULL;
		must_fail(exs_sendfile(p.c, &x, 0, queues[i], 1), EFAULT);
		x.xf_trailer = (void *)8;
		must_fail(exs_sendfile(p.c, &x, 0, queues[i], 1), EFAULT);
		x = between(file_new(), 0, 10);
		x.xf_headerlen = 1023;
		must_fail(exs_sendfile(p.c, &x, 0, queues[i], 1), EMSGSIZE);
		x = between(file_new(), 0, 10);
		trailer[0].iov_mhandle = EXS_MHANDLE_INVALID;
		must_fail(exs_sendfile(p.c, &x, 0, queues[i], 1), EINVAL);
		trailer[0].iov_mhandle = NO_REGION;
		must_fail(exs_sendfile(-1, &x, 0, queues[i], 1), EBADF);
	}
	x = file_from(1000, 0, 10);
	must_fail(exs_sendfile(p.c, &x, 0, EXS_QHANDLE_INVALID, 1), EBADF);
	nothing_started(queues[0]);
}

const struct e2e_case exs_sendfile_cases[] = {
	CASE(files, ON_KINDS),
	CASE(registered, ON_KINDS),
	CASE(in_order, ON_KINDS),
	CASE(shut_wr, ON_LISTENING),
	CASE(timeout, ON_BOTH | ON_STREAMS),
	CASE(wrong, ON_KINDS),
	CASE(synchronous, ON_KINDS),
	CASE(shut_wr_synchronous, ON_LISTENING),
	CASE(forbidden, ON_KINDS),
	CASE(wrong_structure, ON_KINDS),
	{}
};
