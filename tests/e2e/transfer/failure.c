// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that die and devices that are removed, with transfers under way: every
 * operation ends once, and no object is left behind. Two machines: two.py.
 */
#include "lib/async.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS	16
#define PIECE	(512 * 1024)

struct load {
	int fd;
	char *buf;
	exs_mhandle_t m;
	exs_qhandle_t q;
};

/* Large operations, @ops in each direction, of which the peer will serve none, some or all. */
static void load_some(struct load *l, int fd, int ops)
{
	int i;

	l->fd = fd;
	l->buf = pages(2 * PIECE);
	l->m = region_new(l->buf, 2 * PIECE, 0);
	l->q = queue_new(2 * OPS);
	for (i = 0; i < ops; i++) {
		start_recv(fd, l->buf, PIECE, MSG_WAITALL, l->q, i, l->m);
		start_send(fd, l->buf + PIECE, PIECE, l->q, OPS + i, l->m);
	}
}

static void load_start(struct load *l, int fd)
{
	load_some(l, fd, OPS);
}

static bool allowed(int err)
{
	static const int errors[] = {
		0, ECONNRESET, EPIPE, ETIMEDOUT, ENETDOWN, ENODEV, ECONNABORTED, ECANCELED, EIO,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (err == errors[i])
			return true;
	return false;
}

/* All events, each once; those that succeed in order. Return: how many do. */
static int load_end(struct load *l)
{
	int last[2] = { -1, -1 }, i, handle, good = 0;
	bool seen[2 * OPS] = {};
	exs_event_t ev;

	for (i = 0; i < 2 * OPS; i++) {
		ev = event_next(l->q);
		handle = ev.exs_evt_ahandle;
		check(!seen[handle], "a second event for operation %d", handle);
		seen[handle] = true;
		check(allowed(ev.exs_evt_errno), "%s ended with %s", event_name(ev.exs_evt_type),
		      errno_name(ev.exs_evt_errno));
		if (ev.exs_evt_errno)
			continue;
		check(handle > last[handle / OPS], "%s %d after %d", event_name(ev.exs_evt_type),
		      handle, last[handle / OPS]);
		last[handle / OPS] = handle;
		good++;
	}
	no_event(l->q);
	return good;
}

struct peer {
	struct pair p;
	struct pipe_pair go;
};

/* It serves half of what the other side asks for: the kernel would do all of it while this process does nothing. */
static void peer_works(void *arg)
{
	struct peer *peer = arg;
	struct load l;

	close(peer->p.c);
	hear(peer->go.rd);
	load_some(&l, peer->p.s, OPS / 2);
	/* Some have ended, some are under way. */
	event_next(l.q);
	event_next(l.q);
	raise(SIGKILL);
}

static void peer_killed(void)
{
	struct peer peer = { .go = pipe_open() };
	int fd, good;
	struct load l;
	pid_t pid;

	pair_open(&peer.p);
	fd = peer.p.c;
	pid = spawn(peer_works, &peer);
	close(peer.p.s);
	load_start(&l, fd);
	/* Only now, as nothing can be sent to a peer that is dead already. */
	tell(peer.go.wr, 1);
	check(WIFSIGNALED(reap(pid)), "the peer was not killed");
	good = load_end(&l);
	check(good < 2 * OPS, "all operations succeeded without a peer");
	/* The socket has the reason, or reports the end. */
	poll_wait(fd, POLLIN);
	check(send(fd, "x", 1, MSG_NOSIGNAL) < 0, "send to a dead peer succeeds");
}

static void peer_works_plain(void *arg)
{
	struct pair *p = arg;

	close(p->c);
	recv_all(p->s, 1, 0, 300000);
	raise(SIGKILL);
}

/* Plain calls: a blocked send(2) comes back. */
static void peer_killed_plain(void)
{
	static char buf[30000];
	struct pair p;
	uint64_t pos = 0;
	pid_t pid;
	ssize_t n;

	pair_open(&p);
	pid = spawn(peer_works_plain, &p);
	close(p.s);
	do {
		data_fill(1, pos, buf, sizeof(buf));
		n = send(p.c, buf, sizeof(buf), MSG_NOSIGNAL);
		pos += n > 0 ? n : 0;
		check(pos < 256ull * MIB, "256 MiB went to a dead peer");
	} while (n > 0);
	check(errno == ECONNRESET || errno == EPIPE, "send: %s", errno_name(errno));
	reap(pid);
}

/* A peer that does not read is asked now and then whether it is there; its answer is enough. */
static void peer_does_not_read(void)
{
	struct pair p;
	size_t sent;

	/* Half of it is for each answer, which may be a while on its way. */
	write_sysctl("stall_timeout", 12000);
	pair_open(&p);
	sent = send_until_full(p.c, 1);
	wait_delta("stall_probes", 2);
	recv_all(p.s, 1, 0, sent);
	must_be(send(p.s, "x", 1, 0), 1);
	must_be(delta("stall_timeout"), 0);
}

static void child_with_load(void *arg)
{
	struct load l;

	load_start(&l, *(int *)arg);
	event_next(l.q);
	raise(SIGKILL);
}

/* The killed process was not the only one with the socket: the connection lives. */
static void sharer_killed(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	pid = spawn(child_with_load, &p.c);
	must_be(recv(p.s, malloc(PIECE), PIECE, MSG_WAITALL), PIECE);
	must_be(reap(pid), SIGKILL);
	wait_until(!counter("live_ops") && !counter("live_pinned_pages"));
	check(!(poll_now(p.c, 0) & (POLLERR | POLLHUP)), "the connection died with one of its users");
}

/* -- the device goes */

static void delete_in_transfer(void *arg)
{
	struct load a, b;
	struct pair p;

	(void)arg;
	pair_open(&p);
	load_start(&a, p.c);
	load_start(&b, p.s);
	event_next(a.q);
	delete_device();
	wait_delta("resets_device", 1);
	/* One event of the first is taken already. */
	wait_until(queue_attr(a.q, EXS_ATTR_POSTED) == 2 * OPS);
	load_end(&b);
	check(poll_now(p.c, 0) & POLLHUP && poll_now(p.s, 0) & POLLHUP, "no hang-up without a device");
	check(send(p.c, "x", 1, MSG_NOSIGNAL) < 0, "send without a device succeeds");
	wait_until(!counter("live_endpoints") && !counter("live_mrs"));
}

static void device_deleted(void)
{
	with_device_restored(delete_in_transfer);
}

static void delete_idle(void *arg)
{
	int fd, err;
	char byte;
	struct pair p;

	(void)arg;
	fd = listener(4);
	pair_from(&p, fd);
	delete_device();
	must_fail(recv(p.c, &byte, 1, 0), ENETDOWN);
	err = so_error(p.s);
	check(err == ENETDOWN || err == ECONNRESET, "SO_ERROR is %s", errno_name(err));
	add_device();
	/* A new listener works; the old one is closed cleanly, whether it has come back or not. */
	close(fd);
	pair_open(&p);
	send_all(p.c, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
}

static void device_deleted_idle(void)
{
	with_device_restored(delete_idle);
}

/* The device under a listener goes and comes back: so does the listener. */
static void delete_below_listener(void *arg)
{
	int fd = listener(4);
	struct pair p;

	(void)arg;
	delete_device();
	wait_delta("resets_device", 1);
	add_device();
	wait_delta("listens_again", 1);
	pair_from(&p, fd);
	send_all(p.c, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
}

static void device_deleted_listening(void)
{
	with_device_restored(delete_below_listener);
}

/* One that is closed while it has no device gives up for good, and its port with it. */
static void close_without_device(void *arg)
{
	int fd = listener(4);
	union address at = name_of(fd);

	(void)arg;
	delete_device();
	wait_delta("resets_device", 1);
	close(fd);
	add_device();
	fd = new_socket();
	must(bind(fd, &at.sa, address_len(&at)));
	must(listen(fd, 4));
	client_of(fd);
}

static void device_deleted_closing(void)
{
	with_device_restored(close_without_device);
}

static void delete_with_backlog(void *arg)
{
	int fd = listener(8), c[4], i;
	char byte;

	(void)arg;
	for (i = 0; i < 4; i++)
		c[i] = client_of(fd);
	delete_device();
	for (i = 0; i < 4; i++)
		check(recv(c[i], &byte, 1, 0) < 0, "recv without a device succeeds");
	close(fd);
	wait_until(!counter("live_endpoints"));
}

static void device_deleted_backlog(void)
{
	with_device_restored(delete_with_backlog);
}

/* The errors of asynchronous operations. */
static void delete_below_operations(void *arg)
{
	enum { SEND, SHUT, CLOSE };
	char *buf = pages(8 * MIB);
	exs_qhandle_t q[3], rest = queue_new(2);
	struct pair p[3];
	int i;

	(void)arg;
	for (i = 0; i < 3; i++) {
		q[i] = queue_new(1);
		pair_open(&p[i]);
		start_send(p[i].c, buf, 8 * MIB, i == SEND ? q[SEND] : rest, i, NO_REGION);
	}
	must(exs_shutdown(p[SHUT].c, SHUT_WR, q[SHUT], SHUT));
	must(exs_close(p[CLOSE].c, 0, q[CLOSE], CLOSE));
	delete_device();
	event_is(q[SEND], EXS_EVT_SEND, SEND, ENETDOWN, 0);
	event_is(q[SHUT], EXS_EVT_SHUTDOWN, SHUT, ENETDOWN, 0);
	event_is(q[CLOSE], EXS_EVT_CLOSE, CLOSE, ENETDOWN, 0);
}

static void device_deleted_operations(void)
{
	with_device_restored(delete_below_operations);
}

/* Bound to an address whose device is gone. */
static void delete_below_bound(void *arg)
{
	union address at = address_of(SERVER, 0), to = address_of(SERVER, 9);
	exs_qhandle_t q = queue_new(1);
	int c = new_socket(), s = new_socket();

	(void)arg;
	must(bind(c, &at.sa, address_len(&at)));
	must(bind(s, &at.sa, address_len(&at)));
	delete_device();
	must_fail(exs_listen(s, 1), ENODEV);
	must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 1), ENODEV);
	no_event(q);
}

static void device_deleted_bound(void)
{
	with_device_restored(delete_below_bound);
}

static void use_without_device(void *arg)
{
	union address at = address_of(SERVER, 0), to = address_of(SERVER, 9);
	int fd;

	(void)arg;
	delete_device();
	fd = new_socket();
	check(bind(fd, &at.sa, address_len(&at)) < 0 && (errno == ENODEV || errno == EADDRNOTAVAIL),
	      "bind without a device: %s", errno_name(errno));
	fd = new_socket();
	check(connect(fd, &to.sa, address_len(&to)) < 0 &&
	      (errno == ENODEV || errno == ENETUNREACH || errno == EHOSTUNREACH || errno == ENETDOWN),
	      "connect without a device: %s", errno_name(errno));
	set_nonblock(fd, true);
	if (connect(fd, &to.sa, address_len(&to)) && errno == EINPROGRESS) {
		wait_io(fd, POLLERR);
		check(so_error(fd), "no error without a device");
	}
	queue_new(4);
	add_device();
	must(bind(new_socket(), &at.sa, address_len(&at)));
}

static void no_device(void)
{
	with_device_restored(use_without_device);
}

static void connect_while_deleting(void *arg)
{
	int fd = listener(64), c[16], i, err;
	union address to = name_of(fd);

	(void)arg;
	for (i = 0; i < 16; i++) {
		c[i] = new_socket();
		set_nonblock(c[i], true);
		must_fail(connect(c[i], &to.sa, address_len(&to)), EINPROGRESS);
	}
	delete_device();
	for (i = 0; i < 16; i++) {
		wait_io(c[i], POLLERR | POLLHUP);
		err = so_error(c[i]);
		check(err, "a connection without a device and no error");
	}
}

static void device_deleted_connecting(void)
{
	with_device_restored(connect_while_deleting);
}

static void netdev_down(void *arg)
{
	struct load a, b;
	struct pair p;

	(void)arg;
	pair_open(&p);
	load_start(&a, p.c);
	load_start(&b, p.s);
	shell("ip link delete rxe0dev");
	load_end(&a);
	load_end(&b);
}

/* The network interface below the RDMA device goes, and takes it along. */
static void netdev_deleted(void)
{
	pid_t pid = spawn(netdev_down, NULL);
	int end = reap(pid);

	shell("/exs/tests/vm/setup one >/dev/null");
	check(!end, "the case ended with %#x", end);
}

/* -- a bond fails over, and has the address of its other device then */

#define BOND_ADDRESS	"10.76.0.1"

static void add_bond(void)
{
	shell("ip link add bond0 type bond mode active-backup fail_over_mac active");
	shell("ip link add bond0a type dummy && ip link set bond0a master bond0");
	shell("ip link add bond0b type dummy && ip link set bond0b master bond0");
	shell("ip link set bond0 up && ip addr add " BOND_ADDRESS "/24 dev bond0");
	shell("rdma link add rxe1 type rxe netdev bond0");
	e2e.address[CLIENT] = BOND_ADDRESS;
	e2e.address[SERVER] = BOND_ADDRESS;
}

static void fail_over(void *arg)
{
	struct pair p;
	int fd, err;
	char byte;

	(void)arg;
	add_bond();
	fd = listener(4);
	pair_from(&p, fd);
	shell("ip link set bond0 type bond active_slave bond0b");
	must_fail(recv(p.c, &byte, 1, 0), ENETDOWN);
	err = so_error(p.s);
	check(err == ENETDOWN || err == ECONNRESET, "SO_ERROR is %s", errno_name(err));
	wait_delta("listens_again", 1);
	pair_from(&p, fd);
	send_all(p.c, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
}

static void bond_fails_over(void)
{
	int end;

	if (system("modprobe -q bonding max_bonds=0"))
		skip("this kernel has no bonds");
	end = reap(spawn(fail_over, NULL));
	if (!access("/sys/class/infiniband/rxe1", F_OK))
		shell("rdma link delete rxe1");
	shell("for d in bond0 bond0a bond0b; do [ ! -e /sys/class/net/$d ] || ip link delete $d; done");
	check(!end, "the case ended with %#x", end);
}

static const struct e2e_case cases[] = {
	{ "peer_killed", peer_killed, .on = ON_BOTH },
	{ "peer_killed_plain", peer_killed_plain, .on = ON_BOTH | ON_TCP },
	{ "peer_does_not_read", peer_does_not_read, .on = ON_BOTH },
	{ "sharer_killed", sharer_killed, .on = ON_STREAM },
	{ "device_deleted", device_deleted, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_deleted_idle", device_deleted_idle, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_deleted_backlog", device_deleted_backlog, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_deleted_listening", device_deleted_listening, .on = ON_ALL6, .needs = NEEDS_ONE },
	{ "device_deleted_closing", device_deleted_closing, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "device_deleted_connecting", device_deleted_connecting, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_deleted_operations", device_deleted_operations, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "device_deleted_bound", device_deleted_bound, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "no_device", no_device, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "netdev_deleted", netdev_deleted, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "bond_fails_over", bond_fails_over, .on = ON_BOTH, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
