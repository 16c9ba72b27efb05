// SPDX-License-Identifier: GPL-2.0
/*
 * A queue: taking requests out of the submission ring, answering them on the
 * completion ring, and the event channel between.
 */
#include <linux/interrupt.h>

#include "backend.h"

/* Wrong cookies a context may present a second, and how long it rests after. */
#define WRONG_COOKIE_TOKENS 64
#define WRONG_COOKIE_REST_MS 20

/*
 * The frontend broke the protocol.  Nothing of this queue is looked at any
 * more; the device is disconnected by the ban work, as that may sleep long.
 */
static void queue_break(struct xnem_be_queue *q, const char *why)
{
	if (q->broken)
		return;
	q->broken = true;
	q->dev->banned = true;
	dev_err_ratelimited(&q->dev->xdev->dev, "frontend broke the protocol: %s\n", why);
	schedule_work(&q->dev->ban_work);
}

static irqreturn_t queue_event(int irq, void *arg)
{
	struct xnem_be_queue *q = arg;

	WRITE_ONCE(q->dev->events_received, q->dev->events_received + 1);
	atomic_set(&q->event_pending, 1);
	xnem_worker_kick(q->worker);
	return IRQ_HANDLED;
}

void xnem_queue_eoi(struct xnem_be_queue *q)
{
	if (!atomic_read(&q->event_pending))
		return;
	atomic_set(&q->event_pending, 0);
	/*
	 * Spurious only when nothing at all was taken since the last EOI, in
	 * this pass or before it: Linux delays a spurious channel's next event.
	 */
	if (!q->took)
		q->dev->stats.events_spurious++;
	xen_irq_lateeoi(q->irq, q->took ? 0 : XEN_EOI_FLAG_SPURIOUS);
	q->took = false;
}

void xnem_queue_show(struct xnem_be_queue *q)
{
	u32 from = q->cq_shown;

	if (from == q->cq_prod)
		return;
	q->cq_shown = q->cq_prod;
	if (xnem_ring_publish(&q->header->cq, from, q->cq_prod)) {
		q->dev->stats.events_sent++;
		notify_remote_via_irq(q->irq);
	}
}

static void answer(struct xnem_be_queue *q, u32 id, enum xnem_status status, u64 bytes_done,
		   u64 data0, u64 data1)
{
	/* Whole, zeros included: nothing of the backend's stack gets out. */
	struct xnem_completion c = {
		.id = cpu_to_le32(id),
		.status = cpu_to_le16(status),
		.bytes_done = cpu_to_le64(bytes_done),
		.data = { cpu_to_le64(data0), cpu_to_le64(data1) },
	};

	q->cq[q->cq_prod & (q->cq_size - 1)] = c;
	q->cq_prod++;
	q->in_flight--;
	q->dev->stats.completions++;
	if (status != XNEM_ST_OK)
		q->dev->stats.errors[status]++;
}

/* The entry comes after the data and before the completion. */
static void write_cpage(struct xnem_be_queue *q, const struct xnem_job *job,
			enum xnem_status status, u64 bytes_done)
{
	struct xnem_cpage *cpage = xa_load(&q->dev->cpages, job->context);
	struct xnem_cpage_entry *entry;

	/* Without a page there is the completion alone. */
	if (!cpage)
		return;
	entry = &cpage->entries[cpage->prod++ & (XNEM_CPAGE_ENTRIES - 1)];
	entry->user_data = cpu_to_le64(job->user_data);
	entry->bytes_done = cpu_to_le64(bytes_done);
	entry->status = cpu_to_le32(status);
	entry->kind = cpu_to_le32(XNEM_CPAGE_COMPLETION);
	entry->pad = 0;
	xnem_wmb(); /* pairs with the reader's load-acquire of seq */
	xnem_store32(&entry->seq, cpage->prod);
	q->dev->stats.cpage_entries++;
}

static enum xnem_status open_context(struct xnem_be_queue *q, u32 context, u32 ref)
{
	struct xnem_be *dev = q->dev;
	struct xnem_cpage *cpage;
	grant_ref_t gref = ref;
	void *vaddr;

	if (xa_load(&dev->cpages, context))
		return XNEM_ST_CONTEXT;
	cpage = kzalloc(sizeof(*cpage), GFP_KERNEL);
	if (!cpage)
		return XNEM_ST_NOMEM;
	/* When this fails it closes the device, too. */
	if (xenbus_map_ring_valloc(dev->xdev, &gref, 1, &vaddr)) {
		kfree(cpage);
		return XNEM_ST_FAULT;
	}
	cpage->entries = vaddr;
	if (xa_err(xa_store(&dev->cpages, context, cpage, GFP_KERNEL))) {
		xenbus_unmap_ring_vfree(dev->xdev, vaddr);
		kfree(cpage);
		return XNEM_ST_NOMEM;
	}
	return XNEM_ST_OK;
}

static void cpage_unmap(struct xnem_be *dev, u32 context)
{
	struct xnem_cpage *cpage = xa_erase(&dev->cpages, context);

	if (!cpage)
		return;
	xenbus_unmap_ring_vfree(dev->xdev, cpage->entries);
	kfree(cpage);
}

void xnem_cpage_close(struct xnem_be *dev, u32 context, bool all)
{
	struct xnem_cpage *cpage;
	unsigned long i;

	if (!all)
		cpage_unmap(dev, context);
	else
		xa_for_each(&dev->cpages, i, cpage)
			cpage_unmap(dev, i);
}

void xnem_job_answer(struct xnem_job *job, enum xnem_status status, u64 bytes_done, u64 data0,
		     u64 data1)
{
	struct xnem_be_queue *q = job->queue;

	if (job->flags & XNEM_REQ_CPAGE)
		write_cpage(q, job, status, bytes_done);
	answer(q, job->id, status, bytes_done, data0, data1);
	list_add(&job->entry, &q->free_jobs);
}

/*
 * A wrong cookie costs its context a token.  Without tokens its copies rest
 * (try again later): guessing keys is slow, and nobody else pays for it.
 */
static void wrong_cookie(struct xnem_be_queue *q, u32 context)
{
	struct xnem_guesses *g = &q->guesses[context];
	unsigned long passed = jiffies - g->since;
	u32 refill = passed > HZ ? WRONG_COOKIE_TOKENS : passed * WRONG_COOKIE_TOKENS / HZ;

	if (refill) {
		g->spent -= min(g->spent, refill);
		g->since = jiffies;
	}
	if (g->spent < WRONG_COOKIE_TOKENS) {
		g->spent++;
		return;
	}
	q->dev->stats.throttled++;
	g->rest_until = (jiffies + msecs_to_jiffies(WRONG_COOKIE_REST_MS)) | 1;
}

static bool rests(struct xnem_be_queue *q, u32 context)
{
	struct xnem_guesses *g = &q->guesses[context];

	if (g->rest_until && time_after_eq(jiffies, g->rest_until))
		g->rest_until = 0;
	return g->rest_until;
}

/* How many requests' worth of work a request is, beside its bytes. */
static u32 cost_of(const struct xnem_be_queue *q, const struct xnem_request *req)
{
	switch (le16_to_cpu(req->op)) {
	case XNEM_OP_REGISTER:
		return 1 +
		       min_t(u32, le32_to_cpu(req->u.reg.nr_pages), XNEM_REGION_PAGES_MAX) / 256;
	case XNEM_OP_CLOSE_CONTEXT:
		return 1 + q->dev->nr_regions / 64;
	default:
		return 1;
	}
}

static enum xnem_status copy_allowed(const struct xnem_region *r, u32 access, u64 tag, u64 offset,
				     u64 length)
{
	if (!(r->access & access))
		return XNEM_ST_ACCESS;
	if (!(r->flags & XNEM_REGION_ANY_TAG) && r->tag != tag)
		return XNEM_ST_TAG;
	if (!xnem_range_ok(offset, length, r->length))
		return XNEM_ST_RANGE;
	return XNEM_ST_OK;
}

static void begin_copy(struct xnem_be_queue *q, struct xnem_job *job,
		       const struct xnem_request *req)
{
	u64 src_offset = le64_to_cpu(req->u.copy.src_offset);
	u64 dst_offset = le64_to_cpu(req->u.copy.dst_offset);
	u64 length = le64_to_cpu(req->u.copy.length);
	u64 tag = le64_to_cpu(req->tag);
	struct xnem_zone *zone = q->dev->zone;
	struct xnem_region *src, *dst;
	enum xnem_status status;

	if (rests(q, job->context)) {
		xnem_job_answer(job, XNEM_ST_AGAIN, 0, 0, 0);
		return;
	}
	src = xnem_region_use(zone, le64_to_cpu(req->u.copy.src.id),
			      le64_to_cpu(req->u.copy.src.key));
	dst = xnem_region_use(zone, le64_to_cpu(req->u.copy.dst.id),
			      le64_to_cpu(req->u.copy.dst.key));
	if (!src || !dst) {
		wrong_cookie(q, job->context);
		status = XNEM_ST_COOKIE;
		goto out;
	}
	status = copy_allowed(src, XNEM_ACCESS_READ, tag, src_offset, length);
	if (status == XNEM_ST_OK)
		status = copy_allowed(dst, XNEM_ACCESS_WRITE, tag, dst_offset, length);
	if (status != XNEM_ST_OK || !length)
		goto out;

	job->src = src;
	job->dst = dst;
	job->done = 0;
	job->failed = XNEM_ST_OK;
	job->runs_pending = 0;
	job->eagain_until = 0;
	job->src_pos = src->offset + src_offset;
	job->dst_pos = dst->offset + dst_offset;
	job->length = length;
	xnem_walk_init(&job->walk, src->refs, job->src_pos, dst->refs, job->dst_pos, length);
	xnem_job_queue_copy(job);
	return;

out:
	if (src)
		xnem_region_drop(src);
	if (dst)
		xnem_region_drop(dst);
	xnem_job_answer(job, status, 0, 0, 0);
}

void xnem_job_queue_copy(struct xnem_job *job)
{
	struct xnem_be_queue *q = job->queue;

	list_add_tail(&job->entry, &q->copies);
	if (list_empty(&q->turn))
		list_add_tail(&q->turn, &q->worker->active);
}

void xnem_job_end_copy(struct xnem_job *job, enum xnem_status status)
{
	struct xnem_be_queue *q = job->queue;

	list_del_init(&job->entry);
	if (list_empty(&q->copies))
		list_del_init(&q->turn);
	xnem_region_drop(job->src);
	xnem_region_drop(job->dst);
	xnem_job_answer(job, status, job->done, 0, 0);
}

void xnem_queue_cancel(struct xnem_be_queue *q, u32 context, bool all)
{
	struct xnem_job *job, *next;

	list_for_each_entry_safe(job, next, &q->copies, entry)
		if (all || job->context == context)
			xnem_job_end_copy(job, XNEM_ST_CANCELLED);
}

static void handle(struct xnem_be_queue *q, const struct xnem_request *req)
{
	struct xnem_job *job = list_first_entry(&q->free_jobs, struct xnem_job, entry);
	enum xnem_status status;
	u64 id = 0, key = 0;

	list_del_init(&job->entry);
	q->in_flight++;
	job->id = le32_to_cpu(req->id);
	job->context = le32_to_cpu(req->context);
	job->op = le16_to_cpu(req->op);
	job->flags = le16_to_cpu(req->flags);
	job->user_data = le64_to_cpu(req->user_data);
	q->dev->stats.requests++;

	status = xnem_check_request(req, &q->dev->limits, q->dev->features);
	if (status != XNEM_ST_OK)
		goto answer;

	switch (job->op) {
	case XNEM_OP_PING:
		break;
	case XNEM_OP_COPY:
		begin_copy(q, job, req);
		return;
	case XNEM_OP_REGISTER:
		status = xnem_region_register(q, job->context, req, &id, &key);
		break;
	case XNEM_OP_DEREGISTER:
		status = xnem_region_deregister(q, job->context,
						le64_to_cpu(req->u.dereg.region_id), job);
		if (status == XNEM_ST_OK)
			return;
		break;
	case XNEM_OP_OPEN_CONTEXT:
		status = open_context(q, job->context, le32_to_cpu(req->u.open.cpage_ref));
		break;
	case XNEM_OP_CLOSE_CONTEXT:
		/* Copies first: each gets its answer before the context's. */
		xnem_queue_cancel(q, job->context, false);
		xnem_cpage_close(q->dev, job->context, false);
		xnem_region_close_context(q, job->context, job);
		return;
	default:
		/* xnem_check_request() lets nothing else through. */
		status = XNEM_ST_UNSUPPORTED;
		break;
	}
answer:
	xnem_job_answer(job, status, 0, id, key);
}

bool xnem_queue_take(struct xnem_be_queue *q)
{
	struct xnem_request req;
	u32 prod, avail, unread, room, cost, this, n;

	if (q->broken)
		return false;
	prod = xnem_ring_look(&q->header->sq);
	avail = xnem_ring_used(prod, q->sq_cons);
	if (!avail)
		return false;
	if (avail > q->sq_size) {
		queue_break(q, "submission index beyond the ring");
		return true;
	}
	/*
	 * Read after prod: a frontend publishes what it has consumed before it
	 * posts more.  Each request, answered or not, needs a completion slot.
	 */
	unread = xnem_ring_used(q->cq_prod, xnem_load32(&q->header->cq.cons));
	if (unread > q->cq_size) {
		queue_break(q, "completion index beyond the ring");
		return true;
	}
	room = q->inflight > unread + q->in_flight ? q->inflight - unread - q->in_flight : 0;

	for (n = 0, cost = 0; n < avail && cost < XNEM_BE_TAKE; n++) {
		if (n == room) {
			queue_break(q, "more requests in flight than negotiated");
			break;
		}
		/* Copied once; only the copy is looked at. */
		req = q->sq[q->sq_cons & (q->sq_size - 1)];
		barrier();
		q->sq_cons++;
		this = cost_of(q, &req);
		cost += this;
		q->deficit = max_t(s64, q->deficit - (s64)this * XNEM_BE_REQUEST_COST,
				   -4LL * XNEM_BE_QUANTUM);
		handle(q, &req);
	}
	if (n) {
		q->took = true;
		xnem_ring_release(&q->header->sq, q->sq_cons);
	}
	return true;
}

static void queue_unmap(struct xnem_be_queue *q)
{
	struct xenbus_device *xdev = q->dev->xdev;

	if (q->cq)
		xenbus_unmap_ring_vfree(xdev, q->cq);
	if (q->sq)
		xenbus_unmap_ring_vfree(xdev, q->sq);
	if (q->header)
		xenbus_unmap_ring_vfree(xdev, q->header);
	q->cq = NULL;
	q->sq = NULL;
	q->header = NULL;
	kvfree(q->jobs);
	q->jobs = NULL;
	kvfree(q->guesses);
	q->guesses = NULL;
}

static int read_refs(struct xnem_be_queue *q, const char *dir, const char *node, grant_ref_t *refs,
		     u32 *count)
{
	struct xenbus_device *xdev = q->dev->xdev;
	char *s = xenbus_read(XBT_NIL, dir, node, NULL);
	int err = 0;

	if (IS_ERR(s)) {
		err = PTR_ERR(s);
		xenbus_dev_fatal(xdev, err, "reading %s/%s", dir, node);
		return err;
	}
	if (!xnem_parse_refs(s, refs, 1u << XNEM_RING_ORDER_MAX, count)) {
		err = -EINVAL;
		xenbus_dev_fatal(xdev, err, "%s/%s is not a list of references", dir, node);
	}
	kfree(s);
	return err;
}

static int map_ring(struct xnem_be_queue *q, const char *dir, const char *node, u32 max_order,
		    void **vaddr, u32 *pages)
{
	grant_ref_t refs[1u << XNEM_RING_ORDER_MAX];
	int err = read_refs(q, dir, node, refs, pages);

	if (err)
		return err;
	if (*pages > 1u << max_order) {
		xenbus_dev_fatal(q->dev->xdev, -EINVAL, "%s/%s: ring too large", dir, node);
		return -EINVAL;
	}
	/* Tells the frontend itself when it fails. */
	return xenbus_map_ring_valloc(q->dev->xdev, refs, *pages, vaddr);
}

int xnem_queue_connect(struct xnem_be_queue *q, unsigned int index)
{
	struct xenbus_device *xdev = q->dev->xdev;
	char *dir = kasprintf(GFP_KERNEL, "%s/queue-%u", xdev->otherend, index);
	u32 pages, port, i;
	char *s;
	int err;

	if (!dir)
		return -ENOMEM;

	err = map_ring(q, dir, "header-ref", 0, (void **)&q->header, &pages);
	if (err)
		goto out;
	err = map_ring(q, dir, "sq-refs", q->dev->limits.sq_order, (void **)&q->sq, &pages);
	if (err)
		goto out;
	q->sq_size = pages * XNEM_SQ_SLOTS_PER_PAGE;
	err = map_ring(q, dir, "cq-refs", q->dev->limits.cq_order, (void **)&q->cq, &pages);
	if (err)
		goto out;
	q->cq_size = pages * XNEM_CQ_SLOTS_PER_PAGE;
	q->inflight = min(q->cq_size, q->dev->limits.inflight);

	s = xenbus_read(XBT_NIL, dir, "event-channel", NULL);
	if (IS_ERR(s) || !xnem_parse_u32(s, &port)) {
		err = IS_ERR(s) ? PTR_ERR(s) : -EINVAL;
		if (!IS_ERR(s))
			kfree(s);
		xenbus_dev_fatal(xdev, err, "reading %s/event-channel", dir);
		goto out;
	}
	kfree(s);

	q->jobs = kvcalloc(q->inflight, sizeof(*q->jobs), GFP_KERNEL);
	q->guesses = kvcalloc(q->dev->limits.contexts, sizeof(*q->guesses), GFP_KERNEL);
	if (!q->jobs || !q->guesses) {
		err = -ENOMEM;
		xenbus_dev_fatal(xdev, err, "allocating %u jobs", q->inflight);
		goto out;
	}
	INIT_LIST_HEAD(&q->free_jobs);
	INIT_LIST_HEAD(&q->copies);
	INIT_LIST_HEAD(&q->turn);
	for (i = 0; i < q->inflight; i++) {
		q->jobs[i].queue = q;
		list_add_tail(&q->jobs[i].entry, &q->free_jobs);
	}
	q->sq_cons = 0;
	q->cq_prod = 0;
	q->cq_shown = 0;
	q->in_flight = 0;
	q->deficit = 0;
	q->took = false;
	q->broken = false;
	atomic_set(&q->event_pending, 0);

	/* A worker before the first event, which kicks it. */
	xnem_worker_assign(q);
	err = xnem_bind_interdomain(xdev, port, queue_event, "xnem-backend", q);
	if (err < 0) {
		xnem_worker_unassign(q);
		xenbus_dev_fatal(xdev, err, "binding event channel %u", port);
		goto out;
	}
	q->irq = err;
	err = 0;
	xnem_worker_serve(q);
out:
	if (err)
		queue_unmap(q);
	kfree(dir);
	return err;
}

void xnem_queue_disconnect(struct xnem_be_queue *q)
{
	if (!q->header)
		return;
	/* No worker touches the queue after this; its jobs are gone. */
	xnem_worker_remove(q);
	xnem_cpage_close(q->dev, 0, true);
	/* Before what the handler uses is freed (XSA-331). */
	unbind_from_irqhandler(q->irq, q);
	q->irq = 0;
	queue_unmap(q);
}
