// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cp.h"
#include "output.h"
#include "say.h"

static bool fail(struct output *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct output *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->text, sizeof(out->text), fmt, ap);
	va_end(ap);
	return false;
}

/* Advice for the receiver's user, or "". */
static const char *output_advice(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
	case EROFS:
		return ": name a directory where this user may write";
	case EDQUOT:
	case ENOSPC:
		return ": free some space there, or name another directory";
	case EISDIR:
		return ": use --name, or name another directory";
	case ENOENT:
		return ": create the directory first";
	case ENOTDIR:
		return ": name a directory";
	case EFBIG:
		return ": name a directory of another file system, or see ulimit -f";
	default:
		return file_advice(err);
	}
}

static bool fail_path(struct output *out, const char *path, int err)
{
	return fail(out, "%s: %s%s", path, strerror(err), output_advice(err));
}

static bool fail_errno(struct output *out)
{
	return fail_path(out, out->name, errno);
}

/* A name without a path; the name of the part must fit, too. */
static bool good_name(const char *name)
{
	return *name && strcmp(name, ".") && strcmp(name, "..") &&
	       !strchr(name, '/') && strlen(name) <= NAME_MAX - strlen("..part");
}

static bool set_name(struct output *out, const char *name)
{
	if (!good_name(name))
		return fail(out, "the receiver does not accept this name: use --name");
	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->part, sizeof(out->part), ".%.*s.part",
		 (int)(NAME_MAX - strlen("..part")), name);
	return true;
}

/* A sender must not write parts or configuration files of this user. */
static bool set_senders_name(struct output *out, const char *name)
{
	if (*name == '.')
		return fail(out, "the receiver does not accept names that begin with a dot: use --name");
	return set_name(out, name);
}

static bool open_dir(struct output *out, const char *path)
{
	out->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return out->dir >= 0 || fail_path(out, path, errno);
}

/* @dest is the name of a file, which may exist. */
static bool name_from_path(struct output *out, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		     slash ? path : ".") >= (int)sizeof(dir))
		return fail(out, "the receiver's destination is too long: start it in a directory nearer to it");
	return open_dir(out, dir) && set_name(out, slash ? slash + 1 : path);
}

/* Where a link leads, if the kernel follows it: in /tmp it does not follow those of other users. */
static bool follow_link(struct output *out, const char *link, char *file, size_t room)
{
	int fd = open(link, O_PATH | O_CLOEXEC);
	char self[40];
	ssize_t len;

	if (fd < 0)
		return fail(out, errno == ENOENT ? "%s: this link leads to no file: remove it" :
			    "%s: this link cannot be followed: name its file instead", link);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	len = readlink(self, file, room - 1);
	close(fd);
	file[len < 0 ? 0 : len] = '\0';
	return len >= 0 || fail_path(out, link, errno);
}

/* A link stays, and its file is replaced, as by cp(1). */
static bool name_from_dest(struct output *out, const char *dest)
{
	char file[PATH_MAX];
	struct stat st;

	if (lstat(dest, &st) || !S_ISLNK(st.st_mode))
		return name_from_path(out, dest);
	return follow_link(out, dest, file, sizeof(file)) && name_from_path(out, file);
}

static bool open_direct(struct output *out, const char *dest)
{
	out->direct = true;
	snprintf(out->name, sizeof(out->name), "%s", dest);
	if (!strcmp(dest, "-"))
		out->fd = dup(STDOUT_FILENO);
	else
		out->fd = open(dest, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return out->fd >= 0 || fail_errno(out);
}

/* The process that had it locked may have renamed it. */
static bool still_there(struct output *out, const struct stat *st)
{
	struct stat now;

	return !fstatat(out->dir, out->part, &now, AT_SYMLINK_NOFOLLOW) &&
	       now.st_ino == st->st_ino && now.st_dev == st->st_dev;
}

static bool in_progress(struct output *out)
{
	return fail(out, "%s: another copy is in progress: wait for it, or use --name", out->name);
}

/* Some file systems have no locks. */
static bool cannot_lock(struct output *out, bool fresh)
{
	fail(out, "%s: cannot be locked: %s: take a directory of another file system", out->name,
	     strerror(errno));
	if (fresh)
		unlinkat(out->dir, out->part, 0);
	return false;
}

static bool lock_part(struct output *out, bool fresh)
{
	struct stat st;

	if (flock(out->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? in_progress(out) : cannot_lock(out, fresh);
	if (fstat(out->fd, &st) || !still_there(out, &st))
		return in_progress(out);
	out->pos = st.st_size;
	return true;
}

/* Another user could have created it, to make us write elsewhere. */
static bool old_part(struct output *out)
{
	struct stat st;

	if (fstat(out->fd, &st))
		return fail_errno(out);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return fail(out, "%s: not a regular file of this user, or has another link: remove it", out->part);
	return lock_part(out, false);
}

static bool not_a_directory(struct output *out)
{
	struct stat st;

	if (!fstatat(out->dir, out->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISDIR(st.st_mode))
		return fail_path(out, out->name, EISDIR);
	return true;
}

static bool open_part(struct output *out)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	if (!not_a_directory(out))
		return false;
	out->fd = openat(out->dir, out->part, flags | O_EXCL, 0600);
	if (out->fd >= 0)
		return lock_part(out, true);	/* not every file system keeps the owner */
	out->fd = openat(out->dir, out->part, flags, 0600);
	if (out->fd < 0)
		return fail_errno(out);
	return old_part(out);
}

static bool open_somehow(struct output *out, const char *dest,
			 const char *name)
{
	struct stat st;
	bool exists;

	if (!strcmp(dest, "-"))
		return open_direct(out, dest);
	exists = !stat(dest, &st);
	if (exists && S_ISDIR(st.st_mode))
		return open_dir(out, dest) && set_senders_name(out, name) &&
		       open_part(out);
	if (exists && !S_ISREG(st.st_mode))
		return open_direct(out, dest);
	return name_from_dest(out, dest) && open_part(out);
}

static void close_all(struct output *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->dir >= 0)
		close(out->dir);
	out->fd = out->dir = -1;
}

bool output_open(struct output *out, const char *dest, const char *name)
{
	memset(out, 0, sizeof(*out));
	out->fd = out->dir = -1;
	if (open_somehow(out, dest, name))
		return true;
	close_all(out);
	return false;
}

static bool check_somehow(struct output *out, const char *dest)
{
	struct stat st;
	bool exists = !stat(dest, &st);

	if (!strcmp(dest, "-") || (exists && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return true;
	if (exists && S_ISDIR(st.st_mode)) {
		snprintf(out->name, sizeof(out->name), "%s", dest);
		return open_dir(out, dest) &&
		       (!faccessat(out->dir, ".", W_OK | X_OK, AT_EACCESS) || fail_errno(out));
	}
	return name_from_dest(out, dest) &&
	       (!faccessat(out->dir, ".", W_OK | X_OK, AT_EACCESS) ||
		fail_path(out, dest, errno));
}

bool output_check(struct output *out, const char *dest)
{
	bool ok;

	memset(out, 0, sizeof(*out));
	out->fd = out->dir = -1;
	ok = check_somehow(out, dest);
	close_all(out);
	return ok;
}

bool output_restart(struct output *out)
{
	out->pos = 0;
	return out->direct || !ftruncate(out->fd, 0) || fail_errno(out);
}

static ssize_t write_some(struct output *out, const char *data, size_t len)
{
	if (out->direct)
		return write(out->fd, data, len);
	return pwrite(out->fd, data, len, out->pos);
}

bool output_write(struct output *out, const void *data, size_t len)
{
	const char *from = data;
	ssize_t n;

	while (len) {
		n = write_some(out, from, len);
		if (n < 0 && errno == EINTR && !interrupted)
			continue;
		if (n <= 0)
			return fail_errno(out);
		from += n;
		len -= n;
		out->pos += n;
	}
	return true;
}

static mode_t current_umask(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return mask;
}

/* Pipes, terminals, many devices, and the directories of some file systems have nothing to flush. */
static bool flush(int fd)
{
	return !fsync(fd) || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

/*
 * After a failure the part can be read, from the cache, but what is on the disk is unknown,
 * and another fsync() may not fail: so nothing of it is kept.
 */
static bool flush_part(struct output *out)
{
	if (!fsync(out->fd))
		return true;
	out->pos = 0;
	return false;
}

static bool give_name(struct output *out, unsigned int mode)
{
	if (fchmod(out->fd, mode & 0777 & ~current_umask()) || !flush_part(out) ||
	    renameat(out->dir, out->part, out->dir, out->name))
		return fail_errno(out);
	return flush(out->dir) ||
	       fail(out, "%.100s: is there, but its name may be lost in a crash: %s",
		    out->name, strerror(errno));
}

/* The name belongs to the complete file, or to the previous one. */
bool output_commit(struct output *out, unsigned int mode)
{
	bool ok = out->direct ? flush(out->fd) || fail_errno(out) : give_name(out, mode);

	if (ok)
		close_all(out);
	return ok;
}

void output_abandon(struct output *out, bool keep)
{
	if (out->fd >= 0 && !out->direct && (!keep || !out->pos))
		unlinkat(out->dir, out->part, 0);
	close_all(out);
}
