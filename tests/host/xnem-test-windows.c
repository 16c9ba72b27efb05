// SPDX-License-Identifier: MIT
/*
 * xnem-test-windows.c - regions that are granted piece by piece
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "xnem-test-suite.h"

static int make_windowed(struct area *area, struct peer *owner, uint64_t bytes, uint64_t offset,
			 uint32_t access)
{
	return make_area(area, owner, bytes, offset, access, XNEM_REG_WINDOWED);
}

static int small(struct cast *cast)
{
	static const struct {
		uint64_t src, dst, len;
	} rows[] = {
		{ 0, 0, 1 },	   { 0, 0, 4096 },	  { 1, 2, 4095 },	{ 4095, 1, 2 },
		{ 0, 0, 300000 },  { 17, 4001, 290000 },  { 299999, 0, 1 },	{ 0, 299999, 1 },
		{ 1000, 1000, 0 }, { 4096, 8192, 65536 }, { 4000, 100, 65537 },
	};
	struct area src, dst;

	/* the source, the destination, both */
	for (unsigned int kind = 1; kind < 4; kind++) {
		EXPECT(0, make_area(&src, &cast->b, 300000, 33, XNEM_REG_READ,
				    kind & 1 ? XNEM_REG_WINDOWED : 0));
		EXPECT(0, make_area(&dst, &cast->a, 300000, 4000, XNEM_REG_WRITE,
				    kind & 2 ? XNEM_REG_WINDOWED : 0));
		for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			CALL(copy_and_check(&cast->a, &dst, rows[i].dst, &src, rows[i].src,
					    rows[i].len, i));
			CALL(copy_and_check(&cast->c, &dst, rows[i].dst, &src, rows[i].src,
					    rows[i].len, i + 50));
		}
		EXPECT(0, peer_deregister(&cast->b, &src.reg));
		EXPECT(0, peer_deregister(&cast->a, &dst.reg));
	}
	return 0;
}

static int large(struct cast *cast)
{
	struct area src, dst;

	EXPECT(0, make_windowed(&src, &cast->b, MIB(20), 1, XNEM_REG_READ));
	EXPECT(0, make_windowed(&dst, &cast->a, MIB(20), 4095, XNEM_REG_WRITE));
	CALL(copy_and_check(&cast->a, &dst, 3, &src, 5, MIB(20) - 10, 1));
	CALL(copy_and_check(&cast->b, &dst, 0, &src, 0, MIB(20), 2));
	return 0;
}

/* Without being asked for: it does not fit, or it does; the bytes are right both ways. */
static int sixty_four_mib(struct cast *cast)
{
	struct area src, dst;
	struct xnem_stats stats;

	EXPECT(0, make_area(&src, &cast->a, MIB(64), 1, XNEM_REG_READ, 0));
	EXPECT(0, make_area(&dst, &cast->b, MIB(64), 4095, XNEM_REG_WRITE, 0));
	CALL(copy_and_check(&cast->a, &dst, 0, &src, 0, MIB(64), 1));
	EXPECT(0, peer_deregister(&cast->a, &src.reg));
	EXPECT(0, peer_deregister(&cast->b, &dst.reg));
	EXPECT(0, peer_register(&cast->b, dst.addr, MIB(64), XNEM_REG_READ, 0, &dst.reg));
	EXPECT(0, peer_register(&cast->a, src.addr, MIB(64), XNEM_REG_WRITE, 0, &src.reg));
	CALL(copy_and_check(&cast->a, &src, 5, &dst, 7, MIB(64) - 100, 2));
	EXPECT(0, peer_stats(&cast->a, &stats));
	note("%u windows", (unsigned int)stats.windows);
	/* where the grant table is too small for it, the scenario says so */
	if (cast->small)
		EXPECT_TRUE(stats.windows >= 2);
	return 0;
}

static int checks_as_ever(struct cast *cast)
{
	struct area src, dst;
	struct xnem_submit_req req;
	uint64_t bytes;

	EXPECT(0, make_windowed(&src, &cast->b, 100000, 1, XNEM_REG_READ));
	EXPECT(0, make_windowed(&dst, &cast->a, 100000, 0, XNEM_REG_WRITE));
	req = copy_req(&dst, 0, &src, 1, 100000);
	EXPECT(-ERANGE, peer_status(&cast->a, &req, &bytes));
	EXPECT(0, bytes);
	req = copy_req(&dst, 0, &src, UINT64_MAX, 1);
	EXPECT(-ERANGE, peer_status(&cast->a, &req, NULL));
	req = copy_req(&src, 0, &dst, 0, 1);
	EXPECT(-EACCES, peer_status(&cast->a, &req, NULL));
	req = copy_req(&dst, 0, &src, 0, 100000);
	req.src.key ^= 1;
	EXPECT(-ENOENT, peer_status(&cast->a, &req, NULL));
	req.src.key ^= 1;
	EXPECT(0, peer_deregister(&cast->b, &src.reg));
	EXPECT(-ENOENT, peer_status(&cast->a, &req, NULL));
	return 0;
}

/* Opposite copies between windowed regions, several at a time, for as long as it takes. */
static int opposite(struct cast *cast)
{
	enum { EACH = 8 };
	struct area in[EACH], out[EACH], peer_in[EACH], peer_out[EACH];
	struct xnem_submit_req to[EACH], from[EACH];
	struct xnem_complete done[EACH];

	for (unsigned int i = 0; i < EACH; i++) {
		EXPECT(0, make_windowed(&out[i], &cast->a, MIB(2), i, XNEM_REG_READ));
		EXPECT(0, make_windowed(&in[i], &cast->a, MIB(2), i + 9, XNEM_REG_WRITE));
		EXPECT(0, make_windowed(&peer_out[i], &cast->b, MIB(2), i, XNEM_REG_READ));
		EXPECT(0, make_windowed(&peer_in[i], &cast->b, MIB(2), i + 7, XNEM_REG_WRITE));
		EXPECT(0, peer_fill(&cast->a, out[i].addr, MIB(2), i, 0));
		EXPECT(0, peer_fill(&cast->b, peer_out[i].addr, MIB(2), i + 100, 0));
		to[i] = copy_req(&peer_in[i], 0, &out[i], 0, MIB(2));
		from[i] = copy_req(&in[i], 0, &peer_out[i], 0, MIB(2));
	}
	EXPECT(EACH, peer_submit(&cast->a, to, EACH));
	EXPECT(EACH, peer_submit(&cast->b, from, EACH));
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int left = EACH; left;) {
			int n = peer_complete(side ? &cast->b : &cast->a, done, 1, EACH, WAIT_NS);

			EXPECT_TRUE(n > 0);
			for (int i = 0; i < n; i++) {
				EXPECT(0, done[i].status);
				EXPECT(MIB(2), done[i].bytes_done);
			}
			left -= (unsigned int)n;
		}
	for (unsigned int i = 0; i < EACH; i++) {
		EXPECT(0, peer_check(&cast->a, in[i].addr, MIB(2), i + 100, 0));
		EXPECT(0, peer_check(&cast->b, peer_in[i].addr, MIB(2), i, 0));
	}
	return 0;
}

/* qubes-issues#5073: the owner sleeps, its kernel goes on granting. */
static int stopped_owner(struct cast *cast)
{
	struct area src, dst;
	struct xnem_submit_req req;
	uint64_t bytes = 0, start;

	EXPECT(0, make_windowed(&src, &cast->b, MIB(6), 9, XNEM_REG_READ));
	EXPECT(0, make_windowed(&dst, &cast->a, MIB(6), 0, XNEM_REG_WRITE));
	EXPECT(0, peer_fill(&cast->b, src.addr, MIB(6), 4, 0));
	EXPECT(0, peer_stop(&cast->b, 3000));
	usleep(100000);
	start = now_ns();
	req = copy_req(&dst, 0, &src, 0, MIB(6));
	EXPECT(0, peer_status(&cast->a, &req, &bytes));
	note("%" PRIu64 " ms", (now_ns() - start) / 1000000);
	EXPECT(MIB(6), bytes);
	EXPECT(0, peer_check(&cast->a, dst.addr, MIB(6), 4, 0));
	return 0;
}

/* The owner is killed in the middle: an error in bounded time, nothing hangs. */
static int owner_killed(struct cast *cast)
{
	struct area src, dst;
	struct xnem_submit_req reqs[4];
	struct xnem_complete done;
	uint64_t start;

	EXPECT(0, make_windowed(&src, &cast->b, MIB(16), 9, XNEM_REG_READ));
	EXPECT(0, make_windowed(&dst, &cast->a, MIB(16), 0, XNEM_REG_WRITE));
	EXPECT(0, peer_fill(&cast->b, src.addr, MIB(16), 4, 0));
	for (unsigned int i = 0; i < 4; i++)
		reqs[i] = copy_req(&dst, 0, &src, 0, MIB(16));
	EXPECT(4, peer_submit(&cast->a, reqs, 4));
	EXPECT(0, peer_kill(&cast->b));
	start = now_ns();
	for (unsigned int i = 0; i < 4; i++) {
		EXPECT(1, peer_complete(&cast->a, &done, 1, 1, WAIT_NS));
		note("ended with %d after %" PRIu64 " ms", done.status,
		     (now_ns() - start) / 1000000);
		EXPECT_TRUE(done.status == 0 || done.status == -ENOENT ||
			    done.status == -EHOSTDOWN || done.status == -EFAULT);
		if (!done.status)
			EXPECT(MIB(16), done.bytes_done);
	}
	EXPECT_TRUE(now_ns() - start < 10000000000ull);
	return 0;
}

static int deregistered_in_the_middle(struct cast *cast)
{
	struct area src, dst;
	struct xnem_submit_req req;
	struct xnem_complete done;

	for (unsigned int round = 0; round < 4; round++) {
		EXPECT(0, make_windowed(&src, &cast->b, MIB(8), 9, XNEM_REG_READ));
		EXPECT(0, make_windowed(&dst, &cast->a, MIB(8), 0, XNEM_REG_WRITE));
		EXPECT(0, peer_fill(&cast->b, src.addr, MIB(8), round, 0));
		req = copy_req(&dst, 0, &src, 0, MIB(8));
		EXPECT(1, peer_submit(&cast->a, &req, 1));
		EXPECT(0, peer_deregister(&cast->b, &src.reg));
		/* from here on nothing reads from it */
		EXPECT(0, peer_set(&cast->b, src.addr, MIB(8), 0));
		EXPECT(1, peer_complete(&cast->a, &done, 1, 1, WAIT_NS));
		note("ended with %d", done.status);
		EXPECT_TRUE(done.status == 0 || done.status == -ENOENT ||
			    done.status == -EHOSTDOWN);
		if (!done.status)
			EXPECT(0, peer_check(&cast->a, dst.addr, MIB(8), round, 0));
		EXPECT(0, peer_deregister(&cast->a, &dst.reg));
	}
	return 0;
}

/* Pieces and windows together. */
static int segments_in_windows(struct cast *cast)
{
	int64_t base = peer_map(&cast->b, K_PRIVATE, MIB(4), 0);
	struct xnem_seg seg[50];
	struct xnem_register reg;
	struct xnem_submit_req req;
	struct area plain;
	uint64_t total = 0, pos = 0;

	EXPECT_TRUE(base > 0);
	for (unsigned int i = 0; i < 50; i++) {
		seg[i].addr = (uint64_t)base + (i * 37 % 50) * 80000 + i;
		seg[i].length = 1 + i * 5003 % 70000;
		total += seg[i].length;
	}
	EXPECT(0, peer_register_segs(&cast->b, seg, 50, total, XNEM_REG_READ, XNEM_REG_WINDOWED,
				     &reg));
	for (unsigned int i = 0; i < 50; i++) {
		EXPECT(0, peer_fill(&cast->b, seg[i].addr, seg[i].length, 5, pos));
		pos += seg[i].length;
	}
	EXPECT(0, make_windowed(&plain, &cast->a, total, 1, RW));
	req = copy_req(&plain, 0, &plain, 0, total);
	req.src = reg.cookie;
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(0, peer_check(&cast->a, plain.addr, total, 5, 0));
	return 0;
}

/*
 * More than 4 GiB in one copy: 16 MiB of memory, many times one behind the other.
 * What ends up there is the last copy of each byte: its position tells.
 */
static int above_4_gib(struct cast *cast)
{
	const uint64_t unit = MIB(16), times = 258, shift = 12345;
	struct xnem_register from, to;
	struct xnem_submit_req req = { .op = XNEM_REQ_OP_COPY, .user_data = 1 };
	struct xnem_complete done;
	struct xnem_info info;
	int64_t src, dst;

	EXPECT(0, peer_info(&cast->a, &info));
	if (!info.windows) {
		note("no windows");
		EXPECT_TRUE(info.windows);
	}
	src = peer_map(&cast->b, K_REPEATED, unit, times);
	dst = peer_map(&cast->a, K_REPEATED, unit, times);
	EXPECT_TRUE(src > 0 && dst > 0);
	EXPECT(0, peer_register(&cast->b, (uint64_t)src, unit * times, XNEM_REG_READ, 0, &from));
	EXPECT(0, peer_register(&cast->a, (uint64_t)dst, unit * times, XNEM_REG_WRITE, 0, &to));
	EXPECT(0, peer_fill(&cast->b, (uint64_t)src, unit, 6, 0));
	req.src = from.cookie;
	req.dst = to.cookie;
	req.src_offset = shift;
	req.length = unit * times - shift;
	EXPECT(1, peer_submit(&cast->a, &req, 1));
	EXPECT(1, peer_complete(&cast->a, &done, 1, 1, 600000000000ll));
	EXPECT(0, done.status);
	EXPECT(req.length, done.bytes_done);
	/*
	 * Byte i of the destination's unit was written last at the last position p that is
	 * i modulo unit; it is the source's byte (p + shift) modulo unit.
	 */
	EXPECT(0, peer_check(&cast->a, (uint64_t)dst, unit - shift, 6, shift));
	EXPECT(0, peer_check(&cast->a, (uint64_t)dst + unit - shift, shift, 6, 0));
	/* a short one behind 4 GiB, to and from */
	EXPECT(0, peer_fill(&cast->b, (uint64_t)src, unit, 7, 0));
	EXPECT(0, peer_set(&cast->a, (uint64_t)dst, unit, 0));
	req.src_offset = (1ull << 32) + 5;
	req.dst_offset = (1ull << 32) + MIB(1);
	req.length = 100000;
	EXPECT(0, peer_status(&cast->a, &req, NULL));
	EXPECT(0, peer_check(&cast->a, (uint64_t)dst + MIB(1), 100000, 7, 5));
	EXPECT(0, peer_check_byte(&cast->a, (uint64_t)dst, MIB(1), 0));
	EXPECT(0, peer_check_byte(&cast->a, (uint64_t)dst + MIB(1) + 100000, unit - MIB(1) - 100000,
				  0));
	return 0;
}

#define F XNEM_FEAT_WINDOW

const struct test windows_tests[] = {
	{ "windowed source, destination, both; any offset", small, F },
	{ "20 MiB", large, F },
	{ "64 MiB, whether they fit or not", sixty_four_mib, F },
	{ "range, access and key are checked as ever", checks_as_ever, F },
	{ "opposite copies at once do not lock each other", opposite, F },
	{ "qubes-issues#5073: the owner is stopped", stopped_owner, F },
	{ "hpc/xpmem#4: the owner is killed in the middle", owner_killed, F },
	{ "deregistered in the middle", deregistered_in_the_middle, F },
	{ "pieces in windows", segments_in_windows, F | XNEM_FEAT_SEGMENTS },
	{ "ompi#4829: more than 4 GiB in one copy", above_4_gib, F },
	{ 0 },
};
