// SPDX-License-Identifier: MIT
/*
 * The registration cache is the kernel's; here are its three calls.
 */
#include <stdlib.h>

#include "internal.h"

/** Bytes of which the kernel counts the cache's pages. */
#define PAGE_BYTES 4096

XNEM_API int xnem_cache_get(struct xnem *ctx, const void *addr, size_t len, unsigned int flags,
			    struct xnem_use *use)
{
	struct xnem_cache_get get = {
		.addr = (uintptr_t)addr,
		.length = len,
	};
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (!use || flags & ~(XNEM_READ | XNEM_WRITE | XNEM_ANY_USER))
		return -EINVAL;
	if (flags & XNEM_READ)
		get.access |= XNEM_REG_READ;
	if (flags & XNEM_WRITE)
		get.access |= XNEM_REG_WRITE;
	if (flags & XNEM_ANY_USER)
		get.flags |= XNEM_REG_ANY_USER;
	err = xnem_ioctl(ctx, XNEM_IOC_CACHE_GET, &get);
	if (err)
		return err == -ENOBUFS && get.limit ? -ENOMEM : err;
	/*
	 * A new entry may be of a new life of the backend (see xnem_register());
	 * one that was there is of the life in which it was made.
	 */
	if (!get.hit || !atomic_load_explicit(&ctx->fabric, memory_order_relaxed))
		xnem_refresh(ctx, NULL);
	xnem_bytes_pack(use->cookie.bytes, &get.cookie,
			atomic_load_explicit(&ctx->fabric, memory_order_relaxed));
	use->offset = get.offset;
	use->handle = get.handle;
	use->hit = get.hit;
	return 0;
}

XNEM_API int xnem_cache_put(struct xnem *ctx, const struct xnem_use *use)
{
	struct xnem_cache_put put = { 0 };
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (!use)
		return -EINVAL;
	put.handle = use->handle;
	return xnem_ioctl(ctx, XNEM_IOC_CACHE_PUT, &put);
}

XNEM_API int xnem_cache_limit(struct xnem *ctx, uint64_t bytes)
{
	struct xnem_cache_limit limit = {
		.max_pages = bytes == UINT64_MAX ? UINT64_MAX : bytes / PAGE_BYTES,
	};
	int err = xnem_own(ctx);

	return err ? err : xnem_ioctl(ctx, XNEM_IOC_CACHE_LIMIT, &limit);
}

/** What $XNEM_CACHE_BYTES says.  A driver without a cache has nothing to limit. */
void xnem_cache_open(struct xnem *ctx)
{
	const char *s = getenv("XNEM_CACHE_BYTES");
	unsigned long long bytes;
	char *end;

	if (!s || *s < '0' || *s > '9')
		return;
	bytes = strtoull(s, &end, 10);
	if (!*end)
		xnem_cache_limit(ctx, bytes);
}
