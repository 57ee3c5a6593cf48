// SPDX-License-Identifier: MIT
/* Descriptors that are closed, reused, duplicated, inherited and passed. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sys/exs.h>

#include "check.h"
#include "fake.h"

static const struct timeval poll_only;

/* -1: an error; 0: nothing; else the handle. */
static long next_handle(int q)
{
	exs_event_t ev;
	int n = exs_qdequeue(q, &ev, 1, &poll_only);

	return n > 0 ? (long)ev.exs_evt_ahandle : n;
}

/* How many mappings of queues this process has. */
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "exs-queue") != NULL;
	fclose(f);
	return n;
}

static void closed_is_bad(void)
{
	int q = fake_queue(0);

	fake_post_n(q, 1, 2);
	CHECK(next_handle(q) == 1);
	CHECK(!close(q));
	CHECK(next_handle(q) == -1 && errno == EBADF);
	CHECK(mappings() == 0);
}

static void number_reused(void)
{
	int a = fake_queue(0), b;

	fake_post_n(a, 1, 2);
	CHECK(next_handle(a) == 1);
	close(a);
	b = fake_queue(0);
	CHECK(a == b);
	fake_post_n(b, 50, 1);
	CHECK(next_handle(b) == 50);
	CHECK(next_handle(b) == 0);
	CHECK(mappings() == 2);
}

static void number_reused_by_file(void)
{
	int a = fake_queue(0), pipes[2];

	fake_post_n(a, 1, 2);
	CHECK(next_handle(a) == 1);
	close(a);
	CHECK(!pipe(pipes) && pipes[0] == a);
	CHECK(next_handle(a) == -1 && errno == EINVAL);
}

static void dup_over(void)
{
	int a = fake_queue(0), b = fake_queue(0);

	fake_post_n(a, 1, 2);
	fake_post_n(b, 50, 2);
	CHECK(next_handle(a) == 1 && next_handle(b) == 50);
	fake_flush(a);
	CHECK(dup2(b, a) == a);
	CHECK(next_handle(a) == 51);
}

static void duplicate_closed(void)
{
	int a = fake_queue(0), b = dup(a);
	unsigned long before;

	fake_post_n(a, 1, 4);
	CHECK(next_handle(a) == 1 && next_handle(b) == 2);
	close(b);
	CHECK(next_handle(a) == 3);
	before = fake.ioctls;
	CHECK(next_handle(a) == 4);
	CHECK(fake.ioctls == before);
}

static int beside;

static void *dequeue_beside(void *unused)
{
	CHECK(next_handle(beside) == 1);
	return unused;
}

/* Closing a queue may take long: other threads continue meanwhile. */
static void while_closing(void)
{
	struct timespec until;
	pthread_t thread;

	CHECK(!clock_gettime(CLOCK_REALTIME, &until));
	until.tv_sec += 60;
	CHECK(!pthread_create(&thread, NULL, dequeue_beside, NULL));
	CHECK(!pthread_timedjoin_np(thread, NULL, &until));
}

static void delete_takes_long(void)
{
	int q = fake_queue(0);

	beside = fake_queue(0);
	fake_post_n(beside, 1, 1);
	CHECK(!next_handle(q));
	fake.on_close = while_closing;
	CHECK(!exs_qdelete(q) && !next_handle(beside));
}

/* Another thread looks while the queue is being closed, and so maps it again. */
static void look_while_closing(void)
{
	CHECK(!next_handle(beside) && mappings() > 0);
}

static void delete_mapped_again(void)
{
	beside = fake_queue(0);
	CHECK(!next_handle(beside));
	fake.on_close = look_while_closing;
	CHECK(!exs_qdelete(beside) && mappings() == 0);
}

static void in_child(int q)
{
	CHECK(mappings() == 0);
	CHECK(next_handle(q) == 2);
	CHECK(!close(q));
	CHECK(next_handle(q) == -1 && errno == EBADF);
	CHECK(mappings() == 0);
	exit(0);
}

static void fork_shares(void)
{
	int q = fake_queue(0), status;
	pid_t pid;

	fake_post_n(q, 1, 3);
	CHECK(next_handle(q) == 1);
	pid = fork();
	if (!pid)
		in_child(q);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(next_handle(q) == 3);
}

/* Between the search for unused mappings and its end. */
static void fork_while_unmapping(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(mappings());
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void fork_leaves_unmapped(void)
{
	int q = fake_queue(0);

	CHECK(!next_handle(q));
	fake.on_munmap = fork_while_unmapping;
	CHECK(!exs_qdelete(q) && !fake.on_munmap);
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_fd(int sock, int fd)
{
	union control c = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = sizeof(c),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(int));
	CHECK(sendmsg(sock, &m, 0) == 1);
}

static int receive_fd(int sock)
{
	union control c;
	char byte;
	int fd;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = sizeof(c),
	};

	CHECK(recvmsg(sock, &m, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

/* The number was another queue's when the mapping was made. */
static void received_over_socket(void)
{
	int old = fake_queue(0), q = fake_queue(0), sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	fake_post_n(old, 1, 1);
	CHECK(next_handle(old) == 1);
	fake_post_n(q, 50, 2);
	CHECK(next_handle(q) == 50);
	send_fd(sv[0], q);
	close(old);
	CHECK(receive_fd(sv[1]) == old);
	CHECK(next_handle(old) == 51);
}

static void delete_unmaps(void)
{
	int q = exs_qcreate(10);

	CHECK(q >= 0);
	CHECK(next_handle(q) == 0);
	CHECK(mappings() == 2);
	CHECK(!exs_qdelete(q));
	CHECK(mappings() == 0);
	CHECK(exs_qdelete(q) == -1 && errno == EBADF);
	CHECK(exs_qdelete(STDERR_FILENO) == -1 && errno == EINVAL);
}

static void create_sweeps(void)
{
	int a = fake_queue(0);

	CHECK(next_handle(a) == 0);
	close(a);
	CHECK(mappings() == 2);
	CHECK(exs_qcreate(10) >= 0);
	CHECK(mappings() == 0);
}

const struct test life_tests[] = {
	{ "closed is bad", closed_is_bad },
	{ "number reused", number_reused },
	{ "number reused by a file", number_reused_by_file },
	{ "dup over", dup_over },
	{ "duplicate closed", duplicate_closed },
	{ "delete takes long", delete_takes_long },
	{ "delete mapped again", delete_mapped_again },
	{ "fork shares", fork_shares },
	{ "fork leaves what is unmapped", fork_leaves_unmapped },
	{ "received over a socket", received_over_socket },
	{ "delete unmaps", delete_unmaps },
	{ "create sweeps", create_sweeps },
	{ NULL, NULL },
};
