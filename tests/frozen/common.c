// SPDX-License-Identifier: MIT
/*
 * What the tests have in common; see common.h.
 */
#include <stdio.h>
#include <string.h>

#include "common.h"

void begin_test(struct frontend *fe)
{
	note("%s", "");
	revoked_in_use(fe);
	if (!connect_device(fe, NULL))
		die("the backend refuses to connect");
}

int end_test(struct frontend *fe, const struct test *test, int failed)
{
	if (!disconnect_device(fe))
		die("%s: the backend does not close", test->name);
	if (revoked_in_use(fe) && !test->early && !failed) {
		printf("# the backend said Closed and held a page\n");
		failed = 1;
	}
	return failed;
}

int cut_off(struct frontend *fe, int last)
{
	EXPECT(true, wait_backend(fe, STATE_CLOSING, last, PATIENCE_MS));
	EXPECT(true, disconnect_device(fe));
	EXPECT(false, revoked_in_use(fe));
	set_state(fe, STATE_INITIALISING);
	EXPECT(false, wait_backend(fe, STATE_INIT_WAIT, STATE_CONNECTED, 2000));
	set_state(fe, STATE_CLOSED);
	return 0;
}

uint64_t same(const unsigned char *mem, uint64_t len, const unsigned char *from, uint64_t from_len,
	      uint64_t at)
{
	uint64_t i;

	for (i = 0; i < len && mem[i] == from[(at + i) % from_len]; i++)
		;
	return i;
}

/* ---- requests, regions, copies ---- */

struct xnem_request request(uint16_t op, uint16_t flags)
{
	struct xnem_request req = { .op = op, .flags = flags, .context = CTX, .tag = TAG };

	return req;
}

int ping(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	struct xnem_completion c = call(fe, &req);

	EXPECT(XNEM_ST_OK, c.status);
	EXPECT(0, c.bytes_done | c.data[0] | c.data[1]);
	return 0;
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

void give_refs(struct frontend *fe, struct xnem_request *req, const struct pages *p)
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

struct xnem_request register_request(uint32_t access, uint32_t flags, uint32_t offset,
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

uint16_t register_it(struct frontend *fe, struct region *r, const struct xnem_request *req)
{
	struct xnem_completion c = call(fe, req);

	r->cookie = (struct xnem_cookie){ c.data[0], c.data[1] };
	return c.status;
}

int make_region_in(struct frontend *fe, uint32_t context, struct region *r, uint32_t access,
		   uint32_t flags, uint32_t offset, uint64_t length)
{
	struct xnem_request req = register_request(access, flags, offset, length);

	req.context = context;
	r->pages = grant_pages(fe, req.u.reg.nr_pages, access & W);
	r->mem = r->pages->mem + offset;
	if (!(flags & XNEM_REGION_WINDOWED))
		give_refs(fe, &req, r->pages);
	EXPECT(XNEM_ST_OK, register_it(fe, r, &req));
	EXPECT(true, r->cookie.id != 0);
	return 0;
}

int make_region(struct frontend *fe, struct region *r, uint32_t access, uint32_t flags,
		uint32_t offset, uint64_t length)
{
	return make_region_in(fe, CTX, r, access, flags, offset, length);
}

struct xnem_completion deregister(struct frontend *fe, const struct region *r)
{
	struct xnem_request req = request(XNEM_OP_DEREGISTER, 0);

	req.u.dereg.region_id = r->cookie.id;
	return call(fe, &req);
}

struct xnem_request copy_request(uint16_t flags, const struct region *dst, uint64_t dst_off,
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

struct xnem_completion copy(struct frontend *fe, uint16_t flags, const struct region *dst,
			    uint64_t dst_off, const struct region *src, uint64_t src_off,
			    uint64_t len)
{
	struct xnem_request req = copy_request(flags, dst, dst_off, src, src_off, len);

	return call(fe, &req);
}

/* ---- a context's pages ---- */

struct xnem_request open_request(struct frontend *fe, struct context *ctx, bool inbox,
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

int open_context(struct frontend *fe, struct context *ctx, bool inbox, uint32_t order)
{
	struct xnem_request req = open_request(fe, ctx, inbox, order);
	struct xnem_completion c = call(fe, &req);

	EXPECT(XNEM_ST_OK, c.status);
	ctx->address = (struct xnem_cookie){ c.data[0], c.data[1] };
	EXPECT(inbox, ctx->address.id != 0);
	return 0;
}

struct xnem_completion close_context(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_CLOSE_CONTEXT, 0);

	return call(fe, &req);
}

int next_entry(struct context *ctx, struct xnem_cpage_entry *e)
{
	struct xnem_cpage_entry *at = &ctx->entries[ctx->entries_read % XNEM_CPAGE_ENTRIES];

	ctx->entries_read++;
	EXPECT(ctx->entries_read, load_acquire(&at->seq));
	*e = *at;
	EXPECT(XNEM_CPAGE_COMPLETION, e->kind);
	EXPECT(0, e->pad);
	return 0;
}

int next_slot(struct context *ctx, struct xnem_inbox_slot *s)
{
	struct xnem_inbox_slot *at = &ctx->slots[ctx->slots_read % ctx->nr_slots];

	ctx->slots_read++;
	EXPECT(ctx->slots_read, load_acquire(&at->seq));
	*s = *at;
	store_release(&ctx->ctl->inbox_cons, ctx->slots_read);
	EXPECT(0, s->pad[0] | s->pad[1] | s->pad[2]);
	return 0;
}

bool inbox_empty(const struct context *ctx)
{
	return load_acquire(&ctx->slots[ctx->slots_read % ctx->nr_slots].seq) !=
	       ctx->slots_read + 1;
}

struct xnem_request message_request(struct xnem_cookie to, const void *text, uint32_t len)
{
	struct xnem_request req = request(XNEM_OP_MESSAGE, 0);

	req.u.msg.to = to;
	req.u.msg.length = len;
	memcpy(req.u.msg.data, text, len);
	return req;
}

/* ---- windows ---- */

int make_windowed(struct frontend *fe, struct region *r, uint32_t access, uint32_t offset,
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
	uint32_t bits = load_acquire(&fe->q->header->attention.windows);

	return bits ? __builtin_ctz(bits) : -1;
}

int next_want(struct frontend *fe, uint32_t *window, struct xnem_want *want)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	int i;

	while ((i = new_want(fe)) < 0 && now_ms() < end)
		sleep_on_event(fe, 1000);
	EXPECT(true, i >= 0 && (uint32_t)i < fe->offers.windows);
	__atomic_fetch_and(&fe->q->header->attention.windows, ~(1u << i), __ATOMIC_SEQ_CST);
	EXPECT(fe->q->wants_seen[i] + 1, load_acquire(&fe->q->header->want[i].seq));
	*want = fe->q->header->want[i];
	fe->q->wants_seen[i]++;
	*window = i;
	EXPECT(true, want->nr_pages >= 1 && want->nr_pages <= fe->offers.window_pages);
	EXPECT(0, want->pad[0] | want->pad[1] | want->pad[2]);
	return 0;
}

uint32_t post_describe(struct frontend *fe, uint32_t i, const struct xnem_want *want,
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

int serve_wants(struct frontend *fe, uint32_t id, const struct region *a, const struct region *b,
		uint32_t *n)
{
	uint64_t end = now_ms() + PATIENCE_MS;
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
		EXPECT(XNEM_ST_OK, wait_for(fe, described[i], PATIENCE_MS).status);
	return 0;
}
