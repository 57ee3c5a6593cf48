// SPDX-License-Identifier: GPL-2.0
/*
 * The event queue: slots, waiting, readiness, its end, and whatever a program may do to its ring.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char bytes[4096];
static const struct timeval none;

/* @n receives that wait, handles from @first. */
static void start_receives(int fd, exs_qhandle_t q, int n, exs_ahandle_t first)
{
	int i;

	for (i = 0; i < n; i++)
		start_recv(fd, bytes + (first + i) % sizeof(bytes), 1, 0, q, first + i, NO_REGION);
}

/* @n events of receives that got a byte each. */
static void make_events(const struct pair *p, exs_qhandle_t q, int n, exs_ahandle_t first)
{
	int i;

	start_receives(p->s, q, n, first);
	for (i = 0; i < n; i++)
		must_be(send(p->c, "x", 1, 0), 1);
}

static int status(exs_qhandle_t q, int attr)
{
	int value = -1;

	must(exs_qstatus(q, attr, &value));
	return value;
}

static void wait_posted(exs_qhandle_t q, long n)
{
	wait_until(queue_attr(q, EXS_ATTR_POSTED) >= n);
}

/* -- creation and attributes */

static void create(void)
{
	exs_qhandle_t q = queue_new(16), one = queue_new(1);

	must_be(status(q, EXS_QATTR_DEPTH), 16);
	must_be(status(one, EXS_QATTR_DEPTH), 1);
	must_be(status(q, EXS_QATTR_EVENTS), 0);
	no_event(q);
	must(exs_qdelete(q));
	must_fail(exs_qdelete(q), EBADF);
	must(exs_qdelete(one));
}

static void shows(exs_qhandle_t q, long reserved, long unread, long submitted, long posted, long timed_out)
{
	fdinfo_is(q, "exs-depth", 6);
	fdinfo_is(q, "exs-reserved", reserved);
	fdinfo_is(q, "exs-unread", unread);
	fdinfo_is(q, "exs-submitted", submitted);
	fdinfo_is(q, "exs-posted", posted);
	fdinfo_is(q, "exs-timed-out", timed_out);
}

/* /proc/PID/fdinfo, as exs-sysctl(7) describes it. */
static void in_fdinfo(void)
{
	exs_timeout_t soon = { .exs_time.tv_usec = 5000, .exs_flags = EXS_TIMEOUT_ONCE };
	exs_qhandle_t q = queue_new(6);
	struct pair p;

	pair_open(&p);
	start_receives(p.s, q, 3, 0);
	shows(q, 3, 0, 3, 0, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_posted(q, 1);
	shows(q, 2, 1, 3, 1, 0);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	shows(q, 2, 0, 3, 1, 0);
	must(exs_setsockopt(p.s, SOL_SOCKET, SO_ASYNC_RECV_TIMEOUT, &soon, sizeof(soon)));
	start_receives(p.s, q, 1, 3);
	event_is(q, EXS_EVT_RECVTIMEOUT, 3, 0, 0);
	/* One with a timeout has two places. */
	shows(q, 4, 0, 4, 1, 1);
}

static void create_raw_wrong(void)
{
	struct exs_ioc_qcreate c = { .size = sizeof(c), .depth = 8 };
	int fd = must(socket(exs_family(), SOCK_STREAM, 0));

	c.flags = 0x80;
	must_fail(ioctl(fd, EXS_IOC_QCREATE, &c), EINVAL);
	c.flags = 0;
	c.size = 4;
	must_fail(ioctl(fd, EXS_IOC_QCREATE, &c), EINVAL);
	c.size = sizeof(c);
	must_fail(ioctl(fd, EXS_IOC_QCREATE, (void *)8), EFAULT);
	c.depth = 0;
	must_fail(ioctl(fd, EXS_IOC_QCREATE, &c), EINVAL);
	c.depth = 8;
	must(ioctl(fd, EXS_IOC_QCREATE, &c));
	check(c.capacity >= EXS_QUEUE_CAPACITY_MIN && !(c.capacity & (c.capacity - 1)),
	      "capacity %u", c.capacity);
}

static void modify_depth(void)
{
	exs_qhandle_t q = queue_new(2);
	struct pair p;
	int depth = 3;

	pair_open(&p);
	start_receives(p.s, q, 2, 0);
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 2, NO_REGION), EAGAIN);
	must(exs_qmodify(q, EXS_QATTR_DEPTH, &depth));
	start_receives(p.s, q, 1, 2);
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 3, NO_REGION), EAGAIN);
	depth = 1;
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, &depth), EBUSY);
	depth = EXS_QUEUE_DEPTH_MAX;
	must_fail(exs_qmodify(q, EXS_QATTR_DEPTH, &depth), EINVAL);
	must_be(status(q, EXS_QATTR_DEPTH), 3);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTS, &depth), EINVAL);
	must_fail(exs_qmodify(q, 999, &depth), EINVAL);
	must_fail(exs_qstatus(q, 999, &depth), EINVAL);
}

/* -- submission */

static struct exs_sqe a_receive(int fd, uint64_t handle)
{
	return (struct exs_sqe){
		.opcode = EXS_OP_RECV, .fd = fd, .handle = handle,
		.addr = (uintptr_t)bytes, .len = 1, .region = EXS_REGION_NONE,
	};
}

static void submit_wrong(void)
{
	exs_qhandle_t q = queue_new(8);
	struct exs_sqe s;
	struct pair p;

	pair_open(&p);
	s = a_receive(p.s, 1);
	s.opcode = 0;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s.opcode = 777;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s = a_receive(p.s, 1);
	s.msg_flags = MSG_OOB;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s.msg_flags = 1u << 31;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s = a_receive(p.s, 1);
	s.flags = 1u << 31;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s = a_receive(p.s, 1);
	s.region = -1;
	check(submit_raw(q, &s, 1) < 0, "region -1 was accepted");
	s = a_receive(p.s, 1);
	must_fail(submit_raw(q, &s, 0), EINVAL);
	must_fail(submit_raw(q, &s, EXS_SUBMIT_MAX + 1), EINVAL);
	must_fail(submit_raw(q, (void *)8, 1), EFAULT);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	no_event(q);
}

/* The operations that were started count; the caller tries the one that was not again. */
static void submit_partly(void)
{
	exs_qhandle_t q = queue_new(8);
	struct exs_sqe s[4];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 4; i++)
		s[i] = a_receive(p.s, i);
	s[2].fd = -1;
	must_be(submit_raw(q, s, 4), 2);
	must_fail(submit_raw(q, s + 2, 2), EBADF);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 2);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

static void submit_many(void)
{
	static struct exs_sqe s[EXS_SUBMIT_MAX];
	exs_qhandle_t q = queue_new(EXS_SUBMIT_MAX - 10);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < EXS_SUBMIT_MAX; i++)
		s[i] = a_receive(p.s, i);
	must_be(submit_raw(q, s, EXS_SUBMIT_MAX), EXS_SUBMIT_MAX - 10);
	must_fail(submit_raw(q, s, 1), EAGAIN);
	must(shutdown(p.c, SHUT_WR));
	for (i = 0; i < EXS_SUBMIT_MAX - 10; i++)
		event_is(q, EXS_EVT_RECV, i, 0, 0);
}

/* Full: EAGAIN, nothing starts, nothing that did start is lost. */
static void full(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	int i;

	pair_open(&p);
	start_receives(p.s, q, 4, 0);
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 99, NO_REGION), EAGAIN);
	must_fail(exs_send(p.s, bytes, 1, 0, q, 99, NO_REGION), EAGAIN);
	must_be(delta("queue_full"), 2);
	for (i = 0; i < 4; i++)
		must_be(send(p.c, "x", 1, 0), 1);
	wait_posted(q, 4);
	/* Unread events hold their slots. */
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 99, NO_REGION), EAGAIN);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	start_receives(p.s, q, 1, 4);
	must_fail(exs_recv(p.s, bytes, 1, 0, q, 99, NO_REGION), EAGAIN);
	for (i = 1; i < 4; i++)
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 4, 0, 1);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 5);
	must_be(queue_attr(q, EXS_ATTR_POSTED), 5);
}

/* Handles are the program's: any value. */
static void any_handle(void)
{
	static const exs_ahandle_t handles[] = { 0, (exs_ahandle_t)-1, 1ull << 63, 0x1234567890abcdef };
	exs_qhandle_t q = queue_new(8);
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		start_send(p.c, "x", 1, q, handles[i], NO_REGION);
		event_is(q, EXS_EVT_SEND, handles[i], 0, 1);
	}
}

/* The ring is gone round several times. */
static void wraps(void)
{
	int i, j, total = EXS_QUEUE_CAPACITY_MIN + amount(2 * EXS_QUEUE_CAPACITY_MIN);
	exs_qhandle_t q = queue_new(32);
	struct pair p;

	pair_open(&p);
	for (i = 0; i < total; i += 32) {
		start_receives(p.s, q, 32, i);
		must_be(send(p.c, bytes, 32, 0), 32);
		for (j = 0; j < 32; j++)
			event_is(q, EXS_EVT_RECV, i + j, 0, 1);
	}
	no_event(q);
}

/* -- dequeuing */

static void counts(void)
{
	struct timeval short_time = { .tv_usec = 20000 };
	exs_qhandle_t q = queue_new(16);
	exs_event_t ev[16];
	struct pair p;
	int i;

	pair_open(&p);
	must_be(exs_qdequeue(q, ev, 0, NULL), 0);
	must_be(exs_qdequeue(q, ev, 4, &none), 0);
	must_be(exs_qdequeue(q, ev, 4, &short_time), 0);
	must_be(exs_qdequeue(q, ev, -4, &short_time), 0);
	make_events(&p, q, 6, 0);
	/* A negative count waits for all of them. */
	must_be(exs_qdequeue(q, ev, -6, NULL), 6);
	for (i = 0; i < 6; i++)
		event_check(&ev[i], EXS_EVT_RECV, i, 0, 1);
	make_events(&p, q, 3, 0);
	wait_posted(q, 9);
	must_be(status(q, EXS_QATTR_EVENTS), 3);
	must_be(exs_qdequeue(q, ev, 2, NULL), 2);
	must_be(status(q, EXS_QATTR_EVENTS), 1);
	/* Too few: those that are there when the time is up. */
	must_be(exs_qdequeue(q, ev, -3, &short_time), 1);
	event_check(&ev[0], EXS_EVT_RECV, 2, 0, 1);
	no_event(q);
}

static void *dequeue_three(void *arg)
{
	long *seen = arg;
	exs_event_t ev[3];

	seen[1] = gettid();
	must_be(exs_qdequeue(seen[0], ev, -3, NULL), 3);
	return NULL;
}

/* A thread waits for three; the first two do not wake it. */
static void threshold(void)
{
	exs_qhandle_t q = queue_new(16);
	long seen[2] = { q, 0 };
	volatile long *tid = &seen[1];
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	must_be(pthread_create(&thread, NULL, dequeue_three, seen), 0);
	wait_until(*tid);
	wait_blocked(*tid);
	make_events(&p, q, 2, 0);
	wait_posted(q, 2);
	wait_blocked(*tid);
	must_be(status(q, EXS_QATTR_EVENTS), 2);
	make_events(&p, q, 1, 2);
	pthread_join(thread, NULL);
	no_event(q);
}

static void interrupted(void)
{
	exs_qhandle_t q = queue_new(16);
	exs_event_t ev[4];
	struct pair p;
	int i;

	pair_open(&p);
	catch_signal(SIGALRM, 0);
	interrupt_self(20);
	must_fail(exs_qdequeue(q, ev, 4, NULL), EINTR);
	/* Two are there, three are wanted: the two are not lost. */
	interrupt_stop();
	make_events(&p, q, 2, 0);
	wait_posted(q, 2);
	interrupt_self(20);
	must_fail(exs_qdequeue(q, ev, -3, NULL), EINTR);
	interrupt_stop();
	for (i = 0; i < 2; i++)
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	no_event(q);
}

/* Signals all the time; each event comes once. */
static void interrupted_often(void)
{
	int i, rounds = amount(300);
	exs_qhandle_t q = queue_new(64);
	struct pair p;

	pair_open(&p);
	catch_signal(SIGALRM, 0);
	interrupt_self(1);
	for (i = 0; i < rounds; i++) {
		while (exs_recv(p.s, bytes, 1, 0, q, i, NO_REGION))
			check(errno == EINTR, "exs_recv: %s", errno_name(errno));
		while (send(p.c, "x", 1, 0) < 0)
			check(errno == EINTR, "send: %s", errno_name(errno));
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	}
	interrupt_stop();
	check(signals_caught, "no signal came");
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), rounds);
	must_be(queue_attr(q, EXS_ATTR_POSTED), rounds);
	no_event(q);
}

#define FILTER_ALLOW(nr)							\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),				\
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* From here on every system call kills, but those that end the process. */
static void forbid_calls(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FILTER_ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

struct quiet { exs_qhandle_t q; int count; bool timed; };

static void dequeue_quietly(void *arg)
{
	const struct quiet *quiet = arg;
	exs_event_t ev[8];
	int n;

	/* The first use in a process may map the ring; this takes one event. */
	must_be(exs_qdequeue(quiet->q, ev, 1, NULL), 1);
	forbid_calls();
	n = exs_qdequeue(quiet->q, ev, quiet->count, quiet->timed ? &none : NULL);
	syscall(SYS_exit_group, n == 3 ? 0 : 1);
}

static void no_system_call_with(int count, bool timed)
{
	struct quiet quiet = { queue_new(16), count, timed };
	struct pair p;

	pair_open(&p);
	make_events(&p, quiet.q, 4, 0);
	wait_posted(quiet.q, 4);
	must_be(reap(spawn(dequeue_quietly, &quiet)), 0);
	no_event(quiet.q);
}

static void no_system_call(void)
{
	no_system_call_with(3, false);
	no_system_call_with(-3, false);
	no_system_call_with(8, true);
}

/* The filter does kill: or else the case above would prove nothing. */
static void waits_with_call(void *arg)
{
	exs_event_t ev;

	exs_qdequeue(*(exs_qhandle_t *)arg, &ev, 1, &none);
	forbid_calls();
	exs_qdequeue(*(exs_qhandle_t *)arg, &ev, 1, NULL);
	syscall(SYS_exit_group, 0);
}

static void waiting_is_a_call(void)
{
	exs_qhandle_t q = queue_new(4);
	int end = reap(spawn(waits_with_call, &q));

	check(WIFSIGNALED(end) && WTERMSIG(end) == SIGSYS, "ended with %#x, not SIGSYS", end);
}

/* -- readiness */

static void with_poll(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pair p;

	pair_open(&p);
	must_be(poll_now(q, POLLIN | POLLOUT) & POLLIN, 0);
	make_events(&p, q, 2, 0);
	wait_io(q, POLLIN);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	wait_io(q, POLLIN);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	must_be(poll_now(q, POLLIN), 0);
}

static void with_epoll(void)
{
	exs_qhandle_t q = queue_new(8);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = must(epoll_create1(0));
	struct pair p;

	pair_open(&p);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, q, &ev));
	must_be(epoll_wait(ep, &ev, 1, 0), 0);
	make_events(&p, q, 1, 0);
	must_be(epoll_wait(ep, &ev, 1, limit_ms()), 1);
	must_be(epoll_wait(ep, &ev, 1, 0), 0);
	/* Another one is another edge, also if the first was not read. */
	make_events(&p, q, 1, 1);
	must_be(epoll_wait(ep, &ev, 1, limit_ms()), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
}

static uint64_t eventfd_value(int fd)
{
	uint64_t value = 0;

	wait_io(fd, POLLIN);
	must_be(read(fd, &value, sizeof(value)), sizeof(value));
	return value;
}

static void with_eventfd(void)
{
	exs_qhandle_t q = queue_new(8);
	int fd = status(q, EXS_QATTR_EVENTFD);
	struct pair p;

	pair_open(&p);
	check(fd >= 0, "no eventfd");
	must_be(poll_now(fd, POLLIN), 0);
	make_events(&p, q, 1, 0);
	check(eventfd_value(fd) >= 1, "the eventfd counts nothing");
	make_events(&p, q, 1, 1);
	eventfd_value(fd);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	close(fd);
	make_events(&p, q, 1, 2);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
}

static void own_eventfd(void)
{
	exs_qhandle_t q = queue_new(8), other = queue_new(8);
	int fd = must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), off = -1, wrong = other;
	uint64_t value;
	struct pair p;

	pair_open(&p);
	must(exs_qmodify(q, EXS_QATTR_EVENTFD, &fd));
	must(exs_qmodify(other, EXS_QATTR_EVENTFD, &fd));
	make_events(&p, q, 1, 0);
	eventfd_value(fd);
	make_events(&p, other, 1, 0);
	eventfd_value(fd);
	must(exs_qmodify(q, EXS_QATTR_EVENTFD, &off));
	make_events(&p, q, 1, 1);
	wait_posted(q, 2);
	must_fail(read(fd, &value, sizeof(value)), EAGAIN);
	must_fail(exs_qmodify(q, EXS_QATTR_EVENTFD, &wrong), EINVAL);
}

/* It is signalled for events that were there before it; if two threads set one, the first counts. */
static void eventfd_late(void)
{
	int fd = must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), second = must(eventfd(0, EFD_CLOEXEC));
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = EXS_ATTR_EVENTFD_FIRST, .value = second };
	exs_qhandle_t q = queue_new(8);
	struct pair p;

	pair_open(&p);
	make_events(&p, q, 1, 0);
	wait_posted(q, 1);
	must(exs_qmodify(q, EXS_QATTR_EVENTFD, &fd));
	eventfd_value(fd);
	must_fail(ioctl(q, EXS_IOC_SETATTR, &a), EEXIST);
	make_events(&p, q, 1, 1);
	eventfd_value(fd);
}

/* No thread may wait for more events than the ring can hold. */
static void wait_wrong(void)
{
	struct exs_ioc_qcreate c = { .size = sizeof(c), .depth = 8 };
	int q = must(ioctl(new_socket(), EXS_IOC_QCREATE, &c));
	struct exs_ioc_wait w = { .size = sizeof(w) };

	must_fail(ioctl(q, EXS_IOC_WAIT, &w), EINVAL);
	w.count = c.capacity + 1;
	must_fail(ioctl(q, EXS_IOC_WAIT, &w), EINVAL);
	w.count = c.capacity;
	must_fail(ioctl(q, EXS_IOC_WAIT, &w), ETIME);
}

struct held_get { exs_qhandle_t q; struct held_page page; };

static void *get_eventfd(void *arg)
{
	const struct held_get *h = arg;

	must_fail(ioctl(h->q, EXS_IOC_GETATTR, h->page.mem), EFAULT);
	return NULL;
}

/* The kernel cannot tell the number, and closes nothing: it is another file's by now. */
static void eventfd_not_told(void)
{
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = EXS_ATTR_EVENTFD };
	struct held_get h = { .q = queue_new(8), .page = held_page_of(&a, sizeof(a)) };
	int fd, other = must(eventfd(0, EFD_CLOEXEC));
	pthread_t thread;

	must(exs_qmodify(h.q, EXS_QATTR_EVENTFD, &other));
	fd = must(dup(other));
	close(fd);
	must_be(pthread_create(&thread, NULL, get_eventfd, &h), 0);
	held_page_wait(&h.page);
	must_be(dup2(other, fd), fd);
	held_page_refuse(&h.page);
	pthread_join(thread, NULL);
	must(fcntl(fd, F_GETFD));
}

/* -- closing, reusing, sharing */

/* The number is that of another queue now: its events, not those of the first. */
static void number_reused(void)
{
	exs_qhandle_t a = queue_new(8), b;
	struct pair p;

	pair_open(&p);
	make_events(&p, a, 2, 10);
	event_is(a, EXS_EVT_RECV, 10, 0, 1);
	must(exs_qdelete(a));
	b = queue_new(8);
	must_be(b, a);
	no_event(b);
	make_events(&p, b, 1, 20);
	event_is(b, EXS_EVT_RECV, 20, 0, 1);
	no_event(b);
}

/* The same with plain close(), which the library does not see. */
static void number_reused_plain(void)
{
	exs_qhandle_t a = queue_new(8), b;
	exs_event_t ev;
	struct pair p;

	pair_open(&p);
	make_events(&p, a, 2, 10);
	event_is(a, EXS_EVT_RECV, 10, 0, 1);
	close(a);
	must_fail(exs_qdequeue(a, &ev, 1, &none), EBADF);
	b = queue_new(8);
	must_be(b, a);
	make_events(&p, b, 1, 20);
	event_is(b, EXS_EVT_RECV, 20, 0, 1);
}

static void number_replaced(void)
{
	exs_qhandle_t a = queue_new(8), b = queue_new(8);
	struct pair p;
	int fds[2];
	exs_event_t ev;

	pair_open(&p);
	must(pipe(fds));
	make_events(&p, a, 1, 1);
	make_events(&p, b, 2, 2);
	event_is(a, EXS_EVT_RECV, 1, 0, 1);
	event_is(b, EXS_EVT_RECV, 2, 0, 1);
	must(dup2(b, a));
	event_is(a, EXS_EVT_RECV, 3, 0, 1);
	no_event(b);
	must(dup2(fds[0], a));
	must_fail(exs_qdequeue(a, &ev, 1, &none), EINVAL);
}

static void with_dup(void)
{
	exs_qhandle_t a = queue_new(8), b = must(dup(a));
	struct pair p;

	pair_open(&p);
	make_events(&p, a, 3, 1);
	event_is(a, EXS_EVT_RECV, 1, 0, 1);
	event_is(b, EXS_EVT_RECV, 2, 0, 1);
	must(exs_qdelete(a));
	event_is(b, EXS_EVT_RECV, 3, 0, 1);
	make_events(&p, b, 1, 4);
	event_is(b, EXS_EVT_RECV, 4, 0, 1);
}

static void child_dequeues(void *arg)
{
	exs_qhandle_t q = *(exs_qhandle_t *)arg;

	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
}

static void after_fork(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pair p;

	pair_open(&p);
	make_events(&p, q, 3, 0);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	join(spawn(child_dequeues, &q));
	no_event(q);
	make_events(&p, q, 1, 3);
	event_is(q, EXS_EVT_RECV, 3, 0, 1);
}

struct submits { exs_qhandle_t q; struct pair p; };

static void child_submits(void *arg)
{
	struct submits *s = arg;

	make_events(&s->p, s->q, 2, 1);
	wait_posted(s->q, 2);
}

/* A child submits to the queue it inherited; the parent gets the event. */
static void child_submits_parent_dequeues(void)
{
	struct submits s = { .q = queue_new(8) };

	pair_open(&s.p);
	join(spawn(child_submits, &s));
	child_dequeues(&s.q);
}

static void child_receives_queue(void *arg)
{
	exs_qhandle_t q = receive_fd(*(int *)arg);

	child_dequeues(&q);
	no_event(q);
}

static void passed_to_process(void)
{
	exs_qhandle_t q;
	struct pair p;
	int fds[2];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = spawn(child_receives_queue, &fds[0]);
	q = queue_new(8);
	pair_open(&p);
	send_fd(fds[1], q);
	make_events(&p, q, 2, 1);
	join(pid);
	no_event(q);
}

static int raw_queue(unsigned int flags)
{
	struct exs_ioc_qcreate c = { .size = sizeof(c), .depth = 4, .flags = flags };
	int fd = must(socket(exs_family(), SOCK_STREAM | SOCK_CLOEXEC, 0));

	return must(ioctl(fd, EXS_IOC_QCREATE, &c));
}

static void close_on_exec(void)
{
	check(fcntl(raw_queue(EXS_QF_CLOEXEC), F_GETFD) & FD_CLOEXEC, "EXS_QF_CLOEXEC had no effect");
	check(!(fcntl(raw_queue(0), F_GETFD) & FD_CLOEXEC), "close-on-exec and nobody asked");
}

struct taking { exs_qhandle_t q; unsigned char *seen; int want; int *total; };

static void *take_events(void *arg)
{
	const struct taking *t = arg;
	struct timeval tick = { .tv_usec = 50000 };
	exs_event_t ev[5];
	int i, n;

	while (__atomic_load_n(t->total, __ATOMIC_SEQ_CST) < t->want) {
		n = exs_qdequeue(t->q, ev, ARRAY_SIZE(ev), &tick);
		must(n);
		for (i = 0; i < n; i++)
			__atomic_fetch_add(&t->seen[ev[i].exs_evt_ahandle], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(t->total, n, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void each_once(const unsigned char *seen, int n)
{
	int i;

	for (i = 0; i < n; i++)
		check(seen[i] == 1, "event %d was taken %d times", i, seen[i]);
}

/* Several threads take from one queue: each event once. */
static void taker_threads(void)
{
	enum { EVENTS = 1200 };
	unsigned char *seen = pages(EVENTS);
	int *total = pages(4096), i;
	struct taking t = { queue_new(EVENTS), seen, EVENTS, total };
	pthread_t threads[4];
	struct pair p;

	pair_open(&p);
	for (i = 0; i < 4; i++)
		must_be(pthread_create(&threads[i], NULL, take_events, &t), 0);
	for (i = 0; i < EVENTS; i += 50)
		make_events(&p, t.q, 50, i);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	each_once(seen, EVENTS);
	no_event(t.q);
}

static void take_in_child(void *arg)
{
	take_events(arg);
}

static void taker_processes(void)
{
	enum { EVENTS = 600 };
	unsigned char *seen = mmap(NULL, EVENTS + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct taking t = { queue_new(EVENTS), seen + 4096, EVENTS, (int *)seen };
	pid_t pids[3];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 3; i++)
		pids[i] = spawn(take_in_child, &t);
	for (i = 0; i < EVENTS; i += 50)
		make_events(&p, t.q, 50, i);
	for (i = 0; i < 3; i++)
		join(pids[i]);
	each_once(t.seen, EVENTS);
}

/* -- the ring in hostile hands */

static void ring_read_only(void)
{
	exs_qhandle_t q = queue_new(8);
	struct ring r;
	void *p;

	ring_map(q, &r);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, q, EXS_MMAP_RING);
	check(p == MAP_FAILED && (errno == EACCES || errno == EPERM),
	      "a writable mapping of the ring: %s", p == MAP_FAILED ? errno_name(errno) : "success");
	p = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, q, EXS_MMAP_RING + 4096);
	check(p == MAP_FAILED, "a writable mapping of the entries");
	p = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, q, EXS_MMAP_RING);
	check(p == MAP_FAILED, "a private writable mapping of the ring");
	must_fail(mprotect((void *)r.ring, 4096, PROT_READ | PROT_WRITE), EACCES);
	must_fail(mprotect((void *)r.entries, 4096, PROT_WRITE), EACCES);
}

/* In the kernel's memory the head's page and the ring's first page are next to each other. */
static void ring_limits(void)
{
	exs_qhandle_t q = queue_new(8);
	struct ring r;

	ring_map(q, &r);
	check(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, q, EXS_MMAP_HEAD) == MAP_FAILED,
	      "a writable mapping reaches from the head into the ring");
	check(mmap(NULL, r.size + 4096, PROT_READ, MAP_SHARED, q, EXS_MMAP_RING) == MAP_FAILED,
	      "a mapping beyond the ring's end");
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, q, 1 << 30) == MAP_FAILED, "a mapping far beyond");
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, q, 4096) == MAP_FAILED, "a mapping behind the head");
	check(mmap(NULL, 8192, PROT_READ, MAP_SHARED, q, EXS_MMAP_RING - 4096) == MAP_FAILED,
	      "a mapping that begins before the ring");
	check(mremap((void *)r.head, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED,
	      "the head's mapping grew into the ring");
	check(mremap((void *)r.ring, 4096, r.size + 4096, MREMAP_MAYMOVE) == MAP_FAILED,
	      "the ring's mapping grew beyond its end");
}

/* Memory of the ring outlives the descriptor, and not the mapping. */
static void ring_outlives_fd(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pair p;
	struct ring r;
	uint64_t epoch;

	pair_open(&p);
	ring_map(q, &r);
	epoch = r.ring->epoch;
	make_events(&p, q, 1, 77);
	wait_posted(q, 1);
	must_be(r.ring->tail, 1);
	must_be(r.entries[0].handle, 77);
	close(q);
	check(r.ring->epoch != epoch, "closing the descriptor left the epoch as it was");
	must_be(r.entries[0].handle, 77);
	must_be(counter("live_queues"), 1);
	munmap((void *)r.ring, r.size);
	munmap((void *)r.head, 4096);
	wait_until(!counter("live_queues"));
}

static void scribble(uint64_t value)
{
	exs_qhandle_t bad = queue_new(8), good = queue_new(8);
	struct pair p;
	struct ring r;
	int i;

	pair_open(&p);
	ring_map(bad, &r);
	make_events(&p, bad, 3, 0);
	wait_posted(bad, 3);
	r.head->head = value;
	/* It may refuse, or return garbage, to this program only. */
	for (i = 0; i < 20; i++) {
		r.head->head = value + i;
		if (exs_send(p.c, bytes, 1, 0, bad, i, NO_REGION))
			check(errno == EAGAIN || errno == EIO, "exs_send: %s", errno_name(errno));
		poll_now(bad, POLLIN);
		r.head->head = value - i;
		queue_attr(bad, EXS_ATTR_EVENTS);
	}
	make_events(&p, good, 4, 100);
	for (i = 0; i < 4; i++)
		event_is(good, EXS_EVT_RECV, 100 + i, 0, 1);
	check(queue_attr(bad, EXS_ATTR_POSTED) <= queue_attr(bad, EXS_ATTR_SUBMITTED),
	      "more posted than submitted");
	must(exs_qdelete(bad));
}

static void scribbled_head(void)
{
	scribble(0);
	scribble(2);
	scribble(1000);
	scribble(EXS_QUEUE_CAPACITY_MIN);
	scribble(1ull << 32);
	scribble(1ull << 63);
	scribble(UINT64_MAX);
}

/* A head that hides events lets the ring overrun nothing: reservations stay bounded. */
static void head_ahead(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pair p;
	struct ring r;
	int i;

	pair_open(&p);
	ring_map(q, &r);
	r.head->head = 1000000;
	for (i = 0; i < 3 * EXS_QUEUE_CAPACITY_MIN; i++) {
		if (exs_recv(p.s, bytes, 1, 0, q, i, NO_REGION))
			break;
	}
	check(i <= EXS_QUEUE_CAPACITY_MIN, "%d receives are outstanding in a ring of %d", i,
	      EXS_QUEUE_CAPACITY_MIN);
}

/* -- the end of a queue */

static void deleted_with_operations(void)
{
	exs_qhandle_t q = queue_new(16);
	struct pair p;

	pair_open(&p);
	start_receives(p.s, q, 8, 0);
	must(exs_qdelete(q));
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded"), 8);
	must_be(delta("ops_posted"), 0);
	/* The connection does not suffer, and no byte goes into a dead receive. */
	must_be(send(p.c, "alive", 5, 0), 5);
	memset(bytes, 0, sizeof(bytes));
	must_be(recv(p.s, bytes + 100, 5, 0), 5);
	check(!memcmp(bytes + 100, "alive", 5) && !bytes[0], "the bytes went astray");
}

static void deleted_with_sends(void)
{
	exs_qhandle_t q = queue_new(16);
	char *big = pages(MIB);
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 8; i++)
		start_send(p.c, big, MIB, q, i, NO_REGION);
	must(exs_qdelete(q));
	close(p.s);
	wait_until(!counter("live_ops"));
	must_be(delta("ops_submitted"), delta("ops_posted") + delta("ops_discarded"));
}

static void child_leaves(void *arg)
{
	struct pair *p = arg;
	exs_qhandle_t q = queue_new(64);
	char *big = pages(MIB);
	exs_mhandle_t m = region_new(big, MIB, 0);
	int i;

	for (i = 0; i < 8; i++) {
		start_recv(p->s, big, MIB, MSG_WAITALL, q, i, m);
		start_send(p->s, big, MIB, q, 100 + i, m);
	}
}

/* A process ends and leaves everything as it is; the socket is its parent's too. */
static void process_exits(void)
{
	struct pair p;

	pair_open(&p);
	join(spawn(child_leaves, &p));
	wait_until(!counter("live_ops"));
	wait_until(!counter("live_queues") && !counter("live_regions") && !counter("live_pinned_pages"));
	must_be(delta("ops_submitted"), 16);
	must_be(delta("ops_posted") + delta("ops_discarded"), 16);
}

static void child_killed(void *arg)
{
	child_leaves(arg);
	raise(SIGKILL);
}

static void process_killed(void)
{
	struct pair p;

	pair_open(&p);
	check(WIFSIGNALED(reap(spawn(child_killed, &p))), "the child was not killed");
	wait_until(!counter("live_ops") && !counter("live_pinned_pages"));
	must_be(delta("ops_posted") + delta("ops_discarded"), 16);
}

static void child_execs(void *arg)
{
	child_leaves(arg);
	must(execlp("true", "true", NULL));
}

/* exec ends the address space, and the receives that would have written there. */
static void process_execs(void)
{
	struct pair p;

	pair_open(&p);
	join(spawn(child_execs, &p));
	wait_until(!counter("live_ops") && !counter("live_pinned_pages"));
	must_be(delta("ops_submitted"), 16);
}

static int cancel(exs_qhandle_t q, unsigned int flags, int fd, uint64_t handle)
{
	struct exs_ioc_cancel c = { .size = sizeof(c), .flags = flags, .fd = fd, .handle = handle };

	must(ioctl(q, EXS_IOC_CANCEL, &c));
	return c.count;
}

static void cancelled(void)
{
	exs_qhandle_t q = queue_new(16);
	struct pair a, b;

	pair_open(&a);
	pair_open(&b);
	start_receives(a.s, q, 3, 0);
	start_receives(b.s, q, 2, 10);
	must_be(cancel(q, EXS_CANCEL_HANDLE, -1, 99), 0);
	must_be(cancel(q, EXS_CANCEL_HANDLE, -1, 1), 1);
	event_is(q, EXS_EVT_RECV, 1, ECANCELED, 0);
	must_be(cancel(q, EXS_CANCEL_FD | EXS_CANCEL_HANDLE, b.s, 0), 0);
	must_be(cancel(q, EXS_CANCEL_FD, b.s, 0), 2);
	event_is(q, EXS_EVT_RECV, 10, ECANCELED, 0);
	event_is(q, EXS_EVT_RECV, 11, ECANCELED, 0);
	/* The other operations continue, in order. */
	must_be(send(a.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	must_be(send(a.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	no_event(q);
	must_be(delta("ops_cancelled"), 3);
}

struct shared { exs_qhandle_t q; int fd; };

static void receive_and_exit(void *arg)
{
	const struct shared *s = arg;

	start_receives(s->fd, s->q, 1, 2);
}

/* The operations of a process end with it, those of others in the same queue do not. */
static void one_of_two_exits(void)
{
	struct shared s = { .q = queue_new(4) };
	struct pair p;

	pair_open(&p);
	s.fd = p.s;
	start_receives(p.s, s.q, 1, 1);
	join(spawn(receive_and_exit, &s));
	event_is(s.q, EXS_EVT_RECV, 2, ECANCELED, 0);
	no_event(s.q);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(s.q, EXS_EVT_RECV, 1, 0, 1);
}

/* Whichever order the queues were made and used in. */
static void each_its_own(void)
{
	static const int order[] = { 0, 2, 1, 0, 1, 2 };
	exs_qhandle_t q[3];
	struct pair p;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_SIZE(q); i++)
		q[i] = queue_new(4);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		start_receives(p.s, q[order[i]], 1, i);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		must_be(send(p.c, "x", 1, 0), 1);
		event_is(q[order[i]], EXS_EVT_RECV, i, 0, 1);
	}
	for (i = 0; i < ARRAY_SIZE(q); i++) {
		no_event(q[i]);
		must_be(queue_attr(q[i], EXS_ATTR_POSTED), 2);
	}
}

static void cancelled_all(void)
{
	exs_qhandle_t q = queue_new(16);
	struct pair p;
	int i;

	pair_open(&p);
	start_receives(p.s, q, 6, 0);
	must_be(cancel(q, 0, 0, 0), 6);
	for (i = 0; i < 6; i++)
		event_is(q, EXS_EVT_RECV, i, ECANCELED, 0);
	must_be(cancel(q, 0, 0, 0), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, bytes, 1, 0), 1);
}

/* Large operations are cancelled while data flows: nothing is lost but time. */
static void cancelled_in_flow(void)
{
	exs_qhandle_t q = queue_new(16);
	char *big = pages(4 * MIB);
	exs_mhandle_t m = region_new(big, 4 * MIB, 0);
	exs_event_t ev;
	struct pair p;
	uint64_t pos = 0;
	int i;

	pair_open(&p);
	for (i = 0; i < 40; i++) {
		start_recv(p.s, big, 40000, MSG_WAITALL, q, i, m);
		send_all(p.c, 9, i * 20000, 20000);
		cancel(q, 0, 0, 0);
		ev = event_next(q);
		must_be(ev.exs_evt_ahandle, i);
		data_check(9, pos, big, ev.exs_evt_union.exs_evt_xfer.exs_evt_length);
		pos += ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
	}
	recv_all(p.s, 9, pos, 40 * 20000 - pos);
}

static const struct e2e_case cases[] = {
	{ "create", create, .on = ON_EXS },
	{ "create_raw_wrong", create_raw_wrong, .on = ON_EXS },
	{ "modify_depth", modify_depth, .on = ON_STREAM },
	{ "in_fdinfo", in_fdinfo, .on = ON_STREAM },
	{ "submit_wrong", submit_wrong, .on = ON_STREAM },
	{ "submit_partly", submit_partly, .on = ON_BOTH },
	{ "submit_many", submit_many, .on = ON_BOTH },
	{ "full", full, .on = ON_BOTH },
	{ "any_handle", any_handle, .on = ON_STREAM },
	{ "wraps", wraps, .on = ON_STREAM, .limit = 120 },
	{ "counts", counts, .on = ON_STREAM },
	{ "threshold", threshold, .on = ON_STREAM },
	{ "interrupted", interrupted, .on = ON_STREAM },
	{ "interrupted_often", interrupted_often, .on = ON_BOTH },
	{ "no_system_call", no_system_call, .on = ON_STREAM },
	{ "waiting_is_a_call", waiting_is_a_call, .on = ON_EXS },
	{ "poll", with_poll, .on = ON_STREAM },
	{ "epoll", with_epoll, .on = ON_STREAM },
	{ "eventfd", with_eventfd, .on = ON_STREAM },
	{ "eventfd_not_told", eventfd_not_told, .on = ON_EXS },
	{ "own_eventfd", own_eventfd, .on = ON_STREAM },
	{ "eventfd_late", eventfd_late, .on = ON_STREAM },
	{ "wait_wrong", wait_wrong, .on = ON_STREAM },
	{ "number_reused", number_reused, .on = ON_STREAM },
	{ "number_reused_plain", number_reused_plain, .on = ON_STREAM },
	{ "number_replaced", number_replaced, .on = ON_STREAM },
	{ "dup", with_dup, .on = ON_STREAM },
	{ "after_fork", after_fork, .on = ON_STREAM },
	{ "child_submits", child_submits_parent_dequeues, .on = ON_STREAM },
	{ "passed_to_process", passed_to_process, .on = ON_STREAM },
	{ "cloexec", close_on_exec, .on = ON_EXS },
	{ "taker_threads", taker_threads, .on = ON_STREAM },
	{ "taker_processes", taker_processes, .on = ON_STREAM },
	{ "ring_read_only", ring_read_only, .on = ON_EXS },
	{ "ring_limits", ring_limits, .on = ON_EXS },
	{ "ring_outlives_fd", ring_outlives_fd, .on = ON_STREAM },
	{ "scribbled_head", scribbled_head, .on = ON_STREAM },
	{ "head_ahead", head_ahead, .on = ON_STREAM },
	{ "deleted_with_operations", deleted_with_operations, .on = ON_BOTH },
	{ "deleted_with_sends", deleted_with_sends, .on = ON_BOTH },
	{ "process_exits", process_exits, .on = ON_BOTH },
	{ "process_killed", process_killed, .on = ON_BOTH },
	{ "process_execs", process_execs, .on = ON_BOTH },
	{ "cancelled", cancelled, .on = ON_BOTH },
	{ "one_of_two_exits", one_of_two_exits, .on = ON_BOTH },
	{ "each_its_own", each_its_own, .on = ON_BOTH },
	{ "cancelled_all", cancelled_all, .on = ON_BOTH },
	{ "cancelled_in_flow", cancelled_in_flow, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
