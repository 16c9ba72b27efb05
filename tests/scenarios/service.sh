# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# about: xnemd attaches guests that are created, rebooted and restored, and all of them after the driver domain's death
# needs: guests=2 modules=yes backend=drv type=drv:pv,g1:pv memory=dom0:1100
# shellcheck disable=SC1091,SC2016,SC2154 # read in dom0; expanded over there; set by export_start
. /usr/lib/xnem-tests/copies.sh

mkdir -p /etc/xnem
for g in g1 g2; do
	printf 'guest=%s\nbackend=drv\nzone=served\n' $g >/etc/xnem/$g.conf
	xnem-detach $g
done
back_of() { xenstore-read "/local/domain/$(guest_domid drv)/backend/xnem/$(guest_domid "$1")/0/$2" 2>/dev/null; }
attached() { [ "$(back_of "$1" zone)" = served ]; }
load() { on "$1" 'insmod /lib/modules/xnem/xnem-frontend.ko' </dev/null; }
# Of a domain that is gone.
nothing_of() { ! xenstore-ls -f / | grep -q "/backend/xnem/$1[/ ]\|^/local/domain/$1/"; }
works() {
	# It tells itself why not.
	export_start region g1 root --bytes 100000 --access r --pattern 6 || return
	try "$1" g2 root pull "$cookie_region" --bytes 100000 --verify 6
	export_stop region
}

step "the service starts"
check files xnemd --check
on_bg xnemd -t 900 dom0 "exec xnemd"
for g in g1 g2; do
	check attached-$g wait_for 30 attached $g
	check connected-$g wait_for 30 device_ready $g
done
works copies
check second-refuses eval '! xnemd 2>/dev/null'

step "g1 is destroyed, and created again"
old=$(guest_domid g1)
guest_destroy g1
check destroyed-clean wait_for 15 nothing_of "$old"
guest_create g1 || die created "g1 cannot be made again"
check created-attached wait_for 15 attached g1
load g1
check created-connected wait_for 30 device_ready g1
works created-copies

step "g1 reboots"
old=$(guest_domid g1)
# The domain is to be made again by xl, which has to stay for that.
guest_destroy g1
eval "type=\$TYPE_g1 memory=\$MEMORY_g1"
event "creating g1"
# shellcheck disable=SC2154
xl create -q /etc/xen/g1.cfg "type=\"$type\"" "memory=$memory" 'on_reboot="restart"' || die reboot-create "xl create"
booted() { [ "$(xenstore-read "/local/domain/$(guest_domid g1)/data/testbed" 2>/dev/null)" = up ] && guest_answers g1; }
check reboot-first wait_for 60 booted
check reboot-attached-first wait_for 15 attached g1
old=$(guest_domid g1)
check reboot xl reboot -F g1
other() { _now=$(guest_domid g1) && [ -n "$_now" ] && [ "$_now" != "$old" ]; }
check reboot-new-domid wait_for 60 other
event "domid g1 $(guest_domid g1)"
check reboot-attached wait_for 30 attached g1
check reboot-clean wait_for 15 nothing_of "$old"
check reboot-booted wait_for 90 booted
: >/run/testbed/alive/g1
rm -f /run/testbed/may_be_lost/g1
load g1
check reboot-connected wait_for 30 device_ready g1
works reboot-copies

step "g1 is saved, and restored"
check save guest_save g1 /dev/shm/saved
check restore guest_restore g1 /dev/shm/saved
rm -f /dev/shm/saved
check restored-attached wait_for 15 attached g1
check restored-connected wait_for 30 device_ready g1
works restored-copies

step "the driver domain dies, and comes back"
old=$(guest_domid drv)
guest_destroy drv
no_device() { ! on "$1" '[ -e /dev/xnem0 ]' </dev/null; }
for g in g1 g2; do
	check driver-gone-$g wait_for 20 no_device $g
done
check driver-clean eval '! xenstore-ls -f / | grep -q "device/xnem/"'
guest_create drv || die driver-again "drv cannot be made again"
on drv 'insmod /lib/modules/xnem/xnem-backend.ko' </dev/null
for g in g1 g2; do
	check driver-attached-$g wait_for 15 attached $g
	check driver-connected-$g wait_for 30 device_ready $g
done
works driver-copies

step "the service ends"
kill "$(cat /run/lock/xnemd.lock)"
check ends wait_bg xnemd
no_watch() {
	for p in $(pidof xenstore-watch); do
		! grep -q introduce "/proc/$p/cmdline" || return 1
	done
}
check ends-with-all wait_for 5 no_watch
check devices-stay attached g1
settled service-settled
for g in g1 g2; do
	: >/run/testbed/attached/$g
done
rm -r /etc/xnem
