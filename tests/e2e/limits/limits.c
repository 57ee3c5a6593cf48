// SPDX-License-Identifier: GPL-2.0
/* The bounds of users, listeners, orphans and hand-shakes: sysctl net.exs.*. */
#include "lib/async.h"
#include "lib/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static char byte;

static void connections(void)
{
	int fd = listener(16), c;
	union address to = name_of(fd);
	struct pair p[3], q;
	int i;

	/* Both ends are this user's: two of the cap each. */
	write_sysctl("max_user_conns", 6);
	for (i = 0; i < 3; i++)
		pair_from(&p[i], fd);
	c = new_socket();
	must_fail(connect(c, &to.sa, address_len(&to)), ENOBUFS);
	must_be(delta("limit_conns"), 1);
	close(p[0].c);
	close(p[0].s);
	/* A closed connection counts until it is gone. */
	wait_until(!connect(c, &to.sa, address_len(&to)));
	q.s = must(accept(fd, NULL, NULL));
	send_all(c, 1, 0, 100);
	recv_all(q.s, 1, 0, 100);
}

/* The cap of the user who listens: the client is refused, and no other user is affected. */
static void connections_of_listener(void)
{
	int fd = listener(16), c;
	union address to = name_of(fd);
	struct pair p;

	pair_from(&p, fd);
	write_sysctl("max_user_conns", 3);
	c = new_socket();
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(delta("reject_limit"), 1);
	must_be(delta("refused_limit"), 1);
	send_all(p.c, 1, 0, 100);
	recv_all(p.s, 1, 0, 100);
}

static void other_user(void *arg)
{
	struct pair p;

	drop_privileges();
	p.c = client_of(*(int *)arg);
	send_all(p.c, 1, 0, 100);
}

/* One user's connections are not charged to another. */
static void connections_per_user(void)
{
	int fd = listener(16), s;
	struct pair p;
	pid_t pid;

	pair_from(&p, fd);
	write_sysctl("max_user_conns", 3);
	pid = spawn(other_user, &fd);
	s = must(accept(fd, NULL, NULL));
	recv_all(s, 1, 0, 100);
	join(pid);
}

static void queues(void)
{
	exs_qhandle_t q;
	int i;

	write_sysctl("max_user_queues", 5);
	for (i = 0; i < 5; i++)
		q = queue_new(4);
	must_fail(exs_qcreate(4), ENOBUFS);
	must_be(delta("limit_queues"), 1);
	must(exs_qdelete(q));
	wait_until(counter("live_queues") == 4);
	queue_new(4);
}

/* An object that is made on one processor and freed on another counts correctly in all. */
static void processors(void)
{
	int n = sysconf(_SC_NPROCESSORS_ONLN), i;
	exs_qhandle_t q[n];

	for (i = 0; i < n; i++) {
		run_on(i);
		q[i] = queue_new(4);
		must_be(counter("live_queues"), i + 1);
	}
	for (i = 0; i < n; i++) {
		run_on(n - 1 - i);
		must(exs_qdelete(q[i]));
		wait_until(counter("live_queues") == n - 1 - i);
	}
}

/* The administrator's programs are counted, and not bounded. */
static void unbounded(void)
{
	int i;

	write_sysctl("max_user_queues", 1);
	set_unbounded(true);
	for (i = 0; i < 3; i++)
		queue_new(4);
	set_unbounded(false);
	queue_new(4);
	must_fail(exs_qcreate(4), ENOBUFS);
	must_be(delta("limit_queues"), 1);
	must_be(counter("live_queues"), 4);
}

/* -- user namespaces */

struct dweller {
	struct pipe_pair out, in;
	bool root;		/* made the namespace */
};

/* As uid @uid of the namespace: queues until it is refused. */
static void fill_with_queues(int uid, int most)
{
	int i;

	must(setresuid(uid, uid, uid));
	for (i = 0; i < most; i++)
		queue_new(4);
	must_fail(exs_qcreate(4), ENOBUFS);
}

static void first_uid(void *arg)
{
	const struct dweller *d = arg;

	fill_with_queues(1, 3);
	tell(d->out.wr, 1);
	pause();
}

static void second_uid(void *arg)
{
	(void)arg;
	fill_with_queues(2, 0);
}

static void dwell(void *arg)
{
	struct dweller *d = arg;
	pid_t first;

	if (!d->root)
		drop_privileges();
	must(unshare(CLONE_NEWUSER));
	tell(d->out.wr, getpid());
	hear(d->in.rd);		/* there is a map */
	must(setresuid(0, 0, 0));
	first = spawn(first_uid, d);
	hear(d->in.rd);		/* the first has its queues */
	join(spawn(second_uid, NULL));
	kill(first, SIGKILL);
	reap(first);
}

static void map_uids(long pid, int first)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/uid_map", pid);
	fd = must(open(path, O_WRONLY | O_CLOEXEC));
	must(dprintf(fd, "0 %d 10\n", first));
	close(fd);
}

/* Subordinate uids, and all that are root in some namespace, multiply nothing. */
static void one_namespace(bool root)
{
	struct dweller d = { pipe_open(), pipe_open(), root };
	pid_t pid;

	write_sysctl("max_user_queues", 3);
	pid = spawn(dwell, &d);
	map_uids(hear(d.out.rd), 100000);
	tell(d.in.wr, 1);
	hear(d.out.rd);
	tell(d.in.wr, 1);
	join(pid);
	must_be(delta("limit_queues"), 2);
	/* Other users are not affected. */
	queue_new(4);
}

static void subordinate_uids(void)
{
	one_namespace(false);
}

/* Root's containers are users, each as a whole, and not all of them one. */
static void containers_of_root(void)
{
	one_namespace(true);
}

/* -- network namespaces */

static void other_network(void *arg)
{
	exs_qhandle_t q;

	(void)arg;
	must(unshare(CLONE_NEWNET));
	must_be(read_sysctl("max_user_queues"), 5);
	must_be(counter_here("live_queues"), 0);
	q = queue_new(4);
	must_be(counter_here("live_queues"), 1);
	/* It may be stricter than the machine, and counts its refusals. */
	write_sysctl("max_user_queues", 2);
	must_fail(exs_qcreate(4), ENOBUFS);	/* one of them is in the other namespace */
	must_be(counter_here("limit_queues"), 1);
	/* It cannot be more generous. */
	write_sysctl("max_user_queues", 1000);
	while (counter_here("live_queues") < 4)
		queue_new(4);
	must_fail(exs_qcreate(4), ENOBUFS);
	must(exs_qdelete(q));
	check(access("/proc/sys/net/exs/max_user_workers", F_OK), "a namespace has max_user_workers");
	write_sysctl("enabled", 0);
	must_fail(socket(e2e.family, SOCK_STREAM, 0), EAFNOSUPPORT);
}

/* Each network namespace counts for itself and has its own settings; caps hold in all. */
static void network_namespaces(void)
{
	write_sysctl("max_user_queues", 5);
	queue_new(4);
	join(spawn(other_network, NULL));
	must_be(counter("live_queues"), 1);
	must_be(delta("limit_queues"), 0);
	must_be(read_sysctl("max_user_queues"), 5);
	must_be(read_sysctl("enabled"), 1);
}

/* -- memory */

#define GROUP "/run/exs/cgroup/exs_limits"

static void write_group(const char *file, const char *text)
{
	int fd = must(open(file, O_WRONLY | O_CLOEXEC));

	check(dprintf(fd, "%s", text) > 0, "%s: %s", file, errno_name(errno));
	close(fd);
}

static long group_memory(void)
{
	char text[32] = "";
	int fd = must(open(GROUP "/memory.current", O_RDONLY | O_CLOEXEC));

	must(read(fd, text, sizeof(text) - 1));
	close(fd);
	return atol(text);
}

static void group_open(void)
{
	must(unshare(CLONE_NEWNS));
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	check(!mkdir("/run/exs/cgroup", 0755) || errno == EEXIST, "mkdir: %s", errno_name(errno));
	must(mount("none", "/run/exs/cgroup", "cgroup2", 0, NULL));
	write_group("/run/exs/cgroup/cgroup.subtree_control", "+memory");
	/* A case that failed has left it. */
	wait_until(!rmdir(GROUP) || errno == ENOENT);
	must(mkdir(GROUP, 0755));
}

enum { MANY = 900, SPARSE = 1024 * MIB };

static void grouped_listener(void *arg)
{
	const struct dweller *d = arg;
	union address at;
	int fd;

	write_group(GROUP "/cgroup.procs", "0");
	fd = listener(MANY);
	at = name_of(fd);
	tell(d->out.wr, port_of(&at));
	hear(d->in.rd);
}

/* Too long to go with its header: that takes a ring. */
static char long_send[2000];

/* Workers make it, when a peer sends; the listener's cgroup is charged. */
static void ring_in_cgroup(void)
{
	struct dweller d = { pipe_open(), pipe_open(), false };
	union address to;
	long before;
	pid_t pid;
	int c;

	group_open();
	write_sysctl("ring_size", 1 << 20);
	pid = spawn(grouped_listener, &d);
	to = address_of(SERVER, hear(d.out.rd));
	before = group_memory();
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	must_be(send(c, long_send, sizeof(long_send), 0), sizeof(long_send));
	wait_until(counter("live_rings") == 1);
	/* Each processor has 256 KiB in advance. */
	check(group_memory() - before >= 512 << 10, "a ring of 1 MiB: the cgroup has %ld bytes more",
	      group_memory() - before);
	tell(d.in.wr, 1);
	join(pid);
	close(c);
	wait_until(!counter("live_conns"));
	must(rmdir(GROUP));
}

/* Another process has its region. It writes to a page of each page table: for these a fork needs memory. */
static void slow_forker(void *arg)
{
	const int *way = arg;
	char *buf = pages(SPARSE);
	exs_mhandle_t m = region_new(buf, 4096, 0);
	size_t i;

	send_fd(way[1], m);
	close(m);
	write_group(GROUP "/cgroup.procs", "0");
	for (i = 0; i < SPARSE; i += 2 * MIB)
		buf[i] = 1;
	write_group(GROUP "/memory.high", "1M");
	if (!fork())
		_exit(0);
	pause();
}

static bool forks_slowly(pid_t pid)
{
	char path[64], text[4096] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	must(read(fd, text, sizeof(text) - 1));
	close(fd);
	return strstr(text, "mem_cgroup_handle_over_high") && strstr(text, "copy_page_range");
}

/* The end of a region does not wait for changes of pages in its address space. */
static void slow_fork(void)
{
	int way[2], m;
	pid_t pid;

	group_open();
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, way));
	pid = spawn(slow_forker, way);
	m = receive_fd(way[0]);
	wait_until(forks_slowly(pid));
	close(m);
	must_be(counter("live_regions"), 0);
	/* It sleeps there several times. */
	wait_until(forks_slowly(pid));
	kill(pid, SIGKILL);
	must_be(reap(pid), SIGKILL);
	wait_until(!rmdir(GROUP));
}

/* In a group over its limit, as it has memory that cannot be reclaimed: the kernel slows its threads. */
static void slow_listener(void *arg)
{
	write_group(GROUP "/cgroup.procs", "0");
	memset(pages(8 * MIB), 1, 8 * MIB);
	write_group(GROUP "/memory.high", "1M");
	grouped_listener(arg);
}

static void workers_are_slow(void)
{
	struct utsname kernel;

	must(uname(&kernel));
	if (strtol(kernel.release, NULL, 10) >= 7)
		skip("its workers were not seen to be slowed down");
}

/* That is not a worker that others need. */
static void slow_group(void)
{
	struct dweller d = { pipe_open(), pipe_open(), false };
	union address to;
	struct pair p;
	pid_t pid;
	int c;

	workers_are_slow();
	group_open();
	write_sysctl("ring_size", 1 << 20);
	pid = spawn(slow_listener, &d);
	to = address_of(SERVER, hear(d.out.rd));
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	must_be(send(c, long_send, sizeof(long_send), 0), sizeof(long_send));
	wait_until(workers_below("exs_conn_memory_work", "mem_cgroup_handle_over_high"));
	must_be(workers_not_below("exs_conn_memory_work", "mem_cgroup_handle_over_high"), 0);
	/* The user is the same, and has turns left. */
	pair_open(&p);
	must_be(send(p.c, long_send, sizeof(long_send), 0), sizeof(long_send));
	must_be(recv(p.s, pages(sizeof(long_send)), sizeof(long_send), MSG_WAITALL), sizeof(long_send));
	tell(d.in.wr, 1);
	join(pid);
	close(c);
	pair_close(&p);
	wait_until(!counter("live_conns"));
	must(rmdir(GROUP));
}

static int slow_accepts(void)
{
	return workers_below("exs_verbs_slow_work", "mem_cgroup_handle_over_high");
}

static void connect_as_nobody(void *arg)
{
	struct pair p;

	(void)arg;
	drop_privileges();
	pair_open(&p);
}

/* How a connection ends that has ten milliseconds. */
static int short_connect(const union address *to)
{
	int fd = new_socket(), err;

	set_nonblock(fd, true);
	write_sysctl("connect_timeout", 10);
	must_fail(connect(fd, &to->sa, address_len(to)), EINPROGRESS);
	write_sysctl("connect_timeout", 15000);
	wait_io(fd, POLLOUT);
	err = so_error(fd);
	close(fd);
	return err;
}

/* One more, if there are not many: those that exist may need time. Return: how many. */
static int more_connects(const union address *to, int *fds, int n)
{
	if (n == MANY)
		return 0;
	fds[n] = new_socket();
	set_nonblock(fds[n], true);
	must_fail(connect(fds[n], &to->sa, address_len(to)), EINPROGRESS);
	return 1;
}

/* Nor do its hand-shakes take all workers: they have turns, and other users have theirs. */
static void slow_group_listens(void)
{
	struct dweller d = { pipe_open(), pipe_open(), false };
	int fds[MANY], n = 0, i;
	union address to;
	pid_t pid;

	workers_are_slow();
	group_open();
	write_sysctl("max_user_workers", 1);
	pid = spawn(slow_listener, &d);
	to = address_of(SERVER, hear(d.out.rd));
	/* It has all the time of the case: on a busy machine it takes long. */
	while (n += more_connects(&to, fds, n), slow_accepts() != 1 || !delta("turns_waited"))
		breathe();
	/* Not ETIMEDOUT: the peer has not received a request. */
	wait_until(short_connect(&to) == ENOBUFS);
	for (i = 1; i < n; i += 2)
		close(fds[i]);
	join(spawn(connect_as_nobody, NULL));
	check(slow_accepts() <= 1, "more than one has a turn");
	must_be(workers_not_below("exs_verbs_slow_work", "mem_cgroup_handle_over_high"), 0);
	for (i = 0; i < n; i += 2) {
		wait_io(fds[i], POLLOUT);
		must_be(so_error(fds[i]), 0);
		close(fds[i]);
	}
	tell(d.in.wr, 1);
	join(pid);
	wait_until(!counter("live_conns"));
	must(rmdir(GROUP));
}

static void grouped_sender(void *arg)
{
	const struct pair *p = arg;
	long before;

	write_group(GROUP "/cgroup.procs", "0");
	before = group_memory();
	send_until_full(p->c, 1);
	check(group_memory() - before >= MIB, "sends of 4 MiB: the cgroup has %ld bytes more", group_memory() - before);
}

/* Plain sends are copied, and charged to the sender's cgroup. */
static void sends_in_cgroup(void)
{
	struct pair p;

	group_open();
	write_sysctl("sndbuf", 4 * MIB);
	pair_open(&p);
	join(spawn(grouped_sender, &p));
	pair_close(&p);
	wait_until(!counter("live_conns"));
	must(rmdir(GROUP));
}

enum {
	CROWD = 400,
	/* Includes the memory of a socket and its file: see Documentation/performance.md. */
	END_KIB = 15,
	/* Each processor has 256 KiB in advance. */
	IN_ADVANCE_KIB = 1024,
};

/* Both ends' programs are charged, but not for memory of the CM and the device. */
static void grouped_crowd(void *arg)
{
	struct pair warm, crowd[CROWD];
	long before, kib;
	int i;

	(void)arg;
	write_group(GROUP "/cgroup.procs", "0");
	pair_open(&warm);
	before = group_memory();
	for (i = 0; i < CROWD; i++)
		pair_open(&crowd[i]);
	kib = (group_memory() - before) / 1024;
	check(kib >= CROWD, "%d connections took %ld KiB: not charged", CROWD, kib);
	check(kib <= 2 * CROWD * END_KIB + IN_ADVANCE_KIB, "an end of an idle connection takes %ld bytes",
	      kib * 1024 / 2 / CROWD);
	for (i = 0; i < CROWD; i++)
		pair_close(&crowd[i]);
	pair_close(&warm);
}

/* It does not have the memory yet that it will need when it is used. */
static void idle_in_cgroup(void)
{
	if (!access("/sys/kernel/debug/failslab", F_OK))
		skip("this kernel's checkers add to every object");
	group_open();
	join(spawn(grouped_crowd, NULL));
	wait_until(!counter("live_conns"));
	must(rmdir(GROUP));
}

/* It counts like pinned memory; a connection that cannot have one ends, with its sends. */
static void ring_charged(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;

	pair_open(&p);
	start_send(p.s, pages(8 * MIB), 8 * MIB, q, 1, NO_REGION);
	wait_delta("indirect_tx_bytes", 1);
	write_sysctl("max_user_pages", 16);
	must_be(send(p.c, long_send, sizeof(long_send), 0), sizeof(long_send));
	event_is(q, EXS_EVT_SEND, 1, ENOBUFS, 0);
	must_be(poll_wait(p.c, POLLHUP) & POLLHUP, POLLHUP);
	must_be(delta("limit_pages"), 1 + delta("credits_denied"));
	must_be(delta("resets_nomem"), 1);
	must_be(so_error(p.s), ENOBUFS);
	must_be(counter("live_rings"), 1);
}

/* Memory that peers ask for has a bound even if a user has none, and a peer waits for it. */
static void peers_together(void)
{
	struct pair p, q;

	set_unbounded(true);
	write_sysctl("max_peer_pages", 200);
	pair_open(&p);
	must_be(send(p.c, long_send, sizeof(long_send), 0), sizeof(long_send));
	wait_until(counter("live_rings") == 1);
	pair_open(&q);
	must_be(send(q.c, long_send, sizeof(long_send), 0), sizeof(long_send));
	wait_delta("limit_peer_pages", 1);
	must_be(counter("live_rings"), 1);
	pair_close(&p);
	must_be(recv(q.s, pages(sizeof(long_send)), sizeof(long_send), MSG_WAITALL), sizeof(long_send));
	must_be(counter("live_rings"), 1);
}

/* Three short messages from each end: before the answer comes, a CREDIT is due for them. */
static void take_turns(const struct pair *p, int turns)
{
	char got[5];
	int i, j;

	for (i = 0; i < 2 * turns; i++) {
		int from = i % 2 ? p->s : p->c, to = i % 2 ? p->c : p->s;

		for (j = 0; j < 3; j++)
			must_be(send(from, "12345", sizeof(got), 0), sizeof(got));
		for (j = 0; j < 3; j++)
			must_be(recv(to, got, sizeof(got), MSG_WAITALL), sizeof(got));
	}
}

/* Each end gets more credits, once, and CREDITs go no more. */
static void credits_for_turns(void)
{
	enum { TURNS = 100 };
	struct pair p;

	pair_open(&p);
	take_turns(&p, TURNS);
	must_be(delta("credits_grown"), 2);
	check(delta("credits_tx") < TURNS / 2, "%ld CREDITs", delta("credits_tx"));
}

/* Where they may not have them it goes on as before, until they may. */
static void credits_for_turns_denied(void)
{
	struct pair p;

	pair_open(&p);
	write_sysctl("max_user_pages", 1);
	take_turns(&p, 20);
	check(delta("credits_denied") >= 2, "%ld denied", delta("credits_denied"));
	must_be(delta("credits_grown"), 0);
	write_sysctl("max_user_pages", 1000);
	while (delta("credits_grown") < 2)
		take_turns(&p, 1);
	must_be(delta("credits_grown"), 2);
}

/* Messages go without a ring if the user may not have it. */
static void messages_without_ring(void)
{
	static char message[5000];
	struct pair p;
	int i;

	pair_open(&p);
	write_sysctl("max_user_pages", 16);
	for (i = 0; i < 20; i++) {
		must_be(send(p.c, message, sizeof(message), 0), sizeof(message));
		must_be(recv(p.s, message, sizeof(message), 0), sizeof(message));
	}
	must_be(delta("limit_pages"), 1 + delta("credits_denied"));
	must_be(delta("indirect_tx_bytes"), 0);
	must_be(delta("direct_tx_bytes"), 20 * sizeof(message));
	must_be(counter("live_rings"), 0);
}

/* -- siw connects by TCP, in a worker if no thread waits for it */

static void other_connection(const char *address)
{
	union address at = address_from(AF_INET, address, 0);
	int fd = must(socket(e2e.family, SOCK_STREAM, 0)), c = must(socket(e2e.family, SOCK_STREAM, 0));

	must(bind(fd, &at.sa, address_len(&at)));
	must(listen(fd, 4));
	at = name_of(fd);
	must(connect(c, &at.sa, address_len(&at)));
	close(must(accept(fd, NULL, NULL)));
	close(c);
	close(fd);
}

/*
 * More connects into the black hole than there are workers for hand-shakes; before any of them has ended, another
 * user's hand-shake is done.
 */
static void connects_into_black_hole(void)
{
	enum { N = 300 };
	union address to = address_from(AF_INET, "10.79.0.9", 99);
	static struct pollfd fds[N];
	int i;

	shell("ip link add siwhole address 02:00:00:79:00:01 type dummy");
	shell("ip addr add 10.79.0.1/24 dev siwhole && ip link set siwhole up");
	shell("ip neigh replace 10.79.0.9 lladdr 02:00:00:79:00:09 dev siwhole nud permanent");
	shell("echo 4 > /proc/sys/net/ipv4/tcp_syn_retries");
	shell("rdma link add siw_hole type siw netdev siwhole");
	write_sysctl("connect_timeout", 3600 * 1000);
	for (i = 0; i < N; i++) {
		fds[i].fd = must(socket(e2e.family, SOCK_STREAM | SOCK_NONBLOCK, 0));
		fds[i].events = POLLOUT;
		must_fail(connect(fds[i].fd, &to.sa, address_len(&to)), EINPROGRESS);
	}
	wait_until(counter("turns_waited") >= N - 64);
	other_connection("10.77.0.1");
	must_be(poll(fds, N, 0), 0);
	for (i = 0; i < N; i++)
		close(fds[i].fd);
	wait_until(!counter("live_conns"));
	shell("rdma link delete siw_hole && ip link delete siwhole");
	shell("echo 6 > /proc/sys/net/ipv4/tcp_syn_retries");
}

static bool all_ended(void)
{
	must_be(workers_in("iw_cm_disconnect"), 0);
	return !counter("live_conns");
}

static void connects_to_silence(void *arg)
{
	const union address *to = arg;
	int fd = socket_on(CLIENT);

	connect(fd, &to->sa, address_len(to));
}

/*
 * iWARP's disconnect sleeps until the peer has answered our connect, or 10 s are over. No worker
 * is there: else one user's could be all.
 */
static void closed_unanswered(void)
{
	enum { N = 8 };
	union address to = address_of(SERVER, 0);
	pid_t pids[N];
	char request;
	int fd, i;

	enter_side(SERVER);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(fd, &to.sa, address_len(&to)));
	must(listen(fd, N));
	to = name_of(fd);
	for (i = 0; i < N; i++)
		pids[i] = spawn(connects_to_silence, &to);
	for (i = 0; i < N; i++)
		must_be(recv(must(accept(fd, NULL, NULL)), &request, 1, 0), 1);
	for (i = 0; i < N; i++) {
		kill(pids[i], SIGKILL);
		reap(pids[i]);
	}
	must_be(counter("live_conns"), N);
	wait_until(all_ended());
}

enum { OPS = 128 };

/* They count in all queues of the user, 64 at a time, and a poll for each descriptor. */
static void operations(void)
{
	exs_qhandle_t q = queue_new(OPS), other = queue_new(4);
	exs_pollfd_t fds[OPS];
	exs_mhandle_t m = region_new(&byte, 1, EXS_ACCESS_WRITE);
	struct pair p;
	int i;

	pair_open(&p);
	write_sysctl("max_user_ops", OPS);
	for (i = 0; i < OPS; i++)
		start_recv(p.s, &byte, 1, 0, q, i, m);
	must_fail(exs_recv(p.s, &byte, 1, 0, other, 0, m), ENOBUFS);
	must_fail(exs_close(p.s, 0, other, 0), ENOBUFS);
	must_fail(exs_shutdown(p.s, SHUT_WR, other, 0), ENOBUFS);
	must_fail(exs_accept(p.s, NULL, 0, other, 0), ENOBUFS);
	must_be(delta("limit_ops"), 4);
	must_be(exs_cancel(q, -1, 0, 0), 0);
	for (i = 0; i < OPS; i++)
		must_be(event_next(q).exs_evt_errno, ECANCELED);
	start_recv(p.s, &byte, 1, 0, other, 0, m);
	must_be(exs_cancel(other, -1, 0, 0), 0);
	event_is(other, EXS_EVT_RECV, 0, ECANCELED, 0);
	for (i = 0; i < OPS; i++)
		fds[i] = (exs_pollfd_t){ .fd = p.s, .events = EXS_POLLIN };
	must_fail(exs_poll(fds, OPS, 0, other, 0), ENOBUFS);
	must_be(delta("limit_ops"), 5);
	no_event(other);
}

/* Files that wait to be sent are held, even if no process has them open: each counts, too. */
static void files_held(void)
{
	enum { FILES = 5, LEN = 1 << 20 };
	exs_qhandle_t q = queue_new(OPS / 2);
	exs_xferfile_t x = { .xf_file = { .fd_file = file_new(1, LEN), .fd_len = LEN } };
	int i;
	struct pair p;

	pair_open(&p);
	write_sysctl("max_user_ops", OPS / 2 + FILES);
	for (i = 0; i < FILES; i++)
		must(exs_sendfile(p.c, &x, 0, q, i));
	must_fail(exs_sendfile(p.c, &x, 0, q, 0), ENOBUFS);
	must_be(delta("limit_ops"), 1);
	for (i = 0; i < FILES; i++) {
		recv_all(p.s, 1, 0, LEN);
		must_be(event_next(q).exs_evt_errno, 0);
	}
	must(exs_sendfile(p.c, &x, 0, q, 0));
	recv_all(p.s, 1, 0, LEN);
	must_be(event_next(q).exs_evt_errno, 0);
}

/* A queue that is gone leaves the room of its operations to other queues. */
static void operations_of_the_gone(void)
{
	exs_qhandle_t q = queue_new(OPS), other = queue_new(OPS);
	exs_mhandle_t m = region_new(&byte, 1, EXS_ACCESS_WRITE);
	struct pair p;
	int i;

	pair_open(&p);
	write_sysctl("max_user_ops", OPS);
	for (i = 0; i < OPS; i++)
		start_recv(p.s, &byte, 1, 0, q, i, m);
	must_fail(exs_recv(p.s, &byte, 1, 0, other, 0, m), ENOBUFS);
	must(exs_qdelete(q));
	wait_until(counter("live_queues") == 1);
	for (i = 0; i < OPS; i++)
		start_recv(p.s, &byte, 1, 0, other, i, m);
}

/* Each has room because the one before it is over. */
static void polls_over(void)
{
	enum { FDS = OPS / 2 };
	exs_qhandle_t q = queue_new(4);
	exs_pollfd_t fds[FDS];
	struct pair p;
	int i;

	pair_open(&p);
	write_sysctl("max_user_ops", OPS);
	for (i = 0; i < FDS; i++)
		fds[i] = (exs_pollfd_t){ .fd = p.c, .events = EXS_POLLOUT };
	for (i = 0; i < 3; i++) {
		must(exs_poll(fds, FDS, 0, q, i));
		event_is(q, EXS_EVT_POLL, i, 0, 0);
	}
}

/* An ordinary socket that operations hold counts, once for each direction, until they have released it. */
static void sockets_held(void)
{
	enum { STEP = 64, HELD = 2 };
	exs_qhandle_t q = queue_new(STEP);
	struct pair p[HELD + 1];
	int i;

	for (i = 0; i <= HELD; i++)
		pair_open(&p[i]);
	write_sysctl("max_user_ops", STEP + HELD);
	for (i = 0; i < HELD; i++)
		start_recv(p[i].s, &byte, 1, 0, q, i, NO_REGION);
	start_recv(p[0].s, &byte, 1, 0, q, HELD, NO_REGION);
	must_fail(exs_recv(p[HELD].s, &byte, 1, 0, q, 0, NO_REGION), ENOBUFS);
	must_fail(exs_recv(p[0].c, &byte, 1, 0, q, 0, NO_REGION), ENOBUFS);
	must_be(delta("limit_ops"), 2);
	must_be(send(p[1].c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	wait_until(counter("live_lanes") == 1);
	start_recv(p[HELD].s, &byte, 1, 0, q, 1, NO_REGION);
	must_be(exs_cancel(q, -1, 0, 0), 0);
	for (i = 0; i <= HELD; i++)
		must_be(event_next(q).exs_evt_errno, ECANCELED);
}

static void disabled(void)
{
	int fd = listener(4), c = new_socket();
	union address to = name_of(fd);
	struct pair p;

	pair_from(&p, fd);
	write_sysctl("enabled", 0);
	must_fail(socket(e2e.family, e2e.type, 0), EAFNOSUPPORT);
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(delta("reject_disabled"), 2);
	must_be(delta("refused_disabled"), 1);
	/* Existing connections stay. */
	send_all(p.c, 1, 0, 100);
	recv_all(p.s, 1, 0, 100);
	write_sysctl("enabled", 1);
	must(connect(c, &to.sa, address_len(&to)));
}

static void sysctl_bounds(void)
{
	static const char *const names[] = { "enabled", "ring_size", "connect_timeout", "sndbuf" };
	char path[64];
	size_t i;
	FILE *f;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/exs/%s", names[i]);
		f = fopen(path, "w");
		check(f, "%s: %s", path, errno_name(errno));
		fprintf(f, "-1\n");
		check(fclose(f), "%s takes -1", path);
	}
	write_sysctl("ring_size", 5000);
	must_be(read_sysctl("ring_size"), 8192);
	drop_privileges();
	check(!fopen("/proc/sys/net/exs/enabled", "w"), "anybody may write sysctls");
}

/* -- orphans: closed, and not all of it delivered */

static void close_unsent(struct pair *p)
{
	pair_open(p);
	send_until_full(p->c, 1);
	close(p->c);
}

static void orphan_counted(void)
{
	struct pair p;
	size_t n;

	pair_open(&p);
	n = send_until_full(p.c, 1);
	close(p.c);
	must_be(counter("live_orphans"), 1);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
	close(p.s);
	wait_until(!counter("live_orphans"));
	must_be(delta("linger_expired"), 0);
}

static int read_to_end(int fd)
{
	static char buf[65536];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		;
	return n < 0 ? errno : 0;
}

static void orphan_expires(void)
{
	struct pair p;

	write_sysctl("linger", 100);
	close_unsent(&p);
	wait_until(!counter("live_orphans"));
	must_be(delta("linger_expired"), 1);
	must_be(read_to_end(p.s), ECONNRESET);
}

static void orphan_limit(void)
{
	struct pair p, q;

	write_sysctl("max_orphans", 1);
	close_unsent(&p);
	close_unsent(&q);
	must_be(delta("orphan_limit"), 1);
	must_be(counter("live_orphans"), 1);
	must_be(read_to_end(q.s), ECONNRESET);
	must_be(read_to_end(p.s), 0);
}

static void take_orphans(void *arg)
{
	struct pair p, q;

	drop_privileges();
	close_unsent(&p);
	close_unsent(&q);
	must_be(delta("orphan_limit"), 1);
	tell(*(int *)arg, 1);
	pause();
}

/* A user leaves as many places as it takes: another one's data are not lost. */
static void orphans_of_another(void)
{
	struct pipe_pair taken = pipe_open();
	struct pair p;
	pid_t pid;

	write_sysctl("max_orphans", 2);
	pid = spawn(take_orphans, &taken.wr);
	hear(taken.rd);
	must_be(counter("live_orphans"), 1);
	close_unsent(&p);
	must_be(counter("live_orphans"), 2);
	must_be(read_to_end(p.s), 0);
	kill(pid, SIGKILL);
	reap(pid);
}

/* Closing a socket does not make room for another connection before it is over. */
static void orphan_charged(void)
{
	int fd = listener(4), c = new_socket();
	union address to = name_of(fd);
	struct pair p;
	size_t n;

	pair_from(&p, fd);
	write_sysctl("max_user_conns", 2);
	n = send_until_full(p.c, 1);
	close(p.c);
	must_be(counter("live_orphans"), 1);
	must_fail(connect(c, &to.sa, address_len(&to)), ENOBUFS);
	must_be(delta("limit_conns"), 1);
	recv_all(p.s, 1, 0, n);
	close(p.s);
	wait_until(!connect(c, &to.sa, address_len(&to)));
}

/* An attempt that was refused is over: its end waits for no peer. */
static void refused_is_over(void)
{
	union address to = address_of(SERVER, 9);
	int i;

	for (i = 0; i < 100; i++) {
		must_fail(connect(new_socket(), &to.sa, address_len(&to)), ECONNREFUSED);
		wait_until(!counter("live_endpoints"));
	}
}

/* The peer reads nothing and the socket lingers: close() comes back when its time is up. */
static void linger_gives_up(void)
{
	struct linger l = { .l_onoff = 1, .l_linger = 1 };
	struct pair p;

	pair_open(&p);
	send_until_full(p.c, 1);
	must(setsockopt(p.c, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	close(p.c);
	check(read_to_end(p.s) == 0 || counter("live_orphans") == 0, "neither delivered nor reset");
}

/* -- hosts that do not answer: 10.77.0.9 is a black hole with a neighbour entry */

static union address black_hole(void)
{
	return address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
}

static void unreachable(void)
{
	union address to = black_hole();
	int fd = new_socket();

	write_sysctl("connect_timeout", 300);
	must_fail(connect(fd, &to.sa, address_len(&to)), ETIMEDOUT);
	must_be(delta("connect_timeout"), 1);
	must_be(so_error(fd), 0);
}

static void unreachable_nonblock(void)
{
	union address to = black_hole();
	int fd = new_socket(), patient = new_socket(), got;

	/* The next connect() reports the end of an attempt that may be over: this one is not. */
	write_sysctl("connect_timeout", 3600 * 1000);
	set_nonblock(patient, true);
	must_fail(connect(patient, &to.sa, address_len(&to)), EINPROGRESS);
	must_fail(connect(patient, &to.sa, address_len(&to)), EALREADY);
	write_sysctl("connect_timeout", 300);
	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	got = poll_wait(fd, POLLOUT);
	check(got & POLLERR && got & POLLHUP, "poll gives %#x, not POLLERR and POLLHUP", got);
	must_be(so_error(fd), ETIMEDOUT);
}

static void unreachable_interrupted(void)
{
	union address to = black_hole();
	int fd = new_socket();

	/* The signal has to come first. */
	write_sysctl("connect_timeout", 6000);
	catch_signal(SIGALRM, 0);
	interrupt_self(100);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINTR);
	interrupt_stop();
	/* As with TCP, the attempt goes on. */
	wait_io(fd, POLLOUT | POLLERR);
	must_be(so_error(fd), ETIMEDOUT);
}

static void unreachable_sndtimeo(void)
{
	union address to = black_hole();
	int fd = new_socket();

	set_timeout(fd, SO_SNDTIMEO, 100);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
}

static void connect_and_die(void *arg)
{
	union address to = black_hole();

	tell(*(int *)arg, 1);
	connect(new_socket(), &to.sa, address_len(&to));
}

/* Killed in the middle of connect(2): it ends, and nothing stays. */
static void unreachable_killed(void)
{
	struct pipe_pair p = pipe_open();
	pid_t pid = spawn(connect_and_die, &p.wr);

	hear(p.rd);
	wait_until(counter("live_conns") == 1);
	kill(pid, SIGKILL);
	reap(pid);
	wait_until(!counter("live_conns"));
}

/* A message that is fetched for poll() or recv() is memory of the receiver's user. */
static void fetched_charged(void)
{
	enum { BIG = 200000 };
	static char buf[BIG];
	struct pollfd pfd = { .events = POLLIN };
	struct pair p;

	pair_open(&p);
	pfd.fd = p.s;
	write_sysctl("max_user_pages", 40);
	must_be(send(p.c, buf, BIG, 0), BIG);
	must_be(poll(&pfd, 1, limit_ms()), 1);
	must_be(delta("fetch_failed"), 1);
	must_be(delta("limit_pages"), 1);
	must_fail(recv(p.s, buf, BIG, 0), ENOBUFS);
	write_sysctl("max_user_pages", 60);
	must_be(recv(p.s, buf, BIG, 0), BIG);
	/* It has been given back. */
	must_be(send(p.c, buf, BIG, 0), BIG);
	must_be(poll(&pfd, 1, limit_ms()), 1);
	must_be(recv(p.s, buf, BIG, MSG_DONTWAIT), BIG);
	must_be(delta("limit_pages"), 2);
}

static const struct e2e_case cases[] = {
	{ "connections", connections, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connections_of_listener", connections_of_listener, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "connections_per_user", connections_per_user, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "queues", queues, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "processors", processors, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "unbounded", unbounded, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "subordinate_uids", subordinate_uids, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "containers_of_root", containers_of_root, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "network_namespaces", network_namespaces, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "ring_in_cgroup", ring_in_cgroup, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "slow_fork", slow_fork, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "slow_group", slow_group, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "slow_group_listens", slow_group_listens, .on = ON_BOTH, .needs = NEEDS_ONE, .limit = 120 },
	{ "idle_in_cgroup", idle_in_cgroup, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "sends_in_cgroup", sends_in_cgroup, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "credits_for_turns", credits_for_turns, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "credits_for_turns_denied", credits_for_turns_denied, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "messages_without_ring", messages_without_ring, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "ring_charged", ring_charged, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "peers_together", peers_together, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "connects_into_black_hole", connects_into_black_hole, .on = ON_EXS, .needs = NEEDS_SIW },
	{ "closed_unanswered", closed_unanswered, .on = ON_EXS, .needs = NEEDS_SIW },
	{ "fetched_charged", fetched_charged, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "operations", operations, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "files_held", files_held, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "operations_of_the_gone", operations_of_the_gone, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "polls_over", polls_over, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "sockets_held", sockets_held, .on = ON_TCP, .needs = NEEDS_ONE },
	{ "disabled", disabled, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "sysctl_bounds", sysctl_bounds, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "orphan_counted", orphan_counted, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphan_expires", orphan_expires, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphan_charged", orphan_charged, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "refused_is_over", refused_is_over, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphans_of_another", orphans_of_another, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphan_limit", orphan_limit, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "linger_gives_up", linger_gives_up, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "unreachable", unreachable, .on = ON_ALL6, .needs = NEEDS_ONE },
	{ "unreachable_nonblock", unreachable_nonblock, .on = ON_ALL6, .needs = NEEDS_ONE },
	{ "unreachable_interrupted", unreachable_interrupted, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "unreachable_sndtimeo", unreachable_sndtimeo, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "unreachable_killed", unreachable_killed, .on = ON_STREAM, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
