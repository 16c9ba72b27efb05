// SPDX-License-Identifier: MIT
/*
 * libxnem as the module uses it.
 *
 * It is found by dlopen, so that one and the same MPICH runs where there is no
 * XNEM: not even the library need be there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "xnem_mem.h"

/* A shortage passes as soon as buffers are given back; not before, mostly. */
#define is_short(err_) \
	((err_) == -ENOSPC || (err_) == -ENOMEM || (err_) == -ENOBUFS || (err_) == -EMFILE)

/* Pieces of messages that cannot be exposed as a whole are no smaller: 64 pages. */
#define PIECE_MIN ((size_t)256 << 10)

/* Idle bounce buffers that are kept, if not larger; all together that may be in use. */
#define BOUNCE_KEPT 8
#define BOUNCE_MAX ((size_t)64 << 20)
#define BOUNCE_KEPT_SIZE ((size_t)4 << 20)

#define FUNCTIONS(F)       \
	F(xnem_open)       \
	F(xnem_close)      \
	F(xnem_get_info)   \
	F(xnem_get_events) \
	F(xnem_strerror)   \
	F(xnem_cache_get) F(xnem_cache_put) F(xnem_cache_limit) F(xnem_getv_start) F(xnem_submit)

#define POINTER(name_) __typeof__(name_) *name_##_fn;
static struct {
	FUNCTIONS(POINTER)
	void *library;
	struct xnem *ctx;
	struct xnem_device_info info;
	/* buffers that others may read, now; and when it came to a shortage */
	size_t exposed, short_at;
	size_t exposed_bytes, exposed_max;
	int inbox;
	struct {
		void *buf;
		size_t len;
	} idle[BOUNCE_KEPT];
	size_t bounced;
} xm;

/**
 * A part of what may be pinned is left for receives: otherwise two processes
 * that send many messages to each other could not receive one by XNEM.
 */
static size_t most_to_expose(void)
{
	size_t most = SIZE_MAX;
	struct rlimit limit;

	if (geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < most)
		most = limit.rlim_cur;
	if (!xm.info.windows && xm.info.max_pages < most / 4096)
		most = xm.info.max_pages * 4096;
	return most / 4 * 3;
}

int xm_open(const char *library, char *why, size_t why_size)
{
	int err;

	xm.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!xm.library) {
		snprintf(why, why_size, "%s", dlerror());
		return -ENOENT;
	}
#define LOOKUP(name_)                                                         \
	xm.name_##_fn = (__typeof__(xm.name_##_fn))dlsym(xm.library, #name_); \
	if (!xm.name_##_fn) {                                                 \
		snprintf(why, why_size, "%s has no %s", library, #name_);     \
		err = -ENOSYS;                                                \
		goto fail;                                                    \
	}
	FUNCTIONS(LOOKUP)

	err = xm.xnem_open_fn(NULL, &xm.ctx);
	if (!err)
		err = xm.xnem_get_info_fn(xm.ctx, &xm.info);
	if (!err && !xm.info.fabric_id)
		err = -ENOTCONN;
	if (!err) {
		xm.exposed_max = most_to_expose();
		xm.inbox = xm.info.inbox_slots > 0;
		return 0;
	}
	snprintf(why, why_size, "the device: %s", xm.xnem_strerror_fn(err));
	if (xm.ctx)
		xm.xnem_close_fn(xm.ctx);
	xm.ctx = NULL;
fail:
	dlclose(xm.library);
	xm.library = NULL;
	return err;
}

void xm_close(void)
{
	for (int i = 0; i < BOUNCE_KEPT; i++)
		if (xm.idle[i].buf)
			munmap(xm.idle[i].buf, xm.idle[i].len);
	memset(xm.idle, 0, sizeof(xm.idle));
	if (xm.ctx)
		xm.xnem_close_fn(xm.ctx);
	xm.ctx = NULL;
	if (xm.library)
		dlclose(xm.library);
	xm.library = NULL;
}

uint64_t xm_fabric(void)
{
	return xm.ctx ? xm.info.fabric_id : 0;
}

int xm_has_inbox(void)
{
	return xm.ctx && xm.inbox;
}

const char *xm_strerror(int err)
{
	return xm.library ? xm.xnem_strerror_fn(err) : strerror(-err);
}

int xm_cache_limit(uint64_t bytes)
{
	return xm.xnem_cache_limit_fn(xm.ctx, bytes);
}

int xm_expose(const void *addr, size_t *len, struct xm_use *use)
{
	struct xnem_use got;
	size_t piece = *len;
	int err;

	/*
	 * Thousands of sends that wait for one late receiver: do not pin and
	 * fail for each of them anew.
	 */
	if (xm.short_at && xm.exposed >= xm.short_at)
		return -ENOSPC;
	if (xm.exposed && (*len > xm.exposed_max || xm.exposed_bytes > xm.exposed_max - *len))
		return -ENOMEM;
	for (;;) {
		err = xm.xnem_cache_get_fn(xm.ctx, addr, piece, XNEM_READ, &got);
		if (!is_short(err) && err != -E2BIG)
			break;
		/* it is not that others of ours are in the way: too much at once */
		if (xm.exposed || piece / 2 < PIECE_MIN)
			break;
		piece /= 2;
	}
	if (is_short(err))
		xm.short_at = xm.exposed;
	if (err)
		return err;
	use->cookie = got.cookie;
	use->offset = got.offset;
	use->handle = got.handle;
	use->len = piece;
	xm.exposed++;
	xm.exposed_bytes += piece;
	*len = piece;
	return 0;
}

void xm_unexpose(struct xm_use *use)
{
	struct xnem_use got = {
		.cookie = use->cookie,
		.offset = use->offset,
		.handle = use->handle,
	};

	if (!use->len)
		return;
	xm.exposed--;
	xm.exposed_bytes -= use->len;
	use->len = 0;
	if (xm.exposed < xm.short_at)
		xm.short_at = 0;
	xm.xnem_cache_put_fn(xm.ctx, &got);
}

int xm_get(void *addr, size_t len, const struct xnem_cookie *cookie, uint64_t offset,
	   uint64_t token, int notify, uint64_t notify_token)
{
	struct xnem_op op = {
		.kind = XNEM_KIND_COPY,
		.flags = XNEM_OP_DST_ADDR | (notify ? XNEM_OP_NOTIFY_SRC : 0),
		.user_data = token,
		.length = len,
		.src_offset = offset,
		.dst_offset = (uintptr_t)addr,
		.immediate = notify ? notify_token : 0,
		.src = *cookie,
	};
	int n = xm.xnem_submit_fn(xm.ctx, &op, 1);

	return n < 0 ? n : 0;
}

int xm_getv(const struct iovec *iov, int n, const struct xnem_cookie *cookie, uint64_t offset,
	    uint64_t token)
{
	return xm.xnem_getv_start_fn(xm.ctx, iov, n, cookie, offset, token, NULL);
}

int xm_poll(struct xm_event *events, int max)
{
	struct xnem_event got[32];
	int n;

	if (!xm.ctx)
		return 0;
	n = xm.xnem_get_events_fn(xm.ctx, got, 0, max < 32 ? max : 32, 0);
	/* it has gone with its backend; what was in it has been read */
	if (n < 0)
		xm.inbox = 0;
	for (int i = 0; i < n; i++) {
		events[i].kind = XM_COPY_ENDED;
		if (got[i].kind == XNEM_EVENT_NOTIFY)
			events[i].kind = XM_NOTIFIED;
		events[i].token = got[i].user_data;
		events[i].status = got[i].status;
	}
	return n < 0 ? 0 : n;
}

/** Whole powers of two, so that a buffer that was used fits the next message. */
static size_t bounce_size(size_t len)
{
	size_t size = 64 << 10;

	while (size < len)
		size *= 2;
	return size;
}

void *xm_bounce_get(size_t len)
{
	size_t size = bounce_size(len);
	void *buf;

	if (len > BOUNCE_MAX || xm.bounced + size > BOUNCE_MAX)
		return NULL;
	xm.bounced += size;
	for (int i = 0; i < BOUNCE_KEPT; i++) {
		if (xm.idle[i].buf && xm.idle[i].len == size) {
			buf = xm.idle[i].buf;
			xm.idle[i].buf = NULL;
			return buf;
		}
	}
	buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED) {
		xm.bounced -= size;
		return NULL;
	}
	return buf;
}

void xm_bounce_put(void *buf, size_t len)
{
	size_t size = bounce_size(len);

	xm.bounced -= size;
	for (int i = 0; i < BOUNCE_KEPT && size <= BOUNCE_KEPT_SIZE; i++) {
		if (!xm.idle[i].buf) {
			xm.idle[i].buf = buf;
			xm.idle[i].len = size;
			return;
		}
	}
	munmap(buf, size);
}
