/* SPDX-License-Identifier: GPL-2.0 */
/* How an accepted connection gets its descriptor. */
#ifndef EXS_ASYNC_CLAIM_H
#define EXS_ASYNC_CLAIM_H

struct exs_queue;

/* EXS_IOC_CLAIM */
int exs_queue_claim(struct exs_queue *q, void __user *arg);

#endif
