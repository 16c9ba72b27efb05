// SPDX-License-Identifier: GPL-2.0
/*
 * A queue: taking requests out of the submission ring, answering them on the
 * completion ring, and the event channel between.
 */
#include <linux/interrupt.h>

#include "backend.h"
#include "trace.h"

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
	WRITE_ONCE(q->dev->broke, why);
	schedule_work(&q->dev->ban_work);
}

static irqreturn_t queue_event(int irq, void *arg)
{
	struct xnem_be_queue *q = arg;

	trace_xnem_be_event(q);
	WRITE_ONCE(q->events_received, q->events_received + 1);
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
	 * this pass or before it: Linux delays a spurious channel's next event
	 * (netfront: fix TX response spurious interrupts).
	 */
	if (!q->took)
		q->stats.events_spurious++;
	xen_irq_lateeoi(q->irq, q->took ? 0 : XEN_EOI_FLAG_SPURIOUS);
	q->took = false;
}

void xnem_queue_show(struct xnem_be_queue *q)
{
	u32 from = q->cq_shown;

	if (from == q->cq_prod || READ_ONCE(xnem_leaving))
		return;
	q->cq_shown = q->cq_prod;
	if (xnem_ring_publish(&q->header->cq, from, q->cq_prod)) {
		q->stats.events_sent++;
		trace_xnem_be_notify(q);
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
	q->stats.completions++;
	if (status != XNEM_ST_OK)
		q->stats.errors[status]++;
}

void xnem_job_answer(struct xnem_job *job, enum xnem_status status, u64 bytes_done, u64 data0,
		     u64 data1)
{
	struct xnem_be_queue *q = job->queue;
	struct xnem_be_ctx *ctx = job->ctx;

	if (ctx && (job->flags & XNEM_REQ_CPAGE))
		xnem_ctx_write_cpage(ctx, job, status, bytes_done);
	answer(q, job->id, status, bytes_done, data0, data1);
	trace_xnem_be_complete(q, job->id, job->op, bytes_done, status);
	job->state = XNEM_JOB_FREE;
	job->ctx = NULL;
	list_add(&job->entry, &q->free_jobs);
	if (ctx)
		xnem_ctx_job_done(ctx, job);
}

/* How many requests' worth of work a request is, beside its bytes. */
static u32 cost_of(const struct xnem_be_queue *q, const struct xnem_request *req)
{
	switch (le16_to_cpu(req->op)) {
	case XNEM_OP_REGISTER:
		return 1 +
		       min_t(u32, le32_to_cpu(req->u.reg.nr_pages), XNEM_REGION_PAGES_MAX) / 256;
	case XNEM_OP_CLOSE_CONTEXT:
		return 1 + atomic_read(&q->dev->nr_regions) / 64 + q->inflight / 64;
	case XNEM_OP_CANCEL:
		return 1 + q->inflight / 64;
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

/* All that can be said against a copy before it begins. */
static enum xnem_status check_copy(struct xnem_job *job)
{
	struct xnem_region *src = job->src, *dst = job->dst;
	enum xnem_status status;

	if (job->flags & XNEM_REQ_BOUNDED) {
		/* An offset beyond its region is found out below. */
		if (job->src_offset <= src->length)
			job->length = min(job->length, src->length - job->src_offset);
		if (job->dst_offset <= dst->length)
			job->length = min(job->length, dst->length - job->dst_offset);
	}
	status = copy_allowed(src, XNEM_ACCESS_READ, job->tag, job->src_offset, job->length);
	if (status == XNEM_ST_OK)
		status = copy_allowed(dst, XNEM_ACCESS_WRITE, job->tag, job->dst_offset,
				      job->length);
	if (status != XNEM_ST_OK)
		return status;
	if (((job->flags & XNEM_REQ_NOTIFY_SRC) && !READ_ONCE(src->ctx->id)) ||
	    ((job->flags & XNEM_REQ_NOTIFY_DST) && !READ_ONCE(dst->ctx->id)))
		return XNEM_ST_CONTEXT;
	/* Last: a copy that is refused uses up nothing. */
	if ((src->flags & XNEM_REGION_ONCE) && test_and_set_bit(0, &src->used))
		return XNEM_ST_COOKIE;
	if ((dst->flags & XNEM_REGION_ONCE) && test_and_set_bit(0, &dst->used)) {
		if ((src->flags & XNEM_REGION_ONCE) && src != dst)
			clear_bit(0, &src->used);
		return XNEM_ST_COOKIE;
	}
	return XNEM_ST_OK;
}

static void begin_copy(struct xnem_job *job, const struct xnem_request *req)
{
	struct xnem_be_ctx *ctx = job->ctx;
	enum xnem_status status;

	if (xnem_ctx_rests(ctx)) {
		xnem_job_answer(job, XNEM_ST_AGAIN, 0, 0, 0);
		return;
	}
	job->src_offset = le64_to_cpu(req->u.copy.src_offset);
	job->dst_offset = le64_to_cpu(req->u.copy.dst_offset);
	job->length = le64_to_cpu(req->u.copy.length);
	job->immediate = le64_to_cpu(req->u.copy.immediate);
	job->done = 0;
	job->failed = XNEM_ST_OK;
	job->eagain_until = 0;
	job->since = job->queue->looked_at;
	job->src = xnem_region_use(ctx->zone, le64_to_cpu(req->u.copy.src.id),
				   le64_to_cpu(req->u.copy.src.key));
	job->dst = xnem_region_use(ctx->zone, le64_to_cpu(req->u.copy.dst.id),
				   le64_to_cpu(req->u.copy.dst.key));
	if (!job->src || !job->dst) {
		xnem_ctx_wrong(ctx);
		status = XNEM_ST_COOKIE;
	} else {
		status = check_copy(job);
	}
	if (status != XNEM_ST_OK || !job->length)
		xnem_job_end_copy(job, status);
	else if (job->length > XNEM_BE_CHUNK || xnem_job_windowed(job))
		xnem_large_add(job);
	else
		xnem_copy_add(job);
}

void xnem_job_end_copy(struct xnem_job *job, enum xnem_status status)
{
	if (status == XNEM_ST_OK && (job->flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST)))
		status = xnem_inbox_notify(job);
	if (job->src)
		xnem_region_drop(job->src);
	if (job->dst)
		xnem_region_drop(job->dst);
	xnem_job_answer(job, status, job->done, 0, 0);
}

void xnem_job_start(struct xnem_job *job, const struct xnem_request *req)
{
	struct xnem_be_ctx *ctx = job->ctx;
	enum xnem_status status = XNEM_ST_OK;
	u64 data0 = 0, data1 = 0;

	job->state = XNEM_JOB_BUSY;
	job->ordered = true;
	ctx->in_flight++;
	if (job->flags & XNEM_REQ_FENCE)
		ctx->fenced = true;

	switch (job->op) {
	case XNEM_OP_PING:
		break;
	case XNEM_OP_COPY:
		begin_copy(job, req);
		return;
	case XNEM_OP_MESSAGE:
		status = xnem_inbox_message(job, req);
		break;
	case XNEM_OP_REGISTER:
		status = xnem_region_register(ctx, req, &data0, &data1);
		break;
	case XNEM_OP_OPEN_CONTEXT:
		status = xnem_ctx_open(ctx, req);
		if (status == XNEM_ST_OK && ctx->id) {
			data0 = ctx->id;
			data1 = ctx->key;
		}
		break;
	default:
		/* xnem_check_request() lets nothing else through. */
		status = XNEM_ST_UNSUPPORTED;
		break;
	}
	xnem_job_answer(job, status, 0, data0, data1);
}

/* What fences do not hold up; true when it was one of these. */
static bool start_unordered(struct xnem_job *job, const struct xnem_request *req)
{
	struct xnem_be_ctx *ctx = job->ctx;
	enum xnem_status status;

	switch (job->op) {
	case XNEM_OP_DEREGISTER:
		status = xnem_region_deregister(ctx, le64_to_cpu(req->u.dereg.region_id), job);
		if (status != XNEM_ST_OK)
			xnem_job_answer(job, status, 0, 0, 0);
		return true;
	case XNEM_OP_CANCEL:
		xnem_job_answer(job, XNEM_ST_OK, 0,
				xnem_ctx_cancel(ctx, le32_to_cpu(req->u.cancel.id)), 0);
		return true;
	case XNEM_OP_CLOSE_CONTEXT:
		if (ctx)
			xnem_ctx_close(ctx, job);
		else
			xnem_job_answer(job, XNEM_ST_OK, 0, 0, 0);
		return true;
	case XNEM_OP_DESCRIBE:
		xnem_window_describe(job, req);
		return true;
	default:
		return false;
	}
}

static void handle(struct xnem_be_queue *q, const struct xnem_request *req)
{
	struct xnem_job *job = list_first_entry(&q->free_jobs, struct xnem_job, entry);
	u32 number = le32_to_cpu(req->context);
	enum xnem_status status;

	list_del_init(&job->entry);
	q->in_flight++;
	job->state = XNEM_JOB_BUSY;
	job->ctx = NULL;
	job->ordered = false;
	job->id = le32_to_cpu(req->id);
	job->op = le16_to_cpu(req->op);
	job->flags = le16_to_cpu(req->flags);
	job->user_data = le64_to_cpu(req->user_data);
	job->tag = le64_to_cpu(req->tag);
	q->stats.requests++;
	trace_xnem_be_take(q, job->id, job->op,
			   job->op == XNEM_OP_COPY ? le64_to_cpu(req->u.copy.length) : 0,
			   XNEM_ST_OK);

	status = xnem_check_request(req, &q->dev->limits, q->dev->features);
	/* A request that is refused has its completion page entry, too. */
	if (number < q->dev->limits.contexts && job->op != XNEM_OP_DESCRIBE)
		/* What is not there is not made to be closed: that could fail. */
		job->ctx = xnem_ctx_of(q, number,
				       status == XNEM_ST_OK && job->op != XNEM_OP_CLOSE_CONTEXT,
				       &status);
	if (job->ctx)
		job->ctx->nr_jobs++;
	if (status != XNEM_ST_OK)
		xnem_job_answer(job, status, 0, 0, 0);
	else if (!start_unordered(job, req) && !xnem_ctx_park(job, req))
		xnem_job_start(job, req);
}

bool xnem_queue_take(struct xnem_be_queue *q)
{
	struct xnem_request req XNEM_UNINITIALIZED;
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
	if (!q->jobs) {
		err = -ENOMEM;
		xenbus_dev_fatal(xdev, err, "allocating %u jobs", q->inflight);
		goto out;
	}
	INIT_LIST_HEAD(&q->free_jobs);
	INIT_LIST_HEAD(&q->contexts);
	INIT_LIST_HEAD(&q->turns);
	INIT_LIST_HEAD(&q->unpark);
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
	q->wait_bytes_max = 0;
	atomic_set(&q->event_pending, 0);

	/* A worker before the first event, which kicks it. */
	xnem_worker_assign(q);
	q->looked_at = READ_ONCE(q->worker->bytes);
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
	xnem_ctx_forget_all(q);
	/* Before what the handler uses is freed (XSA-331). */
	unbind_from_irqhandler(q->irq, q);
	q->irq = 0;
	queue_unmap(q);
}
