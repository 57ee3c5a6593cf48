// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once, and nonsense: threads and processes that submit, cancel,
 * claim, close, unmap and die on the same queues, sockets and regions, in no
 * order; ioctls with random arguments; the kernel's other asynchronous calls.
 * The results do not matter. But everything must end, each accepted operation
 * must have its one event (the framework checks), and the kernel log must stay
 * silent.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUEUES	3
#define REGIONS	4
#define SOCKETS	8
#define THREADS	4
#define STEPS	500
#define PIECE	(64 * 1024)

/* Descriptors are changed by all threads while all use them. */
static struct storm {
	volatile int q[QUEUES], m[REGIONS], s[SOCKETS], lfd;
	union address to;
	char *mem;		/* REGIONS pieces, then some that is not registered */
} storm;

/* -- steps */

static unsigned int pick(uint64_t *seed, unsigned int n)
{
	return next_random(seed) % n;
}

static int pick_socket(uint64_t *seed)
{
	return storm.s[pick(seed, SOCKETS)];
}

static int pick_queue(uint64_t *seed)
{
	return storm.q[pick(seed, QUEUES)];
}

/* A piece of memory and the region that it is in; or none, or another one. */
static char *pick_memory(uint64_t *seed, int *m)
{
	unsigned int i = pick(seed, REGIONS + 2);

	*m = i < REGIONS ? storm.m[i] : NO_REGION;
	return storm.mem + i * PIECE + pick(seed, 5000);
}

static void step_transfer(uint64_t *seed)
{
	size_t len = pick(seed, 3) ? pick(seed, 2000) : pick(seed, PIECE - 5000);
	int m, fd = pick_socket(seed), q = pick_queue(seed);
	char *at = pick_memory(seed, &m);

	if (pick(seed, 2))
		exs_send(fd, at, len, 0, q, pick(seed, 8), m);
	else
		exs_recv(fd, at, len, pick(seed, 2) ? MSG_WAITALL : 0, q, pick(seed, 8), m);
}

static void step_submit(uint64_t *seed)
{
	static const int types[] = { EXS_EVT_SEND, EXS_EVT_RECV, EXS_EVT_SEND, EXS_EVT_RECV, EXS_EVT_ACCEPT };
	exs_op_t ops[24] = {};
	unsigned int i, n = pick(seed, ARRAY_SIZE(ops));

	for (i = 0; i < n; i++) {
		ops[i].exs_op_type = types[pick(seed, ARRAY_SIZE(types))];
		ops[i].exs_op_fd = pick_socket(seed);
		ops[i].exs_op_handle = pick(seed, 8);
		if (ops[i].exs_op_type == EXS_EVT_ACCEPT) {
			ops[i].exs_op_fd = storm.lfd;
			continue;
		}
		ops[i].exs_op_buf = pick_memory(seed, &ops[i].exs_op_region);
		ops[i].exs_op_len = pick(seed, 2000);
	}
	exs_submit(pick_queue(seed), ops, n);
}

static void step_cancel(uint64_t *seed)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c),
		.flags = pick(seed, 16),
		.fd = pick_socket(seed),
		.handle = pick(seed, 8),
	};

	ioctl(pick_queue(seed), EXS_IOC_CANCEL, &c);
}

static int socket_nonblock(void)
{
	return socket(e2e.family, e2e.type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* The number is taken out first, because another thread may use it, too. */
static void replace(volatile int *where, int fd)
{
	int old = __atomic_exchange_n(where, fd, __ATOMIC_SEQ_CST);

	if (old >= 0)
		close(old);
}

static void step_dequeue(uint64_t *seed)
{
	struct timeval limit = { .tv_usec = pick(seed, 2) * 1000 };
	exs_event_t ev[8];
	int i, n = exs_qdequeue(pick_queue(seed), ev, pick(seed, 8) + 1, &limit);

	for (i = 0; i < n; i++)
		if (ev[i].exs_evt_type == EXS_EVT_ACCEPT && !ev[i].exs_evt_errno)
			replace(&storm.s[pick(seed, SOCKETS)], event_newfd(&ev[i]));
}

static void step_connect(uint64_t *seed)
{
	int fd = socket_nonblock(), q = pick_queue(seed);

	exs_accept(storm.lfd, NULL, pick(seed, 2) ? SOCK_NONBLOCK : 0, q, pick(seed, 8));
	exs_connect(fd, &storm.to.sa, address_len(&storm.to), 0, q, pick(seed, 8));
	replace(&storm.s[pick(seed, SOCKETS)], fd);
}

static void step_queue(uint64_t *seed)
{
	unsigned int i = pick(seed, QUEUES);
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = pick(seed, 9) };

	switch (pick(seed, 6)) {
	case 0:
		replace(&storm.q[i], exs_qcreate(pick(seed, 64) + 1));
		break;
	case 1:
		a.value = pick(seed, 64);
		ioctl(storm.q[i], EXS_IOC_SETATTR, &a);
		break;
	default:
		if (a.attr != EXS_ATTR_EVENTFD)
			ioctl(storm.q[i], EXS_IOC_GETATTR, &a);
	}
}

static void step_region(uint64_t *seed)
{
	unsigned int i = pick(seed, REGIONS);
	char *at = storm.mem + i * PIECE;

	switch (pick(seed, 3)) {
	case 0:
		mmap(at, PIECE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 1:
		madvise(at, PIECE, MADV_DONTNEED);
		break;
	default:
		replace(&storm.m[i], exs_mregister(at, PIECE, 0));
	}
}

static void step_plain(uint64_t *seed)
{
	int fd = pick_socket(seed);
	char buf[3000];

	switch (pick(seed, 4)) {
	case 0:
		send(fd, buf, pick(seed, sizeof(buf)), MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 1:
		recv(fd, buf, sizeof(buf), MSG_DONTWAIT | (pick(seed, 2) ? MSG_PEEK : 0));
		break;
	case 2:
		if (!pick(seed, 10))
			exs_shutdown(fd, pick(seed, 3), pick(seed, 2) ? pick_queue(seed) : -1, pick(seed, 8));
		break;
	default:
		if (!pick(seed, 5))
			replace(&storm.s[pick(seed, SOCKETS)], -1);
	}
}

static void steps(uint64_t seed, int n)
{
	static void (*const kinds[])(uint64_t *seed) = {
		step_transfer, step_transfer, step_transfer, step_submit, step_dequeue,
		step_dequeue, step_cancel, step_connect, step_queue, step_region, step_plain,
	};

	while (n--)
		kinds[pick(&seed, ARRAY_SIZE(kinds))](&seed);
}

static void *thread(void *arg)
{
	steps((uintptr_t)arg, STEPS);
	return NULL;
}

/* Submits to its parent's queues and leaves, one way or another. */
static void child(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	steps(seed, 60);
	if (pick(&seed, 2))
		raise(SIGKILL);
}

static void *forker(void *arg)
{
	uintptr_t seed = (uintptr_t)arg;
	int i;

	for (i = 0; i < 20; i++)
		reap(spawn(child, (void *)(seed + i)));
	return NULL;
}

static void storm_begin(void)
{
	int i;

	storm.lfd = listener(64);
	set_nonblock(storm.lfd, true);
	storm.to = name_of(storm.lfd);
	storm.mem = pages((REGIONS + 2) * PIECE);
	for (i = 0; i < QUEUES; i++)
		storm.q[i] = queue_new(32);
	for (i = 0; i < REGIONS; i++)
		storm.m[i] = region_new(storm.mem + i * PIECE, PIECE, 0);
	for (i = 0; i < SOCKETS / 2; i++) {
		struct pair p;

		pair_open(&p);
		storm.s[2 * i] = p.c;
		storm.s[2 * i + 1] = p.s;
	}
}

static void storming(void)
{
	pthread_t threads[THREADS + 1];
	uintptr_t i;

	storm_begin();
	for (i = 0; i < THREADS; i++)
		must_be(pthread_create(&threads[i], NULL, thread, (void *)(e2e.seed + i)), 0);
	must_be(pthread_create(&threads[i], NULL, forker, (void *)(e2e.seed + 1000UL)), 0);
	for (i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* -- ioctls with random arguments: no memory is read or written that should not be */

static const unsigned long requests[] = {
	EXS_IOC_SUBMIT, EXS_IOC_WAIT, EXS_IOC_CLAIM, EXS_IOC_CANCEL, EXS_IOC_GETATTR,
	EXS_IOC_SETATTR, EXS_IOC_REGION, EXS_IOC_PROBE, EXS_IOC_QCREATE, EXS_IOC_MREG,
};

/* Half of it sensible, so that it gets beyond the first check. */
static void random_argument(uint64_t *seed, uint32_t *arg, unsigned int words, char *mem)
{
	unsigned int i;

	for (i = 0; i < words; i++)
		arg[i] = pick(seed, 2) ? pick(seed, 4) : next_random(seed);
	if (pick(seed, 4))
		arg[0] = 8 * pick(seed, 5);
	if (pick(seed, 2))
		memcpy(arg + 2, &mem, sizeof(mem));
}

static void close_new(int from)
{
	int fd;

	for (fd = from; fd < from + 8; fd++)
		close(fd);
}

static void random_ioctls(void)
{
	int fds[3] = { new_socket(), queue_new(4), -1 }, i;
	uint64_t seed = e2e.seed;
	char *mem = pages(8 * 4096);
	uint32_t *at;
	unsigned long request;

	fds[2] = region_new(mem, 4096, 0);
	for (i = 0; i < 20000; i++) {
		/* Now and then across the end of the mapping. */
		at = (uint32_t *)(mem + 2048);
		random_argument(&seed, at, 32, mem + 3000);
		request = requests[pick(&seed, ARRAY_SIZE(requests))];
		/* It may rightly wait for ever. */
		if (request == EXS_IOC_WAIT)
			memset(at + 2, 0, 8);
		ioctl(fds[pick(&seed, 3)], request, at);
		if (!(i % 4))
			close_new(fds[2] + 1);
	}
}

/* -- the kernel's other asynchronous calls work, by copying and polling */

static void with_aio(void)
{
	char out[] = "aio", in[8] = "";
	aio_context_t ctx = 0;
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_nbytes = 4 }, *cbs = &cb;
	struct io_event ev;
	struct pair p;

	pair_open(&p);
	must(syscall(SYS_io_setup, 1, &ctx));
	cb.aio_fildes = p.c;
	cb.aio_buf = (uintptr_t)out;
	must_be(syscall(SYS_io_submit, ctx, 1, &cbs), 1);
	must_be(syscall(SYS_io_getevents, ctx, 1, 1, &ev, NULL), 1);
	must_be(ev.res, 4);
	cb.aio_lio_opcode = IOCB_CMD_PREAD;
	cb.aio_fildes = p.s;
	cb.aio_buf = (uintptr_t)in;
	must_be(syscall(SYS_io_submit, ctx, 1, &cbs), 1);
	must_be(syscall(SYS_io_getevents, ctx, 1, 1, &ev, NULL), 1);
	must_be(ev.res, 4);
	check(!strcmp(in, out), "other bytes came");
	syscall(SYS_io_destroy, ctx);
}

struct uring {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static void uring_open(struct uring *u, struct iovec *buf)
{
	u->fd = syscall(SYS_io_uring_setup, 4, &u->p);
	if (u->fd < 0)
		skip("io_uring_setup: %s", errno_name(errno));
	u->sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_CQ_RING);
	u->sqes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQES);
	check(u->sq != MAP_FAILED && u->cq != MAP_FAILED && u->sqes != MAP_FAILED, "mmap");
	must(syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, buf, 1));
}

static void uring_submit(struct uring *u, int opcode, int fd, void *at, size_t len)
{
	unsigned int *tail = (unsigned int *)(u->sq + u->p.sq_off.tail);
	unsigned int i = *tail & (u->p.sq_entries - 1);

	u->sqes[i] = (struct io_uring_sqe) {
		.opcode = opcode, .fd = fd, .addr = (uintptr_t)at, .len = len,
	};
	((unsigned int *)(u->sq + u->p.sq_off.array))[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	must_be(syscall(SYS_io_uring_enter, u->fd, 1, 0, 0, NULL, 0), 1);
}

static int uring_result(struct uring *u)
{
	unsigned int *head = (unsigned int *)(u->cq + u->p.cq_off.head);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(u->cq + u->p.cq_off.cqes);
	int res;

	must(syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	res = cqes[*head & (u->p.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Registered buffers come as pages with an asynchronous kiocb, as ours do. */
static void with_io_uring(void)
{
	char *mem = pages(2 * PIECE);
	struct iovec all = { mem, 2 * PIECE };
	struct uring u = {};
	struct pair p;

	pair_open(&p);
	uring_open(&u, &all);
	data_fill(1, 0, mem, 1000);
	uring_submit(&u, IORING_OP_READ_FIXED, p.s, mem + PIECE, 1000);
	uring_submit(&u, IORING_OP_WRITE_FIXED, p.c, mem, 1000);
	must_be(uring_result(&u), 1000);
	must_be(uring_result(&u), 1000);
	data_check(1, 0, mem + PIECE, 1000);
}

/* One that waits for bytes that never come does not keep the process. */
static void child_waits_in_io_uring(void *arg)
{
	char *mem = pages(PIECE);
	struct iovec all = { mem, PIECE };
	struct uring u = {};

	uring_open(&u, &all);
	uring_submit(&u, IORING_OP_READ_FIXED, *(int *)arg, mem, 1000);
	raise(SIGKILL);
}

static void io_uring_killed(void)
{
	struct pair p;
	char c;

	pair_open(&p);
	check(WIFSIGNALED(reap(spawn(child_waits_in_io_uring, &p.s))), "the child was not killed");
	close(p.s);
	must_be(recv(p.c, &c, 1, 0), 0);
}

static const struct e2e_case cases[] = {
	{ "aio", with_aio, .on = ON_BOTH },
	{ "io_uring", with_io_uring, .on = ON_BOTH },
	{ "io_uring_killed", io_uring_killed, .on = ON_BOTH },
	{ "random_ioctls", random_ioctls, .on = ON_STREAM },
	{ "storm", storming, .on = ON_BOTH, .limit = 180 },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
