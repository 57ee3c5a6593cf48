// SPDX-License-Identifier: GPL-2.0
/*
 * The stall watchdog.
 *
 * A provider gives up on a peer that does not acknowledge, but counts a retry only when the
 * packets have left: soft-RoCE waits without limit while the network device holds them
 * back. And a send may wait for the peer (credits, a buffer, ring space) without anything
 * in the send queue that could fail. So, while there is something to send, a chain must
 * complete every net.exs.stall_timeout. If none is posted, or only unsignalled ones, one
 * without effect is posted after half that time. TCP_USER_TIMEOUT shortens this time for
 * its connection.
 *
 * soft-iWARP completes what its TCP socket has taken: there, a dead peer is detected when
 * the socket's buffer is full, or by TCP.
 *
 * Posting and completing only record the time. One delayed work checks it when necessary:
 * an idle endpoint has no timer, unless the program set SO_KEEPALIVE. Then such a chain is
 * posted after TCP_KEEPIDLE without a sign of life from the peer, although there is nothing
 * to send; the program's own calls do not count. The work needs no reference, because
 * teardown waits for it; nothing is posted by then.
 */
#include <linux/jiffies.h>

#include "core/sock.h"
#include "core/stats.h"
#include "verbs_internal.h"

/* conn->lock held. */
static unsigned long exs_verbs_patience(const struct exs_verbs_ep *v)
{
	unsigned long most = msecs_to_jiffies(exs_sysctl_cap(v->ep.conn->xn, stall_timeout));

	/* Half of it is a jiffy at least. */
	return max(min(most, exs_conn_user_timeout(v->ep.conn) ?: ULONG_MAX), 2UL);
}

/* There may be something to send. conn->lock held. */
void exs_verbs_watch(struct exs_verbs_ep *v)
{
	lockdep_assert_held(&v->ep.conn->lock);
	v->watched = true;
	v->progress = jiffies;
	/* It may be queued already, for a keepalive. */
	mod_delayed_work(exs_verbs_wq, &v->stall_work,
			 min(exs_verbs_patience(v) / 2,
			     exs_conn_keepalive(v->ep.conn) ?: ULONG_MAX));
}

static void exs_verbs_probe(struct exs_verbs_ep *v)
{
	int err = exs_verbs_post_probe(v);

	if (err)
		exs_verbs_note_lost(v, -exs_verbs_post_errno(v, err));
	else
		exs_count(v->ep.conn->xn, stall_probes, 1);
}

/* Return: whether it has stalled; otherwise it is checked again if necessary. */
static bool exs_verbs_look(struct exs_verbs_ep *v)
{
	unsigned long patience = exs_verbs_patience(v), now = jiffies, wait, since;
	struct exs_conn *conn = v->ep.conn;

	lockdep_assert_held(&conn->lock);
	v->watched = false;
	if (conn->state != EXS_CONN_UP || v->failed)
		return false;
	v->watched = v->chains || v->unsignaled || exs_conn_sending(conn);
	wait = v->watched ? patience / 2 : exs_conn_keepalive(conn);
	if (!wait)
		return false;
	since = v->watched ? v->progress : v->alive;
	if (!v->chains && now - since >= wait) {
		exs_verbs_probe(v);
		v->watched = true;
		/* The other half is for its answer. */
		since = now - patience / 2;
		v->progress = since;
	}
	if (v->chains)
		wait = patience;
	if (now - since >= wait)
		return true;
	queue_delayed_work(exs_verbs_wq, &v->stall_work, wait - (now - since));
	return false;
}

void exs_verbs_stall_work(struct work_struct *work)
{
	struct exs_verbs_ep *v = container_of(to_delayed_work(work),
					      struct exs_verbs_ep, stall_work);
	struct exs_conn *conn = v->ep.conn;
	bool stalled;

	/* Completions count even if no thread has processed them yet. */
	exs_verbs_poll(v);
	spin_lock(&conn->lock);
	stalled = exs_verbs_look(v);
	spin_unlock(&conn->lock);
	if (!stalled)
		return;
	exs_count(v->ep.conn->xn, stall_timeout, 1);
	exs_conn_lost(conn, ETIMEDOUT);
}
