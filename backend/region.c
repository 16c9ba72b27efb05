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

static void region_free(struct xnem_region *r)
{
	if (r->ctx)
		xnem_ctx_put(r->ctx);
	kvfree(r->segs);
	kvfree(r->refs);
	/* A look-up may still be reading its head. */
	kfree_rcu(r, rcu);
}

/* References that stand in the request, or in the worker's copies of descriptor pages. */
static void read_refs(struct xnem_region *r, struct xnem_worker *w, const struct xnem_request *req)
{
	u32 i;

	for (i = 0; i < r->nr_pages; i++) {
		const xnem_le32 *from = req->u.reg.ref;

		if (r->flags & XNEM_REGION_INDIRECT)
			from = page_address(w->desc[i / XNEM_DESC_REFS]);
		r->refs[i] = le32_to_cpu(from[i % XNEM_DESC_REFS]);
	}
}

/* The segment table's pages are the descriptor pages from @page on. */
static enum xnem_status read_segments(struct xnem_region *r, struct xnem_worker *w, u32 page)
{
	struct xnem_segment *table = kvmalloc_array(r->nr_segs, sizeof(*table), GFP_KERNEL);
	enum xnem_status status = XNEM_ST_NOMEM;
	u32 i;

	r->segs = kvmalloc_array(r->nr_segs + 1, sizeof(*r->segs), GFP_KERNEL);
	if (!table || !r->segs)
		goto out;
	for (i = 0; i < r->nr_segs; i++) {
		const struct xnem_segment *from =
			page_address(w->desc[page + i / XNEM_DESC_SEGMENTS]);

		table[i] = from[i % XNEM_DESC_SEGMENTS];
	}
	status = xnem_check_segments(table, r->nr_segs, r->length, r->nr_pages);
	if (status == XNEM_ST_OK)
		xnem_segs_init(r->segs, table, r->nr_segs);
out:
	kvfree(table);
	return status;
}

/* All that the request says of a region but its flags, which stand in @r. */
static enum xnem_status read_description(struct xnem_region *r, struct xnem_be_queue *q,
					 const struct xnem_request *req)
{
	u32 first = 0, nr = xnem_register_refs(r->flags, r->nr_pages, r->nr_segs);
	enum xnem_status status;

	/* What stands in the request itself is no descriptor page. */
	if (!(r->flags & (XNEM_REGION_INDIRECT | XNEM_REGION_WINDOWED)))
		first = r->nr_pages;
	if (nr > first) {
		status = xnem_copy_descriptors(q, req->u.reg.ref + first, nr - first);
		if (status != XNEM_ST_OK)
			return status;
	}
	if (r->refs)
		read_refs(r, q->worker, req);
	if (!(r->flags & XNEM_REGION_SEGMENTS))
		return XNEM_ST_OK;
	nr -= DIV_ROUND_UP(r->nr_segs, XNEM_DESC_SEGMENTS);
	return read_segments(r, q->worker, nr - first);
}

/* Several workers count for one device. */
static bool take_limit(atomic_t *used, u32 n, u32 limit)
{
	if ((u32)atomic_add_return(n, used) <= limit)
		return true;
	atomic_sub(n, used);
	return false;
}

enum xnem_status xnem_region_register(struct xnem_be_ctx *ctx, const struct xnem_request *req,
				      u64 *id, u64 *key)
{
	u32 offset = le32_to_cpu(req->u.reg.offset);
	enum xnem_status status = XNEM_ST_NOMEM;
	struct xnem_be *dev = ctx->dev;
	struct xnem_region *r;
	u32 granted;

	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return XNEM_ST_NOMEM;
	r->access = le32_to_cpu(req->u.reg.access);
	r->flags = le32_to_cpu(req->u.reg.flags);
	r->tag = le64_to_cpu(req->tag);
	r->length = le64_to_cpu(req->u.reg.length);
	if (r->flags & XNEM_REGION_SEGMENTS)
		r->nr_segs = offset;
	else
		r->offset = offset;
	r->nr_pages = le32_to_cpu(req->u.reg.nr_pages);
	r->domid = ctx->domid;
	r->dev = dev;
	r->zone = dev->zone;
	r->worker = ctx->queue->worker;
	refcount_set(&r->users, 1);

	granted = r->flags & XNEM_REGION_WINDOWED ? 0 : r->nr_pages;
	if (!take_limit(&dev->nr_regions, 1, dev->limits.regions)) {
		region_free(r);
		return XNEM_ST_LIMIT;
	}
	if (!take_limit(&dev->nr_pages, granted, dev->limits.pages)) {
		status = XNEM_ST_LIMIT;
		goto drop_region;
	}
	if (granted) {
		r->refs = kvmalloc_array(granted, sizeof(*r->refs), GFP_KERNEL | __GFP_NOWARN);
		if (!r->refs)
			goto drop_pages;
	}
	status = read_description(r, ctx->queue, req);
	if (status != XNEM_ST_OK)
		goto drop_pages;

	/* Never used twice: 64 bits do not run out in a backend's life. */
	r->id = atomic64_inc_return(&next_id);
	r->key = get_random_u64();
	/* Before anybody can find it. */
	r->ctx = ctx;
	refcount_inc(&ctx->ref);
	if (xa_err(xa_store(&regions, r->id, r, GFP_KERNEL))) {
		status = XNEM_ST_NOMEM;
		goto drop_pages;
	}
	list_add(&r->entry, &ctx->regions);
	ctx->nr_regions++;
	atomic_inc(&dev->live_regions);
	*id = r->id;
	*key = r->key;
	return XNEM_ST_OK;

drop_pages:
	atomic_sub(granted, &dev->nr_pages);
drop_region:
	atomic_dec(&dev->nr_regions);
	region_free(r);
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

enum xnem_status xnem_region_deregister(struct xnem_be_ctx *ctx, u64 id, struct xnem_job *job)
{
	struct xnem_region *r;

	/*
	 * Of this context: freed by this worker alone, so it stays while we
	 * look; of another: only compared, under RCU for that reason.
	 */
	rcu_read_lock();
	r = id <= ULONG_MAX ? xa_load(&regions, id) : NULL;
	if (r && r->ctx != ctx)
		r = NULL;
	rcu_read_unlock();
	if (!r || r->dying)
		return XNEM_ST_COOKIE;
	r->dereg = job;
	region_end(r);
	return XNEM_ST_OK;
}

void xnem_region_end_all(struct xnem_be_ctx *ctx, bool gone)
{
	struct xnem_region *r;

	list_for_each_entry(r, &ctx->regions, entry) {
		if (gone) {
			r->dereg = NULL;
			WRITE_ONCE(r->gone, true);
		}
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
	struct llist_node *node;
	struct xnem_region *r, *next;

	/* An exchange wants the line for itself, a look does not. */
	if (llist_empty(&w->released))
		return false;
	node = llist_del_all(&w->released);
	llist_for_each_entry_safe(r, next, node, released) {
		struct xnem_be_ctx *ctx = r->ctx;
		struct xnem_be *dev = r->dev;

		list_del(&r->entry);
		ctx->nr_regions--;
		atomic_dec(&dev->nr_regions);
		if (r->refs)
			atomic_sub(r->nr_pages, &dev->nr_pages);
		if (r->dereg)
			xnem_job_answer(r->dereg, XNEM_ST_OK, 0, 0, 0);
		else
			xnem_ctx_try_close(ctx);
		region_free(r);
		/* dev may be freed from here on. */
		if (atomic_dec_and_test(&dev->live_regions))
			wake_up_all(&regions_gone);
	}
	return true;
}
