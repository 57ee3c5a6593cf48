/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of proto/ only.
 */
#ifndef EXS_PROTO_PRIVATE_H
#define EXS_PROTO_PRIVATE_H

#include "engine.h"

/*
 * Rules that the model checker can disable one at a time, to show that it finds what goes
 * wrong without them. Elsewhere they are constants.
 */
enum exs_rule {
	/* credit.c */
	EXS_RULE_RESERVE,	/* data and control leave credits           */
	EXS_RULE_RESERVE_CONTROL, /* control does                           */
	EXS_RULE_CREDIT_BATCH,	/* CREDIT waits for several owed            */
	EXS_RULE_CONFIRM,	/* FIN's credit does not wait for others    */
	EXS_RULE_CONFIRM_ONCE,	/* but those after it do                    */
	EXS_RULE_SHRINK_OWED,	/* only what is owed can be kept back       */
	EXS_RULE_ASK_ONCE,	/* ask for credits once for each number     */
	/* held.c */
	EXS_RULE_USED_UP,	/* only then is its key invalidated         */
	/* stream.c: sender */
	EXS_RULE_POSITION,	/* a first advert must match the position   */
	EXS_RULE_WHOLE_PHASE,	/* one that does not voids its whole phase  */
	EXS_RULE_SPACE_ALWAYS,	/* space counts even on a dropped advert    */
	EXS_RULE_SWITCH,	/* INDIRECT leaves the direct phase         */
	EXS_RULE_RING_FULL,	/* INDIRECT stays within the free ring      */
	EXS_RULE_CONTIGUOUS,	/* INDIRECT does not cross the ring's end   */
	EXS_RULE_ONE_STEP,	/* REVOKE: phase, adverts, answer at once   */
	EXS_RULE_FIN_ANSWERS,	/* a revoke ends although FIN crossed it    */
	EXS_RULE_FIN_LAST,	/* FIN after the last byte                  */
	/* stream.c: receiver */
	EXS_RULE_EMPTY_RING,	/* advertise only then                      */
	EXS_RULE_INDIRECT_VOIDS, /* INDIRECT voids every advert             */
	EXS_RULE_ANSWER_PHASE,	/* ANSWER counts in its phase only          */
	EXS_RULE_SPACE_ALONE,	/* space goes back without an advert, too   */
	EXS_RULE_WINDOWS,	/* nothing is advertised behind a window    */
	EXS_RULE_RING_FIRST,	/* EOF only after the ring's bytes          */
	EXS_RULE_EAGER_ENDS,	/* none when there is a ring                */
	EXS_RULE_EAGER_FIRST,	/* eager bytes are read before the ring      */
	EXS_RULE_RING_ANEW,	/* eager space is not returned to a ring    */
	/* policy.c */
	EXS_RULE_ALARM,		/* an alarm ends each wait for an advert    */
	EXS_RULE_GIVE_UP,	/* and after it data goes another way       */
	/* receive.c */
	EXS_RULE_PREFIX,	/* adverts are a prefix of the receives     */
	EXS_RULE_REVOKE,	/* an advertised receive is taken back      */
	EXS_RULE_ONE_REVOKE,	/* one revoke at a time                     */
	EXS_RULE_QUIET,		/* no advert while a revoke is out          */
	/* message.c */
	EXS_RULE_STALE_ADVERT,	/* drop adverts for messages already sent   */
	EXS_RULE_EAGER_DROPS,	/* EAGER drops the advert of its number     */
	EXS_RULE_EAGER_VOIDS,	/* also at the receiver                     */
	EXS_RULE_ANNOUNCED,	/* an announced head is advertised          */
	EXS_RULE_REQUEST,	/* large messages announce themselves       */
	EXS_RULE_WITHDRAW,	/* an announcement is taken back            */
	EXS_RULE_TAKEN_BACK,	/* and with it the adverts                  */
	EXS_RULE_ARRIVED,	/* an announcement ends with its message    */
	EXS_RULE_EAGER_FULL,	/* EAGER stays within the eager space       */
	EXS_RULE_EAGER_FLUSH,	/* eager space is flushed when nearly gone  */
	/* message_ring.c */
	EXS_RULE_RING_WHOLE,	/* a message needs all of its room          */
	EXS_RULE_RING_SKIP,	/* skipped bytes count                      */
	EXS_RULE_RING_READERS,	/* nothing is freed while others read       */
	EXS_RULE_RING_BATCH,	/* space goes back before all is read       */
	EXS_RULE_RING_ORDER,	/* a receive waits for copies before it     */
	EXS_RULE_MANY_SPACE,	/* the last of them frees what is not data  */
	EXS_RULE_MANY_ADVERTS,	/* the adverts for all of them are void     */
	EXS_RULES
};

#ifdef EXS_MUTATE
extern u64 exs_rules_off;
#define exs_rule(rule) (!(exs_rules_off >> EXS_RULE_##rule & 1))
#else
#define exs_rule(rule) (EXS_RULE_##rule < EXS_RULES)
#endif

/* Choices of policy.c; in the model, any. */
#define EXS_CHOICE_WAIT		0x01	/* sender: wait for an advert, for a time */
#define EXS_CHOICE_ASK		0x02	/* sender: request one, and wait for it */
#define EXS_CHOICE_LEAVE	0x04	/* sender: leave its adverts, for the ring */
#define EXS_CHOICE_GUESS	0x08	/* receiver: nothing is in flight; a message needs
					 * an advert
					 */
#define EXS_CHOICE_GATHER	0x10	/* sender: one transfer for several sends */

static inline bool exs_chosen(const struct exs_engine *e, u8 what, bool *chosen)
{
#ifdef EXS_MUTATE
	*chosen = e->policy.choice & what;
	return true;
#else
	return false;
#endif
}

/*
 * What differs between streams and messages: each have a table.
 * @control: next control message, if there is a credit
 * @data: next data, if no transfer is pending
 * @rx_imm: a WRITE arrived
 * @settle: end what FIN or failure ends
 * @advertisable: whether to advertise a receive, if all before it are
 * @next_copy: bytes to copy from the ring
 * @copied: this was done
 * @rx: one handler per message; NULL is a violation
 */
typedef int (*exs_rx_fn)(struct exs_engine *e, const struct exs_msg *msg,
			 struct exs_rcv **rcv);

struct exs_engine_ops {
	bool (*control)(struct exs_engine *e, struct exs_tx *tx);
	bool (*data)(struct exs_engine *e, u32 max, struct exs_tx *tx);
	int (*rx_imm)(struct exs_engine *e, u32 imm);
	void (*settle)(struct exs_engine *e);
	bool (*advertisable)(const struct exs_engine *e, const struct exs_rcv *rcv);
	bool (*next_copy)(struct exs_engine *e, struct exs_copy *copy);
	void (*copied)(struct exs_engine *e, const struct exs_copy *copy);
	exs_rx_fn rx[EXS_MSG_MAX + 1];
};

extern const struct exs_engine_ops exs_stream_ops;
extern const struct exs_engine_ops exs_message_ops;

/* engine.c */
bool exs_tx_message(struct exs_engine *e, struct exs_tx *tx, u8 type);
bool exs_tx_fin(struct exs_engine *e, struct exs_tx *tx);
int exs_rx_credit(struct exs_engine *e, const struct exs_msg *msg,
		  struct exs_rcv **rcv);
void exs_snd_end(struct exs_engine *e, struct exs_snd *snd, int err);
bool exs_stalled(bool *stalled, u64 *count);

static inline struct exs_snd *exs_snd_head(const struct exs_engine *e)
{
	return list_empty(&e->sends) ? NULL :
	       list_first_entry(&e->sends, struct exs_snd, node);
}

/* The next send. */
static inline struct exs_snd *exs_snd_next(const struct exs_engine *e)
{
	struct exs_snd *snd = exs_snd_head(e);

	return snd && !snd->gate ? snd : NULL;
}

/* credit.c */
void exs_credit_init(struct exs_engine *e);

/* Rule 4 there. */
#define EXS_RESERVE_DATA	2

static inline bool exs_credit_for_data(struct exs_engine *e)
{
	u16 reserve = exs_rule(RESERVE) ? EXS_RESERVE_DATA : 0;

	if (e->credits.have > reserve) {
		e->credits.stalled = false;
		return true;
	}
	return exs_stalled(&e->credits.stalled, &e->stats.credit_stalls);
}

static inline bool exs_credit_for_control(const struct exs_engine *e)
{
	return e->credits.have > (exs_rule(RESERVE) && exs_rule(RESERVE_CONTROL) ? 1 : 0);
}

/* Rule 5. */
static inline u16 exs_credit_batch(u16 total)
{
	return max(total / 4, min((total + 1) / 2, 8));
}

static inline bool exs_credit_due(const struct exs_engine *e)
{
	u16 batch = exs_rule(CREDIT_BATCH) ? exs_credit_batch(e->credits.total) : 1;

	return e->credits.have && (e->credits.owed >= batch || e->credits.greet);
}

static inline void exs_credit_spend(struct exs_engine *e)
{
	e->credits.have--;
}

/* Rule 7: the credit of a transfer has been spent, or of a FIN that is to be confirmed. */
static inline void exs_credit_await(struct exs_engine *e)
{
	e->credits.awaited = e->credits.peer_total - e->credits.have;
}

/* Credits for the header of a SEND that is about to be sent, or an immediate. */
static inline u16 exs_credit_take_owed(struct exs_engine *e, u16 max)
{
	u16 owed = min(e->credits.owed, max);

	e->credits.owed -= owed;
	e->credits.granted += owed;
	if (!e->credits.owed)
		e->credits.greet = false;
	return owed;
}

/* A message arrived: the peer spent one. */
static inline int exs_credit_arrived(struct exs_engine *e)
{
	if (!e->credits.granted)
		return -EPROTO;
	e->credits.granted--;
	return 0;
}

/* A header or an immediate carried @n. */
static inline int exs_credit_returned(struct exs_engine *e, u16 n)
{
	if (n > e->credits.peer_total - e->credits.have)
		return -EPROTO;
	e->credits.have += n;
	e->credits.awaited -= min(n, e->credits.awaited);
	return 0;
}

/* Rule 8: whether to send a CREDIT for this alone. */
static inline bool exs_credit_resize_due(const struct exs_engine *e)
{
	const struct exs_credits *c = &e->credits;

	if (c->wanted == c->total || !exs_credit_for_control(e))
		return false;
	return c->wanted > c->total || c->owed >= c->total - c->wanted ||
	       !exs_rule(SHRINK_OWED);
}

u32 exs_credit_resize(struct exs_engine *e);
int exs_credit_resized(struct exs_engine *e, u32 n);
bool exs_credit_ask_due(const struct exs_engine *e);
u32 exs_credit_ask(struct exs_engine *e);
int exs_credit_asked(struct exs_engine *e, u32 n);

/* held.c: the peer's adverts, and transfers */
int exs_held_push(struct exs_engine *e, const struct exs_msg *msg);
void exs_held_pop(struct exs_engine *e);
void exs_held_forget(struct exs_engine *e);

static inline struct exs_held *exs_held_head(struct exs_engine *e)
{
	return e->held.count ? &e->theirs->adverts[e->held.first] : NULL;
}

void exs_write_direct(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm);
void exs_write_indirect(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm);
bool exs_write_next(struct exs_engine *e, u32 max, struct exs_tx *tx);

/* The peer returned @n bytes of its ring or eager space, of @limit at most. */
static inline int exs_space_returned(struct exs_engine *e, u32 n, u32 limit)
{
	if (n > limit - e->space)
		return -EPROTO;
	e->space += n;
	return 0;
}

int exs_ring_described(struct exs_engine *e, const struct exs_msg *msg);
bool exs_tx_ring(struct exs_engine *e, struct exs_tx *tx);

/* message.c */
void exs_message_arrived(struct exs_engine *e, struct exs_rcv *rcv, u32 len, bool truncated);
void exs_message_commit(struct exs_engine *e, struct exs_snd *snd);

/* message_ring.c */
void exs_message_wants_ring(struct exs_engine *e, u32 len);
void exs_message_eager_kept(struct exs_engine *e);
void exs_message_eager_waits(struct exs_engine *e, bool waits);
bool exs_message_fits_ring(const struct exs_engine *e, const struct exs_snd *snd);
bool exs_message_ring_room(const struct exs_engine *e, const struct exs_snd *snd);
bool exs_message_next_waits(const struct exs_engine *e, const struct exs_snd *snd);
u32 exs_message_many(const struct exs_engine *e, const struct exs_snd *snd);
void exs_message_into_ring(struct exs_engine *e, struct exs_snd *snd, u32 n);
int exs_message_rx_ring(struct exs_engine *e, const struct exs_msg *msg, struct exs_rcv **rcv);
int exs_message_rx_indirect(struct exs_engine *e, u32 len, u32 n);
int exs_message_rx_many(struct exs_engine *e, u32 len, u32 n);
int exs_message_ring_returned(struct exs_engine *e, u32 n);

/* Rule 14. */
static inline bool exs_message_ring_due(const struct exs_engine *e)
{
	return e->ring_freed > e->ring / 4 && exs_rule(RING_BATCH);
}

void exs_message_end_arrived(struct exs_engine *e);
bool exs_message_next_copy(struct exs_engine *e, struct exs_copy *copy);
void exs_message_copied(struct exs_engine *e, const struct exs_copy *copy);

/* policy.c */
bool exs_policy_waits(struct exs_engine *e);
bool exs_policy_wants_ring(const struct exs_engine *e);
bool exs_policy_leaves(struct exs_engine *e);
bool exs_policy_asks(struct exs_engine *e);

/* Whether the next send goes with the one before it. */
static inline bool exs_policy_gathers(const struct exs_engine *e)
{
	bool chosen;

	return !exs_chosen(e, EXS_CHOICE_GATHER, &chosen) || chosen;
}

void exs_policy_sent(struct exs_engine *e, u32 len);
bool exs_policy_more(const struct exs_engine *e, const struct exs_snd *snd, u32 len);
void exs_policy_opened(struct exs_engine *e);
void exs_policy_closed(struct exs_engine *e);
void exs_policy_ring(struct exs_engine *e);
void exs_policy_missed(struct exs_engine *e);

static inline bool exs_policy_guesses(const struct exs_engine *e)
{
	bool chosen;

	if (exs_chosen(e, EXS_CHOICE_GUESS, &chosen))
		return chosen;
	return !e->policy.more && !e->policy.guess_after;
}

bool exs_policy_expects(const struct exs_engine *e);
void exs_policy_message(struct exs_engine *e, u32 eager);
void exs_policy_indirect(struct exs_engine *e, bool more);

/* receive.c: our receives and adverts */
static inline struct exs_rcv *exs_rcv_head(const struct exs_engine *e)
{
	return list_empty(&e->receives) ? NULL :
	       list_first_entry(&e->receives, struct exs_rcv, node);
}

/* Whether the owner can make an advert of it at all; most need more. */
static inline bool exs_rcv_can_advertise(const struct exs_rcv *rcv)
{
	return !(rcv->flags & EXS_RCV_READER) &&
	       rcv->max_segs && rcv->max_segs <= EXS_WIRE_SEGS_MAX &&
	       (rcv->max_window || !rcv->len);
}

bool exs_rcv_more_windows(const struct exs_rcv *rcv);
struct exs_rcv *exs_rcv_next_advert(const struct exs_engine *e);
void exs_rcv_advertise(struct exs_engine *e, struct exs_rcv *rcv, struct exs_tx *tx);
void exs_rcv_unadvertise(struct exs_engine *e, struct exs_rcv *rcv);
void exs_rcv_end(struct exs_engine *e, struct exs_rcv *rcv, int err);
void exs_rcv_end_cancelled(struct exs_engine *e, struct exs_rcv *rcv);
void exs_rcv_end_all(struct exs_engine *e);
void exs_rcv_void_all(struct exs_engine *e);
bool exs_tx_revoke(struct exs_engine *e, struct exs_tx *tx);

#endif
