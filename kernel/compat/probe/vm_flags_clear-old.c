// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vma->vm_flags |= VM_DONTEXPAND;
}
