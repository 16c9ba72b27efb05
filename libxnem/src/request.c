// SPDX-License-Identifier: MIT
/*
 * Requests between their start and the report of their end: a slot each,
 * whose number and generation travel through the kernel as user_data.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

xnem_req xnem_slot_id(const struct xnem *ctx, const struct slot *slot)
{
	return (uint64_t)slot->gen << 32 | (uint32_t)(slot - ctx->slots);
}

/** The slot of a request that was started and not reported, or NULL. */
struct slot *xnem_find(struct xnem *ctx, xnem_req req)
{
	uint32_t index = (uint32_t)req;
	struct slot *slot;

	if (index >= ctx->nr_slots)
		return NULL;
	slot = &ctx->slots[index];
	if (slot->state == SLOT_FREE || slot->gen != req >> 32)
		return NULL;
	return slot;
}

static int grow_slots(struct xnem *ctx)
{
	uint32_t n = ctx->nr_slots ? ctx->nr_slots * 2 : 64;
	struct slot *slots;

	if (n > UINT32_MAX / 4)
		return -ENOMEM;
	slots = realloc(ctx->slots, n * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + ctx->nr_slots, 0, (n - ctx->nr_slots) * sizeof(*slots));
	for (uint32_t i = n; i-- > ctx->nr_slots;) {
		slots[i].next = ctx->free_slot;
		ctx->free_slot = i;
	}
	ctx->slots = slots;
	ctx->nr_slots = n;
	return 0;
}

static struct slot *new_slot(struct xnem *ctx)
{
	struct slot *slot;
	uint32_t gen;

	if (ctx->free_slot == XNEM_NO_SLOT && grow_slots(ctx))
		return NULL;
	slot = &ctx->slots[ctx->free_slot];
	ctx->free_slot = slot->next;
	gen = slot->gen + 1;
	memset(slot, 0, sizeof(*slot));
	/* never 0, so that no request is XNEM_REQ_NONE */
	slot->gen = gen ? gen : 1;
	slot->state = SLOT_SUBMITTING;
	slot->next = XNEM_NO_SLOT;
	return slot;
}

void xnem_free_slot(struct xnem *ctx, struct slot *slot)
{
	slot->state = SLOT_FREE;
	slot->next = ctx->free_slot;
	ctx->free_slot = (uint32_t)(slot - ctx->slots);
}

/** Takes the oldest event off its queue. */
uint32_t xnem_pop_event(struct xnem *ctx)
{
	uint32_t index = ctx->event_head;

	if (index == XNEM_NO_SLOT)
		return index;
	ctx->event_head = ctx->slots[index].next;
	if (ctx->event_head == XNEM_NO_SLOT)
		ctx->event_tail = XNEM_NO_SLOT;
	return index;
}

static void push_event(struct xnem *ctx, struct slot *slot)
{
	uint32_t index = (uint32_t)(slot - ctx->slots);

	slot->next = XNEM_NO_SLOT;
	if (ctx->event_tail == XNEM_NO_SLOT)
		ctx->event_head = index;
	else
		ctx->slots[ctx->event_tail].next = index;
	ctx->event_tail = index;
}

static void report(struct xnem *ctx, struct slot *slot)
{
	slot->state = SLOT_DONE;
	if (slot->flags & SLOT_ORPHAN)
		xnem_free_slot(ctx, slot);
	else if (slot->flags & SLOT_EVENT)
		push_event(ctx, slot);
}

/**
 * n pieces of a group have ended, the first of them at pos with its first
 * bytes in place.
 */
static void end_pieces(struct xnem *ctx, struct slot *group, uint32_t n, uint64_t pos,
		       uint64_t bytes, int32_t status)
{
	if (status && pos + bytes < group->bytes)
		group->bytes = pos + bytes;
	if (status && (!group->status || pos < group->failed_pos)) {
		group->status = status;
		group->failed_pos = pos;
	}
	group->left -= n;
	if (!group->left)
		report(ctx, group);
}

/** The last n pieces of a group, from pos on, will not be started. */
void xnem_end_pieces(struct xnem *ctx, xnem_req group, uint32_t n, uint64_t pos, int status)
{
	struct slot *slot = xnem_find(ctx, group);

	if (slot)
		end_pieces(ctx, slot, n, pos, 0, status);
}

/** A request has ended; ctx->lock is held. */
static void end_slot(struct xnem *ctx, struct slot *slot, int32_t status, uint64_t bytes)
{
	bool fewer = bytes < slot->length && !(slot->flags & SLOT_SHORT);

	if (slot->state == SLOT_INFLIGHT)
		ctx->inflight--;
	if (slot->flags & SLOT_PAGE)
		ctx->page_open--;
	if (slot->flags & SLOT_NO_BYTES) {
		bytes = status ? 0 : slot->length;
		fewer = false;
	}
	/* success means every byte: a shorter one is a defect below us */
	if (status > 0 || bytes > slot->length || (status == 0 && fewer)) {
		status = -EPROTO;
		if (bytes > slot->length)
			bytes = 0;
	}
	if (slot->flags & SLOT_PIECE) {
		struct slot *group = xnem_find(ctx, slot->group);
		uint64_t pos = slot->pos;

		/* its end may be known before its submit call has returned */
		xnem_free_slot(ctx, slot);
		if (group)
			end_pieces(ctx, group, 1, pos, bytes, status);
		return;
	}
	slot->status = status;
	slot->bytes = bytes;
	report(ctx, slot);
}

/** Ends what the kernel had before the fetch of this epoch. */
static void end_all(struct xnem *ctx, int32_t status)
{
	for (uint32_t i = 0; i < ctx->nr_slots; i++) {
		struct slot *slot = &ctx->slots[i];

		if (slot->state == SLOT_INFLIGHT && !(slot->flags & SLOT_GROUP) &&
		    slot->epoch < ctx->epoch)
			end_slot(ctx, slot, status, 0);
	}
}

/**
 * The library's word for a completion's status.  "No such region" can mean
 * that the backend began a new life since the request was started.
 */
static int32_t refine(struct xnem *ctx, const struct slot *slot, int32_t status)
{
	if (status == -ENOMEM)
		return -ENOBUFS;
	if (status != -ENOENT)
		return status;
	if (xnem_refresh(ctx, NULL))
		return status;
	if (atomic_load_explicit(&ctx->fabric, memory_order_relaxed) == slot->fabric)
		return status;
	return slot->flags & SLOT_OWN ? -ESTALE : -EXDEV;
}

/**
 * A sleep in the kernel that also ends for the inbox has to end for that alone,
 * as it would not be told that nothing is in flight.
 */
#define DOUBT_AFTER_NS 1000000000
#define DOUBT_NS 1000000

/** What the fetcher knows when it asks. */
struct ask {
	int64_t timeout_ns;
	/** there are these pages */
	bool page, inbox;
	uint32_t inbox_known;
	/** requests are in flight */
	bool open;
	/** in: the last answer raised doubts; out: this one has */
	bool doubt;
	/** out: the kernel was asked for the inbox, too */
	bool asked_inbox;
};

/* Completions from the kernel, and from the page if it has some by then. */
static int ask_kernel(struct xnem *ctx, struct xnem_complete *done, unsigned int *count,
		      struct ask *ask)
{
	int64_t limit = ask->doubt ? DOUBT_NS : ask->open && ask->inbox ? DOUBT_AFTER_NS : -1;
	bool limited = limit >= 0 && (ask->timeout_ns < 0 || ask->timeout_ns > limit);
	int64_t timeout_ns = limited ? limit : ask->timeout_ns;
	bool inbox = ask->inbox && !ask->doubt;
	struct xnem_get_completions get = {
		.completions = (uintptr_t)done,
		.max_count = XNEM_FETCH_MAX / 2,
		.min_count = timeout_ns == 0 ? 0 : 1,
		.timeout_ns = timeout_ns,
	};
	int err;

	if (ask->page) {
		get.flags |= XNEM_COMPLETE_CPAGE;
		get.cpage_seen = ctx->page_read;
	}
	if (inbox) {
		get.flags |= XNEM_COMPLETE_INBOX;
		get.inbox_seen = ask->inbox_known;
	}
	ask->asked_inbox = inbox;
	err = xnem_ioctl(ctx, XNEM_IOC_COMPLETE, &get);
	if (!err && get.count > XNEM_FETCH_MAX / 2)
		err = -EPROTO;
	*count = err ? 0 : get.count;
	if (ask->page)
		*count += xnem_page_take(ctx, done + *count, XNEM_FETCH_MAX / 2);
	/* nothing has come in a long time: is it still in flight? */
	ask->doubt = err == -ETIME && limited && inbox;
	/* -ENOENT, -ETIME: the page may have it by now */
	if (*count)
		return 0;
	if (err || !timeout_ns || (inbox && xnem_inbox_news(ctx, ask->inbox_known)))
		return err;
	/*
	 * The kernel has seen more ends than the page has: not an honest
	 * backend.  Or it thought of the inbox: ask again without.
	 */
	if (!inbox)
		return -EPROTO;
	ask->doubt = true;
	return 0;
}

/**
 * Fetches completions and files them under their requests.  Called with the
 * lock held and nobody else fetching; the lock is released while the kernel
 * is asked.  timeout_ns 0: only look; negative: no limit.  want: WANT_EVENTS, the
 * caller is about to report events itself; WANT_INBOX, it waits for the inbox.
 *
 * 0: look whether it is there; -ETIMEDOUT, -EINTR; -ENOENT: the kernel has
 * nothing; or another error, and then whatever was in flight has ended with
 * it if the device is gone.
 */
int xnem_fetch(struct xnem *ctx, int64_t timeout_ns, unsigned int want)
{
	struct xnem_complete done[XNEM_FETCH_MAX];
	struct ask ask = {
		.timeout_ns = timeout_ns,
		.page = ctx->page,
		/* for others too, if there are any: they may come while this one sleeps */
		.inbox = ctx->inbox && !ctx->inbox_error && (want & WANT_INBOX || ctx->shared),
		.open = ctx->inflight || ctx->submitting,
		.doubt = ctx->doubt,
	};
	/* nothing that the kernel alone knows */
	bool only_page = ask.page && ctx->page_open == ctx->inflight + ctx->submitting;
	unsigned int count = 0;
	bool news = false, asked = false;
	bool wake = false;
	int inbox_error = 0;
	int err = 0;

	/* most looks of one who polls: nothing, and nothing has to be told to anybody */
	if (!timeout_ns && only_page && ctx->looks + 1 < XNEM_LOOKS_PER_CALL &&
	    !xnem_page_news(ctx) && !xnem_inbox_news(ctx, ctx->inbox_known)) {
		ctx->looks++;
		return 0;
	}
	/*
	 * Who waits for the inbox has looked, and what has come since then is
	 * what it waits for.  Others have no use for what is there already.
	 */
	if (!(want & WANT_INBOX))
		xnem_inbox_look(ctx);
	ask.inbox_known = ctx->inbox_known;
	ctx->fetching = true;
	ctx->doubt = false;
	ctx->epoch++;
	pthread_mutex_unlock(&ctx->lock);
	if (ask.page) {
		count = xnem_page_spin(ctx, done, XNEM_FETCH_MAX,
				       ask.inbox ? &ask.inbox_known : NULL, timeout_ns);
		news = ask.inbox && xnem_inbox_news(ctx, ask.inbox_known);
	}
	/*
	 * With nothing on the page: ask the kernel, but not with each look when
	 * all that is open will be on the page.  Now and then it is asked all
	 * the same, for what was lost with the backend.
	 */
	if (!count && !news && (timeout_ns || !only_page || ++ctx->looks >= XNEM_LOOKS_PER_CALL)) {
		asked = true;
		ctx->looks = 0;
		err = ask_kernel(ctx, done, &count, &ask);
	}
	/* the kernel does not wait for the inbox; or time to see whether it would */
	if (asked && ask.inbox && !count &&
	    (err == -ENOENT ? ask.asked_inbox : !err && !timeout_ns && only_page)) {
		inbox_error = xnem_inbox_alive(ctx);
		if (err && !inbox_error)
			inbox_error = -ESTALE;
	}
	pthread_mutex_lock(&ctx->lock);
	ctx->fetching = false;
	if (asked)
		ctx->doubt = ask.doubt;
	if (inbox_error)
		ctx->inbox_error = inbox_error;

	for (uint32_t i = 0; !err && i < count; i++) {
		struct slot *slot = xnem_find(ctx, done[i].user_data);

		/* not ours: one that was given up when the device was gone */
		if (!slot || slot->state == SLOT_DONE)
			continue;
		if (!(want & WANT_EVENTS) || !(slot->flags & SLOT_EVENT))
			wake = true;
		end_slot(ctx, slot, refine(ctx, slot, done[i].status), done[i].bytes_done);
	}
	switch (err) {
	case -ENODEV:
	case -ENOTCONN:
		end_all(ctx, err);
		wake = true;
		break;
	case -EPROTO:
	case -ENOENT:
		/* the kernel does not know what it was given: never seen */
		end_all(ctx, -EPROTO);
		break;
	case -ETIME:
		err = -ETIMEDOUT;
		break;
	}
	if (wake)
		xnem_wake_poll(ctx);
	if (ctx->waiters)
		pthread_cond_broadcast(&ctx->changed);
	/* there may be room now */
	if (ctx->deferred)
		xnem_pump(ctx);
	return err;
}

/** What the library has to know of a request. */
static unsigned int flags_of(const struct xnem_submit_req *req)
{
	if (req->op != XNEM_REQ_OP_COPY)
		return SLOT_NO_BYTES;
	return req->flags & XNEM_SUBMIT_BOUNDED ? SLOT_SHORT : 0;
}

/**
 * Gives slots to requests; how many got one.  They are answered on the
 * completion page as long as it has room for them.
 */
static unsigned int take_slots(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n,
			       unsigned int flags, xnem_req group, uint64_t pos)
{
	uint64_t fabric = atomic_load_explicit(&ctx->fabric, memory_order_relaxed);
	bool page = ctx->page && !ctx->page_gone;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct slot *slot = new_slot(ctx);

		if (!slot)
			break;
		slot->flags = flags | flags_of(&reqs[i]);
		slot->fabric = fabric;
		slot->length = reqs[i].length;
		slot->user_data = reqs[i].user_data;
		slot->group = group;
		slot->pos = pos;
		pos += reqs[i].length;
		reqs[i].user_data = xnem_slot_id(ctx, slot);
		if (page && ctx->page_open < XNEM_CPAGE_ENTRIES) {
			reqs[i].flags |= XNEM_SUBMIT_CPAGE;
			slot->flags |= SLOT_PAGE;
			ctx->page_open++;
		}
	}
	ctx->submitting += i;
	if (flags & SLOT_EVENT)
		ctx->events_open += i;
	return i;
}

/** The submit call is over: the first of n requests were started. */
static void settle_slots(struct xnem *ctx, const struct xnem_submit_req *reqs, unsigned int n,
			 unsigned int started, unsigned int flags)
{
	for (unsigned int i = 0; i < n; i++) {
		struct slot *slot = xnem_find(ctx, reqs[i].user_data);

		/* gone or done: another thread has fetched its end already */
		if (!slot || slot->state != SLOT_SUBMITTING)
			continue;
		if (i < started) {
			slot->state = SLOT_INFLIGHT;
			slot->epoch = ctx->epoch;
			ctx->inflight++;
		} else {
			if (slot->flags & SLOT_PAGE)
				ctx->page_open--;
			xnem_free_slot(ctx, slot);
			if (flags & SLOT_EVENT)
				ctx->events_open--;
		}
	}
	ctx->submitting -= n;
	if (ctx->waiters)
		pthread_cond_broadcast(&ctx->changed);
}

static void leave_page(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n)
{
	pthread_mutex_lock(&ctx->lock);
	ctx->page_gone = true;
	for (unsigned int i = 0; i < n; i++) {
		struct slot *slot = xnem_find(ctx, reqs[i].user_data);

		reqs[i].flags &= ~XNEM_SUBMIT_CPAGE;
		if (!slot || !(slot->flags & SLOT_PAGE))
			continue;
		slot->flags &= ~SLOT_PAGE;
		ctx->page_open--;
	}
	pthread_mutex_unlock(&ctx->lock);
}

static int start(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n, unsigned int flags,
		 xnem_req group, uint64_t pos)
{
	struct xnem_submit submit = { .reqs = (uintptr_t)reqs };
	bool left = false;
	int err;

	pthread_mutex_lock(&ctx->lock);
	submit.count = take_slots(ctx, reqs, n, flags, group, pos);
	pthread_mutex_unlock(&ctx->lock);
	if (!submit.count)
		return -ENOMEM;

	do {
		err = xnem_ioctl(ctx, XNEM_IOC_SUBMIT, &submit);
		if (err == -EINVAL && reqs[0].flags & XNEM_SUBMIT_CPAGE) {
			/* the page went with a backend of before? do without */
			leave_page(ctx, reqs, submit.count);
			left = true;
		} else if (err != -EINTR) {
			break;
		}
	} while (true);
	if (!err && (submit.submitted == 0 || submit.submitted > submit.count))
		err = -EPROTO;

	pthread_mutex_lock(&ctx->lock);
	/* it was not the page that was wrong */
	if (left && err == -EINVAL)
		ctx->page_gone = false;
	settle_slots(ctx, reqs, submit.count, err ? 0 : submit.submitted, flags);
	pthread_mutex_unlock(&ctx->lock);
	if (err == -ENOTCONN)
		xnem_refresh(ctx, NULL);
	return err ? err : (int)submit.submitted;
}

/**
 * Starts up to XNEM_SUBMIT_MAX requests.  Their user_data is replaced by the
 * request's number.  Returns how many were started, or why the first was not.
 */
int xnem_start(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n, unsigned int flags)
{
	return start(ctx, reqs, n, flags, XNEM_REQ_NONE, 0);
}

/** The same for pieces of a group that stand in it from pos on. */
int xnem_start_pieces(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n,
		      xnem_req group, uint64_t pos)
{
	return start(ctx, reqs, n, SLOT_PIECE, group, pos);
}

/** A request that ends with its pieces; XNEM_REQ_NONE: short of memory. */
xnem_req xnem_new_group(struct xnem *ctx, uint32_t pieces, uint64_t length, unsigned int flags,
			uint64_t user_data)
{
	xnem_req req = XNEM_REQ_NONE;
	struct slot *slot;

	pthread_mutex_lock(&ctx->lock);
	slot = new_slot(ctx);
	if (slot) {
		slot->state = SLOT_INFLIGHT;
		slot->flags = flags | SLOT_GROUP;
		slot->length = length;
		slot->bytes = length;
		slot->user_data = user_data;
		slot->left = pieces;
		if (flags & SLOT_EVENT)
			ctx->events_open++;
		req = xnem_slot_id(ctx, slot);
	}
	pthread_mutex_unlock(&ctx->lock);
	return req;
}
