// SPDX-License-Identifier: GPL-2.0
/* exs_sendmsg() and exs_recvmsg(): memory in pieces. */
#include "lib/async.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECES	EXS_IOV_MAX
#define NOWHERE	((void *)0x10)		/* an address where nothing ever is */

/* Pieces of one piece of memory, with gaps between them. */
struct vec {
	char *mem;
	size_t room, len;
	exs_mhandle_t region;
	exs_msghdr_t msg;
	exs_iovec_t iov[PIECES];
};

/* Both ends, and a vector at each. */
struct ends {
	struct pair p;
	exs_qhandle_t sq, rq;
	struct vec *out, *in;
};

static struct vec *vec_new(size_t room, int access)
{
	struct vec *v = (struct vec *)pages(sizeof(*v));

	v->mem = pages(room);
	v->room = room;
	v->region = region_new(v->mem, room, access);
	v->msg.msg_iov = v->iov;
	return v;
}

static void vec_add(struct vec *v, void *base, size_t len, exs_mhandle_t region)
{
	v->iov[v->msg.msg_iovlen++] = (exs_iovec_t){ base, len, region };
	v->len += len;
}

static void vec_clear(struct vec *v)
{
	v->msg.msg_iovlen = 0;
	v->len = 0;
}

/* @n pieces of @min to @max bytes, at odd places. */
static void vec_cut(struct vec *v, size_t n, size_t min, size_t max)
{
	uint64_t state = e2e.seed + n + min;
	size_t i, len, off = 1;

	vec_clear(v);
	for (i = 0; i < n; i++) {
		len = min + next_random(&state) % (max - min + 1);
		vec_add(v, v->mem + off, len, v->region);
		off += len + 1 + next_random(&state) % 5;
	}
	check(off <= v->room, "%zu pieces need %zu bytes", n, off);
}

static void vec_fill(struct vec *v, uint64_t seed)
{
	size_t i, pos = 0;

	for (i = 0; i < v->msg.msg_iovlen; pos += v->iov[i++].iov_len)
		data_fill(seed, pos, v->iov[i].iov_base, v->iov[i].iov_len);
}

/* @len bytes have come, and nothing else was touched. Clears it. */
static void vec_check(struct vec *v, uint64_t seed, size_t len)
{
	size_t i, n, pos = 0;

	for (i = 0; i < v->msg.msg_iovlen && pos < len; i++, pos += n) {
		n = v->iov[i].iov_len < len - pos ? v->iov[i].iov_len : len - pos;
		data_check(seed, pos, v->iov[i].iov_base, n);
		memset(v->iov[i].iov_base, 0, n);
	}
	for (i = 0; i < v->room; i++)
		check(!v->mem[i], "byte %zu is %d after a receive of %zu bytes", i, v->mem[i], len);
}

static void ends_open(struct ends *e, size_t room)
{
	pair_open(&e->p);
	e->sq = queue_new(256);
	e->rq = queue_new(256);
	e->out = vec_new(room, EXS_ACCESS_READ);
	e->in = vec_new(room, EXS_ACCESS_WRITE);
}

static void start_out(struct ends *e, exs_ahandle_t h)
{
	must(exs_sendmsg(e->p.c, &e->out->msg, 0, e->sq, h));
}

static void start_in(struct ends *e, int flags, exs_ahandle_t h)
{
	must(exs_recvmsg(e->p.s, &e->in->msg, flags, e->rq, h));
}

static void msg_event_is(exs_qhandle_t q, int type, exs_ahandle_t h, long len, const exs_msghdr_t *msg)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, type, h, 0, len);
	check(ev.exs_evt_union.exs_evt_xfermsg.exs_evt_msg == msg, "not the structure of the call");
	must_be(ev.exs_evt_union.exs_evt_xfermsg.exs_evt_length, len);
}

/* Send @out into @in, which has room for it. */
static void exchange(struct ends *e, uint64_t seed, bool receive_first)
{
	long len = e->out->len;

	vec_fill(e->out, seed);
	if (receive_first)
		start_in(e, MSG_WAITALL, seed);
	start_out(e, seed);
	if (!receive_first)
		start_in(e, MSG_WAITALL, seed);
	if (!e2e.seq && e->in->len > e->out->len)
		must(shutdown(e->p.c, SHUT_WR));
	msg_event_is(e->rq, EXS_EVT_RECVMSG, seed, len, &e->in->msg);
	must_be(e->in->msg.msg_flags, e2e.seq ? MSG_EOR : 0);
	must_be(e->in->msg.msg_namelen, 0);
	msg_event_is(e->sq, EXS_EVT_SENDMSG, seed, len, &e->out->msg);
	vec_check(e->in, seed, len);
}

static void one_piece(void)
{
	static const size_t sizes[] = { 1, 1000, 1009, 4096, 70001, 1 * MIB + 3 };
	struct ends e;
	size_t i;

	ends_open(&e, 2 * MIB);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		vec_cut(e.out, 1, sizes[i], sizes[i]);
		vec_cut(e.in, 1, sizes[i], sizes[i]);
		exchange(&e, i, i % 2);
	}
}

/* Each side cuts the same bytes in its own way. */
static void cut_both(size_t n_out, size_t n_in, size_t each)
{
	struct ends e;

	ends_open(&e, 4 * MIB);
	vec_cut(e.out, n_out, each, each);
	vec_cut(e.in, n_in, each * n_out / n_in, each * n_out / n_in);
	check(e.in->len == e.out->len, "%zu and %zu bytes", e.in->len, e.out->len);
	exchange(&e, 1, true);
	exchange(&e, 2, false);
}

static void few_pieces(void)
{
	cut_both(6, 3, 60001);
}

static void small_pieces(void)
{
	cut_both(3, 12, 300);
}

/* No two adjacent bytes fit into one scatter/gather entry. */
static void scraps(void)
{
	cut_both(PIECES, PIECES / 2, 3);
	check(delta("scattered_sends") == 2, "%ld sends were copied", delta("scattered_sends"));
}

/* 256 of them, as many as a chain takes on soft-RoCE, hold 4 KiB: just enough. */
static void crumbs(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.out, PIECES, 17, 17);
	vec_cut(e.in, 1, PIECES * 17, PIECES * 17);
	exchange(&e, 1, true);
	must_be(delta("scattered_sends"), 0);
}

/* As many as there may be; too many for keys, not too many to be sent from where they are. */
static void many_pieces(void)
{
	struct ends e;

	ends_open(&e, 4 * MIB);
	vec_cut(e.out, PIECES, 1001, 2999);
	vec_cut(e.in, PIECES, 3000, 3100);
	exchange(&e, 1, true);
	must_be(delta("scattered_sends"), 0);
	must_be(delta("scattered_recvs"), 1);
	if (!e2e.seq)
		return;
	/* The next message is not mixed with earlier bytes. */
	vec_cut(e.out, 7, 100, 20000);
	exchange(&e, 2, false);
	vec_cut(e.out, 2, 10, 100);
	exchange(&e, 3, true);
}

/* A receive in few enough pieces is written to directly, if need be one window after the other. */
static void written_directly(size_t n, size_t each)
{
	struct ends e;
	char byte;

	ends_open(&e, n * each + 1000);
	vec_cut(e.out, n, each, each);
	vec_cut(e.in, n, each, each);
	vec_fill(e.out, 1);
	start_in(&e, MSG_WAITALL, 1);
	must_be(send(e.p.s, "!", 1, 0), 1);
	must_be(recv(e.p.c, &byte, 1, 0), 1);
	start_out(&e, 1);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 1, e.in->len, &e.in->msg);
	vec_check(e.in, 1, e.in->len);
	check(delta("direct_tx_bytes") >= (long)(e.in->len < MIB ? e.in->len : MIB), "%ld bytes went directly",
	      delta("direct_tx_bytes"));
	must_be(delta("scattered_sends") + delta("scattered_recvs"), 0);
	msg_event_is(e.sq, EXS_EVT_SENDMSG, 1, e.out->len, &e.out->msg);
}

static void direct(void)
{
	written_directly(9, 100001);
}

static void windows(void)
{
	written_directly(3, amount(5 * MIB) + 1);
}

static void empty_pieces(void)
{
	struct ends e;
	size_t i;

	ends_open(&e, MIB);
	for (i = 0; i < 100; i++) {
		vec_add(e.out, e.out->mem + 50 * i, i % 3 ? 0 : 50, i % 2 ? NO_REGION : e.out->region);
		vec_add(e.in, e.in->mem + 60 * i, i % 3 ? 0 : 50, i % 2 ? NO_REGION : e.in->region);
	}
	/* Nothing is read or written there. */
	vec_add(e.out, NOWHERE, 0, NO_REGION);
	vec_add(e.in, NOWHERE, 0, NO_REGION);
	exchange(&e, 1, true);
	exchange(&e, 2, false);
}

static void no_pieces(void)
{
	struct ends e;

	ends_open(&e, MIB);
	start_out(&e, 1);
	msg_event_is(e.sq, EXS_EVT_SENDMSG, 1, 0, &e.out->msg);
	start_in(&e, 0, 2);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 2, 0, &e.in->msg);
	must_be(e.in->msg.msg_flags, e2e.seq ? MSG_EOR : 0);
	vec_add(e.out, e.out->mem, 0, e.out->region);
	start_out(&e, 3);
	msg_event_is(e.sq, EXS_EVT_SENDMSG, 3, 0, &e.out->msg);
}

/* Registered, in two regions, and not registered at all. */
static void mixed_regions(void)
{
	struct ends e;
	struct vec *more, *dest;
	char *plain = pages(MIB);

	ends_open(&e, MIB);
	more = vec_new(MIB, EXS_ACCESS_READ);
	dest = vec_new(MIB, EXS_ACCESS_WRITE);
	vec_add(e.out, plain, 1, NO_REGION);
	vec_add(e.out, e.out->mem + 3, 100003, e.out->region);
	vec_add(e.out, more->mem + 5, 50001, more->region);
	vec_add(e.out, plain + 7, 70001, NO_REGION);
	vec_add(e.out, more->mem + 60000, 7, more->region);
	vec_add(e.in, e.in->mem + 9, 150000, e.in->region);
	vec_add(e.in, e.in->mem + 160000, e.out->len - 160000, NO_REGION);
	vec_add(e.in, dest->mem + 1, 10000, dest->region);
	exchange(&e, 1, true);
	exchange(&e, 2, false);
	must_be(delta("copied_sends"), 0);
	must_be(delta("oneshot_regions"), 2 * 3);
}

/* A header before registered memory is not worth pinning. */
static void header_copied(void)
{
	char header[100];
	struct ends e;

	ends_open(&e, MIB);
	vec_add(e.out, header, 60, NO_REGION);
	vec_add(e.out, e.out->mem, 40000, e.out->region);
	vec_add(e.out, header + 60, 40, NO_REGION);
	vec_add(e.in, e.in->mem, e.out->len, e.in->region);
	exchange(&e, 1, true);
	must_be(delta("copied_sends"), 1);
	must_be(delta("oneshot_regions"), 0);
}

/* The copy is made when the call is: the program may go on with the memory. */
static void vector_is_free_at_once(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.out, 20, 1000, 2000);
	vec_cut(e.in, 20, 2000, 2000);
	vec_fill(e.out, 1);
	start_in(&e, 0, 1);
	memset(e.in->iov, 0xee, sizeof(e.in->iov));
	start_out(&e, 1);
	memset(e.out->iov, 0xee, sizeof(e.out->iov));
	msg_event_is(e.sq, EXS_EVT_SENDMSG, 1, e.out->len, &e.out->msg);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 1, e.out->len, &e.in->msg);
	vec_cut(e.in, 20, 2000, 2000);
	vec_check(e.in, 1, e.out->len);
}

/* One page, a thousand times. */
static void same_memory(void)
{
	struct ends e;
	size_t i;

	ends_open(&e, 4 * MIB);
	data_fill(1, 0, e.out->mem, 4096);
	for (i = 0; i < PIECES; i++)
		vec_add(e.out, e.out->mem, 1000, e.out->region);
	vec_add(e.in, e.in->mem, e.out->len, e.in->region);
	start_in(&e, MSG_WAITALL, 1);
	start_out(&e, 1);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 1, e.out->len, &e.in->msg);
	msg_event_is(e.sq, EXS_EVT_SENDMSG, 1, e.out->len, &e.out->msg);
	for (i = 0; i < PIECES; i++)
		data_check(1, 0, e.in->mem + i * 1000, 1000);
}

/* The cap leaves one page beyond the present use. */
static void leave_one_page(void)
{
	long most = counter("live_pinned_pages");
	char *page = pages(sysconf(_SC_PAGESIZE));
	exs_mhandle_t m;

	do {
		write_sysctl("max_user_pages", most++);
		m = exs_mregister(page, 1, EXS_ACCESS_READ);
		check(m != EXS_MHANDLE_INVALID || errno == ENOBUFS, "exs_mregister: %s", errno_name(errno));
	} while (m == EXS_MHANDLE_INVALID);
	must(exs_mderegister(m));
}

/* A vector's own memory is limited, although its pieces are registered. */
static void not_for_free(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.out, PIECES, 500, 500);
	vec_cut(e.in, PIECES, 500, 500);
	leave_one_page();
	must_fail(exs_sendmsg(e.p.c, &e.out->msg, 0, e.sq, 1), ENOBUFS);
	must_fail(exs_recvmsg(e.p.s, &e.in->msg, 0, e.rq, 1), ENOBUFS);
	check(delta("limit_pages") >= 2, "%ld were counted", delta("limit_pages"));
	sysctls_restore();
	exchange(&e, 1, true);
}

/* -- the end of a receive */

static void partial(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.in, 30, 1000, 5000);
	start_in(&e, 0, 1);
	send_all(e.p.c, 1, 0, 5000);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 1, 5000, &e.in->msg);
	vec_check(e.in, 1, 5000);
}

static void waitall(void)
{
	struct ends e;
	int i;

	ends_open(&e, MIB);
	vec_cut(e.in, 4, 25000, 25000);
	start_in(&e, MSG_WAITALL, 1);
	for (i = 0; i < 10; i++) {
		no_event(e.rq);
		send_all(e.p.c, 1, i * 10000, 10000);
	}
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 1, 100000, &e.in->msg);
	vec_check(e.in, 1, 100000);
}

/* A message of @len bytes and one byte less room for it, in @n pieces. */
static void truncated(struct ends *e, size_t len, size_t n, bool receive_first)
{
	vec_clear(e->out);
	vec_add(e->out, e->out->mem, len, e->out->region);
	vec_fill(e->out, len);
	vec_cut(e->in, n, (len - 1) / n, (len - 1) / n);
	e->in->iov[n - 1].iov_len += (len - 1) % n;
	e->in->len = len - 1;
	if (receive_first)
		start_in(e, 0, len);
	start_out(e, len);
	if (!receive_first)
		start_in(e, 0, len);
	msg_event_is(e->rq, EXS_EVT_RECVMSG, len, len - 1, &e->in->msg);
	must_be(e->in->msg.msg_flags, MSG_EOR | MSG_TRUNC);
	msg_event_is(e->sq, EXS_EVT_SENDMSG, len, len, &e->out->msg);
	vec_check(e->in, len, len - 1);
}

static void truncation(void)
{
	struct ends e;
	int first;

	ends_open(&e, MIB);
	for (first = 0; first < 2; first++) {
		truncated(&e, 900, 7, first);
		truncated(&e, 30000, 7, first);
		truncated(&e, 300001, 100, first);
	}
	/* One that fits is not. */
	vec_cut(e.in, 100, 500, 500);
	vec_cut(e.out, 1, 50000, 50000);
	exchange(&e, 1, true);
}

/* More room than any message can need is room enough. */
static void more_than_a_message(void)
{
	struct ends e;

	ends_open(&e, 24 * MIB);
	vec_cut(e.in, 100, 200000, 200000);
	vec_cut(e.out, 1, 100000, 100000);
	exchange(&e, 1, true);
	vec_cut(e.in, 1, 20 * MIB, 20 * MIB);
	exchange(&e, 2, true);
}

static void too_large(void)
{
	struct ends e;

	ends_open(&e, 9 * MIB);
	vec_cut(e.out, 2, 4 * MIB, 4 * MIB);
	e.out->iov[1].iov_len++;
	must_fail(exs_sendmsg(e.p.c, &e.out->msg, 0, e.sq, 1), EMSGSIZE);
	no_event(e.sq);
}

/* -- order and mixtures */

static void in_order(void)
{
	struct ends e;
	int i;

	ends_open(&e, MIB);
	vec_cut(e.out, 5, 2000, 2000);
	vec_fill(e.out, 1);
	vec_cut(e.in, 20, 500, 500);
	data_fill(1, 0, e.out->mem + 500000, 10000);
	for (i = 0; i < 12; i += 3) {
		start_out(&e, i);
		start_send(e.p.c, e.out->mem + 500000, 10000, e.sq, i + 1, e.out->region);
		must_be(send(e.p.c, e.out->mem + 500000, 10000, 0), 10000);
	}
	for (i = 0; i < 12; i++) {
		if (i % 2)
			start_in(&e, MSG_WAITALL, i);
		else
			start_recv(e.p.s, e.in->mem + 500000, 10000, MSG_WAITALL, e.rq, i, e.in->region);
		event_is(e.rq, i % 2 ? EXS_EVT_RECVMSG : EXS_EVT_RECV, i, 0, 10000);
		if (!(i % 2)) {
			data_check(1, 0, e.in->mem + 500000, 10000);
			memset(e.in->mem + 500000, 0, 10000);
		} else {
			vec_check(e.in, 1, 10000);
		}
	}
	for (i = 0; i < 12; i++)
		if (i % 3 < 2)
			event_is(e.sq, i % 3 ? EXS_EVT_SEND : EXS_EVT_SENDMSG, i, 0, 10000);
}

/* How many there were. */
static int cancel(exs_qhandle_t q, exs_ahandle_t handle)
{
	struct exs_ioc_cancel c = {
		.size = sizeof(c), .flags = EXS_CANCEL_HANDLE, .handle = handle,
	};

	must(ioctl(q, EXS_IOC_CANCEL, &c));
	return c.count;
}

/* Registered, scattered and unregistered ones; the last stays and works. */
static void cancelled(void)
{
	struct vec *scattered;
	struct ends e;

	ends_open(&e, 4 * MIB);
	scattered = vec_new(MIB, EXS_ACCESS_WRITE);
	vec_cut(scattered, 500, 100, 1000);
	vec_cut(e.in, 5, 30000, 30000);
	vec_cut(e.out, 5, 30000, 30000);
	vec_fill(e.out, 1);
	start_in(&e, MSG_WAITALL, 1);
	must(exs_recvmsg(e.p.s, &scattered->msg, MSG_WAITALL, e.rq, 2));
	start_in(&e, MSG_WAITALL, 3);
	must_be(cancel(e.rq, 2), 1);
	event_is(e.rq, EXS_EVT_RECVMSG, 2, ECANCELED, 0);
	must_be(cancel(e.rq, 1), 1);
	event_is(e.rq, EXS_EVT_RECVMSG, 1, ECANCELED, 0);
	start_out(&e, 4);
	msg_event_is(e.rq, EXS_EVT_RECVMSG, 3, 150000, &e.in->msg);
	vec_check(e.in, 1, 150000);
	event_is(e.sq, EXS_EVT_SENDMSG, 4, 0, 150000);
	vec_check(scattered, 1, 0);
}

static void socket_closed(void)
{
	exs_event_t ev[2];
	struct ends e;
	int first;

	ends_open(&e, 4 * MIB);
	vec_cut(e.in, 500, 100, 1000);
	start_in(&e, 0, 1);
	vec_cut(e.in, 5, 30000, 30000);
	vec_add(e.in, e.in->mem + MIB, 5, NO_REGION);
	start_in(&e, 0, 2);
	close(e.p.s);
	/* In any order: perhaps only the first had been offered to the peer, who has to give it back. */
	must_be(exs_qdequeue(e.rq, ev, -2, NULL), 2);
	first = ev[0].exs_evt_ahandle == 1 ? 0 : 1;
	event_check(&ev[first], EXS_EVT_RECVMSG, 1, ECANCELED, 0);
	event_check(&ev[!first], EXS_EVT_RECVMSG, 2, ECANCELED, 0);
	wait_until(counter("live_xfers") == 0);
}

/* -- refused calls, which leave nothing behind */

static void both_refused(struct ends *e, struct vec *v, int err)
{
	must_fail(exs_sendmsg(e->p.c, &v->msg, 0, e->sq, 1), err);
	must_fail(exs_recvmsg(e->p.s, &v->msg, 0, e->rq, 1), err);
}

/* @bad is the first, one in the middle, and the last. */
static void bad_anywhere(struct ends *e, struct vec *v, exs_iovec_t bad, int err)
{
	static const size_t places[] = { 0, 5, 9 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		vec_cut(v, 10, 5000, 5000);
		v->iov[places[i] == 9 ? 0 : 9].iov_mhandle = NO_REGION;
		v->iov[places[i]] = bad;
		both_refused(e, v, err);
	}
}

static void bad_pieces(void)
{
	struct ends e;
	struct vec *v, *gone;

	ends_open(&e, MIB);
	v = vec_new(MIB, 0);
	gone = vec_new(MIB, 0);
	munmap(gone->mem, MIB);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem + MIB - 9, 10, v->region }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem - 1, 10, v->region }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem - 1, 0, v->region }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ (void *)-9UL, 10, v->region }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem, SIZE_MAX, v->region }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem, 10, e.sq }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem, 10, EXS_MHANDLE_INVALID }, EINVAL);
	bad_anywhere(&e, v, (exs_iovec_t){ v->mem, 10, 999 }, EBADF);
	bad_anywhere(&e, v, (exs_iovec_t){ NOWHERE, 10, NO_REGION }, EFAULT);
	bad_anywhere(&e, v, (exs_iovec_t){ NOWHERE, 100000, NO_REGION }, EFAULT);
	bad_anywhere(&e, v, (exs_iovec_t){ (void *)-9UL, 10, NO_REGION }, EFAULT);
	bad_anywhere(&e, v, (exs_iovec_t){ gone->mem, 10, gone->region }, EFAULT);
	vec_cut(e.in, 3, 10, 10);
	must_fail(exs_sendmsg(e.p.c, &e.in->msg, 0, e.sq, 1), EACCES);
	vec_cut(e.out, 3, 10, 10);
	must_fail(exs_recvmsg(e.p.s, &e.out->msg, 0, e.rq, 1), EACCES);
	no_event(e.sq);
	no_event(e.rq);
	wait_until(counter("live_xfers") == 0 && counter("live_ops") == 0);
}

static void bad_flags(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.out, 2, 10, 10);
	vec_cut(e.in, 2, 10, 10);
	must_fail(exs_sendmsg(e.p.c, &e.out->msg, MSG_OOB, e.sq, 1), EINVAL);
	must_fail(exs_recvmsg(e.p.s, &e.in->msg, MSG_PEEK, e.rq, 1), EINVAL);
	e.out->msg.msg_control = e.out->mem;
	e.out->msg.msg_controllen = 16;
	must_fail(exs_sendmsg(e.p.c, &e.out->msg, 0, e.sq, 1), EOPNOTSUPP);
	/* As TCP does: an address is no error on a connected socket. */
	e.out->msg.msg_controllen = 0;
	e.out->msg.msg_name = e.out->mem;
	e.out->msg.msg_namelen = 16;
	e.in->msg.msg_name = e.in->mem;
	e.in->msg.msg_namelen = 16;
	exchange(&e, 1, true);
}

/* Submissions that the library would not make. */
static int raw(struct ends *e, const void *msg, uint64_t len, int region)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SENDMSG, .fd = e->p.c, .addr = (uintptr_t)msg, .len = len,
		.region = region,
	};

	return submit_raw(e->sq, &sqe, 1);
}

static int raw_msg(struct ends *e, struct exs_sqe_msg msg)
{
	return raw(e, &msg, sizeof(msg), EXS_REGION_NONE);
}

static void bad_submissions(void)
{
	struct exs_sqe_iovec iov[2] = { { .region = EXS_REGION_NONE }, { .region = EXS_REGION_NONE } };
	struct exs_sqe_msg good = { .iov = (uintptr_t)iov, .count = 2 };
	struct { struct exs_sqe_msg msg; uint64_t more; } grown = { .msg = good };
	struct ends e;

	ends_open(&e, MIB);
	must_be(raw_msg(&e, good), 1);
	event_is(e.sq, EXS_EVT_SENDMSG, 0, 0, 0);
	/* A later version's structure, without and with unknown members. */
	must_be(raw(&e, &grown, sizeof(grown), EXS_REGION_NONE), 1);
	event_is(e.sq, EXS_EVT_SENDMSG, 0, 0, 0);
	grown.more = 1;
	must_fail(raw(&e, &grown, sizeof(grown), EXS_REGION_NONE), E2BIG);
	must_fail(raw(&e, &good, 1 << 20, EXS_REGION_NONE), E2BIG);
	must_fail(raw(&e, NOWHERE, sizeof(good), EXS_REGION_NONE), EFAULT);
	must_fail(raw(&e, &good, sizeof(good) - 8, EXS_REGION_NONE), EINVAL);
	must_fail(raw(&e, &good, sizeof(good), e.out->region), EINVAL);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = 0x10, .count = 1 }), EFAULT);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = -24UL, .count = 1 }), EFAULT);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = good.iov, .count = PIECES + 1 }), EMSGSIZE);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = good.iov, .count = UINT32_MAX }), EMSGSIZE);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = good.iov, .flags = 1 }), EINVAL);
	must_fail(raw_msg(&e, (struct exs_sqe_msg){ .iov = good.iov, .flags = 1u << 31 }), EINVAL);
	iov[1].flags = 2;
	must_fail(raw_msg(&e, good), EINVAL);
	/* Each is short enough. */
	iov[0].len = 0x7ffff000;
	iov[1] = (struct exs_sqe_iovec){ .len = 1, .region = EXS_REGION_NONE };
	must_fail(raw_msg(&e, good), EINVAL);
	no_event(e.sq);
}

/* -- a vector that changes while the kernel reads it */

struct fickle {
	struct exs_sqe_msg msg;
	struct exs_sqe_iovec iov[64];
	char *mem;
	int region;
	atomic_bool over;
};

static void *change(void *arg)
{
	uint64_t state = e2e.seed;
	struct fickle *f = arg;

	while (!f->over) {
		uint64_t r = next_random(&state);
		volatile struct exs_sqe_iovec *v = &f->iov[r % ARRAY_SIZE(f->iov)];

		v->addr = (uintptr_t)f->mem + (r >> 8) % 10000;
		v->len = r & 0x40 ? (r >> 24) % 5000 : (r >> 24) % 200000;
		v->region = r & 0x80 ? f->region : EXS_REGION_NONE;
		*(volatile __u32 *)&f->msg.count = (r >> 40) % (ARRAY_SIZE(f->iov) + 1);
	}
	return NULL;
}

/* A copy of a number may have half of a change. */
static bool refused_rightly(int err)
{
	return err == EINVAL || err == EMSGSIZE || err == EBADF || err == EFAULT;
}

/* The values are checked as they were read: a send is either refused, or made as checked. */
static void changing(void)
{
	struct fickle *f = (struct fickle *)pages(sizeof(*f));
	struct ends e;
	pthread_t thread;
	size_t bytes = 0;
	int i, sent = 0;

	ends_open(&e, MIB);
	for (i = 0; i < (int)ARRAY_SIZE(f->iov); i++)
		f->iov[i].region = EXS_REGION_NONE;
	f->msg.iov = (uintptr_t)f->iov;
	f->mem = e.out->mem;
	f->region = e.out->region;
	must_be(pthread_create(&thread, NULL, change, f), 0);
	for (i = 0; i < 100; i++) {
		int ret = raw(&e, &f->msg, sizeof(f->msg), EXS_REGION_NONE);
		exs_event_t ev;

		if (ret != 1) {
			check(refused_rightly(errno), "%s", errno_name(errno));
			continue;
		}
		cancel(e.sq, 0);
		ev = event_next(e.sq);
		check(!ev.exs_evt_errno || ev.exs_evt_errno == ECANCELED, "%s", errno_name(ev.exs_evt_errno));
		bytes += ev.exs_evt_union.exs_evt_xfermsg.exs_evt_length;
		sent++;
	}
	f->over = true;
	pthread_join(thread, NULL);
	check(sent, "nothing was sent");
	check(bytes <= 100UL * 64 * 200000, "%zu bytes were sent", bytes);
}

static void without_queue(void)
{
	struct ends e;

	ends_open(&e, MIB);
	vec_cut(e.out, 20, 5, 50);
	vec_cut(e.in, 20, 50, 50);
	vec_fill(e.out, 1);
	must_be(exs_sendmsg(e.p.c, &e.out->msg, 0, EXS_QHANDLE_INVALID, 0), e.out->len);
	must_be(exs_recvmsg(e.p.s, &e.in->msg, 0, EXS_QHANDLE_INVALID, 0), e.out->len);
	must_be(e.in->msg.msg_flags, e2e.seq ? MSG_EOR : 0);
	vec_check(e.in, 1, e.out->len);
}

static const struct e2e_case cases[] = {
	{ "one_piece", one_piece, .on = ON_BOTH },
	{ "few_pieces", few_pieces, .on = ON_BOTH },
	{ "small_pieces", small_pieces, .on = ON_BOTH },
	{ "scraps", scraps, .on = ON_BOTH },
	{ "crumbs", crumbs, .on = ON_BOTH, .needs = NEEDS_RXE },
	{ "many_pieces", many_pieces, .on = ON_BOTH },
	{ "direct", direct, .on = ON_BOTH },
	{ "windows", windows, .on = ON_STREAM },
	{ "empty_pieces", empty_pieces, .on = ON_BOTH },
	{ "no_pieces", no_pieces, .on = ON_BOTH },
	{ "mixed_regions", mixed_regions, .on = ON_BOTH },
	{ "header_copied", header_copied, .on = ON_BOTH },
	{ "vector_is_free_at_once", vector_is_free_at_once, .on = ON_SEQ },
	{ "same_memory", same_memory, .on = ON_BOTH },
	{ "not_for_free", not_for_free, .on = ON_BOTH, .needs = NEEDS_ONE },
	{ "partial", partial, .on = ON_BOTH },
	{ "waitall", waitall, .on = ON_STREAM },
	{ "truncation", truncation, .on = ON_SEQ },
	{ "more_than_a_message", more_than_a_message, .on = ON_SEQ },
	{ "too_large", too_large, .on = ON_SEQ },
	{ "in_order", in_order, .on = ON_BOTH },
	{ "cancelled", cancelled, .on = ON_BOTH },
	{ "socket_closed", socket_closed, .on = ON_BOTH },
	{ "bad_pieces", bad_pieces, .on = ON_BOTH },
	{ "bad_flags", bad_flags, .on = ON_BOTH },
	{ "bad_submissions", bad_submissions, .on = ON_BOTH },
	{ "changing", changing, .on = ON_BOTH },
	{ "without_queue", without_queue, .on = ON_BOTH },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
