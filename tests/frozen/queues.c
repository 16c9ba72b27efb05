// SPDX-License-Identifier: MIT
/*
 * Tests: a device of two queues (sections 2, 4 and 7). The backend has to have two
 * workers or more; else it offers one queue.
 */
#include <string.h>

#include "common.h"

/** A context of queue 1; CTX is of queue 0. */
#define CTX1 1

static int connect_two(struct frontend *fe)
{
	static const struct wish two = { .queues = 2 };

	EXPECT(true, fe->offers.queues >= 2);
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, &two));
	return 0;
}

static struct xnem_completion call_on(struct frontend *fe, uint32_t queue, uint32_t context,
				      struct xnem_request req)
{
	struct xnem_completion c;

	fe->q = &fe->queues[queue];
	req.context = context;
	c = call(fe, &req);
	fe->q = fe->queues;
	return c;
}

/* In context CTX1, by queue 1. */
static int make_region1(struct frontend *fe, struct region *r, uint32_t access, uint64_t length)
{
	int failed;

	fe->q = &fe->queues[1];
	failed = make_region_in(fe, CTX1, r, access, 0, 0, length);
	fe->q = fe->queues;
	return failed;
}

static int context_of_another_queue(struct frontend *fe)
{
	struct xnem_request req, copying, fill = register_request(RW, 0, 0, 100);
	struct context ctx, none;
	struct region a, b;

	CALL(connect_two(fe));
	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &a, RW, 0, 0, 5000));
	pattern_fill(a.mem, 5000, 3, 0);
	CALL(make_region1(fe, &b, RW, 5000));
	copying = copy_request(0, &b, 0, &a, 0, 5000);
	give_refs(fe, &fill, a.pages);

	/* Whatever it is: the other queue's context does not do it. */
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, request(XNEM_OP_PING, 0)).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 0, CTX1, request(XNEM_OP_PING, 0)).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, copying).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, fill).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, message_request(ctx.address, "x", 1)).status);
	req = open_request(fe, &none, false, 0);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, req).status);
	req = request(XNEM_OP_DEREGISTER, 0);
	req.u.dereg.region_id = a.cookie.id;
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, req).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, request(XNEM_OP_CANCEL, 0)).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 1, CTX, request(XNEM_OP_CLOSE_CONTEXT, 0)).status);
	EXPECT(5000, byte_check(b.mem, 5000, 0));
	EXPECT(true, inbox_empty(&ctx));
	/* None of that has touched it. */
	EXPECT(XNEM_ST_OK, call_on(fe, 0, CTX, copying).status);
	EXPECT(5000, pattern_check(b.mem, 5000, 3, 0));

	/* Ended, the number is free, for the other queue too. */
	EXPECT(XNEM_ST_OK, call_on(fe, 0, CTX, request(XNEM_OP_CLOSE_CONTEXT, 0)).status);
	EXPECT(XNEM_ST_OK, call_on(fe, 1, CTX, request(XNEM_OP_PING, 0)).status);
	EXPECT(XNEM_ST_CONTEXT, call_on(fe, 0, CTX, request(XNEM_OP_PING, 0)).status);
	return 0;
}

static int between_queues(struct frontend *fe)
{
	static const uint64_t length = 300000;
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	struct region a, b;
	uint32_t i;

	CALL(connect_two(fe));
	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &a, RW, 0, 0, length));
	CALL(make_region1(fe, &b, RW, length));
	for (i = 0; i < 20; i++) {
		note("round %u", i);
		pattern_fill(i % 2 ? b.mem : a.mem, length, i, 0);
		req = i % 2 ? copy_request(XNEM_REQ_NOTIFY_DST, &a, 0, &b, 0, length) :
			      copy_request(XNEM_REQ_NOTIFY_SRC, &b, 0, &a, 0, length);
		req.u.copy.immediate = i;
		/* Asked for by the one or the other. */
		EXPECT(XNEM_ST_OK, call_on(fe, i / 2 % 2, i / 2 % 2 ? CTX1 : CTX, req).status);
		EXPECT(length, pattern_check(i % 2 ? a.mem : b.mem, length, i, 0));
		CALL(next_slot(&ctx, &s));
		EXPECT(i, s.value);
		EXPECT(length, s.bytes);
	}
	EXPECT(XNEM_ST_OK, call_on(fe, 1, CTX1, message_request(ctx.address, "over", 4)).status);
	CALL(next_slot(&ctx, &s));
	EXPECT(0, memcmp(s.data, "over", 4));
	/* Only by its owner. */
	req = request(XNEM_OP_DEREGISTER, 0);
	req.u.dereg.region_id = a.cookie.id;
	EXPECT(XNEM_ST_COOKIE, call_on(fe, 1, CTX1, req).status);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	revoke_pages(fe, a.pages);
	EXPECT(false, revoked_in_use(fe));
	return 0;
}

/* Both are full at once, and each is answered in its own ring. */
static int both_at_once(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	uint32_t id[2][256], round, i, k, n;

	CALL(connect_two(fe));
	n = fe->q->sq_size;
	EXPECT(true, n <= 256 && n <= fe->q->max_inflight);
	for (round = 0; round < 20; round++) {
		for (k = 0; k < 2; k++) {
			fe->q = &fe->queues[k];
			req.context = k ? CTX1 : CTX;
			for (i = 0; i < n; i++)
				id[k][i] = post(fe, &req);
			publish(fe);
		}
		for (k = 0; k < 2; k++) {
			fe->q = &fe->queues[k];
			for (i = 0; i < n; i++)
				EXPECT(XNEM_ST_OK, wait_for(fe, id[k][i], PATIENCE_MS).status);
		}
		fe->q = fe->queues;
	}
	return 0;
}

/* A copy posted on queue 1; its windows are wanted and described on queue 0. */
static int windows_on_queue_0(struct frontend *fe)
{
	const uint64_t length = 2 * XNEM_PAGE_SIZE;
	struct xnem_request req;
	struct xnem_want want;
	struct region a, b;
	uint32_t id, window;
	struct pages *p;

	CALL(connect_two(fe));
	p = grant_pages(fe, 2, false);
	CALL(make_windowed(fe, &a, R, 0, length, p));
	CALL(make_region1(fe, &b, W, length));
	pattern_fill(p->mem, length, 14, 0);
	req = copy_request(0, &b, 0, &a, 0, length);
	req.context = CTX1;
	fe->q = &fe->queues[1];
	id = post(fe, &req);
	publish(fe);
	fe->q = fe->queues;
	CALL(next_want(fe, &window, &want));
	EXPECT(a.cookie.id, want.region_id);
	/* On the other queue it is no answer. */
	fe->q = &fe->queues[1];
	EXPECT(XNEM_ST_INVALID,
	       wait_for(fe, post_describe(fe, window, &want, p), PATIENCE_MS).status);
	EXPECT(false, answered(fe, id));
	fe->q = fe->queues;
	post_describe(fe, window, &want, p);
	fe->q = &fe->queues[1];
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
	fe->q = fe->queues;
	EXPECT(length, pattern_check(b.mem, length, 14, 0));
	return 0;
}

const struct test queue_tests[] = {
	{ "a context's requests go by one queue", context_of_another_queue, false },
	{ "copies, messages and notifications between queues", between_queues, false },
	{ "two full rings at once", both_at_once, false },
	{ "windows are described on queue 0", windows_on_queue_0, false },
	{},
};
