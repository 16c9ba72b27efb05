// SPDX-License-Identifier: MIT
/*
 * xnem-test-segments.c - regions of several pieces of memory
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "xnem-test-suite.h"

#define MOST 1024

/** A region of pieces of one mapping, in the order of their positions. */
struct pieces {
	struct peer *owner;
	uint64_t base, span, total;
	uint32_t nr;
	struct xnem_seg seg[MOST];
	struct xnem_register reg;
};

static uint64_t state = 88172645463325252ull;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* Pieces that do not overlap, of 1 to @longest bytes, in a random order. */
static int make_pieces(struct pieces *v, struct peer *owner, uint32_t nr, uint64_t longest,
		       uint32_t access, uint32_t flags)
{
	uint64_t at = random_below(4096);
	int64_t base;

	memset(v, 0, sizeof(*v));
	v->owner = owner;
	v->nr = nr;
	v->span = (nr * (longest + 5000) + 8191) & ~4095ull;
	base = peer_map(owner, K_PRIVATE, v->span, 0);
	if (base < 0)
		return (int)base;
	v->base = (uint64_t)base;
	for (uint32_t i = 0; i < nr; i++) {
		v->seg[i].length = 1 + random_below(longest);
		v->seg[i].addr = v->base + at;
		at += v->seg[i].length + random_below(5000);
		v->total += v->seg[i].length;
	}
	for (uint32_t i = nr - 1; i; i--) {
		uint32_t k = (uint32_t)random_below(i + 1);
		struct xnem_seg swap = v->seg[i];

		v->seg[i] = v->seg[k];
		v->seg[k] = swap;
	}
	return peer_register_segs(owner, v->seg, nr, v->total, access, flags, &v->reg);
}

static int fill_pieces(const struct pieces *v, uint64_t seed)
{
	EXPECT(0, peer_fill_pieces(v->owner, v->seg, v->nr, seed));
	return 0;
}

/* Bytes [from, from + len) are the pattern at those positions plus @shift, no other is touched. */
static int check_pieces(const struct pieces *v, uint64_t from, uint64_t len, uint64_t seed,
			uint64_t shift)
{
	EXPECT(0, peer_check_pieces(v->owner, v->seg, v->nr, v->base, v->span, from, len, seed,
				    shift));
	return 0;
}

/* Both ways, whole and in parts, by a peer; from pieces and into pieces. */
static int exchange(struct cast *cast, uint32_t nr, uint64_t longest)
{
	struct pieces *v = calloc(1, sizeof(*v));
	struct area plain;
	struct xnem_submit_req req;
	uint64_t bytes;

	EXPECT(0, make_pieces(v, &cast->b, nr, longest, RW, 0));
	EXPECT(0, make_area(&plain, &cast->a, v->total + 100, 33, RW, 0));
	CALL(fill_pieces(v, nr));
	for (unsigned int round = 0; round < 8; round++) {
		uint64_t from = round ? random_below(v->total + 1) : 0;
		uint64_t len = round ? random_below(v->total - from + 1) : v->total;

		note("%u pieces, %" PRIu64 " bytes from %" PRIu64, nr, len, from);
		EXPECT(0, peer_set(&cast->a, plain.addr, plain.bytes, GUARD_BYTE));
		req = copy_req(&plain, 50, &plain, from, len);
		req.src = v->reg.cookie;
		EXPECT(0, peer_status(&cast->a, &req, &bytes));
		EXPECT(len, bytes);
		EXPECT(0, peer_check(&cast->a, plain.addr + 50, len, nr, from));
		EXPECT(0, peer_check_byte(&cast->a, plain.addr, 50, GUARD_BYTE));
		EXPECT(0, peer_check_byte(&cast->a, plain.addr + 50 + len, plain.bytes - 50 - len,
					  GUARD_BYTE));
	}
	for (unsigned int round = 0; round < 6; round++) {
		uint64_t from = round ? random_below(v->total + 1) : 0;
		uint64_t len = round ? random_below(v->total - from + 1) : v->total;

		note("into %u pieces, %" PRIu64 " bytes to %" PRIu64, nr, len, from);
		EXPECT(0, peer_set(&cast->b, v->base, v->span, GUARD_BYTE));
		EXPECT(0, peer_fill(&cast->a, plain.addr, len, 7, from));
		req = copy_req(&plain, from, &plain, 0, len);
		req.dst = v->reg.cookie;
		EXPECT(0, peer_status(&cast->a, &req, &bytes));
		EXPECT(len, bytes);
		CALL(check_pieces(v, from, len, 7, 0));
	}
	req = copy_req(&plain, 0, &plain, 0, v->total);
	req.dst = v->reg.cookie;
	/* one byte too many */
	req.length++;
	EXPECT(-ERANGE, peer_status(&cast->a, &req, NULL));
	free(v);
	return 0;
}

static int two(struct cast *cast)
{
	return exchange(cast, 2, 9000);
}

static int few(struct cast *cast)
{
	for (uint32_t nr = 1; nr <= 17; nr += 8)
		CALL(exchange(cast, nr, 3000));
	return 0;
}

static int tiny(struct cast *cast)
{
	return exchange(cast, 200, 3);
}

static int many(struct cast *cast)
{
	struct xnem_info info;

	EXPECT(0, peer_info(&cast->b, &info));
	EXPECT_TRUE(info.max_segments >= 2 && info.max_segments <= MOST);
	return exchange(cast, info.max_segments, 300);
}

static int long_ones(struct cast *cast)
{
	return exchange(cast, 5, 300000);
}

/* Both sides in pieces, cut at different places. */
static int pieces_to_pieces(struct cast *cast)
{
	struct pieces *from = calloc(1, sizeof(*from)), *to = calloc(1, sizeof(*to));
	struct xnem_submit_req req = { .op = XNEM_REQ_OP_COPY };

	EXPECT(0, make_pieces(from, &cast->a, 60, 2000, XNEM_REG_READ, 0));
	EXPECT(0, make_pieces(to, &cast->b, 41, 2500, XNEM_REG_WRITE, 0));
	CALL(fill_pieces(from, 9));
	req.src = from->reg.cookie;
	req.dst = to->reg.cookie;
	for (unsigned int round = 0; round < 10; round++) {
		uint64_t least = from->total < to->total ? from->total : to->total;
		uint64_t s = random_below(least / 2), d = random_below(least / 2);

		req.src_offset = s;
		req.dst_offset = d;
		req.length = random_below(least / 2);
		note("%" PRIu64 " bytes from %" PRIu64 " to %" PRIu64, (uint64_t)req.length, s, d);
		EXPECT(0, peer_set(&cast->b, to->base, to->span, GUARD_BYTE));
		EXPECT(0, peer_status(round % 2 ? &cast->c : &cast->a, &req, NULL));
		CALL(check_pieces(to, d, req.length, 9, s - d));
	}
	free(from);
	free(to);
	return 0;
}

/* Two in one page, one page twice, one after the other in memory and backwards. */
static int shared_pages(struct cast *cast)
{
	int64_t base = peer_map(&cast->b, K_PRIVATE, 16384, 0);
	struct xnem_seg seg[] = {
		{ (uint64_t)base + 100, 50 },	 { (uint64_t)base + 200, 50 },
		{ (uint64_t)base + 150, 50 },	 { (uint64_t)base + 4000, 300 },
		{ (uint64_t)base + 100, 50 },	 { (uint64_t)base + 8191, 2 },
		{ (uint64_t)base + 8192, 4096 },
	};
	struct xnem_register reg;
	struct area plain;
	struct xnem_submit_req req;
	uint64_t total = 0, pos = 0;

	EXPECT_TRUE(base > 0);
	for (unsigned int i = 0; i < 7; i++)
		total += seg[i].length;
	EXPECT(0, peer_fill(&cast->b, (uint64_t)base, 16384, 3, 0));
	EXPECT(0, peer_register_segs(&cast->b, seg, 7, total, XNEM_REG_READ, 0, &reg));
	EXPECT(0, make_area(&plain, &cast->a, total, 1, RW, 0));
	req = copy_req(&plain, 0, &plain, 0, total);
	req.src = reg.cookie;
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	for (unsigned int i = 0; i < 7; i++) {
		note("piece %u", i);
		EXPECT(0, peer_check(&cast->a, plain.addr + pos, seg[i].length, 3,
				     seg[i].addr - (uint64_t)base));
		pos += seg[i].length;
	}
	return 0;
}

static int wrong(struct cast *cast)
{
	static const uint64_t lengths[] = { 0, 299, 301, UINT64_MAX, 1ull << 32 };
	int64_t base = peer_map(&cast->b, K_PRIVATE, MIB(8), 0);
	struct xnem_seg good[3], seg[3], *all = calloc(MOST + 2, sizeof(*all));
	struct xnem_register reg;
	struct xnem_info info;

	EXPECT_TRUE(base > 0);
	EXPECT(0, peer_info(&cast->b, &info));
	for (unsigned int i = 0; i < 3; i++)
		good[i] = (struct xnem_seg){ (uint64_t)base + 5000 * i, 100 };
	EXPECT(0, peer_register_segs(&cast->b, good, 3, 300, RW, 0, &reg));
	EXPECT(0, peer_deregister(&cast->b, &reg));
	for (unsigned int i = 0; i < 5; i++)
		EXPECT(-EINVAL, peer_register_segs(&cast->b, good, 3, lengths[i], RW, 0, &reg));
	for (unsigned int i = 0; i < 3; i++) {
		note("piece %u", i);
		memcpy(seg, good, sizeof(seg));
		seg[i].length = 0;
		EXPECT(-EINVAL, peer_register_segs(&cast->b, seg, 3, 200, RW, 0, &reg));
		/* sums that come to 300 when they wrap */
		seg[i].length = UINT64_MAX;
		seg[(i + 1) % 3].length = 201;
		EXPECT(-EINVAL, peer_register_segs(&cast->b, seg, 3, 300, RW, 0, &reg));
		memcpy(seg, good, sizeof(seg));
		seg[i].length = 1ull << 63;
		seg[(i + 1) % 3].length = (1ull << 63) + 200;
		EXPECT(-EINVAL, peer_register_segs(&cast->b, seg, 3, 300, RW, 0, &reg));
		/* a range that wraps */
		memcpy(seg, good, sizeof(seg));
		seg[i].addr = UINT64_MAX - 49;
		EXPECT(-EINVAL, peer_register_segs(&cast->b, seg, 3, 300, RW, 0, &reg));
		/* a hole: nothing of the others stays pinned, see the counters afterwards */
		seg[i].addr = 4096;
		EXPECT(-EFAULT, peer_register_segs(&cast->b, seg, 3, 300, RW, 0, &reg));
	}
	for (uint32_t i = 0; i < MOST + 2; i++)
		all[i] = (struct xnem_seg){ (uint64_t)base + i * 100, 1 };
	EXPECT(-EINVAL, peer_register_segs(&cast->b, all, info.max_segments + 1,
					   info.max_segments + 1, RW, 0, &reg));
	reg = (struct xnem_register){ .addr = 8, .length = 300, .access = RW, .nr_segments = 3 };
	EXPECT(-EFAULT, peer_ioctl(&cast->b, XNEM_IOC_REGISTER, &reg));
	reg = (struct xnem_register){
		.addr = cast->b.scratch, .length = 300, .access = RW, .nr_segments = UINT32_MAX
	};
	EXPECT(-EINVAL, peer_ioctl(&cast->b, XNEM_IOC_REGISTER, &reg));
	/* not enough room for 64 bits of sum in a region */
	seg[0] = (struct xnem_seg){ (uint64_t)base, info.max_region_bytes };
	seg[1] = good[1];
	EXPECT(-E2BIG,
	       peer_register_segs(&cast->b, seg, 2, info.max_region_bytes + 100, RW, 0, &reg));
	free(all);
	return 0;
}

static int bounded_pieces(struct cast *cast)
{
	struct pieces *v = calloc(1, sizeof(*v));
	struct xnem_submit_req req;
	struct area plain;
	uint64_t bytes;

	EXPECT(0, make_pieces(v, &cast->b, 30, 1000, XNEM_REG_READ, XNEM_REG_ONCE));
	CALL(fill_pieces(v, 1));
	EXPECT(0, make_area(&plain, &cast->a, v->total + 500, 0, RW, 0));
	req = copy_req(&plain, 0, &plain, 17, v->total + 400);
	req.src = v->reg.cookie;
	req.flags = XNEM_SUBMIT_BOUNDED;
	EXPECT(0, peer_status(&cast->a, &req, &bytes));
	EXPECT(v->total - 17, bytes);
	EXPECT(0, peer_check(&cast->a, plain.addr, bytes, 1, 17));
	EXPECT(-ENOENT, peer_status(&cast->a, &req, NULL));
	free(v);
	return 0;
}

#define F XNEM_FEAT_SEGMENTS

const struct test segments_tests[] = {
	{ "two pieces", two, F },
	{ "1 to 17 pieces, any offset", few, F },
	{ "200 pieces of up to 3 bytes", tiny, F },
	{ "as many pieces as there can be", many, F },
	{ "pieces over many pages", long_ones, F },
	{ "pieces on both sides", pieces_to_pieces, F },
	{ "pieces that share pages", shared_pages, F },
	{ "wrong pieces, wrong sums, sums that wrap, holes", wrong, F },
	{ "bounded, and for one copy", bounded_pieces, F | XNEM_FEAT_CANCEL },
	{ 0 },
};
