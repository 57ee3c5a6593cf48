// SPDX-License-Identifier: MIT
/* An echo server for many clients: one thread, one queue, no registered memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

/* Each client has one operation in progress: a receive, then the send of its data. */
#define CLIENTS	500

struct client {
	int fd;
	char buf[4096];
};

static exs_qhandle_t queue;
static int listener, clients;

static void accept_next(void)
{
	if (exs_accept(listener, NULL, 0, queue, 0))
		give_up("exs_accept");
}

static void hang_up(struct client *c)
{
	close(c->fd);
	free(c);
	clients--;
}

static void receive(struct client *c)
{
	if (exs_recv(c->fd, c->buf, sizeof(c->buf), 0, queue, (uintptr_t)c,
		     EXS_MHANDLE_UNREGISTERED)) {
		complain("exs_recv", errno);
		hang_up(c);
	}
}

static void send_back(struct client *c, size_t len)
{
	if (exs_send(c->fd, c->buf, len, 0, queue, (uintptr_t)c, EXS_MHANDLE_UNREGISTERED)) {
		complain("exs_send", errno);
		hang_up(c);
	}
}

static void accepted(int fd)
{
	struct client *c = clients < CLIENTS ? malloc(sizeof(*c)) : NULL;

	accept_next();
	if (!c) {
		close(fd);	/* no room */
		return;
	}
	c->fd = fd;
	clients++;
	receive(c);
}

static void handle(const exs_event_t *e)
{
	struct client *c = (struct client *)(uintptr_t)e->exs_evt_ahandle;
	size_t len = e->exs_evt_union.exs_evt_xfer.exs_evt_length;

	if (e->exs_evt_errno) {
		complain(c ? "client" : "exs_accept", e->exs_evt_errno);
		if (c)
			hang_up(c);
		else
			accept_next();
		return;
	}
	switch (e->exs_evt_type) {
	case EXS_EVT_ACCEPT:
		accepted(e->exs_evt_union.exs_evt_accept.exs_evt_newfd);
		break;
	case EXS_EVT_RECV:
		if (len)
			send_back(c, len);
		else
			hang_up(c);	/* the end of the stream */
		break;
	case EXS_EVT_SEND:
		receive(c);
		break;
	}
}

int main(int argc, char **argv)
{
	exs_event_t events[64];
	struct addrinfo *at;
	int i, n;

	if (argc != 3)
		errx(2, "usage: queue-server ADDRESS PORT");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	at = resolve(argv[1], argv[2]);
	queue = exs_qcreate(CLIENTS + 1);
	listener = socket(AF_EXS, SOCK_STREAM, 0);
	if (queue < 0 || listener < 0)
		give_up("exs_qcreate, socket");
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 16))
		give_up(argv[1]);
	fprintf(stderr, "queue-server: listening\n");

	accept_next();
	while ((n = exs_qdequeue(queue, events, 64, NULL)) > 0)
		for (i = 0; i < n; i++)
			handle(&events[i]);
	give_up("exs_qdequeue");
}
