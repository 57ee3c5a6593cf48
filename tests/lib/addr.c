// SPDX-License-Identifier: MIT
/* Invalid pointers: EFAULT for each that the library itself follows. */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/exs.h>

#include "check.h"
#include "fake.h"

static void *const nowhere[] = {
	NULL, (void *)8, (void *)4095, (void *)-4096, (void *)-1,
	(void *)0xffff800000000000,
};

#define COUNT	(sizeof(nowhere) / sizeof(nowhere[0]))
#define FAULTS(call)	CHECK((call) == -1 && errno == EFAULT)

static void events(void)
{
	const struct timeval none = { 0, 0 };
	int q = fake_queue(0);
	exs_event_t ev;
	size_t i;

	for (i = 0; i < COUNT; i++) {
		FAULTS(exs_qdequeue(q, nowhere[i], 1, &none));
		FAULTS(exs_qdequeue(q, nowhere[i], -1, &none));
		CHECK(!exs_qdequeue(q, nowhere[i], 0, &none));
		if (nowhere[i])
			FAULTS(exs_qdequeue(q, &ev, 1, nowhere[i]));
	}
	/* The largest possible room is no error. */
	CHECK(!exs_qdequeue(q, &ev, INT32_MAX, &none));
}

static void both(exs_msghdr_t *msg, int q)
{
	FAULTS(exs_sendmsg(33, msg, 0, q, 1));
	FAULTS(exs_recvmsg(33, msg, 0, q, 1));
}

static void messages(void)
{
	const int queues[] = { fake_queue(0), EXS_QHANDLE_INVALID };
	exs_msghdr_t msg;
	size_t i, j;

	for (i = 0; i < COUNT; i++) {
		for (j = 0; j < 2; j++) {
			both(nowhere[i], queues[j]);
			msg = (exs_msghdr_t){ .msg_iov = nowhere[i], .msg_iovlen = 2 };
			both(&msg, queues[j]);
			msg.msg_iovtype = EXS_FDVEC;
			FAULTS(exs_sendmsg(33, &msg, 0, queues[j], 1));
		}
	}
	CHECK(!fake.submitted);
}

static void files(void)
{
	const int queues[] = { fake_queue(0), EXS_QHANDLE_INVALID };
	exs_xferfile_t x;
	size_t i, j;

	for (i = 0; i < COUNT; i++) {
		for (j = 0; j < 2; j++) {
			FAULTS(exs_sendfile(33, nowhere[i], 0, queues[j], 1));
			x = (exs_xferfile_t){ .xf_header = nowhere[i], .xf_headerlen = 2 };
			FAULTS(exs_sendfile(33, &x, 0, queues[j], 1));
			x = (exs_xferfile_t){ .xf_trailer = nowhere[i], .xf_trailerlen = 2 };
			FAULTS(exs_sendfile(33, &x, 0, queues[j], 1));
		}
	}
	CHECK(!fake.submitted);
}

static void operations(void)
{
	int q = fake_queue(0);
	exs_op_t op = { .exs_op_type = EXS_EVT_ACCEPT, .exs_op_fd = 33 };
	size_t i;

	for (i = 0; i < COUNT; i++) {
		FAULTS(exs_submit(q, nowhere[i], 1));
		FAULTS(exs_submit(q, nowhere[i], 100));
		if (!nowhere[i])
			continue;
		FAULTS(exs_accept(33, nowhere[i], 0, q, 1));
		FAULTS(exs_accept(33, nowhere[i], 0, EXS_QHANDLE_INVALID, 1));
		op.exs_op_buf = nowhere[i];
		FAULTS(exs_submit(q, &op, 1));
	}
	CHECK(!fake.submitted);
}

static void attributes(void)
{
	static const int all[] = { EXS_QATTR_DEPTH, EXS_QATTR_WAIT, EXS_QATTR_EVENTFD, EXS_QATTR_SIGNAL };
	int q = fake_queue(0);
	size_t i, j;

	for (i = 0; i < COUNT; i++) {
		for (j = 0; j < sizeof(all) / sizeof(all[0]); j++) {
			FAULTS(exs_qmodify(q, all[j], nowhere[i]));
			FAULTS(exs_qstatus(q, all[j], nowhere[i]));
		}
	}
}

static void timeout(int fd, int name)
{
	exs_timeout_t t;
	socklen_t len = sizeof(t);
	size_t i;

	for (i = 0; i < COUNT; i++) {
		FAULTS(exs_setsockopt(fd, SOL_SOCKET, name, nowhere[i], len));
		FAULTS(exs_getsockopt(fd, SOL_SOCKET, name, nowhere[i], &len));
		FAULTS(exs_getsockopt(fd, SOL_SOCKET, name, &t, nowhere[i]));
	}
}

static void options(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ordered = SO_ASYNC_RECV_ORDERED;
	size_t i;

	timeout(fd, SO_ASYNC_SEND_TIMEOUT);
	timeout(fd, SO_ASYNC_RECV_TIMEOUT);
	timeout(exs_socket(AF_INET, SOCK_STREAM, 0), SO_ASYNC_RECV_TIMEOUT);
	for (i = 0; i < COUNT; i++)
		FAULTS(exs_setsockopt(fd, SOL_SOCKET, ordered, nowhere[i], sizeof(int)));
}

const struct test addr_tests[] = {
	{ "no address: events", events },
	{ "no address: messages", messages },
	{ "no address: files", files },
	{ "no address: operations", operations },
	{ "no address: attributes", attributes },
	{ "no address: options", options },
	{ NULL, NULL }
};
