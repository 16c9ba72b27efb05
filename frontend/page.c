// SPDX-License-Identifier: GPL-2.0
/*
 * A context's own pages (xnemif.h, section 6): its control page, completion
 * page and inbox, one behind the other as the process maps them.
 *
 * The backend has them as a region that ends with the context; the context
 * keeps them until it is freed, so that what came in before the backend went
 * away can still be looked at.  What stands in them was written by the backend
 * or the process: the kernel takes it as a hint whether to wake somebody.
 */
#include <linux/mm.h>

#include "frontend.h"

/* Positions in Xen pages. */
enum {
	PAGE_CONTROL,
	PAGE_CPAGE,
	PAGE_INBOX,
};
#define PAGES_MAX (PAGE_INBOX + (1u << XNEM_FE_INBOX_ORDER))

struct xnem_ctx_pages {
	/** Xen pages. */
	u32 nr_xen;
	/** Slots of the inbox, a power of two; 0: no inbox. */
	u32 slots;
	u32 nr;
	struct page *page[DIV_ROUND_UP(PAGES_MAX, XEN_PER_PAGE)];
};

static void *xen_page(const struct xnem_ctx_pages *p, u32 i)
{
	return page_address(p->page[i / XEN_PER_PAGE]) + i % XEN_PER_PAGE * XNEM_PAGE_SIZE;
}

/* Xen pages of a context that is opened with the backend there is now. */
static u32 nr_offered(const struct xnem_fe *fe)
{
	if (fe->phase != XNEM_FE_UP || !(fe->features & XNEM_FEAT_CPAGE))
		return 0;
	return fe->features & (XNEM_FEAT_MESSAGE | XNEM_FEAT_NOTIFY) ? PAGES_MAX : PAGE_INBOX;
}

static u32 nr_xen(const struct xnem_ctx *ctx)
{
	return ctx->pages ? ctx->pages->nr_xen : nr_offered(ctx->fe);
}

u32 xnem_pages_bytes(const struct xnem_ctx *ctx)
{
	return nr_xen(ctx) * XNEM_PAGE_SIZE;
}

u32 xnem_pages_inbox_slots(const struct xnem_ctx *ctx)
{
	u32 nr = nr_xen(ctx);

	return nr > PAGE_INBOX ? (nr - PAGE_INBOX) * XNEM_INBOX_SLOTS_PER_PAGE : 0;
}

bool xnem_pages_inbox_news(const struct xnem_ctx *ctx, u32 seen)
{
	/* pairs with pages_publish() */
	const struct xnem_ctx_pages *p = smp_load_acquire(&ctx->pages);
	const struct xnem_inbox_slot *page;
	u32 i;

	if (!p || !p->slots)
		return false;
	i = seen & (p->slots - 1);
	page = xen_page(p, PAGE_INBOX + i / XNEM_INBOX_SLOTS_PER_PAGE);
	return xnem_load32(&page[i % XNEM_INBOX_SLOTS_PER_PAGE].seq) == seen + 1;
}

u32 xnem_pages_inbox_cons(const struct xnem_ctx *ctx)
{
	const struct xnem_ctx_pages *p = smp_load_acquire(&ctx->pages); /* as above */
	const struct xnem_context_control *control;

	if (!p)
		return 0;
	control = xen_page(p, PAGE_CONTROL);
	return xnem_load32(&control->inbox_cons);
}

bool xnem_pages_poll(const struct xnem_ctx *ctx)
{
	const struct xnem_ctx_pages *p = smp_load_acquire(&ctx->pages); /* as above */
	const struct xnem_context_control *control;

	if (!p)
		return false;
	control = xen_page(p, PAGE_CONTROL);
	return (s32)(READ_ONCE(ctx->cpage_done) - xnem_load32(&control->cpage_cons)) > 0 ||
	       xnem_pages_inbox_news(ctx, xnem_load32(&control->inbox_cons));
}

static void pages_free(struct xnem_ctx_pages *p)
{
	u32 i;

	for (i = 0; i < p->nr; i++)
		put_page(p->page[i]);
	kfree(p);
}

void xnem_pages_free(struct xnem_ctx *ctx)
{
	if (ctx->pages)
		pages_free(ctx->pages);
}

static struct xnem_ctx_pages *pages_alloc(u32 xen_pages)
{
	struct xnem_ctx_pages *p = kzalloc(sizeof(*p), GFP_KERNEL);
	u32 i, nr = DIV_ROUND_UP(xen_pages, XEN_PER_PAGE);

	if (!p)
		return NULL;
	p->nr_xen = xen_pages;
	p->slots = (xen_pages - PAGE_INBOX) * XNEM_INBOX_SLOTS_PER_PAGE;
	for (i = 0; i < nr; i++) {
		p->page[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!p->page[i]) {
			pages_free(p);
			return NULL;
		}
		p->nr = i + 1;
	}
	return p;
}

/* Grant the pages, and tell the backend of them. */
static int pages_share(struct xnem_region *region, const struct xnem_ctx_pages *p)
{
	struct xnem_request req = { .op = cpu_to_le16(XNEM_OP_OPEN_CONTEXT) };
	int err;
	u32 i;

	region->cpage = true;
	region->access = XNEM_ACCESS_READ | XNEM_ACCESS_WRITE;
	/* Without an inbox the control page is between process and kernel. */
	region->one.first = p->slots ? PAGE_CONTROL : PAGE_CPAGE;
	region->pages = kvmalloc_array(p->nr, sizeof(*region->pages), GFP_KERNEL);
	if (!region->pages)
		return -ENOMEM;
	for (i = 0; i < p->nr; i++) {
		get_page(p->page[i]);
		region->pages[i] = p->page[i];
	}
	region->nr_pages = p->nr;
	err = xnem_grant(region);
	if (err)
		return err;

	req.u.open.cpage_ref = cpu_to_le32(region->refs[PAGE_CPAGE - region->one.first]);
	if (p->slots) {
		req.u.open.flags = cpu_to_le32(XNEM_OPEN_INBOX);
		req.u.open.control_ref = cpu_to_le32(region->refs[PAGE_CONTROL]);
		req.u.open.inbox_order = cpu_to_le32(XNEM_FE_INBOX_ORDER);
		for (i = 0; i < 1u << XNEM_FE_INBOX_ORDER; i++)
			req.u.open.inbox_ref[i] = cpu_to_le32(region->refs[PAGE_INBOX + i]);
	}
	return xnem_region_post(region, &req, false);
}

/* Readers do not lock: the pages are whole before they are seen. */
static void pages_publish(struct xnem_ctx *ctx, struct xnem_ctx_pages *p,
			  struct xnem_region *region)
{
	spin_lock_irq(&ctx->fe->lock);
	smp_store_release(&ctx->pages, p); /* pairs with xnem_pages_inbox_news() and others */
	/* Else the backend went away meanwhile. */
	if (region->state == XNEM_REGION_LIVE) {
		ctx->cpage = region;
		WRITE_ONCE(ctx->inbox_live, p->slots);
		xnem_ctx_wants(ctx);
	}
	spin_unlock_irq(&ctx->fe->lock);
}

void xnem_pages_ended(struct xnem_region *region)
{
	struct xnem_ctx *ctx = region->ctx;

	if (ctx->cpage != region)
		return;
	/* A next backend does not know it: nothing more is to be put there. */
	ctx->cpage = NULL;
	WRITE_ONCE(ctx->inbox_live, false);
	xnem_ctx_wants(ctx);
	xnem_ctx_wake(ctx);
}

/* Pieces could be given up, but nobody has a use for them. */
static int no_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static const struct vm_operations_struct pages_vm_ops = {
	.may_split = no_split,
};

/* May this context have pages, and how many? They are its own then: it gets no second ones. */
static int pages_claim(struct xnem_ctx *ctx, unsigned long bytes, u32 *nr)
{
	struct xnem_fe *fe = ctx->fe;
	int err;

	spin_lock_irq(&fe->lock);
	err = xnem_queue_state(fe);
	*nr = nr_offered(fe);
	if (!err && !*nr)
		err = -EOPNOTSUPP;
	if (!err && ctx->had_cpage)
		err = -EBUSY;
	if (!err && bytes != PAGE_ALIGN(*nr * XNEM_PAGE_SIZE))
		err = -EINVAL;
	if (!err)
		ctx->had_cpage = true;
	spin_unlock_irq(&fe->lock);
	return err;
}

int xnem_pages_mmap(struct xnem_ctx *ctx, struct vm_area_struct *vma)
{
	struct xnem_region *region;
	struct xnem_ctx_pages *p;
	u32 nr;
	int err;

	err = pages_claim(ctx, vma->vm_end - vma->vm_start, &nr);
	if (err)
		return err;
	p = pages_alloc(nr);
	if (!p) {
		err = -ENOMEM;
		goto unclaim;
	}
	/* The backend writes them as long as the context lives: not for a child. */
	xnem_vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND, VM_MAYEXEC);
	vma->vm_ops = &pages_vm_ops;
	/* First, as it is undone when this call fails; the mapping has its own references. */
	err = vm_map_pages(vma, p->page, p->nr);
	if (err)
		goto free;
	region = xnem_region_new(ctx, p->slots ? nr : 1);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto free;
	}
	err = pages_share(region, p);
	if (err) {
		xnem_region_fail(region, err);
		goto free;
	}
	pages_publish(ctx, p, region);
	xnem_region_put(region);
	return 0;

free:
	pages_free(p);
unclaim:
	/* Interrupted, the backend may know of some all the same. */
	if (err != -EINTR)
		ctx->had_cpage = false;
	return err;
}
