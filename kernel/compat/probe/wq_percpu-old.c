// SPDX-License-Identifier: GPL-2.0
#include <linux/workqueue.h>

/* The name is free. */
enum { WQ_PERCPU = 0 };

struct workqueue_struct *probe(void);
struct workqueue_struct *probe(void)
{
	return alloc_workqueue("probe", WQ_PERCPU, 0);
}
