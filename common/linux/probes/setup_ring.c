// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
int probe(struct xenbus_device *dev, void **vaddr, grant_ref_t *refs)
{
	return xenbus_setup_ring(dev, GFP_KERNEL, vaddr, 1, refs);
}
