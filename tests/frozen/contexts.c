// SPDX-License-Identifier: MIT
/*
 * Tests: contexts, completion pages, inboxes (sections 4, 6, 7).
 */
#include <string.h>

#include "common.h"

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
		EXPECT(XNEM_ST_OK, wait_for(fe, id[i], PATIENCE_MS).status);
		CALL(next_slot(&ctx, &s));
		EXPECT(0, memcmp(s.data, &i, sizeof(i)));
		EXPECT(0, s.from.id | s.from.key);
	}
	return 0;
}

/* Asleep on the inbox: no answer makes an event here. */
static int attention(struct frontend *fe)
{
	struct xnem_attention *att = &fe->q->header->attention;
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
	for (end = now_ms() + PATIENCE_MS; !woken && now_ms() < end;)
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
	pattern_fill(a.mem, 100, 8, 0);
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
	EXPECT(100, pattern_check(b.mem, 100, 8, 0));
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
	pattern_fill(a.mem, 9000, 9, 0);
	req = copy_request(XNEM_REQ_NOTIFY_DST, &b, 0, &a, 0, 9000);
	/* The owner has no inbox: not a byte is copied. */
	EXPECT(XNEM_ST_CONTEXT, call(fe, &req).status);
	EXPECT(9000, byte_check(b.mem, 9000, 0));

	CALL(open_context(fe, &ctx, true, 2));
	for (i = 0; i < 3; i++) {
		req = copy_request(flags[i], &b, 0, &a, 0, 9000);
		req.context = 3;
		req.tag = TAG;
		req.u.copy.immediate = 0x8877665544332211 + i;
		memset(b.mem, 0, 9000);
		note("flags %#x", flags[i]);
		EXPECT(XNEM_ST_OK, call(fe, &req).status);
		EXPECT(9000, pattern_check(b.mem, 9000, 9, 0));
		for (k = 0; k < (i < 2 ? 1u : 2u); k++) {
			CALL(next_slot(&ctx, &s));
			EXPECT(XNEM_INBOX_NOTIFY, s.kind);
			EXPECT(req.u.copy.immediate, s.value);
			EXPECT(9000, s.bytes);
			EXPECT(fe->domid, s.domid);
			EXPECT(TAG, s.tag);
			EXPECT(0, s.from.id);
			EXPECT(sizeof(s.data), byte_check(s.data, sizeof(s.data), 0));
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
	EXPECT(XNEM_ST_OK, wait_for(fe, id, PATIENCE_MS).status);
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

	req.u.open.cpage_ref = NO_REF;
	EXPECT(XNEM_ST_FAULT, call(fe, &req).status);
	/* That ends the device. */
	EXPECT(true, wait_backend(fe, STATE_CLOSING, STATE_CLOSED, PATIENCE_MS));
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

const struct test context_tests[] = {
	{ "completion page", completion_page, false },
	{ "messages to itself", messages, false },
	{ "asleep on the inbox", attention, false },
	{ "an inbox without room", full_inbox, false },
	{ "notifications", notifications, false },
	{ "closing a context", closing_a_context, false },
	{ "a page revoked in use is noticed", revoking_what_is_mapped, true },
	{ "a context's page that is not granted", page_that_cannot_be_mapped, false },
	{},
};
