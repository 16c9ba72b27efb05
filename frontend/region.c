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
#include <linux/uaccess.h>

#include "frontend.h"

/* Xen pages of the regions of all devices. */
static atomic_t used_pages;

static void region_free(struct kref *ref)
{
	struct xnem_region *region = container_of(ref, struct xnem_region, ref);

	kvfree(region->refs);
	if (region->pieces != &region->one)
		kvfree(region->pieces);
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
	xnem_cache_free(ctx);
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
	xnem_window_region_remove(region);
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
	/* It ends with the context, for which nothing more may be posted. */
	if (region->ctx->closing)
		return true;
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
	xnem_cache_close(ctx);

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
		region->known = true;
		if (region->windowed)
			xnem_window_region_add(region);
		if (!region->cpage) {
			xnem_stat_inc(ctx->fe, registered);
			ctx->registered++;
		}
		/* A completion page ends with its context only. */
		if (region->abandoned && !region->cpage)
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
		xnem_cache_orphan(ctx);
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
	u32 i;

	for (i = 0; i < region->nr_granted; i++) {
		if (!region->refs[i])
			continue;
		xnem_defer_revoke(region->refs[i], xnem_region_page(region, i));
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

	/* Its pages are needed as long as a window shows them. */
	if (region->windowed && xnem_window_park(region))
		return;
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
		/* Room for what found none; not what itself just found none. */
		if (region->known)
			WRITE_ONCE(ctx->given_back, ctx->given_back + 1);
		list_del(&region->entry);
		fe->used_pages -= region->nr_refs;
		fe->nr_regions--;
	}
	wake_up_all(&ctx->wait);
	spin_unlock_irq(&fe->lock);
	if (!left) {
		xnem_pages_unreserve(region->nr_refs);
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

/* Descriptor pages of the table of @nr segments; one needs none. */
static u32 table_pages(u32 nr)
{
	return nr > 1 ? DIV_ROUND_UP(nr, XNEM_DESC_SEGMENTS) : 0;
}

/* Do the references of @pages Xen pages go to descriptor pages? */
static bool indirect(u64 pages, u32 tables)
{
	return pages + tables > XNEM_INLINE_REFS;
}

/* The segment table, to the descriptor pages from @page on. */
static void describe_pieces(struct xnem_fe *fe, const struct xnem_region *region, u32 page)
{
	u32 i;

	for (i = 0; i < region->nr_pieces; i++) {
		struct xnem_segment *seg = fe->desc[page + i / XNEM_DESC_SEGMENTS];

		seg += i % XNEM_DESC_SEGMENTS;
		seg->length = cpu_to_le64(region->pieces[i].length);
		seg->offset = cpu_to_le32(region->pieces[i].offset);
		seg->pad = 0;
	}
}

/*
 * Fill in what a register request refers to; the descriptor pages that it
 * needs for that were taken by the caller.
 */
static void describe(struct xnem_fe *fe, const struct xnem_region *region, struct xnem_request *req)
{
	u32 tables = table_pages(region->nr_pieces), n = 0, desc = 0, i;

	if (!(req->u.reg.flags & cpu_to_le32(XNEM_REGION_INDIRECT))) {
		for (; n < region->nr_refs; n++)
			req->u.reg.ref[n] = cpu_to_le32(region->refs[n]);
	} else {
		for (i = 0; i < region->nr_refs; i++) {
			xnem_le32 *page = fe->desc[i / XNEM_DESC_REFS];

			page[i % XNEM_DESC_REFS] = cpu_to_le32(region->refs[i]);
		}
		for (; desc < DIV_ROUND_UP(region->nr_refs, XNEM_DESC_REFS); desc++)
			req->u.reg.ref[n++] = cpu_to_le32(fe->desc_ref[desc]);
	}
	if (tables) {
		describe_pieces(fe, region, desc);
		for (i = 0; i < tables; i++)
			req->u.reg.ref[n++] = cpu_to_le32(fe->desc_ref[desc++]);
	}
	xnem_stat_add(fe, desc_pages, desc);
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
int xnem_region_post(struct xnem_region *region, struct xnem_request *req, bool has_desc)
{
	struct xnem_ctx *ctx = region->ctx;
	struct xnem_fe *fe = ctx->fe;
	int err;

	do {
		spin_lock_irq(&fe->lock);
		err = fe->life == region->life ? xnem_queue_state(fe) : -ENOTCONN;
		if (!err && req->op == cpu_to_le16(XNEM_OP_REGISTER))
			describe(fe, region, req);
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
		if (has_desc && fe->life == region->life) {
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
	u32 tables = table_pages(region->nr_pieces), wire = 0;
	struct xnem_request req = {
		.op = cpu_to_le16(XNEM_OP_REGISTER),
		.u.reg = {
			.length = cpu_to_le64(region->length),
			.access = cpu_to_le32(region->access),
			.nr_pages = cpu_to_le32(region->nr_xen),
		},
	};
	bool has_desc;
	int err = 0;

	if (flags & XNEM_REG_ANY_USER)
		wire |= XNEM_REGION_ANY_TAG;
	if (flags & XNEM_REG_ONCE)
		wire |= XNEM_REGION_ONCE;
	if (tables)
		wire |= XNEM_REGION_SEGMENTS;
	if (region->windowed)
		wire |= XNEM_REGION_WINDOWED;
	if (indirect(region->nr_refs, tables))
		wire |= XNEM_REGION_INDIRECT;
	req.u.reg.flags = cpu_to_le32(wire);
	req.u.reg.offset = cpu_to_le32(tables ? region->nr_pieces : region->pieces[0].offset);
	has_desc = wire & (XNEM_REGION_INDIRECT | XNEM_REGION_SEGMENTS);
	if (has_desc) {
		if (wait_event_freezable(fe->desc_wait, take_desc(fe, region->life, &err)))
			return -EINTR;
		if (err)
			return err;
	}
	return xnem_region_post(region, &req, has_desc);
}

bool xnem_pages_reserve(u32 pages)
{
	if (atomic_add_return(pages, &used_pages) <= xnem_page_budget())
		return true;
	atomic_sub(pages, &used_pages);
	return false;
}

void xnem_pages_unreserve(u32 pages)
{
	atomic_sub(pages, &used_pages);
}

struct xnem_region *xnem_region_new(struct xnem_ctx *ctx, u32 pages)
{
	struct xnem_region *region = kzalloc(sizeof(*region), GFP_KERNEL);
	struct xnem_fe *fe = ctx->fe;
	bool fits;

	if (!region)
		return ERR_PTR(-ENOMEM);
	kref_init(&region->ref);
	INIT_LIST_HEAD(&region->list);
	region->ctx = ctx;
	region->state = XNEM_REGION_NEW;
	region->nr_refs = pages;
	region->nr_xen = pages;
	RB_CLEAR_NODE(&region->by_id);
	region->pieces = &region->one;
	region->nr_pieces = 1;

	/* Of all devices, and of this one: one table serves them, disks and network. */
	if (!xnem_pages_reserve(pages))
		goto full;
	spin_lock_irq(&fe->lock);
	fits = fe->used_pages + pages <= fe->max_pages;
	if (fits) {
		region->life = fe->life;
		fe->used_pages += pages;
		fe->nr_regions++;
		list_add(&region->entry, &ctx->regions);
	}
	spin_unlock_irq(&fe->lock);
	if (!fits) {
		xnem_pages_unreserve(pages);
		goto full;
	}
	xnem_ctx_get(ctx);
	kref_get(&region->ref); /* the caller's, beside the context's */
	return region;

full:
	xnem_stat_inc(fe, error_grants);
	kfree(region);
	return ERR_PTR(-ENOSPC);
}

void xnem_region_fail(struct xnem_region *region, int err)
{
	struct xnem_fe *fe = region->ctx->fe;

	spin_lock_irq(&fe->lock);
	if (region->state == XNEM_REGION_LIVE)
		region_end(region);
	else if (region->state == XNEM_REGION_NEW)
		xnem_region_ended(region);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
	/* So that the caller sees its memory free. */
	if (err != -EINTR)
		xnem_region_wait(region);
	xnem_region_put(region);
}

/* Can it be granted as a whole, with nothing else there? */
static bool fits_whole(const struct xnem_fe *fe, const struct xnem_memory *mem)
{
	return mem->pages <= fe->limits.region_pages &&
	       mem->pages <= (XNEM_INLINE_REFS - table_pages(mem->nr)) * XNEM_DESC_REFS;
}

int xnem_memory_check(struct xnem_fe *fe, struct xnem_memory *mem)
{
	u64 sum = 0, pages = 0;
	u32 i;
	int err;

	for (i = 0; i < mem->nr; i++) {
		u64 addr = untagged_addr(mem->seg[i].addr);
		u64 length = mem->seg[i].length;

		/* Bounded by what is left, so that the sum cannot wrap. */
		if (!length || addr + length < addr || length > mem->length - sum)
			return -EINVAL;
		sum += length;
	}
	if (sum != mem->length)
		return -EINVAL;
	err = xnem_queue_state(fe);
	if (err)
		return err;
	for (i = 0; i < mem->nr; i++)
		pages += xnem_pages_of(mem->seg[i].addr & (XNEM_PAGE_SIZE - 1), mem->seg[i].length);
	mem->pages = pages;
	if (!fits_whole(fe, mem) &&
	    (!(fe->features & XNEM_FEAT_WINDOW) || pages > XNEM_WINDOWED_PAGES_MAX))
		return -E2BIG;
	for (i = 0; i < mem->nr; i++)
		if (untagged_addr(mem->seg[i].addr) + mem->seg[i].length > TASK_SIZE_MAX)
			return -EFAULT;
	if (mem->nr > 1 && !(fe->features & XNEM_FEAT_SEGMENTS))
		return -EINVAL;
	if ((mem->flags & XNEM_REG_ONCE) && !(fe->features & XNEM_FEAT_SEGMENTS))
		return -EOPNOTSUPP;
	if ((mem->flags & XNEM_REG_WINDOWED) && !(fe->features & XNEM_FEAT_WINDOW))
		return -EOPNOTSUPP;
	for (i = 0; i < mem->nr && !fe->trusted; i++)
		if ((mem->seg[i].addr | mem->seg[i].length) & (XNEM_PAGE_SIZE - 1))
			return -EOPNOTSUPP;
	return 0;
}

static int set_pieces(struct xnem_region *region, const struct xnem_memory *mem)
{
	u32 xen = 0, page = 0, i;

	if (mem->nr > 1) {
		struct xnem_piece *pieces = kvcalloc(mem->nr, sizeof(*pieces), GFP_KERNEL);

		if (!pieces)
			return -ENOMEM;
		region->pieces = pieces;
	}
	region->nr_pieces = mem->nr;
	for (i = 0; i < mem->nr; i++) {
		struct xnem_piece *piece = &region->pieces[i];
		u32 nr;

		piece->addr = untagged_addr(mem->seg[i].addr);
		piece->length = mem->seg[i].length;
		piece->offset = piece->addr & (XNEM_PAGE_SIZE - 1);
		piece->first = (piece->addr & ~PAGE_MASK) >> XNEM_PAGE_SHIFT;
		piece->xen = xen;
		piece->page = page;
		nr = xnem_pages_of(piece->offset, piece->length);
		xen += nr;
		page += DIV_ROUND_UP(piece->first + nr, XEN_PER_PAGE);
	}
	return 0;
}

static struct xnem_region *region_try(struct xnem_ctx *ctx, const struct xnem_memory *mem,
				      struct xnem_cached *entry, bool windowed, bool *limit)
{
	struct xnem_region *region;
	int err;

	region = xnem_region_new(ctx, windowed ? 0 : mem->pages);
	if (IS_ERR(region))
		return region;
	region->windowed = windowed;
	region->nr_xen = mem->pages;
	region->access = mem->access;
	region->length = mem->length;
	err = set_pieces(region, mem);
	if (!err)
		err = entry ? xnem_cache_pin(entry, region, limit) : xnem_pin(region, limit);
	if (!err && !windowed)
		err = xnem_grant(region);
	if (!err)
		err = register_at_backend(region, mem->flags);
	if (!err)
		return region;
	xnem_region_fail(region, err);
	return ERR_PTR(err);
}

struct xnem_region *xnem_region_make(struct xnem_ctx *ctx, const struct xnem_memory *mem,
				     struct xnem_cached *entry, bool *limit)
{
	struct xnem_region *region;
	struct xnem_fe *fe = ctx->fe;
	bool windowed = (mem->flags & XNEM_REG_WINDOWED) || !fits_whole(fe, mem);
	u32 given_back;
	int err, more;

	for (;;) {
		given_back = READ_ONCE(ctx->given_back);
		*limit = false;
		region = region_try(ctx, mem, entry, windowed, limit);
		if (!IS_ERR(region))
			return region;
		err = PTR_ERR(region);
		if (err != -ENOMEM && err != -ENOSPC && err != -EMFILE)
			return region;
		/* Each round something goes that was kept without being used. */
		more = xnem_cache_shrink(ctx, err == -EMFILE ? 1 : mem->pages, err != -ENOMEM);
		if (more < 0)
			return ERR_PTR(more);
		/* Or something went by itself, which was not waited for. */
		if (more || given_back != READ_ONCE(ctx->given_back))
			continue;
		/* Others have the grants: piece by piece, then. */
		if (err != -ENOSPC || windowed || !(fe->features & XNEM_FEAT_WINDOW))
			return region;
		windowed = true;
	}
}

/* What a process says of its memory, checked as far as that needs no backend. */
static int memory_from_user(const struct xnem_register *arg, struct xnem_seg *one,
			    struct xnem_memory *mem, struct xnem_seg **table)
{
	u32 nr = arg->nr_segments;

	*table = NULL;
	if ((arg->flags & ~(XNEM_REG_ANY_USER | XNEM_REG_ONCE | XNEM_REG_WINDOWED)) ||
	    arg->reserved0 || arg->reserved[0] || arg->reserved[1] || arg->reserved[2] ||
	    !arg->access || (arg->access & ~(XNEM_REG_READ | XNEM_REG_WRITE)) ||
	    nr > XNEM_SEGMENTS_MAX)
		return -EINVAL;
	one->addr = arg->addr;
	one->length = arg->length;
	mem->seg = one;
	mem->nr = 1;
	mem->length = arg->length;
	mem->access = arg->access;
	mem->flags = arg->flags;
	if (!nr)
		return 0;
	*table = kvmalloc_array(nr, sizeof(**table), GFP_KERNEL);
	if (!*table)
		return -ENOMEM;
	if (copy_from_user(*table, u64_to_user_ptr(arg->addr), nr * sizeof(**table)))
		return -EFAULT;
	mem->seg = *table;
	mem->nr = nr;
	return 0;
}

static int region_register(struct xnem_ctx *ctx, struct xnem_register *arg)
{
	struct xnem_region *region;
	struct xnem_memory mem = {};
	struct xnem_seg one, *table;
	bool limit = false;
	int err;

	err = memory_from_user(arg, &one, &mem, &table);
	if (!err)
		err = xnem_memory_check(ctx->fe, &mem);
	if (err)
		goto out;
	region = xnem_region_make(ctx, &mem, NULL, &limit);
	arg->limit = limit;
	err = PTR_ERR_OR_ZERO(region);
	if (err)
		goto out;
	mutex_lock(&ctx->handle_lock);
	err = idr_alloc_cyclic(&ctx->handles, region, 1, 0, GFP_KERNEL);
	mutex_unlock(&ctx->handle_lock);
	if (err < 0) {
		xnem_region_fail(region, err);
		goto out;
	}
	/* The handle holds the region now. */
	arg->handle = err;
	arg->cookie.id = region->backend_id;
	arg->cookie.key = region->key;
	err = 0;
out:
	kvfree(table);
	return err;
}

int xnem_ioc_register(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_register arg;
	int err;

	BUILD_BUG_ON(XNEM_REG_READ != XNEM_ACCESS_READ || XNEM_REG_WRITE != XNEM_ACCESS_WRITE);
	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	arg.handle = 0;
	arg.limit = 0;
	memset(&arg.cookie, 0, sizeof(arg.cookie));
	err = region_register(ctx, &arg);
	if (copy_to_user(uarg, &arg, sizeof(arg))) {
		/* Nobody would know its handle. */
		if (!err)
			xnem_region_deregister(ctx, arg.handle);
		return -EFAULT;
	}
	return err;
}

void xnem_region_let_go(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;

	spin_lock_irq(&fe->lock);
	/* Ended already when the backend went away. */
	if (region->state == XNEM_REGION_LIVE)
		region_end(region);
	xnem_queue_flush(fe);
	spin_unlock_irq(&fe->lock);
}

int xnem_region_wait(struct xnem_region *region)
{
	return wait_event_freezable(region->ctx->wait,
				    READ_ONCE(region->state) >= XNEM_REGION_QUARANTINED) ?
		       -EINTR :
		       0;
}

int xnem_region_deregister(struct xnem_ctx *ctx, u32 handle)
{
	struct xnem_region *region;
	int err;

	mutex_lock(&ctx->handle_lock);
	region = idr_remove(&ctx->handles, handle);
	mutex_unlock(&ctx->handle_lock);
	if (!region)
		return -EINVAL;
	xnem_region_let_go(region);
	err = xnem_region_wait(region);
	xnem_region_put(region);
	return err;
}
