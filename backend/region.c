// SPDX-License-Identifier: GPL-2.0
/*
 * Zones and regions: who may name what, and when it is let go.
 */
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/xarray.h>

#include "backend.h"

static DEFINE_XARRAY(regions); /* by id; read under RCU */
static atomic64_t next_id = ATOMIC64_INIT(1);
static atomic_t endings;

static LIST_HEAD(zones);
static DEFINE_MUTEX(zones_lock);
/* This backend's life: makes its fabric ids. */
static siphash_key_t life;

/* Waited on by a device that goes; not in it, as it may be freed at once. */
static DECLARE_WAIT_QUEUE_HEAD(regions_gone);

int xnem_region_init(void)
{
	get_random_bytes(&life, sizeof(life));
	return 0;
}

struct xnem_zone *xnem_zone_get(const char *name)
{
	struct xnem_zone *zone;

	mutex_lock(&zones_lock);
	list_for_each_entry(zone, &zones, entry) {
		if (!strcmp(zone->name, name)) {
			zone->users++;
			goto out;
		}
	}
	zone = kzalloc(sizeof(*zone), GFP_KERNEL);
	if (!zone)
		goto out;
	strscpy(zone->name, name, sizeof(zone->name));
	/* The same when the zone comes back in this life; 0 means none. */
	zone->fabric_id = siphash(name, strlen(name), &life) ?: 1;
	zone->users = 1;
	list_add(&zone->entry, &zones);
out:
	mutex_unlock(&zones_lock);
	return zone;
}

void xnem_zone_put(struct xnem_zone *zone)
{
	mutex_lock(&zones_lock);
	if (!--zone->users) {
		list_del(&zone->entry);
		kfree(zone);
	}
	mutex_unlock(&zones_lock);
}

enum xnem_status xnem_region_register(struct xnem_be_queue *q, u32 context,
				      const struct xnem_request *req, u64 *id, u64 *key)
{
	u32 nr_pages = le32_to_cpu(req->u.reg.nr_pages);
	struct xnem_be *dev = q->dev;
	enum xnem_status status;
	struct xnem_region *r;
	u32 i;

	if (dev->nr_regions >= dev->limits.regions || nr_pages > dev->limits.pages - dev->nr_pages)
		return XNEM_ST_LIMIT;

	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return XNEM_ST_NOMEM;
	r->refs = kvmalloc_array(nr_pages, sizeof(*r->refs), GFP_KERNEL | __GFP_NOWARN);
	if (!r->refs) {
		kfree(r);
		return XNEM_ST_NOMEM;
	}
	r->access = le32_to_cpu(req->u.reg.access);
	r->flags = le32_to_cpu(req->u.reg.flags);
	r->tag = le64_to_cpu(req->tag);
	r->length = le64_to_cpu(req->u.reg.length);
	r->offset = le32_to_cpu(req->u.reg.offset);
	r->nr_pages = nr_pages;
	r->context = context;
	r->domid = dev->xdev->otherend_id;
	r->dev = dev;
	r->zone = dev->zone;
	r->worker = q->worker;
	refcount_set(&r->users, 1);

	if (r->flags & XNEM_REGION_INDIRECT) {
		status = xnem_copy_descriptors(q, req->u.reg.ref, r->refs, nr_pages);
		if (status != XNEM_ST_OK)
			goto free;
	} else {
		for (i = 0; i < nr_pages; i++)
			r->refs[i] = le32_to_cpu(req->u.reg.ref[i]);
	}

	/* Never used twice: 64 bits do not run out in a backend's life. */
	r->id = atomic64_inc_return(&next_id);
	r->key = get_random_u64();
	if (xa_err(xa_store(&regions, r->id, r, GFP_KERNEL))) {
		status = XNEM_ST_NOMEM;
		goto free;
	}
	list_add(&r->entry, &dev->regions);
	dev->nr_regions++;
	dev->nr_pages += nr_pages;
	atomic_inc(&dev->live_regions);
	*id = r->id;
	*key = r->key;
	return XNEM_ST_OK;

free:
	kvfree(r->refs);
	kfree(r);
	return status;
}

/* Become a user of region @id; of any, or of @zone's with the right @key. */
static struct xnem_region *use_if(u64 id, const struct xnem_zone *zone, u64 key, bool any)
{
	struct xnem_region *r;

	rcu_read_lock();
	r = id <= ULONG_MAX ? xa_load(&regions, id) : NULL;
	/* One answer for unknown, another zone and wrong key. */
	if (r &&
	    ((!any && (r->zone != zone || r->key != key)) || !refcount_inc_not_zero(&r->users)))
		r = NULL;
	rcu_read_unlock();
	if (r && READ_ONCE(r->dying)) {
		xnem_region_drop(r);
		r = NULL;
	}
	return r;
}

struct xnem_region *xnem_region_use(struct xnem_zone *zone, u64 id, u64 key)
{
	return use_if(id, zone, key, false);
}

struct xnem_region *xnem_region_use_any(u64 id)
{
	return use_if(id, NULL, 0, true);
}

void xnem_region_drop(struct xnem_region *r)
{
	struct xnem_worker *w = r->worker;

	if (refcount_dec_and_test(&r->users)) {
		llist_add(&r->released, &w->released);
		xnem_worker_kick(w);
	}
}

static void region_end(struct xnem_region *r)
{
	WRITE_ONCE(r->dying, true);
	xa_erase(&regions, r->id);
	/* Copies that use it wait for their turn, maybe long: end them now. */
	if (refcount_read(&r->users) > 1) {
		atomic_inc(&endings);
		xnem_workers_kick_all();
	}
	xnem_region_drop(r);
}

int xnem_region_endings(void)
{
	return atomic_read(&endings);
}

enum xnem_status xnem_region_deregister(struct xnem_be_queue *q, u32 context, u64 id,
					struct xnem_job *job)
{
	struct xnem_region *r;

	/*
	 * Of this device: freed by this worker alone, so it stays while we
	 * look; of another device: only compared, under RCU for that reason.
	 */
	rcu_read_lock();
	r = id <= ULONG_MAX ? xa_load(&regions, id) : NULL;
	if (r && (r->dev != q->dev || r->context != context))
		r = NULL;
	rcu_read_unlock();
	if (!r || r->dying)
		return XNEM_ST_COOKIE;
	r->dereg = job;
	region_end(r);
	return XNEM_ST_OK;
}

void xnem_region_close_context(struct xnem_be_queue *q, u32 context, struct xnem_job *job)
{
	struct xnem_region *r;

	list_for_each_entry(r, &q->dev->regions, entry) {
		if (r->context == context && r->close) {
			xnem_job_answer(job, XNEM_ST_CONTEXT, 0, 0, 0);
			return;
		}
	}
	job->regions_left = 0;
	list_for_each_entry(r, &q->dev->regions, entry) {
		if (r->context != context)
			continue;
		r->close = job;
		job->regions_left++;
		if (!r->dying)
			region_end(r);
	}
	if (!job->regions_left)
		xnem_job_answer(job, XNEM_ST_OK, 0, 0, 0);
}

void xnem_region_orphan_all(struct xnem_be *dev)
{
	struct xnem_region *r;

	list_for_each_entry(r, &dev->regions, entry) {
		r->dereg = NULL;
		r->close = NULL;
		WRITE_ONCE(r->gone, true);
		if (!r->dying)
			region_end(r);
	}
}

void xnem_region_wait_gone(struct xnem_be *dev)
{
	wait_event(regions_gone, !atomic_read(&dev->live_regions));
}

bool xnem_region_reap(struct xnem_worker *w)
{
	struct llist_node *node = llist_del_all(&w->released);
	struct xnem_region *r, *next;

	if (!node)
		return false;
	llist_for_each_entry_safe(r, next, node, released) {
		struct xnem_be *dev = r->dev;

		if (r->dereg)
			xnem_job_answer(r->dereg, XNEM_ST_OK, 0, 0, 0);
		if (r->close && !--r->close->regions_left)
			xnem_job_answer(r->close, XNEM_ST_OK, 0, 0, 0);
		list_del(&r->entry);
		dev->nr_regions--;
		dev->nr_pages -= r->nr_pages;
		kvfree(r->refs);
		/* A look-up may still be reading its head. */
		kfree_rcu(r, rcu);
		/* dev may be freed from here on. */
		if (atomic_dec_and_test(&dev->live_regions))
			wake_up_all(&regions_gone);
	}
	return true;
}
