// SPDX-License-Identifier: GPL-2.0
/*
 * XNEM backend: module, limits and parameters.
 */
#include <linux/module.h>
#include <xen/xen.h>

#include "backend.h"

/*
 * What a device may use, the same for all.  Memory a device can take in the
 * backend: its regions' structures, 4 bytes a page, the job pool.  A guest
 * has 32768 grants by default, so "pages" leaves room for one that has more.
 */
const struct xnem_limits xnem_be_limits = {
	.queues = XNEM_BE_QUEUES,
	.sq_order = XNEM_RING_ORDER_MAX,
	.cq_order = XNEM_RING_ORDER_MAX,
	.inflight = 1024,
	.contexts = XNEM_CONTEXTS_MAX,
	.regions = 4096,
	.region_pages = XNEM_REGION_PAGES_MAX,
	.pages = 65536,
	.windows = XNEM_WINDOWS_MAX,
	.window_pages = 128,
};

bool xnem_leaving __read_mostly;

static int set_leaving(const char *text, const struct kernel_param *kp)
{
	bool on;
	int err = kstrtobool(text, &on);

	if (err)
		return err;
	/* What was not said meanwhile cannot be said later. */
	if (READ_ONCE(xnem_leaving) && !on)
		return -EBUSY;
	WRITE_ONCE(xnem_leaving, on);
	return 0;
}

static const struct kernel_param_ops leaving_ops = {
	.set = set_leaving,
	.get = param_get_bool,
};
/*
 * Devices are taken away one after the other.  Without this the guest of a
 * later one would hear that regions of an earlier one are gone, as if their
 * owners had ended, before it hears that this backend is.
 */
module_param_cb(leaving, &leaving_ops, &xnem_leaving, 0644);
MODULE_PARM_DESC(leaving, "the module is about to be unloaded: say nothing to guests any more");

static int __init xnem_backend_init(void)
{
	int err;

	if (!xen_domain())
		return -ENODEV;

	xnem_stats_init();
	err = xnem_region_init();
	if (err)
		goto out_stats;
	err = xnem_workers_start();
	if (err)
		goto out_stats;
	err = xnem_be_xenbus_init();
	if (err)
		goto out_workers;
	return 0;

out_workers:
	xnem_workers_stop();
out_stats:
	xnem_stats_exit();
	return err;
}
module_init(xnem_backend_init);

static void __exit xnem_backend_exit(void)
{
	/* rmmod without xnem-unload: its devices go one after the other, too. */
	WRITE_ONCE(xnem_leaving, true);
	xnem_be_xenbus_exit();
	xnem_workers_stop();
	/* Regions are freed by RCU. */
	rcu_barrier();
	xnem_stats_exit();
}
module_exit(xnem_backend_exit);

MODULE_DESCRIPTION("XNEM backend: copies memory between Xen guests");
MODULE_LICENSE("GPL");
MODULE_ALIAS("xen-backend:xnem");
