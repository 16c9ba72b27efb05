/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one place where kernels differ; probes.mk finds out how.
 */
#ifndef XNEM_COMPAT_H
#define XNEM_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <xen/events.h>
#include <xen/grant_table.h>
#include <xen/page.h>
#include <xen/xenbus.h>

/*
 * Kernels that zero what stands on the stack (INIT_STACK_ALL_ZERO) need not for
 * this variable.
 */
#if __has_attribute(__uninitialized__)
#define XNEM_UNINITIALIZED __attribute__((__uninitialized__))
#else
#define XNEM_UNINITIALIZED
#endif

/* xenbus_driver.remove: int until 6.3, and until stable 6.1.162. */
#if defined(XNEM_HAVE_REMOVE_VOID)
#define XNEM_REMOVE_TYPE void
#define XNEM_REMOVE_RETURN
#else
#define XNEM_REMOVE_TYPE int
#define XNEM_REMOVE_RETURN 0
#endif

/* Not having its device must not hold up a guest's boot (5.19 on). */
#if defined(XNEM_HAVE_NOT_ESSENTIAL)
#define XNEM_NOT_ESSENTIAL .not_essential = true
#else
/* An initializer that says nothing: the bus fills this field in. */
#define XNEM_NOT_ESSENTIAL .driver = {}
#endif

/*
 * Allocate @nr zeroed Xen pages and grant them to the other end.  May sleep.
 * Returns 0 or a negative errno; on error nothing is left.
 */
static inline int xnem_setup_ring(struct xenbus_device *dev, void **vaddr, unsigned int nr,
				  grant_ref_t *refs)
{
#if defined(XNEM_HAVE_SETUP_RING)
	return xenbus_setup_ring(dev, GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, vaddr, nr, refs);
#else
	int err;

	*vaddr = alloc_pages_exact(nr * XEN_PAGE_SIZE,
				   GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY);
	if (!*vaddr)
		return -ENOMEM;
	err = xenbus_grant_ring(dev, *vaddr, nr, refs);
	if (err) {
		free_pages_exact(*vaddr, nr * XEN_PAGE_SIZE);
		*vaddr = NULL;
		return err;
	}
	return 0;
#endif
}

/*
 * Leave a reference that is still in use to the kernel's own retries; it keeps
 * @page (a reference, not a pin) until then.  Not with NULL for the page: the
 * kernel would look for it by the grant's frame, and finds another one where
 * pages are larger than Xen's.
 */
static inline void xnem_defer_revoke(grant_ref_t ref, struct page *page)
{
	get_page(page);
#if defined(XNEM_HAVE_SETUP_RING)
	gnttab_end_foreign_access(ref, page);
#else
	/* Frees an address: the page's reference goes with it. */
	gnttab_end_foreign_access(ref, 0, (unsigned long)page_address(page));
#endif
}

/*
 * Revoke and free what xnem_setup_ring() made; pages in use are freed later.
 * True: there was one.
 */
static inline bool xnem_teardown_ring(void **vaddr, unsigned int nr, grant_ref_t *refs)
{
	bool in_use = false;
	unsigned int i;

	if (!*vaddr)
		return false;
	for (i = 0; i < nr; i++) {
		if (!gnttab_try_end_foreign_access(refs[i])) {
			xnem_defer_revoke(refs[i], virt_to_page(*vaddr + i * XEN_PAGE_SIZE));
			in_use = true;
		}
#if defined(XNEM_HAVE_SETUP_RING)
		refs[i] = INVALID_GRANT_REF;
#endif
	}
	/* A page in use has another reference now. */
#if defined(XNEM_HAVE_SETUP_RING)
	xenbus_teardown_ring(vaddr, nr, refs);
#else
	free_pages_exact(*vaddr, nr * XEN_PAGE_SIZE);
#endif
	*vaddr = NULL;
	return in_use;
}

/* Revoke, and keep the reference; false when it is in use, which the kernel says in the log. */
static inline bool xnem_end_access(grant_ref_t ref)
{
#if defined(XNEM_HAVE_END_REF)
	return gnttab_end_foreign_access_ref(ref);
#else
	return gnttab_end_foreign_access_ref(ref, 0);
#endif
}

static inline int xnem_bind_interdomain(struct xenbus_device *dev, evtchn_port_t port,
					irq_handler_t handler, const char *name, void *arg)
{
#if defined(XNEM_HAVE_BIND_DEV)
	return bind_interdomain_evtchn_to_irqhandler_lateeoi(dev, port, handler, 0, name, arg);
#else
	return bind_interdomain_evtchn_to_irqhandler_lateeoi(dev->otherend_id, port, handler, 0,
							     name, arg);
#endif
}

static inline void xnem_vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				     unsigned long clear)
{
#if defined(XNEM_HAVE_VM_FLAGS_SET)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
#endif
}

/* From any context. */
static inline void xnem_eventfd_signal(struct eventfd_ctx *eventfd)
{
#if defined(XNEM_HAVE_EVENTFD_ONE)
	eventfd_signal(eventfd);
#else
	eventfd_signal(eventfd, 1);
#endif
}

/* Pin @nr pages of the current mm from @addr; mmap lock held for reading. */
static inline long xnem_pin_user_pages(unsigned long addr, unsigned long nr, unsigned int flags,
				       struct page **pages)
{
#if defined(XNEM_HAVE_PIN_PAGES_VMAS)
	return pin_user_pages(addr, nr, flags, pages, NULL);
#else
	return pin_user_pages(addr, nr, flags, pages);
#endif
}

#endif /* XNEM_COMPAT_H */
