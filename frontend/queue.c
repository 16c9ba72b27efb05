// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: posting requests, taking completions, the event channel.
 *
 * The backend is not believed: a completion counts only when it names a
 * request in flight and fits it; anything else stops the queue for good.
 */
#include <linux/interrupt.h>

#include "frontend.h"

int xnem_status_to_errno(u32 status)
{
	switch (status) {
	case XNEM_ST_OK:
		return 0;
	case XNEM_ST_INVALID:
		return -EINVAL;
	case XNEM_ST_UNSUPPORTED:
		return -EOPNOTSUPP;
	case XNEM_ST_COOKIE:
		return -ENOENT;
	case XNEM_ST_ACCESS:
		return -EACCES;
	case XNEM_ST_TAG:
		return -EPERM;
	case XNEM_ST_RANGE:
		return -ERANGE;
	case XNEM_ST_LIMIT:
		return -EMFILE;
	case XNEM_ST_NOMEM:
		return -ENOMEM;
	case XNEM_ST_FAULT:
		return -EFAULT;
	case XNEM_ST_PEER_GONE:
		return -EHOSTDOWN;
	case XNEM_ST_CANCELLED:
		return -ECANCELED;
	case XNEM_ST_AGAIN:
		return -EAGAIN;
	default:
		return -EPROTO;
	}
}

int xnem_queue_state(const struct xnem_fe *fe)
{
	if (READ_ONCE(fe->removed))
		return -ENODEV;
	return READ_ONCE(fe->phase) == XNEM_FE_UP ? 0 : -ENOTCONN;
}

int xnem_queue_post(struct xnem_fe *fe, struct xnem_ctx *ctx, struct xnem_region *region,
		    struct xnem_request *req, bool control)
{
	struct xnem_fe_queue *q = &fe->q;
	struct xnem_rq *rq;
	int err;
	u32 id;

	lockdep_assert_held(&fe->lock);
	err = xnem_queue_state(fe);
	if (err)
		return err;
	if (q->nr_free <= (control ? 0 : XNEM_FE_CONTROL_RESERVE))
		return -EAGAIN;
	/* There are no more requests than slots, so this is a slow backend. */
	if (!xnem_ring_space(&q->header->sq, q->sq_prod, q->sq_size))
		return -EAGAIN;

	id = q->free_ids[--q->nr_free];
	rq = &q->rqs[id];
	rq->busy = true;
	rq->op = le16_to_cpu(req->op);
	rq->uses_desc = false;
	rq->ctx = ctx;
	rq->region = region;
	rq->user_data = le64_to_cpu(req->user_data);
	rq->length = rq->op == XNEM_OP_COPY ? le64_to_cpu(req->u.copy.length) : 0;
	if (rq->op == XNEM_OP_REGISTER)
		rq->uses_desc = req->u.reg.flags & cpu_to_le32(XNEM_REGION_INDIRECT);

	req->id = cpu_to_le32(id);
	req->context = cpu_to_le32(ctx->number);
	req->tag = cpu_to_le64(ctx->tag);
	q->sq[q->sq_prod & (q->sq_size - 1)] = *req;
	q->sq_prod++;
	ctx->life = fe->life;
	xnem_ctx_get(ctx);
	xnem_stat_inc(fe, requests);
	return 0;
}

void xnem_queue_flush(struct xnem_fe *fe)
{
	struct xnem_fe_queue *q = &fe->q;
	u32 from = q->sq_shown;

	lockdep_assert_held(&fe->lock);
	if (fe->phase != XNEM_FE_UP || from == q->sq_prod)
		return;
	q->sq_shown = q->sq_prod;
	if (xnem_ring_publish(&q->header->sq, from, q->sq_prod)) {
		xnem_stat_inc(fe, events_sent);
		notify_remote_via_irq(q->irq);
	}
}

/* What a request's end means, by its operation. */
static void finish(struct xnem_fe *fe, struct xnem_rq *rq, int error, u64 bytes_done, u64 data0,
		   u64 data1)
{
	struct xnem_ctx *ctx = rq->ctx;

	switch (rq->op) {
	case XNEM_OP_PING:
	case XNEM_OP_COPY:
		xnem_stat_add(fe, bytes, bytes_done);
		xnem_ctx_done(ctx, rq->user_data, bytes_done, error);
		break;
	case XNEM_OP_REGISTER:
		if (rq->uses_desc) {
			fe->q.desc_busy = false;
			wake_up(&fe->desc_wait);
		}
		xnem_region_registered(rq->region, error, data0, data1);
		break;
	case XNEM_OP_DEREGISTER:
		xnem_region_ended(rq->region);
		break;
	case XNEM_OP_CLOSE_CONTEXT:
		xnem_ctx_ended(ctx);
		break;
	}
	rq->busy = false;
	rq->ctx = NULL;
	rq->region = NULL;
	xnem_ctx_put(ctx);
}

static void queue_break(struct xnem_fe *fe, const char *why)
{
	if (fe->broken)
		return;
	fe->broken = true;
	xnem_stat_inc(fe, error_protocol);
	dev_err_ratelimited(&fe->xdev->dev, "backend broke the protocol: %s\n", why);
	/* Disconnecting may sleep. */
	schedule_work(&fe->break_work);
}

static void take(struct xnem_fe *fe, const struct xnem_completion *c)
{
	struct xnem_fe_queue *q = &fe->q;
	u32 id = le32_to_cpu(c->id);
	u32 status = le16_to_cpu(c->status);
	struct xnem_rq *rq;

	if (id >= q->nr_rqs || !q->rqs[id].busy) {
		queue_break(fe, "it answers what was not asked");
		return;
	}
	rq = &q->rqs[id];
	if (!xnem_check_completion(c, rq->op, rq->length)) {
		queue_break(fe, "an answer does not fit its request");
		return;
	}
	/* The end of a region or context is not something it can refuse. */
	if (status != XNEM_ST_OK &&
	    (rq->op == XNEM_OP_DEREGISTER || rq->op == XNEM_OP_CLOSE_CONTEXT)) {
		queue_break(fe, "it refuses to let go");
		return;
	}
	xnem_stat_inc(fe, completions);
	if (status != XNEM_ST_OK)
		xnem_stat_inc(fe, error_status);
	finish(fe, rq, xnem_status_to_errno(status), le64_to_cpu(c->bytes_done),
	       le64_to_cpu(c->data[0]), le64_to_cpu(c->data[1]));
	q->free_ids[q->nr_free++] = id;
}

static irqreturn_t queue_event(int irq, void *arg)
{
	struct xnem_fe *fe = arg;
	struct xnem_fe_queue *q = &fe->q;
	struct xnem_completion c;
	bool took = false;
	u32 prod;

	spin_lock(&fe->lock);
	xnem_stat_inc(fe, events_received);
	/*
	 * Bounded: each round takes a request in flight, or breaks the queue,
	 * and what is posted meanwhile (ends of regions nobody waits for) is
	 * not shown to the backend before the end.
	 */
	while (!fe->broken) {
		prod = xnem_ring_look(&q->header->cq);
		if (prod == q->cq_cons) {
			if (xnem_ring_arm(&q->header->cq, q->cq_cons))
				break;
			continue;
		}
		if (xnem_ring_used(prod, q->cq_cons) > q->cq_size) {
			queue_break(fe, "completion index beyond the ring");
			break;
		}
		while (q->cq_cons != prod && !fe->broken) {
			/* Copied once; only the copy is looked at. */
			c = q->cq[q->cq_cons & (q->cq_size - 1)];
			barrier();
			q->cq_cons++;
			take(fe, &c);
		}
		took = true;
		xnem_ring_release(&q->header->cq, q->cq_cons);
	}
	xnem_queue_flush(fe);
	if (took && (!list_empty(&fe->pending) || !list_empty(&fe->pending_ctx)))
		xnem_reap_now(fe);
	spin_unlock(&fe->lock);

	/* Nobody but this handler consumes from the ring. */
	if (!took)
		xnem_stat_inc(fe, events_spurious);
	xen_irq_lateeoi(irq, took ? 0 : XEN_EOI_FLAG_SPURIOUS);
	return IRQ_HANDLED;
}

static void queue_free(struct xnem_fe *fe)
{
	struct xnem_fe_queue *q = &fe->q;
	u32 i;

	for (i = 0; i < q->nr_desc; i++)
		xnem_teardown_ring(&q->desc[i], 1, &q->desc_ref[i]);
	q->nr_desc = 0;
	if (q->cq)
		xnem_teardown_ring((void **)&q->cq, q->cq_pages, q->cq_refs);
	if (q->sq)
		xnem_teardown_ring((void **)&q->sq, q->sq_pages, q->sq_refs);
	if (q->header)
		xnem_teardown_ring((void **)&q->header, 1, &q->header_ref);
	kvfree(q->rqs);
	q->rqs = NULL;
	kvfree(q->free_ids);
	q->free_ids = NULL;
}

/* A ring of at most @order; smaller when memory is fragmented. */
static int setup_ring(struct xnem_fe *fe, void **vaddr, u32 order, grant_ref_t *refs, u32 *pages)
{
	int err;

	do {
		*pages = 1u << order;
		err = xnem_setup_ring(fe->xdev, vaddr, *pages, refs);
	} while (err == -ENOMEM && order--);
	return err;
}

int xnem_queue_setup(struct xnem_fe *fe)
{
	struct xnem_fe_queue *q = &fe->q;
	evtchn_port_t port;
	u32 cq_order, i;
	int err;

	err = setup_ring(fe, (void **)&q->header, 0, &q->header_ref, &i);
	if (err)
		goto fail;
	err = setup_ring(fe, (void **)&q->sq, fe->limits.sq_order, q->sq_refs, &q->sq_pages);
	if (err)
		goto fail;
	q->sq_size = q->sq_pages * XNEM_SQ_SLOTS_PER_PAGE;
	/* As many completion slots as submission slots, if may be. */
	cq_order = min_t(u32, fe->limits.cq_order,
			 ilog2(DIV_ROUND_UP(q->sq_size, XNEM_CQ_SLOTS_PER_PAGE)));
	err = setup_ring(fe, (void **)&q->cq, cq_order, q->cq_refs, &q->cq_pages);
	if (err)
		goto fail;
	q->cq_size = q->cq_pages * XNEM_CQ_SLOTS_PER_PAGE;
	for (i = 0; i < XNEM_INLINE_REFS; i++) {
		err = xnem_setup_ring(fe->xdev, &q->desc[i], 1, &q->desc_ref[i]);
		if (err)
			goto fail;
		q->nr_desc = i + 1;
	}

	/* Never more in flight than submission slots: the ring cannot be full. */
	q->nr_rqs = min3(q->sq_size, q->cq_size, fe->limits.inflight);
	q->rqs = kvcalloc(q->nr_rqs, sizeof(*q->rqs), GFP_KERNEL);
	q->free_ids = kvmalloc_array(q->nr_rqs, sizeof(*q->free_ids), GFP_KERNEL);
	if (!q->rqs || !q->free_ids) {
		err = -ENOMEM;
		goto fail;
	}
	for (i = 0; i < q->nr_rqs; i++)
		q->free_ids[i] = q->nr_rqs - 1 - i;
	q->nr_free = q->nr_rqs;
	fe->ctx_quota = clamp_t(u32, q->nr_rqs / 4, 1, XNEM_FE_DONE);
	q->sq_prod = 0;
	q->sq_shown = 0;
	q->cq_cons = 0;
	q->desc_busy = false;
	xnem_store32(&q->header->sq.event, 1);
	xnem_store32(&q->header->cq.event, 1);

	err = xenbus_alloc_evtchn(fe->xdev, &port);
	if (err)
		goto fail;
	err = bind_evtchn_to_irqhandler_lateeoi(port, queue_event, 0, fe->name, fe);
	if (err < 0) {
		xenbus_free_evtchn(fe->xdev, port);
		goto fail;
	}
	q->irq = err;
	return port;

fail:
	queue_free(fe);
	return err;
}

void xnem_queue_teardown(struct xnem_fe *fe)
{
	struct xnem_fe_queue *q = &fe->q;
	u32 i;

	if (!q->header)
		return;
	spin_lock_irq(&fe->lock);
	fe->phase = XNEM_FE_DOWN;
	spin_unlock_irq(&fe->lock);
	/* Closes the event channel; waits for the handler. */
	unbind_from_irqhandler(q->irq, fe);
	q->irq = 0;

	spin_lock_irq(&fe->lock);
	for (i = 0; i < q->nr_rqs; i++) {
		if (!q->rqs[i].busy)
			continue;
		xnem_stat_inc(fe, error_disconnect);
		finish(fe, &q->rqs[i], -ENOTCONN, 0, 0, 0);
	}
	xnem_regions_orphan(fe);
	spin_unlock_irq(&fe->lock);
	wake_up_all(&fe->desc_wait);
	queue_free(fe);
	xnem_reap_now(fe);
}
