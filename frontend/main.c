// SPDX-License-Identifier: GPL-2.0
/*
 * XNEM frontend: the module.
 */
#include <linux/module.h>
#include <xen/xen.h>

#include "frontend.h"

struct workqueue_struct *xnem_wq;

static int __init xnem_frontend_init(void)
{
	int err;

	if (!xen_domain())
		return -ENODEV;
	/* Unpinning and revoking may take long and must not wait for others. */
	xnem_wq = alloc_workqueue("xnem", WQ_UNBOUND, 0);
	if (!xnem_wq)
		return -ENOMEM;
	xnem_stats_init();
	err = xnem_fe_xenbus_init();
	if (err) {
		xnem_stats_exit();
		destroy_workqueue(xnem_wq);
	}
	return err;
}
module_init(xnem_frontend_init);

static void __exit xnem_frontend_exit(void)
{
	xnem_fe_xenbus_exit();
	/* No file is open; contexts that just closed are freed by the queue. */
	destroy_workqueue(xnem_wq);
	xnem_stats_exit();
}
module_exit(xnem_frontend_exit);

MODULE_DESCRIPTION("XNEM frontend: memory to memory copies between Xen guests");
MODULE_LICENSE("GPL");
MODULE_ALIAS("xen:xnem");
