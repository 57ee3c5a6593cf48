// SPDX-License-Identifier: GPL-2.0
/* vm_flags is changed by functions. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_clear(vma, VM_MAYWRITE);
}
