# SPDX-License-Identifier: GPL-2.0
# Everything starts here: `make help`. GNU make. All output goes to build/.

TOP := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BUILD ?= $(TOP)/build
override BUILD := $(abspath $(BUILD))

# Kernel the modules are for: the newest one with headers here, which need not be the
# one that runs.
KVER ?= $(notdir $(patsubst %/build,%,$(shell ls -d /lib/modules/*-amd64/build 2>/dev/null | sort -V | tail -n 1)))
KDIR ?= /lib/modules/$(KVER)/build

# Where things are installed. DESTDIR goes before all of it.
prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
libdir ?= $(prefix)/lib
mandir ?= $(prefix)/share/man
sysconfdir ?= /etc
udevdir ?= $(prefix)/lib/udev/rules.d
sysusersdir ?= $(prefix)/lib/sysusers.d
modulesloaddir ?= $(prefix)/share/doc/xnem
unitdir ?= $(prefix)/lib/systemd/system
limitsdir ?= $(sysconfdir)/security/limits.d
moddir ?= /lib/modules/$(KVER)/updates

# For demo, shell, check, bench: MODE=timed|counted GUESTS=N BACKEND=drv|dom0 TYPE=g1=pvh,...
HOST_OPTIONS = $(if $(MODE),--mode $(MODE)) $(if $(GUESTS),--guests $(GUESTS)) \
	$(if $(BACKEND),--backend $(BACKEND)) $(if $(TYPE),--type $(TYPE)) $(HOSTARGS)
OVERLAYS = --dom0-overlay $(STAGE)/dom0 --domU-overlay $(STAGE)/domU

# MPICH takes some 15 minutes to build, once: MPI=0 leaves out what needs it.
NO_MPI = $(filter 0,$(MPI))
MPI_OPTIONS = $(if $(NO_MPI),--set MPI=0,--domU-overlay $(BUILD)/stage-mpi)
# Scenarios that are named want it only if they are about it.
WITH_MPI = $(if $(SCENARIOS),$(if $(filter mpi,$(SCENARIOS)),stage-mpi),stage-mpi)

STAGE ?= $(BUILD)/stage
SCRIPTS := xnem-attach xnem-detach xnem-list xnemd
# For /usr/src, as DKMS wants it.
DKMS_DIR = $(DESTDIR)/usr/src/xnem-$(VERSION)
VERSION = $(shell sed -n 's/^.define XNEM_VERSION "\(.*\)"/\1/p' $(TOP)/libxnem/include/xnem.h)
MODULES := $(patsubst $(TOP)/%/Kbuild,%,$(wildcard $(TOP)/frontend/Kbuild $(TOP)/backend/Kbuild))
KBUILD_DIR = $(BUILD)/modules/$(KVER)
MODULE_FILES = $(foreach m,$(MODULES),$(KBUILD_DIR)/$(m)/xnem-$(m).ko)

ifneq ($(V),1)
Q := @
endif
say = @printf '%s\n' 'xnem: $(1)'
MAKE_QUIET = $(MAKE) --no-print-directory

# One line of this file is not a step of a parallel build, what it calls is.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

##@ To see it run: a Xen host inside QEMU; no Xen needed, and no root after make deps
.PHONY: demo shell check check-native check-build check-host check-mpich soak bench

demo: stage ## a file from guest to guest, and MPI (NetPIPE), over XNEM and over Xen's network (FILE=path, MODE=timed|counted, MPI=0)
	$(Q)$(if $(NO_MPI),,$(TOP)/bench/netpipe/run --announce)
	$(Q)STAGE="$(STAGE)" RESULTS="$(BUILD)/results/demo" $(TOP)/bench/demo/run $(if $(FILE),--file "$(FILE)") $(HOST_OPTIONS)
	$(Q)$(if $(NO_MPI),,BUILD="$(BUILD)" $(TOP)/bench/netpipe/run --brief --out "$(BUILD)/results/demo")

shell: stage $(if $(filter 1,$(MPI)),stage-mpi) ## a prompt in dom0, guests running, devices attached (CMD="..." runs one command, MPI=1: MPICH in the guests)
	$(Q)$(TOP)/testbed/host shell $(OVERLAYS) $(if $(filter 1,$(MPI)),$(MPI_OPTIONS)) $(if $(CMD),--cmd "$$XNEM_CMD") $(HOST_OPTIONS)
# So that quotes in CMD reach the guest's shell as they are.
export XNEM_CMD = $(value CMD)

ifeq ($(DEBUG),1)
check: deps
	$(Q)$(TOP)/tests/check --build "$(BUILD)" build debug $(addprefix --scenario ,$(SCENARIOS)) -- $(HOST_OPTIONS)
else
check: deps ## all tests; ends with one line "N passed, N failed" (MPI=0: without MPI's, which want MPICH; DEBUG=1: on debug kernels)
	$(Q)$(if $(NO_MPI),,$(TOP)/lmt_xnem/build --print-prefix >/dev/null 2>&1 || printf '%s\n' \
		'xnem: MPICH is built first: some 15 minutes on two CPUs, once; MPI=0 leaves MPI out')
	$(Q)$(if $(NO_MPI),,$(MAKE_QUIET) stage-mpi)
	$(Q)$(TOP)/tests/check --build "$(BUILD)" native build host -- \
		$(if $(NO_MPI),--set MPI=0,--domU-overlay $(BUILD)/stage-mpi)
endif

check-native: deps ## tests that need no emulated host
	$(Q)$(TOP)/tests/check --build "$(BUILD)" native

check-build: deps ## library and modules build without warnings
	$(Q)$(TOP)/tests/check --build "$(BUILD)" build

check-host: deps $(if $(NO_MPI),,$(WITH_MPI)) ## scenarios on the emulated host (SCENARIOS="name ..." for some)
	$(Q)$(TOP)/tests/check --build "$(BUILD)" build host $(addprefix --scenario ,$(SCENARIOS)) -- $(if $(WITH_MPI),$(MPI_OPTIONS)) $(HOST_OPTIONS)

# Without SEED another one each time; it is printed.
SOAK_SEED := $(or $(SEED),$(shell date +%s))
SOAK_ROUNDS := $(or $(ROUNDS),200)
soak: stage ## faults at random moments in the middle of traffic (ROUNDS=200 SEED=N; ROUND=N: where to go on)
	$(Q)$(TOP)/testbed/host run --timeout $$((600 + 180 * $(SOAK_ROUNDS))) --results "$(BUILD)/results/soak" $(OVERLAYS) \
		--set SEED=$(SOAK_SEED) --set ROUNDS=$(SOAK_ROUNDS) --set PAUSE=60 $(if $(ROUND),--set ROUND=$(ROUND)) \
		$(HOST_OPTIONS) $(TOP)/tests/scenarios/soak.sh

# In a boot of its own: two CPUs for the guest with the ranks, and an hour.
check-mpich: stage stage-mpi ## MPICH's own tests with XNEM and without it (an hour; SUITE=name: those with it in their names)
	$(Q)$(TOP)/lmt_xnem/test/suite/build "$(BUILD)/stage-mpich" all
	$(Q)$(TOP)/testbed/host run --timeout 10000 --results "$(BUILD)/results/check-mpich" $(OVERLAYS) \
		--domU-overlay "$(BUILD)/stage-mpi" --domU-overlay "$(BUILD)/stage-mpich" \
		$(if $(SUITE),--set SUITE_ONLY=$(SUITE)) $(HOSTARGS) $(TOP)/lmt_xnem/test/suite/mpich.sh

bench: ## run a measurement (BENCH=name; without it, says which there are)
	$(Q)$(TOP)/bench/run $(BENCH)

##@ To use it on a Xen host
.PHONY: modules lib mpich install install-modules dkms-tree uninstall uninstall-modules

lib: ## library and programs
	$(call say,library and programs)
	$(Q)$(MAKE_QUIET) -C $(TOP)/libxnem O="$(BUILD)/libxnem" all

mpich: ## MPICH with XNEM, from Debian's source (some 15 minutes, once); prints where it is
	$(Q)$(TOP)/testbed/prepare $(TOP)/lmt_xnem/packages
	$(Q)$(TOP)/lmt_xnem/build

# Without BTF (CONFIG_...=): that would want the kernel's own vmlinux.
# Kbuild takes its time to find out that there is nothing to do (it asks the compiler about
# this kernel first), so it is asked only after a change.
modules: kernel-headers kbuild-tree ## the kernel modules (KVER=release, KDIR=headers)
	$(Q)for m in $(MODULES); do \
		ko="$(KBUILD_DIR)/$$m/xnem-$$m.ko"; \
		[ ! -e "$$ko" ] || [ -n "$$(find $(TOP)/$$m $(TOP)/common $(TOP)/include $(TOP)/Makefile \
			"$(KDIR)/.config" "$(KDIR)/Module.symvers" -newer "$$ko" | head -n 1)" ] || continue; \
		printf 'xnem: module xnem-%s for Linux %s\n' "$$m" "$(KVER)"; \
		rm -f "$$ko"; \
		$(MAKE_QUIET) -C "$(KDIR)" M="$(KBUILD_DIR)/$$m" $(if $(V),V=$(V)) CONFIG_DEBUG_INFO_BTF_MODULES= modules || exit; \
	done

install: lib ## library, programs, scripts, man pages, udev rule (DESTDIR= prefix=)
	$(Q)$(MAKE_QUIET) install-files
	$(if $(DESTDIR),,$(Q)ldconfig)
	$(call say,installed below $(DESTDIR)$(prefix); the modules: make install-modules)

install-modules: modules ## modules for KVER, with depmod
	$(Q)install -d "$(DESTDIR)$(moddir)"
	$(Q)install -m 644 $(MODULE_FILES) "$(DESTDIR)$(moddir)"
	$(if $(DESTDIR),,$(Q)depmod $(KVER))

# The same folders side by side, as the modules' sources name each other that way.
dkms-tree: ## the modules' sources for DKMS, below /usr/src (DESTDIR=)
	$(Q)rm -rf "$(DKMS_DIR)"
	$(Q)install -d $(addprefix "$(DKMS_DIR)"/,frontend backend)
	$(Q)for m in frontend backend; do \
		install -m 644 $(TOP)/$$m/Kbuild $(TOP)/$$m/*.[ch] "$(DKMS_DIR)/$$m" || exit; \
	done
	$(Q)cp -r $(TOP)/common $(TOP)/include "$(DKMS_DIR)"
	$(Q)install -m 644 $(TOP)/packaging/dkms/Kbuild "$(DKMS_DIR)"
	$(Q)sed 's/@version@/$(VERSION)/' $(TOP)/packaging/dkms/dkms.conf >"$(DKMS_DIR)/dkms.conf"
	$(call say,$(DKMS_DIR); now: dkms install xnem/$(VERSION))

# What install puts somewhere is what uninstall takes away: it is installed once more, to
# a folder of its own, to see what that is.
uninstall: lib ## take away what install put there (same DESTDIR= prefix=)
	$(Q)rm -rf "$(BUILD)/uninstall"
	$(Q)$(MAKE_QUIET) install-files DESTDIR="$(BUILD)/uninstall" >/dev/null
	$(Q)cd "$(BUILD)/uninstall" && find . ! -type d | while read -r f; do rm -f "$(DESTDIR)/$${f#./}"; done
	$(Q)cd "$(BUILD)/uninstall" && find . -depth -type d -name xnem | while read -r d; do \
		rmdir "$(DESTDIR)/$${d#./}" 2>/dev/null || :; done
	$(Q)rm -rf "$(BUILD)/uninstall"

uninstall-modules: ## take away the modules for KVER
	$(Q)rm -f $(foreach m,frontend backend,"$(DESTDIR)$(moddir)/xnem-$(m).ko")
	$(if $(DESTDIR),,$(Q)depmod $(KVER))

##@ To change it
.PHONY: stage stage-mpi deps lint fmt-check fmt sparse clean distclean help

stage: deps modules lib ## what goes into the emulated host's dom0 and guests: build/stage
	$(call say,staging)
	$(Q)rm -rf "$(STAGE)"
	$(Q)install -d "$(STAGE)"/domU/usr/bin "$(STAGE)"/domU/usr/sbin "$(STAGE)"/domU/usr/lib/x86_64-linux-gnu "$(STAGE)"/domU/lib/modules/xnem \
		"$(STAGE)"/dom0/usr/sbin "$(STAGE)"/dom0/usr/lib/xnem "$(STAGE)"/dom0/lib/modules/xnem
	$(Q)install -m 644 $(MODULE_FILES) "$(STAGE)/domU/lib/modules/xnem"
	$(Q)install -m 644 $(MODULE_FILES) "$(STAGE)/dom0/lib/modules/xnem"
	$(Q)find "$(BUILD)/libxnem" -maxdepth 1 -type f -perm -u+x ! -name '*.so*' -exec cp -t "$(STAGE)/domU/usr/bin" {} +
	$(Q)for t in frozen hostile; do \
		$(MAKE_QUIET) -C $(TOP)/tests/$$t O="$(BUILD)/tests/$$t" all && \
		cp "$(BUILD)/tests/$$t"/xnem-$$t* "$(STAGE)/domU/usr/bin" || exit; \
	done
	$(Q)cp -P "$(BUILD)"/libxnem/libxnem.so* "$(STAGE)/domU/usr/lib/x86_64-linux-gnu"
	$(Q)[ ! -d $(TOP)/tests/host ] || find $(TOP)/tests/host -maxdepth 1 -type f -perm -u+x ! -name '*-native' -exec cp -t "$(STAGE)/domU/usr/bin" {} +
	$(Q)cp $(addprefix $(TOP)/xenstore-scripts/,$(SCRIPTS)) "$(STAGE)/dom0/usr/sbin"
	$(Q)for d in dom0 domU; do cp $(TOP)/packaging/xnem-unload "$(STAGE)/$$d/usr/sbin" || exit; done
	$(Q)install -d "$(STAGE)/dom0/usr/bin"
	$(Q)cp $(TOP)/tests/host/xnem-leakcheck "$(STAGE)/dom0/usr/bin"
	$(Q)cp $(TOP)/xenstore-scripts/xnem-common.sh "$(STAGE)/dom0/usr/lib/xnem"
	$(Q)[ ! -d $(TOP)/tests/scenarios/lib ] || { install -d "$(STAGE)/dom0/usr/lib/xnem-tests" && \
		cp $(TOP)/tests/scenarios/lib/*.sh "$(STAGE)/dom0/usr/lib/xnem-tests"; }

stage-mpi: ## what guests need to run MPI jobs: build/stage-mpi
	$(Q)$(TOP)/testbed/prepare $(TOP)/testbed/packages $(TOP)/lmt_xnem/packages
	$(Q)prefix=$$($(TOP)/lmt_xnem/build) && $(TOP)/testbed/stage-mpi "$(BUILD)/stage-mpi" "$$prefix" \
		$(TOP)/bench/halo.c $(TOP)/tests/host/mpi-*.c $(TOP)/lmt_xnem/test/xnem-mpi-test.c
	$(Q)$(TOP)/lmt_xnem/test/suite/build "$(BUILD)/stage-mpi" \
		$$(sed 's/#.*//' $(TOP)/lmt_xnem/test/suite/two-guests)

deps: ## install the Debian packages that are missing (root), or print the apt line
	$(Q)$(TOP)/testbed/prepare $(TOP)/testbed/packages $(TOP)/packaging/debian-packages

lint: ## licence lines, shellcheck, man pages, format of C files
	$(Q)$(TOP)/tests/check --build "$(BUILD)" lint

C_FILES = $(shell cd $(TOP) && git ls-files '*.c' '*.h')
fmt-check: ## which C files differ from .clang-format, and how
	$(Q)cd $(TOP) && clang-format --dry-run --Werror $(C_FILES)

fmt: ## format the C files named in FILES=
	$(Q)[ -n "$(FILES)" ] || { echo 'fmt: which FILES=?' >&2; exit 1; }
	$(Q)clang-format -i $(FILES)

sparse: kernel-headers kbuild-tree ## the modules through sparse: endianness, address spaces
	$(Q)for m in $(MODULES); do \
		$(MAKE_QUIET) -C "$(KDIR)" M="$(KBUILD_DIR)/$$m" C=2 CF=-D__CHECK_ENDIAN__ modules || exit; \
	done

clean: ## remove build/
	$(Q)rm -rf "$(BUILD)"

distclean: clean ## also the emulated host's images, which are kept outside the tree
	$(Q)rm -rf "$${XNEM_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/xnem}"

help: ## this list
	@awk -F ':.*## ' \
		'/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(TOP)/Makefile
	@printf '\nV=1 shows commands. README.md and CONTRIBUTING.md tell more.\n'

# -- what the above is made of

.PHONY: kernel-headers kbuild-tree install-files

kernel-headers:
	$(Q)[ -n "$(KVER)" ] && [ -e "$(KDIR)/Makefile" ] || { \
		echo "no kernel headers in $(KDIR): make deps installs them, or set KVER= or KDIR=" >&2; exit 1; }
	$(Q)[ -n "$(MODULES)" ] || { echo "no Kbuild in frontend/ or backend/" >&2; exit 1; }

# Kbuild writes beside the sources, so it is shown a tree of links. Links of files that
# are gone have to go too.
kbuild-tree:
	$(Q)for m in $(MODULES); do \
		mkdir -p "$(KBUILD_DIR)/$$m" && find "$(KBUILD_DIR)/$$m" -type l -delete && \
		ln -s $(TOP)/$$m/Kbuild $(TOP)/$$m/*.[ch] "$(KBUILD_DIR)/$$m/" || exit; \
	done
	$(Q)ln -sfn $(TOP)/include "$(KBUILD_DIR)/include"
	$(Q)ln -sfn $(TOP)/common "$(KBUILD_DIR)/common"

install-files:
	$(Q)$(MAKE_QUIET) -C $(TOP)/libxnem O="$(BUILD)/libxnem" DESTDIR="$(DESTDIR)" prefix="$(prefix)" \
		bindir="$(bindir)" libdir="$(libdir)" mandir="$(mandir)" install
	$(Q)install -d "$(DESTDIR)$(sbindir)" "$(DESTDIR)$(prefix)/lib/xnem" "$(DESTDIR)$(mandir)/man8" \
		"$(DESTDIR)$(udevdir)" "$(DESTDIR)$(sysusersdir)" "$(DESTDIR)$(limitsdir)" "$(DESTDIR)$(modulesloaddir)"
	$(Q)for s in $(SCRIPTS); do \
		sed 's|^lib=/usr/lib/xnem/|lib=$(prefix)/lib/xnem/|' $(TOP)/xenstore-scripts/$$s >"$(DESTDIR)$(sbindir)/$$s" && \
		chmod 755 "$(DESTDIR)$(sbindir)/$$s" || exit; \
	done
	$(Q)install -m 755 $(TOP)/packaging/xnem-unload "$(DESTDIR)$(sbindir)"
	$(Q)install -m 644 $(TOP)/xenstore-scripts/xnem-common.sh "$(DESTDIR)$(prefix)/lib/xnem"
	$(Q)install -m 644 $(TOP)/docs/man/*.8 "$(DESTDIR)$(mandir)/man8"
	$(Q)install -d "$(DESTDIR)$(mandir)/man5" "$(DESTDIR)$(unitdir)" "$(DESTDIR)$(sysconfdir)/xnem"
	$(Q)install -m 644 $(TOP)/docs/man/*.5 "$(DESTDIR)$(mandir)/man5"
	$(Q)sed 's|@sbindir@|$(sbindir)|' $(TOP)/packaging/xnemd.service >"$(DESTDIR)$(unitdir)/xnemd.service"
	$(Q)chmod 644 "$(DESTDIR)$(unitdir)/xnemd.service"
	$(Q)install -m 644 $(TOP)/packaging/xnem-example.conf "$(DESTDIR)$(modulesloaddir)"
	$(Q)install -m 644 $(TOP)/packaging/60-xnem.rules "$(DESTDIR)$(udevdir)"
	$(Q)install -m 644 $(TOP)/packaging/xnem.sysusers "$(DESTDIR)$(sysusersdir)/xnem.conf"
	$(Q)install -m 644 $(TOP)/packaging/xnem.limits "$(DESTDIR)$(limitsdir)/xnem.conf"
	$(Q)install -m 644 $(TOP)/packaging/modules-load-*.conf "$(DESTDIR)$(modulesloaddir)"
