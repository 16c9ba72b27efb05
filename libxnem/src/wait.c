// SPDX-License-Identifier: MIT
/*
 * Waiting.  One thread at a time asks the kernel (the fetcher) and files what
 * it gets under the requests; the others sleep until something has changed,
 * and one of them becomes the fetcher when the present one leaves.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define NSEC_PER_SEC 1000000000ll

int64_t xnem_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/** When a wait that begins now is over; 0: at once; XNEM_NEVER: never. */
int64_t xnem_deadline(int64_t timeout_ns)
{
	int64_t now;

	if (timeout_ns == 0)
		return 0;
	if (timeout_ns < 0)
		return XNEM_NEVER;
	now = xnem_now();
	return timeout_ns >= XNEM_NEVER - now ? XNEM_NEVER : now + timeout_ns;
}

/** Makes xnem_fd() readable. */
void xnem_wake_poll(struct xnem *ctx)
{
	uint64_t one = 1;
	ssize_t n;

	if (ctx->wake_fd < 0)
		return;
	/* fails only if it is readable to the brim */
	n = write(ctx->wake_fd, &one, sizeof(one));
	(void)n;
}

static void clear_poll(struct xnem *ctx)
{
	uint64_t count;
	ssize_t n;

	if (ctx->wake_fd < 0)
		return;
	/* fails if it was not readable */
	n = read(ctx->wake_fd, &count, sizeof(count));
	(void)n;
}

static int sleep_on_changed(struct xnem *ctx, int64_t deadline)
{
	int err;

	ctx->waiters++;
	ctx->shared = true;
	if (deadline == XNEM_NEVER) {
		err = pthread_cond_wait(&ctx->changed, &ctx->lock);
	} else {
		struct timespec until = {
			.tv_sec = deadline / NSEC_PER_SEC,
			.tv_nsec = deadline % NSEC_PER_SEC,
		};

		err = pthread_cond_timedwait(&ctx->changed, &ctx->lock, &until);
	}
	ctx->waiters--;
	return -err;
}

/**
 * Pieces wait for room and nothing of ours will make any: others' requests fill
 * the queue, and nothing announces their end.
 */
static void pause_for_room(struct xnem *ctx, int64_t left)
{
	struct timespec ts = { .tv_nsec = XNEM_PAUSE_MIN_NS };

	xnem_pump(ctx);
	if (!ctx->deferred || ctx->inflight)
		return;
	if (left >= 0 && left < ts.tv_nsec)
		ts.tv_nsec = left;
	pthread_mutex_unlock(&ctx->lock);
	nanosleep(&ts, NULL);
	pthread_mutex_lock(&ctx->lock);
}

/**
 * One step of a wait, the lock held: ask the kernel, or sleep until somebody
 * else has.  0: look again at what you wait for; -ETIMEDOUT, -EINTR: look
 * once more and leave; otherwise the error of the kernel.
 */
int xnem_step(struct xnem *ctx, int64_t deadline, unsigned int want)
{
	int64_t left = -1;
	int err;

	if (deadline == 0) {
		/* a fetcher inside the kernel delivers what there is anyway */
		if (!ctx->fetching) {
			err = xnem_fetch(ctx, 0, want);
			if (err)
				return err;
		}
		return -ETIMEDOUT;
	}
	if (deadline != XNEM_NEVER) {
		left = deadline - xnem_now();
		if (left <= 0)
			return -ETIMEDOUT;
	}
	if (ctx->fetching)
		return sleep_on_changed(ctx, deadline);
	if (ctx->deferred && !ctx->inflight && !ctx->submitting) {
		pause_for_room(ctx, left);
		return 0;
	}

	err = xnem_fetch(ctx, left, want);
	/*
	 * The kernel also says so when a request came in between its look and
	 * its answer: the clock tells.
	 */
	if (err == -ETIMEDOUT)
		return 0;
	if (err != -ENOENT)
		return err;
	/*
	 * The kernel has nothing of ours.  If another thread is about to give
	 * it something, wait until it has; otherwise all has been reported.
	 */
	if (ctx->submitting && !ctx->inflight && !ctx->fetching)
		return sleep_on_changed(ctx, deadline);
	return 0;
}

XNEM_API int xnem_wait(struct xnem *ctx, xnem_req req, int64_t timeout_ns, uint64_t *done)
{
	int64_t deadline;
	struct slot *slot;
	int err = xnem_own(ctx);
	int ret;

	if (err)
		return err;
	deadline = xnem_deadline(timeout_ns);
	pthread_mutex_lock(&ctx->lock);
	for (;;) {
		slot = xnem_find(ctx, req);
		if (!slot || slot->flags & (SLOT_EVENT | SLOT_ORPHAN)) {
			ret = -EBADR;
			break;
		}
		if (slot->state == SLOT_DONE) {
			ret = slot->status;
			if (done)
				*done = slot->bytes;
			xnem_free_slot(ctx, slot);
			break;
		}
		if (err) {
			ret = err;
			break;
		}
		err = xnem_step(ctx, deadline, 0);
	}
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

XNEM_API int xnem_test(struct xnem *ctx, xnem_req req, uint64_t *done)
{
	int err = xnem_wait(ctx, req, 0, done);

	return err == -ETIMEDOUT ? -EINPROGRESS : err;
}

/** Reports ends that are there; how many. */
static unsigned int take_ends(struct xnem *ctx, struct xnem_event *events, unsigned int max)
{
	unsigned int n = 0;

	while (n < max) {
		uint32_t index = xnem_pop_event(ctx);
		struct slot *slot;

		if (index == XNEM_NO_SLOT)
			break;
		slot = &ctx->slots[index];
		events[n].user_data = slot->user_data;
		events[n].bytes = slot->bytes;
		events[n].status = slot->status;
		events[n].kind = XNEM_EVENT_DONE;
		n++;
		ctx->events_open--;
		xnem_free_slot(ctx, slot);
	}
	return n;
}

static unsigned int take_notifications(struct xnem *ctx, struct xnem_event *events,
				       unsigned int max)
{
	struct xnem_inbox_slot slot;
	unsigned int n = 0;

	while (n < max && xnem_inbox_take(ctx, XNEM_INBOX_NOTIFY, &slot)) {
		events[n].user_data = slot.value;
		events[n].bytes = slot.bytes;
		events[n].status = 0;
		events[n].kind = XNEM_EVENT_NOTIFY;
		n++;
	}
	return n;
}

/* in turns, so that many of one kind do not keep the other away */
static unsigned int take_events(struct xnem *ctx, struct xnem_event *events, unsigned int max)
{
	unsigned int n = 0;

	ctx->notify_first = !ctx->notify_first;
	if (ctx->notify_first)
		n += take_notifications(ctx, events, max);
	n += take_ends(ctx, events + n, max - n);
	if (!ctx->notify_first)
		n += take_notifications(ctx, events + n, max - n);
	return n;
}

XNEM_API int xnem_get_events(struct xnem *ctx, struct xnem_event *events, unsigned int min,
			     unsigned int max, int64_t timeout_ns)
{
	unsigned int n = 0;
	int64_t deadline;
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (!events || !max || min > max || max > INT_MAX)
		return -EINVAL;
	deadline = min ? xnem_deadline(timeout_ns) : 0;

	pthread_mutex_lock(&ctx->lock);
	clear_poll(ctx);
	for (;;) {
		n += take_events(ctx, events + n, max - n);
		if (n == max || (min && n >= min) || err)
			break;
		if (ctx->inbox_error && !ctx->inbox_error_told) {
			/* once: the context goes on without */
			if (!n)
				ctx->inbox_error_told = true;
			err = ctx->inbox_error;
			break;
		}
		if (min && !ctx->events_open && (!ctx->inbox || ctx->inbox_error)) {
			err = -ENOENT;
			break;
		}
		err = xnem_step(ctx, deadline, WANT_EVENTS | WANT_INBOX);
	}
	/* what there was no room for nobody will announce again */
	if (ctx->event_head != XNEM_NO_SLOT)
		xnem_wake_poll(ctx);
	pthread_mutex_unlock(&ctx->lock);

	if (n || !err)
		return (int)n;
	/* a look that finds nothing is no error */
	if (!min && (err == -ETIMEDOUT || err == -ENOENT))
		return 0;
	return err;
}
