// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs of cgroups decide about bind() and connect(), and change addresses; those of a sockmap read data. TCP is
 * the reference.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNT	"/run/exs/filter"

#define PORT	7777

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The cgroup of a case, whose process leaves it in the end. */
static char group[64];

static void enter_group(const char *path)
{
	char procs[100];
	FILE *f;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "w");
	check(f && fputs("0", f) >= 0 && !fclose(f), "cannot enter %s: %s", path, errno_name(errno));
}

static int own_group(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	must(unshare(CLONE_NEWNS));
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (mkdir(MOUNT, 0755))
		must_be(errno, EEXIST);
	must(mount("none", MOUNT, "cgroup2", 0, NULL));
	snprintf(group, sizeof(group), MOUNT "/exs_filter.%d", getpid());
	must(mkdir(group, 0755));
	enter_group(group);
	fd = must(open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return fd;
}

/* The programs go with it. */
static void leave_group(void)
{
	enter_group(MOUNT);
	must(rmdir(group));
}

#define LOAD(to, field)	{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = to, .src_reg = BPF_REG_1,	\
			  .off = offsetof(struct bpf_sock_addr, field) }
#define STORE(field, from) { .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_1, .src_reg = from,	\
			  .off = offsetof(struct bpf_sock_addr, field) }
#define SET(to, value)	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to, .imm = value }
#define SKIP_UNLESS(reg, value, n) { .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = reg, .imm = value, .off = n }
#define RETURN		{ .code = BPF_JMP | BPF_EXIT }

/* The context of a program: a socket instead of an address. */
static bool takes_socket(int type)
{
	return type == BPF_CGROUP_INET_SOCK_CREATE || type == BPF_CGROUP_INET_SOCK_RELEASE ||
	       type == BPF_CGROUP_INET4_POST_BIND || type == BPF_CGROUP_INET6_POST_BIND;
}

static void attach_to(int target, int kind, const struct bpf_insn *program, int n, int type)
{
	static char log[4096];
	union bpf_attr load = {
		.prog_type = kind, .expected_attach_type = type,
		.insns = (uintptr_t)program, .insn_cnt = n, .license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log, .log_size = sizeof(log), .log_level = 1,
	};
	int fd = bpf(BPF_PROG_LOAD, &load);
	union bpf_attr attr = { .attach_bpf_fd = fd, .attach_type = type, .target_fd = target };

	check(fd >= 0, "no such program: %s: %s", errno_name(errno), log);
	must(bpf(BPF_PROG_ATTACH, &attr));
}

static void attach(const struct bpf_insn *program, int n, int type)
{
	attach_to(own_group(), takes_socket(type) ? BPF_PROG_TYPE_CGROUP_SOCK : BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
		  program, n, type);
}

static int side(int in4, int in6)
{
	return e2e.domain == AF_INET6 ? in6 : in4;
}

/* PORT is forbidden to this process from now on. */
static void forbid_port(int type)
{
	const struct bpf_insn program[] = {
		LOAD(BPF_REG_2, user_port),
		SET(BPF_REG_0, 1),
		SKIP_UNLESS(BPF_REG_2, htons(PORT), 1),
		SET(BPF_REG_0, 0),
		RETURN,
	};

	attach(program, ARRAY_SIZE(program), type);
}

/* A socket that asks for PORT gets @port; another port is allowed, or not. */
static void redirect(int port, bool others, int type)
{
	const struct bpf_insn program[] = {
		LOAD(BPF_REG_2, user_port),
		SET(BPF_REG_0, others),
		SKIP_UNLESS(BPF_REG_2, htons(PORT), 3),
		SET(BPF_REG_3, htons(port)),
		STORE(user_port, BPF_REG_3),
		SET(BPF_REG_0, 1),
		RETURN,
	};

	attach(program, ARRAY_SIZE(program), type);
}

/* A program may see as much as of a TCP socket. */
static void only_tcp(int type)
{
	const struct bpf_insn program[] = {
		SET(BPF_REG_0, 0),
		LOAD(BPF_REG_2, family),
		SKIP_UNLESS(BPF_REG_2, e2e.domain == AF_INET6 ? AF_INET6 : AF_INET, 5),
		LOAD(BPF_REG_2, type),
		SKIP_UNLESS(BPF_REG_2, SOCK_STREAM, 3),
		LOAD(BPF_REG_2, protocol),
		SKIP_UNLESS(BPF_REG_2, IPPROTO_TCP, 1),
		SET(BPF_REG_0, 1),
		RETURN,
	};

	attach(program, ARRAY_SIZE(program), type);
}

/* The length that bind() and connect() must get at least: an IPv6 address may be without its scope. */
static socklen_t shortest(const union address *a)
{
	return a->sa.sa_family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_scope_id) : address_len(a);
}

static void connect_forbidden(void)
{
	union address to, other = address_of(SERVER, PORT);
	exs_qhandle_t q = queue_new(2);
	int fd = listener(4), c;

	to = name_of(fd);
	forbid_port(side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	c = new_socket();
	must_fail(connect(c, &other.sa, address_len(&other)), EPERM);
	must_fail(connect(c, &other.sa, shortest(&other)), EPERM);
	must_fail(exs_connect(c, &other.sa, address_len(&other), 0, q, 1), EPERM);
	no_event(q);
	/* The refused one has no effect, and others are allowed. */
	must(connect(c, &to.sa, address_len(&to)));
	leave_group();
}

static void connect_redirected(void)
{
	union address to, other = address_of(SERVER, PORT), got;
	int fd = listener(4), c;

	to = name_of(fd);
	redirect(port_of(&to), true, side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	c = new_socket();
	must(connect(c, &other.sa, address_len(&other)));
	got = peer_of(c);
	must_be(port_of(&got), port_of(&to));
	must(accept(fd, NULL, NULL));
	leave_group();
}

static int tcp_listener(union address at)
{
	int l = must(socket(e2e.domain, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));

	must(bind(l, &at.sa, address_len(&at)));
	must(listen(l, 4));
	return l;
}

/* A program sees each connect(2) once, whether EXS or TCP connects, at once or later. */
static void connect_once(void)
{
	union address to, other = address_of(SERVER, PORT);
	int l = tcp_listener(address_of(SERVER, 0)), c, i;

	to = name_of(l);
	redirect(port_of(&to), false, side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	e2e.fallback = 1;
	for (i = 0; i < 2; i++) {
		c = new_socket();
		set_nonblock(c, i);
		if (connect(c, &other.sa, address_len(&other)))
			must_be(errno, EINPROGRESS);
		wait_io(c, POLLOUT);
		must_be(so_error(c), 0);
		must(accept(l, NULL, NULL));
	}
	leave_group();
}

static void bind_forbidden(void)
{
	union address at = address_of(SERVER, PORT);
	int fd;

	forbid_port(side(BPF_CGROUP_INET4_BIND, BPF_CGROUP_INET6_BIND));
	fd = new_socket();
	must_fail(bind(fd, &at.sa, address_len(&at)), EPERM);
	must_fail(bind(fd, &at.sa, shortest(&at)), EPERM);
	at = address_of(SERVER, PORT + 1);
	must(bind(fd, &at.sa, address_len(&at)));
	leave_group();
}

static void bind_redirected(void)
{
	union address at = address_of(SERVER, PORT), got;
	int fd;

	redirect(PORT + 2, true, side(BPF_CGROUP_INET4_BIND, BPF_CGROUP_INET6_BIND));
	fd = new_socket();
	must(bind(fd, &at.sa, address_len(&at)));
	got = name_of(fd);
	must_be(port_of(&got), PORT + 2);
	leave_group();
}

#define CALL(number)	{ .code = BPF_JMP | BPF_CALL, .imm = number }

/* A program may choose the device. */
static void device_of_program(void)
{
	const struct bpf_insn program[] = {
		/* bpf_setsockopt(context, SOL_SOCKET, SO_BINDTODEVICE, "lo", 4) */
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -8, .imm = 'l' | 'o' << 8 },
		SET(BPF_REG_2, SOL_SOCKET),
		SET(BPF_REG_3, SO_BINDTODEVICE),
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_4, .imm = -8 },
		SET(BPF_REG_5, 4),
		CALL(BPF_FUNC_setsockopt),
		SET(BPF_REG_0, 1),
		RETURN,
	};
	union address to;
	char name[16] = "";
	socklen_t len = sizeof(name);
	int c, l = tcp_listener(address_from(e2e.domain, e2e.domain == AF_INET ? "127.0.0.1" : "::1", 0));

	to = name_of(l);
	attach(program, ARRAY_SIZE(program), side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	e2e.fallback = 1;
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	must(getsockopt(c, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	check(!strcmp(name, "lo"), "it is bound to '%s'", name);
	leave_group();
}

/* Likewise each bind(2). */
static void bind_once(void)
{
	union address at = address_of(SERVER, PORT), got;
	int fd;

	redirect(PORT + 3, false, side(BPF_CGROUP_INET4_BIND, BPF_CGROUP_INET6_BIND));
	e2e.fallback = 1;
	fd = new_socket();
	must(bind(fd, &at.sa, address_len(&at)));
	got = name_of(fd);
	must_be(port_of(&got), PORT + 3);
	leave_group();
}

static void shown_as_tcp(void)
{
	union address to;
	int fd = listener(4);

	to = name_of(fd);
	only_tcp(side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	must(connect(new_socket(), &to.sa, address_len(&to)));
	leave_group();
}

static void names_have_port(int port, int type)
{
	const struct bpf_insn program[] = {
		SET(BPF_REG_3, htons(port)),
		STORE(user_port, BPF_REG_3),
		SET(BPF_REG_0, 1),
		RETURN,
	};

	attach(program, ARRAY_SIZE(program), type);
}

static void own_names_have_port(void)
{
	names_have_port(PORT, side(BPF_CGROUP_INET4_GETSOCKNAME, BPF_CGROUP_INET6_GETSOCKNAME));
}

/* Names, too: the service has PORT, whatever port it really has. */
static void names_changed(void)
{
	union address to, name, peer;
	int l = listener(1), c;

	to = name_of(l);
	own_names_have_port();
	c = new_socket();
	must(connect(c, &to.sa, address_len(&to)));
	name = name_of(c);
	peer = peer_of(c);
	must_be(port_of(&name), PORT);
	check(same_address(&peer, &to), "a program for own names changes others");
	names_have_port(PORT + 1, side(BPF_CGROUP_INET4_GETPEERNAME, BPF_CGROUP_INET6_GETPEERNAME));
	name = name_of(c);
	peer = peer_of(c);
	must_be(port_of(&name), PORT);
	must_be(port_of(&peer), PORT + 1);
	leave_group();
}

/* The socket's cgroup counts, not the caller's. */
static void of_the_socket(void)
{
	union address to = address_of(SERVER, PORT);
	int before = new_socket();

	forbid_port(side(BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT));
	must_fail(connect(before, &to.sa, address_len(&to)), ECONNREFUSED);
	must_fail(connect(new_socket(), &to.sa, address_len(&to)), EPERM);
	leave_group();
}

static int accepted_later(int l)
{
	exs_qhandle_t q = queue_new(1);
	exs_event_t ev;

	must(exs_accept(l, NULL, 0, q, 1));
	ev = event_next(q);
	must_be(ev.exs_evt_errno, 0);
	return event_newfd(&ev);
}

/* In every way: by accept(2), and by an operation. */
static void accepted_have_port(int l, const union address *to, bool have)
{
	union address names[2];
	int i;

	for (i = 0; i < 2; i++)
		must(connect(socket_on(CLIENT), &to->sa, address_len(to)));
	names[0] = name_of(must(accept(l, NULL, NULL)));
	names[1] = name_of(accepted_later(l));
	for (i = 0; i < 2; i++)
		check((port_of(&names[i]) == PORT) == have, "socket %d has port %d", i, port_of(&names[i]));
}

/* An accepted socket is in the listener's cgroup, whichever process accepts it. */
static void of_the_listener(void)
{
	union address before, inside = address_of(SERVER, free_port());
	int fd = listener(2);

	before = name_of(fd);
	own_names_have_port();
	accepted_have_port(fd, &before, false);
	/* Its name would not tell where it is. */
	fd = new_socket();
	must(bind(fd, &inside.sa, address_len(&inside)));
	must(listen(fd, 2));
	enter_group(MOUNT);
	accepted_have_port(fd, &inside, true);
	leave_group();
}

/* So is the TCP socket beside it, which is bound, too. */
static void of_the_one_beside(void)
{
	union address at = address_of(SERVER, PORT);
	int before;

	e2e.fallback = 1;
	before = new_socket();
	forbid_port(side(BPF_CGROUP_INET4_BIND, BPF_CGROUP_INET6_BIND));
	must_fail(bind(new_socket(), &at.sa, address_len(&at)), EPERM);
	must(bind(before, &at.sa, address_len(&at)));
	leave_group();
}

/* A program that only counts how often it runs: in the number that is returned. */
static int count_runs(int type)
{
	union bpf_attr one = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1,
	};
	int map = must(bpf(BPF_MAP_CREATE, &one));
	const struct bpf_insn program[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{},
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4 },
		CALL(BPF_FUNC_map_lookup_elem),
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 2 },
		SET(BPF_REG_1, 1),
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1, .imm = BPF_ADD },
		SET(BPF_REG_0, 1),
		RETURN,
	};

	attach(program, ARRAY_SIZE(program), type);
	return map;
}

static long runs(int map)
{
	uint64_t value = 0;
	uint32_t key = 0;
	union bpf_attr attr = { .map_fd = map, .key = (uintptr_t)&key, .value = (uintptr_t)&value };

	must(bpf(BPF_MAP_LOOKUP_ELEM, &attr));
	return value;
}

/* Not for AF_EXS, which is not one of their families. */
static void made_and_released(void)
{
	int made = count_runs(BPF_CGROUP_INET_SOCK_CREATE), released = count_runs(BPF_CGROUP_INET_SOCK_RELEASE);
	long want = e2e.tcp || e2e.protocol;
	int fd;

	e2e.fallback = 1;
	fd = new_socket();
	must_be(runs(made), want);
	must_be(runs(released), 0);
	close(fd);
	must_be(runs(made), want);
	must_be(runs(released), want);
	leave_group();
}

/* After bind(2): the TCP socket beside ours is bound as any is; without one the programs see no bind(). */
static void bound_before(void)
{
	const struct bpf_insn forbid[] = { SET(BPF_REG_0, 0), RETURN };
	union address at = address_of(SERVER, 0);

	attach(forbid, ARRAY_SIZE(forbid), side(BPF_CGROUP_INET4_POST_BIND, BPF_CGROUP_INET6_POST_BIND));
	if (!e2e.tcp)
		must(bind(new_socket(), &at.sa, address_len(&at)));
	e2e.fallback = 1;
	must_fail(bind(new_socket(), &at.sa, address_len(&at)), EPERM);
	leave_group();
}

static int new_sockmap(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = sizeof(int), .value_size = sizeof(int), .max_entries = 1,
	};

	return must(bpf(BPF_MAP_CREATE, &attr));
}

static void add_to_sockmap(int map, int fd)
{
	int key = 0;
	union bpf_attr attr = { .map_fd = map, .key = (uintptr_t)&key, .value = (uintptr_t)&fd };

	must(bpf(BPF_MAP_UPDATE_ELEM, &attr));
}

/* Programs read what arrives before the socket gets it: whole packets, or messages of a parser. */
static void reads_for_program(bool parser)
{
	const struct bpf_insn whole[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1,
		  .off = offsetof(struct __sk_buff, len) },
		RETURN,
	};
	const struct bpf_insn pass[] = { SET(BPF_REG_0, SK_PASS), RETURN };
	int map = new_sockmap(), l = tcp_listener(address_of(SERVER, 0)), c = new_socket(), s;
	union address to = name_of(l);

	must(connect(c, &to.sa, address_len(&to)));
	s = must(accept(l, NULL, NULL));
	if (parser)
		attach_to(map, BPF_PROG_TYPE_SK_SKB, whole, ARRAY_SIZE(whole), BPF_SK_SKB_STREAM_PARSER);
	attach_to(map, BPF_PROG_TYPE_SK_SKB, pass, ARRAY_SIZE(pass), BPF_SK_SKB_STREAM_VERDICT);
	add_to_sockmap(map, c);
	send_all(s, 1, 0, 1000);
	recv_all(c, 1, 0, 1000);
	send_all(c, 2, 0, 1000);
	recv_all(s, 2, 0, 1000);
	close(c);
	close(s);
	close(map);
}

/* Of a socket that is TCP's by now, too. */
static void sockmap(void)
{
	e2e.fallback = 1;
	reads_for_program(false);
	reads_for_program(true);
}

static const struct e2e_case cases[] = {
	{ "connect_forbidden", connect_forbidden, .on = ON_ALL6 | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "connect_redirected", connect_redirected, .on = ON_ALL6 | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "connect_once", connect_once, .on = ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "bind_forbidden", bind_forbidden, .on = ON_ALL6 | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "bind_redirected", bind_redirected, .on = ON_ALL6 | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "device_of_program", device_of_program, .on = ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "bind_once", bind_once, .on = ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "shown_as_tcp", shown_as_tcp, .on = ON_STREAM6 | ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "names_changed", names_changed, .on = ON_STREAM | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "of_the_socket", of_the_socket, .on = ON_STREAM | ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "of_the_listener", of_the_listener, .on = ON_STREAM | ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "sockmap", sockmap, .on = ON_TCP | ON_INET, .needs = NEEDS_ONE },
	{ "of_the_one_beside", of_the_one_beside, .on = ON_INET, .needs = NEEDS_ONE },
	{ "made_and_released", made_and_released, .on = ON_STREAM | ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{ "bound_before", bound_before, .on = ON_TCP | ON_FACES, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
