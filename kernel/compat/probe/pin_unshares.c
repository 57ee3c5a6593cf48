// SPDX-License-Identifier: GPL-2.0
/*
 * A long-term pin for reading takes care of copy-on-write. Only its helper's
 * shape shows: not in the header, or like this.
 */
#include <linux/mm.h>

bool gup_must_unshare(struct vm_area_struct *vma, unsigned int flags, struct page *page);
