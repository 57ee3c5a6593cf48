// SPDX-License-Identifier: GPL-2.0
/* Asynchronous connect and accept. */
#include "lib/async.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char bytes[100];

static exs_event_t accept_event(exs_qhandle_t q, exs_ahandle_t handle, int listen_fd)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, EXS_EVT_ACCEPT, handle, 0, 0);
	must_be(ev.exs_evt_socket, listen_fd);
	check(event_newfd(&ev) >= 0, "an accept without a descriptor");
	return ev;
}

static int accepted(exs_qhandle_t q, exs_ahandle_t handle, int listen_fd)
{
	exs_event_t ev = accept_event(q, handle, listen_fd);

	return event_newfd(&ev);
}

static void talk(int a, int b)
{
	send_all(a, 1, 0, 100);
	recv_all(b, 1, 0, 100);
	send_all(b, 2, 0, 100);
	recv_all(a, 2, 0, 100);
}

static void both(void)
{
	exs_qhandle_t q = queue_new(4), cq = queue_new(4);
	int fd = listener(4), c;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	must(exs_accept(fd, NULL, 0, q, 1));
	must(exs_connect(c, &to.sa, address_len(&to), 0, cq, 2));
	event_is(cq, EXS_EVT_CONNECT, 2, 0, 0);
	talk(c, accepted(q, 1, fd));
	no_event(q);
	no_event(cq);
}

static void connect_refused(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), c;
	union address to = name_of(fd);

	close(fd);
	c = socket_on(CLIENT);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 5));
	event_is(q, EXS_EVT_CONNECT, 5, ECONNREFUSED, 0);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 1);
}

/* If connect(2) itself refuses, there is no operation: -1 and no event, and the slot is free. */
static void connect_wrong(void)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	exs_qhandle_t q = queue_new(1);
	int fd = listener(4), c, i;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	for (i = 0; i < 3; i++) {
		must_fail(exs_connect(c, &to.sa, 1, 0, q, 1), EINVAL);
		no_event(q);
	}
	must_fail(exs_connect(c, (void *)8, address_len(&to), 0, q, 1), EFAULT);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 1, q, 1), EINVAL);
	must_fail(exs_connect(c, &nowhere, sizeof(nowhere), 0, q, 1), EAFNOSUPPORT);
	no_event(q);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 2));
	event_is(q, EXS_EVT_CONNECT, 2, 0, 0);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 3), EISCONN);
	must_fail(exs_connect(fd, &to.sa, address_len(&to), 0, q, 3), EISCONN);
	no_event(q);
}

static void connect_many(void)
{
	enum { MANY = 24 };
	exs_qhandle_t q = queue_new(MANY), aq = queue_new(MANY);
	int fd = listener(MANY), c[MANY], s, i, seen = 0;
	union address to = name_of(fd);
	exs_event_t ev;

	for (i = 0; i < MANY; i++) {
		must(exs_accept(fd, NULL, 0, aq, i));
		c[i] = socket_on(CLIENT);
	}
	for (i = 0; i < MANY; i++)
		must(exs_connect(c[i], &to.sa, address_len(&to), 0, q, i));
	for (i = 0; i < MANY; i++) {
		ev = event_next(q);
		event_check(&ev, EXS_EVT_CONNECT, ev.exs_evt_ahandle, 0, 0);
		must_be(ev.exs_evt_socket, c[ev.exs_evt_ahandle]);
		seen |= 1 << ev.exs_evt_ahandle;
	}
	must_be(seen, (1 << MANY) - 1);
	/* Accepts are served in the order in which they were asked for. */
	for (i = 0; i < MANY; i++) {
		s = accepted(aq, i, fd);
		must(send(s, "x", 1, 0));
	}
	for (i = 0; i < MANY; i++)
		must_be(recv(c[i], bytes, 1, 0), 1);
}

/* O_NONBLOCK or not makes no difference. */
static void connect_nonblock_socket(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), c;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	set_nonblock(c, true);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, 0, 0);
	must(accept(fd, NULL, NULL));
}

static void connect_closed(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
	exs_qhandle_t q = queue_new(4);
	int c = socket_on(CLIENT);

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	close(c);
	event_is(q, EXS_EVT_CONNECT, 1, ECANCELED, 0);
	no_event(q);
}

static long now_us(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_MONOTONIC, &ts));
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

/* At every moment of the hand-shake: no connection stays behind. */
static void connect_given_up(void)
{
	int fd = listener(64), c, i, n = amount(250);
	union address to = name_of(fd);
	long until;

	for (i = 0; i < n; i++) {
		c = socket_on(CLIENT);
		set_nonblock(c, true);
		must_fail(connect(c, &to.sa, address_len(&to)), EINPROGRESS);
		for (until = now_us() + i * 5000 / n; now_us() < until; )
			sched_yield();
		close(c);
	}
}

static void connect_queue_deleted(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
	exs_qhandle_t q = queue_new(4);
	int c = socket_on(CLIENT);

	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	must(exs_qdelete(q));
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded") + delta("ops_posted"), 1);
}

static void connect_times_out(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
	exs_qhandle_t q = queue_new(4);
	int c = socket_on(CLIENT);

	write_sysctl("connect_timeout", 300);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ETIMEDOUT, 0);
	must_be(delta("connect_timeout"), 1);
}

struct joiner {
	int fd;
	union address to;
	pid_t tid;
	int error;
};

static void *joiner_connects(void *arg)
{
	struct joiner *j = arg;

	__atomic_store_n(&j->tid, gettid(), __ATOMIC_RELEASE);
	j->error = connect(j->fd, &j->to.sa, address_len(&j->to)) ? errno : 0;
	return NULL;
}

/* A thread that waits in connect() gets the end of that attempt, and not of the next one. */
static void connect_joined(void)
{
	union address to = address_from(e2e.domain, e2e.domain == AF_INET ? "10.77.0.9" : "fd77::9", 99);
	struct joiner j = { .fd = socket_on(CLIENT), .to = to };
	int fd = listener(1);
	pthread_t thread;

	to = name_of(fd);
	close(fd);		/* there is no listener any more */
	run_on(0);
	set_nonblock(j.fd, true);
	must_fail(connect(j.fd, &j.to.sa, address_len(&j.to)), EINPROGRESS);
	set_nonblock(j.fd, false);
	must_be(pthread_create(&thread, NULL, joiner_connects, &j), 0);
	wait_until(__atomic_load_n(&j.tid, __ATOMIC_ACQUIRE));
	wait_blocked(j.tid);
	/* Now that one does not run before this thread waits. */
	run_first(0, 1);
	must(shutdown(j.fd, SHUT_RDWR));
	set_nonblock(j.fd, true);
	must_fail(connect(j.fd, &to.sa, address_len(&to)), EINPROGRESS);
	pthread_join(thread, NULL);
	must_be(j.error, ECONNABORTED);
	wait_io(j.fd, POLLOUT);
	must_be(so_error(j.fd), ECONNREFUSED);
}

/* -- accept */

static void accept_address(void)
{
	exs_qhandle_t q = queue_new(4);
	union address from = {}, name;
	exs_acceptaddr_t addr = { &from.sa, sizeof(from) };
	int fd = listener(4), c;
	exs_event_t ev;

	must(exs_accept(fd, &addr, 0, q, 1));
	c = client_of(fd);
	ev = accept_event(q, 1, fd);
	name = name_of(c);
	check(same_address(&from, &name), "exs_accept gave another address than the client's");
	must_be(addr.exs_addrlen, address_len(&name));
	check(ev.exs_evt_union.exs_evt_accept.exs_evt_addr == &addr, "the event names another structure");
}

/* Connections that were there before. */
static void accept_ready(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), a = client_of(fd), b;

	/* Each is ready when its first message has come: the second is not to overtake the first. */
	wait_io(fd, POLLIN);
	b = client_of(fd);
	must(exs_accept(fd, NULL, 0, q, 1));
	must(exs_accept(fd, NULL, 0, q, 2));
	talk(a, accepted(q, 1, fd));
	talk(b, accepted(q, 2, fd));
}

static void accept_listener_closed(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), i;

	for (i = 0; i < 3; i++)
		must(exs_accept(fd, NULL, 0, q, i));
	close(fd);
	for (i = 0; i < 3; i++)
		event_is(q, EXS_EVT_ACCEPT, i, ECANCELED, 0);
	no_event(q);
}

static void accept_queue_deleted(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), c;

	must(exs_accept(fd, NULL, 0, q, 1));
	must(exs_accept(fd, NULL, 0, q, 2));
	must(exs_qdelete(q));
	wait_until(!counter("live_ops"));
	must_be(delta("ops_discarded"), 2);
	/* No accept operation is left: accept(2) gets the connection. */
	c = client_of(fd);
	wait_io(fd, POLLIN);
	talk(c, must(accept(fd, NULL, NULL)));
}

/* A connection whose event is not taken ends with the queue. */
static void accept_not_taken(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), c;
	ssize_t n;

	must(exs_accept(fd, NULL, 0, q, 1));
	c = client_of(fd);
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == 1);
	must(exs_qdelete(q));
	n = recv(c, bytes, 1, 0);
	check(!n || (n < 0 && errno == ECONNRESET), "recv is %zd (%s)", n, errno_name(errno));
}

/* No descriptor is free: the event stays where it is. */
static void accept_no_descriptor(void)
{
	struct rlimit old, none;
	const struct timeval none_left = {};
	exs_qhandle_t q = queue_new(4);
	int fd = listener(4), c;
	exs_event_t ev;

	must(exs_accept(fd, NULL, 0, q, 1));
	c = client_of(fd);
	wait_until(queue_attr(q, EXS_ATTR_POSTED) == 1);
	exs_qdequeue(q, &ev, 0, &none_left);
	must(getrlimit(RLIMIT_NOFILE, &old));
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	must(setrlimit(RLIMIT_NOFILE, &none));
	must_fail(exs_qdequeue(q, &ev, 1, &none_left), EMFILE);
	must_fail(exs_qdequeue(q, &ev, 1, &none_left), EMFILE);
	must(setrlimit(RLIMIT_NOFILE, &old));
	talk(c, accepted(q, 1, fd));
}

static void child_takes(void *arg)
{
	int *fds = arg;

	talk(accepted(fds[0], 1, fds[1]), fds[2]);
}

/* The process that dequeues gets the descriptor, also if another one submitted the accept. */
static void accept_in_child(void)
{
	int fds[3] = { queue_new(4), listener(4), -1 };

	must(exs_accept(fds[1], NULL, 0, fds[0], 1));
	fds[2] = client_of(fds[1]);
	join(spawn(child_takes, fds));
}

/* accept(2) and exs_accept() on one listener: the first request is served first. */
static void accept_mixed(void)
{
	exs_qhandle_t q = queue_new(4);
	int fd = listener(8), a, b;

	must(exs_accept(fd, NULL, 0, q, 1));
	a = client_of(fd);
	talk(a, accepted(q, 1, fd));
	b = client_of(fd);
	talk(b, must(accept(fd, NULL, NULL)));
	set_nonblock(fd, true);
	must_fail(accept(fd, NULL, NULL), EAGAIN);
}

static void child_asks(void *arg)
{
	int *fds = arg;
	int i;

	for (i = 0; i < 3; i++)
		must(exs_accept(fds[1], NULL, 0, fds[0], i));
	raise(SIGKILL);
}

/* The process that submitted dies: its accepts take no connection from those of other processes. */
static void accept_asker_killed(void)
{
	int fds[2] = { queue_new(8), listener(8) }, c;

	check(WIFSIGNALED(reap(spawn(child_asks, fds))), "the child was not killed");
	wait_until(!counter("live_ops"));
	c = client_of(fds[1]);
	wait_io(fds[1], POLLIN);
	talk(c, must(accept(fds[1], NULL, NULL)));
}

static void many_client(void)
{
	exs_qhandle_t q = queue_new(16);
	union address to = address_of(SERVER, control_read("port"));
	int c[16], i;

	enter_side(CLIENT);
	for (i = 0; i < 16; i++) {
		c[i] = new_socket();
		must(exs_connect(c[i], &to.sa, address_len(&to), 0, q, i));
	}
	for (i = 0; i < 16; i++) {
		exs_event_t ev = event_next(q);

		event_check(&ev, EXS_EVT_CONNECT, ev.exs_evt_ahandle, 0, 0);
	}
	for (i = 0; i < 16; i++)
		send_all(c[i], 1, 0, 100);
	for (i = 0; i < 16; i++)
		recv_all(c[i], 2, 0, 100);
	control_send("done");
}

static void many_server(void)
{
	exs_qhandle_t q = queue_new(16);
	int fd, s[16], i;
	union address at;

	enter_side(SERVER);
	fd = listener(16);
	at = name_of(fd);
	for (i = 0; i < 16; i++)
		must(exs_accept(fd, NULL, 0, q, i));
	control_number("port", port_of(&at));
	for (i = 0; i < 16; i++)
		s[i] = accepted(q, i, fd);
	for (i = 0; i < 16; i++) {
		recv_all(s[i], 1, 0, 100);
		send_all(s[i], 2, 0, 100);
	}
	control_wait("done");
}

static union address link_local(const char *device)
{
	union address at = { .in6 = { .sin6_family = AF_INET6, .sin6_scope_id = if_nametoindex(device) } };
	struct ifaddrs *all, *a;

	must(getifaddrs(&all));
	for (a = all; a; a = a->ifa_next) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a->ifa_addr;

		if (in6 && in6->sin6_family == AF_INET6 && !strcmp(a->ifa_name, device) &&
		    IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			at.in6.sin6_addr = in6->sin6_addr;
	}
	freeifaddrs(all);
	check(!IN6_IS_ADDR_UNSPECIFIED(&at.in6.sin6_addr), "%s has no link-local address", device);
	return at;
}

/* The names include the link, at both ends: by the name from accept(2) one can connect to the client. */
static void connect_link_local(void)
{
	union address at = link_local("rxe0dev"), named;
	socklen_t len = sizeof(named);
	int l = new_socket(), c = new_socket(), s;

	must(bind(l, &at.sa, sizeof(at.in6)));
	must(listen(l, 1));
	at = name_of(l);
	must(connect(c, &at.sa, sizeof(at.in6)));
	s = must(accept(l, &named.sa, &len));
	must_be(named.in6.sin6_scope_id, if_nametoindex("rxe0dev"));
	named = name_of(s);
	check(same_address(&named, &at), "the accepted socket has another name");
	named = peer_of(s);
	at = name_of(c);
	check(same_address(&named, &at), "the peer has another name");
	must_be(named.in6.sin6_scope_id, if_nametoindex("rxe0dev"));
}

static const struct e2e_case cases[] = {
	{ "both", both, .on = ON_ALL6 | ON_FACES },
	{ "connect_refused", connect_refused, .on = ON_ALL6 },
	{ "connect_wrong", connect_wrong, .on = ON_BOTH },
	{ "connect_link_local", connect_link_local, .on = ON_STREAM6 | ON_SEQ6 | ON_INET6, .needs = NEEDS_ONE },
	{ "connect_many", connect_many, .on = ON_BOTH },
	{ "connect_nonblock_socket", connect_nonblock_socket, .on = ON_BOTH },
	{ "connect_closed", connect_closed, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connect_given_up", connect_given_up, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connect_queue_deleted", connect_queue_deleted, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connect_joined", connect_joined, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "connect_times_out", connect_times_out, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "accept_address", accept_address, .on = ON_ALL6 | ON_FACES },
	{ "accept_ready", accept_ready, .on = ON_BOTH },
	{ "accept_listener_closed", accept_listener_closed, .on = ON_BOTH },
	{ "accept_queue_deleted", accept_queue_deleted, .on = ON_BOTH },
	{ "accept_not_taken", accept_not_taken, .on = ON_BOTH },
	{ "accept_no_descriptor", accept_no_descriptor, .on = ON_BOTH },
	{ "accept_in_child", accept_in_child, .on = ON_BOTH },
	{ "accept_mixed", accept_mixed, .on = ON_BOTH },
	{ "accept_asker_killed", accept_asker_killed, .on = ON_BOTH },
	{ "many_apart", NULL, many_client, many_server, .on = ON_BOTH },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
