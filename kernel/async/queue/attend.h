/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXS_ASYNC_ATTEND_H
#define EXS_ASYNC_ATTEND_H

#include <linux/types.h>
#include <linux/wait.h>

struct exs_conn;
struct exs_net;
struct exs_queue;

#define EXS_ATTEND_CONNS	8

/**
 * struct exs_attended - a connection that a waiting thread attends to
 * @conn: a reference; NULL: it is over
 * @entry: where the transport's event finds the thread
 * @event: it came; without lock
 */
struct exs_attended {
	struct exs_conn *conn;
	wait_queue_entry_t entry;
	bool event;
};

/**
 * struct exs_attend - what a waiting thread attends to; on its stack
 * @n: connections
 * @conns: these
 */
struct exs_attend {
	unsigned int n;
	struct exs_attended conns[EXS_ATTEND_CONNS];
};

/*
 * Process context, no lock held, and all by the thread that began. From begin to
 * end the transports count on the thread to answer their events. Everything but
 * exs_attend_due() may sleep.
 */

/* The connections of @q's oldest operations. */
void exs_attend_begin(struct exs_attend *a, struct exs_queue *q);

/* Stop; the last events are still handled here. */
void exs_attend_end(struct exs_attend *a);

/* As exs_attend_end(), because the events brought @q nothing again and again. */
void exs_attend_give_up(struct exs_attend *a, struct exs_net *xn);

/* Whether an event came. Between set_current_state() and schedule(), too. */
static inline bool exs_attend_due(const struct exs_attend *a)
{
	unsigned int i;

	for (i = 0; i < a->n; i++)
		if (READ_ONCE(a->conns[i].event))
			return true;
	return false;
}

/*
 * Process the completions that events reported, a bounded part, and request the next events.
 * Connections that have ended are let go.
 */
void exs_attend_drain(struct exs_attend *a);

/* Process completions, a batch of each connection, with or without event. Return:
 * whether any connection is up.
 */
bool exs_attend_poll(struct exs_attend *a);

#endif
