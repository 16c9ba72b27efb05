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

static void accepted(const struct xnem_request *r, const struct xnem_limits *lim, u64 features)
{
	must(r->context < lim->contexts);
	must(!r->pad0);
	must(r->flags < 8);
	must(!(r->flags & XNEM_REQ_CPAGE) || (features & XNEM_FEAT_CPAGE));
	must(!(r->flags & XNEM_REQ_NOTIFY) || (features & XNEM_FEAT_NOTIFY));
	must(!(r->flags & XNEM_REQ_FENCE) || (features & XNEM_FEAT_FENCE));

	switch (r->op) {
	case XNEM_OP_PING:
	case XNEM_OP_CLOSE_CONTEXT:
		must(zero(r, 32, 128));
		break;
	case XNEM_OP_DEREGISTER:
		must(zero(r, 40, 128));
		break;
	case XNEM_OP_COPY:
		must(zero(r, 88, 128));
		break;
	case XNEM_OP_OPEN_CONTEXT:
		must(features & XNEM_FEAT_CPAGE);
		must(zero(r, 36, 128));
		break;
	case XNEM_OP_REGISTER: {
		unsigned __int128 bytes = (unsigned __int128)r->u.reg.offset + r->u.reg.length;
		u64 nr = r->u.reg.nr_pages, refs = nr;

		must(r->u.reg.length);
		must(r->u.reg.offset < 4096);
		must(r->u.reg.access >= 1 && r->u.reg.access <= 3);
		must(r->u.reg.flags <= 3);
		must((bytes + 4095) / 4096 == nr);
		must(nr >= 1 && nr <= lim->region_pages);
		if (r->u.reg.flags & XNEM_REGION_INDIRECT)
			refs = (nr + 1023) / 1024;
		must(refs >= 1 && refs <= XNEM_INLINE_REFS);
		must(nr <= XNEM_REGION_PAGES_MAX);
		must(zero(r, 56 + 4 * refs, 128));
		break;
	}
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
	if (before.op > XNEM_OP_CLOSE_CONTEXT)
		must(st != XNEM_ST_OK);
	return 0;
}
