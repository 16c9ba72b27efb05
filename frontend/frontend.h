/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XNEM frontend: what its files share.
 *
 *   xenbus.c   the state machine: probe, connect, disconnect
 *   queue.c    rings: posting requests, taking completions, the event channel
 *   region.c   the life of a region, the end of a context, quarantine
 *   cache.c    regions that are kept for the next use of the same memory
 *   window.c   regions that are granted piece by piece
 *   page.c     a context's own pages: completion page, inbox, control page
 *   pin.c      memory: pinning, charging, granting, revoking
 *   chardev.c  /dev/xnem<N>: contexts, ioctls, waiting
 *   stats.c    counters in debugfs
 *   trace.h    trace points
 *
 * Locks.  fe->lock (a spinlock, taken by the interrupt handler too) guards
 * rings, the request table, the states of regions and the lists of contexts.
 * Nothing that sleeps happens under it.  What must sleep after a completion
 * (revoking, unpinning, freeing) is done by fe->reap, a work item.  A context's
 * cache has a spinlock of its own, taken within fe->lock or alone: notifiers of
 * the process' memory take it.
 *
 * Who holds whom.  A context holds the device; a request in flight, a region
 * that is not dead, and an open file hold the context.  The last put of a
 * context may come from the interrupt handler, so it is freed by fe->reap.
 */
#ifndef XNEM_FRONTEND_H
#define XNEM_FRONTEND_H

#include <linux/eventfd.h>
#include <linux/idr.h>
#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/xnem.h>

#include "xnem_check.h"
#include "xnem_compat.h"
#include "xnem_ring.h"

/**
 * Requests kept for what must not fail, ends of regions and contexts: at most
 * so many, and at most a quarter.
 */
#define XNEM_FE_CONTROL_RESERVE 16
/** How long a backend may take to let go before it counts as stuck. */
#define XNEM_FE_STUCK (5 * HZ)
/**
 * How long references live on after a backend that did not say that it had
 * let go: a copy under way takes them one by one.
 */
#define XNEM_FE_LINGER HZ
/** Completions a context keeps for its process: a power of two. */
#define XNEM_FE_DONE 256
/** Order of an inbox: 4 pages, 128 slots. */
#define XNEM_FE_INBOX_ORDER 2
/** Queues of a device, at most, and pages that it grants for all of them. */
#define XNEM_FE_QUEUES 8
#define XNEM_FE_QUEUE_PAGES 128
/** How often what is in quarantine is tried again. */
#define XNEM_FE_QUARANTINE_RETRY (HZ / 10)
/** Failures to connect in a row after which the device stays closed. */
#define XNEM_FE_FAILURES 5

/** Windows of a device, at most. */
#define XNEM_FE_WINDOWS 8u

/** Xen pages in a page of this kernel: 1 on x86, 4 or 16 with larger pages. */
#define XEN_PER_PAGE (PAGE_SIZE / XNEM_PAGE_SIZE)

/** Features this frontend uses when they are offered. */
#define XNEM_FE_FEATURES                                                            \
	(XNEM_FEAT_CPAGE | XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY | XNEM_FEAT_FENCE | \
	 XNEM_FEAT_CANCEL | XNEM_FEAT_SEGMENTS | XNEM_FEAT_WINDOW)

/** Counters of a device; "key value" lines in debugfs, in this order. */
#define XNEM_FE_STATS(X)   \
	X(requests)        \
	X(completions)     \
	X(bytes)           \
	X(events_sent)     \
	X(events_received) \
	X(events_spurious) \
	X(messages)        \
	X(attention)       \
	X(cancels)         \
	X(registered)      \
	X(deregistered)    \
	X(pinned)          \
	X(unpinned)        \
	X(granted)         \
	X(revoked)         \
	X(deferred)        \
	X(desc_pages)      \
	X(cache_hits)      \
	X(cache_misses)    \
	X(cache_stale)     \
	X(cache_evicted)   \
	X(windows_wanted)  \
	X(windows_granted) \
	X(windows_refused) \
	X(error_pin)       \
	X(error_memlock)   \
	X(error_grants)    \
	X(error_status)    \
	X(error_protocol)  \
	X(error_disconnect)

enum xnem_fe_stat {
#define X(name) XNEM_FE_STAT_##name,
	XNEM_FE_STATS(X) XNEM_FE_STAT_COUNT
#undef X
};

#define xnem_stat_add(fe, name, n) atomic64_add(n, &(fe)->stats[XNEM_FE_STAT_##name])
#define xnem_stat_inc(fe, name) xnem_stat_add(fe, name, 1)

enum xnem_fe_phase {
	/** No backend. */
	XNEM_FE_DOWN,
	/** Rings are shared, the backend is not connected yet. */
	XNEM_FE_SETUP,
	/** Requests can be posted. */
	XNEM_FE_UP,
};

struct xnem_cached;
struct xnem_ctx;
struct xnem_ctx_pages;
struct xnem_region;
struct xnem_window;

/** A request in flight; its index is the wire id. */
struct xnem_rq {
	bool busy;
	u16 op;
	/** XNEM_REQ_* */
	u16 flags;
	/** It reads the descriptor pages until it is answered. */
	bool uses_desc;
	/** The backend was asked to end it. */
	bool cancelled;
	struct xnem_ctx *ctx;
	struct xnem_region *region;
	/** Copy: what it uses of the context's cache, source and destination. */
	struct xnem_cached *use[2];
	u64 user_data;
	u64 length;
};

/** A queue; all of it under fe->lock, but for making and ending it. */
struct xnem_fe_queue {
	struct xnem_fe *fe;
	struct xnem_queue_header *header;
	struct xnem_request *sq;
	struct xnem_completion *cq;
	grant_ref_t header_ref;
	grant_ref_t sq_refs[1u << XNEM_RING_ORDER_MAX];
	grant_ref_t cq_refs[1u << XNEM_RING_ORDER_MAX];
	u32 sq_pages;
	u32 cq_pages;
	u32 sq_size;
	u32 cq_size;
	u32 sq_prod;
	/** sq_prod that the backend has been shown. */
	u32 sq_shown;
	u32 cq_cons;
	/**
	 * Who wants an event with the next completion: requests whose
	 * completion is not on a completion page, and processes that sleep.
	 * Without any, completions are taken when something is submitted.
	 */
	u32 want_events;
	/** want_events was 0, and the ring was not armed since. */
	bool arm;
	/** Contexts that want to be told of what comes into their inbox. */
	u32 want_attention;
	/** Something was taken since the last EOI. */
	bool took;
	evtchn_port_t port;
	int irq;
	char name[24];
	struct xnem_rq *rqs;
	u32 nr_rqs;
	u32 *free_ids;
	u32 nr_free;
};

struct xnem_fe {
	struct kref ref;
	struct xenbus_device *xdev; /* NULL once removed */
	u32 id;
	char name[16];
	struct miscdevice misc;
	bool trusted;

	/** Connecting and disconnecting. */
	struct mutex state_lock;
	struct work_struct break_work;
	/** The backend was asked to let go and does not answer. */
	struct delayed_work stuck_work;

	spinlock_t lock;
	enum xnem_fe_phase phase;
	bool removed;
	/** Ends are asked for, nothing new is begun. */
	bool closing;
	/** What cannot be revoked any more is left to the kernel. */
	bool defer;
	/** No reference is revoked before this jiffy; 0: no need to wait. */
	unsigned long revoke_after;
	/** The backend broke the protocol: not used again before re-attach. */
	bool broken;
	/** Why; for the one message that is written about it. */
	const char *broke;
	/** Not in xenstore any more: nobody is asked or told. */
	bool stale;
	unsigned int failures;
	/**
	 * A page of a queue was still in use when it was to be revoked; and
	 * connections of which that was so.
	 */
	bool kept;
	unsigned int kept_lives;
	/** Counts connections: regions and contexts of another life are gone. */
	u32 life;
	domid_t backend;
	struct xnem_limits limits;
	u64 features;
	u64 fabric_id;
	/** A context's requests all go to xnem_ctx_queue(). */
	struct xnem_fe_queue queues[XNEM_FE_QUEUES];
	/** 0: nothing is shared. */
	u32 nr_queues;
	/** Descriptor pages, granted for as long as the queues live. */
	void *desc[XNEM_INLINE_REFS];
	grant_ref_t desc_ref[XNEM_INLINE_REFS];
	u32 nr_desc;
	/** Taken by one registration at a time, until the backend answered. */
	bool desc_busy;
	/** Requests a context may have in flight or unfetched. */
	u32 ctx_quota;
	struct list_head contexts;
	/** Contexts by number. */
	struct xarray numbers;
	/** Xen pages of regions, quarantine included, and how many may be. */
	u32 used_pages;
	u32 max_pages;
	/** Regions whose end could not be posted for want of a request. */
	struct list_head pending;
	/** Contexts likewise. */
	struct list_head pending_ctx;
	/** Regions to revoke, and those the backend does not let go of. */
	struct list_head ended;
	struct list_head quarantine;
	u32 quarantined; /* references */
	u32 nr_regions;
	u32 nr_contexts;
	struct llist_head dead_ctx;
	struct delayed_work reap;
	/** Windows of this connection. */
	struct xnem_window *window[XNEM_WINDOWS_MAX];
	u32 nr_windows;
	/** All, also of earlier ones that are in use still; under window_lock. */
	struct list_head windows;
	struct mutex window_lock;
	struct delayed_work window_work;
	/** Windowed regions by backend_id. */
	struct rb_root windowed;
	/** Waits for descriptor pages. */
	wait_queue_head_t desc_wait;
	atomic64_t stats[XNEM_FE_STAT_COUNT];
	struct dentry *debugfs;
};

enum xnem_region_state {
	/** Being pinned and granted; a disconnect leaves it to who does that. */
	XNEM_REGION_NEW,
	/** Posted, not answered. */
	XNEM_REGION_REGISTERING,
	XNEM_REGION_LIVE,
	/** Its end is posted, or waits to be. */
	XNEM_REGION_ENDING,
	/** The backend has let go, or is gone: to be revoked. */
	XNEM_REGION_ENDED,
	/** Some references could not be revoked. */
	XNEM_REGION_QUARANTINED,
	/** Revoked and unpinned. */
	XNEM_REGION_DEAD,
};

/** A segment of a region: pages in a row. */
struct xnem_piece {
	/** In the process, when it was registered. */
	u64 addr;
	u64 length;
	/** First byte within the first Xen page. */
	u32 offset;
	/** First Xen page within the first page of this kernel; 0 with 4 KiB. */
	u32 first;
	/** Its first Xen page among the region's, and its first page in pages[]. */
	u32 xen;
	u32 page;
};

struct xnem_region {
	struct kref ref;
	struct xnem_ctx *ctx;
	struct list_head entry; /* ctx->regions */
	struct list_head list; /* fe->pending, ended or quarantine */
	enum xnem_region_state state;
	/** A request that names it is in flight: it ends by that one's end. */
	bool posted;
	/** The backend had it. */
	bool known;
	/** The registering process did not wait for the answer. */
	bool abandoned;
	u32 life;
	u32 handle;
	/** Why it was not registered: negative errno. */
	int error;
	u64 backend_id;
	u64 key;
	/** A context's pages: the frontend's, not a process's. */
	bool cpage;
	u32 access;
	u64 length;
	/** One or more; most regions have but one. */
	struct xnem_piece *pieces;
	struct xnem_piece one;
	u32 nr_pieces;
	/** Not for the cache: a notifier does not tell all that matters. */
	bool transient;
	/** Xen pages. */
	u32 nr_xen;
	/** Granted by windows only: windows that show it now. */
	bool windowed;
	u32 windows;
	/** One of them cannot be revoked. */
	bool stuck;
	/** Ended but for them; in no list. */
	bool parked;
	struct rb_node by_id;
	struct page **pages;
	u32 nr_pages;
	/** Pages charged to mm->pinned_vm. */
	u32 charged;
	/** One a Xen page, or none; those below nr_granted are granted or 0. */
	u32 *refs;
	u32 nr_refs;
	u32 nr_granted;
	/** Of these, still in use at the last try to revoke. */
	u32 left;
};

/** Regions that are kept (cache.c). */
struct xnem_cache {
	spinlock_t lock;
	/** Those that can be hit, by address. */
	struct rb_root_cached tree;
	/** All, by handle. */
	struct idr entries;
	/** Without a use, the least recently used one first; their Xen pages. */
	struct list_head idle;
	u64 idle_pages;
	u64 max_pages;
	/** To be deregistered, by the work. */
	struct list_head ended;
	struct work_struct work;
	bool closed;
	u64 hits, misses, stale, evicted;
};

/** One open of the device. */
struct xnem_ctx {
	struct kref ref;
	struct xnem_fe *fe;
	struct list_head entry; /* fe->contexts */
	struct list_head pending; /* fe->pending_ctx */
	struct llist_node dead;
	/** Compared, and charged for pins; not used otherwise (mmgrab). */
	struct mm_struct *mm;
	u64 tag;
	u32 number;
	/** fe->life in which something of it was posted. */
	u32 life;
	bool closing;
	/** Its end is posted, or waits to be. */
	bool close_posted;
	u32 registering;
	u32 inflight;
	/** Completions between done_cons and done_prod wait to be fetched. */
	u32 done_prod;
	u32 done_cons;
	struct xnem_complete *done;
	/** What the backend has of its pages, or NULL (fe->lock). */
	struct xnem_region *cpage;
	/** Something can come into its inbox. */
	bool inbox_live;
	/** Made once in a context's life. */
	bool had_cpage;
	/** The pages, also when no backend has them; set once (page.c). */
	struct xnem_ctx_pages *pages;
	/** Entries on its completion page that the completion ring has confirmed. */
	u32 cpage_done;
	/** Threads that sleep in XNEM_IOC_COMPLETE, and of these on the inbox. */
	u32 sleepers;
	u32 inbox_sleepers;
	/** Somebody polls the file, from then on whenever he likes. */
	bool polled;
	struct eventfd_ctx *eventfd;
	/** It counts in its queue's want_events, want_attention. */
	bool wants_events;
	bool wants_attention;
	/** For XNEM_IOC_STATS. */
	u64 nr_requests;
	u64 nr_completions;
	u64 nr_errors;
	u64 nr_bytes;
	struct list_head regions;
	/** Regions that were made, and that are no more; Xen pages that are pinned now. */
	u64 registered;
	u32 given_back;
	/** Windows that were granted. */
	u64 windows;
	atomic64_t pinned;
	struct xnem_cache cache;
	/** Regions by handle, under handle_lock. */
	struct idr handles;
	struct mutex handle_lock;
	/** One thread at a time takes completions out. */
	struct mutex fetch_lock;
	wait_queue_head_t wait;
};

/* main.c */
extern struct workqueue_struct *xnem_wq;

/* xenbus.c */
int xnem_fe_xenbus_init(void);
void xnem_fe_xenbus_exit(void);
void xnem_fe_get(struct xnem_fe *fe);
void xnem_fe_put(struct xnem_fe *fe);
/** Xen pages of regions of all devices together, at most. */
u32 xnem_page_budget(void);

/** Queues of a device, at most; 0: as many as are of use. */
extern unsigned int xnem_max_queues;
/** Entries of the grant table: what all users of the domain share. */
u32 xnem_grants_total(void);

/* queue.c */
int xnem_queues_setup(struct xnem_fe *fe);
/** The backend may begin. */
void xnem_queues_start(struct xnem_fe *fe);
/** Stop events and fail what is in flight; then free the rings. */
void xnem_queues_teardown(struct xnem_fe *fe);
/**
 * Put a request on the context's ring, without a context on queue 0's
 * (fe->lock held); xnem_queue_flush() shows it.
 * @req: without its id, context and tag, which are filled in.
 * @control: may use the reserve.
 * Returns 0, -EAGAIN (nothing free), -ENOTCONN or -ENODEV.
 */
int xnem_queue_post(struct xnem_fe *fe, struct xnem_ctx *ctx, struct xnem_region *region,
		    struct xnem_request *req, bool control);
void xnem_queue_flush(struct xnem_fe *fe);
/** 0, or why no request can be made now (fe->lock not needed). */
int xnem_queue_state(const struct xnem_fe *fe);
/** The backend does not keep to the protocol (fe->lock held). */
void xnem_queue_break(struct xnem_fe *fe, const char *why);
/** Take what is answered when no event tells (fe->lock held). */
void xnem_queue_poll(struct xnem_ctx *ctx);
/** Events are wanted from now on; takes effect with xnem_queue_flush(). */
void xnem_queue_want_events(struct xnem_fe_queue *q);
void xnem_queue_unwant_events(struct xnem_fe_queue *q);
/**
 * Who waits for something of @ctx has changed (fe->lock held): count it at its
 * queue.  Takes effect with xnem_queue_flush().
 */
void xnem_ctx_wants(struct xnem_ctx *ctx);
/** Ask for the end of requests (fe->lock held); @count: of how many. */
int xnem_queue_cancel(struct xnem_ctx *ctx, u64 user_data, u32 *count);
/** Its number says which: the protocol wants all of a context on one. */
static inline struct xnem_fe_queue *xnem_ctx_queue(struct xnem_ctx *ctx)
{
	struct xnem_fe *fe = ctx->fe;

	return &fe->queues[fe->nr_queues ? ctx->number % fe->nr_queues : 0];
}

/* region.c */

/** Memory that is to become a region. */
struct xnem_memory {
	const struct xnem_seg *seg;
	u32 nr;
	u32 access;
	/** XNEM_REG_* */
	u32 flags;
	u64 length;
	/** Xen pages; filled in by xnem_memory_check(). */
	u64 pages;
};

/** 0, or why it cannot be a region, as far as can be told without looking at it. */
int xnem_memory_check(struct xnem_fe *fe, struct xnem_memory *mem);
/**
 * Make a region of what was checked; the caller holds it.  Or an ERR_PTR, and
 * with -ENOMEM whether RLIMIT_MEMLOCK is the reason.  May drop cached regions
 * to make room.  @entry: of the cache, for which it is made, or NULL.
 */
struct xnem_region *xnem_region_make(struct xnem_ctx *ctx, const struct xnem_memory *mem,
				     struct xnem_cached *entry, bool *limit);
/** Begin the end of a region; does not wait. */
void xnem_region_let_go(struct xnem_region *region);
/** Wait until it has ended; -EINTR or 0. */
int xnem_region_wait(struct xnem_region *region);
/** Grants that no region can have: false, there are not so many. */
bool xnem_pages_reserve(u32 pages);
void xnem_pages_unreserve(u32 pages);
int xnem_ioc_register(struct xnem_ctx *ctx, void __user *uarg);
int xnem_region_deregister(struct xnem_ctx *ctx, u32 handle);
/**
 * A region of @pages Xen pages within the device's budget, or an ERR_PTR.
 * Counted from here on: it ends by being reaped, whatever it came to.
 */
struct xnem_region *xnem_region_new(struct xnem_ctx *ctx, u32 pages);
/**
 * Post what makes @region known to the backend, and wait for the answer.
 * With @indirect the caller has taken the descriptor pages.
 */
int xnem_region_post(struct xnem_region *region, struct xnem_request *req, bool indirect);
/** It did not come about, after @err: end it, and wait until it has. */
void xnem_region_fail(struct xnem_region *region, int err);
void xnem_region_put(struct xnem_region *region);
/** The answer to a register request (fe->lock held). */
void xnem_region_registered(struct xnem_region *region, int error, u64 id, u64 key);
/** The backend has let go of it (fe->lock held). */
void xnem_region_ended(struct xnem_region *region);
/** The backend has let go of all of a context (fe->lock held). */
void xnem_ctx_ended(struct xnem_ctx *ctx);
/** Begin the end of a context. */
void xnem_ctx_close(struct xnem_ctx *ctx);
/** The backend is gone: all regions of all contexts end (fe->lock held). */
void xnem_regions_orphan(struct xnem_fe *fe);
void xnem_reap_now(struct xnem_fe *fe);
void xnem_reap(struct work_struct *work);
void xnem_ctx_get(struct xnem_ctx *ctx);
void xnem_ctx_put(struct xnem_ctx *ctx);

/* pin.c */
/** Pin and charge; fills pages and nr_pages. Returns 0 or a negative errno. */
int xnem_pin(struct xnem_region *region, bool *limit);
void xnem_unpin(struct xnem_region *region);
int xnem_grant(struct xnem_region *region);
/** Revoke what can be; returns the number of references still in use. */
u32 xnem_revoke(struct xnem_region *region);
/** The page that has Xen page @i of a region, and its frame number for Xen. */
struct page *xnem_region_page(const struct xnem_region *region, u32 i);
unsigned long xnem_region_gfn(const struct xnem_region *region, u32 i);

/* cache.c */
void xnem_cache_init(struct xnem_ctx *ctx);
/** The context ends: what was got is given back, nothing is kept any more. */
void xnem_cache_close(struct xnem_ctx *ctx);
void xnem_cache_free(struct xnem_ctx *ctx);
/** The backend is gone, and with it all regions (fe->lock held). */
void xnem_cache_orphan(struct xnem_ctx *ctx);
/** As xnem_pin(), for an entry that a notifier watches. */
int xnem_cache_pin(struct xnem_cached *entry, struct xnem_region *region, bool *limit);
/**
 * Deregister about @pages Xen pages that nobody uses, of this process and, with
 * @device, of others.  Returns 1 when some went, 0 when there are none, -EINTR.
 */
int xnem_cache_shrink(struct xnem_ctx *ctx, u64 pages, bool device);
/**
 * Put regions in the place of addresses in the first @n requests.  Returns how
 * many requests are ready; fewer than @n: @err says why.  What @use then holds
 * goes to the requests, or is given back.
 */
u32 xnem_cache_addresses(struct xnem_ctx *ctx, struct xnem_submit_req *reqs, u32 n,
			 struct xnem_cached *(*use)[2], int *err);
/** Does the region of this use still live? NULL: there is none to. (fe->lock held) */
bool xnem_cache_lives(const struct xnem_cached *use);
/** A use ends; NULL is none.  From any context. */
void xnem_cache_unuse(struct xnem_cached *use);
int xnem_ioc_cache_get(struct xnem_ctx *ctx, void __user *uarg);
int xnem_ioc_cache_put(struct xnem_ctx *ctx, void __user *uarg);
int xnem_ioc_cache_limit(struct xnem_ctx *ctx, void __user *uarg);
/** Fill in what regions and the cache know. */
void xnem_cache_stats(struct xnem_ctx *ctx, struct xnem_stats *stats);

/* page.c */
/** Bytes a process maps; 0: none are offered (fe->lock held). */
u32 xnem_pages_bytes(const struct xnem_ctx *ctx);
u32 xnem_pages_inbox_slots(const struct xnem_ctx *ctx);
/** Has the inbox more slots than the first @seen? */
bool xnem_pages_inbox_news(const struct xnem_ctx *ctx, u32 seen);
/** What the process says it has read of its inbox. */
u32 xnem_pages_inbox_cons(const struct xnem_ctx *ctx);
/** Is there more on the pages than the process says it has read? */
bool xnem_pages_poll(const struct xnem_ctx *ctx);
/** Make the context's pages and map them. May sleep. */
int xnem_pages_mmap(struct xnem_ctx *ctx, struct vm_area_struct *vma);
/** The backend has let go of @region (fe->lock held); it need not be one of pages. */
void xnem_pages_ended(struct xnem_region *region);
void xnem_pages_free(struct xnem_ctx *ctx);

/* window.c */
void xnem_windows_init(struct xnem_fe *fe);
/** Make windows for a backend; returns the grants that are set aside for them. */
u32 xnem_windows_setup(struct xnem_fe *fe);
/** The backend is gone: they go when they are revoked. */
void xnem_windows_down(struct xnem_fe *fe);
/** Are there some that are not gone yet? May sleep. */
bool xnem_windows_left(struct xnem_fe *fe);
/** What cannot be revoked is left to the kernel, as fe->defer says. */
void xnem_windows_defer(struct xnem_fe *fe);
void xnem_window_work(struct work_struct *work);
/** The backend wants windows; a description is answered (fe->lock held). */
void xnem_window_wanted(struct xnem_fe *fe);
void xnem_window_answered(struct xnem_fe *fe, u32 index);
/** A windowed region is known to the backend; is not any more (fe->lock held). */
void xnem_window_region_add(struct xnem_region *region);
void xnem_window_region_remove(struct xnem_region *region);
/** True: windows show the ended region; it is reaped after the last one. */
bool xnem_window_park(struct xnem_region *region);

/* chardev.c */
int xnem_chardev_add(struct xnem_fe *fe);
void xnem_chardev_remove(struct xnem_fe *fe);
/** Something may have come for it: wake who waits (fe->lock held). */
void xnem_ctx_wake(struct xnem_ctx *ctx);
/** A request of a context is answered (fe->lock held). */
void xnem_ctx_done(struct xnem_ctx *ctx, u64 user_data, u64 bytes_done, int status);
/** Likewise, and its entry is on the completion page. */
void xnem_ctx_cpage_done(struct xnem_ctx *ctx);

/* stats.c */
void xnem_stats_init(void);
void xnem_stats_exit(void);
void xnem_stats_add_device(struct xnem_fe *fe);
void xnem_stats_remove_device(struct xnem_fe *fe);

#endif /* XNEM_FRONTEND_H */
