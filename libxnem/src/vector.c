// SPDX-License-Identifier: MIT
/*
 * Copies into and from pieces of own memory: a request each, which the kernel
 * finds in its registration cache by the address, and a group that ends with
 * the last of them.  A context may have fewer requests in flight than a vector
 * has pieces: then the others follow as there is room, from any call that
 * looks or waits.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "internal.h"

/** Pieces, as for readv(). */
#define MAX_PIECES 1024
/** Pieces started by one call of the kernel. */
#define BATCH 32

/** Are more pieces of this group wanted?  0, or with what they end. */
static int wanted(struct xnem *ctx, xnem_req req)
{
	struct slot *group;
	int status;

	pthread_mutex_lock(&ctx->lock);
	group = xnem_find(ctx, req);
	if (!group)
		status = -ECANCELED;
	else if (group->status)
		status = group->status;
	else
		status = group->flags & SLOT_CANCEL ? -ECANCELED : 0;
	pthread_mutex_unlock(&ctx->lock);
	return status;
}

static void make_piece(const struct xnem_vector *vector, unsigned int i, uint64_t pos,
		       struct xnem_submit_req *req)
{
	uint64_t addr = (uintptr_t)vector->iov[i].iov_base;
	uint64_t remote = vector->remote_off + pos;

	*req = (struct xnem_submit_req){
		.op = XNEM_REQ_OP_COPY,
		.flags = vector->put ? XNEM_SUBMIT_SRC_ADDR : XNEM_SUBMIT_DST_ADDR,
		.src_offset = vector->put ? addr : remote,
		.dst_offset = vector->put ? remote : addr,
		.length = vector->iov[i].iov_len,
	};
	*(vector->put ? &req->dst : &req->src) = vector->remote;
}

/** 0: all are started; or why the next one is not.  No lock is held. */
static int start_some(struct xnem *ctx, struct xnem_vector *vector)
{
	struct xnem_submit_req reqs[BATCH];

	while (vector->started < vector->count) {
		uint64_t pos = vector->pos;
		unsigned int n = 0;
		int ret = wanted(ctx, vector->group);

		if (ret)
			return ret;
		while (n < BATCH && vector->started + n < vector->count) {
			make_piece(vector, vector->started + n, pos, &reqs[n]);
			pos += reqs[n++].length;
		}
		ret = xnem_start_pieces(ctx, reqs, n, vector->group, vector->pos);
		if (ret < 0)
			return xnem_start_error(ctx, reqs, ret);
		for (int i = 0; i < ret; i++)
			vector->pos += reqs[i].length;
		vector->started += (unsigned int)ret;
	}
	return 0;
}

/** Starts what waits for room; the lock is held, and let go of meanwhile. */
void xnem_pump(struct xnem *ctx)
{
	while (ctx->deferred && !ctx->pumping) {
		struct xnem_vector *vector = ctx->deferred;
		int err;

		ctx->pumping = true;
		pthread_mutex_unlock(&ctx->lock);
		err = start_some(ctx, vector);
		pthread_mutex_lock(&ctx->lock);
		ctx->pumping = false;
		if (err == -EAGAIN)
			return;
		ctx->deferred = vector->next;
		if (err) {
			xnem_end_pieces(ctx, vector->group, vector->count - vector->started,
					vector->pos, err);
			xnem_wake_poll(ctx);
			if (ctx->waiters)
				pthread_cond_broadcast(&ctx->changed);
		}
		free(vector);
	}
}

static void defer(struct xnem *ctx, struct xnem_vector *vector)
{
	struct xnem_vector **last;

	pthread_mutex_lock(&ctx->lock);
	for (last = &ctx->deferred; *last; last = &(*last)->next)
		;
	vector->next = NULL;
	*last = vector;
	pthread_mutex_unlock(&ctx->lock);
}

/* a vector of its own, without pieces of no bytes; *bytes: all together */
static int make_vector(const struct iovec *iov, int iovcnt, const struct xnem_cookie *remote,
		       uint64_t remote_off, bool put, struct xnem_vector **out, uint64_t *bytes)
{
	struct xnem_vector *vector;

	*bytes = 0;
	if (!iov || iovcnt < 1 || iovcnt > MAX_PIECES)
		return -EINVAL;
	vector = calloc(1, sizeof(*vector) + (size_t)iovcnt * sizeof(vector->iov[0]));
	if (!vector)
		return -ENOMEM;
	for (int i = 0; i < iovcnt; i++) {
		if (!iov[i].iov_len)
			continue;
		if (__builtin_add_overflow(*bytes, iov[i].iov_len, bytes))
			goto invalid;
		vector->iov[vector->count++] = iov[i];
	}
	if (!*bytes || remote_off + *bytes < remote_off)
		goto invalid;
	vector->put = put;
	vector->remote_off = remote_off;
	xnem_bytes_unpack(remote->bytes, &vector->remote);
	*out = vector;
	return 0;

invalid:
	free(vector);
	return -EINVAL;
}

static int start_vector(struct xnem *ctx, const struct iovec *iov, int iovcnt,
			const struct xnem_cookie *remote, uint64_t remote_off, bool put,
			uint64_t user_data, xnem_req *out)
{
	struct xnem_vector *vector;
	struct slot *group;
	uint64_t bytes;
	xnem_req req;
	int err = xnem_own(ctx);

	if (!err)
		err = make_vector(iov, iovcnt, remote, remote_off, put, &vector, &bytes);
	if (err)
		return err;
	err = xnem_check_fabric(ctx, xnem_cookie_fabric(remote), -EXDEV);
	if (err)
		goto free_vector;
	req = xnem_new_group(ctx, vector->count, bytes, out ? 0 : SLOT_EVENT, user_data);
	if (req == XNEM_REQ_NONE) {
		err = -ENOMEM;
		goto free_vector;
	}
	vector->group = req;
	err = start_some(ctx, vector);
	if (err && !vector->started) {
		pthread_mutex_lock(&ctx->lock);
		group = xnem_find(ctx, req);
		if (group)
			xnem_free_slot(ctx, group);
		if (!out)
			ctx->events_open--;
		pthread_mutex_unlock(&ctx->lock);
		goto free_vector;
	}
	if (out)
		*out = req;
	if (err == -EAGAIN) {
		defer(ctx, vector);
		return 0;
	}
	if (err) {
		pthread_mutex_lock(&ctx->lock);
		xnem_end_pieces(ctx, req, vector->count - vector->started, vector->pos, err);
		xnem_wake_poll(ctx);
		pthread_mutex_unlock(&ctx->lock);
	}
	err = 0;
free_vector:
	free(vector);
	return err;
}

static int vector_and_wait(struct xnem *ctx, const struct iovec *iov, int iovcnt,
			   const struct xnem_cookie *remote, uint64_t remote_off, bool put,
			   uint64_t *done)
{
	int64_t pause = XNEM_PAUSE_MIN_NS;
	uint64_t bytes = 0;
	xnem_req req;
	int err;

	while ((err = start_vector(ctx, iov, iovcnt, remote, remote_off, put, 0, &req)) ==
	       -EAGAIN) {
		err = xnem_wait_for_room(ctx, &pause);
		if (err)
			break;
	}
	if (!err)
		err = xnem_wait_to_the_end(ctx, req, &bytes);
	if (done)
		*done = bytes;
	return err;
}

XNEM_API int xnem_getv_start(struct xnem *ctx, const struct iovec *iov, int iovcnt,
			     const struct xnem_cookie *remote, uint64_t remote_off,
			     uint64_t user_data, xnem_req *req)
{
	return start_vector(ctx, iov, iovcnt, remote, remote_off, false, user_data, req);
}

XNEM_API int xnem_putv_start(struct xnem *ctx, const struct iovec *iov, int iovcnt,
			     const struct xnem_cookie *remote, uint64_t remote_off,
			     uint64_t user_data, xnem_req *req)
{
	return start_vector(ctx, iov, iovcnt, remote, remote_off, true, user_data, req);
}

XNEM_API int xnem_getv(struct xnem *ctx, const struct iovec *iov, int iovcnt,
		       const struct xnem_cookie *remote, uint64_t remote_off, uint64_t *done)
{
	return vector_and_wait(ctx, iov, iovcnt, remote, remote_off, false, done);
}

XNEM_API int xnem_putv(struct xnem *ctx, const struct iovec *iov, int iovcnt,
		       const struct xnem_cookie *remote, uint64_t remote_off, uint64_t *done)
{
	return vector_and_wait(ctx, iov, iovcnt, remote, remote_off, true, done);
}

static int cancel_one(struct xnem *ctx, xnem_req req)
{
	struct xnem_cancel cancel = { .user_data = req };
	int err = xnem_ioctl(ctx, XNEM_IOC_CANCEL, &cancel);

	/* its end is there, only not read yet */
	return err == -ENOENT ? -EBADR : err;
}

/*
 * The pieces that are in flight.  Slots may move while the lock is not held, and
 * those that are new then are no pieces of this group.
 */
static int cancel_pieces(struct xnem *ctx, xnem_req req)
{
	int ret = -EBADR;

	for (uint32_t i = 0;; i++) {
		xnem_req piece = XNEM_REQ_NONE;
		int err;

		pthread_mutex_lock(&ctx->lock);
		for (; i < ctx->nr_slots; i++) {
			struct slot *slot = &ctx->slots[i];

			if (slot->state != SLOT_INFLIGHT || !(slot->flags & SLOT_PIECE) ||
			    slot->group != req)
				continue;
			piece = xnem_slot_id(ctx, slot);
			break;
		}
		pthread_mutex_unlock(&ctx->lock);
		if (piece == XNEM_REQ_NONE)
			return ret;
		err = cancel_one(ctx, piece);
		if (err && err != -EBADR)
			return err;
		if (!err)
			ret = 0;
	}
}

XNEM_API int xnem_cancel(struct xnem *ctx, xnem_req req)
{
	struct slot *slot;
	bool group;
	int err = xnem_own(ctx);

	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	slot = xnem_find(ctx, req);
	if (!slot || slot->state != SLOT_INFLIGHT ||
	    slot->flags & (SLOT_EVENT | SLOT_ORPHAN | SLOT_PIECE)) {
		pthread_mutex_unlock(&ctx->lock);
		return -EBADR;
	}
	group = slot->flags & SLOT_GROUP;
	if (group)
		slot->flags |= SLOT_CANCEL;
	pthread_mutex_unlock(&ctx->lock);
	return group ? cancel_pieces(ctx, req) : cancel_one(ctx, req);
}
