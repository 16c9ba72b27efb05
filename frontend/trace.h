/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace points: events/xnem/xnem_fe_* in tracefs, described in docs/admin.md.
 * Switched off, each is a jump that is not taken.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xnem

#if !defined(XNEM_FE_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define XNEM_FE_TRACE_H_

#include <linux/tracepoint.h>

#include "frontend.h"
#include "xnem_trace.h"

/* clang-format off */

/* A process, by its context. */
DECLARE_EVENT_CLASS(xnem_fe_context,
	TP_PROTO(const struct xnem_ctx *ctx, u32 count, int status),
	TP_ARGS(ctx, count, status),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, context)
		__field(u32, count)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->dev = ctx->fe->id;
		__entry->context = ctx->number;
		__entry->count = count;
		__entry->status = status;
	),
	TP_printk("dev=%u context=%u count=%u status=%d", __entry->dev, __entry->context,
		  __entry->count, __entry->status)
);

/* XNEM_IOC_SUBMIT begins with, and ends after, so many requests. */
DEFINE_EVENT(xnem_fe_context, xnem_fe_submit,
	TP_PROTO(const struct xnem_ctx *ctx, u32 count, int status),
	TP_ARGS(ctx, count, status));
DEFINE_EVENT(xnem_fe_context, xnem_fe_submitted,
	TP_PROTO(const struct xnem_ctx *ctx, u32 count, int status),
	TP_ARGS(ctx, count, status));
/* It goes to sleep in XNEM_IOC_COMPLETE, for so many completions; and has slept. */
DEFINE_EVENT(xnem_fe_context, xnem_fe_sleep,
	TP_PROTO(const struct xnem_ctx *ctx, u32 count, int status),
	TP_ARGS(ctx, count, status));
DEFINE_EVENT(xnem_fe_context, xnem_fe_wake,
	TP_PROTO(const struct xnem_ctx *ctx, u32 count, int status),
	TP_ARGS(ctx, count, status));

/* A request on a ring, and its completion. */
DECLARE_EVENT_CLASS(xnem_fe_request,
	TP_PROTO(const struct xnem_fe_queue *q, u32 id, u16 op, u64 bytes, int status),
	TP_ARGS(q, id, op, bytes, status),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, dev)
		__field(u32, queue)
		__field(u32, id)
		__field(int, status)
		__field(u16, op)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->dev = q->fe->id;
		__entry->queue = q - q->fe->queues;
		__entry->id = id;
		__entry->status = status;
		__entry->op = op;
	),
	TP_printk("dev=%u queue=%u id=%u op=%s bytes=%llu status=%d", __entry->dev,
		  __entry->queue, __entry->id, xnem_show_op(__entry->op), __entry->bytes,
		  __entry->status)
);

DEFINE_EVENT(xnem_fe_request, xnem_fe_post,
	TP_PROTO(const struct xnem_fe_queue *q, u32 id, u16 op, u64 bytes, int status),
	TP_ARGS(q, id, op, bytes, status));
DEFINE_EVENT(xnem_fe_request, xnem_fe_complete,
	TP_PROTO(const struct xnem_fe_queue *q, u32 id, u16 op, u64 bytes, int status),
	TP_ARGS(q, id, op, bytes, status));

/* The event channel. */
DECLARE_EVENT_CLASS(xnem_fe_queue,
	TP_PROTO(const struct xnem_fe_queue *q),
	TP_ARGS(q),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, queue)
	),
	TP_fast_assign(
		__entry->dev = q->fe->id;
		__entry->queue = q - q->fe->queues;
	),
	TP_printk("dev=%u queue=%u", __entry->dev, __entry->queue)
);

DEFINE_EVENT(xnem_fe_queue, xnem_fe_notify,
	TP_PROTO(const struct xnem_fe_queue *q),
	TP_ARGS(q));
DEFINE_EVENT(xnem_fe_queue, xnem_fe_event,
	TP_PROTO(const struct xnem_fe_queue *q),
	TP_ARGS(q));

/* clang-format on */

#endif /* XNEM_FE_TRACE_H_ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
