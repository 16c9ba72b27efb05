// SPDX-License-Identifier: GPL-2.0
/*
 * The registration cache: regions of whole pages that are kept for the next
 * use of the same memory.
 *
 * An entry is hit by what lies within it and wants no more access than it has.
 * A notifier watches its memory; whatever changes there makes the entry stale:
 * it is not hit any more, and deregistered when nobody uses it.  The notifier
 * itself only takes the entry out of the tree: it never waits, as it may run
 * where nothing may sleep.  A use that has begun goes on with the pages that
 * were there when it began; they stay pinned, so they are its own.
 *
 *   made --> hit by look-ups, used or idle --stale or evicted--> (uses end)
 *        --> ended list --work--> notifier removed, deregistered, freed
 *
 * An entry that is stale and has no use belongs to who took it off its list:
 * the work, or a process that needs the room.
 */
#include <linux/freezer.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "frontend.h"

#ifndef CONFIG_MMU_NOTIFIER
#error "XNEM's frontend needs a kernel with CONFIG_MMU_NOTIFIER"
#endif

/* How often memory that changes while it is pinned is pinned anew. */
#define PIN_TRIES 3

/* Whom a region may be shown to. */
enum cache_for {
	/** Only this process uses it: any will do. */
	FOR_SELF,
	FOR_USER,
	FOR_ANY_USER,
};

struct xnem_cached {
	struct xnem_ctx *ctx;
	struct xnem_region *region;
	/** In cache->tree while it can be hit. */
	struct interval_tree_node range;
	/** cache->idle, cache->ended, or the list of who ends it. */
	struct list_head list;
	struct mmu_interval_notifier notifier;
	bool watched;
	bool listed;
	/** No new hits. */
	bool stale;
	bool any_user;
	u32 handle;
	/** Requests, what was got, and who makes it. */
	u32 uses;
	u32 gets;
	u64 pages;
};

/* The work holds the context from when it is queued until it has run. */
static void kick(struct xnem_ctx *ctx)
{
	xnem_ctx_get(ctx);
	if (!queue_work(xnem_wq, &ctx->cache.work))
		xnem_ctx_put(ctx); /* not the last one: entries hold it, too */
}

static void unlist(struct xnem_cached *e)
{
	struct xnem_cache *cache = &e->ctx->cache;

	if (e->listed)
		interval_tree_remove(&e->range, &cache->tree);
	e->listed = false;
}

/* Not hit any more; deregistered as soon as nobody uses it. */
static void go_stale(struct xnem_cached *e)
{
	struct xnem_cache *cache = &e->ctx->cache;

	lockdep_assert_held(&cache->lock);
	if (e->stale)
		return;
	e->stale = true;
	unlist(e);
	if (!e->uses) {
		cache->idle_pages -= e->pages;
		list_move_tail(&e->list, &cache->ended);
	}
	/* Also when it is in use: the use may have ended without being noticed. */
	kick(e->ctx);
}

static bool cache_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *range, unsigned long seq)
{
	struct xnem_cached *e = container_of(notifier, struct xnem_cached, notifier);
	struct xnem_cache *cache = &e->ctx->cache;
	unsigned long flags;

	spin_lock_irqsave(&cache->lock, flags);
	mmu_interval_set_seq(notifier, seq);
	if (!e->stale) {
		cache->stale++;
		xnem_stat_inc(e->ctx->fe, cache_stale);
		go_stale(e);
	}
	spin_unlock_irqrestore(&cache->lock, flags);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = cache_invalidate,
};

static void use_begin(struct xnem_cached *e)
{
	struct xnem_cache *cache = &e->ctx->cache;

	lockdep_assert_held(&cache->lock);
	if (e->uses++)
		return;
	list_del_init(&e->list);
	cache->idle_pages -= e->pages;
}

static void use_end(struct xnem_cached *e)
{
	struct xnem_cache *cache = &e->ctx->cache;

	lockdep_assert_held(&cache->lock);
	if (--e->uses)
		return;
	if (e->stale) {
		list_add_tail(&e->list, &cache->ended);
		kick(e->ctx);
		return;
	}
	list_add_tail(&e->list, &cache->idle);
	cache->idle_pages += e->pages;
	if (cache->idle_pages > cache->max_pages)
		kick(e->ctx);
}

void xnem_cache_unuse(struct xnem_cached *use)
{
	struct xnem_cache *cache;
	unsigned long flags;

	if (!use)
		return;
	cache = &use->ctx->cache;
	spin_lock_irqsave(&cache->lock, flags);
	use_end(use);
	spin_unlock_irqrestore(&cache->lock, flags);
}

bool xnem_cache_lives(const struct xnem_cached *use)
{
	return !use || use->region->state == XNEM_REGION_LIVE;
}

/* Take an entry without a use out, for the caller to end. */
static void evict(struct xnem_cached *e, struct list_head *list)
{
	struct xnem_cache *cache = &e->ctx->cache;

	lockdep_assert_held(&cache->lock);
	e->stale = true;
	unlist(e);
	list_move_tail(&e->list, list);
	cache->idle_pages -= e->pages;
	cache->evicted++;
	xnem_stat_inc(e->ctx->fe, cache_evicted);
}

/* Those used least recently, at least @pages of them; returns how many it were. */
static u64 evict_idle(struct xnem_cache *cache, u64 pages, struct list_head *list)
{
	struct xnem_cached *e;
	u64 got = 0;

	while (got < pages &&
	       (e = list_first_entry_or_null(&cache->idle, struct xnem_cached, list))) {
		got += e->pages;
		evict(e, list);
	}
	return got;
}

static void entry_free(struct xnem_cached *e)
{
	struct xnem_ctx *ctx = e->ctx;

	spin_lock_irq(&ctx->cache.lock);
	idr_remove(&ctx->cache.entries, e->handle);
	spin_unlock_irq(&ctx->cache.lock);
	if (e->region)
		xnem_region_put(e->region);
	kfree(e);
	xnem_ctx_put(ctx);
}

/* End what is nobody's any more, with @wait until its memory is free. */
static int retire(struct list_head *list, bool wait)
{
	struct xnem_cached *e, *next;
	int err = 0;

	list_for_each_entry(e, list, list) {
		/* May wait for others' changes to the memory map, but for no lock. */
		if (e->watched)
			mmu_interval_notifier_remove(&e->notifier);
		xnem_region_let_go(e->region);
	}
	list_for_each_entry_safe(e, next, list, list) {
		if (wait && !err)
			err = xnem_region_wait(e->region);
		entry_free(e);
	}
	return err;
}

/* A process that polls its own memory leaves completions where they are. */
static void poll_ends(struct xnem_ctx *ctx)
{
	spin_lock_irq(&ctx->fe->lock);
	xnem_queue_poll(ctx);
	xnem_queue_flush(ctx->fe);
	spin_unlock_irq(&ctx->fe->lock);
}

static void cache_work(struct work_struct *work)
{
	struct xnem_cache *cache = container_of(work, struct xnem_cache, work);
	struct xnem_ctx *ctx = container_of(cache, struct xnem_ctx, cache);
	LIST_HEAD(list);

	poll_ends(ctx);
	spin_lock_irq(&cache->lock);
	list_splice_init(&cache->ended, &list);
	if (cache->idle_pages > cache->max_pages)
		evict_idle(cache, cache->idle_pages - cache->max_pages, &list);
	spin_unlock_irq(&cache->lock);
	retire(&list, false);
	xnem_ctx_put(ctx);
}

void xnem_cache_init(struct xnem_ctx *ctx)
{
	struct xnem_cache *cache = &ctx->cache;

	spin_lock_init(&cache->lock);
	cache->tree = RB_ROOT_CACHED;
	idr_init(&cache->entries);
	INIT_LIST_HEAD(&cache->idle);
	INIT_LIST_HEAD(&cache->ended);
	INIT_WORK(&cache->work, cache_work);
	cache->max_pages = U64_MAX;
}

void xnem_cache_free(struct xnem_ctx *ctx)
{
	idr_destroy(&ctx->cache.entries);
}

void xnem_cache_close(struct xnem_ctx *ctx)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_cached *e;
	int handle;

	spin_lock_irq(&cache->lock);
	cache->closed = true;
	idr_for_each_entry(&cache->entries, e, handle) {
		go_stale(e);
		while (e->gets) {
			e->gets--;
			use_end(e);
		}
	}
	spin_unlock_irq(&cache->lock);
}

void xnem_cache_orphan(struct xnem_ctx *ctx)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_cached *e;
	int handle;

	lockdep_assert_held(&ctx->fe->lock);
	spin_lock(&cache->lock);
	idr_for_each_entry(&cache->entries, e, handle)
		go_stale(e);
	spin_unlock(&cache->lock);
}

/* Is a region of this context on its way out? */
static bool any_ending(struct xnem_ctx *ctx)
{
	struct xnem_region *region;
	bool ending = false;

	spin_lock_irq(&ctx->fe->lock);
	list_for_each_entry(region, &ctx->regions, entry)
		ending |= region->state == XNEM_REGION_ENDING || region->state == XNEM_REGION_ENDED;
	spin_unlock_irq(&ctx->fe->lock);
	return ending;
}

int xnem_cache_shrink(struct xnem_ctx *ctx, u64 pages, bool device)
{
	struct xnem_fe *fe = ctx->fe;
	struct xnem_ctx *other;
	LIST_HEAD(list);
	u64 got;
	int err;

	poll_ends(ctx);
	/* What is stale goes first. */
	flush_work(&ctx->cache.work);
	if (any_ending(ctx)) {
		err = wait_event_freezable(ctx->wait, !any_ending(ctx));
		return err ? -EINTR : 1;
	}

	spin_lock_irq(&fe->lock);
	spin_lock(&ctx->cache.lock);
	got = evict_idle(&ctx->cache, pages, &list);
	spin_unlock(&ctx->cache.lock);
	list_for_each_entry(other, &fe->contexts, entry) {
		if (got >= pages || other == ctx || (!device && other->mm != ctx->mm))
			continue;
		spin_lock(&other->cache.lock);
		got += evict_idle(&other->cache, pages - got, &list);
		spin_unlock(&other->cache.lock);
	}
	spin_unlock_irq(&fe->lock);
	if (list_empty(&list))
		return 0;
	err = retire(&list, true);
	return err ? err : 1;
}

/* The entry to use for [@start, @last]; NULL when there is none. */
static struct xnem_cached *look_up(struct xnem_cache *cache, unsigned long start,
				   unsigned long last, u32 access, enum cache_for whom)
{
	struct interval_tree_node *node;
	struct xnem_cached *e;

	lockdep_assert_held(&cache->lock);
	for (node = interval_tree_iter_first(&cache->tree, start, start); node;
	     node = interval_tree_iter_next(node, start, start)) {
		e = container_of(node, struct xnem_cached, range);
		if (node->last < last || (access & ~e->region->access))
			continue;
		if (whom != FOR_SELF && e->any_user != (whom == FOR_ANY_USER))
			continue;
		/* Otherwise about to be stale: its backend has gone. */
		if (READ_ONCE(e->region->state) == XNEM_REGION_LIVE)
			return e;
	}
	return NULL;
}

int xnem_cache_pin(struct xnem_cached *e, struct xnem_region *region, bool *limit)
{
	struct xnem_cache *cache = &e->ctx->cache;
	unsigned long seq = 0;
	int tries, err;
	bool again;

	/* Of an attempt before. */
	spin_lock_irq(&cache->lock);
	e->stale = true;
	spin_unlock_irq(&cache->lock);
	for (tries = 0;; tries++) {
		if (e->watched)
			seq = mmu_interval_read_begin(&e->notifier);
		err = xnem_pin(region, limit);
		if (err || !e->watched)
			return err;
		spin_lock_irq(&cache->lock);
		again = mmu_interval_read_retry(&e->notifier, seq);
		/* From here on the notifier tells; until it is listed that is enough. */
		if (!again)
			e->stale = false;
		spin_unlock_irq(&cache->lock);
		if (!again || tries == PIN_TRIES)
			return 0; /* as they are: good for this use */
		xnem_unpin(region);
	}
}

static struct xnem_cached *entry_new(struct xnem_ctx *ctx)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_cached *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int handle;

	if (!e)
		return NULL;
	e->ctx = ctx;
	e->stale = true;
	e->uses = 1;
	INIT_LIST_HEAD(&e->list);
	idr_preload(GFP_KERNEL);
	spin_lock_irq(&cache->lock);
	handle = idr_alloc_cyclic(&cache->entries, e, 1, 0, GFP_NOWAIT);
	spin_unlock_irq(&cache->lock);
	idr_preload_end();
	if (handle < 0) {
		kfree(e);
		return NULL;
	}
	e->handle = handle;
	xnem_ctx_get(ctx);
	return e;
}

/* Let look-ups find it, in the place of those that it makes superfluous. */
static void entry_list(struct xnem_cached *e)
{
	struct xnem_cache *cache = &e->ctx->cache;
	struct interval_tree_node *node, *next;
	struct xnem_cached *old;

	lockdep_assert_held(&cache->lock);
	for (node = interval_tree_iter_first(&cache->tree, e->range.start, e->range.last); node;
	     node = next) {
		next = interval_tree_iter_next(node, e->range.start, e->range.last);
		old = container_of(node, struct xnem_cached, range);
		if (node->start >= e->range.start && node->last <= e->range.last &&
		    old->any_user == e->any_user && !(old->region->access & ~e->region->access)) {
			if (!old->uses) {
				evict(old, &cache->ended);
				kick(e->ctx);
			} else {
				go_stale(old);
			}
		}
	}
	interval_tree_insert(&e->range, &cache->tree);
	e->listed = true;
}

/* Make an entry for pages @start to @last, which is in use once. */
static struct xnem_cached *entry_make(struct xnem_ctx *ctx, unsigned long start, unsigned long last,
				      u32 access, enum cache_for whom, bool *limit)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_seg seg = { .addr = start, .length = last - start + 1 };
	struct xnem_memory mem = {
		.seg = &seg,
		.nr = 1,
		.access = access,
		.flags = whom == FOR_ANY_USER ? XNEM_REG_ANY_USER : 0,
		.length = seg.length,
	};
	struct xnem_region *region;
	struct xnem_cached *e;
	int err;

	err = xnem_memory_check(ctx->fe, &mem);
	if (err)
		return ERR_PTR(err);
	e = entry_new(ctx);
	if (!e)
		return ERR_PTR(-ENOMEM);
	e->range.start = start;
	e->range.last = last;
	e->any_user = whom == FOR_ANY_USER;
	e->pages = mem.pages;
	/* Without a notifier it is made all the same, for this one use. */
	if (READ_ONCE(cache->max_pages))
		e->watched = !mmu_interval_notifier_insert(&e->notifier, current->mm, start,
							   seg.length, &notifier_ops);
	region = xnem_region_make(ctx, &mem, e, limit);
	if (IS_ERR(region)) {
		if (e->watched)
			mmu_interval_notifier_remove(&e->notifier);
		entry_free(e);
		return ERR_CAST(region);
	}
	spin_lock_irq(&cache->lock);
	e->region = region;
	if (region->transient || cache->closed)
		e->stale = true;
	if (!e->stale)
		entry_list(e);
	spin_unlock_irq(&cache->lock);
	return e;
}

/* Can one more request be posted, after @n others? And show those that are. */
static int make_room(struct xnem_ctx *ctx, u32 n)
{
	struct xnem_fe *fe = ctx->fe;
	int err = xnem_queue_state(fe);

	spin_lock_irq(&fe->lock);
	xnem_queue_poll(ctx);
	xnem_queue_flush(fe);
	if (!err && ctx->inflight + ctx->done_prod - ctx->done_cons + n >= fe->ctx_quota)
		err = -EAGAIN;
	spin_unlock_irq(&fe->lock);
	return err;
}

/*
 * Begin a use of [@addr, @addr + @length), from the cache or newly made.
 * @before: of a request that comes after so many others; negative: of none.
 */
static struct xnem_cached *use_range(struct xnem_ctx *ctx, u64 addr, u64 length, u32 access,
				     enum cache_for whom, int before, bool *hit, bool *limit)
{
	struct xnem_cache *cache = &ctx->cache;
	unsigned long start, last;
	struct xnem_cached *e;
	int err;

	*limit = false;
	addr = untagged_addr(addr);
	if (!length || addr + length < addr)
		return ERR_PTR(-EINVAL);
	if (addr + length > TASK_SIZE_MAX)
		return ERR_PTR(-EFAULT);
	err = xnem_queue_state(ctx->fe);
	if (err)
		return ERR_PTR(err);
	/* The region is whole pages, what is wanted must be as well. */
	if (!ctx->fe->trusted && ((addr | length) & (XNEM_PAGE_SIZE - 1)))
		return ERR_PTR(-EOPNOTSUPP);
	start = addr & PAGE_MASK;
	last = PAGE_ALIGN(addr + length) - 1;

	spin_lock_irq(&cache->lock);
	e = look_up(cache, start, last, access, whom);
	*hit = e;
	if (e) {
		use_begin(e);
		cache->hits++;
	} else {
		/* So that it is not made once for each direction. */
		e = look_up(cache, start, last, 0, whom);
		if (e)
			access |= e->region->access;
		cache->misses++;
	}
	spin_unlock_irq(&cache->lock);
	if (*hit) {
		xnem_stat_inc(ctx->fe, cache_hits);
		return e;
	}
	xnem_stat_inc(ctx->fe, cache_misses);
	/* Not only to find that the request has no place. */
	err = before < 0 ? 0 : make_room(ctx, before);
	if (err)
		return ERR_PTR(err);
	return entry_make(ctx, start, last, access, whom, limit);
}

/* One side of a copy: put a region in the place of an address. */
static int use_address(struct xnem_ctx *ctx, struct xnem_uapi_cookie *cookie, __u64 *offset,
		       u64 length, u32 access, u32 before, struct xnem_cached **use)
{
	struct xnem_cached *e;
	bool hit, limit;

	/* Nothing is copied, but the region is looked at. */
	e = use_range(ctx, *offset, length ? length : 1, access, FOR_SELF, before, &hit, &limit);
	if (IS_ERR(e))
		return PTR_ERR(e);
	*use = e;
	cookie->id = e->region->backend_id;
	cookie->key = e->region->key;
	*offset = untagged_addr(*offset) - e->range.start;
	return 0;
}

static int use_side(struct xnem_ctx *ctx, struct xnem_submit_req *req, u32 before, int side,
		    struct xnem_cached **use)
{
	if (side == 0 && (req->flags & XNEM_SUBMIT_SRC_ADDR))
		return use_address(ctx, &req->src, &req->src_offset, req->length, XNEM_ACCESS_READ,
				   before, use);
	if (side == 1 && (req->flags & XNEM_SUBMIT_DST_ADDR))
		return use_address(ctx, &req->dst, &req->dst_offset, req->length, XNEM_ACCESS_WRITE,
				   before, use);
	return 0;
}

/*
 * Both sides of a copy.  The first may be a hit of much more than it needs, so
 * that there is no room for the second: then the other one first, for which
 * that may go.
 */
static int use_sides(struct xnem_ctx *ctx, struct xnem_submit_req *req, u32 before,
		     struct xnem_cached **use)
{
	const struct xnem_submit_req given = *req;
	int first, side, err = 0;

	if ((req->flags & XNEM_SUBMIT_SRC_ADDR && (req->src.id || req->src.key)) ||
	    (req->flags & XNEM_SUBMIT_DST_ADDR && (req->dst.id || req->dst.key)))
		return -EINVAL;
	for (first = 0; first < 2; first++) {
		side = first;
		use[0] = NULL;
		use[1] = NULL;
		err = use_side(ctx, req, before, side, &use[side]);
		if (err)
			break;
		side = !first;
		err = use_side(ctx, req, before, side, &use[side]);
		if (!err)
			return 0;
		xnem_cache_unuse(use[first]);
		*req = given;
		if (!use[first] || (err != -ENOMEM && err != -ENOSPC))
			break;
	}
	return err;
}

u32 xnem_cache_addresses(struct xnem_ctx *ctx, struct xnem_submit_req *reqs, u32 n,
			 struct xnem_cached *(*use)[2], int *err)
{
	const u32 both = XNEM_SUBMIT_SRC_ADDR | XNEM_SUBMIT_DST_ADDR;
	u32 i;

	*err = 0;
	for (i = 0; i < n; i++) {
		use[i][0] = NULL;
		use[i][1] = NULL;
		if (!(reqs[i].flags & both))
			continue;
		*err = reqs[i].op == XNEM_REQ_OP_COPY ? use_sides(ctx, &reqs[i], i, use[i]) :
							-EINVAL;
		if (*err)
			break;
		reqs[i].flags &= ~both;
	}
	return i;
}

static int put_handle(struct xnem_cache *cache, u32 handle)
{
	struct xnem_cached *e;
	int err = -EINVAL;

	spin_lock_irq(&cache->lock);
	e = idr_find(&cache->entries, handle);
	if (e && e->gets) {
		e->gets--;
		use_end(e);
		err = 0;
	}
	spin_unlock_irq(&cache->lock);
	return err;
}

int xnem_ioc_cache_get(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_cache_get arg;
	struct xnem_cached *e;
	bool hit = false, limit = false;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if ((arg.flags & ~XNEM_REG_ANY_USER) || !arg.access ||
	    (arg.access & ~(XNEM_REG_READ | XNEM_REG_WRITE)) || arg.reserved0 || arg.reserved[0] ||
	    arg.reserved[1])
		return -EINVAL;
	arg.handle = 0;
	arg.offset = 0;
	memset(&arg.cookie, 0, sizeof(arg.cookie));
	e = use_range(ctx, arg.addr, arg.length, arg.access,
		      arg.flags & XNEM_REG_ANY_USER ? FOR_ANY_USER : FOR_USER, -1, &hit, &limit);
	err = PTR_ERR_OR_ZERO(e);
	arg.limit = limit;
	arg.hit = hit;
	if (!err) {
		arg.handle = e->handle;
		arg.cookie.id = e->region->backend_id;
		arg.cookie.key = e->region->key;
		arg.offset = untagged_addr(arg.addr) - e->range.start;
		spin_lock_irq(&cache->lock);
		e->gets++;
		spin_unlock_irq(&cache->lock);
	}
	if (copy_to_user(uarg, &arg, sizeof(arg))) {
		/* Nobody would know its handle. */
		if (!err)
			put_handle(cache, arg.handle);
		return -EFAULT;
	}
	return err;
}

int xnem_ioc_cache_put(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_cache_put arg;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved[0] || arg.reserved[1] || arg.reserved[2])
		return -EINVAL;
	return put_handle(&ctx->cache, arg.handle);
}

int xnem_ioc_cache_limit(struct xnem_ctx *ctx, void __user *uarg)
{
	struct xnem_cache *cache = &ctx->cache;
	struct xnem_cache_limit arg;
	LIST_HEAD(list);
	u64 keep;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved[0] || arg.reserved[1] || arg.reserved[2])
		return -EINVAL;
	poll_ends(ctx);
	spin_lock_irq(&cache->lock);
	keep = arg.max_pages == cache->max_pages ? 0 : arg.max_pages;
	cache->max_pages = arg.max_pages;
	if (cache->idle_pages > keep)
		evict_idle(cache, cache->idle_pages - keep, &list);
	spin_unlock_irq(&cache->lock);
	return retire(&list, true);
}

void xnem_cache_stats(struct xnem_ctx *ctx, struct xnem_stats *stats)
{
	struct xnem_cache *cache = &ctx->cache;

	spin_lock_irq(&ctx->fe->lock);
	stats->registered = ctx->registered;
	stats->windows = ctx->windows;
	spin_lock(&cache->lock);
	stats->cache_hits = cache->hits;
	stats->cache_misses = cache->misses;
	stats->cache_stale = cache->stale;
	stats->cache_evicted = cache->evicted;
	stats->cache_pages = cache->idle_pages;
	spin_unlock(&cache->lock);
	spin_unlock_irq(&ctx->fe->lock);
	stats->pages = atomic64_read(&ctx->pinned);
}
