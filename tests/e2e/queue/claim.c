// SPDX-License-Identifier: GPL-2.0
/* Tokens: claimed by the library and by hostile programs, and claims whose accept4(2) fails. */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void talk(int a, int b)
{
	send_all(a, 1, 0, 100);
	recv_all(b, 1, 0, 100);
}

static void gone(int c)
{
	char byte;
	ssize_t n = recv(c, &byte, 1, 0);

	check(!n || (n < 0 && errno == ECONNRESET), "recv is %zd (%s)", n, errno_name(errno));
}

static int taken(exs_qhandle_t q, exs_ahandle_t handle, int err)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, EXS_EVT_ACCEPT, handle, err, 0);
	return event_newfd(&ev);
}

/* An accept that is a token by the time this returns; *c: the other end. */
static exs_qhandle_t token_queue(int fd, int flags, exs_ahandle_t handle, int *c)
{
	exs_qhandle_t q = queue_new(4);

	must(exs_accept(fd, NULL, flags, q, handle));
	*c = client_of(fd);
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == 1);
	return q;
}

static struct exs_ioc_claim claim_of(exs_qhandle_t q, int fd)
{
	struct exs_ioc_claim claim = { .size = sizeof(claim), .fd = fd };
	struct ring r;

	ring_map(q, &r);
	claim.token = r.entries[0].token;
	return claim;
}

static int claim(exs_qhandle_t q, struct exs_ioc_claim claim, unsigned int flags)
{
	claim.flags = flags;
	return ioctl(q, EXS_IOC_CLAIM, &claim);
}

struct dying { int fd, channel; };

static void claims_and_dies(void *arg)
{
	const struct dying *d = arg;
	int c;
	exs_qhandle_t q = token_queue(d->fd, 0, 1, &c);

	must(claim(q, claim_of(q, d->fd), 0));
	send_fd(d->channel, c);
}

/* A connection that a thread had claimed before it died is not accepted by others: the next accept(2) closes it. */
static void claimer_dies(void)
{
	struct dying d = { .fd = listener(4) };
	int c, other, ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	d.channel = ends[0];
	must_be(reap(spawn(claims_and_dies, &d)), 0);
	c = receive_fd(ends[1]);
	other = client_of(d.fd);
	talk(other, must(accept(d.fd, NULL, NULL)));
	gone(c);
}

/* -- accept4(2) fails */

/* In this thread, from now on: NONBLOCK: ENFILE, CLOEXEC: EACCES, as of a security module. */
static void accept_fails(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_NONBLOCK, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_CLOEXEC, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENFILE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

struct failing { exs_qhandle_t q, other; int fd, other_c; };

static void *fail_and_go_on(void *arg)
{
	const struct failing *f = arg;
	struct timeval no_time = {};
	exs_event_t ev;

	accept_fails();
	must_fail(exs_qdequeue(f->q, &ev, 1, &no_time), ENFILE);
	talk(f->other_c, taken(f->other, 2, 0));
	set_nonblock(f->fd, true);
	must_fail(accept(f->fd, NULL, NULL), EAGAIN);
	return NULL;
}

/* The connection whose accept4(2) failed is not lost when the thread takes another, and comes when it can. */
static void accept_later(void)
{
	struct failing f = { .fd = listener(4) };
	pthread_t thread;
	int c, s;

	f.q = token_queue(f.fd, SOCK_NONBLOCK, 1, &c);
	f.other = token_queue(f.fd, 0, 2, &f.other_c);
	must_be(pthread_create(&thread, NULL, fail_and_go_on, &f), 0);
	pthread_join(thread, NULL);
	s = taken(f.q, 1, 0);
	set_nonblock(s, false);
	talk(c, s);
}

/* A connection that the thread must not accept is closed, and no later accept(2) returns it. */
static void accept_refused(void)
{
	int fd = listener(4), c;
	exs_qhandle_t q = token_queue(fd, SOCK_CLOEXEC, 1, &c);

	accept_fails();
	must_be(taken(q, 1, ECONNABORTED), -1);
	set_nonblock(fd, true);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
	gone(c);
}

/* -- without the library */

/* One claim of a thread at a listener; undone, claimed again, dropped. */
static void one_at_a_time(void)
{
	int fd = listener(4), c1, c2;
	exs_qhandle_t q1 = token_queue(fd, 0, 1, &c1), q2 = token_queue(fd, 0, 2, &c2);
	struct exs_ioc_claim a = claim_of(q1, fd), b = claim_of(q2, fd);

	must_fail(claim(q1, a, EXS_CLAIM_UNDO | EXS_CLAIM_DROP), EINVAL);
	must_fail(claim(q1, a, EXS_CLAIM_CLOSE), EINVAL);
	must(claim(q1, a, 0));
	must_fail(claim(q2, b, 0), EAGAIN);
	must(claim(q1, a, 0));
	must(claim(q1, a, EXS_CLAIM_UNDO));
	must(claim(q1, a, EXS_CLAIM_UNDO));
	must(claim(q2, b, 0));
	talk(c2, must(accept(fd, NULL, NULL)));
	must_fail(claim(q2, b, EXS_CLAIM_UNDO), ENOENT);
	must(claim(q1, a, 0));
	must(claim(q1, a, EXS_CLAIM_DROP));
	must_fail(claim(q1, a, 0), ENOENT);
	gone(c1);
	set_nonblock(fd, true);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
}

static void take_and_talk(void *arg)
{
	const int *q_and_c = arg;
	exs_event_t ev = event_next(q_and_c[0]);

	event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
	talk(q_and_c[1], event_newfd(&ev));
}

/* Posted once more, as often as it takes, in the slot that it has. */
static void put_back(void)
{
	int fd = listener(4), q_and_c[2], i;
	exs_qhandle_t q = token_queue(fd, 0, 1, &q_and_c[1]);
	struct exs_ioc_claim a = claim_of(q, fd);
	struct ring r;

	q_and_c[0] = q;
	ring_map(q, &r);
	must_fail(claim(q, a, EXS_CLAIM_BACK), EBUSY);
	must_fail(claim(q, a, EXS_CLAIM_BACK | EXS_CLAIM_UNDO), EINVAL);
	for (i = 1; i <= 10; i++) {
		r.head->head = i;
		must(claim(q, a, 0));
		must(claim(q, a, EXS_CLAIM_BACK));
		must_be(r.ring->tail, i + 1);
		must_fail(claim(q, a, EXS_CLAIM_BACK), EBUSY);
	}
	join(spawn(take_and_talk, q_and_c));
	must_fail(claim(q, a, EXS_CLAIM_BACK), ENOENT);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), queue_attr(q, EXS_ATTR_POSTED));
}

/* A claimed token has no slot, so operations may take all; putting it back then would be one entry too many. */
static void put_back_when_full(void)
{
	enum { ALL = EXS_QUEUE_CAPACITY_MIN };
	int fd = listener(4), other = listener(4), c, i;
	exs_qhandle_t q = queue_new(ALL);
	struct exs_ioc_claim a;
	struct ring r;

	must(exs_accept(fd, NULL, 0, q, 1));
	c = client_of(fd);
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == 1);
	a = claim_of(q, fd);
	ring_map(q, &r);
	r.head->head = 1;
	must(claim(q, a, 0));
	for (i = 0; i < ALL; i++)
		must(exs_accept(other, NULL, 0, q, 2));
	must_fail(exs_accept(other, NULL, 0, q, 2), EAGAIN);
	must(claim(q, a, EXS_CLAIM_UNDO));
	must_fail(claim(q, a, EXS_CLAIM_BACK), EAGAIN);
	must_be(r.ring->tail, 1);
	must(claim(q, a, EXS_CLAIM_DROP));
	gone(c);
}

/* A queue for one event: its slot is free again once the connection was accepted. */
static void slot_comes_back(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = listener(4), c, i;

	for (i = 0; i < 4; i++) {
		must(exs_accept(fd, NULL, 0, q, i));
		c = client_of(fd);
		talk(c, taken(q, i, 0));
	}
}

/* More often than there may be claims at a time. */
static void thousands(void)
{
	int fd = listener(4), c, i;
	exs_qhandle_t q = token_queue(fd, 0, 1, &c);
	struct exs_ioc_claim a = claim_of(q, fd);

	for (i = 0; i < 2000; i++) {
		must(claim(q, a, 0));
		must(claim(q, a, EXS_CLAIM_UNDO));
	}
	talk(c, taken(q, 1, 0));
}

struct held_claim { exs_qhandle_t q; struct held_page page; int err; bool over; };

static void *claim_held(void *arg)
{
	struct held_claim *h = arg;

	must_fail(ioctl(h->q, EXS_IOC_CLAIM, h->page.mem), h->err);
	return NULL;
}

static void *sweep(void *arg)
{
	const struct held_claim *h = arg;
	struct exs_ioc_wait w = { .size = sizeof(w), .count = 1 };

	while (!__atomic_load_n(&h->over, __ATOMIC_SEQ_CST))
		must(ioctl(h->q, EXS_IOC_WAIT, &w));
	return NULL;
}

/* The listener is closed between the claim's look at it and the parking; another thread sweeps meanwhile. */
static void listener_closed_meanwhile(void)
{
	struct exs_ioc_claim a;
	struct held_claim h;
	pthread_t claimer, sweeper;
	int i, fd, c;

	for (i = 0; i < 30; i++) {
		fd = listener(4);
		h = (struct held_claim){ .q = token_queue(fd, 0, 1, &c), .err = ECONNABORTED };
		a = claim_of(h.q, fd);
		h.page = held_page_of(&a, sizeof(a));
		must_be(pthread_create(&claimer, NULL, claim_held, &h), 0);
		must_be(pthread_create(&sweeper, NULL, sweep, &h), 0);
		held_page_wait(&h.page);
		close(fd);
		held_page_let_go(&h.page);
		pthread_join(claimer, NULL);
		__atomic_store_n(&h.over, true, __ATOMIC_SEQ_CST);
		pthread_join(sweeper, NULL);
		must_fail(claim(h.q, a, 0), ENOENT);
		gone(c);
	}
}

/* The kernel cannot tell the listener's number, and closes nothing: it is another file's by now. */
static void listener_not_told(void)
{
	int fd = listener(4), c, number;
	struct held_claim h = { .q = token_queue(fd, 0, 1, &c), .err = EFAULT };
	struct exs_ioc_claim a = claim_of(h.q, -1);
	pthread_t claimer;

	h.page = held_page_of(&a, sizeof(a));
	number = must(dup(fd));
	close(number);
	must_be(pthread_create(&claimer, NULL, claim_held, &h), 0);
	held_page_wait(&h.page);
	must_be(dup2(c, number), number);
	held_page_refuse(&h.page);
	pthread_join(claimer, NULL);
	must(fcntl(number, F_GETFD));
	talk(c, taken(h.q, 1, 0));
}

/* Nor is a descriptor left that the program does not know. */
static void nothing_left(void)
{
	int fd = listener(4), c, number;
	exs_qhandle_t q = token_queue(fd, 0, 1, &c);
	struct exs_ioc_claim a = claim_of(q, -1), *fixed = (void *)pages(sysconf(_SC_PAGESIZE));

	*fixed = a;
	must(mprotect(fixed, sizeof(*fixed), PROT_READ));
	number = must(dup(fd));
	close(number);
	must_fail(ioctl(q, EXS_IOC_CLAIM, fixed), EFAULT);
	must_be(must(dup(fd)), number);
	talk(c, taken(q, 1, 0));
}

static const struct e2e_case cases[] = {
	{ "accept_later", accept_later, .on = ON_BOTH },
	{ "accept_refused", accept_refused, .on = ON_BOTH },
	{ "one_at_a_time", one_at_a_time, .on = ON_BOTH },
	{ "put_back", put_back, .on = ON_BOTH },
	{ "put_back_when_full", put_back_when_full, .on = ON_STREAM },
	{ "slot_comes_back", slot_comes_back, .on = ON_BOTH },
	{ "thousands", thousands, .on = ON_STREAM },
	{ "claimer_dies", claimer_dies, .on = ON_BOTH },
	{ "listener_closed_meanwhile", listener_closed_meanwhile, .on = ON_STREAM },
	{ "listener_not_told", listener_not_told, .on = ON_STREAM },
	{ "nothing_left", nothing_left, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
