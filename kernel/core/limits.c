// SPDX-License-Identifier: GPL-2.0
/*
 * Per-user caps, and turns.
 *
 * A user is a uid in its user namespace. Its usage also counts for the owner of that
 * namespace, in the parent, and so on, as with the kernel's ucounts. So subordinate uids
 * and nested namespaces do not multiply caps. Namespaces that root makes are not added up
 * in one account of root: each of them as a whole is a user.
 *
 * A task with CAP_SYS_RESOURCE in the initial user namespace is counted but not bounded,
 * as with the kernel's other limits per user.
 *
 * A struct exs_user exists while anything is charged to it, and while a listener or a
 * connection remembers it. Finding one takes only RCU, and charging it a few atomic
 * operations. The lock protects changes of the table.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/ratelimit.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "limits.h"
#include "stats.h"

/**
 * struct exs_user_key - identifies a user
 * @ns: the user namespace of @uid
 * @uid: INVALID_UID: all of @ns is one user
 * @unbounded: the tasks have CAP_SYS_RESOURCE: counted, but not limited
 */
struct exs_user_key {
	struct user_namespace *ns;
	kuid_t uid;
	bool unbounded;
};

/**
 * struct exs_turns - a user's share of a pool of workers
 * @lock: guards the rest; taken in process context
 * @n: works that have a turn
 * @waiting: struct exs_turn, works that wait
 */
struct exs_turns {
	spinlock_t lock;	/* see above */
	int n;
	struct list_head waiting;
};

/**
 * struct exs_user - a user and what is charged to it
 * @node: in the table
 * @key: identifies it; a reference on its namespace
 * @parent: the user that is charged, too, whenever this one is; or NULL; a reference
 * @refs: references
 * @used: what is charged now, by enum exs_limit
 * @shares: see exs_user_shares()
 * @turns: by enum exs_pool; only those of a user without @parent are used
 * @rcu: its end
 */
struct exs_user {
	struct hlist_node node;
	struct exs_user_key key;
	struct exs_user *parent;
	refcount_t refs;
	atomic_long_t used[EXS_LIMIT_MAX];
	struct exs_shares shares;
	struct exs_turns turns[EXS_POOL_MAX];
	struct rcu_head rcu;
};

static DEFINE_SPINLOCK(exs_users_lock);
static DEFINE_HASHTABLE(exs_users, 10);

/* A cap's name, the offset of its value, and the counter of refusals. */
static const struct exs_cap {
	const char *sysctl;
	size_t max;
	enum exs_count count;
} exs_caps[EXS_LIMIT_MAX] = {
	[EXS_LIMIT_CONNS]  = { "max_user_conns", offsetof(struct exs_sysctls, max_user_conns),
			       EXS_COUNT_limit_conns },
	[EXS_LIMIT_QUEUES] = { "max_user_queues", offsetof(struct exs_sysctls, max_user_queues),
			       EXS_COUNT_limit_queues },
	[EXS_LIMIT_PAGES]  = { "max_user_pages", offsetof(struct exs_sysctls, max_user_pages),
			       EXS_COUNT_limit_pages },
	[EXS_LIMIT_OPS]    = { "max_user_ops", offsetof(struct exs_sysctls, max_user_ops),
			       EXS_COUNT_limit_ops },
	[EXS_LIMIT_HALF_OPEN] = { "max_user_half_open",
				  offsetof(struct exs_sysctls, max_user_half_open),
				  EXS_COUNT_limit_half_open },
};

static bool exs_user_is(const struct exs_user *user, const struct exs_user_key *key)
{
	return user->key.ns == key->ns && user->key.unbounded == key->unbounded &&
	       __kuid_val(user->key.uid) == __kuid_val(key->uid);
}

/* By namespace, too: one uid may be in many of them. */
static u32 exs_user_hash(const struct exs_user_key *key)
{
	return __kuid_val(key->uid) ^ hash_ptr(key->ns, 32);
}

/* With a reference, or NULL. A struct whose last reference is gone is about to be freed. */
static struct exs_user *exs_user_find(const struct exs_user_key *key)
{
	struct exs_user *user;

	rcu_read_lock();
	hash_for_each_possible_rcu(exs_users, user, node, exs_user_hash(key))
		if (exs_user_is(user, key) && refcount_inc_not_zero(&user->refs))
			break;
	rcu_read_unlock();
	return user;
}

/* The user above @key that is charged, too. False: none. */
static bool exs_user_parent_key(const struct exs_user_key *key, struct exs_user_key *parent)
{
	const struct user_namespace *ns = key->ns;

	if (ns == &init_user_ns || !uid_valid(key->uid))
		return false;
	if (ns->parent == &init_user_ns && uid_eq(ns->owner, GLOBAL_ROOT_UID))
		*parent = (struct exs_user_key) { key->ns, INVALID_UID };
	else
		*parent = (struct exs_user_key) { ns->parent, ns->owner };
	return true;
}

static void exs_turns_init(struct exs_turns *turns)
{
	unsigned int i;

	for (i = 0; i < EXS_POOL_MAX; i++) {
		spin_lock_init(&turns[i].lock);
		INIT_LIST_HEAD(&turns[i].waiting);
	}
}

static struct exs_user *exs_user_alloc(const struct exs_user_key *key)
{
	struct exs_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->key = *key;
	get_user_ns(key->ns);
	refcount_set(&user->refs, 1);
	exs_turns_init(user->turns);
	return user;
}

/* Add @fresh to the table, unless another thread was faster: then return that user. */
static struct exs_user *exs_user_insert(struct exs_user *fresh)
{
	struct exs_user *user;

	spin_lock(&exs_users_lock);
	user = exs_user_find(&fresh->key);
	if (!user)
		hash_add_rcu(exs_users, &fresh->node, exs_user_hash(&fresh->key));
	spin_unlock(&exs_users_lock);
	if (user)
		exs_user_put(fresh);
	return user ?: fresh;
}

/* Recurses as deep as user namespaces nest: at most 32. Sleeps. */
static struct exs_user *exs_user_of(const struct exs_user_key *key)
{
	struct exs_user_key above;
	struct exs_user *user;

	user = exs_user_find(key);
	if (user)
		return user;
	user = exs_user_alloc(key);
	if (!user)
		return NULL;
	if (exs_user_parent_key(key, &above)) {
		user->parent = exs_user_of(&above);
		if (!user->parent) {
			exs_user_put(user);
			return NULL;
		}
	}
	return exs_user_insert(user);
}

struct exs_user *exs_user_get_current(void)
{
	struct exs_user_key key = { current_user_ns(), current_uid() };

	if (key.ns == &init_user_ns)
		key.unbounded = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	return exs_user_of(&key);
}

struct exs_user *exs_user_get(struct exs_user *user)
{
	refcount_inc(&user->refs);
	return user;
}

/* Return: whether it was the last reference, and @user was removed from the table. */
static bool exs_user_unref(struct exs_user *user)
{
	bool last;

	if (refcount_dec_not_one(&user->refs))
		return false;
	spin_lock(&exs_users_lock);
	last = refcount_dec_and_test(&user->refs);
	if (last)
		hash_del_rcu(&user->node);
	spin_unlock(&exs_users_lock);
	return last;
}

void exs_user_put(struct exs_user *user)
{
	struct exs_user *parent;

	for (; user && exs_user_unref(user); user = parent) {
		parent = user->parent;
		put_user_ns(user->key.ns);
		kfree_rcu(user, rcu);
	}
}

void exs_limits_exit(void)
{
	WARN_ON_ONCE(!hash_empty(exs_users));
}

/* The topmost user of the chain: it has the turns. */
static struct exs_user *exs_user_top(struct exs_user *user)
{
	while (user->parent)
		user = user->parent;
	return user;
}

struct exs_shares *exs_user_shares(struct exs_user *user)
{
	return &exs_user_top(user)->shares;
}

static int exs_limit_refuse(const struct exs_net *xn, enum exs_limit what,
			    const struct exs_user *user)
{
	const struct exs_cap *cap = &exs_caps[what];

	exs_count_at(xn, cap->count, 1);
	pr_debug_ratelimited("exs: user %u has reached net.exs.%s\n",
			     __kuid_val(user->key.uid), cap->sysctl);
	return -ENOBUFS;
}

static int exs_cap_max(const struct exs_net *xn, enum exs_limit what)
{
	return READ_ONCE(*(const int *)((const void *)&xn->sysctl + exs_caps[what].max));
}

/* The cap of @user; for users above it, that of the initial namespace. */
static long exs_limit_max(const struct exs_net *xn, enum exs_limit what,
			  const struct exs_user *user, bool above)
{
	long max = exs_cap_max(exs_net(&init_net), what);

	if (user->key.unbounded)
		return LONG_MAX;
	return above ? max : min_t(long, max, exs_cap_max(xn, what));
}

static bool exs_charge_one(atomic_long_t *used, long n, long max)
{
	long old = atomic_long_read(used);

	do {
		if (n > max - old)
			return false;
	} while (!atomic_long_try_cmpxchg(used, &old, old + n));
	return true;
}

static void exs_uncharge_below(enum exs_limit what, long n, struct exs_user *user,
			       const struct exs_user *end)
{
	for (; user != end; user = user->parent)
		WARN_ON_ONCE(atomic_long_sub_return(n, &user->used[what]) < 0);
}

int exs_limit_charge_user(const struct exs_net *xn, enum exs_limit what, long n,
			  struct exs_user *user)
{
	struct exs_user *each;

	for (each = user; each; each = each->parent) {
		if (exs_charge_one(&each->used[what], n,
				   exs_limit_max(xn, what, each, each != user)))
			continue;
		exs_uncharge_below(what, n, user, each);
		return exs_limit_refuse(xn, what, each);
	}
	refcount_inc(&user->refs);
	return 0;
}

bool exs_limit_reached(const struct exs_net *xn, enum exs_limit what,
		       const struct exs_user *user)
{
	const struct exs_user *each;

	for (each = user; each; each = each->parent)
		if (atomic_long_read(&each->used[what]) >=
		    exs_limit_max(xn, what, each, each != user))
			return exs_limit_refuse(xn, what, each);
	return false;
}

int exs_limit_charge(enum exs_limit what, long n, struct exs_user **user)
{
	struct exs_user *self = exs_user_get_current();
	int err;

	if (!self)
		return -ENOMEM;
	err = exs_limit_charge_user(exs_net_current(), what, n, self);
	if (!err)
		*user = self;
	exs_user_put(self);
	return err;
}

void exs_limit_uncharge(enum exs_limit what, long n, struct exs_user *user)
{
	exs_uncharge_below(what, n, user, NULL);
	exs_user_put(user);
}

static struct exs_turns *exs_turns(struct exs_user *user, enum exs_pool pool)
{
	return &exs_user_top(user)->turns[pool];
}

static bool exs_turns_left(const struct exs_turns *turns)
{
	lockdep_assert_held(&turns->lock);
	return turns->n < READ_ONCE(exs_sysctl_max_user_workers);
}

/* More than one begins if the sysctl was raised meanwhile. */
static void exs_turns_end(struct exs_turns *turns)
{
	struct exs_turn *next;

	turns->n--;
	while (exs_turns_left(turns) && !list_empty(&turns->waiting)) {
		next = list_first_entry(&turns->waiting, struct exs_turn, node);
		list_del_init(&next->node);
		next->given = true;
		turns->n++;
		next->again(next);
	}
}

int exs_turn_take(struct exs_user *user, struct exs_turn *turn)
{
	struct exs_turns *turns = exs_turns(user, turn->pool);
	int ret = -EALREADY;

	spin_lock(&turns->lock);
	if (list_empty(&turn->node)) {
		ret = turn->given ? EXS_TURN_WAITED : exs_turns_left(turns);
		if (!ret)
			list_add_tail(&turn->node, &turns->waiting);
		else if (!turn->given)
			turns->n++;
		turn->given = false;
	}
	spin_unlock(&turns->lock);
	if (ret > 0)
		exs_user_get(user);
	if (!ret)
		exs_count(exs_net(&init_net), turns_waited, 1);
	return ret;
}

bool exs_turn_withdraw(struct exs_user *user, struct exs_turn *turn)
{
	struct exs_turns *turns = exs_turns(user, turn->pool);
	bool waited;

	spin_lock(&turns->lock);
	waited = !list_empty(&turn->node);
	list_del_init(&turn->node);
	spin_unlock(&turns->lock);
	return waited;
}

bool exs_turn_leave(struct exs_user *user, struct exs_turn *turn)
{
	struct exs_turns *turns = exs_turns(user, turn->pool);
	bool waited;

	spin_lock(&turns->lock);
	waited = !list_empty(&turn->node);
	list_del_init(&turn->node);
	if (turn->given)
		exs_turns_end(turns);
	turn->given = false;
	spin_unlock(&turns->lock);
	return waited;
}

void exs_turn_pass(struct exs_user *user, enum exs_pool pool)
{
	struct exs_turns *turns = exs_turns(user, pool);

	spin_lock(&turns->lock);
	exs_turns_end(turns);
	spin_unlock(&turns->lock);
	exs_user_put(user);
}
