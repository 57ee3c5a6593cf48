// SPDX-License-Identifier: GPL-2.0
#include "file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <unistd.h>

int file_new(uint64_t seed, size_t len)
{
	int fd = must(open("/run/exs", O_TMPFILE | O_RDWR, 0600));
	char *mem;

	must(ftruncate(fd, len));
	if (!len)
		return fd;
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(mem != MAP_FAILED, "mmap: %s", errno_name(errno));
	data_fill(seed, 0, mem, len);
	must(munmap(mem, len));
	return fd;
}

struct guard guard_open(int *file)
{
	struct guard g = { fanotify_init(FAN_CLASS_CONTENT, O_RDONLY) };
	char path[32];

	if (g.fd < 0)
		skip("no fanotify: %s", errno_name(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *file);
	if (fanotify_mark(g.fd, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, path))
		skip("no permission events: %s", errno_name(errno));
	*file = must(open(path, O_RDONLY));
	return g;
}

int guard_wait(const struct guard *g)
{
	struct fanotify_event_metadata ev;

	must_be(read(g->fd, &ev, sizeof(ev)), sizeof(ev));
	return ev.fd;
}

void guard_answer(const struct guard *g, int asked, unsigned int response)
{
	struct fanotify_response r = { .fd = asked, .response = response };

	must_be(write(g->fd, &r, sizeof(r)), sizeof(r));
	must(close(asked));
	if (response == FAN_ALLOW)
		must(close(g->fd));
}
