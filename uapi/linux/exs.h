/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_EXS: what the kernel module and user space say to one another.
 *
 * Every structure is of fixed width. Arguments of ioctls start with their size, as
 * the caller knows it: EXS_*_SIZE_VER0 or more (EINVAL); exs_ioc_submit.sqe_size,
 * exs_sqe.len and exs_ring.entry_size tell those of struct exs_sqe, exs_sqe_msg and
 * exs_cqe; struct exs_sqe_iovec and the options do not change. One may grow at its end: what the
 * kernel does not know must be zero there (E2BIG), and what the caller does not
 * know counts as zero and is not written. Flags and padding that are not
 * defined, and members that are only written, must be zero (EINVAL).
 */
#ifndef _UAPI_LINUX_EXS_H
#define _UAPI_LINUX_EXS_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define EXS_FAMILY_DEFAULT	25	/* the module's family= says otherwise */
#define EXS_ABI_VERSION		1
#define EXS_SUBMIT_MAX		1024	/* operations in one EXS_IOC_SUBMIT     */
#define EXS_QUEUE_DEPTH_MAX	(1 << 20)
#define EXS_QUEUE_CAPACITY_MIN	4096	/* entries of a ring, at the least      */
#define EXS_PROBE_MAGIC		0x31535845

/*
 * ioctls on any AF_EXS socket. The numbers lie in the range that the socket
 * layer hands to the family (SIOCPROTOPRIVATE).
 */
#define SIOCEXSPROBE	0x89E0	/* struct exs_ioc_probe                       */
#define SIOCEXSQCREATE	0x89E1	/* struct exs_ioc_qcreate; returns a queue fd */
#define SIOCEXSMREG	0x89E2	/* struct exs_ioc_mreg; returns a region fd   */

/*
 * setsockopt(2), getsockopt(2): options at a level of the family's own. Values are
 * an int but for the timeouts. An accepted socket has those of its listener: those
 * below 16 as they were when the peer's request came.
 */
#define SOL_EXS		0x4558
#define EXS_SO_EAGER_MAX	1	/* SOCK_SEQPACKET: largest message that is
					 * sent together with its header         */
#define EXS_SO_RING		2	/* SOCK_STREAM: bytes of the receive ring,
					 * 0: there is to be none                */
#define EXS_SO_ADVERTS		3	/* most receives offered to the peer at one
					 * time                                  */
#define EXS_SO_CPU		4	/* processor that deals with what the device
					 * has completed; -1: any                */
#define EXS_SO_INLINE_MAX	5	/* largest work request that takes its bytes
					 * along instead of having them fetched  */
#define EXS_SO_BUSY_POLL	6	/* microseconds that a plain call which waits
					 * polls the device before it sleeps     */
#define EXS_SO_RECV_ORDERED	16	/* always 1, whatever is set             */
#define EXS_SO_SEND_TIMEOUT	17	/* struct exs_opt_timeout, of operations that
					 * are submitted from now on             */
#define EXS_SO_RECV_TIMEOUT	18

/*
 * An operation that has taken so long leaves a completion EXS_CQE_SENDTIMEOUT or
 * EXS_CQE_RECVTIMEOUT, with its handle, and goes on. After the same time again
 * comes the next, unless that has not been consumed yet. Such an operation takes
 * two places in its queue.
 */
struct exs_opt_timeout {
	__u64 ns;		/* 0: none; at most EXS_TIMEOUT_MAX             */
	__u32 flags;		/* EXS_TIMEOUT_ONCE: no next one                */
	__u32 pad;
};
#define EXS_TIMEOUT_ONCE	1
#define EXS_TIMEOUT_MAX		(1ULL << 62)

/* SIOCEXSPROBE: only this family answers it, with the magic. */
#define EXS_PROBE_SIZE_VER0	16
struct exs_ioc_probe {
	__u32 size;
	__u32 magic;		/* out: EXS_PROBE_MAGIC */
	__u32 abi;		/* out: EXS_ABI_VERSION */
	__u32 family;		/* out */
};

/* SIOCEXSQCREATE */
#define EXS_QCREATE_SIZE_VER0	24
struct exs_ioc_qcreate {
	__u32 size;
	__u32 depth;		/* operations that may be outstanding and events
				 * unread, together: 1 to EXS_QUEUE_DEPTH_MAX */
	__u32 flags;		/* EXS_QF_CLOEXEC */
	__u32 capacity;		/* out: entries of the ring, a power of two   */
	__u64 ring_size;	/* out: bytes to map at EXS_MMAP_RING         */
};
#define EXS_QF_CLOEXEC		1

/* SIOCEXSMREG */
#define EXS_MREG_SIZE_VER0	24
struct exs_ioc_mreg {
	__u32 size;
	__u32 flags;		/* EXS_MREG_* */
	__u64 addr;
	__u64 len;
};
#define EXS_MREG_READ		1	/* operations may read from it (send) */
#define EXS_MREG_WRITE		2	/* operations may write to it (recv)  */
#define EXS_MREG_CLOEXEC	4

/*
 * The completion ring, mapped from the queue's fd.
 *
 * EXS_MMAP_HEAD: one page, readable and writable: the consumer's head.
 * EXS_MMAP_RING: never writable: one page of struct exs_ring, then the
 * entries. Entry i of the endless sequence is entries[i & mask]. The first
 * page may be mapped alone, by one that must learn the size. MAP_SHARED.
 * Pages are the system's, sysconf(_SC_PAGESIZE).
 *
 * The consumer reads head, then tail (acquire); entries head to tail - 1 are
 * valid; it copies those it wants and moves the head by compare-and-swap
 * (release), and if that fails, what it copied belongs to another thread.
 */
#define EXS_MMAP_HEAD	0
#define EXS_MMAP_RING	0x100000	/* a multiple of any page's size */

struct exs_ring_head {
	__u64 head;
};

struct exs_ring {
	__u64 tail;		/* entries posted, ever                         */
	__u64 epoch;		/* changes when a descriptor of it was closed   */
	__u64 id;		/* of this queue, never used again              */
	__u32 mask;		/* capacity - 1                                 */
	__u32 entry_size;	/* sizeof(struct exs_cqe)                       */
};

/* One completion. */
struct exs_cqe {
	__u64 handle;		/* the user's, of the operation                 */
	__u64 length;		/* bytes transferred                            */
	__u64 token;		/* not 0: EXS_IOC_CLAIM has more (accept)       */
	__u64 arg;		/* the operation's user_arg                     */
	__u32 type;		/* enum exs_op_code, or EXS_CQE_*               */
	__s32 fd;		/* the socket, as the submitter named it        */
	__s32 error;		/* 0 or an errno (positive)                     */
	__u32 flags;		/* MSG_TRUNC, MSG_EOR; see EXS_OP_POLL          */
	__u64 parts[2];		/* of a send with file pieces, also after an
				 * error: bytes sent of the memory before the
				 * first of them, and of files                  */
};

enum exs_op_code {
	EXS_OP_CONNECT	= 1,	/* ends when the socket's connect(2), called
				 * next by the same thread, is decided          */
	EXS_OP_ACCEPT	= 2,
	EXS_OP_SEND	= 3,
	EXS_OP_RECV	= 4,
	EXS_OP_CLOSE	= 5,	/* closes the descriptor, at once; ends when the
				 * socket's close is complete                   */
	EXS_OP_SHUTDOWN	= 6,	/* ends when all that was sent, and the end that
				 * shutdown(2) or close(2) sends, is delivered; on
				 * an ordinary socket it shuts that down, after the
				 * sends before it: user_arg is SHUT_WR, SHUT_RDWR */
	EXS_OP_SENDMSG	= 7,	/* addr, len: a struct exs_sqe_msg              */
	EXS_OP_RECVMSG	= 8,
	EXS_OP_SENDFILE	= 9,	/* as EXS_OP_SENDMSG                            */
	EXS_OP_POLL	= 10,	/* ends when any of len struct pollfd at addr is
				 * ready for its events, POLLIN and POLLOUT; fd
				 * is -1. Entry: length says how many were, flags
				 * is len. Nothing is written to addr.          */
};

/* Entries that do not end an operation: it goes on. No operation has these numbers. */
enum exs_cqe_type {
	EXS_CQE_SENDTIMEOUT	= 11,
	EXS_CQE_RECVTIMEOUT	= 12,
};

/* One operation. */
#define EXS_SQE_SIZE_VER0	64
struct exs_sqe {
	__u32 opcode;		/* enum exs_op_code                             */
	__s32 fd;		/* the socket                                   */
	__u64 handle;		/* comes back in the completion                 */
	__u64 addr;		/* buffer                                       */
	__u64 len;		/* bytes                                        */
	__u32 msg_flags;	/* MSG_WAITALL (recv), MSG_EOR, MSG_NOSIGNAL (send),
				 * MSG_DONTWAIT (no effect)                     */
	__s32 region;		/* region fd, or EXS_REGION_NONE                */
	__u64 user_arg;		/* comes back in the completion                 */
	__u64 timeout;		/* send, recv, sendmsg, recvmsg, sendfile: as if this
				 * were the socket's EXS_SO_SEND_TIMEOUT,
				 * EXS_SO_RECV_TIMEOUT, in ns, with
				 * EXS_SQE_TIMEOUT_ONCE; 0: that is.
				 * Ordinary sockets have no other                 */
	__u64 reserved;
};
#define EXS_SQE_TIMEOUT_ONCE	(1ULL << 63)
#define EXS_POLL_MAX		1024	/* descriptors of one EXS_OP_POLL       */
#define EXS_REGION_NONE		(-2)	/* memory that is not registered        */

/* EXS_OP_SENDMSG, EXS_OP_RECVMSG: memory in pieces, for a send also pieces of
 * files. All of it is read once. */
#define EXS_SQE_MSG_SIZE_VER0	32
struct exs_sqe_msg {
	__u64 iov;		/* struct exs_sqe_iovec[count]                  */
	__u32 count;		/* 0 to EXS_IOV_MAX                             */
	__u32 flags;		/* EXS_SQE_MSG_SHUT_WR                          */
	__u64 reserved[2];
};
#define EXS_IOV_MAX		1024
/* With pieces of files, on an ordinary socket: shut it down for sending when all of
 * it was sent. */
#define EXS_SQE_MSG_SHUT_WR	1

struct exs_sqe_iovec {
	__u64 addr;		/* or the offset in the file                    */
	__u64 len;		/* a file: EXS_IOV_TO_EOF: to its end, which is
				 * also where a shorter one ends                */
	__s32 region;		/* region fd, or EXS_REGION_NONE; or the file:
				 * a regular file or a block device             */
	__u32 flags;		/* EXS_IOV_FILE                                 */
};
#define EXS_IOV_FILE		1
#define EXS_IOV_TO_EOF		(~0ULL)

/* ioctls on a queue. */
#define EXS_SUBMIT_SIZE_VER0	24
struct exs_ioc_submit {
	__u32 size;
	__u32 count;		/* in: 1 to EXS_SUBMIT_MAX; the call returns how
				 * many were started, or the first one's errno  */
	__u64 ops;		/* struct exs_sqe[count]                        */
	__u32 sqe_size;		/* of each, as @size                            */
	__u32 flags;
};

/*
 * 0: so many entries are there; ETIME: time is up, there may be fewer. When a
 * signal interrupts it, timeout_ns (>= 0) becomes what is left, so that the
 * call is restarted rightly (SA_RESTART) or fails with EINTR.
 */
#define EXS_WAIT_SIZE_VER0	16
struct exs_ioc_wait {
	__u32 size;
	__u32 count;		/* wait until so many entries are there: 1 to
				 * the capacity                                 */
	__s64 timeout_ns;	/* < 0: for ever, 0: only look                  */
};

/*
 * Take what a token stands for; accept: the next accept4(2) of this thread on
 * @fd returns the connection. May be repeated, from any thread, until that has
 * happened (then ENOENT). EMFILE: no descriptor is free, EAGAIN: too many are
 * claimed and not accepted, or this thread has claimed another one of the
 * listener; the token stays. ECONNABORTED: the listener was closed and the
 * connection with it; the token is used up.
 *
 * When accept4(2) failed: UNDO gives up the claim, the token stays; DROP closes
 * the connection, the token is used up.
 *
 * PLAIN: the listener is an ordinary socket, where everybody who accepts competes
 * for the connections. accept4(2) returns any of them; DROP says that it has, or
 * that nobody will call it. If there is none left AGAIN makes the token an
 * operation again, of the caller, for which the entry must have been consumed
 * (else EBUSY).
 */
#define EXS_CLAIM_SIZE_VER0	24
struct exs_ioc_claim {
	__u32 size;
	__s32 fd;		/* in: where the caller believes the listener is,
				 * out: where accept4(2) is to be called         */
	__u64 token;
	__u32 flags;		/* in: 0 or EXS_CLAIM_UNDO, _DROP, _AGAIN; out,
				 * unless it fails with EFAULT: EXS_CLAIM_CLOSE:
				 * close @fd afterwards, also if the claim failed;
				 * EXS_CLAIM_PLAIN: see above                     */
	__u32 pad;
};
#define EXS_CLAIM_CLOSE		1
#define EXS_CLAIM_UNDO		2
#define EXS_CLAIM_DROP		4
#define EXS_CLAIM_AGAIN		8
#define EXS_CLAIM_PLAIN		16

/* Cancel operations of this queue. */
#define EXS_CANCEL_SIZE_VER0	24
struct exs_ioc_cancel {
	__u32 size;
	__u32 flags;		/* EXS_CANCEL_*: those that fit all of them     */
	__s32 fd;		/* any descriptor of the socket                  */
	__u32 count;		/* out: operations that were asked to end       */
	__u64 handle;
};
#define EXS_CANCEL_FD		1	/* of this socket                       */
#define EXS_CANCEL_HANDLE	2	/* with this handle                     */
#define EXS_CANCEL_CONNECT	4	/* the last connect, which leaves no event: for
				 * when connect(2) failed before the socket
				 * heard of it (EFAULT, a security module)      */
#define EXS_CANCEL_SHUTDOWN	8	/* the last shutdown likewise, for when
				 * shutdown(2) failed; but if the socket is shut
				 * down, or its connection has ended, the event
				 * comes, and count is 0                        */

/* Attributes: get and set */
#define EXS_ATTR_SIZE_VER0	16
struct exs_ioc_attr {
	__u32 size;
	__u32 attr;		/* EXS_ATTR_* */
	__s64 value;		/* get: out, set: in */
};
#define EXS_ATTR_DEPTH		1	/* get, set (at least what is reserved or
					 * unread, at most the capacity)        */
#define EXS_ATTR_EVENTS		2	/* get: events unread                   */
#define EXS_ATTR_EVENTFD	3	/* get: a new descriptor of its eventfd,
					 * ENODATA if it has none;
					 * set: one of the caller's, -1: none   */
#define EXS_ATTR_ID		4	/* get: struct exs_ring.id              */
#define EXS_ATTR_SUBMITTED	5	/* get: operations accepted, ever       */
#define EXS_ATTR_POSTED		6	/* get: of these, how many have ended with
					 * an entry, ever                       */
#define EXS_ATTR_EVENTFD_FIRST	7	/* set: as EVENTFD, but EEXIST if it has
					 * one: how the library makes it when it
					 * is first asked for                   */
#define EXS_ATTR_WAIT		9	/* get, set: EXS_QWAIT_*: what EXS_IOC_WAIT
					 * does until the entries are there     */
#define EXS_QWAIT_NOTIFY	0	/* sleep                                */
#define EXS_QWAIT_BUSY		1	/* process completions itself, and sleep
					 * only if there are none to come        */
#define EXS_QWAIT_ADAPTIVE	2	/* the first for a short time, then sleep */

/* The numbers do not tell a size, as that may grow. */
#define EXS_IOC_MAGIC		0xE8
#define EXS_IOC_SUBMIT		_IO(EXS_IOC_MAGIC, 1)	/* struct exs_ioc_submit */
#define EXS_IOC_WAIT		_IO(EXS_IOC_MAGIC, 2)	/* struct exs_ioc_wait   */
#define EXS_IOC_CLAIM		_IO(EXS_IOC_MAGIC, 3)	/* struct exs_ioc_claim  */
#define EXS_IOC_CANCEL		_IO(EXS_IOC_MAGIC, 4)	/* struct exs_ioc_cancel */
#define EXS_IOC_GETATTR		_IO(EXS_IOC_MAGIC, 5)	/* struct exs_ioc_attr   */
#define EXS_IOC_SETATTR		_IO(EXS_IOC_MAGIC, 6)	/* struct exs_ioc_attr   */

/* On a region: 0. What is no region says ENOTTY. */
#define EXS_IOC_REGION		_IO(EXS_IOC_MAGIC, 7)

#endif
