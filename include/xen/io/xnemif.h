/* SPDX-License-Identifier: MIT */
/*
 * xnemif.h - the XNEM wire protocol: memory to memory copies between guests
 *
 * This page is the whole contract between a frontend (in a guest) and a
 * backend (in a driver domain or dom0).  Another frontend can be written from
 * it alone.  It describes protocol version 1; section 9 says what never
 * changes any more.
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
 * in flight.  The backend maps the queue's own pages and contexts' pages,
 * nothing else (all of these are granted writable); data and descriptor pages
 * are reached by GNTTABOP_copy alone.
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
 *     features     hexadecimal mask of XNEM_FEAT_*; an unknown bit is ignored
 *     limits       list of key=decimal, one space between them, each number
 *                  below 2^32; the order is free, an unknown key is ignored.
 *                  Keys:
 *                    queues        queues a device, 1 or more
 *                    sq-order      largest order of a submission ring, 0..4
 *                    cq-order      largest order of a completion ring, 0..4
 *                    inflight      requests in flight a queue
 *                    contexts      contexts a device, 1..XNEM_CONTEXTS_MAX
 *                    regions       regions a device
 *                    region-pages  pages of one region, 1 or more; of a
 *                                  windowed one XNEM_WINDOWED_PAGES_MAX instead
 *                    pages         pages of all regions of the device that are
 *                                  granted as a whole (windowed ones are not)
 *                    windows       windows a device (section 8), 0..16; may be
 *                                  absent: 0
 *                    window-pages  pages of one window, 1..1024; may be absent
 *     fabric-id    16 hexadecimal digits.  Minted by the backend for its own
 *                  life and the device's zone: two frontends that read equal
 *                  values may copy between each other's regions.  Another
 *                  zone, another backend, or the same one after a restart has
 *                  another value
 *
 * Written by the frontend before it enters state 3 (Initialised):
 *
 *     version      decimal: the version it has chosen, the highest that both
 *                  speak
 *     features     hexadecimal mask: the offered features that it will use;
 *                  one that was not offered is refused
 *     num-queues   decimal: queues 0 .. num-queues-1 follow
 *     windows      (with XNEM_FEAT_WINDOW) decimal: windows it keeps grants for,
 *                  at most the limit
 *     queue-<n>/header-ref     grant reference of struct xnem_queue_header,
 *                              decimal like all references here
 *     queue-<n>/sq-refs        grant references, 2^order of them, one space
 *                              between: the pages of the submission ring
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
 *   3 Initialised       4 Connected      queues are mapped and bound: requests
 *                                        may be posted
 *   4 Connected         4 Connected      the same
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
 * its requests end, its regions go.  One that begins anew without having closed
 * enters Initialising from whatever state there is: the backend lets go of
 * everything of before, over Closing and Closed, and then enters InitWait.  When a negotiation fails, the side that
 * refuses writes the reason to its error node, which is
 * /local/domain/<own>/error/<its directory below its domain>/error, and closes.
 *
 * A frontend that breaks the rules of sections 3 or 4 for indices and requests
 * in flight is cut off: the backend lets go of everything, writes its error
 * node and enters Closing.  It answers Closing with Closed as ever, but not
 * Initialising: the device is served again when it is detached and attached.
 * The same goes for one that fails to connect, or whose pages (section 6) cannot
 * be mapped, several times in a row.
 *
 *
 * 3. A queue
 * ==========
 *
 * One header page, a submission ring of 2^a pages and a separate completion
 * ring of 2^b pages, one event channel for both.  A submission slot is free
 * as soon as the backend has consumed it (sq.cons), not when the request is
 * answered; requests in flight are bounded by max-inflight alone, and
 * max-inflight = the number of completion slots (or the limit "inflight" when
 * that is less), so that the completion ring cannot overflow: the frontend
 * counts a request as in flight until it has consumed its completion.
 *
 * Indices run freely from 0 and wrap at 2^32; a slot is index modulo the
 * ring's size, which is a power of two.  The producer owns slots cons ..
 * cons+size-1.  An index that claims more than the ring holds is garbage, and so
 * are more requests in flight than max-inflight: the reader stops the queue for
 * good.
 *
 * Sleeping and waking is the same for both rings (P: the producer, C: the
 * consumer):
 *
 *   P: write slots; write barrier; prod = new; full barrier;
 *      read event; notify if event is in (old prod, new prod]
 *   C: consume while prod != cons (read barrier between the two reads);
 *      full barrier; cons = new;
 *      to sleep: event = cons + 1; full barrier; look at prod once more
 *
 * The frontend writes cq.cons before it posts more: the backend counts by it.
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
 * A request that has several faults is answered with any of their statuses.
 *
 * A context is a number that the frontend chooses, 0 .. contexts-1 (Linux:
 * one open of the device).  It names every request and region and exists from
 * its first well-formed request (one that is not refused for what stands in its
 * own fields); all its requests go to one queue, that of the first (another one
 * answers XNEM_ST_CONTEXT).  XNEM_OP_CLOSE_CONTEXT ends all of
 * it: copies it asked for end with XNEM_ST_CANCELLED (each gets its own
 * answer), its regions are deregistered, its pages are unmapped; the answer
 * comes after all that, and the number is free for another context.  A frontend
 * posts it when no register or open request of the context is unanswered, and
 * posts nothing more for that context until it is answered (such a request is
 * answered with XNEM_ST_CONTEXT).
 *
 * XNEM_REQ_FENCE: the request starts when all requests that its context posted
 * before it have ended, however they ended; requests posted after it start
 * when it has ended.  Cancel, deregister, describe and close requests neither
 * wait for a fence nor carry one, and a request that is not well-formed does not
 * wait either.
 *
 * XNEM_OP_CANCEL asks for the end of an earlier request of its context: a copy,
 * or whatever waits behind a fence; everything else is on its way to be answered
 * anyhow.  Its answer, XNEM_ST_OK, says whether there was such a request
 * (data[0] = 1, else 0).  The other request has its own answer, before or after:
 * XNEM_ST_CANCELLED, with bytes_done, or what it came to before.
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
 * A region may consist of several segments (XNEM_REGION_SEGMENTS, feature
 * XNEM_FEAT_SEGMENTS), each with its own first byte and length, each with its
 * own pages (two segments in one page name it twice).  Positions in the region
 * count through them in the order given.  The table of struct xnem_segment is
 * read at registration, too.
 *
 * A region with XNEM_REGION_ONCE is good for one copy: the first one that
 * passes all checks; to every later one it is unknown.  It ends like any other
 * (deregister or close).
 *
 * The backend answers with a cookie, {region id, key}: the name by which any
 * member of the zone can copy from or to it, its owner included, and between two
 * of its own.  Ids are never used twice in a backend's life; keys are random.  An
 * unknown id, a region of another zone and a wrong key are one and the same
 * error, XNEM_ST_COOKIE.  They are counted, and cost the offender time when they
 * come in numbers: for a while all copies and messages of that context are
 * answered with XNEM_ST_AGAIN.
 *
 * A region's tag is 64 opaque bits, compared with the tag of a request unless
 * the region has XNEM_REGION_ANY_TAG.  Linux puts the uid of the process
 * there.  A peer's kernel asserts it: between guests it is advice.
 *
 * XNEM_OP_DEREGISTER is answered after the last copy that uses the region, on
 * any queue and by whomever, has ended (early, with XNEM_ST_PEER_GONE): from then
 * on the backend holds nothing, and the grants can be revoked.  A granted page is open to the
 * backend as a whole as long as it is granted, with the neighbouring bytes in
 * a region's first and last page; a frontend whose device has trusted = "0"
 * refuses regions that are not whole pages.  (Bouncing those two pages is not
 * possible for regions: others copy from and to them at times the owner does
 * not know.)
 *
 *
 * 6. A context's pages
 * ====================
 *
 * A context may have a completion page (feature XNEM_FEAT_CPAGE, request
 * XNEM_OP_OPEN_CONTEXT): one page of the guest, granted writable, that the
 * process maps.  For a request with XNEM_REQ_CPAGE the backend writes a
 * struct xnem_cpage_entry to it after the data and before the completion (none
 * for close and describe requests, and none while the context has no page); a
 * process polls its own memory, with no system call and no event.  The guest's
 * kernel believes the completion ring alone.  The ring in the page has
 * XNEM_CPAGE_ENTRIES entries; the owner keeps no more requests with
 * XNEM_REQ_CPAGE unread than that, or older ones are overwritten.  Entries are
 * counted from 0, modulo 2^32; entry i stands in slot i modulo
 * XNEM_CPAGE_ENTRIES and is valid when its seq is i + 1 (the frontend zeroes
 * the page).  The backend writes seq last, with release semantics, and the
 * reader loads it with acquire.  A context opens its pages once in its life; a
 * reference that cannot be mapped is answered with XNEM_ST_FAULT and ends the
 * device: the backend writes its error node and enters Closing.
 *
 * With XNEM_OPEN_INBOX it also has an inbox, 2^inbox-order pages of
 * struct xnem_inbox_slot, and a control page (struct xnem_context_control);
 * both are granted writable and begin as zeroes.  Into the inbox the backend writes what others
 * have for this context: messages and notifications (section 7).  Slots are
 * counted as completion page entries are: slot i modulo their number is valid
 * when its seq is i + 1.  The process says with control.inbox_cons how many it
 * has read (store-release): these slots are free again, and this is the only
 * word of that page that the backend reads.
 *
 * So that a process can also sleep on its inbox, the backend sets the
 * context's bit in attention.contexts of its queue's header after the slot's
 * seq (bit c % 32 of word c / 32), and notifies when attention.event is not 0
 * then.  Setting and clearing bits are atomic operations on little-endian
 * words.  The frontend that wants to sleep: event = 1; full barrier; take the
 * bits (exchange with 0) once more.  The backend: set the bit; full barrier;
 * read event.  Awake, the frontend sets event to 0 again.  Bits coalesce: many
 * messages may make one event.
 *
 *
 * 7. Messages and notifications
 * =============================
 *
 * XNEM_OP_OPEN_CONTEXT with an inbox answers with the context's address,
 * {id, key} as of a region but of another name space, with the same rules for
 * wrong ones.  Whoever of the zone
 * knows it can send a message of up to XNEM_MESSAGE_MAX bytes (XNEM_OP_MESSAGE,
 * feature XNEM_FEAT_MESSAGE): it arrives whole, once, with the sender's address
 * (zero when it has no inbox), tag and domain.  Messages of one context to
 * another arrive in the order in which they were posted.
 *
 * A copy with XNEM_REQ_NOTIFY_SRC or XNEM_REQ_NOTIFY_DST or both (feature
 * XNEM_FEAT_NOTIFY) puts its 64 bits of immediate data into the inbox of the
 * context that owns that region, after all its bytes are in place and only
 * when all are.  An owner without an inbox: XNEM_ST_CONTEXT before anything is
 * copied.
 *
 * Room is by credits: free slots, of which one sending device may hold no more
 * than half unread.  Without one the answer is XNEM_ST_BUSY: nothing was
 * delivered; of a copy the bytes are in place (bytes_done says so) and the same
 * notification can be tried again with a copy of 0 bytes.  (With both flags,
 * the destination's owner is told first; when that failed, none is.)
 *
 *
 * 8. Windows
 * ==========
 *
 * A region with XNEM_REGION_WINDOWED (feature XNEM_FEAT_WINDOW) carries no
 * references: the backend asks for those of a part when a copy needs it, and
 * gives them back.  So a region can be larger than the grant table.
 *
 * Each device has the frontend's number of windows.  For window i the backend
 * writes want[i] of queue 0's header (region, first page, count of pages; then
 * seq, one more than before, with release semantics; the first is 1), sets bit
 * i of attention.windows and always notifies.  The frontend, with no help of
 * any process, grants these pages (read-only or writable as the region's
 * access says) and posts XNEM_OP_DESCRIBE on queue 0 with the window, its seq
 * and the references: in the request, or in one descriptor page.  With
 * nr_pages = 0 it says that it cannot now, or that there is no such region any
 * more.  The backend answers when it has let go of all these references: the
 * frontend revokes them.  With the answer the window is free for the next want.
 *
 * A want that is not described within a second may have been given up: the
 * describe request is answered at once, then.  One with another seq than the
 * want's, for a window that is not wanted, or with another number of pages than
 * was wanted is answered with XNEM_ST_INVALID.  A copy takes the windows of both
 * its regions together or neither, so opposite copies do not lock each other; a
 * copy that got no window in time ends with XNEM_ST_AGAIN.
 *
 *
 * 9. What version 1 promises
 * ==========================
 *
 * As long as a side speaks version 1 with the other, all that this page says
 * stands: layouts, sizes, numbers, states, nodes and keys with their meaning.
 * A frontend written today connects to, and works with, every later backend
 * that has version 1 in its range, and the other way round; the tests keep one
 * (tests/frozen).  Whoever changes a meaning makes another version.  A backend
 * keeps serving version 1 beside it, and the frontend chooses the highest
 * version that both speak.
 *
 * What can be new within version 1, and how the other side must bear it:
 *
 *   nodes in either directory, keys of limits     unknown ones are ignored
 *   bits of features                              unknown ones are not accepted,
 *                                                 and then not used
 *   operations, flags, statuses, kinds of inbox   come with a feature: neither
 *   slots and completion page entries, meanings   side uses them before it is
 *   of what is reserved or padding now            offered and accepted
 *   larger numbers in limits                      up to the bounds given here
 *
 * So a frontend may take a status, or a kind, that this page does not name for
 * a breach of the protocol, and a backend answers an operation it does not know
 * with XNEM_ST_UNSUPPORTED.
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
#define XNEM_PROTO_VERSION 1

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
/** XNEM_OP_MESSAGE: up to 64 bytes to another context (section 7). */
#define XNEM_FEAT_MESSAGE (1ull << 1)
/** XNEM_REQ_NOTIFY_*: immediate data for a region's owner (section 7). */
#define XNEM_FEAT_NOTIFY (1ull << 2)
/** XNEM_REQ_FENCE: wait for earlier requests of the context (section 4). */
#define XNEM_FEAT_FENCE (1ull << 3)
/** Windows: regions granted piece by piece when a copy wants them (section 8). */
#define XNEM_FEAT_WINDOW (1ull << 4)
/** Reserved: teams and collectives. */
#define XNEM_FEAT_TEAM (1ull << 5)
/** Reserved: atomic fetch-and-add and compare-and-swap on a region. */
#define XNEM_FEAT_ATOMIC (1ull << 6)
/** XNEM_REGION_SEGMENTS and XNEM_REGION_ONCE (section 5). */
#define XNEM_FEAT_SEGMENTS (1ull << 7)
/** XNEM_OP_CANCEL (section 4) and XNEM_REQ_BOUNDED. */
#define XNEM_FEAT_CANCEL (1ull << 8)

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
	/** Give a context its pages (section 6). */
	XNEM_OP_OPEN_CONTEXT = 4,
	/** End a context with all its copies and regions. */
	XNEM_OP_CLOSE_CONTEXT = 5,
	/** Up to 64 inline bytes to another context's inbox. */
	XNEM_OP_MESSAGE = 16,
	/** Ask for the end of an earlier request; it still gets its answer. */
	XNEM_OP_CANCEL = 17,
	/** The answer to a wanted window; answered when it is let go of. */
	XNEM_OP_DESCRIBE = 18,

	/* Numbers below are reserved and answered XNEM_ST_UNSUPPORTED. */
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
/** Copy: put u.copy.immediate into the inbox of the source's owner. */
#define XNEM_REQ_NOTIFY_SRC (1u << 1)
/** Start after earlier requests of this context have ended (section 4). */
#define XNEM_REQ_FENCE (1u << 2)
/** Copy: put u.copy.immediate into the inbox of the destination's owner. */
#define XNEM_REQ_NOTIFY_DST (1u << 3)
/**
 * Copy: length is the most to copy; where a region ends before, so does the
 * copy, with XNEM_ST_OK and bytes_done < length.  Offsets must lie within
 * their regions all the same.
 */
#define XNEM_REQ_BOUNDED (1u << 4)
#define XNEM_REQ_ALL 0x1fu

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
/** Good for one copy (section 5). */
#define XNEM_REGION_ONCE (1u << 2)
/** Several segments: reg.offset is their number (section 5). */
#define XNEM_REGION_SEGMENTS (1u << 3)
/** No references now: windows (section 8). */
#define XNEM_REGION_WINDOWED (1u << 4)
#define XNEM_REGION_ALL 0x1fu

/** References in a register request. */
#define XNEM_INLINE_REFS 18
/** References in a descriptor page: a page of little-endian 32-bit values. */
#define XNEM_DESC_REFS (XNEM_PAGE_SIZE / 4)
/** Pages of the largest region that one register request describes. */
#define XNEM_REGION_PAGES_MAX (XNEM_INLINE_REFS * XNEM_DESC_REFS)
/** Pages of the largest windowed region: 8 TiB. */
#define XNEM_WINDOWED_PAGES_MAX (1u << 31)
/** Windows a device, and pages of a window, at most. */
#define XNEM_WINDOWS_MAX 16
#define XNEM_WINDOW_PAGES_MAX XNEM_DESC_REFS
/** References in a describe request. */
#define XNEM_DESCRIBE_REFS 20

/** A segment of a region, 16 bytes, in a descriptor page. */
struct xnem_segment {
	/** Bytes, 1 or more. */
	xnem_le64 length;
	/** First byte within its first page, 0 .. 4095. */
	xnem_le32 offset;
	xnem_le32 pad;
};

/** Segments in a descriptor page, and of a region. */
#define XNEM_DESC_SEGMENTS (XNEM_PAGE_SIZE / 16)
#define XNEM_SEGMENTS_MAX 1024

/** Bytes of a message. */
#define XNEM_MESSAGE_MAX 64
/** Largest order of an inbox. */
#define XNEM_INBOX_ORDER_MAX 3

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
			/**
			 * First byte within the first page, 0 .. 4095.  With
			 * XNEM_REGION_SEGMENTS: segments, 1 .. XNEM_SEGMENTS_MAX.
			 */
			xnem_le32 offset;
			/** XNEM_ACCESS_*, at least one. */
			xnem_le32 access;
			/** XNEM_REGION_* */
			xnem_le32 flags;
			/**
			 * Pages: exactly those that offset and length need,
			 * (offset + length + 4095) / 4096; with
			 * XNEM_REGION_SEGMENTS the sum of that over all segments.
			 */
			xnem_le32 nr_pages;
			/**
			 * First the pages: without XNEM_REGION_INDIRECT the
			 * nr_pages references; with it references of
			 * (nr_pages + 1023) / 1024 descriptor pages; with
			 * XNEM_REGION_WINDOWED none.  Then, with
			 * XNEM_REGION_SEGMENTS, references of
			 * (segments + 255) / 256 pages of struct xnem_segment.
			 * Together at most XNEM_INLINE_REFS, the rest is zero.
			 * Descriptor pages have been read when the request is
			 * answered; what lies behind their last entry is ignored.
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
			/** With XNEM_REQ_NOTIFY_*; else 0. */
			xnem_le64 immediate;
			xnem_le64 pad[4];
		} copy;
		/**
		 * XNEM_OP_OPEN_CONTEXT, with XNEM_FEAT_CPAGE.  Answer: with
		 * XNEM_OPEN_INBOX (XNEM_FEAT_MESSAGE or XNEM_FEAT_NOTIFY) data[0],
		 * data[1] are the context's address, id and key.
		 */
		struct {
			/** Reference of the completion page. */
			xnem_le32 cpage_ref;
			/** XNEM_OPEN_* */
			xnem_le32 flags;
			/** With XNEM_OPEN_INBOX, else 0: of the control page. */
			xnem_le32 control_ref;
			/** Likewise: 0 .. XNEM_INBOX_ORDER_MAX. */
			xnem_le32 inbox_order;
			/** Likewise: the 2^inbox_order pages; the rest is zero. */
			xnem_le32 inbox_ref[1u << XNEM_INBOX_ORDER_MAX];
			xnem_le64 pad[6];
		} open;
		/** XNEM_OP_MESSAGE */
		struct {
			/** Address of the receiver. */
			struct xnem_cookie to;
			/** Bytes of data, 0 .. XNEM_MESSAGE_MAX; the rest is zero. */
			xnem_le32 length;
			xnem_le32 pad1;
			unsigned char data[XNEM_MESSAGE_MAX];
			xnem_le64 pad2;
		} msg;
		/** XNEM_OP_CANCEL */
		struct {
			/** The id of a request of the same context and queue. */
			xnem_le32 id;
			xnem_le32 pad1;
			xnem_le64 pad[11];
		} cancel;
		/** XNEM_OP_DESCRIBE; its context is 0 and means nothing. */
		struct {
			/** The window, and the seq of the want that is answered. */
			xnem_le32 window;
			xnem_le32 seq;
			/** As wanted, or 0. */
			xnem_le32 nr_pages;
			/** 1: ref[0] is a descriptor page, the rest is zero. */
			xnem_le32 indirect;
			xnem_le32 ref[XNEM_DESCRIBE_REFS];
		} describe;
		/** XNEM_OP_PING, XNEM_OP_CLOSE_CONTEXT: nothing more. */
		struct {
			xnem_le64 pad[12];
		} none;
	} u;
};

/** The context has an inbox and a control page. */
#define XNEM_OPEN_INBOX (1u << 0)

/** Status of a completion.  Numbers of its own, not an errno of any system. */
enum xnem_status {
	XNEM_ST_OK = 0,
	/**
	 * A field has a value this page does not allow; a flag that the operation
	 * cannot carry; padding that is not zero.
	 */
	XNEM_ST_INVALID = 1,
	/**
	 * Unknown operation; operation or flag of a feature that was not accepted.
	 * A flag that this page does not name is refused with this status by a
	 * backend that knows it, and as invalid by others.
	 */
	XNEM_ST_UNSUPPORTED = 2,
	/** No such region or address: unknown, of another zone, or a wrong key. */
	XNEM_ST_COOKIE = 3,
	/** The region does not allow this direction. */
	XNEM_ST_ACCESS = 4,
	/** The region's tag is another one. */
	XNEM_ST_TAG = 5,
	/** The range does not lie within the region. */
	XNEM_ST_RANGE = 6,
	/** A limit of the device would be passed: regions, region-pages, pages. */
	XNEM_ST_LIMIT = 7,
	/** The backend is short of memory; the same request may succeed later. */
	XNEM_ST_NOMEM = 8,
	/** Xen refused the copy of a page: not granted, or not as it had to be. */
	XNEM_ST_FAULT = 9,
	/** The region, or its owner, went away while the copy was under way. */
	XNEM_ST_PEER_GONE = 10,
	/** Ended by a cancel request, or because its context was closed. */
	XNEM_ST_CANCELLED = 11,
	/** A temporary shortage; try again. */
	XNEM_ST_AGAIN = 12,
	/**
	 * The context has its pages already, or is of another queue, or is being
	 * closed; or the one that is to be notified has no inbox.
	 */
	XNEM_ST_CONTEXT = 13,
	/** No room in an inbox now (section 7). */
	XNEM_ST_BUSY = 14,
	XNEM_ST_MAX = 14,
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

/** Contexts a device, at most: each has a bit. */
#define XNEM_CONTEXTS_MAX 1024

/** What the backend has to say unasked (sections 6 and 8). */
struct xnem_attention {
	/** Written by the frontend: not 0: notify when a context's bit is set. */
	xnem_le32 event;
	xnem_le32 pad0[15];
	/** Bit i: want[i] is new. */
	xnem_le32 windows;
	xnem_le32 pad1[15];
	/** Bit c: something was put into context c's inbox. */
	xnem_le32 contexts[XNEM_CONTEXTS_MAX / 32];
};

/** A window that the backend wants (section 8), 32 bytes. */
struct xnem_want {
	xnem_le64 region_id;
	/** First page of the region, counted from 0. */
	xnem_le32 page;
	/** 1 .. limit "window-pages" */
	xnem_le32 nr_pages;
	xnem_le32 pad[3];
	/** Written last. */
	xnem_le32 seq;
};

/** The header page of a queue. The frontend zeroes it and sets sq.event and cq.event to 1. */
struct xnem_queue_header {
	/** Produced by the frontend. */
	struct xnem_ring_index sq;
	/** Produced by the backend. */
	struct xnem_ring_index cq;
	/** Written by the backend but for event. */
	struct xnem_attention attention;
	/** Written by the backend; queue 0 alone. */
	struct xnem_want want[XNEM_WINDOWS_MAX];
};

/** A context's control page, written by its process (section 6). */
struct xnem_context_control {
	/** Slots of the inbox that have been read. */
	xnem_le32 inbox_cons;
	xnem_le32 pad0[15];
	/**
	 * Entries of the completion page that have been read.  For the guest's
	 * own kernel; the backend does not look at it.
	 */
	xnem_le32 cpage_cons;
	xnem_le32 pad1[15];
};

/** A slot of an inbox, 128 bytes. */
struct xnem_inbox_slot {
	/** Notification: the immediate data. Message: user_data of the request. */
	xnem_le64 value;
	/** Notification: bytes that were copied. Message: bytes of data. */
	xnem_le64 bytes;
	/** Address of the context that asked; zero when it has none. */
	struct xnem_cookie from;
	/** Its tag. */
	xnem_le64 tag;
	/** Message: the bytes, then zeroes. */
	unsigned char data[XNEM_MESSAGE_MAX];
	/** XNEM_INBOX_* */
	xnem_le32 kind;
	/** Domain of the context that asked. */
	xnem_le32 domid;
	xnem_le32 pad[3];
	/** Index + 1 once the slot is whole. */
	xnem_le32 seq;
};

#define XNEM_INBOX_MESSAGE 1
#define XNEM_INBOX_NOTIFY 2
#define XNEM_INBOX_SLOTS_PER_PAGE (XNEM_PAGE_SIZE / sizeof(struct xnem_inbox_slot))

/** Entry of a completion page, 32 bytes. */
struct xnem_cpage_entry {
	xnem_le64 user_data;
	xnem_le64 bytes_done;
	/** enum xnem_status */
	xnem_le32 status;
	/** XNEM_CPAGE_*: what kind of entry. */
	xnem_le32 kind;
	xnem_le32 pad;
	/** Index + 1 once the entry is whole (section 6). */
	xnem_le32 seq;
};

/** The entry completes a request; its user_data is the request's. */
#define XNEM_CPAGE_COMPLETION 0

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
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.msg) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.cancel) == 96);
XNEM_LAYOUT(sizeof(((struct xnem_request *)0)->u.describe) == 96);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, u.msg.data) == 56);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_request, u.describe.ref) == 48);
XNEM_LAYOUT(sizeof(struct xnem_segment) == 16);
XNEM_LAYOUT(sizeof(struct xnem_completion) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_completion, data) == 16);
XNEM_LAYOUT(sizeof(struct xnem_ring_index) == 128);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_ring_index, cons) == 64);
XNEM_LAYOUT(sizeof(struct xnem_attention) == 256);
XNEM_LAYOUT(sizeof(struct xnem_want) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_want, seq) == 28);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_queue_header, attention) == 256);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_queue_header, want) == 512);
XNEM_LAYOUT(sizeof(struct xnem_queue_header) == 1024);
XNEM_LAYOUT(sizeof(struct xnem_context_control) == 128);
XNEM_LAYOUT(sizeof(struct xnem_inbox_slot) == 128);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_inbox_slot, data) == 40);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_inbox_slot, seq) == 124);
XNEM_LAYOUT(sizeof(struct xnem_cpage_entry) == 32);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_cpage_entry, seq) == 28);
#undef XNEM_LAYOUT
#endif

#endif /* XEN_IO_XNEMIF_H */
