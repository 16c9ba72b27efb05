/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * xnem.h - the ioctl interface of /dev/xnem<N>
 *
 * N is the xenbus id of the device.  Each open makes a context that belongs
 * to the process (mm) that opened it: from another one, as a child has it
 * after fork, every call fails with EPERM, and only close does anything.  The
 * context ends when its last file descriptor is closed: what it asked for is
 * cancelled and its regions go, without making the closing process wait.
 *
 * Layout: the same for 32-bit and 64-bit callers; addresses are 64 bits wide
 * (__u64); reserved fields and unknown flags must be zero (EINVAL), so that a
 * later version can give them a meaning.  Every call may sleep unless it says
 * otherwise.  Every call can fail with:
 *
 *   EPERM      another process than the opener
 *   EFAULT     a pointer of the caller does not point to its memory
 *   EINVAL     a reserved field is not zero, a flag or value is not known
 *   ENOTTY     no such call in this version
 *   ENODEV     the device is gone for good (detached); open another
 *   ENOTCONN   the device is there but has no backend now; the same call may
 *              work later.  Regions of before are gone
 *
 * but XNEM_IOC_COMPLETE and XNEM_IOC_DEREGISTER go on without backend and
 * device: what was started gets its completion, what was pinned is given back.
 *
 * open fails with EMFILE when the device has as many contexts as its backend
 * allows.
 *
 * What version 1 promises: numbers, layouts, meanings and errors of what stands
 * here stay as they are, so a program built today works with every later driver
 * whose abi_version is 1.  What is new within it is a call (ENOTTY from a driver
 * before it), a flag or value (EINVAL), or a field where reserved is zero now: in
 * a request EINVAL from a driver before it, in an answer 0.  Errors that are not
 * listed may be added to any call.  Another meaning of something that is there is
 * another version, and a library must refuse one it does not know.
 */
#ifndef _UAPI_LINUX_XNEM_H
#define _UAPI_LINUX_XNEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** Version of this interface. */
#define XNEM_ABI_VERSION 1

/** A region's name for everybody in its zone: opaque, 16 bytes. */
struct xnem_uapi_cookie {
	__u64 id;
	__u64 key;
};

/**
 * XNEM_IOC_INFO - what this device is and allows
 *
 * Works without a backend too (state tells).  Never sleeps long.
 */
struct xnem_info {
	/** out: XNEM_ABI_VERSION of the driver */
	__u32 abi_version;
	/** out: version of the wire protocol spoken with the backend */
	__u32 proto_version;
	/** out: XNEM_FEAT_* of xen/io/xnemif.h in use with the backend */
	__u64 features;
	/** out: fabric id; equal ids can copy between each other. 0: none */
	__u64 fabric_id;
	/** out: 1 when requests can be made now, else 0 */
	__u32 connected;
	/** out: xenbus id of the device */
	__u32 device_id;
	/** out: domid of the backend's domain */
	__u32 backend_domid;
	/** out: requests a context may have in flight */
	__u32 max_inflight;
	/** out: bytes of the largest region */
	__u64 max_region_bytes;
	/** out: Xen pages (4096 bytes) of all regions of the device, at most */
	__u64 max_pages;
	/** out: Xen pages of the device's regions now, quarantine included */
	__u64 used_pages;
	/** out: the context's address for messages; zero without an inbox */
	struct xnem_uapi_cookie address;
	/** out: bytes to map at offset 0 (see mmap below); 0: nothing */
	__u32 pages_bytes;
	/** out: slots of an inbox; 0: none */
	__u32 inbox_slots;
	/** out: segments of one region */
	__u32 max_segments;
	/** out: pages of a window, and windows; 0: no windowed regions */
	__u32 window_pages;
	__u32 windows;
	/** out: queues in use with the backend */
	__u32 queues;
	/** in: 0 */
	__u64 reserved[7];
};

/* Access to a region. */
/** Others may copy from it. */
#define XNEM_REG_READ (1u << 0)
/** Others may copy to it. */
#define XNEM_REG_WRITE (1u << 1)

/* Flags of a registration. */
/** Any user of the zone may use it; otherwise only one with the same uid. */
#define XNEM_REG_ANY_USER (1u << 0)
/** Good for one copy; to later ones it is unknown.  Still to be deregistered. */
#define XNEM_REG_ONCE (1u << 1)
/**
 * Grant its pages piece by piece, when copies need them, also when it would fit
 * (a region that does not fit is windowed without being asked).
 */
#define XNEM_REG_WINDOWED (1u << 2)

/** A piece of memory; regions can have several. */
struct xnem_seg {
	/** first byte, any alignment */
	__u64 addr;
	/** bytes, 1 or more */
	__u64 length;
};

/**
 * XNEM_IOC_REGISTER - pin memory and give it a name
 *
 * The pages are pinned as they are now (for long, FOLL_LONGTERM): a region is
 * a snapshot of the mapping, and unmapping does not end it.  Pinned pages
 * count against RLIMIT_MEMLOCK of the process unless it has CAP_IPC_LOCK.
 *
 *   EINVAL      length 0, the range wraps, access has neither bit, length is
 *               not the sum of the segments, more segments than max_segments
 *   E2BIG       longer than max_region_bytes
 *   EFAULT      memory is missing, or not accessible as access wants it
 *   EOPNOTSUPP  memory that cannot be shared so: a device mapping, pages that
 *               another guest granted, or, for XNEM_REG_WRITE, a shared
 *               mapping of a file that is written back to disk; or, where the
 *               backend is not trusted, a range that is not whole pages
 *   ENOMEM      RLIMIT_MEMLOCK would be passed (limit = 1 on return), or the
 *               system or the backend is short of memory (limit = 0)
 *   ENOSPC      the device's share of grant references is used up (by regions,
 *               or by pages in quarantine), and it has no windows
 *   EMFILE      the device has as many regions as the backend allows
 *   EINTR       a signal came; nothing is registered
 */
struct xnem_register {
	/**
	 * in: first byte, any alignment; with nr_segments the address of an array
	 * of struct xnem_seg
	 */
	__u64 addr;
	/** in: bytes, 1 .. max_region_bytes, of all segments together */
	__u64 length;
	/** in: XNEM_REG_READ, XNEM_REG_WRITE or both */
	__u32 access;
	/** in: XNEM_REG_ANY_USER, _ONCE, _WINDOWED */
	__u32 flags;
	/** out: number of the region in this context, for XNEM_IOC_DEREGISTER */
	__u32 handle;
	/** out: with ENOMEM, 1 if RLIMIT_MEMLOCK was the reason */
	__u32 limit;
	/** out: the name to give to others */
	struct xnem_uapi_cookie cookie;
	/** in: 0: one piece; else entries at addr, up to max_segments */
	__u32 nr_segments;
	/** in: 0 */
	__u32 reserved0;
	/** in: 0 */
	__u64 reserved[3];
};

/**
 * XNEM_IOC_DEREGISTER - end a region
 *
 * Returns when no copy uses the region any more and the backend has let go of
 * it; its memory can then be reused safely.  A grant that the backend does
 * not let go of keeps its page pinned (in quarantine), not the caller.
 *
 *   EINVAL  no such region in this context
 *   EINTR   a signal came; the region ends nevertheless
 */
struct xnem_deregister {
	/** in */
	__u32 handle;
	/** in: 0 */
	__u32 reserved[3];
};

/**
 * XNEM_IOC_CACHE_GET - a name for a buffer, from the registration cache
 *
 * The cache is the context's: regions of whole pages that were made for a
 * buffer and are kept after their use.  A hit makes no pin, no grant and no
 * request.  An entry is not hit any more as soon as its mapping has changed
 * (munmap, mremap, madvise, fork, truncate, copy on write ...); a use that has
 * begun goes on with the pages as they were when it began.  The least recently
 * used go first when memory or grants are short; entries in use do not go.
 *
 * Private read-only mappings are registered for the one use and not kept.
 * A peer that was given the cookie can use it as long as the entry is kept,
 * also after XNEM_IOC_CACHE_PUT; who cannot allow that uses XNEM_IOC_REGISTER.
 *
 * Errors as XNEM_IOC_REGISTER.
 */
struct xnem_cache_get {
	/** in: first byte, any alignment */
	__u64 addr;
	/** in: bytes, 1 or more */
	__u64 length;
	/** in: XNEM_REG_READ, XNEM_REG_WRITE or both */
	__u32 access;
	/** in: XNEM_REG_ANY_USER or 0 */
	__u32 flags;
	/** out: of this use, for XNEM_IOC_CACHE_PUT */
	__u32 handle;
	/** out: with ENOMEM, 1 if RLIMIT_MEMLOCK was the reason */
	__u32 limit;
	/** out: the region's name */
	struct xnem_uapi_cookie cookie;
	/** out: where addr is in the region */
	__u64 offset;
	/** out: 1: it was there; 0: it was made */
	__u32 hit;
	/** in: 0 */
	__u32 reserved0;
	/** in: 0 */
	__u64 reserved[2];
};

/**
 * XNEM_IOC_CACHE_PUT - a use ends
 *
 * Does not wait.
 *
 *   EINVAL  no such use
 */
struct xnem_cache_put {
	/** in */
	__u32 handle;
	/** in: 0 */
	__u32 reserved[3];
};

/**
 * XNEM_IOC_CACHE_LIMIT - how much the cache keeps
 *
 * Entries without a use go until it fits.  0: nothing is kept: every use makes
 * a region and ends it.  Also empties the cache when limit is what it was.
 */
struct xnem_cache_limit {
	/** in: Xen pages of entries without a use; ~0: as much as fits (default) */
	__u64 max_pages;
	/** in: 0 */
	__u64 reserved[3];
};

/* Operations of a request. */
#define XNEM_REQ_OP_PING 0
#define XNEM_REQ_OP_COPY 1
#define XNEM_REQ_OP_MESSAGE 2

/* Flags of a request. */
/**
 * Its completion goes to the completion page (below), and not to
 * XNEM_IOC_COMPLETE.  EINVAL when the context has no completion page.
 */
#define XNEM_SUBMIT_CPAGE (1u << 0)
/** Start when all earlier requests of the context have ended; later ones wait. */
#define XNEM_SUBMIT_FENCE (1u << 1)
/** Copy: tell the owner of the source, of the destination, when it is done. */
#define XNEM_SUBMIT_NOTIFY_SRC (1u << 2)
#define XNEM_SUBMIT_NOTIFY_DST (1u << 3)
/** Copy: stop where a region ends, with success and fewer bytes. */
#define XNEM_SUBMIT_BOUNDED (1u << 4)
/**
 * Copy: src_offset (dst_offset) is an address of the caller, src (dst) is zero.
 * It is looked up in the registration cache, and registered on a miss, which
 * sleeps; the use ends with the request.  Errors as XNEM_IOC_CACHE_GET.
 */
#define XNEM_SUBMIT_SRC_ADDR (1u << 5)
#define XNEM_SUBMIT_DST_ADDR (1u << 6)

/** One request of XNEM_IOC_SUBMIT. */
struct xnem_submit_req {
	/** in: XNEM_REQ_OP_* */
	__u32 op;
	/** in: XNEM_SUBMIT_* */
	__u32 flags;
	/** in: given back in the completion */
	__u64 user_data;
	/** in, copy: where from */
	struct xnem_uapi_cookie src;
	/** in, copy: where to; message: address of the receiver */
	struct xnem_uapi_cookie dst;
	/**
	 * in, copy: first byte within the source region; message: address of the
	 * bytes to send
	 */
	__u64 src_offset;
	/** in, copy: first byte within the destination region */
	__u64 dst_offset;
	/**
	 * in, copy: bytes; 0 is checked like any other and succeeds; message:
	 * bytes, 0 .. 64
	 */
	__u64 length;
	/** in, with XNEM_SUBMIT_NOTIFY_*: what the owner is told; else 0 */
	__u64 immediate;
	/** in: 0 */
	__u64 reserved;
};

/**
 * XNEM_IOC_SUBMIT - start requests
 *
 * Does not wait for their end.  Starts them in order and stops at the first
 * one that cannot be started; submitted says how many were, and the call
 * fails only when that is none.
 *
 *   EINVAL  an unknown operation or flag, a message that is too long
 *   EOPNOTSUPP  the backend does not offer it
 *   EAGAIN  the context has max_inflight requests in flight (or finished and
 *           not fetched), or the queue is full: fetch completions first
 */
struct xnem_submit {
	/** in: address of an array of struct xnem_submit_req */
	__u64 reqs;
	/** in: entries, 1 .. 1024 */
	__u32 count;
	/** out: requests that were started */
	__u32 submitted;
	/** in: 0 */
	__u64 reserved[2];
};

/** A completed request. */
struct xnem_complete {
	/** out: of the request */
	__u64 user_data;
	/** out: bytes of the contiguous prefix that was copied */
	__u64 bytes_done;
	/**
	 * out: 0, or a negative errno:
	 *   EINVAL        a field the backend does not accept
	 *   ENOENT        no such region: unknown, another zone, wrong key
	 *   EACCES        the region does not allow this direction
	 *   EPERM         the region belongs to another user
	 *   ERANGE        the range does not lie within the region
	 *   EFAULT        Xen refused a page
	 *   EHOSTDOWN     the owner of a region went away during the copy
	 *   ECANCELED     the context was closed
	 *   EAGAIN        a temporary shortage; try again
	 *   EBUSY         an inbox has no room: the message is not delivered, or
	 *                 the copy is done (bytes_done) and its owner not told
	 *   EDESTADDRREQ  the owner to be told has no inbox; nothing was copied
	 *   ENOMEM        the backend is short of memory
	 *   ENOTCONN      the backend went away before it answered
	 *   EOPNOTSUPP    the backend does not know the operation
	 *   EPROTO        the backend's answer makes no sense
	 */
	__s32 status;
	/** out: 0 */
	__u32 reserved;
};

/**
 * XNEM_IOC_COMPLETE - fetch completions, waiting for them if wanted
 *
 * Returns as soon as min_count are there, or the time is over, or the context
 * has nothing in flight any more; count says how many were fetched.
 *
 *   ETIME  the time is over and none was there (with min_count 0 the call
 *          never waits and never fails so)
 *   ENOENT nothing is in flight and nothing is there, although min_count > 0
 *   EINTR  a signal came before min_count were there, and none was fetched (a
 *          wait without limit is restarted when the handler says so)
 */
struct xnem_get_completions {
	/** in: address of an array of struct xnem_complete */
	__u64 completions;
	/** in: its entries, 1 or more */
	__u32 max_count;
	/** in: 0 .. max_count */
	__u32 min_count;
	/** in: longest wait in nanoseconds; negative: no limit */
	__s64 timeout_ns;
	/** out: completions fetched */
	__u32 count;
	/** in: XNEM_COMPLETE_CPAGE or 0 */
	__u32 flags;
	/** in, with XNEM_COMPLETE_CPAGE: entries read of the completion page */
	__u32 cpage_seen;
	/** in, with XNEM_COMPLETE_INBOX: slots read of the inbox */
	__u32 inbox_seen;
};

/**
 * The call also returns, with a count that may be 0, when the completion page
 * has more entries than cpage_seen.
 */
#define XNEM_COMPLETE_CPAGE (1u << 0)
/**
 * The call also returns, with a count that may be 0, when the inbox has more
 * slots than inbox_seen; and it waits for that when nothing is in flight.
 */
#define XNEM_COMPLETE_INBOX (1u << 1)

/**
 * XNEM_IOC_CANCEL - ask for the end of requests
 *
 * Does not wait: each of them has its completion as ever, with ECANCELED or
 * what it came to before.
 *
 *   ENOENT      no request with this user_data is in flight
 *   EAGAIN      the queue is full: fetch completions first
 *   EOPNOTSUPP  the backend does not offer it
 */
struct xnem_cancel {
	/** in: of the requests */
	__u64 user_data;
	/** out: how many the backend was asked to cancel */
	__u32 count;
	/** in: 0 */
	__u32 reserved;
};

/**
 * XNEM_IOC_EVENTFD - an eventfd to signal
 *
 * It is signalled after a request has ended, however it is reported, after
 * something has come into the inbox, and when the backend or the device has
 * gone.  One a context; a new one replaces it.
 *
 *   EBADF, EINVAL  not an eventfd
 */
struct xnem_eventfd {
	/** in: descriptor; -1: none any more */
	__s32 fd;
	/** in: 0 */
	__u32 reserved[3];
};

/**
 * XNEM_IOC_STATS - what this context has done since it was opened
 *
 * Works without a backend and a device.
 */
struct xnem_stats {
	/** out: requests posted (regions' included) and answered */
	__u64 requests;
	__u64 completions;
	/** out: of these with an error */
	__u64 errors;
	/** out: bytes copied by this context's requests */
	__u64 bytes;
	/** out: messages and notifications that came into the inbox (those read) */
	__u64 inbox;
	/** out: registrations, cache hits, misses, entries gone stale, entries evicted */
	__u64 registered;
	__u64 cache_hits;
	__u64 cache_misses;
	__u64 cache_stale;
	__u64 cache_evicted;
	/** out: Xen pages that are pinned now, and of these in the cache without a use */
	__u64 pages;
	__u64 cache_pages;
	/** out: windows granted */
	__u64 windows;
	/** in: 0 */
	__u64 reserved[7];
};

#define XNEM_IOC_MAGIC 'X'
#define XNEM_IOC_INFO _IOWR(XNEM_IOC_MAGIC, 0x40, struct xnem_info)
#define XNEM_IOC_REGISTER _IOWR(XNEM_IOC_MAGIC, 0x41, struct xnem_register)
#define XNEM_IOC_DEREGISTER _IOWR(XNEM_IOC_MAGIC, 0x42, struct xnem_deregister)
#define XNEM_IOC_SUBMIT _IOWR(XNEM_IOC_MAGIC, 0x43, struct xnem_submit)
#define XNEM_IOC_COMPLETE _IOWR(XNEM_IOC_MAGIC, 0x44, struct xnem_get_completions)
#define XNEM_IOC_CACHE_GET _IOWR(XNEM_IOC_MAGIC, 0x45, struct xnem_cache_get)
#define XNEM_IOC_CACHE_PUT _IOWR(XNEM_IOC_MAGIC, 0x46, struct xnem_cache_put)
#define XNEM_IOC_CACHE_LIMIT _IOWR(XNEM_IOC_MAGIC, 0x47, struct xnem_cache_limit)
#define XNEM_IOC_CANCEL _IOWR(XNEM_IOC_MAGIC, 0x48, struct xnem_cancel)
#define XNEM_IOC_EVENTFD _IOWR(XNEM_IOC_MAGIC, 0x49, struct xnem_eventfd)
#define XNEM_IOC_STATS _IOWR(XNEM_IOC_MAGIC, 0x4a, struct xnem_stats)

/*
 * mmap: offset 0, pages_bytes of XNEM_IOC_INFO, shared, readable and writable:
 * the context's pages (xen/io/xnemif.h, section 6), 4096 bytes each: the
 * control page, the completion page, and the inbox if there is one.  The
 * backend writes the last two and the process polls them, with no system call
 * and no event; the process writes the control page: inbox_cons and cpage_cons,
 * each time it has read.  Once a context.  Not inherited by a child.
 *
 *   EINVAL      another offset or length, private, or executable
 *   EBUSY       the context has or had one
 *   EOPNOTSUPP  the backend does not offer it
 *   ENOTCONN, ENODEV, ENOSPC, ENOMEM, EINTR as with XNEM_IOC_REGISTER
 *
 * When the backend goes away, what had not ended by then is reported by
 * XNEM_IOC_COMPLETE with ENOTCONN, and the page does not change any more.
 *
 * poll: EPOLLIN when XNEM_IOC_COMPLETE has something, when the completion page
 * has more entries than control.cpage_cons says were read, or the inbox more
 * slots than control.inbox_cons; EPOLLERR | EPOLLHUP when the device is gone.
 */

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define XNEM_LAYOUT(cond) _Static_assert(cond, "xnem ioctl layout: " #cond)
XNEM_LAYOUT(sizeof(struct xnem_uapi_cookie) == 16);
XNEM_LAYOUT(sizeof(struct xnem_info) == 160);
XNEM_LAYOUT(sizeof(struct xnem_register) == 80);
XNEM_LAYOUT(sizeof(struct xnem_deregister) == 16);
XNEM_LAYOUT(sizeof(struct xnem_submit_req) == 88);
XNEM_LAYOUT(sizeof(struct xnem_seg) == 16);
XNEM_LAYOUT(sizeof(struct xnem_cache_get) == 80);
XNEM_LAYOUT(sizeof(struct xnem_cache_put) == 16);
XNEM_LAYOUT(sizeof(struct xnem_cache_limit) == 32);
XNEM_LAYOUT(sizeof(struct xnem_cancel) == 16);
XNEM_LAYOUT(sizeof(struct xnem_eventfd) == 16);
XNEM_LAYOUT(sizeof(struct xnem_stats) == 160);
XNEM_LAYOUT(sizeof(struct xnem_submit) == 32);
XNEM_LAYOUT(sizeof(struct xnem_complete) == 24);
XNEM_LAYOUT(sizeof(struct xnem_get_completions) == 40);
XNEM_LAYOUT(__builtin_offsetof(struct xnem_get_completions, timeout_ns) == 16);
#undef XNEM_LAYOUT
#endif

#endif /* _UAPI_LINUX_XNEM_H */
