// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
static int probe_remove(struct xenbus_device *dev)
{
	return 0;
}
struct xenbus_driver probe = { .remove = probe_remove };
