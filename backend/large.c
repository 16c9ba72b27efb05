// SPDX-License-Identifier: GPL-2.0
/*
 * Large copies: cut into chunks that all workers share.
 *
 * Devices with large copies take turns by bytes (deficit round robin), then
 * their contexts, chunk by chunk; the copies of one context go one after the
 * other.  A worker takes a chunk under the lock, copies it without, and
 * accounts for it under the lock again.  The copies of a chunk that Xen wants
 * repeated (GNTST_eagain) are tried again by the same worker.
 *
 * Chunks are made in order, so what lies before the first failure has been
 * copied when all chunks are accounted for.
 */
#include "backend.h"

DEFINE_SPINLOCK(xnem_large_lock);
/* Devices with copies to cut chunks from, in the order of their turns. */
static LIST_HEAD(devices);
/* Something that xnem_large_wait() waits for has gone. */
DECLARE_WAIT_QUEUE_HEAD(xnem_large_done);

void xnem_large_enqueue(struct xnem_job *job)
{
	struct xnem_be_ctx *ctx = job->ctx;
	struct xnem_be *dev = ctx->dev;

	list_add_tail(&job->entry, &ctx->large);
	if (list_empty(&ctx->large_turn))
		list_add_tail(&ctx->large_turn, &dev->large);
	if (list_empty(&dev->large_turn))
		list_add_tail(&dev->large_turn, &devices);
}

/* Out of its context's list, or of those of window.c. */
static void dequeue(struct xnem_job *job)
{
	struct xnem_be_ctx *ctx = job->ctx;
	struct xnem_be *dev = ctx->dev;

	list_del_init(&job->entry);
	if (list_empty(&ctx->large))
		list_del_init(&ctx->large_turn);
	if (list_empty(&dev->large))
		list_del_init(&dev->large_turn);
}

bool xnem_large_pending(void)
{
	return !list_empty_careful(&devices);
}

void xnem_large_add(struct xnem_job *job)
{
	job->state = XNEM_JOB_LARGE;
	job->cursor = 0;
	job->fail_at = U64_MAX;
	job->chunks = 0;
	job->stop = false;
	job->cancel = false;
	job->wait_until = 0;
	spin_lock(&xnem_large_lock);
	xnem_large_enqueue(job);
	spin_unlock(&xnem_large_lock);
	/* Its own worker comes to it anyway; are there more? */
	if (xnem_nr_workers > 1)
		xnem_workers_kick_all();
}

/* No chunk is under way and none will be: it goes home.  Called with the lock held. */
static void go_home(struct xnem_job *job)
{
	struct xnem_worker *w = job->queue->worker;

	if (job->chunks || !(job->stop || job->cursor == job->length))
		return;
	if (!list_empty(&job->entry))
		dequeue(job);
	llist_add(&job->finished, &w->finished);
	xnem_worker_kick(w);
}

static void stop(struct xnem_job *job, enum xnem_status status, u64 at)
{
	if (at < job->fail_at) {
		job->fail_at = at;
		job->failed = status;
	}
	job->stop = true;
	if (!list_empty(&job->entry))
		dequeue(job);
	/* A chunk that a worker has still uses them. */
	if (!job->chunks)
		xnem_window_release(job);
}

void xnem_large_stop_locked(struct xnem_job *job, enum xnem_status status)
{
	WRITE_ONCE(job->cancel, true);
	/* On its way home already, or to be there with its last chunk? */
	if (!job->stop && job->cursor < job->length) {
		stop(job, status, job->cursor);
		go_home(job);
	}
}

void xnem_large_stop(struct xnem_job *job, enum xnem_status status)
{
	spin_lock(&xnem_large_lock);
	xnem_large_stop_locked(job, status);
	spin_unlock(&xnem_large_lock);
}

void xnem_large_stop_dying(void)
{
	struct xnem_be *dev, *next_dev;
	struct xnem_be_ctx *ctx, *next_ctx;
	struct xnem_job *job, *next;

	spin_lock(&xnem_large_lock);
	list_for_each_entry_safe(dev, next_dev, &devices, large_turn)
		list_for_each_entry_safe(ctx, next_ctx, &dev->large, large_turn)
			list_for_each_entry_safe(job, next, &ctx->large, entry)
				if (xnem_copy_dying(job))
					xnem_large_stop_locked(job, XNEM_ST_PEER_GONE);
	spin_unlock(&xnem_large_lock);
}

/*
 * Where the next chunk of @job ends.  At the end of a source page, so that the
 * cut takes no operation more; where both sides have the same offset a chunk
 * has twice the pages, as each takes one operation: a batch holds it as well.
 */
static u64 chunk_end(const struct xnem_job *job)
{
	u64 src_pos, dst_pos, bytes = XNEM_BE_CHUNK;

	if (job->ready)
		return job->piece_end;
	xnem_region_find(job->src, job->src_offset + job->cursor, &src_pos);
	xnem_region_find(job->dst, job->dst_offset + job->cursor, &dst_pos);
	src_pos &= XNEM_PAGE_SIZE - 1;
	if (src_pos == (dst_pos & (XNEM_PAGE_SIZE - 1)))
		bytes *= 2;
	return min(job->length, job->cursor + bytes - src_pos);
}

static bool take(struct xnem_chunk *c)
{
	struct xnem_be_ctx *ctx;
	struct xnem_job *job;
	struct xnem_be *dev;

	/* Each worker comes here after each small copy: no lock for nothing. */
	if (!xnem_large_pending())
		return false;
	spin_lock(&xnem_large_lock);
again:
	for (;;) {
		if (list_empty(&devices)) {
			spin_unlock(&xnem_large_lock);
			return false;
		}
		dev = list_first_entry(&devices, struct xnem_be, large_turn);
		if (dev->large_deficit > 0)
			break;
		dev->large_deficit += 2 * XNEM_BE_CHUNK;
		list_move_tail(&dev->large_turn, &devices);
	}
	ctx = list_first_entry(&dev->large, struct xnem_be_ctx, large_turn);
	list_move_tail(&ctx->large_turn, &dev->large);
	job = list_first_entry(&ctx->large, struct xnem_job, entry);
	if (xnem_job_windowed(job) && !job->ready) {
		dequeue(job);
		xnem_window_want(job);
		goto again;
	}
	*c = (struct xnem_chunk){ .job = job, .pos = job->cursor, .end = chunk_end(job) };
	job->cursor = c->end;
	job->chunks++;
	job->queue->chunks++;
	dev->large_deficit -= c->end - c->pos;
	/* With windows one piece after the other. */
	if (job->cursor == job->length || job->ready)
		dequeue(job);
	spin_unlock(&xnem_large_lock);
	atomic64_inc(&dev->shared.chunks);
	return true;
}

/* The worker is through with a chunk, which went as far as its pos. */
static void account(struct xnem_chunk *c, enum xnem_status status)
{
	struct xnem_job *job = c->job;
	struct xnem_be_queue *q = job->queue;

	spin_lock(&xnem_large_lock);
	job->chunks--;
	if (!job->chunks)
		xnem_window_release(job);
	if (status != XNEM_ST_OK)
		stop(job, status, c->pos);
	else if (xnem_job_windowed(job) && !job->stop && job->cursor < job->length)
		xnem_large_enqueue(job);
	go_home(job);
	/* The queue may be gone from here on. */
	q->chunks--;
	wake_up_all(&xnem_large_done);
	spin_unlock(&xnem_large_lock);
}

static void run(struct xnem_worker *w, struct xnem_chunk *c)
{
	enum xnem_status status = xnem_copy_chunk(w, c);

	if (status == XNEM_ST_AGAIN && xnem_copy_again(&c->eagain_until) &&
	    w->nr_redo < XNEM_BE_REDO) {
		atomic64_inc(&c->job->queue->dev->shared.eagain);
		w->redo[w->nr_redo++] = *c;
		return;
	}
	account(c, status);
}

bool xnem_large_run(struct xnem_worker *w)
{
	unsigned int redo = w->nr_redo;
	struct xnem_chunk c;
	unsigned int i;

	/* What has to be tried again, oldest first; run() may put it back. */
	if (redo) {
		struct xnem_chunk old[XNEM_BE_REDO];

		memcpy(old, w->redo, sizeof(old));
		w->nr_redo = 0;
		for (i = 0; i < redo; i++)
			run(w, &old[i]);
	}
	if (!take(&c))
		return redo;
	run(w, &c);
	return true;
}

bool xnem_large_reap(struct xnem_worker *w)
{
	struct llist_node *node;
	struct xnem_job *job, *next;

	/* An exchange wants the line for itself, a look does not. */
	if (llist_empty(&w->finished))
		return false;
	node = llist_del_all(&w->finished);
	/* In the order in which they came. */
	llist_for_each_entry_safe(job, next, llist_reverse_order(node), finished) {
		if (job->op == XNEM_OP_DESCRIBE) {
			struct xnem_window *win = job->window;

			xnem_job_answer(job, XNEM_ST_OK, 0, 0, 0);
			xnem_window_answered(win);
			continue;
		}
		job->done = min(job->fail_at, job->length);
		xnem_job_end_copy(job, xnem_copy_why(job, job->failed));
	}
	return true;
}

void xnem_large_wait(struct xnem_be_queue *q)
{
	wait_event(xnem_large_done, !READ_ONCE(q->chunks) && (q != &q->dev->queues[0] ||
							      !READ_ONCE(q->dev->windows_held)));
	/* Whoever counted it down has left the lock, and so the queue. */
	spin_lock(&xnem_large_lock);
	spin_unlock(&xnem_large_lock);
}
