// SPDX-License-Identifier: GPL-2.0
/*
 * The copy engine: from jobs to GNTTABOP_copy, in batches.
 *
 * A batch is filled from the copies of the queues whose turn it is, so small
 * copies of several requests share a hypercall and a large one fills it alone.
 * Statuses are preset to an error and each is looked at (XSA-318): a failure
 * ends its own copy at the prefix that is complete, never the worker.
 */
#include <asm/xen/hypercall.h>
#include <xen/interface/grant_table.h>

#include "backend.h"

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
	/*
	 * Not gnttab_batch_copy(): that sleeps for up to 32 s on GNTST_eagain
	 * and stops the machine when the hypercall fails.  When it does here,
	 * the preset statuses stand.
	 */
	if (HYPERVISOR_grant_table_op(GNTTABOP_copy, ops, n))
		pr_warn_ratelimited("xnem-backend: GNTTABOP_copy refused\n");
}

/* Nothing may be copied any more to or from a region that ends. */
static bool end_if_dying(struct xnem_job *job)
{
	struct xnem_region *ending = READ_ONCE(job->src->dying) ? job->src :
				     READ_ONCE(job->dst->dying) ? job->dst :
								  NULL;

	if (!ending)
		return false;
	xnem_job_end_copy(job, XNEM_ST_PEER_GONE);
	return true;
}

void xnem_copy_end_dying(struct xnem_worker *w)
{
	int endings = xnem_region_endings();
	struct xnem_be_queue *q, *next_q;
	struct xnem_job *job, *next;

	if (w->endings == endings)
		return;
	w->endings = endings;
	list_for_each_entry_safe(q, next_q, &w->active, turn)
		list_for_each_entry_safe(job, next, &q->copies, entry)
			end_if_dying(job);
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

/* Operations of @job from ops[@n] on, as far as its turn and the batch go. */
static unsigned int emit_run(struct xnem_worker *w, struct xnem_job *job, unsigned int n)
{
	struct emit_to to = { &w->ops[n], job->src->domid, job->dst->domid };
	struct xnem_be_queue *q = job->queue;
	struct xnem_run *run = &w->runs[w->nr_runs++];
	u64 before = job->walk.left;
	/* To the end of a source page: cut within, it would take an operation more. */
	u64 turn =
		min_t(u64, before,
		      round_up(job->walk.src_off + q->deficit, XNEM_PAGE_SIZE) - job->walk.src_off);

	job->walk.left = turn;
	run->count = xnem_walk_batch(&job->walk, XNEM_BE_BATCH - n, emit, &to);
	run->bytes = turn - job->walk.left;
	run->first = n;
	run->job = job;
	job->walk.left = before - run->bytes;
	job->runs_pending++;
	q->deficit -= run->bytes;
	return run->count;
}

static unsigned int fill(struct xnem_worker *w)
{
	unsigned int n = 0;

	w->nr_runs = 0;
	/* One more may be all that does not fit: an unaligned page takes two. */
	while (n < XNEM_BE_BATCH - 1 && !list_empty(&w->active)) {
		struct xnem_be_queue *q = list_first_entry(&w->active, struct xnem_be_queue, turn);
		struct xnem_job *job = list_first_entry(&q->copies, struct xnem_job, entry);

		if (q->deficit <= 0) {
			/* Its turn is over: the next queue's, then its own again. */
			q->deficit += XNEM_BE_QUANTUM;
			list_move_tail(&q->turn, &w->active);
			list_move_tail(&job->entry, &q->copies);
			continue;
		}
		if (!job->runs_pending && end_if_dying(job))
			continue;
		n += emit_run(w, job, n);
		if (!job->walk.left) {
			/* All of it is in this batch; settle() ends it. */
			list_del_init(&job->entry);
			if (list_empty(&q->copies))
				list_del_init(&q->turn);
		}
	}
	return n;
}

/* Look at each status; the prefix before the first failure is complete. */
static void settle_run(struct xnem_worker *w, const struct xnem_run *run)
{
	const struct gnttab_copy *op = &w->ops[run->first];
	struct xnem_job *job = run->job;
	u64 bytes = run->bytes;
	unsigned int i;

	for (i = 0; i < run->count; i++) {
		if (likely(op[i].status == GNTST_okay))
			continue;
		job->failed = status_of(op[i].status);
		for (bytes = 0; i; i--)
			bytes += op[i - 1].len;
		break;
	}
	job->done += bytes;
	job->queue->dev->stats.bytes += bytes;
}

/* All of a job's operations in this batch have their status. */
static void settle_job(struct xnem_job *job)
{
	struct xnem_be_queue *q = job->queue;

	if (job->failed == XNEM_ST_AGAIN) {
		if (!job->eagain_until)
			job->eagain_until = (jiffies + msecs_to_jiffies(XNEM_BE_EAGAIN_MS)) | 1;
		if (time_before(jiffies, job->eagain_until)) {
			/* Back to the end of the queue, from where it failed. */
			q->dev->stats.eagain++;
			job->failed = XNEM_ST_OK;
			xnem_walk_init(&job->walk, job->src->refs, job->src_pos + job->done,
				       job->dst->refs, job->dst_pos + job->done,
				       job->length - job->done);
			list_del_init(&job->entry);
			xnem_job_queue_copy(job);
			return;
		}
	} else {
		job->eagain_until = 0;
	}
	if (job->failed != XNEM_ST_OK) {
		/* Which of the two Xen refused it does not say; a region might. */
		if (READ_ONCE(job->src->gone) || READ_ONCE(job->dst->gone))
			job->failed = XNEM_ST_PEER_GONE;
		xnem_job_end_copy(job, job->failed);
	} else if (!job->walk.left) {
		xnem_job_end_copy(job, XNEM_ST_OK);
	}
}

bool xnem_copy_run(struct xnem_worker *w)
{
	unsigned int n = fill(w);
	unsigned int i;

	if (!n)
		return false;
	do_copies(w->ops, n);
	/* Counted where the batch's first operation is; the total is right. */
	w->runs[0].job->queue->dev->stats.hypercalls++;
	for (i = 0; i < w->nr_runs; i++) {
		struct xnem_run *run = &w->runs[i];
		struct xnem_job *job = run->job;

		job->queue->dev->stats.grant_ops += run->count;
		if (job->failed == XNEM_ST_OK)
			settle_run(w, run);
		if (!--job->runs_pending)
			settle_job(job);
	}
	return true;
}

enum xnem_status xnem_copy_descriptors(struct xnem_be_queue *q, const xnem_le32 *desc_refs,
				       u32 *refs, u32 count)
{
	struct xnem_worker *w = q->worker;
	unsigned int nr = DIV_ROUND_UP(count, XNEM_DESC_REFS);
	unsigned int i, j;

	for (i = 0; i < nr; i++) {
		struct gnttab_copy *g = &w->ops[i];
		u32 n = min_t(u32, count - i * XNEM_DESC_REFS, XNEM_DESC_REFS);

		g->source.u.ref = le32_to_cpu(desc_refs[i]);
		g->source.domid = q->dev->xdev->otherend_id;
		g->source.offset = 0;
		g->dest.u.gmfn = xen_page_to_gfn(w->desc[i]);
		g->dest.domid = DOMID_SELF;
		g->dest.offset = 0;
		g->len = n * sizeof(xnem_le32);
		g->flags = GNTCOPY_source_gref;
		g->status = GNTST_general_error;
	}
	do_copies(w->ops, nr);
	q->dev->stats.desc_pages += nr;
	for (i = 0; i < nr; i++) {
		const xnem_le32 *from = page_address(w->desc[i]);
		u32 n = min_t(u32, count - i * XNEM_DESC_REFS, XNEM_DESC_REFS);

		if (w->ops[i].status != GNTST_okay)
			return status_of(w->ops[i].status);
		for (j = 0; j < n; j++)
			*refs++ = le32_to_cpu(from[j]);
	}
	return XNEM_ST_OK;
}
