// SPDX-License-Identifier: MIT
/*
 * Mutated requests: valid ones of every operation, of which some fields are changed.
 * The same seed makes the same requests; when they meet the backend is another matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

/** Requests of one connection. */
#define LIFE 5000
/** Opens that may not be mappable: each ends the device, and a few of them for good. */
#define OPENS 2

struct base {
	struct xnem_request req[16];
	uint32_t nr, describe, windowed_copy;
	struct pages *page;
	struct region windowed;
};

static int add(struct base *b, const struct xnem_request *req)
{
	EXPECT(true, b->nr < sizeof(b->req) / sizeof(b->req[0]));
	b->req[b->nr++] = *req;
	return 0;
}

static int make_base(struct frontend *fe, struct base *b)
{
	struct xnem_request req;
	struct context ctx;
	struct region from, to;

	memset(b, 0, sizeof(*b));
	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &from, R, XNEM_REGION_ANY_TAG, 100, 400000));
	CALL(make_region(fe, &to, W, XNEM_REGION_ANY_TAG, 3000, 400000));
	b->page = grant_pages(fe, 20, true);
	CALL(make_windowed(fe, &b->windowed, RW, 0, 20 * XNEM_PAGE_SIZE, b->page));

	req = request(XNEM_OP_PING, XNEM_REQ_CPAGE);
	CALL(add(b, &req));
	req = register_request(RW, 0, 77, 60000);
	give_refs(fe, &req, b->page);
	CALL(add(b, &req));
	req = register_request(R, XNEM_REGION_INDIRECT, 0, 3 * 1024 * XNEM_PAGE_SIZE);
	give_refs(fe, &req, b->page);
	CALL(add(b, &req));
	req = register_request(R, XNEM_REGION_SEGMENTS, 3, 1);
	CALL(add(b, &req));
	req = request(XNEM_OP_DEREGISTER, 0);
	req.u.dereg.region_id = from.cookie.id;
	CALL(add(b, &req));
	req = copy_request(XNEM_REQ_CPAGE, &to, 5, &from, 0, 5000);
	CALL(add(b, &req));
	CALL(add(b, &req));
	req = copy_request(XNEM_REQ_NOTIFY_DST | XNEM_REQ_FENCE, &to, 0, &from, 1, 350000);
	CALL(add(b, &req));
	b->windowed_copy = b->nr;
	req = copy_request(0, &to, 1, &b->windowed, 5, 5000);
	CALL(add(b, &req));
	req = message_request(ctx.address, "hostile", 7);
	CALL(add(b, &req));
	req = request(XNEM_OP_CANCEL, 0);
	CALL(add(b, &req));
	req = request(XNEM_OP_CLOSE_CONTEXT, 0);
	req.context = 5;
	CALL(add(b, &req));
	req = open_request(fe, &ctx, false, 0);
	req.context = 9;
	CALL(add(b, &req));
	b->describe = b->nr;
	req = request(XNEM_OP_DESCRIBE, 0);
	CALL(add(b, &req));
	return 0;
}

/* The description of a want, if there is a new one. */
static bool describe(struct frontend *fe, struct base *b, struct xnem_request *req)
{
	uint32_t bits = load_acquire(&fe->q->header->attention.windows), i, k;

	if (!bits)
		return false;
	i = __builtin_ctz(bits);
	__atomic_fetch_and(&fe->q->header->attention.windows, ~(1u << i), __ATOMIC_SEQ_CST);
	*req = b->req[b->describe];
	req->u.describe.window = i;
	req->u.describe.seq = load_acquire(&fe->q->header->want[i].seq);
	req->u.describe.nr_pages = fe->q->header->want[i].nr_pages;
	for (k = 0; k < req->u.describe.nr_pages && k < XNEM_DESCRIBE_REFS; k++)
		req->u.describe.ref[k] = b->page->ref[(fe->q->header->want[i].page + k) % 20];
	return true;
}

static void mutate(struct xnem_request *req, uint64_t *seed)
{
	static const uint64_t odd[] = { 0,	1,	    2,	       4095,
					4096,	UINT64_MAX, 1u << 31,  1ull << 63,
					0xffff, UINT32_MAX, 1ull << 32 };
	uint32_t n = rnd(seed) % 4;

	while (n--) {
		uint64_t r = rnd(seed), value = odd[(r >> 8) % (sizeof(odd) / sizeof(odd[0]))];
		uint32_t width = 1u << (r >> 4) % 4, at;

		if ((r >> 16) % 3 == 0)
			value = r >> 24;
		else if ((r >> 16) % 3 == 1)
			value = 1ull << (r >> 24) % 64;
		/* The head more often than its share. */
		at = (r >> 32) % ((r >> 48) % 2 ? 32 : sizeof(*req));
		at &= ~(width - 1);
		memcpy((unsigned char *)req + at, &value, width);
	}
}

/* A new life of the device, over whatever became of the one before. */
static int again(struct frontend *fe, struct base *b)
{
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return make_base(fe, b);
}

/* Takes answers that are there; sleeps when there is neither one nor room for requests. */
static int make_room(struct frontend *fe)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	for (;;) {
		fe->q->cq_cons = load_acquire(&fe->q->header->cq.prod);
		store_release(&fe->q->header->cq.cons, fe->q->cq_cons);
		if (fe->q->sq_prod - load_acquire(&fe->q->header->sq.cons) < fe->q->sq_size &&
		    fe->q->sq_prod - fe->q->cq_cons < fe->q->max_inflight)
			return 0;
		if (fe->q->sq_shown != fe->q->sq_prod)
			show_all(fe);
		EXPECT(true, now_ms() < end);
		usleep(200);
	}
}

int fuzz(struct frontend *fe, uint64_t seed, uint64_t count)
{
	uint32_t lives = 1, ends = 0, opens = 0;
	uint64_t done, life = 0;
	struct base b;

	printf("# seed %" PRIu64 "\n", seed);
	seed = seed * 0x9e3779b97f4a7c15ull | 1;
	CALL(make_base(fe, &b));
	for (done = 1; done <= count; done++) {
		struct xnem_request req;
		uint32_t which;

		note("after %" PRIu64 " requests", done);
		CALL(make_room(fe));
		if (!describe(fe, &b, &req)) {
			which = rnd(&seed) % b.nr;
			/* Few: one that gets no window stands in the way for ten seconds. */
			if (which == b.windowed_copy && rnd(&seed) % 64)
				which = 0;
			req = b.req[which];
			req.id = rnd(&seed);
			/* Some are as they should be. */
			mutate(&req, &seed);
		}
		if (req.op == XNEM_OP_OPEN_CONTEXT && opens < OPENS)
			opens++;
		else if (req.op == XNEM_OP_OPEN_CONTEXT)
			req.op = XNEM_OP_PING;
		shove(fe, &req);
		if (done % 16 == 0)
			show_all(fe);
		if (++life % 1000)
			continue;
		if (backend_state(fe) != STATE_CONNECTED)
			ends++;
		else if (life < LIFE)
			continue;
		CALL(again(fe, &b));
		lives++;
		life = 0;
	}
	printf("# %" PRIu64 " requests in %u connections, %u of them ended by the backend\n", count,
	       lives, ends);
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

/* ---- nodes of xenstore ---- */

/* Too long to be a number; xenstore takes 2 KiB with all that belongs to a node. */
static char nines[1800];

int nodes(struct frontend *fe, const char *node)
{
	static const struct {
		const char *text;
		size_t len;
	} values[] = { { "", 0 },
		       { "-1", 2 },
		       { "3 3 3", 5 },
		       { nines, sizeof(nines) },
		       { "z\0\xff\n%s%n", 8 } };
	char was[XS_MAX + 1];
	uint32_t i, n = sizeof(values) / sizeof(values[0]);

	memset(nines, '9', sizeof(nines));
	EXPECT(true, xs_read(fe, fe->dir, node, was));
	for (i = 0; i < n; i++) {
		note("value %u", i);
		/* Begins anew: all other nodes are good still, as nothing was revoked. */
		set_state(fe, STATE_INITIALISING);
		EXPECT(true, wait_backend(fe, STATE_INIT_WAIT, STATE_INIT_WAIT, PATIENCE_MS));
		new_header(fe);
		EXPECT(true, xs_write_raw(fe, node, values[i].text, values[i].len));
		set_state(fe, STATE_INITIALISED);
		EXPECT(true, wait_backend(fe, STATE_CLOSING, STATE_CONNECTED, PATIENCE_MS));
		EXPECT(STATE_CLOSING, backend_state(fe));
		EXPECT(true, xs_write_raw(fe, node, was, strlen(was)));
	}
	return 0;
}
