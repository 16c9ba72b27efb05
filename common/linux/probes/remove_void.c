// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
static void probe_remove(struct xenbus_device *dev)
{
}
struct xenbus_driver probe = { .remove = probe_remove };
