// SPDX-License-Identifier: MIT
/*
 * xnem_segs.h: every byte of a region of segments is found where it is,
 * against a count of one byte after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "xnem_segs.h"

static unsigned int seed = 1;

static u32 rnd(u32 below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % below;
}

static void try_table(const struct xnem_segment *seg, u32 nr)
{
	struct xnem_seg_start starts[33];
	u64 pos = 0, page = 0, got, left;
	u32 i;

	xnem_segs_init(starts, seg, nr);
	for (i = 0; i < nr; i++) {
		for (u64 b = 0; b < seg[i].length; b++, pos++) {
			left = xnem_segs_find(starts, nr, pos, &got);
			assert_int_equal(got, (page << XNEM_PAGE_SHIFT) + seg[i].offset + b);
			assert_int_equal(left, seg[i].length - b);
		}
		page += xnem_pages_of(seg[i].offset, seg[i].length);
	}
	assert_int_equal(starts[nr].pos, pos);
	assert_int_equal(xnem_check_segments(seg, nr, pos, (u32)page), XNEM_ST_OK);
}

static void random_tables(void **state)
{
	struct xnem_segment seg[32];

	(void)state;
	for (u32 round = 0; round < 200; round++) {
		u32 nr = 1 + rnd(32);

		for (u32 i = 0; i < nr; i++)
			seg[i] = (struct xnem_segment){
				.length = 1 + rnd(round % 2 ? 40 : 6000),
				.offset = rnd(XNEM_PAGE_SIZE),
			};
		try_table(seg, nr);
	}
}

static void one_segment(void **state)
{
	const struct xnem_segment seg = { .length = 9000, .offset = 4095 };

	(void)state;
	try_table(&seg, 1);
}

/* No table is walked: lengths that no test could count through. */
static void huge(void **state)
{
	const struct xnem_segment seg[2] = { { .length = 1ull << 40, .offset = 5 },
					     { .length = 1ull << 41, .offset = 4095 } };
	struct xnem_seg_start starts[3];
	u64 got;

	(void)state;
	xnem_segs_init(starts, seg, 2);
	assert_int_equal(xnem_segs_find(starts, 2, (1ull << 40) - 1, &got), 1);
	assert_int_equal(got, (1ull << 40) + 4);
	assert_int_equal(xnem_segs_find(starts, 2, 1ull << 40, &got), 1ull << 41);
	assert_int_equal(got, (((1ull << 28) + 1) << XNEM_PAGE_SHIFT) + 4095);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_segment),
		cmocka_unit_test(random_tables),
		cmocka_unit_test(huge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
