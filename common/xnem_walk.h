/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The walk: from two regions and a range of each to copy operations that stay
 * within one Xen page on both sides.
 *
 * Source and destination advance together, so operations that touch the same
 * page are adjacent: Xen keeps the last source and the last destination page
 * and saves the work of looking them up again.
 */
#ifndef XNEM_WALK_H
#define XNEM_WALK_H

#include "xnem_port.h"
#include <xen/io/xnemif.h>

/** One operation: @len bytes, 1 .. 4096, within one page on both sides. */
struct xnem_copy_op {
	u32 src_ref;
	u32 dst_ref;
	u16 src_off;
	u16 dst_off;
	u16 len;
};

/** Where a walk stands.  The references belong to the caller. */
struct xnem_walk {
	const u32 *src_ref;
	const u32 *dst_ref;
	u32 src_off;
	u32 dst_off;
	/** Bytes to go. */
	u64 left;
};

/**
 * Begin a walk.  @src_pos and @dst_pos count from the first byte of each
 * side's first *page* (a region's offset plus the offset within the region);
 * both ranges must lie within the pages that the references name.
 */
static inline void xnem_walk_init(struct xnem_walk *w, const u32 *src_refs, u64 src_pos,
				  const u32 *dst_refs, u64 dst_pos, u64 length)
{
	w->src_ref = src_refs + (src_pos >> XNEM_PAGE_SHIFT);
	w->dst_ref = dst_refs + (dst_pos >> XNEM_PAGE_SHIFT);
	w->src_off = src_pos & (XNEM_PAGE_SIZE - 1);
	w->dst_off = dst_pos & (XNEM_PAGE_SIZE - 1);
	w->left = length;
}

/** The next operation; false when the walk is at its end. */
static inline bool xnem_walk_next(struct xnem_walk *w, struct xnem_copy_op *op)
{
	u32 room = XNEM_PAGE_SIZE - (w->src_off > w->dst_off ? w->src_off : w->dst_off);
	u32 len = w->left < room ? (u32)w->left : room;

	if (!len)
		return false;
	op->src_ref = *w->src_ref;
	op->dst_ref = *w->dst_ref;
	op->src_off = w->src_off;
	op->dst_off = w->dst_off;
	op->len = len;

	w->left -= len;
	w->src_off += len;
	w->dst_off += len;
	/* At most one page on: len never passes the end of either page. */
	w->src_ref += w->src_off >> XNEM_PAGE_SHIFT;
	w->dst_ref += w->dst_off >> XNEM_PAGE_SHIFT;
	w->src_off &= XNEM_PAGE_SIZE - 1;
	w->dst_off &= XNEM_PAGE_SIZE - 1;
	return true;
}

/**
 * Where xnem_walk_batch() puts an operation; inlined, so that it can be stored
 * as what the caller's hypervisor call wants with no copy between.
 */
typedef void (*xnem_walk_emit)(void *to, u32 src_ref, u32 src_off, u32 dst_ref, u32 dst_off,
			       u32 len);

/**
 * The same operations as xnem_walk_next() gives, up to @max (2 or more) of
 * them at once: whole source pages in a loop of a few instructions each.
 * Fewer than @max - 1 only at the walk's end.  Returns how many were emitted.
 */
static inline __attribute__((always_inline)) unsigned int
xnem_walk_batch(struct xnem_walk *walk, unsigned int max, xnem_walk_emit emit, void *to)
{
	/* In registers: the compiler cannot tell that emit leaves it alone. */
	struct xnem_walk w = *walk;
	struct xnem_copy_op op;
	unsigned int n = 0;

	while (n < max) {
		u64 pages = w.left >> XNEM_PAGE_SHIFT;

		if (w.src_off || !pages || max - n < 2) {
			if (!xnem_walk_next(&w, &op))
				break;
			emit(to, op.src_ref, op.src_off, op.dst_ref, op.dst_off, op.len);
			n++;
		} else if (!w.dst_off) {
			/* Page to page. */
			if (pages > max - n)
				pages = max - n;
			w.left -= pages << XNEM_PAGE_SHIFT;
			n += pages;
			while (pages--)
				emit(to, *w.src_ref++, 0, *w.dst_ref++, 0, XNEM_PAGE_SIZE);
		} else {
			/* Each source page goes to the end of one and the start of the next. */
			u32 head = XNEM_PAGE_SIZE - w.dst_off;

			if (pages > (max - n) / 2)
				pages = (max - n) / 2;
			w.left -= pages << XNEM_PAGE_SHIFT;
			n += 2 * pages;
			while (pages--) {
				u32 src_ref = *w.src_ref++;

				emit(to, src_ref, 0, *w.dst_ref++, w.dst_off, head);
				emit(to, src_ref, head, *w.dst_ref, 0, w.dst_off);
			}
		}
	}
	*walk = w;
	return n;
}

#endif /* XNEM_WALK_H */
