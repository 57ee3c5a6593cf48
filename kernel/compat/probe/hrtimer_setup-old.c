// SPDX-License-Identifier: GPL-2.0
/* The function is put in afterwards. */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer));
void probe(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->function = fn;
}
