/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_EXS: the interface between the kernel module and user space, version 1.
 *
 * Version 1 only grows. Every structure has the same layout for 32 and for 64 bits.
 *
 * Arguments of ioctls start with their size in the caller's header: EXS_*_SIZE_VER0 or
 * more (EINVAL). exs_ioc_submit.sqe_size, exs_sqe.len and exs_ring.entry_size are the
 * sizes of struct exs_sqe, exs_sqe_msg and exs_cqe. Such a structure may grow at its end:
 * members that the kernel does not know must be zero (E2BIG); members that the caller
 * does not know count as zero and are not written. So no structure has spare members.
 * Struct exs_sqe_iovec and the options do not change.
 *
 * Undefined flags and padding, and members that are only written, must be zero (EINVAL).
 * struct exs_ioc_probe returns the features, operations and flags of the kernel.
 *
 * connect, accept and shutdown take two system calls: an ioctl that submits the operation
 * or claims its result, and connect(2), accept4(2) or shutdown(2). Only the latter ask the
 * security modules, because a module cannot call their hooks. A seccomp filter that
 * refuses sendmsg(2) but not ioctl(2) does not stop sends.
 */
#ifndef _UAPI_LINUX_EXS_H
#define _UAPI_LINUX_EXS_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define EXS_FAMILY_DEFAULT	25	/* or the module's family=             */
/* socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_EXS): the same sockets */
#define EXS_PROTOCOL_DEFAULT	261	/* or the module's protocol=             */
#define EXS_PROTOCOL_MIN	257
#define EXS_PROTOCOL_MAX	261
#define EXS_ABI_VERSION		1
#define EXS_SUBMIT_MAX		1024	/* operations in one EXS_IOC_SUBMIT     */
#define EXS_QUEUE_DEPTH_MAX	(1 << 20)
#define EXS_QUEUE_CAPACITY_MIN	4096	/* smallest number of entries of a ring */
#define EXS_PROBE_MAGIC		0x31535845
#define EXS_DEVICE		"/dev/exs"

/*
 * setsockopt(2), getsockopt(2): options at the family's own level. Values are an int,
 * except the timeouts. An accepted socket inherits the options of its listener; those
 * below 16 have their values of the time when the peer's request arrived.
 */
#define SOL_EXS		0x4558
#define EXS_SO_EAGER_MAX	1	/* SOCK_SEQPACKET: largest message that is
					 * sent together with its header
					 */
#define EXS_SO_RING		2	/* bytes of the receive ring, 0: no ring */
#define EXS_SO_ADVERTS		3	/* most receives offered to the peer at the
					 * same time
					 */
#define EXS_SO_CPU		4	/* processor that processes the device's
					 * completions; -1: any
					 */
#define EXS_SO_INLINE_MAX	5	/* largest data inside a work request, which
					 * the device need not fetch
					 */
#define EXS_SO_BUSY_POLL	6	/* microseconds of polling the device before
					 * a plain call sleeps
					 */
#define EXS_SO_FALLBACK		7	/* SOCK_STREAM: 1: fall back to TCP; set
					 * before bind() and so on
					 */
#define EXS_FALLBACK_NOW	2	/* fall back now, if not connected       */
#define EXS_SO_RECV_ORDERED	16	/* always 1                              */
#define EXS_SO_SEND_TIMEOUT	17	/* struct exs_opt_timeout, of operations that
					 * are submitted later
					 */
#define EXS_SO_RECV_TIMEOUT	18
#define EXS_SO_FELL_BACK	19	/* read only: enum exs_fell_back         */

/* Whether and why a socket fell back to TCP (EXS_SO_FALLBACK). */
enum exs_fell_back {
	EXS_FELL_BACK_NOT,
	EXS_FELL_BACK_NO_DEVICE,	/* no RDMA device for the address or the route,
					 * or no free port there
					 */
	EXS_FELL_BACK_NO_ROUTE,		/* no route, or no neighbour                      */
	EXS_FELL_BACK_NO_ANSWER,	/* within net.exs.fallback_timeout                */
	EXS_FELL_BACK_REFUSED,		/* no listener, or its backlog is full            */
	EXS_FELL_BACK_VERSION,		/* the peer has another version or protocol       */
	EXS_FELL_BACK_LIMIT,		/* a limit of the user                            */
	EXS_FELL_BACK_NOMEM,		/* no memory                                       */
	EXS_FELL_BACK_REMEMBERED,	/* the peer did not answer shortly before         */
	EXS_FELL_BACK_DISABLED,		/* net.exs.enabled is 0                           */
	EXS_FELL_BACK_OPTION,		/* SO_MARK, SO_PRIORITY, SO_TIMESTAMPING, a filter */
	EXS_FELL_BACK_IWARP,		/* its ports are TCP's                            */
	EXS_FELL_BACK_PORT,		/* the port is in use in EXS, but not in TCP      */
	EXS_FELL_BACK_RULE,		/* EXS_FALLBACK_NOW                               */
	EXS_FELL_BACK_OTHER,		/* as when the RDMA device was removed meanwhile   */
};

/**
 * struct exs_opt_timeout - EXS_SO_SEND_TIMEOUT, EXS_SO_RECV_TIMEOUT
 * @ns: 0: no timeout; at most EXS_TIMEOUT_MAX
 * @flags: EXS_TIMEOUT_ONCE: only one completion
 * @pad: 0
 *
 * After this time the operation posts a completion EXS_CQE_SENDTIMEOUT or
 * EXS_CQE_RECVTIMEOUT with its handle, and continues. The next one follows after the
 * same time again, if the previous one was consumed. Such an operation takes two places
 * in its queue.
 */
struct exs_opt_timeout {
	__aligned_u64 ns;
	__u32 flags;
	__u32 pad;
};

#define EXS_TIMEOUT_ONCE	1
#define EXS_TIMEOUT_MAX		(1ULL << 62)

/*
 * EXS_IOC_PROBE, EXS_IOC_QCREATE and EXS_IOC_MREG: on EXS_DEVICE, on any queue, and on
 * any socket of AF_EXS or IPPROTO_EXS.
 *
 * All users may open the device, and it does not depend on net.exs.enabled. A program
 * that has a queue needs no other descriptor. The socket is for containers without the
 * device.
 */

/**
 * struct exs_ioc_probe - EXS_IOC_PROBE: get the kernel's features
 * @size: of this structure
 * @magic: out: EXS_PROBE_MAGIC; no other module answers with it
 * @abi: out: EXS_ABI_VERSION
 * @family: out: the number of AF_EXS
 * @features: out: EXS_FEATURE_*
 * @ops: out: bit 1 << n: operation n of enum exs_op_code, on AF_EXS sockets
 * @plain_ops: out: the same for ordinary sockets
 * @sqe_flags: out: flags of struct exs_sqe
 * @protocol: out: the number of IPPROTO_EXS in AF_INET and AF_INET6; 0: none
 */
struct exs_ioc_probe {
	__u32 size;
	__u32 magic;
	__u32 abi;
	__u32 family;
	__aligned_u64 features;
	__aligned_u64 ops;
	__aligned_u64 plain_ops;
	__u32 sqe_flags;
	__u32 protocol;
};

#define EXS_PROBE_SIZE_VER0	48
#define EXS_FEATURE_DEVICE	(1ULL << 0)	/* EXS_DEVICE exists            */
#define EXS_FEATURE_AIO_READ	(1ULL << 1)	/* reads of Linux AIO that would
						 * block are queued
						 */

/**
 * struct exs_ioc_qcreate - EXS_IOC_QCREATE: create a queue; returns its descriptor
 * @size: of this structure
 * @depth: most outstanding operations and unread events together: 1 to
 *	EXS_QUEUE_DEPTH_MAX
 * @flags: EXS_QF_*
 * @capacity: out: entries of the ring, a power of two
 * @ring_size: out: bytes to map at EXS_MMAP_RING
 */
struct exs_ioc_qcreate {
	__u32 size;
	__u32 depth;
	__u32 flags;
	__u32 capacity;
	__aligned_u64 ring_size;
};

#define EXS_QCREATE_SIZE_VER0	24
#define EXS_QF_CLOEXEC		1

/**
 * struct exs_ioc_mreg - EXS_IOC_MREG: register memory; returns a region's descriptor
 * @size: of this structure
 * @flags: EXS_MREG_*
 * @addr: address
 * @len: bytes, not 0
 */
struct exs_ioc_mreg {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 len;
};

#define EXS_MREG_SIZE_VER0	24
#define EXS_MREG_READ		1	/* operations may read from it (send) */
#define EXS_MREG_WRITE		2	/* operations may write to it (recv)  */
#define EXS_MREG_CLOEXEC	4

/*
 * The completion ring, mapped from the queue's fd.
 *
 * EXS_MMAP_HEAD: one page, readable and writable: the consumer's head.
 * EXS_MMAP_RING: never writable: one page of struct exs_ring, then the
 * entries. Entry i of the endless sequence is entries[i & mask]. The first
 * page may be mapped alone, to learn the size. MAP_SHARED. The page size is
 * sysconf(_SC_PAGESIZE).
 *
 * The consumer reads head, then tail (acquire); entries head to tail - 1 are
 * valid. It copies the entries that it wants, and moves the head by
 * compare-and-swap (release). If that fails, another thread has taken them.
 */
#define EXS_MMAP_HEAD	0
#define EXS_MMAP_RING	0x100000	/* a multiple of every page size */

/**
 * struct exs_ring_head - the page at EXS_MMAP_HEAD
 * @head: entries consumed so far
 */
struct exs_ring_head {
	__aligned_u64 head;
};

/**
 * struct exs_ring - the first page at EXS_MMAP_RING
 * @tail: entries posted so far
 * @epoch: changes when a descriptor of the queue was closed; never 0
 * @id: of this queue, never reused
 * @mask: capacity - 1
 * @entry_size: bytes from one entry to the next: sizeof(struct exs_cqe) or more
 */
struct exs_ring {
	__aligned_u64 tail;
	__aligned_u64 epoch;
	__aligned_u64 id;
	__u32 mask;
	__u32 entry_size;
};

/**
 * struct exs_cqe - one completion
 * @handle: of the operation
 * @length: bytes transferred
 * @user_arg: of the operation
 * @user_tag: of the operation
 * @token: not 0: use it with EXS_IOC_CLAIM (accept)
 * @type: enum exs_op_code, or enum exs_cqe_type
 * @fd: the socket's descriptor in the submission
 * @error: 0 or an errno (positive)
 * @flags: MSG_TRUNC, MSG_EOR; see EXS_OP_POLL
 * @parts: for a send with file pieces, even after an error: bytes sent from the memory
 *	before the first file, and from files
 */
struct exs_cqe {
	__aligned_u64 handle;
	__aligned_u64 length;
	__aligned_u64 user_arg;
	__u32 user_tag;
	__u32 token;
	__u32 type;
	__s32 fd;
	__s32 error;
	__u32 flags;
	__aligned_u64 parts[2];
};

/* enum exs_op_code - struct exs_sqe.opcode */
enum exs_op_code {
	EXS_OP_CONNECT	= 1,	/* ends with the result of the socket's connect(2),
				 * which the same thread calls next
				 */
	EXS_OP_ACCEPT	= 2,
	EXS_OP_SEND	= 3,
	EXS_OP_RECV	= 4,
	EXS_OP_CLOSE	= 5,	/* closes the descriptor at once; ends when the
				 * close of the socket is complete
				 */
	EXS_OP_SHUTDOWN	= 6,	/* ends when all data, and the end of the stream
				 * from shutdown(2) or close(2), are delivered. It
				 * shuts down an ordinary socket itself, after the
				 * earlier sends: user_arg is SHUT_WR, SHUT_RDWR
				 */
	EXS_OP_SENDMSG	= 7,	/* addr, len: a struct exs_sqe_msg              */
	EXS_OP_RECVMSG	= 8,
	EXS_OP_SENDFILE	= 9,	/* as EXS_OP_SENDMSG                            */
	EXS_OP_POLL	= 10,	/* ends when any of len struct pollfd at addr is
				 * ready for its events, POLLIN and POLLOUT; fd
				 * is -1. Entry: length is the number of ready
				 * ones, flags is len. Nothing is written to addr.
				 */
};

/* Entries that do not end an operation. No operation has these numbers. */
enum exs_cqe_type {
	EXS_CQE_SENDTIMEOUT	= 11,
	EXS_CQE_RECVTIMEOUT	= 12,
};

/**
 * struct exs_sqe - one operation
 * @opcode: enum exs_op_code
 * @fd: the socket
 * @handle: returned in the completion
 * @addr: buffer
 * @len: bytes
 * @msg_flags: MSG_WAITALL (recv), MSG_EOR, MSG_NOSIGNAL (send), MSG_DONTWAIT (no
 *	effect)
 * @region: region fd, or EXS_REGION_NONE
 * @user_arg: returned in the completion
 * @timeout: send, recv, sendmsg, recvmsg, sendfile: ns, instead of the socket's
 *	EXS_SO_SEND_TIMEOUT or EXS_SO_RECV_TIMEOUT; 0: use these. Ordinary sockets have
 *	only this one
 * @flags: EXS_SQE_*
 * @user_tag: returned in the completion
 */
struct exs_sqe {
	__u32 opcode;
	__s32 fd;
	__aligned_u64 handle;
	__aligned_u64 addr;
	__aligned_u64 len;
	__u32 msg_flags;
	__s32 region;
	__aligned_u64 user_arg;
	__aligned_u64 timeout;
	__u32 flags;
	__u32 user_tag;
};

#define EXS_SQE_SIZE_VER0	64
#define EXS_SQE_TIMEOUT_ONCE	1	/* @timeout: as EXS_TIMEOUT_ONCE          */
#define EXS_SQE_TIMEOUT_END	2	/* @timeout ends the operation, with ETIME
					 * or the bytes moved, and posts no event.
					 * It takes one place in its queue
					 */
#define EXS_SQE_EXS_ONLY	4	/* fail with EAFNOSUPPORT on an ordinary
					 * socket
					 */
#define EXS_POLL_MAX		1024	/* descriptors of one EXS_OP_POLL       */
#define EXS_REGION_NONE		(-2)	/* memory that is not registered        */

/**
 * struct exs_sqe_msg - EXS_OP_SENDMSG, EXS_OP_RECVMSG, EXS_OP_SENDFILE
 * @iov: struct exs_sqe_iovec[@count]
 * @count: 0 to EXS_IOV_MAX
 * @flags: EXS_SQE_MSG_SHUT_WR
 *
 * Pieces of memory, and for a send also pieces of files. The kernel reads all of it once.
 */
struct exs_sqe_msg {
	__aligned_u64 iov;
	__u32 count;
	__u32 flags;
};

#define EXS_SQE_MSG_SIZE_VER0	16
#define EXS_IOV_MAX		1024
/* With pieces of files, on an ordinary socket: shut it down for sending when everything
 * was sent.
 */
#define EXS_SQE_MSG_SHUT_WR	1

/**
 * struct exs_sqe_iovec - one piece
 * @addr: address, or the offset in the file
 * @len: bytes; for a file: at most, or EXS_IOV_TO_EOF: up to its end
 * @region: region fd, or EXS_REGION_NONE; or the file: a regular file or a block device
 * @flags: EXS_IOV_FILE
 */
struct exs_sqe_iovec {
	__aligned_u64 addr;
	__aligned_u64 len;
	__s32 region;
	__u32 flags;
};

#define EXS_IOV_FILE		1
#define EXS_IOV_TO_EOF		(~0ULL)

/* The other ioctls are for queues, and EXS_IOC_REGION is for regions. */

/**
 * struct exs_ioc_submit - EXS_IOC_SUBMIT: start operations
 * @size: of this structure
 * @count: 1 to EXS_SUBMIT_MAX
 * @ops: struct exs_sqe[@count]
 * @sqe_size: size of each of them
 * @flags: 0
 *
 * Returns the number of operations started, or the errno of the first one. Short sends and
 * receives in a row on one socket may begin together, with the last of them.
 */
struct exs_ioc_submit {
	__u32 size;
	__u32 count;
	__aligned_u64 ops;
	__u32 sqe_size;
	__u32 flags;
};

#define EXS_SUBMIT_SIZE_VER0	24

/**
 * struct exs_ioc_wait - EXS_IOC_WAIT: wait for entries
 * @size: of this structure
 * @count: number of entries to wait for: 1 to the capacity
 * @timeout_ns: < 0: for ever, 0: do not wait
 * @epoch: struct exs_ring.epoch when the ring was looked at, 0: now
 *
 * 0: this number of entries is there, or the epoch is another one: the descriptor may be
 * closed, or another queue's by now. ETIME: the time is up, there may be fewer. When a
 * signal interrupts the call, timeout_ns (>= 0) becomes the remaining time; the call is
 * restarted (SA_RESTART) or fails with EINTR.
 */
struct exs_ioc_wait {
	__u32 size;
	__u32 count;
	__s64 timeout_ns;
	__aligned_u64 epoch;
};

#define EXS_WAIT_SIZE_VER0	16

/**
 * struct exs_ioc_claim - EXS_IOC_CLAIM: claim the connection of a token
 * @size: of this structure
 * @fd: in: the listener's descriptor that the caller expects, out: the one for accept4(2)
 * @token: exs_cqe.token
 * @flags: in: 0 or EXS_CLAIM_UNDO, _DROP, _AGAIN, _BACK; out, unless it fails with EFAULT:
 *	EXS_CLAIM_CLOSE: close @fd afterwards if it is not -1, even if the claim
 *	failed; EXS_CLAIM_PLAIN: see below
 *
 * accept: the next accept4(2) of this thread on @fd returns the connection. The claim may
 * be repeated, from any thread, until this has happened (then ENOENT). EMFILE: no
 * descriptor is free; EAGAIN: too many are claimed and not accepted, or this thread has
 * claimed another connection of the listener; the token stays. ECONNABORTED: the listener
 * was closed and the connection with it; the token is used up.
 *
 * After accept4(2) has failed: UNDO gives up the claim, the token stays; DROP closes the
 * connection, the token is used up; BACK gives up the claim and posts the entry again,
 * after the others, for any thread (EAGAIN: the queue has no room; the token stays).
 *
 * PLAIN: the listener is an ordinary socket, and every accept competes for its
 * connections. accept4(2) returns any of them; DROP says that it has done so, or will not
 * be called. If no connection is left, AGAIN turns the token into an operation of the
 * caller (ENOMEM: the token stays). Other listeners do not have AGAIN (EINVAL).
 *
 * For AGAIN and BACK the entry must have been consumed (else EBUSY).
 */
struct exs_ioc_claim {
	__u32 size;
	__s32 fd;
	__u32 token;
	__u32 flags;
};

#define EXS_CLAIM_SIZE_VER0	16
#define EXS_CLAIM_CLOSE		1
#define EXS_CLAIM_UNDO		2
#define EXS_CLAIM_DROP		4
#define EXS_CLAIM_AGAIN		8
#define EXS_CLAIM_PLAIN		16
#define EXS_CLAIM_BACK		32

/**
 * struct exs_ioc_cancel - EXS_IOC_CANCEL: cancel operations of this queue
 * @size: of this structure
 * @flags: EXS_CANCEL_*: operations must match all of them
 * @fd: any descriptor of the socket
 * @count: out: number of cancelled operations
 * @handle: of the operations
 */
struct exs_ioc_cancel {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 count;
	__aligned_u64 handle;
};

#define EXS_CANCEL_SIZE_VER0	24
#define EXS_CANCEL_FD		1	/* of this socket                       */
#define EXS_CANCEL_HANDLE	2	/* with this handle                     */
#define EXS_CANCEL_CONNECT	4	/* the last connect, without an event: after
					 * connect(2) failed before it reached the
					 * socket (EFAULT, a security module)
					 */
#define EXS_CANCEL_SHUTDOWN	8	/* the same for shutdown, after shutdown(2)
					 * failed. If the socket is shut down, or its
					 * connection has ended, the event is posted,
					 * and count is 0
					 */

/**
 * struct exs_ioc_attr - EXS_IOC_GETATTR, EXS_IOC_SETATTR: attributes of a queue
 * @size: of this structure
 * @attr: EXS_ATTR_*
 * @value: get: out, set: in
 */
struct exs_ioc_attr {
	__u32 size;
	__u32 attr;
	__s64 value;
};

#define EXS_ATTR_SIZE_VER0	16
#define EXS_ATTR_DEPTH		1	/* get, set (at least what is reserved or
					 * unread, at most the capacity)
					 */
#define EXS_ATTR_EVENTS		2	/* get: unread events                   */
#define EXS_ATTR_EVENTFD	3	/* get: a new descriptor of its eventfd,
					 * ENODATA if it has none;
					 * set: the caller's eventfd, -1: none
					 */
#define EXS_ATTR_ID		4	/* get: struct exs_ring.id              */
#define EXS_ATTR_SUBMITTED	5	/* get: operations accepted so far      */
#define EXS_ATTR_POSTED		6	/* get: operations that ended with an
					 * entry so far
					 */
#define EXS_ATTR_EVENTFD_FIRST	7	/* set: as EVENTFD, but EEXIST if it has
					 * one: for the library, which creates it
					 * when it is first read
					 */
#define EXS_ATTR_WAIT		8	/* get, set: how EXS_IOC_WAIT
					 * waits: EXS_QWAIT_*
					 */
#define EXS_QWAIT_NOTIFY	0	/* sleep                                */
#define EXS_QWAIT_BUSY		1	/* poll and process completions, sleep
					 * only if none can come
					 */
#define EXS_QWAIT_ADAPTIVE	2	/* poll for a short time, then sleep    */

/*
 * The kernel checks type, number and direction only: the size in the number is that of
 * the caller's header, and the structure's own size member counts.
 */
#define EXS_IOC_MAGIC		0xE8
#define EXS_IOC_SUBMIT		_IOW(EXS_IOC_MAGIC, 1, struct exs_ioc_submit)
#define EXS_IOC_WAIT		_IOWR(EXS_IOC_MAGIC, 2, struct exs_ioc_wait)
#define EXS_IOC_CLAIM		_IOWR(EXS_IOC_MAGIC, 3, struct exs_ioc_claim)
#define EXS_IOC_CANCEL		_IOWR(EXS_IOC_MAGIC, 4, struct exs_ioc_cancel)
#define EXS_IOC_GETATTR		_IOWR(EXS_IOC_MAGIC, 5, struct exs_ioc_attr)
#define EXS_IOC_SETATTR		_IOW(EXS_IOC_MAGIC, 6, struct exs_ioc_attr)
#define EXS_IOC_REGION		_IO(EXS_IOC_MAGIC, 7)	/* a region: 0; else ENOTTY */
#define EXS_IOC_PROBE		_IOWR(EXS_IOC_MAGIC, 8, struct exs_ioc_probe)
#define EXS_IOC_QCREATE		_IOWR(EXS_IOC_MAGIC, 9, struct exs_ioc_qcreate)
#define EXS_IOC_MREG		_IOW(EXS_IOC_MAGIC, 10, struct exs_ioc_mreg)

#endif
