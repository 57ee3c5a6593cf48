/* SPDX-License-Identifier: MIT */
/*
 * Interfaces between the files of the library.
 *
 *   family.c    finds the number of AF_EXS
 *   module.c    ioctls of the module that need no socket
 *   ring.c      takes entries from a mapped ring: no locks, no system calls
 *   map.c       the cache of mappings: finds the ring of a descriptor
 *   dequeue.c   exs_qdequeue(): ring, then wait, then ring
 *   arg.c       finds the caller's structure of an entry
 *   accept.c    starts an accept, and turns its entry into a descriptor
 *   poll.c      starts a poll, and fills in revents at the end
 *   submit.c    submits operations to the kernel, one or many
 *   queue.c     create, delete, attributes
 *   eventfd.c   an attribute that the library creates itself
 *   signal.c    an attribute that uses the descriptor's O_ASYNC
 *   msg.c       exs_sendmsg(), exs_recvmsg()
 *   timeout.c   timeouts of ordinary sockets, for their operations
 *   sendfile.c  exs_sendfile(), and exs_sendmsg() of files
 *   gather.c    the same, without a queue
 *   connect.c transfer.c shutdown.c close.c cancel.c region.c option.c plain.c    the other calls
 */
#ifndef LIBEXS_LIB_H
#define LIBEXS_LIB_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/exs.h>
#include <sys/exs.h>

#define EXS_HIDDEN __attribute__((visibility("hidden")))

/*
 * Removes the tag that arm64 ignores in an address (MTE, HWASAN). A tag of x86 (LAM) does
 * not change the uppermost bit.
 */
static inline uintptr_t exs_untagged(const void *addr)
{
#ifdef __aarch64__
	return (uintptr_t)((intptr_t)((uintptr_t)addr << 8) >> 8);
#else
	return (uintptr_t)addr;
#endif
}

/*
 * The library is about to read or write @len bytes at @addr. Return: -1 and EFAULT if no
 * program can have them: in the first page, in the kernel's part of the address space, or
 * beyond its end. Other addresses cannot be checked without a system call.
 */
static inline int exs_check_addr(const void *addr, size_t len)
{
#if UINTPTR_MAX > UINT32_MAX
	const uintptr_t end = -((uintptr_t)1 << 47);
#else
	const uintptr_t end = -(uintptr_t)4096;
#endif
	uintptr_t a = exs_untagged(addr);

	if (a >= 4096 && a <= end && len <= end - a)
		return 0;
	errno = EFAULT;
	return -1;
}

/* submit.c: 0, or -1 and errno: nothing was started. */
EXS_HIDDEN int exs_submit_op(exs_qhandle_t q, struct exs_sqe *sqe);

/* module.c: EXS_IOC_QCREATE, EXS_IOC_MREG. Returns the result of ioctl(2). */
EXS_HIDDEN int exs_module_ioctl(unsigned long request, void *arg);

/* The value of an option of SOL_SOCKET; -1: not a socket (the kernel reports it later). */
EXS_HIDDEN int exs_int_option(int fd, int option);

/* Whether it is an AF_EXS socket. */
EXS_HIDDEN bool exs_is_native(int fd);

/* queue.c: EINVAL for a descriptor that is not a queue. */
EXS_HIDDEN int exs_get_attr(int fd, unsigned int attr, int64_t *value);
EXS_HIDDEN int exs_set_attr(int fd, unsigned int attr, int64_t value);

/* eventfd.c: a new descriptor of the queue's eventfd. */
EXS_HIDDEN int exs_get_eventfd(int q, int *fd);

/* signal.c: EXS_QATTR_SIGNAL */
EXS_HIDDEN int exs_set_signal(int q, const exs_signal_t *s);
EXS_HIDDEN int exs_get_signal(int q, exs_signal_t *s);

/*
 * accept.c: turns an entry with a token into an event with a descriptor. Return: 1. Unless
 * @must is set, also 0: the operation continues; or -1 and EMFILE, ENFILE, ENOMEM, ENOBUFS,
 * EAGAIN, EINTR: the event is in the queue again.
 */
EXS_HIDDEN int exs_claim_accept(int q, exs_event_t *ev, bool must);

/* Set the arguments of an accept in @sqe. Return: 0, or -1 and errno. */
EXS_HIDDEN int exs_accept_arg(const exs_acceptaddr_t *addr, int flags,
			      struct exs_sqe *sqe);

/*
 * arg.c: store the address of a structure (aligned to 4, or NULL) and two more bits in
 * @sqe. Return: 0, or -1 and EFAULT.
 */
EXS_HIDDEN int exs_arg_make(const void *addr, unsigned int bits, struct exs_sqe *sqe);

/* The address again; NULL in another process. */
EXS_HIDDEN void *exs_arg_addr(const struct exs_cqe *cqe);

/*
 * timeout.c: timeouts of an ordinary socket, by descriptor; @option is
 * EXS_SO_SEND_TIMEOUT or EXS_SO_RECV_TIMEOUT. Return: 0, or -1 and errno.
 */
EXS_HIDDEN int exs_timeout_set(int fd, int option, const struct exs_opt_timeout *t);
EXS_HIDDEN int exs_timeout_get(int fd, int option, struct exs_opt_timeout *t);

/* Set the timeout of an operation on the socket. Keeps errno. */
EXS_HIDDEN void exs_timeout_look_up(struct exs_sqe *sqe);

/* Atomic: whether a socket ever had a timeout. Usually only this is read. */
EXS_HIDDEN extern bool exs_timeout_any;

static inline void exs_timeout_fill(struct exs_sqe *sqe)
{
	if (__atomic_load_n(&exs_timeout_any, __ATOMIC_ACQUIRE))
		exs_timeout_look_up(sqe);
}

/* sendfile.c: exs_sendmsg() with EXS_FDVEC; @sqe lacks only the vector. */
EXS_HIDDEN int exs_sendmsg_files(exs_qhandle_t q, struct exs_sqe *sqe,
				 const exs_msghdr_t *msg);

/*
 * gather.c: send pieces of memory and files; a message as a whole. Return: bytes, and in
 * @all whether everything was sent; -1 and errno: nothing was sent.
 */
EXS_HIDDEN ssize_t exs_send_gathered(int fd, struct exs_sqe_iovec *iov, size_t n,
				     int flags, bool *all);

/* poll.c: fill in revents for the event. Keeps errno. */
EXS_HIDDEN void exs_poll_finish(const exs_event_t *ev);

/* The token is in the event's union until it is claimed; 0: no token. */
static inline uint64_t exs_event_token(const exs_event_t *ev)
{
	return ev->exs_evt_union.exs_evt_reserved[2];
}

static inline void exs_event_set_token(exs_event_t *ev, uint64_t token)
{
	ev->exs_evt_union.exs_evt_reserved[2] = token;
}

static inline uint64_t exs_event_arg(const exs_event_t *ev)
{
	return ev->exs_evt_union.exs_evt_reserved[3];
}

static inline void exs_event_set_arg(exs_event_t *ev, uint64_t arg)
{
	ev->exs_evt_union.exs_evt_reserved[3] = arg;
}

#endif
