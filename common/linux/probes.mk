# SPDX-License-Identifier: GPL-2.0
#
# Kernel differences by compile probe: distributions backport interfaces
# without changing the version, so a version says nothing.
#
# Each question has two or more answers, a small file each in probes/: the one
# that compiles against this kernel's headers defines its macro for
# xnem_compat.h.  None or several is an error.  Included by a module's Kbuild,
# with xnem-probes set to this directory/probes.

# "make clean" reads no configuration, so nothing would compile, and has no use
# for the answers.
ifdef CONFIG_MODULES

xnem-try = $(shell $(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) \
	$(KBUILD_CFLAGS) $(KBUILD_CFLAGS_MODULE) -DKBUILD_MODNAME='"xnem_probe"' \
	-Werror=incompatible-pointer-types -Werror=implicit-function-declaration \
	-Werror=int-conversion -c -x c -o /dev/null $(xnem-probes)/$(1).c \
	>/dev/null 2>&1 && echo -DXNEM_HAVE_$(2))

# $(call xnem-ask,question,answer-file:MACRO ...)
xnem-ask = $(strip $(foreach a,$(2),$(call xnem-try,$(firstword $(subst :, ,$(a))),$(lastword $(subst :, ,$(a))))))
xnem-one = $(if $(filter 1,$(words $(2))),$(2),$(error xnem: this kernel's $(1) is not known: $(if $(2),several of the,none of the) probes in common/linux/probes match))

xnem-answer-remove := $(call xnem-ask,remove,remove_void:REMOVE_VOID remove_int:REMOVE_INT)
xnem-answer-setup := $(call xnem-ask,setup,setup_ring:SETUP_RING grant_ring:GRANT_RING)
xnem-answer-bind := $(call xnem-ask,bind,bind_dev:BIND_DEV bind_domid:BIND_DOMID)
xnem-answer-pin := $(call xnem-ask,pin,pin_pages:PIN_PAGES pin_pages_vmas:PIN_PAGES_VMAS)
xnem-answer-vmflags := $(call xnem-ask,vmflags,vm_flags_set:VM_FLAGS_SET vm_flags_plain:VM_FLAGS_PLAIN)
xnem-answer-eventfd := $(call xnem-ask,eventfd,eventfd_one:EVENTFD_ONE eventfd_n:EVENTFD_N)
xnem-answer-end := $(call xnem-ask,end,end_ref:END_REF end_ref_ro:END_REF_RO)
# A member that is there or not: its probe may fail, so one that is like it but
# for the member shows that failing means what it says.
$(if $(call xnem-ask,base,base:BASE),,$(error xnem: nothing compiles against this kernel's headers; is it built with CONFIG_XEN, and is its compiler installed?))

xnem-compat-flags := \
	$(call xnem-one,xenbus_driver.remove,$(xnem-answer-remove)) \
	$(call xnem-one,way to grant a ring,$(xnem-answer-setup)) \
	$(call xnem-one,bind_interdomain_evtchn_to_irqhandler_lateeoi,$(xnem-answer-bind)) \
	$(call xnem-one,pin_user_pages,$(xnem-answer-pin)) \
	$(call xnem-one,gnttab_end_foreign_access_ref,$(xnem-answer-end)) \
	$(call xnem-one,way to set vm_flags,$(xnem-answer-vmflags)) \
	$(call xnem-one,eventfd_signal,$(xnem-answer-eventfd)) \
	$(call xnem-ask,essential,essential_flag:NOT_ESSENTIAL)

endif
