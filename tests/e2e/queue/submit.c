// SPDX-License-Identifier: GPL-2.0
/* exs_submit(): many operations at once, all of them or as many as can be started. */
#include "lib/async.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char bytes[4096];

static exs_op_t a_receive(int fd, exs_ahandle_t handle)
{
	return an_op(EXS_EVT_RECV, fd, bytes, 1, handle);
}

static exs_op_t an_accept(int fd, exs_acceptaddr_t *addr, exs_ahandle_t handle)
{
	return (exs_op_t){
		.exs_op_type = EXS_EVT_ACCEPT, .exs_op_fd = fd, .exs_op_buf = addr, .exs_op_handle = handle,
	};
}

static exs_op_t a_close(int fd, exs_ahandle_t handle)
{
	return (exs_op_t){ .exs_op_type = EXS_EVT_CLOSE, .exs_op_fd = fd, .exs_op_handle = handle };
}

/* Several sockets and directions, registered or not; each socket's in order. */
static void mixed(void)
{
	enum { N = 12, LEN = 5000 };
	exs_qhandle_t rq = queue_new(2 * N), sq = queue_new(2 * N);
	char *in = pages(2 * N * LEN), *out = pages(2 * N * LEN);
	exs_mhandle_t m = region_new(in, 2 * N * LEN, EXS_ACCESS_WRITE);
	exs_op_t recvs[2 * N], sends[2 * N];
	struct pair p[2];
	exs_event_t ev;
	int i, j, next[2] = { 0, 0 };

	for (j = 0; j < 2; j++) {
		pair_open(&p[j]);
		data_fill(j, 0, out + j * N * LEN, N * LEN);
	}
	for (i = 0; i < 2 * N; i++) {
		j = i % 2;
		recvs[i] = an_op(EXS_EVT_RECV, p[j].s, in + (j * N + i / 2) * LEN, LEN, i);
		recvs[i].exs_op_flags = MSG_WAITALL;
		if (i % 3)
			recvs[i].exs_op_region = m;
		sends[i] = an_op(EXS_EVT_SEND, p[j].c, out + (j * N + i / 2) * LEN, LEN, i);
	}
	must_be(exs_submit(rq, recvs, 2 * N), 2 * N);
	must_be(exs_submit(sq, sends, 2 * N), 2 * N);
	for (i = 0; i < 2 * N; i++) {
		ev = event_next(rq);
		j = ev.exs_evt_socket == p[1].s;
		event_check(&ev, EXS_EVT_RECV, 2 * next[j]++ + j, 0, LEN);
		ev = event_next(sq);
		event_check(&ev, EXS_EVT_SEND, ev.exs_evt_ahandle, 0, LEN);
	}
	for (j = 0; j < 2; j++)
		data_check(j, 0, in + j * N * LEN, N * LEN);
	no_event(rq);
	no_event(sq);
}

static void accept_and_close(void)
{
	exs_qhandle_t q = queue_new(8);
	union address from, name;
	exs_acceptaddr_t aa = { &from.sa, sizeof(from) };
	int fd = listener(4), seen[6] = { 0 }, c, s, i;
	exs_op_t ops[4];
	exs_event_t ev;

	ops[0] = an_accept(fd, &aa, 1);
	ops[0].exs_op_flags = SOCK_CLOEXEC;
	ops[1] = an_accept(fd, NULL, 2);
	must_be(exs_submit(q, ops, 2), 2);
	c = client_of(fd);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
	s = event_newfd(&ev);
	check(fcntl(s, F_GETFD) & FD_CLOEXEC, "not close-on-exec");
	check(ev.exs_evt_union.exs_evt_accept.exs_evt_addr == &aa, "another structure");
	name = name_of(c);
	check(same_address(&from, &name), "not the address of who connected");
	/* The last one's descriptor is gone when its turn comes. */
	ops[0] = a_close(c, 3);
	ops[1] = a_close(fd, 4);
	ops[2] = a_close(s, 5);
	ops[3] = a_close(s, 6);
	must_be(exs_submit(q, ops, 4), 3);
	must_be(errno, EBADF);
	must_fail(fcntl(c, F_GETFD), EBADF);
	must_fail(fcntl(fd, F_GETFD), EBADF);
	for (i = 0; i < 4; i++) {
		ev = event_next(q);
		check(ev.exs_evt_ahandle < 6 && !seen[ev.exs_evt_ahandle]++, "handle %llu again",
		      (unsigned long long)ev.exs_evt_ahandle);
		if (ev.exs_evt_ahandle == 2)
			event_check(&ev, EXS_EVT_ACCEPT, 2, ECANCELED, 0);
		else
			event_check(&ev, EXS_EVT_CLOSE, ev.exs_evt_ahandle, 0, 0);
	}
	no_event(q);
}

enum { TAKERS = 3 };

static struct { int fd, start[2]; volatile int running; volatile bool stop; } takers;

static void *take_up(void *processor)
{
	run_first((intptr_t)processor, 1);
	__atomic_fetch_add(&takers.running, 1, __ATOMIC_SEQ_CST);
	while (!takers.stop)
		;
	return NULL;
}

static void *take_one(void *arg)
{
	char byte;

	run_first(0, 2);
	must_be(read(takers.start[0], &byte, 1), 1);
	close(must(accept(takers.fd, NULL, NULL)));
	return arg;
}

/*
 * Threads in accept(2) sleep while connections are an operation's, until a worker has served it. Then each has to wake
 * for one of the rest. The worker runs late, because there is no processor for it.
 */
static void accept_and_threads(void)
{
	int processors = sysconf(_SC_NPROCESSORS_ONLN), i;
	exs_qhandle_t q = queue_new(1);
	pthread_t threads[TAKERS], others[processors];

	takers.fd = listener(TAKERS + 1);
	must(pipe(takers.start));
	for (i = 0; i < TAKERS + 1; i++)
		client_of(takers.fd);
	run_first(0, 1);
	for (i = 0; i < TAKERS; i++)
		must_be(pthread_create(&threads[i], NULL, take_one, NULL), 0);
	for (i = 1; i < processors; i++)
		must_be(pthread_create(&others[i], NULL, take_up, (void *)(intptr_t)i), 0);
	while (takers.running < processors - 1)
		sched_yield();
	must(exs_accept(takers.fd, NULL, 0, q, 1));
	/* Each runs at once, until it sleeps. */
	for (i = 0; i < TAKERS; i++)
		must_be(write(takers.start[1], "", 1), 1);
	takers.stop = true;
	for (i = 0; i < TAKERS; i++)
		must_be(pthread_join(threads[i], NULL), 0);
	for (i = 1; i < processors; i++)
		must_be(pthread_join(others[i], NULL), 0);
	event_is(q, EXS_EVT_ACCEPT, 1, 0, 0);
}

/* It stops in the middle: operations before have their events, those behind have none. */
static void stops_at(exs_op_t bad, int err)
{
	exs_qhandle_t q = queue_new(16);
	exs_op_t ops[5];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 5; i++)
		ops[i] = a_receive(p.s, i);
	bad.exs_op_handle = 2;
	ops[2] = bad;
	must_be(exs_submit(q, ops, 5), 2);
	must_be(errno, err);
	must_fail(exs_submit(q, ops + 2, 3), err);
	must_be(queue_attr(q, EXS_ATTR_SUBMITTED), 2);
	must_be(exs_submit(q, ops + 3, 2), 2);
	for (i = 0; i < 5; i++) {
		if (i == 2)
			continue;
		must_be(send(p.c, "x", 1, 0), 1);
		event_is(q, EXS_EVT_RECV, i, 0, 1);
	}
	no_event(q);
}

static void take_all(const struct pair *p, const exs_op_t *sends, int count)
{
	static char taken[65536];
	size_t total = 0;
	ssize_t n;
	int i;

	for (i = 0; i < count && e2e.seq; i++)
		must_be(recv(p->s, taken, sizeof(taken), 0), sends[i].exs_op_len);
	if (e2e.seq)
		return;
	for (i = 0; i < count; i++)
		total += sends[i].exs_op_len;
	for (; total; total -= n)
		n = must(recv(p->s, taken, total < sizeof(taken) ? total : sizeof(taken), 0));
}

/* Sends that are copied, of nothing, and of memory that the device reads: they end as they were started. */
static void in_order(void)
{
	enum { N = 48, LONG = 60000, SHORT = 100 };
	static const size_t lengths[] = { LONG, SHORT, 0, SHORT, LONG, 0, 0, SHORT };
	exs_qhandle_t q = queue_new(N);
	char *buf = pages(LONG);
	exs_mhandle_t m = region_new(buf, LONG, 0);
	exs_op_t sends[N];
	struct pair p;
	int i, together;

	pair_open(&p);
	for (i = 0; i < N; i++) {
		sends[i] = an_op(EXS_EVT_SEND, p.c, buf, lengths[i % ARRAY_SIZE(lengths)], i);
		sends[i].exs_op_region = m;
	}
	for (together = 0; together < 2; together++) {
		for (i = 0; i < N && !together; i++)
			must_be(exs_submit(q, &sends[i], 1), 1);
		if (together)
			must_be(exs_submit(q, sends, N), N);
		take_all(&p, sends, N);
		for (i = 0; i < N; i++)
			event_is(q, EXS_EVT_SEND, i, 0, sends[i].exs_op_len);
	}
	no_event(q);
}

enum { JOINED = 16, JOINED_MAX = 3000, PAGE = 4096 };

/*
 * Each but the first across two pages: an odd number of pieces, so that the last does not just fit. @len: 0: of any
 * lengths. Return: bytes.
 */
static size_t fill_joined(exs_op_t *sends, char *buf, size_t len, int round)
{
	size_t total = 0;
	int i;

	for (i = 0; i < JOINED; i++) {
		exs_op_t *op = &sends[i];

		op->exs_op_len = len ?: (size_t)(1 + (round * 7919 + i * i * 131) % (i % 3 ? 300 : JOINED_MAX));
		op->exs_op_buf = buf + i * PAGE + (i ? PAGE - op->exs_op_len / 2 : 0);
		data_fill(round, total, op->exs_op_buf, op->exs_op_len);
		total += op->exs_op_len;
	}
	return total;
}

/* Messages one by one, with room for more than they have. */
static void recv_joined(int fd, const exs_op_t *sends, int round)
{
	static char buf[JOINED_MAX + 1];
	size_t pos = 0;
	int i;

	for (i = 0; i < JOINED; i++) {
		must_be(recv(fd, buf, sizeof(buf), 0), sends[i].exs_op_len);
		data_check(round, pos, buf, sends[i].exs_op_len);
		pos += sends[i].exs_op_len;
	}
}

static void send_joined(const struct pair *p, size_t len, int rounds)
{
	exs_qhandle_t q = queue_new(JOINED);
	char *buf = pages((JOINED + 1) * PAGE);
	exs_mhandle_t m = region_new(buf, (JOINED + 1) * PAGE, EXS_ACCESS_READ);
	exs_op_t sends[JOINED];
	int i, round;

	for (i = 0; i < JOINED; i++) {
		sends[i] = an_op(EXS_EVT_SEND, p->c, buf, 0, i);
		sends[i].exs_op_region = m;
	}
	for (round = 0; round < rounds; round++) {
		size_t total = fill_joined(sends, buf, len, round);

		must_be(exs_submit(q, sends, JOINED), JOINED);
		if (e2e.on == ON_SEQ)
			recv_joined(p->s, sends, round);
		else
			recv_all(p->s, round, 0, total);
		for (i = 0; i < JOINED; i++)
			event_is(q, EXS_EVT_SEND, i, 0, sends[i].exs_op_len);
	}
	no_event(q);
}

/*
 * Sends that start together are few transfers, each in as many pieces of memory as the device takes: also where the
 * ring has several keys, the second of which begins within a send or just where one does, and where some are inside
 * their requests.
 */
static void joined(void)
{
	enum { ROUNDS = 20 };
	struct pair p;

	pair_open(&p);
	send_joined(&p, 1500, ROUNDS);
	check(delta("joined_sends") >= ROUNDS * JOINED / 2, "only %ld sends were joined", delta("joined_sends"));
	set_int(p.c, SOL_EXS, EXS_SO_INLINE_MAX, 256);
	send_joined(&p, 0, ROUNDS);
	pair_close(&p);
	pair_open(&p);
	set_int(p.s, SOL_EXS, EXS_SO_RING, 2 * MIB);
	send_joined(&p, 1024, 100);
	send_joined(&p, 2999, 100);
}

static void joined_at_least(int n)
{
	check(delta("joined_sends") >= n, "only %ld messages were joined, not %d", delta("joined_sends"), n);
}

/* Messages of one length that start together, the same: also small ones, once many of them have waited. */
static void joined_messages(void)
{
	enum { ROUNDS = 20 };
	struct pair p;

	pair_open(&p);
	send_joined(&p, 64, 2 * ROUNDS);
	joined_at_least(ROUNDS * JOINED / 2);
	send_joined(&p, 1500, ROUNDS);
	joined_at_least(2 * ROUNDS * JOINED / 2);
	set_int(p.c, SOL_EXS, EXS_SO_INLINE_MAX, 256);
	send_joined(&p, 100, ROUNDS);
	joined_at_least(3 * ROUNDS * JOINED / 2);
	send_joined(&p, 0, ROUNDS);
	pair_close(&p);
	pair_open(&p);
	set_int(p.s, SOL_EXS, EXS_SO_RING, 2 * MIB);
	send_joined(&p, 2999, 100);
	joined_at_least(4 * ROUNDS * JOINED / 2);
}

enum { STRIDE = 20480 };

/*
 * The same for one length: to plain receives, or to others that were there before, and have @more bytes of room than
 * the messages, or less.
 */
static void join_at_length(const struct pair *p, const exs_qhandle_t *q, size_t len, bool ahead, int more)
{
	char *out = pages(JOINED * STRIDE), *in = pages(JOINED * STRIDE);
	size_t room = len + more, n = more < 0 ? room : len;
	exs_op_t sends[JOINED];
	int i;

	for (i = 0; i < JOINED; i++) {
		sends[i] = an_op(EXS_EVT_SEND, p->c, out + i * STRIDE + i, len, i);
		data_fill(i, 0, sends[i].exs_op_buf, len);
		if (ahead)
			start_recv(p->s, in + i * STRIDE, room, 0, q[1], i, NO_REGION);
	}
	must_be(exs_submit(q[0], sends, JOINED), JOINED);
	for (i = 0; i < JOINED; i++) {
		if (ahead)
			event_is(q[1], EXS_EVT_RECV, i, 0, n);
		else
			must_be(recv(p->s, in + i * STRIDE, room, 0), n);
		data_check(i, 0, in + i * STRIDE, n);
		must_be(in[i * STRIDE + n], 0);
		event_is(q[0], EXS_EVT_SEND, i, 0, len);
	}
	must(munmap(out, JOINED * STRIDE));
	must(munmap(in, JOINED * STRIDE));
}

/* Around each length at which messages begin to go another way. */
static void joined_of_all_lengths(void)
{
	static const size_t lengths[] = {
		1, 2, 63, 175, 176, 177, 1007, 1008, 1009, 2048, 4095, 4096, 8193, 16384, 16385,
	};
	exs_qhandle_t q[] = { queue_new(JOINED), queue_new(JOINED) };
	struct pair p;
	size_t i;
	int round, rounds = 1 + amount(1);

	pair_open(&p);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			join_at_length(&p, q, lengths[i], false, 1);
			join_at_length(&p, q, lengths[i], true, 1);
			join_at_length(&p, q, lengths[i], true, 0);
			join_at_length(&p, q, lengths[i], true, -1);
		}
	}
	no_event(q[0]);
	no_event(q[1]);
	check(delta("joined_sends") > rounds * 500, "only %ld messages were joined", delta("joined_sends"));
}

/* Operations in a row on one socket start together: also if there is no last one, or one that is different. */
/* An operation that ends at once does not hold up those that were to go with it. */
static void together_with_ended(void)
{
	exs_qhandle_t q = queue_new(2);
	exs_op_t ops[2];
	struct pair p;

	pair_open(&p);
	must(shutdown(p.c, SHUT_RD));
	ops[0] = an_op(EXS_EVT_SEND, p.c, "x", 1, 0);
	ops[1] = an_op(EXS_EVT_RECV, p.c, bytes, 1, 1);
	must_be(exs_submit(q, ops, 2), 2);
	event_is(q, EXS_EVT_RECV, 1, 0, 0);
	event_is_soon(q, EXS_EVT_SEND, 0, 0, 1);
	must_be(recv(p.s, bytes, 1, 0), 1);
}

static void together(void)
{
	enum { N = 100 };
	exs_qhandle_t q = queue_new(2 * N);
	exs_op_t ops[N], bad = a_receive(-1, 0);
	struct pair p[2];
	int i;

	pair_open(&p[0]);
	pair_open(&p[1]);
	for (i = 0; i < N; i++)
		ops[i] = an_op(EXS_EVT_SEND, p[0].c, "x", 1, i);
	must_be(exs_submit(q, ops, N), N);
	for (i = 0; i < N; i++) {
		event_is(q, EXS_EVT_SEND, i, 0, 1);
		must_be(recv(p[0].s, bytes, 1, 0), 1);
	}
	/* It stops. */
	ops[2] = bad;
	must_be(exs_submit(q, ops, N), 2);
	must_be(errno, EBADF);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	/* So it does at this socket. */
	ops[2] = an_op(EXS_EVT_SEND, p[0].c, (void *)8, 1, 2);
	must_be(exs_submit(q, ops, N), 2);
	must_be(errno, EFAULT);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	/* Another socket; a close. */
	ops[2] = an_op(EXS_EVT_SEND, p[1].c, "y", 1, 2);
	ops[3] = a_close(p[0].c, 3);
	ops[4] = an_op(EXS_EVT_SEND, p[0].c, "y", 1, 4);
	must_be(exs_submit(q, ops, N), 4);
	must_be(errno, EBADF);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	must_be(recv(p[0].s, bytes, 1, 0), 1);
	must_be(recv(p[1].s, bytes, 1, 0), 1);
	must_be(recv(p[0].s, bytes, 1, 0), 0);
	for (i = 0; i < 2 + 2 + 4; i++)
		must_be(event_next(q).exs_evt_errno, 0);
	no_event(q);
}

static void partly(void)
{
	exs_mhandle_t m = region_new(bytes, 100, EXS_ACCESS_WRITE);
	struct pipe_pair pipes = pipe_open();
	exs_op_t op;
	struct pair p;

	pair_open(&p);
	stops_at(a_receive(-1, 0), EBADF);
	stops_at(a_receive(pipes.rd, 0), ENOTSOCK);
	stops_at(a_receive(m, 0), ENOTSOCK);
	stops_at(a_receive(new_socket(), 0), ENOTCONN);
	stops_at(an_accept(p.s, NULL, 0), EINVAL);
	stops_at(an_op(EXS_EVT_RECV, p.s, (void *)8, 1, 0), EFAULT);
	stops_at(an_op(EXS_EVT_SEND, p.s, (void *)8, 1, 0), EFAULT);
	op = an_op(EXS_EVT_RECV, p.s, bytes, 100, 0);
	op.exs_op_region = m;
	op.exs_op_len = 101;
	stops_at(op, EINVAL);
	op.exs_op_len = 100;
	op.exs_op_type = EXS_EVT_SEND;
	stops_at(op, EACCES);
	op.exs_op_region = p.s;
	stops_at(op, EINVAL);
	op.exs_op_region = 9999;
	stops_at(op, EBADF);
	op = a_receive(p.s, 0);
	op.exs_op_flags = MSG_PEEK;
	stops_at(op, EINVAL);
	/* Errors that the library itself finds. */
	op.exs_op_flags = 0;
	op.exs_op_region = EXS_MHANDLE_INVALID;
	stops_at(op, EINVAL);
	op = a_receive(p.s, 0);
	op.exs_op_type = EXS_EVT_CONNECT;
	stops_at(op, EINVAL);
	stops_at((exs_op_t){ 0 }, EINVAL);
	op = an_accept(p.s, (void *)8193, 0);	/* not aligned */
	stops_at(op, EFAULT);
}

/* As many as the queue takes; the rest when there is room. */
static void full(void)
{
	exs_qhandle_t q = queue_new(4);
	exs_op_t ops[6];
	struct pair p;
	int i;

	pair_open(&p);
	for (i = 0; i < 6; i++)
		ops[i] = a_receive(p.s, i);
	must_be(exs_submit(q, ops, 6), 4);
	must_be(errno, EAGAIN);
	must_fail(exs_submit(q, ops + 4, 2), EAGAIN);
	for (i = 0; i < 6; i++) {
		must_be(send(p.c, "x", 1, 0), 1);
		event_is(q, EXS_EVT_RECV, i, 0, 1);
		if (i < 2)
			must_be(exs_submit(q, ops + 4 + i, 1), 1);
	}
	no_event(q);
}

/* More than one system call can take. */
static void long_array(void)
{
	int i, many = EXS_SUBMIT_MAX + amount(EXS_SUBMIT_MAX) + 20;
	exs_op_t *ops = pages(many * sizeof(*ops));
	exs_qhandle_t q = queue_new(many - 5);
	struct pair p;

	pair_open(&p);
	for (i = 0; i < many; i++)
		ops[i] = a_receive(p.s, i);
	must_be(exs_submit(q, ops, many), many - 5);
	must_be(errno, EAGAIN);
	must(shutdown(p.c, SHUT_WR));
	for (i = 0; i < many - 5; i++)
		event_is(q, EXS_EVT_RECV, i, 0, 0);
	must_be(exs_submit(q, ops + many - 5, 5), 5);
	for (i = many - 5; i < many; i++)
		event_is(q, EXS_EVT_RECV, i, 0, 0);
	no_event(q);
}

static void wrong(void)
{
	exs_mhandle_t m = region_new(bytes, sizeof(bytes), 0);
	exs_qhandle_t q = queue_new(4);
	struct pipe_pair pipes = pipe_open();
	exs_op_t op;
	struct pair p;
	int closed;

	pair_open(&p);
	op = a_receive(p.s, 1);
	closed = must(dup(q));
	close(closed);
	must_be(exs_submit(q, &op, 0), 0);
	must_be(exs_submit(q, NULL, 0), 0);
	must_fail(exs_submit(q, NULL, 1), EFAULT);
	must_fail(exs_submit(q, &op, -1), EINVAL);
	must_fail(exs_submit(m, &op, 1), EINVAL);
	must_fail(exs_submit(p.c, &op, 1), EINVAL);
	must_fail(exs_submit(pipes.rd, &op, 1), EINVAL);
	must_fail(exs_submit(closed, &op, 1), EBADF);
	must_fail(exs_submit(EXS_QHANDLE_INVALID, &op, 1), EBADF);
	no_event(q);
	must_be(delta("ops_submitted"), 0);
}

static const struct e2e_case cases[] = {
	{ "mixed", mixed, .on = ON_BOTH },
	{ "accept_and_close", accept_and_close, .on = ON_STREAM },
	{ "in_order", in_order, .on = ON_BOTH },
	{ "joined", joined, .on = ON_STREAM },
	{ "joined_messages", joined_messages, .on = ON_SEQ },
	{ "joined_of_all_lengths", joined_of_all_lengths, .on = ON_SEQ },
	{ "together_with_ended", together_with_ended, .on = ON_STREAM },
	{ "together", together, .on = ON_BOTH | ON_TCP },
	{ "accept_and_threads", accept_and_threads, .on = ON_STREAM },
	{ "partly", partly, .on = ON_STREAM },
	{ "full", full, .on = ON_BOTH },
	{ "long_array", long_array, .on = ON_BOTH },
	{ "wrong", wrong, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
