// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Index arithmetic of a ring, against a model that counts in 64 bits and
 * never wraps, and what a hostile side may write there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "xnem_ring.h"

/* Where indices are interesting: the wrap at 2^32, the sign, the middle. */
static const u64 bases[] = {
	1ull << 32,
	(1ull << 32) - 1,
	(1ull << 32) - 7,
	(1ull << 32) + 5,
	(1ull << 32) + 0x7fffffff,
	(1ull << 32) + 0x80000000,
	(1ull << 32) + 0x7ffffffa,
	(1ull << 33) - 3,
	(1ull << 40) + 12345,
};
#define NR_BASES (sizeof(bases) / sizeof(bases[0]))

static void sizes(void **state)
{
	u32 order, v;

	(void)state;
	assert_false(xnem_ring_size_ok(0));
	for (order = 0; order < 32; order++)
		assert_true(xnem_ring_size_ok(1u << order));
	for (v = 0; v < 5000; v++) {
		bool power = v && __builtin_popcount(v) == 1;

		assert_int_equal(xnem_ring_size_ok(v), power);
	}
	assert_false(xnem_ring_size_ok(0xffffffffu));
	assert_false(xnem_ring_size_ok(0x80000001u));
}

static void used_wraps(void **state)
{
	size_t b;
	u32 n;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (n = 0; n <= 2048; n++)
			assert_int_equal(xnem_ring_used((u32)(bases[b] + n), (u32)bases[b]), n);
}

/*
 * The rule in 64 bits: event in (from, to].  32 bits tell it apart exactly as
 * long as event lies less than 2^32 behind to, or less than 2^32 - (to - from)
 * beyond it.
 */
static bool model_event_in(u64 event, u64 from, u64 to)
{
	return event > from && event <= to;
}

static void check_event(u64 event, u64 from, u64 to)
{
	if (xnem_ring_event_in((u32)event, (u32)from, (u32)to) != model_event_in(event, from, to))
		fail_msg("event %#llx, from %#llx, to %#llx", (unsigned long long)event,
			 (unsigned long long)from, (unsigned long long)to);
}

static void event_in_near(void **state)
{
	size_t b;
	u64 n;
	int64_t d;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (n = 0; n <= 64; n++)
			for (d = -200; d <= 200; d++)
				check_event(bases[b] + (u64)d, bases[b], bases[b] + n);
}

static void event_in_far(void **state)
{
	static const u64 back[] = { 0,		1,	    2,		0x7fffffff,
				    0x80000000, 0x80000001, 0xfffffffe, 0xffffffff };
	static const u64 ahead[] = { 0, 1, 2, 0x7fffffff, 0x80000000, 0x80000001 };
	static const u64 batch[] = { 0, 1, 2, 32, 512, 2048 };
	size_t b, n, i;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (n = 0; n < sizeof(batch) / sizeof(batch[0]); n++) {
			u64 from = bases[b], to = from + batch[n];

			for (i = 0; i < sizeof(back) / sizeof(back[0]); i++)
				check_event(to - back[i], from, to);
			for (i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++)
				check_event(to + ahead[i], from, to);
			check_event(from + 0xffffffff, from, to);
		}
}

/* Nothing published asks for nothing, whatever event says. */
static void event_in_nothing(void **state)
{
	size_t b, e;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (e = 0; e < NR_BASES; e++)
			assert_false(
				xnem_ring_event_in((u32)bases[e], (u32)bases[b], (u32)bases[b]));
}

/*
 * Exactly one notification for each armed event, however the entries after it
 * are cut into batches.
 */
static void event_once(void **state)
{
	u32 start, cuts;

	(void)state;
	for (start = 0xfffffff0u; start != 0x10; start++)
		for (cuts = 0; cuts < 1u << 7; cuts++) {
			u32 event = start + 1, from = start, i, told = 0;

			/* Bit i: a batch ends after entry i; the last always does. */
			for (i = 0; i < 8; i++) {
				if (i < 7 && !(cuts & (1u << i)))
					continue;
				told += xnem_ring_event_in(event, from, start + i + 1);
				from = start + i + 1;
			}
			assert_int_equal(told, 1);
		}
}

static void space(void **state)
{
	struct xnem_ring_index ix = { 0 };
	u32 order, n;
	size_t b;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (order = 0; order <= 9; order++) {
			u32 size = 1u << order;

			ix.cons = (u32)bases[b];
			for (n = 0; n <= size; n++)
				assert_int_equal(xnem_ring_space(&ix, ix.cons + n, size), size - n);
		}
}

/* A consumer that claims what was never there gets nothing more. */
static void space_garbage(void **state)
{
	static const u32 ahead[] = { 1, 2, 0x7fffffff, 0x80000000, 0x80000001 };
	static const u32 behind[] = { 1, 2, 0x7fffff00, 0x7fffffff };
	struct xnem_ring_index ix = { 0 };
	u32 order;
	size_t b, i;

	(void)state;
	for (b = 0; b < NR_BASES; b++)
		for (order = 0; order <= 11; order++) {
			u32 size = 1u << order, prod = (u32)bases[b];

			for (i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
				ix.cons = prod + ahead[i];
				assert_int_equal(xnem_ring_space(&ix, prod, size), 0);
			}
			for (i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
				ix.cons = prod - size - behind[i];
				assert_int_equal(xnem_ring_space(&ix, prod, size), 0);
			}
		}
}

/* What the consumer must refuse: every index but size + 1 of them. */
static void look_garbage(void **state)
{
	struct xnem_ring_index ix = { 0 };
	const u32 size = 4, cons = 0xfffffffeu;
	u32 good = 0, i;

	(void)state;
	/* All of 2^32 in strides, and every one around the ring. */
	for (i = 0; i < 4096; i++) {
		ix.prod = cons + i * 0x100000u;
		assert_int_equal(xnem_ring_used(xnem_ring_look(&ix), cons) <= size, i == 0);
	}
	for (i = 0; i < 200; i++) {
		ix.prod = cons - 100 + i;
		good += xnem_ring_used(xnem_ring_look(&ix), cons) <= size;
	}
	assert_int_equal(good, size + 1);
}

/* Each function writes its own index and nothing else of the page. */
static void writes_its_own(void **state)
{
	struct xnem_queue_header h, want;

	(void)state;
	memset(&h, 0x5a, sizeof(h));
	want = h;
	want.sq.prod = 7;
	xnem_ring_publish(&h.sq, 5, 7);
	assert_memory_equal(&h, &want, sizeof(h));
	want.sq.cons = 6;
	xnem_ring_release(&h.sq, 6);
	assert_memory_equal(&h, &want, sizeof(h));
	want.cq.event = 10;
	xnem_ring_arm(&h.cq, 9);
	assert_memory_equal(&h, &want, sizeof(h));
	xnem_ring_space(&h.cq, 1, 8);
	xnem_ring_look(&h.cq);
	assert_memory_equal(&h, &want, sizeof(h));
}

static void arm(void **state)
{
	struct xnem_ring_index ix = { 0 };
	size_t b;

	(void)state;
	for (b = 0; b < NR_BASES; b++) {
		u32 cons = (u32)bases[b];

		ix.prod = cons;
		assert_true(xnem_ring_arm(&ix, cons));
		assert_int_equal(ix.event, (u32)(cons + 1));
		ix.prod = cons + 1;
		assert_false(xnem_ring_arm(&ix, cons));
		/* A producer that went backwards: look again and find garbage. */
		ix.prod = cons - 1;
		assert_false(xnem_ring_arm(&ix, cons));
	}
}

/* Over the wrap with a ring in use, in a single thread. */
static void round_and_round(void **state)
{
	struct xnem_ring_index ix = { .event = 0xffffff01u };
	const u32 size = 32;
	u32 prod = 0xffffff00u, cons = prod, told = 0, slept = 1, turn;
	u32 slot[32];

	(void)state;
	ix.prod = ix.cons = prod;
	for (turn = 0; turn < 10000; turn++) {
		u32 n = turn % (size + 1), i;

		assert_int_equal(xnem_ring_space(&ix, prod, size), size);
		for (i = 0; i < n; i++)
			slot[(prod + i) & (size - 1)] = (prod + i) * 3;
		told += xnem_ring_publish(&ix, prod, prod + n);
		prod += n;
		assert_int_equal(xnem_ring_space(&ix, prod, size), size - n);
		assert_int_equal(xnem_ring_used(xnem_ring_look(&ix), cons), n);
		for (i = 0; i < n; i++)
			assert_int_equal(slot[(cons + i) & (size - 1)], (cons + i) * 3);
		cons += n;
		xnem_ring_release(&ix, cons);
		if (n) {
			assert_int_equal(told, slept);
			assert_true(xnem_ring_arm(&ix, cons));
			slept++;
		}
	}
	assert_true(prod < 0xffffff00u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(used_wraps),
		cmocka_unit_test(event_in_near),
		cmocka_unit_test(event_in_far),
		cmocka_unit_test(event_in_nothing),
		cmocka_unit_test(event_once),
		cmocka_unit_test(space),
		cmocka_unit_test(space_garbage),
		cmocka_unit_test(look_garbage),
		cmocka_unit_test(writes_its_own),
		cmocka_unit_test(arm),
		cmocka_unit_test(round_and_round),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
