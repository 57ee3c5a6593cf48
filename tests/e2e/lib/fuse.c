// SPDX-License-Identifier: GPL-2.0
/*
 * A file system of one file, with only the requests that the tests need. It is a process
 * of its own: a process that waits for itself could not be killed.
 */
#include "file.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DIRECTORY = FUSE_ROOT_ID, THE_FILE };

struct server {
	int fd;
	int read_err;		/* 0: reads are zeros */
	uint32_t answers;	/* polls of this process only, or 0 */
};

static const struct fuse_attr attrs[] = {
	[DIRECTORY] = { .ino = DIRECTORY, .mode = S_IFDIR | 0755, .nlink = 2 },
	[THE_FILE] = { .ino = THE_FILE, .mode = S_IFREG | 0644, .nlink = 1, .size = MIB },
};

static void answer(const struct server *s, uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = sizeof(out) + len, .error = -err, .unique = unique };
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)data, len } };

	must_be(writev(s->fd, iov, 2), out.len);
}

static void answer_read(const struct server *s, const struct fuse_in_header *in)
{
	const struct fuse_read_in *read = (const void *)(in + 1);
	static const char zeros[MIB];

	if (s->read_err)
		return answer(s, in->unique, s->read_err, NULL, 0);
	answer(s, in->unique, 0, zeros, read->size < MIB ? read->size : MIB);
}

static void answer_to(const struct server *s, const struct fuse_in_header *in)
{
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096, .max_readahead = 4096,
	};
	const struct fuse_entry_out entry = { .nodeid = THE_FILE, .attr = attrs[THE_FILE] };
	const struct fuse_open_out opened = { 0 };
	const struct fuse_poll_out none = { 0 };
	struct fuse_attr_out attr = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(s, in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return answer(s, in->unique, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
		attr.attr = attrs[in->nodeid == THE_FILE ? THE_FILE : DIRECTORY];
		return answer(s, in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return answer(s, in->unique, 0, &opened, sizeof(opened));
	case FUSE_READ:
		return answer_read(s, in);
	case FUSE_POLL:
		if (!s->answers)
			return answer(s, in->unique, ENOSYS, NULL, 0);
		if (in->pid == s->answers)
			answer(s, in->unique, 0, &none, sizeof(none));
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return answer(s, in->unique, ENOSYS, NULL, 0);
	}
}

/* Until it is unmounted, and the file closed. */
static void serve(void *arg)
{
	union {
		struct fuse_in_header in;
		char room[FUSE_MIN_READ_BUFFER + 4096];
	} r;

	while (read(((struct server *)arg)->fd, &r, sizeof(r)) > 0)
		answer_to(arg, &r.in);
}

/* Its only file. */
static struct silent_file file_of(struct server s, int flags)
{
	char dir[] = "/run/exs/fuse-XXXXXX", data[64], path[64];
	struct silent_file f;

	s.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (s.fd < 0)
		skip("no FUSE: %s", errno_name(errno));
	check(mkdtemp(dir), "mkdtemp: %s", errno_name(errno));
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0", s.fd);
	must(mount("exs", dir, "fuse", MS_NOSUID | MS_NODEV, data));
	f.server = spawn(serve, &s);
	close(s.fd);
	snprintf(path, sizeof(path), "%s/file", dir);
	f.fd = must(open(path, flags));
	must(umount2(dir, MNT_DETACH));
	rmdir(dir);
	return f;
}

int file_that_fails(int err)
{
	return file_of((struct server){ .read_err = err }, O_RDONLY).fd;
}

int file_of_zeros(void)
{
	return file_of((struct server){ 0 }, O_RDWR).fd;
}

struct silent_file file_without_answers(void)
{
	return file_of((struct server){ .read_err = EIO, .answers = getpid() }, O_RDONLY);
}
