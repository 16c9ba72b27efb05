/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XNEM backend: what its files share.
 *
 *   xenbus.c  the state machine: probe, connect, disconnect
 *   queue.c   rings: taking requests, answering them, the event channel
 *   region.c  zones, the table of regions, who uses one
 *   worker.c  the threads: whose turn it is, sleeping and waking
 *   copy.c    the copy engine: operations to hypercalls
 *   stats.c   counters in debugfs
 *   floor.c   what Xen alone takes for a copy, to measure against
 *
 * Threads and locks.  A queue belongs to one worker.  Everything of a queue
 * (rings, jobs, its part of the counters) is touched by that worker alone,
 * under worker->lock, or by the xenbus thread under the same lock.  Regions
 * are shared: any worker's copy can use any region of the zone, held by
 * region->users.  When the last user is gone the region travels to the worker
 * of its own queue (worker->released), which answers and frees.
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
#include "xnem_walk.h"

/** Queues a device may have; the protocol allows more, this backend not yet. */
#define XNEM_BE_QUEUES 1
/** What it offers. */
#define XNEM_BE_FEATURES XNEM_FEAT_CPAGE
/** Operations of one hypercall: an unaligned chunk of 256 KiB takes 129. */
#define XNEM_BE_BATCH 130
/** Bytes one queue may copy before the next one's turn (deficit round robin). */
#define XNEM_BE_QUANTUM (256u << 10)
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
struct xnem_be_queue;
struct xnem_worker;

/** Counters of a device; written by its worker alone, read without a lock. */
struct xnem_be_stats {
	u64 requests;
	u64 completions;
	/** Requests that were in flight when their queue was disconnected. */
	u64 dropped;
	/** Bytes copied for this device's requests. */
	u64 bytes;
	/** GNTTABOP_copy operations for data, and hypercalls they took. */
	u64 grant_ops;
	u64 hypercalls;
	/** Descriptor pages read (not part of grant_ops). */
	u64 desc_pages;
	/** Entries written to completion pages. */
	u64 cpage_entries;
	u64 events_sent;
	u64 events_received;
	u64 events_spurious;
	/** Times the worker found a ring empty and asked for an event. */
	u64 sleeps;
	u64 eagain;
	u64 throttled;
	u64 errors[XNEM_ST_MAX + 1];
};

/** Who may talk to whom.  Lives as long as a device is in it. */
struct xnem_zone {
	struct list_head entry;
	unsigned int users;
	u64 fabric_id;
	char name[XNEM_ZONE_NAME_MAX + 1];
};

/** A context's completion page, mapped. */
struct xnem_cpage {
	struct xnem_cpage_entry *entries;
	u32 prod;
};

/** A request in flight; from a queue's fixed pool. */
struct xnem_job {
	/** In queue->copies (copy), or nowhere (waiting for regions). */
	struct list_head entry;
	struct xnem_be_queue *queue;
	u32 id;
	u32 context;
	u16 op;
	/** XNEM_REQ_* */
	u16 flags;
	u64 user_data;
	/** Copy: the two regions, each with a user of its own. */
	struct xnem_region *src;
	struct xnem_region *dst;
	struct xnem_walk walk;
	u64 src_pos;
	u64 dst_pos;
	u64 length;
	u64 done;
	/** Runs in the batch that is under way, and what became of them. */
	u32 runs_pending;
	enum xnem_status failed;
	/** jiffies at which GNTST_eagain becomes an error; 0: none yet. */
	unsigned long eagain_until;
	/** Close context: regions still to be released. */
	u32 regions_left;
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
	/** Of the first byte within the first page. */
	u32 offset;
	u32 nr_pages;
	u32 context;
	domid_t domid;
	struct xnem_be *dev;
	struct xnem_zone *zone;
	struct xnem_worker *worker;
	/** Jobs to tell when the last user is gone; owned by worker. */
	struct xnem_job *dereg;
	struct xnem_job *close;
	struct list_head entry; /* dev->regions, under worker->lock */
	struct llist_node released;
	struct rcu_head rcu;
	/** nr_pages references; for its users alone, so freed with the last. */
	u32 *refs;
};

/** A context's wrong cookies: each costs a token; without any it rests. */
struct xnem_guesses {
	u32 spent;
	unsigned long since; /* jiffies of the last refill */
	unsigned long rest_until; /* jiffies; 0: it does not rest */
};

struct xnem_be_queue {
	struct xnem_be *dev;
	struct xnem_worker *worker;
	struct list_head entry; /* worker->queues */
	struct list_head turn; /* worker->active, when copies is not empty */
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
	struct list_head copies;
	/** Bytes it may still copy in this turn. */
	s64 deficit;
	struct xnem_job *jobs;
	struct list_head free_jobs;
	/** Most requests in flight, and how many are (answered ones not). */
	u32 inflight;
	u32 in_flight;
	/** One a context: wrong cookies. */
	struct xnem_guesses *guesses;
};

struct xnem_be {
	struct xenbus_device *xdev;
	struct list_head entry; /* devices, for stats */
	struct xnem_zone *zone;
	u32 device_id;
	u64 features;
	struct xnem_limits limits;
	bool connected;
	unsigned long connected_since; /* jiffies */
	/** Times in a row that connecting failed. */
	unsigned int failures;
	/** Its frontend broke the protocol: not served again before re-attach. */
	bool banned;
	struct work_struct ban_work;
	/** Connecting and disconnecting: the xenbus thread and the ban work. */
	struct mutex state_lock;
	struct xnem_be_queue queues[XNEM_BE_QUEUES];
	unsigned int nr_queues;
	/** Completion pages by context. */
	struct xarray cpages;
	struct list_head regions;
	u32 nr_regions;
	u32 nr_pages;
	/** Regions not freed yet, released ones included. */
	atomic_t live_regions;
	struct xnem_be_stats stats;
	u64 events_received; /* by the interrupt handler */
	struct dentry *debugfs;
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
	wait_queue_head_t wait;
	atomic_t kicked;
	/** xnem_region_endings() that it has acted upon. */
	int endings;
	unsigned int nr_queues;
	/** Scratch of copy.c. */
	struct gnttab_copy ops[XNEM_BE_BATCH];
	struct xnem_run runs[XNEM_BE_BATCH];
	unsigned int nr_runs;
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
/** Answer @job and give it back to the pool. */
void xnem_job_answer(struct xnem_job *job, enum xnem_status status, u64 bytes_done, u64 data0,
		     u64 data1);
/** Put a copy behind the others of its queue. */
void xnem_job_queue_copy(struct xnem_job *job);
/** End a copy: drop its regions, answer. */
void xnem_job_end_copy(struct xnem_job *job, enum xnem_status status);
/** End all copies of @context; of the whole queue with @all. */
void xnem_queue_cancel(struct xnem_be_queue *q, u32 context, bool all);

/** Unmap the completion page of @context; of all with @all. */
void xnem_cpage_close(struct xnem_be *dev, u32 context, bool all);

/* region.c */
struct xnem_zone *xnem_zone_get(const char *name);
void xnem_zone_put(struct xnem_zone *zone);
int xnem_region_init(void);
enum xnem_status xnem_region_register(struct xnem_be_queue *q, u32 context,
				      const struct xnem_request *req, u64 *id, u64 *key);
/** Find a region for a copy and become a user of it. */
struct xnem_region *xnem_region_use(struct xnem_zone *zone, u64 id, u64 key);
/** The same by the id alone, for measuring. */
struct xnem_region *xnem_region_use_any(u64 id);
void xnem_region_drop(struct xnem_region *r);
/** Begin the end of a region; @job (may be NULL) is answered after it. */
enum xnem_status xnem_region_deregister(struct xnem_be_queue *q, u32 context, u64 id,
					struct xnem_job *job);
/** Begin the end of all regions of @context; @job is answered after them. */
void xnem_region_close_context(struct xnem_be_queue *q, u32 context, struct xnem_job *job);
/** Wait until no region of @dev is left; bounded by the batches under way. */
void xnem_region_wait_gone(struct xnem_be *dev);
/** The owner has gone.  Caller holds worker->lock. */
void xnem_region_orphan_all(struct xnem_be *dev);
/** Counts regions that ended while copies used them. */
int xnem_region_endings(void);
/** Answer for and free what nobody uses any more. */
bool xnem_region_reap(struct xnem_worker *w);

/* worker.c */
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
/** Copy up to a batch for the queues whose turn it is; true when it did. */
bool xnem_copy_run(struct xnem_worker *w);
/** End the copies of ending regions; not while a batch is under way. */
void xnem_copy_end_dying(struct xnem_worker *w);
/** Read @count references from descriptor pages into @refs. */
enum xnem_status xnem_copy_descriptors(struct xnem_be_queue *q, const xnem_le32 *desc_refs,
				       u32 *refs, u32 count);

/* stats.c */
void xnem_stats_init(void);
void xnem_stats_exit(void);
void xnem_stats_add(struct xnem_be *dev);
void xnem_stats_remove(struct xnem_be *dev);

/* floor.c */
void xnem_floor_init(struct dentry *root);

#endif /* XNEM_BACKEND_H */
