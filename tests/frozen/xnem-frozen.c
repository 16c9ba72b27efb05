// SPDX-License-Identifier: MIT
/*
 * xnem-frozen - does the backend of today serve a frontend of version 1?
 *
 * Runs in a guest that has a device and no XNEM module loaded.  Every operation
 * of version 1, every status that can be brought about, and the ways in which a
 * device ends, as xnemif-1.h tells them.  Each test has a connection of its own,
 * and ends with a look whether the backend has let go of all pages.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frontend.h"

static const char usage_text[] =
	"usage: xnem-frozen COMMAND\n"
	"\n"
	"  suite                      all tests; prints in the Test Anything Protocol\n"
	"  corrupt HOW                breaks the protocol and looks that it is cut off; HOW:\n"
	"                             submission, completion (index), inflight (too many requests)\n"
	"  pull COOKIE BYTES SEED     copy from it and verify\n"
	"  push COOKIE BYTES SEED     copy a pattern to it\n"
	"  export FILE BYTES SEED     own a region with a pattern, its cookie in FILE; at SIGTERM\n"
	"                             somebody must have put the pattern SEED + 1 there\n"
	"  client HOST PORT BYTES     a job for xnem-serve, an ordinary program of libxnem\n"
	"\n"
	"A COOKIE is text as libxnem has it.  Exit status: 0 ok, 1 not ok, 2 cannot tell,\n"
	"64 wrong arguments.\n";

/* ---- what a test says ---- */

#define EXPECT(want, expr)                                                    \
	do {                                                                  \
		uint64_t got_ = (uint64_t)(expr), want_ = (uint64_t)(want);   \
		if (got_ != want_)                                            \
			return not_as_expected(__LINE__, #expr, want_, got_); \
	} while (0)
/* What was called has said it already. */
#define CALL(expr)                \
	do {                      \
		if (expr)         \
			return 1; \
	} while (0)

static char noted[80];

static int not_as_expected(int line, const char *expr, uint64_t want, uint64_t got)
{
	printf("# line %d: %s is %" PRIu64 ", not %" PRIu64 "%s%s\n", line, expr, got, want,
	       *noted ? ": " : "", noted);
	return 1;
}

/* Also stands in the line above. */
static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(noted, sizeof(noted), format, args);
	va_end(args);
}

/* ---- bytes: as xnem-test has them, so that both can check each other's ---- */

static unsigned char pattern_at(uint64_t seed, uint64_t pos)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15 + pos / 8 * 0xd1342543de82ef95 + 0x2545f4914f6cdd1d;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (unsigned char)(z >> (pos % 8 * 8));
}

static void fill(unsigned char *mem, uint64_t len, uint64_t seed, uint64_t pos)
{
	uint64_t i;

	for (i = 0; i < len; i++)
		mem[i] = pattern_at(seed, pos + i);
}

/* Bytes from the first on that are right. */
static uint64_t right(const unsigned char *mem, uint64_t len, uint64_t seed, uint64_t pos)
{
	uint64_t i;

	for (i = 0; i < len && mem[i] == pattern_at(seed, pos + i); i++)
		;
	return i;
}

static uint64_t all_are(const unsigned char *mem, uint64_t len, unsigned char value)
{
	uint64_t i;

	for (i = 0; i < len && mem[i] == value; i++)
		;
	return i;
}

/* The same for bytes that must be those of @from, again and again, from its byte @at on. */
static uint64_t same(const unsigned char *mem, uint64_t len, const unsigned char *from,
		     uint64_t from_len, uint64_t at)
{
	uint64_t i;

	for (i = 0; i < len && mem[i] == from[(at + i) % from_len]; i++)
		;
	return i;
}

/* ---- regions and copies ---- */

#define R XNEM_ACCESS_READ
#define W XNEM_ACCESS_WRITE
#define RW (R | W)
/* Tag and context of whoever does not say. */
#define TAG 7
#define CTX 0

struct region {
	struct xnem_cookie cookie;
	struct pages *pages;
	/* the first byte, where the pages are its own */
	unsigned char *mem;
};

static struct xnem_request request(uint16_t op, uint16_t flags)
{
	struct xnem_request req = { .op = op, .flags = flags, .context = CTX, .tag = TAG };

	return req;
}

static uint32_t pages_of(uint32_t offset, uint64_t length)
{
	return (offset + length + XNEM_PAGE_SIZE - 1) / XNEM_PAGE_SIZE;
}

/* A page (or more) of @nr references, which repeat the @have that are there. */
static struct pages *describe_pages(struct frontend *fe, const uint32_t *have, uint32_t nr_have,
				    uint32_t nr)
{
	struct pages *desc = grant_pages(fe, (nr + XNEM_DESC_REFS - 1) / XNEM_DESC_REFS, false);
	xnem_le32 *ref = (void *)desc->mem;
	uint32_t i;

	for (i = 0; i < nr; i++)
		ref[i] = have[i % nr_have];
	return desc;
}

/*
 * The references of @req's nr_pages pages: inline, or in descriptor pages.  When
 * fewer are granted than it has, they come again and again.
 */
static void give_refs(struct frontend *fe, struct xnem_request *req, const struct pages *p)
{
	uint32_t i, nr = req->u.reg.nr_pages;
	struct pages *desc;

	if (nr <= XNEM_INLINE_REFS && !(req->u.reg.flags & XNEM_REGION_INDIRECT)) {
		for (i = 0; i < nr; i++)
			req->u.reg.ref[i] = p->ref[i % p->nr];
		return;
	}
	req->u.reg.flags |= XNEM_REGION_INDIRECT;
	desc = describe_pages(fe, p->ref, p->nr, nr);
	for (i = 0; i < desc->nr; i++)
		req->u.reg.ref[i] = desc->ref[i];
}

static struct xnem_request register_request(uint32_t access, uint32_t flags, uint32_t offset,
					    uint64_t length)
{
	struct xnem_request req = request(XNEM_OP_REGISTER, 0);

	req.u.reg.length = length;
	req.u.reg.offset = offset;
	req.u.reg.access = access;
	req.u.reg.flags = flags;
	req.u.reg.nr_pages = pages_of(offset, length);
	return req;
}

static uint16_t register_it(struct frontend *fe, struct region *r, const struct xnem_request *req)
{
	struct xnem_completion c = call(fe, req);

	r->cookie = (struct xnem_cookie){ c.data[0], c.data[1] };
	return c.status;
}

/* A region of pages of its own. */
static int make_region(struct frontend *fe, struct region *r, uint32_t access, uint32_t flags,
		       uint32_t offset, uint64_t length)
{
	struct xnem_request req = register_request(access, flags, offset, length);

	r->pages = grant_pages(fe, req.u.reg.nr_pages, access & W);
	r->mem = r->pages->mem + offset;
	if (!(flags & XNEM_REGION_WINDOWED))
		give_refs(fe, &req, r->pages);
	EXPECT(XNEM_ST_OK, register_it(fe, r, &req));
	EXPECT(true, r->cookie.id != 0);
	return 0;
}

static struct xnem_completion deregister(struct frontend *fe, const struct region *r)
{
	struct xnem_request req = request(XNEM_OP_DEREGISTER, 0);

	req.u.dereg.region_id = r->cookie.id;
	return call(fe, &req);
}

static struct xnem_request copy_request(uint16_t flags, const struct region *dst, uint64_t dst_off,
					const struct region *src, uint64_t src_off, uint64_t len)
{
	struct xnem_request req = request(XNEM_OP_COPY, flags);

	req.u.copy.src = src->cookie;
	req.u.copy.dst = dst->cookie;
	req.u.copy.src_offset = src_off;
	req.u.copy.dst_offset = dst_off;
	req.u.copy.length = len;
	return req;
}

static struct xnem_completion copy(struct frontend *fe, uint16_t flags, const struct region *dst,
				   uint64_t dst_off, const struct region *src, uint64_t src_off,
				   uint64_t len)
{
	struct xnem_request req = copy_request(flags, dst, dst_off, src, src_off, len);

	return call(fe, &req);
}

/* ---- a context's pages ---- */

struct context {
	struct pages *cpage, *control, *inbox;
	struct xnem_cpage_entry *entries;
	struct xnem_context_control *ctl;
	struct xnem_inbox_slot *slots;
	uint32_t nr_slots, entries_read, slots_read;
	struct xnem_cookie address;
};

static struct xnem_request open_request(struct frontend *fe, struct context *ctx, bool inbox,
					uint32_t order)
{
	struct xnem_request req = request(XNEM_OP_OPEN_CONTEXT, 0);
	uint32_t i;

	memset(ctx, 0, sizeof(*ctx));
	ctx->cpage = grant_pages(fe, 1, true);
	ctx->entries = (void *)ctx->cpage->mem;
	req.u.open.cpage_ref = ctx->cpage->ref[0];
	if (!inbox)
		return req;
	ctx->control = grant_pages(fe, 1, true);
	ctx->ctl = (void *)ctx->control->mem;
	ctx->inbox = grant_pages(fe, 1u << order, true);
	ctx->slots = (void *)ctx->inbox->mem;
	ctx->nr_slots = XNEM_INBOX_SLOTS_PER_PAGE << order;
	req.u.open.flags = XNEM_OPEN_INBOX;
	req.u.open.control_ref = ctx->control->ref[0];
	req.u.open.inbox_order = order;
	for (i = 0; i < ctx->inbox->nr; i++)
		req.u.open.inbox_ref[i] = ctx->inbox->ref[i];
	return req;
}

static int open_context(struct frontend *fe, struct context *ctx, bool inbox, uint32_t order)
{
	struct xnem_request req = open_request(fe, ctx, inbox, order);
	struct xnem_completion c = call(fe, &req);

	EXPECT(XNEM_ST_OK, c.status);
	ctx->address = (struct xnem_cookie){ c.data[0], c.data[1] };
	EXPECT(inbox, ctx->address.id != 0);
	return 0;
}

static struct xnem_completion close_context(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_CLOSE_CONTEXT, 0);

	return call(fe, &req);
}

/* The next entry of the completion page, which must be there. */
static int next_entry(struct context *ctx, struct xnem_cpage_entry *e)
{
	struct xnem_cpage_entry *at = &ctx->entries[ctx->entries_read % XNEM_CPAGE_ENTRIES];

	EXPECT(++ctx->entries_read, load_acquire(&at->seq));
	*e = *at;
	EXPECT(XNEM_CPAGE_COMPLETION, e->kind);
	EXPECT(0, e->pad);
	return 0;
}

/* The next slot of the inbox, which must be there; it is free again. */
static int next_slot(struct context *ctx, struct xnem_inbox_slot *s)
{
	struct xnem_inbox_slot *at = &ctx->slots[ctx->slots_read % ctx->nr_slots];

	EXPECT(++ctx->slots_read, load_acquire(&at->seq));
	*s = *at;
	store_release(&ctx->ctl->inbox_cons, ctx->slots_read);
	EXPECT(0, s->pad[0] | s->pad[1] | s->pad[2]);
	return 0;
}

static bool inbox_empty(const struct context *ctx)
{
	return load_acquire(&ctx->slots[ctx->slots_read % ctx->nr_slots].seq) !=
	       ctx->slots_read + 1;
}

static struct xnem_request message_request(struct xnem_cookie to, const void *text, uint32_t len)
{
	struct xnem_request req = request(XNEM_OP_MESSAGE, 0);

	req.u.msg.to = to;
	req.u.msg.length = len;
	memcpy(req.u.msg.data, text, len);
	return req;
}

/* ---- windows ---- */

/* A region that is never granted unless describe() does it: its copies wait. */
static int make_windowed(struct frontend *fe, struct region *r, uint32_t access, uint32_t offset,
			 uint64_t length, struct pages *p)
{
	struct xnem_request req = register_request(access, XNEM_REGION_WINDOWED, offset, length);

	r->pages = p;
	r->mem = p->mem + offset;
	EXPECT(XNEM_ST_OK, register_it(fe, r, &req));
	return 0;
}

/* The window of a want that is new, or -1. */
static int new_want(struct frontend *fe)
{
	uint32_t bits = load_acquire(&fe->header->attention.windows);

	return bits ? __builtin_ctz(bits) : -1;
}

/* The next want, asleep until it comes, and its window. */
static int next_want(struct frontend *fe, uint32_t *window, struct xnem_want *want)
{
	uint64_t end = now_ms() + 10000;
	int i;

	while ((i = new_want(fe)) < 0 && now_ms() < end)
		sleep_on_event(fe, 1000);
	EXPECT(true, i >= 0 && (uint32_t)i < fe->offers.windows);
	__atomic_fetch_and(&fe->header->attention.windows, ~(1u << i), __ATOMIC_SEQ_CST);
	EXPECT(fe->wants_seen[i] + 1, load_acquire(&fe->header->want[i].seq));
	*want = fe->header->want[i];
	fe->wants_seen[i]++;
	*window = i;
	EXPECT(true, want->nr_pages >= 1 && want->nr_pages <= fe->offers.window_pages);
	EXPECT(0, want->pad[0] | want->pad[1] | want->pad[2]);
	return 0;
}

/* The answer to a want: pages of @p, which repeat; NULL: it cannot. */
static uint32_t post_describe(struct frontend *fe, uint32_t i, const struct xnem_want *want,
			      const struct pages *p)
{
	struct xnem_request req = request(XNEM_OP_DESCRIBE, 0);
	uint32_t k, id, refs[XNEM_WINDOW_PAGES_MAX];

	req.tag = 0;
	req.u.describe.window = i;
	req.u.describe.seq = want->seq;
	if (p) {
		req.u.describe.nr_pages = want->nr_pages;
		for (k = 0; k < want->nr_pages; k++)
			refs[k] = p->ref[(want->page + k) % p->nr];
		if (want->nr_pages <= XNEM_DESCRIBE_REFS) {
			memcpy(req.u.describe.ref, refs, want->nr_pages * sizeof(refs[0]));
		} else {
			req.u.describe.indirect = 1;
			req.u.describe.ref[0] =
				describe_pages(fe, refs, want->nr_pages, want->nr_pages)->ref[0];
		}
	}
	id = post(fe, &req);
	publish(fe);
	return id;
}

/*
 * Answers wants of @a and @b until @id is answered; *@n counts them.  Those that the
 * backend has given up meanwhile, on a slow machine, are asked for again.
 */
static int serve_wants(struct frontend *fe, uint32_t id, const struct region *a,
		       const struct region *b, uint32_t *n)
{
	uint64_t end = now_ms() + 20000;
	uint32_t described[64], window, i;
	struct xnem_want want;

	*n = 0;
	while (!answered(fe, id) && now_ms() < end) {
		if (new_want(fe) < 0) {
			sleep_on_event(fe, 1000);
			continue;
		}
		CALL(next_want(fe, &window, &want));
		EXPECT(true, want.region_id == a->cookie.id || want.region_id == b->cookie.id);
		EXPECT(true, *n < 64);
		described[(*n)++] = post_describe(
			fe, window, &want, want.region_id == a->cookie.id ? a->pages : b->pages);
	}
	/* Let go of, all of them. */
	for (i = 0; i < *n; i++)
		EXPECT(XNEM_ST_OK, wait_for(fe, described[i], 5000).status);
	return 0;
}

/* ---- tests: the connection and its queue ---- */

static int offers(struct frontend *fe)
{
	const struct offers *o = &fe->offers;

	EXPECT(true, o->version_min <= 1 && o->version_max >= 1);
	EXPECT(FROZEN_FEATURES, o->features & FROZEN_FEATURES);
	EXPECT(true, o->fabric_id != 0);
	EXPECT(true, o->queues >= 1 && o->inflight >= 1 && o->regions >= 1);
	EXPECT(true, o->sq_order <= XNEM_RING_ORDER_MAX && o->cq_order <= XNEM_RING_ORDER_MAX);
	EXPECT(true, o->contexts >= 1 && o->contexts <= XNEM_CONTEXTS_MAX);
	EXPECT(true, o->region_pages >= 1 && o->pages >= 1);
	EXPECT(true, o->windows >= 1 && o->windows <= XNEM_WINDOWS_MAX);
	EXPECT(true, o->window_pages >= 1 && o->window_pages <= XNEM_WINDOW_PAGES_MAX);
	return 0;
}

static int ping(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	struct xnem_completion c = call(fe, &req);

	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.bytes_done | c.data[0] | c.data[1]);
	return 0;
}

/* Both rings several times around, full batches. */
static int rings_wrap(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	uint32_t id[256], n = fe->sq_size, round, i;

	EXPECT(true, n <= 256 && n <= fe->max_inflight);
	for (round = 0; round < 3 * fe->cq_size / n + 1; round++) {
		for (i = 0; i < n; i++)
			id[i] = post(fe, &req);
		publish(fe);
		for (i = 0; i < n; i++)
			EXPECT(XNEM_ST_OK, wait_for(fe, id[i], 10000).status);
	}
	EXPECT(true, fe->sq_prod > 2 * fe->sq_size && fe->cq_cons > 2 * fe->cq_size);
	return 0;
}

static int features_not_accepted(struct frontend *fe)
{
	static const struct wish none = { .features = "0" };
	struct region a, b, c;
	struct context ctx;
	struct xnem_request req;
	uint16_t flag;

	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, &none));
	CALL(ping(fe));
	CALL(make_region(fe, &a, R, 0, 1, 5000));
	CALL(make_region(fe, &b, W, 0, 2, 5000));
	fill(a.mem, 5000, 1, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 5000).status);
	EXPECT(5000, right(b.mem, 5000, 1, 0));

	for (flag = 1; flag < XNEM_REQ_ALL; flag <<= 1) {
		note("flag %#x", flag);
		EXPECT(XNEM_ST_UNSUPPORTED, copy(fe, flag, &b, 0, &a, 0, 1).status);
	}
	note("%s", "");
	req = open_request(fe, &ctx, false, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = message_request((struct xnem_cookie){ 1, 1 }, "x", 1);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = request(XNEM_OP_CANCEL, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = request(XNEM_OP_DESCRIBE, 0);
	EXPECT(XNEM_ST_UNSUPPORTED, call(fe, &req).status);
	req = register_request(R, XNEM_REGION_ONCE, 0, 1);
	req.u.reg.ref[0] = a.pages->ref[0];
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	req = register_request(R, XNEM_REGION_SEGMENTS, 1, 1);
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	req = register_request(R, XNEM_REGION_WINDOWED, 0, 1);
	EXPECT(XNEM_ST_UNSUPPORTED, register_it(fe, &c, &req));
	return 0;
}

static int reconnect(struct frontend *fe)
{
	uint64_t fabric_id = fe->offers.fabric_id;
	struct region a, b;

	CALL(make_region(fe, &a, RW, XNEM_REGION_ANY_TAG, 0, 100));
	EXPECT(XNEM_ST_OK, copy(fe, 0, &a, 50, &a, 0, 50).status);
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	EXPECT(fabric_id, fe->offers.fabric_id);
	/* A region of before is gone. */
	CALL(make_region(fe, &b, RW, 0, 0, 100));
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 1).status);
	EXPECT(true, b.cookie.id != a.cookie.id);
	return 0;
}

/* The backend closes, as it says; the device comes back. */
static int refused(struct frontend *fe, const struct wish *wish)
{
	EXPECT(true, disconnect_device(fe));
	EXPECT(false, connect_device(fe, wish));
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

static int wrong_version(struct frontend *fe)
{
	static const struct wish wish = { .version = "4294967295" };

	return refused(fe, &wish);
}

static int feature_not_offered(struct frontend *fe)
{
	static const struct wish wish = { .features = "8000000000000000" };

	return refused(fe, &wish);
}

static int header_not_granted(struct frontend *fe)
{
	static const struct wish wish = { .header_ref = "1000000" };

	return refused(fe, &wish);
}

/* ---- tests: regions and copies ---- */

static int odd_offsets(struct frontend *fe)
{
	static const struct {
		uint64_t dst, src, len;
	} t[] = { { 0, 0, 20000 }, { 1, 0, 1 },	    { 0, 3, 4096 },	{ 95, 3973, 8193 },
		  { 7, 7, 4089 },  { 19999, 0, 1 }, { 12289, 4095, 7 }, { 4095, 1, 12000 } };
	const uint64_t bytes = 20000;
	struct region a, b;
	unsigned int i;

	CALL(make_region(fe, &a, R, 0, 123, bytes));
	CALL(make_region(fe, &b, W, 0, 4001, bytes));
	fill(a.mem, bytes, 1, 0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t all = (uint64_t)b.pages->nr * XNEM_PAGE_SIZE;
		uint64_t before = 4001 + t[i].dst, after = all - before - t[i].len;
		struct xnem_completion c;

		memset(b.pages->mem, 0xee, all);
		c = copy(fe, 0, &b, t[i].dst, &a, t[i].src, t[i].len);
		note("copy %u", i);
		EXPECT(XNEM_ST_OK, c.status);
		EXPECT(t[i].len, c.bytes_done);
		EXPECT(t[i].len, right(b.mem + t[i].dst, t[i].len, 1, t[i].src));
		/* Not a byte beside it, in its pages either. */
		EXPECT(before, all_are(b.pages->mem, before, 0xee));
		EXPECT(after, all_are(b.mem + t[i].dst + t[i].len, after, 0xee));
	}
	return 0;
}

static int empty_copies(struct frontend *fe)
{
	struct region a, b;
	struct xnem_completion c;

	CALL(make_region(fe, &a, R, 0, 0, 100));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	c = copy(fe, 0, &b, 0, &a, 0, 0);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.bytes_done);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 100, &a, 100, 0).status);
	/* Checked like any other. */
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 101, &a, 0, 0).status);
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &a, 0, &a, 0, 0).status);
	return 0;
}

static int large_copy(struct frontend *fe)
{
	const uint64_t bytes = 700001;
	struct xnem_completion c;
	struct region a, b;

	CALL(make_region(fe, &a, R, 0, 5, bytes));
	CALL(make_region(fe, &b, W, 0, 4090, bytes));
	fill(a.mem, bytes, 2, 0);
	c = copy(fe, 0, &b, 0, &a, 0, bytes);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(bytes, c.bytes_done);
	EXPECT(bytes, right(b.mem, bytes, 2, 0));
	return 0;
}

/* More references than one descriptor page holds. */
static int two_descriptor_pages(struct frontend *fe)
{
	const uint32_t nr = XNEM_DESC_REFS + 76, have = 8;
	const uint64_t at = (XNEM_DESC_REFS - 1) * (uint64_t)XNEM_PAGE_SIZE + 100;
	struct pages *p = grant_pages(fe, have, false);
	struct xnem_request req =
		register_request(R, XNEM_REGION_INDIRECT, 0, (uint64_t)nr * XNEM_PAGE_SIZE);
	const uint64_t bytes = 3 * XNEM_PAGE_SIZE;
	struct region a, b;

	give_refs(fe, &req, p);
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));
	CALL(make_region(fe, &b, W, 0, 0, bytes));
	fill(p->mem, have * XNEM_PAGE_SIZE, 3, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, at, bytes).status);
	EXPECT(bytes, same(b.mem, bytes, p->mem, have * XNEM_PAGE_SIZE, at));
	return 0;
}

/* @nr segments of @len bytes each, at odd places of @p's pages, one page each. */
static int segments_of(struct frontend *fe, uint32_t nr, uint32_t len, bool indirect)
{
	const uint64_t bytes = (uint64_t)nr * len;
	struct pages *table =
		grant_pages(fe, (nr + XNEM_DESC_SEGMENTS - 1) / XNEM_DESC_SEGMENTS, false);
	struct xnem_segment *seg = (void *)table->mem;
	struct pages *p = grant_pages(fe, 16, true);
	struct xnem_request req = request(XNEM_OP_REGISTER, 0);
	uint32_t i, first = indirect ? 1 : nr;
	struct region a, b;

	/* Each has a stretch of a page to itself, so that none hides another. */
	EXPECT(true, nr <= 16 * 30 && len <= 130);
	for (i = 0; i < nr; i++) {
		seg[i].length = len;
		seg[i].offset = 131 * (i / 16) + i % 7;
	}
	req.u.reg.length = bytes;
	req.u.reg.offset = nr;
	req.u.reg.access = RW;
	req.u.reg.flags = XNEM_REGION_SEGMENTS | (indirect ? XNEM_REGION_INDIRECT : 0);
	req.u.reg.nr_pages = nr;
	give_refs(fe, &req, p);
	for (i = 0; i < table->nr; i++)
		req.u.reg.ref[first + i] = table->ref[i];
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));

	CALL(make_region(fe, &b, RW, 0, 9, bytes));
	fill(b.mem, bytes, 4, 0);
	EXPECT(bytes - 5, copy(fe, 0, &a, 3, &b, 3, bytes - 5).bytes_done);
	for (i = 1; i < nr - 1; i++) {
		const unsigned char *at = p->mem + i % 16 * XNEM_PAGE_SIZE + seg[i].offset;

		note("segment %u", i);
		EXPECT(len, right(at, len, 4, (uint64_t)i * len));
	}
	note("%s", "");
	memset(b.mem, 0, bytes);
	EXPECT(bytes - 5, copy(fe, 0, &b, 3, &a, 3, bytes - 5).bytes_done);
	EXPECT(bytes - 5, right(b.mem + 3, bytes - 5, 4, 3));
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 1, bytes).status);
	/* A table that is not what the request says. */
	seg[nr - 1].length++;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	seg[nr - 1].length--;
	seg[0].pad = 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	return 0;
}

static int segments(struct frontend *fe)
{
	return segments_of(fe, 5, 101, false);
}

static int many_segments(struct frontend *fe)
{
	return segments_of(fe, XNEM_DESC_SEGMENTS + 44, 13, true);
}

static int once(struct frontend *fe)
{
	struct region a, b;

	CALL(make_region(fe, &a, R, XNEM_REGION_ONCE, 0, 100));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	/* One that is refused uses up nothing. */
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 0, 101).status);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 100).status);
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 100).status);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	return 0;
}

static int tags(struct frontend *fe)
{
	struct region mine, any;
	struct xnem_request req;

	CALL(make_region(fe, &mine, RW, 0, 0, 100));
	CALL(make_region(fe, &any, RW, XNEM_REGION_ANY_TAG, 0, 100));
	req = copy_request(0, &any, 0, &any, 50, 10);
	req.tag = TAG + 1;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	req = copy_request(0, &mine, 0, &any, 0, 10);
	req.tag = TAG + 1;
	EXPECT(XNEM_ST_TAG, call(fe, &req).status);
	req = copy_request(0, &any, 0, &mine, 0, 10);
	/* All 64 bits count. */
	req.tag = TAG + (1ull << 32);
	EXPECT(XNEM_ST_TAG, call(fe, &req).status);
	req.tag = TAG;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	return 0;
}

static int access_rights(struct frontend *fe)
{
	struct region r, w;

	CALL(make_region(fe, &r, R, 0, 0, 100));
	CALL(make_region(fe, &w, W, 0, 0, 100));
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &r, 0, &r, 50, 10).status);
	EXPECT(XNEM_ST_ACCESS, copy(fe, 0, &w, 0, &w, 50, 10).status);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &w, 0, &r, 0, 100).status);
	return 0;
}

static int ranges(struct frontend *fe)
{
	struct xnem_completion c;
	struct region a, b;

	CALL(make_region(fe, &a, R, 0, 10, 5000));
	CALL(make_region(fe, &b, W, 0, 20, 6000));
	fill(a.mem, 5000, 5, 0);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 0, 5001).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 5999, &a, 0, 2).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, UINT64_MAX, 2).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, 1, UINT64_MAX).status);
	EXPECT(6000, all_are(b.mem, 6000, 0));

	c = copy(fe, XNEM_REQ_BOUNDED, &b, 0, &a, 1000, UINT64_MAX);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(4000, c.bytes_done);
	EXPECT(4000, right(b.mem, 4000, 5, 1000));
	c = copy(fe, XNEM_REQ_BOUNDED, &b, 5990, &a, 0, 100);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(10, c.bytes_done);
	EXPECT(XNEM_ST_RANGE, copy(fe, XNEM_REQ_BOUNDED, &b, 0, &a, 5001, 1).status);
	return 0;
}

static int wrong_cookies(struct frontend *fe)
{
	struct region a, b, wrong;
	struct xnem_request req;
	struct context ctx;
	uint64_t end;
	uint32_t i;
	uint16_t status = XNEM_ST_COOKIE;

	CALL(make_region(fe, &a, RW, 0, 0, 100));
	CALL(make_region(fe, &b, RW, 0, 0, 100));
	CALL(open_context(fe, &ctx, true, 0));
	wrong = a;
	wrong.cookie.key ^= 1;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);
	wrong = a;
	wrong.cookie.id += 1000000;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &wrong, 0, &b, 0, 1).status);
	memset(&wrong, 0, sizeof(wrong));
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);
	EXPECT(XNEM_ST_COOKIE, deregister(fe, &wrong).status);
	/* A context's address is none of a region, nor the other way round. */
	req = message_request(a.cookie, "x", 1);
	EXPECT(XNEM_ST_COOKIE, call(fe, &req).status);
	wrong.cookie = ctx.address;
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &wrong, 0, 1).status);

	/* In numbers: it rests, and after that works. */
	for (i = 0; i < 2000 && status == XNEM_ST_COOKIE; i++)
		status = copy(fe, 0, &b, 0, &wrong, 0, 1).status;
	note("after %u wrong cookies", i);
	EXPECT(XNEM_ST_AGAIN, status);
	for (end = now_ms() + 5000; status == XNEM_ST_AGAIN && now_ms() < end; usleep(10000))
		status = copy(fe, 0, &b, 0, &a, 0, 1).status;
	EXPECT(XNEM_ST_OK, status);
	return 0;
}

static int faults(struct frontend *fe)
{
	struct xnem_request req;
	struct region a, b, c;
	struct xnem_completion done;
	struct pages *p;

	CALL(make_region(fe, &b, RW, 0, 0, 3 * XNEM_PAGE_SIZE));
	/* The page between is not granted: what comes before it is in place. */
	p = grant_pages(fe, 3, false);
	fill(p->mem, 3 * XNEM_PAGE_SIZE, 6, 0);
	req = register_request(R, 0, 0, 3 * XNEM_PAGE_SIZE);
	give_refs(fe, &req, p);
	req.u.reg.ref[1] = 1000000;
	EXPECT(XNEM_ST_OK, register_it(fe, &a, &req));
	done = copy(fe, 0, &b, 0, &a, 0, 3 * XNEM_PAGE_SIZE);
	EXPECT(XNEM_ST_FAULT, done.status);
	EXPECT(XNEM_PAGE_SIZE, done.bytes_done);
	EXPECT(XNEM_PAGE_SIZE, right(b.mem, XNEM_PAGE_SIZE, 6, 0));

	/* Granted read-only, whatever the request says. */
	req = register_request(W, 0, 0, 100);
	req.u.reg.ref[0] = p->ref[0];
	EXPECT(XNEM_ST_OK, register_it(fe, &c, &req));
	EXPECT(XNEM_ST_FAULT, copy(fe, 0, &c, 0, &b, 0, 100).status);
	EXPECT(100, right(p->mem, 100, 6, 0));

	/* A descriptor page is read at once. */
	req = register_request(R, XNEM_REGION_INDIRECT, 0, 100);
	req.u.reg.ref[0] = 1000000;
	EXPECT(XNEM_ST_FAULT, register_it(fe, &a, &req));
	return 0;
}

static int deregistration(struct frontend *fe)
{
	struct region a, b;
	struct pages *p;

	CALL(make_region(fe, &a, RW, 0, 0, 5 * XNEM_PAGE_SIZE));
	CALL(make_region(fe, &b, RW, 0, 0, 5 * XNEM_PAGE_SIZE));
	EXPECT(XNEM_ST_OK, copy(fe, 0, &b, 0, &a, 0, 5 * XNEM_PAGE_SIZE).status);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	p = a.pages;
	revoke_pages(fe, p);
	EXPECT(false, revoked_in_use(fe));
	EXPECT(XNEM_ST_COOKIE, deregister(fe, &a).status);
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &a, 0, 1).status);
	return 0;
}

/* The backend holds a region's pages no longer than it says, though a copy waits. */
static int deregister_under_a_copy(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_completion c;
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, window;

	CALL(make_windowed(fe, &a, R, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, XNEM_PAGE_SIZE));
	req = copy_request(0, &b, 0, &a, 0, XNEM_PAGE_SIZE);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(false, answered(fe, id));
	/* The destination: its own end must not wait for the window. */
	EXPECT(XNEM_ST_OK, deregister(fe, &b).status);
	EXPECT(true, answered(fe, id));
	c = wait_for(fe, id, 0);
	EXPECT(XNEM_ST_PEER_GONE, c.status);
	EXPECT(0, c.bytes_done);
	EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
	/* Nobody waits for it any more: answered at once. */
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	return 0;
}

/* ---- tests: what is refused ---- */

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
	REFUSED(flags, 1u << 5);
	REFUSED(flags, XNEM_REQ_BOUNDED);
	REFUSED(flags, XNEM_REQ_NOTIFY_DST);
	REFUSED(context, fe->offers.contexts);
	REFUSED(u.reg.length, 0);
	REFUSED(u.reg.length, UINT64_MAX);
	REFUSED(u.reg.offset, XNEM_PAGE_SIZE);
	REFUSED(u.reg.access, 0);
	REFUSED(u.reg.access, 4);
	REFUSED(u.reg.flags, 1u << 5);
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
	req.u.open.flags = 2;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
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

	/* Reserved: these names have no meaning in version 1. */
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
			EXPECT(XNEM_ST_OK, wait_for(fe, id[i], 10000).status);
		made += n;
	}
	EXPECT(XNEM_ST_LIMIT, register_it(fe, &r, &req));
	EXPECT(XNEM_ST_OK, close_context(fe).status);
	EXPECT(XNEM_ST_OK, register_it(fe, &r, &req));
	return 0;
}

/* ---- tests: contexts, completion pages, inboxes ---- */

static int completion_page(struct frontend *fe)
{
	struct xnem_cpage_entry e;
	struct xnem_completion c;
	struct xnem_request req;
	struct context ctx;
	struct region a, b;
	uint32_t i;

	CALL(make_region(fe, &a, R, 0, 0, 1000));
	CALL(make_region(fe, &b, W, 0, 0, 1000));
	CALL(open_context(fe, &ctx, false, 0));
	req = open_request(fe, &(struct context){}, false, 0);
	EXPECT(XNEM_ST_CONTEXT, call(fe, &req).status);

	/* Around the page, and over it. */
	for (i = 0; i < 2 * XNEM_CPAGE_ENTRIES + 5; i++) {
		req = copy_request(XNEM_REQ_CPAGE, &b, 0, &a, 0, i % 1000);
		req.user_data = 0x1122334455667788 + i;
		c = call(fe, &req);
		EXPECT(XNEM_ST_OK, c.status);
		note("entry %u", i);
		/* Before the completion: it is there already. */
		CALL(next_entry(&ctx, &e));
		EXPECT(req.user_data, e.user_data);
		EXPECT(i % 1000, e.bytes_done);
		EXPECT(XNEM_ST_OK, e.status);
	}
	note("%s", "");
	/* What is refused has an entry, too; what does not ask for one has none. */
	req = copy_request(XNEM_REQ_CPAGE, &b, 0, &a, 0, 1001);
	EXPECT(XNEM_ST_RANGE, call(fe, &req).status);
	CALL(next_entry(&ctx, &e));
	EXPECT(XNEM_ST_RANGE, e.status);
	req = request(XNEM_OP_PING, XNEM_REQ_CPAGE);
	req.pad0 = 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &req).status);
	CALL(next_entry(&ctx, &e));
	EXPECT(XNEM_ST_INVALID, e.status);
	CALL(ping(fe));
	req = request(XNEM_OP_PING, XNEM_REQ_CPAGE);
	req.user_data = 99;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	CALL(next_entry(&ctx, &e));
	EXPECT(99, e.user_data);
	return 0;
}

static int messages(struct frontend *fe)
{
	static const char text[XNEM_MESSAGE_MAX + 1] =
		"0123456789012345678901234567890123456789012345678901234567890123";
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	uint32_t i, id[10];

	CALL(open_context(fe, &ctx, true, 1));
	for (i = 0; i < 3 * ctx.nr_slots; i++) {
		req = message_request(ctx.address, text, i % (XNEM_MESSAGE_MAX + 1));
		req.user_data = i;
		note("message %u", i);
		EXPECT(XNEM_ST_OK, call(fe, &req).status);
		CALL(next_slot(&ctx, &s));
		EXPECT(XNEM_INBOX_MESSAGE, s.kind);
		EXPECT(i, s.value);
		EXPECT(i % (XNEM_MESSAGE_MAX + 1), s.bytes);
		EXPECT(0, memcmp(s.data, req.u.msg.data, sizeof(s.data)));
		EXPECT(TAG, s.tag);
		EXPECT(fe->domid, s.domid);
		EXPECT(ctx.address.id, s.from.id);
		EXPECT(ctx.address.key, s.from.key);
	}
	note("%s", "");
	/* Of a context without an inbox, thus without an address; in the order of posting. */
	for (i = 0; i < 10; i++) {
		req = message_request(ctx.address, &i, sizeof(i));
		req.context = 1;
		id[i] = post(fe, &req);
	}
	publish(fe);
	for (i = 0; i < 10; i++) {
		EXPECT(XNEM_ST_OK, wait_for(fe, id[i], 5000).status);
		CALL(next_slot(&ctx, &s));
		EXPECT(0, memcmp(s.data, &i, sizeof(i)));
		EXPECT(0, s.from.id | s.from.key);
	}
	return 0;
}

/* Asleep on the inbox: no answer makes an event here. */
static int attention(struct frontend *fe)
{
	struct xnem_attention *att = &fe->header->attention;
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	bool woken = false;
	uint64_t end;

	CALL(open_context(fe, &ctx, true, 0));
	while (wait_event(fe, 100))
		;
	EXPECT(0, att->contexts[CTX / 32]);
	__atomic_store_n(&att->event, 1, __ATOMIC_RELAXED);
	full_barrier();
	EXPECT(0, __atomic_exchange_n(&att->contexts[CTX / 32], 0, __ATOMIC_SEQ_CST));
	req = message_request(ctx.address, "x", 1);
	req.context = 40;
	post(fe, &req);
	publish(fe);
	for (end = now_ms() + 5000; !woken && now_ms() < end;)
		woken = wait_event(fe, 1000);
	EXPECT(true, woken);
	CALL(next_slot(&ctx, &s));
	/* The receiver's bit, and no other. */
	EXPECT(1u << CTX, __atomic_exchange_n(&att->contexts[CTX / 32], 0, __ATOMIC_SEQ_CST));
	EXPECT(0, att->contexts[1]);
	__atomic_store_n(&att->event, 0, __ATOMIC_RELAXED);
	return 0;
}

static int full_inbox(struct frontend *fe)
{
	struct xnem_inbox_slot s;
	struct xnem_completion c;
	struct xnem_request req;
	struct context ctx;
	struct region a, b;
	uint32_t i;

	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &a, R, 0, 0, 100));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	fill(a.mem, 100, 8, 0);
	req = message_request(ctx.address, "x", 1);
	/* One device may hold no more than half of the slots. */
	for (i = 0; i < ctx.nr_slots / 2; i++) {
		note("message %u", i);
		EXPECT(XNEM_ST_OK, call(fe, &req).status);
	}
	note("%s", "");
	EXPECT(XNEM_ST_BUSY, call(fe, &req).status);
	/* A copy is done, its notification is not. */
	req = copy_request(XNEM_REQ_NOTIFY_DST, &b, 0, &a, 0, 100);
	req.u.copy.immediate = 77;
	c = call(fe, &req);
	EXPECT(XNEM_ST_BUSY, c.status);
	EXPECT(100, c.bytes_done);
	EXPECT(100, right(b.mem, 100, 8, 0));
	for (i = 0; i < ctx.nr_slots / 2; i++)
		CALL(next_slot(&ctx, &s));
	EXPECT(true, inbox_empty(&ctx));
	/* The same notification with a copy of 0 bytes. */
	req.u.copy.length = 0;
	EXPECT(XNEM_ST_OK, call(fe, &req).status);
	CALL(next_slot(&ctx, &s));
	EXPECT(77, s.value);
	return 0;
}

static int notifications(struct frontend *fe)
{
	static const uint16_t flags[] = { XNEM_REQ_NOTIFY_SRC, XNEM_REQ_NOTIFY_DST,
					  XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST };
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	struct region a, b;
	unsigned int i, k;

	CALL(make_region(fe, &a, R, 0, 0, 9000));
	CALL(make_region(fe, &b, W, 0, 0, 9000));
	fill(a.mem, 9000, 9, 0);
	req = copy_request(XNEM_REQ_NOTIFY_DST, &b, 0, &a, 0, 9000);
	/* The owner has no inbox: not a byte is copied. */
	EXPECT(XNEM_ST_CONTEXT, call(fe, &req).status);
	EXPECT(9000, all_are(b.mem, 9000, 0));

	CALL(open_context(fe, &ctx, true, 2));
	for (i = 0; i < 3; i++) {
		req = copy_request(flags[i], &b, 0, &a, 0, 9000);
		req.context = 3;
		req.tag = TAG;
		req.u.copy.immediate = 0x8877665544332211 + i;
		memset(b.mem, 0, 9000);
		note("flags %#x", flags[i]);
		EXPECT(XNEM_ST_OK, call(fe, &req).status);
		EXPECT(9000, right(b.mem, 9000, 9, 0));
		for (k = 0; k < (i < 2 ? 1u : 2u); k++) {
			CALL(next_slot(&ctx, &s));
			EXPECT(XNEM_INBOX_NOTIFY, s.kind);
			EXPECT(req.u.copy.immediate, s.value);
			EXPECT(9000, s.bytes);
			EXPECT(fe->domid, s.domid);
			EXPECT(TAG, s.tag);
			EXPECT(0, s.from.id);
			EXPECT(sizeof(s.data), all_are(s.data, sizeof(s.data), 0));
		}
		EXPECT(true, inbox_empty(&ctx));
	}
	/* Only when all bytes are in place. */
	req.u.copy.length = 9001;
	EXPECT(XNEM_ST_RANGE, call(fe, &req).status);
	EXPECT(true, inbox_empty(&ctx));
	return 0;
}

static int closing_a_context(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_request req;
	struct context ctx;
	struct xnem_want want;
	struct region a, b, c;
	uint32_t id, window;
	struct xnem_completion done;

	CALL(open_context(fe, &ctx, true, XNEM_INBOX_ORDER_MAX));
	CALL(make_windowed(fe, &a, R, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, XNEM_PAGE_SIZE));
	req = copy_request(XNEM_REQ_CPAGE, &b, 0, &a, 0, XNEM_PAGE_SIZE);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(false, answered(fe, id));
	done = close_context(fe);
	EXPECT(XNEM_ST_OK, done.status);
	/* The copy's own answer came before. */
	EXPECT(true, answered(fe, id));
	EXPECT(XNEM_ST_CANCELLED, wait_for(fe, id, 0).status);
	/* All of it is let go. */
	revoke_pages(fe, ctx.cpage);
	revoke_pages(fe, ctx.control);
	revoke_pages(fe, ctx.inbox);
	revoke_pages(fe, b.pages);
	EXPECT(false, revoked_in_use(fe));
	req = message_request(ctx.address, "x", 1);
	EXPECT(XNEM_ST_COOKIE, call(fe, &req).status);
	CALL(make_region(fe, &c, RW, 0, 0, 100));
	EXPECT(XNEM_ST_COOKIE, copy(fe, 0, &b, 0, &c, 0, 1).status);
	/* The number is free for another one. */
	CALL(open_context(fe, &ctx, true, 0));
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	return 0;
}

/* What EXPECT(false, revoked_in_use()) is worth: a page that is in use is found so. */
static int revoking_what_is_mapped(struct frontend *fe)
{
	struct context ctx;

	CALL(open_context(fe, &ctx, false, 0));
	revoke_pages(fe, ctx.cpage);
	EXPECT(true, revoked_in_use(fe));
	return 0;
}

static int page_that_cannot_be_mapped(struct frontend *fe)
{
	struct context ctx;
	struct xnem_request req = open_request(fe, &ctx, false, 0);

	req.u.open.cpage_ref = 1000000;
	EXPECT(XNEM_ST_FAULT, call(fe, &req).status);
	/* That ends the device. */
	EXPECT(true, wait_backend(fe, STATE_CLOSING, STATE_CLOSED, 5000));
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

/* ---- tests: order and ends of requests; windows ---- */

static int fences(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 2, false);
	const uint64_t bytes = 2 * XNEM_PAGE_SIZE;
	struct region a, b, c;
	struct xnem_want want;
	struct xnem_request req;
	uint32_t first, fence, behind, other, id, window, n;

	CALL(make_windowed(fe, &a, R, 0, bytes, p));
	CALL(make_region(fe, &b, RW, 0, 0, bytes));
	CALL(make_region(fe, &c, RW, 0, 0, bytes));
	fill(p->mem, bytes, 10, 0);
	/* It waits for its window; the second one copies what it will have brought. */
	req = copy_request(0, &b, 0, &a, 0, bytes);
	first = post(fe, &req);
	req = copy_request(XNEM_REQ_FENCE, &c, 0, &b, 0, bytes);
	fence = post(fe, &req);
	req = request(XNEM_OP_PING, 0);
	behind = post(fe, &req);
	/* Another context has nothing to do with that. */
	req.context = 1;
	other = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(XNEM_ST_OK, wait_for(fe, other, 5000).status);
	EXPECT(false, answered(fe, first) || answered(fe, fence) || answered(fe, behind));
	id = post_describe(fe, window, &want, p);
	CALL(serve_wants(fe, first, &a, &a, &n));
	EXPECT(XNEM_ST_OK, wait_for(fe, first, 0).status);
	EXPECT(XNEM_ST_OK, wait_for(fe, fence, 5000).status);
	EXPECT(bytes, right(c.mem, bytes, 10, 0));
	EXPECT(XNEM_ST_OK, wait_for(fe, behind, 5000).status);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	return 0;
}

static int cancel(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_completion c;
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req, end = request(XNEM_OP_CANCEL, 0);
	uint32_t copying, parked, id, window;

	CALL(make_windowed(fe, &a, R, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, XNEM_PAGE_SIZE));
	req = copy_request(0, &b, 0, &a, 0, XNEM_PAGE_SIZE);
	copying = post(fe, &req);
	req = request(XNEM_OP_PING, XNEM_REQ_FENCE);
	parked = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));

	/* Of another context, and one that there is not. */
	end.context = 1;
	end.u.cancel.id = copying;
	c = call(fe, &end);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.data[0]);
	end.context = CTX;
	end.u.cancel.id = 0xfffffff0;
	EXPECT(0, call(fe, &end).data[0]);
	EXPECT(false, answered(fe, copying) || answered(fe, parked));

	end.u.cancel.id = parked;
	EXPECT(1, call(fe, &end).data[0]);
	EXPECT(XNEM_ST_CANCELLED, wait_for(fe, parked, 5000).status);
	EXPECT(false, answered(fe, copying));
	end.u.cancel.id = copying;
	EXPECT(1, call(fe, &end).data[0]);
	c = wait_for(fe, copying, 5000);
	EXPECT(XNEM_ST_CANCELLED, c.status);
	EXPECT(0, c.bytes_done);
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	return 0;
}

/* A copy between windowed regions of more pages than a window has, or are granted. */
static int windows(struct frontend *fe)
{
	const uint32_t nr = 2 * fe->offers.window_pages + 30, have = 16;
	const uint64_t bytes = (uint64_t)nr * XNEM_PAGE_SIZE - 300;
	struct xnem_request req;
	struct region a, b;
	uint32_t id, n;

	/* As many as Linux grants to a program. */
	EXPECT(true, nr <= 900);
	CALL(make_windowed(fe, &a, R, 100, bytes, grant_pages(fe, have, false)));
	CALL(make_windowed(fe, &b, W, 200, bytes, grant_pages(fe, nr, true)));
	fill(a.pages->mem, have * XNEM_PAGE_SIZE, 11, 0);
	req = copy_request(0, &b, 0, &a, 0, bytes);
	id = post(fe, &req);
	publish(fe);
	CALL(serve_wants(fe, id, &a, &b, &n));
	note("after %u windows", n);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 0).status);
	/* More than one of each. */
	EXPECT(true, n > 2);
	EXPECT(bytes, same(b.mem, bytes, a.pages->mem, have * XNEM_PAGE_SIZE, 100));
	return 0;
}

static int describing_otherwise(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 2, false);
	struct xnem_want want, wrong;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, copying, window, n;

	CALL(make_windowed(fe, &a, R, 0, 2 * XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &b, W, 0, 0, 2 * XNEM_PAGE_SIZE));
	fill(p->mem, 2 * XNEM_PAGE_SIZE, 12, 0);
	req = copy_request(0, &b, 0, &a, 0, 2 * XNEM_PAGE_SIZE);
	copying = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(a.cookie.id, want.region_id);
	EXPECT(0, want.page);
	EXPECT(2, want.nr_pages);

	/* Of another want: that one stands. */
	wrong = want;
	wrong.seq++;
	id = post_describe(fe, window, &wrong, p);
	EXPECT(XNEM_ST_INVALID, wait_for(fe, id, 5000).status);
	/* It cannot now: it is asked again. */
	id = post_describe(fe, window, &want, NULL);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	CALL(next_want(fe, &window, &want));
	/* Not as many as were wanted. */
	wrong = want;
	wrong.nr_pages = 1;
	id = post_describe(fe, window, &wrong, p);
	EXPECT(XNEM_ST_INVALID, wait_for(fe, id, 5000).status);
	EXPECT(false, answered(fe, copying));
	CALL(next_want(fe, &window, &want));
	id = post_describe(fe, window, &want, p);
	CALL(serve_wants(fe, copying, &a, &a, &n));
	EXPECT(XNEM_ST_OK, wait_for(fe, copying, 0).status);
	EXPECT(2 * XNEM_PAGE_SIZE, right(b.mem, 2 * XNEM_PAGE_SIZE, 12, 0));
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	revoke_pages(fe, p);
	EXPECT(false, revoked_in_use(fe));
	return 0;
}

/* Never described: the copy ends, and what is described then is answered at once. */
static int no_window_in_time(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 1, false);
	struct xnem_want want;
	struct region a, b;
	struct xnem_request req;
	uint32_t id, window;

	CALL(make_windowed(fe, &a, R, 0, 100, p));
	CALL(make_region(fe, &b, W, 0, 0, 100));
	req = copy_request(0, &b, 0, &a, 0, 100);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	EXPECT(XNEM_ST_AGAIN, wait_for(fe, id, 60000).status);
	id = post_describe(fe, window, &want, p);
	EXPECT(XNEM_ST_OK, wait_for(fe, id, 5000).status);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct frontend *fe);
	/** pages are revoked too early on purpose */
	bool early;
} tests[] = {
	{ "what the backend offers", offers, false },
	{ "ping", ping, false },
	{ "rings wrap", rings_wrap, false },
	{ "features that were not accepted", features_not_accepted, false },
	{ "reconnect: regions of before are gone", reconnect, false },
	{ "a version that it does not speak is refused", wrong_version, false },
	{ "a feature that was not offered is refused", feature_not_offered, false },
	{ "a header that is not granted is refused", header_not_granted, false },
	{ "copies at odd offsets", odd_offsets, false },
	{ "copies of 0 bytes", empty_copies, false },
	{ "a large copy", large_copy, false },
	{ "two descriptor pages", two_descriptor_pages, false },
	{ "segments", segments, false },
	{ "many segments", many_segments, false },
	{ "a region for one copy", once, false },
	{ "tags", tags, false },
	{ "access", access_rights, false },
	{ "ranges, bounded copies", ranges, false },
	{ "wrong cookies and addresses", wrong_cookies, false },
	{ "pages that are not granted", faults, false },
	{ "deregister, then revoke", deregistration, false },
	{ "deregister under a copy", deregister_under_a_copy, false },
	{ "padding and values that are not allowed", invalid, false },
	{ "operations that are reserved or unknown", unsupported, false },
	{ "limits", limits, false },
	{ "completion page", completion_page, false },
	{ "messages to itself", messages, false },
	{ "asleep on the inbox", attention, false },
	{ "an inbox without room", full_inbox, false },
	{ "notifications", notifications, false },
	{ "closing a context", closing_a_context, false },
	{ "a page revoked in use is noticed", revoking_what_is_mapped, true },
	{ "a context's page that is not granted", page_that_cannot_be_mapped, false },
	{ "fences", fences, false },
	{ "cancel", cancel, false },
	{ "windows", windows, false },
	{ "windows described late, not and wrongly", describing_otherwise, false },
	{ "no window in time", no_window_in_time, false },
};

static int suite(struct frontend *fe)
{
	unsigned int i, bad = 0, n = sizeof(tests) / sizeof(tests[0]);

	for (i = 0; i < n; i++) {
		int failed;

		note("%s", "");
		revoked_in_use(fe);
		if (!connect_device(fe, NULL))
			die("the backend refuses to connect");
		failed = tests[i].run(fe);
		if (!disconnect_device(fe))
			die("%s: the backend does not close", tests[i].name);
		if (revoked_in_use(fe) && !tests[i].early && !failed) {
			printf("# the backend said Closed and held a page\n");
			failed = 1;
		}
		bad += failed;
		printf("%sok %u - %s\n", failed ? "not " : "", i + 1, tests[i].name);
		fflush(stdout);
	}
	printf("1..%u\n", n);
	return bad != 0;
}

/* ---- breaking the protocol ---- */

/* Cut off, and not served again before it is attached anew. */
static int cut_off(struct frontend *fe)
{
	EXPECT(true, wait_backend(fe, STATE_CLOSING, STATE_CLOSING, 5000));
	EXPECT(true, disconnect_device(fe));
	EXPECT(false, revoked_in_use(fe));
	set_state(fe, STATE_INITIALISING);
	EXPECT(false, wait_backend(fe, STATE_INIT_WAIT, STATE_CONNECTED, 2000));
	set_state(fe, STATE_CLOSED);
	return 0;
}

static int corrupt(struct frontend *fe, const char *how)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	struct region a;
	int failed;
	uint32_t i;

	if (!connect_device(fe, NULL))
		die("the backend refuses to connect");
	if (ping(fe) || make_region(fe, &a, RW, 0, 0, 5000))
		die("it does not work before it is broken");
	if (!strcmp(how, "submission")) {
		/* As many more than there are slots as could be. */
		fe->sq_prod += 0x80000000;
	} else if (!strcmp(how, "completion")) {
		store_release(&fe->header->cq.cons, fe->cq_cons + 1000);
		post_raw(fe, &req);
	} else {
		/* No answer is taken. */
		for (i = 0; i <= fe->max_inflight; i++) {
			post_raw(fe, &req);
			publish(fe);
		}
	}
	publish(fe);
	failed = cut_off(fe);
	printf("%sok 1 - a wrong %s is cut off\n1..1\n", failed ? "not " : "", how);
	return failed;
}

/* ---- with an ordinary program in another guest ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Text of libxnem: id, key and fabric id, in bytes as they are on the wire. */
static struct xnem_cookie parse_cookie(const struct frontend *fe, const char *text)
{
	uint64_t word[3];
	unsigned int i;

	for (i = 0; i < sizeof(word); i++) {
		if (hex(text[2 * i]) < 0 || hex(text[2 * i + 1]) < 0)
			die("%s: not a cookie", text);
		((unsigned char *)word)[i] = hex(text[2 * i]) << 4 | hex(text[2 * i + 1]);
	}
	if (word[2] != fe->offers.fabric_id)
		die("%s: of another fabric", text);
	return (struct xnem_cookie){ word[0], word[1] };
}

static void write_cookie(const struct frontend *fe, const char *path, struct xnem_cookie cookie)
{
	const uint64_t word[3] = { cookie.id, cookie.key, fe->offers.fabric_id };
	FILE *f = fopen(path, "w");
	unsigned int i;

	if (!f)
		die("cannot write %s", path);
	for (i = 0; i < sizeof(word); i++)
		fprintf(f, "%02x", ((const unsigned char *)word)[i]);
	fprintf(f, "\n");
	if (fclose(f))
		die("cannot write %s", path);
}

static int pull(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region theirs = { .cookie = parse_cookie(fe, arg[0]) }, mine;
	struct xnem_completion c;

	CALL(make_region(fe, &mine, W, 0, 77, bytes));
	c = copy(fe, 0, &mine, 0, &theirs, 0, bytes);
	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(bytes, c.bytes_done);
	EXPECT(bytes, right(mine.mem, bytes, seed, 0));
	return 0;
}

static int push(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region theirs = { .cookie = parse_cookie(fe, arg[0]) }, mine;

	CALL(make_region(fe, &mine, R, 0, 99, bytes));
	fill(mine.mem, bytes, seed, 0);
	EXPECT(XNEM_ST_OK, copy(fe, 0, &theirs, 0, &mine, 0, bytes).status);
	return 0;
}

static int export(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[1], NULL, 10), seed = strtoull(arg[2], NULL, 10);
	struct region mine;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	CALL(make_region(fe, &mine, RW, XNEM_REGION_ANY_TAG, 55, bytes));
	fill(mine.mem, bytes, seed, 0);
	write_cookie(fe, arg[0], mine.cookie);
	sigwait(&set, &sig);
	EXPECT(bytes, right(mine.mem, bytes, seed + 1, 0));
	EXPECT(XNEM_ST_OK, deregister(fe, &mine).status);
	return 0;
}

/* The address of xnem-serve's inbox, from its port. */
static struct xnem_cookie ask_address(const struct frontend *fe, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	uint64_t word[3];
	int sock;

	if (getaddrinfo(host, port, &hints, &ai))
		die("no host %s, or no port %s", host, port);
	sock = socket(ai->ai_family, ai->ai_socktype, 0);
	if (sock < 0 || connect(sock, ai->ai_addr, ai->ai_addrlen) ||
	    recv(sock, word, sizeof(word), MSG_WAITALL) != sizeof(word))
		die("%s port %s does not tell its address", host, port);
	close(sock);
	freeaddrinfo(ai);
	if (word[2] != fe->offers.fabric_id)
		die("the server is of another fabric");
	return (struct xnem_cookie){ word[0], word[1] };
}

/* One message, two copies by the server, one notification. */
static int client(struct frontend *fe, char **arg)
{
	const uint64_t bytes = strtoull(arg[2], NULL, 10);
	const struct xnem_cookie server = ask_address(fe, arg[0], arg[1]);
	struct {
		struct xnem_cookie cookie;
		uint64_t fabric_id, offset, length, number;
	} order = { .fabric_id = fe->offers.fabric_id, .length = bytes, .number = 0x4321 };
	struct xnem_inbox_slot s;
	struct xnem_request req;
	struct context ctx;
	struct region mine;
	uint64_t i, end;

	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &mine, RW, XNEM_REGION_ANY_TAG, 33, bytes));
	for (i = 0; i < bytes; i++)
		mine.mem[i] = "abcdefghijklmnopqrstuvwxyz"[i % 26];
	order.cookie = mine.cookie;
	req = message_request(server, &order, sizeof(order));
	EXPECT(XNEM_ST_OK, call(fe, &req).status);

	fe->header->attention.event = 1;
	full_barrier();
	for (end = now_ms() + 20000; inbox_empty(&ctx) && now_ms() < end;)
		sleep_on_event(fe, 1000);
	CALL(next_slot(&ctx, &s));
	EXPECT(XNEM_INBOX_NOTIFY, s.kind);
	EXPECT(order.number, s.value);
	EXPECT(bytes, s.bytes);
	EXPECT(true, s.domid != fe->domid);
	EXPECT(bytes,
	       same(mine.mem, bytes, (const unsigned char *)"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26, 0));
	return 0;
}

static int usage(void)
{
	fputs(usage_text, stderr);
	return 64;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct frontend *fe, char **arg);
	} commands[] = {
		{ "pull", pull }, { "push", push }, { "export", export }, { "client", client }
	};
	struct frontend fe;
	unsigned int i;
	int failed;

	if (argc == 2 && !strcmp(argv[1], "suite")) {
		frontend_open(&fe);
		return suite(&fe);
	}
	if (argc == 3 && !strcmp(argv[1], "corrupt") &&
	    (!strcmp(argv[2], "submission") || !strcmp(argv[2], "completion") ||
	     !strcmp(argv[2], "inflight"))) {
		frontend_open(&fe);
		return corrupt(&fe, argv[2]);
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc != 5 || strcmp(argv[1], commands[i].name))
			continue;
		frontend_open(&fe);
		if (!connect_device(&fe, NULL))
			die("the backend refuses to connect");
		failed = commands[i].run(&fe, argv + 2);
		if (!disconnect_device(&fe))
			die("the backend does not close");
		return failed;
	}
	return usage();
}
