/* SPDX-License-Identifier: MIT */
/*
 * What the files of libxnem share.  Nothing here leaves the library.
 */
#ifndef XNEM_INTERNAL_H
#define XNEM_INTERNAL_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/xnem.h>

#include "wire.h"
#include "xnem.h"

#define XNEM_HIDDEN __attribute__((visibility("hidden")))
#define XNEM_API __attribute__((visibility("default")))

/** Requests of one submit call of the kernel. */
#define XNEM_SUBMIT_MAX 1024
/** Completions fetched by one call of the kernel. */
#define XNEM_FETCH_MAX 128
/** End of a list of slots. */
#define XNEM_NO_SLOT UINT32_MAX
/** A deadline that never comes. */
#define XNEM_NEVER INT64_MAX
/** Pauses of a call that waits for room, when nothing of its own is in flight. */
#define XNEM_PAUSE_MIN_NS 50000
#define XNEM_PAUSE_MAX_NS 2000000
/** Looks at own memory for which the kernel is asked once. */
#define XNEM_LOOKS_PER_CALL 1024

enum slot_state {
	SLOT_FREE = 0,
	/** handed to the kernel by a submit call that has not returned */
	SLOT_SUBMITTING,
	/** the kernel has it */
	SLOT_INFLIGHT,
	/** ended, its end not reported */
	SLOT_DONE,
};

/** What a thread that waits will look at. */
#define WANT_EVENTS (1u << 0)
#define WANT_INBOX (1u << 1)

/** How a request's end is reported, and what is known of its regions. */
#define SLOT_EVENT (1u << 0) /* by xnem_get_events(), not by handle */
#define SLOT_ORPHAN (1u << 1) /* to nobody */
#define SLOT_OWN (1u << 2) /* one side is a region of this context */
#define SLOT_PAGE (1u << 3) /* its completion is on the completion page */
#define SLOT_SHORT (1u << 4) /* success may mean fewer bytes */
#define SLOT_NO_BYTES (1u << 5) /* no copy: success means all of it */
#define SLOT_PIECE (1u << 6) /* part of a group */
#define SLOT_GROUP (1u << 7) /* ends when its pieces have; unknown to the kernel */
#define SLOT_CANCEL (1u << 8) /* group: no more pieces are wanted */

/** A request between its start and the report of its end. */
struct slot {
	/** counts uses of the slot, so that a stale handle is told apart */
	uint32_t gen;
	/** next free slot, or next event to report */
	uint32_t next;
	enum slot_state state;
	unsigned int flags;
	int32_t status;
	/** see xnem.epoch */
	uint64_t epoch;
	uint64_t user_data;
	uint64_t length;
	uint64_t bytes;
	/** fabric id when it was started */
	uint64_t fabric;
	/** piece: its group, and where it stands in the whole */
	xnem_req group;
	uint64_t pos;
	/** group: pieces that have not ended; the failed one nearest to the start */
	uint32_t left;
	uint64_t failed_pos;
};

/** Pieces of a group that there was no room for yet. */
struct xnem_vector {
	struct xnem_vector *next;
	xnem_req group;
	struct xnem_uapi_cookie remote;
	uint64_t remote_off;
	bool put;
	/** pieces, started ones, and bytes of these */
	unsigned int count, started;
	uint64_t pos;
	struct iovec iov[];
};

/** Have the context's pages been mapped? */
enum pages_state {
	/** not tried yet: there was no backend */
	PAGES_NONE = 0,
	/** a thread is about to */
	PAGES_OPENING,
	PAGES_OPEN,
	/** there are none for this context */
	PAGES_REFUSED,
};

struct xnem_region {
	struct xnem *ctx;
	struct xnem_region *prev, *next;
	void *addr;
	size_t length;
	unsigned int flags;
	uint32_t handle;
	struct xnem_cookie cookie;
};

struct xnem {
	int fd;
	/** for xnem_fd(): epoll over fd and wake_fd; -1 until asked for */
	int poll_fd;
	/** eventfd: something was completed by a thread's fetch */
	int wake_fd;

	/**
	 * Tells a child of fork: a page that reads as zero there
	 * (MADV_WIPEONFORK), so that no call costs a getpid().  NULL where the
	 * kernel has no such thing: pid is compared then.
	 */
	uint32_t *alive;
	pid_t pid;

	/** fabric id as last heard of; 0: no backend */
	_Atomic uint64_t fabric;
	/** system calls made on the device */
	_Atomic uint64_t syscalls;

	/** protects all below; never held over a system call that waits */
	pthread_mutex_t lock;
	/** slots changed, or the fetcher has left */
	pthread_cond_t changed;
	/** threads that wait for changed; and one ever has */
	unsigned int waiters;
	bool shared;
	/**
	 * A thread is inside XNEM_IOC_COMPLETE.  Only one is at a time: two
	 * could take each other's completions and then sleep for nothing.
	 * Everybody else sleeps on changed.
	 */
	bool fetching;

	struct slot *slots;
	uint32_t nr_slots;
	uint32_t free_slot;
	/** events to report, oldest first */
	uint32_t event_head, event_tail;
	/** event requests started and not reported */
	uint32_t events_open;
	/** slots in these states */
	uint32_t submitting, inflight;
	/** The context's pages, mapped as one. */
	enum pages_state pages;
	void *pages_addr;
	size_t pages_len;
	/** fabric id of the backend that writes them */
	uint64_t pages_fabric;
	struct xnem_context_control *control;
	/**
	 * The completion page, or NULL; entries read (by the fetcher alone), and
	 * requests whose entry has not been read.
	 */
	const struct xnem_cpage_entry *page;
	uint32_t page_read;
	uint32_t page_open;
	/** the backend that wrote it is gone */
	bool page_gone;
	/**
	 * The inbox, or NULL, and its slots, a power of two.  All slots below
	 * seen_message are free of messages that were not taken, all below
	 * seen_notify of notifications; what is below both has gone back to the
	 * backend.  known: slots that are known to have been written.
	 */
	const struct xnem_inbox_slot *inbox;
	uint32_t inbox_slots;
	uint32_t seen_message, seen_notify, inbox_known;
	/** why it has ended; 0: it has not; and get_events has said so */
	int inbox_error;
	bool inbox_error_told;
	/** notifications are reported before ends; the other way the next time */
	bool notify_first;
	/** looks at the inbox that found no message */
	uint32_t inbox_looks;
	/** the kernel woke up the fetcher for nothing: see xnem_fetch() */
	bool doubt;
	/** how long a wait looks at the page before it asks the kernel */
	int64_t spin_ns;
	/** looks at the page since the kernel was asked */
	uint32_t looks;
	/**
	 * Advances with each fetch.  A slot in flight with an older epoch was
	 * in the kernel before the fetch began: if the kernel says that
	 * nothing is in flight, that request is lost.
	 */
	uint64_t epoch;

	/** pieces to start when there is room; a thread is at it */
	struct xnem_vector *deferred;
	bool pumping;

	struct xnem_region *regions;
};

/* context.c */
XNEM_HIDDEN int xnem_own(const struct xnem *ctx);
XNEM_HIDDEN int xnem_ioctl(struct xnem *ctx, unsigned long call, void *arg);
XNEM_HIDDEN int xnem_refresh(struct xnem *ctx, struct xnem_info *info);
XNEM_HIDDEN int xnem_check_fabric(struct xnem *ctx, uint64_t fabric, int other_life);

/* page.c */
XNEM_HIDDEN void xnem_pages_open(struct xnem *ctx, const struct xnem_info *info);
XNEM_HIDDEN void xnem_pages_close(struct xnem *ctx);
XNEM_HIDDEN bool xnem_page_news(const struct xnem *ctx);
XNEM_HIDDEN unsigned int xnem_page_take(struct xnem *ctx, struct xnem_complete *done,
					unsigned int max);
XNEM_HIDDEN unsigned int xnem_page_spin(struct xnem *ctx, struct xnem_complete *done,
					unsigned int max, const uint32_t *inbox_known,
					int64_t timeout_ns);

/* inbox.c */
XNEM_HIDDEN bool xnem_inbox_news(const struct xnem *ctx, uint32_t known);
XNEM_HIDDEN void xnem_inbox_look(struct xnem *ctx);
XNEM_HIDDEN bool xnem_inbox_take(struct xnem *ctx, uint32_t kind, struct xnem_inbox_slot *slot);
XNEM_HIDDEN int xnem_inbox_alive(struct xnem *ctx);

/* region.c */
XNEM_HIDDEN int xnem_end_region(struct xnem_region *region);

/* cache.c */
XNEM_HIDDEN void xnem_cache_open(struct xnem *ctx);

/* cookie.c */
XNEM_HIDDEN void xnem_bytes_pack(unsigned char bytes[XNEM_COOKIE_SIZE],
				 const struct xnem_uapi_cookie *in, uint64_t fabric);
XNEM_HIDDEN void xnem_bytes_unpack(const unsigned char bytes[XNEM_COOKIE_SIZE],
				   struct xnem_uapi_cookie *out);
XNEM_HIDDEN uint64_t xnem_bytes_fabric(const unsigned char bytes[XNEM_COOKIE_SIZE]);

/* request.c */
XNEM_HIDDEN int xnem_start(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n,
			   unsigned int flags);
XNEM_HIDDEN int xnem_start_pieces(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n,
				  xnem_req group, uint64_t pos);
XNEM_HIDDEN xnem_req xnem_new_group(struct xnem *ctx, uint32_t pieces, uint64_t length,
				    unsigned int flags, uint64_t user_data);
XNEM_HIDDEN void xnem_end_pieces(struct xnem *ctx, xnem_req group, uint32_t n, uint64_t pos,
				 int status);
XNEM_HIDDEN struct slot *xnem_find(struct xnem *ctx, xnem_req req);
XNEM_HIDDEN xnem_req xnem_slot_id(const struct xnem *ctx, const struct slot *slot);
XNEM_HIDDEN uint32_t xnem_pop_event(struct xnem *ctx);
XNEM_HIDDEN void xnem_free_slot(struct xnem *ctx, struct slot *slot);
XNEM_HIDDEN int xnem_fetch(struct xnem *ctx, int64_t timeout_ns, unsigned int want);

/* copy.c */
XNEM_HIDDEN int xnem_wait_for_room(struct xnem *ctx, int64_t *pause);
XNEM_HIDDEN int xnem_start_error(struct xnem *ctx, const struct xnem_submit_req *req, int err);
XNEM_HIDDEN int xnem_wait_to_the_end(struct xnem *ctx, xnem_req req, uint64_t *done);

/* vector.c */
XNEM_HIDDEN void xnem_pump(struct xnem *ctx);

/* wait.c */
XNEM_HIDDEN int64_t xnem_now(void);
XNEM_HIDDEN int64_t xnem_deadline(int64_t timeout_ns);
XNEM_HIDDEN int xnem_step(struct xnem *ctx, int64_t deadline, unsigned int want);
XNEM_HIDDEN void xnem_wake_poll(struct xnem *ctx);

#endif /* XNEM_INTERNAL_H */
