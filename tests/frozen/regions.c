// SPDX-License-Identifier: MIT
/*
 * Tests: regions and copies (section 5).
 */
#include <string.h>
#include <unistd.h>

#include "common.h"

static int odd_offsets(struct frontend *fe)
{
	static const struct {
		uint64_t dst, src, len;
	} t[] = { { 0, 0, 20000 }, { 1, 0, 1 },	    { 0, 3, 4096 },	{ 95, 3973, 8193 },
		  { 7, 7, 4089 },  { 19999, 0, 1 }, { 12289, 4095, 7 }, { 4095, 1, 12000 } };
	const uint64_t bytes = 20000;
	struct region a, b;
	unsigned int i;

	CALL(make_region(fe, &a, R, 0, 123, bytes));
	CALL(make_region(fe, &b, W, 0, 4001, bytes));
	pattern_fill(a.mem, bytes, 1, 0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t all = (uint64_t)b.pages->nr * XNEM_PAGE_SIZE;
		uint64_t before = 4001 + t[i].dst, after = all - before - t[i].len;
		struct xnem_completion c;

		memset(b.pages->mem, 0xee, all);
		c = copy(fe, 0, &b, t[i].dst, &a, t[i].src, t[i].len);
		note("copy %u", i);
		EXPECT(XNEM_ST_OK, c.status);
		EXPECT(t[i].len, c.bytes_done);
		EXPECT(t[i].len, pattern_check(b.mem + t[i].dst, t[i].len, 1, t[i].src));
		/* Not a byte beside it, in its pages either. */
		EXPECT(before, byte_check(b.pages->mem, before, 0xee));
		EXPECT(after, byte_check(b.mem + t[i].dst + t[i].len, after, 0xee));
	}
	return 0;
}

static int empty_copies(struct frontend *fe)
{
	struct region a, b;
	struct xnem_completion c;

	CALL(make_region(fe, &a, R, 0, 0, 100));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	c = copy(fe, 0, &b, 0, &a, 0, 0);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.bytes_done);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 100, &a, 100, 0).status);
	/* Checked like any other. */
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 101, &a, 0, 0).status);
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &a, 0, &a, 0, 0).status);
	return 0;
}

static int large_copy(struct frontend *fe)
{
	const uint64_t bytes = 700001;
	struct xnem_completion c;
	struct region a, b;

	CALL(make_region(fe, &a, R, 0, 5, bytes));
	CALL(make_region(fe, &b, W, 0, 4090, bytes));
	pattern_fill(a.mem, bytes, 2, 0);
	c = copy(fe, 0, &b, 0, &a, 0, bytes);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(bytes, c.bytes_done);
	EXPECT(bytes, pattern_check(b.mem, bytes, 2, 0));
	return 0;
}

/* More references than one descriptor page holds. */
static int two_descriptor_pages(struct frontend *fe)
{
	const uint32_t nr = XNEM_DESC_REFS + 76, have = 8;
	const uint64_t at = (XNEM_DESC_REFS - 1) * (uint64_t)XNEM_PAGE_SIZE + 100;
	struct pages *p = grant_pages(fe, have, false);
	struct xnem_request req =
		register_request(R, XNEM_REGION_INDIRECT, 0, (uint64_t)nr * XNEM_PAGE_SIZE);
	const uint64_t bytes = 3 * XNEM_PAGE_SIZE;
	struct region a, b;

	give_refs(fe, &req, p);
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));
	CALL(make_region(fe, &b, W, 0, 0, bytes));
	pattern_fill(p->mem, have * XNEM_PAGE_SIZE, 3, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, at, bytes).status);
	EXPECT(bytes, same(b.mem, bytes, p->mem, have * XNEM_PAGE_SIZE, at));
	return 0;
}

/* @nr segments of @len bytes each, at odd places of @p's pages, one page each. */
static int segments_of(struct frontend *fe, uint32_t nr, uint32_t len, bool indirect)
{
	const uint64_t bytes = (uint64_t)nr * len;
	struct pages *table =
		grant_pages(fe, (nr + XNEM_DESC_SEGMENTS - 1) / XNEM_DESC_SEGMENTS, false);
	struct xnem_segment *seg = (void *)table->mem;
	struct pages *p = grant_pages(fe, 16, true);
	struct xnem_request req = request(XNEM_OP_REGISTER, 0);
	uint32_t i, first = indirect ? 1 : nr;
	struct region a, b;

	/* Each has a stretch of a page to itself, so that none hides another. */
	EXPECT(true, nr <= 16 * 30 && len <= 130);
	for (i = 0; i < nr; i++) {
		seg[i].length = len;
		seg[i].offset = 131 * (i / 16) + i % 7;
	}
	req.u.reg.length = bytes;
	req.u.reg.offset = nr;
	req.u.reg.access = RW;
	req.u.reg.flags = XNEM_REGION_SEGMENTS | (indirect ? XNEM_REGION_INDIRECT : 0);
	req.u.reg.nr_pages = nr;
	give_refs(fe, &req, p);
	for (i = 0; i < table->nr; i++)
		req.u.reg.ref[first + i] = table->ref[i];
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));

	CALL(make_region(fe, &b, RW, 0, 9, bytes));
	pattern_fill(b.mem, bytes, 4, 0);
	EXPECT(bytes - 5, copy(fe, 0, &a, 3, &b, 3, bytes - 5).bytes_done);
	for (i = 1; i < nr - 1; i++) {
		const unsigned char *at = p->mem + i % 16 * XNEM_PAGE_SIZE + seg[i].offset;

		note("segment %u", i);
		EXPECT(len, pattern_check(at, len, 4, (uint64_t)i * len));
	}
	note("%s", "");
	memset(b.mem, 0, bytes);
	EXPECT(bytes - 5, copy(fe, 0, &b, 3, &a, 3, bytes - 5).bytes_done);
	EXPECT(bytes - 5, pattern_check(b.mem + 3, bytes - 5, 4, 3));
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 1, bytes).status);
	/* A table that is not what the request says. */
	seg[nr - 1].length++;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	seg[nr - 1].length--;
	seg[0].pad = 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	return 0;
}

static int segments(struct frontend *fe)
{
	return segments_of(fe, 5, 101, false);
}

static int many_segments(struct frontend *fe)
{
	return segments_of(fe, XNEM_DESC_SEGMENTS + 44, 13, true);
}

static int once(struct frontend *fe)
{
	struct region a, b;

	CALL(make_region(fe, &a, R, XNEM_REGION_ONCE, 0, 100));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	/* One that is refused uses up nothing. */
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 0, 101).status);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 100).status);
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 100).status);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	return 0;
}

static int tags(struct frontend *fe)
{
	struct region mine, any;
	struct xnem_request req;

	CALL(make_region(fe, &mine, RW, 0, 0, 100));
	CALL(make_region(fe, &any, RW, XNEM_REGION_ANY_TAG, 0, 100));
	req = copy_request(0, &any, 0, &any, 50, 10);
	req.tag = TAG + 1;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	req = copy_request(0, &mine, 0, &any, 0, 10);
	req.tag = TAG + 1;
	EXPECT(XNEM_ST_TAG, call(fe, &req).status);
	req = copy_request(0, &any, 0, &mine, 0, 10);
	/* All 64 bits count. */
	req.tag = TAG + (1ull << 32);
	EXPECT(XNEM_ST_TAG, call(fe, &req).status);
	req.tag = TAG;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	return 0;
}

static int access_rights(struct frontend *fe)
{
	struct region r, w;

	CALL(make_region(fe, &r, R, 0, 0, 100));
	CALL(make_region(fe, &w, W, 0, 0, 100));
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &r, 0, &r, 50, 10).status);
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &w, 0, &w, 50, 10).status);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &w, 0, &r, 0, 100).status);
	return 0;
}

static int ranges(struct frontend *fe)
{
	struct xnem_completion c;
	struct region a, b;

	CALL(make_region(fe, &a, R, 0, 10, 5000));
	CALL(make_region(fe, &b, W, 0, 20, 6000));
	pattern_fill(a.mem, 5000, 5, 0);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 0, 5001).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 5999, &a, 0, 2).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, UINT64_MAX, 2).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 1, UINT64_MAX).status);
	EXPECT(6000, byte_check(b.mem, 6000, 0));

	c = copy(fe, XNEM_REQ_BOUNDED, &b, 0, &a, 1000, UINT64_MAX);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(4000, c.bytes_done);
	EXPECT(4000, pattern_check(b.mem, 4000, 5, 1000));
	c = copy(fe, XNEM_REQ_BOUNDED, &b, 5990, &a, 0, 100);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(10, c.bytes_done);
	EXPECT(XNEM_ST_RANGE, copy(fe, XNEM_REQ_BOUNDED, &b, 0, &a, 5001, 1).status);
	return 0;
}

static int wrong_cookies(struct frontend *fe)
{
	struct region a, b, wrong;
	struct xnem_request req;
	struct context ctx;
	uint64_t end;
	uint32_t i;
	uint16_t status = XNEM_ST_COOKIE;

	CALL(make_region(fe, &a, RW, 0, 0, 100));
	CALL(make_region(fe, &b, RW, 0, 0, 100));
	CALL(open_context(fe, &ctx, true, 0));
	wrong = a;
	wrong.cookie.key ^= 1;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);
	wrong = a;
	wrong.cookie.id += 1000000;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &wrong, 0, &b, 0, 1).status);
	memset(&wrong, 0, sizeof(wrong));
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);
	EXPECT(XNEM_ST_COOKIE, deregister(fe, &wrong).status);
	/* A context's address is none of a region, nor the other way round. */
	req = message_request(a.cookie, "x", 1);
	EXPECT(XNEM_ST_COOKIE, call(fe, &req).status);
	wrong.cookie = ctx.address;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);

	/* In numbers: it rests, and after that works. */
	for (i = 0; i < 2000 && status == XNEM_ST_COOKIE; i++)
		status = copy(fe, 0, &b, 0, &wrong, 0, 1).status;
	note("after %u wrong cookies", i);
	EXPECT(XNEM_ST_AGAIN, status);
	for (end = now_ms() + PATIENCE_MS; status == XNEM_ST_AGAIN && now_ms() < end; usleep(10000))
		status = copy(fe, 0, &b, 0, &a, 0, 1).status;
	EXPECT(XNEM_ST_OK, status);
	return 0;
}

static int faults(struct frontend *fe)
{
	struct xnem_request req;
	struct region a, b, c;
	struct xnem_completion done;
	struct pages *p;

	CALL(make_region(fe, &b, RW, 0, 0, 3 * XNEM_PAGE_SIZE));
	/* The page between is not granted: what comes before it is in place. */
	p = grant_pages(fe, 3, false);
	pattern_fill(p->mem, 3 * XNEM_PAGE_SIZE, 6, 0);
	req = register_request(R, 0, 0, 3 * XNEM_PAGE_SIZE);
	give_refs(fe, &req, p);
	req.u.reg.ref[1] = NO_REF;
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));
	done = copy(fe, 0, &b, 0, &a, 0, 3 * XNEM_PAGE_SIZE);
	EXPECT(XNEM_ST_FAULT, done.status);
	EXPECT(XNEM_PAGE_SIZE, done.bytes_done);
	EXPECT(XNEM_PAGE_SIZE, pattern_check(b.mem, XNEM_PAGE_SIZE, 6, 0));

	/* Granted read-only, whatever the request says. */
	req = register_request(W, 0, 0, 100);
	req.u.reg.ref[0] = p->ref[0];
	EXPECT(XNEM_ST_OK, register_it(fe, &c, &req));
	EXPECT(XNEM_ST_FAULT, copy(fe, 0, &c, 0, &b, 0, 100).status);
	EXPECT(100, pattern_check(p->mem, 100, 6, 0));

	/* A descriptor page is read at once. */
	req = register_request(R, XNEM_REGION_INDIRECT, 0, 100);
	req.u.reg.ref[0] = NO_REF;
	EXPECT(XNEM_ST_FAULT, register_it(fe, &a, &req));
	return 0;
}

static int deregistration(struct frontend *fe)
{
	struct region a, b;
	struct pages *p;

	CALL(make_region(fe, &a, RW, 0, 0, 5 * XNEM_PAGE_SIZE));
	CALL(make_region(fe, &b, RW, 0, 0, 5 * XNEM_PAGE_SIZE));
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 5 * XNEM_PAGE_SIZE).status);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	p = a.pages;
	revoke_pages(fe, p);
	EXPECT(false, revoked_in_use(fe));
	EXPECT(XNEM_ST_COOKIE, deregister(fe, &a).status);
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 1).status);
	return 0;
}

/* The backend holds a region's pages no longer than it says, though a copy waits. */
static int deregister_under_a_copy(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_completion c;
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, window;

	CALL(make_windowed(fe, &a, R, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, XNEM_PAGE_SIZE));
	req = copy_request(0, &b, 0, &a, 0, XNEM_PAGE_SIZE);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(false, answered(fe, id));
	/* The destination: its own end must not wait for the window. */
	EXPECT(XNEM_ST_OK, deregister(fe, &b).status);
	EXPECT(true, answered(fe, id));
	c = wait_for(fe, id, 0);
	EXPECT(XNEM_ST_PEER_GONE, c.status);
	EXPECT(0, c.bytes_done);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	/* Nobody waits for it any more: answered at once. */
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	return 0;
}

const struct test region_tests[] = {
	{ "copies at odd offsets", odd_offsets, false },
	{ "copies of 0 bytes", empty_copies, false },
	{ "a large copy", large_copy, false },
	{ "two descriptor pages", two_descriptor_pages, false },
	{ "segments", segments, false },
	{ "many segments", many_segments, false },
	{ "a region for one copy", once, false },
	{ "tags", tags, false },
	{ "access", access_rights, false },
	{ "ranges, bounded copies", ranges, false },
	{ "wrong cookies and addresses", wrong_cookies, false },
	{ "pages that are not granted", faults, false },
	{ "deregister, then revoke", deregistration, false },
	{ "deregister under a copy", deregister_under_a_copy, false },
	{},
};
