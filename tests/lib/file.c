// SPDX-License-Identifier: MIT
/* exs_sendfile(), and exs_sendmsg() with EXS_FDVEC. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exs.h>

#include "check.h"
#include "fake.h"

#define FILE_LEN	200000

static exs_iovec_t header[] = { { "he", 2, 5 }, { "ader", 4, EXS_MHANDLE_UNREGISTERED } };
static exs_iovec_t trailer[] = { { "end", 3, 6 } };
static char buf[FILE_LEN + 100];

static exs_xferfile_t transfer(int fd, size_t len)
{
	return (exs_xferfile_t){
		.xf_header = header, .xf_headerlen = 2,
		.xf_file = { fd, 4096, len },
		.xf_trailer = trailer, .xf_trailerlen = 1,
	};
}

static char byte_at(size_t pos)
{
	return pos % 251 + pos / 251;
}

static int file_of(size_t len)
{
	int fd = memfd_create("file", 0);
	size_t i;

	CHECK(fd >= 0 && len <= sizeof(buf));
	for (i = 0; i < len; i++)
		buf[i] = byte_at(i);
	CHECK(write(fd, buf, len) == (ssize_t)len);
	memset(buf, 0, sizeof(buf));
	return fd;
}

static void is_piece(size_t i, const void *addr, size_t len, int region)
{
	CHECK(fake.iov[i].addr == (uintptr_t)addr && fake.iov[i].len == len);
	CHECK(fake.iov[i].region == region && !fake.iov[i].flags);
}

static void is_file(size_t i, int fd, uint64_t offset, uint64_t len)
{
	CHECK(fake.iov[i].addr == offset && fake.iov[i].len == len);
	CHECK(fake.iov[i].region == fd && fake.iov[i].flags == EXS_IOV_FILE);
}

static void as_submitted(void)
{
	exs_xferfile_t x = transfer(77, 1000);
	int q = fake_queue(0);

	CHECK(!exs_sendfile(33, &x, MSG_NOSIGNAL, q, 44));
	CHECK(fake.sqe.opcode == EXS_OP_SENDFILE && fake.sqe.fd == 33);
	CHECK(fake.sqe.handle == 44 && fake.sqe.region == EXS_REGION_NONE);
	CHECK(fake.sqe.msg_flags == MSG_NOSIGNAL);
	CHECK(fake.msg.count == 4 && !fake.msg.flags);
	is_piece(0, header[0].iov_base, 2, 5);
	is_piece(1, header[1].iov_base, 4, EXS_REGION_NONE);
	is_file(2, 77, 4096, 1000);
	is_piece(3, trailer[0].iov_base, 3, 6);
	x = (exs_xferfile_t){ .xf_file = { 77, 0, EXS_TO_EOF } };
	CHECK(!exs_sendfile(33, &x, 0, q, 44));
	CHECK(fake.msg.count == 1);
	is_file(0, 77, 0, EXS_IOV_TO_EOF);
}

static void vector_as_submitted(void)
{
	static exs_fdvec_t files[EXS_IOV_MAX];
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = files };
	int q = fake_queue(0);
	size_t i;

	for (i = 0; i < EXS_IOV_MAX; i++)
		files[i] = (exs_fdvec_t){ i % 7, i, 2 * i };
	for (msg.msg_iovlen = 0; msg.msg_iovlen <= EXS_IOV_MAX; msg.msg_iovlen += 8) {
		CHECK(!exs_sendmsg(33, &msg, 0, q, 44));
		CHECK(fake.sqe.opcode == EXS_OP_SENDMSG);
		CHECK(fake.msg.count == msg.msg_iovlen);
		for (i = 0; i < msg.msg_iovlen; i++)
			is_file(i, i % 7, i, 2 * i);
	}
}

static void fails(const exs_xferfile_t *x, int q, int err)
{
	exs_xferfile_t copy = x ? *x : (exs_xferfile_t){ 0 };

	CHECK(exs_sendfile(33, x ? &copy : NULL, 0, q, 1) == -1 && errno == err);
}

static void refused(void)
{
	exs_xferfile_t x = transfer(77, 1000), bad;
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC };
	exs_iovec_t wrong = { "x", 1, EXS_MHANDLE_INVALID };
	int q = fake_queue(0);

	fails(NULL, q, EFAULT);
	bad = x;
	bad.xf_header = NULL;
	fails(&bad, q, EFAULT);
	bad = x;
	bad.xf_trailer = NULL;
	fails(&bad, q, EFAULT);
	bad = x;
	bad.xf_headerlen = EXS_IOV_MAX;
	fails(&bad, q, EMSGSIZE);
	bad = x;
	bad.xf_trailerlen = EXS_IOV_MAX - 2;
	fails(&bad, q, EMSGSIZE);
	bad = x;
	bad.xf_trailer = &wrong;
	fails(&bad, q, EINVAL);
	fails(&x, STDERR_FILENO, EINVAL);
	fails(&x, 999, EBADF);
	CHECK(exs_recvmsg(33, &msg, 0, q, 1) == -1 && errno == EINVAL);
	msg.msg_controllen = 1;
	CHECK(exs_sendmsg(33, &msg, 0, q, 1) == -1 && errno == EOPNOTSUPP);
	CHECK(!fake.submitted);
	fake.submit_errno = EAGAIN;
	fails(&x, q, EAGAIN);
}

static void results(void)
{
	struct exs_cqe cqe = { .type = EXS_OP_SENDFILE, .fd = 33, .handle = 44,
			       .length = 109, .parts = { 6, 100 } };
	exs_xferfile_t x = transfer(77, 1000);
	exs_evt_xferfile_t *r;
	int q = fake_queue(0);
	exs_event_t ev;

	CHECK(!exs_sendfile(33, &x, 0, q, 44));
	cqe.user_arg = fake.sqe.user_arg;
	cqe.user_tag = fake.sqe.user_tag;
	fake_post(q, &cqe);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	r = &ev.exs_evt_union.exs_evt_xferfile;
	CHECK(ev.exs_evt_type == EXS_EVT_SENDFILE && !ev.exs_evt_errno);
	CHECK(ev.exs_evt_union.exs_evt_xfer.exs_evt_length == 109);
	CHECK(r->exs_evt_length == 109 && r->exs_evt_xfile == &x);
	CHECK(r->exs_evt_header == 6 && r->exs_evt_file == 100 && r->exs_evt_trailer == 3);
	cqe.error = EIO;
	cqe.length = 0;
	fake_post(q, &cqe);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1 && ev.exs_evt_errno == EIO);
	CHECK(r->exs_evt_length == 106 && !r->exs_evt_trailer);
}

/* The end follows the bytes that were started, and only these. */
static void shut_down(void)
{
	exs_xferfile_t x = transfer(77, 1000);
	int q = fake_queue(0), sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	fake.native = true;
	CHECK(exs_sendfile(33, &x, EXS_SHUT_WR, q, 44) == -1 && errno == EBADF);
	CHECK(exs_sendfile(STDERR_FILENO, &x, EXS_SHUT_WR, q, 44) == -1 &&
	      errno == ENOTSOCK);
	CHECK(!fake.submitted);
	fake.submit_errno = EAGAIN;
	CHECK(exs_sendfile(sv[0], &x, EXS_SHUT_WR, q, 44) == -1 && errno == EAGAIN);
	CHECK(recv(sv[1], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	fake.submit_errno = 0;
	CHECK(!exs_sendfile(sv[0], &x, EXS_SHUT_WR, q, 44));
	CHECK(fake.submitted == 1 && !fake.sqe.msg_flags && !fake.msg.flags);
	CHECK(!recv(sv[1], buf, 1, 0));
}

/* That is the kernel's to do, after it. */
static void shut_down_ordinary(void)
{
	exs_xferfile_t x = transfer(77, 1000);
	int q = fake_queue(0), sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(!exs_sendfile(sv[0], &x, EXS_SHUT_WR, q, 44));
	CHECK(fake.submitted == 1 && !fake.sqe.msg_flags);
	CHECK(fake.msg.flags == EXS_SQE_MSG_SHUT_WR);
	CHECK(recv(sv[1], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

/* A part of it is not taken for the whole: nothing ends. */
static void is_open_after(int fd, size_t len)
{
	CHECK(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) == (ssize_t)len);
	CHECK(recv(fd, buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void shut_down_without_queue(void)
{
	exs_xferfile_t x = transfer(-1, 1000);
	exs_qhandle_t none = EXS_QHANDLE_INVALID;
	int sv[2], ret;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(exs_sendfile(sv[0], &x, EXS_SHUT_WR, none, 0) == 6);
	is_open_after(sv[1], 6);
	x = transfer(file_of(FILE_LEN), EXS_TO_EOF);
	fake.send_max = 3000;
	CHECK(!setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)));
	ret = exs_sendfile(sv[0], &x, EXS_SHUT_WR | MSG_DONTWAIT, none, 0);
	CHECK(ret > 0 && ret < FILE_LEN - 4096);
	is_open_after(sv[1], ret);
	x = (exs_xferfile_t){ .xf_file = { x.xf_file.fd_file, FILE_LEN, EXS_TO_EOF } };
	CHECK(!exs_sendfile(sv[0], &x, EXS_SHUT_WR, none, 0));
	CHECK(!recv(sv[1], buf, 1, MSG_DONTWAIT));
}

static void receive(int fd, size_t len)
{
	size_t done = 0;
	ssize_t n;

	for (; done < len; done += n) {
		n = read(fd, buf + done, len - done);
		CHECK(n > 0);
	}
}

static void check_file(size_t at, size_t pos, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		CHECK(buf[at + i] == byte_at(pos + i));
}

/* @len: of the file, from 4096 on; @got: what there is of it */
static void send_plainly(int type, size_t len, size_t got)
{
	exs_xferfile_t x = transfer(file_of(FILE_LEN), len);
	int sv[2], room = 2 * FILE_LEN, status;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, type, 0, sv));
	CHECK(!setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(exs_sendfile(sv[0], &x, EXS_SHUT_WR, EXS_QHANDLE_INVALID, 0) !=
		      (int)got + 9);
	close(sv[0]);
	if (type == SOCK_STREAM)
		receive(sv[1], got + 9);
	else
		CHECK(recv(sv[1], buf, sizeof(buf), 0) == (ssize_t)got + 9);
	CHECK(!memcmp(buf, "header", 6) && !memcmp(buf + 6 + got, "end", 3));
	check_file(6, 4096, got);
	CHECK(!read(sv[1], buf, 1));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(sv[1]);
	close(x.xf_file.fd_file);
}

static void without_queue(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	size_t i;

	for (i = 0; i < 2; i++) {
		send_plainly(types[i], 0, 0);
		send_plainly(types[i], 1000, 1000);
		send_plainly(types[i], 100000, 100000);
		send_plainly(types[i], EXS_TO_EOF, FILE_LEN - 4096);
		send_plainly(types[i], FILE_LEN, FILE_LEN - 4096);
	}
}

/* Pieces end where no call does. */
static void without_queue_by_and_by(void)
{
	fake.send_max = 1001;
	send_plainly(SOCK_STREAM, 150000, 150000);
	fake.send_max = 1;
	send_plainly(SOCK_STREAM, 10, 10);
}

/* Memory is sent by the kernel: that it is not there is an error like others. */
static void bad_addresses(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	exs_iovec_t nowhere = { (void *)8, 1, EXS_MHANDLE_UNREGISTERED };
	exs_xferfile_t x = transfer(file_of(8192), 1000);
	int sv[2], q = fake_queue(0);
	size_t i;

	CHECK(exs_sendfile(33, (void *)-8, 0, q, 0) == -1 && errno == EFAULT);
	x.xf_header = &nowhere;
	x.xf_headerlen = 1;
	for (i = 0; i < 2; i++) {
		CHECK(!socketpair(AF_UNIX, types[i], 0, sv));
		CHECK(exs_sendfile(sv[0], (void *)-8, 0, EXS_QHANDLE_INVALID, 0) == -1);
		CHECK(errno == EFAULT);
		CHECK(exs_sendfile(sv[0], &x, EXS_SHUT_WR, EXS_QHANDLE_INVALID, 0) == -1);
		CHECK(errno == EFAULT);
		CHECK(recv(sv[1], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	}
}

/* The kernel would send from a buffer that is used again. */
static void without_copy(void)
{
	exs_xferfile_t x = transfer(file_of(8192), 1000);
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = &x.xf_file,
			     .msg_iovlen = 1 };
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(exs_sendfile(sv[0], &x, MSG_ZEROCOPY, EXS_QHANDLE_INVALID, 0) == -1);
	CHECK(errno == EINVAL);
	CHECK(exs_sendmsg(sv[0], &msg, MSG_ZEROCOPY, EXS_QHANDLE_INVALID, 0) == -1);
	CHECK(errno == EINVAL);
	CHECK(recv(sv[1], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static struct sockaddr_in datagrams(int *fd)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(!bind(*fd, (struct sockaddr *)&addr, len));
	CHECK(!getsockname(*fd, (struct sockaddr *)&addr, &len));
	return addr;
}

/* Not to the peer, if it is meant for another. */
static void vector_with_destination(void)
{
	exs_fdvec_t file = { file_of(1000), 0, 10 };
	int fd, peer, q = fake_queue(0);
	struct sockaddr_in to = datagrams(&peer);
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = &file,
			     .msg_iovlen = 1, .msg_name = &to, .msg_namelen = sizeof(to) };

	datagrams(&fd);
	CHECK(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK(exs_sendmsg(fd, &msg, 0, EXS_QHANDLE_INVALID, 0) == -1);
	CHECK(errno == EOPNOTSUPP);
	CHECK(exs_sendmsg(fd, &msg, 0, q, 0) == -1 && errno == EOPNOTSUPP);
	CHECK(recv(peer, buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	msg.msg_name = NULL;
	CHECK(exs_sendmsg(fd, &msg, 0, EXS_QHANDLE_INVALID, 0) == 10);
	CHECK(recv(peer, buf, 11, 0) == 10);
}

static void vector_without_queue(void)
{
	exs_fdvec_t files[20];
	exs_msghdr_t msg = { .msg_iovtype = EXS_FDVEC, .msg_fdvec = files,
			     .msg_iovlen = 20 };
	int fd = file_of(1000), sv[2];
	size_t i;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	for (i = 0; i < 20; i++)
		files[i] = (exs_fdvec_t){ fd, i, 10 };
	CHECK(exs_sendmsg(sv[0], &msg, 0, EXS_QHANDLE_INVALID, 0) == 200);
	CHECK(recv(sv[1], buf, sizeof(buf), 0) == 200);
	for (i = 0; i < 20; i++)
		check_file(10 * i, i, 10);
	files[7].fd_file = -1;
	CHECK(exs_sendmsg(sv[0], &msg, 0, EXS_QHANDLE_INVALID, 0) == -1 && errno == EBADF);
	CHECK(recv(sv[1], buf, sizeof(buf), MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

const struct test file_tests[] = {
	{ "file as submitted", as_submitted },
	{ "file vector as submitted", vector_as_submitted },
	{ "file refused", refused },
	{ "file results", results },
	{ "file shut down", shut_down },
	{ "file shut down ordinary", shut_down_ordinary },
	{ "file shut down without queue", shut_down_without_queue },
	{ "file without queue", without_queue },
	{ "file without queue by and by", without_queue_by_and_by },
	{ "file bad addresses", bad_addresses },
	{ "file without copy", without_copy },
	{ "file vector with destination", vector_with_destination },
	{ "file vector without queue", vector_without_queue },
	{ NULL, NULL },
};
