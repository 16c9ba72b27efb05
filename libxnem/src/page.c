// SPDX-License-Identifier: MIT
/*
 * The completion page: the backend writes what has ended into our own memory,
 * so that looking costs neither a system call nor an event.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/** Without a page everything goes through the kernel: no error. */
void xnem_page_open(struct xnem *ctx)
{
	void *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, ctx->fd, 0);

	ctx->spin_ns = spin_from_environment();
	ctx->page = page == MAP_FAILED ? NULL : page;
}

void xnem_page_close(struct xnem *ctx)
{
	if (ctx->page)
		munmap((void *)ctx->page, sysconf(_SC_PAGESIZE));
}

/** Reads entries; how many.  The fetcher's alone, no lock needed. */
unsigned int xnem_page_take(struct xnem *ctx, struct xnem_complete *done, unsigned int max)
{
	unsigned int n;

	for (n = 0; n < max; n++) {
		const struct xnem_cpage_entry *e =
			&ctx->page[ctx->page_read & (XNEM_CPAGE_ENTRIES - 1)];

		/* pairs with the backend's write barrier: seq comes last */
		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != ctx->page_read + 1)
			break;
		done[n].user_data = e->user_data;
		done[n].bytes_done = e->bytes_done;
		done[n].status = xnem_status_errno(e->status);
		ctx->page_read++;
	}
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
 * clock has no fast way (a PV guest of Xen).
 */
static unsigned int look_some(struct xnem *ctx, struct xnem_complete *done, unsigned int max)
{
	unsigned int n = 0;

	for (int i = 0; i < 64 && !n; i++) {
		relax();
		n = xnem_page_take(ctx, done, max);
	}
	return n;
}

/** The same, looking for a while: spin_ns, and no longer than timeout_ns. */
unsigned int xnem_page_spin(struct xnem *ctx, struct xnem_complete *done, unsigned int max,
			    int64_t timeout_ns)
{
	unsigned int n = xnem_page_take(ctx, done, max);
	int64_t spin = ctx->spin_ns, until;

	if (timeout_ns >= 0 && spin > timeout_ns)
		spin = timeout_ns;
	if (n || !spin)
		return n;
	n = look_some(ctx, done, max);
	if (n)
		return n;
	until = xnem_now() + spin;
	do {
		n = look_some(ctx, done, max);
	} while (!n && xnem_now() < until);
	return n;
}
