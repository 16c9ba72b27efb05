// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Checks of what a peer says; see xnem_check.h.
 */
#include "xnem_check.h"

static bool all_zero64(const xnem_le64 *p, unsigned int n)
{
	xnem_le64 bits = 0;

	while (n--)
		bits |= *p++;
	return !bits;
}

static enum xnem_status check_register(const struct xnem_request *req,
				       const struct xnem_limits *lim)
{
	u64 length = xnem_le64_get(req->u.reg.length);
	u32 offset = xnem_le32_get(req->u.reg.offset);
	u32 access = xnem_le32_get(req->u.reg.access);
	u32 flags = xnem_le32_get(req->u.reg.flags);
	u32 nr_pages = xnem_le32_get(req->u.reg.nr_pages);
	u32 nr_refs, i;

	if (!length || offset >= XNEM_PAGE_SIZE)
		return XNEM_ST_INVALID;
	if (!access || (access & ~(XNEM_ACCESS_READ | XNEM_ACCESS_WRITE)))
		return XNEM_ST_INVALID;
	if (flags & ~(XNEM_REGION_ANY_TAG | XNEM_REGION_INDIRECT))
		return XNEM_ST_INVALID;
	if (nr_pages != xnem_pages_of(offset, length))
		return XNEM_ST_INVALID;
	if (nr_pages > lim->region_pages)
		return XNEM_ST_LIMIT;

	nr_refs = nr_pages;
	if (flags & XNEM_REGION_INDIRECT)
		nr_refs = nr_pages / XNEM_DESC_REFS + !!(nr_pages % XNEM_DESC_REFS);
	if (nr_refs > XNEM_INLINE_REFS)
		return XNEM_ST_INVALID;
	for (i = nr_refs; i < XNEM_INLINE_REFS; i++)
		if (req->u.reg.ref[i])
			return XNEM_ST_INVALID;
	return XNEM_ST_OK;
}

enum xnem_status xnem_check_request(const struct xnem_request *req, const struct xnem_limits *lim,
				    u64 features)
{
	u16 flags = xnem_le16_get(req->flags);
	u16 op = xnem_le16_get(req->op);

	if (flags & ~(XNEM_REQ_CPAGE | XNEM_REQ_NOTIFY | XNEM_REQ_FENCE))
		return XNEM_ST_INVALID;
	if ((flags & XNEM_REQ_CPAGE) && !(features & XNEM_FEAT_CPAGE))
		return XNEM_ST_UNSUPPORTED;
	if ((flags & XNEM_REQ_NOTIFY) && !(features & XNEM_FEAT_NOTIFY))
		return XNEM_ST_UNSUPPORTED;
	if ((flags & XNEM_REQ_FENCE) && !(features & XNEM_FEAT_FENCE))
		return XNEM_ST_UNSUPPORTED;
	if (req->pad0)
		return XNEM_ST_INVALID;
	if (xnem_le32_get(req->context) >= lim->contexts)
		return XNEM_ST_INVALID;

	switch (op) {
	case XNEM_OP_PING:
	case XNEM_OP_CLOSE_CONTEXT:
		return all_zero64(req->u.none.pad, 12) ? XNEM_ST_OK : XNEM_ST_INVALID;
	case XNEM_OP_REGISTER:
		return check_register(req, lim);
	case XNEM_OP_DEREGISTER:
		return all_zero64(req->u.dereg.pad, 11) ? XNEM_ST_OK : XNEM_ST_INVALID;
	case XNEM_OP_COPY:
		return all_zero64(req->u.copy.pad, 5) ? XNEM_ST_OK : XNEM_ST_INVALID;
	case XNEM_OP_OPEN_CONTEXT:
		if (!(features & XNEM_FEAT_CPAGE))
			return XNEM_ST_UNSUPPORTED;
		return !req->u.open.pad1 && all_zero64(req->u.open.pad, 11) ? XNEM_ST_OK :
									      XNEM_ST_INVALID;
	default:
		return XNEM_ST_UNSUPPORTED;
	}
}

bool xnem_check_completion(const struct xnem_completion *c, u16 op, u64 length)
{
	u16 status = xnem_le16_get(c->status);
	u64 done = xnem_le64_get(c->bytes_done);

	if (status > XNEM_ST_MAX || c->pad)
		return false;
	if (op != XNEM_OP_COPY)
		return !done;
	/* Success is every byte; an error is at most all of them. */
	return status == XNEM_ST_OK ? done == length : done <= length;
}

/* A decimal number below 2^32 at *@p, which is left behind it. */
static bool take_u32(const char **p, u32 *value)
{
	const char *s = *p;
	u64 v = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (u32)(*s - '0');
		if (v > 0xffffffffu)
			return false;
	}
	*p = s;
	*value = v;
	return true;
}

bool xnem_parse_u32(const char *s, u32 *value)
{
	return take_u32(&s, value) && !*s;
}

bool xnem_parse_versions(const char *s, u32 *min, u32 *max)
{
	if (!take_u32(&s, min) || *s++ != ' ' || !take_u32(&s, max) || *s)
		return false;
	return *min <= *max;
}

bool xnem_parse_hex64(const char *s, u64 *value)
{
	unsigned int digits = 0;
	u64 v = 0;

	for (; *s; s++, digits++) {
		u32 d;

		if (*s >= '0' && *s <= '9')
			d = (u32)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			d = (u32)(*s - 'a') + 10;
		else if (*s >= 'A' && *s <= 'F')
			d = (u32)(*s - 'A') + 10;
		else
			return false;
		if (digits == 16)
			return false;
		v = v << 4 | d;
	}
	*value = v;
	return digits > 0;
}

bool xnem_parse_refs(const char *s, u32 *refs, u32 max, u32 *count)
{
	u32 n = 0;

	for (;;) {
		if (n == max || !take_u32(&s, &refs[n]))
			return false;
		n++;
		if (!*s)
			break;
		if (*s++ != ' ')
			return false;
	}
	*count = n;
	return !(n & (n - 1));
}

/* Is [@key, @key + @len) the word @name? */
static bool key_is(const char *key, unsigned int len, const char *name)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		if (name[i] != key[i]) /* name's end differs from any key byte */
			return false;
	return !name[len];
}

bool xnem_parse_limits(const char *s, struct xnem_limits *lim)
{
	static const char *const names[] = {
		"queues",   "sq-order", "cq-order",	"inflight",
		"contexts", "regions",	"region-pages", "pages",
	};
	u32 *const values[] = {
		&lim->queues,	&lim->sq_order, &lim->cq_order,	    &lim->inflight,
		&lim->contexts, &lim->regions,	&lim->region_pages, &lim->pages,
	};
	const unsigned int nr = sizeof(names) / sizeof(names[0]);
	u32 seen = 0;

	while (*s) {
		const char *key = s;
		unsigned int len, i;
		u32 v;

		for (len = 0; key[len] && key[len] != '=' && key[len] != ' '; len++)
			;
		if (!len || key[len] != '=')
			return false;
		s = key + len + 1;
		if (!take_u32(&s, &v))
			return false;
		for (i = 0; i < nr; i++) {
			if (!key_is(key, len, names[i]))
				continue;
			if (seen & (1u << i))
				return false;
			seen |= 1u << i;
			*values[i] = v;
		}
		if (*s == ' ' && s[1])
			s++;
		else if (*s)
			return false;
	}
	if (seen != (1u << nr) - 1)
		return false;
	return lim->queues && lim->sq_order <= XNEM_RING_ORDER_MAX &&
	       lim->cq_order <= XNEM_RING_ORDER_MAX && lim->inflight && lim->contexts &&
	       lim->regions && lim->region_pages && lim->pages;
}

bool xnem_zone_name_ok(const char *s)
{
	unsigned int n = 0;

	for (; *s; s++, n++) {
		if ((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
		    (*s >= 'A' && *s <= 'Z') || *s == '.' || *s == '_' || *s == '-')
			continue;
		return false;
	}
	return n && n <= XNEM_ZONE_NAME_MAX;
}
