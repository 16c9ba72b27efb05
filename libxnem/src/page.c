// SPDX-License-Identifier: MIT
/*
 * The context's pages: the backend writes what has ended, and what others have
 * for this context, into our own memory, so that looking costs neither a system
 * call nor an event.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"
#include "xnem_status.h"

/** Microseconds a wait looks before it sleeps, unless $XNEM_SPIN_US says so. */
#define DEFAULT_SPIN_US 20
#define MAX_SPIN_US 1000000

static int64_t spin_from_environment(void)
{
	const char *s = getenv("XNEM_SPIN_US");
	char *end;
	long us;

	if (!s || !*s)
		return DEFAULT_SPIN_US * 1000;
	us = strtol(s, &end, 10);
	if (*end || us < 0 || us > MAX_SPIN_US)
		return DEFAULT_SPIN_US * 1000;
	return us * 1000;
}

/* the lock is held; control page, completion page, inbox */
static void use_pages(struct xnem *ctx, void *addr, const struct xnem_info *info)
{
	char *pages = addr;
	uint32_t room = (info->pages_bytes - 2 * XNEM_PAGE_SIZE) / sizeof(struct xnem_inbox_slot);
	uint32_t slots = info->inbox_slots;

	ctx->pages_addr = addr;
	ctx->pages_len = info->pages_bytes;
	ctx->pages_fabric = info->fabric_id;
	ctx->control = addr;
	ctx->spin_ns = spin_from_environment();
	ctx->page = (const void *)(pages + XNEM_PAGE_SIZE);
	if (slots && slots <= room && !(slots & (slots - 1))) {
		ctx->inbox = (const void *)(pages + 2 * XNEM_PAGE_SIZE);
		ctx->inbox_slots = slots;
	}
}

/**
 * Maps the pages, once.  Without them everything goes through the kernel and
 * there is no inbox: no error.
 */
void xnem_pages_open(struct xnem *ctx, const struct xnem_info *info)
{
	struct xnem_info now;
	void *addr;
	bool mine;

	pthread_mutex_lock(&ctx->lock);
	mine = ctx->pages == PAGES_NONE && info->connected;
	if (mine)
		ctx->pages = PAGES_OPENING;
	pthread_mutex_unlock(&ctx->lock);
	if (!mine)
		return;
	if (info->pages_bytes < 2 * XNEM_PAGE_SIZE) {
		addr = MAP_FAILED;
		errno = EOPNOTSUPP;
	} else {
		atomic_fetch_add_explicit(&ctx->syscalls, 1, memory_order_relaxed);
		addr = mmap(NULL, info->pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->fd,
			    0);
	}
	if (addr == MAP_FAILED) {
		int err = errno;

		pthread_mutex_lock(&ctx->lock);
		ctx->pages = err == ENOTCONN || err == EINTR ? PAGES_NONE : PAGES_REFUSED;
		pthread_mutex_unlock(&ctx->lock);
		return;
	}
	/* whose they are: that of info may have been another one already */
	if (xnem_refresh(ctx, &now))
		now.fabric_id = 0;
	pthread_mutex_lock(&ctx->lock);
	use_pages(ctx, addr, info);
	ctx->pages_fabric = now.fabric_id;
	ctx->pages = PAGES_OPEN;
	pthread_mutex_unlock(&ctx->lock);
}

void xnem_pages_close(struct xnem *ctx)
{
	if (ctx->pages_addr)
		munmap(ctx->pages_addr, ctx->pages_len);
}

static const struct xnem_cpage_entry *next_entry(const struct xnem *ctx)
{
	return &ctx->page[ctx->page_read & (XNEM_CPAGE_ENTRIES - 1)];
}

/** Is there an entry to read?  For the fetcher, or whoever could be. */
bool xnem_page_news(const struct xnem *ctx)
{
	/* pairs with the backend's write barrier: seq comes last */
	return __atomic_load_n(&next_entry(ctx)->seq, __ATOMIC_ACQUIRE) == ctx->page_read + 1;
}

/** Reads entries; how many.  The fetcher's alone, no lock needed. */
unsigned int xnem_page_take(struct xnem *ctx, struct xnem_complete *done, unsigned int max)
{
	unsigned int n;

	for (n = 0; n < max && xnem_page_news(ctx); n++) {
		const struct xnem_cpage_entry *e = next_entry(ctx);

		done[n].user_data = e->user_data;
		done[n].bytes_done = e->bytes_done;
		done[n].status = xnem_status_errno(e->status);
		ctx->page_read++;
	}
	/* for poll; after the reads, though only the kernel looks at it */
	if (n)
		__atomic_store_n(&ctx->control->cpage_cons, ctx->page_read, __ATOMIC_RELEASE);
	return n;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/**
 * Some looks without one at the clock: that is a system call where the guest's
 * clock has no fast way (a PV guest of Xen).  True: there is something.
 */
static bool look_some(struct xnem *ctx, struct xnem_complete *done, unsigned int max,
		      const uint32_t *inbox_known, unsigned int *n)
{
	for (int i = 0; i < 64; i++) {
		relax();
		*n = xnem_page_take(ctx, done, max);
		if (*n || (inbox_known && xnem_inbox_news(ctx, *inbox_known)))
			return true;
	}
	return false;
}

/**
 * The same, looking for a while: spin_ns, and no longer than timeout_ns.  With
 * inbox_known it also returns when there are more slots in the inbox.
 */
unsigned int xnem_page_spin(struct xnem *ctx, struct xnem_complete *done, unsigned int max,
			    const uint32_t *inbox_known, int64_t timeout_ns)
{
	unsigned int n = xnem_page_take(ctx, done, max);
	int64_t spin = ctx->spin_ns, until;

	if (timeout_ns >= 0 && spin > timeout_ns)
		spin = timeout_ns;
	if (n || !spin || (inbox_known && xnem_inbox_news(ctx, *inbox_known)))
		return n;
	if (look_some(ctx, done, max, inbox_known, &n))
		return n;
	until = xnem_now() + spin;
	do {
		if (look_some(ctx, done, max, inbox_known, &n))
			return n;
	} while (xnem_now() < until);
	return 0;
}
