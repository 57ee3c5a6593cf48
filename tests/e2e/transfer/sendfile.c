// SPDX-License-Identifier: GPL-2.0
/* exs_sendfile(), and exs_sendmsg() with EXS_FDVEC: sends from files. */
#include "lib/async.h"
#include "lib/file.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_SEED	1000
#define ROOM		(9 * MIB)
#define TEXT		4096		/* room for a header, and for a trailer */

/* A connection whose sending end has a file, and memory for headers and trailers. */
struct flow {
	struct pair p;
	exs_qhandle_t q;
	int file;
	size_t len;
	char *text;
	exs_iovec_t header[2], trailer;
	exs_xferfile_t x;
	char *in, *want;
};

static void flow_open(struct flow *f, size_t len)
{
	pair_open(&f->p);
	f->q = queue_new(256);
	f->file = file_new(FILE_SEED, len);
	f->len = len;
	f->text = pages(2 * TEXT);
	data_fill(1, 0, f->text, 2 * TEXT);
	f->in = pages(ROOM);
	f->want = pages(ROOM);
}

/* Half of the header is registered, the trailer not. */
static void set(struct flow *f, size_t header, size_t off, size_t len, size_t trailer)
{
	f->header[0] = (exs_iovec_t){ f->text, header / 2, NO_REGION };
	f->header[1] = (exs_iovec_t){ f->text + header / 2, header - header / 2, NO_REGION };
	if (header > 1)
		f->header[1].iov_mhandle = region_new(f->text + header / 2, header - header / 2, 0);
	f->trailer = (exs_iovec_t){ f->text + TEXT, trailer, NO_REGION };
	f->x = (exs_xferfile_t){
		.xf_header = f->header, .xf_headerlen = header ? 2 : 0,
		.xf_file = { f->file, off, len },
		.xf_trailer = &f->trailer, .xf_trailerlen = trailer ? 1 : 0,
	};
}

static void unset(struct flow *f)
{
	if (f->header[1].iov_mhandle != NO_REGION)
		must(exs_mderegister(f->header[1].iov_mhandle));
}

static void start(struct flow *f, int flags, exs_ahandle_t h)
{
	must(exs_sendfile(f->p.c, &f->x, flags, f->q, h));
}

/* A message, or as many bytes. */
static void receive(struct flow *f, size_t len)
{
	size_t done = 0, n;

	if (e2e.seq) {
		must_be(recv(f->p.s, f->in, ROOM, 0), len);
		return;
	}
	for (; done < len; done += n) {
		n = must(recv(f->p.s, f->in + done, len - done, 0));
		check(n, "the stream ends after %zu of %zu bytes", done, len);
	}
}

/* The expected result, with @n bytes of the file. */
static void arrives(struct flow *f, size_t header, size_t off, size_t n, size_t trailer)
{
	size_t len = header + n + trailer, i;

	memcpy(f->want, f->text, header);
	data_fill(FILE_SEED, off, f->want + header, n);
	memcpy(f->want + header + n, f->text + TEXT, trailer);
	receive(f, len);
	for (i = 0; i < len; i++)
		check(f->in[i] == f->want[i], "byte %zu of %zu+%zu+%zu is %d, not %d", i, header, n, trailer,
		      f->in[i], f->want[i]);
}

static void file_event_is(struct flow *f, exs_ahandle_t h, size_t header, size_t n, size_t trailer)
{
	exs_event_t ev = event_next(f->q);
	exs_evt_xferfile_t *x = &ev.exs_evt_union.exs_evt_xferfile;

	event_check(&ev, EXS_EVT_SENDFILE, h, 0, header + n + trailer);
	check(x->exs_evt_xfile == &f->x, "not the structure of the call");
	must_be(x->exs_evt_header, header);
	must_be(x->exs_evt_file, n);
	must_be(x->exs_evt_trailer, trailer);
}

/* @n bytes are there of @len. */
static void transfer(struct flow *f, size_t header, size_t off, size_t len, size_t n, size_t trailer)
{
	set(f, header, off, len, trailer);
	start(f, 0, off);
	arrives(f, header, off, n, trailer);
	file_event_is(f, off, header, n, trailer);
	unset(f);
}

static void pieces(void)
{
	static const size_t lens[] = { 1, 100, 4096, 4097, 70001 };
	static const size_t offs[] = { 0, 1, 4095, 5000 };
	struct flow f;
	size_t i, j;

	flow_open(&f, 100000);
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		for (j = 0; j < ARRAY_SIZE(offs); j++)
			transfer(&f, 7 * j, offs[j], lens[i], lens[i], 11 * i);
	must_be(delta("scattered_sends"), 0);
	must_be(delta("file_bytes"), ARRAY_SIZE(offs) * (1 + 100 + 4096 + 4097 + 70001));
}

/* More than is read ahead. A message may be as long as any. */
static void large(void)
{
	size_t len = amount(4 * MIB) + 1;
	struct flow f;

	flow_open(&f, len);
	transfer(&f, 100, 0, len, len, 10);
	transfer(&f, 0, 1, EXS_TO_EOF, len - 1, 0);
	must_be(delta("scattered_sends"), 0);
	must_be(delta("file_bytes"), 2 * len - 1);
}

/* From page cache to the program's pages, with no copy on either side. */
static void direct(void)
{
	exs_qhandle_t in = queue_new(4);
	struct flow f;
	char byte;

	flow_open(&f, MIB);
	start_recv(f.p.s, f.in, MIB, MSG_WAITALL, in, 1, region_new(f.in, MIB, 0));
	must_be(send(f.p.s, "!", 1, 0), 1);
	must_be(recv(f.p.c, &byte, 1, 0), 1);
	set(&f, 0, 0, MIB, 0);
	start(&f, 0, 2);
	event_is(in, EXS_EVT_RECV, 1, 0, MIB);
	data_check(FILE_SEED, 0, f.in, MIB);
	file_event_is(&f, 2, 0, MIB, 0);
	must_be(delta("direct_tx_bytes"), MIB);
	must_be(delta("file_bytes"), MIB);
	must_be(delta("copied_sends") + delta("scattered_sends"), 0);
}

static void to_the_end(void)
{
	struct flow f;

	flow_open(&f, 10000);
	transfer(&f, 10, 0, EXS_TO_EOF, 10000, 10);
	transfer(&f, 10, 3000, EXS_TO_EOF, 7000, 10);
	transfer(&f, 10, 9000, 5000, 1000, 10);
	transfer(&f, 10, 10000, 5000, 0, 10);
	transfer(&f, 10, MIB, EXS_TO_EOF, 0, 10);
	transfer(&f, 10, 1000, INT64_MAX - 1000, 9000, 10);
	/* A stream sends nothing; SOCK_SEQPACKET sends a message. */
	transfer(&f, 0, 10, 0, 0, 0);
	transfer(&f, 0, 1, 0, 0, 9);
	transfer(&f, 9, 1, 0, 0, 0);
	transfer(&f, 1, 1, 1, 1, 1);
}

/* Sends before and after it stay in order. */
static void in_order(void)
{
	struct flow f;
	size_t i;

	flow_open(&f, 600000);
	for (i = 0; i < 5; i++) {
		set(&f, 0, i, 500000, 0);
		start_send(f.p.c, f.text, 100, f.q, 3 * i, NO_REGION);
		start(&f, 0, 3 * i + 1);
		start_send(f.p.c, f.text, 200, f.q, 3 * i + 2, NO_REGION);
		must_be(send(f.p.c, f.text, 300, 0), 300);
	}
	for (i = 0; i < 5; i++) {
		arrives(&f, 100, 0, 0, 0);
		arrives(&f, 0, i, 500000, 0);
		arrives(&f, 200, 0, 0, 0);
		arrives(&f, 300, 0, 0, 0);
	}
	for (i = 0; i < 5; i++) {
		event_is(f.q, EXS_EVT_SEND, 3 * i, 0, 100);
		file_event_is(&f, 3 * i + 1, 0, 500000, 0);
		event_is(f.q, EXS_EVT_SEND, 3 * i + 2, 0, 200);
	}
}

static void shut_wr(void)
{
	size_t len = amount(2 * MIB);
	struct flow f;

	flow_open(&f, len);
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, EXS_SHUT_WR, 1);
	must_fail(exs_send(f.p.c, f.text, 1, 0, f.q, 2, NO_REGION), EPIPE);
	arrives(&f, 5, 0, len, 5);
	must_be(recv(f.p.s, f.in, 1, 0), 0);
	file_event_is(&f, 1, 5, len, 5);
	must_be(send(f.p.s, "!", 1, 0), 1);
	must_be(recv(f.p.c, f.in, 1, 0), 1);
}

/* The connection is closed behind it, and its file, which has no name any more. */
static void closed_at_once(void)
{
	size_t len = amount(2 * MIB);
	struct flow f;

	flow_open(&f, len);
	set(&f, 5, 0, EXS_TO_EOF, 5);
	start(&f, 0, 1);
	must(close(f.file));
	must(close(f.p.c));
	arrives(&f, 5, 0, len, 5);
	must_be(recv(f.p.s, f.in, 1, 0), 0);
	file_event_is(&f, 1, 5, len, 5);
}

static void file_vector(void)
{
	exs_fdvec_t files[20];
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = files, .msg_iovlen = 20 };
	struct flow f;
	size_t i, len = 0;
	int other;

	flow_open(&f, 100000);
	other = file_new(FILE_SEED, 50);
	for (i = 0; i < 20; i++)
		files[i] = i % 4 ? (exs_fdvec_t){ f.file, 100 * i, 777 * i } : (exs_fdvec_t){ other, 0, 1000 };
	must(exs_sendmsg(f.p.c, &msg, 0, f.q, 1));
	memset(files, 0xee, sizeof(files));
	for (i = 0; i < 20; i++) {
		size_t n = i % 4 ? 777 * i : 50;

		data_fill(FILE_SEED, i % 4 ? 100 * i : 0, f.want + len, n);
		len += n;
	}
	receive(&f, len);
	check(!memcmp(f.in, f.want, len), "other bytes have come");
	event_is(f.q, EXS_EVT_SENDMSG, 1, 0, len);
	msg.msg_iovlen = 0;
	must(exs_sendmsg(f.p.c, &msg, 0, f.q, 2));
	event_is(f.q, EXS_EVT_SENDMSG, 2, 0, 0);
}

/* A file system over the network, whose pages are its own. */
static void other_file_system(void)
{
	struct flow f;
	struct stat st;
	size_t n;

	flow_open(&f, 0);
	f.file = must(open("/proc/self/exe", O_RDONLY));
	must(fstat(f.file, &st));
	n = (size_t)st.st_size < 300999 ? (size_t)st.st_size - 999 : 300000;
	must_be(pread(f.file, f.want, n, 999), n);
	set(&f, 0, 999, n, 0);
	start(&f, 0, 1);
	receive(&f, n);
	check(!memcmp(f.in, f.want, n), "other bytes have come");
	file_event_is(&f, 1, 0, n, 0);
}

/* -- what happens to the file meanwhile */

/* Pages that are on their way stay; the rest is gone. */
static void truncated(void)
{
	size_t len = amount(8 * MIB);
	exs_evt_xferfile_t *x;
	exs_event_t ev;
	struct flow f;
	size_t n;

	flow_open(&f, len);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	start(&f, EXS_SHUT_WR, 1);
	wait_delta("file_bytes", 1);
	must(ftruncate(f.file, 0));
	do {
		n = must(recv(f.p.s, f.in, ROOM, 0));
		f.len -= n;
	} while (n);
	ev = event_next(f.q);
	x = &ev.exs_evt_union.exs_evt_xferfile;
	event_check(&ev, EXS_EVT_SENDFILE, 1, 0, len - f.len);
	check(x->exs_evt_length && x->exs_evt_length < len, "%zu bytes were sent", x->exs_evt_length);
}

/* -- files that take their time: fanotify asks us whether they may be read */

/* Only this send waits: not the caller, another connection, or earlier sends. */
static void slow(void)
{
	struct flow f, other;
	struct guard g;
	int asked;

	flow_open(&f, 10000);
	flow_open(&other, 10000);
	g = guard_open(&f.file);
	start_send(f.p.c, f.text, 100, f.q, 1, NO_REGION);
	set(&f, 0, 0, 10000, 0);
	start(&f, 0, 2);
	start_send(f.p.c, f.text, 200, f.q, 3, NO_REGION);
	asked = guard_wait(&g);
	arrives(&f, 100, 0, 0, 0);
	event_is(f.q, EXS_EVT_SEND, 1, 0, 100);
	transfer(&other, 10, 0, 10000, 10000, 10);
	no_event(f.q);
	guard_answer(&g, asked, FAN_ALLOW);
	arrives(&f, 0, 0, 10000, 0);
	arrives(&f, 200, 0, 0, 0);
	file_event_is(&f, 2, 0, 10000, 0);
	event_is(f.q, EXS_EVT_SEND, 3, 0, 200);
}

/* The operation does not wait for the file, nor do those behind it. */
static void cancelled_while_read(void)
{
	struct guard g;
	struct flow f;
	int asked;

	flow_open(&f, 10000);
	g = guard_open(&f.file);
	set(&f, 100, 0, 10000, 100);
	start(&f, 0, 1);
	asked = guard_wait(&g);
	start_send(f.p.c, f.text, 200, f.q, 2, NO_REGION);
	must(exs_cancel(f.q, -1, 1, EXS_CAF_AHANDLE));
	event_is(f.q, EXS_EVT_SENDFILE, 1, ECANCELED, 0);
	arrives(&f, 200, 0, 0, 0);
	event_is(f.q, EXS_EVT_SEND, 2, 0, 200);
	must_be(counter("live_feeds"), 1);
	guard_answer(&g, asked, FAN_ALLOW);
	wait_until(!counter("live_feeds"));
	must_be(delta("file_bytes"), 0);
}

/* The peer's answer is not waited for either. */
static void reset_while_read(void)
{
	struct linger now = { .l_onoff = 1 };
	struct guard g;
	struct flow f;
	int asked;

	flow_open(&f, 10000);
	g = guard_open(&f.file);
	set(&f, 0, 0, 10000, 0);
	start(&f, 0, 1);
	asked = guard_wait(&g);
	must(setsockopt(f.p.s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	must(close(f.p.s));
	event_is(f.q, EXS_EVT_SENDFILE, 1, ECONNRESET, 0);
	guard_answer(&g, asked, FAN_ALLOW);
}

/* Bytes read before are sent and reported; a message is sent whole or not at all. */
static void unreadable(void)
{
	exs_evt_xferfile_t *x;
	struct flow f, good;
	exs_event_t ev;
	struct guard g;
	exs_fdvec_t files[2];
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = files, .msg_iovlen = 2 };

	flow_open(&f, 10000);
	flow_open(&good, 10000);
	g = guard_open(&f.file);
	set(&f, 100, 0, 10000, 100);
	start(&f, 0, 1);
	guard_answer(&g, guard_wait(&g), FAN_DENY);
	ev = event_next(f.q);
	event_check(&ev, EXS_EVT_SENDFILE, 1, EPERM, 0);
	x = &ev.exs_evt_union.exs_evt_xferfile;
	must_be(x->exs_evt_header, e2e.seq ? 0 : 100);
	must_be(x->exs_evt_length, e2e.seq ? 0 : 100);
	if (!e2e.seq)
		arrives(&f, 100, 0, 0, 0);
	files[0] = (exs_fdvec_t){ good.file, 0, 500 };
	files[1] = (exs_fdvec_t){ f.file, 0, 500 };
	must(exs_sendmsg(f.p.c, &msg, 0, f.q, 2));
	guard_answer(&g, guard_wait(&g), FAN_DENY);
	event_is(f.q, EXS_EVT_SENDMSG, 2, EPERM, 0);
	if (!e2e.seq)
		arrives(&f, 0, 0, 500, 0);
	close(g.fd);
	transfer(&f, 1, 0, 10000, 10000, 1);
}

/* -- ends */

/* The peer takes some of it and then no more. */
static void cancelled(void)
{
	exs_event_t ev;
	struct flow f;
	size_t n;

	flow_open(&f, 8 * MIB);
	set(&f, 0, 0, 8 * MIB, 0);
	start(&f, 0, 1);
	if (!e2e.seq)
		arrives(&f, 0, 0, 100, 0);
	else
		wait_delta("file_bytes", 8 * MIB);
	must(exs_cancel(f.q, f.p.c, 0, EXS_CAF_FILDES));
	if (e2e.seq) {
		event_is(f.q, EXS_EVT_SENDFILE, 1, ECANCELED, 0);
	} else {
		ev = event_next(f.q);
		n = ev.exs_evt_union.exs_evt_xferfile.exs_evt_length;
		must_be(ev.exs_evt_errno, 0);
		check(n >= 100 && n < 8 * MIB, "%zu bytes were sent", n);
		receive(&f, n - 100);
		data_check(FILE_SEED, 100, f.in, n - 100);
	}
	transfer(&f, 10, 5, 1000, 1000, 10);
}

static void exits(void *arg)
{
	struct flow *f = arg;

	f->q = queue_new(4);
	start(f, 0, 1);
}

/* The file is the operation's, but the operation is the process's. */
static void owner_exits(void)
{
	struct flow f;

	flow_open(&f, 8 * MIB);
	set(&f, 0, 0, 8 * MIB, 0);
	join(spawn(exits, &f));
	wait_until(!counter("live_feeds"));
	wait_until(!counter("live_ops"));
}

static void too_large(void)
{
	struct flow f;

	flow_open(&f, 8 * MIB + 1);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	start(&f, 0, 1);
	event_is(f.q, EXS_EVT_SENDFILE, 1, EMSGSIZE, 0);
	set(&f, 1, 0, 8 * MIB, 0);
	start(&f, 0, 2);
	event_is(f.q, EXS_EVT_SENDFILE, 2, EMSGSIZE, 0);
	transfer(&f, 0, 1, EXS_TO_EOF, 8 * MIB, 0);
	transfer(&f, 1, 0, 8 * MIB - 1, 8 * MIB - 1, 0);
}

/* -- refused calls, which leave nothing behind */

static void files_refused(struct flow *f, int err)
{
	must_fail(exs_sendfile(f->p.c, &f->x, 0, f->q, 1), err);
}

static void bad_files(void)
{
	struct flow f;
	int fds[2];

	flow_open(&f, 10000);
	set(&f, 10, 0, 10, 10);
	f.x.xf_file.fd_file = -1;
	files_refused(&f, EBADF);
	f.x.xf_file.fd_file = must(open("/dev/null", O_RDONLY));
	must(close(f.x.xf_file.fd_file));
	files_refused(&f, EBADF);
	f.x.xf_file.fd_file = must(open("/run/exs", O_TMPFILE | O_WRONLY, 0600));
	files_refused(&f, EBADF);
	f.x.xf_file.fd_file = must(open("/run/exs", O_RDONLY | O_DIRECTORY));
	files_refused(&f, EINVAL);
	must(pipe(fds));
	f.x.xf_file.fd_file = fds[0];
	files_refused(&f, EINVAL);
	f.x.xf_file.fd_file = f.p.s;
	files_refused(&f, EINVAL);
	f.x.xf_file.fd_file = f.q;
	files_refused(&f, EINVAL);
	f.x.xf_file = (exs_fdvec_t){ f.file, -1, 10 };
	files_refused(&f, EINVAL);
	f.x.xf_file = (exs_fdvec_t){ f.file, 10, INT64_MAX - 9 };
	files_refused(&f, EOVERFLOW);
	no_event(f.q);
}

/* Their content depends on the reading task, which would be a worker. */
static void files_without_pages(void)
{
	static const char *const names[] = {
		"/proc/sys/kernel/hostname", "/proc/self/status", "/sys/kernel/notes", "/sys/kernel/profiling",
	};
	struct flow f;
	size_t i;
	int refused = 0;

	flow_open(&f, 10000);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	must(unshare(CLONE_NEWUTS));
	must(sethostname("inner", 5));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		f.x.xf_file.fd_file = open(names[i], O_RDONLY);
		if (f.x.xf_file.fd_file < 0)
			continue;
		files_refused(&f, EINVAL);
		must_be(delta("files_refused"), ++refused);
		must(close(f.x.xf_file.fd_file));
	}
	check(refused >= 3, "only %d such files here", refused);
	must(close(f.file));
	f.file = f.x.xf_file.fd_file = file_new(FILE_SEED, 10000);
	transfer(&f, 0, 0, EXS_TO_EOF, 10000, 0);
}

/* An overlay is what lies below it. */
static void overlays(void)
{
	char dir[] = "/run/exs/overlay-XXXXXX", path[64];
	struct flow f;

	flow_open(&f, 10000);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	check(mkdtemp(dir), "mkdtemp: %s", errno_name(errno));
	must(unshare(CLONE_NEWNS));
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (mount("exs", dir, "overlay", MS_RDONLY, "lowerdir=/sys/kernel:/run/exs"))
		skip("no overlay over sysfs: %s", errno_name(errno));
	snprintf(path, sizeof(path), "%s/notes", dir);
	f.x.xf_file.fd_file = must(open(path, O_RDONLY));
	files_refused(&f, EINVAL);
	must_be(delta("files_refused"), 1);
	must(close(f.x.xf_file.fd_file));
	f.x.xf_file.fd_file = f.file;
	transfer(&f, 0, 0, EXS_TO_EOF, 10000, 0);
}

/* A process that has a failing page mapped is killed. */
static void break_page(void *arg)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)arg, 4096);

	check(page != MAP_FAILED, "mmap: %s", errno_name(errno));
	*page = 1;
	must(madvise(page, 4096, MADV_HWPOISON));
}

/* A page of the file cannot be read, as if its memory were broken. */
static void broken(void)
{
	int fd = must(memfd_create("e2e", MFD_CLOEXEC));
	exs_xferfile_t x = { .xf_file = { fd, 4096, 5000 } };
	struct flow f;

	if (madvise(NULL, 0, MADV_HWPOISON))
		skip("this kernel breaks no memory (%s)", errno_name(errno));
	flow_open(&f, 10000);
	must(ftruncate(fd, 10000));
	reap(spawn(break_page, &fd));
	must(exs_sendfile(f.p.c, &x, 0, f.q, 1));
	event_is(f.q, EXS_EVT_SENDFILE, 1, EIO, 0);
}

/* EXS_SHUT_WR, as by a security module. */
static void may_not_shut_down(void)
{
	struct flow f;

	flow_open(&f, 10000);
	set(&f, 0, 0, 10, 0);
	forbid_call(SYS_shutdown, EACCES);
	must_fail(exs_sendfile(f.p.c, &f.x, EXS_SHUT_WR, f.q, 1), EACCES);
	no_event(f.q);
	transfer(&f, 0, 0, 10, 10, 0);
}

static void bad_calls(void)
{
	struct exs_sqe_iovec iov = { .len = 10, .flags = EXS_IOV_FILE };
	struct exs_sqe_msg msg = { .iov = (uintptr_t)&iov, .count = 1 };
	struct exs_sqe sqe = { .opcode = EXS_OP_RECVMSG, .addr = (uintptr_t)&msg, .len = sizeof(msg),
			       .region = EXS_REGION_NONE };
	struct flow f;
	int fd;

	flow_open(&f, 10000);
	set(&f, 10, 0, 10, 10);
	must_fail(exs_sendfile(f.p.c, &f.x, MSG_OOB << 1, f.q, 1), EINVAL);
	must_fail(exs_sendfile(f.file, &f.x, 0, f.q, 1), ENOTSOCK);
	must_fail(exs_sendfile(f.file, &f.x, EXS_SHUT_WR, f.q, 1), ENOTSOCK);
	fd = new_socket();
	must_fail(exs_sendfile(fd, &f.x, 0, f.q, 1), EPIPE);
	must_fail(exs_sendfile(must(socket(AF_NETLINK, SOCK_RAW, 0)), &f.x, 0, f.q, 1), EOPNOTSUPP);
	f.header[1].iov_mhandle = f.file;
	files_refused(&f, EINVAL);
	f.header[1].iov_mhandle = NO_REGION;
	f.header[1].iov_base = (void *)0x10;
	files_refused(&f, EFAULT);
	f.x.xf_headerlen = 1023;
	files_refused(&f, EMSGSIZE);
	sqe.fd = f.p.s;
	iov.region = f.file;
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	iov.flags = EXS_IOV_FILE | 2;
	sqe.opcode = EXS_OP_SENDFILE;
	must_fail(submit_raw(f.q, &sqe, 1), EINVAL);
	no_event(f.q);
	must_be(counter("live_feeds"), 0);
}

/* Pages of the page cache that it holds count. */
static void not_for_free(void)
{
	struct flow f;

	flow_open(&f, MIB);
	set(&f, 0, 0, EXS_TO_EOF, 0);
	write_sysctl("max_user_pages", 100);
	files_refused(&f, ENOBUFS);
	check(delta("limit_pages") >= 1, "not counted");
	sysctls_restore();
	transfer(&f, 0, 0, EXS_TO_EOF, MIB, 0);
}

static void without_queue(void)
{
	struct flow f;

	flow_open(&f, 20000);
	set(&f, 100, 50, EXS_TO_EOF, 100);
	must_be(exs_sendfile(f.p.c, &f.x, EXS_SHUT_WR, EXS_QHANDLE_INVALID, 0), 20150);
	arrives(&f, 100, 50, 19950, 100);
	must_be(recv(f.p.s, f.in, 1, 0), 0);
}

static const struct e2e_case cases[] = {
	{ "pieces", pieces, .on = ON_BOTH },
	{ "large", large, .on = ON_BOTH },
	{ "direct", direct, .on = ON_BOTH },
	{ "to_the_end", to_the_end, .on = ON_BOTH },
	{ "in_order", in_order, .on = ON_BOTH },
	{ "shut_wr", shut_wr, .on = ON_BOTH },
	{ "closed_at_once", closed_at_once, .on = ON_BOTH },
	{ "file_vector", file_vector, .on = ON_BOTH },
	{ "other_file_system", other_file_system, .on = ON_BOTH },
	{ "truncated", truncated, .on = ON_STREAM },
	{ "slow", slow, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "cancelled_while_read", cancelled_while_read, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "reset_while_read", reset_while_read, .on = ON_STREAM },
	{ "unreadable", unreadable, .on = ON_BOTH },
	{ "cancelled", cancelled, .on = ON_BOTH },
	{ "owner_exits", owner_exits, .on = ON_BOTH },
	{ "too_large", too_large, .on = ON_SEQ },
	{ "bad_files", bad_files, .on = ON_BOTH },
	{ "files_without_pages", files_without_pages, .on = ON_BOTH },
	{ "overlays", overlays, .on = ON_BOTH },
	{ "broken", broken, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "may_not_shut_down", may_not_shut_down, .on = ON_BOTH },
	{ "bad_calls", bad_calls, .on = ON_BOTH },
	{ "not_for_free", not_for_free, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "without_queue", without_queue, .on = ON_BOTH },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
