/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verbs transport: rdma_cm identifiers and RC queue pairs.
 *
 * Core sees it as struct exs_transport (core/transport.h) and struct exs_ep_ops (core/conn.h).
 */
#ifndef EXS_TRANSPORT_VERBS_H
#define EXS_TRANSPORT_VERBS_H

/* Makes the work queues. */
int exs_verbs_init(void);
/* Waits until every endpoint is gone; called when no socket is left. */
void exs_verbs_exit(void);

#endif
