/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the end-to-end tests.
 *
 * A program is a table of cases. Each case runs in a process of its own, once
 * per variant (socket type, address family; TCP as the reference, or other
 * ordinary sockets), under a time limit, and prints one line:
 *
 *	ok NAME@VARIANT
 *	not ok NAME@VARIANT: FILE:LINE: what was expected, and what was found
 *	skip NAME@VARIANT: why it cannot run here
 *
 * After every case the live objects of /proc/net/exs must have their former
 * numbers, and every operation must have had its event: a case that passes but
 * leaves something behind has failed.
 *
 * A case is either one function, or a client and a server that may run on two
 * machines; those two meet over a control channel (lib/control.c).
 *
 * Nothing here sleeps to let something happen. Loops that look at a counter
 * wait between two looks; limits exist so that a hang becomes a failure.
 */
#ifndef E2E_H
#define E2E_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MIB		(1024 * 1024)

/* Variants. */
#define ON_STREAM	0x01	/* AF_EXS, SOCK_STREAM, IPv4                   */
#define ON_SEQ		0x02	/* AF_EXS, SOCK_SEQPACKET, IPv4                 */
#define ON_STREAM6	0x04	/* AF_EXS, SOCK_STREAM, IPv6                    */
#define ON_SEQ6		0x08	/* AF_EXS, SOCK_SEQPACKET, IPv6                 */
#define ON_TCP		0x10	/* AF_INET, SOCK_STREAM: the reference          */
#define ON_TCP6		0x20
#define ON_UDP		0x40	/* AF_INET, SOCK_DGRAM, connected               */
#define ON_UNIX		0x80	/* AF_UNIX, SOCK_STREAM                         */
#define ON_UNIX_SEQ	0x100
#define ON_UNIX_DGRAM	0x200
#define ON_INET		0x400	/* AF_INET, SOCK_STREAM, IPPROTO_EXS            */
#define ON_INET6	0x800
#define ON_FALLEN	0x1000	/* as ON_INET, but it fell back to TCP at once  */
#define ON_FACES	(ON_INET | ON_INET6)
#define ON_FACE4	(ON_INET | ON_FALLEN)
#define ON_BOTH		(ON_STREAM | ON_SEQ)
#define ON_ALL6		(ON_STREAM | ON_SEQ | ON_STREAM6 | ON_SEQ6)
#define ON_EXS		0	/* no variants: AF_EXS, and the case says which */

/* Requirements of a case; it is skipped where one is missing. */
#define NEEDS_ONE	0x01	/* both ends on one machine, one namespace      */
#define NEEDS_FAULTS	0x02	/* the debug kernel's fault injection           */
#define NEEDS_RXE	0x04	/* not siw                                      */
#define NEEDS_SIW	0x08	/* and nothing else                             */

struct e2e_case {
	const char *name;
	void (*run)(void);		/* one process, or            */
	void (*client)(void);		/* two, with a control channel */
	void (*server)(void);
	unsigned int on;
	unsigned int needs;
	int limit;			/* seconds; 0: LIMIT           */
	void (*before)(void);		/* first, in the case's process: may skip() */
	const void *arg;		/* e2e.arg, of cases that share a function */
	bool named;			/* runs only if it is named: another test covers it */
};

/* Seconds that anything may take; a failure bound, scaled on debug kernels. */
#define LIMIT		60

enum side { CLIENT, SERVER };

/* How the present case runs. */
struct e2e {
	int family;			/* AF_EXS' number, or AF_INET  */
	int protocol;			/* of IPPROTO_EXS, or 0 */
	int fallback;			/* of its new sockets: EXS_SO_FALLBACK */
	int type;
	int domain;			/* of addresses               */
	bool tcp;
	bool seq;
	unsigned int on;		/* the variant: one of ON_*   */
	const char *topology;		/* one, two; two namespaces: ns with siw, wire with rxe */
	const char *address[2];		/* by enum side               */
	enum side side;			/* client and server: which     */
	int control;			/* and the way to the other     */
	unsigned int seed;
	const void *arg;		/* the case's                  */
};

extern struct e2e e2e;

int e2e_main(int argc, char **argv, const struct e2e_case *cases);

/* Ends the case. Any thread, any process of the case. */
void fail_at(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
const char *errno_name(int err);

#define fail(...)	fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define check(cond, ...)						\
	do {								\
		if (!(cond))						\
			fail(__VA_ARGS__);				\
	} while (0)

/* The call succeeds; its value. */
#define must(call)							\
	({								\
		long must_value = (long)(call);				\
									\
		if (must_value < 0)					\
			fail("%s: %s", #call, errno_name(errno));	\
		must_value;						\
	})

/* The call returns exactly @want. */
#define must_be(call, want)						\
	do {								\
		long must_got = (long)(call), must_want = (long)(want);	\
									\
		if (must_got != must_want)				\
			fail("%s is %ld (%s), not %ld", #call, must_got, \
			     must_got < 0 ? errno_name(errno) : "-",	\
			     must_want);				\
	} while (0)

/* The call fails with @err. */
#define must_fail(call, err)						\
	do {								\
		long must_got = (long)(call);				\
									\
		if (must_got >= 0)					\
			fail("%s is %ld, not %s", #call, must_got,	\
			     errno_name(err));				\
		if (errno != (err))					\
			fail("%s: %s, not %s", #call, errno_name(errno), \
			     errno_name(err));				\
	} while (0)

/* Time: only to bound waiting. */
int limit_ms(void);		/* milliseconds for one wait            */

/* So many bytes of bulk data, or rounds of the same; a quarter under the checkers, which are slow. */
uint64_t amount(uint64_t much);
double now(void);
enum { BREATH_MS = 2 };
void breathe(void);		/* between two looks at a counter       */

/* Waits for a condition that no descriptor reports. */
#define wait_until(cond)						\
	do {								\
		double wait_end = now() + limit_ms() / 1e3;		\
									\
		while (!(cond)) {					\
			if (now() > wait_end)				\
				fail("waited in vain for: %s", #cond);	\
			breathe();					\
		}							\
	} while (0)

/* lib/stacks.c: of all threads, to standard output and the kernel's log */
void print_stacks(void);
int workers_in(const char *function);	/* workers of the kernel that are in it */
int workers_below(const char *caller, const char *function);	/* those that @caller has called */
int workers_not_below(const char *caller, const char *function);	/* the others */

/* lib/process.c: processes and threads of a case */
pid_t spawn(void (*fn)(void *arg), void *arg);
void join(pid_t pid);		/* it must end with status 0             */
int reap(pid_t pid);		/* its wait status                       */
void shell(const char *line);	/* a command, which must succeed         */
/* The device of topology one. */
void delete_device(void);
void add_device(void);
/* @fn in a process of its own, which may delete it: afterwards the next case has it again. */
void with_device_restored(void (*fn)(void *arg));
/* The child's message by tell(): waits. */
struct pipe_pair { int rd, wr; };
struct pipe_pair pipe_open(void);
void tell(int fd, long value);
long hear(int fd);
void drop_privileges(void);	/* to user nobody, no capabilities        */
/* CAP_SYS_RESOURCE, which no cap of the module's bounds; cases begin without it. */
void set_unbounded(bool yes);
void raise_limit(int resource, long n);	/* RLIMIT_*, hard and soft               */
void forbid_call(int number, int err);	/* SYS_*: it fails from now on, as by a security module */
/* This thread on that processor; with a priority before all threads of a lower one, and before workers. */
void run_on(int processor);
void run_first(int processor, int priority);
bool state_is(pid_t tid, char state);	/* state of that thread, as ps(1) shows it */
void wait_blocked(pid_t tid);	/* until that thread sleeps in the kernel */
void catch_signal(int sig, int flags);
extern volatile sig_atomic_t signals_caught;
void interrupt_self(int ms);	/* SIGALRM again and again */
void interrupt_stop(void);

/* lib/counters.c: /proc/net/exs */
long counter(const char *name);
long counter_here(const char *name);	/* of the caller's network namespace only */
long delta(const char *name);		/* since the case began          */
void wait_delta(const char *name, long at_least);
void counters_mark(void);
bool counters_settled(char *why, size_t size);
void write_sysctl(const char *name, long value);	/* net.exs.NAME   */
void write_sysctl_here(const char *name, long value);	/* of the caller's namespace only */
long read_sysctl(const char *name);	/* of that, too */
void sysctls_save(void);
void sysctls_restore(void);

/* lib/net.c: addresses, sockets, connections */
union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;			/* only names that the kernel has chosen */
	struct sockaddr_storage storage;
};

struct pair { int c, s; };

int exs_family_number(void);
void enter_side(enum side side);	/* its network namespace         */

/* In the initial one, and with topologies "ns" and "wire" in both sides', if they are others. */
#define NAMESPACES_MAX 3
void in_each_namespace(void (*fn)(void *), void *arg);
union address address_of(enum side side, int port);
union address address_from(int domain, const char *text, int port);
socklen_t address_len(const union address *a);
int port_of(const union address *a);
bool same_address(const union address *a, const union address *b);
union address name_of(int fd);
union address peer_of(int fd);
int new_socket(void);			/* of the variant, of the present side */
int socket_on(enum side side);
int free_port(void);
int bound_socket(void);
int listener(int backlog);
int client_of(int listen_fd);		/* a connected socket, not accepted */
void pair_open(struct pair *p);
void pair_from(struct pair *p, int listen_fd);
void pair_close(struct pair *p);
void set_nonblock(int fd, bool on);
int so_error(int fd);
void set_timeout(int fd, int option, int ms);
void set_int(int fd, int level, int option, int value);
int poll_now(int fd, int events);	/* revents, without waiting      */
int poll_wait(int fd, int events);	/* waits for any of them         */
void wait_io(int fd, int events);
void send_fd(int unix_fd, int fd);
int receive_fd(int unix_fd);

/* lib/data.c: bytes that can be told apart from all others */
struct stream_data { uint64_t seed, pos; };
uint64_t next_random(uint64_t *state);
void data_fill(uint64_t seed, uint64_t pos, void *buf, size_t len);
/* Whether they are the bytes from @pos of stream @seed; fails if not. */
void data_check(uint64_t seed, uint64_t pos, const void *buf, size_t len);
bool data_same(uint64_t seed, uint64_t pos, const void *buf, size_t len);
void send_all(int fd, uint64_t seed, uint64_t pos, size_t len);
void recv_all(int fd, uint64_t seed, uint64_t pos, size_t len);
size_t send_until_full(int fd, uint64_t seed);	/* leaves O_NONBLOCK as it is */
void *pages(size_t len);		/* zeroed, page aligned           */

/* lib/held_page.c: a page that delays every access; skips the case where there is no userfaultfd */
struct held_page { int fd; char *mem; bool written; };
struct held_page held_page_open(void);
struct held_page held_page_of(const void *data, size_t len);	/* may be read, delays writes */
void held_page_wait(const struct held_page *page);	/* until there is an access */
void held_page_let_go(const struct held_page *page);
void held_page_refuse(const struct held_page *page);	/* let go, but the write fails */
/* A socket whose lock (lock_sock) a thread has, in a setsockopt() that does not end before unlock_socket(). */
struct locked_socket { int fd; struct held_page page; pthread_t thread; };
void lock_socket(struct locked_socket *l, int fd);
void unlock_socket(struct locked_socket *l);

/* lib/control.c: the other side of a client-and-server case */
#define REASON_MAX 1024	/* bytes of why a side failed */
void control_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
void control_wait(const char *what);		/* that exact line        */
void control_number(const char *what, long value);
long control_read(const char *what);
int meet(void);		/* both sides: a connected socket of the variant */

#endif
