/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * One direction of a queue: index arithmetic, and the protocol by which the
 * consumer sleeps and the producer wakes it (xnemif.h, section 3).
 *
 * Used for the submission ring (frontend produces) and for the completion
 * ring (backend produces) alike.  Each side keeps its own index privately and
 * never reads it back from shared memory.  Nothing here sleeps.
 *
 * Pairs of barriers, named where they stand:
 *   A  slots before prod            / prod before slots
 *   B  prod before reading event    / event before reading prod again
 *   C  slot contents before cons    / cons before overwriting slots
 */
#ifndef XNEM_RING_H
#define XNEM_RING_H

#include "xnem_port.h"
#include <xen/io/xnemif.h>

/** Is @size slots a ring's size: a power of two, not 0? */
static inline bool xnem_ring_size_ok(u32 size)
{
	return size && !(size & (size - 1));
}

/** Entries between @cons and @prod, or more than @size when it is garbage. */
static inline u32 xnem_ring_used(u32 prod, u32 cons)
{
	return prod - cons;
}

/**
 * Does a producer that moved from @from to @to have to notify a consumer that
 * asked for an event at @event?  True when event is in (from, to], in
 * arithmetic modulo 2^32.
 */
static inline bool xnem_ring_event_in(u32 event, u32 from, u32 to)
{
	return (u32)(to - event) < (u32)(to - from);
}

/**
 * Producer: make slots @from .. @to - 1, which are written, visible.
 * Returns true when the consumer must be notified.
 */
static inline bool xnem_ring_publish(struct xnem_ring_index *ix, u32 from, u32 to)
{
	xnem_wmb(); /* A: slots before prod; pairs with xnem_ring_look() */
	xnem_store32(&ix->prod, to);
	xnem_mb(); /* B: prod before event; pairs with xnem_ring_arm() */
	return xnem_ring_event_in(xnem_load32(&ix->event), from, to);
}

/**
 * Consumer: the producer's index.  Slots below it may be read after this.
 * The caller checks xnem_ring_used() against the size: a hostile producer
 * can write anything here.
 */
static inline u32 xnem_ring_look(const struct xnem_ring_index *ix)
{
	u32 prod = xnem_load32(&ix->prod);

	xnem_rmb(); /* A: prod before slots; pairs with xnem_ring_publish() */
	return prod;
}

/** Consumer: everything below @cons has been copied out of its slot. */
static inline void xnem_ring_release(struct xnem_ring_index *ix, u32 cons)
{
	xnem_mb(); /* C: reads of slots before cons; pairs with xnem_ring_space() */
	xnem_store32(&ix->cons, cons);
}

/**
 * Producer: slots that may be written, of a ring of @size with private index
 * @prod.  0 when full, and when a hostile consumer claims to have consumed
 * what was never there.
 */
static inline u32 xnem_ring_space(const struct xnem_ring_index *ix, u32 prod, u32 size)
{
	u32 used = xnem_ring_used(prod, xnem_load32(&ix->cons));

	xnem_mb(); /* C: cons before writing slots; pairs with xnem_ring_release() */
	return used > size ? 0 : size - used;
}

/**
 * Consumer, about to sleep with everything below @cons consumed: ask for an
 * event with the next entry.  Returns true when it may sleep, false when
 * something came in the meantime (it consumes that first, the event it asked
 * for may come all the same).
 */
static inline bool xnem_ring_arm(struct xnem_ring_index *ix, u32 cons)
{
	xnem_store32(&ix->event, cons + 1);
	xnem_mb(); /* B: event before prod; pairs with xnem_ring_publish() */
	return xnem_load32(&ix->prod) == cons;
}

#endif /* XNEM_RING_H */
