// SPDX-License-Identifier: GPL-2.0
/* Memory regions: which memory may be registered, by whom, and their use. */
#include "lib/async.h"
#include "lib/file.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE	4096
#define LEN	(64 * PAGE)

static void no_pages_left(void)
{
	wait_until(!counter("live_pinned_pages") && !counter("live_regions"));
}

/* One transfer that must work, from @out to @in. */
static void transfer(const struct pair *p, const void *out, exs_mhandle_t om, void *in,
		     exs_mhandle_t im, size_t len)
{
	exs_qhandle_t a = queue_new(2), b = queue_new(2);

	start_recv(p->s, in, len, MSG_WAITALL, b, 2, im);
	start_send(p->c, out, len, a, 1, om);
	event_is(a, EXS_EVT_SEND, 1, 0, len);
	event_is(b, EXS_EVT_RECV, 2, 0, len);
	check(!memcmp(out, in, len), "other bytes came");
	must(exs_qdelete(a));
	must(exs_qdelete(b));
}

static void registered(void)
{
	char *buf = pages(2 * LEN);
	exs_mhandle_t m = region_new(buf, 2 * LEN, 0);
	struct pair p;

	must_be(counter("live_regions"), 1);
	must_be(counter("live_pinned_pages"), 2 * LEN / PAGE);
	pair_open(&p);
	data_fill(1, 0, buf, LEN);
	transfer(&p, buf, m, buf + LEN, m, LEN);
	must(exs_mderegister(m));
	must_fail(exs_mderegister(m), EBADF);
	no_pages_left();
}

/* Neither page aligned nor whole pages; parts of it, odd as one likes. */
static void unaligned(void)
{
	static const size_t starts[] = { 0, 1, 7, 100, 4095, 4096, 4097, 9999 };
	static const size_t lengths[] = { 1, 2, 63, 4095, 4096, 4097, 12345, 100000 };
	char *base = pages(4 * LEN), *out = base + 13, *in = base + 2 * LEN + 777;
	exs_mhandle_t om = region_new(out, LEN, EXS_ACCESS_READ);
	exs_mhandle_t im = region_new(in, LEN, EXS_ACCESS_WRITE);
	struct pair p;
	size_t i, j;

	must_be(counter("live_pinned_pages"), 2 * (LEN / PAGE + 1));
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

static void refused_range(int fd, exs_qhandle_t q, exs_mhandle_t m, char *at, size_t len)
{
	must_fail(exs_send(fd, at, len, 0, q, 1, m), EINVAL);
	must_fail(exs_recv(fd, at, len, 0, q, 1, m), EINVAL);
}

static void out_of_range(void)
{
	char *buf = pages(3 * LEN);
	exs_mhandle_t m = region_new(buf + LEN + 5, LEN, 0);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	refused_range(p.c, q, m, buf + LEN + 4, 1);
	refused_range(p.c, q, m, buf + LEN + 4, 2);
	refused_range(p.c, q, m, buf + LEN + 5, LEN + 1);
	refused_range(p.c, q, m, buf + 2 * LEN + 4, 2);
	refused_range(p.c, q, m, buf + 2 * LEN + 5, 1);
	refused_range(p.c, q, m, NULL, 1);
	refused_range(p.c, q, m, buf + LEN + 5, SIZE_MAX);
	refused_range(p.c, q, m, (char *)-1, 2);
	refused_range(p.c, q, m, buf + LEN + 100, SIZE_MAX - 50);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	no_event(q);
}

/* The rest is in calls/exs_mregister.c. */
static void wrong_ioctls(void)
{
	struct exs_ioc_mreg m = { .size = 3, .flags = EXS_MREG_READ, .len = PAGE };
	int fd = must(socket(exs_family(), SOCK_STREAM, 0));

	m.addr = (uintptr_t)pages(PAGE);
	must_fail(ioctl(fd, EXS_IOC_MREG, &m), EINVAL);
	m.size = sizeof(m);
	m.flags = 0x100 | EXS_MREG_READ;
	must_fail(ioctl(fd, EXS_IOC_MREG, &m), EINVAL);
	m.flags = 0;
	must_fail(ioctl(fd, EXS_IOC_MREG, &m), EINVAL);
	must_fail(ioctl(fd, EXS_IOC_MREG, (void *)8), EFAULT);
	no_pages_left();
}

static void limit_memlock(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	must(setrlimit(RLIMIT_MEMLOCK, &limit));
}

/* As an ordinary user: registered memory is charged once, and the charge is returned. */
static void memlock(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m, n;

	limit_memlock(16 * PAGE);
	drop_privileges();
	must_fail(exs_mregister(buf, 17 * PAGE, 0), ENOMEM);
	must_be(delta("region_memlock"), 1);
	m = region_new(buf, 10 * PAGE, 0);
	must_fail(exs_mregister(buf, 7 * PAGE, 0), ENOMEM);
	n = region_new(buf, 6 * PAGE, 0);
	must_fail(exs_mregister(buf, 1, 0), ENOMEM);
	must(exs_mderegister(m));
	wait_until(counter("live_pinned_pages") == 6);
	m = region_new(buf, 10 * PAGE, 0);
	must(exs_mderegister(m));
	must(exs_mderegister(n));
	no_pages_left();
	m = region_new(buf, 16 * PAGE, 0);
	must_be(delta("region_memlock"), 3);
}

/* Large unregistered operations pin, too; small sends are copied. */
static void memlock_unregistered(void)
{
	char *buf = pages(LEN);
	exs_qhandle_t q;
	struct pair p;

	limit_memlock(PAGE);
	drop_privileges();
	q = queue_new(8);
	pair_open(&p);
	must_fail(exs_recv(p.s, buf, LEN, 0, q, 1, NO_REGION), ENOMEM);
	no_event(q);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 0);
	start_send(p.c, buf, 100, q, 2, NO_REGION);
	event_is(q, EXS_EVT_SEND, 2, 0, 100);
	recv_all(p.s, 0, 0, 0);
}

static void memlock_child(void *arg)
{
	char *buf = arg;

	region_new(buf, 16 * PAGE, 0);
}

/* The limit is of each process: a parent's regions are not its child's. */
static void memlock_after_fork(void)
{
	char *buf = pages(LEN);

	limit_memlock(16 * PAGE);
	drop_privileges();
	region_new(buf, 16 * PAGE, 0);
	join(spawn(memlock_child, buf));
	wait_until(counter("live_pinned_pages") == 16);
}

static void user_cap(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m;

	write_sysctl("max_user_pages", 20);
	drop_privileges();
	m = region_new(buf, 15 * PAGE, 0);
	must_fail(exs_mregister(buf, 6 * PAGE, 0), ENOBUFS);
	must_be(delta("limit_pages"), 1);
	must(exs_mderegister(m));
	no_pages_left();
	region_new(buf, 20 * PAGE, 0);
}

static void freed_number_reused(void)
{
	char *a = pages(PAGE), *b = pages(PAGE);
	exs_qhandle_t q = queue_new(4);
	exs_mhandle_t ma = region_new(a, PAGE, 0), mb;
	struct pair p;

	pair_open(&p);
	must(exs_mderegister(ma));
	mb = region_new(b, PAGE, 0);
	must_be(mb, ma);
	must_fail(exs_send(p.c, a, 1, 0, q, 1, mb), EINVAL);
	start_send(p.c, b, 1, q, 1, mb);
	event_is(q, EXS_EVT_SEND, 1, 0, 1);
}

static void sees_no_address(void *arg)
{
	pid_t parent = getppid();
	exs_mhandle_t m = *(exs_mhandle_t *)arg;

	check(fdinfo_has(parent, m, "exs-len:"), "it sees nothing of its parent's region");
	check(!fdinfo_has(parent, m, "exs-addr:"), "another process sees where it is");
}

/* /proc/PID/fdinfo, as exs-sysctl(7) describes it. Only the owner sees the address. */
static void in_fdinfo(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m = region_new(buf, LEN, 0), r = region_new(buf + 1, PAGE, EXS_ACCESS_READ),
		      w = region_new(buf, 10, EXS_ACCESS_WRITE);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	check(fdinfo_has(getpid(), m, "exs-access:\trw\n") && fdinfo_has(getpid(), r, "exs-access:\tr\n") &&
	      fdinfo_has(getpid(), w, "exs-access:\tw\n"), "not the access that was asked for");
	fdinfo_is(m, "exs-len", LEN);
	fdinfo_is(m, "exs-pages", LEN / PAGE);
	fdinfo_is(r, "exs-len", PAGE);
	fdinfo_is(r, "exs-pages", 2);
	fdinfo_is(m, "exs-in-use", 0);
	pair_open(&p);
	start_recv(p.s, buf, 1, 0, q, 1, m);
	start_recv(p.s, buf, 1, 0, q, 2, m);
	fdinfo_is(m, "exs-in-use", 2);
	must_be(send(p.c, "xx", 2, 0), 2);
	event_is(q, EXS_EVT_RECV, 1, 0, 1);
	event_is(q, EXS_EVT_RECV, 2, 0, 1);
	wait_until(fdinfo_has(getpid(), m, "exs-in-use:\t0\n"));
	check(fdinfo_has(getpid(), m, "exs-addr:"), "its owner does not see where it is");
	join(spawn(sees_no_address, &m));
	fdinfo_is(m, "exs-stale", 0);
	must(munmap(buf + 2 * PAGE, PAGE));
	fdinfo_is(m, "exs-stale", 1);
	fdinfo_is(r, "exs-stale", 0);
}

/* The range is unmapped: the region is of no use from then on. */
static void unmapped(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m = region_new(buf, LEN, 0);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	must(munmap(buf + PAGE, PAGE));
	must_fail(exs_send(p.c, buf, 100, 0, q, 1, m), EFAULT);
	must_fail(exs_recv(p.s, buf, 100, 0, q, 1, m), EFAULT);
	must_be(delta("region_stale"), 2);
	no_event(q);
	/* Something else at the same address is not that memory. */
	check(mmap(buf + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0) != MAP_FAILED, "mmap");
	must_fail(exs_send(p.c, buf, 100, 0, q, 1, m), EFAULT);
	must(exs_mderegister(m));
	m = region_new(buf, LEN, 0);
	start_send(p.c, buf, 100, q, 1, m);
	event_is(q, EXS_EVT_SEND, 1, 0, 100);
}

/* Unmapped under an operation: it ends as usual, in memory that no process sees. */
static void unmapped_in_use(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m = region_new(buf, LEN, 0);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	start_recv(p.s, buf, 1000, 0, q, 1, m);
	must(munmap(buf, LEN));
	send_all(p.c, 3, 0, 1000);
	event_is(q, EXS_EVT_RECV, 1, 0, 1000);
	must_fail(exs_recv(p.s, buf, 1000, 0, q, 1, m), EFAULT);
	must(exs_mderegister(m));
	no_pages_left();
}

/* A neighbour's unmapping does not count. */
static void unmapped_beside(void)
{
	char *buf = pages(3 * PAGE);
	exs_mhandle_t m = region_new(buf + PAGE, PAGE, 0);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	must(munmap(buf, PAGE));
	must(munmap(buf + 2 * PAGE, PAGE));
	start_send(p.c, buf + PAGE, PAGE, q, 1, m);
	event_is(q, EXS_EVT_SEND, 1, 0, PAGE);
}

struct inherited { struct pair p; char *buf; exs_mhandle_t m; exs_qhandle_t q; };

static void child_keeps_region(void *arg)
{
	struct inherited *in = arg;

	hear(in->q);
	start_send(in->p.c, in->buf, PAGE, in->q = queue_new(4), 1, in->m);
	event_is(in->q, EXS_EVT_SEND, 1, 0, PAGE);
}

/* A child's descriptor keeps the region when its parent gave up its own. */
static void kept_by_child(void)
{
	struct pipe_pair go = pipe_open();
	struct inherited in = { .q = go.rd };
	pid_t pid;

	in.buf = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	in.m = region_new(in.buf, PAGE, 0);
	pair_open(&in.p);
	data_fill(7, 0, in.buf, PAGE);
	pid = spawn(child_keeps_region, &in);
	must(exs_mderegister(in.m));
	must_be(counter("live_regions"), 1);
	tell(go.wr, 1);
	recv_all(in.p.s, 7, 0, PAGE);
	join(pid);
	no_pages_left();
}

/* Memory of a file, mapped shared: received bytes reach the file. */
static void file_memory(void)
{
	int fd = must(memfd_create("e2e", MFD_CLOEXEC));
	exs_qhandle_t q = queue_new(4);
	char *map, *copy = pages(LEN);
	exs_mhandle_t m;
	struct pair p;

	must(ftruncate(fd, LEN));
	map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	m = region_new(map, LEN, 0);
	pair_open(&p);
	data_fill(4, 0, copy, LEN);
	start_recv(p.s, map, 50000, MSG_WAITALL, q, 1, m);
	must_be(send(p.c, copy, 50000, 0), 50000);
	event_is(q, EXS_EVT_RECV, 1, 0, 50000);
	must_be(pread(fd, copy, 50000, 0), 50000);
	data_check(4, 0, copy, 50000);
}

/* Memory that was never written, one of the two read-only: the sent bytes are those that are written later. */
static void written_later(void)
{
	char *buf[2] = { pages(PAGE), pages(PAGE) };
	exs_qhandle_t q = queue_new(1);
	exs_mhandle_t m[2];
	struct pair p;
	int i;

	must(mprotect(buf[1], PAGE, PROT_READ));
	for (i = 0; i < 2; i++)
		m[i] = region_new(buf[i], PAGE, EXS_ACCESS_READ);
	must(mprotect(buf[1], PAGE, PROT_READ | PROT_WRITE));
	pair_open(&p);
	for (i = 0; i < 2; i++) {
		data_fill(i, 0, buf[i], PAGE);
		start_send(p.c, buf[i], PAGE, q, i, m[i]);
		event_is(q, EXS_EVT_SEND, i, 0, PAGE);
		recv_all(p.s, i, 0, PAGE);
	}
}

/* Memory that a file system writes back may be sent from, but not received into. */
static void written_back(void)
{
	int fd = file_of_zeros();
	exs_qhandle_t q = queue_new(4);
	char *map, *zeros = pages(PAGE);
	struct pair p;

	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED, "mmap: %s", errno_name(errno));
	pair_open(&p);
	must_fail(exs_mregister(map, PAGE, EXS_ACCESS_WRITE), EFAULT);
	must_fail(exs_recv(p.s, map, PAGE, 0, q, 1, EXS_MHANDLE_UNREGISTERED), EFAULT);
	memset(zeros, 1, PAGE);
	start_send(p.c, map, PAGE, q, 2, EXS_MHANDLE_UNREGISTERED);
	must_be(recv(p.s, zeros, PAGE, MSG_WAITALL), PAGE);
	event_is(q, EXS_EVT_SEND, 2, 0, PAGE);
	check(!memcmp(zeros, map, PAGE), "not what the file holds");
	munmap(map, PAGE);
	no_pages_left();
}

/* Pins of the whole machine, as the kernel counts them. */
static long pins(void)
{
	static const char names[][32] = { "nr_foll_pin_acquired", "nr_foll_pin_released" };
	int refresh = must(open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC));
	char name[64];
	long value, both[2] = { -1, -1 };
	FILE *f;
	int i;

	must_be(write(refresh, "1", 1), 1);
	close(refresh);
	f = fopen("/proc/vmstat", "re");
	check(f != NULL, "no /proc/vmstat");
	while (fscanf(f, "%63s %ld", name, &value) == 2)
		for (i = 0; i < 2; i++)
			if (!strcmp(name, names[i]))
				both[i] = value;
	fclose(f);
	check(both[0] >= 0 && both[1] >= 0, "pins are not counted");
	return both[0] - both[1];
}

/* Many regions, some over the same pages. */
static void many(void)
{
	char *buf = pages(LEN);
	exs_mhandle_t m[200];
	long before = pins();
	int i;

	for (i = 0; i < 200; i++)
		m[i] = region_new(buf + (i % 60) * PAGE, (1 + i % 4) * PAGE, 0);
	must_be(counter("live_pinned_pages"), 500);
	must_be(pins() - before, 500);
	for (i = 0; i < 200; i += 2)
		must(exs_mderegister(m[i]));
	wait_until(counter("live_pinned_pages") == 300);
	wait_until(pins() - before == 300);
}

/* Huge pages, and a size that takes more than one memory key. */
static void large(void)
{
	size_t len = e2e.seq ? 8 * MIB : 20 * MIB;
	char *out = pages(len), *in = pages(len);
	exs_mhandle_t om, im;
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	madvise(in, len, MADV_HUGEPAGE);
	data_fill(2, 0, out, len);
	om = region_new(out, len, 0);
	im = region_new(in, len, 0);
	pair_open(&p);
	start_recv(p.s, in, len, MSG_WAITALL, q, 1, im);
	start_send(p.c, out, len, queue_new(1), 2, om);
	event_is(q, EXS_EVT_RECV, 1, 0, len);
	data_check(2, 0, in, len);
}

/* The swapped pair of one old slide: an error before anything starts. */
static void swapped_handles(void)
{
	char *buf = pages(PAGE);
	exs_mhandle_t m = region_new(buf, PAGE, 0);
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	must_fail(exs_send(p.c, buf, 1, 0, m, 1, q), EINVAL);
	must_fail(exs_recv(p.c, buf, 1, 0, m, 1, q), EINVAL);
	transfer(&p, buf, m, buf + 100, m, 50);
}

static const struct e2e_case cases[] = {
	{ "registered", registered, .on = ON_BOTH },
	{ "unaligned", unaligned, .on = ON_BOTH },
	{ "out_of_range", out_of_range, .on = ON_STREAM },
	{ "wrong_ioctls", wrong_ioctls, .on = ON_EXS },
	{ "memlock", memlock, .on = ON_EXS },
	{ "memlock_unregistered", memlock_unregistered, .on = ON_BOTH },
	{ "memlock_after_fork", memlock_after_fork, .on = ON_EXS },
	{ "user_cap", user_cap, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "freed_number_reused", freed_number_reused, .on = ON_STREAM },
	{ "in_fdinfo", in_fdinfo, .on = ON_STREAM },
	{ "unmapped", unmapped, .on = ON_BOTH },
	{ "unmapped_in_use", unmapped_in_use, .on = ON_BOTH },
	{ "unmapped_beside", unmapped_beside, .on = ON_STREAM },
	{ "kept_by_child", kept_by_child, .on = ON_STREAM },
	{ "file_memory", file_memory, .on = ON_BOTH },
	{ "written_later", written_later, .on = ON_BOTH },
	{ "written_back", written_back, .on = ON_BOTH },
	{ "many", many, .on = ON_EXS },
	{ "large", large, .on = ON_BOTH, .limit = 120 },
	{ "swapped_handles", swapped_handles, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
