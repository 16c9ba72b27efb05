/* SPDX-License-Identifier: MIT */
/*
 * xnem.h - copy memory between processes in different VMs of one Xen host
 *
 * A process registers memory (a region), gives the region's name (a cookie,
 * 24 bytes) to others by any means it likes, and anybody of the same zone can
 * then copy from it or to it.  See xnem(7) for the whole picture.
 *
 * Conventions, true of every call here unless it says otherwise:
 *
 *  - Returns 0 (or a count) on success and a negative errno on failure;
 *    xnem_strerror() has a sentence for each.  Results behind pointers are
 *    written on success only.
 *  - Lengths and offsets are bytes, times are nanoseconds.
 *  - Threads: the calls on one context may run in several threads at once,
 *    except xnem_close(), and except xnem_deregister() of a region that
 *    another thread still passes to a call.  There is no global state.
 *  - Signals: a call that waits says what a signal does to it.
 *  - After fork the child can do nothing with an inherited context but
 *    xnem_close() it (a local clean-up, the parent's context lives on);
 *    every other call that takes a context or a region fails with -EPERM.
 *  - Not async-signal-safe.
 *
 * Errors that any call can return which takes a context or a region:
 *
 *   -EPERM     the process is a child of the one that opened the context
 *   -ENODEV    the device was detached for good; open another
 *   -ENOTCONN  the device has no backend now; it may come back.  Regions of
 *              before are gone then, register anew
 *   -ENOBUFS   the kernel or the backend is short of memory
 *   -ENOMEM    this process is short of memory (or, xnem_register() alone,
 *              has reached its RLIMIT_MEMLOCK)
 */
#ifndef XNEM_H
#define XNEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this library. */
#define XNEM_VERSION_MAJOR 0
#define XNEM_VERSION_MINOR 1
#define XNEM_VERSION_PATCH 0
#define XNEM_VERSION "0.1.0"

/** A context: one open of a device.  Opaque. */
struct xnem;
/** Memory of this process that others may name.  Opaque. */
struct xnem_region;

/** A request under way that is waited for by xnem_wait() or xnem_test(). */
typedef uint64_t xnem_req;
/** A value no request ever has. */
#define XNEM_REQ_NONE ((xnem_req)0)

/** Wait without a limit, where a timeout is asked for. */
#define XNEM_FOREVER ((int64_t)-1)

/** Bytes of a cookie. */
#define XNEM_COOKIE_SIZE 24
/** Bytes of a cookie as text, the final zero included. */
#define XNEM_COOKIE_TEXT_SIZE (2 * XNEM_COOKIE_SIZE + 1)

/**
 * A region's name for everybody.  Opaque: copy it, send it, compare it as
 * bytes.  The same bytes mean the same on every machine.  Who has it can use
 * the region (within the region's access and user rules): treat it like a
 * password.  All zeroes is never a region's.
 */
struct xnem_cookie {
	unsigned char bytes[XNEM_COOKIE_SIZE];
};

/**
 * A context's address, for messages.  Opaque: copy it, send it, compare it as
 * bytes, as a cookie.  All zeroes is never a context's.
 */
struct xnem_address {
	unsigned char bytes[XNEM_COOKIE_SIZE];
};

/** What a device is and allows; see xnem_get_info(). */
struct xnem_device_info {
	/** equal, non-zero ids can copy between each other; 0: no backend yet */
	uint64_t fabric_id;
	/** feature bits in use with the backend (XNEM_FEAT_* of the protocol) */
	uint64_t features;
	/** bytes of the largest region */
	uint64_t max_region_bytes;
	/** pages of 4096 bytes that all regions of the device may have */
	uint64_t max_pages;
	/** of these, in use now by any process, or on their way back */
	uint64_t used_pages;
	/** version of the driver's ioctl interface */
	uint32_t abi_version;
	/** version of the wire protocol spoken with the backend */
	uint32_t proto_version;
	/** 1: requests can be made now; 0: there is no backend */
	uint32_t connected;
	/** the N of /dev/xnemN */
	uint32_t device_id;
	/** domain that runs the backend */
	uint32_t backend_domid;
	/** requests a context may have in flight */
	uint32_t max_inflight;
	/** messages and notifications that an inbox holds; 0: no inbox */
	uint32_t inbox_slots;
	/** segments of one region; 1: no more than one */
	uint32_t max_segments;
	/** windows (regions larger than the grant table); 0: none */
	uint32_t windows;
	/** pages of 4096 bytes of a window */
	uint32_t window_pages;
	/** queues in use with the backend */
	uint32_t queues;
	uint32_t pad;
	/** 0 now; later versions may use it */
	uint64_t reserved[5];
};

/* ---- context ---------------------------------------------------------- */

/**
 * xnem_open() - open a device
 * @device: path of a device node.  NULL: the environment's XNEM_DEVICE, else
 *	/dev/xnem, else /dev/xnem0
 * @ctx: out: the context, owned by the caller until xnem_close()
 *
 * Succeeds without a backend too: xnem_get_info() tells, and calls that need
 * one fail with -ENOTCONN until it is there.  The descriptor inside is
 * close-on-exec.  May sleep, not for long.
 *
 * Return: 0, or
 *   -ENOENT           no device node: the module xnem-frontend is not loaded,
 *                     or no device is attached to this guest
 *   -EACCES           no permission for the node (group xnem?)
 *   -ENODEV, -ENXIO   the node is there but the device behind it is not
 *   -ENOTTY           the path is something else than an XNEM device
 *   -EPROTONOSUPPORT  driver and library speak different ioctl versions
 *   -EMFILE           too many open files, or the device has as many contexts
 *                     as the backend allows
 *   -ENFILE           too many open files in the system
 *   -EINVAL           @ctx is NULL
 *   -ENOMEM
 */
int xnem_open(const char *device, struct xnem **ctx);

/**
 * xnem_close() - end a context
 * @ctx: a context, or NULL (nothing happens)
 *
 * Deregisters each region and waits for it: when 0 is returned nothing writes
 * to or reads from the memory of the regions any more (see xnem_deregister()).  Requests still under
 * way that touch no region of this context (third party copies) are cancelled
 * after the return.  All regions, requests and the descriptor are invalid
 * afterwards, whatever is returned.  No other call may run on @ctx, or start.
 *
 * In a child after fork only frees what the child has; returns 0.
 *
 * Sleeps until the last copy that uses a region has ended; signals are held
 * back meanwhile (SIGKILL is not).
 *
 * Return: 0, or the first error of xnem_deregister(): then memory of that
 * region must be considered in use until the process ends.
 */
int xnem_close(struct xnem *ctx);

/**
 * xnem_get_info() - what the device is and allows, as of now
 * @ctx: a context
 * @info: out
 *
 * Works without a backend.  May sleep, not for long.
 *
 * Return: 0, -EPERM, -ENODEV.
 */
int xnem_get_info(struct xnem *ctx, struct xnem_device_info *info);

/**
 * xnem_fd() - a descriptor for poll, select or epoll
 * @ctx: a context
 *
 * Becomes readable when something has completed since the last call of
 * xnem_get_events(), when something has come into the inbox, or when the device
 * is gone.  Then call
 * xnem_get_events() (min 0), which clears it, and after that xnem_test() for
 * requests with a handle, and xnem_recv() until it finds none, if anybody sends
 * to this context: it stays readable while the inbox holds anything.  Do all
 * that once before the first poll.  Readiness may be spurious.  One thread at a
 * time should sleep on it.
 *
 * The descriptor belongs to the context: neither read, write nor close it.
 * Made at the first call.
 *
 * Return: the descriptor, or -EPERM, -EMFILE, -ENFILE, -ENOMEM.
 */
int xnem_fd(struct xnem *ctx);

/**
 * xnem_ping() - there to the backend and back
 * @ctx: a context
 * @timeout_ns: longest wait; XNEM_FOREVER: no limit
 * @elapsed_ns: out, may be NULL: time it took
 *
 * Sleeps.  A signal does not end it.
 *
 * Return: 0, -ETIMEDOUT, -EAGAIN (too much in flight), or an error of any
 * call.
 */
int xnem_ping(struct xnem *ctx, int64_t timeout_ns, uint64_t *elapsed_ns);

/* ---- regions ----------------------------------------------------------- */

/** Access: others may copy from it, and the own process too. */
#define XNEM_READ (1u << 0)
/** Access: others may copy to it, and the own process too. */
#define XNEM_WRITE (1u << 1)
/** Flag: any user may use it; otherwise only processes of the same uid. */
#define XNEM_ANY_USER (1u << 8)
/** Flag: good for one copy; to later ones it is unknown (-ENOENT). */
#define XNEM_ONCE (1u << 9)
/**
 * Flag: grant its pages piece by piece, when copies need them, also when it
 * would fit at once.  Regions that do not fit are so without being asked.
 */
#define XNEM_WINDOWED (1u << 10)

/**
 * xnem_register() - make memory a region
 * @ctx: a context
 * @addr: first byte, any alignment
 * @len: bytes, 1 to max_region_bytes of xnem_get_info()
 * @flags: XNEM_READ, XNEM_WRITE or both; and XNEM_ANY_USER, XNEM_ONCE,
 *	XNEM_WINDOWED if wanted
 * @region: out: the region, owned by the caller until xnem_deregister() or
 *	xnem_close()
 *
 * Pins the pages as they are now and counts them against RLIMIT_MEMLOCK: a
 * region is a snapshot of the mapping.  Unmapping the memory does not end it
 * (what is mapped there later is no part of it): deregister before free().
 * Memory that the process copies *into* itself (xnem_get()) must
 * have XNEM_WRITE, memory it copies *from* (xnem_put()) XNEM_READ.
 *
 * The uid rule is kept by the guests' kernels: between guests it is as good as
 * the other guest's kernel.
 *
 * Sleeps while pages are pinned and the backend is told.
 *
 * Return: 0, or
 *   -EINVAL      @len is 0, the range wraps, an unknown or no access flag
 *   -E2BIG       longer than max_region_bytes
 *   -EFAULT      memory is missing there, or has not the access wanted
 *   -EOPNOTSUPP  memory that cannot be shared so: a device mapping, or for
 *                XNEM_WRITE a shared mapping of a file on a disk; or not whole
 *                pages of 4096 bytes, on a device attached with trusted=0
 *   -ENOMEM      RLIMIT_MEMLOCK ("ulimit -l") would be passed; or malloc failed
 *   -ENOSPC      the device's share of grants is used up
 *   -EMFILE      the device has as many regions as the backend allows
 *   -EINTR       a signal came; nothing is registered
 *   or an error of any call.
 */
int xnem_register(struct xnem *ctx, void *addr, size_t len, unsigned int flags,
		  struct xnem_region **region);

/**
 * xnem_registerv() - make many pieces of memory one region
 * @ctx: a context
 * @iov: the pieces; positions in the region count through them in this order.
 *	The array may be reused at once
 * @iovcnt: how many, 1 to max_segments of xnem_get_info()
 * @flags, @region: as xnem_register()
 *
 * The pieces may be in any order and may overlap.  Pieces of 0 bytes are left
 * out; all together must not be empty.
 *
 * Return: as xnem_register(); -EINVAL also when there are too many pieces or
 * their sum wraps; -EOPNOTSUPP also when the backend knows no segments.
 */
int xnem_registerv(struct xnem *ctx, const struct iovec *iov, int iovcnt, unsigned int flags,
		   struct xnem_region **region);

/**
 * xnem_deregister() - end a region
 * @region: a region, or NULL (nothing happens)
 *
 * Sleeps until no copy, by whomever, uses the region any more; signals are
 * held back meanwhile (SIGKILL is not).  On 0 the memory may be reused or
 * freed.  @region is invalid afterwards whatever is returned, except -EPERM.
 *
 * A backend that keeps a grant against the protocol does not hold up the call:
 * its page stays pinned and out of any other use, but it is still mapped here.
 *
 * Return: 0, also when the region ended with its backend before; -EPERM; or
 * another error, -ENODEV among them: then the memory must be considered in use
 * until the process ends.
 */
int xnem_deregister(struct xnem_region *region);

/** xnem_region_cookie() - its name for others; lives as long as the region. */
const struct xnem_cookie *xnem_region_cookie(const struct xnem_region *region);
/** xnem_region_addr() - its first byte (of the first piece). */
void *xnem_region_addr(const struct xnem_region *region);
/** xnem_region_length() - its bytes. */
size_t xnem_region_length(const struct xnem_region *region);
/** xnem_region_flags() - what it was registered with. */
unsigned int xnem_region_flags(const struct xnem_region *region);

/* ---- registration cache --------------------------------------------------- */

/** A use of a buffer in the registration cache. */
struct xnem_use {
	/** the region's name, for others */
	struct xnem_cookie cookie;
	/** where the buffer begins in that region: add it to each offset */
	uint64_t offset;
	/** of the kernel */
	uint32_t handle;
	/** 1: it was there already; 0: it was made */
	uint32_t hit;
};

/**
 * xnem_cache_get() - a name for a buffer, from the registration cache
 * @ctx: a context
 * @addr: first byte, any alignment
 * @len: bytes, 1 or more
 * @flags: XNEM_READ, XNEM_WRITE or both; and XNEM_ANY_USER
 * @use: out: the name; given back with xnem_cache_put()
 *
 * The kernel keeps regions that were made for buffers: a second use of the
 * same buffer costs one short system call, no pin, no grant and no request.
 * An entry is not found any more as soon as its memory has been unmapped,
 * moved, discarded or replaced in any way, so there is nothing to tell the
 * cache when memory is freed.  What is being used goes on with the memory as
 * it was when the use began.
 *
 * Whoever was given the cookie can use it for as long as the entry is kept,
 * also after xnem_cache_put(); who cannot have that uses xnem_register().
 *
 * xnem_getv_start() and operations with XNEM_OP_SRC_ADDR or XNEM_OP_DST_ADDR use
 * the cache by themselves.
 *
 * Sleeps when the buffer is not there yet.
 *
 * Return: 0, or as xnem_register().
 */
int xnem_cache_get(struct xnem *ctx, const void *addr, size_t len, unsigned int flags,
		   struct xnem_use *use);

/**
 * xnem_cache_put() - end a use
 *
 * Does not wait: a copy that another process has started goes on, with pages
 * that stay pinned until it has ended.
 *
 * Return: 0, -EINVAL (no such use), -EPERM.
 */
int xnem_cache_put(struct xnem *ctx, const struct xnem_use *use);

/**
 * xnem_cache_limit() - how much memory the cache keeps, or none
 * @ctx: a context
 * @bytes: of entries without a use; 0: nothing is kept; UINT64_MAX: as much as
 *	RLIMIT_MEMLOCK and the grant table allow (the default)
 *
 * Entries without a use go until it fits.  The environment's XNEM_CACHE_BYTES, a
 * number of bytes, sets what a context begins with.
 *
 * Return: 0, or an error of any call.
 */
int xnem_cache_limit(struct xnem *ctx, uint64_t bytes);

/* ---- cookies ------------------------------------------------------------ */

/**
 * xnem_cookie_to_text() - 48 hexadecimal digits for scripts
 * @cookie: a cookie
 * @text: out: the digits and a final zero
 *
 * Never fails, never sleeps.
 */
void xnem_cookie_to_text(const struct xnem_cookie *cookie, char text[XNEM_COOKIE_TEXT_SIZE]);

/**
 * xnem_cookie_from_text() - the reverse
 * @text: 48 hexadecimal digits; white space may follow
 * @cookie: out
 *
 * Return: 0, or -EINVAL: something else than that.  Never sleeps.
 */
int xnem_cookie_from_text(const char *text, struct xnem_cookie *cookie);

/**
 * xnem_cookie_fabric() - fabric id of the device that made a cookie
 *
 * Two processes can copy between each other when the fabric ids of their
 * devices are equal: same host, same backend (in the same life), same zone.
 */
uint64_t xnem_cookie_fabric(const struct xnem_cookie *cookie);

/**
 * xnem_reachable() - can this context copy from or to that region?
 * @ctx: a context
 * @cookie: a cookie
 *
 * Compares fabric ids, asks nobody but the own kernel and that only if they
 * differ; whether the region still exists shows when it is used.
 *
 * Return: 0: yes.  -EXDEV: it belongs to another host, zone or backend, or to
 * an earlier life of the backend.  -ENOTCONN, -ENODEV, -EPERM.
 */
int xnem_reachable(struct xnem *ctx, const struct xnem_cookie *cookie);

/* ---- copies --------------------------------------------------------------- */

/*
 * Errors with which a copy can end, whichever way its end is learned:
 *
 *   -EXDEV       the other region is of another host, zone, backend, or of an
 *                earlier life of the backend: get a new cookie, or go another way
 *   -ESTALE      the own region is of an earlier life of the backend: register
 *                it anew
 *   -ENOENT      no such region: deregistered, or a wrong key
 *   -EACCES      the region does not allow this direction
 *   -EPERM       the region is another user's (not XNEM_ANY_USER)
 *   -ERANGE      the range does not lie within the region
 *   -EFAULT      Xen refused a page
 *   -EHOSTDOWN   the region's owner ended during the copy
 *   -ECANCELED   xnem_cancel(), or the context was closed
 *   -EAGAIN      a temporary shortage, try again
 *   -EBUSY       the inbox of the owner to be told is full: the copy is done
 *                (*done), the notification is not; repeat it with 0 bytes
 *   -EDESTADDRREQ  the owner to be told has no inbox; nothing was copied
 *   -EINVAL      the backend does not accept a field
 *   -EOPNOTSUPP  the backend does not know the operation
 *   -EPROTO      an answer that makes no sense, one that claims success for
 *                fewer bytes than asked among them
 *
 * Success means that all bytes are in place: there is no short success, except
 * where it is asked for (XNEM_OP_BOUNDED).  On
 * failure *done tells how many bytes from the start are; beyond them the
 * destination is unspecified.  A copy of 0 bytes is checked like any other.
 * Source and destination ranges that overlap give unspecified bytes.
 */

/**
 * xnem_get() - copy into own memory, and wait
 * @local: own region with XNEM_WRITE, destination
 * @local_off: first byte within it
 * @remote: source region
 * @remote_off: first byte within it
 * @len: bytes
 * @done: out, may be NULL; written on failure too: bytes that are in place
 *
 * Sleeps until the copy has ended, however long; a signal does not end it
 * (SIGKILL ends the process).  For a limit use xnem_get_start() and
 * xnem_wait().  When too much is in flight it waits for room.
 *
 * Return: 0, or an error of the table above or of any call.
 */
int xnem_get(struct xnem_region *local, uint64_t local_off, const struct xnem_cookie *remote,
	     uint64_t remote_off, uint64_t len, uint64_t *done);

/**
 * xnem_put() - copy from own memory, and wait
 *
 * As xnem_get(), the other way: @local (with XNEM_READ) is the source.
 */
int xnem_put(struct xnem_region *local, uint64_t local_off, const struct xnem_cookie *remote,
	     uint64_t remote_off, uint64_t len, uint64_t *done);

/**
 * xnem_copy() - copy between any two regions, and wait
 *
 * As xnem_get(); both regions may belong to other processes and other guests.
 */
int xnem_copy(struct xnem *ctx, const struct xnem_cookie *dst, uint64_t dst_off,
	      const struct xnem_cookie *src, uint64_t src_off, uint64_t len, uint64_t *done);

/**
 * xnem_get_start() - start a copy into own memory
 * @local, @local_off, @remote, @remote_off, @len: as xnem_get()
 * @user_data: of the event, when @req is NULL
 * @req: out: the request, for xnem_wait() and xnem_test().  NULL: its end is
 *	reported by xnem_get_events() with @user_data instead.  Each end is
 *	reported once, one way or the other
 *
 * Both ranges must be left alone until the request has ended.  Does not wait.
 *
 * Return: 0: started.  Otherwise nothing was started:
 *   -EAGAIN  too much in flight: fetch ends (xnem_wait(), xnem_test(),
 *            xnem_get_events()), then try again
 *   -EXDEV, -ESTALE, or an error of any call.
 */
int xnem_get_start(struct xnem_region *local, uint64_t local_off, const struct xnem_cookie *remote,
		   uint64_t remote_off, uint64_t len, uint64_t user_data, xnem_req *req);

/** xnem_put_start() - start a copy from own memory; as xnem_get_start(). */
int xnem_put_start(struct xnem_region *local, uint64_t local_off, const struct xnem_cookie *remote,
		   uint64_t remote_off, uint64_t len, uint64_t user_data, xnem_req *req);

/** xnem_copy_start() - start a third party copy; as xnem_get_start(). */
int xnem_copy_start(struct xnem *ctx, const struct xnem_cookie *dst, uint64_t dst_off,
		    const struct xnem_cookie *src, uint64_t src_off, uint64_t len,
		    uint64_t user_data, xnem_req *req);

/**
 * xnem_getv_start() - start a copy into pieces of own memory
 * @ctx: a context
 * @iov: the pieces, any memory of this process, registered or not; the array
 *	may be reused at once
 * @iovcnt: how many, 1 to 1024
 * @remote, @remote_off: the source, copied from there in one stretch
 * @user_data, @req: as xnem_get_start()
 *
 * The pieces go through the registration cache.  Ends when all pieces have
 * ended; bytes that are in place are counted from the first piece, and the error
 * is that of the first piece that has one.  Pieces of 0 bytes are left out; all
 * together must not be empty.
 *
 * Sleeps when a piece is not in the cache.  Pieces for which there is no room
 * (max_inflight) are started by later calls that wait or look.
 *
 * Return: as xnem_get_start(), or as xnem_cache_get(); -EINVAL also when there
 * are too many pieces, or no bytes.
 */
int xnem_getv_start(struct xnem *ctx, const struct iovec *iov, int iovcnt,
		    const struct xnem_cookie *remote, uint64_t remote_off, uint64_t user_data,
		    xnem_req *req);

/** xnem_putv_start() - start a copy from pieces of own memory; as xnem_getv_start(). */
int xnem_putv_start(struct xnem *ctx, const struct iovec *iov, int iovcnt,
		    const struct xnem_cookie *remote, uint64_t remote_off, uint64_t user_data,
		    xnem_req *req);

/** xnem_getv() - copy into pieces of own memory, and wait; see xnem_getv_start(), xnem_get(). */
int xnem_getv(struct xnem *ctx, const struct iovec *iov, int iovcnt,
	      const struct xnem_cookie *remote, uint64_t remote_off, uint64_t *done);

/** xnem_putv() - copy from pieces of own memory, and wait; see xnem_getv_start(), xnem_put(). */
int xnem_putv(struct xnem *ctx, const struct iovec *iov, int iovcnt,
	      const struct xnem_cookie *remote, uint64_t remote_off, uint64_t *done);

/**
 * xnem_cancel() - ask for the end of a request
 * @ctx: a context
 * @req: a request of it
 *
 * Does not wait.  The request still ends, with -ECANCELED or what it came to
 * before: its memory is in use until xnem_wait() or xnem_test() says so.
 *
 * Return: 0: asked.  -EBADR: no such request, or it has ended (xnem_wait() tells
 * how, still); -EAGAIN: too much in flight, try again; -EOPNOTSUPP; or an error
 * of any call.
 */
int xnem_cancel(struct xnem *ctx, xnem_req req);

/**
 * xnem_wait() - wait for the end of a request
 * @ctx: a context
 * @req: a request of it
 * @timeout_ns: longest wait; 0: only look; XNEM_FOREVER: no limit
 * @done: out, may be NULL: bytes that are in place
 *
 * Other threads' requests are left to them.  A limit that passes cancels
 * nothing.  @req is used up by every return but -ETIMEDOUT and -EINTR (and
 * -EBADR).
 *
 * Return: 0: all bytes are in place.
 *   -ETIMEDOUT  not ended yet
 *   -EINTR      a signal handler ran that was installed without SA_RESTART;
 *               not ended yet.  When several threads wait on one context a
 *               signal may go unreported: use a limit
 *   -EBADR      no such request, or its end was reported before
 *   or the error with which the copy ended, *done written.
 */
int xnem_wait(struct xnem *ctx, xnem_req req, int64_t timeout_ns, uint64_t *done);

/**
 * xnem_test() - has a request ended?
 *
 * As xnem_wait() with a limit of 0, but -EINPROGRESS: not yet.  Does not
 * wait.
 */
int xnem_test(struct xnem *ctx, xnem_req req, uint64_t *done);

/* ---- in batches ------------------------------------------------------------ */

/** What an operation is. */
enum xnem_kind {
	/** Copy length bytes from src to dst. */
	XNEM_KIND_COPY = 0,
	/** To the backend and back; the other fields are not looked at. */
	XNEM_KIND_PING = 1,
	/**
	 * length bytes (at most XNEM_MESSAGE_MAX) at address src_offset to the
	 * context with the address dst (a struct xnem_address copied there).
	 */
	XNEM_KIND_MESSAGE = 2,
};

/* Flags of an operation. */
/** Start when all operations before it have ended, and let later ones wait. */
#define XNEM_OP_FENCE (1u << 0)
/** Copy: when it is done, tell the owner of the source (XNEM_EVENT_NOTIFY). */
#define XNEM_OP_NOTIFY_SRC (1u << 1)
/** Copy: when it is done, tell the owner of the destination. */
#define XNEM_OP_NOTIFY_DST (1u << 2)
/** Copy: stop where a region ends, with success and fewer bytes. */
#define XNEM_OP_BOUNDED (1u << 3)
/**
 * Copy: src_offset is an address of this process, in the registration cache or
 * registered now; src is zero.
 */
#define XNEM_OP_SRC_ADDR (1u << 4)
/** Copy: likewise dst_offset and dst. */
#define XNEM_OP_DST_ADDR (1u << 5)

/** An operation to start. */
struct xnem_op {
	/** enum xnem_kind */
	uint32_t kind;
	/** XNEM_OP_* */
	uint32_t flags;
	/** given back in its event */
	uint64_t user_data;
	/** bytes */
	uint64_t length;
	/** first byte within the source */
	uint64_t src_offset;
	/** first byte within the destination */
	uint64_t dst_offset;
	/** with XNEM_OP_NOTIFY_*: what the owner is told; else 0 */
	uint64_t immediate;
	/** source */
	struct xnem_cookie src;
	/** destination */
	struct xnem_cookie dst;
};

/** What an event is. */
enum xnem_event_kind {
	/** An operation of this context has ended. */
	XNEM_EVENT_DONE = 0,
	/**
	 * Somebody's copy with XNEM_OP_NOTIFY_* from or to a region of this
	 * context is done: all its bytes are in place.  user_data is its
	 * immediate, bytes its length, status 0.
	 */
	XNEM_EVENT_NOTIFY = 1,
};

/** An event. */
struct xnem_event {
	/** of the operation; notification: the immediate */
	uint64_t user_data;
	/** bytes from the start that are in place */
	uint64_t bytes;
	/** 0: all are; else a negative errno of the table above */
	int32_t status;
	/** enum xnem_event_kind */
	uint32_t kind;
};

/**
 * xnem_submit() - start many operations
 * @ctx: a context
 * @ops: operations; may be reused at once
 * @n: how many, 0 or more
 *
 * Starts them in order until one cannot be started.  Each that was started
 * ends with one event.  There is no order between operations but that of
 * XNEM_OP_FENCE, and of messages to one receiver.  One system call for each
 * 1024.  Does not wait for their ends; sleeps when an address is not in the
 * registration cache.
 *
 * Return: how many were started, 1 or more (0 if @n is 0); or why the first
 * was not: -EAGAIN (too much in flight: fetch events first), -EXDEV, -EINVAL,
 * -EMSGSIZE, -EOPNOTSUPP (the backend does not know a kind or flag), what
 * xnem_cache_get() returns, or an error of any call.
 */
int xnem_submit(struct xnem *ctx, const struct xnem_op *ops, unsigned int n);

/**
 * xnem_get_events() - learn of ends and notifications
 * @ctx: a context
 * @events: out: array of @max
 * @min: wait until so many are there; 0: do not wait
 * @max: fetch no more than so many, 1 or more, and not less than @min
 * @timeout_ns: longest wait; XNEM_FOREVER: no limit
 *
 * Return: how many were fetched.  Fewer than @min only if the time is over,
 * a signal came, or nothing more is under way.  If none was fetched and @min
 * is not 0:
 *   -ETIMEDOUT  the time is over
 *   -EINTR      a signal handler ran (see xnem_wait())
 *   -ENOENT     nothing is under way (a context with an inbox waits: a
 *               notification may come at any time)
 *   -ENOTCONN, -ESTALE  the inbox has ended with its backend; said once
 * else -EINVAL or an error of any call.
 *
 * Notifications are reported here alone; messages by xnem_recv() alone.  Without
 * a wait it reads the process's own memory and makes no system call.
 */
int xnem_get_events(struct xnem *ctx, struct xnem_event *events, unsigned int min, unsigned int max,
		    int64_t timeout_ns);

/* ---- messages --------------------------------------------------------------- */

/** Bytes of a message. */
#define XNEM_MESSAGE_MAX 64

/** A message that has arrived. */
struct xnem_message {
	/** address of the sender; all zeroes when it has no inbox */
	struct xnem_address from;
	/** uid of the sender in its guest, as that guest's kernel says */
	uint64_t tag;
	/** domain id of the sender's guest; the backend's word */
	uint32_t domid;
	/** bytes of data */
	uint32_t length;
	/** the bytes, then zeroes */
	unsigned char data[XNEM_MESSAGE_MAX];
};

/**
 * xnem_get_address() - where messages to this context go
 * @ctx: a context
 * @address: out
 *
 * Any process in the zone that knows it can send to it.  It is gone with the
 * backend, as regions are, and so is the context's inbox: messages then need
 * another context.
 *
 * Return: 0, -EOPNOTSUPP (the backend or the driver knows no messages), -ESTALE
 * (it went with a backend of before), or an error of any call.
 */
int xnem_get_address(struct xnem *ctx, struct xnem_address *address);

/**
 * xnem_send() - send a message, and wait until it is delivered
 * @ctx: a context
 * @to: address of the receiver
 * @data: the bytes
 * @len: 0 to XNEM_MESSAGE_MAX
 * @timeout_ns: longest wait for room in the receiver's inbox; 0: none
 *
 * Delivered means: in the receiver's inbox, not yet read.  Messages of one
 * context to another arrive in order, each once.  A signal does not end it.
 *
 * Return: 0, or
 *   -EBUSY   the receiver's inbox has no room
 *   -ENOENT  no such receiver
 *   -EXDEV   it is of another host, zone or backend
 *   -EMSGSIZE, -EOPNOTSUPP, or an error of any call.
 */
int xnem_send(struct xnem *ctx, const struct xnem_address *to, const void *data, size_t len,
	      int64_t timeout_ns);

/**
 * xnem_recv() - take a message
 * @ctx: a context
 * @message: out
 * @timeout_ns: longest wait; 0: only look; XNEM_FOREVER: no limit
 *
 * Return: 0, or
 *   -EAGAIN     none is there (with a timeout of 0)
 *   -ETIMEDOUT  none came in time
 *   -EINTR      a signal handler ran (see xnem_wait())
 *   -ESTALE     the inbox went with a backend of before, and all that was in
 *               it has been taken: open another context
 *   -EOPNOTSUPP, or an error of any call.
 *
 * Messages and notifications share the inbox's room, and stay there until they
 * are taken: who is sent both takes both, or senders find it full (-EBUSY).
 */
int xnem_recv(struct xnem *ctx, struct xnem_message *message, int64_t timeout_ns);

/* ---- events from elsewhere --------------------------------------------------- */

/**
 * xnem_set_eventfd() - an eventfd of the caller to signal
 * @ctx: a context
 * @fd: an eventfd; -1: none any more
 *
 * Its counter grows when requests have ended or something has come into the
 * inbox, by whatever call that is then learned.  It may count several as one.
 * One a context: a new one replaces it.
 *
 * Return: 0, -EBADF, -EINVAL, or an error of any call.
 */
int xnem_set_eventfd(struct xnem *ctx, int fd);

/* ---- statistics -------------------------------------------------------------- */

/** What a context has done since it was opened. */
struct xnem_counts {
	/** requests made (those for regions included), answered, failed */
	uint64_t requests, completions, errors;
	/** bytes copied by its requests */
	uint64_t bytes;
	/** messages and notifications that it has read */
	uint64_t inbox;
	/** registrations, and what the cache did */
	uint64_t registered, cache_hits, cache_misses, cache_stale, cache_evicted;
	/** pages of 4096 bytes pinned now; of these in the cache without a use */
	uint64_t pages, cache_pages;
	/** windows granted */
	uint64_t windows;
	/** system calls that the library made on the device */
	uint64_t syscalls;
	/** 0 now */
	uint64_t reserved[10];
};

/**
 * xnem_get_counts() - statistics of a context
 *
 * Works without a backend and a device.  Return: 0 or -EPERM.
 */
int xnem_get_counts(struct xnem *ctx, struct xnem_counts *counts);

/* ---- text ------------------------------------------------------------------ */

/**
 * xnem_strerror() - what an error means in XNEM
 * @err: an errno, negative or positive; 0
 *
 * Return: one English sentence without a full stop, constant.
 */
const char *xnem_strerror(int err);

/** xnem_errname() - its name, as "ENOENT"; "E?" for one that XNEM never returns. */
const char *xnem_errname(int err);

/** xnem_version() - of the library in use, as XNEM_VERSION. */
const char *xnem_version(void);

#ifdef __cplusplus
}
#endif

#endif /* XNEM_H */
