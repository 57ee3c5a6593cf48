// SPDX-License-Identifier: GPL-2.0
/* A timer and its function are set up in one step. */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer));
void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}
