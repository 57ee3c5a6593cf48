/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-user caps: what core/ needs beyond sock.h.
 */
#ifndef EXS_CORE_LIMITS_H
#define EXS_CORE_LIMITS_H

#include "sock.h"

/* No reference to a user is left. */
void exs_limits_exit(void);

/* The calling task's user, a reference; NULL: no memory. Sleeps. */
struct exs_user *exs_user_get_current(void);

/* Whether a charge of one would be refused now; this is counted. Any context. */
bool exs_limit_reached(const struct exs_net *xn, enum exs_limit what,
		       const struct exs_user *user);

/**
 * struct exs_shares - a user's part of what all users share
 * @orphans: orphans; the lock of the orphans
 * @peer_pages: see exs_peer_pages_charge(); its lock
 */
struct exs_shares {
	int orphans;
	long peer_pages;
};

/* The shares of the topmost user above @user. */
struct exs_shares *exs_user_shares(struct exs_user *user);

/* sysctl net.exs.max_user_workers, max_peer_pages */
extern int exs_sysctl_max_user_workers, exs_sysctl_max_peer_pages;

#endif
