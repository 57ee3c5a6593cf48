// SPDX-License-Identifier: GPL-2.0
/*
 * Many connections of one machine: connections FAMILY ADDRESS COUNT AT_A_TIME says "SETUPS
 * ALL ONE": how many are set up in a second, and microseconds of a round trip of 64 bytes
 * over all of them in turn, and over one alone.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7610, SIZE = 64 };

static struct sockaddr_in address = { .sin_family = AF_INET };
static int family, count, at_a_time, listener, *clients, *servers;

static long must(long value, const char *what)
{
	if (value < 0)
		err(1, "%s", what);
	return value;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void move(int fd, ssize_t (*how)(int, void *, size_t, int), void *bytes)
{
	if (how(fd, bytes, SIZE, MSG_WAITALL) != SIZE)
		err(1, "connection");
}

static ssize_t out(int fd, void *bytes, size_t size, int flags)
{
	return send(fd, bytes, size, 0);
}

static void *in_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, run, arg);
	if (errno)
		err(1, "pthread_create");
	return NULL;
}

/* ---- set-up ---- */

static void *accept_all(void *unused)
{
	for (int i = 0; i < count; i++)
		servers[i] = must(accept(listener, NULL, NULL), "accept");
	return NULL;
}

static void listen_to_all(void)
{
	listener = must(socket(family, SOCK_STREAM, 0), "socket");
	must(bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	must(listen(listener, count), "listen");
}

static void begin(int i, int set)
{
	struct epoll_event wanted = { .events = EPOLLOUT | EPOLLONESHOT };

	clients[i] = must(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
	if (connect(clients[i], (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS)
		err(1, "connect");
	must(epoll_ctl(set, EPOLL_CTL_ADD, clients[i], &wanted), "epoll_ctl");
}

static void connected(int fd)
{
	socklen_t length = sizeof(int);
	int error;

	must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), "getsockopt");
	errno = error;
	if (error)
		err(1, "connection");
	must(fcntl(fd, F_SETFL, 0), "fcntl");
}

static void connect_all(void)
{
	int set = must(epoll_create1(0), "epoll_create1"), begun = 0, done = 0;
	struct epoll_event found[64];

	while (done < count) {
		for (; begun < count && begun < done + at_a_time; begun++)
			begin(begun, set);
		done += must(epoll_wait(set, found, 64, -1), "epoll_wait");
	}
	close(set);
	for (int i = 0; i < count; i++)
		connected(clients[i]);
}

static double set_up(void)
{
	pthread_t thread;
	double start;

	listen_to_all();
	start = now();
	in_thread(&thread, accept_all, NULL);
	connect_all();
	pthread_join(thread, NULL);
	return now() - start;
}

/* ---- round trips ---- */

/* They are accepted in any order, so each sends its number. */
static void put_in_order(void)
{
	int *ordered = calloc(count, sizeof(int)), bytes[SIZE / sizeof(int)] = {};

	for (int i = 0; i < count; i++) {
		bytes[0] = i;
		move(clients[i], out, bytes);
	}
	for (int i = 0; i < count; i++) {
		move(servers[i], recv, bytes);
		ordered[bytes[0]] = servers[i];
	}
	servers = ordered;
}

static void *answer(void *over)
{
	char bytes[SIZE];

	for (int i = 0; i < count; i++) {
		int fd = servers[i % *(int *)over];

		move(fd, recv, bytes);
		move(fd, out, bytes);
	}
	return NULL;
}

static double round_trip(int over)
{
	double start = now();
	char bytes[SIZE] = {};
	pthread_t thread;

	in_thread(&thread, answer, &over);
	for (int i = 0; i < count; i++) {
		move(clients[i % over], out, bytes);
		move(clients[i % over], recv, bytes);
	}
	pthread_join(thread, NULL);
	return 1e6 * (now() - start) / count;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	double seconds, all, one;

	if (argc != 5 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		errx(2, "usage: connections FAMILY ADDRESS COUNT AT_A_TIME");
	family = atoi(argv[1]);
	count = atoi(argv[3]);
	at_a_time = atoi(argv[4]);
	address.sin_port = htons(PORT);
	files = (struct rlimit) { 2 * count + 64, 2 * count + 64 };
	must(setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
	clients = calloc(count, sizeof(int));
	servers = calloc(count, sizeof(int));
	seconds = set_up();
	put_in_order();
	all = round_trip(count);
	one = round_trip(1);
	printf("%.0f %.1f %.1f\n", count / seconds, all, one);
	return 0;
}
