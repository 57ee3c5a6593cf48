// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers of every size, crossed with the number outstanding, the kind of memory, the number
 * of its pieces, which side is first, whether receives wait for all, and whether data goes both
 * ways at once. Each must arrive, and none may end the connection.
 */
#include "lib/async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#define LARGE	(2 * MIB)
#define PIECES	16

enum memory { HUGE_PAGES, SMALL_PAGES, SHUFFLED, ODD, MEMORIES };

static const char *const memory_names[] = { "huge pages", "small pages", "shuffled pages", "unaligned" };

struct shape {
	size_t size;
	int count;
	enum memory memory;
	bool waitall, sends_first, both, registered;
	int pieces;			/* of each transfer; 0: it is no vector */
};

struct flow {
	const struct shape *s;
	int from, to, id;
	char *out, *in;
	exs_mhandle_t om, im;
	size_t *posted;			/* by number of receive: where it was to go */
	int sent, receives, received;
	size_t arrived;
};

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Pages get their memory in an order of their own, so neighbours are strangers. */
static void touch_shuffled(char *mem, size_t len, uint64_t seed)
{
	size_t n = len / 4096, i, j;
	size_t *order = calloc(n, sizeof(*order));

	for (i = 0; i < n; i++) {
		j = next_random(&seed) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < n; i++)
		mem[order[i] * 4096] = 1;
	free(order);
}

/* @len bytes as @s wants them. */
static char *make_memory(const struct shape *s, size_t len)
{
	size_t all = round_up(len + 4096, LARGE);
	char *mem = mmap(NULL, all + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(mem != MAP_FAILED, "no memory: %s", errno_name(errno));
	mem += -(uintptr_t)mem % LARGE;
	madvise(mem, all, s->memory == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (s->memory == SHUFFLED)
		touch_shuffled(mem, all, len);
	else
		memset(mem, 0, all);
	return s->memory == ODD ? mem + 1 + len % 4095 : mem;
}

static void drop_memory(char *mem, size_t len)
{
	mem -= (uintptr_t)mem % LARGE;
	munmap(mem, round_up(len + 4096, LARGE));
}

static exs_mhandle_t region_of(const struct shape *s, char *mem, size_t len, int flags)
{
	return s->registered ? region_new(mem, len, flags) : NO_REGION;
}

static void flow_open(struct flow *f, const struct shape *s, int id, int from, int to)
{
	size_t len = s->size * s->count;

	*f = (struct flow) { .s = s, .id = id, .from = from, .to = to };
	f->out = make_memory(s, len);
	f->in = make_memory(s, len);
	data_fill(id + 1, 0, f->out, len);
	f->om = region_of(s, f->out, len, EXS_ACCESS_READ);
	f->im = region_of(s, f->in, len, EXS_ACCESS_WRITE);
	/* Without MSG_WAITALL there may be as many receives as there are bytes. */
	f->posted = calloc(len + s->count + 1, sizeof(*f->posted));
	check(f->posted, "no memory for the test");
}

static void flow_close(struct flow *f)
{
	size_t len = f->s->size * f->s->count;

	if (f->s->registered) {
		must(exs_mderegister(f->om));
		must(exs_mderegister(f->im));
	}
	drop_memory(f->out, len);
	drop_memory(f->in, len);
	free(f->posted);
}

/* A transfer's memory in about equal pieces. */
static int cut(const struct shape *s, exs_iovec_t *iov, char *mem, exs_mhandle_t m)
{
	size_t n = s->size < (size_t)s->pieces ? s->size : (size_t)s->pieces, i, at = 0, end;

	for (i = 0; i < n; i++, at = end) {
		end = s->size * (i + 1) / n;
		iov[i] = (exs_iovec_t){ mem + at, end - at, m };
	}
	return n;
}

static void start_one_send(const struct flow *f, exs_qhandle_t q, char *mem)
{
	exs_iovec_t iov[PIECES];
	exs_msghdr_t msg = { .msg_iov = iov };

	if (!f->s->pieces) {
		start_send(f->from, mem, f->s->size, q, 2 * f->id + 1, f->om);
		return;
	}
	msg.msg_iovlen = cut(f->s, iov, mem, f->om);
	must(exs_sendmsg(f->from, &msg, 0, q, 2 * f->id + 1));
}

static void start_one_receive(const struct flow *f, exs_qhandle_t q, char *mem)
{
	int flags = f->s->waitall ? MSG_WAITALL : 0;
	exs_iovec_t iov[PIECES];
	exs_msghdr_t msg = { .msg_iov = iov };

	if (!f->s->pieces) {
		start_recv(f->to, mem, f->s->size, flags, q, 2 * f->id, f->im);
		return;
	}
	msg.msg_iovlen = cut(f->s, iov, mem, f->im);
	must(exs_recvmsg(f->to, &msg, flags, q, 2 * f->id));
}

/* The place in @in that the last receive there has left. */
static void post_receive(struct flow *f, exs_qhandle_t q, size_t at)
{
	f->posted[f->receives++] = at;
	start_one_receive(f, q, f->in + at);
}

static void post_sends(struct flow *f, exs_qhandle_t q)
{
	int i;

	for (i = 0; i < f->s->count; i++)
		start_one_send(f, q, f->out + i * f->s->size);
}

static void post_receives(struct flow *f, exs_qhandle_t q)
{
	int i;

	for (i = 0; i < f->s->count; i++)
		post_receive(f, q, i * f->s->size);
}

static void took(struct flow *f, exs_qhandle_t q, const exs_event_t *ev)
{
	size_t n = ev->exs_evt_union.exs_evt_xfer.exs_evt_length, at = f->posted[f->received++];
	size_t all = f->s->size * f->s->count, room;

	check(n || f->arrived == all, "an end after %zu of %zu bytes", f->arrived, all);
	data_check(f->id + 1, f->arrived, f->in + at, n);
	f->arrived += n;
	room = f->s->size * (f->receives - f->received);
	if (f->arrived + room < all)
		post_receive(f, q, at);
	if (f->arrived == all && n)
		must(shutdown(f->from, SHUT_WR));
}

static void handle(struct flow *f, exs_qhandle_t q, const exs_event_t *ev)
{
	check(!ev->exs_evt_errno, "%s: %s", event_name(ev->exs_evt_type), errno_name(ev->exs_evt_errno));
	if (ev->exs_evt_type == EXS_EVT_SEND || ev->exs_evt_type == EXS_EVT_SENDMSG)
		f->sent++;
	else
		took(f, q, ev);
}

static bool over(const struct flow *f)
{
	return f->sent == f->s->count && f->received == f->receives;
}

static void run(const struct shape *s)
{
	exs_qhandle_t q = queue_new(8 * s->count + 8);
	int i, flows = 1 + s->both;
	struct flow f[2];
	struct pair p;

	pair_open(&p);
	for (i = 0; i < flows; i++)
		flow_open(&f[i], s, i, i ? p.s : p.c, i ? p.c : p.s);
	for (i = 0; i < flows; i++)
		(s->sends_first ? post_sends : post_receives)(&f[i], q);
	for (i = 0; i < flows; i++)
		(s->sends_first ? post_receives : post_sends)(&f[i], q);
	while (!over(&f[0]) || !over(&f[flows - 1])) {
		exs_event_t ev = event_next(q);

		handle(&f[ev.exs_evt_ahandle / 2], q, &ev);
	}
	pair_close(&p);
	for (i = 0; i < flows; i++)
		flow_close(&f[i]);
	must(exs_qdelete(q));
}

static void run_shown(const struct shape *s)
{
	printf("%zu bytes x %d, %d pieces, %s, ", s->size, s->count, s->pieces, memory_names[s->memory]);
	printf("%s, %s first, %s, %s\n",
	       s->registered ? "registered" : "unregistered", s->sends_first ? "sends" : "receives",
	       s->waitall ? "MSG_WAITALL" : "any", s->both ? "both ways" : "one way");
	fflush(stdout);
	run(s);
}

/*
 * Each way to use @base's size and number, or about E2E_WAYS of them: by steps of an odd number,
 * so that the kinds of memory and each of the other choices are among them.
 */
static void run_all_ways(struct shape base)
{
	enum { ALL = MEMORIES * 8 };
	const char *wanted = getenv("E2E_WAYS");
	int ways = wanted ? atoi(wanted) : ALL, way;

	check(ways > 0 && ways <= ALL, "E2E_WAYS=%s", wanted);
	for (way = 0; way < ALL; way += ALL / ways | 1) {
		struct shape s = base;

		s.memory = way / 8;
		s.waitall = way & 1;
		s.sends_first = way & 2;
		s.both = way & 4;
		run_shown(&s);
	}
}

/* Received ahead, page aligned: more keys than were thought to be needed. */
static void merged_pages(void)
{
	run_shown(&(struct shape) { 2 * MIB, amount(16), HUGE_PAGES, .registered = true });
	run_shown(&(struct shape) { 4 * MIB, amount(12), HUGE_PAGES, .registered = true });
	run_shown(&(struct shape) { 8 * MIB, amount(12), SMALL_PAGES, .registered = true });
	run_shown(&(struct shape) { 8 * MIB, 3, ODD, .waitall = true, .registered = true });
}

static void long_windows(void)
{
	run_shown(&(struct shape) { 10 * MIB, 3, HUGE_PAGES, .waitall = true, .registered = true });
	run_shown(&(struct shape) { 10 * MIB, 3, SHUFFLED, .waitall = true, .registered = true });
	run_shown(&(struct shape) { amount(200 * MIB), 1, ODD, .waitall = true, .registered = true });
}

static void large(void)
{
	run_all_ways((struct shape) { 1 * MIB + 1, 9, .registered = true });
}

static void medium(void)
{
	run_all_ways((struct shape) { 65536, amount(40), .registered = true });
}

static void small(void)
{
	run_all_ways((struct shape) { 4096, amount(300), .registered = true });
}

static void tiny(void)
{
	run_all_ways((struct shape) { 3, amount(1024), .registered = true });
}

static void unregistered(void)
{
	run_all_ways((struct shape) { .size = 300001, .count = amount(12) });
}

static void in_pieces(void)
{
	run_all_ways((struct shape) { 100001, amount(24), .pieces = 7, .registered = true });
	run_shown(&(struct shape) { 2 * MIB, amount(12), HUGE_PAGES, .pieces = PIECES, .registered = true });
	run_shown(&(struct shape) { 2 * MIB, amount(12), ODD, .waitall = true, .pieces = PIECES });
}

static void large_ring(void)
{
	long sizes[] = { 512 << 10, 1 * MIB, 2 * MIB }, i;

	for (i = 0; i < 3; i++) {
		write_sysctl("ring_size", sizes[i]);
		run_shown(&(struct shape) { 100000, 50, SMALL_PAGES, .sends_first = true, .registered = true });
	}
}

static struct shape random_shape(uint64_t *seed)
{
	size_t size = 1 + next_random(seed) % (1ULL << next_random(seed) % 24);
	uint64_t bits = next_random(seed);
	size_t most = 24 * MIB / size;

	if (size > 8 * MIB)
		size = 8 * MIB;
	if (most > 1024)
		most = 1024;
	return (struct shape) {
		.size = size,
		.count = 1 + next_random(seed) % (most ? most : 1),
		.memory = bits % MEMORIES,
		.waitall = bits & 8,
		.sends_first = bits & 16,
		.both = bits & 32,
		.registered = bits & 64,
		.pieces = bits & 384 ? 0 : 1 + (bits >> 9) % PIECES,
	};
}

/* E2E_SHAPES is their number, for a long run; with E2E_SEED they are the same each time. */
static void at_random(void)
{
	const char *many = getenv("E2E_SHAPES");
	int i, n = many ? atoi(many) : (int)amount(24);
	uint64_t seed = getenv("E2E_SEED") ? e2e.seed : time(NULL);

	printf("E2E_SEED=%llu\n", (unsigned long long)seed);
	for (i = 0; i < n; i++) {
		struct shape s = random_shape(&seed);

		run_shown(&s);
	}
}

static const struct e2e_case cases[] = {
	{ "merged_pages", merged_pages, .on = ON_BOTH },
	{ "long_windows", long_windows, .on = ON_STREAM, .limit = 120 },
	{ "large", large, .on = ON_BOTH, .limit = 120 },
	{ "medium", medium, .on = ON_BOTH, .limit = 120 },
	{ "small", small, .on = ON_BOTH, .limit = 120 },
	{ "tiny", tiny, .on = ON_BOTH, .limit = 120 },
	{ "unregistered", unregistered, .on = ON_BOTH, .limit = 120 },
	{ "in_pieces", in_pieces, .on = ON_BOTH, .limit = 120 },
	{ "large_ring", large_ring, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "at_random", at_random, .on = ON_BOTH, .limit = 3600 },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
