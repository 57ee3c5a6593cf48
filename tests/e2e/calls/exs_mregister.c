// SPDX-License-Identifier: GPL-2.0
#include "calls.h"

#define CALL "exs_mregister"
#define LEN	(8 * PAGE)

/* Shared between parent and child. */
static char *shared_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED, "mmap: %s", errno_name(errno));
	return p;
}

/* One for both directions, one for each, and none. */
static void registered_or_not(void)
{
	char *out = pages(2 * LEN), *in = out + LEN;
	exs_mhandle_t both = region_new(out, 2 * LEN, 0);
	exs_mhandle_t r = region_new(out, LEN, EXS_ACCESS_READ);
	exs_mhandle_t w = region_new(in, LEN, EXS_ACCESS_WRITE | EXS_MRF_SHARED);
	exs_mhandle_t shared = region_new(out, 2 * LEN, EXS_MRF_SHARED);
	struct pair p;

	pair_open(&p);
	data_fill(1, 0, out, LEN);
	transfer(&p, out, both, in, both, LEN);
	transfer(&p, out, r, in + 1, w, LEN - 1);
	transfer(&p, out, shared, in + 3, shared, LEN - 3);
	transfer(&p, out, NO_REGION, in, w, LEN);
	transfer(&p, out, r, in + 2, NO_REGION, LEN - 2);
	transfer(&p, out, NO_REGION, in, NO_REGION, LEN);
}

/* The region begins and ends inside pages. Receives into parts of it change nothing outside them. */
static void parts(void)
{
	static const size_t starts[] = { 0, 1, 4095, 4096, 9999 };
	static const size_t lengths[] = { 1, 63, 4097, 12345 };
	char *base = pages(4 * LEN), *out = base + 13, *in = base + 2 * LEN + 777;
	exs_mhandle_t om = region_new(out, LEN, EXS_ACCESS_READ);
	exs_mhandle_t im = region_new(in, LEN, EXS_ACCESS_WRITE);
	struct pair p;
	size_t i, j;

	pair_open(&p);
	data_fill(5, 0, out, LEN);
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			memset(in, 0xee, LEN);
			transfer(&p, out + starts[i], om, in + starts[j] + 1, im, lengths[j]);
			must_be((unsigned char)in[starts[j]], 0xee);
			must_be((unsigned char)in[starts[j] + 1 + lengths[j]], 0xee);
		}
	}
}

struct inherited { struct pair p; char *buf; exs_mhandle_t m; };

static void child_transfers(void *arg)
{
	const struct inherited *in = arg;

	transfer(&in->p, in->buf, in->m, in->buf + LEN, in->m, LEN);
}

/* A child uses its parent's region, of memory that they share: received bytes are in the parent, too. */
static void by_child(void)
{
	struct inherited in = { .buf = shared_pages(2 * LEN) };

	in.m = region_new(in.buf, 2 * LEN, 0);
	pair_open(&in.p);
	data_fill(7, 0, in.buf, LEN);
	join(spawn(child_transfers, &in));
	data_check(7, 0, in.buf + LEN, LEN);
}

static void child_keeps(void *arg)
{
	struct inherited *in = arg;
	exs_qhandle_t q = queue_new(1);

	in->buf[0] = 'c';
	start_send(in->p.c, in->buf, LEN, q, 1, in->m);
	event_is(q, EXS_EVT_SEND, 1, 0, LEN);
}

/*
 * Memory of its own after a fork: an operation sends the pages that were registered, which are
 * the parent's, even if the child has written at this address.
 */
static void private_memory(void)
{
	struct inherited in = { .buf = pages(LEN) };
	char got[LEN];
	pid_t pid;

	in.buf[0] = 'p';
	in.m = region_new(in.buf, LEN, EXS_ACCESS_READ);
	pair_open(&in.p);
	pid = spawn(child_keeps, &in);
	must_be(recv(in.p.s, got, LEN, MSG_WAITALL), LEN);
	must_be(got[0], 'p');
	join(pid);
	must_be(in.buf[0], 'p');
}

struct passed { struct pair p; int way[2]; struct pipe_pair address; };

/* The child was there before the memory, which it cannot read; the region's memory is sent. */
static void other_process(void *arg)
{
	const struct passed *x = arg;
	exs_mhandle_t m = receive_fd(x->way[1]);
	char *at = (char *)hear(x->address.rd);
	exs_qhandle_t q = queue_new(1);

	must_fail(exs_send(x->p.c, at + LEN, 1, 0, q, 1, m), EINVAL);
	start_send(x->p.c, at, LEN, q, 1, m);
	event_is(q, EXS_EVT_SEND, 1, 0, LEN);
}

static void passed(void)
{
	struct passed x = { .address = pipe_open() };
	char *buf, got[LEN];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, x.way));
	pair_open(&x.p);
	pid = spawn(other_process, &x);
	buf = pages(LEN);
	data_fill(8, 0, buf, LEN);
	send_fd(x.way[0], region_new(buf, LEN, EXS_ACCESS_READ));
	tell(x.address.wr, (long)buf);
	must_be(recv(x.p.s, got, LEN, MSG_WAITALL), LEN);
	data_check(8, 0, got, LEN);
	join(pid);
}

/* Sends of read-only memory, and nothing else. */
static void read_only(void)
{
	exs_qhandle_t q = queue_new(1);
	char *buf = pages(2 * PAGE);
	exs_mhandle_t m;
	struct pair p;

	pair_open(&p);
	data_fill(1, 0, buf, PAGE);
	must(mprotect(buf, PAGE, PROT_READ));
	must_fail(exs_mregister(buf, PAGE, 0), EFAULT);
	must_fail(exs_mregister(buf, PAGE, EXS_ACCESS_WRITE), EFAULT);
	m = region_new(buf, PAGE, EXS_ACCESS_READ);
	transfer(&p, buf, m, buf + PAGE, NO_REGION, PAGE);
	transfer(&p, buf, NO_REGION, buf + PAGE, NO_REGION, PAGE);
	must_fail(exs_recv(p.c, buf, PAGE, 0, q, 1, m), EACCES);
	nothing_started(q);
}

static void wrong(void)
{
	char *buf = pages(3 * PAGE);

	must_fail(exs_mregister(buf, 0, 0), EINVAL);
	must_fail(exs_mregister(buf, PAGE, 8), EINVAL);
	must_fail(exs_mregister(buf, PAGE, 0x1000), EINVAL);
	must_fail(exs_mregister(NULL, PAGE, 0), EFAULT);
	must_fail(exs_mregister((void *)0xffff800000000000, PAGE, 0), EFAULT);
	must_fail(exs_mregister(buf, SIZE_MAX, 0), EFAULT);
	must(munmap(buf + PAGE, PAGE));
	must_fail(exs_mregister(buf, 3 * PAGE, 0), EFAULT);
	must_fail(exs_mregister(buf + PAGE, PAGE, 0), EFAULT);
	must(mprotect(buf, PAGE, PROT_NONE));
	must_fail(exs_mregister(buf, PAGE, EXS_ACCESS_READ), EFAULT);
	must_be(counter("live_regions"), 0);
	must_be(counter("live_pinned_pages"), 0);
}

static void above_memlock(void *arg)
{
	limit_memlock(2 * PAGE);
	must_fail(exs_mregister(arg, 3 * PAGE, 0), ENOMEM);
	region_new(arg, 2 * PAGE, 0);
}

static void limits(void)
{
	struct rlimit files = { 3, 3 };
	char *buf = pages(LEN);

	join(spawn(above_memlock, buf));
	write_sysctl("max_user_pages", 2);
	drop_privileges();
	must_fail(exs_mregister(buf, 3 * PAGE, 0), ENOBUFS);
	region_new(buf, 2 * PAGE, 0);
	must(setrlimit(RLIMIT_NOFILE, &files));
	must_fail(exs_mregister(buf, PAGE, 0), EMFILE);
}

const struct e2e_case exs_mregister_cases[] = {
	CASE(registered_or_not, ON_KINDS),
	CASE(parts, ON_KINDS),
	CASE(by_child, ON_KINDS),
	CASE(private_memory, ON_KINDS),
	CASE(passed, ON_KINDS),
	CASE(read_only, ON_KINDS),
	CASE(wrong, ON_EXS),
	CASE(limits, ON_EXS),
	{}
};
