// SPDX-License-Identifier: MIT
/*
 * The inbox: messages and notifications of others, in one ring that the backend
 * writes.  Both stay in their slots until somebody takes them, so that senders
 * are held up, and not this process's memory filled, when nobody does.
 */
#include <string.h>

#include "internal.h"

static const struct xnem_inbox_slot *slot_of(const struct xnem *ctx, uint32_t i)
{
	return &ctx->inbox[i & (ctx->inbox_slots - 1)];
}

static bool written(const struct xnem *ctx, uint32_t i)
{
	/* pairs with the backend's release: seq comes last */
	return __atomic_load_n(&slot_of(ctx, i)->seq, __ATOMIC_ACQUIRE) == i + 1;
}

/**
 * Has anything come since so many slots were known?  Needs no lock: the slot
 * may have been taken and written anew meanwhile, which is news, too.
 */
bool xnem_inbox_news(const struct xnem *ctx, uint32_t known)
{
	uint32_t seq;

	if (!ctx->inbox)
		return false;
	seq = __atomic_load_n(&slot_of(ctx, known)->seq, __ATOMIC_ACQUIRE);
	return (int32_t)(seq - known) > 0;
}

/** Brings inbox_known up to date; the lock is held. */
void xnem_inbox_look(struct xnem *ctx)
{
	if (!ctx->inbox)
		return;
	while (written(ctx, ctx->inbox_known))
		ctx->inbox_known++;
}

/**
 * Takes the oldest slot of a kind; the lock is held.  False: there is none.
 */
bool xnem_inbox_take(struct xnem *ctx, uint32_t kind, struct xnem_inbox_slot *out)
{
	bool message = kind == XNEM_INBOX_MESSAGE;
	uint32_t *mine = message ? &ctx->seen_message : &ctx->seen_notify;
	uint32_t *other = message ? &ctx->seen_notify : &ctx->seen_message;
	uint32_t others = message ? XNEM_INBOX_NOTIFY : XNEM_INBOX_MESSAGE;
	uint32_t before = *mine, before_other = *other;
	bool found = false;

	if (!ctx->inbox)
		return false;
	while (!found && written(ctx, *mine)) {
		memcpy(out, slot_of(ctx, *mine), sizeof(*out));
		found = out->kind == kind;
		++*mine;
	}
	/* the other kind's reader has nothing to do with what is not its own */
	while ((int32_t)(*mine - *other) > 0 &&
	       __atomic_load_n(&slot_of(ctx, *other)->kind, __ATOMIC_RELAXED) != others)
		++*other;
	if (*mine == before && *other == before_other)
		return false;
	if ((int32_t)(*mine - ctx->inbox_known) > 0)
		ctx->inbox_known = *mine;
	/* gives the slots back: pairs with the backend's read before it writes them */
	__atomic_store_n(&ctx->control->inbox_cons, (int32_t)(*mine - *other) < 0 ? *mine : *other,
			 __ATOMIC_RELEASE);
	return found;
}

/**
 * Asks the kernel whether the backend that writes the inbox is still there: 0,
 * or an error that is the inbox's end.  No lock is held.
 */
int xnem_inbox_alive(struct xnem *ctx)
{
	uint64_t fabric;
	int err = xnem_refresh(ctx, NULL);

	if (err)
		return err;
	fabric = atomic_load_explicit(&ctx->fabric, memory_order_relaxed);
	if (!fabric)
		return -ENOTCONN;
	return fabric == ctx->pages_fabric ? 0 : -ESTALE;
}
