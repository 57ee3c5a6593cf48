// SPDX-License-Identifier: GPL-2.0
#include <linux/fs.h>

bool probe(struct file *f);
bool probe(struct file *f)
{
	return get_file_rcu(f) != 0;
}
