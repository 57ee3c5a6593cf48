// SPDX-License-Identifier: GPL-2.0
/*
 * Identifiers that are bound or listen.
 *
 * A connection request is refused before anything is allocated for it, or
 * becomes an endpoint that is pending until its hand-shake is settled: exactly
 * one of exs_listen_established() and exs_listen_failed() is called for it. The
 * listener's end settles those that are left, so that no callback comes later.
 *
 * An identifier with a specific address ends with the device that has it. A
 * listener then tries again until some device has that address: the device may
 * come back before its network interface does, or the interface before its
 * address, and no single event would tell.
 */
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "core/sock.h"
#include "core/stats.h"
#include "verbs_internal.h"

#define EXS_VERBS_RENEWAL	HZ	/* between two attempts */
/*
 * Requests that the provider may hold until our handler has seen them; core's backlog
 * counts from there. siw forgets a request beyond it, whose peer then waits in
 * vain, and whose end is taken for the listener's.
 */
#define EXS_VERBS_REQUESTS	128

/**
 * struct exs_verbs_listener - a bound identifier
 * @ref: the socket's, one of each pending endpoint, one of queued work
 * @net: the socket's
 * @flags: EXS_BIND_*
 * @id_lock: guards what follows up to @listening; never held while the CM's
 *	handlers are waited for
 * @id: NULL once it was used up, or its device went
 * @addr: that it is bound to
 * @backlog: that it listens with
 * @listening: another is made if its device goes
 * @removed: its device went; the identifier's handler_mutex
 * @lock: guards @pending; held over the callbacks that settle
 * @pending: endpoints whose hand-shake is under way
 * @listen: core's, from exs_verbs_listen() to exs_verbs_unbind()
 * @renewal: destroys @id, makes another
 */
struct exs_verbs_listener {
	struct kref ref;
	struct net *net;
	unsigned int flags;
	struct mutex id_lock;	/* id, addr, backlog, listening */
	struct rdma_cm_id *id;
	struct sockaddr_storage addr;
	int backlog;
	bool listening;
	bool removed;
	struct mutex lock;	/* pending */
	struct list_head pending;
	struct exs_listen *listen;
	struct delayed_work renewal;
};

static void exs_verbs_listener_free(struct kref *ref)
{
	kfree(container_of(ref, struct exs_verbs_listener, ref));
}

static void exs_verbs_listener_put(struct exs_verbs_listener *l)
{
	kref_put(&l->ref, exs_verbs_listener_free);
}

static struct rdma_cm_id *exs_verbs_listener_take_id(struct exs_verbs_listener *l)
{
	struct rdma_cm_id *id;

	mutex_lock(&l->id_lock);
	id = l->id;
	l->id = NULL;
	mutex_unlock(&l->id_lock);
	return id;
}

static void exs_verbs_listener_drop_id(struct exs_verbs_listener *l)
{
	struct rdma_cm_id *id = exs_verbs_listener_take_id(l);

	if (id)
		rdma_destroy_id(id);
}

/* The CM waits until identifiers of a device that goes are destroyed: its handler
 * has to leave that to a work.
 */
static void exs_verbs_renew_later(struct exs_verbs_listener *l, unsigned long delay)
{
	kref_get(&l->ref);
	if (!queue_delayed_work(exs_verbs_wq, &l->renewal, delay))
		exs_verbs_listener_put(l);
}

/*
 * The listener ends. In a worker as well: siw loses signals of the task that
 * destroys a listener, even a SIGKILL.
 */
static void exs_verbs_remove(struct exs_verbs_listener *l)
{
	kref_get(&l->ref);
	if (mod_delayed_work(exs_verbs_wq, &l->renewal, 0))
		exs_verbs_listener_put(l);
}

/* The hand-shake of a passive endpoint is over. Sleeps; once counts. */
void exs_verbs_settle(struct exs_verbs_ep *v, bool established)
{
	struct exs_verbs_listener *l = v->listener;

	if (!l)
		return;
	mutex_lock(&l->lock);
	if (!list_empty(&v->pending)) {
		list_del_init(&v->pending);
		if (established)
			exs_listen_established(l->listen, v->ep.conn);
		else
			exs_listen_failed(l->listen, v->ep.conn);
	}
	mutex_unlock(&l->lock);
	/* The teardown's call is the last. */
	if (!established) {
		v->listener = NULL;
		exs_verbs_listener_put(l);
	}
}

/* The endpoint of a request; it owns @id and @conn's reference if it is made. */
static struct exs_verbs_ep *exs_verbs_adopt(struct exs_verbs_listener *l,
					    struct rdma_cm_id *id,
					    struct exs_conn *conn,
					    const struct exs_hello *hello)
{
	struct exs_verbs_ep *v = exs_verbs_alloc(conn, id);

	if (!v)
		return NULL;
	v->peer = *hello;
	v->greeted = true;
	v->listener = l;
	kref_get(&l->ref);
	mutex_lock(&l->lock);
	list_add_tail(&v->pending, &l->pending);
	mutex_unlock(&l->lock);
	exs_verbs_addresses(v);
	id->context = v;
	id->event_handler = exs_verbs_conn_event;
	spin_lock(&conn->lock);
	conn->ep = &v->ep;
	spin_unlock(&conn->lock);
	return v;
}

static int exs_verbs_refuse(struct rdma_cm_id *id, enum exs_wire_reason reason)
{
	u8 why[EXS_WIRE_REJECT_LEN];
	int len = exs_wire_put_reject(why, sizeof(why), reason);

	/* Nobody listens any more: that needs no words. */
	rdma_reject(id, why, max(len, 0), IB_CM_REJ_CONSUMER_DEFINED);
	/* Not zero: the CM destroys the identifier. */
	return -ECONNREFUSED;
}

/* The hello of a request, or why it is none. */
static enum exs_wire_reason exs_verbs_hello(const struct exs_verbs_listener *l,
					    const struct rdma_conn_param *param,
					    struct exs_hello *hello)
{
	switch (exs_wire_get_hello(param->private_data, param->private_data_len, hello)) {
	case 0:
		return EXS_REJECT_NONE;
	case -EPROTONOSUPPORT:
		exs_count(exs_net(l->net), reject_version, 1);
		return EXS_REJECT_VERSION;
	default:
		exs_count(exs_net(l->net), reject_hello, 1);
		return EXS_REJECT_MALFORMED;
	}
}

/* A request came, under the handler_mutex of @id and of the listener. */
static int exs_verbs_request(struct exs_verbs_listener *l, struct rdma_cm_id *id,
			     const struct rdma_conn_param *param)
{
	enum exs_wire_reason reason;
	struct exs_verbs_ep *v;
	struct exs_hello hello;
	struct exs_conn *conn;

	id->context = NULL;
	if (!exs_listen_on(l->listen, id->route.addr.dev_addr.bound_dev_if))
		return exs_verbs_refuse(id, EXS_REJECT_NONE);
	reason = exs_verbs_hello(l, param, &hello);
	if (reason)
		return exs_verbs_refuse(id, reason);
	conn = exs_listen_request(l->listen, &hello, &reason);
	if (!conn)
		return exs_verbs_refuse(id, reason);
	v = exs_verbs_adopt(l, id, conn, &hello);
	if (!v) {
		exs_listen_failed(l->listen, conn);
		exs_conn_put(conn);
		exs_count(exs_net(l->net), reject_nomem, 1);
		return exs_verbs_refuse(id, EXS_REJECT_LIMIT);
	}
	queue_delayed_work(exs_verbs_wq, &v->timer,
			   msecs_to_jiffies(exs_sysctl_cap(conn->xn, handshake_timeout)));
	exs_verbs_note(v, EXS_VERBS_DO_ACCEPT);
	return 0;
}

static int exs_verbs_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct exs_verbs_listener *l = id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return exs_verbs_request(l, id, &ev->param.conn);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		exs_count(exs_net(l->net), resets_device, 1);
		l->removed = true;
		exs_verbs_renew_later(l, 0);
		return 0;
	default:
		return 0;
	}
}

/*
 * The CM says EADDRNOTAVAIL also when a port is in use and one of the two addresses is
 * the wildcard. If another port can be had, the address is not the reason.
 */
static bool exs_verbs_port_in_use(struct rdma_cm_id *id, struct sockaddr_storage addr)
{
	/* In the same place in both families. */
	((struct sockaddr_in *)&addr)->sin_port = 0;
	return !rdma_bind_addr(id, (struct sockaddr *)&addr);
}

/* An identifier that could not be bound is of no further use. */
static int exs_verbs_bind_id(struct rdma_cm_id *id, struct sockaddr_storage *addr,
			     unsigned int flags)
{
	int err;

	err = rdma_set_reuseaddr(id, !!(flags & EXS_BIND_REUSE));
	/* Unless told, the CM goes by net.ipv6.bindv6only, which is for new sockets. */
	if (!err && addr->ss_family == AF_INET6)
		err = rdma_set_afonly(id, !!(flags & EXS_BIND_V6ONLY));
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (err == -EADDRNOTAVAIL && exs_verbs_port_in_use(id, *addr))
		err = -EADDRINUSE;
	if (!err)
		*addr = id->route.addr.src_addr;
	return err;
}

/* A new identifier, bound. What fails stays in l->id. */
static int exs_verbs_make_id(struct exs_verbs_listener *l)
{
	struct rdma_cm_id *id;

	lockdep_assert_held(&l->id_lock);
	id = rdma_create_id(l->net, exs_verbs_listen_event, l, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	l->id = id;
	return exs_verbs_bind_id(id, &l->addr, l->flags);
}

/* As siw listens in the caller's namespace, a worker cannot do it for others. */
static int exs_verbs_listen_again(struct exs_verbs_listener *l)
{
	int err = exs_verbs_make_id(l);

	if (err)
		return err;
	if (rdma_protocol_iwarp(l->id->device, l->id->port_num) &&
	    !net_eq(current->nsproxy->net_ns, l->net))
		return -EOPNOTSUPP;
	err = rdma_listen(l->id, l->backlog);
	if (!err)
		exs_count(exs_net(l->net), listens_again, 1);
	return err;
}

/* The identifier's device went. */
static void exs_verbs_renew(struct work_struct *work)
{
	struct exs_verbs_listener *l = container_of(to_delayed_work(work),
						    struct exs_verbs_listener, renewal);
	int err = 0;

	exs_verbs_listener_drop_id(l);
	mutex_lock(&l->id_lock);
	if (l->listening)
		err = exs_verbs_listen_again(l);
	mutex_unlock(&l->id_lock);
	if (err) {
		exs_verbs_listener_drop_id(l);
		exs_verbs_renew_later(l, EXS_VERBS_RENEWAL);
	}
	exs_verbs_listener_put(l);
}

int exs_verbs_bind(struct net *net, struct sockaddr_storage *addr,
		   unsigned int flags, struct exs_verbs_listener **out)
{
	struct exs_verbs_listener *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	int err;

	if (!l)
		return -ENOMEM;
	kref_init(&l->ref);
	l->net = net;
	l->flags = flags;
	mutex_init(&l->id_lock);
	l->addr = *addr;
	mutex_init(&l->lock);
	INIT_LIST_HEAD(&l->pending);
	INIT_DELAYED_WORK(&l->renewal, exs_verbs_renew);
	mutex_lock(&l->id_lock);
	err = exs_verbs_make_id(l);
	*addr = l->addr;
	mutex_unlock(&l->id_lock);
	if (err)
		exs_verbs_unbind(l);
	else
		*out = l;
	return err;
}

/* The oldest that is pending, with a reference, taken off the list; or NULL. */
static struct exs_conn *exs_verbs_fail_pending(struct exs_verbs_listener *l)
{
	struct exs_conn *conn = NULL;
	struct exs_verbs_ep *v;

	mutex_lock(&l->lock);
	v = list_first_entry_or_null(&l->pending, struct exs_verbs_ep, pending);
	if (v) {
		conn = v->ep.conn;
		exs_conn_get(conn);
		list_del_init(&v->pending);
		exs_listen_failed(l->listen, conn);
	}
	mutex_unlock(&l->lock);
	return conn;
}

void exs_verbs_unbind(struct exs_verbs_listener *l)
{
	struct exs_conn *conn;

	mutex_lock(&l->id_lock);
	l->listening = false;
	mutex_unlock(&l->id_lock);
	exs_verbs_remove(l);
	/* It waits for handlers: no request comes any more. */
	flush_delayed_work(&l->renewal);
	while ((conn = exs_verbs_fail_pending(l))) {
		exs_conn_lost(conn, ECONNABORTED);
		exs_conn_put(conn);
	}
	exs_verbs_listener_put(l);
}

int exs_verbs_listen(struct exs_verbs_listener *l, int backlog,
		     struct exs_listen *listen)
{
	int err = -ENODEV;

	l->listen = listen;
	mutex_lock(&l->id_lock);
	l->backlog = max(backlog, EXS_VERBS_REQUESTS);
	if (l->id)
		err = rdma_listen(l->id, l->backlog);
	l->listening = !err;
	mutex_unlock(&l->id_lock);
	return err;
}

/* The identifier changes hands, unless its device went before. */
static int exs_verbs_give_id(struct exs_verbs_listener *l, struct rdma_cm_id *id,
			     struct exs_verbs_ep *v)
{
	bool removed;

	rdma_lock_handler(id);
	removed = l->removed;
	if (!removed) {
		id->context = v;
		id->event_handler = exs_verbs_conn_event;
	}
	rdma_unlock_handler(id);
	return removed ? -ENODEV : 0;
}

int exs_verbs_create_bound(struct exs_verbs_listener *l, struct exs_conn *conn)
{
	struct rdma_cm_id *id = exs_verbs_listener_take_id(l);
	struct exs_verbs_ep *v;
	int err = -ENODEV;

	if (!id)
		goto no_id;
	err = -ENOMEM;
	v = exs_verbs_alloc(conn, id);
	if (!v)
		goto no_ep;
	set_bit(EXS_VERBS_BOUND, &v->flags);
	exs_verbs_publish(v);
	err = exs_verbs_give_id(l, id, v);
	if (err)
		goto no_device;
	exs_verbs_unbind(l);
	return 0;

no_device:
	exs_verbs_unpublish(v);
no_ep:
	rdma_destroy_id(id);
no_id:
	exs_verbs_unbind(l);
	return err;
}
