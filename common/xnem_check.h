/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Everything a peer says is looked at here before it is used: requests (by
 * the backend), completions (by the frontend), xenstore values (by both).
 * Each function works on a private copy that nobody else can change.
 */
#ifndef XNEM_CHECK_H
#define XNEM_CHECK_H

#include "xnem_port.h"
#include <xen/io/xnemif.h>

/** Negotiated limits, in the units of xnemif.h section 1. */
struct xnem_limits {
	u32 queues;
	u32 sq_order;
	u32 cq_order;
	u32 inflight;
	u32 contexts;
	u32 regions;
	u32 region_pages;
	u32 pages;
	/** 0: none; then window_pages means nothing. */
	u32 windows;
	u32 window_pages;
};

/**
 * A request, by itself: operation, flags, padding and every field's range.
 * @features are those in use.  Says nothing of what a cookie names.
 * Returns XNEM_ST_OK or the status to answer with.
 */
enum xnem_status xnem_check_request(const struct xnem_request *req, const struct xnem_limits *lim,
				    u64 features);

/** Do bytes @offset .. @offset + @length - 1 lie within @size bytes? */
static inline bool xnem_range_ok(u64 offset, u64 length, u64 size)
{
	return offset <= size && length <= size - offset;
}

/** Pages that @length bytes from byte @offset (below 4096) of a page touch. */
static inline u64 xnem_pages_of(u32 offset, u64 length)
{
	/* No sum that could wrap: length may be anything. */
	return (length >> XNEM_PAGE_SHIFT) +
	       (((length & (XNEM_PAGE_SIZE - 1)) + offset + XNEM_PAGE_SIZE - 1) >> XNEM_PAGE_SHIFT);
}

/** Entries of a register request's ref[] that are used. */
u32 xnem_register_refs(u32 flags, u32 nr_pages, u32 nr_segments);

/**
 * The segment table of a register request that is right otherwise: @nr (1 or
 * more) entries that must have @length bytes in @nr_pages pages together.
 */
enum xnem_status xnem_check_segments(const struct xnem_segment *seg, u32 nr, u64 length,
				     u32 nr_pages);

/**
 * A completion, against the request it claims to answer: @op, @flags and
 * @length (of a copy) as posted.  False: the backend does not keep to the
 * protocol.
 */
bool xnem_check_completion(const struct xnem_completion *c, u16 op, u16 flags, u64 length);

/* Xenstore values: zero-terminated text.  All return true when it is right. */

/** "<min> <max>" */
bool xnem_parse_versions(const char *s, u32 *min, u32 *max);
/** Up to 16 hexadecimal digits, at least one. */
bool xnem_parse_hex64(const char *s, u64 *value);
/** A decimal number below 2^32. */
bool xnem_parse_u32(const char *s, u32 *value);
/**
 * "key=decimal ..."; unknown keys are ignored, absent ones make it wrong, as
 * do values that xnemif.h does not allow.
 */
bool xnem_parse_limits(const char *s, struct xnem_limits *lim);
/** Space-separated references; their number must be a power of two <= @max. */
bool xnem_parse_refs(const char *s, u32 *refs, u32 max, u32 *count);
/** A zone's name: 1 .. 63 characters of [A-Za-z0-9._-]. */
bool xnem_zone_name_ok(const char *s);

#endif /* XNEM_CHECK_H */
