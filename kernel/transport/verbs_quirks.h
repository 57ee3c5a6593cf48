/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How devices differ. Other files in transport/ check these flags, not drivers or
 * protocols. The table of devices, with reasons, is in verbs_quirks.c.
 */
#ifndef EXS_TRANSPORT_VERBS_QUIRKS_H
#define EXS_TRANSPORT_VERBS_QUIRKS_H

#include <linux/bits.h>
#include <linux/types.h>

struct rdma_cm_id;

#define EXS_QUIRK_NO_IMM	BIT(0)	/* no WRITE with immediate             */
#define EXS_QUIRK_UNCONFIRMED	BIT(1)	/* complete is not acknowledged        */
#define EXS_QUIRK_TCP_PORT	BIT(2)	/* the CM's ports are TCP's            */
#define EXS_QUIRK_NO_REASON	BIT(3)	/* a reject has no reason of the CM    */
#define EXS_QUIRK_FAILED_IS_END	BIT(4)	/* an error of the QP is the peer's end */
#define EXS_QUIRK_ERROR_RESETS	BIT(5)	/* disconnect before the error state   */
#define EXS_QUIRK_SLOW_CONNECT	BIT(6)	/* rdma_connect() waits for the peer   */
#define EXS_QUIRK_CALLERS_NET	BIT(7)	/* it, rdma_listen(): caller's netns   */
#define EXS_QUIRK_DEAF_ACCEPT	BIT(8)	/* the peer may miss a first message   */
#define EXS_QUIRK_SIGNAL_ALL	BIT(9)	/* unsignalled WRs end too early       */
#define EXS_QUIRK_LATE_PACKETS	BIT(10)	/* packets may come for a dead QP      */
#define EXS_QUIRK_REPEATS	BIT(11)	/* retransmission repeats local WRs    */
#define EXS_QUIRK_TIRELESS	BIT(12)	/* it never gives up retransmitting    */
#define EXS_QUIRK_MOVES		BIT(13)	/* a bond may fail over to another     */

/* Those of the device of @id, which has one. */
u32 exs_verbs_quirks(const struct rdma_cm_id *id);

#endif
