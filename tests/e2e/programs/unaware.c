// SPDX-License-Identifier: GPL-2.0
/* A program that uses the ES-API, and at the other end of TCP one that does not: busybox. */
#include "lib/kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = MIB + 321 };

#define DIR	"/run/exs/unaware"

static void needs_busybox(const char *applet)
{
	char command[100];

	snprintf(command, sizeof(command), "busybox --list | grep -qx %s", applet);
	if (system(command))
		skip("there is no busybox with %s", applet);
}

/* -- an unaware server */

static void httpd(void *arg)
{
	char at[32];

	snprintf(at, sizeof(at), "10.77.0.1:%d", *(int *)arg);
	execlp("busybox", "busybox", "httpd", "-f", "-p", at, "-h", DIR, NULL);
	fail("busybox: %s", errno_name(errno));
}

static void write_file(const char *data)
{
	int fd;

	must_be(system("mkdir -p " DIR), 0);
	fd = must(open(DIR "/file", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	must_be(write(fd, data, SIZE), SIZE);
	close(fd);
}

/* It may not listen yet. */
static int connected_to(int port, exs_qhandle_t q)
{
	union address to = address_from(AF_INET, "10.77.0.1", port);
	double end = now() + limit_ms() / 1e3;
	exs_event_t ev;
	int fd;

	for (;;) {
		fd = kind_socket(&kind_tcp);
		must(exs_connect(fd, &to.sa, address_len(&to), 0, q, 1));
		ev = event_next(q);
		if (!ev.exs_evt_errno)
			return fd;
		event_check(&ev, EXS_EVT_CONNECT, 1, ECONNREFUSED, 0);
		check(now() < end, "nobody listens");
		close(fd);
		breathe();
	}
}

static size_t received(exs_qhandle_t q, exs_ahandle_t handle)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, EXS_EVT_RECV, handle, 0, ev.exs_evt_union.exs_evt_xfer.exs_evt_length);
	return ev.exs_evt_union.exs_evt_xfer.exs_evt_length;
}

static void server(void)
{
	static const char request[] = "GET /file HTTP/1.0\r\n\r\n";
	char *data = pages(SIZE), *answer = pages(2 * SIZE), *body;
	exs_mhandle_t m = region_new(answer, 2 * SIZE, EXS_ACCESS_WRITE);
	exs_qhandle_t q = queue_new(2);
	int port = free_port(), fd;
	size_t n, len = 0;
	pid_t pid;

	needs_busybox("httpd");
	data_fill(1, 0, data, SIZE);
	write_file(data);
	pid = spawn(httpd, &port);
	fd = connected_to(port, q);
	start_send(fd, request, strlen(request), q, 2, NO_REGION);
	event_is(q, EXS_EVT_SEND, 2, 0, strlen(request));
	do {
		start_recv(fd, answer + len, 2 * SIZE - len, 0, q, 3, m);
		n = received(q, 3);
		len += n;
	} while (n);
	body = memmem(answer, len, "\r\n\r\n", 4);
	check(body, "no end of the header in %zu bytes", len);
	body += 4;
	must_be(answer + len - body, SIZE);
	data_check(1, 0, body, SIZE);
	kill(pid, SIGKILL);
	reap(pid);
}

/* -- an unaware client */

static void wget(void *arg)
{
	char url[64];

	snprintf(url, sizeof(url), "http://10.77.0.1:%d/any", *(int *)arg);
	execlp("busybox", "busybox", "wget", "-q", "-O", DIR "-got", url, NULL);
	fail("busybox: %s", errno_name(errno));
}

static void hear_request(int fd, exs_qhandle_t q)
{
	static char request[4096];
	size_t n, len = 0;

	do {
		start_recv(fd, request + len, sizeof(request) - len, 0, q, 2, NO_REGION);
		n = received(q, 2);
		check(n, "the client is gone");
		len += n;
	} while (!memmem(request, len, "\r\n\r\n", 4));
}

static void answer_request(int fd, exs_qhandle_t q, char *data)
{
	static char header[100];
	exs_iovec_t iov[] = {
		{ header, 0, NO_REGION },
		{ data, SIZE, region_new(data, SIZE, EXS_ACCESS_READ) },
	};
	exs_msghdr_t msg = { .msg_iovtype = EXS_IOVEC, .msg_iov = iov, .msg_iovlen = 2 };

	iov[0].iov_len = sprintf(header, "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n", SIZE);
	must(exs_sendmsg(fd, &msg, 0, q, 3));
	must(exs_shutdown(fd, EXS_SHUT_WR, q, 4));
	event_is(q, EXS_EVT_SENDMSG, 3, 0, iov[0].iov_len + SIZE);
	event_is(q, EXS_EVT_SHUTDOWN, 4, 0, 0);
	must(exs_close(fd, 0, q, 5));
	event_is(q, EXS_EVT_CLOSE, 5, 0, 0);
}

static void client(void)
{
	int fd = kind_listening(&kind_tcp), port, got;
	exs_qhandle_t q = queue_new(4);
	union address name = name_of(fd);
	char *data = pages(SIZE);
	exs_event_t ev;
	pid_t pid;

	needs_busybox("wget");
	data_fill(2, 0, data, SIZE);
	must(exs_accept(fd, NULL, SOCK_CLOEXEC, q, 1));
	port = port_of(&name);
	pid = spawn(wget, &port);
	ev = event_next(q);
	event_check(&ev, EXS_EVT_ACCEPT, 1, 0, 0);
	hear_request(event_newfd(&ev), q);
	answer_request(event_newfd(&ev), q, data);
	join(pid);
	got = must(open(DIR "-got", O_RDONLY | O_CLOEXEC));
	must_be(read(got, data, SIZE), SIZE);
	must_be(read(got, data, 1), 0);
	data_check(2, 0, data, SIZE);
}

static const struct e2e_case cases[] = {
	ROW1(server),
	ROW1(client),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
