// SPDX-License-Identifier: MIT
/* Sends files of a directory: a client sends a line with a name, and gets the file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

#include "net.h"

#define CLIENTS	500

struct client {
	int fd;
	size_t len;
	char name[257];			/* and the line's end */
	exs_xferfile_t xfer;		/* belongs to the operation until its event */
};

static exs_qhandle_t queue;
static int directory, listener, clients;

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

/* Reset the connection, so that the client does not see an empty file. */
static void refuse(struct client *c, const char *why)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	warnx("%s: %s", c->name, why);
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	hang_up(c);
}

static void receive_name(struct client *c)
{
	if (exs_recv(c->fd, c->name + c->len, sizeof(c->name) - 1 - c->len, 0, queue,
		     (uintptr_t)c, EXS_MHANDLE_UNREGISTERED))
		refuse(c, strerror(errno));
}

/* Sends the file, then the end of the stream. The program does not wait for the disk. */
static void send_file(struct client *c)
{
	int error, file = openat(directory, c->name,
				 O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (file < 0) {
		refuse(c, strerror(errno));
		return;
	}
	c->xfer.xf_file = (exs_fdvec_t){ .fd_file = file, .fd_len = EXS_TO_EOF };
	error = exs_sendfile(c->fd, &c->xfer, EXS_SHUT_WR, queue, (uintptr_t)c);
	close(file);			/* the operation has it */
	if (error)
		refuse(c, strerror(errno));
}

static void received(struct client *c, size_t len)
{
	char *end;

	c->len += len;
	end = memchr(c->name, '\n', c->len);
	if (end) {
		*end = '\0';
		if (strchr(c->name, '/') || c->name[0] == '.')
			refuse(c, "not a name in this directory");
		else
			send_file(c);
	} else if (!len || c->len == sizeof(c->name) - 1) {
		refuse(c, "not a line");
	} else {
		receive_name(c);	/* the rest of it */
	}
}

static void accepted(int fd)
{
	struct client *c = clients < CLIENTS ? calloc(1, sizeof(*c)) : NULL;

	accept_next();
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	clients++;
	receive_name(c);
}

static void handle(const exs_event_t *e)
{
	struct client *c = (struct client *)(uintptr_t)e->exs_evt_ahandle;

	if (!c && e->exs_evt_errno) {
		complain("exs_accept", e->exs_evt_errno);
		accept_next();
	} else if (!c) {
		accepted(e->exs_evt_union.exs_evt_accept.exs_evt_newfd);
	} else if (e->exs_evt_errno) {
		refuse(c, strerror(e->exs_evt_errno));
	} else if (e->exs_evt_type == EXS_EVT_RECV) {
		received(c, e->exs_evt_union.exs_evt_xfer.exs_evt_length);
	} else {
		printf("%s: %zu bytes\n", c->name,
		       e->exs_evt_union.exs_evt_xferfile.exs_evt_file);
		hang_up(c);
	}
}

int main(int argc, char **argv)
{
	exs_event_t events[64];
	struct addrinfo *at;
	int i, n;

	if (argc != 4)
		errx(2, "usage: file-server DIRECTORY ADDRESS PORT");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	setlinebuf(stdout);
	directory = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		give_up_file(argv[1]);
	at = resolve(argv[2], argv[3]);
	queue = exs_qcreate(CLIENTS + 1);
	listener = socket(AF_EXS, SOCK_STREAM, 0);
	if (queue < 0 || listener < 0)
		give_up("exs_qcreate, socket");
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 16))
		give_up(argv[2]);
	fprintf(stderr, "file-server: listening\n");

	accept_next();
	while ((n = exs_qdequeue(queue, events, 64, NULL)) > 0)
		for (i = 0; i < n; i++)
			handle(&events[i]);
	give_up("exs_qdequeue");
}
