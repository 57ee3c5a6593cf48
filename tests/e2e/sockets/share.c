// SPDX-License-Identifier: GPL-2.0
/* A socket in several hands: dup, fork, exec, SCM_RIGHTS, threads. TCP is the reference. */
#include "lib/e2e.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buf[65536];

static void with_dup(void)
{
	struct pair p;
	int d;

	pair_open(&p);
	d = must(dup(p.c));
	close(p.c);
	send_all(d, 1, 0, 1000);
	recv_all(p.s, 1, 0, 1000);
	must_fail(recv(p.s, buf, 1, MSG_DONTWAIT), EAGAIN);
	close(d);
	must_be(recv(p.s, buf, 1, 0), 0);
}

static void child_echo(void *arg)
{
	struct pair *p = arg;

	close(p->c);
	recv_all(p->s, 1, 0, 20000);
	send_all(p->s, 2, 0, 20000);
}

static void with_fork(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	pid = spawn(child_echo, &p);
	send_all(p.c, 1, 0, 20000);
	recv_all(p.c, 2, 0, 20000);
	join(pid);
	/* The child's end did not end the connection. */
	send_all(p.s, 3, 0, 10);
	recv_all(p.c, 3, 0, 10);
	close(p.s);
	must_be(recv(p.c, buf, 1, 0), 0);
}

static void fork_parent_leaves(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	pid = spawn(child_echo, &p);
	close(p.s);
	send_all(p.c, 1, 0, 20000);
	recv_all(p.c, 2, 0, 20000);
	must_be(recv(p.c, buf, 1, 0), 0);
	join(pid);
}

static void child_accepts(void *arg)
{
	int s = must(accept(*(int *)arg, NULL, NULL));

	recv_all(s, 1, 0, 500);
	send_all(s, 2, 0, 500);
}

/* Workers that share a listener each get connections of their own. */
static void prefork(void)
{
	int fd = listener(16), c[4], i;
	pid_t pids[4];

	for (i = 0; i < 4; i++)
		pids[i] = spawn(child_accepts, &fd);
	for (i = 0; i < 4; i++) {
		c[i] = client_of(fd);
		send_all(c[i], 1, 0, 500);
	}
	for (i = 0; i < 4; i++) {
		recv_all(c[i], 2, 0, 500);
		must_be(recv(c[i], buf, 1, 0), 0);
		join(pids[i]);
	}
}

static void child_receives(void *arg)
{
	int fd = receive_fd(*(int *)arg);

	recv_all(fd, 1, 0, 5000);
	send_all(fd, 2, 0, 5000);
}

static void passed_connection(void)
{
	struct pair p;
	int fds[2];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = spawn(child_receives, &fds[0]);
	pair_open(&p);
	send_fd(fds[1], p.s);
	close(p.s);
	send_all(p.c, 1, 0, 5000);
	recv_all(p.c, 2, 0, 5000);
	must_be(recv(p.c, buf, 1, 0), 0);
	join(pid);
}

static void child_receives_listener(void *arg)
{
	int fd = receive_fd(*(int *)arg);

	child_accepts(&fd);
}

static void passed_listener(void)
{
	int fds[2], fd, c;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pid = spawn(child_receives_listener, &fds[0]);
	fd = listener(4);
	send_fd(fds[1], fd);
	c = client_of(fd);
	close(fd);
	send_all(c, 1, 0, 500);
	recv_all(c, 2, 0, 500);
	join(pid);
}

/* A socket in a message that is never received ends like one that was closed. */
static void passed_and_dropped(void)
{
	struct pair p;
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	pair_open(&p);
	send_fd(fds[1], p.s);
	close(p.s);
	close(fds[0]);
	close(fds[1]);
	must_be(recv(p.c, buf, 1, 0), 0);
}

static void exec_echo(void *arg)
{
	struct pair *p = arg;

	must(dup2(p->s, 0));
	must(dup2(p->s, 1));
	must(execlp("head", "head", "-c", "1000", NULL));
}

static void with_exec(void)
{
	struct pair p;
	pid_t pid;

	pair_open(&p);
	pid = spawn(exec_echo, &p);
	close(p.s);
	send_all(p.c, 1, 0, 1000);
	recv_all(p.c, 1, 0, 1000);
	must_be(recv(p.c, buf, 1, 0), 0);
	join(pid);
}

static void with_stdio(void)
{
	struct pair p;
	char line[64];
	FILE *out, *in;
	int i;

	pair_open(&p);
	out = fdopen(p.c, "w");
	in = fdopen(p.s, "r");
	for (i = 0; i < 1000; i++)
		fprintf(out, "line %d\n", i);
	must(fclose(out));
	for (i = 0; i < 1000; i++) {
		check(fgets(line, sizeof(line), in), "end of file at line %d", i);
		must_be(atoi(line + 5), i);
	}
	check(!fgets(line, sizeof(line), in), "more lines than were written");
}

struct writer { int fd; char mark; };

/* Records of one letter each, written in one call: threads must not tear them. */
static void *write_records(void *arg)
{
	const struct writer *w = arg;
	char record[64];
	int i;

	memset(record, w->mark, sizeof(record));
	for (i = 0; i < 300; i++)
		must_be(write(w->fd, record, sizeof(record)), sizeof(record));
	return NULL;
}

static void writer_threads(void)
{
	struct writer writers[4];
	pthread_t threads[4];
	int counts[4] = {}, i, n;
	char record[64];
	struct pair p;

	pair_open(&p);
	for (i = 0; i < 4; i++) {
		writers[i] = (struct writer){ p.c, 'a' + i };
		must_be(pthread_create(&threads[i], NULL, write_records, &writers[i]), 0);
	}
	for (n = 0; n < 1200; n++) {
		must_be(recv(p.s, record, sizeof(record), MSG_WAITALL), sizeof(record));
		for (i = 1; i < 64; i++)
			check(record[i] == record[0], "record %d is torn", n);
		counts[record[0] - 'a']++;
	}
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		must_be(counts[i], 300);
	}
}

struct taker { int fd; long sum; };

static void *take_messages(void *arg)
{
	struct taker *t = arg;
	int value;

	while (must(recv(t->fd, &value, sizeof(value), 0)) == sizeof(value))
		t->sum += value;
	return NULL;
}

/* Each message goes to exactly one of the threads that read. */
static void reader_threads(void)
{
	struct taker takers[4];
	pthread_t threads[4];
	struct pair p;
	long sum = 0;
	int i;

	pair_open(&p);
	for (i = 0; i < 4; i++) {
		takers[i] = (struct taker){ p.s, 0 };
		must_be(pthread_create(&threads[i], NULL, take_messages, &takers[i]), 0);
	}
	for (i = 1; i <= 1000; i++)
		must_be(send(p.c, &i, sizeof(i), 0), sizeof(i));
	must(shutdown(p.c, SHUT_WR));
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		sum += takers[i].sum;
	}
	must_be(sum, 1000 * 1001 / 2);
}

#define HANDS (ON_BOTH | ON_TCP | ON_FACE4)

static const struct e2e_case cases[] = {
	{ "dup", with_dup, .on = HANDS },
	{ "fork", with_fork, .on = HANDS },
	{ "fork_parent_leaves", fork_parent_leaves, .on = HANDS },
	{ "prefork", prefork, .on = HANDS },
	{ "passed_connection", passed_connection, .on = HANDS },
	{ "passed_listener", passed_listener, .on = HANDS },
	{ "passed_and_dropped", passed_and_dropped, .on = HANDS },
	{ "exec", with_exec, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "stdio", with_stdio, .on = ON_STREAM | ON_TCP | ON_FACE4 },
	{ "writer_threads", writer_threads, .on = HANDS },
	{ "reader_threads", reader_threads, .on = ON_SEQ },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
