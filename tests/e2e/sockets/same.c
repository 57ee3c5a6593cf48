// SPDX-License-Identifier: GPL-2.0
/*
 * Every ordinary call, in every state that a socket can be in, and every option, with every
 * kind of value: on TCP over loopback and on IPPROTO_EXS (lib/same.h). Sequences of calls,
 * and calls that wait, are in same_steps.
 *
 * Cases are CALL/STATE and OPTION/STATE, made from three tables. Calls that use addresses
 * are also made with AF_INET6.
 */
#include "lib/e2e.h"
#include "lib/same.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/exs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

/* Newer than the C library. */
#ifndef SO_RCVMARK
#define SO_RCVMARK	75
#endif
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD	76
#define SO_PEERPIDFD	77
#endif
#ifndef TCP_IS_MPTCP
#define TCP_IS_MPTCP	43
#endif

/* -- States */

/* The calls are made on @fd. */
struct sockets { int fd, peer, other; };

static void fresh(struct sockets *s)
{
	s->fd = new_socket();
}

static void bound(struct sockets *s)
{
	s->fd = bound_socket();
}

static void listening(struct sockets *s)
{
	s->fd = listener(4);
}

/* A connection waits to be accepted. */
static void with_pending(struct sockets *s)
{
	s->fd = listener(4);
	s->peer = client_of(s->fd);
	wait_io(s->fd, POLLIN);
}

static union address refusing(struct sockets *s)
{
	s->other = bound_socket();
	return name_of(s->other);
}

static void refused(struct sockets *s)
{
	union address to = refusing(s);

	s->fd = new_socket();
	must_fail(connect(s->fd, &to.sa, address_len(&to)), ECONNREFUSED);
}

/* The error was not read. */
static void refused_untold(struct sockets *s)
{
	union address to = refusing(s);

	s->fd = new_socket();
	set_nonblock(s->fd, true);
	must_fail(connect(s->fd, &to.sa, address_len(&to)), EINPROGRESS);
	wait_io(s->fd, POLLHUP);
}

static void connecting(struct sockets *s)
{
	union address to = address_from(AF_INET, "10.77.0.9", 7777);

	if (e2e.domain == AF_INET6)
		to = address_from(AF_INET6, "fd77::9", 7777);
	s->fd = new_socket();
	set_nonblock(s->fd, true);
	must_fail(connect(s->fd, &to.sa, address_len(&to)), EINPROGRESS);
}

static void pair(struct sockets *s)
{
	struct pair p;

	s->other = listener(4);
	pair_from(&p, s->other);
	s->fd = p.c;
	s->peer = p.s;
}

static void connected(struct sockets *s)
{
	pair(s);
}

static void accepted(struct sockets *s)
{
	int fd;

	pair(s);
	fd = s->fd;
	s->fd = s->peer;
	s->peer = fd;
}

static void with_data(struct sockets *s)
{
	pair(s);
	must_be(send(s->peer, "hello", 5, 0), 5);
	wait_io(s->fd, POLLIN);
}

static void peer_half(struct sockets *s)
{
	pair(s);
	must(shutdown(s->peer, SHUT_WR));
	wait_io(s->fd, POLLRDHUP);
}

static void data_and_end(struct sockets *s)
{
	pair(s);
	must_be(send(s->peer, "hello", 5, 0), 5);
	must(shutdown(s->peer, SHUT_WR));
	wait_io(s->fd, POLLRDHUP);
}

static int unsent(int fd)
{
	int n;

	must(ioctl(fd, SIOCOUTQ, &n));
	return n;
}

static void half(struct sockets *s)
{
	pair(s);
	must(shutdown(s->fd, SHUT_WR));
	wait_io(s->peer, POLLRDHUP);
	/* TCP's peer takes its time to acknowledge that. */
	wait_until(!unsent(s->fd));
}

static void deaf(struct sockets *s)
{
	pair(s);
	must(shutdown(s->fd, SHUT_RD));
}

static void both_half(struct sockets *s)
{
	peer_half(s);
	must(shutdown(s->fd, SHUT_WR));
	wait_io(s->peer, POLLHUP);
}

static void ended(struct sockets *s)
{
	pair(s);
	must(shutdown(s->fd, SHUT_RDWR));
	wait_io(s->peer, POLLRDHUP);
	wait_until(!unsent(s->fd));
}

static void reset(struct sockets *s)
{
	struct linger linger = { .l_onoff = 1 };

	pair(s);
	must(setsockopt(s->peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	close(s->peer);
	s->peer = -1;
	wait_io(s->fd, POLLHUP);
}

/* And the error was read. */
static void reset_told(struct sockets *s)
{
	reset(s);
	must_be(so_error(s->fd), ECONNRESET);
}

struct state { const char *name; void (*enter)(struct sockets *s); };

static const struct state states[] = {
	{ "fresh", fresh }, { "bound", bound }, { "listening", listening },
	{ "with_pending", with_pending }, { "refused", refused },
	{ "refused_untold", refused_untold }, { "connecting", connecting },
	{ "connected", connected }, { "accepted", accepted }, { "with_data", with_data },
	{ "peer_half", peer_half }, { "data_and_end", data_and_end }, { "half", half },
	{ "deaf", deaf }, { "both_half", both_half }, { "ended", ended }, { "reset", reset },
	{ "reset_told", reset_told },
};

/* -- Calls. The socket does not block. */

static char buf[64];

/* Then also record the state of the socket afterwards. */
static void afterwards(int fd)
{
	say("then %#x, error %s; ", poll_now(fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP),
	    errno_name(so_error(fd)));
}

static void say_data(long n)
{
	if (n > 0)
		say("'%.*s'; ", (int)n, buf);
}

static void do_poll(struct sockets *s)
{
	afterwards(s->fd);
	afterwards(s->fd);
}

static void do_send(struct sockets *s)
{
	SAY(send(s->fd, "abc", 3, MSG_NOSIGNAL));
	SAY(send(s->fd, "abc", 3, MSG_NOSIGNAL));
	afterwards(s->fd);
}

static void do_send_signal(struct sockets *s)
{
	catch_signal(SIGPIPE, 0);
	SAY(write(s->fd, "abc", 3));
	say("signals %d; ", (int)signals_caught);
}

static void do_send_nothing(struct sockets *s)
{
	SAY(send(s->fd, "", 0, MSG_NOSIGNAL));
	afterwards(s->fd);
}

static void do_send_flags(struct sockets *s)
{
	SAY(send(s->fd, "a", 1, MSG_NOSIGNAL | MSG_DONTROUTE));
	SAY(send(s->fd, "a", 1, MSG_NOSIGNAL | MSG_CONFIRM));
	SAY(send(s->fd, "a", 1, MSG_NOSIGNAL | MSG_EOR));
	SAY(send(s->fd, "a", 1, MSG_NOSIGNAL | MSG_MORE));
	SAY(send(s->fd, "a", 1, MSG_NOSIGNAL | MSG_ZEROCOPY));
}

static void do_send_bad(struct sockets *s)
{
	catch_signal(SIGPIPE, 0);
	SAY(send(s->fd, (void *)8, 3, MSG_NOSIGNAL));
	SAY(write(s->fd, NULL, 0));
}

static void do_sendto(struct sockets *s)
{
	union address to = address_of(SERVER, 9);

	SAY(sendto(s->fd, "abc", 3, MSG_NOSIGNAL, &to.sa, address_len(&to)));
}

static void do_writev(struct sockets *s)
{
	struct iovec v[3] = { { "ab", 2 }, { "", 0 }, { "c", 1 } };

	catch_signal(SIGPIPE, 0);
	SAY(writev(s->fd, v, 3));
	SAY(writev(s->fd, v, 0));
}

static void do_recv(struct sockets *s)
{
	say_data(SAY(recv(s->fd, buf, 3, 0)));
	say_data(SAY(recv(s->fd, buf, sizeof(buf), 0)));
	SAY(recv(s->fd, buf, sizeof(buf), 0));
	afterwards(s->fd);
}

static void do_recv_nothing(struct sockets *s)
{
	SAY(recv(s->fd, buf, 0, 0));
	SAY(read(s->fd, buf, 0));
	afterwards(s->fd);
}

static void do_recv_peek(struct sockets *s)
{
	say_data(SAY(recv(s->fd, buf, 2, MSG_PEEK)));
	say_data(SAY(recv(s->fd, buf, sizeof(buf), MSG_PEEK)));
	SAY(recv(s->fd, buf, sizeof(buf), MSG_PEEK | MSG_TRUNC));
	afterwards(s->fd);
}

static void do_recv_trunc(struct sockets *s)
{
	SAY(recv(s->fd, NULL, 2, MSG_TRUNC));
	say_data(SAY(recv(s->fd, buf, sizeof(buf), 0)));
}

static void do_recv_waitall(struct sockets *s)
{
	say_data(SAY(recv(s->fd, buf, sizeof(buf), MSG_WAITALL)));
	afterwards(s->fd);
}

static void do_recv_bad(struct sockets *s)
{
	SAY(recv(s->fd, (void *)8, 3, 0));
	say_data(SAY(recv(s->fd, buf, sizeof(buf), 0)));
}

static void do_recv_urgent(struct sockets *s)
{
	SAY(recv(s->fd, buf, 1, MSG_OOB));
	afterwards(s->fd);
}

static void do_recv_errors(struct sockets *s)
{
	SAY(recv(s->fd, buf, 1, MSG_ERRQUEUE));
	afterwards(s->fd);
}

static void do_recvmsg(struct sockets *s)
{
	union address from = { .sa.sa_family = 77 };
	char control[64];
	struct iovec v[2] = { { buf, 2 }, { buf + 2, sizeof(buf) - 2 } };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = v, .msg_iovlen = 2,
		.msg_control = control, .msg_controllen = sizeof(control),
	};

	say_data(SAY(recvmsg(s->fd, &m, 0)));
	say("name %d, control %zu, flags %#x; ", (int)m.msg_namelen, m.msg_controllen, m.msg_flags);
}

static void do_recvfrom(struct sockets *s)
{
	union address from = { .sa.sa_family = 77 };
	socklen_t len = sizeof(from);

	say_data(SAY(recvfrom(s->fd, buf, sizeof(buf), 0, &from.sa, &len)));
	say("name %d, family %d; ", (int)len, from.sa.sa_family);
}

static void do_readv(struct sockets *s)
{
	struct iovec v[2] = { { buf, 2 }, { buf + 2, sizeof(buf) - 2 } };

	say_data(SAY(readv(s->fd, v, 2)));
}

static void do_bind(struct sockets *s)
{
	union address at = address_of(SERVER, 0);

	SAY(bind(s->fd, &at.sa, address_len(&at)));
	SAY(bind(s->fd, &at.sa, address_len(&at)));
	afterwards(s->fd);
}

static void do_bind_bad(struct sockets *s)
{
	union address at = address_of(SERVER, 0), other = at;

	SAY(bind(s->fd, &at.sa, 0));
	SAY(bind(s->fd, &at.sa, 1));
	SAY(bind(s->fd, &at.sa, address_len(&at) - 5));
	other.sa.sa_family = AF_UNIX;
	SAY(bind(s->fd, &other.sa, address_len(&at)));
	other.sa.sa_family = AF_UNSPEC;
	SAY(bind(s->fd, &other.sa, address_len(&at)));
	SAY(bind(s->fd, (void *)8, address_len(&at)));
}

static void do_listen(struct sockets *s)
{
	SAY(listen(s->fd, 2));
	SAY(listen(s->fd, 0));
	SAY(listen(s->fd, -1));
	afterwards(s->fd);
}

static void do_accept(struct sockets *s)
{
	union address from = { .sa.sa_family = 77 };
	socklen_t len = sizeof(from);
	int fd = accept(s->fd, &from.sa, &len);

	say_result("accept", fd < 0 ? -1 : 0);
	if (fd >= 0)
		say("name %d, family %d, flags %#lx; ", (int)len, from.sa.sa_family, must(fcntl(fd, F_GETFL)));
	afterwards(s->fd);
}

static void do_accept_bad(struct sockets *s)
{
	SAY(accept4(s->fd, NULL, NULL, 0x10));
	SAY(accept(s->fd, (void *)8, (void *)8));
}

static void do_connect(struct sockets *s)
{
	struct sockets l;
	union address to;

	fresh(&l);
	to = refusing(&l);
	SAY(connect(s->fd, &to.sa, address_len(&to)));
}

static void do_connect_well(struct sockets *s)
{
	union address to = name_of(listener(4));
	int err = connect(s->fd, &to.sa, address_len(&to));

	say_result("connect", err);
	if (!err || errno != EINPROGRESS)
		return;
	wait_io(s->fd, POLLOUT);
	afterwards(s->fd);
	SAY(connect(s->fd, &to.sa, address_len(&to)));
	SAY(send(s->fd, "abc", 3, MSG_NOSIGNAL));
}

static void do_connect_bad(struct sockets *s)
{
	union address to = address_of(SERVER, 9), other = to;

	SAY(connect(s->fd, &to.sa, 1));
	SAY(connect(s->fd, &to.sa, address_len(&to) - 5));
	other.sa.sa_family = AF_UNIX;
	SAY(connect(s->fd, &other.sa, address_len(&to)));
	SAY(connect(s->fd, (void *)8, address_len(&to)));
}

static void do_disconnect(struct sockets *s)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	SAY(connect(s->fd, &none, sizeof(none)));
	afterwards(s->fd);
	SAY(send(s->fd, "abc", 3, MSG_NOSIGNAL));
}

static void say_name(const char *what, int result, const union address *a, socklen_t len)
{
	if (say_result(what, result) < 0)
		return;
	say("len %d, family %d, port %s; ", (int)len, a->sa.sa_family, port_of(a) ? "yes" : "no");
}

static void do_names(struct sockets *s)
{
	union address a = {};
	socklen_t len = sizeof(a);
	int err = getsockname(s->fd, &a.sa, &len);

	say_name("getsockname", err, &a, len);
	len = sizeof(a);
	err = getpeername(s->fd, &a.sa, &len);
	say_name("getpeername", err, &a, len);
	len = 3;
	err = getsockname(s->fd, &a.sa, &len);
	say_name("short", err, &a, len);
	len = -1;
	SAY(getsockname(s->fd, &a.sa, &len));
	SAY(getsockname(s->fd, (void *)8, &len));
}

#define SHUTDOWN(name, how)						\
	static void name(struct sockets *s)				\
	{								\
		SAY(shutdown(s->fd, how));				\
		say("then %#x; ", poll_now(s->fd, POLLIN | POLLOUT | POLLRDHUP)); \
		SAY(recv(s->fd, buf, 1, 0));				\
		SAY(send(s->fd, "a", 1, MSG_NOSIGNAL));			\
		SAY(shutdown(s->fd, how));				\
	}
SHUTDOWN(do_shutdown_read, SHUT_RD)
SHUTDOWN(do_shutdown_write, SHUT_WR)
SHUTDOWN(do_shutdown_both, SHUT_RDWR)
SHUTDOWN(do_shutdown_bad, 3)

static void say_ioctl(int fd, const char *what, unsigned long request)
{
	int n = -1;

	if (say_result(what, ioctl(fd, request, &n)) >= 0)
		say("%d; ", n);
}

static void do_ioctl(struct sockets *s)
{
	say_ioctl(s->fd, "INQ", SIOCINQ);
	say_ioctl(s->fd, "OUTQ", SIOCOUTQ);
	say_ioctl(s->fd, "OUTQNSD", SIOCOUTQNSD);
	say_ioctl(s->fd, "ATMARK", SIOCATMARK);
	say_ioctl(s->fd, "unknown", 0x7777);
	SAY(ioctl(s->fd, SIOCINQ, (void *)8));
}

static void do_owner(struct sockets *s)
{
	int one = 1, pid = getpid();

	/* An acknowledgment that comes late has it sent during a later call. */
	signal(SIGIO, SIG_IGN);
	SAY(ioctl(s->fd, FIOASYNC, &one));
	SAY(ioctl(s->fd, FIOSETOWN, &pid));
	say_result("owner", ioctl(s->fd, FIOGETOWN, &pid));
	say("%d; ", pid == getpid());
	SAY(fcntl(s->fd, F_SETOWN, getpid()));
	SAY(lseek(s->fd, 0, SEEK_CUR));
	SAY(fsync(s->fd));
	SAY(ftruncate(s->fd, 0));
	SAY(pread(s->fd, buf, 1, 0));
}

static void do_splice(struct sockets *s)
{
	int fds[2];

	catch_signal(SIGPIPE, 0);
	must(pipe2(fds, O_NONBLOCK));
	SAY(splice(s->fd, NULL, fds[1], NULL, 10, SPLICE_F_NONBLOCK));
	must_be(write(fds[1], "abc", 3), 3);
	if (read(fds[0], buf, 1) == 1)
		say("'%c'; ", buf[0]);
	SAY(splice(fds[0], NULL, s->fd, NULL, 1, SPLICE_F_NONBLOCK));
}

static void do_sendfile(struct sockets *s)
{
	int file = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	off_t at = 10;

	catch_signal(SIGPIPE, 0);
	SAY(sendfile(s->fd, file, &at, 100));
	say("at %ld; ", (long)at);
}

static void do_two(struct sockets *s)
{
	struct iovec v = { "abc", 3 };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } },
	};

	SAY(sendmmsg(s->fd, m, 2, MSG_NOSIGNAL));
	v.iov_base = buf;
	SAY(recvmmsg(s->fd, m, 2, MSG_DONTWAIT, NULL));
}

struct call { const char *name; void (*make)(struct sockets *s); };

static const struct call calls[] = {
	{ "poll", do_poll }, { "send", do_send }, { "send_signal", do_send_signal },
	{ "send_nothing", do_send_nothing }, { "send_flags", do_send_flags },
	{ "send_bad", do_send_bad }, { "sendto", do_sendto }, { "writev", do_writev },
	{ "recv", do_recv }, { "recv_nothing", do_recv_nothing }, { "recv_peek", do_recv_peek },
	{ "recv_trunc", do_recv_trunc }, { "recv_waitall", do_recv_waitall },
	{ "recv_bad", do_recv_bad }, { "recv_urgent", do_recv_urgent },
	{ "recv_errors", do_recv_errors }, { "recvmsg", do_recvmsg }, { "recvfrom", do_recvfrom },
	{ "readv", do_readv }, { "bind", do_bind }, { "bind_bad", do_bind_bad },
	{ "listen", do_listen }, { "accept", do_accept }, { "accept_bad", do_accept_bad },
	{ "connect", do_connect }, { "connect_well", do_connect_well },
	{ "connect_bad", do_connect_bad }, { "disconnect", do_disconnect }, { "names", do_names },
	{ "shutdown_read", do_shutdown_read }, { "shutdown_write", do_shutdown_write },
	{ "shutdown_both", do_shutdown_both }, { "shutdown_bad", do_shutdown_bad },
	{ "ioctl", do_ioctl }, { "owner", do_owner }, { "splice", do_splice },
	{ "sendfile", do_sendfile }, { "sendmmsg", do_two },
};

/* -- Options: each with all values */

struct option_of { const char *name; int level, option; };

#define OPTION(level, name)	{ #name, level, name }

static const struct option_of options[] = {
	OPTION(SOL_SOCKET, SO_REUSEADDR), OPTION(SOL_SOCKET, SO_REUSEPORT),
	OPTION(SOL_SOCKET, SO_KEEPALIVE), OPTION(SOL_SOCKET, SO_BROADCAST),
	OPTION(SOL_SOCKET, SO_DONTROUTE), OPTION(SOL_SOCKET, SO_OOBINLINE),
	OPTION(SOL_SOCKET, SO_RCVLOWAT), OPTION(SOL_SOCKET, SO_SNDLOWAT),
	OPTION(SOL_SOCKET, SO_TIMESTAMP), OPTION(SOL_SOCKET, SO_ACCEPTCONN),
	OPTION(SOL_SOCKET, SO_TYPE), OPTION(SOL_SOCKET, SO_DOMAIN), OPTION(SOL_SOCKET, SO_ERROR),
	OPTION(SOL_SOCKET, SO_ZEROCOPY), OPTION(SOL_SOCKET, SO_BUSY_POLL),
	OPTION(SOL_SOCKET, SO_INCOMING_NAPI_ID), OPTION(SOL_SOCKET, SO_PASSCRED),
	OPTION(SOL_SOCKET, SO_LINGER), OPTION(SOL_SOCKET, SO_RCVTIMEO),
	OPTION(SOL_SOCKET, SO_NO_CHECK), OPTION(SOL_SOCKET, SO_PEEK_OFF),
	OPTION(IPPROTO_TCP, TCP_NODELAY), OPTION(IPPROTO_TCP, TCP_CORK),
	OPTION(IPPROTO_TCP, TCP_QUICKACK), OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL), OPTION(IPPROTO_TCP, TCP_KEEPCNT),
	OPTION(IPPROTO_TCP, TCP_SYNCNT), OPTION(IPPROTO_TCP, TCP_LINGER2),
	OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT), OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT), OPTION(IPPROTO_TCP, TCP_FASTOPEN),
	OPTION(IPPROTO_TCP, TCP_FASTOPEN_CONNECT), OPTION(IPPROTO_TCP, TCP_MAXSEG),
	OPTION(IPPROTO_TCP, TCP_WINDOW_CLAMP), OPTION(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS),
	OPTION(IPPROTO_TCP, TCP_THIN_DUPACK), OPTION(IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE),
	OPTION(IPPROTO_IP, IP_TOS), OPTION(IPPROTO_IP, IP_TTL),
	OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), OPTION(IPPROTO_IP, IP_MTU_DISCOVER),
	OPTION(IPPROTO_IP, IP_RECVTOS), OPTION(IPPROTO_IP, IP_FREEBIND),
	OPTION(IPPROTO_IP, IP_MINTTL), OPTION(IPPROTO_IPV6, IPV6_V6ONLY),
	OPTION(IPPROTO_IPV6, IPV6_TCLASS), OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
	OPTION(IPPROTO_IPV6, IPV6_RECVTCLASS), OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
	OPTION(IPPROTO_IPV6, IPV6_RECVPKTINFO), OPTION(IPPROTO_IP, IP_PKTINFO),
	OPTION(IPPROTO_IP, IP_RECVERR), OPTION(IPPROTO_IP, IP_RECVTTL),
	OPTION(IPPROTO_IP, IP_RECVOPTS), OPTION(IPPROTO_IP, IP_RETOPTS),
	OPTION(IPPROTO_IPV6, IPV6_RECVERR), OPTION(IPPROTO_IPV6, IPV6_FREEBIND),
	OPTION(IPPROTO_IPV6, IPV6_RECVHOPLIMIT),
	OPTION(SOL_SOCKET, SO_SNDTIMEO), OPTION(SOL_SOCKET, SO_TIMESTAMPNS),
	OPTION(SOL_SOCKET, SO_PRIORITY), OPTION(SOL_SOCKET, SO_MARK),
	OPTION(SOL_SOCKET, SO_RXQ_OVFL), OPTION(SOL_SOCKET, SO_SELECT_ERR_QUEUE),
	OPTION(SOL_SOCKET, SO_MAX_PACING_RATE), OPTION(SOL_SOCKET, SO_PEERCRED),
	OPTION(SOL_SOCKET, SO_PASSSEC), OPTION(SOL_SOCKET, SO_BUF_LOCK),
	OPTION(SOL_SOCKET, SO_DETACH_FILTER), OPTION(SOL_SOCKET, SO_LOCK_FILTER),
	OPTION(SOL_SOCKET, SO_SNDBUF), OPTION(SOL_SOCKET, SO_RCVBUF),
	OPTION(IPPROTO_TCP, TCP_CONGESTION), OPTION(IPPROTO_IP, IP_PKTOPTIONS),
	OPTION(SOL_SOCKET, SO_BINDTOIFINDEX), OPTION(SOL_SOCKET, SO_BUSY_POLL_BUDGET),
	OPTION(SOL_SOCKET, SO_CNX_ADVICE), OPTION(SOL_SOCKET, SO_TXREHASH),
	OPTION(SOL_SOCKET, SO_INCOMING_CPU), OPTION(SOL_SOCKET, SO_PREFER_BUSY_POLL),
	OPTION(SOL_SOCKET, SO_COOKIE), OPTION(SOL_SOCKET, SO_NETNS_COOKIE),
	OPTION(SOL_SOCKET, SO_TXTIME), OPTION(SOL_SOCKET, SO_MEMINFO),
	OPTION(SOL_SOCKET, SO_RESERVE_MEM), OPTION(SOL_SOCKET, SO_BPF_EXTENSIONS),
	OPTION(SOL_SOCKET, SO_PEERSEC), OPTION(SOL_SOCKET, SO_PEERGROUPS),
	OPTION(SOL_SOCKET, SO_PEERPIDFD), OPTION(SOL_SOCKET, SO_PASSPIDFD),
	OPTION(SOL_SOCKET, SO_RCVMARK), OPTION(SOL_SOCKET, SO_WIFI_STATUS),
	OPTION(SOL_SOCKET, SO_NOFCS), OPTION(SOL_SOCKET, SO_DEBUG),
	OPTION(SOL_SOCKET, SO_BSDCOMPAT),
	OPTION(SOL_SOCKET, SO_SNDBUFFORCE), OPTION(SOL_SOCKET, SO_RCVBUFFORCE),
	OPTION(SOL_SOCKET, SO_DETACH_REUSEPORT_BPF), OPTION(SOL_SOCKET, SO_TIMESTAMP_NEW),
	OPTION(SOL_SOCKET, SO_TIMESTAMPNS_NEW), OPTION(SOL_SOCKET, SO_RCVTIMEO_NEW),
	OPTION(SOL_SOCKET, SO_SNDTIMEO_NEW), OPTION(SOL_SOCKET, SO_GET_FILTER),
	OPTION(SOL_SOCKET, SO_PEERNAME), OPTION(IPPROTO_TCP, TCP_IS_MPTCP),
	OPTION(IPPROTO_TCP, TCP_INQ),
	{ "unknown_tcp", IPPROTO_TCP, 7777 }, { "unknown_socket", SOL_SOCKET, 7777 },
	{ "unknown_level", 7777, 1 },
};

/* Each socket has another one, or each time. */
static bool is_individual(const struct option_of *o)
{
	return o->level == SOL_SOCKET && (o->option == SO_COOKIE || o->option == SO_INCOMING_CPU);
}

/* Longer than int: times, SO_LINGER, SO_TXTIME. */
static socklen_t size_of(const struct option_of *o)
{
	if (o->level != SOL_SOCKET)
		return sizeof(int);
	switch (o->option) {
	case SO_LINGER:
	case SO_TXTIME:
		return 8;
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
	case SO_RCVTIMEO_NEW:
	case SO_SNDTIMEO_NEW:
		return 16;
	default:
		return sizeof(int);
	}
}

static void say_option(int fd, const struct option_of *o, socklen_t len)
{
	unsigned char value[64];
	socklen_t i;
	int err;

	memset(value, 0xa5, sizeof(value));
	err = getsockopt(fd, o->level, o->option, value, &len);
	if (say_result("is", err) < 0)
		return;
	say("[");
	for (i = 0; i < len && i < 16 && !is_individual(o); i++)
		say("%x ", value[i]);
	say("]; ");
}

static void values_of(int fd, const struct option_of *o)
{
	static const int values[] = { 0, 1, 2, -1, 30, 300, 100000, INT32_MAX };
	size_t i;

	say_option(fd, o, 64);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		int pair[4] = { values[i], values[i] };

		say("set %d: ", values[i]);
		say_result("", setsockopt(fd, o->level, o->option, pair, size_of(o)));
		say_option(fd, o, 64);
	}
}

static void shapes_of(int fd, const struct option_of *o)
{
	int value = 1, len;

	for (len = 0; len < 4; len++) {
		say("len %d: ", len);
		say_result("", setsockopt(fd, o->level, o->option, &value, len));
		say_option(fd, o, len);
	}
	SAY(setsockopt(fd, o->level, o->option, (void *)8, sizeof(value)));
	len = -1;
	SAY(getsockopt(fd, o->level, o->option, &value, (socklen_t *)&len));
	SAY(getsockopt(fd, o->level, o->option, &value, (void *)8));
}

/* Options that an accepted socket has from its listener. Its device must be the one that has its address. */
static void inherited_by(int fd, const struct option_of *o)
{
	int two[4] = { 2, 0, 2, 0 }, one[4] = { 1, 0, 1, 0 }, c;

	if (o->level == SOL_SOCKET && o->option == SO_BINDTOIFINDEX)
		two[0] = must(if_nametoindex("rxe0dev"));
	/* Some can only be 0 or 1. */
	if (SAY(setsockopt(fd, o->level, o->option, two, size_of(o))))
		SAY(setsockopt(fd, o->level, o->option, one, size_of(o)));
	c = client_of(fd);
	wait_io(fd, POLLIN);
	say_option(must(accept(fd, NULL, NULL)), o, 64);
	close(c);
}

static const struct state option_states[] = {
	{ "fresh", fresh }, { "listening", listening }, { "connected", connected },
};

/* -- The comparison */

/* Of a case: e2e.arg. Of an option's, @make is values_of() or the like. */
struct what {
	const struct call *call;
	const struct state *state;
	const struct option_of *option;
	void (*make)(int fd, const struct option_of *o);
	char name[64];
};

static void one_side(const void *arg)
{
	struct sockets s = { -1, -1, -1 };
	const struct what *w = arg;

	signals_caught = 0;
	w->state->enter(&s);
	set_nonblock(s.fd, true);
	if (w->call)
		w->call->make(&s);
	else
		w->make(s.fd, w->option);
}

static void all_sides(void)
{
	const struct what *w = e2e.arg;

	same_on_all_sides(w->name, one_side, w);
}

/* -- The cases */

#define MOST	2000

static struct what all_of_them[MOST];
static struct e2e_case cases[MOST + 1];

/* The other calls use no addresses. */
static bool family_matters(const struct call *call, const struct option_of *option)
{
	if (option)
		return option->level != SOL_SOCKET && option->level != IPPROTO_TCP;
	return call->make == do_names || call->make == do_bind_bad || call->make == do_connect_bad;
}

static void add(const struct call *call, const struct option_of *option,
		void (*make)(int fd, const struct option_of *o), const char *how, const struct state *state)
{
	static size_t n;
	struct what *w = &all_of_them[n];
	unsigned int on = family_matters(call, option) ? ON_FACES : ON_INET;

	if (n == MOST)
		abort();
	*w = (struct what){ .call = call, .state = state, .option = option, .make = make };
	snprintf(w->name, sizeof(w->name), "%s/%s%s", call ? call->name : option->name, how, state->name);
	cases[n++] = (struct e2e_case){
		.name = w->name, .run = all_sides, .on = on, .needs = NEEDS_ONE, .arg = w,
	};
}

int main(int argc, char **argv)
{
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (j = 0; j < ARRAY_SIZE(states); j++)
			add(&calls[i], NULL, NULL, "", &states[j]);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		for (j = 0; j < ARRAY_SIZE(option_states); j++)
			add(NULL, &options[i], values_of, "", &option_states[j]);
		add(NULL, &options[i], shapes_of, "shapes_", &states[0]);
		add(NULL, &options[i], inherited_by, "inherited_", &states[2]);
	}
	return e2e_main(argc, argv, cases);
}
