// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Sleeping and waking over every interleaving: an explicit-state search that
 * runs the functions of xnem_ring.h themselves, through their hooks.
 *
 * Threads.  One producer a ring and one consumer for all rings.  A thread is a
 * function that does one round from a few saved variables.  It is run again
 * from the start of its round for every step, with what its earlier steps of
 * that round returned given back from a log, up to the first step that has not
 * been taken; whatever it does beyond is without effect.  So a state is plain
 * data, can be copied, and equal states are explored once (told apart by 128
 * bits of hash).
 *
 * Memory.  Three models, each weaker than the one before:
 *
 *   TSO     a store waits in a buffer, first in first out, and may become
 *           visible at any time; a full barrier waits until it is empty (x86)
 *   WEAK    stores to different locations leave the buffer in any order that
 *           write barriers allow; a load may return any value that the
 *           location has had since the thread's last read barrier; a load
 *           whose value is not needed yet (slot contents) may happen after
 *           later stores, until the next read barrier (ARM and the like)
 *   GUESS   as WEAK, and stores that depend on a load of cons may happen
 *           before it, as if its value had been guessed: what a compiler
 *           could make of it, no processor does
 *
 * A notification is not a barrier in any of them, nor is waking up.
 *
 * Steps that only touch a thread's own buffer (a store, a barrier that does
 * not have to wait) are taken at once: doing them later allows nothing more.
 *
 * What must hold: no state in which the consumer sleeps, no notification is
 * on its way, a producer has nothing left to do for what it has published,
 * and entries are not consumed; a slot's contents are those of the entry that
 * is read (neither too early nor overwritten); no index is ever garbage; at
 * the end everything is consumed.
 *
 * The checker is itself checked: each barrier that is taken away from the
 * real functions, and each rule of the protocol that a thread breaks, must be
 * found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define XNEM_PORT_HOOKS
#include "xnem_ring.h"

#define MAX_RINGS 2
#define MAX_THREADS (MAX_RINGS + 1)
#define MAX_SLOTS 4
#define MAX_HIST 12
#define MAX_BUF 10
#define MAX_LAZY 4
#define MAX_LOG 32
#define MAX_STEPS 64
#define MAX_DEPTH 400

/* Locations of a ring. */
enum { PROD, CONS, EVENT, SLOT, LOCS = SLOT + MAX_SLOTS };
#define MAX_LOCS (MAX_RINGS * LOCS)

enum model { TSO, WEAK, GUESS };

/* Where in the protocol a barrier stands. */
enum place { NOWHERE, PUBLISH, LOOK, RELEASE, SPACE, ARM };
enum barrier { NO_BARRIER, RMB, WMB, MB };

/* Rules of the protocol that a thread can be told to break. */
enum rule {
	KEEP_RULES,
	SLEEP_WITHOUT_ARM, /* wait for an event that nobody was asked for */
	IGNORE_SECOND_LOOK, /* arm, but sleep whatever it says */
	ARM_THEN_CONSUME, /* arm, look, consume, sleep */
	ARM_FIRST_RING_ONLY, /* the other rings are not armed */
	ARM_ONE_TOO_FAR, /* event = cons + 2 */
	ARM_ONE_TOO_NEAR, /* event = cons: lies behind, asks for nothing */
	RELEASE_BEFORE_READ, /* cons moves before slots are read */
	NO_SPACE_CHECK, /* the producer overwrites what is not consumed */
	LAST_ENTRY_ONLY, /* the producer looks for event in its last entry */
	NO_NOTIFY, /* the producer forgets to notify */
};

struct config {
	enum model model;
	u32 rings;
	u32 size; /* slots of a ring */
	u32 entries; /* entries a producer publishes */
	u32 batch; /* 1 .. batch entries at once */
	u32 start; /* first index */
	bool one_by_one; /* the consumer releases each slot by itself */
	/* mutation: this barrier of this function does nothing */
	enum place place;
	enum barrier barrier;
	enum rule rule;
};

enum kind {
	DONE,
	LOAD, /* result: value */
	STORE, /* local */
	READ, /* slot contents, must be val; local when it can be late */
	RBAR, /* local when it does not have to wait */
	WBAR, /* local */
	FULL, /* local when it does not have to wait */
	CHOOSE, /* result: 1 .. val */
	WAIT, /* until cons has reached val */
	NOTIFY,
	SLEEP,
	GARBAGE, /* the thread has seen what must not be */
};

static const char *const kind_names[] = { "done",	  "load",	  "store",
					  "read slot",	  "read barrier", "write barrier",
					  "full barrier", "choose",	  "wait",
					  "notify",	  "sleep",	  "garbage" };

struct action {
	u8 kind;
	u8 loc;
	u8 place;
	u32 val;
};

struct buffered {
	u8 loc;
	u8 epoch; /* write barriers before it */
	u32 val;
};

struct lazy {
	u8 loc;
	u8 guess; /* a guess that is wrong prunes; a slot that is wrong fails */
	u32 expect;
};

/* What its reader may still read, oldest first; the last is what is there. */
struct location {
	u32 n;
	u32 val[MAX_HIST];
};

struct thread {
	u32 saved[MAX_RINGS];
	u32 nlog, nbuf, nlazy, epoch;
	u32 log[MAX_LOG];
	struct buffered buf[MAX_BUF];
	struct lazy lazy[MAX_LAZY];
	struct action next;
};

struct state {
	struct location mem[MAX_LOCS];
	struct thread t[MAX_THREADS];
	u32 pending; /* a notification is on its way */
	u32 wrong; /* a slot was wrong; counts once guesses have come true */
};

enum step_kind { ACT, DRAIN, BIND };
struct step {
	u8 thread, kind, which;
	u32 arg;
};

static struct config cfg;
static u32 nthreads;

/* ---- running a thread to its next step ---- */

static struct xnem_ring_index rings[MAX_RINGS]; /* only addresses count */
static struct thread *self;
static u32 at; /* position in the log */
static bool over; /* the step to take is found: the rest of the run is void */
static enum place place;

static u32 step_value(enum kind kind, u32 loc, u32 val)
{
	if (over)
		return 0;
	if (at < self->nlog)
		return self->log[at++];
	self->next = (struct action){ .kind = kind, .loc = (u8)loc, .place = place, .val = val };
	over = true;
	return 0;
}

static u32 loc_of(const u32 *p)
{
	u32 r;

	for (r = 0; r < cfg.rings; r++) {
		if (p == &rings[r].prod)
			return r * LOCS + PROD;
		if (p == &rings[r].cons)
			return r * LOCS + CONS;
		if (p == &rings[r].event)
			return r * LOCS + EVENT;
	}
	abort();
}

static bool removed(enum barrier b)
{
	return cfg.place == place && cfg.barrier == b;
}

u32 xnem_hook_load32(const u32 *p)
{
	return step_value(LOAD, loc_of(p), 0);
}

void xnem_hook_store32(u32 *p, u32 v)
{
	u32 loc = loc_of(p);

	if (cfg.rule == ARM_ONE_TOO_FAR && loc % LOCS == EVENT)
		v++;
	if (cfg.rule == ARM_ONE_TOO_NEAR && loc % LOCS == EVENT)
		v--;
	step_value(STORE, loc, v);
}

void xnem_hook_rmb(void)
{
	if (!removed(RMB))
		step_value(RBAR, 0, 0);
}

void xnem_hook_wmb(void)
{
	if (!removed(WMB))
		step_value(WBAR, 0, 0);
}

void xnem_hook_mb(void)
{
	if (!removed(MB))
		step_value(FULL, 0, 0);
}

/* The contents of entry @idx; never 0, which is what slots hold at first. */
static u32 token(u32 idx)
{
	return idx - cfg.start + 1;
}

static u32 slot_loc(u32 ring, u32 idx)
{
	return ring * LOCS + SLOT + (idx & (cfg.size - 1));
}

/* One batch. */
static void producer_round(u32 ring)
{
	u32 prod = self->saved[0], left = cfg.start + cfg.entries - prod;
	u32 n, i, from;
	bool event;

	if (!left) {
		step_value(DONE, 0, 0);
		return;
	}
	n = step_value(CHOOSE, 0, left < cfg.batch ? left : cfg.batch);
	if (cfg.rule != NO_SPACE_CHECK) {
		u32 room;

		for (;;) {
			place = SPACE;
			room = xnem_ring_space(&rings[ring], prod, cfg.size);
			place = NOWHERE;
			if (room >= n || over)
				break;
			step_value(WAIT, ring * LOCS + CONS, prod + n - cfg.size);
		}
	}
	for (i = 0; i < n; i++)
		step_value(STORE, slot_loc(ring, prod + i), token(prod + i));
	from = cfg.rule == LAST_ENTRY_ONLY ? prod + n - 1 : prod;
	place = PUBLISH;
	event = xnem_ring_publish(&rings[ring], from, prod + n);
	place = NOWHERE;
	if (event && cfg.rule != NO_NOTIFY)
		step_value(NOTIFY, 0, 0);
	if (!over)
		self->saved[0] = prod + n;
}

static bool arm_all(void)
{
	bool sleep = true;
	u32 r;

	for (r = 0; r < cfg.rings; r++) {
		if (r && cfg.rule == ARM_FIRST_RING_ONLY)
			break;
		place = ARM;
		if (!xnem_ring_arm(&rings[r], self->saved[r]))
			sleep = false;
		place = NOWHERE;
	}
	return sleep;
}

/* A pass over all rings; armed and asleep when there was nothing. */
static void consumer_round(void)
{
	/*
	 * Variables of the round must not be saved before it is over, or the
	 * next run of it would begin from them.
	 */
	u32 cons[MAX_RINGS], r, i, j;
	bool any = false;

	memcpy(cons, self->saved, sizeof(cons));
	if (cfg.rule == ARM_THEN_CONSUME)
		arm_all();
	for (r = 0; r < cfg.rings; r++) {
		u32 prod, used;

		place = LOOK;
		prod = xnem_ring_look(&rings[r]);
		place = NOWHERE;
		used = xnem_ring_used(prod, cons[r]);
		if (used > cfg.size)
			step_value(GARBAGE, r * LOCS + PROD, prod);
		if (over)
			return;
		for (i = 0; i < used; i++) {
			bool last = cfg.one_by_one || i == used - 1;

			if (cfg.rule != RELEASE_BEFORE_READ)
				step_value(READ, slot_loc(r, cons[r] + i), token(cons[r] + i));
			if (!last)
				continue;
			place = RELEASE;
			xnem_ring_release(&rings[r], cons[r] + i + 1);
			place = NOWHERE;
			if (cfg.rule != RELEASE_BEFORE_READ)
				continue;
			for (j = cfg.one_by_one ? i : 0; j <= i; j++)
				step_value(READ, slot_loc(r, cons[r] + j), token(cons[r] + j));
		}
		any |= used != 0;
		cons[r] = prod;
	}
	if (any && cfg.rule != ARM_THEN_CONSUME)
		goto out;
	switch (cfg.rule) {
	case SLEEP_WITHOUT_ARM:
	case ARM_THEN_CONSUME:
		break;
	case IGNORE_SECOND_LOOK:
		arm_all();
		break;
	default:
		if (!arm_all())
			goto out;
	}
	/* Asleep, everything below saved[] is consumed. */
	step_value(SLEEP, 0, 0);
out:
	if (!over)
		memcpy(self->saved, cons, sizeof(cons));
}

/* ---- memory ---- */

static u32 latest(const struct state *s, u32 loc)
{
	return s->mem[loc].val[s->mem[loc].n - 1];
}

/* Each location is read by one thread only. */
static u32 reader(u32 loc)
{
	return loc % LOCS == CONS || loc % LOCS == EVENT ? loc / LOCS : cfg.rings;
}

/* The reader of @loc will never see values before number @first again. */
static void forget(struct state *s, u32 loc, u32 first)
{
	struct location *l = &s->mem[loc];

	memmove(l->val, l->val + first, (l->n - first) * sizeof(l->val[0]));
	l->n -= first;
}

static void make_visible(struct state *s, u32 loc, u32 val)
{
	struct location *l = &s->mem[loc];

	if (l->val[l->n - 1] == val)
		return;
	if (l->n == MAX_HIST)
		abort();
	l->val[l->n++] = val;
	if (cfg.model == TSO)
		forget(s, loc, l->n - 1);
}

/* A barrier: from here on @tid reads what is there now, or newer. */
static void see_latest(struct state *s, u32 tid)
{
	u32 loc;

	for (loc = 0; loc < cfg.rings * LOCS; loc++)
		if (reader(loc) == tid)
			forget(s, loc, s->mem[loc].n - 1);
}

static void log_result(struct thread *t, u32 v)
{
	if (t->nlog == MAX_LOG)
		abort();
	t->log[t->nlog++] = v;
}

static void run_to_step(struct state *s, u32 tid)
{
	u32 rounds = 0;

	self = &s->t[tid];
	for (;;) {
		at = 0;
		place = NOWHERE;
		over = false;
		if (tid < cfg.rings)
			producer_round(tid);
		else
			consumer_round();
		if (over)
			return;
		/* A round is over: nothing of it is remembered but saved[]. */
		memset(self->log, 0, self->nlog * sizeof(self->log[0]));
		self->nlog = 0;
		if (++rounds > 10)
			abort();
	}
}

static void check_slot(struct state *s, u32 expect, u32 v)
{
	if (v != expect)
		s->wrong = 1;
}

/* Takes the steps that are the thread's own business. */
static void settle(struct state *s, u32 tid)
{
	struct thread *t = &s->t[tid];

	for (;;) {
		struct action *a = &t->next;

		run_to_step(s, tid);
		switch (a->kind) {
		case STORE:
			if (t->nbuf == MAX_BUF)
				abort();
			t->buf[t->nbuf++] = (struct buffered){ .loc = a->loc,
							       .epoch = (u8)t->epoch,
							       .val = a->val };
			break;
		case WBAR:
			if (t->nbuf)
				t->epoch++;
			break;
		case READ:
			if (cfg.model == TSO)
				return;
			if (t->nlazy == MAX_LAZY)
				return; /* waits: as if a read barrier stood here */
			t->lazy[t->nlazy++] = (struct lazy){ .loc = a->loc, .expect = a->val };
			break;
		case RBAR:
			if (t->nlazy)
				return;
			see_latest(s, tid);
			break;
		case FULL:
			if (t->nlazy || t->nbuf)
				return;
			see_latest(s, tid);
			break;
		default:
			return;
		}
		log_result(t, 0);
	}
}

static bool guesses_open(const struct state *s)
{
	u32 t, i;

	for (t = 0; t < nthreads; t++)
		for (i = 0; i < s->t[t].nlazy; i++)
			if (s->t[t].lazy[i].guess)
				return true;
	return false;
}

static u32 list_steps(const struct state *s, struct step *out)
{
	u32 n = 0, tid, i, j;

#define ADD(k, w, a)                                                                               \
	do {                                                                                       \
		if (n == MAX_STEPS)                                                                \
			abort();                                                                   \
		out[n++] =                                                                         \
			(struct step){ .thread = (u8)tid, .kind = k, .which = (u8)(w), .arg = a }; \
	} while (0)

	for (tid = 0; tid < nthreads; tid++) {
		const struct thread *t = &s->t[tid];
		const struct action *a = &t->next;

		for (i = 0; i < t->nbuf; i++) {
			if (cfg.model == TSO && i)
				break;
			for (j = 0; j < i; j++)
				if (t->buf[j].loc == t->buf[i].loc ||
				    t->buf[j].epoch < t->buf[i].epoch)
					break;
			if (j == i)
				ADD(DRAIN, i, 0);
		}
		for (i = 0; i < t->nlazy; i++) {
			const struct location *l = &s->mem[t->lazy[i].loc];

			for (j = 0; j < l->n; j++)
				if (!t->lazy[i].guess || l->val[j] == t->lazy[i].expect)
					ADD(BIND, i, j);
		}
		switch (a->kind) {
		case LOAD:
			for (i = t->nbuf; i--;)
				if (t->buf[i].loc == a->loc)
					break;
			if (i != (u32)-1) {
				ADD(ACT, 0, 0xff); /* its own store, not yet visible */
				break;
			}
			/* Once a round is enough, or it could guess for ever. */
			if (cfg.model == GUESS && a->place == SPACE && t->nlog == 1) {
				for (i = 0; i <= cfg.entries; i++)
					ADD(ACT, 1, cfg.start + i);
				break;
			}
			for (i = 0; i < s->mem[a->loc].n; i++)
				ADD(ACT, 0, i);
			break;
		case READ:
			if (cfg.model == TSO)
				ADD(ACT, 0, 0);
			break;
		case CHOOSE:
			for (i = 1; i <= a->val; i++)
				ADD(ACT, 0, i);
			break;
		case WAIT:
			if ((int32_t)(latest(s, a->loc) - a->val) >= 0)
				ADD(ACT, 0, 0);
			break;
		case NOTIFY:
			ADD(ACT, 0, 0);
			break;
		case SLEEP:
			if (s->pending)
				ADD(ACT, 0, 0);
			break;
		default:
			break;
		}
	}
#undef ADD
	return n;
}

static void take_step(struct state *s, const struct step *st)
{
	struct thread *t = &s->t[st->thread];
	struct action *a = &t->next;
	u32 i, v = 0;

	switch (st->kind) {
	case DRAIN: {
		struct buffered b = t->buf[st->which];

		for (i = st->which; i + 1 < t->nbuf; i++)
			t->buf[i] = t->buf[i + 1];
		memset(&t->buf[--t->nbuf], 0, sizeof(t->buf[0]));
		if (!t->nbuf)
			t->epoch = 0;
		make_visible(s, b.loc, b.val);
		break;
	}
	case BIND: {
		struct lazy l = t->lazy[st->which];

		for (i = st->which; i + 1 < t->nlazy; i++)
			t->lazy[i] = t->lazy[i + 1];
		memset(&t->lazy[--t->nlazy], 0, sizeof(t->lazy[0]));
		if (!l.guess)
			check_slot(s, l.expect, s->mem[l.loc].val[st->arg]);
		forget(s, l.loc, st->arg);
		break;
	}
	case ACT:
		switch (a->kind) {
		case LOAD:
			if (st->which) { /* a guess, to come true later */
				if (t->nlazy == MAX_LAZY)
					abort();
				t->lazy[t->nlazy++] = (struct lazy){ .loc = a->loc,
								     .guess = 1,
								     .expect = st->arg };
				v = st->arg;
			} else if (st->arg == 0xff) {
				for (i = t->nbuf; i--;)
					if (t->buf[i].loc == a->loc) {
						v = t->buf[i].val;
						break;
					}
			} else {
				v = s->mem[a->loc].val[st->arg];
				/* Two loads of one location never go back. */
				forget(s, a->loc, st->arg);
			}
			break;
		case READ:
			check_slot(s, a->val, latest(s, a->loc));
			break;
		case CHOOSE:
			v = st->arg;
			break;
		case WAIT:
			forget(s, a->loc, s->mem[a->loc].n - 1);
			break;
		case NOTIFY:
			s->pending = 1;
			break;
		case SLEEP:
			s->pending = 0;
			break;
		}
		log_result(t, v);
		break;
	}
	settle(s, st->thread);
}

/* ---- the search ---- */

struct seen {
	u64 h[2];
	double paths;
	u32 open;
	u32 search; /* which one this was seen in; any other: a free entry */
};

static struct seen *table;
static u64 table_size, states, transitions;
static u32 this_search;
static const char *violation;
static struct {
	struct step step;
	struct action action;
	u32 val, loc;
} trail[MAX_DEPTH];
static u32 trail_len;

static u64 mix(u64 h, u64 v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

static u64 hash[2];

static void hash_u32(u32 v)
{
	hash[0] = mix(hash[0], v);
	hash[1] = mix(hash[1] + 0x2545f4914f6cdd1dull, ~(u64)v);
}

static void hash_state(const struct state *s)
{
	u32 loc, t, i;

	hash[0] = 1;
	hash[1] = 2;
	hash_u32(s->pending | s->wrong << 1);
	for (loc = 0; loc < cfg.rings * LOCS; loc++) {
		hash_u32(s->mem[loc].n);
		for (i = 0; i < s->mem[loc].n; i++)
			hash_u32(s->mem[loc].val[i]);
	}
	for (t = 0; t < nthreads; t++) {
		const struct thread *th = &s->t[t];
		/* Epochs count from the oldest store in the buffer. */
		u32 base = th->nbuf ? th->buf[0].epoch : th->epoch;

		for (i = 1; i < th->nbuf; i++)
			if (th->buf[i].epoch < base)
				base = th->buf[i].epoch;
		hash_u32(th->nlog | th->nbuf << 8 | th->nlazy << 16 | (th->epoch - base) << 24);
		for (i = 0; i < MAX_RINGS; i++)
			hash_u32(th->saved[i]);
		for (i = 0; i < th->nlog; i++)
			hash_u32(th->log[i]);
		for (i = 0; i < th->nbuf; i++) {
			hash_u32(th->buf[i].loc | (th->buf[i].epoch - base) << 8);
			hash_u32(th->buf[i].val);
		}
		for (i = 0; i < th->nlazy; i++) {
			hash_u32(th->lazy[i].loc | th->lazy[i].guess << 8);
			hash_u32(th->lazy[i].expect);
		}
	}
}

static struct seen *find(const u64 *h)
{
	u64 i = h[0] & (table_size - 1);

	while (table[i].search == this_search && (table[i].h[0] != h[0] || table[i].h[1] != h[1]))
		i = (i + 1) & (table_size - 1);
	return &table[i];
}

static void grow(void)
{
	struct seen *old = table;
	u64 n = table_size, i;

	table_size *= 2;
	table = calloc(table_size, sizeof(*table));
	if (!table)
		abort();
	for (i = 0; i < n; i++)
		if (old[i].search == this_search)
			*find(old[i].h) = old[i];
	free(old);
}

/* What must never be; NULL when all is well. */
static const char *judge(const struct state *s, bool end)
{
	const struct thread *c = &s->t[cfg.rings];
	u32 r;

	if (guesses_open(s))
		return NULL; /* nothing of this has happened yet */
	if (s->wrong)
		return "slot";
	if (c->next.kind == GARBAGE)
		return "index";
	if (c->next.kind == SLEEP && !s->pending)
		for (r = 0; r < cfg.rings; r++) {
			const struct thread *p = &s->t[r];

			/* Between two batches, and all of it is out. */
			if (p->nbuf || p->nlog)
				continue;
			if (p->next.kind != DONE && p->next.kind != CHOOSE)
				continue;
			/* saved[]: a round that ends in sleep has consumed nothing. */
			if (cfg.rule != ARM_THEN_CONSUME && p->saved[0] != c->saved[r])
				return "lost wakeup";
		}
	if (!end)
		return NULL;
	for (r = 0; r < cfg.rings; r++)
		if (s->t[r].next.kind != DONE ||
		    latest(s, r * LOCS + CONS) != cfg.start + cfg.entries)
			return "lost wakeup";
	return NULL;
}

static void print_trail(void)
{
	static const char *const loc_names[] = { "prod", "cons", "event" };
	static const char *const step_names[] = { "", "visible: ", "late: " };
	u32 i;

	for (i = 0; i < trail_len; i++) {
		u32 loc = trail[i].loc % LOCS;
		char slot[16];

		snprintf(slot, sizeof(slot), "slot%u", loc - SLOT);
		print_message("  %s%u: %s%s", trail[i].step.thread < cfg.rings ? "P" : "C",
			      trail[i].step.thread, step_names[trail[i].step.kind],
			      trail[i].step.kind == ACT ? kind_names[trail[i].action.kind] : "");
		if (trail[i].step.kind != ACT || trail[i].action.kind == LOAD ||
		    trail[i].action.kind == READ)
			print_message(" %s%s%u", loc < SLOT ? loc_names[loc] : slot,
				      trail[i].step.kind == DRAIN ? " = " : " is ", trail[i].val);
		print_message("\n");
	}
}

/* Paths from @s to an end, each a different interleaving. */
static double explore(const struct state *s, u32 depth)
{
	struct step steps[MAX_STEPS];
	u64 h[2];
	struct seen *seen;
	double paths = 0;
	u32 n, i;

	hash_state(s);
	memcpy(h, hash, sizeof(h));
	seen = find(h);
	if (seen->search == this_search)
		return seen->open ? 0 : seen->paths;
	memcpy(seen->h, h, sizeof(h));
	seen->search = this_search;
	seen->open = 1;
	if (++states * 2 > table_size)
		grow();

	n = list_steps(s, steps);
	violation = judge(s, !n);
	if (violation)
		return 0;
	if (depth == MAX_DEPTH)
		abort();
	for (i = 0; i < n && !violation; i++) {
		const struct thread *t = &s->t[steps[i].thread];
		struct state next = *s;

		transitions++;
		trail_len = depth + 1;
		trail[depth].step = steps[i];
		trail[depth].action = t->next;
		if (steps[i].kind == DRAIN) {
			trail[depth].loc = t->buf[steps[i].which].loc;
			trail[depth].val = t->buf[steps[i].which].val;
		} else if (steps[i].kind == BIND) {
			trail[depth].loc = t->lazy[steps[i].which].loc;
			trail[depth].val = s->mem[trail[depth].loc].val[steps[i].arg];
		} else {
			trail[depth].loc = t->next.loc;
			trail[depth].val = 0;
			if (t->next.kind == LOAD && !steps[i].which && steps[i].arg != 0xff)
				trail[depth].val = s->mem[t->next.loc].val[steps[i].arg];
			else if (t->next.kind == LOAD && steps[i].which)
				trail[depth].val = steps[i].arg;
		}
		take_step(&next, &steps[i]);
		paths += explore(&next, depth + 1);
	}
	/* An end at which a guess never came true did not happen. */
	if (!n)
		paths = !guesses_open(s);
	seen = find(h);
	seen->open = 0;
	seen->paths = paths;
	return paths;
}

static double total_paths;
static bool quiet;
static u64 total_states;

static const char *search(const struct config *c)
{
	static struct state s;
	u32 loc, t, r;
	double paths;

	cfg = *c;
	nthreads = cfg.rings + 1;
	memset(&s, 0, sizeof(s));
	for (loc = 0; loc < cfg.rings * LOCS; loc++) {
		s.mem[loc].n = 1;
		if (loc % LOCS < SLOT)
			s.mem[loc].val[0] = cfg.start + (loc % LOCS == EVENT);
	}
	for (r = 0; r < cfg.rings; r++) {
		s.t[r].saved[0] = cfg.start;
		s.t[cfg.rings].saved[r] = cfg.start;
	}
	if (!table) {
		table_size = 1 << 12;
		table = calloc(table_size, sizeof(*table));
		assert_non_null(table);
	}
	this_search++;
	states = transitions = 0;
	violation = NULL;
	for (t = 0; t < nthreads; t++)
		settle(&s, t);
	paths = explore(&s, 0);
	total_states += states;
	if (!violation)
		total_paths += paths;
	if (!quiet)
		print_message("  %s: %u ring%s of %u, %u entries in batches of 1..%u%s: "
			      "%llu states, %llu steps, %.4g interleavings%s%s\n",
			      cfg.model == TSO	? "TSO" :
			      cfg.model == WEAK ? "WEAK" :
						  "GUESS",
			      cfg.rings, cfg.rings > 1 ? "s" : "", cfg.size, cfg.entries, cfg.batch,
			      cfg.one_by_one ? ", released one by one" : "",
			      (unsigned long long)states, (unsigned long long)transitions, paths,
			      violation ? ": found " : "", violation ? violation : "");
	return violation;
}

static void must_hold(const struct config *c)
{
	const char *found = search(c);

	if (found) {
		print_trail();
		fail_msg("%s", found);
	}
}

/* The checker has to find this; NULL: anything. */
static void must_find(const struct config *c, const char *what)
{
	const char *found = search(c);

	if (!found || (what && strcmp(found, what)))
		fail_msg("mutation: found %s, want %s", found ? found : "nothing",
			 what ? what : "something");
}

/* ---- the protocol as it is ---- */

/* The second wraps in the middle of it. */
static const u32 starts[] = { 0, 0xfffffffeu };

static void holds(enum model model)
{
	struct config c = { .model = model, .rings = 1 };
	double paths = total_paths;
	u64 n = total_states;
	size_t i;

	quiet = true;
	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		c.start = starts[i];
		for (c.size = 1; c.size <= 4; c.size *= 2)
			for (c.entries = 1; c.entries <= 4; c.entries++) {
				c.batch = c.size < 3 ? c.size : 3;
				c.one_by_one = false;
				must_hold(&c);
				c.one_by_one = true;
				if (c.batch > 1)
					must_hold(&c);
			}
	}
	quiet = false;
	print_message("  1 ring of 1, 2, 4, 1 .. 4 entries: %llu states, %.4g interleavings\n",
		      (unsigned long long)(total_states - n), total_paths - paths);
}

static void tso(void **state)
{
	(void)state;
	holds(TSO);
}

static void weak(void **state)
{
	(void)state;
	holds(WEAK);
}

static void guess(void **state)
{
	(void)state;
	holds(GUESS);
}

static void two_rings(void **state)
{
	struct config c = { .rings = 2, .size = 2, .batch = 2, .start = 0xffffffffu };

	(void)state;
	for (c.model = TSO; c.model <= WEAK; c.model++)
		for (c.entries = 1; c.entries <= 2; c.entries++)
			must_hold(&c);
}

/* ---- a barrier less ---- */

static const struct config small = {
	.model = WEAK, .rings = 1, .size = 2, .entries = 3, .batch = 2, .start = 0xfffffffeu
};

static void no_b_in_publish(void **state)
{
	struct config c = small;

	(void)state;
	c.place = PUBLISH;
	c.barrier = MB;
	must_find(&c, "lost wakeup");
	c.model = TSO;
	must_find(&c, "lost wakeup");
}

static void no_b_in_arm(void **state)
{
	struct config c = small;

	(void)state;
	c.place = ARM;
	c.barrier = MB;
	must_find(&c, "lost wakeup");
	c.model = TSO;
	must_find(&c, "lost wakeup");
}

static void no_a_in_publish(void **state)
{
	struct config c = small;

	(void)state;
	c.place = PUBLISH;
	c.barrier = WMB;
	must_find(&c, "slot");
	c.model = TSO; /* stores stay in order there */
	must_hold(&c);
}

static void no_a_in_look(void **state)
{
	struct config c = small;

	(void)state;
	c.place = LOOK;
	c.barrier = RMB;
	must_find(&c, "slot");
	c.model = TSO;
	must_hold(&c);
}

static void no_c_in_release(void **state)
{
	struct config c = small;

	(void)state;
	c.place = RELEASE;
	c.barrier = MB;
	must_find(&c, "slot");
	c.model = TSO;
	must_hold(&c);
}

/*
 * Processors keep a store behind the load that decides whether it happens;
 * only the model in which that load may be guessed shows what C is for.
 */
static void no_c_in_space(void **state)
{
	struct config c = small;

	(void)state;
	c.place = SPACE;
	c.barrier = MB;
	must_hold(&c);
	c.model = GUESS;
	must_find(&c, "slot");
}

/* ---- a rule broken ---- */

static void broken(enum rule rule, const char *what)
{
	struct config c = small;

	c.rule = rule;
	c.model = TSO;
	must_find(&c, what);
	c.model = WEAK;
	must_find(&c, what);
}

static void sleep_without_arm(void **state)
{
	(void)state;
	broken(SLEEP_WITHOUT_ARM, "lost wakeup");
}

static void ignore_second_look(void **state)
{
	(void)state;
	broken(IGNORE_SECOND_LOOK, "lost wakeup");
}

static void arm_then_consume(void **state)
{
	(void)state;
	broken(ARM_THEN_CONSUME, "lost wakeup");
}

static void arm_one_too_far(void **state)
{
	(void)state;
	broken(ARM_ONE_TOO_FAR, "lost wakeup");
}

static void arm_one_too_near(void **state)
{
	(void)state;
	broken(ARM_ONE_TOO_NEAR, "lost wakeup");
}

static void release_before_read(void **state)
{
	(void)state;
	broken(RELEASE_BEFORE_READ, "slot");
}

/* Seen as a garbage index or an overwritten slot, whichever comes first. */
static void no_space_check(void **state)
{
	(void)state;
	broken(NO_SPACE_CHECK, NULL);
}

static void last_entry_only(void **state)
{
	(void)state;
	broken(LAST_ENTRY_ONLY, "lost wakeup");
}

static void no_notify(void **state)
{
	(void)state;
	broken(NO_NOTIFY, "lost wakeup");
}

static void arm_first_ring_only(void **state)
{
	struct config c = {
		.rings = 2, .size = 2, .entries = 2, .batch = 1, .rule = ARM_FIRST_RING_ONLY
	};

	(void)state;
	/*
	 * event starts at 1, so that the first entry of ring 1 asks for an event
	 * by itself: it takes a second one to fall asleep over.
	 */
	for (c.model = TSO; c.model <= WEAK; c.model++)
		must_find(&c, "lost wakeup");
}

static int summary(void **state)
{
	(void)state;
	free(table);
	print_message("all interleavings: %.4g, by way of %llu states\n", total_paths,
		      (unsigned long long)total_states);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tso),
		cmocka_unit_test(weak),
		cmocka_unit_test(guess),
		cmocka_unit_test(two_rings),
		cmocka_unit_test(no_b_in_publish),
		cmocka_unit_test(no_b_in_arm),
		cmocka_unit_test(no_a_in_publish),
		cmocka_unit_test(no_a_in_look),
		cmocka_unit_test(no_c_in_release),
		cmocka_unit_test(no_c_in_space),
		cmocka_unit_test(sleep_without_arm),
		cmocka_unit_test(ignore_second_look),
		cmocka_unit_test(arm_then_consume),
		cmocka_unit_test(arm_one_too_far),
		cmocka_unit_test(arm_one_too_near),
		cmocka_unit_test(release_before_read),
		cmocka_unit_test(no_space_check),
		cmocka_unit_test(last_entry_only),
		cmocka_unit_test(no_notify),
		cmocka_unit_test(arm_first_ring_only),
	};

	return cmocka_run_group_tests_name("wake", tests, NULL, summary);
}
