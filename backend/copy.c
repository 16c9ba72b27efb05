// SPDX-License-Identifier: GPL-2.0
/*
 * The copy engine: from jobs to GNTTABOP_copy, in batches.
 *
 * A batch is filled from the small copies of the queues and contexts whose turn
 * it is, so that copies of several requests share a hypercall.  A chunk of a
 * large copy (large.c) has its own.
 * Statuses are preset to an error and each is looked at (XSA-318): a failure
 * ends its own copy at the prefix that is complete, never the worker.
 */
#include <asm/xen/hypercall.h>
#include <xen/interface/grant_table.h>

#include "backend.h"
#include "trace.h"

static enum xnem_status status_of(s16 gntst)
{
	switch (gntst) {
	case GNTST_okay:
		return XNEM_ST_OK;
	case GNTST_bad_domain:
		return XNEM_ST_PEER_GONE;
	case GNTST_eagain:
		return XNEM_ST_AGAIN;
	default:
		return XNEM_ST_FAULT;
	}
}

static void do_copies(struct gnttab_copy *ops, unsigned int n)
{
	trace_xnem_be_copy_begin(ops, n);
	/*
	 * Not gnttab_batch_copy(): that sleeps for up to 32 s on GNTST_eagain
	 * and stops the machine when the hypercall fails.  When it does here,
	 * the preset statuses stand.
	 */
	if (HYPERVISOR_grant_table_op(GNTTABOP_copy, ops, n))
		pr_warn_ratelimited("xnem-backend: GNTTABOP_copy refused\n");
	trace_xnem_be_copy_end(ops, n);
}

/* Nothing may be copied any more to or from a region that ends. */
bool xnem_copy_dying(const struct xnem_job *job)
{
	return READ_ONCE(job->src->dying) || READ_ONCE(job->dst->dying);
}

enum xnem_status xnem_copy_why(const struct xnem_job *job, enum xnem_status status)
{
	/* Which of the two Xen refused it does not say; a region might. */
	if (status != XNEM_ST_OK && status != XNEM_ST_CANCELLED &&
	    (READ_ONCE(job->src->gone) || READ_ONCE(job->dst->gone)))
		return XNEM_ST_PEER_GONE;
	return status;
}

/* ---- small copies: in their context's list, batched together ---- */

void xnem_copy_add(struct xnem_job *job)
{
	struct xnem_be_queue *q = job->queue;
	struct xnem_be_ctx *ctx = job->ctx;

	job->state = XNEM_JOB_SMALL;
	job->emitted = job->done;
	job->walk.left = 0;
	job->runs_pending = 0;
	list_add_tail(&job->entry, &ctx->copies);
	if (list_empty(&ctx->turn))
		list_add_tail(&ctx->turn, &q->turns);
	if (list_empty(&q->turn))
		list_add_tail(&q->turn, &q->worker->active);
}

void xnem_copy_remove(struct xnem_job *job)
{
	struct xnem_be_queue *q = job->queue;
	struct xnem_be_ctx *ctx = job->ctx;

	list_del_init(&job->entry);
	if (list_empty(&ctx->copies))
		list_del_init(&ctx->turn);
	if (list_empty(&q->turns))
		list_del_init(&q->turn);
}

static bool end_if_dying(struct xnem_job *job)
{
	if (!xnem_copy_dying(job))
		return false;
	xnem_copy_remove(job);
	xnem_job_end_copy(job, XNEM_ST_PEER_GONE);
	return true;
}

void xnem_copy_end_dying(struct xnem_worker *w)
{
	int endings = xnem_region_endings();
	struct xnem_be_queue *q;
	u32 i;

	if (w->endings == endings)
		return;
	w->endings = endings;
	xnem_large_stop_dying();
	list_for_each_entry(q, &w->queues, entry)
		for (i = 0; i < q->inflight; i++)
			if (q->jobs[i].state == XNEM_JOB_SMALL)
				end_if_dying(&q->jobs[i]);
}

struct emit_to {
	struct gnttab_copy *next;
	domid_t src;
	domid_t dst;
};

static inline __attribute__((always_inline)) void emit(void *arg, u32 src_ref, u32 src_off,
						       u32 dst_ref, u32 dst_off, u32 len)
{
	struct emit_to *to = arg;
	struct gnttab_copy *g = to->next++;

	g->source.u.ref = src_ref;
	g->source.domid = to->src;
	g->source.offset = src_off;
	g->dest.u.ref = dst_ref;
	g->dest.domid = to->dst;
	g->dest.offset = dst_off;
	g->len = len;
	g->flags = GNTCOPY_source_gref | GNTCOPY_dest_gref;
	g->status = GNTST_general_error;
}

/* References of a region from its first page on, or of the window that shows a part. */
static const u32 *refs_of(const struct xnem_region *r, const struct xnem_window *win, u64 *page_pos)
{
	if (!win)
		return r->refs;
	*page_pos -= win->page << XNEM_PAGE_SHIFT;
	return win->refs;
}

/*
 * The next stretch of a copy that is one in both regions, from byte @pos of
 * @left that are to go.
 */
static void next_walk(struct xnem_walk *walk, const struct xnem_job *job, u64 pos, u64 left)
{
	u64 src_pos, dst_pos;
	u64 src = xnem_region_find(job->src, job->src_offset + pos, &src_pos);
	u64 dst = xnem_region_find(job->dst, job->dst_offset + pos, &dst_pos);
	const u32 *src_refs = refs_of(job->src, job->win[0], &src_pos);
	const u32 *dst_refs = refs_of(job->dst, job->win[1], &dst_pos);

	xnem_walk_init(walk, src_refs, src_pos, dst_refs, dst_pos, min3(src, dst, left));
}

/* Operations of @job from ops[@n] on, as far as its turn and the batch go. */
static unsigned int emit_run(struct xnem_worker *w, struct xnem_job *job, unsigned int n)
{
	struct emit_to to = { &w->ops[n], job->src->domid, job->dst->domid };
	struct xnem_run *run = &w->runs[w->nr_runs++];
	struct xnem_be_queue *q = job->queue;
	struct xnem_walk *walk = &job->walk;
	s64 budget = q->deficit, cost;
	unsigned int first = n;

	if (!job->emitted)
		q->wait_bytes_max = max(q->wait_bytes_max, w->bytes - job->since);
	run->bytes = 0;
	do {
		u64 before, turn;

		if (!walk->left)
			next_walk(walk, job, job->emitted, job->length - job->emitted);
		before = walk->left;
		/* To the end of a source page: cut within, it would take an operation more. */
		turn = min_t(u64, before,
			     round_up(walk->src_off + budget, XNEM_PAGE_SIZE) - walk->src_off);
		walk->left = turn;
		n += xnem_walk_batch(walk, XNEM_BE_BATCH - n, emit, &to);
		turn -= walk->left;
		walk->left = before - turn;
		run->bytes += turn;
		job->emitted += turn;
		budget -= turn;
	} while (job->emitted < job->length && budget > 0 && n < XNEM_BE_BATCH - 1);
	run->first = first;
	run->count = n - first;
	run->job = job;
	job->runs_pending++;
	/* Small operations cost more than their bytes. */
	cost = max_t(s64, run->bytes, run->count * XNEM_BE_REQUEST_COST);
	q->deficit -= cost;
	job->ctx->deficit -= cost;
	return n;
}

static unsigned int fill(struct xnem_worker *w)
{
	unsigned int n = 0;

	w->nr_runs = 0;
	/* One more may be all that does not fit: an unaligned page takes two. */
	while (n < XNEM_BE_BATCH - 1 && !list_empty(&w->active)) {
		struct xnem_be_queue *q = list_first_entry(&w->active, struct xnem_be_queue, turn);
		struct xnem_be_ctx *ctx = list_first_entry(&q->turns, struct xnem_be_ctx, turn);
		struct xnem_job *job = list_first_entry(&ctx->copies, struct xnem_job, entry);

		/* A turn that is over: the next one's, then its own again. */
		if (q->deficit <= 0) {
			q->deficit += XNEM_BE_QUANTUM;
			list_move_tail(&q->turn, &w->active);
			continue;
		}
		if (ctx->deficit <= 0) {
			ctx->deficit += XNEM_BE_CTX_QUANTUM;
			list_move_tail(&ctx->turn, &q->turns);
			continue;
		}
		if (!job->runs_pending && end_if_dying(job))
			continue;
		n = emit_run(w, job, n);
		/* When all of it is in this batch, settle() ends it. */
		if (job->emitted == job->length)
			xnem_copy_remove(job);
	}
	return n;
}

/* Look at each status: bytes of @count operations before the first failure, and what it was. */
static u64 look(const struct gnttab_copy *op, unsigned int count, u64 bytes,
		enum xnem_status *failed)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (likely(op[i].status == GNTST_okay))
			continue;
		*failed = status_of(op[i].status);
		for (bytes = 0; i; i--)
			bytes += op[i - 1].len;
		break;
	}
	return bytes;
}

/*
 * Try again later?  Not for ever: *@until is when it becomes an error, 0 when
 * the batch before had nothing to repeat.
 */
bool xnem_copy_again(unsigned long *until)
{
	if (!*until)
		*until = (jiffies + msecs_to_jiffies(XNEM_BE_EAGAIN_MS)) | 1;
	return time_before(jiffies, *until);
}

/* All of a job's operations in this batch have their status. */
static void settle_job(struct xnem_job *job)
{
	if (job->failed == XNEM_ST_AGAIN && xnem_copy_again(&job->eagain_until)) {
		/* Back to the end of the queue, from where it failed. */
		atomic64_inc(&job->queue->dev->shared.eagain);
		job->failed = XNEM_ST_OK;
		if (!list_empty(&job->entry))
			xnem_copy_remove(job);
		xnem_copy_add(job);
	} else if (job->failed != XNEM_ST_OK || job->done == job->length) {
		if (!list_empty(&job->entry))
			xnem_copy_remove(job);
		xnem_job_end_copy(job, xnem_copy_why(job, job->failed));
	} else {
		job->eagain_until = 0;
	}
}

static void count(struct xnem_worker *w, struct xnem_be *dev, u64 bytes, unsigned int ops)
{
	w->bytes += bytes;
	atomic64_add(bytes, &dev->shared.bytes);
	atomic64_add(ops, &dev->shared.grant_ops);
}

bool xnem_copy_run(struct xnem_worker *w)
{
	unsigned int n = fill(w);
	unsigned int i;
	u64 bytes;

	if (!n)
		return false;
	do_copies(w->ops, n);
	/* Counted where the batch's first operation is; the total is right. */
	atomic64_inc(&w->runs[0].job->queue->dev->shared.hypercalls);
	for (i = 0; i < w->nr_runs; i++) {
		struct xnem_run *run = &w->runs[i];
		struct xnem_job *job = run->job;

		bytes = 0;
		if (job->failed == XNEM_ST_OK)
			bytes = look(&w->ops[run->first], run->count, run->bytes, &job->failed);
		job->done += bytes;
		count(w, job->queue->dev, bytes, run->count);
		if (!--job->runs_pending)
			settle_job(job);
	}
	return true;
}

/* ---- a chunk of a large copy ---- */

enum xnem_status xnem_copy_chunk(struct xnem_worker *w, struct xnem_chunk *c)
{
	struct xnem_job *job = c->job;
	struct xnem_be *dev = job->queue->dev;
	struct emit_to to = { .src = job->src->domid, .dst = job->dst->domid };
	struct xnem_walk walk = { .left = 0 };
	enum xnem_status failed = XNEM_ST_OK;
	unsigned int n;
	u64 pos, bytes;

	while (c->pos < c->end) {
		if (xnem_copy_dying(job))
			return XNEM_ST_PEER_GONE;
		if (READ_ONCE(job->cancel))
			return XNEM_ST_CANCELLED;
		to.next = w->ops;
		for (n = 0, pos = c->pos; pos < c->end && n < XNEM_BE_BATCH - 1;) {
			if (!walk.left)
				next_walk(&walk, job, pos, c->end - pos);
			bytes = walk.left;
			n += xnem_walk_batch(&walk, XNEM_BE_BATCH - n, emit, &to);
			pos += bytes - walk.left;
		}
		do_copies(w->ops, n);
		bytes = look(w->ops, n, pos - c->pos, &failed);
		c->pos += bytes;
		count(w, dev, bytes, n);
		atomic64_inc(&dev->shared.hypercalls);
		if (failed != XNEM_ST_OK)
			return failed;
		c->eagain_until = 0;
	}
	return XNEM_ST_OK;
}

enum xnem_status xnem_copy_descriptors(struct xnem_be_queue *q, const xnem_le32 *refs, u32 nr)
{
	struct xnem_worker *w = q->worker;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct gnttab_copy *g = &w->ops[i];

		g->source.u.ref = le32_to_cpu(refs[i]);
		g->source.domid = q->dev->xdev->otherend_id;
		g->source.offset = 0;
		g->dest.u.gmfn = xen_page_to_gfn(w->desc[i]);
		g->dest.domid = DOMID_SELF;
		g->dest.offset = 0;
		/* Whole: what lies behind the last entry is read, but not used. */
		g->len = XNEM_PAGE_SIZE;
		g->flags = GNTCOPY_source_gref;
		g->status = GNTST_general_error;
	}
	do_copies(w->ops, nr);
	q->stats.desc_pages += nr;
	for (i = 0; i < nr; i++)
		if (w->ops[i].status != GNTST_okay)
			return status_of(w->ops[i].status);
	return XNEM_ST_OK;
}
