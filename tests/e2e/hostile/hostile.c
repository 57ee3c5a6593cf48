// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that break the rules: bad hellos, hand-shakes that stop, messages that
 * lie, keys that are dead. Only the connection that the peer spoils may suffer:
 * a neighbour is connected all the time and must go on.
 */
#include "lib/async.h"
#include "raw/raw.h"

#include <endian.h>
#include <libaio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
	struct pair neighbour;
	int lfd;		/* the victim's listener */
	union address at;
	struct raw r;		/* the hostile peer */
	int fd;			/* the victim's end of its connection */
};

static void neighbour_lives(struct scene *s)
{
	send_all(s->neighbour.c, 1, 0, 5000);
	recv_all(s->neighbour.s, 1, 0, 5000);
	send_all(s->neighbour.s, 2, 0, 50);
	recv_all(s->neighbour.c, 2, 0, 50);
}

static void scene_open(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->lfd = listener(8);
	s->at = name_of(s->lfd);
	pair_from(&s->neighbour, s->lfd);
	neighbour_lives(s);
}

/*
 * The peer is connected, has greeted, and was accepted. Unless it can ask for credits it
 * has all of them now.
 */
static void attach_with(struct scene *s, const void *hello, int len)
{
	struct message greeting = { .type = CREDIT }, more;

	must_be(raw_connect(&s->r, &s->at, hello, len), RDMA_CM_EVENT_ESTABLISHED);
	raw_say(&s->r, &greeting);
	wait_io(s->lfd, POLLIN);
	s->fd = must(accept(s->lfd, NULL, NULL));
	if (((const struct hello *)hello)->features & htole32(H_ASK))
		return;
	raw_hear(&s->r, CREDIT, &more);
	must_be(more.a, CREDITS);
}

static void attach(struct scene *s)
{
	struct hello hello = good_hello();

	attach_with(s, &hello, sizeof(hello));
}

/* The victim's connection is over, with an error that says so. */
static void ended(struct scene *s, const char *what)
{
	int got = poll_wait(s->fd, POLLERR | POLLHUP), err;

	check(got & POLLHUP, "%s: the connection goes on (poll %#x)", what, got);
	err = so_error(s->fd);
	check(err == EPROTO || err == ECONNRESET || err == EIO, "%s: SO_ERROR is %s", what,
	      err ? errno_name(err) : "0");
}

static void detach(struct scene *s)
{
	close(s->fd);
	raw_close(&s->r);
}

/* -- hello */

/* The peer is refused with the reason, and counted. */
static void bad_hello(struct scene *s, const struct hello *hello, int len, int reason,
		      const char *what)
{
	static const char * const counters[] = {
		[R_VERSION] = "reject_version", [R_MALFORMED] = "reject_hello", [R_SOCKTYPE] = "reject_socktype",
	};
	long before = delta(counters[reason]);
	int event = raw_connect(&s->r, &s->at, hello, len);
	struct reject why = good_reject(reason);

	check(event == RDMA_CM_EVENT_REJECTED, "%s: %s", what, rdma_event_str(event));
	check(delta(counters[reason]) == before + 1, "%s: %s did not rise", what, counters[reason]);
	check(!memcmp(&s->r.why, &why, sizeof(why)), "%s: told reason %d", what, s->r.why.reason);
	raw_close(&s->r);
}

#define BAD_HELLO(s, reason, change)					\
	do {								\
		struct hello h = good_hello();				\
									\
		change;							\
		bad_hello(s, &h, sizeof(h), reason, #change);		\
	} while (0)

static void bad_hellos(void)
{
	struct hello hello = good_hello();
	struct scene s;

	scene_open(&s);
	bad_hello(&s, NULL, 0, R_MALFORMED, "no hello");
	BAD_HELLO(&s, R_MALFORMED, h.magic ^= 1);
	BAD_HELLO(&s, R_MALFORMED, h.magic = 0);
	BAD_HELLO(&s, R_VERSION, h.version = htole16(0));
	BAD_HELLO(&s, R_VERSION, h.version = htole16(2));
	BAD_HELLO(&s, R_MALFORMED, h.type = 0);
	BAD_HELLO(&s, R_MALFORMED, h.type = 3);
	BAD_HELLO(&s, R_SOCKTYPE, h.type = 3 - h.type; h.eager = htole32(32768));
	BAD_HELLO(&s, R_MALFORMED, h.recv_len = 0);
	BAD_HELLO(&s, R_MALFORMED, h.recv_len = htole16(MESSAGE_LEN - 1));
	BAD_HELLO(&s, R_MALFORMED, h.credits = 0);
	BAD_HELLO(&s, R_MALFORMED, h.credits = htole16(3));
	BAD_HELLO(&s, R_MALFORMED, h.credits = htole16(1025));
	BAD_HELLO(&s, R_MALFORMED, h.adverts = 0);
	BAD_HELLO(&s, R_MALFORMED, h.segs = htole16(31));
	BAD_HELLO(&s, R_MALFORMED, h.eager = htole32(0x80000000));
	/* The CM fills up with zeros. */
	bad_hello(&s, &hello, 12, R_MALFORMED, "part of a hello");
	must_be(delta("live_conns"), 2);
	neighbour_lives(&s);
	attach(&s);
}

/* Features and fields of a later version are ignored. */
static void later_hello(void)
{
	struct { struct hello h; char more[24]; } later = { .h = good_hello() };
	struct message m;
	struct scene s;

	later.h.pad = 0xff;
	later.h.features = htole32(0x80000000);
	later.h.recv_len = htole16(4096);
	memset(later.h.rest, 0xff, sizeof(later.h.rest));
	memset(later.more, 0xff, sizeof(later.more));
	scene_open(&s);
	attach_with(&s, &later, sizeof(later));
	must(send(s.fd, "x", 1, 0));
	raw_hear(&s.r, e2e.seq ? EAGER : REQUEST, &m);
	detach(&s);
	neighbour_lives(&s);
}

/* A server whose answer is no hello: connect(2) fails, the program is told. */
static void refused_answer(const void *hello, int len, const char *what)
{
	struct raw l, r;
	union address at;
	int fd = new_socket(), err;

	raw_listen(&l, &at);
	set_nonblock(fd, true);
	must_fail(connect(fd, &at.sa, address_len(&at)), EINPROGRESS);
	raw_take_request(&l, &r);
	raw_accept(&r, hello, len);
	wait_io(fd, POLLERR | POLLHUP);
	err = so_error(fd);
	check(err == EPROTO || err == ECONNREFUSED, "%s: SO_ERROR is %s", what, errno_name(err));
	close(fd);
	raw_close(&r);
	raw_close(&l);
}

static void bad_answers(void)
{
	struct hello h = good_hello();

	refused_answer(NULL, 0, "no hello");
	refused_answer(&h, 12, "part of a hello");
	h.magic = 0;
	refused_answer(&h, sizeof(h), "no magic");
	h = good_hello();
	h.type = 3 - h.type;
	refused_answer(&h, sizeof(h), "another socket type");
	h = good_hello();
	h.credits = 0;
	refused_answer(&h, sizeof(h), "no credits");
	check(delta("reject_hello") >= 4, "reject_hello rose by %ld", delta("reject_hello"));
}

static void bad_answer_event(void)
{
	struct hello h = good_hello();
	exs_qhandle_t q = queue_new(1);
	int fd = new_socket();
	union address at;
	struct raw l, r;

	h.magic = 0;
	raw_listen(&l, &at);
	must(exs_connect(fd, &at.sa, address_len(&at), 0, q, 1));
	raw_take_request(&l, &r);
	raw_accept(&r, &h, sizeof(h));
	event_is(q, EXS_EVT_CONNECT, 1, EPROTO, 0);
	raw_close(&r);
	raw_close(&l);
}

static void say_eager(struct scene *s, uint32_t position, uint32_t len, uint32_t space)
{
	struct message m = { .type = EAGER, .a = position, .b = len, .c = space };
	unsigned char buf[MESSAGE_LEN] = { 0 };

	raw_send(&s->r, buf, encode(&m, buf) + len);
}

/* A socket whose EXS_SO_RING was @told when it sent its hello, and is @then by the answer; the listener's end in @s. */
static int ring_changes(struct scene *s, struct raw *l, int told, int then)
{
	struct hello hello = good_hello();
	struct message greeting;
	int fd = new_socket();
	union address at;

	raw_listen(l, &at);
	set_int(fd, SOL_EXS, EXS_SO_RING, told);
	set_nonblock(fd, true);
	must_fail(connect(fd, &at.sa, address_len(&at)), EINPROGRESS);
	raw_take_request(l, &s->r);
	set_int(fd, SOL_EXS, EXS_SO_RING, then);
	raw_accept(&s->r, &hello, sizeof(hello));
	/* The accepting side may not send before; POLLOUT comes a little earlier. */
	raw_hear(&s->r, CREDIT, &greeting);
	wait_io(fd, POLLOUT);
	set_nonblock(fd, false);
	return fd;
}

static void eager_messages(struct scene *s, int fd, int count)
{
	char data[1000];
	int i;

	for (i = 0; i < count; i++)
		say_eager(s, i, sizeof(data), 0);
	for (i = 0; i < count; i++)
		must_be(recv(fd, data, sizeof(data), 0), sizeof(data));
}

/* The hello that it sent still holds: room for more than 4096 bytes. */
static void ring_lowered_meanwhile(void)
{
	struct scene s;
	struct raw l;
	int fd = ring_changes(&s, &l, 65536, 4096);

	eager_messages(&s, fd, 5);
	must_be(delta("resets_protocol"), 0);
	close(fd);
	raw_close(&s.r);
	raw_close(&l);
}

/* As the peer knows of 4096 bytes, three of these messages are reason to return space. */
static void ring_raised_meanwhile(void)
{
	struct message space;
	struct scene s;
	struct raw l;
	int fd = ring_changes(&s, &l, 4096, 65536);

	eager_messages(&s, fd, 3);
	raw_hear(&s.r, SPACE, &space);
	close(fd);
	raw_close(&s.r);
	raw_close(&l);
}

/* -- hand-shakes that stop half way */

/* Long enough for the part of the hand-shake that has to come before. */
static int short_handshake(void)
{
	return limit_ms() / 15;
}

static void never_answers(void)
{
	int fd = new_socket();
	union address at;
	struct raw l;

	write_sysctl("connect_timeout", 300);
	raw_listen(&l, &at);
	must_fail(connect(fd, &at.sa, address_len(&at)), ETIMEDOUT);
	must_be(delta("connect_timeout"), 1);
	raw_close(&l);
}

/* provokes: exs_connect event EPROTONOSUPPORT; exs_connect event EPROTOTYPE */
static void rejected(const void *why, int len, int err)
{
	exs_qhandle_t q = queue_new(1);
	int fd = new_socket();
	struct raw l, r;
	union address at;

	raw_listen(&l, &at);
	must(exs_connect(fd, &at.sa, address_len(&at), 0, q, 1));
	raw_take_request(&l, &r);
	raw_reject(&r, why, len);
	event_is(q, EXS_EVT_CONNECT, 1, err, 0);
	raw_close(&r);
	raw_close(&l);
	close(fd);
	exs_qdelete(q);
}

static void rejected_for(int reason, int err, const char *counter)
{
	struct reject why = good_reject(reason);

	rejected(&why, sizeof(why), err);
	check(!counter || delta(counter) == 1, "%s rose by %ld", counter, delta(counter));
}

static void rejects(void)
{
	struct hello hello = good_hello();
	struct reject why = good_reject(R_VERSION);

	rejected(NULL, 0, ECONNREFUSED);
	rejected("no", 2, ECONNREFUSED);
	rejected(&hello, sizeof(hello), ECONNREFUSED);
	rejected(&why, 8, ECONNREFUSED);
	rejected_for(R_VERSION, EPROTONOSUPPORT, "refused_version");
	rejected_for(R_MALFORMED, EPROTO, "refused_hello");
	rejected_for(R_SOCKTYPE, EPROTOTYPE, "refused_socktype");
	rejected_for(R_BACKLOG, ECONNREFUSED, "refused_backlog");
	rejected_for(R_LIMIT, ECONNREFUSED, "refused_limit");
	rejected_for(R_DISABLED, ECONNREFUSED, "refused_disabled");
	/* Of a later version. */
	rejected_for(255, ECONNREFUSED, NULL);
	must_be(delta("connect_refused"), 8);
}

/* It gets our answer and never confirms it: its place in the backlog comes back. */
static void never_confirms(void)
{
	struct scene s;
	long usual;
	int c;

	scene_open(&s);
	must(listen(s.lfd, 1));
	must_be(raw_half_connect(&s.r, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	c = new_socket();
	must_fail(connect(c, &s.at.sa, address_len(&s.at)), ECONNREFUSED);
	must_be(delta("reject_backlog"), 1);
	raw_close(&s.r);
	wait_until(delta("live_conns") == 2);
	/* Another one: an honest peer has as much time as ever. */
	usual = read_sysctl("handshake_timeout");
	write_sysctl("handshake_timeout", short_handshake());
	must_be(raw_half_connect(&s.r, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	write_sysctl("handshake_timeout", usual);
	wait_delta("handshake_timeout", 1);
	wait_until(!connect(c, &s.at.sa, address_len(&s.at)) || errno != ECONNREFUSED);
	must(accept(s.lfd, NULL, NULL));
	must_be(poll_now(s.lfd, POLLIN), 0);
	neighbour_lives(&s);
}

/* A host that can reach the port takes places in the backlog, and nothing from the user's caps. */
static void half_open_not_charged(void)
{
	struct scene s;
	struct raw other;
	struct pair p;
	int c;

	scene_open(&s);
	write_sysctl("max_user_conns", 4);
	write_sysctl("max_half_open", 2);
	must_be(raw_half_connect(&s.r, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	must_be(raw_half_connect(&other, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	c = new_socket();
	must_fail(connect(c, &s.at.sa, address_len(&s.at)), ECONNREFUSED);
	must_be(delta("reject_half_open"), 1);
	must_be(delta("reject_limit"), 0);
	/* The neighbour is two of four; two more, at another listener. */
	wait_until(counter("live_conns") == 4);
	pair_open(&p);
	must_fail(connect(c, &s.at.sa, address_len(&s.at)), ENOBUFS);
	raw_close(&s.r);
	raw_close(&other);
	neighbour_lives(&s);
}

/* One listener's hand-shakes leave none to the user's others. */
static void half_open_of_user(void)
{
	int other, c = new_socket();
	union address to;
	struct scene s;

	scene_open(&s);
	other = listener(4);
	to = name_of(other);
	write_sysctl("max_user_half_open", 1);
	must_be(raw_half_connect(&s.r, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	must_fail(connect(c, &to.sa, address_len(&to)), ECONNREFUSED);
	must_be(delta("limit_half_open"), 1);
	must_be(delta("reject_limit"), 1);
	must_be(delta("reject_half_open"), 0);
	raw_close(&s.r);
	wait_until(!connect(c, &to.sa, address_len(&to)));
	must(accept(other, NULL, NULL));
	neighbour_lives(&s);
}

/* It is connected and never sends: accept() does not return it. */
static void never_greets(void)
{
	struct hello hello = good_hello();
	struct scene s;

	scene_open(&s);
	write_sysctl("handshake_timeout", short_handshake());
	must_be(raw_connect(&s.r, &s.at, &hello, sizeof(hello)), RDMA_CM_EVENT_ESTABLISHED);
	must_be(poll_now(s.lfd, POLLIN), 0);
	wait_delta("handshake_timeout", 1);
	must_be(poll_now(s.lfd, POLLIN), 0);
	wait_until(delta("live_conns") == 2);
	neighbour_lives(&s);
}

static void leaves_while_pending(void)
{
	struct scene s;
	int i;

	scene_open(&s);
	/* Those that have left may have their places still. */
	must(listen(s.lfd, 16));
	for (i = 0; i < 10; i++) {
		must_be(raw_half_connect(&s.r, &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
		raw_close(&s.r);
	}
	neighbour_lives(&s);
	close(s.lfd);
	wait_until(delta("live_conns") == 2);
}

static void listener_leaves_while_pending(void)
{
	struct scene s;
	struct raw r[4];
	int i;

	scene_open(&s);
	for (i = 0; i < 4; i++)
		must_be(raw_half_connect(&r[i], &s.at), RDMA_CM_EVENT_CONNECT_RESPONSE);
	close(s.lfd);
	wait_until(delta("live_conns") == 2);
	neighbour_lives(&s);
}

/* -- messages that no honest peer sends */

static long resets(void)
{
	return delta("resets_protocol") + delta("resets_transport");
}

/* The error may be seen before it is counted. */
static void counted_once(long before, const char *what)
{
	wait_until(resets() > before);
	check(resets() == before + 1, "%s: counted %ld times", what, resets() - before);
}

static void bad_bytes(struct scene *s, const void *bytes, int len, const char *what)
{
	long before = resets();

	attach(s);
	raw_send(&s->r, bytes, len);
	ended(s, what);
	counted_once(before, what);
	detach(s);
}

static void bad_message(struct scene *s, const struct message *m, const char *what)
{
	unsigned char buf[MESSAGE_LEN];

	bad_bytes(s, buf, encode(m, buf), what);
}

#define BAD(s, ...) bad_message(s, &(struct message){ __VA_ARGS__ }, #__VA_ARGS__)

static void bad_lengths(void)
{
	unsigned char buf[4 * MESSAGE_LEN] = { CREDIT };
	struct scene s;

	scene_open(&s);
	bad_bytes(&s, buf, 0, "no bytes");
	bad_bytes(&s, buf, 1, "one byte");
	bad_bytes(&s, buf, 15, "15 bytes");
	bad_bytes(&s, buf, 17, "17 bytes");
	bad_bytes(&s, buf, 1024, "a credit of 1024 bytes");
	bad_bytes(&s, buf, 1025, "more than a buffer");
	bad_bytes(&s, buf, 4096, "four buffers");
	buf[0] = ADVERT;
	bad_bytes(&s, buf, 24, "half a segment");
	neighbour_lives(&s);
}

static void bad_headers(void)
{
	struct scene s;

	scene_open(&s);
	BAD(&s, .type = 0);
	BAD(&s, .type = 11);
	BAD(&s, .type = 255);
	BAD(&s, .type = CREDIT, .flags = 1);
	BAD(&s, .type = ADVERT, .flags = 0x80, .nsegs = 1, .segs = { { 1, 1, 1 } });
	BAD(&s, .type = CREDIT, .a = 1);
	BAD(&s, .type = CREDIT, .a = 3);
	BAD(&s, .type = CREDIT, .a = 4);			/* takes back unspent ones */
	BAD(&s, .type = CREDIT, .a = 1025);
	BAD(&s, .type = CREDIT, .c = 1);
	BAD(&s, .type = CREDIT, .credits = 1025);
	BAD(&s, .type = CREDIT, .credits = 500);
	BAD(&s, .type = CREDIT, .credits = CREDITS + 1);
	BAD(&s, .type = CREDIT, .nsegs = 1, .segs = { { 1, 1, 1 } });
	neighbour_lives(&s);
}

static void bad_order(void)
{
	struct scene s;

	scene_open(&s);
	BAD(&s, .type = ANSWER);
	BAD(&s, .type = ANSWER, .a = 2, .b = 7);
	BAD(&s, .type = SPACE, .c = 1 << 30);
	BAD(&s, .type = WRITTEN, .a = 100);
	BAD(&s, .type = WRITTEN, .a = 1u << 30 | 100);
	BAD(&s, .type = WRITTEN, .a = 3u << 30 | 100);
	BAD(&s, .type = RING, .b = 4096, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	BAD(&s, .type = ADVERT, .nsegs = 1, .segs = { { 4096, 1, 0 } });
	BAD(&s, .type = ADVERT, .nsegs = 1, .segs = { { 4096, 1, 0x80000000 } });
	BAD(&s, .type = ADVERT, .nsegs = 1, .segs = { { UINT64_MAX, 1, 4096 } });
	BAD(&s, .type = ADVERT, .nsegs = 33, .segs = { { 4096, 1, 4096 } });
	neighbour_lives(&s);
}

static void bad_order_stream(void)
{
	struct scene s;

	scene_open(&s);
	BAD(&s, .type = EAGER);
	/* A message may be empty, a piece of a stream not. */
	BAD(&s, .type = ADVERT, .nsegs = 0);
	BAD(&s, .type = REQUEST, .a = 1);
	BAD(&s, .type = REVOKE, .a = 1);
	BAD(&s, .type = REVOKE, .a = 2);
	BAD(&s, .type = ADVERT, .a = 1, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	BAD(&s, .type = ADVERT, .a = 2, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	BAD(&s, .type = ADVERT, .a = 4, .flags = F_FIRST, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	BAD(&s, .type = ADVERT, .flags = F_FIRST, .b = 5, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	BAD(&s, .type = ADVERT, .c = 4096, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	neighbour_lives(&s);
}

static void bad_order_seqpacket(void)
{
	struct scene s;

	scene_open(&s);
	BAD(&s, .type = EAGER, .a = 5);
	BAD(&s, .type = EAGER, .b = 10);
	BAD(&s, .type = REQUEST, .a = 9, .b = 100000);
	BAD(&s, .type = REQUEST, .a = 0, .b = UINT32_MAX);
	BAD(&s, .type = RING, .b = 4096, .nsegs = 1, .segs = { { 4096, 1, 4096 } });
	neighbour_lives(&s);
}

/* Twice what may come once; data after the end. */
static void twice(const struct message *first, const struct message *second, const char *what)
{
	struct scene s;

	scene_open(&s);
	attach(&s);
	raw_say(&s.r, first);
	raw_say(&s.r, second);
	ended(&s, what);
	wait_delta("resets_protocol", 1);
	must_be(delta("resets_protocol"), 1);
	neighbour_lives(&s);
}

static void two_ends(void)
{
	struct message fin = { .type = FIN };

	twice(&fin, &fin, "FIN twice");
}

/* A peer that asks again and again for an advert, without a byte to send, does no harm. */
static void many_requests(void)
{
	struct message request = { .type = REQUEST }, fin = { .type = FIN };
	struct scene s;
	char byte;
	int i;

	scene_open(&s);
	attach(&s);
	for (i = 0; i < 5; i++)
		raw_say(&s.r, &request);
	raw_say(&s.r, &fin);
	wait_io(s.fd, POLLIN);
	must_be(recv(s.fd, &byte, 1, 0), 0);
	must_be(so_error(s.fd), 0);
	neighbour_lives(&s);
	detach(&s);
}

/* poll() does not report a message that is announced and never comes. */
static void announces_only(void)
{
	struct message request = { .type = REQUEST, .b = 100000 };
	struct scene s;
	char byte;

	scene_open(&s);
	attach(&s);
	counters_mark();
	raw_say(&s.r, &request);
	wait_until(!poll_now(s.fd, POLLIN) && delta("adverts_tx") == 1);
	must_be(poll_now(s.fd, POLLIN), 0);
	must_fail(recv(s.fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
	neighbour_lives(&s);
	must_be(poll_now(s.fd, POLLIN), 0);
	check(delta("adverts_tx") <= 2, "more was fetched than that, and a message of the neighbour's");
}

static void data_after_end(void)
{
	struct message fin = { .type = FIN }, data = { .type = WRITTEN, .a = 100 };

	twice(&fin, &data, "data after FIN");
}

static void request_after_end(void)
{
	struct message fin = { .type = FIN }, request = { .type = REQUEST };

	twice(&fin, &request, "REQUEST after FIN");
}

/* More adverts than the victim said it can hold. */
static void too_many_adverts(void)
{
	struct message m = { .type = ADVERT, .nsegs = 1, .segs = { { 4096, 1, 4096 } } };
	struct message c;
	struct scene s;
	int i;

	scene_open(&s);
	attach(&s);
	for (i = 0; i < 40 && !raw_is_lost(&s.r); i++) {
		m.a = e2e.seq ? i : 0;
		raw_say(&s.r, &m);
		/* Its credits come back by halves; this test is not about those. */
		if (i == CREDITS / 2)
			raw_hear(&s.r, CREDIT, &c);
	}
	ended(&s, "40 adverts");
	check(i > 16, "%d adverts were too many", i);
	neighbour_lives(&s);
}

/* It sends and sends, and returns no credit: the victim stops it. */
static void flood(void)
{
	struct message m = { .type = CREDIT };
	struct scene s;
	int i;

	scene_open(&s);
	attach(&s);
	for (i = 0; i < 2000 && !raw_is_lost(&s.r); i++)
		raw_say(&s.r, &m);
	ended(&s, "a flood");
	counted_once(0, "a flood");
	neighbour_lives(&s);
}

/* -- immediates */

static void bad_immediate(struct scene *s, uint32_t imm, const char *what)
{
	long before = delta("resets_protocol");

	attach(s);
	raw_write(&s->r, 0, 0, 0, imm);
	ended(s, what);
	wait_delta("resets_protocol", before + 1);
	detach(s);
}

static void bad_immediates(void)
{
	struct message m = { .type = CREDIT };
	unsigned char buf[HEADER_LEN];
	struct scene s;

	scene_open(&s);
	bad_immediate(&s, IMM_DIRECT << 30 | 100u, "direct without an advert");
	bad_immediate(&s, (uint32_t)IMM_INDIRECT << 30 | 100, "indirect without a ring");
	bad_immediate(&s, (uint32_t)IMM_TRUNCATED << 30 | 100, "truncated without an advert");
	bad_immediate(&s, 0, "nothing");
	bad_immediate(&s, UINT32_MAX, "all ones");
	attach(&s);
	raw_send_imm(&s.r, buf, encode(&m, buf), 5);
	ended(&s, "a SEND with an immediate");
	neighbour_lives(&s);
}

/* -- a stream that begins without a ring, and credits that are asked for */

static void attach_eager(struct scene *s)
{
	struct hello hello = good_hello();

	hello.features = htole32(H_ASK | H_STREAM_EAGER);
	hello.eager = htole32(2048);
	attach_with(s, &hello, sizeof(hello));
}

static void is_refused(struct scene *s, const char *what)
{
	ended(s, what);
	wait_delta("resets_protocol", 1);
	must_be(delta("resets_protocol"), 1);
	detach(s);
	counters_mark();
}

static void bad_eager(struct scene *s, uint32_t position, uint32_t len, uint32_t space, const char *what)
{
	attach_eager(s);
	say_eager(s, position, len, space);
	is_refused(s, what);
}

static void eager_stream(void)
{
	struct message request = { .type = REQUEST }, ring;
	char got[2000];
	struct scene s;

	scene_open(&s);
	counters_mark();
	bad_eager(&s, 1, 10, 0, "eager bytes that are not next");
	bad_eager(&s, 0, 0, 0, "no eager byte");
	bad_eager(&s, 0, 10, 1, "space that nobody used");
	attach_eager(&s);
	say_eager(&s, 0, 1000, 0);
	say_eager(&s, 1000, 1000, 0);
	say_eager(&s, 2000, 49, 0);
	is_refused(&s, "more than the eager space");
	attach(&s);
	say_eager(&s, 0, 10, 0);
	is_refused(&s, "eager bytes of a peer that does not offer it");
	attach_eager(&s);
	raw_say(&s.r, &request);
	raw_hear(&s.r, RING, &ring);
	raw_write(&s.r, 0, 0, 0, (uint32_t)IMM_INDIRECT << 30 | 1);
	say_eager(&s, 1, 10, 0);
	is_refused(&s, "eager bytes after the ring");
	/* Allowed bytes are read, also those that were under way when the ring came. */
	attach_eager(&s);
	raw_say(&s.r, &request);
	raw_hear(&s.r, RING, &ring);
	say_eager(&s, 0, 1000, 0);
	raw_write(&s.r, 0, 0, 0, (uint32_t)IMM_INDIRECT << 30 | 1000);
	must_be(recv(s.fd, got, sizeof(got), MSG_WAITALL), sizeof(got));
	detach(&s);
	neighbour_lives(&s);
}

/* A request for more is answered as long as more are allowed, and has no other effect. */
static void asks_for_credits(void)
{
	struct message ask = { .type = CREDIT, .b = 5 }, got;
	struct hello hello = good_hello();
	struct scene s;

	hello.features = htole32(H_ASK);
	scene_open(&s);
	counters_mark();
	attach_with(&s, &hello, sizeof(hello));
	do {
		raw_say(&s.r, &ask);
		do
			raw_hear(&s.r, CREDIT, &got);
		while (!got.a);
		must_be(got.a, ask.b * 2 > 60 ? 60 : ask.b * 2);
		ask.b = got.a;
		ask.credits = 1;
	} while (got.a < 60);
	must_be(delta("credits_grown"), 4);
	raw_say(&s.r, &ask);
	ask.credits = 0;
	ask.b = 17;		/* of another number */
	raw_say(&s.r, &ask);
	neighbour_lives(&s);
	must_be(delta("credits_denied"), 0);
	ask.b = 1025;
	raw_say(&s.r, &ask);
	is_refused(&s, "too many credits are too few");
	attach(&s);
	ask.b = CREDITS;
	raw_say(&s.r, &ask);
	is_refused(&s, "credits are asked for by a peer that cannot");
	neighbour_lives(&s);
}

/* -- a ring of messages */

static void attach_offering(struct scene *s)
{
	struct hello hello = good_hello();

	hello.features = htole32(H_MESSAGE_RING | H_MANY);
	attach_with(s, &hello, sizeof(hello));
}

/* The victim describes its ring to a peer that announces a message that could go there. */
static void attach_ring(struct scene *s, struct message *ring)
{
	struct message request = { .type = REQUEST, .b = 5000 };

	attach_offering(s);
	raw_say(&s->r, &request);
	raw_hear(&s->r, RING, ring);
}

/* @count transfers of @len bytes each, the last of which must not be there. */
static void bad_in_ring(struct scene *s, uint32_t len, int count, const char *what)
{
	struct message ring;

	attach_ring(s, &ring);
	while (count--)
		raw_write(&s->r, 0, 0, 0, (uint32_t)IMM_INDIRECT << 30 | len);
	is_refused(s, what);
}

static void bad_ring_message(struct scene *s, const struct message *first, const struct message *m, const char *what)
{
	attach_offering(s);
	if (first)
		raw_say(&s->r, first);
	raw_say(&s->r, m);
	is_refused(s, what);
}

static void ring_of_messages(void)
{
	struct message ring = { .type = RING, .b = 8192, .nsegs = 1, .segs = { { 4096, 1, 8192 } } };
	struct message odd = { .type = RING, .b = 8193, .nsegs = 1, .segs = { { 4096, 1, 8192 } } };
	struct message space = { .type = SPACE, .b = 1 };
	struct message got;
	struct scene s;
	char byte;
	int i;

	scene_open(&s);
	attach_offering(&s);
	raw_write(&s.r, 0, 0, 0, (uint32_t)IMM_INDIRECT << 30 | 100);
	is_refused(&s, "indirect before there is a ring");
	bad_in_ring(&s, 0, 1, "a message of no bytes in the ring");
	bad_in_ring(&s, 262144 - 63, 1, "one longer than the ring");
	bad_in_ring(&s, 16000, 17, "more than the ring holds");
	bad_in_ring(&s, 1, 262144 / 65 + 1, "many of one byte");
	bad_ring_message(&s, NULL, &odd, "a ring of another size than its memory");
	bad_ring_message(&s, &ring, &ring, "a second ring");
	bad_ring_message(&s, &ring, &space, "space that nobody used");
	bad_ring_message(&s, NULL, &space, "space of no ring");
	/* Allowed messages are taken, however little sense they make, and read as they are. */
	attach_ring(&s, &got);
	for (i = 0; i < 10; i++)
		raw_write(&s.r, 0, 0, 0, (uint32_t)IMM_INDIRECT << 30 | 1);
	for (i = 0; i < 10; i++)
		must_be(recv(s.fd, &byte, 1, 0), 1);
	detach(&s);
	neighbour_lives(&s);
}

static uint32_t many(uint32_t count, uint32_t len)
{
	return (uint32_t)IMM_MANY << 28 | (count - 1) << 16 | len;
}

/* @count times many messages, the last of which must not be there. */
static void bad_many(struct scene *s, uint32_t imm, int count, const char *what)
{
	struct message ring;

	attach_ring(s, &ring);
	while (count--)
		raw_write(&s->r, 0, 0, 0, imm);
	is_refused(s, what);
}

static void bad_many_in_vain(struct scene *s, uint32_t features, const char *what)
{
	struct message request = { .type = REQUEST, .b = 5000 }, ring;
	struct hello hello = good_hello();

	hello.features = htole32(features);
	attach_with(s, &hello, sizeof(hello));
	raw_say(&s->r, &request);
	if (features & H_MESSAGE_RING)
		raw_hear(&s->r, RING, &ring);
	raw_write(&s->r, 0, 0, 0, many(2, 10));
	is_refused(s, what);
}

/* An EAGER of no bytes that says, by @c, whether another waits. */
static void bad_waiting(struct scene *s, uint32_t features, uint32_t c, const char *what)
{
	struct message eager = { .type = EAGER, .c = c };
	struct hello hello = good_hello();

	hello.features = htole32(features);
	attach_with(s, &hello, sizeof(hello));
	raw_say(&s->r, &eager);
	is_refused(s, what);
}

static void many_messages(void)
{
	struct message got;
	struct scene s;
	char buf[43];
	int i, k;

	scene_open(&s);
	bad_many(&s, many(1, 10), 1, "one message as many");
	bad_many(&s, many(2, 0), 1, "many of no bytes");
	bad_many(&s, many(16, 65535), 1, "many that are longer than the ring");
	bad_many(&s, many(16, 16000), 2, "more than the ring holds");
	bad_many(&s, many(16, 1), 262144 / (16 * 65) + 1, "many of one byte, more than the ring holds");
	bad_many_in_vain(&s, H_MESSAGE_RING, "many to a victim that does not know of them");
	bad_many_in_vain(&s, H_MANY, "many without a ring");
	bad_waiting(&s, H_MESSAGE_RING | H_MANY, 2, "two that wait");
	bad_waiting(&s, H_MESSAGE_RING, 1, "one that waits, to a victim that does not know of it");
	/* Allowed messages are taken, and read as they are. */
	attach_ring(&s, &got);
	for (i = 0; i < 10; i++)
		raw_write(&s.r, 0, 0, 0, many(16, 42));
	for (k = 0; k < 160; k++)
		must_be(recv(s.fd, buf, sizeof(buf), 0), 42);
	detach(&s);
	neighbour_lives(&s);
}

/* -- keys */

#define ROOM	(256 * 1024)
#define WINDOW	(64 * 1024)
#define FILL	0xa5

struct target {
	struct scene s;
	char *memory;			/* ROOM, of which the receive is WINDOW in the middle */
	char *window;
	exs_qhandle_t q;
	struct message advert;
};

/* The victim posts a receive; the peer, which offers @features, has its advert. */
static void target_of(struct target *t, uint32_t features)
{
	struct hello hello = good_hello();
	exs_mhandle_t m;

	hello.features = htole32(features);
	scene_open(&t->s);
	attach_with(&t->s, &hello, sizeof(hello));
	t->memory = pages(ROOM);
	memset(t->memory, FILL, ROOM);
	t->window = t->memory + ROOM / 4 + 123;
	m = region_new(t->memory, ROOM, 0);
	t->q = queue_new(4);
	start_recv(t->s.fd, t->window, WINDOW, MSG_WAITALL, t->q, 1, m);
	raw_hear(&t->s.r, ADVERT, &t->advert);
	check(t->advert.nsegs >= 1, "an advert without segments");
}

static void target_open(struct target *t)
{
	target_of(t, 0);
}

static void untouched(const char *from, const char *to, const char *what)
{
	for (; from < to; from++)
		check((unsigned char)*from == FILL, "%s: memory was overwritten", what);
}

static void all_untouched(struct target *t, const char *what)
{
	untouched(t->memory, t->memory + ROOM, what);
}

/* Fills the advert as an honest peer would. */
static void fill_window(struct target *t, uint64_t seed)
{
	size_t done = 0, n;
	int i;

	for (i = 0; i < t->advert.nsegs; i++, done += n) {
		n = t->advert.segs[i].len;
		data_fill(seed, done, t->s.r.scratch, n);
		raw_write(&t->s.r, t->advert.segs[i].addr, t->advert.segs[i].key, n,
			  i == t->advert.nsegs - 1 ? (int64_t)(done + n) : -1);
		check(raw_flush(&t->s.r), "the honest write failed");
	}
	must_be(done, WINDOW);
}

static void honest_write(void)
{
	struct target t;

	target_open(&t);
	fill_window(&t, 5);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	data_check(5, 0, t.window, WINDOW);
	untouched(t.memory, t.window, "before the window");
	untouched(t.window + WINDOW, t.memory + ROOM, "behind the window");
	neighbour_lives(&t.s);
}

/* All of the window, and credits. */
static void credited(struct target *t, uint32_t kind, uint32_t credits)
{
	target_open(t);
	raw_write(&t->s.r, 0, 0, 0, (uint32_t)IMM_CREDITED << 30 | kind << 28 | credits << 20 | WINDOW);
}

/* The advert cost one, and so did the CREDIT before it. */
static void honest_credit(void)
{
	struct target t;

	credited(&t, IMM_DIRECT, 2);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	neighbour_lives(&t.s);
}

static void bad_credits(uint32_t kind, uint32_t credits, const char *what)
{
	struct target t;

	credited(&t, kind, credits);
	ended(&t.s, what);
	counted_once(0, what);
	event_is(t.q, EXS_EVT_RECV, 1, EPROTO, 0);
	neighbour_lives(&t.s);
}

static void no_credits(void)
{
	bad_credits(IMM_DIRECT, 0, "a place for credits, and none");
}

static void credits_not_spent(void)
{
	bad_credits(IMM_DIRECT, 3, "credits that nobody spent");
}

static void credits_and_no_kind(void)
{
	bad_credits(IMM_CREDITED, 1, "credits and an unknown kind");
}

/* Nothing that the wire shows is an address of a program, or of the kernel. */
static void no_addresses(void)
{
	struct target t;
	uint64_t addr;
	int i;

	target_open(&t);
	for (i = 0; i < t.advert.nsegs; i++) {
		addr = t.advert.segs[i].addr;
		check(addr >> 47 != 0x1ffff, "a kernel address on the wire: %#llx", (unsigned long long)addr);
		check(addr - (uintptr_t)t.memory >= ROOM, "a user address on the wire");
	}
}

/* The transfer is over and the program was told: its key opens nothing. */
static void stale_key(void)
{
	struct target t;

	target_open(&t);
	fill_window(&t, 5);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	memset(t.s.r.scratch, 0x11, 100);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100, -1);
	check(!raw_flush(&t.s.r), "a write with the key of a finished transfer succeeded");
	data_check(5, 0, t.window, WINDOW);
	ended(&t.s, "a stale key");
	neighbour_lives(&t.s);
}

/* The whole window, and @m with invalidate of @key behind it. */
static void fill_and_kill(struct target *t, const struct message *m, uint32_t key)
{
	must_be(t->advert.nsegs, 1);
	data_fill(5, 0, t->s.r.scratch, WINDOW);
	raw_write(&t->s.r, t->advert.segs[0].addr, t->advert.segs[0].key, WINDOW, -1);
	check(raw_flush(&t->s.r), "the honest write failed");
	raw_kill(&t->s.r, m, key);
}

static long keys_dead(void)
{
	return delta("invalidations") + delta("remote_invalidations");
}

/* The end of a transfer takes its key along. */
static void honest_kill(void)
{
	const struct message end = { .type = WRITTEN, .a = WINDOW };
	struct target t;
	long before;

	target_of(&t, H_INVALIDATE);
	before = keys_dead();
	fill_and_kill(&t, &end, t.advert.segs[0].key);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	must_be(keys_dead(), before + 1);
	data_check(5, 0, t.window, WINDOW);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100, -1);
	check(!raw_flush(&t.s.r), "a write with a key that was invalidated succeeded");
	data_check(5, 0, t.window, WINDOW);
	neighbour_lives(&t.s);
}

/* A peer that could, and does not: the victim sees to its keys itself. */
static void never_kills(void)
{
	struct target t;
	long before;

	target_of(&t, H_INVALIDATE);
	before = delta("invalidations");
	fill_window(&t, 5);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	must_be(delta("invalidations"), before + 1);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100, -1);
	check(!raw_flush(&t.s.r), "a write with the key of a finished transfer succeeded");
	data_check(5, 0, t.window, WINDOW);
	neighbour_lives(&t.s);
}

static void bad_kill(uint32_t features, const struct message *m, uint32_t change, const char *what)
{
	struct target t;

	target_of(&t, features);
	fill_and_kill(&t, m, t.advert.segs[0].key ^ change);
	ended(&t.s, what);
	raw_flush(&t.s.r);
	neighbour_lives(&t.s);
}

static void kills_unasked(void)
{
	const struct message end = { .type = WRITTEN, .a = WINDOW };

	bad_kill(0, &end, 0, "an invalidation that was not offered");
}

static void kills_another(void)
{
	const struct message end = { .type = WRITTEN, .a = WINDOW };

	bad_kill(H_INVALIDATE, &end, 1, "another key is invalidated");
	bad_kill(H_INVALIDATE, &end, 0x12300, "a key of nobody's is invalidated");
}

static void kills_by_another_message(void)
{
	const struct message credit = { .type = CREDIT };

	bad_kill(H_INVALIDATE, &credit, 0, "a CREDIT that invalidates");
}

static void kills_twice(void)
{
	const struct message end = { .type = WRITTEN, .a = WINDOW };
	struct target t;

	target_of(&t, H_INVALIDATE);
	fill_and_kill(&t, &end, t.advert.segs[0].key);
	event_is(t.q, EXS_EVT_RECV, 1, 0, WINDOW);
	raw_kill(&t.s.r, &end, t.advert.segs[0].key);
	ended(&t.s, "a key is invalidated twice");
	raw_flush(&t.s.r);
	data_check(5, 0, t.window, WINDOW);
	neighbour_lives(&t.s);
}

/* Before the transfer: its later write finds no key. */
static void kills_too_early(void)
{
	const struct message part = { .type = WRITTEN, .a = 100 };
	struct target t;

	target_of(&t, H_INVALIDATE);
	must_be(t.advert.nsegs, 1);
	raw_kill(&t.s.r, &part, t.advert.segs[0].key);
	raw_flush(&t.s.r);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100, -1);
	check(!raw_flush(&t.s.r), "a write with a key that was invalidated succeeded");
	ended(&t.s, "a key that is used after it was invalidated");
	all_untouched(&t, "a key that was invalidated");
	neighbour_lives(&t.s);
}

static void outside(int64_t off, size_t len, const char *what)
{
	struct target t;

	target_open(&t);
	memset(t.s.r.scratch, 0x11, len);
	raw_write(&t.s.r, t.advert.segs[0].addr + off, t.advert.segs[0].key, len, -1);
	check(!raw_flush(&t.s.r), "%s: the write succeeded", what);
	ended(&t.s, what);
	all_untouched(&t, what);
	event_is(t.q, EXS_EVT_RECV, 1, ECONNRESET, 0);
	neighbour_lives(&t.s);
}

static void write_before(void)
{
	outside(-1, 1, "a byte before the window");
}

static void write_behind(void)
{
	outside(WINDOW, 1, "a byte behind the window");
}

static void write_across(void)
{
	outside(WINDOW - 10, 20, "across the window's end");
}

static void wrong_key(void)
{
	struct target t;

	target_open(&t);
	memset(t.s.r.scratch, 0x11, 100);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key ^ 1, 100, -1);
	check(!raw_flush(&t.s.r), "a write with a key that was not given succeeded");
	all_untouched(&t, "a wrong key");
	ended(&t.s, "a wrong key");
	event_is(t.q, EXS_EVT_RECV, 1, ECONNRESET, 0);
	neighbour_lives(&t.s);
}

static void read_window(void)
{
	struct target t;

	target_open(&t);
	memset(t.s.r.scratch, 0, 100);
	raw_read(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100);
	check(!raw_flush(&t.s.r), "an advert could be read");
	must_be(t.s.r.scratch[0], 0);
	ended(&t.s, "a READ");
	neighbour_lives(&t.s);
}

static void longer_than_window(void)
{
	struct target t;
	struct message m = { .type = WRITTEN, .a = WINDOW + 1 };

	target_open(&t);
	raw_say(&t.s.r, &m);
	ended(&t.s, "more bytes than the window");
	wait_delta("resets_protocol", 1);
	must_be(delta("resets_protocol"), 1);
	event_is(t.q, EXS_EVT_RECV, 1, EPROTO, 0);
	neighbour_lives(&t.s);
}

/* A send waits, with others behind it, when the peer lies. */
static void waits_for_liar(struct scene *s, exs_qhandle_t q, int (*behind)(int fd, exs_qhandle_t q))
{
	struct message m = { .type = WRITTEN, .a = WINDOW };

	attach(s);
	start_send(s->fd, pages(MIB), MIB, q, 1, NO_REGION);
	must(behind(s->fd, q));
	raw_say(&s->r, &m);
	event_is(q, EXS_EVT_SEND, 1, EPROTO, 0);
}

static int shut_down(int fd, exs_qhandle_t q)
{
	return exs_shutdown(fd, SHUT_WR, q, 2);
}

static int close_it(int fd, exs_qhandle_t q)
{
	return exs_close(fd, 0, q, 3);
}

static void lies_at_end(void)
{
	exs_qhandle_t q = queue_new(2);
	struct scene s;

	scene_open(&s);
	waits_for_liar(&s, q, shut_down);
	event_is(q, EXS_EVT_SHUTDOWN, 2, EPROTO, 0);
	detach(&s);
	waits_for_liar(&s, q, close_it);
	event_is(q, EXS_EVT_CLOSE, 3, EPROTO, 0);
	raw_close(&s.r);
	no_event(q);
	neighbour_lives(&s);
}

/* It never answers when memory is to be taken back: the close ends it, in bounded time. */
static void never_gives_back(void)
{
	struct message m;
	struct target t;

	write_sysctl("linger", 200);
	target_open(&t);
	must(exs_qdelete(t.q));
	raw_hear(&t.s.r, REVOKE, &m);
	close(t.s.fd);
	wait_until(!counter("live_ops"));
	wait_until(raw_is_lost(&t.s.r));
	all_untouched(&t, "after the reset");
	neighbour_lives(&t.s);
}

/* Short for the revocation only, which goes by it when it begins: a stall is something else. */
static void usual_after_revoke(void *usual)
{
	wait_delta("revokes", 1);
	write_sysctl("stall_timeout", *(long *)usual);
}

/* Neither side closes: the connection is reset, and the receive ends. */
static void never_gives_back_cancelled(void)
{
	long usual = read_sysctl("stall_timeout");
	struct message m;
	struct target t;

	target_open(&t);
	write_sysctl("stall_timeout", 500);
	must(exs_cancel(t.q, t.s.fd, 0, EXS_CAF_FILDES));
	usual_after_revoke(&usual);
	raw_hear(&t.s.r, REVOKE, &m);
	event_is(t.q, EXS_EVT_RECV, 1, ECANCELED, 0);
	must_be(delta("revoke_timeout"), 1);
	must_be(so_error(t.s.fd), ETIMEDOUT);
	wait_until(raw_is_lost(&t.s.r));
	all_untouched(&t, "after the reset");
	neighbour_lives(&t.s);
}

/* Nor does it help to send a byte now and then, of a window for hours. */
static void never_gives_back_dribbling(void)
{
	long usual = read_sysctl("stall_timeout");
	struct message m;
	struct target t;
	double until;
	int i;

	target_open(&t);
	write_sysctl("stall_timeout", 500);
	must(exs_cancel(t.q, t.s.fd, 0, EXS_CAF_FILDES));
	raw_hear(&t.s.r, REVOKE, &m);
	for (i = 0; !raw_is_lost(&t.s.r); i++) {
		check(i < 8, "%d bytes have come in time", i);
		raw_write(&t.s.r, 0, 0, 0, 1);
		raw_flush(&t.s.r);
		for (until = now() + 0.4; now() < until && !raw_is_lost(&t.s.r);)
			breathe();
	}
	write_sysctl("stall_timeout", usual);
	must_be(event_next(t.q).exs_evt_type, EXS_EVT_RECV);
	must_be(delta("revoke_timeout"), 1);
	must_be(so_error(t.s.fd), ETIMEDOUT);
	all_untouched(&t, "after the reset");
	neighbour_lives(&t.s);
}

/* The same with a read of Linux AIO, whose context cannot end before it. */
static void never_gives_back_aio(void)
{
	long usual = read_sysctl("stall_timeout");
	struct io_context *ctx = NULL;
	struct iocb cb, *list = &cb;
	struct message m;
	struct scene s;
	pid_t pid;

	pid = spawn(usual_after_revoke, &usual);
	scene_open(&s);
	attach(&s);
	io_prep_pread(&cb, s.fd, pages(WINDOW), WINDOW, 0);
	must_be(io_setup(1, &ctx), 0);
	must_be(io_submit(ctx, 1, &list), 1);
	raw_hear(&s.r, ADVERT, &m);
	write_sysctl("stall_timeout", 1000);
	must_be(io_destroy(ctx), 0);
	join(pid);
	raw_hear(&s.r, REVOKE, &m);
	must_be(delta("revoke_timeout"), 1);
	wait_until(raw_is_lost(&s.r));
	neighbour_lives(&s);
}

/* Between REVOKE and ANSWER the peer may still write; afterwards it cannot. */
static void late_write(void)
{
	struct message m, answer = { .type = ANSWER };
	struct target t;

	target_open(&t);
	must(exs_qdelete(t.q));
	raw_hear(&t.s.r, REVOKE, &m);
	answer.a = m.a;
	raw_say(&t.s.r, &answer);
	wait_until(!counter("live_ops") && !counter("live_xfers"));
	memset(t.memory, FILL, ROOM);
	memset(t.s.r.scratch, 0x11, 100);
	raw_write(&t.s.r, t.advert.segs[0].addr, t.advert.segs[0].key, 100, -1);
	check(!raw_flush(&t.s.r), "a write after the answer succeeded");
	all_untouched(&t, "a late write");
	neighbour_lives(&t.s);
}

/* -- a peer that takes nothing */

static void takes_nothing(void)
{
	char *out = pages(MIB);
	exs_qhandle_t q = queue_new(64);
	exs_mhandle_t m = region_new(out, MIB, 0);
	struct scene s;
	exs_event_t ev;
	int i, failed = 0, last = -1;

	scene_open(&s);
	attach(&s);
	for (i = 0; i < 60; i++)
		start_send(s.fd, out, 900, q, i, i % 2 ? m : NO_REGION);
	raw_disconnect(&s.r);
	/* Order binds those that succeed. */
	for (i = 0; i < 60; i++) {
		ev = event_next(q);
		failed += ev.exs_evt_errno != 0;
		if (ev.exs_evt_errno)
			continue;
		check((int)ev.exs_evt_ahandle > last, "send %d after %d", (int)ev.exs_evt_ahandle, last);
		last = ev.exs_evt_ahandle;
	}
	check(failed >= 60 - CREDITS, "%d of 60 sends failed although %d credits were there", failed, CREDITS);
	no_event(q);
	neighbour_lives(&s);
}

/* Its adverts lead nowhere: the victim's write fails, and only that connection. */
static void adverts_nowhere(void)
{
	struct message m = { .type = ADVERT, .nsegs = 1, .segs = { { 0x10000, 0x777700, 65536 } } };
	char *out = pages(65536);
	exs_qhandle_t q = queue_new(4);
	struct scene s;
	exs_event_t ev;

	scene_open(&s);
	attach(&s);
	raw_say(&s.r, &m);
	start_send(s.fd, out, 65536, q, 1, NO_REGION);
	ended(&s, "an advert that leads nowhere");
	ev = event_next(q);
	check(ev.exs_evt_errno, "a write to nowhere succeeded");
	no_event(q);
	neighbour_lives(&s);
}

/* -- at random */

static void random_message(uint64_t *state, struct message *m)
{
	int i;

	memset(m, 0, sizeof(*m));
	m->type = next_random(state) % 12;
	m->flags = next_random(state) % 4 ? 0 : next_random(state) % 8;
	m->credits = next_random(state) % 3 ? 0 : next_random(state) % 20;
	m->a = next_random(state) % 5;
	m->b = next_random(state) % 3 ? 0 : next_random(state) % 5000;
	m->c = next_random(state) % 3 ? 0 : next_random(state) % 5000;
	m->nsegs = m->type == ADVERT || m->type == RING ? 1 + next_random(state) % 3 : 0;
	for (i = 0; i < m->nsegs; i++) {
		m->segs[i].addr = next_random(state) % 100000;
		m->segs[i].key = next_random(state);
		m->segs[i].len = next_random(state) % 8192;
	}
}

static void babble(struct scene *s, uint64_t *state)
{
	struct message m;
	int i;

	for (i = 0; i < 60 && !raw_is_lost(&s->r); i++) {
		random_message(state, &m);
		if (next_random(state) % 8)
			raw_say(&s->r, &m);
		else
			raw_write(&s->r, 0, 0, 0, (next_random(state) % 4) << 30 | next_random(state) % 9000);
	}
}

/* The victim works on as if its peer were honest. */
static void at_random(void)
{
	uint64_t state = e2e.seed * 31 + e2e.seq;
	char *buf = pages(2 * 65536);
	exs_qhandle_t q = queue_new(16);
	struct scene s;
	int round, i;

	scene_open(&s);
	for (round = 0; round < 25; round++) {
		attach(&s);
		for (i = 0; i < 4; i++) {
			start_recv(s.fd, buf, 65536, i % 2 ? MSG_WAITALL : 0, q, i, NO_REGION);
			if (exs_send(s.fd, buf + 65536, 20000, MSG_NOSIGNAL, q, i, NO_REGION))
				check(errno == EPROTO || errno == EPIPE || errno == ECONNRESET,
				      "exs_send: %s", errno_name(errno));
		}
		babble(&s, &state);
		raw_close(&s.r);
		close(s.fd);
		while (queue_attr(q, EXS_ATTR_EVENTS) ||
		       queue_attr(q, EXS_ATTR_SUBMITTED) > queue_attr(q, EXS_ATTR_POSTED))
			event_next(q);
		neighbour_lives(&s);
	}
}

#define ON_PEERS (ON_STREAM | ON_SEQ)

static const struct e2e_case cases[] = {
	{ "bad_hellos", bad_hellos, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "later_hello", later_hello, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_answers", bad_answers, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_answer_event", bad_answer_event, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "never_answers", never_answers, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "rejects", rejects, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "never_confirms", never_confirms, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "half_open_of_user", half_open_of_user, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "half_open_not_charged", half_open_not_charged, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "ring_lowered_meanwhile", ring_lowered_meanwhile, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "ring_raised_meanwhile", ring_raised_meanwhile, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "never_greets", never_greets, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "leaves_while_pending", leaves_while_pending, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "listener_leaves_while_pending", listener_leaves_while_pending, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "bad_lengths", bad_lengths, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_headers", bad_headers, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_order", bad_order, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_order_stream", bad_order_stream, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "bad_order_seqpacket", bad_order_seqpacket, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "ring_of_messages", ring_of_messages, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "many_messages", many_messages, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "eager_stream", eager_stream, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "asks_for_credits", asks_for_credits, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "two_ends", two_ends, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "announces_only", announces_only, .on = ON_SEQ, .needs = NEEDS_ONE },
	{ "many_requests", many_requests, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "data_after_end", data_after_end, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "request_after_end", request_after_end, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "too_many_adverts", too_many_adverts, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "flood", flood, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "bad_immediates", bad_immediates, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "honest_write", honest_write, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "honest_credit", honest_credit, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "no_credits", no_credits, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "credits_not_spent", credits_not_spent, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "credits_and_no_kind", credits_and_no_kind, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "no_addresses", no_addresses, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "stale_key", stale_key, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "honest_kill", honest_kill, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "never_kills", never_kills, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "kills_unasked", kills_unasked, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "kills_another", kills_another, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "kills_by_another_message", kills_by_another_message, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "kills_twice", kills_twice, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "kills_too_early", kills_too_early, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "write_before", write_before, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "write_behind", write_behind, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "write_across", write_across, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "wrong_key", wrong_key, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "read_window", read_window, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "longer_than_window", longer_than_window, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "lies_at_end", lies_at_end, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "never_gives_back", never_gives_back, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "never_gives_back_dribbling", never_gives_back_dribbling, .on = ON_STREAM, .needs = NEEDS_ONE },
	{ "never_gives_back_cancelled", never_gives_back_cancelled, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "never_gives_back_aio", never_gives_back_aio, .on = ON_PEERS, .needs = NEEDS_ONE,
	  .before = needs_aio_reads },
	{ "late_write", late_write, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "takes_nothing", takes_nothing, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "adverts_nowhere", adverts_nowhere, .on = ON_PEERS, .needs = NEEDS_ONE },
	{ "at_random", at_random, .on = ON_PEERS, .needs = NEEDS_ONE, .limit = 120 },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
