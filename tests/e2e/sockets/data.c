// SPDX-License-Identifier: GPL-2.0
/* Sending and receiving with ordinary calls, shutdown, close. TCP is the reference. */
#include "lib/e2e.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char buf[65536];

/* -- calls */

static void send_and_recv(void)
{
	struct pair p;

	pair_open(&p);
	must_be(send(p.c, "hello", 5, 0), 5);
	must_be(recv(p.s, buf, sizeof(buf), 0), 5);
	check(!memcmp(buf, "hello", 5), "other bytes came");
	must_be(send(p.s, "world!", 6, 0), 6);
	must_be(recv(p.c, buf, sizeof(buf), 0), 6);
	check(!memcmp(buf, "world!", 6), "other bytes came");
}

static void read_and_write(void)
{
	struct iovec out[3] = { { "ab", 2 }, { "", 0 }, { "cdef", 4 } };
	struct iovec in[2] = { { buf, 3 }, { buf + 10, 3 } };
	struct pair p;

	pair_open(&p);
	must_be(write(p.c, "abc", 3), 3);
	must_be(read(p.s, buf, sizeof(buf)), 3);
	must_be(writev(p.c, out, 3), 6);
	must_be(readv(p.s, in, 2), 6);
	check(!memcmp(buf, "abc", 3) && !memcmp(buf + 10, "def", 3), "other bytes came");
}

static void messages(void)
{
	struct iovec out[2] = { { "ab", 2 }, { "cd", 2 } }, in = { buf, sizeof(buf) };
	struct msghdr to = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr from = { .msg_iov = &in, .msg_iovlen = 1 };
	struct pair p;

	pair_open(&p);
	must_be(sendmsg(p.c, &to, 0), 4);
	must_be(recvmsg(p.s, &from, 0), 4);
	check(!memcmp(buf, "abcd", 4), "other bytes came");
	check(!(from.msg_flags & (MSG_TRUNC | MSG_CTRUNC)), "msg_flags %#x", from.msg_flags);
	must_be(from.msg_controllen, 0);
}

static void send_nothing(void)
{
	struct pair p;

	pair_open(&p);
	must_be(send(p.c, buf, 0, 0), 0);
	must_be(send(p.c, "x", 1, 0), 1);
	must_be(recv(p.s, buf, sizeof(buf), 0), 1);
}

static void would_block(void)
{
	struct pair p;

	pair_open(&p);
	must_fail(recv(p.s, buf, 1, MSG_DONTWAIT), EAGAIN);
	set_nonblock(p.s, true);
	must_fail(recv(p.s, buf, 1, 0), EAGAIN);
	must_fail(read(p.s, buf, 1), EAGAIN);
	send_until_full(p.c, 1);
	must_fail(send(p.c, "x", 1, MSG_DONTWAIT), EAGAIN);
	set_nonblock(p.c, true);
	must_fail(write(p.c, "x", 1), EAGAIN);
}

static void times_out(void)
{
	struct pair p;

	pair_open(&p);
	set_timeout(p.s, SO_RCVTIMEO, 50);
	must_fail(recv(p.s, buf, 1, 0), EAGAIN);
	send_until_full(p.c, 1);
	set_timeout(p.c, SO_SNDTIMEO, 50);
	must_fail(send(p.c, "x", 1, 0), EAGAIN);
}

static void interrupted(void)
{
	struct pair p;

	pair_open(&p);
	catch_signal(SIGALRM, 0);
	interrupt_self(50);
	must_fail(recv(p.s, buf, 1, 0), EINTR);
	interrupt_stop();
	must(send(p.c, "x", 1, 0));
	must_be(recv(p.s, buf, 1, 0), 1);
	send_until_full(p.s, 1);
	interrupt_self(50);
	must_fail(send(p.s, "x", 1, 0), EINTR);
}

static void send_after_signal(void *arg)
{
	pid_t parent = getppid();
	int i;

	for (i = 0; i < 3; i++) {
		wait_blocked(parent);
		kill(parent, SIGUSR1);
	}
	wait_blocked(parent);
	must(send(*(int *)arg, "x", 1, 0));
}

/* SA_RESTART: the call goes on by itself. */
static void restarted(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	catch_signal(SIGUSR1, SA_RESTART);
	pid = spawn(send_after_signal, &p.c);
	must_be(recv(p.s, buf, 1, 0), 1);
	join(pid);
	check(signals_caught, "no signal came");
}

static void bad_pointers(void)
{
	struct pair p;
	int i;

	pair_open(&p);
	/* More than there is room for. */
	for (i = 0; i < 100; i++)
		must_fail(send(p.c, (void *)8, sizeof(buf), MSG_DONTWAIT), EFAULT);
	must(send(p.c, "abc", 3, 0));
	wait_io(p.s, POLLIN);
	must_fail(recv(p.s, (void *)8, 3, 0), EFAULT);
	if (e2e.seq)
		return;		/* as on other message sockets, the message may be gone */
	must_be(recv(p.s, buf, sizeof(buf), 0), 3);
	check(!memcmp(buf, "abc", 3), "other bytes came");
}

static void not_connected(void)
{
	int fd = new_socket();

	must_fail(recv(fd, buf, 1, 0), ENOTCONN);
	must_fail(shutdown(fd, SHUT_WR), ENOTCONN);
	check(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && (errno == EPIPE || (e2e.seq && errno == ENOTCONN)),
	      "send on an unconnected socket: %s", errno_name(errno));
	fd = listener(1);
	must_fail(recv(fd, buf, 1, 0), ENOTCONN);
}

static void peek(void)
{
	struct pair p;

	pair_open(&p);
	must(send(p.c, "abcdef", 6, 0));
	must_be(recv(p.s, buf, 3, MSG_PEEK), 3);
	must_be(recv(p.s, buf, sizeof(buf), MSG_PEEK), 6);
	check(!memcmp(buf, "abcdef", 6), "other bytes came");
	must_be(recv(p.s, buf, sizeof(buf), 0), 6);
	must_fail(recv(p.s, buf, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
}

static void send_in_parts(void *arg)
{
	int i;

	for (i = 0; i < 10; i++)
		send_all(*(int *)arg, 3, i * 1000, 1000);
	shutdown(*(int *)arg, SHUT_WR);
}

static void waitall(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	pid = spawn(send_in_parts, &p.c);
	must_be(recv(p.s, buf, 9500, MSG_WAITALL), 9500);
	data_check(3, 0, buf, 9500);
	/* The end of data ends it early. */
	must_be(recv(p.s, buf, 9500, MSG_WAITALL), 500);
	data_check(3, 9500, buf, 500);
	must_be(recv(p.s, buf, 9500, MSG_WAITALL), 0);
	join(pid);
}

static void recv_in_parts(void)
{
	struct pair p;
	int i;

	pair_open(&p);
	send_all(p.c, 4, 0, 5000);
	for (i = 0; i < 5000; i += 250)
		recv_all(p.s, 4, i, 250);
	must_fail(recv(p.s, buf, 1, MSG_DONTWAIT), EAGAIN);
}

/* -- large amounts */

struct flow {
	int fd;
	uint64_t seed;
	uint64_t total;
};

/* Random sizes up to 200 kB, read or written until @total. */
static void *random_sender(void *arg)
{
	const struct flow *f = arg;
	uint64_t state = f->seed * 77, pos = 0;
	char *data = malloc(200000);
	size_t n;

	while (pos < f->total) {
		n = 1 + next_random(&state) % (e2e.seq ? 60000 : 200000);
		if (n > f->total - pos)
			n = f->total - pos;
		data_fill(f->seed, pos, data, n);
		n = must(send(f->fd, data, n, 0));
		pos += n;
	}
	must(shutdown(f->fd, SHUT_WR));
	free(data);
	return NULL;
}

static void *random_reader(void *arg)
{
	const struct flow *f = arg;
	uint64_t state = f->seed * 99, pos = 0;
	char *data = malloc(200000);
	size_t n, room;

	for (;;) {
		room = e2e.seq ? 60000 : 1 + next_random(&state) % 200000;
		n = must(recv(f->fd, data, room, 0));
		if (!n)
			break;
		data_check(f->seed, pos, data, n);
		pos += n;
	}
	check(pos == f->total, "%llu bytes came, not %llu", (unsigned long long)pos,
	      (unsigned long long)f->total);
	free(data);
	return NULL;
}

static void both_directions_on(struct pair *p, uint64_t total)
{
	struct flow out[2] = { { p->c, 11 + e2e.seed, total }, { p->s, 12 + e2e.seed, total } };
	struct flow in[2] = { { p->s, 11 + e2e.seed, total }, { p->c, 12 + e2e.seed, total } };
	pthread_t threads[4];
	int i;

	for (i = 0; i < 2; i++) {
		must_be(pthread_create(&threads[i], NULL, random_sender, &out[i]), 0);
		must_be(pthread_create(&threads[2 + i], NULL, random_reader, &in[i]), 0);
	}
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void both_directions(void)
{
	struct pair p;

	pair_open(&p);
	both_directions_on(&p, amount(8 * MIB));
}

/* The same between processes, or machines. */
static void transfer_client(void)
{
	struct pair p = { .c = meet() };
	struct flow out = { p.c, 21, amount(16 * MIB) }, in = { p.c, 22, amount(4 * MIB) };
	pthread_t thread;

	must_be(pthread_create(&thread, NULL, random_sender, &out), 0);
	random_reader(&in);
	pthread_join(thread, NULL);
	control_wait("done");
}

static void transfer_server(void)
{
	struct pair p = { .s = meet() };
	struct flow in = { p.s, 21, amount(16 * MIB) }, out = { p.s, 22, amount(4 * MIB) };
	pthread_t thread;

	must_be(pthread_create(&thread, NULL, random_sender, &out), 0);
	random_reader(&in);
	pthread_join(thread, NULL);
	control_send("done");
}

/* One byte at a time, there and back: no data may wait for more. */
static void ping_pong(void)
{
	int i, rounds = amount(500);
	struct pair p;

	pair_open(&p);
	for (i = 0; i < rounds; i++) {
		send_all(p.c, 5, i, 1);
		recv_all(p.s, 5, i, 1);
		send_all(p.s, 6, i, 1);
		recv_all(p.c, 6, i, 1);
	}
}

/* Fill to the brim and drain, again and again: where the ring wraps. */
static void fill_and_drain(void)
{
	int i, rounds = 1 + amount(8);
	struct pair p;
	size_t n;

	pair_open(&p);
	for (i = 0; i < rounds; i++) {
		n = send_until_full(p.c, i);
		check(n, "round %d: no room in an empty connection", i);
		recv_all(p.s, i, 0, n);
		wait_io(p.c, POLLOUT);
	}
}

/* Until there is room for no more. Return: bytes. */
static size_t send_short(int fd, uint64_t *seed)
{
	char buf[200];
	size_t len, pos = 0;

	do {
		len = 1 + next_random(seed) % sizeof(buf);
		data_fill(7, pos, buf, len);
		len = send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (len != (size_t)-1)
			pos += len;
	} while (len != (size_t)-1);
	must_be(errno, EAGAIN);
	return pos;
}

/* Short sends that wait go together: each takes what follows, while it has not begun. */
static void gathered(void)
{
	uint64_t seed = 1;
	struct pair p;
	size_t n;
	int i;

	pair_open(&p);
	for (i = 0; i < 1 + (int)amount(2); i++) {
		n = send_short(p.c, &seed);
		recv_all(p.s, 7, 0, n);
		wait_io(p.c, POLLOUT);
	}
	check(delta("gathered_sends"), "none was gathered");
}

/* They share pages, and cost what these cost; those that are sent at once are not gathered. */
static void gathered_room(void)
{
	int n = 0, many = amount(10000);
	struct pair p;

	pair_open(&p);
	do
		must_be(send(p.c, "x", 1, MSG_DONTWAIT), 1);
	while (++n % 1000 || delta("gathered_sends") < many);
	must_be(recv(p.s, pages(n), n, MSG_WAITALL), n);
	counters_mark();
	send_all(p.c, 8, 0, 100);
	recv_all(p.s, 8, 0, 100);
	must_be(delta("gathered_sends"), 0);
}

/* TCP grows its buffer as it likes, up to what a test means to be too much. */
static void bound_sndbuf(int fd)
{
	must(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 65536 }, sizeof(int)));
}

static void sender_blocks(void *arg)
{
	send_all(*(int *)arg, 8, 0, 4 * MIB);
}

/* A send that is blocked half way goes on when there is room. */
static void blocked_sender(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	bound_sndbuf(p.c);
	pid = spawn(sender_blocks, &p.c);
	wait_blocked(pid);
	recv_all(p.s, 8, 0, 4 * MIB);
	join(pid);
}

/* -- shutdown */

static void half_close(void)
{
	struct pair p;

	pair_open(&p);
	send_all(p.c, 1, 0, 3000);
	must(shutdown(p.c, SHUT_WR));
	recv_all(p.s, 1, 0, 3000);
	must_be(recv(p.s, buf, 1, 0), 0);
	must_be(recv(p.s, buf, 1, 0), 0);
	/* The other direction still works. */
	send_all(p.s, 2, 0, 100000);
	must(shutdown(p.s, SHUT_WR));
	recv_all(p.c, 2, 0, 100000);
	must_be(recv(p.c, buf, 1, 0), 0);
}

static void pipe_signal(void)
{
	struct pair p;

	pair_open(&p);
	must(shutdown(p.c, SHUT_WR));
	catch_signal(SIGPIPE, 0);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
	must_be(signals_caught, 0);
	must_fail(send(p.c, "x", 1, 0), EPIPE);
	must_be(signals_caught, 1);
	must_fail(write(p.c, "x", 1), EPIPE);
	must_be(signals_caught, 2);
}

static void shutdown_read(void)
{
	struct pair p;

	pair_open(&p);
	must(send(p.c, "x", 1, 0));
	wait_io(p.s, POLLIN);
	must(shutdown(p.s, SHUT_RD));
	must_be(recv(p.s, buf, 1, 0), 1);
	must_be(recv(p.s, buf, 1, 0), 0);
	check(poll_now(p.s, POLLIN) & POLLIN, "not readable after shutdown");
	must(send(p.s, "y", 1, 0));
	must_be(recv(p.c, buf, 1, 0), 1);
}

static void shutdown_wrong(void)
{
	struct pair p;

	pair_open(&p);
	must_fail(shutdown(p.c, 3), EINVAL);
	must_fail(shutdown(p.c, -1), EINVAL);
	must(shutdown(p.c, SHUT_WR));
	must(shutdown(p.c, SHUT_WR));
	must(shutdown(p.c, SHUT_RDWR));
}

struct blocked {
	int fd;
	pid_t tid;
	ssize_t got;
	pthread_t thread;
};

static void *blocked_reader(void *arg)
{
	struct blocked *b = arg;

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_SEQ_CST);
	b->got = recv(b->fd, buf, 1, 0);
	return NULL;
}

/* A thread that sits in recv() on the server's side. */
static void block_reader(struct blocked *b, const struct pair *p)
{
	*b = (struct blocked){ .fd = p->s };
	must_be(pthread_create(&b->thread, NULL, blocked_reader, b), 0);
	wait_until(__atomic_load_n(&b->tid, __ATOMIC_SEQ_CST));
	wait_blocked(b->tid);
}

/* Another thread's shutdown ends a recv() that is blocked. */
static void shutdown_wakes_reader(void)
{
	struct blocked b;
	struct pair p;

	pair_open(&p);
	block_reader(&b, &p);
	must(shutdown(p.s, SHUT_RDWR));
	pthread_join(b.thread, NULL);
	must_be(b.got, 0);
}

/* -- close */

/* Sends until it fails; the errno. */
static int send_error(int fd)
{
	int i;

	for (i = 0; i < 100000; i++) {
		if (send(fd, buf, 1000, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			continue;
		if (errno != EAGAIN)
			return errno;
		breathe();
	}
	fail("nothing ends sending to a peer that has gone");
}

static void peer_closed(void)
{
	struct pair p;
	int err;

	pair_open(&p);
	close(p.s);
	must_be(recv(p.c, buf, 1, 0), 0);
	err = send_error(p.c);
	check(err == EPIPE || err == ECONNRESET, "send to a closed peer: %s", errno_name(err));
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
}

static void close_delivers(void)
{
	struct pair p;

	pair_open(&p);
	set_int(p.c, SOL_SOCKET, SO_SNDBUF, 400000);
	send_all(p.c, 1, 0, 100000);
	close(p.c);
	recv_all(p.s, 1, 0, 100000);
	must_be(recv(p.s, buf, 1, 0), 0);
}

static void close_unread(void)
{
	struct pair p;

	pair_open(&p);
	send_all(p.c, 1, 0, 3000);
	wait_io(p.s, POLLIN);
	close(p.s);
	must_fail(recv(p.c, buf, 1, 0), ECONNRESET);
	must_be(so_error(p.c), 0);
	must_be(recv(p.c, buf, 1, 0), 0);
	must_fail(send(p.c, "x", 1, MSG_NOSIGNAL), EPIPE);
}

static void set_linger(int fd, int on, int seconds)
{
	struct linger l = { .l_onoff = on, .l_linger = seconds };
	struct linger got = {};
	socklen_t len = sizeof(got);

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &len));
	must_be(got.l_onoff, on);
	must_be(got.l_linger, seconds);
}

static void linger_zero(void)
{
	struct pair p;

	pair_open(&p);
	set_linger(p.c, 1, 0);
	close(p.c);
	must_fail(recv(p.s, buf, 1, 0), ECONNRESET);
}

static struct pipe_pair linger_ready;

static void slow_reader(void *arg)
{
	struct pair *p = arg;

	close(p->c);
	tell(linger_ready.wr, 1);
	wait_blocked(getppid());
	recv_all(p->s, 7, 0, 60000);
	must_be(recv(p->s, buf, 1, 0), 0);
}

/* close() waits until all was delivered. */
static void linger_waits(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	set_linger(p.c, 1, 30);
	send_all(p.c, 7, 0, 60000);
	linger_ready = pipe_open();
	pid = spawn(slow_reader, &p);
	/* The last descriptor must be ours. */
	hear(linger_ready.rd);
	close(p.s);
	close(p.c);
	join(pid);
}

static void so_error_once(void)
{
	struct pair p;

	pair_open(&p);
	set_linger(p.c, 1, 0);
	close(p.c);
	wait_io(p.s, POLLERR);
	must_be(so_error(p.s), ECONNRESET);
	must_be(so_error(p.s), 0);
	must_be(recv(p.s, buf, 1, 0), 0);
}

static char half[4 * MIB];

static void *blocked_writer(void *arg)
{
	struct blocked *b = arg;

	__atomic_store_n(&b->tid, gettid(), __ATOMIC_SEQ_CST);
	b->got = send(b->fd, half, sizeof(half), 0);
	return NULL;
}

/* A send that a reset cuts short returns the count; the reset is still to be reported. */
static void reset_while_sending(void)
{
	struct blocked b;
	struct pair p;

	pair_open(&p);
	bound_sndbuf(p.s);
	b = (struct blocked){ .fd = p.s };
	must_be(pthread_create(&b.thread, NULL, blocked_writer, &b), 0);
	wait_until(__atomic_load_n(&b.tid, __ATOMIC_SEQ_CST));
	wait_blocked(b.tid);
	set_linger(p.c, 1, 0);
	close(p.c);
	pthread_join(b.thread, NULL);
	check(b.got > 0 && b.got < (ssize_t)sizeof(half), "send says %zd", b.got);
	wait_io(p.s, POLLERR);
	must_fail(recv(p.s, buf, 1, 0), ECONNRESET);
	must_be(recv(p.s, buf, 1, 0), 0);
}

static void close_while_blocked(void)
{
	struct blocked b;
	struct pair p;

	pair_open(&p);
	block_reader(&b, &p);
	close(p.s);
	must(send(p.c, "x", 1, 0));
	pthread_join(b.thread, NULL);
	must_be(b.got, 1);
}

#define CALLS (ON_BOTH | ON_TCP | ON_INET)

struct held_reader { int fd; struct held_page page; };

static void *read_into_held(void *arg)
{
	const struct held_reader *r = arg;

	must_be(recv(r->fd, r->page.mem, 10, 0), 10);
	return NULL;
}

static void read_ten(void *arg)
{
	char data[10];

	must_be(recv(*(int *)arg, data, sizeof(data), 0), sizeof(data));
	data_check(1, 10, data, sizeof(data));
}

/* A reader that waits behind another one gets the bytes that this one left. */
static void reader_behind(void)
{
	struct held_reader r = { .page = held_page_open() };
	pthread_t thread;
	struct pair p;
	pid_t behind;

	pair_open(&p);
	r.fd = p.s;
	send_all(p.c, 1, 0, 20);
	must_be(pthread_create(&thread, NULL, read_into_held, &r), 0);
	held_page_wait(&r.page);
	behind = spawn(read_ten, &p.s);
	wait_blocked(behind);
	held_page_let_go(&r.page);
	join(behind);
	pthread_join(thread, NULL);
}

/* There are no errors to fetch, and the data stays. */
static void error_queue(void)
{
	char data[10];
	struct pair p;

	pair_open(&p);
	send_all(p.c, 1, 0, 10);
	wait_io(p.s, POLLIN);
	must_fail(recv(p.s, data, sizeof(data), MSG_ERRQUEUE), EAGAIN);
	recv_all(p.s, 1, 0, 10);
}

static const struct e2e_case cases[] = {
	{ "reader_behind", reader_behind, .on = ON_STREAM },
	{ "error_queue", error_queue, .on = ON_BOTH | ON_TCP | ON_INET },
	{ "send_and_recv", send_and_recv, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "read_and_write", read_and_write, .on = CALLS },
	{ "messages", messages, .on = CALLS },
	{ "send_nothing", send_nothing, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "would_block", would_block, .on = CALLS },
	{ "times_out", times_out, .on = CALLS },
	{ "interrupted", interrupted, .on = CALLS },
	{ "restarted", restarted, .on = CALLS },
	{ "bad_pointers", bad_pointers, .on = CALLS },
	{ "not_connected", not_connected, .on = CALLS },
	{ "peek", peek, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "waitall", waitall, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "recv_in_parts", recv_in_parts, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "both_directions", both_directions, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "transfer", NULL, transfer_client, transfer_server, .on = ON_ALL6 | ON_TCP | ON_FACES },
	{ "ping_pong", ping_pong, .on = CALLS },
	{ "gathered", gathered, .on = ON_STREAM },
	{ "gathered_room", gathered_room, .on = ON_STREAM },
	{ "fill_and_drain", fill_and_drain, .on = CALLS },
	{ "blocked_sender", blocked_sender, .on = CALLS },
	{ "half_close", half_close, .on = CALLS },
	{ "pipe_signal", pipe_signal, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "shutdown_read", shutdown_read, .on = CALLS },
	{ "shutdown_wrong", shutdown_wrong, .on = CALLS },
	{ "shutdown_wakes_reader", shutdown_wakes_reader, .on = CALLS },
	{ "peer_closed", peer_closed, .on = CALLS },
	{ "close_delivers", close_delivers, .on = CALLS },
	{ "close_unread", close_unread, .on = CALLS },
	{ "linger_zero", linger_zero, .on = CALLS },
	{ "linger_waits", linger_waits, .on = CALLS },
	{ "so_error_once", so_error_once, .on = CALLS },
	{ "reset_while_sending", reset_while_sending, .on = ON_STREAM | ON_TCP | ON_INET },
	{ "close_while_blocked", close_while_blocked, .on = CALLS },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
