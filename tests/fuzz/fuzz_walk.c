// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * From requests to operations, the way of a backend: two registrations and a
 * copy are checked, the copy's ranges against the regions, and what passes is
 * walked.  Nothing that passes may reach beyond the pages that were named or
 * the bytes that were registered.  Input: two register requests, one copy.
 */
#include "fuzz.h"
#include "xnem_walk.h"

/*
 * Regions are made small so that their references fit into memory; a copy of
 * them is as long as it likes.
 */
static const struct xnem_limits limits = {
	.queues = 1,
	.inflight = 1,
	.contexts = 0xffffffff,
	.regions = 2,
	.region_pages = 2048,
	.pages = 4096,
};

static u32 *name_pages(const struct xnem_request *reg, u32 base)
{
	u32 n = reg->u.reg.nr_pages, i;
	u32 *refs = malloc(n * sizeof(*refs));

	must(refs);
	for (i = 0; i < n; i++)
		refs[i] = base + i;
	return refs;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xnem_request reg[2], copy;
	u64 s_first, d_first, len, done = 0, ops = 0;
	u32 *src, *dst;
	struct xnem_copy_op op;
	struct xnem_walk w;

	if (!take(&data, &size, reg, sizeof(reg)) || !take(&data, &size, &copy, sizeof(copy)))
		return 0;
	/* Spend the fuzzer's time on what gets through. */
	reg[0].op = reg[1].op = XNEM_OP_REGISTER;
	copy.op = XNEM_OP_COPY;
	if (xnem_check_request(&reg[0], &limits, 0) || xnem_check_request(&reg[1], &limits, 0) ||
	    xnem_check_request(&copy, &limits, 0))
		return 0;
	len = copy.u.copy.length;
	if (!xnem_range_ok(copy.u.copy.src_offset, len, reg[0].u.reg.length) ||
	    !xnem_range_ok(copy.u.copy.dst_offset, len, reg[1].u.reg.length))
		return 0;

	src = name_pages(&reg[0], 0x1000);
	dst = name_pages(&reg[1], 0x8000);
	s_first = reg[0].u.reg.offset + copy.u.copy.src_offset;
	d_first = reg[1].u.reg.offset + copy.u.copy.dst_offset;
	xnem_walk_init(&w, src, s_first, dst, d_first, len);
	while (xnem_walk_next(&w, &op)) {
		u64 s_at = (u64)(op.src_ref - 0x1000) * 4096 + op.src_off;
		u64 d_at = (u64)(op.dst_ref - 0x8000) * 4096 + op.dst_off;

		must(op.len >= 1 && op.src_off + op.len <= 4096 && op.dst_off + op.len <= 4096);
		must(op.src_ref - 0x1000 < reg[0].u.reg.nr_pages);
		must(op.dst_ref - 0x8000 < reg[1].u.reg.nr_pages);
		must(s_at == s_first + done && d_at == d_first + done);
		/* Only registered bytes, not their neighbours in the page. */
		must(s_at + op.len <= reg[0].u.reg.offset + reg[0].u.reg.length);
		must(d_at + op.len <= reg[1].u.reg.offset + reg[1].u.reg.length);
		done += op.len;
		ops++;
	}
	must(done == len);
	must(ops <= (u64)reg[0].u.reg.nr_pages + reg[1].u.reg.nr_pages);
	free(src);
	free(dst);
	return 0;
}
