// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What a peer says, one field at a time: for each operation a request that is
 * right, and then every way in which one field of it can be wrong.
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

static const struct xnem_limits limits = {
	.queues = 4,
	.sq_order = 2,
	.cq_order = 1,
	.inflight = 128,
	.contexts = 256,
	.regions = 1024,
	.region_pages = XNEM_REGION_PAGES_MAX,
	.pages = 1 << 20,
	.windows = 4,
	.window_pages = 64,
};

#define ALL_FEATURES (~0ull)

static void expect_at(int line, const struct xnem_request *r, const struct xnem_limits *lim,
		      u64 features, enum xnem_status want)
{
	/* Its own, exactly sized memory: a read beyond it is seen. */
	struct xnem_request *copy = malloc(sizeof(*copy));
	enum xnem_status is;

	assert_non_null(copy);
	memcpy(copy, r, sizeof(*copy));
	is = xnem_check_request(copy, lim, features);
	assert_memory_equal(copy, r, sizeof(*copy));
	free(copy);
	if (is != want)
		fail_msg("line %d: op %u: status %d, want %d", line, r->op, is, want);
}
#define expect(r, features, want) expect_at(__LINE__, r, &limits, features, want)

static struct xnem_request of_op(u16 op)
{
	struct xnem_request r = {
		.id = 0xdeadbeef, .op = op, .context = 3, .user_data = ~0ull, .tag = ~0ull
	};

	switch (op) {
	case XNEM_OP_REGISTER:
		r.u.reg.length = 5000;
		r.u.reg.offset = 100;
		r.u.reg.access = XNEM_ACCESS_READ;
		r.u.reg.nr_pages = 2;
		r.u.reg.ref[0] = 8;
		r.u.reg.ref[1] = 0xffffffff;
		break;
	case XNEM_OP_DEREGISTER:
		r.u.dereg.region_id = ~0ull;
		break;
	case XNEM_OP_COPY:
		memset(&r.u.copy, 0xff,
		       offsetof(struct xnem_request, u.copy.immediate) -
			       offsetof(struct xnem_request, u.copy));
		break;
	case XNEM_OP_OPEN_CONTEXT:
		r.u.open.cpage_ref = 77;
		break;
	case XNEM_OP_MESSAGE:
		r.u.msg.to.id = ~0ull;
		r.u.msg.to.key = ~0ull;
		r.u.msg.length = 5;
		memset(r.u.msg.data, 0xff, 5);
		break;
	case XNEM_OP_CANCEL:
		r.u.cancel.id = ~0u;
		break;
	case XNEM_OP_DESCRIBE:
		r.u.describe.window = 3;
		r.u.describe.seq = ~0u;
		r.u.describe.nr_pages = 2;
		r.u.describe.ref[0] = 8;
		r.u.describe.ref[1] = ~0u;
		break;
	}
	return r;
}

/* Each operation, the features it takes, and the flags it can carry. */
static const struct {
	u16 op, flags;
	u64 needs;
} ops[] = {
	{ XNEM_OP_PING, XNEM_REQ_CPAGE | XNEM_REQ_FENCE, 0 },
	{ XNEM_OP_REGISTER, XNEM_REQ_CPAGE | XNEM_REQ_FENCE, 0 },
	{ XNEM_OP_DEREGISTER, XNEM_REQ_CPAGE, 0 },
	{ XNEM_OP_COPY, 0x1f, 0 },
	{ XNEM_OP_OPEN_CONTEXT, XNEM_REQ_CPAGE | XNEM_REQ_FENCE, XNEM_FEAT_CPAGE },
	{ XNEM_OP_CLOSE_CONTEXT, XNEM_REQ_CPAGE, 0 },
	{ XNEM_OP_MESSAGE, XNEM_REQ_CPAGE | XNEM_REQ_FENCE, XNEM_FEAT_MESSAGE },
	{ XNEM_OP_CANCEL, XNEM_REQ_CPAGE, XNEM_FEAT_CANCEL },
	{ XNEM_OP_DESCRIBE, XNEM_REQ_CPAGE, XNEM_FEAT_WINDOW },
};
#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

/* Is byte @at of the request of_op() padding, or a field that has to be 0? */
static bool is_pad(u16 op, size_t at)
{
	if (at >= offsetof(struct xnem_request, pad0) &&
	    at < offsetof(struct xnem_request, user_data))
		return true;
	if (at < offsetof(struct xnem_request, u))
		return false;
	switch (op) {
	case XNEM_OP_REGISTER: /* unused references */
		return at >= offsetof(struct xnem_request, u.reg.ref) + 2 * 4;
	case XNEM_OP_DEREGISTER:
		return at >= offsetof(struct xnem_request, u.dereg.pad);
	case XNEM_OP_COPY: /* no notification */
		return at >= offsetof(struct xnem_request, u.copy.immediate);
	case XNEM_OP_OPEN_CONTEXT: /* flags apart, and no inbox */
		return at >= offsetof(struct xnem_request, u.open.control_ref);
	case XNEM_OP_MESSAGE:
		return (at >= offsetof(struct xnem_request, u.msg.pad1) &&
			at < offsetof(struct xnem_request, u.msg.data)) ||
		       at >= offsetof(struct xnem_request, u.msg.data) + 5;
	case XNEM_OP_CANCEL:
		return at >= offsetof(struct xnem_request, u.cancel.pad1);
	case XNEM_OP_DESCRIBE:
		return at >= offsetof(struct xnem_request, u.describe.ref) + 2 * 4;
	default:
		return true;
	}
}

/* May byte @at be anything? */
static bool is_opaque(u16 op, size_t at)
{
	if (at < offsetof(struct xnem_request, u) || is_pad(op, at))
		return false;
	switch (op) {
	case XNEM_OP_REGISTER: /* has tests of its own */
		return at >= offsetof(struct xnem_request, u.reg.ref);
	case XNEM_OP_OPEN_CONTEXT:
		return at < offsetof(struct xnem_request, u.open.flags);
	case XNEM_OP_MESSAGE:
		return at < offsetof(struct xnem_request, u.msg.length) ||
		       at >= offsetof(struct xnem_request, u.msg.data);
	case XNEM_OP_DESCRIBE:
		return (at >= offsetof(struct xnem_request, u.describe.seq) &&
			at < offsetof(struct xnem_request, u.describe.nr_pages)) ||
		       at >= offsetof(struct xnem_request, u.describe.ref);
	default:
		return true;
	}
}

static void right(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NR_OPS; i++) {
		struct xnem_request r = of_op(ops[i].op);

		expect(&r, ALL_FEATURES, XNEM_ST_OK);
		/* The features it takes and no other. */
		expect(&r, ops[i].needs, XNEM_ST_OK);
		expect(&r, ~ops[i].needs, ops[i].needs ? XNEM_ST_UNSUPPORTED : XNEM_ST_OK);
		expect(&r, 0, ops[i].needs ? XNEM_ST_UNSUPPORTED : XNEM_ST_OK);
	}
}

/* Each bit of each byte of padding, alone. */
static void padding(void **state)
{
	size_t i, at;
	u32 bit;

	(void)state;
	for (i = 0; i < NR_OPS; i++) {
		struct xnem_request r = of_op(ops[i].op);
		u8 *byte = (u8 *)&r;

		for (at = 0; at < sizeof(r); at++)
			for (bit = 0; is_pad(r.op, at) && bit < 8; bit++) {
				assert_int_equal(byte[at], 0);
				byte[at] = (u8)(1 << bit);
				expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
				byte[at] = 0;
			}
	}
}

/* What the backend only gives back, or looks up later, may be anything. */
static void opaque(void **state)
{
	static const u8 values[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t i, at, v;

	(void)state;
	for (i = 0; i < NR_OPS; i++) {
		struct xnem_request r = of_op(ops[i].op);

		for (v = 0; v < sizeof(values); v++) {
			memset(&r.id, values[v], sizeof(r.id));
			memset(&r.user_data, values[v], sizeof(r.user_data));
			memset(&r.tag, values[v], sizeof(r.tag));
			expect(&r, ALL_FEATURES, XNEM_ST_OK);
		}
		for (at = 0; at < sizeof(r); at++)
			for (v = 0; is_opaque(r.op, at) && v < sizeof(values); v++) {
				((u8 *)&r)[at] = values[v];
				expect(&r, ALL_FEATURES, XNEM_ST_OK);
			}
	}
}

/* Every operation with every set of flags, with every set of the features they need. */
static void request_flags(void **state)
{
	static const struct {
		u16 flags;
		u64 needs;
	} flag[] = {
		{ XNEM_REQ_CPAGE, XNEM_FEAT_CPAGE },
		{ XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST, XNEM_FEAT_NOTIFY },
		{ XNEM_REQ_FENCE, XNEM_FEAT_FENCE },
		{ XNEM_REQ_BOUNDED, XNEM_FEAT_CANCEL },
	};
	size_t i, f;
	u32 flags, set;

	(void)state;
	for (i = 0; i < NR_OPS; i++)
		for (flags = 0; flags < 32; flags++)
			for (set = 0; set < 16; set++) {
				struct xnem_request r = of_op(ops[i].op);
				enum xnem_status want = XNEM_ST_OK;
				u64 features = ops[i].needs, needs = 0;

				r.flags = (u16)flags;
				for (f = 0; f < 4; f++) {
					if (set & (1u << f))
						features |= flag[f].needs;
					if (flags & flag[f].flags)
						needs |= flag[f].needs;
				}
				if (flags & ~(u32)ops[i].flags)
					want = XNEM_ST_INVALID;
				if (needs & ~features)
					want = XNEM_ST_UNSUPPORTED;
				expect(&r, features, want);
			}
	/* An unknown bit is invalid whatever stands beside it. */
	for (i = 0; i < NR_OPS; i++)
		for (flags = 0; flags < 32; flags++)
			for (f = 5; f < 16; f++) {
				struct xnem_request r = of_op(ops[i].op);

				r.flags = (u16)(flags | 1u << f);
				expect(&r, 0, XNEM_ST_INVALID);
				expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
			}
}

/* Immediate data goes with a notification, to either owner or to both. */
static void immediate(void **state)
{
	struct xnem_request r = of_op(XNEM_OP_COPY);
	u32 flags, bit;

	(void)state;
	for (flags = 0; flags < 32; flags++)
		for (bit = 0; bit < 64; bit++) {
			bool tells = flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST);

			r.flags = (u16)flags;
			r.u.copy.immediate = 1ull << bit;
			expect(&r, ALL_FEATURES, tells ? XNEM_ST_OK : XNEM_ST_INVALID);
		}
}

static void contexts(void **state)
{
	static const u32 nr[] = { 1, 2, 256, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t i, n;

	(void)state;
	for (i = 0; i < NR_OPS; i++)
		for (n = 0; n < sizeof(nr) / sizeof(nr[0]); n++) {
			struct xnem_request r = of_op(ops[i].op);
			struct xnem_limits lim = limits;

			lim.contexts = nr[n];
			r.context = nr[n] - 1;
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_OK);
			r.context = nr[n];
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
			r.context = 0xffffffff;
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
			r.context = 0;
			lim.contexts = 0;
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
		}
}

/* Reserved numbers are unsupported even with their feature "negotiated". */
static void unknown_ops(void **state)
{
	u32 op;
	size_t i;

	(void)state;
	for (op = 0; op <= 0xffff; op++) {
		struct xnem_request r = { .op = (u16)op };

		for (i = 0; i < NR_OPS && ops[i].op != op; i++)
			;
		if (i < NR_OPS)
			continue;
		expect(&r, ALL_FEATURES, XNEM_ST_UNSUPPORTED);
		r.pad0 = 1;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
		r.pad0 = 0;
		r.flags = XNEM_REQ_BOUNDED;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	}
}

/* ---- open ---- */

static void open_inbox(void **state)
{
	const u64 both = XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY;
	u32 order, k, bit;

	(void)state;
	for (order = 0; order <= XNEM_INBOX_ORDER_MAX; order++) {
		struct xnem_request r = of_op(XNEM_OP_OPEN_CONTEXT);

		r.u.open.flags = XNEM_OPEN_INBOX;
		r.u.open.inbox_order = order;
		/* References may be anything, 0 as well. */
		expect(&r, ALL_FEATURES, XNEM_ST_OK);
		r.u.open.control_ref = ~0u;
		for (k = 0; k < 1u << order; k++)
			r.u.open.inbox_ref[k] = ~k;
		expect(&r, ALL_FEATURES, XNEM_ST_OK);
		/* Messages, notifications or both come into it. */
		expect(&r, XNEM_FEAT_CPAGE | XNEM_FEAT_MESSAGE, XNEM_ST_OK);
		expect(&r, XNEM_FEAT_CPAGE | XNEM_FEAT_NOTIFY, XNEM_ST_OK);
		expect(&r, ~both, XNEM_ST_UNSUPPORTED);
		expect(&r, both, XNEM_ST_UNSUPPORTED);
		for (; k < 8; k++)
			for (bit = 0; bit < 32; bit++) {
				r.u.open.inbox_ref[k] = 1u << bit;
				expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
				r.u.open.inbox_ref[k] = 0;
			}
		for (k = 0; k < 6; k++) {
			r.u.open.pad[k] = 1ull << 63;
			expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
			r.u.open.pad[k] = 0;
		}
	}
}

static void open_wrong(void **state)
{
	static const u32 orders[] = { 4, 5, 8, 31, 32, 33, 64, 0x80000000, ~0u };
	struct xnem_request r;
	u32 bit;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		r = of_op(XNEM_OP_OPEN_CONTEXT);
		r.u.open.inbox_order = orders[i];
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
		r.u.open.flags = XNEM_OPEN_INBOX;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	}
	for (bit = 1; bit < 32; bit++) {
		r = of_op(XNEM_OP_OPEN_CONTEXT);
		r.u.open.flags = 1u << bit;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
		r.u.open.flags |= XNEM_OPEN_INBOX;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	}
	/* What belongs to an inbox, without one: padding() has each bit of it. */
}

/* ---- message ---- */

static void message(void **state)
{
	static const u32 lengths[] = { 65, 66, 128, 255, 256, 0x10000, 0x80000000, ~0u };
	struct xnem_request r;
	u32 n, k;
	size_t i;

	(void)state;
	for (n = 0; n <= 64; n++) {
		r = of_op(XNEM_OP_MESSAGE);
		r.u.msg.length = n;
		memset(r.u.msg.data, 0, sizeof(r.u.msg.data));
		expect(&r, ALL_FEATURES, XNEM_ST_OK);
		for (k = 0; k < 64; k++) {
			r.u.msg.data[k] = 0x80;
			expect(&r, ALL_FEATURES, k < n ? XNEM_ST_OK : XNEM_ST_INVALID);
			r.u.msg.data[k] = 0;
		}
	}
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		r = of_op(XNEM_OP_MESSAGE);
		r.u.msg.length = lengths[i];
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	}
}

/* ---- describe ---- */

static void describe(void **state)
{
	static const u32 windows[] = { 0, 1, 3, 16, 0xffff };
	struct xnem_limits lim = limits;
	struct xnem_request r;
	size_t i;
	u32 n, k;

	(void)state;
	/* Windows: those that were negotiated. */
	for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		lim.windows = windows[i];
		r = of_op(XNEM_OP_DESCRIBE);
		r.u.describe.window = windows[i];
		expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
		r.u.describe.window = ~0u;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
		r.u.describe.window = windows[i] - 1;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES,
			  windows[i] ? XNEM_ST_OK : XNEM_ST_INVALID);
	}
	/* Pages: as many as fit, and no more than a window has. */
	for (lim = limits, n = 0; n <= 25; n++) {
		u32 used = n < 20 ? n : 20;

		r = of_op(XNEM_OP_DESCRIBE);
		r.u.describe.nr_pages = n;
		memset(r.u.describe.ref, 0, sizeof(r.u.describe.ref));
		for (k = 0; k < used; k++)
			r.u.describe.ref[k] = ~k;
		lim.window_pages = 64;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES, n <= 20 ? XNEM_ST_OK : XNEM_ST_INVALID);
		lim.window_pages = n;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES, n <= 20 ? XNEM_ST_OK : XNEM_ST_INVALID);
		if (n) {
			lim.window_pages = n - 1;
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
		}
		lim.window_pages = 64;
		for (k = used; k < 20; k++) {
			r.u.describe.ref[k] = 1u << (k + 5);
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
			r.u.describe.ref[k] = 0;
		}
	}
	/* In one descriptor page. */
	for (n = 0; n <= 1025; n++) {
		lim.window_pages = 1024;
		r = of_op(XNEM_OP_DESCRIBE);
		r.u.describe.indirect = 1;
		r.u.describe.nr_pages = n;
		r.u.describe.ref[1] = 0;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES,
			  n && n <= 1024 ? XNEM_ST_OK : XNEM_ST_INVALID);
		lim.window_pages = n - 1;
		expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
		lim.window_pages = 1024;
		for (k = 1; n && k < 20; k++) {
			r.u.describe.ref[k] = 1;
			expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
			r.u.describe.ref[k] = 0;
		}
	}
	r = of_op(XNEM_OP_DESCRIBE);
	r.u.describe.nr_pages = ~0u;
	expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	for (k = 1; k < 32; k++) {
		r = of_op(XNEM_OP_DESCRIBE);
		r.u.describe.nr_pages = 1;
		r.u.describe.ref[1] = 0;
		r.u.describe.indirect = 1u << k;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
		r.u.describe.indirect |= 1;
		expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
	}
}

/* ---- register ---- */

struct reg_row {
	u64 length;
	u32 offset, access, flags, nr_pages;
	enum xnem_status want;
};

#define R XNEM_ACCESS_READ
#define W XNEM_ACCESS_WRITE
#define IND XNEM_REGION_INDIRECT
#define ANY XNEM_REGION_ANY_TAG
#define SEG XNEM_REGION_SEGMENTS
#define WIN XNEM_REGION_WINDOWED
#define INLINE_MAX (18 * 4096ull)
#define DESC_MAX (18 * 1024ull)

static const struct reg_row reg_rows[] = {
	/* length and offset */
	{ 0, 0, R, 0, 0, XNEM_ST_INVALID },
	{ 0, 0, R, 0, 1, XNEM_ST_INVALID },
	{ 0, 4095, R, 0, 1, XNEM_ST_INVALID },
	{ 1, 0, R, 0, 1, XNEM_ST_OK },
	{ 1, 4095, R, 0, 1, XNEM_ST_OK },
	{ 1, 4096, R, 0, 1, XNEM_ST_INVALID },
	{ 1, 4096, R, 0, 2, XNEM_ST_INVALID },
	{ 1, 0x80000000, R, 0, 1, XNEM_ST_INVALID },
	{ 1, 0xffffffff, R, 0, 1, XNEM_ST_INVALID },
	{ 2, 4095, R, 0, 2, XNEM_ST_OK },
	{ 4096, 0, R, 0, 1, XNEM_ST_OK },
	{ 4096, 1, R, 0, 2, XNEM_ST_OK },
	{ 4097, 0, R, 0, 2, XNEM_ST_OK },
	{ 4097, 4095, R, 0, 2, XNEM_ST_OK },
	{ 4098, 4095, R, 0, 3, XNEM_ST_OK },
	/* pages, one off */
	{ 1, 0, R, 0, 0, XNEM_ST_INVALID },
	{ 1, 0, R, 0, 2, XNEM_ST_INVALID },
	{ 4096, 0, R, 0, 0, XNEM_ST_INVALID },
	{ 4096, 0, R, 0, 2, XNEM_ST_INVALID },
	{ 4096, 1, R, 0, 1, XNEM_ST_INVALID },
	{ 4096, 1, R, 0, 3, XNEM_ST_INVALID },
	{ 8192, 4095, R, 0, 2, XNEM_ST_INVALID },
	{ 1, 0, R, 0, 0xffffffff, XNEM_ST_INVALID },
	/* lengths whose page count does not fit into 32 bits, or wraps 64 */
	{ ~0ull, 0, R, 0, 0, XNEM_ST_INVALID },
	{ ~0ull, 1, R, 0, 0, XNEM_ST_INVALID },
	{ ~0ull, 4095, R, 0, 1, XNEM_ST_INVALID },
	{ ~0ull, 4095, R, IND, 0, XNEM_ST_INVALID },
	{ (1ull << 44) + 4096, 0, R, IND, 1, XNEM_ST_INVALID },
	{ 1ull << 44, 0, R, IND, 0, XNEM_ST_INVALID },
	{ (1ull << 63) + 4096, 0, R, 0, 1, XNEM_ST_INVALID },
	{ (1ull << 32) + 1, 0, R, 0, 1, XNEM_ST_INVALID },
	{ (1ull << 44) - 4096, 0, R, IND, 0xffffffff, XNEM_ST_LIMIT },
	/* access */
	{ 1, 0, W, 0, 1, XNEM_ST_OK },
	{ 1, 0, R | W, 0, 1, XNEM_ST_OK },
	{ 1, 0, 0, 0, 1, XNEM_ST_INVALID },
	{ 1, 0, 4, 0, 1, XNEM_ST_INVALID },
	{ 1, 0, R | 4, 0, 1, XNEM_ST_INVALID },
	{ 1, 0, R | 0x80000000, 0, 1, XNEM_ST_INVALID },
	/* flags */
	{ 1, 0, R, ANY, 1, XNEM_ST_OK },
	{ 1, 0, R, IND, 1, XNEM_ST_OK },
	{ 1, 0, R, ANY | IND, 1, XNEM_ST_OK },
	{ 1, 0, R, 0x20, 1, XNEM_ST_INVALID },
	{ 1, 0, R, ANY | 0x40, 1, XNEM_ST_INVALID },
	{ 1, 0, R, 0x80000000, 1, XNEM_ST_INVALID },
	/* inline references: at most 18 */
	{ INLINE_MAX, 0, R, 0, 18, XNEM_ST_OK },
	{ INLINE_MAX - 1, 1, R, 0, 18, XNEM_ST_OK },
	{ INLINE_MAX, 1, R, 0, 19, XNEM_ST_INVALID },
	{ INLINE_MAX + 1, 0, R, 0, 19, XNEM_ST_INVALID },
	{ INLINE_MAX + 1, 0, R, 0, 18, XNEM_ST_INVALID },
	{ INLINE_MAX + 1, 0, R, IND, 19, XNEM_ST_OK },
	/* descriptor pages: at most 18 of 1024 */
	{ 1024 * 4096ull, 0, R, IND, 1024, XNEM_ST_OK },
	{ 1024 * 4096ull + 1, 0, R, IND, 1025, XNEM_ST_OK },
	{ DESC_MAX * 4096, 0, R, IND, DESC_MAX, XNEM_ST_OK },
	{ DESC_MAX * 4096, 0, R, 0, DESC_MAX, XNEM_ST_INVALID },
};

static u32 refs_of(const struct reg_row *row)
{
	return row->flags & IND ? (row->nr_pages + 1023ull) / 1024 : row->nr_pages;
}

static void reg(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(reg_rows) / sizeof(reg_rows[0]); i++) {
		const struct reg_row *row = &reg_rows[i];
		struct xnem_request r = { .op = XNEM_OP_REGISTER };
		u32 n, k;
		enum xnem_status is;

		r.u.reg.length = row->length;
		r.u.reg.offset = row->offset;
		r.u.reg.access = row->access;
		r.u.reg.flags = row->flags;
		r.u.reg.nr_pages = row->nr_pages;
		n = refs_of(row) < XNEM_INLINE_REFS ? refs_of(row) : XNEM_INLINE_REFS;
		for (k = 0; k < n; k++)
			r.u.reg.ref[k] = ~k;
		is = xnem_check_request(&r, &limits, 0);
		if (is != row->want)
			fail_msg("row %zu: status %d, want %d", i, is, row->want);
		if (is != XNEM_ST_OK)
			continue;
		/* A used reference may be 0; each unused one must be. */
		r.u.reg.ref[0] = 0;
		expect(&r, 0, XNEM_ST_OK);
		for (k = n; k < XNEM_INLINE_REFS; k++) {
			r.u.reg.ref[k] = 0x100 << (k % 24);
			expect(&r, 0, XNEM_ST_INVALID);
			r.u.reg.ref[k] = 0;
		}
	}
}

/* Beyond 18 descriptor pages even without a limit of the device. */
static void reg_descriptors(void **state)
{
	struct xnem_limits lim = limits;
	struct xnem_request r = of_op(XNEM_OP_REGISTER);

	(void)state;
	lim.region_pages = 0xffffffff;
	r.u.reg.offset = 0;
	r.u.reg.flags = IND;
	r.u.reg.nr_pages = DESC_MAX + 1;
	r.u.reg.length = (DESC_MAX + 1) * 4096;
	expect_at(__LINE__, &r, &lim, 0, XNEM_ST_INVALID);
	/* (nr_pages + 1023) / 1024 would wrap to 0, and all references are. */
	memset(r.u.reg.ref, 0, sizeof(r.u.reg.ref));
	r.u.reg.nr_pages = 0xffffffff;
	r.u.reg.length = 0xffffffffull * 4096;
	expect_at(__LINE__, &r, &lim, 0, XNEM_ST_INVALID);
	r.u.reg.flags = 0;
	expect_at(__LINE__, &r, &lim, 0, XNEM_ST_INVALID);
	/* With a table behind them the count of references itself would wrap. */
	r.u.reg.flags = SEG;
	r.u.reg.offset = 1;
	expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
	r.u.reg.flags = SEG | IND;
	expect_at(__LINE__, &r, &lim, ALL_FEATURES, XNEM_ST_INVALID);
}

static void reg_limit(void **state)
{
	static const u32 pages[] = { 1, 2, 17, 18 };
	struct xnem_limits lim = limits;
	struct xnem_request r = of_op(XNEM_OP_REGISTER);
	size_t i;

	(void)state;
	r.u.reg.offset = 0;
	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		r.u.reg.nr_pages = pages[i];
		r.u.reg.length = pages[i] * 4096ull;
		memset(r.u.reg.ref, 0, sizeof(r.u.reg.ref));
		lim.region_pages = pages[i];
		expect_at(__LINE__, &r, &lim, 0, XNEM_ST_OK);
		lim.region_pages = pages[i] - 1;
		expect_at(__LINE__, &r, &lim, 0, XNEM_ST_LIMIT);
	}
}

/* Flags of a region, all sets of them with all sets of the features. */
static void reg_flags(void **state)
{
	u32 flags, set, bit;

	(void)state;
	for (flags = 0; flags < 32; flags++)
		for (set = 0; set < 4; set++) {
			struct xnem_request r = { .op = XNEM_OP_REGISTER };
			enum xnem_status want = XNEM_ST_OK;
			u64 features = (set & 1 ? XNEM_FEAT_SEGMENTS : 0) |
				       (set & 2 ? XNEM_FEAT_WINDOW : 0);

			r.u.reg.length = 100;
			r.u.reg.offset = 1; /* the first byte, or one segment */
			r.u.reg.access = R;
			r.u.reg.flags = flags;
			r.u.reg.nr_pages = 1;
			if ((flags & WIN) && (flags & IND))
				want = XNEM_ST_INVALID;
			if ((flags & (SEG | XNEM_REGION_ONCE)) && !(set & 1))
				want = XNEM_ST_UNSUPPORTED;
			if ((flags & WIN) && !(set & 2))
				want = XNEM_ST_UNSUPPORTED;
			expect(&r, features, want);
			/* Other features make no difference. */
			expect(&r, features | ~(XNEM_FEAT_SEGMENTS | XNEM_FEAT_WINDOW), want);
			/* An unknown flag is invalid whatever stands beside it. */
			for (bit = 5; bit < 32; bit++) {
				r.u.reg.flags = flags | 1u << bit;
				expect(&r, 0, XNEM_ST_INVALID);
				expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
			}
		}
}

/* No references, and as many pages as it likes. */
static void reg_windowed(void **state)
{
	static const struct reg_row rows[] = {
		{ 1, 0, R, WIN, 1, XNEM_ST_OK },
		{ 1, 4095, W, WIN | ANY, 1, XNEM_ST_OK },
		{ 2, 4095, R, WIN, 2, XNEM_ST_OK },
		{ 1, 0, R, WIN, 0, XNEM_ST_INVALID },
		{ 1, 0, R, WIN, 2, XNEM_ST_INVALID },
		{ 1, 4096, R, WIN, 2, XNEM_ST_INVALID },
		{ 0, 0, R, WIN, 0, XNEM_ST_INVALID },
		{ 0, 0, R, WIN, 1, XNEM_ST_INVALID },
		/* more than 18 references, more than the limit "region-pages" */
		{ INLINE_MAX + 1, 0, R, WIN, 19, XNEM_ST_OK },
		{ 1ull << 30, 0, R, WIN, 1 << 18, XNEM_ST_OK },
		/* 8 TiB, a byte more, and page counts that do not fit */
		{ 1ull << 43, 0, R, WIN, 1u << 31, XNEM_ST_OK },
		{ (1ull << 43) + 1, 0, R, WIN, (1u << 31) + 1, XNEM_ST_LIMIT },
		{ (1ull << 43) + 1, 0, R, WIN, 1u << 31, XNEM_ST_INVALID },
		{ 1ull << 43, 1, R, WIN, (1u << 31) + 1, XNEM_ST_LIMIT },
		{ (1ull << 44) - 4096, 0, R, WIN, ~0u, XNEM_ST_LIMIT },
		{ 1ull << 44, 0, R, WIN, 0, XNEM_ST_INVALID },
		{ (1ull << 44) + 1, 0, R, WIN, 1, XNEM_ST_INVALID },
		{ ~0ull, 4095, R, WIN, 1, XNEM_ST_INVALID },
		{ ~0ull, 0, R, WIN, 0, XNEM_ST_INVALID },
	};
	size_t i;
	u32 k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xnem_request r = { .op = XNEM_OP_REGISTER };
		enum xnem_status is;

		r.u.reg.length = rows[i].length;
		r.u.reg.offset = rows[i].offset;
		r.u.reg.access = rows[i].access;
		r.u.reg.flags = rows[i].flags;
		r.u.reg.nr_pages = rows[i].nr_pages;
		is = xnem_check_request(&r, &limits, XNEM_FEAT_WINDOW);
		if (is != rows[i].want)
			fail_msg("row %zu: status %d, want %d", i, is, rows[i].want);
		for (k = 0; is == XNEM_ST_OK && k < XNEM_INLINE_REFS; k++) {
			r.u.reg.ref[k] = 1u << (k + 7);
			expect(&r, XNEM_FEAT_WINDOW, XNEM_ST_INVALID);
			r.u.reg.ref[k] = 0;
		}
	}
}

/* With segments offset is their number: at most 1024, and a page each. */
static void reg_segments(void **state)
{
	static const struct {
		u32 nr, pages, flags, refs;
		enum xnem_status want;
	} rows[] = {
		{ 1, 1, 0, 2, XNEM_ST_OK },
		{ 0, 1, 0, 1, XNEM_ST_INVALID },
		{ 2, 1, 0, 2, XNEM_ST_INVALID }, /* more segments than pages */
		{ 2, 2, 0, 3, XNEM_ST_OK },
		{ 17, 17, 0, 18, XNEM_ST_OK },
		{ 1, 17, 0, 18, XNEM_ST_OK },
		/* no place for the table behind 18 pages */
		{ 1, 18, 0, 18, XNEM_ST_INVALID },
		{ 18, 18, 0, 18, XNEM_ST_INVALID },
		{ 1, 19, 0, 18, XNEM_ST_INVALID },
		/* 256 segments a page of the table */
		{ 1, 1024, IND, 2, XNEM_ST_OK },
		{ 256, 1024, IND, 2, XNEM_ST_OK },
		{ 257, 1024, IND, 3, XNEM_ST_OK },
		{ 512, 1024, IND, 3, XNEM_ST_OK },
		{ 513, 1025, IND, 5, XNEM_ST_OK },
		{ 1024, 1024, IND, 5, XNEM_ST_OK },
		{ 1025, 1025, IND, 5, XNEM_ST_INVALID },
		{ 1025, 4096, IND, 9, XNEM_ST_INVALID },
		{ 4096, 4096, IND, 18, XNEM_ST_INVALID },
		{ 1u << 31, 1024, IND, 18, XNEM_ST_INVALID },
		{ ~0u, 1024, IND, 18, XNEM_ST_INVALID },
		/* 14 + 4 references are 18, 15 + 4 too many */
		{ 1024, 14 * 1024, IND, 18, XNEM_ST_OK },
		{ 1024, 14 * 1024 + 1, IND, 18, XNEM_ST_INVALID },
		{ 768, 15 * 1024, IND, 18, XNEM_ST_OK },
		{ 769, 15 * 1024, IND, 18, XNEM_ST_INVALID },
		{ 1, 18 * 1024, IND, 18, XNEM_ST_INVALID },
		{ 1, 18 * 1024 + 1, IND, 18, XNEM_ST_LIMIT },
		/* windowed: the table alone */
		{ 1, 1, WIN, 1, XNEM_ST_OK },
		{ 256, 1u << 31, WIN, 1, XNEM_ST_OK },
		{ 1024, 1024, WIN, 4, XNEM_ST_OK },
		{ 1024, 1023, WIN, 4, XNEM_ST_INVALID },
		{ 1025, 1025, WIN, 5, XNEM_ST_INVALID },
		{ 1, (1u << 31) + 1, WIN, 1, XNEM_ST_LIMIT },
		{ 0, 1, WIN, 0, XNEM_ST_INVALID },
	};
	size_t i;
	u32 k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* What their lengths come to is for the table. */
		static const u64 lengths[] = { 1, 5000, 1ull << 44, ~0ull };
		struct xnem_request r = { .op = XNEM_OP_REGISTER };
		u32 flags = SEG | rows[i].flags;
		size_t l;

		r.u.reg.offset = rows[i].nr;
		r.u.reg.access = R;
		r.u.reg.flags = flags;
		r.u.reg.nr_pages = rows[i].pages;
		for (k = 0; k < rows[i].refs; k++)
			r.u.reg.ref[k] = ~k;
		for (l = 0; l < 4; l++) {
			enum xnem_status is;

			r.u.reg.length = lengths[l];
			is = xnem_check_request(&r, &limits, ALL_FEATURES);
			if (is != rows[i].want)
				fail_msg("row %zu: status %d, want %d", i, is, rows[i].want);
		}
		r.u.reg.length = 0;
		expect(&r, ALL_FEATURES,
		       rows[i].want == XNEM_ST_UNSUPPORTED ? XNEM_ST_UNSUPPORTED : XNEM_ST_INVALID);
		if (rows[i].want != XNEM_ST_OK)
			continue;
		assert_int_equal(xnem_register_refs(flags, rows[i].pages, rows[i].nr),
				 rows[i].refs);
		r.u.reg.length = 1;
		for (k = rows[i].refs; k < XNEM_INLINE_REFS; k++) {
			r.u.reg.ref[k] = 1u << k;
			expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
			r.u.reg.ref[k] = 0;
		}
	}
}

/* Page counts at which (n + 1023) / 1024 in 32 bits would wrap. */
static void register_refs(void **state)
{
	(void)state;
	assert_int_equal(xnem_register_refs(0, 17, 99), 17);
	assert_int_equal(xnem_register_refs(0, ~0u, 0), ~0u);
	assert_int_equal(xnem_register_refs(IND, 1, 99), 1);
	assert_int_equal(xnem_register_refs(IND, 1024, 0), 1);
	assert_int_equal(xnem_register_refs(IND, 1025, 0), 2);
	assert_int_equal(xnem_register_refs(IND, ~0u, 0), 1u << 22);
	assert_int_equal(xnem_register_refs(WIN, ~0u, 99), 0);
	assert_int_equal(xnem_register_refs(WIN | SEG, ~0u, 256), 1);
	assert_int_equal(xnem_register_refs(WIN | SEG, 1, 257), 2);
	assert_int_equal(xnem_register_refs(SEG, 5, 1), 6);
	assert_int_equal(xnem_register_refs(SEG | IND, 1025, 1024), 6);
	assert_int_equal(xnem_register_refs(SEG | WIN, 1, ~0u), 1u << 24);
}

/* ---- the table of segments ---- */

#define P4 4096ull
#define END             \
	{               \
		0, 0, 0 \
	}

static void segments(void **state)
{
	static const struct {
		const char *what;
		u64 length;
		u32 pages;
		struct xnem_segment seg[6]; /* up to one of length 0 and offset 0 and pad 0 */
		enum xnem_status want;
	} rows[] = {
		{ "one byte", 1, 1, { { 1, 0, 0 }, END }, XNEM_ST_OK },
		{ "the last byte", 1, 1, { { 1, 4095, 0 }, END }, XNEM_ST_OK },
		{ "offset 4096", 1, 1, { { 1, 4096, 0 }, END }, XNEM_ST_INVALID },
		{ "offset 4096, two pages", 1, 2, { { 1, 4096, 0 }, END }, XNEM_ST_INVALID },
		{ "offset 2^32 - 1", 1, 1, { { 1, ~0u, 0 }, END }, XNEM_ST_INVALID },
		{ "padding", 1, 1, { { 1, 0, 1 }, END }, XNEM_ST_INVALID },
		{ "padding, its top bit", 1, 1, { { 1, 0, 1u << 31 }, END }, XNEM_ST_INVALID },
		{ "over a page", 2, 2, { { 2, 4095, 0 }, END }, XNEM_ST_OK },
		{ "pages, one less", 2, 1, { { 2, 4095, 0 }, END }, XNEM_ST_INVALID },
		{ "pages, one more", 2, 3, { { 2, 4095, 0 }, END }, XNEM_ST_INVALID },
		{ "two in one page name it twice",
		  2,
		  2,
		  { { 1, 0, 0 }, { 1, 1, 0 }, END },
		  XNEM_ST_OK },
		{ "... and not once", 2, 1, { { 1, 0, 0 }, { 1, 1, 0 }, END }, XNEM_ST_INVALID },
		{ "three of all kinds",
		  4096 + 2 + 1,
		  4,
		  { { 4096, 0, 0 }, { 2, 4095, 0 }, { 1, 7, 0 }, END },
		  XNEM_ST_OK },
		{ "padding of the last",
		  3,
		  3,
		  { { 1, 0, 0 }, { 1, 0, 0 }, { 1, 0, 9 }, END },
		  XNEM_ST_INVALID },
		{ "offset of the last",
		  3,
		  3,
		  { { 1, 0, 0 }, { 1, 0, 0 }, { 1, 4096, 0 }, END },
		  XNEM_ST_INVALID },
		{ "length, one less", 9, 1, { { 10, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "length, one more", 11, 1, { { 10, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "an empty one first", 1, 2, { { 0, 1, 0 }, { 1, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "an empty one last", 1, 2, { { 1, 0, 0 }, { 0, 1, 0 }, END }, XNEM_ST_INVALID },
		/* sums that come to the right number modulo 2^64 */
		{ "wrap of two", 1, 1, { { 2, 0, 0 }, { ~0ull, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "wrap of two halves",
		  4096,
		  2,
		  { { 1ull << 63, 0, 0 }, { (1ull << 63) + 4096, 0, 0 }, END },
		  XNEM_ST_INVALID },
		{ "wrap of three",
		  12,
		  3,
		  { { 4, 0, 0 }, { 0ull - 8, 0, 0 }, { 16, 0, 0 }, END },
		  XNEM_ST_INVALID },
		{ "wrap, back to the middle",
		  2,
		  2,
		  { { 1, 0, 0 }, { ~0ull, 0, 0 }, { 2, 0, 0 }, END },
		  XNEM_ST_INVALID },
		/* pages that come to the right number modulo 2^32 */
		{ "2^32 pages", P4 << 32, 0, { { P4 << 32, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "2^32 + 1 pages",
		  (P4 << 32) + 1,
		  1,
		  { { (P4 << 32) + 1, 0, 0 }, END },
		  XNEM_ST_INVALID },
		{ "2^31 pages, twice",
		  P4 << 32,
		  0,
		  { { P4 << 31, 0, 0 }, { P4 << 31, 0, 0 }, END },
		  XNEM_ST_INVALID },
		{ "2^31 pages, once", P4 << 31, 1u << 31, { { P4 << 31, 0, 0 }, END }, XNEM_ST_OK },
		{ "everything", ~0ull, 0, { { ~0ull, 0, 0 }, END }, XNEM_ST_INVALID },
		{ "everything, at the end",
		  ~0ull,
		  1,
		  { { ~0ull, 4095, 0 }, END },
		  XNEM_ST_INVALID },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xnem_segment *seg;
		enum xnem_status is;
		u32 nr = 0;

		while (rows[i].seg[nr].length || rows[i].seg[nr].offset || rows[i].seg[nr].pad)
			nr++;
		/* Exactly sized: a read beyond it is seen. */
		seg = malloc(nr * sizeof(*seg));
		memcpy(seg, rows[i].seg, nr * sizeof(*seg));
		is = xnem_check_segments(seg, nr, rows[i].length, rows[i].pages);
		assert_memory_equal(seg, rows[i].seg, nr * sizeof(*seg));
		free(seg);
		if (is != rows[i].want)
			fail_msg("%s: status %d, want %d", rows[i].what, is, rows[i].want);
	}
}

/* As many as there can be; then each of them wrong, in each field. */
static void segments_most(void **state)
{
	struct xnem_segment *seg = calloc(XNEM_SEGMENTS_MAX, sizeof(*seg));
	u64 length = 0;
	u32 pages = 0, i;

	(void)state;
	assert_non_null(seg);
	for (i = 0; i < XNEM_SEGMENTS_MAX; i++) {
		seg[i].offset = i * 37 % 4096;
		seg[i].length = 1 + i * 5003 % 20000;
		length += seg[i].length;
		pages += (u32)((seg[i].offset + seg[i].length + 4095) / 4096);
	}
#define MOST() xnem_check_segments(seg, XNEM_SEGMENTS_MAX, length, pages)
	assert_int_equal(MOST(), XNEM_ST_OK);
	assert_int_equal(xnem_check_segments(seg, XNEM_SEGMENTS_MAX - 1, length, pages),
			 XNEM_ST_INVALID);
	for (i = 0; i < XNEM_SEGMENTS_MAX; i++) {
		struct xnem_segment was = seg[i];

		seg[i].pad = 1u << (i % 32);
		assert_int_equal(MOST(), XNEM_ST_INVALID);
		seg[i] = was;
		seg[i].offset += 4096;
		assert_int_equal(MOST(), XNEM_ST_INVALID);
		seg[i] = was;
		seg[i].length--;
		assert_int_equal(MOST(), XNEM_ST_INVALID);
		seg[i].length += 2;
		assert_int_equal(MOST(), XNEM_ST_INVALID);
		seg[i].length = was.length | 1ull << 63;
		assert_int_equal(MOST(), XNEM_ST_INVALID);
		seg[i] = was;
	}
	assert_int_equal(MOST(), XNEM_ST_OK);
	free(seg);
}

/* Every offset with every page count around it, inline. */
static void reg_every_offset(void **state)
{
	u32 off, n;

	(void)state;
	for (off = 0; off < 4096; off++) {
		struct xnem_request r = { .op = XNEM_OP_REGISTER };

		r.u.reg.access = R;
		r.u.reg.offset = off;
		for (n = 1; n <= 3; n++) {
			r.u.reg.nr_pages = n;
			r.u.reg.length = n * 4096 - off; /* ends with its page */
			expect(&r, 0, XNEM_ST_OK);
			r.u.reg.length++;
			expect(&r, 0, XNEM_ST_INVALID);
			if (n == 1)
				continue;
			r.u.reg.length = (n - 1) * 4096 - off + 1; /* one byte of it */
			expect(&r, 0, XNEM_ST_OK);
			r.u.reg.length--;
			expect(&r, 0, XNEM_ST_INVALID);
		}
	}
}

/* ---- arithmetic, against 128 bits ---- */

static const u64 edge[] = {
	0,
	1,
	2,
	4094,
	4095,
	4096,
	4097,
	8191,
	8192,
	65535,
	0x7fffffff,
	0x80000000,
	0xfffff000,
	0xffffffff,
	1ull << 32,
	(1ull << 32) + 1,
	1ull << 44,
	(1ull << 63) - 1,
	1ull << 63,
	(1ull << 63) + 1,
	~0ull - 8192,
	~0ull - 4096,
	~0ull - 4095,
	~0ull - 1,
	~0ull,
};
#define NR_EDGE (sizeof(edge) / sizeof(edge[0]))

static void range(void **state)
{
	size_t a, b, c;

	(void)state;
	for (a = 0; a < NR_EDGE; a++)
		for (b = 0; b < NR_EDGE; b++)
			for (c = 0; c < NR_EDGE; c++) {
				bool want = (unsigned __int128)edge[a] + edge[b] <= edge[c];

				if (xnem_range_ok(edge[a], edge[b], edge[c]) != want)
					fail_msg("offset %#llx length %#llx size %#llx",
						 (unsigned long long)edge[a],
						 (unsigned long long)edge[b],
						 (unsigned long long)edge[c]);
			}
	/* Small ones, all of them. */
	for (a = 0; a < 40; a++)
		for (b = 0; b < 40; b++)
			for (c = 0; c < 40; c++)
				assert_int_equal(xnem_range_ok(a, b, c), a + b <= c);
}

static void check_pages(u32 off, u64 length)
{
	unsigned __int128 want = ((unsigned __int128)length + off + 4095) / 4096;

	if (xnem_pages_of(off, length) != want)
		fail_msg("offset %u, length %#llx: %llu", off, (unsigned long long)length,
			 (unsigned long long)xnem_pages_of(off, length));
}

static void pages(void **state)
{
	u32 off;
	size_t i;

	(void)state;
	for (off = 0; off < 4096; off++) {
		for (i = 0; i < NR_EDGE; i++)
			check_pages(off, edge[i]);
		for (i = 0; i <= 4097; i += 1 + 31 * (i > 2 && i < 4090))
			check_pages(off, i);
	}
}

/* ---- completions ---- */

static void check_completions_of(u16 op, u16 flags, u64 asked)
{
	static const u64 len[] = { 0, 1, 4095, 4096, 1 << 20, 1ull << 32, ~0ull };
	u32 status, bit;
	size_t b;

	for (status = 0; status <= 0xffff; status += 1 + 250 * (status > 40))
		for (b = 0; b < sizeof(len) / sizeof(len[0]); b++) {
			struct xnem_completion c = { .id = 9,
						     .status = (u16)status,
						     .bytes_done = len[b],
						     .data = { ~0ull, 1 } };
			bool want = status <= 14;

			if (op != XNEM_OP_COPY)
				want = want && !len[b];
			else if (!status && !(flags & 0x10))
				want = want && len[b] == asked;
			else
				want = want && len[b] <= asked;
			assert_int_equal(xnem_check_completion(&c, op, flags, asked), want);
			for (bit = 0; bit < 16; bit++) {
				c.pad = (u16)(1 << bit);
				assert_false(xnem_check_completion(&c, op, flags, asked));
			}
		}
}

/* A bounded copy, and no other, may succeed with fewer bytes. */
static void completion(void **state)
{
	static const u64 asked[] = { 0, 1, 4095, 4096, 1 << 20, 1ull << 32, ~0ull };
	size_t a, op;
	u16 flags;

	(void)state;
	for (op = 0; op < NR_OPS; op++)
		for (flags = 0; flags < 32; flags++)
			for (a = 0; a < sizeof(asked) / sizeof(asked[0]); a++)
				if (ops[op].op == XNEM_OP_COPY || flags < 2)
					check_completions_of(ops[op].op, flags, asked[a]);
}

/* ---- xenstore ---- */

/* A string in memory of exactly its size, so that reading beyond it is seen. */
static char *exact(const char *s)
{
	char *copy = malloc(strlen(s) + 1);

	assert_non_null(copy);
	return strcpy(copy, s);
}

#define BAD 1 /* expected failure, in the tables below */

static void parse_u32(void **state)
{
	static const struct {
		const char *s;
		u32 v;
		int bad;
	} rows[] = {
		{ "0", 0, 0 },
		{ "1", 1, 0 },
		{ "007", 7, 0 },
		{ "4294967295", 0xffffffff, 0 },
		{ "00000000000000000000000000000004294967295", 0xffffffff, 0 },
		{ "4294967296", 0, BAD },
		{ "4294967300", 0, BAD },
		{ "18446744073709551616", 0, BAD }, /* 2^64 */
		{ "18446744073709551617", 0, BAD }, /* 2^64 + 1 */
		{ "99999999999999999999999999999999999999999", 0, BAD },
		{ "", 0, BAD },
		{ " 1", 0, BAD },
		{ "1 ", 0, BAD },
		{ "+1", 0, BAD },
		{ "-1", 0, BAD },
		{ "0x10", 0, BAD },
		{ "1a", 0, BAD },
		{ "1.0", 0, BAD },
		{ "1\n", 0, BAD },
		{ "\t1", 0, BAD },
		{ "/", 0, BAD },
		{ ":", 0, BAD },
		{ "\xff", 0, BAD },
		{ "\xb1", 0, BAD }, /* '1' with its top bit set */
		{ "\xd9\xa1", 0, BAD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = exact(rows[i].s);
		u32 v = 42;
		bool ok = xnem_parse_u32(s, &v);

		if (ok != !rows[i].bad || (ok && v != rows[i].v))
			fail_msg("\"%s\": %d, %u", s, ok, v);
		free(s);
	}
}

static void parse_versions(void **state)
{
	static const struct {
		const char *s;
		u32 min, max;
		int bad;
	} rows[] = {
		{ "0 0", 0, 0, 0 },
		{ "0 1", 0, 1, 0 },
		{ "1 4294967295", 1, 0xffffffff, 0 },
		{ "4294967295 4294967295", 0xffffffff, 0xffffffff, 0 },
		{ "1 0", 0, 0, BAD },
		{ "4294967296 4294967297", 0, 0, BAD },
		{ "0 4294967296", 0, 0, BAD },
		{ "", 0, 0, BAD },
		{ "0", 0, 0, BAD },
		{ "0 ", 0, 0, BAD },
		{ " ", 0, 0, BAD },
		{ " 0 0", 0, 0, BAD },
		{ "0 0 ", 0, 0, BAD },
		{ "0  0", 0, 0, BAD },
		{ "0\t0", 0, 0, BAD },
		{ "0-1", 0, 0, BAD },
		{ "0 -1", 0, 0, BAD },
		{ "0 1 2", 0, 0, BAD },
		{ "a b", 0, 0, BAD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = exact(rows[i].s);
		u32 min = 42, max = 42;
		bool ok = xnem_parse_versions(s, &min, &max);

		if (ok != !rows[i].bad || (ok && (min != rows[i].min || max != rows[i].max)))
			fail_msg("\"%s\": %d, %u, %u", s, ok, min, max);
		free(s);
	}
}

static void parse_hex64(void **state)
{
	static const struct {
		const char *s;
		u64 v;
		int bad;
	} rows[] = {
		{ "0", 0, 0 },
		{ "1", 1, 0 },
		{ "f", 15, 0 },
		{ "F", 15, 0 },
		{ "0000000000000001", 1, 0 },
		{ "0123456789abcdef", 0x0123456789abcdef, 0 },
		{ "FEDCBA9876543210", 0xfedcba9876543210, 0 },
		{ "ffffffffffffffff", ~0ull, 0 },
		{ "10000000000000000", 0, BAD }, /* 17 digits */
		{ "00000000000000001", 0, BAD },
		{ "fffffffffffffffffffffffffffffffffffffffffffff", 0, BAD },
		{ "", 0, BAD },
		{ "0x1", 0, BAD },
		{ "g", 0, BAD },
		{ "G", 0, BAD },
		{ "@", 0, BAD },
		{ "`", 0, BAD },
		{ "/", 0, BAD },
		{ ":", 0, BAD },
		{ " 1", 0, BAD },
		{ "1 ", 0, BAD },
		{ "-1", 0, BAD },
		{ "1\n", 0, BAD },
		{ "\xe1", 0, BAD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = exact(rows[i].s);
		u64 v = 42;
		bool ok = xnem_parse_hex64(s, &v);

		if (ok != !rows[i].bad || (ok && v != rows[i].v))
			fail_msg("\"%s\": %d, %#llx", s, ok, (unsigned long long)v);
		free(s);
	}
}

static void parse_refs(void **state)
{
	static const struct {
		const char *s;
		u32 max, n;
		u32 ref[4];
		int bad;
	} rows[] = {
		{ "8", 16, 1, { 8 }, 0 },
		{ "0", 1, 1, { 0 }, 0 },
		{ "4294967295", 1, 1, { 0xffffffff }, 0 },
		{ "8 9", 16, 2, { 8, 9 }, 0 },
		{ "8 9", 2, 2, { 8, 9 }, 0 },
		{ "9 8 8 1", 4, 4, { 9, 8, 8, 1 }, 0 },
		{ "8 9", 1, 0, { 0 }, BAD },
		{ "1 2 3 4", 3, 0, { 0 }, BAD },
		{ "1 2 3 4 5", 4, 0, { 0 }, BAD },
		{ "8", 0, 0, { 0 }, BAD },
		{ "1 2 3", 4, 0, { 0 }, BAD }, /* not a power of two */
		{ "1 2 3 4 5 6", 16, 0, { 0 }, BAD },
		{ "", 16, 0, { 0 }, BAD },
		{ " ", 16, 0, { 0 }, BAD },
		{ "1 ", 16, 0, { 0 }, BAD },
		{ " 1", 16, 0, { 0 }, BAD },
		{ "1  2", 16, 0, { 0 }, BAD },
		{ "1,2", 16, 0, { 0 }, BAD },
		{ "1 x", 16, 0, { 0 }, BAD },
		{ "1 -2", 16, 0, { 0 }, BAD },
		{ "1 4294967296", 16, 0, { 0 }, BAD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = exact(rows[i].s);
		u32 *refs = malloc(rows[i].max ? rows[i].max * sizeof(*refs) : 1);
		u32 n = 42;
		bool ok = xnem_parse_refs(s, refs, rows[i].max, &n);

		if (ok != !rows[i].bad || (ok && n != rows[i].n))
			fail_msg("\"%s\": %d, %u", s, ok, n);
		if (ok)
			assert_memory_equal(refs, rows[i].ref, n * sizeof(*refs));
		free(refs);
		free(s);
	}
}

/* All counts up to twice the largest ring. */
static void parse_refs_counts(void **state)
{
	u32 n, k;

	(void)state;
	for (n = 1; n <= 32; n++) {
		char text[32 * 11 + 1], *s;
		size_t at = 0;
		u32 *refs = malloc(16 * sizeof(*refs)), count = 0;
		bool want = n <= 16 && !(n & (n - 1));

		for (k = 0; k < n; k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", k ? " " : "",
					       4294967295u - k);
		s = exact(text);
		assert_int_equal(xnem_parse_refs(s, refs, 16, &count), want);
		for (k = 0; want && k < n; k++)
			assert_int_equal(refs[k], 4294967295u - k);
		if (want)
			assert_int_equal(count, n);
		free(s);
		free(refs);
	}
}

#define GOOD_LIMITS                                                              \
	"queues=4 sq-order=2 cq-order=1 inflight=128 contexts=256 regions=1024 " \
	"region-pages=18432 pages=1048576"
#define WINDOW_LIMITS " windows=4 window-pages=64"

static void parse_limits_good(void **state)
{
	static const char *const good[] = {
		GOOD_LIMITS WINDOW_LIMITS,
		/* any order */
		"window-pages=64 pages=1048576 region-pages=18432 regions=1024 contexts=256 "
		"inflight=128 cq-order=1 windows=4 sq-order=2 queues=4",
		/* keys of a later version, known ones as a prefix or a suffix */
		"new=1 " GOOD_LIMITS WINDOW_LIMITS
		" queue=9 queuess=9 page=9 xpages=9 region-page=9 -=0 window=9 window-page=9",
		/* an unknown key may come twice */
		"new=1 new=2 " GOOD_LIMITS WINDOW_LIMITS,
		"Queues=7 Windows=99 " GOOD_LIMITS WINDOW_LIMITS,
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char *s = exact(good[i]);
		struct xnem_limits lim;

		memset(&lim, 0x5a, sizeof(lim));
		if (!xnem_parse_limits(s, &lim))
			fail_msg("\"%s\"", s);
		assert_memory_equal(&lim, &limits, sizeof(lim));
		free(s);
	}
}

/* Windows may be absent; what is there must be right. */
static void parse_limits_windows(void **state)
{
	static const struct {
		const char *text;
		u32 windows, pages;
		int bad;
	} rows[] = {
		{ "", 0, 0, 0 },
		{ " windows=0", 0, 0, 0 },
		{ " windows=1 window-pages=1", 1, 1, 0 },
		{ " windows=16 window-pages=1024", 16, 1024, 0 },
		{ " window-pages=7", 0, 7, 0 },
		{ " windows=0 window-pages=7", 0, 7, 0 },
		{ " windows=1", 0, 0, BAD },
		{ " windows=16 window-pages=0", 0, 0, BAD },
		{ " windows=17 window-pages=1", 0, 0, BAD },
		{ " windows=4294967295 window-pages=1", 0, 0, BAD },
		{ " windows=4294967296 window-pages=1", 0, 0, BAD },
		{ " windows=1 window-pages=1025", 0, 0, BAD },
		{ " window-pages=1025", 0, 0, BAD },
		{ " windows=1 window-pages=4294967295", 0, 0, BAD },
		{ " windows= window-pages=1", 0, 0, BAD },
		{ " windows=x window-pages=1", 0, 0, BAD },
		{ " windows=-1 window-pages=1", 0, 0, BAD },
		{ " windows=1 windows=1 window-pages=1", 0, 0, BAD },
		{ " windows=1 window-pages=1 window-pages=1", 0, 0, BAD },
		{ " windows", 0, 0, BAD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256], *s;
		struct xnem_limits lim;
		bool ok;

		snprintf(text, sizeof(text), "%s%s", GOOD_LIMITS, rows[i].text);
		s = exact(text);
		memset(&lim, 0x5a, sizeof(lim));
		ok = xnem_parse_limits(s, &lim);
		if (ok != !rows[i].bad ||
		    (ok && (lim.windows != rows[i].windows || lim.window_pages != rows[i].pages)))
			fail_msg("\"%s\": %d, %u, %u", s, ok, lim.windows, lim.window_pages);
		free(s);
	}
}

static void parse_limits_bad(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"queues",
		"queues=",
		"=4",
		" " GOOD_LIMITS,
		GOOD_LIMITS " ",
		GOOD_LIMITS " queues=4", /* twice */
		GOOD_LIMITS " pages=1048576",
		GOOD_LIMITS "  new=1",
		GOOD_LIMITS " new",
		GOOD_LIMITS " new=",
		GOOD_LIMITS " new=x",
		GOOD_LIMITS " new=-1",
		GOOD_LIMITS " new=1x",
		GOOD_LIMITS " new=4294967296",
		GOOD_LIMITS " new==1",
		GOOD_LIMITS " =1",
		GOOD_LIMITS ",new=1",
		GOOD_LIMITS "\nnew=1",
		GOOD_LIMITS "\n",
	};
	struct xnem_limits lim;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *s = exact(bad[i]);

		if (xnem_parse_limits(s, &lim))
			fail_msg("\"%s\"", s);
		free(s);
	}
}

/* Each key by itself: missing, empty, at its edges, beyond them. */
static void parse_limits_keys(void **state)
{
	static const struct {
		const char *key;
		size_t at;
		u32 min, max;
	} keys[] = {
		{ "queues", offsetof(struct xnem_limits, queues), 1, 0xffffffff },
		{ "sq-order", offsetof(struct xnem_limits, sq_order), 0, 4 },
		{ "cq-order", offsetof(struct xnem_limits, cq_order), 0, 4 },
		{ "inflight", offsetof(struct xnem_limits, inflight), 1, 0xffffffff },
		{ "contexts", offsetof(struct xnem_limits, contexts), 1, 1024 },
		{ "regions", offsetof(struct xnem_limits, regions), 1, 0xffffffff },
		{ "region-pages", offsetof(struct xnem_limits, region_pages), 1, 0xffffffff },
		{ "pages", offsetof(struct xnem_limits, pages), 1, 0xffffffff },
	};
	const size_t nr = sizeof(keys) / sizeof(keys[0]);
	static const char *const values[] = {
		NULL, "", "0", "1", "4", "5", "x", "1024", "1025", "4294967295", "4294967296", "-1"
	};
	size_t k, v, i;

	(void)state;
	for (k = 0; k < nr; k++)
		for (v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			char text[512] = "", *s;
			unsigned long long number = 0;
			struct xnem_limits lim;
			bool want = false;

			for (i = 0; i < nr; i++) {
				const char *value = i == k ? values[v] : "1";

				if (!value)
					continue;
				if (*text)
					strcat(text, " ");
				strcat(strcat(strcat(text, keys[i].key), "="), value);
			}
			if (values[v] && values[v][0] >= '0' && values[v][0] <= '9') {
				number = strtoull(values[v], NULL, 10);
				want = number >= keys[k].min && number <= keys[k].max;
			}
			s = exact(text);
			if (xnem_parse_limits(s, &lim) != want)
				fail_msg("\"%s\"", s);
			if (want) {
				u32 is;

				memcpy(&is, (char *)&lim + keys[k].at, sizeof(is));
				assert_int_equal(is, number);
			}
			free(s);
		}
}

/* A peer may write as much as xenstore lets it, and more. */
static void long_strings(void **state)
{
	const size_t n = 1 << 20;
	static const char fill[] = { '0', '1', '9', 'a', ' ', '=', '\xff' };
	char *s = malloc(n + 1);
	struct xnem_limits lim;
	u32 v, w, refs[16];
	u64 x;
	size_t i;

	(void)state;
	assert_non_null(s);
	for (i = 0; i < sizeof(fill); i++) {
		memset(s, fill[i], n);
		s[n] = 0;
		/* Zeros are a number however many there are. */
		assert_int_equal(xnem_parse_u32(s, &v), fill[i] == '0');
		assert_false(xnem_parse_versions(s, &v, &w));
		assert_false(xnem_parse_hex64(s, &x));
		assert_int_equal(xnem_parse_refs(s, refs, 16, &v), fill[i] == '0');
		assert_false(xnem_parse_limits(s, &lim));
		assert_false(xnem_zone_name_ok(s));
	}
	/* One unknown key of a megabyte among good ones. */
	memset(s, 'k', n);
	strcpy(s + n - 200, "=1 " GOOD_LIMITS WINDOW_LIMITS);
	assert_true(xnem_parse_limits(s, &lim));
	assert_memory_equal(&lim, &limits, sizeof(lim));
	free(s);
}

static void zone_names(void **state)
{
	char text[66], *s;
	u32 c, n;

	(void)state;
	for (c = 1; c < 256; c++) {
		bool want = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
		u32 at;

		for (at = 0; at < 3; at++) {
			memcpy(text, "abc", 4);
			text[at] = (char)c;
			s = exact(text);
			if (xnem_zone_name_ok(s) != want)
				fail_msg("character %#x", c);
			free(s);
		}
	}
	for (n = 0; n <= 65; n++) {
		memset(text, 'z', n);
		text[n] = 0;
		s = exact(text);
		assert_int_equal(xnem_zone_name_ok(s), n >= 1 && n <= 63);
		free(s);
	}
	assert_true(xnem_zone_name_ok("default"));
	assert_false(xnem_zone_name_ok("a/b"));
	assert_false(xnem_zone_name_ok("a b"));
	assert_false(xnem_zone_name_ok("a\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right),
		cmocka_unit_test(padding),
		cmocka_unit_test(opaque),
		cmocka_unit_test(request_flags),
		cmocka_unit_test(immediate),
		cmocka_unit_test(contexts),
		cmocka_unit_test(unknown_ops),
		cmocka_unit_test(open_inbox),
		cmocka_unit_test(open_wrong),
		cmocka_unit_test(message),
		cmocka_unit_test(describe),
		cmocka_unit_test(reg),
		cmocka_unit_test(reg_descriptors),
		cmocka_unit_test(reg_limit),
		cmocka_unit_test(reg_flags),
		cmocka_unit_test(reg_windowed),
		cmocka_unit_test(reg_segments),
		cmocka_unit_test(register_refs),
		cmocka_unit_test(segments),
		cmocka_unit_test(segments_most),
		cmocka_unit_test(reg_every_offset),
		cmocka_unit_test(range),
		cmocka_unit_test(pages),
		cmocka_unit_test(completion),
		cmocka_unit_test(parse_u32),
		cmocka_unit_test(parse_versions),
		cmocka_unit_test(parse_hex64),
		cmocka_unit_test(parse_refs),
		cmocka_unit_test(parse_refs_counts),
		cmocka_unit_test(parse_limits_good),
		cmocka_unit_test(parse_limits_windows),
		cmocka_unit_test(parse_limits_bad),
		cmocka_unit_test(parse_limits_keys),
		cmocka_unit_test(long_strings),
		cmocka_unit_test(zone_names),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
