// SPDX-License-Identifier: MIT
/* Serves one file from memory with several processes, which inherit listener and region. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"

#define DEPTH	64	/* clients of one worker at the same time, plus one */

static char *memory;
static size_t size;

/* Reads the file into memory that the workers share. */
static void load(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t done = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		give_up_file(name);
	size = st.st_size;
	if (!size)
		errx(1, "%s: the file is empty: choose another one", name);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "%s: no memory for %zu bytes: choose a smaller file", name, size);
	for (; done < size; done += got) {
		got = read(fd, memory + done, size - done);
		if (got <= 0)
			errx(1, "%s: %s", name, got ? strerror(errno) : "the file became shorter: start again");
	}
	close(fd);
}

static void accept_next(int listener, exs_qhandle_t queue)
{
	if (exs_accept(listener, NULL, 0, queue, 0))
		give_up("exs_accept");
}

/* All workers use the same listener and the same memory; each has its own queue. */
static void work(int listener, exs_mhandle_t region)
{
	exs_qhandle_t queue = exs_qcreate(DEPTH);
	exs_event_t e;
	int fd;

	if (queue == EXS_QHANDLE_INVALID)
		give_up("exs_qcreate");
	accept_next(listener, queue);
	while (exs_qdequeue(queue, &e, 1, NULL) == 1) {
		if (e.exs_evt_errno)
			complain(e.exs_evt_type == EXS_EVT_SEND ? "exs_send" : "exs_accept", e.exs_evt_errno);
		if (e.exs_evt_type == EXS_EVT_SEND) {
			close(e.exs_evt_socket);	/* sent data still arrives */
			continue;
		}
		accept_next(listener, queue);
		fd = e.exs_evt_union.exs_evt_accept.exs_evt_newfd;
		if (fd >= 0 && exs_send(fd, memory, size, 0, queue, 0, region)) {
			complain("exs_send", errno);
			close(fd);
		}
	}
	give_up("exs_qdequeue");
}

int main(int argc, char **argv)
{
	int listener, i, workers = argc == 5 ? atoi(argv[4]) : 0;
	exs_mhandle_t region;
	struct addrinfo *at;

	if (workers < 1)
		errx(2, "usage: prefork FILE ADDRESS PORT WORKERS");
	if (exs_init(EXS_VERSION))
		give_up("exs_init");
	load(argv[1]);
	region = exs_mregister(memory, size, EXS_ACCESS_READ);
	if (region == EXS_MHANDLE_INVALID)
		give_up("exs_mregister");
	at = resolve(argv[2], argv[3]);
	listener = socket(AF_EXS, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 16))
		give_up(argv[2]);

	for (i = 0; i < workers; i++)
		switch (fork()) {
		case -1:
			err(1, "fork (ulimit -u limits processes)");
		case 0:
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			work(listener, region);
		}
	fprintf(stderr, "prefork: listening\n");
	wait(NULL);
	errx(1, "a worker has ended: start the server again");
}
