// SPDX-License-Identifier: GPL-2.0
/* A file that may be about to be freed is taken through the address of the pointer to it. */
#include <linux/fs.h>

struct file *probe(struct file **f);
struct file *probe(struct file **f)
{
	return get_file_active(f);
}
