// SPDX-License-Identifier: MIT
/*
 * Sends without a queue: pieces of memory are sent directly, and files are read into a
 * buffer. A stream is sent in parts that fit into the buffer, a message as a whole.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

#define STREAM_ROOM	(64UL << 10)
#define MESSAGE_MAX	(8UL << 20)
/* The limit of an int, as with other calls. */
#define PLAIN_MAX	0x7ffff000UL

struct gather {
	struct exs_sqe_iovec *from;	/* the remaining pieces               */
	size_t n;
	char *buf;
	size_t room;
	size_t used;			/* of the buffer                      */
	struct iovec *to;		/* what is sent next: one, at most,   */
	size_t count;			/* for each piece                     */
	size_t len;			/* its length in bytes                */
};

static void append(struct gather *g, char *base, size_t len)
{
	struct iovec *last = g->count ? &g->to[g->count - 1] : NULL;

	if (last && (char *)last->iov_base + last->iov_len == base)
		last->iov_len += len;
	else
		g->to[g->count++] = (struct iovec){ base, len };
	g->len += len;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Read from the first piece. Return: bytes; 0: its end; -1 */
static ssize_t take(struct gather *g, size_t max)
{
	struct exs_sqe_iovec *v = g->from;
	char *base = (char *)(uintptr_t)v->addr;
	ssize_t got = smaller(v->len, max);

	if (got && v->flags & EXS_IOV_FILE) {
		base = g->buf + g->used;
		got = pread(v->region, base, smaller(got, g->room - g->used), v->addr);
		g->used += got > 0 ? got : 0;
	}
	if (got <= 0)
		return got;
	append(g, base, got);
	v->addr += got;
	v->len -= got;
	return got;
}

/* Until the buffer is full, or no piece is left. Return: -1: a file could not be read. */
static int collect(struct gather *g, size_t max)
{
	ssize_t got;

	g->used = 0;
	g->count = 0;
	g->len = 0;
	while (g->n && g->used < g->room && g->len < max) {
		got = take(g, max - g->len);
		if (got < 0)
			return -1;
		if (!got || !g->from->len) {
			g->from++;
			g->n--;
		}
	}
	return 0;
}

static ssize_t send_message(int fd, struct gather *g, int flags)
{
	struct msghdr m = { .msg_iov = g->to };

	if (collect(g, PLAIN_MAX))
		return -1;
	if (g->n || g->used == g->room) {
		errno = EMSGSIZE;
		return -1;
	}
	m.msg_iovlen = g->count;
	return sendmsg(fd, &m, flags);
}

static void advance(struct msghdr *m, size_t n)
{
	while (n && n >= m->msg_iov->iov_len) {
		n -= m->msg_iov->iov_len;
		m->msg_iov++;
		m->msg_iovlen--;
	}
	if (n) {
		m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + n;
		m->msg_iov->iov_len -= n;
	}
}

/* Return: 0: everything collected was sent; -1 and errno */
static int send_collected(int fd, struct gather *g, int flags, size_t *sent)
{
	struct msghdr m = { .msg_iov = g->to, .msg_iovlen = g->count };
	ssize_t n;

	for (; g->len; g->len -= n, *sent += n) {
		n = sendmsg(fd, &m, flags);
		if (n < 0)
			return -1;
		advance(&m, n);
	}
	return 0;
}

/* Data read before an error are sent first; then the read fails again. */
static ssize_t send_stream(int fd, struct gather *g, int flags)
{
	size_t sent = 0;
	int ret = 0;

	while (g->n && sent < PLAIN_MAX && !ret) {
		ret = collect(g, PLAIN_MAX - sent);
		if (g->len)
			ret = send_collected(fd, g, flags, &sent);
	}
	return sent || !ret ? (ssize_t)sent : -1;
}

static ssize_t send_gathered(int fd, struct gather *g, int type, int flags, bool *all)
{
	ssize_t ret;

	if (type != SOCK_STREAM) {
		ret = send_message(fd, g, flags);
		*all = ret >= 0;
	} else {
		ret = send_stream(fd, g, flags);
		*all = !g->n && !g->len;
	}
	return ret;
}

ssize_t exs_send_gathered(int fd, struct exs_sqe_iovec *iov, size_t n, int flags,
			  bool *all)
{
	struct gather g = { .from = iov, .n = n };
	socklen_t size = sizeof(int);
	ssize_t ret;
	int type, err;

	*all = false;
	if (flags & MSG_ZEROCOPY) {	/* frees the buffer */
		errno = EINVAL;
		return -1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size))
		return -1;
	g.room = type == SOCK_STREAM ? STREAM_ROOM : MESSAGE_MAX + 1;
	g.to = malloc(n * sizeof(*g.to) + g.room);
	if (!g.to)
		return -1;
	g.buf = (char *)(g.to + n);
	pthread_cleanup_push(free, g.to);
	ret = send_gathered(fd, &g, type, flags, all);
	err = errno;
	pthread_cleanup_pop(1);
	errno = err;
	return ret;
}
