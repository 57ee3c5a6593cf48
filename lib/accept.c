// SPDX-License-Identifier: MIT
/*
 * An accepted connection is a token in the ring. The thread that dequeues it claims the
 * token: then the next accept4(2) of this thread on the listener returns this connection.
 * So the real system call creates the descriptor, in the process that gets it, and
 * security modules see it.
 *
 * On an ordinary listener, accept4(2) returns the connection that has waited longest. If another
 * accept took it, the operation continues and there is no event.
 */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib.h"

/* The flags for accept4(2), in the low bits of the address. */
#define ARG_CLOEXEC	1U
#define ARG_NONBLOCK	2U

int exs_accept_arg(const exs_acceptaddr_t *addr, int flags, struct exs_sqe *sqe)
{
	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) {
		errno = EINVAL;
		return -1;
	}
	if (addr && exs_check_addr(addr, sizeof(*addr)))
		return -1;
	return exs_arg_make(addr, (flags & SOCK_CLOEXEC ? ARG_CLOEXEC : 0) |
			    (flags & SOCK_NONBLOCK ? ARG_NONBLOCK : 0), sqe);
}

static int arg_flags(uint64_t arg)
{
	return (arg & ARG_CLOEXEC ? SOCK_CLOEXEC : 0) |
	       (arg & ARG_NONBLOCK ? SOCK_NONBLOCK : 0);
}

static int accept_into(int fd, exs_acceptaddr_t *addr, int flags)
{
	if (!addr || !addr->exs_addr)
		return accept4(fd, NULL, NULL, flags);
	return accept4(fd, addr->exs_addr, &addr->exs_addrlen, flags);
}

/* Does not wait if another thread has accepted the connection. */
static int accept_if_any(int fd, exs_acceptaddr_t *addr, int flags)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	/* A signal ends it although it does not wait. */
	do {
		n = poll(&p, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return accept_into(fd, addr, flags);
	errno = n ? ENOMEM : EAGAIN;
	return -1;
}

/*
 * Undo the claim, drop the connection, wait for another, or post the event again. Return:
 * false: the token is used up already.
 */
static bool give_back(int q, const exs_event_t *ev, uint32_t how)
{
	struct exs_ioc_claim c = {
		.size = sizeof(c),
		.fd = -1,
		.token = exs_event_token(ev),
		.flags = how,
	};
	int err = errno, ret;

	do {
		ret = ioctl(q, EXS_IOC_CLAIM, &c);
	} while (ret && errno == EINTR);
	errno = err;
	return !ret;
}

/*
 * A resource of the process or the system is short, or a signal arrived: the call can be
 * repeated.
 */
static bool try_later(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM ||
	       err == ENOBUFS || err == EAGAIN || err == EINTR;
}

/* For an ordinary listener. Return: a descriptor, -1 and errno, or GONE. */
#define GONE	(-2)

static int take_offer(int q, exs_event_t *ev, int listener, bool must)
{
	int fd = accept_if_any(listener, ev->exs_evt_union.exs_evt_accept.exs_evt_addr,
			       arg_flags(exs_event_arg(ev)));

	if (fd >= 0) {
		give_back(q, ev, EXS_CLAIM_DROP);
	} else if (errno == EAGAIN) {
		if (!must && give_back(q, ev, EXS_CLAIM_AGAIN))
			return GONE;
		errno = ECONNABORTED;	/* or there is no listener to wait on */
	}
	if (fd < 0 && !try_later(errno))
		ev->exs_evt_errno = errno;
	return fd;
}

static int claim(int q, exs_event_t *ev, bool must)
{
	struct exs_ioc_claim c = {
		.size = sizeof(c),
		.fd = ev->exs_evt_socket,
		.token = exs_event_token(ev),
	};
	int fd = ioctl(q, EXS_IOC_CLAIM, &c);
	int err;

	if (!fd && c.flags & EXS_CLAIM_PLAIN) {
		fd = take_offer(q, ev, c.fd, must);
	} else if (!fd) {
		fd = accept_into(c.fd,
				 ev->exs_evt_union.exs_evt_accept.exs_evt_addr,
				 arg_flags(exs_event_arg(ev)));
		if (fd < 0)
			give_back(q, ev, EXS_CLAIM_UNDO);
	}
	err = errno;
	if (c.flags & EXS_CLAIM_CLOSE && c.fd >= 0)
		close(c.fd);
	errno = err;
	return fd;
}

/* The event of a failed accept. */
static int accept_error(int err)
{
	return err == EFAULT || try_later(err) ? err : ECONNABORTED;
}

int exs_claim_accept(int q, exs_event_t *ev, bool must)
{
	int fd;

	do {
		fd = claim(q, ev, must);
	} while (fd == -1 && errno == EINTR && must);
	if (fd == GONE)
		return 0;
	if (fd < 0 && !must && try_later(errno)) {
		if (give_back(q, ev, EXS_CLAIM_BACK))
			return -1;
		errno = ECONNABORTED;
	}
	ev->exs_evt_union.exs_evt_accept.exs_evt_newfd = fd;
	if (fd < 0) {
		if (!ev->exs_evt_errno)
			ev->exs_evt_errno = accept_error(errno);
		give_back(q, ev, EXS_CLAIM_DROP);
	}
	exs_event_set_token(ev, 0);
	exs_event_set_arg(ev, 0);
	return 1;
}

int exs_accept(int fd, exs_acceptaddr_t *addr, int flags, exs_qhandle_t queue,
	       exs_ahandle_t handle)
{
	struct exs_sqe sqe = {
		.opcode = EXS_OP_ACCEPT,
		.fd = fd,
		.handle = handle,
		.region = EXS_REGION_NONE,
	};

	if (exs_accept_arg(addr, flags, &sqe))
		return -1;
	if (queue == EXS_QHANDLE_INVALID)
		return accept_into(fd, addr, flags);
	return exs_submit_op(queue, &sqe);
}
