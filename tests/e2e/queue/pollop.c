// SPDX-License-Identifier: GPL-2.0
/* exs_poll(): one event when any of some descriptors is ready. */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/vhost.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN(f)	{ .fd = (f), .events = EXS_POLLIN }
#define OUT(f)	{ .fd = (f), .events = EXS_POLLOUT }

static char bytes[4096];

/* The event of a poll of @fds that succeeded; *@ready of them were ready then. */
static void poll_event(exs_qhandle_t q, const exs_pollfd_t *fds, int nfds, exs_ahandle_t handle, int *ready)
{
	exs_event_t ev = event_next(q);
	const exs_evt_poll_t *p = &ev.exs_evt_union.exs_evt_poll;

	event_check(&ev, EXS_EVT_POLL, handle, 0, 0);
	check(p->exs_evt_fds == fds && p->exs_evt_nfds == nfds, "the event is of other descriptors");
	must_be(ev.exs_evt_socket, -1);
	must_be(ev.exs_evt_flags, 0);
	*ready = p->exs_evt_ready;
}

static void poll_ready(exs_qhandle_t q, const exs_pollfd_t *fds, int nfds, exs_ahandle_t handle, int want)
{
	int ready;

	poll_event(q, fds, nfds, handle, &ready);
	must_be(ready, want);
}

static void start_poll(exs_qhandle_t q, exs_pollfd_t *fds, int nfds, exs_ahandle_t handle)
{
	must(exs_poll(fds, nfds, 0, q, handle));
}

static void ready_at_once(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[3];
	struct pair p;

	pair_open(&p);
	fds[0] = (exs_pollfd_t)IN(pp.rd);
	fds[1] = (exs_pollfd_t)OUT(p.c);
	fds[2] = (exs_pollfd_t)OUT(pp.wr);
	start_poll(q, fds, 3, 1);
	poll_ready(q, fds, 3, 1, 2);
	must_be(fds[0].revents, 0);
	must_be(fds[1].revents, POLLOUT);
	must_be(fds[2].revents, POLLOUT);
	no_event(q);
}

/* Waits, then is ready by what @act does; once, and again only if asked again. */
static void becomes_ready(exs_qhandle_t q, int fd, void (*act)(int), int arg)
{
	exs_pollfd_t fds[1] = { IN(fd) };

	start_poll(q, fds, 1, 5);
	no_event(q);
	act(arg);
	poll_ready(q, fds, 1, 5, 1);
	check(fds[0].revents & POLLIN, "revents %#x", fds[0].revents);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_EVENTS), 0);
}

static void act_write(int fd)
{
	uint64_t one = 1;

	must_be(write(fd, &one, sizeof(one)), sizeof(one));
}

static void act_connect(int fd)
{
	client_of(fd);
}

static void act_close(int fd)
{
	close(fd);
}

static void act_timer(int fd)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000 };

	must(timerfd_settime(fd, 0, &soon, NULL));
}

static void all_kinds(void)
{
	exs_qhandle_t q = queue_new(4);
	struct pipe_pair pp = pipe_open(), closed = pipe_open();
	int l = listener(4), unix_fds[2], fd;
	struct pair p, ended;

	pair_open(&p);
	pair_open(&ended);
	becomes_ready(q, p.s, act_write, p.c);
	becomes_ready(q, ended.s, act_close, ended.c);
	becomes_ready(q, l, act_connect, l);
	becomes_ready(q, pp.rd, act_write, pp.wr);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, unix_fds));
	becomes_ready(q, unix_fds[0], act_write, unix_fds[1]);
	fd = must(eventfd(0, EFD_CLOEXEC));
	becomes_ready(q, fd, act_write, fd);
	fd = must(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	becomes_ready(q, fd, act_timer, fd);
	/* POLLHUP is told without being asked for; so is a file, always. */
	exs_pollfd_t fds[1] = { OUT(closed.rd) };
	start_poll(q, fds, 1, 6);
	close(closed.wr);
	poll_ready(q, fds, 1, 6, 1);
	must_be(fds[0].revents, POLLHUP);
	fds[0] = (exs_pollfd_t)IN(must(open("/proc/self/exe", O_RDONLY)));
	start_poll(q, fds, 1, 7);
	poll_ready(q, fds, 1, 7, 1);
}

/* Room to write, on a socket that has none for a while; arriving data do not end the poll. */
static void becomes_writable(void)
{
	exs_qhandle_t q = queue_new(4);
	exs_pollfd_t fds[1];
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 3);
	fds[0] = (exs_pollfd_t)OUT(p.c);
	start_poll(q, fds, 1, 1);
	must_be(send(p.s, "x", 1, 0), 1);
	wait_io(p.c, POLLIN);
	no_event(q);
	recv_all(p.s, 3, 0, n);
	poll_ready(q, fds, 1, 1, 1);
	must_be(fds[0].revents, POLLOUT);
}

static void one_of_many(void)
{
	enum { N = 100 };
	exs_qhandle_t q = queue_new(4);
	exs_pollfd_t fds[N];
	int last, i;

	for (i = 0; i < N; i++) {
		fds[i] = (exs_pollfd_t)IN(must(eventfd(0, EFD_CLOEXEC)));
		fds[i].revents = 77;
	}
	last = fds[50].fd;
	fds[50].fd = ~fds[50].fd;
	start_poll(q, fds, N, 9);
	act_write(last);
	no_event(q);
	act_write(fds[70].fd);
	poll_ready(q, fds, N, 9, 1);
	for (i = 0; i < N; i++)
		must_be(fds[i].revents, i == 70 ? POLLIN : 0);
}

static void wrong(void)
{
	exs_qhandle_t q = queue_new(1), other = queue_new(1);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[2] = { IN(pp.rd), IN(q) };
	struct exs_sqe s = {
		.opcode = EXS_OP_POLL, .fd = -1, .addr = (uintptr_t)fds, .len = 1, .region = EXS_REGION_NONE,
	};
	int ep = must(epoll_create1(EPOLL_CLOEXEC)), closed = must(dup(pp.rd));

	close(closed);
	must_fail(exs_poll(fds, 2, 0, q, 1), ELOOP);
	fds[1].fd = other;
	must_fail(exs_poll(fds, 2, 0, q, 1), ELOOP);
	fds[1].fd = ep;
	must_fail(exs_poll(fds, 2, 0, q, 1), ELOOP);
	fds[1].fd = closed;
	must_fail(exs_poll(fds, 2, 0, q, 1), EBADF);
	fds[1] = (exs_pollfd_t){ .fd = pp.rd, .events = POLLPRI };
	must_fail(exs_poll(fds, 2, 0, q, 1), EINVAL);
	must_fail(exs_poll(fds, 0, 0, q, 1), EINVAL);
	must_fail(exs_poll(fds, EXS_POLL_MAX + 1, 0, q, 1), EINVAL);
	must_fail(exs_poll(fds, 1, 1, q, 1), EINVAL);
	must_fail(exs_poll((void *)8, 1, 0, q, 1), EFAULT);
	must_fail(exs_poll(fds, 1, 0, pp.rd, 1), EINVAL);
	s.fd = pp.rd;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s.fd = -1;
	s.region = q;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	s.region = EXS_REGION_NONE;
	s.msg_flags = MSG_DONTWAIT;
	must_fail(submit_raw(q, &s, 1), EINVAL);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	start_poll(q, fds, 1, 1);
	must_fail(exs_poll(fds, 1, 0, q, 2), EAGAIN);
	act_write(pp.wr);
	poll_ready(q, fds, 1, 1, 1);
}

static void synchronous(void)
{
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[2] = { IN(pp.rd), OUT(pp.wr) };

	must_be(exs_poll(fds, 2, 0, EXS_QHANDLE_INVALID, 0), 1);
	must_be(fds[1].revents, POLLOUT);
}

static int cancel(exs_qhandle_t q, unsigned int flags, int fd, uint64_t handle)
{
	struct exs_ioc_cancel c = { .size = sizeof(c), .flags = flags, .fd = fd, .handle = handle };

	must(ioctl(q, EXS_IOC_CANCEL, &c));
	return c.count;
}

static void cancelled(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[1] = { IN(pp.rd) };
	struct pair p;
	int i;

	pair_open(&p);
	fds[0].revents = 77;
	for (i = 0; i < 4; i++)
		start_poll(q, fds, 1, i);
	/* A poll is no socket's. */
	must_be(cancel(q, EXS_CANCEL_FD, p.c, 0), 0);
	must_be(cancel(q, EXS_CANCEL_HANDLE, 0, 2), 1);
	event_is(q, EXS_EVT_POLL, 2, ECANCELED, 0);
	must_be(fds[0].revents, 77);
	act_write(pp.wr);
	for (i = 0; i < 3; i++)
		must_be(event_next(q).exs_evt_errno, 0);
	no_event(q);
	must_be(cancel(q, 0, 0, 0), 0);
}

/* The pipe is closed for good once no poll holds it. */
static void wait_pipe_closed(const struct pipe_pair *pp)
{
	wait_io(pp->wr, POLLERR);
}

static void queue_deleted(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[1] = { IN(pp.rd) };
	int i;

	for (i = 0; i < 8; i++)
		start_poll(q, fds, 1, i);
	must(exs_qdelete(q));
	close(pp.rd);
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded"), 8);
	wait_pipe_closed(&pp);
}

struct left { exs_qhandle_t q; struct pipe_pair pp; };

static void child_polls(void *arg)
{
	struct left *left = arg;
	exs_pollfd_t fds[1] = { IN(left->pp.rd) };

	start_poll(left->q, fds, 1, 1);
	raise(SIGKILL);
}

/* The address space goes, and with it the poll; the queue stays. */
static void process_killed(void)
{
	struct left left = { queue_new(8), pipe_open() };

	check(WIFSIGNALED(reap(spawn(child_polls, &left))), "the child was not killed");
	event_is(left.q, EXS_EVT_POLL, 1, ECANCELED, 0);
	close(left.pp.rd);
	wait_pipe_closed(&left.pp);
}

static void child_polls_vhost(void *arg)
{
	exs_pollfd_t fds[1] = { IN(*(int *)arg) };
	exs_qhandle_t q = queue_new(1);
	struct ring r;

	ring_map(q, &r);
	must(ioctl(fds[0].fd, VHOST_SET_OWNER));
	start_poll(q, fds, 1, 1);
	raise(SIGKILL);
}

/* A file that keeps the address space, which maps the ring, which keeps the queue: the poll must not keep the file. */
static void address_space_kept(void)
{
	int fd;

	if (system("modprobe -q vhost_net"))
		skip("this kernel has no vhost");
	fd = must(open("/dev/vhost-net", O_RDWR | O_CLOEXEC));
	check(WIFSIGNALED(reap(spawn(child_polls_vhost, &fd))), "the child was not killed");
	wait_until(delta("ops_cancelled") == 1);
	must_be(counter("live_queues"), 1);
	close(fd);
	wait_until(!counter("live_queues"));
}

/* Closing a descriptor does not end a poll of its file. */
static void closed_meanwhile(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[1] = { IN(pp.rd) };

	start_poll(q, fds, 1, 1);
	close(pp.rd);
	no_event(q);
	act_write(pp.wr);
	poll_ready(q, fds, 1, 1, 1);
	must_be(fds[0].revents, POLLNVAL);
	wait_pipe_closed(&pp);
}

static void child_dequeues(void *arg)
{
	exs_event_t ev = event_next(*(exs_qhandle_t *)arg);
	const exs_evt_poll_t *p = &ev.exs_evt_union.exs_evt_poll;

	event_check(&ev, EXS_EVT_POLL, 1, 0, 0);
	check(!p->exs_evt_fds && p->exs_evt_nfds == 1 && p->exs_evt_ready == 1, "fds %p nfds %d ready %d",
	      (void *)p->exs_evt_fds, p->exs_evt_nfds, p->exs_evt_ready);
}

static void in_another_process(void)
{
	exs_qhandle_t q = queue_new(8);
	struct pipe_pair pp = pipe_open();
	exs_pollfd_t fds[1] = { IN(pp.rd) };

	start_poll(q, fds, 1, 1);
	act_write(pp.wr);
	join(spawn(child_dequeues, &q));
	must_be(fds[0].revents, 0);
	no_event(q);
}

struct polls_signals { exs_qhandle_t q; long result; };

/* In the address space of its parent, so nothing but plain system calls. */
static int polls_own_signals(void *arg)
{
	struct polls_signals *s = arg;
	uint64_t set = 1;
	struct pollfd fd = IN(syscall(SYS_signalfd4, -1, &set, sizeof(set), 0));
	struct exs_sqe sqe = {
		.opcode = EXS_OP_POLL, .fd = -1, .handle = 4, .addr = (uintptr_t)&fd, .len = 1,
		.region = EXS_REGION_NONE,
	};

	s->result = submit_raw(s->q, &sqe, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/*
 * A wait queue that ends before its file: that of signals is the process's, and this one ends while its
 * address space, and so its operation, goes on.
 */
static void wait_queue_ends(void)
{
	struct polls_signals s = { queue_new(4), 0 };
	char *stack = pages(64 * 1024);
	int status;
	pid_t pid;

	pid = must(clone(polls_own_signals, stack + 64 * 1024, CLONE_VM | CLONE_FILES | SIGCHLD, &s));
	must_be(waitpid(pid, &status, 0), pid);
	must_be(s.result, 1);
	event_is(s.q, EXS_EVT_POLL, 4, ECANCELED, 0);
}

struct writer { int fd, turns; pthread_barrier_t *turn; };

static void *write_in_turn(void *arg)
{
	const struct writer *w = arg;
	int i;

	for (i = 0; i < w->turns; i++) {
		pthread_barrier_wait(w->turn);
		act_write(w->fd);
	}
	return NULL;
}

/* Ready and cancelled at the same time: one event, whichever it is. */
static void ready_and_cancelled(void)
{
	enum { TURNS = 200 };
	int fd = must(eventfd(0, EFD_CLOEXEC)), i;
	exs_pollfd_t fds[2] = { IN(fd), IN(fd) };
	exs_qhandle_t q = queue_new(4);
	pthread_barrier_t turn;
	struct writer w = { fd, TURNS, &turn };
	pthread_t thread;
	exs_event_t ev;
	uint64_t value;

	must_be(pthread_barrier_init(&turn, NULL, 2), 0);
	must_be(pthread_create(&thread, NULL, write_in_turn, &w), 0);
	for (i = 0; i < TURNS; i++) {
		start_poll(q, fds, 2, i);
		pthread_barrier_wait(&turn);
		cancel(q, 0, 0, 0);
		ev = event_next(q);
		check(ev.exs_evt_ahandle == (exs_ahandle_t)i &&
		      (!ev.exs_evt_errno || ev.exs_evt_errno == ECANCELED), "handle %lld: %s",
		      (long long)ev.exs_evt_ahandle, errno_name(ev.exs_evt_errno));
		must_be(read(fd, &value, sizeof(value)), sizeof(value));
	}
	pthread_join(thread, NULL);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_POSTED), TURNS);
}

/* Polls and transfers of one socket in one queue. */
static void among_transfers(void)
{
	exs_qhandle_t q = queue_new(8);
	exs_pollfd_t fds[1];
	struct pair p;
	int i;

	pair_open(&p);
	fds[0] = (exs_pollfd_t)IN(p.s);
	for (i = 0; i < 20; i++) {
		start_poll(q, fds, 1, i);
		start_send(p.c, "xyz", 3, q, 100, NO_REGION);
		event_next(q);
		event_next(q);
		start_recv(p.s, bytes, 3, MSG_WAITALL, q, 200, NO_REGION);
		event_is(q, EXS_EVT_RECV, 200, 0, 3);
		no_event(q);
	}
}

static const struct e2e_case cases[] = {
	{ "ready_at_once", ready_at_once, .on = ON_BOTH },
	{ "all_kinds", all_kinds, .on = ON_STREAM },
	{ "becomes_writable", becomes_writable, .on = ON_STREAM },
	{ "one_of_many", one_of_many, .on = ON_EXS },
	{ "wrong", wrong, .on = ON_EXS },
	{ "synchronous", synchronous, .on = ON_EXS },
	{ "cancelled", cancelled, .on = ON_STREAM },
	{ "queue_deleted", queue_deleted, .on = ON_EXS },
	{ "process_killed", process_killed, .on = ON_EXS },
	{ "address_space_kept", address_space_kept, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "closed_meanwhile", closed_meanwhile, .on = ON_EXS },
	{ "in_another_process", in_another_process, .on = ON_EXS },
	{ "wait_queue_ends", wait_queue_ends, .on = ON_EXS },
	{ "ready_and_cancelled", ready_and_cancelled, .on = ON_EXS },
	{ "among_transfers", among_transfers, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
