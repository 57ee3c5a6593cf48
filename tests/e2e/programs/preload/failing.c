// SPDX-License-Identifier: GPL-2.0
/*
 * With LD_PRELOAD, the call that FAIL names fails with EIO: flock, ftruncate, read (of a
 * regular file), fsync, or fsync-dir, which is fsync() of a directory; with fsync-none that one is EINVAL, as where
 * directories have nothing to flush.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fails(const char *call)
{
	const char *which = getenv("FAIL");

	errno = EIO;
	return which && !strcmp(which, call);
}

int flock(int fd, int how)
{
	return fails("flock") ? -1 : syscall(SYS_flock, fd, how);
}

int ftruncate(int fd, off_t len)
{
	return fails("ftruncate") ? -1 : syscall(SYS_ftruncate, fd, len);
}

ssize_t read(int fd, void *to, size_t len)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && fails("read"))
		return -1;
	return syscall(SYS_read, fd, to, len);
}

int fsync(int fd)
{
	struct stat st;
	bool dir = !fstat(fd, &st) && S_ISDIR(st.st_mode);

	if (dir && fails("fsync-none")) {
		errno = EINVAL;
		return -1;
	}
	return fails(dir ? "fsync-dir" : "fsync") ? -1 : syscall(SYS_fsync, fd);
}
