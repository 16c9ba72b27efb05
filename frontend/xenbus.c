// SPDX-License-Identifier: GPL-2.0
/*
 * The frontend's state machine (xnemif.h, section 2).
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "frontend.h"

static unsigned int max_pages;
module_param(max_pages, uint, 0444);
MODULE_PARM_DESC(max_pages,
		 "Xen pages (4096 bytes) of all regions of a device; 0: what the grant table "
		 "holds, less a share for disks and network");

unsigned int xnem_max_queues;
module_param_named(queues, xnem_max_queues, uint, 0444);
MODULE_PARM_DESC(queues, "queues of a device, at most; 0: one a CPU, as the backend allows");

static bool windows = true;
module_param(windows, bool, 0444);
MODULE_PARM_DESC(windows, "grant regions that do not fit piece by piece; otherwise refuse them");

static bool trusted = true;
module_param(trusted, bool, 0444);
MODULE_PARM_DESC(trusted, "the backend may see bytes beside a region in its first and last page");

static void fe_release(struct kref *ref)
{
	struct xnem_fe *fe = container_of(ref, struct xnem_fe, ref);

	xa_destroy(&fe->numbers);
	kfree(fe);
}

void xnem_fe_get(struct xnem_fe *fe)
{
	kref_get(&fe->ref);
}

void xnem_fe_put(struct xnem_fe *fe)
{
	kref_put(&fe->ref, fe_release);
}

u32 xnem_grants_total(void)
{
	return gnttab_max_grant_frames() * (XEN_PAGE_SIZE / sizeof(struct grant_entry_v1));
}

/*
 * The share of the grant table for regions: the rest is for the domain's
 * disks and network, which take their references when they need them.
 */
u32 xnem_page_budget(void)
{
	u32 total = xnem_grants_total();

	if (max_pages)
		return min(max_pages, total);
	if (total <= 2048)
		return total / 4;
	return total - max_t(u32, total / 8, 1024);
}

/*
 * Not under fe->lock: may sleep.  May be called when nothing is connected.
 * @let_go: the backend has said so, or never had anything.  Otherwise a copy
 * may still be under way: it takes references one by one, so that those it has
 * not come to could be revoked, used anew, and then be written to.  They live
 * on for a while.
 */
static void disconnect(struct xnem_fe *fe, bool let_go)
{
	if (fe->nr_queues)
		fe->revoke_after = let_go ? 0 : (jiffies + XNEM_FE_LINGER) | 1;
	cancel_delayed_work(&fe->stuck_work);
	xnem_queues_teardown(fe);
	/*
	 * Pages that a backend keeps are lost to us, and so are their references:
	 * disks and network need some.  A few connections' at most, then.
	 */
	if (!fe->kept)
		return;
	fe->kept = false;
	if (++fe->kept_lives < XNEM_FE_FAILURES || fe->broken)
		return;
	fe->broken = true;
	xnem_stat_inc(fe, error_protocol);
	xenbus_dev_error(fe->xdev, -EPROTO,
			 "backend keeps pages of connections that ended; detach and attach to use "
			 "it again");
}

static char *backend_node(struct xnem_fe *fe, const char *node)
{
	char *s = xenbus_read(XBT_NIL, fe->xdev->otherend, node, NULL);

	if (IS_ERR(s)) {
		xenbus_dev_fatal(fe->xdev, PTR_ERR(s), "reading %s/%s", fe->xdev->otherend, node);
		return NULL;
	}
	return s;
}

static int read_offers(struct xnem_fe *fe)
{
	struct xenbus_device *xdev = fe->xdev;
	struct xnem_limits limits = {};
	u64 fabric_id = 0, features = 0;
	u32 min_version = 1, max_version = 0;
	bool ok;
	char *s;

	s = backend_node(fe, "versions");
	if (!s)
		return -EINVAL;
	ok = xnem_parse_versions(s, &min_version, &max_version);
	kfree(s);
	if (!ok || XNEM_PROTO_VERSION < min_version || XNEM_PROTO_VERSION > max_version) {
		xenbus_dev_fatal(xdev, -EPROTO, "backend speaks versions %u to %u, this is %u",
				 min_version, max_version, XNEM_PROTO_VERSION);
		return -EPROTO;
	}
	s = backend_node(fe, "features");
	if (!s)
		return -EINVAL;
	ok = xnem_parse_hex64(s, &features);
	kfree(s);
	s = backend_node(fe, "limits");
	if (!s)
		return -EINVAL;
	ok = ok && xnem_parse_limits(s, &limits);
	kfree(s);
	s = backend_node(fe, "fabric-id");
	if (!s)
		return -EINVAL;
	ok = ok && xnem_parse_hex64(s, &fabric_id);
	kfree(s);
	if (!ok || !fabric_id) {
		xenbus_dev_fatal(xdev, -EINVAL, "the backend's offers make no sense");
		return -EINVAL;
	}

	limits.region_pages = min3(limits.region_pages, limits.pages, XNEM_REGION_PAGES_MAX);
	limits.region_pages = min(limits.region_pages, xnem_page_budget());
	spin_lock_irq(&fe->lock);
	fe->limits = limits;
	fe->features = features & XNEM_FE_FEATURES;
	if (!windows)
		fe->features &= ~XNEM_FEAT_WINDOW;
	fe->fabric_id = fabric_id;
	fe->backend = xdev->otherend_id;
	fe->max_pages = min(xnem_page_budget(), limits.pages);
	fe->life++;
	spin_unlock_irq(&fe->lock);
	return 0;
}

/* "1 2 3": at most 16 references of at most 10 digits. */
static void print_refs(char *buf, size_t size, const grant_ref_t *refs, u32 n)
{
	size_t len = 0;
	u32 i;

	for (i = 0; i < n; i++)
		len += scnprintf(buf + len, size - len, "%s%u", i ? " " : "", refs[i]);
}

static int write_queue(struct xenbus_transaction xbt, const struct xnem_fe_queue *q, u32 index)
{
	char dir[80], refs[200];
	int err;

	snprintf(dir, sizeof(dir), "%s/queue-%u", q->fe->xdev->nodename, index);
	err = xenbus_printf(xbt, dir, "header-ref", "%u", q->header_ref);
	if (err)
		return err;
	print_refs(refs, sizeof(refs), q->sq_refs, q->sq_pages);
	err = xenbus_printf(xbt, dir, "sq-refs", "%s", refs);
	if (err)
		return err;
	print_refs(refs, sizeof(refs), q->cq_refs, q->cq_pages);
	err = xenbus_printf(xbt, dir, "cq-refs", "%s", refs);
	if (err)
		return err;
	return xenbus_printf(xbt, dir, "event-channel", "%u", q->port);
}

static int write_nodes(struct xnem_fe *fe)
{
	struct xenbus_device *xdev = fe->xdev;
	struct xenbus_transaction xbt;
	const char *what;
	u32 i;
	int err;

again:
	err = xenbus_transaction_start(&xbt);
	if (err) {
		xenbus_dev_fatal(xdev, err, "starting a transaction");
		return err;
	}
	what = "version";
	err = xenbus_printf(xbt, xdev->nodename, what, "%u", XNEM_PROTO_VERSION);
	if (err)
		goto abort;
	what = "features";
	err = xenbus_printf(xbt, xdev->nodename, what, "%llx", fe->features);
	if (err)
		goto abort;
	if (fe->features & XNEM_FEAT_WINDOW) {
		what = "windows";
		err = xenbus_printf(xbt, xdev->nodename, what, "%u", fe->nr_windows);
		if (err)
			goto abort;
	}
	what = "num-queues";
	err = xenbus_printf(xbt, xdev->nodename, what, "%u", fe->nr_queues);
	if (err)
		goto abort;
	what = "a queue";
	for (i = 0; i < fe->nr_queues; i++) {
		err = write_queue(xbt, &fe->queues[i], i);
		if (err)
			goto abort;
	}
	err = xenbus_transaction_end(xbt, 0);
	if (err == -EAGAIN)
		goto again;
	if (err)
		xenbus_dev_fatal(xdev, err, "ending a transaction");
	return err;

abort:
	xenbus_transaction_end(xbt, 1);
	xenbus_dev_fatal(xdev, err, "writing %s", what);
	return err;
}

static int setup(struct xnem_fe *fe)
{
	u32 reserved;
	int err;

	err = read_offers(fe);
	if (err)
		return err;
	reserved = xnem_windows_setup(fe);
	spin_lock_irq(&fe->lock);
	fe->max_pages = min(xnem_page_budget() - reserved, fe->limits.pages);
	fe->limits.region_pages = min(fe->limits.region_pages, fe->max_pages);
	spin_unlock_irq(&fe->lock);
	err = xnem_queues_setup(fe);
	if (err) {
		xenbus_dev_fatal(fe->xdev, err, "setting up the queues");
		/* Without queues no disconnect() would come to them. */
		xnem_windows_down(fe);
		return err;
	}
	err = write_nodes(fe);
	if (err)
		goto fail;
	fe->closing = false;
	xnem_queues_start(fe);
	err = xenbus_switch_state(fe->xdev, XenbusStateInitialised);
	if (err)
		goto fail;
	return 0;
fail:
	disconnect(fe, true);
	return err;
}

static void connected(struct xnem_fe *fe)
{
	spin_lock_irq(&fe->lock);
	fe->phase = XNEM_FE_UP;
	/* For who waits already. */
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	fe->failures = 0;
	xenbus_switch_state(fe->xdev, XenbusStateConnected);
	dev_info_ratelimited(&fe->xdev->dev, "connected: backend in domain %u, /dev/%s\n",
			     fe->backend, fe->name);
}

static void backend_changed(struct xenbus_device *xdev, enum xenbus_state state)
{
	struct xnem_fe *fe = dev_get_drvdata(&xdev->dev);

	mutex_lock(&fe->state_lock);
	switch (state) {
	case XenbusStateInitWait:
		if (fe->broken || fe->failures >= XNEM_FE_FAILURES)
			break;
		switch (xdev->state) {
		case XenbusStateConnected:
			/* Another life of the backend: it holds nothing of before. */
			disconnect(fe, true);
			if (fe->broken) {
				xenbus_switch_state(xdev, XenbusStateClosed);
				break;
			}
			fallthrough;
		case XenbusStateInitialising:
			if (setup(fe))
				fe->failures++;
			break;
		case XenbusStateClosed:
			xenbus_switch_state(xdev, XenbusStateInitialising);
			break;
		default:
			break; /* told twice */
		}
		break;
	case XenbusStateConnected:
		if (xdev->state == XenbusStateInitialised)
			connected(fe);
		break;
	case XenbusStateClosing:
		/*
		 * May be the toolstack's word, while the backend goes on: that
		 * it has let go only its own Closed says.  Asked for here.
		 */
		if (fe->nr_queues) {
			fe->closing = true;
			xenbus_switch_state(xdev, XenbusStateClosing);
			mod_delayed_work(xnem_wq, &fe->stuck_work, XNEM_FE_STUCK);
		} else {
			xenbus_switch_state(xdev, XenbusStateClosed);
		}
		break;
	case XenbusStateClosed:
	case XenbusStateUnknown:
		disconnect(fe, state == XenbusStateClosed);
		/*
		 * A backend that is to come back finds us ready, unless one of
		 * us cannot: then only a detach and attach begins anew.
		 */
		if (!fe->broken && fe->failures < XNEM_FE_FAILURES &&
		    xenbus_read_unsigned(xdev->otherend, "online", 0))
			xenbus_switch_state(xdev, XenbusStateInitialising);
		else
			xenbus_switch_state(xdev, XenbusStateClosed);
		break;
	default:
		break;
	}
	mutex_unlock(&fe->state_lock);
}

/* The backend broke the protocol; see queue.c. */
static void break_work(struct work_struct *work)
{
	struct xnem_fe *fe = container_of(work, struct xnem_fe, break_work);

	mutex_lock(&fe->state_lock);
	disconnect(fe, false);
	xenbus_dev_fatal(fe->xdev, -EPROTO,
			 "backend broke the protocol: %s; detach and attach to use it again",
			 fe->broke);
	mutex_unlock(&fe->state_lock);
}

/* It did not close within XNEM_FE_STUCK: without it, then. */
static void stuck_work(struct work_struct *work)
{
	struct xnem_fe *fe = container_of(to_delayed_work(work), struct xnem_fe, stuck_work);

	mutex_lock(&fe->state_lock);
	if (fe->nr_queues && fe->closing) {
		disconnect(fe, false);
		xenbus_switch_state(fe->xdev, XenbusStateClosed);
	}
	mutex_unlock(&fe->state_lock);
}

/* Only what says so, or says nothing, is trusted; not what cannot be read. */
static bool node_trusts(struct xenbus_device *xdev)
{
	unsigned int value;
	int err = xenbus_scanf(XBT_NIL, xdev->nodename, "trusted", "%u", &value);

	return err == 1 ? value : err == -ENOENT;
}

static int probe(struct xenbus_device *xdev, const struct xenbus_device_id *id)
{
	const char *last = strrchr(xdev->nodename, '/');
	struct xnem_fe *fe;
	int err;

	fe = kzalloc(sizeof(*fe), GFP_KERNEL);
	if (!fe) {
		xenbus_dev_fatal(xdev, -ENOMEM, "allocating the device");
		return -ENOMEM;
	}
	if (!last || !xnem_parse_u32(last + 1, &fe->id)) {
		xenbus_dev_fatal(xdev, -EINVAL, "not a device number: %s", xdev->nodename);
		kfree(fe);
		return -EINVAL;
	}
	kref_init(&fe->ref);
	fe->xdev = xdev;
	fe->trusted = trusted && node_trusts(xdev);
	snprintf(fe->name, sizeof(fe->name), "xnem%u", fe->id);
	spin_lock_init(&fe->lock);
	mutex_init(&fe->state_lock);
	INIT_LIST_HEAD(&fe->contexts);
	INIT_LIST_HEAD(&fe->pending);
	INIT_LIST_HEAD(&fe->pending_ctx);
	INIT_LIST_HEAD(&fe->ended);
	INIT_LIST_HEAD(&fe->quarantine);
	init_llist_head(&fe->dead_ctx);
	init_waitqueue_head(&fe->desc_wait);
	xa_init_flags(&fe->numbers, XA_FLAGS_ALLOC);
	INIT_DELAYED_WORK(&fe->reap, xnem_reap);
	xnem_windows_init(fe);
	INIT_WORK(&fe->break_work, break_work);
	INIT_DELAYED_WORK(&fe->stuck_work, stuck_work);
	/* Until a backend says how many. */
	fe->limits.contexts = 64;
	dev_set_drvdata(&xdev->dev, fe);

	err = xnem_chardev_add(fe);
	if (err) {
		xenbus_dev_fatal(xdev, err, "registering /dev/%s", fe->name);
		dev_set_drvdata(&xdev->dev, NULL);
		xnem_fe_put(fe);
		return err;
	}
	xnem_stats_add_device(fe);
	/* After a reload it is Closed; the backend waits for this. */
	xenbus_switch_state(xdev, XenbusStateInitialising);
	return 0;
}

/* Has the backend let go, or is there none that could? */
static bool backend_let_go(struct xenbus_device *xdev)
{
	int state, err = xenbus_scanf(XBT_NIL, xdev->otherend, "state", "%d", &state);

	/* Not xenbus_read_driver_state(): that it could not be read is no answer. */
	if (err != 1)
		return err == -ENOENT;
	switch (state) {
	case XenbusStateClosed:
	case XenbusStateInitialising:
	case XenbusStateInitWait:
		return true;
	default:
		return false;
	}
}

static XNEM_REMOVE_TYPE remove(struct xenbus_device *xdev)
{
	struct xnem_fe *fe = dev_get_drvdata(&xdev->dev);
	unsigned long until = jiffies + XNEM_FE_STUCK;
	struct xnem_ctx *ctx;
	bool let_go;

	xnem_chardev_remove(fe);
	WRITE_ONCE(fe->removed, true);
	/*
	 * Let the backend unmap first: what it still maps could not be freed
	 * now.  A backend that is stuck does not hold us up for long.
	 */
	let_go = !fe->nr_queues || fe->stale;
	if (!let_go && !fe->broken) {
		xenbus_switch_state(xdev, XenbusStateClosing);
		while (!(let_go = backend_let_go(xdev)) && time_before(jiffies, until))
			msleep(20);
	}
	mutex_lock(&fe->state_lock);
	disconnect(fe, let_go);
	mutex_unlock(&fe->state_lock);
	cancel_work_sync(&fe->break_work);
	cancel_delayed_work_sync(&fe->stuck_work);
	/* Whoever polls for the end of the device. */
	spin_lock_irq(&fe->lock);
	list_for_each_entry(ctx, &fe->contexts, entry)
		xnem_ctx_wake(ctx);
	spin_unlock_irq(&fe->lock);

	/* Everything is ended now; give what is in quarantine its time. */
	until = jiffies + XNEM_FE_STUCK;
	do {
		flush_delayed_work(&fe->reap);
		if (!xnem_windows_left(fe) && list_empty(&fe->quarantine) && list_empty(&fe->ended))
			break;
		msleep(20);
	} while (time_before(jiffies, until));
	if (fe->quarantined)
		dev_warn(&xdev->dev, "%u references are still in use; left to the kernel\n",
			 fe->quarantined);
	/* From here on nothing stays in quarantine, so nothing retries. */
	fe->revoke_after = 0;
	WRITE_ONCE(fe->defer, true);
	xnem_windows_defer(fe);
	xnem_reap_now(fe);
	flush_delayed_work(&fe->reap);
	xnem_stats_remove_device(fe);
	dev_set_drvdata(&xdev->dev, NULL);
	fe->xdev = NULL;
	xnem_fe_put(fe);
	return XNEM_REMOVE_RETURN;
}

/* A new life after restore or migration: nothing of before is valid. */
static int resume(struct xenbus_device *xdev)
{
	struct xnem_fe *fe = dev_get_drvdata(&xdev->dev);

	cancel_work_sync(&fe->break_work);
	mutex_lock(&fe->state_lock);
	/* The other end is another one; nobody holds what was granted. */
	disconnect(fe, true);
	fe->broken = false;
	fe->failures = 0;
	fe->kept_lives = 0;
	mutex_unlock(&fe->state_lock);
	return 0;
}

static const struct xenbus_device_id ids[] = { { "xnem" }, { "" } };

static struct xenbus_driver xnem_frontend_driver = {
	.name = "xnem-frontend",
	.ids = ids,
	.probe = probe,
	.remove = remove,
	.resume = resume,
	.otherend_changed = backend_changed,
	XNEM_NOT_ESSENTIAL,
};

/* ---- devices that did not come along ---- */

/*
 * A guest that was restored or migrated has the devices that its new toolstack
 * gave it, which need not be ours.  xenbus does not resume a device without
 * nodes, and does not remove it either: requests would hang, and while it is
 * there no new device with its number is probed.  After a restore each watch is
 * told of its own path, so we look then.  It runs in the thread that probes and
 * removes devices, so none of that is under way.
 */
static int find_stale(struct device *dev, void *found)
{
	struct xenbus_device *xdev = to_xenbus_device(dev);
	char *backend = xenbus_read(XBT_NIL, xdev->nodename, "backend", NULL);
	bool stale;

	if (IS_ERR(backend))
		stale = PTR_ERR(backend) == -ENOENT;
	else
		stale = !xdev->otherend || strcmp(backend, xdev->otherend);
	if (!IS_ERR(backend))
		kfree(backend);
	if (!stale)
		return 0;
	*(struct device **)found = get_device(dev);
	return 1;
}

static void remove_stale(struct device *dev)
{
	struct xenbus_device *xdev = to_xenbus_device(dev);
	struct xnem_fe *fe = dev_get_drvdata(dev);
	char *node = kstrdup(xdev->nodename, GFP_KERNEL);

	dev_info(dev, "not there any more after a restore\n");
	if (fe)
		fe->stale = true;
	/* So that xenbus writes nothing to the nodes of a new one. */
	xdev->state = XenbusStateClosed;
	device_unregister(dev);
	/* Has a new one come meanwhile?  xenbus has seen it and passed it over. */
	if (node && xenbus_read_driver_state(node) == XenbusStateInitialising)
		xenbus_printf(XBT_NIL, node, "state", "%d", XenbusStateInitialising);
	kfree(node);
}

static void devices_changed(struct xenbus_watch *watch, const char *path, const char *token)
{
	struct device *dev;

	if (strcmp(path, watch->node))
		return;
	while (driver_for_each_device(&xnem_frontend_driver.driver, NULL, &dev, find_stale)) {
		remove_stale(dev);
		put_device(dev);
	}
}

static struct xenbus_watch devices_watch = {
	.node = "device/xnem",
	.callback = devices_changed,
};
static bool watching;

/* In dom0 xenstore may come later than we. */
static int xenstore_there(struct notifier_block *nb, unsigned long event, void *data)
{
	int err = register_xenbus_watch(&devices_watch);

	watching = !err;
	if (err)
		pr_warn("xnem-frontend: no watch (%d); a device that is gone after a restore stays\n",
			err);
	return NOTIFY_DONE;
}

static struct notifier_block xenstore_nb = { .notifier_call = xenstore_there };

int xnem_fe_xenbus_init(void)
{
	int err = xenbus_register_frontend(&xnem_frontend_driver);

	if (!err)
		register_xenstore_notifier(&xenstore_nb);
	return err;
}

void xnem_fe_xenbus_exit(void)
{
	unregister_xenstore_notifier(&xenstore_nb);
	if (watching)
		unregister_xenbus_watch(&devices_watch);
	xenbus_unregister_driver(&xnem_frontend_driver);
}
