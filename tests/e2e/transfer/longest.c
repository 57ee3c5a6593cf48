// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers of a stream that are as long as one operation may be, 2 GiB less a page. A machine
 * need not have that much memory: the operation's consists of the same few pages again and
 * again. The other side's buffers are short enough to be checked before they are used again.
 */
#include "lib/async.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST		0x7ffff000UL
#define PART		(5 * MIB + 4095)
#define PARTS		((MOST + PART - 1) / PART)
/* No multiples of each other, nor of what a key or a window covers. */
#define OUT_PATTERN	(7 * MIB + 3 * 4096)
#define IN_PATTERN	(23 * MIB + 7 * 4096)

enum { AHEAD = 3 };

/* Address space in which the same @pattern bytes come again and again, @len of them and the rest of the last time. */
static char *repeated(size_t pattern, size_t len)
{
	int fd = must(memfd_create("pattern", MFD_CLOEXEC));
	char *mem = mmap(NULL, len + pattern, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	check(mem != MAP_FAILED, "no address space: %s", errno_name(errno));
	must(ftruncate(fd, pattern));
	for (at = 0; at < len; at += pattern)
		check(mmap(mem + at, pattern, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == mem + at,
		      "mapped %zu bytes: %s", at, errno_name(errno));
	must(close(fd));
	return mem;
}

static char *pattern_out(size_t len)
{
	char *mem = repeated(OUT_PATTERN, len);

	data_fill(1, 0, mem, OUT_PATTERN);
	return mem;
}

/* Pages count as often as they are pinned. */
static void lift_limits(void)
{
	raise_limit(RLIMIT_MEMLOCK, 4 * MOST);
	write_sysctl("max_user_pages", 4 * (MOST / 4096));
}

static size_t part_len(int i)
{
	size_t at = i * PART;

	return MOST - at < PART ? MOST - at : PART;
}

static void one_send(void)
{
	exs_qhandle_t q = queue_new(AHEAD), whole = queue_new(1);
	char *out = pattern_out(MOST), *in = pages(AHEAD * PART), *to;
	struct pair p;
	exs_mhandle_t m;
	int i;

	lift_limits();
	m = region_new(in, AHEAD * PART, EXS_ACCESS_WRITE);
	pair_open(&p);
	for (i = 0; i < AHEAD; i++)
		start_recv(p.s, in + i * PART, part_len(i), MSG_WAITALL, q, i, m);
	start_send(p.c, out, MOST, whole, 0, region_new(out, MOST, EXS_ACCESS_READ));
	for (i = 0; i < (int)PARTS; i++) {
		event_is(q, EXS_EVT_RECV, i, 0, part_len(i));
		to = in + i % AHEAD * PART;
		check(!memcmp(to, out + i * PART, part_len(i)), "wrong data in part %d of %zu", i, PARTS);
		if (i + AHEAD < (int)PARTS)
			start_recv(p.s, to, part_len(i + AHEAD), MSG_WAITALL, q, i + AHEAD, m);
	}
	event_is(whole, EXS_EVT_SEND, 0, 0, MOST);
	must_be(delta("resets_protocol"), 0);
}

/* A part is in its place when it was sent, or soon after, if the provider does not wait for the peer. */
static void arrived(exs_qhandle_t q, int i, const char *in, const char *out)
{
	size_t at = i * PART;

	event_is(q, EXS_EVT_SEND, i, 0, part_len(i));
	wait_until(!memcmp(in + at, out + at % OUT_PATTERN, part_len(i)));
}

/* While a part is looked at the next is on its way. */
static void one_receive(void)
{
	exs_qhandle_t q = queue_new(AHEAD), whole = queue_new(1);
	char *in = repeated(IN_PATTERN, MOST), *out = pattern_out(OUT_PATTERN + PART);
	struct pair p;
	exs_mhandle_t m;
	int i;

	lift_limits();
	m = region_new(out, OUT_PATTERN + PART, EXS_ACCESS_READ);
	pair_open(&p);
	start_recv(p.s, in, MOST, MSG_WAITALL, whole, 0, region_new(in, MOST, EXS_ACCESS_WRITE));
	for (i = 0; i < (int)PARTS + 1; i++) {
		if (i < (int)PARTS)
			start_send(p.c, out + i * PART % OUT_PATTERN, part_len(i), q, i, m);
		if (i)
			arrived(q, i - 1, in, out);
	}
	event_is(whole, EXS_EVT_RECV, 0, 0, MOST);
	must_be(delta("resets_protocol"), 0);
}

static const struct e2e_case cases[] = {
	{ "one_send", one_send, .on = ON_STREAM, .limit = 240 },
	{ "one_receive", one_receive, .on = ON_STREAM, .limit = 240 },
	{ }
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
