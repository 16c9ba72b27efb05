// SPDX-License-Identifier: MIT
/*
 * Tests: what is refused, with which status.
 */
#include "common.h"

/* How a flag is refused that version 1 does not have. */
static bool unknown(uint16_t status)
{
	return status == XNEM_ST_INVALID || status == XNEM_ST_UNSUPPORTED;
}

static int invalid(struct frontend *fe)
{
	static const struct {
		uint16_t op;
		size_t at;
		uint8_t bytes;
	} pads[] = {
#define PAD(op, field) \
	{ op, offsetof(struct xnem_request, field), sizeof(((struct xnem_request *)0)->field) }
		PAD(XNEM_OP_PING, pad0),
		PAD(XNEM_OP_PING, u.none.pad),
		PAD(XNEM_OP_CLOSE_CONTEXT, u.none.pad),
		PAD(XNEM_OP_DEREGISTER, u.dereg.pad),
		PAD(XNEM_OP_COPY, u.copy.pad),
		PAD(XNEM_OP_COPY, u.copy.immediate),
		PAD(XNEM_OP_OPEN_CONTEXT, u.open.control_ref),
		PAD(XNEM_OP_OPEN_CONTEXT, u.open.inbox_order),
		PAD(XNEM_OP_OPEN_CONTEXT, u.open.inbox_ref),
		PAD(XNEM_OP_OPEN_CONTEXT, u.open.pad),
		PAD(XNEM_OP_MESSAGE, u.msg.pad1),
		PAD(XNEM_OP_MESSAGE, u.msg.data),
		PAD(XNEM_OP_MESSAGE, u.msg.pad2),
		PAD(XNEM_OP_CANCEL, u.cancel.pad1),
		PAD(XNEM_OP_CANCEL, u.cancel.pad),
		PAD(XNEM_OP_DESCRIBE, u.describe.ref),
#undef PAD
	};
	struct pages *p = grant_pages(fe, 2, true);
	const struct xnem_request good = {
		.op = XNEM_OP_REGISTER,
		.u.reg = { 5000, 0, R, 0, 2, { p->ref[0], p->ref[1] } },
	};
	struct xnem_request req;
	struct region r;
	unsigned int i, end;

	/* The first byte and the last of each. */
	for (i = 0; i < sizeof(pads) / sizeof(pads[0]); i++)
		for (end = 0; end < 2; end++) {
			req = request(pads[i].op, 0);
			((unsigned char *)&req)[pads[i].at + (end ? pads[i].bytes - 1 : 0)] = 1;
			note("operation %u, byte %zu", pads[i].op,
			     pads[i].at + (end ? pads[i].bytes - 1 : 0));
			EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
		}

#define REFUSED(field, value)                                       \
	do {                                                        \
		req = good;                                         \
		req.field = value;                                  \
		note("%s", #field " = " #value);                    \
		EXPECT(XNEM_ST_INVALID, register_it(fe, &r, &req)); \
	} while (0)
	/* A later backend may know these. */
	req = good;
	req.flags = XNEM_REQ_ALL + 1;
	EXPECT(true, unknown(register_it(fe, &r, &req)));
	req = good;
	req.u.reg.flags = XNEM_REGION_ALL + 1;
	EXPECT(true, unknown(register_it(fe, &r, &req)));
	req = request(XNEM_OP_OPEN_CONTEXT, 0);
	req.u.open.flags = XNEM_OPEN_INBOX << 1;
	EXPECT(true, unknown(call(fe, &req).status));

	REFUSED(flags, XNEM_REQ_BOUNDED);
	REFUSED(flags, XNEM_REQ_NOTIFY_DST);
	REFUSED(context, fe->offers.contexts);
	REFUSED(u.reg.length, 0);
	REFUSED(u.reg.length, UINT64_MAX);
	REFUSED(u.reg.offset, XNEM_PAGE_SIZE);
	REFUSED(u.reg.access, 0);
	REFUSED(u.reg.access, 4);
	REFUSED(u.reg.flags, XNEM_REGION_INDIRECT | XNEM_REGION_WINDOWED);
	REFUSED(u.reg.flags, XNEM_REGION_WINDOWED);
	REFUSED(u.reg.flags, XNEM_REGION_SEGMENTS);
	REFUSED(u.reg.nr_pages, 1);
	REFUSED(u.reg.nr_pages, 3);
	REFUSED(u.reg.ref[2], p->ref[0]);
#undef REFUSED
	note("%s", "");
	req = good;
	EXPECT(XNEM_ST_OK, register_it(fe, &r, &req));

	req = request(XNEM_OP_DEREGISTER, XNEM_REQ_FENCE);
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	req = message_request((struct xnem_cookie){ 1, 1 }, "", 0);
	req.u.msg.length = XNEM_MESSAGE_MAX + 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	req = request(XNEM_OP_OPEN_CONTEXT, 0);
	req.u.open.flags = XNEM_OPEN_INBOX;
	req.u.open.inbox_order = XNEM_INBOX_ORDER_MAX + 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	/* A window that nobody has asked for, and one that there is not. */
	req = request(XNEM_OP_DESCRIBE, 0);
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	req.u.describe.window = XNEM_WINDOWS_MAX;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	return 0;
}

static int unsupported(struct frontend *fe)
{
	static const uint16_t ops[] = { 6, 15, 19, 31, 100, 0x7fff, 0xffff };
	struct xnem_request req;
	unsigned int i;

	/* Reserved; whatever they come to mean, their features are not accepted here. */
	for (i = XNEM_OP_TEAM_JOIN; i <= XNEM_OP_COMPARE_SWAP; i++) {
		req = request(i, 0);
		note("operation %u", i);
		EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	}
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		req = request(ops[i], 0);
		note("operation %u", ops[i]);
		EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	}
	return 0;
}

static int limits(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	uint32_t i, n, made = 0, id[64];
	struct xnem_request req;
	struct region r;

	if (fe->offers.region_pages <= XNEM_REGION_PAGES_MAX) {
		req = register_request(R, XNEM_REGION_INDIRECT, 0,
				       (fe->offers.region_pages + 1ull) * XNEM_PAGE_SIZE);
		EXPECT(XNEM_ST_LIMIT, register_it(fe, &r, &req));
	}
	req = register_request(R, XNEM_REGION_WINDOWED, 0, 1ull << 52);
	req.u.reg.nr_pages = XNEM_WINDOWED_PAGES_MAX + 1;
	req.u.reg.length = (XNEM_WINDOWED_PAGES_MAX + 1ull) * XNEM_PAGE_SIZE;
	EXPECT(XNEM_ST_LIMIT, register_it(fe, &r, &req));

	/* As many as there may be, and one. */
	req = register_request(R, 0, 0, 1);
	req.u.reg.ref[0] = p->ref[0];
	while (made < fe->offers.regions) {
		n = fe->offers.regions - made < 64 ? fe->offers.regions - made : 64;
		for (i = 0; i < n; i++)
			id[i] = post(fe, &req);
		publish(fe);
		note("region %u", made);
		for (i = 0; i < n; i++)
			EXPECT(XNEM_ST_OK, wait_for(fe, id[i], PATIENCE_MS).status);
		made += n;
	}
	EXPECT(XNEM_ST_LIMIT, register_it(fe, &r, &req));
	EXPECT(XNEM_ST_OK, close_context(fe).status);
	EXPECT(XNEM_ST_OK, register_it(fe, &r, &req));
	return 0;
}

const struct test refusal_tests[] = {
	{ "padding and values that are not allowed", invalid, false },
	{ "operations that are reserved or unknown", unsupported, false },
	{ "limits", limits, false },
	{},
};
