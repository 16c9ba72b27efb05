// SPDX-License-Identifier: GPL-2.0
/*
 * The backend's state machine (xnemif.h, section 2).
 */
#include <linux/module.h>

#include "backend.h"

/* Numbers of devices; 0 is none. */
static atomic_t serials;

static char *node_or_null(const char *dir, const char *node)
{
	char *s = xenbus_read(XBT_NIL, dir, node, NULL);

	return IS_ERR(s) ? NULL : s;
}

/* Undo connect(), whole or half done.  May be called twice. */
static void disconnect(struct xnem_be *dev)
{
	unsigned int i;

	/* One that connects now and then among failures is not forgiven. */
	if (dev->connected && time_after(jiffies, dev->connected_since + 10 * HZ))
		dev->failures = 0;
	dev->connected = false;
	for (i = 0; i < dev->nr_queues; i++)
		xnem_queue_disconnect(&dev->queues[i]);
	xnem_region_wait_gone(dev);
	dev->nr_queues = 0;
	xnem_windows_free(dev);
	/* Each time is a message: a frontend may not make them without end. */
	if (dev->map_failed && ++dev->failures >= XNEM_BE_FAILURES)
		dev->banned = true;
	dev->map_failed = false;
}

static int read_frontend_u32(struct xnem_be *dev, const char *node, u32 *value)
{
	char *s = node_or_null(dev->xdev->otherend, node);
	bool ok = s && xnem_parse_u32(s, value);

	kfree(s);
	if (!ok)
		xenbus_dev_fatal(dev->xdev, -EINVAL, "reading %s/%s", dev->xdev->otherend, node);
	return ok ? 0 : -EINVAL;
}

static int connect(struct xnem_be *dev)
{
	struct xenbus_device *xdev = dev->xdev;
	u32 version, nr_queues, nr_windows, i;
	char *s;
	bool ok;
	int err;

	err = read_frontend_u32(dev, "version", &version);
	if (err)
		return err;
	if (version != XNEM_PROTO_VERSION) {
		xenbus_dev_fatal(xdev, -EPROTO, "frontend speaks version %u, this is %u", version,
				 XNEM_PROTO_VERSION);
		return -EPROTO;
	}
	s = node_or_null(xdev->otherend, "features");
	ok = s && xnem_parse_hex64(s, &dev->features);
	kfree(s);
	if (!ok || (dev->features & ~XNEM_BE_FEATURES)) {
		xenbus_dev_fatal(xdev, -EPROTO, "frontend wants features that were not offered");
		return -EPROTO;
	}
	err = read_frontend_u32(dev, "num-queues", &nr_queues);
	if (err)
		return err;
	if (!nr_queues || nr_queues > dev->limits.queues) {
		xenbus_dev_fatal(xdev, -EINVAL, "frontend wants %u queues, %u are allowed",
				 nr_queues, dev->limits.queues);
		return -EINVAL;
	}

	for (i = 0; i < nr_queues; i++) {
		err = xnem_queue_connect(&dev->queues[i], i);
		if (err) {
			disconnect(dev);
			return err;
		}
		dev->nr_queues = i + 1;
	}
	if (dev->features & XNEM_FEAT_WINDOW) {
		err = read_frontend_u32(dev, "windows", &nr_windows);
		if (!err && nr_windows > dev->limits.windows) {
			err = -EINVAL;
			xenbus_dev_fatal(xdev, err, "frontend wants %u windows, %u are allowed",
					 nr_windows, dev->limits.windows);
		}
		if (!err)
			err = xnem_windows_open(dev, nr_windows);
		if (err) {
			disconnect(dev);
			return err;
		}
	}
	dev->connected = true;
	dev_info_ratelimited(&xdev->dev, "connected: domain %u, zone %s\n", xdev->otherend_id,
			     dev->zone->name);
	return 0;
}

/*
 * Go to @state over every state between, as netback and pvcalls do: two
 * changes of the frontend can arrive as one.
 */
static void set_state(struct xnem_be *dev, enum xenbus_state state)
{
	struct xenbus_device *xdev = dev->xdev;
	enum xenbus_state before = XenbusStateUnknown;

	/* A state that cannot be written would be tried for ever. */
	while (xdev->state != state && xdev->state != before) {
		before = xdev->state;
		switch (before) {
		case XenbusStateInitialising:
			xenbus_switch_state(xdev, XenbusStateInitWait);
			break;
		case XenbusStateClosed:
			if (state == XenbusStateClosing)
				return;
			xenbus_switch_state(xdev, XenbusStateInitWait);
			break;
		case XenbusStateInitWait:
			if (state == XenbusStateConnected) {
				if (connect(dev)) {
					/* It told why and went to Closing, if it could. */
					if (xdev->state == XenbusStateInitWait)
						xenbus_dev_fatal(xdev, -ENOMEM, "connecting");
					if (++dev->failures >= XNEM_BE_FAILURES)
						dev->banned = true;
					return;
				}
				dev->connected_since = jiffies;
				xenbus_switch_state(xdev, XenbusStateConnected);
			} else {
				xenbus_switch_state(xdev, XenbusStateClosing);
			}
			break;
		case XenbusStateConnected:
			disconnect(dev);
			xenbus_switch_state(xdev, XenbusStateClosing);
			break;
		case XenbusStateClosing:
			disconnect(dev);
			xenbus_switch_state(xdev, XenbusStateClosed);
			break;
		default:
			xenbus_dev_fatal(xdev, -EINVAL, "in state %d", xdev->state);
			return;
		}
	}
}

static void frontend_changed(struct xenbus_device *xdev, enum xenbus_state frontend_state)
{
	struct xnem_be *dev = dev_get_drvdata(&xdev->dev);
	bool unregister = false;

	mutex_lock(&dev->state_lock);
	switch (frontend_state) {
	case XenbusStateInitialising:
		/* A frontend that was cut off stays so until it is attached anew. */
		if (!dev->banned && xdev->state != XenbusStateInitWait) {
			if (xdev->state == XenbusStateConnected)
				set_state(dev, XenbusStateClosed);
			set_state(dev, XenbusStateInitWait);
		}
		break;
	case XenbusStateInitialised:
	case XenbusStateConnected:
		if (!dev->banned && xdev->state == XenbusStateInitWait)
			set_state(dev, XenbusStateConnected);
		break;
	case XenbusStateClosing:
		/* Closed says that everything is let go: it waits for that. */
		set_state(dev, XenbusStateClosed);
		break;
	case XenbusStateClosed:
		set_state(dev, XenbusStateClosed);
		unregister = !xenbus_dev_is_online(xdev);
		break;
	case XenbusStateUnknown:
		/* The guest is gone. */
		set_state(dev, XenbusStateClosed);
		unregister = true;
		break;
	default:
		break;
	}
	mutex_unlock(&dev->state_lock);
	/* Calls remove(), which waits for the ban work: not under the lock. */
	if (unregister)
		device_unregister(&xdev->dev);
}

static void ban(struct work_struct *work)
{
	struct xnem_be *dev = container_of(work, struct xnem_be, ban_work);

	mutex_lock(&dev->state_lock);
	disconnect(dev);
	xenbus_dev_fatal(dev->xdev, -EPROTO,
			 "frontend broke the protocol: %s; detach and attach to serve it again",
			 READ_ONCE(dev->broke));
	mutex_unlock(&dev->state_lock);
}

static int write_offers(struct xnem_be *dev)
{
	const struct xnem_limits *lim = &dev->limits;
	const char *dir = dev->xdev->nodename;
	int err;

	err = xenbus_printf(XBT_NIL, dir, "versions", "%u %u", XNEM_PROTO_VERSION,
			    XNEM_PROTO_VERSION);
	if (!err)
		err = xenbus_printf(XBT_NIL, dir, "features", "%llx", XNEM_BE_FEATURES);
	if (!err)
		err = xenbus_printf(XBT_NIL, dir, "limits",
				    "queues=%u sq-order=%u cq-order=%u inflight=%u contexts=%u "
				    "regions=%u region-pages=%u pages=%u windows=%u "
				    "window-pages=%u",
				    lim->queues, lim->sq_order, lim->cq_order, lim->inflight,
				    lim->contexts, lim->regions, lim->region_pages, lim->pages,
				    lim->windows, lim->window_pages);
	if (!err)
		err = xenbus_printf(XBT_NIL, dir, "fabric-id", "%016llx", dev->zone->fabric_id);
	return err;
}

static int probe(struct xenbus_device *xdev, const struct xenbus_device_id *id)
{
	struct xnem_be *dev;
	unsigned int i;
	char *zone;
	int err;

	if (READ_ONCE(xnem_leaving)) {
		/* Stays in state Initialising for the module's next life. */
		dev_warn(&xdev->dev, "not served: this module is about to be unloaded\n");
		return -EBUSY;
	}
	dev = kvzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev) {
		xenbus_dev_fatal(xdev, -ENOMEM, "allocating the device");
		return -ENOMEM;
	}
	dev->xdev = xdev;
	dev->limits = xnem_be_limits;
	/* One a worker is all that helps. */
	dev->limits.queues = min_t(u32, xnem_nr_workers, XNEM_BE_QUEUES);
	mutex_init(&dev->state_lock);
	INIT_LIST_HEAD(&dev->large);
	INIT_LIST_HEAD(&dev->large_turn);
	xa_init(&dev->contexts);
	INIT_WORK(&dev->ban_work, ban);
	dev->serial = atomic_inc_return(&serials);
	/* nodename ends in <domid>/<id>; without a number it is 0. */
	if (kstrtou32(kbasename(xdev->nodename), 10, &dev->id))
		dev->id = 0;
	for (i = 0; i < XNEM_BE_QUEUES; i++)
		dev->queues[i].dev = dev;

	zone = xenbus_read(XBT_NIL, xdev->nodename, "zone", NULL);
	if (IS_ERR(zone)) {
		err = PTR_ERR(zone);
		/* That it could not be read does not put a guest among others. */
		if (err != -ENOENT) {
			xenbus_dev_fatal(xdev, err, "reading %s/zone", xdev->nodename);
			goto free;
		}
		zone = NULL;
	}
	if (zone && !xnem_zone_name_ok(zone)) {
		err = -EINVAL;
		xenbus_dev_fatal(xdev, err, "not a zone's name: %s/zone", xdev->nodename);
		kfree(zone);
		goto free;
	}
	dev->zone = xnem_zone_get(zone ? zone : "default");
	kfree(zone);
	if (!dev->zone) {
		err = -ENOMEM;
		xenbus_dev_fatal(xdev, err, "allocating the zone");
		goto free;
	}
	dev_set_drvdata(&xdev->dev, dev);

	err = write_offers(dev);
	if (err) {
		/* Most often: the domain's share of xenstore is used up. */
		xenbus_dev_fatal(xdev, err, "writing to %s (xenstore quota?)", xdev->nodename);
		goto zone;
	}
	xnem_stats_add(dev);
	switch (xenbus_read_driver_state(xdev->otherend)) {
	case XenbusStateInitialised:
	case XenbusStateConnected:
		/*
		 * It is connected to a backend before this one: its rings are
		 * not new.  Closed makes it begin anew.
		 */
		err = xenbus_switch_state(xdev, XenbusStateClosed);
		break;
	default:
		err = xenbus_switch_state(xdev, XenbusStateInitWait);
		break;
	}
	if (err)
		goto stats;
	return 0;

stats:
	xnem_stats_remove(dev);
zone:
	dev_set_drvdata(&xdev->dev, NULL);
	xnem_zone_put(dev->zone);
free:
	kvfree(dev);
	return err;
}

static XNEM_REMOVE_TYPE remove(struct xenbus_device *xdev)
{
	struct xnem_be *dev = dev_get_drvdata(&xdev->dev);

	mutex_lock(&dev->state_lock);
	disconnect(dev);
	mutex_unlock(&dev->state_lock);
	/* After that: no queue is left that could ask for it again. */
	cancel_work_sync(&dev->ban_work);
	xnem_stats_remove(dev);
	dev_set_drvdata(&xdev->dev, NULL);
	xnem_zone_put(dev->zone);
	kvfree(dev);
	return XNEM_REMOVE_RETURN;
}

static const struct xenbus_device_id ids[] = { { "xnem" }, { "" } };

static struct xenbus_driver xnem_backend_driver = {
	.name = "xnem-backend",
	.ids = ids,
	.probe = probe,
	.remove = remove,
	.otherend_changed = frontend_changed,
};

int xnem_be_xenbus_init(void)
{
	return xenbus_register_backend(&xnem_backend_driver);
}

void xnem_be_xenbus_exit(void)
{
	xenbus_unregister_driver(&xnem_backend_driver);
}
