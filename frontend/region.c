// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a region, the end of a context, and quarantine.
 *
 *   NEW --posted--> REGISTERING --answered--> LIVE --deregister--> ENDING
 *    | failed           | refused              | close, backend      | answered,
 *    |                  | or backend gone      | gone                | or gone
 *    +------------------+----------+-----------+---------------------+
 *                                  v
 *                                ENDED --all revoked--> DEAD
 *                                  |                      ^
 *                                  +--> QUARANTINED ------+
 *                      some in use
 *
 * A reference goes back to the table, and its page to its owner, only when the
 * backend has answered (or is gone) and the revoke succeeded.
 */
#include <linux/freezer.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "frontend.h"

/* Xen pages of the regions of all devices. */
static atomic_t used_pages;

static void region_free(struct kref *ref)
{
	struct xnem_region *region = container_of(ref, struct xnem_region, ref);

	kvfree(region->refs);
	kfree(region);
}

void xnem_region_put(struct xnem_region *region)
{
	kref_put(&region->ref, region_free);
}

void xnem_ctx_get(struct xnem_ctx *ctx)
{
	kref_get(&ctx->ref);
}

/* May run in the interrupt handler. */
static void ctx_release(struct kref *ref)
{
	struct xnem_ctx *ctx = container_of(ref, struct xnem_ctx, ref);

	llist_add(&ctx->dead, &ctx->fe->dead_ctx);
	xnem_reap_now(ctx->fe);
}

void xnem_ctx_put(struct xnem_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

static void ctx_free(struct xnem_ctx *ctx)
{
	struct xnem_fe *fe = ctx->fe;

	/* Who finds it by its number does so, and is done with it, under the lock. */
	xa_erase(&fe->numbers, ctx->number);
	spin_lock_irq(&fe->lock);
	list_del(&ctx->entry);
	fe->nr_contexts--;
	spin_unlock_irq(&fe->lock);
	mmdrop(ctx->mm);
	idr_destroy(&ctx->handles);
	xnem_pages_free(ctx);
	kvfree(ctx->done);
	kfree(ctx);
	xnem_fe_put(fe);
}

/* The work holds the device from when it is queued until it has run. */
void xnem_reap_now(struct xnem_fe *fe)
{
	xnem_fe_get(fe);
	if (mod_delayed_work(xnem_wq, &fe->reap, 0))
		xnem_fe_put(fe); /* was queued already */
}

void xnem_region_ended(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;

	lockdep_assert_held(&fe->lock);
	/* The answer to what is in flight ends it, or the disconnect does. */
	if (region->posted || region->state >= XNEM_REGION_ENDED)
		return;
	region->state = XNEM_REGION_ENDED;
	xnem_pages_ended(region);
	list_del_init(&region->list); /* fe->pending */
	list_add_tail(&region->list, &fe->ended);
	xnem_reap_now(fe);
}

/*
 * Ask the backend to let go; without one that is done already.  False when no
 * request was free: tried again later.
 */
static bool region_end(struct xnem_region *region)
{
	struct xnem_request req = {
		.op = cpu_to_le16(XNEM_OP_DEREGISTER),
		.u.dereg.region_id = cpu_to_le64(region->backend_id),
	};
	struct xnem_fe *fe = region->ctx->fe;
	int err;

	region->state = XNEM_REGION_ENDING;
	err = xnem_queue_post(fe, region->ctx, region, &req, true);
	if (err == -EAGAIN) {
		list_add_tail(&region->list, &fe->pending);
		return false;
	}
	if (err)
		xnem_region_ended(region);
	else
		xnem_stat_inc(fe, deregistered);
	return true;
}

/*
 * End a closing context, when nothing of it is being registered any more.
 * False when no request was free: tried again later.
 */
static bool ctx_end(struct xnem_ctx *ctx)
{
	struct xnem_request req = { .op = cpu_to_le16(XNEM_OP_CLOSE_CONTEXT) };
	struct xnem_fe *fe = ctx->fe;
	int err = -ENOTCONN;

	if (ctx->registering || ctx->close_posted)
		return true;
	/* Nothing of it is known to this backend: nothing to end there. */
	if (ctx->life == fe->life)
		err = xnem_queue_post(fe, ctx, NULL, &req, true);
	if (err == -EAGAIN) {
		if (list_empty(&ctx->pending)) {
			xnem_ctx_get(ctx);
			list_add_tail(&ctx->pending, &fe->pending_ctx);
		}
		return false;
	}
	ctx->close_posted = true;
	if (err)
		xnem_ctx_ended(ctx);
	return true;
}

void xnem_ctx_ended(struct xnem_ctx *ctx)
{
	struct xnem_region *region;

	list_for_each_entry(region, &ctx->regions, entry)
		if (region->state != XNEM_REGION_NEW)
			xnem_region_ended(region);
}

void xnem_ctx_close(struct xnem_ctx *ctx)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_region *region;
	int handle;

	/* No call is under way: the last reference to the file is gone. */
	idr_for_each_entry(&ctx->handles, region, handle)
		xnem_region_put(region);

	spin_lock_irq(&fe->lock);
	ctx->closing = true;
	ctx_end(ctx);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	xnem_ctx_put(ctx);
}

void xnem_region_registered(struct xnem_region *region, int error, u64 id, u64 key)
{
	struct xnem_ctx *ctx = region->ctx;

	lockdep_assert_held(&ctx->fe->lock);
	ctx->registering--;
	if (error) {
		region->error = error;
		xnem_region_ended(region);
	} else {
		region->backend_id = id;
		region->key = key;
		region->state = XNEM_REGION_LIVE;
		if (!region->cpage)
			xnem_stat_inc(ctx->fe, registered);
		/* A completion page ends with its context only. */
		if (region->abandoned && !ctx->closing && !region->cpage)
			region_end(region);
	}
	wake_up_all(&ctx->wait);
	if (ctx->closing)
		ctx_end(ctx);
}

void xnem_regions_orphan(struct xnem_fe *fe)
{
	struct xnem_ctx *ctx, *next;

	lockdep_assert_held(&fe->lock);
	list_for_each_entry_safe(ctx, next, &fe->pending_ctx, pending) {
		list_del_init(&ctx->pending);
		ctx->close_posted = true;
		xnem_ctx_put(ctx);
	}
	list_for_each_entry(ctx, &fe->contexts, entry) {
		xnem_ctx_ended(ctx);
		xnem_ctx_wake(ctx);
	}
}

/* Ends that found no request free; one that still does not ends the round. */
static void retry_pending(struct xnem_fe *fe)
{
	struct xnem_region *region;
	struct xnem_ctx *ctx;
	bool more = true;

	spin_lock_irq(&fe->lock);
	while (more &&
	       (region = list_first_entry_or_null(&fe->pending, struct xnem_region, list))) {
		list_del_init(&region->list);
		more = region_end(region);
	}
	while (more &&
	       (ctx = list_first_entry_or_null(&fe->pending_ctx, struct xnem_ctx, pending))) {
		list_del_init(&ctx->pending);
		more = ctx_end(ctx);
		xnem_ctx_put(ctx);
	}
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
}

/* The device goes: what is still in use keeps its page, not the pin. */
static void defer_rest(struct xnem_region *region)
{
	u32 first = region->first, i;

	for (i = 0; i < region->nr_granted; i++) {
		if (!region->refs[i])
			continue;
		xnem_defer_revoke(region->refs[i],
				  region->pages[(first + i) / (PAGE_SIZE / XNEM_PAGE_SIZE)]);
		region->refs[i] = 0;
		xnem_stat_inc(region->ctx->fe, deferred);
	}
}

/* Revoke; then the region is dead, or in quarantine. */
static void region_reap(struct xnem_region *region)
{
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;
	u32 left;

	if (fe->revoke_after && time_before(jiffies, fe->revoke_after)) {
		/* Not yet: the backend never said that it had let go. */
		left = region->nr_granted;
	} else {
		left = xnem_revoke(region);
		if (left && READ_ONCE(fe->defer)) {
			defer_rest(region);
			left = 0;
		}
	}
	if (!left)
		xnem_unpin(region);
	spin_lock_irq(&fe->lock);
	fe->quarantined += left - region->left;
	region->left = left;
	if (left) {
		region->state = XNEM_REGION_QUARANTINED;
		list_add_tail(&region->list, &fe->quarantine);
	} else {
		region->state = XNEM_REGION_DEAD;
		list_del(&region->entry);
		fe->used_pages -= region->nr_refs;
		fe->nr_regions--;
	}
	wake_up_all(&ctx->wait);
	spin_unlock_irq(&fe->lock);
	if (!left) {
		atomic_sub(region->nr_refs, &used_pages);
		xnem_region_put(region);
		xnem_ctx_put(ctx);
	}
}

static void reap_regions(struct xnem_fe *fe)
{
	struct xnem_region *region, *next;
	LIST_HEAD(list);

	spin_lock_irq(&fe->lock);
	list_splice_init(&fe->quarantine, &list);
	list_splice_tail_init(&fe->ended, &list);
	spin_unlock_irq(&fe->lock);
	list_for_each_entry_safe(region, next, &list, list) {
		list_del_init(&region->list);
		region_reap(region);
		cond_resched();
	}
}

void xnem_reap(struct work_struct *work)
{
	struct xnem_fe *fe = container_of(to_delayed_work(work), struct xnem_fe, reap);
	struct xnem_ctx *ctx, *next;
	struct llist_node *dead;

	retry_pending(fe);
	reap_regions(fe);
	dead = llist_del_all(&fe->dead_ctx);
	llist_for_each_entry_safe(ctx, next, dead, dead)
		ctx_free(ctx);
	if (!list_empty(&fe->quarantine)) {
		xnem_fe_get(fe);
		if (!queue_delayed_work(xnem_wq, &fe->reap, XNEM_FE_QUARANTINE_RETRY))
			xnem_fe_put(fe);
	}
	xnem_fe_put(fe);
}

/*
 * Write the references of a large region to the descriptor pages; the caller
 * has taken them.
 */
static u32 describe(struct xnem_fe *fe, const struct xnem_region *region, xnem_le32 *refs)
{
	u32 nr = DIV_ROUND_UP(region->nr_refs, XNEM_DESC_REFS);
	u32 i;

	for (i = 0; i < region->nr_refs; i++) {
		xnem_le32 *page = fe->desc[i / XNEM_DESC_REFS];

		page[i % XNEM_DESC_REFS] = cpu_to_le32(region->refs[i]);
	}
	for (i = 0; i < nr; i++)
		refs[i] = cpu_to_le32(fe->desc_ref[i]);
	xnem_stat_add(fe, desc_pages, nr);
	return nr;
}

static bool take_desc(struct xnem_fe *fe, u32 life, int *err)
{
	bool done = true;

	spin_lock_irq(&fe->lock);
	*err = fe->life == life ? xnem_queue_state(fe) : -ENOTCONN;
	if (!*err) {
		done = !fe->desc_busy;
		if (done)
			fe->desc_busy = true;
	}
	spin_unlock_irq(&fe->lock);
	return done;
}

/* The descriptor pages are given back by the answer, or here when nothing was posted. */
int xnem_region_post(struct xnem_region *region, struct xnem_request *req, bool indirect)
{
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;
	int err;

	do {
		spin_lock_irq(&fe->lock);
		err = fe->life == region->life ? xnem_queue_state(fe) : -ENOTCONN;
		if (!err && indirect)
			describe(fe, region, req->u.reg.ref);
		if (!err)
			err = xnem_queue_post(fe, ctx, region, req, true);
		if (!err) {
			region->state = XNEM_REGION_REGISTERING;
			ctx->registering++;
			xnem_queue_flush(fe);
		}
		spin_unlock_irq(&fe->lock);
		/* Nothing free: others' requests are being answered. */
		if (err == -EAGAIN && schedule_timeout_interruptible(1))
			err = -EINTR;
	} while (err == -EAGAIN);
	if (err) {
		spin_lock_irq(&fe->lock);
		if (indirect && fe->life == region->life) {
			fe->desc_busy = false;
			wake_up(&fe->desc_wait);
		}
		spin_unlock_irq(&fe->lock);
		return err;
	}

	err = wait_event_freezable(ctx->wait, READ_ONCE(region->state) != XNEM_REGION_REGISTERING);
	spin_lock_irq(&fe->lock);
	if (region->state == XNEM_REGION_REGISTERING) {
		/* A signal: it ends as soon as it is answered. */
		region->abandoned = true;
		err = -EINTR;
	} else {
		err = region->state == XNEM_REGION_LIVE ? 0 : region->error ?: -ENOTCONN;
	}
	spin_unlock_irq(&fe->lock);
	return err;
}

static int register_at_backend(struct xnem_region *region, u32 flags)
{
	struct xnem_fe *fe = region->ctx->fe;
	bool indirect = region->nr_refs > XNEM_INLINE_REFS;
	struct xnem_request req = {
		.op = cpu_to_le16(XNEM_OP_REGISTER),
		.u.reg = {
			.length = cpu_to_le64(region->length),
			.offset = cpu_to_le32(region->offset),
			.access = cpu_to_le32(region->access),
			.flags = cpu_to_le32((flags & XNEM_REG_ANY_USER ? XNEM_REGION_ANY_TAG : 0) |
					     (indirect ? XNEM_REGION_INDIRECT : 0)),
			.nr_pages = cpu_to_le32(region->nr_refs),
		},
	};
	int err = 0;
	u32 i;

	if (indirect) {
		if (wait_event_freezable(fe->desc_wait, take_desc(fe, region->life, &err)))
			return -EINTR;
		if (err)
			return err;
	} else {
		for (i = 0; i < region->nr_refs; i++)
			req.u.reg.ref[i] = cpu_to_le32(region->refs[i]);
	}
	return xnem_region_post(region, &req, indirect);
}

struct xnem_region *xnem_region_new(struct xnem_ctx *ctx, u32 pages)
{
	struct xnem_region *region = kzalloc(sizeof(*region), GFP_KERNEL);
	struct xnem_fe *fe = ctx->fe;
	bool fits, fits_all;

	if (!region)
		return ERR_PTR(-ENOMEM);
	kref_init(&region->ref);
	INIT_LIST_HEAD(&region->list);
	region->ctx = ctx;
	region->state = XNEM_REGION_NEW;
	region->nr_refs = pages;

	/* Of this device, and of all: one table serves them, disks and network. */
	fits_all = atomic_add_return(pages, &used_pages) <= xnem_page_budget();
	spin_lock_irq(&fe->lock);
	fits = fits_all && fe->used_pages + pages <= fe->max_pages;
	if (fits) {
		region->life = fe->life;
		fe->used_pages += pages;
		fe->nr_regions++;
		list_add(&region->entry, &ctx->regions);
	}
	spin_unlock_irq(&fe->lock);
	if (!fits) {
		atomic_sub(pages, &used_pages);
		xnem_stat_inc(fe, error_grants);
		kfree(region);
		return ERR_PTR(-ENOSPC);
	}
	xnem_ctx_get(ctx);
	kref_get(&region->ref); /* the caller's, beside the context's */
	return region;
}

void xnem_region_fail(struct xnem_region *region, int err)
{
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;

	spin_lock_irq(&fe->lock);
	if (region->state == XNEM_REGION_LIVE)
		region_end(region);
	else if (region->state == XNEM_REGION_NEW)
		xnem_region_ended(region);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	/* So that the caller sees its memory free. */
	if (err != -EINTR)
		wait_event_freezable(ctx->wait,
				     READ_ONCE(region->state) >= XNEM_REGION_QUARANTINED);
	xnem_region_put(region);
}

int xnem_region_register(struct xnem_ctx *ctx, struct xnem_register *arg)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_region *region;
	bool limit = false;
	u64 pages;
	int err;

	arg->addr = untagged_addr(arg->addr);
	if (!arg->length || arg->addr + arg->length < arg->addr)
		return -EINVAL;
	if (arg->addr + arg->length > TASK_SIZE_MAX)
		return -EFAULT;
	err = xnem_queue_state(fe);
	if (err)
		return err;
	pages = xnem_pages_of(arg->addr & (XNEM_PAGE_SIZE - 1), arg->length);
	if (pages > fe->limits.region_pages)
		return -E2BIG;
	if (!fe->trusted && ((arg->addr | arg->length) & (XNEM_PAGE_SIZE - 1)))
		return -EOPNOTSUPP;

	region = xnem_region_new(ctx, pages);
	if (IS_ERR(region))
		return PTR_ERR(region);
	region->access = arg->access;
	region->offset = arg->addr & (XNEM_PAGE_SIZE - 1);
	region->first = (arg->addr & ~PAGE_MASK) >> XNEM_PAGE_SHIFT;
	region->length = arg->length;

	err = xnem_pin(region, arg->addr, &limit);
	arg->limit = limit;
	if (!err)
		err = xnem_grant(region);
	if (!err)
		err = register_at_backend(region, arg->flags);
	if (!err) {
		mutex_lock(&ctx->handle_lock);
		err = idr_alloc_cyclic(&ctx->handles, region, 1, 0, GFP_KERNEL);
		mutex_unlock(&ctx->handle_lock);
		if (err > 0) {
			/* The handle holds the region now. */
			arg->handle = err;
			arg->cookie.id = region->backend_id;
			arg->cookie.key = region->key;
			return 0;
		}
	}
	xnem_region_fail(region, err);
	return err;
}

int xnem_region_deregister(struct xnem_ctx *ctx, u32 handle)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_region *region;
	int err;

	mutex_lock(&ctx->handle_lock);
	region = idr_remove(&ctx->handles, handle);
	mutex_unlock(&ctx->handle_lock);
	if (!region)
		return -EINVAL;

	spin_lock_irq(&fe->lock);
	/* Ended already when the backend went away. */
	if (region->state == XNEM_REGION_LIVE)
		region_end(region);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	err = wait_event_freezable(ctx->wait, READ_ONCE(region->state) >= XNEM_REGION_QUARANTINED);
	xnem_region_put(region);
	return err ? -EINTR : 0;
}
