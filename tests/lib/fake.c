// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#define MAGIC		0x66616b65u

int __real_ioctl(int fd, unsigned long req, void *arg);
int __real_close(int fd);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_socket(int domain, int type, int protocol);
int __wrap_ioctl(int fd, unsigned long req, ...);
int __wrap_close(int fd);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_munmap(void *addr, size_t len);
int __wrap_munmap(void *addr, size_t len);
int __wrap_socket(int domain, int type, int protocol);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

struct fake_state fake;

/* The file as the kernel sees it; entries follow a page after the ring's start. */
struct file {
	struct exs_ring_head head;
	unsigned char pad[EXS_MMAP_RING - sizeof(struct exs_ring_head)];
	struct exs_ring ring;
	uint32_t magic;
};

static size_t file_size(void)
{
	return EXS_MMAP_RING + sysconf(_SC_PAGESIZE) +
	       FAKE_CAPACITY * sizeof(struct exs_cqe);
}

static struct exs_cqe *entries(struct file *f)
{
	return (void *)((char *)&f->ring + sysconf(_SC_PAGESIZE));
}

static bool is_queue(int fd)
{
	uint32_t magic = 0;

	return pread(fd, &magic, 4, EXS_MMAP_RING + sizeof(struct exs_ring)) == 4 &&
	       magic == MAGIC;
}

/* A region is a memory file of one byte. */
static int fake_region(void)
{
	int fd = memfd_create("exs-region", MFD_CLOEXEC);

	return fd < 0 || ftruncate(fd, 1) ? -1 : fd;
}

static bool is_region(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == 1;
}

static struct file *map(int fd)
{
	return mmap(NULL, file_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void unmap(struct file *f)
{
	__real_munmap(f, file_size());
}

int fake_queue(uint64_t first)
{
	static uint64_t ids;
	int fd = memfd_create("exs-queue", 0);
	struct file *f;

	if (fd < 0 || ftruncate(fd, file_size()))
		return -1;
	f = map(fd);
	f->head.head = first;
	f->ring.tail = first;
	f->ring.id = (uint64_t)getpid() << 32 |
		     __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	f->ring.mask = FAKE_CAPACITY - 1;
	f->ring.entry_size = sizeof(struct exs_cqe);
	f->magic = MAGIC;
	unmap(f);
	return fd;
}

static void post(struct file *f, const struct exs_cqe *cqe)
{
	uint64_t tail = f->ring.tail;
	uint64_t *to = (uint64_t *)&entries(f)[tail & (FAKE_CAPACITY - 1)];
	uint64_t words[sizeof(*cqe) / 8];
	size_t i;

	while (tail - __atomic_load_n(&f->head.head, __ATOMIC_ACQUIRE) >=
	       FAKE_CAPACITY)
		usleep(50);
	memcpy(words, cqe, sizeof(words));
	for (i = 0; i < sizeof(words) / 8; i++)
		__atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&f->ring.tail, tail + 1, __ATOMIC_RELEASE);
}

void fake_post(int q, const struct exs_cqe *cqe)
{
	struct file *f = map(q);

	post(f, cqe);
	unmap(f);
}

void fake_post_n(int q, uint64_t handle, unsigned int n)
{
	struct file *f = map(q);
	struct exs_cqe cqe = { .type = EXS_OP_SEND, .fd = 7 };

	while (n--) {
		cqe.handle = handle++;
		cqe.length = ~cqe.handle;
		post(f, &cqe);
	}
	unmap(f);
}

uint64_t fake_head(int q)
{
	struct file *f = map(q);
	uint64_t head = __atomic_load_n(&f->head.head, __ATOMIC_ACQUIRE);

	unmap(f);
	return head;
}

void fake_set_head(int q, uint64_t head)
{
	struct file *f = map(q);

	__atomic_store_n(&f->head.head, head, __ATOMIC_RELEASE);
	unmap(f);
}

void fake_set_entry_size(int q, uint32_t size)
{
	struct file *f = map(q);

	f->ring.entry_size = size;
	unmap(f);
}

uint64_t fake_tail(int q)
{
	struct file *f = map(q);
	uint64_t tail = __atomic_load_n(&f->ring.tail, __ATOMIC_ACQUIRE);

	unmap(f);
	return tail;
}

void fake_flush(int q)
{
	struct file *f = map(q);

	__atomic_fetch_add(&f->ring.epoch, 1, __ATOMIC_SEQ_CST);
	unmap(f);
}

static uint64_t events_in(const struct file *f)
{
	return __atomic_load_n(&f->ring.tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&f->head.head, __ATOMIC_ACQUIRE);
}

static int sleep_for(const struct file *f, const struct exs_ioc_wait *w)
{
	struct timespec step = { 0, 1000000 };
	int64_t left = w->timeout_ns;

	while (events_in(f) < w->count) {
		left -= step.tv_nsec;
		if (w->timeout_ns >= 0 && left < 0) {
			errno = ETIME;
			return -1;
		}
		if (nanosleep(&step, NULL))
			return -1;
	}
	return 0;
}

static void unmap_file(void *file)
{
	unmap(file);
}

/*
 * A mapping for all of it: under ThreadSanitizer to make one takes long. As a
 * system call is, it is cancelled where it sleeps, and in no function of ours
 * or of a sanitizer.
 */
static int wait_for(int q, const struct exs_ioc_wait *w)
{
	struct file *f;
	int ret, type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	__atomic_fetch_add(&fake.waits, 1, __ATOMIC_RELAXED);
	if (!w->timeout_ns)
		__atomic_fetch_add(&fake.looks, 1, __ATOMIC_RELAXED);
	f = map(q);
	pthread_cleanup_push(unmap_file, f);
	ret = sleep_for(f, w);
	pthread_cleanup_pop(true);
	pthread_setcanceltype(type, NULL);
	return ret;
}

static int preset(int err, int ok)
{
	errno = err;
	return err ? -1 : ok;
}

static int set_attr(const struct exs_ioc_attr *a)
{
	if (a->attr != EXS_ATTR_EVENTFD_FIRST)
		return 0;
	if (fake.eventfd)
		return preset(EEXIST, 0);
	fake.eventfd = dup(a->value);
	return preset(fake.eventfd_raced ? EEXIST : 0, 0);
}

static int get_attr(int q, struct exs_ioc_attr *a)
{
	struct exs_ring_head head;
	struct exs_ring ring;

	/* Closed by another thread since it was looked up. */
	if (pread(q, &head, sizeof(head), 0) != sizeof(head) ||
	    pread(q, &ring, sizeof(ring), EXS_MMAP_RING) != sizeof(ring))
		return preset(EBADF, 0);
	switch (a->attr) {
	case EXS_ATTR_ID:
		a->value = ring.id;
		break;
	case EXS_ATTR_EVENTS:
		a->value = ring.tail - head.head;
		break;
	case EXS_ATTR_EVENTFD:
		a->value = dup(fake.eventfd);
		return preset(fake.eventfd ? 0 : ENODATA, 0);
	default:
		a->value = 5;
	}
	return 0;
}

/* The message's structure and vector are the caller's only for the time of the call. */
static void keep_message(void)
{
	if (fake.sqe.opcode != EXS_OP_SENDMSG && fake.sqe.opcode != EXS_OP_RECVMSG &&
	    fake.sqe.opcode != EXS_OP_SENDFILE)
		return;
	memcpy(&fake.msg, (void *)(uintptr_t)fake.sqe.addr, sizeof(fake.msg));
	memcpy(fake.iov, (void *)(uintptr_t)fake.msg.iov, fake.msg.count * sizeof(fake.iov[0]));
}

static int cancel(struct exs_ioc_cancel *c)
{
	fake.cancel = *c;
	c->count = fake.cancelled;
	return preset(fake.cancel_errno, 0);
}

static int claim(int q, struct exs_ioc_claim *c)
{
	if (c->flags == EXS_CLAIM_AGAIN)
		return preset(fake.again_errno, 0);
	if (c->flags == EXS_CLAIM_BACK) {
		fake_post(q, &fake.claimed);
		return 0;
	}
	if (fake.listener && !c->flags) {
		c->fd = fake.listener;
		c->flags = EXS_CLAIM_PLAIN;
	}
	return preset(__atomic_load_n(&fake.claim_errno, __ATOMIC_RELAXED), 0);
}

static int submit(const struct exs_ioc_submit *s)
{
	const struct exs_sqe *sqes = (void *)(uintptr_t)s->ops;
	unsigned int n = s->count;

	if (n && sqes[0].flags & EXS_SQE_EXS_ONLY && !fake.native)
		return preset(EAFNOSUPPORT, 0);
	fake.submits++;
	if (n < 1 || n > EXS_SUBMIT_MAX || s->sqe_size != sizeof(*sqes))
		return preset(EINVAL, 0);
	if (fake.room && n > fake.room - fake.submitted)
		n = fake.room - fake.submitted;
	if (!n || fake.submit_errno)
		return preset(fake.submit_errno ? fake.submit_errno : EAGAIN, 0);
	fake.sqe = sqes[n - 1];
	keep_message();
	fake.submitted += n;
	return n;
}

static int make_queue(const struct exs_ioc_qcreate *c)
{
	fake.made_with = c->flags;
	return fake_queue(0);
}

static int make_region(const struct exs_ioc_mreg *m)
{
	fake.made_with = m->flags;
	return fake_region();
}

static int queue_ioctl(int q, unsigned long req, void *arg)
{
	switch (req) {
	case EXS_IOC_GETATTR:
		return get_attr(q, arg);
	case EXS_IOC_SETATTR:
		return set_attr(arg);
	case EXS_IOC_WAIT:
		return wait_for(q, arg);
	case EXS_IOC_SUBMIT:
		return submit(arg);
	case EXS_IOC_CANCEL:
		return cancel(arg);
	case EXS_IOC_CLAIM:
		return claim(q, arg);
	case EXS_IOC_QCREATE:
		return make_queue(arg);
	case EXS_IOC_MREG:
		return make_region(arg);
	}
	errno = ENOTTY;
	return -1;
}

static int probe(struct exs_ioc_probe *p)
{
	p->magic = fake.family_gone ? 0 : EXS_PROBE_MAGIC;
	p->abi = fake.abi ? fake.abi : EXS_ABI_VERSION;
	return 0;
}

/* Of a socket or the device. */
static bool is_module(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !S_ISREG(st.st_mode);
}

int __wrap_ioctl(int fd, unsigned long req, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, req);
	arg = va_arg(ap, void *);
	va_end(ap);
	__atomic_fetch_add(&fake.ioctls, 1, __ATOMIC_RELAXED);
	if (is_queue(fd))
		return queue_ioctl(fd, req, arg);
	if (req == EXS_IOC_PROBE)
		return probe(arg);
	if (req == EXS_IOC_QCREATE && is_module(fd))
		return make_queue(arg);
	if (req == EXS_IOC_MREG && is_module(fd))
		return make_region(arg);
	if (req == EXS_IOC_REGION && is_region(fd))
		return 0;
	return __real_ioctl(fd, req, arg);
}

int __wrap_close(int fd)
{
	if (is_queue(fd)) {
		if (fake.on_close)
			fake.on_close();
		fake_flush(fd);
	}
	return __real_close(fd);
}

int __wrap_munmap(void *addr, size_t len)
{
	void (*hook)(void);

	hook = __atomic_exchange_n(&fake.on_munmap, NULL, __ATOMIC_RELAXED);
	if (hook)
		hook();
	return __real_munmap(addr, len);
}

int __wrap_socket(int domain, int type, int protocol)
{
	fake.sockets++;
	if (domain == (fake.family ? fake.family : EXS_FAMILY_DEFAULT))
		return __real_socket(AF_UNIX, type, 0);
	return __real_socket(domain, type, protocol);
}

/* The device, unless it is missing. */
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	if (strcmp(path, EXS_DEVICE))
		return __real_open(path, flags, mode);
	fake.device_opens++;
	if (fake.device)
		return __real_open("/dev/null", flags);
	errno = ENOENT;
	return -1;
}

/* A child chooses another number than its parent. */
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	pid_t pid = getpid();

	(void)flags;
	if (len > sizeof(pid))
		len = sizeof(pid);
	memcpy(buf, &pid, len);
	return len;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = __real_getsockopt(fd, level, name, value, len);

	fake.getsockopts++;
	if (!ret && level == SOL_SOCKET && name == SO_DOMAIN && fake.native)
		*(int *)value = EXS_FAMILY_DEFAULT;
	return ret;
}

/* A socket that takes less than it is given. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t left = fake.send_max, i;
	struct iovec some[IOV_MAX];
	struct msghdr m = *msg;

	if (!fake.send_max)
		return __real_sendmsg(fd, msg, flags);
	for (i = 0; i < msg->msg_iovlen && left; i++) {
		some[i] = msg->msg_iov[i];
		if (some[i].iov_len > left)
			some[i].iov_len = left;
		left -= some[i].iov_len;
	}
	m.msg_iov = some;
	m.msg_iovlen = i;
	return __real_sendmsg(fd, &m, flags);
}
