// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: references of regions that are not granted as a whole (xnemif.h,
 * section 8).
 *
 *   IDLE --wanted--> WANTED --described--> GRANTED --let go--> CLOSING --answered--> IDLE
 *                      | given up             ^ by a large copy
 *                      v                        (window->user)
 *                    STALE --described--> CLOSING
 *
 * A large copy takes the windows of both of its regions together or neither,
 * and waits holding none.  A frontend that does not answer keeps its window, not
 * ours: nothing is freed before it has described, or is gone.
 *
 * All under the lock of large.c, but for reading a descriptor page.
 */
#include "backend.h"
#include "trace.h"

/* A want that is not described for so long is given up, and tried again. */
#define WANT_TIMEOUT HZ
/* A copy that has got no window for so long ends with XNEM_ST_AGAIN. */
#define COPY_TIMEOUT (10 * HZ)

/* Copies that wait for idle windows, and copies that wait for a description. */
static LIST_HEAD(waiting);
static LIST_HEAD(wanting);

int xnem_windows_open(struct xnem_be *dev, u32 nr)
{
	u32 i;

	dev->window_refs = kvcalloc((size_t)nr * dev->limits.window_pages,
				    sizeof(*dev->window_refs), GFP_KERNEL);
	if (!dev->window_refs)
		return -ENOMEM;
	spin_lock(&xnem_large_lock);
	for (i = 0; i < nr; i++)
		dev->windows[i] = (struct xnem_window){
			.dev = dev,
			.index = i,
			.refs = dev->window_refs + (size_t)i * dev->limits.window_pages,
		};
	dev->nr_windows = nr;
	spin_unlock(&xnem_large_lock);
	return 0;
}

void xnem_windows_close(struct xnem_be *dev)
{
	spin_lock(&xnem_large_lock);
	dev->nr_windows = 0;
	spin_unlock(&xnem_large_lock);
}

void xnem_windows_free(struct xnem_be *dev)
{
	kvfree(dev->window_refs);
	dev->window_refs = NULL;
}

static struct xnem_window *idle(struct xnem_be *dev, const struct xnem_window *other)
{
	u32 i;

	for (i = 0; i < dev->nr_windows; i++)
		if (dev->windows[i].state == XNEM_WINDOW_IDLE && &dev->windows[i] != other)
			return &dev->windows[i];
	return NULL;
}

static void want(struct xnem_window *win, struct xnem_job *user, u64 region_id, u64 page, u32 nr)
{
	struct xnem_be_queue *q = &win->dev->queues[0];
	struct xnem_want *w = &q->header->want[win->index];
	atomic_t *bits = (atomic_t *)&q->header->attention.windows;

	win->state = XNEM_WINDOW_WANTED;
	win->user = user;
	win->page = page;
	win->nr_pages = nr;
	win->seq++;
	w->region_id = cpu_to_le64(region_id);
	w->page = cpu_to_le32((u32)page);
	w->nr_pages = cpu_to_le32(nr);
	xnem_wmb(); /* pairs with the frontend's load-acquire of seq */
	xnem_store32(&w->seq, win->seq);
	atomic_or((__force int)cpu_to_le32(1u << win->index), bits);
	trace_xnem_be_notify(q);
	notify_remote_via_irq(q->irq);
	atomic64_inc(&win->dev->shared.wants);
}

/* Bytes of a windowed region from @page_pos on that one window holds. */
static u64 window_bytes(const struct xnem_region *r, u64 page_pos)
{
	return ((u64)r->dev->limits.window_pages << XNEM_PAGE_SHIFT) -
	       (page_pos & (XNEM_PAGE_SIZE - 1));
}

static void want_side(struct xnem_job *job, struct xnem_window *win, const struct xnem_region *r,
		      u64 page_pos, u64 bytes)
{
	want(win, job, r->id, page_pos >> XNEM_PAGE_SHIFT,
	     xnem_pages_of(page_pos & (XNEM_PAGE_SIZE - 1), bytes));
	job->wants++;
}

/*
 * Ask for what the next piece of @job needs, or let it wait for idle windows.
 * It is in no list, and is put into one of ours.
 */
void xnem_window_want(struct xnem_job *job)
{
	bool src_win = job->src->flags & XNEM_REGION_WINDOWED;
	bool dst_win = job->dst->flags & XNEM_REGION_WINDOWED;
	struct xnem_window *src = NULL, *dst = NULL;
	u64 src_pos, dst_pos, bytes = job->length - job->cursor;

	if (src_win)
		src = idle(job->src->dev, NULL);
	if (dst_win)
		dst = idle(job->dst->dev, src);
	if (!job->wait_until)
		job->wait_until = (jiffies + COPY_TIMEOUT) | 1;
	if ((src_win && !src) || (dst_win && !dst)) {
		list_add_tail(&job->entry, &waiting);
		return;
	}
	bytes = min(bytes, xnem_region_find(job->src, job->src_offset + job->cursor, &src_pos));
	bytes = min(bytes, xnem_region_find(job->dst, job->dst_offset + job->cursor, &dst_pos));
	bytes = min_t(u64, bytes, 2 * XNEM_BE_CHUNK);
	if (src)
		bytes = min(bytes, window_bytes(job->src, src_pos));
	if (dst)
		bytes = min(bytes, window_bytes(job->dst, dst_pos));
	job->piece_end = job->cursor + bytes;
	job->win[0] = src;
	job->win[1] = dst;
	if (src)
		want_side(job, src, job->src, src_pos, bytes);
	if (dst)
		want_side(job, dst, job->dst, dst_pos, bytes);
	job->want_since = jiffies;
	list_add_tail(&job->entry, &wanting);
}

/* The description may be answered: by the worker of its queue. */
static void send_home(struct xnem_job *describe)
{
	struct xnem_worker *w = describe->queue->worker;

	llist_add(&describe->finished, &w->finished);
	xnem_worker_kick(w);
}

/* @job uses its windows no more. */
void xnem_window_release(struct xnem_job *job)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct xnem_window *win = job->win[i];

		job->win[i] = NULL;
		if (!win)
			continue;
		win->user = NULL;
		if (win->state == XNEM_WINDOW_GRANTED) {
			win->state = XNEM_WINDOW_CLOSING;
			win->dev->windows_held--;
			wake_up_all(&xnem_large_done);
			send_home(win->describe);
		} else {
			win->state = XNEM_WINDOW_STALE;
		}
	}
	job->wants = 0;
	job->ready = false;
}

/* Look again: something has become idle. */
static void wake_waiting(void)
{
	struct xnem_job *job, *next;

	list_for_each_entry_safe(job, next, &waiting, entry) {
		list_del_init(&job->entry);
		xnem_large_enqueue(job);
	}
}

void xnem_window_answered(struct xnem_window *win)
{
	spin_lock(&xnem_large_lock);
	win->state = XNEM_WINDOW_IDLE;
	win->describe = NULL;
	wake_waiting();
	spin_unlock(&xnem_large_lock);
	xnem_workers_kick_all();
}

static bool wanted(const struct xnem_window *win, u32 seq)
{
	return (win->state == XNEM_WINDOW_WANTED || win->state == XNEM_WINDOW_STALE) &&
	       win->seq == seq;
}

/* XNEM_OP_DESCRIBE: answered now, or when its window is let go of. */
void xnem_window_describe(struct xnem_job *job, const struct xnem_request *req)
{
	u32 index = le32_to_cpu(req->u.describe.window);
	u32 nr = le32_to_cpu(req->u.describe.nr_pages);
	u32 seq = le32_to_cpu(req->u.describe.seq);
	struct xnem_be_queue *q = job->queue;
	const xnem_le32 *refs = req->u.describe.ref;
	enum xnem_status status = XNEM_ST_OK;
	struct xnem_be *dev = q->dev;
	struct xnem_window *win = &dev->windows[index];
	struct xnem_job *user;
	u32 i;

	if (nr && req->u.describe.indirect) {
		status = xnem_copy_descriptors(q, refs, 1);
		refs = page_address(q->worker->desc[0]);
	}
	spin_lock(&xnem_large_lock);
	if (q != &dev->queues[0] || index >= dev->nr_windows || !wanted(win, seq)) {
		spin_unlock(&xnem_large_lock);
		xnem_job_answer(job, XNEM_ST_INVALID, 0, 0, 0);
		return;
	}
	if (status == XNEM_ST_OK && nr && nr != win->nr_pages)
		status = XNEM_ST_INVALID;
	user = win->user;
	win->describe = job;
	job->window = win;
	if (!user || !nr || status != XNEM_ST_OK) {
		/* Given up, or it cannot: what waits for it tries again later. */
		win->state = XNEM_WINDOW_CLOSING;
		win->user = NULL;
		if (user) {
			user->win[user->win[1] == win] = NULL;
			list_del_init(&user->entry);
			xnem_window_release(user);
			list_add_tail(&user->entry, &waiting);
		}
		/* In the order of the ring: answered by us, now. */
		spin_unlock(&xnem_large_lock);
		xnem_job_answer(job, status, 0, 0, 0);
		xnem_window_answered(win);
		return;
	}
	for (i = 0; i < nr; i++)
		win->refs[i] = le32_to_cpu(refs[i]);
	win->state = XNEM_WINDOW_GRANTED;
	dev->windows_held++;
	atomic64_inc(&dev->shared.windows);
	if (!--user->wants) {
		user->ready = true;
		user->wait_until = 0;
		list_del_init(&user->entry);
		xnem_large_enqueue(user);
		xnem_workers_kick_all();
	}
	spin_unlock(&xnem_large_lock);
}

bool xnem_windows_pending(void)
{
	return !list_empty_careful(&waiting) || !list_empty_careful(&wanting);
}

/* End what waits too long, what is to end, or what waits for the dying. */
void xnem_windows_expire(void)
{
	struct xnem_job *job, *next;

	if (!xnem_windows_pending())
		return;
	spin_lock(&xnem_large_lock);
	list_for_each_entry_safe(job, next, &wanting, entry) {
		if (xnem_copy_dying(job)) {
			xnem_large_stop_locked(job, XNEM_ST_PEER_GONE);
		} else if (time_after(jiffies, job->want_since + WANT_TIMEOUT)) {
			/* Lets go of both, and waits with the others. */
			list_del_init(&job->entry);
			xnem_window_release(job);
			list_add_tail(&job->entry, &waiting);
		}
	}
	list_for_each_entry_safe(job, next, &waiting, entry) {
		if (xnem_copy_dying(job)) {
			xnem_large_stop_locked(job, XNEM_ST_PEER_GONE);
		} else if (time_after(jiffies, job->wait_until)) {
			xnem_large_stop_locked(job, XNEM_ST_AGAIN);
		} else {
			list_del_init(&job->entry);
			xnem_large_enqueue(job);
		}
	}
	spin_unlock(&xnem_large_lock);
}
