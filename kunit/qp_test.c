// SPDX-License-Identifier: GPL-2.0
/*
 * A device that takes no commands any more: when the queue pair was stopped, it cannot access
 * memory, and nothing is posted any more.
 */
#include <kunit/test.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* -- the device and the CM */

static struct {
	int modify_err;
	u32 modified, drained, destroyed, disconnected, posted, polled;
} did;

static int fake_modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	did.modified++;
	return did.modify_err;
}

static void fake_drain(struct ib_qp *qp)
{
	did.drained++;
}

static void fake_destroy(struct rdma_cm_id *id)
{
	did.destroyed++;
	id->qp = NULL;
}

static int fake_disconnect(struct rdma_cm_id *id)
{
	did.disconnected++;
	return 0;
}

static int fake_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	did.posted++;
	return 0;
}

static void fake_lock(struct rdma_cm_id *id)
{
}

/* The transport's own source, over that. */
#define ib_modify_qp fake_modify
#define ib_drain_qp fake_drain
#define rdma_destroy_qp fake_destroy
#define rdma_disconnect fake_disconnect
#define rdma_lock_handler fake_lock
#define rdma_unlock_handler fake_lock
#include "transport/verbs_qp.c"
#include "transport/verbs_recv.c"

/* Its dependencies. */
u32 exs_verbs_quirks(const struct rdma_cm_id *id)
{
	return 0;
}

int exs_verbs_slots_make(struct exs_verbs_ep *v)
{
	return 0;
}

void exs_verbs_slots_free(struct exs_verbs_ep *v)
{
}

int exs_verbs_mem_map(struct exs_verbs_ep *v, struct exs_verbs_mem *mem, void *at, u32 len)
{
	return 0;
}

void exs_verbs_mem_unmap(struct exs_verbs_ep *v, struct exs_verbs_mem *mem)
{
}

void exs_verbs_cq_event(struct ib_cq *cq, void *context)
{
}

void exs_verbs_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Completions that are there when the queue pair is gone. */
void exs_verbs_poll(struct exs_verbs_ep *v)
{
	did.polled += did.destroyed;
}

void exs_verbs_fail(struct exs_verbs_ep *v, int err)
{
	v->failed = true;
}

/* -- an endpoint of it */

struct bench {
	struct exs_verbs_ep v;
	struct exs_conn conn;
	struct ib_device dev;
	struct rdma_cm_id id;
	struct ib_pd pd;
	struct ib_qp qp;
	struct ib_recv_wr wr;
	struct exs_net xn;
};

static struct bench *bench_new(struct kunit *test)
{
	struct bench *b = kvzalloc(sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	memset(&did, 0, sizeof(did));
	b->dev.ops.post_recv = fake_post_recv;
	b->qp.device = &b->dev;
	b->id.qp = &b->qp;
	b->id.device = &b->dev;
	spin_lock_init(&b->conn.lock);
	b->xn.counters = alloc_percpu(struct exs_counters);
	KUNIT_ASSERT_NOT_NULL(test, b->xn.counters);
	b->conn.xn = &b->xn;
	b->v.ep.conn = &b->conn;
	b->v.id = &b->id;
	b->v.pd = &b->pd;
	set_bit(EXS_VERBS_STARTED, &b->v.flags);
	return b;
}

static void bench_free(struct bench *b)
{
	free_percpu(b->xn.counters);
	kvfree(b);
}

static long stops_refused(const struct bench *b)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(b->xn.counters, cpu)->count[EXS_COUNT_stops_refused];
	return sum;
}

/* The end of a batch that was being processed: a receive is to be posted again. Return: it was. */
static bool reposts(struct bench *b)
{
	spin_lock(&b->conn.lock);
	b->v.repost = &b->wr;
	b->v.nrepost = 1;
	exs_verbs_repost(&b->v);
	spin_unlock(&b->conn.lock);
	return did.posted;
}

static void stops(struct kunit *test)
{
	struct bench *b = bench_new(test);

	exs_verbs_stop_qp(&b->v);
	KUNIT_EXPECT_EQ(test, did.modified, 1U);
	KUNIT_EXPECT_EQ(test, did.drained, 1U);
	KUNIT_EXPECT_EQ(test, did.destroyed, 0U);
	KUNIT_EXPECT_EQ(test, stops_refused(b), 0L);
	KUNIT_EXPECT_EQ(test, did.disconnected, 1U);
	KUNIT_EXPECT_TRUE(test, reposts(b));
	bench_free(b);
}

static void takes_no_commands(struct kunit *test)
{
	struct bench *b = bench_new(test);

	did.modify_err = -EIO;
	exs_verbs_stop_qp(&b->v);
	KUNIT_EXPECT_EQ(test, did.modified, 1U);
	KUNIT_EXPECT_EQ(test, did.drained, 0U);
	KUNIT_EXPECT_EQ(test, did.destroyed, 1U);
	KUNIT_EXPECT_EQ(test, stops_refused(b), 1L);
	KUNIT_EXPECT_NULL(test, b->id.qp);
	KUNIT_EXPECT_EQ(test, did.polled, 1U);
	KUNIT_EXPECT_EQ(test, did.disconnected, 1U);
	KUNIT_EXPECT_FALSE(test, reposts(b));
	KUNIT_EXPECT_EQ(test, b->v.nrepost, 0U);
	bench_free(b);
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE(stops),
	KUNIT_CASE(takes_no_commands),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "exs_qp",
	.test_cases = qp_cases,
};

kunit_test_suite(qp_suite);
