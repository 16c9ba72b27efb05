// SPDX-License-Identifier: GPL-2.0
#include <xen/xenbus.h>
#include <xen/events.h>
int probe(struct xenbus_device *dev, irq_handler_t handler)
{
	return bind_interdomain_evtchn_to_irqhandler_lateeoi(dev, 1, handler, 0, "p", NULL);
}
