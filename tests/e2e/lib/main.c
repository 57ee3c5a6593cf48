// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the cases of a program: see e2e.h.
 *
 *	PROGRAM [--list] [--topology one|ns|wire] [CASE[@VARIANT] ...]
 *				also: @VARIANT, and GROUP[@VARIANT] of cases GROUP/...
 *	PROGRAM --serve ADDRESS			the servers of the cases, for another machine
 *	PROGRAM --to ADDRESS --from ADDRESS [CASE ...]	the clients
 */
#include "e2e.h"

#include <linux/exs.h>

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_PORT	7700
#define STATUS_SKIP	77

struct e2e e2e = { .topology = "one", .control = -1 };

struct variant {
	unsigned int bit;
	const char *name;
	int family;		/* 0: AF_EXS */
	int type;
	int domain;
};

static const struct variant variants[] = {
	{ ON_STREAM,	"stream",	0,		SOCK_STREAM,	AF_INET },
	{ ON_SEQ,	"seqpacket",	0,		SOCK_SEQPACKET,	AF_INET },
	{ ON_STREAM6,	"stream6",	0,		SOCK_STREAM,	AF_INET6 },
	{ ON_SEQ6,	"seqpacket6",	0,		SOCK_SEQPACKET,	AF_INET6 },
	{ ON_TCP,	"tcp",		AF_INET,	SOCK_STREAM,	AF_INET },
	{ ON_TCP6,	"tcp6",		AF_INET6,	SOCK_STREAM,	AF_INET6 },
	{ ON_INET,	"inet",		AF_INET,	SOCK_STREAM,	AF_INET },
	{ ON_INET6,	"inet6",	AF_INET6,	SOCK_STREAM,	AF_INET6 },
	{ ON_FALLEN,	"fallen",	AF_INET,	SOCK_STREAM,	AF_INET },
	{ ON_UDP,	"udp",		AF_INET,	SOCK_DGRAM,	AF_INET },
	{ ON_UNIX,	"unix",		AF_UNIX,	SOCK_STREAM,	AF_UNIX },
	{ ON_UNIX_SEQ,	"unix-seqpacket", AF_UNIX,	SOCK_SEQPACKET,	AF_UNIX },
	{ ON_UNIX_DGRAM, "unix-dgram",	AF_UNIX,	SOCK_DGRAM,	AF_UNIX },
};

static const struct variant plain = { 0, NULL, 0, SOCK_STREAM, AF_INET };

static const struct variant *variant_at(size_t i)
{
	return i < ARRAY_SIZE(variants) ? &variants[i] : &plain;
}

static const struct {
	const char *topology;
	const char *address[2][2];	/* by family, by side */
} topologies[] = {
	{ "one", { { "10.77.0.1", "10.77.0.1" }, { "fd77::1", "fd77::1" } } },
	{ "ns",  { { "10.78.0.1", "10.78.0.2" }, { "fd78::1", "fd78::2" } } },
	{ "wire", { { "10.79.0.1", "10.79.0.2" }, { "fd79::1", "fd79::2" } } },
	{ "two", { { "10.77.1.1", "10.77.1.2" }, { "fd77:1::1", "fd77:1::2" } } },
};

static int reason_fd = STDERR_FILENO;	/* where a failing process writes the reason */
static const char *serve_address, *to_address;

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

void breathe(void)
{
	const struct timespec ts = { .tv_nsec = BREATH_MS * 1000000 };

	nanosleep(&ts, NULL);
}

static int factor(const char *name)
{
	const char *told = getenv(name);
	int value = told ? atoi(told) : 1;

	return value > 0 ? value : 1;
}

/* KASAN and lockdep under emulation are slow. */
static int scale(void)
{
	return factor("EXS_SLOW");
}

/* Where waiting takes no time, limits are longer. */
static int patience(void)
{
	return scale() * factor("E2E_PATIENCE");
}

int limit_ms(void)
{
	return LIMIT / 2 * 1000 * patience();
}

uint64_t amount(uint64_t much)
{
	return much / scale();
}

static void give_reason(int status, const char *text)
{
	/* Only the first reason counts; the rest follows from it. */
	if (reason_fd >= 0 && write(reason_fd, text, strlen(text)) < 0)
		status = 1;
	_exit(status);
}

void fail_at(const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	char text[REASON_MAX];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "%s:%d: ", base ? base + 1 : file, line);
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n - 1, format, args);
	va_end(args);
	strcat(text, "\n");
	give_reason(1, text);
	abort();
}

void skip(const char *format, ...)
{
	char text[REASON_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	strcat(text, "\n");
	give_reason(STATUS_SKIP, text);
	abort();
}

const char *errno_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "an unknown errno";
}

/* One process of a case, and where its reason will be read. */
struct task {
	pid_t pid;
	int reason;
	int pidfd;
};

static void task_start(struct task *task, const struct e2e_case *c, void (*fn)(void), int control)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		abort();
	fflush(NULL);
	task->pid = fork();
	if (task->pid < 0)
		abort();
	if (!task->pid) {
		setpgid(0, 0);
		close(fds[0]);
		reason_fd = fds[1];
		e2e.control = control;
		e2e.arg = c->arg;
		set_unbounded(false);
		if (c->before)
			c->before();
		fn();
		_exit(0);
	}
	setpgid(task->pid, task->pid);
	close(fds[1]);
	task->reason = fds[0];
	task->pidfd = syscall(SYS_pidfd_open, task->pid, 0);
	if (task->pidfd < 0)
		abort();
}

/* Reads the first line that a process of the case left. */
static void read_reason(int fd, char *why, size_t size)
{
	ssize_t n = read(fd, why, size - 1);

	why[n > 0 ? n : 0] = 0;
	why[strcspn(why, "\n")] = 0;
}

static void end_group(struct task *task)
{
	kill(-task->pid, SIGKILL);
	close(task->pidfd);
	close(task->reason);
}

/*
 * Waits for the task: its exit status; 1 with a reason if it had to be ended
 * because of the limit, or because the control channel broke (@hangup).
 */
static int task_end(struct task *task, int limit, int hangup, char *why, size_t size)
{
	struct pollfd fds[2] = {
		{ .fd = task->pidfd, .events = POLLIN },
		{ .fd = hangup, .events = POLLRDHUP },
	};
	int status, ready;

	ready = poll(fds, 2, limit * 1000 * patience());
	if (!ready)
		print_stacks();
	if (!fds[0].revents)
		kill(-task->pid, SIGKILL);
	waitpid(task->pid, &status, 0);
	read_reason(task->reason, why, size);
	end_group(task);
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || *why))
		return WEXITSTATUS(status);
	if (!ready)
		snprintf(why, size, "did not end within %d s", limit * patience());
	else if (!fds[0].revents)
		snprintf(why, size, "the client gave up first");
	else if (!*why)
		snprintf(why, size, "ended with wait status %#x", status);
	return 1;
}

/* Objects may take a moment to go: an orphan lingers, a queue pair drains. */
static int check_leaks(int status, char *why, size_t size)
{
	double end = now() + limit_ms() / 1e3;
	char leak[REASON_MAX];

	sysctls_restore();
	while (!counters_settled(leak, sizeof(leak))) {
		if (now() > end) {
			print_stacks();
			if (!status)
				snprintf(why, size, "%s", leak);
			return status ? status : 1;
		}
		breathe();
	}
	return status;
}

static void report(const char *name, int status, const char *why)
{
	static const char *const words[] = { "ok", "not ok" };

	if (!status)
		printf("ok %s\n", name);
	else
		printf("%s %s: %s\n", status == STATUS_SKIP ? "skip" : words[1], name, why);
	fflush(stdout);
}

static void apply(const struct variant *v)
{
	size_t i;

	e2e.on = v->bit;
	e2e.tcp = v->bit & (ON_TCP | ON_TCP6);
	e2e.seq = v->type == SOCK_SEQPACKET;
	e2e.domain = v->domain;
	e2e.type = v->type;
	e2e.protocol = v->bit & (ON_FACES | ON_FALLEN) ? EXS_PROTOCOL_DEFAULT : 0;
	e2e.fallback = v->bit & ON_FALLEN ? EXS_FALLBACK_NOW : 0;
	e2e.family = v->family ? v->family : exs_family_number();
	for (i = 0; i < ARRAY_SIZE(topologies); i++) {
		if (strcmp(topologies[i].topology, e2e.topology))
			continue;
		e2e.address[CLIENT] = topologies[i].address[v->domain == AF_INET6][CLIENT];
		e2e.address[SERVER] = topologies[i].address[v->domain == AF_INET6][SERVER];
	}
}

static const char *missing(const struct e2e_case *c)
{
	if (c->needs & NEEDS_ONE && strcmp(e2e.topology, "one"))
		return "for topology one";
	if (c->needs & NEEDS_SIW && strcmp(e2e.topology, "ns"))
		return "for soft-iWARP";
	if (c->needs & NEEDS_RXE && !strcmp(e2e.topology, "ns"))
		return "not for siw";
	if (c->needs & NEEDS_FAULTS && access("/sys/kernel/debug/failslab", F_OK))
		return "no fault injection in this kernel";
	return NULL;
}

static int limit_of(const struct e2e_case *c)
{
	return c->limit ? c->limit : LIMIT;
}

/* Runs the server half and reports the result over the control channel. */
static void serve_case(const struct e2e_case *c, int control, bool leaks)
{
	char why[REASON_MAX] = "", line[REASON_MAX + 16];
	struct task task;
	int status;

	counters_mark();
	sysctls_save();
	e2e.side = SERVER;
	task_start(&task, c, c->server, control);
	status = task_end(&task, limit_of(c), control, why, sizeof(why));
	if (leaks)
		status = check_leaks(status, why, sizeof(why));
	snprintf(line, sizeof(line), "END %d %s\n", status, why);
	if (send(control, line, strlen(line), MSG_NOSIGNAL) < 0)
		return;
}

/* The output of the server's runner; the case's own lines go before it. */
static int read_end(int control, int limit, char *why, size_t size)
{
	struct timeval tv = { .tv_sec = (limit + LIMIT) * patience() };
	char line[REASON_MAX + 16];
	size_t n = 0;
	int status;

	setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	while (read(control, line + n, 1) == 1) {
		if (line[n] != '\n' && n < sizeof(line) - 2) {
			n++;
			continue;
		}
		line[n] = 0;
		n = 0;
		if (sscanf(line, "END %d", &status) != 1)
			continue;
		if (status)
			snprintf(why, size, "server: %s", line + strcspn(line, " ") + 3);
		return status;
	}
	snprintf(why, size, "the server's side has gone");
	return 1;
}

static int connect_control(void)
{
	union address a = address_from(strchr(to_address, ':') ? AF_INET6 : AF_INET,
				       to_address, CONTROL_PORT);
	double end = now() + limit_ms() / 1e3;
	int fd;

	while (now() < end) {
		fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(fd, &a.sa, address_len(&a)))
			return fd;
		close(fd);
		breathe();
	}
	return -1;
}

/* The server of one case, here (a forked process) or on the other machine. */
static int start_server(const struct e2e_case *c, const char *name)
{
	int fds[2], fd;

	if (to_address) {
		fd = connect_control();
		if (fd >= 0)
			dprintf(fd, "%s\n", name);
		return fd;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	fflush(NULL);
	if (!fork()) {
		setpgid(0, 0);
		close(fds[0]);
		serve_case(c, fds[1], false);
		_exit(0);
	}
	close(fds[1]);
	return fds[0];
}

static int run_pair(const struct e2e_case *c, const char *name, char *why, size_t size)
{
	int control = start_server(c, name), status, other;
	char theirs[REASON_MAX] = "";
	struct task task;

	if (control < 0) {
		snprintf(why, size, "no server answers at %s", to_address);
		return 1;
	}
	e2e.side = CLIENT;
	task_start(&task, c, c->client, control);
	status = task_end(&task, limit_of(c), -1, why, size);
	if (status)
		shutdown(control, SHUT_WR);
	other = read_end(control, limit_of(c), theirs, sizeof(theirs));
	close(control);
	if (!status && other) {
		snprintf(why, size, "%s", theirs);
		return other;
	}
	return status;
}

static int run_alone(const struct e2e_case *c, char *why, size_t size)
{
	struct task task;

	task_start(&task, c, c->run, -1);
	return task_end(&task, limit_of(c), -1, why, size);
}

static int run_case(const struct e2e_case *c, const struct variant *v, const char *name)
{
	char why[REASON_MAX] = "";
	int status;

	apply(v);
	if (missing(c)) {
		report(name, STATUS_SKIP, missing(c));
		return 0;
	}
	counters_mark();
	sysctls_save();
	status = c->run ? run_alone(c, why, sizeof(why)) : run_pair(c, name, why, sizeof(why));
	status = check_leaks(status, why, sizeof(why));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	report(name, status, why);
	return status && status != STATUS_SKIP;
}

static void full_name(char *buf, size_t size, const struct e2e_case *c, const struct variant *v)
{
	if (v->name)
		snprintf(buf, size, "%s@%s", c->name, v->name);
	else
		snprintf(buf, size, "%s", c->name);
}

/* Whether @pattern, CASE or the GROUP of GROUP/CASE, with or without @VARIANT, names a case. */
static bool matches(const char *pattern, const char *name)
{
	size_t len = strcspn(pattern, "@");
	const char *variant = strchr(name, '@');

	if (pattern[len] && (!variant || strcmp(pattern + len, variant)))
		return false;
	/* The end of the name will do as well: strchr() finds it. */
	return !len || (!strncmp(pattern, name, len) && strchr("/@", name[len]));
}

static bool wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (matches(*names, name))
			return true;
	return false;
}

typedef int (*visit_fn)(const struct e2e_case *c, const struct variant *v, const char *name);

/* The variants of a case in which it is wanted: bits, by what variant_at() takes. */
static unsigned int wanted_variants(const struct e2e_case *c, char **names)
{
	unsigned int found = 0;
	char name[128];
	size_t i;

	for (i = 0; i <= ARRAY_SIZE(variants); i++) {
		const struct variant *v = variant_at(i);

		if (v->bit ? !(c->on & v->bit) : c->on != 0)
			continue;
		/* siw's ports are TCP's, and sockets in TIME_WAIT have some. */
		if (v->family && !(v->bit & ON_FACES) && !strcmp(e2e.topology, "ns"))
			continue;
		full_name(name, sizeof(name), c, v);
		if (wanted(name, names))
			found |= 1u << i;
	}
	return found;
}

/* Those of EXS, among the result of wanted_variants(). */
static unsigned int own_variants(unsigned int from)
{
	unsigned int own = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(variants); i++)
		if (variants[i].bit & (ON_BOTH | ON_STREAM6 | ON_SEQ6 | ON_FACES))
			own |= 1u << i;
	return from & own;
}

/* One of them, always the same for a case: E2E_ONCE. If some are sockets of EXS, one of those. */
static unsigned int one_variant(const struct e2e_case *c, unsigned int from)
{
	unsigned int own = own_variants(from), left = own ? own : from, hash = 0;
	const char *p;

	for (p = c->name; *p; p++)
		hash = hash * 31 + *p;
	for (hash %= __builtin_popcount(left); hash; hash--)
		left &= left - 1;
	return left & -left;
}

static int visit_variants(const struct e2e_case *c, unsigned int which, visit_fn fn)
{
	int failed = 0;
	char name[128];
	size_t i;

	for (i = 0; i <= ARRAY_SIZE(variants); i++) {
		if (!(which & 1u << i))
			continue;
		full_name(name, sizeof(name), c, variant_at(i));
		failed += fn(c, variant_at(i), name);
	}
	return failed;
}

/* Which of its variants are to be visited. */
static unsigned int visited_variants(const struct e2e_case *c, char **names)
{
	if ((to_address && c->run) || (c->named && !*names))
		return 0;
	return wanted_variants(c, names);
}

/* A name that no case has, or NULL: otherwise a misspelt name would go unnoticed. */
static const char *unknown_name(const struct e2e_case *cases, char **names)
{
	const struct e2e_case *c;

	for (; *names; names++) {
		char *one[2] = { *names };

		for (c = cases; c->name && !visited_variants(c, one); c++)
			;
		if (!c->name)
			return *names;
	}
	return NULL;
}

/* Visits each wanted case in each of its variants, or in one. */
static int visit(const struct e2e_case *cases, char **names, visit_fn fn)
{
	const char *unknown = unknown_name(cases, names);
	const struct e2e_case *c;
	unsigned int which;
	int failed = 0;

	if (unknown) {
		fprintf(stderr, "no such case: %s: --list names them\n", unknown);
		return 1;
	}
	for (c = cases; c->name; c++) {
		which = visited_variants(c, names);
		if (which)
			failed += visit_variants(c, getenv("E2E_ONCE") ? one_variant(c, which) : which, fn);
	}
	return failed;
}

static int list_case(const struct e2e_case *c, const struct variant *v, const char *name)
{
	(void)c;
	(void)v;
	puts(name);
	return 0;
}

/* Set by serve(), read by its visitor. */
static int served_control;

static int serve_visit(const struct e2e_case *c, const struct variant *v, const char *name)
{
	(void)name;
	apply(v);
	serve_case(c, served_control, true);
	return 0;
}

static void serve_one(const struct e2e_case *cases, int control)
{
	char line[128], *names[] = { line, NULL };
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(control, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = 0;
	served_control = control;
	if (n)
		visit(cases, names, serve_visit);
}

static int serve(const struct e2e_case *cases)
{
	union address a = address_from(strchr(serve_address, ':') ? AF_INET6 : AF_INET,
				       serve_address, CONTROL_PORT);
	int fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), control, on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a.sa, address_len(&a)) || listen(fd, 8)) {
		perror(serve_address);
		return 1;
	}
	puts("serving");
	fflush(stdout);
	while ((control = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		serve_one(cases, control);
		close(control);
	}
	return 1;
}

static const struct option options[] = {
	{ "list", no_argument, NULL, 'l' },
	{ "topology", required_argument, NULL, 't' },
	{ "serve", required_argument, NULL, 's' },
	{ "to", required_argument, NULL, 'c' },
	{}
};

static void usage(const char *name)
{
	fprintf(stderr, "usage: %s [--list] [--topology one|ns|wire] [--serve ADDRESS]\n"
		"\t[--to ADDRESS] [CASE ...]\n", name);
	exit(2);
}

int e2e_main(int argc, char **argv, const struct e2e_case *cases)
{
	bool list = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'l')
			list = true;
		else if (c == 't')
			e2e.topology = optarg;
		else if (c == 's')
			serve_address = optarg;
		else if (c == 'c')
			to_address = optarg;
		else
			usage(argv[0]);
	}
	if (serve_address || to_address)
		e2e.topology = "two";
	e2e.seed = getenv("E2E_SEED") ? strtoul(getenv("E2E_SEED"), NULL, 0) : 1;
	signal(SIGPIPE, SIG_DFL);
	if (list)
		return visit(cases, argv + optind, list_case);
	if (serve_address)
		return serve(cases);
	return visit(cases, argv + optind, run_case) != 0;
}
