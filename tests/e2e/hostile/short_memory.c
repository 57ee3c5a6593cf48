// SPDX-License-Identifier: GPL-2.0
/*
 * No memory in threads that work for programs: the debug kernel lets one allocation below a given function fail
 * (/sys/kernel/debug/failslab), in whatever thread that is. faults.c has those of the caller.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILSLAB	"/sys/kernel/debug/failslab/"

/* In the order in which they are put back: the first turns it off. */
static const char *const attributes[] = {
	"probability", "times", "interval", "space", "task-filter", "ignore-gfp-wait", "cache-filter",
	"verbose", "stacktrace-depth", "require-start", "require-end", "reject-start", "reject-end",
};

struct text { char s[32]; };

static struct text get(const char *attribute)
{
	char path[128];
	struct text t = {};
	int fd;

	snprintf(path, sizeof(path), FAILSLAB "%s", attribute);
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	must(read(fd, t.s, sizeof(t.s) - 1));
	close(fd);
	return t;
}

static void set(const char *attribute, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), FAILSLAB "%s", attribute);
	fd = must(open(path, O_WRONLY | O_CLOEXEC));
	must(write(fd, text, strlen(text)));
	close(fd);
}

static void set_address(const char *attribute, unsigned long address)
{
	struct text t;

	snprintf(t.s, sizeof(t.s), "%#lx", address);
	set(attribute, t.s);
}

/* From the first byte of a function of the kernel or a module up to the next symbol. */
static void set_range(const char *function)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	unsigned long *all = NULL, address, start = 0, end = -1ul;
	size_t n = 0, size = 0, i;
	char name[256];

	check(symbols, "/proc/kallsyms: %s", errno_name(errno));
	while (fscanf(symbols, "%lx %*c %255s%*[^\n]", &address, name) == 2) {
		if (n == size) {
			size = size ? 2 * size : 1 << 16;
			all = realloc(all, size * sizeof(*all));
			check(all, "no memory");
		}
		all[n++] = address;
		if (!strcmp(name, function))
			start = address;
	}
	fclose(symbols);
	check(start, "no function %s in %zu symbols", function, n);
	for (i = 0; i < n; i++)
		if (all[i] > start && all[i] < end)
			end = all[i];
	free(all);
	set_address("require-start", start);
	set_address("require-end", end);
}

/*
 * From now on the first allocation that has @function among its callers fails, and no other. It may be
 * in its caller's code, and is then not found, only if it is static and not called by its address.
 */
static void fail_once_in(const char *function)
{
	set("probability", "0");
	set("interval", "1");
	set("space", "0");
	set("task-filter", "N");
	set("ignore-gfp-wait", "N");
	set("cache-filter", "N");
	set("verbose", "0");
	set("stacktrace-depth", "32");
	set_range(function);
	set("times", "1");
	set("probability", "100");
}

static void has_failed(void)
{
	check(!atoi(get("times").s), "no allocation has failed");
}

/* They are the system's. */
static void with_attributes_restored(void (*fn)(void *arg))
{
	struct text old[ARRAY_SIZE(attributes)];
	size_t i;
	int end;

	for (i = 0; i < ARRAY_SIZE(attributes); i++)
		old[i] = get(attributes[i]);
	end = reap(spawn(fn, NULL));
	for (i = 0; i < ARRAY_SIZE(attributes); i++)
		set(attributes[i], old[i].s);
	check(!end, "the case ended with %#x", end);
}

static void talk(int a, int b)
{
	send_all(a, 1, 0, 100);
	recv_all(b, 1, 0, 100);
	send_all(b, 2, 0, 100);
	recv_all(a, 2, 0, 100);
}

/* A socket for the connection: that waits, and the next request gets it. */
static void no_child(void *arg)
{
	exs_qhandle_t q = queue_new(2);
	int fd = listener(4), c;
	exs_event_t ev;

	(void)arg;
	must(exs_accept(fd, NULL, 0, q, 1));
	fail_once_in("exs_child_alloc");
	c = client_of(fd);
	event_is(q, EXS_EVT_ACCEPT, 1, ENOMEM, 0);
	has_failed();
	must(exs_accept(fd, NULL, 0, q, 2));
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 2, 0, 0);
	talk(c, event_newfd(&ev));
	no_event(q);
}

static void accepting(void)
{
	with_attributes_restored(no_child);
}

/* The device's part of a connection, once the address is resolved. */
static void no_queue_pair(void *arg)
{
	exs_qhandle_t q = queue_new(2);
	int fd = listener(4), c;
	union address to = name_of(fd);

	(void)arg;
	fail_once_in("exs_verbs_make_qp");
	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, ENOMEM, 0);
	has_failed();
	c = new_socket();
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 2));
	event_is(q, EXS_EVT_CONNECT, 2, 0, 0);
	talk(c, must(accept(fd, NULL, NULL)));
	no_event(q);
}

static void connecting(void)
{
	with_attributes_restored(no_queue_pair);
}

/* Data read from a file. The connection is as good as before. */
static void no_piece(void *arg)
{
	exs_xferfile_t x = { .xf_file = { must(memfd_create("e2e", MFD_CLOEXEC)), 0, 8192 } };
	exs_qhandle_t q = queue_new(2);
	char buf[8192];
	struct pair p;

	(void)arg;
	pair_open(&p);
	data_fill(3, 0, buf, sizeof(buf));
	must_be(write(x.xf_file.fd_file, buf, sizeof(buf)), sizeof(buf));
	fail_once_in("exs_feed_read");
	must(exs_sendfile(p.c, &x, 0, q, 1));
	event_is(q, EXS_EVT_SENDFILE, 1, ENOMEM, 0);
	has_failed();
	must(exs_sendfile(p.c, &x, 0, q, 2));
	recv_all(p.s, 3, 0, sizeof(buf));
	event_is(q, EXS_EVT_SENDFILE, 2, 0, sizeof(buf));
	talk(p.c, p.s);
	no_event(q);
}

static void files(void)
{
	with_attributes_restored(no_piece);
}

/* An entry in the wait queue of one of them. */
static void no_entry(void *arg)
{
	exs_qhandle_t q = queue_new(2);
	exs_pollfd_t fds[2];
	struct pair p;

	(void)arg;
	pair_open(&p);
	fds[0] = (exs_pollfd_t){ .fd = p.c, .events = EXS_POLLIN };
	fds[1] = (exs_pollfd_t){ .fd = p.s, .events = EXS_POLLIN };
	fail_once_in("exs_poll_queue_proc");
	must(exs_poll(fds, 2, 0, q, 1));
	event_is(q, EXS_EVT_POLL, 1, ENOMEM, 0);
	has_failed();
	must(exs_poll(fds, 2, 0, q, 2));
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_POLL, 2, 0, 0);
	no_event(q);
}

static void polling(void)
{
	with_attributes_restored(no_entry);
}

/* Arriving data wait where they are, and so do those behind them. */
static void waits_on(struct pair p, const char *where, int len)
{
	int i;

	fail_once_in(where);
	for (i = 0; i < 100; i++)
		send_all(p.s, 1, i * len, len);
	for (i = 0; i < 100; i++)
		recv_all(p.c, 1, i * len, len);
	has_failed();
	must_be(delta("memory_waits"), 1);
	must_be(delta("resets_nomem"), 0);
	talk(p.c, p.s);
}

static void waits_for_place(const char *where, int len)
{
	struct pair p;

	pair_open(&p);
	waits_on(p, where, len);
}

/* A message that no receive waits for is kept, and so are bytes that come before there is a ring. */
static void no_place(void *arg)
{
	(void)arg;
	waits_for_place("exs_verbs_recv_done", 10);
}

static void arrival(void)
{
	with_attributes_restored(no_place);
}

static void no_ring(void *arg)
{
	(void)arg;
	waits_for_place("exs_verbs_map_ring", 1100);
}

static void ring(void)
{
	with_attributes_restored(no_ring);
}

/* The first word of the peer's ring. */
static void no_description(void *arg)
{
	(void)arg;
	waits_for_place("exs_verbs_recv_done", 2000);
}

static void arrival_of_ring(void)
{
	with_attributes_restored(no_description);
}

/* A message waits with its place in the ring; the sender knows the ring. */
static void no_place_in_ring(void *arg)
{
	enum { LEN = 2000 };
	struct pair p;

	(void)arg;
	pair_open(&p);
	send_all(p.s, 1, 0, LEN);
	recv_all(p.c, 1, 0, LEN);
	wait_delta("live_rings", 1);
	waits_on(p, "exs_verbs_recv_done", LEN);
}

static void arrival_in_ring(void)
{
	with_attributes_restored(no_place_in_ring);
}

/* Several messages come at once, and none has a place: they wait together, and for all places at once. */
static void no_places_in_ring(void *arg)
{
	enum { N = 16, LEN = 2000 };
	exs_qhandle_t q = queue_new(N);
	char *buf = pages(N * LEN), in[LEN];
	exs_op_t sends[N];
	struct pair p;
	int i;

	(void)arg;
	pair_open(&p);
	data_fill(1, 0, buf, N * LEN);
	for (i = 0; i < N; i++)
		sends[i] = an_op(EXS_EVT_SEND, p.s, buf + i * LEN, LEN, i);
	send_all(p.s, 1, 0, LEN);
	recv_all(p.c, 1, 0, LEN);
	wait_delta("live_rings", 1);
	fail_once_in("exs_verbs_recv_done");
	set("times", "2");
	must_be(exs_submit(q, sends, N), N);
	for (i = 0; i < N; i++) {
		must_be(recv(p.c, in, LEN, 0), LEN);
		data_check(1, i * LEN, in, LEN);
		event_is(q, EXS_EVT_SEND, i, 0, LEN);
	}
	check(delta("joined_sends"), "none was joined");
	must_be(delta("memory_waits"), 1);
	talk(p.c, p.s);
	no_event(q);
}

static void arrival_of_many(void)
{
	with_attributes_restored(no_places_in_ring);
}

/* Messages go without a ring, and its charge is free for another connection's ring. */
static void no_ring_of_messages(void *arg)
{
	enum { LEN = 5000, RING_PAGES = 256 * 1024 / 4096 };
	struct pair p;

	(void)arg;
	write_sysctl("max_user_pages", 2 * RING_PAGES - 8);
	pair_open(&p);
	fail_once_in("exs_verbs_map_ring");
	send_all(p.s, 1, 0, LEN);
	recv_all(p.c, 1, 0, LEN);
	has_failed();
	must_be(counter("live_rings"), 0);
	must_be(delta("direct_tx_bytes"), LEN);
	pair_open(&p);
	send_all(p.s, 1, 0, LEN);
	recv_all(p.c, 1, 0, LEN);
	must_be(counter("live_rings"), 1);
	must_be(delta("limit_pages"), 0);
}

static void ring_of_messages(void)
{
	with_attributes_restored(no_ring_of_messages);
}

#define MUCH	(8 * MIB)	/* more than a ring or a socket's buffer holds */

/* A packet: soft-RoCE then gives up, flushes all requests, and does not say which of them failed. */
static void no_packet(void *arg)
{
	exs_qhandle_t q = queue_new(1);
	struct pair p;
	char byte;

	(void)arg;
	pair_open(&p);
	talk(p.c, p.s);
	fail_once_in("rxe_requester");
	start_send(p.c, pages(MUCH), MUCH, q, 1, NO_REGION);
	event_is(q, EXS_EVT_SEND, 1, ECONNRESET, 0);
	has_failed();
	must_fail(recv(p.c, &byte, 1, 0), ECONNRESET);
	must_fail(recv(p.s, &byte, 1, 0), ECONNRESET);
	no_event(q);
}

static void requests(void)
{
	with_attributes_restored(no_packet);
}

static const struct e2e_case cases[] = {
	{ "accept", accepting, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "connect", connecting, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "sendfile", files, .on = ON_BOTH | ON_TCP, .needs = NEEDS_FAULTS },
	{ "poll", polling, .on = ON_BOTH | ON_TCP, .needs = NEEDS_FAULTS },
	{ "arrival", arrival, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "arrival_of_ring", arrival_of_ring, .on = ON_BOTH, .needs = NEEDS_FAULTS },
	{ "arrival_in_ring", arrival_in_ring, .on = ON_SEQ, .needs = NEEDS_FAULTS },
	{ "arrival_of_many", arrival_of_many, .on = ON_SEQ, .needs = NEEDS_FAULTS },
	{ "ring_of_messages", ring_of_messages, .on = ON_SEQ, .needs = NEEDS_FAULTS },
	{ "ring", ring, .on = ON_STREAM, .needs = NEEDS_FAULTS },
	{ "request", requests, .on = ON_BOTH, .needs = NEEDS_FAULTS | NEEDS_RXE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
