/* SPDX-License-Identifier: MIT */
/*
 * What the files of the library say to one another.
 *
 *   family.c    which number AF_EXS has
 *   module.c    what is asked of the module without a socket
 *   ring.c      takes entries off a mapped ring: no locks, no system calls
 *   map.c       which ring belongs to a descriptor: the cache of mappings
 *   dequeue.c   exs_qdequeue(): ring, then wait, then ring
 *   arg.c       how the caller's structure is found again from an entry
 *   accept.c    starts an accept, and turns its entry into a descriptor
 *   poll.c      starts a poll, and says in the end who is ready
 *   submit.c    hands operations to the kernel, one or many
 *   queue.c     create, delete, attributes
 *   eventfd.c   an attribute that the library has to make itself
 *   signal.c    another, which is the descriptor's own O_ASYNC
 *   msg.c       exs_sendmsg(), exs_recvmsg()
 *   timeout.c   timeouts of ordinary sockets, which operations carry
 *   sendfile.c  exs_sendfile(), and exs_sendmsg() of files
 *   gather.c    the same without a queue
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
 * Without what arm64 ignores in an address: a tag (MTE, HWASAN). One of x86 (LAM) leaves
 * the uppermost bit as it is.
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
 * The library is about to read or write @len bytes at @addr. 0, or -1 and EFAULT if they
 * cannot be there whatever the program has mapped: in the first page, where every kernel
 * has itself, beyond the end. What lies in between nobody knows without a system call.
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

/* module.c: EXS_IOC_QCREATE, EXS_IOC_MREG. What ioctl(2) returns. */
EXS_HIDDEN int exs_module_ioctl(unsigned long request, void *arg);

/* An option of SOL_SOCKET; -1 of what is no socket, of which the kernel says so. */
EXS_HIDDEN int exs_int_option(int fd, int option);

/* Whether it is an AF_EXS socket. */
EXS_HIDDEN bool exs_is_native(int fd);

/* queue.c: a descriptor that is no queue gives EINVAL. */
EXS_HIDDEN int exs_get_attr(int fd, unsigned int attr, int64_t *value);
EXS_HIDDEN int exs_set_attr(int fd, unsigned int attr, int64_t value);

/* eventfd.c: a new descriptor of the queue's eventfd. */
EXS_HIDDEN int exs_get_eventfd(int q, int *fd);

/* signal.c: EXS_QATTR_SIGNAL */
EXS_HIDDEN int exs_set_signal(int q, const exs_signal_t *s);
EXS_HIDDEN int exs_get_signal(int q, exs_signal_t *s);

/*
 * accept.c: an entry that carries a token becomes an event with a descriptor.
 * Return: 1. Unless it @must become one, also 0: its operation goes on; or -1 and
 * EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, EINTR: it is in the queue again.
 */
EXS_HIDDEN int exs_claim_accept(int q, exs_event_t *ev, bool must);

/* What an accept has to carry through the kernel. 0, or -1 and errno. */
EXS_HIDDEN int exs_accept_arg(const exs_acceptaddr_t *addr, int flags,
			      struct exs_sqe *sqe);

/*
 * arg.c: @arg for the address of a structure (aligned to 4, or NULL) and two
 * bits more, which are its lowest. 0, or -1 and EFAULT.
 */
EXS_HIDDEN int exs_arg_make(const void *addr, unsigned int bits, struct exs_sqe *sqe);

/* The address again; NULL in another process. */
EXS_HIDDEN void *exs_arg_addr(const struct exs_cqe *cqe);

/*
 * timeout.c: those of an ordinary socket, by descriptor; @option is
 * EXS_SO_SEND_TIMEOUT or EXS_SO_RECV_TIMEOUT. 0, or -1 and errno.
 */
EXS_HIDDEN int exs_timeout_set(int fd, int option, const struct exs_opt_timeout *t);
EXS_HIDDEN int exs_timeout_get(int fd, int option, struct exs_opt_timeout *t);

/* What an operation on it has to carry. Leaves errno. */
EXS_HIDDEN void exs_timeout_look_up(struct exs_sqe *sqe);

/* Atomic: whether a socket ever had one, which is normally all that is read. */
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
 * gather.c: send what pieces of memory and files have: at once, if it is a message.
 * Return: bytes, and in @all whether nothing is left; or -1 and errno: nothing was
 * sent.
 */
EXS_HIDDEN ssize_t exs_send_gathered(int fd, struct exs_sqe_iovec *iov, size_t n,
				     int flags, bool *all);

/* poll.c: the event is given out. Leaves errno. */
EXS_HIDDEN void exs_poll_finish(const exs_event_t *ev);

/* The token rests in the event's union until it has been claimed; 0: there is none. */
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
