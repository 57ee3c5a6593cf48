// SPDX-License-Identifier: GPL-2.0
/*
 * Identifiers that are bound or listen.
 *
 * A connection request is refused before anything is allocated for it, or becomes an
 * endpoint that is pending until its hand-shake ends: then exactly one of
 * exs_listen_established() and exs_listen_failed() is called. The end of the listener
 * ends the others, so that no callback comes later.
 *
 * An identifier with a specific address ends with its device. A listener then retries
 * until a device has that address: the device may return before its network interface, or
 * the interface before its address, and no single event reports all this. It does the same
 * when a bond has failed over, as the address may now belong to another device.
 */
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "compat/compat.h"
#include "core/sock.h"
#include "core/stats.h"
#include "verbs_internal.h"

#define EXS_VERBS_RENEWAL	HZ	/* between two attempts */
/*
 * Requests that the provider may hold until our handler has seen them; core's backlog
 * counts from there. siw forgets further requests: their peers wait in vain, and siw mistakes their
 * end for the listener's.
 */
#define EXS_VERBS_REQUESTS	128

/**
 * struct exs_bound - a bound identifier
 * @ref: one of the socket, one of each pending endpoint, one of the endpoint that uses it up,
 *	one of queued work
 * @port: with its user and namespace
 * @flags: EXS_BIND_*
 * @id_lock: guards the members up to @listening; never held while waiting for the CM's
 *	handlers
 * @id: NULL once it was consumed, or its device was removed
 * @addr: its address
 * @backlog: its backlog
 * @listening: replace it if its device is removed; read without the lock, too
 * @removed: its device was removed; the identifier's handler_mutex
 * @lock: guards @pending; held during the callbacks that end it
 * @pending: endpoints whose hand-shake is under way
 * @listen: core's, from exs_transport.listen() to .unbind()
 * @renewal: destroys @id, makes another
 */
struct exs_bound {
	struct kref ref;
	struct exs_verbs_port port;
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
	struct exs_bound *l = container_of(ref, struct exs_bound, ref);

	exs_verbs_port_del(&l->port);
	kfree(l);
}

void exs_verbs_listener_put(struct exs_bound *l)
{
	kref_put(&l->ref, exs_verbs_listener_free);
}

static struct rdma_cm_id *exs_verbs_listener_take_id(struct exs_bound *l)
{
	struct rdma_cm_id *id;

	mutex_lock(&l->id_lock);
	id = l->id;
	l->id = NULL;
	mutex_unlock(&l->id_lock);
	return id;
}

static void exs_verbs_listener_drop_id(struct exs_bound *l)
{
	struct rdma_cm_id *id = exs_verbs_listener_take_id(l);

	if (id)
		rdma_destroy_id(id);
}

/* When a device is removed, the CM waits until its identifiers are destroyed. So its
 * handler must leave that to a work.
 */
static void exs_verbs_renew_later(struct exs_bound *l, unsigned long delay)
{
	kref_get(&l->ref);
	if (!queue_delayed_work(exs_verbs_wq, &l->renewal, delay))
		exs_verbs_listener_put(l);
}

/*
 * The end of a listener. Runs in a worker: siw loses signals of the task that destroys a
 * listener, even a SIGKILL.
 */
static void exs_verbs_remove(struct exs_bound *l)
{
	kref_get(&l->ref);
	if (mod_delayed_work(exs_verbs_wq, &l->renewal, 0))
		exs_verbs_listener_put(l);
}

/* A passive endpoint's hand-shake is over. Sleeps; the first call counts. */
void exs_verbs_handshake_over(struct exs_verbs_ep *v, bool established)
{
	struct exs_bound *l = v->listener;

	if (!l)
		return;
	/* It is filled once. The thread that closes the listener may be stopped with its lock. */
	if (!list_empty_careful(&v->pending)) {
		mutex_lock(&l->lock);
		if (!list_empty(&v->pending)) {
			list_del_init(&v->pending);
			if (established)
				exs_listen_established(l->listen, v->ep.conn);
			else
				exs_listen_failed(l->listen, v->ep.conn);
		}
		mutex_unlock(&l->lock);
	}
	/* The teardown's call is the last. */
	if (!established) {
		v->listener = NULL;
		exs_verbs_listener_put(l);
	}
}

/* The passive endpoint of a request; on success it owns @id and @conn's reference. */
static struct exs_verbs_ep *exs_verbs_alloc_passive(struct exs_bound *l,
						    struct rdma_cm_id *id,
						    struct exs_conn *conn,
						    const struct exs_hello *hello)
{
	struct exs_verbs_ep *v = exs_verbs_alloc(conn, id, EXS_GFP_REQUEST);

	if (!v)
		return NULL;
	v->peer = *hello;
	v->has_hello = true;
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

	/* No listener: that needs no reason. */
	rdma_reject(id, why, max(len, 0), IB_CM_REJ_CONSUMER_DEFINED);
	/* With an error, the CM destroys the identifier. */
	return -ECONNREFUSED;
}

/* The hello of a request, or why it has none. */
static enum exs_wire_reason exs_verbs_hello(const struct exs_bound *l,
					    const struct rdma_conn_param *param,
					    struct exs_hello *hello)
{
	switch (exs_wire_get_hello(param->private_data, param->private_data_len, hello)) {
	case 0:
		return EXS_REJECT_NONE;
	case -EPROTONOSUPPORT:
		exs_count(exs_net(l->port.net), reject_version, 1);
		return EXS_REJECT_VERSION;
	default:
		exs_count(exs_net(l->port.net), reject_hello, 1);
		return EXS_REJECT_MALFORMED;
	}
}

/* A request arrived; under the handler_mutex of @id and of the listener. */
static int exs_verbs_request(struct exs_bound *l, struct rdma_cm_id *id,
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
	v = exs_verbs_alloc_passive(l, id, conn, &hello);
	if (!v) {
		exs_listen_failed(l->listen, conn);
		exs_conn_put(conn);
		exs_count(exs_net(l->port.net), reject_nomem, 1);
		return exs_verbs_refuse(id, EXS_REJECT_LIMIT);
	}
	queue_delayed_work(exs_verbs_wq, &v->timer,
			   msecs_to_jiffies(exs_sysctl_cap(conn->xn, handshake_timeout)));
	exs_verbs_note(v, EXS_VERBS_DO_ACCEPT);
	return 0;
}

static int exs_verbs_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct exs_bound *l = id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return exs_verbs_request(l, id, &ev->param.conn);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		exs_count(exs_net(l->port.net), resets_device, 1);
		l->removed = true;
		exs_verbs_renew_later(l, 0);
		return 0;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		if (READ_ONCE(l->listening) && !(exs_verbs_quirks(id) & EXS_QUIRK_MOVES))
			exs_verbs_renew_later(l, 0);
		return 0;
	default:
		return 0;
	}
}

/*
 * The CM also reports EADDRNOTAVAIL if a port is in use and one of the two addresses is
 * the wildcard. If another port is possible, the address is not the reason.
 */
static bool exs_verbs_port_in_use(struct rdma_cm_id *id, struct sockaddr_storage addr)
{
	/* The port has the same place in both families. */
	((struct sockaddr_in *)&addr)->sin_port = 0;
	return !rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static __be16 exs_verbs_port(const struct sockaddr_storage *addr)
{
	/* The port has the same place in both families. */
	return ((const struct sockaddr_in *)addr)->sin_port;
}

/* An identifier that could not be bound is useless. */
static int exs_verbs_bind_id(struct rdma_cm_id *id, struct sockaddr_storage *addr,
			     unsigned int flags)
{
	int err;

	err = rdma_set_reuseaddr(id, !!(flags & EXS_BIND_REUSE));
	/* By default the CM uses net.ipv6.bindv6only, which is for new sockets. */
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

/* A new, bound identifier. After a failure it stays in l->id. */
static int exs_verbs_make_id(struct exs_bound *l)
{
	struct rdma_cm_id *id;

	lockdep_assert_held(&l->id_lock);
	id = rdma_create_id(l->port.net, exs_verbs_listen_event, l, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	l->id = id;
	return exs_verbs_bind_id(id, &l->addr, l->flags);
}

/* A provider that listens in the caller's namespace: a worker cannot do it for others. */
static int exs_verbs_listen_again(struct exs_bound *l)
{
	int err = exs_verbs_make_id(l);

	if (err)
		return err;
	if (exs_verbs_quirks(l->id) & EXS_QUIRK_CALLERS_NET &&
	    !net_eq(current->nsproxy->net_ns, l->port.net))
		return -EOPNOTSUPP;
	err = rdma_listen(l->id, l->backlog);
	if (!err)
		exs_count(exs_net(l->port.net), listens_again, 1);
	return err;
}

/* The identifier's device was removed or may have changed, or the listener ends. */
static void exs_verbs_renew(struct work_struct *work)
{
	struct exs_bound *l = container_of(to_delayed_work(work),
						    struct exs_bound, renewal);
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

/* The oldest pending endpoint, with a reference, removed from the list; or NULL. */
static struct exs_conn *exs_verbs_fail_pending(struct exs_bound *l)
{
	struct exs_conn *conn = NULL;
	struct exs_verbs_ep *v;

	mutex_lock(&l->lock);
	v = list_first_entry_or_null(&l->pending, struct exs_verbs_ep, pending);
	if (v) {
		conn = v->ep.conn;
		exs_conn_get(conn);
		list_del_init(&v->pending);
	}
	mutex_unlock(&l->lock);
	if (conn)
		exs_listen_failed(l->listen, conn);
	return conn;
}

static void exs_verbs_end_bound(struct exs_bound *l)
{
	struct exs_conn *conn;

	mutex_lock(&l->id_lock);
	WRITE_ONCE(l->listening, false);
	mutex_unlock(&l->id_lock);
	exs_verbs_remove(l);
	/* Waits for handlers: no request comes afterwards. */
	flush_delayed_work(&l->renewal);
	while ((conn = exs_verbs_fail_pending(l))) {
		exs_conn_lost(conn, ECONNABORTED);
		exs_conn_put(conn);
	}
	exs_verbs_listener_put(l);
}

/* Endpoints of accepted connections still refer to the identifier, but do not use its port. */
static void exs_verbs_unbind(struct exs_bound *l)
{
	exs_verbs_port_del(&l->port);
	exs_verbs_end_bound(l);
}

/* Whether a TCP socket has this address, or one that includes it. */
static bool exs_verbs_tcp_has(struct net *net, struct sockaddr_storage addr)
{
	struct socket *sock;
	int err;

	if (sock_create_kern(net, addr.ss_family, SOCK_STREAM, IPPROTO_TCP, &sock))
		return false;
	sock_set_reuseaddr(sock->sk);
	err = kernel_bind(sock, (struct sockaddr_unsized *)&addr, sizeof(addr));
	sock_release(sock);
	return err == -EADDRINUSE;
}

/*
 * Whether TCP prevents listening on the port that the CM chose. Without a device, it may
 * be any device, or several.
 */
static bool exs_verbs_port_unusable(struct exs_bound *l)
{
	const struct rdma_cm_id *id = l->id;

	lockdep_assert_held(&l->id_lock);
	return (!id->device || exs_verbs_quirks(id) & EXS_QUIRK_TCP_PORT) &&
	       exs_verbs_tcp_has(l->port.net, l->addr);
}

/* Bind as requested, to @addr; @any: to any port. Return: 0, a negative errno, or 1: retry. */
static int exs_verbs_try_bind(struct exs_bound *l,
			      const struct sockaddr_storage *addr, bool any)
{
	int err;

	mutex_lock(&l->id_lock);
	l->addr = *addr;
	err = exs_verbs_make_id(l);
	if (!err && any && exs_verbs_port_unusable(l))
		err = 1;
	mutex_unlock(&l->id_lock);
	return err;
}

static struct exs_bound *exs_verbs_bound_alloc(struct net *net, kuid_t uid, unsigned int flags)
{
	struct exs_bound *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);

	if (!l)
		return NULL;
	kref_init(&l->ref);
	l->port.net = net;
	l->port.uid = uid;
	l->flags = flags;
	mutex_init(&l->id_lock);
	mutex_init(&l->lock);
	INIT_LIST_HEAD(&l->pending);
	INIT_DELAYED_WORK(&l->renewal, exs_verbs_renew);
	return l;
}

/* Another identifier has the port. */
static int exs_verbs_in_use(const struct exs_bound *l)
{
	return exs_verbs_port_is_own(&l->port, &l->addr) ? -EBUSY : -EADDRINUSE;
}

static int exs_verbs_bind(struct net *net, kuid_t uid, struct sockaddr_storage *addr,
			  unsigned int flags, struct exs_bound **out)
{
	struct exs_bound *l = exs_verbs_bound_alloc(net, uid, flags);
	int err, tries = EXS_VERBS_TRIES;
	bool any = !exs_verbs_port(addr);

	if (!l)
		return -ENOMEM;
	while ((err = exs_verbs_try_bind(l, addr, any && tries--)) > 0)
		exs_verbs_listener_drop_id(l);
	*addr = l->addr;
	if (err == -EADDRINUSE)
		err = exs_verbs_in_use(l);
	if (err) {
		exs_verbs_unbind(l);
		return err;
	}
	exs_verbs_port_add(&l->port, addr);
	*out = l;
	return 0;
}

/*
 * The CM or the device has refused to listen on the port. The CM does so if another
 * identifier is bound to it, too. Without SO_REUSEADDR there is none; the device has reasons of
 * its own: the port is in use by TCP, whose ports are those of iWARP.
 */
static int exs_verbs_listen_alone(struct exs_bound *l)
{
	int err;

	lockdep_assert_held(&l->id_lock);
	if (!(l->flags & EXS_BIND_REUSE))
		return -EBUSY;
	rdma_destroy_id(l->id);
	l->id = NULL;
	l->flags &= ~EXS_BIND_REUSE;
	/* It may fail for other reasons: privileges that bind(2) had may be gone. */
	if (exs_verbs_make_id(l))
		return exs_verbs_in_use(l);
	err = rdma_listen(l->id, l->backlog);
	return err == -EADDRINUSE ? -EBUSY : err;
}

static int exs_verbs_listen(struct exs_bound *l, int backlog,
			    struct exs_listen *listen)
{
	int err = -ENODEV;

	l->listen = listen;
	mutex_lock(&l->id_lock);
	l->backlog = max(backlog, EXS_VERBS_REQUESTS);
	if (l->id)
		err = rdma_listen(l->id, l->backlog);
	if (err == -EADDRINUSE || err == -EADDRNOTAVAIL)
		err = exs_verbs_listen_alone(l);
	WRITE_ONCE(l->listening, !err);
	mutex_unlock(&l->id_lock);
	return err;
}

/* Pass the identifier on, unless its device was removed. */
static int exs_verbs_give_id(struct exs_bound *l, struct rdma_cm_id *id,
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

static int exs_verbs_create_bound(struct exs_bound *l, struct exs_conn *conn)
{
	struct rdma_cm_id *id = exs_verbs_listener_take_id(l);
	struct exs_verbs_ep *v;
	int err = -ENODEV;

	if (!id)
		goto no_id;
	err = -ENOMEM;
	v = exs_verbs_alloc(conn, id, GFP_KERNEL);
	if (!v)
		goto no_ep;
	set_bit(EXS_VERBS_BOUND, &v->flags);
	kref_get(&l->ref);
	v->bound = l;
	exs_verbs_publish(v);
	err = exs_verbs_give_id(l, id, v);
	if (err)
		goto no_device;
	/* The port stays in use, now by the endpoint. */
	exs_verbs_end_bound(l);
	return 0;

no_device:
	exs_verbs_unpublish(v);
no_ep:
	rdma_destroy_id(id);
no_id:
	exs_verbs_unbind(l);
	return err;
}

const struct exs_transport exs_transport = {
	.create		= exs_verbs_create,
	.create_bound	= exs_verbs_create_bound,
	.bind		= exs_verbs_bind,
	.unbind		= exs_verbs_unbind,
	.listen		= exs_verbs_listen,
};
