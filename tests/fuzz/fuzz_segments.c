// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * xnem_check_segments(), the table of a register request.  Input: length (8
 * bytes), pages (4), then entries.  Whether it is right is worked out a second
 * time in 128 bits, where no sum can wrap.
 */
#include "fuzz.h"
#include "xnem_segs.h"

/* A right table: each segment's first and last byte is found where it lies. */
static void find_all(const struct xnem_segment *seg, u32 nr)
{
	struct xnem_seg_start *starts = malloc((nr + 1) * sizeof(*starts));
	u64 pos = 0, page = 0, at;
	u32 i;

	must(starts);
	xnem_segs_init(starts, seg, nr);
	for (i = 0; i < nr; i++) {
		must(xnem_segs_find(starts, nr, pos, &at) == seg[i].length);
		must(at == page * 4096 + seg[i].offset);
		pos += seg[i].length;
		must(xnem_segs_find(starts, nr, pos - 1, &at) == 1);
		must(at == page * 4096 + seg[i].offset + seg[i].length - 1);
		page += (seg[i].offset + seg[i].length + 4095) / 4096;
	}
	must(starts[nr].pos == pos);
	free(starts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned __int128 sum = 0, pages = 0;
	struct xnem_segment *seg;
	u32 nr_pages, nr, i;
	bool right = true;
	u64 length;

	if (!take(&data, &size, &length, sizeof(length)) ||
	    !take(&data, &size, &nr_pages, sizeof(nr_pages)))
		return 0;
	nr = (u32)(size / sizeof(*seg));
	if (!nr || !length || nr > XNEM_SEGMENTS_MAX)
		return 0;
	seg = malloc(nr * sizeof(*seg));
	must(seg);
	memcpy(seg, data, nr * sizeof(*seg));
	for (i = 0; i < nr; i++) {
		if (seg[i].pad || !seg[i].length || seg[i].offset > 4095)
			right = false;
		sum += seg[i].length;
		pages += ((unsigned __int128)seg[i].offset + seg[i].length + 4095) / 4096;
	}
	right = right && sum == length && pages == nr_pages;
	must((xnem_check_segments(seg, nr, length, nr_pages) == XNEM_ST_OK) == right);
	/* What is right is so with its own numbers only. */
	if (right) {
		find_all(seg, nr);
		must(xnem_check_segments(seg, nr, length - 1, nr_pages) == XNEM_ST_INVALID);
		must(xnem_check_segments(seg, nr, length + 1, nr_pages) == XNEM_ST_INVALID);
		must(xnem_check_segments(seg, nr, length, nr_pages + 1) == XNEM_ST_INVALID);
	}
	/* Nor may it be changed. */
	must(!memcmp(seg, data, nr * sizeof(*seg)));
	free(seg);
	return 0;
}
