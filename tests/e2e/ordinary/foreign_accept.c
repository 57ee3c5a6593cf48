// SPDX-License-Identifier: GPL-2.0
/* exs_accept() on ordinary listeners. */
#include "lib/kinds.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static char byte;

static void start_accept(int fd, exs_qhandle_t q, exs_ahandle_t handle)
{
	must(exs_accept(fd, NULL, SOCK_CLOEXEC, q, handle));
}

static int client(const struct kind *k, int fd)
{
	int c = kind_socket(k);
	socklen_t len;
	union address to = listening_name(fd, &len);

	must(connect(c, &to.sa, len));
	return c;
}

static int taken(exs_qhandle_t q, exs_ahandle_t handle, int err)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, EXS_EVT_ACCEPT, handle, err, 0);
	return event_newfd(&ev);
}

/* They are the ends of one connection. */
static void are_joined(int a, int b)
{
	static char sent;

	sent++;
	must_be(send(a, &sent, 1, 0), 1);
	must_be(recv(b, &byte, 1, 0), 1);
	must_be(byte, sent);
}

/* The offer is an event that was not dequeued. */
static void wait_offer(exs_qhandle_t q)
{
	wait_until(queue_attr(q, EXS_ATTR_EVENTS) > 0);
}

static void gone(int c)
{
	ssize_t n = recv(c, &byte, 1, 0);

	check(!n || (n < 0 && errno == ECONNRESET), "recv is %zd (%s)", n, errno_name(errno));
}

/* Each connection is for one of them, and no accept tries in vain. */
static void one_each(const struct kind *k)
{
	int fd = kind_listening(k), c, i;
	exs_qhandle_t q = queue_new(2);

	start_accept(fd, q, 1);
	start_accept(fd, q, 2);
	for (i = 1; i <= 2; i++) {
		c = client(k, fd);
		are_joined(c, taken(q, i, 0));
		no_event(q);
	}
	must_be(delta("accepts_again"), 0);
}
FOR_KIND(one_each, tcp)
FOR_KIND(one_each, un_stream)

static void accepted(const struct kind *k)
{
	int fd = kind_listening(k), c, s;
	exs_qhandle_t q = queue_new(1);
	union address peer, want;
	exs_acceptaddr_t addr = { &peer.sa, sizeof(peer) };
	exs_event_t ev;

	/* It waits, */
	must(exs_accept(fd, &addr, SOCK_CLOEXEC | SOCK_NONBLOCK, q, 1));
	no_event(q);
	c = client(k, fd);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
	must_be(ev.exs_evt_socket, fd);
	check(ev.exs_evt_union.exs_evt_accept.exs_evt_addr == &addr, "not the structure of the call");
	s = event_newfd(&ev);
	must_be(fcntl(s, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	must_be(fcntl(s, F_GETFD), FD_CLOEXEC);
	if (k->domain != AF_UNIX) {
		want = name_of(c);
		check(same_address(&peer, &want), "not the client's address");
		must_be(addr.exs_addrlen, address_len(&want));
	}
	are_joined(c, s);
	/* or the connection does. */
	c = client(k, fd);
	start_accept(fd, q, 2);
	s = taken(q, 2, 0);
	must_be(fcntl(s, F_GETFL) & O_NONBLOCK, 0);
	are_joined(s, c);
	c = client(k, fd);
	must(s = exs_accept(fd, NULL, 0, EXS_QHANDLE_INVALID, 0));
	are_joined(c, s);
	close(fd);
	wait_until(counter("live_lanes") == 0);
}
FOR_KIND(accepted, tcp)
FOR_KIND(accepted, tcp6)
FOR_KIND(accepted, un_stream)
FOR_KIND(accepted, un_seq)

/* One may wait for all of them; each has its own. */
static void many(const struct kind *k)
{
	enum { N = 40 };
	exs_qhandle_t q = queue_new(N);
	int fd = kind_listening(k), c[N], s[N], i;
	exs_event_t ev[N];

	for (i = 0; i < N / 2; i++)
		start_accept(fd, q, i);
	for (i = 0; i < N; i++)
		c[i] = client(k, fd);
	for (i = N / 2; i < N; i++)
		start_accept(fd, q, i);
	must_be(exs_qdequeue(q, ev, -N, NULL), N);
	for (i = 0; i < N; i++) {
		event_check(&ev[i], EXS_EVT_ACCEPT, i, 0, 0);
		s[i] = event_newfd(&ev[i]);
	}
	for (i = 0; i < N; i++)
		are_joined(c[i], s[i]);
	no_event(q);
}
FOR_KIND(many, tcp)
FOR_KIND(many, un_stream)

/* Not one connection for both. */
static void two_queues(const struct kind *k)
{
	exs_qhandle_t a = queue_new(2), b = queue_new(2);
	int fd = kind_listening(k), c1, c2;

	start_accept(fd, a, 1);
	start_accept(fd, b, 2);
	c1 = client(k, fd);
	wait_offer(a);
	start_accept(fd, b, 3);
	no_event(b);
	c2 = client(k, fd);
	are_joined(c1, taken(b, 2, 0));
	are_joined(c2, taken(a, 1, 0));
	no_event(b);
	/* An accept that does not want it any more makes room for the next. */
	start_accept(fd, a, 4);
	must_be(exs_cancel(b, fd, 3, EXS_CAF_FILDES | EXS_CAF_AHANDLE), 0);
	taken(b, 3, ECANCELED);
	c1 = client(k, fd);
	wait_offer(a);
	start_accept(fd, b, 5);
	no_event(b);
	must(exs_qdelete(a));
	are_joined(c1, taken(b, 5, 0));
}
FOR_KIND(two_queues, tcp)
FOR_KIND(two_queues, un_seq)

/* Another accept took the connection: no event, and the next connection is for this one. */
static void stolen(const struct kind *k)
{
	exs_qhandle_t q = queue_new(3);
	int fd = kind_listening(k), c, i;

	for (i = 0; i < 3; i++)
		start_accept(fd, q, i);
	for (i = 0; i < 3; i++) {
		c = client(k, fd);
		wait_offer(q);
		are_joined(c, must(accept(fd, NULL, NULL)));
		no_event(q);
	}
	for (i = 0; i < 3; i++) {
		c = client(k, fd);
		are_joined(c, taken(q, i, 0));
	}
	/* It can be cancelled as before. */
	start_accept(fd, q, 4);
	c = client(k, fd);
	wait_offer(q);
	are_joined(c, must(accept(fd, NULL, NULL)));
	no_event(q);
	must(exs_cancel(q, fd, 4, EXS_CAF_FILDES));
	taken(q, 4, ECANCELED);
}
FOR_KIND(stolen, tcp)
FOR_KIND(stolen, un_stream)

static void wrong(void)
{
	exs_qhandle_t q = queue_new(2);
	int fd = kind_listening(&kind_tcp), un = kind_listening(&kind_un_stream);
	struct pair p;

	kind_pair(&kind_tcp, &p);
	must_fail(exs_accept(p.c, NULL, 0, q, 1), EINVAL);
	must_fail(exs_accept(kind_socket(&kind_tcp), NULL, 0, q, 1), EINVAL);
	must_fail(exs_accept(kind_bound(&kind_udp), NULL, 0, q, 1), EOPNOTSUPP);
	must_fail(exs_accept(fd, NULL, O_APPEND, q, 1), EINVAL);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	start_accept(fd, q, 2);
	start_accept(un, q, 3);
	must_fail(exs_accept(fd, NULL, 0, q, 4), EAGAIN);
	must(shutdown(fd, SHUT_RD));
	taken(q, 2, ECANCELED);
	must(shutdown(un, SHUT_RD));
	taken(q, 3, ECANCELED);
	no_event(q);
}

/* exs_close() resets the connections of the listener; close(2) does not do so. */
static void closed(const struct kind *k)
{
	exs_qhandle_t q = queue_new(4), other = queue_new(1);
	int fd = kind_listening(k), c;

	start_accept(fd, q, 1);
	start_accept(fd, q, 2);
	c = client(k, fd);
	wait_offer(q);
	must(exs_close(fd, 0, q, 3));
	taken(q, 1, ECONNABORTED);
	taken(q, 2, ECANCELED);
	event_is(q, EXS_EVT_CLOSE, 3, 0, 0);
	gone(c);
	wait_until(counter("live_lanes") == 0);

	fd = kind_listening(k);
	start_accept(fd, q, 4);
	start_accept(fd, other, 5);
	c = client(k, fd);
	wait_offer(q);
	close(fd);
	are_joined(c, taken(q, 4, 0));
	no_event(other);
}
FOR_KIND(closed, tcp)
FOR_KIND(closed, un_stream)

/* -- other processes */

struct shared {
	exs_qhandle_t q;
	int fd, c, said;
};

static void dequeues(void *arg)
{
	struct shared *s = arg;

	close(s->fd);		/* the kernel finds the listener */
	are_joined(s->c, taken(s->q, 1, 0));
}

static void another_process(void)
{
	struct shared s = { .q = queue_new(1), .fd = kind_listening(&kind_tcp) };

	start_accept(s.fd, s.q, 1);
	s.c = client(&kind_tcp, s.fd);
	wait_offer(s.q);
	join(spawn(dequeues, &s));
}

static void dies(void *arg)
{
	struct shared *s = arg;
	exs_qhandle_t q = queue_new(1);

	start_accept(s->fd, q, 1);
	start_accept(s->fd, s->q, 2);
	s->c = client(&kind_tcp, s->fd);
	wait_offer(q);
	tell(s->said, 1);
	pause();
}

/* With an event that it did not dequeue: the connection is the next one's. */
static void process_dies(void)
{
	struct pipe_pair pipe = pipe_open();
	struct shared s = {
		.q = queue_new(2), .fd = kind_listening(&kind_tcp), .said = pipe.wr,
	};
	pid_t pid = spawn(dies, &s);

	hear(pipe.rd);
	start_accept(s.fd, s.q, 3);
	no_event(s.q);
	kill(pid, SIGKILL);
	reap(pid);
	taken(s.q, 2, ECANCELED);
	check(taken(s.q, 3, 0) >= 0, "no descriptor");
}

static void asks(void *arg)
{
	const struct shared *s = arg;

	start_accept(s->fd, s->q, 1);
	wait_offer(s->q);
}

/* In a queue that lives on: the connection that was offered to it is the next one's, too. */
static void asker_ends(void)
{
	struct shared s = { .q = queue_new(1), .fd = kind_listening(&kind_tcp) };

	s.c = client(&kind_tcp, s.fd);
	join(spawn(asks, &s));
	taken(s.q, 1, ECONNABORTED);
	start_accept(s.fd, s.q, 2);
	are_joined(s.c, taken(s.q, 2, 0));
}

static void sends_queue(void *arg)
{
	const struct kind *k = &kind_un_stream;
	int fd = kind_listening(k), c;
	exs_qhandle_t q = queue_new(1);

	(void)arg;
	start_accept(fd, q, 1);
	c = client(k, fd);
	wait_offer(q);
	send_fd(c, q);
}

/* The queue waits at the listener that its offer holds: when the process has ended, neither is held. */
static void queue_sent_to_listener(void)
{
	join(spawn(sends_queue, NULL));
	wait_until(!counter("live_lanes"));
	wait_until(!counter("live_queues"));
}

/* -- accept4(2) fails */

static void no_descriptor(void)
{
	struct rlimit files, few;
	exs_qhandle_t q = queue_new(1);
	int fd = kind_listening(&kind_tcp), c;
	exs_event_t ev;

	start_accept(fd, q, 1);
	c = client(&kind_tcp, fd);
	wait_offer(q);
	must(getrlimit(RLIMIT_NOFILE, &files));
	few = files;
	few.rlim_cur = c + 1;
	must(setrlimit(RLIMIT_NOFILE, &few));
	must_fail(exs_qdequeue(q, &ev, 1, NULL), EMFILE);
	must(setrlimit(RLIMIT_NOFILE, &files));
	are_joined(c, taken(q, 1, 0));
}

/* accept4(2), but not accept(2), fails, as by a security module. */
static void refuse_accept(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

/* The connection stays for threads that may accept it. */
static void refused(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = kind_listening(&kind_tcp), c;

	start_accept(fd, q, 1);
	c = client(&kind_tcp, fd);
	refuse_accept();
	must_be(taken(q, 1, EACCES), -1);
	are_joined(c, must(accept(fd, NULL, NULL)));
	no_event(q);
}

/* -- without the library */

static int claim(exs_qhandle_t q, unsigned int entry, int fd, unsigned int flags)
{
	struct exs_ioc_claim c = { .size = sizeof(c), .fd = fd, .flags = flags };
	struct ring r;
	int ret;

	ring_map(q, &r);
	c.token = r.entries[entry].token;
	ret = ioctl(q, EXS_IOC_CLAIM, &c);
	return ret ?: (int)c.flags;
}

static void claims(void)
{
	exs_qhandle_t q = queue_new(2);
	int fd = kind_listening(&kind_tcp), c;
	struct ring r;

	start_accept(fd, q, 1);
	c = client(&kind_tcp, fd);
	wait_offer(q);
	ring_map(q, &r);
	must_fail(claim(q, 0, fd, EXS_CLAIM_PLAIN), EINVAL);
	must_fail(claim(q, 0, fd, EXS_CLAIM_AGAIN | EXS_CLAIM_DROP), EINVAL);
	/* Its slot is the entry's as long as that is there. */
	must_fail(claim(q, 0, fd, EXS_CLAIM_AGAIN), EBUSY);
	must_be(delta("accepts_again"), 0);
	must_be(claim(q, 0, fd, 0), EXS_CLAIM_PLAIN);
	must_be(claim(q, 0, fd, EXS_CLAIM_UNDO), EXS_CLAIM_UNDO);
	r.head->head = 1;
	/* The connection is there: it is offered at once. */
	must_be(claim(q, 0, fd, EXS_CLAIM_AGAIN), EXS_CLAIM_AGAIN);
	must_be(delta("accepts_again"), 1);
	wait_offer(q);
	must_be(claim(q, 1, fd, EXS_CLAIM_DROP), EXS_CLAIM_DROP);
	must_fail(claim(q, 1, fd, EXS_CLAIM_DROP), ENOENT);
	must_fail(claim(q, 1, fd, EXS_CLAIM_AGAIN), ENOENT);
	must_fail(claim(q, 1, fd, 0), ENOENT);
	r.head->head = 2;
	no_event(q);
	start_accept(fd, q, 2);
	are_joined(c, taken(q, 2, 0));
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), queue_attr(q, EXS_ATTR_POSTED));
	/* A connection of AF_EXS waits for no other accept. */
	fd = listener(4);
	start_accept(fd, q, 3);
	client_of(fd);
	wait_offer(q);
	must_fail(claim(q, 3, fd, EXS_CLAIM_AGAIN), EINVAL);
	must_be(delta("accepts_again"), 1);
}

/* An offer counts like the operation that it was, and will be: 64 are charged at a time, and two sockets. */
static void offer_charged(void)
{
	enum { OPS = 64, SOCKETS = 2 };
	exs_qhandle_t q = queue_new(1 + OPS);
	int fd = kind_listening(&kind_tcp), c, c2, i;
	exs_mhandle_t m = region_new(&byte, 1, EXS_ACCESS_WRITE);
	struct ring r;

	write_sysctl("max_user_ops", OPS + SOCKETS);
	start_accept(fd, q, 1);
	c = client(&kind_tcp, fd);
	wait_offer(q);
	ring_map(q, &r);
	r.head->head = 1;
	are_joined(c, must(accept(fd, NULL, NULL)));
	for (i = 1; i < OPS; i++)
		must(exs_recv(c, &byte, 1, 0, q, 2, m));
	must_fail(exs_recv(c, &byte, 1, 0, q, 2, m), ENOBUFS);
	must_be(delta("limit_ops"), 1);
	must_be(claim(q, 0, fd, EXS_CLAIM_AGAIN), EXS_CLAIM_AGAIN);
	must_be(delta("accepts_again"), 1);
	must_fail(exs_recv(c, &byte, 1, 0, q, 2, m), ENOBUFS);
	c2 = client(&kind_tcp, fd);
	are_joined(c2, taken(q, 1, 0));
	must(exs_recv(c, &byte, 1, 0, q, 2, m));
	must_be(exs_cancel(q, c, 0, EXS_CAF_FILDES), 0);
	for (i = 0; i < OPS; i++)
		event_is(q, EXS_EVT_RECV, 2, ECANCELED, 0);
}

/* -- accepts that begin again while other threads cancel */


enum { AGAIN = 5000, CANCELLERS = 2, CANCELLED = 24 };

struct again {
	exs_qhandle_t q;
	int fd;
	int missing;		/* accepts that were cancelled */
	int over;		/* atomic */
};

static void cancel_all(exs_qhandle_t q)
{
	if (exs_cancel(q, 0, 0, 0) < 0)
		must_be(errno, ENOENT);
}

/* Everything, so accepts are the last operations that each has to cancel. */
static void *cancels(void *arg)
{
	struct again *a = arg;
	struct pair p;
	int i;

	kind_pair(&kind_un_stream, &p);
	while (!__atomic_load_n(&a->over, __ATOMIC_RELAXED)) {
		for (i = 0; i < CANCELLED; i++)
			if (exs_recv(p.c, &byte, 1, 0, a->q, 0, EXS_MHANDLE_UNREGISTERED))
				break;
		cancel_all(a->q);
	}
	return NULL;
}

/* Consume an event; an accept begins again. Return: whether it was one. */
static bool begin_again(struct again *a, struct ring *r)
{
	struct exs_cqe cqe = *(const struct exs_cqe *)&r->entries[r->head->head & r->ring->mask];
	struct exs_ioc_claim c = {
		.size = sizeof(c), .token = cqe.token, .flags = EXS_CLAIM_AGAIN,
	};

	r->head->head++;
	if (cqe.type != EXS_OP_ACCEPT)
		return false;
	if (cqe.error)
		a->missing++;
	else
		must(ioctl(a->q, EXS_IOC_CLAIM, &c));
	return true;
}

/*
 * Two accepts and one connection: the accept that begins again waits for the other to do so, and several threads may be
 * about to cancel it.
 */
static void again_cancelled(void)
{
	struct again a = {
		.q = queue_new(2 + CANCELLERS * CANCELLED), .fd = kind_listening(&kind_tcp),
		.missing = 2,
	};
	pthread_t thread[CANCELLERS];
	struct ring r;
	int i, n = 0;

	ring_map(a.q, &r);
	client(&kind_tcp, a.fd);
	for (i = 0; i < CANCELLERS; i++)
		must_be(pthread_create(&thread[i], NULL, cancels, &a), 0);
	while (n < AGAIN) {
		if (a.missing && !exs_accept(a.fd, NULL, 0, a.q, 1))
			a.missing--;
		wait_until(r.ring->tail != r.head->head);
		n += begin_again(&a, &r);
	}
	__atomic_store_n(&a.over, 1, __ATOMIC_RELAXED);
	for (i = 0; i < CANCELLERS; i++)
		must_be(pthread_join(thread[i], NULL), 0);
	cancel_all(a.q);
	wait_until(queue_attr(a.q, EXS_ATTR_SUBMITTED) == queue_attr(a.q, EXS_ATTR_POSTED));
}

/* -- everything at once */

enum { THREADS = 3 };

struct race {
	const struct kind *k;
	exs_qhandle_t q;
	int fd, connections;
	int done;		/* atomic */
};

static void *accepts(void *arg)
{
	struct timeval wait = { .tv_usec = 1000 };
	struct race *r = arg;
	exs_event_t ev;

	while (__atomic_load_n(&r->done, __ATOMIC_RELAXED) < r->connections) {
		if (!exs_accept(r->fd, NULL, 0, r->q, 1) && r->done % 7 == 0)
			exs_cancel(r->q, r->fd, 1, EXS_CAF_FILDES);
		if (!must(exs_qdequeue(r->q, &ev, 1, &wait)) || ev.exs_evt_errno)
			continue;
		must_be(send(event_newfd(&ev), "e", 1, 0), 1);
		close(event_newfd(&ev));
		__atomic_add_fetch(&r->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *steals(void *arg)
{
	struct race *r = arg;
	int s;

	while (__atomic_load_n(&r->done, __ATOMIC_RELAXED) < r->connections) {
		s = accept(r->fd, NULL, NULL);
		if (s < 0) {
			must_be(errno, EAGAIN);
			breathe();
			continue;
		}
		must_be(send(s, "s", 1, 0), 1);
		close(s);
		__atomic_add_fetch(&r->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Each connection is accepted exactly once. */
static void races(const struct kind *k)
{
	struct race r = { .k = k, .q = queue_new(8), .fd = kind_listening(k), .connections = amount(300) };
	pthread_t thread[THREADS + 1];
	int i, c;

	set_nonblock(r.fd, true);
	for (i = 0; i < THREADS; i++)
		must_be(pthread_create(&thread[i], NULL, accepts, &r), 0);
	must_be(pthread_create(&thread[i], NULL, steals, &r), 0);
	for (i = 0; i < r.connections; i++) {
		c = client(k, r.fd);
		must_be(recv(c, &byte, 1, 0), 1);
		must_be(recv(c, &byte, 1, 0), 0);
		close(c);
	}
	for (i = 0; i <= THREADS; i++)
		must_be(pthread_join(thread[i], NULL), 0);
	must_be(r.done, r.connections);
}
FOR_KIND(races, tcp)
FOR_KIND(races, un_stream)

static const struct e2e_case cases[] = {
	ROW(accepted, tcp),
	ROW(accepted, tcp6),
	ROW(accepted, un_stream),
	ROW(accepted, un_seq),
	ROW(one_each, tcp),
	ROW(one_each, un_stream),
	ROW(many, tcp),
	ROW(many, un_stream),
	ROW(two_queues, tcp),
	ROW(two_queues, un_seq),
	ROW(stolen, tcp),
	ROW(stolen, un_stream),
	ROW1(wrong),
	ROW(closed, tcp),
	ROW(closed, un_stream),
	ROW1(another_process),
	ROW1(process_dies),
	ROW1(asker_ends),
	ROW1(queue_sent_to_listener),
	ROW1(no_descriptor),
	ROW1(refused),
	ROW1(claims),
	ROW1(offer_charged),
	ROW1(again_cancelled),
	ROW(races, tcp),
	ROW(races, un_stream),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
