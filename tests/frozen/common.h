/* SPDX-License-Identifier: MIT */
/*
 * common.h - what the tests have in common: regions and copies, a context's pages,
 * windows.
 */
#ifndef FROZEN_COMMON_H
#define FROZEN_COMMON_H

#include <inttypes.h>

#include "../lib/pattern.h"
#include "../lib/tap.h"
#include "frontend.h"

struct test {
	const char *name;
	/** 0 when all is right; else EXPECT has said what is not. */
	int (*run)(struct frontend *fe);
	/** Pages are revoked too early on purpose. */
	bool early;
};
/** Up to one without a name. */
extern const struct test connection_tests[], region_tests[], refusal_tests[], context_tests[],
	order_tests[], queue_tests[];

/** A connection for a test; ends the program when there is none. */
void begin_test(struct frontend *fe);
/** The test @failed or not; its connection ends, and the backend has to let go of all pages. */
int end_test(struct frontend *fe, const struct test *test, int failed);
/**
 * It was cut off: the backend is Closing, or what comes up to @last, lets go, and does not
 * serve it again before it is attached anew.
 */
int cut_off(struct frontend *fe, int last);

/** Bytes from the first on that are those of @from, again and again, from its byte @at on. */
uint64_t same(const unsigned char *mem, uint64_t len, const unsigned char *from, uint64_t from_len,
	      uint64_t at);

#define R XNEM_ACCESS_READ
#define W XNEM_ACCESS_WRITE
#define RW (R | W)
/** No reference: beyond every grant table. */
#define NO_REF 1000000
/** Tag and context of whoever does not say. */
#define TAG 7
#define CTX 0

struct region {
	struct xnem_cookie cookie;
	struct pages *pages;
	/** The first byte, where the pages are its own. */
	unsigned char *mem;
};

struct xnem_request request(uint16_t op, uint16_t flags);
/** A test, and everywhere the sign that the device works. */
int ping(struct frontend *fe);
/**
 * The references of @req's nr_pages pages: inline, or in descriptor pages.  When
 * fewer are granted than it has, they come again and again.
 */
void give_refs(struct frontend *fe, struct xnem_request *req, const struct pages *p);
struct xnem_request register_request(uint32_t access, uint32_t flags, uint32_t offset,
				     uint64_t length);
uint16_t register_it(struct frontend *fe, struct region *r, const struct xnem_request *req);
/** A region of pages of its own. */
int make_region_in(struct frontend *fe, uint32_t context, struct region *r, uint32_t access,
		   uint32_t flags, uint32_t offset, uint64_t length);
/** The same in context CTX. */
int make_region(struct frontend *fe, struct region *r, uint32_t access, uint32_t flags,
		uint32_t offset, uint64_t length);
struct xnem_completion deregister(struct frontend *fe, const struct region *r);
struct xnem_request copy_request(uint16_t flags, const struct region *dst, uint64_t dst_off,
				 const struct region *src, uint64_t src_off, uint64_t len);
struct xnem_completion copy(struct frontend *fe, uint16_t flags, const struct region *dst,
			    uint64_t dst_off, const struct region *src, uint64_t src_off,
			    uint64_t len);

struct context {
	struct pages *cpage, *control, *inbox;
	struct xnem_cpage_entry *entries;
	struct xnem_context_control *ctl;
	struct xnem_inbox_slot *slots;
	uint32_t nr_slots, entries_read, slots_read;
	struct xnem_cookie address;
};

struct xnem_request open_request(struct frontend *fe, struct context *ctx, bool inbox,
				 uint32_t order);
int open_context(struct frontend *fe, struct context *ctx, bool inbox, uint32_t order);
struct xnem_completion close_context(struct frontend *fe);
/** The next entry of the completion page, which must be there. */
int next_entry(struct context *ctx, struct xnem_cpage_entry *e);
/** The next slot of the inbox, which must be there; it is free again. */
int next_slot(struct context *ctx, struct xnem_inbox_slot *s);
bool inbox_empty(const struct context *ctx);
struct xnem_request message_request(struct xnem_cookie to, const void *text, uint32_t len);
/** Nothing of it is granted unless post_describe() does it: its copies wait. */
int make_windowed(struct frontend *fe, struct region *r, uint32_t access, uint32_t offset,
		  uint64_t length, struct pages *p);
/** The next want, asleep until it comes, and its window. */
int next_want(struct frontend *fe, uint32_t *window, struct xnem_want *want);
/** The answer to a want: pages of @p, which repeat; NULL: it cannot. */
uint32_t post_describe(struct frontend *fe, uint32_t i, const struct xnem_want *want,
		       const struct pages *p);
/**
 * Answers wants of @a and @b until @id is answered; *@n counts them.  Those that the
 * backend has given up meanwhile, on a slow machine, are asked for again.
 */
int serve_wants(struct frontend *fe, uint32_t id, const struct region *a, const struct region *b,
		uint32_t *n);

#endif /* FROZEN_COMMON_H */
