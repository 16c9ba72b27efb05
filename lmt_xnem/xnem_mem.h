/* SPDX-License-Identifier: MIT */
/*
 * libxnem as the module uses it, found at run time; knows nothing of MPICH.
 * Not for several threads at once: MPICH's global lock is held.
 *
 * Returns 0 or a negative errno, as libxnem.
 */
#ifndef XNEM_MEM_H
#define XNEM_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "xnem.h"

/** A buffer that others may read. */
struct xm_use {
	struct xnem_cookie cookie;
	/** where it begins in the region */
	uint64_t offset;
	/** what is given back */
	uint32_t handle;
	/** 0: not in use */
	size_t len;
};

enum xm_event_kind {
	/** a copy of this process has ended */
	XM_COPY_ENDED,
	/** somebody has copied from a buffer of this process */
	XM_NOTIFIED,
};

struct xm_event {
	enum xm_event_kind kind;
	/** of xm_get(), here or there */
	uint64_t token;
	/** 0, or a negative errno */
	int status;
};

/** Opens the device: 0, or @why says what is missing. */
int xm_open(const char *library, char *why, size_t why_size);
/** Ends everything, waiting for copies under way. */
void xm_close(void);
/** Equal ids can reach each other; 0: there is no backend now. */
uint64_t xm_fabric(void);
/** 1: others can tell this process of their copies, so it has to look. */
int xm_has_inbox(void);
const char *xm_strerror(int err);

/** Keep no more than this of idle buffers pinned. */
int xm_cache_limit(uint64_t bytes);

/**
 * Until xm_unexpose(): memory at @addr can be read by who has the cookie.
 * @len: in: how much; out: less, if it is more than the limits allow
 */
int xm_expose(const void *addr, size_t *len, struct xm_use *use);
void xm_unexpose(struct xm_use *use);

/**
 * Starts a copy of @len bytes.  Success is told with @token by xm_poll();
 * with @notify_token the source's owner is told, too, if it has an inbox.
 * -EAGAIN: nothing was started, try again after xm_poll().
 */
int xm_get(void *addr, size_t len, const struct xnem_cookie *cookie, uint64_t offset,
	   uint64_t token, int notify, uint64_t notify_token);
/** The same into pieces; nobody is told. */
int xm_getv(const struct iovec *iov, int n, const struct xnem_cookie *cookie, uint64_t offset,
	    uint64_t token);
/** Events, without a system call; how many. */
int xm_poll(struct xm_event *events, int max);

/* Memory for data on its way that is not contiguous where it belongs. */
void *xm_bounce_get(size_t len);
void xm_bounce_put(void *buf, size_t len);

#endif
