// SPDX-License-Identifier: GPL-2.0
/*
 * Structures of the ioctls may grow: calls of programs that are older or newer than the module,
 * and the results that they get.
 */
#include "lib/async.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static char byte;

/* An argument at the end of a page: no byte beyond the size that it names may be touched. */
static void *at_the_end(const void *arg, size_t size)
{
	long page = sysconf(_SC_PAGESIZE);
	char *mem = pages(2 * page);

	must(mprotect(mem + page, page, PROT_NONE));
	return memcpy(mem + page - size, arg, size);
}

/* A newer program's structure: some zeros more, or members that we do not know. */
static void grown(int fd, unsigned long request, const void *arg, uint32_t size)
{
	unsigned char big[256] = "";
	uint32_t more = size + 16;

	memcpy(big, arg, size);
	memcpy(big, &more, sizeof(more));
	big[more - 1] = 1;
	must_fail(ioctl(fd, request, at_the_end(big, more)), E2BIG);
	big[more - 1] = 0;
	must(ioctl(fd, request, at_the_end(big, more)));
	more = 1 << 20;
	memcpy(big, &more, sizeof(more));
	must_fail(ioctl(fd, request, big), E2BIG);
}

/* The first version's, a byte less, nothing, and an address that is none. */
static void smallest(int fd, unsigned long request, const void *arg, uint32_t first)
{
	uint32_t less = first - 1;
	unsigned char small[256];

	memcpy(small, arg, first);
	memcpy(small, &first, sizeof(first));
	must(ioctl(fd, request, at_the_end(small, first)));
	memcpy(small, &less, sizeof(less));
	must_fail(ioctl(fd, request, small), EINVAL);
	memset(small, 0, sizeof(less));
	must_fail(ioctl(fd, request, small), EINVAL);
	must_fail(ioctl(fd, request, (void *)8), EFAULT);
}

#define ANY_SIZE(fd, request, arg, first)				\
	do {								\
		grown(fd, request, &(arg), sizeof(arg));		\
		smallest(fd, request, &(arg), first);			\
	} while (0)

static void sizes(void)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };
	struct exs_ioc_qcreate qcreate = { .size = sizeof(qcreate), .depth = 4 };
	struct exs_ioc_mreg mreg = {
		.size = sizeof(mreg), .flags = EXS_MREG_READ, .addr = (uintptr_t)&byte, .len = 1,
	};
	struct exs_ioc_wait wait = { .size = sizeof(wait), .count = 1, .timeout_ns = -1 };
	struct exs_ioc_cancel cancel = { .size = sizeof(cancel) };
	struct exs_ioc_attr get = { .size = sizeof(get), .attr = EXS_ATTR_DEPTH };
	struct exs_ioc_attr set = { .size = sizeof(set), .attr = EXS_ATTR_DEPTH, .value = 9 };
	exs_qhandle_t q = queue_new(8);
	union address to = name_of(listener(1));
	int fd = new_socket();

	ANY_SIZE(fd, EXS_IOC_PROBE, probe, EXS_PROBE_SIZE_VER0);
	ANY_SIZE(fd, EXS_IOC_QCREATE, qcreate, EXS_QCREATE_SIZE_VER0);
	ANY_SIZE(fd, EXS_IOC_MREG, mreg, EXS_MREG_SIZE_VER0);
	ANY_SIZE(q, EXS_IOC_CANCEL, cancel, EXS_CANCEL_SIZE_VER0);
	ANY_SIZE(q, EXS_IOC_GETATTR, get, EXS_ATTR_SIZE_VER0);
	ANY_SIZE(q, EXS_IOC_SETATTR, set, EXS_ATTR_SIZE_VER0);
	must(exs_connect(fd, &to.sa, address_len(&to), 0, q, 1));
	ANY_SIZE(q, EXS_IOC_WAIT, wait, EXS_WAIT_SIZE_VER0);
}

static struct exs_sqe a_receive(int fd)
{
	return (struct exs_sqe){
		.opcode = EXS_OP_RECV, .fd = fd, .addr = (uintptr_t)&byte, .len = 1,
		.region = EXS_REGION_NONE,
	};
}

static int submit_sized(exs_qhandle_t q, const void *ops, uint32_t count, uint32_t sqe_size)
{
	struct exs_ioc_submit s = {
		.size = sizeof(s), .count = count, .ops = (uintptr_t)ops, .sqe_size = sqe_size,
	};

	return ioctl(q, EXS_IOC_SUBMIT, &s);
}

static void submit_sizes(void)
{
	enum { MORE = sizeof(struct exs_sqe) + 8 };
	unsigned char two[2 * MORE] = "";
	exs_qhandle_t q = queue_new(16);
	struct exs_ioc_submit s;
	struct exs_sqe sqe;
	struct pair p;

	pair_open(&p);
	sqe = a_receive(p.s);
	s = (struct exs_ioc_submit){
		.size = sizeof(s), .count = 1, .ops = (uintptr_t)&sqe, .sqe_size = sizeof(sqe),
	};
	ANY_SIZE(q, EXS_IOC_SUBMIT, s, EXS_SUBMIT_SIZE_VER0);
	must_be(submit_sized(q, at_the_end(&sqe, EXS_SQE_SIZE_VER0), 1, EXS_SQE_SIZE_VER0), 1);
	must_fail(submit_sized(q, &sqe, 1, EXS_SQE_SIZE_VER0 - 1), EINVAL);
	must_fail(submit_sized(q, &sqe, 1, 0), EINVAL);
	must_fail(submit_sized(q, &sqe, 1, UINT32_MAX), E2BIG);
	memcpy(two, &sqe, sizeof(sqe));
	memcpy(two + MORE, &sqe, sizeof(sqe));
	must_be(submit_sized(q, at_the_end(two, sizeof(two)), 2, MORE), 2);
	two[sizeof(two) - 1] = 1;
	must_be(submit_sized(q, two, 2, MORE), 1);
	must_fail(submit_sized(q, two + MORE, 1, MORE), E2BIG);
}

static int submit_message(exs_qhandle_t q, int fd, const void *msg, uint32_t size)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_SENDMSG, .fd = fd, .addr = (uintptr_t)msg, .len = size, .region = EXS_REGION_NONE,
	};

	return submit_sized(q, &sqe, 1, sizeof(sqe));
}

/* The structure that an operation points to, likewise. */
static void message_sizes(void)
{
	struct exs_sqe_iovec iov = { .addr = (uintptr_t)&byte, .len = 1, .region = EXS_REGION_NONE };
	struct exs_sqe_msg msg = { .iov = (uintptr_t)&iov, .count = 1 };
	unsigned char big[sizeof(msg) + 8] = "";
	exs_qhandle_t q = queue_new(4);
	struct pair p;

	pair_open(&p);
	memcpy(big, &msg, sizeof(msg));
	must_fail(submit_message(q, p.c, &msg, EXS_SQE_MSG_SIZE_VER0 - 1), EINVAL);
	must_fail(submit_message(q, p.c, &msg, 1 << 20), E2BIG);
	big[sizeof(big) - 1] = 1;
	must_fail(submit_message(q, p.c, at_the_end(big, sizeof(big)), sizeof(big)), E2BIG);
	no_event(q);
	big[sizeof(big) - 1] = 0;
	must_be(submit_message(q, p.c, at_the_end(big, sizeof(big)), sizeof(big)), 1);
	event_is(q, EXS_EVT_SENDMSG, 0, 0, 1);
	must_be(submit_message(q, p.c, at_the_end(&msg, EXS_SQE_MSG_SIZE_VER0), EXS_SQE_MSG_SIZE_VER0), 1);
	event_is(q, EXS_EVT_SENDMSG, 0, 0, 1);
}

/* Members that are only written must be zero: a later version may give them a meaning. */
static void written_only(void)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };
	struct exs_ioc_qcreate qcreate = { .size = sizeof(qcreate), .depth = 4 };
	struct exs_ioc_cancel cancel = { .size = sizeof(cancel), .count = 1 };
	struct exs_ioc_attr attr = { .size = sizeof(attr), .attr = EXS_ATTR_ID, .value = 1 };
	exs_qhandle_t q = queue_new(8);
	int fd = new_socket();

	must(ioctl(fd, EXS_IOC_PROBE, &probe));
	must_be(probe.magic, EXS_PROBE_MAGIC);
	must_be(probe.family, exs_family());
	must_fail(ioctl(fd, EXS_IOC_PROBE, &probe), EINVAL);
	must(ioctl(fd, EXS_IOC_QCREATE, &qcreate));
	must_fail(ioctl(fd, EXS_IOC_QCREATE, &qcreate), EINVAL);
	qcreate.capacity = 0;
	must_fail(ioctl(fd, EXS_IOC_QCREATE, &qcreate), EINVAL);
	must_fail(ioctl(q, EXS_IOC_CANCEL, &cancel), EINVAL);
	must_fail(ioctl(q, EXS_IOC_GETATTR, &attr), EINVAL);
}

/* An older program has no room for members that it does not know. */
static void no_more_than_asked(void)
{
	struct { struct exs_ioc_attr a; uint64_t behind; } get = {
		.a = { .size = sizeof(get.a), .attr = EXS_ATTR_DEPTH }, .behind = 77,
	};
	struct { struct exs_ioc_qcreate c; uint64_t behind; } create = {
		.c = { .size = sizeof(create.c), .depth = 4 }, .behind = 77,
	};

	must(ioctl(queue_new(8), EXS_IOC_GETATTR, &get));
	must_be(get.a.value, 8);
	must_be(get.behind, 77);
	must(ioctl(new_socket(), EXS_IOC_QCREATE, &create));
	must_be(create.behind, 77);
}

/* The result of a probe, here with the version that this was compiled with. */
static void features(void)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };

	must(ioctl(queue_new(8), EXS_IOC_PROBE, &probe));
	must_be(probe.abi, EXS_ABI_VERSION);
	must_be(probe.features & ~EXS_FEATURE_AIO_READ, EXS_FEATURE_DEVICE);
	must_be(probe.ops, (1 << (EXS_OP_POLL + 1)) - 2);
	must_be(probe.plain_ops, probe.ops);
	must_be(probe.sqe_flags, EXS_SQE_TIMEOUT_ONCE | EXS_SQE_TIMEOUT_END | EXS_SQE_EXS_ONLY);
}

/* For programs that have no queue yet, also when new sockets are disabled. */
static void device(void)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };
	struct exs_ioc_qcreate qcreate = { .size = sizeof(qcreate), .depth = 4 };
	struct exs_ioc_mreg mreg = {
		.size = sizeof(mreg), .flags = EXS_MREG_READ, .addr = (uintptr_t)&byte, .len = 1,
	};
	int fd;

	write_sysctl("enabled", 0);
	drop_privileges();
	fd = must(open(EXS_DEVICE, O_RDWR | O_CLOEXEC));
	must(ioctl(fd, EXS_IOC_PROBE, &probe));
	must_be(probe.magic, EXS_PROBE_MAGIC);
	must(ioctl(fd, EXS_IOC_MREG, &mreg));
	fd = must(ioctl(fd, EXS_IOC_QCREATE, &qcreate));
	must(ioctl(fd, EXS_IOC_MREG, &mreg));
	must_fail(ioctl(fd, EXS_IOC_REGION), ENOTTY);
}

/* A newer header's size does not change which request it is; the type and direction do. */
static void numbers(void)
{
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = EXS_ATTR_DEPTH };
	exs_qhandle_t q = queue_new(8);

	must(ioctl(q, _IOC(_IOC_READ | _IOC_WRITE, EXS_IOC_MAGIC, 5, 200), &a));
	must_be(a.value, 8);
	must_fail(ioctl(q, _IOC(_IOC_WRITE, EXS_IOC_MAGIC, 5, sizeof(a)), &a), ENOTTY);
	must_fail(ioctl(q, _IOC(_IOC_READ | _IOC_WRITE, EXS_IOC_MAGIC, 99, sizeof(a)), &a), ENOTTY);
	must_fail(ioctl(new_socket(), EXS_IOC_GETATTR, &a), ENOTTY);
}

/* Only for AF_EXS: how the library recognises a socket. */
static void exs_only(void)
{
	exs_qhandle_t q = queue_new(8);
	struct exs_sqe sqe;
	struct pair p;
	int sv[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	pair_open(&p);
	sqe = a_receive(sv[0]);
	sqe.flags = EXS_SQE_EXS_ONLY;
	must_fail(submit_sized(q, &sqe, 1, sizeof(sqe)), EAFNOSUPPORT);
	no_event(q);
	sqe.fd = p.s;
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
}

/* It ends one operation, with the bytes that it has or ETIME, and leaves no other event. */
static void timeout_ends(void)
{
	exs_qhandle_t q = queue_new(2);
	struct exs_sqe sqe;
	char two[2];
	struct pair p;

	pair_open(&p);
	sqe = a_receive(p.s);
	sqe.timeout = 20000000;
	sqe.flags = EXS_SQE_TIMEOUT_END | EXS_SQE_TIMEOUT_ONCE;
	must_fail(submit_sized(q, &sqe, 1, sizeof(sqe)), EINVAL);
	sqe.flags = EXS_SQE_TIMEOUT_END;
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
	event_is(q, EXS_EVT_RECV, 0, ETIME, 0);
	must_be(send(p.c, "x", 1, 0), 1);
	wait_io(p.s, POLLIN);
	sqe.addr = (uintptr_t)two;
	sqe.len = sizeof(two);
	sqe.msg_flags = MSG_WAITALL;
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	/* Each has one place: both fit. In time they end as ever. */
	sqe.timeout = 60000000000;
	sqe.msg_flags = 0;
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
	must_be(send(p.c, "x", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	must_be(send(p.c, "y", 1, 0), 1);
	event_is(q, EXS_EVT_RECV, 0, 0, 1);
	no_event(q);
}

/* Likewise of an ordinary socket. */
static void timeout_ends_ordinary(void)
{
	exs_qhandle_t q = queue_new(1);
	struct exs_sqe sqe;
	int sv[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	sqe = a_receive(sv[0]);
	sqe.timeout = 20000000;
	sqe.flags = EXS_SQE_TIMEOUT_END;
	must_be(submit_sized(q, &sqe, 1, sizeof(sqe)), 1);
	event_is(q, EXS_EVT_RECV, 0, ETIME, 0);
	no_event(q);
}

static const struct e2e_case cases[] = {
	{ "sizes", sizes, .on = ON_STREAM },
	{ "submit_sizes", submit_sizes, .on = ON_STREAM },
	{ "message_sizes", message_sizes, .on = ON_STREAM },
	{ "written_only", written_only, .on = ON_STREAM },
	{ "no_more_than_asked", no_more_than_asked, .on = ON_STREAM },
	{ "features", features, .on = ON_STREAM },
	{ "device", device, .on = ON_STREAM },
	{ "numbers", numbers, .on = ON_STREAM },
	{ "exs_only", exs_only, .on = ON_STREAM },
	{ "timeout_ends", timeout_ends, .on = ON_STREAM },
	{ "timeout_ends_ordinary", timeout_ends_ordinary, .on = ON_STREAM },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
