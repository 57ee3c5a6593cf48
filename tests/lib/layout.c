// SPDX-License-Identifier: MIT
/*
 * Version 1 of the interface to the kernel: sizes, offsets and numbers, the same for
 * 64 and 32 bits. The file is compiled for both, and never run. A structure may get
 * members at its end; nothing else here may change.
 */
#include <stddef.h>
#include <linux/exs.h>

#define SIZE(type, size)	_Static_assert(sizeof(struct type) >= (size), #type)
#define AT(type, member, offset) \
	_Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define IS(name, value)		_Static_assert((name) == (value), #name)

SIZE(exs_ioc_probe, 48);
AT(exs_ioc_probe, size, 0);
AT(exs_ioc_probe, magic, 4);
AT(exs_ioc_probe, abi, 8);
AT(exs_ioc_probe, family, 12);
AT(exs_ioc_probe, features, 16);
AT(exs_ioc_probe, ops, 24);
AT(exs_ioc_probe, plain_ops, 32);
AT(exs_ioc_probe, sqe_flags, 40);
AT(exs_ioc_probe, protocol, 44);

SIZE(exs_ioc_qcreate, 24);
AT(exs_ioc_qcreate, size, 0);
AT(exs_ioc_qcreate, depth, 4);
AT(exs_ioc_qcreate, flags, 8);
AT(exs_ioc_qcreate, capacity, 12);
AT(exs_ioc_qcreate, ring_size, 16);

SIZE(exs_ioc_mreg, 24);
AT(exs_ioc_mreg, size, 0);
AT(exs_ioc_mreg, flags, 4);
AT(exs_ioc_mreg, addr, 8);
AT(exs_ioc_mreg, len, 16);

SIZE(exs_ring_head, 8);
SIZE(exs_ring, 32);
AT(exs_ring, tail, 0);
AT(exs_ring, epoch, 8);
AT(exs_ring, id, 16);
AT(exs_ring, mask, 24);
AT(exs_ring, entry_size, 28);

SIZE(exs_cqe, 64);
AT(exs_cqe, handle, 0);
AT(exs_cqe, length, 8);
AT(exs_cqe, user_arg, 16);
AT(exs_cqe, user_tag, 24);
AT(exs_cqe, token, 28);
AT(exs_cqe, type, 32);
AT(exs_cqe, fd, 36);
AT(exs_cqe, error, 40);
AT(exs_cqe, flags, 44);
AT(exs_cqe, parts, 48);

SIZE(exs_sqe, 64);
AT(exs_sqe, opcode, 0);
AT(exs_sqe, fd, 4);
AT(exs_sqe, handle, 8);
AT(exs_sqe, addr, 16);
AT(exs_sqe, len, 24);
AT(exs_sqe, msg_flags, 32);
AT(exs_sqe, region, 36);
AT(exs_sqe, user_arg, 40);
AT(exs_sqe, timeout, 48);
AT(exs_sqe, flags, 56);
AT(exs_sqe, user_tag, 60);

SIZE(exs_sqe_msg, 16);
AT(exs_sqe_msg, iov, 0);
AT(exs_sqe_msg, count, 8);
AT(exs_sqe_msg, flags, 12);

IS(sizeof(struct exs_sqe_iovec), 24);
AT(exs_sqe_iovec, addr, 0);
AT(exs_sqe_iovec, len, 8);
AT(exs_sqe_iovec, region, 16);
AT(exs_sqe_iovec, flags, 20);

IS(sizeof(struct exs_opt_timeout), 16);
AT(exs_opt_timeout, ns, 0);
AT(exs_opt_timeout, flags, 8);

SIZE(exs_ioc_submit, 24);
AT(exs_ioc_submit, size, 0);
AT(exs_ioc_submit, count, 4);
AT(exs_ioc_submit, ops, 8);
AT(exs_ioc_submit, sqe_size, 16);
AT(exs_ioc_submit, flags, 20);

SIZE(exs_ioc_wait, 24);
AT(exs_ioc_wait, size, 0);
AT(exs_ioc_wait, count, 4);
AT(exs_ioc_wait, timeout_ns, 8);
AT(exs_ioc_wait, epoch, 16);

SIZE(exs_ioc_claim, 16);
AT(exs_ioc_claim, size, 0);
AT(exs_ioc_claim, fd, 4);
AT(exs_ioc_claim, token, 8);
AT(exs_ioc_claim, flags, 12);

SIZE(exs_ioc_cancel, 24);
AT(exs_ioc_cancel, size, 0);
AT(exs_ioc_cancel, flags, 4);
AT(exs_ioc_cancel, fd, 8);
AT(exs_ioc_cancel, count, 12);
AT(exs_ioc_cancel, handle, 16);

SIZE(exs_ioc_attr, 16);
AT(exs_ioc_attr, size, 0);
AT(exs_ioc_attr, attr, 4);
AT(exs_ioc_attr, value, 8);

/* The size in a number is the header's, and grows with it. */
#define NUMBER(cmd, dir, nr)	IS((cmd) & ~((unsigned int)_IOC_SIZEMASK << _IOC_SIZESHIFT), \
				   _IOC(dir, 0xE8u, nr, 0))
NUMBER(EXS_IOC_SUBMIT, _IOC_WRITE, 1);
NUMBER(EXS_IOC_WAIT, _IOC_READ | _IOC_WRITE, 2);
NUMBER(EXS_IOC_CLAIM, _IOC_READ | _IOC_WRITE, 3);
NUMBER(EXS_IOC_CANCEL, _IOC_READ | _IOC_WRITE, 4);
NUMBER(EXS_IOC_GETATTR, _IOC_READ | _IOC_WRITE, 5);
NUMBER(EXS_IOC_SETATTR, _IOC_WRITE, 6);
NUMBER(EXS_IOC_REGION, _IOC_NONE, 7);
NUMBER(EXS_IOC_PROBE, _IOC_READ | _IOC_WRITE, 8);
NUMBER(EXS_IOC_QCREATE, _IOC_READ | _IOC_WRITE, 9);
NUMBER(EXS_IOC_MREG, _IOC_WRITE, 10);

IS(EXS_ABI_VERSION, 1);
IS(EXS_PROBE_MAGIC, 0x31535845);
IS(EXS_FEATURE_DEVICE, 1);
IS(EXS_FEATURE_AIO_READ, 2);
IS(EXS_PROBE_SIZE_VER0, 48);
IS(EXS_QCREATE_SIZE_VER0, 24);
IS(EXS_MREG_SIZE_VER0, 24);
IS(EXS_SQE_SIZE_VER0, 64);
IS(EXS_SQE_MSG_SIZE_VER0, 16);
IS(EXS_SUBMIT_SIZE_VER0, 24);
IS(EXS_WAIT_SIZE_VER0, 16);
IS(EXS_CLAIM_SIZE_VER0, 16);
IS(EXS_CANCEL_SIZE_VER0, 24);
IS(EXS_ATTR_SIZE_VER0, 16);

IS(EXS_OP_CONNECT, 1);
IS(EXS_OP_ACCEPT, 2);
IS(EXS_OP_SEND, 3);
IS(EXS_OP_RECV, 4);
IS(EXS_OP_CLOSE, 5);
IS(EXS_OP_SHUTDOWN, 6);
IS(EXS_OP_SENDMSG, 7);
IS(EXS_OP_RECVMSG, 8);
IS(EXS_OP_SENDFILE, 9);
IS(EXS_OP_POLL, 10);
IS(EXS_CQE_SENDTIMEOUT, 11);
IS(EXS_CQE_RECVTIMEOUT, 12);
IS(EXS_SQE_TIMEOUT_ONCE, 1);
IS(EXS_SQE_TIMEOUT_END, 2);
IS(EXS_SQE_EXS_ONLY, 4);
IS(EXS_SQE_MSG_SHUT_WR, 1);
IS(EXS_REGION_NONE, -2);
IS(EXS_IOV_FILE, 1);
IS(EXS_IOV_TO_EOF, ~0ULL);
IS(EXS_QF_CLOEXEC, 1);
IS(EXS_MREG_READ, 1);
IS(EXS_MREG_WRITE, 2);
IS(EXS_MREG_CLOEXEC, 4);
IS(EXS_MMAP_HEAD, 0);
IS(EXS_MMAP_RING, 0x100000);
IS(EXS_CLAIM_CLOSE, 1);
IS(EXS_CLAIM_UNDO, 2);
IS(EXS_CLAIM_DROP, 4);
IS(EXS_CLAIM_AGAIN, 8);
IS(EXS_CLAIM_PLAIN, 16);
IS(EXS_CLAIM_BACK, 32);
IS(EXS_CANCEL_FD, 1);
IS(EXS_CANCEL_HANDLE, 2);
IS(EXS_CANCEL_CONNECT, 4);
IS(EXS_CANCEL_SHUTDOWN, 8);
IS(EXS_ATTR_DEPTH, 1);
IS(EXS_ATTR_EVENTS, 2);
IS(EXS_ATTR_EVENTFD, 3);
IS(EXS_ATTR_ID, 4);
IS(EXS_ATTR_SUBMITTED, 5);
IS(EXS_ATTR_POSTED, 6);
IS(EXS_ATTR_EVENTFD_FIRST, 7);
IS(EXS_ATTR_WAIT, 8);
IS(EXS_QWAIT_NOTIFY, 0);
IS(EXS_QWAIT_BUSY, 1);
IS(EXS_QWAIT_ADAPTIVE, 2);
IS(SOL_EXS, 0x4558);
IS(EXS_SO_EAGER_MAX, 1);
IS(EXS_SO_RING, 2);
IS(EXS_SO_ADVERTS, 3);
IS(EXS_SO_CPU, 4);
IS(EXS_SO_INLINE_MAX, 5);
IS(EXS_SO_BUSY_POLL, 6);
IS(EXS_SO_RECV_ORDERED, 16);
IS(EXS_SO_SEND_TIMEOUT, 17);
IS(EXS_SO_RECV_TIMEOUT, 18);
IS(EXS_TIMEOUT_ONCE, 1);
IS(EXS_TIMEOUT_MAX, 1ULL << 62);
