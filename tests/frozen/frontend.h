/* SPDX-License-Identifier: MIT */
/*
 * A frontend of version 1 in user space, written from xnemif-1.h alone: one
 * device, one queue unless a test wants more.  What the guest's kernel gives it
 * are Xen's own devices: grants of pages (/dev/xen/gntalloc), event channels
 * (/dev/xen/evtchn) and xenstore (/dev/xen/xenbus); no module of XNEM's is
 * loaded.
 *
 * What the environment owes (a device, memory, an answer of xenstore) ends the
 * program with a message when it is missing.  What is tested returns.
 */
#ifndef FROZEN_FRONTEND_H
#define FROZEN_FRONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xnemif-1.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "fields of the wire are little-endian, and are used as they are here"
#endif

/** All that version 1 has. */
#define FROZEN_FEATURES                                                             \
	(XNEM_FEAT_CPAGE | XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY | XNEM_FEAT_FENCE | \
	 XNEM_FEAT_WINDOW | XNEM_FEAT_SEGMENTS | XNEM_FEAT_CANCEL)

/** States of section 2. */
enum state {
	STATE_GONE = 0,
	STATE_INITIALISING = 1,
	STATE_INIT_WAIT = 2,
	STATE_INITIALISED = 3,
	STATE_CONNECTED = 4,
	STATE_CLOSING = 5,
	STATE_CLOSED = 6,
};

/** For whatever has to come; a test that passes waits for none of it. */
#define PATIENCE_MS 20000

/** What call() says when nothing came: no status of the wire. */
#define NO_ANSWER 0xffff

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
uint64_t now_ms(void);

/** Pages that are granted to the backend's domain, and where they are here. */
struct pages {
	struct pages *next;
	uint64_t index;
	uint32_t nr;
	unsigned char *mem;
	uint32_t *ref;
};

/** What the backend offers. */
struct offers {
	uint32_t version_min, version_max;
	uint64_t features, fabric_id;
	uint32_t queues, sq_order, cq_order, inflight, contexts, regions, region_pages, pages,
		windows, window_pages;
};

/** How to connect; what is 0 is chosen by connect_device(). */
struct wish {
	const char *version;
	/** hexadecimal */
	const char *features;
	/** of queue 0's header page, instead of the one that is granted */
	const char *header_ref;
	uint32_t queues;
};

/** The most that a test wants. */
#define QUEUES_MAX 2

struct queue {
	/** header, submission ring, completion ring */
	struct pages *pages[3];
	struct xnem_queue_header *header;
	struct xnem_request *sq;
	struct xnem_completion *cq;
	uint32_t sq_size, cq_size, max_inflight;
	uint32_t sq_prod, sq_shown, cq_cons;
	uint32_t port;
	/** an event was taken and the channel is not open again */
	bool eoi_owed;
	/** seq of each window's last want that was looked at (queue 0) */
	uint32_t wants_seen[XNEM_WINDOWS_MAX];
	/** by request id */
	struct {
		bool busy, done;
		struct xnem_completion c;
	} * answers;
};

struct frontend {
	int xenbus, evtchn, gntalloc, kmsg;
	/** this device, and that of the other side */
	char dir[32], backend_dir[128];
	uint32_t domid, backend_id;
	struct offers offers;
	/** all that are granted */
	struct pages *pages;

	struct queue queues[QUEUES_MAX];
	uint32_t nr_queues;
	/** the one that is used: queue 0 unless a test says another */
	struct queue *q;
};

/** Opens Xen's devices and finds the XNEM device. */
void frontend_open(struct frontend *fe);

/** States 1, 3, 4, as far as it goes; false: the backend has refused. */
bool connect_device(struct frontend *fe, const struct wish *wish);
/** From whatever state to Closed, on both sides; false: the backend does not close. */
bool disconnect_device(struct frontend *fe);
void set_state(struct frontend *fe, enum state state);
enum state backend_state(struct frontend *fe);
/** Until the backend is in that state, or in the other one; false: it is in neither. */
bool wait_backend(struct frontend *fe, enum state a, enum state b, uint32_t ms);

/** New pages, zeroed. */
struct pages *grant_pages(struct frontend *fe, uint32_t nr, bool writable);
void revoke_pages(struct frontend *fe, struct pages *p);
/** Did the kernel find a revoked page still in use since it was last asked? */
bool revoked_in_use(struct frontend *fe);

/** Puts a request into the ring, with an id of its own, which it returns. */
uint32_t post(struct frontend *fe, const struct xnem_request *req);
/** The same without keeping account of ids and answers. */
void post_raw(struct frontend *fe, const struct xnem_request *req);
/** Shows the backend what was posted. */
void publish(struct frontend *fe);
/** The answer to a request; asleep until it comes.  NO_ANSWER: none in time. */
struct xnem_completion wait_for(struct frontend *fe, uint32_t id, uint32_t ms);
/** Has it been answered? */
bool answered(struct frontend *fe, uint32_t id);
/** post, publish and wait_for. */
struct xnem_completion call(struct frontend *fe, const struct xnem_request *req);
/** Sleeps until an event comes, at most so long; false: none came. */
bool wait_event(struct frontend *fe, uint32_t ms);
/** The same, and an answer makes one: returns at once when there is one already. */
void sleep_on_event(struct frontend *fe, uint32_t ms);

/* For tests/hostile, which builds these sources in; no promise of version 1. */

/** Longest message of xenstore. */
#define XS_MAX 4096
bool xs_read(struct frontend *fe, const char *dir, const char *node, char text[XS_MAX + 1]);
/** Any bytes into a node of the own directory; false: xenstore refuses. */
bool xs_write_raw(struct frontend *fe, const char *node, const void *value, size_t len);
void notify(struct frontend *fe);

#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define full_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif /* FROZEN_FRONTEND_H */
