/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XNEM backend: what its files share.
 *
 *   xenbus.c   the state machine: probe, connect, disconnect
 *   queue.c    rings: taking requests, answering them, the event channel
 *   context.c  contexts: their pages, fences, their end
 *   inbox.c    messages and notifications
 *   region.c   zones, the table of regions, who uses one
 *   worker.c   the threads: whose turn it is, sleeping and waking
 *   copy.c     the copy engine: operations to hypercalls, small copies
 *   large.c    large copies, cut into chunks that all workers share
 *   window.c   regions that are granted piece by piece
 *   stats.c    counters in debugfs
 *   floor.c    what Xen alone takes for a copy, to measure against
 *   trace.h    trace points
 *
 * Threads and locks.  A queue belongs to one worker, a context to one queue.
 * Everything of a queue (rings, jobs, contexts, its counters) is touched by
 * that worker alone, under worker->lock, or by the xenbus thread under the same
 * lock.  What is shared:
 *
 *   regions   any worker's copy can use any region of the zone, held by
 *             region->users.  When the last user is gone the region travels to
 *             the worker of its own queue (worker->released), which answers
 *             and frees.
 *   inboxes   any worker can put something into one, under ctx->inbox_lock.
 *   large copies  stand in lists under one spinlock (large.c); a worker takes a
 *             chunk, copies it without that lock, and accounts for it.  The
 *             worker that accounts for the last one sends the job home
 *             (worker->finished).
 *
 * Order: worker->lock, then the lock of large.c; ctx->inbox_lock is taken last.
 */
#ifndef XNEM_BACKEND_H
#define XNEM_BACKEND_H

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "xnem_check.h"
#include "xnem_compat.h"
#include "xnem_ring.h"
#include "xnem_segs.h"
#include "xnem_walk.h"

/** Queues a device may have. */
#define XNEM_BE_QUEUES 8
/** What it offers. */
#define XNEM_BE_FEATURES                                                            \
	(XNEM_FEAT_CPAGE | XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY | XNEM_FEAT_FENCE | \
	 XNEM_FEAT_SEGMENTS | XNEM_FEAT_CANCEL | XNEM_FEAT_WINDOW)
/** Operations of one hypercall: an unaligned chunk of 256 KiB takes 129. */
#define XNEM_BE_BATCH 130
/** Bytes one queue may copy before the next one's turn (deficit round robin). */
#define XNEM_BE_QUANTUM (256u << 10)
/** The same for the contexts of a queue. */
#define XNEM_BE_CTX_QUANTUM (64u << 10)
/** Copies of more bytes are cut into chunks of so many, shared by all workers. */
#define XNEM_BE_CHUNK (256u << 10)
/** Chunks that a worker keeps to try again (GNTST_eagain). */
#define XNEM_BE_REDO 8
/** Charged for every request, so that a storm of one-byte copies pays. */
#define XNEM_BE_REQUEST_COST 512u
/**
 * Requests taken from a ring before other rings are looked at; one whose work
 * grows with its size counts as several.
 */
#define XNEM_BE_TAKE 64u
/** A copy that Xen asks to repeat (GNTST_eagain) ends after this many ms. */
#define XNEM_BE_EAGAIN_MS 2000
/** Failures to connect in a row after which a device stays closed. */
#define XNEM_BE_FAILURES 5

struct xnem_be;
struct xnem_be_ctx;
struct xnem_be_queue;
struct xnem_worker;

/** Counters of a queue; written by its worker alone, read without a lock. */
struct xnem_be_stats {
	u64 requests;
	u64 completions;
	/** Requests that were in flight when their queue was disconnected. */
	u64 dropped;
	/** Descriptor pages read (not part of grant_ops). */
	u64 desc_pages;
	/** Entries written to completion pages. */
	u64 cpage_entries;
	u64 events_sent;
	u64 events_received;
	u64 events_spurious;
	/** Times the worker found a ring empty and asked for an event. */
	u64 sleeps;
	u64 throttled;
	/** Requests that waited behind a fence; requests cancelled on demand. */
	u64 fenced;
	u64 cancelled;
	/** Messages and notifications delivered; refused for want of room. */
	u64 messages;
	u64 notifications;
	u64 inbox_full;
	u64 errors[XNEM_ST_MAX + 1];
};

/** Counters of a device that several workers write, once a hypercall. */
struct xnem_be_shared_stats {
	/** Bytes copied for this device's requests. */
	atomic64_t bytes;
	/** GNTTABOP_copy operations for data, and hypercalls they took. */
	atomic64_t grant_ops;
	atomic64_t hypercalls;
	/** Copies of which a part was tried again (GNTST_eagain). */
	atomic64_t eagain;
	/** Chunks of large copies. */
	atomic64_t chunks;
	/** Windows wanted, and granted. */
	atomic64_t wants;
	atomic64_t windows;
	/** Events sent because something came into an inbox. */
	atomic64_t inbox_events;
};

/** Who may talk to whom.  Lives as long as a device is in it. */
struct xnem_zone {
	struct list_head entry;
	unsigned int users;
	u64 fabric_id;
	char name[XNEM_ZONE_NAME_MAX + 1];
};

enum xnem_job_state {
	XNEM_JOB_FREE,
	/** Being handled, or waiting for regions to be let go. */
	XNEM_JOB_BUSY,
	/** In ctx->parked, behind a fence. */
	XNEM_JOB_PARKED,
	/** In ctx->copies. */
	XNEM_JOB_SMALL,
	/** Of large.c, until it comes home. */
	XNEM_JOB_LARGE,
};

/** A request in flight; from a queue's fixed pool. */
struct xnem_job {
	/** In the list that its state names, or none. */
	struct list_head entry;
	struct xnem_be_queue *queue;
	/** NULL: none, or none that may be named. */
	struct xnem_be_ctx *ctx;
	enum xnem_job_state state;
	u32 id;
	u16 op;
	/** XNEM_REQ_* */
	u16 flags;
	/** Counted by its context's fences. */
	bool ordered;
	u64 user_data;
	/** The whole request while it is parked. */
	struct xnem_request *parked;
	/** Copy: the two regions, each with a user of its own. */
	struct xnem_region *src;
	struct xnem_region *dst;
	/** First byte within each region. */
	u64 src_offset;
	u64 dst_offset;
	u64 length;
	u64 immediate;
	u64 tag;
	/** Bytes that are complete. */
	u64 done;
	enum xnem_status failed;

	/* Small: queue->looked_at of when it started. */
	u64 since;
	/* Bytes that have become operations, and the walk they are from. */
	u64 emitted;
	struct xnem_walk walk;
	/** Runs in the batch that is under way. */
	u32 runs_pending;
	/** jiffies at which GNTST_eagain becomes an error; 0: none yet. */
	unsigned long eagain_until;

	/* Large, under the lock of large.c. */
	/** Bytes that chunks were made of. */
	u64 cursor;
	/** Where the first failure was; above length: none. */
	u64 fail_at;
	/** Chunks that workers have. */
	u32 chunks;
	/** No more chunks; and those that workers have end early. */
	bool stop;
	bool cancel;
	struct llist_node finished;
	/** Windows of source and destination (window.c); NULL: granted as a whole, or none now. */
	struct xnem_window *win[2];
	/** Where the piece ends that they are for; it may be copied; or what is missing. */
	u64 piece_end;
	bool ready;
	u32 wants;
	/** jiffies: when asked for, and when it is too late; 0: not waiting. */
	unsigned long want_since;
	unsigned long wait_until;
	/** Describe request: of this window. */
	struct xnem_window *window;
};

enum xnem_window_state {
	XNEM_WINDOW_IDLE,
	XNEM_WINDOW_WANTED,
	/** Wanted, but nobody waits for it any more. */
	XNEM_WINDOW_STALE,
	XNEM_WINDOW_GRANTED,
	/** Its describe request is on the way to be answered. */
	XNEM_WINDOW_CLOSING,
};

/** A window of a device; under the lock of large.c. */
struct xnem_window {
	enum xnem_window_state state;
	struct xnem_be *dev;
	u32 index;
	/** Of the last want. */
	u32 seq;
	/** First page within the region, and pages. */
	u64 page;
	u32 nr_pages;
	/** The copy it is for, and the request that described it. */
	struct xnem_job *user;
	struct xnem_job *describe;
	u32 *refs;
};

struct xnem_region {
	u64 id;
	u64 key;
	/** Users: 1 while registered, 1 for each job that copies. */
	refcount_t users;
	/** Deregistered, or its device has gone: no new users, copies end. */
	bool dying;
	/** dying because its owner went away. */
	bool gone;
	u32 access;
	u32 flags;
	u64 tag;
	u64 length;
	/** Of the first byte within the first page (without segments). */
	u32 offset;
	u32 nr_pages;
	u32 nr_segs;
	domid_t domid;
	/** XNEM_REGION_ONCE: bit 0 is set by the one copy. */
	unsigned long used;
	/** Held. */
	struct xnem_be_ctx *ctx;
	struct xnem_be *dev;
	struct xnem_zone *zone;
	struct xnem_worker *worker;
	/** Job to tell when the last user is gone; owned by worker. */
	struct xnem_job *dereg;
	struct list_head entry; /* ctx->regions, under worker->lock */
	struct llist_node released;
	struct rcu_head rcu;
	/** nr_pages references; for its users alone, so freed with the last. */
	u32 *refs;
	/** nr_segs + 1 entries; NULL: one segment. */
	struct xnem_seg_start *segs;
};

/** Wrong cookies and addresses: each costs a token; without any it rests. */
struct xnem_guesses {
	u32 spent;
	unsigned long since; /* jiffies of the last refill */
	unsigned long rest_until; /* jiffies; 0: it does not rest */
};

/** A context; from its first request to its end. */
struct xnem_be_ctx {
	/** The device's table; each region; whoever puts into its inbox. */
	refcount_t ref;
	struct rcu_head rcu;
	struct xnem_be *dev;
	struct xnem_zone *zone;
	struct xnem_be_queue *queue;
	struct list_head entry; /* queue->contexts */
	u32 number;
	struct xnem_guesses guesses;
	/** Its jobs but for the close request; its regions. */
	u32 nr_jobs;
	u32 nr_regions;
	struct list_head regions;
	/** The close request that waits for all of them. */
	struct xnem_job *close;

	/** Fences: ordered jobs under way; one of them is a fence. */
	u32 in_flight;
	bool fenced;
	/** The device lets go of it: nothing is said to the process any more. */
	bool abandoned;
	struct list_head parked;
	struct list_head unpark; /* queue->unpark */

	/** Small copies, and its place in queue->turns while there are any. */
	struct list_head copies;
	struct list_head turn;
	s64 deficit;
	/** Large copies that wait for a worker; dev->large (large.c's lock). */
	struct list_head large;
	struct list_head large_turn;

	/** Its pages (xnemif.h, section 6); NULL: not opened. */
	struct xnem_cpage_entry *cpage;
	u32 cpage_prod;
	/** Address of the inbox; id 0: it has none.  Set once. */
	u64 id;
	u64 key;
	domid_t domid;
	/** Protects all below, and that they are mapped. */
	spinlock_t inbox_lock;
	struct xnem_inbox_slot *inbox;
	struct xnem_context_control *control;
	u32 inbox_slots;
	u32 inbox_prod;
	/** Of each slot: serial of the device that put something there. */
	u32 *senders;
};

struct xnem_be_queue {
	struct xnem_be *dev;
	struct xnem_worker *worker;
	struct list_head entry; /* worker->queues */
	struct list_head turn; /* worker->active, when turns is not empty */
	struct xnem_queue_header *header;
	struct xnem_request *sq;
	struct xnem_completion *cq;
	u32 sq_size;
	u32 sq_cons;
	u32 cq_size;
	u32 cq_prod;
	/** cq_prod that the frontend has been shown. */
	u32 cq_shown;
	int irq;
	/** Set by the handler; the worker owes an EOI. */
	atomic_t event_pending;
	/** Something was taken since the last EOI. */
	bool took;
	/** Garbage was found: nothing is taken any more, for good. */
	bool broken;
	struct list_head contexts;
	/** Contexts with small copies, in the order of their turns. */
	struct list_head turns;
	/** Contexts of which a parked request may start. */
	struct list_head unpark;
	/** Bytes it may still copy in this turn. */
	s64 deficit;
	struct xnem_job *jobs;
	struct list_head free_jobs;
	/** Most requests in flight, and how many are (answered ones not). */
	u32 inflight;
	u32 in_flight;
	/** Chunks of its large copies that workers have (large.c). */
	u32 chunks;
	u64 events_received; /* by the interrupt handler */
	/** worker->bytes when the ring was last looked at. */
	u64 looked_at;
	/** The most that the worker copied between looked_at and a small copy's begin. */
	u64 wait_bytes_max;
	struct xnem_be_stats stats;
};

struct xnem_be {
	struct xenbus_device *xdev;
	struct list_head entry; /* devices, for stats */
	struct xnem_zone *zone;
	/** Tells devices apart, for the backend's life. */
	u32 serial;
	/** Its number among those of its guest. */
	u32 id;
	u64 features;
	struct xnem_limits limits;
	bool connected;
	unsigned long connected_since; /* jiffies */
	/** Times in a row that connecting failed, or a context's page could not be mapped. */
	unsigned int failures;
	/** A context's page could not be mapped: the device ends, and maps no more. */
	bool map_failed;
	/** Its frontend broke the protocol: not served again before re-attach. */
	bool banned;
	/** Why; for the one message that is written about it. */
	const char *broke;
	struct work_struct ban_work;
	/** Connecting and disconnecting: the xenbus thread and the ban work. */
	struct mutex state_lock;
	struct xnem_be_queue queues[XNEM_BE_QUEUES];
	unsigned int nr_queues;
	/** Contexts by number. */
	struct xarray contexts;
	atomic_t nr_regions;
	atomic_t nr_pages;
	/** Regions not freed yet, released ones included. */
	atomic_t live_regions;
	/** Contexts with large copies that wait; its place among devices (large.c). */
	struct list_head large;
	struct list_head large_turn;
	s64 large_deficit;
	/** Windows (large.c's lock); held: those that copies use. */
	struct xnem_window windows[XNEM_WINDOWS_MAX];
	u32 nr_windows;
	u32 windows_held;
	u32 *window_refs;
	struct xnem_be_shared_stats shared;
	struct dentry *debugfs;
};

/** A part of a large copy that a worker has. */
struct xnem_chunk {
	struct xnem_job *job;
	/** Bytes pos .. end - 1 of the copy are still to be copied. */
	u64 pos;
	u64 end;
	/** jiffies at which GNTST_eagain becomes an error; 0: none yet. */
	unsigned long eagain_until;
};

/** Operations of one job that stand together in a batch. */
struct xnem_run {
	struct xnem_job *job;
	unsigned int first;
	unsigned int count;
	u64 bytes;
};

struct xnem_worker {
	struct task_struct *task;
	unsigned int index;
	struct mutex lock;
	struct list_head queues;
	/** Queues with copies to do, in the order of their turns. */
	struct list_head active;
	struct llist_head released;
	/** Large copies of its queues that have ended. */
	struct llist_head finished;
	wait_queue_head_t wait;
	atomic_t kicked;
	/** xnem_region_endings() that it has acted upon. */
	int endings;
	unsigned int nr_queues;
	/** Bytes it has copied, for anybody. */
	u64 bytes;
	/** Scratch of copy.c. */
	struct gnttab_copy ops[XNEM_BE_BATCH];
	struct xnem_run runs[XNEM_BE_BATCH];
	unsigned int nr_runs;
	/** Chunks to be tried again. */
	struct xnem_chunk redo[XNEM_BE_REDO];
	unsigned int nr_redo;
	/** Private pages for descriptor pages. */
	struct page *desc[XNEM_INLINE_REFS];
};

/* main.c */
extern const struct xnem_limits xnem_be_limits;

/* xenbus.c */
int xnem_be_xenbus_init(void);
void xnem_be_xenbus_exit(void);

/* queue.c */
int xnem_queue_connect(struct xnem_be_queue *q, unsigned int index);
void xnem_queue_disconnect(struct xnem_be_queue *q);
/** Take requests from the ring; true when there was one. */
bool xnem_queue_take(struct xnem_be_queue *q);
/** Pay the EOI that an event cost. */
void xnem_queue_eoi(struct xnem_be_queue *q);
/** Show the frontend what was answered and notify it if it asked for that. */
void xnem_queue_show(struct xnem_be_queue *q);
/** Answer @job and give it back to the pool; its context may end with it. */
void xnem_job_answer(struct xnem_job *job, enum xnem_status status, u64 bytes_done, u64 data0,
		     u64 data1);
/** Start a request that is not, or not any more, held up by a fence. */
void xnem_job_start(struct xnem_job *job, const struct xnem_request *req);
/** End a copy that is in no list: notify, drop its regions, answer. */
void xnem_job_end_copy(struct xnem_job *job, enum xnem_status status);

/* context.c */
/** The context of a request on @q; made if need be.  NULL: *status says why. */
struct xnem_be_ctx *xnem_ctx_of(struct xnem_be_queue *q, u32 number, bool make,
				enum xnem_status *status);
void xnem_ctx_put(struct xnem_be_ctx *ctx);
enum xnem_status xnem_ctx_open(struct xnem_be_ctx *ctx, const struct xnem_request *req);
void xnem_ctx_write_cpage(struct xnem_be_ctx *ctx, const struct xnem_job *job,
			  enum xnem_status status, u64 bytes_done);
/** Hold @job up if a fence stands before it; true when it is held up (or answered). */
bool xnem_ctx_park(struct xnem_job *job, const struct xnem_request *req);
/** Start what no fence holds up any more; true when there was something. */
bool xnem_ctx_unpark(struct xnem_be_queue *q);
/** @job of @ctx is answered. */
void xnem_ctx_job_done(struct xnem_be_ctx *ctx, const struct xnem_job *job);
/** A region of @ctx is freed, or what its end waits for may have come otherwise. */
void xnem_ctx_try_close(struct xnem_be_ctx *ctx);
/** XNEM_OP_CLOSE_CONTEXT */
void xnem_ctx_close(struct xnem_be_ctx *ctx, struct xnem_job *job);
/** End the request with this id; false: there is none. */
bool xnem_ctx_cancel(struct xnem_be_ctx *ctx, u32 id);
/** End all copies of all contexts of @q, orphan its regions; large ones may go on. */
void xnem_ctx_abandon_all(struct xnem_be_queue *q);
/** Forget all contexts of @q; unmaps. */
void xnem_ctx_forget_all(struct xnem_be_queue *q);
/** A wrong cookie or address of @ctx: costs it a token. */
void xnem_ctx_wrong(struct xnem_be_ctx *ctx);
bool xnem_ctx_rests(struct xnem_be_ctx *ctx);

/* inbox.c */
/** Give @ctx its inbox; the pages are mapped. */
enum xnem_status xnem_inbox_open(struct xnem_be_ctx *ctx, struct xnem_context_control *control,
				 struct xnem_inbox_slot *inbox, u32 slots);
/** Nobody puts anything there any more; the pages may be unmapped after this. */
void xnem_inbox_close(struct xnem_be_ctx *ctx);
enum xnem_status xnem_inbox_message(struct xnem_job *job, const struct xnem_request *req);
/** Tell the owners of the regions of a copy that is done, as its flags want it. */
enum xnem_status xnem_inbox_notify(struct xnem_job *job);

/* region.c */
struct xnem_zone *xnem_zone_get(const char *name);
void xnem_zone_put(struct xnem_zone *zone);
int xnem_region_init(void);
enum xnem_status xnem_region_register(struct xnem_be_ctx *ctx, const struct xnem_request *req,
				      u64 *id, u64 *key);
/** Find a region for a copy and become a user of it. */
struct xnem_region *xnem_region_use(struct xnem_zone *zone, u64 id, u64 key);
/** The same by the id alone, for measuring. */
struct xnem_region *xnem_region_use_any(u64 id);
void xnem_region_drop(struct xnem_region *r);
/** Begin the end of a region; @job is answered after it. */
enum xnem_status xnem_region_deregister(struct xnem_be_ctx *ctx, u64 id, struct xnem_job *job);
/** Begin the end of all regions of @ctx; with @gone their owner has gone. */
void xnem_region_end_all(struct xnem_be_ctx *ctx, bool gone);
/** Wait until no region of @dev is left; bounded by the batches under way. */
void xnem_region_wait_gone(struct xnem_be *dev);
/** Counts regions that ended while copies used them. */
int xnem_region_endings(void);
/** Answer for and free what nobody uses any more. */
bool xnem_region_reap(struct xnem_worker *w);

/** Bytes from @pos on that are in one stretch of pages, and where that begins. */
static inline u64 xnem_region_find(const struct xnem_region *r, u64 pos, u64 *page_pos)
{
	if (r->segs)
		return xnem_segs_find(r->segs, r->nr_segs, pos, page_pos);
	*page_pos = r->offset + pos;
	return r->length - pos;
}

/* worker.c */
extern unsigned int xnem_nr_workers;
/** The module is about to be unloaded: guests hear nothing until their devices go. */
extern bool xnem_leaving;
int xnem_workers_start(void);
void xnem_workers_stop(void);
/** Choose a worker for a queue. */
void xnem_worker_assign(struct xnem_be_queue *q);
void xnem_worker_unassign(struct xnem_be_queue *q);
/** Let it be served; everything of it is set up. */
void xnem_worker_serve(struct xnem_be_queue *q);
/** Never served again; its copies end, its device's regions go. */
void xnem_worker_remove(struct xnem_be_queue *q);
void xnem_worker_kick(struct xnem_worker *w);
void xnem_workers_kick_all(void);

/* copy.c */
/** Put a small copy behind the others of its context. */
void xnem_copy_add(struct xnem_job *job);
/** Take it out again; no batch is under way. */
void xnem_copy_remove(struct xnem_job *job);
/** Copy up to a batch for the queues whose turn it is; true when it did. */
bool xnem_copy_run(struct xnem_worker *w);
/** End the copies of ending regions; not while a batch is under way. */
void xnem_copy_end_dying(struct xnem_worker *w);
/** Bytes pos .. end - 1 of a copy, for as long as all goes well: advances pos. */
enum xnem_status xnem_copy_chunk(struct xnem_worker *w, struct xnem_chunk *c);
/** Read the @nr descriptor pages @refs of @ctx's domain into worker->desc. */
enum xnem_status xnem_copy_descriptors(struct xnem_be_queue *q, const xnem_le32 *refs, u32 nr);
/** Xen wants a copy repeated: may it be? Not after XNEM_BE_EAGAIN_MS; @until is the copy's. */
bool xnem_copy_again(unsigned long *until);
/** A copy ended with @status: the regions' end may be the reason. */
enum xnem_status xnem_copy_why(const struct xnem_job *job, enum xnem_status status);
/** Is a region of it at its end? */
bool xnem_copy_dying(const struct xnem_job *job);

/* large.c */
extern spinlock_t xnem_large_lock;
extern wait_queue_head_t xnem_large_done;
/** Let workers have chunks of @job, which is in no list (xnem_large_lock held). */
void xnem_large_enqueue(struct xnem_job *job);
/** xnem_large_stop() with xnem_large_lock held. */
void xnem_large_stop_locked(struct xnem_job *job, enum xnem_status status);
void xnem_large_add(struct xnem_job *job);
/** No more chunks of it; it ends with @status unless it failed before. */
void xnem_large_stop(struct xnem_job *job, enum xnem_status status);
/** Stop those of ending regions. */
void xnem_large_stop_dying(void);
/** Copy a chunk; true when there was one. */
bool xnem_large_run(struct xnem_worker *w);
/** Is there a chunk to be had? */
bool xnem_large_pending(void);
/** End what has come home; true when something had. */
bool xnem_large_reap(struct xnem_worker *w);
/** Wait until no worker has a chunk of @q, or uses its device's windows; bounded. */
void xnem_large_wait(struct xnem_be_queue *q);

/* window.c */
/** The frontend keeps grants for @nr windows. */
int xnem_windows_open(struct xnem_be *dev, u32 nr);
/** No more wants. */
void xnem_windows_close(struct xnem_be *dev);
void xnem_windows_free(struct xnem_be *dev);
void xnem_window_want(struct xnem_job *job);
void xnem_window_release(struct xnem_job *job);
void xnem_window_describe(struct xnem_job *job, const struct xnem_request *req);
/** The describe request of @win is answered. */
void xnem_window_answered(struct xnem_window *win);
/** Is there a copy that waits for windows?  Then look at it now and then. */
bool xnem_windows_pending(void);
void xnem_windows_expire(void);

/** Does a copy need windows? */
static inline bool xnem_job_windowed(const struct xnem_job *job)
{
	return (job->src->flags | job->dst->flags) & XNEM_REGION_WINDOWED;
}

/* stats.c */
void xnem_stats_init(void);
void xnem_stats_exit(void);
void xnem_stats_add(struct xnem_be *dev);
void xnem_stats_remove(struct xnem_be *dev);

/* floor.c */
void xnem_floor_init(struct dentry *root);

#endif /* XNEM_BACKEND_H */
