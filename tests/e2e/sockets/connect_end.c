// SPDX-License-Identifier: GPL-2.0
/*
 * Attempts to connect that this system ends, not the peer: by the device, which goes or fails, or by the administrator.
 */
#include "lib/async.h"

#include <linux/exs.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>

#define ROCE_PORT	4791

/* The CM's request to connect is on its way to @to. */
static void wait_request(int tap, const union address *to)
{
	struct { struct iphdr ip; struct udphdr udp; } p = {};

	do {
		wait_io(tap, POLLIN);
		must(recv(tap, &p, sizeof(p), 0));
	} while (p.ip.daddr != to->in.sin_addr.s_addr || p.ip.protocol != IPPROTO_UDP ||
		 p.udp.dest != htons(ROCE_PORT));
}

/* No host answers, so nothing else can end an attempt meanwhile. */
static union address nowhere(void)
{
	return address_from(AF_INET, "10.77.0.9", 99);
}

static void delete_below_attempt(void *arg)
{
	int tap = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
	union address to = nowhere();
	exs_qhandle_t q = queue_new(1);

	(void)arg;
	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	wait_request(tap, &to);
	no_event(q);
	delete_device();
	event_is(q, EXS_EVT_CONNECT, 1, ENETDOWN, 0);
	no_event(q);
}

/* TCP goes on where EXS had to stop: it gets no answer either. */
static void delete_below_fallback(void *arg)
{
	int tap = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL))), fd, why;
	union address to = nowhere();
	socklen_t len = sizeof(why);

	(void)arg;
	e2e.fallback = 1;
	/* Only the device's end can end the attempt; results of other tests must not count. */
	write_sysctl("fallback_memory", 0);
	write_sysctl("fallback_timeout", 3600 * 1000);
	write_sysctl("connect_timeout", 3600 * 1000);
	fd = new_socket();
	set_nonblock(fd, true);
	must_fail(connect(fd, &to.sa, address_len(&to)), EINPROGRESS);
	wait_request(tap, &to);
	must_be(delta("fallback_other"), 0);
	delete_device();
	wait_delta("fallback_other", 1);
	must(getsockopt(fd, SOL_EXS, EXS_SO_FELL_BACK, &why, &len));
	must_be(why, EXS_FELL_BACK_OTHER);
	must_fail(connect(fd, &to.sa, address_len(&to)), EALREADY);
	must_be(so_error(fd), 0);
}

static void device_deleted(void)
{
	with_device_restored(e2e.protocol ? delete_below_fallback : delete_below_attempt);
}

/*
 * soft-iWARP connects in the namespace of the task that does it, and only one that
 * waits in connect(2) does that itself.
 */
static void in_namespace(void)
{
	exs_qhandle_t q = queue_new(1);
	int fd = listener(4), c;
	union address to = name_of(fd);

	c = socket_on(CLIENT);
	must(exs_connect(c, &to.sa, address_len(&to), 0, q, 1));
	event_is(q, EXS_EVT_CONNECT, 1, EOPNOTSUPP, 0);
	no_event(q);
	c = socket_on(CLIENT);
	must_be(exs_connect(c, &to.sa, address_len(&to), 0, EXS_QHANDLE_INVALID, 2), 0);
	must(accept(fd, NULL, NULL));
}

static void destroyed(void)
{
	union address to = nowhere();
	exs_qhandle_t q = queue_new(1);

	must(exs_connect(new_socket(), &to.sa, address_len(&to), 0, q, 1));
	no_event(q);
	shell("ss -K -t -H dst 10.77.0.9 | grep -q SYN-SENT");
	event_is(q, EXS_EVT_CONNECT, 1, ECONNABORTED, 0);
	no_event(q);
}

static const struct e2e_case cases[] = {
	{ "device_deleted", device_deleted, .on = ON_BOTH | ON_INET, .needs = NEEDS_ONE },
	{ "in_namespace", in_namespace, .on = ON_ALL6 },
	/* CONFIG_INET_DIAG_DESTROY: not in the debug kernel. */
	{ "destroyed", destroyed, .on = ON_TCP, .needs = NEEDS_ONE },
	{}
};

int main(int argc, char **argv)
{
	return e2e_main(argc, argv, cases);
}
