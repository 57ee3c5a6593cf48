// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of the manual pages that all calls share: descriptors of another kind, flags that do
 * not exist, lengths, addresses, states, a full queue. No call that fails leaves an event.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define TOO_LONG	2147479553u	/* a byte more than one operation can have */

static char bytes[4096];
static union address to;

/* -- the calls, with a descriptor of each kind that they take */

struct with { int fd; exs_qhandle_t q; exs_mhandle_t m; };

struct call {
	const char *name;
	int (*start)(struct with w);
	int (*right_fd)(void);	/* NULL: it takes none */
	bool queue, region;
};

static int connected(void)
{
	struct pair p;

	pair_open(&p);
	return p.c;
}

static int listening(void)
{
	return listener(2);
}

static int start_a_send(struct with w)
{
	return exs_send(w.fd, bytes, 1, 0, w.q, 1, w.m);
}

static int start_a_recv(struct with w)
{
	return exs_recv(w.fd, bytes, 1, 0, w.q, 1, w.m);
}

static int submit_a_recv(struct with w)
{
	exs_op_t op = {
		.exs_op_type = EXS_EVT_RECV, .exs_op_fd = w.fd, .exs_op_buf = bytes, .exs_op_len = 1,
		.exs_op_region = w.m,
	};

	return exs_submit(w.q, &op, 1);
}

static int start_a_connect(struct with w)
{
	return exs_connect(w.fd, &to.sa, address_len(&to), 0, w.q, 1);
}

static int start_an_accept(struct with w)
{
	return exs_accept(w.fd, NULL, 0, w.q, 1);
}

static int start_a_shutdown(struct with w)
{
	return exs_shutdown(w.fd, SHUT_WR, w.q, 1);
}

static int start_a_close(struct with w)
{
	return exs_close(w.fd, 0, w.q, 1);
}

static int cancel_of(struct with w)
{
	return exs_cancel(w.q, w.fd, 1, EXS_CAF_FILDES);
}

static int dequeue_from(struct with w)
{
	static const struct timeval none;
	exs_event_t ev;

	return exs_qdequeue(w.q, &ev, 1, &none);
}

static int modify(struct with w)
{
	int depth = 8;

	return exs_qmodify(w.q, EXS_QATTR_DEPTH, &depth);
}

static int status_of(struct with w)
{
	int value;

	return exs_qstatus(w.q, EXS_QATTR_EVENTS, &value);
}

static int delete(struct with w)
{
	return exs_qdelete(w.q);
}

static int deregister(struct with w)
{
	return exs_mderegister(w.m);
}

static const struct call calls[] = {
	{ "exs_send", start_a_send, connected, .queue = true, .region = true },
	{ "exs_recv", start_a_recv, connected, .queue = true, .region = true },
	{ "exs_submit", submit_a_recv, connected, .queue = true, .region = true },
	{ "exs_connect", start_a_connect, new_socket, .queue = true },
	{ "exs_accept", start_an_accept, listening, .queue = true },
	{ "exs_shutdown", start_a_shutdown, connected, .queue = true },
	{ "exs_close", start_a_close, connected, .queue = true },
	{ "exs_cancel", cancel_of, connected, .queue = true },
	{ "exs_qdequeue", dequeue_from, NULL, .queue = true },
	{ "exs_qmodify", modify, NULL, .queue = true },
	{ "exs_qstatus", status_of, NULL, .queue = true },
	{ "exs_qdelete", delete, NULL, .queue = true },
	{ "exs_mderegister", deregister, NULL, .region = true },
};

static int start(const struct call *c, int fd, exs_qhandle_t q, exs_mhandle_t m)
{
	return c->start((struct with){ fd, q, m });
}

static void refused(const struct call *c, const char *what, int got, int err)
{
	if (got >= 0)
		fail("%s with %s succeeds", c->name, what);
	if (errno != err)
		fail("%s with %s: %s, not %s", c->name, what, errno_name(errno), errno_name(err));
}

/* -- descriptors of another kind */

struct kinds {
	int closed, file, pipe, socket, other_family;
	exs_qhandle_t queue;
	exs_mhandle_t region;
};

static void kinds_open(struct kinds *k)
{
	to = name_of(listener(4));
	k->queue = queue_new(16);
	k->region = region_new(bytes, sizeof(bytes), 0);
	k->file = must(open("/proc/self/status", O_RDONLY));
	k->pipe = pipe_open().rd;
	k->socket = connected();
	/* A kind of socket that no operation can use. */
	k->other_family = must(socket(AF_NETLINK, SOCK_RAW, 0));
	k->closed = 1000;
	must_fail(fcntl(k->closed, F_GETFD), EBADF);
}

static void wrong_sockets(const struct call *c, const struct kinds *k)
{
	int foreign = c->start == cancel_of ? ENOENT : EOPNOTSUPP;

	refused(c, "fd -1", start(c, -1, k->queue, k->region), EBADF);
	refused(c, "fd INT_MAX", start(c, INT_MAX, k->queue, k->region), EBADF);
	refused(c, "a closed fd", start(c, k->closed, k->queue, k->region), EBADF);
	refused(c, "a file as fd", start(c, k->file, k->queue, k->region), ENOTSOCK);
	refused(c, "a pipe as fd", start(c, k->pipe, k->queue, k->region), ENOTSOCK);
	refused(c, "the queue as fd", start(c, k->queue, k->queue, k->region), ENOTSOCK);
	refused(c, "the region as fd", start(c, k->region, k->queue, k->region), ENOTSOCK);
	refused(c, "another family's fd", start(c, k->other_family, k->queue, k->region), foreign);
}

static void wrong_queues(const struct call *c, const struct kinds *k)
{
	int fd = c->right_fd ? c->right_fd() : -1;

	refused(c, "queue -5", start(c, fd, -5, k->region), EBADF);
	refused(c, "a closed queue", start(c, fd, k->closed, k->region), EBADF);
	refused(c, "a file as queue", start(c, fd, k->file, k->region), EINVAL);
	refused(c, "a pipe as queue", start(c, fd, k->pipe, k->region), EINVAL);
	refused(c, "a socket as queue", start(c, fd, k->socket, k->region), EINVAL);
	refused(c, "the region as queue", start(c, fd, k->region, k->region), EINVAL);
	if (c->right_fd)
		must(fcntl(fd, F_GETFD));
}

static void wrong_regions(const struct call *c, const struct kinds *k)
{
	int fd = c->right_fd ? c->right_fd() : -1;

	refused(c, "region -5", start(c, fd, k->queue, -5), EBADF);
	refused(c, "a closed region", start(c, fd, k->queue, k->closed), EBADF);
	refused(c, "a file as region", start(c, fd, k->queue, k->file), EINVAL);
	refused(c, "a pipe as region", start(c, fd, k->queue, k->pipe), EINVAL);
	refused(c, "a socket as region", start(c, fd, k->queue, k->socket), EINVAL);
	refused(c, "the queue as region", start(c, fd, k->queue, k->queue), EINVAL);
	if (c->right_fd)
		refused(c, "EXS_MHANDLE_INVALID", start(c, fd, k->queue, EXS_MHANDLE_INVALID), EINVAL);
}

static void handles(void)
{
	struct kinds k;
	size_t i;

	kinds_open(&k);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].right_fd)
			wrong_sockets(&calls[i], &k);
		if (calls[i].queue)
			wrong_queues(&calls[i], &k);
		if (calls[i].region)
			wrong_regions(&calls[i], &k);
	}
	no_event(k.queue);
	must_be(delta("ops_submitted"), 0);
}

/* -- a full queue: no operation starts, and the call works when there is room */

static void full(void)
{
	exs_qhandle_t q = queue_new(1);
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), 0);
	int waiting = connected(), fd;
	size_t i;

	to = name_of(listener(4));
	for (i = 0; i < ARRAY_SIZE(calls) && calls[i].right_fd; i++) {
		if (calls[i].start == cancel_of)
			continue;
		fd = calls[i].right_fd();
		start_recv(waiting, bytes, 1, 0, q, 7, NO_REGION);
		refused(&calls[i], "a full queue", start(&calls[i], fd, q, m), EAGAIN);
		must(exs_cancel(q, waiting, 7, EXS_CAF_FILDES));
		event_is(q, EXS_EVT_RECV, 7, ECANCELED, 0);
		check(start(&calls[i], fd, q, m) >= 0, "%s: %s", calls[i].name, errno_name(errno));
		exs_cancel(q, -1, 0, 0);
		event_next(q);
		no_event(q);
	}
}

/* -- flags */

static void flags(void)
{
	const int send_flags = MSG_EOR | MSG_NOSIGNAL | MSG_DONTWAIT, recv_flags = MSG_WAITALL | MSG_DONTWAIT;
	exs_qhandle_t q = queue_new(64);
	int fd = connected(), lfd = listener(2), i;

	to = name_of(lfd);
	for (i = 0; i < 32; i++) {
		int bit = (int)(1u << i);

		if (!(bit & send_flags))
			must_fail(exs_send(fd, bytes, 1, bit, q, 1, NO_REGION), EINVAL);
		if (!(bit & recv_flags))
			must_fail(exs_recv(fd, bytes, 1, bit, q, 1, NO_REGION), EINVAL);
		if (!(bit & (SOCK_CLOEXEC | SOCK_NONBLOCK)))
			must_fail(exs_accept(lfd, NULL, bit, q, 1), EINVAL);
		if (!(bit & (EXS_CAF_FILDES | EXS_CAF_AHANDLE)))
			must_fail(exs_cancel(q, fd, 1, bit), EINVAL);
		if (!(bit & (EXS_ACCESS_READ | EXS_ACCESS_WRITE | EXS_MRF_SHARED)))
			must_fail(exs_mregister(bytes, 1, bit), EINVAL);
		must_fail(exs_connect(new_socket(), &to.sa, address_len(&to), bit, q, 1), EINVAL);
		must_fail(exs_close(fd, bit, q, 1), EINVAL);
		must_fail(exs_close(fd, bit, EXS_QHANDLE_INVALID, 1), EINVAL);
		if (bit != SHUT_WR && bit != SHUT_RDWR)
			must_fail(exs_shutdown(fd, bit, q, 1), EINVAL);
	}
	no_event(q);
	must_be(delta("ops_submitted"), 0);
}

/* -- lengths and counts */

static void lengths(void)
{
	exs_qhandle_t q = queue_new(4);
	exs_mhandle_t m = region_new(bytes, 100, 0);
	static const size_t wrong[] = { TOO_LONG, UINT32_MAX, 1ull << 32, 1ull << 63, SIZE_MAX };
	exs_event_t ev;
	int fd = connected();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		must_fail(exs_send(fd, bytes, wrong[i], 0, q, 1, NO_REGION), EINVAL);
		must_fail(exs_recv(fd, bytes, wrong[i], 0, q, 1, NO_REGION), EINVAL);
		must_fail(exs_send(fd, bytes, wrong[i], 0, q, 1, m), EINVAL);
		must_fail(exs_recv(fd, bytes, wrong[i], 0, q, 1, m), EINVAL);
	}
	must_fail(exs_send(fd, bytes, 101, 0, q, 1, m), EINVAL);
	must_fail(exs_send(fd, bytes + 99, 2, 0, q, 1, m), EINVAL);
	must_fail(exs_send(fd, bytes + 100, 1, 0, q, 1, m), EINVAL);
	must_fail(exs_mregister(bytes, 0, 0), EINVAL);
	to = name_of(listener(4));
	must_fail(exs_connect(new_socket(), &to.sa, 1, 0, q, 1), EINVAL);
	must_fail(exs_qcreate(0), EINVAL);
	must_fail(exs_qcreate(EXS_QUEUE_DEPTH_MAX + 1), EINVAL);
	must_fail(exs_qdequeue(q, &ev, INT_MIN, NULL), EINVAL);
	must_fail(exs_qdequeue(q, &ev, -(EXS_QUEUE_CAPACITY_MIN + 1), NULL), EINVAL);
	no_event(q);
	must_be(delta("ops_submitted"), 0);
}

/* -- addresses */

static void accept_to(exs_acceptaddr_t *addr)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4);

	must(exs_accept(fd, addr, 0, q, 1));
	client_of(fd);
	event_is(q, EXS_EVT_ACCEPT, 1, EFAULT, 0);
	no_event(q);
}

static void addresses(void)
{
	static void *const wrong[] = { NULL, (void *)8, (void *)0xffff800000000000, (void *)-4096 };
	exs_qhandle_t q = queue_new(4);
	union address from;
	int fd = connected(), lfd = listener(2);
	size_t i;

	to = name_of(lfd);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		exs_acceptaddr_t aa = { wrong[i], sizeof(from) };

		must_fail(exs_send(fd, wrong[i], 1, 0, q, 1, NO_REGION), EFAULT);
		must_fail(exs_send(fd, wrong[i], 100000, 0, q, 1, NO_REGION), EFAULT);
		must_fail(exs_recv(fd, wrong[i], 1, 0, q, 1, NO_REGION), EFAULT);
		must_fail(exs_connect(new_socket(), wrong[i], address_len(&to), 0, q, 1), EFAULT);
		must_fail(exs_mregister(wrong[i], 1, 0), EFAULT);
		if (wrong[i])
			accept_to(&aa);
	}
	must_fail(exs_accept(lfd, (void *)8193, 0, q, 1), EFAULT);
	must_fail(exs_accept(lfd, (void *)-8, 0, q, 1), EFAULT);
	must_fail(exs_submit(q, NULL, 1), EFAULT);
	must_fail(exs_qdequeue(q, NULL, 1, NULL), EFAULT);
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, NULL), EFAULT);
	must_fail(exs_qstatus(q, EXS_QATTR_DEPTH, NULL), EFAULT);
	no_event(q);
}

/* -- sockets in another state */

static void states(void)
{
	union address nowhere = address_from(e2e.domain, "10.77.0.9", 99);
	exs_qhandle_t q = queue_new(8), other = queue_new(8);
	int fresh = new_socket(), lfd = listener(2), fd = connected(), connecting = new_socket();

	to = name_of(lfd);
	must(exs_connect(connecting, &nowhere.sa, address_len(&nowhere), 0, other, 1));
	must_fail(start_a_send((struct with){ fresh, q, NO_REGION }), EPIPE);
	must_fail(start_a_send((struct with){ lfd, q, NO_REGION }), EPIPE);
	must_fail(start_a_send((struct with){ connecting, q, NO_REGION }), ENOTCONN);
	must_fail(start_a_recv((struct with){ fresh, q, NO_REGION }), ENOTCONN);
	must_fail(start_a_recv((struct with){ lfd, q, NO_REGION }), ENOTCONN);
	must_fail(start_a_recv((struct with){ connecting, q, NO_REGION }), ENOTCONN);
	must_fail(start_an_accept((struct with){ fresh, q, NO_REGION }), EINVAL);
	must_fail(start_an_accept((struct with){ fd, q, NO_REGION }), EINVAL);
	must_fail(start_an_accept((struct with){ connecting, q, NO_REGION }), EINVAL);
	must_fail(start_a_connect((struct with){ lfd, q, NO_REGION }), EISCONN);
	must_fail(start_a_connect((struct with){ fd, q, NO_REGION }), EISCONN);
	must_fail(start_a_connect((struct with){ connecting, q, NO_REGION }), EALREADY);
	must_fail(start_a_shutdown((struct with){ fresh, q, NO_REGION }), ENOTCONN);
	must_fail(start_a_shutdown((struct with){ lfd, q, NO_REGION }), ENOTCONN);
	must_fail(start_a_shutdown((struct with){ connecting, q, NO_REGION }), ENOTCONN);
	must(shutdown(fd, SHUT_WR));
	must_fail(start_a_send((struct with){ fd, q, NO_REGION }), EPIPE);
	no_event(q);
}

static const struct e2e_case cases[] = {
	{ "handles", handles, .on = ON_STREAM },
	{ "full", full, .on = ON_BOTH },
	{ "flags", flags, .on = ON_STREAM },
	{ "lengths", lengths, .on = ON_BOTH },
	{ "addresses", addresses, .on = ON_STREAM },
	{ "states", states, .on = ON_BOTH, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
