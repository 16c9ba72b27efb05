// SPDX-License-Identifier: MIT
/*
 * Regions: memory with a name.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "internal.h"

/* reg has the memory, flags are the caller's */
static int make_region(struct xnem *ctx, struct xnem_register *reg, void *first, unsigned int flags,
		       struct xnem_region **out)
{
	struct xnem_region *region;
	struct xnem_info info;
	int err;

	if (!out || flags & ~(XNEM_READ | XNEM_WRITE | XNEM_ANY_USER | XNEM_ONCE | XNEM_WINDOWED))
		return -EINVAL;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	if (flags & XNEM_READ)
		reg->access |= XNEM_REG_READ;
	if (flags & XNEM_WRITE)
		reg->access |= XNEM_REG_WRITE;
	if (flags & XNEM_ANY_USER)
		reg->flags |= XNEM_REG_ANY_USER;
	if (flags & XNEM_ONCE)
		reg->flags |= XNEM_REG_ONCE;
	if (flags & XNEM_WINDOWED)
		reg->flags |= XNEM_REG_WINDOWED;

	err = xnem_ioctl(ctx, XNEM_IOC_REGISTER, reg);
	if (err) {
		if (err == -ENOBUFS && reg->limit)
			err = -ENOMEM;
		free(region);
		return err;
	}
	/*
	 * Ask for the fabric id after the registration: if the backend began
	 * a new life meanwhile, the region is gone and its name then means
	 * nothing there, which is what a user of it will be told.
	 */
	if (!xnem_refresh(ctx, &info))
		xnem_pages_open(ctx, &info);
	xnem_bytes_pack(region->cookie.bytes, &reg->cookie,
			atomic_load_explicit(&ctx->fabric, memory_order_relaxed));
	region->ctx = ctx;
	region->addr = first;
	region->length = reg->length;
	region->flags = flags;
	region->handle = reg->handle;

	pthread_mutex_lock(&ctx->lock);
	region->next = ctx->regions;
	if (region->next)
		region->next->prev = region;
	ctx->regions = region;
	pthread_mutex_unlock(&ctx->lock);
	*out = region;
	return 0;
}

XNEM_API int xnem_register(struct xnem *ctx, void *addr, size_t len, unsigned int flags,
			   struct xnem_region **out)
{
	struct xnem_register reg = {
		.addr = (uintptr_t)addr,
		.length = len,
	};
	int err = xnem_own(ctx);

	return err ? err : make_region(ctx, &reg, addr, flags, out);
}

XNEM_API int xnem_registerv(struct xnem *ctx, const struct iovec *iov, int iovcnt,
			    unsigned int flags, struct xnem_region **out)
{
	struct xnem_register reg = { 0 };
	struct xnem_info info;
	struct xnem_seg *segs;
	void *first = NULL;
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (!iov || iovcnt < 1)
		return -EINVAL;
	segs = calloc((size_t)iovcnt, sizeof(*segs));
	if (!segs)
		return -ENOMEM;
	for (int i = 0; i < iovcnt; i++) {
		if (!iov[i].iov_len)
			continue;
		if (reg.length + iov[i].iov_len < reg.length) {
			err = -EINVAL;
			goto out;
		}
		if (!reg.nr_segments)
			first = iov[i].iov_base;
		segs[reg.nr_segments].addr = (uintptr_t)iov[i].iov_base;
		segs[reg.nr_segments++].length = iov[i].iov_len;
		reg.length += iov[i].iov_len;
	}
	if (reg.nr_segments > 1) {
		err = xnem_refresh(ctx, &info);
		if (err)
			goto out;
		if (info.connected && info.max_segments <= 1)
			err = -EOPNOTSUPP;
		reg.addr = (uintptr_t)segs;
	} else {
		reg.nr_segments = 0;
		reg.addr = (uintptr_t)first;
	}
	if (!err)
		err = make_region(ctx, &reg, first, flags, out);
out:
	free(segs);
	return err;
}

/**
 * Ends a region in the kernel.  An interrupted call would leave nothing to
 * wait for the end with, and the caller with memory that it can never know to
 * be its own again: so signals wait, not the other way round.
 */
int xnem_end_region(struct xnem_region *region)
{
	struct xnem_deregister dereg = { .handle = region->handle };
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = xnem_ioctl(region->ctx, XNEM_IOC_DEREGISTER, &dereg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

XNEM_API int xnem_deregister(struct xnem_region *region)
{
	struct xnem *ctx;
	int err;

	if (!region)
		return 0;
	ctx = region->ctx;
	err = xnem_own(ctx);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	if (region->prev)
		region->prev->next = region->next;
	else
		ctx->regions = region->next;
	if (region->next)
		region->next->prev = region->prev;
	pthread_mutex_unlock(&ctx->lock);
	err = xnem_end_region(region);
	free(region);
	return err;
}

XNEM_API const struct xnem_cookie *xnem_region_cookie(const struct xnem_region *region)
{
	return &region->cookie;
}

XNEM_API void *xnem_region_addr(const struct xnem_region *region)
{
	return region->addr;
}

XNEM_API size_t xnem_region_length(const struct xnem_region *region)
{
	return region->length;
}

XNEM_API unsigned int xnem_region_flags(const struct xnem_region *region)
{
	return region->flags;
}
