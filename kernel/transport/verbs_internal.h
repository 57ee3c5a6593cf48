/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the verbs transport (verbs.h: its interface). It executes what
 * proto/ decided, and reports to core/ what happened. Objects: struct exs_verbs_ep, an
 * endpoint; struct exs_bound (verbs_listen.c). In the order in which to read them:
 *
 *   verbs_ep.c      an endpoint's life: made, torn down; the ops table
 *   verbs_cm.c      its hand-shake (rdma_cm), either side
 *   verbs_listen.c  identifiers that are bound or listen
 *   verbs_port.c    which user has which port
 *   verbs_qp.c      its resources: domain, queues
 *   verbs_recv.c    receives
 *   verbs_slot.c    slots, of chains that are posted
 *   verbs_map.c     memory of transfers: DMA mapping, positions
 *   verbs_sync.c    memory that device and processor use in turn
 *   verbs_extent.h  how much one memory key covers
 *   verbs_mr.c      memory keys: the pool, registration, invalidation
 *   verbs_chain.h, verbs_chain.c  work requests that are posted together
 *   verbs_post.c    executing struct exs_tx
 *   verbs_cq.c      completions
 *   verbs_stall.c   detects that completions no longer come
 *   verbs_quirks.h, verbs_quirks.c  how devices differ
 *
 * Locks: their order is in Documentation/design.md.
 * CM handlers take the listener's lock and conn->lock; QP events take none and queue work. No
 * code here waits for the CM's handler_mutex while it holds cq_mutex, the listener's lock,
 * keys_mutex or conn->lock.
 */
#ifndef EXS_TRANSPORT_VERBS_INTERNAL_H
#define EXS_TRANSPORT_VERBS_INTERNAL_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core/sock.h"
#include "core/transport.h"
#include "verbs.h"
#include "verbs_chain.h"
#include "verbs_extent.h"
#include "verbs_quirks.h"

/* Most identifiers to try, each with another port and queue pair. */
#define EXS_VERBS_TRIES		32

/*
 * The send queue. A registered memory key keeps a place for its invalidation, so that
 * memory can be taken back however full the queue is. The peer may use at most
 * EXS_VERBS_KEYS_MAX keys, because no more segments are ever advertised (exs_verbs_open()
 * ensures that). The remaining places always drain, and hold the longest chain.
 * EXS_VERBS_SEGS keys cover EXS_MESSAGE_MAX at any alignment.
 */
#define EXS_VERBS_KEYS_MAX	EXS_HELD_SEGS_MAX
#define EXS_VERBS_SEGS		10	/* most segments in what we advertise  */
#define EXS_VERBS_DATA_WRS	16	/* WRs of a piece, one remote segment  */
#define EXS_VERBS_PIECE_MIN	4096	/* smallest piece, however scattered    */
#define EXS_VERBS_CHAIN_WRS	(EXS_VERBS_DATA_WRS + EXS_WIRE_SEGS_MAX + 1)
#define EXS_VERBS_SQ_WRS	126	/* plus one to drain: 2^n - 1          */
#define EXS_VERBS_KEY_PAGES_MIN	DIV_ROUND_UP(EXS_MESSAGE_MAX / PAGE_SIZE + 1,	\
					     EXS_VERBS_SEGS)
#define EXS_VERBS_RUN_MAX	SZ_1G	/* bytes mapped in one piece            */
#define EXS_VERBS_NOT_LOST	(-1)

/*
 * Headers of messages that we send: long enough for EXS_VERBS_SEGS segments, or for the
 * bytes of a short send. A connection begins with few, for its first messages, and gets
 * more when all are in use. The peer's credits do not bound them: one credit may pay for 16
 * slots, those of sends that are joined to one transfer.
 */
#define EXS_VERBS_SLOTS		4
#define EXS_VERBS_SLOTS_MAX	64
#define EXS_VERBS_SLOT_LEN	192
#define EXS_VERBS_COPY_MAX	(EXS_VERBS_SLOT_LEN - EXS_WIRE_HDR_LEN)

/* Most unsignalled chains in a row. More than the first slots: these are for idle ones. */
#define EXS_VERBS_UNSIGNALED_MAX	7

/*
 * Receives beyond the peer's credits: one message too many then breaks our rules, and is
 * not an error of the provider. A connection gets more when the peer asks. Together with
 * the marker of ib_drain_qp() they are 2^n - 2.
 */
#define EXS_VERBS_RECVS		(EXS_HELLO_CREDITS + 1)
#define EXS_VERBS_RECVS_MAX	61

/* How long the teardown waits for a peer that does not answer. */
#define EXS_VERBS_DISCONNECT_TIME	HZ
/* And for the answer to our connect: iWARP's disconnect would sleep. siw gives up after 10 s. */
#define EXS_VERBS_ANSWER_TIME		(12 * HZ)

/**
 * struct exs_verbs_port - a port that a user has
 * @node: in the table of verbs_port.c
 * @net: constant
 * @uid: the socket's user; constant
 * @addr: once it is in the table, with the port
 */
struct exs_verbs_port {
	struct hlist_node node;
	struct net *net;
	kuid_t uid;
	struct sockaddr_storage addr;
};

/* Bits of exs_verbs_ep.flags. */
enum {
	EXS_VERBS_ACTIVE,	/* we connect; otherwise the peer does        */
	EXS_VERBS_STARTED,	/* the CM was told to connect or accept        */
	EXS_VERBS_ASKED,	/* iWARP: our connect has no answer yet       */
	EXS_VERBS_OPEN,		/* established, and we may send                */
	EXS_VERBS_CLOSING,	/* teardown was begun                         */
	EXS_VERBS_BOUND,	/* the identifier has its local address        */
	EXS_VERBS_GONE,		/* the peer's CM reported the end              */
	EXS_VERBS_DISCONNECTING, /* the teardown waits for that, or the answer */
};

/* Bits of exs_verbs_ep.todo: what a CM handler leaves for a task or a worker. */
enum {
	EXS_VERBS_DO_RETRY,
	EXS_VERBS_DO_ROUTE,
	EXS_VERBS_DO_CONNECT,
	EXS_VERBS_DO_OPEN,
	EXS_VERBS_DO_ACCEPT,
	EXS_VERBS_DO_LOST,	/* always for a worker                        */
};

#define EXS_VERBS_DO_STEPS	(BIT(EXS_VERBS_DO_RETRY) |		\
				 BIT(EXS_VERBS_DO_ROUTE) |		\
				 BIT(EXS_VERBS_DO_CONNECT) |		\
				 BIT(EXS_VERBS_DO_OPEN) |		\
				 BIT(EXS_VERBS_DO_ACCEPT))

/* The next step of the teardown: see exs_verbs_teardown(). */
enum exs_verbs_end {
	EXS_VERBS_END_DISCONNECT,
	EXS_VERBS_END_DRAIN,
	EXS_VERBS_END_TRANSFERS,
	EXS_VERBS_END_DESTROY,
};

/**
 * struct exs_verbs_mr - a memory key
 * @mr: the provider's
 * @cqe: of its LOCAL_INV, if that is the last of a chain
 * @link: in keys_free, in a transfer's map.mrs, in a slot's inv_keys, in ring_keys
 * @out: in keys_out, while the peer may invalidate it
 * @x: the transfer whose memory it covers
 * @chain: the number of the chain that registered it
 * @dead: the peer had our device invalidate it, and that is final
 */
struct exs_verbs_mr {
	struct ib_mr *mr;
	struct ib_cqe cqe;
	struct list_head link;
	struct list_head out;
	struct exs_xfer *x;
	u32 chain;
	bool dead;
};

/**
 * struct exs_verbs_mem - memory of receives
 * @at: whole pages, or lines of the cache
 * @dma: their address
 * @len: bytes in use
 */
struct exs_verbs_mem {
	void *at;
	u64 dma;
	u32 len;
};

/**
 * struct exs_verbs_slot - a chain that was posted
 * @cqe: of its last WR
 * @dma: the address of @buf
 * @link: in slots_free or slots_posted
 * @x: send that a piece belongs to and that waits for its end, or NULL
 * @over: send that ends when it is posted, or NULL
 * @inv_keys: keys that the chain invalidates
 * @wrs: places in the send queue that its completion gives back
 * @fin: it is the FIN
 * @advert: it is an advert that holds up others
 * @copied: the bytes of the piece are in the slot
 * @unsignaled: it has no completion: it is complete when a later one is
 * @buf: for a header and short data; the device only reads, so its neighbours may be written
 */
struct exs_verbs_slot {
	struct ib_cqe cqe;
	u64 dma;
	struct list_head link;
	struct exs_xfer *x;
	struct exs_xfer *over;
	struct list_head inv_keys;
	u16 wrs;
	bool fin;
	bool advert;
	bool copied;
	bool unsignaled;
	u8 buf[EXS_VERBS_SLOT_LEN];
};

/**
 * struct exs_verbs_slots - slots that were added later
 * @link: in more_slots
 * @dma: the address of @slot
 * @n: how many
 * @slot: the slots
 */
struct exs_verbs_slots {
	struct list_head link;
	u64 dma;
	u32 n;
	struct exs_verbs_slot slot[];
};

/**
 * struct exs_verbs_recv - a receive
 * @cqe: of its WR
 * @sge: @buf, for the device
 * @wr: its WR
 * @buf: EXS_WIRE_BUF_LEN bytes
 */
struct exs_verbs_recv {
	struct ib_cqe cqe;
	struct ib_sge sge;
	struct ib_recv_wr wr;
	void *buf;
};

/**
 * struct exs_verbs_recvs - receives that were added later, and their memory
 * @link: in more_recvs
 * @mem: the buffers
 * @recv: the receives
 */
struct exs_verbs_recvs {
	struct list_head link;
	struct exs_verbs_mem mem;
	struct exs_verbs_recv recv[];
};

struct exs_verbs_ep;

/**
 * struct exs_verbs_slow - steps of a hand-shake in which a worker may sleep for long
 * @v: whose
 * @steps: which: bits of EXS_VERBS_DO_*
 * @turn: for one run of @work
 * @wq: where @work is queued
 * @work: takes them
 */
struct exs_verbs_slow {
	struct exs_verbs_ep *v;
	unsigned long steps;
	struct exs_turn turn;
	struct workqueue_struct *wq;
	struct work_struct work;
};

struct exs_bound;

/* exs_transport.create */
int exs_verbs_create(struct net *net, struct exs_conn *conn);

/**
 * struct exs_verbs_ep - an endpoint over verbs
 * @ep: what core knows of it
 * @flags: EXS_VERBS_*; atomic
 * @todo: EXS_VERBS_DO_*; atomic
 * @id: the identifier; set before the endpoint is used, until teardown; a step of
 *	the hand-shake may replace it
 * @peer: the peer's hello, valid if @has_hello
 * @has_hello: the peer sent a valid hello
 * @listener: passive: until the hand-shake is over (its lock)
 * @bound: active: the bound identifier whose port it uses, or NULL; a reference
 * @pending: in its list
 * @driving: a task in connect() takes the steps, not works
 * @step_mutex: one step at a time
 * @wait: for that task
 * @holds: exs_verbs_close(), threads that take steps, and works that wait for a turn;
 *	teardown begins without them
 * @cm_work: takes the other steps, or reports that the connection was lost
 * @allocating: the steps that allocate for the owner's memory cgroup
 * @connecting: the one that waits for the peer (EXS_QUIRK_SLOW_CONNECT)
 * @teardown_work: the end
 * @answer_by: when it goes on without the answer to our connect (jiffies); 0: does not wait yet
 * @end: its next step; used by that work only
 * @timer: limits the hand-shake; then greets a silent peer again; at the end limits the
 *	wait for its acknowledgments
 * @greet_ms: greet again after this time: EXS_QUIRK_DEAF_ACCEPT
 * @retries: identifiers that were tried before @id
 * @stall_work: looks at @progress
 * @lost_err: positive errno for EXS_VERBS_DO_LOST, 0: ended by the peer; the first counts
 * @pd: our protection domain; the resources exist while this is not NULL
 * @cq: completions of both queues; cq_mutex
 * @cq_mutex: one drain at a time
 * @wants_memory: the last message waits for memory; cq_mutex
 * @cq_work: drains
 * @mem: of the first receives
 * @max_sge: elements in one send
 * @inline_max: most bytes inside a work request
 * @quirks: EXS_QUIRK_*
 * @heard: the peer sent something; conn->lock guards this and the rest, except where noted
 * @failed: a completion ended the connection; read without the lock, too
 * @fail: with this positive errno, or 0: ended by the peer
 * @sq_used: places in the send queue taken or reserved
 * @chains: posted, signalled, and not complete
 * @unsignaled: posted, not signalled, and not known to be complete
 * @sending: slots whose x is not NULL
 * @progress: when one was complete, or the first of them posted: jiffies
 * @alive: when one was complete, or something received: jiffies
 * @watched: @stall_work is queued to look soon, or is about to look
 * @nslots: number of slots
 * @slots_free: those without a chain
 * @slots_posted: the others, in order
 * @more_slots: those that are not in @slots
 * @slots_after: no more before this time: jiffies
 * @chain: work requests that exs_verbs_flush() will post, or NULL
 * @adverts: slots whose advert is true
 * @repost: receives to be posted again
 * @nrepost: their number
 * @keys_free: struct exs_verbs_mr, the pool
 * @nkeys_free: keys in it
 * @keys_dying: keys whose invalidation was posted
 * @keys_out: keys of adverts that the peer knows
 * @chains_begun: chains posted so far
 * @chains_ended: complete chains so far
 * @ring_sgt: the ring's pages, described by the next EXS_TX_RING
 * @ring_mapped: whether the pages are mapped
 * @ring_size: their bytes
 * @ring_keys: the ring's keys
 * @keys_mutex: guards the pool's growth
 * @keys_total: number of keys, without the ring's; never shrinks; keys_mutex, read without
 *	it, too
 * @keys_wanted: keys that the mapped receives may need; atomic
 * @key_pages: pages of one key
 * @run_max: most bytes that the device's DMA maps in one piece
 * @unsignaled_cqe: handles completions of unsignalled work requests: errors
 * @slots: the first slots
 * @slots_dma: their address
 * @recv: the first receives
 * @more_recvs: the others; used by the runner of the connection
 */
struct exs_verbs_ep {
	struct exs_ep ep;
	unsigned long flags;
	unsigned long todo;
	struct rdma_cm_id *id;

	struct exs_hello peer;
	bool has_hello;
	struct exs_bound *listener;
	struct exs_bound *bound;
	struct list_head pending;
	bool driving;
	struct mutex step_mutex;	/* one step at a time */
	wait_queue_head_t wait;
	refcount_t holds;
	struct work_struct cm_work;
	struct exs_verbs_slow allocating;
	struct exs_verbs_slow connecting;
	struct delayed_work teardown_work;
	unsigned long answer_by;
	enum exs_verbs_end end;
	struct delayed_work timer;
	u32 greet_ms;
	u32 retries;
	struct delayed_work stall_work;
	int lost_err;

	struct ib_pd *pd;
	struct ib_cq *cq;
	struct mutex cq_mutex;		/* one drain at a time */
	bool wants_memory;		/* a message does; cq_mutex */
	struct delayed_work cq_work;
	struct exs_verbs_mem mem;
	u16 max_sge;
	u16 inline_max;
	u32 quirks;

	bool heard;
	bool failed;
	int fail;
	u32 sq_used;
	u32 chains;
	u32 unsignaled;
	u32 sending;
	unsigned long progress;
	unsigned long alive;
	bool watched;
	u32 nslots;
	struct list_head slots_free;
	struct list_head slots_posted;
	struct list_head more_slots;
	unsigned long slots_after;
	struct exs_verbs_chain *chain;
	u32 adverts;
	struct ib_recv_wr *repost;
	u32 nrepost;
	struct list_head keys_free;
	u32 nkeys_free;
	u32 keys_dying;
	struct list_head keys_out;
	u32 chains_begun;
	u32 chains_ended;
	struct sg_table ring_sgt;
	bool ring_mapped;
	u32 ring_size;
	struct list_head ring_keys;

	struct mutex keys_mutex;	/* keys_total grows */
	u32 keys_total;
	atomic_t keys_wanted;
	u32 key_pages;
	u32 run_max;

	struct ib_cqe unsignaled_cqe;
	struct exs_verbs_slot slots[EXS_VERBS_SLOTS];
	u64 slots_dma;
	struct exs_verbs_recv recv[EXS_VERBS_RECVS];
	struct list_head more_recvs;
};

static inline struct exs_verbs_ep *exs_verbs_ep(struct exs_ep *ep)
{
	return container_of(ep, struct exs_verbs_ep, ep);
}

static inline bool exs_verbs_is(const struct exs_verbs_ep *v, unsigned int flag)
{
	return test_bit(flag, &v->flags);
}

/* EXS_QUIRK_*; none before it has a queue pair. */
static inline bool exs_verbs_has(const struct exs_verbs_ep *v, u32 quirk)
{
	return v->quirks & quirk;
}

/* Hand-shakes, except their slow steps. */
extern struct workqueue_struct *exs_verbs_wq;
/* Queue pairs of hand-shakes, allocated for a memory cgroup that may be stopped. */
extern struct workqueue_struct *exs_verbs_qp_wq;
/* Connects of iWARP, which wait for the peer. */
extern struct workqueue_struct *exs_verbs_connect_wq;
/* Teardown: provider and CM may be slow. */
extern struct workqueue_struct *exs_verbs_end_wq;
/* Completions. */
extern struct workqueue_struct *exs_verbs_cq_wq;

/* verbs_ep.c */
struct exs_verbs_ep *exs_verbs_alloc(struct exs_conn *conn, struct rdma_cm_id *id, gfp_t gfp);
void exs_verbs_free(struct exs_verbs_ep *v);
int exs_verbs_renew_id(struct exs_verbs_ep *v);
void exs_verbs_publish(struct exs_verbs_ep *v);
void exs_verbs_unpublish(struct exs_verbs_ep *v);
void exs_verbs_go_on(struct exs_ep *ep);
void exs_verbs_close(struct exs_ep *ep);
/* Delay the teardown. Return: false: it has begun. */
static inline bool exs_verbs_hold(struct exs_verbs_ep *v)
{
	return refcount_inc_not_zero(&v->holds);
}

void exs_verbs_unhold(struct exs_verbs_ep *v);

/* verbs_cm.c */
int exs_verbs_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);
int exs_verbs_connect(struct exs_ep *ep, bool nonblock, long timeout);
void exs_verbs_cm_work(struct work_struct *work);
void exs_verbs_slow_init(struct exs_verbs_ep *v);
void exs_verbs_slow_leave(struct exs_verbs_ep *v);
void exs_verbs_slow_cancel(struct exs_verbs_ep *v);
void exs_verbs_timer(struct work_struct *work);
void exs_verbs_note(struct exs_verbs_ep *v, unsigned int what);
void exs_verbs_note_lost(struct exs_verbs_ep *v, int err);
int exs_verbs_open(struct exs_verbs_ep *v);
void exs_verbs_addresses(struct exs_verbs_ep *v);

/* verbs_listen.c */
void exs_verbs_handshake_over(struct exs_verbs_ep *v, bool established);
void exs_verbs_listener_put(struct exs_bound *l);

/* verbs_port.c */
/* Record that @p holds @addr's port, until exs_verbs_port_del(), which may be called twice. */
void exs_verbs_port_add(struct exs_verbs_port *p, const struct sockaddr_storage *addr);
void exs_verbs_port_del(struct exs_verbs_port *p);
/* Whether another known port excludes @addr, and each that does belongs to the user of @p. */
bool exs_verbs_port_is_own(const struct exs_verbs_port *p, const struct sockaddr_storage *addr);

/* verbs_qp.c */
int exs_verbs_make_qp(struct exs_verbs_ep *v);
void exs_verbs_undo_qp(struct exs_verbs_ep *v);
bool exs_verbs_disconnect_first(struct exs_verbs_ep *v);
void exs_verbs_stop_qp(struct exs_verbs_ep *v);
bool exs_verbs_may_arrive(const struct exs_verbs_ep *v);
void exs_verbs_free_qp(struct exs_verbs_ep *v);

/* verbs_recv.c */
int exs_recvs_init(void);
void exs_recvs_exit(void);
int exs_verbs_recvs_make(struct exs_verbs_ep *v);
void exs_verbs_recvs_free(struct exs_verbs_ep *v);
int exs_verbs_add_recvs(struct exs_ep *ep, u32 n);
void exs_verbs_recv_over(struct exs_verbs_ep *v, struct exs_verbs_recv *recv);
void exs_verbs_repost(struct exs_verbs_ep *v);

/* verbs_slot.c: conn->lock held, once the connection is used */
int exs_verbs_slots_make(struct exs_verbs_ep *v);
void exs_verbs_slots_free(struct exs_verbs_ep *v);
struct exs_verbs_slot *exs_verbs_slot_take(struct exs_verbs_ep *v);

/* verbs_map.c */
int exs_verbs_map(struct exs_ep *ep, struct exs_xfer *x);
void exs_verbs_unmap(struct exs_ep *ep, struct exs_xfer *x);
int exs_verbs_map_ring(struct exs_ep *ep, void *mem, u32 size);
void exs_verbs_unmap_ring(struct exs_verbs_ep *v);
/*
 * Eager data and data from the ring is copied into a receive, which the device may also
 * write to.
 */
static inline enum dma_data_direction exs_xfer_dir(const struct exs_xfer *x)
{
	return x->is_recv ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

struct exs_verbs_pos exs_verbs_seek(struct exs_map *map, u64 where);

/* Record that byte @where is at @pos; conn->lock held. */
static inline void exs_verbs_moved(struct exs_map *map, u64 where, struct exs_verbs_pos pos)
{
	map->cursor = pos.sg;
	map->cursor_off = pos.off;
	map->cursor_pos = where;
}

/* verbs_sync.c */
int exs_verbs_mem_map(struct exs_verbs_ep *v, struct exs_verbs_mem *mem, void *at, u32 len);
void exs_verbs_mem_unmap(struct exs_verbs_ep *v, struct exs_verbs_mem *mem);
void exs_verbs_read_ring(struct exs_ep *ep, u32 off, u32 len);
void exs_verbs_ring_over(struct exs_verbs_ep *v);
void exs_verbs_writes(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len);
void exs_verbs_wrote(struct exs_ep *ep, struct exs_xfer *x, u64 off, u64 len);

/* verbs_mr.c */
int exs_verbs_keys_reserve(struct exs_verbs_ep *v, u32 n);
static inline void exs_verbs_keys_unreserve(struct exs_verbs_ep *v, u32 n)
{
	atomic_sub(n, &v->keys_wanted);
}

void exs_verbs_keys_put(struct exs_verbs_ep *v, struct list_head *keys);
void exs_verbs_keys_free(struct exs_verbs_ep *v);
int exs_verbs_ring_keys(struct exs_verbs_ep *v, u32 n);
void exs_verbs_invalidate_before(struct exs_verbs_chain *chain, struct exs_xfer *x);
int exs_verbs_register(struct exs_verbs_chain *chain, struct exs_tx *tx);
int exs_verbs_register_ring(struct exs_verbs_chain *chain, struct exs_tx *tx);
bool exs_verbs_invalidate(struct exs_ep *ep, struct exs_xfer *x);
/*
 * The peer had our device invalidate @rkey. Return: whether the peer knew that key.
 * conn->lock held.
 */
bool exs_verbs_key_died(struct exs_verbs_ep *v, u32 rkey);

/* verbs_post.c */
bool exs_verbs_room(struct exs_ep *ep);
int exs_verbs_post(struct exs_ep *ep, struct exs_tx *tx);
int exs_verbs_flush(struct exs_ep *ep, int err);
int exs_verbs_post_probe(struct exs_verbs_ep *v);

/* verbs_cq.c */
void exs_verbs_cq_event(struct ib_cq *cq, void *context);
void exs_verbs_cq_work(struct work_struct *work);
void exs_verbs_poll(struct exs_verbs_ep *v);
int exs_verbs_poll_some(struct exs_ep *ep);
int exs_verbs_drain_all(struct exs_ep *ep);
void exs_verbs_fail(struct exs_verbs_ep *v, int err);
int exs_verbs_post_errno(const struct exs_verbs_ep *v, int err);
void exs_verbs_wc_error(struct exs_verbs_ep *v, const struct ib_wc *wc);

/* Whether @wc is an error, which then ends the connection; conn->lock held. */
static inline bool exs_verbs_wc_failed(struct exs_verbs_ep *v, const struct ib_wc *wc)
{
	if (likely(wc->status == IB_WC_SUCCESS))
		return false;
	exs_verbs_wc_error(v, wc);
	return true;
}

void exs_verbs_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void exs_verbs_slot_done(struct ib_cq *cq, struct ib_wc *wc);
void exs_verbs_unsignaled_done(struct ib_cq *cq, struct ib_wc *wc);

/* verbs_stall.c */
void exs_verbs_watch(struct exs_verbs_ep *v);

/* A chain will be posted. conn->lock held. */
static inline void exs_verbs_chain_begins(struct exs_verbs_ep *v, const struct exs_verbs_slot *slot)
{
	lockdep_assert_held(&v->ep.conn->lock);
	if (slot->unsignaled)
		v->unsignaled++;
	else if (!v->chains++)
		v->progress = jiffies;
}

/* A chain is complete. conn->lock held. */
static inline void exs_verbs_chain_ends(struct exs_verbs_ep *v, const struct exs_verbs_slot *slot)
{
	lockdep_assert_held(&v->ep.conn->lock);
	if (slot->unsignaled)
		v->unsignaled--;
	else
		v->chains--;
	v->progress = jiffies;
	v->alive = jiffies;
}

void exs_verbs_stall_work(struct work_struct *work);

#endif
