// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * xnem_check_segments(), the table of a register request.  Input: length (8
 * bytes), pages (4), then entries.  Whether it is right is worked out a second
 * time in 128 bits, where no sum can wrap.
 */
#include "fuzz.h"

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
		must(xnem_check_segments(seg, nr, length - 1, nr_pages) == XNEM_ST_INVALID);
		must(xnem_check_segments(seg, nr, length + 1, nr_pages) == XNEM_ST_INVALID);
		must(xnem_check_segments(seg, nr, length, nr_pages + 1) == XNEM_ST_INVALID);
	}
	/* Nor may it be changed. */
	must(!memcmp(seg, data, nr * sizeof(*seg)));
	free(seg);
	return 0;
}
