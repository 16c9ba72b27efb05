// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a region, the end of a context, and quarantine.
 *
 *   REGISTERING --answered--> LIVE --deregister, close--> ENDING
 *        |                     |                            |
 *        | refused             | backend gone               | answered
 *        v                     v                            v
 *      ENDED <------------------------------------------- ENDED
 *        |  revoked, unpinned                some references in use
 *        +---------------> DEAD <----------- QUARANTINED <--+
 *
 * A reference goes back to the table, and its page to its owner, only when the
 * backend has answered (or is gone) and the revoke succeeded.
 */
#include <linux/freezer.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "frontend.h"

static void region_free(struct kref *ref)
{
	struct xnem_region *region = container_of(ref, struct xnem_region, ref);

	kvfree(region->refs);
	kfree(region);
}

static void region_put(struct xnem_region *region)
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

	spin_lock_irq(&fe->lock);
	list_del(&ctx->entry);
	fe->nr_contexts--;
	spin_unlock_irq(&fe->lock);
	ida_free(&fe->numbers, ctx->number);
	mmdrop(ctx->mm);
	idr_destroy(&ctx->handles);
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
	if (region->state >= XNEM_REGION_ENDED)
		return;
	region->state = XNEM_REGION_ENDED;
	list_del_init(&region->list); /* fe->pending */
	list_add_tail(&region->list, &fe->ended);
	xnem_reap_now(fe);
}

/* Ask the backend to let go; without one that is done already. */
static void region_end(struct xnem_region *region)
{
	struct xnem_request req = {
		.op = cpu_to_le16(XNEM_OP_DEREGISTER),
		.u.dereg.region_id = cpu_to_le64(region->backend_id),
	};
	struct xnem_fe *fe = region->ctx->fe;
	int err;

	region->state = XNEM_REGION_ENDING;
	err = xnem_queue_post(fe, region->ctx, region, &req, true);
	if (err == -EAGAIN)
		list_add_tail(&region->list, &fe->pending);
	else if (err)
		xnem_region_ended(region);
	else
		xnem_stat_inc(fe, deregistered);
}

/* Everything of a closing context that could be answered has been. */
static void ctx_end(struct xnem_ctx *ctx)
{
	struct xnem_request req = { .op = cpu_to_le16(XNEM_OP_CLOSE_CONTEXT) };
	struct xnem_fe *fe = ctx->fe;
	int err = -ENOTCONN;

	if (ctx->registering || ctx->close_posted)
		return;
	/* Nothing of it is known to this backend: nothing to end there. */
	if (ctx->life == fe->life)
		err = xnem_queue_post(fe, ctx, NULL, &req, true);
	if (err == -EAGAIN) {
		if (list_empty(&ctx->pending)) {
			xnem_ctx_get(ctx);
			list_add_tail(&ctx->pending, &fe->pending_ctx);
		}
		return;
	}
	ctx->close_posted = true;
	if (err)
		xnem_ctx_ended(ctx);
}

void xnem_ctx_ended(struct xnem_ctx *ctx)
{
	struct xnem_region *region;

	list_for_each_entry(region, &ctx->regions, entry)
		xnem_region_ended(region);
}

void xnem_ctx_close(struct xnem_ctx *ctx)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_region *region;
	int handle;

	/* No call is under way: the last reference to the file is gone. */
	idr_for_each_entry(&ctx->handles, region, handle)
		region_put(region);

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
		xnem_stat_inc(ctx->fe, registered);
		if (region->abandoned && !ctx->closing)
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
		wake_up_all(&ctx->wait);
	}
}

/* Ends that found no request free; one that still does not ends the round. */
static void retry_pending(struct xnem_fe *fe)
{
	struct xnem_region *region;
	struct xnem_ctx *ctx;

	spin_lock_irq(&fe->lock);
	while ((region = list_first_entry_or_null(&fe->pending, struct xnem_region, list)) &&
	       fe->q.nr_free) {
		list_del_init(&region->list);
		region_end(region);
	}
	while ((ctx = list_first_entry_or_null(&fe->pending_ctx, struct xnem_ctx, pending)) &&
	       fe->q.nr_free) {
		list_del_init(&ctx->pending);
		ctx_end(ctx);
		xnem_ctx_put(ctx);
	}
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
}

/* Revoke; then the region is dead, or in quarantine. */
static void region_reap(struct xnem_region *region)
{
	u32 left = xnem_revoke(region);
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;

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
		region_put(region);
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

void xnem_quarantine_defer(struct xnem_fe *fe)
{
	struct xnem_region *region;
	u32 i;

	/* The reaping has been stopped for good: nothing else uses the list. */
	list_for_each_entry(region, &fe->quarantine, list) {
		for (i = 0; i < region->nr_granted; i++) {
			if (!region->refs[i])
				continue;
			/* Keeps the page, not the pin, until the backend lets go. */
			xnem_defer_revoke(region->refs[i]);
			region->refs[i] = 0;
			xnem_stat_inc(fe, deferred);
		}
	}
	reap_regions(fe);
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
		xnem_le32 *page = fe->q.desc[i / XNEM_DESC_REFS];

		page[i % XNEM_DESC_REFS] = cpu_to_le32(region->refs[i]);
	}
	for (i = 0; i < nr; i++)
		refs[i] = cpu_to_le32(fe->q.desc_ref[i]);
	xnem_stat_add(fe, desc_pages, nr);
	return nr;
}

static bool take_desc(struct xnem_fe *fe, u32 life, int *err)
{
	bool done = true;

	spin_lock_irq(&fe->lock);
	*err = fe->life == life ? xnem_queue_state(fe) : -ENOTCONN;
	if (!*err) {
		done = !fe->q.desc_busy;
		if (done)
			fe->q.desc_busy = true;
	}
	spin_unlock_irq(&fe->lock);
	return done;
}

/* Post the registration and wait for its answer. */
static int register_at_backend(struct xnem_region *region, u32 flags)
{
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;
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
	}

	do {
		spin_lock_irq(&fe->lock);
		err = fe->life == region->life ? xnem_queue_state(fe) : -ENOTCONN;
		if (!err) {
			if (indirect)
				describe(fe, region, req.u.reg.ref);
			else
				for (i = 0; i < region->nr_refs; i++)
					req.u.reg.ref[i] = cpu_to_le32(region->refs[i]);
			err = xnem_queue_post(fe, ctx, region, &req, true);
		}
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
		if (indirect) {
			spin_lock_irq(&fe->lock);
			if (fe->life == region->life)
				fe->q.desc_busy = false;
			spin_unlock_irq(&fe->lock);
			wake_up(&fe->desc_wait);
		}
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

int xnem_region_register(struct xnem_ctx *ctx, struct xnem_register *arg)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_region *region;
	bool limit = false;
	u64 pages;
	int err;

	if (!arg->length || arg->addr + arg->length < arg->addr ||
	    arg->addr + arg->length > TASK_SIZE_MAX)
		return !arg->length || arg->addr + arg->length < arg->addr ? -EINVAL : -EFAULT;
	err = xnem_queue_state(fe);
	if (err)
		return err;
	pages = xnem_pages_of(arg->addr & (XNEM_PAGE_SIZE - 1), arg->length);
	if (pages > fe->limits.region_pages)
		return -E2BIG;
	if (!fe->trusted && ((arg->addr | arg->length) & (XNEM_PAGE_SIZE - 1)))
		return -EOPNOTSUPP;

	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return -ENOMEM;
	kref_init(&region->ref);
	INIT_LIST_HEAD(&region->list);
	region->ctx = ctx;
	region->state = XNEM_REGION_ENDING; /* not posted yet */
	region->access = arg->access;
	region->offset = arg->addr & (XNEM_PAGE_SIZE - 1);
	region->first = (arg->addr & ~PAGE_MASK) >> XNEM_PAGE_SHIFT;
	region->length = arg->length;
	region->nr_refs = pages;

	spin_lock_irq(&fe->lock);
	err = fe->used_pages + region->nr_refs > fe->max_pages ? -ENOSPC : 0;
	if (!err) {
		region->life = fe->life;
		fe->used_pages += region->nr_refs;
		fe->nr_regions++;
	}
	spin_unlock_irq(&fe->lock);
	if (err) {
		xnem_stat_inc(fe, error_grants);
		kfree(region);
		return err;
	}

	/* From here on a region ends by being reaped, whatever it came to. */
	xnem_ctx_get(ctx);
	kref_get(&region->ref);
	err = xnem_pin(region, arg->addr, &limit);
	arg->limit = limit;
	if (!err)
		err = xnem_grant(region);
	spin_lock_irq(&fe->lock);
	list_add(&region->entry, &ctx->regions);
	spin_unlock_irq(&fe->lock);
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

	spin_lock_irq(&fe->lock);
	if (region->state == XNEM_REGION_LIVE)
		region_end(region);
	else if (region->state == XNEM_REGION_ENDING)
		xnem_region_ended(region);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	/* When it is over before it began, the caller may see its memory free. */
	if (err != -EINTR)
		wait_event_freezable(ctx->wait,
				     READ_ONCE(region->state) >= XNEM_REGION_QUARANTINED);
	region_put(region);
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
	region_put(region);
	return err ? -EINTR : 0;
}
