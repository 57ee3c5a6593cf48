// SPDX-License-Identifier: GPL-2.0
/*
 * A socket in unusual places: passed to another process, below an empty root, in other namespaces, behind filters of
 * system calls; closed by one thread while another is in a call; among ten thousand in one epoll set. TCP is the
 * reference; "fallen" is a socket of IPPROTO_EXS that TCP has taken over.
 */
#include "lib/e2e.h"
#include "hostile/raw/raw.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/exs.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/exs.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- Below an empty root, and as another user */

/* User nobody, without capabilities, below an empty directory. */
static void enter_nothing(void)
{
	const char *dir = "/run/exs/nothing";
	struct passwd *nobody = getpwnam("nobody");

	check(nobody, "no user nobody");
	if (mkdir(dir, 0555) && errno != EEXIST)
		fail("mkdir: %s", errno_name(errno));
	must(chroot(dir));
	must(chdir("/"));
	must(setgroups(0, NULL));
	must(setgid(nobody->pw_gid));
	must(setuid(nobody->pw_uid));
}

static void echo(int fd)
{
	recv_all(fd, 1, 0, 20000);
	send_all(fd, 2, 0, 20000);
}

/* All calls on a socket. */
static void use_everything(int fd)
{
	union address own = name_of(fd), peer = peer_of(fd);

	check(port_of(&own) && port_of(&peer), "it has no names");
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	must_be(so_error(fd), 0);
	wait_io(fd, POLLIN | POLLOUT);
	echo(fd);
	must(shutdown(fd, SHUT_WR));
}

static void stranger(void *arg)
{
	int unix_fd = *(int *)arg, fd;

	enter_nothing();
	fd = receive_fd(unix_fd);
	use_everything(fd);
	/* And a process that accepts there. */
	fd = must(accept(receive_fd(unix_fd), NULL, NULL));
	echo(fd);
}

static void talk_to_echo(int fd)
{
	send_all(fd, 1, 0, 20000);
	recv_all(fd, 2, 0, 20000);
}

static void passed_to_stranger(void)
{
	struct pair p;
	int fds[2], l;
	pid_t pid;
	char c;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = spawn(stranger, &fds[0]);
	pair_open(&p);
	send_fd(fds[1], p.s);
	close(p.s);
	talk_to_echo(p.c);
	must_be(recv(p.c, &c, 1, 0), 0);
	l = listener(4);
	p.s = client_of(l);
	send_fd(fds[1], l);
	close(l);
	talk_to_echo(p.s);
	join(pid);
}

static void connect_and_talk(int fd, int l)
{
	union address to = name_of(l);

	must(connect(fd, &to.sa, address_len(&to)));
	talk_to_echo(fd);
}

static void child_accepts(void *arg)
{
	echo(must(accept(*(int *)arg, NULL, NULL)));
}

static void client_below_nothing(void *arg)
{
	enter_nothing();
	connect_and_talk(new_socket(), *(int *)arg);
}

/* Sockets are made there, connect and listen. */
static void empty_root(void)
{
	int l = listener(4), c;
	pid_t pid = spawn(client_below_nothing, &l);

	child_accepts(&l);
	join(pid);
	close(l);
	c = new_socket();
	enter_nothing();
	l = listener(4);
	pid = spawn(child_accepts, &l);
	connect_and_talk(c, l);
	join(pid);
}

/* There is no /dev/exs either: the library makes queues and regions by the socket. */
static void empty_root_queue(void)
{
	exs_qhandle_t q;
	struct pair p;
	exs_event_t ev;

	pair_open(&p);
	enter_nothing();
	q = must(exs_qcreate(2));
	must(exs_send(p.c, "hello", 5, 0, q, 1, EXS_MHANDLE_UNREGISTERED));
	must_be(exs_qdequeue(q, &ev, 1, NULL), 1);
	must_be(ev.exs_evt_errno, 0);
	pair_close(&p);
}

/* -- Other namespaces */

static void elsewhere(void *arg)
{
	struct pair *p = arg;
	int l = p->c;

	must(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
		     CLONE_NEWCGROUP));
	/* Objects that were made outside are still there. */
	connect_and_talk(p->s, l);
	use_everything(must(accept(l, NULL, NULL)));
}

static void other_namespaces(void)
{
	struct pair p = { .c = listener(4), .s = new_socket() };
	pid_t pid = spawn(elsewhere, &p);
	int c;
	char end;

	child_accepts(&p.c);
	c = client_of(p.c);
	talk_to_echo(c);
	must_be(recv(c, &end, 1, 0), 0);
	join(pid);
}

/*
 * A namespace has the protocol, and no device: a socket that may fall back does so, and uses that namespace's loopback.
 */
static void lone_namespace(void)
{
	union address at = address_from(AF_INET, "127.0.0.1", 0), to;
	int l, c;
	pid_t pid;

	must(unshare(CLONE_NEWNET));
	shell("ip link set lo up");
	e2e.fallback = 1;
	l = new_socket();
	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 4));
	to = name_of(l);
	pid = spawn(child_accepts, &l);
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	talk_to_echo(c);
	join(pid);
	must_be(counter_here("fallback_no_device"), 2);
}

/* -- Filters of system calls */

static void strict(void *arg)
{
	char c;
	int fd = *(int *)arg;

	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	while (read(fd, &c, 1) == 1)
		if (write(fd, &c, 1) != 1)
			break;
	syscall(SYS_exit, 0);
}

/* Nothing but read, write and exit. */
static void seccomp_strict(void)
{
	struct pair p;
	pid_t pid;
	char c;

	pair_open(&p);
	pid = spawn(strict, &p.s);
	close(p.s);
	must_be(write(p.c, "x", 1), 1);
	must_be(read(p.c, &c, 1), 1);
	must_be(c, 'x');
	must(shutdown(p.c, SHUT_WR));
	must_be(read(p.c, &c, 1), 0);
	join(pid);
}

/* A filter forbids for our sockets exactly what it forbids for TCP's. */
static void seccomp_filter(void)
{
	int l = listener(4), c = new_socket();
	union address to = name_of(l);
	pid_t pid;

	forbid_call(SYS_socket, EACCES);
	forbid_call(SYS_ioctl, EACCES);
	forbid_call(SYS_bpf, EACCES);
	must_fail(socket(e2e.family, SOCK_STREAM, e2e.protocol), EACCES);
	pid = spawn(child_accepts, &l);
	must(connect(c, &to.sa, address_len(&to)));
	talk_to_echo(c);
	join(pid);
}

/* -- Closed by another thread */

struct blocked { int fd; union address to; long result; int err; pid_t tid; };

static void blocked_in(struct blocked *b, long result)
{
	b->err = errno;
	b->result = result;
}

static void *receives(void *arg)
{
	struct blocked *b = arg;
	char buf[10];

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_RELEASE);
	blocked_in(b, recv(b->fd, buf, sizeof(buf), 0));
	return NULL;
}

static void *sends(void *arg)
{
	struct blocked *b = arg;
	static char much[8 * MIB];

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_RELEASE);
	data_fill(1, 0, much, sizeof(much));
	blocked_in(b, send(b->fd, much, sizeof(much), 0));
	return NULL;
}

static void *accepts(void *arg)
{
	struct blocked *b = arg;

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_RELEASE);
	blocked_in(b, accept(b->fd, NULL, NULL));
	return NULL;
}

static void *connects(void *arg)
{
	struct blocked *b = arg;

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_RELEASE);
	blocked_in(b, connect(b->fd, &b->to.sa, address_len(&b->to)));
	return NULL;
}

static void *polls(void *arg)
{
	struct blocked *b = arg;
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_RELEASE);
	blocked_in(b, poll(&p, 1, -1));
	return NULL;
}

static pthread_t block(struct blocked *b, void *(*fn)(void *))
{
	pthread_t t;

	must_be(-pthread_create(&t, NULL, fn, b), 0);
	wait_until(__atomic_load_n(&b->tid, __ATOMIC_ACQUIRE));
	wait_blocked(b->tid);
	return t;
}

/* The call goes on, as it holds the file; the connection ends when it has returned. */
static void closed_in_recv(void)
{
	struct blocked b = {};
	struct pair p;
	pthread_t t;
	char c;

	pair_open(&p);
	b.fd = p.c;
	t = block(&b, receives);
	close(p.c);
	must_be(send(p.s, "abc", 3, 0), 3);
	pthread_join(t, NULL);
	must_be(b.result, 3);
	must_be(recv(p.s, &c, 1, 0), 0);
}

static void closed_in_send(void)
{
	struct blocked b = {};
	struct pair p;
	pthread_t t;
	char c;

	pair_open(&p);
	b.fd = p.c;
	t = block(&b, sends);
	close(p.c);
	recv_all(p.s, 1, 0, 8 * MIB);
	pthread_join(t, NULL);
	must_be(b.result, 8 * MIB);
	must_be(recv(p.s, &c, 1, 0), 0);
}

static void closed_in_accept(void)
{
	int l = listener(4), c = new_socket(), other = new_socket();
	struct blocked b = { .fd = l };
	union address to = name_of(l);
	pthread_t t = block(&b, accepts);

	close(l);
	must(connect(c, &to.sa, address_len(&to)));
	pthread_join(t, NULL);
	must(b.result);
	send_all(c, 1, 0, 100);
	recv_all(b.result, 1, 0, 100);
	/* With the call the listener has gone. */
	wait_until(connect(other, &to.sa, address_len(&to)));
	must_be(errno, ECONNREFUSED);
}

static int tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	must(getsockopt(fd, SOL_TCP, TCP_INFO, &info, &len));
	return info.tcpi_state;
}

/* TCP says nothing while the backlog is full; the next time it asks there is room. */
static void closed_in_tcp_connect(void)
{
	int l = listener(0), first = client_of(l), s;
	struct blocked b = { .fd = new_socket(), .to = name_of(l) };
	pthread_t t = block(&b, connects);
	char c;

	wait_until(tcp_state(b.fd) == TCP_SYN_SENT);
	close(b.fd);
	close(must(accept(l, NULL, NULL)));
	s = must(accept(l, NULL, NULL));
	pthread_join(t, NULL);
	must_be(b.result, 0);
	must_be(recv(s, &c, 1, 0), 0);
	close(first);
}

/* The call goes on until it is answered, and the connection ends when it has returned. */
static void closed_in_connect(void)
{
	struct hello hello = good_hello();
	struct raw l, r;
	struct blocked b = {};
	pthread_t t;

	if (e2e.on & (ON_TCP | ON_FALLEN))
		return closed_in_tcp_connect();
	raw_listen(&l, &b.to);
	b.fd = new_socket();
	t = block(&b, connects);
	raw_take_request(&l, &r);
	close(b.fd);
	must_be(delta("connects"), 0);
	raw_accept(&r, &hello, sizeof(hello));
	must_be(raw_event(&r), RDMA_CM_EVENT_ESTABLISHED);
	r.connected = true;
	pthread_join(t, NULL);
	must_be(b.result, 0);
	must_be(delta("connects"), 1);
	wait_until(raw_is_lost(&r));
	raw_close(&r);
	raw_close(&l);
}

/* No host answers: a signal ends the call, and nothing is left of the attempt. */
static void closed_in_connect_to_nobody(void)
{
	struct blocked b = { .fd = new_socket(), .to = address_from(AF_INET, "10.77.0.9", 99) };
	pthread_t t;
	int twin;

	catch_signal(SIGUSR1, 0);
	t = block(&b, connects);
	twin = must(dup(b.fd));
	set_nonblock(twin, true);
	must_fail(connect(twin, &b.to.sa, address_len(&b.to)), EALREADY);
	close(twin);
	close(b.fd);
	must_be(-pthread_kill(t, SIGUSR1), 0);
	pthread_join(t, NULL);
	must_be(b.result, -1);
	must_be(b.err, EINTR);
}

static void closed_in_poll(void)
{
	struct blocked b = {};
	struct pair p;
	pthread_t t;

	pair_open(&p);
	b.fd = p.c;
	t = block(&b, polls);
	close(p.c);
	must_be(send(p.s, "abc", 3, 0), 3);
	pthread_join(t, NULL);
	must_be(b.result, 1);
}

/* A shutdown wakes it. */
static void shut_in_call(void)
{
	struct blocked b = {}, l = { .fd = listener(4) };
	struct pair p;
	pthread_t t;

	pair_open(&p);
	b.fd = p.c;
	t = block(&b, receives);
	must(shutdown(p.c, SHUT_RD));
	pthread_join(t, NULL);
	must_be(b.result, 0);
	t = block(&l, accepts);
	must(shutdown(l.fd, SHUT_RD));
	pthread_join(t, NULL);
	must_be(l.result, -1);
	must_be(l.err, EINVAL);
}

/* The number is another file's in the middle of a call. */
static void replaced_in_recv(void)
{
	struct blocked b = {};
	struct pair p, q;
	pthread_t t;
	char c;

	pair_open(&p);
	pair_open(&q);
	b.fd = p.c;
	t = block(&b, receives);
	must(dup2(q.c, p.c));
	must_be(send(q.s, "wrong", 5, 0), 5);
	must_be(send(p.s, "abc", 3, 0), 3);
	pthread_join(t, NULL);
	must_be(b.result, 3);
	must_be(recv(p.s, &c, 1, 0), 0);
	must_be(recv(p.c, &c, 1, 0), 1);
	must_be(c, 'w');
}

/* -- Epoll */

#define MANY	10000
#define PAIRS	40

static int set_of_many(const int *fds, int n)
{
	int set = must(epoll_create1(EPOLL_CLOEXEC)), i;

	for (i = 0; i < n; i++) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u32 = i };

		must(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &ev));
	}
	return set;
}

/* Each of @first to @last - 1 once, with @events, and no other. */
static void see_each(int set, int first, int last, unsigned int events)
{
	static struct epoll_event ev[MANY];
	static bool seen[MANY];
	int left = last - first, n, i;

	for (i = first; i < last; i++)
		seen[i] = false;
	while (left > 0) {
		n = must(epoll_wait(set, ev, MANY, limit_ms()));
		check(n, "%d have no event", left);
		for (i = 0; i < n; i++, left--) {
			int which = ev[i].data.u32;

			check(which >= first && which < last && !seen[which], "%d has an event: %#x",
			      which, ev[i].events);
			must_be(ev[i].events, events);
			seen[which] = true;
		}
	}
	must_be(epoll_wait(set, ev, 1, 0), 0);
}

/* Most are not connected: each reports that once. Each of the others reports its events once. */
static void ten_thousand(void)
{
	static int fds[MANY], peers[PAIRS];
	int i, l, set, many = amount(MANY);

	raise_limit(RLIMIT_NOFILE, many + 200);
	l = listener(PAIRS);
	for (i = 0; i < PAIRS; i++) {
		struct pair p;

		pair_from(&p, l);
		fds[i] = p.c;
		peers[i] = p.s;
	}
	for (; i < many; i++)
		fds[i] = new_socket();
	set = set_of_many(fds, many);
	see_each(set, PAIRS, many, EPOLLHUP);
	for (i = PAIRS - 1; i >= 0; i--)
		must_be(send(peers[i], "a", 1, 0), 1);
	see_each(set, 0, PAIRS, EPOLLIN);
	for (i = 0; i < PAIRS; i++)
		must(shutdown(peers[i], SHUT_WR));
	see_each(set, 0, PAIRS, EPOLLIN | EPOLLRDHUP);
}

struct waiter { int fd, set, said, woken; };

/* Waits in a set of its own, and accepts connections. */
static void *waits_in_set(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	struct waiter *w = arg;
	int fd;

	w->set = must(epoll_create1(EPOLL_CLOEXEC));
	must(epoll_ctl(w->set, EPOLL_CTL_ADD, w->fd, &ev));
	tell(w->said, 0);
	for (;;) {
		must_be(epoll_wait(w->set, &ev, 1, limit_ms()), 1);
		fd = accept(w->fd, NULL, NULL);
		if (fd < 0 && errno == EINVAL)
			return NULL;
		if (fd < 0) {
			must_be(errno, EAGAIN);
			continue;
		}
		w->woken++;
		must_be(send(fd, "a", 1, 0), 1);
		close(fd);
	}
}

/* Some waiter takes every connection, and none stays asleep for good. */
static void epoll_exclusive(void)
{
	struct pipe_pair pipe = pipe_open();
	struct waiter w[4] = {};
	int l = listener(8), i, c, sum = 0;
	pthread_t t[4];
	char a;

	set_nonblock(l, true);
	for (i = 0; i < 4; i++) {
		w[i] = (struct waiter){ .fd = l, .said = pipe.wr };
		must_be(-pthread_create(&t[i], NULL, waits_in_set, &w[i]), 0);
		hear(pipe.rd);
	}
	for (i = 0; i < 20; i++) {
		c = client_of(l);
		must_be(recv(c, &a, 1, 0), 1);
		close(c);
	}
	must(shutdown(l, SHUT_RD));
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		sum += w[i].woken;
	}
	must_be(sum, 20);
}

#define PLACES (ON_STREAM | ON_TCP | ON_FACE4)

static const struct e2e_case cases[] = {
	{ "passed_to_stranger", passed_to_stranger, .on = PLACES, .needs = NEEDS_ONE },
	{ "empty_root", empty_root, .on = PLACES, .needs = NEEDS_ONE },
	{ "empty_root_queue", empty_root_queue, .on = PLACES, .needs = NEEDS_ONE },
	{ "other_namespaces", other_namespaces, .on = PLACES, .needs = NEEDS_ONE },
	{ "lone_namespace", lone_namespace, .on = ON_INET, .needs = NEEDS_ONE },
	{ "seccomp_strict", seccomp_strict, .on = PLACES, .needs = NEEDS_ONE },
	{ "seccomp_filter", seccomp_filter, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_recv", closed_in_recv, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_send", closed_in_send, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_accept", closed_in_accept, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_connect", closed_in_connect, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_connect_to_nobody", closed_in_connect_to_nobody, .on = PLACES, .needs = NEEDS_ONE },
	{ "closed_in_poll", closed_in_poll, .on = PLACES, .needs = NEEDS_ONE },
	{ "shut_in_call", shut_in_call, .on = PLACES, .needs = NEEDS_ONE },
	{ "replaced_in_recv", replaced_in_recv, .on = PLACES, .needs = NEEDS_ONE },
	{ "ten_thousand", ten_thousand, .on = PLACES, .needs = NEEDS_ONE },
	{ "epoll_exclusive", epoll_exclusive, .on = PLACES, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
