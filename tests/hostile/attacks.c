// SPDX-License-Identifier: MIT
/*
 * Attacks of a frontend.  What each expects is what xnemif.h promises; that nobody
 * else is harmed, the scenario looks at.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

/* ---- the queue, without the frozen frontend's accounts ---- */

void shove(struct frontend *fe, const struct xnem_request *req)
{
	fe->q->sq[fe->q->sq_prod++ % fe->q->sq_size] = *req;
}

void show_all(struct frontend *fe)
{
	store_release(&fe->q->header->sq.prod, fe->q->sq_prod);
	fe->q->sq_shown = fe->q->sq_prod;
	full_barrier();
	notify(fe);
}

bool take_raw(struct frontend *fe, uint32_t n)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (load_acquire(&fe->q->header->cq.prod) - fe->q->cq_cons < n) {
		if (now_ms() > end)
			return false;
		usleep(100);
	}
	fe->q->cq_cons = load_acquire(&fe->q->header->cq.prod);
	store_release(&fe->q->header->cq.cons, fe->q->cq_cons);
	return true;
}

/* ---- a second thread ---- */

static pthread_t scribbler;
static volatile bool scribbling;
static void (*scribble_what)(void *arg);
static void *scribble_arg;

static void *scribbler_main(void *unused)
{
	(void)unused;
	while (scribbling)
		scribble_what(scribble_arg);
	return NULL;
}

void scribbler_start(void (*scribble)(void *arg), void *arg)
{
	scribble_what = scribble;
	scribble_arg = arg;
	scribbling = true;
	if (pthread_create(&scribbler, NULL, scribbler_main, NULL))
		die("no second thread");
}

void scribbler_stop(void)
{
	scribbling = false;
	pthread_join(scribbler, NULL);
}

void new_header(struct frontend *fe)
{
	memset(fe->q->header, 0, sizeof(*fe->q->header));
	fe->q->header->sq.event = 1;
	fe->q->header->cq.event = 1;
}

/* A region of @length bytes in two pages, of which @table says where. */
static struct xnem_request two_segments(const struct pages *p, const struct pages *table,
					uint64_t length)
{
	struct xnem_request req = request(XNEM_OP_REGISTER, 0);

	req.u.reg.length = length;
	req.u.reg.offset = 2;
	req.u.reg.access = RW;
	req.u.reg.flags = XNEM_REGION_SEGMENTS;
	req.u.reg.nr_pages = 2;
	req.u.reg.ref[0] = p->ref[0];
	req.u.reg.ref[1] = p->ref[1];
	req.u.reg.ref[2] = table->ref[0];
	return req;
}

/* ---- what the backend bears ---- */

static int lengths_wrap(struct frontend *fe)
{
	static const struct {
		uint64_t length;
		uint32_t offset, nr_pages;
	} t[] = {
		{ UINT64_MAX, 4095, 0 }, { UINT64_MAX, 1, 1 },	     { UINT64_MAX - 4095, 4095, 1 },
		{ 1ull << 44, 0, 0 },	 { (1ull << 44) + 1, 0, 1 }, { 1, 4096, 1 },
		{ 1, UINT32_MAX, 1 },	 { 4096, 4095, 1 },	     { 0, 0, 0 },
		{ 1, 0, UINT32_MAX },
	};
	struct pages *table = grant_pages(fe, 1, false), *p = grant_pages(fe, 2, true);
	struct xnem_segment *seg = (void *)table->mem;
	struct region a, b, c;
	struct xnem_request req;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		note("register %u", i);
		req = register_request(RW, 0, t[i].offset, t[i].length);
		req.u.reg.nr_pages = t[i].nr_pages;
		req.u.reg.ref[0] = p->ref[0];
		EXPECT(XNEM_ST_INVALID, register_it(fe, &a, &req));
	}
	note("%s", "");
	/* Lengths whose sum wraps to what the request says. */
	seg[0].length = UINT64_MAX - 99;
	seg[1].length = 200;
	req = two_segments(p, table, 100);
	EXPECT(XNEM_ST_INVALID, register_it(fe, &c, &req));

	CALL(make_region(fe, &a, R, 0, 10, 5000));
	CALL(make_region(fe, &b, W, 0, 20, 5000));
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, UINT64_MAX, &a, 0, 2).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 0, &a, UINT64_MAX - 4999, 5000).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 1, &a, 1, UINT64_MAX).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, 0, &b, 1ull << 63, &a, 1ull << 63, 1ull << 63).status);
	EXPECT(XNEM_ST_RANGE, copy(fe, XNEM_REQ_BOUNDED, &b, UINT64_MAX, &a, 0, 5).status);
	EXPECT(5000, byte_check(b.mem, 5000, 0));
	return ping(fe);
}

/* A page for another domain than the backend's. */
static struct pages *grant_elsewhere(struct frontend *fe)
{
	uint32_t backend = fe->backend_id;
	struct pages *p;

	fe->backend_id = backend ? 0 : fe->domid;
	p = grant_pages(fe, 1, true);
	fe->backend_id = backend;
	return p;
}

static int wrong_references(struct frontend *fe)
{
	struct pages *elsewhere = grant_elsewhere(fe), *mine = grant_pages(fe, 1, false);
	/* Not granted; granted to another domain; xenstore's and the console's; beyond the table. */
	const uint32_t wrong[] = { NO_REF, elsewhere->ref[0], 0, 1, UINT32_MAX, 1u << 31 };
	struct xnem_request req;
	struct region good, bad;
	unsigned int i;

	CALL(make_region(fe, &good, RW, 0, 0, 4096));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		note("reference %u", wrong[i]);
		req = register_request(RW, 0, 0, 4096);
		req.u.reg.ref[0] = wrong[i];
		EXPECT(XNEM_ST_OK, register_it(fe, &bad, &req));
		EXPECT(XNEM_ST_FAULT, copy(fe, 0, &bad, 0, &good, 0, 4096).status);
		EXPECT(XNEM_ST_FAULT, copy(fe, 0, &good, 0, &bad, 0, 4096).status);
		req = register_request(RW, XNEM_REGION_INDIRECT, 0, 4096);
		req.u.reg.ref[0] = wrong[i];
		EXPECT(XNEM_ST_FAULT, register_it(fe, &bad, &req));
	}
	note("%s", "");
	EXPECT(4096, byte_check(elsewhere->mem, 4096, 0));

	/* Read-only, and said to be a destination. */
	req = register_request(W, 0, 0, 4096);
	req.u.reg.ref[0] = mine->ref[0];
	EXPECT(XNEM_ST_OK, register_it(fe, &bad, &req));
	memset(good.mem, 0x55, 4096);
	EXPECT(XNEM_ST_FAULT, copy(fe, 0, &bad, 0, &good, 0, 4096).status);
	EXPECT(4096, byte_check(mine->mem, 4096, 0));
	return ping(fe);
}

static int register_repeated(struct frontend *fe, struct region *r, uint32_t access,
			     struct pages *p, uint32_t nr)
{
	struct xnem_request req = register_request(access, 0, 0, (uint64_t)nr * XNEM_PAGE_SIZE);

	r->pages = p;
	r->mem = p->mem;
	give_refs(fe, &req, p);
	EXPECT(XNEM_ST_OK, register_it(fe, r, &req));
	return 0;
}

static int revoked_during_copy(struct frontend *fe)
{
	const uint32_t nr = 8192, have = 32;
	uint32_t round, faults = 0;

	for (round = 0; round < 8; round++) {
		struct pages *from = grant_pages(fe, have, false),
			     *to = grant_pages(fe, have, true);
		struct xnem_completion c;
		struct xnem_request req;
		struct region a, b;
		uint32_t id;

		memset(from->mem, 0x77, XNEM_PAGE_SIZE);
		CALL(register_repeated(fe, &a, R, from, nr));
		CALL(register_repeated(fe, &b, W, to, nr));
		req = copy_request(0, &b, 0, &a, 0, (uint64_t)nr * XNEM_PAGE_SIZE);
		id = post(fe, &req);
		publish(fe);
		while (!load_acquire(to->mem) && !answered(fe, id))
			;
		revoke_pages(fe, round % 2 ? from : to);
		c = wait_for(fe, id, PATIENCE_MS);
		note("round %u, status %u", round, c.status);
		EXPECT(true, c.status == XNEM_ST_OK || c.status == XNEM_ST_FAULT);
		EXPECT(true, c.bytes_done <= (uint64_t)nr * XNEM_PAGE_SIZE);
		faults += c.status == XNEM_ST_FAULT;
		EXPECT(XNEM_ST_OK, deregister(fe, &a).status);
		EXPECT(XNEM_ST_OK, deregister(fe, &b).status);
		revoke_pages(fe, round % 2 ? to : from);
	}
	note("of %u rounds", round);
	EXPECT(true, faults > 0);
	return ping(fe);
}

static int ids_twice(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0), end = request(XNEM_OP_CANCEL, 0);
	uint32_t round, i, n = fe->q->sq_size;

	for (round = 0; round < 50; round++) {
		req.id = round % 2 ? 7 : UINT32_MAX;
		end.u.cancel.id = req.id;
		end.id = req.id;
		for (i = 0; i < n; i++)
			shove(fe, i % 8 == 7 ? &end : &req);
		show_all(fe);
		EXPECT(true, take_raw(fe, n));
		for (i = 1; i <= n; i++)
			EXPECT(req.id, fe->q->cq[(fe->q->cq_cons - i) % fe->q->cq_size].id);
	}
	return ping(fe);
}

/* ---- memory that changes while it is read ---- */

/* Each is a few calls, and takes a while beside a thread that never sleeps. */
#define ROUNDS 120

struct flip {
	uint32_t *word;
	uint32_t nr, good[8];
	uint64_t seed;
};

/* References: right ones, others, none. */
static void flip_refs(void *arg)
{
	struct flip *f = arg;
	uint64_t r = rnd(&f->seed);
	uint32_t i = r % f->nr;

	f->word[i] = (r >> 32) % 3 ? f->good[i] : (uint32_t)(r >> 40);
	/* So that it is right now and then. */
	if ((r >> 50) % 16 == 0)
		memcpy(f->word, f->good, f->nr * sizeof(f->word[0]));
}

static int descriptors_flip(struct frontend *fe)
{
	const uint64_t bytes = 8 * XNEM_PAGE_SIZE;
	struct pages *p = grant_pages(fe, 8, true), *desc = grant_pages(fe, 1, false);
	struct flip f = { .word = (uint32_t *)desc->mem, .nr = 8, .seed = 4711 };
	struct xnem_request req = register_request(RW, XNEM_REGION_INDIRECT, 0, bytes);
	uint32_t round, ok = 0, bad = 0;
	struct region a, good;
	uint16_t status;

	memcpy(f.good, p->ref, sizeof(f.good));
	memcpy(f.word, f.good, sizeof(f.good));
	req.u.reg.ref[0] = desc->ref[0];
	CALL(make_region(fe, &good, RW, 0, 0, bytes));
	scribbler_start(flip_refs, &f);
	for (round = 0; round < ROUNDS; round++) {
		status = register_it(fe, &a, &req);
		if (status != XNEM_ST_OK)
			break;
		status = copy(fe, 0, &good, 0, &a, 0, bytes).status;
		ok += status == XNEM_ST_OK;
		bad += status == XNEM_ST_FAULT;
		status = deregister(fe, &a).status;
		if (status != XNEM_ST_OK)
			break;
	}
	scribbler_stop();
	note("%u copied, %u faults of %u, last status %u", ok, bad, round, status);
	EXPECT(ROUNDS, round);
	EXPECT(ROUNDS, ok + bad);
	EXPECT(true, bad > 0);
	return ping(fe);
}

static void flip_segments(void *arg)
{
	struct flip *f = arg;
	uint64_t r = rnd(&f->seed);

	/* Two segments: length, offset and padding of each. */
	memcpy(f->word, f->good, sizeof(f->good));
	if (r % 4)
		f->word[(r >> 8) % 8] = r >> 20;
}

static int segments_flip(struct frontend *fe)
{
	struct pages *p = grant_pages(fe, 2, true), *table = grant_pages(fe, 1, false);
	struct xnem_segment *seg = (void *)table->mem;
	struct flip f = { .word = (uint32_t *)table->mem, .seed = 815 };
	struct xnem_request req = two_segments(p, table, 2000);
	uint32_t round, ok = 0, bad = 0;
	struct region a, good;
	uint16_t status;

	seg[0].length = seg[1].length = 1000;
	seg[1].offset = 3000;
	memcpy(f.good, f.word, sizeof(f.good));
	CALL(make_region(fe, &good, RW, 0, 0, 2000));
	scribbler_start(flip_segments, &f);
	for (round = 0; round < ROUNDS; round++) {
		status = register_it(fe, &a, &req);
		bad += status == XNEM_ST_INVALID;
		if (status == XNEM_ST_INVALID)
			continue;
		/* What it has read once stands, whatever the table says now. */
		if (status != XNEM_ST_OK || copy(fe, 0, &a, 0, &good, 0, 2000).status ||
		    deregister(fe, &a).status)
			break;
		ok++;
	}
	scribbler_stop();
	note("%u good, %u refused of %u, last status %u", ok, bad, round, status);
	EXPECT(ROUNDS, round);
	EXPECT(ROUNDS, ok + bad);
	EXPECT(true, ok > 0 && bad > 0);
	return ping(fe);
}

struct ring_flip {
	struct frontend *fe;
	struct xnem_request a, b;
	uint64_t seed;
};

static void flip_ring(void *arg)
{
	struct ring_flip *f = arg;
	uint64_t r = rnd(&f->seed);
	uint32_t *to = (uint32_t *)&f->fe->q->sq[r % f->fe->q->sq_size];
	const uint32_t *from = (const uint32_t *)((r >> 32) % 2 ? &f->a : &f->b);
	uint32_t i = (r >> 40) % 32;

	/* Word by word: what is read is a mixture of both. */
	((volatile uint32_t *)to)[i] = from[i];
}

static int ring_flips(struct frontend *fe)
{
	struct ring_flip f = { .fe = fe, .seed = 99 };
	struct region a, b;
	uint32_t round, i;
	bool all = true;

	CALL(make_region(fe, &a, RW, 0, 0, 4096));
	CALL(make_region(fe, &b, RW, 0, 0, 300000));
	f.a = copy_request(0, &b, 0, &a, 0, 4096);
	f.b = register_request(RW, XNEM_REGION_INDIRECT, 5, 70000);
	f.b.u.reg.ref[0] = a.pages->ref[0];
	scribbler_start(flip_ring, &f);
	for (round = 0; round < 100 && all; round++) {
		for (i = 0; i < fe->q->sq_size; i++)
			shove(fe, i % 2 ? &f.a : &f.b);
		show_all(fe);
		all = take_raw(fe, fe->q->sq_size);
	}
	scribbler_stop();
	note("round %u", round);
	EXPECT(true, all);
	return ping(fe);
}

static int event_storm(struct frontend *fe)
{
	uint64_t end = now_ms() + 3000, n = 0;

	for (; n % 256 || now_ms() < end; n++)
		notify(fe);
	note("%" PRIu64 " events", n);
	EXPECT(true, n > 1000);
	return ping(fe);
}

struct inbox_scribble {
	struct context *ctx;
	struct frontend *fe;
	uint64_t seed;
	volatile uint32_t delivered; /* slots written, at the least */
};

static void scribble_inbox(void *arg)
{
	struct inbox_scribble *s = arg;
	uint64_t r = rnd(&s->seed);
	volatile uint32_t *pages[] = { (uint32_t *)s->ctx->control->mem,
				       (uint32_t *)s->ctx->inbox->mem,
				       (uint32_t *)s->ctx->cpage->mem };

	((volatile struct xnem_context_control *)s->ctx->ctl)->inbox_cons =
		r % 2 ? (uint32_t)(r >> 32) : s->delivered - (uint32_t)(r >> 32) % 64;
	pages[r % 3][(r >> 8) % 1024] = r >> 20;
}

static int inbox_scribbled(struct frontend *fe)
{
	struct inbox_scribble s = { .fe = fe, .seed = 12345 };
	uint32_t i, ok = 0, busy = 0, odd = 0;
	struct xnem_request msg, req;
	struct context ctx;
	struct region a;
	uint16_t status;

	CALL(open_context(fe, &ctx, true, 0));
	s.ctx = &ctx;
	CALL(make_region(fe, &a, RW, 0, 0, 4096));
	msg = message_request(ctx.address, "hostile", 7);
	msg.flags = XNEM_REQ_CPAGE;
	req = copy_request(XNEM_REQ_NOTIFY_SRC | XNEM_REQ_NOTIFY_DST | XNEM_REQ_CPAGE, &a, 0, &a,
			   2048, 100);
	scribbler_start(scribble_inbox, &s);
	for (i = 0; i < 2 * ROUNDS; i++) {
		status = call(fe, i % 2 ? &msg : &req).status;
		/* A copy notifies the owner of its source and of its destination. */
		if (status == XNEM_ST_OK)
			s.delivered += i % 2 ? 1 : 2;
		ok += status == XNEM_ST_OK;
		busy += status == XNEM_ST_BUSY;
		odd += status != XNEM_ST_OK && status != XNEM_ST_BUSY;
	}
	scribbler_stop();
	note("%u delivered, %u refused", ok, busy);
	EXPECT(0, odd);
	EXPECT(true, ok > 0 && busy > 0);
	EXPECT(XNEM_ST_OK, close_context(fe).status);
	return ping(fe);
}

/* All of the header that the backend writes, or that it must not read. */
static void scribble_header(void *arg)
{
	struct inbox_scribble *s = arg;
	uint64_t r = rnd(&s->seed);
	volatile uint32_t *word = (volatile uint32_t *)s->fe->q->header;
	uint32_t i = r % (XNEM_PAGE_SIZE / 4);

	/* Not the four indices; those have tests of their own. */
	if (i != 0 && i != 16 && i != 32 && i != 48)
		word[i] = r >> 20;
}

static int header_scribbled(struct frontend *fe)
{
	struct inbox_scribble s = { .fe = fe, .seed = 777 };
	struct xnem_request ping_req = request(XNEM_OP_PING, 0), req;
	struct region a, w;
	struct context ctx;
	uint32_t round, i;
	bool all = true;

	CALL(open_context(fe, &ctx, true, 0));
	CALL(make_region(fe, &a, RW, 0, 0, 8192));
	/* Its wants go to a place that is scribbled over. */
	CALL(make_windowed(fe, &w, RW, 0, 8192, a.pages));
	req = message_request(ctx.address, "hostile", 7);
	scribbler_start(scribble_header, &s);
	for (round = 0; round < 100 && all; round++) {
		if (round % 50 == 25) {
			req = copy_request(0, &a, 0, &w, 0, 8192);
			shove(fe, &req);
			req = message_request(ctx.address, "hostile", 7);
		} else {
			shove(fe, &req);
		}
		for (i = 1; i < fe->q->sq_size; i++)
			shove(fe, i % 2 ? &req : &ping_req);
		show_all(fe);
		/* The copies that want windows are not answered soon. */
		all = take_raw(fe, fe->q->sq_size - 2);
	}
	scribbler_stop();
	note("round %u", round);
	EXPECT(true, all);
	return 0;
}

/* ---- what waits, and for what never comes ---- */

static int waits_for_nothing(struct frontend *fe)
{
	struct xnem_request req, wrong = request(XNEM_OP_DESCRIBE, 0);
	struct pages *p = grant_pages(fe, 1, true);
	struct xnem_want want;
	struct region a, w;
	uint32_t window, i, id;

	CALL(make_windowed(fe, &w, RW, 0, XNEM_PAGE_SIZE, p));
	CALL(make_region(fe, &a, RW, 0, 0, XNEM_PAGE_SIZE));
	/* Windows that nobody wanted. */
	wrong.tag = 0;
	for (i = 0; i < 40; i++) {
		wrong.u.describe.window = i < 32 ? i : UINT32_MAX - i;
		wrong.u.describe.seq = i;
		wrong.u.describe.nr_pages = 1;
		wrong.u.describe.ref[0] = p->ref[0];
		EXPECT(XNEM_ST_INVALID, call(fe, &wrong).status);
	}
	/* One that is wanted, described as it was not wanted. */
	req = copy_request(0, &a, 0, &w, 0, XNEM_PAGE_SIZE);
	id = post(fe, &req);
	publish(fe);
	CALL(next_want(fe, &window, &want));
	wrong.u.describe.window = window;
	wrong.u.describe.seq = want.seq + 1;
	EXPECT(XNEM_ST_INVALID, call(fe, &wrong).status);
	wrong.u.describe.seq = want.seq;
	wrong.u.describe.nr_pages = 2;
	wrong.u.describe.ref[1] = p->ref[0];
	EXPECT(XNEM_ST_INVALID, call(fe, &wrong).status);
	/* From here on wants are never answered, and all the rest stands behind a fence. */
	req = request(XNEM_OP_PING, XNEM_REQ_FENCE);
	for (i = 0; i < fe->q->sq_size / 2; i++)
		post(fe, &req);
	publish(fe);
	usleep(100000);
	EXPECT(false, answered(fe, id));
	/* The device is disconnected with all of that. */
	return 0;
}

/* Each refused page would be a line in the log of the backend's domain. */
static int pages_not_mapped(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_OPEN_CONTEXT, 0);
	uint32_t i;

	req.u.open.cpage_ref = NO_REF;
	for (i = 0; i < 200; i++) {
		req.context = i % fe->offers.contexts;
		shove(fe, &req);
		if (i % 10 == 9) {
			show_all(fe);
			if (!take_raw(fe, 10))
				break;
		}
	}
	/* It need not answer more than the first. */
	EXPECT(true, wait_backend(fe, STATE_CLOSING, STATE_CLOSING, PATIENCE_MS));
	return 0;
}

static int states_flap(struct frontend *fe)
{
	uint64_t seed = 31337;
	uint32_t round, i, j, t;

	/* Its nodes stay good all the while, so its rings have to be. */
	set_state(fe, STATE_CLOSING);
	EXPECT(true, wait_backend(fe, STATE_CLOSED, STATE_CLOSED, PATIENCE_MS));
	new_header(fe);
	for (round = 0; round < 25; round++) {
		uint32_t state[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

		for (i = 7; i; i--) {
			j = rnd(&seed) % (i + 1);
			t = state[i];
			state[i] = state[j];
			state[j] = t;
		}
		for (i = 0; i < 8; i++)
			set_state(fe, state[i]);
	}
	/* It follows, and serves. */
	EXPECT(true, disconnect_device(fe));
	EXPECT(true, connect_device(fe, NULL));
	return ping(fe);
}

const struct test served_tests[] = {
	{ "lengths and offsets that wrap", lengths_wrap, false },
	{ "references of nothing, of others, read-only", wrong_references, false },
	{ "pages revoked during a large copy", revoked_during_copy, true },
	{ "one id many times in flight", ids_twice, false },
	{ "descriptor pages that change", descriptors_flip, false },
	{ "segment tables that change", segments_flip, false },
	{ "ring entries that change", ring_flips, false },
	{ "events without end", event_storm, false },
	{ "inbox and control page scribbled over", inbox_scribbled, false },
	{ "the header scribbled over", header_scribbled, false },
	{ "windows that are never described", waits_for_nothing, false },
	{ "pages of a context that are not granted", pages_not_mapped, false },
	{ "states that flap", states_flap, false },
	{},
};

/* ---- for which it is cut off ---- */

static int submission_ahead(struct frontend *fe)
{
	store_release(&fe->q->header->sq.prod, fe->q->sq_prod + fe->q->sq_size + 1);
	notify(fe);
	return 0;
}

static int submission_behind(struct frontend *fe)
{
	store_release(&fe->q->header->sq.prod, fe->q->sq_prod - 1);
	notify(fe);
	return 0;
}

static int completion(struct frontend *fe, uint32_t cons)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);

	store_release(&fe->q->header->cq.cons, cons);
	shove(fe, &req);
	show_all(fe);
	return 0;
}

static int completion_ahead(struct frontend *fe)
{
	return completion(fe, fe->q->cq_cons + 1);
}

static int completion_behind(struct frontend *fe)
{
	return completion(fe, fe->q->cq_cons - fe->q->cq_size - 1);
}

static int never_drains(struct frontend *fe)
{
	struct xnem_request req = request(XNEM_OP_PING, 0);
	uint32_t i;

	for (i = 0; i <= fe->q->max_inflight; i++) {
		while (fe->q->sq_prod - load_acquire(&fe->q->header->sq.cons) >= fe->q->sq_size)
			usleep(100);
		shove(fe, &req);
		show_all(fe);
	}
	return 0;
}

/* A device that ends, and comes back, again and again, each time with a line in the log. */
static int never_mapped(struct frontend *fe)
{
	uint32_t i;

	for (i = 0; i < 50; i++) {
		CALL(pages_not_mapped(fe));
		if (i == 49)
			break;
		EXPECT(true, disconnect_device(fe));
		set_state(fe, STATE_INITIALISING);
		if (!wait_backend(fe, STATE_INIT_WAIT, STATE_INIT_WAIT, 2000))
			break;
		EXPECT(true, connect_device(fe, NULL));
	}
	note("%u times", i);
	EXPECT(true, i < 10);
	return 0;
}

const struct test cut_tests[] = {
	{ "submission-ahead", submission_ahead, false },
	{ "submission-behind", submission_behind, false },
	{ "completion-ahead", completion_ahead, false },
	{ "completion-behind", completion_behind, false },
	{ "never-drains", never_drains, false },
	{ "never-mapped", never_mapped, false },
	{},
};
