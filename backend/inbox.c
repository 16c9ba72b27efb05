// SPDX-License-Identifier: GPL-2.0
/*
 * Inboxes: messages and notifications for a context (xnemif.h, sections 6, 7).
 *
 * Any worker may put something into any inbox of the zone.  The lock of the
 * inbox also says that its pages are mapped.
 */
#include <linux/random.h>

#include "backend.h"
#include "trace.h"

static DEFINE_XARRAY(inboxes); /* contexts by address; read under RCU */
static atomic64_t next_id = ATOMIC64_INIT(1);

enum xnem_status xnem_inbox_open(struct xnem_be_ctx *ctx, struct xnem_context_control *control,
				 struct xnem_inbox_slot *inbox, u32 slots)
{
	ctx->senders = kcalloc(slots, sizeof(*ctx->senders), GFP_KERNEL);
	if (!ctx->senders)
		return XNEM_ST_NOMEM;
	spin_lock(&ctx->inbox_lock);
	ctx->control = control;
	ctx->inbox = inbox;
	ctx->inbox_slots = slots;
	spin_unlock(&ctx->inbox_lock);
	/* Never used twice in a backend's life. */
	ctx->key = get_random_u64();
	WRITE_ONCE(ctx->id, atomic64_inc_return(&next_id));
	if (!xa_err(xa_store(&inboxes, ctx->id, ctx, GFP_KERNEL)))
		return XNEM_ST_OK;
	WRITE_ONCE(ctx->id, 0);
	spin_lock(&ctx->inbox_lock);
	ctx->inbox = NULL;
	spin_unlock(&ctx->inbox_lock);
	kfree(ctx->senders);
	return XNEM_ST_NOMEM;
}

void xnem_inbox_close(struct xnem_be_ctx *ctx)
{
	u32 *senders = ctx->senders;

	xa_erase(&inboxes, ctx->id);
	spin_lock(&ctx->inbox_lock);
	ctx->inbox = NULL;
	ctx->control = NULL;
	ctx->senders = NULL;
	spin_unlock(&ctx->inbox_lock);
	kfree(senders);
}

static struct xnem_be_ctx *find(const struct xnem_zone *zone, u64 id, u64 key)
{
	struct xnem_be_ctx *ctx;

	rcu_read_lock();
	ctx = id <= ULONG_MAX ? xa_load(&inboxes, id) : NULL;
	/* One answer for unknown, another zone and wrong key. */
	if (ctx && (ctx->zone != zone || ctx->key != key || !refcount_inc_not_zero(&ctx->ref)))
		ctx = NULL;
	rcu_read_unlock();
	return ctx;
}

/* Is there a slot for device @sender?  One may hold no more than half unread. */
static bool has_room(const struct xnem_be_ctx *to, u32 sender)
{
	/* The reader's own word: garbage harms its own inbox alone. */
	u32 cons = xnem_load32(&to->control->inbox_cons);
	u32 used = to->inbox_prod - cons;
	u32 held = 0, i;

	if (used >= to->inbox_slots)
		return false;
	xnem_mb(); /* cons before the slots are written; pairs with the reader's release */
	if (used < to->inbox_slots / 2)
		return true;
	for (i = cons; i != to->inbox_prod; i++)
		held += to->senders[i & (to->inbox_slots - 1)] == sender;
	return held < to->inbox_slots / 2;
}

/* Set the context's bit; an event when its kernel sleeps on that. */
static void attention(struct xnem_be_ctx *to)
{
	struct xnem_attention *att = &to->queue->header->attention;
	atomic_t *word = (atomic_t *)&att->contexts[to->number / 32];

	atomic_or((__force int)cpu_to_le32(1u << (to->number % 32)), word);
	xnem_mb(); /* the bit before event; pairs with the frontend's arming */
	if (xnem_load32(&att->event)) {
		atomic64_inc(&to->dev->shared.inbox_events);
		trace_xnem_be_notify(to->queue);
		notify_remote_via_irq(to->queue->irq);
	}
}

/* @slot is whole but for its seq. */
static enum xnem_status put(struct xnem_be_ctx *to, const struct xnem_inbox_slot *slot, u32 sender)
{
	struct xnem_inbox_slot *at;
	enum xnem_status status = XNEM_ST_OK;
	u32 i;

	spin_lock(&to->inbox_lock);
	if (!to->inbox) {
		status = XNEM_ST_PEER_GONE;
	} else if (!has_room(to, sender)) {
		status = XNEM_ST_BUSY;
	} else {
		i = to->inbox_prod++ & (to->inbox_slots - 1);
		at = &to->inbox[i];
		to->senders[i] = sender;
		memcpy(at, slot, offsetof(struct xnem_inbox_slot, seq));
		xnem_wmb(); /* pairs with the reader's load-acquire of seq */
		xnem_store32(&at->seq, to->inbox_prod);
		attention(to);
	}
	spin_unlock(&to->inbox_lock);
	return status;
}

static struct xnem_inbox_slot slot_of(const struct xnem_job *job, u32 kind, u64 value, u64 bytes)
{
	return (struct xnem_inbox_slot){
		.value = cpu_to_le64(value),
		.bytes = cpu_to_le64(bytes),
		.from = { cpu_to_le64(job->ctx->id),
			  cpu_to_le64(job->ctx->id ? job->ctx->key : 0) },
		.tag = cpu_to_le64(job->tag),
		.kind = cpu_to_le32(kind),
		.domid = cpu_to_le32(job->ctx->domid),
	};
}

enum xnem_status xnem_inbox_message(struct xnem_job *job, const struct xnem_request *req)
{
	u32 length = le32_to_cpu(req->u.msg.length);
	struct xnem_be_ctx *ctx = job->ctx, *to;
	struct xnem_inbox_slot slot;
	enum xnem_status status;

	if (xnem_ctx_rests(ctx))
		return XNEM_ST_AGAIN;
	to = find(ctx->zone, le64_to_cpu(req->u.msg.to.id), le64_to_cpu(req->u.msg.to.key));
	if (!to) {
		xnem_ctx_wrong(ctx);
		return XNEM_ST_COOKIE;
	}
	slot = slot_of(job, XNEM_INBOX_MESSAGE, job->user_data, length);
	memcpy(slot.data, req->u.msg.data, length);
	status = put(to, &slot, ctx->dev->serial);
	xnem_ctx_put(to);
	if (status == XNEM_ST_OK)
		ctx->queue->stats.messages++;
	else if (status == XNEM_ST_BUSY)
		ctx->queue->stats.inbox_full++;
	return status == XNEM_ST_PEER_GONE ? XNEM_ST_COOKIE : status;
}

enum xnem_status xnem_inbox_notify(struct xnem_job *job)
{
	struct xnem_inbox_slot slot = slot_of(job, XNEM_INBOX_NOTIFY, job->immediate, job->length);
	struct xnem_be_stats *stats = &job->queue->stats;
	u32 serial = job->ctx->dev->serial;
	enum xnem_status status = XNEM_ST_OK;

	if (job->flags & XNEM_REQ_NOTIFY_DST) {
		status = put(job->dst->ctx, &slot, serial);
		stats->notifications += status == XNEM_ST_OK;
	}
	if (status == XNEM_ST_OK && (job->flags & XNEM_REQ_NOTIFY_SRC)) {
		status = put(job->src->ctx, &slot, serial);
		stats->notifications += status == XNEM_ST_OK;
	}
	stats->inbox_full += status == XNEM_ST_BUSY;
	return status;
}
