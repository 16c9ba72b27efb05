// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The walk, three ways: every alignment of either side against the exact
 * definition (position by position), byte for byte against memcpy, and what
 * callers rely on (pieces, adjacency, no reference read that is not needed).
 *
 * Arrays are exactly as large as they have to be, so that the sanitizer sees
 * any access beyond them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "xnem_check.h"
#include "xnem_walk.h"

#define PAGE XNEM_PAGE_SIZE
#define SRC_BASE 0x10000000u
#define DST_BASE 0x80000000u

/* cmocka's assertions are too slow for some hundred million of them. */
#define must(cond)                                                                             \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fail_msg("line %d: %s (src %u, dst %u, length %llu)", __LINE__, #cond, \
				 cur_src, cur_dst, (unsigned long long)cur_len);               \
	} while (0)

static u32 cur_src, cur_dst;
static u64 cur_len, total_ops;

static u32 *make_refs(u64 n, u32 base)
{
	u32 *refs = malloc(n ? n * sizeof(*refs) : 1);
	u64 i;

	assert_non_null(refs);
	for (i = 0; i < n; i++)
		refs[i] = base + (u32)i;
	return refs;
}

static u64 pages_touched(u32 off, u64 len)
{
	return len ? (off + len - 1) / PAGE - off / PAGE + 1 : 0;
}

/*
 * The fewest operations there can be: one cut at every page boundary inside
 * the range, of either side; boundaries of both coincide everywhere or
 * nowhere.
 */
static u64 fewest_ops(u32 src, u32 dst, u64 len)
{
	u64 s = pages_touched(src, len), d = pages_touched(dst, len);

	if (!len)
		return 0;
	return src % PAGE == dst % PAGE ? s : s + d - 1;
}

/*
 * Walks and compares with the definition: operation by operation the source
 * and the destination position are where the sum of the lengths says.  With
 * @src_refs[i] == SRC_BASE + i this is memcpy, without moving bytes.
 */
static void check_walk(const u32 *src_refs, u32 src, const u32 *dst_refs, u32 dst, u64 len)
{
	struct xnem_copy_op op, prev = { 0 };
	struct xnem_walk w;
	u64 done = 0, ops = 0;

	cur_src = src;
	cur_dst = dst;
	cur_len = len;
	xnem_walk_init(&w, src_refs, src, dst_refs, dst, len);
	while (xnem_walk_next(&w, &op)) {
		u64 s = src + done, d = dst + done;

		must(op.len >= 1 && op.len <= PAGE);
		must(op.src_off + op.len <= PAGE);
		must(op.dst_off + op.len <= PAGE);
		must(op.src_ref == SRC_BASE + s / PAGE && op.src_off == s % PAGE);
		must(op.dst_ref == DST_BASE + d / PAGE && op.dst_off == d % PAGE);
		/* A page is never come back to: same-page operations touch. */
		must(!ops || op.src_ref - prev.src_ref <= 1);
		must(!ops || op.dst_ref - prev.dst_ref <= 1);
		done += op.len;
		must(done <= len);
		must(w.left == len - done);
		prev = op;
		ops++;
	}
	must(done == len);
	must(ops == fewest_ops(src, dst, len));
	/* Its end is an end: asking again reads nothing and says no again. */
	must(!xnem_walk_next(&w, &op));
	total_ops += ops;
}

/* A batch gives, one for one, what asking again and again gives. */
static void same_as_next(void *to, u32 src_ref, u32 src_off, u32 dst_ref, u32 dst_off, u32 len)
{
	struct xnem_copy_op op;

	must(xnem_walk_next(to, &op));
	must(op.src_ref == src_ref && op.src_off == src_off);
	must(op.dst_ref == dst_ref && op.dst_off == dst_off);
	must(op.len == len);
}

static void check_batches(const u32 *src_refs, u32 src, const u32 *dst_refs, u32 dst, u64 len,
			  unsigned int max)
{
	struct xnem_walk w, next;
	unsigned int n;
	u64 ops = 0;

	xnem_walk_init(&w, src_refs, src, dst_refs, dst, len);
	next = w;
	do {
		n = xnem_walk_batch(&w, max, same_as_next, &next);
		must(n <= max);
		must(n >= max - 1 || !w.left);
		must(w.left == next.left && w.src_off == next.src_off);
		must(w.dst_off == next.dst_off);
		must(w.src_ref == next.src_ref && w.dst_ref == next.dst_ref);
		ops += n;
	} while (n);
	must(ops == fewest_ops(src, dst, len));
}

static const u32 corners[] = { 0, 1, 2, 63, 64, 2047, 4094, 4095 };
#define NR_CORNERS (sizeof(corners) / sizeof(corners[0]))

static const u64 lengths[] = { 0,    1,	   2,	 63,   64,   2047, 2048,  4094,	 4095,
			       4096, 4097, 4098, 8191, 8192, 8193, 12289, 65535, 65536 };
#define NR_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void one_pair(u32 src, u32 dst, const u64 *len, size_t n)
{
	for (; n--; len++) {
		u32 *s = make_refs(pages_touched(src, *len), SRC_BASE);
		u32 *d = make_refs(pages_touched(dst, *len), DST_BASE);

		check_walk(s, src, d, dst, *len);
		check_batches(s, src, d, dst, *len, 2);
		check_batches(s, src, d, dst, *len, 7);
		free(s);
		free(d);
	}
}

/* Every head alignment of one side with every corner of the other, both ways. */
static void every_head(void **state)
{
	u32 off;
	size_t c;

	(void)state;
	total_ops = 0;
	for (off = 0; off < PAGE; off++)
		for (c = 0; c < NR_CORNERS; c++) {
			one_pair(off, corners[c], lengths, NR_LENGTHS);
			one_pair(corners[c], off, lengths, NR_LENGTHS);
		}
	print_message("%u pairs of offsets, %zu lengths: %llu operations\n",
		      2 * PAGE * (unsigned int)NR_CORNERS, NR_LENGTHS,
		      (unsigned long long)total_ops);
}

/* Every tail alignment: lengths around one, two and three pages. */
static void every_tail(void **state)
{
	size_t a, b;
	u64 len;

	(void)state;
	for (a = 0; a < NR_CORNERS; a++)
		for (b = 0; b < NR_CORNERS; b++)
			for (len = 0; len <= 3 * PAGE + 1; len++)
				one_pair(corners[a], corners[b], &len, 1);
}

static void large(void **state)
{
	static const u64 len[] = { 1 << 20,  (1 << 20) + 1, (1 << 20) - 1,
				   16 << 20, 64 << 20,	    (u64)XNEM_REGION_PAGES_MAX * PAGE };
	size_t a, b, i;

	(void)state;
	for (a = 0; a < NR_CORNERS; a++)
		for (b = 0; b < NR_CORNERS; b++)
			for (i = 0; i < sizeof(len) / sizeof(len[0]); i++)
				one_pair(corners[a], corners[b], &len[i], 1);
}

/*
 * Lengths beyond 32 bits: too many references for an array of their own, so
 * only the first operations and the account of what is left.
 */
static void beyond_32_bits(void **state)
{
	const u64 len = (1ull << 32) + 5;
	u32 refs[3] = { SRC_BASE, SRC_BASE + 1, SRC_BASE + 2 };
	struct xnem_copy_op op;
	struct xnem_walk w;

	(void)state;
	xnem_walk_init(&w, refs, 1, refs, 0, len);
	assert_true(xnem_walk_next(&w, &op));
	assert_int_equal(op.len, PAGE - 1);
	assert_true(xnem_walk_next(&w, &op));
	assert_int_equal(op.len, 1);
	assert_true(w.left == len - PAGE);
	/* Low 32 bits zero must not look like the end. */
	xnem_walk_init(&w, refs, 0, refs, 0, 1ull << 32);
	assert_true(xnem_walk_next(&w, &op));
	assert_int_equal(op.len, PAGE);
}

/* A position beyond the first page: a copy into the middle of a region. */
static void positions(void **state)
{
	static const u64 pos[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 65537 };
	const size_t n = sizeof(pos) / sizeof(pos[0]);
	size_t a, b;

	(void)state;
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			const u64 len = 5000;
			u32 *s = make_refs((pos[a] + len + PAGE - 1) / PAGE, SRC_BASE);
			u32 *d = make_refs((pos[b] + len + PAGE - 1) / PAGE, DST_BASE);

			check_walk(s, (u32)pos[a], d, (u32)pos[b], len);
			check_batches(s, (u32)pos[a], d, (u32)pos[b], len, 130);
			free(s);
			free(d);
		}
}

/*
 * A length of 0 at the very end of a region whose last page is full names a
 * page that does not exist.  It must not be looked at.
 */
static void nothing_at_the_end(void **state)
{
	u32 *refs = make_refs(2, SRC_BASE);
	struct xnem_copy_op op;
	struct xnem_walk w;

	(void)state;
	xnem_walk_init(&w, refs, 2 * PAGE, refs, 2 * PAGE, 0);
	assert_false(xnem_walk_next(&w, &op));
	xnem_walk_init(&w, refs, 2 * PAGE, refs, 17, 0);
	assert_false(xnem_walk_next(&w, &op));
	free(refs);
}

/*
 * The operations, carried out on pages that lie in another order than the
 * region's, against memcpy on flat arrays.  Bytes around the destination must
 * stay as they were.
 */
struct side {
	u64 pages;
	u8 *mem; /* pages in an order of their own */
	u8 *flat; /* the region as the process sees it */
	u32 *refs; /* reference = number of the page in mem */
};

static u32 seed = 1;

static u32 next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static void side_make(struct side *s, u64 pages)
{
	u64 i;

	s->pages = pages;
	s->mem = malloc(pages * PAGE);
	s->flat = malloc(pages * PAGE);
	s->refs = malloc(pages * sizeof(*s->refs));
	assert_true(s->mem && s->flat && s->refs);
	for (i = 0; i < pages; i++)
		s->refs[i] = (u32)i;
	for (i = pages - 1; i; i--) {
		u64 j = next_random() % (i + 1);
		u32 ref = s->refs[i];

		s->refs[i] = s->refs[j];
		s->refs[j] = ref;
	}
	for (i = 0; i < pages * PAGE / 4; i++) {
		u32 v = next_random();

		memcpy(s->flat + i * 4, &v, 4);
	}
	for (i = 0; i < pages; i++)
		memcpy(s->mem + (u64)s->refs[i] * PAGE, s->flat + i * PAGE, PAGE);
}

static void side_free(struct side *s)
{
	free(s->mem);
	free(s->flat);
	free(s->refs);
}

static void copy_bytes(struct side *s, u64 src, struct side *d, u64 dst, u64 len)
{
	struct xnem_copy_op op;
	struct xnem_walk w;
	u64 i;

	cur_src = (u32)src;
	cur_dst = (u32)dst;
	cur_len = len;
	xnem_walk_init(&w, s->refs, src, d->refs, dst, len);
	while (xnem_walk_next(&w, &op)) {
		must(op.src_ref < s->pages && op.dst_ref < d->pages);
		memcpy(d->mem + (u64)op.dst_ref * PAGE + op.dst_off,
		       s->mem + (u64)op.src_ref * PAGE + op.src_off, op.len);
	}
	memcpy(d->flat + dst, s->flat + src, len);
	for (i = 0; i < d->pages; i++)
		must(!memcmp(d->mem + (u64)d->refs[i] * PAGE, d->flat + i * PAGE, PAGE));
}

static void like_memcpy(void **state)
{
	static const u64 len[] = { 0, 1, 63, 4095, 4096, 4097, 8192 };
	struct side s, d;
	u32 off;
	size_t c, i;

	(void)state;
	side_make(&s, 4);
	side_make(&d, 4);
	for (off = 0; off < PAGE; off++)
		for (c = 0; c < NR_CORNERS; c++)
			for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
				copy_bytes(&s, off, &d, corners[c], len[i]);
				copy_bytes(&s, corners[c], &d, off, len[i]);
			}
	side_free(&s);
	side_free(&d);
}

static void like_memcpy_large(void **state)
{
	static const u64 len[] = { 65535, 1 << 20, (1 << 20) + 1, 16 << 20 };
	static const u32 off[] = { 0, 1, 2048, 4095 };
	size_t a, b, i;

	(void)state;
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		struct side s, d;

		side_make(&s, len[i] / PAGE + 2);
		side_make(&d, len[i] / PAGE + 2);
		for (a = 0; a < 4; a++)
			for (b = 0; b < 4; b++)
				copy_bytes(&s, off[a], &d, off[b], len[i]);
		side_free(&s);
		side_free(&d);
	}
}

/*
 * A batch ends anywhere, and the walk goes on in the next one from a copy of
 * where it stood; or a copy is cut by bytes and begun again at a position.
 */
static void in_pieces(void **state)
{
	static const u64 len[] = { 1, 4095, 4097, 65535, 300000 };
	size_t a, b, i;
	u32 piece;

	(void)state;
	for (a = 0; a < NR_CORNERS; a++)
		for (b = 0; b < NR_CORNERS; b++)
			for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
				u32 src = corners[a], dst = corners[b];
				u32 *s = make_refs(pages_touched(src, len[i]), SRC_BASE);
				u32 *d = make_refs(pages_touched(dst, len[i]), DST_BASE);
				struct xnem_walk whole, saved;
				struct xnem_copy_op x, y;
				u64 cut;

				cur_src = src;
				cur_dst = dst;
				cur_len = len[i];
				for (piece = 1; piece <= 65; piece += 7) {
					bool more = true;

					xnem_walk_init(&whole, s, src, d, dst, len[i]);
					saved = whole;
					while (more) {
						struct xnem_walk w = saved;
						u32 n;

						for (n = 0; n < piece && more; n++) {
							memset(&x, 0, sizeof(x));
							memset(&y, 0, sizeof(y));
							more = xnem_walk_next(&w, &x);
							must(xnem_walk_next(&whole, &y) == more);
							must(!memcmp(&x, &y, sizeof(x)));
						}
						saved = w;
					}
				}
				for (cut = 0; cut <= len[i]; cut += 1 + len[i] / 17) {
					u64 done = 0;
					struct xnem_walk w;

					xnem_walk_init(&w, s, src, d, dst, cut);
					while (xnem_walk_next(&w, &x))
						done += x.len;
					must(done == cut);
					/* The position reached is the one to begin again at. */
					xnem_walk_init(&whole, s, src + cut, d, dst + cut,
						       len[i] - cut);
					must(w.src_ref == whole.src_ref);
					must(w.dst_ref == whole.dst_ref);
					must(w.src_off == whole.src_off);
					must(w.dst_off == whole.dst_off);
				}
				free(s);
				free(d);
			}
}

/* What registration allows is enough for every copy within the region. */
static void bounds_from_register(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		u32 so = next_random() % PAGE, d_o = next_random() % PAGE;
		u64 sl = 1 + next_random() % 70000, dl = 1 + next_random() % 70000;
		u64 s_at = next_random() % (sl + 1), d_at = next_random() % (dl + 1);
		u64 len = next_random() % 70001;
		u32 *s, *d;

		if (!xnem_range_ok(s_at, len, sl) || !xnem_range_ok(d_at, len, dl))
			continue;
		s = make_refs(xnem_pages_of(so, sl), SRC_BASE);
		d = make_refs(xnem_pages_of(d_o, dl), DST_BASE);
		check_walk(s, so + (u32)s_at, d, d_o + (u32)d_at, len);
		free(s);
		free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_head),  cmocka_unit_test(every_tail),
		cmocka_unit_test(large),       cmocka_unit_test(beyond_32_bits),
		cmocka_unit_test(positions),   cmocka_unit_test(nothing_at_the_end),
		cmocka_unit_test(like_memcpy), cmocka_unit_test(like_memcpy_large),
		cmocka_unit_test(in_pieces),   cmocka_unit_test(bounds_from_register),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
