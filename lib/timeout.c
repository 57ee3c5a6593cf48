// SPDX-License-Identifier: MIT
/*
 * SO_ASYNC_SEND_TIMEOUT and SO_ASYNC_RECV_TIMEOUT of ordinary sockets. The kernel cannot
 * store them, so the library does, and passes them with every operation.
 *
 * They are stored by descriptor. The program may close it, and another socket may get its
 * number, so the unique cookie of the socket is stored, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib.h"

struct timeouts {
	struct timeouts *next;
	int fd;
	uint64_t cookie;
	struct exs_opt_timeout of[2];	/* send, recv */
};

#define BUCKETS	256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct timeouts *table[BUCKETS];
bool exs_timeout_any;

static void lock_table(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&lock);
}

/* A child has the same descriptors. */
static void init(void)
{
	pthread_atfork(lock_table, unlock_table, unlock_table);
}

static int get_cookie(int fd, uint64_t *cookie)
{
	socklen_t len = sizeof(*cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &len);
}

static struct timeouts *find(int fd)
{
	struct timeouts *t = table[fd % BUCKETS];

	while (t && t->fd != fd)
		t = t->next;
	return t;
}

static struct timeouts *add(int fd)
{
	struct timeouts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = fd;
	t->next = table[fd % BUCKETS];
	table[fd % BUCKETS] = t;
	__atomic_store_n(&exs_timeout_any, true, __ATOMIC_RELEASE);
	return t;
}

static int set(int fd, uint64_t cookie, int which, const struct exs_opt_timeout *opt)
{
	struct timeouts *t = find(fd) ?: add(fd);

	if (!t)
		return -1;
	if (t->cookie != cookie)
		t->of[0] = t->of[1] = (struct exs_opt_timeout){ 0 };
	t->cookie = cookie;
	t->of[which] = *opt;
	if (!opt->ns)
		t->of[which].flags = 0;
	return 0;
}

int exs_timeout_set(int fd, int option, const struct exs_opt_timeout *opt)
{
	uint64_t cookie;
	int ret;

	if (get_cookie(fd, &cookie))
		return -1;
	if (opt->flags & ~EXS_TIMEOUT_ONCE) {
		errno = EINVAL;
		return -1;
	}
	pthread_once(&once, init);
	lock_table();
	ret = set(fd, cookie, option == EXS_SO_RECV_TIMEOUT, opt);
	unlock_table();
	return ret;
}

/* The timeouts of the last socket with this number; the caller checks that it is the same. */
static void look_up(int fd, struct timeouts *t)
{
	struct timeouts *found;

	*t = (struct timeouts){ 0 };
	if (!__atomic_load_n(&exs_timeout_any, __ATOMIC_ACQUIRE) || fd < 0)
		return;
	lock_table();
	found = find(fd);
	if (found)
		*t = *found;
	unlock_table();
}

int exs_timeout_get(int fd, int option, struct exs_opt_timeout *opt)
{
	struct timeouts t;
	uint64_t cookie;

	if (get_cookie(fd, &cookie))
		return -1;
	look_up(fd, &t);
	if (t.cookie == cookie)
		*opt = t.of[option == EXS_SO_RECV_TIMEOUT];
	else
		*opt = (struct exs_opt_timeout){ 0 };
	return 0;
}

/* 0: the send timeout, 1: the receive timeout, -1: neither. */
static int which_of(uint32_t opcode)
{
	switch (opcode) {
	case EXS_OP_SEND:
	case EXS_OP_SENDMSG:
	case EXS_OP_SENDFILE:
		return 0;
	case EXS_OP_RECV:
	case EXS_OP_RECVMSG:
		return 1;
	default:
		return -1;
	}
}

void exs_timeout_look_up(struct exs_sqe *sqe)
{
	int which = which_of(sqe->opcode), err = errno;
	struct timeouts t;
	uint64_t cookie;

	if (which < 0)
		return;
	look_up(sqe->fd, &t);
	if (!t.of[which].ns)
		return;
	if (!get_cookie(sqe->fd, &cookie) && cookie == t.cookie) {
		sqe->timeout = t.of[which].ns;
		sqe->flags |= t.of[which].flags ? EXS_SQE_TIMEOUT_ONCE : 0;
	}
	errno = err;
}
