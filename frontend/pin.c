// SPDX-License-Identifier: GPL-2.0
/*
 * A region's memory: pinned, charged, granted, and given back.
 */
#include <linux/backing-dev.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "frontend.h"

/* Xen pages in a page of this kernel: 1 on x86, 4 or 16 with larger pages. */
#define XEN_PER_PAGE (PAGE_SIZE / XNEM_PAGE_SIZE)

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

int xnem_pin(struct xnem_region *region, u64 addr, bool *limit)
{
	struct xnem_fe *fe = region->ctx->fe;
	struct mm_struct *mm = current->mm;
	unsigned long start = addr & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(addr + region->length);
	unsigned long at = start;
	u32 nr = (end - start) >> PAGE_SHIFT;
	int err;

	err = charge(region, nr, limit);
	if (err)
		return err;
	region->pages = kvmalloc_array(nr, sizeof(*region->pages), GFP_KERNEL | __GFP_NOWARN);
	if (!region->pages) {
		xnem_unpin(region);
		return -ENOMEM;
	}

	mmap_read_lock(mm);
	while (at < end) {
		struct vm_area_struct *vma = find_vma(mm, at);
		unsigned int flags;
		unsigned long upto;
		long got;

		if (!vma || vma->vm_start > at) {
			err = -EFAULT;
			break;
		}
		err = vma_pin_flags(vma, region->access, &flags);
		if (err)
			break;
		upto = min(end, vma->vm_end);
		got = xnem_pin_user_pages(at, (upto - at) >> PAGE_SHIFT, flags,
					  region->pages + region->nr_pages);
		if (got <= 0) {
			err = got ? got : -EFAULT;
			break;
		}
		/* Fewer than asked for: go on from there, or learn why not. */
		while (got--)
			if (page_unfit(region->pages[region->nr_pages++]))
				err = -EOPNOTSUPP;
		if (err)
			break;
		at = start + ((unsigned long)region->nr_pages << PAGE_SHIFT);
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
	}
	mmap_read_unlock(mm);

	xnem_stat_add(fe, pinned, region->nr_pages);
	if (err) {
		xnem_stat_inc(fe, error_pin);
		xnem_unpin(region);
		return err == -ENOMEM || err == -EOPNOTSUPP || err == -EINTR ? err : -EFAULT;
	}
	return 0;
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
		unpin_user_pages_dirty_lock(region->pages, region->nr_pages,
					    region->access & XNEM_ACCESS_WRITE);
		xnem_stat_add(ctx->fe, unpinned, region->nr_pages);
	}
	kvfree(region->pages);
	region->pages = NULL;
	region->nr_pages = 0;
	atomic64_sub(region->charged, &ctx->mm->pinned_vm);
	region->charged = 0;
}

int xnem_grant(struct xnem_region *region)
{
	struct xnem_fe *fe = region->ctx->fe;
	bool readonly = !(region->access & XNEM_ACCESS_WRITE);
	u32 first = region->first;
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
		struct page *page = region->pages[(first + i) / XEN_PER_PAGE];
		unsigned long gfn = xen_page_to_gfn(page) + (first + i) % XEN_PER_PAGE;
		int ref = gnttab_claim_grant_reference(&head);

		/* Cannot fail: as many were allocated as are claimed. */
		gnttab_grant_foreign_access_ref(ref, fe->backend, gfn, readonly);
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
