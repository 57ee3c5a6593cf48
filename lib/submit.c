// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "lib.h"

/* Submitted without allocating memory. */
#define FEW	16

/* Return: the number of operations started; -1 and errno: none. */
static int submit(exs_qhandle_t q, struct exs_sqe *sqes, int count)
{
	struct exs_ioc_submit s = {
		.size = sizeof(s),
		.count = count,
		.ops = (uintptr_t)sqes,
		.sqe_size = sizeof(*sqes),
	};
	int i, n;

	for (i = 0; i < count; i++)
		exs_timeout_fill(&sqes[i]);
	n = ioctl(q, EXS_IOC_SUBMIT, &s);
	if (n < 0 && errno == ENOTTY)	/* another descriptor: a region, a file */
		errno = EINVAL;
	return n;
}

int exs_submit_op(exs_qhandle_t q, struct exs_sqe *sqe)
{
	return submit(q, sqe, 1) == 1 ? 0 : -1;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static int transfer_sqe(const exs_op_t *op, struct exs_sqe *sqe)
{
	if (op->exs_op_region == EXS_MHANDLE_INVALID)
		return fail(EINVAL);
	sqe->addr = (uintptr_t)op->exs_op_buf;
	sqe->len = op->exs_op_len;
	sqe->msg_flags = op->exs_op_flags;
	sqe->region = op->exs_op_region;
	return 0;
}

static int accept_sqe(const exs_op_t *op, struct exs_sqe *sqe)
{
	if (op->exs_op_len || op->exs_op_region)
		return fail(EINVAL);
	return exs_accept_arg(op->exs_op_buf, op->exs_op_flags, sqe);
}

static int close_sqe(const exs_op_t *op)
{
	if (op->exs_op_buf || op->exs_op_len || op->exs_op_flags ||
	    op->exs_op_region)
		return fail(EINVAL);
	return 0;
}

static int make_sqe(const exs_op_t *op, struct exs_sqe *sqe)
{
	*sqe = (struct exs_sqe){
		.opcode = op->exs_op_type,
		.fd = op->exs_op_fd,
		.handle = op->exs_op_handle,
		.region = EXS_REGION_NONE,
	};
	if (op->exs_op_reserved[0] || op->exs_op_reserved[1])
		return fail(EINVAL);
	switch (op->exs_op_type) {
	case EXS_EVT_SEND:
	case EXS_EVT_RECV:
		return transfer_sqe(op, sqe);
	case EXS_EVT_ACCEPT:
		return accept_sqe(op, sqe);
	case EXS_EVT_CLOSE:
		return close_sqe(op);
	default:
		/* Also operations that need a call or a structure of their own. */
		return fail(EINVAL);
	}
}

/* Convert operations up to the first invalid one. */
static int submit_piece(exs_qhandle_t q, const exs_op_t *ops, int count,
			struct exs_sqe *sqes)
{
	int n = 0;

	while (n < count && !make_sqe(&ops[n], &sqes[n]))
		n++;
	return n ? submit(q, sqes, n) : -1;
}

/* The first operation that was not started is tried again, for its error. */
static int submit_all(exs_qhandle_t q, const exs_op_t *ops, int count,
		      struct exs_sqe *sqes, int room)
{
	int n, done = 0;

	while (done < count) {
		n = count - done < room ? count - done : room;
		n = submit_piece(q, ops + done, n, sqes);
		if (n < 0)
			break;
		done += n;
	}
	return done || !count ? done : -1;
}

int exs_submit(exs_qhandle_t queue, const exs_op_t *ops, int count)
{
	struct exs_sqe few[FEW], *many;
	int room = count < EXS_SUBMIT_MAX ? count : EXS_SUBMIT_MAX;
	int done, err;

	if (count < 0)
		return fail(EINVAL);
	if (count && exs_check_addr(ops, count * sizeof(*ops)))
		return -1;
	many = count > FEW ? malloc(room * sizeof(*many)) : NULL;
	if (!many)
		return submit_all(queue, ops, count, few, FEW);
	done = submit_all(queue, ops, count, many, room);
	err = errno;
	free(many);
	errno = err;
	return done;
}
