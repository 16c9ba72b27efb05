// SPDX-License-Identifier: GPL-2.0
/*
 * Windows (xnemif.h, section 8): parts of regions that are granted when the
 * backend wants them, and revoked when it lets go.
 *
 * A window has references of its own, which registrations never use, so a want
 * can be met however short of grants the domain is.  All is done by one work;
 * no process is needed, so one that is stopped can be copied from.
 *
 *   (wanted) --pages granted--> described, posted --answered--> revoked
 *
 * What cannot be revoked keeps the window: it refuses further wants until it
 * can.  A region is unpinned after the last window of it is revoked; until
 * then it is parked, in no list.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "frontend.h"

struct xnem_window {
	struct list_head entry; /* fe->windows, under window_lock */
	struct xnem_fe *fe;
	u32 index;
	/* Flags and seq are under fe->lock, the rest is the work's. */

	/** Of the last want that was taken. */
	u32 seq;
	/** Of the present connection: it is fe->window[index]. */
	bool current_life;
	/** Its bit was set. */
	bool wanted;
	/** A want was taken, and is not yet answered. */
	bool busy;
	/** Its description is with the backend. */
	bool posted;
	/** The backend has let go, or is gone. */
	bool answered;

	/** Whose pages are granted, and how many. */
	struct xnem_region *region;
	u32 page;
	u32 nr;
	/** Those of them that are still in use, counted in quarantine. */
	u32 left;
	u32 size;
	/** 0: one that was replaced, and could not be. */
	grant_ref_t *refs;
	unsigned long *granted;
	void *desc;
	grant_ref_t desc_ref;
	struct xnem_request req;
};

static void kick(struct xnem_fe *fe)
{
	xnem_fe_get(fe);
	if (mod_delayed_work(xnem_wq, &fe->window_work, 0))
		xnem_fe_put(fe); /* was queued already */
}

/* ---- windowed regions by the backend's number ---- */

void xnem_window_region_add(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;
	struct rb_node **at = &fe->windowed.rb_node, *parent = NULL;

	lockdep_assert_held(&fe->lock);
	while (*at) {
		parent = *at;
		/* Two of one number: a backend that lies; either will do. */
		if (region->backend_id < rb_entry(parent, struct xnem_region, by_id)->backend_id)
			at = &parent->rb_left;
		else
			at = &parent->rb_right;
	}
	rb_link_node(&region->by_id, parent, at);
	rb_insert_color(&region->by_id, &fe->windowed);
}

void xnem_window_region_remove(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;

	lockdep_assert_held(&fe->lock);
	if (RB_EMPTY_NODE(&region->by_id))
		return;
	rb_erase(&region->by_id, &fe->windowed);
	RB_CLEAR_NODE(&region->by_id);
}

static struct xnem_region *find_region(struct xnem_fe *fe, u64 id)
{
	struct rb_node *node = fe->windowed.rb_node;
	struct xnem_region *region;

	while (node) {
		region = rb_entry(node, struct xnem_region, by_id);
		if (id == region->backend_id)
			return region;
		node = id < region->backend_id ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* No window of @region needs its pages any more: it can end. */
static void region_unpark(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;

	region->stuck = false;
	if (!region->parked)
		return;
	region->parked = false;
	list_add_tail(&region->list, &fe->ended);
	xnem_reap_now(fe);
}

bool xnem_window_park(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;
	bool park;

	spin_lock_irq(&fe->lock);
	park = region->windows;
	if (park) {
		region->parked = true;
		if (region->stuck && region->state < XNEM_REGION_QUARANTINED) {
			region->state = XNEM_REGION_QUARANTINED;
			wake_up_all(&region->ctx->wait);
		}
	}
	spin_unlock_irq(&fe->lock);
	return park;
}

/* ---- granting and revoking ---- */

static void window_grant(struct xnem_window *w)
{
	struct xnem_fe *fe = w->fe;
	bool readonly = !(w->region->access & XNEM_ACCESS_WRITE);
	xnem_le32 *refs = w->req.u.describe.ref;
	u32 i;

	if (w->nr > XNEM_DESCRIBE_REFS) {
		w->req.u.describe.indirect = cpu_to_le32(1);
		refs[0] = cpu_to_le32(w->desc_ref);
		refs = w->desc;
		xnem_stat_inc(fe, desc_pages);
	}
	for (i = 0; i < w->nr; i++) {
		gnttab_grant_foreign_access_ref(w->refs[i], fe->backend,
						xnem_region_gfn(w->region, w->page + i), readonly);
		refs[i] = cpu_to_le32(w->refs[i]);
	}
	bitmap_set(w->granted, 0, w->nr);
	w->req.u.describe.nr_pages = cpu_to_le32(w->nr);
	xnem_stat_add(fe, granted, w->nr);
	xnem_stat_inc(fe, windows_granted);
}

/* In the place of one that went back to the table; 0 when there is none now. */
static grant_ref_t new_ref(void)
{
	grant_ref_t head;

	if (gnttab_alloc_grant_references(1, &head))
		return 0;
	return gnttab_claim_grant_reference(&head);
}

static bool refs_whole(struct xnem_window *w)
{
	bool whole = true;
	u32 i;

	for (i = 0; i < w->size; i++) {
		if (!w->refs[i])
			w->refs[i] = new_ref();
		whole &= !!w->refs[i];
	}
	return whole;
}

/* Revoke one: it stays the window's own when that goes at once. */
static bool revoke_one(struct xnem_window *w, u32 i, bool quietly)
{
	if (!quietly)
		return xnem_end_access(w->refs[i]);
	if (!gnttab_try_end_foreign_access(w->refs[i]))
		return false;
	w->refs[i] = new_ref();
	return true;
}

/* Returns what is still in use. */
static u32 window_revoke(struct xnem_window *w)
{
	struct xnem_fe *fe = w->fe;
	u32 left = 0, revoked = 0, i;

	if (fe->revoke_after && time_before(jiffies, fe->revoke_after))
		return bitmap_weight(w->granted, w->nr);
	for_each_set_bit(i, w->granted, w->nr)
	{
		/* The kernel says each time that one is in use: once is enough. */
		if (revoke_one(w, i, w->left || left)) {
			revoked++;
		} else if (READ_ONCE(fe->defer)) {
			xnem_defer_revoke(w->refs[i], xnem_region_page(w->region, w->page + i));
			w->refs[i] = 0;
			xnem_stat_inc(fe, deferred);
		} else {
			left++;
			continue;
		}
		__clear_bit(i, w->granted);
	}
	xnem_stat_add(fe, revoked, revoked);
	return left;
}

/* The backend has let go of what the window shows. */
static void window_end(struct xnem_window *w)
{
	struct xnem_region *region = w->region;
	struct xnem_fe *fe = w->fe;
	u32 left;

	if (!region)
		return;
	left = window_revoke(w);
	spin_lock_irq(&fe->lock);
	fe->quarantined += left - w->left;
	w->left = left;
	if (left) {
		region->stuck = true;
		/* Who waits for its end need not wait for that. */
		if (region->parked && region->state < XNEM_REGION_QUARANTINED) {
			region->state = XNEM_REGION_QUARANTINED;
			wake_up_all(&region->ctx->wait);
		}
	} else if (!--region->windows) {
		region_unpark(region);
	}
	spin_unlock_irq(&fe->lock);
	if (left)
		return;
	w->region = NULL;
	w->nr = 0;
	xnem_region_put(region);
}

/* ---- wants ---- */

/* Copy the want out of its slot, once; false: there is no new one. */
static bool read_want(struct xnem_window *w, struct xnem_want *want)
{
	const struct xnem_want *slot = &w->fe->queues[0].header->want[w->index];
	u32 seq = xnem_load32(&slot->seq);

	if (seq == w->seq)
		return false;
	xnem_rmb(); /* seq before the rest; pairs with the backend, which writes it last */
	*want = *slot;
	barrier();
	if (seq != w->seq + 1) {
		xnem_queue_break(w->fe, "a window out of turn");
		return false;
	}
	w->seq = seq;
	return true;
}

/* Can the want be met? The region is held then. */
static struct xnem_region *admit(struct xnem_window *w, const struct xnem_want *want)
{
	u32 page = le32_to_cpu(want->page);
	u32 nr = le32_to_cpu(want->nr_pages);
	struct xnem_region *region;

	if (want->pad[0] || want->pad[1] || want->pad[2] || !nr || nr > w->size)
		return NULL;
	region = find_region(w->fe, le64_to_cpu(want->region_id));
	if (!region || page >= region->nr_xen || nr > region->nr_xen - page)
		return NULL;
	w->page = page;
	w->nr = nr;
	kref_get(&region->ref);
	region->windows++;
	region->ctx->windows++;
	return region;
}

/* Take a new want, if there is one, and prepare what is said to it. */
static void take_want(struct xnem_window *w)
{
	struct xnem_fe *fe = w->fe;
	struct xnem_region *region = NULL;
	struct xnem_want want;
	bool usable, taken;

	if (!READ_ONCE(w->wanted))
		return;
	usable = !w->region && refs_whole(w);
	spin_lock_irq(&fe->lock);
	taken = w->current_life && w->wanted && !w->busy && fe->phase == XNEM_FE_UP;
	if (taken) {
		w->wanted = false;
		taken = read_want(w, &want);
	}
	if (taken) {
		w->busy = true;
		if (usable)
			region = admit(w, &want);
	}
	spin_unlock_irq(&fe->lock);
	if (!taken)
		return;

	xnem_stat_inc(fe, windows_wanted);
	w->req = (struct xnem_request){
		.op = cpu_to_le16(XNEM_OP_DESCRIBE),
		.user_data = cpu_to_le64(w->index),
		.u.describe.window = cpu_to_le32(w->index),
		.u.describe.seq = cpu_to_le32(w->seq),
	};
	if (region) {
		w->region = region;
		window_grant(w);
	} else {
		xnem_stat_inc(fe, windows_refused);
	}
}

/* Post the description; false: there is no room for it now. */
static bool post(struct xnem_window *w)
{
	struct xnem_fe *fe = w->fe;
	int err = 0;

	spin_lock_irq(&fe->lock);
	if (w->busy && !w->posted && !w->answered) {
		err = w->current_life ? xnem_queue_post(fe, NULL, NULL, &w->req, true) : -ENOTCONN;
		if (!err)
			w->posted = true;
		else if (err != -EAGAIN)
			w->answered = true; /* nobody will */
		xnem_queue_flush(fe);
	}
	spin_unlock_irq(&fe->lock);
	return err != -EAGAIN;
}

static bool take_answer(struct xnem_window *w)
{
	bool answered;

	spin_lock_irq(&w->fe->lock);
	answered = w->answered;
	if (answered) {
		w->answered = false;
		w->busy = false;
	}
	spin_unlock_irq(&w->fe->lock);
	return answered;
}

static void window_free(struct xnem_window *w)
{
	u32 i, n = 0;

	for (i = 0; i < w->size && w->refs; i++)
		if (w->refs[i])
			gnttab_free_grant_reference(w->refs[i]);
	if (w->refs)
		n = w->size;
	if (xnem_teardown_ring(&w->desc, 1, &w->desc_ref))
		WRITE_ONCE(w->fe->kept, true);
	xnem_pages_unreserve(n);
	kvfree(w->refs);
	bitmap_free(w->granted);
	kfree(w);
}

/* Set the wanted windows' flags. */
static void take_bits(struct xnem_fe *fe)
{
	unsigned long bits;
	u32 i;

	spin_lock_irq(&fe->lock);
	if (fe->nr_windows && fe->phase == XNEM_FE_UP) {
		/* A whole barrier: the slot is read after its bit is taken. */
		bits = le32_to_cpu(xchg(&fe->queues[0].header->attention.windows, 0));
		for_each_set_bit(i, &bits, min(fe->nr_windows, 32u)) fe->window[i]->wanted = true;
	}
	spin_unlock_irq(&fe->lock);
}

void xnem_window_work(struct work_struct *work)
{
	struct xnem_fe *fe = container_of(to_delayed_work(work), struct xnem_fe, window_work);
	struct xnem_window *w, *next;
	unsigned long later = 0;

	mutex_lock(&fe->window_lock);
	take_bits(fe);
	list_for_each_entry_safe(w, next, &fe->windows, entry) {
		if (take_answer(w) || w->left)
			window_end(w);
		take_want(w);
		/* Not posted, as the backend has gone: revoked the next time. */
		if (!post(w) || READ_ONCE(w->answered))
			later = 1;
		if (w->left && !later)
			later = XNEM_FE_QUARANTINE_RETRY;
		if (!READ_ONCE(w->current_life) && !w->region && !w->busy) {
			list_del(&w->entry);
			window_free(w);
		}
	}
	mutex_unlock(&fe->window_lock);
	if (later) {
		xnem_fe_get(fe);
		if (!queue_delayed_work(xnem_wq, &fe->window_work, later))
			xnem_fe_put(fe); /* it was kicked meanwhile */
	}
	xnem_fe_put(fe);
}

void xnem_window_wanted(struct xnem_fe *fe)
{
	lockdep_assert_held(&fe->lock);
	kick(fe);
}

void xnem_window_answered(struct xnem_fe *fe, u32 index)
{
	struct xnem_window *w = fe->window[index];

	lockdep_assert_held(&fe->lock);
	w->posted = false;
	w->answered = true;
	kick(fe);
}

/* ---- connecting and disconnecting ---- */

void xnem_windows_init(struct xnem_fe *fe)
{
	INIT_LIST_HEAD(&fe->windows);
	mutex_init(&fe->window_lock);
	INIT_DELAYED_WORK(&fe->window_work, xnem_window_work);
	fe->windowed = RB_ROOT;
}

static struct xnem_window *window_new(struct xnem_fe *fe, u32 index, u32 size)
{
	struct xnem_window *w = kzalloc(sizeof(*w), GFP_KERNEL);
	grant_ref_t head, *refs;
	u32 i;

	if (!w)
		return NULL;
	w->fe = fe;
	w->index = index;
	w->size = size;
	w->current_life = true;
	w->granted = bitmap_zalloc(size, GFP_KERNEL);
	if (!w->granted ||
	    (size > XNEM_DESCRIBE_REFS && xnem_setup_ring(fe->xdev, &w->desc, 1, &w->desc_ref)))
		goto fail;
	refs = kvmalloc_array(size, sizeof(*refs), GFP_KERNEL);
	if (!refs || !xnem_pages_reserve(size)) {
		kvfree(refs);
		goto fail;
	}
	if (gnttab_alloc_grant_references(size, &head)) {
		xnem_pages_unreserve(size);
		kvfree(refs);
		goto fail;
	}
	for (i = 0; i < size; i++)
		refs[i] = gnttab_claim_grant_reference(&head);
	w->refs = refs;
	return w;

fail:
	window_free(w);
	return NULL;
}

u32 xnem_windows_setup(struct xnem_fe *fe)
{
	u32 size = fe->limits.window_pages, want, nr = 0;
	struct xnem_window *w;

	xnem_windows_down(fe);
	if (!(fe->features & XNEM_FEAT_WINDOW) || !fe->limits.windows)
		goto none;
	/* Not more than half of what there is: most regions do without. */
	want = min3(fe->limits.windows, XNEM_FE_WINDOWS, fe->max_pages / 2 / size);
	mutex_lock(&fe->window_lock);
	while (nr < want) {
		w = window_new(fe, nr, size);
		if (!w)
			break;
		list_add_tail(&w->entry, &fe->windows);
		fe->window[nr++] = w;
	}
	mutex_unlock(&fe->window_lock);
	/* A copy within the device takes two at once. */
	if (nr < 2)
		goto none;
	spin_lock_irq(&fe->lock);
	fe->nr_windows = nr;
	spin_unlock_irq(&fe->lock);
	return nr * size;

none:
	spin_lock_irq(&fe->lock);
	fe->nr_windows = nr;
	spin_unlock_irq(&fe->lock);
	xnem_windows_down(fe);
	fe->features &= ~XNEM_FEAT_WINDOW;
	return 0;
}

void xnem_windows_down(struct xnem_fe *fe)
{
	struct xnem_window *w;
	u32 i;

	spin_lock_irq(&fe->lock);
	for (i = 0; i < fe->nr_windows; i++) {
		w = fe->window[i];
		w->current_life = false;
		w->wanted = false;
		if (w->busy && !w->posted)
			w->answered = true;
		fe->window[i] = NULL;
	}
	if (fe->nr_windows)
		kick(fe);
	fe->nr_windows = 0;
	spin_unlock_irq(&fe->lock);
}

bool xnem_windows_left(struct xnem_fe *fe)
{
	bool left;

	flush_delayed_work(&fe->window_work);
	mutex_lock(&fe->window_lock);
	left = !list_empty(&fe->windows);
	mutex_unlock(&fe->window_lock);
	return left;
}

void xnem_windows_defer(struct xnem_fe *fe)
{
	kick(fe);
	flush_delayed_work(&fe->window_work);
}
