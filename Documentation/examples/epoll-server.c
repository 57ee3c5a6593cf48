// SPDX-License-Identifier: MIT
/* An echo server for both TCP and AF_EXS: an epoll loop with a queue. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/exs.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "net.h"

#define CLIENTS	500

struct client {
	int fd;
	bool exs;
	size_t len, sent;
	char buf[4096];
};

static int epoll, queue, stop, tcp_listener, exs_listener;
static int clients, tcp_served, exs_served;

static void watch(int op, int fd, uint32_t events, void *who)
{
	struct epoll_event e = { .events = events, .data.ptr = who };

	if (epoll_ctl(epoll, op, fd, &e))
		give_up("epoll_ctl");
}

static struct client *new_client(int fd, bool exs)
{
	struct client *c = clients < CLIENTS ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		close(fd);	/* no room */
		return NULL;
	}
	*(exs ? &exs_served : &tcp_served) += 1;
	clients++;
	c->fd = fd;
	c->exs = exs;
	return c;
}

static void hang_up(struct client *c)
{
	close(c->fd);
	free(c);
	clients--;
}

/* TCP: epoll reports that something can be done, and the program does it. */
static void tcp_accept(void)
{
	int fd = accept(tcp_listener, NULL, NULL);
	struct client *c = fd < 0 ? NULL : new_client(fd, false);

	if (c)
		watch(EPOLL_CTL_ADD, fd, EPOLLIN, c);
}

static void tcp_ready(struct client *c)
{
	ssize_t n;

	if (c->sent == c->len) {
		n = recv(c->fd, c->buf, sizeof(c->buf), MSG_DONTWAIT);
		c->len = n > 0 ? n : 0;
		c->sent = 0;
	} else {
		n = send(c->fd, c->buf + c->sent, c->len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		c->sent += n > 0 ? n : 0;
	}
	if (n > 0)
		watch(EPOLL_CTL_MOD, c->fd, c->sent < c->len ? EPOLLOUT : EPOLLIN, c);
	else if (!n || errno != EAGAIN)
		hang_up(c);
}

/* AF_EXS: the program says what is to be done, and an event reports that it was done. */
static void exs_accept_next(void)
{
	if (exs_accept(exs_listener, NULL, 0, queue, 0))
		give_up("exs_accept");
}

static void exs_start(struct client *c, bool receive, size_t len)
{
	int error = receive ?
		exs_recv(c->fd, c->buf, len, 0, queue, (uintptr_t)c, EXS_MHANDLE_UNREGISTERED) :
		exs_send(c->fd, c->buf, len, 0, queue, (uintptr_t)c, EXS_MHANDLE_UNREGISTERED);

	if (error)
		hang_up(c);
}

static void exs_done(const exs_event_t *e)
{
	struct client *c = (struct client *)(uintptr_t)e->exs_evt_ahandle;
	size_t len = e->exs_evt_union.exs_evt_xfer.exs_evt_length;

	if (e->exs_evt_errno)
		complain("AF_EXS", e->exs_evt_errno);
	if (e->exs_evt_type == EXS_EVT_ACCEPT) {
		exs_accept_next();
		if (!e->exs_evt_errno)
			c = new_client(e->exs_evt_union.exs_evt_accept.exs_evt_newfd, true);
		if (c)
			exs_start(c, true, sizeof(c->buf));
	} else if (e->exs_evt_errno || !len) {
		hang_up(c);
	} else if (e->exs_evt_type == EXS_EVT_RECV) {
		exs_start(c, false, len);
	} else {
		exs_start(c, true, sizeof(c->buf));
	}
}

static void queue_ready(void)
{
	exs_event_t events[64];
	struct timeval dont_wait = { 0, 0 };
	int i, n = exs_qdequeue(queue, events, 64, &dont_wait);

	for (i = 0; i < n; i++)
		exs_done(&events[i]);
	if (n < 0)
		give_up("exs_qdequeue");
}

static int listen_on(int family, const struct addrinfo *at)
{
	int fd = socket(family, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 16))
		give_up(family == at->ai_family ? "TCP" : "AF_EXS");
	return fd;
}

static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void dispatch(void *who)
{
	if (who == &queue)
		queue_ready();
	else if (who == &tcp_listener)
		tcp_accept();
	else
		tcp_ready(who);
}

int main(int argc, char **argv)
{
	struct addrinfo *at;
	struct epoll_event e;

	if (argc != 3)
		errx(2, "usage: epoll-server ADDRESS PORT");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	at = resolve(argv[1], argv[2]);
	tcp_listener = listen_on(at->ai_family, at);
	exs_listener = listen_on(AF_EXS, at);	/* its ports are separate from TCP's */
	queue = exs_qcreate(CLIENTS + 1);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	stop = signals();
	if (queue < 0 || epoll < 0 || stop < 0)
		give_up("exs_qcreate, epoll_create1, signalfd");

	watch(EPOLL_CTL_ADD, tcp_listener, EPOLLIN, &tcp_listener);
	watch(EPOLL_CTL_ADD, queue, EPOLLIN, &queue);
	watch(EPOLL_CTL_ADD, stop, EPOLLIN, &stop);
	exs_accept_next();
	fprintf(stderr, "epoll-server: listening\n");

	for (;;) {
		if (epoll_wait(epoll, &e, 1, -1) != 1)
			continue;		/* EINTR */
		if (e.data.ptr == &stop)
			break;
		dispatch(e.data.ptr);
	}
	printf("%d by TCP, %d by AF_EXS\n", tcp_served, exs_served);
	return 0;
}
