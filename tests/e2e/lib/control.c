// SPDX-License-Identifier: GPL-2.0
/*
 * The two sides of a client-and-server case talk in lines. A side that waits
 * names the line it waits for, so that a case that loses step says where.
 */
#include "e2e.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of a reason, with its beginning. */
#define LINE_LEN (REASON_MAX + 16)

void control_send(const char *format, ...)
{
	char line[LINE_LEN];
	va_list args;
	size_t n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	line[n++] = '\n';
	must_be(send(e2e.control, line, n, MSG_NOSIGNAL), n);
}

/* One byte at a time: bytes after the line may be for another process. */
static void read_line(char *line, const char *what)
{
	size_t n = 0;

	for (;;) {
		wait_io(e2e.control, POLLIN);
		if (must(read(e2e.control, line + n, 1)) != 1)
			fail("the other side ended; waited for \"%s\"", what);
		if (line[n] == '\n')
			break;
		check(++n < LINE_LEN, "a line without end; waited for \"%s\"", what);
	}
	line[n] = 0;
	check(strncmp(line, "END ", 4), "the other side ended (%s); waited for \"%s\"", line + 4, what);
}

void control_wait(const char *what)
{
	char line[LINE_LEN] = "";

	read_line(line, what);
	check(!strcmp(line, what), "the other side says \"%s\"; waited for \"%s\"", line, what);
}

void control_number(const char *what, long value)
{
	control_send("%s %ld", what, value);
}

long control_read(const char *what)
{
	char line[LINE_LEN] = "";
	size_t n = strlen(what);

	read_line(line, what);
	check(!strncmp(line, what, n) && line[n] == ' ',
	      "the other side says \"%s\"; waited for \"%s\" and a number", line, what);
	return atol(line + n);
}

static int meet_client(void)
{
	union address to = address_of(SERVER, control_read("port"));
	int fd = socket_on(CLIENT);

	must(connect(fd, &to.sa, address_len(&to)));
	return fd;
}

static int meet_server(void)
{
	int lfd, fd;
	union address at;

	enter_side(SERVER);
	lfd = listener(8);
	at = name_of(lfd);
	control_number("port", port_of(&at));
	wait_io(lfd, POLLIN);
	fd = must(accept(lfd, NULL, NULL));
	close(lfd);
	return fd;
}

int meet(void)
{
	return e2e.side == CLIENT ? meet_client() : meet_server();
}
