/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace points: events/xnem/xnem_be_* in tracefs, described in docs/admin.md.
 * Switched off, each is a jump that is not taken.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xnem

#if !defined(XNEM_BE_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define XNEM_BE_TRACE_H_

#include <linux/tracepoint.h>

#include "backend.h"
#include "xnem_trace.h"

/* clang-format off */

/* A request, taken from a ring and answered there. */
DECLARE_EVENT_CLASS(xnem_be_request,
	TP_PROTO(const struct xnem_be_queue *q, u32 id, u16 op, u64 bytes, u32 status),
	TP_ARGS(q, id, op, bytes, status),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, dev)
		__field(u32, queue)
		__field(u32, id)
		__field(u32, status)
		__field(u16, op)
		__field(domid_t, domid)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->dev = q->dev->id;
		__entry->queue = q - q->dev->queues;
		__entry->id = id;
		__entry->status = status;
		__entry->op = op;
		__entry->domid = q->dev->xdev->otherend_id;
	),
	TP_printk("domid=%u dev=%u queue=%u id=%u op=%s bytes=%llu status=%u", __entry->domid,
		  __entry->dev, __entry->queue, __entry->id, xnem_show_op(__entry->op),
		  __entry->bytes, __entry->status)
);

DEFINE_EVENT(xnem_be_request, xnem_be_take,
	TP_PROTO(const struct xnem_be_queue *q, u32 id, u16 op, u64 bytes, u32 status),
	TP_ARGS(q, id, op, bytes, status));
DEFINE_EVENT(xnem_be_request, xnem_be_complete,
	TP_PROTO(const struct xnem_be_queue *q, u32 id, u16 op, u64 bytes, u32 status),
	TP_ARGS(q, id, op, bytes, status));

/* A GNTTABOP_copy of so many operations, of one request or several; its statuses after it. */
DECLARE_EVENT_CLASS(xnem_be_hypercall,
	TP_PROTO(const struct gnttab_copy *ops, unsigned int nr),
	TP_ARGS(ops, nr),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, nr)
		__field(s16, status)
	),
	TP_fast_assign(
		unsigned int i;

		__entry->bytes = 0;
		__entry->nr = nr;
		__entry->status = GNTST_okay;
		for (i = 0; i < nr; i++) {
			__entry->bytes += ops[i].len;
			if (__entry->status == GNTST_okay)
				__entry->status = ops[i].status;
		}
	),
	TP_printk("ops=%u bytes=%llu status=%d", __entry->nr, __entry->bytes, __entry->status)
);

DEFINE_EVENT(xnem_be_hypercall, xnem_be_copy_begin,
	TP_PROTO(const struct gnttab_copy *ops, unsigned int nr),
	TP_ARGS(ops, nr));
DEFINE_EVENT(xnem_be_hypercall, xnem_be_copy_end,
	TP_PROTO(const struct gnttab_copy *ops, unsigned int nr),
	TP_ARGS(ops, nr));

/* The event channel. */
DECLARE_EVENT_CLASS(xnem_be_queue,
	TP_PROTO(const struct xnem_be_queue *q),
	TP_ARGS(q),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, queue)
		__field(domid_t, domid)
	),
	TP_fast_assign(
		__entry->dev = q->dev->id;
		__entry->queue = q - q->dev->queues;
		__entry->domid = q->dev->xdev->otherend_id;
	),
	TP_printk("domid=%u dev=%u queue=%u", __entry->domid, __entry->dev, __entry->queue)
);

DEFINE_EVENT(xnem_be_queue, xnem_be_notify,
	TP_PROTO(const struct xnem_be_queue *q),
	TP_ARGS(q));
DEFINE_EVENT(xnem_be_queue, xnem_be_event,
	TP_PROTO(const struct xnem_be_queue *q),
	TP_ARGS(q));

/* A worker asked for events and goes to sleep; and has slept. */
DECLARE_EVENT_CLASS(xnem_be_worker,
	TP_PROTO(const struct xnem_worker *w),
	TP_ARGS(w),
	TP_STRUCT__entry(
		__field(u32, worker)
	),
	TP_fast_assign(
		__entry->worker = w->index;
	),
	TP_printk("worker=%u", __entry->worker)
);

DEFINE_EVENT(xnem_be_worker, xnem_be_sleep,
	TP_PROTO(const struct xnem_worker *w),
	TP_ARGS(w));
DEFINE_EVENT(xnem_be_worker, xnem_be_wake,
	TP_PROTO(const struct xnem_worker *w),
	TP_ARGS(w));

/* clang-format on */

#endif /* XNEM_BE_TRACE_H_ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
