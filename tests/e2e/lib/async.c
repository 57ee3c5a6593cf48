// SPDX-License-Identifier: GPL-2.0
/* Queues, events, regions. */
#include "async.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

exs_qhandle_t queue_new(int depth)
{
	return must(exs_qcreate(depth));
}

void needs_aio_reads(void)
{
	struct exs_ioc_probe probe = { .size = sizeof(probe) };

	must(ioctl(queue_new(1), EXS_IOC_PROBE, &probe));
	if (!(probe.features & EXS_FEATURE_AIO_READ))
		skip("this kernel queues no reads of Linux AIO for sockets");
}

long queue_attr(exs_qhandle_t q, int attr)
{
	struct exs_ioc_attr a = { .size = sizeof(a), .attr = attr };

	must(ioctl(q, EXS_IOC_GETATTR, &a));
	return a.value;
}

bool fdinfo_has(pid_t pid, int fd, const char *line)
{
	char path[64], got[128];
	bool has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	f = fopen(path, "re");
	check(f, "%s: %s", path, errno_name(errno));
	while (!has && fgets(got, sizeof(got), f))
		has = !strncmp(got, line, strlen(line));
	fclose(f);
	return has;
}

void fdinfo_is(int fd, const char *name, long value)
{
	char line[64];

	snprintf(line, sizeof(line), "%s:\t%ld\n", name, value);
	check(fdinfo_has(getpid(), fd, line), "fdinfo does not say %s %ld", name, value);
}

const char *event_name(int type)
{
	static const char *const names[] = {
		"no event", "CONNECT", "ACCEPT", "SEND", "RECV", "CLOSE", "SHUTDOWN", "SENDMSG", "RECVMSG",
		[EXS_EVT_POLL] = "POLL", [EXS_EVT_SENDFILE] = "SENDFILE",
		[EXS_EVT_SENDTIMEOUT] = "SENDTIMEOUT", [EXS_EVT_RECVTIMEOUT] = "RECVTIMEOUT",
	};

	if (type < 0 || (size_t)type >= ARRAY_SIZE(names) || !names[type])
		return "an unknown event";
	return names[type];
}

exs_event_t event_next(exs_qhandle_t q)
{
	struct timeval limit = { .tv_sec = limit_ms() / 1000 };
	exs_event_t ev = {};
	int n;

	do {
		n = exs_qdequeue(q, &ev, 1, &limit);
	} while (n < 0 && errno == EINTR);
	must(n);
	check(n == 1, "waited in vain for an event (submitted %ld, posted %ld)",
	      queue_attr(q, EXS_ATTR_SUBMITTED), queue_attr(q, EXS_ATTR_POSTED));
	return ev;
}

void event_check(const exs_event_t *ev, int type, exs_ahandle_t handle, int err, long length)
{
	bool xfer = type == EXS_EVT_SEND || type == EXS_EVT_RECV || type == EXS_EVT_SENDMSG ||
		    type == EXS_EVT_RECVMSG || (type == EXS_EVT_SENDFILE && !err);
	long got = xfer ? (long)ev->exs_evt_union.exs_evt_xfer.exs_evt_length : length;

	if (ev->exs_evt_type == type && ev->exs_evt_ahandle == handle && ev->exs_evt_errno == err &&
	    got == length)
		return;
	fail("event %s handle %lld errno %s length %ld; wanted %s handle %lld errno %s length %ld",
	     event_name(ev->exs_evt_type), (long long)ev->exs_evt_ahandle,
	     ev->exs_evt_errno ? errno_name(ev->exs_evt_errno) : "0", got, event_name(type),
	     (long long)handle, err ? errno_name(err) : "0", length);
}

void event_is(exs_qhandle_t q, int type, exs_ahandle_t handle, int err, long length)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, type, handle, err, length);
}

enum { WATCH_BUSY = 10, WATCH_LOOKS = 15 };

/* 30 ms unless told: longer than a round trip or a retried message takes. */
static int watch_ms(void)
{
	const char *told = getenv("E2E_WATCH");

	return told ? atoi(told) : 30;
}

static void pause_ms(long ms)
{
	const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* No other task runs or wants to: no worker, and no softirq that was left to ksoftirqd. */
static bool machine_idle(void)
{
	FILE *f = fopen("/proc/loadavg", "r");
	int tasks;

	check(f, "/proc/loadavg: %s", errno_name(errno));
	must_be(fscanf(f, "%*s %*s %*s %d/", &tasks), 1);
	fclose(f);
	return tasks == 1;
}

/*
 * One look would miss an event that comes a little too early for the next step, which then finds it there as if it had
 * caused it. The watch cannot fail without a defect: only the next step may cause an event, however late it is.
 * It is counted in looks at which the machine had nothing else to do, and not in time, which passes for a machine that
 * is held up, too. Where a thread of the case spins it never is idle: then it ends after WATCH_BUSY times as many
 * looks, but not before the time has passed.
 */
void no_event(exs_qhandle_t q)
{
	double end = now() + watch_ms() / 1000.0;
	int idle = WATCH_LOOKS, looks = idle * WATCH_BUSY;
	struct timeval none = {};
	bool now_idle;
	exs_event_t ev;

	while (idle > 0 && (looks-- > 0 || now() < end)) {
		now_idle = machine_idle();
		idle -= now_idle;
		if (must(exs_qdequeue(q, &ev, 1, &none)))
			fail("an event nobody asked for: %s handle %lld", event_name(ev.exs_evt_type),
			     (long long)ev.exs_evt_ahandle);
		pause_ms(now_idle ? watch_ms() / WATCH_LOOKS : BREATH_MS);
	}
}

/* An event that a timer posts, although nothing else is to happen, is late. As above, time does not count. */
void event_is_soon(exs_qhandle_t q, int type, exs_ahandle_t handle, int err, long length)
{
	enum { SOON = 50 };
	struct timeval none = {};
	exs_event_t ev;
	int idle = 0;

	while (!must(exs_qdequeue(q, &ev, 1, &none))) {
		idle += machine_idle();
		check(idle < SOON, "the machine is idle, and event %s handle %lld has not come", event_name(type),
		      (long long)handle);
		breathe();
	}
	event_check(&ev, type, handle, err, length);
}

exs_op_t an_op(int type, int fd, void *buf, size_t len, exs_ahandle_t handle)
{
	return (exs_op_t){
		.exs_op_type = type, .exs_op_fd = fd, .exs_op_buf = buf, .exs_op_len = len,
		.exs_op_region = NO_REGION, .exs_op_handle = handle,
	};
}

void event_is_soon_after_delivery(void (*start)(int fd, exs_qhandle_t q), int type, exs_ahandle_t handle)
{
	static char byte;
	exs_qhandle_t q = queue_new(2);
	struct pair p, other;
	size_t n;

	pair_open(&p);
	pair_open(&other);
	start_recv(other.s, &byte, 1, 0, q, 1, NO_REGION);
	n = send_until_full(p.c, 1);
	start(p.c, q);
	recv_all(p.s, 1, 0, n);
	must_be(recv(p.s, &byte, 1, 0), 0);
	event_is_soon(q, type, handle, 0, 0);
	must_be(send(other.c, "x", 1, 0), 1);
	event_is_soon(q, EXS_EVT_RECV, 1, 0, 1);
}

void no_event_after_others(exs_qhandle_t q)
{
	struct pair other;

	pair_open(&other);
	send_all(other.c, 1, 0, 1000);
	recv_all(other.s, 1, 0, 1000);
	send_all(other.s, 2, 0, 1000);
	recv_all(other.c, 2, 0, 1000);
	pair_close(&other);
	no_event(q);
}

int event_newfd(const exs_event_t *ev)
{
	return ev->exs_evt_union.exs_evt_accept.exs_evt_newfd;
}

exs_mhandle_t region_new(void *buf, size_t len, int flags)
{
	return must(exs_mregister(buf, len, flags));
}

void start_send(int fd, const void *buf, size_t len, exs_qhandle_t q, exs_ahandle_t h, exs_mhandle_t m)
{
	must(exs_send(fd, buf, len, 0, q, h, m));
}

void start_recv(int fd, void *buf, size_t len, int flags, exs_qhandle_t q, exs_ahandle_t h,
		exs_mhandle_t m)
{
	must(exs_recv(fd, buf, len, flags, q, h, m));
}

void ring_map(exs_qhandle_t q, struct ring *r)
{
	long page = sysconf(_SC_PAGESIZE);
	void *head, *ring;

	head = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, q, EXS_MMAP_HEAD);
	check(head != MAP_FAILED, "mmap of the head: %s", errno_name(errno));
	ring = mmap(NULL, page, PROT_READ, MAP_SHARED, q, EXS_MMAP_RING);
	check(ring != MAP_FAILED, "mmap of the ring's first page: %s", errno_name(errno));
	r->size = page + (size_t)(((const struct exs_ring *)ring)->mask + 1) * sizeof(struct exs_cqe);
	munmap(ring, page);
	ring = mmap(NULL, r->size, PROT_READ, MAP_SHARED, q, EXS_MMAP_RING);
	check(ring != MAP_FAILED, "mmap of the ring: %s", errno_name(errno));
	r->head = head;
	r->ring = ring;
	r->entries = (const void *)((char *)ring + page);
}

int submit_raw(exs_qhandle_t q, const struct exs_sqe *sqe, unsigned int count)
{
	struct exs_ioc_submit s = {
		.size = sizeof(s), .count = count, .ops = (uintptr_t)sqe,
		.sqe_size = sizeof(*sqe),
	};

	return ioctl(q, EXS_IOC_SUBMIT, &s);
}
