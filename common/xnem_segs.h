/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where a position of a region of several segments lies in its pages.
 */
#ifndef XNEM_SEGS_H
#define XNEM_SEGS_H

#include "xnem_check.h"

/** A segment's beginning: in the region, and counted from its first page's first byte. */
struct xnem_seg_start {
	u64 pos;
	u64 page_pos;
};

/**
 * Fill @starts, @nr + 1 entries, from a table that xnem_check_segments() has
 * passed.  The last entry's pos is the region's length.
 */
static inline void xnem_segs_init(struct xnem_seg_start *starts, const struct xnem_segment *seg,
				  u32 nr)
{
	u64 pos = 0, page = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		u32 offset = xnem_le32_get(seg[i].offset);
		u64 length = xnem_le64_get(seg[i].length);

		starts[i].pos = pos;
		starts[i].page_pos = (page << XNEM_PAGE_SHIFT) + offset;
		pos += length;
		page += xnem_pages_of(offset, length);
	}
	starts[nr].pos = pos;
	starts[nr].page_pos = page << XNEM_PAGE_SHIFT;
}

/**
 * Byte @pos (below the region's length) of a region of @nr segments: writes its
 * place counted from the first page's first byte, and returns how many bytes
 * from there on are in the same segment.
 */
static inline u64 xnem_segs_find(const struct xnem_seg_start *starts, u32 nr, u64 pos,
				 u64 *page_pos)
{
	u32 low = 0, high = nr;

	/* starts[low].pos <= pos < starts[high].pos */
	while (high - low > 1) {
		u32 mid = low + (high - low) / 2;

		if (starts[mid].pos <= pos)
			low = mid;
		else
			high = mid;
	}
	*page_pos = starts[low].page_pos + (pos - starts[low].pos);
	return starts[low + 1].pos - pos;
}

#endif /* XNEM_SEGS_H */
