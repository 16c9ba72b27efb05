/* SPDX-License-Identifier: MIT */
/*
 * xnemif.h - the XNEM wire protocol: memory to memory copies between guests
 *
 * This page is the whole contract between a frontend (in a guest) and a
 * backend (in a driver domain or dom0).  Another frontend can be written from
 * it alone.  It describes protocol version 0, which may change with any
 * commit until it becomes version 1; both sides refuse a version they do not
 * know.
 *
 * All fields are little-endian.  All layouts are the same for 32-bit and
 * 64-bit guests and for every PAGE_SIZE: whatever is called a page here is a
 * Xen page of 4096 bytes (XNEM_PAGE_SIZE).  Every field called pad or
 * reserved is written as zero and refused when it is not (status
 * XNEM_ST_INVALID), so that a later version can give it a meaning.
 *
 * Trust.  The backend trusts nothing that a frontend writes: requests and
 * descriptor pages are copied to private memory once and checked there.  A
 * frontend believes a completion only as far as it matches a request it has
 * in flight.  The backend maps the queue's own pages and completion pages,
 * nothing else; data and descriptor pages are reached by GNTTABOP_copy alone.
 *
 *
 * 1. Xenstore
 * ===========
 *
 * A device is the pair of directories that the toolstack makes in one
 * transaction, with state = 1 written last on both sides:
 *
 *   /local/domain/<guest>/device/xnem/<id>/                 n<guest>,r<backend>
 *     backend      path of the backend's directory
 *     backend-id   domid of the backend's domain
 *     state        enum xenbus_state
 *     trusted      (optional) "0": the frontend grants no byte of a page that
 *                  is not its region's (see section 5)
 *
 *   /local/domain/<backend>/backend/xnem/<guest>/<id>/      n<backend>,r<guest>
 *     frontend     path of the frontend's directory
 *     frontend-id  domid of the guest
 *     online       "1"; "0" asks for the device's end
 *     state        enum xenbus_state
 *     zone         name of the zone, at most XNEM_ZONE_NAME_MAX bytes, of the
 *                  characters [A-Za-z0-9._-]; readable by the backend alone.
 *                  Absent: the zone "default"
 *
 * Written by the backend before it enters state 2 (InitWait), four nodes, as
 * a driver domain's share of xenstore is small:
 *
 *     versions     "<min> <max>", decimal: the protocol versions it speaks
 *     features     hexadecimal mask of XNEM_FEAT_*
 *     limits       space-separated list of key=decimal; an unknown key is
 *                  ignored.  Keys:
 *                    queues        queues a device, 1 or more
 *                    sq-order      largest order of a submission ring, 0..4
 *                    cq-order      largest order of a completion ring, 0..4
 *                    inflight      requests in flight a queue
 *                    contexts      contexts a device
 *                    regions       regions a device
 *                    region-pages  pages of one region
 *                    pages         pages of all regions of the device
 *     fabric-id    16 hexadecimal digits.  Minted by the backend for its own
 *                  life and the device's zone: two frontends that read equal
 *                  values may copy between each other's regions.  Another
 *                  zone, another backend, or the same one after a restart has
 *                  another value
 *
 * Written by the frontend before it enters state 3 (Initialised):
 *
 *     version      decimal: the version it has chosen
 *     features     hexadecimal mask: the offered features that it will use
 *     num-queues   decimal: queues 0 .. num-queues-1 follow
 *     queue-<n>/header-ref     grant reference of struct xnem_queue_header
 *     queue-<n>/sq-refs        space-separated grant references, 2^order of
 *                              them: the pages of the submission ring
 *     queue-<n>/cq-refs        the same for the completion ring
 *     queue-<n>/event-channel  port, allocated unbound for the backend
 *
 *
 * 2. States (enum xenbus_state)
 * =============================
 *
 *   frontend            backend
 *   1 Initialising      1 Initialising   made by the toolstack
 *                       2 InitWait       offers (versions ... fabric-id) are
 *                                        written; mapped: nothing
 *   3 Initialised       2 InitWait       the frontend's nodes are written
 *   3 Initialised       4 Connected      queues are mapped and bound
 *   4 Connected         4 Connected      requests may be posted
 *   5 Closing           any              the frontend wants an end: the
 *                                        backend unmaps, then Closing, Closed
 *   any                 5 Closing        an end is wanted, by the backend or by
 *                                        the toolstack, which writes this node
 *                                        while the backend goes on: the frontend
 *                                        begins nothing new and enters Closing
 *   any                 6, 0 (gone)      the backend has let go: the frontend
 *                                        fails what is in flight and revokes
 *   6 Closed            6 Closed         nothing is shared
 *
 * From Closed a device comes back as long as online is "1": the frontend
 * enters Initialising, the backend answers with InitWait and a new life
 * begins: regions of before are gone.  With online "0" the backend lets go of
 * the device.  A frontend that vanishes (its state cannot be read) has died:
 * its requests end, its regions go.  When a negotiation fails, the side that
 * refuses writes the reason to its error node and closes.
 *
 *
 * 3. A queue
 * ==========
 *
 * One header page, a submission ring of 2^a pages and a separate completion
 * ring of 2^b pages, one event channel for both.  A submission slot is free
 * as soon as the backend has consumed it (sq_cons), not when the request is
 * answered; requests in flight are bounded by max-inflight alone, and
 * max-inflight = the number of completion slots (or the limit "inflight" when
 * that is less), so that the completion ring cannot overflow: the frontend
 * counts a request as in flight until it has consumed its completion.
 *
 * Indices run freely from 0 and wrap at 2^32; a slot is index modulo the
 * ring's size, which is a power of two.  The producer owns slots cons ..
 * cons+size-1.  An index that claims more than the ring holds is garbage: the
 * reader stops the queue for good.
 *
 * Sleeping and waking is the same for both rings (P: the producer, C: the
 * consumer):
 *
 *   P: write slots; write barrier; prod = new; full barrier;
 *      read event; notify if event is in (old prod, new prod]
 *   C: consume while prod != cons (read barrier between the two reads);
 *      to sleep: event = cons + 1; full barrier; look at prod once more
 *
 * While C is busy or spins it leaves event alone, which lies behind prod then
 * and so asks for nothing.  Both sides bind the event channel "late EOI".
 *
 *
 * 4. Requests and their order
 * ===========================
 *
 * A request is 128 bytes, its answer 32.  There is no order between
 * requests, queues or bytes, but for what follows.  A completion comes after
 * all bytes of its request are in place.  bytes_done is the length of the
 * contiguous prefix of the transfer that is complete; what lies beyond is
 * unspecified when the status is not XNEM_ST_OK.
 *
 * A context is a number that the frontend chooses, 0 .. contexts-1 (Linux:
 * one open of the device).  It names every request and region and exists from
 * its first request.  XNEM_OP_CLOSE_CONTEXT ends all of it: copies it asked
 * for end with XNEM_ST_CANCELLED (each gets its own answer), its regions
 * are deregistered, its completion page is unmapped; the answer comes after
 * all that.  A frontend posts it when no register or open request of the
 * context is unanswered, and posts nothing more for that context until it is
 * answered.
 *
 *
 * 5. Regions
 * ==========
 *
 * A region is memory that the frontend has granted to the backend's domain,
 * page by page: read-only when it is only a source (XNEM_ACCESS_READ without
 * XNEM_ACCESS_WRITE), otherwise writable.  It starts offset bytes into its
 * first page and is length bytes long, contiguous over its pages in the order
 * given.  The references themselves are read once, at registration; later
 * requests carry none.
 *
 * The backend answers with a cookie, {region id, key}: the name by which any
 * member of the zone can copy from or to it.  Ids are never used twice in a
 * backend's life; keys are random.  An unknown id, a region of another zone
 * and a wrong key are one and the same error, are counted, and cost the
 * offender time when they come in numbers.
 *
 * A region's tag is 64 opaque bits, compared with the tag of a request unless
 * the region has XNEM_REGION_ANY_TAG.  Linux puts the uid of the process
 * there.  A peer's kernel asserts it: between guests it is advice.
 *
 * XNEM_OP_DEREGISTER is answered after the last copy that uses the region, on
 * any queue and by whomever, has ended: from then on the backend holds
 * nothing, and the grants can be revoked.  A granted page is open to the
 * backend as a whole as long as it is granted, with the neighbouring bytes in
 * a region's first and last page; a frontend whose device has trusted = "0"
 * refuses regions that are not whole pages.  (Bouncing those two pages is not
 * possible for regions: others copy from and to them at times the owner does
 * not know.)
 *
 *
 * 6. Completion pages
 * ===================
 *
 * A context may have a completion page (feature XNEM_FEAT_CPAGE, request
 * XNEM_OP_OPEN_CONTEXT): one page of the guest, granted writable, that the
 * process maps.  For a request with XNEM_REQ_CPAGE the backend writes a
 * struct xnem_cpage_entry to it after the data and before the completion; a
 * process polls its own memory, with no system call and no event.  The guest's
 * kernel believes the completion ring alone.  The ring in the page has
 * XNEM_CPAGE_ENTRIES entries; the owner keeps no more requests with
 * XNEM_REQ_CPAGE unread than that, or older ones are overwritten.  Entries are
 * counted from 0, modulo 2^32; entry i stands in slot i modulo
 * XNEM_CPAGE_ENTRIES and is valid when its seq is i + 1 (the frontend zeroes
 * the page).  The backend writes seq last, with release semantics, and the
 * reader loads it with acquire.  A context has one completion page in its
 * life; a reference that cannot be mapped ends the device.
 */
#ifndef XEN_IO_XNEMIF_H
#define XEN_IO_XNEMIF_H

#ifdef __KERNEL__
#include <linux/types.h>
typedef __le16 xnem_le16;
typedef __le32 xnem_le32;
typedef __le64 xnem_le64;
#else
#include <stdint.h>
typedef uint16_t xnem_le16;
typedef uint32_t xnem_le32;
typedef uint64_t xnem_le64;
#endif

/** Protocol version of this page. */
#define XNEM_PROTO_VERSION 0

#define XNEM_PAGE_SHIFT 12
#define XNEM_PAGE_SIZE (1u << XNEM_PAGE_SHIFT)

/** Longest zone name in bytes, without a terminating zero. */
#define XNEM_ZONE_NAME_MAX 63
/** Largest order of a ring; a ring has at most 2^4 pages. */
#define XNEM_RING_ORDER_MAX 4

/*
 * Features, offered by the backend and accepted by the frontend.  Bits not
 * named here are reserved.
 */
/** Completion pages (section 6). */
#define XNEM_FEAT_CPAGE (1ull << 0)
/** Reserved: XNEM_OP_MESSAGE, up to 64 bytes to another context, by credits. */
#define XNEM_FEAT_MESSAGE (1ull << 1)
/** Reserved: XNEM_REQ_NOTIFY, immediate data for a region's owner. */
#define XNEM_FEAT_NOTIFY (1ull << 2)
/** Reserved: XNEM_REQ_FENCE, wait for earlier requests of the context. */
#define XNEM_FEAT_FENCE (1ull << 3)
/** Reserved: windows, regions granted piece by piece when a copy wants them. */
#define XNEM_FEAT_WINDOW (1ull << 4)
/** Reserved: teams and collectives. */
#define XNEM_FEAT_TEAM (1ull << 5)
/** Reserved: atomic fetch-and-add and compare-and-swap on a region. */
#define XNEM_FEAT_ATOMIC (1ull << 6)

/** Operations (struct xnem_request.op). */
enum xnem_op {
	/** Answered at once; measures the way there and back. */
	XNEM_OP_PING = 0,
	/** Make a region; answers with its cookie. */
	XNEM_OP_REGISTER = 1,
	/** End a region; answered when nothing uses it any more. */
	XNEM_OP_DEREGISTER = 2,
	/** Copy bytes from one region to another. */
	XNEM_OP_COPY = 3,
	/** Give a context its completion page. */
	XNEM_OP_OPEN_CONTEXT = 4,
	/** End a context with all its copies and regions. */
	XNEM_OP_CLOSE_CONTEXT = 5,

	/* Numbers below are reserved; version 0 answers XNEM_ST_UNSUPPORTED. */
	/** Up to 64 inline bytes to an endpoint {device, context}. */
	XNEM_OP_MESSAGE = 16,
	/** Ask for the end of an earlier request; it still gets its answer. */
	XNEM_OP_CANCEL = 17,
	/** More references of a region, or the answer to a wanted window. */
	XNEM_OP_DESCRIBE = 18,
	/** Become a member of a team. */
	XNEM_OP_TEAM_JOIN = 32,
	/** Leave a team. */
	XNEM_OP_TEAM_LEAVE = 33,
	/** This member's part of a collective. */
	XNEM_OP_COLLECTIVE = 34,
	/** Fetch and add 64 bits in a region. */
	XNEM_OP_FETCH_ADD = 48,
	/** Compare and swap 64 bits in a region. */
	XNEM_OP_COMPARE_SWAP = 49,
};

/* Flags of a request. */
/** Write a completion page entry for this request too. */
#define XNEM_REQ_CPAGE (1u << 0)
/** Reserved: put immediate data on the region owner's completion page. */
#define XNEM_REQ_NOTIFY (1u << 1)
/** Reserved: start after earlier requests of this context have ended. */
#define XNEM_REQ_FENCE (1u << 2)

/* Access to a region (struct xnem_request.reg.access). */
/** May be the source of copies. */
#define XNEM_ACCESS_READ (1u << 0)
/** May be the destination of copies; its pages are granted writable. */
#define XNEM_ACCESS_WRITE (1u << 1)

/* Flags of a region (struct xnem_request.reg.flags). */
/** Any tag of the zone may use it, not only its own. */
#define XNEM_REGION_ANY_TAG (1u << 0)
/** reg.ref[] names descriptor pages, not the region's own pages. */
#define XNEM_REGION_INDIRECT (1u << 1)

/** References in a register request. */
#define XNEM_INLINE_REFS 18
/** References in a descriptor page: a page of little-endian 32-bit values. */
#define XNEM_DESC_REFS (XNEM_PAGE_SIZE / 4)
/** Pages of the largest region that one register request describes. */
#define XNEM_REGION_PAGES_MAX (XNEM_INLINE_REFS * XNEM_DESC_REFS)

/** A region's name for everybody: opaque, 16 bytes, unguessable. */
struct xnem_cookie {
	xnem_le64 id;
	xnem_le64 key;
};

/** A request, 128 bytes. */
struct xnem_request {
	/**
	 * Frontend's number for this request, given back in its completion.
	 * Unique among the requests in flight on the queue; the backend does
	 * not look at it.
	 */
	xnem_le32 id;
	/** enum xnem_op */
	xnem_le16 op;
	/** XNEM_REQ_* */
	xnem_le16 flags;
	/** Context, 0 .. limit "contexts" - 1. */
	xnem_le32 context;
	xnem_le32 pad0;
	/** Given back in a completion page entry; the backend does not look at it. */
	xnem_le64 user_data;
	/** Access tag of the requester (copy) or the region (register). */
	xnem_le64 tag;
	union {
		/**
		 * XNEM_OP_REGISTER.  Answer: data[0], data[1] are the cookie's
		 * id and key.
		 */
		struct {
			/** Bytes, 1 or more. */
			xnem_le64 length;
			/** First byte within the first page, 0 .. 4095. */
			xnem_le32 offset;
			/** XNEM_ACCESS_*, at least one. */
			xnem_le32 access;
			/** XNEM_REGION_* */
			xnem_le32 flags;
			/**
			 * Pages: exactly those that offset and length need,
			 * (offset + length + 4095) / 4096.
			 */
			xnem_le32 nr_pages;
			/**
			 * Without XNEM_REGION_INDIRECT: the nr_pages (at most
			 * XNEM_INLINE_REFS) references.  With it: references of
			 * (nr_pages + 1023) / 1024 descriptor pages, which the
			 * backend has read when it answers.  The rest is zero.
			 */
			xnem_le32 ref[XNEM_INLINE_REFS];
		} reg;
		/** XNEM_OP_DEREGISTER: a region of the same device and context. */
		struct {
			xnem_le64 region_id;
			xnem_le64 pad[11];
		} dereg;
		/**
		 * XNEM_OP_COPY: length bytes from src + src_offset to dst +
		 * dst_offset.  Both regions may belong to anybody in the zone.
		 * Length 0 is checked like any other and succeeds.  When source
		 * and destination overlap, the destination's bytes are
		 * unspecified.  Nothing is copied unless the whole range lies
		 * within both regions.
		 */
		struct {
			struct xnem_cookie src;
			struct xnem_cookie dst;
			xnem_le64 src_offset;
			xnem_le64 dst_offset;
			xnem_le64 length;
			xnem_le64 pad[5];
		} copy;
		/** XNEM_OP_OPEN_CONTEXT: reference of the completion page. */
		struct {
			xnem_le32 cpage_ref;
			xnem_le32 pad1;
			xnem_le64 pad[11];
		} open;
		/** XNEM_OP_PING, XNEM_OP_CLOSE_CONTEXT: nothing more. */
		struct {
			xnem_le64 pad[12];
		} none;
	} u;
};

/** Status of a completion.  Numbers of its own, not an errno of any system. */
enum xnem_status {
	XNEM_ST_OK = 0,
	/** A field has a value this page does not allow, or padding is not zero. */
	XNEM_ST_INVALID = 1,
	/** Operation, flag or feature that was not negotiated or is not known. */
	XNEM_ST_UNSUPPORTED = 2,
	/** No such region: unknown, of another zone, or a wrong key. */
	XNEM_ST_COOKIE = 3,
	/** The region does not allow this direction. */
	XNEM_ST_ACCESS = 4,
	/** The region's tag is another one. */
	XNEM_ST_TAG = 5,
	/** The range does not lie within the region. */
	XNEM_ST_RANGE = 6,
	/** A negotiated limit would be passed. */
	XNEM_ST_LIMIT = 7,
	/** The backend is short of memory; the same request may succeed later. */
	XNEM_ST_NOMEM = 8,
	/** Xen refused the copy of a page: not granted, or not as it had to be. */
	XNEM_ST_FAULT = 9,
	/** The region's owner went away while the copy was under way. */
	XNEM_ST_PEER_GONE = 10,
	/** The context was closed. */
	XNEM_ST_CANCELLED = 11,
	/** A temporary shortage; try again. */
	XNEM_ST_AGAIN = 12,
	/** The context exists already, or does not. */
	XNEM_ST_CONTEXT = 13,
	XNEM_ST_MAX = 13,
};

/** A completion, 32 bytes; the backend writes all of it, zeros included. */
struct xnem_completion {
	/** The request's id. */
	xnem_le32 id;
	/** enum xnem_status */
	xnem_le16 status;
	xnem_le16 pad;
	/** Copy: bytes of the contiguous prefix that is complete. */
	xnem_le64 bytes_done;
	/** By operation; zero where the operation says nothing. */
	xnem_le64 data[2];
};

/**
 * One direction's indices as both sides see them.  prod is written by the
 * producer; cons and event by the consumer, on another cache line.
 */
struct xnem_ring_index {
	xnem_le32 prod;
	xnem_le32 pad0[15];
	/** Slots below it are free again. */
	xnem_le32 cons;
	/** The producer notifies when prod passes from below to event or above. */
	xnem_le32 event;
	xnem_le32 pad1[14];
};

/** The header page of a queue. The frontend zeroes it and sets event = 1. */
struct xnem_queue_header {
	/** Produced by the frontend. */
	struct xnem_ring_index sq;
	/** Produced by the backend. */
	struct xnem_ring_index cq;
};

/** Entry of a completion page, 32 bytes. */
struct xnem_cpage_entry {
	xnem_le64 user_data;
	xnem_le64 bytes_done;
	/** enum xnem_status */
	xnem_le32 status;
	/** XNEM_CPAGE_*: what kind of entry; version 0 has completions only. */
	xnem_le32 kind;
	xnem_le32 pad;
	/** Index + 1 once the entry is whole (section 6). */
	xnem_le32 seq;
};

/** The entry completes a request; its user_data is the request's. */
#define XNEM_CPAGE_COMPLETION 0
/** Reserved: immediate data that a NOTIFY brought. */
#define XNEM_CPAGE_NOTIFY 1
/** Reserved: a message has arrived. */
#define XNEM_CPAGE_MESSAGE 2

#define XNEM_CPAGE_ENTRIES (XNEM_PAGE_SIZE / sizeof(struct xnem_cpage_entry))

#define XNEM_SQ_SLOTS_PER_PAGE (XNEM_PAGE_SIZE / sizeof(struct xnem_request))
#define XNEM_CQ_SLOTS_PER_PAGE (XNEM_PAGE_SIZE / sizeof(struct xnem_completion))

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define XNEM_LAYOUT(cond) _Static_assert(cond, "xnem wire layout: " #cond)
XNEM_LAYOUT(sizeof(struct xnem_cookie) == 16);
XNEM_LAYOUT(sizeof(struct xnem_request) == 128);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, op) == 4);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, context) == 8);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, user_data) == 16);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, u) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, u.reg.ref) == 56);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, u.copy.length) == 80);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.reg) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.copy) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.open) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.dereg) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.none) == 96);
XNEM_LAYOUT(sizeof(struct xnem_completion) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_completion, data) == 16);
XNEM_LAYOUT(sizeof(struct xnem_ring_index) == 128);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_ring_index, cons) == 64);
XNEM_LAYOUT(sizeof(struct xnem_queue_header) == 256);
XNEM_LAYOUT(sizeof(struct xnem_cpage_entry) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_cpage_entry, seq) == 28);
#undef XNEM_LAYOUT
#endif

#endif /* XEN_IO_XNEMIF_H */
