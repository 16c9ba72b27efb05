// SPDX-License-Identifier: MIT
/*
 * Tests: states, negotiation and the queue (xnemif-1.h, sections 1 to 3).
 */
#include "common.h"

static int offers(struct frontend *fe)
{
	const struct offers *o = &fe->offers;

	EXPECT(true, o->version_min <= 1 && o->version_max >= 1);
	EXPECT(FROZEN_FEATURES, o->features & FROZEN_FEATURES);
	EXPECT(true, o->fabric_id != 0);
	EXPECT(true, o->queues >= 1 && o->inflight >= 1 && o->regions >= 1);
	EXPECT(true, o->sq_order <= XNEM_RING_ORDER_MAX && o->cq_order <= XNEM_RING_ORDER_MAX);
	EXPECT(true, o->contexts >= 1 && o->contexts <= XNEM_CONTEXTS_MAX);
	EXPECT(true, o->region_pages >= 1 && o->pages >= 1);
	EXPECT(true, o->windows >= 1 && o->windows <= XNEM_WINDOWS_MAX);
	EXPECT(true, o->window_pages >= 1 && o->window_pages <= XNEM_WINDOW_PAGES_MAX);
	return 0;
}

/* Both rings several times around, full batches. */
static int rings_wrap(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	uint32_t id[256], n = fe->q->sq_size, round, i;

	EXPECT(true, n <= 256 && n <= fe->q->max_inflight);
	for (round = 0; round < 3 * fe->q->cq_size / n + 1; round++) {
		for (i = 0; i < n; i++)
			id[i] = post(fe, &req);
		publish(fe);
		for (i = 0; i < n; i++)
			EXPECT(XNEM_ST_OK, wait_for(fe, id[i], PATIENCE_MS).status);
	}
	EXPECT(true, fe->q->sq_prod > 2 * fe->q->sq_size && fe->q->cq_cons > 2 * fe->q->cq_size);
	return 0;
}

static int features_not_accepted(struct frontend *fe)
{
	static const struct wish none = { .features = "0" };
	struct region a, b, c;
	struct context ctx;
	struct xnem_request req;
	uint16_t flag;

	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, &none));
	CALL(ping(fe));
	CALL(make_region(fe, &a, R, 0, 1, 5000));
	CALL(make_region(fe, &b, W, 0, 2, 5000));
	pattern_fill(a.mem, 5000, 1, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 5000).status);
	EXPECT(5000, pattern_check(b.mem, 5000, 1, 0));

	for (flag = 1; flag < XNEM_REQ_ALL; flag <<= 1) {
		note("flag %#x", flag);
		EXPECT(XNEM_ST_UNSUPPORTED, copy(fe, flag, &b, 0, &a, 0, 1).status);
	}
	note("%s", "");
	req = open_request(fe, &ctx, false, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = message_request((struct xnem_cookie){ 1, 1 }, "x", 1);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = request(XNEM_OP_CANCEL, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = request(XNEM_OP_DESCRIBE, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = register_request(R, XNEM_REGION_ONCE, 0, 1);
	req.u.reg.ref[0] = a.pages->ref[0];
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	req = register_request(R, XNEM_REGION_SEGMENTS, 1, 1);
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	req = register_request(R, XNEM_REGION_WINDOWED, 0, 1);
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	return 0;
}

static int reconnect(struct frontend *fe)
{
	uint64_t fabric_id = fe->offers.fabric_id;
	struct region a, b;

	CALL(make_region(fe, &a, RW, XNEM_REGION_ANY_TAG, 0, 100));
	EXPECT(XNEM_ST_OK, copy(fe, 0, &a, 50, &a, 0, 50).status);
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	EXPECT(fabric_id, fe->offers.fabric_id);
	/* A region of before is gone. */
	CALL(make_region(fe, &b, RW, 0, 0, 100));
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 1).status);
	EXPECT(true, b.cookie.id != a.cookie.id);
	return 0;
}

/* The backend closes, as it says; the device comes back. */
static int refused(struct frontend *fe, const struct wish *wish)
{
	EXPECT(true, disconnect_device(fe));
	EXPECT(false, connect_device(fe, wish));
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

static int wrong_version(struct frontend *fe)
{
	static const struct wish wish = { .version = "4294967295" };

	return refused(fe, &wish);
}

static int feature_not_offered(struct frontend *fe)
{
	static const struct wish wish = { .features = "8000000000000000" };

	return refused(fe, &wish);
}

static int header_not_granted(struct frontend *fe)
{
	static const struct wish wish = { .header_ref = "1000000" };

	return refused(fe, &wish);
}

const struct test connection_tests[] = {
	{ "what the backend offers", offers, false },
	{ "ping", ping, false },
	{ "rings wrap", rings_wrap, false },
	{ "features that were not accepted", features_not_accepted, false },
	{ "reconnect: regions of before are gone", reconnect, false },
	{ "a version that it does not speak is refused", wrong_version, false },
	{ "a feature that was not offered is refused", feature_not_offered, false },
	{ "a header that is not granted is refused", header_not_granted, false },
	{},
};
