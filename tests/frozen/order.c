// SPDX-License-Identifier: MIT
/*
 * Tests: fences, cancel, windows (sections 4 and 8).
 */
#include "common.h"

static int fences(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 2, false);
	const uint64_t bytes = 2 * XNEM_PAGE_SIZE;
	struct region a, b, c;
	struct xnem_want want;
	struct xnem_request req;
	uint32_t first, fence, behind, other, id, window, n;

	CALL(make_windowed(fe, &a, R, 0, bytes, p));
	CALL(make_region(fe, &b, RW, 0, 0, bytes));
	CALL(make_region(fe, &c, RW, 0, 0, bytes));
	pattern_fill(p->mem, bytes, 10, 0);
	/* It waits for its window; the second one copies what it will have brought. */
	req = copy_request(0, &b, 0, &a, 0, bytes);
	first = post(fe, &req);
	req = copy_request(XNEM_REQ_FENCE, &c, 0, &b, 0, bytes);
	fence = post(fe, &req);
	req = request(XNEM_OP_PING, 0);
	behind = post(fe, &req);
	/* Another context has nothing to do with that. */
	req.context = 1;
	other = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(XNEM_ST_OK, wait_for(fe, other, PATIENCE_MS).status);
	EXPECT(false, answered(fe, first) || answered(fe, fence) || answered(fe, behind));
	id = post_describe(fe, window, &want, p);
	CALL(serve_wants(fe, first, &a, &a, &n));
	EXPECT(XNEM_ST_OK, wait_for(fe, first, 0).status);
	EXPECT(XNEM_ST_OK, wait_for(fe, fence, PATIENCE_MS).status);
	EXPECT(bytes, pattern_check(c.mem, bytes, 10, 0));
	EXPECT(XNEM_ST_OK, wait_for(fe, behind, PATIENCE_MS).status);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	return 0;
}

static int cancel(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_completion c;
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req, end = request(XNEM_OP_CANCEL, 0);
	uint32_t copying, parked, id, window;

	CALL(make_windowed(fe, &a, R, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, XNEM_PAGE_SIZE));
	req = copy_request(0, &b, 0, &a, 0, XNEM_PAGE_SIZE);
	copying = post(fe, &req);
	req = request(XNEM_OP_PING, XNEM_REQ_FENCE);
	parked = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));

	/* Of another context, and one that there is not. */
	end.context = 1;
	end.u.cancel.id = copying;
	c = call(fe, &end);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.data[0]);
	end.context = CTX;
	end.u.cancel.id = 0xfffffff0;
	EXPECT(0, call(fe, &end).data[0]);
	EXPECT(false, answered(fe, copying) || answered(fe, parked));

	end.u.cancel.id = parked;
	EXPECT(1, call(fe, &end).data[0]);
	EXPECT(XNEM_ST_CANCELLED, wait_for(fe, parked, PATIENCE_MS).status);
	EXPECT(false, answered(fe, copying));
	end.u.cancel.id = copying;
	EXPECT(1, call(fe, &end).data[0]);
	c = wait_for(fe, copying, PATIENCE_MS);
	EXPECT(XNEM_ST_CANCELLED, c.status);
	EXPECT(0, c.bytes_done);
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	return 0;
}

/* A copy between windowed regions of more pages than a window has, or are granted. */
static int windows(struct frontend *fe)
{
	const uint32_t nr = 2 * fe->offers.window_pages + 30, have = 16;
	const uint64_t bytes = (uint64_t)nr * XNEM_PAGE_SIZE - 300;
	struct xnem_request req;
	struct region a, b;
	uint32_t id, n;

	/* As many as Linux grants to a program. */
	EXPECT(true, nr <= 900);
	CALL(make_windowed(fe, &a, R, 100, bytes, grant_pages(fe, have, false)));
	CALL(make_windowed(fe, &b, W, 200, bytes, grant_pages(fe, nr, true)));
	pattern_fill(a.pages->mem, have * XNEM_PAGE_SIZE, 11, 0);
	req = copy_request(0, &b, 0, &a, 0, bytes);
	id = post(fe, &req);
	publish(fe);
	CALL(serve_wants(fe, id, &a, &b, &n));
	note("after %u windows", n);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 0).status);
	/* More than one of each. */
	EXPECT(true, n > 2);
	EXPECT(bytes, same(b.mem, bytes, a.pages->mem, have * XNEM_PAGE_SIZE, 100));
	return 0;
}

static int describing_otherwise(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 2, false);
	struct xnem_want want, wrong;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, copying, window, n;

	CALL(make_windowed(fe, &a, R, 0, 2 * XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, 2 * XNEM_PAGE_SIZE));
	pattern_fill(p->mem, 2 * XNEM_PAGE_SIZE, 12, 0);
	req = copy_request(0, &b, 0, &a, 0, 2 * XNEM_PAGE_SIZE);
	copying = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(a.cookie.id, want.region_id);
	EXPECT(0, want.page);
	EXPECT(2, want.nr_pages);

	/* Of another want: that one stands. */
	wrong = want;
	wrong.seq++;
	id = post_describe(fe, window, &wrong, p);
	EXPECT(XNEM_ST_INVALID, wait_for(fe, id, PATIENCE_MS).status);
	/* It cannot now: it is asked again. */
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	CALL(next_want(fe, &window, &want));
	/* Not as many as were wanted. */
	wrong = want;
	wrong.nr_pages = 1;
	id = post_describe(fe, window, &wrong, p);
	EXPECT(XNEM_ST_INVALID, wait_for(fe, id, PATIENCE_MS).status);
	EXPECT(false, answered(fe, copying));
	CALL(next_want(fe, &window, &want));
	id = post_describe(fe, window, &want, p);
	CALL(serve_wants(fe, copying, &a, &a, &n));
	EXPECT(XNEM_ST_OK, wait_for(fe, copying, 0).status);
	EXPECT(2 * XNEM_PAGE_SIZE, pattern_check(b.mem, 2 * XNEM_PAGE_SIZE, 12, 0));
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	revoke_pages(fe, p);
	EXPECT(false, revoked_in_use(fe));
	return 0;
}

/* Never described: the copy ends, and what is described then is answered at once. */
static int no_window_in_time(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, window;

	CALL(make_windowed(fe, &a, R, 0, 100, p));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	req = copy_request(0, &b, 0, &a, 0, 100);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(XNEM_ST_AGAIN, wait_for(fe, id, 60000).status);
	id = post_describe(fe, window, &want, p);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	return 0;
}

const struct test order_tests[] = {
	{ "fences", fences, false },
	{ "cancel", cancel, false },
	{ "windows", windows, false },
	{ "windows described late, not and wrongly", describing_otherwise, false },
	{ "no window in time", no_window_in_time, false },
	{},
};
