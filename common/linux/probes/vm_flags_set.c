// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>
void probe(struct vm_area_struct *vma)
{
	vm_flags_mod(vma, VM_DONTCOPY, VM_MAYEXEC);
}
