// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: one open of a device.  Their pages, their fences, their end.
 */
#include "backend.h"

/* Wrong cookies a context may present a second, and how long it rests after. */
#define WRONG_TOKENS 64
#define WRONG_REST_MS 20

static struct xnem_be_ctx *ctx_make(struct xnem_be_queue *q, u32 number, enum xnem_status *status)
{
	struct xnem_be_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	int err;

	*status = XNEM_ST_NOMEM;
	if (!ctx)
		return NULL;
	refcount_set(&ctx->ref, 1);
	ctx->dev = q->dev;
	ctx->zone = q->dev->zone;
	ctx->queue = q;
	ctx->number = number;
	ctx->domid = q->dev->xdev->otherend_id;
	INIT_LIST_HEAD(&ctx->entry);
	INIT_LIST_HEAD(&ctx->regions);
	INIT_LIST_HEAD(&ctx->parked);
	INIT_LIST_HEAD(&ctx->unpark);
	INIT_LIST_HEAD(&ctx->copies);
	INIT_LIST_HEAD(&ctx->turn);
	INIT_LIST_HEAD(&ctx->large);
	INIT_LIST_HEAD(&ctx->large_turn);
	spin_lock_init(&ctx->inbox_lock);
	/* Another queue may make it at this moment: then it is that queue's. */
	err = xa_insert(&q->dev->contexts, number, ctx, GFP_KERNEL);
	if (err) {
		kfree(ctx);
		if (err == -EBUSY)
			*status = XNEM_ST_CONTEXT;
		return NULL;
	}
	list_add_tail(&ctx->entry, &q->contexts);
	*status = XNEM_ST_OK;
	return ctx;
}

struct xnem_be_ctx *xnem_ctx_of(struct xnem_be_queue *q, u32 number, bool make,
				enum xnem_status *status)
{
	struct xnem_be_ctx *ctx;
	bool other;

	/* Another queue's may be freed while we look: only compared then. */
	rcu_read_lock();
	ctx = xa_load(&q->dev->contexts, number);
	other = ctx && READ_ONCE(ctx->queue) != q;
	rcu_read_unlock();
	if (other || (ctx && ctx->close)) {
		*status = XNEM_ST_CONTEXT;
		return NULL;
	}
	return ctx || !make ? ctx : ctx_make(q, number, status);
}

void xnem_ctx_put(struct xnem_be_ctx *ctx)
{
	if (refcount_dec_and_test(&ctx->ref))
		kfree_rcu(ctx, rcu);
}

/* Map @nr pages, each by itself when @nr is 1 or as one stretch. NULL: *@status says why. */
static void *map(struct xnem_be *dev, const xnem_le32 *refs, u32 nr, enum xnem_status *status)
{
	grant_ref_t grefs[1u << XNEM_INBOX_ORDER_MAX];
	void *vaddr;
	u32 i;
	int err;

	*status = XNEM_ST_FAULT;
	/* Each failure writes to the log and to xenstore: one is enough. */
	if (READ_ONCE(dev->map_failed))
		return NULL;
	for (i = 0; i < nr; i++)
		grefs[i] = le32_to_cpu(refs[i]);
	err = xenbus_map_ring_valloc(dev->xdev, grefs, nr, &vaddr);
	if (!err)
		return vaddr;
	/* Xen's refusal closes the device, too; for want of memory it goes on. */
	if (err == -ENOMEM)
		*status = XNEM_ST_NOMEM;
	else
		WRITE_ONCE(dev->map_failed, true);
	return NULL;
}

enum xnem_status xnem_ctx_open(struct xnem_be_ctx *ctx, const struct xnem_request *req)
{
	bool inbox = req->u.open.flags & cpu_to_le32(XNEM_OPEN_INBOX);
	u32 pages = 1u << le32_to_cpu(req->u.open.inbox_order);
	struct xnem_context_control *control = NULL;
	struct xnem_inbox_slot *slots = NULL;
	struct xnem_be *dev = ctx->dev;
	enum xnem_status status;

	/* One whose open request came to nothing has none: it may be tried again. */
	if (ctx->cpage)
		return XNEM_ST_CONTEXT;
	ctx->cpage = map(dev, &req->u.open.cpage_ref, 1, &status);
	if (!ctx->cpage)
		return status;
	if (inbox) {
		control = map(dev, &req->u.open.control_ref, 1, &status);
		if (control)
			slots = map(dev, req->u.open.inbox_ref, pages, &status);
		if (slots)
			status = xnem_inbox_open(ctx, control, slots,
						 pages * XNEM_INBOX_SLOTS_PER_PAGE);
	} else {
		status = XNEM_ST_OK;
	}
	if (status == XNEM_ST_OK)
		return status;
	if (slots)
		xenbus_unmap_ring_vfree(dev->xdev, slots);
	if (control)
		xenbus_unmap_ring_vfree(dev->xdev, control);
	xenbus_unmap_ring_vfree(dev->xdev, ctx->cpage);
	ctx->cpage = NULL;
	return status;
}

static void unmap_all(struct xnem_be_ctx *ctx)
{
	struct xenbus_device *xdev = ctx->dev->xdev;
	struct xnem_context_control *control = ctx->control;
	struct xnem_inbox_slot *inbox = ctx->inbox;

	if (inbox) {
		xnem_inbox_close(ctx);
		xenbus_unmap_ring_vfree(xdev, inbox);
		xenbus_unmap_ring_vfree(xdev, control);
	}
	if (ctx->cpage)
		xenbus_unmap_ring_vfree(xdev, ctx->cpage);
	ctx->cpage = NULL;
}

/* The entry comes after the data and before the completion. */
void xnem_ctx_write_cpage(struct xnem_be_ctx *ctx, const struct xnem_job *job,
			  enum xnem_status status, u64 bytes_done)
{
	struct xnem_cpage_entry *entry;

	/* Without a page there is the completion alone. */
	if (!ctx->cpage || ctx->abandoned || READ_ONCE(xnem_leaving))
		return;
	entry = &ctx->cpage[ctx->cpage_prod++ & (XNEM_CPAGE_ENTRIES - 1)];
	entry->user_data = cpu_to_le64(job->user_data);
	entry->bytes_done = cpu_to_le64(bytes_done);
	entry->status = cpu_to_le32(status);
	entry->kind = cpu_to_le32(XNEM_CPAGE_COMPLETION);
	entry->pad = 0;
	xnem_wmb(); /* pairs with the reader's load-acquire of seq */
	xnem_store32(&entry->seq, ctx->cpage_prod);
	ctx->queue->stats.cpage_entries++;
}

/* ---- fences ---- */

static bool held_up(const struct xnem_be_ctx *ctx, u16 flags)
{
	return ctx->fenced || ((flags & XNEM_REQ_FENCE) && ctx->in_flight);
}

bool xnem_ctx_park(struct xnem_job *job, const struct xnem_request *req)
{
	struct xnem_be_ctx *ctx = job->ctx;

	if (list_empty(&ctx->parked) && !held_up(ctx, job->flags))
		return false;
	job->parked = kmemdup(req, sizeof(*req), GFP_KERNEL);
	if (!job->parked) {
		xnem_job_answer(job, XNEM_ST_NOMEM, 0, 0, 0);
		return true;
	}
	job->state = XNEM_JOB_PARKED;
	list_add_tail(&job->entry, &ctx->parked);
	ctx->queue->stats.fenced++;
	return true;
}

static void start_parked(struct xnem_be_ctx *ctx)
{
	struct xnem_request req;
	struct xnem_job *job;

	while (!list_empty(&ctx->parked)) {
		job = list_first_entry(&ctx->parked, struct xnem_job, entry);
		if (held_up(ctx, job->flags))
			break;
		list_del_init(&job->entry);
		req = *job->parked;
		kfree(job->parked);
		job->parked = NULL;
		xnem_job_start(job, &req);
	}
}

bool xnem_ctx_unpark(struct xnem_be_queue *q)
{
	struct xnem_be_ctx *ctx;
	bool any = false;

	while (!list_empty(&q->unpark)) {
		ctx = list_first_entry(&q->unpark, struct xnem_be_ctx, unpark);
		list_del_init(&ctx->unpark);
		refcount_inc(&ctx->ref);
		start_parked(ctx);
		xnem_ctx_put(ctx);
		any = true;
	}
	return any;
}

void xnem_ctx_job_done(struct xnem_be_ctx *ctx, const struct xnem_job *job)
{
	if (job->ordered) {
		ctx->in_flight--;
		if (job->flags & XNEM_REQ_FENCE)
			ctx->fenced = false;
	}
	/* Not started here: the answer may come from deep within another start. */
	if (!list_empty(&ctx->parked) && list_empty(&ctx->unpark))
		list_add_tail(&ctx->unpark, &ctx->queue->unpark);
	ctx->nr_jobs--;
	xnem_ctx_try_close(ctx);
}

/* ---- the end ---- */

static void cancel_job(struct xnem_job *job)
{
	switch (job->state) {
	case XNEM_JOB_PARKED:
		list_del_init(&job->entry);
		kfree(job->parked);
		job->parked = NULL;
		xnem_job_answer(job, XNEM_ST_CANCELLED, 0, 0, 0);
		break;
	case XNEM_JOB_SMALL:
		xnem_copy_remove(job);
		xnem_job_end_copy(job, XNEM_ST_CANCELLED);
		break;
	case XNEM_JOB_LARGE:
		xnem_large_stop(job, XNEM_ST_CANCELLED);
		break;
	default:
		break;
	}
}

static void cancel_all(struct xnem_be_ctx *ctx)
{
	struct xnem_be_queue *q = ctx->queue;
	u32 i;

	for (i = 0; i < q->inflight && ctx->nr_jobs; i++)
		if (q->jobs[i].state != XNEM_JOB_FREE && q->jobs[i].ctx == ctx)
			cancel_job(&q->jobs[i]);
}

bool xnem_ctx_cancel(struct xnem_be_ctx *ctx, u32 id)
{
	struct xnem_be_queue *q = ctx->queue;
	struct xnem_job *job;
	u32 i;

	for (i = 0; i < q->inflight; i++) {
		job = &q->jobs[i];
		if (job->state <= XNEM_JOB_BUSY || job->ctx != ctx || job->id != id)
			continue;
		q->stats.cancelled++;
		cancel_job(job);
		return true;
	}
	return false;
}

/* Out of the table; whoever still holds it sees that it is dead. */
static void forget(struct xnem_be_ctx *ctx)
{
	xa_erase(&ctx->dev->contexts, ctx->number);
	unmap_all(ctx);
	list_del_init(&ctx->unpark);
	list_del_init(&ctx->entry);
	xnem_ctx_put(ctx);
}

void xnem_ctx_try_close(struct xnem_be_ctx *ctx)
{
	struct xnem_job *job = ctx->close;

	if (!job || ctx->nr_jobs || ctx->nr_regions)
		return;
	ctx->close = NULL;
	forget(ctx);
	job->ctx = NULL;
	xnem_job_answer(job, XNEM_ST_OK, 0, 0, 0);
}

void xnem_ctx_close(struct xnem_be_ctx *ctx, struct xnem_job *job)
{
	/* It waits for all jobs but itself. */
	ctx->nr_jobs--;
	cancel_all(ctx);
	xnem_region_end_all(ctx, false);
	ctx->close = job;
	xnem_ctx_try_close(ctx);
}

void xnem_ctx_abandon_all(struct xnem_be_queue *q)
{
	struct xnem_be_ctx *ctx;

	list_for_each_entry(ctx, &q->contexts, entry) {
		/*
		 * Nobody will read the answers; what they hold is dropped.  The
		 * process reads its completion page: not there either, or it would
		 * take the end of the device for one that it asked for.
		 */
		ctx->abandoned = true;
		ctx->close = NULL;
		cancel_all(ctx);
		xnem_region_end_all(ctx, true);
	}
}

void xnem_ctx_forget_all(struct xnem_be_queue *q)
{
	struct xnem_be_ctx *ctx, *next;

	list_for_each_entry_safe(ctx, next, &q->contexts, entry)
		forget(ctx);
}

/* ---- guesses ---- */

/*
 * A wrong cookie costs its context a token.  Without tokens its copies rest
 * (try again later): guessing keys is slow, and nobody else pays for it.
 */
void xnem_ctx_wrong(struct xnem_be_ctx *ctx)
{
	struct xnem_guesses *g = &ctx->guesses;
	unsigned long passed = jiffies - g->since;
	u32 refill = passed > HZ ? WRONG_TOKENS : passed * WRONG_TOKENS / HZ;

	if (refill) {
		g->spent -= min(g->spent, refill);
		g->since = jiffies;
	}
	if (g->spent < WRONG_TOKENS) {
		g->spent++;
		return;
	}
	ctx->queue->stats.throttled++;
	g->rest_until = (jiffies + msecs_to_jiffies(WRONG_REST_MS)) | 1;
}

bool xnem_ctx_rests(struct xnem_be_ctx *ctx)
{
	struct xnem_guesses *g = &ctx->guesses;

	if (g->rest_until && time_after_eq(jiffies, g->rest_until))
		g->rest_until = 0;
	return g->rest_until;
}
