// SPDX-License-Identifier: MIT
/*
 * Copies and pings: one at a time or in batches, waited for or not.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

struct copy {
	struct xnem *ctx;
	const struct xnem_cookie *src, *dst;
	uint64_t src_off, dst_off, len;
	/** fabric ids of another life: what to say of source and destination */
	int src_error, dst_error;
	unsigned int flags;
};

static struct copy get_of(struct xnem_region *local, uint64_t local_off,
			  const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len)
{
	return (struct copy){
		.ctx = local->ctx,
		.src = remote,
		.src_off = remote_off,
		.src_error = -EXDEV,
		.dst = &local->cookie,
		.dst_off = local_off,
		.dst_error = -ESTALE,
		.len = len,
		.flags = SLOT_OWN,
	};
}

static struct copy put_of(struct xnem_region *local, uint64_t local_off,
			  const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len)
{
	return (struct copy){
		.ctx = local->ctx,
		.src = &local->cookie,
		.src_off = local_off,
		.src_error = -ESTALE,
		.dst = remote,
		.dst_off = remote_off,
		.dst_error = -EXDEV,
		.len = len,
		.flags = SLOT_OWN,
	};
}

static struct copy copy_of(struct xnem *ctx, const struct xnem_cookie *dst, uint64_t dst_off,
			   const struct xnem_cookie *src, uint64_t src_off, uint64_t len)
{
	return (struct copy){
		.ctx = ctx,
		.src = src,
		.src_off = src_off,
		.src_error = -EXDEV,
		.dst = dst,
		.dst_off = dst_off,
		.dst_error = -EXDEV,
		.len = len,
	};
}

static int start_copy(const struct copy *copy, unsigned int flags, uint64_t user_data,
		      xnem_req *out)
{
	struct xnem_submit_req req = {
		.op = XNEM_REQ_OP_COPY,
		.user_data = user_data,
		.src_offset = copy->src_off,
		.dst_offset = copy->dst_off,
		.length = copy->len,
	};
	struct xnem *ctx = copy->ctx;
	int err = xnem_own(ctx);

	if (err)
		return err;
	/* the own region first: its error says more */
	if (copy->dst_error == -ESTALE)
		err = xnem_check_fabric(ctx, xnem_cookie_fabric(copy->dst), copy->dst_error);
	if (!err)
		err = xnem_check_fabric(ctx, xnem_cookie_fabric(copy->src), copy->src_error);
	if (!err && copy->dst_error != -ESTALE)
		err = xnem_check_fabric(ctx, xnem_cookie_fabric(copy->dst), copy->dst_error);
	if (err)
		return err;
	xnem_bytes_unpack(copy->src->bytes, &req.src);
	xnem_bytes_unpack(copy->dst->bytes, &req.dst);
	err = xnem_start(ctx, &req, 1, copy->flags | flags);
	if (err < 0)
		return err;
	if (out)
		*out = req.user_data;
	return 0;
}

/** Waits until a request may have ended somewhere, so that there may be room. */
int xnem_wait_for_room(struct xnem *ctx, int64_t *pause)
{
	struct timespec ts = { .tv_nsec = *pause };
	int err = 0;
	bool own;

	pthread_mutex_lock(&ctx->lock);
	own = ctx->inflight || ctx->fetching;
	if (own)
		err = xnem_step(ctx, xnem_deadline(*pause), 0);
	pthread_mutex_unlock(&ctx->lock);
	/* the queue is full of others' requests: nothing announces its room */
	if (!own)
		nanosleep(&ts, NULL);
	if (*pause < XNEM_PAUSE_MAX_NS)
		*pause *= 2;
	return err == -ETIMEDOUT || err == -EINTR || err == -ENOENT ? 0 : err;
}

/** xnem_wait() without a limit, that no signal ends. */
int xnem_wait_to_the_end(struct xnem *ctx, xnem_req req, uint64_t *done)
{
	int err;

	do {
		err = xnem_wait(ctx, req, XNEM_FOREVER, done);
	} while (err == -EINTR);
	return err;
}

static int copy_and_wait(const struct copy *copy, uint64_t *done)
{
	int64_t pause = XNEM_PAUSE_MIN_NS;
	uint64_t bytes = 0;
	xnem_req req;
	int err;

	while ((err = start_copy(copy, 0, 0, &req)) == -EAGAIN) {
		err = xnem_wait_for_room(copy->ctx, &pause);
		if (err)
			break;
	}
	if (!err)
		err = xnem_wait_to_the_end(copy->ctx, req, &bytes);
	if (done)
		*done = bytes;
	return err;
}

static int copy_and_go(const struct copy *copy, uint64_t user_data, xnem_req *req)
{
	return start_copy(copy, req ? 0 : SLOT_EVENT, user_data, req);
}

XNEM_API int xnem_get(struct xnem_region *local, uint64_t local_off,
		      const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len,
		      uint64_t *done)
{
	struct copy copy = get_of(local, local_off, remote, remote_off, len);

	return copy_and_wait(&copy, done);
}

XNEM_API int xnem_put(struct xnem_region *local, uint64_t local_off,
		      const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len,
		      uint64_t *done)
{
	struct copy copy = put_of(local, local_off, remote, remote_off, len);

	return copy_and_wait(&copy, done);
}

XNEM_API int xnem_copy(struct xnem *ctx, const struct xnem_cookie *dst, uint64_t dst_off,
		       const struct xnem_cookie *src, uint64_t src_off, uint64_t len,
		       uint64_t *done)
{
	struct copy copy = copy_of(ctx, dst, dst_off, src, src_off, len);

	return copy_and_wait(&copy, done);
}

XNEM_API int xnem_get_start(struct xnem_region *local, uint64_t local_off,
			    const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len,
			    uint64_t user_data, xnem_req *req)
{
	struct copy copy = get_of(local, local_off, remote, remote_off, len);

	return copy_and_go(&copy, user_data, req);
}

XNEM_API int xnem_put_start(struct xnem_region *local, uint64_t local_off,
			    const struct xnem_cookie *remote, uint64_t remote_off, uint64_t len,
			    uint64_t user_data, xnem_req *req)
{
	struct copy copy = put_of(local, local_off, remote, remote_off, len);

	return copy_and_go(&copy, user_data, req);
}

XNEM_API int xnem_copy_start(struct xnem *ctx, const struct xnem_cookie *dst, uint64_t dst_off,
			     const struct xnem_cookie *src, uint64_t src_off, uint64_t len,
			     uint64_t user_data, xnem_req *req)
{
	struct copy copy = copy_of(ctx, dst, dst_off, src, src_off, len);

	return copy_and_go(&copy, user_data, req);
}

/* one side of a copy: a region by its cookie, or own memory by its address */
static int convert_side(struct xnem *ctx, const struct xnem_cookie *cookie, bool addr,
			struct xnem_uapi_cookie *out)
{
	static const struct xnem_cookie none;
	int err;

	if (addr)
		return memcmp(cookie, &none, sizeof(none)) ? -EINVAL : 0;
	err = xnem_check_fabric(ctx, xnem_cookie_fabric(cookie), -EXDEV);
	if (!err)
		xnem_bytes_unpack(cookie->bytes, out);
	return err;
}

static int convert_copy(struct xnem *ctx, const struct xnem_op *op, struct xnem_submit_req *req)
{
	static const struct {
		uint32_t op, submit;
	} flags[] = {
		{ XNEM_OP_NOTIFY_SRC, XNEM_SUBMIT_NOTIFY_SRC },
		{ XNEM_OP_NOTIFY_DST, XNEM_SUBMIT_NOTIFY_DST },
		{ XNEM_OP_BOUNDED, XNEM_SUBMIT_BOUNDED },
		{ XNEM_OP_SRC_ADDR, XNEM_SUBMIT_SRC_ADDR },
		{ XNEM_OP_DST_ADDR, XNEM_SUBMIT_DST_ADDR },
	};
	uint32_t left = op->flags & ~XNEM_OP_FENCE;
	int err;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (left & flags[i].op)
			req->flags |= flags[i].submit;
		left &= ~flags[i].op;
	}
	if (left || (op->immediate && !(op->flags & (XNEM_OP_NOTIFY_SRC | XNEM_OP_NOTIFY_DST))))
		return -EINVAL;
	err = convert_side(ctx, &op->src, op->flags & XNEM_OP_SRC_ADDR, &req->src);
	if (!err)
		err = convert_side(ctx, &op->dst, op->flags & XNEM_OP_DST_ADDR, &req->dst);
	req->op = XNEM_REQ_OP_COPY;
	req->src_offset = op->src_offset;
	req->dst_offset = op->dst_offset;
	req->length = op->length;
	req->immediate = op->immediate;
	return err;
}

static int convert_message(struct xnem *ctx, const struct xnem_op *op, struct xnem_submit_req *req)
{
	if (op->flags & ~XNEM_OP_FENCE || op->immediate || op->dst_offset)
		return -EINVAL;
	if (op->length > XNEM_MESSAGE_MAX)
		return -EMSGSIZE;
	req->op = XNEM_REQ_OP_MESSAGE;
	req->src_offset = op->src_offset;
	req->length = op->length;
	return convert_side(ctx, &op->dst, false, &req->dst);
}

/** The kernel's form of an operation; 0 or why it cannot be one. */
static int convert(struct xnem *ctx, const struct xnem_op *op, struct xnem_submit_req *req)
{
	memset(req, 0, sizeof(*req));
	req->user_data = op->user_data;
	if (op->flags & XNEM_OP_FENCE)
		req->flags = XNEM_SUBMIT_FENCE;
	switch (op->kind) {
	case XNEM_KIND_PING:
		req->op = XNEM_REQ_OP_PING;
		return op->flags & ~XNEM_OP_FENCE ? -EINVAL : 0;
	case XNEM_KIND_COPY:
		return convert_copy(ctx, op, req);
	case XNEM_KIND_MESSAGE:
		return convert_message(ctx, op, req);
	default:
		return -EINVAL;
	}
}

/**
 * Why a request was not started.  The kernel does not tell which memory it was
 * short of when it had to make a region; the cache does.
 */
int xnem_start_error(struct xnem *ctx, const struct xnem_submit_req *req, int err)
{
	static const struct {
		uint32_t flag;
		unsigned int access;
	} sides[] = {
		{ XNEM_SUBMIT_SRC_ADDR, XNEM_READ },
		{ XNEM_SUBMIT_DST_ADDR, XNEM_WRITE },
	};
	struct xnem_use use;

	for (unsigned int i = 0; i < 2 && err == -ENOBUFS; i++) {
		uint64_t addr = i ? req->dst_offset : req->src_offset;

		if (!(req->flags & sides[i].flag))
			continue;
		err = xnem_cache_get(ctx, (void *)(uintptr_t)addr, req->length, sides[i].access,
				     &use);
		if (!err) {
			xnem_cache_put(ctx, &use);
			err = -ENOBUFS;
		}
	}
	return err;
}

XNEM_API int xnem_submit(struct xnem *ctx, const struct xnem_op *ops, unsigned int n)
{
	struct xnem_submit_req few[16], *reqs = few;
	unsigned int room = sizeof(few) / sizeof(few[0]);
	unsigned int started = 0;
	int err = xnem_own(ctx);

	if (err)
		return err;
	if (n > INT_MAX || (n && !ops))
		return -EINVAL;
	if (n > room) {
		unsigned int want = n < XNEM_SUBMIT_MAX ? n : XNEM_SUBMIT_MAX;
		struct xnem_submit_req *many = malloc(want * sizeof(*many));

		/* short of memory: more calls, with what is on the stack */
		if (many) {
			reqs = many;
			room = want;
		}
	}
	while (started < n && !err) {
		unsigned int count = 0;
		int ret;

		while (count < room && started + count < n) {
			err = convert(ctx, &ops[started + count], &reqs[count]);
			if (err)
				break;
			count++;
		}
		if (!count)
			break;
		ret = xnem_start(ctx, reqs, count, SLOT_EVENT);
		if (ret < 0) {
			err = started ? ret : xnem_start_error(ctx, reqs, ret);
			break;
		}
		started += (unsigned int)ret;
		if ((unsigned int)ret < count)
			break;
	}
	if (reqs != few)
		free(reqs);
	return started ? (int)started : err;
}

XNEM_API int xnem_ping(struct xnem *ctx, int64_t timeout_ns, uint64_t *elapsed_ns)
{
	struct xnem_submit_req req = { .op = XNEM_REQ_OP_PING };
	int64_t begin, end, left = timeout_ns;
	struct slot *slot;
	int err = xnem_own(ctx);

	if (err)
		return err;
	begin = xnem_now();
	err = xnem_start(ctx, &req, 1, 0);
	if (err < 0)
		return err;
	for (;;) {
		err = xnem_wait(ctx, req.user_data, left, NULL);
		end = xnem_now();
		if (err != -EINTR)
			break;
		if (timeout_ns > 0)
			left = timeout_ns > end - begin ? timeout_ns - (end - begin) : 0;
	}
	if (err && err != -EBADR) {
		/* if it is still under way, nobody will ask for its end */
		pthread_mutex_lock(&ctx->lock);
		slot = xnem_find(ctx, req.user_data);
		if (slot && slot->state == SLOT_DONE)
			xnem_free_slot(ctx, slot);
		else if (slot)
			slot->flags |= SLOT_ORPHAN;
		pthread_mutex_unlock(&ctx->lock);
	}
	if (!err && elapsed_ns)
		*elapsed_ns = (uint64_t)(end - begin);
	return err;
}
