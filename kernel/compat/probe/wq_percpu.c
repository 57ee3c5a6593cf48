// SPDX-License-Identifier: GPL-2.0
/* A workqueue is told to be of processors, not by what it is not told. */
#include <linux/workqueue.h>

struct workqueue_struct *probe(void);
struct workqueue_struct *probe(void)
{
	return alloc_workqueue("probe", WQ_PERCPU, 0);
}
