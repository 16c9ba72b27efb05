// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * xnem_check_request().  Input: features (8 bytes), limits, a request.  What is
 * accepted must be what xnemif.h allows, field by field, written down here a
 * second time.
 */
#include "fuzz.h"

static bool zero(const void *p, size_t from, size_t to)
{
	for (; from < to; from++)
		if (((const u8 *)p)[from])
			return false;
	return true;
}

static void accepted_region(const struct xnem_request *r, const struct xnem_limits *lim,
			    u64 features)
{
	unsigned __int128 bytes = (unsigned __int128)r->u.reg.offset + r->u.reg.length;
	u32 flags = r->u.reg.flags;
	u64 nr = r->u.reg.nr_pages, refs = nr;

	must(r->u.reg.length && nr);
	must(r->u.reg.access >= 1 && r->u.reg.access <= 3);
	must(flags < 32);
	must(!(flags & (XNEM_REGION_ONCE | XNEM_REGION_SEGMENTS)) ||
	     (features & XNEM_FEAT_SEGMENTS));
	must(!(flags & XNEM_REGION_WINDOWED) || (features & XNEM_FEAT_WINDOW));
	if (flags & XNEM_REGION_WINDOWED) {
		must(!(flags & XNEM_REGION_INDIRECT));
		must(nr <= 1ull << 31);
		refs = 0;
	} else {
		must(nr <= lim->region_pages);
		must(nr <= XNEM_REGION_PAGES_MAX);
		if (flags & XNEM_REGION_INDIRECT)
			refs = (nr + 1023) / 1024;
		must(refs >= 1);
	}
	if (flags & XNEM_REGION_SEGMENTS) {
		must(r->u.reg.offset >= 1 && r->u.reg.offset <= 1024);
		must(r->u.reg.offset <= nr);
		refs += (r->u.reg.offset + 255) / 256;
	} else {
		must(r->u.reg.offset < 4096);
		must((bytes + 4095) / 4096 == nr);
	}
	must(refs <= XNEM_INLINE_REFS);
	must(refs == xnem_register_refs(flags, r->u.reg.nr_pages, r->u.reg.offset));
	must(zero(r, 56 + 4 * refs, 128));
}

static void accepted(const struct xnem_request *r, const struct xnem_limits *lim, u64 features)
{
	u32 n;

	must(r->context < lim->contexts);
	must(!r->pad0);
	must(r->flags < 32);
	must(!(r->flags & XNEM_REQ_CPAGE) || (features & XNEM_FEAT_CPAGE));
	must(!(r->flags & XNEM_REQ_FENCE) || (features & XNEM_FEAT_FENCE));
	if (r->flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST)) {
		must(r->op == XNEM_OP_COPY);
		must(features & XNEM_FEAT_NOTIFY);
	}
	if (r->flags & XNEM_REQ_BOUNDED) {
		must(r->op == XNEM_OP_COPY);
		must(features & XNEM_FEAT_CANCEL);
	}

	switch (r->op) {
	case XNEM_OP_PING:
		must(zero(r, 32, 128));
		break;
	case XNEM_OP_CLOSE_CONTEXT:
		must(!(r->flags & XNEM_REQ_FENCE));
		must(zero(r, 32, 128));
		break;
	case XNEM_OP_DEREGISTER:
		must(!(r->flags & XNEM_REQ_FENCE));
		must(zero(r, 40, 128));
		break;
	case XNEM_OP_COPY:
		must(zero(r, 96, 128));
		must((r->flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST)) || zero(r, 88, 96));
		break;
	case XNEM_OP_OPEN_CONTEXT:
		must(features & XNEM_FEAT_CPAGE);
		if (r->u.open.flags) {
			must(r->u.open.flags == 1);
			must(features & (XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY));
			must(r->u.open.inbox_order <= 3);
			must(zero(r, 48 + 4 * (1 << r->u.open.inbox_order), 128));
		} else {
			must(zero(r, 36, 128));
		}
		break;
	case XNEM_OP_REGISTER:
		accepted_region(r, lim, features);
		break;
	case XNEM_OP_MESSAGE:
		must(features & XNEM_FEAT_MESSAGE);
		must(r->u.msg.length <= 64);
		must(zero(r, 52, 56));
		must(zero(r, 56 + r->u.msg.length, 128));
		break;
	case XNEM_OP_CANCEL:
		must(features & XNEM_FEAT_CANCEL);
		must(!(r->flags & XNEM_REQ_FENCE));
		must(zero(r, 36, 128));
		break;
	case XNEM_OP_DESCRIBE:
		must(features & XNEM_FEAT_WINDOW);
		must(!(r->flags & XNEM_REQ_FENCE));
		must(r->u.describe.window < lim->windows);
		n = r->u.describe.nr_pages;
		must(n <= lim->window_pages);
		must(r->u.describe.indirect <= 1);
		if (r->u.describe.indirect) {
			must(n);
			n = 1;
		}
		must(n <= 20);
		must(zero(r, 48 + 4 * n, 128));
		break;
	default:
		must(0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xnem_request *r, before;
	struct xnem_limits lim;
	enum xnem_status st;
	u64 features;

	if (!take(&data, &size, &features, sizeof(features)) ||
	    !take(&data, &size, &lim, sizeof(lim)) || !take(&data, &size, &before, sizeof(before)))
		return 0;
	r = malloc(sizeof(*r));
	must(r);
	*r = before;
	st = xnem_check_request(r, &lim, features);
	must(!memcmp(r, &before, sizeof(before)));
	free(r);

	must(st == XNEM_ST_OK || st == XNEM_ST_INVALID || st == XNEM_ST_UNSUPPORTED ||
	     st == XNEM_ST_LIMIT);
	if (st == XNEM_ST_OK)
		accepted(&before, &lim, features);
	/* More features never make a right request wrong. */
	if (st == XNEM_ST_OK)
		must(xnem_check_request(&before, &lim, ~0ull) == XNEM_ST_OK);
	return 0;
}
