// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "net.h"
#include "outgoing.h"
#include "progress.h"
#include "say.h"
#include "wire.h"

/* The result for one file. */
enum outcome { COPIED, SKIPPED, BROKEN };

static bool lost(const struct sender *s)
{
	if (!interrupted)
		say("%s: connection lost: %s%s", s->host, errno ? strerror(errno) : "closed by the receiver",
		    net_call_advice(errno));
	return false;
}

static bool put(struct sender *s, const void *msg, size_t len)
{
	return net_send_all(s->fd, msg, len, s->o->timeout) || lost(s);
}

/* Return: false: the connection is lost, or the receiver refused; prints the reason. */
static bool get_reply(struct sender *s, struct wire_reply *r)
{
	if (!net_recv_all(s->fd, r, sizeof(*r), ANSWER_FACTOR * s->o->timeout)) {
		s->ended = true;
		return lost(s);
	}
	r->text[WIRE_TEXT - 1] = 0;
	if (!le32toh(r->failed))
		return true;
	say("%s: %s", s->host, r->text);
	return false;
}

static bool greet(struct sender *s)
{
	struct wire_hello h = {
		.size = htole32(s->o->size),
		.flags = htole32(s->o->verify ? WIRE_VERIFY : 0),
	};
	struct wire_reply r;

	memcpy(h.magic, WIRE_MAGIC, sizeof(h.magic));
	if (!put(s, &h, sizeof(h)) || !get_reply(s, &r))
		return false;
	s->verify = le32toh(r.flags) & WIRE_VERIFY;
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *remote_name(const struct options *o, const char *path)
{
	if (o->name)
		return o->name;
	return strcmp(path, "-") ? base_name(path) : "stdin";
}

/* Whether the receiver's part is the beginning of our file. */
static bool same_start(struct outgoing *out, const struct wire_reply *r)
{
	uint64_t offset = le64toh(r->offset);
	uint8_t digest[WIRE_DIGEST];

	if (!offset || !out->s->verify || offset > out->size ||
	    out->size == SIZE_UNKNOWN)
		return false;
	if (!digest_add_file(out->s->digest, out->file, offset))
		return false;
	digest_get(out->s->digest, digest);
	return !memcmp(digest, r->digest, WIRE_DIGEST) &&
	       lseek(out->file, offset, SEEK_SET) == (off_t)offset;
}

static bool send_start(struct outgoing *out, const struct wire_reply *r)
{
	struct wire_start start = { 0 };

	digest_reset(out->s->digest);
	if (same_start(out, r)) {
		out->pos = le64toh(r->offset);
		if (!out->s->o->quiet)
			say("%s: resuming at %llu", out->path,
			    (unsigned long long)out->pos);
	} else {
		digest_reset(out->s->digest);
	}
	start.offset = htole64(out->pos);
	return !interrupted && put(out->s, &start, sizeof(start));
}

static enum outcome send_file(struct outgoing *out, unsigned int mode)
{
	struct sender *s = out->s;
	const char *name = remote_name(s->o, out->path);
	struct wire_file f = {
		.type = htole32(WIRE_FILE),
		.mode = htole32(mode & 0777),
		.size = htole64(out->size),
	};
	struct wire_reply r;
	bool ok;

	if (snprintf(f.name, sizeof(f.name), "%s", name) >=
	    (int)sizeof(f.name)) {
		say("%s: the name is too long: use --name", out->path);
		return SKIPPED;
	}
	if (!put(s, &f, sizeof(f)))
		return BROKEN;
	if (!get_reply(s, &r))
		return s->ended ? BROKEN : SKIPPED;
	if (!send_start(out, &r))
		return BROKEN;
	progress_start(s->o, name, out->size, out->pos);
	ok = outgoing_run(out);
	progress_end(ok);
	/* After a failure at the very end the connection can still be used. */
	if (!ok)
		return out->answered && !s->ended ? SKIPPED : BROKEN;
	return COPIED;
}

/* Files of /proc claim to be empty, those of /sys to be a page. Standard input may have any position. */
static bool size_known(const struct outgoing *out, const struct stat *st)
{
	struct statfs fs;
	char byte;

	if (!S_ISREG(st->st_mode) || !strcmp(out->path, "-") ||
	    (!fstatfs(out->file, &fs) && fs.f_type == SYSFS_MAGIC))
		return false;
	return st->st_size || !pread(out->file, &byte, 1, 0);
}

static bool examine(struct outgoing *out, struct stat *st)
{
	if (fstat(out->file, st)) {
		say_errno("%s", out->path);
		return false;
	}
	if (S_ISDIR(st->st_mode)) {
		say("%s: not copied: it is a directory (tar -c makes one file of it)", out->path);
		return false;
	}
	out->size = SIZE_UNKNOWN;
	out->end = out->s->o->bytes;
	if (size_known(out, st)) {
		if ((uint64_t)st->st_size < out->end)
			out->end = st->st_size;
		out->size = out->end;
	}
	return true;
}

static enum outcome send_open_file(struct sender *s, const char *path, int fd)
{
	struct outgoing out = { .s = s, .path = path, .file = fd };
	struct stat st;

	if (s->ended) {
		say("%s: not copied: a file of unknown size must come last",
		    path);
		return SKIPPED;
	}
	if (!examine(&out, &st))
		return SKIPPED;
	return send_file(&out, S_ISREG(st.st_mode) ? st.st_mode : 0666);
}

static enum outcome send_path(struct sender *s, const char *path)
{
	enum outcome ret;
	int fd = STDIN_FILENO;

	if (strcmp(path, "-"))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		say_errno("%s", path);
		return SKIPPED;
	}
	ret = send_open_file(s, path, fd);
	if (fd != STDIN_FILENO)
		close(fd);
	return ret;
}

static bool send_all(struct sender *s)
{
	struct wire_file end = { .type = htole32(WIRE_END) };
	enum outcome o = COPIED;
	bool ok = true;
	int i;

	for (i = 0; i < s->o->nfiles && o != BROKEN && !interrupted; i++) {
		o = send_path(s, s->o->files[i]);
		ok = ok && o == COPIED;
	}
	if (o == BROKEN || interrupted) {
		for (; i < s->o->nfiles && !interrupted; i++)
			say("%s: not copied: copy it again", s->o->files[i]);
		return false;
	}
	return (s->ended || put(s, &end, sizeof(end))) && ok;
}

static bool connect_and_send(struct sender *s)
{
	s->fd = net_connect(&s->o->ep, SOCK_STREAM, "exs-cp --listen");
	if (s->fd < 0)
		return false;
	return greet(s) && send_all(s);
}

int run_sender(const struct options *o)
{
	struct sender s = {
		.o = o,
		.fd = -1,
		.buffers = BUFFERS_NONE,
		.digest = digest_new(),
	};
	bool ok;

	snprintf(s.host, sizeof(s.host), "%s", o->ep.host);
	if (!s.digest)
		say("cannot compute checksums: %s: free some memory", strerror(errno));
	ok = s.digest && buffers_init(&s.buffers, o->buffers, o->size) &&
	     connect_and_send(&s);
	if (s.fd >= 0)
		close(s.fd);
	buffers_free(&s.buffers);
	digest_free(s.digest);
	return ok ? 0 : 1;
}
