// SPDX-License-Identifier: MIT
/* Ping-pong without the ES-API: with send() and recv(). */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "perf.h"
#include "say.h"

enum { OUT, IN };

bool plain_begin(struct perf *p)
{
	int usec = PERF_BUSY_USEC;

	if (!(p->flags & PERF_BUSY) ||
	    !exs_setsockopt(p->fd, SOL_EXS, EXS_SO_BUSY_POLL, &usec, sizeof(usec)))
		return true;
	perf_failed("cannot poll (--busy)", errno);
	return false;
}

/* The signal of perf_watch(): after the first one, the wait continues. */
static bool again(int *interrupted)
{
	return errno == EINTR && ++*interrupted < 2;
}

static bool send_it(struct perf *p)
{
	size_t sent = 0;
	int interrupted = 0;
	ssize_t n;

	while (sent < p->size) {
		n = send(p->fd, buffer_at(&p->b, OUT) + sent, p->size - sent, MSG_NOSIGNAL);
		if (n < 0 && !again(&interrupted)) {
			perf_failed("send", errno);
			return false;
		}
		sent += n > 0 ? n : 0;
	}
	return true;
}

/* Return: bytes, fewer than all at the end; -1: failed, and the reason was printed. */
static ssize_t recv_it(struct perf *p)
{
	size_t got = 0;
	int interrupted = 0;
	ssize_t n;

	while (got < p->size) {
		n = recv(p->fd, buffer_at(&p->b, IN) + got, p->size - got, MSG_WAITALL);
		if (!n)
			break;
		if (n < 0 && !again(&interrupted)) {
			perf_failed("recv", errno);
			return -1;
		}
		got += n > 0 ? n : 0;
	}
	return got;
}

bool plain_round_trip(struct perf *p)
{
	ssize_t got = send_it(p) ? recv_it(p) : -1;

	if (got >= 0 && got < p->size)
		say("the server ended the test: see what it says");
	return got == p->size;
}

bool plain_server(struct perf *p)
{
	ssize_t got;

	if (!plain_begin(p))
		return false;
	while ((got = recv_it(p)) == p->size)
		if (!send_it(p))
			return false;
	return !got;
}
