// SPDX-License-Identifier: GPL-2.0
/*
 * Counters in debugfs: /sys/kernel/debug/xnem-backend/<domid>-<id>/counters,
 * one directory a device, and total/counters, the sum over all devices that
 * were there since the module was loaded.  "key value" a line; keys are only
 * ever added.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "backend.h"

static struct dentry *root;
static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);
/* What devices that have gone have counted. */

static const char *const status_names[XNEM_ST_MAX + 1] = {
	[XNEM_ST_INVALID] = "invalid",
	[XNEM_ST_UNSUPPORTED] = "unsupported",
	[XNEM_ST_COOKIE] = "cookie",
	[XNEM_ST_ACCESS] = "access",
	[XNEM_ST_TAG] = "tag",
	[XNEM_ST_RANGE] = "range",
	[XNEM_ST_LIMIT] = "limit",
	[XNEM_ST_NOMEM] = "nomem",
	[XNEM_ST_FAULT] = "fault",
	[XNEM_ST_PEER_GONE] = "peer_gone",
	[XNEM_ST_CANCELLED] = "cancelled",
	[XNEM_ST_AGAIN] = "again",
	[XNEM_ST_CONTEXT] = "context",
	[XNEM_ST_BUSY] = "busy",
};

/* struct xnem_be_stats is u64 all through: sums need no names. */
#define NR_STATS (sizeof(struct xnem_be_stats) / sizeof(u64))

static void add(struct xnem_be_stats *sum, const struct xnem_be_stats *s)
{
	const u64 *from = (const u64 *)s;
	u64 *to = (u64 *)sum;
	unsigned int i;

	BUILD_BUG_ON(sizeof(struct xnem_be_stats) % sizeof(u64));
	for (i = 0; i < NR_STATS; i++)
		to[i] += READ_ONCE(from[i]);
}

/* A device's counters, or of all of them. */
struct sum {
	struct xnem_be_stats queues;
	u64 events_received;
	u64 bytes, grant_ops, hypercalls, eagain, chunks, inbox_events, wants, windows;
	u64 wait_bytes_max;
	u32 nr_regions, nr_pages;
};

/* What devices that have gone have counted. */
static struct sum past;

static void add_device(struct sum *sum, struct xnem_be *dev)
{
	struct xnem_be_shared_stats *shared = &dev->shared;
	unsigned int i;

	for (i = 0; i < XNEM_BE_QUEUES; i++) {
		add(&sum->queues, &dev->queues[i].stats);
		sum->events_received += READ_ONCE(dev->queues[i].events_received);
		sum->wait_bytes_max =
			max(sum->wait_bytes_max, READ_ONCE(dev->queues[i].wait_bytes_max));
	}
	sum->bytes += atomic64_read(&shared->bytes);
	sum->grant_ops += atomic64_read(&shared->grant_ops);
	sum->hypercalls += atomic64_read(&shared->hypercalls);
	sum->eagain += atomic64_read(&shared->eagain);
	sum->chunks += atomic64_read(&shared->chunks);
	sum->wants += atomic64_read(&shared->wants);
	sum->windows += atomic64_read(&shared->windows);
	sum->inbox_events += atomic64_read(&shared->inbox_events);
	sum->nr_regions += atomic_read(&dev->nr_regions);
	sum->nr_pages += atomic_read(&dev->nr_pages);
}

static void print(struct seq_file *m, const struct sum *sum)
{
	const struct xnem_be_stats *s = &sum->queues;
	unsigned int i;

#define LINE(name) seq_printf(m, #name " %llu\n", s->name)
#define SHARED(name) seq_printf(m, #name " %llu\n", sum->name)
	LINE(requests);
	LINE(completions);
	LINE(dropped);
	SHARED(bytes);
	SHARED(grant_ops);
	SHARED(hypercalls);
	LINE(desc_pages);
	LINE(cpage_entries);
	/* Those for an inbox are sent by whoever puts something there. */
	seq_printf(m, "events_sent %llu\n", s->events_sent + sum->inbox_events);
	SHARED(inbox_events);
	SHARED(events_received);
	LINE(events_spurious);
	LINE(sleeps);
	SHARED(chunks);
	SHARED(wants);
	SHARED(windows);
	SHARED(eagain);
	/* Copied for anybody while a small copy waited: a maximum, not a sum. */
	SHARED(wait_bytes_max);
	LINE(throttled);
	LINE(fenced);
	LINE(cancelled);
	LINE(messages);
	LINE(notifications);
	LINE(inbox_full);
#undef SHARED
#undef LINE
	seq_printf(m, "inflight %llu\n", s->requests - s->completions - s->dropped);
	seq_printf(m, "regions %u\n", sum->nr_regions);
	seq_printf(m, "region_pages %u\n", sum->nr_pages);
	for (i = 1; i <= XNEM_ST_MAX; i++)
		seq_printf(m, "error_%s %llu\n", status_names[i], s->errors[i]);
}

static int counters_show(struct seq_file *m, void *unused)
{
	struct xnem_be *dev = m->private;
	struct sum sum = {};

	add_device(&sum, dev);
	print(m, &sum);
	seq_printf(m, "zone %s\nconnected %d\nbanned %d\nqueues %u\n", dev->zone->name,
		   dev->connected, dev->banned, dev->nr_queues);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int total_show(struct seq_file *m, void *unused)
{
	struct xnem_be *dev;
	struct sum sum;
	u32 nr = 0;

	mutex_lock(&devices_lock);
	sum = past;
	list_for_each_entry(dev, &devices, entry) {
		add_device(&sum, dev);
		nr++;
	}
	mutex_unlock(&devices_lock);
	print(m, &sum);
	seq_printf(m, "devices %u\n", nr);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(total);

void xnem_stats_init(void)
{
	root = debugfs_create_dir("xnem-backend", NULL);
	debugfs_create_file("counters", 0444, debugfs_create_dir("total", root), NULL, &total_fops);
	xnem_floor_init(root);
}

void xnem_stats_exit(void)
{
	debugfs_remove_recursive(root);
}

void xnem_stats_add(struct xnem_be *dev)
{
	char name[32];

	snprintf(name, sizeof(name), "%u-%u", dev->xdev->otherend_id, dev->id);
	mutex_lock(&devices_lock);
	list_add_tail(&dev->entry, &devices);
	mutex_unlock(&devices_lock);
	dev->debugfs = debugfs_create_dir(name, root);
	debugfs_create_file("counters", 0444, dev->debugfs, dev, &counters_fops);
}

void xnem_stats_remove(struct xnem_be *dev)
{
	/* Waits for readers. */
	debugfs_remove_recursive(dev->debugfs);
	mutex_lock(&devices_lock);
	list_del(&dev->entry);
	/* Its regions are gone. */
	add_device(&past, dev);
	mutex_unlock(&devices_lock);
}
