/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two engines, joined by two ordered channels, with programs that use them and
 * memory in which their writes land. The explorer and the simulation share
 * this.
 *
 * The world is one object at one address, so a copy of its bytes is a snapshot,
 * pointers included. Only steps change it. world_steps() lists the possible
 * ones (transmission: may be possible, see world_idle), first the internal
 * ones: those that must happen in the end whatever the programs do. world_do()
 * takes one and checks everything that must hold. world_bad has the first error
 * found.
 */
#ifndef PROTO_TEST_WORLD_H
#define PROTO_TEST_WORLD_H

#include "proto/private.h"

#ifdef WORLD_BIG
#define OPS_MAX		64
#define BUF_MAX		2048
#define RING_BUF	4096
#define CHANNEL_MAX	24
#else
#define OPS_MAX		8
#define BUF_MAX		8
#define RING_BUF	16
#define CHANNEL_MAX	6
#endif
#define ITEM_SEGS	4
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define STEPS_MAX	(8 * OPS_MAX)

/* Addresses: region 0 is the ring, 1 + i receive i; offsets below. */
#define REGION_SHIFT	16

/* The first phases and positions: they wrap soon. */
#define START_PHASE	0xfffffffeu
#define START_POSITION	0xfffffffdu

/* The program of one side; see scenario_parse() for the notation. */
struct side_plan {
	u32 nsends, nrecvs;
	u32 send_len[OPS_MAX];
	struct {
		u32 len, flags, window;
	} recv[OPS_MAX];
	u32 cancels;		/* of receives, at most                    */
	u32 send_cancels;
	u32 nsizes, size[OPS_MAX]; /* numbers of credits to have, in this order */
	u32 nchoices, choice[OPS_MAX]; /* the policy's, EXS_CHOICE_*, in this order */
	bool fin;		/* may shut down after its last send       */
};

struct scenario {
	bool seqpacket;
	u32 ring, credits, eager_space, eager_max;
	u32 ring_max, ring_overhead; /* seqpacket: of messages in the ring    */
	u32 channel;		/* messages in flight, each way             */
	u32 piece;		/* most bytes in one WRITE                  */
	u32 adverts;		/* the most that each side can hold         */
	bool prompt_tx;		/* transmit whenever the channel has room   */
	bool atomic_copy;	/* ring copies take no time                 */
	bool confirm;		/* FIN is confirmed                         */
	bool invalidate;	/* transfers may invalidate their key       */
	bool asks;		/* a side that is short of credits asks     */
	bool unasked;		/* but gets more without asking, too        */
	bool holds;		/* adverts may wait while other things go    */
	bool eagerly;		/* streams start without a ring             */
	struct side_plan side[2];
};

/* A message or a WRITE under way. */
struct item {
	bool write, last, invalidate;
	bool ends;		/* a send, but not the transfer             */
	u8 type, flags;
	u16 credits, nsegs;
	u32 a, b, c;		/* WRITE: a: the immediate, b: sender's phase */
	struct exs_seg segs[ITEM_SEGS];
	u32 tag, len;		/* data: bytes tag, tag + 1, ...            */
};

enum op_state { OP_NEW, OP_QUEUED, OP_READS, OP_DONE };

/* A message without a receive: in the ring if @m.space. */
struct kept {
	u32 number, len;
	struct exs_in_ring m;
};

struct send_op {
	struct exs_snd snd;
	enum op_state state;
	bool cancelled;
	u32 out;		/* bytes transmitted                        */
};

struct recv_op {
	struct exs_rcv rcv;
	enum op_state state;
	bool was_kept;		/* its message: truncation is the owner's    */
	u32 called;		/* receives submitted when its call returned */
	bool cancelled, dead;	/* dead: its key was invalidated            */
	u8 gen;			/* of its key                               */
	u32 buf[BUF_MAX];	/* the tag of each byte                     */
	u32 number;		/* seqpacket: of its message                */
	struct exs_in_ring m;	/* a kept message that it reads             */
};

struct side {
	struct exs_engine e;
	struct exs_theirs theirs;
	struct send_op send[OPS_MAX];
	struct recv_op recv[OPS_MAX];
	u32 nsends, nrecvs;	/* submitted                                */
	u32 cancels, send_cancels, nsizes, nchoices;
	bool shut;

	struct item out[CHANNEL_MAX];
	u32 nout;
	u32 sent;		/* stream: bytes, seqpacket: messages       */
	u32 sent_len[OPS_MAX + 1]; /* seqpacket: of each message            */

	u32 unposted;		/* receives of the queue pair to repost     */
	u32 landed;		/* bytes of the arriving transfer           */
	u32 landed_before;	/* those of whole sends                     */
	u32 landed_messages;	/* their number                             */
	bool landed_in_ring;
	u32 ring[RING_BUF];
	u32 eager[RING_BUF];	/* stream: eager bytes                      */
	struct exs_copy copy;
	bool copying;
	bool live[RING_BUF];	/* seqpacket: unread bytes                  */
	u32 got;		/* stream: as sent, handed to the program   */
	u64 handed;		/* seqpacket: messages given to the program */
	struct kept kept[OPS_MAX]; /* seqpacket                             */
	u32 nkept;
};

struct world {
	struct side side[2];
};

extern struct world world;
extern struct scenario scenario;
extern char world_bad[160];
extern bool world_idle;			/* the step changed nothing          */
extern bool world_compare_phase;	/* the one rule that has no code     */
extern bool world_wire;			/* messages are encoded and decoded */
extern u64 world_now;			/* 0: no clock                         */

typedef u32 step_t;

int scenario_parse(struct scenario *sc, const char *text);
void world_start(void);
u32 world_steps(step_t *steps, u32 *internal);
bool world_do(step_t step);
void world_wait(u64 ns);
bool world_quiescent_ok(void);
bool step_is_tx(step_t step);
const char *step_name(step_t step);
u32 world_send_index(const struct side *s, const struct exs_snd *snd);
u64 world_hash(void);

/* Fewer than any scenario's messages: part of the state, reposting takes time. */
#define CREDITS_MANY	200

static inline bool tight_credits(void)
{
	return scenario.credits < CREDITS_MANY;
}

#endif
