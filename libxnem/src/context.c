// SPDX-License-Identifier: MIT
/*
 * A context: open, close, what the device is, whose it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static const char first_device[] = "/dev/xnem";
static const char device_zero[] = "/dev/xnem0";

/** 0, or -EPERM in a child of the process that opened the context. */
int xnem_own(const struct xnem *ctx)
{
	if (ctx->alive)
		return *(volatile uint32_t *)ctx->alive ? 0 : -EPERM;
	return ctx->pid == getpid() ? 0 : -EPERM;
}

/**
 * The kernel's ENOMEM becomes ENOBUFS: a caller can do something about its own
 * memory and its own limit, but not about theirs.
 */
int xnem_ioctl(struct xnem *ctx, unsigned long call, void *arg)
{
	atomic_fetch_add_explicit(&ctx->syscalls, 1, memory_order_relaxed);
	if (ioctl(ctx->fd, call, arg) >= 0)
		return 0;
	return errno == ENOMEM ? -ENOBUFS : -errno;
}

/** Asks the kernel for the state of the device and remembers the fabric id. */
int xnem_refresh(struct xnem *ctx, struct xnem_info *info)
{
	struct xnem_info local;
	int err;

	if (!info)
		info = &local;
	memset(info, 0, sizeof(*info));
	err = xnem_ioctl(ctx, XNEM_IOC_INFO, info);
	if (err)
		return err;
	if (!info->connected)
		info->fabric_id = 0;
	atomic_store_explicit(&ctx->fabric, info->fabric_id, memory_order_relaxed);
	return 0;
}

/**
 * 0 if this fabric id is the device's, otherwise other_life, -ENOTCONN, or
 * what the kernel says.  The kernel is asked only if the id known so far
 * differs: that one may be old.
 */
int xnem_check_fabric(struct xnem *ctx, uint64_t fabric, int other_life)
{
	uint64_t known = atomic_load_explicit(&ctx->fabric, memory_order_relaxed);
	int err;

	if (fabric && fabric == known)
		return 0;
	err = xnem_refresh(ctx, NULL);
	if (err)
		return err;
	known = atomic_load_explicit(&ctx->fabric, memory_order_relaxed);
	if (!known)
		return -ENOTCONN;
	return fabric == known ? 0 : other_life;
}

static int open_device(const char *device)
{
	int fd;

	if (!device)
		device = secure_getenv("XNEM_DEVICE");
	if (device && *device) {
		fd = open(device, O_RDWR | O_CLOEXEC);
	} else {
		fd = open(first_device, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			fd = open(device_zero, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static void init_alive(struct xnem *ctx)
{
	long size = sysconf(_SC_PAGESIZE);
	void *page;

	ctx->pid = getpid();
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	if (madvise(page, size, MADV_WIPEONFORK)) {
		munmap(page, size);
		return;
	}
	ctx->alive = page;
	*ctx->alive = 1;
}

static int init_lock(struct xnem *ctx)
{
	pthread_condattr_t attr;
	int err;

	err = pthread_condattr_init(&attr);
	if (err)
		return -err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&ctx->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (err)
		return -err;
	err = pthread_mutex_init(&ctx->lock, NULL);
	if (err) {
		pthread_cond_destroy(&ctx->changed);
		return -err;
	}
	return 0;
}

XNEM_API int xnem_open(const char *device, struct xnem **out)
{
	struct xnem_info info;
	struct xnem *ctx;
	int err;

	if (!out)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->poll_fd = -1;
	ctx->wake_fd = -1;
	ctx->free_slot = XNEM_NO_SLOT;
	ctx->event_head = XNEM_NO_SLOT;
	ctx->event_tail = XNEM_NO_SLOT;

	ctx->fd = open_device(device);
	if (ctx->fd < 0) {
		err = ctx->fd;
		goto free_ctx;
	}
	err = xnem_refresh(ctx, &info);
	if (err) {
		/* an ioctl of something else may well dislike the argument */
		if (err == -EINVAL || err == -EFAULT)
			err = -ENOTTY;
		goto close_fd;
	}
	if (info.abi_version != XNEM_ABI_VERSION) {
		err = -EPROTONOSUPPORT;
		goto close_fd;
	}
	err = init_lock(ctx);
	if (err)
		goto close_fd;
	init_alive(ctx);
	xnem_pages_open(ctx, &info);
	xnem_cache_open(ctx);
	*out = ctx;
	return 0;

close_fd:
	close(ctx->fd);
free_ctx:
	free(ctx);
	return err;
}

XNEM_API int xnem_close(struct xnem *ctx)
{
	bool own;
	int ret = 0;

	if (!ctx)
		return 0;
	own = !xnem_own(ctx);
	while (ctx->regions) {
		struct xnem_region *region = ctx->regions;
		int err = own ? xnem_end_region(region) : 0;

		if (err && !ret)
			ret = err;
		ctx->regions = region->next;
		free(region);
	}
	while (ctx->deferred) {
		struct xnem_vector *vector = ctx->deferred;

		ctx->deferred = vector->next;
		free(vector);
	}
	/* a child has no mapping there: it is not inherited */
	if (own)
		xnem_pages_close(ctx);
	if (ctx->poll_fd >= 0)
		close(ctx->poll_fd);
	if (ctx->wake_fd >= 0)
		close(ctx->wake_fd);
	close(ctx->fd);
	if (ctx->alive)
		munmap(ctx->alive, sysconf(_SC_PAGESIZE));
	/* in a child the lock may be in the hands of a thread that is not here */
	if (own) {
		pthread_cond_destroy(&ctx->changed);
		pthread_mutex_destroy(&ctx->lock);
	}
	free(ctx->slots);
	free(ctx);
	return ret;
}

XNEM_API int xnem_get_info(struct xnem *ctx, struct xnem_device_info *out)
{
	struct xnem_info info;
	int err = xnem_own(ctx);

	if (err)
		return err;
	err = xnem_refresh(ctx, &info);
	if (err)
		return err;
	xnem_pages_open(ctx, &info);
	memset(out, 0, sizeof(*out));
	out->fabric_id = info.fabric_id;
	out->features = info.features;
	out->max_region_bytes = info.max_region_bytes;
	out->max_pages = info.max_pages;
	out->used_pages = info.used_pages;
	out->abi_version = info.abi_version;
	out->proto_version = info.proto_version;
	out->connected = info.connected;
	out->device_id = info.device_id;
	out->backend_domid = info.backend_domid;
	out->max_inflight = info.max_inflight;
	out->inbox_slots = info.inbox_slots;
	out->max_segments = info.max_segments ? info.max_segments : 1;
	out->windows = info.windows;
	out->window_pages = info.window_pages;
	out->queues = info.queues;
	return 0;
}

XNEM_API int xnem_get_counts(struct xnem *ctx, struct xnem_counts *counts)
{
	struct xnem_stats stats;
	int err = xnem_own(ctx);

	if (err)
		return err;
	memset(&stats, 0, sizeof(stats));
	err = xnem_ioctl(ctx, XNEM_IOC_STATS, &stats);
	if (err)
		return err;
	memset(counts, 0, sizeof(*counts));
	counts->requests = stats.requests;
	counts->completions = stats.completions;
	counts->errors = stats.errors;
	counts->bytes = stats.bytes;
	counts->inbox = stats.inbox;
	counts->registered = stats.registered;
	counts->cache_hits = stats.cache_hits;
	counts->cache_misses = stats.cache_misses;
	counts->cache_stale = stats.cache_stale;
	counts->cache_evicted = stats.cache_evicted;
	counts->pages = stats.pages;
	counts->cache_pages = stats.cache_pages;
	counts->windows = stats.windows;
	counts->syscalls = atomic_load_explicit(&ctx->syscalls, memory_order_relaxed);
	return 0;
}

XNEM_API int xnem_set_eventfd(struct xnem *ctx, int fd)
{
	struct xnem_eventfd arg = { .fd = fd };
	int err = xnem_own(ctx);

	if (err)
		return err;
	return fd < -1 ? -EBADF : xnem_ioctl(ctx, XNEM_IOC_EVENTFD, &arg);
}

static int make_poll_fd(struct xnem *ctx)
{
	struct epoll_event event = { .events = EPOLLIN };
	int poll_fd, wake_fd, err;

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return -errno;
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poll_fd < 0) {
		err = -errno;
		goto close_wake;
	}
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, ctx->fd, &event) ||
	    epoll_ctl(poll_fd, EPOLL_CTL_ADD, wake_fd, &event)) {
		err = -errno;
		goto close_poll;
	}
	ctx->wake_fd = wake_fd;
	ctx->poll_fd = poll_fd;
	return 0;

close_poll:
	close(poll_fd);
close_wake:
	close(wake_fd);
	return err;
}

XNEM_API int xnem_fd(struct xnem *ctx)
{
	int ret = xnem_own(ctx);

	if (ret)
		return ret;
	pthread_mutex_lock(&ctx->lock);
	if (ctx->poll_fd < 0)
		ret = make_poll_fd(ctx);
	if (!ret) {
		ret = ctx->poll_fd;
		/* what was fetched before nobody will announce again */
		if (ctx->event_head != XNEM_NO_SLOT)
			xnem_wake_poll(ctx);
	}
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

XNEM_API int xnem_reachable(struct xnem *ctx, const struct xnem_cookie *cookie)
{
	int err = xnem_own(ctx);

	return err ? err : xnem_check_fabric(ctx, xnem_cookie_fabric(cookie), -EXDEV);
}

XNEM_API const char *xnem_version(void)
{
	return XNEM_VERSION;
}
