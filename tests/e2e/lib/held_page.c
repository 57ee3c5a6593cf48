// SPDX-License-Identifier: GPL-2.0
/* A page that delays every access, also the kernel's, until it is released. */
#include "e2e.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct held_page open_page(uint64_t mode, uint64_t features)
{
	struct uffdio_register range = { .mode = mode };
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct held_page page = { .written = mode == UFFDIO_REGISTER_MODE_WP };

	page.fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (page.fd < 0 && errno == ENOSYS)
		skip("this kernel has no userfaultfd");
	check(page.fd >= 0, "userfaultfd: %s", errno_name(errno));
	must(ioctl(page.fd, UFFDIO_API, &api));
	page.mem = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page.mem != MAP_FAILED, "mmap: %s", errno_name(errno));
	range.range.start = (uintptr_t)page.mem;
	range.range.len = getpagesize();
	must(ioctl(page.fd, UFFDIO_REGISTER, &range));
	return page;
}

struct held_page held_page_open(void)
{
	return open_page(UFFDIO_REGISTER_MODE_MISSING, 0);
}

static void protect(const struct held_page *page, uint64_t mode)
{
	struct uffdio_writeprotect w = {
		.range = { .start = (uintptr_t)page->mem, .len = getpagesize() },
		.mode = mode,
	};

	must(ioctl(page->fd, UFFDIO_WRITEPROTECT, &w));
}

struct held_page held_page_of(const void *data, size_t len)
{
	struct held_page page = open_page(UFFDIO_REGISTER_MODE_WP, UFFD_FEATURE_PAGEFAULT_FLAG_WP);

	memcpy(page.mem, data, len);
	protect(&page, UFFDIO_WRITEPROTECT_MODE_WP);
	return page;
}

void held_page_wait(const struct held_page *page)
{
	struct uffd_msg msg;

	wait_io(page->fd, POLLIN);
	must_be(read(page->fd, &msg, sizeof(msg)), sizeof(msg));
	must_be(msg.event, UFFD_EVENT_PAGEFAULT);
}

void held_page_let_go(const struct held_page *page)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)page->mem, .len = getpagesize() },
	};

	if (page->written)
		protect(page, 0);
	else
		must(ioctl(page->fd, UFFDIO_ZEROPAGE, &zero));
}

void held_page_refuse(const struct held_page *page)
{
	struct uffdio_range range = { .start = (uintptr_t)page->mem, .len = getpagesize() };

	must(mprotect(page->mem, getpagesize(), PROT_READ));
	must(ioctl(page->fd, UFFDIO_WAKE, &range));
}

static void *hold_lock(void *arg)
{
	struct locked_socket *l = arg;
	struct sock_fprog prog = { .len = 1, .filter = (void *)l->page.mem };

	must_fail(setsockopt(l->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)), EINVAL);
	return NULL;
}

void lock_socket(struct locked_socket *l, int fd)
{
	l->fd = fd;
	l->page = held_page_open();
	must_be(pthread_create(&l->thread, NULL, hold_lock, l), 0);
	held_page_wait(&l->page);
}

void unlock_socket(struct locked_socket *l)
{
	held_page_let_go(&l->page);
	must_be(pthread_join(l->thread, NULL), 0);
}
