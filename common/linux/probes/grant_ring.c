// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
int xenbus_setup_ring(int must_not_exist); /* the newer way excludes this one */
int probe(struct xenbus_device *dev, void *vaddr, grant_ref_t *refs)
{
	return xenbus_grant_ring(dev, vaddr, 1, refs);
}
