// SPDX-License-Identifier: GPL-2.0
/*
 * How devices differ: the quirks of each protocol or driver, and why. What the standard
 * says belongs to a protocol, what only one provider does belongs to its driver.
 *
 * Where it costs nothing, what one provider needs is done for every device, without a
 * quirk:
 *
 *   soft-RoCE
 *	counts retries only of packets that have left	verbs_stall.c
 *	a CM handler may undo the error state		exs_verbs_fail_qp()
 *	its send queue does not grow for inline data	exs_verbs_make_queue_pair()
 *   soft-iWARP
 *	refuses more than 80 bytes of inline data	exs_verbs_make_queue_pair()
 *	refuses inline data with invalidate		exs_verbs_sends_inline()
 *	posting fails once the peer has left		exs_verbs_post_errno()
 *	ib_map_mr_sg() ignores the offset		exs_verbs_key_map()
 *	forgets requests beyond the backlog		EXS_VERBS_REQUESTS
 *	destroying a listener loses signals		exs_verbs_remove()
 *	makes TCP's socket in the caller's namespace	exs_verbs_drive()
 *	completes what TCP has taken, not the peer	(no remedy; verbs_stall.c)
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "verbs_quirks.h"

enum exs_quirky {
	EXS_QUIRKY_IWARP,	/* every device with it            */
	EXS_QUIRKY_IB,		/* the others: RoCE, InfiniBand    */
	EXS_QUIRKY_SIW,
	EXS_QUIRKY_RXE,
};

static const struct {
	enum exs_quirky who;
	u32 quirk;
} exs_quirks[] = {
	/* The standard has no RDMA WRITE with immediate: a SEND follows. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_NO_IMM },
	/* A completion says that TCP has the bytes, not the peer. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_UNCONFIRMED },
	/* It connects and listens by TCP, but the CM uses a separate port space. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_TCP_PORT },
	/* The answer is MPA's: its status is an errno, not an enum ib_cm_rej_reason. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_NO_REASON },
	/* The end of TCP, detected by sending, is an error of the queue pair or the request. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_FAILED_IS_END },
	/* The error state may reset TCP while it still has bytes to deliver. */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_ERROR_RESETS },
	/* rdma_connect() may sleep until TCP is connected (siw). */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_SLOW_CONNECT },
	/*
	 * The peer's provider, whatever ours is, may send the answer before it listens to
	 * its socket: data that arrives in between is noticed only when more follows (siw).
	 */
	{ EXS_QUIRKY_IWARP, EXS_QUIRK_DEAF_ACCEPT },
	/* TCP's sockets are made in the calling task's network namespace. */
	{ EXS_QUIRKY_SIW, EXS_QUIRK_CALLERS_NET },
	/* The kernel's TCP goes on by any device that has the IP address. */
	{ EXS_QUIRKY_SIW, EXS_QUIRK_MOVES },
	/*
	 * TCP gets the pages themselves of an unsignalled write, and its completion,
	 * implied by the next, comes before they are sent.
	 */
	{ EXS_QUIRKY_SIW, EXS_QUIRK_SIGNAL_ALL },
	/*
	 * rxe may access a queue pair after its last reference is gone if packets arrive
	 * while it is destroyed. For the others waiting for the peer costs only a moment.
	 */
	{ EXS_QUIRKY_IB, EXS_QUIRK_LATE_PACKETS },
	/* Retransmission repeats all requests in between, also local ones. */
	{ EXS_QUIRKY_RXE, EXS_QUIRK_REPEATS },
	/* Seven retries, the standard's most, are any number: so the timeout may be short. */
	{ EXS_QUIRKY_RXE, EXS_QUIRK_TIRELESS },
};

static bool exs_is_quirky(const struct rdma_cm_id *id, enum exs_quirky who)
{
	enum rdma_driver_id driver = id->device->ops.driver_id;

	switch (who) {
	case EXS_QUIRKY_IWARP:
		return rdma_protocol_iwarp(id->device, id->port_num);
	case EXS_QUIRKY_IB:
		return !rdma_protocol_iwarp(id->device, id->port_num);
	case EXS_QUIRKY_SIW:
		return driver == RDMA_DRIVER_SIW;
	case EXS_QUIRKY_RXE:
		return driver == RDMA_DRIVER_RXE;
	}
	return false;
}

u32 exs_verbs_quirks(const struct rdma_cm_id *id)
{
	u32 quirks = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(exs_quirks); i++)
		if (exs_is_quirky(id, exs_quirks[i].who))
			quirks |= exs_quirks[i].quirk;
	return quirks;
}
