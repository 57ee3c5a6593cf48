/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of proto/ share with one another and with nobody else.
 */
#ifndef EXS_PROTO_PRIVATE_H
#define EXS_PROTO_PRIVATE_H

#include "engine.h"

/*
 * The rules that the model checker can take out one at a time, to show that
 * it finds what goes wrong without them (tests/proto/README.md). They are
 * constants everywhere else.
 */
enum exs_rule {
	/* credit.c */
	EXS_RULE_RESERVE,	/* data and control leave credits over      */
	EXS_RULE_RESERVE_CONTROL, /* control does                           */
	EXS_RULE_CREDIT_BATCH,	/* CREDIT waits for several owed            */
	EXS_RULE_CONFIRM,	/* FIN's credit does not wait for others    */
	EXS_RULE_CONFIRM_ONCE,	/* ... but those after it do                */
	EXS_RULE_SHRINK_OWED,	/* only what is owed can be kept back       */
	/* held.c */
	EXS_RULE_USED_UP,	/* only then its key is invalidated         */
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
	/* receive.c */
	EXS_RULE_PREFIX,	/* adverts are a prefix of the receives     */
	EXS_RULE_REVOKE,	/* an advertised receive is taken back      */
	EXS_RULE_ONE_REVOKE,	/* one revoke at a time                     */
	EXS_RULE_QUIET,		/* no advert while a revoke is out          */
	/* message.c */
	EXS_RULE_STALE_ADVERT,	/* drop adverts for messages already sent   */
	EXS_RULE_EAGER_DROPS,	/* EAGER drops the advert of its number     */
	EXS_RULE_EAGER_VOIDS,	/* ... at the receiver too                  */
	EXS_RULE_ANNOUNCED,	/* an announced head is advertised          */
	EXS_RULE_REQUEST,	/* large messages announce themselves       */
	EXS_RULE_WITHDRAW,	/* an announcement is taken back            */
	EXS_RULE_ARRIVED,	/* an announcement ends with its message    */
	EXS_RULE_EAGER_FULL,	/* EAGER stays within the eager space       */
	EXS_RULE_EAGER_FLUSH,	/* eager space is flushed when nearly gone  */
	EXS_RULES
};

#ifdef EXS_MUTATE
extern u64 exs_rules_off;
#define exs_rule(rule) (!(exs_rules_off >> EXS_RULE_##rule & 1))
#else
#define exs_rule(rule) true
#endif

/* What policy.c decides, and in the model whatever the model says. */
#define EXS_CHOICE_WAIT		0x01	/* sender: for an advert               */
#define EXS_CHOICE_ASK		0x02	/* sender: for an advert               */
#define EXS_CHOICE_LEAVE	0x04	/* sender: its adverts, for the ring   */
#define EXS_CHOICE_GUESS	0x08	/* receiver: that nothing is under way;
					 * that a message needs an advert      */

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
 * What a socket type does its own way.
 * @control: next control message, credit at hand
 * @data: next data, from no transfer under way
 * @rx_imm: a WRITE arrived
 * @settle: end what FIN or failure ends
 * @advertisable: whether a receive, with all before it advertised, is to be
 * @rx: one handler per message; NULL is a violation
 */
typedef int (*exs_rx_fn)(struct exs_engine *e, const struct exs_msg *msg,
			 struct exs_rcv **rcv);

struct exs_engine_ops {
	bool (*control)(struct exs_engine *e, struct exs_tx *tx);
	bool (*data)(struct exs_engine *e, u32 max, struct exs_tx *tx);
	int (*rx_imm)(struct exs_engine *e, u32 kind, u32 len);
	void (*settle)(struct exs_engine *e);
	bool (*advertisable)(const struct exs_engine *e, const struct exs_rcv *rcv);
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

/* The one that may be sent. */
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
static inline bool exs_credit_due(const struct exs_engine *e)
{
	u16 batch = exs_rule(CREDIT_BATCH) ? max(2, e->credits.total / 2) : 1;

	return e->credits.have && (e->credits.owed >= batch || e->credits.greet);
}

static inline void exs_credit_spend(struct exs_engine *e)
{
	e->credits.have--;
}

/* For the header of a SEND that is about to go, or an immediate. */
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
	e->credits.fin_left -= min(n, e->credits.fin_left);
	return 0;
}

void exs_credit_await_fin(struct exs_engine *e);
bool exs_credit_resize_due(const struct exs_engine *e);
u32 exs_credit_resize(struct exs_engine *e);
int exs_credit_resized(struct exs_engine *e, u32 n);

/* held.c: the peer's adverts, and transfers */
int exs_held_push(struct exs_engine *e, const struct exs_msg *msg);
void exs_held_pop(struct exs_engine *e);
void exs_held_forget(struct exs_engine *e);
struct exs_held *exs_held_head(struct exs_engine *e);
void exs_write_direct(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm);
void exs_write_indirect(struct exs_engine *e, struct exs_snd *snd, u32 len, u32 imm);
bool exs_write_next(struct exs_engine *e, u32 max, struct exs_tx *tx);
int exs_space_returned(struct exs_engine *e, u32 n, u32 limit);

/* policy.c */
bool exs_policy_waits(struct exs_engine *e);
bool exs_policy_wants_ring(const struct exs_engine *e);
bool exs_policy_leaves(struct exs_engine *e);
bool exs_policy_asks(struct exs_engine *e);
void exs_policy_sent(struct exs_engine *e, u32 len);
bool exs_policy_more(const struct exs_engine *e, const struct exs_snd *snd, u32 len);
void exs_policy_opened(struct exs_engine *e);
void exs_policy_closed(struct exs_engine *e);
void exs_policy_ring(struct exs_engine *e);
void exs_policy_missed(struct exs_engine *e);
bool exs_policy_guesses(const struct exs_engine *e);
bool exs_policy_expects(const struct exs_engine *e);
void exs_policy_message(struct exs_engine *e, bool eager);
void exs_policy_indirect(struct exs_engine *e, bool more);

/* receive.c: our receives and adverts */
static inline struct exs_rcv *exs_rcv_head(const struct exs_engine *e)
{
	return list_empty(&e->receives) ? NULL :
	       list_first_entry(&e->receives, struct exs_rcv, node);
}

bool exs_rcv_can_advertise(const struct exs_rcv *rcv);
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
