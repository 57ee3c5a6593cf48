// SPDX-License-Identifier: MIT
/* The requests that the calls make to the kernel, and their use of its answers. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exs.h>

#include "check.h"
#include "fake.h"

static const struct timeval poll_only;

static void family_found(void)
{
	CHECK(exs_family() == EXS_FAMILY_DEFAULT);
	CHECK(exs_init(EXS_VERSION) == 0);
	CHECK(exs_init(99) == -1 && errno == EINVAL);
}

static void family_from_environment(void)
{
	fake.family = 27;
	setenv("EXS_FAMILY", "27", 1);
	CHECK(exs_family() == 27);
	CHECK(AF_EXS == 27);
}

static void family_absent(void)
{
	fake.family_gone = true;
	CHECK(exs_family() == -1 && errno == EAFNOSUPPORT);
	CHECK(exs_init(EXS_VERSION) == -1 && errno == EAFNOSUPPORT);
	CHECK(exs_qcreate(4) == EXS_QHANDLE_INVALID && errno == EAFNOSUPPORT);
	fake.family_gone = false;
	CHECK(exs_family() == EXS_FAMILY_DEFAULT);
}

/* The error that prevented the search, not that the family is absent. */
static void family_without_descriptors(void)
{
	const struct rlimit none = { 0, 0 };
	char buf[10];

	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	CHECK(exs_qcreate(4) == EXS_QHANDLE_INVALID && errno == EMFILE);
	CHECK(exs_mregister(buf, 10, 0) == EXS_MHANDLE_INVALID && errno == EMFILE);
}

static void other_abi(void)
{
	/* provokes: exs_init call EPROTONOSUPPORT */
	fake.abi = 77;
	CHECK(exs_init(EXS_VERSION) == -1 && errno == EPROTONOSUPPORT);
}

static void sockets(void)
{
	int fd = exs_socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK(exs_close(fd, 1, EXS_QHANDLE_INVALID, 0) == -1);
	CHECK(exs_close(fd, 0, EXS_QHANDLE_INVALID, 0) == 0);
	CHECK(exs_close(fd, 0, EXS_QHANDLE_INVALID, 0) == -1 && errno == EBADF);
	CHECK(exs_socket(AF_UNIX, SOCK_STREAM, 0) == -1 &&
	      errno == EAFNOSUPPORT);
}

static void send_as_submitted(void)
{
	char buf[10];
	int q = fake_queue(0);

	CHECK(exs_send(33, buf, 10, MSG_NOSIGNAL, q, UINT64_MAX, 44) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_SEND && fake.sqe.fd == 33);
	CHECK(fake.sqe.handle == UINT64_MAX && fake.sqe.region == 44);
	CHECK(fake.sqe.addr == (uintptr_t)buf && fake.sqe.len == 10);
	CHECK(fake.sqe.msg_flags == MSG_NOSIGNAL && !fake.sqe.user_arg);
	CHECK(exs_recv(33, buf, 9, MSG_WAITALL, q, 0,
		       EXS_MHANDLE_UNREGISTERED) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_RECV && fake.sqe.len == 9);
	CHECK(fake.sqe.region == EXS_REGION_NONE);
}

static void submit_fails(void)
{
	char buf[10];
	int q = fake_queue(0);

	CHECK(exs_send(3, buf, 10, 0, q, 0, EXS_MHANDLE_INVALID) == -1);
	CHECK(errno == EINVAL);
	CHECK(exs_send(3, buf, 10, 0, STDERR_FILENO, 0, q) == -1);
	CHECK(errno == EINVAL);
	fake.submit_errno = EAGAIN;
	CHECK(exs_send(3, buf, 10, 0, q, 0, 5) == -1 && errno == EAGAIN);
	CHECK(exs_recv(3, buf, 10, 0, 999, 0, 5) == -1 && errno == EBADF);
}

static void regions(void)
{
	char buf[10];
	int m = exs_mregister(buf, 10, 0), q = fake_queue(0);

	CHECK(m >= 0);
	CHECK(fake.made_with == (EXS_MREG_READ | EXS_MREG_WRITE | EXS_MREG_CLOEXEC));
	CHECK(exs_mderegister(q) == -1 && errno == EINVAL);
	CHECK(exs_mderegister(STDERR_FILENO) == -1 && errno == EINVAL);
	CHECK(exs_mderegister(m) == 0);
	CHECK(exs_mderegister(m) == -1 && errno == EBADF);
	CHECK(exs_mregister(buf, 10, 64) == EXS_MHANDLE_INVALID);
}

static void attributes(void)
{
	int q = exs_qcreate(10), v = 4, again;

	CHECK(fake.made_with == EXS_QF_CLOEXEC);
	fake_post_n(q, 1, 3);
	CHECK(!exs_qstatus(q, EXS_QATTR_EVENTS, &v) && v == 3);
	CHECK(!exs_qmodify(q, EXS_QATTR_DEPTH, &v));
	CHECK(!exs_qmodify(q, EXS_QATTR_WAIT, &v));
	CHECK(!exs_qstatus(q, EXS_QATTR_WAIT, &v) && v == 5);
	v = 4;
	CHECK(exs_qmodify(q, EXS_QATTR_EVENTS, &v) == -1 && errno == EINVAL);
	CHECK(exs_qstatus(q, 99, &v) == -1 && errno == EINVAL);
	CHECK(!exs_qstatus(q, EXS_QATTR_EVENTFD, &v) && fcntl(v, F_GETFD) >= 0);
	CHECK(!exs_qstatus(q, EXS_QATTR_EVENTFD, &again) && again != v);
	CHECK(exs_qcreate(0) == EXS_QHANDLE_INVALID && errno == EINVAL);
	CHECK(exs_qcreate(EXS_QUEUE_DEPTH_MAX + 1) == EXS_QHANDLE_INVALID && errno == EINVAL);
}

/* Another thread makes the queue's eventfd meanwhile: that is the one. */
static void eventfd_of_another(void)
{
	int q = exs_qcreate(1), v;

	fake.eventfd_raced = true;
	CHECK(!exs_qstatus(q, EXS_QATTR_EVENTFD, &v) && fcntl(v, F_GETFD) >= 0);
}

/* A memory file never has O_ASYNC: whether it is on, only a kernel can tell. */
static void signal_attribute(void)
{
	exs_signal_t s = { EXS_SIG_ENABLE, SIGRTMIN + 3 }, is;
	int q = fake_queue(0), file = memfd_create("file", 0);

	CHECK(!exs_qstatus(q, EXS_QATTR_SIGNAL, &is));
	CHECK(is.exs_sig_mode == EXS_SIG_DISABLE && is.exs_sig_number == SIGIO);
	CHECK(!exs_qmodify(q, EXS_QATTR_SIGNAL, &s));
	CHECK(fcntl(q, F_GETOWN) == getpid());
	CHECK(!exs_qstatus(q, EXS_QATTR_SIGNAL, &is));
	CHECK(is.exs_sig_number == SIGRTMIN + 3);
	s.exs_sig_number = SIGRTMAX + 1;
	CHECK(exs_qmodify(q, EXS_QATTR_SIGNAL, &s) == -1 && errno == EINVAL);
	s.exs_sig_number = 0;
	CHECK(exs_qmodify(q, EXS_QATTR_SIGNAL, &s) == -1 && errno == EINVAL);
	s.exs_sig_mode = EXS_SIG_DISABLE;
	CHECK(!exs_qmodify(q, EXS_QATTR_SIGNAL, &s));
	CHECK(exs_qmodify(file, EXS_QATTR_SIGNAL, &s) == -1 && errno == EINVAL);
	CHECK(exs_qstatus(file, EXS_QATTR_SIGNAL, &is) == -1 && errno == EINVAL);
	CHECK(exs_qmodify(q, EXS_QATTR_SIGNAL, NULL) == -1 && errno == EFAULT);
}

static void synchronous(void)
{
	exs_qhandle_t none = EXS_QHANDLE_INVALID;
	char buf[4];
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(exs_send(sv[0], "abcd", 4, 0, none, 0, 0) == 4);
	CHECK(exs_recv(sv[1], buf, 4, 0, none, 0, 0) == 4);
	CHECK(!memcmp(buf, "abcd", 4));
}

static int listener(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(fd, (struct sockaddr *)addr, len) && !listen(fd, 5));
	CHECK(!getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

static int connect_to(const struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)));
	return fd;
}

/* Start an accept with @addr and let a connection end it. */
static void post_accept(int q, int l, exs_acceptaddr_t *addr, uint64_t handle)
{
	struct exs_cqe cqe = { .type = EXS_OP_ACCEPT, .fd = l, .token = 9 };

	CHECK(exs_accept(l, addr, SOCK_CLOEXEC, q, handle) == 0);
	cqe.handle = handle;
	cqe.user_arg = fake.sqe.user_arg;
	cqe.user_tag = fake.sqe.user_tag;
	fake.claimed = cqe;
	fake_post(q, &cqe);
}

static void accept_gives_descriptor(void)
{
	struct sockaddr_in addr, peer;
	exs_acceptaddr_t aa = { (struct sockaddr *)&peer, sizeof(peer) };
	exs_event_t ev[4];
	int q = fake_queue(0), l = listener(&addr), fd;

	connect_to(&addr);
	fake_post_n(q, 1, 1);
	post_accept(q, l, &aa, 2);
	fake_post_n(q, 3, 1);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == 3);
	fd = ev[1].exs_evt_union.exs_evt_accept.exs_evt_newfd;
	CHECK(ev[1].exs_evt_type == EXS_EVT_ACCEPT && !ev[1].exs_evt_errno);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(ev[1].exs_evt_union.exs_evt_accept.exs_evt_addr == &aa);
	CHECK(aa.exs_addrlen == sizeof(peer) && peer.sin_family == AF_INET);
	CHECK(ev[2].exs_evt_ahandle == 3);
	CHECK(!ev[1].exs_evt_union.exs_evt_reserved[2]);
}

static void limit_descriptors(int n)
{
	struct rlimit r;

	CHECK(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = n;
	CHECK(!setrlimit(RLIMIT_NOFILE, &r));
}

static void accept_without_descriptor(void)
{
	struct sockaddr_in addr;
	exs_event_t ev[4];
	int q = fake_queue(0), l = listener(&addr), last = connect_to(&addr);

	fake_post_n(q, 1, 1);
	post_accept(q, l, NULL, 2);
	fake_post_n(q, 3, 1);
	limit_descriptors(last + 1);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == 1);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == -1 && errno == EMFILE);
	CHECK(fake_tail(q) - fake_head(q) == 2);
	limit_descriptors(last + 2);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == 2);
	CHECK(ev[0].exs_evt_union.exs_evt_accept.exs_evt_newfd == last + 1);
	CHECK(ev[1].exs_evt_ahandle == 3);
}

/* The descriptor was there, and another thread got it first. */
static void accept_race_for_descriptor(void)
{
	struct sockaddr_in addr;
	exs_event_t ev[4];
	int q = fake_queue(0), l = listener(&addr);

	connect_to(&addr);
	post_accept(q, l, NULL, 2);
	fake_post_n(q, 3, 1);
	fake.claim_errno = EMFILE;
	CHECK(exs_qdequeue(q, ev, 4, NULL) == 1 && ev[0].exs_evt_ahandle == 3);
	CHECK(exs_qdequeue(q, ev, 4, NULL) == -1 && errno == EMFILE);
	CHECK(exs_qdequeue(q, ev, -1, NULL) == -1 && errno == EMFILE);
	fake.claim_errno = 0;
	CHECK(exs_qdequeue(q, ev, -1, NULL) == 1);
	CHECK(ev[0].exs_evt_ahandle == 2);
	CHECK(ev[0].exs_evt_union.exs_evt_accept.exs_evt_newfd >= 0);
	CHECK(exs_qdequeue(q, ev, 4, &poll_only) == 0);
}

/* Two events, for which this thread sleeps while another fails to take the first. */
static void *wait_for_two(void *queue)
{
	exs_event_t ev[2];

	CHECK(exs_qdequeue(*(int *)queue, ev, -2, NULL) == 2);
	CHECK(ev[0].exs_evt_ahandle == 2 && ev[1].exs_evt_ahandle == 3);
	CHECK(ev[0].exs_evt_union.exs_evt_accept.exs_evt_newfd >= 0);
	return NULL;
}

static void claim_fails(int err)
{
	__atomic_store_n(&fake.claim_errno, err, __ATOMIC_RELAXED);
}

/* An event that could not be taken is there for all threads that share the queue, also sleeping ones. */
static void accept_back_for_others(void)
{
	const struct timeval short_time = { 1, 0 };
	struct sockaddr_in addr;
	exs_event_t ev;
	int q = fake_queue(0), l = listener(&addr), status;
	pthread_t thread;

	connect_to(&addr);
	connect_to(&addr);
	CHECK(!pthread_create(&thread, NULL, wait_for_two, &q));
	while (!__atomic_load_n(&fake.waits, __ATOMIC_RELAXED))
		sched_yield();
	claim_fails(EMFILE);
	post_accept(q, l, NULL, 2);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == -1 && errno == EMFILE);
	claim_fails(0);
	fake_post_n(q, 3, 1);
	CHECK(!pthread_join(thread, NULL));

	claim_fails(EMFILE);
	post_accept(q, l, NULL, 4);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == -1 && errno == EMFILE);
	if (!fork()) {
		claim_fails(0);
		CHECK(exs_qdequeue(q, &ev, 1, &short_time) == 1);
		CHECK(ev.exs_evt_union.exs_evt_accept.exs_evt_newfd >= 0);
		exit(0);
	}
	wait(&status);
	CHECK(!status);
}

static void accept_connection_gone(void)
{
	struct sockaddr_in addr;
	exs_event_t ev;
	int q = fake_queue(0), l = listener(&addr);

	post_accept(q, l, NULL, 2);
	fake.claim_errno = ENOENT;
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	CHECK(ev.exs_evt_errno == ECONNABORTED);
	CHECK(ev.exs_evt_union.exs_evt_accept.exs_evt_newfd == -1);
}

/* An ordinary listener that was closed, and there is none any more to wait on. */
static void accept_listener_gone(void)
{
	struct sockaddr_in addr;
	exs_event_t ev;
	int q = fake_queue(0), l = listener(&addr);

	post_accept(q, l, NULL, 2);
	fake.listener = l;
	CHECK(exs_qdequeue(q, &ev, 1, &poll_only) == 0);
	post_accept(q, l, NULL, 3);
	fake.again_errno = ENOENT;
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1 && ev.exs_evt_ahandle == 3);
	CHECK(ev.exs_evt_errno == ECONNABORTED);
	CHECK(ev.exs_evt_union.exs_evt_accept.exs_evt_newfd == -1);
}

/*
 * All were asked for, and one connection is gone: its event has the error, as the others are taken. Alone, the accept
 * goes on.
 */
static void accept_all_lost_race(void)
{
	struct sockaddr_in addr;
	exs_event_t ev[2];
	int q = fake_queue(0), l = listener(&addr);

	fake.listener = l;
	fake_post_n(q, 1, 1);
	post_accept(q, l, NULL, 2);
	CHECK(exs_qdequeue(q, ev, -2, NULL) == 2);
	CHECK(ev[0].exs_evt_ahandle == 1 && ev[1].exs_evt_ahandle == 2);
	CHECK(ev[1].exs_evt_errno == ECONNABORTED);
	CHECK(ev[1].exs_evt_union.exs_evt_accept.exs_evt_newfd == -1);
	post_accept(q, l, NULL, 2);
	CHECK(exs_qdequeue(q, ev, -1, &poll_only) == 0);
}

/* provokes: exs_accept event EMFILE ENFILE ENOBUFS EAGAIN */
/* All or none: nothing is taken before there is a descriptor for each of them. */
static void accept_all_without_descriptor(void)
{
	struct sockaddr_in addr;
	exs_event_t ev[4];
	int q = fake_queue(0), l = listener(&addr), last, i;

	connect_to(&addr);
	last = connect_to(&addr);
	fake_post_n(q, 1, 1);
	post_accept(q, l, NULL, 2);
	post_accept(q, l, NULL, 3);
	limit_descriptors(last + 2);
	CHECK(exs_qdequeue(q, ev, -3, NULL) == -1 && errno == EMFILE);
	CHECK(!fake_head(q));
	limit_descriptors(last + 3);
	CHECK(exs_qdequeue(q, ev, -3, NULL) == 3);
	for (i = 0; i < 3; i++)
		CHECK(ev[i].exs_evt_ahandle == i + 1ULL && !ev[i].exs_evt_errno);
	CHECK(ev[2].exs_evt_union.exs_evt_accept.exs_evt_newfd == last + 1);

	/* Another thread gets it first. */
	limit_descriptors(last + 4);
	fake_post_n(q, 1, 1);
	post_accept(q, l, NULL, 2);
	fake.claim_errno = EMFILE;
	CHECK(exs_qdequeue(q, ev, -2, NULL) == 2);
	CHECK(ev[1].exs_evt_errno == EMFILE);
	CHECK(ev[1].exs_evt_union.exs_evt_accept.exs_evt_newfd == -1);
}

/* An address with a tag (MTE, LAM) comes back as it was given. */
static void accept_tagged_address(void)
{
	exs_acceptaddr_t aa = { NULL, 0 }, *tagged;
	struct exs_cqe cqe = { .type = EXS_OP_ACCEPT, .error = ECONNABORTED };
	exs_event_t ev;
	int q = fake_queue(0);

	if (sizeof(void *) < 8)
		SKIP("addresses have no tags");
	tagged = (void *)((uintptr_t)&aa | (uintptr_t)(0x2aULL << 56));
	CHECK(!exs_accept(STDIN_FILENO, tagged, SOCK_CLOEXEC, q, 1));
	cqe.user_arg = fake.sqe.user_arg;
	cqe.user_tag = fake.sqe.user_tag;
	fake_post(q, &cqe);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	CHECK(ev.exs_evt_union.exs_evt_accept.exs_evt_addr == tagged);
}

/*
 * The device is asked each time, or a socket where there is none: a kept descriptor may be another file by then.
 */
static void module_calls(void)
{
	static char byte;
	unsigned long ioctls;
	int q, next;

	fake.device = true;
	q = exs_qcreate(1);
	CHECK(q >= 0 && fake.device_opens == 1 && !fake.sockets);
	CHECK(dup2(STDIN_FILENO, q) == q);
	ioctls = fake.ioctls;
	next = dup(STDIN_FILENO);
	close(next);
	CHECK(exs_mregister(&byte, 1, 0) >= 0);
	CHECK(fake.ioctls == ioctls + 1 && fake.device_opens == 2 && !fake.sockets);
	/* The device was open for a moment only. */
	CHECK(dup(STDIN_FILENO) == next);
	fake.device = false;
	CHECK(exs_mregister(&byte, 1, 0) >= 0);
	CHECK(fake.ioctls > ioctls + 1 && fake.sockets);
}

/* No call asks about the socket: the submission's result tells. */
static void native_calls(void)
{
	struct sockaddr_in addr;
	int q = fake_queue(0), l = listener(&addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	fake.native = true;
	CHECK(!exs_connect(fd, (struct sockaddr *)&addr, sizeof(addr), 0, q, 5));
	CHECK(fake.submits == 1 && fake.ioctls == 1 && !fake.getsockopts);
	CHECK(!exs_shutdown(fd, SHUT_WR, q, 6));
	CHECK(fake.submits == 2 && fake.ioctls == 2 && !fake.getsockopts);
	close(l);
}

static void accept_bad_address(void)
{
	struct sockaddr_in addr;
	int q = fake_queue(0), l = listener(&addr);

	CHECK(exs_accept(l, (void *)-8, 0, q, 1) == -1 && errno == EFAULT);
	CHECK(exs_accept(l, (void *)-8, 0, EXS_QHANDLE_INVALID, 1) == -1);
	CHECK(errno == EFAULT && !fake.submitted);
}

/* The parent's pointer means nothing in a child. */
static void accept_in_another_process(void)
{
	struct sockaddr_in addr, peer;
	exs_acceptaddr_t aa = { (struct sockaddr *)&peer, sizeof(peer) };
	exs_event_t ev;
	int q = fake_queue(0), l = listener(&addr), status;

	CHECK(exs_qdequeue(q, &ev, 1, &poll_only) == 0);
	connect_to(&addr);
	post_accept(q, l, &aa, 2);
	if (!fork()) {
		CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
		CHECK(!ev.exs_evt_union.exs_evt_accept.exs_evt_addr);
		CHECK(ev.exs_evt_union.exs_evt_accept.exs_evt_newfd >= 0);
		exit(0);
	}
	wait(&status);
	CHECK(!status);
}

/* The queue was not used before the fork: the children's addresses are their own. */
static void accept_among_children(void)
{
	enum { CHILDREN = 3 };
	exs_acceptaddr_t aa = { NULL, 0 };
	uint32_t tags[CHILDREN + 1];
	int q = fake_queue(0), pipefd[2], status, i, j;

	CHECK(!pipe(pipefd));
	CHECK(!exs_accept(STDIN_FILENO, &aa, 0, q, 1));
	tags[CHILDREN] = fake.sqe.user_tag;
	for (i = 0; i < CHILDREN; i++) {
		if (!fork()) {
			CHECK(!exs_accept(STDIN_FILENO, &aa, 0, q, 1));
			CHECK(write(pipefd[1], &fake.sqe.user_tag, 4) == 4);
			exit(0);
		}
		CHECK(wait(&status) > 0 && !status);
		CHECK(read(pipefd[0], &tags[i], 4) == 4);
	}
	for (i = 0; i <= CHILDREN; i++)
		for (j = 0; j < i; j++)
			CHECK(tags[i] != tags[j]);
}

static void connect_starts(void)
{
	struct sockaddr_in addr;
	int q = fake_queue(0), l = listener(&addr), fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(!exs_connect(fd, (struct sockaddr *)&addr, sizeof(addr), 0, q, 5));
	CHECK(fake.sqe.opcode == EXS_OP_CONNECT && fake.sqe.handle == 5);
	CHECK(exs_connect(fd, NULL, 0, 0, q, 5) == -1);
	CHECK(exs_connect(fd, (struct sockaddr *)&addr, sizeof(addr), 8, q, 5) ==
	      -1 && errno == EINVAL);
	close(l);
}

/* An ordinary socket: non-blocking for the call only; datagrams come first. */
static void connect_ordinary(void)
{
	struct sockaddr_in addr;
	int q = fake_queue(0), l = listener(&addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int u = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!exs_connect(fd, (struct sockaddr *)&addr, sizeof(addr), 0, q, 5));
	CHECK(fake.sqe.fd == fd && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(exs_connect(u, (struct sockaddr *)&addr, 1, 0, q, 6) == -1);
	CHECK(errno == EINVAL && fake.sqe.fd == fd);
	CHECK(!exs_connect(u, (struct sockaddr *)&addr, sizeof(addr), 0, q, 6));
	CHECK(fake.sqe.fd == u && fake.sqe.handle == 6);
	close(l);
}

static in_port_t peer_port(int fd)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);

	CHECK(!getpeername(fd, (struct sockaddr *)&peer, &len));
	return peer.sin_port;
}

/* An operation that was not started has not connected the socket either. */
static void connect_datagrams_fails(void)
{
	int q = fake_queue(0), u = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in addr, first;
	struct sockaddr *to = (struct sockaddr *)&addr;
	socklen_t len = sizeof(addr);

	listener(&first);
	listener(&addr);
	fake.submit_errno = EAGAIN;
	CHECK(exs_connect(u, to, len, 0, q, 6) == -1 && errno == EAGAIN);
	CHECK(getpeername(u, to, &len) == -1 && errno == ENOTCONN);
	CHECK(exs_connect(u, to, len, 0, STDERR_FILENO, 6) == -1 && errno == EINVAL);
	CHECK(getpeername(u, to, &len) == -1 && errno == ENOTCONN);
	CHECK(!connect(u, (struct sockaddr *)&first, len));
	CHECK(exs_connect(u, to, len, 0, q, 6) == -1 && errno == EAGAIN);
	CHECK(peer_port(u) == first.sin_port);
	fake.submit_errno = 0;
	CHECK(!exs_connect(u, to, len, 0, q, 6) && peer_port(u) == addr.sin_port);
}

static void connect_datagrams_of_unix_fails(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr), peer_len = sizeof(addr);
	struct sockaddr *to = (struct sockaddr *)&addr;
	int q = fake_queue(0), u = socket(AF_UNIX, SOCK_DGRAM, 0);
	int server = socket(AF_UNIX, SOCK_DGRAM, 0);

	CHECK(!bind(server, to, sizeof(sa_family_t)) && !getsockname(server, to, &len));
	fake.submit_errno = EAGAIN;
	CHECK(exs_connect(u, to, len, 0, q, 6) == -1 && errno == EAGAIN);
	CHECK(getpeername(u, to, &peer_len) == -1 && errno == ENOTCONN);
	CHECK(!connect(u, to, len));
	CHECK(exs_connect(u, to, len, 0, q, 6) == -1 && errno == EAGAIN);
	CHECK(!getpeername(u, to, &peer_len) && peer_len == len);
}

/* The kernel's operation closes the descriptor: the library must not. */
static void close_starts(void)
{
	int q = fake_queue(0), fd = exs_socket(AF_INET, SOCK_STREAM, 0);
	struct exs_cqe cqe = { .type = EXS_OP_CLOSE, .fd = fd, .handle = 6,
			       .error = ETIMEDOUT };
	exs_event_t ev;

	CHECK(exs_close(fd, 1, q, 6) == -1 && errno == EINVAL);
	fake.submit_errno = EAGAIN;
	CHECK(exs_close(fd, 0, q, 6) == -1 && errno == EAGAIN);
	fake.submit_errno = 0;
	CHECK(exs_close(fd, 0, STDERR_FILENO, 6) == -1 && errno == EINVAL);
	CHECK(exs_close(fd, 0, q, 6) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_CLOSE && fake.sqe.fd == fd);
	CHECK(fake.sqe.handle == 6 && fake.sqe.region == EXS_REGION_NONE);
	CHECK(!fake.sqe.addr && !fake.sqe.len && !fake.sqe.msg_flags);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	fake_post(q, &cqe);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	CHECK(ev.exs_evt_type == EXS_EVT_CLOSE && ev.exs_evt_socket == fd);
	CHECK(ev.exs_evt_errno == ETIMEDOUT && ev.exs_evt_ahandle == 6);
}

/* The system's own calls: here a socket that does not know the level. */
static void options(void)
{
	int fd = exs_socket(AF_INET, SOCK_STREAM, 0), value = 1;
	socklen_t len = sizeof(value);

	CHECK(!exs_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, len));
	value = 0;
	CHECK(!exs_getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len));
	CHECK(value == 1);
	CHECK(exs_setsockopt(fd, SOL_EXS, EXS_SO_CPU, &value, len) == -1);
	CHECK(exs_fcntl(fd, EXS_F_SET(EXS_SO_CPU), 1) == -1);
	CHECK(exs_fcntl(fd, EXS_F_GET(EXS_SO_CPU), &value) == -1);
	CHECK(errno != EINVAL);
	CHECK(exs_fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
	CHECK(exs_fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(exs_fcntl(-1, F_GETFD) == -1 && errno == EBADF);
}

/* An invalid timeout is refused before the kernel is asked. */
static void option_timeouts(void)
{
	int fd = exs_socket(AF_INET, SOCK_STREAM, 0);
	exs_timeout_t t = { { 1, 1000000 }, 0 };
	socklen_t len = sizeof(t.exs_time) - 1;

	CHECK(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &t, sizeof(t)) == -1);
	CHECK(errno == EDOM);
	t.exs_time = (struct timeval){ -1, 0 };
	CHECK(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, sizeof(t)) == -1);
	CHECK(errno == EDOM);
	CHECK(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, len) == -1);
	CHECK(errno == EINVAL);
	CHECK(exs_setsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, NULL, sizeof(t)) == -1);
	CHECK(errno == EFAULT);
	CHECK(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t, &len) == -1);
	CHECK(errno == EINVAL);
	CHECK(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, NULL, &len) == -1);
	CHECK(errno == EFAULT);
}

/* The library keeps that of an ordinary socket, with the same bounds. */
static void option_ordered(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), value = 0;
	socklen_t len = sizeof(value);

	CHECK(!exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &value, &len));
	CHECK(value == 1 && len == sizeof(value));
	len = sizeof(value) - 1;
	CHECK(exs_getsockopt(fd, SOL_SOCKET, SO_ASYNC_RECV_ORDERED, &value, &len) == -1);
	CHECK(errno == EINVAL);
}

static exs_op_t a_send(uint64_t handle)
{
	return (exs_op_t){ EXS_EVT_SEND, 3, 0, 4, NULL, 9, handle, { 0 } };
}

static void submit_as_told(void)
{
	char buf[10];
	exs_acceptaddr_t aa = { NULL, 0 };
	exs_op_t ops[] = {
		{ EXS_EVT_SEND, 33, MSG_NOSIGNAL, 44, buf, 10, UINT64_MAX, { 0 } },
		{ EXS_EVT_ACCEPT, 34, SOCK_CLOEXEC, 0, &aa, 0, 2, { 0 } },
		{ EXS_EVT_CLOSE, 35, 0, 0, NULL, 0, 3, { 0 } },
	};
	int q = fake_queue(0);
	uint64_t arg;

	CHECK(exs_submit(q, ops, 1) == 1);
	CHECK(fake.sqe.opcode == EXS_OP_SEND && fake.sqe.fd == 33);
	CHECK(fake.sqe.handle == UINT64_MAX && fake.sqe.region == 44);
	CHECK(fake.sqe.addr == (uintptr_t)buf && fake.sqe.len == 10);
	CHECK(fake.sqe.msg_flags == MSG_NOSIGNAL && !fake.sqe.user_arg);
	CHECK(exs_submit(q, ops, 2) == 2);
	CHECK(fake.sqe.opcode == EXS_OP_ACCEPT && fake.sqe.fd == 34);
	CHECK(!fake.sqe.msg_flags && fake.sqe.region == EXS_REGION_NONE);
	CHECK(!fake.sqe.addr);
	arg = fake.sqe.user_arg;
	CHECK(!exs_accept(34, &aa, SOCK_CLOEXEC, q, 2));
	CHECK(fake.sqe.user_arg == arg);
	CHECK(exs_submit(q, ops, 3) == 3);
	CHECK(fake.sqe.opcode == EXS_OP_CLOSE && fake.sqe.fd == 35);
	CHECK(fake.sqe.region == EXS_REGION_NONE && !fake.sqe.user_arg);
	CHECK(fake.submits == 4);
}

/* One system call per EXS_SUBMIT_MAX; where it stops, and why. */
static void submit_long(void)
{
	enum { MANY = 2 * EXS_SUBMIT_MAX + 10 };
	static exs_op_t ops[MANY];
	int q = fake_queue(0), i;

	for (i = 0; i < MANY; i++)
		ops[i] = a_send(i);
	CHECK(exs_submit(q, ops, 0) == 0 && !fake.submits);
	CHECK(exs_submit(q, ops, EXS_SUBMIT_MAX) == EXS_SUBMIT_MAX);
	CHECK(fake.submits == 1);
	CHECK(exs_submit(q, ops, MANY) == MANY);
	CHECK(fake.submits == 4 && fake.sqe.handle == MANY - 1);
	fake.room = fake.submitted + EXS_SUBMIT_MAX + 7;
	CHECK(exs_submit(q, ops, MANY) == EXS_SUBMIT_MAX + 7 && errno == EAGAIN);
	CHECK(fake.sqe.handle == EXS_SUBMIT_MAX + 6);
	CHECK(exs_submit(q, ops, MANY) == -1 && errno == EAGAIN);
	fake.room = 0;
	ops[20].exs_op_region = EXS_MHANDLE_INVALID;
	CHECK(exs_submit(q, ops, MANY) == 20 && errno == EINVAL);
	CHECK(exs_submit(q, ops + 20, 5) == -1 && errno == EINVAL);
}

static void submit_op_wrong(exs_op_t op)
{
	int q = fake_queue(0);

	CHECK(exs_submit(q, &op, 1) == -1 && errno == EINVAL && !fake.submits);
	close(q);
}

static void submit_wrong(void)
{
	exs_op_t op = a_send(1);
	int q = fake_queue(0);

	CHECK(exs_submit(q, &op, -1) == -1 && errno == EINVAL);
	CHECK(exs_submit(q, NULL, 1) == -1 && errno == EFAULT);
	CHECK(exs_submit(STDERR_FILENO, &op, 1) == -1 && errno == EINVAL);
	CHECK(exs_submit(EXS_QHANDLE_INVALID, &op, 1) == -1 && errno == EBADF);
	submit_op_wrong((exs_op_t){ 0 });
	submit_op_wrong((exs_op_t){ .exs_op_type = -1 });
	submit_op_wrong((exs_op_t){ .exs_op_type = 9999 });
	submit_op_wrong((exs_op_t){ .exs_op_type = EXS_EVT_CONNECT });
	submit_op_wrong((exs_op_t){ .exs_op_type = EXS_EVT_SHUTDOWN });
	submit_op_wrong((exs_op_t){ EXS_EVT_SEND, 3, 0, -1, NULL, 9, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_SEND, 3, 0, 4, NULL, 9, 1, { 0, 1 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_CLOSE, 3, 1, 0, NULL, 0, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_CLOSE, 3, 0, 4, NULL, 0, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_CLOSE, 3, 0, 0, &op, 0, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_CLOSE, 3, 0, 0, NULL, 1, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_ACCEPT, 3, 1, 0, NULL, 0, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_ACCEPT, 3, 0, 4, NULL, 0, 1, { 0 } });
	submit_op_wrong((exs_op_t){ EXS_EVT_ACCEPT, 3, 0, 0, NULL, 1, 1, { 0 } });
}

/* The socket is shut down by the real call; if that fails, no event is to come. */
static void shutdown_starts(void)
{
	int q = fake_queue(0), sv[2], fd = socket(AF_INET, SOCK_STREAM, 0);
	char c;

	fake.native = true;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(exs_shutdown(sv[0], SHUT_RD, q, 6) == -1 && errno == EINVAL);
	CHECK(exs_shutdown(sv[0], 3, q, 6) == -1 && errno == EINVAL);
	fake.submit_errno = EAGAIN;
	CHECK(exs_shutdown(sv[0], SHUT_WR, q, 6) == -1 && errno == EAGAIN);
	CHECK(send(sv[0], "x", 1, 0) == 1 && recv(sv[1], &c, 1, 0) == 1);
	fake.submit_errno = 0;
	CHECK(exs_shutdown(sv[0], EXS_SHUT_WR, q, 6) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_SHUTDOWN && fake.sqe.fd == sv[0]);
	CHECK(fake.sqe.handle == 6 && fake.sqe.region == EXS_REGION_NONE);
	CHECK(recv(sv[1], &c, 1, 0) == 0);
	CHECK(!fake.cancel.size);
	fake.cancelled = 1;
	CHECK(exs_shutdown(fd, SHUT_WR, q, 7) == -1 && errno == ENOTCONN);
	CHECK(fake.cancel.flags == (EXS_CANCEL_FD | EXS_CANCEL_HANDLE |
				    EXS_CANCEL_SHUTDOWN));
	CHECK(fake.cancel.fd == fd && fake.cancel.handle == 7);
	fake.cancelled = 0;
	CHECK(exs_shutdown(fd, SHUT_WR, q, 7) == 0);
	CHECK(exs_shutdown(fd, SHUT_RD, EXS_QHANDLE_INVALID, 7) == -1);
	CHECK(errno == ENOTCONN);
}

/* An ordinary socket: the operation shuts it down. */
static void shutdown_ordinary(void)
{
	int q = fake_queue(0), sv[2];
	char c;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(exs_shutdown(sv[0], SHUT_RD, q, 6) == -1 && errno == EINVAL);
	fake.submit_errno = EAGAIN;
	CHECK(exs_shutdown(sv[0], SHUT_WR, q, 6) == -1 && errno == EAGAIN);
	fake.submit_errno = 0;
	CHECK(exs_shutdown(sv[0], SHUT_RDWR, q, 6) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_SHUTDOWN && fake.sqe.user_arg == SHUT_RDWR);
	CHECK(send(sv[0], "x", 1, 0) == 1 && recv(sv[1], &c, 1, 0) == 1);
	CHECK(exs_shutdown(STDERR_FILENO, SHUT_WR, q, 6) == -1 && errno == ENOTSOCK);
	CHECK(!fake.cancel.size);
}

static uint64_t timeout_sent(int fd, int q)
{
	CHECK(!exs_send(fd, NULL, 0, 0, q, 1, EXS_MHANDLE_UNREGISTERED));
	return fake.sqe.timeout;
}

/* An ordinary socket's travel with its operations. */
static void timeouts_ordinary(void)
{
	exs_timeout_t t = { { 2, 5 }, EXS_TIMEOUT_ONCE };
	int q = fake_queue(0), sv[2], again;
	exs_msghdr_t msg = { .msg_iovtype = EXS_IOVEC };

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(!exs_setsockopt(sv[0], SOL_SOCKET, SO_ASYNC_SEND_TIMEOUT, &t, sizeof(t)));
	CHECK(timeout_sent(sv[0], q) == 2000005000);
	CHECK(fake.sqe.flags == EXS_SQE_TIMEOUT_ONCE);
	CHECK(!exs_sendmsg(sv[0], &msg, 0, q, 1));
	CHECK(fake.sqe.timeout == 2000005000 && fake.sqe.flags == EXS_SQE_TIMEOUT_ONCE);
	CHECK(!exs_recv(sv[0], NULL, 0, 0, q, 1, EXS_MHANDLE_UNREGISTERED));
	CHECK(!fake.sqe.timeout && !timeout_sent(sv[1], q));
	CHECK(!exs_setsockopt(sv[0], SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &t.exs_time,
			      sizeof(t.exs_time)));
	CHECK(!exs_recvmsg(sv[0], &msg, 0, q, 1) && fake.sqe.timeout == 2000005000);
	CHECK(!exs_close(-1, 0, q, 1) && !fake.sqe.timeout);
	/* Another socket gets the number. */
	close(sv[0]);
	again = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(again == sv[0] && !timeout_sent(again, q));
}

static void cancel_as_asked(void)
{
	int q = fake_queue(0);

	fake.cancelled = 2;
	CHECK(exs_cancel(q, 33, UINT64_MAX, EXS_CAF_FILDES) == 0);
	CHECK(fake.cancel.flags == EXS_CANCEL_FD && fake.cancel.fd == 33);
	CHECK(exs_cancel(q, 33, 7, EXS_CAF_AHANDLE) == 0);
	CHECK(fake.cancel.flags == EXS_CANCEL_HANDLE && fake.cancel.handle == 7);
	CHECK(exs_cancel(q, 33, 7, EXS_CAF_AHANDLE | EXS_CAF_FILDES) == 0);
	CHECK(fake.cancel.flags == (EXS_CANCEL_HANDLE | EXS_CANCEL_FD));
	CHECK(!fake.cancel.count);
	CHECK(exs_cancel(q, 0, 0, 0) == 0 && !fake.cancel.flags);
	/* Connects that leave no event are the library's own. */
	CHECK(exs_cancel(q, 0, 0, EXS_CANCEL_CONNECT) == -1 && errno == EINVAL);
	fake.cancelled = 0;
	CHECK(exs_cancel(q, 0, 0, 0) == -1 && errno == ENOENT);
	fake.cancel_errno = ENOTSOCK;
	CHECK(exs_cancel(q, 0, 0, 0) == -1 && errno == ENOTSOCK);
	CHECK(exs_cancel(STDERR_FILENO, 0, 0, 0) == -1 && errno == EINVAL);
}

static void post_poll(int q, int nfds, int ready, int error)
{
	struct exs_cqe cqe = { .type = EXS_OP_POLL, .fd = -1, .handle = 8,
			       .user_arg = fake.sqe.user_arg, .user_tag = fake.sqe.user_tag, .flags = nfds,
			       .length = ready, .error = error };

	fake_post(q, &cqe);
}

/* The ready descriptors are determined when the event is dequeued. */
static void poll_says_who(void)
{
	exs_pollfd_t fds[2] = { { .events = EXS_POLLIN, .revents = 99 },
				{ .events = EXS_POLLOUT } };
	int q = fake_queue(0), p[2];
	exs_evt_poll_t *poll;
	exs_event_t ev;

	CHECK(!pipe(p));
	fds[0].fd = p[0];
	fds[1].fd = p[1];
	CHECK(exs_poll(fds, 2, 0, q, 8) == 0);
	CHECK(fake.sqe.opcode == EXS_OP_POLL && fake.sqe.fd == -1);
	CHECK(fake.sqe.addr == (uintptr_t)fds && fake.sqe.len == 2);
	CHECK(fake.sqe.handle == 8 && fake.sqe.region == EXS_REGION_NONE);
	post_poll(q, 2, 1, 0);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	poll = &ev.exs_evt_union.exs_evt_poll;
	CHECK(ev.exs_evt_type == EXS_EVT_POLL && ev.exs_evt_ahandle == 8);
	CHECK(poll->exs_evt_fds == fds && poll->exs_evt_nfds == 2);
	CHECK(poll->exs_evt_ready == 1 && !ev.exs_evt_flags);
	CHECK(!fds[0].revents && fds[1].revents == EXS_POLLOUT);
	fds[0].revents = 99;
	post_poll(q, 2, 0, ECANCELED);
	CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
	CHECK(ev.exs_evt_errno == ECANCELED && fds[0].revents == 99);
}

static void poll_in_another_process(void)
{
	exs_pollfd_t fd = { .fd = STDERR_FILENO, .events = EXS_POLLOUT };
	int q = fake_queue(0), status;
	exs_event_t ev;

	CHECK(exs_poll(&fd, 1, 0, q, 8) == 0);
	post_poll(q, 1, 1, 0);
	if (!fork()) {
		CHECK(exs_qdequeue(q, &ev, 1, NULL) == 1);
		CHECK(!ev.exs_evt_union.exs_evt_poll.exs_evt_fds);
		CHECK(ev.exs_evt_union.exs_evt_poll.exs_evt_ready == 1);
		CHECK(!fd.revents);
		exit(0);
	}
	wait(&status);
	CHECK(!status);
}

static void poll_fails(void)
{
	exs_pollfd_t fd = { .fd = STDERR_FILENO, .events = EXS_POLLOUT };
	exs_qhandle_t none = EXS_QHANDLE_INVALID;
	int q = fake_queue(0);

	CHECK(exs_poll(&fd, 1, 1, q, 8) == -1 && errno == EINVAL);
	CHECK(exs_poll(&fd, 0, 0, q, 8) == -1 && errno == EINVAL);
	CHECK(exs_poll(&fd, -1, 0, none, 8) == -1 && errno == EINVAL);
	CHECK(exs_poll((exs_pollfd_t *)2, 1, 0, q, 8) == -1 && errno == EFAULT);
	CHECK(exs_poll(&fd, 1, 0, STDERR_FILENO, 8) == -1 && errno == EINVAL);
	fake.submit_errno = ELOOP;
	CHECK(exs_poll(&fd, 1, 0, q, 8) == -1 && errno == ELOOP);
	CHECK(exs_poll(&fd, 1, 0, none, 8) == 1 && fd.revents == EXS_POLLOUT);
}

const struct test call_tests[] = {
	{ "family found", family_found },
	{ "family from environment", family_from_environment },
	{ "family absent", family_absent },
	{ "family without descriptors", family_without_descriptors },
	{ "other ABI", other_abi },
	{ "sockets", sockets },
	{ "send as submitted", send_as_submitted },
	{ "submit fails", submit_fails },
	{ "regions", regions },
	{ "attributes", attributes },
	{ "eventfd of another", eventfd_of_another },
	{ "signal attribute", signal_attribute },
	{ "synchronous", synchronous },
	{ "accept gives descriptor", accept_gives_descriptor },
	{ "accept without descriptor", accept_without_descriptor },
	{ "accept race for descriptor", accept_race_for_descriptor },
	{ "accept back for others", accept_back_for_others },
	{ "accept all lost race", accept_all_lost_race },
	{ "accept all without descriptor", accept_all_without_descriptor },
	{ "accept tagged address", accept_tagged_address },
	{ "module calls", module_calls },
	{ "native calls", native_calls },
	{ "accept connection gone", accept_connection_gone },
	{ "accept listener gone", accept_listener_gone },
	{ "accept bad address", accept_bad_address },
	{ "accept in another process", accept_in_another_process },
	{ "accept among children", accept_among_children },
	{ "connect starts", connect_starts },
	{ "connect ordinary", connect_ordinary },
	{ "connect datagrams fails", connect_datagrams_fails },
	{ "connect datagrams of unix fails", connect_datagrams_of_unix_fails },
	{ "close starts", close_starts },
	{ "options", options },
	{ "option timeouts", option_timeouts },
	{ "option ordered", option_ordered },
	{ "shutdown starts", shutdown_starts },
	{ "shutdown ordinary", shutdown_ordinary },
	{ "timeouts ordinary", timeouts_ordinary },
	{ "submit as told", submit_as_told },
	{ "submit long", submit_long },
	{ "submit wrong", submit_wrong },
	{ "cancel as asked", cancel_as_asked },
	{ "poll says who", poll_says_who },
	{ "poll in another process", poll_in_another_process },
	{ "poll fails", poll_fails },
	{ NULL, NULL },
};
