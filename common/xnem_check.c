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

/* Descriptor pages that @n entries of @per a page need. */
static u32 desc_pages(u32 n, u32 per)
{
	return n / per + !!(n % per);
}

u32 xnem_register_refs(u32 flags, u32 nr_pages, u32 nr_segments)
{
	u32 refs = nr_pages;

	if (flags & XNEM_REGION_WINDOWED)
		refs = 0;
	else if (flags & XNEM_REGION_INDIRECT)
		refs = desc_pages(nr_pages, XNEM_DESC_REFS);
	if (flags & XNEM_REGION_SEGMENTS)
		refs += desc_pages(nr_segments, XNEM_DESC_SEGMENTS);
	return refs;
}

static enum xnem_status check_register(const struct xnem_request *req,
				       const struct xnem_limits *lim, u64 features)
{
	u64 length = xnem_le64_get(req->u.reg.length);
	u32 offset = xnem_le32_get(req->u.reg.offset);
	u32 access = xnem_le32_get(req->u.reg.access);
	u32 flags = xnem_le32_get(req->u.reg.flags);
	u32 nr_pages = xnem_le32_get(req->u.reg.nr_pages);
	bool windowed = flags & XNEM_REGION_WINDOWED;
	bool segments = flags & XNEM_REGION_SEGMENTS;
	u32 nr_refs, i;

	if (flags & ~XNEM_REGION_ALL)
		return XNEM_ST_INVALID;
	if ((flags & (XNEM_REGION_SEGMENTS | XNEM_REGION_ONCE)) && !(features & XNEM_FEAT_SEGMENTS))
		return XNEM_ST_UNSUPPORTED;
	if (windowed && !(features & XNEM_FEAT_WINDOW))
		return XNEM_ST_UNSUPPORTED;
	if (windowed && (flags & XNEM_REGION_INDIRECT))
		return XNEM_ST_INVALID;
	if (!access || (access & ~(XNEM_ACCESS_READ | XNEM_ACCESS_WRITE)))
		return XNEM_ST_INVALID;
	if (!length || !nr_pages)
		return XNEM_ST_INVALID;
	if (segments) {
		/* The rest when the table has been read: xnem_check_segments(). */
		if (!offset || offset > XNEM_SEGMENTS_MAX || offset > nr_pages)
			return XNEM_ST_INVALID;
	} else if (offset >= XNEM_PAGE_SIZE || nr_pages != xnem_pages_of(offset, length)) {
		return XNEM_ST_INVALID;
	}
	if (nr_pages > (windowed ? XNEM_WINDOWED_PAGES_MAX : lim->region_pages))
		return XNEM_ST_LIMIT;
	if (!windowed && !(flags & XNEM_REGION_INDIRECT) && nr_pages > XNEM_INLINE_REFS)
		return XNEM_ST_INVALID;

	nr_refs = xnem_register_refs(flags, nr_pages, segments ? offset : 0);
	if (nr_refs > XNEM_INLINE_REFS)
		return XNEM_ST_INVALID;
	for (i = nr_refs; i < XNEM_INLINE_REFS; i++)
		if (req->u.reg.ref[i])
			return XNEM_ST_INVALID;
	return XNEM_ST_OK;
}

enum xnem_status xnem_check_segments(const struct xnem_segment *seg, u32 nr, u64 length,
				     u32 nr_pages)
{
	u64 sum = 0, pages = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		u64 len = xnem_le64_get(seg[i].length);
		u32 offset = xnem_le32_get(seg[i].offset);

		/* Bounded by what is left, so that the sums cannot wrap. */
		if (seg[i].pad || offset >= XNEM_PAGE_SIZE || !len || len > length - sum)
			return XNEM_ST_INVALID;
		sum += len;
		pages += xnem_pages_of(offset, len);
	}
	return sum == length && pages == nr_pages ? XNEM_ST_OK : XNEM_ST_INVALID;
}

static enum xnem_status check_open(const struct xnem_request *req, u64 features)
{
	u32 flags = xnem_le32_get(req->u.open.flags);
	u32 order = xnem_le32_get(req->u.open.inbox_order);
	u32 i;

	if (!(features & XNEM_FEAT_CPAGE))
		return XNEM_ST_UNSUPPORTED;
	if ((flags & ~XNEM_OPEN_INBOX) || !all_zero64(req->u.open.pad, 6))
		return XNEM_ST_INVALID;
	if (flags && !(features & (XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY)))
		return XNEM_ST_UNSUPPORTED;
	if (!flags && (req->u.open.control_ref || order))
		return XNEM_ST_INVALID;
	if (order > XNEM_INBOX_ORDER_MAX)
		return XNEM_ST_INVALID;
	for (i = flags ? 1u << order : 0; i < 1u << XNEM_INBOX_ORDER_MAX; i++)
		if (req->u.open.inbox_ref[i])
			return XNEM_ST_INVALID;
	return XNEM_ST_OK;
}

static enum xnem_status check_message(const struct xnem_request *req, u64 features)
{
	u32 length = xnem_le32_get(req->u.msg.length);

	if (!(features & XNEM_FEAT_MESSAGE))
		return XNEM_ST_UNSUPPORTED;
	if (length > XNEM_MESSAGE_MAX || req->u.msg.pad1 || req->u.msg.pad2)
		return XNEM_ST_INVALID;
	for (; length < XNEM_MESSAGE_MAX; length++)
		if (req->u.msg.data[length])
			return XNEM_ST_INVALID;
	return XNEM_ST_OK;
}

static enum xnem_status check_describe(const struct xnem_request *req,
				       const struct xnem_limits *lim, u64 features)
{
	u32 nr_pages = xnem_le32_get(req->u.describe.nr_pages);
	u32 indirect = xnem_le32_get(req->u.describe.indirect);
	u32 nr_refs = indirect ? 1 : nr_pages;

	if (!(features & XNEM_FEAT_WINDOW))
		return XNEM_ST_UNSUPPORTED;
	if (xnem_le32_get(req->u.describe.window) >= lim->windows || nr_pages > lim->window_pages ||
	    indirect > 1 || nr_refs > XNEM_DESCRIBE_REFS || (indirect && !nr_pages))
		return XNEM_ST_INVALID;
	for (; nr_refs < XNEM_DESCRIBE_REFS; nr_refs++)
		if (req->u.describe.ref[nr_refs])
			return XNEM_ST_INVALID;
	return XNEM_ST_OK;
}

static enum xnem_status check_copy(const struct xnem_request *req)
{
	u16 flags = xnem_le16_get(req->flags);

	if (!(flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST)) && req->u.copy.immediate)
		return XNEM_ST_INVALID;
	return all_zero64(req->u.copy.pad, 4) ? XNEM_ST_OK : XNEM_ST_INVALID;
}

/* Flags that operation @op can carry. */
static u16 flags_of(u16 op)
{
	switch (op) {
	case XNEM_OP_COPY:
		return XNEM_REQ_ALL;
	case XNEM_OP_DEREGISTER:
	case XNEM_OP_CLOSE_CONTEXT:
	case XNEM_OP_CANCEL:
	case XNEM_OP_DESCRIBE:
		return XNEM_REQ_CPAGE;
	default:
		return XNEM_REQ_CPAGE | XNEM_REQ_FENCE;
	}
}

static enum xnem_status check_flags(u16 op, u16 flags, u64 features)
{
	u64 need = 0;

	if (flags & ~XNEM_REQ_ALL)
		return XNEM_ST_INVALID;
	if (flags & XNEM_REQ_CPAGE)
		need |= XNEM_FEAT_CPAGE;
	if (flags & (XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST))
		need |= XNEM_FEAT_NOTIFY;
	if (flags & XNEM_REQ_FENCE)
		need |= XNEM_FEAT_FENCE;
	if (flags & XNEM_REQ_BOUNDED)
		need |= XNEM_FEAT_CANCEL;
	if (need & ~features)
		return XNEM_ST_UNSUPPORTED;
	return flags & ~flags_of(op) ? XNEM_ST_INVALID : XNEM_ST_OK;
}

enum xnem_status xnem_check_request(const struct xnem_request *req, const struct xnem_limits *lim,
				    u64 features)
{
	u16 op = xnem_le16_get(req->op);
	enum xnem_status status = check_flags(op, xnem_le16_get(req->flags), features);

	if (status != XNEM_ST_OK)
		return status;
	if (req->pad0)
		return XNEM_ST_INVALID;
	if (xnem_le32_get(req->context) >= lim->contexts)
		return XNEM_ST_INVALID;

	switch (op) {
	case XNEM_OP_PING:
	case XNEM_OP_CLOSE_CONTEXT:
		return all_zero64(req->u.none.pad, 12) ? XNEM_ST_OK : XNEM_ST_INVALID;
	case XNEM_OP_REGISTER:
		return check_register(req, lim, features);
	case XNEM_OP_DEREGISTER:
		return all_zero64(req->u.dereg.pad, 11) ? XNEM_ST_OK : XNEM_ST_INVALID;
	case XNEM_OP_COPY:
		return check_copy(req);
	case XNEM_OP_OPEN_CONTEXT:
		return check_open(req, features);
	case XNEM_OP_MESSAGE:
		return check_message(req, features);
	case XNEM_OP_CANCEL:
		if (!(features & XNEM_FEAT_CANCEL))
			return XNEM_ST_UNSUPPORTED;
		return !req->u.cancel.pad1 && all_zero64(req->u.cancel.pad, 11) ? XNEM_ST_OK :
										  XNEM_ST_INVALID;
	case XNEM_OP_DESCRIBE:
		return check_describe(req, lim, features);
	default:
		return XNEM_ST_UNSUPPORTED;
	}
}

bool xnem_check_completion(const struct xnem_completion *c, u16 op, u16 flags, u64 length)
{
	u16 status = xnem_le16_get(c->status);
	u64 done = xnem_le64_get(c->bytes_done);

	if (status > XNEM_ST_MAX || c->pad)
		return false;
	if (op != XNEM_OP_COPY)
		return !done;
	if (done > length)
		return false;
	/* Success is every byte, unless the regions may end before. */
	return status != XNEM_ST_OK || (flags & XNEM_REQ_BOUNDED) || done == length;
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
		"queues",
		"sq-order",
		"cq-order",
		"inflight",
		"contexts",
		"regions",
		"region-pages",
		"pages",
		/* From here on they may be absent. */
		"windows",
		"window-pages",
	};
	u32 *const values[] = {
		&lim->queues,	&lim->sq_order,	    &lim->cq_order,	&lim->inflight,
		&lim->contexts, &lim->regions,	    &lim->region_pages, &lim->pages,
		&lim->windows,	&lim->window_pages,
	};
	const unsigned int nr = sizeof(names) / sizeof(names[0]);
	const u32 needed = (1u << 8) - 1;
	u32 seen = 0;

	lim->windows = 0;
	lim->window_pages = 0;
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
	if ((seen & needed) != needed)
		return false;
	if (lim->windows > XNEM_WINDOWS_MAX || lim->window_pages > XNEM_WINDOW_PAGES_MAX ||
	    (lim->windows && !lim->window_pages))
		return false;
	return lim->queues && lim->sq_order <= XNEM_RING_ORDER_MAX &&
	       lim->cq_order <= XNEM_RING_ORDER_MAX && lim->inflight && lim->contexts &&
	       lim->contexts <= XNEM_CONTEXTS_MAX && lim->regions && lim->region_pages &&
	       lim->pages;
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
