// SPDX-License-Identifier: GPL-2.0
/*
 * A region's memory: pinned, charged, granted, and given back.
 */
#include <linux/backing-dev.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "frontend.h"

/* Bytes pinned in one go. */
#define PIN_CHUNK (16ul << 20)

/*
 * How memory of @vma must be pinned for @access, or why it cannot be.
 *
 * Before Linux 6.2 a read-only pin of an untouched page of a private mapping
 * pins the zero page, and what the process writes later is not seen: a source
 * in a writable private mapping is pinned for writing too (and granted
 * read-only all the same).
 */
static int vma_pin_flags(const struct vm_area_struct *vma, u32 access, unsigned int *flags)
{
	bool shared = vma->vm_flags & VM_MAYSHARE;

	if (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP))
		return -EOPNOTSUPP; /* a device, or pages that another guest granted */
	if ((access & XNEM_ACCESS_WRITE) && !(vma->vm_flags & VM_WRITE))
		return -EFAULT;
	if (!(vma->vm_flags & VM_READ))
		return -EFAULT;
	/*
	 * A file that is written back could be cleaned while a guest writes
	 * to it: newer kernels refuse the pin, older ones lose data.
	 */
	if ((access & XNEM_ACCESS_WRITE) && shared && vma->vm_file &&
	    mapping_can_writeback(vma->vm_file->f_mapping))
		return -EOPNOTSUPP;

	*flags = FOLL_LONGTERM;
	if ((access & XNEM_ACCESS_WRITE) || (!shared && (vma->vm_flags & VM_WRITE)))
		*flags |= FOLL_WRITE;
	return 0;
}

static bool page_unfit(struct page *page)
{
	if (is_zone_device_page(page))
		return true;
	/*
	 * PG_foreign shares its bit with flags of page cache and swap cache;
	 * a grant mapped by gntdev belongs to neither.
	 */
	return !PageCompound(page) && !PageAnon(page) && !page->mapping && PageForeign(page);
}

static int charge(struct xnem_region *region, u32 pages, bool *limit)
{
	struct mm_struct *mm = region->ctx->mm;
	u64 max = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(pages, &mm->pinned_vm);

	if (now > max && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		xnem_stat_inc(region->ctx->fe, error_memlock);
		*limit = true;
		return -ENOMEM;
	}
	region->charged = pages;
	return 0;
}

/*
 * Pin what one mapping has of [@at, @end), or some of it.  @stack: there is
 * none yet, but a stack would grow there.
 */
static int pin_some(struct xnem_region *region, unsigned long at, unsigned long end, bool *stack)
{
	struct vm_area_struct *vma = find_vma(current->mm, at);
	unsigned int flags;
	long got;
	int err;

	if (!vma || vma->vm_start > at) {
		*stack = vma && (vma->vm_flags & VM_GROWSDOWN);
		return -EFAULT;
	}
	err = vma_pin_flags(vma, region->access, &flags);
	if (err)
		return err;
	/* What such a mapping shows can change without anything being unmapped. */
	if (!(vma->vm_flags & (VM_MAYSHARE | VM_WRITE)))
		region->transient = true;
	end = min(end, vma->vm_end);
	got = xnem_pin_user_pages(at, (end - at) >> PAGE_SHIFT, flags,
				  region->pages + region->nr_pages);
	if (got <= 0)
		return got ? got : -EFAULT;
	/* Fewer than asked for: the caller goes on from there, or learns why not. */
	while (got--)
		if (page_unfit(region->pages[region->nr_pages++]))
			err = -EOPNOTSUPP;
	return err;
}

static int pin_piece(struct xnem_region *region, const struct xnem_piece *piece)
{
	unsigned long start = piece->addr & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(piece->addr + piece->length);
	unsigned long at = start, grown = 0;
	bool stack;
	int err;
	u8 byte;

	while (at < end) {
		stack = false;
		mmap_read_lock(current->mm);
		err = pin_some(region, at, min(end, at + PIN_CHUNK), &stack);
		mmap_read_unlock(current->mm);
		/* As it would for a system call that writes there. */
		if (err == -EFAULT && stack && grown != at && !get_user(byte, (u8 __user *)at)) {
			grown = at;
			continue;
		}
		if (err)
			return err;
		at = start + ((unsigned long)(region->nr_pages - piece->page) << PAGE_SHIFT);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int xnem_pin(struct xnem_region *region, bool *limit)
{
	struct xnem_fe *fe = region->ctx->fe;
	const struct xnem_piece *last = &region->pieces[region->nr_pieces - 1];
	u32 nr, i;
	int err;

	nr = last->page + DIV_ROUND_UP(region->nr_xen - last->xen + last->first, XEN_PER_PAGE);
	err = charge(region, nr, limit);
	if (err)
		return err;
	region->transient = false;
	region->pages = kvmalloc_array(nr, sizeof(*region->pages), GFP_KERNEL | __GFP_NOWARN);
	if (!region->pages) {
		xnem_unpin(region);
		return -ENOMEM;
	}
	for (i = 0; i < region->nr_pieces && !err; i++)
		err = pin_piece(region, &region->pieces[i]);

	xnem_stat_add(fe, pinned, region->nr_pages);
	atomic64_add((u64)region->nr_pages * XEN_PER_PAGE, &region->ctx->pinned);
	if (err) {
		xnem_stat_inc(fe, error_pin);
		xnem_unpin(region);
		return err == -ENOMEM || err == -EOPNOTSUPP || err == -EINTR ? err : -EFAULT;
	}
	return 0;
}

/* In steps: there may be millions. */
static void unpin_pages(struct xnem_region *region)
{
	u32 done = 0, nr;

	while (done < region->nr_pages) {
		nr = min_t(u32, region->nr_pages - done, PIN_CHUNK >> PAGE_SHIFT);
		unpin_user_pages_dirty_lock(region->pages + done, nr,
					    region->access & XNEM_ACCESS_WRITE);
		done += nr;
		cond_resched();
	}
}

void xnem_unpin(struct xnem_region *region)
{
	struct xnem_ctx *ctx = region->ctx;
	u32 i;

	if (region->cpage) {
		/* The context has them, and a process may have them mapped. */
		for (i = 0; i < region->nr_pages; i++)
			put_page(region->pages[i]);
	} else if (region->nr_pages) {
		unpin_pages(region);
		xnem_stat_add(ctx->fe, unpinned, region->nr_pages);
		atomic64_sub((u64)region->nr_pages * XEN_PER_PAGE, &ctx->pinned);
	}
	kvfree(region->pages);
	region->pages = NULL;
	region->nr_pages = 0;
	atomic64_sub(region->charged, &ctx->mm->pinned_vm);
	region->charged = 0;
}

/* The piece that has Xen page @i. */
static const struct xnem_piece *piece_of(const struct xnem_region *region, u32 i)
{
	u32 low = 0, high = region->nr_pieces, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (region->pieces[mid].xen <= i)
			low = mid;
		else
			high = mid;
	}
	return &region->pieces[low];
}

/* Where Xen page @i of a region is: a page, and which Xen page of it. */
static struct page *locate(const struct xnem_region *region, u32 i, u32 *within)
{
	const struct xnem_piece *piece = piece_of(region, i);
	u32 at = piece->first + (i - piece->xen);

	*within = at % XEN_PER_PAGE;
	return region->pages[piece->page + at / XEN_PER_PAGE];
}

struct page *xnem_region_page(const struct xnem_region *region, u32 i)
{
	u32 within;

	return locate(region, i, &within);
}

unsigned long xnem_region_gfn(const struct xnem_region *region, u32 i)
{
	u32 within;
	struct page *page = locate(region, i, &within);

	return xen_page_to_gfn(page) + within;
}

int xnem_grant(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;
	bool readonly = !(region->access & XNEM_ACCESS_WRITE);
	grant_ref_t head;
	u32 i;

	region->refs =
		kvmalloc_array(region->nr_refs, sizeof(*region->refs), GFP_KERNEL | __GFP_NOWARN);
	if (!region->refs)
		return -ENOMEM;
	/* All at once: the table's free list is one global lock. */
	if (gnttab_alloc_grant_references(region->nr_refs, &head)) {
		xnem_stat_inc(fe, error_grants);
		return -ENOSPC;
	}
	for (i = 0; i < region->nr_refs; i++) {
		int ref = gnttab_claim_grant_reference(&head);

		/* Cannot fail: as many were allocated as are claimed. */
		gnttab_grant_foreign_access_ref(ref, fe->backend, xnem_region_gfn(region, i),
						readonly);
		region->refs[i] = ref;
	}
	region->nr_granted = region->nr_refs;
	xnem_stat_add(fe, granted, region->nr_granted);
	return 0;
}

u32 xnem_revoke(struct xnem_region *region)
{
	u32 left = 0, revoked = 0, i;

	for (i = 0; i < region->nr_granted; i++) {
		if (!region->refs[i])
			continue;
		/* Gives the reference back to the table as well. */
		if (gnttab_try_end_foreign_access(region->refs[i])) {
			region->refs[i] = 0;
			revoked++;
		} else {
			left++;
		}
	}
	xnem_stat_add(region->ctx->fe, revoked, revoked);
	return left;
}
