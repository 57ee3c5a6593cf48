// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that cannot be pinned: a file on a DAX device, which is persistent
 * memory of the guest (tests/vm/guest.py).
 */
#include "lib/async.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#define LEN	8192

/* A mapping of a file there. The mount goes with the case. */
static char *dax_pages(void)
{
	char *mem;
	int fd;

	shell("modprobe -a nd_e820 nd_pmem");
	wait_until(!access("/dev/pmem0", F_OK));
	shell("mkfs.ext4 -q -F -b 4096 /dev/pmem0");
	must(unshare(CLONE_NEWNS));
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	must(mount("/dev/pmem0", "/mnt", "ext4", 0, "dax=always"));
	fd = must(open("/mnt/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	must(ftruncate(fd, LEN));
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(mem != MAP_FAILED, "mmap: %s", errno_name(errno));
	close(fd);
	return mem;
}

static void registration(void)
{
	char *mem = dax_pages();

	must_fail(exs_mregister(mem, LEN, EXS_ACCESS_READ), EOPNOTSUPP);
	must_fail(exs_mregister(mem, LEN, EXS_ACCESS_READ | EXS_ACCESS_WRITE), EOPNOTSUPP);
	must_be(counter("live_pinned_pages"), 0);
}

/* Not without a region either; memory that is copied does not need to be pinned. */
static void unregistered(void)
{
	char *mem = dax_pages();
	exs_qhandle_t q = queue_new(2);
	struct pair p;

	pair_open(&p);
	must_fail(exs_recv(p.s, mem, LEN, 0, q, 1, NO_REGION), EOPNOTSUPP);
	no_event(q);
	data_fill(1, 0, mem, LEN);
	send_all(p.c, 2, 0, LEN);
	recv_all(p.s, 2, 0, LEN);
	must_be(send(p.c, mem, LEN, 0), LEN);
	recv_all(p.s, 1, 0, LEN);
}

static const struct e2e_case cases[] = {
	{ "registration", registration, .on = ON_EXS, .needs = NEEDS_ONE },
	{ "unregistered", unregistered, .on = ON_BOTH, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
