// SPDX-License-Identifier: GPL-2.0
/*
 * Per-user caps, and turns.
 *
 * A user is a uid of the initial user namespace, so that a user who makes
 * namespaces of their own gains nothing. Its counters exist while anything
 * is charged to them, and while a listener remembers its owner.
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "limits.h"
#include "stats.h"

struct exs_user {
	struct hlist_node node;
	kuid_t uid;
	unsigned long refs;
	long used[EXS_LIMIT_MAX];
	int turns;
	struct list_head waiting;
};

static DEFINE_SPINLOCK(exs_users_lock);
static DEFINE_HASHTABLE(exs_users, 6);

/* What a cap is called, and where its present value stands. */
static const struct exs_cap {
	const char *sysctl;
	const int *max;
	enum exs_count count;
} exs_caps[EXS_LIMIT_MAX] = {
	[EXS_LIMIT_CONNS]  = { "max_user_conns", &exs_sysctl_max_user_conns,
			       EXS_COUNT_limit_conns },
	[EXS_LIMIT_QUEUES] = { "max_user_queues", &exs_sysctl_max_user_queues,
			       EXS_COUNT_limit_queues },
	[EXS_LIMIT_PAGES]  = { "max_user_pages", &exs_sysctl_max_user_pages,
			       EXS_COUNT_limit_pages },
};

static struct exs_user *exs_user_find(kuid_t uid)
{
	struct exs_user *user;

	lockdep_assert_held(&exs_users_lock);
	hash_for_each_possible(exs_users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

struct exs_user *exs_user_get_current(void)
{
	struct exs_user *user, *fresh;
	kuid_t uid = current_uid();

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	fresh->uid = uid;
	INIT_LIST_HEAD(&fresh->waiting);
	spin_lock(&exs_users_lock);
	user = exs_user_find(uid);
	if (!user) {
		user = fresh;
		fresh = NULL;
		hash_add(exs_users, &user->node, __kuid_val(uid));
	}
	user->refs++;
	spin_unlock(&exs_users_lock);
	kfree(fresh);
	return user;
}

void exs_user_put(struct exs_user *user)
{
	bool last;

	spin_lock(&exs_users_lock);
	last = !--user->refs;
	if (last)
		hash_del(&user->node);
	spin_unlock(&exs_users_lock);
	if (last)
		kfree(user);
}

static int exs_limit_refuse(enum exs_limit what, const struct exs_user *user)
{
	const struct exs_cap *cap = &exs_caps[what];

	atomic_long_inc(&exs_counts[cap->count]);
	pr_notice_ratelimited("exs: uid %u has reached net.exs.%s = %d\n",
			      __kuid_val(user->uid), cap->sysctl, READ_ONCE(*cap->max));
	return -ENOBUFS;
}

int exs_limit_charge_user(enum exs_limit what, long n, struct exs_user *user)
{
	long max = READ_ONCE(*exs_caps[what].max);
	bool fits;

	spin_lock(&exs_users_lock);
	fits = n <= max - user->used[what];
	if (fits) {
		user->used[what] += n;
		user->refs++;
	}
	spin_unlock(&exs_users_lock);
	return fits ? 0 : exs_limit_refuse(what, user);
}

int exs_limit_charge(enum exs_limit what, long n, struct exs_user **user)
{
	struct exs_user *self = exs_user_get_current();
	int err;

	if (!self)
		return -ENOMEM;
	err = exs_limit_charge_user(what, n, self);
	if (!err)
		*user = self;
	exs_user_put(self);
	return err;
}

void exs_limit_uncharge(enum exs_limit what, long n, struct exs_user *user)
{
	spin_lock(&exs_users_lock);
	user->used[what] -= n;
	WARN_ON_ONCE(user->used[what] < 0);
	spin_unlock(&exs_users_lock);
	exs_user_put(user);
}

int exs_turn_take(struct exs_user *user, struct exs_turn *turn)
{
	int ret = -EALREADY;

	spin_lock(&exs_users_lock);
	if (list_empty(&turn->node)) {
		ret = turn->given || user->turns < READ_ONCE(exs_sysctl_max_user_workers);
		if (!ret)
			list_add_tail(&turn->node, &user->waiting);
		else if (!turn->given)
			user->turns++;
		turn->given = false;
	}
	spin_unlock(&exs_users_lock);
	if (!ret)
		exs_count(turns_waited, 1);
	return ret;
}

void exs_turn_end(struct exs_user *user)
{
	spin_lock(&exs_users_lock);
	user->turns--;
	spin_unlock(&exs_users_lock);
}

struct exs_turn *exs_turn_next(struct exs_user *user)
{
	struct exs_turn *next;

	spin_lock(&exs_users_lock);
	next = list_first_entry_or_null(&user->waiting, struct exs_turn, node);
	if (user->turns >= READ_ONCE(exs_sysctl_max_user_workers))
		next = NULL;
	if (next) {
		list_del_init(&next->node);
		next->given = true;
		user->turns++;
	}
	spin_unlock(&exs_users_lock);
	return next;
}
