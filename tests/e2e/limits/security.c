// SPDX-License-Identifier: GPL-2.0
/* Security modules decide about the calls as about plain ones, on every kind of socket. */
#include "lib/kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static char byte;

/* -- Landlock: which TCP ports may be bound and connected to */

/* The kernel's, which older headers do not have. */
struct landlock_rules { uint64_t fs, net; };
struct landlock_port { uint64_t allowed, port; };

enum {
	LANDLOCK_VERSION = 1,		/* flag: only ask for the ABI */
	LANDLOCK_NET = 4,		/* the ABI that knows ports   */
	LANDLOCK_RULE_PORT = 2,
	LANDLOCK_BIND_TCP = 1,
	LANDLOCK_CONNECT_TCP = 2,
};

/* From now on this thread may only connect to @port, and bind to none. */
static void landlock(int port)
{
	struct landlock_rules rules = { .net = LANDLOCK_BIND_TCP | LANDLOCK_CONNECT_TCP };
	struct landlock_port rule = { LANDLOCK_CONNECT_TCP, port };
	int fd, abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	if (abi < 0)
		skip("no Landlock in this kernel (%s)", errno_name(errno));
	if (abi < LANDLOCK_NET)
		skip("Landlock of this kernel knows no ports (ABI %d)", abi);
	fd = must(syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0));
	must(syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PORT, &rule, 0));
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(syscall(SYS_landlock_restrict_self, fd, 0));
	close(fd);
}

static void landlock_connect(const struct kind *k)
{
	exs_qhandle_t q = queue_new(2);
	int fd = kind_listening(k), other = kind_listening(k), c = kind_socket(k);
	union address to = name_of(fd), wrong = name_of(other);

	landlock(port_of(&to));
	must_fail(exs_connect(c, &wrong.sa, address_len(&wrong), 0, EXS_QHANDLE_INVALID, 1), EACCES);
	must_fail(exs_connect(c, &wrong.sa, address_len(&wrong), 0, q, 1), EACCES);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 2));
	event_is(q, EXS_EVT_CONNECT, 2, 0, 0);
	/* No peer was there meanwhile. */
	set_nonblock(other, true);
	must_fail(accept(other, NULL, NULL), EAGAIN);
}
FOR_KIND(landlock_connect, tcp)
FOR_KIND(landlock_connect, tcp6)

static void landlock_bind(void)
{
	union address any = address_from(AF_INET, "10.77.0.1", 7777);
	int fd = kind_socket(&kind_tcp);

	landlock(7777);
	must_fail(exs_bind(fd, &any.sa, address_len(&any)), EACCES);
	must(exs_bind(kind_socket(&kind_udp), &any.sa, address_len(&any)));
}

/* However this kernel's Landlock treats the family, it treats both calls alike. */
static void landlock_native(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = listener(4), err, c;
	union address to = name_of(fd);

	landlock(1);
	c = must(socket(e2e.family, SOCK_STREAM, 0));
	err = connect(c, &to.sa, address_len(&to)) ? errno : 0;
	c = must(socket(e2e.family, SOCK_STREAM, 0));
	if (err) {
		must_fail(exs_connect(c, &to.sa, address_len(&to), 0, q, 1), err);
		no_event(q);
	} else {
		must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
		event_is(q, EXS_EVT_CONNECT, 1, 0, 0);
	}
}

/* Return: 0, or the error of a connect(2) or bind(2) of a new socket of IPPROTO_EXS. */
static int inet_call(int (*call)(int fd, const struct sockaddr *addr, socklen_t len),
		     const union address *to, int fallback)
{
	int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, EXS_PROTOCOL_DEFAULT));
	int err;

	set_int(fd, SOL_EXS, EXS_SO_FALLBACK, fallback);
	err = call(fd, &to->sa, address_len(to)) ? errno : 0;
	close(fd);
	return err;
}

/*
 * IPPROTO_EXS is not TCP, and no security module is asked about a fallback, as exs(7) says. Some versions of Landlock
 * treat each stream socket as TCP, and refuse both ways.
 */
static void landlock_fallback(void)
{
	int l = kind_listening(&kind_tcp), tcp = kind_socket(&kind_tcp), err;
	union address to = name_of(l), any = address_from(AF_INET, "10.77.0.1", 0);

	landlock(1);
	must_fail(connect(tcp, &to.sa, address_len(&to)), EACCES);
	must_fail(bind(tcp, &any.sa, address_len(&any)), EACCES);
	err = inet_call(bind, &any, 1);
	check(!err || err == EACCES, "bind: %s", errno_name(err));
	must_be(inet_call(bind, &any, 0), err);
	must_be(inet_call(bind, &any, EXS_FALLBACK_NOW), EACCES);
	must_be(inet_call(connect, &to, 0), err ?: ECONNREFUSED);
	must_be(inet_call(connect, &to, 1), err);
	/* It was TCP's before the call. */
	must_be(inet_call(connect, &to, EXS_FALLBACK_NOW), EACCES);
}

/*
 * -- AppArmor, on all kernels: a profile without streams of IPv4 and of AF_EXS, whose number
 * it knows as "wanpipe". It is entered when sockets are there, so every call meets the hook
 * of its own: socket_bind, _listen, _accept, _connect, _sendmsg (files, too), _recvmsg,
 * _shutdown. No security module is asked about poll(2), so exs_poll() is not refused either.
 */

#define SECURITYFS	"/sys/kernel/security"

#define NO_STREAMS	"deny network inet stream, deny network wanpipe stream,"

static void write_to(const char *path, const char *text)
{
	int fd = must(open(path, O_WRONLY | O_CLOEXEC));

	must_be(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool apparmor_on(void)
{
	FILE *file = fopen("/sys/module/apparmor/parameters/enabled", "re");
	bool on = file && fgetc(file) == 'Y';

	if (file)
		fclose(file);
	return on;
}

/* Allows everything except @deny. @how: what happens to it. */
static void profile(const char *how, const char *name, const char *deny)
{
	char command[100];
	FILE *parser;

	snprintf(command, sizeof(command), "apparmor_parser %s --skip-cache", how);
	parser = popen(command, "we");
	check(parser, "no pipe to %s", command);
	fprintf(parser, "profile %s flags=(attach_disconnected) {\n"
		"  file, capability, network, signal, ptrace, unix,\n  %s\n}\n", name, deny);
	check(!pclose(parser), "%s failed", command);
}

/* The objects that were there before the profile was entered. */
struct before {
	exs_qhandle_t q;
	int listener, socket, file;
	union address to, any;
	struct pair p;
	bool native;		/* AF_EXS */
};

static void before_native(struct before *b)
{
	b->native = true;
	b->listener = listener(4);
	b->socket = new_socket();
	client_of(b->listener);
	pair_open(&b->p);
}

static void before_tcp(struct before *b)
{
	union address to;

	b->listener = kind_listening(&kind_tcp);
	b->socket = kind_socket(&kind_tcp);
	to = name_of(b->listener);
	must(connect(kind_socket(&kind_tcp), &to.sa, address_len(&to)));
	kind_pair(&kind_tcp, &b->p);
}

static void no_setting_up(const struct before *b)
{
	socklen_t len = address_len(&b->to);

	must_fail(exs_accept(b->listener, NULL, 0, EXS_QHANDLE_INVALID, 1), EACCES);
	must_fail(exs_bind(b->socket, &b->any.sa, len), EACCES);
	must_fail(exs_listen(b->socket, 1), EACCES);
	must_fail(exs_connect(b->socket, &b->to.sa, len, 0, EXS_QHANDLE_INVALID, 1), EACCES);
	must_fail(exs_connect(b->socket, &b->to.sa, len, 0, b->q, 2), EACCES);
}

static void no_transfers(int fd, exs_qhandle_t q)
{
	exs_iovec_t iov = { &byte, 1, NO_REGION };
	exs_msghdr_t msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	must_fail(exs_send(fd, &byte, 1, 0, q, 3, NO_REGION), EACCES);
	must_fail(exs_recv(fd, &byte, 1, 0, q, 4, NO_REGION), EACCES);
	must_fail(exs_sendmsg(fd, &msg, 0, q, 5), EACCES);
	must_fail(exs_recvmsg(fd, &msg, 0, q, 6), EACCES);
}

/* An ordinary socket is asked once the file has been read. */
static void no_sendfile(const struct before *b)
{
	exs_xferfile_t x = { .xf_file = { b->file, 0, 1 } };

	must_fail(exs_sendfile(b->p.c, &x, 0, EXS_QHANDLE_INVALID, 7), EACCES);
	if (b->native) {
		must_fail(exs_sendfile(b->p.c, &x, 0, b->q, 7), EACCES);
	} else {
		must(exs_sendfile(b->p.c, &x, 0, b->q, 7));
		event_is(b->q, EXS_EVT_SENDFILE, 7, EACCES, 0);
	}
}

static void refused_on(const struct before *b)
{
	exs_pollfd_t pfd = { .fd = b->p.c, .events = EXS_POLLOUT };

	event_is(b->q, EXS_EVT_ACCEPT, 1, b->native ? ECONNABORTED : EACCES, 0);
	no_setting_up(b);
	no_transfers(b->p.c, b->q);
	no_transfers(b->p.c, EXS_QHANDLE_INVALID);
	no_sendfile(b);
	must_fail(exs_shutdown(b->p.c, SHUT_WR, b->q, 8), EACCES);
	must_fail(exs_shutdown(b->p.c, SHUT_WR, EXS_QHANDLE_INVALID, 8), EACCES);
	no_event(b->q);
	must(exs_poll(&pfd, 1, 0, b->q, 9));
	event_is(b->q, EXS_EVT_POLL, 9, 0, 0);
	must_be(pfd.revents, POLLOUT);
}

static void confined(void *arg)
{
	struct before b = { .q = queue_new(4), .any = address_from(AF_INET, "10.77.0.1", 7777) };
	struct pair un;

	((void (*)(struct before *))arg)(&b);
	b.to = name_of(b.listener);
	b.file = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	kind_pair(&kind_un_stream, &un);
	must(exs_accept(b.listener, NULL, 0, b.q, 1));
	write_to("/proc/thread-self/attr/current", "changeprofile exs-test");
	must_fail(socket(AF_INET, SOCK_STREAM, 0), EACCES);
	refused_on(&b);
	/* The others may. */
	start_send(un.c, &byte, 1, b.q, 10, NO_REGION);
	event_is(b.q, EXS_EVT_SEND, 10, 0, 1);
}

/* Return: whether its file system was there before. */
static bool apparmor_enter(void)
{
	bool mounted;

	if (!apparmor_on())
		skip("this kernel has no AppArmor, or another security module");
	if (system("command -v apparmor_parser > /dev/null"))
		skip("there is no apparmor_parser");
	mounted = !system("mountpoint -q " SECURITYFS);
	check(mounted || !system("mount -t securityfs none " SECURITYFS), "no securityfs");
	return mounted;
}

static void apparmor_leave(bool mounted)
{
	if (!mounted)
		must(umount(SECURITYFS));
}

/* No profile stays behind, however the calls end. */
static void apparmor_calls(void)
{
	bool mounted = apparmor_enter();
	int native, tcp;

	check(exs_family_number() == AF_WANPIPE, "AppArmor has another name for the family");
	profile("--replace", "exs-test", NO_STREAMS);
	native = reap(spawn(confined, before_native));
	tcp = reap(spawn(confined, before_tcp));
	profile("--remove", "exs-test", "");
	apparmor_leave(mounted);
	check(!native, "AF_EXS: the calls ended with wait status %#x", native);
	check(!tcp, "TCP: the calls ended with wait status %#x", tcp);
}

struct later {
	struct pair tcp, un;
	struct pipe_pair waits;
};

static void denied_later(void *arg)
{
	const struct later *l = arg;
	exs_qhandle_t q = queue_new(2);

	write_to("/proc/thread-self/attr/current", "changeprofile exs-later");
	start_recv(l->tcp.s, &byte, 1, 0, q, 1, NO_REGION);
	start_recv(l->un.s, &byte, 1, 0, q, 2, NO_REGION);
	tell(l->waits.wr, 1);
	event_is(q, EXS_EVT_RECV, 1, EACCES, 0);
	tell(l->waits.wr, 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
}

/* An operation that waits is checked with its submitter's rights, whichever thread tries it. */
static void apparmor_later(void)
{
	struct later l = { .waits = pipe_open() };
	bool mounted = apparmor_enter();
	int status;
	pid_t pid;

	kind_pair(&kind_tcp, &l.tcp);
	kind_pair(&kind_un_stream, &l.un);
	profile("--replace", "exs-later", "");
	pid = spawn(denied_later, &l);
	hear(l.waits.rd);
	profile("--replace", "exs-later", NO_STREAMS);
	must_be(send(l.tcp.c, "x", 1, 0), 1);
	hear(l.waits.rd);
	must_be(send(l.un.c, "x", 1, 0), 1);
	status = reap(pid);
	profile("--remove", "exs-later", "");
	apparmor_leave(mounted);
	check(!status, "the operations ended with wait status %#x", status);
}

static const struct e2e_case cases[] = {
	ROW(landlock_connect, tcp),
	ROW(landlock_connect, tcp6),
	ROW1(landlock_bind),
	ROW1(landlock_native),
	ROW1(landlock_fallback),
	ROW1(apparmor_calls),
	ROW1(apparmor_later),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
