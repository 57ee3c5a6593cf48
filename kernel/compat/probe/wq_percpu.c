// SPDX-License-Identifier: GPL-2.0
/* A workqueue is per processor by a flag, not by the lack of one. */
#include <linux/workqueue.h>

struct workqueue_struct *probe(void);
struct workqueue_struct *probe(void)
{
	return alloc_workqueue("probe", WQ_PERCPU, 0);
}
