// SPDX-License-Identifier: GPL-2.0
/*
 * Speaks to a receiver of exs-cp as no exs-cp would, for copy.sh.
 *
 *	cp_peer ADDRESS[:PORT] STEP...
 *
 *	hello verify|plain	with checksums or without; the answer must be yes
 *	file NAME SIZE|unknown	prints "offer N", the bytes that the receiver has of it
 *	start OFFSET
 *	end			waits until the receiver ends the connection
 *
 * After the last step it exits without a further message.
 */
#include "lib/e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../tools/exs-cp/wire.h"

#define PORT		7025
#define BUFFER		65536

static void put(int fd, const void *msg, size_t len)
{
	must_be(send(fd, msg, len, MSG_NOSIGNAL), len);
}

static struct wire_reply get_reply(int fd)
{
	struct wire_reply r;

	must_be(recv(fd, &r, sizeof(r), MSG_WAITALL), sizeof(r));
	check(!r.failed, "refused: %.*s", WIRE_TEXT, r.text);
	return r;
}

static void hello(int fd, const char *how)
{
	struct wire_hello h = {
		.size = htole32(BUFFER),
		.flags = htole32(strcmp(how, "plain") ? WIRE_VERIFY : 0),
	};

	memcpy(h.magic, WIRE_MAGIC, sizeof(h.magic));
	put(fd, &h, sizeof(h));
	get_reply(fd);
}

static void file(int fd, const char *name, const char *size)
{
	struct wire_file f = { .type = htole32(WIRE_FILE), .mode = htole32(0600) };

	f.size = strcmp(size, "unknown") ? htole64(strtoull(size, NULL, 10)) : UINT64_MAX;
	snprintf(f.name, sizeof(f.name), "%s", name);
	put(fd, &f, sizeof(f));
	printf("offer %llu\n", (unsigned long long)le64toh(get_reply(fd).offset));
}

static void start(int fd, const char *offset)
{
	struct wire_start s = { .offset = htole64(strtoull(offset, NULL, 10)) };

	put(fd, &s, sizeof(s));
}

static void await_end(int fd)
{
	struct wire_reply r;

	while (recv(fd, &r, sizeof(r), 0) > 0)
		;
}

/* The number of arguments that the step took. */
static int step(int fd, char **arg, int n)
{
	if (!strcmp(*arg, "end")) {
		await_end(fd);
		return 1;
	}
	check(n >= 2, "%s: what?", *arg);
	if (!strcmp(*arg, "hello")) {
		hello(fd, arg[1]);
		return 2;
	}
	if (!strcmp(*arg, "start")) {
		start(fd, arg[1]);
		return 2;
	}
	check(n >= 3 && !strcmp(*arg, "file"), "%s: what?", *arg);
	file(fd, arg[1], arg[2]);
	return 3;
}

int main(int argc, char **argv)
{
	union address a;
	char *port;
	int fd, i;

	check(argc >= 2, "usage: cp_peer ADDRESS[:PORT] STEP...");
	e2e.family = exs_family_number();
	e2e.type = SOCK_STREAM;
	port = strchr(argv[1], ':');
	if (port)
		*port++ = 0;
	a = address_from(AF_INET, argv[1], port ? atoi(port) : PORT);
	fd = new_socket();
	must(connect(fd, &a.sa, address_len(&a)));
	for (i = 2; i < argc; )
		i += step(fd, argv + i, argc - i);
	return 0;
}
