/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is counted: live objects, and every decision that refuses, retries,
 * falls back or resets. One row each; /proc/net/exs prints them by name. The network
 * namespace that counts is that of the socket, or of whoever made the object: net.h.
 */
#ifndef EXS_CORE_STATS_H
#define EXS_CORE_STATS_H

#include <linux/percpu.h>

#include "net.h"

/* Live objects: all zero when nobody uses the module. */
#define EXS_LIVE_TABLE(X)	\
	X(sockets)		\
	X(conns)		\
	X(endpoints)		\
	X(orphans)		\
	X(xfers)		\
	X(queues)		\
	X(regions)		\
	X(ops)			\
	X(feeds)		\
	X(aio_reads)		\
	X(lanes)		\
	X(pinned_pages)		\
	X(mrs)			\
	X(rings)

/* Events since the module was loaded. */
#define EXS_COUNT_TABLE(X)	\
	X(ops_submitted)	\
	X(ops_posted)		\
	X(ops_discarded)	\
	X(ops_timed_out)	\
	X(timeout_looks)	\
	X(ops_cancelled)	\
	X(cancel_looks)		\
	X(queue_full)		\
	X(waiter_completions)	\
	X(waiter_given_up)	\
	X(busy_completions)	\
	X(busy_given_up)	\
	X(region_memlock)	\
	X(region_stale)		\
	X(oneshot_regions)	\
	X(copied_sends)		\
	X(file_bytes)		\
	X(file_copied_bytes)	\
	X(files_refused)	\
	X(zerocopy_bytes)	\
	X(zerocopy_unpinned)	\
	X(aio_reads)		\
	X(aio_unpinned)		\
	X(aio_cancelled)	\
	X(foreign_retries)	\
	X(foreign_backoffs)	\
	X(senders_unnamed)	\
	X(accepts_again)	\
	X(connects)		\
	X(accepts)		\
	X(accepts_tcp)		\
	X(connect_refused)	\
	X(connect_timeout)	\
	X(fallback_no_device)	\
	X(fallback_no_route)	\
	X(fallback_no_answer)	\
	X(fallback_refused)	\
	X(fallback_version)	\
	X(fallback_limit)	\
	X(fallback_nomem)	\
	X(fallback_remembered)	\
	X(fallback_disabled)	\
	X(fallback_option)	\
	X(fallback_iwarp)	\
	X(fallback_port)	\
	X(fallback_rule)	\
	X(fallback_other)	\
	X(refused_version)	\
	X(refused_hello)	\
	X(refused_socktype)	\
	X(refused_backlog)	\
	X(refused_limit)	\
	X(refused_disabled)	\
	X(reject_backlog)	\
	X(reject_half_open)	\
	X(reject_hello)		\
	X(reject_version)	\
	X(reject_socktype)	\
	X(reject_device)	\
	X(reject_nomem)		\
	X(reject_limit)		\
	X(reject_disabled)	\
	X(handshake_timeout)	\
	X(stall_timeout)	\
	X(stall_probes)		\
	X(revoke_timeout)	\
	X(greetings_again)	\
	X(listens_again)	\
	X(limit_conns)		\
	X(limit_queues)		\
	X(limit_pages)		\
	X(limit_ops)		\
	X(limit_half_open)	\
	X(turns_waited)		\
	X(orphan_limit)		\
	X(linger_expired)	\
	X(acks_awaited)		\
	X(resets_protocol)	\
	X(resets_transport)	\
	X(resets_device)	\
	X(resets_nomem)		\
	X(mr_alloc_failed)	\
	X(scattered_sends)	\
	X(scattered_recvs)	\
	X(direct_tx_bytes)	\
	X(indirect_tx_bytes)	\
	X(eager_tx_bytes)	\
	X(inline_tx_bytes)	\
	X(adverts_tx)		\
	X(adverts_dropped)	\
	X(phase_switches)	\
	X(revokes)		\
	X(credit_stalls)	\
	X(ring_stalls)		\
	X(fetch_failed)		\
	X(memory_waits)		\
	X(invalidations)	\
	X(remote_invalidations)	\
	X(cq_placed)

#define X(name) EXS_LIVE_##name,
enum exs_live { EXS_LIVE_TABLE(X) EXS_LIVE_MAX };
#undef X
#define X(name) EXS_COUNT_##name,
enum exs_count { EXS_COUNT_TABLE(X) EXS_COUNT_MAX };
#undef X

/* What one processor has counted in one network namespace; only sums mean anything. */
struct exs_counters {
	long live[EXS_LIVE_MAX];
	long count[EXS_COUNT_MAX];
};

/* Any context. @xn: struct exs_net. exs_live(xn, ops, -1), exs_count(xn, revokes, 1) */
#define exs_live(xn, name, n)	exs_count_at(xn, live[EXS_LIVE_##name], n)
#define exs_count(xn, name, n)	exs_count_at(xn, count[EXS_COUNT_##name], n)
#define exs_count_at(xn, at, n)	this_cpu_add((xn)->counters->at, (long)(n))

#endif
