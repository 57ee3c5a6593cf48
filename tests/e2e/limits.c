// SPDX-License-Identifier: GPL-2.0
/* What bounds a user, a listener, an orphan, a hand-shake: sysctl net.exs.*. */
#include "lib/async.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
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

/* The cap of the one who listens: the client is refused, and nobody else suffers. */
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
	/* What is connected stays. */
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

/* An attempt that was refused is over: its end waits for nobody. */
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

	/* The end of an attempt that may be over is for the next connect() to tell: this one is not. */
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

static const struct e2e_case cases[] = {
	{ "connections", connections, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connections_of_listener", connections_of_listener, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "connections_per_user", connections_per_user, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "queues", queues, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "disabled", disabled, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "sysctl_bounds", sysctl_bounds, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "orphan_counted", orphan_counted, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphan_expires", orphan_expires, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "orphan_charged", orphan_charged, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "refused_is_over", refused_is_over, .on = ON_BOTH, .needs = NEEDS_ONE },
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
