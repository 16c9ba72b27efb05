// SPDX-License-Identifier: MIT
/*
 * Messages: up to 64 bytes into another context's inbox.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "internal.h"

/** 0, the error with which the inbox has ended, or -EOPNOTSUPP: there is none. */
static int inbox_state(struct xnem *ctx, enum pages_state *pages)
{
	int err;

	pthread_mutex_lock(&ctx->lock);
	*pages = ctx->pages;
	err = ctx->inbox ? ctx->inbox_error : -EOPNOTSUPP;
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

/**
 * Is there an inbox?  0, -EOPNOTSUPP, or the error with which it has ended.
 * Maps it if there was no backend when the context was opened.
 */
static int need_inbox(struct xnem *ctx)
{
	struct xnem_info info;
	enum pages_state pages;
	int err;

	err = inbox_state(ctx, &pages);
	if (err != -EOPNOTSUPP || pages != PAGES_NONE)
		return err;
	err = xnem_refresh(ctx, &info);
	if (err)
		return err;
	if (!info.connected)
		return -ENOTCONN;
	xnem_pages_open(ctx, &info);
	return inbox_state(ctx, &pages);
}

XNEM_API int xnem_get_address(struct xnem *ctx, struct xnem_address *address)
{
	struct xnem_info info;
	int err = xnem_own(ctx);

	if (!err)
		err = need_inbox(ctx);
	if (!err)
		err = xnem_refresh(ctx, &info);
	if (err)
		return err;
	if (!info.connected)
		return -ENOTCONN;
	/* the inbox went with a backend of before */
	if (info.fabric_id != ctx->pages_fabric || (!info.address.id && !info.address.key))
		return -ESTALE;
	xnem_bytes_pack(address->bytes, &info.address, info.fabric_id);
	return 0;
}

static int send_once(struct xnem *ctx, const struct xnem_address *to, const void *data, size_t len)
{
	struct xnem_submit_req req;
	int64_t pause = XNEM_PAUSE_MIN_NS;
	int err;

	for (;;) {
		err = xnem_check_fabric(ctx, xnem_bytes_fabric(to->bytes), -EXDEV);
		if (err)
			return err;
		req = (struct xnem_submit_req){
			.op = XNEM_REQ_OP_MESSAGE,
			.src_offset = (uintptr_t)data,
			.length = len,
		};
		xnem_bytes_unpack(to->bytes, &req.dst);
		err = xnem_start(ctx, &req, 1, 0);
		if (err != -EAGAIN)
			break;
		err = xnem_wait_for_room(ctx, &pause);
		if (err)
			break;
	}
	return err < 0 ? err : xnem_wait_to_the_end(ctx, req.user_data, NULL);
}

XNEM_API int xnem_send(struct xnem *ctx, const struct xnem_address *to, const void *data,
		       size_t len, int64_t timeout_ns)
{
	int64_t deadline, pause = XNEM_PAUSE_MIN_NS;
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (len > XNEM_MESSAGE_MAX)
		return -EMSGSIZE;
	deadline = xnem_deadline(timeout_ns);
	/* nothing announces room in another's inbox: try again, less and less often */
	while ((err = send_once(ctx, to, data, len)) == -EBUSY && deadline) {
		struct timespec ts = { .tv_nsec = pause };

		if (deadline != XNEM_NEVER) {
			int64_t left = deadline - xnem_now();

			if (left <= 0)
				break;
			if (ts.tv_nsec > left)
				ts.tv_nsec = left;
		}
		nanosleep(&ts, NULL);
		if (pause < XNEM_PAUSE_MAX_NS)
			pause *= 2;
	}
	return err;
}

static void fill_message(const struct xnem *ctx, const struct xnem_inbox_slot *slot,
			 struct xnem_message *message)
{
	const struct xnem_uapi_cookie from = { .id = slot->from.id, .key = slot->from.key };

	memset(message, 0, sizeof(*message));
	if (from.id || from.key)
		xnem_bytes_pack(message->from.bytes, &from, ctx->pages_fabric);
	message->tag = slot->tag;
	message->domid = slot->domid;
	message->length = slot->bytes < XNEM_MESSAGE_MAX ? (uint32_t)slot->bytes : XNEM_MESSAGE_MAX;
	memcpy(message->data, slot->data, message->length);
}

/** A look that found none: now and then, is there still somebody to write? */
static int look_again(struct xnem *ctx)
{
	int err;

	if (++ctx->inbox_looks < XNEM_LOOKS_PER_CALL)
		return -EAGAIN;
	ctx->inbox_looks = 0;
	pthread_mutex_unlock(&ctx->lock);
	err = xnem_inbox_alive(ctx);
	pthread_mutex_lock(&ctx->lock);
	if (err)
		ctx->inbox_error = err;
	return err ? err : -EAGAIN;
}

XNEM_API int xnem_recv(struct xnem *ctx, struct xnem_message *message, int64_t timeout_ns)
{
	int64_t deadline = xnem_deadline(timeout_ns);
	struct xnem_inbox_slot slot;
	int err = xnem_own(ctx);
	bool last = false;

	if (err)
		return err;
	if (!message)
		return -EINVAL;
	err = need_inbox(ctx);
	/* what had arrived before its end is there still */
	if (!ctx->inbox)
		return err;
	err = 0;
	pthread_mutex_lock(&ctx->lock);
	for (;;) {
		if (xnem_inbox_take(ctx, XNEM_INBOX_MESSAGE, &slot)) {
			fill_message(ctx, &slot, message);
			err = 0;
			break;
		}
		if (last || err)
			break;
		if (!deadline) {
			err = look_again(ctx);
			last = err != -EAGAIN;
			if (!last)
				break;
			continue;
		}
		err = ctx->inbox_error;
		if (!err)
			err = xnem_step(ctx, deadline, WANT_INBOX);
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}
