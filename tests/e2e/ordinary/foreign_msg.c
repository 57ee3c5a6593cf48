// SPDX-License-Identifier: GPL-2.0
/* exs_sendmsg() and exs_recvmsg() on ordinary sockets. */
#include "lib/kinds.h"

#include <string.h>

enum { PIECES = 64 };

/* A message of pieces of @each bytes (and some of none), every other one registered. */
struct pieces {
	char *mem;
	exs_iovec_t iov[PIECES + 2];
	exs_msghdr_t msg;
};

static void cut(struct pieces *p, size_t n, size_t each, int access)
{
	exs_mhandle_t m;
	size_t i;

	check(n <= PIECES, "%zu pieces", n);
	p->mem = pages(n * each);
	m = region_new(p->mem, n * each, access);
	p->iov[0] = (exs_iovec_t){ NULL, 0, NO_REGION };
	p->iov[n + 1] = (exs_iovec_t){ p->mem, 0, m };
	for (i = 0; i < n; i++)
		p->iov[i + 1] = (exs_iovec_t){ p->mem + i * each, each, i % 2 ? m : NO_REGION };
	p->msg = (exs_msghdr_t){ .msg_iovtype = EXS_IOVEC, .msg_iov = p->iov, .msg_iovlen = n + 2 };
}

static void is_msg(exs_qhandle_t q, int type, const exs_msghdr_t *msg, size_t len, int flags)
{
	exs_event_t ev = event_next(q);

	event_check(&ev, type, 7, 0, len);
	check(ev.exs_evt_union.exs_evt_xfermsg.exs_evt_msg == msg, "not the structure of the call");
	must_be(ev.exs_evt_flags & MSG_TRUNC, flags);
}

/* There at once, and waited for. */
static void in_pieces(const struct kind *k)
{
	enum { EACH = 100, LEN = 10 * EACH };
	exs_qhandle_t sq = queue_new(1), rq = queue_new(1);
	struct pieces out, in;
	struct pair p;
	int i;

	kind_pair(k, &p);
	cut(&out, 10, EACH, EXS_ACCESS_READ);
	cut(&in, 5, 2 * EACH, EXS_ACCESS_WRITE);
	for (i = 0; i < 4; i++) {
		data_fill(i, 0, out.mem, LEN);
		if (i % 2)
			must(exs_recvmsg(p.s, &in.msg, MSG_WAITALL, rq, 7));
		must(exs_sendmsg(p.c, &out.msg, 0, sq, 7));
		is_msg(sq, EXS_EVT_SENDMSG, &out.msg, LEN, 0);
		if (!(i % 2))
			must(exs_recvmsg(p.s, &in.msg, MSG_WAITALL, rq, 7));
		is_msg(rq, EXS_EVT_RECVMSG, &in.msg, LEN, 0);
		data_check(i, 0, in.mem, LEN);
	}
}
FOR_KIND(in_pieces, tcp)
FOR_KIND(in_pieces, tcp6)
FOR_KIND(in_pieces, udp)
FOR_KIND(in_pieces, un_stream)
FOR_KIND(in_pieces, un_seq)
FOR_KIND(in_pieces, un_dgram)

/* More than the sockets hold: both go on in the middle of a piece. */
static void much(const struct kind *k)
{
	enum { EACH = 100003, LEN = PIECES * EACH };
	exs_qhandle_t sq = queue_new(1), rq = queue_new(1);
	struct pieces out, in;
	struct pair p;

	kind_pair(k, &p);
	cut(&out, PIECES, EACH, EXS_ACCESS_READ);
	cut(&in, PIECES, EACH, EXS_ACCESS_WRITE);
	data_fill(1, 0, out.mem, LEN);
	must(exs_sendmsg(p.c, &out.msg, 0, sq, 7));
	wait_delta("foreign_retries", 2);
	no_event(sq);
	must(exs_recvmsg(p.s, &in.msg, MSG_WAITALL, rq, 7));
	is_msg(rq, EXS_EVT_RECVMSG, &in.msg, LEN, 0);
	is_msg(sq, EXS_EVT_SENDMSG, &out.msg, LEN, 0);
	data_check(1, 0, in.mem, LEN);
}
FOR_KIND(much, tcp)
FOR_KIND(much, un_stream)

static void truncated(const struct kind *k)
{
	exs_qhandle_t sq = queue_new(1), rq = queue_new(1);
	struct pieces out, in;
	struct pair p;

	kind_pair(k, &p);
	cut(&out, 10, 100, EXS_ACCESS_READ);
	cut(&in, 3, 70, EXS_ACCESS_WRITE);
	data_fill(1, 0, out.mem, 1000);
	in.msg.msg_namelen = 1;
	must(exs_recvmsg(p.s, &in.msg, 0, rq, 7));
	must(exs_sendmsg(p.c, &out.msg, 0, sq, 7));
	is_msg(sq, EXS_EVT_SENDMSG, &out.msg, 1000, 0);
	is_msg(rq, EXS_EVT_RECVMSG, &in.msg, 210, MSG_TRUNC);
	must_be(in.msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	must_be(in.msg.msg_namelen, 0);
	data_check(1, 0, in.mem, 210);
}
FOR_KIND(truncated, udp)
FOR_KIND(truncated, un_seq)
FOR_KIND(truncated, un_dgram)

/* It would go to another receiver than the program names. */
static void destination(void)
{
	exs_qhandle_t q = queue_new(1);
	struct pieces out;
	union address to;
	struct pair p;

	cut(&out, 1, 10, EXS_ACCESS_READ);
	kind_pair(&kind_udp, &p);
	to = name_of(p.c);
	out.msg.msg_name = &to;
	out.msg.msg_namelen = address_len(&to);
	must_fail(exs_sendmsg(p.c, &out.msg, 0, q, 7), EOPNOTSUPP);
	no_event(q);
	must_be(exs_sendmsg(p.s, &out.msg, 0, EXS_QHANDLE_INVALID, 7), 10);
	kind_pair(&kind_tcp, &p);
	must(exs_sendmsg(p.c, &out.msg, 0, q, 7));
	is_msg(q, EXS_EVT_SENDMSG, &out.msg, 10, 0);
}

static const struct e2e_case cases[] = {
	ROW(in_pieces, tcp),
	ROW(in_pieces, tcp6),
	ROW(in_pieces, udp),
	ROW(in_pieces, un_stream),
	ROW(in_pieces, un_seq),
	ROW(in_pieces, un_dgram),
	ROW(much, tcp),
	ROW(much, un_stream),
	ROW(truncated, udp),
	ROW(truncated, un_seq),
	ROW(truncated, un_dgram),
	ROW1(destination),
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
