// SPDX-License-Identifier: MIT
/*
 * Requests between their start and the report of their end: a slot each,
 * whose number and generation travel through the kernel as user_data.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static xnem_req slot_id(const struct xnem *ctx, const struct slot *slot)
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

/** A request has ended; ctx->lock is held. */
static void end_slot(struct xnem *ctx, struct slot *slot, int32_t status, uint64_t bytes)
{
	if (slot->state == SLOT_INFLIGHT)
		ctx->inflight--;
	if (slot->flags & SLOT_PAGE)
		ctx->page_open--;
	/* success means every byte: a shorter one is a defect below us */
	if (status > 0 || bytes > slot->length || (status == 0 && bytes != slot->length)) {
		status = -EPROTO;
		if (bytes > slot->length)
			bytes = 0;
	}
	slot->state = SLOT_DONE;
	slot->status = status;
	slot->bytes = bytes;
	if (slot->flags & SLOT_ORPHAN)
		xnem_free_slot(ctx, slot);
	else if (slot->flags & SLOT_EVENT)
		push_event(ctx, slot);
}

/** Ends what the kernel had before the fetch of this epoch. */
static void end_all(struct xnem *ctx, int32_t status)
{
	for (uint32_t i = 0; i < ctx->nr_slots; i++) {
		struct slot *slot = &ctx->slots[i];

		if (slot->state == SLOT_INFLIGHT && slot->epoch < ctx->epoch)
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

/** Looks at the completion page for which the kernel is asked once. */
#define LOOKS_PER_CALL 1024

/* Completions from the kernel, and from the page if it has some by then. */
static int ask_kernel(struct xnem *ctx, struct xnem_complete *done, unsigned int *count,
		      int64_t timeout_ns)
{
	struct xnem_get_completions get = {
		.completions = (uintptr_t)done,
		.max_count = XNEM_FETCH_MAX / 2,
		.min_count = timeout_ns == 0 ? 0 : 1,
		.timeout_ns = timeout_ns,
		.flags = ctx->page ? XNEM_COMPLETE_CPAGE : 0,
		.cpage_seen = ctx->page_read,
	};
	int err = xnem_ioctl(ctx, XNEM_IOC_COMPLETE, &get);

	if (!err && get.count > XNEM_FETCH_MAX / 2)
		err = -EPROTO;
	*count = err ? 0 : get.count;
	if (ctx->page)
		*count += xnem_page_take(ctx, done + *count, XNEM_FETCH_MAX / 2);
	/* -ENOENT, -ETIME: the page may have it by now */
	if (*count)
		return 0;
	/* the kernel has seen more ends than the page has: not an honest backend */
	return err || !timeout_ns ? err : -EPROTO;
}

/**
 * Fetches completions and files them under their requests.  Called with the
 * lock held and nobody else fetching; the lock is released while the kernel
 * is asked.  timeout_ns 0: only look; negative: no limit.  for_events: the
 * caller is about to report events itself.
 *
 * 0: look whether it is there; -ETIMEDOUT, -EINTR; -ENOENT: the kernel has
 * nothing; or another error, and then whatever was in flight has ended with
 * it if the device is gone.
 */
int xnem_fetch(struct xnem *ctx, int64_t timeout_ns, bool for_events)
{
	struct xnem_complete done[XNEM_FETCH_MAX];
	bool only_page = ctx->page_open && ctx->page_open == ctx->inflight + ctx->submitting;
	unsigned int count = 0;
	bool wake = false;
	int err = 0;

	ctx->fetching = true;
	ctx->epoch++;
	pthread_mutex_unlock(&ctx->lock);
	if (ctx->page)
		count = xnem_page_spin(ctx, done, XNEM_FETCH_MAX, timeout_ns);
	/*
	 * With nothing on the page: ask the kernel, but not with each look when
	 * all that is open will be on the page.  Now and then it is asked all
	 * the same, for what was lost with the backend.
	 */
	if (!count && (timeout_ns || !only_page || ++ctx->looks % LOOKS_PER_CALL == 0))
		err = ask_kernel(ctx, done, &count, timeout_ns);
	pthread_mutex_lock(&ctx->lock);
	ctx->fetching = false;

	for (uint32_t i = 0; !err && i < count; i++) {
		struct slot *slot = xnem_find(ctx, done[i].user_data);

		/* not ours: one that was given up when the device was gone */
		if (!slot || slot->state == SLOT_DONE)
			continue;
		if (!for_events || !(slot->flags & SLOT_EVENT))
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
	return err;
}

/**
 * Gives slots to requests; how many got one.  They are answered on the
 * completion page if it has room for them, and nobody sleeps in poll.
 */
static unsigned int take_slots(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n,
			       unsigned int flags)
{
	uint64_t fabric = atomic_load_explicit(&ctx->fabric, memory_order_relaxed);
	bool page = ctx->page && !ctx->page_gone && ctx->poll_fd < 0 &&
		    ctx->page_open + n <= XNEM_CPAGE_ENTRIES;
	unsigned int i;

	if (page)
		flags |= SLOT_PAGE;
	for (i = 0; i < n; i++) {
		struct slot *slot = new_slot(ctx);

		if (!slot)
			break;
		slot->flags = flags;
		slot->fabric = fabric;
		slot->length = reqs[i].length;
		slot->user_data = reqs[i].user_data;
		reqs[i].user_data = slot_id(ctx, slot);
		reqs[i].flags = page ? XNEM_SUBMIT_CPAGE : 0;
	}
	if (page)
		ctx->page_open += i;
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

		reqs[i].flags = 0;
		if (!slot || !(slot->flags & SLOT_PAGE))
			continue;
		slot->flags &= ~SLOT_PAGE;
		ctx->page_open--;
	}
	pthread_mutex_unlock(&ctx->lock);
}

/**
 * Starts up to XNEM_SUBMIT_MAX requests.  Their user_data is replaced by the
 * request's number.  Returns how many were started, or why the first was not.
 */
int xnem_start(struct xnem *ctx, struct xnem_submit_req *reqs, unsigned int n, unsigned int flags)
{
	struct xnem_submit submit = { .reqs = (uintptr_t)reqs };
	int err;

	pthread_mutex_lock(&ctx->lock);
	submit.count = take_slots(ctx, reqs, n, flags);
	pthread_mutex_unlock(&ctx->lock);
	if (!submit.count)
		return -ENOMEM;

	do {
		err = xnem_ioctl(ctx, XNEM_IOC_SUBMIT, &submit);
		/* the page went with a backend of before: do without */
		if (err == -EINVAL && reqs[0].flags)
			leave_page(ctx, reqs, submit.count);
		else if (err != -EINTR)
			break;
	} while (true);
	if (!err && (submit.submitted == 0 || submit.submitted > submit.count))
		err = -EPROTO;

	pthread_mutex_lock(&ctx->lock);
	settle_slots(ctx, reqs, submit.count, err ? 0 : submit.submitted, flags);
	pthread_mutex_unlock(&ctx->lock);
	if (err == -ENOTCONN)
		xnem_refresh(ctx, NULL);
	return err ? err : (int)submit.submitted;
}
