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
		       offsetof(struct xnem_request, u.copy.pad) -
			       offsetof(struct xnem_request, u.copy));
		break;
	case XNEM_OP_OPEN_CONTEXT:
		r.u.open.cpage_ref = 77;
		break;
	}
	return r;
}

static const u16 known_ops[] = { XNEM_OP_PING, XNEM_OP_REGISTER,     XNEM_OP_DEREGISTER,
				 XNEM_OP_COPY, XNEM_OP_OPEN_CONTEXT, XNEM_OP_CLOSE_CONTEXT };
#define NR_OPS (sizeof(known_ops) / sizeof(known_ops[0]))

/* Bytes from here on are padding of the operation. */
static size_t pad_start(u16 op)
{
	switch (op) {
	case XNEM_OP_REGISTER:
		return offsetof(struct xnem_request, u.reg.ref) + 2 * 4; /* unused references */
	case XNEM_OP_DEREGISTER:
		return offsetof(struct xnem_request, u.dereg.pad);
	case XNEM_OP_COPY:
		return offsetof(struct xnem_request, u.copy.pad);
	case XNEM_OP_OPEN_CONTEXT:
		return offsetof(struct xnem_request, u.open.pad1);
	default:
		return offsetof(struct xnem_request, u);
	}
}

static void right(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < NR_OPS; i++) {
		struct xnem_request r = of_op(known_ops[i]);

		expect(&r, ALL_FEATURES, XNEM_ST_OK);
		expect(&r, XNEM_FEAT_CPAGE, XNEM_ST_OK);
		/* No feature is needed but for the completion page. */
		expect(&r, 0, r.op == XNEM_OP_OPEN_CONTEXT ? XNEM_ST_UNSUPPORTED : XNEM_ST_OK);
		expect(&r, ~XNEM_FEAT_CPAGE,
		       r.op == XNEM_OP_OPEN_CONTEXT ? XNEM_ST_UNSUPPORTED : XNEM_ST_OK);
	}
}

/* Each bit of each byte of padding, alone. */
static void padding(void **state)
{
	size_t i, at;
	u32 bit;

	(void)state;
	for (i = 0; i < NR_OPS; i++) {
		struct xnem_request r = of_op(known_ops[i]);
		u8 *byte = (u8 *)&r;

		for (at = 0; at < sizeof(r); at++) {
			bool pad = at >= pad_start(r.op) ||
				   (at >= offsetof(struct xnem_request, pad0) &&
				    at < offsetof(struct xnem_request, user_data));

			for (bit = 0; pad && bit < 8; bit++) {
				assert_int_equal(byte[at], 0);
				byte[at] = (u8)(1 << bit);
				expect(&r, ALL_FEATURES, XNEM_ST_INVALID);
				byte[at] = 0;
			}
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
		struct xnem_request r = of_op(known_ops[i]);

		for (v = 0; v < sizeof(values); v++) {
			memset(&r.id, values[v], sizeof(r.id));
			memset(&r.user_data, values[v], sizeof(r.user_data));
			memset(&r.tag, values[v], sizeof(r.tag));
			expect(&r, ALL_FEATURES, XNEM_ST_OK);
		}
		if (r.op == XNEM_OP_REGISTER)
			continue;
		for (at = offsetof(struct xnem_request, u); at < pad_start(r.op); at++)
			for (v = 0; v < sizeof(values); v++) {
				((u8 *)&r)[at] = values[v];
				expect(&r, ALL_FEATURES, XNEM_ST_OK);
			}
	}
}

static void request_flags(void **state)
{
	static const u64 needs[16] = { XNEM_FEAT_CPAGE, XNEM_FEAT_NOTIFY, XNEM_FEAT_FENCE };
	size_t i;
	u32 bit;

	(void)state;
	for (i = 0; i < NR_OPS; i++)
		for (bit = 0; bit < 16; bit++) {
			struct xnem_request r = of_op(known_ops[i]);
			bool known = bit < 16 && needs[bit];

			r.flags = (u16)(1 << bit);
			expect(&r, ALL_FEATURES, known ? XNEM_ST_OK : XNEM_ST_INVALID);
			if (!known) {
				/* An unknown bit is invalid whatever stands beside it. */
				r.flags |= XNEM_REQ_NOTIFY;
				expect(&r, 0, XNEM_ST_INVALID);
				continue;
			}
			expect(&r, ALL_FEATURES & ~needs[bit], XNEM_ST_UNSUPPORTED);
			expect(&r, 0, XNEM_ST_UNSUPPORTED);
			if (r.op != XNEM_OP_OPEN_CONTEXT)
				expect(&r, needs[bit], XNEM_ST_OK);
		}
}

static void contexts(void **state)
{
	static const u32 nr[] = { 1, 2, 256, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t i, n;

	(void)state;
	for (i = 0; i < NR_OPS; i++)
		for (n = 0; n < sizeof(nr) / sizeof(nr[0]); n++) {
			struct xnem_request r = of_op(known_ops[i]);
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

	(void)state;
	for (op = XNEM_OP_CLOSE_CONTEXT + 1; op <= 0xffff; op++) {
		struct xnem_request r = { .op = (u16)op };

		expect(&r, ALL_FEATURES, XNEM_ST_UNSUPPORTED);
		r.pad0 = 1;
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
	{ 1, 0, R, 4, 1, XNEM_ST_INVALID },
	{ 1, 0, R, ANY | 8, 1, XNEM_ST_INVALID },
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

static void completion(void **state)
{
	static const u64 len[] = { 0, 1, 4095, 4096, 1 << 20, 1ull << 32, ~0ull };
	u32 status, bit, op;
	size_t a, b;

	(void)state;
	for (status = 0; status <= 0xffff; status += 1 + 250 * (status > 40))
		for (op = 0; op < NR_OPS; op++)
			for (a = 0; a < sizeof(len) / sizeof(len[0]); a++)
				for (b = 0; b < sizeof(len) / sizeof(len[0]); b++) {
					struct xnem_completion c = { .id = 9,
								     .status = (u16)status,
								     .bytes_done = len[b],
								     .data = { ~0ull, 1 } };
					bool want = status <= 13;

					if (known_ops[op] != XNEM_OP_COPY)
						want = want && !len[b];
					else if (!status)
						want = want && len[b] == len[a];
					else
						want = want && len[b] <= len[a];
					assert_int_equal(xnem_check_completion(&c, known_ops[op],
									       len[a]),
							 want);
					for (bit = 0; bit < 16; bit++) {
						c.pad = (u16)(1 << bit);
						assert_false(xnem_check_completion(
							&c, known_ops[op], len[a]));
					}
				}
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

static void parse_limits_good(void **state)
{
	static const char *const good[] = {
		GOOD_LIMITS,
		/* any order */
		"pages=1048576 region-pages=18432 regions=1024 contexts=256 inflight=128 "
		"cq-order=1 sq-order=2 queues=4",
		/* keys of a later version, known ones as a prefix or a suffix */
		"new=1 " GOOD_LIMITS " queue=9 queuess=9 page=9 xpages=9 region-page=9 -=0",
		/* an unknown key may come twice */
		"new=1 new=2 " GOOD_LIMITS,
		"Queues=7 " GOOD_LIMITS,
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
		{ "contexts", offsetof(struct xnem_limits, contexts), 1, 0xffffffff },
		{ "regions", offsetof(struct xnem_limits, regions), 1, 0xffffffff },
		{ "region-pages", offsetof(struct xnem_limits, region_pages), 1, 0xffffffff },
		{ "pages", offsetof(struct xnem_limits, pages), 1, 0xffffffff },
	};
	const size_t nr = sizeof(keys) / sizeof(keys[0]);
	static const char *const values[] = { NULL, "",	 "0",	       "1",	     "4",
					      "5",  "x", "4294967295", "4294967296", "-1" };
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
	strcpy(s + n - 200, "=1 " GOOD_LIMITS);
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
		cmocka_unit_test(contexts),
		cmocka_unit_test(unknown_ops),
		cmocka_unit_test(reg),
		cmocka_unit_test(reg_descriptors),
		cmocka_unit_test(reg_limit),
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
		cmocka_unit_test(parse_limits_bad),
		cmocka_unit_test(parse_limits_keys),
		cmocka_unit_test(long_strings),
		cmocka_unit_test(zone_names),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
