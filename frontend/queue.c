// SPDX-License-Identifier: GPL-2.0
/*
 * The queue: posting requests, taking completions, the event channel.
 *
 * The backend is not believed: a completion counts only when it names a
 * request in flight and fits it; anything else stops the queue for good.
 */
#include <linux/bitops.h>
#include <linux/interrupt.h>

#include "frontend.h"
#include "trace.h"
#include "xnem_status.h"

int xnem_queue_state(const struct xnem_fe *fe)
{
	if (READ_ONCE(fe->removed))
		return -ENODEV;
	return READ_ONCE(fe->phase) == XNEM_FE_UP && !READ_ONCE(fe->closing) ? 0 : -ENOTCONN;
}

static bool is_end(u16 op)
{
	return op == XNEM_OP_DEREGISTER || op == XNEM_OP_CLOSE_CONTEXT || op == XNEM_OP_DESCRIBE;
}

int xnem_queue_post(struct xnem_fe *fe, struct xnem_ctx *ctx, struct xnem_region *region,
		    struct xnem_request *req, bool control)
{
	struct xnem_fe_queue *q;
	struct xnem_rq *rq;
	int err;
	u32 id;

	lockdep_assert_held(&fe->lock);
	/*
	 * Ends are told to the backend for as long as the rings are up: what it
	 * has not let go of must not be revoked behind its back.
	 */
	if (!is_end(le16_to_cpu(req->op)) || fe->phase != XNEM_FE_UP) {
		err = xnem_queue_state(fe);
		if (err)
			return err;
	}
	q = ctx ? xnem_ctx_queue(ctx) : &fe->queues[0];
	if (q->nr_free <= (control ? 0 : min(XNEM_FE_CONTROL_RESERVE, (int)q->nr_rqs / 4)))
		return -EAGAIN;
	if (xnem_ring_used(q->sq_prod, xnem_load32(&q->header->sq.cons)) > q->sq_size) {
		xnem_queue_break(fe, "submission index beyond the ring");
		return -EAGAIN; /* the disconnect ends it */
	}
	/* There are no more requests than slots, so this is a slow backend. */
	if (!xnem_ring_space(&q->header->sq, q->sq_prod, q->sq_size))
		return -EAGAIN;

	id = q->free_ids[--q->nr_free];
	rq = &q->rqs[id];
	rq->busy = true;
	rq->op = le16_to_cpu(req->op);
	rq->flags = le16_to_cpu(req->flags);
	rq->uses_desc = false;
	rq->cancelled = false;
	rq->ctx = ctx;
	rq->region = region;
	rq->use[0] = NULL;
	rq->use[1] = NULL;
	if (region)
		region->posted = true;
	rq->user_data = le64_to_cpu(req->user_data);
	rq->length = rq->op == XNEM_OP_COPY ? le64_to_cpu(req->u.copy.length) : 0;
	if (rq->op == XNEM_OP_REGISTER)
		rq->uses_desc = req->u.reg.flags &
				cpu_to_le32(XNEM_REGION_INDIRECT | XNEM_REGION_SEGMENTS);

	req->id = cpu_to_le32(id);
	req->context = cpu_to_le32(ctx ? ctx->number : 0);
	req->tag = cpu_to_le64(ctx ? ctx->tag : 0);
	q->sq[q->sq_prod & (q->sq_size - 1)] = *req;
	q->sq_prod++;
	trace_xnem_fe_post(q, id, rq->op, rq->length, 0);
	if (!(rq->flags & XNEM_REQ_CPAGE))
		xnem_queue_want_events(q);
	if (ctx) {
		ctx->life = fe->life;
		ctx->nr_requests++;
		xnem_ctx_get(ctx);
	}
	if (rq->op == XNEM_OP_MESSAGE)
		xnem_stat_inc(fe, messages);
	xnem_stat_inc(fe, requests);
	return 0;
}

static void drain(struct xnem_fe_queue *q);

static void show(struct xnem_fe_queue *q)
{
	u32 from = q->sq_shown;

	if (from == q->sq_prod)
		return;
	q->sq_shown = q->sq_prod;
	if (xnem_ring_publish(&q->header->sq, from, q->sq_prod)) {
		xnem_stat_inc(q->fe, events_sent);
		trace_xnem_fe_notify(q);
		notify_remote_via_irq(q->irq);
	}
}

static void flush(struct xnem_fe_queue *q)
{
	while (q->sq_shown != q->sq_prod || q->arm) {
		show(q);
		/* Somebody began to want events: what is there already makes none. */
		if (q->arm)
			drain(q);
	}
}

void xnem_queue_flush(struct xnem_fe *fe)
{
	u32 i;

	lockdep_assert_held(&fe->lock);
	if (fe->phase != XNEM_FE_UP)
		return;
	for (i = 0; i < fe->nr_queues; i++)
		flush(&fe->queues[i]);
}

void xnem_queue_want_events(struct xnem_fe_queue *q)
{
	lockdep_assert_held(&q->fe->lock);
	if (!q->want_events++)
		q->arm = true;
}

void xnem_queue_unwant_events(struct xnem_fe_queue *q)
{
	lockdep_assert_held(&q->fe->lock);
	q->want_events--;
}

void xnem_queue_poll(struct xnem_ctx *ctx)
{
	struct xnem_fe_queue *q = xnem_ctx_queue(ctx);

	lockdep_assert_held(&q->fe->lock);
	/* With events wanted the handler does it. */
	if (q->fe->phase == XNEM_FE_UP && !q->want_events)
		drain(q);
}

/*
 * Take the bits of contexts that something has come for, each once: however
 * often a backend sets them, this ends.
 */
static void attention_take(struct xnem_fe_queue *q)
{
	struct xnem_attention *attention = &q->header->attention;
	struct xnem_fe *fe = q->fe;
	struct xnem_ctx *ctx;
	unsigned long bits;
	u32 i;

	if (!(fe->features & (XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY)))
		return;
	for (i = 0; i < DIV_ROUND_UP(fe->limits.contexts, 32); i++) {
		if (!READ_ONCE(attention->contexts[i]))
			continue;
		/* Whole barriers: what the bit says is looked at after it. */
		bits = le32_to_cpu(xchg(&attention->contexts[i], 0));
		while (bits) {
			ctx = xa_load(&fe->numbers, i * 32 + __ffs(bits));
			bits &= bits - 1;
			if (!ctx)
				continue;
			q->took = true;
			xnem_stat_inc(fe, attention);
			xnem_ctx_wake(ctx);
		}
	}
}

static void attention_want(struct xnem_fe_queue *q)
{
	if (q->want_attention++)
		return;
	xnem_store32(&q->header->attention.event, 1);
	/* Event before bits; pairs with the backend's between bit and event. */
	xnem_mb();
	attention_take(q);
}

static void attention_unwant(struct xnem_fe_queue *q)
{
	if (!--q->want_attention)
		xnem_store32(&q->header->attention.event, 0);
}

void xnem_ctx_wants(struct xnem_ctx *ctx)
{
	struct xnem_fe_queue *q = xnem_ctx_queue(ctx);
	/* Without a queue nothing is counted; xnem_queues_start() does it anew. */
	bool up = q->fe->phase != XNEM_FE_DOWN;
	bool always = ctx->polled || ctx->eventfd;
	bool events = up && (always || ctx->sleepers);
	bool attention = up && ctx->inbox_live && (always || ctx->inbox_sleepers);

	lockdep_assert_held(&q->fe->lock);
	if (events != ctx->wants_events) {
		ctx->wants_events = events;
		if (events)
			xnem_queue_want_events(q);
		else if (up)
			xnem_queue_unwant_events(q);
	}
	if (attention != ctx->wants_attention) {
		ctx->wants_attention = attention;
		if (attention)
			attention_want(q);
		else if (up)
			attention_unwant(q);
	}
}

/* Is it what a process asked for by XNEM_IOC_SUBMIT? */
static bool is_submitted(u16 op)
{
	return op == XNEM_OP_PING || op == XNEM_OP_COPY || op == XNEM_OP_MESSAGE;
}

int xnem_queue_cancel(struct xnem_ctx *ctx, u64 user_data, u32 *count)
{
	struct xnem_fe_queue *q = xnem_ctx_queue(ctx);
	struct xnem_fe *fe = ctx->fe;
	int err = xnem_queue_state(fe);
	struct xnem_rq *rq;
	u32 i;

	lockdep_assert_held(&fe->lock);
	*count = 0;
	if (err)
		return err;
	if (!(fe->features & XNEM_FEAT_CANCEL))
		return -EOPNOTSUPP;
	for (i = 0; i < q->nr_rqs; i++) {
		struct xnem_request req = {
			.op = cpu_to_le16(XNEM_OP_CANCEL),
			.u.cancel.id = cpu_to_le32(i),
		};

		rq = &q->rqs[i];
		if (!rq->busy || rq->ctx != ctx || !is_submitted(rq->op) ||
		    rq->user_data != user_data)
			continue;
		/*
		 * Once a request, or a process could use up what is kept for
		 * ends.  The id is not given to another request before the
		 * backend has seen this one: the ring keeps the order.
		 */
		if (!rq->cancelled) {
			err = xnem_queue_post(fe, ctx, NULL, &req, true);
			if (err)
				break;
			rq->cancelled = true;
			xnem_stat_inc(fe, cancels);
		}
		++*count;
	}
	if (*count)
		return 0;
	return err ?: -ENOENT;
}

/* What a request's end means, by its operation.  @lost: without an answer. */
static void finish(struct xnem_fe_queue *q, struct xnem_rq *rq, int error, u64 bytes_done,
		   u64 data0, u64 data1, bool lost)
{
	bool cpage = rq->flags & XNEM_REQ_CPAGE;
	struct xnem_ctx *ctx = rq->ctx;
	struct xnem_fe *fe = q->fe;

	if (!cpage)
		xnem_queue_unwant_events(q);
	if (rq->region)
		rq->region->posted = false;
	if (ctx && !lost) {
		ctx->nr_completions++;
		ctx->nr_errors += !!error;
		ctx->nr_bytes += bytes_done;
	}
	switch (rq->op) {
	case XNEM_OP_PING:
	case XNEM_OP_COPY:
	case XNEM_OP_MESSAGE:
		xnem_stat_add(fe, bytes, bytes_done);
		if (cpage && !lost)
			xnem_ctx_cpage_done(ctx);
		else
			xnem_ctx_done(ctx, rq->user_data, bytes_done, error);
		break;
	case XNEM_OP_OPEN_CONTEXT:
		xnem_region_registered(rq->region, error, data0, data1);
		break;
	case XNEM_OP_REGISTER:
		if (rq->uses_desc) {
			fe->desc_busy = false;
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
	case XNEM_OP_DESCRIBE:
		xnem_window_answered(fe, rq->user_data);
		break;
	case XNEM_OP_CANCEL:
		/* What it was about says itself how it ended. */
		break;
	}
	xnem_cache_unuse(rq->use[0]);
	xnem_cache_unuse(rq->use[1]);
	rq->busy = false;
	rq->ctx = NULL;
	rq->region = NULL;
	if (ctx)
		xnem_ctx_put(ctx);
}

void xnem_queue_break(struct xnem_fe *fe, const char *why)
{
	lockdep_assert_held(&fe->lock);
	if (fe->broken)
		return;
	fe->broken = true;
	fe->broke = why;
	xnem_stat_inc(fe, error_protocol);
	/* Disconnecting may sleep. */
	schedule_work(&fe->break_work);
}

static void take(struct xnem_fe_queue *q, const struct xnem_completion *c)
{
	struct xnem_fe *fe = q->fe;
	u32 id = le32_to_cpu(c->id);
	u32 status = le16_to_cpu(c->status);
	struct xnem_rq *rq;

	if (id >= q->nr_rqs || !q->rqs[id].busy) {
		xnem_queue_break(fe, "it answers what was not asked");
		return;
	}
	rq = &q->rqs[id];
	if (!xnem_check_completion(c, rq->op, rq->flags, rq->length)) {
		xnem_queue_break(fe, "an answer does not fit its request");
		return;
	}
	/* The end of a region or context is not something it can refuse. */
	if (status != XNEM_ST_OK &&
	    (rq->op == XNEM_OP_DEREGISTER || rq->op == XNEM_OP_CLOSE_CONTEXT)) {
		xnem_queue_break(fe, "it refuses to let go");
		return;
	}
	xnem_stat_inc(fe, completions);
	if (status != XNEM_ST_OK)
		xnem_stat_inc(fe, error_status);
	trace_xnem_fe_complete(q, id, rq->op, le64_to_cpu(c->bytes_done),
			       xnem_status_errno(status));
	finish(q, rq, xnem_status_errno(status), le64_to_cpu(c->bytes_done),
	       le64_to_cpu(c->data[0]), le64_to_cpu(c->data[1]), false);
	q->free_ids[q->nr_free++] = id;
}

/*
 * Take what the backend has answered, and ask for an event with the next
 * answer if anybody wants one.  Bounded: each round takes a request in flight,
 * or breaks the queue, and what is posted meanwhile (ends of regions nobody
 * waits for) is not shown to the backend before the end.
 */
static void drain(struct xnem_fe_queue *q)
{
	struct xnem_fe *fe = q->fe;
	struct xnem_completion c;
	bool took = false;
	u32 prod;

	q->arm = false;
	while (!fe->broken) {
		prod = xnem_ring_look(&q->header->cq);
		if (prod == q->cq_cons) {
			if (!q->want_events || xnem_ring_arm(&q->header->cq, q->cq_cons))
				break;
			continue;
		}
		if (xnem_ring_used(prod, q->cq_cons) > q->cq_size) {
			xnem_queue_break(fe, "completion index beyond the ring");
			break;
		}
		while (q->cq_cons != prod && !fe->broken) {
			/* Copied once; only the copy is looked at. */
			c = q->cq[q->cq_cons & (q->cq_size - 1)];
			barrier();
			q->cq_cons++;
			take(q, &c);
		}
		took = true;
		xnem_ring_release(&q->header->cq, q->cq_cons);
	}
	if (took) {
		q->took = true;
		if (!list_empty(&fe->pending) || !list_empty(&fe->pending_ctx))
			xnem_reap_now(fe);
	}
}

static irqreturn_t queue_event(int irq, void *arg)
{
	struct xnem_fe_queue *q = arg;
	struct xnem_fe *fe = q->fe;
	bool took;

	trace_xnem_fe_event(q);
	spin_lock(&fe->lock);
	xnem_stat_inc(fe, events_received);
	drain(q);
	attention_take(q);
	if (q == &fe->queues[0] && (fe->features & XNEM_FEAT_WINDOW) &&
	    READ_ONCE(q->header->attention.windows)) {
		q->took = true;
		xnem_window_wanted(fe);
	}
	xnem_queue_flush(fe);
	/* By whomever since the last EOI: a process that polls takes as well. */
	took = q->took;
	q->took = false;
	spin_unlock(&fe->lock);

	if (!took)
		xnem_stat_inc(fe, events_spurious);
	xen_irq_lateeoi(irq, took ? 0 : XEN_EOI_FLAG_SPURIOUS);
	return IRQ_HANDLED;
}

static void queue_free(struct xnem_fe_queue *q)
{
	bool kept = xnem_teardown_ring((void **)&q->cq, q->cq_pages, q->cq_refs);

	kept |= xnem_teardown_ring((void **)&q->sq, q->sq_pages, q->sq_refs);
	kept |= xnem_teardown_ring((void **)&q->header, 1, &q->header_ref);
	if (kept)
		WRITE_ONCE(q->fe->kept, true);
	kvfree(q->rqs);
	q->rqs = NULL;
	kvfree(q->free_ids);
	q->free_ids = NULL;
}

static void desc_free(struct xnem_fe *fe)
{
	u32 i;

	for (i = 0; i < fe->nr_desc; i++)
		if (xnem_teardown_ring(&fe->desc[i], 1, &fe->desc_ref[i]))
			WRITE_ONCE(fe->kept, true);
	fe->nr_desc = 0;
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

/* As many completion slots as submission slots, if may be. */
static u32 cq_order_for(const struct xnem_fe *fe, u32 sq_pages)
{
	u32 slots = sq_pages * XNEM_SQ_SLOTS_PER_PAGE;

	return min_t(u32, fe->limits.cq_order,
		     order_base_2(DIV_ROUND_UP(slots, XNEM_CQ_SLOTS_PER_PAGE)));
}

static u32 queue_pages(const struct xnem_fe *fe, u32 sq_order)
{
	return 1 + (1u << sq_order) + (1u << cq_order_for(fe, 1u << sq_order));
}

static int queue_setup(struct xnem_fe_queue *q, u32 sq_order)
{
	struct xnem_fe *fe = q->fe;
	u32 i;
	int err;

	err = setup_ring(fe, (void **)&q->header, 0, &q->header_ref, &i);
	if (err)
		goto fail;
	err = setup_ring(fe, (void **)&q->sq, sq_order, q->sq_refs, &q->sq_pages);
	if (err)
		goto fail;
	q->sq_size = q->sq_pages * XNEM_SQ_SLOTS_PER_PAGE;
	err = setup_ring(fe, (void **)&q->cq, cq_order_for(fe, q->sq_pages), q->cq_refs,
			 &q->cq_pages);
	if (err)
		goto fail;
	q->cq_size = q->cq_pages * XNEM_CQ_SLOTS_PER_PAGE;

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
	q->sq_prod = 0;
	q->sq_shown = 0;
	q->cq_cons = 0;
	q->took = false;
	q->arm = false;
	xnem_store32(&q->header->sq.event, 1);
	xnem_store32(&q->header->cq.event, 1);

	err = xenbus_alloc_evtchn(fe->xdev, &q->port);
	if (err)
		goto fail;
	err = bind_evtchn_to_irqhandler_lateeoi(q->port, queue_event, 0, q->name, q);
	if (err < 0) {
		xenbus_free_evtchn(fe->xdev, q->port);
		goto fail;
	}
	q->irq = err;
	return 0;

fail:
	queue_free(q);
	return err;
}

/* Stop its events; then nobody but the caller looks at it. */
static void queue_stop(struct xnem_fe_queue *q)
{
	/* Closes the event channel; waits for the handler. */
	unbind_from_irqhandler(q->irq, q);
	q->irq = 0;
}

/*
 * How many queues, and how large: what a device grants for itself is a small
 * part of a small grant table, and no more than is of use.
 */
static void queue_plan(const struct xnem_fe *fe, u32 *nr, u32 *sq_order)
{
	u32 budget = min_t(u32, xnem_grants_total() / 32, XNEM_FE_QUEUE_PAGES);
	u32 n = min_t(u32, fe->limits.queues, XNEM_FE_QUEUES), order = fe->limits.sq_order;

	n = min_t(u32, n, num_online_cpus());
	if (xnem_max_queues)
		n = min_t(u32, n, xnem_max_queues);
	budget -= min(budget, fe->nr_desc);
	while (order && n * queue_pages(fe, order) > budget)
		order--;
	while (n > 1 && n * queue_pages(fe, order) > budget)
		n--;
	*nr = n;
	*sq_order = order;
}

int xnem_queues_setup(struct xnem_fe *fe)
{
	u32 nr_desc, nr, sq_order, quota = XNEM_CPAGE_ENTRIES, i;
	int err;

	BUILD_BUG_ON(XNEM_CPAGE_ENTRIES > XNEM_FE_DONE);
	/* For references, and for segments, of the largest region. */
	nr_desc = min_t(u32, XNEM_INLINE_REFS,
			DIV_ROUND_UP(fe->limits.region_pages, XNEM_DESC_REFS) +
				XNEM_SEGMENTS_MAX / XNEM_DESC_SEGMENTS);
	for (i = 0; i < nr_desc; i++) {
		err = xnem_setup_ring(fe->xdev, &fe->desc[i], 1, &fe->desc_ref[i]);
		if (err)
			goto fail_desc;
		fe->nr_desc = i + 1;
	}
	fe->desc_busy = false;

	queue_plan(fe, &nr, &sq_order);
	for (i = 0; i < nr; i++) {
		struct xnem_fe_queue *q = &fe->queues[i];

		q->fe = fe;
		snprintf(q->name, sizeof(q->name), "%s-%u", fe->name, i);
		err = queue_setup(q, sq_order);
		if (err)
			goto fail;
		quota = min(quota, q->nr_rqs / 4);
	}
	spin_lock_irq(&fe->lock);
	fe->nr_queues = nr;
	fe->ctx_quota = max(quota, 1u);
	spin_unlock_irq(&fe->lock);
	return 0;

fail:
	while (i--) {
		queue_stop(&fe->queues[i]);
		queue_free(&fe->queues[i]);
	}
fail_desc:
	desc_free(fe);
	return err;
}

void xnem_queues_start(struct xnem_fe *fe)
{
	struct xnem_ctx *ctx;

	spin_lock_irq(&fe->lock);
	fe->phase = XNEM_FE_SETUP;
	list_for_each_entry(ctx, &fe->contexts, entry)
		xnem_ctx_wants(ctx);
	spin_unlock_irq(&fe->lock);
}

void xnem_queues_teardown(struct xnem_fe *fe)
{
	struct xnem_fe_queue *q;
	struct xnem_ctx *ctx;
	u32 nr = fe->nr_queues, i;

	if (!nr)
		return;
	spin_lock_irq(&fe->lock);
	fe->phase = XNEM_FE_DOWN;
	spin_unlock_irq(&fe->lock);
	for (i = 0; i < nr; i++)
		queue_stop(&fe->queues[i]);

	spin_lock_irq(&fe->lock);
	for (q = fe->queues; q < fe->queues + nr; q++) {
		for (i = 0; i < q->nr_rqs; i++) {
			if (!q->rqs[i].busy)
				continue;
			xnem_stat_inc(fe, error_disconnect);
			finish(q, &q->rqs[i], -ENOTCONN, 0, 0, 0, true);
		}
	}
	xnem_regions_orphan(fe);
	list_for_each_entry(ctx, &fe->contexts, entry)
		xnem_ctx_wants(ctx);
	for (q = fe->queues; q < fe->queues + nr; q++) {
		q->want_events = 0;
		q->want_attention = 0;
	}
	fe->nr_queues = 0;
	spin_unlock_irq(&fe->lock);
	xnem_windows_down(fe);
	wake_up_all(&fe->desc_wait);
	for (i = 0; i < nr; i++)
		queue_free(&fe->queues[i]);
	desc_free(fe);
	xnem_reap_now(fe);
}
