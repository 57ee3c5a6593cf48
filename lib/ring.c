// SPDX-License-Identifier: MIT
#include <string.h>

#include "ring.h"

static uint64_t load(const void *p, int order)
{
	return __atomic_load_n((const uint64_t *)p, order);
}

/* The number of entries from head on. Another thread may have moved the head meanwhile. */
static long ring_avail(const struct exs_ring_view *v, uint64_t *head)
{
	for (;;) {
		uint64_t h = load(&v->head->head, __ATOMIC_ACQUIRE);
		uint64_t n = load(&v->ring->tail, __ATOMIC_ACQUIRE) - h;

		*head = h;
		if (n <= (uint64_t)v->mask + 1)
			return n;
		if (load(&v->head->head, __ATOMIC_ACQUIRE) == h)
			return -1;
	}
}

/* The kernel may overwrite the entry meanwhile, so read word by word. */
static void read_entry(const struct exs_ring_view *v, uint64_t pos,
		       struct exs_cqe *cqe)
{
	const uint64_t *from = (const uint64_t *)
		(v->entries + (pos & v->mask) * v->entry_size);
	uint64_t words[sizeof(*cqe) / 8];
	size_t i;

	for (i = 0; i < sizeof(words) / 8; i++)
		words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
	memcpy(cqe, words, sizeof(*cqe));
}

static void fill_accept(exs_event_t *ev, const struct exs_cqe *cqe)
{
	ev->exs_evt_union.exs_evt_accept.exs_evt_newfd = -1;
	ev->exs_evt_union.exs_evt_accept.exs_evt_addr =
		exs_arg_addr(cqe);
	if (!cqe->token)
		return;
	exs_event_set_token(ev, cqe->token);
	exs_event_set_arg(ev, cqe->user_arg);
}

static void fill_msg(exs_event_t *ev, const struct exs_cqe *cqe)
{
	ev->exs_evt_union.exs_evt_xfermsg.exs_evt_length = cqe->length;
	ev->exs_evt_union.exs_evt_xfermsg.exs_evt_msg = exs_arg_addr(cqe);
}

/* After an error the kernel reports only bytes that were certainly sent. */
static void fill_file(exs_event_t *ev, const struct exs_cqe *cqe)
{
	exs_evt_xferfile_t *x = &ev->exs_evt_union.exs_evt_xferfile;

	x->exs_evt_header = cqe->parts[0];
	x->exs_evt_file = cqe->parts[1];
	x->exs_evt_length = x->exs_evt_header + x->exs_evt_file;
	x->exs_evt_xfile = exs_arg_addr(cqe);
	if (cqe->error)
		return;
	x->exs_evt_trailer = cqe->length - x->exs_evt_length;
	x->exs_evt_length = cqe->length;
}

static bool is_msg(uint32_t type)
{
	return type == EXS_OP_SENDMSG || type == EXS_OP_RECVMSG;
}

static void fill_poll(exs_event_t *ev, const struct exs_cqe *cqe)
{
	exs_evt_poll_t *p = &ev->exs_evt_union.exs_evt_poll;

	ev->exs_evt_flags = 0;
	p->exs_evt_fds = exs_arg_addr(cqe);
	p->exs_evt_nfds = cqe->flags;
	p->exs_evt_ready = cqe->length;
}

static void fill_event(exs_event_t *ev, const struct exs_cqe *cqe)
{
	memset(ev, 0, sizeof(*ev));
	ev->exs_evt_type = cqe->type;
	ev->exs_evt_socket = cqe->fd;
	ev->exs_evt_errno = cqe->error;
	ev->exs_evt_flags = cqe->flags;
	ev->exs_evt_ahandle = cqe->handle;
	if (cqe->type == EXS_OP_ACCEPT)
		fill_accept(ev, cqe);
	else if (is_msg(cqe->type))
		fill_msg(ev, cqe);
	else if (cqe->type == EXS_OP_SENDFILE)
		fill_file(ev, cqe);
	else if (cqe->type == EXS_OP_POLL)
		fill_poll(ev, cqe);
	else
		ev->exs_evt_union.exs_evt_xfer.exs_evt_length = cqe->length;
}

/* Up to the first token above @may; *@tokens: the number of tokens among all @n. */
static unsigned long copy_entries(const struct exs_ring_view *v, uint64_t head,
				  unsigned long n, exs_event_t *vec,
				  unsigned long may, unsigned long *tokens)
{
	struct exs_cqe cqe;
	unsigned long i, taken = 0;

	*tokens = 0;
	for (i = 0; i < n; i++) {
		read_entry(v, head + i, &cqe);
		*tokens += cqe.type == EXS_OP_ACCEPT && cqe.token;
		if (*tokens > may)
			continue;
		fill_event(&vec[i], &cqe);
		taken++;
	}
	return taken;
}

/*
 * Write to the program's structures, now that the events certainly belong to us.
 */
static void deliver(const exs_event_t *vec, unsigned long n)
{
	exs_msghdr_t *msg;

	for (; n--; vec++) {
		if (vec->exs_evt_type != EXS_EVT_RECVMSG || vec->exs_evt_errno)
			continue;
		msg = vec->exs_evt_union.exs_evt_xfermsg.exs_evt_msg;
		if (!msg)
			continue;
		msg->msg_namelen = 0;
		msg->msg_flags = vec->exs_evt_flags;
	}
}

long exs_ring_take(const struct exs_ring_view *v, exs_event_t *vec,
		   unsigned long min, unsigned long max, unsigned long may,
		   unsigned long *tokens)
{
	for (;;) {
		uint64_t head;
		long avail = ring_avail(v, &head);
		unsigned long n;

		*tokens = 0;
		if (avail < 0)
			return -1;
		if (!max || (unsigned long)avail < min)
			return 0;
		n = (unsigned long)avail < max ? (unsigned long)avail : max;
		n = copy_entries(v, head, n, vec, may, tokens);
		if (n < min)
			n = 0;
		/* Even with n == 0: the head shows whether @tokens is valid. */
		if (__atomic_compare_exchange_n((uint64_t *)&v->head->head,
						&head, head + n,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			deliver(vec, n);
			return n;
		}
	}
}

long exs_ring_count(const struct exs_ring_view *v)
{
	uint64_t head;

	return ring_avail(v, &head);
}
